"""The embedding interface: handle_message, request, cancel, subscribe, and connections."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from types import SimpleNamespace

import pytest

from raxol_mcp import (
    ConnectionFacts,
    Context,
    Limits,
    MemoryTransport,
    Server,
    TimedOut,
    allow,
    ask,
)
from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.wire.jsonrpc import Invalid, Notification, Request, Response, decode
from raxol_mcp.wire.meta import EraName
from tests.acceptance.world import (
    FORMS,
    YES,
    Client,
    Counted,
    Held,
    Json,
    asks,
    at,
    code,
    decides,
    decoded,
    denial,
    denied,
    in_both_eras,
    passes,
    question,
    settled,
    text,
    tool,
    wire,
)
from tests.promises import promise


def asking(callback: Counted | Held | None = None) -> Server:
    """Make a server that asks about its tool."""
    server = Server(authorizer=asks())
    server.registry.register(tool("act", callback))
    return server


# Messages and replies


@promise("handle.reply", "request.one_reply")
def test_every_message_gets_exactly_one_reply() -> None:
    """specification: handle_message, request: None for notifications and responses."""
    messages: list[tuple[bytes, object]] = [
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', 1),
        (b'{"jsonrpc":"2.0","id":"a","method":"no/such"}', "a"),
        (b'{"jsonrpc":"2.0","method":"notifications/initialized"}', None),
        (b'{"jsonrpc":"2.0","method":"no/such"}', None),
        (b'{"jsonrpc":"2.0","id":5,"result":{}}', None),
        (b'{"jsonrpc":"2.0","id":5,"error":{"code":1,"message":"x"}}', None),
        (b'{"jsonrpc":"2.0","method":5}', None),
        (b"   ", None),
    ]

    async def scenario() -> None:
        server = Server()
        client = Client(server)
        for line, id in messages:
            for reply in (
                wire(await server.handle_message(decode(line))),
                wire(await server.request(decode(line))),
            ):
                assert (None if reply is None else reply["id"]) == id, line
        for line in (b"{", b"[]", b"5", b'{"jsonrpc":"2.0","id":null,"method":"ping"}'):
            refused = wire(await server.handle_message(decode(line)))
            assert refused is not None
            assert refused["id"] is None
        assert client.pushes() == [], "what has a reply is not pushed as well"

    run_virtual(scenario)


@promise("request.in_order", "request.no_waiting")
def test_messages_of_one_caller_arrive_in_order() -> None:
    """specification: request: what is answered inline keeps its order, workers end when they do."""

    async def scenario() -> None:
        held = Held()
        server = Server()
        server.registry.register(tool("wait", held))
        client = Client(server)
        ended: list[object] = []
        slow = client.start("wait", id="slow")
        handles = [client.send("ping", id=number) for number in range(5)]
        for handle in (slow, *handles):
            handle.future.add_done_callback(
                lambda future: ended.append(at(wire(future.result()), "id"))
            )
        assert [handle.done() for handle in handles] == [True] * 5, "at once"
        await settled()
        held.let_go()
        await slow
        await settled()
        assert ended == [0, 1, 2, 3, 4, "slow"]

    run_virtual(scenario)


@promise("request.in_order")
def test_a_session_opened_and_used_in_one_turn_is_open() -> None:
    """specification: request: `initialize` before a call that depends on it."""

    async def scenario() -> None:
        server = asking()
        client = Client(server, capabilities=FORMS)
        client.send(
            "initialize", {"protocolVersion": "2025-11-25", "capabilities": FORMS, "clientInfo": {}}
        )
        handle = client.start("act")
        await settled()
        assert not handle.done()
        assert client.prompt() is not None

    run_virtual(scenario)


@promise("request.decoded_only", "handle.decoded_only")
@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "act"}},
        {"id": 1, "method": "ping"},
    ],
)
def test_what_only_looks_like_a_decoded_request_does_not_run(message: Json) -> None:
    """specification: request: -32600; the checks of `decode` cannot be gone around."""

    async def scenario() -> None:
        callback = Counted()
        server = Server()
        server.registry.register(tool("act", callback))
        assert code(wire(await server.request(message))) == -32600
        assert code(wire(await server.handle_message(message, "a"))) == -32600
        assert callback.runs == 0
        reply = await server.handle_message(SimpleNamespace(method="ping", id=1, params=None))
        assert reply is None

    run_virtual(scenario)


def test_messages_can_be_made_instead_of_decoded() -> None:
    """ours: the classes of a decoded message are public to embedders."""

    async def scenario() -> None:
        server = Server()
        reply = await server.handle_message(Request("x", "ping", None))
        assert isinstance(reply, Response)
        assert await server.handle_message(Notification("notifications/initialized", None)) is None
        assert isinstance(decoded({"id": 1}), Invalid)

    run_virtual(scenario)


@in_both_eras
def test_a_handle_can_be_awaited_by_several_and_their_end_does_not_cancel_it(
    era: EraName,
) -> None:
    """specification: request: only `cancel` and the owner's end stop it."""

    async def scenario() -> None:
        held = Held()
        server = Server()
        server.registry.register(tool("wait", held))
        client = Client(server, era=era)
        handle = client.start("wait")

        async def waits() -> Json | None:
            return wire(await handle)

        impatient, patient = asyncio.ensure_future(waits()), asyncio.ensure_future(waits())
        await settled()
        impatient.cancel()
        await settled()
        assert held.stopped == 0
        held.let_go()
        assert text(await patient) == "done"
        assert text(wire(await handle)) == "done"

    run_virtual(scenario)


