"""The inside of a Textual app that is served: what its own thread does for those outside.

It looks at the app when that has changed, acts on it, one thing at a time, and says when the app
has settled. Nothing of it is to be called from another thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from raxol_mcp.errors import ToolError
from raxol_mcp.views.running import AppEnded, Seen
from raxol_mcp.views.textual_commands import (
    command_actions,
    key_actions,
    run_command,
    run_key,
)
from raxol_mcp.views.textual_hands import Hands
from raxol_mcp.views.textual_keys import key_events
from raxol_mcp.views.textual_marks import is_guarded_key
from raxol_mcp.views.textual_snapshot import KINDS, Snapshot, is_operating_sensitive, kind_of, take
from raxol_mcp.views.textual_texts import copies_secret
from raxol_mcp.views.tree import Node, find
from raxol_mcp.views.walker import Action
from raxol_mcp.views.walker import is_sensitive as is_sensitive_action

if TYPE_CHECKING:
    from textual.app import App
    from textual.message import Message
    from textual.pilot import Pilot

__all__ = ["ACTIONS", "ENDED", "Hook", "Inside"]

_logger = logging.getLogger("raxol_mcp.views")

T = TypeVar("T")

# Tools follow what was drawn at most this long after it, in seconds; an app that draws all the time
# is looked at once in such a time.
DEBOUNCE: Final = 0.05
# What nodes offer, by type.
ACTIONS: Final[Mapping[str, Callable[[Node], Sequence[Action]]]] = {
    **{type: kind.actions for type, kind in KINDS.items()},
    "Keys": key_actions,
    "Commands": command_actions,
}
ENDED: Final = "the app has ended, and its session with it"
# Keys that only move: they do nothing to a widget that a person is asked about.
_HARMLESS: Final = {"tab", "shift+tab", "escape"}


class Hook:
    """Hears every message of the app, before there is anybody to tell as well."""

    inside: Inside | None = None

    def __call__(self, message: Message) -> None:
        """Take a message that is being dispatched."""
        if self.inside is not None:
            self.inside.heard(message)


class Inside:
    """The app, in its own thread."""

    def __init__(
        self,
        pilot: Pilot[object],
        main: asyncio.Task[object],
        show: Callable[[Seen], None],
    ) -> None:
        self._main = main
        self.hands = Hands(pilot)
        self._app: App[object] = pilot.app
        self._show = show
        self._turn = asyncio.Lock()
        self._waiting: asyncio.TimerHandle | None = None
        self._shown: Seen | None = None
        self._failing = False
        self._loop = asyncio.get_running_loop()

    @property
    def over(self) -> bool:
        """Whether the app has ended, or is about to."""
        return not self._app.is_running or self._app._exception is not None

    def heard(self, message: Message) -> None:
        """A message was dispatched: look at the app soon, and once for all that come till then."""
        if self.hands.heard(message) and self._waiting is None:
            self._waiting = self._loop.call_later(DEBOUNCE, self._look_later)

    def _look_later(self) -> None:
        try:
            self.look()
            self._failing = False
        except AppEnded:
            pass
        except Exception:  # of a widget of the app's, in a property that was read
            if not self._failing:  # once, and not twenty times a second
                _logger.exception("the app cannot be looked at: its tools stay as they are")
            self._failing = True

    def look(self) -> Snapshot:
        """Look at the app now, and show it when it has changed."""
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        if not self._app.is_running:
            raise AppEnded(ENDED)  # nothing is to be seen, and that is not what it showed last
        with self._app._context():
            snapshot = take(self._app)
            seen = Seen(snapshot.root, _model(self._app))
        if seen != self._shown:
            self._shown = seen
            self._show(seen)
        return snapshot

    def exit(self) -> None:
        """End the app, as its own code would."""
        self._app.exit()

    def cancel(self) -> None:
        """End the app's main task, whatever it waits for."""
        self._main.cancel()

    async def alone(self, work: Callable[[Inside], Coroutine[object, object, T]]) -> T:
        """Do one thing at a time. Raises AppEnded when that broke the app, or came too late."""
        try:
            async with self._turn:
                with self._app._context():
                    return await work(self)
        except ToolError:
            raise
        except Exception as error:
            if self.over:
                raise AppEnded(ENDED) from error
            raise

    async def act(self, node: Node, action: str, arguments: Mapping[str, object]) -> object:
        """Do something with what `node` was of, if it is there now and may be used now."""
        known = self.hands.workers()
        snapshot = self.look()
        id = _checked(snapshot, node, action)
        if node.type == "Keys":
            said: object = await run_key(self.hands, action)
        elif node.type == "Commands":
            said = await run_command(self.hands, action, arguments)
            if action == "search":
                return said
        else:
            widget = snapshot.widgets[id]
            kind = kind_of(widget)
            assert kind is not None, "as the type says"
            try:
                said = await kind.act(self.hands, widget, action, arguments)
            except ToolError:
                self.look()  # a part of it may have been done
                raise
            if action.startswith(("get_", "read")):
                return said
        return await self._after(said, known)

    async def press(self, keys: Sequence[str]) -> str:
        """Press keys, each when the one before was handled."""
        known = self.hands.workers()
        events = key_events(keys)
        for event in events:
            self._check_harmless(event.key)
            self.hands.post([event])
            await self.hands.quiet()
        return str(await self._after(f"pressed {len(keys)} key(s)", known))

    async def draw(self, how: Callable[[App[object]], T]) -> T:
        """Draw the screen when all that was asked for has been drawn."""
        await self.hands.quiet()
        return how(self._app)

    async def _after(self, said: object, known: frozenset[object]) -> object:
        try:
            left = await self.hands.settled(known)
            self.look()
        except (Exception, asyncio.CancelledError):
            if self._app.is_running or self._app._exception is not None:
                raise
            return f"{said}; {ENDED}"
        if left and isinstance(said, str):
            return f"{said}; {left} background task(s) of the app still run: look again later"
        return said

    def _check_harmless(self, key: str) -> None:
        """Refuse keys that would do, unasked, what a person is to be asked about."""
        app = self._app
        on_marked = is_operating_sensitive(app.focused or app.screen) and key not in _HARMLESS
        if on_marked or is_guarded_key(app, key):
            raise ToolError(f"a person is asked about what {key!r} does here: call its tool")
        active = app.screen.active_bindings.get(key)
        if active is not None and copies_secret(app, active.binding):
            raise ToolError("a password is not copied")


