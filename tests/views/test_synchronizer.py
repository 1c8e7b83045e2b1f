"""`synchronizer`: a server in step with a view, on virtual time."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping

import pytest

from raxol_mcp import ConfigurationError, ConnectionFacts, Server, allow, allow_all, deny
from raxol_mcp.server.authorizer import AuthorizationContext
from raxol_mcp.server.definitions import Kind
from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.views.synchronizer import Synchronizer
from raxol_mcp.views.tree import Node
from raxol_mcp.views.walker import Action, DerivedTool
from raxol_mcp.wire.meta import EraName
from tests.acceptance.world import (
    FORMS,
    Client,
    Counted,
    Json,
    at,
    code,
    decides,
    denial,
    denied,
    failed,
    in_both_eras,
    names,
    passes,
    settled,
    text,
    tool,
    wire,
)
from tests.views.screens import Offers, Screen, box, button, field

CHANGED = "notifications/tools/list_changed"
WIPE = Action(name="wipe", description="Wipe", destructive=True)


def live(server: Server, screen: Screen, session: str = "s", **options: object) -> Synchronizer:
    """Make a synchronizer of a screen and start it."""
    made = Synchronizer(
        server,
        session=session,
        providers=screen.providers,
        snapshot=screen,
        **options,  # type: ignore[arg-type]  # as they are
    )
    made.start()
    return made


def registered(server: Server) -> list[str]:
    """Return the names of all tools."""
    return [found.name for found in server.registry.tools()]


async def greeted(server: Server, **options: object) -> Client:
    """Connect a client that has heard everything so far."""
    client = Client(server, **options)  # type: ignore[arg-type]  # as they are
    await client.greet()
    await settled()
    client.pushes()
    return client


def told(client: Client) -> list[object]:
    """Return the methods of what was pushed."""
    return [push["method"] for push in client.pushes()]


# -- start and stop ---------------------------------------------------------------------------


def test_a_session_brings_its_tools_and_resources_and_takes_them_away() -> None:
    """check 101: stop removes discover_tools and the resources; risk 27: it left everything."""

    async def scenario() -> None:
        screen = Screen(button("save"), field("name"))
        async with Server() as server:
            server.registry.register(tool("static"))
            session = live(server, screen, model=lambda: {"count": 1})
            assert registered(server) == [
                *("static", "s.discover_tools"),
                *("s.save.click", "s.name.type_into", "s.name.get_value"),
            ]
            assert session.tools == ("s.save.click", "s.name.type_into", "s.name.get_value")
            assert [found.uri for found in server.registry.resources()] == [
                "raxol://session/s/widgets",
                "raxol://session/s/context",
                "raxol://session/s/model/count",
            ]
            assert all(map(server.registry.is_derived, registered(server)[1:]))
            assert server.registry.static_tools() == [server.registry.tool("static")]
            assert repr(session) == "<Synchronizer 's' 3 tools>"
            session.stop()
            session.stop()
            assert registered(server) == ["static"]
            assert server.registry.resources() == []
            assert list(session.tools) == []
            assert repr(session) == "<Synchronizer 's' stopped>"
            session.changed()
            session.sync()
            await passes(1)
            assert registered(server) == ["static"]
            assert session.derivations == 1
            session.start()
            assert registered(server)[1:] == ["s.discover_tools", *session.tools]

    run_virtual(scenario)


def test_two_sessions_do_not_touch_each_other() -> None:
    """risk 37: they collided, and stopping one took the other's discover_tools."""

    async def scenario() -> None:
        screen = Screen(button("save"))
        async with Server() as server:
            one, two = live(server, screen, "one"), live(server, screen, "two")
            client = Client(server)
            assert registered(server) == [
                *("one.discover_tools", "one.save.click"),
                *("two.discover_tools", "two.save.click"),
            ]
            one.stop()
            assert registered(server) == ["two.discover_tools", "two.save.click"]
            assert code(await client.call("one.save.click")) == -32601
            assert text(await client.call("two.save.click")) == "pressed OK"
            read = await client.result("resources/list")
            assert names(read["resources"], "uri") == [
                "raxol://session/two/widgets",
                "raxol://session/two/context",
            ]
            two.stop()

    run_virtual(scenario)


