"""Strict conversion of arguments."""

import datetime
import enum
import uuid
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pydantic
import pytest

from raxol_mcp.schemas import problems
from raxol_mcp.server.arguments import ArgumentsInvalid
from raxol_mcp.server.binding import Field, Form, convert_strictly, overlooked_in
from raxol_mcp.server.schema import describe


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: int = 0


@dataclass
class Moody:
    n: int

    def __post_init__(self) -> None:
        if self.n == 1:
            raise ValueError("n must not be 1")
        if self.n == 2:
            raise LookupError("a secret")


class Filter(TypedDict):
    status: str


class Model(pydantic.BaseModel):
    n: int


def form(closed: bool = True, **fields: Any) -> Form:
    """Make a form of `name=type` or `name=(type, default)`."""
    listed = []
    for name, given in fields.items():
        type_, default = given if isinstance(given, tuple) else (given, msgspec.NODEFAULT)
        (schema,) = describe([type_], closed=True).schemas
        listed.append(Field(name, type_, schema, default))
    return Form(tuple(listed), closed=closed)


def problem(form: Form, arguments: Any) -> str:
    with pytest.raises(ArgumentsInvalid) as caught:
        form.bind(arguments)
    return str(caught.value)


def test_arguments_come_back_with_defaults() -> None:
    both = form(a=int, b=(str, "x"))
    assert both.bind({"a": 1}) == {"a": 1, "b": "x"}
    assert both.bind({"b": "y", "a": 2}) == {"a": 2, "b": "y"}
    assert both.bind(MappingProxyType({"a": 1})) == {"a": 1, "b": "x"}
    assert form().bind({}) == {}


def test_values_become_what_the_types_say() -> None:
    bound = form(
        point=Point,
        colour=Colour,
        day=datetime.date,
        id=uuid.UUID,
        price=Decimal,
        raw=bytes,
        number=float,
        table=dict[int, Point],
        model=Model,
        models=list[Model],
        anything=object,
    ).bind(
        {
            "point": {"x": 1},
            "colour": "red",
            "day": "2026-01-31",
            "id": "12345678-1234-5678-1234-567812345678",
            "price": "1.10",
            "raw": "/w==",
            "number": 3,
            "table": {"7": {"x": 1, "y": 2}},
            "model": {"n": 1},
            "models": [{"n": 2}],
            "anything": {"a": [None]},
        }
    )
    assert bound == {
        "point": Point(1),
        "colour": Colour.RED,
        "day": datetime.date(2026, 1, 31),
        "id": uuid.UUID("12345678-1234-5678-1234-567812345678"),
        "price": Decimal("1.10"),
        "raw": b"\xff",
        "number": 3.0,
        "table": {7: Point(1, 2)},
        "model": Model(n=1),
        "models": [Model(n=2)],
        "anything": {"a": [None]},
    }
    assert type(bound["number"]) is float


def test_defaults_are_the_objects_that_were_given() -> None:
    """As in Python itself: a default is made once."""
    empty: list[int] = []
    filled = {"a": 1}
    marker = object()
    bound = form(a=(list[int], empty), b=(dict[str, int], filled), c=(object, marker)).bind({})
    assert bound["a"] is empty
    assert bound["b"] is filled
    assert bound["c"] is marker


typed = form(s=str, n=(int, 5), b=(bool, False), o=(dict[str, Any] | None, None))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"s": 7}, "'s' must be string, not integer"),
        ({"s": "x", "n": "5"}, "'n' must be integer, not string"),
        ({"s": "x", "n": 5.5}, "'n' must be integer, not number"),
        ({"s": "x", "n": True}, "'n' must be integer, not boolean"),
        ({"s": "x", "n": None}, "'n' must be integer, not null"),
        ({"s": "x", "b": "false"}, "'b' must be boolean, not string"),
        ({"s": "x", "b": 0}, "'b' must be boolean, not integer"),
        ({"s": "x", "o": []}, "'o' must be object or null, not array"),
        ({}, "'s' is required"),
        (
            {"s": "x", "status_filter": "failure"},
            "'status_filter' is unknown (the arguments are 's', 'n', 'b', 'o')",
        ),
    ],
)
def test_near_misses_are_refused_by_name(arguments: dict[str, object], expected: str) -> None:
    """MCP SEP-1303; modelcontextprotocol/typescript-sdk#1404, python-sdk#384."""
    assert problem(typed, arguments) == f"Invalid arguments: {expected}."


def test_strings_stay_strings_and_whole_floats_are_integers() -> None:
    """JSON Schema 2020-12 §6.1.1; modelcontextprotocol/python-sdk#384."""
    assert typed.bind({"s": "007"})["s"] == "007"
    assert typed.bind({"s": '{"a":1}'})["s"] == '{"a":1}'
    bound = typed.bind({"s": "x", "n": 5.0})
    assert repr(bound["n"]) == "5"


