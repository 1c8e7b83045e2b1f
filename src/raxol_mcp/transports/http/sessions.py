"""The sessions of the handshake era: who may use them, how many there are, when they end.

A session is one connection of the server. It ends when its client deletes it, when nobody has used
it for a while, when room is needed, and with the server; never because a stream was lost
(MCP 2025-11-25 basic/transports §Session Management).

* The id is a secret: 18 random bytes. It belongs to whoever was authenticated when it was made;
  for anybody else it does not exist, and that looks like an id that never did.
* It is not authentication: with an authenticator every request is authenticated anew.
* Answers and what belongs to a request go to the stream of the POST that brought it; what belongs
  to none goes to the one GET stream, and is kept, within a bound, while there is none.
"""

from __future__ import annotations

import asyncio
import logging
import os
from base64 import urlsafe_b64encode
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Final

from raxol_mcp.core.peers import ConnectionFacts
from raxol_mcp.errors import INTERNAL_ERROR
from raxol_mcp.transports.http.channels import Channel
from raxol_mcp.transports.http.events import EventLog, stream_of
from raxol_mcp.transports.http.exchanges import hints, line_of
from raxol_mcp.transports.http.lanes import Lane
from raxol_mcp.wire.jsonrpc import Batch, Failure, Invalid, Notification, Request, Response

if TYPE_CHECKING:
    from raxol_mcp.transports.base import ServerPort
    from raxol_mcp.transports.http.exchanges import Exchange
    from raxol_mcp.wire.jsonrpc import Incoming, Outgoing, RequestId

__all__ = ["MAX_KEPT_STREAMS", "MAX_SESSIONS", "Session", "Sessions", "new_secret"]

logger = logging.getLogger("raxol_mcp.http")

MAX_SESSIONS: Final = 2048
# How many streams of answered POSTs a session keeps for a client that lost their end.
MAX_KEPT_STREAMS: Final = 4
# The revision whose clients are told how to resume, and may be let go meanwhile.
RESUMABLE_SINCE: Final = "2025-11-25"
_ANSWERS: Final = (Response, Failure)  # made once: in Python 3.11 that takes as long as the test


def new_secret(size_bytes: int = 18) -> str:
    """Return text that cannot be guessed, of letters, digits, "-" and "_"."""
    return urlsafe_b64encode(os.urandom(size_bytes)).decode().rstrip("=")


