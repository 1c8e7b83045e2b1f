"""K11: whoever is slow holds nobody else.

Servers read no answer while they waited for it, blocked on a full pipe, or kept their own answers
in a buffer until the end.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.cases.dialects import (
    ASKABLE,
    BOTH_ERAS,
    LEGACY,
    MODERN,
    STDIO,
    Dialect,
    case,
    code_of,
    result_of,
    text_of,
)
from tests.cases.fixture_server import Knobs
from tests.cases.peers import Exchange, MemoryPeer, Message, Peer, StdioPeer

MIB = 1024 * 1024


@case(wires=[STDIO])
async def test_large_arguments_come_back_whole(peer: Peer, era: Dialect) -> None:
    """BC-037. Past the limit of a message there is an error, and the pipe lives."""
    await era.greet(peer)
    for size in (5 * 1024, 70 * 1024, MIB):
        answer = await peer.request(era.call(size, "echo", {"text": "A" * size}))
        assert text_of(answer) == "A" * size
    big = await peer.request(era.call(2, "big", {"bytes": 8 * MIB}))
    assert text_of(big) == "A" * 8 * MIB
    await peer.send(era.call(3, "echo", {"text": "A" * 8 * MIB}))
    assert code_of(await peer.answer(None)) == -32600
    assert text_of(await peer.request(era.call(4, "echo", {"text": "alive"}))) == "alive"


@case(wires=[STDIO], eras=[LEGACY], knobs=Knobs(limits={"max_message_bytes": 9 * MIB}))
async def test_a_raised_limit_lets_larger_messages_in(peer: Peer, era: Dialect) -> None:
    """BC-037, with 8 MiB of arguments."""
    await era.greet(peer)
    answer = await peer.request(era.call(1, "echo", {"text": "A" * 8 * MIB}))
    assert text_of(answer) == "A" * 8 * MIB


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
def test_a_client_may_write_fifty_calls_before_it_reads(era: Dialect) -> None:
    """BC-037. 5 MB fill every pipe in both directions; back-pressure ends once output is read."""

    async def scenario() -> None:
        peer = await StdioPeer.start()
        try:
            await era.greet(peer)
            peer.stop_reading()
            text = "A" * 100 * 1024

            async def writes() -> None:
                for id in range(50):
                    await peer.send(era.call(id, "echo", {"text": text}))

            writing = asyncio.ensure_future(writes())
            await asyncio.wait([writing], timeout=0.3)
            peer.read_on()
            await writing
            for id in range(50):
                assert text_of(await peer.answer(id)) == text
            assert await peer.finish() == 0
        finally:
            await peer.kill()

    asyncio.run(scenario())


def test_an_answer_leaves_at_once() -> None:
    """BC-047. It is readable while stdin is still open, and nothing more is sent."""

    async def greets(peer: Peer) -> None:
        await LEGACY.greet(peer)
        assert "tools" in result_of(await peer.request(MODERN.request(1, "tools/list")))

    StdioPeer.run(greets, Knobs())


@case(eras=[LEGACY])
async def test_a_client_that_does_not_answer_holds_one_call(peer: Peer, era: Dialect) -> None:
    """BC-069. Both kinds of question: parked before the tool runs, and in the middle of it."""
    await era.greet(peer, {**ASKABLE, "roots": {"listChanged": True}})
    await era.put(peer, era.call(1, "ask", {"q": "?"}))
    await era.put(peer, era.call(2, "ask_midway", {"q": "?"}))
    await era.put(peer, era.call(3, "ask_first", {"target": "a"}))
    assert text_of(await peer.request(era.call(4, "echo", {"text": "x"}))) == "x"
    assert result_of(await peer.request(era.request(5, "ping"))) == {}
    for id in (1, 2, 3):
        assert peer.answers(id) == []
        cancel = {"method": "notifications/cancelled", "params": {"requestId": id}}
        await peer.send({"jsonrpc": "2.0", **cancel})


@case(wires=[STDIO])
async def test_a_function_that_blocks_holds_its_own_call(peer: Peer, era: Dialect) -> None:
    """BC-069, the kind: a plain function runs in a thread of its own."""
    await era.greet(peer)
    await peer.send(*(era.call(id, "sync_block", {"ms": 200}) for id in range(8)))
    assert text_of(await peer.request(era.call("x", "echo", {"text": "x"}))) == "x"
    assert peer.answers(0) == []
    for id in range(8):
        assert text_of(await peer.answer(id)) == "done"


ACTORS = {
    "a call that sleeps": lambda era: era.call("slow", "sleep", {"ms": 60_000, "tag": "t"}),
    "a completion that waits": lambda era: era.request(
        "slow",
        "completion/complete",
        {
            "ref": {"type": "ref/prompt", "name": "greet"},
            "argument": {"name": "who", "value": "slow"},
        },
    ),
    "a question": lambda era: era.call("slow", "ask", {"q": "?"}, capabilities=ASKABLE),
    "a question midway": lambda era: era.call("slow", "ask_midway", {"q": "?"}),
    "an approval": lambda era: era.call("slow", "ask_first", {"target": "t"}, capabilities=ASKABLE),
    "much progress": lambda era: era.call(
        "slow", "progress", {"n": 200, "delay_ms": 0}, meta={"progressToken": 1}
    ),
}


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
@pytest.mark.parametrize("actor", ACTORS)
def test_nobody_waits_for_a_slow_neighbour(actor: str, era: Dialect) -> None:
    """BC-069, the kind: no time passes until an unrelated call is answered, here or elsewhere."""
    with Exchange() as exchange:

        async def watches(slow: MemoryPeer, other: MemoryPeer) -> None:
            loop = asyncio.get_running_loop()
            for peer in (slow, other):
                await era.greet(peer, ASKABLE)
            await slow.send(ACTORS[actor](era))
            began = loop.time()
            for peer in (slow, other):
                answer = await peer.request(era.call("quick", "echo", {"text": "x"}))
                assert text_of(answer) == "x"
            assert loop.time() - began < 0.5

        exchange.run(watches, peers=2)


def test_a_client_that_reads_nothing_holds_itself_alone() -> None:
    """BC-037, the kind, for two connections of one server."""
    with Exchange() as exchange:

        async def watches(stuck: MemoryPeer, other: MemoryPeer) -> None:
            for peer in (stuck, other):
                await LEGACY.greet(peer)
            stuck._pump.cancel()
            calls: list[Message] = [
                LEGACY.call(id, "progress", {"n": 100, "delay_ms": 0}, meta={"progressToken": id})
                for id in range(16)
            ]
            await stuck.send(*calls)
            answer = await other.request(LEGACY.call("quick", "echo", {"text": "x"}))
            assert text_of(answer) == "x"
            await asyncio.sleep(1.0)
            stuck._pump = asyncio.ensure_future(stuck._receive())
            for id in range(16):
                assert text_of(await stuck.answer(id)) == "done"

        exchange.run(watches, peers=2)
