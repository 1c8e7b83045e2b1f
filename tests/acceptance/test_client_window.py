"""How many calls are with a server at once, who waits, who is refused, and when a wait ends.

Sources: client-2.8.0 §Concurrency and the in-flight window, §call_tool; ADR-0025.
"""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

from raxol_mcp import Client
from raxol_mcp.testing.virtual_loop import run_virtual
from tests.client.misbehaviour.attempts import Error, Outcome, Says, attempt, echo
from tests.client.peers.clients import http_client, memory_client
from tests.client.peers.script import http, on, script, silent, text, wait

# More than any timer of a client, in virtual seconds.
FOREVER: Final = 100_000.0
TIMED_OUT: Final = Error("TimedOut", ("timeout",))
BUSY: Final = Error("Busy", ("busy",))
SERIALIZED: Final = {"concurrency": "serialized"}


def begun(client: Client, tool: str, text: str = "x") -> asyncio.Task[Outcome]:
    """Begin a call; its task says what came of it."""
    call = client.call_tool(tool, {"text": text})
    return asyncio.ensure_future(attempt(call, bound=FOREVER))


def now() -> float:
    """Say what time it is on the virtual clock."""
    return round(asyncio.get_running_loop().time(), 3)


def test_a_serialized_session_has_one_on_the_wire_in_order() -> None:
    """client-behaviour check 22: over real sockets; one runs, two wait, one is refused."""

    async def tries() -> None:
        data = script("legacy", on("tools/call", wait(0.02), text("$TEXT")))
        async with http_client(data, spec={**SERIALIZED, "queue_limit": 2}) as (client, peer):
            assert await attempt(echo(client)) == Says("x")
            calls = [begun(client, "echo", str(n)) for n in range(4)]
            await peer.until(lambda: len(peer.about("tools/call")) == 2)
            status = client.status()
            assert (status.pending, status.queued) == (1, 2)
            assert await asyncio.gather(*calls) == [Says("0"), Says("1"), Says("2"), BUSY]
            sent = [each.message["params"]["arguments"] for each in peer.about("tools/call")]
            assert sent == [{"text": "x"}, {"text": "0"}, {"text": "1"}, {"text": "2"}]
            assert peer.most_at_once == 1
            status = client.status()
            assert (status.pending, status.queued) == (0, 0)

    asyncio.run(tries())


@pytest.mark.parametrize("preset", ["legacy", "modern"])
@pytest.mark.parametrize("policy", ["pooled", "stateless"])
def test_a_pool_of_two_runs_two(preset: str, policy: str) -> None:
    """client-behaviour check 23."""

    async def tries() -> None:
        data = script(preset, on("tools/call", wait(1.0), text("$TEXT", resultType="complete")))
        spec = {"concurrency": policy, "pool_size": 2, "queue_limit": 1}
        async with memory_client(data, kind="http", spec=spec) as (client, dialer):
            await asyncio.sleep(1.0)
            calls = [begun(client, "echo", str(n)) for n in range(4)]
            await asyncio.sleep(0.5)
            status = client.status()
            assert (status.pending, status.queued) == (2, 1)
            assert [call.done() for call in calls] == [False, False, False, True]
            assert await asyncio.gather(*calls) == [Says("0"), Says("1"), Says("2"), BUSY]
            assert dialer.methods.count("tools/call") == 3

    run_virtual(tries)


def test_by_default_eight_run_and_eight_wait() -> None:
    """client-2.8.0: "every policy has a finite in-flight cap". ours: the numbers."""

    async def tries() -> None:
        async with memory_client(script("legacy"), spec={"call_timeout": 5.0}) as (client, _):
            calls = [begun(client, "slow") for _ in range(20)]
            await asyncio.sleep(1.0)
            status = client.status()
            assert (status.pending, status.queued) == (8, 8)
            outcomes = await asyncio.gather(*calls)
            assert outcomes == [TIMED_OUT] * 16 + [BUSY] * 4

    run_virtual(tries)


