"""K14: whichever end goes away, and whenever, the process ends in time and leaves nothing.

Servers outlived their clients by the hundred, spun on a closed pipe, or ignored SIGTERM because a
tool was stuck.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import pytest

from tests.cases.dialects import BOTH_ERAS, LEGACY, Dialect, result_of, text_of
from tests.cases.fixture_server import Knobs
from tests.cases.peers import StdioPeer

MARK: Final = "FIXTURE_MARK"


def survivors(mark: str) -> list[int]:
    """Find every process that was started with this mark in its environment."""
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{MARK}={mark}".encode() in environ.read_bytes():
                found.append(int(environ.parent.name))
        except (OSError, ValueError):
            continue  # it has ended meanwhile, or it is somebody else's
    return found


def cpu_seconds(pid: int) -> float:
    """Read how much CPU a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run_marked(
    scenario: Callable[[StdioPeer], Awaitable[None]],
    knobs: Callable[[str], Knobs],
    tmp_path: Path,
) -> list[str]:
    """Run a scenario that ends its process; check that nothing is left; return the journal."""
    if not Path("/proc/self/environ").exists():
        pytest.skip("there is no /proc here to look for survivors in")
    mark, path = uuid.uuid4().hex, tmp_path / "journal"

    async def runs() -> None:
        peer = await StdioPeer.start(knobs(str(path)), environment={MARK: mark})
        try:
            await scenario(peer)
            async with asyncio.timeout(2.0):
                # Workers notice the end of their parent; nobody tells us of theirs.
                while survivors(mark):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            assert "Traceback" not in peer.stderr(), peer.stderr()
        finally:
            await peer.kill()

    asyncio.run(runs())
    return path.read_text("utf-8").splitlines()


def quick(path: str) -> Knobs:
    """Choose a short patience, so that ends that wait do not make the test wait."""
    return Knobs(journal=path, stdio={"drain_timeout": 0.2, "exit_timeout": 5.0})


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
def test_it_ends_when_its_input_ends(era: Dialect, tmp_path: Path) -> None:
    """BC-041. MCP 2026-07-28 stdio §Shutdown: exit promptly; threads and workers as well."""

    async def leaves(peer: StdioPeer) -> None:
        await era.greet(peer)
        assert "tools" in result_of(await peer.request(era.request(2, "tools/list")))
        assert text_of(await peer.request(era.call(3, "sync_block", {"ms": 1}))) == "done"
        assert text_of(await peer.request(era.call(4, "waits_elsewhere", {"ms": 1}))) == "waited"
        async with asyncio.timeout(2.0):
            assert await peer.finish() == 0

    assert run_marked(leaves, lambda path: Knobs(journal=path), tmp_path)[-1] == "cleaned up"


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
def test_it_ends_when_nobody_reads_its_output(era: Dialect, tmp_path: Path) -> None:
    """BC-043. modelcontextprotocol/typescript-sdk#1568: not a spin, not a crash."""

    async def vanishes(peer: StdioPeer) -> None:
        await era.greet(peer)
        arguments = {"n": 1000, "delay_ms": 10}
        await peer.send(era.call(2, "progress", arguments, meta={"progressToken": 1}))
        await peer.until(lambda message: message.get("method") == "notifications/progress")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = cpu_seconds(peer.process.pid)
        peer.close_output()
        async with asyncio.timeout(3.0):
            assert await peer.process.wait() == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        assert spent - used < 0.5, "seconds of CPU after the close"

    assert run_marked(vanishes, quick, tmp_path)[-1] == "cleaned up"


@pytest.mark.slow
@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
def test_sigterm_ends_it_while_a_tool_is_stuck(era: Dialect, tmp_path: Path) -> None:
    """BC-045. MCP 2025-11-25 lifecycle §Shutdown; the bound is that of `docs/limits.md`, 10 s."""

    async def terminates(peer: StdioPeer) -> None:
        await era.greet(peer)
        await peer.send(era.call(2, "sync_block", {"ms": 600_000}))
        assert text_of(await peer.request(era.call(3, "echo", {"text": "x"}))) == "x"
        peer.signal(signal.SIGTERM)
        async with asyncio.timeout(10.0):
            await peer.wait()
        assert peer.process.returncode is not None
        assert peer.process.returncode > 0, "it ended by itself"

    lines = run_marked(terminates, lambda path: Knobs(journal=path), tmp_path)
    assert lines.count("cleaned up") == 1


