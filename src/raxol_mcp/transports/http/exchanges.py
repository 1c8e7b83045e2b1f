"""One POST whose answer is awaited: as one JSON body if that comes first, else as events.

A sink for what belongs to its request on one side, an HTTP answer on the other. The form of the
answer is decided by what happens:

* The answer comes first: one JSON body.
* Something else does (progress, a log message, a question): a stream of events.
* Nothing comes for a moment: the client is watched from then on, and where it can resume the
  stream begins, so that it learns from where (MCP 2025-11-25 basic/transports §Sending Messages
  to the Server). Without a word for a keep-alive interval it begins anyway.
"""

from __future__ import annotations

import asyncio
import logging
from enum import Enum
from typing import TYPE_CHECKING, Final

from raxol_mcp.core.subscriptions import only_a_hint
from raxol_mcp.errors import INTERNAL_ERROR
from raxol_mcp.transports.http.asgi import challenge_of, json_start, plain, say
from raxol_mcp.transports.http.channels import Channel
from raxol_mcp.transports.http.departure import Departure
from raxol_mcp.transports.http.patience import looks
from raxol_mcp.transports.http.streams import FINISHED, EventStream, StreamEnd
from raxol_mcp.wire.headers import Headers, params_problem
from raxol_mcp.wire.jsonrpc import Failure, Notification, Response, encode
from raxol_mcp.wire.results import UnencodableResult

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from raxol_mcp.core.authentication import Challenge
    from raxol_mcp.transports.http.asgi import Header, Request
    from raxol_mcp.transports.http.events import EventLog
    from raxol_mcp.transports.http.patience import Patience
    from raxol_mcp.transports.http.streams import Streams
    from raxol_mcp.wire.headers import Mirror
    from raxol_mcp.wire.jsonrpc import Outgoing, RequestId
    from raxol_mcp.wire.jsonrpc import Request as Called

__all__ = ["RETRY", "Exchange", "Waits", "hints", "line_of"]

logger = logging.getLogger("raxol_mcp.http")

# How long a client waits before it takes a stream up again, unless a tool says otherwise; seconds.
RETRY: Final = 1.0
# How long an answer may take before the client is watched, in seconds. Most take less.
_PATIENCE: Final = 0.05
# A longer body is given to the server in parts, so that a slow reader is noticed.
_PART_BYTES: Final = 256 * 1024
_UNANSWERED: Final = plain(503, "The server ended before there was an answer")


class Waits:
    """How long an exchange waits for what, in looks of `patience`."""

    __slots__ = ("patience", "silence", "start", "writing")

    def __init__(self, patience: Patience, *, keepalive: float, write_timeout: float) -> None:
        self.patience = patience
        self.silence = looks(keepalive)
        self.start = looks(_PATIENCE)
        self.writing = looks(write_timeout)


class _State(Enum):
    WAITING = "waiting"  # nothing has come
    ANSWERED = "answered"  # the one answer has come first
    STREAMING = "streaming"  # something else came first: events
    ENDED = "ended"  # what comes goes nowhere


# Found and made once: in Python 3.11 that takes longer than what is done with them.
_ANSWERED: Final = _State.ANSWERED
_ANSWERS: Final = (Response, Failure)
_WAITING: Final = _State.WAITING


