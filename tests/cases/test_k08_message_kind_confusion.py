"""K08: what kind of message it is follows from the members it has, and each kind has one fate.

A request that was taken for a response was never answered; a response that was taken for a
request was answered, and two peers that do so never stop.
"""

from __future__ import annotations

import itertools
import json
from typing import Final

import pytest

from tests.cases.dialects import (
    BOTH_ERAS,
    STDIO,
    Dialect,
    accept,
    case,
    code_of,
    journal_of,
    meta_of,
    result_of,
)
from tests.cases.fixture_server import Knobs
from tests.cases.peers import Exchange, MemoryPeer, Message, Peer, StdioPeer


@case(wires=[STDIO])
async def test_a_request_with_a_bad_method_is_answered(peer: Peer, era: Dialect) -> None:
    """BC-027. JSON-RPC 2.0: what is no valid request is answered -32600."""
    await era.greet(peer)
    await peer.send(era.request(1, ""))
    assert code_of(await peer.answer(1)) in (-32601, -32600)
    for id, method in ((2, 7), (3, None), (30, ["tools/list"]), (31, {}), (32, True)):
        await peer.send({**era.request(id, ""), "method": method})
        assert code_of(await peer.answer(id)) == -32600
    await peer.send({"jsonrpc": "2.0", "id": 4})
    assert code_of(await peer.answer(4)) == -32600
    await peer.send({"jsonrpc": "2.0", "method": 5})
    assert "tools" in result_of(await peer.request(era.request(5, "tools/list")))
    assert peer.answers(None) == []


@case(wires=[STDIO])
async def test_an_array_is_refused_whole(peer: Peer, era: Dialect) -> None:
    """BC-029. MCP 2025-06-18 removed batches; MCP 2026-07-28 basic: a single message."""
    await era.greet(peer)
    await peer.send([era.call(1, "echo", {"text": "x"}), era.request(2, "tools/list")])
    await peer.send([])
    await peer.send([1])
    assert "tools" in result_of(await peer.request(era.request(3, "tools/list")))
    assert [code_of(m) for m in peer.answers(None)] == [-32600] * 3
    assert await journal_of(peer, era) == ["opened"]
    assert peer.answers(1) + peer.answers(2) == []


@case(wires=[STDIO])
async def test_cancels_that_fit_nothing_are_ignored(peer: Peer, era: Dialect) -> None:
    """BC-073. MCP 2026-07-28 basic/patterns/cancellation §Error Handling: invalid ones are."""
    await era.greet(peer)
    method = "notifications/cancelled"
    for params in (
        {"requestId": "nope"},
        {"requestId": "init"},
        {},
        {"requestId": None},
        {"requestId": {"a": 1}},
        {"requestId": 1, "reason": 7},
        {"requestId": 1, "reason": None, "extra": [1]},
    ):
        await peer.send({"jsonrpc": "2.0", "method": method, "params": params})
    await peer.send({"jsonrpc": "2.0", "method": method})
    await peer.send({"jsonrpc": "2.0", "method": method, "params": [1]})
    assert "tools" in result_of(await peer.request(era.request(1, "tools/list")))
    assert [message for message in peer.seen if "error" in message] == []


@pytest.mark.parametrize("name", ["echo"])
def test_a_batch_is_carried_out_where_the_revision_has_it(name: str) -> None:
    """BC-029. MCP 2025-03-26 basic: batches MUST be received, in that revision alone."""

    async def batches(peer: Peer) -> None:
        from tests.cases.dialects import Handshake

        era = Handshake("2025-03-26")
        await era.greet(peer)
        await peer.send([era.call(1, name, {"text": "x"}), era.request(2, "tools/list"), 3])
        assert "content" in result_of(await peer.answer(1))
        assert "tools" in result_of(await peer.answer(2))
        assert code_of(await peer.answer(None)) == -32600

    StdioPeer.run(batches, Knobs())


# -- every combination of members ------------------------------------------------------------------

