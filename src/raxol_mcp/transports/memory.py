"""A server and its client in one process: the shortest complete transport.

`MemoryTransport` is the transport and the client's end of it, for tests of a server and for
programs that embed one. Messages are dicts, as a JSON parser gives them.

```python
async with MemoryTransport(server) as client:
    answer = await client.request("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
```

It is also the one to read before writing another transport: each duty that
`raxol_mcp.transports.base` lists is one method here. It starts and stops no server, because
several connections may share one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Mapping
from itertools import count
from types import TracebackType
from typing import TYPE_CHECKING, Final

import msgspec

from raxol_mcp.core.peers import ConnectionFacts
from raxol_mcp.core.subscriptions import only_a_hint
from raxol_mcp.errors import NotReady
from raxol_mcp.transports.outbox import MAX_QUEUED_MESSAGES, Admission, Outbox
from raxol_mcp.wire.jsonrpc import (
    Failure,
    Notification,
    Request,
    Response,
    classify,
    decode,
    decode_raw,
    encode,
)

if TYPE_CHECKING:
    from raxol_mcp.transports.base import ServerPort
    from raxol_mcp.wire.jsonrpc import JSONObject, Outgoing, RequestId

__all__ = ["MemoryTransport"]

_FACTS: Final = ConnectionFacts(transport="memory")


class MemoryTransport:
    """One connection to `server` and the client's end of it.

    Use it as an async context manager, or call `open` and `close`. `facts` is what the server is
    told about the client. With `through_bytes` every message is written and parsed as on a real
    wire, which finds what cannot be; without, nothing is copied but structure, and the server
    must not be handed a dict that is changed later.

    Everything runs in the event loop of the server. What the client leaves unread is held for it:
    answers without a bound of their own, broadcasts up to `max_messages`, then the connection
    ends, as it does on a wire.
    """

    def __init__(
        self,
        server: ServerPort,
        *,
        facts: ConnectionFacts = _FACTS,
        connection: Hashable | None = None,
        through_bytes: bool = False,
        max_messages: int = MAX_QUEUED_MESSAGES,
    ) -> None:
        self.connection = connection
        self.closed: str | None = "not opened"
        self._server = server
        self._facts = facts
        self._through_bytes = through_bytes
        self._inbox: Outbox[JSONObject] = Outbox(max_messages=max_messages)
        self._arrived = asyncio.Event()
        self._waiting: dict[RequestId, asyncio.Future[JSONObject]] = {}
        self._ids = count(1)

    async def __aenter__(self) -> MemoryTransport:
        self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def open(self) -> None:
        """Connect; `connection` is the id that the server gave."""
        self.closed = None
        self.connection = self._server.open(_ClientSink(self), self._facts, self.connection)

    def close(self, reason: str = "closed by the client") -> None:
        """Go away: what is open is cancelled, what waits here gets `NotReady`. Again: nothing."""
        if self.closed is None:
            self._lose(reason)
            self._server.gone(self.connection)

    def end_input(self) -> None:
        """Say nothing more, but go on reading: what end of file is on a pipe."""
        self._check_open()
        self._server.input_ended(self.connection)

    def send(self, message: Mapping[str, object] | list[object] | bytes) -> None:
        """Send one message, or a batch; bytes are parsed as one line of a pipe is.

        Raises `NotReady` when the connection has ended.
        """
        self._check_open()
        if not isinstance(message, bytes) and self._through_bytes:
            message = msgspec.json.encode(message)
        if isinstance(message, bytes):
            incoming = decode(message, max_depth=self._server.max_depth)
        else:
            incoming = classify(message)
        self._server.receive(self.connection, incoming)

    def notify(self, method: str, params: JSONObject | None = None) -> None:
        """Send a notification."""
        self.send(_message(method, params))

    async def request(
        self, method: str, params: JSONObject | None = None, *, id: RequestId | None = None
    ) -> JSONObject:
        """Send a request; return the whole answer, with its `result` or its `error`.

        Other messages that arrive meanwhile are left to `receive`. When the waiting task is
        cancelled, so is the request. Raises `NotReady` when the connection ends first, and
        `ValueError` for an `id` that another `request` waits for.
        """
        if id is None:
            id = next(number for number in self._ids if number not in self._waiting)
        elif id in self._waiting:
            raise ValueError(f"a request with the id {id!r} is waiting already")
        answer: asyncio.Future[JSONObject] = asyncio.get_running_loop().create_future()
        self._waiting[id] = answer
        try:
            self.send({**_message(method, params), "id": id})
            return await answer
        except asyncio.CancelledError:
            # MCP: a client must not cancel `initialize`.
            if self.closed is None and method != "initialize":
                self.notify("notifications/cancelled", {"requestId": id})
            raise
        finally:
            del self._waiting[id]

    async def receive(self) -> JSONObject:
        """Return the next message that is not the answer to a `request`, waiting for it.

        Raises `NotReady` when the connection has ended and everything is read.
        """
        while not self._inbox:
            self._check_open()
            self._arrived.clear()
            await self._arrived.wait()
        return self._inbox.take(1)[0]

    def unread(self) -> list[JSONObject]:
        """Return what `receive` would return now, one by one, without waiting."""
        return self._inbox.take()

    def _check_open(self) -> None:
        if self.closed is not None:
            raise NotReady(self.closed)

    def _lose(self, reason: str) -> None:
        self.closed = reason
        self._arrived.set()
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(NotReady(reason))

    def _put(self, message: Outgoing, about: RequestId | None, droppable: bool) -> None:
        body, size_bytes = self._body(message)
        if isinstance(message, Response | Failure) and message.id is not None:
            waiting = self._waiting.get(message.id)
            if waiting is not None and not waiting.done():
                waiting.set_result(body)
                return
        hint: bytes | None = None
        if about is None:
            if not isinstance(message, Notification):
                about = message.id
            elif only_a_hint(message):
                hint = encode(message)
        admission = self._inbox.put(body, size_bytes, about=about, droppable=droppable, hint=hint)
        if admission is Admission.QUEUED:
            self._arrived.set()
        elif admission is Admission.OVERFLOW:
            self._disconnect("the client lets broadcasts pile up")

    def _disconnect(self, reason: str) -> None:
        """End it from the server's side: at once here, and `gone` when the server is done."""
        if self.closed is None:
            self._lose(reason)
            asyncio.get_running_loop().call_soon(self._server.gone, self.connection)

    def _body(self, message: Outgoing) -> tuple[JSONObject, int]:
        if self._through_bytes:
            line = encode(message)
            return msgspec.json.decode(line, type=dict[str, object]), len(line)
        if isinstance(message, Response):
            return {"jsonrpc": "2.0", "id": message.id, "result": _plain(message.result)}, 1
        if isinstance(message, Failure):
            error: JSONObject = {"code": message.code, "message": message.message}
            if message.data is not None:
                error["data"] = _plain(message.data)
            return {"jsonrpc": "2.0", "id": message.id, "error": error}, 1
        body = _message(message.method, message.params)
        if isinstance(message, Request):
            body["id"] = message.id
        return body, 1


class _ClientSink:
    """What the server is given: it can put and close, and do nothing else to the client."""

    __slots__ = ("_transport",)

    def __init__(self, transport: MemoryTransport) -> None:
        self._transport = transport

    def put(
        self, message: Outgoing, *, about: RequestId | None = None, droppable: bool = False
    ) -> None:
        """Hand one message to the client; see `Sink.put`."""
        if self._transport.closed is None:
            self._transport._put(message, about, droppable)

    def close(self, reason: str) -> None:
        """End the connection; see `Sink.close`. What was put so far can still be received."""
        self._transport._disconnect(reason)


def _message(method: str, params: Mapping[str, object] | None) -> JSONObject:
    body: JSONObject = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        body["params"] = _plain(params)
    return body


def _plain(value: object) -> object:
    """Give the value a peer would read: encoded parts decoded, containers not shared."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, msgspec.Raw):
        return decode_raw(value)
    return value
