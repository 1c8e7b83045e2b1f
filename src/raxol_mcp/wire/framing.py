"""A byte stream cut into lines, for every transport that frames messages with newlines.

Not a decoder: a line is bytes, and stays bytes until it is complete. Only 0x0A ends a line (MCP
basic/transports §stdio); CR, U+0085, U+2028 and their like belong to the message.
"""

from __future__ import annotations

from typing import Final

import msgspec

__all__ = ["MAX_LINE_BYTES", "Lines", "TooLong"]

MAX_LINE_BYTES: Final = 4 * 1024 * 1024


class TooLong(msgspec.Struct, frozen=True):
    """In place of a line over the limit, once; the rest of that line is dropped unseen.

    `seen_bytes` of it had arrived when that became certain: it may have been longer.
    """

    seen_bytes: int


class Lines:
    """One direction of one stream.

    Holds at most `max_line_bytes` (and, while `feed` runs, the bytes it was given) whatever
    arrives, and touches each byte a bounded number of times however small the pieces are.
    """

    __slots__ = ("_max_line_bytes", "_pending", "_skipping")

    def __init__(self, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_line_bytes = max_line_bytes
        self._pending = bytearray()
        self._skipping = False  # the line in progress was reported as too long

    def feed(self, data: bytes) -> list[bytes | TooLong]:
        """Take the next bytes; give the lines they complete, without their newlines, in order."""
        *ends, rest = data.split(b"\n")
        lines: list[bytes | TooLong] = []
        for end in ends:
            if self._skipping:
                self._skipping = False
            else:
                lines.append(self._completed(end))
        if rest and not self._skipping:
            seen_bytes = len(self._pending) + len(rest)
            if seen_bytes > self._max_line_bytes:
                self._skipping = True
                self._pending = bytearray()
                lines.append(TooLong(seen_bytes))
            else:
                self._pending += rest
        return lines

    def eof(self) -> list[bytes | TooLong]:
        """Give the last line of an ended stream if that came without a newline, and start over."""
        last = bytes(self._pending)
        self._pending = bytearray()
        self._skipping = False
        return [last] if last else []

    def _completed(self, end: bytes) -> bytes | TooLong:
        seen_bytes = len(self._pending) + len(end)
        line: bytes | TooLong
        if seen_bytes > self._max_line_bytes:
            line = TooLong(seen_bytes)
        elif self._pending:
            line = bytes(self._pending + end)
        else:
            return end  # the common case copies nothing
        self._pending = bytearray()
        return line
