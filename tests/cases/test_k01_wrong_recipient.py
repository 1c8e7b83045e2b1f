"""K01: every answer, progress, log and question goes to whoever it belongs to.

A bare id, "the current transport" or a context variable decided where messages went, so one client
got another's.
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
    text_of,
)
from tests.cases.fixture_server import Knobs
from tests.cases.peers import Exchange, MemoryPeer

ROOM = Knobs(limits={"max_in_flight": 500, "max_in_flight_per_connection": 10})


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
@pytest.mark.parametrize("clients", [2, 50])
def test_clients_with_the_same_ids_and_tokens_get_their_own(clients: int, era: Dialect) -> None:
    """BC-001 and BC-003, the kind: each payload carries its owner's tag, and waits a while."""
    random = Random(clients)
    with Exchange(ROOM) as exchange:

        async def all_at_once(*peers: MemoryPeer) -> None:
            for peer in peers:
                await era.greet(peer, ASKABLE)
            for round in range(3):
                for number, peer in enumerate(peers):
                    meta = {"progressToken": "tok", "io.modelcontextprotocol/logLevel": "debug"}
                    waits = {"ms": random.randint(0, 9), "tag": f"{number}.{round}"}
                    steps = {"n": number + 1, "delay_ms": random.randint(0, 3)}
                    await peer.send(
                        era.call(1, "sleep", waits, meta=meta),
                        era.call("1", "progress", steps, meta=meta),
                        era.call(2, "logs", {"n": number + 1}, meta=meta),
                    )
                await asyncio.sleep(1.0)
            for number, peer in enumerate(peers):
                assert [text_of(m) for m in peer.answers(1)] == [
                    f"{number}.{at}" for at in range(3)
                ]
                assert len(peer.answers("1")) == len(peer.answers(2)) == 3
                totals = [params["total"] for params in peer.told("notifications/progress")]
                assert totals == [float(number + 1)] * (number + 1) * 3
                assert len(peer.told("notifications/message")) == (number + 1) * 3

        exchange.run(all_at_once, peers=clients, principals=[f"p{at}" for at in range(clients)])


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
def test_a_question_goes_to_the_human_behind_the_call(era: Dialect) -> None:
    """BC-003, the kind: ten clients are asked at once, about calls with the same id."""
    with Exchange(ROOM) as exchange:

        async def all_ask(*peers: MemoryPeer) -> None:
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
            deleted = [line for line in exchange.fixture.journal.lines if "deleted" in line]
            assert sorted(deleted) == [f"deleted:t{at}" for at in range(0, len(peers), 2)]

        exchange.run(all_ask, peers=10)


def test_one_pipe_speaks_both_eras_with_the_same_ids_in_turn() -> None:
    """ours: one id has one call, whatever era it was asked in (ADR-0006)."""
    with Exchange() as exchange:

        async def speaks(peer: MemoryPeer) -> None:
            await LEGACY.greet(peer)
            await peer.send(
                LEGACY.call(1, "sleep", {"ms": 20, "tag": "legacy"}),
                MODERN.call(1, "sleep", {"ms": 1, "tag": "modern"}),
            )
            assert text_of(await peer.answer(1)) == "legacy"
            assert "in flight" in str((await peer.answer(None))["error"])
            modern = await peer.request(MODERN.call(1, "sleep", {"ms": 1, "tag": "modern"}))
            assert text_of(modern) == "modern"

        exchange.run(speaks)
