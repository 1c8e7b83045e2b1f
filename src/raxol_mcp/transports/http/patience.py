"""The waits of single requests, of which nearly every one is over before it counts.

Beginning one and ending it costs a dict operation each: no clock is read and no timer set. One
timer looks at all that wait, every `LOOK_EVERY` seconds while there are any, and counts how often
it has found each. So a wait ends up to that much later than it says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import ceil
from typing import Final

__all__ = ["LOOK_EVERY", "Patience", "Waiting", "looks"]

LOOK_EVERY: Final = 0.05


def looks(seconds: float) -> int:
    """Return how often a wait of so many seconds is found at least before it is over."""
    return ceil(seconds / LOOK_EVERY) + 1  # the first look may come at once


class Waiting:
    """What may wait, for one thing at a time, in the task `task`."""

    __slots__ = ("_expired", "left", "task")

    def __init__(self) -> None:
        self.left = 0
        self.task: asyncio.Task[object] | None = None
        self._expired = False

    def expire(self) -> None:
        """Cancel the task; `expired` tells it that it was us."""
        assert self.task is not None, "whoever waits in a task names it"
        self._expired = True
        self.task.cancel()

    def expired(self) -> bool:
        """Say whether a cancellation was ours alone; then it goes no further."""
        ours, self._expired = self._expired, False
        return ours and self.task is not None and self.task.uncancel() == 0


class Patience:
    """All requests that wait now."""

    __slots__ = ("_loop", "_timer", "_waiting")

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        # What is due is kept here and not in `Waiting`, whose own method it often is: with such a
        # cycle every request would have to wait for the garbage collector.
        self._waiting: dict[Waiting, Callable[[], None]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, waiting: Waiting, looks: int, due: Callable[[], None]) -> None:
        """Call `due` once `waiting` was found `looks` times, unless it ends or begins anew."""
        waiting.left = looks
        self._waiting[waiting] = due
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LOOK_EVERY, self._look)

    def current_task(self) -> asyncio.Task[object]:
        """Return the task that runs now. The loop is remembered: to ask for it is a system call."""
        task = None if self._loop is None else asyncio.current_task(self._loop)
        if task is None:  # the first time, or another loop runs us now
            self._loop = asyncio.get_running_loop()
            task = asyncio.current_task(self._loop)
            assert task is not None, "a request runs in a task"
        return task

    def end(self, waiting: Waiting) -> None:
        """It waits no more."""
        self._waiting.pop(waiting, None)

    def close(self) -> None:
        """Look no more."""
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        for waiting in list(self._waiting):
            waiting.left -= 1
            if waiting.left <= 0 and waiting in self._waiting:  # none before it has ended it
                due = self._waiting.pop(waiting)
                due()
        self._timer = None
        if self._waiting:
            self._timer = asyncio.get_running_loop().call_later(LOOK_EVERY, self._look)
