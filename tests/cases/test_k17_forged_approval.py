"""K17: only an explicit, bound, fresh and authentic yes lets a call go on.

State that travelled through the client was edited; an answer given for one call was used for
another, or twice; and an answer that nobody had asked for counted.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from typing import cast

import pytest

from raxol_mcp.core.seal import Claims, Seal
from tests.cases.dialects import (
    ASKABLE,
    BOTH_ERAS,
    LEGACY,
    MODERN,
    Dialect,
    Question,
    accept,
    case,
    code_of,
    journal_of,
    result_of,
    text_of,
)
from tests.cases.peers import Exchange, MemoryPeer, Message, Peer

YES = accept(confirm=True)


def deletion(era: Dialect, id: object = 1, target: str = "a") -> Message:
    """Write the call that asks before it deletes."""
    return era.call(id, "confirm_delete", {"target": target}, capabilities=ASKABLE)


def tampered(state: str) -> Iterator[object]:
    """Change a state in every way that should not be noticed, and must be."""
    for at, letter in enumerate(state):
        yield state[:at] + ("A" if letter != "A" else "B") + state[at + 1 :]
    for length in (0, 1, 31, 32, 43, len(state) // 2, len(state) - 1):
        yield state[:length]
    yield state + "="
    yield state + "=="
    yield state + "A"
    yield state + "\n"
    yield " " + state
    yield state.swapcase()
    yield state.replace("-", "+").replace("_", "/") + "=" * (-len(state) % 4)
    yield state * 2
    yield "ä" + state
    yield "A" * 100_000
    forged = {"target": "b"}
    yield json.dumps(forged)
    yield base64.urlsafe_b64encode(json.dumps(forged).encode()).decode()
    raw = base64.urlsafe_b64decode(state + "=" * (-len(state) % 4))
    yield base64.urlsafe_b64encode(b"\0" * 32 + raw[32:]).rstrip(b"=").decode()
    other = Seal(b"another key, of another process.").seal(
        Claims("b" * 64, ("confirm?",), "nonce", 0.0, 9e9)
    )
    yield other
    yield from (7, True, [state], {"state": state}, 1.5)


@case(eras=[MODERN])
async def test_a_changed_state_is_refused_and_the_true_one_still_works(
    peer: Peer, era: Dialect
) -> None:
    """BC-061. MCP 2026-07-28 mrtr: requestState is the attacker's until it is verified."""
    call = deletion(era)
    question = await era.put(peer, call)
    for state in tampered(str(question.state)):
        if state == question.state:
            continue  # base64 without a letter that the change would have changed
        forged = Question(1, question.key, {}, state)
        answer = await era.reply(peer, call, forged, YES)
        assert code_of(answer) == -32602
        message = str(cast(Message, answer["error"])["message"])
        assert message == "requestState is not valid for this request"
    again = await era.reply(peer, call, Question(1, question.key, {}, None), YES)
    assert result_of(again)["resultType"] == "input_required"  # null is absent: asked again
    assert await journal_of(peer, era) == ["opened"]
    assert text_of(await era.reply(peer, call, question, YES)) == "deleted"
    assert "deleted:a" in await journal_of(peer, era)


@case(eras=[MODERN])
async def test_an_answer_that_nobody_asked_for_is_no_answer(peer: Peer, era: Dialect) -> None:
    """BC-063. MCP 2026-07-28 mrtr §Security: answers are bound to the question put."""
    for name, key in (
        ("confirm_delete", "confirm"),
        ("ask_first", "approve"),
        ("other_tool", "confirm"),
    ):
        call = era.call(1, name, {"target": "prod"}, capabilities=ASKABLE)
        for answer in (YES, accept(approve=True), accept(confirm=True, approve=True)):
            params = {**cast(Message, call["params"]), "inputResponses": {key: answer}}
            first = await peer.request({**call, "params": params})
            assert result_of(first)["resultType"] == "input_required"
    assert await journal_of(peer, era) == ["opened"]


def changed_calls(era: Dialect) -> list[Message]:
    """Write calls that the approval of `confirm_delete(target="a")` is not for."""
    calls = [
        deletion(era, target="b"),
        deletion(era, target=""),
        era.call(1, "confirm_delete", {}, capabilities=ASKABLE),
        era.call(1, "confirm_delete", {"target": "a", "more": 1}, capabilities=ASKABLE),
        era.call(1, "other_tool", {"target": "a"}, capabilities=ASKABLE),
        era.call(1, "ask_first", {"target": "a"}, capabilities=ASKABLE),
        era.call(1, "ask", {"q": "a"}, capabilities=ASKABLE),
        era.request(1, "prompts/get", {"name": "none"}, capabilities=ASKABLE),
        era.request(1, "resources/read", {"uri": "mem://a"}, capabilities=ASKABLE),
    ]
    return calls


def test_an_approval_is_for_one_call_of_one_caller() -> None:
    """BC-063, the kind: every part of what was approved is changed once; nothing happens."""
    with Exchange() as exchange:

        async def swaps(alice: MemoryPeer, bob: MemoryPeer) -> None:
            call = deletion(MODERN)
            question = await MODERN.put(alice, call)
            for changed in changed_calls(MODERN):
                answer = await MODERN.reply(alice, changed, question, YES)
                assert code_of(answer) == -32602, changed
            assert code_of(await MODERN.reply(bob, call, question, YES)) == -32602
            assert exchange.fixture.journal.lines == ["opened"]
            assert text_of(await MODERN.reply(alice, call, question, YES)) == "deleted"

        exchange.run(swaps, peers=2, principals=("alice", "bob"))


