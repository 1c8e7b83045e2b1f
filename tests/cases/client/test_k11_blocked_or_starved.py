"""K11: nothing that one call, one handler or one flood does holds another call.

A bounded queue of notifications that nobody read stopped the answers behind it; without a window
two calls broke a fragile server, and with a hidden lock callers waited without an end.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from raxol_mcp.client.app import Client
from raxol_mcp.client.results import LogMessage
from raxol_mcp.errors import Busy
from raxol_mcp.testing.virtual_loop import run_virtual
from tests.client.misbehaviour.attempts import Error, Outcome, Says, attempt, echo
from tests.client.peers.clients import http_client, memory_client, pipe_client
from tests.client.peers.held import BOUND
from tests.client.peers.memory_link import MemoryDialer
from tests.client.peers.script import as_usual, http, notice, on, script, silent, text, wait

LOG = notice("notifications/message", {"level": "info", "data": "A" * 1024}, count=10_000)
PROGRESS = notice(
    "notifications/progress", {"progressToken": "$TOKEN", "progress": "$N"}, count=2_000
)
CHANGED = notice("notifications/tools/list_changed", count=100)
FLOOD = on("tools/call", LOG, PROGRESS, CHANGED, as_usual(), times=2)
BUSY = Error("Busy", ("busy",))
TIMED_OUT = Error("TimedOut", ("timeout",))


def quick(message: LogMessage) -> None:
    """Take note, and go on."""


async def slow(message: LogMessage) -> None:
    """Take a second for each message."""
    await asyncio.sleep(1.0)


def broken(message: LogMessage) -> None:
    """Fail at each message."""
    raise RuntimeError("not my day")


@pytest.mark.parametrize(
    "handler", [None, quick, slow], ids=lambda each: getattr(each, "__name__", "none")
)
def test_a_flood_does_not_hold_the_answer_behind_it(
    handler: Callable[[LogMessage], object] | None, tmp_path: Path
) -> None:
    """BC-177, over a real pipe: with no handler, and with one that takes its time."""

    async def tries() -> None:
        async with pipe_client(
            script("legacy", FLOOD), tmp_path, spec={"call_timeout": BOUND}, logging=handler
        ) as (client, _):
            seen: list[float] = []
            for said in ("x", "y"):
                result = client.call_tool(
                    "echo", {"text": said}, progress=lambda told: seen.append(told.progress)
                )
                assert await attempt(result) == Says(said)
            # What is reported comes before the answer, and only ever more of it.
            assert seen == [*range(2_000)] * 2

    asyncio.run(tries())


def test_a_handler_that_fails_fails_alone() -> None:
    """BC-177, the kind: what a callback raises is no business of the call."""

    async def tries() -> None:
        log = notice("notifications/message", {"level": "info", "data": 1}, count=100)
        async with memory_client(
            script("legacy", on("tools/call", log, as_usual())), logging=broken
        ) as (client, _):
            assert await attempt(echo(client)) == Says("x")

    run_virtual(tries)


def test_a_handler_may_call_the_server_that_it_listens_to() -> None:
    """BC-177, the third run: a call from inside a handler."""

    async def tries() -> None:
        outcomes: list[Outcome] = []
        clients: list[Client] = []

        async def calls(_message: LogMessage) -> None:
            outcomes.append(await attempt(echo(clients[0], "inner"), bound=100.0))

        log = notice("notifications/message", {"level": "info", "data": 1})
        data = script("legacy", on("tools/call", log, as_usual(), times=1))
        async with memory_client(data, logging=calls) as (client, _):
            clients.append(client)
            assert await attempt(echo(client)) == Says("x")
            await asyncio.sleep(0.1)
            assert outcomes == [Says("inner")]

    run_virtual(tries)


def test_a_serialized_session_has_one_call_at_a_time() -> None:
    """BC-169, over HTTP. client-2.8.0 §Concurrency: 1 in flight, 2 wait, the others are refused."""

    async def tries() -> None:
        spec = {"concurrency": "serialized", "queue_limit": 2, "call_timeout": BOUND}
        data = script("legacy", on("tools/call", wait(0.05), as_usual()))
        async with http_client(data, spec=spec) as (client, peer):
            # The notification that ends the handshake holds the one slot for a moment.
            await peer.until(lambda: "notifications/initialized" in peer.methods)
            assert await attempt(echo(client)) == Says("x")
            peer.most_at_once = 0
            calls = [asyncio.ensure_future(attempt(echo(client, str(n)))) for n in range(5)]
            await asyncio.sleep(0)
            assert [call.done() for call in calls] == [False, False, False, True, True]
            outcomes = [await call for call in calls]
            assert outcomes == [Says("0"), Says("1"), Says("2"), BUSY, BUSY]
            assert len(peer.about("tools/call")) == 4
            assert peer.most_at_once == 1

    asyncio.run(tries())


def test_a_pool_has_as_many_as_it_says() -> None:
    """BC-169: twenty callers, four at a time; who leaves or runs out of time is never sent."""

    async def tries() -> None:
        loop = asyncio.get_running_loop()
        spec = {"concurrency": "pooled", "pool_size": 4, "queue_limit": 16, "call_timeout": 10.0}
        data = script("legacy", on("tools/call", wait(4.0), text("$TEXT")))
        async with memory_client(data, spec=spec) as (client, dialer):
            at_once = 0

            def look() -> None:
                nonlocal at_once
                at_once = max(at_once, dialer.busy)
                loop.call_later(0.5, look)

            look()
            calls = [
                asyncio.ensure_future(attempt(echo(client, str(n)), bound=100)) for n in range(20)
            ]
            await asyncio.sleep(1.0)
            assert await attempt(echo(client, "one too many")) == BUSY
            calls[5].cancel()  # it waits
            outcomes = await asyncio.gather(*calls, return_exceptions=True)
            assert isinstance(outcomes[5], asyncio.CancelledError)
            # 4 s each, 4 at once, 10 s for all of it: twelve places, one of which was given back.
            served = [*range(5), *range(6, 9)]
            assert [n for n, each in enumerate(outcomes) if each == Says(str(n))] == served
            assert outcomes.count(TIMED_OUT) == 20 - len(served) - 1
            sent = [
                each["params"]["arguments"]["text"]
                for each in dialer.received
                if each.get("method") == "tools/call"
            ]
            assert sent == [str(n) for n in (*served, 9, 10, 11, 12)]
            assert at_once == 4
            assert (client.status().pending, client.status().queued) == (0, 0)

    run_virtual(tries)


def test_a_fixed_credential_is_tried_once() -> None:
    """BC-169: a 401 answers everybody who waits, and nobody knocks again."""

    async def tries() -> None:
        async with http_client(script("modern", on("*", http(401))), ready=False) as (client, peer):
            waiting = [asyncio.ensure_future(attempt(client.await_ready())) for _ in range(20)]
            assert set(await asyncio.gather(*waiting)) == {Error("ConnectFailed", ("http", 401))}
            assert client.status().retry_in is None
            assert len(peer.received) == 1

    asyncio.run(tries())


def test_nobody_waits_for_a_slow_neighbour() -> None:
    """The kind: beside a silent call, a flood and a handler that sleeps, no time passes."""

    async def tries() -> None:
        data = script(
            "legacy",
            on(
                "tools/call slow",
                notice("notifications/message", {"level": "info", "data": 1}, count=500),
                silent(),
            ),
        )
        async with memory_client(data, spec={"queue_limit": 0}, logging=slow) as (client, _):
            loop = asyncio.get_running_loop()
            neighbours = [
                asyncio.ensure_future(attempt(client.call_tool("slow"), bound=100))
                for _ in range(7)
            ]
            await asyncio.sleep(0)
            for n in range(100):
                began = loop.time()
                assert await attempt(echo(client, str(n))) == Says(str(n))
                assert loop.time() == began
            assert await asyncio.gather(*neighbours) == [TIMED_OUT] * 7

    run_virtual(tries)


def test_a_window_is_never_exceeded_whoever_comes_and_goes() -> None:
    """The kind: callers of any patience, some of whom leave, and every slot is given back."""

    async def tries() -> None:
        data = script(
            "legacy", on("tools/call slow", silent()), on("tools/call", wait(1), as_usual())
        )
        dialer = MemoryDialer(data, kind="http")  # to leave is to cancel
        async with memory_client(dialer, spec={"pool_size": 3, "queue_limit": 5}) as (client, _):
            for wave in range(30):
                calls = [
                    asyncio.ensure_future(
                        attempt(
                            client.call_tool(
                                ("echo", "slow")[n % 2], timeout=0.5 + (n * 7 + wave) % 5
                            )
                        )
                    )
                    for n in range(12)
                ]
                await asyncio.sleep((wave % 4) * 0.4)
                assert dialer.busy <= 3
                for call in calls[wave % 3 :: 3]:
                    call.cancel()
                await asyncio.wait(calls)
                assert (client.status().pending, client.status().queued) == (0, 0)
            assert await attempt(echo(client)) == Says("x")

    run_virtual(tries)


def test_a_flood_costs_no_more_than_its_bytes(tmp_path: Path) -> None:
    """ours: a hundred thousand notifications that concern nobody; the loop is never held long."""

    async def tries() -> None:
        data = script(
            "legacy", on("tools/call", notice("notifications/x", count=100_000), as_usual())
        )
        async with pipe_client(data, tmp_path, spec={"call_timeout": BOUND}) as (client, _):
            call = asyncio.ensure_future(attempt(echo(client)))
            longest = 0.0
            while not call.done():
                began = time.monotonic()
                await asyncio.sleep(0)
                longest = max(longest, time.monotonic() - began)
            assert await call == Says("x")
            assert longest < BOUND / 10

    asyncio.run(tries())


def test_busy_says_so() -> None:
    """client-2.8.0: the exception of a refusal is one to catch by its name."""

    async def tries() -> None:
        async with memory_client(script("legacy"), spec={"pool_size": 1, "queue_limit": 1}) as (
            client,
            _,
        ):
            assert await attempt(echo(client)) == Says("x")
            holding = asyncio.ensure_future(attempt(client.call_tool("slow"), bound=100))
            await asyncio.sleep(0)
            waiting = asyncio.ensure_future(attempt(echo(client), bound=100))
            await asyncio.sleep(0)
            with pytest.raises(Busy) as refused:
                await client.call_tool("echo", {})
            assert refused.value.tag == "busy"
            assert [await holding, await waiting] == [TIMED_OUT, TIMED_OUT]

    run_virtual(tries)
