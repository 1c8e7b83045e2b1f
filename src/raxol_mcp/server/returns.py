"""What a tool promises to return: its output schema, and the check that it keeps the promise.

Not the building of the result around it. MCP up to 2025-11-25 wants an object at the root of an
output schema, so every other type is wrapped as `{"result": ...}`, in all revisions alike.
"""

from __future__ import annotations

import operator
import types
import typing
from collections.abc import Awaitable, Coroutine
from typing import TYPE_CHECKING, Any, Final, Never, NoReturn, get_args, get_origin

import msgspec

from raxol_mcp.schemas.problems import reworded, sentence
from raxol_mcp.server.binding import convert_strictly
from raxol_mcp.server.content import (
    Audio,
    EmbeddedResource,
    Image,
    ResourceLink,
    ResultInvalid,
    Text,
    ToolResult,
    to_plain,
)
from raxol_mcp.server.hints import MISSING
from raxol_mcp.server.rounds import InputRequired
from raxol_mcp.server.schema import describe, references
from raxol_mcp.wire.jsonrpc import JSONObject, UnencodableResult

if TYPE_CHECKING:
    from raxol_mcp.schemas.json_schema import Validator

__all__ = ["Returns", "returns_from_schema", "returns_of"]

_PREFIX: Final = "#/$defs/"
_CONTENT: Final = frozenset({Text, Image, Audio, EmbeddedResource, ResourceLink})
# Values that say themselves what they are, whatever else the tool promised.
_WHOLE: Final = _CONTENT | {ToolResult, InputRequired}
_ANYTHING: Final = (Any, object)
_NOTHING: Final = (None, MISSING, Never, NoReturn)
_SEQUENCES: Final = frozenset({list, tuple})
_UNIONS: Final = (typing.Union, types.UnionType)


class Returns:
    """An output schema with its check. `schema` goes into the tool's definition."""

    __slots__ = ("_type", "_validator", "_wrapped", "schema")

    def __init__(
        self,
        schema: JSONObject,
        *,
        type_: object = MISSING,
        validator: Validator | None = None,
        wrapped: bool = False,
    ) -> None:
        """Use `returns_of` or `returns_from_schema` instead."""
        self.schema = schema
        self._type = type_
        self._validator = validator
        self._wrapped = wrapped

    def structured(self, value: object) -> object:
        """Return the `structuredContent` for what the tool gave back: plain JSON values.

        Raises `ResultInvalid` when it does not conform to the schema (MCP server/tools: a server
        MUST return structured results that do).
        """
        try:
            plain = to_plain(value, str_keys=True)
        except UnencodableResult as error:
            raise ResultInvalid(f"the result is no JSON: {error}") from error
        return self._judged({"result": plain} if self._wrapped else plain)

    def conforming(self, structured: object) -> object:
        """Return structured content that a tool built itself as plain JSON values.

        It is not wrapped: it must conform to the schema as it stands. Raises `ResultInvalid`.
        """
        try:
            return self._judged(to_plain(structured, str_keys=True))
        except UnencodableResult as error:
            raise ResultInvalid(f"the structured content is no JSON: {error}") from error

    def _judged(self, structured: object) -> object:
        if self._validator is not None:
            if problem := self._validator.problems(structured, noun="result"):
                raise ResultInvalid(problem)
            return structured
        judged = structured
        if self._wrapped:
            if not isinstance(structured, dict) or structured.keys() != {"result"}:
                raise ResultInvalid("structured content must be an object holding `result` alone")
            judged = structured["result"]
        try:
            convert_strictly(judged, self._type)
        except msgspec.ValidationError as error:
            raise ResultInvalid(sentence([reworded(str(error), "")], noun="result")) from None
        return structured


def returns_of(annotation: object) -> Returns | None:
    """Read a return annotation; None when it promises nothing structured.

    Objects (dataclass, TypedDict, Struct, pydantic model, dict) are their own structured
    content; anything else is wrapped. In a union, content items and `ToolResult` are alternatives
    that say themselves what they are. Raises `UnsupportedType` for a type that JSON cannot carry.
    """
    promised = _promised(annotation)
    if promised is MISSING:
        return None
    described = describe([promised], closed=False)
    schema, wrapped = _rooted(described.schemas[0], described.definitions)
    # A model's own serializers decide what it looks like, so only its schema can judge it.
    validator = _compiled(schema) if described.models else None
    return Returns(schema, type_=promised, validator=validator, wrapped=wrapped)


def returns_from_schema(schema: JSONObject) -> Returns:
    """Take an output schema as it was written. Nothing is wrapped.

    Raises ConfigurationError as `compile_schema` does.
    """
    return Returns(schema, validator=_compiled(schema))


def _compiled(schema: JSONObject) -> Validator:
    from raxol_mcp.schemas.json_schema import compile_schema

    return compile_schema(schema)


def _promised(annotation: object) -> object:
    """Return the type that a schema can describe, or MISSING."""
    if any(annotation is special for special in (*_ANYTHING, *_NOTHING)):
        return MISSING
    origin = get_origin(annotation)
    if origin is None:
        return MISSING if annotation in (str, type(None)) or _is_whole(annotation) else annotation
    arguments = get_args(annotation)
    if origin is typing.Annotated:
        inner = _promised(arguments[0])
        return annotation if inner is arguments[0] else inner
    if origin in (Awaitable, Coroutine):
        return _promised(arguments[-1])
    if _is_whole(annotation):
        return MISSING
    if origin in _UNIONS:
        return _promised_union(annotation, arguments)
    return annotation


def _is_whole(annotation: object) -> bool:
    """Say whether this is a type of content, or a list in which there may be content."""
    origin = get_origin(annotation)
    if origin in _SEQUENCES:
        members = [
            inner
            for item in get_args(annotation)
            for inner in (get_args(item) if get_origin(item) in _UNIONS else (item,))
        ]
        return any(member in _CONTENT for member in members)
    return origin is None and annotation in _WHOLE


def _promised_union(annotation: object, arguments: tuple[object, ...]) -> object:
    kept = tuple(item for item in arguments if not _is_whole(item))
    if any(item in _ANYTHING for item in kept) or not set(kept) - {str, type(None)}:
        return MISSING
    # Text and nothing stay beside a structured type: `Point | None` is one or the other.
    union: object = operator.getitem(typing.Union, kept)
    return annotation if len(kept) == len(arguments) else union


def _rooted(schema: JSONObject, definitions: JSONObject) -> tuple[JSONObject, bool]:
    """Give the schema an object at its root: (schema, whether the value is wrapped)."""
    root = schema
    while isinstance(reference := root.get("$ref"), str):
        target = definitions[reference.removeprefix(_PREFIX)]
        assert isinstance(target, dict), "a definition is an object"
        root = target
    wrapped = root.get("type") != "object"
    if wrapped:
        root = {"type": "object", "properties": {"result": schema}, "required": ["result"]}
    used = _used(root, definitions)
    return ({**root, "$defs": used} if used else dict(root)), wrapped


def _used(root: JSONObject, definitions: JSONObject) -> JSONObject:
    names: set[str] = set()
    pending: list[object] = [root]
    for item in pending:  # grows while it is walked
        for place in references(item):
            name = str(place["$ref"]).removeprefix(_PREFIX)
            if name in definitions and name not in names:  # else a default that looks like one
                names.add(name)
                pending.append(definitions[name])
    return {name: value for name, value in definitions.items() if name in names}
