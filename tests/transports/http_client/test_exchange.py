"""One message on its way, over real sockets: what comes of a POST."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Unpack

import pytest

from raxol_mcp.errors import Reason
from raxol_mcp.wire.jsonrpc import (
    Failure,
    Ignored,
    Invalid,
    Notification,
    Outgoing,
    Request,
    Response,
)
from raxol_mcp.wire.meta import EraName
from tests.transports.http_client.peers import (
    Choices,
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

PROGRESS = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}'
QUESTION = b'{"jsonrpc":"2.0","id":"q","method":"ping"}'
LIST = "tools/list"


def answer_of(script: Script, message: Outgoing | None = None, **choices: Unpack[Choices]) -> Port:
    """Send one message to a peer; give what was told when its end was."""

    async def main() -> Port:
        async with Peer(script) as peer, dialed(peer, **choices) as (link, port):
            link.send(message or stateless_call(7), 7)
            await port.until(lambda: any(ends(*told) for told in port.told))
            return port

    return asyncio.run(main())


def ends(what: str, key: int | None, value: object) -> bool:
    final = what in ("sent", "failed") or isinstance(value, Response | Failure)
    return key == 7 and final


def replies(data: bytes) -> Script:
    async def script(_seen: Seen, wire: Wire) -> None:
        await wire.send(data)
        wire.end()

    return script


def in_events(data: bytes) -> Script:
    return replies(http_head(200, {"Content-Type": "text/event-stream"}) + data)


def json_body(body: bytes, kind: str = "application/json") -> bytes:
    return http_head(200, {"Content-Type": kind, "Content-Length": str(len(body))}) + body


# --- the answer -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", ["application/json", "Application/JSON; charset=utf-8", "a/b+json"]
)
def test_a_json_body_is_the_answer(kind: str) -> None:
    """MCP basic/transports §Sending Messages"""
    port = answer_of(replies(json_body(result_line(7, {"a": 1}), kind)))
    assert port.told == [("received", 7, Response(7, {"a": 1}))]


def test_a_body_without_a_type_or_length_ends_with_the_connection() -> None:
    """Check 61: close-delimited"""
    port = answer_of(replies(http_head(200, {}) + result_line(7)))
    assert port.told == [("received", 7, Response(7, {}))]


def test_a_json_rpc_error_is_the_answer_even_with_no_id() -> None:
    """MCP basic §Responses: the id may be missing where it could not be read"""
    error = {"code": -32602, "message": "no", "data": [1]}
    for id in (7, None):
        body = json.dumps({"jsonrpc": "2.0", "id": id, "error": error}).encode()
        expected = Failure(7, -32602, "no", [1])
        assert answer_of(replies(json_body(body))).told == [("received", 7, expected)]
        assert answer_of(in_events(sse(body))).told == [("received", 7, expected)]
    body = b'{"jsonrpc":"2.0","id":null,"error":{"code":1}}'
    assert answer_of(replies(json_body(body))).told == [
        ("received", 7, Failure(7, 1, "malformed error"))
    ]


ANSWER_EVENTS = [
    b"event: message\r\ndata: %b\r\n\r\n",
    b"event: message\rdata: %b\r\r",
    b"event: message\ndata: %b\n\n",
    b"\xef\xbb\xbfdata:%b\n\n",
    b": comment\n\n:\n\nid: 1\nretry: 5\ndata: \n\nfoo: bar\nfoo\ndata: %b\n\n",
    b"event: other\ndata: {}\n\ndata: %b\r\n\n",
]


@pytest.mark.parametrize("frame", ANSWER_EVENTS)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 100_000])
def test_events_are_read_however_they_are_cut(frame: bytes, size: int) -> None:
    """BC-101, check 62: every line end, split anywhere, complete with the blank line"""
    text = "a\u2028\u2029\u0085\U0001f600"
    line = result_line(7, {"t": text}) + b" "

    async def script(_seen: Seen, wire: Wire) -> None:
        await wire.events()
        await wire.drip(frame.replace(b"%b", line), size)
        await wire.gone()  # the stream does not end; the answer is complete all the same

    assert answer_of(script).told == [("received", 7, Response(7, {"t": text}))]


def test_what_comes_before_the_answer_is_handed_over_at_once_and_in_order() -> None:
    """MCP basic/transports §Sending Messages: a server asks, and goes on when it has the answer"""
    answered = asyncio.Event

    async def main() -> None:
        goes_on = answered()

        async def script(seen: Seen, wire: Wire) -> None:
            if seen.rpc == "answer":
                await wire.reply(202)
                goes_on.set()
                return
            await wire.events(sse(PROGRESS) + sse(QUESTION))
            await goes_on.wait()
            await wire.send(sse(result_line(7)))
            wire.end()

        async with Peer(script) as peer, dialed(peer) as (link, port):

            def on_told(_what: str, _key: int | None, value: object) -> None:
                if isinstance(value, Request):
                    link.send(Response("q", {}), 8)

            port.on_told = on_told
            link.send(call(7), 7)
            await port.next(4)
            assert [told for told in port.told if told[1] == 7] == [
                ("received", 7, Notification("notifications/progress", {"progress": 1})),
                ("received", 7, Request("q", "ping")),
                ("received", 7, Response(7, {})),
            ]
            assert ("sent", 8, None) in port.told

    asyncio.run(main())


def test_an_answer_to_something_else_is_nobodys() -> None:
    """BC-105: a response for another id; ids compare by type and value"""
    strays = b"".join(sse(result_line(id)) for id in (8, "7", 7.0, None))
    port = answer_of(in_events(strays + sse(result_line(7))))
    assert [told for told in port.told if ends(*told)] == [("received", 7, Response(7, {}))]
    assert port.counted.count(("stray_answer", {})) == 2
    port = answer_of(replies(json_body(result_line(8))))
    assert port.told == [("failed", 7, Reason("invalid_response", "tools/call"))]
    assert port.counted == [("stray_answer", {})]


def test_what_comes_after_the_answer_is_not_read() -> None:
    """Exactly one end"""
    port = answer_of(in_events(sse(result_line(7)) + sse(PROGRESS) + sse(result_line(7))))
    assert port.told == [("received", 7, Response(7, {}))]


def test_a_stream_that_ends_after_the_answer_leaves_its_connection() -> None:
    """Ours: one connection for calls one after the other, whatever kind their answers are"""

    async def main() -> None:
        async def script(seen: Seen, wire: Wire) -> None:
            await streamed(wire, result_line(seen.id))

        async with Peer(script) as peer, dialed(peer) as (link, port):
            for key in (1, 2, 3):
                link.send(stateless_call(key), key)
                await port.next(key)
                # The end of the stream comes after the answer: it is read before the next call.
                await asyncio.gather(*link._tasks)
            assert {seen.connection for seen in peer.seen} == {1}

    asyncio.run(main())


def test_a_stream_that_does_not_end_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """K20: a little after the answer"""
    monkeypatch.setattr("raxol_mcp.transports.http_client.channel._REST_TIMEOUT", 0.02)

    async def main() -> None:
        async def script(seen: Seen, wire: Wire) -> None:
            await wire.events(sse(result_line(seen.id)))
            await wire.gone()

        async with Peer(script) as peer, dialed(peer) as (link, port):
            link.send(stateless_call(7), 7)
            await port.next()
            await peer.until(lambda: peer.left == 1)

    asyncio.run(main())


# --- no answer --------------------------------------------------------------------------------

ERROR = {"code": -32022, "message": "no", "data": {"supported": ["x"]}}


def refusal(status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> bytes:
    return http_head(status, {"Content-Length": str(len(body)), **(headers or {})}) + body


@pytest.mark.parametrize(
    ("data", "path", "maybe_done"),
    [
        (refusal(400), ("http", 400), False),
        (refusal(400, b"no"), ("http", 400), False),
        (refusal(401), ("http", 401), False),
        (refusal(404), ("http", 404), False),
        (refusal(429), ("http", 429), False),
        (refusal(500), ("http", 500), True),
        (refusal(502, b"<html>", {"Content-Type": "text/html"}), ("http", 502), True),
        (
            refusal(302, b"", {"Location": "https://evil.example/"}),
            ("redirect_refused", 302),
            False,
        ),
        (refusal(304), ("redirect_refused", 304), False),
        (json_body(b"<html>", "text/html"), ("invalid_response", "tools/call"), True),
        (json_body(result_line(7), "text/plain"), ("invalid_response", "tools/call"), True),
        (json_body(b"{"), ("invalid_response", "tools/call"), True),
        (json_body(b""), ("invalid_response", "tools/call"), True),
        (json_body(b"5"), ("invalid_response", "tools/call"), True),
        (json_body(b"\xff"), ("invalid_response", "tools/call"), True),
        (json_body(PROGRESS), ("invalid_response", "tools/call"), True),
        (json_body(b'{"jsonrpc":"2.0","id":7}'), ("invalid_response", "tools/call"), True),
        (
            json_body(b'{"jsonrpc":"2.0","id":7,"result":NaN}'),
            ("invalid_response", "tools/call"),
            True,
        ),
        (json_body(b"[" * 200 + b"]" * 200), ("invalid_response", "tools/call"), True),
        (json_body(b"[%b]" % result_line(7)), ("invalid_response", "tools/call"), True),
        (refusal(202), ("invalid_response", "tools/call"), True),
        (refusal(204), ("invalid_response", "tools/call"), True),
        (b"", ("transport", "closed"), True),
        (b"HTTP/1.1 200 OK\r\nContent-", ("transport", "closed"), True),
        (b"nonsense\r\n\r\n", ("transport", "no_status"), True),
        (b"HTTP/1.1 99999 no\r\n\r\n", ("transport", "no_status"), True),
        (
            http_head(200, {"Content-Length": "5", "content-length": "6"}) + b"123456",
            ("transport", "invalid_content_length"),
            True,
        ),
        (http_head(200, {"Content-Length": "-5"}), ("transport", "invalid_content_length"), True),
        (http_head(200, {"Content-Length": "900"}) + b"{", ("transport", "incomplete"), True),
        (
            http_head(200, {"Transfer-Encoding": "chunked"}) + b"5\r\n{",
            ("transport", "incomplete"),
            True,
        ),
        (
            http_head(200, {"Transfer-Encoding": "chunked"}) + b"zz\r\n{",
            ("transport", "malformed"),
            True,
        ),
        (
            http_head(200, {f"X-{number}": "y" for number in range(200)}),
            ("transport", "headers_too_large"),
            True,
        ),
        (http_head(200, {"X": "y" * 9000}), ("transport", "headers_too_large"), True),
        (b"HTTP/1.1 200 " + b"x" * 9000, ("transport", "headers_too_large"), True),
        (
            http_head(200, {"Content-Encoding": "gzip", "Content-Type": "application/json"}) + b"x",
            ("transport", "content_encoding"),
            True,
        ),
        (http_head(200, {"Content-Type": "text/event-stream"}), ("transport", "closed"), True),
        (
            http_head(200, {"Content-Type": "text/event-stream"}) + b"data: {}",
            ("transport", "closed"),
            True,
        ),
        (
            http_head(200, {"Content-Type": "text/event-stream"})
            + sse(b'{"jsonrpc":"2.0","id":7,"result":NaN}'),
            ("invalid_response", "tools/call"),
            True,
        ),
        (
            http_head(200, {"Content-Type": "text/event-stream"}) + sse(b'{"jsonrpc":"2.0","id":'),
            ("transport", "closed"),
            True,
        ),
        (b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n", ("http", 101), False),
    ],
)
def test_a_call_without_an_answer_fails_at_once(
    data: bytes, path: tuple[object, ...], maybe_done: bool
) -> None:
    """BC-105, BC-179, checks 58, 60, 61: one end, with what is known, and the next call works"""

    async def main() -> None:
        async def script(seen: Seen, wire: Wire) -> None:
            if seen.id == 9:
                await wire.result(seen)
            else:
                await wire.send(data)
                wire.end()

        async with Peer(script) as peer, dialed(peer) as (link, port):
            link.send(stateless_call(7), 7)
            reason = await port.reason_of(7)
            assert (reason.path, reason.maybe_done) == (path, maybe_done)
            assert "evil" not in str(reason)
            link.send(stateless_call(9), 9)
            await port.until(lambda: ("received", 9, Response(9, {})) in port.told)
            assert peer.methods() == ["tools/call", "tools/call"]

    asyncio.run(main())


@pytest.mark.parametrize("id", [7, None])
def test_a_refusal_carries_the_json_rpc_error_in_its_body(id: int | None) -> None:
    """BC-105; MCP 2026-07-28 streamable-http: 400 with -32022 and its data"""
    body = json.dumps({"jsonrpc": "2.0", "id": id, "error": ERROR}).encode()
    kind = {"Content-Type": "application/json", "Retry-After": "3"}
    _, _, reason = answer_of(replies(refusal(400, body, kind))).told[0]
    assert reason == Reason("http", 400, error=ERROR)
    assert isinstance(reason, Reason)
    assert reason.retry_after == 3.0


def test_the_body_of_a_refusal_is_bounded() -> None:
    """K12: the status alone will do"""
    huge = b'{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"' + b"x" * 300_000 + b'"}}'
    data = refusal(400, huge, {"Content-Type": "application/json"})
    assert answer_of(replies(data)).told == [("failed", 7, Reason("http", 400))]


def test_a_reset_is_told() -> None:
    """BC-105: TCP reset after the headers, and before them"""
    for head in (b"", http_head(200, {"Content-Length": "9"})):

        async def script(_seen: Seen, wire: Wire, head: bytes = head) -> None:
            await wire.send(head)
            wire.reset()

        _, _, reason = answer_of(script).told[0]
        assert isinstance(reason, Reason)
        assert reason.path in (("transport", "reset"), ("transport", "incomplete"))
        assert reason.maybe_done


@pytest.mark.parametrize("stale", [True, False])
def test_a_post_is_sent_once_whatever_happens_to_its_connection(stale: bool) -> None:
    """BC-179: a call whose bytes may have arrived is carried out at most once"""

    async def main() -> None:
        async def script(seen: Seen, wire: Wire) -> None:
            if stale and seen.id == 1:
                await wire.result(seen)
            else:
                wire.end()  # carried out, and no byte of an answer

        async with Peer(script) as peer, dialed(peer) as (link, port):
            if stale:
                link.send(stateless_call(1), 1)
                await port.next()
                port.told.clear()
            link.send(stateless_call(7), 7)
            reason = await port.reason_of(7)
            assert reason == Reason("transport", "closed")
            assert reason.maybe_done
            await peer.until(lambda: peer.left == 1)
            assert peer.connections == 1
            assert len(peer.seen) == (2 if stale else 1)

    asyncio.run(main())


def test_a_server_that_is_not_there_was_sent_nothing() -> None:
    """Ours: only then may a call be repeated without a thought"""

    async def main() -> None:
        async with Peer(nothing) as peer:
            url = peer.url
        async with dialed(url) as (link, port):
            link.send(stateless_call(7), 7)
            reason = await port.reason_of(7)
            assert reason == Reason("transport", "refused")
            assert not reason.maybe_done

    asyncio.run(main())


async def nothing(_seen: Seen, wire: Wire) -> None:
    await wire.gone()


# --- bounds -----------------------------------------------------------------------------------


def exactly(size: int) -> bytes:
    line = result_line(7, {"t": ""})
    return line.replace(b'""', b'"' + b"x" * (size - len(line)) + b'"')


async def chunked(wire: Wire, body: bytes, kind: str = "application/json") -> None:
    await wire.send(http_head(200, {"Content-Type": kind, "Transfer-Encoding": "chunked"}))
    for start in range(0, len(body), 1000):
        piece = body[start : start + 1000]
        await wire.send(b"%x\r\n%b\r\n" % (len(piece), piece))
    await wire.send(b"0\r\n\r\n")


async def announced(wire: Wire, body: bytes) -> None:
    await wire.send(json_body(body))


async def streamed(wire: Wire, body: bytes) -> None:
    await chunked(wire, sse(body), "text/event-stream")


@pytest.mark.parametrize("way", [chunked, announced, streamed])
@pytest.mark.parametrize("more", [0, 1])
def test_a_message_may_be_as_large_as_the_bound_and_no_larger(
    way: Callable[[Wire, bytes], Awaitable[None]], more: int
) -> None:
    """Check 60: exactly the ceiling is fine; a chunked body is counted"""

    async def script(_seen: Seen, wire: Wire) -> None:
        await way(wire, exactly(5000 + more))
        wire.end()

    (told,) = answer_of(script, max_message_bytes=5000).told
    if more:
        assert told == ("failed", 7, Reason("too_large", 5000))
    else:
        assert isinstance(told[2], Response)


def test_an_announced_length_over_the_bound_is_refused_before_the_body() -> None:
    """Check 60"""

    async def script(_seen: Seen, wire: Wire) -> None:
        await wire.send(
            http_head(200, {"Content-Type": "application/json", "Content-Length": "5001"})
        )
        await wire.gone()  # the client leaves, with nothing of the body sent

    assert answer_of(script, max_message_bytes=5000).told == [
        ("failed", 7, Reason("too_large", 5000))
    ]


def test_an_endless_event_is_given_up() -> None:
    """K12: the bound holds before the event is complete"""

    async def script(_seen: Seen, wire: Wire) -> None:
        await wire.events()
        for _ in range(100):
            await wire.send(b"data: " + b"x" * 1000 + b"\n")
        await wire.gone()

    assert answer_of(script, max_message_bytes=5000).told == [
        ("failed", 7, Reason("too_large", 5000))
    ]


def test_a_body_that_was_begun_has_to_go_on() -> None:
    """Check 61: it comes in one piece; no tool works in the middle of it"""

    async def script(_seen: Seen, wire: Wire) -> None:
        await wire.send(http_head(200, {"Content-Length": "9"}))
        await wire.gone()

    (told,) = answer_of(script, chunk_timeout=0.02).told
    assert told == ("failed", 7, Reason("timeout", "chunk"))
    assert isinstance(told[2], Reason)
    assert told[2].maybe_done


@pytest.mark.parametrize("kind", ["json", "events"])
def test_a_tool_may_work_in_silence(kind: str) -> None:
    """Ours: the timer of the call bounds that, and it is not the transport's"""

    async def main() -> None:
        async def script(seen: Seen, wire: Wire) -> None:
            if seen.id == 1:  # a body that does not go on says when the silence was long enough
                await wire.send(http_head(200, {"Content-Length": "9"}))
                await wire.gone()
                return
            if kind == "events":
                await wire.events()
            await peer.until(lambda: bool(port.told))
            if kind == "events":
                await wire.send(sse(result_line(seen.id)))
                wire.end()
            else:
                await wire.result(seen)

        async with Peer(script) as peer, dialed(peer, chunk_timeout=0.02) as (link, port):
            port.on_told = lambda *_: peer.changed()
            link.send(stateless_call(7), 7)
            await peer.until(lambda: len(peer.seen) == 1)
            link.send(stateless_call(1), 1)
            await port.next(2)
            assert port.told == [
                ("failed", 1, Reason("timeout", "chunk")),
                ("received", 7, Response(7, {})),
            ]

    asyncio.run(main())


