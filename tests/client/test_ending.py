"""However a client ends, nothing of it is left, and whoever ends it waits for a bounded time."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from raxol_mcp.client.answers import Accept
from raxol_mcp.client.app import Client
from raxol_mcp.client.opening import Tables
from raxol_mcp.errors import NotReady
from raxol_mcp.testing.virtual_loop import run_virtual
from tests.client.peers.clients import memory_client
from tests.client.peers.memory_link import MemoryDialer
from tests.client.peers.script import on, say, script, silent

ASKS = script(
    "legacy",
    on(
        "tools/call",
        say(
            {
                "jsonrpc": "2.0",
                "id": "q",
                "method": "elicitation/create",
                "params": {
                    "message": "?",
                    "requestedSchema": {"type": "object", "properties": {}},
                },
            }
        ),
    ),
)


def test_a_handler_that_does_not_end_is_waited_for_a_while(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """ours: code of the user's need not end because it is cancelled"""

    async def main() -> None:
        asked, released = asyncio.Event(), asyncio.Event()

        async def stubborn(_: object) -> Accept:
            asked.set()
            while not released.is_set():
                with suppress(asyncio.CancelledError):
                    await released.wait()
            return Accept()

        client = Client(
            {"name": "peer", "command": "scripted"},
            dialer=MemoryDialer(ASKS),
            tables=Tables(),
            elicitation=stubborn,
        )
        await client.start()
        await client.await_ready()
        call = asyncio.create_task(client.call_tool("t"))
        await asked.wait()
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        await client.stop()
        assert loop.time() - began_at == 5.0
        with pytest.raises(NotReady):
            await call
        released.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run_virtual(main)
    assert "elicitation/create goes on, though it was cancelled" in caplog.text


def test_a_handler_may_stop_its_client() -> None:
    """ours: from any task"""

    async def main() -> None:
        stopped: list[str] = []

        async def stops(_: object) -> Accept:
            try:
                await client.stop()
            finally:
                stopped.append(client.status().status)
            return Accept()

        async with memory_client(ASKS, elicitation=stops) as (client, _):
            with pytest.raises(NotReady):
                await client.call_tool("t")
            await client.stop()
            assert stopped == ["stopped"]

    run_virtual(main)


def test_a_loop_that_ends_stops_the_clients_on_it(caplog: pytest.LogCaptureFixture) -> None:
    """ours: what was started does not outlive the program because somebody forgot to stop it"""
    dialer = MemoryDialer(script("legacy", on("tools/call", silent())))
    client = Client({"name": "peer", "command": "scripted"}, dialer=dialer, tables=Tables())

    async def main() -> None:
        await client.start()
        await client.await_ready()
        assert dialer.open == 1

    asyncio.run(main())
    assert (dialer.open, client.status().status) == (0, "stopped")
    assert "nobody has stopped the client" in caplog.text


def test_a_client_that_was_stopped_leaves_no_task_and_no_word(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """ours: again, from several tasks, before and after"""

    async def main() -> None:
        before = asyncio.all_tasks()
        dialer = MemoryDialer(script("legacy"))
        client = Client({"name": "peer", "command": "scripted"}, dialer=dialer, tables=Tables())
        await client.start()
        await asyncio.gather(client.stop(), client.stop(), client.stop())
        await client.stop()
        assert asyncio.all_tasks() == before

    run_virtual(main)
    assert caplog.text == ""


@pytest.mark.slow
def test_a_program_that_ends_takes_its_servers_with_it(tmp_path: Path) -> None:
    """README: no process is left, not even one that ignores the end of its input and SIGTERM"""
    server = tmp_path / "server.py"
    server.write_text(
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "open(sys.argv[1], 'w').write(str(os.getpid()))\n"
        "print('started', file=sys.stderr, flush=True)\n"
        "while True: time.sleep(1)\n"
    )
    started = tmp_path / "pid"

    async def main() -> None:
        args = [str(server), str(started)]
        client = Client({"name": "s", "command": sys.executable, "args": args})
        await client.start()
        for _ in range(3000):
            if "started" not in client.stderr():
                await asyncio.sleep(0.01)
        assert "started" in client.stderr()

    asyncio.run(main())
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)
