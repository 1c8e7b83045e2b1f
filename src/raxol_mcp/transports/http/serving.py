"""Runs the application under uvicorn, for a process that has nothing else to serve, and ends it.

Binds, bounds what the HTTP server itself leaves open (connections, heads that never end, peers
that vanish), and ends in order: nothing new is taken, what runs gets a bounded time, streams are
ended, the server stops. What is answered is the application's.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.transports.http.app import MAX_STREAMS, asgi_app
from raxol_mcp.transports.http.collector import collecting_rarely
from raxol_mcp.transports.http.connections import KEEP_ALIVE, bounded_protocol
from raxol_mcp.transports.http.guards import LOOPBACK
from raxol_mcp.transports.http.sessions import MAX_SESSIONS
from raxol_mcp.transports.signals import EXIT_TIMEOUT, stop_signals

if TYPE_CHECKING:
    import uvicorn

    from raxol_mcp.transports.base import Authenticator, NetworkPort
    from raxol_mcp.transports.http.app import HttpApp

__all__ = ["check_binding", "serve_http"]

logger = logging.getLogger("raxol_mcp.http")

_BACKLOG: Final = 2048


async def serve_http(
    server: NetworkPort,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    path: str = "/mcp",
    authenticator: Authenticator | None = None,
    allow_unauthenticated: bool = False,
    allowed_hosts: Iterable[str] | None = None,
    allowed_origins: Iterable[str] | None = None,
    require_authorization: bool | None = None,
    legacy_sse: bool = True,
    root_path: str = "",
    max_sessions: int = MAX_SESSIONS,
    session_timeout: float = 1800.0,
    max_streams: int = MAX_STREAMS,
    max_connections: int = 8192,
    head_timeout: float = 30.0,
    body_timeout: float = 30.0,
    write_timeout: float = 30.0,
    drain_timeout: float = 5.0,
    exit_timeout: float = EXIT_TIMEOUT,
    collect_rarely: bool = True,
    ready: Callable[[str], None] | None = None,
) -> signal.Signals | None:
    """Serve `server` over HTTP until a signal ends it; return that signal.

    `port` 0 takes a free one; `ready(url)` is called once with the address to use. For the other
    options see `asgi_app`; its bounds are the defaults here.

    * To bind to more than this machine's own addresses there must be an `authenticator`, or
      `allow_unauthenticated`, and `allowed_hosts`: the names clients use for this server.
    * `root_path`: the part of the public path that a proxy in front takes away (`"/api"`).
    * `head_timeout`: how long a connection may be open before the head of a request is complete.
      `drain_timeout`: how long calls that run may take when serving ends. In seconds.
    * `collect_rarely`: while it serves, Python's garbage collector looks less often, and not at
      what was there before (ADR-0021). That is of the whole process: False leaves it alone.

    When the task that runs it is cancelled, it ends in the same order. Raises ConfigurationError
    for options that cannot be served, and for an address that cannot be bound.
    """
    if root_path and (not root_path.startswith("/") or root_path.endswith("/")):
        raise ConfigurationError(f"root_path must be like '/api', got: {root_path!r}")
    check_binding(
        host,
        authenticated=authenticator is not None or allow_unauthenticated,
        named=allowed_hosts is not None,
    )
    app = asgi_app(
        server,
        path=path,
        allowed_hosts=allowed_hosts,
        allowed_origins=allowed_origins,
        authenticator=authenticator,
        require_authorization=require_authorization,
        legacy_sse=legacy_sse,
        max_sessions=max_sessions,
        session_timeout=session_timeout,
        max_streams=max_streams,
        write_timeout=write_timeout,
        body_timeout=body_timeout,
    )
    listener = _bound(host, port, write_timeout)
    received: list[signal.Signals] = []
    try:
        await app.start()
        runner = _runner(
            app,
            max_connections=max_connections,
            head_timeout=head_timeout,
            drain_timeout=drain_timeout,
            ready=ready,
            path=path,
            root_path=root_path,
        )

        def stops(number: signal.Signals) -> None:
            received.append(number)
            runner.should_exit = True

        loop = asyncio.get_running_loop()
        with (
            stop_signals(loop, stops, at_exit=lambda: None, exit_timeout=exit_timeout),
            collecting_rarely() if collect_rarely else nullcontext(),
        ):
            try:
                await _until_ended(runner, listener)
            finally:
                await app.stop()
    finally:
        listener.close()
    return received[0] if received else None


async def _until_ended(runner: uvicorn.Server, listener: socket.socket) -> None:
    """Run until the end; a cancellation is passed on after the end has been orderly."""
    serving = asyncio.get_running_loop().create_task(runner.serve([listener]))
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        runner.should_exit = True
        await serving
        raise


def check_binding(host: str, *, authenticated: bool, named: bool) -> None:
    """Refuse an address that others can reach, unless who they are and what they call us is known.

    `authenticated`: somebody checks that, or it was said that nobody need. `named`: there is a
    list of the hosts to allow. Raises ConfigurationError.
    """
    if _is_loopback(host):
        return
    if not authenticated:
        raise ConfigurationError(
            f"binding to {host} without authentication lets anybody in who can reach it: pass "
            "authenticator=... (command line: --tokens, --tokens-env or --jwt-issuer), or "
            "allow_unauthenticated=True (--allow-unauthenticated) if that is meant"
        )
    if not named:
        raise ConfigurationError(
            f"binding to {host} needs allowed_hosts=[...]: the names by which clients call "
            "this server (command line: --allowed-host)"
        )


def _is_loopback(host: str) -> bool:
    if host in LOOPBACK:
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False  # a name: whatever it means, it is not ours to say


def _bound(host: str, port: int, write_timeout: float) -> socket.socket:
    """Bind the one socket that is listened on. Raises ConfigurationError."""
    host = host.strip("[]")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ConfigurationError(f"cannot listen on {host} port {port}: {error}") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Inherited by every connection. A peer that takes nothing, or is gone without a word, is
        # given up by the system, also where we have closed and only unsent bytes are left.
        user_timeout = getattr(socket, "TCP_USER_TIMEOUT", None)
        if user_timeout is not None:
            listener.setsockopt(socket.IPPROTO_TCP, user_timeout, int(write_timeout * 1000))
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise ConfigurationError(f"cannot listen on {host} port {port}: {error}") from error
    return listener


def _runner(
    app: HttpApp,
    *,
    max_connections: int,
    head_timeout: float,
    drain_timeout: float,
    ready: Callable[[str], None] | None,
    path: str,
    root_path: str,
) -> uvicorn.Server:
    """Make the uvicorn server. Its import costs start-up, so it comes when it is needed."""
    import uvicorn

    class Runner(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if ready is not None and sockets:
                name, port = sockets[0].getsockname()[:2]
                ready(f"http://{f'[{name}]' if ':' in name else name}:{port}{path}")

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            # Streams would keep it waiting, and the lifespan comes only after that wait.
            loop = asyncio.get_running_loop()
            ending = loop.create_task(app.stop(drain_timeout=drain_timeout))
            await super().shutdown(sockets)
            await ending

        def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]  # a generator there
            return nullcontext()

    return Runner(
        uvicorn.Config(
            app,
            http=bounded_protocol(max_connections, head_timeout),
            ws="none",
            lifespan="off",
            interface="asgi3",
            backlog=_BACKLOG,
            access_log=False,
            log_config=None,
            proxy_headers=False,
            root_path=root_path,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE,
            # Past the drain there is only what a stuck client does not take.
            timeout_graceful_shutdown=int(drain_timeout) + 2,
        )
    )
