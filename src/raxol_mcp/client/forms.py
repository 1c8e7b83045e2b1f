"""The forms of elicitation: which schemas are one, what is filled in, and whether an answer fits.

A form is a flat object of texts, numbers, yes or no, and choices (MCP 2025-11-25 and 2026-07-28
client/elicitation §Requested Schema). Anything else is no form, and is refused before a person
sees it. A person's answer is checked before it is sent: what does not fit is a mistake of this
side, and the server's check would come too late to correct it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import isfinite
from typing import TYPE_CHECKING, Final, TypeGuard

import msgspec

from raxol_mcp.client.redaction import shown
from raxol_mcp.wire.values import is_number

if TYPE_CHECKING:
    from raxol_mcp.wire.jsonrpc import JSONObject

__all__ = ["NoForm", "answer_problem", "field_problem", "filled", "form_of"]

_MAX_BYTES: Final = 64 * 1024
_MAX_FIELDS: Final = 256

_EMAIL: Final = r"[^@\s]+@[^@\s]+"
_URI: Final = r"[A-Za-z][A-Za-z0-9+.\-]*:[^\s]+"  # RFC 3986 §3: absolute
_DATE: Final = r"\d{4}-\d{2}-\d{2}"  # RFC 3339 §5.6
_DATE_TIME: Final = _DATE + r"[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})"


class NoForm(Exception):
    """A schema that is no form. The message says why, in one sentence for the server."""


def form_of(schema: object) -> JSONObject:
    """Judge the schema of a form and give it back. Raises `NoForm`."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise NoForm('requestedSchema must be an object of type "object"')
    fields = schema.get("properties")
    if not isinstance(fields, dict) or len(fields) > _MAX_FIELDS:
        raise NoForm(f"requestedSchema must have properties, at most {_MAX_FIELDS}")
    if len(msgspec.json.encode(schema)) > _MAX_BYTES:
        raise NoForm(f"requestedSchema must have at most {_MAX_BYTES // 1024} KiB")
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(
        isinstance(name, str) and name in fields for name in required
    ):
        raise NoForm("required must be a list of names of properties")
    for name, field in fields.items():
        _judge_field(name, field)
    return schema


def filled(schema: JSONObject, content: Mapping[str, object]) -> JSONObject:
    """Give an answer to a form with the defaults of the fields that it leaves out.

    MCP 2025-11-25 client/elicitation (SEP-1034). A default that does not fit its own field is
    none.
    """
    complete = dict(content)
    for name, field in _fields(schema).items():
        if name not in complete and "default" in field:
            default = field["default"]
            if field_problem(field, default) is None:
                complete[name] = default
    return complete


def answer_problem(schema: JSONObject, content: Mapping[str, object]) -> str | None:
    """Say in one sentence why an answer does not fit its form; None when it does.

    Names fields and never a value. A field that the form does not have is a mistake as well.
    """
    fields = _fields(schema)
    required = schema.get("required")
    wrong = [
        f"{shown(name)} is required"
        for name in (required if isinstance(required, list) else ())
        if name not in content
    ]
    for name, value in content.items():
        field = fields.get(name)
        problem = "is not in the form" if field is None else field_problem(field, value)
        if problem is not None:
            wrong.append(f"{shown(name)} {problem}")
    return f"the answer does not fit the form: {'; '.join(wrong[:8])}" if wrong else None


def field_problem(field: Mapping[str, object], value: object) -> str | None:
    """Say why a value does not fit one field of a form: "must be a text"; None when it does."""
    kind = field["type"]
    assert isinstance(kind, str), "the form was judged"
    return _CHECKS[kind](field, value)


def _fields(schema: JSONObject) -> dict[str, JSONObject]:
    fields = schema["properties"]
    assert isinstance(fields, dict), "the form was judged"
    return fields


def _judge_field(name: str, field: object) -> None:
    where = f"the property {shown(name)}"
    kind = field.get("type") if isinstance(field, dict) else None
    if not isinstance(field, dict) or not isinstance(kind, str) or kind not in _CHECKS:
        raise NoForm(f"{where} must be a string, a number, an integer, a boolean or a choice")
    for keywords, fits, wanted in _KEYWORDS:
        for keyword in keywords:
            if keyword in field and not fits(field[keyword]):
                raise NoForm(f"{keyword} of {where} must be {wanted}")
    if kind == "array":
        items = field.get("items")
        if not isinstance(items, dict) or _choices(items, where) is None:
            raise NoForm(f"the items of {where} must be choices")
    elif kind == "string":
        _choices(field, where)


