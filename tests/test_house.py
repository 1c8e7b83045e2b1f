"""The house rules that no linter knows; CONTRIBUTING.md has their reasons.

Read from the source; nothing is imported.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "raxol_mcp"
MAX_LINES = 400

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef

# Names that say nothing about what is inside.
VAGUE_MODULES = {"common", "helpers", "manager", "misc", "util", "utils"}
VAGUE_CLASS = re.compile(r"(Manager|Handler|Helper|Utils?|Impl)$")

# Unfinished work belongs in the change, not in the text.
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
# Words that excuse, hurry the reader or say who is good, and folders of somebody's machine.
UNWANTED = re.compile(
    r"\b(simply|obviously|hopefully|for now|whitelist\w*|blacklist\w*|kludge)\b"
    r"|(?<![\w/.:])/(?:root|home|Users|work)/\w",
    re.IGNORECASE,
)

SUPPRESSION = re.compile(
    r"#\s*(?P<kind>type:\s*ignore|noqa|pragma:\s*no (?:cover|branch))"
    r"(?P<codes>\[[\w, -]+\]|:\s*[A-Z]+\d+(?:\s*,\s*[A-Z]+\d+)*)?"
    r"(?P<reason>.*)"
)


def programs() -> list[Path]:
    """Return every Python file of the project but this one, which has to name what it forbids."""
    folders = ("src", "tests", "tools", "examples", "benchmarks")
    found = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    return [path for path in found if path != Path(__file__)]


def pages() -> list[Path]:
    """Return every page of prose."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def place(path: Path, line: int) -> str:
    """Return `path:line` as an editor understands it."""
    return f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path.name}:{line}"


