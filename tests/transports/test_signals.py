"""stop_signals: the first signal asks, and what was there before comes back."""

import asyncio
import os
import signal
import threading

import pytest

from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.transports.signals import stop_signals

BOTH = (signal.SIGTERM, signal.SIGINT)


def never() -> None:
    """Fail when the process is about to be ended."""
    raise AssertionError("the process is not to be ended")


@pytest.mark.parametrize("number", BOTH)
def test_the_first_signal_is_reported_in_the_loop(number: signal.Signals) -> None:
    async def scenario() -> list[signal.Signals]:
        seen: list[signal.Signals] = []
        loop = asyncio.get_running_loop()
        with stop_signals(loop, seen.append, at_exit=never):
            os.kill(os.getpid(), number)
            assert seen == [], "not inside the interrupted code"
            await asyncio.sleep(0.1)
        return seen

    assert run_virtual(scenario) == [number]


def test_the_former_handlers_come_back() -> None:
    async def scenario() -> None:
        before = list(map(signal.getsignal, BOTH))
        with stop_signals(asyncio.get_running_loop(), lambda _number: None, at_exit=never):
            assert list(map(signal.getsignal, BOTH)) != before
        assert list(map(signal.getsignal, BOTH)) == before

    run_virtual(scenario)


def test_an_ignored_signal_stays_ignored() -> None:
    """`nohup`, and SIGINT for a background job of a shell."""

    async def scenario() -> None:
        with stop_signals(asyncio.get_running_loop(), lambda _number: None, at_exit=never):
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            os.kill(os.getpid(), signal.SIGINT)

    former = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        run_virtual(scenario)
    finally:
        signal.signal(signal.SIGINT, former)


def test_outside_the_main_thread_nothing_is_watched() -> None:
    before = list(map(signal.getsignal, BOTH))
    inside: list[object] = []

    async def scenario() -> None:
        with stop_signals(asyncio.get_running_loop(), lambda _number: None, at_exit=never):
            inside.extend(map(signal.getsignal, BOTH))

    thread = threading.Thread(target=run_virtual, args=(scenario,))
    thread.start()
    thread.join()
    assert inside == before
