"""Key bindings and the command palette as tools; keys; and what a person is asked about."""

import asyncio
import json
from typing import Any

import pytest
from textual.app import App
from textual.events import Key

from raxol_mcp.errors import ToolError
from raxol_mcp.server.authorizer import allow_all
from raxol_mcp.testing.views import AppView
from raxol_mcp.transports.memory import MemoryTransport
from raxol_mcp.views.textual import textual_server
from raxol_mcp.views.textual_keys import key_events
from tests.views.textual_apps import Guarded, Parts, Scenes, Sensitive, Shifty, Texts


def test_a_binding_is_a_tool_that_runs_it() -> None:
    with AppView(Scenes) as app:
        app.do("keys", "erase_everything").assert_widget("mood", content="erased")
        assert app.said == "ran 'Erase everything'"


def test_a_key_that_the_focused_input_takes_is_no_binding_meanwhile() -> None:
    """As for a person, who would type a letter."""

    class Both(Texts):
        BINDINGS = [("n", "note", "Note")]  # noqa: RUF012  # as Textual's users write it

        def action_note(self) -> None:
            self.query_one("#heard").update("noted")  # type: ignore[attr-defined]  # a Label

    with AppView(Both) as app:
        app.type_into("name", "Ann").refute_tool("keys.note")
        app.click("show").do("keys", "note").assert_widget("heard", content="noted")
        app.assert_widget("name", value="Ann")


def test_the_bindings_of_the_screen_on_top_are_those_that_count() -> None:
    with AppView(Scenes) as app:
        app.do("keys", "ask").refute_tool("keys.erase_everything").assert_tool("keys.no")
        app.do("keys", "no").assert_tool("keys.erase_everything")


def test_what_every_app_has_is_no_tool() -> None:
    with AppView(Scenes) as app:
        keys = [name for name in app.tools() if name.startswith("keys.")]
        expected = ["ask", "erase_everything", "crash", "print", "begin_work"]
        assert keys == [f"keys.{name}" for name in expected]


def test_commands_of_the_palette_are_found_and_run() -> None:
    with AppView(Scenes) as app:
        found = json.loads(app.call("commands.search", query=""))["commands"]
        assert {"command": "Quit", "help": "Quit the application as soon as possible"} in found
        found = json.loads(app.call("commands.search", query="quit"))["commands"]
        assert [hit["command"] for hit in found] == ["Quit"]
        app.do("commands", "run", command="Keys").assert_screen_contains("Erase everything")
        with pytest.raises(AssertionError, match="no such command"):
            app.do("commands", "run", command="quit")


def test_work_in_the_background_is_waited_for() -> None:
    with AppView(Scenes) as app:
        app.do("keys", "begin_work").assert_widget("mood", content="worked")


def test_keys_are_pressed_as_by_a_person() -> None:
    with AppView(Scenes) as app:
        app.press("a").assert_tool("yes.click").press("n").refute_tool("yes.click")
        assert app.said.startswith("pressed 1 key(s)\n")


@pytest.mark.parametrize(
    ("written", "key", "character"),
    [
        ("a", "a", "a"),
        ("A", "A", "A"),
        ("?", "question_mark", "?"),
        (" ", "space", " "),
        ("space", "space", " "),
        ("\t", "tab", "\t"),
        ("enter", "enter", "\r"),
        ("escape", "escape", "\x1b"),
        ("up", "up", None),
        ("f12", "f12", None),
        ("ctrl+s", "ctrl+s", None),
        ("shift+tab", "shift+tab", "\t"),
        ("ctrl+shift+up", "ctrl+shift+up", None),
        ("+", "plus", "+"),
        ("ä", "ä", "ä"),
    ],
)
def test_a_key_is_what_a_terminal_sends(written: str, key: str, character: str | None) -> None:
    (event,) = key_events([written])
    assert isinstance(event, Key)
    assert (event.key, event.character) == (key, character)


@pytest.mark.parametrize("written", ["", "entr", "hyperspace+a", "ctrl+", "word word"])
def test_what_is_no_key_is_refused(written: str) -> None:
    with pytest.raises(ToolError, match="is not a key"):
        key_events([written])


# -- what a person is asked about -----------------------------------------------------------------


