"""What an echo over HTTP costs the server: CPU for each call at 64 connections, in both eras.

The same `async def echo` on each side: this project as an ASGI application, and *served* by
`serve_http`; the official SDK as it answers by default (a stream of events in the handshake era)
and with JSON bodies; and a bare ASGI application with the same codec that only parses and echoes.
All under uvicorn, each connection kept alive and in the handshake era in a session of its own. The
settings of uvicorn are the same, and the garbage collector is as Python has it, but for *served*,
where `serve_http` has its own, and for the sides called *rarely*, which have the collector as that
sets it. Ratios are of the same round. Every answer must be the echo: a refused call is cheap and
would look good. Run:
`python -m benchmarks.http_throughput [rounds] [asyncio|uvloop]`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from statistics import median
from time import perf_counter

from benchmarks.harness.contest import BARE, OFFICIAL, OURS, machine
from benchmarks.harness.measures import cpu
from benchmarks.harness.peer import HANDSHAKE, STATELESS
from benchmarks.harness.web import Client, Reply, WebServer

CALLS = 1280
CONNECTIONS = 64
WARM_UP = 640
SERVED = "served"
RARELY = "-rarely"
MINE = (SERVED, OURS, OURS + RARELY)
SIDES = (*MINE, OFFICIAL, "official-json", BARE, BARE + RARELY)
TEXT = "hello"
CPU = "CPU a call"
Measured = dict[str, float]
# How many times the CPU of the official SDK's server, and of the bare application, ours may take.
BUDGETS = {OFFICIAL: 1 / 5, BARE: 2.0, BARE + RARELY: 2.0}


def check(reply: Reply) -> None:
    """Refuse whatever is not the echo: an error, `isError`, a server that is busy."""
    assert reply.status == 200, reply
    result = reply.message().get("result")
    assert isinstance(result, dict), reply
    assert not result.get("isError"), reply
    assert result["content"] == [{"type": "text", "text": TEXT}], reply


async def drive(clients: list[Client], calls: int) -> None:
    """Make calls on all connections: each that is answered makes room for the next."""
    numbers: Iterator[int] = iter(range(calls))

    async def one_after_the_other(client: Client) -> None:
        for _ in numbers:
            check(await client.request("tools/call", name="echo", arguments={"text": TEXT}))

    await asyncio.gather(*map(one_after_the_other, clients))


async def race(era: str, loop: str, rounds: int) -> dict[str, list[Measured]]:
    """Measure every side in each of the rounds, in turn; all servers are there all the time.

    So what else the machine does hits all alike, and a round can be compared within itself.
    """
    found: dict[str, list[Measured]] = {side: [] for side in SIDES}
    async with AsyncExitStack() as stack:
        running: dict[str, tuple[int, list[Client]]] = {}
        for side in SIDES:
            server = await stack.enter_async_context(WebServer("echo", side, loop))
            clients = [await Client(server.port, era=era).connect() for _ in range(CONNECTIONS)]
            if era == HANDSHAKE and side not in (BARE, BARE + RARELY):
                for client in clients:
                    await client.initialize()
            await drive(clients, WARM_UP)
            running[side] = server.pid, clients
        for number in range(rounds):
            for side in SIDES if number % 2 else reversed(SIDES):
                found[side].append(await burst(*running[side]))
        for _, clients in running.values():
            for client in clients:
                client.close()
    return found


async def burst(pid: int, clients: list[Client]) -> Measured:
    """Measure one side once."""
    began_at, before = perf_counter(), cpu(pid)
    await drive(clients, CALLS)
    return {
        CPU: (cpu(pid) - before) / CALLS * 1e6,
        "time a call": (perf_counter() - began_at) / CALLS * 1e6,
    }


def main() -> None:
    """Measure and print."""
    rounds = int(sys.argv[1]) if sys.argv[1:] else 15
    loop = sys.argv[2] if sys.argv[2:] else "asyncio"
    print(f"{machine()}; {loop}")
    for era in (HANDSHAKE, STATELESS):
        found = asyncio.run(race(era, loop, rounds))
        print(f"\necho over HTTP, {era}, {CONNECTIONS} connections (medians, microseconds)")
        print(f"{'':12}" + "".join(f"{side:>15}" for side in SIDES))
        for name in found[SERVED][0]:
            medians = [median(one[name] for one in found[side]) for side in SIDES]
            print(f"{name:12}" + "".join(f"{number:15.1f}" for number in medians))
        for mine in MINE:
            for side in SIDES[len(MINE) :]:
                pairs = zip(found[mine], found[side], strict=True)
                ratio, budget = median(a[CPU] / b[CPU] for a, b in pairs), BUDGETS.get(side)
                verdict = "" if budget is None else f", budget {budget:g}: "
                verdict += "" if budget is None else ("met" if ratio <= budget else "MISSED")
                print(f"{mine} takes {ratio:.2f} of the CPU of {side}{verdict}")


if __name__ == "__main__":
    main()
