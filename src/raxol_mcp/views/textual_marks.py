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
    from textual.binding import ActiveBinding, Binding
    from textual.dom import DOMNode
    from textual.widget import Widget

__all__ = [
    "action_name",
    "are_commands_sensitive",
    "is_excluded",
    "is_guarded_key",
    "is_sensitive",
    "is_sensitive_binding",
    "sensitive_actions",
]


def is_excluded(widget: Widget) -> bool:
    """Say whether a widget is to have no tools."""
    return getattr(widget, "mcp_exclude", False) is True


def is_sensitive(node: DOMNode) -> bool:
    """Say whether a person is asked before anything is done to a widget, or to what it is in."""
    for parent in node.ancestors_with_self:
        if _is_marked(parent):
            return True
        if isinstance(parent, CommandPalette) and are_commands_sensitive(parent.app):
            return True
    return False


def are_commands_sensitive(app: App[object]) -> bool:
    """Say whether a person is asked before a command of the palette is run.

    It may be any command: so whenever a person is asked about anything of the app or a screen.
    """
    return bool(sensitive_actions(app)) or any(map(_is_marked, (app, *app.screen_stack)))


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
    return action_name(active.binding) in marked or is_sensitive(active.node)


def is_guarded_key(app: App[object], key: str, *, own: Widget | None = None) -> bool:
    """Say whether a key may run a binding that a person is to be asked about.

    Every binding counts that may get the key: an action can leave it to the next one. `own` is a
    focused widget that the key is for, and that a person was asked about if need be: what it does
    with the key itself is no question, and only a priority binding comes before it.
    """
    marked = sensitive_actions(app)
    priority_only = False
    for node, bindings in app.screen._binding_chain:
        for binding in bindings.key_to_bindings.get(key, ()):
            if priority_only and not binding.priority:
                continue
            if app._check_action_state(binding.action, node) is False:
                continue
            if action_name(binding) in marked or (own is None and is_sensitive(node)):
                return True
            priority_only |= node is own
        priority_only |= node.is_modal
    return False


def action_name(binding: Binding) -> str:
    """Name what a binding does, without where it is looked for and with what it is called."""
    return binding.action.partition("(")[0].rpartition(".")[2]


def _is_marked(node: DOMNode) -> bool:
    return getattr(node, "mcp_sensitive", False) is True
