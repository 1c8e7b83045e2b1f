"""Which kept connection is used again, over real sockets."""

from __future__ import annotations

import asyncio
import socket

import pytest

from raxol_mcp.transports.http_client import kept
from raxol_mcp.transports.http_client.kept import is_quiet
from raxol_mcp.wire.jsonrpc import Response
from tests.transports.http_client.peers import (
    Peer,
    Seen,
    Wire,
    dialed,
    handshaken,
    result_line,
    stateless_call,
)


async def once(seen: Seen, wire: Wire) -> None:
    """Answer as if the connection were kept, and close it."""
    if seen.rpc == "initialize":
        await wire.json(result_line(seen.id))
    elif seen.id is None:
        await wire.reply(405 if seen.method == "GET" else 202)
    else:
        await wire.result(seen)
    wire.end()


def test_a_server_that_closes_unannounced_answers_every_call() -> None:
    """Ours: RFC 9112 §9.6 has it say so, and servers do not"""

    async def main() -> None:
        async with Peer(once) as peer, dialed(peer) as (link, port):
            await handshaken(link, port)
            for key in range(3, 33):
                link.send(stateless_call(key), key)
                # The type of a lambda with a default is not inferred.
                await port.until(lambda key=key: len(port.told) == key - 2)  # type: ignore[misc]
            assert [told for told, _, _ in port.told] == ["received"] * 30
            assert len({seen.connection for seen in peer.seen}) == len(peer.seen)

    asyncio.run(main())


@pytest.mark.parametrize("end", ["closed", "reset", "said something"])
def test_a_kept_connection_that_the_peer_is_done_with_carries_nothing(end: str) -> None:
    """RFC 9110 §9.2.2: what is lost in it could not be sent again"""

    async def main() -> None:
        wires: list[Wire] = []

        async def script(seen: Seen, wire: Wire) -> None:
            wires.append(wire)
            await wire.result(seen)

        async with Peer(script) as peer, dialed(peer) as (link, port):
            for key in (7, 8, 9):
                link.send(stateless_call(key), key)
                await port.next(key - 6)
            assert {seen.connection for seen in peer.seen} == {1}
            # In the same turn of the loop: nobody has read what arrives.
            if end == "closed":
                wires[-1].writer.transport.get_extra_info("socket")._sock.shutdown(socket.SHUT_WR)
            elif end == "reset":
                wires[-1].reset()
            else:
                wires[-1].writer.write(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
            link.send(stateless_call(10), 10)
            await port.next(4)
            assert port.told[-1] == ("received", 10, Response(10, {}))
            assert peer.seen[-1].connection == 2

    asyncio.run(main())


def test_an_answer_that_nobody_asked_for_answers_nothing() -> None:
    """RFC 9112 §9.2: what comes on a connection without a request is dropped with it"""

    async def main() -> None:
        wires: list[Wire] = []

        async def script(seen: Seen, wire: Wire) -> None:
            wires.append(wire)
            await wire.result(seen, {"for": seen.id})

        async with Peer(script) as peer, dialed(peer) as (link, port):
            for key in (7, 8, 9):
                link.send(stateless_call(key), key)
                await port.next(key - 6)
            await wires[-1].json(result_line(10, {"for": "nobody"}))
            for _ in range(20):  # until it was read
                await asyncio.sleep(0)
            link.send(stateless_call(10), 10)
            await port.next(4)
            assert port.told[-1] == ("received", 10, Response(10, {"for": 10}))
            assert peer.seen[-1].connection == 2

    asyncio.run(main())


def test_the_moment_for_a_late_close_is_given_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a peer that keeps its connections costs a link one moment"""
    given: list[float] = []
    sleep = asyncio.sleep

    async def noted(delay: float) -> None:
        given.append(delay)
        await sleep(0)

    async def main() -> None:
        async def script(seen: Seen, wire: Wire) -> None:
            await wire.result(seen)

        async with Peer(script) as peer, dialed(peer) as (link, port):
            monkeypatch.setattr(asyncio, "sleep", noted)
            for key in (7, 8, 9, 10):
                link.send(stateless_call(key), key)
                await port.next(key - 6)
            monkeypatch.setattr(asyncio, "sleep", sleep)
            assert peer.connections == 1

    asyncio.run(main())
    assert [delay for delay in given if delay] == [kept._MOMENT]


def test_a_call_that_ends_while_a_connection_is_looked_at_leaves_nothing() -> None:
    """Ours: `abort` may come at every await"""

    async def main() -> None:
        async def script(seen: Seen, wire: Wire) -> None:
            await wire.result(seen)

        async with Peer(script) as peer, dialed(peer) as (link, port):
            link.send(stateless_call(7), 7)
            await port.next()
            for _ in range(6):  # until the head of the answer is out of the way
                await asyncio.sleep(0)
            link.send(stateless_call(8), 8)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            link.abort(8)
            await peer.until(lambda: peer.left == 1)
            assert [seen.id for seen in peer.seen] == [7]

    asyncio.run(main())


def test_what_has_no_socket_any_more_is_not_quiet() -> None:
    """Ours: nothing is known of it"""

    async def main() -> None:
        here, there = socket.socketpair()
        transport, _ = await asyncio.get_running_loop().create_connection(
            asyncio.Protocol, sock=here
        )
        assert is_quiet(transport)
        there.send(b"x")
        assert not is_quiet(transport)
        transport.abort()
        assert not is_quiet(transport)
        there.close()
        await asyncio.sleep(0)

    asyncio.run(main())
