"""Server-sent events as bytes: written, and read back however they are cut.

Not a stream: nothing here waits, resumes or knows a connection. WHATWG HTML §9.2; MCP uses
`event: message` with one JSON message as data (basic/transports §Streamable HTTP).

What is written has LF line ends, which every reader takes. What is read may have CR, LF or CRLF,
mixed.
"""

from __future__ import annotations

from typing import Final

from raxol_mcp.errors import LocalProtocolError
from raxol_mcp.wire.framing import TooLong
from raxol_mcp.wire.values import Value

__all__ = ["KEEP_ALIVE", "MAX_EVENT_BYTES", "Event", "Events", "comment", "event", "message"]

MAX_EVENT_BYTES: Final = 4 * 1024 * 1024

# A comment: readers drop it, and nothing on the way takes the connection for a dead one.
KEEP_ALIVE: Final = b":\n\n"

_BOM: Final = b"\xef\xbb\xbf"
_RETRY_DIGITS: Final = 9  # of milliseconds; what is longer is no time anybody waits
_LONGEST_RETRY: Final = 10**6  # seconds, the same bound for what is written


def message(line: bytes, *, id: str | None = None) -> bytes:
    """Write one encoded JSON-RPC message as an event."""
    return event(line, name="message", id=id)


def event(
    data: bytes, *, name: str | None = None, id: str | None = None, retry: float | None = None
) -> bytes:
    """Write one event.

    A line break in `data` starts another `data` line, so that nothing in it can end the event or
    pose as a field; a reader gets LF for each. `retry` is in seconds, written as whole
    milliseconds. Empty `data` with an `id` is how a stream is primed (MCP 2025-11-25
    basic/transports §Sending Messages to the Server). Raises `LocalProtocolError` for a name or
    an id that a reader would see otherwise than it was meant: ours are never a peer's.
    """
    head = b""
    if id is not None:
        head += b"id: %b\n" % _field("id", id)
    if retry is not None:
        head += b"retry: %d\n" % _milliseconds(retry)
    if name is not None:
        head += b"event: %b\n" % _field("event", name)
    if b"\n" in data or b"\r" in data:
        data = b"\ndata: ".join(_broken(data).split(b"\n"))
    return b"%bdata: %b\n\n" % (head, data)


def comment(text: str = "") -> bytes:
    """Write a comment of any text, for whoever reads the stream with their eyes."""
    lines = _broken(text.encode(errors="replace")).split(b"\n")
    return b"".join(b": %b\n" % line for line in lines) + b"\n"


class Event(Value, frozen=True):
    """One event as it was read.

    `id` is the last id the stream has named so far, "" before the first.
    """

    data: bytes
    name: str = "message"
    id: str = ""


class Events:
    """The reading end of one stream.

    Holds at most `max_event_bytes` (and, while `feed` runs, the bytes it was given). An event
    that is longer comes out as one `TooLong`, as soon as that is certain; the rest of it is
    skipped. `last_id` and `retry` (seconds, None until the stream names one) are what a client
    that reconnects has to know.
    """

    __slots__ = (
        "_after_return",
        "_data",
        "_held_bytes",
        "_max_event_bytes",
        "_name",
        "_pending",
        "_skipping",
        "_started",
        "last_id",
        "retry",
    )

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self.last_id = ""
        self.retry: float | None = None
        self._max_event_bytes = max_event_bytes
        self._started = False  # the first line, which may begin with a mark, was read
        self._after_return = False  # the last byte was CR, so that an LF now is part of it
        self._pending = bytearray()
        self._data: list[bytes] = []
        self._name = ""
        self._held_bytes = 0  # of the event in progress, without `_pending`
        self._skipping = False  # the event in progress was reported as too long

    def feed(self, data: bytes) -> list[Event | TooLong]:
        """Take the next bytes; give the events they complete, in order.

        What a stream ends with, short of an empty line, is no event (§9.2.6).
        """
        if self._after_return and data.startswith(b"\n"):
            data = data[1:]
            self._after_return = False
        if data:
            self._after_return = data.endswith(b"\r")
        *ends, rest = _broken(data).split(b"\n")
        found: list[Event | TooLong] = []
        for end in ends:
            line = bytes(self._pending + end) if self._pending else end
            self._pending.clear()
            if not self._too_long(len(line), found):
                self._line(line, found)
            elif not line:
                self._skipping = False
        if self._too_long(len(self._pending) + len(rest), found):
            # One byte of a skipped line is enough to know later that it is not an empty one.
            rest = b"" if self._pending else rest[:1]
        self._pending += rest
        return found

    def _too_long(self, more_bytes: int, found: list[Event | TooLong]) -> bool:
        """Say whether the event in progress is skipped, from now on if it grew beyond the limit."""
        seen_bytes = self._held_bytes + more_bytes
        if not self._skipping and seen_bytes > self._max_event_bytes:
            found.append(TooLong(seen_bytes))
            self._reset()
            self._pending.clear()
            self._skipping = True
        return self._skipping

    def _line(self, line: bytes, found: list[Event | TooLong]) -> None:
        if not self._started:
            self._started = True
            line = line.removeprefix(_BOM)
        if not line:
            if self._data:
                name = self._name or "message"
                found.append(Event(b"\n".join(self._data), name, self.last_id))
            self._reset()
            return
        field, _, value = line.partition(b":")
        self._field(field, value.removeprefix(b" "))

    def _field(self, field: bytes, value: bytes) -> None:
        match field:
            case b"data":
                self._data.append(value)
                self._held_bytes += len(value) + 1
            case b"event":
                self._name = value.decode("utf-8", "replace")
            case b"id" if b"\0" not in value:
                self.last_id = value.decode("utf-8", "replace")
            case b"retry" if value.isdigit() and len(value) <= _RETRY_DIGITS:
                self.retry = int(value) / 1000
            case _:
                pass  # a comment, or a field of a later edition

    def _reset(self) -> None:
        self._data = []
        self._name = ""
        self._held_bytes = 0


def _broken(data: bytes) -> bytes:
    """Make every line break an LF."""
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _field(what: str, text: str) -> bytes:
    value = text.encode()
    if any(byte in value for byte in b"\r\n\0"):
        raise LocalProtocolError(f"the {what} of an event cannot hold a line break or NUL")
    return value


def _milliseconds(seconds: float) -> int:
    if not 0 <= seconds < _LONGEST_RETRY:
        raise LocalProtocolError("retry is a number of seconds from 0 to 11 days")
    return round(seconds * 1000)
