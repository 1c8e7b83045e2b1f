"""K17: what a server wants back is given back as it came, with that call and no other.

`requestState` was parsed and written again, kept for the next request, or sent as null.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_mcp.client.answers import Accept, Decline, ElicitRequest
from raxol_mcp.testing.virtual_loop import run_virtual
from tests.client.misbehaviour.attempts import Error, Says, attempt, list_tools
from tests.client.peers.clients import http_client, memory_client
from tests.client.peers.script import Message, on, reply, script, text

FORM: Message = {"type": "object", "properties": {"v": {"type": "string"}}}
ASK: Message = {
    "k1": {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": FORM}}
}


def required(state: str | None, asked: Message | None = ASK) -> Message:
    """Write a result that asks for input."""
    wanted: Message = {"resultType": "input_required"}
    if asked is not None:
        wanted["inputRequests"] = asked
    if state is not None:
        wanted["requestState"] = state
    return wanted


def calls(received: list[Message], name: str) -> list[Message]:
    """Give the calls of one tool."""
    return [each for each in received if each.get("params", {}).get("name") == name]


STATE = " eyJ+/=é\n "


def test_a_state_goes_back_with_its_call_and_no_other(caplog: pytest.LogCaptureFixture) -> None:
    """BC-115, over HTTP. MCP 2026-07-28 basic/patterns/mrtr §Client requirements."""
    caplog.set_level("DEBUG")

    async def answers(request: ElicitRequest) -> Accept | Decline:
        await asyncio.sleep(0.05)
        return Accept({"v": "yes"}) if request.message == "A?" else Decline()

    async def tries() -> None:
        asks_a = {"k1": {**ASK["k1"], "params": {**ASK["k1"]["params"], "message": "A?"}}}
        data = script(
            "modern",
            on("tools/call a", reply(required(STATE, asks_a)), times=1),
            on("tools/call b", reply(required(None)), times=1),
            on("tools/call", text("done", resultType="complete")),
        )
        async with http_client(data, spec={"call_timeout": 30.0}, elicitation=answers) as (
            client,
            peer,
        ):
            both = [
                asyncio.ensure_future(attempt(client.call_tool(name, {"x": 1}))) for name in "ab"
            ]
            await peer.until(lambda: len(peer.about("tools/call")) == 2)
            assert await attempt(list_tools(client)) == Says(["echo", "slow"])
            assert await asyncio.gather(*both) == [Says("done"), Says("done")]
            received = [each.message for each in peer.received if each.body]
            first, again = calls(received, "a")
            assert again["params"].pop("requestState") == STATE
            assert again["params"].pop("inputResponses") == {
                "k1": {"action": "accept", "content": {"v": "yes"}}
            }
            assert again["id"] != first["id"]
            assert {**again, "id": 0} == {**first, "id": 0}
            first, again = calls(received, "b")
            assert "requestState" not in again["params"]
            assert again["params"].pop("inputResponses") == {"k1": {"action": "decline"}}
            assert {**again, "id": 0} == {**first, "id": 0}
            others = [each for each in received if each.get("method") != "tools/call"]
            assert "inputResponses" not in str(others)
            assert "requestState" not in str(others)
            headers = [each.headers["mcp-name"] for each in peer.about("tools/call")]
            assert sorted(headers) == ["a", "a", "b", "b"]

    asyncio.run(tries())
    assert "eyJ" not in caplog.text


@given(st.text(max_size=60), st.integers(1, 4))
def test_any_state_comes_back_as_it_was(state: str, rounds: int) -> None:
    """The kind: byte for byte, over several rounds, the latest alone."""

    async def tries() -> None:
        states = [f"{state}{n}" for n in range(rounds)]
        asked = [on("tools/call", reply(required(each, None)), times=1) for each in states]
        data = script("modern", *asked, on("tools/call", text("done")))
        async with memory_client(data) as (client, dialer):
            assert await attempt(client.call_tool("a")) == Says("done")
            sent = [each["params"].get("requestState") for each in calls(dialer.received, "a")]
            assert sent == [None, *states]
            assert len({each["id"] for each in calls(dialer.received, "a")}) == rounds + 1

    run_virtual(tries)


@pytest.mark.parametrize("answer", [{"v": 7}, {"w": "x"}, "yes", None, True], ids=str)
def test_what_does_not_fit_the_form_is_never_sent(answer: Any) -> None:
    """MCP client/elicitation: a wrong answer of a handler is a failure of this side, and no yes."""

    async def answers(_request: ElicitRequest) -> Any:
        return Accept(answer) if isinstance(answer, dict) else answer

    async def tries() -> None:
        data = script("modern", on("tools/call", reply(required("s")), times=1))
        async with memory_client(data, elicitation=answers) as (client, dialer):
            outcome = await attempt(client.call_tool("a"))
            assert isinstance(outcome, Error)
            assert outcome.path == ("handler_failed", "elicitation/create")
            assert len(calls(dialer.received, "a")) == 1

    run_virtual(tries)
