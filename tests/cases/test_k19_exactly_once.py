"""K19: a call ends once, however many things would end it at the same moment.

A cancelled call was answered after all, or twice, or the late end of its handler took the server
down; a call that had timed out was executed again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Final

import pytest

from raxol_mcp import NotReady
from tests.cases.dialects import (
    ASKABLE,
    BOTH_ERAS,
    LEGACY,
    MODERN,
    Dialect,
    accept,
    case,
    journal_of,
    text_of,
)
from tests.cases.fixture_server import Knobs
from tests.cases.peers import Exchange, MemoryPeer, Message, Peer


def cancel(id: object) -> Message:
    """Write the cancellation of a request."""
    method = "notifications/cancelled"
    return {"jsonrpc": "2.0", "method": method, "params": {"requestId": id, "reason": "user"}}


@case()
async def test_a_cancelled_call_ends_and_is_not_answered(peer: Peer, era: Dialect) -> None:
    """BC-071. MCP 2026-07-28 cancellation: no further messages for that request."""
    await era.greet(peer)
    arguments = {"ms": 30_000, "tag": "a"}
    await peer.send(era.call(2, "sleep", arguments, meta={"progressToken": 2}))
    while "start:sleep:a" not in await journal_of(peer, era):
        pass  # each look is a round trip
    await peer.send(cancel(2), cancel(2))
    while "cancelled:a" not in (lines := await journal_of(peer, era)):
        pass
    assert "end:sleep:a" not in lines
    assert text_of(await peer.request(era.call(4, "echo", {"text": "alive"}))) == "alive"
    assert text_of(await peer.request(era.call(2, "echo", {"text": "again"}))) == "again"
    assert len(peer.answers(2)) == 1


# -- schedules -------------------------------------------------------------------------------------

SCHEDULES: Final = 2_500
TIMEOUT: Final = 0.005
KNOBS: Final = Knobs(limits={"callback_timeout": TIMEOUT, "elicitation_timeout": TIMEOUT})


@dataclass
class Plan:
    """What happens to one call, at which millisecond; None: it does not happen."""

    id: object
    tool: str
    finish: int
    cancel: int | None
    again: int | None  # a second cancel
    answer: int | None  # to the question, where there is one
    twice: bool  # the answer comes twice
    asked: Message = field(default_factory=dict)  # the question about it

    @classmethod
    def drawn(cls, random: Random, id: object, tools: list[str]) -> Plan:
        """Draw a plan."""

        def maybe(chance: float) -> int | None:
            return random.randint(0, 10) if random.random() < chance else None

        return cls(
            id,
            random.choice(tools),
            random.randint(0, 10),
            maybe(0.4),
            maybe(0.2),
            maybe(0.8),
            random.random() < 0.3,
        )


Act = Callable[[], Awaitable[object]]


async def answer(peer: MemoryPeer, plan: Plan) -> None:
    """Say yes to the question about one call, if there is one by now."""
    for message in [m for m in peer.seen if "method" in m and "id" in m]:
        if plan.tool == "ask_first" and message["id"] == plan.asked.get("id"):
            reply = {"jsonrpc": "2.0", "id": message["id"], "result": accept(approve=True)}
            await peer.send(*[reply] * (2 if plan.twice else 1))


async def end(how: Callable[[], object]) -> None:
    """End the connection, or its input."""
    how()


def acts_of(peer: MemoryPeer, plan: Plan) -> list[tuple[int, Act]]:
    """List what the client does about one call, and when."""
    cancels = [ms for ms in (plan.cancel, plan.again) if ms is not None]
    acts: list[tuple[int, Act]] = [(ms, partial(peer.send, cancel(plan.id))) for ms in cancels]
    if plan.answer is not None:
        acts.append((plan.answer, partial(answer, peer, plan)))
    return acts


async def play(
    peer: MemoryPeer, era: Dialect, plans: list[Plan], leaves: int | None, closes: int | None
) -> None:
    """Let everything happen at its millisecond, in a drawn order where that is the same."""
    loop = asyncio.get_running_loop()
    start = loop.time()

    async def at(ms: int, act: Act) -> None:
        await asyncio.sleep(max(0.0, start + ms / 1000 - loop.time()))
        with suppress(NotReady):  # the client has left meanwhile
            await act()

    for plan in plans:
        arguments: Message = {"ms": plan.finish, "tag": str(plan.id)}
        if plan.tool == "ask_first":
            arguments = {"target": str(plan.id)}
        after = len(peer.seen)
        await peer.send(era.call(plan.id, plan.tool, arguments, capabilities=ASKABLE))
        for _ in range(8):  # turns, not time
            await asyncio.sleep(0)
        plan.asked = next((m for m in peer.seen[after:] if "method" in m and "id" in m), {})
    acts = [act for plan in plans for act in acts_of(peer, plan)]
    acts += [(ms, partial(end, peer.leave)) for ms in (leaves,) if ms is not None]
    acts += [(ms, partial(end, peer.transport.end_input)) for ms in (closes,) if ms is not None]
    Random(len(plans)).shuffle(acts)
    await asyncio.gather(*(at(ms, act) for ms, act in acts))
    await asyncio.sleep(1.0)


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
def test_every_schedule_ends_every_call_once(era: Dialect) -> None:
    """BC-071, the kind: finish, cancel, timeout, answer, close and disconnect, at 0 to 10 ms.

    2,500 schedules in each era. Ties are common: at one millisecond whatever comes first wins,
    and there is still one end.
    """
    random, deleted = Random(19), 0
    tools = ["sleep", "sleep", "ask_first"] if era is LEGACY else ["sleep"]
    with Exchange(KNOBS) as exchange:
        journal = exchange.fixture.journal.lines
        for number in range(SCHEDULES):
            plans = [
                Plan.drawn(random, f"{number}.{at}", tools) for at in range(random.randint(1, 3))
            ]
            leaves = random.randint(0, 10) if random.random() < 0.15 else None
            closes = random.randint(0, 10) if random.random() < 0.15 else None
            before = len(journal)

            async def schedule(
                peer: MemoryPeer,
                plans: list[Plan] = plans,
                leaves: int | None = leaves,
                closes: int | None = closes,
            ) -> None:
                await era.greet(peer, ASKABLE)
                await play(peer, era, plans, leaves, closes)
                for plan in plans:
                    _check(peer, plan, ended_by_client=leaves is not None or closes is not None)

            exchange.run(schedule)
            ran = Counter(journal[before:])
            for plan in plans:
                tag = plan.id
                starts = ran[f"start:sleep:{tag}"]
                assert starts == ran[f"end:sleep:{tag}"] + ran[f"cancelled:{tag}"] <= 1, plan
                assert ran[f"deleted:{tag}"] <= 1, plan
                deleted += ran[f"deleted:{tag}"]
        assert (deleted > 100) is (era is LEGACY), "approvals are among the schedules"


def _check(peer: MemoryPeer, plan: Plan, *, ended_by_client: bool) -> None:
    answers = peer.answers(plan.id)
    assert len(answers) <= 1, plan
    cancels = [ms for ms in (plan.cancel, plan.again) if ms is not None]
    if not cancels and not ended_by_client:
        assert len(answers) == 1, plan
    first_end = min(plan.finish, round(TIMEOUT * 1000))
    if plan.tool == "sleep" and cancels and min(cancels) < first_end:
        assert answers == [], plan
    if answers and plan.tool == "sleep" and plan.finish < first_end and not cancels:
        assert text_of(answers[0]) == str(plan.id), plan


def test_a_timeout_is_one_answer_and_the_late_end_is_none() -> None:
    """ours: a call that has timed out is over, whatever its function still does."""
    with Exchange(Knobs(limits={"callback_timeout": 0.1})) as exchange:

        async def waits(peer: MemoryPeer) -> None:
            answer = await peer.request(MODERN.call(1, "sleep", {"ms": 10_000, "tag": "t"}))
            assert text_of(answer, failed=True) == '{"error":"callback_timeout"}'
            await asyncio.sleep(60.0)
            assert len(peer.answers(1)) == 1
            assert exchange.fixture.journal.lines[-2:] == ["start:sleep:t", "cancelled:t"]

        exchange.run(waits)


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
def test_a_second_call_with_an_open_id_is_refused_and_not_run(era: Dialect) -> None:
    """BC-001. MCP basic §Requests: not used again before it is answered; then it may be."""
    with Exchange() as exchange:

        async def repeats(peer: MemoryPeer) -> None:
            await era.greet(peer)
            await peer.send(era.call(7, "sleep", {"ms": 50, "tag": "A"}))
            await peer.send(era.call(7, "sleep", {"ms": 5, "tag": "B"}))
            refused = await peer.answer(None)
            assert "in flight" in str(refused["error"])
            assert text_of(await peer.answer(7)) == "A"
            assert text_of(await peer.request(era.call(7, "echo", {"text": "again"}))) == "again"
            assert "start:sleep:B" not in exchange.fixture.journal.lines

        exchange.run(repeats)
