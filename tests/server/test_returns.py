"""Return annotations as output schemas, and results held to them."""

import enum
import operator
from collections.abc import Awaitable, Coroutine
from dataclasses import dataclass, field
from typing import Annotated, Any, Never, NoReturn, TypedDict, Union

import jsonschema
import msgspec
import pydantic
import pytest

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.server.content import Image, ResultInvalid, Text, ToolResult
from raxol_mcp.server.hints import MISSING
from raxol_mcp.server.returns import Returns, returns_from_schema, returns_of
from raxol_mcp.server.rounds import InputRequired
from raxol_mcp.server.schema import UnsupportedType


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    y: int = 0


@dataclass
class Tree:
    value: int
    children: "list[Tree]" = field(default_factory=list)


class Typed(TypedDict):
    n: int


class Struct(msgspec.Struct):
    point: Point


class Model(pydantic.BaseModel):
    n: int = pydantic.Field(alias="N", ge=1)
    colour: Colour = Colour.RED

    @pydantic.computed_field
    def twice(self) -> int:
        return 2 * self.n


class Numbers(pydantic.RootModel[list[int]]):
    pass


def promise(annotation: object) -> Returns:
    returns = returns_of(annotation)
    assert returns is not None
    return returns


@pytest.mark.parametrize(
    "annotation",
    [
        str,
        None,
        type(None),
        Any,
        object,
        MISSING,
        NoReturn,
        Never,
        Text,
        Image,
        ToolResult,
        list[Text],
        list[Text | str],
        tuple[str, Image],
        tuple[Text, ...],
        str | None,
        Text | None,
        operator.getitem(Union, (str, Text, None)),
        list[Text] | str,
        Annotated[str, "what it says"],
        Annotated[Any, 1],
        InputRequired,
        str | InputRequired,
        int | Any,
        operator.getitem(Union, (int, object)),
        Awaitable[str],
        Coroutine[Any, Any, None],
    ],
)
def test_these_promise_nothing_structured(annotation: object) -> None:
    assert returns_of(annotation) is None


@pytest.mark.parametrize(
    ("annotation", "properties"),
    [
        (Point, {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}}),
        (Typed, {"n": {"type": "integer"}}),
        (Awaitable[Typed], {"n": {"type": "integer"}}),
        (Typed | InputRequired, {"n": {"type": "integer"}}),
        (Typed | ToolResult, {"n": {"type": "integer"}}),
        (Typed | list[Text], {"n": {"type": "integer"}}),
        (Annotated[Typed, "what it says"], {"n": {"type": "integer"}}),
    ],
)
def test_objects_are_their_own_structured_content(annotation: object, properties: object) -> None:
    schema = promise(annotation).schema
    assert schema["type"] == "object"
    assert schema["properties"] == properties
    assert "$defs" not in schema
    # What is given may grow a member without breaking a client.
    assert "additionalProperties" not in schema


def test_dicts_are_objects() -> None:
    assert promise(dict[str, int]).schema == {
        "type": "object",
        "additionalProperties": {"type": "integer"},
    }
    assert promise(dict).schema == {"type": "object"}