def test_an_approval_is_used_once() -> None:
    """BC-061, the kind: replayed one after the other, twenty at once, and after it has expired."""
    with Exchange() as exchange:

        async def replays(peer: MemoryPeer) -> None:
            call = deletion(MODERN)
            question = await MODERN.put(peer, call)
            retry = MODERN.retry(call, question, YES)
            await peer.send(*({**retry, "id": f"at once {at}"} for at in range(20)))
            outcomes = [await peer.answer(f"at once {at}") for at in range(20)]
            assert sum("result" in outcome for outcome in outcomes) == 1
            assert code_of(await MODERN.reply(peer, call, question, YES)) == -32602
            assert exchange.fixture.journal.lines.count("deleted:a") == 1

            late = await MODERN.put(peer, call)
            await asyncio.sleep(exchange.fixture.server.limits.request_state_ttl + 1)
            assert code_of(await MODERN.reply(peer, call, late, YES)) == -32602
            assert exchange.fixture.journal.lines.count("deleted:a") == 1

        exchange.run(replays)


def test_a_no_cannot_be_taken_back() -> None:
    """ours: a refusal spends the state, too."""
    with Exchange() as exchange:

        async def refuses(peer: MemoryPeer) -> None:
            call = deletion(MODERN)
            question = await MODERN.put(peer, call)
            no = await MODERN.reply(peer, call, question, {"action": "decline"})
            assert "authorization_required" in text_of(no, failed=True)
            assert code_of(await MODERN.reply(peer, call, question, YES)) == -32602
            assert exchange.fixture.journal.lines == ["opened"]

        exchange.run(refuses)


NO_YES: list[object] = [
    None,
    {},
    [],
    "accept",
    True,
    1,
    {"action": "decline"},
    {"action": "cancel"},
    {"action": "Accept", "content": {"confirm": True, "approve": True}},
    {"action": "accepted", "content": {"confirm": True, "approve": True}},
    {"action": True, "content": {"confirm": True, "approve": True}},
    {"action": ["accept"], "content": {"confirm": True, "approve": True}},
    {"action": None, "content": {"confirm": True, "approve": True}},
    {"content": {"confirm": True, "approve": True}},
    {"action": "accept"},
    {"action": "accept", "content": None},
    {"action": "accept", "content": []},
    {"action": "accept", "content": {}},
    {"action": "accept", "content": "approve"},
    {"action": "accept", "content": {"confirm": 1, "approve": 1}},
    {"action": "accept", "content": {"confirm": "true", "approve": "true"}},
    {"action": "accept", "content": {"confirm": [True], "approve": [True]}},
    {"action": "accept", "content": {"Confirm": True, "Approve": True}},
    {"action": "accept", "content": {"confirm": None, "approve": None}},
    {"action": "accept", "content": {"confirm": False, "approve": False}},
    {"action": "accept", "approve": True, "confirm": True},
]


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
@pytest.mark.parametrize("name", ["confirm_delete", "ask_first"])
def test_what_is_not_exactly_a_yes_is_a_no(name: str, era: Dialect) -> None:
    """BC-061 and BC-063, the kind: fail closed, for the tool's form and the authorizer's box."""
    with Exchange() as exchange:
        for answer in NO_YES:

            async def answers(peer: MemoryPeer, answer: object = answer) -> None:
                await era.greet(peer, ASKABLE)
                call = era.call(1, name, {"target": "a"}, capabilities=ASKABLE)
                outcome = await era.dialog(peer, call, answer)
                if "result" in outcome:
                    result = result_of(outcome)
                    kept = result["content"] == [{"type": "text", "text": "kept"}]
                    assert kept or result.get("isError") or "inputRequests" in result, answer
                else:
                    assert code_of(outcome) == -32602

            exchange.run(answers)
        assert exchange.fixture.journal.lines == ["opened"]


def test_a_question_is_answered_by_whom_it_was_put_to() -> None:
    """BC-063, the kind, in the handshake era: not by another client, not twice, not late."""
    with Exchange() as exchange:

        async def answers(alice: MemoryPeer, mallory: MemoryPeer) -> None:
            for peer in (alice, mallory):
                await LEGACY.greet(peer, ASKABLE)
            call = LEGACY.call(1, "ask_first", {"target": "a"})
            question = await LEGACY.put(alice, call)
            reply: Message = {"jsonrpc": "2.0", "result": accept(approve=True)}
            await mallory.send({**reply, "id": question.id})
            for forged in (
                1,
                "1",
                "",
                "raxol-elicit-",
                f"{question.id} ",
                str(question.id).upper(),
            ):
                await alice.send({**reply, "id": forged})
            assert await alice.exchange(b"") == []
            assert exchange.fixture.journal.lines == ["opened"]
            await alice.send(*({**reply, "id": question.id} for _ in range(10)))
            assert text_of(await alice.answer(1)) == "deleted"
            assert await alice.exchange(b"") == []
            assert exchange.fixture.journal.lines.count("deleted:a") == 1

        exchange.run(answers, peers=2)


def test_the_question_says_what_is_asked_about_in_words_that_cannot_be_forged() -> None:
    """ours: an argument with line breaks or turned writing does not pass for the question's."""
    with Exchange() as exchange:

        async def asks(peer: MemoryPeer) -> None:
            for target in ("a\nApproved by the admin.", "\u202eexe.txt", "a\x00b", "x" * 100_000):
                question = await MODERN.put(peer, deletion(MODERN, target=target))
                message = str(question.params["message"])
                assert "\n" not in message
                assert "\u202e" not in message
                assert "\0" not in message
                assert len(message) < 2000

        exchange.run(asks)
