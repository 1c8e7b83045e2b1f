"""A link: sessions, what is stopped, and what is left behind."""

from __future__ import annotations

import asyncio
import gc
import logging
import os

import pytest

from raxol_mcp.errors import Reason
from raxol_mcp.transports.http_client.dialer import HttpDialer
from raxol_mcp.transports.http_client.tables import Tables
from raxol_mcp.transports.link import Dialect, LinkFailed
from raxol_mcp.wire.headers import Mirror
from raxol_mcp.wire.jsonrpc import Failure, Notification, Request, Response
from raxol_mcp.wire.meta import EraName
from tests.transports.http_client.peers import (
    Peer,
    Port,
    Script,
    Seen,
    Wire,
    call,
    dialed,
    handshaken,
    http_head,
    result_line,
    sse,
    stateless_call,
)

INITIALIZE = Request(1, "initialize", {})
DESCRIPTORS = "/proc/self/fd" if os.path.exists("/proc/self/fd") else "/dev/fd"
needs_proc = pytest.mark.skipif(
    DESCRIPTORS == "/dev/fd", reason="what a descriptor is, is not told"
)


def sessions(*ids: str, then: str = "result") -> Script:
    """Begin a session with each `initialize`, answer calls, and note nothing else."""
    left = list(ids)

    async def script(seen: Seen, wire: Wire) -> None:
        if seen.rpc == "initialize":
            given = {"Mcp-Session-Id": left.pop(0)} if left else {}
            await wire.json(result_line(seen.id), headers=given)
        elif seen.method == "GET":
            await wire.reply(405)
        elif seen.method == "DELETE" or "id" not in seen.message:
            await wire.reply(202)
        elif then == "404":
            await wire.reply(404)
        else:
            await wire.json(result_line(seen.id), headers={"Mcp-Session-Id": "EVIL"})

    return script


# --- sessions ---------------------------------------------------------------------------------


def test_a_session_is_on_every_request_from_its_first_answer_to_its_end() -> None:
    """Check 54, BC-107; MCP 2025-11-25 basic/transports §Session Management 2 and 5"""

    async def main() -> None:
        async with Peer(sessions("S1")) as peer:
            async with dialed(peer) as (link, port):
                await handshaken(link, port)
                await peer.until(lambda: "GET" in peer.methods())
                for key in (7, 8):
                    link.send(call(key, "tools/list"), key)
                    await port.next(key - 6)
            first, *others = peer.seen
            assert first.header("Mcp-Session-Id") is None
            assert first.header("MCP-Protocol-Version") is None
            assert {seen.header("Mcp-Session-Id") for seen in others} == {"S1"}
            assert {seen.header("MCP-Protocol-Version") for seen in others} == {"2025-11-25"}
            assert {seen.header("Mcp-Method") for seen in peer.seen} == {None}
            assert peer.methods() == [
                *("initialize", "notifications/initialized", "GET"),
                *("tools/list", "tools/list", "DELETE"),
            ]

    asyncio.run(main())


def test_a_lost_session_fails_each_of_its_calls_and_is_not_sent_again() -> None:
    """Check 39, BC-103: ten calls in flight when the 404s come"""

    async def main() -> None:
        async with (
            Peer(sessions("S1", "S2", then="404")) as peer,
            dialed(peer, listen=False) as (link, port),
        ):
            await handshaken(link, port)
            for key in range(10, 20):
                link.send(call(key), key)
            await port.next(10)
            reasons = [value for _, _, value in port.told]
            assert reasons == [Reason("session_rejected")] * 10
            assert not any(value.maybe_done for value in reasons if isinstance(value, Reason))
            link.send(call(20), 20)
            assert await port.reason_of(20) == Reason("http", 404)
            calls = [seen for seen in peer.seen if seen.rpc == "tools/call"]
            ids = [seen.header("Mcp-Session-Id") for seen in calls]
            assert ids == ["S1"] * 10 + [None]

    asyncio.run(main())


