"""Whole floats, unknown members and overlooked newlines: what the conversion itself lacks."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.inspect import type_info

from raxol_mcp.server.shapes import overlooked_newlines, unknown_members, whole_floats


class Number(enum.IntEnum):
    ONE = 1


class Name(enum.Enum):
    A = "a"


@dataclass
class Inner:
    n: int
    f: float = 0.0


@dataclass
class Tree:
    value: int
    children: "list[Tree]" = field(default_factory=list)


class Typed(TypedDict):
    n: int
    inner: NotRequired[Inner]


class Pair(NamedTuple):
    n: int
    f: float


class Row(msgspec.Struct, array_like=True):
    n: int
    f: float


class TaggedRow(msgspec.Struct, array_like=True, tag="row"):
    n: int


class Cat(msgspec.Struct, tag="cat", tag_field="kind"):
    lives: int


class Dog(msgspec.Struct, tag="dog", tag_field="kind", rename="camel"):
    bark_volume: float


class Loose(msgspec.Struct):
    n: int | None = None


@pytest.mark.parametrize(
    ("value", "type_", "expected"),
    [
        (5.0, int, 5),
        (-0.0, int, 0),
        (5.5, int, 5.5),
        (5.0, float, 5.0),
        (5.0, int | float, 5.0),
        (5.0, Any, 5.0),
        (5.0, str, 5.0),
        (5.0, int | None, 5),
        (5.0, int | str, 5),
        (5.0, Annotated[int, msgspec.Meta(ge=1, description="d")], 5),
        (5.0, Literal[5], 5),
        (5.0, Literal["5"], 5.0),
        (1.0, Number, 1),
        (1.0, Name, 1.0),
        (2.0**63, int, 2.0**63),
        (-(2.0**63), int, -(2**63)),
        (float("inf"), int, float("inf")),
        (True, int, True),
        ([1.0, 1.5], list[int], [1, 1.5]),
        ([1.0], set[int], [1]),
        ([1.0, 2.0], tuple[int, float], [1, 2.0]),
        ([1.0, 2.0, 3.0], tuple[int, int], [1, 2, 3.0]),
        ([1.0], tuple[int, ...], [1]),
        ([1.0, 2.0], Pair, [1, 2.0]),
        ([1.0, 2.0], Row, [1, 2.0]),
        (["row", 2.0], TaggedRow, ["row", 2]),
        (["other", 2.0], TaggedRow, ["other", 2.0]),
        ([1.0], int, [1.0]),
        ({"a": 1.0}, dict[str, int], {"a": 1}),
        ({"a": [1.0]}, Mapping[str, list[int]], {"a": [1]}),
        ({"n": 1.0, "f": 1.0, "x": 1.0}, Inner, {"n": 1, "f": 1.0, "x": 1.0}),
        ({"n": 1.0, "inner": {"n": 2.0}}, Typed, {"n": 1, "inner": {"n": 2}}),
        ({"kind": "cat", "lives": 9.0}, Cat | Dog | None, {"kind": "cat", "lives": 9}),
        ({"kind": "dog", "barkVolume": 9.0}, Cat | Dog, {"kind": "dog", "barkVolume": 9.0}),
        ({"kind": "cow", "lives": 9.0}, Cat | Dog, {"kind": "cow", "lives": 9.0}),
        ({"n": 1.0}, int, {"n": 1.0}),
        (
            {"value": 1.0, "children": [{"value": 2.0, "children": []}]},
            Tree,
            {"value": 1, "children": [{"value": 2, "children": []}]},
        ),
    ],
)
def test_whole_floats_become_integers_where_only_those_fit(
    value: object, type_: object, expected: object
) -> None:
    """JSON Schema 2020-12 §6.1.1: a number with a zero fraction is an integer."""
    settled = whole_floats(value, type_info(type_))
    assert repr(settled) == repr(expected)


@given(st.floats(allow_nan=False), st.integers(-(2**63), 2**63 - 1))
def test_numbers_keep_their_value(number: float, whole: int) -> None:
    shape = type_info(int)
    assert whole_floats(number, shape) == number
    assert whole_floats(whole, shape) is whole


@pytest.mark.parametrize(
    ("value", "type_", "paths"),
    [
        ({"n": 1}, Inner, []),
        ({"n": 1, "x": 1}, Inner, [("x",)]),
        ({"n": 1, "x": 1, "inner": {"n": 1, "y": 1}}, Typed, [("x",), ("inner", "y")]),
        ([{"n": 1}, {"n": 1, "x": 1}], list[Inner], [(1, "x")]),
        ({"a": {"n": 1, "x": 1}}, dict[str, Inner], [("a", "x")]),
        ({"a": 1, "b": 2}, dict[str, int], []),
        ({"a": {"b": 1}}, dict, []),
        ({"a": 1}, Any, []),
        ({"n": None, "x": 1}, Loose, [("x",)]),
        ({"n": 1, "x": 1}, Inner | None, [("x",)]),
        (None, Inner | None, []),
        ({"kind": "cat", "lives": 9}, Cat | Dog, []),
        ({"kind": "cat", "lives": 9, "barkVolume": 1}, Cat | Dog, [("barkVolume",)]),
        ({"kind": "dog", "barkVolume": 9, "bark_volume": 1}, Dog, [("bark_volume",)]),
        ([{"n": 1, "x": 1}, 1], tuple[Inner, int], [(0, "x")]),
        ([["row", 1]], list[TaggedRow], []),
        (
            {"value": 1, "children": [{"value": 2, "chidlren": []}]},
            Tree,
            [("children", 0, "chidlren")],
        ),
    ],
)
def test_a_member_that_would_be_dropped_is_found(
    value: object, type_: object, paths: list[object]
) -> None:
    assert list(unknown_members(value, type_info(type_))) == paths


Word = Annotated[str, msgspec.Meta(pattern=r"^[a-z$]+$")]
Price = Annotated[str, msgspec.Meta(pattern=r"^\$[0-9]+$")]
Free = Annotated[str, msgspec.Meta(pattern="[a-z]")]


@dataclass
class Named:
    word: Word
    price: "Price | None" = None


@pytest.mark.parametrize(
    ("shape", "value", "paths"),
    [
        (Word, "a$", []),
        (Word, "a\n", [()]),
        (Price, "$5\n", [()]),
        (Price, "$5", []),
        (Free, "a\n", []),
        (str, "a\n", []),
        (Word | None, "a\n", [()]),
        (Word | None, None, []),
        (Annotated[Word, msgspec.Meta(max_length=9)], "a\n", [()]),
        (list[Word], ["a", "b\n"], [(1,)]),
        (dict[str, Word], {"x": "a\n", "y": "b"}, [("x",)]),
        (dict[str, object], {"x": "a\n"}, []),
        (Named, {"word": "a\n", "price": "$5\n"}, [("word",), ("price",)]),
        (list[Named], [{"word": "a"}, {"word": "a\n"}], [(1, "word")]),
    ],
)
def test_a_newline_that_a_pattern_overlooks_is_found(
    shape: Any, value: object, paths: list[object]
) -> None:
    """ECMA-262: `$` matches at the end; Python's also in front of a newline there."""
    msgspec.convert(value, shape)
    assert list(overlooked_newlines(value, type_info(shape))) == paths
