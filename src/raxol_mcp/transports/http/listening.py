"""GET and DELETE of a session: the stream it is told things on, where to resume, and its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from raxol_mcp.transports.http.asgi import empty, plain, say
from raxol_mcp.transports.http.exchanges import RETRY
from raxol_mcp.transports.http.guards import accepts_events
from raxol_mcp.transports.http.rules import names_stateless
from raxol_mcp.transports.http.sessions import Session
from raxol_mcp.transports.http.streams import EventStream, note

if TYPE_CHECKING:
    from raxol_mcp.transports.http.asgi import Answer, Request
    from raxol_mcp.transports.http.channels import Channel
    from raxol_mcp.transports.http.sessions import Sessions
    from raxol_mcp.transports.http.streams import Streams

__all__ = ["Listening"]

_NO_SUCH_METHOD: Final = plain(
    405, "Method not allowed: this protocol version has POST alone", (b"allow", b"POST, OPTIONS")
)
_NOT_ACCEPTED: Final = plain(406, "Not acceptable: accept text/event-stream")
_NO_SESSION: Final = plain(400, "Bad request: the Mcp-Session-Id header is missing")
_UNKNOWN_SESSION: Final = plain(404, "Session not found")
_WRONG_VERSION: Final = plain(400, "Bad request: not the MCP-Protocol-Version of this session")
_UNKNOWN_EVENT: Final = plain(400, "Bad request: Last-Event-ID names no event that is kept")
_TAKEN: Final = plain(409, "Conflict: this session has a stream already")
_MANY_STREAMS: Final = plain(503, "Too many streams", (b"retry-after", b"30"))
_ENDED: Final = empty(204)


class Listening:
    """Answers GET and DELETE requests that were let through by the guards."""

    def __init__(self, sessions: Sessions, streams: Streams) -> None:
        self._sessions = sessions
        self._streams = streams

    async def listen(self, request: Request) -> None:
        """Open the stream of a session, or resume one of its streams after an event.

        The second stream of a session is refused while the first is open: it would take away
        what the first is told. Whoever names an event has read that stream, and may take it over.
        """
        headers, send = request.headers, request.send
        if not accepts_events(headers.get(b"accept")):
            await say(_NOT_ACCEPTED, send)
            return
        session = self._session(request)
        if not isinstance(session, Session):
            await say(session, send)
            return
        place = self._place(session, headers.get(b"last-event-id"))
        if not isinstance(place, tuple):
            await say(place, send)
            return
        channel, after = place
        stream = EventStream(send, self._streams, principal=request.principal)
        channel.attach(stream, after=after)
        if session.resumable and after is None:
            channel.prime(RETRY)
        try:
            note(await stream.serve(request.receive))
        finally:
            channel.detach(stream)
            self._sessions.used(session)

    async def end(self, request: Request) -> None:
        """End a session because its client says so."""
        session = self._session(request)
        if isinstance(session, Session):
            session.end("deleted by its client")
            await say(_ENDED, request.send)
        else:
            await say(session, request.send)

    def _session(self, request: Request) -> Session | Answer:
        headers = request.headers
        version = headers.get(b"mcp-protocol-version")
        if names_stateless(version):
            return _NO_SUCH_METHOD
        id = headers.get(b"mcp-session-id")
        if id is None:
            return _NO_SESSION
        session = self._sessions.find(id, request.principal)
        if session is None:
            return _UNKNOWN_SESSION
        if version is not None and version.strip(b" \t").decode("latin-1") != session.version:
            return _WRONG_VERSION
        return session

    def _place(
        self, session: Session, last_event_id: bytes | None
    ) -> tuple[Channel, int | None] | Answer:
        if self._streams.full_for(session.principal):
            return _MANY_STREAMS
        if last_event_id:
            return session.resume(last_event_id.decode("latin-1")) or _UNKNOWN_EVENT
        channel = session.listen()
        return _TAKEN if channel.stream is not None else (channel, None)