# Owners


@promise("request.owner", "isolation.owner")
@in_both_eras
def test_when_the_owner_ends_only_its_own_requests_are_cancelled(era: EraName) -> None:
    """specification: request: callers are monitored; by default the owner is the current task."""

    async def scenario() -> None:
        mine, theirs = Held(), Held()
        server = Server()
        server.registry.register(tool("mine", mine), tool("theirs", theirs))
        client, other = Client(server, "a", era=era), Client(server, "b", era=era)
        release = asyncio.Event()

        async def owner() -> None:
            client.start("theirs")
            await release.wait()

        owning = asyncio.ensure_future(owner())
        handle = other.start("mine")
        await settled()
        assert server.stats()["in_flight"] == 2
        release.set()
        await settled()
        assert (theirs.stopped, mine.stopped) == (1, 0)
        assert owning.done()
        mine.let_go()
        assert text(wire(await handle)) == "done"

    run_virtual(scenario)


@promise("request.owner")
@pytest.mark.parametrize("how", ["returns", "raises", "cancelled"])
def test_however_the_owner_ends(how: str) -> None:
    """specification: request."""

    async def scenario() -> None:
        held = Held()
        server = Server()
        server.registry.register(tool("wait", held))
        client = Client(server)
        release = asyncio.Event()

        async def owner() -> None:
            await release.wait()
            if how == "raises":
                raise ZeroDivisionError

        owning: asyncio.Task[object] = asyncio.ensure_future(owner())
        handle = client.send("tools/call", {"name": "wait"}, owner=owning)
        await settled()
        if how == "cancelled":
            owning.cancel()
        release.set()
        await asyncio.wait((owning,))
        assert await handle is None
        await settled()
        assert held.stopped == 1
        assert owning.cancelled() or owning.exception() is not None or how == "returns"

    run_virtual(scenario)


@promise("request.owner")
def test_an_owner_that_has_ended_already_leaves_nothing_running() -> None:
    """ours: a request for somebody who is gone."""

    async def scenario() -> None:
        held = Held()
        server = Server()
        server.registry.register(tool("wait", held))

        async def nothing() -> None:
            return

        owner: asyncio.Task[object] = asyncio.ensure_future(nothing())
        await owner
        handle = Client(server).send("tools/call", {"name": "wait"}, owner=owner)
        await settled()
        assert await handle is None
        assert server.stats()["in_flight"] == 0
        assert held.begun == held.stopped

    run_virtual(scenario)


def test_a_finished_request_does_not_hold_on_to_its_owner() -> None:
    """ours: a task that makes a million requests has no million callbacks."""

    async def scenario() -> None:
        server = Server()
        server.registry.register(tool("act"))
        client = Client(server)
        task = asyncio.current_task()
        assert task is not None
        added: list[object] = []
        removed: list[object] = []
        owner = SimpleNamespace(
            add_done_callback=added.append, remove_done_callback=removed.append, done=task.done
        )
        for _ in range(3):
            await client.send("tools/call", {"name": "act"}, owner=owner)  # type: ignore[arg-type]  # a stand-in
        await settled()
        assert added == removed
        assert len(added) == 3

    run_virtual(scenario)


# Connections


@promise("connection.any_value", "handle.attributed")
@pytest.mark.parametrize("connection", [0, "", ("session", 1), b"id", None, frozenset({1})])
def test_any_hashable_value_names_a_connection(connection: Hashable) -> None:
    """specification: conn_id."""

    async def scenario() -> None:
        server = asking()
        client = Client(server, connection, capabilities=FORMS)
        other = Client(server, ("other", connection), capabilities=FORMS)
        await client.greet()
        await other.greet()
        asked = await question(client, "act")
        assert other.pushes() == []
        assert text(await asked.answered(YES)) == "done"

    run_virtual(scenario)


