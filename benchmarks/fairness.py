"""What one user's flood of slow calls costs another user, under the limits as they are by default.

One starts 1,000 calls at once, in 50 sessions with 20 connections each, of a tool that sleeps for
five seconds. Until the last of them is answered (that a server refuses some as busy is an answer),
the other calls `echo`, one call after the other, each of which must get its result. The flood
comes from a process of its own, so that what it costs is not measured as a wait for the server.
Run: `python -m benchmarks.fairness [rounds]`.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from statistics import median
from time import perf_counter

from benchmarks.harness.contest import OFFICIAL, OURS, contest, machine
from benchmarks.harness.web import ROOT, Client, Reply, WebServer
from benchmarks.http_throughput import TEXT, check
from benchmarks.servers.http import TOKENS

SIDES = (OURS, OFFICIAL)
SESSIONS = 50
CALLS_EACH = 20
UNLOADED_CALLS = 1000
# How many times the unloaded median of the other user's calls may become.
BUDGET = 2.0
TOKEN_OF = {user: token for token, user in TOKENS.items()}

UNLOADED, LOADED = "median alone, ms", "median in the flood, ms"
BURST, WORST, ECHOES = "median while it comes in, ms", "the longest, ms", "calls in the flood"
SLEPT, REFUSED = "slow calls that slept", "slow calls refused"


async def echoes(client: Client, until: asyncio.Future[bytes] | None) -> list[float]:
    """Call one after the other: so many times, or until something is done. Return the seconds."""
    taken: list[float] = []
    while not until.done() if until is not None else len(taken) < UNLOADED_CALLS:
        began_at = perf_counter()
        reply = await client.request("tools/call", name="echo", arguments={"text": TEXT})
        taken.append(perf_counter() - began_at)
        check(reply)
    return taken


async def flood(port: int) -> None:
    """Start all the slow calls at once; print when they are sent, then what became of them."""
    token = TOKEN_OF["alice"]
    clients: list[Client] = []
    for _ in range(SESSIONS):
        greeter = await Client(port, token=token).connect()
        await greeter.initialize()
        clients.append(greeter)
        for number in range(1, CALLS_EACH):
            more = await Client(port, token=token, session=greeter.session).connect()
            more.number_from(number * 1000)
            clients.append(more)
    await _told("ready")
    calls = [client.request("tools/call", name="sleep", arguments={}) for client in clients]
    outcomes = Counter(map(_outcome, await asyncio.gather(*calls)))
    print(outcomes["slept"], outcomes["refused"], flush=True)


async def _told(word: str) -> None:
    print(word, flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)


def _outcome(reply: Reply) -> str:
    assert reply.status == 200, reply
    result = reply.message().get("result")
    assert isinstance(result, dict), reply
    return "refused" if result.get("isError") else "slept"


async def measure(side: str) -> dict[str, float]:
    """Measure one side."""
    async with WebServer("guarded", side, "asyncio") as server:
        bob = await Client(server.port, token=TOKEN_OF["bob"]).connect()
        await bob.initialize()
        await echoes(bob, None)  # the first calls prepare what later ones find
        unloaded = median(await echoes(bob, None))
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "benchmarks.fairness", "flood", str(server.port)),
            cwd=ROOT,
            stdin=-1,
            stdout=-1,
        )
        assert process.stdin is not None, "a pipe was asked for"
        assert process.stdout is not None, "a pipe was asked for"
        assert await process.stdout.readline() == b"ready\n", "it has connected"
        process.stdin.write(b"go\n")
        ended = asyncio.ensure_future(process.stdout.readline())
        taken = await echoes(bob, ended)
        slept, refused = map(int, ended.result().split())
        assert slept + refused == SESSIONS * CALLS_EACH, ended.result()
        await process.wait()
        bob.close()
        return {
            UNLOADED: unloaded * 1e3,
            LOADED: median(taken) * 1e3,
            BURST: median(_first(taken, 1.0)) * 1e3,
            WORST: max(taken) * 1e3,
            ECHOES: len(taken),
            SLEPT: slept,
            REFUSED: refused,
        }


def _first(taken: list[float], seconds: float) -> list[float]:
    """Return what was begun in the first seconds."""
    first: list[float] = []
    for one in taken:
        if sum(first) > seconds:
            break
        first.append(one)
    return first


def main() -> None:
    """Measure and print."""
    if sys.argv[1:2] == ["flood"]:
        asyncio.run(flood(int(sys.argv[2])))
        return
    rounds = int(sys.argv[1]) if sys.argv[1:] else 3
    print(machine())
    found = contest(measure, rounds=rounds, sides=SIDES)
    print(f"\n{SESSIONS * CALLS_EACH} slow calls of one user, the echoes of another (medians)")
    print(f"{'':30}" + "".join(f"{side:>12}" for side in SIDES))
    for name in found[OURS]:
        print(f"{name:30}" + "".join(f"{found[side][name]:12.2f}" for side in SIDES))
    for side in SIDES:
        print(
            f"{side}: {found[side][LOADED] / found[side][UNLOADED]:.2f} times the unloaded median"
        )
    ratio = found[OURS][LOADED] / found[OURS][UNLOADED]
    print(f"budget {BUDGET:g}: {'met' if ratio <= BUDGET else 'MISSED'}")


if __name__ == "__main__":
    main()