def test_a_second_handshake_carries_nothing_of_the_first() -> None:
    """BC-107: no session and no version on initialize; a late 404 ends the old session only"""

    async def main() -> None:
        late: list[Wire] = []
        script = sessions("S1", "S2")

        async def holding(seen: Seen, wire: Wire) -> None:
            if seen.id == 7:
                late.append(wire)
            else:
                await script(seen, wire)

        async with Peer(holding) as peer, dialed(peer, listen=False) as (link, port):
            await handshaken(link, port)
            link.send(call(7), 7)
            await peer.until(lambda: bool(late))
            await handshaken(link, port)
            again = [seen for seen in peer.seen if seen.rpc == "initialize"][1]
            assert again.header("Mcp-Session-Id") is None
            assert again.header("MCP-Protocol-Version") is None
            await late[0].reply(404)
            assert await port.reason_of(7) == Reason("session_rejected")
            link.send(call(8), 8)
            await port.until(lambda: ("received", 8, Response(8, {})) in port.told)
            assert peer.seen[-1].header("Mcp-Session-Id") == "S2"

    asyncio.run(main())


@pytest.mark.parametrize("id", ["a b", "a\tb", "\u00e9", "x" * 5000])
def test_an_id_that_is_none_fails_the_handshake(id: str) -> None:
    """BC-107: an id with other than visible ASCII is refused, not sent back"""

    async def main() -> None:
        async with Peer(sessions(id)) as peer, dialed(peer) as (link, port):
            link.send(INITIALIZE, 1)
            assert await port.reason_of(1) == Reason("invalid_response", "session id")
            link.send(call(7), 7)
            await port.next(2)
            assert peer.seen[-1].header("Mcp-Session-Id") is None

    asyncio.run(main())


def test_a_refused_handshake_leaves_no_session() -> None:
    """Ours: what comes with an error is no session"""

    async def main() -> None:
        async def script(seen: Seen, wire: Wire) -> None:
            error = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}'
            await wire.json(error, headers={"Mcp-Session-Id": "S1"})

        async with Peer(script) as peer:
            async with dialed(peer) as (link, port):
                link.send(INITIALIZE, 1)
                assert await port.next() == [("received", 1, Failure(1, -32602, "no"))]
                link.agreed(EraName.HANDSHAKE, "2025-11-25")
            assert peer.methods() == ["initialize"]

    asyncio.run(main())


def test_what_a_server_asks_before_its_first_answer_is_answered_in_the_session() -> None:
    """MCP 2025-11-25 basic/transports: all later requests; a ping may come first"""

    async def main() -> None:
        async def script(seen: Seen, wire: Wire) -> None:
            if seen.rpc == "answer":
                await wire.reply(202)
                return
            await wire.events(
                sse(b'{"jsonrpc":"2.0","id":"p","method":"ping"}'), {"Mcp-Session-Id": "S1"}
            )
            await peer.until(lambda: "answer" in peer.methods())
            await wire.send(sse(result_line(1)))
            wire.end()

        async with Peer(script) as peer, dialed(peer) as (link, port):

            def on_told(_what: str, _key: int | None, value: object) -> None:
                if isinstance(value, Request):
                    link.send(Response("p", {}), 2)

            port.on_told = on_told
            link.send(INITIALIZE, 1)
            await port.next(3)
            assert peer.seen[1].header("Mcp-Session-Id") == "S1"

    asyncio.run(main())


@pytest.mark.parametrize(
    ("version", "ends"), [("2024-11-05", False), ("2025-03-26", True), ("2025-11-25", True)]
)
def test_a_session_is_ended_where_the_revision_can(version: str, ends: bool) -> None:
    """MCP 2025-03-26 basic/transports §Session Management 5"""

    async def main() -> None:
        async with Peer(sessions("S1")) as peer:
            async with dialed(peer, listen=False) as (link, port):
                await handshaken(link, port, version)
            assert ("DELETE" in peer.methods()) is ends

    asyncio.run(main())