def test_what_is_owed_no_answer_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: nobody else has a timer for it, and its connection is held meanwhile"""
    monkeypatch.setattr("raxol_mcp.transports.http_client.exchange._ACCEPTANCE_TIMEOUT", 0.02)
    (told,) = answer_of(nothing, Notification("notifications/cancelled")).told
    assert told == ("failed", 7, Reason("timeout", "deadline"))
    assert isinstance(told[2], Reason)
    assert told[2].maybe_done


def test_a_refusal_is_told_before_its_body_is_read_to_the_end() -> None:
    """BC-105: within a second, though the body never ends"""

    async def main() -> None:
        async def script(_seen: Seen, wire: Wire) -> None:
            await wire.send(http_head(404, {"Content-Length": "100"}))
            await wire.gone()

        async with Peer(script) as peer, dialed(peer) as (link, port):
            link.session.id = "S1"
            link.send(call(7), 7)
            assert await port.reason_of(7) == Reason("session_rejected")
            assert peer.left == 0

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
@pytest.mark.parametrize("wrong", [b"nonsense\r\n", b"\r\nzz\r\n", b"\r\n-1\r\n"])
def test_a_chunk_that_is_none_ends_the_body(kind: str, wrong: bytes) -> None:
    """BC-105: also when the head, and a part of the body, have long been read"""

    async def main() -> None:
        async def script(_seen: Seen, wire: Wire) -> None:
            head = http_head(200, {"Content-Type": kind, "Transfer-Encoding": "chunked"})
            event = sse(b'{"jsonrpc":"2.0","method":"n"}')
            await wire.send(head + b"%x\r\n%b" % (len(event), event))
            if kind == "text/event-stream":
                await peer.until(lambda: bool(port.told))
            await wire.send(wrong)
            await wire.gone()

        async with Peer(script) as peer, dialed(peer) as (link, port):
            port.on_told = lambda *_: peer.changed()
            link.send(stateless_call(7), 7)
            reason = await port.reason_of(7)
            assert reason.tag == "transport"
            # Read in one piece with the head, it spoils that.
            assert reason.detail in ("incomplete", "malformed")

    asyncio.run(main())


def test_a_length_beyond_all_lengths_is_too_large() -> None:
    """K12: a number that takes long to read is not read"""
    head = http_head(200, {"Content-Length": "9" * 19, "Content-Type": "application/json"})

    async def script(_seen: Seen, wire: Wire) -> None:
        await wire.send(head)
        await wire.gone()

    assert answer_of(script).told == [("failed", 7, Reason("too_large", 16 * 1024 * 1024))]


def test_a_long_request_arrives_whole() -> None:
    """Ours: what is larger than one write, and than what aiohttp likes"""
    message = stateless_call(7, params={"name": "t", "arguments": {"a": "x" * 3_000_000}})

    async def script(seen: Seen, wire: Wire) -> None:
        params = seen.message["params"]
        assert isinstance(params, dict)
        await wire.result(seen, {"length": len(params["arguments"]["a"])})

    assert answer_of(script, message).told == [("received", 7, Response(7, {"length": 3_000_000}))]


# --- what is owed no answer -------------------------------------------------------------------


@pytest.mark.parametrize(
    "message", [Notification("notifications/x"), Response("q", {}), Failure("q", -32601, "no")]
)
@pytest.mark.parametrize("status", [200, 202, 204])
def test_what_is_owed_no_answer_is_sent_with_any_success(message: Outgoing, status: int) -> None:
    """Any 2xx settles it; a mock may say 204"""
    port = answer_of(replies(refusal(status, b"" if status == 204 else b"ok")), message)
    assert port.told == [("sent", 7, None)]


def test_what_is_owed_no_answer_fails_with_a_refusal() -> None:
    """BC-105"""
    port = answer_of(replies(refusal(405)), Notification("notifications/x"))
    assert port.told == [("failed", 7, Reason("http", 405))]


# --- arrays -----------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [announced, streamed])
def test_an_array_is_read_where_the_revision_has_them(
    way: Callable[[Wire, bytes], Awaitable[None]],
) -> None:
    """MCP 2025-03-26 basic/transports: batches; the answer is handed over last"""
    batch = b"[%b,%b,5]" % (result_line(7), PROGRESS)

    async def main() -> None:
        async def script(_seen: Seen, wire: Wire) -> None:
            await way(wire, batch)

        async with Peer(script) as peer, dialed(peer) as (link, port):
            link.agreed(EraName.HANDSHAKE, "2025-03-26")
            link.send(call(7), 7)
            await port.next(3)
            assert [type(value) for _, _, value in port.told] == [Notification, Invalid, Response]
            port.told.clear()
            link.agreed(EraName.HANDSHAKE, "2025-06-18")
            link.send(call(7), 7)
            await port.until(lambda: any(ends(*told) for told in port.told))
            assert isinstance(port.told[0][2], Ignored)

    asyncio.run(main())


# --- resumption -------------------------------------------------------------------------------


RETRY = 0.02


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a server name a wait that is shorter than ours would be."""
    monkeypatch.setattr("raxol_mcp.transports.http_client.resumption.SHORTEST_WAIT", 0.0)