async def _session(
    can_be_asked: bool, make_app: type[App[None]] = Scenes
) -> tuple[Any, MemoryTransport]:
    server = textual_server(make_app, authorizer=allow_all())
    await server.start()
    client = MemoryTransport(server)
    client.open()
    capabilities: dict[str, object] = {"elicitation": {}} if can_be_asked else {}
    hello: dict[str, object] = {
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities,
        "clientInfo": {"name": "test", "version": "1"},
    }
    await client.request("initialize", hello)
    await client.request("tools/call", {"name": "start_session", "arguments": {}})
    client.unread()
    return server, client


async def _text(client: MemoryTransport, name: str, **arguments: object) -> str:
    params: dict[str, object] = {"name": name, "arguments": arguments}
    answer: Any = await client.request("tools/call", params)
    return str(answer["result"]["content"][0]["text"])


@pytest.mark.parametrize(
    ("tool", "done"), [("delete.click", "deleted"), ("keys.erase_everything", "erased")]
)
def test_what_the_app_marks_is_done_when_a_person_agrees(tool: str, done: str) -> None:
    async def scene() -> None:
        server, client = await _session(can_be_asked=True)
        for action in ("decline", "accept"):
            call = asyncio.ensure_future(_text(client, f"s1.{tool}"))
            question: Any = await client.receive()
            while question["method"] != "elicitation/create":
                question = await client.receive()
            assert tool in question["params"]["message"]
            assert done not in await _text(client, "screenshot", format="json")
            given: dict[str, object] = {"action": action}
            if action == "accept":
                given["content"] = {"approve": True}
            client.send({"jsonrpc": "2.0", "id": question["id"], "result": given})
            await call
        assert done in await _text(client, "screenshot", format="json")
        client.close()
        await server.stop()

    asyncio.run(scene())


@pytest.mark.parametrize("tool", ["delete.click", "keys.erase_everything", "commands.run"])
def test_what_the_app_marks_is_not_done_where_nobody_can_be_asked(tool: str) -> None:
    async def scene() -> None:
        server, client = await _session(can_be_asked=False)
        arguments = {"command": "Quit"} if tool == "commands.run" else {}
        assert "authorization_required" in await _text(client, f"s1.{tool}", **arguments)
        assert "Quit" in await _text(client, "s1.commands.search", query="")
        client.close()
        await server.stop()

    asyncio.run(scene())


def test_keys_do_not_go_around_the_question() -> None:
    """A key that would do what a person is asked about is refused; moving away is not."""

    async def scene() -> None:
        server, client = await _session(can_be_asked=False)
        said = await _text(client, "send_keys", keys=["x"])
        assert said == "a person is asked about what 'x' does here: call its tool"
        for _ in range(20):  # tab by tab to the marked button
            said = await _text(client, "send_keys", keys=["tab"])
            focused = await _text(client, "screenshot", format="json")
            if '"id": "delete",\n' in focused.partition('"focused": true')[0][-150:]:
                break
        else:
            raise AssertionError("the button never had the focus")
        said = await _text(client, "send_keys", keys=["enter"])
        assert said == "a person is asked about what 'enter' does here: call its tool"
        assert "calm" in await _text(client, "screenshot")
        client.close()
        await server.stop()

    asyncio.run(scene())


def test_the_palette_on_the_screen_does_not_go_around_the_question() -> None:
    """It runs any command, so nothing is done in it unasked where the app marks any action."""

    async def scene() -> None:
        server, client = await _session(can_be_asked=False)
        await _text(client, "send_keys", keys=["ctrl+p"])
        said = await _text(client, "send_keys", keys=["q"])
        assert said == "a person is asked about what 'q' does here: call its tool"
        listed: Any = await client.request("tools/list")
        (typing,) = [
            tool["name"]
            for tool in listed["result"]["tools"]
            if tool["name"].endswith(".type_into")
        ]
        assert "authorization_required" in await _text(client, typing, text="quit")
        await _text(client, "send_keys", keys=["escape"])
        assert "calm" in await _text(client, "screenshot")
        client.close()
        await server.stop()

    asyncio.run(scene())


