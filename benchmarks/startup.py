"""What it costs until a server is there: CPU from spawn to the answer of `initialize`.

The same server with one `async def echo` on each side: this project, the official SDK, and a bare
asyncio loop with the same JSON codec, which is the floor. Everything is counted, the interpreter
too. Run: `python -m benchmarks.startup [rounds]`.
"""

from __future__ import annotations

import sys
from time import perf_counter

from benchmarks.harness.contest import command, contest, machine, print_ratios
from benchmarks.harness.measures import cpu, memory
from benchmarks.harness.peer import Peer

BUDGET = 6.0


async def measure(side: str) -> dict[str, float]:
    """Start one server and greet it."""
    started_at = perf_counter()
    async with Peer(command(side)) as peer:
        answer = await peer.initialize()
        assert "result" in answer, answer
        return {
            "CPU, ms": cpu(peer.pid) * 1e3,
            "time, ms": (perf_counter() - started_at) * 1e3,
            "memory (PSS), MiB": memory(peer.pid)["Pss"] / 2**20,
        }


def main() -> None:
    """Measure and print."""
    rounds = int(sys.argv[1]) if sys.argv[1:] else 11
    print(machine())
    found = contest(measure, rounds=rounds)
    print_ratios("from spawn to initialize", found, unit="medians", budgets={"CPU, ms": BUDGET})


if __name__ == "__main__":
    main()
