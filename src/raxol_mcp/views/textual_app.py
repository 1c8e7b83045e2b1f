"""A Textual app that runs without a terminal, in a thread and an event loop of its own.

Its thread looks at it, and hands the tree over; the server's loop never waits for it. An app that
blocks blocks its own session and no other (ADR-0032). Nothing is written to a terminal, no signal
is handled: those belong to the process, and the process to the server.

What the app's thread may be asked: to act, to press keys, to draw its screen, to end.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from textual._context import message_hook
from textual.app import App

from raxol_mcp.errors import ToolError
from raxol_mcp.views.running import AppEnded, Picture, Seen
from raxol_mcp.views.textual_inside import ACTIONS, ENDED, Hook, Inside
from raxol_mcp.views.textual_prints import PRINTS
from raxol_mcp.views.textual_screenshot import as_png, as_svg, as_text
from raxol_mcp.views.tree import Node
from raxol_mcp.views.walker import Action

if TYPE_CHECKING:
    from concurrent.futures import Future

    from textual.pilot import Pilot

__all__ = ["TextualApp"]

_logger = logging.getLogger("raxol_mcp.views")

T = TypeVar("T")

# How long an app may take to answer, and to end, in seconds.
ANSWER_TIMEOUT: Final = 30.0
STOP_TIMEOUT: Final = 3.0  # of each of the two ways to end it


class TextualApp:
    """One app, from its start to its end. Used from the loop it was started on.

    `make_app` is called in the app's thread, without arguments. `size` is columns and rows.
    `seen` is called with every new tree, `ended` once, when the app is gone: with None when it
    ended by itself or was stopped, else with what broke it. Both on the loop of who started it.
    """

    def __init__(
        self,
        make_app: Callable[[], object],
        *,
        name: str,
        size: tuple[int, int],
        seen: Callable[[Seen], None],
        ended: Callable[[BaseException | None], None],
    ) -> None:
        self._make_app = make_app
        self._name = name
        self._size = size
        self._seen = seen
        self._ended = ended
        self._home: asyncio.AbstractEventLoop | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._gone = asyncio.Event()  # the app is over
        self._left = asyncio.Event()  # and so is its thread, with the work in threads of its own
        self._begun = self._stopping = False
        self._ready: asyncio.Future[None] | None = None
        self._inside: Inside | None = None
        self.providers = {type: _Provider(self, actions) for type, actions in ACTIONS.items()}

    # -- life, on the loop of who uses it -------------------------------------------------------

    async def start(self) -> None:
        """Start the app and wait until it was drawn once. Raises AppEnded when it does not run."""
        self._home = asyncio.get_running_loop()
        self._ready = self._home.create_future()
        self._begun = True
        # A daemon: an app that blocks for ever must not keep the process.
        threading.Thread(target=self._thread, name=f"app {self._name}", daemon=True).start()
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT):
                await self._ready
        except TimeoutError:
            raise AppEnded("it did not start in time") from None

    @property
    def gone(self) -> bool:
        """Whether nothing of it is left."""
        return self._left.is_set() or not self._begun

    async def stop(self) -> bool:
        """End the app; False when its thread did not end in time, and was left alone."""
        self._stopping = True
        if self.gone:
            return True
        # As its own code would end it; then, where a handler of it waits for ever, from outside.
        return await self._ends(Inside.exit) or await self._ends(Inside.cancel)

    async def _ends(self, how: Callable[[Inside], None]) -> bool:
        loop, inside = self._loop, self._inside
        if loop is not None and inside is not None and not self._gone.is_set():
            # RuntimeError: it has just ended, and its loop with it.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(how, inside)
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_TIMEOUT):
                await self._left.wait()
        return self._left.is_set()

    async def act(self, node: Node, action: str, arguments: Mapping[str, object]) -> object:
        """Do something with what a node is of; see `Provider.act`."""
        return await self._ask(lambda inside: inside.act(node, action, arguments))

    async def press(self, keys: Sequence[str]) -> str:
        """Press keys. Raises ToolError."""
        return await self._ask(lambda inside: inside.press(keys))

    async def picture(self, form: Picture) -> str | bytes:
        """Draw the screen. Raises ToolError."""
        if form == "png":
            svg = await self._ask(lambda inside: inside.draw(as_svg))
            return await asyncio.to_thread(as_png, svg)
        draw = as_svg if form == "svg" else as_text
        return await self._ask(lambda inside: inside.draw(draw))

    async def _ask(self, work: Callable[[Inside], Coroutine[object, object, T]]) -> T:
        loop, inside = self._loop, self._inside
        if loop is None or inside is None or self._gone.is_set():
            raise AppEnded(ENDED)
        asked: Future[T] = asyncio.run_coroutine_threadsafe(inside.alone(work), loop)
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT):
                return await asyncio.wrap_future(asked)
        except TimeoutError:
            raise ToolError(
                f"the app did not answer within {ANSWER_TIMEOUT:.0f} seconds: it is busy, or "
                "blocked; look again later, or stop its session"
            ) from None
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise AppEnded(ENDED) from None  # its loop was closed over the work
        finally:
            if inside.over:
                # Who is answered finds the session ended, and its tools gone.
                with suppress(TimeoutError):
                    async with asyncio.timeout(1.0):
                        await self._gone.wait()

    # -- in the app's thread --------------------------------------------------------------------

    def _thread(self) -> None:
        PRINTS.begins()
        try:
            with asyncio.Runner() as runner:
                self._loop = runner.get_loop()
                try:
                    error = runner.run(self._run())
                except asyncio.CancelledError as cancelled:
                    error = None if self._stopping else cancelled
                except BaseException as broken:  # SystemExit as well: it ends this thread only
                    error = broken
                # The end of the loop waits for what the app does in other threads.
                self._tell(self._over, error)
        except Exception:
            _logger.exception("the loop of session %s did not end in order", self._name)
        finally:
            PRINTS.ended()
            self._tell(self._left.set)

    async def _run(self) -> BaseException | None:
        running = asyncio.current_task()
        assert running is not None, "a coroutine runs in a task"
        main: asyncio.Task[object] = running
        app = self._make_app()
        if not isinstance(app, App):
            raise TypeError(f"a Textual App was expected, not a {type(app).__name__}")
        # Nobody watches it move, and whoever looks wants to see where it ends.
        app.animation_level = "none"
        # What broke it goes to the log: not drawn on stderr, with the values of its variables.
        app.error_console.quiet = True

        async def ready(pilot: Pilot[object]) -> None:
            PRINTS.runs(app)
            self._inside = inside = Inside(pilot, main, self._show)
            hook.inside = inside
            if self._stopping:  # it was given up while it was starting
                app.exit()
                return
            with suppress(AppEnded):  # then what broke it is told
                await inside.hands.quiet()
                if app._exception is None:
                    inside.look()
                    self._tell(self._started)

        hook = Hook()
        message_hook.set(hook)
        try:
            await app.run_async(headless=True, size=self._size, auto_pilot=ready)
        except Exception as error:
            return app._exception or error  # what comes after the first is its consequence
        return app._exception

    def _show(self, seen: Seen) -> None:
        self._tell(self._seen, seen)

    def _tell(self, told: Callable[..., None], *what: object) -> None:
        assert self._home is not None, "set by start"
        try:
            self._home.call_soon_threadsafe(told, *what)
        except RuntimeError:
            _logger.debug("app %s outlived the loop of its server", self._name)

    # -- told by the app's thread, on the loop of who uses it -----------------------------------

    def _started(self) -> None:
        if self._ready is not None and not self._ready.done():
            self._ready.set_result(None)

    def _over(self, error: BaseException | None) -> None:
        self._gone.set()
        if error is not None:
            _logger.error("the app of session %s crashed", self._name, exc_info=error)
        if self._ready is not None and not self._ready.done():
            self._ready.set_exception(AppEnded("it ended while it was starting"))
        else:
            self._ended(error)


class _Provider:
    """Offers what a kind of widgets can do, and has it done in the app's thread."""

    def __init__(self, app: TextualApp, actions: Callable[[Node], Sequence[Action]]) -> None:
        self._app = app
        self.actions = actions

    async def act(self, node: Node, action: str, arguments: Mapping[str, object]) -> object:
        """See `Provider.act`."""
        return await self._app.act(node, action, arguments)
