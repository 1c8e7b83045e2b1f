"""The other end of a server over HTTP: a raw keep-alive client that costs every server the same.

No client library, so that nothing of the measured project, nor of what it is compared with, is in
it. One request at a time on each connection, as HTTP/1.1 has it.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, cast

import msgspec

from benchmarks.harness.peer import HANDSHAKE, META, STATELESS, WHO, Message

__all__ = ["ROOT", "Client", "Reply", "WebServer"]

ROOT: Final = Path(__file__).parents[2]
_STARTS_WITHIN: Final = 30.0
_ENDS_WITHIN: Final = 10.0

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(dict[str, object]).decode


class Reply(NamedTuple):
    """What came for one request; nothing of the body of a stream that goes on."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes

    def message(self) -> Message:
        """Return the JSON body, or the last event of a stream."""
        body = self.body
        if self.headers.get(b"content-type", b"").startswith(b"text/event-stream"):
            body = body[body.rindex(b"data:") + 5 :]
        return _decode(body)


class WebServer:
    """One server process of `benchmarks.servers.http`: `async with WebServer(...) as server:`."""

    def __init__(self, what: str, side: str, loop: str) -> None:
        self._arguments = ("-m", "benchmarks.servers.http", what, side, loop)
        self.pid = 0
        self.port = 0

    async def __aenter__(self) -> WebServer:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        process = self._process = await asyncio.create_subprocess_exec(
            sys.executable, *self._arguments, cwd=ROOT, env=environment, stdout=-1
        )
        self.pid = process.pid
        try:
            assert process.stdout is not None, "a pipe was asked for"
            async with asyncio.timeout(_STARTS_WITHIN):
                self.port = int(await process.stdout.readline())
                while True:
                    try:
                        (await Client(self.port).connect()).close()
                        break
                    except OSError:
                        await asyncio.sleep(0.02)
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._end()

    async def _end(self) -> None:
        process = self._process
        if process.returncode is None:
            process.terminate()
        try:
            async with asyncio.timeout(_ENDS_WITHIN):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


class Client(asyncio.Protocol):
    """One connection, and the session of the handshake era that its requests are made in.

    `session` may be given to have several connections in one.
    """

    def __init__(
        self, port: int, *, era: str = HANDSHAKE, token: str | None = None, session: str = ""
    ) -> None:
        self.connected = False
        self.era = era
        self.session = session
        self._buffer = bytearray()
        self._future: asyncio.Future[Reply] | None = None
        self._head: tuple[int, dict[bytes, bytes]] | None = None
        self._last_id = 0
        self._port = port
        self._streams = False
        self._token = token

    async def connect(self) -> Client:
        """Connect."""
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: self, "127.0.0.1", self._port)
        return self

    def number_from(self, id: int) -> None:
        """Number requests from here on, where several connections are in one session."""
        self._last_id = id

    def close(self) -> None:
        """Disconnect."""
        self._transport.close()

    # -- what asyncio calls ---------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Requests can be made."""
        self.connected = True
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, error: Exception | None) -> None:
        """Nobody is answered any more."""
        self.connected = False
        if self._future is not None and not self._future.done():
            self._future.set_exception(ConnectionError("the server has closed the connection"))

    def data_received(self, data: bytes) -> None:
        """Hand a reply that is complete to whoever waits for it."""
        buffer = self._buffer
        buffer += data
        if self._head is None:
            end = buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            lines = bytes(buffer[:end]).split(b"\r\n")
            fields = (line.split(b": ", 1) for line in lines[1:])
            headers = {name.lower(): value for name, value in fields}
            self._head = int(lines[0].split(b" ", 2)[1]), headers
            del buffer[: end + 4]
        status, headers = self._head
        if headers.get(b"transfer-encoding") != b"chunked":
            if len(buffer) < int(headers.get(b"content-length", 0)):
                return
            body = bytes(buffer)
        elif self._streams:
            body = b""
        elif buffer.endswith(b"\r\n0\r\n\r\n"):
            body = _unchunked(bytes(buffer))
        else:
            return
        buffer.clear()
        if not self._streams:
            self._head = None
        if self._future is not None:
            future, self._future = self._future, None
            future.set_result(Reply(status, headers, body))

    # -- talking --------------------------------------------------------------------------------

    def send(self, method: str, headers: list[str], body: bytes = b"") -> asyncio.Future[Reply]:
        """Send a request; the future gets the whole reply."""
        head = [f"{method} /mcp HTTP/1.1", f"Host: 127.0.0.1:{self._port}", *headers]
        head.append(f"MCP-Protocol-Version: {self.era}")
        if self.session:
            head.append(f"Mcp-Session-Id: {self.session}")
        if self._token is not None:
            head.append(f"Authorization: Bearer {self._token}")
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._future = future
        self._transport.write("\r\n".join([*head, "", ""]).encode() + body)
        return future

    def post(self, message: Message) -> asyncio.Future[Reply]:
        """Send one message."""
        body = _encode(message)
        headers = [
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            f"Content-Length: {len(body)}",
        ]
        if self.era == STATELESS:
            headers.append(f"Mcp-Method: {message['method']}")
            headers.append(f"Mcp-Name: {cast('Message', message['params'])['name']}")
        return self.send("POST", headers, body)

    def request(self, method: str, **params: object) -> asyncio.Future[Reply]:
        """Send a request of the protocol."""
        self._last_id += 1
        if self.era == STATELESS:
            params["_meta"] = META
        return self.post(
            {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        )

    async def initialize(self) -> None:
        """Begin a session of the handshake era."""
        self.session = ""
        reply = await self.request(
            "initialize", protocolVersion=HANDSHAKE, capabilities={}, clientInfo=WHO
        )
        assert reply.status == 200, reply
        self.session = reply.headers[b"mcp-session-id"].decode()
        reply = await self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert reply.status == 202, reply

    async def listen(self) -> Reply:
        """Open a stream; nothing else can be asked on this connection afterwards."""
        self._streams = True
        return await self.send("GET", ["Accept: text/event-stream"])


def _unchunked(body: bytes) -> bytes:
    parts = []
    while body:
        size, _, body = body.partition(b"\r\n")
        length = int(size, 16)
        parts.append(body[:length])
        body = body[length + 2 :]
    return b"".join(parts)
