"""The person at the terminal of this process: reads the lines that they type.

Knows nothing of what is asked. Waits in the event loop and not in a thread, so that a question can
be withdrawn: a thread that reads a terminal cannot be stopped.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from raxol_mcp.cli.screen import Screen

__all__ = ["TRIES", "GaveUp", "Terminal"]

TRIES: Final = 3
"""How often a person is asked the same thing before that counts as a no."""

# A terminal gives at most 4,096 bytes a line; what is much longer is not what a person typed.
_MAX_LINE_BYTES: Final = 65_536
_READ_BYTES: Final = 4096


class GaveUp(Exception):
    """The person left a question unanswered: Ctrl-C, Ctrl-D, or the terminal is gone."""


class Terminal:
    """One terminal, which shows one question at a time."""

    def __init__(self, screen: Screen, fd: int) -> None:
        self.screen = screen
        self._fd = fd
        self._free = asyncio.Lock()
        self._typed = bytearray()
        self._waiting: asyncio.Future[str] | None = None

    @classmethod
    def of_process(cls, screen: Screen) -> Terminal | None:
        """Find the person: None unless stdin and stderr are both terminals.

        stdout may go elsewhere: a result can be piped while the questions are read.
        """
        if sys.__stdin__ is None or not screen.is_terminal:
            return None
        try:
            fd = sys.__stdin__.fileno()
        except (OSError, ValueError):  # closed
            return None
        return cls(screen, fd) if os.isatty(fd) else None

    @asynccontextmanager
    async def question(self) -> AsyncIterator[None]:
        """Wait for the turn of a question, and keep everything else off the screen meanwhile.

        What was typed before is dropped: it was not meant for this.
        """
        async with self._free:
            self._forget()
            with self.screen.asking():
                yield

    async def line(self, prompt: str) -> str:
        """Write `prompt` and return the line that is typed after it. Raises `GaveUp`.

        Only inside `question`. Cancelled, it reads no more.
        """
        self.screen.ask(prompt)
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[str] = loop.create_future()
        self._waiting = waiting
        self._take()  # several lines pasted at once are several answers
        if not waiting.done():
            loop.add_reader(self._fd, self._readable)
        try:
            return await waiting
        except (GaveUp, asyncio.CancelledError):
            self.screen.ask("\n")  # the cursor stands behind the prompt
            raise
        finally:
            loop.remove_reader(self._fd)
            self._waiting = None

    async def yes(self, question: str) -> bool:
        """Ask for a yes or no; only a typed yes is one. Raises `GaveUp`. Inside `question`."""
        for _ in range(TRIES):
            typed = (await self.line(f"{question} [y/N] ")).strip().lower()
            if typed in ("y", "yes"):
                return True
            if typed in ("", "n", "no"):
                return False
        return False

    def interrupted(self) -> bool:
        """Ctrl-C came: end the question that waits, and say whether there was one."""
        return self._give_up()

    def _forget(self) -> None:
        import termios

        self._typed.clear()
        with suppress(OSError, termios.error):
            termios.tcflush(self._fd, termios.TCIFLUSH)

    def _readable(self) -> None:
        try:
            read = os.read(self._fd, _READ_BYTES)
        except OSError:
            read = b""
        self._typed += read
        self._take()
        if not read or len(self._typed) > _MAX_LINE_BYTES:
            self._give_up()

    def _take(self) -> None:
        end = self._typed.find(b"\n")
        if end >= 0 and self._waiting is not None and not self._waiting.done():
            line = bytes(self._typed[:end])
            del self._typed[: end + 1]
            self._waiting.set_result(line.decode(errors="replace").removesuffix("\r"))

    def _give_up(self) -> bool:
        if self._waiting is None or self._waiting.done():
            return False
        self._waiting.set_exception(GaveUp())
        return True
