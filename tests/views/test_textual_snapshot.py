"""What of an app is looked at, and what it is called: ids, containers, modal screens, marks."""

import asyncio
from typing import Any

from textual.app import App, ComposeResult
from textual.containers import Container
from textual.widgets import Button, Checkbox, Digits, Footer, Label, Static

from raxol_mcp.testing.views import AppView
from raxol_mcp.views.screenshot import structured
from raxol_mcp.views.textual_snapshot import take
from raxol_mcp.views.tree import walk
from tests.views.textual_apps import Scenes


def test_the_same_app_gives_the_same_ids() -> None:
    with AppView(Scenes) as one, AppView(Scenes) as other:
        assert one.tools() == other.tools()


def test_ids_that_are_not_unique_are_named_with_a_parent_and_counted() -> None:
    """Textual's ids are unique among siblings only."""
    with AppView(Scenes) as app:
        clicks = [name for name in app.tools() if "same" in name.lower()]
        assert clicks == [
            "same.click",
            "left.Button-same.click",
            "left.Button-same-2.click",
            "right.same.click",
        ]


def test_what_a_modal_screen_covers_is_not_there() -> None:
    with AppView(Scenes) as app:
        app.assert_tool("hide.click").do("keys", "ask")
        app.assert_tool("yes.click").refute_tool("hide.click").refute_widget("hide")
        app.assert_screen_matches([{"type": "Screen", "role": "dialog"}, {"content": "Really?"}])
        app.click("yes").assert_tool("hide.click").refute_tool("yes.click")


def test_what_is_hidden_is_not_there() -> None:
    with AppView(Scenes) as app:
        app.click("hide").refute_tool("hide.click").refute_widget("hide")


def test_what_is_in_something_disabled_has_no_tool() -> None:
    with AppView(Scenes) as app:
        app.refute_tool("shut_in.click").assert_widget("shut_in", disabled=True)


def test_what_the_app_excludes_has_no_tool_and_is_seen() -> None:
    with AppView(Scenes) as app:
        app.refute_tool("private.click").assert_widget("private", label="Private")


def test_the_title_of_the_app_is_that_of_the_screen() -> None:
    with AppView(Scenes) as app:
        app.assert_screen_matches([{"type": "Screen", "label": "Scenes", "role": "main"}])


class Wrapped(App[None]):
    """A button and a checkbox without ids, in as many containers as are asked for."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.depth = depth

    def compose(self) -> ComposeResult:
        inner: list[Button | Checkbox | Container] = [Button("Go"), Button("Go"), Checkbox("On")]
        for _ in range(self.depth):
            inner = [Container(*inner)]
        yield from inner


def test_containers_change_no_tool() -> None:
    """Wrapping a tree in containers changes no name."""
    with AppView(lambda: Wrapped(0)) as flat, AppView(lambda: Wrapped(5)) as deep:
        assert flat.tools() == deep.tools()
        assert flat.tools()[:2] == ["Button-go.click", "Button-go-2.click"]


class Marked(App[None]):
    """Words in Textual's markup, things that draw themselves, and something that loads."""

    def compose(self) -> ComposeResult:
        yield Label("[b]bold[/b] words", id="label")
        yield Static("plain \\[not markup]", id="static")
        yield Digits("12:30", id="digits")
        yield Button("Wait", id="wait")
        yield Footer()

    def on_mount(self) -> None:
        self.query_one("#wait").loading = True
        self.notify("Saved to [b]disk[/b]", title="Done")


def test_texts_are_read_as_they_are_seen() -> None:
    with AppView(Marked) as app:
        app.assert_widget("label", content="bold words")
        app.assert_widget("static", content="plain [not markup]")
        app.assert_widget("digits", content="12:30")
        (toast,) = [node for node in _all(app) if node["type"] == "Toast"]
        assert toast["role"] == "alert"
        assert "Saved to disk" in str(toast["content"])


def test_what_is_loading_takes_no_input() -> None:
    with AppView(Marked) as app:
        app.refute_tool("wait.click").assert_widget("wait", state="loading", disabled=True)


def _all(app: AppView) -> list[Any]:
    nodes: list[Any] = app.structure()
    found = []
    while nodes:
        node = nodes.pop(0)
        found.append(node)
        nodes += node.get("children", [])
    return found


def test_an_app_without_a_screen_shows_nothing() -> None:
    app: App[Any] = Scenes()
    snapshot = take(app)
    assert structured(snapshot.root) == [{"type": "Screen"}]
    assert snapshot.widgets == {}


def test_what_the_tools_say_is_what_the_screenshot_says() -> None:
    """Every node that has a tool is in the screenshot, and enabled there."""

    async def scene() -> None:
        app: App[Any] = Scenes()
        async with app.run_test() as pilot:
            await pilot.pause()
            snapshot = take(app)
        enabled = {visit.node.id for visit in walk(snapshot.root) if visit.enabled}
        assert {id for id in snapshot.widgets if id != "shut" and id != "shut_in"} <= enabled

    asyncio.run(scene())
