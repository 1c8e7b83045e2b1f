"""A client's link to a server that is a child of this process: a message is a line.

Moves bytes and owns the child; decides nothing about messages and knows no call that waits. MCP
2026-07-28 basic/transports/stdio. The rules of the house for it:

* The command is executed as it is given, argument by argument. No shell sees it.
* stdout is for messages. What else a server prints there is counted and dropped. stderr is read
  always, kept a little (`stderr_tail`), and never a failure.
* A server that stops reading delays no loop: its messages wait, within a bound, and after
  `stall_timeout` without any progress it is given up.
* What a server wrote before it ended is delivered before its end is reported.
* Whatever ends a link, the whole process group is gone a bounded time later, and everything that
  belonged to it is released (`raxol_mcp.transports.process_tree`).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from raxol_mcp.errors import Reason
from raxol_mcp.transports.child_connection import ChildConnection, Limits
from raxol_mcp.transports.child_errors import ErrorTail, shown
from raxol_mcp.transports.child_process import Program, start
from raxol_mcp.transports.link import LinkFailed
from raxol_mcp.wire.jsonrpc import MAX_DEPTH

if TYPE_CHECKING:
    from raxol_mcp.transports.link import Dialect, LinkPort
    from raxol_mcp.wire.headers import Mirror
    from raxol_mcp.wire.jsonrpc import Outgoing
    from raxol_mcp.wire.meta import EraName

__all__ = ["MAX_LINE_BYTES", "SubprocessDialer", "SubprocessLink"]

MAX_LINE_BYTES: Final = 16 * 1024 * 1024


class SubprocessDialer:
    """How to start one server.

    `command` is looked up on the PATH of the child, never in the working directory; with a slash
    it is a path, relative to `cwd`. `args` are its arguments, byte for byte. The child gets this
    process's environment without our own secrets and `drop_env`, and `env` on top; with
    `inherit_env=False` only what a program needs to run, and `env`
    (`raxol_mcp.transports.child_environment`). `cwd` is where it runs, by default where we do.

    A line longer than `max_line_bytes` ends the link, a message nested deeper than `max_depth`
    fails its call. `end_wait` is how long a server has to end after its input did, `term_wait`
    how long after SIGTERM, `stall_timeout` how long it may read nothing while something waits
    for it; all in seconds. A server that reads nothing while it works is stalled, too, once the
    pipe is full: calls that may take longer need a longer `stall_timeout`.

    `mask` is applied to what the server prints before it is shown or logged anywhere: servers
    print what they were started with.
    """

    kind: Final = "stdio"
    closing_cancels: Final = False

    def __init__(
        self,
        command: str,
        args: Sequence[str] = (),
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        inherit_env: bool = True,
        drop_env: Sequence[str] = (),
        max_line_bytes: int = MAX_LINE_BYTES,
        max_depth: int = MAX_DEPTH,
        end_wait: float = 2.0,
        term_wait: float = 2.0,
        stall_timeout: float = 60.0,
        mask: Callable[[str], str] = str,
    ) -> None:
        self._program = Program(
            command=command,
            args=tuple(args),
            env=dict(env or {}),
            cwd=cwd,
            inherit_env=inherit_env,
            drop_env=frozenset(drop_env),
        )
        self._limits = Limits(
            max_line_bytes=max_line_bytes,
            max_depth=max_depth,
            end_wait=end_wait,
            term_wait=term_wait,
            stall_timeout=stall_timeout,
        )
        self._name = shown(os.path.basename(command), limit=80)
        self._mask = mask
        self._tail = self._tail_before = ErrorTail(self._name, mask)

    def __repr__(self) -> str:
        program = self._program
        # Arguments and values may be secrets; their number and names help all the same.
        return (
            f"SubprocessDialer({program.command!r}, {len(program.args)} arguments, "
            f"env={sorted(program.env)!r}, cwd={program.cwd!r})"
        )

    @property
    def verdict_key(self) -> Hashable:
        """What the verdict about the server's era is remembered by, in this process."""
        return ("stdio", self._program.command, self._program.args, self._program.cwd)

    def link(self, port: LinkPort, dialect: Dialect) -> SubprocessLink:
        """Make the link of one attempt. Does nothing yet, and raises nothing."""
        self._tail_before, self._tail = self._tail, ErrorTail(self._name, self._mask)
        return SubprocessLink(self._program, self._limits, self._name, port, self._tail)

    def stderr_tail(self) -> str:
        """Return the end of what the server wrote to stderr, escaped; it stays after the exit.

        As long as a server that was started again has said nothing, that of the one before it.
        """
        return self._tail.text() or self._tail_before.text()


class SubprocessLink:
    """One start of the server. Before `open` and after a failed one there is nothing."""

    def __init__(
        self, program: Program, limits: Limits, name: str, port: LinkPort, tail: ErrorTail
    ) -> None:
        self._program = program
        self._limits = limits
        self._name = name
        self._port = port
        self._tail = tail
        self._opened = False
        self._closed = False
        self._connection: ChildConnection | None = None

    async def open(self) -> None:
        """Start the server. Raises `LinkFailed`. Waits for nothing, so nothing is cancelled."""
        if self._opened or self._closed:
            raise LinkFailed(Reason("stopped"))
        self._opened = True
        connection = ChildConnection(
            start(self._program, os.environ),
            self._limits,
            asyncio.get_running_loop(),
            self._port,
            name=self._name,
            tail=self._tail,
        )
        connection.begin()
        self._connection = connection

    def send(self, message: Outgoing, key: int, *, mirrors: Sequence[Mirror] = ()) -> None:
        """Send one message. Never waits and never reports from inside the call."""
        if self._connection is not None:
            self._connection.send(message, key)
        elif not self._closed:
            asyncio.get_running_loop().call_soon(self._refuse, key)

    def _refuse(self, key: int) -> None:
        if not self._closed:
            self._port.failed(key, Reason("not_connected"))

    def agreed(self, era: EraName, version: str) -> None:
        """Nothing here depends on what was negotiated."""

    def abort(self, key: int) -> None:
        """Report nothing more of `key`. The server is told by a message, as any other thing."""
        if self._connection is not None:
            self._connection.abort(key)

    async def close(self) -> None:
        """End the server and all it started; at most as long as the waits together, and a little.

        Cancelled, it goes on in a task of its own. When that is cancelled too, by the end of the
        loop, everything is killed at once.
        """
        self._closed = True
        if self._connection is not None:
            await self._connection.close()

    def stderr_tail(self) -> str:
        """Return the end of what this start of the server wrote to stderr, escaped."""
        return self._tail.text()
