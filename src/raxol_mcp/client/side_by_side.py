"""Does one thing for each of several servers at once, so that none of them matters to another.

Knows nothing of clients. Whatever one of them does, raise, exit, be cancelled from inside, or hang
and not even be moved by its cancellation, the others end as they would without it, and the wait
ends in time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeVar

from raxol_mcp.client.handler_calls import FAILURES
from raxol_mcp.errors import RaxolError, Reason, TimedOut

__all__ = ["Crashed", "side_by_side"]

T = TypeVar("T")

# How long what was cancelled may take to end before nobody waits for it any more.
_GRACE: Final = 1.0
_logger = logging.getLogger("raxol_mcp.client")

# Tasks that would not end. Held here because the loop holds them weakly, and a task that is
# collected while it waits complains.
_left_behind: set[asyncio.Task[object]] = set()


class Crashed(RaxolError):
    """Something of this side failed in a way it should not; the log has the traceback."""

    tag = "task_down"

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.reason = Reason(self.tag, what)


async def side_by_side(
    work: Mapping[str, Callable[[], Awaitable[T]]], *, patience: float
) -> dict[str, T | RaxolError]:
    """Run all of `work` together; what each returned, or why it did not, by its key.

    What is not done after `patience` seconds is cancelled, and is `TimedOut`. Raises nothing but
    its own cancellation, which cancels all.
    """
    tasks = {key: asyncio.create_task(_guarded(job), name=key) for key, job in work.items()}
    try:
        if tasks:
            await asyncio.wait(tasks.values(), timeout=patience)
        late = {key for key, task in tasks.items() if not task.done()}
    finally:
        await _ended([task for task in tasks.values() if not task.done()])
    return {
        key: TimedOut(f"not done within {patience} s") if key in late else _outcome(task)
        for key, task in tasks.items()
    }


async def _guarded(job: Callable[[], Awaitable[T]]) -> T | RaxolError:
    try:
        return await job()
    except RaxolError as error:
        return error
    except FAILURES as error:
        _logger.exception("a client failed in a way it should not")
        return Crashed(type(error).__name__)


def _outcome(task: asyncio.Task[T | RaxolError]) -> T | RaxolError:
    # Cancelled, though nobody here did: something inside cancelled its own task.
    return Crashed("CancelledError") if task.cancelled() else task.result()


async def _ended(tasks: list[asyncio.Task[T]]) -> None:
    if not tasks:
        return
    for task in tasks:
        task.cancel()
    _, still = await asyncio.wait(tasks, timeout=_GRACE)
    for task in still:
        _left_behind.add(task)
        task.add_done_callback(_left_behind.discard)
