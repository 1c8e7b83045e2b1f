"""Reaching widgets: what is covered, what cannot have the focus, and how long is waited."""

import asyncio

import pytest
from rich.panel import Panel
from textual import work
from textual.app import App, ComposeResult
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Button, DataTable, Input, Label, OptionList, Static, Tab, Tabs

from raxol_mcp.testing.views import AppView
from raxol_mcp.views import textual_hands


class Covered(App[None]):
    """A lid lies over everything, as a big notification would."""

    CSS = """
    Screen { layers: below above; }
    Button, Tabs { layer: below; }
    #lid { layer: above; width: 100%; height: 100%; }
    """

    def compose(self) -> ComposeResult:
        yield Tabs(Tab("One"), Tab("Two"), id="tabs")
        yield Button("Under", id="under")
        yield Static("nothing", id="lid")

    def on_button_pressed(self) -> None:
        self.query_one("#lid", Static).update("pressed")


def test_what_is_covered_is_reached_by_the_keyboard() -> None:
    with AppView(Covered) as app:
        app.click("under").assert_widget("lid", content="pressed")


def test_what_is_covered_and_takes_no_focus_is_not_reached() -> None:
    with AppView(Covered) as app:
        with pytest.raises(AssertionError, match="something else on the screen covers it"):
            app.select("tabs", "Two")
        app.assert_widget("tabs", value="One")


class Jumpy(App[None]):
    """Gives the focus away, and works without end."""

    def compose(self) -> ComposeResult:
        yield Input(id="jumps")
        yield Input(id="other")
        yield Input(id="aloof")
        yield Button("Work", id="work")

    def on_mount(self) -> None:
        self.query_one("#aloof").can_focus = False

    def on_descendant_focus(self) -> None:
        if self.focused is not None and self.focused.id == "jumps":
            self.query_one("#other").focus()

    def on_button_pressed(self) -> None:
        self.work_without_end()

    @work
    async def work_without_end(self) -> None:
        await asyncio.Event().wait()


def test_text_goes_to_no_other_widget_than_was_meant() -> None:
    with AppView(Jumpy) as app:
        with pytest.raises(AssertionError, match="the focus went elsewhere"):
            app.type_into("jumps", "secret")
        with pytest.raises(AssertionError, match="it cannot have the focus now"):
            app.type_into("aloof", "secret")
        app.assert_widget("other", value="").assert_widget("jumps", value="")


def test_work_without_end_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(textual_hands, "_LOOKS", 3)
    with AppView(Jumpy) as app:
        app.click("work")
        assert app.said == (
            "clicked 'Work'; 1 background task(s) of the app still run: look again later"
        )
        app.clear("other")  # which does not wait for what was there before
        assert app.said == "emptied"


class Large(Button):
    """A button that may have the whole screen."""

    ALLOW_MAXIMIZE = True


class Odd(App[None]):
    """Texts that are no plain words."""

    def compose(self) -> ComposeResult:
        yield OptionList(Panel("in a box", expand=False), "[not closed", id="options")
        table: DataTable[object] = DataTable(id="table")
        table.add_columns("What", "")
        table.add_row("[b]bold[/b]", Panel("boxed", expand=False))
        table.add_row(True, 2.5)
        yield table
        yield Large("Big", id="big")
        yield Label("Small", id="small")

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.screen.maximize(event.button, container=False)


def test_texts_are_read_whatever_they_are_made_of() -> None:
    with AppView(Odd) as app:
        assert "in a box" in app.call("options.get_options")
        assert "[not closed" in app.call("options.get_options")
        rows = app.call("table.get_rows")
        assert '"What":"bold"' in rows
        assert "boxed" in rows
        assert '{"What":"True","":"2.5"}' in rows


def test_what_is_maximized_is_alone_on_the_screen() -> None:
    with AppView(Odd) as app:
        app.click("big").refute_widget("small").assert_tool("big.click")


class Trap(ModalScreen[None]):
    """A dialog whose button lies where that of the screen below it does."""

    def compose(self) -> ComposeResult:
        yield Button("Erase", id="erase")

    def on_button_pressed(self) -> None:
        self.app.title = "erased"


class Vanishing(App[None]):
    """Takes an input away as soon as it has been typed into."""

    CSS = "Button { dock: top; }"
    TITLE = "calm"

    def compose(self) -> ComposeResult:
        yield Button("Fine", id="fine")
        yield Input(id="short")

    def on_input_changed(self, event: Input.Changed) -> None:
        event.input.remove()


def test_a_widget_that_goes_while_it_is_acted_upon_is_said_to_be_gone() -> None:
    with AppView(Vanishing) as app:
        with pytest.raises(AssertionError, match="it is not on the screen any more"):
            app.type_into("short", "x", submit=True)
        app.refute_widget("short").assert_tool("fine.click")


def test_a_click_is_not_for_what_has_come_in_front_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def interrupted(hands: textual_hands.Hands, widget: Widget) -> None:
        await hands.app.push_screen(Trap())
        await hands.quiet()

    monkeypatch.setattr(textual_hands.Hands, "_awake", interrupted)
    with AppView(Vanishing) as app:
        with pytest.raises(AssertionError, match="it is not on the screen any more"):
            app.click("fine")
        app.until_screen_contains("Erase")
        assert app.structure()[0]["label"] == "calm"
