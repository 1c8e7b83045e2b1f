"""What clients declared: how long it is kept, and who is forgotten first."""

from __future__ import annotations

import asyncio

import pytest

from raxol_mcp import ConfigurationError, Limits, Server
from raxol_mcp.testing.virtual_loop import run_virtual
from tests.acceptance.world import (
    FORMS,
    STATELESS,
    YES,
    Client,
    Json,
    asks,
    denial,
    denied,
    question,
    settled,
    text,
    tool,
)
from tests.promises import promise

EVICTED = "client_capabilities_evicted"


class Watched:
    """A server that asks about its tool, with what its observer was told."""

    def __init__(self, limit: int) -> None:
        self.events: list[tuple[str, Json]] = []
        self.server = Server(
            authorizer=asks(),
            limits=Limits(max_client_capabilities=limit),
            observe=lambda event, fields: self.events.append((event, fields)),
        )
        self.server.registry.register(tool("act"))

    async def client(self, name: str, *, subscribed: bool) -> Client:
        """Connect a client that declares elicitation."""
        client = Client(self.server, name, capabilities=FORMS, subscribed=subscribed)
        await client.greet()
        return client

    @property
    def evictions(self) -> list[Json]:
        """The fields of every eviction."""
        return [fields for event, fields in self.events if event == EVICTED]

    @property
    def kept(self) -> int:
        """How many capabilities are kept."""
        return self.server.stats()["declared"]


async def can_be_asked(client: Client) -> bool:
    """Find out by making a call; leaves nothing parked."""
    handle = client.start("act")
    await settled()
    asked = not handle.done()
    handle.cancel()
    await settled()
    client.pushes()
    return asked


@promise("capabilities.cap", "capabilities.event", "capabilities.orphans_first")
def test_past_the_cap_one_is_forgotten_for_each_new_one() -> None:
    """specification: Client capabilities: an unauthenticated client cannot make it grow."""

    async def scenario() -> None:
        watched = Watched(3)
        for number in range(10):
            await watched.client(f"c{number}", subscribed=False)
        assert watched.kept == 3
        assert watched.evictions == [{"size": 3, "live_subscriber": False}] * 7
        assert watched.server.stats()["connections"] == 3, "nothing else of them is kept either"

    run_virtual(scenario)


@promise("capabilities.orphans_first")
def test_one_without_a_subscriber_is_forgotten_before_an_older_one_with() -> None:
    """specification: Client capabilities: the oldest orphan first."""

    async def scenario() -> None:
        watched = Watched(3)
        live = await watched.client("live", subscribed=True)
        orphans = [await watched.client(f"o{number}", subscribed=False) for number in range(3)]
        assert watched.evictions == [{"size": 3, "live_subscriber": False}]
        assert await can_be_asked(live)
        # The oldest orphan is the one that was forgotten: the others are askable once subscribed.
        for orphan, askable in zip(orphans, (False, True, True), strict=True):
            orphan.subscription = watched.server.subscribe(orphan.connection)
            assert await can_be_asked(orphan) is askable

    run_virtual(scenario)


@promise("capabilities.orphans_first")
def test_any_number_of_orphans_leaves_a_live_connection_alone() -> None:
    """specification: Client capabilities."""

    async def scenario() -> None:
        watched = Watched(4)
        live = await watched.client("live", subscribed=True)
        for number in range(200):
            await watched.client(f"o{number}", subscribed=False)
        assert watched.kept == 4
        assert await can_be_asked(live)

    run_virtual(scenario)


@promise("capabilities.live_last", "capabilities.still_works", "capabilities.event")
def test_when_all_are_live_the_oldest_loses_only_that_it_can_be_asked() -> None:
    """specification: Client capabilities: it keeps working, and may initialize again."""

    async def scenario() -> None:
        watched = Watched(3)
        clients = [await watched.client(name, subscribed=True) for name in "abcd"]
        assert watched.evictions == [{"size": 3, "live_subscriber": True}]
        oldest = clients[0]
        assert denial(await oldest.call("act")) == denied("act", "May I?", decision="ask")
        assert await oldest.result("tools/list") == {"tools": []}
        assert await oldest.result("ping") == {}
        watched.server.notify("notifications/tools/list_changed")
        assert len(oldest.pushes()) == 1, "it is still a subscriber"
        assert [await can_be_asked(client) for client in clients] == [False, True, True, True]
        await oldest.greet()
        assert await can_be_asked(oldest)
        assert len(watched.evictions) == 2
        assert not await can_be_asked(clients[1])

    run_virtual(scenario)


@promise("capabilities.orphans_first")
def test_the_newest_itself_may_be_the_one_to_go() -> None:
    """server-behaviour §11: possibly the one just written."""

    async def scenario() -> None:
        watched = Watched(2)
        live = [await watched.client(name, subscribed=True) for name in "ab"]
        await watched.client("orphan", subscribed=False)
        assert watched.evictions == [{"size": 2, "live_subscriber": False}]
        assert [await can_be_asked(client) for client in live] == [True, True]

    run_virtual(scenario)


@promise("capabilities.kept")
def test_they_end_with_the_subscriber() -> None:
    """specification: Client capabilities: kept until that connection's subscriber exits."""

    async def scenario() -> None:
        watched = Watched(10)
        client = await watched.client("a", subscribed=True)
        assert watched.kept == 1
        client.end()
        assert watched.kept == watched.server.stats()["connections"] == 0
        again = Client(watched.server, "a", capabilities=FORMS)
        assert not await can_be_asked(again)
        assert watched.events == []

    run_virtual(scenario)


@promise("capabilities.kept")
def test_a_parked_call_is_not_touched_when_its_client_is_forgotten() -> None:
    """server-behaviour §11: it only cannot be asked again."""

    async def scenario() -> None:
        watched = Watched(1)
        client = await watched.client("a", subscribed=True)
        asked = await question(client, "act")
        await watched.client("b", subscribed=True)
        assert not await can_be_asked(client)
        assert text(await asked.answered(YES)) == "done"

    run_virtual(scenario)


@promise("capabilities.cap")
def test_the_cap_is_1024_and_positive() -> None:
    """specification: Client capabilities."""
    assert Limits().max_client_capabilities == 1024
    with pytest.raises(ConfigurationError, match="max_client_capabilities"):
        Limits(max_client_capabilities=0)


def test_a_stateless_request_leaves_nothing_behind() -> None:
    """MCP 2026-07-28 basic §Statelessness: what a request declares is its own."""

    async def scenario() -> None:
        watched = Watched(3)
        for number in range(10):
            client = Client(
                watched.server,
                f"c{number}",
                era=STATELESS,
                capabilities=FORMS,
                subscribed=False,
            )
            await client.call("act")
        assert watched.kept == 0
        assert watched.server.stats()["connections"] == 0
        assert watched.evictions == []

    run_virtual(scenario)


@pytest.mark.parametrize("error", [ZeroDivisionError, SystemExit, asyncio.CancelledError])
def test_an_observer_that_fails_changes_nothing(
    error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    """ours: user code at the edge. What was decided beside the event is carried out."""

    def observe(event: str, fields: Json) -> None:
        raise error

    async def scenario() -> None:
        server = Server(observe=observe, limits=Limits(max_client_capabilities=1))
        for name in "abc":
            client = Client(server, name)
            await client.greet()
            assert await client.result("ping") == {}

    run_virtual(scenario)
    assert len(caplog.records) == 2
