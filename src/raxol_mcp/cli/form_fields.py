"""The fields of a form that a server asks a person to fill in, and what a typed text means there.

Reads what `raxol_mcp.client.forms` has judged to be a form, and leaves it to that to say whether a
value fits. Asks nobody; `raxol_mcp.cli.questions` does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import Final

from raxol_mcp.client.forms import field_problem
from raxol_mcp.wire.texts import printable
from raxol_mcp.wire.values import Value, is_number

__all__ = ["MISSING", "Field", "Kind", "Misfit", "Missing", "UnreadableForm", "fields_of", "parsed"]

# A form that is longer than this is not read by a person, so it is not shown to one.
_MAX_FIELDS: Final = 32
_MAX_CHOICES: Final = 64
_MAX_LABEL: Final = 400

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER: Final = re.compile(
    r"[+-]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,3})?"
)
_YES: Final = frozenset({"y", "yes", "true"})
_NO: Final = frozenset({"n", "no", "false"})


class UnreadableForm(Exception):
    """A form that cannot be put to a person; the message says why."""


class Misfit(Exception):
    """A text does not fit a field; the message says what does."""


class Missing(Enum):
    """The type of `MISSING`."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING
"""No value: a field without a default."""


class Kind(Enum):
    """What a field holds."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "yes or no"
    CHOICE = "one of these"
    CHOICES = "any of these"


class Field(Value, frozen=True, kw_only=True):
    """One field. All but `name` and the values is printable text.

    `choices` are pairs of a value and how it is shown; `schema` is the server's own.
    """

    name: str
    label: str
    kind: Kind
    required: bool
    description: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    default: object = MISSING
    schema: Mapping[str, object] = {}

    @property
    def numbered(self) -> bool:
        """Whether a choice may be given by its number: not where that could be a choice itself."""
        return not any(text.strip().isdecimal() for choice in self.choices for text in choice)

    @property
    def hint(self) -> str:
        """Say in a few words what the field takes."""
        low, high = _bounds(self)
        unit = {Kind.TEXT: " characters", Kind.CHOICES: " of them"}.get(self.kind, "")
        words = [self.kind.value]
        if low is not None and high is not None:
            words.append(f"{low:g} to {high:g}{unit}")
        elif low is not None and (self.kind is not Kind.TEXT or low > 1):
            words.append(f"at least {low:g}{unit}")
        elif high is not None:
            words.append(f"at most {high:g}{unit}")
        if self.kind is Kind.TEXT:
            words += [
                printable(said) for said in (self.schema.get("format"),) if isinstance(said, str)
            ]
        if not self.required:
            words.append("may be left empty")
        return ", ".join(words)


def fields_of(schema: Mapping[str, object]) -> tuple[Field, ...]:
    """Read the schema of a form. Raises `UnreadableForm` for one that nobody would read."""
    properties = schema.get("properties", {})
    required = schema.get("required", [])
    assert isinstance(properties, Mapping), "the form was judged"
    assert isinstance(required, list), "the form was judged"
    if len(properties) > _MAX_FIELDS:
        raise UnreadableForm(f"its form has more than {_MAX_FIELDS} fields")
    return tuple(
        _field(name, member, required=name in required) for name, member in properties.items()
    )


def parsed(field: Field, text: str) -> object:
    """Give the value that a typed text means for a field. Raises `Misfit`."""
    value = _value(field, text)
    _check(field, value)
    return value


def _field(name: str, schema: Mapping[str, object], *, required: bool) -> Field:
    kind, choices = _kind(schema)
    title, description = schema.get("title"), schema.get("description")
    field = Field(
        name=name,
        label=_label(title if isinstance(title, str) and title.strip() else name),
        kind=kind,
        required=required,
        description=_label(description) if isinstance(description, str) else "",
        choices=choices,
        schema=schema,
    )
    return _with_default(field)


def _with_default(field: Field) -> Field:
    """Keep the default of the server where it is an answer that fits."""
    default = field.schema.get("default", MISSING)
    if default is MISSING:
        return field
    try:
        _check(field, default)
    except Misfit:
        return field
    if isinstance(default, str):
        _label(default)
    kept = {name: getattr(field, name) for name in field.__struct_fields__}
    return Field(**{**kept, "default": default})


def _kind(schema: Mapping[str, object]) -> tuple[Kind, tuple[tuple[str, str], ...]]:
    items = schema.get("items")
    match schema.get("type"):
        case "array":
            return Kind.CHOICES, _choices(items if isinstance(items, Mapping) else {})
        case "string":
            choices = _choices(schema)
            return (Kind.CHOICE if choices else Kind.TEXT), choices
        case "integer":
            return Kind.INTEGER, ()
        case "number":
            return Kind.NUMBER, ()
        case _:
            return Kind.BOOLEAN, ()


def _choices(schema: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Find what may be chosen: titled (`oneOf`, `anyOf`), or plain with or without `enumNames`."""
    values, titles = schema.get("enum"), schema.get("enumNames")
    if not isinstance(values, list):
        found = schema.get("oneOf", schema.get("anyOf"))
        members = found if isinstance(found, list) else []
        values = [member["const"] for member in members]
        titles = [member.get("title") for member in members]
    if len(values) > _MAX_CHOICES:
        raise UnreadableForm(f"its form has more than {_MAX_CHOICES} choices for one field")
    if not isinstance(titles, list) or len(titles) != len(values):
        titles = values
    return tuple(
        (value, _choice_label(value, title)) for value, title in zip(values, titles, strict=True)
    )


