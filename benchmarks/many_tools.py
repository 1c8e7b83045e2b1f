"""What 10,000 tools cost: the start, and listing them all, page by page.

CPU of the whole server process from spawn until the last page is read, against the official SDK,
which lists everything in one page. How long a page keeps the loop from others is counted: tools
looked at in one turn of the loop. Run: `python -m benchmarks.many_tools [rounds]`.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Final

from benchmarks.harness.contest import command, contest, machine, print_ratios
from benchmarks.harness.measures import cpu
from benchmarks.harness.peer import Message, Peer

TOOLS: Final = 10_000
BUDGET: Final = 20.0


async def listed(peer: Peer) -> tuple[int, int]:
    """Read the whole list; return how many tools it has, and in how many pages."""
    tools, pages = 0, 0
    cursor: Message = {}
    while True:
        result = (await peer.request("tools/list", **cursor))["result"]
        assert isinstance(result, dict)
        tools += len(result["tools"])
        pages += 1
        if "nextCursor" not in result:
            return tools, pages
        cursor = {"cursor": result["nextCursor"]}


async def measure(side: str) -> dict[str, float]:
    """Start one server with many tools, and list them all."""
    async with Peer(command(side, TOOLS)) as peer:
        await peer.initialize()
        started = cpu(peer.pid)
        tools, _ = await listed(peer)
        assert tools == TOOLS + 1, tools
        first = cpu(peer.pid)
        await listed(peer)
        return {
            "start": started * 1e3,
            "first full listing": (first - started) * 1e3,
            "start and first listing": first * 1e3,
            "another full listing": (cpu(peer.pid) - first) * 1e3,
        }


def main() -> None:
    """Measure and print."""
    rounds = int(sys.argv[1]) if sys.argv[1:] else 1
    print(machine())
    found = contest(measure, rounds=rounds)
    print_ratios(
        f"{TOOLS} tools",
        found,
        unit="CPU, medians, ms",
        budgets={"start and first listing": BUDGET},
    )


if __name__ == "__main__":
    main()
