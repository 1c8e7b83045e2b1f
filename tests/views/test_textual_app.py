"""The app in its thread: crashes, blocking, printing, ending, and what it leaves alone."""

import asyncio
import io
import logging
import signal
import sys
import threading
import time
import types
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.containers import VerticalScroll
from textual.pilot import Pilot
from textual.widgets import Button, Label, MaskedInput

from raxol_mcp.errors import ToolError
from raxol_mcp.testing.views import AppView
from raxol_mcp.views import textual_app, textual_inside
from raxol_mcp.views.running import AppEnded, Seen
from raxol_mcp.views.textual_app import TextualApp
from raxol_mcp.views.textual_screenshot import as_png
from raxol_mcp.views.textual_snapshot import take
from raxol_mcp.views.tree import Node, find, walk
from tests.views.textual_apps import Blocking, Scenes


class Watched:
    """A running app, what it showed, and how it ended."""

    def __init__(self, make_app: Callable[[], App[Any]]) -> None:
        self.seen: list[Seen] = []
        self.ended: list[BaseException | None] = []
        self.gone = asyncio.Event()
        self.app = TextualApp(
            make_app, name="s1", size=(80, 24), seen=self.seen.append, ended=self._over
        )

    def _over(self, error: BaseException | None) -> None:
        self.ended.append(error)
        self.gone.set()

    async def act(self, id: str, action: str, **arguments: object) -> object:
        visit = find(self.seen[-1].tree, id)
        node = Node("Button", id) if visit is None else visit.node
        return await self.app.act(node, action, arguments)


