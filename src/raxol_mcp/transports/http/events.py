"""The events of one logical stream of a session: numbered, and remembered for a while.

Pure: knows no connection and no clock. What a client has read it may ask for again from there
(MCP 2025-11-25 basic/transports §Resumability and Redelivery). An event's id names its stream, and
the name cannot be guessed: whoever has one has read that stream.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from raxol_mcp.wire import sse

__all__ = ["MAX_EVENTS", "MAX_EVENT_BYTES", "EventLog", "stream_of"]

MAX_EVENTS: Final = 64
MAX_EVENT_BYTES: Final = 256 * 1024


def stream_of(event_id: str) -> tuple[str, int] | None:
    """Split an event id into its stream and its number; None when it is none of ours."""
    name, _, number = event_id.rpartition(".")
    if not name or not (number.isascii() and number.isdigit()) or len(number) > 15:
        return None
    return name, int(number)


class EventLog:
    """One stream: what number comes next, and the last events.

    At most `max_events` and `max_bytes` are kept. Of what is beyond, the oldest that may be left
    out (progress, logs) goes first, then the oldest; `lost` is the number of the last event that
    went and was none of those. `sent` is the number of the last event that was handed to a reader.
    """

    __slots__ = ("_kept", "_size_bytes", "lost", "name", "number", "sent")

    def __init__(self, name: str) -> None:
        self.name = name
        self.number = 0
        self.sent = 0
        self.lost = 0
        self._kept: deque[tuple[int, bytes, bool]] | None = None
        self._size_bytes = 0

    @property
    def size_bytes(self) -> int:
        """How much is kept."""
        return self._size_bytes

    def priming(self, *, retry: float) -> bytes:
        """Write the event that tells a client where the stream begins; it carries nothing."""
        self.number += 1
        return sse.event(b"", id=f"{self.name}.{self.number}", retry=retry)

    def append(
        self,
        line: bytes,
        *,
        droppable: bool = False,
        max_events: int = MAX_EVENTS,
        max_bytes: int = MAX_EVENT_BYTES,
    ) -> bytes:
        """Number one message, keep it and return it as an event."""
        self.number += 1
        frame = sse.message(line, id=f"{self.name}.{self.number}")
        if self._kept is None:
            self._kept = deque()
        self._kept.append((self.number, frame, droppable))
        self._size_bytes += len(frame)
        while self._kept and (len(self._kept) > max_events or self._size_bytes > max_bytes):
            self._leave_out()
        return frame

    def waits(self, line: bytes) -> bool:
        """Say whether a message that equals this one is kept and was handed to no reader."""
        said = sse.message(line)  # what follows the id
        return any(
            number > self.sent and frame.endswith(said) for number, frame, _ in self._kept or ()
        )

    def after(self, number: int) -> list[bytes]:
        """Return the events after `number`, oldest first; what is before it has been read."""
        while self._kept and self._kept[0][0] <= number:
            _, frame, _ = self._kept.popleft()
            self._size_bytes -= len(frame)
        return [frame for _, frame, _ in self._kept or ()]

    def _leave_out(self) -> None:
        assert self._kept, "called while something is kept"
        place = next((at for at, (_, _, droppable) in enumerate(self._kept) if droppable), 0)
        number, frame, droppable = self._kept[place]
        del self._kept[place]
        self._size_bytes -= len(frame)
        if not droppable:
            self.lost = number