def _choices(schema: Mapping[str, object], where: str = "a field") -> list[str] | None:
    """Give the values of a choice; None if the schema is none. Raises `NoForm` for a bad one.

    `enum` with or without `enumNames`, `oneOf` or `anyOf` of `const` and `title`.
    """
    if "enum" in schema:
        values = schema["enum"]
    elif (titled := schema.get("oneOf", schema.get("anyOf"))) is not None:
        members = titled if isinstance(titled, list) else [None]
        values = [member.get("const") if isinstance(member, dict) else None for member in members]
    else:
        return None
    if not isinstance(values, list) or not values:
        raise NoForm(f"the choices of {where} must be a list that is not empty")
    if not all(isinstance(value, str) for value in values):
        raise NoForm(f"the choices of {where} must be texts")
    return values


def _text(field: Mapping[str, object], value: object) -> str | None:
    if not isinstance(value, str):
        return "must be a text"
    choices = _choices(field)
    if choices is not None:
        return None if value in choices else "must be one of its choices"
    least, most = field.get("minLength"), field.get("maxLength")
    if isinstance(least, int) and len(value) < least:
        return f"must have at least {least} characters"
    if isinstance(most, int) and len(value) > most:
        return f"must have at most {most} characters"
    named = field.get("format")
    if isinstance(named, str) and named in _FORMATS and not _FORMATS[named](value):
        return f"must be a {named}"
    pattern = field.get("pattern")
    if isinstance(pattern, str) and not _matches(pattern, value):
        return "must match its pattern"
    return None


def _matches(pattern: str, value: str) -> bool:
    """Say whether a text matches a pattern of the server; what cannot be checked does.

    Never with `re`: the pattern is the server's, and may be made to take for ever.
    """
    from raxol_mcp.errors import ConfigurationError
    from raxol_mcp.schemas.json_schema import compile_schema

    try:
        validator = compile_schema({"type": "string", "pattern": pattern})
    except ConfigurationError:
        return True
    return validator.problems(value) is None


def _number(field: Mapping[str, object], value: object) -> str | None:
    if not _is_finite(value):
        return "must be a number"
    least, most = field.get("minimum"), field.get("maximum")
    if _is_finite(least) and value < least:
        return f"must be at least {least}"
    if _is_finite(most) and value > most:
        return f"must be at most {most}"
    return None


def _integer(field: Mapping[str, object], value: object) -> str | None:
    if not _is_finite(value) or (isinstance(value, float) and not value.is_integer()):
        return "must be a whole number"
    return _number(field, value)


def _boolean(_field: Mapping[str, object], value: object) -> str | None:
    return None if isinstance(value, bool) else "must be true or false"


def _several(field: Mapping[str, object], value: object) -> str | None:
    items = field["items"]
    choices = _choices(items) if isinstance(items, dict) else None
    assert choices is not None, "the form was judged"
    if not isinstance(value, list | tuple) or not all(item in choices for item in value):
        return "must be a list of its choices"
    least, most = field.get("minItems"), field.get("maxItems")
    if isinstance(least, int) and len(value) < least:
        return f"must have at least {least} items"
    if isinstance(most, int) and len(value) > most:
        return f"must have at most {most} items"
    return None


def _is_date(text: str) -> bool:
    return re.fullmatch(_DATE, text, re.ASCII) is not None and _exists(text)


def _is_date_time(text: str) -> bool:
    return re.fullmatch(_DATE_TIME, text, re.ASCII) is not None and _exists(text.upper())


def _exists(text: str) -> bool:
    from datetime import datetime  # few forms ask for a date

    # RFC 3339 §5.7: a leap second is a valid time that Python does not know.
    text = re.sub(r":60(\.|Z|[+-]|$)", r":59\1", text)
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_count(value: object) -> TypeGuard[int]:
    return type(value) is int and value >= 0


def _is_finite(value: object) -> TypeGuard[int | float]:
    return is_number(value) and (isinstance(value, int) or isfinite(value))


_FORMATS: Final[Mapping[str, Callable[[str], bool]]] = {
    "email": lambda text: re.fullmatch(_EMAIL, text) is not None,
    "uri": lambda text: re.fullmatch(_URI, text) is not None,
    "date": _is_date,
    "date-time": _is_date_time,
}
_CHECKS: Final[Mapping[str, Callable[[Mapping[str, object], object], str | None]]] = {
    "string": _text,
    "number": _number,
    "integer": _integer,
    "boolean": _boolean,
    "array": _several,
}
_KEYWORDS: Final[tuple[tuple[tuple[str, ...], Callable[[object], bool], str], ...]] = (
    (("minLength", "maxLength", "minItems", "maxItems"), _is_count, "a whole number from 0 on"),
    (("minimum", "maximum"), _is_finite, "a number"),
    (
        ("title", "description", "format", "pattern"),
        lambda value: isinstance(value, str),
        "a text",
    ),
)
