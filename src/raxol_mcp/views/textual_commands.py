"""What can be done with a Textual app as a whole: its key bindings and its command palette.

A binding is an action of the node `keys`, named for what it does, and is run the way a press of its
key runs it. A key that the focused input would take as a character is none meanwhile, as it is for
a person.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from textual.app import App
from textual.binding import BindingsMap
from textual.command import DiscoveryHit, Hit
from textual.keys import format_key
from textual.screen import Screen

from raxol_mcp.errors import ToolError
from raxol_mcp.views.textual_kinds import plain, schema
from raxol_mcp.views.textual_marks import is_sensitive_binding, sensitive_actions
from raxol_mcp.views.textual_texts import copies_secret
from raxol_mcp.views.walker import Action

if TYPE_CHECKING:
    from textual.binding import ActiveBinding
    from textual.command import Provider

    from raxol_mcp.views.textual_hands import Hands
    from raxol_mcp.views.tree import Node

__all__ = [
    "COMMANDS",
    "KEYS",
    "bindings",
    "command_actions",
    "key_actions",
    "key_facts",
    "run_command",
    "run_key",
]

KEYS: Final = "keys"
COMMANDS: Final = "commands"
_EVERYWHERE: Final = [
    *(binding for _, binding in BindingsMap(App.BINDINGS)),
    *(binding for _, binding in BindingsMap(Screen.BINDINGS)),
]
_PALETTE: Final = "command_palette"
MAX_HITS: Final = 50  # ours, of one search


def bindings(app: App[object]) -> dict[str, ActiveBinding]:
    """Name the bindings that work now: those of the app and the screen, and those in the footer.

    What only moves the cursor of the focused widget is left to `send_keys`, and so is what every
    app of Textual's has.
    """
    found: dict[str, ActiveBinding] = {}
    for active in app.screen.active_bindings.values():
        binding = active.binding
        own = active.node in (app, app.screen) and bool(binding.description)
        if not active.enabled or not (binding.show or own) or binding in _EVERYWHERE:
            continue
        if binding.action.endswith(_PALETTE):  # the node `commands` is for that
            continue
        if copies_secret(app, binding):
            continue
        name = _word(binding.description) or _word(binding.action)
        same = found.get(name)
        if same is not None and same.binding.action == binding.action:
            continue  # another key for the same
        if name:
            found[_free(name, found)] = active
    return found


def key_facts(app: App[object]) -> dict[str, object]:
    """Write the bindings for a node: what `key_actions` needs, and what the screenshot shows."""
    marked = sensitive_actions(app)
    rows = []
    for name, active in bindings(app).items():
        key = app.get_key_display(active.binding) or format_key(active.binding.key)
        rows.append(
            {
                "name": name,
                "key": key,
                "description": active.binding.tooltip or active.binding.description or name,
                "destructive": is_sensitive_binding(active, marked),
            }
        )
    return {
        "role": "menu",
        "bindings": rows,
        "content": "\n".join(f"{row['key']}  {row['description']}" for row in rows),
    }


def key_actions(node: Node) -> Sequence[Action]:
    """List the bindings of a node that `key_facts` wrote."""
    rows = node.attributes.get("bindings")
    assert isinstance(rows, list), "as key_facts wrote them"
    return [
        Action(
            name=row["name"],
            description=f"{row['description']} (key {row['key']}).",
            destructive=row["destructive"],
        )
        for row in rows
    ]


async def run_key(hands: Hands, name: str) -> str:
    """Run a binding. Raises ToolError when it does not work now."""
    app = hands.app
    active = bindings(app).get(name)
    if active is None:
        raise ToolError("that key does nothing now")
    action, node = active.binding.action, active.node
    _later(app, lambda: app.run_action(action, node))
    return f"ran {active.binding.description or name!r}"


def command_actions(node: Node) -> Sequence[Action]:
    """List what can be done with the command palette."""
    return [
        Action(
            name="search",
            description="Search the app's command palette; an empty query lists what it suggests.",
            input_schema=schema({"query": {"type": "string", "maxLength": 200}}),
            read_only=True,
        ),
        Action(
            name="run",
            description="Run a command of the palette, named exactly as `search` names it.",
            input_schema=schema({"command": {"type": "string", "maxLength": 400}}),
            destructive=node.attributes.get("destructive") is True,
        ),
    ]


async def run_command(hands: Hands, action: str, arguments: Mapping[str, object]) -> object:
    """Search the palette, or run one of its commands. Raises ToolError when it is not there."""
    app = hands.app
    if action == "search":
        hits = await _hits(app, str(arguments["query"]))
        return {"commands": [{"command": _text(hit), "help": hit.help} for hit in hits]}
    wanted = str(arguments["command"])
    for query in (wanted, ""):
        for hit in await _hits(app, query):
            if _text(hit) == wanted:
                _later(app, hit.command)
                return f"ran {wanted!r}"
    raise ToolError("there is no such command now: search for it")


async def _hits(app: App[object], query: str) -> list[Hit | DiscoveryHit]:
    """Ask every provider, the best hits first."""
    screen = app.screen
    found: list[Hit | DiscoveryHit] = []
    for source in {**dict.fromkeys(app.COMMANDS), **dict.fromkeys(screen.COMMANDS)}:
        kind = source if isinstance(source, type) else source()
        provider: Provider = kind(screen)
        await provider.startup()
        try:
            hits: AsyncIterator[Hit | DiscoveryHit] = (
                provider.search(query) if query else provider.discover()
            )
            # What is not implemented yields NotImplemented.
            found += [hit async for hit in hits if hit is not NotImplemented]
        finally:
            await provider.shutdown()
    found.sort(key=lambda hit: (-hit.score, _text(hit)))
    return found[:MAX_HITS]


def _text(hit: Hit | DiscoveryHit) -> str:
    return hit.text or plain(hit.prompt)


def _later(app: App[object], work: Callable[[], object]) -> None:
    """Let the app's own task do it, in its place in the queue."""
    if not app.call_later(work):
        raise ToolError("the app takes no input any more")


def _free(name: str, taken: Mapping[str, object]) -> str:
    count, free = 1, name
    while free in taken:
        count += 1
        free = f"{name}_{count}"
    return free


def _word(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_").lower()[:40]
