"""Keeps a server in step with a live view: one `Synchronizer` for each session.

It reads the view; what happens in the view is the adapter's. Time is kept by three rules: the
first update opens a window, the view is derived once when the window closes, and updates in
between cost nothing. So it is never later than the window after the first update of a burst,
however long the burst.

No callback keeps a node. A call finds its node by id in the view as it is at that moment, so a
widget that changed under the same id is never acted upon as it was.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from raxol_mcp.errors import ConfigurationError, ToolError
from raxol_mcp.server.definition_checks import InvalidDefinitions
from raxol_mcp.server.definitions import MAX_DEFINITION_BYTES, Audience, Kind, Tool
from raxol_mcp.views.asking import asked_about, shortened
from raxol_mcp.views.context import Model, SessionResources
from raxol_mcp.views.discovery import discovery_tool
from raxol_mcp.views.focus import Focus, Lenses
from raxol_mcp.views.tree import Tree, find
from raxol_mcp.views.walker import (
    Derivation,
    DerivedTool,
    Provider,
    checked_session,
    derive,
    is_sensitive,
    offered,
    provider_of,
)
from raxol_mcp.wire.jsonrpc import JSONObject, UnencodableResult, encode_result

if TYPE_CHECKING:
    from raxol_mcp.server.app import Server
    from raxol_mcp.server.context import Context

__all__ = ["DEBOUNCE", "Question", "Synchronizer"]

_logger = logging.getLogger("raxol_mcp.views")
DEBOUNCE: Final = 0.05  # seconds
_DISCOVER: Final = "discover_tools"
_UPDATED: Final = "notifications/resources/updated"

# What a human is asked before a sensitive action is done with these arguments.
Question: TypeAlias = Callable[[DerivedTool, Mapping[str, object]], str]


class Synchronizer:
    """The tools and resources of one session, on `server`, for as long as it runs.

    * `snapshot()` gives the view as it is now; `providers` say by type what may be done in it.
    * `session` is one word. With `qualified` it comes before the name of every tool, so that
      sessions do not collide; one session alone may do without.
    * `model()` gives values of the app's own, each of which becomes a resource.
    * `lenses` are those of the server, if connections may look through any.
    * `audience(context)` says for whom the session exists; by default for everybody.
    * `question(tool, arguments)` writes what a human is asked before a sensitive action. None:
      nobody is asked, and only the authorizer stands before it.
    * `before()` is told of every call of one of its tools.

    Use it on the server's loop. `derivations`, `registered` and `unregistered` count what it did.
    """

    def __init__(
        self,
        server: Server,
        *,
        session: str,
        providers: Mapping[str, Provider],
        snapshot: Callable[[], Tree],
        qualified: bool = True,
        debounce: float = DEBOUNCE,
        model: Model | None = None,
        lenses: Lenses | None = None,
        audience: Audience | None = None,
        question: Question | None = asked_about,
        before: Callable[[], None] | None = None,
    ) -> None:
        if not 0 <= debounce <= 60:
            raise ConfigurationError(f"debounce is from 0 to 60 seconds, got: {debounce!r}")
        self.session = checked_session(session)
        self.derivations = self.registered = self.unregistered = 0
        self.focus = Focus()
        self.problems: tuple[str, ...] = ()
        self._server = server
        self._registry = server.registry
        self._providers = providers
        self._snapshot = snapshot
        self._prefix = session if qualified else None
        self._debounce = debounce
        self._lenses = lenses
        self._audience = audience
        self._question = question
        self._before = before
        self._discovery = discovery_tool(
            f"{session}.{_DISCOVER}" if qualified else _DISCOVER, session, self._known, audience
        )
        self._loop: asyncio.AbstractEventLoop | None = None  # None: it does not run
        self._timer: asyncio.TimerHandle | None = None
        self._deriving = False
        self._tree: Tree = None
        self._kept: dict[str, _Kept] = {}
        self._refused: dict[str, bytes] = {}
        self._resources = SessionResources(
            server,
            session,
            snapshot=snapshot,
            model=model,
            visible=self._own_tools,
            audience=audience,
        )

    def __repr__(self) -> str:
        state = "stopped" if self._loop is None else f"{len(self._kept)} tools"
        return f"<Synchronizer {self.session!r} {state}>"

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools of nodes that are registered now."""
        return tuple(self._kept)

    # -- life ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Register everything, derived at once. Needs a running loop.

        Raises ConfigurationError when the name of the session is taken, and what `snapshot`
        raises; nothing is registered then.
        """
        if self._loop is not None:
            raise ConfigurationError(f"the session {self.session!r} runs already")
        registry, resources = self._registry, self._resources
        taken = registry.tool(self._discovery.name) or registry.resource(resources.widgets)
        if taken is not None:
            raise ConfigurationError(f"the session {self.session!r} is taken: {taken.key} is there")
        derivation = self._derived()
        self._loop = asyncio.get_running_loop()
        registry.register(self._discovery, *resources.fixed(), derived=True)
        self._apply(derivation)
        if self._lenses is not None:
            self._lenses.add(self)

    def changed(self) -> None:
        """The view was updated: derive when the window closes. As often as you like."""
        if self._timer is None and self._loop is not None and not self._deriving:
            self._timer = self._loop.call_later(self._debounce, self._fire)

    def sync(self) -> None:
        """Derive now. Raises what `snapshot` raises; everything stays as it was then."""
        if self._loop is not None:
            self._forget_timer()
            self._apply(self._derived())

    def stop(self) -> None:
        """Remove everything that is registered. What is called from now on is not there."""
        if self._loop is None:
            return
        self._loop = None
        self._forget_timer()
        self._unregister(self._kept)
        if self._registry.tool(self._discovery.name) is self._discovery:
            self._registry.unregister(Kind.TOOLS, self._discovery.name)
        self._registry.unregister(Kind.RESOURCES, *self._resources.forget())
        self._tree = None
        self._refused.clear()
        self.focus = Focus()
        if self._lenses is not None:
            self._lenses.remove(self)

    # -- from the view to the registry --------------------------------------------------------

    def _fire(self) -> None:
        self._timer = None
        try:
            self.sync()
        except Exception:  # the adapter's: the next update may work
            _logger.exception("the view of session %s: its tools stay as they were", self.session)

    def _forget_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _derived(self) -> tuple[Tree, Derivation]:
        self._deriving = True  # looking must not count as an update, or it would never end
        try:
            tree = self._snapshot()
            self.derivations += 1
            return tree, derive(tree, self._providers, session=self._prefix)
        finally:
            self._deriving = False

    def _apply(self, derived: tuple[Tree, Derivation]) -> None:
        (tree, derivation), before = derived, self._tree
        problems = list(derivation.problems)
        wanted = self._written(derivation, problems)
        changes = self._unregister([name for name in self._kept if name not in wanted])
        changes |= self._register(self._fresh(wanted, problems), problems)
        self._refused = {name: refused for name, refused in self._refused.items() if name in wanted}
        self._tell_problems(problems)
        self._move(derivation)
        values = self._look_at_model()
        self._tree = tree
        if before is None:
            return  # nobody can have read it before
        updated = [*values]
        if tree != before:
            updated.append(self._resources.widgets)
        if updated or changes:
            updated.append(self._resources.context)
        for uri in updated:
            self._server.notify(_UPDATED, {"uri": uri})

    def _written(self, derivation: Derivation, problems: list[str]) -> dict[str, _Written]:
        """Write the definitions down by name; what JSON cannot carry is a problem."""
        wanted: dict[str, _Written] = {}
        for tool in derivation.tools:
            kept = self._kept.get(tool.name)
            if kept is not None and kept.same(tool):
                wanted[tool.name] = tool, kept.written
                continue
            try:
                wanted[tool.name] = tool, _definition(tool)
            except UnencodableResult as error:
                problems.append(f"{tool.name}: {error}")
        return wanted

    def _fresh(self, wanted: Mapping[str, _Written], problems: list[str]) -> list[_Kept]:
        """Find what is not registered as it should be: new, or with another definition."""
        fresh = []
        for name, (tool, written) in wanted.items():
            kept = self._kept.get(name)
            if kept is not None and kept.written == written:
                continue
            there = self._registry.tool(name)
            if there is not None and (kept is None or there is not kept.tool):
                problems.append(f"{name}: the name is taken by a tool that is not of this session")
            elif self._refused.get(name) == written:
                problems.append(f"{name}: its definition cannot be served")
            else:
                fresh.append(_Kept(tool, written, self._tool(tool)))
        return fresh

    def _register(self, fresh: list[_Kept], problems: list[str]) -> bool:
        bad: set[int] = set()
        try:
            self._registry.register(*(kept.tool for kept in fresh), derived=True)
        except InvalidDefinitions as error:
            # One that cannot be served costs nobody else their tools.
            bad = {problem.index for problem in error.problems}
            problems += [
                f"{fresh[problem.index].tool.name}: {problem}" for problem in error.problems
            ]
            good = [kept.tool for at, kept in enumerate(fresh) if at not in bad]
            self._registry.register(*good, derived=True)
        for at, kept in enumerate(fresh):
            name = kept.tool.name
            if at in bad:
                self._refused[name] = kept.written
                self._unregister([name] if name in self._kept else [])
            else:
                self._refused.pop(name, None)
                self._kept[name] = kept
                self.registered += 1
        return bool(fresh)

    def _unregister(self, names: Iterable[str]) -> bool:
        gone = {name: self._kept.pop(name) for name in tuple(names)}
        # What somebody else has put there since is not ours to remove.
        ours = [name for name, kept in gone.items() if self._registry.tool(name) is kept.tool]
        self.unregistered += len(self._registry.unregister(Kind.TOOLS, *ours))
        return bool(gone)

    def _tell_problems(self, problems: list[str]) -> None:
        for problem in problems:
            if problem not in self.problems:
                _logger.warning("session %s: %s", self.session, problem)
        self.problems = tuple(problems)

    def _move(self, derivation: Derivation) -> None:
        names, before = self._kept.keys(), self.focus
        self.focus = Focus(
            derived=frozenset(names),
            focused=derivation.focused & names,
            hovered=derivation.hovered & names,
            kept=frozenset({self._discovery.name}),
        )
        moved = (before.focused, before.hovered) != (self.focus.focused, self.focus.hovered)
        if moved and self._lenses is not None:
            self._lenses.moved()

    def _look_at_model(self) -> list[str]:
        """Keep the resources of the model; return the URIs of those that are another value."""
        resources = self._resources
        came, changed, went = resources.look()
        self._registry.unregister(Kind.RESOURCES, *map(resources.uri_of, went))
        if came:
            self._registry.register(*map(resources.of_model, came))
        return [resources.uri_of(key) for key in (*changed, *went)]

    # -- calls --------------------------------------------------------------------------------

    def _tool(self, derived: DerivedTool) -> Tool:
        action, question = derived.action, self._question
        annotations: JSONObject = {"readOnlyHint": action.read_only}
        if action.destructive:
            annotations["destructiveHint"] = True
        if derived.sensitive:
            annotations["sensitive"] = True

        async def act(arguments: Mapping[str, object], context: Context) -> object:
            return await self._act(derived, arguments)

        asked = None
        if question is not None and derived.sensitive:
            asked = partial(question, derived)
        return Tool(
            name=derived.name,
            description=shortened(action.description),
            input_schema=action.input_schema,
            callback=act,
            annotations=annotations,
            audience=self._audience,
            approval=asked,
        )

    async def _act(self, derived: DerivedTool, arguments: Mapping[str, object]) -> object:
        id, name = derived.node_id, derived.action.name
        if self._loop is None:
            raise ToolError(f"The session {self.session!r} has stopped.")
        if self._before is not None:
            self._before()
        visit = find(self._snapshot(), id)
        if visit is None:
            raise ToolError(f"{id!r} is not in the view any more. List the tools again.")
        node, provider = visit.node, provider_of(visit.node, self._providers)
        if not visit.enabled:
            raise ToolError(f"{id!r} is disabled now, or something is in front of it.")
        actions = () if provider is None or node.excluded else offered(provider, node)
        action = next((action for action in actions if action.name == name), None)
        if action is None or provider is None:
            raise ToolError(f"{id!r} does not offer {name!r} any more. List the tools again.")
        now = DerivedTool(derived.name, id, action, is_sensitive(node, action))
        if (now.sensitive or derived.sensitive) and _definition(now) != _definition(derived):
            # What a human has said yes to, or would be asked about, is what was listed.
            self.changed()
            raise ToolError(f"{id!r} has changed and is sensitive. List the tools again.")
        return await provider.act(node, name, arguments)

    async def _own_tools(self, context: Context) -> list[Tool]:
        return [tool for tool in await self._server.tools_for(context) if tool.name in self._kept]

    async def _known(self, context: Context) -> list[Tool]:
        """What `discover_tools` searches: this session's tools, and those of no session."""
        return [
            tool
            for tool in await self._server.tools_for(context)
            if tool.name in self._kept or not self._registry.is_derived(tool.name)
        ]


class _Kept:
    """A tool that is registered, and how its definition was written then."""

    __slots__ = ("derived", "tool", "written")

    def __init__(self, derived: DerivedTool, written: bytes, tool: Tool) -> None:
        self.derived = derived
        self.written = written
        self.tool = tool

    def same(self, tool: DerivedTool) -> bool:
        """Say whether this is so without a look inside: the provider gave the same object."""
        derived = self.derived
        return derived.action is tool.action and derived.sensitive == tool.sensitive


_Written: TypeAlias = tuple[DerivedTool, bytes]


def _definition(tool: DerivedTool) -> bytes:
    """Write a definition down: `1` and `True` are equal, but not the same schema."""
    action = tool.action
    facts = (action.description, action.input_schema, action.read_only, action.destructive)
    return bytes(encode_result((*facts, tool.sensitive), max_bytes=MAX_DEFINITION_BYTES))
