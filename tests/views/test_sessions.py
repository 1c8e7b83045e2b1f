"""Sessions: who owns them, how many there may be, how they end, and what their tools answer then.

The apps here are fakes that do as they are told; `test_textual_app` runs real ones.
"""

import asyncio
import logging
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import pytest

from raxol_mcp.core.peers import ConnectionFacts
from raxol_mcp.errors import ConfigurationError, ToolError
from raxol_mcp.server.app import Server
from raxol_mcp.server.authorizer import allow_all
from raxol_mcp.testing.virtual_loop import VirtualLoop, run_virtual
from raxol_mcp.transports.memory import MemoryTransport
from raxol_mcp.views.running import AppEnded, Picture, Seen
from raxol_mcp.views.session_tools import add_session_tools
from raxol_mcp.views.sessions import SessionHost
from raxol_mcp.views.tree import Node
from raxol_mcp.views.walker import Action


class Clicks:
    """Offers a click and counts them."""

    def __init__(self) -> None:
        self.clicked = 0

    def actions(self, node: Node) -> Sequence[Action]:
        return [Action(name="click", description="Click it.")]

    async def act(self, node: Node, action: str, arguments: Mapping[str, object]) -> object:
        self.clicked += 1
        return "clicked"


class FakeApp:
    """An app that shows one button, and ends when it is told to."""

    def __init__(
        self,
        *,
        name: str,
        size: tuple[int, int],
        seen: Callable[[Seen], None],
        ended: Callable[[BaseException | None], None],
    ) -> None:
        self.name, self.size, self.seen, self.ended = name, size, seen, ended
        self.clicks = Clicks()
        self.providers = {"Button": self.clicks}
        self.pressed: list[str] = []
        self.starts, self.stops = True, True
        self.stopped = self.gone = False

    async def start(self) -> None:
        if not self.starts:
            raise AppEnded("it ended while it was starting")
        self.seen(Seen(Node("Button", "ok", {"label": "OK"}), {"count": 0}))

    async def stop(self) -> bool:
        self.stopped = True
        if self.stops:
            self.ended(None)
            self.gone = True
        return self.stops

    async def press(self, keys: Sequence[str]) -> str:
        self.pressed += keys
        return f"pressed {len(keys)} key(s)"

    async def picture(self, form: Picture) -> str | bytes:
        return b"png" if form == "png" else f"the screen as {form}"


class World:
    """A server with sessions of fakes, and clients of it."""

    def __init__(self, **bounds: object) -> None:
        self.server = Server("fakes", authorizer=allow_all(), authorizer_source="configured")
        self.apps: list[FakeApp] = []
        self.next_starts = True
        self.next_stops = True
        self.host = SessionHost(self.server, self.launch, **bounds)  # type: ignore[arg-type]  # as the tests write them
        add_session_tools(self.host)

    def launch(self, **given: object) -> FakeApp:
        app = FakeApp(**given)  # type: ignore[arg-type]  # as the host gives them
        app.starts, app.stops = self.next_starts, self.next_stops
        self.apps.append(app)
        return app


class Client:
    """One connection; `call` gives the text of a result, or of the error."""

    def __init__(self, world: World, share: Hashable | None = None) -> None:
        facts = ConnectionFacts(transport="memory", principal=None, share=share)
        self.wire = MemoryTransport(world.server, facts=facts)
        self.wire.open()

    async def greet(self) -> "Client":
        hello: dict[str, object] = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }
        await self.wire.request("initialize", hello)
        return self

    async def call(self, name: str, **arguments: object) -> str:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        with loop.outside():  # what became of a session is asked for in a thread
            params: dict[str, object] = {"name": name, "arguments": arguments}
            answer: Any = await self.wire.request("tools/call", params)
        if "error" in answer:
            return str(answer["error"]["message"])
        return str(answer["result"]["content"][0]["text"])

    async def tools(self) -> list[str]:
        answer: Any = await self.wire.request("tools/list")
        return [tool["name"] for tool in answer["result"]["tools"]]


