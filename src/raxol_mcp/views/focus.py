"""The focus lens: of many tools, a connection is shown those of what it is looking at.

Not a guard: a tool that is not listed can be called all the same. Who may call what is said by
the authorizer, which is asked before the lens is looked through.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.server.definitions import Kind, Tool
from raxol_mcp.wire.values import Value

if TYPE_CHECKING:
    from raxol_mcp.server.app import Server
    from raxol_mcp.server.authorizer import AuthorizationContext

__all__ = ["MAX_LENSES", "Focus", "FocusLens", "FocusSource", "Lenses", "Mode"]

Mode: TypeAlias = Literal["all", "focused", "hover"]
MAX_LENSES: Final = 1_024  # ours: a connection that is never opened is never gone either


class Focus(Value, frozen=True):
    """Names of tools, as one session has them now.

    `derived` are all of its tools that belong to nodes, `focused` and `hovered` those of the
    nodes that have the focus and the pointer, `kept` those that no lens leaves out, because they
    find the others.
    """

    derived: frozenset[str] = frozenset()
    focused: frozenset[str] = frozenset()
    hovered: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()

    def __or__(self, other: Focus) -> Focus:
        return Focus(
            self.derived | other.derived,
            self.focused | other.focused,
            self.hovered | other.hovered,
            self.kept | other.kept,
        )


class FocusSource(Protocol):
    """A session, to the lenses."""

    @property
    def focus(self) -> Focus:
        """The names of its tools now."""


class FocusLens(Value, frozen=True):
    """What of a listing to show: at most `max_tools` tools.

    * `all`: the first;
    * `focused`: those of what has the focus, then those that belong to no node; where nothing
      has the focus, as `all`;
    * `hover`: those of what has the focus, of what the pointer is on, then as above.

    The tools that find others (`discover_tools`) are never left out.
    """

    mode: Mode = "all"
    max_tools: int = 15

    def __post_init__(self) -> None:
        if self.mode not in ("all", "focused", "hover"):
            raise ConfigurationError(f"a lens shows all, focused or hover, not {self.mode!r}")
        if type(self.max_tools) is not int or self.max_tools < 1:
            raise ConfigurationError(f"max_tools must be at least 1, got: {self.max_tools!r}")

    def filter(self, names: Sequence[str], focus: Focus) -> list[str]:
        """Choose from the names of a listing; what matters most comes first, each once."""
        listed = dict.fromkeys(names)
        wanted = [name for name in listed if name in focus.focused]
        if self.mode == "hover":
            wanted += [name for name in listed if name in focus.hovered]
        if wanted and self.mode != "all":
            wanted += [name for name in listed if name in focus.kept]
            wanted += [name for name in listed if name not in focus.derived]
        else:
            wanted = list(listed)
        wanted = list(dict.fromkeys(wanted))
        # The tools that find others have their room whatever comes before them.
        room = self.max_tools - sum(name in focus.kept for name in wanted)
        chosen: list[str] = []
        for name in wanted:
            if name in focus.kept:
                chosen.append(name)
            elif room > 0:
                chosen.append(name)
                room -= 1
        return chosen[: self.max_tools]


class Lenses:
    """The lenses of a server's connections, `default` for all that have none of their own.

    Making it puts it before the server's `tools/list`. Give it to every `Synchronizer` of that
    server, which tells it what has the focus. Raises ConfigurationError where a server has one.
    """

    def __init__(self, server: Server, *, default: FocusLens | None = None) -> None:
        self._server = server
        self._default = default
        self._by_connection: dict[Hashable, FocusLens | None] = {}
        self._sources: list[FocusSource] = []
        server.look_through(self._shown)
        server.on_gone(self.forget)

    def of(self, connection: Hashable) -> FocusLens | None:
        """Say what `connection` looks through; None: it is shown everything."""
        return self._by_connection.get(connection, self._default)

    def set(self, connection: Hashable, lens: FocusLens | None) -> None:
        """Give a connection its lens: `ctx.connection` is its id. None shows it everything.

        Past 1,024 connections the one that was set longest ago has the default again.
        """
        changes = self.of(connection) != lens
        self._by_connection.pop(connection, None)
        self._by_connection[connection] = lens
        if len(self._by_connection) > MAX_LENSES:
            del self._by_connection[next(iter(self._by_connection))]
        if changes:
            self._server.list_changed(Kind.TOOLS)

    def forget(self, connection: Hashable) -> None:
        """Drop what was set for a connection that is over."""
        self._by_connection.pop(connection, None)

    # -- for synchronizers --------------------------------------------------------------------

    def add(self, source: FocusSource) -> None:
        """Take in a session that has started."""
        self._sources.append(source)

    def remove(self, source: FocusSource) -> None:
        """Let go of a session that has stopped."""
        self._sources.remove(source)

    def moved(self) -> None:
        """The focus or the pointer of a session is elsewhere: tell, where a lens follows it."""
        lenses = [self._default, *self._by_connection.values()]
        if any(lens is not None and lens.mode != "all" for lens in lenses):
            self._server.list_changed(Kind.TOOLS)

    def _shown(self, tools: Sequence[Tool], context: AuthorizationContext) -> list[Tool] | None:
        lens = self.of(context["connection"])
        if lens is None:
            return None
        focus = Focus()
        for source in self._sources:
            focus |= source.focus
        chosen = set(lens.filter([tool.name for tool in tools], focus))
        return [tool for tool in tools if tool.name in chosen]
