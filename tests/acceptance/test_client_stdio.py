"""Servers that are processes of this machine: what they are given, and how they end.

Real processes and pipes. Sources: client-2.8.0; MCP basic/transports §stdio.
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Final

import pytest

from raxol_mcp import CallResult, Client
from raxol_mcp.client.opening import Tables
from tests.client.misbehaviour.attempts import Error, Says, attempt, echo
from tests.client.peers.clients import pipe_client
from tests.client.peers.held import BOUND, Held
from tests.client.peers.process import Processes
from tests.client.peers.script import leave, on, raw, reply, script, text

# The default of `max_message_bytes`, and what surrounds the text of an answer.
LIMIT: Final = 16 * 1024 * 1024


def test_a_line_of_a_megabyte_and_a_half_is_an_answer(tmp_path: Path) -> None:
    """client-behaviour check 50, of a line."""

    async def tries() -> None:
        said = "é" * 750_000
        async with pipe_client(script("legacy", on("tools/call", text(said))), tmp_path) as (
            client,
            _,
        ):
            result = await client.call_tool("echo")
            assert isinstance(result, CallResult)
            assert result.text == said

    asyncio.run(tries())


def test_a_line_without_an_end_ends_the_server(tmp_path: Path) -> None:
    """client-behaviour check 50, as ruled: the ceiling is 16 MiB, and an option."""

    async def tries(limit: int, folder: Path) -> None:
        data = script("legacy", on("tools/call", raw(("A", limit + 1))))
        spec = {"max_message_bytes": limit, "reconnect": BOUND}
        async with pipe_client(data, folder, spec=spec) as (client, processes):
            path = ("line_too_long", limit)
            assert await attempt(echo(client)) == Error("ConnectionLost", path)
            assert await attempt(echo(client)) == Error("ConnectFailed", path)
            async with asyncio.timeout(BOUND):
                while processes.alive():  # noqa: ASYNC110  # another process
                    await asyncio.sleep(0.001)
            assert len(processes.lives) == 1

    for limit in (LIMIT, 100_000):
        folder = tmp_path / str(limit)
        folder.mkdir()
        asyncio.run(tries(limit, folder))


@pytest.mark.slow
@pytest.mark.parametrize("how", ["stop", "cancelled", "abandoned"])
def test_a_deaf_server_and_its_children_are_dead_soon(how: str, tmp_path: Path) -> None:
    """client-behaviour check 51: after a stop, and however the owner ends; ours: 2 s a step."""
    processes = Processes(script("legacy", ignores=["eof", "term"], grandchild=True), tmp_path)
    spec = {"name": "peer", "command": processes.command, "args": processes.args}
    began: list[float] = []

    async def owns(ready: asyncio.Event) -> None:
        async with Client(spec, tables=Tables()) as client:
            assert await attempt(echo(client)) == Says("x")
            assert len(processes.alive()) == 2
            ready.set()
            if how != "stop":
                await asyncio.Event().wait()

    async def tries() -> None:
        before = Held.now()
        ready = asyncio.Event()
        owner = asyncio.ensure_future(owns(ready))
        await ready.wait()
        began.append(time.monotonic())
        if how == "abandoned":
            return  # the loop ends, and everything with it
        if how == "cancelled":
            owner.cancel()
        await asyncio.wait([owner])
        await before.settled()

    asyncio.run(tries())
    assert processes.alive() == []
    # End of input and SIGTERM have 2 s each before SIGKILL; the rest is for a machine that is busy.
    assert time.monotonic() - began[0] < 4.0 + BOUND


def test_a_server_has_no_secret_of_ours_unless_it_is_given_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """client-behaviour check 52, as ruled: ours, and those that the spec or an option names."""
    secrets = {"RAXOL_MCP_STATE_KEY": "ours", "RAXOL_MCP_TOKEN": "ours", "MINE": "dropped"}
    for name, value in {**secrets, "OTHER_TOKEN": "inherited"}.items():
        monkeypatch.setenv(name, value)

    async def tries() -> None:
        spec = {"env": {"RAXOL_MCP_TOKEN": "given"}, "drop_env": ["MINE"]}
        async with pipe_client(script("legacy"), tmp_path, spec=spec) as (_, processes):
            env = processes.lives[0].env
            assert "RAXOL_MCP_STATE_KEY" not in env
            assert "MINE" not in env
            assert env["RAXOL_MCP_TOKEN"] == "given"
            assert env["OTHER_TOKEN"] == "inherited"
            assert {name: env[name] for name in ("HOME", "PATH")} == {
                name: os.environ[name] for name in ("HOME", "PATH")
            }

    asyncio.run(tries())


def test_a_call_to_a_server_that_is_gone_never_hangs(tmp_path: Path) -> None:
    """client-behaviour check 53: whether its exit was noticed already or not."""

    async def tries() -> None:
        # It answers, and is gone before anything else is sent.
        data = script("legacy", on("tools/call", reply({"content": []}), leave(0)))
        spec = {"call_timeout": BOUND * 10, "reconnect": BOUND * 10}
        async with pipe_client(data, tmp_path, spec=spec) as (client, processes):
            assert await attempt(echo(client)) == Says("")
            (life,) = processes.lives
            outcome = await attempt(echo(client))
            assert isinstance(outcome, Error)
            assert (outcome.name, outcome.path[0]) in {
                ("ConnectionLost", "server_exited"),
                ("RequestFailed", "not_connected"),
                ("ConnectFailed", "server_exited"),
            }
            assert life.methods.count("tools/call") == 1

    asyncio.run(tries())
