"""One POST to the endpoint: from its headers and its body to the one answer.

The era is told by what the request carries, in its headers or its body. In the stateless era a
POST is a connection of its own, and ends with its answer or when its client leaves; in the
handshake era it is one message of a session, which goes on (`sessions.py`).
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final, cast

from raxol_mcp.core.peers import ConnectionFacts
from raxol_mcp.errors import INTERNAL_ERROR, INVALID_REQUEST, UNSUPPORTED_VERSION
from raxol_mcp.transports.http.asgi import Answer, empty, json_answer, plain, say
from raxol_mcp.transports.http.exchanges import Exchange
from raxol_mcp.transports.http.guards import accepts_events, accepts_json, is_json
from raxol_mcp.transports.http.rules import (
    handshake_status,
    is_stateless,
    stateless_refusal,
    stateless_status,
)
from raxol_mcp.transports.http.streams import FINISHED, note
from raxol_mcp.wire.jsonrpc import (
    Batch,
    Failure,
    Ignored,
    Invalid,
    Notification,
    Request,
    Response,
    decode,
    encode,
)
from raxol_mcp.wire.meta import HANDSHAKE_VERSIONS, STATELESS_VERSIONS

if TYPE_CHECKING:
    from raxol_mcp.transports.base import NetworkPort
    from raxol_mcp.transports.http.asgi import Request as Asked
    from raxol_mcp.transports.http.bodies import Bodies
    from raxol_mcp.transports.http.exchanges import Waits
    from raxol_mcp.transports.http.sessions import Session, Sessions
    from raxol_mcp.transports.http.streams import Streams
    from raxol_mcp.wire.jsonrpc import Incoming, JSONObject

__all__ = ["ANONYMOUS", "Posts"]

logger = logging.getLogger("raxol_mcp.http")

# Whose quota the POSTs of clients count against that nobody can tell apart (ADR-0009).
ANONYMOUS: Final = "anonymous"
# As their headers usually come.
_VERSIONS: Final = {version.encode(): version for version in HANDSHAKE_VERSIONS}
# The only revision that has batches.
_BATCH_VERSION: Final = "2025-03-26"

_NOT_JSON: Final = plain(415, "Unsupported media type: send application/json, in no encoding")
_NOT_ACCEPTED: Final = plain(
    406, "Not acceptable: accept both application/json and text/event-stream"
)
_USUAL_ACCEPTS: Final = frozenset(
    {b"application/json, text/event-stream", b"text/event-stream, application/json"}
)
_ACCEPTED: Final = empty(202)
_FULL: Final = plain(503, "Too many sessions", (b"retry-after", b"30"))
_MANY_STREAMS: Final = plain(503, "Too many streams", (b"retry-after", b"30"))
_NO_SESSION: Final = (
    "Send initialize first and its Mcp-Session-Id from then on, or use the stateless protocol: "
    f"MCP-Protocol-Version: {STATELESS_VERSIONS[-1]} and the same version in params._meta"
)

_FACTS: Final = ConnectionFacts(transport="http", share=ANONYMOUS, greeting_required=True)


class Posts:
    """Answers POST requests that were let through by the guards."""

    def __init__(
        self,
        server: NetworkPort,
        bodies: Bodies,
        waits: Waits,
        streams: Streams,
        sessions: Sessions,
    ) -> None:
        self._bodies = bodies
        self._max_depth = server.max_depth
        self._server = server
        self._sessions = sessions
        self._streams = streams
        self._waits = waits
        self._open: set[Exchange] = set()
        self._listens = 0
        self._drained: asyncio.Event | None = None

    def __len__(self) -> int:
        return len(self._open)

    async def drain(self, timeout: float) -> None:  # noqa: ASYNC109  # a bound, not a scope
        """Wait until every POST but the listens has its answer, at most `timeout` seconds."""
        self._drained = asyncio.Event()
        self._check_drained()
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._drained.wait()

    def close(self, reason: str) -> None:
        """End every POST that waits, without another word."""
        for exchange in list(self._open):
            exchange.close(reason)

    def _check_drained(self) -> None:
        if self._drained is not None and len(self._open) <= self._listens:
            self._drained.set()

    async def answer(self, asked: Asked) -> None:
        """Answer one POST."""
        headers = asked.headers
        refusal = _refusal(headers)
        if refusal is not None:
            await say(refusal, asked.send)
            return
        body = await self._bodies.read(asked)
        if isinstance(body, bytes):
            message = decode(body, max_depth=self._max_depth)
            if is_stateless(headers.get(b"mcp-protocol-version"), message):
                await self._stateless(asked, message)
                return
            session = self._session(asked, message)
            if isinstance(session, Answer):
                await say(session, asked.send)
            elif session is None:
                await self._initialize(asked, cast("Request", message))
            elif isinstance(message, Request) or _is_answered(message):
                await self._in_session(session, asked, message)
            else:
                session.receive(message, None)
                await say(_ACCEPTED, asked.send)
        elif body is not None:
            await say(body, asked.send)

    # -- the stateless era --------------------------------------------------------------------

    async def _stateless(self, asked: Asked, message: Incoming) -> None:
        send = asked.send
        if not isinstance(message, Request):
            await say(_not_called(asked.headers, message), send)
            return
        failure = stateless_refusal(asked, message)
        if failure is not None:
            await say(json_answer(400, encode(failure)), send)
            return
        listens = message.method == "subscriptions/listen"
        if listens and self._streams.full_for(asked.principal):
            await say(_MANY_STREAMS, send)
            return
        exchange = Exchange(asked, self._waits, self._streams, stateless_status)
        facts, principal = _FACTS, asked.principal
        if principal is not None:
            facts = ConnectionFacts("http", principal, principal, True)
        connection = self._server.open(exchange, facts)
        self._open.add(exchange)
        self._listens += listens
        try:
            try:
                self._server.receive(connection, message)
            except Exception:  # a bug behind the port costs this request, not the connection
                logger.exception("a message could not be handled")
                exchange.put(Failure(message.id, INTERNAL_ERROR, "Internal error"))
            end = await exchange.wait()
            if end is None and exchange.answer is None:
                end = await exchange.bring()
        finally:
            # Closing the response cancels (MCP 2026-07-28 streamable-http §Cancellation); after
            # an answer there is nothing left to cancel.
            self._listens -= listens
            self._open.discard(exchange)
            if self._drained is not None:
                self._check_drained()
            exchange.left()
            self._server.gone(connection)
        if end is None:
            end = await exchange.bring_json()
        if end is not FINISHED:
            note(end)

    # -- the handshake era --------------------------------------------------------------------

    def _session(self, asked: Asked, message: Incoming) -> Session | Answer | None:
        """Find the session of a message, or what to answer; None: it is to begin one."""
        headers = asked.headers
        # What comes most is looked for first: a test for a union takes ten times longer.
        is_request = isinstance(message, Request)
        if not is_request and isinstance(message, Invalid | Ignored):
            return _not_taken(message)
        id = headers.get(b"mcp-session-id")
        if id is None:
            if isinstance(message, Request) and message.method == "initialize":
                return None
            return _refused(400, message, _NO_SESSION)
        session = self._sessions.find(id, asked.principal)
        if session is None:
            return _refused(404, message, "Session not found: send initialize again")
        problem = _session_problem(session, headers, message)
        return session if problem is None else _refused(400, message, problem)

    async def _in_session(self, session: Session, asked: Asked, message: Incoming) -> None:
        exchange = Exchange(asked, self._waits, self._streams, handshake_status, session.new_log)
        exchange.resumable = session.resumable
        if isinstance(message, Batch):
            exchange.begin()
        self._open.add(exchange)
        try:
            try:
                session.receive(message, exchange)
            except Exception:
                logger.exception("a message could not be handled")
                id = message.id if isinstance(message, Request) else None
                session.put(Failure(id, INTERNAL_ERROR, "Internal error"), about=id)
            end = await exchange.wait()
            if end is None:
                answered = exchange.answer is not None
                end = await (exchange.bring_json() if answered else exchange.bring())
        finally:
            # Losing the stream is no cancellation (MCP 2025-11-25 basic/transports).
            self._open.discard(exchange)
            if self._drained is not None:
                self._check_drained()
            exchange.left()
        if end is not FINISHED:
            note(end)

    async def _initialize(self, asked: Asked, message: Request) -> None:
        send = asked.send
        session = self._sessions.begin(asked.principal)
        exchange = Exchange(asked, self._waits, self._streams, handshake_status)
        try:
            session.receive(message, exchange)
        except Exception:
            logger.exception("initialize could not be handled")
            exchange.put(Failure(message.id, INTERNAL_ERROR, "Internal error"))
        answer = exchange.answer
        if not isinstance(answer, Response):  # refused: no session comes of it
            session.end("not greeted")
        elif not self._sessions.make_room():
            session.end("too many sessions")
            await say(_FULL, send)
            return
        else:
            session.version = str(cast("JSONObject", answer.result)["protocolVersion"])
            self._sessions.keep(session)
            exchange.extra = ((b"mcp-session-id", session.id.encode()),)
        note(await exchange.bring())


def _refusal(headers: dict[bytes, bytes]) -> Answer | None:
    """Refuse what is no JSON, and whoever does not take both forms of an answer."""
    if (
        headers.get(b"content-type") == b"application/json"
        and headers.get(b"accept") in _USUAL_ACCEPTS
        and b"content-encoding" not in headers
    ):
        return None  # what nearly every client sends
    encoding = headers.get(b"content-encoding")
    if not is_json(headers.get(b"content-type")) or encoding not in (None, b"identity"):
        return _NOT_JSON
    accept = headers.get(b"accept")
    return None if accepts_json(accept) and accepts_events(accept) else _NOT_ACCEPTED


def _session_problem(
    session: Session, headers: dict[bytes, bytes], message: Incoming
) -> str | None:
    version = headers.get(b"mcp-protocol-version")
    if (
        version is not None
        and _VERSIONS.get(version) != session.version
        and str(version, "latin-1").strip(" \t") != session.version
    ):
        return f"MCP-Protocol-Version is not {session.version}, which initialize agreed on"
    if isinstance(message, Batch) and session.version != _BATCH_VERSION:
        return "A JSON array is not a message here"
    return None


def _is_answered(message: Incoming) -> bool:
    """Say whether anything in what is no request by itself is owed an answer."""
    if not isinstance(message, Batch):
        return False
    return any(isinstance(part, Request | Invalid) for part in message.messages)


def _not_called(headers: dict[bytes, bytes], message: Incoming) -> Answer:
    """Answer what is no request in the stateless era, where it leads to nothing."""
    if isinstance(message, Notification):
        version = headers.get(b"mcp-protocol-version", b"").strip(b" \t")
        if version.decode("latin-1") in STATELESS_VERSIONS:
            return _ACCEPTED
        data = {"supported": list(STATELESS_VERSIONS), "requested": version.decode("latin-1")}
        failure = Failure(None, UNSUPPORTED_VERSION, "Unsupported protocol version", data)
        return json_answer(400, encode(failure))
    if isinstance(message, Invalid | Ignored):
        return _not_taken(message)
    return _refused(400, message, "A request or a notification is wanted")


def _not_taken(message: Invalid | Ignored) -> Answer:
    if isinstance(message, Invalid):
        return json_answer(400, encode(message.failure))
    return _refused(400, message, f"Invalid request: {message.reason}")


def _refused(status: int, message: Incoming, text: str) -> Answer:
    id = message.id if isinstance(message, Request) else None
    return json_answer(status, encode(Failure(id, INVALID_REQUEST, text)))
