"""A server that only answers what a test tells it to, and the peer at the other end of a pipe."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Callable, Hashable
from contextlib import suppress

from raxol_mcp.core.peers import ConnectionFacts
from raxol_mcp.transports.base import Sink
from raxol_mcp.transports.stdio import Ended, serve_stdio
from raxol_mcp.wire.jsonrpc import Batch, Failure, Incoming, Invalid, Request, RequestId, Response

Message = dict[str, object]


class FakePort:
    """A `ServerPort` that notes every call and echoes the params of every request.

    A method named `hold` is owed its answer until `answer`; `on_receive` sees a message first and
    says whether it dealt with it. `events` names what the transport called, in order.
    """

    def __init__(self, *, max_message_bytes: int = 1 << 20, max_depth: int = 128) -> None:
        self.max_message_bytes = max_message_bytes
        self.max_depth = max_depth
        self.events: list[str] = []
        self.received: list[Incoming] = []
        self.facts: ConnectionFacts | None = None
        self.held: set[RequestId] = set()
        self.on_receive: Callable[[Incoming], bool] = lambda _message: False
        self.on_start: Callable[[], None] = lambda: None
        self.opened = asyncio.Event()
        self._sink: Sink | None = None

    @property
    def sink(self) -> Sink:
        """The sink of the one connection."""
        assert self._sink is not None, "opened first"
        return self._sink

    async def start(self) -> None:
        self.events.append("start")
        self.on_start()

    async def stop(self) -> None:
        self.events.append("stop")

    def open(
        self, sink: Sink, facts: ConnectionFacts, connection: Hashable | None = None
    ) -> Hashable:
        self.events.append("open")
        self.opened.set()
        self._sink, self.facts = sink, facts
        return "the only one" if connection is None else connection

    def receive(self, connection: Hashable, message: Incoming) -> None:
        self.received.append(message)
        if not self.on_receive(message):
            self._answer(message)

    def _answer(self, message: Incoming) -> None:
        if isinstance(message, Invalid):
            self.sink.put(message.failure)
        elif isinstance(message, Batch):
            for item in message.messages:
                self._answer(item)
        elif isinstance(message, Request) and message.method == "hold":
            self.held.add(message.id)
        elif isinstance(message, Request):
            self.sink.put(Response(message.id, message.params or {}), about=message.id)

    def answer(self, id: RequestId, result: object = "late") -> None:
        self.held.remove(id)
        self.sink.put(Response(id, result), about=id)

    def input_ended(self, connection: Hashable) -> None:
        self.events.append("input_ended")

    def outstanding(self, connection: Hashable) -> int:
        return len(self.held)

    def gone(self, connection: Hashable) -> None:
        self.events.append("gone")


class PipePeer:
    """The far end of `serve_stdio`, over two pipes, or two sockets; times are the loop's.

    Use it as an async context manager: leaving it closes everything and waits for the end.
    `server_fds` are the server's descriptors: they are this test's, and closed at the end too.
    """

    def __init__(
        self,
        port: FakePort,
        *,
        sockets: bool = False,
        one_socket: bool = False,
        stdin_fd: int | None = None,
        drain_timeout: float = 5.0,
        write_timeout: float = 30.0,
        max_queued_messages: int = 256,
        max_queued_bytes: int = 1 << 23,
    ) -> None:
        self.port = port
        self._open: set[int] = set()
        if one_socket:
            server_in, self.to_server = map(self._keep, _socketpair())
            server_out = self._keep(os.dup(server_in))
            self.from_server = self._keep(os.dup(self.to_server))
        else:
            pair = _socketpair if sockets else os.pipe
            server_in, self.to_server = map(self._keep, pair())
            self.from_server, server_out = map(self._keep, pair())
        if stdin_fd is not None:
            server_in = self._keep(stdin_fd)
        os.set_blocking(self.to_server, False)
        os.set_blocking(self.from_server, False)
        self.server_fds = (server_in, server_out)
        self._drain_timeout = drain_timeout
        self._write_timeout = write_timeout
        self._max_queued_messages = max_queued_messages
        self._max_queued_bytes = max_queued_bytes
        self._read = bytearray()
        self.serving: asyncio.Task[Ended] | None = None

    async def __aenter__(self) -> PipePeer:
        stdin_fd, stdout_fd = self.server_fds
        serving = asyncio.ensure_future(
            serve_stdio(
                self.port,
                stdin_fd=stdin_fd,
                stdout_fd=stdout_fd,
                drain_timeout=self._drain_timeout,
                write_timeout=self._write_timeout,
                max_queued_messages=self._max_queued_messages,
                max_queued_bytes=self._max_queued_bytes,
            )
        )
        self.serving = serving
        # Ours have to go, or the end of file would never come; the server's duplicates are there
        # as soon as it is opened.
        opened = asyncio.ensure_future(self.port.opened.wait())
        await asyncio.wait((serving, opened), return_when=asyncio.FIRST_COMPLETED)
        opened.cancel()
        self._close(stdin_fd)
        self._close(stdout_fd)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self.serving is not None, "entered first"
        for fd in list(self._open):
            self._close(fd)
        await asyncio.wait((self.serving,))

    async def ended(self) -> Ended:
        """Wait until `serve_stdio` returns and give what it returned."""
        assert self.serving is not None, "entered first"
        return await self.serving

    async def write(self, text: bytes | str) -> None:
        """Write everything, waiting for room."""
        left = memoryview(text.encode() if isinstance(text, str) else text)
        while left:
            try:
                left = left[os.write(self.to_server, left) :]
            except BlockingIOError:
                await _ready(self.to_server, for_writing=True)

    async def send(self, *messages: object) -> None:
        """Write each value as one line of JSON, all in one write."""
        await self.write("".join(json.dumps(message) + "\n" for message in messages))

    async def read(self) -> bytes:
        """Return what is there, at least one byte; nothing at the end."""
        while True:
            try:
                return os.read(self.from_server, 1 << 16)
            except BlockingIOError:
                await _ready(self.from_server, for_writing=False)

    async def line(self) -> bytes:
        """Return the next line, without its newline."""
        while b"\n" not in self._read:
            chunk = await self.read()
            assert chunk, f"the server closed its output after {bytes(self._read)!r}"
            self._read += chunk
        line, _, rest = bytes(self._read).partition(b"\n")
        self._read[:] = rest
        return line

    async def message(self) -> Message:
        """Return the next message."""
        message = json.loads(await self.line())
        assert isinstance(message, dict)
        return message

    async def messages(self, count: int) -> list[Message]:
        """Return the next `count` messages."""
        return [await self.message() for _ in range(count)]

    async def rest(self) -> list[Message]:
        """Return every message until the server closes its output."""
        while chunk := await self.read():
            self._read += chunk
        assert bytes(self._read[-1:]) in (b"", b"\n"), "the last line is complete"
        return [json.loads(line) for line in bytes(self._read).splitlines()]

    def close_input(self) -> None:
        """Close what the server reads."""
        self._close(self.to_server)

    def close_output(self) -> None:
        """Close what the server writes to."""
        self._close(self.from_server)

    def _keep(self, fd: int) -> int:
        self._open.add(fd)
        return fd

    def _close(self, fd: int) -> None:
        if fd in self._open:
            self._open.remove(fd)
            with suppress(OSError):
                os.close(fd)


def request(id: RequestId, method: str = "echo", **params: object) -> Message:
    """Return a request as a dict."""
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def result(id: RequestId, value: object) -> Message:
    """Return the answer to a request as a dict."""
    return {"jsonrpc": "2.0", "id": id, "result": value}


def error_code(message: Message) -> object:
    """Return the code of an error response."""
    error = message["error"]
    assert isinstance(error, dict)
    return error["code"]


def failure(id: RequestId | None, code: int, message: str) -> Failure:
    """Return an error response as the server makes it."""
    return Failure(id, code, message)


def _socketpair() -> tuple[int, int]:
    ours, theirs = socket.socketpair()
    return ours.detach(), theirs.detach()


async def _ready(fd: int, *, for_writing: bool) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    add, remove = (
        (loop.add_writer, loop.remove_writer)
        if for_writing
        else (loop.add_reader, loop.remove_reader)
    )

    def is_ready() -> None:
        if not ready.done():
            ready.set_result(None)

    add(fd, is_ready)
    try:
        await ready
    finally:
        remove(fd)
