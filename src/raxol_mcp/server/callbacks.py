"""Runs one callback: where (task, thread, killable process), behind its circuit breaker.

Whatever a callback does stays here: exceptions become a `CallbackFailed` that names their type
and nothing else, because a message may hold secrets; the log has the rest.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Mapping
from types import CoroutineType
from typing import TYPE_CHECKING, Final

from raxol_mcp.core.calls import CallState
from raxol_mcp.core.payloads import CRASHED
from raxol_mcp.errors import RaxolError, ToolError

if TYPE_CHECKING:
    from raxol_mcp.core.breaker import Breakers
    from raxol_mcp.core.calls import Call
    from raxol_mcp.server.definitions import Fault
    from raxol_mcp.server.processes import Processes
    from raxol_mcp.server.runtime import ServerRuntime

__all__ = ["CallbackFailed", "Callbacks", "CircuitOpen", "is_async"]

_logger = logging.getLogger("raxol_mcp.callbacks")
PROCESS_ENTRY: Final = "raxol_mcp.server.process_entry:call"


class CallbackFailed(RaxolError):
    """A callback raised. `type_name` is all the caller may learn; `told` is what it was told."""

    def __init__(self, type_name: str, told: str | None = None) -> None:
        super().__init__(type_name)
        self.type_name = type_name
        self.told = told


class CircuitOpen(RaxolError):
    """Too many failures in a row: the callback is not run for a while."""


def is_async(callback: Callable[..., object]) -> bool:
    """Say whether calling `callback` gives something to await."""
    if inspect.iscoroutinefunction(callback):
        return True
    call = getattr(type(callback), "__call__", None)  # noqa: B004  # the method, not callability
    return inspect.iscoroutinefunction(call)


class Callbacks:
    """Runs callbacks for the workers of one server."""

    def __init__(
        self,
        runtime: ServerRuntime,
        breakers: Breakers,
        processes: Callable[[], Processes],
    ) -> None:
        self._runtime = runtime
        self._breakers = breakers
        self._processes = processes

    async def run(
        self,
        key: tuple[str, str],
        call: Call,
        fault: Fault | None,
        work: Callable[[], object],
        *,
        in_thread: bool,
    ) -> object:
        """Run `work` behind the breaker of `key` and return its value.

        `work()` returns a value or an awaitable; with `in_thread` it blocks and runs in a thread.
        Raises CallbackFailed, CircuitOpen, and CancelledError when this worker was stopped.
        """
        if call.state is CallState.CLOSED:
            # Its authorizer swallowed the cancellation: nobody wants this to run any more.
            raise asyncio.CancelledError
        breakers = self._breakers
        if breakers.failing and not breakers.admits(key, self._runtime.now(), call=call):
            raise CircuitOpen("circuit open")
        try:
            if in_thread:
                value = await self._runtime.in_thread(work)
            else:
                value = work()
            # What an `async def` gives is told at once; asking for anything awaitable takes longer.
            if isinstance(value, CoroutineType) or inspect.isawaitable(value):
                value = await value
        except asyncio.CancelledError:
            task = asyncio.current_task()
            breakers.abandoned(key, call=call)
            if task is not None and not task.cancelling():
                # Nobody stopped this worker: the callback came up with it by itself.
                raise self._failed(key, call, fault, RuntimeError("cancelled itself")) from None
            raise
        except GeneratorExit:
            breakers.abandoned(key, call=call)
            raise
        except BaseException as error:  # the boundary: SystemExit of a callback ends its call alone
            raise self._failed(key, call, fault, error) from error
        if breakers.failing:
            breakers.succeeded(key)
        return value

    async def run_in_process(
        self,
        key: tuple[str, str],
        call: Call,
        fault: Fault | None,
        target: str,
        arguments: Mapping[str, object],
    ) -> object:
        """Run the function named `target` in a process that is killed when the call is stopped."""
        from raxol_mcp.server.process_call import Killed

        processes = self._processes()

        async def work() -> object:
            running = processes.run(PROCESS_ENTRY, [target, dict(arguments)])
            try:
                return await self._runtime.until_ended(running.future, running.kill)
            except Killed:
                raise asyncio.CancelledError from None

        return await self.run(key, call, fault, work, in_thread=False)

    def _failed(
        self, key: tuple[str, str], call: Call, fault: Fault | None, error: BaseException
    ) -> CallbackFailed:
        from raxol_mcp.server.process_call import Crashed, RemoteFailure

        told = _told(error) if isinstance(error, ToolError) else None
        if self._is_fault(fault, error):
            self._breakers.failed(key, self._runtime.now(), call=call)
        else:
            # An answer: as good a sign of life as a result, but it must not hide earlier faults.
            self._breakers.abandoned(key, call=call)
        if told is not None:
            return CallbackFailed(type(error).__name__, told)
        if isinstance(error, RemoteFailure):
            _logger.error("%s %r raised in its process:\n%s", *key, error.traceback)
            return CallbackFailed(error.type_name)
        _logger.error("%s %r failed", *key, exc_info=error)
        if isinstance(error, Crashed):  # its process died: there is no exception to name
            return CallbackFailed(CRASHED, f'{{"error":"{CRASHED}"}}')
        return CallbackFailed(type(error).__name__)

    @staticmethod
    def _is_fault(fault: Fault | None, error: BaseException) -> bool:
        """Say whether the breaker counts this: a ToolError only if the classifier says so."""
        if not isinstance(error, Exception):
            return True  # SystemExit and the like count whatever the classifier would say
        if fault is None:
            return not isinstance(error, ToolError)
        try:
            return fault(error) is not False
        except (Exception, SystemExit):
            _logger.exception("the fault classifier failed")
            return True


def _told(error: ToolError) -> str | None:
    """Read what a tool says to its caller; None when its own `__str__` fails."""
    try:
        return str(error)
    except BaseException:  # the boundary, as above
        _logger.exception("the message of a %s could not be read", type(error).__name__)
        return None
