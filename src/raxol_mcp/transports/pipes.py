"""Lines out of one descriptor and into another, as callbacks of the event loop.

`LineReader` and `LineWriter` share an outbox: that is all they know of each other. Neither knows
what a connection is; `raxol_mcp.transports.stdio` puts them together. Both work on bytes and
never wait, and neither leaves a callback behind after `stop` or `close_now`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import stat
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol

from raxol_mcp.core.subscriptions import only_a_hint
from raxol_mcp.errors import INTERNAL_ERROR
from raxol_mcp.transports.outbox import Admission, Outbox
from raxol_mcp.wire.jsonrpc import Failure, Notification, Response, encode

if TYPE_CHECKING:
    from raxol_mcp.transports.descriptors import Output
    from raxol_mcp.wire.framing import Lines, TooLong
    from raxol_mcp.wire.jsonrpc import Outgoing, RequestId

__all__ = ["Backlog", "Ended", "LineReader", "LineWriter"]

logger = logging.getLogger("raxol_mcp.stdio")

# What a pipe holds on Linux: a larger read would find nothing more.
_READ_BYTES: Final = 64 * 1024
# Small messages are joined up to this much for one write; a larger one is written uncopied.
_BATCH_BYTES: Final = 64 * 1024
# A tool that never waits takes one turn to run and one to report its end. Eight lines per two
# turns keep half of a default share of slots (16) free, so a burst of quick calls in one write
# is not refused as busy merely because of how it was cut into turns.
_LINES_A_TURN: Final = 8
_OVERFLOW: Final = Admission.OVERFLOW  # found once: in Python 3.11 that takes as long as a call


class Ended(Enum):
    """Why a connection over pipes ended."""

    INPUT_ENDED = "the peer closed our input"
    OUTPUT_CLOSED = "the peer closed our output"
    OUTPUT_STALLED = "the peer reads nothing"
    OUTBOX_OVERFLOW = "the peer lets broadcasts pile up"
    DISCONNECTED = "the server closed it"
    TERMINATED = "SIGTERM"
    INTERRUPTED = "SIGINT"


class Backlog(Protocol):
    """What a reader has to wait for: an `Outbox`, or a part of one."""

    @property
    def over(self) -> bool:
        """Whether so much waits that nothing more may come in."""


class LineReader:
    """Read `fd`, hand every line to `receive`, and call `at_end` once after the last.

    Hands over a few lines per turn of the loop and reads no more before those are gone. While
    `outbox` is over its bound nothing is read or handed over: call `resume` when it has drained.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        fd: int,
        lines: Lines,
        outbox: Backlog,
        *,
        receive: Callable[[bytes | TooLong], None],
        at_end: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._fd = fd
        self._lines = lines
        self._outbox = outbox
        self._receive = receive
        self._at_end = at_end
        self._backlog: deque[bytes | TooLong] = deque()
        self._turn: asyncio.Handle | None = None
        self._watching = False
        self._held = False
        self._ended = False
        self._stopped = False
        # A file is always ready, which epoll refuses to say and kqueue says only before its end.
        self._always_ready = stat.S_ISREG(os.fstat(fd).st_mode)

    def watch(self) -> None:
        """Read as soon as there is something to read."""
        if self._watching:
            return
        self._watching = True
        if not self._always_ready:
            try:
                self._loop.add_reader(self._fd, self._readable)
            except PermissionError:  # epoll, of a device that is always ready, such as null
                self._always_ready = True
        if self._always_ready:
            self._turn = self._loop.call_soon(self._readable)

    def resume(self) -> None:
        """Go on after the outbox was over its bound. Hands nothing over before this returns."""
        if self._held and not self._stopped:
            self._held = False
            self._turn = self._loop.call_soon(self._deliver)

    def stop(self) -> None:
        """Read nothing more and hand nothing more over, for good."""
        self._stopped = True
        self._backlog.clear()
        self._unwatch()
        if self._turn is not None:
            self._turn.cancel()

    def _unwatch(self) -> None:
        if self._watching and not self._always_ready:
            self._loop.remove_reader(self._fd)
        self._watching = False

    def _readable(self) -> None:
        if self._always_ready:
            self._watching = False
        try:
            # One read for each wake-up finds something, so the descriptor need not be
            # non-blocking: that mode would be its other owners' too.
            chunk = os.read(self._fd, _READ_BYTES)
        except BlockingIOError:
            self.watch()
            return
        except OSError:  # a terminal that hung up, a connection that was reset
            chunk = b""
        if chunk:
            self._backlog.extend(self._lines.feed(chunk))
        else:
            self._ended = True
            self._unwatch()
            self._backlog.extend(self._lines.eof())
        self._deliver()

    def _deliver(self) -> None:
        backlog, outbox, receive = self._backlog, self._outbox, self._receive
        for _ in range(_LINES_A_TURN):
            if outbox.over or not backlog:
                break
            receive(backlog.popleft())
        if self._stopped:
            return
        if outbox.over:
            self._held = True
            self._unwatch()
        elif backlog:
            self._unwatch()
            self._turn = self._loop.call_soon(self._rest)
        elif self._ended:
            self._at_end()
        else:
            self.watch()

    def _rest(self) -> None:
        """Let one turn pass: what the last lines started runs in it, and reports in the next."""
        self._turn = self._loop.call_soon(self._deliver)