@pytest.mark.parametrize("kind", ["memory", "http"])
@pytest.mark.parametrize("preset", ["legacy", "modern"])
def test_a_silent_tool_is_answered_for_however_long_the_caller_waits(
    preset: str, kind: str
) -> None:
    """client-behaviour check 24; client-2.8.0: on expiry the client replies itself."""

    async def tries() -> None:
        async with memory_client(script(preset), kind=kind) as (client, _):
            began = now()
            async with asyncio.timeout(FOREVER):
                assert await begun(client, "slow") == TIMED_OUT
            assert now() - began == 30.0
            status = client.status()
            assert (status.status, status.pending, status.queued) == ("ready", 0, 0)
            assert await attempt(echo(client)) == Says("x")

    run_virtual(tries)


@pytest.mark.parametrize("kind", ["memory", "http"])
def test_waiting_and_running_share_one_timeout(kind: str) -> None:
    """client-behaviour checks 25, 26: three callers of a held session, and nothing is at work."""

    async def tries() -> None:
        spec = {**SERIALIZED, "call_timeout": 0.15}
        async with memory_client(script("legacy"), kind=kind, spec=spec) as (client, dialer):
            assert await attempt(echo(client)) == Says("x")
            began = now()
            first, second = begun(client, "slow"), begun(client, "slow")
            await asyncio.sleep(0.1)
            third = begun(client, "slow")
            assert [await first, await second] == [TIMED_OUT] * 2
            assert now() - began == pytest.approx(0.15)
            assert await third == TIMED_OUT
            assert now() - began == pytest.approx(0.25)
            # Of the second nothing was ever sent; the third had its turn for what was left.
            assert dialer.methods.count("tools/call") == 3
            status = client.status()
            assert (status.pending, status.queued) == (0, 0)
            if kind == "http":
                assert dialer.busy == 0
            assert await attempt(echo(client)) == Says("x")

    run_virtual(tries)


def test_busy_is_said_at_once_to_the_most_patient() -> None:
    """client-behaviour check 27."""

    async def tries() -> None:
        spec = {**SERIALIZED, "queue_limit": 0, "call_timeout": 1000.0}
        async with memory_client(script("legacy"), spec=spec) as (client, dialer):
            held = begun(client, "slow")
            await asyncio.sleep(1.0)
            began, sent = now(), dialer.methods.count("tools/call")
            assert await attempt(echo(client, timeout=900.0), bound=FOREVER) == BUSY
            assert now() == began
            assert dialer.methods.count("tools/call") == sent
            held.cancel()

    run_virtual(tries)


def test_the_last_word_of_a_greeting_holds_the_only_slot() -> None:
    """client-behaviour check 28: over real sockets, or a serialized origin sees two at once."""

    async def tries() -> None:
        slowly = on("notifications/initialized", wait(0.05), http(202))
        async with http_client(script("legacy", slowly), spec=SERIALIZED) as (client, peer):
            assert await attempt(echo(client)) == Says("x")
            assert peer.most_at_once == 1

    asyncio.run(tries())


def test_a_caller_that_loses_patience_harms_nobody() -> None:
    """client-behaviour check 29: it raises in the caller; a late answer is nobody's.

    ours: the entry does not stay until then. The server is told that nobody waits any more.
    """

    async def tries() -> None:
        data = script("legacy", on("tools/call slow", wait(5.0), text("late")))
        async with memory_client(data, spec=SERIALIZED) as (client, dialer):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1.0):
                    await client.call_tool("slow")
            assert now() == 1.0
            assert await attempt(echo(client)) == Says("x")
            assert dialer.methods.count("notifications/cancelled") == 1
            await asyncio.sleep(10.0)
            assert client.status().pending == 0
            assert await attempt(echo(client, "y")) == Says("y")

    run_virtual(tries)


def test_a_queued_call_that_is_given_up_is_never_sent() -> None:
    """client-behaviour §5: removed from the queue, with the same answer."""

    async def tries() -> None:
        data = script("legacy", on("tools/call slow", silent()))
        async with memory_client(data, spec=SERIALIZED) as (client, dialer):
            held = begun(client, "slow")
            await asyncio.sleep(1.0)
            assert await attempt(echo(client, timeout=2.0), bound=FOREVER) == TIMED_OUT
            assert client.status().queued == 0
            sent = [m["params"]["name"] for m in dialer.received if m["method"] == "tools/call"]
            assert sent == ["slow"]
            held.cancel()

    run_virtual(tries)
