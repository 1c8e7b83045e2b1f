"""What 10,000 tools cost: the start, and listing them all, page by page.

CPU of the whole server process from spawn until the last page is read, against the official SDK,
which lists everything in one page. Then, counted and not timed, how long a listing keeps the loop
from others: how many tools an authorizer is asked about in one turn of the loop. Without one a
page is put together from what was encoded when the tools were registered. Exits with 1 when one
turn looks at too many. Run: `python -m benchmarks.many_tools [rounds]`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Mapping
from typing import Final

from benchmarks.harness.contest import command, contest, machine, print_ratios
from benchmarks.harness.measures import cpu
from benchmarks.harness.peer import Message, Peer
from benchmarks.servers.ours import build
from raxol_mcp import AuthorizationContext, allow, encode, nonblocking
from raxol_mcp.server.authorizer import Decision
from raxol_mcp.wire.jsonrpc import Request, Response

TOOLS: Final = 10_000
BUDGET: Final = 20.0
PER_TURN: Final = 64


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


async def looked_at() -> Counter[int]:
    """List all tools past an authorizer; return how many it was asked about, by turn."""
    loop = asyncio.get_running_loop()
    turn = 0
    asked = Counter[int]()

    def count_turns() -> None:
        nonlocal turn
        turn += 1
        loop.call_soon(count_turns)

    @nonblocking
    def authorizer(
        name: str, arguments: Mapping[str, object], context: AuthorizationContext
    ) -> Decision:
        asked[turn] += 1
        return allow()

    server = build(TOOLS, authorizer=authorizer)
    loop.call_soon(count_turns)
    cursor: dict[str, object] = {}
    while True:
        answer = await server.handle_message(Request(1, "tools/list", cursor))
        assert isinstance(answer, Response), answer
        page = json.loads(encode(answer))["result"]
        if "nextCursor" not in page:
            return asked
        cursor = {"cursor": page["nextCursor"]}


def main() -> int:
    """Measure, count and print; say whether what is counted is within its budget."""
    rounds = int(sys.argv[1]) if sys.argv[1:] else 1
    print(machine())
    found = contest(measure, rounds=rounds)
    print_ratios(
        f"{TOOLS} tools",
        found,
        unit="CPU, medians, ms",
        budgets={"start and first listing": BUDGET},
    )
    asked = asyncio.run(looked_at())
    most = max(asked.values())
    print(f"\ntools looked at in one turn: at most {most} of {sum(asked.values())}")
    return 0 if most <= PER_TURN else 1


if __name__ == "__main__":
    sys.exit(main())
