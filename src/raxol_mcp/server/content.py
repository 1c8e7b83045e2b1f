"""What a tool, a resource or a prompt may give back, and how that becomes the result on the wire.

Not the place where a result is encoded or its size is judged, nor where an exception becomes an
`isError` result. Structs and not dataclasses: they are cheaper to declare at start-up and to make.

| returned by a tool | content |
|---|---|
| `str` | one text item |
| `None` | nothing |
| `Text`, `Image`, `Audio`, `EmbeddedResource`, `ResourceLink` | that item |
| a list or tuple with at least one of these | each of them; a `str` in between is a text item |
| `ToolResult` | exactly what it says |
| anything else JSON can carry | one text item holding the JSON |
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from raxol_mcp.errors import RaxolError
from raxol_mcp.server.pydantic_types import encode_model
from raxol_mcp.wire.jsonrpc import JSONObject, UnencodableResult, encode_result

if TYPE_CHECKING:
    from raxol_mcp.server.returns import Returns

__all__ = [
    "Audio",
    "Content",
    "EmbeddedResource",
    "Image",
    "Message",
    "ResourceLink",
    "ResultInvalid",
    "Text",
    "ToolResult",
    "prompt_payload",
    "resource_contents",
    "to_plain",
    "tool_payload",
]

# Ours: the bound of a whole result, so that a text item alone is never longer.
MAX_RESULT_BYTES: Final = 16 * 1024 * 1024

_TEXT: Final = "text/plain"
_BINARY: Final = "application/octet-stream"
_JSON: Final = "application/json"


class ResultInvalid(RaxolError, ValueError):
    """A callback gave back something that is no result: a mistake of the callback.

    The message names types and members, never values.
    """


class _Block(msgspec.Struct, frozen=True, kw_only=True):
    """What every content item may carry.

    `annotations` holds `audience`, `priority` (0..1) and `lastModified` (ISO 8601); `meta` is
    the item's `_meta`.
    """

    annotations: Mapping[str, object] | None = None
    meta: Mapping[str, object] | None = None

    def _completed(self, item: JSONObject) -> JSONObject:
        if self.annotations is not None:
            item["annotations"] = self.annotations
        if self.meta is not None:
            item["_meta"] = self.meta
        return item


class Text(_Block, frozen=True):
    """Text for the model."""

    text: str

    def to_wire(self) -> JSONObject:
        """Build the `TextContent` object."""
        return self._completed({"type": "text", "text": self.text})


class Image(_Block, frozen=True):
    """A picture: its bytes, not yet encoded, and what they are ("image/png")."""

    data: bytes
    mime_type: str

    def to_wire(self) -> JSONObject:
        """Build the `ImageContent` object."""
        encoded = _base64(self.data)
        return self._completed({"type": "image", "data": encoded, "mimeType": self.mime_type})


class Audio(_Block, frozen=True):
    """A sound: its bytes, not yet encoded, and what they are ("audio/wav").

    MCP 2024-11-05 does not know it.
    """

    data: bytes
    mime_type: str

    def to_wire(self) -> JSONObject:
        """Build the `AudioContent` object."""
        encoded = _base64(self.data)
        return self._completed({"type": "audio", "data": encoded, "mimeType": self.mime_type})


class EmbeddedResource(_Block, frozen=True):
    """The contents of a resource: exactly one of `text` and `blob` (bytes, not yet encoded).

    `mime_type` defaults to plain text or to arbitrary bytes. Raises ValueError with both or none.
    """

    uri: str
    text: str | None = None
    blob: bytes | None = None
    mime_type: str | None = None

    def __post_init__(self) -> None:
        if (self.text is None) == (self.blob is None):
            raise ValueError("an embedded resource has either text or blob")

    def contents(self) -> JSONObject:
        """Build the `TextResourceContents` or `BlobResourceContents` object."""
        if self.blob is not None:
            return _blob(self.uri, self.blob, self.mime_type or _BINARY)
        return {"uri": self.uri, "mimeType": self.mime_type or _TEXT, "text": self.text}

    def to_wire(self) -> JSONObject:
        """Build the `EmbeddedResource` object."""
        return self._completed({"type": "resource", "resource": self.contents()})


class ResourceLink(_Block, frozen=True):
    """A resource that the client may read. `size` is in bytes. MCP 2025-06-18 and later."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    icons: Sequence[JSONObject] | None = None

    def to_wire(self) -> JSONObject:
        """Build the `ResourceLink` object. Members that were not given are absent."""
        link: JSONObject = {"type": "resource_link", "uri": self.uri, "name": self.name}
        optional = {
            "title": self.title,
            "description": self.description,
            "mimeType": self.mime_type,
            "size": self.size,
            "icons": self.icons,
        }
        link.update((name, value) for name, value in optional.items() if value is not None)
        return self._completed(link)


