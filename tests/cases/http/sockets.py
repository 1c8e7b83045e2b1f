"""The fixture under a real uvicorn on a real port, and a client that writes bytes as they are."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from raxol_mcp import serve_http
from tests.cases.fixture_server import Fixture, Knobs
from tests.cases.http_peers import headers_of
from tests.cases.peers import Message

__all__ = ["BOUND", "Answer", "Served", "head_of", "serving"]

# Seconds; nothing comes near it.
BOUND: Final = 20.0


@dataclass
class Answer:
    """One whole answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the body as JSON."""
        return json.loads(self.body)


def head_of(message: Message, **changes: str | None) -> bytes:
    """Write the header lines of a message, without Host."""
    headers = {**headers_of(message), **{key.replace("_", "-"): v for key, v in changes.items()}}
    lines = [f"{name}: {value}\r\n" for name, value in headers.items() if value is not None]
    return "".join(lines).encode()


class Served:
    """Where the fixture is served, for as long as `serving` lasts."""

    def __init__(self, fixture: Fixture, url: str) -> None:
        self.fixture = fixture
        self.url = url
        address = urlsplit(url)
        assert address.hostname is not None
        assert address.port is not None
        self.host, self.port = address.hostname, address.port

    @property
    def journal(self) -> list[str]:
        """What ran, without the start."""
        return [line for line in self.fixture.journal.lines if line != "opened"]

    async def noted(self, line: str) -> None:
        """Wait until a handler has noted a line."""
        async with asyncio.timeout(BOUND):
            while line not in self.journal:  # noqa: ASYNC110  # lines are no events
                await asyncio.sleep(0)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection."""
        return await asyncio.open_connection(self.host, self.port)

    async def ask(
        self, method: str, path: str, head: bytes, message: Message | bytes = b""
    ) -> Answer:
        """Send one request with these very header lines on a connection of its own."""
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        if isinstance(message, dict) and b"content-type" not in head.lower():
            head += head_of(message)
        return await self.raw(
            f"{method} {path} HTTP/1.1\r\n".encode()
            + head
            + f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
            + body
        )

    async def raw(self, data: bytes) -> Answer:
        """Write bytes and read the answer to its end."""
        async with asyncio.timeout(BOUND):
            reader, writer = await self.connect()
            try:
                writer.write(data)
                with suppress(ConnectionError):
                    await writer.drain()
                return await read_answer(reader)
            finally:
                writer.close()
                with suppress(ConnectionError):
                    await writer.wait_closed()


async def read_answer(reader: asyncio.StreamReader) -> Answer:
    """Read one answer: head, then a body of known length, in chunks, or to the end."""
    status = int((await reader.readline()).split()[1])
    headers: dict[str, str] = {}
    while line := (await reader.readline()).strip():
        name, _, value = line.partition(b":")
        headers[name.decode().lower()] = value.strip().decode()
    if "content-length" in headers:
        body = await reader.readexactly(int(headers["content-length"]))
    elif headers.get("transfer-encoding") == "chunked":
        body = b""
        while size := int(await reader.readline(), 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
    else:
        body = await reader.read() if status != 204 else b""
    return Answer(status, headers, body)


@asynccontextmanager
async def serving(knobs: Knobs | None = None, **options: Any) -> AsyncIterator[Served]:
    """Serve a fixture on a free port of this machine."""
    fixture = Fixture(knobs)
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    options = {"drain_timeout": 0.2, **options}
    task = asyncio.ensure_future(
        serve_http(fixture.server, port=0, ready=ready.set_result, **options)
    )
    try:
        # A refusal to serve ends the wait as well.
        task.add_done_callback(lambda _: ready.done() or ready.cancel())
        yield Served(fixture, await asyncio.wait_for(ready, BOUND))
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
