"""The server's end of a socket to the forkserver or to a worker, driven by the event loop.

Moves frames and descriptors; knows no message. Never blocks, never awaits. Uses `add_reader` and
`add_writer` alone, which every asyncio loop has.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections import deque
from typing import TYPE_CHECKING, Final

from raxol_mcp.server.process_messages import Frames, Garbled

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

__all__ = ["Channel"]

# Below malloc's mmap threshold: a larger buffer costs two system calls for every small answer.
_READ_BYTES: Final = 64 * 1024
# A 16 MiB result must not keep the loop to itself: 1 MiB, then everybody else has a turn.
_READS_PER_TURN: Final = 16


class Channel:
    """One connected stream socket, which it owns.

    `received(payload)` is called for each frame and `ended()` once, when nothing more will come:
    the peer is gone, or sent what cannot be followed. Neither is called after `close()`.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        stream: socket.socket,
        *,
        received: Callable[[bytes], None],
        ended: Callable[[], None],
        max_bytes: int,
    ) -> None:
        self._loop = loop
        self._socket = stream
        self._received = received
        self._ended = ended
        self._frames = Frames(max_bytes)
        self._unsent: deque[tuple[memoryview, tuple[int, ...]]] = deque()
        self._reading = True
        self._writing = False
        self._open = True
        stream.setblocking(False)
        loop.add_reader(stream.fileno(), self._readable)

    @property
    def has_ended(self) -> bool:
        """Say whether nothing more will come."""
        return not self._reading

    def send(self, framed: bytes, descriptors: tuple[int, ...] = ()) -> None:
        """Queue one frame and write what can be written now.

        `descriptors` travel with its first byte; this side's copies are closed whatever happens.
        A peer that is gone is not reported here: `ended` does that.
        """
        self._unsent.append((memoryview(framed), descriptors))
        if not self._writing:
            self._writable()

    def finish_sending(self) -> None:
        """Let the peer read end of file; what it still sends is received as before."""
        self._drop_unsent()
        with contextlib.suppress(OSError):  # the peer was faster
            self._socket.shutdown(socket.SHUT_WR)

    def drain(self) -> None:
        """Receive, now, whatever the peer wrote before it went."""
        while self._reading and self._read_once():
            pass

    def close(self) -> None:
        """Give the descriptors back. Idempotent."""
        if not self._open:
            return
        self._open = False
        self._stop_reading()
        self._drop_unsent()
        self._socket.close()

    def _readable(self) -> None:
        for _ in range(_READS_PER_TURN):
            if not self._reading or not self._read_once():
                return

    def _read_once(self) -> bool:
        """Read one chunk; say whether more may be waiting."""
        try:
            chunk = self._socket.recv(_READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:  # reset: the peer went with bytes of ours unread
            chunk = b""
        try:
            payloads = self._frames.feed(chunk)
        except Garbled:
            chunk, payloads = b"", []
        for payload in payloads:
            if self._open:  # `received` may have closed it
                self._received(payload)
        if not chunk and self._reading:
            self._stop_reading()
            self._ended()
        return len(chunk) == _READ_BYTES

    def _writable(self) -> None:
        while self._unsent:
            view, descriptors = self._unsent[0]
            try:
                if descriptors:
                    sent = socket.send_fds(self._socket, [view], descriptors)
                else:
                    sent = self._socket.send(view)
            except (BlockingIOError, InterruptedError):
                if not self._writing:
                    self._writing = True
                    self._loop.add_writer(self._socket.fileno(), self._writable)
                return
            except OSError:
                self._drop_unsent()
                return
            _close_all(descriptors)
            if sent < len(view):
                self._unsent[0] = (view[sent:], ())
            else:
                self._unsent.popleft()
        self._stop_writing()

    def _drop_unsent(self) -> None:
        for _, descriptors in self._unsent:
            _close_all(descriptors)
        self._unsent.clear()
        self._stop_writing()

    def _stop_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._socket.fileno())

    def _stop_writing(self) -> None:
        if self._writing:
            self._writing = False
            self._loop.remove_writer(self._socket.fileno())


def _close_all(descriptors: tuple[int, ...]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
