"""A server's process and all it started: from the spawn to the end of the last of them.

Moves no message and reads no pipe. The child leads a session and so a process group of its own:
what it starts is in that group unless it leaves it on purpose, and a Ctrl-C in our terminal
reaches neither. The group ends in this order (MCP 2026-07-28 basic/transports/stdio §Shutdown):
end of input, a while, SIGTERM to the group, a while, SIGKILL to the group. Every wait is bounded.

Why no other process can be hit. Signals go to the number of the group, which is the leader's
process id. While the leader runs, or is a zombie because only this module reaps it, that number is
taken; after that it is taken as long as one member of the group is left. Only when all are gone
may the system give it away, and it does so in a circle: all other numbers (32,768 at least) come
first. Between two looks of `_gone` that is a twentieth of a second. The group of a leader that
ended is signalled before the leader is reaped, and after `_gone` said so never again.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

__all__ = ["ProcessTree", "find_command", "spawn"]

logger = logging.getLogger("raxol_mcp.client.stdio")

# Between two looks at what cannot be waited for, in seconds: the first pause, and the longest it
# is doubled up to while somebody waits, and when nobody does.
_FIRST_LOOK: Final = 0.005
_LOOK: Final = 0.05
_IDLE_LOOK: Final = 1.0
# How long killed processes are waited for, in seconds. Longer only in the kernel, on a dead disk.
_KILLED_WAIT: Final = 2.0


def find_command(command: str, path: str) -> str:
    """Find what to execute for `command`, as a shell does, but never in the working directory.

    One with a slash is itself: the system looks from the child's working directory. Of `path`
    only absolute folders count, because an empty or relative one means whatever folder one happens
    to be in. Raises `FileNotFoundError` or `PermissionError`.
    """
    if "/" in command:
        return command
    found = errno.ENOENT
    for folder in path.split(os.pathsep):
        if command and folder.startswith("/"):
            candidate = f"{folder}/{command}"
            if os.path.isfile(candidate):
                if os.access(candidate, os.X_OK):
                    return candidate
                found = errno.EACCES
    raise OSError(found, os.strerror(found), command)


def spawn(
    argv: Sequence[str],
    *,
    executable: str,
    environment: Mapping[str, str],
    cwd: str | None,
    fds: tuple[int, int, int],
) -> subprocess.Popen[bytes]:
    """Start a program that leads its own session and inherits `fds` as 0, 1, 2 and no others.

    Takes about a millisecond of the loop's time: nothing of this process is copied (vfork), and
    a thread would hold the interpreter just as long. Raises `OSError`, and `ValueError` for what
    no program can be given, such as a NUL.
    """
    stdin, stdout, stderr = fds
    return subprocess.Popen(
        argv,
        executable=executable,
        env=environment,
        cwd=cwd,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        close_fds=True,
        start_new_session=True,
    )


class ProcessTree:
    """One child that was made by `spawn`, with its group. `watch` first.

    `exited` is called once, from the loop, when the leader has ended; what is left of the group
    has been sent SIGTERM by then. `ended` says whether that was, and `code` is how: the exit
    code, 128 + n for signal n, None when other code of this program took it (a SIGCHLD handler
    that waits for every child).
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        loop: asyncio.AbstractEventLoop,
        *,
        exited: Callable[[], None],
    ) -> None:
        self._process = process
        self._loop = loop
        self._exited = exited
        self._leader_ended = loop.create_future()
        self._terminated = False
        self._taken = False
        self._look_due: asyncio.Handle | None = None
        self._pause = _FIRST_LOOK
        self._longest_pause = _IDLE_LOOK
        self._pidfd: int | None = None
        self.code: int | None = None

    def watch(self) -> None:
        """Tell of the end of the leader from now on."""
        self._pidfd = _pidfd(self._process.pid)
        if self._pidfd is None:
            self._look_again()
        else:
            self._loop.add_reader(self._pidfd, self._look)

    @property
    def ended(self) -> bool:
        """Whether the leader has ended."""
        return self._leader_ended.done()

    def hurry(self) -> None:
        """Somebody waits for the end of the leader: look more often, where looking is needed."""
        if self._look_due is not None:
            self._look_due.cancel()
            self._pause, self._longest_pause = _FIRST_LOOK, _LOOK
            self._look_again()

    async def end(self, *, end_wait: float, term_wait: float) -> None:
        """Wait for the end of the whole group and bring it about; its input is closed by now.

        Takes at most `end_wait + term_wait` and two seconds more, in seconds. When it is
        cancelled it kills at once instead, and is cancelled when that is done.
        """
        try:
            if not await self._leader_ends(end_wait):
                self._terminate()
            if await self._gone(term_wait):
                return
            logger.warning("process group %d outlives SIGTERM and is killed", self._process.pid)
        except asyncio.CancelledError:
            self._signal(signal.SIGKILL)
            await self._gone(_KILLED_WAIT)
            raise
        self._signal(signal.SIGKILL)
        if not await self._gone(_KILLED_WAIT):
            logger.warning("process group %d outlives SIGKILL", self._process.pid)

    def release(self) -> None:
        """Watch no more. A leader that outlived everything is reaped at the next spawn."""
        if self._look_due is not None:
            self._look_due.cancel()
            self._look_due = None
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None

    def _look_again(self) -> None:
        self._look_due = self._loop.call_later(self._pause, self._look)
        self._pause = min(self._pause * 2, self._longest_pause)

    def _look(self) -> None:
        """See whether the leader has ended."""
        if not self._has_ended():
            if self._pidfd is None:
                self._look_again()
            return
        self.release()
        # Before it is reaped: until then the number is the group's beyond doubt.
        self._terminate()
        returned = self._process.poll()
        if returned is not None and not self._taken:
            self.code = returned if returned >= 0 else 128 - returned
        self._leader_ended.set_result(None)
        self._exited()

    def _has_ended(self) -> bool:
        """Ask whether the leader has ended, without reaping it where the system has such a call."""
        if sys.platform == "darwin":
            return self._process.poll() is not None
        try:
            how = os.WEXITED | os.WNOHANG | os.WNOWAIT
            return os.waitid(os.P_PID, self._process.pid, how) is not None
        except ChildProcessError:
            self._taken = True
            return True

    async def _leader_ends(self, timeout: float) -> bool:  # noqa: ASYNC109  # a bound of ours
        self.hurry()
        await asyncio.wait((self._leader_ended,), timeout=timeout)
        return self.ended

    async def _gone(self, timeout: float) -> bool:  # noqa: ASYNC109  # a bound of ours
        """Wait until nobody of the group lives, at most `timeout` seconds."""
        due_at = self._loop.time() + timeout
        if not await self._leader_ends(timeout):
            return False
        pause = _FIRST_LOOK
        while self._has_members():
            if self._loop.time() >= due_at:
                return False
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LOOK)
        return True

    def _has_members(self) -> bool:
        """Say whether anybody of the group is left, once its leader is reaped."""
        try:
            os.killpg(self._process.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:  # another user's by now; somebody is there
            return True
        return _has_living_member(self._process.pid)

    def _terminate(self) -> None:
        """Send SIGTERM once: to some programs a second one means to stop cleaning up."""
        if not self._terminated:
            self._terminated = True
            self._signal(signal.SIGTERM)

    def _signal(self, number: signal.Signals) -> None:
        group = self._process.pid
        assert group > 1, "0 would be our own group, and 1 every process there is"
        # Nobody left, or nobody of ours: macOS says the latter of zombies, too.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)


def _pidfd(pid: int) -> int | None:
    """Open a descriptor that becomes readable at the end of a child; None where there is none."""
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:  # an old kernel, a sandbox, no descriptor left
        return None


def _has_living_member(group: int) -> bool:
    """Say whether one of a group that is there is more than a zombie, where the system can tell.

    Orphans are reaped by process 1, and in a container that is often a program that does not.
    """
    if sys.platform != "linux":
        return True
    try:
        names = os.listdir("/proc")
    except OSError:
        return True
    for name in names:
        if not name.isdecimal():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                said = file.read()
        except OSError:  # it has just ended
            continue
        # pid (name) state parent group ...; the name may hold anything.
        state, _, its_group, *_ = said.rpartition(b")")[2].split()
        if int(its_group) == group and state not in (b"Z", b"X"):
            return True
    return False
