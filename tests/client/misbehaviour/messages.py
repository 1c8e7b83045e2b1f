"""Answers that no server should give, on whatever wire, and floods before good ones.

Each is done once, at the first call (or the first list), by a peer that otherwise behaves; the
next call has to work. Where a pipe leaves an answer without a usable id to the timeout of its
call, the response of an HTTP request has ended without an answer, and the call knows at once.
"""

from __future__ import annotations

from typing import Any, Final

from tests.client.misbehaviour.attempts import (
    Error,
    Misbehaviour,
    Outcome,
    Says,
    on_call,
)
from tests.client.peers.script import (
    Message,
    Step,
    as_usual,
    error,
    notice,
    raw,
    reply,
    say,
    silent,
)

__all__ = ["INVALID", "IN_BOTH_ERAS", "TIMEOUT", "answer", "fine", "invalid"]

TIMEOUT: Final = Error("TimedOut", ("timeout",))
INVALID: Final = Error("RequestFailed", ("invalid_response", "tools/call"))


def failed(code: int) -> Outcome:
    """Say what a call gets that was answered with an error."""
    return Error("RemoteProtocolError", (code,))


def answer(**members: Any) -> Step:
    """Send an answer with exactly these members besides `jsonrpc`."""
    return say({"jsonrpc": "2.0", **members})


def result(value: Any) -> Step:
    """Answer with a result, of whatever kind."""
    return answer(id="$ID", result=value)


def broken(*rest: str | bytes | tuple[str, int]) -> Step:
    """Send an answer with exactly these bytes behind its id."""
    return raw('{"jsonrpc":"2.0","id":$ID', *rest, "\n")


def said(*bytes_: str | bytes) -> Step:
    """Answer with a text of exactly these bytes."""
    return broken(',"result":{"content":[{"type":"text","text":"', *bytes_, '"}]}}')


def each_of(method: str, *params: Message) -> list[Step]:
    """Send a notification with one params after the other."""
    return [notice(method, each) for each in params]


def lost(name: str, *steps: Step) -> Misbehaviour:
    """Build one whose answer nobody can take for one."""
    return on_call(name, *steps, expected=TIMEOUT, over_http=INVALID)


def invalid(name: str, *steps: Step, **more: Any) -> Misbehaviour:
    """Build one whose answer is one, and unusable."""
    return on_call(name, *steps, expected=INVALID, **more)


def fine(name: str, *steps: Step, said: str = "x", **more: Any) -> Misbehaviour:
    """Build one that a client gets over."""
    return on_call(name, *steps, expected=Says(said), **more)


STRANGE: Final[list[object]] = [999, "1", None, [], {}]
TEXT: Final[Message] = {"content": [{"type": "text", "text": "other"}]}