@promise("connection.any_value")
def test_who_names_no_connection_is_on_default() -> None:
    """specification: conn_id: the implicit single connection of stdio and direct callers."""

    async def scenario() -> None:
        server = asking()
        with server.subscribe() as pushes:
            greeting: Json = {"protocolVersion": "2025-11-25", "capabilities": FORMS}
            await server.handle_message(Request(1, "initialize", greeting))
            assert await server.handle_message(Request(2, "tools/call", {"name": "act"})) is None
            prompt = wire(await pushes.next())
            assert at(prompt, "method") == "elicitation/create"
            yes = Response(str(at(prompt, "id")), YES)
            assert await server.request(yes, "default") is None
            assert text(wire(await pushes.next())) == "done"

    run_virtual(scenario)


@promise("handle.unidentified")
def test_a_connection_without_a_subscriber_leaves_nothing_behind() -> None:
    """specification: handle_message: ordinary requests are safe; ids need not be invented."""

    async def scenario() -> None:
        server = asking()
        for number in range(100):
            client = Client(server, number, subscribed=False, capabilities=FORMS)
            assert await client.result("tools/list") == {"tools": []}
            await client.result("resources/subscribe", {"uri": "mem://a"})
            assert denial(await client.call("act")) == denied("act", "May I?", decision="ask")
        assert server.stats()["connections"] == 0

    run_virtual(scenario)


def test_a_running_request_outlives_the_subscriber_of_its_connection() -> None:
    """ours: somebody else waits for its reply; what waits for the client's words is dropped."""

    async def scenario() -> None:
        held = Held()
        server = Server()
        server.registry.register(tool("wait", held))
        client = Client(server)
        handle = client.start("wait")
        waiting = asyncio.ensure_future(client.call("wait"))
        await settled()
        client.end()
        await settled()
        held.let_go()
        assert text(wire(await handle)) == "done"
        assert text(await waiting) == "done"
        assert client.pushes() == []
        assert server.stats()["connections"] == 0

    run_virtual(scenario)


def test_what_a_transport_was_asked_ends_with_its_connection() -> None:
    """MCP basic/lifecycle §Shutdown: nobody waits for it anywhere else."""

    async def scenario() -> None:
        held = Held()
        server = Server()
        server.registry.register(tool("wait", held))
        async with MemoryTransport(server) as client:
            asyncio.ensure_future(client.request("tools/call", {"name": "wait"})).cancel()
            client.send(
                {"jsonrpc": "2.0", "id": "w", "method": "tools/call", "params": {"name": "wait"}}
            )
            await settled()
            assert server.outstanding(client.connection) == 1
        await settled()
        assert held.stopped == held.begun == 1
        assert server.stats() == {**server.stats(), "connections": 0, "in_flight": 0}

    run_virtual(scenario)


def test_the_end_of_input_drops_what_waits_for_the_client_and_nothing_else() -> None:
    """ours: a pipe that says nothing more can still be written to."""

    async def scenario() -> None:
        held = Held()
        server = asking()
        server.registry.register(tool("wait", held))
        async with MemoryTransport(server) as client:
            await client.request(
                "initialize",
                {"protocolVersion": "2025-11-25", "capabilities": FORMS, "clientInfo": {}},
            )
            asked = asyncio.ensure_future(client.request("tools/call", {"name": "act"}))
            prompt = await client.receive()
            assert prompt["method"] == "elicitation/create"
            client.end_input()
            assert server.stats()["parked"] == 0
            assert server.outstanding(client.connection) == 0
            server.notify("notifications/tools/list_changed")
            pushed = [push["method"] for push in client.unread()]
            assert pushed[-1] == "notifications/tools/list_changed"
            asked.cancel()

    run_virtual(scenario)


@promise("subscribe.addressed")
@pytest.mark.parametrize("kind", ["transport", "subscription"])
def test_a_transport_that_takes_a_connection_over_keeps_it(kind: str) -> None:
    """server-behaviour §5: rebind; the end of the old one is not the end of the new one."""

    async def scenario() -> None:
        server = asking()
        old = MemoryTransport(server, connection="a")
        old.open()
        if kind == "transport":
            new = MemoryTransport(server, connection="a")
            new.open()
            await settled()
            assert old.closed is not None
            server.notify("notifications/tools/list_changed")
            assert len(new.unread()) == 1
            assert new.closed is None
            new.close()
        else:
            client = Client(server, "a")
            await settled()
            assert old.closed is not None
            server.notify("notifications/tools/list_changed")
            assert len(client.pushes()) == 1
            client.end()
        assert server.stats()["connections"] == 0

    run_virtual(scenario)