def ended_text(name: str, why: str) -> str:
    return (
        f"The session {name} has ended: {why}. Its tools are gone with it; call start_session "
        "for a new one, whose tools have a new name, or list_sessions."
    )


def test_starting_makes_tools_and_stopping_takes_them_away() -> None:
    async def scene() -> None:
        world = World()
        async with world.server:
            client = await Client(world).greet()
            before = await client.tools()
            assert (await client.call("start_session")).startswith("Session s1 is running.")
            assert {*await client.tools()} - {*before} == {"s1.ok.click", "s1.discover_tools"}
            assert await client.call("s1.ok.click") == "clicked"
            assert await client.call("stop_session") == "Stopped s1."
            assert await client.tools() == before
            assert world.apps[0].stopped

    run_virtual(scene)


def test_a_tool_of_a_stopped_session_says_what_became_of_it() -> None:
    async def scene() -> None:
        world = World()
        async with world.server:
            client = await Client(world).greet()
            await client.call("start_session")
            await client.call("stop_session", session="s1")
            told = ended_text("s1", "it was stopped")
            assert await client.call("s1.ok.click") == told
            assert await client.call("screenshot", session="s1") == told
            assert await client.call("s9.ok.click") == "Tool not found: s9.ok.click"

    run_virtual(scene)


def test_the_name_of_a_session_is_not_used_again() -> None:
    async def scene() -> None:
        world = World()
        async with world.server:
            client = await Client(world).greet()
            await client.call("start_session")
            await client.call("stop_session")
            assert (await client.call("start_session")).startswith("Session s2 is running.")

    run_virtual(scene)


def test_one_sees_and_reaches_only_ones_own_sessions() -> None:
    async def scene() -> None:
        world = World()
        async with world.server:
            ann, bob = await Client(world).greet(), await Client(world).greet()
            await ann.call("start_session")
            assert "s1.ok.click" in await ann.tools()
            assert "s1.ok.click" not in await bob.tools()
            assert await bob.call("s1.ok.click") == "Tool not found: s1.ok.click"
            assert await bob.call("stop_session", session="s1") == "there is no session 's1'"
            assert await bob.call("list_sessions") == '{"sessions":[]}'
            uri: dict[str, object] = {"uri": "raxol://session/s1/widgets"}
            assert "error" in await bob.wire.request("resources/read", uri)
            assert "result" in await ann.wire.request("resources/read", uri)
            assert world.apps[0].clicks.clicked == 0

    run_virtual(scene)


def test_connections_of_one_share_own_together() -> None:
    """ADR-0009: stateless requests of one principal are each a connection."""

    async def scene() -> None:
        world = World()
        async with world.server:
            first = await Client(world, share="ann").greet()
            await first.call("start_session")
            first.wire.close()
            second = await Client(world, share="ann").greet()
            assert await second.call("s1.ok.click") == "clicked"

    run_virtual(scene)


def test_a_session_ends_with_the_connection_that_owns_it() -> None:
    async def scene() -> None:
        world = World()
        async with world.server:
            client = await Client(world).greet()
            await client.call("start_session")
            client.wire.close()
            await asyncio.sleep(0)
            assert world.apps[0].stopped
            assert world.server.registry.tool("s1.ok.click") is None
            told = ended_text("s1", "who had started it went away")
            assert world.host.reply_for("s1.ok.click") == told

    run_virtual(scene)


def test_there_are_only_so_many_sessions() -> None:
    async def scene() -> None:
        world = World(max_sessions=3, max_of_one=2)
        async with world.server:
            ann, bob = await Client(world).greet(), await Client(world).greet()
            for _ in range(2):
                await ann.call("start_session")
            told = "you have 2 sessions, the most that one may have: stop one"
            assert await ann.call("start_session") == told
            assert (await bob.call("start_session")).startswith("Session s3")
            told = "all 3 sessions are in use: stop one, or try again later"
            assert await bob.call("start_session") == told
            await ann.call("stop_session", session="s1")
            assert (await bob.call("start_session")).startswith("Session s4")

    run_virtual(scene)


