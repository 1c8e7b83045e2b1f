"""Ends this process, whatever code of the user's still holds on to it."""

from __future__ import annotations

import _thread
import os
import time

__all__ = ["end_process"]


def end_process(seconds: float, code: int) -> None:
    """See to it that the process is gone in `seconds`, with exit code `code` if it comes to that.

    Returns at once. A process that ends by itself before is left alone: exit functions are run
    and threads that are no daemons are waited for, but only so long.
    """

    def ends() -> None:
        time.sleep(seconds)
        os._exit(code)

    # Not `threading`: its locks may be held by the very code that does not end.
    _thread.start_new_thread(ends, ())
