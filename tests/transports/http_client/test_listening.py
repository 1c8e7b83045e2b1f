"""The stream of a session that belongs to no request."""

from __future__ import annotations

import asyncio
import gc

import pytest

from raxol_mcp.errors import Reason
from raxol_mcp.transports.http_client.tables import Tables
from raxol_mcp.wire.jsonrpc import Ignored, Notification, Request, Response
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
    result_line,
    sse,
)

CHANGED = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
PING = b'{"jsonrpc":"2.0","id":"p","method":"ping"}'


def streams(*parts: bytes | int, hold_last: bool = True) -> Script:
    """Do the handshake, and answer each GET with the next part: a status, or events."""
    left = list(parts)

    async def script(seen: Seen, wire: Wire) -> None:
        if seen.rpc == "initialize":
            await wire.json(result_line(seen.id), headers={"Mcp-Session-Id": "S1"})
        elif seen.method != "GET":
            await wire.reply(202)
        elif not left:
            await wire.reply(405)
        elif isinstance(part := left.pop(0), int):
            await wire.reply(part)
        else:
            await wire.events(part)
            if hold_last and not left:
                await wire.gone()
            wire.end()

    return script


def gets(peer: Peer) -> list[Seen]:
    return [seen for seen in peer.seen if seen.method == "GET"]


def test_what_belongs_to_no_request_is_handed_over() -> None:
    """MCP 2025-11-25 basic/transports §Listening for Messages from the Server"""

    async def main() -> None:
        async with Peer(streams(sse(CHANGED) + sse(PING))) as peer:
            async with dialed(peer) as (link, port):
                await handshaken(link, port)
                await port.next(2)
                assert port.told == [
                    ("received", None, Notification("notifications/tools/list_changed")),
                    ("received", None, Request("p", "ping")),
                ]
                (seen,) = gets(peer)
                assert seen.header("Accept") == "text/event-stream"
                assert seen.header("Mcp-Session-Id") == "S1"
                assert seen.header("MCP-Protocol-Version") == "2025-11-25"
                assert seen.header("Last-Event-ID") is None
            await peer.until(lambda: peer.left == peer.connections)

    asyncio.run(main())


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 406, 501, 302, 204, 200])
def test_a_server_need_not_have_one(status: int) -> None:
    """MCP 2025-11-25 basic/transports: 405; nothing is told, and it is not asked for again"""

    async def main() -> None:
        tables = Tables()
        async with Peer(streams(status)) as peer, dialed(peer, tables=tables) as (link, port):
            await handshaken(link, port)
            await peer.until(lambda: bool(gets(peer)))
            await settled()
            assert (port.told, port.counted, len(gets(peer))) == ([], [], 1)
            assert len(tables.breakers) == 0

    asyncio.run(main())


async def settled() -> None:
    """Wait until no task but this one and those of the peer can go on."""
    for _ in range(50):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("version", "listen", "opens"),
    [
        ("2024-11-05", True, False),
        ("2025-03-26", True, True),
        ("2025-11-25", False, False),
    ],
)
def test_it_is_opened_where_the_revision_has_it_and_it_is_wanted(
    version: str, listen: bool, opens: bool
) -> None:
    """MCP 2025-03-26 basic/transports; the option is ours"""

    async def main() -> None:
        async with Peer(streams(b"")) as peer, dialed(peer, listen=listen) as (link, port):
            await handshaken(link, port, version)
            if opens:
                await peer.until(lambda: bool(gets(peer)))
            await settled()
            assert bool(gets(peer)) is opens

    asyncio.run(main())


def test_a_stream_that_ends_is_opened_again_from_where_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """MCP 2025-11-25 basic/transports §Resumability; the client is told of the gap"""
    monkeypatch.setattr("raxol_mcp.transports.http_client.resumption.SHORTEST_WAIT", 0.001)

    async def main() -> None:
        first = b"retry: 1\n\n" + sse(CHANGED)
        async with (
            Peer(streams(first, sse(CHANGED, id="e1"), 503, sse(PING))) as peer,
            dialed(peer) as (link, port),
        ):
            await handshaken(link, port)
            await port.next(3)
            ids = [seen.header("Last-Event-ID") for seen in gets(peer)]
            assert ids == [None, None, "e1", "e1"]
            assert port.counted == [
                ("stream_reopened", {"resumed": False}),
                ("missed", {}),
                ("stream_reopened", {"resumed": True}),
            ]

    asyncio.run(main())


