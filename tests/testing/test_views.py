"""The harness: what it asserts fails when it is not so, and says what is."""

import pytest

from raxol_mcp.testing.views import AppView
from tests.views.textual_apps import Controls, Scenes


def test_everything_chains() -> None:
    with AppView(Controls) as app:
        assert app.click("save").toggle("agree").select("size", "Large").press("tab") is app
        assert app.said.startswith("pressed 1 key(s)")


def test_what_is_not_there_is_told_with_what_is() -> None:
    with AppView(Scenes) as app:
        with pytest.raises(AssertionError, match=r"no tool 's1.nothing.click'; there is"):
            app.click("nothing")
        with pytest.raises(AssertionError, match="no widget 'nothing'; there is mood"):
            app.widget("nothing")
        with pytest.raises(AssertionError, match=r"no tool 'nothing.click'; there is same.click"):
            app.assert_tool("nothing.click")


def test_assertions_fail_when_it_is_not_so() -> None:
    with AppView(Scenes) as app:
        with pytest.raises(AssertionError, match="mood: content is 'calm', not 'wild'"):
            app.assert_widget("mood", content="wild")
        with pytest.raises(AssertionError, match="mood: is "):
            app.assert_widget("mood", lambda widget: False)
        with pytest.raises(AssertionError, match="there is a widget 'mood'"):
            app.refute_widget("mood")
        with pytest.raises(AssertionError, match=r"there is a tool 'hide.click'"):
            app.refute_tool("hide.click")
        with pytest.raises(AssertionError, match="tools: same"):
            app.assert_tool_count(0)
        with pytest.raises(AssertionError, match="'wild' is not on the screen"):
            app.assert_screen_contains("wild")
        with pytest.raises(AssertionError, match="'calm' is on the screen"):
            app.refute_screen_contains("calm")
        with pytest.raises(AssertionError, match="'wild' is not on the screen"):
            app.until_screen_contains("wild", within=0.1)


def test_assertions_hold_when_it_is_so() -> None:
    with AppView(Scenes) as app:
        app.assert_widget("mood", lambda widget: widget["content"] == "calm", type="Label")
        app.refute_widget("nothing").assert_tool("hide.click").refute_tool("private.click")
        app.assert_tool_count(len(app.tools())).assert_screen_contains("calm")
        app.refute_screen_contains("wild").until_screen_contains("calm")


def test_the_order_on_the_screen_counts() -> None:
    with AppView(Scenes) as app:
        app.assert_screen_matches([{"id": "mood"}, {"type": "Button", "label": "Hide me"}])
        with pytest.raises(AssertionError, match="not in this order"):
            app.assert_screen_matches([{"label": "Hide me"}, {"id": "mood"}])


def test_an_app_that_does_not_start_fails_the_test() -> None:
    def broken() -> Scenes:
        raise RuntimeError("no")

    with pytest.raises(AssertionError, match="the app did not start"):
        AppView(broken)


def test_closing_again_does_nothing() -> None:
    app = AppView(Scenes)
    app.close()
    app.close()
