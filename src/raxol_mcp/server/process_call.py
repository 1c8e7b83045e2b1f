"""One call in a worker process: what the submitter holds, and the ways it can end.

Moves nothing; `processes` does.
"""

from __future__ import annotations

import signal
from types import ModuleType
from typing import TYPE_CHECKING

from raxol_mcp.errors import ConfigurationError, RaxolError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

__all__ = ["Crashed", "Killed", "ProcessCall", "RemoteFailure", "ended_by", "target_of"]


class Killed(RaxolError):
    """The call was ended by `kill`, and nothing of it runs any more."""


class Crashed(RaxolError):
    """The process ended before the function did: it crashed, or it was killed from outside.

    `returncode` is as `subprocess` gives it, negative for a signal; None when no one could tell.
    """

    def __init__(self, reason: str, returncode: int | None = None) -> None:
        super().__init__(reason)
        self.returncode = returncode


class RemoteFailure(RaxolError):
    """The function raised, or its result could not be sent.

    `type_name` is the exception's, or "ResultTooLarge" or "UnencodableResult". `traceback` is text
    for the server's own log: it may hold secrets.
    """

    def __init__(self, type_name: str, traceback: str) -> None:
        super().__init__(type_name)
        self.type_name = type_name
        self.traceback = traceback


class ProcessCall:
    """One call in one worker. `future` ends exactly once.

    It has the function's value (as MessagePack returns it: tuples are lists, dataclasses dicts) or
    raises RemoteFailure, ToolError, Crashed or Killed. Cancelling it kills as well, but then
    nobody is told when the process is gone: call `kill` and wait for Killed to keep a slot right.
    """

    __slots__ = ("_kill", "future", "is_killed", "target")

    def __init__(
        self, target: str, future: asyncio.Future[object], kill: Callable[[ProcessCall], None]
    ) -> None:
        self.target = target
        self.future = future
        self.is_killed = False
        self._kill = kill

    def kill(self) -> None:
        """End it now, by SIGKILL to its process group. Idempotent, harmless when it has ended.

        `future` raises Killed when the processes are gone; a value on its way then is dropped.
        """
        self._kill(self)


def target_of(function: object) -> str:
    """Return the name, "module:qualname", under which a process finds `function`.

    Raises ConfigurationError for what has no such name: a lambda, a function defined in another
    one, a bound method, a partial, an instance. Whether the name leads back to it shows later.
    """
    module = getattr(function, "__module__", None)
    qualname = getattr(function, "__qualname__", None)
    owner = getattr(function, "__self__", None)
    if not isinstance(module, str) or not isinstance(qualname, str):
        problem = "has no name"
    elif "<" in qualname:
        problem = "is not defined at the top level of its module"
    elif owner is not None and not isinstance(owner, type | ModuleType):
        problem = "is bound to an object, which would have to travel along"
    else:
        return f"{module}:{qualname}"
    raise ConfigurationError(f"{function!r} cannot run in a process: it {problem}")


def ended_by(returncode: int) -> str:
    """Say in words how a process ended."""
    if returncode >= 0:
        return f"its process ended with status {returncode}"
    try:
        return f"its process was ended by {signal.Signals(-returncode).name}"
    except ValueError:  # a real-time signal
        return f"its process was ended by signal {-returncode}"
