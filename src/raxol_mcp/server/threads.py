"""Runs blocking functions in daemon threads, made on demand and reused.

Decides nothing: it has no bound of its own. Whoever submits holds a slot until it is told that
the function has ended, so there are never more threads than slots (ours: ADR-0004).

A thread cannot be killed. A function that never returns keeps its thread, and its slot, until the
interpreter exits; being a daemon it does not delay that exit (K14). A function that must be
stoppable belongs in `processes`.
"""

from __future__ import annotations

import itertools
import logging
import threading
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Context

__all__ = ["Threads"]

T = TypeVar("T")

_logger = logging.getLogger("raxol_mcp.threads")

# Long enough to ride out a pause between bursts, short enough that a burst is not paid for all day.
_IDLE_TIMEOUT: Final = 10.0


class Threads:
    """A stack of reusable daemon threads. Safe to use from any thread.

    The most recently used thread is taken first, so that under light load the others get old and
    end, after `idle_timeout` seconds.
    """

    def __init__(self, name: str = "raxol", *, idle_timeout: float = _IDLE_TIMEOUT) -> None:
        self._name = name
        self._idle_timeout = idle_timeout
        self._lock = threading.Lock()
        self._idle: list[_Thread] = []
        self._numbers = itertools.count(1)
        self._running = 0
        self._alive = 0

    @property
    def running(self) -> int:
        """How many submitted functions have not ended yet."""
        return self._running

    @property
    def alive(self) -> int:
        """How many threads exist, idle ones included."""
        return self._alive

    def submit(
        self,
        function: Callable[[], T],
        done: Callable[[T | None, BaseException | None], None],
        *,
        context: Context | None = None,
    ) -> None:
        """Run `function` in a thread, then call `done(result, None)` or `done(None, exception)`.

        `done` is called exactly once, in that thread, also for SystemExit and KeyboardInterrupt.
        It must not wait for anything, because the thread counts as free by then: tell a loop with
        `call_soon_threadsafe`. `context` is entered for `function` alone; it must not be in use
        elsewhere, so pass a copy. Raises RuntimeError, with nothing started and `done` never
        called, when the system refuses another thread.
        """
        with self._lock:
            self._running += 1
            thread = self._idle.pop() if self._idle else None
        if thread is None:
            thread = self._start()

        def job() -> None:
            result: T | None = None
            failure: BaseException | None = None
            try:
                result = function() if context is None else context.run(function)
            except BaseException as error:  # the boundary: what a user raises ends this call only
                failure = error
            self._free(thread)
            _tell(done, result, failure)
            # A traceback refers to this frame, and this frame to the exception: break the cycle.
            del failure

        thread.inbox.put(job)

    def _start(self) -> _Thread:
        thread = _Thread(f"{self._name}-{next(self._numbers)}", self._idle_timeout, self._may_end)
        with self._lock:
            self._alive += 1
        try:
            thread.start()
        except RuntimeError:
            with self._lock:
                self._running -= 1
                self._alive -= 1
            raise
        return thread

    def _free(self, thread: _Thread) -> None:
        # Before `done`: whoever is told that it ended must neither count it as running nor need
        # another thread for what comes next.
        with self._lock:
            self._running -= 1
            self._idle.append(thread)

    def _may_end(self, thread: _Thread) -> bool:
        with self._lock:
            if thread not in self._idle:
                return False  # taken by a `submit` that ran while the wait timed out
            self._idle.remove(thread)
            self._alive -= 1
            return True


class _Thread(threading.Thread):
    """One reusable thread with an inbox of one job. `may_end` is asked when none came in time."""

    def __init__(self, name: str, timeout: float, may_end: Callable[[_Thread], bool]) -> None:
        super().__init__(name=name, daemon=True)
        self.inbox: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._timeout = timeout
        self._may_end = may_end

    def run(self) -> None:
        while True:
            try:
                job = self.inbox.get(timeout=self._timeout)
            except Empty:
                if self._may_end(self):
                    return
                job = self.inbox.get()  # promised: it is on its way
            job()
            del job  # an idle thread must not keep the last call's objects alive


def _tell(
    done: Callable[[T | None, BaseException | None], None],
    result: T | None,
    failure: BaseException | None,
) -> None:
    try:
        done(result, failure)
    except Exception:
        # Usually a loop that was closed meanwhile: nobody waits any more, and the thread lives on.
        _logger.debug("the end of a thread's function could not be told", exc_info=True)
