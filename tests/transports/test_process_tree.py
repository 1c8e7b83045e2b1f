"""transports/process_tree.py: a process group ends in order, within a bound, and to the last."""

import asyncio
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from raxol_mcp.transports import process_tree
from raxol_mcp.transports.process_tree import ProcessTree, spawn
from tests.transports.child_fakes import is_alive, is_there, run

LONG = "exec sleep 3600"
# A member of the group that keeps it from ending at SIGTERM; it says when it is ready.
STUBBORN = "(trap '' TERM; echo $$; exec sleep 3600) & "


class Started:
    """A shell script in a group of its own, with an input and a readable output."""

    def __init__(self, text: str, *command: str) -> None:
        stdin, self.stdin_fd = os.pipe()
        self.stdout_fd, stdout = os.pipe()
        self.process = spawn(
            [*(command or ("sh", "-c")), text],
            executable=command[0] if command else "/bin/sh",
            environment={"PATH": "/bin:/usr/bin"},
            cwd=None,
            fds=(stdin, stdout, 2),
        )
        os.close(stdin)
        os.close(stdout)
        self.exits: list[int | None] = []
        self._exit = asyncio.Event()
        self.tree = ProcessTree(self.process, asyncio.get_running_loop(), exited=self._exited)
        self.tree.watch()

    def _exited(self) -> None:
        self.exits.append(self.tree.code)
        self._exit.set()

    @property
    def pid(self) -> int:
        return self.process.pid

    def read(self) -> bytes:
        """Wait for what the script writes."""
        return os.read(self.stdout_fd, 100)

    async def exit(self) -> int | None:
        """Wait until the exit was reported; return the code."""
        await self._exit.wait()
        assert self.exits == [self.tree.code]
        return self.tree.code


Start = Callable[[str], Started]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start scripts, and leave none of them running."""
    started: list[Started] = []

    def starts(text: str) -> Started:
        started.append(Started(text))
        return started[-1]

    yield starts
    for one in started:
        one.tree.release()
        os.close(one.stdout_fd)
        os.close(one.stdin_fd)
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()


@pytest.fixture(params=["pidfd", "looks"])
def watched(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test with and without the system's way to wait for a process."""
    if request.param == "looks":
        monkeypatch.setattr(process_tree, "_pidfd", lambda _pid: None)


@pytest.mark.usefixtures("watched")
@pytest.mark.parametrize(
    ("text", "code"),
    [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 128 + 9), ("kill -TERM $$", 128 + 15)],
)
def test_the_exit_is_reported_once_with_its_code(start: Start, text: str, code: int) -> None:
    """client-behaviour: death by signal n is 128 + n."""

    async def scenario() -> None:
        one = start(text)
        assert await one.exit() == code
        assert not is_there(one.pid)

    run(scenario)


def test_an_exit_that_somebody_else_took_has_no_code(start: Start) -> None:
    """ours: a program that waits for every child takes the codes of ours."""

    async def scenario() -> None:
        before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        try:
            assert await start("exit 3").exit() is None
        finally:
            signal.signal(signal.SIGCHLD, before)

    run(scenario)


@pytest.mark.usefixtures("watched")
def test_a_leader_that_ends_with_its_input_is_not_signalled(start: Start) -> None:
    """MCP 2026-07-28 stdio §Shutdown: closing the input comes first."""

    async def scenario() -> None:
        one = start("trap 'exit 9' TERM; cat; exit 4")
        os.close(one.stdin_fd)
        one.stdin_fd = os.dup(2)
        await one.tree.end(end_wait=20.0, term_wait=20.0)
        assert one.tree.code == 4

    run(scenario)


@pytest.mark.usefixtures("watched")
def test_sigterm_comes_next_to_the_whole_group(start: Start) -> None:
    async def scenario() -> None:
        one = start(f"sleep 3600 & echo $!; {LONG}")
        member = int(one.read())
        await one.tree.end(end_wait=0.0, term_wait=20.0)
        assert one.tree.code == 128 + signal.SIGTERM
        assert not is_alive(member)

    run(scenario)


