"""Answers that were damaged at random: every call ends, once, and nothing is left or logged."""

from __future__ import annotations

import asyncio
import gc
import logging
import random

import pytest

from raxol_mcp.transports.http_client.tables import Tables
from raxol_mcp.wire.jsonrpc import Failure, Response
from tests.transports.http_client.peers import (
    HANG,
    Peer,
    Seen,
    Wire,
    call,
    dialed,
    http_head,
    result_line,
    sse,
    stateless_call,
)

CHUNKED = {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}
DAMAGES = [b"\r\n", b"\n\n", b"\0", b"\xff", b":", b"99999999999", b"data: x\n\n", b"HTTP/1.1 "]


def whole(id: object) -> list[bytes]:
    """Return answers of every kind to one request."""
    line = result_line(id)
    event = sse(b'{"jsonrpc":"2.0","method":"n"}', id="1") + sse(line, id="2")
    error = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32022}}'
    json = {"Content-Type": "application/json"}
    return [
        http_head(200, {**json, "Content-Length": str(len(line))}) + line,
        http_head(200, json) + line,
        http_head(200, CHUNKED) + b"%x\r\n%b\r\n0\r\n\r\n" % (len(event), event),
        http_head(400, {**json, "Content-Length": str(len(error))}) + error,
        http_head(202, {"Content-Length": "0"}),
    ]


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Change, drop, add or cut off something, or nothing, some times."""
    for _ in range(chance.choice([0, 1, 1, 2, 5])):
        at = chance.randrange(len(data))
        match chance.randrange(4):
            case 0:
                data = data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]
            case 1:
                data = data[:at] + data[at + chance.randrange(1, 9) :] or b"x"
            case 2:
                data = data[:at] + chance.choice(DAMAGES) + data[at:]
            case _:
                data = data[:at] or b"x"
    return data


async def suffer(seed: int, calls: int) -> None:
    """Make calls to a server that damages its answers."""
    chance = random.Random(seed)

    async def script(seen: Seen, wire: Wire) -> None:
        id = seen.id if seen.body else 0
        data = damaged(chance.choice(whole(id)), chance)
        size = chance.choice([1, 7, 10_000])
        await wire.drip(data, size)
        if chance.random() < 0.9:
            wire.end()
        else:
            wire.reset()

    # Breakers that never open: most of these calls fail.
    tables = Tables(threshold=10**9)
    async with Peer(script) as peer:
        async with dialed(peer, tables=tables, max_message_bytes=10_000) as (link, port):
            for key in range(1, calls + 1):
                link.send(call(key) if chance.random() < 0.3 else stateless_call(key), key)
                if chance.random() < 0.1:
                    link.abort(key)
                    continue
                async with asyncio.timeout(HANG):
                    await port.until(lambda: any(ends(*told) for told in port.told))
                assert {about for _, about, _ in port.told} == {key}
                assert [ends(*told) for told in port.told].count(True) == 1
                port.told.clear()
        await peer.until(lambda: peer.left == peer.connections)
        assert len(asyncio.all_tasks()) == 1


def ends(what: str, _key: int | None, value: object) -> bool:
    """Say whether this is the end of a call."""
    return what == "failed" or isinstance(value, Response | Failure)


def suffered(
    seed: int, calls: int, caplog: pytest.LogCaptureFixture, patch: pytest.MonkeyPatch
) -> None:
    """Suffer without a word in the log."""
    patch.setattr("raxol_mcp.transports.http_client.resumption.DEFAULT_RETRY", 0.0)
    patch.setattr("raxol_mcp.transports.http_client.resumption.SHORTEST_WAIT", 0.0)
    # The peer writes on after it was left, which asyncio finds worth a warning.
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    try:
        asyncio.run(suffer(seed, calls))
        gc.collect()
    finally:
        logging.getLogger("asyncio").setLevel(logging.NOTSET)
    assert caplog.text == ""


def test_a_damaged_answer_ends_its_call(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BC-105, K19, K22"""
    suffered(1, 60, caplog, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_so_do_many(
    seed: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BC-105, K19, K22"""
    suffered(seed, 500, caplog, monkeypatch)
