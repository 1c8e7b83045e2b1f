"""The waits of single requests."""

from __future__ import annotations

import asyncio
import gc

import pytest

from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.transports.http.patience import LOOK_EVERY, Patience, Waiting, looks


@pytest.mark.parametrize("offset", [0.0, 0.01, 0.049])
def test_a_wait_is_at_least_as_long_as_it_says_and_not_much_longer(offset: float) -> None:
    """Ours"""

    async def main() -> None:
        patience = Patience()
        other = Waiting()
        patience.begin(other, looks(60.0), lambda: None)
        await asyncio.sleep(offset)
        began = asyncio.get_running_loop().time()
        over = asyncio.Event()
        patience.begin(Waiting(), looks(1.0), over.set)
        await over.wait()
        waited = asyncio.get_running_loop().time() - began
        assert 1.0 <= waited + 1e-9 <= 1.0 + 2 * LOOK_EVERY
        patience.end(other)

    run_virtual(main)


def test_what_ended_or_began_anew_is_not_due() -> None:
    """Ours"""

    async def main() -> None:
        patience = Patience()
        found: list[str] = []
        first, second = Waiting(), Waiting()

        def due() -> None:
            found.append("first")
            patience.end(second)

        patience.begin(first, 1, lambda: found.append("never"))
        patience.begin(first, 1, due)
        patience.begin(second, 1, lambda: found.append("second"))
        await asyncio.sleep(1)
        patience.end(first)
        assert found == ["first"]
        patience.begin(first, 1, due)
        patience.close()
        await asyncio.sleep(1)
        assert found == ["first"]

    run_virtual(main)


def test_only_our_own_cancellation_is_swallowed() -> None:
    """Ours"""

    async def main() -> None:
        waiting = Waiting()

        async def work() -> str:
            waiting.task = asyncio.current_task()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if waiting.expired():
                    return "expired"
                raise
            return "never"

        task = asyncio.ensure_future(work())
        await asyncio.sleep(0)
        waiting.expire()
        assert await task == "expired"
        task = asyncio.ensure_future(work())
        await asyncio.sleep(0)
        task.cancel()
        waiting.expire()
        with pytest.raises(asyncio.CancelledError):
            await task

    run_virtual(main)


def test_what_has_waited_is_freed_without_the_garbage_collector() -> None:
    """Ours: with a cycle in each request, collecting them took a tenth of what a call costs"""

    async def main() -> None:
        patience = Patience()
        gc.collect()
        gc.disable()
        try:
            waiting = Waiting()
            patience.begin(waiting, looks(1.0), waiting.expire)
            patience.end(waiting)
            del waiting
            assert gc.collect() == 0
        finally:
            gc.enable()
        patience.close()

    run_virtual(main)


def test_the_current_task_is_found_in_one_loop_after_another() -> None:
    """Ours"""
    patience = Patience()

    async def main() -> None:
        for _ in range(2):
            assert patience.current_task() is asyncio.current_task()

    run_virtual(main)
    run_virtual(main)
