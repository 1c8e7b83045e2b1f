"""K22: whatever ends a call, nothing of it stays behind, and the next call works.

An entry that only the expected answer removed was kept for ever when the answer was an error, came
late, or never came.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import pytest

from raxol_mcp.core.peers import Peer as CorePeer
from tests.cases.dialects import (
    ASKABLE,
    BOTH_ERAS,
    LEGACY,
    MODERN,
    Dialect,
    accept,
    text_of,
)
from tests.cases.fixture_server import Fixture, Knobs
from tests.cases.peers import Exchange, MemoryPeer, Message

Ending = Callable[[MemoryPeer, Dialect], Awaitable[None]]


def kept(fixture: Fixture, peer: MemoryPeer) -> dict[str, int]:
    """Count what is kept for calls while the connection is there."""
    runtime = fixture.server._runtime
    core = runtime.core
    known: CorePeer | None = core.ledger.peers.find(peer.transport.connection)
    counts = {
        "in_flight": core.ledger.slots.taken,
        "stopping": core.ledger.stopping,
        "parked": len(core.ledger.parking),
        "approved": len(core.ledger.approved),
        "deadlines": len(core.ledger.deadlines),
        "workers": runtime.working,
        "questions": len(runtime._questions),
    }
    if known is not None:
        counts["calls"] = len(known.calls)
        counts["asks"] = len(known.asks)
        counts["listening"] = len(known.listening)
    return {name: number for name, number in counts.items() if number}


def cancel(id: object) -> Message:
    """Write the cancellation of a request."""
    method = "notifications/cancelled"
    return {"jsonrpc": "2.0", "method": method, "params": {"requestId": id}}


def answered(name: str, arguments: Message | None = None) -> Ending:
    """Build an ending: the call is answered, with a result or a failure."""

    async def ends(peer: MemoryPeer, era: Dialect) -> None:
        await peer.request(era.call(1, name, arguments or {}))

    return ends


def read(method: str, params: Message) -> Ending:
    """Build an ending: a read is answered."""

    async def ends(peer: MemoryPeer, era: Dialect) -> None:
        await peer.request(era.request(1, method, params))

    return ends


def replied(name: str, answer: object) -> Ending:
    """Build an ending: a question was put, and answered like this."""

    async def ends(peer: MemoryPeer, era: Dialect) -> None:
        arguments = {"ask_first": {"target": "a"}, "ask": {"q": "?"}}.get(name, {})
        await era.dialog(peer, era.call(1, name, arguments, capabilities=ASKABLE), answer)

    return ends


def interrupted(name: str, arguments: Message, *, question: bool = False) -> Ending:
    """Build an ending: the call is cancelled, while it runs or while a question is open."""

    async def ends(peer: MemoryPeer, era: Dialect) -> None:
        call = era.call(1, name, arguments, capabilities=ASKABLE)
        if question:
            await era.put(peer, call)
        else:
            await peer.send(call)
        await peer.send(cancel(1))

    return ends


async def times_out(peer: MemoryPeer, era: Dialect) -> None:
    """The function runs for longer than it may."""
    answer = await peer.request(era.call(1, "sleep", {"ms": 10_000_000, "tag": "t"}))
    assert "callback_timeout" in text_of(answer, failed=True)


async def nobody_answers(peer: MemoryPeer, era: Dialect) -> None:
    """The question stays open until its time is over."""
    for name in ("ask_first", "ask_midway"):
        arguments = {"target": "a"} if name == "ask_first" else {"q": "?"}
        await era.put(peer, era.call(1, name, arguments))
        assert text_of(await peer.answer(1, after=len(peer.seen)), failed=True)


async def answers_with_an_error(peer: MemoryPeer, era: Dialect) -> None:
    """The client fails to ask its human."""
    for name in ("ask_first", "ask_midway"):
        arguments = {"target": "a"} if name == "ask_first" else {"q": "?"}
        question = await era.put(peer, era.call(1, name, arguments))
        error = {"code": -1, "message": "no human here"}
        after = len(peer.seen)
        await peer.send({"jsonrpc": "2.0", "id": question.id, "error": error})
        assert text_of(await peer.answer(1, after=after), failed=True)


async def answers_late(peer: MemoryPeer, era: Dialect) -> None:
    """The answer comes when nobody waits for it any more."""
    question = await era.put(peer, era.call(1, "ask_first", {"target": "a"}))
    await peer.send(cancel(1))
    await peer.send({"jsonrpc": "2.0", "id": question.id, "result": accept(approve=True)})


async def asks_too_often(peer: MemoryPeer, era: Dialect) -> None:
    """More questions than may be open, then all of them are dropped."""
    calls = [era.call(at, "ask_first", {"target": str(at)}) for at in range(40)]
    for call in calls:
        await peer.send(call)
    await asyncio.sleep(0.1)
    await peer.send(*(cancel(at) for at in range(40)))


async def is_refused_as_busy(peer: MemoryPeer, era: Dialect) -> None:
    """More calls than may run, then all of them end."""
    await peer.send(*(era.call(at, "sleep", {"ms": 50, "tag": "t"}) for at in range(40)))
    for at in range(40):
        await peer.answer(at)


async def sends_nonsense(peer: MemoryPeer, era: Dialect) -> None:
    """Messages that never become a call."""
    await peer.send_bytes(b"{broken\n[]\n[1]\n")
    await peer.send({"jsonrpc": "2.0", "id": None, "method": "tools/list"})
    await peer.send({"jsonrpc": "2.0", "id": "x", "result": {}})
    await peer.send(era.request(1, "no/such/method"))


async def repeats_an_id(peer: MemoryPeer, era: Dialect) -> None:
    """The second call of an open id is refused."""
    call = era.call(1, "sleep", {"ms": 50, "tag": "t"})
    await peer.send(call, call)
    await peer.answer(1)


ENDINGS: Final[dict[str, Ending]] = {
    "result": answered("echo", {"text": "x"}),
    "failure": answered("boom"),
    "exit": answered("exits"),
    "cancels itself": answered("cancels_itself"),
    "no such tool": answered("no_such_tool"),
    "bad arguments": answered("echo", {"text": 7}),
    "denied": answered("off"),
    "cannot be sent": answered("out", {"mode": "nan"}),
    "wrong structure": answered("out_point", {"mode": "wrong"}),
    "read": read("resources/read", {"uri": "mem://a"}),
    "failed read": read("resources/read", {"uri": "mem://boom"}),
    "no such resource": read("resources/read", {"uri": "mem://zzz"}),
    "denied read": read("resources/read", {"uri": "mem://admin"}),
    "prompt": read("prompts/get", {"name": "none"}),
    "bad cursor": read("tools/list", {"cursor": "x"}),
    "yes": replied("ask_first", accept(approve=True)),
    "no": replied("ask_first", {"action": "decline"}),
    "not a yes": replied("ask_first", accept(approve=1)),
    "form": replied("ask_age", accept(age=20)),
    "bad form": replied("ask_age", accept(age=200)),
    "round": replied("ask", {"action": "cancel"}),
    "cancelled": interrupted("sleep", {"ms": 60_000, "tag": "t"}),
    "cancelled at once": interrupted("echo", {"text": "x"}),
    "cancelled question": interrupted("ask_first", {"target": "a"}, question=True),
    "cancelled form": interrupted("ask_age", {}, question=True),
    "cancelled round": interrupted("ask", {"q": "?"}, question=True),
    "timeout": times_out,
    "busy": is_refused_as_busy,
    "nonsense": sends_nonsense,
    "repeated id": repeats_an_id,
}
IN_A_SESSION: Final[dict[str, Ending]] = {
    "cancelled midway": interrupted("ask_midway", {"q": "?"}, question=True),
    "nobody answers": nobody_answers,
    "answered with an error": answers_with_an_error,
    "answered late": answers_late,
    "too many questions": asks_too_often,
}
EVERY: Final = [
    *((era, name, ending) for era in BOTH_ERAS for name, ending in ENDINGS.items()),
    *((LEGACY, name, ending) for name, ending in IN_A_SESSION.items()),
]


@pytest.mark.parametrize(("era", "name", "ending"), EVERY, ids=lambda value: str(value)[:30])
def test_nothing_is_kept_of_a_call_that_has_ended(era: Dialect, name: str, ending: Ending) -> None:
    """BC-071, the kind: three times over, with the connection still there."""
    with Exchange(Knobs(limits={"callback_timeout": 3000.0})) as exchange:

        async def ends(peer: MemoryPeer) -> None:
            await era.greet(peer, ASKABLE)
            for _ in range(3):
                await ending(peer, era)
                await asyncio.sleep(0.2)
                assert kept(exchange.fixture, peer) == {}
                answer = await peer.request(era.call("next", "echo", {"text": "works"}))
                assert text_of(answer) == "works"

        exchange.run(ends)


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
def test_nothing_is_kept_of_a_connection_that_has_gone(era: Dialect) -> None:
    """The same when the client goes while the call is in each of its states."""
    with Exchange() as exchange:
        for name, arguments in (
            ("sleep", {"ms": 60_000, "tag": "t"}),
            ("ask_first", {"target": "a"}),
            ("ask_midway", {"q": "?"}),
            ("ask", {"q": "?"}),
            ("progress", {"n": 1000, "delay_ms": 100}),
        ):
            for leaves in ("close", "end of input", "close after end of input"):

                async def goes(
                    peer: MemoryPeer,
                    name: str = name,
                    arguments: Message = arguments,  # type: ignore[assignment]  # of one shape each
                    leaves: str = leaves,
                ) -> None:
                    await era.greet(peer, ASKABLE)
                    meta = {"progressToken": 1}
                    await peer.send(era.call(1, name, arguments, meta=meta, capabilities=ASKABLE))
                    await asyncio.sleep(0.05)
                    if leaves != "close":
                        peer.transport.end_input()
                        await asyncio.sleep(0.05)
                    if leaves != "end of input":
                        peer.leave()

                exchange.run(goes)


def test_spent_states_are_forgotten_when_they_have_expired() -> None:
    """ours: what makes an approval single-use is kept as long as the approval could be used."""
    with Exchange() as exchange:

        async def approves(peer: MemoryPeer) -> None:
            for at in range(20):
                call = MODERN.call(at, "ask_first", {"target": "a"}, capabilities=ASKABLE)
                await MODERN.dialog(peer, call, accept(approve=True))
            assert exchange.fixture.server.stats()["spent"] == 20
            await asyncio.sleep(exchange.fixture.server.limits.request_state_ttl + 1)
            call = MODERN.call(99, "ask_first", {"target": "a"}, capabilities=ASKABLE)
            await MODERN.dialog(peer, call, accept(approve=True))
            assert exchange.fixture.server.stats()["spent"] == 1

        exchange.run(approves)
