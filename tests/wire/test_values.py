"""The base of records: cheap to declare and to make, compared by what they hold."""

from __future__ import annotations

import pytest

from raxol_mcp.wire.values import Value, is_number


class _Point(Value):
    x: int
    y: int = 0


class _Fixed(Value, frozen=True):
    x: int = 0


def test_values_are_the_same_when_they_hold_the_same() -> None:
    assert _Point(1) == _Point(1, 0)
    assert _Point(1) != _Point(2)


def test_values_of_two_classes_are_never_the_same() -> None:
    other: object = _Fixed(1)
    assert _Point(1) != other


def test_a_value_shows_what_it_holds() -> None:
    assert repr(_Point(1)) == "_Point(x=1, y=0)"


def test_a_frozen_value_cannot_be_changed_and_can_be_a_key() -> None:
    fixed = _Fixed(1)
    with pytest.raises(AttributeError):
        fixed.x = 2  # type: ignore[misc]  # what is tried here
    assert {fixed: "found"}[_Fixed(1)] == "found"


def test_a_value_that_may_change_is_no_key() -> None:
    with pytest.raises(TypeError):
        hash(_Point(1))


@pytest.mark.parametrize(
    ("value", "number"),
    [(0, True), (-1.5, True), (float("nan"), True), (True, False), ("1", False), (None, False)],
)
def test_a_bool_is_no_number(value: object, number: bool) -> None:
    """RFC 8259 §3: true and false are values of their own."""
    assert is_number(value) is number
