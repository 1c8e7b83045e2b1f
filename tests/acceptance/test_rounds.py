"""Tools, resources and prompts that return `InputRequired`: rounds, in both eras."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from raxol_mcp import (
    Context,
    Elicit,
    ElicitUrl,
    InputRequired,
    Limits,
    ListRoots,
    Prompt,
    Resource,
    Sample,
    Server,
    ask,
    nonblocking,
)
from raxol_mcp.server.authorizer import AuthorizationContext, Decision
from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.wire.meta import EraName
from tests.acceptance.world import (
    FORMS,
    HANDSHAKE,
    STATELESS,
    YES,
    Client,
    Json,
    at,
    code,
    denial,
    denied,
    failed,
    in_both_eras,
    passes,
    question,
    settled,
    text,
    tool,
    wire,
)

AGE: Json = {"type": "object", "properties": {"age": {"type": "integer"}}}
PROMPT: Json = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}],
    "maxTokens": 5,
}
EVERYTHING: Json = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}, "context": {}},
    "roots": {},
}
ANSWER: Json = {"role": "assistant", "content": {"type": "text", "text": "Yo"}, "model": "m"}


async def connected(server: Server, era: EraName, capabilities: Json = EVERYTHING) -> Client:
    """Connect a client that can be asked for everything."""
    client = Client(server, era=era, capabilities=capabilities)
    await client.greet()
    return client


def with_tool(callback: Callable[..., object], **options: Limits) -> Server:
    """Make a server with one tool."""
    server = Server(**options)  # type: ignore[arg-type]  # limits alone
    server.registry.register(tool("act", callback))
    return server


@in_both_eras
def test_a_tool_is_run_again_with_the_answer_and_its_state(era: EraName) -> None:
    """ours: asking: a low-level `InputRequired` with state and answers, in both eras."""
    runs: list[tuple[int, dict[str, object], str | None]] = []

    async def act(arguments: Mapping[str, object], context: Context) -> object:
        runs.append((context.round, dict(context.answers), context.state))
        if context.round == 0:
            return InputRequired({"how old": Elicit("How old?", AGE)}, state="first: ä\n")
        return f"{arguments['name']} is {at(context.answers['how old'], 'content', 'age')}"

    async def scenario() -> None:
        client = await connected(with_tool(act), era)
        asked = await question(client, "act", {"name": "Ada"})
        assert asked.params == {"message": "How old?", "requestedSchema": AGE}
        answer = {"action": "accept", "content": {"age": 36}}
        assert text(await asked.answered(answer)) == "Ada is 36"
        assert runs == [(0, {}, None), (1, {"how old": answer}, "first: ä\n")]

    run_virtual(scenario)


@in_both_eras
@pytest.mark.parametrize("answer", [{"action": "decline"}, {"action": "cancel"}])
def test_a_no_is_an_answer_for_the_tool_to_read(era: EraName, answer: Json) -> None:
    """ours: in a tool's own round any answer is handed to the tool."""

    async def act(arguments: Mapping[str, object], context: Context) -> object:
        if context.round == 0:
            return InputRequired({"q": Elicit("How old?", AGE)})
        return f"so it is {at(context.answers['q'], 'action')}"

    async def scenario() -> None:
        asked = await question(await connected(with_tool(act), era), "act")
        assert text(await asked.answered(answer)) == f"so it is {answer['action']}"

    run_virtual(scenario)


@in_both_eras
def test_sampling_roots_and_pages_can_be_asked_for_together(era: EraName) -> None:
    """MCP 2026-07-28 basic/patterns/mrtr; the handshake era sends them as requests of its own."""

    async def act(arguments: Mapping[str, object], context: Context) -> object:
        if context.round == 0:
            return InputRequired(
                {
                    "said": Sample(PROMPT),
                    "roots": ListRoots(),
                    "page": ElicitUrl("Sign in.", "https://example.com/in", "e1"),
                }
            )
        return [
            str(at(context.answers["said"], "content", "text")),
            str(at(context.answers["roots"], "roots", 0, "uri")),
            str(at(context.answers["page"], "action")),
        ]

    async def scenario() -> None:
        client = await connected(with_tool(act), era)
        roots = {"roots": [{"uri": "file:///a"}]}
        asked = await question(client, "act")
        if era is STATELESS:
            kinds = {key: at(request, "method") for key, request in asked.requests.items()}
            assert kinds == {
                "said": "sampling/createMessage",
                "roots": "roots/list",
                "page": "elicitation/create",
            }
            assert at(asked.requests["said"], "params") == PROMPT
            page = at(asked.requests["page"], "params")
            assert page == {"mode": "url", "message": "Sign in.", "url": "https://example.com/in"}
        else:
            assert (asked.reply["method"], asked.reply["params"]) == (
                "sampling/createMessage",
                PROMPT,
            )
        reply = await asked.answered(ANSWER, roots, {"action": "accept"})
        assert at(reply, "result", "content", 0, "text") == '["Yo","file:///a","accept"]'

    run_virtual(scenario)


