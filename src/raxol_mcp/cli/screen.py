"""What people see while a command runs: stderr, of which this module is the only writer.

Three things share it: notes, a progress line that is drawn over itself, and a question that waits
for an answer. Nothing else appears while one waits, so that nobody but us writes beside it. What
is shown is printable text already: see `raxol_mcp.cli.screen_text`.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TextIO

__all__ = ["Screen"]

# How many notes are kept while a question waits; of the older ones only the number is told.
_MAX_HELD: Final = 100
_FALLBACK_WIDTH: Final = 80
# So that a question can be read even where a terminal says that it has no width.
_LEAST_WIDTH: Final = 20

_ERASE: Final = "\r\x1b[K"
_STYLES: Final = {"bold": "\x1b[1m", "dim": "\x1b[2m", "warning": "\x1b[1;33m"}
_PLAIN: Final = "\x1b[0m"


class Screen:
    """Writes to one stream; on a terminal with styles and a line that can be drawn again.

    A stream that cannot be written to is left alone: a result must not be lost for a note.
    """

    def __init__(self, stream: TextIO, *, is_terminal: bool, width: int | None = None) -> None:
        self.is_terminal = is_terminal
        self._stream = stream
        self._width = width
        self._styled = is_terminal and not os.environ.get("NO_COLOR")
        self._gone = False
        self._drawn = ""
        self._holding = False
        self._held: deque[str] = deque(maxlen=_MAX_HELD)
        self._missed = 0

    @classmethod
    def of_process(cls) -> Screen:
        """Make the one of this process's stderr."""
        return cls(sys.stderr, is_terminal=sys.stderr.isatty())

    @property
    def width(self) -> int:
        """How many columns a line may have."""
        if self._width is not None:
            return self._width
        try:
            width = os.get_terminal_size(self._stream.fileno()).columns
        except (OSError, ValueError):
            width = 0
        return max(width, _LEAST_WIDTH) if width else _FALLBACK_WIDTH

    def styled(self, text: str, style: str) -> str:
        """Give a text a style where there are any: "bold", "dim" or "warning"."""
        return f"{_STYLES[style]}{text}{_PLAIN}" if self._styled and text else text

    def note(self, line: str) -> None:
        """Show a line, above the progress line; while a question waits, after that."""
        if self._holding:
            self._missed += len(self._held) == _MAX_HELD
            self._held.append(line)
        else:
            self._write(f"{self._erased()}{line}\n{self._drawn}")

    def draw(self, line: str) -> None:
        """Draw the progress line anew; an empty one removes it. Only a terminal has one."""
        if self.is_terminal and line != self._drawn:
            before = self._erased()
            self._drawn = line
            if not self._holding:
                self._write(before + line)

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Keep notes and the progress line back until a question has been dealt with."""
        self._write(self._erased())
        self._holding = True
        try:
            yield
        finally:
            self._holding = False
            missed, self._missed = self._missed, 0
            if missed:
                self._write(f"... {missed} earlier notes are not shown\n")
            while self._held:
                self._write(f"{self._held.popleft()}\n")
            self._write(self._drawn)

    def ask(self, text: str) -> None:
        """Write a part of a question, as it is; only inside `asking`."""
        assert self._holding, "a question is asked while notes are kept back"
        self._write(text)

    def _erased(self) -> str:
        return _ERASE if self._drawn and not self._holding else ""

    def _write(self, text: str) -> None:
        if self._gone:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:  # a pipe without a reader, a terminal that hung up
            self._gone = True
