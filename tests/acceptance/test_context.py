"""What a running tool can say to its client, and ask it, in the middle of its work."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping

import pytest

from raxol_mcp import (
    ConnectionFacts,
    Context,
    Denied,
    ElicitResult,
    Limits,
    LocalProtocolError,
    Prompt,
    RemoteProtocolError,
    Resource,
    Server,
    TimedOut,
    deny_all,
)
from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.wire.jsonrpc import Outgoing
from raxol_mcp.wire.meta import LOG_LEVELS, EraName
from tests.acceptance.world import (
    FORMS,
    LOG_LEVEL,
    STATELESS,
    YES,
    Client,
    Held,
    Json,
    asks,
    at,
    failed,
    in_both_eras,
    outside,
    passes,
    settled,
    text,
    tool,
    wire,
)
from tests.promises import promise

AGE: Json = {
    "type": "object",
    "properties": {"age": {"type": "integer", "minimum": 0}},
    "required": ["age"],
}


def serving(callback: Callable[..., object], **options: Limits) -> Server:
    """Make a server with one tool."""
    server = Server(**options)  # type: ignore[arg-type]  # limits alone
    server.registry.register(tool("act", callback))
    return server


def told(client: Client, method: str) -> list[object]:
    """Take the pushes; return the params of those of a method. There must be no other."""
    pushes = client.pushes()
    assert {push.get("method") for push in pushes} <= {method}, pushes
    return [push["params"] for push in pushes]


# Who calls


@in_both_eras
def test_a_tool_knows_what_the_server_knows_of_its_caller(era: EraName) -> None:
    """ours: the caller's server-derived facts; nothing the client asserted."""
    seen: list[object] = []

    async def act(arguments: Mapping[str, object], context: Context) -> None:
        seen.extend((context.connection, context.transport, context.principal))
        seen.append(context.request_id)
        seen.append((context.round, dict(context.answers), context.state, context.cancelled))

    async def scenario() -> None:
        facts = ConnectionFacts(transport="stdio", principal="alice")
        client = Client(serving(act), ("c", 1), era=era, facts=facts)
        await client.ask(
            "tools/call", {"name": "act", "principal": "root"}, id="7", meta={"principal": "root"}
        )
        assert seen == [("c", 1), "stdio", "alice", "7", (0, {}, None, False)]

    run_virtual(scenario)


# Progress


@in_both_eras
@pytest.mark.parametrize("token", [0, "", 5, "t", -1])
def test_progress_goes_to_who_asked_for_it_under_its_token(era: EraName, token: int | str) -> None:
    """MCP basic/utilities/progress: the token as it came, only ever increasing, before the end."""

    async def act(arguments: Mapping[str, object], context: Context) -> str:
        context.progress(0)
        context.progress(0.5, 2, "half")
        for not_further in (0.5, 0.1, -1):
            context.progress(not_further)
        context.progress(2, total=2)
        return "done"

    async def scenario() -> None:
        server = serving(act)
        client, other = Client(server, "a", era=era), Client(server, "b", era=era)
        handle = client.send("tools/call", {"name": "act"}, meta={"progressToken": token})
        await handle
        assert told(client, "notifications/progress") == [
            {"progressToken": token, "progress": 0},
            {"progressToken": token, "progress": 0.5, "total": 2, "message": "half"},
            {"progressToken": token, "progress": 2, "total": 2},
        ]
        assert other.pushes() == []

    run_virtual(scenario)


@pytest.mark.parametrize("in_thread", [False, True])
@pytest.mark.parametrize("meta", [{}, {"progressToken": 1}])
def test_progress_that_cannot_be_told_is_the_callers_mistake(meta: Json, in_thread: bool) -> None:
    """ours: raised where it was made, whether or not the client asked for progress."""
    wrong_types: list[tuple[object, ...]] = [
        *(("1",), (None,), (True,), (3 + 0j,)),
        *((1, "2"), (1, False), (1, None, 5), (1, None, b"x")),
    ]
    wrong_values: list[tuple[object, ...]] = [
        *((float("nan"),), (float("inf"),), (10**400,), (1, float("-inf")), (1, None, "\ud800")),
    ]

    def tells(context: Context) -> str:
        for wrong in wrong_types:
            with pytest.raises(TypeError):
                context.progress(*wrong)  # type: ignore[arg-type]  # wrong on purpose
        for wrong in wrong_values:
            with pytest.raises(ValueError, match=r"."):
                context.progress(*wrong)  # type: ignore[arg-type]  # wrong on purpose
        context.progress(1, 2.5, "fine")
        return "done"

    async def awaited(arguments: Mapping[str, object], context: Context) -> str:
        return tells(context)

    def threaded(arguments: Mapping[str, object], context: Context) -> str:
        return tells(context)

    async def scenario() -> None:
        client = Client(serving(threaded if in_thread else awaited))
        reply = await outside(client.ask("tools/call", {"name": "act"}, meta=meta))
        assert text(reply) == "done"
        await settled()
        expected = {"progressToken": 1, "progress": 1, "total": 2.5, "message": "fine"}
        assert told(client, "notifications/progress") == ([expected] if meta else [])

    run_virtual(scenario)


