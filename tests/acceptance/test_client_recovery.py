"""How a client fails, tells of it, and comes back by itself.

Sources: client-2.8.0 §Recovery, §await_ready; on virtual time where time is involved.
"""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from raxol_mcp import Client, Reason
from raxol_mcp.testing.virtual_loop import run_virtual
from tests.client.misbehaviour.attempts import Error, Outcome, Says, attempt, echo, list_tools
from tests.client.peers.clients import http_client, memory_client, pipe_client
from tests.client.peers.held import BOUND
from tests.client.peers.memory_link import MemoryDialer
from tests.client.peers.script import (
    Message,
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

# More than any timer of a client, in virtual seconds.
FOREVER: Final = 100_000.0
LOST: Final = Error("SessionLost", ("session_rejected",))
REFUSED: Final = Reason("transport", "refused")


def now() -> float:
    """Say what time it is on the virtual clock."""
    return round(asyncio.get_running_loop().time(), 3)


def waiting(client: Client, timeout: float | None = None) -> asyncio.Task[Outcome]:
    """Begin to wait for readiness; the task says what came of it."""
    return asyncio.ensure_future(attempt(client.await_ready(timeout), bound=FOREVER))


def failing(failures: int, at: list[float], data: Message | None = None) -> MemoryDialer:
    """Make a peer that cannot be reached so often, and note when that is tried."""

    def opens(number: int) -> Reason | None:
        at.append(now())
        return REFUSED if number <= failures else None

    return MemoryDialer(script("legacy") if data is None else data, opens=opens)


def delays(at: list[float]) -> list[float]:
    """Give the seconds between attempts."""
    return [round(later - earlier, 3) for earlier, later in pairwise(at)]


@pytest.mark.parametrize("reconnect", [1.0, 0.25])
def test_a_connect_that_fails_is_tried_again_after_twice_the_time(reconnect: float) -> None:
    """client-behaviour check 30; client-2.8.0: from `reconnect`, doubling to one minute."""

    async def tries() -> None:
        at: list[float] = []
        dialer = failing(10_000, at)
        async with memory_client(dialer, spec={"reconnect": reconnect}, ready=False) as (client, _):
            await asyncio.sleep(500.0)
            expected = [min(reconnect * 2**n, 60.0) for n in range(len(at) - 1)]
            assert delays(at) == expected
            assert expected[-2:] == [60.0, 60.0]
            assert client.status().status == "closed"
            assert await attempt(list_tools(client)) == Error(
                "ConnectFailed", ("transport", "refused")
            )

    run_virtual(tries)


@pytest.mark.parametrize(
    ("kind", "step"),
    [
        ("memory", error(-32603)),
        ("memory", reply(None)),
        ("memory", leave(1)),
        ("http", error(-32603)),
        ("http", reply("ok")),
        ("http", http(500)),
    ],
    ids=["error", "null", "exit", "http-error", "http-ok", "http-500"],
)
def test_a_handshake_that_fails_backs_off_too(kind: str, step: Step) -> None:
    """client-behaviour check 31: the delay is not begun anew by a link that opens."""

    async def tries() -> None:
        at: list[float] = []
        dialer = failing(0, at, script("legacy", on("initialize", step)))
        dialer.kind, dialer.closing_cancels = kind, kind == "http"
        async with memory_client(dialer, ready=False):
            await asyncio.sleep(200.0)
            assert delays(at)[:7] == [1, 2, 4, 8, 16, 32, 60]

    run_virtual(tries)


def test_the_delay_begins_anew_after_a_session_that_was_of_use_and_doubles_again() -> None:
    """client-behaviour §7: reset only on ready; ours: and only by a session that answered."""

    async def tries() -> None:
        at: list[float] = []
        dialer = failing(0, at, script("legacy", on("tools/call slow", leave(1))))
        opens = dialer.opens
        dialer.opens = lambda number: opens(number) or (None if number in (1, 6) else REFUSED)
        async with memory_client(dialer) as (client, _):
            assert await attempt(echo(client)) == Says("x")
            await attempt(client.call_tool("slow"))
            await client.await_ready()
            assert delays(at) == [1, 2, 4, 8, 16]
            assert await attempt(echo(client)) == Says("x")
            await attempt(client.call_tool("slow"))
            await asyncio.sleep(8.0)
            assert delays(at)[5:] == [1, 2, 4]

    run_virtual(tries)


def test_whoever_waited_before_is_told_when_it_works() -> None:
    """client-behaviour check 32."""

    async def tries() -> None:
        dialer = failing(1, [])
        async with memory_client(dialer, spec={"reconnect": 0.01}, ready=False) as (client, _):
            assert isinstance(await waiting(client, 1.0), Says)
            assert client.status().status == "ready"
            assert now() == 0.01
            assert await attempt(echo(client)) == Says("x")

    run_virtual(tries)


@pytest.mark.parametrize(
    ("event", "path"),
    [
        ("server/discover", ("http", 401)),
        ("initialize", ("initialization_failed", "http", 401)),
    ],
)
def test_a_401_is_the_end_until_somebody_brings_another_credential(
    event: str, path: tuple[int | str, ...]
) -> None:
    """client-behaviour checks 33, 34: nothing scheduled or sent, and everybody is told at once."""

    async def tries() -> None:
        data = script("legacy", on(event, http(401)))
        async with memory_client(data, kind="http", ready=False) as (client, dialer):
            failed = Error("ConnectFailed", path)
            parked = [waiting(client), waiting(client, 5.0)]
            assert await asyncio.gather(*parked) == [failed, failed]
            assert now() == 0.0
            sent = len(dialer.received)
            await asyncio.sleep(10_000.0)
            assert len(dialer.received) == sent
            assert len(dialer.links) == 1
            began = now()
            assert await waiting(client) == failed
            assert await attempt(list_tools(client)) == failed
            assert await attempt(echo(client)) == failed
            assert now() == began
            status = client.status()
            assert (status.status, status.retry_in, status.pending) == ("closed", None, 0)

    run_virtual(tries)


@pytest.mark.parametrize("preset", ["legacy", "modern"])
def test_a_401_of_a_call_is_that_calls_alone(preset: str) -> None:
    """client-behaviour check 35: over real sockets, in both eras."""

    async def tries() -> None:
        data = script(preset, on("tools/call", http(401), times=1))
        async with http_client(data) as (client, _):
            assert await attempt(echo(client)) == Error("RequestFailed", ("http", 401))
            assert client.status().status == "ready"
            assert await attempt(echo(client)) == Says("x")

    asyncio.run(tries())


def test_with_fail_fast_a_failure_is_told_at_once_and_tried_again() -> None:
    """client-behaviour check 36: who waits, and who comes; and it becomes ready all the same."""

    async def tries() -> None:
        dialer = failing(2, [])
        async with memory_client(dialer, spec={"fail_fast": True}, ready=False) as (client, _):
            failed = Error("ConnectFailed", ("transport", "refused"))
            assert await waiting(client, FOREVER) == failed
            assert await waiting(client, FOREVER) == failed
            assert now() == 0.0
            await asyncio.sleep(1.5)  # the second attempt has failed as well
            assert await waiting(client, FOREVER) == failed
            assert now() == 1.5
            await asyncio.sleep(2.0)
            assert isinstance(await waiting(client), Says)
            assert client.status().status == "ready"

    run_virtual(tries)


def test_a_session_that_is_lost_is_a_failure_as_well() -> None:
    """client-2.8.0 §Recovery: with `fail_fast`, for who comes while it is closed after it."""

    async def tries() -> None:
        data = script("legacy", on("tools/call slow", leave(3)))
        async with memory_client(data, spec={"fail_fast": True}) as (client, _):
            exited = ("server_exited", 3)
            assert await attempt(client.call_tool("slow")) == Error("ConnectionLost", exited)
            assert await waiting(client, FOREVER) == Error("ConnectFailed", exited)
            assert now() == 0.0
            await asyncio.sleep(1.5)
            assert isinstance(await waiting(client), Says)

    run_virtual(tries)


def test_whoever_has_a_policy_of_its_own_stops_the_client() -> None:
    """client-2.8.0 §Recovery: it sees the failure at once, and nothing is tried after a stop."""

    async def tries() -> None:
        dialer = failing(10_000, [])
        async with memory_client(dialer, spec={"fail_fast": True}, ready=False) as (client, _):
            failed = Error("ConnectFailed", ("transport", "refused"))
            parked = waiting(client, FOREVER)
            assert await parked == failed
            await client.stop()
            assert await waiting(client, FOREVER) == Error("NotReady", ("not_ready", "stopped"))
            await asyncio.sleep(1000.0)
            assert len(dialer.links) == 1

    run_virtual(tries)


def test_who_waits_through_failures_is_told_the_state_when_the_time_is_over() -> None:
    """client-behaviour check 37: and the wait of another goes on."""

    async def tries() -> None:
        async with memory_client(failing(3, []), ready=False) as (client, _):
            patient = waiting(client, 60.0)
            assert await waiting(client, 5.0) == Error("NotReady", ("not_ready", "closed"))
            assert now() == 5.0
            assert isinstance(await patient, Says)
            assert now() == 7.0

    run_virtual(tries)


def test_before_a_first_failure_a_call_is_not_ready_yet() -> None:
    """client-behaviour §4.2: at once, with the state."""

    async def tries() -> None:
        data = script("legacy", on("initialize", silent()))
        async with memory_client(data, ready=False) as (client, _):
            assert await attempt(echo(client)) == Error("NotReady", ("not_ready", "starting"))
            await asyncio.sleep(1.0)
            assert await attempt(echo(client)) == Error("NotReady", ("not_ready", "initializing"))
            assert now() == 1.0

    run_virtual(tries)


def test_a_server_that_exits_in_a_call_is_known_and_started_again(tmp_path: Path) -> None:
    """client-behaviour check 38: a real process; the call, the next call, and the new process."""

    async def tries() -> None:
        data = script("legacy", on("tools/call slow", leave(3), times=1))
        async with pipe_client(data, tmp_path, spec={"reconnect": 0.2}) as (client, processes):
            path = ("server_exited", 3)
            assert await attempt(client.call_tool("slow")) == Error("ConnectionLost", path)
            assert await attempt(echo(client)) == Error("ConnectFailed", path)
            await client.await_ready(timeout=BOUND)
            assert await attempt(echo(client)) == Says("x")
            assert len(processes.lives) == 2

    asyncio.run(tries())


def test_a_forgotten_session_costs_one_call_one_question_and_one_greeting() -> None:
    """client-behaviour check 39: over real sockets, with a new session id; ready all along."""

    async def tries() -> None:
        async with http_client(script("legacy")) as (client, peer):
            assert await attempt(echo(client)) == Says("x")
            peer.sessions.clear()
            sent = len(peer.received)
            assert await attempt(echo(client)) == LOST
            assert client.status().status == "ready"
            assert await attempt(echo(client)) == Says("x")
            assert client.status().status == "ready"
            # The first asks in the session that is lost, the last in the new one.
            posts = [each for each in peer.received[sent:] if each.method == "POST"]
            assert [each.event for each in posts] == [
                "tools/call",
                "server/discover",
                "initialize",
                "notifications/initialized",
                "tools/call",
            ]
            ids = [each.headers.get("mcp-session-id") for each in posts]
            assert ids[1:3] == [None, None]
            assert ids[0] is not None
            assert ids[3] == ids[4] in peer.sessions

    asyncio.run(tries())


def test_many_rejections_are_one_greeting_and_a_later_one_is_another() -> None:
    """client-behaviour checks 40, 41: five at once in a pool; and again after a success."""

    async def tries() -> None:
        spec = {"concurrency": "pooled"}
        async with http_client(script("legacy"), spec=spec) as (client, peer):
            for times in (1, 2):
                assert await attempt(echo(client)) == Says("x")
                peer.sessions.clear()
                calls = [asyncio.ensure_future(attempt(echo(client))) for _ in range(5)]
                assert set(await asyncio.gather(*calls)) == {LOST}
                assert await attempt(echo(client)) == Says("x")
                assert peer.methods.count("initialize") == 1 + times
                assert peer.methods.count("server/discover") == 1 + times

    asyncio.run(tries())


@pytest.mark.parametrize("silence", ["server/discover", "initialize"])
def test_what_is_under_way_is_not_held_up_by_a_new_greeting(silence: str) -> None:
    """client-behaviour check 42: calls that run are answered, timers of those that wait go on."""

    async def tries() -> None:
        data = script(
            "legacy",
            on("tools/call slow", wait(10.0), text("done")),
            on("tools/call gone", http(404)),
            on(silence, as_usual(), times=1),
            on(silence, silent()),
        )
        spec = {"concurrency": "pooled"}
        async with memory_client(data, kind="http", spec=spec) as (client, _):
            runs = asyncio.ensure_future(attempt(client.call_tool("slow"), bound=FOREVER))
            await asyncio.sleep(1.0)
            assert await attempt(client.call_tool("gone")) == LOST
            began = now()
            waits = attempt(client.call_tool("echo", timeout=3.0), bound=FOREVER)
            assert await waits == Error("TimedOut", ("timeout",))
            assert now() - began == 3.0
            assert client.status().status == "ready"
            assert await runs == Says("done")
            assert now() == 10.0

    run_virtual(tries)
