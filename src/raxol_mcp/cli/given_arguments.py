"""The arguments of a tool or a prompt as a person writes them: `key=value`, `key:=JSON`, `--args`.

Gives a value the type that the tool's schema asks for, and judges nothing else: whether an
argument exists, is missing or fits is for the server to say.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import click

from raxol_mcp.wire.jsonrpc import MAX_DEPTH
from raxol_mcp.wire.strict import Malformed, parse
from raxol_mcp.wire.texts import printable

__all__ = ["MAX_BYTES", "json_arguments", "pairs_of", "text_arguments", "typed_arguments"]

# What a server of ours takes as one message; there is no point in reading more.
MAX_BYTES: Final = 4 * 1024 * 1024
_MAX_DEPTH: Final = 8
_TYPES: Final = ("string", "integer", "number", "boolean", "array", "object", "null")


class _Json(str):
    """The JSON of `key:=JSON`, whose type is its own."""

    __slots__ = ()


def pairs_of(texts: Sequence[str]) -> dict[str, str]:
    """Split `key=value` and `key:=JSON`. Raises click.UsageError."""
    pairs: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        is_json = key.endswith(":")
        key = key.removesuffix(":")
        if not text.isprintable() and any("\ud800" <= character <= "\udfff" for character in text):
            raise click.UsageError(f"an argument is not UTF-8 text: {printable(text)!r}")
        if not equals or not key:
            raise click.UsageError(f"write an argument as key=value, not {printable(text)!r}")
        if key in pairs:
            raise click.UsageError(f"{printable(key)!r} is given twice: give it once")
        pairs[key] = _Json(value) if is_json else value
    return pairs


def json_arguments(source: str) -> dict[str, object]:
    """Read `--args`: a JSON object, `@` and the name of a file, or `-` for stdin.

    Raises click.UsageError.
    """
    place, text = "--args", source
    if source == "-":
        place = "stdin"
        if sys.stdin is None:
            raise click.UsageError("stdin is closed, and --args - reads it")
        text = _decoded(sys.stdin.buffer.read(MAX_BYTES + 1), place)
    elif source.startswith("@"):
        place = printable(source[1:])
        try:
            with open(source[1:], "rb") as file:
                text = _decoded(file.read(MAX_BYTES + 1), place)
        except OSError as error:
            raise click.UsageError(f"{place} cannot be read: {error.strerror}") from None
    value = _parsed(text, place)
    if not isinstance(value, dict):
        raise click.UsageError(f"{place} must hold a JSON object, such as {{}}")
    return value


def typed_arguments(
    pairs: Mapping[str, str], schema: Mapping[str, object] | None
) -> dict[str, object]:
    """Give each value the type its schema asks for. Raises click.UsageError.

    A string stays as it is; what is to be anything else is read as JSON. Where a schema says
    nothing, or there is none, a value is a string.
    """
    properties = _member(schema, "properties")
    return {
        key: _parsed(text, f"{printable(key)}:=")
        if isinstance(text, _Json)
        else _typed(key, text, _types(properties.get(key), schema or {}))
        for key, text in pairs.items()
    }


def text_arguments(pairs: Mapping[str, str]) -> dict[str, str]:
    """Give the arguments of a prompt, which are strings. Raises click.UsageError."""
    for key, text in pairs.items():
        if isinstance(text, _Json):
            raise click.UsageError(
                f"the arguments of a prompt are texts: write {printable(key)}=..."
            )
    return dict(pairs)


def _typed(key: str, text: str, types: frozenset[str]) -> object:
    if not types or "string" in types:
        return text
    wanted = " or ".join(name for name in _TYPES if name in types)
    try:
        value = _loaded(text)
    except Malformed:
        fits = False
    else:
        fits = bool(types & set(_types_of(value)))
    if not fits:
        article = "an" if wanted[0] in "aeiou" else "a"
        raise click.UsageError(
            f"{printable(key)} must be {article} {wanted} written as JSON, not {printable(text)!r}"
        )
    return value


def _types_of(value: object) -> Iterator[str]:
    """Name the JSON types of a value; an integer is a number too."""
    match value:
        case None:
            yield "null"
        case bool():
            yield "boolean"
        case str():
            yield "string"
        case list():
            yield "array"
        case dict():
            yield "object"
        case int() | float():
            yield "number"
            if isinstance(value, int) or value.is_integer():
                yield "integer"
        case _:
            raise AssertionError("JSON has no other values")


def _types(schema: object, root: Mapping[str, object], depth: int = 0) -> frozenset[str]:
    """Find the types that a schema allows; none when it does not say."""
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
        return frozenset()
    named = schema.get("type")
    if isinstance(named, str):
        return frozenset({named})
    if isinstance(named, list):
        return frozenset(name for name in named if isinstance(name, str))
    values = schema["enum"] if isinstance(schema.get("enum"), list) else []
    if "const" in schema:
        values = [schema["const"]]
    found = {name for value in values for name in _types_of(value)}
    for keyword in ("anyOf", "oneOf"):
        members = schema.get(keyword)
        for member in members if isinstance(members, list) else []:
            types = _types(member, root, depth + 1)
            if not types:
                return frozenset()  # one alternative takes anything
            found |= types
    if isinstance(reference := schema.get("$ref"), str):
        found |= _types(_referenced(reference, root), root, depth + 1)
    return frozenset(found)


def _referenced(reference: str, root: Mapping[str, object]) -> object:
    """Follow a reference inside the schema; one that leads out of it is not followed."""
    kept: object = root
    front, *names = reference.split("/")
    if front != "#":
        return None
    for name in names:
        kept = _member(kept, name.replace("~1", "/").replace("~0", "~"))
    return kept


def _member(value: object, name: str) -> Mapping[str, object]:
    found = value.get(name) if isinstance(value, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _decoded(data: bytes, place: str) -> str:
    if len(data) > MAX_BYTES:
        raise click.UsageError(f"{place} holds more than {MAX_BYTES} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise click.UsageError(f"{place} is not UTF-8 text") from None


def _parsed(text: str, place: str) -> object:
    try:
        return _loaded(text)
    except Malformed as error:
        raise click.UsageError(f"{place} is not JSON that can be sent: {error}") from None


def _loaded(text: str) -> object:
    """Read JSON as the wire has it. Raises Malformed."""
    # What the shell passed on and is no text cannot be sent either.
    return parse(text.encode(errors="surrogatepass"), max_depth=MAX_DEPTH)
