"""Threads: what happens to a blocking function, whatever it does."""

from __future__ import annotations

import contextvars
import subprocess
import sys
import threading
import weakref
from functools import partial
from queue import SimpleQueue

import pytest

from raxol_mcp.server.threads import Threads

# Far above what anything here takes; only a failure waits for it.
BOUND = 20.0


class Ends:
    """Collects what `done` was called with, and in which thread."""

    def __init__(self) -> None:
        self.queue: SimpleQueue[tuple[object, BaseException | None, threading.Thread]]
        self.queue = SimpleQueue()

    def __call__(self, result: object, failure: BaseException | None) -> None:
        self.queue.put((result, failure, threading.current_thread()))

    def next(self) -> tuple[object, BaseException | None, threading.Thread]:
        return self.queue.get(timeout=BOUND)


class Thing:
    """Something that can be referred to weakly."""


def raise_(error: BaseException) -> None:
    raise error


def test_the_result_is_told() -> None:
    ends = Ends()
    Threads().submit(lambda: 42, ends)
    assert ends.next()[:2] == (42, None)


@pytest.mark.parametrize("kind", [ValueError, SystemExit, KeyboardInterrupt, StopIteration])
def test_whatever_is_raised_is_told_and_the_thread_lives_on(kind: type[BaseException]) -> None:
    """K09: a user's function cannot end more than its own call."""
    threads, ends = Threads(), Ends()
    error = kind()
    threads.submit(lambda: raise_(error), ends)
    result, failure, thread = ends.next()
    assert (result, failure) == (None, error)
    threads.submit(threading.current_thread, ends)
    assert ends.next()[0] is thread


def test_a_thread_is_used_again() -> None:
    threads, ends = Threads(), Ends()
    used = set()
    for _ in range(50):
        threads.submit(threading.current_thread, ends)
        used.add(ends.next()[0])
    assert len(used) == 1
    assert threads.alive == 1


def test_there_are_as_many_threads_as_functions_that_run() -> None:
    """ours: ADR-0004. The slots are the bound, there is no hidden one below it."""
    threads, ends, gate = Threads(), Ends(), threading.Event()
    for _ in range(100):
        threads.submit(lambda: gate.wait(BOUND), ends)
    assert (threads.running, threads.alive) == (100, 100)
    gate.set()
    assert all(ends.next()[0] for _ in range(100))
    assert (threads.running, threads.alive) == (0, 100)


def test_who_is_told_that_a_function_ended_finds_its_slot_free() -> None:
    threads, seen = Threads(), SimpleQueue[int]()
    threads.submit(lambda: None, lambda *_: seen.put(threads.running))
    assert seen.get(timeout=BOUND) == 0


def test_the_newest_thread_is_taken_first_so_that_the_others_get_old() -> None:
    threads, ends = Threads(), Ends()
    gates = [threading.Event(), threading.Event()]
    for gate in gates:
        threads.submit(partial(gate.wait, BOUND), ends)
    gates[0].set()
    ends.next()
    gates[1].set()
    last = ends.next()[2]
    for _ in range(10):
        threads.submit(threading.current_thread, ends)
        assert ends.next()[0] is last


def test_an_idle_thread_ends() -> None:
    threads, ends = Threads(idle_timeout=0.001), Ends()
    threads.submit(lambda: None, ends)
    thread = ends.next()[2]
    thread.join(BOUND)
    assert not thread.is_alive()
    assert threads.alive == 0
    threads.submit(lambda: "again", ends)
    assert ends.next()[0] == "again"


def test_no_function_is_lost_to_a_thread_that_is_about_to_end() -> None:
    """The race of a new job with the end of the wait for it, as often as it can be had."""
    threads, ends = Threads(idle_timeout=0.0), Ends()
    for number in range(500):
        threads.submit(partial(int, number), ends)
        assert ends.next()[0] == number


def test_the_context_is_the_functions_alone() -> None:
    variable = contextvars.ContextVar("variable", default="outside")
    context = contextvars.copy_context()
    context.run(variable.set, "inside")
    seen = SimpleQueue[object]()

    def done(result: object, _: BaseException | None) -> None:
        seen.put((result, variable.get()))

    Threads().submit(variable.get, done, context=context)
    assert seen.get(timeout=BOUND) == ("inside", "outside")


def test_a_loop_that_is_closed_does_not_end_the_thread() -> None:
    threads, ends = Threads(), Ends()

    def done(_: object, failure: BaseException | None) -> None:
        ends(None, failure)
        raise RuntimeError("Event loop is closed")

    threads.submit(lambda: None, done)
    thread = ends.next()[2]
    threads.submit(lambda: "alive", ends)
    assert ends.next() == ("alive", None, thread)
    assert threads.running == 0


def test_an_idle_thread_holds_nothing_of_the_last_call() -> None:
    threads, ends = Threads(), Ends()

    references: list[weakref.ref[Thing]] = []

    def returns() -> Thing:
        return Thing()

    def keep(thing: Thing | None, failure: BaseException | None) -> None:
        assert thing is not None
        references.append(weakref.ref(thing))
        ends(None, failure)

    def raises() -> None:
        local = Thing()
        references.append(weakref.ref(local))
        raise ValueError

    threads.submit(returns, keep)
    ends.next()
    threads.submit(raises, lambda *_: ends(None, None))
    ends.next()
    threads.submit(lambda: None, ends)  # the one thread drops a job before it takes the next
    ends.next()
    assert threads.alive == 1
    assert [reference() for reference in references] == [None, None]


def test_nothing_is_started_when_the_system_refuses_a_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    threads, ends = Threads(), Ends()
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError, match="can't start"):
        threads.submit(lambda: None, ends)
    assert (threads.running, threads.alive) == (0, 0)
    monkeypatch.undo()
    threads.submit(lambda: 1, ends)
    assert ends.next()[0] == 1


def test_a_stuck_thread_does_not_keep_the_interpreter() -> None:
    """K14: the exit is bounded although the thread cannot be stopped."""
    program = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        "import threading; from raxol_mcp.server.threads import Threads\n"
        "begun = threading.Event()\n"
        "def stuck(): begun.set(); threading.Event().wait()\n"
        "Threads().submit(stuck, lambda *_: None); begun.wait(); print('leaving')\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, timeout=BOUND, check=True
    )
    assert ended.stdout == b"leaving\n"