@in_both_eras
@pytest.mark.parametrize("meta", [{}, {"progressToken": None}, {"progressToken": True}])
def test_without_a_token_there_is_no_progress(era: EraName, meta: Json) -> None:
    """MCP basic/utilities/progress: only for tokens of a request."""

    async def act(arguments: Mapping[str, object], context: Context) -> None:
        context.progress(1)

    async def scenario() -> None:
        client = Client(serving(act), era=era)
        await client.ask("tools/call", {"name": "act"}, meta=meta)
        assert client.pushes() == []

    run_virtual(scenario)


@in_both_eras
@pytest.mark.parametrize("end", ["result", "cancel", "timeout"])
def test_there_is_no_progress_and_no_log_after_the_end(era: EraName, end: str) -> None:
    """MCP basic/utilities/progress: must stop after completion."""
    contexts: list[Context] = []

    async def act(arguments: Mapping[str, object], context: Context) -> None:
        contexts.append(context)
        if end != "result":
            await asyncio.Event().wait()

    async def scenario() -> None:
        client = Client(serving(act, limits=Limits(callback_timeout=5.0)), era=era)
        meta: Json = {"progressToken": 1, LOG_LEVEL: "debug"}
        handle = client.send("tools/call", {"name": "act"}, meta=meta)
        await settled()
        if end == "cancel":
            handle.cancel()
        await handle
        context = contexts[0]
        context.progress(1)
        context.log("emergency", "too late")
        assert client.pushes() == []
        assert context.cancelled

    run_virtual(scenario)


def test_progress_of_a_parked_call_is_not_lost_with_its_token() -> None:
    """ours: the token belongs to the request, which is still the same after a yes."""

    async def act(arguments: Mapping[str, object], context: Context) -> None:
        context.progress(1)

    async def scenario() -> None:
        server = Server(authorizer=asks())
        server.registry.register(tool("act", act))
        client = Client(server, capabilities=FORMS)
        await client.greet()
        handle = client.send("tools/call", {"name": "act"}, meta={"progressToken": "t"})
        await settled()
        await client.answer(client.prompt(), YES)
        await handle
        assert told(client, "notifications/progress") == [{"progressToken": "t", "progress": 1}]

    run_virtual(scenario)


def test_a_message_of_progress_is_left_out_for_the_oldest_revision() -> None:
    """MCP 2025-03-26: `message` is new there."""

    async def act(arguments: Mapping[str, object], context: Context) -> None:
        context.progress(1, message="x")

    async def scenario() -> None:
        for version, expected in (("2024-11-05", False), ("2025-03-26", True)):
            client = Client(serving(act))
            await client.greet(version)
            await client.ask("tools/call", {"name": "act"}, meta={"progressToken": 1})
            (params,) = told(client, "notifications/progress")
            assert isinstance(params, dict)
            assert ("message" in params) is expected

    run_virtual(scenario)


# Logs


async def log_everything(arguments: Mapping[str, object], context: Context) -> None:
    """Log once at every level."""
    for level in LOG_LEVELS:
        context.log(level, level)


@promise("methods.set_level")
def test_the_level_of_a_session_is_its_own() -> None:
    """specification: Supported Methods. MCP 2025-11-25: per connection, "info" until it is set."""

    async def scenario() -> None:
        server = serving(log_everything)
        one, other = Client(server, "a"), Client(server, "b")

        async def heard(client: Client) -> list[object]:
            await client.call("act")
            return [at(params, "level") for params in told(client, "notifications/message")]

        levels = list(LOG_LEVELS)
        assert await heard(one) == levels[1:]
        for place, level in enumerate(levels):
            assert await one.result("logging/setLevel", {"level": level}) == {}
            assert await heard(one) == levels[place:]
        assert await heard(other) == levels[1:], "another's level is another's"

    run_virtual(scenario)


