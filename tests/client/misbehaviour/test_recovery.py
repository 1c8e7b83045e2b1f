"""How a client waits, fails and comes back, on virtual time: delays, windows and who is told what.

client-2.8.0 §Recovery, §Concurrency and the in-flight window.
"""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Final

import pytest

from raxol_mcp.client.app import Client
from raxol_mcp.errors import Reason
from raxol_mcp.testing.virtual_loop import run_virtual
from tests.client.misbehaviour.attempts import Error, Outcome, Says, attempt, echo
from tests.client.peers.clients import http_client, memory_client
from tests.client.peers.memory_link import MemoryDialer
from tests.client.peers.script import (
    ECHO,
    Step,
    as_usual,
    error,
    http,
    leave,
    on,
    reply,
    script,
    silent,
    text,
    wait,
)

BOUND: Final = 1000.0
TIMED_OUT: Final = Error("TimedOut", ("timeout",))
BUSY: Final = Error("Busy", ("busy",))


def attempts(at: list[float], fails: int = 10) -> MemoryDialer:
    """Make a peer that is unreachable so often; note when it is tried."""

    def opens(number: int) -> Reason | None:
        at.append(asyncio.get_running_loop().time())
        return Reason("dns_failed") if number <= fails else None

    return MemoryDialer(script("legacy"), opens=opens)


def delays(at: list[float]) -> list[float]:
    """Give the seconds between attempts."""
    return [round(later - earlier, 3) for earlier, later in pairwise(at)]


def test_the_delays_double_up_to_a_minute() -> None:
    """1 s, doubling, 60 s at most, and for ever."""

    async def tries() -> None:
        at: list[float] = []
        async with memory_client(attempts(at)):
            assert delays(at) == [1, 2, 4, 8, 16, 32, 60, 60, 60, 60]

    run_virtual(tries)


@pytest.mark.parametrize(
    "step", [error(-32603), reply("ok"), leave(1)], ids=["error", "ok", "exit"]
)
def test_a_handshake_that_always_fails_backs_off_too(step: Step) -> None:
    """The delay is that of failures, whether they come before the handshake or in it."""

    async def tries() -> None:
        at: list[float] = []
        dialer = attempts(at, 0)
        dialer.script = script("legacy", on("initialize", step))
        async with memory_client(dialer, ready=False):
            await asyncio.sleep(250)
            assert delays(at)[:7] == [1, 2, 4, 8, 16, 32, 60]

    run_virtual(tries)


def test_a_delay_begins_anew_only_after_a_session_was_of_use() -> None:
    """ours: a server that greets and dies is not knocked at every second."""

    async def tries() -> None:
        at: list[float] = []
        dialer = attempts(at, 0)
        dialer.script = script("legacy", on("notifications/initialized", leave(1)))
        async with memory_client(dialer, ready=False):
            await asyncio.sleep(200)
            assert delays(at)[:6] == [1, 2, 4, 8, 16, 32]

    run_virtual(tries)


def test_and_then_it_does() -> None:
    """One answer, and the next failure is the first one again."""

    async def tries() -> None:
        at: list[float] = []
        dialer = attempts(at, 3)
        dialer.script = script("legacy", on("tools/call slow", leave(1)))
        async with memory_client(dialer) as (client, _):
            assert await attempt(echo(client)) == Says("x")
            assert await attempt(client.call_tool("slow")) == Error(
                "ConnectionLost", ("server_exited", 1)
            )
            await client.await_ready()
            assert delays(at) == [1, 2, 4, 1]

    run_virtual(tries)


def test_whoever_waits_is_told_when_it_is_ready_and_not_before() -> None:
    """Failures do not end the wait; its own time does, and says where things stand."""

    async def tries() -> None:
        at: list[float] = []
        async with memory_client(attempts(at, 4), ready=False) as (client, _):
            patient = asyncio.ensure_future(attempt(client.await_ready(60.0), bound=BOUND))
            hasty = asyncio.ensure_future(attempt(client.await_ready(5.0), bound=BOUND))
            assert await hasty == Error("NotReady", ("not_ready", "closed"))
            assert asyncio.get_running_loop().time() == 5.0
            outcome = await patient
            assert isinstance(outcome, Says)
            assert client.status().status == "ready"

    run_virtual(tries)


