"""Let hostile traffic come for as long as you like, and see that nothing is left of it.

A server and its attackers in one process, in laps: after each one there must be no task, no
descriptor, no session and no call more than before, and the memory must not grow from lap to lap.
Exits 1 when it does.

    python -m tools.soak                      # 60 seconds
    python -m tools.soak --seconds 3600 --seed 7
    python -m tools.soak a_slow_body giant_headers
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import sys
import time
from pathlib import Path

from tests.cases.http.sockets import serving
from tests.transports.http.hostile import KINDS, KNOBS, SOON, Storm, echoed, held, settled

ROUNDS = 30
# What the allocator may keep of answers of 8 MB, and no more; the first laps fill its pools.
WARM_LAPS = 3
MAX_GROWTH_BYTES = 96 * 1024 * 1024


def resident_bytes() -> int:
    """Return the memory of this process."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * 4096


async def soak(seconds: float, seed: int, names: list[str]) -> int:
    """Attack until the time is over; return the exit code."""
    end, lap, warm = time.monotonic() + seconds, 0, 0
    kinds = [kind for kind in KINDS if not names or kind.__name__ in names]
    async with serving(KNOBS, **SOON) as served:
        before = held()
        while time.monotonic() < end or lap <= WARM_LAPS:
            storm = Storm(served.host, served.port, seed=seed + lap)
            await storm.run(ROUNDS, kinds)
            await settled(served, before)
            assert await echoed(served.host, served.port)
            served.fixture.journal.lines.clear()
            gc.collect()
            memory = resident_bytes()
            if lap == WARM_LAPS:
                warm = memory
            lap += 1
            print(
                f"lap {lap}: {storm.done.total()} attacks, {storm.good} good calls,"
                f" {memory // 1024} KiB"
            )
            if warm and memory - warm > MAX_GROWTH_BYTES:
                print(f"the memory has grown by {(memory - warm) // 1024} KiB")
                return 1
    return 0


def main() -> int:
    """Read the command line and soak."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("kinds", nargs="*", help="only these attacks")
    options = parser.parse_args()
    names = {kind.__name__ for kind in KINDS}
    if not names.issuperset(options.kinds):
        parser.error(f"the attacks are: {', '.join(sorted(names))}")
    logging.basicConfig(level=logging.ERROR)
    return asyncio.run(soak(options.seconds, options.seed, list(options.kinds)))


if __name__ == "__main__":
    sys.exit(main())