def test_a_server_that_says_nothing_is_asked_a_bounded_number_of_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """K23: and its failures are not those of the origin"""
    monkeypatch.setattr("raxol_mcp.transports.http_client.listening._TRIES", 3)
    monkeypatch.setattr("raxol_mcp.transports.http_client.resumption.DEFAULT_RETRY", 0.0)
    monkeypatch.setattr("raxol_mcp.transports.http_client.resumption.SHORTEST_WAIT", 0.001)

    async def main() -> None:
        tables = Tables(threshold=1)
        script = streams(b"", 503, 500, b":\n\n", 503, 503, hold_last=False)
        async with Peer(script) as peer, dialed(peer, tables=tables) as (link, port):
            await handshaken(link, port)
            await port.until(lambda: ("stream_given_up", {"tries": 3}) in port.counted)
            assert len(gets(peer)) == 4
            assert port.told == []
            assert len(tables.breakers) == 0

    asyncio.run(main())


def test_a_stream_that_was_not_to_be_had_at_first_comes_with_a_gap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ours: the session is older than its stream"""
    monkeypatch.setattr("raxol_mcp.transports.http_client.resumption.DEFAULT_RETRY", 0.0)
    monkeypatch.setattr("raxol_mcp.transports.http_client.resumption.SHORTEST_WAIT", 0.001)

    async def main() -> None:
        async with Peer(streams(503, sse(CHANGED))) as peer, dialed(peer) as (link, port):
            await handshaken(link, port)
            await port.next(1)
            assert port.counted == [("missed", {})]

    asyncio.run(main())


def test_a_stream_that_is_quiet_for_long_is_of_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: what stands between closes quiet connections again and again"""
    monkeypatch.setattr("raxol_mcp.transports.http_client.listening._TRIES", 1)
    monkeypatch.setattr("raxol_mcp.transports.http_client.listening._LONG", 0.0)
    monkeypatch.setattr("raxol_mcp.transports.http_client.resumption.DEFAULT_RETRY", 0.0)
    monkeypatch.setattr("raxol_mcp.transports.http_client.resumption.SHORTEST_WAIT", 0.001)

    async def main() -> None:
        async with Peer(streams(b"", b"", b"", sse(CHANGED))) as peer, dialed(peer) as (link, port):
            await handshaken(link, port)
            await port.next(1)
            assert len(gets(peer)) == 4

    asyncio.run(main())


def test_an_event_that_is_too_large_costs_itself_alone() -> None:
    """K12"""

    async def main() -> None:
        large = sse(b'{"jsonrpc":"2.0","method":"%b"}' % (b"x" * 50_000))
        async with (
            Peer(streams(large + sse(b"nonsense") + sse(CHANGED))) as peer,
            dialed(peer, max_message_bytes=1000) as (link, port),
        ):
            await handshaken(link, port)
            await port.next(3)
            assert [type(value) for _, _, value in port.told] == [Ignored, Ignored, Notification]

    asyncio.run(main())


def test_an_answer_that_comes_there_is_the_end_of_its_request() -> None:
    """Ours: some servers answer there when they lost the stream of the request"""

    async def main() -> None:
        asked = asyncio.Event()

        async def script(seen: Seen, wire: Wire) -> None:
            if seen.rpc == "initialize":
                await wire.json(result_line(seen.id))
            elif seen.method == "GET":
                await wire.events()
                await asked.wait()
                await wire.send(sse(b'{"jsonrpc":"2.0","id":8,"result":NaN}'))
                await wire.send(sse(result_line(7)) + sse(result_line("p")))
                await wire.gone()
            elif seen.id in (7, 8):
                if len([one for one in peer.seen if one.rpc == "tools/call"]) == 2:
                    asked.set()
                await wire.gone()
            else:
                await wire.reply(202)

        async with Peer(script) as peer, dialed(peer) as (link, port):
            await handshaken(link, port)
            for key in (7, 8):
                link.send(call(key), key)
            await port.next(3)
            assert port.told == [
                ("failed", 8, Reason("invalid_response", "tools/call")),
                ("received", None, Response(7, {})),
                ("received", None, Response("p", {})),
            ]
            # Nothing more is told of them, though both exchanges are still open.
            link.abort(7)
            link.abort(8)

    asyncio.run(main())


