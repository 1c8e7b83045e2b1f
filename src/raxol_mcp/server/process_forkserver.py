"""The forkserver: a fresh interpreter that imports once, then forks and kills on request.

It runs no call, so nothing a user's function does can reach it. It keeps to one thread: a fork
copies only the thread that forks, and any lock that another one held would stay locked for ever.

It alone kills. It is the parent of every worker, so a worker's id stays taken until it has reaped
it here: a recycled id can never be hit. A worker that ended for whatever reason is first seen
(WNOWAIT), then its process group is killed, then it is reaped, and `Exited` is sent when the group
is empty. On Linux it is a child subreaper: what the dead worker had started becomes its child, so
the group is known to be gone, and no zombie is left to a container without an init.

When the socket to the server ends it kills everything and ends too.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import socket
import sys
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Final, NoReturn

from raxol_mcp.server import process_worker
from raxol_mcp.server.process_messages import (
    Begin,
    Begun,
    Exited,
    Fork,
    Frames,
    Unforked,
    frame,
    to_forkserver,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import msgspec

__all__ = ["main"]

_READ_BYTES: Final = 64 * 1024
_MAX_MESSAGE_BYTES: Final = 16 * 1024 * 1024
_MAX_DESCRIPTORS: Final = 16
# Nothing can end an import from outside while it holds the GIL; SIGALRM's default action can.
_IMPORT_TIMEOUT: Final = 120
_LEAVE_TIMEOUT: Final = 2.0
# macOS before Python 3.13 has no waitid: the id is free for the microseconds until the group is
# killed. Nowhere are ids reused that fast.
_MAY_LOOK_FIRST: Final = hasattr(os, "waitid")
# linux/prctl.h
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36


def main(descriptor: int) -> NoReturn:
    """Serve the server at the other end of `descriptor`; ends the process."""
    control = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=descriptor)
    control.set_inheritable(False)
    status = 1
    try:
        _Forkserver(control).serve()
        status = 0
    except Exception:
        sys.excepthook(*sys.exc_info())
    finally:
        # Not sys.exit: exit hooks of the user's modules are not for this process to run.
        os._exit(status)


class _Forkserver:
    """One control socket, the workers forked so far, and the groups that are about to be gone."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._frames = Frames(_MAX_MESSAGE_BYTES)
        # Descriptors arrive with or before the first byte of their message, hence in its order.
        self._passed: deque[int] = deque()
        self._pids: dict[int, int] = {}  # {number: pid}, until reaped
        self._numbers: dict[int, int] = {}  # the same, turned round
        self._dying: dict[int, Exited] = {}  # {group: what to send when it is empty}
        self._max_result_bytes = 0
        self._prctl: Callable[[int, int], bool] | None = None
        # Written to by the signal handler's C part, which wakes the poll.
        self._child_ended, self._wake = socket.socketpair()
        self._child_ended.setblocking(False)
        self._wake.setblocking(False)

    def serve(self) -> None:
        """Do what the server says until it is gone; then leave nothing behind."""
        waiting = self._read()
        while waiting is not None and not waiting:
            waiting = self._read()
        if waiting is None:
            return
        begin = to_forkserver.decode(waiting.pop(0))
        assert isinstance(begin, Begin), "the server begins"
        self._begin(begin)
        try:
            while waiting is not None:
                for payload in waiting:
                    self._received(payload)
                waiting = self._wait()
        finally:
            self._leave()

    def _begin(self, begin: Begin) -> None:
        sys.argv[:] = begin.argv
        self._max_result_bytes = begin.max_result_bytes
        process_worker.use_main(begin.main_name, begin.main_path)
        with contextlib.suppress(Exception):  # a stand-in that a site hook put there
            # The declared type is that of the stand-in, which may lack it.
            sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
        problems = self._import(begin.modules)
        self._prctl = _load_prctl()
        if self._prctl is not None:
            self._prctl(_PR_SET_CHILD_SUBREAPER, 1)
        # After the imports: a module may have set a handler of its own.
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        gc.collect()
        gc.freeze()  # what is there now is never collected: collections in workers copy no page
        self._send(Begun(problems, threading.active_count()))

    def _import(self, modules: list[str]) -> list[str]:
        """Import what the calls will need; return one text for each module that cannot be."""
        done, stop = os.pipe()
        watcher = threading.Thread(
            target=process_worker.watch, args=(self._control,), kwargs={"stop": done}, daemon=True
        )
        watcher.start()
        signal.alarm(_IMPORT_TIMEOUT)
        problems: list[str] = []
        for module in modules:
            try:
                process_worker.load(module)
            except BaseException as error:  # the boundary: a module may even call sys.exit
                problems.append(f"{module}: {type(error).__name__}: {error!s:.500}")
        signal.alarm(0)
        os.close(stop)
        watcher.join()
        os.close(done)
        return problems

    def _wait(self) -> list[bytes] | None:
        """Reap until the server says something; None when it is gone."""
        poller = select.poll()
        poller.register(self._child_ended, select.POLLIN)
        poller.register(self._control, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in poller.poll()}
            if self._child_ended.fileno() in ready:
                self._reap()
            if self._control.fileno() in ready:
                return self._read()

    def _read(self) -> list[bytes] | None:
        """Return the messages that came with one read; None when the server is gone."""
        try:
            chunk, descriptors, _, _ = socket.recv_fds(self._control, _READ_BYTES, _MAX_DESCRIPTORS)
        except ConnectionError:  # it went before it had read what was sent to it
            return None
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)  # one thread, so nothing forks in between
        self._passed.extend(descriptors)
        return self._frames.feed(chunk) if chunk else None

    def _send(self, message: msgspec.Struct) -> None:
        with contextlib.suppress(ConnectionError):  # it is gone: the next read says so
            self._control.sendall(frame(message))

    def _received(self, payload: bytes) -> None:
        message = to_forkserver.decode(payload)
        assert not isinstance(message, Begin), "the server begins once"
        if isinstance(message, Fork):
            self._fork(message.number)
        elif message.number in self._pids:
            _kill_group(self._pids[message.number])
        elif all(exited.number != message.number for exited in self._dying.values()):
            self._send(Exited(message.number, 0))

    def _fork(self, number: int) -> None:
        descriptor = self._passed.popleft()
        sys.stdout.flush()  # or every child would print what is in the buffer
        sys.stderr.flush()
        parent = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            os.close(descriptor)
            self._send(Unforked(number, str(error)))
            return
        if pid == 0:
            self._become_worker(descriptor, parent)
        with contextlib.suppress(OSError):  # both sides do it: whoever comes first, no gap is left
            os.setpgid(pid, pid)
        os.close(descriptor)
        self._pids[number] = pid
        self._numbers[pid] = number

    def _become_worker(self, descriptor: int, parent: int) -> NoReturn:
        try:
            os.setpgid(0, 0)
            if self._prctl is None or not self._prctl(_PR_SET_PDEATHSIG, signal.SIGKILL):
                watched = True
            else:
                watched = False
                if os.getppid() != parent:  # it died before the kernel was told
                    os._exit(1)
            signal.set_wakeup_fd(-1)
            for number in signal.valid_signals():
                if callable(signal.getsignal(number)):
                    signal.signal(number, signal.SIG_DFL)
            # Ends of other workers' sockets among them: kept open here, they would never end there.
            for other in self._passed:
                os.close(other)
            for stream in (self._control, self._child_ended, self._wake):
                stream.close()
            own = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=descriptor)
            if watched:
                threading.Thread(target=process_worker.watch, args=(own,), daemon=True).start()
            process_worker.serve(own, max_result_bytes=self._max_result_bytes)
        except Exception:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(1)  # never back into the forkserver's loop

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._child_ended.recv(4096):
                pass
        while (child := _ended_child()) is not None:
            pid, status = child
            if pid in self._numbers:
                # What it had started. Its id is still taken: it is not reaped yet.
                _kill_group(pid)
            if status is None:
                _, status = os.waitpid(pid, 0)
            number = self._numbers.pop(pid, None)
            if number is not None:
                del self._pids[number]
                self._dying[pid] = Exited(number, os.waitstatus_to_exitcode(status))
        for group in list(self._dying):
            if _group_is_gone(group):
                self._send(self._dying.pop(group))

    def _leave(self) -> None:
        """Kill everything and wait, bounded, until it is gone."""
        deadline = time.monotonic() + _LEAVE_TIMEOUT
        for pid in self._numbers:
            _kill_group(pid)
        poller = select.poll()
        poller.register(self._child_ended, select.POLLIN)
        while (self._numbers or self._dying) and time.monotonic() < deadline:
            poller.poll(100)
            self._reap()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
            # Something is left: the imports started it, in this group or out of reach.
            os.killpg(os.getpid(), signal.SIGKILL)


def _ended_child() -> tuple[int, int | None] | None:
    """Return a child that ended, with its status if it had to be reaped to know, or None."""
    try:
        if _MAY_LOOK_FIRST:
            seen = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            return None if seen is None else (seen.si_pid, None)
        pid, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return (pid, status) if pid else None


def _kill_group(group: int) -> None:
    # PermissionError is what macOS says for a group of zombies.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _group_is_gone(group: int) -> bool:
    """Reap what is left of a killed group; it is gone when none of it is our child any more."""
    while True:
        try:
            pid, _ = os.waitpid(-group, os.WNOHANG)
        except ChildProcessError:
            return True
        if pid == 0:
            return False


def _load_prctl() -> Callable[[int, int], bool] | None:
    if sys.platform != "linux":
        return None
    try:
        import ctypes

        function = ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):
        return None

    def prctl(option: int, value: int) -> bool:
        unused = ctypes.c_ulong(0)
        return bool(function(option, ctypes.c_ulong(value), unused, unused, unused) == 0)

    return prctl