def test_a_refused_level_changes_nothing() -> None:
    """specification: Callback isolation, last paragraph."""

    async def scenario() -> None:
        client = Client(serving(log_everything))
        await client.result("logging/setLevel", {"level": "emergency"})
        await client.error("logging/setLevel", {"level": "bogus"})
        await client.call("act")
        assert len(told(client, "notifications/message")) == 1
        denying = Server(read_authorizer=deny_all())
        denying.registry.register(tool("act", log_everything))
        denied = Client(denying)
        await denied.error("logging/setLevel", {"level": "debug"})
        await denied.call("act")
        assert len(told(denied, "notifications/message")) == 7

    run_virtual(scenario)


def test_a_stateless_request_says_itself_what_it_wants_to_hear() -> None:
    """MCP 2026-07-28 server/utilities/logging: without a level nothing may be sent."""

    async def scenario() -> None:
        client = Client(serving(log_everything), era=STATELESS)
        await client.call("act")
        assert client.pushes() == []
        for place, level in enumerate(LOG_LEVELS):
            await client.ask("tools/call", {"name": "act"}, meta={LOG_LEVEL: level})
            heard = [at(params, "level") for params in told(client, "notifications/message")]
            assert heard == list(LOG_LEVELS[place:])
        await client.call("act")
        assert client.pushes() == [], "nothing is remembered from one request to the next"

    run_virtual(scenario)


@in_both_eras
def test_a_log_message_is_any_json_with_an_optional_name(era: EraName) -> None:
    """MCP server/utilities/logging."""

    async def act(arguments: Mapping[str, object], context: Context) -> None:
        context.log("error", {"a": [1, None]}, logger="db")
        context.warning("text")
        context.error(None)
        for wrong in (float("nan"), object(), "\ud800"):
            with pytest.raises(ValueError, match=r"."):
                context.error(wrong)
        with pytest.raises(ValueError, match="level"):
            context.log("loud", 1)  # type: ignore[arg-type]  # wrong on purpose
        with pytest.raises(ValueError, match="surrogate"):
            context.log("error", 1, logger="\ud800")
        with pytest.raises(TypeError, match="logger"):
            context.log("error", 1, logger=5)  # type: ignore[arg-type]  # wrong on purpose

    async def scenario() -> None:
        client = Client(serving(act), era=era)
        reply = await client.ask("tools/call", {"name": "act"}, meta={LOG_LEVEL: "info"})
        assert "isError" not in str(reply)
        assert told(client, "notifications/message") == [
            {"level": "error", "data": {"a": [1, None]}, "logger": "db"},
            {"level": "warning", "data": "text"},
            {"level": "error", "data": None},
        ]

    run_virtual(scenario)


@in_both_eras
def test_a_thread_can_speak_as_well(era: EraName) -> None:
    """ours: what must happen on the loop is sent there, in order, before the result."""
    pushes: list[Outgoing] = []
    pushed_before: list[int] = []

    def act(arguments: Mapping[str, object], context: Context) -> str:
        assert threading.current_thread() is not threading.main_thread()
        for number in range(1, 4):
            context.progress(number)
            context.info(number)
        return "done"

    async def scenario() -> None:
        server = serving(act)
        client = Client(server, era=era, subscribed=False)
        with server.subscribe("default", pushes.append):
            handle = client.send(
                "tools/call", {"name": "act"}, meta={"progressToken": 1, LOG_LEVEL: "info"}
            )
            handle.future.add_done_callback(lambda _: pushed_before.append(len(pushes)))
            await outside(handle)
        assert pushed_before == [6]
        params = [at(wire(message), "params") for message in pushes]
        assert [at(entry, "progress") for entry in params[::2]] == [1, 2, 3]
        assert [at(entry, "data") for entry in params[1::2]] == [1, 2, 3]

    run_virtual(scenario)


@in_both_eras
def test_resources_and_prompts_can_speak_too(era: EraName) -> None:
    """MCP: progress and logs belong to a request, whichever it is."""

    async def read(context: Context) -> str:
        context.progress(1)
        return "x"

    async def render(arguments: Mapping[str, str], context: Context) -> str:
        return await read(context)

    async def scenario() -> None:
        server = Server()
        server.registry.register(
            Resource(uri="mem://a", name="a", callback=read), Prompt(name="p", callback=render)
        )
        client = Client(server, era=era)
        await client.result("resources/read", {"uri": "mem://a"}, meta={"progressToken": "r"})
        await client.result("prompts/get", {"name": "p"}, meta={"progressToken": "p"})
        heard = told(client, "notifications/progress")
        assert [at(params, "progressToken") for params in heard] == ["r", "p"]

    run_virtual(scenario)