IN_BOTH_ERAS: Final[list[Misbehaviour]] = [
    # -- answers that are none --
    on_call("never answers", silent(), expected=TIMEOUT),
    lost("the id of nobody", answer(id=987_654, result=TEXT)),
    lost("the id as a string", raw('{"jsonrpc":"2.0","id":"$ID","result":{}}\n')),
    lost("the id as a float", broken('.0,"result":{}}')),
    lost("the id null", answer(id=None, result=TEXT)),
    lost("the id a list", answer(id=["$ID"], result=TEXT)),
    lost("the id left out", answer(result=TEXT)),
    lost("the id twice", broken(',"id":7,"result":{}}')),
    lost("a number for a message", raw("42\n")),
    lost("null for a message", raw("null\n")),
    lost("a string for a message", raw('"hello"\n')),
    lost("an empty batch", raw("[]\n")),
    lost("a batch in a revision without", raw('[{"jsonrpc":"2.0","id":$ID,"result":{}}]\n')),
    lost("a hundred thousand brackets", raw(("[", 100_000), "\n")),
    lost("cut in the middle", broken(',"resu')),
    # -- answers that are broken, and say whose they are --
    invalid("neither result nor error", answer(id="$ID")),
    invalid("another JSON-RPC", raw('{"jsonrpc":"1.0","id":$ID,"result":{}}\n')),
    invalid("no JSON-RPC at all", raw('{"id":$ID,"result":{}}\n')),
    invalid("no UTF-8 in the text", said(b"\xff\xfe")),
    invalid("half a character", said(b"\xe2\x82")),
    invalid("a lone surrogate", said("\\ud800")),
    invalid("a member twice", broken(',"result":{},"result":{}}')),
    invalid("NaN in the result", broken(',"result":{"n":NaN}}')),
    invalid("a number beyond all", broken(',"result":{"n":1e999}}')),
    invalid("a number of 5,000 digits", broken(',"result":{"n":', ("9", 5000), "}}")),
    invalid("nested 200 deep", broken(',"result":', ("[", 200), ("]", 200), "}")),
    invalid("nested 100,000 deep", broken(',"result":{"a":', ("[", 100_000), ("]", 100_000), "}}")),
    # -- results that are none of a call --
    invalid("the result null", result(None)),
    invalid("the result a number", result(7)),
    invalid("the result a text", result("done")),
    invalid("the result a list", result([{"type": "text", "text": "x"}])),
    invalid("the content null", result({"content": None})),
    invalid("the content a text", result({"content": "x"})),
    invalid("a block that is none", result({"content": [7]})),
    invalid("a block of no type", result({"content": [{"text": "x"}]})),
    invalid("a text without text", result({"content": [{"type": "text"}]})),
    invalid("isError a text", result({"content": [], "isError": "true"})),
    # -- errors --
    on_call("an error", error(-32603, "no", data={"a": [1]}), expected=failed(-32603)),
    on_call("an error of no known code", error(7), expected=failed(7)),
    on_call(
        "an error and a result",
        answer(id="$ID", result=TEXT, error={"code": 1, "message": ""}),
        expected=failed(1),
    ),
    on_call("the error null", answer(id="$ID", error=None), expected=failed(-32603)),
    on_call("the error a text", answer(id="$ID", error="no"), expected=failed(-32603)),
    on_call("the code a text", error("-32602"), expected=failed(-32603)),
    on_call("the message a list", error(-32602, ["no"]), expected=failed(-32602)),
    on_call("the message a megabyte", error(-1, "é" * 1_000_000), expected=failed(-1)),
    # -- too much, too often --
    fine("answers twice", as_usual(), as_usual()),
    fine("answers twice, differently", as_usual(), error(-32603)),
    fine(
        "answers that nobody asked for",
        *[answer(id=n, result=TEXT) for n in (0, -1, 2**53, "x")],
        as_usual(),
    ),
    fine(
        "a result of 10 MB",
        broken(
            ',"result":{"content":[{"type":"text","text":"ok"}],"x":"', ("A", 10_000_000), '"}}'
        ),
        said="ok",
    ),
    fine(
        "a result with more than there should be",
        reply(
            {
                "content": [{"type": "hologram", "x": 1}, {"type": "text", "text": "ok"}],
                "futureField": [1],
                "_meta": 7,
            }
        ),
        said="ok",
    ),
    fine(
        "unknown notifications, a flood",
        notice("notifications/strange", {"a": 1}, count=5_000),
        as_usual(),
    ),
    fine(
        "logs, a flood",
        notice("notifications/message", {"level": "info", "data": "A" * 1000}, count=5_000),
        as_usual(),
    ),
    fine(
        "progress of nobody, a flood",
        notice("notifications/progress", {"progressToken": "no", "progress": "$N"}, count=5_000),
        as_usual(),
    ),
    fine(
        "progress that is none",
        *each_of(
            "notifications/progress",
            {"progressToken": "$ID"},
            {"progressToken": "$ID", "progress": "7"},
            {"progressToken": "$ID", "progress": True},
            {"progressToken": ["x"], "progress": 1},
            {"progressToken": {}, "progress": 1},
        ),
        as_usual(),
    ),
    fine(
        "lists that change, a flood",
        notice("notifications/tools/list_changed", count=2_000),
        as_usual(),
    ),
    fine(
        "cancels what is not there",
        *each_of("notifications/cancelled", *({"requestId": strange} for strange in STRANGE)),
        as_usual(),
    ),
    fine(
        "cancels the call itself",
        notice("notifications/cancelled", {"requestId": "$ID"}),
        as_usual(),
    ),
    fine(
        "notifications that are none",
        *[
            raw(f'{{"jsonrpc":"2.0","method":{each}}}\n')
            for each in ("7", '"x","params":[1]', '"x","params":"y"', "null", '"\\u0000"')
        ],
        as_usual(),
    ),
    fine("a request without a method", raw('{"jsonrpc":"2.0","id":"q"}\n'), as_usual()),
]
