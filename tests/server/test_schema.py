"""Types as JSON Schema."""

import datetime
import enum
import pathlib
import uuid
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypedDict, TypeVar

import annotated_types
import msgspec
import pydantic
import pydantic.dataclasses
import pytest

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.server import schema as schema_module
from raxol_mcp.server.schema import UnsupportedType, describe, references, simple_schema
from raxol_mcp.wire.jsonrpc import JSONObject

T = TypeVar("T")


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Mixed(enum.Enum):
    A = "a"
    B = 2


@dataclass
class Point:
    x: int
    y: int = 0


@dataclass
class Holder:
    point: Point
    extra: dict[str, object] = field(default_factory=dict)


class Typed(TypedDict):
    n: int


class Struct(msgspec.Struct):
    n: int


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    n: int


class Pair(NamedTuple):
    a: int
    b: str


class Inner(pydantic.BaseModel):
    colour: Colour


class Model(pydantic.BaseModel):
    x: int = pydantic.Field(ge=1)
    inner: Inner | None = None


class Indescribable(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)

    error: Exception


class Node(pydantic.BaseModel):
    children: "list[Node]" = []


@dataclass
class WithModel:
    model: Model


class Box(msgspec.Struct, Generic[T]):
    item: T


@pydantic.dataclasses.dataclass
class Validating:
    x: int


@dataclass
class Hidden:
    n: Annotated[int, annotated_types.Ge(1)]


class HiddenToo(TypedDict):
    items: list[Annotated[int, pydantic.Field(ge=1)]]


@dataclass
class HoldsValidating:
    items: list[Validating]


