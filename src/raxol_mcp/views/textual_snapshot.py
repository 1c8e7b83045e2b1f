"""A Textual app as a tree of nodes: what a person would see of it now, and could use.

Looks; changes nothing. Made in the thread of the app, read anywhere: the nodes hold facts alone,
and the widgets behind them stay in that thread.

Only the screen on top is in it, so that what a modal screen covers does not exist. What is not
displayed, or has no size, is left out; what is in it may be there all the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, cast

from textual.app import ScreenStackError
from textual.widget import Widget
from textual.widgets import Digits, Footer, Static

from raxol_mcp.views.textual_commands import COMMANDS, KEYS, key_facts
from raxol_mcp.views.textual_controls import CONTROLS
from raxol_mcp.views.textual_kinds import MAX_TEXT, Kind, plain, sendable
from raxol_mcp.views.textual_lists import LISTS
from raxol_mcp.views.textual_marks import are_commands_sensitive, is_excluded, is_sensitive
from raxol_mcp.views.textual_tables import TABLES
from raxol_mcp.views.textual_texts import TEXTS
from raxol_mcp.views.tree import Node
from raxol_mcp.wire.values import Value

if TYPE_CHECKING:
    from textual.app import App

__all__ = ["KINDS", "Snapshot", "is_operating_sensitive", "kind_of", "take"]

# Each is given widgets of its own class only: see `kind_of`.
_ALL: Final = cast("tuple[Kind[Widget], ...]", (*CONTROLS, *TEXTS, *LISTS, *TABLES))
KINDS: Final = {kind.name: kind for kind in _ALL}
_BY_CLASS: Final = {kind.widget: kind for kind in KINDS.values()}
MAX_NODES: Final = 5_000  # ours: a view that a person can use has a few hundred
_MAX_DEPTH: Final = 100
# Parts of a widget that is looked at as a whole, and what repeats the bindings.
_SKIPPED: Final = {
    *("CollapsibleTitle", "ContentTabs", "HeaderClockSpace", "HeaderIcon", "Tooltip"),
}


class Snapshot(Value, frozen=True):
    """The tree, and for the thread of the app alone: the widget of each id."""

    root: Node
    widgets: dict[str, Widget]


def kind_of(widget: Widget) -> Kind[Widget] | None:
    """Find the nearest kind among the classes of a widget."""
    for cls in type(widget).__mro__:
        kind = _BY_CLASS.get(cls)
        if kind is not None:
            return kind
    return None


def is_operating_sensitive(widget: Widget) -> bool:
    """Say whether a person is asked before a widget is used: for what it does to its parts, too."""
    kind = kind_of(widget)
    return is_sensitive(widget) or (kind is not None and any(map(is_sensitive, kind.parts(widget))))


def take(app: App[object]) -> Snapshot:
    """Look at the app now. An app without a screen (it is starting, or ending) shows nothing."""
    try:
        screen = app.screen
    except ScreenStackError:
        return Snapshot(Node("Screen"), {})
    taking = _Taking(app)
    tops = [screen] if screen.maximized is None else [screen.maximized]
    children = [
        node
        for top in tops
        for child in ([top] if top is not screen else screen.displayed_children)
        for node in taking.nodes(child, "", 0)
    ]
    keys = Node("Keys", taking.unique(KEYS), key_facts(app))
    commands = Node(
        "Commands",
        taking.unique(COMMANDS),
        {"destructive": are_commands_sensitive(app), "role": "search"},
    )
    shown = [keys, *([commands] if app.ENABLE_COMMAND_PALETTE else [])]
    facts: dict[str, object] = {"role": "dialog" if screen.is_modal else "main"}
    title = screen.title or app.title
    if title:
        facts["label"] = plain(title)
    return Snapshot(Node("Screen", None, facts, (*children, *shown)), taking.widgets)


class _Taking:
    """One look, with the ids that were given out in it."""

    def __init__(self, app: App[object]) -> None:
        self._focused = app.focused
        self._hovered = app.mouse_over
        self._ids: set[str] = set()
        self._left = MAX_NODES
        self.widgets: dict[str, Widget] = {}

    def nodes(self, widget: Widget, scope: str, depth: int) -> Iterator[Node]:
        """Yield the node of a widget, or those in it when it is not to be seen itself."""
        if self._left <= 0 or depth > _MAX_DEPTH or isinstance(widget, Footer):
            return
        if type(widget).__name__ in _SKIPPED and widget.id is None:
            return
        kind = kind_of(widget)
        if not (widget.loading or (widget.visible and widget.outer_size.area)):
            for child in widget.displayed_children if kind is None or not kind.atomic else ():
                yield from self.nodes(child, scope, depth + 1)
            return
        self._left -= 1
        id = self._id(widget, kind, scope)
        if id is not None:
            self.widgets[id] = widget
        if widget.id is not None:
            scope = f"{id}."
        node, children = self._node(widget, kind, id, scope, depth)
        if id is None and not node.attributes and children:
            yield from children  # a container, of which there is nothing to say
        else:
            yield node

    def _node(
        self, widget: Widget, kind: Kind[Widget] | None, id: str | None, scope: str, depth: int
    ) -> tuple[Node, tuple[Node, ...]]:
        children: tuple[Node, ...] = ()
        if kind is None or not kind.atomic:
            children = tuple(
                node
                for child in widget.displayed_children
                for node in self.nodes(child, scope, depth + 1)
            )
        facts = _facts(widget, kind, empty=not children)
        if widget is self._focused:
            facts["focused"] = True
        if widget is self._hovered:
            facts["hover"] = True
        node = Node(
            type(widget).__name__ if kind is None else kind.name,
            id,
            facts,
            children,
            excluded=is_excluded(widget),
            sensitive=is_operating_sensitive(widget),
        )
        return node, children

    # -- ids ------------------------------------------------------------------------------------

    def _id(self, widget: Widget, kind: Kind[Widget] | None, scope: str) -> str | None:
        """Give a widget an id: its own, or one made of its kind and label where it has none.

        Ids of Textual's are unique among siblings only, so the second of the same is named with
        the nearest parent that has one. What is left alike is counted, in the document's order.
        """
        if widget.id is not None:
            return widget.id if self._free(widget.id) else self.unique(f"{scope}{widget.id}")
        if kind is None:
            return None
        label = _word(kind.label(widget))
        return self.unique(f"{scope}{kind.name}-{label}" if label else f"{scope}{kind.name}")

    def _free(self, id: str) -> bool:
        if id in self._ids:
            return False
        self._ids.add(id)
        return True

    def unique(self, wanted: str) -> str:
        """Return `wanted`, or the first of `wanted-2`, `wanted-3`, ... that is free."""
        id, count = wanted, 1
        while not self._free(id):
            count += 1
            id = f"{wanted}-{count}"
        return id


def _word(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-").lower()[:24]


def _facts(widget: Widget, kind: Kind[Widget] | None, *, empty: bool) -> dict[str, object]:
    facts: dict[str, object] = {}
    if kind is not None:
        facts = {"role": kind.role, **kind.facts(widget)}
        label = kind.label(widget)
        if label:
            facts["label"] = label
    elif empty:
        text = _text(widget)
        if text:
            facts["content"] = text
        if type(widget).__name__ == "Toast":
            facts |= {"role": "alert", "live": "polite"}
    if widget.is_disabled:  # or what it is in, which may be the screen itself
        facts["disabled"] = True
    if widget.loading:  # it is drawn over, and takes no input
        facts |= {"disabled": True, "state": "loading"}
    return facts


def _text(widget: Widget) -> str:
    """Read what a widget that has nothing in it shows."""
    if isinstance(widget, Digits):
        return widget.value
    if isinstance(widget, Static):
        text = plain(widget.visual).strip()
        if text:
            return text
    # Of its own drawing: as the screen has it, without what lies outside of it.
    height = min(widget.content_size.height, 200)
    try:
        lines = [widget.render_line(y).text.rstrip() for y in range(height)]
    except Exception:
        return ""  # drawing it is the app's code, and drawing it is what will tell of that
    return sendable("\n".join(lines).strip("\n")[:MAX_TEXT])
