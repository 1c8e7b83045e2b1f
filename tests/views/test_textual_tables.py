"""Tables and trees: reading them, selecting in them, opening branches."""

import json
from collections.abc import Iterator

import pytest

from raxol_mcp.testing.views import AppView
from tests.views.textual_apps import Tables


@pytest.fixture
def app() -> Iterator[AppView]:
    with AppView(Tables) as opened:
        yield opened


def test_rows_are_read_by_column(app: AppView) -> None:
    read = json.loads(app.call("people.get_rows", offset=1, limit=1))
    assert read == {"rows": [{"Name": "Bob", "Age": "7"}], "offset": 1, "total": 3}


def test_a_table_is_on_the_screenshot(app: AppView) -> None:
    app.assert_widget("people", content="Name | Age\nAnn | 31\nBob | 7\nCleo | 55")


def test_a_row_is_selected(app: AppView) -> None:
    app.do("people", "select_row", row=2).assert_widget("heard", content="row 2")
    app.assert_widget("people", value=2)


def test_a_row_that_is_not_there_is_told(app: AppView) -> None:
    with pytest.raises(AssertionError, match="there are 3 rows"):
        app.do("people", "select_row", row=3)


def test_a_click_on_a_header_is_heard(app: AppView) -> None:
    app.do("people", "click_header", column="Age").assert_widget("heard", content="sorted by Age")
    app.assert_widget("people", content="Name | Age\nBob | 7\nAnn | 31\nCleo | 55")


def test_a_branch_is_opened_and_closed(app: AppView) -> None:
    app.assert_widget("files", content="▼ files\n  ▶ src\n    README")
    app.do("files", "expand", path=["files", "src"])
    app.assert_widget("files", content="▼ files\n  ▼ src\n      main.py\n    README")
    app.do("files", "collapse", path=["src"])
    app.assert_widget("files", content="▼ files\n  ▶ src\n    README")


def test_a_node_is_selected_by_the_labels_on_the_way(app: AppView) -> None:
    app.do("files", "expand", path=["src"]).do("files", "select_node", path=["src", "main.py"])
    app.assert_widget("heard", content="node main.py")


def test_a_closed_branch_is_told_to_be_closed(app: AppView) -> None:
    with pytest.raises(AssertionError, match="'src' is closed: expand it first"):
        app.do("files", "select_node", path=["src", "main.py"])


def test_a_leaf_cannot_be_opened(app: AppView) -> None:
    with pytest.raises(AssertionError, match="nothing in it"):
        app.do("files", "expand", path=["README"])


def test_open_nodes_are_read(app: AppView) -> None:
    read = json.loads(app.call("files.get_nodes"))
    assert read["nodes"][1:] == [
        {"path": ["files", "src"], "open": False},
        {"path": ["files", "README"], "open": None},
    ]
