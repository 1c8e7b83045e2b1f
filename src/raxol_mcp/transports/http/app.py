"""`asgi_app`: one ASGI 3 application that serves a server over HTTP, wherever it is mounted.

Finds the part that answers, and owns the start and the end. What an answer is, is decided in the
parts. No framework: whatever speaks ASGI runs it, and any path of a larger application may hold it.

| below the mount | methods | |
|---|---|---|
| `/mcp`, `/mcp/` | POST, GET, DELETE, OPTIONS | the endpoint, both eras |
| `/mcp/sse`, `/mcp/messages` | GET; POST | the two URLs of 2024-11-05 |
| `/health` | GET, HEAD, OPTIONS | `{"status":"ok"}` |
| the path of the authenticator's metadata | GET, HEAD, OPTIONS | RFC 9728 |
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, cast

from raxol_mcp.core.authentication import Challenge
from raxol_mcp.errors import ConfigurationError
from raxol_mcp.transports.http.asgi import (
    Answer,
    Request,
    challenge_of,
    empty,
    json_answer,
    path_of,
    plain,
    say,
)
from raxol_mcp.transports.http.bodies import Bodies
from raxol_mcp.transports.http.cors import is_preflight, preflight, readable_by
from raxol_mcp.transports.http.exchanges import Waits
from raxol_mcp.transports.http.guards import Guards, headers_of
from raxol_mcp.transports.http.legacy_sse import LegacyStreams
from raxol_mcp.transports.http.listening import Listening
from raxol_mcp.transports.http.patience import Patience
from raxol_mcp.transports.http.post import Posts
from raxol_mcp.transports.http.sessions import MAX_SESSIONS, Sessions
from raxol_mcp.transports.http.streams import Streams

if TYPE_CHECKING:
    from raxol_mcp.transports.base import Authenticator, NetworkPort
    from raxol_mcp.transports.http.asgi import Header, Receive, Scope, Send

__all__ = ["HttpApp", "asgi_app"]

logger = logging.getLogger("raxol_mcp.http")

MAX_STREAMS: Final = 4096

_NOT_FOUND: Final = plain(404, "Not found")
_HEALTHY: Final = json_answer(200, b'{"status":"ok"}')
_REFUSED: Final = plain(503, "This server refuses to start; its log says why")
_ENDED: Final = plain(503, "This server has ended", (b"connection", b"close"))

_Handler = Callable[["Request"], Awaitable[None]]


class HttpApp:
    """The application; `asgi_app` makes one. It starts its server with its lifespan.

    Mounted in a larger application, whose lifespan it does not see, it starts with the first
    request, or earlier with `async with app.lifespan():`, which also ends it.
    """

    def __init__(
        self,
        server: NetworkPort,
        *,
        path: str,
        guards: Guards,
        authenticator: Authenticator | None,
        require_authorization: bool | None,
        legacy_sse: bool,
        max_sessions: int,
        session_timeout: float,
        max_streams: int,
        keepalive: float,
        write_timeout: float,
        body_timeout: float,
    ) -> None:
        self._server = server
        self._guards = guards
        self._authenticator = authenticator
        self._require_authorization = require_authorization
        self._patience = Patience()
        self._bodies = Bodies(
            self._patience, max_bytes=server.max_message_bytes, timeout=body_timeout
        )
        waits = Waits(self._patience, keepalive=keepalive, write_timeout=write_timeout)
        self._streams = Streams(
            keepalive=keepalive, write_timeout=write_timeout, max_streams=max_streams
        )
        self._sessions = Sessions(server, max_sessions=max_sessions, idle_timeout=session_timeout)
        self._posts = Posts(server, self._bodies, waits, self._streams, self._sessions)
        self._listening = Listening(self._sessions, self._streams)
        self._legacy = LegacyStreams(server, self._bodies, self._streams, f"{path}/messages")
        self._started = False
        self._ended = False
        self._starting = asyncio.Lock()
        endpoint: dict[str, _Handler] = {
            "POST": self._posts.answer,
            "GET": self._listening.listen,
            "DELETE": self._listening.end,
        }
        self._routes: dict[str, dict[str, _Handler]] = {path: endpoint, f"{path}/": endpoint}
        if legacy_sse:
            self._routes[f"{path}/sse"] = {"GET": self._legacy.listen}
            self._routes[f"{path}/messages"] = {"POST": self._legacy.message}
        self._documents = {"/health": _HEALTHY}
        metadata = None if authenticator is None else authenticator.metadata()
        if metadata is not None:
            self._documents[metadata[0]] = json_answer(200, metadata[1])

    def __repr__(self) -> str:
        return (
            f"<HttpApp {len(self._sessions)} sessions | {len(self._streams)} streams"
            f" | {len(self._posts)} requests>"
        )

    def stats(self) -> dict[str, int]:
        """Counts: sessions, streams, requests that wait for their answer, legacy connections."""
        return {
            "sessions": len(self._sessions),
            "streams": len(self._streams),
            "requests": len(self._posts),
            "legacy": len(self._legacy),
        }

    # -- life ---------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start the server, unless it has started. Raises ConfigurationError when it refuses."""
        async with self._starting:
            if self._started:
                return
            refusals = self._server.refusals_for_network(required=self._require_authorization)
            if refusals:
                raise ConfigurationError(" ".join(refusals))
            await self._server.start()
            self._started = True
            self._ended = False

    async def stop(self, *, drain_timeout: float = 0.0) -> None:
        """End the server, every stream and every session; nothing is answered any more.

        Calls that run have `drain_timeout` seconds, and are dropped then.
        """
        async with self._starting:
            if not self._started:
                return
            self._started = False
            self._ended = True
            try:
                if drain_timeout > 0:
                    self._sessions.finish_listening()
                    await self._posts.drain(drain_timeout)
                # Open listens are closed with their result, which their streams bring.
                await self._server.stop()
            finally:
                self._posts.close("the server has ended")
                self._sessions.end_all("the server has ended")
                self._streams.finish()
                self._streams.close()

    @asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncIterator[None]:
        """Serve inside the block: what a framework takes as its own `lifespan`."""
        await self.start()
        try:
            yield
        finally:
            await self.stop()

    # -- ASGI ---------------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or follow the life of the process."""
        if scope["type"] != "http":
            await self._no_request(scope, receive, send)
            return
        raw: list[Header] = scope["headers"]  # type: ignore[assignment]  # ASGI 3; the way of all
        headers = headers_of(raw)
        if isinstance(headers, Answer):
            await say(headers, send)
            return
        refusal = self._guards.refusal(headers)
        if refusal is not None:
            await say(refusal, send)
            return
        if self._guards.named and b"origin" in headers:
            send = readable_by(headers[b"origin"], send)
        path: str = path_of(scope) if scope.get("root_path") else scope["path"]  # type: ignore[assignment]  # as above
        method: str = scope["method"]  # type: ignore[assignment]  # as above
        route = self._routes.get(path)
        if route is None:
            await self._document(scope, path, headers, send)
            return
        handler = route.get(method)
        if handler is None:
            await say(self._otherwise(method, headers, route), send, head=method == "HEAD")
            return
        request = Request(scope, raw, headers, receive, send)
        if self._authenticator is not None and not await self._authenticated(request):
            return
        if self._started or await self._start_late(send):
            await handler(request)

    async def _authenticated(self, request: Request) -> bool:
        assert self._authenticator is not None, "asked only where there is one"
        authorization = request.headers.get(b"authorization")
        result = await self._authenticator.authenticate(
            [] if authorization is None else [authorization]
        )
        if isinstance(result, Challenge):
            refusal = plain(result.status, result.message, *challenge_of(result))
            await say(refusal, request.send)
            return False
        request.principal = result.principal
        request.scopes = result.scopes
        request.challenge = getattr(self._authenticator, "insufficient_scope", None)
        return True

    async def _start_late(self, send: Send) -> bool:
        """Start with the first request, where no lifespan came before it."""
        if self._ended:
            await say(_ENDED, send)
            return False
        try:
            await self.start()
        except ConfigurationError as error:
            logger.error("the server refuses to start: %s", error)
            await say(_REFUSED, send)
            return False
        return True

    def _otherwise(
        self, method: str, headers: dict[bytes, bytes], allowed: Iterable[str]
    ) -> Answer:
        """Answer a method that nothing here handles, and OPTIONS."""
        if self._guards.named and is_preflight(method, headers):
            return preflight(headers, allowed)
        allow = (b"allow", ", ".join([*allowed, "OPTIONS"]).encode())
        if method == "OPTIONS":
            return empty(204, allow)
        return plain(405, "Method not allowed", allow)

    async def _document(
        self, scope: Scope, path: str, headers: dict[bytes, bytes], send: Send
    ) -> None:
        method = cast("str", scope["method"])
        # A metadata document stands at a place of the whole host, not below the mount.
        document = self._documents.get(path) or self._documents.get(cast("str", scope["path"]))
        if document is None:
            await say(_NOT_FOUND, send, head=method == "HEAD")
        elif method in ("GET", "HEAD"):
            await say(document, send, head=method == "HEAD")
        else:
            await say(self._otherwise(method, headers, ("GET", "HEAD")), send)

    async def _no_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            # Refused before the upgrade, whatever its Host and Origin: nothing is served there.
            await receive()
            await send({"type": "websocket.close", "code": 1000})
        elif scope["type"] == "lifespan":
            await self._live(receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            event = await receive()
            if event["type"] == "lifespan.startup":
                try:
                    await self.start()
                except Exception as error:
                    logger.error("the server does not start", exc_info=error)
                    await send({"type": "lifespan.startup.failed", "message": str(error)})
                    return
                await send({"type": "lifespan.startup.complete"})
            else:
                await self.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return


def asgi_app(
    server: NetworkPort,
    *,
    path: str = "/mcp",
    allowed_hosts: Iterable[str] | None = None,
    allowed_origins: Iterable[str] | None = None,
    authenticator: Authenticator | None = None,
    require_authorization: bool | None = None,
    legacy_sse: bool = True,
    max_sessions: int = MAX_SESSIONS,
    session_timeout: float = 1800.0,
    max_streams: int = MAX_STREAMS,
    keepalive: float = 15.0,
    write_timeout: float = 30.0,
    body_timeout: float = 30.0,
) -> HttpApp:
    """Make the ASGI application that serves `server` at `path`.

    * `allowed_hosts`, `allowed_origins`: see `Guards`. The defaults serve this machine alone.
    * `authenticator` says who a request comes from; without one everybody is anonymous.
    * `require_authorization` overrides what RAXOL_MCP_ENV says: whether the server must have both
      authorizers to be served at all.
    * `legacy_sse` adds the two URLs of MCP 2024-11-05 below `path`.
    * At most `max_sessions`, each ended after `session_timeout` without use; at most
      `max_streams` open event streams, of which one principal may have half.
    * `keepalive`: how long a stream says nothing before it sends a comment. `write_timeout`: how
      long a client may read nothing. `body_timeout`: how long a body may take. All in seconds.

    Raises ConfigurationError for options that cannot be served.
    """
    if not path.startswith("/"):
        raise ConfigurationError(f"path must begin with a slash, got: {path!r}")
    durations = (session_timeout, keepalive, write_timeout, body_timeout)
    if not all(duration > 0 for duration in durations) or max_sessions < 1 or max_streams < 1:
        raise ConfigurationError("bounds and timeouts must be more than 0")
    return HttpApp(
        server,
        path=path.rstrip("/"),
        guards=Guards(allowed_hosts, allowed_origins),
        authenticator=authenticator,
        require_authorization=require_authorization,
        legacy_sse=legacy_sse,
        max_sessions=max_sessions,
        session_timeout=session_timeout,
        max_streams=max_streams,
        keepalive=keepalive,
        write_timeout=write_timeout,
        body_timeout=body_timeout,
    )