def resumable(*parts: bytes | int) -> Script:
    """Answer a call with a stream that breaks off, and each GET with the next part."""
    left = list(parts)

    async def script(seen: Seen, wire: Wire) -> None:
        if seen.rpc == "initialize":
            await wire.json(
                {"jsonrpc": "2.0", "id": seen.id, "result": {}}, headers={"Mcp-Session-Id": "S1"}
            )
        elif seen.rpc == "notifications/initialized":
            await wire.reply(202)
        elif seen.rpc == "tools/call":
            await wire.events(b"id: e1\nretry: %d\ndata:\n\n" % round(RETRY * 1000))
            wire.end()
        elif seen.method == "GET":
            part = left.pop(0) if left else 404
            if isinstance(part, int):
                await wire.reply(part)
            else:
                await wire.events(part)
                wire.end()
        else:
            await wire.reply(200)

    return script


def resumed(*parts: bytes | int, version: str = "2025-11-25") -> tuple[Port, list[Seen], float]:
    """Give what was told, the GETs that came, and how long it took from the first end on."""

    async def main() -> tuple[Port, list[Seen], float]:
        loop = asyncio.get_running_loop()
        async with (
            Peer(resumable(*parts)) as peer,
            dialed(peer, listen=False) as (link, port),
        ):
            await handshaken(link, port, version)
            began = loop.time()
            link.send(call(7), 7)
            await port.until(lambda: any(ends(*told) for told in port.told))
            took = loop.time() - began
            return port, [seen for seen in peer.seen if seen.method == "GET"], took

    return asyncio.run(main())


