"""K16: messages never mix, and what belongs to a call comes before its answer.

Two writers interleaved their lines; progress came after the result that ended its token.
"""

from __future__ import annotations

from collections import defaultdict

import pytest

from tests.cases.dialects import BOTH_ERAS, MEMORY, STDIO, Dialect, case, text_of
from tests.cases.fixture_server import Knobs
from tests.cases.peers import Exchange, MemoryPeer, Message, Peer

MANY = Knobs(limits={"max_in_flight": 400, "max_in_flight_per_connection": 400})


def check_order(seen: list[Message], token_of: dict[object, object]) -> None:
    """Check that the progress of each token increases, and ends before the answer."""
    last: dict[object, float] = defaultdict(lambda: -1.0)
    answered: set[object] = set()
    for message in seen:
        if message.get("method") == "notifications/progress":
            params = message["params"]
            assert isinstance(params, dict)
            token, progress = params["progressToken"], params["progress"]
            assert token not in answered, "progress after the answer"
            assert progress > last[token], "progress that does not increase"
            last[token] = progress
        elif "id" in message and "method" not in message:
            token = token_of.get(message["id"], message["id"])
            assert token not in answered, "answered twice"
            answered.add(token)


@case(knobs=MANY)
async def test_two_hundred_calls_at_once_keep_their_order(peer: Peer, era: Dialect) -> None:
    """MCP basic/utilities/progress: increasing, and none after the end; large answers between."""
    await era.greet(peer)
    calls = [
        era.call(id, "progress", {"n": 5, "delay_ms": 1}, meta={"progressToken": f"t{id}"})
        for id in range(200)
    ]
    large = [era.call(1000 + id, "big", {"bytes": 20_000}) for id in range(100)]
    await peer.send(*calls, *large)
    for id in range(200):
        assert text_of(await peer.answer(id)) == "done"
    for id in range(100):
        assert len(text_of(await peer.answer(1000 + id))) == 20_000
    check_order(peer.seen, {id: f"t{id}" for id in range(200)})
    assert len(peer.seen) >= 300


@case()
async def test_progress_that_goes_back_is_not_sent(peer: Peer, era: Dialect) -> None:
    """MCP basic/utilities/progress: the value MUST increase."""
    await era.greet(peer)
    values = [1, 1, 0.5, 2, 2, 1.5, 3]
    arguments = {"n": 3, "delay_ms": 0, "values": values}
    await peer.request(era.call(1, "progress", arguments, meta={"progressToken": 1}))
    assert [params["progress"] for params in peer.told("notifications/progress")] == [1, 2, 3]


@case(wires=[MEMORY, STDIO])
async def test_a_burst_right_before_the_end_comes_before_the_answer(
    peer: Peer, era: Dialect
) -> None:
    """The last progress and the last log leave right before the answer, with nothing between."""
    level = {"io.modelcontextprotocol/logLevel": "debug"}
    await era.greet(peer)
    for id in range(20):
        after = len(peer.seen)
        await peer.request(
            era.call(id, "progress", {"n": 30, "delay_ms": 0}, meta={"progressToken": id})
        )
        kinds = [message.get("method") for message in peer.seen[after:]]
        assert kinds == ["notifications/progress"] * 30 + [None]
        after = len(peer.seen)
        await peer.request(era.call(id, "logs", {"n": 30}, meta=level))
        kinds = [message.get("method") for message in peer.seen[after:]]
        assert kinds == ["notifications/message"] * 30 + [None]


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
def test_progress_goes_to_whoever_asked_for_it(era: Dialect) -> None:
    """BC-003. Two clients may choose the same token, for calls with the same id."""
    with Exchange() as exchange:

        async def both(first: MemoryPeer, second: MemoryPeer) -> None:
            for n, peer in ((5, first), (9, second)):
                await era.greet(peer)
                arguments = {"n": n, "delay_ms": 3}
                await peer.send(era.call(1, "progress", arguments, meta={"progressToken": "tok"}))
            for n, peer in ((5, first), (9, second)):
                await peer.answer(1)
                totals = [params["total"] for params in peer.told("notifications/progress")]
                assert totals == [float(n)] * n

        exchange.run(both, peers=2)
