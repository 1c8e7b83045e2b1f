"""What a server writes to its stderr: read always, kept a little, shown without what could harm.

Decides nothing: output there is no failure (MCP 2026-07-28 basic/transports/stdio). It is the
first thing a person asks for when a server has ended, so the end of it is kept, and stays when
the server is gone.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from raxol_mcp.errors import MAX_TEXT
from raxol_mcp.wire.texts import printable

__all__ = ["ErrorTail", "shown"]

# Off by default, as every logger's debug level is. Each line of a server is one record.
logger = logging.getLogger("raxol_mcp.client.stderr")

_MAX_LINES: Final = 200
_MAX_BYTES: Final = 64 * 1024
# Of a line without an end this much is kept, the rest goes.
_MAX_LINE_BYTES: Final = 4 * 1024
# The last few for a reason: the very last is the version of the interpreter as often as the error.
_LAST_LINES: Final = 3


class ErrorTail:
    """The last 200 lines of one stderr, and at most 64 KiB of them.

    `name` says in the log whose they are; `mask` hides what must not be shown. Bytes that are no
    UTF-8 are shown as escapes.
    """

    def __init__(self, name: str, mask: Callable[[str], str] = str) -> None:
        self._name = name
        self._mask = mask
        self._lines: deque[bytes] = deque()
        self._size_bytes = 0
        self._unfinished = b""
        self._skipping = False  # the line in progress is cut off

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes, cut anywhere."""
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            self._extend(end)
            self._complete()
        self._extend(rest)

    def text(self) -> str:
        """Return what is kept, escaped line by line; empty before anything was written."""
        lines = [*self._lines, self._unfinished] if self._unfinished else self._lines
        return "\n".join(map(self.readable, lines))

    def last_words(self) -> str:
        """Return the last few lines as one, for a `Reason`: the end is what is kept of it."""
        lines = [line for line in self.text().split("\n") if line.strip()]
        words = " | ".join(line.strip() for line in lines[-_LAST_LINES:])
        return words if len(words) <= MAX_TEXT else f"...{words[3 - MAX_TEXT :]}"

    def _extend(self, piece: bytes) -> None:
        if self._skipping:
            return
        room = _MAX_LINE_BYTES - len(self._unfinished)
        if len(piece) > room:
            self._skipping = True
            piece = piece[:room] + b"..."
        self._unfinished += piece

    def _complete(self) -> None:
        line = self._unfinished.removesuffix(b"\r")
        self._unfinished = b""
        self._skipping = False
        self._lines.append(line)
        self._size_bytes += len(line) + 1
        while len(self._lines) > _MAX_LINES or self._size_bytes > _MAX_BYTES:
            self._size_bytes -= len(self._lines.popleft()) + 1
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("%s: %s", self._name, self.readable(line))

    def shown(self, text: str | bytes) -> str:
        """Return what the server wrote anywhere as one visible line, without secrets."""
        return self._mask(shown(text))

    def readable(self, line: bytes) -> str:
        """Write one line for people: programs indent with tabs, which are controls."""
        text = line.decode("utf-8", "backslashreplace").replace("\t", "    ")
        return self._mask(printable(text))


def shown(text: str | bytes, *, limit: int = MAX_TEXT) -> str:
    """Return what a peer wrote as one visible line of at most `limit` characters."""
    if isinstance(text, bytes):
        # An escape takes more characters than bytes, never fewer.
        text = text[: limit * 4].decode("utf-8", "backslashreplace")
    text = printable(text[: limit + 1])
    return text if len(text) <= limit else f"{text[: limit - 3]}..."
