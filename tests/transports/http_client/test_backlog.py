"""A server that asks faster than it takes the answers: it is the one who waits."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from raxol_mcp.transports.http_client.backlog import AT_ONCE, MANY
from raxol_mcp.transports.http_client.reading import EVENTS_A_TURN
from raxol_mcp.transports.link import Dialect
from raxol_mcp.wire.jsonrpc import Notification, Request, Response
from tests.transports.http_client.peers import (
    Peer,
    Seen,
    Wire,
    dialed,
    handshaken,
    result_line,
    sse,
    stateless_call,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from raxol_mcp.transports.http_client.link import HttpLink

COUNT = 1000


def pings(count: int = COUNT) -> bytes:
    return b"".join(
        sse(b'{"jsonrpc":"2.0","id":"q%d","method":"ping"}' % number) for number in range(count)
    )


def answering(link: HttpLink) -> Callable[[str, int | None, object], None]:
    """Answer every request, as a core answers a ping: at once."""
    keys = iter(range(100, 100 + 2 * COUNT))

    def answer(_what: str, _key: int | None, message: object) -> None:
        if isinstance(message, Request):
            link.send(Response(message.id, {}), next(keys))

    return answer


def test_questions_are_not_read_faster_than_their_answers_are_taken() -> None:
    """Ours: every queue has a bound, and descriptors are few"""

    async def main() -> None:
        taking = asyncio.Event()

        async def script(seen: Seen, wire: Wire) -> None:
            if seen.rpc == "answer":
                await taking.wait()
                await wire.reply(202)
                return
            await wire.events(pings())
            await wire.send(sse(result_line(seen.id)))
            wire.end()

        async with Peer(script) as peer, dialed(peer) as (link, port):
            port.on_told = answering(link)
            link.send(stateless_call(7), 7)
            await peer.until(lambda: len(peer.seen) == 1 + AT_ONCE)
            for _ in range(50):  # whoever would go on reading does so now
                await asyncio.sleep(0)
            assert peer.connections == 1 + AT_ONCE
            assert len(port.told) <= MANY + EVENTS_A_TURN
            taking.set()
            await port.until(lambda: ("received", 7, Response(7, {})) in port.told)
            await peer.until(lambda: len(peer.seen) == 1 + COUNT)
            assert peer.connections <= 2 + AT_ONCE

    asyncio.run(main())


def test_so_it_is_on_the_streams_of_a_session() -> None:
    """MCP 2025-11-25 basic/transports §Listening for Messages from the Server"""

    async def main() -> None:
        async def script(seen: Seen, wire: Wire) -> None:
            if seen.rpc == "initialize":
                await wire.json(result_line(seen.id))
            elif seen.rpc == "answer":
                await wire.gone()
            elif seen.method == "GET":
                await wire.events(pings())
                await wire.gone()
            else:
                await wire.reply(202)

        async with Peer(script) as peer, dialed(peer) as (link, port):
            port.on_told = answering(link)
            await handshaken(link, port)
            await peer.until(lambda: peer.methods().count("answer") == AT_ONCE)
            for _ in range(50):
                await asyncio.sleep(0)
            assert peer.methods().count("answer") == AT_ONCE
            assert MANY <= len(port.told) <= MANY + EVENTS_A_TURN

    asyncio.run(main())


def test_so_it_is_on_the_stream_of_two_endpoints() -> None:
    """MCP 2024-11-05 basic/transports §HTTP with SSE"""

    async def main() -> None:
        async def script(seen: Seen, wire: Wire) -> None:
            if seen.method == "GET":
                await wire.events(b"event: endpoint\ndata: /post\n\n" + pings())
            await wire.gone()

        async with (
            Peer(script) as peer,
            dialed(peer, dialect=Dialect.TWO_ENDPOINTS) as (link, port),
        ):
            port.on_told = answering(link)
            await peer.until(lambda: peer.methods().count("answer") == AT_ONCE)
            for _ in range(50):
                await asyncio.sleep(0)
            assert MANY <= len(port.told) <= MANY + EVENTS_A_TURN

    asyncio.run(main())


def test_answers_do_not_hold_up_what_else_is_said() -> None:
    """Ours: a server is told that a call is cancelled, though it takes no answer"""

    async def main() -> None:
        async def script(seen: Seen, wire: Wire) -> None:
            if seen.rpc == "answer":
                await wire.gone()
            await wire.reply(202)

        async with Peer(script) as peer, dialed(peer) as (link, port):
            for key in range(2 * AT_ONCE):
                link.send(Response(f"q{key}", {}), key)
            await peer.until(lambda: peer.methods().count("answer") == AT_ONCE)
            link.send(Notification("notifications/cancelled"), 100)
            await port.until(lambda: ("sent", 100, None) in port.told)

    asyncio.run(main())


def test_notifications_are_sent_a_few_at_once() -> None:
    """Ours: a thousand of them are not a thousand connections"""

    async def main() -> None:
        async def script(_seen: Seen, wire: Wire) -> None:
            await wire.reply(202)

        async with Peer(script) as peer, dialed(peer) as (link, port):
            for key in range(200):
                link.send(Notification("notifications/x"), key)
            await port.next(200)
            assert {what for what, _, _ in port.told} == {"sent"}
            assert peer.connections <= AT_ONCE

    asyncio.run(main())