# Asking in the middle of the work (handshake era)


class Asking:
    """A tool that asks how old somebody is, and what became of asking."""

    def __init__(self) -> None:
        self.came: list[object] = []

    async def __call__(self, arguments: Mapping[str, object], context: Context) -> str:
        try:
            result = await context.elicit("How old?", AGE)
        except Exception as error:
            self.came.append(error)
            return type(error).__name__
        self.came.append(result)
        return f"{result.action} {result.content}"


async def in_the_middle(
    asking: Asking, capabilities: Json = FORMS, **options: Limits
) -> tuple[Server, Client]:
    """Connect a client to a server with that tool."""
    server = serving(asking, **options)
    client = Client(server, capabilities=capabilities)
    await client.greet()
    return server, client


@promise("elicitation.asked")
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"action": "accept", "content": {"age": 36}}, "accept {'age': 36}"),
        ({"action": "decline"}, "decline None"),
        ({"action": "cancel", "content": {"age": 1}}, "cancel None"),
        ({}, "decline None"),
        ({"action": "accept"}, "Denied"),
        ({"action": "accept", "content": {"age": "old"}}, "Denied"),
        ({"action": "accept", "content": {"age": -1}}, "Denied"),
        (None, "RemoteProtocolError"),
        ("yes", "RemoteProtocolError"),
    ],
)
def test_a_running_tool_can_ask_and_waits_for_the_answer(answer: object, expected: str) -> None:
    """ours: `ctx.elicit` works in the handshake era; the answer is checked against its form."""

    async def scenario() -> None:
        asking = Asking()
        server, client = await in_the_middle(asking)
        handle = client.start("act")
        await settled()
        prompt = client.prompt()
        assert prompt["params"] == {"message": "How old?", "requestedSchema": AGE}
        assert server.stats()["in_flight"] == 1, "it keeps its slot"
        assert server.stats()["parked"] == 0
        await client.answer(prompt, answer)
        assert text(wire(await handle)) == expected
        (came,) = asking.came
        if isinstance(came, ElicitResult):
            assert came.accepted is (at(answer, "action") == "accept" if answer else False)

    run_virtual(scenario)


def test_an_error_instead_of_an_answer_is_raised_in_the_tool() -> None:
    """ours: `RemoteProtocolError` with what the client said."""

    async def scenario() -> None:
        asking = Asking()
        _, client = await in_the_middle(asking)
        handle = client.start("act")
        await settled()
        error: Json = {"code": -32000, "message": "no dialog", "data": {"a": 1}}
        message = {"jsonrpc": "2.0", "id": client.prompt()["id"], "error": error}
        assert await client.handle(message) is None
        await handle
        (came,) = asking.came
        assert isinstance(came, RemoteProtocolError)
        assert (came.code, str(came), came.data) == (-32000, "no dialog", {"a": 1})

    run_virtual(scenario)


def test_the_wait_is_bounded_by_the_elicitation_timeout() -> None:
    """ours: time, shares, bounds. The question is withdrawn."""

    async def scenario() -> None:
        asking = Asking()
        server, client = await in_the_middle(asking)
        handle = client.start("act")
        await passes(59)
        prompt = client.prompt()
        assert not handle.done()
        await passes(2)
        assert text(wire(await handle)) == "TimedOut"
        assert isinstance(asking.came[0], TimedOut)
        (withdrawn,) = told(client, "notifications/cancelled")
        assert at(withdrawn, "requestId") == prompt["id"]
        await client.answer(prompt, {"action": "accept", "content": {"age": 1}})
        assert server.stats()["deadlines"] == 0

    run_virtual(scenario)


def test_the_callback_timeout_runs_meanwhile() -> None:
    """ours: time, shares, bounds: it holds its slot and its timeout runs."""

    async def scenario() -> None:
        asking = Asking()
        _, client = await in_the_middle(asking, limits=Limits(callback_timeout=10.0))
        handle = client.start("act")
        await passes(10.1)
        assert failed(wire(await handle)) == '{"error":"callback_timeout"}'
        prompt, withdrawn = client.pushes()
        assert at(withdrawn, "params", "requestId") == prompt["id"]

    run_virtual(scenario)


