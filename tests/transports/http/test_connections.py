"""What uvicorn's connections have beside uvicorn's."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest
from uvicorn.config import Config
from uvicorn.server import ServerState

from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.transports.http.asgi import Receive, Scope, Send
from raxol_mcp.transports.http.connections import KEEP_ALIVE, bounded_protocol

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Wire(asyncio.Transport):
    """A transport that remembers what was written, and when it was closed."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.closed_at: float | None = None

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Take a piece."""
        self.written.append(bytes(data))

    def is_closing(self) -> bool:
        """Say whether it is closed."""
        return self.closed_at is not None

    def close(self) -> None:
        """Note when."""
        self.closed_at = self.closed_at or asyncio.get_running_loop().time()

    def abort(self) -> None:
        """Note when."""
        self.close()

    def pause_reading(self) -> None:
        """Nothing is read here."""

    def resume_reading(self) -> None:
        """Nothing is read here."""


class Connections:
    """The connections of one server that answers everything with two letters."""

    def __init__(self, **options: Any) -> None:
        self.protocol = bounded_protocol(**{"max_connections": 10, "head_timeout": 30.0, **options})
        self.config = Config(self, ws="none", lifespan="off", timeout_keep_alive=KEEP_ALIVE)
        self.config.load()
        self.state = ServerState()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        headers = [(b"content-length", b"2")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"hi"})

    def connect(self) -> tuple[Any, Wire]:
        """Open one."""
        wire = Wire()
        protocol = self.protocol(config=self.config, server_state=self.state, app_state={})
        protocol.connection_made(wire)
        return protocol, wire


def test_an_answer_is_one_write() -> None:
    """Ours"""

    async def main() -> None:
        protocol, wire = Connections().connect()
        for _ in range(2):
            protocol.data_received(GET)
            await asyncio.sleep(0.1)
        assert len(wire.written) == 2
        assert all(answer.endswith(b"\r\n\r\nhi") for answer in wire.written)

    run_virtual(main)


def test_a_connection_without_a_request_is_closed_after_a_while() -> None:
    """Ours: docs/limits.md, a connection of `serve_http` without a request"""

    async def main() -> None:
        connections = Connections()
        (busy, busy_wire), (idle, idle_wire) = connections.connect(), connections.connect()
        for protocol in (busy, idle):
            protocol.data_received(GET)
        await asyncio.sleep(KEEP_ALIVE - 5)
        busy.data_received(GET)
        await asyncio.sleep(10)
        assert idle_wire.closed_at == pytest.approx(KEEP_ALIVE)
        assert busy_wire.closed_at is None
        await asyncio.sleep(KEEP_ALIVE)
        assert busy_wire.closed_at == pytest.approx(2 * KEEP_ALIVE - 5)

    run_virtual(main)


def test_a_head_that_does_not_come_closes_the_connection() -> None:
    """Ours: docs/limits.md, head_timeout"""

    async def main() -> None:
        connections = Connections(head_timeout=7.0)
        (_, silent), (slow, slow_wire) = connections.connect(), connections.connect()
        await asyncio.sleep(5)
        slow.data_received(GET[:10])
        await asyncio.sleep(10)
        assert silent.closed_at == pytest.approx(7.0)
        assert slow_wire.closed_at is not None
        flooded, flooded_wire = connections.connect()
        flooded.data_received(b"GET / HTTP/1.1\r\nX: " + b"a" * 70_000)
        assert flooded_wire.closed_at is not None

    run_virtual(main)


@pytest.mark.parametrize("reset", [True, False])
def test_a_connection_that_is_lost_is_freed_without_the_garbage_collector(reset: bool) -> None:
    """Ours: ADR-0021"""

    async def main() -> None:
        protocol, _ = Connections().connect()
        protocol.data_received(GET)
        await asyncio.sleep(0.1)
        protocol.connection_lost(ConnectionResetError() if reset else None)
        kept = weakref.ref(protocol)
        del protocol
        await asyncio.sleep(0.1)
        assert kept() is None

    gc.disable()
    try:
        run_virtual(main)
    finally:
        gc.enable()
