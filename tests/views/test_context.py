"""`context`: the resources of a session."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping

import pytest

from raxol_mcp import Server, allow, deny, nonblocking
from raxol_mcp.server.authorizer import AuthorizationContext, Decision
from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.views.context import MAX_KEY, MAX_MODEL_VALUES
from raxol_mcp.views.synchronizer import Synchronizer
from raxol_mcp.views.walker import Action
from raxol_mcp.wire.meta import EraName
from tests.acceptance.world import Client, at, code, decides, in_both_eras, names, settled, tool
from tests.views.screens import Offers, Screen, button, field

BASE = "raxol://session/s"


class Model:
    """Values of an app's own."""

    def __init__(self, **values: object) -> None:
        self.values: dict[str, object] = values
        self.fails = False

    def __call__(self) -> Mapping[str, object]:
        if self.fails:
            raise LookupError("the app is broken")
        return self.values


def live(server: Server, screen: Screen, model: Model | None = None) -> Synchronizer:
    """Make a synchronizer of a screen and start it."""
    made = Synchronizer(
        server, session="s", providers=screen.providers, snapshot=screen, model=model
    )
    made.start()
    return made


async def read(client: Client, part: str) -> object:
    """Read a resource of the session as JSON."""
    contents = await client.result("resources/read", {"uri": f"{BASE}/{part}"})
    assert at(contents, "contents", 0, "mimeType") == "application/json"
    return json.loads(str(at(contents, "contents", 0, "text")))


async def uris(client: Client) -> list[object]:
    """List the resources that there are, without their base."""
    found = names((await client.result("resources/list"))["resources"], "uri")
    return [str(uri).removeprefix(f"{BASE}/") for uri in found]


@in_both_eras
def test_widgets_are_the_screenshot_of_that_moment(era: EraName) -> None:
    """server-behaviour §13.2."""

    async def scenario() -> None:
        screen = Screen(button("a"))
        async with Server() as server:
            live(server, screen)
            client = Client(server, era=era)
            assert await read(client, "widgets") == [{"type": "button", "id": "a", "label": "OK"}]
            screen.nodes = (field("b", "now"),)
            assert await read(client, "widgets") == [{"type": "input", "id": "b", "value": "now"}]

    run_virtual(scenario)


def test_the_context_is_all_in_one() -> None:
    """server-behaviour §13.5."""

    async def scenario() -> None:
        screen = Screen(field("b", "now", focused=True, hover=True), button("a"))
        async with Server() as server:
            server.registry.register(tool("static"))
            live(server, screen, Model(count=3, who=None))
            assert await read(Client(server), "context") == {
                "session": {"id": "s"},
                "model": {"count": 3, "who": None},
                "focus": {"focused": "b", "hover": "b"},
                "widgets": [
                    {"type": "input", "id": "b", "value": "now", "focused": True, "hover": True},
                    {"type": "button", "id": "a", "label": "OK"},
                ],
                "tools": [
                    {"name": "s.b.type_into", "description": "Type into the field"},
                    {"name": "s.b.get_value", "description": "Read the field"},
                    {"name": "s.a.click", "description": "Press OK"},
                ],
            }

    run_virtual(scenario)


def test_the_context_is_no_way_around_the_authorizers() -> None:
    """risk 35: every part is what its reader may read and call by itself."""

    @nonblocking
    def reads(
        method: str, arguments: Mapping[str, object], context: AuthorizationContext
    ) -> Decision:
        hidden = (f"{BASE}/widgets", f"{BASE}/model/secret")
        return deny() if arguments.get("uri") in hidden else allow()

    async def scenario() -> None:
        screen, model = Screen(button("a", focused=True), button("b")), Model(secret=1, open=2)
        calls = decides(allow(), **{"s.a.click": deny()})
        async with Server(authorizer=calls, read_authorizer=reads) as server:
            live(server, screen, model)
            client = Client(server)
            assert code(await client.ask("resources/read", {"uri": f"{BASE}/widgets"})) == -31001
            assert await read(client, "context") == {
                "session": {"id": "s"},
                "model": {"open": 2},
                "tools": [{"name": "s.b.click", "description": "Press OK"}],
            }

    run_virtual(scenario)


def test_each_value_of_the_model_is_a_resource() -> None:
    """server-behaviour §13.2; K07: a text, nothing and zero are values too."""

    async def scenario() -> None:
        values = {"count": 0, "name": "Ada", "nothing": None, "a/b c%": [1, {"x": True}]}
        async with Server() as server:
            model = Model(**values)
            live(server, Screen(), model)
            client = Client(server)
            assert await uris(client) == [
                *("widgets", "context"),
                *("model/count", "model/name", "model/nothing", "model/a%2Fb%20c%25"),
            ]
            for uri, value in zip((await uris(client))[2:], values.values(), strict=True):
                assert await read(client, str(uri)) == value
            model.values["count"] = 7
            assert await read(client, "model/count") == 7
            del model.values["count"]
            reply = await client.ask("resources/read", {"uri": f"{BASE}/model/count"})
            assert at(reply, "error", "message") == ("the session s has no value 'count' any more")

    run_virtual(scenario)


