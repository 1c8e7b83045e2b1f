"""Effects as plain tuples, so that what was done and what had to be done can be compared.

Knows how messages are written, not when they are due. Fields without meaning for anybody outside
(the server's own `_meta`, cache hints) are checked to be there and left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final, TypeAlias

from raxol_mcp.core.calls import Call
from raxol_mcp.core.effects import (
    Effect,
    Push,
    Record,
    Reply,
    Resolve,
    StartWorker,
    StopWorker,
)
from raxol_mcp.wire.jsonrpc import Failure, JSONObject, Outgoing, Request, Response
from raxol_mcp.wire.meta import META_SERVER_INFO

__all__ = ["ANYTHING", "Fact", "read_effect", "read_message", "same", "stamped"]

Fact: TypeAlias = tuple[object, ...]


class _Anything:
    """Equal to everything: the specification leaves it open."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]  # it would not agree with __eq__

    def __repr__(self) -> str:
        return "ANYTHING"


ANYTHING: Final = _Anything()


def stamped(result: JSONObject) -> bool:
    """Say whether a result is written as the stateless era wants it."""
    return "resultType" in result


def _result(result: object) -> Fact:
    if not isinstance(result, dict):
        return ("value", False, result)
    if "protocolVersion" in result:
        return ("greeting", result["protocolVersion"])
    if "supportedVersions" in result:
        return ("discovery",)
    if result.get("resultType") == "input_required":
        return ("input_required", result.get("inputRequests", {}))
    if not stamped(result):
        return _told(result, stateless=False)
    assert result["resultType"] == "complete", result
    own = ("resultType", "ttlMs", "cacheScope")
    rest: JSONObject = {name: value for name, value in result.items() if name not in own}
    meta = rest.pop("_meta")
    assert isinstance(meta, dict), meta
    assert META_SERVER_INFO in meta, "the server says who it is"
    meta = {name: value for name, value in meta.items() if name != META_SERVER_INFO}
    return _told({**rest, "_meta": meta} if meta else rest, stateless=True)


def _told(result: JSONObject, *, stateless: bool) -> Fact:
    if result.get("isError") is not True or not result.get("content"):
        return ("value", stateless, result)
    content = result["content"]
    assert set(result) == {"content", "isError"}, result
    assert isinstance(content, list), content
    (item,) = content
    text = item["text"]
    assert item == {"type": "text", "text": text}, item
    return ("told", stateless, json.loads(text) if text.startswith("{") else text)


def read_message(message: Outgoing, question_of: Callable[[str], object]) -> Fact:
    """Read a message; `question_of(id)` names the question that an id was given for."""
    if isinstance(message, Response):
        return ("result", message.id, *_result(message.result))
    if isinstance(message, Failure):
        return ("failure", message.id, message.code, message.data, message.message)
    if isinstance(message, Request):
        return ("ask", message.method, message.params)
    params = message.params or {}
    if message.method == "notifications/cancelled":
        return ("retract", question_of(str(params["requestId"])))
    return ("note", message.method, params)


def read_effect(
    effect: Effect, owed_of: Callable[[Call], object], question_of: Callable[[str], object]
) -> Fact:
    """Read an effect; `owed_of(call)` is how the reader calls a call."""
    match effect:
        case Push():
            seen = read_message(effect.message, question_of)
            return ("push", effect.connection, effect.about, seen, effect.droppable)
        case Reply():
            message = effect.message
            answer = None if message is None else read_message(message, question_of)
            return ("reply", effect.caller, answer)
        case StartWorker():
            return ("start", owed_of(effect.call), effect.job)
        case StopWorker():
            return ("stop", owed_of(effect.call))
        case Resolve():
            return ("resolve", owed_of(effect.call), effect.key, effect.answer)
        case Record():
            return ("record", effect.event)


def _lane(fact: Fact) -> Fact:
    kind = fact[0]
    if kind == "push":
        return fact[:3]
    return (kind,) if kind == "start" else fact[:2]


def same(expected: list[Fact], actual: list[Fact]) -> bool:
    """Compare: in order for one call, one caller, one connection; workers start in order.

    Between two calls the order is nobody's promise.
    """
    if expected == actual:
        return True
    if len(expected) != len(actual):
        return False
    lanes: dict[Fact, tuple[list[Fact], list[Fact]]] = {}
    for side, facts in enumerate((expected, actual)):
        for fact in facts:
            lanes.setdefault(_lane(fact), ([], []))[side].append(fact)
    return all(wanted == found for wanted, found in lanes.values())
