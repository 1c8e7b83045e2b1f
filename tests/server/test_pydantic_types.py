"""Models and metadata of pydantic, told by what they have."""

import datetime
import enum
from typing import Annotated, Any, get_args

import annotated_types
import msgspec
import pydantic
import pydantic.dataclasses
import pytest
from pydantic import BaseModel, Field

from raxol_mcp.server.pydantic_types import (
    decode_value,
    encode_model,
    field_notes,
    is_field_default,
    is_model,
    is_validating_dataclass,
)


class Colour(enum.Enum):
    RED = "red"


class Model(BaseModel):
    n: int
    colour: Colour = Colour.RED
    day: datetime.date | None = None


class Aliased(BaseModel):
    snake_case: int = Field(alias="camelCase")


class Odd:
    model_json_schema = None


@pydantic.dataclasses.dataclass
class Validating:
    x: int


def note_of(annotation: Any) -> list[object]:
    return list(field_notes(get_args(annotation)[1]))


def test_models_are_told_from_everything_else() -> None:
    judged = [Model, Model(n=1), Odd, int, list[int]]
    assert [is_model(item) for item in judged] == [True, False, False, False, False]
    assert is_validating_dataclass(Validating)
    assert not is_validating_dataclass(Model)


def test_a_model_is_made_from_json_in_strict_mode() -> None:
    """ours: pydantic's default takes "5" and true for the integer its own schema asks for."""
    made = decode_value(Model, {"n": 5, "colour": "red", "day": "2026-01-31"})
    assert made == Model(n=5, colour=Colour.RED, day=datetime.date(2026, 1, 31))


@pytest.mark.parametrize("value", ["5", True, 5.5, None, [5]])
def test_a_model_does_not_coerce(value: object) -> None:
    with pytest.raises(ValueError, match=r"^n: Input should be a valid integer$"):
        decode_value(Model, {"n": value})


def test_complaints_of_a_model_are_one_line_without_values() -> None:
    with pytest.raises(ValueError, match="valid integer") as caught:
        decode_value(Model, {"n": "secret", "colour": "secret", "day": 1})
    text = str(caught.value)
    assert "secret" not in text
    assert "\n" not in text
    assert text.count(":") >= 3


def test_many_complaints_are_counted() -> None:
    wide = pydantic.create_model("Wide", **{f"f{n}": (int, ...) for n in range(9)})  # type: ignore[call-overload]  # fields by keyword
    with pytest.raises(ValueError, match=r"f4: Field required, and 4 more$"):
        decode_value(wide, {})


def test_an_error_that_is_no_list_is_told_as_it_is() -> None:
    class Odder:
        @classmethod
        def model_json_schema(cls) -> None: ...

        @classmethod
        def model_validate_json(cls, data: bytes, *, strict: bool) -> None:
            raise ValueError("plain")

    with pytest.raises(ValueError, match=r"^plain$"):
        decode_value(Odder, {})


def test_any_object_is_itself_and_others_are_not_made() -> None:
    value = {"a": 1}
    assert decode_value(object, value) is value
    with pytest.raises(TypeError, match="complex cannot be made from JSON"):
        decode_value(complex, value)


def test_a_model_is_written_as_its_schema_names_it() -> None:
    assert encode_model(Aliased(camelCase=1)) == {"camelCase": 1}
    assert encode_model(Model(n=1)) == {"n": 1, "colour": "red", "day": None}
    with pytest.raises(NotImplementedError, match="type complex"):
        encode_model(1j)


def test_constraints_are_translated() -> None:
    described = note_of(Annotated[int, Field(ge=1, lt=9, description="how many")])
    assert described == ["how many", msgspec.Meta(ge=1), msgspec.Meta(lt=9)]
    assert note_of(Annotated[str, Field(pattern="^a", max_length=3)]) == [
        msgspec.Meta(max_length=3),
        msgspec.Meta(pattern="^a"),
    ]
    assert note_of(Annotated[int, annotated_types.Interval(ge=1, le=2)]) == [
        msgspec.Meta(ge=1, le=2)
    ]
    assert note_of(Annotated[str, Field(description="only that")]) == ["only that"]


def test_metadata_of_others_means_nothing() -> None:
    """PEP 593: a tool that does not know a piece of metadata ignores it."""
    assert note_of(Annotated[int, object()]) == []
    assert note_of(Annotated[int, "text"]) == []


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (Annotated[int, Field(alias="n")], "alias"),
        (Annotated[int, Field(default=1)], "behind the parameter"),
        (Annotated[int, annotated_types.Predicate(bool)], "Predicate is not supported"),
        (Annotated[int, Field(strict=False)], "Strict is not supported"),
    ],
)
def test_what_cannot_be_translated_is_refused(annotation: object, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        note_of(annotation)


def test_field_as_a_default_is_recognised() -> None:
    assert is_field_default(Field(ge=1))
    assert not is_field_default(1)
