"""One answer that is a stream of events: written in turn, never more than a bounded part ahead.

Writes frames it is given; does not know what they say. An idle stream costs no task and no timer
of its own: a task writes while there is something to write, and one timer serves all streams.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Hashable, Iterable
from enum import Enum
from typing import TYPE_CHECKING, Final

from raxol_mcp.transports.http.departure import Departure
from raxol_mcp.transports.http.lanes import Lane
from raxol_mcp.transports.outbox import Admission, Outbox
from raxol_mcp.wire import sse

if TYPE_CHECKING:
    from raxol_mcp.transports.http.asgi import Event, Header, Receive, Send
    from raxol_mcp.wire.jsonrpc import RequestId

__all__ = ["FINISHED", "EventStream", "StreamEnd", "Streams", "note"]

logger = logging.getLogger("raxol_mcp.http")

# What is handed to the server in one piece. Its own buffer holds about as much again.
_WRITE_BYTES: Final = 64 * 1024
_HEADERS: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache"),
    # MCP 2026-07-28 basic/transports/streamable-http: proxies must not collect events.
    (b"x-accel-buffering", b"no"),
)


class StreamEnd(Enum):
    """Why a stream ended."""

    FINISHED = "finished"
    LEFT = "the client left"
    STALLED = "the client reads nothing"
    OVERFLOW = "the client does not keep up"


FINISHED: Final = StreamEnd.FINISHED  # found once: in Python 3.11 that takes as long as a call


class Streams:
    """All open streams of one application: their number, their heartbeat, their patience.

    `keepalive` is how long a stream says nothing before a comment is written, `write_timeout` how
    long a client may read nothing while something is there for it, both in seconds. One principal
    may have half of `max_streams`.
    """

    __slots__ = ("_by_principal", "_max_each", "_max_streams", "_open", "quiet", "writing")

    def __init__(self, *, keepalive: float, write_timeout: float, max_streams: int) -> None:
        self._by_principal: dict[str, int] = {}  # never holds a zero
        self._max_each = max(1, max_streams // 2)
        self._max_streams = max_streams
        self.quiet: Lane[EventStream] = Lane(keepalive, EventStream.beat)
        self.writing: Lane[EventStream] = Lane(write_timeout, EventStream.stalled)
        self._open: set[EventStream] = set()

    def __len__(self) -> int:
        return len(self._open)

    def full_for(self, principal: str | None) -> bool:
        """Say whether no more streams are to be opened, by this principal or by anybody."""
        if len(self._open) >= self._max_streams:
            return True
        return principal is not None and self._by_principal.get(principal, 0) >= self._max_each

    def opened(self, stream: EventStream) -> None:
        """Count `stream`, and let it have a heartbeat."""
        self._open.add(stream)
        self.quiet.add(stream)
        if stream.principal is not None:
            self._by_principal[stream.principal] = self._by_principal.get(stream.principal, 0) + 1

    def ended(self, stream: EventStream) -> None:
        """Forget `stream`, which was opened."""
        self._open.remove(stream)
        if stream.principal is not None:
            held = self._by_principal.pop(stream.principal)
            if held > 1:
                self._by_principal[stream.principal] = held - 1
        self.quiet.remove(stream)
        self.writing.remove(stream)

    def finish(self) -> None:
        """End every stream after what it has to write."""
        for stream in list(self._open):
            stream.finish()

    def close(self) -> None:
        """Stop the heartbeat."""
        self.quiet.close()


class EventStream:
    """One `text/event-stream` answer. `serve` runs in the task of its request.

    `put` may be called before `serve`; nothing is written before it. The connection of a stream
    that ends as STALLED or OVERFLOW is left without an end of the answer: the server that runs us
    closes it.
    """

    __slots__ = (
        "_departure",
        "_extra",
        "_finishing",
        "_outbox",
        "_pump",
        "_send",
        "_serving",
        "_started",
        "_streams",
        "end",
        "principal",
    )

    def __init__(
        self,
        send: Send,
        streams: Streams,
        extra: Iterable[Header] = (),
        *,
        principal: str | None = None,
    ) -> None:
        self.principal = principal
        self.end: StreamEnd | None = None
        self._send = send
        self._streams = streams
        self._extra = tuple(extra)
        self._departure = Departure()
        self._outbox: Outbox[bytes] | None = None
        self._pump: asyncio.Task[None] | None = None
        self._started = False
        self._serving = False
        self._finishing = False

    @property
    def over(self) -> bool:
        """Whether more waits to be written than a client that keeps up would leave."""
        return self._outbox is not None and self._outbox.over

    def waits(self, hint: Hashable) -> bool:
        """Say whether a hint that says the same waits to be written."""
        return self._outbox is not None and self._outbox.waits(hint)

    def put(
        self,
        frame: bytes,
        *,
        about: RequestId | None = None,
        droppable: bool = False,
        hint: Hashable = None,
    ) -> None:
        """Write `frame` after everything put before; after the end it is dropped.

        See `Outbox.put`.
        """
        if self.end is not None or self._finishing:
            return
        if self._outbox is None:
            self._outbox = Outbox()
        admission = self._outbox.put(frame, len(frame), about=about, droppable=droppable, hint=hint)
        if admission is Admission.QUEUED:
            self._write_soon()
        elif admission is Admission.OVERFLOW:
            self._ended(StreamEnd.OVERFLOW)

    def finish(self) -> None:
        """End the answer after what was put so far."""
        self._finishing = True
        self._write_soon()

    async def serve(self, receive: Receive) -> StreamEnd:
        """Write until the stream ends, one way or another; say which."""
        self._streams.opened(self)
        self._serving = True
        self._write_soon()
        try:
            if self.end is None and await self._departure.left(receive):
                self._ended(StreamEnd.LEFT)
        finally:
            self._streams.ended(self)
            if self._pump is not None:
                self._pump.cancel()
            if self.end is None:
                self.end = StreamEnd.LEFT  # our own task was ended from outside
            if self._outbox is not None:
                self._outbox.clear()
        return self.end

    def beat(self) -> None:
        """Nothing was said for a keep-alive interval."""
        self.put(sse.KEEP_ALIVE, about=0, droppable=True)

    def stalled(self) -> None:
        """The client has read nothing for too long."""
        self._ended(StreamEnd.STALLED)

    def _ended(self, end: StreamEnd) -> None:
        if self.end is None:
            self.end = end
            if end is not StreamEnd.FINISHED and self._pump is not None:
                self._pump.cancel()
            self._departure.wake()

    def _write_soon(self) -> None:
        if self._pump is None and self._serving and self.end is None:
            self._streams.writing.add(self)
            self._pump = asyncio.get_running_loop().create_task(self._write())

    async def _write(self) -> None:
        try:
            if not self._started:
                self._started = True
                head = [*_HEADERS, *self._extra]
                await self._said({"type": "http.response.start", "status": 200, "headers": head})
            while self._outbox:
                frames = self._outbox.take(_WRITE_BYTES)
                body = b"".join(frames)
                await self._said({"type": "http.response.body", "body": body, "more_body": True})
            if self._finishing:
                await self._send({"type": "http.response.body", "body": b""})
                self._ended(StreamEnd.FINISHED)
        except OSError as error:  # what servers raise when the client is gone
            logger.debug("an event stream ended: %s", error)
            self._ended(StreamEnd.LEFT)
        except Exception:
            logger.exception("an event stream could not be written")
            self._ended(StreamEnd.LEFT)
        finally:
            self._pump = None
            self._streams.writing.remove(self)

    async def _said(self, event: Event) -> None:
        await self._send(event)
        self._streams.writing.add(self)
        self._streams.quiet.add(self)


def note(end: StreamEnd) -> None:
    """Log the ends that whoever runs the server may want to know of."""
    if end is StreamEnd.STALLED or end is StreamEnd.OVERFLOW:
        logger.warning("a client was cut off: %s", end.value)