@pytest.mark.usefixtures("short_waits")
def test_a_stream_that_breaks_off_is_asked_for_again_with_get() -> None:
    """MCP 2025-11-25 basic/transports §Resumability: after `retry`, with the last id"""
    port, gets, took = resumed(sse(PROGRESS, id="e2"), sse(result_line(7), id="e3"))
    assert [value for _, _, value in port.told] == [
        Notification("notifications/progress", {"progress": 1}),
        Response(7, {}),
    ]
    assert [key for _, key, _ in port.told] == [7, 7]
    assert [seen.header("Last-Event-ID") for seen in gets] == ["e1", "e2"]
    assert {seen.header("Mcp-Session-Id") for seen in gets} == {"S1"}
    assert {seen.header("MCP-Protocol-Version") for seen in gets} == {"2025-11-25"}
    assert {seen.header("Accept") for seen in gets} == {"text/event-stream"}
    assert took >= 2 * RETRY, "each wait is at least what the server named"


@pytest.mark.usefixtures("short_waits")
@pytest.mark.parametrize("status", [400, 404, 405, 406, 401, 200])
def test_a_stream_that_is_refused_was_all_there_is(status: int) -> None:
    """Ours: the call may have been carried out, so this is no lost session"""
    port, gets, _ = resumed(status)
    reason = port.told[0][2]
    assert isinstance(reason, Reason)
    assert reason.path == ("transport", "closed", "http", status)
    assert reason.maybe_done
    assert len(gets) == 1


