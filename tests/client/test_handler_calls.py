"""Handlers of every kind are called without blocking the loop."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import partial

import pytest

from raxol_mcp.client.handler_calls import called
from raxol_mcp.testing.virtual_loop import run_virtual

place: ContextVar[str] = ContextVar("place", default="nowhere")


async def doubled(number: int) -> int:
    await asyncio.sleep(1.0)
    return number * 2


class Doubling:
    """An object that is called like a coroutine function."""

    async def __call__(self, number: int) -> int:
        return number * 2


def outcome(handler: Callable[[int], int | Awaitable[int]]) -> int:
    """Return what a handler answers to 2."""

    async def main() -> int:
        return await called(handler, 2)

    return asyncio.run(main())


def test_a_coroutine_function_runs_on_the_loop() -> None:
    assert run_virtual(called, doubled, 2) == 4  # type: ignore[arg-type]  # generic in two ways
    assert outcome(Doubling()) == 4
    assert outcome(partial(Doubling())) == 4


def test_another_function_runs_in_a_daemon_thread_while_the_loop_goes_on() -> None:
    """Ours: it may wait for a person."""
    answered = threading.Event()

    async def main() -> tuple[int, bool, str]:
        loop, asked = asyncio.get_running_loop(), asyncio.Event()

        def blocking(number: int) -> tuple[int, bool, str]:
            loop.call_soon_threadsafe(asked.set)
            answered.wait(30.0)
            return number * 2, threading.current_thread().daemon, place.get()

        place.set("here")
        task = asyncio.create_task(called(blocking, 2))
        await asked.wait()
        answered.set()
        return await task

    assert asyncio.run(main()) == (4, True, "here")


def test_a_function_may_give_something_to_await() -> None:
    assert outcome(lambda number: Doubling()(number)) == 4
    assert outcome(lambda number: number * 2) == 4


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(3)])
def test_what_a_handler_raises_is_raised(error: BaseException) -> None:
    def raising() -> None:
        raise error

    async def main() -> None:
        with pytest.raises(type(error)) as caught:
            await called(raising)
        assert caught.value is error

    asyncio.run(main())


def test_what_a_future_cannot_hold_is_told_as_such() -> None:
    def exhausted() -> object:
        return next(iter(()))

    async def main() -> None:
        with pytest.raises(RuntimeError, match="StopIteration"):
            await called(exhausted)

    asyncio.run(main())


class Question:
    """A handler that tells the loop that it was asked, and then waits for a person."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.asked = asyncio.Event()
        self.answered = threading.Event()
        self.thread: threading.Thread | None = None

    def __call__(self) -> str:
        self.thread = threading.current_thread()
        self.loop.call_soon_threadsafe(self.asked.set)
        self.answered.wait(30.0)
        return "late"

    def answer(self) -> None:
        """Answer, and wait until the thread has ended."""
        self.answered.set()
        assert self.thread is not None
        self.thread.join(30.0)
        assert not self.thread.is_alive()


def test_an_answer_that_nobody_waits_for_is_dropped() -> None:
    async def main() -> None:
        question = Question()
        task = asyncio.create_task(called(question))
        await question.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        question.answer()
        await asyncio.sleep(0)

    asyncio.run(main())


def test_an_answer_after_the_loop_has_ended_is_dropped() -> None:
    async def main() -> Question:
        question = Question()
        task = asyncio.create_task(called(question))
        await question.asked.wait()
        task.cancel()
        return question

    asyncio.run(main()).answer()