@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {"url": {}}}, {"sampling": {}}])
def test_a_client_that_did_not_declare_it_is_not_asked_there_either(capabilities: Json) -> None:
    """specification: Elicitation; raised in the tool as `Denied`."""

    async def scenario() -> None:
        asking = Asking()
        _, client = await in_the_middle(asking, capabilities)
        assert text(await client.call("act")) == "Denied"
        assert isinstance(asking.came[0], Denied)
        assert client.pushes() == []

    run_virtual(scenario)


def test_in_the_stateless_era_it_says_what_to_use_instead() -> None:
    """ours: asking: handshake era only, and says so otherwise."""

    async def scenario() -> None:
        asking = Asking()
        client = Client(serving(asking), era=STATELESS, capabilities=FORMS)
        assert text(await client.call("act")) == "LocalProtocolError"
        (came,) = asking.came
        assert isinstance(came, LocalProtocolError)
        assert "Ask" in str(came)
        assert "InputRequired" in str(came)
        assert client.pushes() == []

    run_virtual(scenario)


@promise("parked.owner_answers")
def test_nobody_else_can_answer_a_running_tool() -> None:
    """server-behaviour §8.4, for questions in the middle."""

    async def scenario() -> None:
        asking = Asking()
        server, client = await in_the_middle(asking)
        other = Client(server, "b", capabilities=FORMS)
        await other.greet()
        handle = client.start("act")
        await settled()
        prompt = client.prompt()
        await other.answer(prompt, {"action": "accept", "content": {"age": 99}})
        await settled()
        assert not handle.done()
        await client.answer(prompt, {"action": "accept", "content": {"age": 1}})
        await client.answer(prompt, {"action": "accept", "content": {"age": 2}})
        assert text(wire(await handle)) == "accept {'age': 1}"

    run_virtual(scenario)


@pytest.mark.parametrize("end", ["cancel", "gone"])
def test_when_the_call_ends_so_does_the_wait(end: str) -> None:
    """specification: cancel; what nobody waits for is withdrawn (ADR-0015)."""
    stopped: list[bool] = []

    async def act(arguments: Mapping[str, object], context: Context) -> None:
        try:
            await context.elicit("How old?", AGE)
        except asyncio.CancelledError:
            stopped.append(True)
            raise

    async def scenario() -> None:
        server = serving(act)
        client = Client(server, capabilities=FORMS)
        await client.greet()
        handle = client.start("act")
        await settled()
        prompt = client.prompt()
        if end == "cancel":
            handle.cancel()
            assert await handle is None
            (withdrawn,) = told(client, "notifications/cancelled")
            assert at(withdrawn, "requestId") == prompt["id"]
        else:
            client.end()
        await settled()
        if end == "cancel":
            assert stopped == [True]
        else:
            # Its caller still waits elsewhere; the question can never be answered any more.
            assert failed(wire(await handle)) == "Error: TimedOut"
        assert server.stats()["in_flight"] == server.stats()["deadlines"] == 0

    run_virtual(scenario)


def test_several_questions_of_one_tool_are_told_apart() -> None:
    """ours: one after the other, or at the same time."""

    async def act(arguments: Mapping[str, object], context: Context) -> str:
        first, second = await asyncio.gather(
            context.elicit("First?", AGE), context.elicit("Second?", AGE)
        )
        third = await context.elicit("Third?", AGE)
        return str([at(answer.content, "age") for answer in (first, second, third)])

    async def scenario() -> None:
        client = Client(serving(act), capabilities=FORMS)
        await client.greet()
        handle = client.start("act")
        await settled()
        first, second = client.pushes()
        await client.answer(second, {"action": "accept", "content": {"age": 2}})
        await client.answer(first, {"action": "accept", "content": {"age": 1}})
        await settled()
        await client.answer(client.prompt(), {"action": "accept", "content": {"age": 3}})
        assert text(wire(await handle)) == "[1, 2, 3]"

    run_virtual(scenario)


