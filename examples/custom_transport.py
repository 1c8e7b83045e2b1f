"""A transport of your own: one message a line over TCP, as many clients as come.

    python examples/custom_transport.py

`serve_tcp` and `Wire` are all of it; `docs/write-a-transport.md` walks through them. The rest of
this program is a pair of clients that check it. It is an example, not a network service: there is
no encryption, and nobody says who they are.
"""

import asyncio
import json
from contextlib import suppress
from typing import Any

from raxol_mcp import ConnectionFacts, Server, decode, encode
from raxol_mcp.transports.base import ServerPort
from raxol_mcp.transports.outbox import Admission, Outbox
from raxol_mcp.wire.jsonrpc import Outgoing, RequestId

WRITE_TIMEOUT = 30.0
DRAIN_TIMEOUT = 5.0


class Wire:
    """The server's way to one client: everything is queued, one task writes."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._outbox: Outbox[bytes] = Outbox()
        self._changed = asyncio.Event()
        self._written = asyncio.Event()
        self.closed = False

    def put(
        self, message: Outgoing, *, about: RequestId | None = None, droppable: bool = False
    ) -> None:
        """Queue one message. Never waits, never calls back."""
        line = encode(message) + b"\n"
        admission = self._outbox.put(line, len(line), about=about, droppable=droppable)
        if admission is Admission.OVERFLOW:
            self.close("the client lets broadcasts pile up")
        self._changed.set()

    def close(self, reason: str) -> None:
        """End the connection; `serve_tcp` notices and reports it."""
        self.closed = True
        self._changed.set()

    async def write(self) -> None:
        """Write what is queued, until the connection ends. Raises what a dead socket raises."""
        while True:
            while self._outbox:
                self._writer.writelines(self._outbox.take(64 * 1024))
                # A client that reads nothing is cut off. Until it reads, nothing is taken from it.
                async with asyncio.timeout(WRITE_TIMEOUT):
                    await self._writer.drain()
                self._written.set()
            if self.closed:
                return
            self._changed.clear()
            await self._changed.wait()

    async def room(self) -> None:
        """Wait until the client keeps up again."""
        while self._outbox.over:
            self._written.clear()
            await self._written.wait()


async def serve_tcp(server: ServerPort, port: int = 0) -> asyncio.Server:
    """Listen on loopback. The caller starts and stops `server`, and closes what is returned."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wire = Wire(writer)
        connection = server.open(wire, ConnectionFacts(transport="tcp"))
        writing = asyncio.ensure_future(wire.write())
        reading = asyncio.ensure_future(read(reader, wire, connection))
        try:
            await asyncio.wait((writing, reading), return_when=asyncio.FIRST_COMPLETED)
            if not writing.done():  # the client will say no more, but it still reads
                server.input_ended(connection)
                with suppress(TimeoutError):
                    async with asyncio.timeout(DRAIN_TIMEOUT):
                        # A call may end without an answer, which nothing would tell.
                        while server.outstanding(connection):  # noqa: ASYNC110  # so we look
                            await asyncio.sleep(0.01)
                wire.close("the client has gone")
                await asyncio.wait((writing,))
        finally:
            server.gone(connection)  # exactly once, whatever happened
            reading.cancel()
            writing.cancel()
            writer.close()

    async def read(reader: asyncio.StreamReader, wire: Wire, connection: object) -> None:
        # A line over the limit ends the connection here; serve_stdio is more patient.
        while line := await reader.readline():
            server.receive(connection, decode(line, max_depth=server.max_depth))
            await wire.room()

    return await asyncio.start_server(connected, "127.0.0.1", port, limit=server.max_message_bytes)


# -- the check --------------------------------------------------------------------------------

example = Server("example")


@example.tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def ask(port: int, *lines: bytes) -> list[Any]:
    """Be a client: write lines, say no more, read to the end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.writelines([line + b"\n" for line in lines])
    writer.write_eof()
    answers = (await reader.read()).splitlines()
    writer.close()
    return [json.loads(answer) for answer in answers]


async def main() -> None:
    """Serve two clients at once."""
    call = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%s}'
    params = b'{"name":"add","arguments":{"a":%d,"b":1}}'
    async with example:
        listening = await serve_tcp(example)
        async with listening:
            port: int = listening.sockets[0].getsockname()[1]
            first, second = await asyncio.gather(
                ask(port, call % (1, params % 1), b"this is no message", call % (2, params % 2)),
                ask(port, call % (1, params % 10)),
            )
        results = {answer.get("id"): answer.get("result") for answer in first}
        assert results[1]["structuredContent"] == {"result": 2}
        assert results[2]["structuredContent"] == {"result": 3}
        assert results[None] is None, "garbage is answered with an error, and costs nothing else"
        assert second[0]["result"]["structuredContent"] == {"result": 11}
        assert len(second) == 1, "each client gets its own answers"
        assert example.stats()["connections"] == 0, "both are gone"


if __name__ == "__main__":
    asyncio.run(main())
