"""Traffic of every bad kind at once: nothing is left of it, and a good client is served.

A condensed storm; `make soak` lets it last.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

import pytest

from tests.cases.http.sockets import serving
from tests.transports.http.hostile import (
    KNOBS,
    SOON,
    Storm,
    a_bad_body,
    echoed,
    giant_headers,
    held,
    pipelined,
    settled,
)

ROUNDS: Final = 12


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_a_storm_leaves_nothing_behind(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    """K12 and K20: no task, no stream, no session, no descriptor; a good client is served."""

    async def storms() -> None:
        async with serving(KNOBS, **SOON) as served:
            before = held()
            assert await echoed(served.host, served.port)
            await settled(served, before)
            storm = Storm(served.host, served.port, seed=seed)
            await storm.run(ROUNDS)
            assert set(storm.done.values()) == {ROUNDS}
            assert storm.good > 0
            await settled(served, before)
            assert await echoed(served.host, served.port)

    asyncio.run(storms())
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.slow
def test_a_connection_that_is_reset_is_forgotten_at_once() -> None:
    """K20: not when it would have been idle for too long, with all that it had sent."""

    async def resets() -> None:
        async with serving(KNOBS, **SOON) as served:
            before = held()
            storm = Storm(served.host, served.port)
            for kind in (a_bad_body, pipelined, giant_headers):
                await asyncio.gather(*(storm.attack(kind) for _ in range(30)))
                await settled(served, before)

    asyncio.run(resets())
