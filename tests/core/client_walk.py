"""A long random walk through the client's core: `python -m tests.core.client_walk`.

Checked at every step. The same seed walks the same way. A walk that goes wrong says where, what
was expected and what happened before, and exits with 1.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from itertools import accumulate
from typing import Final

from tests.core.client_oracle import Stage
from tests.core.client_world import ACTS, MOODS, PROFILES, ClientWorld
from tests.core.walk import Dice
from tests.core.world import Wrong

__all__ = ["SEEN", "walk"]

SEGMENT_STEPS: Final = 500
MOOD_STEPS: Final = 60

# What a walk of some ten thousand steps has to meet: one that does not proves little.
SEEN: Final = (
    "a greeting takes too long",
    "a question is not answered",
    "a question is withdrawn",
    "abandoned answering",
    "abandoned listening",
    "abandoned queued",
    "abandoned sent",
    "an answer to a notification",
    "batch",
    "begun handshake",
    "begun in place",
    "begun stateless",
    "busy queued",
    "came back",
    "came back and waits",
    "cancelled by a message",
    "cancelled by closing",
    "connect_failed queued",
    "error listening",
    "error sent",
    "failed answering",
    "failed sent",
    "final",
    "forbidden_request",
    "full queue",
    "full window",
    "greeted by a verdict",
    "late no",
    "late yes",
    "longest delay",
    "lost answering",
    "lost initializing greeting",
    "lost listening",
    "lost queued",
    "lost ready",
    "lost ready greeting",
    "lost sent",
    "lost starting",
    "not_ready queued",
    "not_ready sent",
    "notification_failed",
    "opened again without a probe",
    "probed again",
    "refused a question -32600",
    "refused a question -32601",
    "refused a question -32603",
    "rejected",
    "rejected late",
    "rejected too often",
    "rejected while greeting",
    "replied too late",
    "result listening",
    "result sent",
    "resumed too late",
    "session_rejected sent",
    "silence is a no",
    "stale",
    "stray_answer",
    "stray_message",
    "stray_progress",
    "time by progress",
    "timed_out answering",
    "timed_out listening",
    "timed_out queued",
    "timed_out sent",
    "too many answering",
    "too many listening",
    "too many rounds",
    "tried over two endpoints",
    "undelivered",
    "unpaid queued",
    "waiter connect_failed",
    "waiter not_ready",
    "waiter ready",
)


def walk(steps: int, seed: int) -> Counter[str]:
    """Walk at least `steps` steps, through one world after the other; return what was met.

    Raises Wrong where the core and the oracle differ.
    """
    met: Counter[str] = Counter()
    segment = 0
    while met["steps"] < steps:
        goal = min(SEGMENT_STEPS, steps - met["steps"])
        try:
            world = ClientWorld(Dice(f"{seed}/{segment}"), PROFILES[segment % len(PROFILES)])
            _live(world, goal, random.Random(f"{seed}/{segment}/acts"), met)
            world.finish()
        except Wrong as error:
            raise Wrong(
                f"after {met['steps']} steps, seed {seed}, segment {segment}\n{error}"
            ) from error
        met["steps"] += world.steps
        met.update(world.oracle.tally)
        segment += 1
    return met


def _live(world: ClientWorld, steps: int, chooser: random.Random, met: Counter[str]) -> None:
    acts = [getattr(world, name) for name in ACTS]
    moods = [list(accumulate({**ACTS, **mood}.values())) for mood in MOODS]
    mood, oracle = moods[0], world.oracle
    while world.steps < steps:
        if chooser.random() < 1 / MOOD_STEPS:
            mood = chooser.choice(moods)
        (act,) = chooser.choices(acts, cum_weights=mood)
        act()
        met["ready"] += oracle.usable
        met["full window"] += oracle.usable and oracle.slots >= oracle.cap
        met["full queue"] += len(oracle.at(Stage.QUEUED)) >= oracle.options.queue_limit


def main() -> int:
    """Walk, and say what was met."""
    parser = argparse.ArgumentParser(prog="python -m tests.core.client_walk", description=__doc__)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    started_at = time.perf_counter()
    try:
        met = walk(options.steps, options.seed)
    except Wrong as error:
        print(f"WRONG {error}")
        return 1
    seconds = time.perf_counter() - started_at
    for name, count in sorted(met.items()):
        print(f"{count:9} {name}")
    print(f"{met['steps']} steps without a fault, {met['steps'] / seconds:.0f} a second")
    return 0


if __name__ == "__main__":
    sys.exit(main())
