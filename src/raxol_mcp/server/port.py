"""The server as transports and embedders see it: connections, messages, pushes.

`handle_message` waits, `request` does not, `open`/`receive`/`gone` is for transports. All of them
end in the same core inputs.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Final

from raxol_mcp.core.calls import Via
from raxol_mcp.core.effects import StartWorker
from raxol_mcp.core.peers import ConnectionFacts
from raxol_mcp.errors import INVALID_REQUEST, NotReady, TimedOut
from raxol_mcp.wire.jsonrpc import (
    Batch,
    Failure,
    Ignored,
    Incoming,
    Invalid,
    JSONObject,
    Notification,
    Outgoing,
    Request,
    Response,
)

if TYPE_CHECKING:
    from raxol_mcp.core.limits import Limits
    from raxol_mcp.server.runtime import ServerRuntime, Sink
    from raxol_mcp.server.seam import RequestHandle, Subscription

__all__ = ["DEFAULT_CONNECTION", "Port"]

DEFAULT_CONNECTION: Final = "default"
_DECODED: Final = (Request, Notification, Response, Failure, Invalid, Ignored, Batch)


class Port:
    """Connections of one server. Use it from the thread of the loop the server lives on."""

    def __init__(self, runtime: ServerRuntime, limits: Limits) -> None:
        self.limits = limits
        self._runtime = runtime
        self._connections = 0
        self._stopped = False
        # Transports that lost their connection to another one and have not reported it gone yet.
        self._replaced: Counter[Hashable] = Counter()

    # -- for transports -----------------------------------------------------------------------

    @property
    def max_message_bytes(self) -> int:
        """The size of the largest message to accept, in bytes."""
        return self.limits.max_message_bytes

    @property
    def max_depth(self) -> int:
        """How deep JSON may nest in a message to accept."""
        return self.limits.max_depth

    def open(
        self, sink: Sink, facts: ConnectionFacts, connection: Hashable | None = None
    ) -> Hashable:
        """Open a connection whose pushes go to `sink`; return its id.

        A connection that is open already is ended first: the new one inherits nothing.
        """
        if connection is None:
            self._connections += 1
            connection = f"{facts.transport}-{self._connections}"
        self._attach(sink, facts, connection)
        return connection

    def _attach(self, sink: Sink, facts: ConnectionFacts, connection: Hashable) -> None:
        runtime = self._runtime
        replaced = runtime.attach(connection, sink)
        # Nothing begins to wait here nor in `gone`: the time that was told last will do, and over
        # HTTP both happen with every request.
        effects = runtime.core.opened(connection, facts, runtime.core.ledger.now)
        if effects:
            runtime.perform(effects)
        if replaced is not None:
            from raxol_mcp.server.seam import Subscription  # a rare case: not worth start-up time

            if not isinstance(replaced, Subscription):
                self._replaced[connection] += 1
            replaced.close("another subscriber took this connection over")

    def receive(self, connection: Hashable, message: Incoming) -> None:
        """Take one message; what it leads to is pushed to the connection's sink."""
        runtime = self._runtime
        runtime.perform(runtime.core.received(connection, message, runtime.now()))

    def input_ended(self, connection: Hashable) -> None:
        """Nothing more will be read there: what waits for the client's words is dropped."""
        runtime = self._runtime
        runtime.perform(runtime.core.input_ended(connection, runtime.now()))

    def outstanding(self, connection: Hashable) -> int:
        """How many answers the connection is still owed."""
        return self._runtime.core.outstanding(connection)

    def gone(self, connection: Hashable) -> None:
        """The connection is over; nothing more is pushed to it."""
        if self._replaced and self._replaced[connection]:
            self._replaced -= Counter([connection])  # of the one that was replaced
            return
        runtime = self._runtime
        runtime.detach(connection)
        effects = runtime.core.gone(connection, runtime.core.ledger.now)
        if effects:  # none where every request had its answer, as over HTTP
            runtime.perform(effects)

    # -- for embedders ------------------------------------------------------------------------

    async def handle_message(
        self,
        message: object,
        connection: Hashable = DEFAULT_CONNECTION,
        timeout: float | None = None,  # noqa: ASYNC109  # it cancels the call, not only the wait
    ) -> Outgoing | None:
        """Handle one decoded message (what `decode` returns); return the reply, or None.

        Start the server first (`async with server:`): without that its guards are not checked and
        it has no lifespan. It lives on the loop of its first message until it is stopped, or until
        that loop is closed.

        None for notifications and responses, and for a `tools/call` that was parked: its answer
        is pushed to the connection's subscriber later. With `timeout` (seconds) the call is
        cancelled and TimedOut raised when it takes longer. NotReady: the server has stopped.
        """
        handle = self._send(message, connection, Via.HANDLE)
        try:
            async with asyncio.timeout(timeout):
                return await handle
        except TimeoutError:
            handle.cancel()
            raise TimedOut(f"no reply within {timeout} seconds") from None
        except asyncio.CancelledError:
            handle.cancel()
            raise

    def request(
        self,
        message: object,
        connection: Hashable = DEFAULT_CONNECTION,
        *,
        owner: asyncio.Task[object] | None = None,
    ) -> RequestHandle:
        """Handle one decoded message without waiting: the handle gets exactly one reply.

        Unlike `handle_message`, a parked call stays outstanding: its reply is the eventual
        response. When `owner` (default: the current task) ends, the request is cancelled.
        NotReady: the server has stopped.
        """
        handle = self._send(message, connection, Via.REPLY)
        task = owner or asyncio.current_task()
        if task is not None and not handle.done():

            def ended(_: object) -> None:
                handle.cancel()

            task.add_done_callback(ended)
            handle.future.add_done_callback(lambda _: task.remove_done_callback(ended))
        return handle

    def cancel(self, handle: RequestHandle) -> None:
        """Cancel a request made with `request`, wherever it is. Its reply is None."""
        runtime = self._runtime
        if handle.call is not None and not handle.done():
            runtime.perform(runtime.core.cancelled(handle.call, runtime.now()))

    def subscribe(
        self,
        connection: Hashable = DEFAULT_CONNECTION,
        deliver: Callable[[Outgoing], None] | None = None,
        *,
        facts: ConnectionFacts | None = None,
    ) -> Subscription:
        """Subscribe to what is pushed to `connection`: `with server.subscribe("a") as pushes:`.

        The id must be the one its requests are made under. A second subscription of an id ends
        the first: parked calls and declared capabilities are not inherited.
        """
        from raxol_mcp.server.seam import Subscription  # for embedders: a transport needs none

        subscription = Subscription(connection, self._subscription_ended, deliver)
        self._attach(subscription, facts or ConnectionFacts(), connection)
        return subscription

    def notify(self, method: str, params: JSONObject | None = None) -> None:
        """Tell connections that something happened.

        `notifications/resources/updated` goes to those that subscribed to `params["uri"]`,
        `*/list_changed` and everything else to every subscriber, and to listens that asked for it.
        May be called from any thread once the server has started: a tool that blocks runs in one.
        """
        runtime = self._runtime
        runtime.on_loop(lambda: runtime.core.notified(method, params or {}, runtime.now()))

    # -- inside -------------------------------------------------------------------------------

    def _send(self, message: object, connection: Hashable, via: Via) -> RequestHandle:
        from raxol_mcp.server.seam import RequestHandle  # as above

        if self._stopped:
            raise NotReady("stopped")
        runtime = self._runtime
        future: asyncio.Future[Outgoing | None] = runtime.loop.create_future()
        effects = runtime.core.received(
            connection, _incoming(message), runtime.now(), via=via, caller=future
        )
        started = (effect.call for effect in effects if isinstance(effect, StartWorker))
        handle = RequestHandle(future, self.cancel, next(started, None))
        runtime.perform(effects)
        return handle

    def _subscription_ended(self, subscription: Subscription) -> None:
        if self._runtime.detach(subscription.connection, subscription):
            runtime = self._runtime
            runtime.perform(runtime.core.gone(subscription.connection, runtime.now()))


def _incoming(message: object) -> Incoming:
    """Take a message that `decode` or `classify` made; anything else was not decoded here."""
    if isinstance(message, _DECODED):
        return message
    if isinstance(message, Mapping) and "method" in message and "id" in message:
        reason = "Not a decoded message: pass what raxol_mcp.decode returns"
        return Invalid(Failure(None, INVALID_REQUEST, reason))
    return Ignored("not a decoded message")