def test_without_a_name_the_only_session_is_meant() -> None:
    async def scene() -> None:
        world = World()
        async with world.server:
            client = await Client(world).greet()
            told = "no session is running: call start_session first"
            assert await client.call("screenshot") == told
            await client.call("start_session")
            assert await client.call("screenshot") == "the screen as text"
            await client.call("start_session")
            assert await client.call("screenshot") == "name the session: s1, s2"

    run_virtual(scene)


def test_a_session_that_is_not_used_ends_after_a_while() -> None:
    async def scene() -> None:
        world = World(idle_timeout=60.0)
        async with world.server:
            client = await Client(world).greet()
            await client.call("start_session")
            for _ in range(3):
                await asyncio.sleep(59)
                assert await client.call("s1.ok.click") == "clicked"
            await asyncio.sleep(59)
            assert await client.call("screenshot") == "the screen as text"
            await asyncio.sleep(61)
            assert world.apps[0].stopped
            told = ended_text("s1", "nobody used it for 1 minutes")
            assert await client.call("s1.ok.click") == told

    run_virtual(scene)


def test_listing_sessions_does_not_keep_them() -> None:
    async def scene() -> None:
        world = World(idle_timeout=60.0)
        async with world.server:
            client = await Client(world).greet()
            await client.call("start_session")
            await asyncio.sleep(59)
            listed = await client.call("list_sessions")
            assert listed == '{"sessions":[{"session":"s1","tools":1,"unused_for":59}]}'
            await asyncio.sleep(2)
            assert await client.call("list_sessions") == '{"sessions":[]}'

    run_virtual(scene)


@pytest.mark.parametrize(
    ("error", "why"), [(None, "its app has ended"), (RuntimeError("12345"), "its app crashed")]
)
def test_an_app_that_ends_ends_its_session_only(error: BaseException | None, why: str) -> None:
    async def scene() -> None:
        world = World()
        async with world.server:
            client = await Client(world).greet()
            await client.call("start_session")
            await client.call("start_session")
            world.apps[0].ended(error)
            assert await client.call("s1.ok.click") == ended_text("s1", why)
            assert await client.call("s2.ok.click") == "clicked"

    run_virtual(scene)


def test_an_app_that_does_not_start_leaves_nothing() -> None:
    async def scene() -> None:
        world = World(max_sessions=1)
        async with world.server:
            client = await Client(world).greet()
            world.next_starts = False
            told = "the app did not start; why is in the log of the server"
            assert await client.call("start_session") == told
            world.next_starts = True
            assert (await client.call("start_session")).startswith("Session s2")

    run_virtual(scene)


def test_an_app_that_does_not_end_keeps_its_place(caplog: pytest.LogCaptureFixture) -> None:
    """Threads cannot be killed: whoever blocks them again and again must not have all of them."""

    async def scene() -> None:
        world = World(max_sessions=1)
        async with world.server:
            client = await Client(world).greet()
            world.next_stops = False
            await client.call("start_session")
            told = "Stopped s1; its app does not end, and was left alone."
            assert await client.call("stop_session") == told
            assert "s1.ok.click" not in await client.tools()
            told = "all 1 sessions are in use: stop one, or try again later"
            assert await client.call("start_session") == told
            world.apps[0].gone = True
            assert (await client.call("start_session")).startswith("Session s2")
            world.apps[1].stops = True

    with caplog.at_level(logging.ERROR):
        run_virtual(scene)
    assert "does not end" in caplog.text


def test_what_the_app_shows_later_becomes_tools() -> None:
    async def scene() -> None:
        world = World()
        async with world.server:
            client = await Client(world).greet()
            await client.call("start_session")
            world.apps[0].seen(Seen(Node("Button", "other")))
            assert "s1.ok.click" not in await client.tools()
            assert await client.call("s1.other.click") == "clicked"

    run_virtual(scene)


def test_keys_are_pressed_and_the_screen_is_shown() -> None:
    async def scene() -> None:
        world = World()
        async with world.server:
            client = await Client(world).greet()
            await client.call("start_session")
            assert await client.call("send_keys", keys=["a", "enter"]) == "pressed 2 key(s)"
            assert world.apps[0].pressed == ["a", "enter"]
            assert await client.call("send_keys", keys=[]) == "press 1 to 1000 keys"

    run_virtual(scene)


