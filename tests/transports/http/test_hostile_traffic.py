"""Traffic of every bad kind at once: nothing is left of it, and a good client is served.

A condensed storm; `make soak` lets it last.
"""

from __future__ import annotations

import asyncio
import os
from typing import Final

import pytest

from tests.cases.fixture_server import Knobs
from tests.cases.http.sockets import Served, serving
from tests.cases.peers import left_over
from tests.transports.http.hostile import KINDS, Storm, echoed

ROUNDS: Final = 12
# Seconds. What is left of an attack ends with the longest of them.
SOON: Final = {
    "head_timeout": 0.5,
    "body_timeout": 0.5,
    "write_timeout": 0.5,
    "session_timeout": 0.5,
}
KNOBS: Final = Knobs(limits={"callback_timeout": 5.0, "elicitation_timeout": 0.5})
BOUND: Final = 30.0


def held() -> tuple[int, int]:
    """Count the tasks of this loop and the descriptors of this process."""
    return len(asyncio.all_tasks()), len(os.listdir("/proc/self/fd"))


async def settled(served: Served, before: tuple[int, int]) -> None:
    """Wait until nothing is left, within a bound; then say what is."""
    try:
        async with asyncio.timeout(BOUND):
            while held() != before or left_over(served.fixture):
                await asyncio.sleep(0.05)
    except TimeoutError:
        assert left_over(served.fixture) == {}
        assert held() == before, asyncio.all_tasks()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_a_storm_leaves_nothing_behind(seed: int) -> None:
    """K12 and K20: no task, no stream, no session, no descriptor; a good client is served."""

    async def storms() -> None:
        async with serving(KNOBS, **SOON) as served:
            assert await echoed(served.host, served.port)
            await asyncio.sleep(0)
            before = held()
            storm = Storm(served.host, served.port, seed=seed)
            await storm.run(ROUNDS)
            assert set(storm.done.values()) == {ROUNDS}
            assert storm.good > 0
            await settled(served, before)
            assert await echoed(served.host, served.port)

    asyncio.run(storms())


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_one_kind_alone_leaves_nothing_behind(kind: object) -> None:
    """K20, so that what leaks has a name."""

    async def attacks() -> None:
        async with serving(KNOBS, **SOON) as served:
            assert await echoed(served.host, served.port)
            await asyncio.sleep(0)
            before = held()
            storm = Storm(served.host, served.port)
            await asyncio.gather(*(storm.attack(kind) for _ in range(20)))  # type: ignore[arg-type]  # one of KINDS
            await settled(served, before)
            assert await echoed(served.host, served.port)

    asyncio.run(attacks())
