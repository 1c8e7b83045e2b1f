"""Requests of a server for a turn of this side's model, and the answers to them.

Calls no model. MCP 2025-11-25 client/sampling; deprecated, but in force, in 2026-07-28.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import field

from raxol_mcp.wire.values import Value, is_number

if TYPE_CHECKING:
    from raxol_mcp.wire.jsonrpc import JSONObject

__all__ = ["NoSamplingRequest", "SamplingRequest", "sampling_problem", "sampling_request"]

_MAX_MESSAGES: Final = 1024
_ROLES: Final = ("user", "assistant")
_CONTEXTS: Final = ("none", "thisServer", "allServers")


class NoSamplingRequest(Exception):
    """Params that are no request. The message says why, in one sentence for the server."""


class SamplingRequest(Value, frozen=True):
    """A server wants a model's turn. Everything in it is the server's word.

    `messages` are objects with `role` and `content`, a block or a list of blocks; `max_tokens` is
    the most that may be sampled. The rest is what the server would like: None where it said
    nothing. `tools` are only there for a handler that takes them.
    """

    server: str
    messages: list[JSONObject]
    max_tokens: int
    system_prompt: str | None = None
    temperature: float | None = None
    stop_sequences: tuple[str, ...] = ()
    model_preferences: JSONObject = field(default_factory=dict)
    include_context: str = "none"
    metadata: JSONObject = field(default_factory=dict)
    tools: tuple[JSONObject, ...] = ()
    tool_choice: JSONObject | None = None


def sampling_request(server: str, params: JSONObject, *, tools: bool) -> SamplingRequest:
    """Read the params of sampling/createMessage. Raises `NoSamplingRequest`.

    Without `tools` the client has not declared that it takes any, and a request that has some is
    refused (MCP 2025-11-25 client/sampling §Tools in Sampling).
    """
    wanted = params.get("tools"), params.get("toolChoice")
    if not tools and wanted != (None, None):
        raise NoSamplingRequest("tools in sampling were not declared")
    most = params.get("maxTokens")
    if type(most) is not int or most < 1:
        raise NoSamplingRequest("maxTokens must be a whole number from 1 on")
    context = params.get("includeContext")
    if context is not None and context not in _CONTEXTS:
        raise NoSamplingRequest("includeContext is none of its values")
    return SamplingRequest(
        server,
        _messages(params.get("messages")),
        most,
        _text(params, "systemPrompt"),
        _number(params, "temperature"),
        _texts(params, "stopSequences"),
        _object(params, "modelPreferences") or {},
        context if isinstance(context, str) else "none",
        _object(params, "metadata") or {},
        _objects(params, "tools"),
        _object(params, "toolChoice"),
    )


def sampling_problem(answer: object) -> str | None:
    """Say in one sentence why a handler's answer is no result; None when it is one."""
    if not isinstance(answer, dict):
        return "the answer of a sampling handler must be a dict"
    if answer.get("role") not in _ROLES:
        return 'the answer must have a role, "assistant" or "user"'
    if not _blocks(answer.get("content")):
        return "the answer must have content, a block or a list of blocks, each with a type"
    if not isinstance(answer.get("model"), str):
        return "the answer must name its model"
    if not isinstance(answer.get("stopReason", ""), str):
        return "the stopReason of the answer must be a text"
    return None


def _messages(value: object) -> list[JSONObject]:
    if not isinstance(value, list) or not 0 < len(value) <= _MAX_MESSAGES:
        raise NoSamplingRequest(f"messages must be a list of 1 to {_MAX_MESSAGES}")
    open_uses: set[str] = set()
    for message in value:
        if not isinstance(message, dict) or message.get("role") not in _ROLES:
            raise NoSamplingRequest("each message must have a role, user or assistant")
        blocks = _blocks(message.get("content"))
        if not blocks:
            raise NoSamplingRequest("each message must have content with a type")
        open_uses = _uses_left(open_uses, blocks, str(message["role"]))
    if open_uses:
        raise NoSamplingRequest("a tool_use has no tool_result")
    return value


def _uses_left(open_uses: set[str], blocks: list[JSONObject], role: str) -> set[str]:
    """Check the uses of tools in one message; give those that the next one must answer.

    MCP 2025-11-25 client/sampling §Tool Result Messages, §Tool Use and Result Balance.
    """
    results = [block for block in blocks if block["type"] == "tool_result"]
    if results and (role != "user" or len(results) != len(blocks)):
        raise NoSamplingRequest("tool_results must be alone in a message of the user")
    if {str(block.get("toolUseId")) for block in results} != open_uses:
        raise NoSamplingRequest("each tool_use must have its tool_result in the next message")
    return {str(block.get("id")) for block in blocks if block["type"] == "tool_use"}


def _blocks(content: object) -> list[JSONObject]:
    """Give the blocks of some content, one or a list of them; none if one of them is no block."""
    items: list[object] = content if isinstance(content, list) else [content]
    blocks = [
        item for item in items if isinstance(item, dict) and isinstance(item.get("type"), str)
    ]
    return blocks if len(blocks) == len(items) else []


def _text(params: JSONObject, member: str) -> str | None:
    value = params.get(member)
    if value is not None and not isinstance(value, str):
        raise NoSamplingRequest(f"{member} must be a text")
    return value


def _number(params: JSONObject, member: str) -> float | None:
    value = params.get(member)
    if value is None:
        return None
    if not is_number(value):
        raise NoSamplingRequest(f"{member} must be a number")
    return float(value)


def _texts(params: JSONObject, member: str) -> tuple[str, ...]:
    value = params.get(member)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise NoSamplingRequest(f"{member} must be a list of texts")
    return tuple(value)


def _object(params: JSONObject, member: str) -> JSONObject | None:
    value = params.get(member)
    if value is not None and not isinstance(value, dict):
        raise NoSamplingRequest(f"{member} must be an object")
    return value


def _objects(params: JSONObject, member: str) -> tuple[JSONObject, ...]:
    value = params.get(member)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise NoSamplingRequest(f"{member} must be a list of objects")
    return tuple(value)
