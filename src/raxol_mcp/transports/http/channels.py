"""A logical stream of messages: who reads it now, and what is kept for a reader that comes back.

Moves encoded messages; knows no request and no session. One reader at a time, so that a message
is on one stream only (MCP 2025-11-25 basic/transports §Multiple Connections).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raxol_mcp.wire import sse

if TYPE_CHECKING:
    from raxol_mcp.transports.http.events import EventLog
    from raxol_mcp.transports.http.streams import EventStream

__all__ = ["Channel"]

_ADMITTED = 0  # what bounds the number of these messages is the number of requests in flight


class Channel:
    """`stream` is the answer that carries it now, if any; without a `log` nothing is kept.

    `broadcasts` says that what it carries belongs to no request: a reader that does not keep up
    with those is cut off.
    """

    __slots__ = ("_broadcasts", "closed", "log", "stream")

    def __init__(self, log: EventLog | None = None, *, broadcasts: bool = False) -> None:
        self.closed = False
        self.log = log
        self.stream: EventStream | None = None
        self._broadcasts = broadcasts

    def write(self, line: bytes, *, droppable: bool = False, hint: bool = False) -> None:
        """Send one encoded message to the reader; keep it where there is a log.

        A `hint` at a change waits once, for the reader or in the log (ADR-0014).
        """
        log, stream = self.log, self.stream
        if hint and self._waits(line):
            return
        frame = sse.message(line) if log is None else log.append(line, droppable=droppable)
        if stream is not None:
            if log is not None:
                log.sent = log.number
            about = None if self._broadcasts else _ADMITTED
            stream.put(frame, about=about, droppable=droppable, hint=line if hint else None)

    def _waits(self, line: bytes) -> bool:
        if self.stream is not None:
            return self.stream.waits(line)
        return self.log is not None and self.log.waits(line)

    def prime(self, retry: float) -> None:
        """Tell the reader from where it can resume, and how long to wait before it does."""
        assert self.log is not None, "without a log nothing can be resumed"
        if self.stream is not None:
            self.stream.put(self.log.priming(retry=retry), about=_ADMITTED)

    def attach(self, stream: EventStream, *, after: int | None = None) -> None:
        """Let `stream` be the reader from now on; one that is there already is let go.

        It is first given what came after the event number `after`, or what nobody was given yet.
        """
        log = self.log
        assert log is not None, "without a log there is nothing to come back for"
        if self.stream is not None:
            self.stream.finish()
        for frame in log.after(log.sent if after is None else after):
            stream.put(frame, about=_ADMITTED)
        log.sent = log.number
        self.stream = stream
        if self.closed:
            stream.finish()

    def detach(self, stream: EventStream | None) -> None:
        """Forget `stream`, unless another has taken its place."""
        if self.stream is stream:
            self.stream = None

    def close(self) -> None:
        """Nothing more is written: end the reader's stream after what it has."""
        self.closed = True
        if self.stream is not None:
            self.stream.finish()
