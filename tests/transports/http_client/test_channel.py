"""Requests past the breaker of their origin."""

from __future__ import annotations

import asyncio

import pytest

from raxol_mcp.core.breaker import BreakerState
from raxol_mcp.errors import Reason
from raxol_mcp.transports.http_client.channel import worth_a_retry
from raxol_mcp.transports.http_client.tables import Tables
from raxol_mcp.wire.jsonrpc import Response
from tests.transports.http_client.peers import (
    Peer,
    Port,
    Script,
    Seen,
    Wire,
    dialed,
    sse,
    stateless_call,
)


def statuses(*answers: int | str) -> Script:
    """Answer with each status in turn, or do nothing; then with results."""
    left = list(answers)

    async def script(seen: Seen, wire: Wire) -> None:
        match left.pop(0) if left else 200:
            case 200:
                await wire.result(seen)
            case "events":
                await wire.events(sse(b'{"jsonrpc":"2.0","method":"n"}'))
                await wire.gone()
            case "drop":
                wire.end()
            case int(status):
                await wire.reply(status)
            case _:
                await wire.gone()

    return script


async def told(port: Port, key: int) -> object:
    await port.until(lambda: any(of == key for _, of, _ in port.told))
    return next(value for _, of, value in port.told if of == key)


def test_five_failures_stop_all_clients_of_an_origin_and_one_probe_frees_them() -> None:
    """Check 64: nothing is sent while it is open, and half-open it lets one through"""

    async def main() -> None:
        # No time passes: a breaker that may try again at once is half-open.
        tables = Tables(recovery=0.0)
        breakers = tables.breakers
        async with (
            Peer(statuses(500, 503, 408, "drop", 599, "silent")) as peer,
            dialed(peer, tables=tables) as (link, port),
            dialed(peer, tables=tables) as (other, other_port),
        ):
            origin = f"http://127.0.0.1:{peer.port}"
            for key in range(1, 6):
                assert breakers.state(origin) is BreakerState.CLOSED
                link.send(stateless_call(key), key)
                assert isinstance(await told(port, key), Reason)
            assert breakers.state(origin) is BreakerState.OPEN
            link.send(stateless_call(6), 6)  # the probe; it is not answered
            await peer.until(lambda: len(peer.seen) == 6)
            other.send(stateless_call(7), 7)
            reason = await told(other_port, 7)
            assert reason == Reason("breaker_open")
            assert isinstance(reason, Reason)
            assert not reason.maybe_done
            assert len(peer.seen) == 6
            link.abort(6)  # it said nothing, so the next is the probe
            await peer.until(lambda: peer.left >= 1)
            other.send(stateless_call(8), 8)
            assert await told(other_port, 8) == Response(8, {})
            assert breakers.state(origin) is BreakerState.CLOSED

    asyncio.run(main())


def test_while_it_is_open_nothing_is_sent() -> None:
    """Check 64"""

    async def main() -> None:
        tables = Tables(threshold=1)
        async with Peer(statuses(500)) as peer, dialed(peer, tables=tables) as (link, port):
            for key in (1, 2, 3):
                link.send(stateless_call(key), key)
                await told(port, key)
            reasons = [value for _, _, value in port.told]
            assert reasons == [Reason("http", 500), *[Reason("breaker_open")] * 2]
            assert len(peer.seen) == 1

    asyncio.run(main())


@pytest.mark.parametrize("status", [302, 400, 401, 403, 404, 405, 413, 429, 501])
def test_one_client_cannot_shut_out_the_others(status: int) -> None:
    """B13: a wrong credential, a quota or a bad request of one"""

    async def main() -> None:
        tables = Tables(threshold=1)
        async with Peer(statuses(status)) as peer, dialed(peer, tables=tables) as (link, port):
            link.send(stateless_call(1), 1)
            await told(port, 1)
            assert len(tables.breakers) == 0

    asyncio.run(main())


def test_a_pause_that_is_asked_for_proves_nothing() -> None:
    """Ours: 429 neither opens a breaker nor closes it"""

    async def main() -> None:
        tables = Tables(threshold=2)
        async with (
            Peer(statuses(500, 429, 500)) as peer,
            dialed(peer, tables=tables) as (link, port),
        ):
            for key in (1, 2, 3):
                link.send(stateless_call(key), key)
                await told(port, key)
            origin = f"http://127.0.0.1:{peer.port}"
            assert tables.breakers.state(origin) is BreakerState.OPEN

    asyncio.run(main())


def test_a_stream_that_goes_on_has_already_proved_that_the_origin_works() -> None:
    """Ours: a subscription must not be the probe for hours"""

    async def main() -> None:
        tables = Tables(threshold=1, recovery=0.0)
        async with (
            Peer(statuses(500, "events")) as peer,
            dialed(peer, tables=tables) as (link, port),
        ):
            for key in (1, 2):
                link.send(stateless_call(key), key)
                await told(port, key)
            assert len(tables.breakers) == 0

    asyncio.run(main())


def test_another_origin_is_another_matter() -> None:
    """Check 64: the key is scheme, host and port"""

    async def main() -> None:
        tables = Tables(threshold=1)
        async with Peer(statuses(500)) as bad, Peer(statuses()) as good:
            async with dialed(bad, tables=tables) as (link, port):
                link.send(stateless_call(1), 1)
                await told(port, 1)
            async with dialed(good, tables=tables) as (link, port):
                link.send(stateless_call(1), 1)
                assert await told(port, 1) == Response(1, {})

    asyncio.run(main())


def test_some_refusals_are_for_the_moment() -> None:
    """Ours: 409 comes while a server still holds the stream that broke"""
    later = [status for status in range(100, 600) if worth_a_retry(status)]
    assert later == [408, 409, 429, 500, *range(502, 600)]