class LineWriter:
    """A `Sink` that writes lines to `output`: all that is put in one turn, in one write, at once.

    `written_bytes` counts what was written since the start, with the newlines. `end` is called
    with a reason when the connection has to end, perhaps more than once; `progressed` after every
    write. Neither may call the server: both also run inside `put`.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        output: Output,
        outbox: Outbox[bytes],
        *,
        write_timeout: float,
        end: Callable[[Ended], None],
        progressed: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._output = output
        self._outbox = outbox
        self._write_timeout = write_timeout
        self._end = end
        self._progressed = progressed
        self._pieces: list[bytes | memoryview] = []  # taken from the outbox, not yet written
        self._shut = False
        self._flush_due: asyncio.Handle | None = None
        self._watching = False  # for the peer to close its end
        self._waiting = False  # for room to write
        self._stall_due: asyncio.TimerHandle | None = None
        self._progress_at = 0.0
        self._finished: asyncio.Future[None] | None = None
        self.written_bytes = 0

    @property
    def empty(self) -> bool:
        """Whether everything that was put is written."""
        return not self._pieces and not self._outbox

    def watch(self) -> None:
        """End as soon as the peer closes its end, also while there is nothing to write."""
        if self._output.closes_visibly:
            self._watching = True
            self._loop.add_reader(self._output.fd, self._peer_closed)

    def put(
        self, message: Outgoing, *, about: RequestId | None = None, droppable: bool = False
    ) -> None:
        """Queue one message as one line; see `Sink.put`."""
        if self._shut:
            return
        try:
            line = encode(message)
        except Exception:
            logger.exception("a message could not be encoded")
            if not isinstance(message, Response | Failure):
                return
            # A bug of this side; whoever asked is answered all the same.
            line = encode(Failure(message.id, INTERNAL_ERROR, "Internal error"))
        hint: bytes | None = None
        if about is None:
            if not isinstance(message, Notification):
                about = message.id
            elif only_a_hint(message):
                hint = line
        self.put_line(line, about=about, droppable=droppable, hint=hint)

    def put_line(
        self,
        line: bytes,
        *,
        about: RequestId | None = None,
        droppable: bool = False,
        hint: bytes | None = None,
    ) -> None:
        """Queue what is encoded already; see `Outbox.put`. Nothing is queued after `shut`."""
        if self._shut:
            return
        admission = self._outbox.put(
            line, len(line) + 1, about=about, droppable=droppable, hint=hint
        )
        if admission is _OVERFLOW:
            self._end(Ended.OUTBOX_OVERFLOW)
        elif self._outbox.over:
            # Written now: a burst within one turn does not mean that the peer is slow.
            self._flush()
        elif self._flush_due is None:
            self._flush_due = self._loop.call_soon(self._flush)

    def close(self, reason: str) -> None:
        """End the connection after what was put so far; see `Sink.close`."""
        logger.debug("closed by the server: %s", reason)
        self.shut()
        self._end(Ended.DISCONNECTED)

    def shut(self) -> None:
        """Take no more messages. What is queued is still written."""
        self._shut = True

    async def finish(self, timeout: float) -> None:  # noqa: ASYNC109  # not the caller's to cancel
        """Take no more messages and wait until all are written, at most `timeout` seconds."""
        self.shut()
        self._flush()
        if not self.empty:
            self._finished = self._loop.create_future()
            await asyncio.wait((self._finished,), timeout=timeout)

    def close_now(self) -> None:
        """Forget what is queued and leave nothing behind on the loop. Again: nothing."""
        self.shut()
        self._outbox.clear()
        self._pieces = []
        self._all_written()
        if self._watching:
            self._watching = False
            self._loop.remove_reader(self._output.fd)
        if self._flush_due is not None:
            self._flush_due.cancel()
        self._output.close()

    def _flush(self) -> None:
        if self._flush_due is not None:
            self._flush_due.cancel()
            self._flush_due = None
        if not self._waiting:
            self._write()

    def _write(self) -> None:
        while self._pieces or self._outbox:
            if not self._pieces:
                self._pieces = _joined(self._outbox.take(_BATCH_BYTES))
            try:
                written = self._output.write(self._pieces)
            except BlockingIOError:
                self._wait()
                return
            except OSError:
                self._peer_closed()
                return
            self.written_bytes += written
            self._pieces = _after(self._pieces, written)
            self._progress_at = self._loop.time()
            if self._pieces:
                self._wait()
                self._progressed()
                return
        self._all_written()
        self._progressed()

    def _wait(self) -> None:
        """Go on when there is room; end when there is none for `write_timeout`."""
        if self._waiting:
            return
        self._waiting = True
        self._progress_at = self._loop.time()
        self._stall_due = self._loop.call_later(self._write_timeout, self._check_stall)
        self._loop.add_writer(self._output.fd, self._write)

    def _all_written(self) -> None:
        if self._waiting:
            self._waiting = False
            self._loop.remove_writer(self._output.fd)
        if self._stall_due is not None:
            self._stall_due.cancel()
            self._stall_due = None
        if self._finished is not None and not self._finished.done():
            self._finished.set_result(None)

    def _check_stall(self) -> None:
        due_at = self._progress_at + self._write_timeout
        if self._loop.time() < due_at:
            self._stall_due = self._loop.call_at(due_at, self._check_stall)
        else:
            self._end(Ended.OUTPUT_STALLED)

    def _peer_closed(self) -> None:
        """Nothing will ever be written again: drop it all, so that nothing is tried either."""
        self.close_now()
        self._end(Ended.OUTPUT_CLOSED)


def _joined(batch: list[bytes]) -> list[bytes | memoryview]:
    if len(batch) == 1 and len(batch[0]) > _BATCH_BYTES:
        return [batch[0], b"\n"]  # a copy of megabytes costs more than a second piece
    batch.append(b"")
    return [b"\n".join(batch)]


def _after(pieces: list[bytes | memoryview], written: int) -> list[bytes | memoryview]:
    """Leave out the first `written` bytes of `pieces`."""
    for index, piece in enumerate(pieces):
        if written < len(piece):
            return [memoryview(piece)[written:], *pieces[index + 1 :]]
        written -= len(piece)
    return []
