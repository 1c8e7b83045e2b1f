"""Every misbehaviour of a process, on real pipes: nothing of it may be left."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

import pytest

from raxol_mcp.client.app import Client
from tests.client.misbehaviour.attempts import (
    Error,
    Misbehaviour,
    Says,
    Trial,
    attempt,
    echo,
    hurried,
    hurried_for,
    try_call,
    try_to_connect,
)
from tests.client.misbehaviour.lists import LISTS
from tests.client.misbehaviour.messages import IN_BOTH_ERAS, TIMEOUT
from tests.client.misbehaviour.pipes import CALLS, CONNECTS, Connect
from tests.client.misbehaviour.questions import MODERN, UNASKED, modern
from tests.client.peers.clients import pipe_client
from tests.client.peers.held import BOUND, HASTY, Held
from tests.client.peers.process import Processes
from tests.client.peers.script import (
    as_usual,
    leave,
    on,
    raw,
    reply,
    script,
    silent,
    stop_reading,
)


def trial(client: Client, processes: Processes) -> Trial:
    """Let attempts see what the processes were sent."""
    return Trial(client, lambda: [each for life in processes.lives for each in life.messages])


def try_on_a_pipe(case: Misbehaviour, folder: Path) -> None:
    async def tries() -> None:
        async with pipe_client(case.script, folder, spec=hurried_for(case), ready=False) as made:
            await try_call(trial(*made), case)

    asyncio.run(tries())


def timed(cases: list[Misbehaviour], *, all_slow: bool = False) -> list[Any]:
    """Mark what waits for a timeout, which costs real time, as slow."""
    return [
        pytest.param(
            case,
            id=str(case),
            marks=[pytest.mark.slow] if all_slow or case.expected == TIMEOUT else [],
        )
        for case in cases
    ]


def timed_connects() -> list[Any]:
    """Mark those that wait for the end of `init_timeout` as slow; in memory they take no time."""
    return [
        pytest.param(case, id=str(case), marks=[pytest.mark.slow] if "timeout" in case.path else [])
        for case in CONNECTS
    ]


@pytest.mark.parametrize("case", timed(CALLS))
def test_a_call_ends_once_and_nothing_is_left(case: Misbehaviour, tmp_path: Path) -> None:
    """MCP basic/transports §stdio; ours: the client comes back by itself."""
    try_on_a_pipe(case, tmp_path)


@pytest.mark.parametrize("case", timed([*IN_BOTH_ERAS, *UNASKED], all_slow=True))
def test_no_message_breaks_the_next(case: Misbehaviour, tmp_path: Path) -> None:
    try_on_a_pipe(case, tmp_path)


@pytest.mark.parametrize(
    "case", timed([*map(modern, IN_BOTH_ERAS), *MODERN, *LISTS], all_slow=True)
)
def test_nor_does_one_of_the_stateless_era(case: Misbehaviour, tmp_path: Path) -> None:
    try_on_a_pipe(case, tmp_path)


@pytest.mark.parametrize("case", timed_connects())
def test_a_failure_to_connect_is_known_and_tried_again(case: Connect, tmp_path: Path) -> None:
    """client-2.8.0 §Recovery."""

    async def tries() -> None:
        data = script("legacy", *case.rules, **case.options)
        spec = hurried({"fail_fast": True, **case.spec}, case.path)
        async with pipe_client(data, tmp_path, spec=spec, ready=False) as made:
            await try_to_connect(trial(*made), case.path, returns=case.returns)

    asyncio.run(tries())


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("{folder}/no/such/file", "enoent"),
        ("no-such-program-anywhere", "enoent"),
        ("{folder}/not-executable", "eacces"),
        ("{folder}", "eacces"),
        ("{folder}/no-program", "enoexec"),
    ],
)
def test_what_cannot_be_started_is_said_at_once(command: str, why: str, tmp_path: Path) -> None:
    """client-behaviour §10, and retried like any other failure."""
    for name, mode in (("not-executable", 0o644), ("no-program", 0o755)):
        (tmp_path / name).write_text("neither a program nor a script")
        (tmp_path / name).chmod(mode)

    async def tries() -> None:
        before = Held.now()
        spec = {"name": "peer", "command": command.format(folder=tmp_path), "fail_fast": True}
        client = Client(spec)
        await client.start()
        await try_to_connect(Trial(client, list), ("spawn_failed", why))
        await client.stop()
        await before.settled()

    asyncio.run(tries())


ONCE: Final = {
    "exits when probed": on("server/discover", leave(1), life=1),
    "never answers the probe": on("server/discover", silent()),
    "answers the probe with nonsense": on("server/discover", reply("welcome")),
    "answers the probe twice": on("server/discover", as_usual(), as_usual()),
    "answers initialize twice": on("initialize", as_usual(), as_usual()),
}


@pytest.mark.parametrize("name", ONCE)
def test_a_server_that_knows_no_probe_is_greeted(name: str, tmp_path: Path) -> None:
    """MCP 2026-07-28 basic/versioning §Backward compatibility: any other answer is the old era."""

    async def tries() -> None:
        async with pipe_client(script("legacy", ONCE[name]), tmp_path, spec=HASTY) as (
            client,
            processes,
        ):
            assert client.status().era == "handshake"
            assert await attempt(echo(client, timeout=BOUND)) == Says("x")
            assert [life.methods for life in processes.lives][-1][-1] == "tools/call"

    asyncio.run(tries())


def test_an_answer_counts_though_its_newline_never_came(tmp_path: Path) -> None:
    """ours: what a process wrote as its last words is complete at the end of its output."""

    async def tries() -> None:
        last = raw('{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}')
        data = script("legacy", on("tools/call", last, leave(0), life=1))
        async with pipe_client(data, tmp_path) as (client, processes):
            assert await attempt(echo(client)) == Says("")
            # Whether the exit is known yet, or only that nothing can be written any more.
            outcome = await attempt(echo(client))
            assert isinstance(outcome, Error)
            assert outcome.path in (("server_exited", 0), ("not_connected",))
            while client.status().status == "ready" and len(processes.lives) < 2:
                await attempt(echo(client))
            await client.await_ready(timeout=BOUND)
            assert await attempt(echo(client, "next")) == Says("next")
            assert len(processes.lives) == 2

    asyncio.run(tries())


@pytest.mark.slow
@pytest.mark.parametrize("ignores", [[], ["eof"], ["eof", "term"]], ids=str)
def test_a_process_and_its_children_end_with_the_client(ignores: list[str], tmp_path: Path) -> None:
    """MCP basic/lifecycle §Shutdown: end of input, then SIGTERM, then SIGKILL, for all of it."""

    async def tries() -> None:
        data = script("legacy", ignores=ignores, grandchild=True)
        async with pipe_client(data, tmp_path) as (client, processes):
            assert await attempt(echo(client)) == Says("x")
            assert len(processes.alive()) == 2
        # What ends at the end of input may be told to end besides, for the sake of its children.
        assert processes.lives[0].events[: len(ignores) + 1] == ["eof", "term"][: len(ignores) + 1]

    asyncio.run(tries())


@pytest.mark.slow
def test_whoever_is_cancelled_while_it_connects_leaves_nothing(tmp_path: Path) -> None:
    """ours: `async with` that is cancelled stops what it started."""

    async def tries() -> None:
        before = Held.now()
        data = script("legacy", on("*", stop_reading()), ignores=["eof", "term"], grandchild=True)
        processes = Processes(data, tmp_path)

        async def connects() -> None:
            spec = {"name": "peer", "command": processes.command, "args": processes.args}
            async with Client(spec):
                raise AssertionError("there is no connection")

        connecting = asyncio.ensure_future(connects())
        async with asyncio.timeout(BOUND):
            # Nothing tells of a file that another process writes.
            while not (processes.lives and processes.lives[0].grandchild):  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        connecting.cancel()
        await asyncio.wait([connecting])
        assert connecting.cancelled()
        await before.settled()
        assert processes.alive() == []

    asyncio.run(tries())


def test_stop_answers_whoever_waits(tmp_path: Path) -> None:
    """client-behaviour §(c) 7: nobody waits for a client that has been stopped."""

    async def tries() -> None:
        data = script("legacy", on("tools/call", silent()))
        async with pipe_client(data, tmp_path, spec={"call_timeout": BOUND}) as (client, _):
            calls = [asyncio.ensure_future(attempt(echo(client))) for _ in range(12)]
            await asyncio.sleep(0)
            await client.stop()
            outcomes = [*await asyncio.gather(*calls), await attempt(echo(client))]
            assert {each.name for each in outcomes if isinstance(each, Error)} == {"NotReady"}
            assert len(outcomes) == 13

    asyncio.run(tries())
