"""One peer over standard input and output: a message is a line (MCP 2026-07-28 stdio).

Moves bytes and owns the end of the connection; decides nothing about messages. The rules of the
house for it:

* The reader never waits for user code, and hands over a few lines per turn of the loop, so that
  the work they start gets on before more of it arrives.
* One writer. All that is put in one turn leaves in one write, at once; nothing is buffered
  beyond that, and a message is never split by another.
* A peer that does not read is not read either (`raxol_mcp.transports.outbox`), and after
  `write_timeout` without any progress it is cut off.
* Every wait has an end. At the end of input the answers still owed are given `drain_timeout`; a
  closed output, a signal and an order of the server end it at once.

How it ends, always in this order: nothing more is read, `gone` is reported, what is queued gets
a bounded last chance, `stop`, and the descriptors are put back.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections import deque
from collections.abc import Hashable
from functools import partial
from typing import TYPE_CHECKING, Final

from raxol_mcp.core.peers import ConnectionFacts
from raxol_mcp.errors import INTERNAL_ERROR, INVALID_REQUEST, ConfigurationError
from raxol_mcp.transports.descriptors import Claim, Output
from raxol_mcp.transports.outbox import MAX_QUEUED_BYTES, MAX_QUEUED_MESSAGES, Outbox
from raxol_mcp.transports.pipes import Ended, LineReader, LineWriter
from raxol_mcp.transports.signals import EXIT_TIMEOUT, stop_signals
from raxol_mcp.wire.framing import Lines
from raxol_mcp.wire.jsonrpc import Failure, Invalid, Request, decode

if TYPE_CHECKING:
    from raxol_mcp.transports.base import ServerPort
    from raxol_mcp.wire.framing import TooLong
    from raxol_mcp.wire.jsonrpc import Incoming

__all__ = ["Ended", "serve_stdio"]

logger = logging.getLogger("raxol_mcp.stdio")

# How often an ended input looks whether a call ended without an answer, in seconds.
_DRAIN_CHECK: Final = 0.05
# The last chance of queued messages when the end came at once, in seconds.
_LAST_FLUSH: Final = 1.0

# MCP 2025-11-25 basic/lifecycle: initialization is the first interaction on a pipe.
_FACTS: Final = ConnectionFacts(transport="stdio", greeting_required=True)
_SIGNALLED: Final = {signal.SIGTERM: Ended.TERMINATED, signal.SIGINT: Ended.INTERRUPTED}
_PEER_TOO_SLOW: Final = frozenset({Ended.OUTPUT_STALLED, Ended.OUTBOX_OVERFLOW})
# After any other end nobody reads.
_STILL_READ: Final = frozenset(
    {Ended.INPUT_ENDED, Ended.DISCONNECTED, Ended.TERMINATED, Ended.INTERRUPTED}
)


async def serve_stdio(
    server: ServerPort,
    *,
    stdin_fd: int = 0,
    stdout_fd: int = 1,
    connection: Hashable | None = None,
    drain_timeout: float = 5.0,
    write_timeout: float = 30.0,
    exit_timeout: float = EXIT_TIMEOUT,
    max_queued_messages: int = MAX_QUEUED_MESSAGES,
    max_queued_bytes: int = MAX_QUEUED_BYTES,
) -> Ended:
    """Start `server`, serve the one peer of this process until either side ends, and stop it.

    Descriptors 0 and 1 are kept for the peer alone until this returns (see `Claim`); others may
    be pipes, sockets, files or terminals too, and stay open. `connection` is the id to ask the
    server for. Afterwards no task, timer, handler or descriptor of this function is left.

    What user code starts beside a call is its own. A task that swallows its cancellation keeps
    `asyncio.run` from returning, as in every asyncio program, and a thread that is no daemon
    keeps the process; the command `raxol-mcp serve` ends all the same. A process that a tool
    forks has nothing of the peer, its output goes to stderr; one that comes back to the event
    loop is ended, so leave it with `os._exit`.

    Returns why it ended; what exit code that deserves is the caller's choice. Raises
    `ConfigurationError` when a descriptor is not open, on Windows, and what `start` raises.
    """
    if sys.platform == "win32":
        raise ConfigurationError("stdio is not supported on Windows yet: serve HTTP instead")
    claim = Claim(stdin_fd, stdout_fd)
    try:
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[Ended] = loop.create_future()
        claim.left = partial(_end_child, loop)
        with stop_signals(
            loop,
            lambda number: _end(ended, _SIGNALLED[number]),
            at_exit=claim.restore_blocking,
            exit_timeout=exit_timeout,
        ):
            if not await _started(server, ended):
                return ended.result()
            try:
                pipe = _Connection(
                    server,
                    claim,
                    ended,
                    drain_timeout=drain_timeout,
                    write_timeout=write_timeout,
                    outbox=Outbox(max_messages=max_queued_messages, max_bytes=max_queued_bytes),
                )
                return await pipe.serve(connection)
            finally:
                await server.stop()
    finally:
        claim.restore()


def _end(ended: asyncio.Future[Ended], reason: Ended) -> None:
    """End serving for `reason`, unless it has ended already: the first reason stays."""
    if not ended.done():
        ended.set_result(reason)


def _end_child(loop: asyncio.AbstractEventLoop) -> None:
    """See to it that this process, forked off in `loop`, ends when its code returns there.

    Before any other callback, of which each would be run twice, and before it waits: what it
    would wait on is its parent's, and parent and child would take events from each other.
    """

    def ends() -> None:
        logger.warning("a forked process came back to the server and is ended: use os._exit")
        os._exit(0)

    ready: deque[asyncio.Handle] | None = getattr(loop, "_ready", None)
    if ready is None:  # not one of asyncio's own loops
        loop.call_soon(ends)
    else:
        ready.appendleft(asyncio.Handle(ends, (), loop))


async def _started(server: ServerPort, ended: asyncio.Future[Ended]) -> bool:
    """Start the server; False when serving had to end first, which cancels the start."""
    task = asyncio.current_task()
    assert task is not None, "a coroutine runs in a task"
    cancelled_before = task.cancelling()
    starting = True

    def interrupts(_ended: asyncio.Future[Ended]) -> None:
        if starting:
            task.cancel()

    ended.add_done_callback(interrupts)
    try:
        await server.start()
    except asyncio.CancelledError:
        # Ours to swallow only if nobody else cancelled as well.
        if ended.done() and task.uncancel() <= cancelled_before:
            return False
        raise
    finally:
        starting = False
    return True


class _Connection:
    """The reader, the writer and the port, and the one place where their connection ends."""

    def __init__(
        self,
        server: ServerPort,
        claim: Claim,
        ended: asyncio.Future[Ended],
        *,
        outbox: Outbox[bytes],
        drain_timeout: float,
        write_timeout: float,
    ) -> None:
        self._loop = ended.get_loop()
        self._server = server
        self._ended = ended
        self._outbox = outbox
        self._max_depth = server.max_depth
        self._id: Hashable = None
        self._drain_timeout = drain_timeout
        self._drained_by: float | None = None  # loop time; set once the input has ended
        self._drain_check: asyncio.Handle | None = None
        self._writer = LineWriter(
            self._loop,
            Output(claim.stdout_fd),
            outbox,
            write_timeout=write_timeout,
            end=self._end,
            progressed=self._progressed,
        )
        self._reader = LineReader(
            self._loop,
            claim.stdin_fd,
            Lines(server.max_message_bytes),
            outbox,
            receive=self._received,
            at_end=self._input_ended,
        )

    async def serve(self, connection: Hashable | None) -> Ended:
        """Serve until `ended` is decided, then end everything in order."""
        try:
            self._id = self._server.open(self._writer, _FACTS, connection)
            try:
                self._writer.watch()
                self._reader.watch()
                reason = await self._ended
            finally:
                self._reader.stop()
                self._writer.shut()
                if self._drain_check is not None:
                    self._drain_check.cancel()
                self._server.gone(self._id)
            level = logging.WARNING if reason in _PEER_TOO_SLOW else logging.DEBUG
            logger.log(level, "connection %r ended: %s", self._id, reason.value)
            if reason in _STILL_READ:
                await self._writer.finish(self._last_flush())
            return reason
        finally:
            self._writer.close_now()

    def _last_flush(self) -> float:
        if self._drained_by is None:
            return _LAST_FLUSH
        return max(_LAST_FLUSH, self._drained_by - self._loop.time())

    def _end(self, reason: Ended) -> None:
        self._reader.stop()
        _end(self._ended, reason)

    def _received(self, line: bytes | TooLong) -> None:
        """Hand one line over. A bug behind the port costs that message, not the connection."""
        message: Incoming
        if isinstance(line, bytes):
            message = decode(line, max_depth=self._max_depth)
        else:
            limit = self._server.max_message_bytes
            text = f"Message too long: at most {limit} bytes are accepted"
            message = Invalid(Failure(None, INVALID_REQUEST, text))
        try:
            self._server.receive(self._id, message)
        except Exception:
            logger.exception("connection %r: a message could not be handled", self._id)
            if isinstance(message, Request):
                self._writer.put(Failure(message.id, INTERNAL_ERROR, "Internal error"))

    def _progressed(self) -> None:
        if self._outbox.drained:
            self._reader.resume()
        if self._drained_by is not None and self._writer.empty:
            self._check_drained_soon(0.0)

    def _input_ended(self) -> None:
        self._drained_by = self._loop.time() + self._drain_timeout
        self._check_drained_soon(0.0)
        self._server.input_ended(self._id)

    def _check_drained_soon(self, delay: float) -> None:
        if self._drain_check is not None:
            self._drain_check.cancel()
        if not self._ended.done():
            self._drain_check = self._loop.call_later(delay, self._check_drained)

    def _check_drained(self) -> None:
        """End when nothing is owed any more, or nothing may be waited for any more."""
        assert self._drained_by is not None, "checked only once the input has ended"
        left = self._drained_by - self._loop.time()
        # A call that ends without an answer writes nothing, so nothing else would tell.
        self._check_drained_soon(min(left, _DRAIN_CHECK))
        if left <= 0 or self._server.outstanding(self._id) == 0:
            self._end(Ended.INPUT_ENDED)