def test_a_new_subscriber_starts_with_the_defaults_of_a_new_connection() -> None:
    """server-behaviour §5: it inherits nothing: no log level, no subscription, no greeting."""

    async def scenario() -> None:
        server = Server()
        held = Held()

        @server.tool
        async def act(context: Context) -> None:
            """Log at every level."""
            context.debug("quiet")
            context.info("loud")

        server.registry.register(tool("wait", held))
        old = Client(server, "a")
        await old.greet()
        await old.result("logging/setLevel", {"level": "debug"})
        await old.result("resources/subscribe", {"uri": "mem://a"})
        waiting = old.start("wait")
        await settled()
        new = Client(server, "a")
        server.notify("notifications/resources/updated", {"uri": "mem://a"})
        assert new.pushes() == []
        await new.call("act")
        assert [at(push, "params", "data") for push in new.pushes()] == ["loud"]
        held.let_go()
        await waiting
        await new.greet()

    run_virtual(scenario)


def test_the_same_subscriber_may_have_several_connections() -> None:
    """server-behaviour §5."""

    async def scenario() -> None:
        server = Server()
        heard: list[object] = []
        with server.subscribe("a", heard.append), server.subscribe("b", heard.append):
            server.notify("notifications/tools/list_changed")
        assert len(heard) == 2

    run_virtual(scenario)


@promise("isolation.handle_timeout")
def test_a_parked_call_is_not_the_waiting_callers_any_more() -> None:
    """specification: handle_message: with a timeout, too, the parked call lives on."""

    async def scenario() -> None:
        server = asking()
        client = Client(server, capabilities=FORMS)
        await client.greet()
        assert await client.ask("tools/call", {"name": "act"}, within=1.0) is None
        await passes(10)
        await client.approve(client.prompt())
        await settled()
        assert [text(push) for push in client.pushes()] == ["done"]

    run_virtual(scenario)


def test_a_timeout_of_handle_message_that_is_not_reached_changes_nothing() -> None:
    """specification: handle_message."""

    async def scenario() -> None:
        server = Server()
        server.registry.register(tool("act"))
        client = Client(server)
        assert text(await client.ask("tools/call", {"name": "act"}, within=1.0)) == "done"
        held = Held()
        server.registry.register(tool("act", held))
        with pytest.raises(TimedOut, match=r"0\.5 seconds"):
            await client.ask("tools/call", {"name": "act"}, within=0.5)
        assert await client.result("ping") == {}

    run_virtual(scenario)


def test_facts_are_what_the_transport_says_and_default_to_unknown() -> None:
    """server-behaviour §2: the transport is declared, not guessed."""

    async def scenario() -> None:
        server = Server()
        seen: list[tuple[object, object]] = []

        @server.tool
        async def who(context: Context) -> None:
            """Tell who calls."""
            seen.append((context.transport, context.principal))

        await Client(server).call("who")
        facts = ConnectionFacts(transport="stdio", principal="alice")
        await Client(server, "b", facts=facts).call("who")
        assert seen == [("unknown", None), ("stdio", "alice")]

    run_virtual(scenario)


def test_a_subscriber_that_raises_harms_nobody_else() -> None:
    """ours: what the core decided is performed to its end, or a slot would never come back."""

    def fails(message: object) -> None:
        raise OSError("no display")

    async def main() -> None:
        held = Held()
        server = Server(authorizer=asks(), limits=Limits(max_in_flight=1))
        server.registry.register(tool("act"), tool("hold", held))
        server.guard(authorizer=decides(allow(), act=ask("?")))
        client = Client(server, "good", capabilities=FORMS)
        await client.greet()
        server.subscribe("bad", fails)
        call = client.start("act")
        await settled()
        server.receive("bad", decoded(client.message("tools/call", {"name": "hold"}, id=1)))
        await client.handle({"jsonrpc": "2.0", "id": client.prompt()["id"], "result": YES})
        assert server.stats()["approved"] == 1
        held.let_go()  # its answer raises, and the approved call takes the slot
        await settled()
        assert text(wire(await call)) == "done"
        server.notify("notifications/tools/list_changed")
        assert len(client.pushes()) == 1
        assert server.stats()["in_flight"] == 0

    run_virtual(main)