def test_only_the_server_of_the_session_is_told() -> None:
    """risk 37: list_changed went to the default server; check 101: and no other session derives."""

    async def scenario() -> None:
        screen, elsewhere = Screen(button("a")), Screen(button("b"))
        async with Server() as server, Server() as other:
            ours, theirs = live(server, screen), live(other, elsewhere)
            client, stranger = await greeted(server), await greeted(other)
            screen.nodes = ()
            ours.changed()
            await passes(1)
            assert told(client) == [CHANGED]
            assert told(stranger) == []
            assert (ours.derivations, theirs.derivations) == (2, 1)

    run_virtual(scenario)


def test_a_name_that_is_taken_is_not_taken_over() -> None:
    """ours: neither a session's nor that of a tool that somebody wrote."""

    async def scenario() -> None:
        screen = Screen(button("agent"), button("b"))
        static = Counted("static")
        async with Server() as server:
            server.registry.register(tool("agent.click", static))
            session = live(server, screen, qualified=False)
            with pytest.raises(ConfigurationError, match="taken"):
                live(server, screen, qualified=False)
            with pytest.raises(ConfigurationError, match="taken"):
                live(server, screen, qualified=True)  # its resources are
            with pytest.raises(ConfigurationError, match="runs already"):
                session.start()
            assert session.tools == ("b.click",)
            assert session.problems == (
                "agent.click: the name is taken by a tool that is not of this session",
            )
            assert text(await Client(server).call("agent.click")) == "static"
            session.sync()
            # Somebody puts a tool where one of ours is: it is theirs from then on.
            server.registry.register(tool("b.click", static))
            screen.nodes = (button("b", "another"),)
            session.sync()
            assert text(await Client(server).call("b.click")) == "static"
            server.registry.register(tool("discover_tools", static))
            session.stop()
            assert registered(server) == ["agent.click", "discover_tools", "b.click"]
            assert server.registry.is_derived("b.click") is False

    run_virtual(scenario)


def test_a_view_that_cannot_be_looked_at_starts_nothing() -> None:
    """ours: all or nothing."""

    def broken() -> Node:
        raise LookupError

    async def scenario() -> None:
        async with Server() as server:
            session = Synchronizer(server, session="s", providers={}, snapshot=broken)
            with pytest.raises(LookupError):
                session.start()
            assert registered(server) == []
            assert server.registry.resources() == []
            session.stop()

    run_virtual(scenario)


@pytest.mark.parametrize("options", [{"session": "a.b"}, {"debounce": -1}, {"debounce": 61}])
def test_options_that_cannot_be_meant_are_refused(options: dict[str, object]) -> None:
    """ours."""
    with pytest.raises(ConfigurationError):
        Synchronizer(
            Server(),
            **{"session": "s", "providers": {}, "snapshot": Screen(), **options},  # type: ignore[arg-type]  # wrong on purpose
        )


# -- time -------------------------------------------------------------------------------------


def test_a_burst_is_derived_once_and_not_later_than_the_window_after_its_first_update() -> None:
    """ours: ADR-0031: 50 ms after the first update of a burst, however long it goes on."""

    async def scenario() -> None:
        screen = Screen()
        loop = asyncio.get_running_loop()
        async with Server() as server:
            session = live(server, screen)
            at: list[float] = []
            look = screen.__call__

            def watched() -> object:
                at.append(round(loop.time() - began, 3))
                return look()

            session._snapshot = watched  # type: ignore[assignment]  # to see when it looks
            began = loop.time()
            for _ in range(24):  # every 5 ms, for 120 ms
                session.changed()
                await passes(0.005)
            await passes(1)
            assert at == [0.05, 0.1, 0.15]
            assert session.derivations == 4

    run_virtual(scenario)