class Exchange:
    """One POST. `owed` is how many answers are still to come.

    With `new_log` what is sent as events is kept in one, and kept on when the client has left or
    was let go; with `resumable` it is told at once how to come back. `on_answered` is called once,
    when nothing is owed any more.
    """

    __slots__ = (
        "_asked",
        "_challenge",
        "_departure",
        "_state",
        "_status_of",
        "_stream",
        "_streams",
        "_waiter",
        "_waits",
        "answer",
        "channel",
        "extra",
        "new_log",
        "on_answered",
        "owed",
        "resumable",
    )

    def __init__(
        self,
        asked: Request,
        waits: Waits,
        streams: Streams,
        status_of: Callable[[Outgoing], int],
        new_log: Callable[[], EventLog] | None = None,
    ) -> None:
        self.answer: Outgoing | None = None
        self.channel: Channel | None = None
        self.extra: tuple[Header, ...] = ()
        self.new_log = new_log
        self.on_answered: Callable[[Exchange], None] | None = None
        self.owed = 1
        self.resumable = False
        self._asked = asked
        self._challenge: Challenge | None = None
        self._departure: Departure | None = None
        self._state = _WAITING
        self._status_of = status_of
        self._stream: EventStream | None = None
        self._streams = streams
        self._waiter: asyncio.Future[None] | None = None
        self._waits = waits

    @property
    def unheard(self) -> bool:
        """Whether what is put goes nowhere: the client left and cannot come back for it."""
        return self._state is _State.ENDED

    # -- what the server puts -----------------------------------------------------------------

    def put(
        self, message: Outgoing, *, about: RequestId | None = None, droppable: bool = False
    ) -> None:
        """Bring one message to the client; see `Sink.put`."""
        final = isinstance(message, _ANSWERS)
        if final:
            self.owed -= 1
            if self._state is _WAITING and not self.owed:
                self.answer = message
                self._state = _ANSWERED
                self._wake()
        if self._state is _WAITING or self._state is _State.STREAMING:
            self._event(message, final=final, droppable=droppable)
        if final and not self.owed:
            self._settle()

    def mismatch(self, request: Called, mirrors: Sequence[Mirror]) -> Failure | None:
        """Compare the headers that repeat arguments with them; see `NetworkPort`."""
        return params_problem(Headers(self._asked.raw), request, mirrors)

    def lacks(self, about: RequestId, scopes: tuple[str, ...], *, challenged: bool) -> bool:
        """Look at the scopes of this very request; see `NetworkPort`."""
        asked = self._asked
        if asked.scopes.issuperset(scopes):
            return False
        if challenged and asked.challenge is not None:
            self._challenge = asked.challenge(scopes)
        return True

    def close(self, reason: str) -> None:
        """End without another word; see `Sink.close`."""
        logger.debug("an exchange is closed: %s", reason)
        if self.owed:
            self.owed = 0
            self._settle()

    def withdrawn(self) -> None:
        """A request was cancelled by the client: no answer comes, and the stream ends."""
        self.owed -= 1
        if not self.owed:
            self.begin()
            self._settle()

    def let_go(self, retry: float) -> None:
        """Let the client go; it comes back for the rest after `retry` seconds, if it can."""
        if self.resumable and self._state in (_State.WAITING, _State.STREAMING):
            self.begin()
            assert self.channel is not None, "it has begun"
            stream = self.channel.stream
            self.channel.detach(stream)
            if stream is not None:
                stream.put(b"retry: %d\n\n" % int(retry * 1000), about=0)
                stream.finish()

    def begin(self) -> None:
        """Begin the stream of events, if nothing has begun."""
        if self._state is _State.WAITING:
            self._state = _State.STREAMING
            self.channel = Channel(None if self.new_log is None else self.new_log())
            asked = self._asked
            self._stream = EventStream(
                asked.send, self._streams, self.extra, principal=asked.principal
            )
            self.channel.stream = self._stream
            if self.resumable:
                self.channel.prime(RETRY)
            self._wake()

    def waited(self) -> None:
        """The answer takes longer than most do."""
        if self.resumable:
            self.begin()
        elif self._state is _State.WAITING:
            waits = self._waits
            waits.patience.begin(self._asked, waits.silence, self.begin)
            self._wake()

    def _event(self, message: Outgoing, *, final: bool, droppable: bool) -> None:
        self.begin()
        channel = self.channel
        assert channel is not None, "it has begun"
        line, log = line_of(message), channel.log
        if line:
            channel.write(line, droppable=droppable, hint=hints(message))
            if final and log is not None and log.lost == log.number:
                # Whoever comes back for it must not wait forever.
                assert isinstance(message, Response | Failure), "it is final"
                log.append(encode(Failure(message.id, INTERNAL_ERROR, "The answer was not kept")))

    def _settle(self) -> None:
        """Nothing is owed any more."""
        if self._state is not _ANSWERED:
            self._state = _State.ENDED
            if self.channel is not None:
                self.channel.close()
            self._wake()
        if self.on_answered is not None:
            self.on_answered(self)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
        if self._departure is not None:
            self._departure.wake()

    # -- what the client gets -----------------------------------------------------------------

    async def wait(self) -> StreamEnd | None:
        """Wait until it is known what the answer begins with; LEFT when the client left first."""
        if self._state is not _WAITING:
            return None
        task = self._asked.task
        assert task is not None, "its body was read in it"
        self._waiter = task.get_loop().create_future()
        waits = self._waits
        waits.patience.begin(self._asked, waits.start, self.waited)
        try:
            await self._waiter
            if self._state is _WAITING:
                self._departure = Departure()
                if await self._departure.left(self._asked.receive):
                    return StreamEnd.LEFT
        finally:
            waits.patience.end(self._asked)
            self._waiter = self._departure = None
        return None

    async def bring(self) -> StreamEnd:
        """Bring the answer to the client, after `wait`; say how that ended."""
        if self.answer is not None:
            return await self.bring_json()
        channel, stream = self.channel, self._stream
        if channel is None or stream is None:
            await say(_UNANSWERED, self._asked.send)
            return StreamEnd.FINISHED
        try:
            return await stream.serve(self._asked.receive)
        finally:
            channel.detach(stream)

    def left(self) -> None:
        """The client is gone: without a log there is no way back."""
        if self.channel is None or self.channel.log is None:
            self._state = _State.ENDED

    async def bring_json(self) -> StreamEnd:
        """Bring the one answer that came first."""
        answer = self.answer
        assert answer is not None, "`wait` has ended without the client having left"
        body = line_of(answer)
        asked, waits = self._asked, self._waits
        send = asked.send
        waits.patience.begin(asked, waits.writing, asked.expire)
        try:
            status, extra = self._status_of(answer), self.extra
            if self._challenge is not None:
                status, extra = self._challenge.status, (*extra, *challenge_of(self._challenge))
            await send(json_start(status, len(body), extra))
            if len(body) > _PART_BYTES:
                body = await self._bring_parts(body)
            await send({"type": "http.response.body", "body": body})
        except asyncio.CancelledError:
            if asked.expired():
                return StreamEnd.STALLED
            raise
        finally:
            waits.patience.end(asked)
        return FINISHED

    async def _bring_parts(self, body: bytes) -> bytes:
        """Send all but the last part of a long body; return that. Each part has its own time."""
        asked, waits = self._asked, self._waits
        view = memoryview(body)
        while len(view) > _PART_BYTES:
            part = bytes(view[:_PART_BYTES])
            await asked.send({"type": "http.response.body", "body": part, "more_body": True})
            waits.patience.begin(asked, waits.writing, asked.expire)
            view = view[_PART_BYTES:]
        return bytes(view)


def hints(message: Outgoing) -> bool:
    """Say whether a message only hints at a change: while it waits, another says nothing new."""
    return isinstance(message, Notification) and only_a_hint(message)


def line_of(message: Outgoing) -> bytes:
    """Encode one message. An answer that cannot be encoded is our fault; others are left out."""
    try:
        return encode(message)
    except UnencodableResult as error:
        logger.error("a message could not be written: %s", error)
        if isinstance(message, Response | Failure):
            return encode(Failure(message.id, INTERNAL_ERROR, "Internal error"))
        return b""