@pytest.mark.parametrize("way", ["405", "drop", "silent"])
def test_the_end_of_a_session_is_no_trouble(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: bounded, and errors are nobody's"""
    monkeypatch.setattr("raxol_mcp.transports.http_client.link._DELETE_TIMEOUT", 0.05)
    script = sessions("S1")

    async def main() -> None:
        async def ends(seen: Seen, wire: Wire) -> None:
            if seen.method != "DELETE":
                await script(seen, wire)
            elif way == "405":
                await wire.reply(405)
            elif way == "drop":
                wire.end()
            else:
                await wire.gone()

        tables = Tables()
        async with Peer(ends) as peer:
            async with dialed(peer, listen=False, tables=tables) as (link, port):
                await handshaken(link, port)
            assert peer.methods()[-1] == "DELETE"
        assert len(tables.breakers) == 0

    asyncio.run(main())


# --- the stateless era ------------------------------------------------------------------------


def test_the_stateless_era_has_its_headers_and_no_session() -> None:
    """Checks 54, BC-107; MCP 2026-07-28 streamable-http §Request Metadata"""

    async def main() -> None:
        script = sessions("S1")
        async with Peer(script) as peer:
            async with dialed(peer) as (link, port):
                link.send(stateless_call(7, "server/discover"), 7)
                await port.next(1)
                link.agreed(EraName.STATELESS, "2026-07-28")
                params = {"name": "t\u00f6\u00f6l", "arguments": {"region": "eu"}}
                mirrors = [Mirror(("region",), "Mcp-Param-Region", b"mcp-param-region")]
                link.send(stateless_call(8, params=dict(params)), 8, mirrors=mirrors)
                await port.next(2)
            first, second = peer.seen
            assert first.header("Mcp-Method") == "server/discover"
            assert first.header("Mcp-Name") is None
            assert second.header("Mcp-Method") == "tools/call"
            assert second.header("Mcp-Name") == "=?base64?dMO2w7Zs?="
            assert second.header("Mcp-Param-Region") == "eu"
            for seen in peer.seen:
                assert seen.header("MCP-Protocol-Version") == "2026-07-28"
                assert seen.header("Mcp-Session-Id") is None
                assert seen.header("Accept") == "application/json, text/event-stream"
                assert seen.header("Content-Type") == "application/json"

    asyncio.run(main())


# --- what cannot be sent ----------------------------------------------------------------------


def test_a_message_that_cannot_be_encoded_fails_alone() -> None:
    """B12: nothing is sent, and it is no failure of the origin"""

    async def main() -> None:
        tables = Tables()
        async with Peer(sessions()) as peer, dialed(peer, tables=tables) as (link, port):
            link.send(stateless_call(7, params={"name": "\ud800"}), 7)
            link.send(stateless_call(8, params={"name": "t", "arguments": {"a": object()}}), 8)
            link.send(Notification("n", {"a": object()}), 9)
            assert port.told == [], "never from inside the call"
            assert await port.reason_of(7) == Reason("encode_failed", "tools/call")
            assert await port.reason_of(8) == Reason("encode_failed", "tools/call")
            assert await port.reason_of(9) == Reason("encode_failed", "n")
            assert peer.seen == []
            assert len(tables.breakers) == 0

    asyncio.run(main())


def test_a_message_is_taken_as_it_is_when_it_is_sent() -> None:
    """Ours: what the caller changes afterwards is not sent"""

    async def main() -> None:
        async with Peer(sessions()) as peer, dialed(peer) as (link, port):
            arguments: dict[str, object] = {"a": 1}
            link.send(call(7, params={"name": "t", "arguments": arguments}), 7)
            arguments["a"] = 2
            await port.next()
            assert b'"a":1' in peer.seen[0].body

    asyncio.run(main())


def test_a_header_that_is_none_fails_the_connection_without_its_value() -> None:
    """Checks 55, 63; B12"""

    async def main() -> None:
        for headers in ({"X-Key": "SECRET\n"}, {"X-Key: SECRET": ""}):
            dialer = HttpDialer("https://a.example/", headers=headers)
            with pytest.raises(LinkFailed) as caught:
                await dialer.link(Port(), Dialect.CURRENT).open()
            assert caught.value.reason == Reason("encode_failed", "headers")
            assert caught.value.reason.text
            assert "SECRET" not in f"{caught.value}{caught.value.reason}{dialer!r}"

    asyncio.run(main())


def test_before_it_is_open_a_link_is_not_connected_and_after_it_is_over_it_says_nothing() -> None:
    """`Link`: after close nothing is reported"""

    async def main() -> None:
        async with Peer(sessions()) as peer:
            port = Port()
            link = HttpDialer(peer.url, allow_private=True).link(port, Dialect.CURRENT)
            link.send(call(7), 7)
            assert await port.reason_of(7) == Reason("not_connected")
            await link.open()
            await link.close()
            await link.close()
            link.send(call(8), 8)
            link.abort(8)
            link.noticed("x", {})
            link.heard(Notification("n"))
            await asyncio.sleep(0)
            assert (len(port.told), port.counted, peer.seen) == (1, [], [])

    asyncio.run(main())


# --- secrets ----------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 401, 404, 500])
def test_no_secret_gets_out(status: int, caplog: pytest.LogCaptureFixture) -> None:
    """Check 63: errors, logs at all levels, repr"""
    caplog.set_level(logging.DEBUG)

    async def main() -> None:
        async def script(seen: Seen, wire: Wire) -> None:
            assert seen.header("authorization") == "Bearer SECRET"
            assert seen.path == "/mcp?key=SECRET"
            if status == 200:
                wire.reset()
            else:
                await wire.reply(status, b"SECRET", {"X": "SECRET"})

        async with Peer(script) as peer:
            url = f"{peer.url}?key=SECRET"
            dialer = HttpDialer(url, headers={"Authorization": "Bearer SECRET"}, allow_private=True)
            assert repr(dialer) == (
                f"HttpDialer('{peer.url}', headers={{'Authorization': '[redacted]'}})"
            )
            port = Port()
            link = dialer.link(port, Dialect.CURRENT)
            await link.open()
            link.send(call(7), 7)
            reason = await port.reason_of(7)
            assert "SECRET" not in f"{reason} {reason!r} {reason.error} {link!r}"
            assert "SECRET" not in repr(dialer.verdict_key)
            await link.close()

    asyncio.run(main(), debug=True)
    assert "SECRET" not in caplog.text


# --- stopping ---------------------------------------------------------------------------------


@pytest.mark.parametrize("point", ["head", "body", "events"])
def test_an_aborted_call_closes_its_connection_and_says_nothing(point: str) -> None:
    """MCP 2026-07-28: closing the stream cancels; `Link.abort`: nothing is reported"""

    async def main() -> None:
        async def script(_seen: Seen, wire: Wire) -> None:
            if point == "body":
                await wire.send(http_head(200, {"Content-Length": "100"}) + b"{")
            elif point == "events":
                await wire.events(sse(b'{"jsonrpc":"2.0","method":"n"}'))
            await wire.gone()

        async with Peer(script) as peer, dialed(peer) as (link, port):
            link.send(stateless_call(7), 7)
            await peer.until(lambda: bool(peer.seen))
            if point == "events":
                await port.next()
            told = list(port.told)
            link.abort(7)
            link.abort(7)
            await peer.until(lambda: peer.left == 1)
            assert port.told == told

    asyncio.run(main())


@needs_proc
def test_an_upload_that_nobody_reads_is_dropped_when_it_is_aborted() -> None:
    """K20: a connection in order would wait until the peer has read what is left"""

    async def main() -> None:
        begun, over = asyncio.Event(), asyncio.Event()

        async def never_reads(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            begun.set()
            await over.wait()
            writer.close()

        server = await asyncio.start_server(never_reads, "127.0.0.1", 0, limit=1024)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        async with server, dialed(url) as (link, port):
            before = open_sockets()
            link.send(stateless_call(7, params={"name": "x" * 16_000_000}), 7)
            await begun.wait()
            await turns(50)
            assert open_sockets() == before + 2
            link.abort(7)
            await turns(10)
            assert open_sockets() == before + 1, "the server's end alone"
            assert port.told == []
            over.set()
            await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))

    asyncio.run(main())