# -- every end, at every point of a call -----------------------------------------------------------


async def nothing_yet(peer: StdioPeer, era: Dialect) -> None:
    """Not even a greeting."""


async def idle(peer: StdioPeer, era: Dialect) -> None:
    """Between two calls."""
    await era.greet(peer)
    assert text_of(await peer.request(era.call(1, "echo", {"text": "x"}))) == "x"


async def half_a_line(peer: StdioPeer, era: Dialect) -> None:
    """While a message comes."""
    await idle(peer, era)
    await peer.send_bytes(b'{"jsonrpc":"2.0","id":1,"method":"tools/l')


async def running(peer: StdioPeer, era: Dialect) -> None:
    """While a call runs."""
    await idle(peer, era)
    await peer.send(era.call(2, "sleep", {"ms": 600_000, "tag": "t"}))
    await peer.request(era.call(3, "echo", {"text": "x"}))


async def running_elsewhere(peer: StdioPeer, era: Dialect) -> None:
    """While a call runs in a process."""
    await idle(peer, era)
    await peer.request(era.call(4, "waits_elsewhere", {"ms": 1}))
    await peer.send(era.call(2, "waits_elsewhere", {"ms": 600_000}))
    await peer.request(era.call(3, "echo", {"text": "x"}))


async def writing(peer: StdioPeer, era: Dialect) -> None:
    """While an answer is written that does not fit the pipe."""
    await idle(peer, era)
    peer.stop_reading()
    await peer.send(era.call(2, "big", {"bytes": 4_000_000}))
    await asyncio.sleep(0.05)


async def talking(peer: StdioPeer, era: Dialect) -> None:
    """While progress is sent."""
    await idle(peer, era)
    arguments = {"n": 100_000, "delay_ms": 1}
    await peer.send(era.call(2, "progress", arguments, meta={"progressToken": 1}))
    await peer.until(lambda message: message.get("method") == "notifications/progress")


def closes_input(peer: StdioPeer) -> None:
    """A client that shuts down as the specification says."""
    peer.close_input()
    peer.read_on()


def closes_output(peer: StdioPeer) -> None:
    """A client that has lost interest."""
    peer.close_output()


def closes_both(peer: StdioPeer) -> None:
    """A client that was killed."""
    peer.close_input()
    peer.close_output()


def terminates(peer: StdioPeer) -> None:
    """A launcher that asks."""
    peer.signal(signal.SIGTERM)
    peer.read_on()


def interrupts(peer: StdioPeer) -> None:
    """A user who presses Ctrl-C."""
    peer.signal(signal.SIGINT)
    peer.read_on()


POINTS: Final = (nothing_yet, idle, half_a_line, running, running_elsewhere, writing, talking)
ENDS: Final = (closes_input, closes_output, closes_both, terminates, interrupts)


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.__name__)
@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
def test_every_end_at_every_point_is_an_orderly_one(
    era: Dialect,
    point: Callable[[StdioPeer, Dialect], Awaitable[None]],
    end: Callable[[StdioPeer], None],
    tmp_path: Path,
) -> None:
    """BC-041, BC-043 and BC-045, the kind: bounded, no survivor, cleaned up exactly once."""

    async def ends(peer: StdioPeer) -> None:
        await point(peer, era)
        if point is nothing_yet and end in (terminates, interrupts):
            await peer.request(LEGACY.request("up", "ping"))  # else there is no handler yet
        end(peer)
        async with asyncio.timeout(5.0):
            code = await peer.process.wait()
        assert (code == 0) == (end not in (terminates, interrupts)), peer.stderr()

    lines = run_marked(ends, quick, tmp_path)
    assert lines.count("opened") == lines.count("cleaned up") == 1
