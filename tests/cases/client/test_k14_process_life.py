"""K14: a server that a client started ends with it, and so does all that the server started.

Only the direct child was killed, a shell or a launcher, and what it had started lived on; or
closing waited for ever for a child that listens to nothing.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from raxol_mcp.client.app import Client
from tests.client.misbehaviour.attempts import Says, attempt, echo
from tests.client.peers.clients import pipe_client
from tests.client.peers.held import BOUND, Held
from tests.client.peers.process import Processes, lives
from tests.client.peers.script import Message, on, script, silent

STUBBORN: Message = script("legacy", ignores=["eof", "term"], grandchild=True)


def behind_a_shell(processes: Processes) -> Message:
    """Write the spec of a server that is the grandchild of its client."""
    line = shlex.join([processes.command, *processes.args])
    return {"name": "peer", "command": "sh", "args": ["-c", f"{line} & wait"]}


@pytest.mark.slow
@pytest.mark.parametrize("when", ["after a call", "at once"])
def test_the_whole_tree_ends(when: str, tmp_path: Path) -> None:
    """BC-095. MCP basic/lifecycle §Shutdown: end of input, SIGTERM, SIGKILL, each in its time."""

    async def tries() -> None:
        before = Held.now()
        processes = Processes(STUBBORN, tmp_path)
        client = Client(behind_a_shell(processes))
        await client.start()
        if when == "after a call":
            # A shell gives what it starts in the background no stdin.
            async with asyncio.timeout(BOUND):
                while not (processes.lives and processes.lives[0].grandchild):  # noqa: ASYNC110  # another process
                    await asyncio.sleep(0.001)
        async with asyncio.timeout(BOUND):
            await client.stop()
        await before.settled()
        assert processes.alive() == []

    asyncio.run(tries())


@pytest.mark.slow
def test_it_is_told_in_order(tmp_path: Path) -> None:
    """BC-095: never SIGTERM before the end of the input, and never another process."""

    bystander = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)"], start_new_session=True
    )

    async def tries() -> None:
        async with pipe_client(STUBBORN, tmp_path) as (client, processes):
            assert await attempt(echo(client)) == Says("x")
        assert processes.lives[0].events == ["eof", "term"]
        assert lives(bystander.pid)

    try:
        asyncio.run(tries())
    finally:
        bystander.kill()
        bystander.wait()


@pytest.mark.slow
def test_cancelling_whoever_connects_ends_it_too(tmp_path: Path) -> None:
    """BC-095, the variant: the task that owns the client is cancelled while it connects."""

    async def tries() -> None:
        before = Held.now()
        processes = Processes(script("legacy", on("*", silent()), ignores=["eof"]), tmp_path)

        async def connects() -> None:
            async with Client(
                {"name": "peer", "command": processes.command, "args": processes.args}
            ):
                pass

        connecting = asyncio.ensure_future(connects())
        async with asyncio.timeout(BOUND):
            while not processes.lives:  # noqa: ASYNC110  # another process
                await asyncio.sleep(0.001)
        connecting.cancel()
        await asyncio.wait([connecting])
        await before.settled()
        assert processes.alive() == []

    asyncio.run(tries())


@pytest.mark.slow
def test_a_host_that_is_killed_takes_a_server_with_it_that_listens(tmp_path: Path) -> None:
    """BC-095, the variant: nobody is left to signal; the end of its input is all it sees."""
    processes = Processes(script("legacy"), tmp_path)
    program = (
        "import asyncio, sys\n"
        "from raxol_mcp.client.app import Client\n"
        "async def main():\n"
        "    async with Client({'name': 'x', 'command': sys.argv[1], 'args': sys.argv[2:]}):\n"
        "        print('ready', flush=True)\n"
        "        await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    host = subprocess.Popen(
        [sys.executable, "-c", program, processes.command, *processes.args], stdout=subprocess.PIPE
    )
    assert host.stdout is not None
    with host.stdout:
        assert host.stdout.readline() == b"ready\n"
    os.kill(host.pid, signal.SIGKILL)
    host.wait(BOUND)

    async def ends() -> None:
        async with asyncio.timeout(BOUND):
            while processes.alive():  # noqa: ASYNC110  # another process
                await asyncio.sleep(0.01)

    asyncio.run(ends())
    assert processes.lives[0].events == ["eof"]
