"""K09: one bad request, or one bad tool, ends nothing but itself; its neighbours do not notice.

A result that was nothing ended the process with every session in it, and so did a tool that raised
SystemExit.
"""

from __future__ import annotations

import asyncio
import json
from typing import Final

import pytest

from tests.cases.dialects import BOTH_ERAS, LEGACY, MODERN, Dialect, text_of
from tests.cases.http.sockets import serving
from tests.cases.http_peers import HttpExchange, HttpPeer, bearer, headers_of
from tests.cases.peers import Message, strict
from tests.cases.test_k09_one_bad_input import BAD_LINES

FAILING: Final[list[tuple[str, Message]]] = [
    ("tools/call", {"name": "boom", "arguments": {}}),
    ("tools/call", {"name": "returns_none", "arguments": {}}),
    ("resources/read", {"uri": "mem://none"}),
    ("prompts/get", {"name": "none"}),
    ("tools/call", {"name": "exits", "arguments": {}}),
    ("tools/call", {"name": "cancels_itself", "arguments": {}}),
    ("tools/call", {"name": "boom_secret", "arguments": {}}),
    ("tools/call", {"name": "out", "arguments": {"mode": "cycle"}}),
    ("resources/read", {"uri": "mem://boom"}),
]


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
def test_whatever_fails_is_answered_and_the_next_one_too(era: Dialect) -> None:
    """BC-049. A JSON-RPC answer with a status that is none of a broken server."""
    with HttpExchange() as exchange:

        async def fails(peer: HttpPeer) -> None:
            await era.greet(peer)
            for id, (method, params) in enumerate(FAILING):
                reply = await peer.say(era.request(id, method, params))
                answer = strict(reply.body)
                assert (reply.status, answer["id"]) == (200, id), method
                assert b"hunter2" not in reply.body
                assert b"Traceback" not in reply.body
                alive = await peer.say(era.call("a", "echo", {"text": "alive"}))
                assert text_of(alive.json()) == "alive"

        exchange.run(fails)


def test_a_process_outlives_a_tool_that_would_end_it() -> None:
    """BC-049: SystemExit and its like, under a real HTTP server, beside an open stream."""

    async def exits() -> None:
        async with serving() as served:
            reader, writer = await served.connect()
            writer.write(b"GET /mcp/sse HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            await reader.readuntil(b"endpoint")
            for id, (method, params) in enumerate(FAILING):
                message = MODERN.request(id, method, params)
                reply = await served.ask("POST", "/mcp", b"Host: 127.0.0.1\r\n", message)
                assert (reply.status, reply.json()["id"]) == (200, id)
            alive = MODERN.call("a", "echo", {"text": "alive"})
            reply = await served.ask("POST", "/mcp", b"Host: 127.0.0.1\r\n", alive)
            assert text_of(reply.json()) == "alive"
            assert not reader.at_eof()
            writer.close()
            await writer.wait_closed()

    asyncio.run(exits())


BAD_BODIES: Final = [
    *BAD_LINES,
    json.dumps([MODERN.request(1, "tools/list")]).encode(),
    b'{"jsonrpc":"2.0","id":1,"result":{}}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"good"}}',
    b'{"jsonrpc":"2.0","method":"notifications/initialized","params":{"x":1}}',
    b'{"jsonrpc":"2.0","id":"good","method":"ping"}',
    b'{"jsonrpc":"2.0","id":"good","method":"initialize","params":{}}',
]


@pytest.mark.parametrize("body", BAD_BODIES, ids=range(len(BAD_BODIES)))
def test_neighbours_do_not_notice_a_bad_request(body: bytes) -> None:
    """BC-049, the kind: between two good calls of two clients, in both eras, with every header."""
    with HttpExchange(tokens=True) as exchange:

        async def one_bad(alice: HttpPeer, bob: HttpPeer, bad: HttpPeer) -> None:
            await LEGACY.greet(bob)
            waits = {"ms": 100, "tag": "alice"}
            first = alice.begin(MODERN.call("good", "sleep", waits))
            second = bob.begin(LEGACY.call("good", "sleep", {**waits, "tag": "bob"}))
            await asyncio.sleep(0.01)
            good = headers_of(MODERN.call(1, "echo", {"text": "x"}))
            for headers in (good, headers_of(None), {**good, "mcp-session-id": "x"}):
                reply = await bad.http.send("POST", "/mcp", {**headers, **bearer("bob")}, body)
                assert 200 <= reply.status < 500
                assert reply.status != 200 or b"error" in reply.body
                assert "mcp-session-id" not in reply.headers
            assert text_of((await first.ended()).messages()[-1]) == "alice"
            assert text_of((await second.ended()).messages()[-1]) == "bob"

        exchange.run(one_bad, peers=3, tokens=("alice", "bob", "bob"))