@pytest.mark.usefixtures("short_waits")
def test_a_stream_that_is_refused_for_the_moment_is_asked_for_again() -> None:
    """K23: with growing waits"""
    port, gets, took = resumed(503, sse(result_line(7)))
    assert port.told == [("received", 7, Response(7, {}))]
    assert len(gets) == 2
    assert took >= RETRY + 2 * RETRY


@pytest.mark.usefixtures("short_waits")
def test_a_stream_that_is_cut_is_resumed_too() -> None:
    """Ours: in the middle of a chunk, which is an error and not the end"""

    async def main() -> None:
        async def script(seen: Seen, wire: Wire) -> None:
            if seen.method == "GET":
                await wire.events(sse(result_line(7)))
            else:
                kind = {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}
                event = b"id: e1\nretry: 1\ndata:\n\n"
                await wire.send(
                    http_head(200, kind) + b"%x\r\n%b\r\nff\r\nda" % (len(event), event)
                )
            wire.end()

        async with Peer(script) as peer, dialed(peer) as (link, port):
            link.send(call(7), 7)
            await port.next()
            assert port.told == [("received", 7, Response(7, {}))]
            assert peer.methods() == ["tools/call", "GET"]

    asyncio.run(main())


@pytest.mark.usefixtures("short_waits")
def test_a_server_that_is_gone_is_asked_for_the_rest_a_few_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """K23: the reason says what the last try found"""
    monkeypatch.setattr("raxol_mcp.transports.http_client.exchange._TRIES", 1)

    async def main() -> None:
        async with AsyncExitStack() as stack:
            peer = await stack.enter_async_context(Peer(resumable()))
            link, port = await stack.enter_async_context(dialed(peer, listen=False))
            await handshaken(link, port)
            link.send(call(7), 7)
            await peer.until(lambda: "tools/call" in peer.methods())
            await peer.__aexit__()
            reason = await port.reason_of(7)
            assert reason.path == ("transport", "closed", "transport", "refused")
            assert reason.maybe_done

    asyncio.run(main())


