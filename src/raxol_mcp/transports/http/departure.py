"""Waits until the client of one request leaves, or until there is something else to do.

A task and nothing beside it: a thousand idle streams are a thousand of these.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from raxol_mcp.transports.http.asgi import Receive

__all__ = ["Departure"]


class Departure:
    """The wait for `http.disconnect`, in the task of the request. `wake` ends it early."""

    __slots__ = ("_task", "_woken")

    def __init__(self) -> None:
        self._task: asyncio.Task[object] | None = None
        self._woken = False

    async def left(self, receive: Receive) -> bool:
        """Return True when the client has left, False when woken first (or before the call)."""
        if self._take_wake():
            return False
        task = self._task = asyncio.current_task()
        assert task is not None, "a coroutine runs in a task"
        before = task.cancelling()
        try:
            while (await receive())["type"] != "http.disconnect":
                pass
        except asyncio.CancelledError:
            # Ours to swallow only if nobody else cancelled as well.
            if not self._take_wake() or task.uncancel() > before:
                raise
            return False
        finally:
            self._task = None
        return True

    def wake(self) -> None:
        """Let `left` return False, now or when it is called next. Again: nothing.

        By a cancellation of the wait, which every server takes; it goes no further than `left`.
        """
        if not self._woken:
            self._woken = True
            if self._task is not None:
                self._task.cancel()

    def _take_wake(self) -> bool:
        woken, self._woken = self._woken, False
        return woken
