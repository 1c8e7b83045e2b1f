"""What docs/client.md says of tags, exceptions and names is what the source has."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import raxol_mcp
from raxol_mcp import errors

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "raxol_mcp"
PAGE = (ROOT / "docs" / "client.md").read_text("utf-8")
# Of classes that are not raised as they are.
ABSTRACT = {"error"}


def tags() -> Iterator[str]:
    """Yield each tag that a `Reason` is made with, or that an exception has."""
    for layer in ("errors.py", "core", "client", "transports"):
        for path in [SOURCE / layer, *(SOURCE / layer).rglob("*.py")]:
            if path.is_file():
                yield from tags_of(ast.parse(path.read_text("utf-8")))


def tags_of(tree: ast.AST) -> Iterator[str]:
    """Yield the tags in one module."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name("Reason"), args=[ast.Constant(str(tag)), *_]):
                yield tag
            case ast.Assign(targets=[ast.Name("tag")], value=ast.Constant(str(tag))):
                yield tag
            case _:
                pass


def test_every_tag_is_in_the_table() -> None:
    """ours: the set is closed."""
    written = set(re.findall(r"`([a-z_]+)`", PAGE))
    assert set(tags()) - written - ABSTRACT == set()


def test_every_exception_on_the_page_can_be_imported_from_the_package() -> None:
    named = set(re.findall(r"^\| `([A-Z]\w+)` \| ", PAGE, re.MULTILINE))
    assert len(named) >= 9
    for name in named:
        assert issubclass(getattr(raxol_mcp, name), errors.RaxolError)


def test_every_public_exception_is_public_in_the_package() -> None:
    missing = [
        name
        for name in errors.__all__
        if isinstance(getattr(errors, name), type) and name not in raxol_mcp.__all__
    ]
    assert missing == []


def test_the_program_of_the_page_and_of_the_readme_is_the_example() -> None:
    example = (ROOT / "examples" / "use_a_server.py").read_text("utf-8")
    for page in (PAGE, (ROOT / "README.md").read_text("utf-8")):
        assert f"```python\n{example}```" in page


def test_every_module_of_the_client_is_on_its_map() -> None:
    package = ast.get_docstring(ast.parse((SOURCE / "client" / "__init__.py").read_text("utf-8")))
    named = set(re.findall(r"`([a-z_]+)`", package or ""))
    assert {path.stem for path in (SOURCE / "client").glob("[a-z]*.py")} == named


def test_every_example_is_in_the_list_of_examples() -> None:
    page = (ROOT / "examples" / "README.md").read_text("utf-8")
    programs = {path.name for path in (ROOT / "examples").glob("*.py")}
    assert set(re.findall(r"\]\((\w+\.py)\)", page)) == programs
