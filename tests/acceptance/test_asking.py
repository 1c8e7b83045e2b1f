"""Asking the human before a tool runs: when, how, and what every answer leads to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable

import pytest
from msgspec import structs

from raxol_mcp import ConnectionFacts, Limits, Server, allow, ask
from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.wire.meta import EraName
from tests.acceptance.world import (
    FORMS,
    STATELESS,
    YES,
    Client,
    Counted,
    Held,
    Json,
    asks,
    at,
    busy,
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

PROMPT = "Really wipe the disk?"
FORM: Json = {
    "type": "object",
    "properties": {
        "approve": {"type": "boolean", "description": "Approve running the wipe tool"},
    },
    "required": ["approve"],
}


def guarded(
    callback: Callable[..., object] | None = None, *, limits: Limits | None = None
) -> Server:
    """Make a server that asks about its one tool."""
    server = Server(authorizer=asks(PROMPT), limits=limits)
    server.registry.register(tool("wipe", callback))
    return server


async def askable(
    server: Server, connection: Hashable = "default", *, era: EraName = EraName.HANDSHAKE
) -> Client:
    """Connect a client that can be asked."""
    client = Client(server, connection, era=era, capabilities=FORMS)
    await client.greet()
    return client


# Who can be asked


@promise("elicitation.asked", "parked.original_id")
def test_a_client_that_declared_it_is_asked_and_its_yes_runs_the_tool() -> None:
    """specification: Elicitation. server-behaviour §8.2: the exact question."""

    async def scenario() -> None:
        callback = Counted("wiped")
        client = await askable(guarded(callback))
        assert await client.ask("tools/call", {"name": "wipe"}, id=41) is None
        prompt = client.prompt()
        assert prompt["params"] == {"message": PROMPT, "requestedSchema": FORM}
        assert str(prompt["id"]).startswith("raxol-elicit-")
        assert len(str(prompt["id"])) >= len("raxol-elicit-") + 16
        assert callback.runs == 0
        await client.approve(prompt)
        await settled()
        assert client.pushes() == [
            {
                "jsonrpc": "2.0",
                "id": 41,
                "result": {"content": [{"type": "text", "text": "wiped"}]},
            }
        ]
        assert callback.runs == 1

    run_virtual(scenario)


@promise("elicitation.asked")
def test_a_stateless_client_is_asked_by_the_result_of_its_call() -> None:
    """MCP 2026-07-28 basic/patterns/mrtr: the twin of the parked call."""

    async def scenario() -> None:
        callback = Counted("wiped")
        server = guarded(callback)
        client = await askable(server, era=STATELESS)
        reply = await client.call("wipe", {"disk": 1})
        assert at(reply, "result", "resultType") == "input_required"
        assert at(reply, "result", "inputRequests") == {
            "approve": {
                "method": "elicitation/create",
                "params": {"message": PROMPT, "requestedSchema": FORM},
            }
        }
        assert server.stats()["parked"] == 0
        assert client.pushes() == []
        assert callback.runs == 0
        again = {
            "name": "wipe",
            "arguments": {"disk": 1},
            "inputResponses": {"approve": YES},
            "requestState": at(reply, "result", "requestState"),
        }
        assert text(await client.ask("tools/call", again)) == "wiped"
        assert callback.runs == 1

    run_virtual(scenario)


@promise("elicitation.not_declared")
@pytest.mark.parametrize(
    "capabilities",
    [
        {},
        {"elicitation": None},
        {"elicitation": False},
        {"elicitation": True},
        {"elicitation": []},
        {"elicitation": {"url": {}}},
        {"sampling": {}},
    ],
)
@in_both_eras
def test_a_client_that_did_not_declare_forms_is_never_asked(
    era: EraName, capabilities: Json
) -> None:
    """specification: Elicitation; MCP: `{}` means forms, only an object declares anything."""

    async def scenario() -> None:
        callback = Counted()
        client = Client(guarded(callback), era=era, capabilities=capabilities)
        await client.greet()
        assert denial(await client.call("wipe")) == denied("wipe", PROMPT, decision="ask")
        assert client.pushes() == []
        assert callback.runs == 0

    run_virtual(scenario)


@promise("elicitation.asked")
@pytest.mark.parametrize("declared", [{}, {"form": {}}, {"form": {}, "url": {}}])
@in_both_eras
def test_declaring_forms_is_enough(era: EraName, declared: Json) -> None:
    """MCP 2025-11-25 client/elicitation §Capabilities."""

    async def scenario() -> None:
        client = Client(guarded(), era=era, capabilities={"elicitation": declared})
        await client.greet()
        asked = await question(client, "wipe")
        assert text(await asked.answered(YES)) == "done"

    run_virtual(scenario)


@promise("elicitation.not_subscribed", "handle.unidentified")
def test_a_client_without_a_subscriber_is_not_asked() -> None:
    """specification: Elicitation, handle_message: ordinary requests work."""

    async def scenario() -> None:
        server = guarded()
        anonymous = Client(server, "anonymous", capabilities=FORMS, subscribed=False)
        await anonymous.greet()
        assert denial(await anonymous.call("wipe")) == denied("wipe", PROMPT, decision="ask")
        assert await anonymous.result("ping") == {}
        assert server.stats()["parked"] == 0
        server.subscribe("anonymous")
        assert await anonymous.call("wipe") is None, "initialize, then subscribe is fine"

    run_virtual(scenario)


@promise("parked.owner_hears", "subscribe.addressed")
def test_what_one_connection_declared_makes_no_other_one_askable() -> None:
    """server-behaviour §8.1: per connection, never globally."""

    async def scenario() -> None:
        server = guarded()
        bystander = await askable(server, "bystander")
        caller = Client(server, "caller")
        await caller.greet()
        assert denial(await caller.call("wipe")) == denied("wipe", PROMPT, decision="ask")
        assert bystander.pushes() == []

    run_virtual(scenario)


@promise("elicitation.not_declared")
def test_a_human_is_not_asked_about_a_call_that_cannot_run() -> None:
    """ours: tools/call, in order: does it exist, do the arguments fit, then the question."""

    async def scenario() -> None:
        server = Server(authorizer=asks(PROMPT))

        @server.tool
        async def wipe(disk: int) -> str:
            """Wipe."""
            return "wiped"

        client = await askable(server)
        assert code(await client.call("nope")) == -32601
        assert "disk" in text(await client.call("wipe", {"disk": "first"}))
        assert client.pushes() == []

    run_virtual(scenario)


# What an answer leads to


@promise("elicitation.approval", "elicitation.request_stays_out", "request.parked")
@in_both_eras
def test_a_yes_gives_the_call_the_result_of_the_tool(era: EraName) -> None:
    """specification: Elicitation. For a `request` it is the reply, and nothing is pushed."""

    async def scenario() -> None:
        callback = Counted("wiped")
        client = await askable(guarded(callback), era=era)
        asked = await question(client, "wipe", {"disk": 1})
        assert callback.runs == 0
        reply = await asked.answered(YES)
        assert client.payload(reply) == {"content": [{"type": "text", "text": "wiped"}]}
        assert callback.runs == 1
        assert client.pushes() == []

    run_virtual(scenario)


@promise("elicitation.refusal", "elicitation.silence")
@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        ({"action": "decline"}, "user decline"),
        ({"action": "cancel"}, "user cancel"),
        ({"action": "accept"}, "user accept"),
        ({"action": "accept", "content": {}}, "user accept"),
        ({"action": "accept", "content": {"approve": False}}, "user accept"),
        ({"action": "accept", "content": {"approve": "true"}}, "user accept"),
        ({"action": "accept", "content": {"approve": 1}}, "user accept"),
        ({"action": "accept", "content": {"approve": 1.0}}, "user accept"),
        ({"action": "accept", "content": {"Approve": True}}, "user accept"),
        ({"action": "accept", "content": [True]}, "user accept"),
        ({"action": "accept", "content": {"approve": [True]}}, "user accept"),
        ({"action": "decline", "content": {"approve": True}}, "user decline"),
        ({"content": {"approve": True}}, "user declined"),
        ({"action": None, "content": {"approve": True}}, "user declined"),
        ({"action": "ACCEPT", "content": {"approve": True}}, "user declined"),
        ({"action": {"a": "<script>"}, "content": {"approve": True}}, "user declined"),
        ({}, "user declined"),
        (None, "user declined"),
        (True, "user declined"),
        ("accept", "user declined"),
        ([YES], "user declined"),
    ],
)
@in_both_eras
def test_nothing_but_an_exact_yes_runs_the_tool(era: EraName, answer: object, detail: str) -> None:
    """server-behaviour §8.4: `1 == True` in Python, and still is no yes."""

    async def scenario() -> None:
        callback = Counted()
        server = guarded(callback)
        client = await askable(server, era=era)
        asked = await question(client, "wipe")
        reply = await asked.answered(answer)
        assert denial(reply) == denied("wipe", detail, decision="ask")
        await passes(1000)
        assert callback.runs == 0
        assert client.pushes() == []
        assert server.stats()["parked"] == server.stats()["deadlines"] == 0

    run_virtual(scenario)


@promise("elicitation.error", "elicitation.silence")
def test_an_error_instead_of_an_answer_denies() -> None:
    """specification: Elicitation. In the stateless era there is no such answer."""

    async def scenario() -> None:
        callback = Counted()
        client = await askable(guarded(callback))
        for error in ({"code": -32603, "message": "broken"}, "broken", {"code": "x"}):
            handle = client.start("wipe")
            await settled()
            prompt = client.prompt()
            message = {"jsonrpc": "2.0", "id": prompt["id"], "error": error, "result": YES}
            assert await client.handle(message) is None
            reply = wire(await handle)
            assert denial(reply) == denied("wipe", "elicitation failed", decision="ask")
        assert callback.runs == 0
        assert await client.result("ping") == {}

    run_virtual(scenario)


@promise("elicitation.timeout", "elicitation.silence", "elicitation.once")
def test_silence_denies_after_a_minute_and_a_late_yes_does_nothing() -> None:
    """specification: Elicitation: `elicitation_timeout`, 60 s by default."""

    async def scenario() -> None:
        callback = Counted()
        client = await askable(guarded(callback))
        assert await client.ask("tools/call", {"name": "wipe"}, id=7) is None
        prompt = client.prompt()
        await passes(59.9)
        assert client.pushes() == []
        await passes(0.2)
        withdrawn, reply = sorted(client.pushes(), key=lambda push: "id" in push)
        assert reply["id"] == 7
        assert denial(reply) == denied("wipe", "elicitation timed out", decision="ask")
        # ours: ADR-0015. The dialog must not stay on the screen.
        assert withdrawn["method"] == "notifications/cancelled"
        assert at(withdrawn, "params", "requestId") == prompt["id"]
        await client.approve(prompt)
        await settled()
        assert client.pushes() == []
        assert callback.runs == 0

    run_virtual(scenario)


@promise("elicitation.timeout")
def test_the_elicitation_timeout_is_an_option() -> None:
    """server-behaviour §2."""

    async def scenario() -> None:
        client = await askable(guarded(limits=Limits(elicitation_timeout=2.0)))
        handle = client.start("wipe")
        await passes(1.9)
        assert not handle.done()
        await passes(0.2)
        assert denial(wire(await handle))["detail"] == "elicitation timed out"

    run_virtual(scenario)


def test_the_callback_timeout_does_not_run_while_a_human_thinks() -> None:
    """server-behaviour §8.3, §10: a parked call has no worker; the approved run has a new one."""

    async def scenario() -> None:
        held = Held()
        limits = Limits(callback_timeout=10.0, elicitation_timeout=1000.0)
        client = await askable(guarded(held, limits=limits))
        handle = client.start("wipe")
        await passes(500)
        await client.approve(client.prompt())
        await passes(9.9)
        assert not handle.done()
        held.let_go()
        assert text(wire(await handle)) == "done"

    run_virtual(scenario)


@promise("elicitation.once")
def test_of_several_answers_in_one_turn_the_first_counts() -> None:
    """specification: Elicitation: exactly once; server-behaviour (b) 42."""

    async def scenario() -> None:
        callback = Counted()
        server = guarded(callback)
        client = await askable(server)
        handle = client.start("wipe")
        await settled()
        prompt = client.prompt()
        for result in (YES, {"action": "decline"}, YES):
            server.request(decoded({"jsonrpc": "2.0", "id": prompt["id"], "result": result}))
        assert text(wire(await handle)) == "done"
        await settled()
        assert callback.runs == 1
        assert client.pushes() == []

    run_virtual(scenario)


@promise("elicitation.once")
def test_an_answer_in_the_moment_of_the_timeout_leads_to_one_end() -> None:
    """specification: Elicitation: exactly once; server-behaviour (b) 42."""

    async def scenario() -> None:
        callback = Counted()
        server = guarded(callback)
        client = await askable(server)
        loop = asyncio.get_running_loop()
        asked_at = loop.time()
        handle = client.start("wipe")
        await settled()
        yes = {"jsonrpc": "2.0", "id": client.prompt()["id"], "result": YES}
        loop.call_at(asked_at + 60.0, server.request, decoded(yes))
        await passes(120)
        reply = at(wire(await handle), "result")
        assert isinstance(reply, dict)
        assert callback.runs == (0 if "isError" in reply else 1)
        assert server.stats()["parked"] == server.stats()["in_flight"] == 0

    run_virtual(scenario)


@promise("elicitation.once")
def test_a_yes_and_a_cancel_in_one_turn_end_in_no_answer_and_no_run() -> None:
    """specification: Elicitation: exactly once; server-behaviour (b) 42."""

    async def scenario() -> None:
        callback = Counted()
        server = guarded(callback)
        client = await askable(server)
        handle = client.start("wipe")
        await settled()
        yes = {"jsonrpc": "2.0", "id": client.prompt()["id"], "result": YES}
        server.request(decoded(yes))
        handle.cancel()
        assert await handle is None
        await settled()
        assert callback.runs == 0
        assert server.stats()["in_flight"] == server.stats()["parked"] == 0

    run_virtual(scenario)


# Whose answer counts


@promise("parked.owner_answers", "parked.owner_hears", "elicitation.answer_is_not_answered")
def test_only_the_connection_that_called_can_answer_and_is_answered() -> None:
    """specification: pending_elicitation; server-behaviour §8.4."""

    async def scenario() -> None:
        callback = Counted("wiped")
        server = guarded(callback)
        owner, other = await askable(server, "a"), await askable(server, "b")
        assert await owner.ask("tools/call", {"name": "wipe"}, id=1) is None
        assert other.pushes() == []
        prompt = owner.prompt()
        await other.approve(prompt)
        await other.answer({"id": "raxol-elicit-0000000000000000"}, YES)
        await settled()
        assert callback.runs == 0
        assert owner.pushes() == other.pushes() == []
        await owner.approve(prompt)
        await settled()
        assert [push["id"] for push in owner.pushes()] == [1]
        assert other.pushes() == []
        assert callback.runs == 1

    run_virtual(scenario)


def test_a_stateless_answer_counts_only_for_the_call_it_was_given_for() -> None:
    """ours: `requestState` binds tool, arguments, principal and time, and is used once."""

    async def scenario() -> None:
        callback = Counted()
        server = guarded(callback)
        server.registry.register(tool("other", callback))
        alice = ConnectionFacts(principal="alice")
        client = Client(server, "a", era=STATELESS, capabilities=FORMS, facts=alice)
        asked = await question(client, "wipe", {"disk": 1})
        good = asked.retry({"approve": YES})
        state = str(good["requestState"])
        forged = [
            {**good, "arguments": {"disk": 2}},
            {**good, "name": "other"},
            {**good, "requestState": state[:-1] + ("A" if state[-1] != "A" else "B")},
            {**good, "requestState": state + "="},
            {**good, "requestState": ""},
            {**good, "requestState": 5},
            {**good, "requestState": "x" * 10_000},
        ]
        for retry in forged:
            error = await client.error("tools/call", retry)
            assert error == {
                "code": -32602,
                "message": "requestState is not valid for this request",
            }
        bob = ConnectionFacts(principal="bob")
        thief = Client(server, "b", era=STATELESS, capabilities=FORMS, facts=bob)
        assert (await thief.error("tools/call", good))["code"] == -32602
        elsewhere = Client(guarded(callback), era=STATELESS, capabilities=FORMS, facts=alice)
        assert (await elsewhere.error("tools/call", good))["code"] == -32602
        assert callback.runs == 0
        assert text(await client.ask("tools/call", good)) == "done"
        assert (await client.error("tools/call", good))["code"] == -32602, "used once"
        assert callback.runs == 1

    run_virtual(scenario)


def test_a_refusal_uses_the_state_up_as_well() -> None:
    """ours: ADR-0008. What a human refused cannot be approved with the same question."""

    async def scenario() -> None:
        callback = Counted()
        client = await askable(guarded(callback), era=STATELESS)
        asked = await question(client, "wipe")
        assert denial(await asked.answered({"action": "decline"}))["detail"] == "user decline"
        for answer in (YES, {"action": "decline"}):
            error = await client.error("tools/call", asked.retry({"approve": answer}))
            assert error["code"] == -32602
        assert callback.runs == 0

    run_virtual(scenario)


def test_a_state_expires() -> None:
    """ours: the state binds times; `request_state_ttl` is 600 s by default."""

    async def scenario() -> None:
        client = await askable(guarded(), era=STATELESS)
        early, late = await question(client, "wipe"), await question(client, "wipe")
        await passes(599)
        assert text(await early.answered(YES)) == "done"
        await passes(2)
        error = await client.error("tools/call", late.retry({"approve": YES}))
        assert error["code"] == -32602

    run_virtual(scenario)


def test_a_retry_without_the_answer_is_asked_again() -> None:
    """MCP 2026-07-28 basic/patterns/mrtr §Server: a missing key is a new question, no error."""

    async def scenario() -> None:
        callback = Counted()
        client = await askable(guarded(callback), era=STATELESS)
        asked = await question(client, "wipe")
        without: tuple[Json, ...] = ({}, {"other": YES})
        for answers in without:
            reply = await client.ask("tools/call", asked.retry(answers))
            assert at(reply, "result", "resultType") == "input_required"
        broken = asked.retry({})
        wrong: tuple[object, ...] = ([], "x", 5)
        for responses in wrong:
            error = await client.error("tools/call", {**broken, "inputResponses": responses})
            assert error["code"] == -32602
        assert callback.runs == 0
        with_more = asked.retry({"approve": YES, "unknown": 5})
        assert text(await client.ask("tools/call", with_more)) == "done"

    run_virtual(scenario)


# Several questions at once


@promise("elicitation.asked")
@in_both_eras
def test_two_questions_are_told_apart(era: EraName) -> None:
    """server-behaviour §8.2: distinct, unguessable ids; each answer completes its own call."""

    async def scenario() -> None:
        callback = Counted()
        client = await askable(guarded(callback), era=era)
        first, second = await question(client, "wipe"), await question(client, "wipe")
        key = ("id",) if era is EraName.HANDSHAKE else ("result", "requestState")
        assert at(first.reply, *key) != at(second.reply, *key)
        assert text(await second.answered(YES)) == "done"
        assert callback.runs == 1
        assert denial(await first.answered({"action": "decline"}))["detail"] == "user decline"
        assert callback.runs == 1

    run_virtual(scenario)


# Not blocking anybody


@promise("elicitation.handle_is_freed", "elicitation.answers_can_be_read", "isolation.responsive")
def test_a_caller_of_handle_message_is_free_to_read_the_answer() -> None:
    """specification: Elicitation. The question is pushed before the None is returned."""

    async def scenario() -> None:
        client = await askable(guarded())
        order: list[str] = []

        async def calls() -> None:
            assert await client.ask("tools/call", {"name": "wipe"}) is None
            order.append("returned")

        # One task that does one thing after the other: blocked on the human, it could not go on.
        await calls()
        prompt = client.prompt()
        await client.approve(prompt)
        await settled()
        assert order == ["returned"]
        assert [text(push) for push in client.pushes()] == ["done"]

    run_virtual(scenario)


def test_an_approved_slow_tool_holds_nobody_up() -> None:
    """server-behaviour §8.4: it runs in a worker of its own."""

    async def scenario() -> None:
        held = Held()
        server = guarded(held)
        client, other = await askable(server, "a"), Client(server, "b")
        handle = client.start("wipe")
        await settled()
        await client.approve(client.prompt())
        await settled()
        assert held.begun == 1
        assert await other.result("ping") == {}
        assert await client.result("ping") == {}
        held.let_go()
        assert text(wire(await handle)) == "done"

    run_virtual(scenario)


# Dropping


@promise("elicitation.dropped_by_cancel", "cancel.parked", "request.cancelled")
def test_cancelling_a_parked_call_drops_it_without_an_answer() -> None:
    """specification: Elicitation, cancel. A later answer is ignored; no timer is left."""

    async def scenario() -> None:
        callback = Counted()
        server = guarded(callback)
        client = await askable(server)
        handle = client.start("wipe")
        await settled()
        prompt = client.prompt()
        server.cancel(handle)
        assert await handle is None
        assert server.stats()["parked"] == server.stats()["deadlines"] == 0
        (withdrawn,) = client.pushes()
        assert withdrawn["method"] == "notifications/cancelled"
        await client.approve(prompt)
        await passes(100)
        assert client.pushes() == []
        assert callback.runs == 0

    run_virtual(scenario)


@promise("elicitation.dropped_by_cancel", "elicitation.cancel_reaches", "cancel.every_stage")
def test_cancelling_an_approved_call_ends_its_tool() -> None:
    """specification: Elicitation, cancel: the original handle reaches it at every stage."""

    async def scenario() -> None:
        held = Held()
        server = guarded(held)
        client = await askable(server)
        handle = client.start("wipe")
        await settled()
        await client.approve(client.prompt())
        await settled()
        assert held.begun == 1
        server.cancel(handle)
        assert await handle is None
        await settled()
        assert held.stopped == 1
        assert server.stats()["in_flight"] == 0
        assert client.pushes() == []

    run_virtual(scenario)


@promise("elicitation.dropped_by_cancel")
def test_the_client_can_withdraw_a_parked_call_itself() -> None:
    """MCP 2025-11-25 basic/utilities/cancellation: no answer, by whichever way it was sent."""

    async def scenario() -> None:
        callback = Counted()
        server = guarded(callback)
        client = await askable(server)
        for send in ("handle", "request"):
            if send == "handle":
                assert await client.ask("tools/call", {"name": "wipe"}, id=5) is None
            else:
                handle = client.start("wipe", id=5)
                await settled()
            prompt = client.prompt()
            await client.tell("notifications/cancelled", {"requestId": 5})
            assert server.stats()["parked"] == 0
            await client.approve(prompt)
            await settled()
            assert all(push.get("id") != 5 for push in client.pushes())
        assert await handle is None
        assert callback.runs == 0

    run_virtual(scenario)


@promise("elicitation.dropped_by_owner", "isolation.owner", "request.owner")
@pytest.mark.parametrize("approved", [False, True])
def test_the_end_of_the_task_that_owns_the_request_drops_it(approved: bool) -> None:
    """specification: Elicitation, request: callers are watched."""

    async def scenario() -> None:
        held = Held()
        server = guarded(held)
        client = await askable(server)
        release = asyncio.Event()

        async def owner() -> None:
            client.start("wipe")
            await release.wait()

        owning = asyncio.ensure_future(owner())
        await settled()
        prompt = client.prompt()
        if approved:
            await client.approve(prompt)
            await settled()
        release.set()
        await owning
        await settled()
        assert (held.begun, held.stopped) == ((1, 1) if approved else (0, 0))
        assert server.stats()["parked"] == server.stats()["in_flight"] == 0
        await client.approve(prompt)
        await passes(100)
        assert held.begun == (1 if approved else 0)
        assert all("id" not in push for push in client.pushes()), "nothing was answered"

    run_virtual(scenario)


@promise("elicitation.dropped_by_connection")
@pytest.mark.parametrize("approved", [False, True])
@pytest.mark.parametrize("via", ["handle", "request"])
def test_the_end_of_the_connection_drops_it(via: str, approved: bool) -> None:
    """specification: Elicitation: a tool that the approval started is ended, too."""

    async def scenario() -> None:
        held = Held()
        server = guarded(held)
        client = await askable(server)
        handle = None
        if via == "handle":
            assert await client.call("wipe") is None
        else:
            handle = client.start("wipe")
            await settled()
        prompt = client.prompt()
        if approved:
            await client.approve(prompt)
            await settled()
        client.end()
        await settled()
        assert handle is None or await handle is None
        assert (held.begun, held.stopped) == ((1, 1) if approved else (0, 0))
        assert server.stats()["parked"] == server.stats()["in_flight"] == 0
        assert client.pushes() == []
        again = await askable(server)
        await again.approve(prompt)
        await settled()
        assert held.begun == (1 if approved else 0)

    run_virtual(scenario)


@promise("elicitation.dropped_by_connection", "capabilities.kept")
def test_a_new_subscriber_of_an_id_inherits_nothing() -> None:
    """server-behaviour §5: capabilities and parked calls of the old one are dropped."""

    async def scenario() -> None:
        callback = Counted()
        server = guarded(callback)
        old = await askable(server, "a")
        handle = old.start("wipe")
        await settled()
        prompt = old.prompt()
        new = Client(server, "a", capabilities=FORMS)
        assert await handle is None
        await new.approve(prompt)
        await settled()
        assert callback.runs == 0
        assert new.pushes() == []
        assert denial(await new.call("wipe")) == denied("wipe", PROMPT, decision="ask")
        await new.greet()
        asked = await question(new, "wipe")
        assert text(await asked.answered(YES)) == "done"
        assert old.why_ended() is not None

    run_virtual(scenario)


# A yes and no slot


@promise("elicitation.approval")
def test_a_yes_waits_for_a_slot() -> None:
    """ours: APPROVED; older servers threw the approval away and said busy (ADR-0011)."""

    async def scenario() -> None:
        held, callback = Held(), Counted("wiped")
        server = Server(
            authorizer=decides(ask(PROMPT), slow=allow()), limits=Limits(max_in_flight=1)
        )
        server.registry.register(tool("wipe", callback), tool("slow", held))
        client = await askable(server)
        asked = client.start("wipe")
        await settled()
        prompt = client.prompt()
        slow = client.start("slow")
        await settled()
        await client.approve(prompt)
        await settled()
        assert not asked.done()
        assert callback.runs == 0
        assert server.stats()["approved"] == 1
        held.let_go()
        await slow
        assert text(wire(await asked)) == "wiped"

    run_virtual(scenario)


def test_a_yes_that_waited_the_whole_callback_timeout_is_answered_busy() -> None:
    """ours: APPROVED: `busy` when the callback timeout passes."""

    async def scenario() -> None:
        held, callback = Held(), Counted()
        limits = Limits(max_in_flight=1, callback_timeout=20.0)
        server = Server(authorizer=decides(ask(PROMPT), slow=allow()), limits=limits)

        server.registry.register(tool("wipe", callback), tool("slow", stubborn(held)))
        client = await askable(server)
        asked = client.start("wipe")
        await settled()
        prompt = client.prompt()
        slow = client.start("slow")
        await settled()
        await client.approve(prompt)
        await passes(20.1)
        reply = wire(await asked)
        assert denial(reply) in (busy("server"), busy("connection"))
        assert callback.runs == 0
        held.let_go()
        await slow

    run_virtual(scenario)


def test_a_stateless_yes_that_finds_no_slot_may_be_sent_again() -> None:
    """ours: ADR-0011. A busy server leaves the token unspent: a yes is not thrown away."""

    async def scenario() -> None:
        held = Held()
        server = Server(
            authorizer=decides(ask(PROMPT), slow=allow()), limits=Limits(max_in_flight=1)
        )
        server.registry.register(tool("wipe"), tool("slow", held))
        client = await askable(server, era=STATELESS)
        asked = await question(client, "wipe")
        slow = client.start("slow")
        await settled()
        reply = await asked.answered(YES)
        assert denial(reply) in (busy("server"), busy("connection"))
        held.let_go()
        await slow
        assert text(await asked.answered(YES)) == "done"

    run_virtual(scenario)


@in_both_eras
@pytest.mark.parametrize("looks", ["the same", "different"])
def test_a_tool_that_was_replaced_meanwhile_is_not_run_on_an_old_yes(
    era: EraName, looks: str
) -> None:
    """ours: what the human approved is the tool as it was listed; its code may be reloaded."""

    async def scenario() -> None:
        callback = Counted("new")
        server = guarded()
        client = await askable(server, era=era)
        asked = await question(client, "wipe")
        replacement = tool("wipe", callback)
        if looks == "different":
            replacement = structs.replace(replacement, description="Wipe something else.")
        server.registry.register(replacement)
        reply = await asked.answered(YES)
        if looks == "different":
            assert at(reply, "result", "isError") is True
            assert callback.runs == 0
        else:
            assert text(reply) == "new"

    run_virtual(scenario)


@in_both_eras
def test_a_tool_that_is_gone_meanwhile_is_unknown(era: EraName) -> None:
    """ours: `unknown_tool_reply` may tell what became of it."""

    async def scenario() -> None:
        server = guarded()
        client = await askable(server, era=era)
        asked = await question(client, "wipe")
        server.registry.unregister(tool("wipe").kind, "wipe")
        reply = await asked.answered(YES)
        assert code(reply) == (-32601 if era is EraName.HANDSHAKE else -32602)

    run_virtual(scenario)


def stubborn(held: Held) -> Callable[..., object]:
    """Make a callback that swallows its cancellation and goes on until it is let go."""

    async def callback(*_: object) -> object:
        while True:
            try:
                return await held()
            except asyncio.CancelledError:
                continue

    return callback
