"""What a call that waits for its human keeps: memory for each of 1,000 parked calls.

Whole process: proportional set size with 1,000 calls parked less that with none, after a warm-up
in which as many were parked and answered, so that what only ever grows has grown. The official
SDK has the same tool ask by itself. Then once more in this process, where the interpreter says
what its objects take. Run: `python -m benchmarks.parked_memory [rounds]`.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import tracemalloc
from typing import Final

from benchmarks.harness.contest import OFFICIAL, OURS, command, contest, machine
from benchmarks.harness.measures import memory
from benchmarks.harness.peer import HANDSHAKE, WHO, Message, Peer
from benchmarks.servers.ours import build_asking
from raxol_mcp import ConnectionFacts, classify
from raxol_mcp.wire.jsonrpc import JSONObject, Outgoing, Request, RequestId

PARKED: Final = 1000
BUDGET: Final = 1024.0
TEXT: Final = "x" * 32
YES: Final[JSONObject] = {"action": "accept", "content": {"approve": True}}


async def park(peer: Peer) -> list[asyncio.Future[Message]]:
    """Make calls until as many wait for their human; return the answers to come."""
    calls = [
        peer.request("tools/call", name="echo", arguments={"text": TEXT}) for _ in range(PARKED)
    ]
    while len(peer.asked) < PARKED:
        await asyncio.sleep(0.01)
    return calls


async def approve(peer: Peer, calls: list[asyncio.Future[Message]]) -> None:
    """Say yes to everything, and see that every call is then answered."""
    asked, peer.asked = peer.asked, []
    for question in asked:
        peer.send({"jsonrpc": "2.0", "id": question["id"], "result": YES})
    for answer in await asyncio.gather(*calls):
        result = answer["result"]
        assert isinstance(result, dict), answer
        assert result["content"] == [{"type": "text", "text": TEXT}], answer


async def measure(side: str) -> dict[str, float]:
    """Park, let go, park again, and compare."""
    async with Peer(command(side, "asking")) as peer:
        await peer.initialize(elicitation={})
        await approve(peer, await park(peer))
        before = memory(peer.pid)
        calls = await park(peer)
        after = memory(peer.pid)
        await approve(peer, calls)
        return {name: (after[name] - before[name]) / PARKED for name in before}


class Pushed:
    """A sink that keeps the ids of the questions."""

    def __init__(self) -> None:
        self.questions: list[RequestId] = []

    def put(
        self, message: Outgoing, *, about: RequestId | None = None, droppable: bool = False
    ) -> None:
        """Take one push."""
        if isinstance(message, Request):
            self.questions.append(message.id)

    def close(self, reason: str) -> None:
        """Do nothing: the connection ends with the process."""


async def traced() -> float:
    """Return the bytes that the objects of one parked call take, by the interpreter's count."""
    server, sink = build_asking(), Pushed()
    await server.start()
    connection = server.open(sink, ConnectionFacts("bench"))

    def tell(message: JSONObject) -> None:
        server.receive(connection, classify({"jsonrpc": "2.0", **message}))

    async def parked(first_id: int) -> None:
        for id in range(first_id, first_id + PARKED):
            params: JSONObject = {"name": "echo", "arguments": {"text": TEXT[:-1] + "x"}}
            tell({"id": id, "method": "tools/call", "params": params})
        while len(sink.questions) < PARKED:
            await asyncio.sleep(0)

    async def approved() -> None:
        for id in sink.questions:
            tell({"id": id, "result": YES})
        sink.questions.clear()
        while server.outstanding(connection):
            await asyncio.sleep(0)

    greeting: JSONObject = {
        "protocolVersion": HANDSHAKE,
        "capabilities": {"elicitation": {}},
        "clientInfo": WHO,
    }
    tell({"id": "greeting", "method": "initialize", "params": greeting})
    await parked(1)
    await approved()
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        await parked(PARKED + 1)
        ids = sys.getsizeof(sink.questions)  # the sink's, not the server's
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    await approved()
    await server.stop()
    return (after - before - ids) / PARKED


def main() -> None:
    """Measure and print."""
    rounds = int(sys.argv[1]) if sys.argv[1:] else 5
    print(machine())
    found = contest(measure, rounds=rounds, sides=(OURS, OFFICIAL))
    print(f"\nbytes for each of {PARKED} parked calls (medians)")
    for name, ours in found[OURS].items():
        official = found[OFFICIAL][name]
        verdict = "met" if ours <= BUDGET else "MISSED"
        print(f"{name:10}{ours:8.0f} of {BUDGET:.0f} {verdict}; official {official:.0f}")
    print(f"{'objects':10}{asyncio.run(traced()):8.0f} by the interpreter's own count")


if __name__ == "__main__":
    main()