def test_a_crash_is_told_in_a_sentence_and_logged_in_full(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    async def scene() -> None:
        watched = Watched(Scenes)
        await watched.app.start()
        with pytest.raises(AppEnded, match=r"^the app has ended, and its session with it$"):
            await watched.act("keys", "crash")
        (error,) = watched.ended
        assert isinstance(error, RuntimeError)
        with pytest.raises(AppEnded):
            await watched.app.press(["a"])
        assert await watched.app.stop()

    asyncio.run(scene())
    assert "the secret of the app is 12345" in caplog.text
    assert capfd.readouterr() == ("", "")


def test_an_app_that_ends_itself_says_so() -> None:
    class Quits(Scenes):
        BINDINGS = [("q", "quit", "Leave")]  # noqa: RUF012  # as Textual's users write it

    async def scene() -> None:
        watched = Watched(Quits)
        await watched.app.start()
        said = await watched.act("keys", "leave")
        assert said == "ran 'Leave'; the app has ended, and its session with it"
        assert watched.ended == [None]

    asyncio.run(scene())


def test_an_app_that_cannot_be_made_does_not_start(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> App[None]:
        raise SystemExit("no configuration")

    async def scene() -> None:
        for make_app in (broken, dict):
            watched = Watched(make_app)  # type: ignore[arg-type]  # that is the point
            with pytest.raises(AppEnded):
                await watched.app.start()
            assert watched.ended == []

    asyncio.run(scene())
    assert "no configuration" in caplog.text
    assert "a Textual App was expected, not a dict" in caplog.text


def test_a_blocked_app_does_not_block_the_loop_of_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """ADR-0032. What it was asked is answered with what is known of it."""
    monkeypatch.setattr(textual_app, "ANSWER_TIMEOUT", 0.2)

    async def scene() -> None:
        watched = Watched(Blocking)
        monkeypatch.setattr(textual_app, "ANSWER_TIMEOUT", 10.0)
        await watched.app.start()
        monkeypatch.setattr(textual_app, "ANSWER_TIMEOUT", 0.2)
        began = time.monotonic()
        blocked = asyncio.ensure_future(watched.act("block", "click"))
        turns = 0
        while not blocked.done():
            await asyncio.sleep(0.01)
            turns += 1
        assert turns > 3
        with pytest.raises(ToolError, match="did not answer within"):
            await blocked
        assert time.monotonic() - began < 5
        assert await watched.app.stop()
        assert watched.ended == [None]

    asyncio.run(scene())


def test_an_app_that_waits_for_ever_is_ended_from_outside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(textual_app, "STOP_TIMEOUT", 0.3)

    class Waits(App[None]):
        def compose(self) -> ComposeResult:
            yield Button("Wait", id="wait")

        async def on_button_pressed(self) -> None:
            begun.set()
            await asyncio.Event().wait()

    begun = threading.Event()

    async def scene() -> None:
        watched = Watched(Waits)
        await watched.app.start()
        waiting = asyncio.ensure_future(watched.act("wait", "click"))
        assert await asyncio.to_thread(begun.wait, 30.0)
        await watched.app.stop()
        said = await waiting
        assert said == "clicked 'Wait'; the app has ended, and its session with it"

    asyncio.run(scene())


def test_a_widget_is_looked_for_when_it_is_acted_on() -> None:
    """No call acts on what was there when its tool was listed."""

    async def scene() -> None:
        watched = Watched(Scenes)
        await watched.app.start()
        old = find(watched.seen[-1].tree, "hide")
        assert old is not None
        assert await watched.app.act(old.node, "click", {}) == "clicked 'Hide me'"
        with pytest.raises(ToolError, match="hide is not on the screen any more"):
            await watched.app.act(old.node, "click", {})
        with pytest.raises(ToolError, match="shut_in is disabled now"):
            await watched.act("shut_in", "click")
        with pytest.raises(ToolError, match="private is not on the screen"):
            await watched.act("private", "click")
        await watched.app.stop()

    asyncio.run(scene())


def test_what_has_not_changed_is_not_shown_again() -> None:
    async def scene() -> None:
        watched = Watched(Scenes)
        await watched.app.start()
        shown = len(watched.seen)
        await asyncio.sleep(0.2)
        assert len(watched.seen) == shown
        await watched.act("keys", "erase_everything")
        assert watched.seen[-1].model == {"mood": "erased"}
        await watched.app.stop()

    asyncio.run(scene())


def test_values_of_the_app_that_fail_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    class Fails(Scenes):
        def mcp_model(self) -> dict[str, object]:
            raise RuntimeError("no model")

    async def scene() -> None:
        watched = Watched(Fails)
        await watched.app.start()
        assert watched.seen[-1].model == {}
        await watched.app.stop()

    asyncio.run(scene())
    assert "mcp_model failed" in caplog.text


def test_what_apps_print_is_theirs_and_the_streams_are_put_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Textual redirects both for one app; here one ends while another runs."""
    ours, theirs = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", ours)
    monkeypatch.setattr(sys, "__stdout__", theirs)

    async def scene() -> None:
        first, second = Watched(Scenes), Watched(Scenes)
        await first.app.start()
        await second.app.start()
        print("by the server")  # noqa: T201  # what is tested
        await first.act("keys", "print")
        await first.app.stop()
        print("by the server again")  # noqa: T201  # what is tested
        await second.act("keys", "print")
        await second.app.stop()

    asyncio.run(scene())
    assert sys.stdout is ours
    assert ours.getvalue() == "by the server\nby the server again\n"
    assert theirs.getvalue() == "printed by the app\n" * 2


def test_no_signal_is_handled_and_no_thread_is_left() -> None:
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGTSTP, signal.SIGWINCH)
    before = [signal.getsignal(number) for number in signals]
    with AppView(Scenes):
        assert [signal.getsignal(number) for number in signals] == before
    for thread in threading.enumerate():
        if thread.name.startswith("app "):
            thread.join(10)
            assert not thread.is_alive()


def test_stopping_while_it_starts_ends_it() -> None:
    async def scene() -> None:
        watched = Watched(Scenes)
        starting = asyncio.ensure_future(watched.app.start())
        await asyncio.sleep(0)
        assert await watched.app.stop()
        with pytest.raises(AppEnded):
            await starting

    asyncio.run(scene())


def test_a_caller_that_goes_away_cancels_nothing_else() -> None:
    begun = threading.Event()

    class Blocks(Blocking):
        def on_button_pressed(self) -> None:
            begun.set()  # Textual calls that of `Blocking` as well

    async def scene() -> None:
        watched = Watched(Blocks)
        await watched.app.start()
        call = asyncio.ensure_future(watched.act("block", "click"))
        assert await asyncio.to_thread(begun.wait, 30.0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await watched.app.press(["tab"]) == "pressed 1 key(s)"
        await watched.app.stop()

    asyncio.run(scene())


def test_the_screen_is_drawn_as_svg() -> None:
    with AppView(Scenes) as app:
        assert app.svg().startswith("<svg")
        assert "calm" in app.svg()


def test_a_password_with_a_template_is_dots_in_every_picture() -> None:
    """Textual draws that of a MaskedInput as it is, and goes on doing so."""

    class Secrets(App[None]):
        def compose(self) -> ComposeResult:
            pin = MaskedInput("9999", value="1234", id="pin")
            pin.password = True
            yield pin
            yield MaskedInput("9999", value="5678", id="year")

    with AppView(Secrets) as app:
        for picture in (app.screen(), app.svg(), app.screen()):
            assert "1234" not in picture
            assert "5678" in picture


def test_a_picture_that_cannot_be_made_says_what_is_missing(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    with caplog.at_level(logging.INFO), pytest.raises(ToolError, match="needs the package"):
        as_png("<svg/>")


def test_a_picture_is_made_where_something_can(monkeypatch: pytest.MonkeyPatch) -> None:
    renderer = types.ModuleType("cairosvg")
    renderer.svg2png = lambda *, bytestring: b"PNG of " + bytestring  # type: ignore[attr-defined]  # what the package has
    monkeypatch.setitem(sys.modules, "cairosvg", renderer)
    assert as_png("<svg/>") == b"PNG of <svg/>"


def test_many_updates_are_looked_at_once_in_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: 500 widgets, and updates as fast as the app can make them."""

    class Busy(App[None]):
        def compose(self) -> ComposeResult:
            for number in range(500):
                yield Label("0", id=f"label{number}")

        async def on_key(self) -> None:
            for number in range(2_000):
                self.query_one(f"#label{number % 500}", Label).update(str(number))
                if number % 20 == 0:
                    await asyncio.sleep(0)

    looks: list[float] = []

    def counted(app: App[object]) -> object:
        looks.append(time.monotonic())
        return take(app)

    monkeypatch.setattr(textual_inside, "take", counted)

    async def scene() -> None:
        watched = Watched(Busy)
        await watched.app.start()
        began, before = time.monotonic(), len(looks)
        await watched.app.press(["a"])
        elapsed = time.monotonic() - began
        # One for each window, and one when the app has settled.
        assert len(looks) - before <= elapsed / textual_inside.DEBOUNCE + 2
        shown = {node.attributes["content"] for node in _nodes(watched.seen[-1].tree, "Label")}
        assert shown == {str(number) for number in range(1_500, 2_000)}
        await watched.app.stop()

    asyncio.run(scene())


def _nodes(tree: Node, type: str) -> list[Node]:
    return [visit.node for visit in walk(tree) if visit.node.type == type]


def test_a_widget_that_cannot_be_looked_at_is_told_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Odd(Button):
        @property
        def disabled(self) -> bool:  # a mistake of somebody's
            if getattr(self.app, "odd", False):
                raise RuntimeError("odd")
            return False

        @disabled.setter
        def disabled(self, value: bool) -> None:
            pass

    class Shows(App[None]):
        odd = False

        def compose(self) -> ComposeResult:
            yield Odd("Odd", id="odd")
            yield Label("0", id="label")

        async def on_key(self) -> None:
            self.odd = True
            for number in range(5):
                self.query_one("#label", Label).update(str(number))
                await asyncio.sleep(0.06)
            self.odd = False

    async def scene() -> None:
        watched = Watched(Shows)
        await watched.app.start()
        await watched.app.press(["a"])
        assert find(watched.seen[-1].tree, "label") is not None
        await watched.app.stop()

    asyncio.run(scene())
    assert caplog.text.count("the app cannot be looked at") == 1


class Fails(App[None]):
    """Fails where it is told to."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.where = where

    def compose(self) -> ComposeResult:
        if self.where == "compose":
            raise RuntimeError("12345")
        yield Label("fine", id="label")

    def on_mount(self) -> None:
        if self.where == "mount":
            raise RuntimeError("12345")
        if self.where == "later":
            self.set_timer(0.1, self.fail)
        if self.where == "work":
            self.run_worker(self.fail(), exit_on_error=True)

    async def fail(self) -> None:
        raise RuntimeError("12345")


@pytest.mark.parametrize("where", ["compose", "mount"])
def test_an_app_that_fails_while_it_starts_does_not_start(
    where: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        watched = Watched(lambda: Fails(where))
        async with asyncio.timeout(10):
            with pytest.raises(AppEnded):
                await watched.app.start()
        assert await watched.app.stop()

    asyncio.run(scene())
    assert "RuntimeError: 12345" in caplog.text


@pytest.mark.parametrize("where", ["later", "work"])
def test_an_app_that_fails_by_itself_ends(where: str, caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        watched = Watched(lambda: Fails(where))
        async with asyncio.timeout(10):
            try:
                await watched.app.start()
            except AppEnded:  # broken before it was drawn
                return
            await watched.gone.wait()

    asyncio.run(scene())
    assert "12345" in caplog.text


def test_what_changes_by_itself_is_shown() -> None:
    """By a timer, by work in another thread, on the screen or far below it."""

    class Clock(App[None]):
        def compose(self) -> ComposeResult:
            yield Label("early", id="near")
            with VerticalScroll(id="box"):
                for number in range(100):
                    yield Label(str(number))
                yield Label("early", id="far")
                yield Button("Go", id="go", disabled=True)

        def on_mount(self) -> None:
            self.set_timer(0.1, self.ring)

        def ring(self) -> None:
            self.query_one("#near", Label).update("late")
            self.query_one("#far", Label).update("late")
            self.query_one("#go", Button).disabled = False

    async def scene() -> None:
        watched = Watched(Clock)
        await watched.app.start()
        for _ in range(500):
            if all(_late(watched.seen[-1].tree)):
                break
            await asyncio.sleep(0.02)
        assert _late(watched.seen[-1].tree) == [True] * 3
        await watched.app.stop()

    def _late(tree: Node) -> list[bool]:
        near, far, go = (find(tree, id) for id in ("near", "far", "go"))
        assert near is not None
        assert far is not None
        assert go is not None
        return [
            near.node.attributes["content"] == "late",
            far.node.attributes["content"] == "late",
            go.enabled,
        ]

    asyncio.run(scene())


def test_a_session_ends_with_its_app_and_not_with_what_the_app_left_behind() -> None:
    """The thread is waited for all the same: it counts until it has ended."""
    release = threading.Event()

    class Leaves(App[None]):
        def compose(self) -> ComposeResult:
            yield Button("Leave", id="leave")

        def on_button_pressed(self) -> None:
            self.run_worker(release.wait, thread=True)
            self.set_timer(0.01, self.exit)

    async def scene() -> None:
        watched = Watched(Leaves)
        gone = [watched.app.gone]
        await watched.app.start()
        with suppress(AppEnded):
            await watched.act("leave", "click")
        async with asyncio.timeout(10):
            await watched.gone.wait()
        assert watched.ended == [None]
        gone.append(watched.app.gone)
        release.set()
        assert await watched.app.stop()
        assert [*gone, watched.app.gone] == [True, False, True]

    asyncio.run(scene())


def test_what_breaks_in_drawing_breaks_the_app_and_not_the_call(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever draws first, the app by itself or who waits for it: it is the app that is broken."""

    async def pause(self: Pilot[object], delay: float | None = None) -> None:
        raise RuntimeError("12345")  # what drawing a widget of the app's may raise

    with AppView(Scenes) as app:
        monkeypatch.setattr(Pilot, "pause", pause)
        with pytest.raises(AssertionError, match="the app has ended, and its session with it"):
            app.click("hide")
        with pytest.raises(AssertionError, match="session s1 has ended: its app crashed"):
            app.screen()
    assert "12345" in caplog.text


def test_half_a_surrogate_pair_on_the_screen_hides_nothing_else() -> None:
    """An app may show what no message carries."""

    class Odd(App[None]):
        def compose(self) -> ComposeResult:
            yield Label("before \ud800 after", id="text")
            yield Button("Go \ud800", id="go")

    with AppView(Odd) as app:
        app.assert_screen_contains("before ? after").click("go")
        assert app.said == "clicked 'Go ?'"
        app.assert_widget("text", content="before ? after")
        assert "Go" in app.svg()


def test_an_app_does_not_close_the_streams_of_the_process() -> None:
    class Closing(App[None]):
        def compose(self) -> ComposeResult:
            yield Button("Close", id="close")

        def on_button_pressed(self) -> None:
            sys.stdout.close()
            sys.stderr.close()

    before = sys.stdout
    with AppView(Closing) as app:
        app.click("close")
    assert sys.stdout is before
    assert not before.closed


def test_a_screen_that_is_disabled_has_no_tools_of_widgets() -> None:
    class Off(App[None]):
        def compose(self) -> ComposeResult:
            yield Button("Go", id="go")

        def on_mount(self) -> None:
            self.screen.disabled = True

    with AppView(Off) as app:
        app.refute_tool("go.click").assert_widget("go", disabled=True)
