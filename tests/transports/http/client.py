"""A small ASGI client that drives the application in the same loop: no sockets, no threads.

It is the HTTP server's side of ASGI as well, so a test decides what a server decides elsewhere:
when a client leaves, and when it reads nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, cast

from raxol_mcp.transports.http.asgi import Event, Scope
from raxol_mcp.wire.framing import TooLong
from raxol_mcp.wire.sse import Event as SseEvent
from raxol_mcp.wire.sse import Events

Json = dict[str, Any]
Lines = Iterable[tuple[str, str]]


class Reply:
    """What has come of one answer so far."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""
        self.complete = False

    def json(self) -> Json:
        """Return the body as JSON."""
        value = json.loads(self.body)
        assert isinstance(value, dict)
        return value

    def events(self) -> list[SseEvent]:
        """Return the events of the whole body."""
        return [event for event in Events().feed(self.body) if isinstance(event, SseEvent)]

    def messages(self) -> list[Json]:
        """Return the messages of the whole body, in either form."""
        if self.headers.get("content-type") == "text/event-stream":
            return [json.loads(event.data) for event in self.events() if event.data]
        return [self.json()]


class Open:
    """One request that is under way."""

    def __init__(self, client: HttpClient, scope: Scope, parts: Iterable[bytes]) -> None:
        self.reply = Reply()
        self._incoming: deque[Event] = deque()
        self._has_incoming = asyncio.Event()
        self._changed = asyncio.Event()
        self._reading = asyncio.Event()
        self._reading.set()
        self._events = Events()
        self._ready: deque[SseEvent] = deque()
        self._seen = 0
        self.left = False
        bodies = list(parts)
        for place, body in enumerate(bodies):
            more = place + 1 < len(bodies)
            self.give({"type": "http.request", "body": body, "more_body": more})
        coroutine = client.app(scope, self._receive, self._send)
        self.task: asyncio.Task[None] = asyncio.ensure_future(coroutine)
        self.task.add_done_callback(lambda _: self._changed.set())

    # -- the server's side of ASGI ------------------------------------------------------------

    def give(self, event: Event) -> None:
        """Let the application receive `event`."""
        self._incoming.append(event)
        self._has_incoming.set()

    async def _receive(self) -> Event:
        while not self._incoming:
            if self.left or self.reply.complete:
                return {"type": "http.disconnect"}
            self._has_incoming.clear()
            await self._has_incoming.wait()
        return self._incoming.popleft()

    async def _send(self, event: Event) -> None:
        await self._reading.wait()
        if self.left:
            return
        reply = self.reply
        if event["type"] == "http.response.start":
            assert not reply.status, "an answer begins once"
            reply.status = cast("int", event["status"])
            for name, value in cast("list[tuple[bytes, bytes]]", event["headers"]):
                reply.headers[name.decode()] = value.decode()
        else:
            assert reply.status, "the head comes first"
            assert not reply.complete, "nothing comes after the end"
            reply.body += cast("bytes", event.get("body", b""))
            if not event.get("more_body"):
                reply.complete = True
                self._has_incoming.set()
        self._changed.set()

    # -- the client's side --------------------------------------------------------------------

    def stall(self) -> None:
        """Read nothing from here on."""
        self._reading.clear()

    def leave(self) -> None:
        """Close the connection."""
        self.left = True
        self._reading.set()
        self._has_incoming.set()

    async def ended(self) -> Reply:
        """Wait until the application is done with this request."""
        await self.task
        return self.reply

    async def head(self) -> Reply:
        """Wait for the head of the answer."""
        while not self.reply.status:
            await self._change()
        return self.reply

    async def event(self) -> SseEvent:
        """Wait for the next event of the stream."""
        while not self._ready:
            fresh = self.reply.body[self._seen :]
            self._seen = len(self.reply.body)
            found = self._events.feed(fresh)
            assert not any(isinstance(event, TooLong) for event in found)
            self._ready.extend(event for event in found if isinstance(event, SseEvent))
            if not self._ready:
                assert not self.reply.complete, "the stream has ended"
                await self._change()
        return self._ready.popleft()

    async def message(self) -> Json:
        """Wait for the next event that carries a message."""
        while not (event := await self.event()).data:
            pass
        value = json.loads(event.data)
        assert isinstance(value, dict)
        return value

    async def stream(self) -> AsyncIterator[bytes]:
        """Yield what the events carry, until the application is done with this request."""
        events, seen = Events(), 0
        while True:
            done = self.task.done()
            if self.reply.headers.get("content-type") == "text/event-stream":
                fresh, seen = self.reply.body[seen:], len(self.reply.body)
                for event in events.feed(fresh):
                    assert isinstance(event, SseEvent)
                    if event.data:
                        yield event.data
            if done:
                await self.task
                return
            self._changed.clear()
            if not self.task.done():
                await self._changed.wait()

    async def _change(self) -> None:
        self._changed.clear()
        assert not self.task.done(), f"the application is done: {self.task!r}"
        await self._changed.wait()


class HttpClient:
    """Sends requests to `app` as if it were served at `host`."""

    def __init__(self, app: Any, *, host: str = "127.0.0.1:8000", root_path: str = "") -> None:
        self.app = app
        self.host = host
        self.root_path = root_path

    def open(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str | None] | Lines = (),
        body: bytes | list[bytes] = b"",
    ) -> Open:
        """Begin a request. A header that is None is left out; pairs are sent as they are."""
        if isinstance(headers, Mapping):
            wanted = {"host": self.host, **headers}
            lines: Lines = [(name, value) for name, value in wanted.items() if value is not None]
        else:
            lines = [("host", self.host), *headers]
        path, _, query = path.partition("?")
        scope: Scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "path": self.root_path + path,
            "root_path": self.root_path,
            "query_string": query.encode(),
            "scheme": "http",
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in lines],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8000),
        }
        return Open(self, scope, body if isinstance(body, list) else [body])

    async def send(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str | None] | Lines = (),
        body: bytes | list[bytes] = b"",
    ) -> Reply:
        """Send a request and wait for the whole answer."""
        return await self.open(method, path, headers, body).ended()
