"""What an echo over stdio costs the server: CPU for each call, alone and 64 at once, both eras.

The same `async def echo` on each side: this project, the official SDK, and a bare asyncio loop
with the same JSON codec that only parses and echoes. Limits are raised, and every answer must be
the echo: a refused call is cheap and would look good. Run:
`python -m benchmarks.stdio_throughput [rounds]`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterator
from time import perf_counter

from benchmarks.harness.contest import command, contest, machine, print_ratios
from benchmarks.harness.measures import cpu
from benchmarks.harness.peer import HANDSHAKE, STATELESS, Message, Peer

CALLS = {1: 400, 64: 2000}
WARM_UP = 64
BUDGET = 15.0
TEXT = "hello"


def check(answer: Message) -> None:
    """Refuse whatever is not the echo: an error, `isError`, a server that is busy."""
    result = answer.get("result")
    assert isinstance(result, dict), answer
    assert not result.get("isError"), answer
    assert result["content"] == [{"type": "text", "text": TEXT}], answer


async def drive(peer: Peer, calls: int, at_once: int) -> None:
    """Make calls, as many at once as said: each that is answered makes room for the next."""
    numbers: Iterator[int] = iter(range(calls))

    async def one_after_the_other() -> None:
        for _ in numbers:
            check(await peer.request("tools/call", name="echo", arguments={"text": TEXT}))

    await asyncio.gather(*(one_after_the_other() for _ in range(at_once)))


def measuring(
    era: str, at_once: int
) -> Callable[[str], Coroutine[object, object, dict[str, float]]]:
    """Return what measures one side."""

    async def measure(side: str) -> dict[str, float]:
        async with Peer(command(side), era=era) as peer:
            if era == HANDSHAKE:
                await peer.initialize()
            await drive(peer, WARM_UP, at_once)
            calls = CALLS[at_once]
            began_at, before = perf_counter(), cpu(peer.pid)
            await drive(peer, calls, at_once)
            return {
                f"CPU a call, {at_once} at once": (cpu(peer.pid) - before) / calls * 1e6,
                f"time a call, {at_once} at once": (perf_counter() - began_at) / calls * 1e6,
            }

    return measure


def main() -> None:
    """Measure and print."""
    rounds = int(sys.argv[1]) if sys.argv[1:] else 7
    print(machine())
    for era in (HANDSHAKE, STATELESS):
        found: dict[str, dict[str, float]] = {}
        for at_once in CALLS:
            for side, measured in contest(measuring(era, at_once), rounds=rounds).items():
                found.setdefault(side, {}).update(measured)
        print_ratios(
            f"echo over stdio, {era}",
            found,
            unit="medians, microseconds",
            budgets={"CPU a call, 64 at once": BUDGET},
        )


if __name__ == "__main__":
    main()
