"""One child that speaks MCP over its pipes: the reader, the writer, and the one place it ends.

Starts nothing (`child_process`) and kills nothing by itself (`process_tree`). It runs until one
of these comes, and reports that to the port once, or never after `close`:

| what came | reported as |
|---|---|
| the child exits | `server_exited`, after what it had written |
| its stdout ends and it does not exit soon, or its stdin is closed | `transport closed` |
| it reads nothing for `stall_timeout` | `transport stalled` |
| a line over `max_line_bytes` | `line_too_long` |

What the child cannot have seen fails by itself before that, as `not_connected`.
"""

from __future__ import annotations

import asyncio
import logging
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from raxol_mcp.errors import Reason
from raxol_mcp.transports.child_errors import shown
from raxol_mcp.transports.descriptors import Output
from raxol_mcp.transports.draining import Drain
from raxol_mcp.transports.link import LinkFailed
from raxol_mcp.transports.outbox import Outbox
from raxol_mcp.transports.pipes import Ended, LineReader, LineWriter
from raxol_mcp.transports.process_tree import ProcessTree
from raxol_mcp.transports.unwritten import Unwritten
from raxol_mcp.wire.framing import Lines, TooLong
from raxol_mcp.wire.jsonrpc import (
    Batch,
    Failure,
    Ignored,
    Request,
    Response,
    UnencodableResult,
    encode,
)
from raxol_mcp.wire.replies import UnreadableReply, decode_reply

if TYPE_CHECKING:
    from raxol_mcp.transports.child_errors import ErrorTail
    from raxol_mcp.transports.child_process import Child
    from raxol_mcp.transports.link import LinkPort
    from raxol_mcp.wire.jsonrpc import Outgoing

__all__ = ["ChildConnection", "Limits"]

logger = logging.getLogger("raxol_mcp.client.stdio")