def test_a_key_that_another_binding_leaves_to_the_app_is_refused() -> None:
    """Nothing can be scrolled, so `down` falls through to the binding of the app."""
    with AppView(Guarded) as app:
        with pytest.raises(AssertionError, match="a person is asked about what 'down' does"):
            app.press("down")
        app.assert_widget("mood", content="calm")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("name.submit", {}),
        ("name.type_into", {"text": "Ann", "submit": True}),
        ("colour.select", {"option": "Blue"}),
    ],
)
def test_what_a_tool_presses_does_not_go_around_the_question(
    tool: str, arguments: dict[str, object]
) -> None:
    """`enter` is the app's before it is the widget's."""
    with AppView(Guarded) as app:
        with pytest.raises(AssertionError, match="a person is asked about what 'enter' does"):
            app.call(tool, **arguments)
        app.assert_widget("mood", content="calm")


def test_a_key_that_is_the_widget_s_own_is_pressed_for_its_tool() -> None:
    """The app has a binding for it that a person is asked about, and never gets it."""
    with AppView(Guarded) as app:
        app.toggle("shop", "Milk").assert_widget("shop", value=["Milk"])
        app.assert_widget("mood", content="calm")


@pytest.mark.parametrize(
    ("tool", "chosen"),
    [
        ("list.select", "option"),
        ("radio.select", "option"),
        ("tabs.select_tab", "tab"),
        ("panes.select_tab", "tab"),
    ],
)
def test_a_part_that_is_marked_is_not_chosen_by_the_whole(tool: str, chosen: str) -> None:
    async def scene() -> None:
        server, client = await _session(can_be_asked=False, make_app=Parts)
        said = await _text(client, f"s1.{tool}", **{chosen: "Drop"})
        assert "authorization_required" in said
        client.close()
        await server.stop()

    asyncio.run(scene())


def test_keys_do_not_choose_a_part_that_is_marked() -> None:
    with AppView(Parts) as app:
        assert app.widget("list")["focused"] is True
        with pytest.raises(AssertionError, match="a person is asked about what 'enter' does"):
            app.press("enter")


def test_where_nothing_has_the_focus_keys_go_to_a_screen_that_may_be_sensitive() -> None:
    with AppView(Sensitive) as app:
        for key in ("x", "ctrl+p"):
            with pytest.raises(AssertionError, match="a person is asked about"):
                app.press(key)
        app.assert_widget("mood", content="calm")


def test_the_palette_is_as_sensitive_as_the_screen_below_it() -> None:
    class Below(App[None]):
        def on_mount(self) -> None:
            self.screen.mcp_sensitive = True  # type: ignore[attr-defined]  # what an app says with it
            self.action_command_palette()

    with AppView(Below) as app, pytest.raises(AssertionError, match="a person is asked about"):
        app.press("q")


def test_what_has_become_sensitive_while_a_call_waited_is_not_done() -> None:
    """Three calls at once: the first takes a while, and makes the others what a person is asked."""

    async def scene() -> None:
        server, client = await _session(can_be_asked=True, make_app=Shifty)
        said = await asyncio.gather(
            *(_text(client, f"s1.{tool}") for tool in ("change.click", "other.click", "keys.do"))
        )
        assert said == [
            "clicked 'Change'",
            "other has changed and is sensitive. List the tools again.",
            "keys has changed and is sensitive. List the tools again.",
        ]
        assert "calm" in await _text(client, "screenshot")
        # What is harmless may have another label by now.
        said = await asyncio.gather(
            *(_text(client, f"s1.{tool}") for tool in ("change.click", "fine.click"))
        )
        assert said[1] == "clicked 'Fine!'"
        client.close()
        await server.stop()

    asyncio.run(scene())


def test_bindings_are_named_and_told_apart() -> None:
    class Keys(App[None]):
        BINDINGS = [  # noqa: RUF012  # as Textual's users write it
            ("a,b", "one", "Go"),
            ("c", "two", "Go"),
            ("d", "save", "Сохранить"),
            ("e", "nothing", ""),
        ]

    with AppView(Keys) as app:
        assert [name for name in app.tools() if name.startswith("keys.")] == [
            "keys.go",
            "keys.go_2",
            "keys.save",
        ]