@pytest.mark.parametrize(
    ("annotation", "inner"),
    [
        (int, {"type": "integer"}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (int | Text, {"type": "integer"}),
        (Annotated[int, msgspec.Meta(ge=1)], {"type": "integer", "minimum": 1}),
    ],
)
def test_anything_else_is_wrapped(annotation: object, inner: object) -> None:
    """MCP 2025-11-25 server/tools: the root of an output schema is an object."""
    assert promise(annotation).schema == {
        "type": "object",
        "properties": {"result": inner},
        "required": ["result"],
    }


def test_definitions_stand_at_the_root_and_only_those_in_use() -> None:
    assert promise(Struct).schema == {
        "title": "Struct",
        "type": "object",
        "properties": {"point": {"$ref": "#/$defs/Point"}},
        "required": ["point"],
        "$defs": {
            "Point": {
                "title": "Point",
                "type": "object",
                "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
                "required": ["x"],
            }
        },
    }
    recursive = promise(Tree).schema
    assert recursive["type"] == "object"
    assert set(recursive["$defs"]) == {"Tree"}  # type: ignore[call-overload]  # it is a dict
    wrapped = promise(list[Colour]).schema
    assert set(wrapped["$defs"]) == {"Colour"}  # type: ignore[call-overload]  # it is a dict


def test_a_default_that_looks_like_a_reference_is_a_default() -> None:
    holder = msgspec.defstruct(
        "Holder", [("a", dict[str, str], msgspec.field(default_factory=lambda: {"$ref": "#/x"}))]
    )
    assert promise(holder).schema["type"] == "object"
    annotated = Annotated[
        dict[str, str], msgspec.Meta(extra_json_schema={"default": {"$ref": "#/x"}})
    ]
    assert "$defs" not in promise(annotated).schema


@pytest.mark.parametrize(
    ("annotation", "value", "structured"),
    [
        (Point, Point(1), {"x": 1, "y": 0}),
        (Point, {"x": 1}, {"x": 1}),
        (Typed, {"n": 1, "more": True}, {"n": 1, "more": True}),
        (Struct, Struct(Point(1)), {"point": {"x": 1, "y": 0}}),
        (Tree, Tree(1, [Tree(2)]), {"value": 1, "children": [{"value": 2, "children": []}]}),
        (dict[int, str], {1: "a"}, {"1": "a"}),
        (int, 5, {"result": 5}),
        (float, 5, {"result": 5}),
        (int | None, None, {"result": None}),
        (list[Point], [Point(1)], {"result": [{"x": 1, "y": 0}]}),
        (set[int], {1}, {"result": [1]}),
        (tuple[int, str], (1, "a"), {"result": [1, "a"]}),
        (Colour, Colour.RED, {"result": "red"}),
        (bytes, b"\xff", {"result": "/w=="}),
        (Model, Model(N=1), {"N": 1, "colour": "red", "twice": 2}),
        (list[Model], [Model(N=1)], {"result": [{"N": 1, "colour": "red", "twice": 2}]}),
        (Numbers, Numbers([1, 2]), {"result": [1, 2]}),
        (Point | ToolResult, Point(1), {"x": 1, "y": 0}),
    ],
)
def test_results_become_structured_content_that_conforms(
    annotation: object, value: object, structured: object
) -> None:
    """MCP server/tools §Output Schema; judged by an independent validator."""
    returns = promise(annotation)
    sent = msgspec.json.decode(msgspec.json.encode(returns.structured(value)))
    assert sent == structured
    jsonschema.validate(structured, returns.schema, cls=jsonschema.Draft202012Validator)
    assert returns.conforming(structured) == structured


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Point, Point("1")),  # type: ignore[arg-type]  # the mistake to be found
        (Point, {"y": 1}),
        (Point, None),
        (Point, [1]),
        (Point, object()),
        (int, "5"),
        (int, True),
        (int, 5.5),
        (int, None),
        (list[int], [1, "2"]),
        (Annotated[int, msgspec.Meta(ge=1)], 0),
        (Colour, "green"),
        (Model, {"N": 0, "colour": "red", "twice": 2}),
        (Model, {"n": 1}),
        (Numbers, ["a"]),
        (str | int, 5.5),
    ],
)
def test_results_that_do_not_conform_are_refused(annotation: object, value: object) -> None:
    returns = promise(annotation)
    with pytest.raises(ResultInvalid):
        returns.structured(value)


def test_structured_content_made_by_hand_is_held_to_the_wrapped_schema() -> None:
    returns = promise(list[int])
    assert returns.conforming({"result": [1]}) == {"result": [1]}
    for wrong in ([1], {"result": ["a"]}, {"result": [1], "more": 1}, {}, {1: object()}):
        with pytest.raises(ResultInvalid):
            returns.conforming(wrong)


def test_what_is_no_json_is_refused_with_the_reason() -> None:
    cycle: list[object] = []
    cycle.append(cycle)
    for value in (cycle, object()):
        with pytest.raises(ResultInvalid, match="is no JSON"):
            promise(list[object]).structured([value])


def test_a_written_schema_is_kept_as_it_is() -> None:
    """MCP 2026-07-28 server/tools: any JSON Schema, preserved end to end."""
    schema: dict[str, object] = {"type": "array", "items": {"type": "integer"}, "x-own": 1}
    returns = returns_from_schema(schema)
    assert returns.schema is schema
    assert returns.structured([1]) == [1]
    with pytest.raises(ResultInvalid, match=r"^Invalid result: '\[1\]' is not of type"):
        returns.structured([1, "a"])
    with pytest.raises(ConfigurationError):
        returns_from_schema({"type": "nothing"})


def test_a_type_without_json_is_refused() -> None:
    with pytest.raises(UnsupportedType, match="complex"):
        returns_of(complex)
    with pytest.raises(UnsupportedType, match="complex"):
        returns_of(list[complex])
