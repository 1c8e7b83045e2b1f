"""Selects and lists: choosing by label, as with enter."""

from collections.abc import Iterator

import pytest

from raxol_mcp.testing.views import AppView
from tests.views.textual_apps import Lists


@pytest.fixture
def app() -> Iterator[AppView]:
    with AppView(Lists) as opened:
        yield opened


def test_an_option_of_a_select_is_chosen(app: AppView) -> None:
    app.assert_widget("number", lambda widget: "value" not in widget or widget["value"] is None)
    app.select("number", "Two").assert_widget("heard", content="number 2")
    app.assert_widget("number", value="Two", state="collapsed")


def test_options_with_the_same_label_are_counted(app: AppView) -> None:
    app.select("number", "Two #2").assert_widget("heard", content="number 22")


def test_an_option_of_a_list_is_chosen(app: AppView) -> None:
    app.select("colour", "Blue").assert_widget("heard", content="colour Blue")
    assert app.call("colour.get_options").startswith('{"options":["Red","Green","Blue"]')


def test_a_disabled_option_is_not_chosen(app: AppView) -> None:
    with pytest.raises(AssertionError, match='not one of "Red" or "Blue"'):
        app.select("colour", "Green")
    app.assert_widget("heard", content="nothing")


def test_several_are_selected_one_by_one(app: AppView) -> None:
    app.assert_widget("shop", value=["Bread"])
    app.toggle("shop", "Milk").assert_widget("heard", content="shop [1, 2]")
    app.toggle("shop", "Milk", on=True).assert_widget("shop", value=["Milk", "Bread"])
    app.toggle("shop", "Bread", on=False).assert_widget("heard", content="shop [1]")
    assert '"selected":["Milk"]' in app.call("shop.get_selected")


def test_an_item_of_a_list_view_is_chosen_by_its_text(app: AppView) -> None:
    app.select("people", "Bob").assert_widget("heard", content="people 1")


def test_what_is_in_an_item_has_tools_too(app: AppView) -> None:
    app.click("call").assert_widget("heard", content="pressed Call")
