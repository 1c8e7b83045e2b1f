"""K12: whatever a server sends, there is an end to what is kept of it."""

from __future__ import annotations

import asyncio
import tracemalloc
from pathlib import Path

import pytest

from tests.client.misbehaviour.attempts import Error, Outcome, Says, attempt, echo
from tests.client.peers.clients import http_client, pipe_client
from tests.client.peers.held import BOUND
from tests.client.peers.script import Step, on, raw, script, sse

LIMIT = 1_000_000
HEAD = '{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"x":"'
TAIL = '"}}'
SIZES = {"one below": LIMIT - 1, "at it": LIMIT, "one above": LIMIT + 1, "far above": 50 * LIMIT}


def answer(size: int, tail: str = "") -> Step:
    """Write an answer of exactly so many bytes to a request whose id has one digit."""
    filling = size - len(HEAD) + len("$I") - len(TAIL)
    return raw(HEAD, ("A", filling), TAIL, tail)


@pytest.mark.parametrize("name", SIZES)
def test_a_line_has_its_limit_at_its_number(name: str, tmp_path: Path) -> None:
    """client-behaviour §10: exactly the limit is allowed, one more closes the connection."""
    size = SIZES[name]

    async def tries() -> None:
        data = script("legacy", on("tools/call", answer(size, tail="\n"), life=1))
        spec = {"max_message_bytes": LIMIT, "call_timeout": BOUND}
        async with pipe_client(data, tmp_path, spec=spec) as (client, _):
            expected: Outcome = Says("")
            if size > LIMIT:
                expected = Error("ConnectionLost", ("line_too_long", LIMIT))
            assert await attempt(echo(client)) == expected
            await client.await_ready()
            assert client.status().status == "ready"

    asyncio.run(tries())


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("framing", ["body", "event"])
def test_a_response_has_its_limit_at_its_number(framing: str, name: str) -> None:
    """client-behaviour §11.4, for a body and for an event: that call fails, and no other."""
    size = SIZES[name]

    async def tries() -> None:
        step = answer(size)
        if framing == "event":
            step = sse("data: ", *((said, count) for said, count in step["pieces"]), "\n\n")
        data = script("legacy", on("tools/call", step, times=1))
        spec = {"max_message_bytes": LIMIT, "call_timeout": BOUND}
        async with http_client(data, spec=spec) as (client, _):
            expected: Outcome = Says("")
            if size > LIMIT:
                expected = Error("RequestFailed", ("too_large", LIMIT))
            assert await attempt(echo(client)) == expected
            assert await attempt(echo(client, "next")) == Says("next")

    asyncio.run(tries())


@pytest.mark.parametrize("wire", ["pipe", "http"])
def test_what_is_too_long_is_not_kept(wire: str, tmp_path: Path) -> None:
    """The kind: fifty times the limit costs no more memory than a few times it."""

    async def tries() -> None:
        data = script("legacy", on("tools/call", raw(("A", 50 * LIMIT)), times=1, life=1))
        spec = {"max_message_bytes": LIMIT, "call_timeout": BOUND}
        if wire == "pipe":
            async with pipe_client(data, tmp_path, spec=spec) as (client, _):
                tracemalloc.start()
                await attempt(echo(client))
                _, peak = tracemalloc.get_traced_memory()
                tracemalloc.stop()
            assert peak < 8 * LIMIT
        else:
            async with http_client(data, spec=spec) as (client, peer):
                await attempt(echo(client))
                assert peer.running <= 1  # it was cut off, not read to its end
                assert await attempt(echo(client, "next")) == Says("next")

    asyncio.run(tries())
