"""What a layer above puts on a server that somebody else wrote: the views, above all.

Not for servers that are written by hand; nothing here decides who may do what.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.server.definitions import Kind
from raxol_mcp.server.port import Port

if TYPE_CHECKING:
    from raxol_mcp.core.limits import Limits
    from raxol_mcp.core.peers import ConnectionFacts
    from raxol_mcp.server.authorizer import AuthorizationContext
    from raxol_mcp.server.context import Context
    from raxol_mcp.server.definitions import Tool
    from raxol_mcp.server.runtime import ServerRuntime, Sink
    from raxol_mcp.server.seam import Subscription
    from raxol_mcp.server.surface import Surface
    from raxol_mcp.server.tools import UnknownToolReply

__all__ = ["Extension", "Lens"]

_logger = logging.getLogger("raxol_mcp.server")

# Of the tools that a caller may call, those to list; None: all of them.
Lens: TypeAlias = "Callable[[Sequence[Tool], AuthorizationContext], Sequence[Tool] | None]"

_LIST_CHANGED: Final = {
    Kind.TOOLS: "notifications/tools/list_changed",
    Kind.RESOURCES: "notifications/resources/list_changed",
    Kind.TEMPLATES: "notifications/resources/list_changed",
    Kind.PROMPTS: "notifications/prompts/list_changed",
}


class Extension(Port):
    """The part of a `Server` that others extend it by."""

    _surface: Surface
    _serving: int

    def __init__(
        self, runtime: ServerRuntime, limits: Limits, unknown_tool_reply: UnknownToolReply | None
    ) -> None:
        super().__init__(runtime, limits)
        self._lens: Lens | None = None
        self._changed: set[str] = set()
        self._told_of_gone: list[Callable[[Hashable], None]] = []
        self._unknown_tool_replies: list[UnknownToolReply] = []
        if unknown_tool_reply is not None:
            self._unknown_tool_replies.append(unknown_tool_reply)

    def on_unknown_tool(self, reply: UnknownToolReply) -> Callable[[], None]:
        """Ask `reply(name)` as well when a tool is called that is not there; return what ends that.

        The first that gives a text answers; the server's own `unknown_tool_reply` is before it.
        """
        replies = self._unknown_tool_replies
        replies.append(reply)

        def remove() -> None:
            if reply in replies:
                replies.remove(reply)

        return remove

    def look_through(self, lens: Lens) -> None:
        """Show of `tools/list` what `lens(tools, context)` leaves of what the caller may call.

        It runs on the loop, for every page, after the authorizer: it narrows what is listed, never
        what may be called. When it fails the list is whole. Raises ConfigurationError where there
        is one already.
        """
        if self._lens is not None:
            raise ConfigurationError("the server has a lens already")
        self._lens = self._surface.lens = lens

    def list_changed(self, kind: Kind) -> None:
        """Tell connections that a list is another now, once per turn of the loop however often.

        Registering does that by itself: this is for lists that change by what they are seen
        through. From any thread; nobody is told while nothing is served.
        """
        if self._serving:
            self._runtime.loop.call_soon_threadsafe(self._list_changed, _LIST_CHANGED[kind])

    async def tools_for(self, context: Context) -> list[Tool]:
        """List the tools that the caller may list and call, whatever its lens leaves out.

        For tools and resources that tell of other tools: what goes around `tools/list` must not
        go around its authorizers.
        """
        return await self._surface.tools_for(context)

    async def may_read(self, context: Context, uri: str) -> bool:
        """Say whether the caller may read `uri`: for what tells of several resources at once."""
        return await self._surface.may_read(context, uri)

    def share_of(self, connection: Hashable) -> Hashable | None:
        """Name the share that a connection's calls count against (ADR-0009); None: it is gone."""
        peer = self._runtime.core.ledger.peers.find(connection)
        return peer.share if peer is not None and peer.open else None

    def on_gone(self, told: Callable[[Hashable], None]) -> Callable[[], None]:
        """Call `told(connection)` when a connection is gone; return what ends that. On the loop."""
        self._told_of_gone.append(told)

        def remove() -> None:
            if told in self._told_of_gone:
                self._told_of_gone.remove(told)

        return remove

    def gone(self, connection: Hashable) -> None:
        """The connection is over; nothing more is pushed to it."""
        super().gone(connection)
        if self._told_of_gone and self.share_of(connection) is None:
            self._tell_gone(connection)

    # -- inside -------------------------------------------------------------------------------

    def _attach(self, sink: Sink, facts: ConnectionFacts, connection: Hashable) -> None:
        # Who takes the id of a connection over is somebody else: the one before is gone.
        replaces = bool(self._told_of_gone) and self.share_of(connection) is not None
        super()._attach(sink, facts, connection)
        if replaces:
            self._tell_gone(connection)

    def _subscription_ended(self, subscription: Subscription) -> None:
        super()._subscription_ended(subscription)
        if self._told_of_gone and self.share_of(subscription.connection) is None:
            self._tell_gone(subscription.connection)

    def _tell_gone(self, connection: Hashable) -> None:
        for told in tuple(self._told_of_gone):
            try:
                told(connection)
            except Exception:  # the others, and the transport that reports it, go on
                _logger.exception("who is told of connections that are gone failed")

    def _list_changed(self, method: str) -> None:
        if not self._changed:
            self._runtime.loop.call_soon(self._tell_changes)
        self._changed.add(method)

    def _tell_changes(self) -> None:
        changed, self._changed = sorted(self._changed), set()
        for method in changed:
            self.notify(method)
