"""The two sides of a client's runtime: what a link sees of it, and what it asks of its user.

Whatever a link reports becomes an input of the core. A bug in what follows must end somewhere: it
costs the connection, at once, with a line in the log, and not a caller the time of his timer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from raxol_mcp.errors import Reason

if TYPE_CHECKING:
    from raxol_mcp.client.runtime import ClientRuntime
    from raxol_mcp.core.client_effects import Acknowledged, Begin, Deliver, Effect, Progressed
    from raxol_mcp.core.tickets import ServerQuestion
    from raxol_mcp.wire.jsonrpc import Failure, Incoming, JSONObject, Response

__all__ = ["Port", "User"]

_logger: Final = logging.getLogger("raxol_mcp.client")


class User(Protocol):
    """What the runtime asks of whoever uses it. Nothing here may block."""

    async def handle(self, question: ServerQuestion) -> Response | Failure:
        """Answer a request of the server."""

    async def ask(self, requests: JSONObject) -> JSONObject | Reason:
        """Answer what a server wants to know before it goes on: `{key: answer}`."""

    def begun(self, effect: Begin) -> None:
        """A session begins; what was known of the server before may no longer be so."""

    def deliver(self, effect: Deliver) -> None:
        """Take a notification."""

    def progressed(self, effect: Progressed) -> None:
        """Take what the server says about how far it is."""

    def acknowledged(self, effect: Acknowledged) -> None:
        """Take what the server grants of a subscription."""

    def missed(self) -> None:
        """Notifications may not have come."""


class Port:
    """A `raxol_mcp.transports.link.LinkPort`. `attempt` tells its reports from those of others."""

    __slots__ = ("_attempt", "_runtime")

    def __init__(self, runtime: ClientRuntime, attempt: int) -> None:
        self._runtime = runtime
        self._attempt = attempt

    def received(self, message: Incoming, *, about: int | None = None) -> None:
        """See `LinkPort`."""
        core = self._runtime.core
        self._report(lambda now: core.received(self._attempt, message, now, about=about))

    def sent(self, key: int) -> None:
        """See `LinkPort`."""
        self._report(lambda now: self._runtime.core.sent(self._attempt, key, now))

    def failed(self, key: int, reason: Reason) -> None:
        """See `LinkPort`."""
        self._report(lambda now: self._runtime.core.failed(self._attempt, key, reason, now))

    def lost(self, reason: Reason) -> None:
        """See `LinkPort`."""
        self._report(lambda now: self._runtime.core.lost(self._attempt, reason, now))

    def missed(self) -> None:
        """See `LinkPort`."""
        if self._runtime.has_link(self._attempt):
            self._runtime.user.missed()

    def hears(self, hears: bool) -> None:
        """See `LinkPort`."""
        if self._runtime.has_link(self._attempt):
            self._runtime.hears = hears

    def noticed(self, event: str, fields: JSONObject) -> None:
        """See `LinkPort`."""
        self._runtime.record(event, fields)

    def _report(self, input: Callable[[float], list[Effect]]) -> None:
        runtime = self._runtime
        try:
            effects = input(runtime.now())
        except Exception as error:  # the edge of the core: see above
            _logger.exception("a report of the transport could not be taken: please report it")
            reason = Reason("task_down", type(error).__name__, maybe_done=True)
            effects = runtime.core.lost(self._attempt, reason, runtime.now())
        runtime.perform(effects)
