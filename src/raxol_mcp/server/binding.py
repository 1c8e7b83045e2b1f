"""Strict conversion of the arguments of one call to the types of the function's parameters.

Not the reading of the signature, and not the words for what is wrong. Strict: no string becomes
a number, no boolean an integer, no unknown name is dropped. When all fits, it is one conversion
in C; everything else is on the path of a failure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import NODEFAULT, ValidationError, convert
from msgspec.structs import asdict

from raxol_mcp.server.arguments import ArgumentsInvalid
from raxol_mcp.server.pydantic_types import decode_value
from raxol_mcp.wire.jsonrpc import JSONObject

if TYPE_CHECKING:
    from raxol_mcp.schemas.problems import Problem

__all__ = ["Field", "Form", "convert_strictly", "overlooked_in"]

# Others are made by a factory that gives the same object each time, as Python itself does:
# msgspec would copy an empty list and refuse a filled one.
_IMMUTABLE: Final = (str, int, float, bool, bytes, type(None), tuple)


class Field(msgspec.Struct, frozen=True, eq=False):
    """A parameter that the caller fills in. `default` is `msgspec.NODEFAULT` when required.

    `schema` is its JSON Schema without description and default.
    """

    name: str
    type: object
    schema: JSONObject
    default: object = NODEFAULT
    description: str | None = None


class Form:
    """The fields of one function. Costs nothing before the first call."""

    __slots__ = ("_shape", "_struct", "_walked", "fields")

    def __init__(self, fields: tuple[Field, ...], *, closed: bool) -> None:
        """Keep the fields; `closed` says that a type among them drops members in silence."""
        self.fields = fields
        self._walked = closed
        self._struct: type[msgspec.Struct] | None = None
        self._shape: msgspec.inspect.Type | None = None

    def bind(self, arguments: Mapping[str, object]) -> dict[str, object]:
        """Return every field's value by name, defaults filled in.

        Raises `ArgumentsInvalid` naming every argument that does not fit, at most 20.
        """
        struct = self._struct or self._made()
        try:
            bound = asdict(
                convert(arguments, struct, strict=True, str_keys=True, dec_hook=decode_value)
            )
        except Exception:  # of the conversion, or of the user's own `__post_init__`
            bound = self._settled(arguments, struct)
        if self._walked:
            shape = self._shape = self._shape or msgspec.inspect.type_info(struct)
            if overlooked := overlooked_in(dict(arguments), shape):
                raise _invalid(overlooked)
        return bound

    def _made(self) -> type[msgspec.Struct]:
        self._struct = msgspec.defstruct(
            "Arguments",
            [(field.name, field.type, _default(field.default)) for field in self.fields],
            module=__name__,
            kw_only=True,
            forbid_unknown_fields=True,
        )
        schemas = msgspec.json.encode([field.schema for field in self.fields])
        self._walked = self._walked or b'"pattern"' in schemas
        return self._struct

    def _settled(
        self, arguments: Mapping[str, object], struct: type[msgspec.Struct]
    ) -> dict[str, object]:
        if not isinstance(arguments, Mapping):
            raise _invalid(["they must be an object"])
        try:
            bound = convert_strictly(dict(arguments), struct)
        except ValidationError as error:
            from raxol_mcp.schemas.problems import reworded

            raise _invalid(self._problems(arguments) or [reworded(str(error), "")]) from None
        assert isinstance(bound, struct), "the conversion makes what it is asked for"
        return asdict(bound)

    def _problems(self, arguments: Mapping[str, object]) -> list[Problem]:
        """Judge every argument on its own, since the conversion stops at the first."""
        from raxol_mcp.schemas.problems import reworded

        known = {field.name for field in self.fields}
        problems: list[Problem] = []
        unknown = [((str(name),), "is unknown") for name in arguments if name not in known]
        if unknown:
            takes = ", ".join(map(repr, (field.name for field in self.fields)))
            note = f"(the arguments are {takes})" if known else "(there are none)"
            unknown[-1] = (unknown[-1][0], f"is unknown {note}")
        for field in self.fields:
            if field.name not in arguments:
                if field.default is NODEFAULT:
                    problems.append(((field.name,), "is required"))
                continue
            value = arguments[field.name]
            try:
                convert_strictly(value, field.type)
            except ValidationError as error:
                allowed = field.schema.get("enum")
                problems.append(reworded(str(error), field.name, allowed=allowed))
            else:
                problems += overlooked_in(value, msgspec.inspect.type_info(field.type), field.name)
        return [*problems, *unknown]


def _invalid(problems: Sequence[Problem]) -> ArgumentsInvalid:
    # Imported here and above: a server starts without the words for a failure.
    from raxol_mcp.schemas.problems import sentence

    return ArgumentsInvalid(sentence(problems))


def convert_strictly(value: object, type_: object) -> object:
    """Convert a JSON value; 5.0 passes for an integer. Raises `msgspec.ValidationError`."""
    try:
        return _converted(value, type_)
    except ValidationError:
        from raxol_mcp.server.shapes import whole_floats

        return _converted(whole_floats(value, msgspec.inspect.type_info(type_)), type_)


def overlooked_in(value: object, shape: msgspec.inspect.Type, *path: str) -> list[Problem]:
    """Return a problem for each thing in a value, one that fits, which the conversion overlooks.

    `path` is where the value stands in the arguments.
    """
    from raxol_mcp.server.shapes import overlooked_newlines, unknown_members

    return [
        *((place, "is unknown") for place in unknown_members(value, shape, path)),
        *(
            (place, "must not end with a newline")
            for place in overlooked_newlines(value, shape, path)
        ),
    ]


def _converted(value: object, type_: object) -> object:
    try:
        made: object = convert(value, type_, strict=True, str_keys=True, dec_hook=decode_value)
    except ValidationError:
        raise
    except Exception as error:
        # A class of the user that fails in an odd way on odd values refuses them all the same.
        raise ValidationError(type(error).__name__) from error
    return made


def _default(value: object) -> object:
    if value is NODEFAULT or isinstance(value, _IMMUTABLE):
        return value
    return msgspec.field(default_factory=lambda: value)
