"""Who may import whom. Read from the source; nothing is imported.

```
errors <- wire <- core <- server ─────┐
                     ^ <- transports ─┴<- cli, testing
                              ^ <- client ─┘
errors <- wire <- schemas <- server, client
server, transports <- views <- cli, testing
```

A server is handed to a transport; a client opens its own, so it knows them (ADR-0022).

A lazy import and one under `TYPE_CHECKING` are arrows like any other: what is not in the table is
not to be known. `version` is below everything.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = "raxol_mcp"
SOURCE = Path(__file__).parents[1] / "src" / PACKAGE

# A layer is a module or a folder right below the package; "" is the package's own __init__,
# which passes names on to users and is imported by nobody inside.
ARROWS: dict[str, set[str]] = {
    "version": set(),
    "errors": set(),
    "telemetry": set(),
    "wire": {"errors"},
    "core": {"errors", "wire"},
    "schemas": {"errors", "wire"},
    "server": {"version", "errors", "telemetry", "wire", "schemas", "core"},
    "transports": {"version", "errors", "wire", "core"},
    "client": {
        *("version", "errors", "telemetry"),
        *("wire", "core", "schemas", "transports"),
    },
    "views": {"errors", "wire", "core", "server", "transports"},
    "cli": {"", "version", "errors", "wire", "core", "server", "transports", "client", "views"},
    "testing": {
        *("", "version", "errors", "wire", "core", "server", "transports"),
        *("client", "views"),
    },
    "": {"version", "errors", "telemetry", "wire", "core", "server", "transports", "client"},
    "__main__": {"cli"},
}

# No I/O, clock, randomness, event loop or logging can come from these.
PURE_MODULES = {
    *("__future__", "abc", "base64", "collections", "dataclasses", "enum", "functools"),
    *("hashlib", "hmac", "itertools", "json", "math", "re", "types", "typing"),
}
PURE_LAYERS: dict[str, set[str]] = {
    "version": set(),
    "errors": PURE_MODULES,
    "wire": PURE_MODULES | {"msgspec"},
    "core": PURE_MODULES,
}

# Each costs a noticeable part of the time from spawn to the first answer, so it is imported by
# the function that needs it.
HEAVY = {
    *("aiohttp", "click", "concurrent.futures", "cryptography", "email", "http"),
    *("importlib.metadata", "jwt"),
    *("importlib.resources", "jsonschema", "jsonschema_rs", "mcp", "mcp_types"),
    *("multiprocessing", "pydantic", "starlette", "textual", "urllib.request", "uvicorn"),
}
# The commands are click's; what a command needs is imported when it runs. The adapter of Textual is
# imported by who serves an app of Textual's.
HEAVY_ALLOWED = {"cli": {"click"}, "views": {"textual"}}


@dataclass(frozen=True, slots=True)
class Import:
    """One imported name: `target` is dotted, `at_start` is false inside functions."""

    module: str
    line: int
    target: str
    at_start: bool


def module_name(path: Path, source: Path) -> str:
    """Return the dotted name of a file below the package folder `source`."""
    parts = [PACKAGE, *path.relative_to(source).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_below(module: str, parent: str) -> bool:
    """Say whether the dotted `module` is `parent` or something in it."""
    return f"{module}.".startswith(f"{parent}.")


def imports_of(module: str, text: str, *, known: set[str]) -> Iterator[Import]:
    """Yield every import of the source `text`.

    `from a import b` is an import of `a.b`, but of `a` where `a` is ours and `a.b` is none of our
    modules, the `known` ones: `b` is then something in `a`.
    """

    def visit(node: ast.AST, at_start: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            match child:
                case ast.Import():
                    for alias in child.names:
                        yield Import(module, child.lineno, alias.name, at_start)
                case ast.ImportFrom():
                    assert child.level == 0, f"{module}:{child.lineno}: relative import"
                    assert child.module is not None, "an absolute import names a module"
                    for alias in child.names:
                        full = f"{child.module}.{alias.name}"
                        inside = is_below(full, PACKAGE) and full not in known
                        target = child.module if inside else full
                        yield Import(module, child.lineno, target, at_start)
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                    yield from visit(child, False)
                case ast.If() if ast.unparse(child.test) == "TYPE_CHECKING":
                    yield from visit(child, False)
                case _:
                    yield from visit(child, at_start)

    yield from visit(ast.parse(text), True)


def layer_of(module: str) -> str:
    """Return the layer of a dotted module of this package."""
    return [*module.split("."), ""][1]


def all_imports(source: Path) -> list[Import]:
    """Return every import of every module below `source`."""
    modules = {module_name(path, source): path for path in sorted(source.rglob("*.py"))}
    return [
        found
        for module, path in modules.items()
        for found in imports_of(module, path.read_text("utf-8"), known=set(modules))
    ]


def forbidden_arrows(imports: list[Import]) -> list[str]:
    """Return a sentence for each import between layers that the table does not have."""
    wrong = []
    for found in imports:
        here = layer_of(found.module)
        if here not in ARROWS:
            wrong.append(f"{found.module}: the layer {here!r} is not in the table")
        elif is_below(found.target, PACKAGE):
            there = layer_of(found.target)
            if there != here and there not in ARROWS[here]:
                wrong.append(f"{found.module}:{found.line} imports {found.target}")
    return wrong


def impure_imports(imports: list[Import]) -> list[str]:
    """Return a sentence for each module from outside that a pure layer must not know."""
    wrong = []
    for found in imports:
        allowed = PURE_LAYERS.get(layer_of(found.module))
        root = found.target.split(".")[0]
        if allowed is not None and root != PACKAGE and root not in allowed:
            wrong.append(f"{found.module}:{found.line} imports {found.target}")
    return wrong


def heavy_imports(imports: list[Import]) -> list[str]:
    """Return a sentence for each heavy module that is imported at start-up."""
    wrong = []
    for found in imports:
        heavy = HEAVY - HEAVY_ALLOWED.get(layer_of(found.module), set())
        if found.at_start and any(is_below(found.target, module) for module in heavy):
            wrong.append(f"{found.module}:{found.line} imports {found.target}")
    return wrong


def import_cycle(imports: list[Import]) -> list[str]:
    """Return the modules of one cycle of start-up imports, or nothing."""
    edges: dict[str, set[str]] = {}
    for found in imports:
        # `from raxol_mcp.wire import jsonrpc` inside wire/ names the module, not the folder.
        if found.at_start and is_below(found.target, PACKAGE) and found.target != found.module:
            edges.setdefault(found.module, set()).add(found.target)
    done: set[str] = set()

    def search(module: str, path: list[str]) -> list[str]:
        if module in path:
            return [*path[path.index(module) :], module]
        if module in done:
            return []
        for target in sorted(edges.get(module, ())):
            if cycle := search(target, [*path, module]):
                return cycle
        done.add(module)
        return []

    return next((cycle for module in sorted(edges) if (cycle := search(module, []))), [])


def test_imports_follow_the_arrows() -> None:
    assert forbidden_arrows(all_imports(SOURCE)) == []


def test_pure_layers_import_nothing_that_acts() -> None:
    assert impure_imports(all_imports(SOURCE)) == []


def test_heavy_modules_are_imported_where_they_are_needed() -> None:
    assert heavy_imports(all_imports(SOURCE)) == []


def test_textual_is_known_to_its_adapter_alone() -> None:
    knowing = {i.module for i in all_imports(SOURCE) if is_below(i.target, "textual")}
    assert {
        module for module in knowing if not module.startswith("raxol_mcp.views.textual")
    } == set()


def test_no_module_imports_itself_through_others() -> None:
    assert import_cycle(all_imports(SOURCE)) == []


def planted(tmp_path: Path, **modules: str) -> list[Import]:
    """Write a small package, `__` for each dot, and return its imports."""
    for name, text in modules.items():
        path = tmp_path.joinpath(*name.split("__")).with_suffix(".py")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    return all_imports(tmp_path)


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("wire__jsonrpc", "import raxol_mcp.core.calls"),
        ("wire__jsonrpc", "from raxol_mcp.server import app"),
        ("core__calls", "from raxol_mcp import server"),
        ("core__calls", "from raxol_mcp import VERSION"),
        ("core__calls", "def f():\n    from raxol_mcp.transports import base"),
        ("server__app", "from raxol_mcp.transports.base import Sink"),
        ("server__app", "from raxol_mcp.testing import virtual_loop"),
        ("transports__stdio", "from raxol_mcp.server.app import Server"),
        ("transports__stdio", "if TYPE_CHECKING:\n    import raxol_mcp.server"),
        ("helpers__any", "import raxol_mcp.errors"),
    ],
)
def test_a_planted_arrow_is_found(tmp_path: Path, module: str, line: str) -> None:
    found = forbidden_arrows(planted(tmp_path, **{module: line, "server__extra": ""}))
    assert len(found) == 1
    assert found[0].startswith("raxol_mcp." + module.replace("__", "."))


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("core__calls", "import asyncio"),
        ("core__calls", "import msgspec"),
        ("core__calls", "from os import path"),
        ("wire__framing", "def f():\n    import time"),
        ("wire__framing", "if TYPE_CHECKING:\n    import logging"),
        ("errors", "import random"),
    ],
)
def test_a_planted_impure_import_is_found(tmp_path: Path, module: str, line: str) -> None:
    assert len(impure_imports(planted(tmp_path, **{module: line}))) == 1


def test_imports_of_the_table_pass(tmp_path: Path) -> None:
    imports = planted(
        tmp_path,
        errors="from typing import Final",
        wire__jsonrpc="import msgspec\nfrom raxol_mcp import errors",
        core__calls="from collections.abc import Mapping\nfrom raxol_mcp.wire import jsonrpc",
        server__app="import asyncio\nfrom raxol_mcp.core.calls import Call",
        transports__base="from raxol_mcp.wire.jsonrpc import Request",
        cli="import click\nfrom raxol_mcp import server, transports",
    )
    assert forbidden_arrows(imports) == []
    assert impure_imports(imports) == []
    assert heavy_imports(imports) == []
    assert import_cycle(imports) == []


def test_a_planted_heavy_import_is_found_only_at_start_up(tmp_path: Path) -> None:
    imports = planted(
        tmp_path,
        server__schema="import jsonschema_rs",
        server__lazy="def f():\n    import jsonschema_rs",
        server__light="from importlib import import_module",
        server__metadata="from importlib import metadata",
        server__typed="if TYPE_CHECKING:\n    from pydantic import BaseModel",
    )
    assert heavy_imports(imports) == [
        "raxol_mcp.server.metadata:1 imports importlib.metadata",
        "raxol_mcp.server.schema:1 imports jsonschema_rs",
    ]


def test_a_planted_cycle_is_found(tmp_path: Path) -> None:
    imports = planted(
        tmp_path,
        core__a="from raxol_mcp.core.b import x",
        core__b="from raxol_mcp.core import c",
        core__c="import raxol_mcp.core.a",
    )
    names = [f"raxol_mcp.core.{name}" for name in "abca"]
    assert import_cycle(imports) == names


def test_a_planted_relative_import_is_found(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="relative import"):
        planted(tmp_path, core__a="from . import b")
