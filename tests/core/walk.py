"""A long random walk through the core, checked at every step: `python -m tests.core.walk`.

The same seed walks the same way. A walk that goes wrong says where, what was expected and what
happened before, and exits with 1.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from itertools import accumulate
from typing import Final

from tests.core.world import ACTS, MOODS, PROFILES, World, Wrong

__all__ = ["SEEN", "Dice", "walk"]

SEGMENT_STEPS: Final = 2_000
MOOD_STEPS: Final = 80

# What a walk of some ten thousand steps has to meet: one that does not proves little.
SEEN: Final = (
    "evicted",
    "equally full",
    "too many elicitations pending",
    "too many elicitations pending on this server",
    "approved at once",
    "approved waits",
    "approved passed over",
    "approved got its slot",
    "dropped approved",
    "dropped listening",
    "dropped parked",
    "dropped working",
    "cancelled approved",
    "cancelled listening",
    "cancelled parked",
    "cancelled working",
    "cancelled by the client",
    "expired approved",
    "expired parked",
    "expired working",
    "late report",
    "late answer",
    "stolen answer",
    "answered by an error",
    "user accept",
    "user cancel",
    "user decline",
    "user declined",
    "next question",
    "busy server",
    "busy connection",
    "cannot be asked",
    "duplicate id",
    "reopened",
    "survived",
    "capabilities evicted",
    "midway answered",
    "midway unanswered",
    "asked after the end",
    "sealed yes",
    "sealed no",
    "asked again",
    "token expired",
    "token forged",
    "token of another request",
    "token replayed",
    "too many listens",
    "too many rounds",
    "too many subscriptions",
    "heard",
    "retracted",
    "notifications/message",
    "notifications/progress",
)


class Dice:
    """Chance from a seed."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed).random

    def below(self, number: int) -> int:
        """Choose an integer from 0 to `number` - 1."""
        return int(self._random() * number)

    def chance(self, percent: int) -> bool:
        """Say yes in about `percent` of 100 cases."""
        return self._random() * 100 < percent


def walk(steps: int, seed: int) -> Counter[str]:
    """Walk at least `steps` steps, through one world after the other; return what was met.

    Raises Wrong where the core and the oracle differ.
    """
    met: Counter[str] = Counter()
    segment = 0
    while met["steps"] < steps:
        world = World(Dice(f"{seed}/{segment}"), PROFILES[segment % len(PROFILES)])
        goal = min(SEGMENT_STEPS, steps - met["steps"])
        try:
            _live(world, goal, random.Random(f"{seed}/{segment}/acts"), met)
            world.finish()
        except Wrong as error:
            after = met["steps"] + world.steps
            raise Wrong(f"after {after} steps, seed {seed}, segment {segment}\n{error}") from error
        met["steps"] += world.steps
        met.update(world.oracle.tally)
        segment += 1
    return met


def _live(world: World, steps: int, chooser: random.Random, met: Counter[str]) -> None:
    acts = [getattr(world, name) for name in ACTS]
    moods = [list(accumulate({**ACTS, **mood}.values())) for mood in MOODS]
    mood, limits, oracle = moods[0], world.limits, world.oracle
    while world.steps < steps:
        if chooser.random() < 1 / MOOD_STEPS:
            mood = chooser.choice(moods)
        (act,) = chooser.choices(acts, cum_weights=mood)
        act()
        met["full slots"] += len(oracle.working) >= limits.max_in_flight
        met["full places"] += oracle.places().total() >= limits.max_parked_elicitations_total


def main() -> int:
    """Walk, and say what was met."""
    parser = argparse.ArgumentParser(prog="python -m tests.core.walk", description=__doc__)
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
