"""The registry: everything a server offers, in the order it was registered.

Keeps and finds; runs nothing, authorizes nothing. Order is that of the first registration, the
same in every list, on every connection and after every restart (MCP 2026-07-28 server/tools: a
deterministic order).

May be used from any thread. Listeners are called in the thread that made the change.
"""

from __future__ import annotations

import logging
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, Literal, TypeAlias, TypeVar, assert_never

import msgspec

from raxol_mcp.server.cursors import START, BadCursor, cursor_of
from raxol_mcp.server.definition_checks import check
from raxol_mcp.server.definitions import (
    Completion,
    Definition,
    Kind,
    Prompt,
    Reference,
    Registrable,
    Resource,
    ResourceTemplate,
    Tool,
)
from raxol_mcp.server.uris import ascii_uri

if TYPE_CHECKING:
    from raxol_mcp.server.templates import Template

__all__ = ["Action", "Listener", "Page", "Registry"]

_logger = logging.getLogger("raxol_mcp.registry")

Action: TypeAlias = Literal["register", "unregister"]
Listener: TypeAlias = Callable[[Kind, Action, tuple[str, ...]], None]

_D = TypeVar("_D", bound=Definition)


class Page(msgspec.Struct, frozen=True):
    """A part of a list.

    `places` runs beside `items`: whoever stops in the middle, because some are not for this
    caller, goes on after that place. `after` is where the next page begins, None when this is
    the last.
    """

    kind: Kind
    items: list[Definition]
    places: list[int]
    after: int | None = None

    @property
    def cursor(self) -> str | None:
        """Return the `nextCursor` of the list's result, None when it must be left out."""
        return None if self.after is None else cursor_of(self.kind, self.after)


class _Shelf(Generic[_D]):
    """The definitions of one kind, found by key and listed by place.

    Places ascend and are never reused; an entry keeps its own when it is registered again.
    """

    __slots__ = ("items", "last", "listed", "order", "places")

    def __init__(self) -> None:
        self.items: dict[str, _D] = {}
        self.places: dict[str, int] = {}
        self.order: list[int] = []
        self.listed: list[_D] = []  # parallel to order
        self.last = START

    def put(self, definition: _D) -> None:
        key = definition.key
        place = self.places.get(key)
        if place is None:
            self.last += 1
            self.places[key] = self.last
            self.order.append(self.last)
            self.listed.append(definition)
        else:
            self.listed[bisect_left(self.order, place)] = definition
        self.items[key] = definition

    def remove(self, key: str) -> bool:
        place = self.places.pop(key, None)
        if place is None:
            return False
        at = bisect_left(self.order, place)
        del self.order[at], self.listed[at], self.items[key]
        return True

    def after(self, place: int, limit: int) -> tuple[list[int], list[_D], bool]:
        """Cut out what comes after a place, and say whether there is more."""
        at = bisect_right(self.order, place)
        end = at + limit
        return self.order[at:end], self.listed[at:end], end < len(self.order)