def test_a_page_is_named_by_an_id_in_the_handshake_era() -> None:
    """MCP 2025-11-25 client/elicitation §URL Mode: `elicitationId`; 2026-07-28 has none."""

    async def act(arguments: Mapping[str, object], context: Context) -> object:
        if context.round == 0:
            return InputRequired({"page": ElicitUrl("Sign in.", "https://example.com/in", "e1")})
        return "done"

    async def scenario() -> None:
        asked = await question(await connected(with_tool(act), HANDSHAKE), "act")
        assert at(asked.params, "elicitationId") == "e1"
        assert at(asked.params, "mode") == "url"

    run_virtual(scenario)


@in_both_eras
@pytest.mark.parametrize(
    ("declared", "request_", "missing"),
    [
        ({}, Elicit("How old?", AGE), {"elicitation": {"form": {}}}),
        ({"elicitation": {"url": {}}}, Elicit("How old?", AGE), {"elicitation": {"form": {}}}),
        (FORMS, ElicitUrl("Go.", "https://example.com", "e"), {"elicitation": {"url": {}}}),
        (FORMS, Sample(PROMPT), {"sampling": {}}),
        ({"sampling": {}}, Sample({**PROMPT, "tools": []}), {"sampling": {"tools": {}}}),
        (
            {"sampling": {}},
            Sample({**PROMPT, "includeContext": "allServers"}),
            {"sampling": {"context": {}}},
        ),
        (FORMS, ListRoots(), {"roots": {}}),
    ],
)
def test_a_client_is_never_asked_for_what_it_did_not_declare(
    era: EraName, declared: Json, request_: Elicit, missing: Json
) -> None:
    """MCP 2026-07-28 basic: -32021 with what is missing; the handshake era has the deny."""
    rounds: list[int] = []

    async def act(arguments: Mapping[str, object], context: Context) -> object:
        rounds.append(context.round)
        return InputRequired({"q": request_})

    async def scenario() -> None:
        client = await connected(with_tool(act), era, declared)
        if era is HANDSHAKE:
            assert denial(await client.call("act"))["error"] == "authorization_required"
        else:
            error = await client.error("tools/call", {"name": "act"})
            assert error["code"] == -32021
            assert error["data"] == {"requiredCapabilities": missing}
        assert client.pushes() == []
        assert rounds == [0]

    run_virtual(scenario)


@in_both_eras
def test_a_tool_may_ask_again_but_not_for_ever(era: EraName) -> None:
    """ours: `max_rounds`, 10 by default; each round has the answers of the last."""

    async def act(arguments: Mapping[str, object], context: Context) -> object:
        if context.round == arguments["rounds"]:
            return f"after {context.round}: {sorted(context.answers)}"
        return InputRequired({f"q{context.round}": Elicit("More?", AGE)}, state=str(context.round))

    async def scenario() -> None:
        server = with_tool(act, limits=Limits(max_rounds=3))
        client = await connected(server, era)
        for rounds, expected in ((3, "after 3: ['q2']"), (4, None)):
            reply = await play(client, rounds)
            if expected is not None:
                assert text(reply) == expected
            else:
                assert "rounds" in failed(reply)
        assert server.stats()["parked"] == server.stats()["in_flight"] == 0

    async def play(client: Client, rounds: int) -> Json | None:
        """Answer every question until the call has its result."""
        call: Json = {"name": "act", "arguments": {"rounds": rounds}}
        if era is HANDSHAKE:
            handle = client.send("tools/call", call)
            await settled()
            while not handle.done():
                await client.answer(client.prompt(), YES)
                await settled()
            return wire(await handle)
        reply = await client.ask("tools/call", call)
        while at(reply, "result", "resultType") == "input_required":
            requests = at(reply, "result", "inputRequests")
            assert isinstance(requests, dict)
            reply = await client.ask(
                "tools/call",
                {
                    **call,
                    "inputResponses": dict.fromkeys(requests, YES),
                    "requestState": at(reply, "result", "requestState"),
                },
            )
        return reply

    run_virtual(scenario)


