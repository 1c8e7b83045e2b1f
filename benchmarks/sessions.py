"""What an idle session with its open stream keeps in memory, above what a bare stream keeps.

A thousand sessions of the handshake era on each side, each with its GET stream; on the bare
application a thousand streams that say nothing. All under uvicorn with the same settings,
a new process for each run. Run: `python -m benchmarks.sessions [rounds]`.
"""

from __future__ import annotations

import asyncio
import sys

from benchmarks.harness.contest import BARE, OFFICIAL, OURS, SIDES, contest, machine
from benchmarks.harness.measures import memory
from benchmarks.harness.web import Client, WebServer

SESSIONS = 1000
WARM_UP = 50
# What is written and freed while sessions begin has settled after this, in seconds.
SETTLES_WITHIN = 1.0
# Bytes of a session above those of a bare stream.
BUDGET = 6 * 1024
MEMORY = "bytes each"


async def open_streams(port: int, side: str, number: int) -> list[Client]:
    """Begin sessions and open their streams; return the connections of those."""
    greeter = await Client(port).connect()
    streams = []
    for _ in range(number):
        if side != BARE:
            await greeter.initialize()
        stream = await Client(port, session=greeter.session).connect()
        reply = await stream.listen()
        assert reply.status == 200, reply
        assert reply.headers[b"content-type"].startswith(b"text/event-stream"), reply
        streams.append(stream)
    greeter.close()
    return streams


async def measure(side: str) -> dict[str, float]:
    """Measure one side."""
    async with WebServer("echo", side, "asyncio") as server:
        streams = await open_streams(server.port, side, WARM_UP)
        await asyncio.sleep(SETTLES_WITHIN)
        before = memory(server.pid)["Pss"]
        streams += await open_streams(server.port, side, SESSIONS)
        await asyncio.sleep(SETTLES_WITHIN)
        measured = (memory(server.pid)["Pss"] - before) / SESSIONS
        assert all(stream.connected for stream in streams), "a stream was closed"
        for stream in streams:
            stream.close()
        return {MEMORY: measured}


def main() -> None:
    """Measure and print."""
    rounds = int(sys.argv[1]) if sys.argv[1:] else 5
    print(machine())
    found = contest(measure, rounds=rounds)
    each = {side: found[side][MEMORY] for side in SIDES}
    print(f"\n{SESSIONS} idle sessions, each with its stream (medians, KiB)")
    print(f"{'':12}{'each':>8}{'above a bare stream':>22}")
    for side in SIDES:
        print(f"{side:12}{each[side] / 1024:8.1f}{(each[side] - each[BARE]) / 1024:22.1f}")
    more = each[OURS] - each[BARE]
    print(f"budget {BUDGET / 1024:g} KiB: {'met' if more <= BUDGET else 'MISSED'}")
    print(f"the official server keeps {(each[OFFICIAL] - each[BARE]) / more:.1f} times as much")


if __name__ == "__main__":
    main()
