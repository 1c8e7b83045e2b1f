"""What this project knows about pydantic: models in signatures, and constraints in `Annotated`.

Nothing here imports pydantic. Whoever uses a model has imported it already, and it costs more
time to load than a whole server; models are told by the methods they have.

A model decides about its own members: whether unknown ones are ignored is its `extra` setting,
and its own schema says so. It always checks in strict mode, because pydantic's default takes
"5" and true for an integer although the schema it shows refuses both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final, Literal, Protocol, TypeGuard, get_args, get_origin

import msgspec

from raxol_mcp.wire.jsonrpc import JSONObject

__all__ = [
    "ModelClass",
    "decode_value",
    "encode_model",
    "field_notes",
    "is_field_default",
    "is_model",
    "is_validating_dataclass",
    "unheard_note",
]

_MAX_ERRORS: Final = 5
_PACKAGES: Final = frozenset({"pydantic", "annotated_types"})
_LIMITS: Final = ("gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length", "pattern")


class ModelClass(Protocol):
    """The part of `type[pydantic.BaseModel]` that is used."""

    __name__: str

    def model_json_schema(self, *, ref_template: str, mode: str) -> JSONObject:
        """Describe the model as JSON Schema."""

    def model_validate_json(self, json_data: bytes, *, strict: bool) -> object:
        """Make an instance; raises ValueError."""


def is_model(type_: object) -> TypeGuard[ModelClass]:
    """Say whether this is a pydantic model class (version 2)."""
    return (
        isinstance(type_, type)
        and hasattr(type_, "model_json_schema")
        and hasattr(type_, "model_validate_json")
    )


def is_validating_dataclass(type_: type) -> bool:
    """Say whether this is a pydantic dataclass, whose checks would be left out in silence."""
    from dataclasses import is_dataclass  # loaded already by whoever has one

    return hasattr(type_, "__pydantic_validator__") and is_dataclass(type_)


def decode_value(type_: type, value: object) -> object:
    """Make what msgspec itself does not know: the `dec_hook` of every strict conversion.

    `value` is plain JSON. Raises ValueError with the model's complaints in one line, without the
    values they are about.
    """
    if type_ is object:
        return value
    if not is_model(type_):
        raise TypeError(f"{type_.__name__} cannot be made from JSON")
    # Through JSON, because strict mode takes "2026-01-01" for a date and "a" for an
    # enumeration's value there only.
    text = msgspec.json.encode(value)
    try:
        return type_.model_validate_json(text, strict=True)
    except ValueError as error:
        raise ValueError(_complaints(error)) from None


def encode_model(value: object) -> object:
    """Turn a model into plain JSON: the `enc_hook` of every result."""
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise NotImplementedError(f"a value of type {type(value).__name__} is no JSON")
    plain: object = dump(mode="json", by_alias=True)
    return plain


def field_notes(note: object) -> Iterator[str | msgspec.Meta]:
    """Translate one piece of `Annotated` metadata of pydantic or annotated_types.

    Yields a description as a string and constraints as `msgspec.Meta`; nothing for metadata of
    anybody else. Raises TypeError for what would change the argument and cannot be translated.
    """
    if type(note).__module__.partition(".")[0] not in _PACKAGES:
        return
    if getattr(note, "alias", None) is not None:
        raise TypeError("an alias is not supported: name the parameter as the caller shall see it")
    if is_field_default(note) and not getattr(note, "is_required", bool)():
        raise TypeError("a default belongs behind the parameter: `= value`")
    description = getattr(note, "description", None)
    if isinstance(description, str):
        yield description
    limits = {name: limit for name in _LIMITS if (limit := getattr(note, name, None)) is not None}
    nested = getattr(note, "metadata", None)
    if limits:
        yield msgspec.Meta(**limits)
    elif isinstance(nested, list):
        for item in nested:
            yield from field_notes(item)
    else:
        raise TypeError(f"{type(note).__name__} is not supported: use msgspec.Meta")


def unheard_note(annotation: object) -> object:
    """Find metadata of pydantic or annotated_types anywhere in an annotation, or None.

    Below the parameter itself nothing translates it, and a constraint that its author believes
    in must not be left out in silence.
    """
    notes = getattr(annotation, "__metadata__", ()) if get_origin(annotation) is Annotated else ()
    for note in notes:
        if type(note).__module__.partition(".")[0] in _PACKAGES:
            found: object = note
            return found
    if get_origin(annotation) is Literal:
        return None
    return next(filter(None, map(unheard_note, get_args(annotation))), None)


def is_field_default(value: object) -> bool:
    """Say whether this is what `pydantic.Field(...)` returns."""
    return type(value).__module__ == "pydantic.fields"


def _complaints(error: ValueError) -> str:
    listed = getattr(error, "errors", None)
    if listed is None:
        return str(error)
    found = listed(include_url=False, include_context=False, include_input=False)
    texts = [
        ": ".join(filter(None, (".".join(map(str, item["loc"])), item["msg"])))
        for item in found[:_MAX_ERRORS]
    ]
    if len(found) > _MAX_ERRORS:
        texts.append(f"and {len(found) - _MAX_ERRORS} more")
    return ", ".join(texts)
