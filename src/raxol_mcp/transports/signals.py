"""SIGTERM and SIGINT while a transport serves: the first asks, the second ends.

* The first signal reports itself once to the event loop. If the end it asks for is not reached
  within `exit_timeout`, the process ends by itself: a tool that blocks the loop cannot keep it.
* The second ends the process at once, with the exit code a shell expects (128 + number).

Handlers of the interpreter and not of the loop: those of the loop wait for their turn, which
never comes when the loop is what is stuck.
"""

from __future__ import annotations

import _thread
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

__all__ = ["EXIT_TIMEOUT", "stop_signals"]

# Launchers send SIGKILL some seconds after SIGTERM; ten leave room for an orderly end.
EXIT_TIMEOUT: Final = 10.0
_WATCHED: Final = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stop_signals(
    loop: AbstractEventLoop,
    first: Callable[[signal.Signals], None],
    *,
    at_exit: Callable[[], None],
    exit_timeout: float = EXIT_TIMEOUT,
) -> Iterator[None]:
    """Watch both signals inside the `with` block; put the former handlers back after it.

    `first` is called in `loop`; `at_exit` right before the process is ended from here, in
    whatever thread that happens. A signal that is ignored stays ignored (`nohup`, a background
    job of a shell). Outside the main thread nothing is watched: signals are not ours there.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    seen: list[int] = []
    finished = _thread.allocate_lock()
    finished.acquire()

    def ends(number: int) -> None:
        try:
            at_exit()
        finally:
            os._exit(128 + number)

    def watches(number: int) -> None:
        if not finished.acquire(timeout=exit_timeout):
            ends(number)

    def received(number: int, _frame: FrameType | None) -> None:
        seen.append(number)
        if len(seen) > 1:
            ends(number)
        loop.call_soon_threadsafe(first, signal.Signals(number))
        # Not `threading`: its lock may be held by the very code this handler interrupts. Without
        # a thread to be had, the second signal is what remains.
        with suppress(RuntimeError):
            _thread.start_new_thread(watches, (number,))

    former = {
        number: handler
        for number in _WATCHED
        if (handler := signal.getsignal(number)) not in (signal.SIG_IGN, None)
    }
    for number in former:
        signal.signal(number, received)
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
        finished.release()
