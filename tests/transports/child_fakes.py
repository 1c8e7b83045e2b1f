"""A client that only notes what its link reports, and the server it starts."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar, cast

from raxol_mcp.errors import Reason
from raxol_mcp.transports.link import Dialect
from raxol_mcp.transports.subprocess import SubprocessDialer
from raxol_mcp.wire.jsonrpc import Incoming, JSONObject, Request, Response

PEER = Path(__file__).with_name("peers_subprocess.py")
# -I and -S: a third of the time to start.
PEER_ARGS = ("-I", "-S", str(PEER))
# Every wait for a process is bounded by this, in seconds; none should come near it.
TIMEOUT = 30.0

T = TypeVar("T")


class NotingPort:
    """A `LinkPort` whose `events` are what was reported, in order: `(name, ...)`."""

    def __init__(self) -> None:
        self.events: list[tuple[object, ...]] = []
        self.messages: list[Incoming] = []
        self.on_event: Callable[[], None] = lambda: None
        self._changed = asyncio.Event()

    def received(self, message: Incoming, *, about: int | None = None) -> None:
        assert about is None, "stdio cannot tell"
        self.messages.append(message)
        self._note("received", message)

    def sent(self, key: int) -> None:
        self._note("sent", key)

    def failed(self, key: int, reason: Reason) -> None:
        self._note("failed", key, reason)

    def lost(self, reason: Reason) -> None:
        self._note("lost", reason)

    def missed(self) -> None:
        raise AssertionError("a pipe loses nothing before its end")

    def hears(self, hears: bool) -> None:
        raise AssertionError("a pipe hears as long as it is there")

    def noticed(self, event: str, fields: JSONObject) -> None:
        self._note("noticed", event, fields)

    def _note(self, *event: object) -> None:
        self.events.append(event)
        self._changed.set()
        self.on_event()

    def named(self, name: str) -> list[tuple[object, ...]]:
        """Return what was reported under one name, without the name."""
        return [event[1:] for event in self.events if event[0] == name]

    async def until(self, met: Callable[[], T]) -> T:
        """Wait until `met()` is true after an event, and return what it returned."""
        while not (result := met()):
            self._changed.clear()
            await self._changed.wait()
        return result

    async def next_lost(self) -> Reason:
        """Wait for the end of the link."""
        await self.until(lambda: self.named("lost"))
        return cast("Reason", self.named("lost")[0][0])

    async def failure(self, key: int) -> Reason:
        """Wait for the failure of a message."""
        found = await self.until(
            lambda: [reason for failed, reason in self.named("failed") if failed == key]
        )
        return cast("Reason", found[0])


class Session:
    """An open link to a server that does as it is told."""

    def __init__(self, dialer: SubprocessDialer) -> None:
        self.dialer = dialer
        self.port = NotingPort()
        self.link = dialer.link(self.port, Dialect.CURRENT)
        self._keys = 0

    def send(self, method: str, **params: object) -> int:
        """Send a request; return its id."""
        self._keys += 1
        self.link.send(Request(self._keys, method, params), self._keys)
        return self._keys

    async def answer(self, key: int) -> object:
        """Wait for the result of a request."""

        def answered() -> list[Response]:
            return [
                message
                for message in self.port.messages
                if isinstance(message, Response) and message.id == key
            ]

        return (await self.port.until(answered))[0].result

    async def ask(self, method: str, **params: object) -> object:
        """Send a request and wait for its result."""
        return await self.answer(self.send(method, **params))


def peer_dialer(*args: str, **options: object) -> SubprocessDialer:
    """Return the dialer of a server that does as it is told."""
    make = cast("Callable[..., SubprocessDialer]", SubprocessDialer)
    return make(sys.executable, [*PEER_ARGS, *args], **options)


@asynccontextmanager
async def opened(dialer: SubprocessDialer) -> AsyncIterator[Session]:
    """Open a link and close it at the end, whatever happens."""
    session = Session(dialer)
    await session.link.open()
    try:
        yield session
    finally:
        await session.link.close()


def run(scenario: Callable[[], Coroutine[object, object, T]]) -> T:
    """Run a scenario on a loop of its own, within a bound."""

    async def bounded() -> T:
        async with asyncio.timeout(TIMEOUT):
            return await scenario()

    return asyncio.run(bounded())


def is_alive(pid: int) -> bool:
    """Say whether a process is there and more than a zombie that nobody reaps."""
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except OSError:
        return False
    return state not in (b"Z", b"X")


def is_there(pid: int) -> bool:
    """Say whether a process is there, be it a zombie: a child that was reaped is not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
