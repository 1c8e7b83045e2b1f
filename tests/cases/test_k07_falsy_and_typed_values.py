"""K07: 0, "", null, false and 1.5 are values, and none of them is another or nothing.

An id or a token that a language takes for false was lost, ids of two types shared a place, and
large integers came back with other digits.
"""

from __future__ import annotations

import json
from typing import Final

import pytest

from tests.cases.dialects import (
    BOTH_ERAS,
    STDIO,
    Dialect,
    case,
    code_of,
    journal_of,
    result_of,
    text_of,
)
from tests.cases.peers import Exchange, MemoryPeer, Message, Peer


@case()
async def test_an_id_of_null_is_refused_and_nothing_runs(peer: Peer, era: Dialect) -> None:
    """BC-023. MCP 2026-07-28 basic §Requests: the id MUST NOT be null."""
    await era.greet(peer)
    await peer.send(era.call(None, "echo", {"text": "x"}))
    assert code_of(await peer.answer(None)) == -32600
    assert await journal_of(peer, era) == ["opened"]


@case(wires=[STDIO])
async def test_ids_keep_their_type_and_their_digits(peer: Peer, era: Dialect) -> None:
    """BC-025. MCP 2026-07-28 basic §Requests: a string or an integer, the same in the answer."""
    await era.greet(peer)
    await peer.send(
        era.call(1, "sleep", {"ms": 150, "tag": "int"}),
        era.call("1", "sleep", {"ms": 5, "tag": "str"}),
        era.request(9007199254740993, "tools/list"),
        era.request(-1, "tools/list"),
    )
    for refused in (1.5, True, {"a": 1}, [1], 2**63):
        await peer.send(era.request(refused, "tools/list"))
    assert text_of(await peer.answer("1")) == "str"
    assert text_of(await peer.answer(1)) == "int"
    assert "tools" in result_of(await peer.answer(9007199254740993))
    assert "tools" in result_of(await peer.answer(-1))
    # 2**63 is refused by the parser: a peer that reads numbers as doubles would change it.
    assert [code_of(m) for m in peer.answers(None)] == [-32600] * 4 + [-32700]


@case(wires=[STDIO])
async def test_every_token_is_a_token_and_none_is_invented(peer: Peer, era: Dialect) -> None:
    """BC-077. MCP 2026-07-28 basic/patterns/progress: only tokens of an active request."""
    await era.greet(peer)
    arguments = {"n": 3, "delay_ms": 1}
    tokens: list[object] = [0, "0", "", -1, 9007199254740993]
    for token in tokens:
        await peer.request(era.call("call", "progress", arguments, meta={"progressToken": token}))
    await peer.request(era.call("call", "progress", arguments))
    got = [params["progressToken"] for params in peer.told("notifications/progress")]
    expected = [token for token in tokens for _ in range(3)]
    assert [(type(token), token) for token in got] == [(type(t), t) for t in expected]


# -- every odd value in every field that may be absent ---------------------------------------------

ABSENT: Final = object()
VALUES: Final[list[object]] = [ABSENT, None, 0, "", "0", False, -1, 2**53 + 1, 1.5, [], {}]

OK: Final = "result"
SILENCE: Final = "nothing"


def id_of(value: object) -> object:
    """An id is a string or an integer; without one it is a notification."""
    if value is ABSENT:
        return SILENCE
    return OK if _is_id(value) else -32600


def token_of(value: object) -> object:
    """What is no token is ignored: progress is not worth refusing a call."""
    return OK


def params_of(value: object) -> object:
    """Null is absent, an object is an object (and lacks the name), anything else is refused."""
    return -32602


def arguments_of(value: object) -> object:
    """Null is absent."""
    return OK if value is ABSENT or value is None or value == {} else -32602


def cursor_of(value: object) -> object:
    """Null is absent; a string that is no cursor of ours is refused too."""
    return OK if value is ABSENT or value is None else -32602


def text_field_of(value: object) -> object:
    """A name that must be there, as a string: no such tool, prompt or resource."""
    return "unknown" if isinstance(value, str) else -32602


