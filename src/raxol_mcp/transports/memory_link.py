"""A client and a server in one process, without a pipe: for tests, and for programs that are both.

```python
async with Client({"name": "own", "command": "-"}, dialer=MemoryDialer(server)) as client:
    result = await client.call_tool("add", {"a": 1, "b": 2})
```

It starts and stops no server. Every message is written and read as on a real wire, so nothing is
shared, and what could not be sent elsewhere cannot be sent here. It is also the shortest complete
link, and so the one to read before writing another: each duty of `raxol_mcp.transports.link` is
one method.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Final

from raxol_mcp.core.peers import ConnectionFacts
from raxol_mcp.errors import Reason
from raxol_mcp.wire.jsonrpc import Request, UnencodableResult, decode, encode

if TYPE_CHECKING:
    from raxol_mcp.transports.base import ServerPort
    from raxol_mcp.transports.link import Dialect, LinkPort
    from raxol_mcp.wire.headers import Mirror
    from raxol_mcp.wire.jsonrpc import Outgoing, RequestId
    from raxol_mcp.wire.meta import EraName

__all__ = ["MemoryDialer", "MemoryLink"]

_FACTS: Final = ConnectionFacts(transport="memory")


class MemoryDialer:
    """How to reach `server`, which runs in this event loop."""

    kind = "memory"
    closing_cancels = False

    def __init__(self, server: ServerPort, *, facts: ConnectionFacts = _FACTS) -> None:
        self._server = server
        self._facts = facts

    def __repr__(self) -> str:
        return "MemoryDialer()"

    @property
    def verdict_key(self) -> Hashable:
        """The server itself: another one may be of another era."""
        return ("memory", id(self._server))

    def link(self, port: LinkPort, dialect: Dialect) -> MemoryLink:
        """Make the link of one attempt."""
        return MemoryLink(self._server, self._facts, port)


class MemoryLink:
    """One connection. What the server says is read in a later turn, as from any other wire."""

    def __init__(self, server: ServerPort, facts: ConnectionFacts, port: LinkPort) -> None:
        self._server = server
        self._facts = facts
        self._port = port
        self._connection: Hashable = None
        self._is_open = False
        self._lines: deque[bytes] = deque()
        self._reading: asyncio.Handle | None = None

    async def open(self) -> None:
        """Connect."""
        self._is_open = True
        self._connection = self._server.open(_LinkSink(self), self._facts)

    def send(self, message: Outgoing, key: int, *, mirrors: Sequence[Mirror] = ()) -> None:
        """Hand a message to the server."""
        loop = asyncio.get_running_loop()
        try:
            line = encode(message)
        except UnencodableResult as error:
            loop.call_soon(self._failed, key, Reason("encode_failed", text=str(error)))
            return
        loop.call_soon(self._receive, line)
        if not isinstance(message, Request):
            loop.call_soon(self._sent, key)

    def agreed(self, era: EraName, version: str) -> None:
        """Nothing to know."""

    def abort(self, key: int) -> None:
        """Nothing to stop: the client tells the server in a message."""

    async def close(self) -> None:
        """Go away."""
        if self._is_open:
            self._is_open = False
            self._server.gone(self._connection)

    def _receive(self, line: bytes) -> None:
        if self._is_open:
            message = decode(line, max_depth=self._server.max_depth)
            self._server.receive(self._connection, message)

    def _sent(self, key: int) -> None:
        if self._is_open:
            self._port.sent(key)

    def _failed(self, key: int, reason: Reason) -> None:
        if self._is_open:
            self._port.failed(key, reason)

    def put(self, message: Outgoing) -> None:
        """Take a message of the server."""
        self._lines.append(encode(message))
        if self._reading is None:
            self._reading = asyncio.get_running_loop().call_soon(self._read)

    def _read(self) -> None:
        self._reading = None
        while self._lines and self._is_open:
            self._port.received(decode(self._lines.popleft()))

    def end(self, reason: str) -> None:
        """The server ends the connection."""
        asyncio.get_running_loop().call_soon(self._lost, reason)

    def _lost(self, reason: str) -> None:
        if self._is_open:
            self._is_open = False
            self._server.gone(self._connection)
            self._port.lost(Reason("transport", "closed", text=reason))


class _LinkSink:
    """The server's way to the client."""

    def __init__(self, link: MemoryLink) -> None:
        self._link = link

    def put(
        self, message: Outgoing, *, about: RequestId | None = None, droppable: bool = False
    ) -> None:
        self._link.put(message)

    def close(self, reason: str) -> None:
        self._link.end(reason)
