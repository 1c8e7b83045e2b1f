"""Calls a handler of the user's, whatever kind of function it is, without blocking the loop.

A handler may wait for a person for minutes. A coroutine function does so on the loop; any other
function gets a thread of its own, which is a daemon: a question that nobody answers does not keep
the program from ending.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import copy_context
from typing import Final, TypeVar, TypeVarTuple

__all__ = ["FAILURES", "called"]

# What code of the user's may raise at an edge that must not fail. SystemExit would end the loop.
FAILURES: Final = (Exception, SystemExit)

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


async def called(handler: Callable[[*Ts], T | Awaitable[T]], *args: *Ts) -> T:
    """Call a handler and give what it returns. Raises what it raises.

    Cancelled, it cancels a coroutine; a thread cannot be stopped, and what it returns later is
    dropped.
    """
    # An object with an `async def __call__` is no coroutine function, but its method is.
    if inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(type(handler).__call__):
        found: T | Awaitable[T] = handler(*args)
    else:
        found = await _in_thread(handler, *args)
    if inspect.isawaitable(found):
        return await found
    return found


async def _in_thread(function: Callable[[*Ts], T], *args: *Ts) -> T:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = copy_context()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return  # nobody waits any more
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]  # it is None only where T is

    def run() -> None:
        result: T | None = None
        failure: BaseException | None = None
        try:
            result = context.run(function, *args)
        except StopIteration:
            # A future cannot hold one.
            failure = RuntimeError("the handler raised StopIteration")
        except BaseException as error:  # the boundary: it belongs to who called the handler
            failure = error
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=run, name="raxol-mcp handler", daemon=True).start()
    return await future