@pytest.mark.usefixtures("watched")
def test_sigkill_comes_last(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        one = start(f"trap '' TERM; {STUBBORN} wait")
        one.read()
        await one.tree.end(end_wait=0.01, term_wait=0.01)
        assert one.tree.code == 128 + signal.SIGKILL
        assert not is_there(one.pid)

    with caplog.at_level(logging.WARNING, "raxol_mcp.client.stdio"):
        run(scenario)
    assert [record.getMessage().split(" ", 3)[3] for record in caplog.records] == [
        "outlives SIGTERM and is killed"
    ]


@pytest.mark.usefixtures("watched")
def test_who_outlives_the_leader_is_ended_too(start: Start) -> None:
    """mark3labs/mcp-go#167: only the launcher was ended, the server stayed."""

    async def scenario() -> None:
        one = start("(trap '' TERM; echo; exec sleep 3600) & read line; echo $!; exit 5")
        one.read()
        os.write(one.stdin_fd, b"\n")
        member = int(one.read())
        assert await one.exit() == 5
        assert is_alive(member)
        await one.tree.end(end_wait=20.0, term_wait=0.01)
        assert not is_alive(member)

    run(scenario)


def test_who_outlives_the_leader_gets_sigterm_before_the_exit_is_reported(start: Start) -> None:
    async def scenario() -> None:
        one = start("(trap 'echo term; exit' TERM; echo up; while :; do sleep 0.01; done) & read x")
        assert one.read() == b"up\n"
        os.write(one.stdin_fd, b"\n")
        await one.exit()
        assert one.read() == b"term\n"
        await one.tree.end(end_wait=20.0, term_wait=20.0)

    run(scenario)


def test_a_process_that_is_stopped_is_ended(start: Start) -> None:
    async def scenario() -> None:
        one = start("kill -STOP $$")
        await one.tree.end(end_wait=0.01, term_wait=0.01)
        assert one.tree.code in (128 + signal.SIGTERM, 128 + signal.SIGKILL)

    run(scenario)


def test_ending_again_signals_nobody(start: Start) -> None:
    async def scenario() -> None:
        one = start("exit 0")
        await one.tree.end(end_wait=20.0, term_wait=20.0)
        await one.tree.end(end_wait=20.0, term_wait=20.0)
        assert one.exits == [one.tree.code]

    run(scenario)


def test_a_cancelled_end_kills_at_once(start: Start) -> None:
    """ours: `asyncio.run` cancels what is left, and must leave no server behind."""

    async def scenario() -> None:
        one = start(f"trap '' TERM; {STUBBORN} wait")
        one.read()
        ending = asyncio.ensure_future(one.tree.end(end_wait=3600.0, term_wait=3600.0))
        await asyncio.sleep(0)
        ending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ending
        assert one.tree.code == 128 + signal.SIGKILL
        assert not is_there(one.pid)

    run(scenario)


def test_what_cannot_be_killed_is_given_up(
    start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """ours: a process that hangs in the kernel must not keep `close` for ever."""

    async def scenario() -> None:
        one = start(LONG)
        with monkeypatch.context() as patch:
            patch.setattr(process_tree, "_KILLED_WAIT", 0.01)
            patch.setattr(os, "killpg", lambda _group, _number: None)
            await one.tree.end(end_wait=0.01, term_wait=0.01)
        assert not one.tree.ended

    with caplog.at_level(logging.WARNING, "raxol_mcp.client.stdio"):
        run(scenario)
    assert [record.getMessage().split(" ", 3)[3] for record in caplog.records] == [
        "outlives SIGTERM and is killed",
        "outlives SIGKILL",
    ]


def test_a_group_of_another_user_is_not_taken_for_gone(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """client-behaviour: not permitted is never treated as gone."""
    asked: list[int] = []

    def refuses(_group: int, number: int) -> None:
        asked.append(number)
        if len(asked) > 3:
            raise ProcessLookupError
        raise PermissionError

    async def scenario() -> None:
        one = start("exit 0")
        with monkeypatch.context() as patch:
            patch.setattr(os, "killpg", refuses)
            await one.tree.end(end_wait=20.0, term_wait=20.0)

    run(scenario)
    assert asked == [signal.SIGTERM, 0, 0, 0]


@pytest.mark.parametrize("pid", [0, 1])
def test_our_own_group_and_everybody_are_never_signalled(
    pid: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """client-behaviour: pids 0 and 1 are never signalled."""
    monkeypatch.setattr(os, "killpg", lambda _group, _number: pytest.fail("signalled"))

    class NoProcess(subprocess.Popen[bytes]):
        def __init__(self) -> None:
            self.pid = pid
            self.returncode = 0

    async def scenario() -> None:
        tree = ProcessTree(NoProcess(), asyncio.get_running_loop(), exited=lambda: None)
        with pytest.raises(AssertionError):
            await tree.end(end_wait=0.0, term_wait=0.0)

    run(scenario)


ZOMBIE = """
import os, time
if os.fork() == 0:
    zombie = os.fork()
    if zombie == 0:
        os._exit(0)
    os.waitid(os.P_PID, zombie, os.WEXITED | os.WNOWAIT)
    os.setsid()
    print(os.getpid(), flush=True)
    time.sleep(3600)
input()
"""


def test_a_group_of_zombies_is_gone() -> None:
    """ours: process 1 of a container often reaps nobody, and there is nothing to wait for then."""

    async def scenario() -> None:
        one = Started(ZOMBIE, sys.executable, "-ISc")
        parent = int(one.read())  # of the zombie; it has left the group
        os.write(one.stdin_fd, b"\n")
        await one.exit()
        os.killpg(one.pid, 0)
        # Longer than the test may take.
        await one.tree.end(end_wait=3600.0, term_wait=3600.0)
        os.kill(parent, signal.SIGKILL)
        os.close(one.stdin_fd)
        os.close(one.stdout_fd)

    run(scenario)


def test_without_a_list_of_processes_the_group_counts_as_alive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(_path: str) -> list[str]:
        raise FileNotFoundError

    monkeypatch.setattr(os, "listdir", fails)
    assert process_tree._has_living_member(2**30)


def test_a_process_that_ends_while_it_is_looked_at_is_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "listdir", lambda _path: ["self", "4194305"])
    assert not process_tree._has_living_member(2**30)


def test_elsewhere_nobody_knows_of_zombies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    try:
        assert process_tree._has_living_member(2**30)
        assert process_tree._pidfd(os.getpid()) is None
    finally:
        monkeypatch.undo()


def test_a_system_without_waitid_reaps_to_find_out(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """macOS with Python 3.11 and 3.12."""

    async def scenario() -> None:
        one = start("exit 3")
        assert await one.exit() == 3

    monkeypatch.setattr(process_tree, "_pidfd", lambda _pid: None)
    monkeypatch.setattr(sys, "platform", "darwin")
    try:
        run(scenario)
    finally:
        monkeypatch.undo()


def test_without_a_descriptor_left_the_end_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_pid: int) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "pidfd_open", full)
    assert process_tree._pidfd(os.getpid()) is None


def test_a_child_inherits_three_descriptors_and_a_session(tmp_path: Path) -> None:
    """ours: whatever this program has open is none of a server's business."""
    stray, other = os.pipe()
    os.set_inheritable(stray, True)
    reading, writing = os.pipe()
    shows = "import os; print(sorted(os.listdir('/proc/self/fd')), os.getsid(0) == os.getpid())"
    process = spawn(
        ["python", "-ISc", shows],
        executable=sys.executable,
        environment={},
        cwd=str(tmp_path),
        fds=(reading, writing, 2),
    )
    process.wait()
    # 3 is the folder that is being listed.
    assert os.read(reading, 100) == b"['0', '1', '2', '3'] True\n"
    for fd in (stray, other, reading, writing):
        os.close(fd)
