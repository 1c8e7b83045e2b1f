"""Parameters that the human fills in before a tool's body runs, in both eras."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import pytest

from raxol_mcp import (
    Ask,
    Context,
    Elicit,
    InputRequired,
    Limits,
    Server,
    allow,
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
    asks,
    at,
    code,
    decides,
    denial,
    denied,
    failed,
    in_both_eras,
    outside,
    passes,
    question,
    settled,
    text,
    wire,
)
from tests.promises import promise


@dataclass
class Confirm:
    """Whether to go on, and how."""

    sure: bool
    how: Literal["fast", "slow"] = "slow"


CONFIRM: Json = {
    "type": "object",
    "properties": {
        "sure": {"type": "boolean"},
        "how": {"type": "string", "enum": ["fast", "slow"], "default": "slow"},
    },
    "required": ["sure"],
}


class Deleting:
    """A server with a tool that asks for its second parameter."""

    def __init__(self, server: Server | None = None) -> None:
        self.server = Server() if server is None else server
        self.done: list[tuple[str, Confirm]] = []

        @self.server.tool
        async def delete(path: str, answer: Annotated[Confirm, Ask("Delete {path}?")]) -> str:
            """Delete a file."""
            self.done.append((path, answer))
            return f"deleted {path}" if answer.sure else "kept"

    async def client(self, era: EraName, *, capabilities: Json | None = FORMS) -> Client:
        """Connect a client."""
        client = Client(self.server, era=era, capabilities=capabilities)
        await client.greet()
        return client


def accepted(**content: object) -> Json:
    """Write an accepted form."""
    return {"action": "accept", "content": content}


@in_both_eras
def test_the_caller_neither_sees_nor_can_give_an_asked_parameter(era: EraName) -> None:
    """ours: asking: the human fills it in, nobody else."""

    async def scenario() -> None:
        deleting = Deleting()
        client = await deleting.client(era)
        listed = await client.result("tools/list")
        assert at(listed, "tools", 0, "inputSchema", "required") == ["path"]
        assert "answer" not in json.dumps(listed)
        reply = await client.call("delete", {"path": "a", "answer": {"sure": True}})
        assert at(reply, "result", "isError") is True
        assert "answer" in text(reply)
        assert deleting.done == []

    run_virtual(scenario)


@promise("elicitation.asked", "elicitation.approval")
@in_both_eras
def test_the_human_is_asked_before_the_body_runs_and_it_runs_once(era: EraName) -> None:
    """ours: asking: the same in both eras; no side effect is repeated."""

    async def scenario() -> None:
        deleting = Deleting()
        client = await deleting.client(era)
        asked = await question(client, "delete", {"path": "a.txt"})
        assert asked.params == {"message": "Delete a.txt?", "requestedSchema": CONFIRM}
        assert deleting.done == []
        reply = await asked.answered(accepted(sure=True, how="fast"))
        assert text(reply) == "deleted a.txt"
        assert deleting.done == [("a.txt", Confirm(True, "fast"))]

    run_virtual(scenario)


@in_both_eras
def test_a_form_that_says_no_is_an_answer_for_the_tool(era: EraName) -> None:
    """ours: what the fields mean is the tool's to say; only the form's fate is ours."""

    async def scenario() -> None:
        deleting = Deleting()
        asked = await question(await deleting.client(era), "delete", {"path": "a"})
        assert text(await asked.answered(accepted(sure=False))) == "kept"
        assert deleting.done == [("a", Confirm(False, "slow"))]

    run_virtual(scenario)


@promise("elicitation.refusal", "elicitation.silence")
@in_both_eras
@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        ({"action": "decline"}, "user decline"),
        ({"action": "cancel", "content": {"sure": True}}, "user cancel"),
        ({}, "user declined"),
        (None, "user declined"),
    ],
)
def test_a_form_that_was_not_sent_denies(era: EraName, answer: object, detail: str) -> None:
    """specification: Elicitation: every path but an answer is the same deny."""

    async def scenario() -> None:
        deleting = Deleting()
        asked = await question(await deleting.client(era), "delete", {"path": "a"})
        reply = await asked.answered(answer)
        assert denial(reply) == denied("delete", detail, decision="ask")
        assert deleting.done == []

    run_virtual(scenario)


@in_both_eras
@pytest.mark.parametrize(
    "content",
    [
        None,
        {},
        [],
        {"sure": "yes"},
        {"sure": 1},
        {"sure": True, "how": "sideways"},
        {"sure": True, "more": 1},
    ],
)
def test_an_answer_that_does_not_fit_the_form_runs_nothing(era: EraName, content: object) -> None:
    """ours, MCP: a deny, and -32602 in the stateless era; never a guess."""

    async def scenario() -> None:
        deleting = Deleting()
        asked = await question(await deleting.client(era), "delete", {"path": "a"})
        reply = await asked.answered({"action": "accept", "content": content})
        if era is HANDSHAKE:
            assert denial(reply)["error"] == "authorization_required"
        else:
            assert code(reply) == -32602
        assert deleting.done == []

    run_virtual(scenario)


def test_nobody_answers_in_time() -> None:
    """specification: Elicitation: silence is not consent."""

    async def scenario() -> None:
        deleting = Deleting()
        client = await deleting.client(HANDSHAKE)
        handle = client.start("delete", {"path": "a"})
        await passes(61)
        reply = wire(await handle)
        assert denial(reply) == denied("delete", "elicitation timed out", decision="ask")
        assert deleting.done == []

    run_virtual(scenario)


@in_both_eras
def test_a_client_that_cannot_be_asked_is_told_so(era: EraName) -> None:
    """MCP 2026-07-28 basic §Per-request metadata: -32021; the handshake era has the deny."""

    async def scenario() -> None:
        deleting = Deleting()
        client = await deleting.client(era, capabilities={})
        if era is HANDSHAKE:
            reply = await client.call("delete", {"path": "a"})
            assert denial(reply) == denied("delete", "Delete a?", decision="ask")
        else:
            error = await client.error("tools/call", {"name": "delete", "arguments": {"path": "a"}})
            assert error["code"] == -32021
            assert error["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}
        assert deleting.done == []
        assert client.pushes() == []

    run_virtual(scenario)


@in_both_eras
def test_bad_arguments_are_found_before_anybody_is_asked(era: EraName) -> None:
    """ours: tools/call, in order."""

    async def scenario() -> None:
        deleting = Deleting()
        client = await deleting.client(era)
        reply = await client.call("delete", {"path": 5})
        assert "path" in text(reply)
        assert client.pushes() == []

    run_virtual(scenario)


@in_both_eras
def test_an_argument_cannot_pass_for_the_words_of_the_question(era: EraName) -> None:
    """ours: what the client chose is shown as what it is (line breaks, direction marks)."""

    async def scenario() -> None:
        deleting = Deleting()
        client = await deleting.client(era)
        asked = await question(client, "delete", {"path": "a?\nTHIS IS SAFE \u202e"})
        message = str(at(asked.params, "message"))
        assert "\n" not in message
        assert "\u202e" not in message
        assert message.startswith("Delete ")

    run_virtual(scenario)


@in_both_eras
def test_the_authorizers_question_comes_first_and_each_is_asked_once(era: EraName) -> None:
    """ours: ADR-0013. One list of questions; the authorizer is not asked again."""

    async def scenario() -> None:
        decisions: list[str] = []

        @nonblocking
        def authorizer(
            name: str, arguments: Mapping[str, object], context: AuthorizationContext
        ) -> Decision:
            decisions.append(name)
            return ask("May I?")

        deleting = Deleting(Server(authorizer=authorizer))
        client = await deleting.client(era)
        asked = await question(client, "delete", {"path": "a"})
        reply = await asked.answered(YES, accepted(sure=True))
        assert text(reply) == "deleted a"
        assert decisions == ["delete"]
        assert len(deleting.done) == 1

    run_virtual(scenario)


@in_both_eras
def test_a_no_to_the_first_question_ends_it(era: EraName) -> None:
    """ours: ADR-0013."""

    async def scenario() -> None:
        deleting = Deleting(Server(authorizer=asks()))
        client = await deleting.client(era)
        asked = await question(client, "delete", {"path": "a"})
        if era is HANDSHAKE:
            reply = await asked.answered({"action": "decline"})
        else:
            reply = await asked.answered({"action": "decline"}, accepted(sure=True))
        assert denial(reply) == denied("delete", "user decline", decision="ask")
        await settled()
        assert client.pushes() == []
        assert deleting.done == []

    run_virtual(scenario)


def test_each_question_has_the_whole_timeout_and_one_place_is_held() -> None:
    """ours: ADR-0013. The human answers one after the other."""

    async def scenario() -> None:
        deleting = Deleting(Server(authorizer=asks(), limits=Limits(elicitation_timeout=10.0)))
        client = await deleting.client(HANDSHAKE)
        handle = client.start("delete", {"path": "a"})
        await passes(9)
        assert deleting.server.stats()["parked"] == 1
        await client.approve(client.prompt())
        await passes(9)
        assert deleting.server.stats()["parked"] == 1
        await client.answer(client.prompt(), accepted(sure=True))
        assert text(wire(await handle)) == "deleted a"

    run_virtual(scenario)


@in_both_eras
def test_several_parameters_are_asked_one_by_one_or_all_at_once(era: EraName) -> None:
    """ours: asking; MCP 2026-07-28 basic/patterns/mrtr: keys are unique in a request."""
    server = Server()

    @server.tool
    def book(
        context: Context,
        day: str,
        seat: Annotated[Confirm, Ask("A seat on {day}?")],
        meal: Annotated[Confirm, Ask("A meal?")],
    ) -> str:
        """Book, in a thread."""
        return json.dumps([context.transport, day, seat.sure, meal.sure])

    async def scenario() -> None:
        client = Client(server, era=era, capabilities=FORMS)
        await client.greet()
        asked = await question(client, "book", {"day": "Monday"})
        if era is STATELESS:
            assert list(asked.requests) == ["seat", "meal"]
        reply = await outside(asked.answered(accepted(sure=True), accepted(sure=False)))
        assert json.loads(text(reply)) == ["unknown", "Monday", True, False]

    run_virtual(scenario)


@in_both_eras
def test_an_allowed_tool_asks_for_its_parameters_all_the_same(era: EraName) -> None:
    """ours: the tool's own question is not the authorizer's."""

    async def scenario() -> None:
        deleting = Deleting(Server(authorizer=decides(allow())))
        asked = await question(await deleting.client(era), "delete", {"path": "a"})
        assert text(await asked.answered(accepted(sure=True))) == "deleted a"

    run_virtual(scenario)


@in_both_eras
def test_a_tool_with_an_ask_parameter_cannot_ask_for_more(era: EraName) -> None:
    """ours: what was filled in is gone when it is run again, so it is told at once."""

    async def main() -> None:
        server = Server()

        @server.tool(description="Acts.")
        async def act(answer: Annotated[Confirm, Ask("Sure?")]) -> object:
            return InputRequired({"k": Elicit("And?", {"type": "object", "properties": {}})})

        client = Client(server, era=era, capabilities=FORMS)
        await client.greet()
        given: Json = {"action": "accept", "content": {"sure": True}}
        params: Json = {"name": "act", "arguments": {}}
        if era is HANDSHAKE:
            call = client.send("tools/call", params)
            await settled()
            await client.handle({"jsonrpc": "2.0", "id": client.prompt()["id"], "result": given})
            reply = wire(await call)
        else:
            asked = await client.ask("tools/call", params)
            state = at(asked, "result", "requestState")
            reply = await client.ask(
                "tools/call", {**params, "requestState": state, "inputResponses": {"answer": given}}
            )
        assert "must not return InputRequired" in failed(reply)

    run_virtual(main)
