"""Inputs, text areas, logs: typing and reading; and that a password is never read back."""

from collections.abc import Iterator

import pytest

from raxol_mcp.testing.views import AppView
from tests.views.textual_apps import Texts


@pytest.fixture
def app() -> Iterator[AppView]:
    with AppView(Texts) as opened:
        yield opened


def test_typing_puts_text_after_what_is_there(app: AppView) -> None:
    app.type_into("name", "Ann").type_into("name", " Bee").assert_widget("name", value="Ann Bee")
    app.type_into("full", " and after").assert_widget("full", value="before and after")
    assert app.call("full.get_value") == "before and after"


def test_submitting_presses_enter(app: AppView) -> None:
    app.type_into("name", "Ann", submit=True)
    app.assert_widget("heard", content="submitted name Ann")


def test_clearing_empties_it(app: AppView) -> None:
    app.clear("full").assert_widget("full", value="")


def test_typed_text_is_no_command(app: AppView) -> None:
    """Letters that are bindings, and tab, go into the input and nowhere else."""
    app.type_into("name", "q\tx").assert_widget("name", value="q\tx", focused=True)


def test_an_input_has_one_line(app: AppView) -> None:
    with pytest.raises(AssertionError, match="one line"):
        app.type_into("name", "two\nlines")


def test_an_input_takes_only_what_it_takes_from_people(app: AppView) -> None:
    app.type_into("digits", "12").assert_widget("digits", value="12")
    app.type_into("digits", "x").assert_widget("digits", value="12")


def test_a_masked_input_takes_one_character_at_a_time(app: AppView) -> None:
    app.type_into("date", "1225").assert_widget("date", value="12-25")


def test_a_password_is_typed_and_never_read_back(app: AppView) -> None:
    app.type_into("secret", "hunter2!")
    app.refute_tool("secret.get_value").assert_tool("secret.clear")
    app.assert_widget("secret", lambda widget: "value" not in widget, role="password")
    for shown in (app.screen(), app.svg(), str(app.structure())):
        assert "hunter2!" not in shown
    app.do("secret", "submit")
    assert "hunter2!" not in app.said


def test_a_password_that_the_app_shows_is_still_not_read_back(app: AppView) -> None:
    """On the screen it is then, because the app has put it there."""
    app.type_into("secret", "hunter2!").click("show")
    app.refute_tool("secret.get_value")
    app.assert_widget("secret", lambda widget: "value" not in widget)


@pytest.mark.parametrize("key", ["ctrl+c", "ctrl+x"])
def test_a_password_is_not_copied_to_be_pasted_where_it_is_seen(app: AppView, key: str) -> None:
    app.type_into("secret", "hunter2!")
    app.type_into("name", "Ann").press("shift+home", key).press("end", "ctrl+v")
    app.assert_widget("name", value="AnnAnn" if key == "ctrl+c" else "Ann")  # others are copied
    app.type_into("secret", "?")  # it has the focus
    with pytest.raises(AssertionError, match="a password is not copied"):
        app.press("shift+home", key)
    app.clear("name").press("ctrl+v").assert_widget("name", value="Ann")


def test_a_text_area_takes_lines(app: AppView) -> None:
    app.type_into("notes", "line two\n  line three")
    assert app.call("notes.get_value") == "line one\nline two\n  line three"
    app.clear("notes").assert_widget("notes", value="")


def test_a_read_only_text_area_is_only_read(app: AppView) -> None:
    app.refute_tool("fixed.type_into").refute_tool("fixed.clear")
    assert app.call("fixed.get_value") == "fixed"


def test_a_log_is_read_from_its_end_or_from_anywhere(app: AppView) -> None:
    assert (
        app.call("log.read", limit=2)
        == '{"lines":["line 298","line 299"],"offset":298,"total":300}'
    )
    assert '"lines":["line 10"]' in app.call("log.read", offset=10, limit=1)
    assert "styled [b]not[/b]" in app.call("rich.read")
