"""A scripted peer as an HTTP server in the process of the test, on a port the system chose.

It reads HTTP by itself and writes what the script says, also what no HTTP library would write. The
presets are strict: what a client must not do is in `breaches`, which a test expects to be empty.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from tests.client.peers.script import (
    LEGACY_VERSION,
    MODERN_VERSION,
    PREFIX,
    Message,
    Script,
    Step,
    filled,
    raw_bytes,
)

__all__ = ["HttpPeer", "Received"]

JSON: Final = "application/json"
STREAM: Final = "text/event-stream"
REASONS: Final = {200: "OK", 202: "Accepted", 400: "Bad Request", 404: "Not Found"}


@dataclass(slots=True)
class Received:
    """One request as it came. `headers` are by lower-case name."""

    connection: int
    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def message(self) -> Message:
        """The JSON-RPC message in its body; empty when there is none."""
        found: Message = json.loads(self.body) if self.body else {}
        return found

    @property
    def event(self) -> str:
        """What a script calls it."""
        if self.method != "POST":
            return self.method
        method = self.message.get("method")
        return method if isinstance(method, str) else "answer"


@dataclass(slots=True)
class _Exchange:
    """One request and what has been written of its response."""

    received: Received
    writer: asyncio.StreamWriter
    headers: dict[str, str] = field(default_factory=dict)
    streaming: bool = False
    done: bool = False
    keep: bool = True

    async def head(self, status: int, headers: dict[str, str]) -> None:
        """Write the head of the response."""
        lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Said')}"]
        lines += [f"{name}: {value}" for name, value in (self.headers | headers).items()]
        await self.write("\r\n".join([*lines, "", ""]).encode("latin-1"))

    async def whole(self, status: int, headers: dict[str, str], body: bytes) -> None:
        """Write a whole response."""
        await self.head(status, {"Content-Length": str(len(body)), **headers})
        await self.write(body)
        self.done = True

    async def stream(self, data: bytes) -> None:
        """Write bytes into the body of an event stream, which this begins."""
        if not self.streaming:
            self.streaming = True
            await self.head(200, {"Content-Type": STREAM, "Transfer-Encoding": "chunked"})
        if data:
            await self.write(b"%x\r\n%b\r\n" % (len(data), data))

    async def end(self) -> None:
        """End an event stream."""
        if self.streaming and not self.done:
            await self.write(b"0\r\n\r\n")
        self.done = True

    async def write(self, data: bytes) -> None:
        """Write bytes as they are; raises when nobody is there."""
        self.writer.write(data)
        await self.writer.drain()


class _Connection(asyncio.StreamReaderProtocol):
    """A connection that knows when its client has gone, also while nothing is read from it."""

    def __init__(self, peer: HttpPeer) -> None:
        super().__init__(asyncio.StreamReader(1 << 26), peer._connected)
        self.gone = asyncio.Event()

    def eof_received(self) -> bool:
        self.gone.set()
        return bool(super().eof_received())

    def connection_lost(self, error: Exception | None) -> None:
        self.gone.set()
        super().connection_lost(error)


class HttpPeer:
    """The server. `async with HttpPeer(script) as peer:`; `peer.url` is where it is.

    `received` are all requests, `raw` the bytes of every connection, `open` the number of
    connections that are open now, `running` that of the POSTs that are being served, `closed` the
    connections that are over, `sessions` the ids that are known, and `broken` what went wrong in
    the peer itself.
    """

    def __init__(self, data: Message) -> None:
        self.script = Script(data)
        self.received: list[Received] = []
        self.raw: list[bytearray] = []
        self.breaches: list[str] = []
        self.broken: list[str] = []
        self.sessions: set[str] = set()
        self.closed: set[int] = set()
        self.open = 0
        self.most_at_once = 0
        self.running = 0
        self.port = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._events: dict[str, asyncio.Event] = {}
        self._streams: list[_Exchange] = []
        self._news = asyncio.Event()

    @property
    def url(self) -> str:
        """The address of the endpoint."""
        path = "/sse" if self.script.preset == "two_endpoints" else "/mcp"
        return f"http://127.0.0.1:{self.port}{path}"

    @property
    def methods(self) -> list[str]:
        """What came, in order, by event."""
        return [each.event for each in self.received]

    async def __aenter__(self) -> HttpPeer:
        await self.start()
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen; again on the same port after `stop`, as a server that was restarted does."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close everything and forget every session."""
        if self._server is not None:
            self._server.close()
        while self._tasks:
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks)
        self.sessions.clear()
        self._server = None

    def about(self, event: str) -> list[Received]:
        """Give the requests that were such an event."""
        return [each for each in self.received if each.event == event]

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds that requests or the ends of connections make so."""
        while not holds():
            self._news.clear()
            await self._news.wait()

    async def ended(self, connection: int) -> None:
        """Wait until a connection is over."""
        await self.until(lambda: connection in self.closed)

    # -- HTTP ---------------------------------------------------------------------------------

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.open += 1
        number, seen = len(self.raw), bytearray()
        self.raw.append(seen)
        try:
            async for received in self._requests(reader, number, seen):
                if not await self._served(received, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        except asyncio.CancelledError:
            writer.transport.abort()
        except Exception as error:  # a test is to say so, and not a log
            self.broken.append(repr(error))
            writer.transport.abort()
        finally:
            self.open -= 1
            self._tasks.discard(task)
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            self.closed.add(number)
            self._news.set()

    async def _requests(
        self, reader: asyncio.StreamReader, number: int, seen: bytearray
    ) -> AsyncIterator[Received]:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            seen += head
            first, *lines = head.decode("latin-1").split("\r\n")[:-2]
            method, target, _ = first.split(" ")
            pairs = [line.partition(":") for line in lines]
            headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
            if headers.get("transfer-encoding") == "chunked":
                body = b""
                while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
                    body += (await reader.readexactly(size + 2))[:-2]
                await reader.readuntil(b"\r\n")
            else:
                body = await reader.readexactly(int(headers.get("content-length", "0")))
            seen += body
            yield Received(number, method, target, headers, body)

    async def _served(self, received: Received, writer: asyncio.StreamWriter) -> bool:
        """Serve one request; say whether the connection may serve another."""
        self.received.append(received)
        self._news.set()
        posted = received.method == "POST"
        self.running += posted
        self.most_at_once = max(self.most_at_once, self.running)
        keep = received.headers.get("connection", "").lower() != "close"
        keep = keep and self.script.data.get("keep", True)
        exchange = _Exchange(received, writer, keep=keep)
        serving = asyncio.ensure_future(self._perform(exchange))
        connection = writer.transport.get_protocol()
        assert isinstance(connection, _Connection)
        leaving = asyncio.ensure_future(connection.gone.wait())
        try:
            await asyncio.wait([serving, leaving], return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                await serving
            return serving.done() and exchange.done and exchange.keep
        finally:
            self.running -= posted
            self._news.set()
            if exchange in self._streams:
                self._streams.remove(exchange)
            for each in (serving, leaving):
                each.cancel()
            await asyncio.wait([serving, leaving])

    # -- MCP ----------------------------------------------------------------------------------

    async def _perform(self, exchange: _Exchange) -> None:
        received = exchange.received
        message = received.message if received.method == "POST" else None
        self._check(received, message)
        event = received.event
        self._events.pop(event, asyncio.Event()).set()
        refusal = self._refusal(received, message)
        steps = self.script.steps(event, message)
        ruled = steps != (self.script.usual(message) if message is not None else [])
        if refusal is not None and not ruled:
            await exchange.whole(refusal, {}, b"")
            return
        if event == "initialize" and self.script.preset == "legacy":
            session = self.script.data.get("session", f"S{len(self.sessions) + 1}")
            if session is not None:
                self.sessions.add(session)
                exchange.headers["Mcp-Session-Id"] = session
        if self.script.preset == "two_endpoints" and message is not None and not _exact(steps):
            await exchange.whole(202, {}, b"")
            if self._streams:
                await self._steps(steps, self._streams[-1], message)
            return
        await self._steps(steps, exchange, message)
        if message is None and not exchange.done:
            await self._listened(exchange)
        elif message is not None and not exchange.done and not exchange.streaming:
            owed = "id" in message and "method" in message
            if not owed:
                await exchange.whole(202, {}, b"")
        await exchange.end()

    def _refusal(self, received: Received, message: Message | None) -> int | None:
        """Say with which status the preset refuses a request before it looks at its message."""
        preset, target = self.script.preset, received.target.partition("?")[0]
        if preset == "two_endpoints":
            if message is None and target == "/sse":
                return None
            return None if message is not None and target == "/messages" else 405
        if target != "/mcp":
            return 404
        session = received.headers.get("mcp-session-id")
        if preset == "legacy" and message is not None:
            if message.get("method") in ("initialize", "server/discover"):
                return None
            if self.script.data.get("session", "") is not None and session not in self.sessions:
                return 400 if session is None else 404
        if message is None and received.method == "DELETE" and preset == "legacy":
            self.sessions.discard(session or "")
            return 204
        return 405 if message is None else None

    async def _listened(self, exchange: _Exchange) -> None:
        """Keep the stream of a GET, or of the old transport, until the client goes."""
        if self.script.preset == "two_endpoints" and not exchange.streaming:
            await exchange.stream(b"event: endpoint\ndata: /messages?session_id=1\n\n")
        if exchange.streaming:
            self._streams.append(exchange)
            await asyncio.Event().wait()
        await exchange.whole(405, {}, b"")

    async def _steps(self, steps: list[Step], exchange: _Exchange, message: Message | None) -> None:
        for at, step in enumerate(steps):
            last = at == len(steps) - 1
            await self._step(step, exchange, message, last=last)

    async def _step(
        self, step: Step, exchange: _Exchange, message: Message | None, *, last: bool
    ) -> None:
        match step["step"]:
            case "say":
                await self._say(step, exchange, message, alone=last and not exchange.streaming)
            case "raw":
                await self._raw(step, exchange, message, alone=last and not exchange.streaming)
            case "sse":
                await exchange.stream(b"")
                for data in raw_bytes(step, message):
                    await exchange.stream(data)
                    await asyncio.sleep(step["pause"])
            case "wire":
                exchange.done, exchange.keep = True, False
                for data in raw_bytes(step, message):
                    await exchange.write(data)
                    await asyncio.sleep(step["pause"])
            case "http":
                body = b"".join(raw_bytes(step, message))
                await exchange.whole(step["status"], step["headers"], body)
            case _:
                await self._say_nothing(step, exchange)

    async def _say_nothing(self, step: Step, exchange: _Exchange) -> None:
        match step["step"]:
            case "wait":
                await asyncio.sleep(step["seconds"])
            case "until":
                await self._events.setdefault(step["event"], asyncio.Event()).wait()
            case "drop":
                await self._drop(step["where"], exchange)
            case "leave" | "kill":
                self._lose_all()
            case "forget":
                self.sessions.clear()
            case "silent":
                await asyncio.Event().wait()
            case "stderr" | "stop_reading" | "close_output":
                pass  # a server far away has no such things
            case other:
                raise ValueError(f"unknown step {other}")

    async def _say(
        self, step: Step, exchange: _Exchange, message: Message | None, *, alone: bool
    ) -> None:
        framing = self.script.data.get("framing", "json")
        for each in filled(step, message):
            body = json.dumps(each, separators=(",", ":")).encode()
            answers = "method" not in each and step["count"] == 1
            if alone and answers and framing == "json" and self.script.preset != "two_endpoints":
                await exchange.whole(self._status(each), {"Content-Type": JSON}, body)
            else:
                await exchange.stream(b"event: message\ndata: " + body + b"\n\n")

    async def _raw(
        self, step: Step, exchange: _Exchange, message: Message | None, *, alone: bool
    ) -> None:
        if alone and self.script.preset != "two_endpoints":
            data = list(raw_bytes(step, message))
            size = str(sum(map(len, data)))
            await exchange.head(200, {"Content-Type": JSON, "Content-Length": size})
            for each in data:
                await exchange.write(each)
                await asyncio.sleep(step["pause"])
            exchange.done = True
            return
        for line in b"".join(raw_bytes(step, message)).splitlines():
            await exchange.stream(b"data: " + line + b"\n\n")

    def _status(self, answer: Message) -> int:
        """Say which status goes with an answer of the preset (MCP 2026-07-28)."""
        error = answer.get("error")
        if self.script.preset != "modern" or not isinstance(error, dict):
            return 200
        return {-32601: 404, -32022: 400, -32020: 400}.get(error["code"], 200)

    async def _drop(self, where: str, exchange: _Exchange) -> None:
        if where == "headers":
            await exchange.head(200, {"Content-Type": JSON, "Content-Length": "1000"})
        if where == "body":
            await exchange.head(200, {"Content-Type": JSON, "Content-Length": "1000"})
            await exchange.write(b'{"jsonrpc":"2.0","id":')
        exchange.done, exchange.keep = True, False
        if where == "reset":
            connection = exchange.writer.get_extra_info("socket")
            linger = struct.pack("ii", 1, 0)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            exchange.writer.transport.abort()

    def _lose_all(self) -> None:
        self.sessions.clear()
        for task in self._tasks:
            task.cancel()

    # -- what a client must do ----------------------------------------------------------------

    def _check(self, received: Received, message: Message | None) -> None:
        headers, event = received.headers, received.event
        wrong = []
        if message is None:
            if received.method == "GET" and STREAM not in headers.get("accept", ""):
                wrong.append("GET without text/event-stream in Accept")
        else:
            accept = headers.get("accept", "")
            # The old transport answers on another stream.
            if self.script.preset != "two_endpoints" and not (JSON in accept and STREAM in accept):
                wrong.append("Accept without both types")
            if headers.get("content-type", "").partition(";")[0] != JSON:
                wrong.append("Content-Type is not JSON")
            if message.get("jsonrpc") != "2.0":
                wrong.append("no JSON-RPC message")
            wrong += _era_breaches(headers, message)
        self.breaches += [f"{event}: {each}" for each in wrong]


def _era_breaches(headers: dict[str, str], message: Message) -> list[str]:
    """Say what is wrong with the headers of the era that a message is of."""
    params: Any = message.get("params") or {}
    meta = params.get("_meta") or {}
    version = meta.get(f"{PREFIX}protocolVersion")
    said = headers.get("mcp-protocol-version")
    if version is not None:
        wrong = [] if said == version else [f"version header {said!r} is not {version!r}"]
        if headers.get("mcp-method") != message.get("method"):
            wrong.append("Mcp-Method is not the method")
        if message.get("method") == "tools/call" and "mcp-name" not in headers:
            wrong.append("no Mcp-Name")
        if "mcp-session-id" in headers:
            wrong.append("a session in the stateless era")
        return wrong
    if message.get("method") == "initialize":
        return ["a session on initialize"] if "mcp-session-id" in headers else []
    known = (None, "2025-03-26", "2025-06-18", LEGACY_VERSION, MODERN_VERSION)
    return [] if said in known else [f"version header {said!r}"]


def _exact(steps: list[Step]) -> bool:
    """Whether the steps write a response of their own, and not messages."""
    return any(step["step"] in ("http", "wire", "drop") for step in steps)
