"""K20: a stream ends with its reader, a session when nobody uses it, and nothing is left of either.

Sessions that nobody deleted were kept for ever, and a subscription outlived the client that left
while it was being attached.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Final, cast

import pytest

from tests.cases.dialects import ASKABLE, LEGACY, MODERN, text_of
from tests.cases.fixture_server import Knobs
from tests.cases.http_peers import JSON, HttpExchange, HttpPeer, bearer
from tests.cases.peers import Message
from tests.transports.http.client import Open

SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"
COUNT: Final = 500
# Calls of sessions go on when their clients have left.
ROOM: Final = Knobs(limits={"max_in_flight": 1000, "max_in_flight_per_connection": 1000})


def listen(id: object, **notifications: object) -> Message:
    """Write a `subscriptions/listen`."""
    return MODERN.request(id, "subscriptions/listen", {"notifications": notifications})


def test_sessions_that_nobody_uses_are_freed() -> None:
    """BC-085. Three hundred greetings and never a DELETE; who comes back is told to greet anew."""
    with HttpExchange(session_timeout=2.0) as exchange:

        async def floods(peer: HttpPeer) -> None:
            tasks = len(asyncio.all_tasks())
            last = ""
            for _ in range(300):
                await LEGACY.greet(peer)
                last = str(peer.session["mcp-session-id"])
                peer.session = {}
            assert exchange.app.stats()["sessions"] == 300
            await asyncio.sleep(5.0)
            assert exchange.left() == {}
            assert len(asyncio.all_tasks()) == tasks
            echo = LEGACY.call(1, "echo", {"text": "x"})
            assert (await peer.say(echo, {"mcp-session-id": last})).status == 404
            await LEGACY.greet(peer)
            fresh = await peer.say(LEGACY.call(2, "echo", {"text": "fresh"}))
            assert text_of(fresh.json()) == "fresh"

        exchange.run(floods, listens=False)


def test_more_greetings_than_there_is_room_for_end_the_oldest() -> None:
    """BC-085, the kind: a flood of greetings is bounded whatever the idle time."""
    with HttpExchange(max_sessions=50) as exchange:

        async def floods(peer: HttpPeer) -> None:
            ids = []
            for _ in range(300):
                await LEGACY.greet(peer)
                ids.append(str(peer.session["mcp-session-id"]))
                peer.session = {}
                assert exchange.app.stats()["sessions"] <= 50
            ping = LEGACY.request(1, "ping")
            alive = [(await peer.say(ping, {"mcp-session-id": id})).status for id in ids]
            assert alive == [404] * 250 + [200] * 50
            for id in ids[250:]:
                assert (
                    await peer.http.send("DELETE", "/mcp", {"mcp-session-id": id})
                ).status == 204

        exchange.run(floods, listens=False)


def test_a_listen_says_what_it_will_tell_then_that_and_nothing_else() -> None:
    """BC-157. MCP 2026-07-28 basic/patterns/subscribe, each stream with its own stamp."""
    with HttpExchange(tokens=True) as exchange:

        async def listens(alice: HttpPeer, bob: HttpPeer, session: HttpPeer) -> None:
            await LEGACY.greet(session)
            wanted: Message = {"toolsListChanged": True, "resourceSubscriptions": ["mem://a"]}
            first = alice.begin(listen(1, **wanted, zzz=True))
            other = bob.begin(listen(1, toolsListChanged=True))
            silent = bob.begin(listen("1"))
            streams = (first, other, silent)
            honoured: list[Message] = [wanted, {"toolsListChanged": True}, {}]
            for stream, id, expected in zip(streams, (1, 1, "1"), honoured, strict=True):
                message = await stream.message()
                assert message["method"] == "notifications/subscriptions/acknowledged"
                assert message["params"]["notifications"] == expected
                assert message["params"]["_meta"][SUBSCRIPTION] == id
            await alice.say(MODERN.call(2, "add_tool", {"name": "n1"}))
            for id, uri in ((3, "mem://a"), (4, "mem://b")):
                await alice.say(MODERN.call(id, "touch_resource", {"uri": uri}))
            await asyncio.sleep(1.0)
            changed, updated = "tools/list_changed", "resources/updated"
            told = [
                [str(m["method"]).removeprefix("notifications/") for m in s.reply.messages()[1:]]
                for s in streams
            ]
            assert told == [[changed, updated], [changed], []]
            assert first.reply.messages()[2]["params"]["uri"] == "mem://a"
            heard = [m["method"] for m in session.seen if "method" in m]
            assert heard == [f"notifications/{changed}"], "its own, and nothing it did not ask for"
            for stream in streams:
                stream.leave()
                await stream.ended()

        exchange.run(listens, peers=3, tokens=("alice", "bob", "bob"))


def test_a_listen_that_is_left_while_it_begins_is_gone() -> None:
    """BC-157: five hundred, each left within 0 to 5 ms, while the list changes."""
    random = Random(157)
    with HttpExchange() as exchange:

        async def comes_and_goes(peer: HttpPeer, at: int) -> None:
            stream = peer.begin(listen(at, toolsListChanged=True))
            if random.random() < 0.8:
                await asyncio.sleep(random.random() * 0.005)
            stream.leave()
            await stream.ended()

        async def listens(peer: HttpPeer) -> None:
            for at in range(COUNT):
                if at % 50 == 0:
                    await peer.say(MODERN.call("t", "add_tool", {"name": f"n{at}"}))
                await comes_and_goes(peer, at)
            assert exchange.left() == {}
            last = peer.begin(listen("last", toolsListChanged=True))
            await last.message()
            await peer.say(MODERN.call("t", "add_tool", {"name": "last"}))
            assert (await last.message())["params"]["_meta"][SUBSCRIPTION] == "last"
            last.leave()
            await last.ended()

        exchange.run(listens)


# -- five hundred of each kind, left at any moment ------------------------------------------------

# Begins something, and says which requests it consists of.
Begin = Callable[[HttpPeer, int], Awaitable[list[Open]]]


async def a_call(peer: HttpPeer, at: int) -> list[Open]:
    """A stateless call that runs."""
    return [peer.begin(MODERN.call(at, "sleep", {"ms": 60_000, "tag": str(at)}))]


async def a_stream(peer: HttpPeer, at: int) -> list[Open]:
    """A stateless call that reports."""
    call = MODERN.call(at, "progress", {"n": 100, "delay_ms": 1}, meta={"progressToken": at})
    return [peer.begin(call)]


async def a_listen(peer: HttpPeer, at: int) -> list[Open]:
    """A subscription."""
    return [peer.begin(listen(at, toolsListChanged=True, resourceSubscriptions=["mem://a"]))]


async def a_session_stream(peer: HttpPeer, at: int) -> list[Open]:
    """The stream of a session, and the session."""
    await LEGACY.greet(peer)
    return [peer.listen()]


async def a_session_call(peer: HttpPeer, at: int) -> list[Open]:
    """A session with calls of each kind."""
    await LEGACY.greet(peer, ASKABLE)
    return [
        peer.begin(LEGACY.call(1, "sleep", {"ms": 60_000, "tag": str(at)})),
        peer.begin(LEGACY.call(2, "confirm_delete", {"target": str(at)})),
        peer.begin(LEGACY.call(3, "ask_midway", {"q": "?"})),
        peer.begin(LEGACY.call(4, "progress", {"n": 100, "delay_ms": 1})),
        peer.begin(LEGACY.request(5, "resources/subscribe", {"uri": "mem://a"})),
    ]


async def a_resumption(peer: HttpPeer, at: int) -> list[Open]:
    """A call whose client comes back for it, and leaves again."""
    await LEGACY.greet(peer)
    call = peer.begin(LEGACY.call(1, "sleep", {"ms": 60_000, "tag": str(at)}))
    event = (await call.event()).id
    call.leave()
    return [call, peer.listen(event)]


async def an_old_stream(peer: HttpPeer, at: int) -> list[Open]:
    """The two URLs of 2024-11-05, with a call."""
    stream = peer.listen(path="/mcp/sse")
    path = (await stream.event()).data.decode()
    greeting = {"protocolVersion": "2024-11-05", "capabilities": {}}
    return [
        stream,
        peer.begin(LEGACY.request(0, "initialize", greeting), path=path),
        peer.begin(LEGACY.call(1, "sleep", {"ms": 60_000, "tag": str(at)}), path=path),
    ]


async def half_a_body(peer: HttpPeer, at: int) -> list[Open]:
    """A request whose body does not come."""
    opened = peer.http.open("POST", "/mcp", {**JSON, **bearer(peer.token)}, [])
    opened.give({"type": "http.request", "body": b'{"jsonrpc"', "more_body": True})
    return [opened]


async def a_greeting(peer: HttpPeer, at: int) -> list[Open]:
    """A greeting whose client does not wait for the answer."""
    greeting = {"protocolVersion": "2025-11-25", "capabilities": {}}
    return [peer.begin(LEGACY.request(1, "initialize", greeting))]


KINDS: Final[list[Begin]] = [
    *(a_call, a_stream, a_listen, a_session_stream, a_session_call, a_resumption),
    *(an_old_stream, half_a_body, a_greeting),
]


@pytest.mark.parametrize("begin", KINDS, ids=lambda begin: begin.__name__)
def test_five_hundred_of_each_kind_leave_nothing(begin: Begin) -> None:
    """BC-085 and BC-157, the kind: left at any moment, and everything is as it was.

    A session outlives its streams by design: it is deleted, or its idle time passes.
    """
    random = Random(20)
    with HttpExchange(ROOM, session_timeout=5.0, body_timeout=5.0) as exchange:

        async def comes_and_goes(peer: HttpPeer, at: int) -> None:
            opened = await begin(peer, at)
            if random.random() < 0.9:
                await asyncio.sleep(random.random() * 0.02)
            random.shuffle(opened)
            for each in opened:
                each.leave()
            for each in opened:
                await each.ended()
            if peer.session and random.random() < 0.5:
                await peer.http.send("DELETE", "/mcp", dict(peer.session))
            peer.session = {}

        async def many(*peers: HttpPeer) -> None:
            tasks = len(asyncio.all_tasks())
            for at in range(0, COUNT, len(peers)):
                await asyncio.gather(
                    *(comes_and_goes(peer, at + number) for number, peer in enumerate(peers))
                )
            await asyncio.sleep(400.0)  # past every timeout of a call that a session keeps
            assert exchange.left() == {}
            assert len(asyncio.all_tasks()) == tasks
            reply = await peers[0].say(MODERN.call(1, "echo", {"text": "alive"}))
            assert text_of(cast("Message", reply.json())) == "alive"

        exchange.run(many, peers=10, listens=False)


def test_a_server_that_stops_ends_every_stream_in_order() -> None:
    """MCP 2026-07-28 basic/patterns/subscribe: a listen ends with its result, others just end."""
    exchange = HttpExchange()

    async def stops(peer: HttpPeer) -> None:
        await LEGACY.greet(peer)
        opened = [
            peer.begin(listen(1, toolsListChanged=True)),
            peer.listen(),
            peer.listen(path="/mcp/sse"),
            peer.begin(LEGACY.call(2, "sleep", {"ms": 60_000, "tag": "a"})),
            peer.begin(MODERN.call(3, "sleep", {"ms": 60_000, "tag": "b"})),
        ]
        for stream in opened[:4]:
            await stream.head()
        await asyncio.sleep(0.1)
        await exchange.app.stop()
        replies = [await each.ended() for each in opened]
        assert all(reply.complete for reply in replies)
        result = replies[0].messages()[-1]
        assert (result["id"], result["result"]["_meta"][SUBSCRIPTION]) == (1, 1)
        assert (await peer.say(MODERN.request(4, "tools/list"))).status == 503
        await exchange.app.start()
        assert (await peer.say(MODERN.request(4, "tools/list"))).status == 200
        assert (await peer.say(LEGACY.request(5, "ping"))).status == 404
        peer.session = {}

    with exchange:
        exchange.run(stops, listens=False)