def test_without_updates_nothing_is_derived() -> None:
    """ours: a view at rest costs nothing."""

    async def scenario() -> None:
        screen = Screen(button("a"))
        async with Server() as server:
            session = live(server, screen)
            await passes(3600)
            assert (screen.looks, session.derivations) == (1, 1)

    run_virtual(scenario)


def test_stop_ends_a_window_that_is_open() -> None:
    """ours: ADR-0031: cleans everything on stop."""

    async def scenario() -> None:
        screen = Screen(button("a"))
        async with Server() as server:
            session = live(server, screen)
            session.changed()
            session.stop()
            await passes(1)
            assert screen.looks == 1
            assert registered(server) == []
            session.start()
            session.changed()
            session.stop()
            session.start()
            await passes(1)
            assert screen.looks == 3

    run_virtual(scenario)


def test_deriving_at_once_ends_the_window() -> None:
    """ours: what was seen need not be looked at again."""

    async def scenario() -> None:
        screen = Screen(button("a"))
        async with Server() as server:
            session = live(server, screen)
            session.changed()
            session.sync()
            await passes(1)
            assert session.derivations == 2

    run_virtual(scenario)


def test_looking_does_not_count_as_an_update() -> None:
    """ours: an adapter whose snapshot makes the view update would never come to rest."""

    async def scenario() -> None:
        async with Server() as server:
            session: Synchronizer

            def restless() -> Node:
                session.changed()
                return button("a")

            session = Synchronizer(
                server, session="s", providers=Screen().providers, snapshot=restless
            )
            session.start()
            session.changed()
            await passes(60)
            assert session.derivations == 2

    run_virtual(scenario)


