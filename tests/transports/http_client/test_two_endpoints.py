"""HTTP+SSE of MCP 2024-11-05."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from raxol_mcp.errors import Reason
from raxol_mcp.transports.http_client.dialer import HttpDialer
from raxol_mcp.transports.http_client.tables import Tables
from raxol_mcp.transports.http_client.target import parse_target
from raxol_mcp.transports.http_client.two_endpoints import endpoint_of
from raxol_mcp.transports.link import Dialect, LinkFailed
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
    http_head,
    result_line,
    sse,
)

OLD = Dialect.TWO_ENDPOINTS
ENDPOINT = b"event: endpoint\ndata: /messages?session=1\n\n"


def old_server(begins: bytes = ENDPOINT, *, status: int = 202) -> tuple[Script, list[Wire]]:
    """Hold the stream, which begins with some bytes, and take messages."""
    held: list[Wire] = []

    async def script(seen: Seen, wire: Wire) -> None:
        if seen.method == "GET":
            held.append(wire)
            await wire.events(begins)
            await wire.gone()
        else:
            await wire.reply(status, b"Accepted")

    return script, held


def opening(script: Script) -> Reason:
    """Open a link that cannot be; give the reason."""

    async def main() -> Reason:
        async with Peer(script) as peer:
            dialer = HttpDialer(peer.url, allow_private=True, tables=Tables())
            link = dialer.link(Port(), OLD)
            with pytest.raises(LinkFailed) as caught:
                await link.open()
            await peer.until(lambda: peer.left == peer.connections)
            assert [seen.method for seen in peer.seen] == ["GET"]
            await link.close()
            return caught.value.reason

    return asyncio.run(main())


def test_messages_go_to_the_endpoint_and_everything_comes_on_the_stream() -> None:
    """MCP 2024-11-05 basic/transports §HTTP with SSE"""

    async def main() -> None:
        script, held = old_server()
        async with Peer(script) as peer, dialed(peer, dialect=OLD) as (link, port):
            link.send(Request(1, "initialize", {}), 1)
            link.send(Notification("n"), 2)
            await port.next(1)
            assert port.told == [("sent", 2, None)]
            await held[0].send(sse(result_line(1)) + sse(b'{"jsonrpc":"2.0","method":"m"}'))
            await port.next(3)
            assert port.told[1:] == [
                ("received", None, Response(1, {})),
                ("received", None, Notification("m")),
            ]
            link.agreed(EraName.HANDSHAKE, "2024-11-05")
            link.send(Response("q", {}), 3)
            await port.next(4)
            get, *posts = peer.seen
            assert get.header("Accept") == "text/event-stream"
            assert {seen.path for seen in posts} == {"/messages?session=1"}
            assert {seen.header("Mcp-Session-Id") for seen in posts} == {None}
            assert {seen.header("MCP-Protocol-Version") for seen in posts} == {None}

    asyncio.run(main())


@pytest.mark.parametrize(
    ("reference", "resource"),
    [
        (b"/messages?sessionId=1", "/messages?sessionId=1"),
        (b" /messages ", "/messages"),
        (b"messages?x", "/a/messages?x"),
        (b"../messages", "/messages"),
        (b"?x=1", "/a/sse?x=1"),
        (b"https://mcp.example.com/m", "/m"),
        (b"https://MCP.example.com:443/m", "/m"),
        (b"//mcp.example.com/m", "/m"),
    ],
)
def test_an_endpoint_is_resolved_against_the_stream(reference: bytes, resource: str) -> None:
    """BC-109"""
    target = parse_target("https://mcp.example.com/a/sse", allow_private=False)
    assert target is not None
    found = endpoint_of(reference, target, allow_private=False)
    assert found is not None
    assert (found.origin, found.resource) == (target.origin, resource)


ELSEWHERE = [
    b"http://evil.test/messages?sessionId=1",
    b"//evil.test/m",
    b"http://user@evil.test",
    b"https://user@mcp.example.com/m",
    b"\\\\evil.test",
    b"/\\evil.test",
    b"https:\\\\evil.test",
    b"http://mcp.example.com/m",
    b"https://mcp.example.com:8443/m",
    b"https://mcp.example.com.evil.test/m",
    b"https://evil.test#mcp.example.com",
    b"javascript:1",
    b"data:,x",
    b"http://[::1",
    b"//[",
    b"/m\r\nHost: evil.test",
    b"/m x",
    b"/\xc3\xa9",
    b"",
    b"/" + b"a" * 5000,
]


@pytest.mark.parametrize("reference", ELSEWHERE)
def test_an_endpoint_elsewhere_is_not_used(reference: bytes) -> None:
    """BC-109: scheme, host and port have to be those of the stream"""
    target = parse_target("https://mcp.example.com/sse", allow_private=False)
    assert target is not None
    assert endpoint_of(reference, target, allow_private=False) is None


def test_an_endpoint_elsewhere_fails_the_connection_and_nothing_is_sent_to_it() -> None:
    """BC-109: a canary"""

    async def main() -> None:
        async def nothing(_seen: Seen, wire: Wire) -> None:
            await wire.reply(202)

        async with Peer(nothing) as canary:
            script, _ = old_server(b"event: endpoint\ndata: %b\n\n" % canary.url.encode())
            reason = await asyncio.to_thread(opening, script)
            assert reason == Reason("blocked", "invalid_url")
            assert canary.connections == 0

    asyncio.run(main())


@pytest.mark.parametrize(
    ("status", "kind", "reason"),
    [
        (404, "text/event-stream", Reason("http", 404)),
        (405, "", Reason("http", 405)),
        (401, "", Reason("http", 401)),
        (302, "", Reason("redirect_refused", 302)),
        (200, "text/html", Reason("invalid_response", "endpoint")),
        (200, "text/event-stream", Reason("transport", "closed")),
    ],
)
def test_a_server_without_such_a_stream_is_told(status: int, kind: str, reason: Reason) -> None:
    """MCP 2025-11-25 basic/transports §Backwards Compatibility"""

    async def script(_seen: Seen, wire: Wire) -> None:
        await wire.send(http_head(status, {"Content-Type": kind, "Connection": "close"}))
        wire.end()

    assert opening(script) == reason


@pytest.mark.parametrize(
    "begins", [b"", b": comment\n\n", sse(b"/messages"), b"event: endpoint\ndata: /messages\n"]
)
def test_an_endpoint_has_to_come_in_time(begins: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """BC-109: no endpoint within the timeout is an error"""
    monkeypatch.setattr("raxol_mcp.transports.http_client.two_endpoints.ENDPOINT_TIMEOUT", 0.05)
    assert opening(old_server(begins)[0]) == Reason("timeout", "deadline")


def test_a_second_endpoint_is_ignored() -> None:
    """BC-109: it would move a live session"""

    async def main() -> None:
        again = b"event: endpoint\ndata: /other\n\n"
        script, held = old_server(ENDPOINT + again)
        async with Peer(script) as peer, dialed(peer, dialect=OLD) as (link, port):
            await held[0].send(again + sse(b'{"jsonrpc":"2.0","method":"m"}'))
            await port.next(1)
            link.send(Notification("n"), 2)
            await port.next(2)
            assert peer.seen[-1].path == "/messages?session=1"

    asyncio.run(main())


def test_what_came_with_the_endpoint_is_not_lost() -> None:
    """Ours: one packet may hold both"""

    async def main() -> None:
        script, _ = old_server(ENDPOINT + sse(b'{"jsonrpc":"2.0","method":"m"}'))
        async with Peer(script) as peer, dialed(peer, dialect=OLD) as (_, port):
            assert await port.next(1) == [("received", None, Notification("m"))]

    asyncio.run(main())


@pytest.mark.parametrize("end", [Wire.end, Wire.reset])
def test_the_end_of_the_stream_is_the_end_of_the_link(end: Callable[[Wire], None]) -> None:
    """`LinkPort.lost`: once, and nothing after it"""

    async def main() -> None:
        script, held = old_server()
        async with Peer(script) as peer, dialed(peer, dialect=OLD) as (link, port):
            link.send(call(7), 7)
            await peer.until(lambda: "tools/call" in peer.methods())
            end(held[0])
            assert (await port.reason_of(None)).tag == "transport"
            link.send(call(8), 8)
            link.abort(7)
            await asyncio.sleep(0)
            assert [what for what, _, _ in port.told] == ["lost"]

    asyncio.run(main())


def test_an_answer_that_is_too_large_ends_the_link() -> None:
    """K12, K22: nobody can tell whose answer it was"""

    async def main() -> None:
        script, held = old_server()
        async with (
            Peer(script) as peer,
            dialed(peer, dialect=OLD, max_message_bytes=1000) as (link, port),
        ):
            link.send(call(7), 7)
            await held[0].send(sse(result_line(7, "x" * 20_000)))
            assert await port.reason_of(None) == Reason("too_large", 1000)

    asyncio.run(main())


def test_a_refused_message_fails_alone() -> None:
    """BC-105"""

    async def main() -> None:
        script, _ = old_server(status=500)
        async with Peer(script) as peer, dialed(peer, dialect=OLD) as (link, port):
            link.send(call(7), 7)
            assert await port.reason_of(7) == Reason("http", 500)
            assert len(port.told) == 1

    asyncio.run(main())


def test_an_answer_that_outruns_its_post_is_the_only_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """K19: the POST may end in any way afterwards, or not at all"""
    monkeypatch.setattr("raxol_mcp.transports.http_client.link._GRACE", 0.02)

    async def main() -> None:
        held: list[Wire] = []

        async def script(seen: Seen, wire: Wire) -> None:
            if seen.method == "GET":
                held.append(wire)
                await wire.events(ENDPOINT)
                await wire.gone()
            else:
                await held[0].send(sse(result_line(seen.id)))
                if seen.id == 7:
                    await peer.until(lambda: len(port.told) == 1)
                    await wire.reply(500)
                else:
                    await wire.gone()

        async with Peer(script) as peer, dialed(peer, dialect=OLD) as (link, port):
            link.send(call(7), 7)
            port.on_told = lambda *_: peer.changed()
            await port.next(1)
            link.send(call(8), 8)
            await port.next(2)
            await peer.until(lambda: peer.left == 1)
            assert [what for what, _, _ in port.told] == ["received", "received"]

    asyncio.run(main())


def test_a_bug_in_the_stream_ends_the_link(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours"""

    def fails(*_: object) -> None:
        raise LookupError("SECRET")

    async def main() -> None:
        script, held = old_server()
        async with Peer(script) as peer, dialed(peer, dialect=OLD) as (link, port):
            monkeypatch.setattr(link, "heard", fails)
            await held[0].send(sse(result_line(7)))
            assert await port.reason_of(None) == Reason("task_down", "LookupError")

    asyncio.run(main())


def test_an_opening_that_is_cancelled_leaves_no_connection() -> None:
    """`Link.open`: cancelled, it leaves nothing"""

    async def main() -> None:
        script, held = old_server(b"")
        async with Peer(script) as peer:
            link = HttpDialer(peer.url, allow_private=True, tables=Tables()).link(Port(), OLD)
            opening = asyncio.create_task(link.open())
            await peer.until(lambda: bool(held))
            opening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await opening
            await peer.until(lambda: peer.left == 1)
            await link.close()

    asyncio.run(main())


def test_what_cannot_be_read_and_is_nobodys_is_counted() -> None:
    """K22: the id of nothing that was asked"""

    async def main() -> None:
        script, held = old_server()
        async with Peer(script) as peer, dialed(peer, dialect=OLD) as (_, port):
            await held[0].send(sse(b'{"jsonrpc":"2.0","id":9,"result":NaN}'))
            await port.next(1)
            assert port.told == [("received", None, Ignored("an answer that cannot be read"))]

    asyncio.run(main())
