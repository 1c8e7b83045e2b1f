"""uvicorn's protocol with the bounds it does not have, and a connection that costs it less.

Closes what is too much or too late; answers nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from raxol_mcp.transports.http.corked import Corked
from raxol_mcp.transports.http.lanes import Lane

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["KEEP_ALIVE", "bounded_protocol"]

# Longer than the pools of common clients keep a connection: the client is to be the one that
# closes, or its next POST meets a connection that is going away.
KEEP_ALIVE: Final = 75
_MAX_HEAD_BYTES: Final = 64 * 1024


def bounded_protocol(max_connections: int, head_timeout: float) -> type[HttpToolsProtocol]:
    """Make the protocol of one server: its connections are counted together."""
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol  # it costs start-up

    heads: Lane[HttpToolsProtocol] = Lane(head_timeout, _abort)
    idle: Lane[HttpToolsProtocol] = Lane(KEEP_ALIVE, HttpToolsProtocol.timeout_keep_alive_handler)

    class BoundedProtocol(HttpToolsProtocol):
        corked: Corked
        head_bytes = 0
        timer: _IdleTimer

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as there
            super().connection_made(transport)
            self.corked = Corked(transport)
            self.transport = cast("asyncio.Transport", self.corked)
            self.timer = _IdleTimer(self, idle, self.loop)
            self.loop = cast("asyncio.AbstractEventLoop", self.timer)
            if len(self.connections) > max_connections:
                transport.abort()
            else:
                heads.add(self)

        def connection_lost(self, exc: Exception | None) -> None:
            heads.remove(self)
            super().connection_lost(exc)
            # uvicorn leaves the timer running after a reset: everything of the connection would be
            # kept for as long as one may be idle.
            idle.remove(self)
            # Nor is it left to the garbage collector, which looks rarely.
            self.timeout_keep_alive_task = None
            self.loop = self.timer.loop
            del self.timer

        def on_response_complete(self) -> None:
            self.corked.flush()
            HttpToolsProtocol.on_response_complete(self)  # without `super()`, as it is often

        def data_received(self, data: bytes) -> None:
            HttpToolsProtocol.data_received(self, data)
            # None before the first byte, and without a path until the head is complete.
            scope: object = self.scope
            if scope is not None and "path" in self.scope:
                if self.head_bytes >= 0:
                    self.head_bytes = -1
                    heads.remove(self)
            else:
                self.head_bytes = max(self.head_bytes, 0) + len(data)
                if self.head_bytes > _MAX_HEAD_BYTES:
                    self.transport.abort()
                elif self.head_bytes == len(data):
                    heads.add(self)

    return BoundedProtocol


class _IdleTimer:
    """What a protocol uses of its event loop, its one timer being a place in a lane.

    A timer for each answer, nearly always cancelled by the next request, costs as much as parsing
    that, and is kept until the loop sweeps.
    """

    __slots__ = ("_idle", "_protocol", "create_task", "loop")

    def __init__(
        self,
        protocol: HttpToolsProtocol,
        idle: Lane[HttpToolsProtocol],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.create_task = loop.create_task
        self._idle = idle
        self._protocol = protocol
        self.loop = loop

    def call_later(self, delay: float, due: Callable[[], None]) -> _IdleTimer:
        """Begin to wait; `delay` and `due` are those of the lane."""
        self._idle.add(self._protocol)
        return self

    def cancel(self) -> None:
        """Wait no more."""
        self._idle.remove(self._protocol)


def _abort(protocol: HttpToolsProtocol) -> None:
    protocol.transport.abort()