class Session:
    """One session: a sink that knows which stream each message belongs to."""

    __slots__ = (
        "_answering",
        "_forget",
        "_kept",
        "_nonce",
        "_server",
        "_streams_begun",
        "connection",
        "ended",
        "exchanges",
        "id",
        "listening",
        "principal",
        "version",
    )

    def __init__(
        self, server: ServerPort, principal: str | None, forget: Callable[[Session], None]
    ) -> None:
        self.id = new_secret()
        self.principal = principal
        self.version: str | None = None
        self.ended: str | None = None
        self.exchanges: dict[RequestId, Exchange] = {}
        self.listening: Channel | None = None
        self._answering: Exchange | None = None
        self._forget = forget
        self._kept: dict[str, Channel] | None = None
        self._nonce = new_secret(6)
        self._server = server
        self._streams_begun = 0
        facts = ConnectionFacts(
            transport="http", principal=principal, share=principal, greeting_required=True
        )
        self.connection: Hashable = server.open(self, facts)

    @property
    def busy(self) -> bool:
        """Whether something is under way: a request, or a stream that somebody reads."""
        listens = self.listening is not None and self.listening.stream is not None
        return bool(self.exchanges) or listens

    @property
    def resumable(self) -> bool:
        """Whether the client knows that a stream may end before its answer."""
        return self.version is not None and self.version >= RESUMABLE_SINCE

    # -- what comes in ------------------------------------------------------------------------

    def receive(self, message: Incoming, exchange: Exchange | None) -> None:
        """Hand one message to the server; what it is answered goes to `exchange`."""
        if exchange is not None:
            self._register(message, exchange)
        self._answering = exchange
        try:
            self._server.receive(self.connection, message)
        finally:
            self._answering = None
        if isinstance(message, Request):
            return
        for part in message.messages if isinstance(message, Batch) else (message,):
            if isinstance(part, Notification) and part.method == "notifications/cancelled":
                self._cancelled(part)

    def _register(self, message: Incoming, exchange: Exchange) -> None:
        exchange.on_answered = self._answered
        # A second one with an id in flight is refused by the server, and without that id.
        if isinstance(message, Request):
            self.exchanges.setdefault(message.id, exchange)
            return
        parts = message.messages if isinstance(message, Batch) else [message]
        owed = [part for part in parts if isinstance(part, Request | Invalid)]
        exchange.owed = len(owed)
        for part in owed:
            if isinstance(part, Request):
                self.exchanges.setdefault(part.id, exchange)

    def _cancelled(self, message: Notification) -> None:
        # The server answers a cancelled call with nothing, so nothing would end its stream.
        target = (message.params or {}).get("requestId")
        if isinstance(target, int | str) and not isinstance(target, bool):
            exchange = self.exchanges.pop(target, None)
            if exchange is not None:
                exchange.withdrawn()

    # -- what goes out: the session as a sink -------------------------------------------------

    def put(
        self, message: Outgoing, *, about: RequestId | None = None, droppable: bool = False
    ) -> None:
        """Bring a message to the stream it belongs to; see `Sink.put`."""
        answers = isinstance(message, _ANSWERS)
        if answers:
            exchange = self._answering
            if about is not None:
                exchange = self.exchanges.pop(about, exchange)
        else:
            exchange = None if about is None else self.exchanges.get(about)
        if exchange is None:
            if not answers:  # an answer is for no other stream
                self._broadcast(message, droppable=droppable)
        elif isinstance(message, Request) and exchange.unheard:
            self._cannot_ask(message)
        else:
            exchange.put(message, about=about, droppable=droppable)

    def close(self, reason: str) -> None:
        """Order of the server to end the session; see `Sink.close`."""
        if self.ended is None:
            asyncio.get_running_loop().call_soon(self.end, reason)

    def release(self, about: RequestId, retry: float) -> None:
        """A tool lets go of the stream of its request; its client comes back for the rest."""
        exchange = self.exchanges.get(about)
        if exchange is not None:
            exchange.let_go(retry)

    def lacks(self, about: RequestId, scopes: tuple[str, ...], *, challenged: bool) -> bool:
        """Look at the scopes of the request that is asked about; see `NetworkPort`."""
        exchange = self.exchanges.get(about)
        return exchange is None or exchange.lacks(about, scopes, challenged=challenged)

    def _broadcast(self, message: Outgoing, *, droppable: bool) -> None:
        line = line_of(message)
        if line:
            self.listen().write(line, droppable=droppable, hint=hints(message))

    def _cannot_ask(self, question: Request) -> None:
        """Nobody will read this question: the call that waits for it is told so at once."""
        answer = Failure(question.id, INTERNAL_ERROR, "The client has left")
        asyncio.get_running_loop().call_soon(self._server.receive, self.connection, answer)

    # -- streams ------------------------------------------------------------------------------

    def listen(self) -> Channel:
        """Return the stream of what belongs to no request."""
        if self.listening is None:
            self.listening = Channel(self.new_log(), broadcasts=True)
        return self.listening

    def new_log(self) -> EventLog:
        """Begin to number the events of another stream."""
        self._streams_begun += 1
        return EventLog(f"{self._nonce}{self._streams_begun}")

    def resume(self, event_id: str) -> tuple[Channel, int] | None:
        """Find the stream of an event and the number of the event; None when it is not known."""
        place = stream_of(event_id)
        if place is None:
            return None
        name, number = place
        channels = [self.listening, *(self._kept or {}).values()]
        channels += [exchange.channel for exchange in self.exchanges.values()]
        for channel in channels:
            if channel is not None and channel.log is not None and channel.log.name == name:
                return (channel, number) if number <= channel.log.number else None
        return None

    def _answered(self, exchange: Exchange) -> None:
        channel = exchange.channel
        if channel is None or channel.log is None or self.ended is not None:
            return
        if self._kept is None:
            self._kept = {}
        self._kept[channel.log.name] = channel
        if len(self._kept) > MAX_KEPT_STREAMS:
            del self._kept[next(iter(self._kept))]

    # -- the end ------------------------------------------------------------------------------

    def end(self, reason: str) -> None:
        """End the session and everything in it. Again: nothing."""
        if self.ended is not None:
            return
        self.ended = reason
        logger.debug("a session ended: %s", reason)
        self._forget(self)
        self._server.gone(self.connection)
        for exchange in list(self.exchanges.values()):
            exchange.close(reason)
        self.exchanges.clear()
        if self.listening is not None:
            self.listening.close()
        self._kept = None


class Sessions:
    """All sessions of one application: at most `max_sessions`, idle for `idle_timeout` seconds.

    A session with a request under way or a GET stream is not idle.
    """

    __slots__ = ("_by_id", "_idle", "_max_sessions", "_server")

    def __init__(self, server: ServerPort, *, max_sessions: int, idle_timeout: float) -> None:
        self._server = server
        self._max_sessions = max_sessions
        self._by_id: dict[bytes, Session] = {}
        # All of them, the one that was used longest ago first.
        self._idle: Lane[Session] = Lane(idle_timeout, self._unused)

    def __len__(self) -> int:
        return len(self._by_id)

    def make_room(self) -> bool:
        """Say whether one more session fits, ending the longest unused one for it if need be."""
        if len(self._by_id) < self._max_sessions:
            return True
        victim = next((session for session in self._idle if not session.busy), None)
        if victim is None:
            return False
        victim.end("room was needed for another session")
        return True

    def begin(self, principal: str | None) -> Session:
        """Connect a session that nobody can find yet: `keep` it once it has been greeted."""
        return Session(self._server, principal, self._forget)

    def keep(self, session: Session) -> None:
        """Let a session be found by its id."""
        self._by_id[session.id.encode()] = session
        self._idle.add(session)

    def find(self, id: bytes, principal: str | None) -> Session | None:
        """Find a session of this principal, and count that as use of it."""
        session = self._by_id.get(id)
        if session is None or session.principal != principal:
            return None
        self._idle.add(session)
        return session

    def used(self, session: Session) -> None:
        """Something happened in this session just now."""
        if session.id.encode() in self._by_id:
            self._idle.add(session)

    def finish_listening(self) -> None:
        """End the GET stream of every session: its clients take it up again elsewhere."""
        for session in self._by_id.values():
            if session.listening is not None and session.listening.stream is not None:
                session.listening.stream.finish()

    def end_all(self, reason: str) -> None:
        """End every session."""
        for session in list(self._by_id.values()):
            session.end(reason)
        self._idle.close()

    def _forget(self, session: Session) -> None:
        self._by_id.pop(session.id.encode(), None)
        self._idle.remove(session)

    def _unused(self, session: Session) -> None:
        if session.busy:
            self.used(session)
        else:
            session.end("nobody used it")