def test_with_fail_fast_the_first_failure_is_told_and_it_goes_on() -> None:
    """Who waits is told, who comes while it is closed is told at once, and it is tried again."""

    async def tries() -> None:
        failed = Error("ConnectFailed", ("dns_failed",))
        at: list[float] = []
        async with memory_client(attempts(at, 2), spec={"fail_fast": True}, ready=False) as (
            client,
            _,
        ):
            waiting = [asyncio.ensure_future(attempt(client.await_ready())) for _ in range(3)]
            assert await asyncio.gather(*waiting) == [failed] * 3
            assert await attempt(client.await_ready()) == failed
            assert await attempt(echo(client)) == failed
            assert asyncio.get_running_loop().time() == 0.0
            await asyncio.sleep(10.0)
            assert client.status().status == "ready"
            assert await attempt(echo(client)) == Says("x")

    run_virtual(tries)


def test_a_401_is_final_wherever_it_comes() -> None:
    """At the probe or at `initialize`: nothing more is sent. A call's own is that call's alone."""

    async def tries(event: str, path: tuple[int | str, ...]) -> None:
        data = script("legacy", on(event, http(401)))
        async with memory_client(data, kind="http", ready=False) as (client, dialer):
            waiting = asyncio.ensure_future(attempt(client.await_ready(None), bound=BOUND))
            assert await waiting == Error("ConnectFailed", path)
            await asyncio.sleep(10_000)
            assert dialer.methods.count(event) == 1
            assert client.status().retry_in is None
            assert await attempt(client.await_ready(None), bound=BOUND) == Error(
                "ConnectFailed", path
            )

    async def of_a_call() -> None:
        data = script("legacy", on("tools/call", http(401), times=1))
        async with memory_client(data, kind="http") as (client, _):
            assert await attempt(echo(client)) == Error("RequestFailed", ("http", 401))
            assert client.status().status == "ready"
            assert await attempt(echo(client)) == Says("x")

    run_virtual(tries, "server/discover", ("http", 401))
    run_virtual(tries, "initialize", ("initialization_failed", "http", 401))
    run_virtual(of_a_call)


# -- the window ------------------------------------------------------------------------------------


async def together(client: Client, number: int, within: float) -> list[Outcome]:
    """Make calls of a tool that never answers, all at once."""
    calls = [attempt(client.call_tool("slow", timeout=within), bound=BOUND) for _ in range(number)]
    return list(await asyncio.gather(*calls))


def test_the_wait_in_the_queue_counts() -> None:
    """Three callers of a held, serialized session have their timeout at the same time."""

    async def tries() -> None:
        async with memory_client(
            script("legacy"), kind="http", spec={"concurrency": "serialized"}
        ) as (client, dialer):
            assert await attempt(echo(client)) == Says("x")
            began = asyncio.get_running_loop().time()
            assert await together(client, 3, 0.15) == [TIMED_OUT] * 3
            assert round(asyncio.get_running_loop().time() - began, 3) == 0.15
            assert dialer.methods.count("tools/call") == 2  # those that waited were never sent
            assert dialer.busy == 0
            assert await attempt(echo(client)) == Says("x")

    run_virtual(tries)


