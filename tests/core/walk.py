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

__all__ = ["Dice", "SEEN", "walk"]

SEGMENT_STEPS: Final = 1_000
MOOD_STEPS: Final = 80


class Dice:
    """Chance from a seed."""

    def __init__(self, seed: object) -> None:
        self._random = random.Random(seed).random

    def below(self, number: int) -> int:
        """Choose an integer from 0 to `number` - 1."""
        return int(self._random() * number)

    def chance(self, percent: int) -> bool:
        """Say yes in about `percent` of 100 cases."""
        return self._random() * 100 < percent


# What a walk of some thousand steps has to meet: one that does not proves little.
SEEN: Final = ()


def walk(steps: int, seed: int) -> Counter[str]:
    """Walk at least `steps` steps through one world after the other; return what was met.

    Raises Wrong where the core and the oracle differ.
    """
    met: Counter[str] = Counter()
    names = list(ACTS)
    moods = [list(accumulate({**ACTS, **mood}.values())) for mood in MOODS]
    segment = 0
    while met["steps"] < steps:
        dice = Dice(f"{seed}/{segment}")
        chooser = random.Random(f"{seed}/{segment}/acts")
        world = World(dice, PROFILES[segment % len(PROFILES)])
        goal = min(SEGMENT_STEPS, steps - met["steps"])
        try:
            mood = moods[0]
            while world.steps < goal:
                if chooser.random() < 1 / MOOD_STEPS:
                    mood = chooser.choice(moods)
                (name,) = chooser.choices(names, cum_weights=mood)
                getattr(world, name)()
                met["full slots"] += len(world.oracle.working) >= world.limits.max_in_flight
                places = world.oracle.places().total()
                met["full places"] += places >= world.limits.max_parked_elicitations_total
            world.finish()
        except Wrong as error:
            raise Wrong(f"seed {seed}, segment {segment}\n{error}") from error
        met["steps"] += world.steps
        met.update(world.oracle.tally)
        segment += 1
    return met


def main() -> int:
    """Walk, and say what was met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    started_at = time.perf_counter()
    try:
        met = walk(options.steps, options.seed)
    except Wrong as error:
        print(f"WRONG: {error}")
        return 1
    seconds = time.perf_counter() - started_at
    for name, count in sorted(met.items()):
        print(f"{count:9} {name}")
    print(f"{met['steps']} steps without a fault, {met['steps'] / seconds:.0f} a second")
    return 0


if __name__ == "__main__":
    sys.exit(main())
