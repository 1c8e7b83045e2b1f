"""HTTP with server-sent events as MCP 2024-11-05 had it: a stream to hear, a URL to speak to.

A GET opens the stream and is the connection: when it ends, so does everything of it. Its first
event says where to POST messages; every answer comes on the stream. Kept for clients that know
nothing newer (MCP 2025-11-25 basic/transports §Backwards Compatibility).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import parse_qs, quote

from raxol_mcp.core.peers import ConnectionFacts
from raxol_mcp.transports.http.asgi import empty, json_answer, plain, say
from raxol_mcp.transports.http.exchanges import hints, line_of
from raxol_mcp.transports.http.guards import accepts_events, is_json
from raxol_mcp.transports.http.sessions import new_secret
from raxol_mcp.transports.http.streams import EventStream, note
from raxol_mcp.wire import sse
from raxol_mcp.wire.jsonrpc import Ignored, Invalid, decode, encode

if TYPE_CHECKING:
    from raxol_mcp.transports.base import NetworkPort
    from raxol_mcp.transports.http.asgi import Request
    from raxol_mcp.transports.http.bodies import Bodies
    from raxol_mcp.transports.http.streams import Streams
    from raxol_mcp.wire.jsonrpc import Outgoing, RequestId

__all__ = ["LegacyStreams"]

_NOT_ACCEPTED: Final = plain(406, "Not acceptable: accept text/event-stream")
_NOT_JSON: Final = plain(415, "Unsupported media type: send application/json, in no encoding")
_NO_SESSION: Final = plain(400, "Bad request: the session_id of the stream is missing")
_UNKNOWN_SESSION: Final = plain(404, "Session not found")
_NOT_READ: Final = plain(503, "Read the stream first", (b"retry-after", b"1"))
_MANY_STREAMS: Final = plain(503, "Too many streams", (b"retry-after", b"30"))
_ACCEPTED: Final = empty(202)


class _Connection:
    """One stream and what the server says on it."""

    __slots__ = ("connection", "principal", "stream")

    def __init__(self, stream: EventStream, principal: str | None) -> None:
        self.connection: Hashable = None
        self.principal = principal
        self.stream = stream

    def put(
        self, message: Outgoing, *, about: RequestId | None = None, droppable: bool = False
    ) -> None:
        """Write one message; see `Sink.put`."""
        line = line_of(message)
        if line:
            hint = line if hints(message) else None
            self.stream.put(sse.message(line), about=about, droppable=droppable, hint=hint)

    def close(self, reason: str) -> None:
        """End the stream; see `Sink.close`."""
        self.stream.finish()


class LegacyStreams:
    """Answers the two URLs. `messages` is the path of the second, below the mount."""

    def __init__(
        self, server: NetworkPort, bodies: Bodies, streams: Streams, messages: str
    ) -> None:
        self._server = server
        self._bodies = bodies
        self._streams = streams
        self._messages = messages
        self._open: dict[str, _Connection] = {}

    def __len__(self) -> int:
        return len(self._open)

    async def listen(self, request: Request) -> None:
        """Open a stream, and with it a connection."""
        principal, send = request.principal, request.send
        if not accepts_events(request.headers.get(b"accept")):
            await say(_NOT_ACCEPTED, send)
            return
        if self._streams.full_for(principal):
            await say(_MANY_STREAMS, send)
            return
        id = new_secret()
        stream = EventStream(send, self._streams, principal=principal)
        opened = self._open[id] = _Connection(stream, principal)
        facts = ConnectionFacts(
            transport="sse", principal=principal, share=principal, greeting_required=True
        )
        opened.connection = self._server.open(opened, facts)
        root = quote(cast("str", request.scope.get("root_path") or ""))
        place = f"{root}{self._messages}?session_id={id}"
        stream.put(sse.event(place.encode(), name="endpoint"), about=0)
        try:
            note(await stream.serve(request.receive))
        finally:
            del self._open[id]
            self._server.gone(opened.connection)

    async def message(self, request: Request) -> None:
        """Take one message; what it is answered comes on the stream it belongs to."""
        headers, send = request.headers, request.send
        query = cast("bytes", request.scope.get("query_string") or b"")
        ids = parse_qs(query).get(b"session_id", [])
        opened = self._open.get(ids[0].decode("latin-1")) if len(ids) == 1 else None
        encoding = headers.get(b"content-encoding")
        if not is_json(headers.get(b"content-type")) or encoding not in (None, b"identity"):
            await say(_NOT_JSON, send)
        elif len(ids) != 1:
            await say(_NO_SESSION, send)
        elif opened is None or opened.principal != request.principal:
            await say(_UNKNOWN_SESSION, send)
        elif opened.stream.over:
            # Answers without end for a client that reads none of them: it has to read first.
            await say(_NOT_READ, send)
        else:
            await self._take(opened, request)

    async def _take(self, opened: _Connection, request: Request) -> None:
        send = request.send
        body = await self._bodies.read(request)
        if not isinstance(body, bytes):
            if body is not None:
                await say(body, send)
            return
        message = decode(body, max_depth=self._server.max_depth)
        if isinstance(message, Invalid):
            await say(json_answer(400, encode(message.failure)), send)
        elif isinstance(message, Ignored):
            await say(plain(400, f"Bad request: {message.reason}"), send)
        elif opened.stream.end is not None:  # it ended while the body came
            await say(_UNKNOWN_SESSION, send)
        else:
            self._server.receive(opened.connection, message)
            await say(_ACCEPTED, send)