def test_a_screenshot_comes_in_four_forms() -> None:
    async def scene() -> None:
        world = World()
        async with world.server:
            client = await Client(world).greet()
            await client.call("start_session")
            found: Any = {}
            for form in ("text", "json", "svg", "png"):
                call: Any = {"name": "screenshot", "arguments": {"format": form}}
                answer: Any = await client.wire.request("tools/call", call)
                found[form] = answer["result"]["content"][0]
            assert found["text"] == {"type": "text", "text": "the screen as text"}
            assert '"label": "OK"' in found["json"]["text"]
            assert found["svg"]["resource"] == {
                "uri": "raxol://session/s1/screenshot.svg",
                "mimeType": "image/svg+xml",
                "text": "the screen as svg",
            }
            assert found["png"] == {"type": "image", "data": "cG5n", "mimeType": "image/png"}

    run_virtual(scene)


def test_closing_ends_every_session_and_starts_none() -> None:
    async def scene() -> None:
        world = World()
        async with world.server:
            client = await Client(world).greet()
            await client.call("start_session")
            await world.host.close()
            assert world.apps[0].stopped
            assert await client.call("start_session") == "the server is stopping"
            assert await client.call("s1.ok.click") == "Tool not found: s1.ok.click"

    run_virtual(scene)


def test_ended_sessions_are_not_remembered_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raxol_mcp.views.sessions.MAX_REMEMBERED", 2)

    async def scene() -> None:
        world = World()
        async with world.server:
            client = await Client(world).greet()
            for _ in range(3):
                await client.call("start_session")
                await client.call("stop_session")
            assert world.host.reply_for("s1.x") is None
            assert world.host.reply_for("s2.x") == ended_text("s2", "it was stopped")
            assert world.host.reply_for("s3") is None

    run_virtual(scene)


@pytest.mark.parametrize(
    ("bounds", "told"),
    [
        ({"max_sessions": 0}, "at least one session"),
        ({"max_of_one": 0}, "at least one session"),
        ({"idle_timeout": 0.0}, "idle_timeout is in seconds"),
        ({"size": (5, 40)}, "a size is 10 to 1000"),
    ],
)
def test_bounds_that_cannot_be_meant_are_refused(bounds: dict[str, object], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        World(**bounds)


def test_being_owned_by_nobody_is_not_being_owned_by_all() -> None:
    """A connection that is gone has no share: it owns nothing, and nothing is its own."""

    async def scene() -> None:
        world = World()
        async with world.server:
            client = await Client(world).greet()
            await client.call("start_session")
            gone = {"connection": "nobody", "transport": "memory", "principal": None}
            owner = world.host.owner_of(gone)  # type: ignore[arg-type]  # as an authorizer gets it
            assert world.host.sessions_of(owner) == []
            with pytest.raises(ToolError, match="went away"):
                await world.host.start(owner)

    run_virtual(scene)


def test_a_principal_is_not_a_connection_of_the_same_name() -> None:
    async def scene() -> None:
        world = World()
        async with world.server:
            facts = ConnectionFacts(transport="http", principal="memory-2", share="memory-2")
            world.server.open(Ignoring(), facts, "authenticated")
            stranger = await Client(world).greet()
            stranger_again = await Client(world).greet()
            assert "memory-2" in (stranger.wire.connection, stranger_again.wire.connection)
            context = {"connection": "authenticated", "transport": "http", "principal": "memory-2"}
            owner = world.host.owner_of(context)  # type: ignore[arg-type]  # as an authorizer gets it
            await world.host.start(owner)
            for client in (stranger, stranger_again):
                assert await client.call("list_sessions") == '{"sessions":[]}'
                client.wire.close()
            assert not world.apps[0].stopped

    run_virtual(scene)


class Ignoring:
    """A sink that takes everything and does nothing."""

    def put(self, message: object, *, about: object = None, droppable: bool = False) -> None:
        """Take a message."""

    def close(self, reason: str) -> None:
        """Be closed."""
