"""K01: what belongs to a call goes to the stream of its own POST.

Servers kept answers by bare request id, and sent progress and questions to whoever came last.
"""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from tests.cases.dialects import (
    ASKABLE,
    BOTH_ERAS,
    LEGACY,
    MODERN,
    Dialect,
    accept,
    code_of,
    text_of,
)
from tests.cases.fixture_server import Knobs
from tests.cases.http_peers import HttpExchange, HttpPeer
from tests.cases.peers import Message

ROOM = Knobs(limits={"max_in_flight": 500, "max_in_flight_per_connection": 200})


def test_a_second_post_with_an_open_id_is_refused_and_the_first_is_unaffected() -> None:
    """BC-001. MCP basic §Requests; the id may be used again once it is answered."""
    with HttpExchange() as exchange:

        async def repeats(peer: HttpPeer) -> None:
            await LEGACY.greet(peer)
            first = peer.begin(LEGACY.call(7, "sleep", {"ms": 800, "tag": "A"}))
            await asyncio.sleep(0.1)
            second = await peer.say(LEGACY.call(7, "sleep", {"ms": 50, "tag": "B"}))
            assert (second.status, code_of(second.json())) == (400, -32600)
            (answer,) = (await first.ended()).messages()
            assert (answer["id"], text_of(answer)) == (7, "A")
            again = await peer.say(LEGACY.call(7, "echo", {"text": "again"}))
            assert text_of(again.json()) == "again"
            assert exchange.journal == ["start:sleep:A", "end:sleep:A", "start:echo:again"]

        exchange.run(repeats)


def test_stateless_posts_with_one_id_are_different_requests() -> None:
    """BC-001, the kind: every client of a stateless server may begin with id 1."""
    with HttpExchange(ROOM) as exchange:

        async def all_at_once(peer: HttpPeer) -> None:
            calls = [
                peer.begin(MODERN.call(1, "sleep", {"ms": 100 - at, "tag": f"t{at}"}))
                for at in range(50)
            ]
            for at, call in enumerate(calls):
                (answer,) = (await call.ended()).messages()
                assert text_of(answer) == f"t{at}"

        exchange.run(all_at_once)


def test_progress_of_two_users_with_one_id_and_one_token_is_kept_apart() -> None:
    """BC-003. MCP 2026-07-28 streamable-http §Receiving Messages."""
    with HttpExchange(tokens=True) as exchange:

        async def both(alice: HttpPeer, bob: HttpPeer) -> None:
            steps = {"n": 20, "delay_ms": 50}
            begun = []
            for number, peer in enumerate((alice, bob)):
                values = [100.0 * number + at for at in range(20)]
                message = MODERN.call(
                    1, "progress", {**steps, "values": values}, meta={"progressToken": "tok"}
                )
                begun.append((values, peer.begin(message)))
                await asyncio.sleep(0.2)
            for values, call in begun:
                *progress, answer = (await call.ended()).messages()
                assert [step["params"]["progress"] for step in progress] == values
                assert {step["params"]["progressToken"] for step in progress} == {"tok"}
                assert (answer["id"], text_of(answer)) == (1, "done")

        exchange.run(both, peers=2, tokens=("alice", "bob"))


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
@pytest.mark.parametrize("clients", [2, 50])
@pytest.mark.parametrize("tokens", [(None,), ("alice", "bob")], ids=["anonymous", "two users"])
def test_clients_with_the_same_ids_and_tokens_get_their_own(
    clients: int, era: Dialect, tokens: tuple[str | None, ...]
) -> None:
    """BC-001 and BC-003, the kind: each payload carries its owner's tag, and waits a while."""
    random = Random(clients)
    with HttpExchange(ROOM, tokens=tokens != (None,)) as exchange:

        async def one_round(number: int, round: int, peer: HttpPeer) -> None:
            meta = {"progressToken": "tok", "io.modelcontextprotocol/logLevel": "debug"}
            waits = {"ms": random.randint(0, 9), "tag": f"{number}.{round}"}
            values = [float(number * 100 + at) for at in range(3)]
            steps = {"n": 3, "delay_ms": random.randint(0, 3), "values": values}
            sleeps = peer.begin(era.call(1, "sleep", waits, meta=meta))
            reports = peer.begin(era.call("1", "progress", steps, meta=meta))
            logs = peer.begin(era.call(2, "logs", {"n": number % 5}, meta=meta))
            (slept,) = (await sleeps.ended()).messages()
            assert (slept["id"], text_of(slept)) == (1, f"{number}.{round}")
            *told, done = (await reports.ended()).messages()
            assert [step["params"]["progress"] for step in told] == values
            assert (done["id"], text_of(done)) == ("1", "done")
            *lines, logged = (await logs.ended()).messages()
            assert len(lines) == number % 5
            assert logged["id"] == 2

        async def all_at_once(*peers: HttpPeer) -> None:
            for peer in peers:
                await era.greet(peer, ASKABLE)
            for round in range(3):
                await asyncio.gather(
                    *(one_round(number, round, peer) for number, peer in enumerate(peers))
                )
            strays = [message for peer in peers for message in peer.seen if "method" in message]
            assert strays == [], "nothing came on the stream of a session"

        exchange.run(all_at_once, peers=clients, tokens=tokens)


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
def test_a_question_goes_to_the_human_behind_the_call(era: Dialect) -> None:
    """BC-003, the kind: ten clients are asked at once, about calls with the same id."""
    with HttpExchange(ROOM, tokens=True) as exchange:

        async def all_ask(*peers: HttpPeer) -> None:
            for peer in peers:
                await era.greet(peer, ASKABLE)
            calls = [
                era.call(1, "confirm_delete", {"target": f"t{at}"}, capabilities=ASKABLE)
                for at in range(len(peers))
            ]
            pairs = list(zip(peers, calls, strict=True))
            questions = [await era.put(peer, call) for peer, call in pairs]
            messages = [question.params["message"] for question in questions]
            assert messages == [f"Delete t{at}?" for at in range(len(peers))]
            for number in reversed(range(len(peers))):
                peer, call = pairs[number]
                yes = accept(confirm=number % 2 == 0)
                answer = await era.reply(peer, call, questions[number], yes)
                assert text_of(answer) == ("deleted" if number % 2 == 0 else "kept")
            deleted = [line for line in exchange.journal if "deleted" in line]
            assert sorted(deleted) == [f"deleted:t{at}" for at in range(0, len(peers), 2)]

        exchange.run(all_ask, peers=10, tokens=("alice", "bob"))


def test_nobody_else_can_answer_a_question() -> None:
    """BC-003, the kind: an answer counts in the session that was asked, and nowhere else."""
    with HttpExchange() as exchange:

        async def answers(asked: HttpPeer, other: HttpPeer) -> None:
            for peer in (asked, other):
                await LEGACY.greet(peer, ASKABLE)
            call = LEGACY.call(1, "confirm_delete", {"target": "a"})
            question = await LEGACY.put(asked, call)
            yes: Message = {"jsonrpc": "2.0", "id": question.id, "result": accept(confirm=True)}
            await other.send(yes)
            await asyncio.sleep(1.0)
            assert "deleted:a" not in exchange.journal
            assert asked.answers(1) == other.answers(1) == []
            no = await LEGACY.reply(asked, call, question, {"action": "decline"})
            assert "user decline" in text_of(no, failed=True)
            assert exchange.journal == []

        exchange.run(answers, peers=2)
