"""How a Textual app says what is not for agents, and what a person is to be asked about.

| attribute | means |
|---|---|
| `mcp_exclude = True`, on a widget | it has no tools; its children may have |
| `mcp_sensitive = True`, on anything | a person is asked before anything is done in it |
| `mcp_sensitive = {"delete"}`, on the app or a screen | and before a binding runs this action |

All are read with `getattr`: an app that knows nothing of this has none of them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from textual.command import CommandPalette

if TYPE_CHECKING:
    from textual.app import App
    from textual.binding import ActiveBinding
    from textual.dom import DOMNode
    from textual.widget import Widget

__all__ = ["is_excluded", "is_sensitive", "is_sensitive_binding", "sensitive_actions"]


def is_excluded(widget: Widget) -> bool:
    """Say whether a widget is to have no tools."""
    return getattr(widget, "mcp_exclude", False) is True


def is_sensitive(node: DOMNode) -> bool:
    """Say whether a person is asked before anything is done to a widget, or to what it is in.

    The palette on the screen runs any command, so it is as sensitive as the app's most sensitive.
    """
    for parent in node.ancestors_with_self:
        if getattr(parent, "mcp_sensitive", False) is True:
            return True
        if isinstance(parent, CommandPalette) and sensitive_actions(parent.app):
            return True
    return False


def sensitive_actions(app: App[object]) -> frozenset[str]:
    """Name the actions that a person is asked about, of the app and of every screen it shows."""
    marked: set[str] = set()
    for node in (app, *app.screen_stack):
        names = getattr(node, "mcp_sensitive", ())
        if isinstance(names, Collection) and not isinstance(names, str):
            marked.update(map(str, names))
    return frozenset(marked)


def is_sensitive_binding(active: ActiveBinding, marked: frozenset[str]) -> bool:
    """Say whether a person is asked before what a binding does is done."""
    action = active.binding.action.partition("(")[0].rpartition(".")[2]
    return action in marked or is_sensitive(active.node)
