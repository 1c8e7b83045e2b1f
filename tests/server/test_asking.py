"""Parameters that a human fills in."""

import datetime
import enum
from dataclasses import dataclass
from typing import Annotated, Literal, NotRequired, TypedDict

import msgspec
import pydantic
import pytest

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.server.arguments import ArgumentsInvalid
from raxol_mcp.server.asking import Ask, AskParameter
from raxol_mcp.server.schema import UnsupportedType


class Colour(enum.Enum):
    RED = "Red"
    BLUE = "Blue"


class Level(enum.IntEnum):
    LOW = 1


@dataclass
class Confirm:
    confirm: bool


class Age(msgspec.Struct):
    age: Annotated[int, msgspec.Meta(ge=18, le=99, description="in years")]
    colour: Colour = Colour.RED


class Everything(TypedDict):
    text: Annotated[str, msgspec.Meta(min_length=1, max_length=9, title="Text")]
    number: float
    choice: Literal["a", "b"]
    day: datetime.date
    note: NotRequired[str | None]


class Optionals(msgspec.Struct):
    loud: bool = False
    name: Annotated[str | None, msgspec.Meta(description="whose")] = None


class Model(pydantic.BaseModel):
    name: str
    colour: Colour = Colour.BLUE
    one: Literal["only"] = "only"
    age: int | None = None


@dataclass
class Nested:
    inner: Confirm


@dataclass
class Listed:
    items: list[str]


@dataclass
class Leveled:
    level: Level


@dataclass
class Encoded:
    raw: bytes


@dataclass
class Either:
    value: int | str


@dataclass
class Odd:
    value: complex


def parameter(
    answer: object = Confirm, template: str = "Sure?", known: tuple[str, ...] = ("path", "mode")
) -> AskParameter:
    return AskParameter("answer", Ask(template), answer, known=known, label="delete")


# -- the form ---------------------------------------------------------------------------------


def test_a_form_is_a_flat_object_of_primitives() -> None:
    """MCP 2025-06-18 client/elicitation §Requested Schema."""
    assert parameter(Confirm).requested_schema == {
        "type": "object",
        "properties": {"confirm": {"type": "boolean"}},
        "required": ["confirm"],
    }
    assert parameter(Age).requested_schema == {
        "type": "object",
        "properties": {
            "age": {"type": "integer", "minimum": 18, "maximum": 99, "description": "in years"},
            "colour": {
                "type": "string",
                "title": "Colour",
                "enum": ["Blue", "Red"],
                "default": "Red",
            },
        },
        "required": ["age"],
    }


def test_every_primitive_may_be_asked_for() -> None:
    schema = parameter(Everything).requested_schema
    assert schema["required"] == ["choice", "day", "number", "text"]
    assert schema["properties"] == {
        "text": {"type": "string", "minLength": 1, "maxLength": 9, "title": "Text"},
        "number": {"type": "number"},
        "choice": {"type": "string", "enum": ["a", "b"]},
        "day": {"type": "string", "format": "date"},
        "note": {"type": "string"},
    }


def test_a_form_may_be_left_empty() -> None:
    schema = parameter(Optionals).requested_schema
    assert "required" not in schema
    assert schema["properties"] == {
        "loud": {"type": "boolean", "default": False},
        "name": {"type": "string", "description": "whose"},
    }
    assert parameter(Optionals).convert({}) == Optionals()


def test_a_model_may_be_the_form() -> None:
    schema = parameter(Model).requested_schema
    properties = schema["properties"]
    assert isinstance(properties, dict)
    assert properties["age"] == {"type": "integer", "title": "Age"}
    assert properties["colour"]["enum"] == ["Red", "Blue"]
    assert properties["one"]["enum"] == ["only"]
    assert schema["required"] == ["name"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (bool, "the answer must be a flat object"),
        (list[Confirm], "the answer must be a flat object"),
        (dict[str, bool], "the answer must be a flat object"),
        (Confirm | None, "the answer must be a flat object"),
        (Nested, "field 'inner' cannot be asked for"),
        (Listed, "field 'items' cannot be asked for"),
        (Leveled, "field 'level' cannot be asked for"),
        (Encoded, "field 'raw' cannot be asked for"),
        (Either, "field 'value' cannot be asked for"),
    ],
)
def test_what_is_no_flat_object_is_refused(answer: object, words: str) -> None:
    with pytest.raises(ConfigurationError, match=f"the ask for 'answer' of delete.*{words}"):
        parameter(answer)