def _checked(snapshot: Snapshot, before: Node, name: str) -> str:
    """Look again at what a call was let through for: the app has gone on since. Return its id."""
    id = before.id
    assert id is not None, "nodes without an id have no actions"
    visit = find(snapshot.root, id)
    if visit is None or visit.node.type != before.type or visit.node.excluded:
        raise ToolError(f"{id} is not on the screen any more")
    if not visit.enabled:
        raise ToolError(f"{id} is disabled now")
    was, now = _offered(before, name), _offered(visit.node, name)
    if now is None:
        raise ToolError(f"{id} does not offer {name!r} any more")
    if was != now and (now[1] or (was is not None and was[1])):
        raise ToolError(f"{id} has changed and is sensitive. List the tools again.")
    return id


def _offered(node: Node, name: str) -> tuple[Action, bool] | None:
    """Find an action of a node, and whether a person is asked before it."""
    for action in ACTIONS[node.type](node):
        if action.name == name:
            return action, is_sensitive_action(node, action)
    return None


def _model(app: App[object]) -> Mapping[str, object]:
    """Read the values that an app offers: `mcp_model()`, a mapping of names to JSON values."""
    model = getattr(app, "mcp_model", None)
    if not callable(model):
        return {}
    try:
        values = model()
    except Exception:  # of the app's: the rest of it goes on
        _logger.exception("mcp_model failed")
        return {}
    return dict(values) if isinstance(values, Mapping) else {}