# All in seconds.
_EXIT_WAIT: Final = 0.5  # from the end of a pipe to the exit that tells why
_HELD_WAIT: Final = 0.5  # from the exit to the end of a stdout that somebody else holds open
_HELD_AT_MOST: Final = 5.0  # and that long if lines still come
_LAST_FLUSH: Final = 0.2  # for what was sent just before `close`
_QUIET: Final = 10.0  # without stray output; what comes then is logged again


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The bounds of one connection; see `SubprocessDialer`."""

    max_line_bytes: int
    max_depth: int
    end_wait: float
    term_wait: float
    stall_timeout: float


class ChildConnection:
    """See the module. `begin` first; what `send` and `abort` mean, `Link` says."""

    def __init__(
        self,
        child: Child,
        limits: Limits,
        loop: asyncio.AbstractEventLoop,
        port: LinkPort,
        *,
        name: str,
        tail: ErrorTail,
    ) -> None:
        self._child = child
        self._limits = limits
        self._loop = loop
        self._port = port
        self._name = name
        self._tail = tail
        self._requests: dict[int, str] = {}  # that are owed an answer: {key: method}
        self._others: set[int] = set()  # notifications and answers that are not written yet
        self._unwritten = Unwritten()
        self._outbox: Outbox[bytes] = Outbox()
        self._writer = LineWriter(
            loop,
            Output(child.stdin_fd),
            self._outbox,
            write_timeout=limits.stall_timeout,
            end=self._writer_ends,
            progressed=self._progressed,
        )
        self._reader = LineReader(
            loop,
            child.stdout_fd,
            Lines(limits.max_line_bytes),
            self._unwritten,
            receive=self._received,
            at_end=self._output_ended,
        )
        self._errors = Drain(loop, child.stderr_fd, tail.feed)
        self._unwanted = Drain(loop, child.stdout_fd, lambda _chunk: None)
        self._tree = ProcessTree(child.process, loop, exited=self._exited)
        self._settle_due = False
        self._writable = True
        self._output_open = True
        self._over = False  # `lost` was reported or `close` called: nothing is reported any more
        self._give_up_due: asyncio.TimerHandle | None = None
        self._give_up_by = 0.0
        self._lines = self._lines_seen = 0
        self._strays = 0
        self._stray_at = -_QUIET
        self._ending: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Listen to the child. Raises `LinkFailed`, and leaves nothing, when the loop cannot."""
        try:
            self._errors.start()
            self._reader.watch()
            self._tree.watch()
        except OSError as error:  # no room in the system's table of watched descriptors
            self._over = True
            self._child.process.kill()
            self._child.process.wait()
            self._release()
            text = error.strerror or "unknown"
            raise LinkFailed(Reason("spawn_failed", "enospc", text=text)) from None

    def send(self, message: Outgoing, key: int) -> None:
        """Queue one message; see `Link.send`."""
        if self._over:
            return
        is_answer = isinstance(message, Response | Failure)
        if isinstance(message, Request):
            self._requests[key] = message.method
        else:
            self._others.add(key)
        if not self._writable:
            self._fail_soon(key, Reason("not_connected"))
        elif self._outbox.over and not is_answer:
            # Answers are bounded by what is read (`Unwritten`).
            self._fail_soon(key, Reason("busy", text="the server does not read what was sent"))
        else:
            try:
                line = encode(message)
            except UnencodableResult as error:
                self._fail_soon(key, Reason("encode_failed", text=shown(str(error))))
                return
            self._unwritten.put(key, len(line) + 1, is_answer=is_answer)
            self._writer.put_line(line, about=key)

    def abort(self, key: int) -> None:
        """Report nothing more of `key`; see `Link.abort`."""
        self._requests.pop(key, None)
        self._others.discard(key)

    async def close(self) -> None:
        """End the child and its group, unless that goes on already, and wait for it."""
        if self._ending is None:
            self._over = True
            self._forget()
            self._ending = self._loop.create_task(self._end_in_order())
        # Not awaited itself: whoever waits here may be cancelled, and the end goes on.
        await asyncio.wait((self._ending,))

    # --- What the child says ---

    def _received(self, line: bytes | TooLong) -> None:
        self._lines += 1
        if isinstance(line, TooLong):
            self._lose(Reason("line_too_long", self._limits.max_line_bytes), end_wait=0.0)
            return
        message = decode_reply(line, max_depth=self._limits.max_depth)
        if isinstance(message, Response | Failure):
            self._answered(message)
        elif isinstance(message, UnreadableReply):
            self._unreadable(message, line)
        elif isinstance(message, Ignored):
            self._stray(line, message.reason)
        else:
            if isinstance(message, Batch):
                for item in message.messages:
                    if isinstance(item, Response | Failure) and isinstance(item.id, int):
                        self._requests.pop(item.id, None)
            self._port.received(message)

    def _answered(self, message: Response | Failure) -> None:
        # An id as text is not the id that was sent, whatever it looks like.
        if isinstance(message.id, int) and self._requests.pop(message.id, None) is not None:
            self._port.received(message)
        else:
            self._port.noticed("stray_answer", {})

    def _unreadable(self, reply: UnreadableReply, line: bytes) -> None:
        method = self._requests.get(reply.id) if isinstance(reply.id, int) else None
        if method is None:
            self._stray(line, reply.why)
        else:
            assert isinstance(reply.id, int), "only integers are keys"
            text = shown(reply.why)
            self._fail(reply.id, Reason("invalid_response", method, text=text, maybe_done=True))

    def _stray(self, line: bytes, why: str) -> None:
        """Count what is no message: report every line, and log the first of many.

        A blank line is nothing at all.
        """
        if not line.strip():
            return
        self._strays += 1
        text = self._tail.shown(line)
        self._port.noticed("stray_output", {"text": text, "count": self._strays})
        now = self._loop.time()
        if now - self._stray_at >= _QUIET:
            logger.info("%s: not a message (%s): %s", self._name, self._tail.shown(why), text)
        self._stray_at = now

    # --- What becomes of what was sent ---

    def _progressed(self) -> None:
        """Bytes were written, perhaps inside `send`."""
        if not self._settle_due:
            self._settle_due = True
            self._loop.call_soon(self._settle)

    def _settle(self) -> None:
        self._settle_due = False
        if self._over:
            return
        for key in self._unwritten.written(self._writer.written_bytes):
            if key in self._others:
                self._others.remove(key)
                self._port.sent(key)
        if not self._unwritten.over:
            self._reader.resume()

    def _fail_soon(self, key: int, reason: Reason) -> None:
        self._loop.call_soon(self._fail, key, reason)

    def _fail(self, key: int, reason: Reason) -> None:
        """Report the end of a message, unless it was aborted or nothing may be reported."""
        known = self._requests.pop(key, None) is not None or key in self._others
        self._others.discard(key)
        if known and not self._over:
            self._port.failed(key, reason)

    # --- How it ends ---

    def _writer_ends(self, ended: Ended) -> None:
        """Nothing can be written any more, which may show inside `send`."""
        self._loop.call_soon(self._input_ended, ended)

    def _input_ended(self, ended: Ended) -> None:
        if self._over:
            return
        self._settle()
        if ended is Ended.OUTPUT_STALLED:
            text = f"nothing was read for {self._limits.stall_timeout:g} seconds"
            self._lose(Reason("transport", "stalled", text=text), end_wait=0.0)
        else:
            self._stop_writing()
            self._expect_exit()

    def _output_ended(self) -> None:
        self._output_open = False
        if self._tree.ended:
            self._lose_exited()
        else:
            self._expect_exit()

    def _expect_exit(self) -> None:
        """A child that closes one of its pipes is about to exit: the code says more than that."""
        self._tree.hurry()
        if self._give_up_due is None:
            self._give_up_due = self._loop.call_later(_EXIT_WAIT, self._lose_closed)

    def _exited(self) -> None:
        if self._over:
            return
        self._settle()
        self._stop_writing()
        if not self._output_open:
            self._lose_exited()
            return
        # All the child has written is in the pipe. Its end comes behind that, unless somebody
        # the child has started holds it open.
        self._give_up_by = self._loop.time() + _HELD_AT_MOST
        self._wait_while_lines_come()

    def _wait_while_lines_come(self) -> None:
        if self._give_up_due is not None:
            self._give_up_due.cancel()
        self._lines_seen = self._lines
        self._give_up_due = self._loop.call_later(_HELD_WAIT, self._no_end_came)

    def _no_end_came(self) -> None:
        if self._lines > self._lines_seen and self._loop.time() < self._give_up_by:
            self._wait_while_lines_come()
        else:
            self._lose_exited()

    def _lose_exited(self) -> None:
        self._errors.catch_up()
        self._lose(
            Reason("server_exited", self._tree.code, text=self._tail.last_words()), end_wait=0.0
        )

    def _lose_closed(self) -> None:
        self._errors.catch_up()
        reason = Reason("transport", "closed", text=self._tail.last_words())
        self._lose(reason, end_wait=self._limits.end_wait)

    def _lose(self, reason: Reason, *, end_wait: float) -> None:
        """Report the end, once, and end what is left of the child."""
        self._settle()
        self._forget()
        self._stop_writing(reason)
        self._over = True
        self._port.lost(reason)
        self._ending = self._loop.create_task(self._end(end_wait, self._limits.term_wait))

    def _stop_writing(self, cause: Reason | None = None) -> None:
        """Close the child's input; what it cannot have seen any of fails."""
        if not self._writable:
            return
        self._writable = False
        self._writer.close_now()
        os.close(self._child.stdin_fd)
        for key in self._unwritten.clear(self._writer.written_bytes):
            self._fail(key, Reason("not_connected", cause=cause))
        self._reader.resume()

    def _forget(self) -> None:
        """Read nothing more, and wait for nothing more."""
        self._reader.stop()
        if self._give_up_due is not None:
            self._give_up_due.cancel()

    async def _end_in_order(self) -> None:
        """Close a child that runs: what was sent last still leaves, and it may finish writing."""
        end_wait, term_wait = self._limits.end_wait, self._limits.term_wait
        try:
            if self._output_open:
                self._unwanted.start()
            if self._writable:
                await self._writer.finish(min(_LAST_FLUSH, end_wait))
        except asyncio.CancelledError:
            end_wait = term_wait = 0.0
            raise
        finally:
            self._stop_writing()
            await self._end(end_wait, term_wait)

    async def _end(self, end_wait: float, term_wait: float) -> None:
        try:
            await self._tree.end(end_wait=end_wait, term_wait=term_wait)
        finally:
            self._release()

    def _release(self) -> None:
        self._reader.stop()
        self._unwanted.stop()
        self._errors.catch_up()
        self._errors.stop()
        self._tree.release()
        self._stop_writing()
        os.close(self._child.stdout_fd)
        os.close(self._child.stderr_fd)