def test_a_type_without_json_is_refused_as_everywhere() -> None:
    with pytest.raises(UnsupportedType):
        parameter(Odd)


# -- the question -----------------------------------------------------------------------------


def test_arguments_stand_in_the_question() -> None:
    asked = parameter(template="{{Delete}} {path}, {mode}?")
    assert asked.message({"path": "/tmp/a b", "mode": ["x", 1]}) == '{Delete} /tmp/a b, ["x",1]?'
    assert parameter(template="").message({}) == ""


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("Delete {file}?", r"names 'file'; a template may hold {path}, {mode}"),
        ("Delete {}?", "names ''"),
        ("Delete {path.__class__}?", "names 'path.__class__'"),
        ("Delete {path[0]}?", r"names 'path\[0\]'"),
        ("Delete {path!r}?", "names 'path'"),
        ("Delete {path:>99999999}?", "names 'path'"),
        ("Delete {path?", r"write \{\{ for a brace"),
        ("Delete }?", r"write \{\{ for a brace"),
    ],
)
def test_a_template_names_arguments_and_nothing_else(template: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        parameter(template=template)


def test_a_template_without_arguments_to_name_says_so() -> None:
    with pytest.raises(ConfigurationError, match="no names: there are no arguments"):
        parameter(template="{path}", known=())


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a\n\nThis is safe. Accept.", r"'a\n\nThis is safe. Accept.'"),
        ("\u202etxt.exe", r"'\u202etxt.exe'"),
        ("größe", "größe"),
        (None, "null"),
        (True, "true"),
        (Confirm(True), '{"confirm":true}'),
        (1j, "(complex)"),
        ("x" * 1_000, "x" * 1_000),
        ("x" * 5_000, "x" * 1_000 + "… (4000 more characters)"),
    ],
)
def test_an_argument_cannot_pass_for_the_question(value: object, shown: str) -> None:
    """ours: arguments come from a model, and the human decides by what is shown."""
    assert parameter(template="<{path}>").message({"path": value}) == f"<{shown}>"


# -- the answer -------------------------------------------------------------------------------


def test_an_answer_becomes_its_type() -> None:
    assert parameter(Confirm).convert({"confirm": True}) == Confirm(True)
    assert parameter(Age).convert({"age": 20, "colour": "Red"}) == Age(20, Colour.RED)
    assert parameter(Age).convert({"age": 20.0}) == Age(20, Colour.RED)
    assert parameter(Model).convert({"name": "a"}) == Model(name="a")
    full = {"text": "a", "number": 1, "choice": "b", "day": "2026-01-31"}
    assert parameter(Everything).convert(full) == {**full, "day": datetime.date(2026, 1, 31)}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"age": "20"}, "'age' must be integer, not string"),
        ({"age": 17}, "'age' must be integer >= 18"),
        ({"age": 20.5}, "'age' must be integer, not number"),
        ({"age": True}, "'age' must be integer, not boolean"),
        ({"age": None}, "'age' must be integer, not null"),
        ({}, "'age' is required"),
        ({"age": 20, "colour": "x"}, "'colour' is not one of the allowed values"),
        ({"age": 20, "admin": True}, "'admin' is unknown"),
        (None, "it must be an object"),
        ([], "it must be an object"),
        ("yes", "it must be an object"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused(content: object, problem: str) -> None:
    """MCP 2026-07-28 client/elicitation §Security: servers SHOULD validate received data."""
    with pytest.raises(ArgumentsInvalid) as caught:
        parameter(Age).convert(content)
    assert str(caught.value) == f"Invalid answer: {problem}."
