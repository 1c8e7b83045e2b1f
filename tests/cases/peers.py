"""The client's end of one connection to the fixture: over real pipes, or in this process.

A peer writes exactly what a test says and keeps everything that comes. Every line that arrives is
parsed strictly; one that is no message fails the test, whatever it is about. Waits are for events
and bounded by `BOUND`, which none should come near.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Final, NoReturn, TypeVar, cast

from raxol_mcp import ConnectionFacts, MemoryTransport, NotReady
from raxol_mcp.testing.virtual_loop import VirtualLoop, run_virtual
from raxol_mcp.wire.framing import Lines, TooLong
from tests.cases.fixture_server import Fixture, Knobs

__all__ = [
    "BOUND",
    "FIXTURE",
    "Exchange",
    "MemoryPeer",
    "Message",
    "Peer",
    "StdioPeer",
    "left_over",
    "same_id",
    "strict",
]

Message = dict[str, object]
T = TypeVar("T")

FIXTURE: Final = Path(__file__).with_name("fixture_server.py")
ROOT: Final = Path(__file__).parents[2]
# Seconds.
BOUND: Final = 20.0


def strict(line: bytes) -> Message:
    """Parse one line as RFC 8259 wants it: UTF-8, no NaN, no member twice, no lone surrogate."""

    def refuses(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is no JSON")

    def members(pairs: list[tuple[str, object]]) -> Message:
        assert len({name for name, _ in pairs}) == len(pairs), f"a member twice: {pairs!r}"
        return dict(pairs)

    text = line.decode("utf-8", "strict")
    value = json.loads(text, parse_constant=refuses, object_pairs_hook=members)
    json.dumps(value, ensure_ascii=False).encode()
    assert isinstance(value, dict), line[:200]
    assert value.get("jsonrpc") == "2.0", line[:200]
    is_answer = ("result" in value) != ("error" in value) and "id" in value
    assert is_answer != ("method" in value), line[:200]
    return value


def same_id(message: Message, id: object) -> bool:
    """Say whether a message has this very id: 1, "1" and True are three ids."""
    return "id" in message and type(message["id"]) is type(id) and message["id"] == id


class Peer(ABC):
    """One connection. `seen` is every message that came, in order."""

    bound = BOUND

    def __init__(self) -> None:
        self.seen: list[Message] = []
        self.ended = False
        self._arrived = asyncio.Event()

    @abstractmethod
    async def send_bytes(self, data: bytes) -> None:
        """Write bytes as they are."""

    @abstractmethod
    async def finish(self) -> int:
        """Close the input and wait for the end; return the exit code (0 in this process)."""

    async def send(self, *messages: object) -> None:
        """Write messages in one go, each on its line."""
        lines = [json.dumps(message, ensure_ascii=False).encode() for message in messages]
        await self.send_bytes(b"".join(line + b"\n" for line in lines))

    async def until(self, fits: Callable[[Message], bool], *, after: int = 0) -> Message:
        """Wait for the first message that fits, among those from number `after` on."""
        async with asyncio.timeout(self.bound):
            while True:
                for at in range(after, len(self.seen)):
                    if fits(self.seen[at]):
                        return self.seen[at]
                after = len(self.seen)
                if self.ended:
                    raise ConnectionError(f"ended; last seen: {self.seen[-3:]}")
                self._arrived.clear()
                await self._arrived.wait()

    async def answer(self, id: object, *, after: int = 0) -> Message:
        """Wait for the answer with this id."""
        return await self.until(
            lambda message: "method" not in message and same_id(message, id), after=after
        )

    async def request(self, message: Message) -> Message:
        """Send a request and wait for its answer."""
        after = len(self.seen)
        await self.send(message)
        return await self.answer(message["id"], after=after)

    async def exchange(self, data: bytes) -> list[Message]:
        """Write bytes, let everything happen that they lead to, return what came. Virtual time."""
        after = len(self.seen)
        await self.send_bytes(data)
        await asyncio.sleep(1.0)
        return self.seen[after:]

    def answers(self, id: object) -> list[Message]:
        """Every answer with this id so far."""
        return [m for m in self.seen if "method" not in m and same_id(m, id)]

    def told(self, method: str) -> list[Message]:
        """Every notification of a method so far, as its params."""
        found = [
            m.get("params", {}) for m in self.seen if m.get("method") == method and "id" not in m
        ]
        return cast(list[Message], found)

    def _take(self, message: Message) -> None:
        self.seen.append(message)
        self._arrived.set()

    def _end(self) -> None:
        self.ended = True
        self._arrived.set()


class MemoryPeer(Peer):
    """A connection within this process. Messages pass through bytes, bytes through the framing."""

    bound = 100_000.0  # on virtual time

    def __init__(self, fixture: Fixture, *, principal: str | None = None) -> None:
        super().__init__()
        self.fixture = fixture
        self.transport = MemoryTransport(
            fixture.server,
            facts=ConnectionFacts("memory", principal, share=principal, greeting_required=True),
            through_bytes=True,
        )
        self._lines = Lines(fixture.server.max_message_bytes)
        self.transport.open()
        self._pump = asyncio.ensure_future(self._receive())

    async def _receive(self) -> None:
        with suppress(NotReady):
            while True:
                self._take(strict(json.dumps(await self.transport.receive()).encode()))
        self._end()

    async def send_bytes(self, data: bytes) -> None:
        for line in self._lines.feed(data):
            assert not isinstance(line, TooLong), "the transport's to answer: try it over stdio"
            self.transport.send(line)
            await asyncio.sleep(0)

    async def finish(self) -> int:
        if self.transport.closed is None:
            self.transport.end_input()
            async with asyncio.timeout(self.bound):
                # As a transport does whose input has ended: nothing else tells of a cancelled call.
                while self.fixture.server.outstanding(self.transport.connection):  # noqa: ASYNC110
                    await asyncio.sleep(0.001)
            await asyncio.sleep(0)
        return self.leave()

    def leave(self) -> int:
        """Go away, whatever is open."""
        self.transport.close()
        return 0

    @staticmethod
    def run(scenario: Callable[[Peer], Awaitable[None]], knobs: Knobs) -> None:
        """Run a scenario against a fixture of its own, on virtual time."""

        async def runs() -> None:
            fixture = Fixture(knobs)
            async with fixture.server:
                peer = MemoryPeer(fixture)
                await scenario(peer)
                await peer.finish()
                await peer._pump
                await asyncio.sleep(1.0)
                assert left_over(fixture) == {}

        run_virtual(runs)


def left_over(fixture: Fixture) -> dict[str, int]:
    """Return what is still held, connections included; spent nonces outlive their calls."""
    counts = fixture.server.stats()
    return {name: number for name, number in counts.items() if number and name != "spent"}


class Exchange:
    """A fixture on virtual time that many examples share: each has connections of its own.

    Whatever an example did, nothing of it may be left when its connections are gone.
    """

    def __init__(self, knobs: Knobs | None = None) -> None:
        self.fixture = Fixture(knobs)
        self._runner = asyncio.Runner(loop_factory=lambda: VirtualLoop(limit=1e9))

    def __enter__(self) -> Exchange:
        self._runner.__enter__()
        self._runner.run(self.fixture.server.start())
        return self

    def __exit__(self, *error: object) -> None:
        self._runner.run(self.fixture.server.stop())
        self._runner.close()

    def run(
        self,
        scenario: Callable[..., Awaitable[T]],
        *,
        peers: int = 1,
        principals: Sequence[str | None] = (None,),
    ) -> T:
        """Run a scenario with so many peers and return what it returns."""

        async def runs() -> T:
            made = [
                MemoryPeer(self.fixture, principal=principals[at % len(principals)])
                for at in range(peers)
            ]
            try:
                return await scenario(*made)
            finally:
                for peer in made:
                    peer.leave()
                await asyncio.gather(*(peer._pump for peer in made))
                await asyncio.sleep(1.0)
                assert left_over(self.fixture) == {}

        return self._runner.run(runs())


class StdioPeer(Peer):
    """A real process on real pipes. Use `StdioPeer.start`, and `kill` in the end."""

    def __init__(self, process: asyncio.subprocess.Process, stderr: IO[bytes]) -> None:
        super().__init__()
        self.process = process
        self.raw = bytearray()
        self._stderr = stderr
        self._stdout: asyncio.ReadTransport | None = None
        self._reading = asyncio.Event()
        self._reading.set()
        self._line = b""
        self.broken: BaseException | None = None
        self.closed = asyncio.Event()

    @classmethod
    async def start(
        cls,
        knobs: Knobs | None = None,
        *,
        environment: dict[str, str] | None = None,
        command: Sequence[str] | None = None,
    ) -> StdioPeer:
        """Start the fixture, or another Python command line, in a session of its own."""
        if command is None:
            command = [str(FIXTURE), json.dumps(asdict(knobs or Knobs()))]
        loop = asyncio.get_running_loop()
        read_end, write_end = os.pipe()
        stderr = TemporaryFile()  # noqa: SIM115  # closed by `kill`
        path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=write_end,
                stderr=stderr,
                env={
                    **os.environ,
                    "PYTHONUNBUFFERED": "",
                    "PYTHONPATH": path,
                    **(environment or {}),
                },
                start_new_session=True,
            )
        finally:
            os.close(write_end)
        peer = cls(process, stderr)
        peer._stdout, _ = await loop.connect_read_pipe(
            lambda: _Reader(peer), os.fdopen(read_end, "rb", buffering=0)
        )
        return peer

    @staticmethod
    def run(scenario: Callable[[Peer], Awaitable[None]], knobs: Knobs) -> None:
        """Run a scenario against a process of its own, which must end well."""

        async def runs() -> None:
            peer = await StdioPeer.start(knobs)
            try:
                await scenario(peer)
                assert await peer.finish() == 0, peer.stderr()
            finally:
                await peer.kill()

        asyncio.run(runs())

    # -- what arrives -------------------------------------------------------------------------

    def received(self, data: bytes) -> None:
        """Take bytes of its stdout."""
        self.raw += data
        *lines, self._line = (self._line + data).split(b"\n")
        for line in lines:
            try:
                self._take(strict(line))
            except (ValueError, AssertionError) as error:
                self.broken = self.broken or error

    def lost(self) -> None:
        """Its stdout has ended."""
        if self._line:
            self.broken = self.broken or ValueError(f"half a line: {self._line[:200]!r}")
        self.closed.set()
        self._end()

    def stop_reading(self) -> None:
        """Leave what it writes in the pipe."""
        assert self._stdout is not None
        self._stdout.pause_reading()

    def read_on(self) -> None:
        """Read again."""
        assert self._stdout is not None
        self._stdout.resume_reading()

    def close_output(self) -> None:
        """Close our end of its stdout."""
        assert self._stdout is not None
        self._stdout.close()

    # -- what is sent -------------------------------------------------------------------------

    async def send_bytes(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        async with asyncio.timeout(BOUND):
            await self.process.stdin.drain()

    def signal(self, number: int) -> None:
        """Send it a signal, and only it."""
        self.process.send_signal(number)

    def close_input(self) -> None:
        """Close its stdin."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    # -- the end ------------------------------------------------------------------------------

    async def wait(self) -> int:
        """Wait for the exit code, and then for what is left in the pipe."""
        async with asyncio.timeout(BOUND):
            code = await self.process.wait()
            await self.closed.wait()
        if self.broken is not None:
            raise self.broken
        return code

    async def finish(self) -> int:
        self.close_input()
        return await self.wait()

    def stderr(self) -> str:
        """What it has written to stderr."""
        self._stderr.seek(0)
        return self._stderr.read().decode(errors="replace")

    async def kill(self) -> None:
        """End what is left of it and close everything."""
        if self.process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            await self.process.wait()
        assert self.process.stdin is not None
        self.process.stdin.close()
        with suppress(BrokenPipeError, ConnectionResetError):
            await self.process.stdin.wait_closed()
        assert self._stdout is not None
        self._stdout.close()
        await self.closed.wait()
        self._stderr.close()


class _Reader(asyncio.Protocol):
    def __init__(self, peer: StdioPeer) -> None:
        self._peer = peer

    def data_received(self, data: bytes) -> None:
        self._peer.received(data)

    def connection_lost(self, error: Exception | None) -> None:
        self._peer.lost()
