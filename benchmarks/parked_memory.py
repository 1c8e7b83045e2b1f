"""What a call that waits for its human keeps: memory for each of 1,000 parked calls.

Whole process: its memory with 1,000 calls parked less that with none, in a process that has parked
a few before and so has loaded what it needs. The official SDK has the same tool ask by itself.
Then once more in this process, where the interpreter says what its objects take. Run:
`python -m benchmarks.parked_memory [rounds]`.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import tracemalloc
from typing import Final

from benchmarks.harness.contest import OFFICIAL, OURS, command, contest, machine
from benchmarks.harness.measures import memory
from benchmarks.harness.peer import HANDSHAKE, WHO, Message, Peer
from benchmarks.servers.ours import build_asking
from raxol_mcp import ConnectionFacts, decode
from raxol_mcp.wire.jsonrpc import JSONObject, Outgoing, Request, RequestId

PARKED: Final = 1000
WARM_UP: Final = 16
BUDGET: Final = 1024.0
TEXT: Final = "x" * 32
YES: Final[JSONObject] = {"action": "accept", "content": {"approve": True}}


async def park(peer: Peer, number: int) -> list[asyncio.Future[Message]]:
    """Make calls that wait for their human, and see them wait; return the answers to come."""
    calls = []
    for _ in range(number):
        calls.append(peer.request("tools/call", name="echo", arguments={"text": TEXT}))
        await peer.was_asked()
    return calls


async def approve(peer: Peer, calls: list[asyncio.Future[Message]]) -> None:
    """Say yes to everything, and see that every call is then answered."""
    for question in peer.asked:
        peer.send({"jsonrpc": "2.0", "id": question["id"], "result": YES})
    peer.asked.clear()
    for answer in await asyncio.gather(*calls):
        result = answer["result"]
        assert isinstance(result, dict), answer
        assert result["content"] == [{"type": "text", "text": TEXT}], answer


async def measure(side: str) -> dict[str, float]:
    """Compare the process with calls parked with itself before."""
    async with Peer(command(side, "asking")) as peer:
        await peer.initialize(elicitation={})
        await approve(peer, await park(peer, WARM_UP))
        before = memory(peer.pid)
        calls = await park(peer, PARKED)
        after = memory(peer.pid)
        await approve(peer, calls)
        return {name: (after[name] - before[name]) / PARKED for name in before}


class Pushed:
    """A sink that tells when a question came."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    def put(
        self, message: Outgoing, *, about: RequestId | None = None, droppable: bool = False
    ) -> None:
        """Take one push."""
        if isinstance(message, Request):
            self.asked.set()

    def close(self, reason: str) -> None:
        """Do nothing: the connection ends with the process."""


async def traced() -> float:
    """Return the bytes that the objects of one parked call take, by the interpreter's count."""
    server, sink = build_asking(), Pushed()
    await server.start()
    connection = server.open(sink, ConnectionFacts("bench"))

    async def parked(ids: range) -> None:
        for id in ids:
            # Decoded from bytes, as a transport does: nothing is shared with the next call.
            arguments = {"name": "echo", "arguments": {"text": TEXT}}
            whole = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": arguments}
            sink.asked.clear()
            server.receive(connection, decode(json.dumps(whole).encode()))
            await sink.asked.wait()

    greeting: JSONObject = {
        "protocolVersion": HANDSHAKE,
        "capabilities": {"elicitation": {}},
        "clientInfo": WHO,
    }
    server.receive(connection, Request("greeting", "initialize", greeting))
    await parked(range(WARM_UP))
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        await parked(range(WARM_UP, WARM_UP + PARKED))
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    server.gone(connection)
    await server.stop()
    return (after - before) / PARKED


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