def _choice_label(value: str, title: object) -> str:
    """Show what will be sent, not only what a server calls it."""
    if not isinstance(title, str) or title == value:
        return _label(value)
    return f"{_label(title)} ({_label(value)})"


def _label(text: str) -> str:
    if len(text) > _MAX_LABEL:
        raise UnreadableForm(f"its form has a text of more than {_MAX_LABEL} characters")
    return printable(text)


def _value(field: Field, text: str) -> object:
    stripped = text.strip()
    match field.kind:
        case Kind.TEXT:
            return text
        case Kind.INTEGER | Kind.NUMBER:
            return _typed_number(stripped, whole=field.kind is Kind.INTEGER)
        case Kind.BOOLEAN:
            if stripped.lower() in _YES | _NO:
                return stripped.lower() in _YES
            raise Misfit("type yes or no")
        case Kind.CHOICE:
            return _choice(field, stripped)
        case Kind.CHOICES:
            parts = [part.strip() for part in text.split(",") if part.strip()]
            return list(dict.fromkeys(_choice(field, part) for part in parts))


def _typed_number(text: str, *, whole: bool) -> int | float:
    if _INTEGER.fullmatch(text):
        return int(text)
    if whole:
        raise Misfit("type a whole number")
    if not _NUMBER.fullmatch(text):
        raise Misfit("type a number, such as 2.5")
    if (number := float(text)) in (float("inf"), float("-inf")):
        raise Misfit("type a number that is nearer to 0")
    return number


def _choice(field: Field, text: str) -> str:
    for value, label in field.choices:
        if text in (value, label):
            return value
    if field.numbered and text.isascii() and text.isdecimal() and len(text) < 4:
        index = int(text) - 1
        if 0 <= index < len(field.choices):
            return field.choices[index][0]
    raise Misfit("choose from the list" + (", by number or value" if field.numbered else ""))


def _bounds(field: Field) -> tuple[float | None, float | None]:
    low, high = {
        Kind.TEXT: ("minLength", "maxLength"),
        Kind.CHOICES: ("minItems", "maxItems"),
    }.get(field.kind, ("minimum", "maximum"))
    return _number(field.schema.get(low)), _number(field.schema.get(high))


def _number(value: object) -> float | None:
    return value if is_number(value) else None


def _check(field: Field, value: object) -> None:
    problem = field_problem(field.schema, value)
    if problem is not None:
        raise Misfit(problem)