@pytest.mark.usefixtures("short_waits")
def test_tries_that_bring_nothing_come_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """K23: a peer that answers the same for ever"""
    monkeypatch.setattr("raxol_mcp.transports.http_client.exchange._TRIES", 2)
    port, gets, _ = resumed(*[b":\n\n"] * 9)
    assert port.told == [("failed", 7, Reason("transport", "closed"))]
    assert len(gets) == 2


@pytest.mark.usefixtures("short_waits")
def test_a_server_that_repeats_itself_comes_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """K23: an event that was there before is no progress"""
    monkeypatch.setattr("raxol_mcp.transports.http_client.exchange._TRIES", 2)
    port, gets, _ = resumed(*[sse(PROGRESS, id="e1")] * 9)
    assert port.told[-1] == ("failed", 7, Reason("transport", "closed"))
    assert len(gets) == 2


@pytest.mark.parametrize("data", [b"", b"retry: 1\n\n", b"id: \x80\ndata:\n\n", b"data:\n\n"])
def test_a_stream_without_a_place_cannot_be_resumed(data: bytes) -> None:
    """MCP 2025-11-25 basic/transports §Resumability: an id says that it can"""

    async def script(_seen: Seen, wire: Wire) -> None:
        await wire.events(data)
        wire.end()

    assert answer_of(script, call(7)).told == [("failed", 7, Reason("transport", "closed"))]


def test_the_stateless_era_resumes_nothing() -> None:
    """MCP 2026-07-28 streamable-http: a broken stream is a lost request"""

    async def main() -> None:
        async def script(_seen: Seen, wire: Wire) -> None:
            await wire.events(b"id: 1\nretry: 1\ndata:\n\n")
            wire.end()

        async with Peer(script) as peer, dialed(peer) as (link, port):
            link.send(stateless_call(7), 7)
            reason = await port.reason_of(7)
            assert reason == Reason("transport", "closed")
            assert reason.maybe_done
            assert peer.methods() == ["tools/call"]

    asyncio.run(main())


# --- bugs -------------------------------------------------------------------------------------


def test_a_bug_costs_one_call_and_tells_no_secret(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """client-behaviour: a worker that died is `task_down`"""

    def fails(*_: object) -> None:
        raise LookupError("SECRET")

    monkeypatch.setattr("raxol_mcp.transports.http_client.exchange.new_events", fails)
    (told,) = answer_of(in_events(sse(result_line(7)))).told
    assert told == ("failed", 7, Reason("task_down", "LookupError"))
    assert "LookupError" in caplog.text
    assert "SECRET" not in caplog.text