class Registry:
    """Everything one server offers. See the module for order and threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tools: _Shelf[Tool] = _Shelf()
        self._resources: _Shelf[Resource] = _Shelf()
        self._templates: _Shelf[ResourceTemplate] = _Shelf()
        self._prompts: _Shelf[Prompt] = _Shelf()
        self._derived: set[str] = set()
        self._completions: dict[tuple[str, str], dict[str, Completion]] = {}
        self._matchers: tuple[tuple[Template, ResourceTemplate], ...] | None = ()
        self._listeners: dict[object, Listener] = {}

    def __repr__(self) -> str:
        counts = ", ".join(f"{kind.value}={len(self._shelf(kind).items)}" for kind in Kind)
        return f"Registry({counts})"

    # -- changes

    def register(self, *definitions: Registrable, derived: bool = False) -> None:
        """Add definitions, all or none. An entry with the same key is replaced and keeps its place.

        `derived` marks tools that come and go with a view: only this argument does, never a
        name or an annotation. Raises `InvalidDefinitions` (a `ConfigurationError`) that lists
        every problem of every definition. Listeners hear once for each kind that changed.
        """
        check(definitions)
        changes: dict[Kind, list[str]] = {}
        with self._lock:
            for definition in definitions:
                if isinstance(definition, Completion):
                    target = (definition.reference, definition.target)
                    self._completions.setdefault(target, {})[definition.argument] = definition
                else:
                    self._put(definition, derived)
                    changes.setdefault(definition.kind, []).append(definition.key)
        for kind, keys in changes.items():
            self._tell(kind, "register", tuple(keys))

    def unregister(self, kind: Kind, *keys: str) -> tuple[str, ...]:
        """Remove entries by name, URI or URI template; return those that were there.

        Unknown ones are fine. The completions of a removed prompt or template go with it.
        """
        shelf = self._shelf(kind)
        if kind is Kind.RESOURCES:
            keys = tuple(map(ascii_uri, keys))
        with self._lock:
            removed = tuple(key for key in keys if shelf.remove(key))
            if kind is Kind.TOOLS:
                self._derived.difference_update(removed)
            elif kind is Kind.PROMPTS:
                for key in removed:
                    self._completions.pop(("ref/prompt", key), None)
            elif kind is Kind.TEMPLATES:
                self._matchers = None
                for key in removed:
                    self._completions.pop(("ref/resource", key), None)
        if removed:
            self._tell(kind, "unregister", removed)
        return removed

    def on_change(self, listener: Listener) -> Callable[[], None]:
        """Call `listener(kind, action, keys)` after every change; return what ends that.

        Called in the thread that made the change, which then waits for it. Completions are in
        no list, so nobody hears of them.
        """
        token = object()
        with self._lock:
            self._listeners[token] = listener

        def unsubscribe() -> None:
            with self._lock:
                self._listeners.pop(token, None)

        return unsubscribe

    # -- tools

    def tools(self) -> list[Tool]:
        """Copy the list of the tools."""
        with self._lock:
            return self._tools.listed.copy()

    def tool(self, name: str) -> Tool | None:
        """Find a tool by its exact name."""
        return self._tools.items.get(name)

    def static_tools(self) -> list[Tool]:
        """List the tools that were not registered as derived."""
        with self._lock:
            derived = self._derived
            return [tool for tool in self._tools.listed if tool.name not in derived]

    def is_derived(self, name: str) -> bool:
        """Say whether the tool was last registered with `derived=True`."""
        return name in self._derived

    # -- resources

    def resources(self) -> list[Resource]:
        """Copy the list of the resources."""
        with self._lock:
            return self._resources.listed.copy()

    def resource(self, uri: str) -> Resource | None:
        """Find a resource by its URI. Ask this before the templates.

        Character by character, but letters beyond ASCII may be percent-encoded or not.
        """
        return self._resources.items.get(ascii_uri(uri))

    def templates(self) -> list[ResourceTemplate]:
        """Copy the list of the resource templates."""
        with self._lock:
            return self._templates.listed.copy()

    def match_template(self, uri: str) -> tuple[ResourceTemplate, dict[str, str]] | None:
        """Find the first template, in order of registration, that `uri` belongs to.

        Returns it with `{variable: value}`. The values are decoded and cannot leave a folder;
        the rules are those of `Template.match`.
        """
        matchers = self._matchers
        if matchers is None:
            from raxol_mcp.server.templates import Template  # few servers have one

            with self._lock:
                matchers = self._matchers = tuple(
                    (Template(listed.uri_template), listed) for listed in self._templates.listed
                )
        for template, listed in matchers:
            values = template.match(uri)
            if values is not None:
                return listed, values
        return None

    # -- prompts and completions

    def prompts(self) -> list[Prompt]:
        """Copy the list of the prompts."""
        with self._lock:
            return self._prompts.listed.copy()

    def prompt(self, name: str) -> Prompt | None:
        """Find a prompt by its exact name."""
        return self._prompts.items.get(name)

    def completion(self, reference: Reference, target: str, argument: str) -> Completion | None:
        """Find what completes `argument` of a prompt (by name) or a template (as written)."""
        return self._completions.get((reference, target), {}).get(argument)

    # -- lists

    def page(self, kind: Kind, after: int = START, limit: int = 100) -> Page:
        """List up to `limit` entries (at least 1) that come after a place; see `cursors.place_of`.

        Raises `BadCursor` for a place not given out yet. The work is that of the page, however
        long the list.
        """
        assert limit > 0, "a page has room for at least one entry"
        shelf = self._shelf(kind)
        with self._lock:
            if after > shelf.last:
                raise BadCursor
            places, found, more = shelf.after(after, limit)
        return Page(kind, [*found], places, places[-1] if more else None)

    # -- inside

    def _shelf(
        self, kind: Kind
    ) -> _Shelf[Tool] | _Shelf[Resource] | _Shelf[ResourceTemplate] | _Shelf[Prompt]:
        match kind:
            case Kind.TOOLS:
                return self._tools
            case Kind.RESOURCES:
                return self._resources
            case Kind.TEMPLATES:
                return self._templates
            case Kind.PROMPTS:
                return self._prompts
            case _:
                assert_never(kind)

    def _put(self, definition: Definition, derived: bool) -> None:
        match definition:
            case Tool():
                self._tools.put(definition)
                if derived:
                    self._derived.add(definition.name)
                else:
                    self._derived.discard(definition.name)
            case Resource():
                self._resources.put(definition)
            case ResourceTemplate():
                self._templates.put(definition)
                self._matchers = None
            case Prompt():
                self._prompts.put(definition)
            case _:
                assert_never(definition)

    def _tell(self, kind: Kind, action: Action, keys: tuple[str, ...]) -> None:
        with self._lock:
            listeners = tuple(self._listeners.values())
        for listener in listeners:
            try:
                listener(kind, action, keys)
            except Exception:
                # The change is made; a listener that fails must not hide it from the others.
                _logger.exception("a listener of the registry failed")