def comments(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield (line, comment, whether it has the line to itself)."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string, token.line.lstrip().startswith("#")


def unexplained(path: Path) -> list[str]:
    """Return the suppressions without a rule or a reason.

    The reason stands behind the suppression or as a comment on the line above.
    """
    found = list(comments(path.read_text("utf-8")))
    explained_below = {line + 1 for line, _, alone in found if alone}
    wrong = []
    for line, comment, _ in found:
        if match := SUPPRESSION.search(comment):
            codes = match["codes"] or match["kind"].startswith("pragma")
            reason = re.search(r"\w+\W+\w+", match["reason"]) or line in explained_below
            if not codes or not reason:
                wrong.append(f"{place(path, line)} {comment}")
    return wrong


def words_matching(pattern: re.Pattern[str], path: Path) -> list[str]:
    """Return the places of a text file that match."""
    lines = path.read_text("utf-8").splitlines()
    return [
        f"{place(path, number)} {match.group()}"
        for number, line in enumerate(lines, 1)
        if (match := pattern.search(line))
    ]


def listed_names(tree: ast.Module) -> list[str]:
    """Return what `__all__` lists, nothing without one."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [str(name) for name in ast.literal_eval(node.value)]
    return []


def definitions(tree: ast.Module) -> dict[str, Definition]:
    """Return the classes and functions at the top of a module; the last one of a name counts."""
    return {node.name: node for node in tree.body if isinstance(node, Definition)}


def undocumented(path: Path, *, lists_all: bool) -> list[str]:
    """Return what is public without being listed, and listed without a docstring.

    With `lists_all` a class or function is in `__all__` or begins with an underscore.
    """
    tree = ast.parse(path.read_text("utf-8"))
    listed = listed_names(tree)
    wrong = []
    for name, node in definitions(tree).items():
        if lists_all and not name.startswith("_") and name not in listed:
            wrong.append(f"{place(path, node.lineno)} {name} is not in __all__")
        if name in listed and not ast.get_docstring(node):
            wrong.append(f"{place(path, node.lineno)} {name} has no docstring")
    return wrong


def vague_names(path: Path) -> list[str]:
    """Return the names of a module and its classes that could mean anything."""
    classes = [
        f"{place(path, node.lineno)} {node.name}"
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef) and VAGUE_CLASS.search(node.name)
    ]
    return [f"{place(path, 1)} {path.stem}"] * (path.stem in VAGUE_MODULES) + classes


def test_a_module_is_short_enough_to_be_read() -> None:
    long = [
        place(path, lines)
        for path in sorted(SOURCE.rglob("*.py"))
        if (lines := len(path.read_text("utf-8").splitlines())) > MAX_LINES
    ]
    assert long == []


def test_public_names_are_listed_and_documented() -> None:
    wrong = [
        sentence
        for path in sorted(SOURCE.rglob("*.py"))
        # core/ is no public API: its modules may share names that they do not list.
        for sentence in undocumented(path, lists_all="core" not in path.parts)
    ]
    assert wrong == []


def test_every_suppression_has_a_rule_and_a_reason() -> None:
    assert [sentence for path in programs() for sentence in unexplained(path)] == []


def test_nothing_is_left_for_later() -> None:
    files = [*programs(), *pages()]
    assert [found for path in files for found in words_matching(UNFINISHED, path)] == []


def test_no_unwanted_word_or_folder() -> None:
    files = [*programs(), *pages()]
    assert [found for path in files for found in words_matching(UNWANTED, path)] == []


def test_names_say_what_is_inside() -> None:
    wrong = [found for path in sorted(SOURCE.rglob("*.py")) for found in vague_names(path)]
    assert wrong == []


@pytest.mark.parametrize(
    ("line", "problems"),
    [
        ("x = f()  # type: ignore", 1),
        ("x = f()  # type: ignore[arg-type]", 1),
        ("x = f()  # type: ignore  # the stub is wrong", 1),
        ("x = f()  # type: ignore[arg-type]  # the stub is wrong", 0),
        ("# The stub is wrong.\nx = f()  # type: ignore[arg-type]", 0),
        ("x = f()  # noqa", 1),
        ("x = f()  # noqa: E501", 1),
        ("x = f()  # noqa: E501, B008", 1),
        ("x = f()  # noqa: E501  # a table is easier to read wide", 0),
        ("x = f()  # pragma: no cover", 1),
        ("x = f()  # pragma: no cover - other systems only", 0),
        ('x = "# noqa"', 0),
    ],
)
def test_a_planted_suppression_is_found(tmp_path: Path, line: str, problems: int) -> None:
    path = tmp_path / "planted.py"
    path.write_text(line + "\n", "utf-8")
    assert len(unexplained(path)) == problems


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("def f(): ...", ["planted.py:1 f is not in __all__"]),
        ("def _f(): ...", []),
        ("async def f(): ...", ["planted.py:1 f is not in __all__"]),
        ('__all__ = ["F"]\nclass F: ...', ["planted.py:2 F has no docstring"]),
        ('__all__ = ["f"]\nasync def f(): ...', ["planted.py:2 f has no docstring"]),
        ('__all__ = ["f"]\ndef f():\n    "Do."', []),
        ('__all__ = ["LIMIT"]\nLIMIT = 3', []),
    ],
)
def test_a_planted_bare_name_is_found(tmp_path: Path, text: str, problems: list[str]) -> None:
    path = tmp_path / "planted.py"
    path.write_text(text, "utf-8")
    assert undocumented(path, lists_all=True) == problems


def test_planted_words_are_found(tmp_path: Path) -> None:
    path = tmp_path / "planted.md"
    path.write_text("Simply put\na TODO\nsee /home/me/notes\nfile:///home/me is fine\n", "utf-8")
    assert words_matching(UNWANTED, path) == ["planted.md:1 Simply", "planted.md:3 /home/m"]
    assert words_matching(UNFINISHED, path) == ["planted.md:2 TODO"]


def test_planted_vague_names_are_found(tmp_path: Path) -> None:
    path = tmp_path / "utils.py"
    path.write_text("class CallManager: ...\nclass Call: ...\n", "utf-8")
    assert vague_names(path) == ["utils.py:1 utils", "utils.py:1 CallManager"]