def test_a_view_that_fails_leaves_the_tools_as_they_were(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """K09: the next update may work; and the log has why."""

    async def scenario() -> None:
        screen = Screen(button("a"))
        async with Server() as server:
            session = live(server, screen)
            screen.nodes = 5  # type: ignore[assignment]  # no nodes at all
            session.changed()
            with caplog.at_level(logging.ERROR, "raxol_mcp.views"):
                await passes(1)
            assert session.tools == ("s.a.click",)
            screen.nodes = (button("b"),)
            session.changed()
            await passes(1)
            assert session.tools == ("s.b.click",)

    run_virtual(scenario)
    assert "its tools stay as they were" in caplog.text


def test_ten_thousand_updates_a_minute_cost_a_derivation_for_each_window() -> None:
    """ADR-0031: one for each window with updates; only what changed is registered."""

    async def scenario() -> None:
        buttons = [button(f"b{at}", "label") for at in range(500)]
        screen = Screen(*buttons)
        async with Server() as server:
            session = live(server, screen)
            client = await greeted(server)
            assert (session.derivations, session.registered) == (1, 500)
            loop = asyncio.get_running_loop()
            began, windows, closes = loop.time(), 0, -1.0
            changes, heard = 0, list[object]()
            for step in range(10_000):
                now = round(loop.time() - began, 6)
                if now >= closes:  # the first update of a burst opens the next window
                    windows, closes = windows + 1, round(now + 0.05, 6)
                if step % 100 == 0:
                    changes += 1
                    buttons[step % 500] = button(f"b{step % 500}", f"label {step}")
                    screen.nodes = tuple(buttons)
                session.changed()
                await passes(0.006)
                heard += told(client)
            await passes(1)
            assert windows == 1_112  # of nine updates each: 54 ms
            assert session.derivations == 1 + windows
            assert session.registered == 500 + changes
            assert session.unregistered == 0
            assert heard + told(client) == [CHANGED] * changes

    run_virtual(scenario)


# -- what changed -----------------------------------------------------------------------------


def test_only_what_changed_is_registered_again() -> None:
    """risk 36: by definition and not by name alone."""

    async def scenario() -> None:
        screen = Screen(button("a", "one"), button("b", "two"), field("c"))
        async with Server() as server:
            session = live(server, screen)
            client = await greeted(server)
            before = {found.name: found for found in server.registry.tools()}
            screen.nodes = (button("a", "uno"), button("b", "two"), field("c", "typed"))
            session.sync()
            await settled()
            after = {found.name: found for found in server.registry.tools()}
            assert {name for name in after if after[name] is not before[name]} == {"s.a.click"}
            assert after["s.a.click"].description == "Press uno"
            assert (session.registered, session.unregistered) == (5, 0)
            assert told(client) == [CHANGED]
            screen.nodes = (button("a", "uno"), button("d", "two"))
            session.sync()
            await settled()
            assert (session.registered, session.unregistered) == (6, 3)
            assert told(client) == [CHANGED]
            session.sync()
            await settled()
            assert told(client) == []
            assert (session.registered, session.unregistered) == (6, 3)

    run_virtual(scenario)


SAME = Action(name="go", description="Go")


@pytest.mark.parametrize(
    ("before", "after", "again"),
    [
        (SAME, SAME, False),
        (SAME, Action(name="go", description="Go"), False),
        (SAME, Action(name="go", description="Come"), True),
        (SAME, Action(name="go", description="Go", read_only=True), True),
        (SAME, Action(name="go", description="Go", destructive=True), True),
        (
            Action(name="go", description="Go", input_schema={"type": "object", "default": 1}),
            Action(name="go", description="Go", input_schema={"type": "object", "default": True}),
            True,
        ),
    ],
)
def test_a_definition_is_another_when_anything_in_it_is(
    before: Action, after: Action, again: bool
) -> None:
    """ours: ADR-0031: schema, description, annotations; K07: 1 and true are not the same."""

    async def scenario() -> None:
        screen = Screen(button("a", provider=Offers(before)))
        async with Server() as server:
            session = live(server, screen)
            screen.nodes = (button("a", provider=Offers(after)),)
            session.sync()
            assert session.registered == 1 + again

    run_virtual(scenario)


def test_a_mark_of_the_app_changes_the_tool() -> None:
    """ours: what has become sensitive must be asked about from then on."""

    async def scenario() -> None:
        offers = Offers(SAME)
        screen = Screen(button("a", provider=offers))
        async with Server(authorizer=allow_all()) as server:
            session = live(server, screen)
            screen.nodes = (button("a", provider=offers, sensitive=True),)
            client = Client(server)
            assert failed(await client.call("s.a.go")).startswith("'a' has changed and is")
            await passes(0.05)  # the call itself has opened a window
            await settled()
            assert session.registered == 2
            assert denial(await client.call("s.a.go"))["decision"] == "ask"

    run_virtual(scenario)


def test_a_definition_that_cannot_be_served_costs_nobody_else_their_tools(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """K09, and it is said once, not with every update."""
    bad = Action(name="bad", description="", input_schema={"type": "array"})
    odd = Action(name="odd", description="?", input_schema={"type": "object", "x": object()})

    async def scenario() -> None:
        screen = Screen(button("a", provider=Offers(bad, odd, SAME)), button("b"))
        async with Server() as server:
            session = live(server, screen)
            assert list(session.tools) == ["s.a.go", "s.b.click"]
            assert len(session.problems) == 2
            for _ in range(5):
                session.sync()
            assert session.registered == 2
            assert len(session.problems) == 2
            # What was well and is not any more is not there any more.
            screen.nodes = (button("a", provider=Offers(bad, odd)), button("b", provider=Offers()))
            session.sync()
            assert list(session.tools) == []
            good = Action(name="bad", description="Better")
            screen.nodes = (button("a", provider=Offers(good)),)
            session.sync()
            assert list(session.tools) == ["s.a.bad"]
            screen.nodes = (button("a", provider=Offers(bad)),)
            session.sync()
            assert list(session.tools) == []
            assert registered(server) == ["s.discover_tools"]

    with caplog.at_level(logging.WARNING, "raxol_mcp.views"):
        run_virtual(scenario)
    assert caplog.text.count("s.a.odd") <= 2


# -- calls ------------------------------------------------------------------------------------


@in_both_eras
def test_a_call_acts_on_the_view_as_it_is_at_that_moment(era: EraName) -> None:
    """risk 36: get_value was stale, because a callback kept the node."""

    async def scenario() -> None:
        screen = Screen(field("name", "Ada"), button("go"))
        async with Server() as server:
            session = live(server, screen)
            client = Client(server, era=era)
            assert text(await client.call("s.name.get_value")) == "Ada"
            screen.nodes = (box(field("name", "Grace")), button("go", "Go on"))
            assert text(await client.call("s.name.get_value")) == "Grace"
            assert text(await client.call("s.go.click")) == "pressed Go on"
            assert (
                at(await client.call("s.name.type_into", {"text": "x"}), "result", "content") == []
            )
            assert screen.done == [("go", "click"), ("name", "type_into", "x")]
            assert failed(await client.call("s.name.type_into", {"text": "no"})) == "Not that."
            assert "text" in failed(await client.call("s.name.type_into"))
            assert session.derivations == 1

    run_virtual(scenario)


def test_a_call_of_what_is_gone_or_cannot_be_done_now_says_so() -> None:
    """ours: ADR-0031: within the window a tool may be listed whose node is not there any more."""

    async def scenario() -> None:
        screen = Screen(button("a"))
        async with Server() as server:
            session = live(server, screen)
            client = Client(server)

            async def said(*nodes: Node) -> str:
                screen.nodes = nodes
                return failed(await client.call("s.a.click"))

            gone = "'a' is not in the view any more. List the tools again."
            assert await said() == gone
            assert await said(button("a", hidden=True)) == gone
            disabled = "'a' is disabled now, or something is in front of it."
            assert await said(button("a", disabled=True)) == disabled
            assert await said(box(button("a"), covered=True)) == disabled
            withdrawn = "'a' does not offer 'click' any more. List the tools again."
            assert await said(button("a", excluded=True)) == withdrawn
            assert await said(button("a", provider=Offers())) == withdrawn
            assert await said(Node("chart", "a")) == withdrawn
            assert screen.done == []
            assert session.derivations == 1

    run_virtual(scenario)


def test_no_expected_failure_opens_the_circuit() -> None:
    """risk 19: a node that is gone is an answer and not a fault."""

    async def scenario() -> None:
        screen = Screen(button("a"))
        async with Server() as server:
            live(server, screen)
            client = Client(server)
            screen.nodes = ()
            for _ in range(10):
                assert "not in the view" in failed(await client.call("s.a.click"))
            screen.nodes = (button("a"),)
            assert text(await client.call("s.a.click")) == "pressed OK"

    run_virtual(scenario)


def test_a_call_that_waits_while_its_session_stops_is_told() -> None:
    """risk 27: it acted on an app that was not there any more."""

    async def scenario() -> None:
        screen = Screen(button("a", sensitive=True))
        async with Server(authorizer=allow_all()) as server:
            session = live(server, screen)
            stale = server.registry.tool("s.a.click")
            assert stale is not None
            session.stop()
            server.registry.register(stale, derived=True)  # as a call that holds it would
            client = await greeted(server, capabilities=FORMS)
            handle = client.start("s.a.click")
            await settled()
            answer: Json = {"action": "accept", "content": {"approve": True}}
            await client.handle({"jsonrpc": "2.0", "id": client.prompt()["id"], "result": answer})
            assert failed(wire(await handle)) == "The session 's' has stopped."
            assert screen.done == []

    run_virtual(scenario)


def test_every_call_is_told_to_who_keeps_the_time() -> None:
    """ours: ADR-0031: idle expiry."""

    async def scenario() -> None:
        used: list[int] = []
        async with Server() as server:
            live(server, Screen(button("a")), before=lambda: used.append(1))
            assert text(await Client(server).call("s.a.click")) == "pressed OK"
            assert used == [1]

    run_virtual(scenario)


# -- who may, and who is asked ----------------------------------------------------------------


def test_annotations_are_kept() -> None:
    """risk 24: a registry that drops them blinds the guard."""

    async def scenario() -> None:
        look = Action(name="look", description="Look", read_only=True)
        screen = Screen(button("a", provider=Offers(look, SAME, WIPE), sensitive=True))
        async with Server() as server:
            live(server, screen)
            listed = (await Client(server).result("tools/list"))["tools"]
            assert isinstance(listed, list)
            assert {entry["name"]: entry["annotations"] for entry in listed[1:]} == {
                "s.a.look": {"readOnlyHint": True},
                "s.a.go": {"readOnlyHint": False, "sensitive": True},
                "s.a.wipe": {"readOnlyHint": False, "destructiveHint": True, "sensitive": True},
            }

    run_virtual(scenario)


def test_a_long_label_does_not_make_a_long_list() -> None:
    """docs/limits.md: what is on a screen is somebody's text."""

    async def scenario() -> None:
        async with Server() as server:
            live(server, Screen(button("a", "x" * 1_000_000), button("b", "y" * 994)))
            a, b = (server.registry.tool(f"s.{id}.click") for id in "ab")
            assert a is not None
            assert a.description.endswith("x... and 999006 more characters")
            assert len(a.description) < 1_050
            assert b is not None
            assert b.description == f"Press {'y' * 994}"

    run_virtual(scenario)


def test_a_sensitive_tool_keeps_no_server_from_starting_but_is_not_run_unguarded() -> None:
    """check 44: derived; the server starts and the call is denied."""

    async def scenario() -> None:
        screen = Screen(button("a", provider=Offers(WIPE)))
        server = Server()
        live(server, screen)
        assert server.refusals() == []
        async with server:
            reply = await Client(server).call("s.a.wipe")
            assert denial(reply) == denied("s.a.wipe", "sensitive_tool_unguarded")

    run_virtual(scenario)


def test_a_sensitive_action_is_asked_about() -> None:
    """ours: ADR-0031: mcp_sensitive."""

    async def scenario() -> None:
        screen = Screen(button("a", "Wipe", sensitive=True))
        async with Server(authorizer=allow_all()) as server:
            live(server, screen)
            client = await greeted(server, capabilities=FORMS)
            handle = client.start("s.a.click")
            await settled()
            prompt = client.prompt()
            message = "s.a.click: Press Wipe\nAllow this?"
            assert at(prompt, "params", "message") == message
            assert screen.done == []
            answer: Json = {"action": "accept", "content": {"approve": True}}
            await client.handle({"jsonrpc": "2.0", "id": prompt["id"], "result": answer})
            await handle
            assert screen.done == [("a", "click")]
            nobody = Client(server, "nobody")
            reply = await nobody.call("s.a.click")
            assert denial(reply) == denied("s.a.click", message, decision="ask")

    run_virtual(scenario)


def test_what_a_human_saw_is_what_runs() -> None:
    """K17: a yes to one thing is not a yes to what has taken its place."""

    async def scenario() -> None:
        screen = Screen(button("a", "Save", sensitive=True))
        async with Server(authorizer=allow_all()) as server:
            session = live(server, screen)
            client = await greeted(server, capabilities=FORMS)
            handle = client.start("s.a.click")
            await settled()
            prompt = client.prompt()
            screen.nodes = (button("a", "Delete everything", sensitive=True),)
            session.sync()
            answer: Json = {"action": "accept", "content": {"approve": True}}
            await client.handle({"jsonrpc": "2.0", "id": prompt["id"], "result": answer})
            assert "was replaced" in failed(wire(await handle))
            # The same before the view was derived again.
            handle = client.start("s.a.click")
            await settled()
            prompt = next(push for push in client.pushes() if "id" in push)
            screen.nodes = (button("a", "Delete more", sensitive=True),)
            await client.handle({"jsonrpc": "2.0", "id": prompt["id"], "result": answer})
            assert failed(wire(await handle)).startswith("'a' has changed and is sensitive.")
            assert screen.done == []

    run_virtual(scenario)


def test_an_embedder_may_ask_in_its_own_words_or_leave_it_to_the_authorizer() -> None:
    """ours."""

    def mine(asked: DerivedTool, arguments: Mapping[str, object]) -> str:
        return f"{asked.node_id}?"

    async def scenario() -> None:
        screen = Screen(button("a", sensitive=True))
        async with Server(authorizer=allow_all()) as server:
            live(server, screen, "one", question=mine)
            live(server, screen, "two", question=None)
            client = Client(server)
            assert denial(await client.call("one.a.click"))["detail"] == "a?"
            assert text(await client.call("two.a.click")) == "pressed OK"

    run_virtual(scenario)


def test_a_session_of_somebody_is_there_for_nobody_else() -> None:
    """ours: ADR-0031: per-connection ownership, for tools and resources alike."""

    def of_ada(context: AuthorizationContext) -> bool:
        return context["principal"] == "ada"

    async def scenario() -> None:
        async with Server() as server:
            live(server, Screen(button("a")), audience=of_ada, model=lambda: {"n": 1})
            ada = Client(server, 1, facts=ConnectionFacts("pipe", "ada"))
            eve = Client(server, 2, facts=ConnectionFacts("pipe", "eve"))
            shown = names((await ada.result("tools/list"))["tools"])
            assert shown == ["s.discover_tools", "s.a.click"]
            assert len(names((await ada.result("resources/list"))["resources"])) == 3
            assert names((await eve.result("tools/list"))["tools"]) == []
            assert names((await eve.result("resources/list"))["resources"]) == []
            for name in ("s.discover_tools", "s.a.click"):
                assert code(await eve.call(name, {"query": ""})) == -32601
            for part in ("widgets", "context", "model/n"):
                params = {"uri": f"raxol://session/s/{part}"}
                assert code(await eve.ask("resources/read", params)) == -31001
                await ada.result("resources/read", params)

    run_virtual(scenario)


# -- discovery --------------------------------------------------------------------------------


async def found(client: Client, query: str, name: str = "s.discover_tools") -> list[object]:
    """Ask discover_tools."""
    told_ = json.loads(text(await client.call(name, {"query": query})))
    return names(told_["tools"])


def test_discovery_finds_by_name_and_description_what_the_caller_may_call() -> None:
    """server-behaviour §13.3; risk 35: it went around the authorizer."""

    async def scenario() -> None:
        screen = Screen(button("save", "Save it"), button("quit", "Leave"), field("name"))
        async with Server(authorizer=decides(allow(), **{"s.quit.click": deny()})) as server:
            server.registry.register(tool("static"))
            live(server, screen)
            live(server, Screen(button("save")), "other")
            client = Client(server)
            assert await found(client, "SAVE") == ["s.save.click"]
            assert await found(client, "type into") == ["s.name.type_into"]
            assert await found(client, "quit") == []
            assert await found(client, "") == [
                *("static", "s.save.click", "s.name.type_into", "s.name.get_value"),
            ]
            assert "query" in failed(await client.call("s.discover_tools"))

    run_virtual(scenario)


def test_discovery_says_that_there_is_more() -> None:
    """docs/limits.md: 100 of them."""

    async def scenario() -> None:
        async with Server() as server:
            live(server, Screen(*(button(f"b{at}") for at in range(130))), qualified=False)
            reply = await Client(server).call("discover_tools", {"query": "b1"})
            told_ = json.loads(text(reply))
            assert len(told_["tools"]) == 41
            assert "more" not in told_
            told_ = json.loads(text(await Client(server).call("discover_tools", {"query": ""})))
            assert len(told_["tools"]) == 100
            assert told_["more"] == 30

    run_virtual(scenario)


def test_the_registry_may_lose_a_tool_without_the_session_failing() -> None:
    """server-behaviour §13.2: stop tolerates what is not there any more."""

    async def scenario() -> None:
        async with Server() as server:
            session = live(server, Screen(button("a"), button("b")))
            server.registry.unregister(Kind.TOOLS, "s.a.click", "s.discover_tools")
            session.stop()
            assert registered(server) == []
            assert session.unregistered == 1
            assert server.registry.resources() == []

    run_virtual(scenario)
