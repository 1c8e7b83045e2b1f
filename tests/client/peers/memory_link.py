"""A scripted peer without a wire: a `Dialer` whose links follow a script on the test's own loop.

Messages still pass through bytes. With `kind="http"` each request fails or succeeds by itself, as
HTTP responses do; otherwise the link is one pipe. On a virtual clock it costs no time.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Hashable, Sequence

from raxol_mcp.errors import Reason
from raxol_mcp.transports.link import Dialect, LinkFailed, LinkPort
from raxol_mcp.wire.framing import Lines, TooLong
from raxol_mcp.wire.headers import Mirror
from raxol_mcp.wire.jsonrpc import (
    Failure,
    Incoming,
    Outgoing,
    Request,
    Response,
    encode,
)
from raxol_mcp.wire.meta import EraName
from raxol_mcp.wire.replies import UnreadableReply, decode_reply
from tests.client.peers.script import Message, Script, Step, filled, raw_bytes

__all__ = ["MemoryDialer", "MemoryLink"]

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
# Of the errors of the stateless era that have one.
STATUSES = {-32601: 404, -32022: 400, -32020: 400}


class MemoryDialer:
    """How to reach a scripted peer in memory. `links` are all that were made, in order.

    `opens` says what happens to attempt number N to open a link: a `Reason` to fail with, None to
    succeed. `received` are the messages of all links, `aborted` the keys that were aborted,
    `broken` what went wrong in the peer itself.
    """

    def __init__(
        self,
        script: Message,
        *,
        kind: str = "memory",
        opens: Callable[[int], Reason | None] = lambda _number: None,
        verdict_key: Hashable = None,
    ) -> None:
        self.kind = kind
        self.closing_cancels = kind == "http"
        self.verdict_key = verdict_key if verdict_key is not None else ("memory", id(self))
        self.script = script
        self.opens = opens
        self.links: list[MemoryLink] = []
        self.received: list[Message] = []
        self.aborted: list[int] = []
        self.broken: list[str] = []

    def __repr__(self) -> str:
        return f"MemoryDialer({self.kind})"

    @property
    def methods(self) -> list[str]:
        """The methods that came, in order; an answer is "answer"."""
        return [each.get("method", "answer") for each in self.received]

    @property
    def open(self) -> int:
        """How many links are open now."""
        return sum(link.is_open for link in self.links)

    @property
    def busy(self) -> int:
        """How many events are being dealt with, over all links."""
        return sum(len(link.tasks) for link in self.links)

    def link(self, port: LinkPort, dialect: Dialect) -> MemoryLink:
        """Make the link of one attempt."""
        made = MemoryLink(self, port, dialect, len(self.links) + 1)
        self.links.append(made)
        return made


class MemoryLink:
    """One connection to the scripted peer."""

    def __init__(self, dialer: MemoryDialer, port: LinkPort, dialect: Dialect, life: int) -> None:
        self.dialect = dialect
        self.is_open = False
        self.tasks: dict[asyncio.Task[None], int | None] = {}
        self.told: list[tuple[EraName, str]] = []
        self._dialer = dialer
        self._port = port
        self._life = life
        self._script = Script(dialer.script, life)
        self._lines = Lines(MAX_MESSAGE_BYTES)
        self._events: dict[str, asyncio.Event] = {}
        self._owed: dict[int, str] = {}  # the method, by key
        self._deaf = False
        self._mute = False

    async def open(self) -> None:
        """Make ready, or fail as the dialer says."""
        reason = self._dialer.opens(self._life)
        if reason is not None:
            raise LinkFailed(reason)
        self.is_open = True
        self._begin(self._script.steps("start"), None, None)

    def send(self, message: Outgoing, key: int, *, mirrors: Sequence[Mirror] = ()) -> None:
        """Hand one message to the peer, in the next turn of the loop."""
        # Failures of encoding are those of the message alone, and are told later like any other.
        line = encode(message)
        if isinstance(message, Request):
            self._owed[key] = message.method
        asyncio.get_running_loop().call_soon(self._arrived, line, key)

    def agreed(self, era: EraName, version: str) -> None:
        """Note what was negotiated."""
        self.told.append((era, version))

    def abort(self, key: int) -> None:
        """Stop what goes on for a key, as closing its HTTP response does."""
        self._owed.pop(key, None)
        self._dialer.aborted.append(key)
        if self._dialer.closing_cancels:
            for task, about in self.tasks.items():
                if about == key:
                    task.cancel()

    async def close(self) -> None:
        """End it."""
        self.is_open = False
        self._owed.clear()
        tasks = [task for task in self.tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    # -- the peer -----------------------------------------------------------------------------

    def _arrived(self, line: bytes, key: int) -> None:
        message: Message = json.loads(line)
        request = "method" in message and "id" in message
        if not self.is_open or (request and key not in self._owed):
            return
        if self._deaf:
            return
        self._dialer.received.append(message)
        if not request:
            self._port.sent(key)
        event = self._script.event_of(message)
        self._events.pop(event, asyncio.Event()).set()
        self._begin(self._script.steps(event, message), message, key if request else None)

    def _begin(self, steps: list[Step], message: Message | None, key: int | None) -> None:
        if steps:
            task = asyncio.ensure_future(self._perform(steps, message, key))
            self.tasks[task] = key
            task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        del self.tasks[task]
        if not task.cancelled() and task.exception() is not None:
            self._dialer.broken.append(repr(task.exception()))

    async def _perform(self, steps: list[Step], message: Message | None, key: int | None) -> None:
        for step in steps:
            if not self.is_open:
                return
            await self._step(step, message, key)
        if self._dialer.kind == "http" and key is not None and key in self._owed:
            self._fail(key, Reason("invalid_response", self._owed[key], maybe_done=True))

    async def _step(self, step: Step, message: Message | None, key: int | None) -> None:
        match step["step"]:
            case "say":
                for each in filled(step, message):
                    self._bytes(json.dumps(each).encode() + b"\n", key)
            case "raw" | "sse" | "wire":
                for data in raw_bytes(step, message):
                    self._bytes(data, key)
                    if step["pause"]:
                        await asyncio.sleep(step["pause"])
            case "http":
                self._http(step, message, key)
            case "wait":
                await asyncio.sleep(step["seconds"])
            case "until":
                await self._events.setdefault(step["event"], asyncio.Event()).wait()
            case "silent":
                await asyncio.Event().wait()
            case _:
                self._end(step, key)

    def _end(self, step: Step, key: int | None) -> None:
        match step["step"]:
            case "leave":
                self._lose(Reason("server_exited", step["code"]))
            case "kill":
                self._lose(Reason("server_exited", 128 + step["signal"]))
            case "close_output":
                self._lose(Reason("transport", "closed"))
            case "drop":
                if key is not None:
                    self._fail(key, Reason("transport", "closed", maybe_done=True))
            case "stop_reading":
                self._deaf = True
            case "stderr" | "forget":
                pass
            case other:
                raise ValueError(f"unknown step {other}")

    def _bytes(self, data: bytes, key: int | None) -> None:
        for line in self._lines.feed(data):
            if not self.is_open:
                return
            if isinstance(line, TooLong):
                self._lose(Reason("line_too_long", MAX_MESSAGE_BYTES))
            else:
                self._received(decode_reply(line), key)

    def _received(self, message: Incoming | UnreadableReply, key: int | None) -> None:
        if isinstance(message, UnreadableReply):
            if isinstance(message.id, int):
                method = self._owed.get(message.id)
                self._fail(message.id, Reason("invalid_response", method, maybe_done=True))
            return
        if isinstance(message, Failure) and self._has_status(message):
            self._fail(key or 0, Reason("http", STATUSES[message.code], error=_error_of(message)))
            return
        if isinstance(message, Response | Failure) and isinstance(message.id, int):
            self._owed.pop(message.id, None)
        about = key if self._dialer.kind == "http" else None
        self._port.received(message, about=about)

    def _has_status(self, message: Failure) -> bool:
        """Say whether it comes with a status of its own (MCP 2026-07-28 streamable-http)."""
        modern = self._dialer.kind == "http" and self._script.preset == "modern"
        return modern and message.code in STATUSES

    def _http(self, step: Step, message: Message | None, key: int | None) -> None:
        if key is None or message is None:
            return
        status: int = step["status"]
        if 200 <= status < 300:
            for data in raw_bytes(step, message):
                self._bytes(data + b"\n", key)
            return
        told = decode_reply(b"".join(raw_bytes(step, message)))
        error = _error_of(told) if isinstance(told, Failure) else None
        if 300 <= status < 400:
            self._fail(key, Reason("redirect_refused", status))
        elif status == 404 and self._script.preset == "legacy" and self.told:
            self._fail(key, Reason("session_rejected"))
        else:
            maybe_done = status >= 500
            self._fail(key, Reason("http", status, error=error, maybe_done=maybe_done))

    def _fail(self, key: int, reason: Reason) -> None:
        if self.is_open and key in self._owed:
            self._owed.pop(key, None)
            self._port.failed(key, reason)

    def _lose(self, reason: Reason) -> None:
        if self.is_open:
            self.is_open = False
            self._owed.clear()
            self._port.lost(reason)


def _error_of(failure: Failure) -> dict[str, object]:
    """Write the error object of an error response."""
    error: dict[str, object] = {"code": failure.code, "message": failure.message}
    return error if failure.data is None else {**error, "data": failure.data}
