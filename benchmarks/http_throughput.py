"""What an echo over HTTP costs the server: CPU for each call at 64 connections, in both eras.

The same `async def echo` on each side: this project, the official SDK as it answers by default (a
stream of events in the handshake era) and with JSON bodies, and a bare ASGI application with the
same codec that only parses and echoes. All under uvicorn with the same settings, each connection
kept alive and in the handshake era in a session of its own. Every answer must be the echo: a
refused call is cheap and would look good. Run:
`python -m benchmarks.http_throughput [rounds] [asyncio|uvloop]`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterator
from time import perf_counter

from benchmarks.harness.contest import BARE, OFFICIAL, OURS, contest, machine
from benchmarks.harness.measures import cpu
from benchmarks.harness.peer import HANDSHAKE, STATELESS
from benchmarks.harness.web import Client, Reply, WebServer

CALLS = 4000
CONNECTIONS = 64
WARM_UP = 640
SIDES = (OURS, OFFICIAL, "official-json", BARE)
TEXT = "hello"
CPU = "CPU a call"
# How many times the CPU of the official SDK's server, and of the bare application, ours may take.
OF_OFFICIAL = 1 / 5
OF_BARE = 2.0


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


def measuring(era: str, loop: str) -> Callable[[str], Coroutine[object, object, dict[str, float]]]:
    """Return what measures one side."""

    async def measure(side: str) -> dict[str, float]:
        async with WebServer("echo", side, loop) as server:
            clients = [await Client(server.port, era=era).connect() for _ in range(CONNECTIONS)]
            if era == HANDSHAKE and side != BARE:
                for client in clients:
                    await client.initialize()
            await drive(clients, WARM_UP)
            began_at, before = perf_counter(), cpu(server.pid)
            await drive(clients, CALLS)
            measured = {
                CPU: (cpu(server.pid) - before) / CALLS * 1e6,
                "time a call": (perf_counter() - began_at) / CALLS * 1e6,
            }
            for client in clients:
                client.close()
            return measured

    return measure


def main() -> None:
    """Measure and print."""
    rounds = int(sys.argv[1]) if sys.argv[1:] else 7
    loop = sys.argv[2] if sys.argv[2:] else "asyncio"
    print(f"{machine()}; {loop}")
    for era in (HANDSHAKE, STATELESS):
        found = contest(measuring(era, loop), rounds=rounds, sides=SIDES)
        print(f"\necho over HTTP, {era}, {CONNECTIONS} connections (medians, microseconds)")
        print(f"{'':12}" + "".join(f"{side:>15}" for side in SIDES))
        for name in found[OURS]:
            print(f"{name:12}" + "".join(f"{found[side][name]:15.1f}" for side in SIDES))
        ours = found[OURS][CPU]
        for side, budget in ((OFFICIAL, OF_OFFICIAL), ("official-json", None), (BARE, OF_BARE)):
            ratio = ours / found[side][CPU]
            verdict = "" if budget is None else f", budget {budget:g}: "
            verdict += "" if budget is None else ("met" if ratio <= budget else "MISSED")
            print(f"ours takes {ratio:.2f} of the CPU of {side}{verdict}")


if __name__ == "__main__":
    main()