def one(annotation: object, *, closed: bool = True) -> JSONObject:
    return describe([annotation], closed=closed).schemas[0]


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (type(None), {"type": "null"}),
        (dict, {"type": "object"}),
        (list, {"type": "array"}),
        (Any, {}),
        (object, {}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (
            list[list[str]],
            {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
        ),
        (dict[str, object], {"type": "object", "additionalProperties": {}}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (Literal["b", "a"], {"enum": ["a", "b"]}),
        (Annotated[int, msgspec.Meta(ge=1)], {"type": "integer", "minimum": 1}),
        (Annotated[str, "ignored here"], {"type": "string"}),
        (uuid.UUID, {"type": "string", "format": "uuid"}),
        (datetime.date, {"type": "string", "format": "date"}),
        (bytes, {"type": "string", "contentEncoding": "base64"}),
    ],
)
def test_types_without_definitions(annotation: object, expected: JSONObject) -> None:
    described = describe([annotation], closed=True)
    assert described.schemas == [expected]
    assert described.definitions == {}
    if annotation != Annotated[str, "ignored here"]:
        assert simple_schema(annotation) == expected  # the second time it is remembered


@pytest.mark.parametrize("type_", [Point, Typed, Struct, Strict])
def test_objects_that_are_taken_are_closed(type_: type) -> None:
    """ours: what would be dropped in silence is refused, and the schema says so."""
    described = describe([type_], closed=True)
    assert described.schemas == [{"$ref": f"#/$defs/{type_.__name__}"}]
    definition = described.definitions[type_.__name__]
    assert isinstance(definition, dict)
    assert definition["additionalProperties"] is False
    assert simple_schema(type_) is None


@pytest.mark.parametrize("type_", [Point, Typed, Struct])
def test_objects_that_are_given_are_open(type_: type) -> None:
    definition = describe([type_], closed=False).definitions[type_.__name__]
    assert isinstance(definition, dict)
    assert "additionalProperties" not in definition


def test_a_class_in_a_class_is_a_definition_of_its_own() -> None:
    described = describe([Holder, list[Point], Colour, Pair], closed=True)
    assert set(described.definitions) == {"Holder", "Point", "Colour", "Pair"}
    assert described.schemas[1] == {"type": "array", "items": {"$ref": "#/$defs/Point"}}
    assert described.definitions["Colour"] == {"title": "Colour", "enum": ["blue", "red"]}


def test_two_classes_of_one_name_are_two_definitions() -> None:
    def made(type_: type) -> type:
        return msgspec.defstruct("Point", [("z", type_)], module="elsewhere")

    described = describe([Point, made(int)], closed=True)
    assert len(described.definitions) == 2
    assert described.schemas[0] != described.schemas[1]


def test_generic_structs_are_described() -> None:
    described = describe([Box[int]], closed=True)
    (definition,) = described.definitions.values()
    assert isinstance(definition, dict)
    assert definition["properties"] == {"item": {"type": "integer"}}


def test_a_model_describes_itself() -> None:
    described = describe([Model, Model | None, WithModel], closed=True)
    assert described.models
    assert described.schemas[:2] == [
        {"$ref": "#/$defs/Model"},
        {"anyOf": [{"$ref": "#/$defs/Model"}, {"type": "null"}]},
    ]
    model = described.definitions["Model"]
    assert isinstance(model, dict)
    assert model["properties"]["x"]["minimum"] == 1
    # What a model ignores is its own setting.
    assert "additionalProperties" not in model
    targets = {str(place["$ref"]).removeprefix("#/$defs/") for place in references(model)}
    assert targets <= set(described.definitions)


def test_a_model_that_refers_to_itself_is_described() -> None:
    definitions = describe([Node], closed=True).definitions
    for place in references(definitions):
        assert str(place["$ref"]).removeprefix("#/$defs/") in definitions


def test_models_and_classes_of_one_name_do_not_meet() -> None:
    other = pydantic.create_model("Point", z=(int, ...))
    again = pydantic.create_model("Point", q=(int, ...))
    described = describe([Point, other, again], closed=True)
    assert set(described.definitions) == {"Point", "Point2", "Point3"}
    assert described.schemas == [{"$ref": f"#/$defs/Point{n}"} for n in ("", "2", "3")]


def test_what_a_model_gives_is_not_what_it_takes() -> None:
    class Serialized(pydantic.BaseModel):
        x: int

        @pydantic.computed_field
        def twice(self) -> int:
            return 2 * self.x

    taken = describe([Serialized], closed=True).definitions["Serialized"]
    given = describe([Serialized], closed=False).definitions["Serialized"]
    assert isinstance(taken, dict)
    assert isinstance(given, dict)
    assert set(taken["properties"]) == {"x"}
    assert set(given["properties"]) == {"x", "twice"}


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (pathlib.Path, "pathlib.Path has no form in JSON"),
        (list[pathlib.Path], "pathlib.Path has no form in JSON"),
        (complex, "builtins.complex has no form in JSON"),
        (Mixed, "Enums must contain either all str or all int values"),
        (str | datetime.date, "more than one str-like type"),
        (Point | Struct, "more than one dict-like type"),
        (Model | int, "custom type"),
        (Annotated[str, msgspec.Meta(ge=1)], "`ge`"),
        (Validating, "Validating is a pydantic dataclass"),
        (HoldsValidating, "Validating is a pydantic dataclass"),
        (list[Annotated[int, pydantic.Field(ge=1)]], "FieldInfo of pydantic"),
        (Annotated[int, annotated_types.Ge(1)] | None, "Ge of pydantic"),
        (Hidden, "Ge of pydantic"),
        (Indescribable, "Cannot generate a JsonSchema"),
        (dict[str, HiddenToo], "FieldInfo of pydantic"),
    ],
)
def test_what_json_cannot_carry_is_refused(annotation: object, words: str) -> None:
    with pytest.raises(UnsupportedType, match=words) as caught:
        describe([str, annotation], closed=True)
    assert caught.value.index == 1
    assert "use a type that JSON carries" in str(caught.value)
    assert isinstance(caught.value, ConfigurationError)


def test_a_name_that_is_nowhere_is_named() -> None:
    broken = msgspec.defstruct("Broken", [("x", "Nowhere")])
    with pytest.raises(UnsupportedType, match="'Nowhere' in it cannot be resolved"):
        describe([broken], closed=True)


def test_metadata_that_cannot_be_hashed_is_no_reason_to_refuse() -> None:
    annotation = Annotated[int, {"not": "hashable"}]
    for outer in (annotation, list[annotation]):
        assert simple_schema(outer) is None
        assert describe([outer], closed=True).definitions == {}
        assert simple_schema(outer) is None


def test_metadata_that_somebody_else_reads_is_not_forgotten() -> None:
    annotation = Annotated[str, "a description"]
    assert one(annotation) == {"type": "string"}
    assert simple_schema(annotation) is None


def test_the_memory_of_types_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = dict(schema_module._kept)
    monkeypatch.setattr(schema_module, "_kept", kept)
    monkeypatch.setattr(schema_module, "_MAX_KEPT", len(kept) + 1)
    assert one(Literal["first of all"]) == one(Literal["first of all"])
    assert one(Literal["second of all"]) == {"enum": ["second of all"]}
    assert simple_schema(Literal["first of all"]) is not None
    assert simple_schema(Literal["second of all"]) is None


def test_literals_of_equal_values_stay_apart() -> None:
    assert one(Literal[1]) == {"enum": [1]}
    assert repr(one(Literal[True])) == "{'enum': [True]}"
