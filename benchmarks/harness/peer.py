"""The other end of a stdio server: a raw peer that costs every server the same.

No client library, so that nothing of the measured project, nor of what it is compared with, is in
it: a line out for each request, a future for each answer.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from types import TracebackType
from typing import Final, TypeAlias, cast

import msgspec

__all__ = ["HANDSHAKE", "META", "STATELESS", "WHO", "Message", "Peer"]

Message: TypeAlias = dict[str, object]

HANDSHAKE: Final = "2025-11-25"
STATELESS: Final = "2026-07-28"
WHO: Final[Message] = {"name": "bench", "version": "0"}
META: Final[Message] = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientInfo": WHO,
    "io.modelcontextprotocol/clientCapabilities": {},
}
_ENDS_WITHIN: Final = 10.0

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode


class Peer(asyncio.SubprocessProtocol):
    """One server process and its pipes: `async with Peer(command) as peer:`.

    `era` is the revision its requests are written in. What the server asks of us waits in
    `asked`, and is for the benchmark to answer.
    """

    def __init__(self, command: Sequence[str], *, era: str = HANDSHAKE) -> None:
        self.command = command
        self.era = era
        self.asked: list[Message] = []
        self._asks = asyncio.Semaphore(0)
        self.pid = 0
        self._waiting: dict[object, asyncio.Future[Message]] = {}
        self._last_id = 0
        self._rest = b""

    async def __aenter__(self) -> Peer:
        loop = asyncio.get_running_loop()
        self._exited: asyncio.Future[None] = loop.create_future()
        # Bytecode may be written: what pip installed has it, an editable install has not, and
        # compiling is not what is measured. A first run that is not counted writes it.
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        self._transport, _ = await loop.subprocess_exec(
            lambda: self, *self.command, stderr=None, env=environment
        )
        self.pid = self._transport.get_pid()
        stdin = self._transport.get_pipe_transport(0)
        self._stdin = cast("asyncio.WriteTransport", stdin)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stdin.close()
        try:
            async with asyncio.timeout(_ENDS_WITHIN):
                await asyncio.shield(self._exited)
        except TimeoutError:
            self._transport.kill()
            await self._exited
        self._transport.close()

    # -- what asyncio calls ---------------------------------------------------------------------

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Hand every complete line to whoever waits for it."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            message: Message = _decode(line)
            future = None if "method" in message else self._waiting.pop(message["id"], None)
            if future is not None:
                future.set_result(message)
            elif "id" in message:
                self.asked.append(message)
                self._asks.release()

    def process_exited(self) -> None:
        """Nobody is answered any more."""
        if not self._exited.done():
            self._exited.set_result(None)
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(ConnectionError(f"{self.command} exited"))

    # -- talking --------------------------------------------------------------------------------

    def send(self, message: Message) -> None:
        """Send a message as one line."""
        self._stdin.write(_encode(message) + b"\n")

    def request(self, method: str, **params: object) -> asyncio.Future[Message]:
        """Send a request; the future gets the whole response."""
        self._last_id += 1
        if self.era == STATELESS:
            params["_meta"] = META
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[self._last_id] = future
        self.send({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        return future

    async def was_asked(self) -> None:
        """Wait for one more question of the server's."""
        await self._asks.acquire()

    async def initialize(self, **capabilities: Message) -> Message:
        """Open the session of the handshake era."""
        answer = await self.request(
            "initialize", protocolVersion=HANDSHAKE, capabilities=capabilities, clientInfo=WHO
        )
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer
