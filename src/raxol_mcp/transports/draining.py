"""One descriptor read to its end as it comes, so that whoever writes there never has to wait.

Knows no lines and no messages. The descriptor has to be non-blocking and stays its owner's.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Final

__all__ = ["Drain"]

# What a pipe holds on Linux: a larger read would find nothing more.
_READ_BYTES: Final = 64 * 1024
# What `catch_up` reads at most; a pipe may be made to hold this much.
_CATCH_UP_READS: Final = 16


class Drain:
    """Hands what can be read from `fd` to `take`, at most one chunk per turn of the loop."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, fd: int, take: Callable[[bytes], None]
    ) -> None:
        self._loop = loop
        self._fd = fd
        self._take = take
        self._reading = False

    def start(self) -> None:
        """Read from now on, until the end or `stop`."""
        self._reading = True
        self._loop.add_reader(self._fd, self._read)

    def catch_up(self) -> None:
        """Take at once what is there already, within a bound."""
        for _ in range(_CATCH_UP_READS):
            if not self._reading or not self._read():
                break

    def stop(self) -> None:
        """Read nothing more. Again: nothing."""
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._fd)

    def _read(self) -> bool:
        """Take one chunk; return whether there was one."""
        try:
            chunk = os.read(self._fd, _READ_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            chunk = b""
        if chunk:
            self._take(chunk)
            return True
        self.stop()
        return False
