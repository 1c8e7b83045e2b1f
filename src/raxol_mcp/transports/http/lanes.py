"""Many waits of one length behind one timer: adding and removing one costs a dict operation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

__all__ = ["Lane"]

K = TypeVar("K", bound=Hashable)


class Lane(Generic[K]):
    """Calls `expired(key)` once a key has been in here for `duration` seconds.

    All waits have the same length, so the one that was added first is due first.
    """

    __slots__ = ("_due_at", "_expired", "_loop", "_timer", "duration")

    def __init__(self, duration: float, expired: Callable[[K], None]) -> None:
        self.duration = duration
        self._expired = expired
        self._due_at: dict[K, float] = {}
        self._loop: asyncio.AbstractEventLoop  # of the timer
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._due_at)

    def __iter__(self) -> Iterator[K]:
        """Give what waits, the one that was added first at first."""
        return iter(self._due_at)

    def add(self, key: K) -> None:
        """Begin to wait for `key`, or begin anew."""
        self._due_at.pop(key, None)
        if self._timer is not None:
            self._due_at[key] = self._loop.time() + self.duration
            return
        loop = self._loop = asyncio.get_running_loop()
        due_at = self._due_at[key] = loop.time() + self.duration
        self._timer = loop.call_at(due_at, self._fire)

    def remove(self, key: K) -> None:
        """Forget `key`. The timer is left alone: when it fires too early, it looks again."""
        self._due_at.pop(key, None)

    def close(self) -> None:
        """Forget everything, the timer too."""
        self._due_at.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fire(self) -> None:
        assert self._timer is not None, "it is the timer that calls"
        loop = asyncio.get_running_loop()
        # A clock may fire early by its resolution: what the timer was set for is due.
        now = max(loop.time(), self._timer.when())
        while self._due_at:
            key, due_at = next(iter(self._due_at.items()))
            if due_at > now:
                break
            del self._due_at[key]
            self._expired(key)
        self._timer = None
        if self._due_at:
            self._timer = loop.call_at(next(iter(self._due_at.values())), self._fire)
