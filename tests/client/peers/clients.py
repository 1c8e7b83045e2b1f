"""A client and its scripted peer, for as long as a test needs them; afterwards nothing is left.

Each of these is an async context manager that gives the client, started and (unless told
otherwise) ready, and the peer. Leaving it stops both, and asserts that nothing is held that was
not before, and that the client did nothing a strict server would mind.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from raxol_mcp.client.app import Client
from raxol_mcp.client.opening import Tables
from tests.client.peers.held import BOUND, Held
from tests.client.peers.http_peer import HttpPeer
from tests.client.peers.memory_link import MemoryDialer
from tests.client.peers.process import Processes
from tests.client.peers.script import Message

__all__ = ["http_client", "memory_client", "pipe_client"]

# Everything but this as it is by default: a busy machine must not time out what works.
SOON: Final[Message] = {"reconnect": 0.1}
# In virtual seconds: more than any timer of a client.
LONG: Final = 10_000.0


@asynccontextmanager
async def http_client(
    data: Message, *, spec: Message | None = None, ready: bool = True, **handlers: Any
) -> AsyncIterator[tuple[Client, HttpPeer]]:
    """Talk to an HTTP server in this process, over real sockets."""
    before = Held.now()
    async with HttpPeer(data) as peer:
        reached = {"name": "peer", "url": peer.url, "allow_private": True}
        client = Client({**SOON, **reached, **(spec or {})}, tables=Tables(), **handlers)
        try:
            await client.start()
            if ready:
                await client.await_ready(timeout=BOUND)
            yield client, peer
        finally:
            await client.stop()
        _has_stopped(client)
        async with asyncio.timeout(BOUND):
            await peer.until(lambda: peer.open == 0)
    await before.settled()
    assert (peer.broken, peer.breaches) == ([], [])


@asynccontextmanager
async def pipe_client(
    data: Message,
    folder: Path,
    *,
    arguments: Sequence[str] = (),
    spec: Message | None = None,
    ready: bool = True,
    **handlers: Any,
) -> AsyncIterator[tuple[Client, Processes]]:
    """Talk to a process on real pipes."""
    before = Held.now()
    processes = Processes(data, folder, arguments)
    started = {"name": "peer", "command": processes.command, "args": processes.args}
    client = Client({**SOON, **started, **(spec or {})}, tables=Tables(), **handlers)
    try:
        await client.start()
        if ready:
            await client.await_ready(timeout=BOUND)
        yield client, processes
    finally:
        await client.stop()
    _has_stopped(client)
    await before.settled()
    assert processes.alive() == []


@asynccontextmanager
async def memory_client(
    data: Message | MemoryDialer,
    *,
    kind: str = "memory",
    spec: Message | None = None,
    ready: bool = True,
    **handlers: Any,
) -> AsyncIterator[tuple[Client, MemoryDialer]]:
    """Talk to a peer without a wire, with the default times: for virtual clocks."""
    before = asyncio.all_tasks()
    dialer = data if isinstance(data, MemoryDialer) else MemoryDialer(data, kind=kind)
    options = {"name": "peer", "command": "scripted", **(spec or {})}
    client = Client(options, dialer=dialer, tables=Tables(), **handlers)
    try:
        await client.start()
        if ready:
            await client.await_ready(timeout=LONG)
        yield client, dialer
    finally:
        await client.stop()
    _has_stopped(client)
    assert (dialer.open, dialer.busy, dialer.broken) == (0, 0, [])
    assert asyncio.all_tasks() == before


def _has_stopped(client: Client) -> None:
    status = client.status()
    assert (status.status, status.pending, status.queued) == ("stopped", 0, 0)