@in_both_eras
def test_the_authorizer_is_asked_once_and_not_for_every_round(era: EraName) -> None:
    """ours: ADR-0013; what the human approved is not asked about again."""
    decisions: list[str] = []

    @nonblocking
    def authorizer(
        name: str, arguments: Mapping[str, object], context: AuthorizationContext
    ) -> Decision:
        decisions.append(name)
        return ask("May I?")

    async def act(arguments: Mapping[str, object], context: Context) -> object:
        if context.round == 0:
            return InputRequired({"q": Elicit("How old?", AGE)})
        return "done"

    async def scenario() -> None:
        server = Server(authorizer=authorizer)
        server.registry.register(tool("act", act))
        client = await connected(server, era)
        asked = await question(client, "act")
        if era is HANDSHAKE:
            assert text(await asked.answered(YES, YES)) == "done"
        else:
            reply = await asked.answered(YES)
            again = {
                "name": "act",
                "arguments": {},
                "inputResponses": {"q": YES},
                "requestState": at(reply, "result", "requestState"),
            }
            assert text(await client.ask("tools/call", again)) == "done"
        assert decisions == ["act"]

    run_virtual(scenario)


def test_a_state_is_signed_and_cannot_be_taken_back_to_another_round() -> None:
    """ours: ADR-0008. The client may read the state, not change or repeat it."""

    async def act(arguments: Mapping[str, object], context: Context) -> object:
        if context.round < 2:
            return InputRequired({"q": Elicit("More?", AGE)}, state=f"round {context.round}")
        return context.state

    async def scenario() -> None:
        client = await connected(with_tool(act), STATELESS)
        first = await question(client, "act")
        second = await first.answered(YES)
        assert code(await client.ask("tools/call", first.retry({"q": YES}))) == -32602
        retry = first.retry({"q": YES}, requestState=at(second, "result", "requestState"))
        assert text(await client.ask("tools/call", retry)) == "round 1"

    run_virtual(scenario)


def test_a_state_that_is_too_long_is_a_failure_of_its_call() -> None:
    """ours: 4 KiB for the whole `requestState`; in the handshake era it never travels."""

    async def act(arguments: Mapping[str, object], context: Context) -> object:
        if context.round == 0:
            return InputRequired({"q": Elicit("How old?", AGE)}, state="x" * 5000)
        return str(len(context.state or ""))

    async def scenario() -> None:
        server = with_tool(act)
        assert "state" in failed(await (await connected(server, STATELESS)).call("act"))
        client = Client(server, "b", capabilities=EVERYTHING)
        await client.greet()
        asked = await question(client, "act")
        assert text(await asked.answered(YES)) == "5000"

    run_virtual(scenario)


@in_both_eras
@pytest.mark.parametrize("count", [0, 17])
def test_a_round_asks_for_something_and_not_for_too_much(era: EraName, count: int) -> None:
    """ours: 1 to 16 requests in a round."""

    async def act(arguments: Mapping[str, object], context: Context) -> object:
        return InputRequired({str(number): Elicit("?", AGE) for number in range(count)})

    async def scenario() -> None:
        client = await connected(with_tool(act), era)
        assert "1 to 16" in failed(await client.call("act"))

    run_virtual(scenario)


def test_a_missing_answer_of_a_tools_own_round_is_for_the_tool_to_see() -> None:
    """MCP 2026-07-28 basic/patterns/mrtr: the server looks at what is there."""

    async def act(arguments: Mapping[str, object], context: Context) -> object:
        if context.round == 0:
            return InputRequired({"a": Elicit("?", AGE), "b": Elicit("?", AGE)})
        return str(sorted(context.answers))

    async def scenario() -> None:
        asked = await question(await connected(with_tool(act), STATELESS), "act")
        retry = asked.retry({"a": YES, "unknown": YES})
        assert text(await asked.client.ask("tools/call", retry)) == "['a']"

    run_virtual(scenario)


def test_a_round_that_nobody_answers_ends_in_the_deny() -> None:
    """specification: Elicitation: silence; the parked call is one like any other."""

    async def act(arguments: Mapping[str, object], context: Context) -> object:
        return InputRequired({"q": Elicit("How old?", AGE)})

    async def scenario() -> None:
        server = with_tool(act)
        client = await connected(server, HANDSHAKE)
        handle = client.start("act")
        await settled()
        assert server.stats()["parked"] == 1
        assert server.stats()["in_flight"] == 0
        await passes(61)
        reply = wire(await handle)
        assert denial(reply) == denied("act", "elicitation timed out", decision="ask")

    run_virtual(scenario)


