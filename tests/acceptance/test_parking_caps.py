"""How many calls may wait for a human, and who makes room for whom."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from raxol_mcp import ConfigurationError, ConnectionFacts, Limits, RequestHandle, Server
from raxol_mcp.testing.virtual_loop import run_virtual
from tests.acceptance.world import (
    FORMS,
    YES,
    Client,
    Counted,
    Json,
    asks,
    at,
    denial,
    denied,
    passes,
    settled,
    text,
    tool,
    wire,
)
from tests.promises import promise

HERE = denied("act", "too many elicitations pending", decision="ask")
ON_SERVER = denied("act", "too many elicitations pending on this server", decision="ask")


@dataclass
class Parked:
    """A call that was parked when it was made."""

    client: Client
    handle: RequestHandle
    prompt: Json | None

    async def denial(self) -> Json:
        """Return why it was denied; it must be over."""
        assert self.handle.done()
        return denial(wire(await self.handle))


class Crowd:
    """A server that asks about everything, and any number of clients."""

    def __init__(self, *, total: int, here: int | None = None) -> None:
        self.callback = Counted()
        self.server = Server(
            authorizer=asks(),
            limits=Limits(
                max_parked_elicitations_total=total,
                max_parked_elicitations=here,
                max_in_flight=400,
                max_in_flight_per_connection=400,
            ),
        )
        self.server.registry.register(tool("act", self.callback))
        self.clients: dict[str, Client] = {}

    async def ask(self, name: str, principal: str | None = None) -> Parked:
        """Let `name` make a call; return it with the question, if it was parked."""
        client = self.clients.get(name)
        if client is None:
            facts = ConnectionFacts(principal=principal, share=principal)
            client = Client(self.server, name, capabilities=FORMS, facts=facts)
            self.clients[name] = client
            await client.greet()
        handle = client.start("act")
        await settled()
        pushes = client.pushes()
        prompts = [push for push in pushes if push.get("method") == "elicitation/create"]
        return Parked(client, handle, prompts[0] if prompts else None)

    async def ask_often(self, name: str, times: int) -> list[Parked]:
        """Let `name` make several calls, one after the other."""
        return [await self.ask(name) for _ in range(times)]

    @property
    def parked(self) -> int:
        """How many calls are parked now."""
        return self.server.stats()["parked"]


@promise("elicitation.cap_here")
def test_past_its_own_cap_a_connection_is_denied_and_the_parked_calls_stay() -> None:
    """specification: Elicitation: `max_parked_elicitations`; the call is not asked about."""

    async def scenario() -> None:
        crowd = Crowd(total=10, here=2)
        first, second = await crowd.ask_often("a", 2)
        third = await crowd.ask("a")
        assert await third.denial() == HERE
        assert third.prompt is None
        assert not first.handle.done()
        assert not second.handle.done()
        other = await crowd.ask("b")
        assert not other.handle.done(), "the cap is per connection"
        assert first.prompt is not None
        await first.client.approve(first.prompt)
        assert text(wire(await first.handle)) == "done"
        assert not (await crowd.ask("a")).handle.done(), "its place is free again"

    run_virtual(scenario)


@promise("elicitation.cap_here", "elicitation.cap_total")
def test_the_caps_are_32_and_256() -> None:
    """specification: Elicitation: eight connections' full share."""

    async def scenario() -> None:
        crowd = Crowd(total=256)
        for name in "abcdefgh":
            await crowd.ask_often(name, 32)
        assert crowd.parked == 256
        assert await (await crowd.ask("a")).denial() == HERE
        ninth = await crowd.ask("i")
        assert not ninth.handle.done()
        assert crowd.parked == 256

    run_virtual(scenario)
    assert Limits().max_parked_elicitations_total == 256
    assert Limits().parked_share == 32


