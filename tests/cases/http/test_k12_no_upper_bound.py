"""K12: everything a stranger may make larger has a bound, on every route.

One endpoint had a limit and its neighbour none; a body without a length was read to its end; and
one client took every worker there was.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import pytest

from tests.cases.dialects import BOTH_ERAS, LEGACY, MODERN, Dialect, text_of
from tests.cases.fixture_server import Knobs
from tests.cases.http.sockets import head_of, serving
from tests.cases.http_peers import JSON, HttpExchange, HttpPeer
from tests.cases.peers import Message
from tests.transports.http.client import Open, Reply

MIB: Final = 1024 * 1024
SMALL: Final = Knobs(limits={"max_message_bytes": 10_000})
SHARE: Final = 16
SHARES: Final = Knobs(limits={"max_in_flight": 32, "max_in_flight_per_connection": SHARE})
GIGABYTE: Final = "1073741824"
ECHO: Final = MODERN.call(1, "echo", {"text": "alive"})


def posted(exchange: HttpExchange, session: str) -> list[str]:
    """Every path of the running application that takes a POST, with the stream it belongs to."""
    routes = [path for path, route in exchange.app._routes.items() if "POST" in route]
    assert len(routes) >= 3
    return [f"{path}?session_id={session}" for path in routes]


async def streaming(peer: HttpPeer) -> tuple[Open, str]:
    """Open an old stream, and return its id with it."""
    stream = peer.listen(path="/mcp/sse")
    _, _, session = (await stream.event()).data.decode().partition("session_id=")
    return stream, session


async def endless(opened: Open) -> int:
    """Send a body without an end, until nobody takes it; return how much was taken."""
    taken = 0
    while not opened.task.done():
        opened.give({"type": "http.request", "body": b" " * 1000, "more_body": True})
        for _ in range(4):  # turns, not time
            await asyncio.sleep(0)
        taken += 1000
    return taken


@pytest.mark.parametrize("length", [GIGABYTE, "10001", "9" * 30])
def test_a_body_that_says_it_is_too_large_is_refused_unread(length: str) -> None:
    """BC-083. On every route that takes one."""
    with HttpExchange(SMALL) as exchange:

        async def sends(peer: HttpPeer) -> None:
            stream, session = await streaming(peer)
            for path in posted(exchange, session):
                headers = {**JSON, "content-length": length}
                opened = peer.http.open("POST", path, headers, [])  # and nothing of it comes
                assert (await opened.ended()).status == 413
                assert text_of((await peer.say(ECHO)).json()) == "alive"
            stream.leave()
            await stream.ended()

        exchange.run(sends)


def test_a_body_without_a_length_is_read_to_the_limit_and_no_further() -> None:
    """BC-083. Chunks have no length to look at before."""
    with HttpExchange(SMALL) as exchange:

        async def sends(peer: HttpPeer) -> None:
            stream, session = await streaming(peer)
            for path in posted(exchange, session):
                opened = peer.http.open("POST", path, JSON, [])
                assert await endless(opened) <= 12_000
                assert opened.reply.status == 413
                assert opened.reply.headers["connection"] == "close"
                assert text_of((await peer.say(ECHO)).json()) == "alive"
            stream.leave()
            await stream.ended()
            assert exchange.journal == ["start:echo:alive"] * len(posted(exchange, session))

        exchange.run(sends)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "identity, gzip", "x"])
def test_a_body_in_an_encoding_is_refused(encoding: str) -> None:
    """BC-083. A megabyte may inflate to a gigabyte: nothing is inflated here."""
    with HttpExchange(SMALL) as exchange:

        async def sends(peer: HttpPeer) -> None:
            stream, session = await streaming(peer)
            for path in posted(exchange, session):
                headers = {**JSON, "content-encoding": encoding}
                assert (await peer.http.send("POST", path, headers, b"\x1f\x8b")).status == 415
            stream.leave()
            await stream.ended()

        exchange.run(sends)


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
def test_on_a_socket_a_gigabyte_in_chunks_ends_at_the_limit(path: str) -> None:
    """BC-083. With a real HTTP server in between; a good client is served meanwhile."""

    async def floods() -> None:
        async with serving() as served:
            reader, writer = await served.connect()
            head = head_of(ECHO)
            writer.write(f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n".encode() + head)
            writer.write(b"Transfer-Encoding: chunked\r\n\r\n")
            chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
            sent = 0
            with suppress(ConnectionError):
                for _ in range(16_384):
                    writer.write(chunk)
                    await writer.drain()
                    sent += 65536
                    if sent == 4 * MIB:
                        alive = await served.ask("POST", "/mcp", b"Host: 127.0.0.1\r\n", ECHO)
                        assert text_of(alive.json()) == "alive"
            # What the sockets hold on the way is beyond the limit, and no more than that.
            assert sent < 32 * MIB
            with suppress(ConnectionError):
                assert b" 413 " in await reader.readline()
            writer.close()

    asyncio.run(floods())


def test_one_user_cannot_take_every_slot() -> None:
    """BC-089. A share of her own; what is beyond it is refused at once, and can be retried."""
    with HttpExchange(SHARES, tokens=True) as exchange:

        async def floods(alice: HttpPeer, bob: HttpPeer) -> None:
            loop = asyncio.get_running_loop()
            calls = [
                alice.begin(MODERN.call(at, "sleep", {"ms": 5000, "tag": "a"})) for at in range(500)
            ]
            await asyncio.sleep(0.3)
            before = loop.time()
            answer = await bob.say(MODERN.call(1, "echo", {"text": "x"}))
            assert text_of(answer.json()) == "x"
            assert loop.time() == before, "at once"
            outcomes: Counter[str] = Counter()
            for at, call in enumerate(calls):
                (message,) = (await call.ended()).messages()
                assert message["id"] == at, "each has exactly one answer"
                failed = message["result"].get("isError", False)
                outcomes[text_of(message, failed=failed)] += 1
            busy = '{"error":"server_busy","scope":"connection","retryable":true}'
            assert outcomes == {"a": SHARE, busy: 500 - SHARE}

        exchange.run(floods, peers=2, tokens=("alice", "bob"))


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
def test_more_connections_are_not_more_shares(era: Dialect) -> None:
    """BC-089, the kind: fifty sessions, or fifty addresses, of one user are one user."""
    with HttpExchange(SHARES, tokens=True) as exchange:

        async def floods(*peers: HttpPeer) -> None:
            *many, bob = peers
            for peer in peers:
                await era.greet(peer)
            calls = [
                peer.begin(era.call(at, "sleep", {"ms": 5000, "tag": "a"}))
                for peer in many
                for at in range(5)
            ]
            await asyncio.sleep(0.1)
            answers = [await bob.say(era.call(at, "echo", {"text": "x"})) for at in range(20)]
            assert [text_of(answer.json()) for answer in answers] == ["x"] * 20
            ends = [(await call.ended()).messages()[-1] for call in calls]
            done = [end for end in ends if not end["result"].get("isError", False)]
            assert len(done) == SHARE

        exchange.run(floods, peers=51, tokens=(*["alice"] * 50, "bob"), listens=False)


# -- every bound at its number ---------------------------------------------------------------------


async def sized(peer: HttpPeer, size: int) -> Reply:
    """Send a body of so many bytes."""
    text = json.dumps(MODERN.call(1, "echo", {"text": ""}))
    body = json.dumps(MODERN.call(1, "echo", {"text": "A" * (size - len(text))}))
    assert len(body) == size
    headers = {**peer_headers(), "content-length": None}
    return await peer.http.send("POST", "/mcp", headers, body.encode())


def peer_headers() -> dict[str, str | None]:
    """Write the headers of an echo."""
    return {
        **JSON,
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "echo",
    }


async def with_headers(peer: HttpPeer, size: int) -> Reply:
    """Send headers of so many bytes in all, names and values."""
    lines = [("host", "127.0.0.1:8000"), *((n, v or "") for n, v in peer_headers().items())]
    used = sum(len(name) + len(value) for name, value in lines)
    padding = ("x-padding", "p" * (size - used - len("x-padding")))
    body = json.dumps(ECHO).encode()
    return await peer.http.send("POST", "/mcp", [*lines[1:], padding], body)


async def nested(peer: HttpPeer, depth: int) -> Reply:
    """Send a message that nests so deep."""
    # The message, its params, its arguments, and the lists in those.
    rest = depth - 3
    body = json.dumps(MODERN.call(1, "echo", {"text": 0})).replace(
        '"text": 0', f'"text": {"[" * rest}{"]" * rest}'
    )
    return await peer.http.send("POST", "/mcp", peer_headers(), body.encode())


Send = Callable[[HttpPeer, int], Any]
BOUNDS: Final[list[tuple[Send, int, int, set[int]]]] = [
    (sized, 10_000, 413, {200}),
    (with_headers, 16 * 1024, 431, {200}),
    (nested, 128, 400, {200}),
]


@pytest.mark.parametrize(
    ("send", "limit", "refused", "taken"), BOUNDS, ids=["body", "headers", "depth"]
)
def test_a_limit_holds_at_its_number(send: Send, limit: int, refused: int, taken: set[int]) -> None:
    """BC-083, the kind: one below, at, one above, far above; the next request is served."""
    with HttpExchange(SMALL) as exchange:

        async def tries(peer: HttpPeer) -> None:
            for size in (limit - 1, limit, limit + 1, limit * 30):
                if send is nested and size > limit * 10:
                    continue  # the body's own limit comes first
                reply = await send(peer, size)
                assert reply.status in (taken if size <= limit else {refused}), size
                assert text_of((await peer.say(ECHO)).json()) == "alive"

        exchange.run(tries)


def test_sessions_and_streams_have_a_bound() -> None:
    """BC-085, the kind: the longest unused makes room; what is in use never does."""
    with HttpExchange(max_sessions=3, max_streams=3) as exchange:

        async def fills(*peers: HttpPeer) -> None:
            greeting: Message = {"protocolVersion": "2025-11-25", "capabilities": {}}
            initialize = LEGACY.request(1, "initialize", greeting)
            for peer in peers[:3]:
                await LEGACY.greet(peer)
                await asyncio.sleep(1.0)
            assert exchange.app.stats()["streams"] == 3
            refused = await peers[3].say(initialize)
            assert (refused.status, "mcp-session-id" in refused.headers) == (503, False)
            listen = MODERN.request(1, "subscriptions/listen", {"notifications": {}})
            assert (await peers[3].say(listen)).status == 503
            old = {"accept": "text/event-stream"}
            assert (await peers[3].http.send("GET", "/mcp/sse", old)).status == 503
            assert text_of((await peers[3].say(ECHO)).json()) == "alive"
            peers[0].leave()
            await asyncio.sleep(1.0)
            await LEGACY.greet(peers[3])
            gone = await peers[0].say(LEGACY.request(1, "ping"))
            assert gone.status == 404
            for peer in peers[1:]:
                assert (await peer.say(LEGACY.request(1, "ping"))).status == 200

        exchange.run(fills, peers=4)
