"""The wait for a client that leaves."""

from __future__ import annotations

import asyncio

import pytest

from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.transports.http.asgi import Event
from raxol_mcp.transports.http.departure import Departure


async def never() -> Event:
    """Receive nothing."""
    await asyncio.Event().wait()
    raise AssertionError("not reached")


def test_a_client_that_leaves_ends_the_wait() -> None:
    """ASGI 3 §Disconnect"""

    async def main() -> None:
        events: list[Event] = [{"type": "http.request"}, {"type": "http.disconnect"}]

        async def receive() -> Event:
            await asyncio.sleep(1)
            return events.pop(0)

        assert await Departure().left(receive)

    run_virtual(main)


def test_waking_ends_the_wait_now_or_before_it_begins() -> None:
    """Ours"""

    async def main() -> None:
        departure = Departure()
        loop = asyncio.get_running_loop()
        loop.call_later(1, departure.wake)
        loop.call_later(1, departure.wake)
        assert not await departure.left(never)
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        departure.wake()
        assert not await departure.left(never)

    run_virtual(main)


def test_a_cancellation_by_somebody_else_goes_on() -> None:
    """Ours"""

    async def main() -> None:
        for also_woken in (False, True):
            departure = Departure()
            task = asyncio.ensure_future(departure.left(never))
            await asyncio.sleep(0)
            if also_woken:
                departure.wake()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    run_virtual(main)
