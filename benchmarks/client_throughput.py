"""What a call costs the client: CPU for each, alone and 64 at once, over stdio and HTTP, both eras.

The same calls of the same server (this project's `echo`, limits raised) by each client: this
project's, the official SDK's, and none at all, which only writes requests and reads answers. Each
is a process of its own, and only its own CPU counts. Every answer must be the echo: a call that
is refused is cheap and would look good. Run: `python -m benchmarks.client_throughput [rounds]`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Final

from benchmarks.harness.contest import BARE, OFFICIAL, OURS, command, contest, machine
from benchmarks.harness.peer import HANDSHAKE, STATELESS
from benchmarks.harness.web import ROOT, WebServer

CALLS: Final = {1: 500, 64: 2000}
STDIO: Final = "stdio"
HTTP: Final = "HTTP"

Measured = dict[str, float]


async def called(side: str, era: str, at_once: int, where: list[str]) -> Measured:
    """Have a client make its calls; return what they cost it."""
    arguments = [side, era, str(at_once), str(CALLS[at_once]), *where]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.harness.caller", *arguments),
        cwd=ROOT,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
    )
    printed, _ = await process.communicate()
    assert process.returncode == 0, f"the client of the side {side} failed"
    found: Measured = json.loads(printed)
    return {f"{name} a call, {at_once} at once": value for name, value in found.items()}


def measuring(
    era: str, transport: str, at_once: int
) -> Callable[[str], Coroutine[object, object, Measured]]:
    """Return what measures one side."""

    async def measure(side: str) -> Measured:
        async with AsyncExitStack() as stack:
            where = command(OURS)
            if transport == HTTP:
                server = WebServer("echo", OURS, "asyncio")
                where = [str((await stack.enter_async_context(server)).port)]
            return await called(side, era, at_once, where)

    return measure


def main() -> None:
    """Measure and print."""
    rounds = int(sys.argv[1]) if sys.argv[1:] else 5
    sides = (OURS, OFFICIAL, BARE)
    print(machine())
    for transport in (STDIO, HTTP):
        for era in (HANDSHAKE, STATELESS):
            print(f"\nclient, {transport}, {era} (medians, microseconds)")
            print(f"{'':24}" + "".join(f"{side:>12}" for side in sides) + "   official/ours")
            for at_once in CALLS:
                found = contest(measuring(era, transport, at_once), rounds=rounds, sides=sides)
                for name in found[OURS]:
                    row = "".join(f"{found[side][name]:12.1f}" for side in sides)
                    ratio = found[OFFICIAL][name] / found[OURS][name]
                    print(f"{name:24}{row}{ratio:16.1f}", flush=True)


if __name__ == "__main__":
    main()
