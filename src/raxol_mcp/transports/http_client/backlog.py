"""What a link sends and is owed no answer for: a few at once, the rest in turn.

Each is a POST with a connection of its own. A server may ask faster than it takes the answers, so
whoever reads what it asks waits for `room` first: then it is the server that waits.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from raxol_mcp.transports.http_client.exchange import Exchange

__all__ = ["AT_ONCE", "MANY", "Backlog"]

AT_ONCE: Final = 8
MANY: Final = 64


class Backlog:
    """The messages of one kind that are on their way or wait to be."""

    __slots__ = ("_left", "_room", "_turns")

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._room = asyncio.Event()
        self._room.set()
        self._left = 0

    async def run(self, exchange: Exchange) -> None:
        """Run an exchange when it is its turn."""
        async with self._turns:
            await exchange.run()

    def add(self, task: asyncio.Task[None]) -> None:
        """Count a message until its task is done."""
        self._left += 1
        if self._left >= MANY:
            self._room.clear()
        task.add_done_callback(self._done)

    async def room(self) -> None:
        """Wait until there are few."""
        await self._room.wait()

    def _done(self, _task: asyncio.Task[None]) -> None:
        self._left -= 1
        if self._left < MANY:
            self._room.set()
