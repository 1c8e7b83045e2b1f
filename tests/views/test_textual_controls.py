"""Buttons, checkboxes, tabs: what their tools do to an app, and what it hears of it."""

from collections.abc import Iterator

import pytest

from raxol_mcp.testing.views import AppView
from tests.views.textual_apps import Controls


@pytest.fixture
def app() -> Iterator[AppView]:
    with AppView(Controls) as opened:
        yield opened


def test_a_click_is_heard_as_a_press(app: AppView) -> None:
    app.click("save").assert_widget("heard", content="pressed Save")
    assert app.said == "clicked 'Save'"


def test_two_clicks_in_a_row_are_two_presses(app: AppView) -> None:
    """A pressed button is deaf for 0.2 s, which no caller can know of."""
    app.click("save").click("Button-press-me").click("save")
    app.assert_widget("heard", content="pressed Save")


def test_a_button_without_an_id_is_named_for_its_label(app: AppView) -> None:
    app.click("Button-press-me").assert_widget("heard", content="pressed Press me")


def test_a_disabled_button_has_no_tool(app: AppView) -> None:
    app.refute_tool("off.click").assert_widget("off", disabled=True, label="Off")


def test_what_is_scrolled_off_is_scrolled_to(app: AppView) -> None:
    app.refute_screen_contains("Far down").click("far")
    app.assert_widget("heard", content="pressed Far down").assert_screen_contains("Far down")


def test_a_toggle_switches_over_and_to_what_is_asked_for(app: AppView) -> None:
    app.toggle("agree").assert_widget("heard", content="agree True")
    app.toggle("agree", on=True).assert_widget("agree", value=True, state="on")
    app.toggle("agree", on=False).assert_widget("heard", content="agree False")
    assert app.call("agree.get_checked") == "false"


def test_a_switch_is_switched(app: AppView) -> None:
    app.toggle("power", on=True).assert_widget("heard", content="power True")
    app.assert_widget("power", role="switch", value=True)


def test_a_radio_button_is_selected_by_its_label(app: AppView) -> None:
    app.select("size", "Large").assert_widget("heard", content="size Large")
    assert app.call("size.get_selected") == "Large"


def test_a_disabled_radio_button_cannot_be_selected(app: AppView) -> None:
    with pytest.raises(AssertionError, match="not one of"):
        app.select("size", "Huge")
    app.assert_widget("size", value="Small")


def test_what_is_in_a_collapsed_section_is_not_there(app: AppView) -> None:
    app.refute_tool("inside.click")
    app.do("more", "expand").click("inside").assert_widget("heard", content="pressed Inside")
    app.do("more", "collapse").refute_tool("inside.click")


def test_expanding_what_is_open_leaves_it_open(app: AppView) -> None:
    app.do("more", "expand").do("more", "expand").assert_widget("more", state="expanded")


def test_selecting_a_tab_shows_what_is_on_it(app: AppView) -> None:
    app.assert_tool("on_first.click").refute_tool("on_second.click")
    app.select("pages", "Second").refute_tool("on_first.click")
    app.click("on_second").assert_widget("heard", content="pressed On second")
    app.assert_widget("pages", value="Second")


def test_a_tab_that_is_not_there_is_told_with_those_that_are(app: AppView) -> None:
    with pytest.raises(AssertionError, match='not one of "First" or "Second"'):
        app.select("pages", "Third")
