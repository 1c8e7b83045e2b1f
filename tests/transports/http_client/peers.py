"""A server that does to the byte what a test tells it to, and a client core that takes notes."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import TYPE_CHECKING, TypedDict, Unpack

from raxol_mcp.errors import Reason
from raxol_mcp.transports.http_client.addresses import Resolver
from raxol_mcp.transports.http_client.dialer import HttpDialer
from raxol_mcp.transports.http_client.link import HttpLink
from raxol_mcp.transports.http_client.tables import Tables
from raxol_mcp.transports.link import Dialect
from raxol_mcp.wire.jsonrpc import Incoming, JSONObject, Notification, Request
from raxol_mcp.wire.meta import META_VERSION, EraName

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = [
    "HANG",
    "Choices",
    "Peer",
    "Port",
    "Script",
    "Seen",
    "Wire",
    "call",
    "dialed",
    "handshaken",
    "http_head",
    "result_line",
    "sse",
    "stateless_call",
]

# Only a test that would fail waits so long, in seconds.
HANG = 10.0

Script = Callable[["Seen", "Wire"], Awaitable[None]]


@dataclass
class Seen:
    """One request as it came. Names of headers are in lower case."""

    method: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes
    connection: int

    def header(self, name: str) -> str | None:
        """Give the only value of a header."""
        found = [value for key, value in self.headers if key == name.lower()]
        assert len(found) <= 1, f"{name} came {len(found)} times"
        return found[0] if found else None

    @property
    def message(self) -> dict[str, object]:
        """Give the JSON-RPC message in the body."""
        value: dict[str, object] = json.loads(self.body)
        return value

    @property
    def rpc(self) -> str:
        """Give its method, or the HTTP method where there is no body."""
        return str(self.message.get("method", "answer")) if self.body else self.method

    @property
    def id(self) -> object:
        """Give its id."""
        return self.message.get("id")


@dataclass
class Wire:
    """The server's end of one connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        """Write bytes as they are."""
        self.writer.write(data)
        await self.writer.drain()

    async def drip(self, data: bytes, size: int = 1) -> None:
        """Write bytes in pieces that arrive apart."""
        for start in range(0, len(data), size):
            self.writer.write(data[start : start + size])
            await asyncio.sleep(0)

    async def reply(
        self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> None:
        """Write a whole answer."""
        await self.send(http_head(status, {"Content-Length": str(len(body)), **(headers or {})}))
        await self.send(body)

    async def json(
        self, value: object, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        """Write a JSON answer."""
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        await self.reply(status, body, {"Content-Type": "application/json", **(headers or {})})

    async def result(self, seen: Seen, result: object = None) -> None:
        """Answer a request."""
        await self.json({"jsonrpc": "2.0", "id": seen.id, "result": result or {}})

    async def events(self, data: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        """Begin an event stream that ends with the connection."""
        await self.send(
            http_head(
                200,
                {"Content-Type": "text/event-stream", "Connection": "close", **(headers or {})},
            )
        )
        if data:
            await self.send(data)

    def end(self) -> None:
        """Close the connection in order."""
        self.writer.close()

    def reset(self) -> None:
        """Close the connection with a reset."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def gone(self) -> None:
        """Wait until the client has closed its end."""
        with suppress(OSError):
            while await self.reader.read(1024):
                pass


class Peer:
    """A server on a port of this machine. `script` deals with every request."""

    def __init__(
        self, script: Script, *, ssl: SSLContext | None = None, host: str = "127.0.0.1"
    ) -> None:
        self.script = script
        self._host = host
        self.seen: list[Seen] = []
        self.left = 0
        self._ssl = ssl
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self._connections = 0
        self._changed = asyncio.Event()

    async def __aenter__(self) -> Peer:
        self._server = await asyncio.start_server(self._connected, self._host, 0, ssl=self._ssl)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._serving):
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def port(self) -> int:
        """Give the port it listens on."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def url(self) -> str:
        """Give the URL of its endpoint."""
        return f"http://127.0.0.1:{self.port}/mcp"

    @property
    def connections(self) -> int:
        """Count the connections so far."""
        return self._connections

    def methods(self) -> list[str]:
        """Give what came, by JSON-RPC method or HTTP method."""
        return [seen.rpc for seen in self.seen]

    def changed(self) -> None:
        """Let `until` look again."""
        self._changed.set()

    async def until(self, happened: Callable[[], bool]) -> None:
        """Wait until something is true that a request or a departure changes."""
        async with asyncio.timeout(HANG):
            while not happened():
                self._changed.clear()
                await self._changed.wait()

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        task = asyncio.get_running_loop().create_task(
            self._serve(Wire(reader, writer), self._connections)
        )
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, wire: Wire, number: int) -> None:
        try:
            while not wire.writer.is_closing():
                seen = await _read_request(wire.reader, number)
                if seen is None:
                    return
                self.seen.append(seen)
                self._changed.set()
                await self.script(seen, wire)
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client left
        finally:
            self.left += 1
            self._changed.set()
            wire.writer.close()
            with suppress(OSError):
                await wire.writer.wait_closed()


async def _read_request(reader: asyncio.StreamReader, number: int) -> Seen | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.rstrip("\r\n").split("\r\n")
    method, path, _ = first.split(" ")
    headers = [
        (name.lower(), value.strip(" "))
        for name, _, value in (line.partition(":") for line in lines)
    ]
    length = next((int(value) for name, value in headers if name == "content-length"), 0)
    return Seen(method, path, headers, await reader.readexactly(length), number)


@dataclass
class Port:
    """A `LinkPort` that writes down what it is told: `(what, key, value)`."""

    told: list[tuple[str, int | None, object]] = field(default_factory=list)
    counted: list[tuple[str, JSONObject]] = field(default_factory=list)
    heard: list[bool] = field(default_factory=list)
    on_told: Callable[[str, int | None, object], None] = lambda *_: None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def received(self, message: Incoming, *, about: int | None = None) -> None:
        """See `LinkPort`."""
        self._tell("received", about, message)

    def sent(self, key: int) -> None:
        """See `LinkPort`."""
        self._tell("sent", key, None)

    def failed(self, key: int, reason: Reason) -> None:
        """See `LinkPort`."""
        self._tell("failed", key, reason)

    def lost(self, reason: Reason) -> None:
        """See `LinkPort`."""
        self._tell("lost", None, reason)

    def missed(self) -> None:
        """See `LinkPort`."""
        self.noticed("missed", {})

    def hears(self, hears: bool) -> None:
        """See `LinkPort`."""
        self.heard.append(hears)
        self._changed.set()

    def noticed(self, event: str, fields: JSONObject) -> None:
        """See `LinkPort`."""
        self.counted.append((event, fields))
        self._changed.set()

    def _tell(self, what: str, key: int | None, value: object) -> None:
        self.told.append((what, key, value))
        self.on_told(what, key, value)
        self._changed.set()

    async def until(self, happened: Callable[[], bool]) -> None:
        """Wait until something is true that a report changes."""
        async with asyncio.timeout(HANG):
            while not happened():
                self._changed.clear()
                await self._changed.wait()

    async def next(self, count: int = 1) -> list[tuple[str, int | None, object]]:
        """Wait until `count` things were told in all; give them."""
        await self.until(lambda: len(self.told) >= count)
        return self.told

    async def reason_of(self, key: int | None) -> Reason:
        """Wait until `key` failed, or with None until the link was lost; give the reason."""

        def found() -> list[Reason]:
            return [value for _, of, value in self.told if of == key and isinstance(value, Reason)]

        await self.until(lambda: bool(found()))
        return found()[0]


def http_head(status: int, headers: Mapping[str, str]) -> bytes:
    """Write the head of an answer."""
    lines = [f"HTTP/1.1 {status} Whatever", *(f"{name}: {headers[name]}" for name in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def result_line(id: object, result: object = None) -> bytes:
    """Write an answer."""
    return json.dumps({"jsonrpc": "2.0", "id": id, "result": result or {}}).encode()


def sse(data: bytes, *, id: str | None = None) -> bytes:
    """Write one event."""
    head = b"" if id is None else b"id: %b\n" % id.encode()
    return b"%bevent: message\ndata: %b\n\n" % (head, data)


def call(key: int, method: str = "tools/call", params: JSONObject | None = None) -> Request:
    """Make a request of the handshake era."""
    return Request(key, method, params)


def stateless_call(
    key: int, method: str = "tools/call", params: JSONObject | None = None
) -> Request:
    """Make a request of the stateless era."""
    meta: JSONObject = {META_VERSION: "2026-07-28"}
    return Request(key, method, {**(params or {}), "_meta": meta})


class Choices(TypedDict, total=False):
    """What a test may choose about a link: options of `HttpDialer`."""

    headers: Mapping[str, str]
    allow_private: bool
    max_message_bytes: int
    connect_timeout: float
    chunk_timeout: float
    listen: bool
    tables: Tables
    resolver: Resolver
    ssl_context: SSLContext


@asynccontextmanager
async def dialed(
    peer: Peer | str, *, dialect: Dialect = Dialect.CURRENT, **choices: Unpack[Choices]
) -> AsyncIterator[tuple[HttpLink, Port]]:
    """Open a link to a peer, and close it; with breakers of its own, to this machine."""
    port = Port()
    url = peer if isinstance(peer, str) else peer.url
    own: Choices = {"allow_private": True, "tables": Tables()}
    own.update(choices)
    link = HttpDialer(url, **own).link(port, dialect)
    await link.open()
    try:
        yield link, port
    finally:
        await link.close()


async def handshaken(link: HttpLink, port: Port, version: str = "2025-11-25") -> None:
    """Do the handshake: keys 1 and 2. What the stream brings meanwhile stays told."""
    link.send(Request(1, "initialize", {"protocolVersion": version}), 1)
    await port.next()
    assert port.told[0][0] == "received", port.told
    link.agreed(EraName.HANDSHAKE, version)
    link.send(Notification("notifications/initialized"), 2)
    await port.until(lambda: ("sent", 2, None) in port.told)
    del port.told[0]
    port.told.remove(("sent", 2, None))
