"""Every promise is claimed by a test. Claims are read from the source, not from what ran."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.promises import PROMISES, promise

TESTS = Path(__file__).parent
Test = ast.FunctionDef | ast.AsyncFunctionDef
# A test that does not count as run does not count as a claim.
NOT_RUN = {"skip", "skipif", "xfail"}


def last_name(node: ast.expr) -> str:
    """Return `c` of `a.b.c`, `c(...)` and `c`."""
    if isinstance(node, ast.Call):
        return last_name(node.func)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def claims(path: Path) -> tuple[list[str], list[str]]:
    """Read the ids that the tests of a module claim, and what is wrong with the claims."""
    claimed: list[str] = []
    wrong: list[str] = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, Test | ast.ClassDef):
            continue
        for decorator in node.decorator_list:
            if last_name(decorator) != "promise":
                continue
            place = f"{path.name}:{decorator.lineno} {node.name}"
            ids = ids_of(decorator)
            if not ids:
                wrong.append(f"{place}: names no promise, or not as plain strings")
            elif len(set(ids)) < len(ids):
                wrong.append(f"{place}: names a promise twice")
            if isinstance(node, ast.ClassDef) or not node.name.startswith("test_"):
                wrong.append(f"{place}: is no test")
            elif NOT_RUN & set(map(last_name, node.decorator_list)):
                wrong.append(f"{place}: may not run")
            else:
                claimed += ids
    return claimed, wrong


def ids_of(decorator: ast.expr) -> list[str]:
    """Return the ids of `@promise(...)`; none when they cannot be read."""
    if not isinstance(decorator, ast.Call) or decorator.keywords:
        return []
    values = [node.value if isinstance(node, ast.Constant) else None for node in decorator.args]
    found = [value for value in values if isinstance(value, str)]
    return found if len(found) == len(values) else []


def problems(known: Iterable[str], paths: Iterable[Path]) -> list[str]:
    """Say what is wrong between the promises and the tests that claim them."""
    listed = Counter(known)
    wrong = [f"{id}: listed {count} times" for id, count in listed.items() if count > 1]
    claimed: set[str] = set()
    for path in paths:
        found, faults = claims(path)
        wrong += faults
        wrong += [
            f"{path.name}: claims {id}, which is no promise" for id in found if id not in listed
        ]
        claimed.update(found)
    return wrong + [f"{id}: claimed by no test" for id in listed if id not in claimed]


def test_every_promise_is_claimed_by_a_test() -> None:
    """ours: a specification that nothing checks is a wish."""
    paths = [path for path in sorted(TESTS.rglob("test_*.py")) if path != Path(__file__)]
    assert problems([known.id for known in PROMISES], paths) == []


def test_a_promise_is_one_sentence_with_a_source() -> None:
    assert [
        known.id
        for known in PROMISES
        if not known.section or not known.sentence.endswith(".") or len(known.sentence) > 200
    ] == []


def test_claiming_what_is_no_promise_is_an_error_at_once() -> None:
    with pytest.raises(LookupError, match=r"no\.such"):
        promise("no.such")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('@promise("a")\ndef test_x(): ...', []),
        ('@promise("a")\nasync def test_x(): ...', []),
        ('@tests.promises.promise("a")\ndef test_x(): ...', []),
        ('class TestX:\n    @promise("a")\n    def test_x(self): ...', []),
        ("def test_x(): ...", ["a: claimed by no test"]),
        (
            '@promise("a", "b")\ndef test_x(): ...',
            ["test_planted.py: claims b, which is no promise"],
        ),
        (
            '@promise("a", "a")\ndef test_x(): ...',
            ["test_planted.py:1 test_x: names a promise twice"],
        ),
        (
            '@promise("a")\ndef helper(): ...',
            ["test_planted.py:1 helper: is no test", "a: claimed by no test"],
        ),
        (
            '@promise("a")\nclass TestX: ...',
            ["test_planted.py:1 TestX: is no test", "a: claimed by no test"],
        ),
        (
            '@pytest.mark.skip(reason="later")\n@promise("a")\ndef test_x(): ...',
            ["test_planted.py:2 test_x: may not run", "a: claimed by no test"],
        ),
        (
            "@promise(A)\ndef test_x(): ...",
            [
                "test_planted.py:1 test_x: names no promise, or not as plain strings",
                "a: claimed by no test",
            ],
        ),
        (
            "@promise\ndef test_x(): ...",
            [
                "test_planted.py:1 test_x: names no promise, or not as plain strings",
                "a: claimed by no test",
            ],
        ),
    ],
)
def test_a_planted_claim_is_judged(tmp_path: Path, source: str, expected: list[str]) -> None:
    path = tmp_path / "test_planted.py"
    path.write_text(source + "\n", "utf-8")
    assert problems(["a"], [path]) == expected


def test_a_planted_duplicate_is_found(tmp_path: Path) -> None:
    path = tmp_path / "test_planted.py"
    path.write_text('@promise("a")\ndef test_x(): ...\n', "utf-8")
    assert problems(["a", "a"], [path]) == ["a: listed 2 times"]