@promise("elicitation.room", "elicitation.fair_eviction", "parked.ordered")
def test_on_a_full_server_the_fullest_connection_makes_room_with_its_oldest_call() -> None:
    """specification: Elicitation; server-behaviour §8.5."""

    async def scenario() -> None:
        crowd = Crowd(total=4, here=4)
        calls = await crowd.ask_often("a", 4)
        newcomer = await crowd.ask("b")
        assert newcomer.prompt is not None
        assert not newcomer.handle.done()
        assert await calls[0].denial() == ON_SERVER
        assert [call.handle.done() for call in calls] == [True, False, False, False]
        assert crowd.parked == 4
        await newcomer.client.approve(newcomer.prompt)
        assert text(wire(await newcomer.handle)) == "done"

    run_virtual(scenario)


@promise("elicitation.fair_refusal")
def test_the_fullest_connection_itself_is_denied() -> None:
    """specification: Elicitation; server-behaviour §8.5: nothing is evicted for it."""

    async def scenario() -> None:
        crowd = Crowd(total=4, here=4)
        calls = await crowd.ask_often("a", 4)
        other = await crowd.ask("b")
        again = await crowd.ask("a")  # holds three, the most
        assert await again.denial() == ON_SERVER
        assert not other.handle.done()
        assert [call.handle.done() for call in calls] == [True, False, False, False]

    run_virtual(scenario)


@promise("elicitation.fair_refusal")
def test_among_equals_nobody_makes_room() -> None:
    """specification: Elicitation; server-behaviour §8.5: fewer, not as many."""

    async def scenario() -> None:
        crowd = Crowd(total=4, here=4)
        calls = await crowd.ask_often("a", 2) + await crowd.ask_often("b", 2)
        for name in "ab":
            assert await (await crowd.ask(name)).denial() == ON_SERVER
        assert not any(call.handle.done() for call in calls)

    run_virtual(scenario)


@promise("parked.ordered")
def test_between_two_fullest_the_one_with_the_oldest_call_makes_room() -> None:
    """ours: ties for the fullest connection."""

    async def scenario() -> None:
        crowd = Crowd(total=4, here=2)
        oldest = await crowd.ask("b")
        rest = [await crowd.ask(name) for name in ("a", "a", "b")]
        newcomer = await crowd.ask("c")
        assert await oldest.denial() == ON_SERVER
        assert not newcomer.handle.done()
        assert not any(call.handle.done() for call in rest)

    run_virtual(scenario)


@promise("elicitation.spreading")
def test_who_spreads_over_connections_crowds_out_only_itself() -> None:
    """specification: Elicitation: everyone else still gets a place."""

    async def scenario() -> None:
        crowd = Crowd(total=8, here=4)
        greedy = [call for name in ("g1", "g2") for call in await crowd.ask_often(name, 4)]
        honest = [await crowd.ask(f"h{number}") for number in range(4)]
        assert not any(call.handle.done() for call in honest)
        for _ in range(20):
            await crowd.ask("g1")
            await crowd.ask("g2")
        assert not any(call.handle.done() for call in honest)
        assert sum(call.handle.done() for call in greedy) == 4
        assert crowd.parked == 8

    run_virtual(scenario)


@promise("elicitation.spreading", "isolation.share")
def test_the_connections_of_one_principal_share_one_cap() -> None:
    """ours: share: who is known counts once, however many connections it has (ADR-0009)."""

    async def scenario() -> None:
        crowd = Crowd(total=8, here=2)
        await crowd.ask("a1", "alice")
        await crowd.ask("a2", "alice")
        assert await (await crowd.ask("a3", "alice")).denial() == HERE
        assert not (await crowd.ask("b1", "bob")).handle.done()

    run_virtual(scenario)


