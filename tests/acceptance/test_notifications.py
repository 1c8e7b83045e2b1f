"""What subscribers are told, and what listens of the stateless era hear."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping

import pytest

from raxol_mcp import (
    ConnectionFacts,
    Context,
    Limits,
    MemoryTransport,
    Prompt,
    Resource,
    ResourceTemplate,
    Server,
)
from raxol_mcp.server.definitions import Kind
from raxol_mcp.testing.virtual_loop import run_virtual
from tests.acceptance.world import (
    HANDSHAKE,
    SERVER_INFO,
    STATELESS,
    SUBSCRIPTION,
    Client,
    Counted,
    Json,
    at,
    code,
    outside,
    settled,
    text,
    tool,
    wire,
)
from tests.promises import promise

UPDATED = "notifications/resources/updated"
TOOLS = "notifications/tools/list_changed"
RESOURCES = "notifications/resources/list_changed"
PROMPTS = "notifications/prompts/list_changed"
ODD = "notifications/odd"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


def methods(pushes: list[Json]) -> list[object]:
    """Return what was pushed, by method."""
    return [push.get("method") for push in pushes]


# Subscribers


@promise("notifications.pushed", "notify.everybody", "subscribe.pushed")
def test_a_notification_goes_to_every_subscriber() -> None:
    """specification: notify."""

    async def scenario() -> None:
        server = Server()
        clients = [Client(server, name) for name in ("a", "b")]
        Client(server, "direct", subscribed=False)
        server.notify("notifications/custom", {"a": [1]})
        server.notify("notifications/bare")
        for client in clients:
            assert client.pushes() == [
                {"jsonrpc": "2.0", "method": "notifications/custom", "params": {"a": [1]}},
                {"jsonrpc": "2.0", "method": "notifications/bare"},
            ]

    run_virtual(scenario)


@promise("subscribe.pushed")
def test_an_update_of_a_resource_goes_to_who_subscribed_to_it() -> None:
    """ours: per connection, cleared with it; older servers had one set for everybody."""

    async def scenario() -> None:
        server = Server()
        one, other = Client(server, "a"), Client(server, "b")
        uri: Json = {"uri": "mem://a"}
        server.notify(UPDATED, uri)
        assert one.pushes() == []
        await one.result("resources/subscribe", uri)
        server.notify(UPDATED, uri)
        server.notify(UPDATED, {"uri": "mem://b"})
        server.notify(UPDATED)
        assert one.pushes() == [{"jsonrpc": "2.0", "method": UPDATED, "params": uri}]
        assert other.pushes() == []
        await other.result("resources/unsubscribe", uri)
        server.notify(UPDATED, uri)
        assert len(one.pushes()) == 1, "another's unsubscribing is its own"
        await one.result("resources/unsubscribe", uri)
        server.notify(UPDATED, uri)
        assert one.pushes() == []

    run_virtual(scenario)


@promise("subscribe.pushed")
def test_a_subscriber_that_ended_is_pushed_nothing_more() -> None:
    """specification: subscribe; server-behaviour §5: and its resources are forgotten."""

    async def scenario() -> None:
        server = Server()
        client, other = Client(server, "a"), Client(server, "b")
        await client.result("resources/subscribe", {"uri": "mem://a"})
        assert client.subscription is not None
        with client.subscription:
            server.notify(TOOLS)
        server.notify(PROMPTS)
        server.notify(UPDATED, {"uri": "mem://a"})
        assert methods(client.pushes()) == [TOOLS]
        assert methods(other.pushes()) == [TOOLS, PROMPTS]
        client.end()
        again = Client(server, "a")
        server.notify(UPDATED, {"uri": "mem://a"})
        assert again.pushes() == []

    run_virtual(scenario)


@promise("subscribe.pushed", "subscribe.addressed")
def test_a_subscriber_may_be_a_callback_or_be_waited_for() -> None:
    """ours: the sink of the embedding interface."""

    async def scenario() -> None:
        server = Server()
        delivered: list[object] = []
        with server.subscribe("a", delivered.append), server.subscribe("b") as pushes:
            server.notify(TOOLS)
            assert len(delivered) == 1
            message = await pushes.next()
            assert wire(message) == {"jsonrpc": "2.0", "method": TOOLS}
            waiting = asyncio.ensure_future(pushes.next())
            await settled()
            server.notify(PROMPTS)
            assert methods([wire(await waiting) or {}]) == [PROMPTS]
            server.notify(TOOLS)
            pushes.end()
            assert [wire(push) async for push in pushes] == [{"jsonrpc": "2.0", "method": TOOLS}]
        server.notify(TOOLS)
        assert len(delivered) == 3

    run_virtual(scenario)


def test_a_subscriber_that_does_not_keep_up_is_ended() -> None:
    """ours: 256 messages; a queue without a bound is a bug."""

    async def scenario() -> None:
        server = Server()
        client, other = Client(server, "a"), Client(server, "b")
        for _ in range(256):
            server.notify(ODD)
        assert client.why_ended() is None
        other.pushes()
        server.notify(ODD)
        await settled()
        assert client.why_ended() is not None
        assert server.stats()["connections"] == 1
        assert len(client.pushes()) == 256, "what was taken in time can still be read"
        assert len(other.pushes()) == 1

    run_virtual(scenario)


def test_a_transport_whose_client_does_not_read_is_ended() -> None:
    """ours: ADR-0014. Broadcasts do not wait for a slow reader."""

    async def scenario() -> None:
        server = Server()
        async with MemoryTransport(server, max_messages=2) as slow, MemoryTransport(server) as fast:
            for _ in range(3):
                server.notify(ODD)
            await settled()
            assert slow.closed is not None
            assert fast.closed is None
            assert len(fast.unread()) == 3
            assert server.stats()["connections"] == 1

    run_virtual(scenario)


def test_a_burst_of_changes_cuts_nobody_off() -> None:
    """ours: ADR-0014. What only hints at a change waits once, for each resource and each listen."""

    async def scenario() -> None:
        server = Server()
        async with MemoryTransport(server) as transport:
            client = Client(server, era=STATELESS)
            for id in ("x", "y"):
                wanted: Json = {"toolsListChanged": True, "resourceSubscriptions": ["mem://a"]}
                client.send("subscriptions/listen", {"notifications": wanted}, id=id)
            await settled()
            assert methods(client.pushes()) == [ACKNOWLEDGED] * 2
            for _ in range(1000):
                server.notify(TOOLS)
                server.notify(UPDATED, {"uri": "mem://a"})
            await settled()
            assert transport.closed is None
            assert methods(transport.unread()) == [TOOLS]
            pushes = client.pushes()
            assert methods(pushes) == [TOOLS, TOOLS, UPDATED, UPDATED]
            ids = [at(push, "params", "_meta", SUBSCRIPTION) for push in pushes]
            assert ids == ["x", "y", "x", "y"]

    run_virtual(scenario)


# The registry


@promise("notifications.pushed")
def test_a_change_of_what_is_offered_is_told_once_a_turn() -> None:
    """MCP: listChanged is declared, so it is told; ours: however much was registered."""

    async def scenario() -> None:
        async with Server() as server:
            client = Client(server)
            for number in range(100):
                server.registry.register(tool(f"t{number}"))
            server.registry.register(
                Resource(uri="mem://a", name="a", callback=Counted()),
                ResourceTemplate(uri_template="mem://{b}", name="b", callback=Counted()),
                Prompt(name="p", callback=Counted()),
            )
            assert client.pushes() == []
            await settled()
            assert sorted(map(str, methods(client.pushes()))) == [PROMPTS, RESOURCES, TOOLS]
            server.registry.unregister(Kind.TOOLS, "t1", "t2")
            await settled()
            assert methods(client.pushes()) == [TOOLS]
            server.registry.unregister(Kind.TOOLS, "never there")
            await settled()
            assert client.pushes() == []

    run_virtual(scenario)


def test_a_change_may_be_made_in_any_thread() -> None:
    """ours: a registry may be used from anywhere, and its server still tells."""

    async def scenario() -> None:
        async with Server() as server:
            client = Client(server)
            changing = threading.Thread(target=server.registry.register, args=(tool("t"),))
            changing.start()
            await outside(asyncio.to_thread(changing.join))
            await settled()
            assert methods(client.pushes()) == [TOOLS]

    run_virtual(scenario)


def test_nobody_is_told_before_the_start_and_after_the_end() -> None:
    """ours: there is nobody to tell."""

    async def scenario() -> None:
        server = Server()
        client = Client(server)
        server.registry.register(tool("before"))
        await settled()
        async with server:
            pass
        server.registry.register(tool("after"))
        await settled()
        assert client.pushes() == []

    run_virtual(scenario)


# Listening (2026-07-28)


def listen(client: Client, id: int | str, **wanted: object) -> None:
    """Open a listen."""
    client.send("subscriptions/listen", {"notifications": wanted}, id=id)


def test_a_listen_hears_what_it_asked_for_and_nothing_else() -> None:
    """MCP 2026-07-28 basic/patterns/subscribe: acknowledged first, everything stamped."""

    async def scenario() -> None:
        server = Server()
        facts = ConnectionFacts(greeting_required=True)
        client = Client(server, era=STATELESS, facts=facts)
        listen(client, "l1", toolsListChanged=True, resourceSubscriptions=["mem://a", "mem://a"])
        await settled()
        assert client.pushes() == [
            {
                "jsonrpc": "2.0",
                "method": ACKNOWLEDGED,
                "params": {
                    "_meta": {SUBSCRIPTION: "l1"},
                    "notifications": {
                        "toolsListChanged": True,
                        "resourceSubscriptions": ["mem://a"],
                    },
                },
            }
        ]
        server.notify(TOOLS)
        server.notify(PROMPTS)
        server.notify(RESOURCES)
        server.notify("notifications/custom")
        server.notify(UPDATED, {"uri": "mem://b"})
        server.notify(UPDATED, {"uri": "mem://a"})
        assert client.pushes() == [
            {"jsonrpc": "2.0", "method": TOOLS, "params": {"_meta": {SUBSCRIPTION: "l1"}}},
            {
                "jsonrpc": "2.0",
                "method": UPDATED,
                "params": {"_meta": {SUBSCRIPTION: "l1"}, "uri": "mem://a"},
            },
        ]

    run_virtual(scenario)


def test_a_listen_may_want_nothing() -> None:
    """MCP 2026-07-28 basic/patterns/subscribe: fields that are absent or false."""

    async def scenario() -> None:
        server = Server()
        client = Client(server, era=STATELESS, facts=ConnectionFacts(greeting_required=True))
        listen(client, 1, promptsListChanged=False, resourceSubscriptions=[])
        await settled()
        (acknowledged,) = client.pushes()
        assert at(acknowledged, "params", "notifications") == {}
        server.notify(PROMPTS)
        assert client.pushes() == []

    run_virtual(scenario)


def test_several_listens_are_told_apart_by_their_ids() -> None:
    """MCP 2026-07-28 basic/patterns/subscribe: the id keeps its JSON type."""

    async def scenario() -> None:
        server = Server()
        client = Client(server, era=STATELESS, facts=ConnectionFacts(greeting_required=True))
        other = Client(server, "b", era=STATELESS, facts=ConnectionFacts(greeting_required=True))
        listen(client, 1, promptsListChanged=True)
        listen(client, "1", promptsListChanged=True)
        listen(other, 1, toolsListChanged=True)
        await settled()
        client.pushes()
        other.pushes()
        server.notify(PROMPTS)
        stamps = [at(push, "params", "_meta", SUBSCRIPTION) for push in client.pushes()]
        assert stamps == [1, "1"]
        assert other.pushes() == []

    run_virtual(scenario)


def test_a_listen_holds_no_slot_and_has_no_timeout() -> None:
    """ours: a subscription is no callback."""

    async def scenario() -> None:
        server = Server(limits=Limits(max_in_flight=1, callback_timeout=5.0))
        server.registry.register(tool("act"))
        client = Client(server, era=STATELESS)
        listen(client, "l", toolsListChanged=True)
        await settled()
        stats = server.stats()
        assert (stats["in_flight"], stats["deadlines"]) == (0, 0)
        assert "result" in (await client.call("act") or {})
        await asyncio.sleep(10_000)
        client.pushes()
        server.notify(TOOLS)
        assert len(client.pushes()) >= 1

    run_virtual(scenario)


def test_a_listen_ends_when_its_client_says_so() -> None:
    """MCP 2026-07-28 basic/patterns/cancellation: stopped, and nothing more is sent for it."""

    async def scenario() -> None:
        server = Server()
        client = Client(server, era=STATELESS, facts=ConnectionFacts(greeting_required=True))
        handle = client.send(
            "subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id="l"
        )
        await settled()
        client.pushes()
        await client.tell("notifications/cancelled", {"requestId": "l"})
        assert await handle is None
        server.notify(TOOLS)
        assert client.pushes() == []
        listen(client, "l", toolsListChanged=True)
        await settled()
        assert methods(client.pushes()) == [ACKNOWLEDGED]

    run_virtual(scenario)


def test_a_server_that_stops_ends_its_listens_with_their_result() -> None:
    """MCP 2026-07-28 basic/patterns/subscribe: the closing result names the subscription."""

    async def scenario() -> None:
        async with Server() as server:
            client = Client(server, era=STATELESS)
            handle = client.send("subscriptions/listen", {"notifications": {}}, id="l")
            await settled()
        reply = wire(await handle)
        assert at(reply, "result", "resultType") == "complete"
        assert at(reply, "result", "_meta", SUBSCRIPTION) == "l"
        assert at(reply, "result", "_meta", SERVER_INFO, "name") == "raxol"

    run_virtual(scenario)


def test_listens_are_bounded() -> None:
    """ours: `max_listens`, `max_subscriptions`, `max_uri_bytes`."""

    async def scenario() -> None:
        server = Server(limits=Limits(max_listens=2, max_subscriptions=2, max_uri_bytes=20))
        client, other = Client(server, era=STATELESS), Client(server, "b", era=STATELESS)
        for id in ("1", "2"):
            listen(client, id)
        await settled()
        refused = await client.error("subscriptions/listen", {"notifications": {}})
        assert refused["code"] == -31002
        for uris in (["mem://a", "mem://b", "mem://c"], ["mem://" + "x" * 20]):
            wanted = {"notifications": {"resourceSubscriptions": uris}}
            assert (await other.error("subscriptions/listen", wanted))["code"] == -32602
        await client.tell("notifications/cancelled", {"requestId": "1"})
        handle = client.send("subscriptions/listen", {"notifications": {}})
        await settled()
        assert not handle.done()

    run_virtual(scenario)


@pytest.mark.parametrize(
    "wanted",
    [
        None,
        [],
        {"toolsListChanged": "yes"},
        {"toolsListChanged": 1},
        {"resourceSubscriptions": "mem://a"},
        {"resourceSubscriptions": [1]},
    ],
)
def test_a_listen_of_the_wrong_shape_is_refused(wanted: object) -> None:
    """MCP 2026-07-28 basic/patterns/subscribe: `notifications` is required, an object."""

    async def scenario() -> None:
        client = Client(Server(), era=STATELESS)
        error = await client.error("subscriptions/listen", {"notifications": wanted})
        assert error["code"] == -32602

    run_virtual(scenario)


def test_both_eras_on_one_connection_hear_each_in_its_own_way() -> None:
    """ours: ADR-0007. A session hears broadcasts, a listen what it asked for."""

    async def scenario() -> None:
        server = Server()
        facts = ConnectionFacts(greeting_required=True)
        session = Client(server, "pipe", era=HANDSHAKE, facts=facts)
        modern = Client(server, "pipe", era=STATELESS, subscribed=False)
        listen(modern, "l", toolsListChanged=True)
        await settled()
        assert methods(session.pushes()) == [ACKNOWLEDGED]
        server.notify(TOOLS)
        (heard,) = session.pushes()
        assert at(heard, "params", "_meta", SUBSCRIPTION) == "l"
        await session.greet()
        server.notify(TOOLS)
        assert sorted("params" in push for push in session.pushes()) == [False, True]

    run_virtual(scenario)


def test_an_id_of_a_listen_is_in_flight_as_long_as_it_is_open() -> None:
    """ours: ADR-0006."""

    async def scenario() -> None:
        server = Server()
        client = Client(server, era=STATELESS)
        listen(client, 1)
        await settled()
        reply = await client.ask("tools/list", id=1)
        assert (at(reply, "id"), code(reply)) == (None, -32600)

    run_virtual(scenario)


def test_a_thread_may_notify() -> None:
    """ours: a tool that blocks runs in a thread, and the core belongs to the loop's."""

    async def main() -> None:
        loop_thread, delivered = threading.get_ident(), []
        server = Server()

        def act(arguments: Mapping[str, object], context: Context) -> str:
            server.notify("notifications/tools/list_changed")
            return "done"

        server.registry.register(tool("act", act))
        server.subscribe("a", lambda message: delivered.append(threading.get_ident()))
        assert text(await outside(Client(server, "b").call("act"))) == "done"
        await settled()
        assert delivered == [loop_thread]

    run_virtual(main)
