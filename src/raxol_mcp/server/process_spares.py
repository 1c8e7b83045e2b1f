"""The workers without a call: a stack, which is taken from the top and gets old at the bottom.

Starts and ends no process itself: it calls `end` for a worker that nobody needed for long enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from raxol_mcp.server.process_call import ProcessCall
    from raxol_mcp.server.process_channel import Channel
    from raxol_mcp.server.process_spawn import Forkserver

__all__ = ["Spares", "Worker"]


@dataclass(slots=True, eq=False)
class Worker:
    """One worker as the server sees it. `call` is set from `run` until its call has ended."""

    number: int
    forkserver: Forkserver
    channel: Channel
    call: ProcessCall | None = None
    unsent: bytes = b""  # the call's frame, until the worker is ready for it
    pid: int | None = None
    is_ready: bool = False
    is_ending: bool = False
    idle_at: float = 0.0
    timer: asyncio.TimerHandle | None = None


class Spares:
    """Idle workers and, below them, starting ones. The last one is kept for ever.

    The others are given to `end` when idle for `idle_timeout` seconds; `end` has to `withdraw`
    them.
    """

    def __init__(self, idle_timeout: float, end: Callable[[Worker], None]) -> None:
        self._idle_timeout = idle_timeout
        self._end = end
        self._starting: list[Worker] = []
        self._idle: list[Worker] = []  # never used, then longest idle first
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._starting) + len(self._idle)

    def take(self) -> Worker | None:
        """Return the idle worker used last, whose memory is warm, or one that is starting."""
        if self._idle:
            return self._idle.pop()
        return self._starting.pop(0) if self._starting else None

    def put(self, worker: Worker, loop: asyncio.AbstractEventLoop) -> None:
        """Add a worker without a call, or note that a starting one is ready now."""
        if not worker.is_ready:
            self._starting.append(worker)
            return
        worker.idle_at = loop.time()
        if worker in self._starting:
            self._starting.remove(worker)
            self._idle.insert(0, worker)
        else:
            self._idle.append(worker)
        if len(self._idle) > 1 and self._timer is None:
            self._timer = loop.call_later(self._idle_timeout, self._trim, loop)

    def withdraw(self, worker: Worker) -> None:
        """Remove a worker, if it is here."""
        for workers in (self._starting, self._idle):
            if worker in workers:
                workers.remove(worker)

    def close(self) -> None:
        """End no more workers on time."""
        if self._timer is not None:
            self._timer.cancel()

    def _trim(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        while len(self._idle) > 1:
            wait = self._idle[0].idle_at + self._idle_timeout - loop.time()
            if wait > 0:
                self._timer = loop.call_later(wait, self._trim, loop)
                return
            self._end(self._idle[0])