Content: TypeAlias = Text | Image | Audio | EmbeddedResource | ResourceLink
_CONTENT: Final = (Text, Image, Audio, EmbeddedResource, ResourceLink)


class ToolResult(msgspec.Struct, frozen=True):
    """A tool's result, member by member.

    `content` holds content items, strings (text items) and objects that are sent as they are.
    `structured` becomes `structuredContent`; a tool with an output schema must give it, unless
    `is_error` is set. `meta` is the result's `_meta`.
    """

    content: Sequence[Content | str | JSONObject] = ()
    structured: object = msgspec.UNSET
    is_error: bool = False
    meta: Mapping[str, object] | None = None


class Message(msgspec.Struct, frozen=True):
    """One message of a prompt. `content` is a string (text) or one content item."""

    role: Literal["user", "assistant"]
    content: Content | str


def tool_payload(value: object, returns: Returns | None = None) -> JSONObject:
    """Build the `tools/call` result for what a tool gave back; the table above says how.

    `returns` is what the tool promised by its output schema: then the value must conform, and
    the result holds it as `structuredContent` and once more as JSON text (MCP 2026-07-28
    server/tools §Structured Content). Raises `ResultInvalid` when it does not conform, and
    `UnencodableResult` for a value that JSON cannot carry.
    """
    if type(value) is str and returns is None:  # most results
        return {"content": [{"type": "text", "text": value}]}
    if isinstance(value, ToolResult):
        return _exact(value, returns)
    if returns is not None:
        structured = returns.structured(value)
        content = [{"type": "text", "text": _json_text(structured)}]
        return {"content": content, "structuredContent": structured}
    if isinstance(value, str):
        return {"content": [_text(value)]}
    if value is None:
        return {"content": []}
    if isinstance(value, _CONTENT):
        return {"content": [value.to_wire()]}
    if isinstance(value, list | tuple) and any(isinstance(item, _CONTENT) for item in value):
        return {"content": [_block(item) for item in value]}
    return {"content": [{"type": "text", "text": _json_text(to_plain(value))}]}


def resource_contents(uri: str, value: object, mime_type: str | None = None) -> list[JSONObject]:
    """Build the `contents` of a `resources/read` result.

    | read | contents |
    |---|---|
    | `str` | text, by default "text/plain" |
    | bytes | blob, by default "application/octet-stream" |
    | `Text`, `Image`, `Audio`, `EmbeddedResource` | that |
    | a list or tuple with at least one of these | each of them |
    | anything else JSON can carry | JSON with indentation, by default "application/json" |

    Raises `UnencodableResult` for a value that JSON cannot carry, `ResultInvalid` for a list
    that mixes content items with something else.
    """
    if isinstance(value, list | tuple) and any(isinstance(item, _CONTENT) for item in value):
        return [_readable(uri, item, mime_type) for item in value]
    if isinstance(value, str | bytes | bytearray | memoryview | _Block):
        return [_readable(uri, value, mime_type)]
    written = encode_result(to_plain(value), max_bytes=MAX_RESULT_BYTES)
    text = msgspec.json.format(bytes(written), indent=2).decode()
    return [{"uri": uri, "mimeType": mime_type or _JSON, "text": text}]