def context_of(value: object) -> object:
    """An object that may be left out."""
    return OK if value is ABSENT or value is None or value == {} else -32602


FIELDS: Final = [
    ("id", "tools/list", {}, id_of),
    ("params._meta.progressToken", "tools/list", {}, token_of),
    ("params", "tools/call", {}, params_of),
    ("params.arguments", "tools/call", {"name": "no_args"}, arguments_of),
    ("params.cursor", "tools/list", {}, cursor_of),
    ("params.cursor", "prompts/list", {}, cursor_of),
    ("params.cursor", "resources/list", {}, cursor_of),
    ("params.cursor", "resources/templates/list", {}, cursor_of),
    ("params.name", "tools/call", {}, text_field_of),
    ("params.name", "prompts/get", {}, text_field_of),
    ("params.uri", "resources/read", {}, text_field_of),
    ("params.arguments", "prompts/get", {"name": "none"}, arguments_of),
    (
        "params.context",
        "completion/complete",
        {
            "ref": {"type": "ref/prompt", "name": "greet"},
            "argument": {"name": "who", "value": ""},
        },
        context_of,
    ),
]


def _is_id(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))


def _with(message: Message, path: str, value: object) -> Message:
    copied: Message = json.loads(json.dumps(message))
    *outer, last = path.split(".")
    place = copied
    for name in outer:
        inner = place.setdefault(name, {})
        assert isinstance(inner, dict)
        place = inner
    if value is ABSENT:
        place.pop(last, None)
    else:
        place[last] = value
    return copied


def _expected(era: Dialect, method: str, said: object, value: object, path: str) -> object:
    if said == "unknown":
        unknown = {"tools/call": era.unknown_tool, "resources/read": era.unknown_resource}
        return unknown.get(method, -32602)
    if path == "params" and era.name == "2026-07-28" and said == -32602:
        # Without params there is no version, so it is a request of the other era, which knows
        # no call without a name either.
        return -32602
    return said


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
@pytest.mark.parametrize(("path", "method", "params", "rule"), FIELDS)
def test_every_odd_value_is_told_apart(
    era: Dialect, path: str, method: str, params: Message, rule: object
) -> None:
    """BC-023, BC-025 and BC-077, the kind: a value is never taken for another or for nothing."""
    assert callable(rule)
    with Exchange() as exchange:
        for value in VALUES:

            async def sends(peer: MemoryPeer, value: object = value) -> list[Message]:
                await era.greet(peer)
                message = _with(era.request(7, method, params), path, value)
                return await peer.exchange(json.dumps(message).encode() + b"\n")

            answers = exchange.run(sends)
            expected = _expected(era, method, rule(value), value, path)
            got = [OK if "result" in answer else code_of(answer) for answer in answers]
            assert got == ([] if expected == SILENCE else [expected]), (path, value)
            if path == "id" and expected == OK:
                assert [type(a["id"]) for a in answers] == [type(value)], value
                assert [a["id"] for a in answers] == [value]


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
def test_a_cancel_with_another_type_of_id_is_another_cancel(era: Dialect) -> None:
    """ours: 0, False, "0" and "" are four ids, and one of them is none."""
    with Exchange() as exchange:
        for id in (0, 1, "0", "", "1"):

            async def cancels(peer: MemoryPeer, id: object = id) -> None:
                await era.greet(peer)
                await peer.send(era.call(id, "sleep", {"ms": 500, "tag": "t"}))
                for other in (0, 1, "0", "", "1", True, False, None, 0.0, 1.0):
                    if not (type(other) is type(id) and other == id):
                        await peer.send(_cancel(other))
                assert text_of(await peer.answer(id)) == "t"
                await peer.send(era.call(id, "sleep", {"ms": 500, "tag": "t"}), _cancel(id))
                assert await peer.exchange(b"") == []

            exchange.run(cancels)


def _cancel(id: object) -> Message:
    method = "notifications/cancelled"
    return {"jsonrpc": "2.0", "method": method, "params": {"requestId": id}}
