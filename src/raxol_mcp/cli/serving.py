"""Serves one server, for a process that has nothing else to do, and ends it.

Over two descriptors, or over HTTP.

Decides how patient the end is, and what exit code each end deserves. The order in which a
connection ends is the transport's.

A thread cannot be killed, and code of the user's may refuse to end in many other ways: a lifespan
that hangs, a thread that is no daemon, a task that swallows its cancellation. None of them keeps
the process: each step of the end has a bound, and past it the process is ended as it is.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Coroutine, Hashable
from importlib import import_module
from typing import TYPE_CHECKING, Final

from raxol_mcp.cli.exit_codes import FAILED, INTERRUPTED, OK, TERMINATED
from raxol_mcp.cli.loading import blame, one_line
from raxol_mcp.errors import ConfigurationError
from raxol_mcp.transports.stdio import Ended, serve_stdio

if TYPE_CHECKING:
    from raxol_mcp.cli.network import Network
    from raxol_mcp.server.app import Server

__all__ = ["EndProcess", "serve", "serve_network"]

_logger = logging.getLogger("raxol_mcp.cli")

_CODES: Final = {
    Ended.INPUT_ENDED: OK,
    # A client that dies closes both pipes at once: which one is noticed first is chance.
    Ended.OUTPUT_CLOSED: OK,
    Ended.INTERRUPTED: INTERRUPTED,
    Ended.TERMINATED: TERMINATED,
}

# How long cancelled work may take to end, in seconds: after a signal, and after an end of input,
# when it has had the drain time already.
_AFTER_SIGNAL: Final = 5.0
_AFTER_DRAIN: Final = 1.0
# How long all of the server's end may take, its lifespan included. A signal leaves less, so that
# the process is gone within ten seconds of it.
_STOP_TIMEOUT: Final = 10.0
_SIGNAL_TIMEOUT: Final = 9.0
# How long what is left may take once the server has ended: tasks, threads, exit functions.
_EXIT_TIMEOUT: Final = 1.0

EndProcess = Callable[[float, int], None]
"""`end_process(seconds, code)`: see to it that the process is gone by then."""


def serve(
    server: Server, stdin_fd: int, stdout_fd: int, *, end_process: EndProcess | None = None
) -> int:
    """Serve until either side ends; return the exit code. Raises ConfigurationError.

    A failure of the user's code is told in one sentence on stderr; one of ours is raised.
    """

    async def served(port: _Served) -> int:
        ended = await serve_stdio(
            port, stdin_fd=stdin_fd, stdout_fd=stdout_fd, exit_timeout=_SIGNAL_TIMEOUT
        )
        code = _CODES.get(ended, FAILED)
        if code == FAILED:
            _logger.error("serving ended: %s", ended.value)
        return code

    return _run(server, served, end_process or _no_end, None)


def serve_network(
    server: Server, network: Network, *, end_process: EndProcess | None = None
) -> int:
    """Serve over HTTP until a signal comes; return the exit code. See `serve`.

    The address is told on stderr when it can be used. uvloop is the event loop where it is
    installed.
    """
    from raxol_mcp.cli.network import HOST, PATH, PORT
    from raxol_mcp.transports.http.serving import serve_http

    refusals = network.refusals(server)
    if refusals:
        raise ConfigurationError("; ".join(refusals))

    def ready(url: str) -> None:
        sys.stderr.write(f"raxol-mcp: serving {server.name} at {url}\n")
        sys.stderr.flush()

    async def served(port: _Served) -> int:
        port.patience = _AFTER_DRAIN  # serving ends with the drain time, whatever ended it
        number = await serve_http(
            port,
            host=network.host or HOST,
            port=PORT if network.port is None else network.port,
            path=PATH if network.path is None else network.path,
            authenticator=network.authenticator(),
            allow_unauthenticated=network.allow_unauthenticated,
            allowed_hosts=network.hosts,
            allowed_origins=network.origins,
            exit_timeout=_SIGNAL_TIMEOUT,
            ready=ready,
        )
        return FAILED if number is None else 128 + number

    return _run(server, served, end_process or _no_end, _uvloop())


def _run(
    server: Server,
    served: Callable[[_Served], Coroutine[object, object, int]],
    end_process: EndProcess,
    new_loop: Callable[[], asyncio.AbstractEventLoop] | None,
) -> int:
    try:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            return runner.run(_told(server, served, end_process))
    except KeyboardInterrupt:
        return INTERRUPTED


async def _told(
    server: Server,
    served: Callable[[_Served], Coroutine[object, object, int]],
    end_process: EndProcess,
) -> int:
    code = FAILED
    try:
        code = await served(_Served(server, end_process))
        return code
    except ConfigurationError:
        raise
    except (Exception, SystemExit) as error:
        told = blame(error)
        if told is None:
            raise
        _logger.debug("serving failed", exc_info=error)
        sys.stderr.write(f"raxol-mcp: {server.name} failed: {told}\n")
        return code
    finally:
        end_process(_EXIT_TIMEOUT, code)


def _uvloop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        # By name: it is not there where the sources are checked.
        new_loop: Callable[[], asyncio.AbstractEventLoop] = import_module("uvloop").new_event_loop
    except ImportError:
        return None
    return new_loop


def _no_end(seconds: float, code: int) -> None:
    """Leave the process to its owner."""


class _Served:
    """The server as the transport sees it, which is stopped with the patience left for that."""

    def __init__(self, server: Server, end_process: EndProcess) -> None:
        self._server = server
        self._end_process = end_process
        self.patience = _AFTER_SIGNAL
        self.max_message_bytes = server.max_message_bytes
        self.max_depth = server.max_depth
        self.open = server.open
        self.receive = server.receive
        self.outstanding = server.outstanding
        self.gone = server.gone
        self.refusals_for_network = server.refusals_for_network

    async def start(self) -> None:
        try:
            await self._server.start()
        except (ConfigurationError, asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # of the lifespan, SystemExit as well
            _logger.debug("the start failed", exc_info=error)
            told = blame(error) or one_line(error)
            raise ConfigurationError(f"{self._server.name} failed to start: {told}") from error

    def input_ended(self, connection: Hashable) -> None:
        self.patience = _AFTER_DRAIN
        self._server.input_ended(connection)

    async def stop(self) -> None:
        self._end_process(_STOP_TIMEOUT, FAILED)
        await self._server.stop(within=self.patience)