ABSENT: Final = object()
MEMBERS: Final[dict[str, tuple[object, ...]]] = {
    "jsonrpc": (ABSENT, "2.0", "1.0", 2.0),
    "id": (ABSENT, 7, "7", None, 1.5),
    "method": (ABSENT, "ping", "notifications/initialized", 7, None),
    "result": (ABSENT, {}, None),
    "error": (ABSENT, {"code": 1, "message": "m"}, "text", None),
    "params": (ABSENT, {}, [1]),
}


def allowed(message: Message) -> list[tuple[object, object]]:
    """Say which answers, as (id, code or "result"), the one rule for each kind allows."""
    has_method = message.get("method") is not None
    is_reply = not has_method and ("result" in message or "error" in message)
    if is_reply:
        return []
    id = message.get("id")
    good_id = id if id in (7, "7") else None
    bad_params = not isinstance(message.get("params"), dict | None)
    if "id" not in message:
        if "method" not in message:
            return [(None, -32600)]  # no message at all
        if bad_params or not isinstance(message["method"], str):
            return []  # a broken notification
        broken = message.get("jsonrpc") != "2.0" or "result" in message or "error" in message
        return [(None, -32600)] if broken else []
    if bad_params:
        return [(good_id, -32602)]
    if message.get("jsonrpc") != "2.0":
        return [(good_id if "method" in message else None, -32600)]
    if good_id is None:
        return [(None, -32600)]
    if not isinstance(message.get("method"), str) or "result" in message or "error" in message:
        return [(good_id, -32600)]
    return [(good_id, "result" if message["method"] == "ping" else -32601)]


def test_every_combination_of_members_has_one_fate() -> None:
    """BC-027, the kind: 3,600 messages, each answered as its kind is, once or not at all."""
    with Exchange() as exchange:

        async def sends(peer: MemoryPeer) -> None:
            await BOTH_ERAS[0].greet(peer)
            for values in itertools.product(*MEMBERS.values()):
                pairs = zip(MEMBERS, values, strict=True)
                message = {name: value for name, value in pairs if value is not ABSENT}
                got = [
                    (answer["id"], "result" if "result" in answer else code_of(answer))
                    for answer in await peer.exchange(json.dumps(message).encode() + b"\n")
                ]
                assert got == allowed(message), message

        exchange.run(sends)


@pytest.mark.parametrize("value", [1, "text", None, True, 1.5, {}, {"a": 1}])
def test_what_is_no_message_is_refused_once(value: object) -> None:
    """JSON-RPC 2.0 §Response object: the id is null where none could be read."""
    with Exchange() as exchange:
        line = json.dumps(value).encode() + b"\n"
        (answer,) = exchange.run(lambda peer: peer.exchange(line))
        assert (answer["id"], code_of(answer)) == (None, -32600)


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
def test_a_request_sent_as_a_notification_does_nothing(era: Dialect) -> None:
    """ours: without an id nobody would read what a call resulted in."""
    with Exchange() as exchange:

        async def sends(peer: MemoryPeer) -> None:
            await era.greet(peer)
            message = era.call(1, "echo", {"text": "x"})
            del message["id"]
            assert await peer.exchange(json.dumps(message).encode() + b"\n") == []
            assert exchange.fixture.journal.lines == ["opened"]

        exchange.run(sends)


@pytest.mark.parametrize("id", ["raxol-elicit-x", "nope", 1, "", 0])
def test_an_answer_to_nothing_is_dropped(id: object) -> None:
    """ours: a stray or late answer finds nothing, and is never answered itself."""
    with Exchange() as exchange:

        async def sends(peer: MemoryPeer) -> None:
            await BOTH_ERAS[0].greet(peer, meta_of())
            for reply in ({"result": accept(approve=True)}, {"error": {"code": 1, "message": ""}}):
                line = json.dumps({"jsonrpc": "2.0", "id": id, **reply}).encode() + b"\n"
                assert await peer.exchange(line) == []

        exchange.run(sends)
