"""When the next wait ends: one FIFO lane per distinct duration.

Knows no clock; `now` and deadlines are instants in seconds, any epoch. Deadlines of one lane are
due in the order they were added, so adding, removing and finding the earliest are O(1), and the
number of entries is the number of live waits: a removed deadline leaves nothing behind (ADR-0003).
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from raxol_mcp.core.calls import Call

__all__ = ["Deadlines"]

# A key is a call, or a call with the key of one question its running tool has asked.
Key = "Call | tuple[Call, str]"


class Deadlines:
    """The deadlines of all waits. At most one per key."""

    __slots__ = ("_lane_of", "_lanes", "earliest")

    def __init__(self) -> None:
        self._lanes: dict[float, OrderedDict[Call | tuple[Call, str], float]] = {}
        self._lane_of: dict[
            Call | tuple[Call, str], OrderedDict[Call | tuple[Call, str], float]
        ] = {}
        self.earliest: float | None = None
        """A lower bound of the next deadline: never later than it, exact after `due`."""

    def __len__(self) -> int:
        return len(self._lane_of)

    def add(self, key: Call | tuple[Call, str], duration: float, now: float) -> None:
        """Let `key` be due `duration` seconds after `now`; it must not have a deadline yet."""
        assert key not in self._lane_of, "one deadline per key"
        lane = self._lanes.get(duration)
        if lane is None:
            lane = self._lanes[duration] = OrderedDict()
        due_at = now + duration
        lane[key] = due_at
        self._lane_of[key] = lane
        earliest = self.earliest
        if earliest is None or due_at < earliest:
            self.earliest = due_at

    def remove(self, key: Call | tuple[Call, str]) -> None:
        """Forget the deadline of `key`, if it has one."""
        lane = self._lane_of.pop(key, None)
        if lane is not None:
            del lane[key]

    def shorten(self, key: Call | tuple[Call, str], duration: float, now: float) -> None:
        """Let `key`, which has a deadline, be due in `duration` seconds unless it is earlier."""
        if now + duration < self._lane_of[key][key]:
            self.remove(key)
            self.add(key, duration, now)

    def due(self, now: float) -> list[Call | tuple[Call, str]]:
        """Take every key whose deadline is at or before `now`, in the order of the deadlines."""
        found: list[tuple[float, Call | tuple[Call, str]]] = []
        for duration, lane in list(self._lanes.items()):
            while lane:
                key, due_at = next(iter(lane.items()))
                if due_at > now:
                    break
                found.append((due_at, key))
                self.remove(key)
            if not lane:
                del self._lanes[duration]  # callers may bring any duration: lanes must not pile up
        heads = [next(iter(lane.values())) for lane in self._lanes.values()]
        self.earliest = min(heads, default=None)
        found.sort(key=lambda item: item[0])
        return [key for _, key in found]
