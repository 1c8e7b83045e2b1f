"""An asyncio event loop on virtual time: a 60 s timeout is tested in milliseconds.

Not a mock: the standard selector loop runs real callbacks, tasks, pipes and sockets. Only the
clock differs. When nothing is ready, time jumps to the next timer; it never passes otherwise.

* A hang is an error. When every task waits and no timer is set, nothing can ever happen, and
  `Deadlock` names the tasks that wait. It also ends a program whose timers never stop: time past
  `limit` counts as one.
* Work outside the loop (a thread, a child process) is invisible to it, so it would look like a
  deadlock, or time would jump past it. Inside `VirtualLoop.outside()` time stands still and the
  loop really waits. `asyncio.to_thread` and `run_in_executor` do this by themselves.

```python
async def waits() -> float:
    await asyncio.sleep(60.0)
    return asyncio.get_running_loop().time()


assert run_virtual(waits) == 60.0
```
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar, TypeVarTuple

if TYPE_CHECKING:
    from concurrent.futures import Executor

__all__ = ["Deadlock", "VirtualLoop", "run_virtual"]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Deadlock(RuntimeError):
    """Nothing can happen any more, or timers never end. The message lists the tasks that wait."""


class _VirtualSelector(selectors.DefaultSelector):
    """A selector that jumps over time instead of waiting for it. `now` is in virtual seconds."""

    def __init__(self, waiting: Callable[[], str], *, limit: float) -> None:
        super().__init__()
        self.now = 0.0
        self.outside = 0
        self._limit = limit
        self._waiting = waiting

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready now; when that is nothing, end the wait by moving `now`.

        Raises `Deadlock` when no wait could end, and past the limit.
        """
        # What really happened comes first: bytes that are there were there before the timer.
        events = super().select(0)
        if events or (timeout is not None and timeout <= 0):
            return events
        if self.outside:
            # Only a descriptor can end this wait: a thread that is done writes to the loop's
            # own pipe. Timers stand still meanwhile.
            return super().select(None)
        if timeout is None:
            raise Deadlock(
                f"deadlock at {self.now} s: every task waits and no timer is set: {self._waiting()}"
            )
        self.now += timeout
        if self.now > self._limit:
            raise Deadlock(f"timers still run after {self._limit} s: {self._waiting()}")
        return events


class VirtualLoop(asyncio.SelectorEventLoop):
    """A selector event loop whose `time()` starts at 0.0 and jumps from timer to timer.

    `limit` is the virtual time, in seconds, past which running timers count as a hang.
    """

    def __init__(self, *, limit: float = 100_000.0) -> None:
        self._clock = _VirtualSelector(self._waiting_tasks, limit=limit)
        super().__init__(self._clock)

    def time(self) -> float:
        """Return the virtual time in seconds since the loop was made."""
        return self._clock.now

    @contextmanager
    def outside(self) -> Iterator[None]:
        """Hold time still and really wait while something outside the loop works.

        For threads that come back by `call_soon_threadsafe` and for child processes. A wait that
        nothing ends is then a real hang.
        """
        self._clock.outside += 1
        try:
            yield
        finally:
            self._clock.outside -= 1

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Run `func` in a thread as every loop does; time stands still until it has returned."""
        future = super().run_in_executor(executor, func, *args)
        self._clock.outside += 1
        future.add_done_callback(self._came_back)
        return future

    async def shutdown_default_executor(
        self,
        timeout: float | None = None,  # noqa: ASYNC109  # the signature every loop has since 3.12
    ) -> None:
        """End the executor's threads; the wait for them is a real one. `timeout` is ignored."""
        with self.outside():
            await super().shutdown_default_executor()

    def _came_back(self, _future: object) -> None:
        self._clock.outside -= 1

    def _waiting_tasks(self) -> str:
        return ", ".join(sorted(map(_describe, asyncio.all_tasks(self)))) or "no task is left"


def run_virtual(function: Callable[[*Ts], Coroutine[object, object, T]], *args: *Ts) -> T:
    """Run `function(*args)` to its end on a new `VirtualLoop` and return what it returns.

    Leaves nothing running: tasks that are left are cancelled. Raises what `function` raises, and
    `Deadlock` when it can never end.
    """
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(function(*args))


def _describe(task: asyncio.Task[object]) -> str:
    frames = task.get_stack(limit=1)
    if not frames:
        return task.get_name()
    code = frames[-1].f_code
    return f"{task.get_name()} in {code.co_name} ({code.co_filename}:{frames[-1].f_lineno})"