def test_every_bad_argument_is_named() -> None:
    text = problem(
        form(a=int, b=str, c=Point, d=Colour, e=(int, 0)),
        {"b": 1, "c": {"x": "1"}, "d": "green", "e": None, "f": 1, "g": 2},
    )
    assert text == (
        "Invalid arguments: 'a' is required; 'b' must be string, not integer; "
        "'c.x' must be integer, not string; 'd' is not one of the allowed values; "
        "'e' must be integer, not null; 'f' is unknown; "
        "'g' is unknown (the arguments are 'a', 'b', 'c', 'd', 'e')."
    )


def test_the_values_of_a_literal_are_named() -> None:
    assert problem(form(a=Literal["x", "y"]), {"a": "z"}) == (
        "Invalid arguments: 'a' must be one of 'x', 'y'."
    )


def test_without_parameters_nothing_is_taken() -> None:
    assert problem(form(), {"a": 1}) == "Invalid arguments: 'a' is unknown (there are none)."


def test_constraints_are_named() -> None:
    limited = form(
        n=Annotated[int, msgspec.Meta(ge=1)], s=Annotated[str, msgspec.Meta(max_length=2)]
    )
    assert problem(limited, {"n": 0, "s": "abc"}) == (
        "Invalid arguments: 'n' must be integer >= 1; 's' must be string of length <= 2."
    )


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({"point": {"x": 1, "z": 1}}, "point.z"),
        ({"points": [{"x": 1}, {"x": 1, "z": 1}]}, "points[1].z"),
        ({"filter": {"status": "a", "statsu": "b"}}, "filter.statsu"),
    ],
)
def test_nothing_is_dropped_inside_of_an_argument(arguments: dict[str, object], path: str) -> None:
    nested = form(point=(Point, None), points=(list[Point], []), filter=(Filter, None))
    assert problem(nested, arguments) == f"Invalid arguments: '{path}' is unknown."


def test_a_default_of_another_type_is_left_alone() -> None:
    assert form(point=(Point, None)).bind({}) == {"point": None}


def test_a_model_complains_in_its_own_words() -> None:
    assert problem(form(m=Model), {"m": {"n": "5"}}) == (
        "Invalid arguments: 'm' is not valid (n: Input should be a valid integer)."
    )
    assert problem(form(m=list[Model]), {"m": [{"n": 5}, {}]}) == (
        "Invalid arguments: 'm[1]' is not valid (n: Field required)."
    )


def test_a_class_that_refuses_its_values_is_heard() -> None:
    assert problem(form(m=Moody), {"m": {"n": 1}}) == (
        "Invalid arguments: 'm' is not valid (n must not be 1)."
    )


def test_a_class_that_breaks_refuses_too_and_tells_no_secret() -> None:
    assert problem(form(m=Moody), {"m": {"n": 2}}) == (
        "Invalid arguments: 'm' is not valid (LookupError)."
    )


@pytest.mark.parametrize("arguments", [[], None, "a", 5])
def test_arguments_are_an_object(arguments: object) -> None:
    assert problem(typed, arguments) == "Invalid arguments: they must be an object."


def test_names_that_are_no_strings_are_unknown() -> None:
    assert problem(form(a=int), {"a": 1, 2: 3}).startswith("Invalid arguments: '2' is unknown")


def test_a_value_alone_is_converted_as_strictly() -> None:
    assert convert_strictly(5.0, int) == 5
    with pytest.raises(msgspec.ValidationError):
        convert_strictly("5", int)
    with pytest.raises(msgspec.ValidationError, match=r"^LookupError$"):
        convert_strictly({"n": 2}, Moody)


def test_unknown_members_of_a_value_are_problems() -> None:
    shape = msgspec.inspect.type_info(Point)
    assert overlooked_in({"x": 1}, shape) == []
    assert overlooked_in({"x": 1, "z": 1}, shape) == [(("z",), "is unknown")]


def test_a_flood_of_wrong_names_is_counted_and_not_put_into_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """ours: 20 problems are told; a caller can send a hundred thousand."""
    written: list[object] = []

    def quoted(names: Any) -> str:
        written.append(names)
        return "'x'"

    monkeypatch.setattr(problems, "quoted", quoted)
    flood = {f"k{number}": number for number in range(1_000)}
    for given in ({"point": {"x": 1}, **flood}, {"point": {"x": 1, **flood}}):
        assert problem(form(point=Point), given).endswith("; 'x' is unknown; and 980 more.")
        assert len(written) == 20
        written.clear()


def test_a_pattern_has_no_newline_behind_its_end() -> None:
    """ECMA-262: what the schema shows refuses it, so the check does."""
    word = Annotated[str, msgspec.Meta(pattern="^[a-z]+$")]
    told = "Invalid arguments: 'a' must not end with a newline."
    assert problem(form(closed=False, a=word), {"a": "x\n"}) == told
    assert form(closed=False, a=word, b=str).bind({"a": "x", "b": "y\n"})["b"] == "y\n"


def test_nothing_is_built_before_the_first_call() -> None:
    late = form(a=int)
    assert late._struct is None
    late.bind({"a": 1})
    first = late._struct
    late.bind({"a": 1})
    assert late._struct is first
