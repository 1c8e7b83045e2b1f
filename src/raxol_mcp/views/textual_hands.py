"""The hands on a running Textual app: they click, press, paste, and wait until it has settled.

What they do enters the app where a terminal's input enters it, so that bindings, focus and
handlers see what they see when a person is there. They never call a handler and set no value.
Everything runs in the loop of the app.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from textual import events
from textual.app import ScreenStackError
from textual.errors import NoWidget
from textual.geometry import Offset

from raxol_mcp.errors import ToolError
from raxol_mcp.views.textual_keys import key_events
from raxol_mcp.views.textual_marks import is_guarded_key

if TYPE_CHECKING:
    from textual.app import App
    from textual.message import Message
    from textual.pilot import Pilot
    from textual.widget import Widget

__all__ = ["Hands"]

# Ours. An app that animates or counts seconds never falls silent: it has settled when the queue
# of every widget was empty this often in a row, or at most this often in all.
_QUIET_ROUNDS: Final = 2
_MAX_ROUNDS: Final = 25
# How long what an action started in the background is waited for: 2 seconds, in looks. And a button
# that was just pressed, which shows it for 0.2 s and is deaf meanwhile.
_LOOKS: Final = 100
_LOOK_EVERY: Final = 0.02
# These come by themselves, or from the waiting.
_NOISE: Final = (events.Callback, events.Timer, events.Idle, events.MouseMove)


class Hands:
    """One pair for one app. `heard` is to be called with every message the app dispatches."""

    def __init__(self, pilot: Pilot[object]) -> None:
        self._pilot = pilot
        self.app: App[object] = pilot.app
        self._messages = 0

    def heard(self, message: Message) -> bool:
        """Count a message; say whether it may have changed what is to be seen."""
        if isinstance(message, _NOISE):
            return False
        self._messages += 1
        return True

    # -- acting ---------------------------------------------------------------------------------

    async def click(self, widget: Widget) -> None:
        """Click in the middle of a widget, scrolled to if need be; by the keyboard if covered.

        Raises ToolError when neither is possible.
        """
        await self._awake(widget)
        target = await self._point(widget)
        if target is not None:
            self._mouse(target)
        elif widget.focusable:
            await self.press(widget, "enter")
        else:
            raise ToolError("something else on the screen covers it")

    async def focus(self, widget: Widget) -> None:
        """Move the focus to a widget. Raises ToolError when it does not take it."""
        app = self.app
        self._check_there(widget)
        if app.focused is not widget:
            if not widget.focusable:
                raise ToolError("it cannot have the focus now")
            widget.screen.set_focus(widget)
            await self.quiet()
        if app.focused is not widget:
            raise ToolError("the focus went elsewhere")

    async def press(self, widget: Widget, *keys: str) -> None:
        """Press keys while a widget has the focus, which it is given.

        Raises ToolError for a key that does not reach it, but does what a person is asked about.
        """
        await self.focus(widget)
        events = key_events(keys)
        for event in events:
            if is_guarded_key(self.app, event.key, own=widget):
                raise ToolError(f"a person is asked about what {event.key!r} does here")
        self.post(events)

    async def paste(self, widget: Widget, text: str) -> None:
        """Paste a text where a widget's cursor is, as a terminal does: no key is a command."""
        await self.focus(widget)
        self.post([events.Paste(text)])

    def post(self, inputs: Iterable[events.Event]) -> None:
        """Put input into the app's queue, as its driver does."""
        for event in inputs:
            event.set_sender(self.app)
            if not self.app.post_message(event):
                raise ToolError("the app takes no input any more")

    # -- waiting --------------------------------------------------------------------------------

    async def quiet(self) -> None:
        """Wait until every message that led to others has been handled; bounded."""
        quiet = 0
        for _ in range(_MAX_ROUNDS):
            before = self._messages
            await self._drawn()
            quiet = quiet + 1 if self._messages == before else 0
            if quiet == _QUIET_ROUNDS:
                return

    async def settled(self, known: frozenset[object]) -> int:
        """Wait until the app has settled, workers that are not `known` included.

        Returns how many of those still run: some never end, so the wait is bounded.
        """
        await self.quiet()
        for _ in range(_LOOKS):  # nobody tells when one has ended
            if not self.workers() - known:
                break
            await asyncio.sleep(_LOOK_EVERY)
        await self.quiet()
        return len(self.workers() - known)

    def workers(self) -> frozenset[object]:
        """Return the background work that is running."""
        return frozenset(worker for worker in self.app.workers if not worker.is_finished)

    # -- inside ---------------------------------------------------------------------------------

    async def _drawn(self) -> None:
        """Let the app go on until it has nothing left to do, and draw."""
        try:
            await self._pilot.pause(0)
        except ScreenStackError:
            raise  # it has no screen now: it is ending
        except Exception as error:  # drawing is the app's code: broken here as by its own timer
            self.app._handle_exception(error)
            raise

    async def _awake(self, widget: Widget) -> None:
        for _ in range(_LOOKS):
            if not widget.has_class("-active"):
                return
            await asyncio.sleep(_LOOK_EVERY)

    def _check_there(self, widget: Widget) -> None:
        """The app goes on between the steps of an action, and may take the widget away."""
        if not widget.is_attached or widget.screen is not self.app.screen:
            raise ToolError("it is not on the screen any more")

    async def _point(self, widget: Widget) -> Offset | None:
        """Find a point at which a click reaches the widget or what is inside it."""
        self._check_there(widget)
        widget.scroll_visible(animate=False, immediate=True)
        await self.quiet()
        self._check_there(widget)  # or the click would be another's
        screen = widget.screen
        region = widget.region.intersection(screen.region)
        if not region.area:
            return None
        for x, y in (region.center, (region.x, region.y), (region.right - 1, region.bottom - 1)):
            offset = Offset(int(x), int(y))
            try:
                found, _ = screen.get_widget_at(*offset)
            except NoWidget:
                continue
            if widget in found.ancestors_with_self:
                return offset
        return None

    def _mouse(self, offset: Offset) -> None:
        x, y = offset
        self.post(
            kind(
                None,
                x=x,
                y=y,
                delta_x=0,
                delta_y=0,
                button=button,
                shift=False,
                meta=False,
                ctrl=False,
                screen_x=x,
                screen_y=y,
            )
            for kind, button in (
                (events.MouseMove, 0),
                (events.MouseDown, 1),
                (events.MouseUp, 1),
            )
        )