def test_an_answer_there_does_not_end_what_is_no_request() -> None:
    """K01: a notification has a key, which is nobody's id"""

    async def main() -> None:
        async def script(seen: Seen, wire: Wire) -> None:
            if seen.rpc == "initialize":
                await wire.json(result_line(seen.id))
            elif seen.method == "GET":
                await wire.events()
                await peer.until(lambda: "n" in peer.methods())
                await wire.send(sse(result_line(9)) + sse(b'{"jsonrpc":"2.0","id":9,"result":NaN}'))
                await wire.gone()
            else:
                if seen.rpc == "n":
                    await peer.until(lambda: len(port.told) == 2)
                await wire.reply(202)

        async with Peer(script) as peer, dialed(peer) as (link, port):
            await handshaken(link, port)
            port.on_told = lambda *_: peer.changed()
            link.send(Notification("n"), 9)
            await port.next(3)
            assert port.told == [
                ("received", None, Response(9, {})),
                ("received", None, Ignored("an answer that cannot be read")),
                ("sent", 9, None),
            ]

    asyncio.run(main())


def test_a_link_that_is_closed_before_its_stream_began_leaves_no_warning() -> None:
    """Ours: the task of the stream may be cancelled before its first step"""

    async def main() -> None:
        async with Peer(streams()) as peer, dialed(peer) as (link, port):
            link.send(Request(1, "initialize", {}), 1)
            await port.next(1)
            link.send(Notification("notifications/initialized"), 2)
            link.sent(2)
            link.agreed(EraName.HANDSHAKE, "2025-11-25")

    asyncio.run(main())
    gc.collect()


def test_a_new_session_has_a_stream_of_its_own() -> None:
    """MCP 2025-11-25 basic/transports §Session Management"""

    async def main() -> None:
        async with Peer(streams(b"", b"", hold_last=True)) as peer:

            async def hold(seen: Seen, wire: Wire) -> None:
                if seen.method == "GET":
                    await wire.events()
                    await wire.gone()
                else:
                    await script(seen, wire)

            script, peer.script = peer.script, hold
            async with dialed(peer) as (link, port):
                await handshaken(link, port)
                await peer.until(lambda: len(gets(peer)) == 1)
                await handshaken(link, port)
                await peer.until(lambda: len(gets(peer)) == 2)
                await peer.until(lambda: peer.left == 1)

    asyncio.run(main())


def test_a_bug_in_the_stream_is_logged_and_ends_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Ours: nobody waits for that task"""

    def fails(*_: object) -> None:
        raise LookupError("SECRET")

    monkeypatch.setattr("raxol_mcp.transports.http_client.listening.new_events", fails)

    async def main() -> Port:
        async with Peer(streams(sse(CHANGED))) as peer, dialed(peer) as (link, port):
            await handshaken(link, port)
            await peer.until(lambda: peer.left == 1)
            return port

    assert asyncio.run(main()).told == []
    assert "LookupError" in caplog.text
    assert "SECRET" not in caplog.text


def test_a_greeting_ends_when_the_stream_is_there() -> None:
    """A question on it that belongs to the first call would be lost before."""

    async def main() -> None:
        asked = asyncio.Event()
        go_on = asyncio.Event()

        async def script(seen: Seen, wire: Wire) -> None:
            if seen.rpc == "initialize":
                await wire.json(result_line(seen.id), headers={"Mcp-Session-Id": "S1"})
            elif seen.method == "GET":
                asked.set()
                await go_on.wait()
                await wire.events(sse(PING))
                await wire.gone()
            else:
                await wire.reply(202)

        async with Peer(script) as peer, dialed(peer) as (link, port):
            link.send(Request(1, "initialize", {"protocolVersion": "2025-11-25"}), 1)
            await port.next()
            link.agreed(EraName.HANDSHAKE, "2025-11-25")
            link.send(Notification("notifications/initialized"), 2)
            await asked.wait()
            await settled()
            assert ("sent", 2, None) not in port.told
            go_on.set()
            await port.until(lambda: ("sent", 2, None) in port.told)

    asyncio.run(main())


def test_the_client_knows_whether_anything_can_be_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: what a server announces reaches nobody while there is no stream"""
    monkeypatch.setattr("raxol_mcp.transports.http_client.resumption.DEFAULT_RETRY", 0.0)
    monkeypatch.setattr("raxol_mcp.transports.http_client.resumption.SHORTEST_WAIT", 0.001)

    async def main() -> None:
        async with Peer(streams(503, sse(CHANGED), 503, sse(CHANGED), 405)) as peer:
            async with dialed(peer) as (link, port):
                await handshaken(link, port)
                await peer.until(lambda: len(gets(peer)) == 5)
                assert port.heard == [False, True, False, True, False]
            assert port.heard == [False, True, False, True, False], "and nothing after the end"

    asyncio.run(main())
