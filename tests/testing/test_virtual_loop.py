"""VirtualLoop: time jumps from timer to timer, and a hang is an error."""

import asyncio
import os
import socket
import threading

import pytest

from raxol_mcp.testing.virtual_loop import Deadlock, VirtualLoop, run_virtual


def now() -> float:
    return asyncio.get_running_loop().time()


def test_time_starts_at_zero_and_jumps_over_a_sleep() -> None:
    async def sleeps() -> list[float]:
        before = now()
        await asyncio.sleep(86_400.0)
        return [before, now()]

    assert run_virtual(sleeps) == [0.0, 86_400.0]


def test_arguments_reach_the_function() -> None:
    async def adds(a: int, b: int) -> int:
        return a + b

    assert run_virtual(adds, 2, 3) == 5


def test_timers_fire_in_order_each_at_its_own_time() -> None:
    async def three_sleepers() -> list[tuple[str, float]]:
        fired: list[tuple[str, float]] = []

        async def sleeper(name: str, delay: float) -> None:
            await asyncio.sleep(delay)
            fired.append((name, now()))

        await asyncio.gather(sleeper("c", 300.0), sleeper("a", 1.0), sleeper("b", 60.0))
        return fired

    assert run_virtual(three_sleepers) == [("a", 1.0), ("b", 60.0), ("c", 300.0)]


def test_time_stands_still_while_something_is_ready() -> None:
    async def yields() -> float:
        waits = asyncio.create_task(asyncio.sleep(1.0))
        for _ in range(100):
            await asyncio.sleep(0)
        at = now()
        await waits
        return at

    assert run_virtual(yields) == 0.0


def test_a_timeout_passes_in_virtual_time() -> None:
    async def times_out() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60.0):
                await asyncio.get_running_loop().create_future()
        return now()

    assert run_virtual(times_out) == 60.0


def test_bytes_that_are_there_come_before_the_next_timer() -> None:
    async def reads() -> tuple[bytes, float]:
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            theirs.send(b"ping")
            async with asyncio.timeout(1.0):
                return await loop.sock_recv(ours, 16), now()

    assert run_virtual(reads) == (b"ping", 0.0)


def test_a_wait_that_nothing_can_end_is_an_error_naming_the_waiting_task() -> None:
    async def waits_for_ever() -> None:
        await asyncio.sleep(5.0)
        await asyncio.get_running_loop().create_future()

    with pytest.raises(
        Deadlock, match=r"deadlock at 5\.0 s: .* no timer is set: Task-\d+ in waits_for_ever \("
    ):
        run_virtual(waits_for_ever)


def test_after_a_deadlock_every_task_has_been_cancelled() -> None:
    ended: list[str] = []

    async def waits(name: str) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append(name)

    async def waits_for_two() -> None:
        await asyncio.gather(waits("first"), waits("second"))

    with pytest.raises(Deadlock):
        run_virtual(waits_for_two)
    assert sorted(ended) == ["first", "second"]


def test_timers_that_never_end_are_an_error_too() -> None:
    async def ticks() -> None:
        while True:  # noqa: ASYNC110  # a timer that never ends is what is tested
            await asyncio.sleep(10.0)

    with (
        pytest.raises(Deadlock, match=r"timers still run after 1000 s: Task-\d+ in ticks"),
        asyncio.Runner(loop_factory=lambda: VirtualLoop(limit=1_000)) as runner,
    ):
        runner.run(ticks())


def test_a_deadlock_without_tasks_says_that_no_task_is_left() -> None:
    loop = VirtualLoop()
    try:
        with pytest.raises(Deadlock, match="no task is left"):
            loop.run_forever()
    finally:
        loop.close()


def test_a_thread_of_the_loop_is_waited_for_while_time_stands_still() -> None:
    async def runs_a_thread() -> tuple[int, float]:
        gate = threading.Event()
        loop = asyncio.get_running_loop()
        loop.call_soon(gate.set)
        timer = loop.call_later(60.0, lambda: None)
        waited = await asyncio.to_thread(lambda: gate.wait() and threading.get_ident())
        timer.cancel()
        return waited, now()

    ident, at = run_virtual(runs_a_thread)
    assert ident != threading.get_ident()
    assert at == 0.0


def test_time_goes_on_after_a_thread_has_ended() -> None:
    async def thread_then_sleep() -> float:
        await asyncio.to_thread(lambda: None)
        await asyncio.sleep(60.0)
        return now()

    assert run_virtual(thread_then_sleep) == 60.0


def test_outside_work_is_waited_for_while_time_stands_still() -> None:
    async def waits_for_a_thread() -> tuple[str, float]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        came: asyncio.Future[str] = loop.create_future()
        timer = loop.call_later(1.0, came.set_result, "timer")
        thread = threading.Thread(
            target=lambda: loop.call_soon_threadsafe(came.set_result, "thread")
        )
        with loop.outside():
            thread.start()
            first = await came
        timer.cancel()
        thread.join()
        return first, now()

    assert run_virtual(waits_for_a_thread) == ("thread", 0.0)


def test_outside_work_without_the_context_is_overtaken_by_the_timers() -> None:
    """This is how a callback that outlasts its timeout is tested."""

    async def waits_for_a_stuck_thread() -> float:
        release = threading.Event()
        thread = threading.Thread(target=release.wait)
        thread.start()
        try:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(300.0):
                    await asyncio.get_running_loop().create_future()
            return now()
        finally:
            release.set()
            thread.join()

    assert run_virtual(waits_for_a_stuck_thread) == 300.0


def test_what_the_function_raises_comes_out() -> None:
    async def fails() -> None:
        raise LookupError("not here")

    with pytest.raises(LookupError, match="not here"):
        run_virtual(fails)


def test_no_descriptor_is_left_open() -> None:
    async def nothing() -> None:
        return None

    run_virtual(nothing)
    before = os.dup(0)
    os.close(before)
    run_virtual(nothing)
    after = os.dup(0)
    os.close(after)
    assert before == after