@promise("elicitation.once")
def test_a_late_answer_to_an_evicted_call_is_ignored() -> None:
    """server-behaviour §8.4; its dialog is withdrawn (ADR-0015)."""

    async def scenario() -> None:
        crowd = Crowd(total=2, here=2)
        evicted, kept = await crowd.ask_often("a", 2)
        await crowd.ask("b")
        assert await evicted.denial() == ON_SERVER
        assert evicted.prompt is not None
        (withdrawn,) = evicted.client.pushes()
        assert withdrawn["method"] == "notifications/cancelled"
        assert at(withdrawn, "params", "requestId") == evicted.prompt["id"]
        await evicted.client.approve(evicted.prompt)
        await settled()
        assert crowd.callback.runs == 0
        assert not kept.handle.done()

    run_virtual(scenario)


@promise("elicitation.room")
def test_an_evicted_call_of_handle_message_is_pushed_its_deny() -> None:
    """specification: Elicitation: the deny goes where the call's response would have gone."""

    async def scenario() -> None:
        crowd = Crowd(total=2, here=2)
        client = Client(crowd.server, "a", capabilities=FORMS)
        await client.greet()
        for id in ("first", "second"):
            assert await client.ask("tools/call", {"name": "act"}, id=id) is None
        client.pushes()
        await crowd.ask("b")
        answers = [push for push in client.pushes() if "result" in push]
        assert [answer["id"] for answer in answers] == ["first"]
        assert denial(answers[0]) == ON_SERVER

    run_virtual(scenario)


def test_every_way_out_frees_the_place() -> None:
    """specification: Elicitation: five ways to close, and dropping."""

    async def scenario() -> None:
        crowd = Crowd(total=1)

        async def place_is_free() -> Parked:
            assert crowd.parked == 0
            call = await crowd.ask("a")
            assert not call.handle.done()
            assert call.prompt is not None
            return call

        for answer in (YES, {"action": "decline"}):
            call = await place_is_free()
            await call.client.answer(call.prompt or {}, answer)
            await settled()
        call = await place_is_free()
        error = {"code": 1, "message": "no"}
        failure = {"jsonrpc": "2.0", "id": at(call.prompt, "id"), "error": error}
        assert await call.client.handle(failure) is None
        call = await place_is_free()
        await passes(61)
        call.client.pushes()
        call = await place_is_free()
        call.handle.cancel()
        call.client.pushes()
        call = await place_is_free()
        call.client.end()
        assert crowd.parked == 0

    run_virtual(scenario)


@promise("elicitation.cap_order", "isolation.cap_order")
@pytest.mark.parametrize(
    ("options", "named"),
    [
        (
            {"max_parked_elicitations": 5, "max_parked_elicitations_total": 4},
            "max_parked_elicitations",
        ),
        (
            {"max_in_flight_per_connection": 3, "max_in_flight": 2},
            "max_in_flight_per_connection",
        ),
        ({"max_parked_elicitations": 257}, "max_parked_elicitations"),
        ({"max_in_flight_per_connection": 33}, "max_in_flight_per_connection"),
    ],
)
def test_a_share_above_its_whole_refuses_to_start(options: dict[str, int], named: str) -> None:
    """specification: Elicitation, Callback isolation."""
    with pytest.raises(ConfigurationError, match=named):
        Limits(**options)


@pytest.mark.parametrize(
    "name",
    [
        "max_in_flight",
        "max_in_flight_per_connection",
        "max_parked_elicitations",
        "max_parked_elicitations_total",
        "max_client_capabilities",
        "callback_timeout",
        "elicitation_timeout",
    ],
)
@pytest.mark.parametrize("value", [0, -1, True, "5", float("nan"), float("inf")])
def test_a_bound_is_a_positive_number_and_the_error_names_it(name: str, value: object) -> None:
    """server-behaviour §2."""
    with pytest.raises(ConfigurationError, match=name):
        Limits(**{name: value})  # type: ignore[arg-type]  # wrong on purpose


def test_a_smaller_total_alone_makes_the_share_smaller() -> None:
    """ours: it clamps the default of the per-connection option."""
    assert Limits(max_parked_elicitations_total=4).parked_share == 4
    assert Limits(max_in_flight=1).in_flight_share == 1
    assert Limits(max_in_flight=5).in_flight_share == 2