def prompt_payload(value: object, description: str | None = None) -> JSONObject:
    """Build the `prompts/get` result.

    A string or a content item is one message of the user, a `Message` is itself, a list or tuple
    holds any of these, `None` is no message. Raises `ResultInvalid` for anything else.
    """
    if value is None:
        value = ()
    items = value if isinstance(value, list | tuple) else (value,)
    payload: JSONObject = {"messages": [_message(item) for item in items]}
    if description is not None:
        payload["description"] = description
    return payload


def to_plain(value: object, *, str_keys: bool = False) -> object:
    """Turn a result into dicts, lists or tuples, strings, numbers, booleans and None.

    Takes what msgspec encodes and pydantic models. `str_keys` writes numbers that are names in a
    dict as strings. Raises `UnencodableResult`.
    """
    try:
        return msgspec.to_builtins(value, str_keys=str_keys, enc_hook=encode_model)
    except RecursionError:
        raise UnencodableResult("contains itself, or is nested too deep") from None
    except (TypeError, NotImplementedError) as error:
        raise UnencodableResult(str(error)) from error
    except Exception as error:  # of a serializer that the user wrote
        raise UnencodableResult(f"cannot be written ({type(error).__name__})") from error


def _exact(result: ToolResult, returns: Returns | None) -> JSONObject:
    content = result.content
    payload: JSONObject = {
        "content": [_text(content)]
        if isinstance(content, str)
        else [item if isinstance(item, dict) else _block(item) for item in content]
    }
    if result.structured is not msgspec.UNSET:
        structured = result.structured
        # A failure need not have the form of a success (MCP server/tools §Error Handling).
        free = returns is None or result.is_error
        payload["structuredContent"] = (
            to_plain(structured) if free or returns is None else returns.conforming(structured)
        )
    elif returns is not None and not result.is_error:
        raise ResultInvalid("a tool with an output schema gave no structured content")
    if result.is_error:
        payload["isError"] = True
    if result.meta is not None:
        payload["_meta"] = result.meta
    return payload


def _block(item: object) -> JSONObject:
    if isinstance(item, str):
        return _text(item)
    if isinstance(item, _CONTENT):
        return item.to_wire()
    raise ResultInvalid(f"{type(item).__name__} is no content item")


def _text(value: str) -> JSONObject:
    # A string enumeration is written as its value, as everywhere else in JSON.
    return {"type": "text", "text": value if type(value) is str else str.__str__(value)}


def _json_text(plain: object) -> str:
    return bytes(encode_result(plain, max_bytes=MAX_RESULT_BYTES)).decode()


def _readable(uri: str, value: object, mime_type: str | None) -> JSONObject:
    if isinstance(value, EmbeddedResource):
        return value.contents()
    if isinstance(value, Image | Audio):
        return _blob(uri, value.data, value.mime_type)
    if isinstance(value, Text):
        value = value.text
    if isinstance(value, str):
        return {"uri": uri, "mimeType": mime_type or _TEXT, "text": str.__str__(value)}
    if isinstance(value, bytes | bytearray | memoryview):
        return _blob(uri, value, mime_type or _BINARY)
    raise ResultInvalid(f"{type(value).__name__} is nothing that a resource contains")


def _blob(uri: str, data: bytes | bytearray | memoryview, mime_type: str) -> JSONObject:
    return {"uri": uri, "mimeType": mime_type, "blob": _base64(data)}


def _base64(data: bytes | bytearray | memoryview) -> str:
    # RFC 4648 §4: the standard alphabet, padded, in one line.
    return b2a_base64(data, newline=False).decode("ascii")


def _message(item: object) -> JSONObject:
    if isinstance(item, Message):
        return {"role": item.role, "content": _block(item.content)}
    return {"role": "user", "content": _block(item)}