@pytest.mark.parametrize(
    ("spec", "counts"),
    [
        ({"concurrency": "serialized", "queue_limit": 2}, (1, 2, 1)),
        ({"concurrency": "serialized", "pool_size": 8, "queue_limit": 0}, (1, 0, 3)),
        ({"concurrency": "pooled", "pool_size": 2, "queue_limit": 1}, (2, 1, 1)),
        ({"concurrency": "stateless", "pool_size": 2, "queue_limit": 1}, (2, 1, 1)),
        ({}, (4, 0, 0)),
    ],
    ids=str,
)
def test_so_many_run_wait_and_are_refused(
    spec: dict[str, object], counts: tuple[int, int, int]
) -> None:
    """Four callers, in order; a refusal comes at once."""

    async def tries() -> None:
        data = script("legacy", on("tools/call", wait(1), text("$TEXT")))
        async with memory_client(data, spec=spec) as (client, dialer):
            await asyncio.sleep(1.0)  # the notification after the handshake is delivered
            calls = [asyncio.ensure_future(attempt(echo(client, str(n)))) for n in range(4)]
            await asyncio.sleep(0.5)
            status = client.status()
            refused = sum(call.done() for call in calls)
            assert (status.pending, status.queued, refused) == counts
            outcomes = await asyncio.gather(*calls)
            served = counts[0] + counts[1]
            assert outcomes == [*(Says(str(n)) for n in range(served)), *[BUSY] * refused]
            assert dialer.methods.count("tools/call") == served

    run_virtual(tries)


def test_the_notification_that_ends_a_handshake_holds_a_slot() -> None:
    """On a serialized session the first call waits until it has been taken; over real sockets."""

    async def tries() -> None:
        slowly = on("notifications/initialized", wait(0.1), http(202))
        spec = {"concurrency": "serialized"}
        async with http_client(script("legacy", slowly), spec=spec) as (client, peer):
            assert await attempt(echo(client)) == Says("x")
            assert peer.most_at_once == 1

    asyncio.run(tries())


# -- what is known of the server -------------------------------------------------------------------


def test_an_answer_is_read_by_what_was_asked() -> None:
    """A result of a call that looks like a list of tools is none."""

    async def tries() -> None:
        disguised = reply({"content": [], "tools": [{**ECHO, "name": "evil"}]})
        async with memory_client(script("legacy", on("tools/call", disguised))) as (client, dialer):
            names = [tool.name for tool in await client.list_tools()]
            assert await attempt(echo(client)) == Says("")
            assert [tool.name for tool in await client.list_tools()] == names
            assert dialer.methods.count("tools/list") == 1

    run_virtual(tries)


def test_an_era_is_asked_for_as_long_as_nothing_is_known() -> None:
    """`era_ttl` 0: every client asks; otherwise the second does not."""

    async def tries(ttl: float) -> int:
        from raxol_mcp.client.opening import Tables

        tables, probes = Tables(), 0
        for _ in range(2):
            dialer = MemoryDialer(script("legacy"), verdict_key="one server")
            spec = {"name": "peer", "command": "scripted", "era_ttl": ttl}
            async with Client(spec, dialer=dialer, tables=tables) as client:
                assert await attempt(echo(client)) == Says("x")
            probes += dialer.methods.count("server/discover")
        return probes

    assert run_virtual(tries, 0.0) == 2
    assert run_virtual(tries, 900.0) == 1


def test_a_second_loss_of_the_session_is_like_the_first() -> None:
    """After a success between them each costs one greeting."""

    async def tries() -> None:
        rules = [
            on("tools/call", step, times=1)
            for step in (http(404), as_usual(), http(404), as_usual())
        ]
        async with memory_client(script("legacy", *rules), kind="http") as (client, dialer):
            lost = Error("SessionLost", ("session_rejected",))
            for greetings in (2, 3):
                assert await attempt(echo(client)) == lost
                assert client.status().status == "ready"
                assert await attempt(echo(client)) == Says("x")
                assert dialer.methods.count("initialize") == greetings

    run_virtual(tries)


def test_nothing_waits_for_a_greeting_that_hangs_but_its_own_time() -> None:
    """`init_timeout` is for the handshake; `call_timeout`, shorter or not, is for calls."""

    async def tries() -> None:
        data = script(
            "legacy", on("initialize", wait(3.0), as_usual(), life=1), on("initialize", silent())
        )
        async with memory_client(data, spec={"call_timeout": 0.5, "init_timeout": 5.0}) as (
            client,
            _,
        ):
            assert asyncio.get_running_loop().time() == 3.0
            assert await attempt(client.call_tool("slow"), bound=BOUND) == TIMED_OUT
            assert asyncio.get_running_loop().time() == 3.5

    run_virtual(tries)
