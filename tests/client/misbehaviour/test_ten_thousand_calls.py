"""Ten thousand calls with timeouts, cancels, failures and reconnects leave what they found.

In memory on virtual time, where ten thousand cost seconds; and five hundred on real pipes and
over real sockets.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

import pytest

from raxol_mcp.client.app import Client
from raxol_mcp.testing.virtual_loop import VirtualLoop
from tests.client.misbehaviour.attempts import Error, Says, attempt, echo
from tests.client.peers.clients import http_client, memory_client, pipe_client
from tests.client.peers.held import BOUND, Held
from tests.client.peers.memory_link import MemoryDialer
from tests.client.peers.script import (
    Message,
    as_usual,
    drop,
    error,
    http,
    leave,
    notice,
    on,
    question,
    raw,
    script,
    silent,
    wait,
)

pytestmark = pytest.mark.slow

CALLS: Final = 10_000
# Objects more than before that do not count: what the interpreter itself keeps.
SOME: Final = 100
# What a call may get, whatever its peer does.
NAMES: Final = {
    *("TimedOut", "RequestFailed", "RemoteProtocolError", "ConnectionLost", "ConnectFailed"),
    *("SessionLost", "NotReady", "Busy"),
}


def moody(preset: str, kind: str) -> Message:
    """Script a peer whose tools each misbehave in a way of their own."""
    moods = {
        "good": [as_usual()],
        "slow": [wait(0.05), as_usual()],
        "silent": [silent()],
        "error": [error(-32603)],
        "unreadable": [raw('{"jsonrpc":"2.0","id":$ID,"result":NaN}\n')],
        "twice": [as_usual(), as_usual()],
        "chatty": [
            notice("notifications/message", {"level": "info", "data": "x"}, count=5),
            as_usual(),
        ],
        "garbage": [raw("no json\n"), as_usual()],
    }
    if kind == "http":
        moods |= {"fails": [http(500)], "breaks": [drop("close")], "forgets": [http(404)]}
    else:
        moods |= {"dies": [leave(1)]}
    if preset == "legacy":
        moods["asks"] = [question("roots/list"), as_usual()]
    rules = [on(f"tools/call {name}", *steps) for name, steps in moods.items()]
    return script(preset, *rules, moods=list(moods))


async def storm(client: Client, random: Random, moods: list[str], number: int) -> Counter[str]:
    """Make so many calls, in waves, some of which are given up; count what came of them."""
    ended: Counter[str] = Counter()

    async def call() -> None:
        # Most calls are good: a session that is always lost is given up, and rightly.
        name = random.choice([*moods, *["good", "slow"] * 6])
        timeout = random.choice([0.02, 0.1, 0.3])
        said = str(random.random())
        outcome = await attempt(
            client.call_tool(name, {"text": said}, timeout=timeout), bound=BOUND
        )
        if isinstance(outcome, Says):
            assert outcome.said == said
        else:
            assert outcome.name in NAMES, outcome
        ended[outcome.name if isinstance(outcome, Error) else "ok"] += 1

    left = number
    while left:
        wave = [asyncio.ensure_future(call()) for _ in range(min(left, random.randint(1, 14)))]
        left -= len(wave)
        for task in wave:
            if random.random() < 0.2:
                asyncio.get_running_loop().call_later(random.random() * 0.1, task.cancel)
        await asyncio.wait(wave)
        for task in wave:
            if task.cancelled():
                ended["cancelled"] += 1
            else:
                task.result()
        await client.await_ready(timeout=None)
        status = client.status()
        assert status.queued == 0
        assert status.pending <= 1  # the notification that ends a handshake
    assert sum(ended.values()) == number
    return ended


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Log nothing: pytest keeps every record until the end of the test."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def kept() -> int:
    """Count the objects of this process."""
    for _ in range(3):
        gc.collect()
    return len(gc.get_objects())


@pytest.mark.parametrize("kind", ["memory", "http"])
@pytest.mark.parametrize("preset", ["legacy", "modern"])
def test_ten_thousand_calls_leave_nothing(preset: str, kind: str) -> None:
    """ours: memory, tasks and tables are where they were, halfway and at the end."""
    random = Random(f"{preset} {kind}")
    data = moody(preset, kind)

    async def tries() -> None:
        dialer = MemoryDialer(data, kind=kind)
        tasks = len(asyncio.all_tasks())
        async with memory_client(dialer, spec={"reconnect": 0.1}, roots=[]) as (client, _):

            async def part(number: int) -> tuple[Counter[str], int]:
                ended = await storm(client, random, data["moods"], number)
                if kind == "memory":
                    # A peer on a pipe is not told by itself to stop what it never answers.
                    await attempt(client.call_tool("dies"), bound=BOUND)
                    await client.await_ready(timeout=None)
                await asyncio.sleep(60.0)
                # What the peer itself remembers is not what is looked for.
                del dialer.links[:-1], dialer.links[-1].told[:-1]
                dialer.received.clear()
                dialer.aborted.clear()
                assert dialer.open == 1
                assert len(asyncio.all_tasks()) <= tasks + 1 + dialer.busy
                return ended, kept()

            await part(1_000)
            first, halfway = await part(CALLS // 2)
            second, at_the_end = await part(CALLS // 2)
            assert at_the_end - halfway < SOME
            ended = first + second
            assert min(ended["ok"], ended["TimedOut"], ended["cancelled"]) > 300, ended
            assert await attempt(echo(client)) == Says("x")

    with asyncio.Runner(loop_factory=lambda: VirtualLoop(limit=1e9)) as runner:
        runner.run(tries())


@pytest.mark.parametrize("wire", ["pipe", "http"])
@pytest.mark.parametrize("preset", ["legacy", "modern"])
def test_five_hundred_on_a_real_wire_leave_nothing(preset: str, wire: str, tmp_path: Path) -> None:
    """ours: descriptors and processes, too."""
    random = Random(f"{preset} {wire}")
    data = moody(preset, wire)

    async def storms(client: Client) -> Counter[str]:
        await storm(client, random, data["moods"], 50)
        before = Held.now()
        ended = await storm(client, random, data["moods"], 450)
        await client.await_ready(timeout=BOUND)
        assert await attempt(echo(client)) == Says("x")
        now = Held.now()
        # A new process, or new connections, in place of the old ones.
        assert len(now.children) == len(before.children)
        assert len(now.descriptors) <= len(before.descriptors) + 16
        return ended

    async def tries() -> None:
        spec = {"reconnect": 0.01, "call_timeout": 2.0}
        if wire == "pipe":
            async with pipe_client(data, tmp_path, spec=spec, roots=[]) as (client, _):
                ended = await storms(client)
        else:
            async with http_client(data, spec=spec, roots=[]) as (client, _):
                ended = await storms(client)
        assert ended["ok"] > 100, ended

    asyncio.run(tries())