async def turns(count: int) -> None:
    """Let the loop go round."""
    for _ in range(count):
        await asyncio.sleep(0)


def open_sockets() -> int:
    """Count the sockets of this process."""
    return sum(place.startswith("socket:") for place in map(place_of, os.listdir(DESCRIPTORS)))


def place_of(descriptor: str) -> str:
    """Say what a descriptor is."""
    try:
        return os.readlink(f"{DESCRIPTORS}/{descriptor}")
    except OSError:
        return ""  # the one that the list was read from


def test_closing_stops_everything_at_once() -> None:
    """`Link.close`: within a bound, and nothing is reported"""

    async def main() -> None:
        async def script(seen: Seen, wire: Wire) -> None:
            if seen.id == 8:
                await wire.events(sse(b'{"jsonrpc":"2.0","method":"n"}'))
            await wire.gone()

        async with Peer(script) as peer:
            async with dialed(peer) as (link, port):
                for key in (7, 8, 9):
                    link.send(stateless_call(key), key)
                await port.next()
                await peer.until(lambda: len(peer.seen) == 3)
            await peer.until(lambda: peer.left == 3)
            assert len(port.told) == 1
            assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


def test_an_opening_that_is_cancelled_leaves_nothing() -> None:
    """`Link.open`"""

    async def main() -> None:
        async def hangs(_host: str, _port: int) -> list[str]:
            await asyncio.Event().wait()
            raise AssertionError

        link = HttpDialer("https://a.example/", resolver=hangs).link(Port(), Dialect.CURRENT)
        opening = asyncio.create_task(link.open())
        await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        await link.close()
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


