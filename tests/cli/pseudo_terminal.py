"""A terminal with a person at it: what the program shows can be read, and lines can be typed.

Echo is off, so that what is shown is what the program wrote.
"""

import asyncio
import os
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

# Bounds every wait, in seconds; none should come near it.
TIMEOUT = 30.0


class PseudoTerminal:
    """`fd` and `stream` are the program's side; the rest is the person's.

    `shown` is what came since the last thing that was seen, `transcript` all that came.
    """

    def __init__(self, columns: int = 60) -> None:
        self.master, self.fd = os.openpty()
        attributes = termios.tcgetattr(self.fd)
        attributes[1] &= ~termios.OPOST
        attributes[3] &= ~termios.ECHO
        termios.tcsetattr(self.fd, termios.TCSANOW, attributes)
        termios.tcsetwinsize(self.fd, (24, columns))
        self.stream: TextIO = open(self.fd, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  # closed below
        self.shown = ""
        self.transcript = ""

    async def sees(self, text: str) -> None:
        """Wait until the program has shown `text`; forget all that came up to it."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(TIMEOUT):
            while text not in self.shown:
                arrived = asyncio.Event()
                loop.add_reader(self.master, arrived.set)
                try:
                    await arrived.wait()
                finally:
                    loop.remove_reader(self.master)
                self._reads()
        self.shown = self.shown.split(text, 1)[1]

    def types(self, text: str) -> None:
        """Type something; a line ends with a line break."""
        os.write(self.master, text.encode())

    def all(self) -> str:
        """Give all that was shown and not yet seen."""
        self.stream.flush()
        os.set_blocking(self.master, False)
        try:
            self._reads()
        except BlockingIOError:
            pass
        finally:
            os.set_blocking(self.master, True)
        return self.shown

    def _reads(self) -> None:
        read = os.read(self.master, 65_536).decode()
        self.shown += read
        self.transcript += read

    def close(self) -> None:
        """Hang up."""
        with suppress(OSError):  # the terminal is gone
            self.stream.close()
        os.close(self.fd)
        os.close(self.master)


@contextmanager
def pseudo_terminal(columns: int = 60) -> Iterator[PseudoTerminal]:
    """Give a terminal for one test."""
    terminal = PseudoTerminal(columns)
    try:
        yield terminal
    finally:
        terminal.close()
