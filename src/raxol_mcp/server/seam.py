"""What embedders hold: the handle of a request, and a subscription to one connection's pushes."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Hashable
from types import TracebackType
from typing import TYPE_CHECKING, Final

from raxol_mcp.core.subscriptions import only_a_hint
from raxol_mcp.wire.jsonrpc import Notification

if TYPE_CHECKING:
    from raxol_mcp.core.calls import Call
    from raxol_mcp.wire.jsonrpc import Outgoing, RequestId

__all__ = ["RequestHandle", "Subscription"]

MAX_QUEUED: Final = 256


class RequestHandle:
    """An outstanding `request()`. Await it for its one reply: a message, or None.

    None is the reply to a notification, to a response, and to a request that was cancelled.
    """

    __slots__ = ("_cancel", "call", "future")

    def __init__(
        self,
        future: asyncio.Future[Outgoing | None],
        cancel: Callable[[RequestHandle], None],
        call: Call | None,
    ) -> None:
        self.future = future
        self.call = call  # None: answered inline
        self._cancel = cancel

    def __await__(self) -> Generator[object, None, Outgoing | None]:
        """Wait for the reply. Cancelling the wait does not cancel the request."""
        return asyncio.shield(self.future).__await__()

    def done(self) -> bool:
        """Whether the reply is there."""
        return self.future.done()

    def cancel(self) -> None:
        """End the request wherever it is: its reply is None. One that is over is left alone."""
        self._cancel(self)

    def __repr__(self) -> str:
        return f"<RequestHandle {'done' if self.done() else 'outstanding'}>"


class Subscription:
    """The pushes of one connection, for an embedder: iterate over it, or give a callback.

    A context manager; leaving it ends the connection. Holds at most 256 messages that nobody has
    taken: a subscriber that does not keep up is ended, `reason` says so. What only hints at a
    change (`*/list_changed`, an updated resource) is held once.
    """

    def __init__(
        self,
        connection: Hashable,
        end: Callable[[Subscription], None],
        deliver: Callable[[Outgoing], None] | None = None,
    ) -> None:
        self.connection = connection
        self.reason: str | None = None
        self._end = end
        self._deliver = deliver
        self._queue: deque[Outgoing] = deque()
        self._arrived = asyncio.Event()

    # -- as a sink ----------------------------------------------------------------------------

    def put(
        self, message: Outgoing, *, about: RequestId | None = None, droppable: bool = False
    ) -> None:
        """Take one push."""
        if self.reason is not None:
            return
        if self._deliver is not None:
            self._deliver(message)
            return
        if isinstance(message, Notification) and only_a_hint(message) and message in self._queue:
            return
        if len(self._queue) >= MAX_QUEUED:
            if not droppable:
                self.close("the subscriber does not keep up")
            return
        self._queue.append(message)
        self._arrived.set()

    def close(self, reason: str) -> None:
        """End the subscription; what is queued can still be taken."""
        if self.reason is None:
            self.reason = reason
            self._arrived.set()
            asyncio.get_running_loop().call_soon(self._end, self)

    # -- for the subscriber -------------------------------------------------------------------

    async def next(self) -> Outgoing:
        """Wait for the next push. Raises StopAsyncIteration at the end."""
        while not self._queue:
            if self.reason is not None:
                raise StopAsyncIteration
            self._arrived.clear()
            await self._arrived.wait()
        return self._queue.popleft()

    def taken(self) -> list[Outgoing]:
        """Take what is queued now, without waiting."""
        messages = list(self._queue)
        self._queue.clear()
        return messages

    def __aiter__(self) -> AsyncIterator[Outgoing]:
        return self

    async def __anext__(self) -> Outgoing:
        return await self.next()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end()

    def end(self) -> None:
        """End the connection now. Idempotent."""
        if self.reason is None:
            self.reason = "ended"
            self._arrived.set()
            self._end(self)