async def all_kinds(seen: Seen, wire: Wire) -> None:
    """Answer in one of five ways, by the id."""
    number = seen.id
    assert isinstance(number, int)
    match number % 5:
        case 0:
            await wire.result(seen)
        case 1:
            await wire.events(sse(result_line(number)))
            await wire.gone()
        case 2:
            await wire.reply(500)
        case 3:
            wire.end()
        case _:
            await wire.gone()


def leaves_nothing(rounds: int) -> None:
    """Do `rounds` exchanges of every kind, more than half of them aborted."""

    async def main() -> None:
        expected = {n for n in range(1, rounds + 1) if n % 10 < 5 and n % 5 != 4}
        async with Peer(all_kinds) as peer:
            # Breakers that never open: half of these calls fail.
            async with dialed(peer, tables=Tables(threshold=10**9)) as (link, port):
                for number in range(1, rounds + 1):
                    link.send(stateless_call(number), number)
                    if number not in expected:
                        await turns(number % 3)
                        link.abort(number)
                    await turns(30 if number % 20 == 0 else 0)
                await port.until(lambda: {key for _, key, _ in port.told} >= expected)
                assert len(port.told) == len(expected), "one end each, and none of the aborted"
            await peer.until(lambda: peer.left == peer.connections)
            assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


def test_two_hundred_exchanges_leave_nothing_behind() -> None:
    """K20: counters return to where they were"""
    leaves_nothing(20)  # whatever is loaded once
    gc.collect()
    before = len(os.listdir(DESCRIPTORS))
    leaves_nothing(200)
    gc.collect()
    assert len(os.listdir(DESCRIPTORS)) == before


@pytest.mark.slow
def test_so_do_five_thousand() -> None:
    """K20"""
    leaves_nothing(5_000)
    gc.collect()
    before = len(os.listdir(DESCRIPTORS))
    leaves_nothing(5_000)
    gc.collect()
    assert len(os.listdir(DESCRIPTORS)) == before