@in_both_eras
def test_resources_and_prompts_have_rounds_too(era: EraName) -> None:
    """MCP 2026-07-28 basic/patterns/mrtr: tools/call, prompts/get and resources/read."""

    async def read(context: Context) -> object:
        if context.round == 0:
            return InputRequired({"q": Elicit("Which?", AGE)}, state="s")
        return f"{context.state} {at(context.answers['q'], 'action')}"

    async def render(arguments: Mapping[str, str], context: Context) -> object:
        return await read(context)

    async def scenario() -> None:
        server = Server()
        server.registry.register(
            Resource(uri="mem://a", name="a", callback=read), Prompt(name="p", callback=render)
        )
        client = await connected(server, era)
        for method, params, path in (
            ("resources/read", {"uri": "mem://a"}, ("contents", 0, "text")),
            ("prompts/get", {"name": "p"}, ("messages", 0, "content", "text")),
        ):
            if era is HANDSHAKE:
                handle = client.send(method, params)
                await settled()
                assert not handle.done()
                await client.answer(client.prompt(), {"action": "decline"})
                reply = wire(await handle)
            else:
                reply = await client.ask(method, params)
                assert at(reply, "result", "resultType") == "input_required"
                retry = {
                    **params,
                    "inputResponses": {"q": {"action": "decline"}},
                    "requestState": at(reply, "result", "requestState"),
                }
                reply = await client.ask(method, retry)
            assert at(reply, "result", *path) == "s decline", method

    run_virtual(scenario)


@in_both_eras
def test_a_resource_cannot_ask_who_cannot_be_asked(era: EraName) -> None:
    """ours: an error of the read; -32021 in the stateless era."""

    async def read(context: Context) -> object:
        return InputRequired({"q": Elicit("Which?", AGE)})

    async def scenario() -> None:
        server = Server()
        server.registry.register(Resource(uri="mem://a", name="a", callback=read))
        client = await connected(server, era, {})
        error = await client.error("resources/read", {"uri": "mem://a"})
        assert error["code"] == (-32603 if era is HANDSHAKE else -32021)
        assert client.pushes() == []

    run_virtual(scenario)


@in_both_eras
def test_a_completion_has_no_rounds(era: EraName) -> None:
    """MCP 2026-07-28 basic/patterns/mrtr: nowhere else."""
    server = Server()

    @server.prompt
    async def p(a: str) -> str:
        """Prompt."""
        return a

    @server.completion("p", "a")
    async def a(value: str) -> list[str]:
        return InputRequired({"q": Elicit("Which?", AGE)})  # type: ignore[return-value]  # a mistake on purpose

    async def scenario() -> None:
        client = await connected(server, era)
        params = {
            "ref": {"type": "ref/prompt", "name": "p"},
            "argument": {"name": "a", "value": ""},
        }
        assert (await client.error("completion/complete", params))["code"] == -32603

    run_virtual(scenario)


@in_both_eras
@pytest.mark.parametrize(
    "value",
    [
        InputRequired({"k": Elicit("\ud800", AGE)}),
        InputRequired({"k": Elicit("?" * 2_000, AGE)}),
        InputRequired({"k": Elicit("?", AGE)}, state="\ud800"),
        InputRequired({"k": Elicit("?", AGE)}, state=5),  # type: ignore[arg-type]  # a mistake
        InputRequired({1: Elicit("?", AGE)}),  # type: ignore[dict-item]  # a mistake
        InputRequired({"k": "?"}),  # type: ignore[dict-item]  # a mistake
        InputRequired(["k"]),  # type: ignore[arg-type]  # a mistake
    ],
)
def test_what_cannot_be_sent_is_refused_at_once(era: EraName, value: InputRequired) -> None:
    """ours: a question that nobody gets must not be waited for."""

    async def main() -> None:
        async def act(arguments: Mapping[str, object], context: Context) -> InputRequired:
            return value

        server = Server(limits=Limits(max_result_bytes=1_000))
        server.registry.register(tool("act", act))
        client = await connected(server, era)
        assert "InputRequired" in failed(await client.call("act"))
        assert client.pushes() == []

    run_virtual(main)


@in_both_eras
def test_a_tool_that_changes_its_arguments_is_run_again_with_those_that_were_sent(
    era: EraName,
) -> None:
    """ours: what an answer is about does not change under it."""

    async def main() -> None:
        seen: list[object] = []

        async def act(arguments: Mapping[str, object], context: Context) -> object:
            many = arguments["many"]
            assert isinstance(many, list)
            seen.append(list(many))
            many.append("more")
            return "done" if context.round else InputRequired({"k": Elicit("?", AGE)})

        server = Server()
        server.registry.register(tool("act", act))
        client = await connected(server, era)
        params: Json = {"name": "act", "arguments": {"many": ["a"]}}
        answer: Json = {"action": "accept", "content": {}}
        if era is HANDSHAKE:
            call = client.send("tools/call", params)
            await settled()
            await client.handle({"jsonrpc": "2.0", "id": client.prompt()["id"], "result": answer})
            reply = wire(await call)
        else:
            asked = await client.ask("tools/call", params)
            state = at(asked, "result", "requestState")
            reply = await client.ask(
                "tools/call", {**params, "requestState": state, "inputResponses": {"k": answer}}
            )
        assert text(reply) == "done"
        assert seen == [["a"], ["a"]]

    run_virtual(main)
