"""Many waits of one length behind one timer."""

from __future__ import annotations

import asyncio

from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.transports.http.lanes import Lane


def test_each_key_expires_on_its_own_time() -> None:
    """Ours"""

    async def main() -> None:
        now = asyncio.get_running_loop().time
        found: list[tuple[str, float]] = []
        lane: Lane[str] = Lane(10.0, lambda key: found.append((key, now())))
        lane.add("a")
        await asyncio.sleep(3)
        lane.add("b")
        lane.add("gone")
        await asyncio.sleep(1)
        lane.add("a")  # anew
        lane.remove("gone")
        lane.remove("never there")
        assert len(lane) == 2
        await asyncio.sleep(100)
        assert found == [("b", 13.0), ("a", 14.0)]
        assert len(lane) == 0

    run_virtual(main)


def test_what_expires_may_wait_again() -> None:
    """Ours"""

    async def main() -> None:
        found: list[float] = []

        def expired(key: str) -> None:
            found.append(asyncio.get_running_loop().time())
            if len(found) < 3:
                lane.add(key)

        lane: Lane[str] = Lane(1.0, expired)
        lane.add("x")
        await asyncio.sleep(10)
        assert found == [1.0, 2.0, 3.0]

    run_virtual(main)


def test_a_closed_lane_has_no_timer() -> None:
    """Ours"""

    async def main() -> None:
        lane: Lane[str] = Lane(1.0, lambda key: None)
        lane.close()
        lane.add("x")
        lane.close()
        assert len(lane) == 0
        lane.add("y")
        await asyncio.sleep(2)
        assert len(lane) == 0

    run_virtual(main)