def test_a_tool_can_sample_and_ask_for_roots() -> None:
    """MCP 2025-11-25 client/sampling, client/roots."""
    sampling: Json = {"messages": [], "maxTokens": 1}

    async def act(arguments: Mapping[str, object], context: Context) -> str:
        said = await context.sample(sampling)
        roots = await context.roots()
        return f"{at(said, 'model')} {[root['uri'] for root in roots]}"

    async def scenario() -> None:
        client = Client(serving(act), capabilities={"sampling": {}, "roots": {}})
        await client.greet()
        handle = client.start("act")
        await settled()
        (asked,) = client.pushes()
        assert (asked["method"], asked["params"]) == ("sampling/createMessage", sampling)
        await client.answer(asked, {"role": "assistant", "content": {}, "model": "m"})
        await settled()
        (asked,) = client.pushes()
        assert asked["method"] == "roots/list"
        await client.answer(asked, {"roots": [{"uri": "file:///a"}, 5]})
        assert text(wire(await handle)) == "m ['file:///a']"
        undeclared = Client(serving(act))
        await undeclared.greet()
        assert failed(await undeclared.call("act")) == "Error: Denied"

    run_virtual(scenario)


@pytest.mark.parametrize(
    ("more", "needs"),
    [({"tools": []}, "tools"), ({"includeContext": "thisServer"}, "context")],
)
def test_a_part_of_sampling_that_was_not_declared_is_not_asked_for(more: Json, needs: str) -> None:
    """MCP 2025-11-25 client/sampling §Capabilities: the same rule as for `InputRequired`."""

    async def act(arguments: Mapping[str, object], context: Context) -> str:
        return str(await context.sample({"messages": [], "maxTokens": 1, **more}))

    async def scenario() -> None:
        plain = Client(serving(act), capabilities={"sampling": {}})
        await plain.greet()
        assert failed(await plain.call("act")) == "Error: Denied"
        able = Client(serving(act), capabilities={"sampling": {needs: {}}})
        await able.greet()
        able.start("act")
        await settled()
        assert able.pushes()[0]["method"] == "sampling/createMessage"

    run_virtual(scenario)


def test_a_tool_that_asks_while_others_wait_holds_only_its_own_slot() -> None:
    """ours: time, shares, bounds."""

    async def scenario() -> None:
        asking, held = Asking(), Held()
        server, client = await in_the_middle(asking, limits=Limits(max_in_flight=4))
        server.registry.register(tool("wait", held))
        handle = client.start("act")
        other = client.start("wait")
        await settled()
        assert server.stats()["in_flight"] == 2
        assert server.stats()["deadlines"] == 3
        held.let_go()
        await other
        handle.cancel()
        await settled()
        assert server.stats()["in_flight"] == server.stats()["deadlines"] == 0

    run_virtual(scenario)


def test_an_old_client_is_asked_in_its_own_words() -> None:
    """MCP 2025-06-18 client/elicitation: a form without a `mode`."""

    async def scenario() -> None:
        asking = Asking()
        client = Client(serving(asking), capabilities=FORMS)
        await client.greet("2025-06-18")
        client.start("act")
        await settled()
        assert "mode" not in str(client.prompt()["params"])

    run_virtual(scenario)


def test_at_most_sixteen_questions_of_a_call_are_open() -> None:
    """ours: a tool may ask from many tasks, and every question is held until it is answered."""

    async def act(arguments: Mapping[str, object], context: Context) -> str:
        asked = await asyncio.gather(
            *(context.elicit("?", AGE) for _ in range(20)), return_exceptions=True
        )
        return " ".join(type(one).__name__ for one in asked)

    async def main() -> None:
        client = Client(serving(act), capabilities=FORMS)
        await client.greet()
        told = text(await client.call("act"))
        assert told == " ".join(["TimedOut"] * 16 + ["Busy"] * 4)

    run_virtual(main)


@pytest.mark.parametrize("message", ["\ud800", object()])
def test_a_question_that_cannot_be_sent_is_not_waited_for(message: str) -> None:
    """ours: nobody would ever be asked."""

    async def act(arguments: Mapping[str, object], context: Context) -> str:
        with pytest.raises(ValueError, match=r"surrogate|unsupported"):
            await context.elicit(message, AGE)
        return "went on"

    async def main() -> None:
        client = Client(serving(act), capabilities=FORMS)
        await client.greet()
        assert text(await client.call("act")) == "went on"
        assert client.pushes() == []

    run_virtual(main)


def test_a_blocking_tool_is_told_that_it_cannot_ask() -> None:
    """ours: a loop of its own, in its thread, must not touch the server."""

    def act(arguments: Mapping[str, object], context: Context) -> str:
        with pytest.raises(LocalProtocolError, match="async def"):
            asyncio.run(context.elicit("?", AGE))
        return "went on"

    async def main() -> None:
        client = Client(serving(act), capabilities=FORMS)
        await client.greet()
        assert text(await outside(client.call("act"))) == "went on"
        assert client.pushes() == []

    run_virtual(main)
