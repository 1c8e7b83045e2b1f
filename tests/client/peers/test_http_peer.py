"""The HTTP peer does what its script says, notices what a client does wrong, and leaves nothing."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import suppress

import pytest

from tests.client.peers.http_peer import HttpPeer
from tests.client.peers.script import (
    Message,
    Step,
    drop,
    http,
    notice,
    on,
    raw,
    script,
    silent,
    sse,
    text,
    wire,
)

TYPE = "Content-Type: application/json\r\nConnection: close\r\n"
BOTH = f"Accept: application/json, text/event-stream\r\n{TYPE}"
CALL: Message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo"}}
INITIALIZE: Message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}


async def post(peer: HttpPeer, message: Message, head: str = BOTH) -> bytes:
    """Send one POST and return all that comes until the end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", peer.port)
    body = json.dumps(message).encode()
    lines = f"POST /mcp HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\n\r\n"
    try:
        writer.write(lines.encode() + body)
        return await reader.read()
    except ConnectionError:
        return b"reset"
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


def answer(data: Message, message: Message = CALL, head: str = BOTH) -> tuple[bytes, HttpPeer]:
    """Ask a peer one thing; afterwards nothing of it may be left."""

    async def asks() -> tuple[bytes, HttpPeer]:
        before = len(os.listdir("/proc/self/fd"))
        async with HttpPeer(data) as peer:
            found = await post(peer, message, head)
        assert peer.open == 0
        assert peer.broken == []
        assert len(os.listdir("/proc/self/fd")) == before
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return found, peer

    return asyncio.run(asks())


def free(*steps: Step) -> Message:
    """Script what is done with a call, without sessions."""
    return script("legacy", on("tools/call", *steps), session=None)


def test_a_request_is_answered_in_json() -> None:
    found, peer = answer(script("legacy", session=None))
    head, _, body = found.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert json.loads(body)["id"] == 1
    assert peer.breaches == []
    assert bytes(peer.raw[0]).endswith(json.dumps(CALL).encode())


def test_messages_before_the_answer_make_it_a_stream() -> None:
    found, _ = answer(free(notice("n"), text("x")))
    assert b"Content-Type: text/event-stream" in found
    assert found.count(b"event: message\ndata: ") == 2
    assert found.endswith(b"0\r\n\r\n")


@pytest.mark.parametrize(
    ("step", "start", "end"),
    [
        (http(429, "slow", Retry_After="7"), b"HTTP/1.1 429", b"Retry-After: 7\r\n\r\nslow"),
        (sse(b"a: x\r", chunk=3), b"HTTP/1.1 200", b"3\r\na: \r\n2\r\nx\r\r\n0\r\n\r\n"),
        (wire(b"\x00HTTP"), b"\x00HTTP", b"\x00HTTP"),
        (raw('{"id":$ID}', chunk=1), b"HTTP/1.1 200", b'\r\n\r\n{"id":1}'),
        (drop("close"), b"", b""),
        (drop("headers"), b"HTTP/1.1 200", b"Length: 1000\r\n\r\n"),
        (drop("body"), b"HTTP/1.1 200", b'"id":'),
        (drop("reset"), b"reset", b"reset"),
    ],
    ids=str,
)  # fmt: skip
def test_every_step_does_what_it_says(step: Step, start: bytes, end: bytes) -> None:
    found, _ = answer(free(step))
    assert found.startswith(start)
    assert found.endswith(end)


def test_silence_lasts_until_the_client_goes() -> None:
    async def asks() -> None:
        async with HttpPeer(free(silent())) as peer:
            asking = asyncio.ensure_future(post(peer, CALL))
            await peer.until(lambda: bool(peer.received))
            asking.cancel()
            await asyncio.wait([asking])
            await peer.until(lambda: not peer.open)
            assert peer.running == 0

    asyncio.run(asks())


def test_a_session_is_given_and_wanted() -> None:
    found, _ = answer(script("legacy"), INITIALIZE)
    assert b"Mcp-Session-Id: S1\r\n" in found
    assert answer(script("legacy"))[0].startswith(b"HTTP/1.1 400")
    unknown = f"{BOTH}Mcp-Session-Id: S9\r\n"
    assert answer(script("legacy"), CALL, unknown)[0].startswith(b"HTTP/1.1 404")


@pytest.mark.parametrize(
    ("preset", "message", "head", "breach"),
    [
        ("legacy", CALL, TYPE, "Accept without both types"),
        ("legacy", INITIALIZE, f"{BOTH}Mcp-Session-Id: x\r\n", "a session on initialize"),
        ("legacy", {"method": "tools/list"}, BOTH, "no JSON-RPC message"),
        ("legacy", CALL, f"{BOTH}MCP-Protocol-Version: 7\r\n", "version header '7'"),
    ],
)
def test_what_a_client_does_wrong_is_noticed(
    preset: str, message: Message, head: str, breach: str
) -> None:
    _, peer = answer(script(preset, session=None), message, head)
    assert peer.breaches == [f"{message['method']}: {breach}"]
