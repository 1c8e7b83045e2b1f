"""How a server's results become records: what has the wrong shape fails that one request.

The readers judge shapes and nothing else: whether a result answers the request, and what
`resultType` says, is decided before. A shape that cannot be used raises `InvalidResult`. What is
merely unknown is kept: content of a kind that is not known yet comes as the object it is, and
members that are not known are no reason to refuse the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from raxol_mcp.client.results import (
    CallResult,
    CompletionResult,
    LogMessage,
    PromptResult,
    ReadResult,
)
from raxol_mcp.wire.meta import LOG_LEVELS
from raxol_mcp.wire.values import Value, is_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from raxol_mcp.wire.jsonrpc import JSONObject

__all__ = [
    "InvalidResult",
    "Page",
    "call_result",
    "completion_result",
    "listed",
    "log_message",
    "prompt_result",
    "read_result",
]

# MCP server/utilities/completion: a server sends at most 100.
_MAX_COMPLETIONS: Final = 100
_MAX_LOGGER: Final = 256

# What a block of a known kind must have, each a text. MCP server/tools §Tool Result.
_PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri",),
}


class InvalidResult(Exception):
    """A result of `method` that cannot be used. `why` is a sentence without the server's words."""

    def __init__(self, method: str, why: str) -> None:
        super().__init__(f"{method}: {why}")
        self.method = method
        self.why = why


class Page(Value, frozen=True):
    """One page of a list, its items unread. `next_cursor` is opaque, and "" is one; None: the end.

    `ttl` is for how many seconds the page may be used again (MCP 2026-07-28 caching), None when
    nothing was said.
    """

    items: list[object]
    next_cursor: str | None = None
    ttl: float | None = None


def call_result(result: object) -> CallResult:
    """Read the result of tools/call. Raises `InvalidResult`.

    Without `content` it has none: servers leave it out beside `structuredContent`. A `_meta` that
    is no object is dropped; it is not worth the result of a call that has happened.
    """
    method = "tools/call"
    fields = _object(method, result, "the result")
    content = _blocks(method, fields.get("content", []), "content")
    is_error = fields.get("isError", False)
    if not isinstance(is_error, bool):
        raise InvalidResult(method, "isError is neither true nor false")
    return CallResult(
        content,
        fields.get("structuredContent"),
        "structuredContent" in fields,
        is_error,
        _meta(fields),
    )


def read_result(result: object) -> ReadResult:
    """Read the result of resources/read. Raises `InvalidResult`."""
    method = "resources/read"
    fields = _object(method, result, "the result")
    contents = _objects(method, fields.get("contents"), "contents")
    for part in contents:
        _judge_resource(method, part)
    return ReadResult(contents, _meta(fields))


def prompt_result(result: object) -> PromptResult:
    """Read the result of prompts/get. Raises `InvalidResult`."""
    method = "prompts/get"
    fields = _object(method, result, "the result")
    messages = _objects(method, fields.get("messages"), "messages")
    for message in messages:
        if not isinstance(message.get("role"), str):
            raise InvalidResult(method, "a message has no role")
        _judge_block(method, _object(method, message.get("content"), "the content of a message"))
    description = fields.get("description")
    return PromptResult(
        description if isinstance(description, str) else "", messages, _meta(fields)
    )


def completion_result(result: object) -> CompletionResult:
    """Read the result of completion/complete; values past the hundredth are dropped.

    Raises `InvalidResult`.
    """
    method = "completion/complete"
    fields = _object(method, result, "the result")
    completion = _object(method, fields.get("completion"), "completion")
    values = completion.get("values")
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise InvalidResult(method, "values is not a list of texts")
    total = completion.get("total")
    return CompletionResult(
        values[:_MAX_COMPLETIONS],
        total if type(total) is int and total >= 0 else None,
        completion.get("hasMore") is True or len(values) > _MAX_COMPLETIONS,
    )


def listed(method: str, member: str, result: object) -> Page:
    """Read one page of a list: `member` of the result of `method` holds the items, unread.

    Raises `InvalidResult`, also when there is no list: that is no empty one. A `ttlMs` that is
    negative or no number means that the page is stale at once (MCP 2026-07-28 caching).
    """
    fields = _object(method, result, "the result")
    items = fields.get(member)
    if not isinstance(items, list):
        raise InvalidResult(method, f"{member} is not a list")
    cursor = fields.get("nextCursor")
    if cursor is not None and not isinstance(cursor, str):
        raise InvalidResult(method, "nextCursor is not a text")
    if "ttlMs" not in fields:
        return Page(items, cursor)
    ttl = fields["ttlMs"]
    return Page(items, cursor, ttl / 1000 if is_number(ttl) and ttl > 0 else 0.0)


def log_message(params: JSONObject | None) -> LogMessage | None:
    """Read the params of notifications/message; None when they are to be ignored."""
    fields = params or {}
    level, logger = fields.get("level"), fields.get("logger")
    if not isinstance(level, str) or level not in LOG_LEVELS or "data" not in fields:
        return None
    return LogMessage(
        level, logger[:_MAX_LOGGER] if isinstance(logger, str) else None, fields["data"]
    )


def _object(method: str, value: object, what: str) -> JSONObject:
    if not isinstance(value, dict):
        raise InvalidResult(method, f"{what} is not an object")
    return value


def _objects(method: str, value: object, what: str) -> list[JSONObject]:
    if not isinstance(value, list):
        raise InvalidResult(method, f"{what} is not a list")
    return [_object(method, item, f"an item of {what}") for item in value]


def _blocks(method: str, value: object, what: str) -> list[JSONObject]:
    blocks = _objects(method, value, what)
    for block in blocks:
        _judge_block(method, block)
    return blocks


def _judge_block(method: str, block: JSONObject) -> None:
    kind = block.get("type")
    if not isinstance(kind, str):
        raise InvalidResult(method, "a block of content has no type")
    for name in _PARTS.get(kind, ()):
        if not isinstance(block.get(name), str):
            raise InvalidResult(method, f"a block of type {kind} has no {name}")
    if kind == "resource":
        _judge_resource(method, _object(method, block.get("resource"), "an embedded resource"))


def _judge_resource(method: str, part: JSONObject) -> None:
    if not isinstance(part.get("uri"), str):
        raise InvalidResult(method, "the contents of a resource have no uri")
    if not isinstance(part.get("text"), str) and not isinstance(part.get("blob"), str):
        raise InvalidResult(method, "the contents of a resource are neither text nor blob")


def _meta(fields: JSONObject) -> JSONObject:
    meta = fields.get("_meta")
    return meta if isinstance(meta, dict) else {}
