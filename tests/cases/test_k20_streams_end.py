"""K20: a subscription lives as long as its request, and tells what was asked for, no more.

Notifications came before the acknowledgement, without their subscription, for what nobody had
asked, and after the client had left.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import cast

import pytest

from tests.cases.dialects import LEGACY, MODERN, Dialect, case, code_of, result_of, text_of
from tests.cases.fixture_server import Knobs
from tests.cases.peers import Exchange, MemoryPeer, Message, Peer

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


def listen(id: object, **notifications: object) -> Message:
    """Write a `subscriptions/listen`."""
    return MODERN.request(id, "subscriptions/listen", {"notifications": notifications})


def heard(peer: Peer, id: object) -> list[tuple[object, Message]]:
    """Every notification of one listen so far, its method and its params without the stamp."""
    found = []
    for message in peer.seen:
        params = cast(Message, message.get("params", {}))
        stamp = cast(Message, params.get("_meta", {})).get(SUBSCRIPTION)
        if "method" in message and type(stamp) is type(id) and stamp == id:
            rest = {name: value for name, value in params.items() if name != "_meta"}
            found.append((message["method"], rest))
    return found


def is_about(id: object) -> object:
    """Build a test for messages of one listen."""

    def fits(message: Message) -> bool:
        params = cast(Message, message.get("params", {}))
        stamp = cast(Message, params.get("_meta", {})).get(SUBSCRIPTION)
        return type(stamp) is type(id) and stamp == id

    return fits


@case(eras=[MODERN])
async def test_a_listen_is_acknowledged_first_and_hears_what_it_asked_for(
    peer: Peer, era: Dialect
) -> None:
    """BC-157. MCP 2026-07-28 basic/patterns/subscribe."""
    await peer.send(listen(1, toolsListChanged=True, resourceSubscriptions=["mem://a"], zzz=True))
    await peer.send(listen("1", toolsListChanged=True))
    await peer.send(era.call(2, "add_tool", {"name": "n1"}))
    await peer.answer(2)
    await peer.request(era.call(3, "touch_resource", {"uri": "mem://a"}))
    await peer.request(era.call(4, "touch_resource", {"uri": "mem://b"}))
    acknowledged = "notifications/subscriptions/acknowledged"
    wanted: Message = {"toolsListChanged": True, "resourceSubscriptions": ["mem://a"]}
    assert heard(peer, 1) == [
        (acknowledged, {"notifications": wanted}),
        ("notifications/tools/list_changed", {}),
        ("notifications/resources/updated", {"uri": "mem://a"}),
    ]
    assert heard(peer, "1") == [
        (acknowledged, {"notifications": {"toolsListChanged": True}}),
        ("notifications/tools/list_changed", {}),
    ]
    cancel = {"method": "notifications/cancelled", "params": {"requestId": 1}}
    await peer.send({"jsonrpc": "2.0", **cancel})
    await peer.request(era.call(5, "add_tool", {"name": "n2"}))
    await peer.until(lambda m: len(heard(peer, "1")) == 3)
    assert len(heard(peer, 1)) == 3
    stamped = len(heard(peer, 1)) + len(heard(peer, "1"))
    assert len([m for m in peer.seen if "method" in m]) == stamped  # nothing without a stamp
    assert peer.answers(1) == peer.answers("1") == []


@case(eras=[MODERN])
async def test_a_listen_for_nothing_is_acknowledged_and_silent(peer: Peer, era: Dialect) -> None:
    """BC-157: `{}`, and a filter of the wrong shape or of ten thousand URIs."""
    await peer.send(listen(1))
    await peer.until(is_about(1))  # type: ignore[arg-type]  # a test for messages
    assert heard(peer, 1) == [("notifications/subscriptions/acknowledged", {"notifications": {}})]
    uris = [f"mem://{at}" for at in range(10_000)]
    assert code_of(await peer.request(listen(2, resourceSubscriptions=uris))) == -32602
    for id, wrong in ((3, {"toolsListChanged": 1}), (4, {"resourceSubscriptions": "mem://a"})):
        assert code_of(await peer.request(listen(id, **wrong))) == -32602
    bad = MODERN.request(5, "subscriptions/listen", {"notifications": []})
    assert code_of(await peer.request(bad)) == -32602
    await peer.send(listen("witness", toolsListChanged=True))
    await peer.request(era.call(6, "add_tool", {"name": "n1"}))
    await peer.until(lambda m: len(heard(peer, "witness")) == 2)
    assert len(heard(peer, 1)) == 1


@case(eras=[MODERN])
async def test_five_hundred_listens_come_and_go(peer: Peer, era: Dialect) -> None:
    """BC-157: opened and dropped within 0 to 5 ms while the list changes."""
    random = Random(157)
    for at in range(500):
        await peer.send(listen(at, toolsListChanged=True))
        if at % 50 == 0:
            await peer.send(era.call(f"tool{at}", "add_tool", {"name": f"n{at}"}))
        if random.random() < 0.5:
            await asyncio.sleep(random.random() * 0.005)
        cancel = {"method": "notifications/cancelled", "params": {"requestId": at}}
        await peer.send({"jsonrpc": "2.0", **cancel})
    await peer.send(listen("last", toolsListChanged=True))
    await peer.request(era.call("x", "add_tool", {"name": "last"}))
    await peer.until(lambda m: len(heard(peer, "last")) == 2)
    before = len(peer.seen)
    await peer.request(era.call("y", "add_tool", {"name": "very_last"}))
    await peer.until(lambda m: len(heard(peer, "last")) == 3)
    told = [m for m in peer.seen[before:] if "method" in m]
    assert len(told) == 1, "only the last one is still there"


def test_nobody_else_hears_a_listen() -> None:
    """BC-157: no broadcast to a stateless client; a handshake client has its own ways."""
    with Exchange() as exchange:

        async def listens(first: MemoryPeer, other: MemoryPeer, old: MemoryPeer) -> None:
            await LEGACY.greet(old)
            result_of(await other.request(MODERN.request(1, "tools/list")))
            await first.send(listen(1, toolsListChanged=True, resourceSubscriptions=["mem://a"]))
            await old.request(LEGACY.request(1, "resources/subscribe", {"uri": "mem://b"}))
            for id, uri in ((2, "mem://a"), (3, "mem://b"), (4, "mem://c")):
                await first.request(MODERN.call(id, "touch_resource", {"uri": uri}))
            await first.request(MODERN.call(5, "add_tool", {"name": "n"}))
            await asyncio.sleep(1.0)
            assert len(heard(first, 1)) == 3
            assert [m for m in other.seen if "method" in m] == []
            told = [(m["method"], m.get("params", {})) for m in old.seen if "method" in m]
            assert told == [
                ("notifications/resources/updated", {"uri": "mem://b"}),
                ("notifications/tools/list_changed", {}),
            ]

        exchange.run(listens, peers=3)


def test_a_listen_carries_no_progress_and_no_log() -> None:
    """BC-157: what belongs to a call goes to the call."""
    with Exchange() as exchange:

        async def listens(peer: MemoryPeer) -> None:
            await peer.send(listen(1, toolsListChanged=True))
            meta = {"progressToken": 9, "io.modelcontextprotocol/logLevel": "debug"}
            await peer.request(MODERN.call(2, "progress", {"n": 3, "delay_ms": 1}, meta=meta))
            await peer.request(MODERN.call(3, "logs", {"n": 3}, meta=meta))
            assert len(heard(peer, 1)) == 1
            assert len(peer.told("notifications/progress")) == 3
            assert len(peer.told("notifications/message")) == 3

        exchange.run(listens)


@pytest.mark.parametrize("count", [500])
def test_everything_of_a_connection_goes_with_it(count: int) -> None:
    """BC-157, the kind: opened and left five hundred times, with something of each kind open."""
    with Exchange() as exchange:
        for _ in range(count):

            async def comes(peer: MemoryPeer) -> None:
                await LEGACY.greet(peer, {"elicitation": {}})
                await peer.send(
                    listen("l", toolsListChanged=True),
                    LEGACY.request(1, "resources/subscribe", {"uri": "mem://a"}),
                    LEGACY.call(2, "sleep", {"ms": 60_000, "tag": "t"}),
                    LEGACY.call(3, "ask_first", {"target": "t"}),
                    LEGACY.call(4, "ask_midway", {"q": "?"}),
                )
                await peer.answer(1)

            exchange.run(comes)  # nothing may be left: the exchange looks


def test_a_server_that_stops_ends_its_listens_with_a_result() -> None:
    """MCP 2026-07-28 basic/patterns/subscribe: the result is the orderly end of a listen."""
    exchange = Exchange(Knobs())

    async def stops(peer: MemoryPeer) -> None:
        await peer.send(listen(1, toolsListChanged=True))
        await peer.until(is_about(1))  # type: ignore[arg-type]  # a test for messages
        await exchange.fixture.server.stop()
        ended = result_of(await peer.answer(1))
        assert cast(Message, ended["_meta"])[SUBSCRIPTION] == 1
        await exchange.fixture.server.start()
        assert text_of(await peer.request(MODERN.call(2, "echo", {"text": "x"}))) == "x"

    with exchange:
        exchange.run(stops)
