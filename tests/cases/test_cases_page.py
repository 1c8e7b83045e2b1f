"""`docs/cases.md` says which case is tried where; this checks that it is so."""

import ast
import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "cases.md"
ROW: Final = re.compile(
    r"^\| (BC-\d{3}|K\d\d)\b.*`((?:http/|client/)?test_\w+\.py)::(test_\w+)` \|$", re.MULTILINE
)


def documented(module: str) -> dict[str, str]:
    """Return the docstring of every test of a module."""
    tree = ast.parse((Path(__file__).parent / module).read_text("utf-8"))
    return {
        node.name: ast.get_docstring(node) or ""
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def test_every_row_names_a_test_that_says_so() -> None:
    rows = ROW.findall(PAGE.read_text("utf-8"))
    assert len(rows) > 100
    for case, module, test in rows:
        tests = documented(module)
        assert test in tests, f"{module}::{test}"
        if case.startswith("BC"):
            assert case in tests[test], f"{test} does not mention {case}"
        else:
            assert Path(module).name.startswith(f"test_{case.lower()}_")


def test_every_case_that_a_test_mentions_has_a_row() -> None:
    page = PAGE.read_text("utf-8")
    for path in sorted(Path(__file__).parent.rglob("test_k*.py")):
        for case in sorted(set(re.findall(r"BC-\d{3}", path.read_text("utf-8")))):
            assert f"\n| {case} |" in page, f"{case} of {path.name}"