def test_who_subscribed_hears_of_what_changed_and_of_nothing_else() -> None:
    """ours: ADR-0031: resources for the tree, the context and the model."""

    async def scenario() -> None:
        screen, model = Screen(button("a")), Model(count=1, name="Ada")
        async with Server() as server:
            session = live(server, screen, model)
            client, other = Client(server), Client(server, "other")
            await client.greet()
            for uri in await uris(client):
                await client.result("resources/subscribe", {"uri": f"{BASE}/{uri}"})
            await settled()
            client.pushes()
            other.pushes()

            async def heard() -> list[object]:
                session.sync()
                await settled()
                return [
                    str(at(push, "params", "uri")).removeprefix(f"{BASE}/")
                    if "params" in push and at(push, "params")
                    else push["method"]
                    for push in client.pushes()
                ]

            assert await heard() == []
            screen.nodes = (button("a", "on", focused=True),)
            assert await heard() == ["widgets", "context", "notifications/tools/list_changed"]
            model.values["count"] = 2
            assert await heard() == ["model/count", "context"]
            model.values = {"count": 2, "new": 1}
            resources = "notifications/resources/list_changed"
            assert await heard() == ["model/name", "context", resources]
            assert await uris(client) == ["widgets", "context", "model/count", "model/new"]
            assert [push["method"] for push in other.pushes()] == [
                "notifications/tools/list_changed",
                resources,
            ]

    run_virtual(scenario)


def test_the_context_is_another_when_the_tools_are() -> None:
    """ours: a provider may change its mind about a view that is at rest."""

    async def scenario() -> None:
        bad = Action(name="bad", description="")
        offers = Offers(Action(name="go", description="Go"), bad)
        async with Server() as server:
            session = live(server, Screen(button("a", provider=offers)))
            client = Client(server)
            await client.greet()
            for part in ("widgets", "context"):
                await client.result("resources/subscribe", {"uri": f"{BASE}/{part}"})
            await settled()
            client.pushes()

            async def heard() -> list[object]:
                session.sync()
                await settled()
                return [push.get("params") for push in client.pushes()]

            assert await heard() == []  # what cannot be served changes nothing, again and again
            assert await heard() == []
            offers.given = (Action(name="go", description="Go on"), bad)
            assert await heard() == [{"uri": f"{BASE}/context"}, None]
            offers.given = ()
            assert await heard() == [{"uri": f"{BASE}/context"}, None]

    run_virtual(scenario)


def test_a_model_that_fails_stays_as_it_was(caplog: pytest.LogCaptureFixture) -> None:
    """server-behaviour §13.2: a failing projection is logged and skipped."""

    async def scenario() -> None:
        screen, model = Screen(button("a")), Model(count=1)
        async with Server() as server:
            session = live(server, screen, model)
            model.fails = True
            screen.nodes = (button("b"),)
            session.sync()
            assert session.tools == ("s.b.click",)
            client = Client(server)
            assert await uris(client) == ["widgets", "context", "model/count"]
            reply = await client.ask("resources/read", {"uri": f"{BASE}/model/count"})
            assert "broken" not in str(reply)
            assert code(reply) == -32603

    with caplog.at_level(logging.ERROR, "raxol_mcp.views"):
        run_virtual(scenario)
    assert "it stays as it was" in caplog.text


def test_values_that_cannot_be_shown_are_left_out_and_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """K09; docs/limits.md: and there is an end to them."""

    async def scenario() -> None:
        model = Model(good=1, odd=object(), nan=float("nan"))
        model.values |= {"": 1, "k" * (MAX_KEY + 1): 1, "\ud800": 1, "last": 2}
        async with Server() as server:
            session = live(server, Screen(), model)
            client = Client(server)
            for _ in range(3):
                session.sync()
            assert await uris(client) == ["widgets", "context", "model/good", "model/last"]
            context = await read(client, "context")
            assert at(context, "model") == {"good": 1, "last": 2}
            model.values = {f"k{at}": at for at in range(MAX_MODEL_VALUES + 10)}
            session.sync()
            assert len(await uris(client)) == 2 + 98  # the first page
            assert len(server.registry.resources()) == 2 + MAX_MODEL_VALUES
            session.stop()
            assert server.registry.resources() == []

    with caplog.at_level(logging.ERROR, "raxol_mcp.views"):
        run_virtual(scenario)
    assert caplog.text.count("'odd'") == 1
    assert caplog.text.count("values are shown") == 1
