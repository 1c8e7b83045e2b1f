"""When the next wait ends: one FIFO lane per distinct duration.

Knows no clock; `now` and deadlines are instants in seconds, any epoch. Deadlines of one lane are
due in the order they were added, so adding and removing are O(1), and the number of entries is the
number of live waits: a removed deadline leaves nothing behind (ADR-0003).
"""

from __future__ import annotations

from typing import Generic, TypeAlias, TypeVar, cast

__all__ = ["Deadlines", "Timed"]

Lane: TypeAlias = "dict[Timed, float]"


class Timed:
    """What may wait: `lane` is where its deadline is, and belongs to `Deadlines`."""

    __slots__ = ("lane",)

    def __init__(self) -> None:
        self.lane: Lane | None = None


Waiting = TypeVar("Waiting", bound=Timed)


class Deadlines(Generic[Waiting]):
    """The deadlines of all waits of one core.

    At most one per wait, whose `lane` says where it is: a table of our own for that would take
    more memory than anything else that a parked call keeps.
    """

    __slots__ = ("_lanes", "earliest")

    def __init__(self) -> None:
        self._lanes: dict[float, Lane] = {}
        self.earliest: float | None = None
        """A lower bound of the next deadline: never later than it, exact after `due`."""

    def __len__(self) -> int:
        return sum(map(len, self._lanes.values()))

    def add(self, wait: Waiting, duration: float, now: float) -> None:
        """Let `wait` be due `duration` seconds after `now`; it must not have a deadline yet."""
        assert wait.lane is None, "one deadline per wait"
        lane = self._lanes.get(duration)
        if lane is None:
            lane = self._lanes[duration] = {}
        due_at = now + duration
        lane[wait] = due_at
        wait.lane = lane
        earliest = self.earliest
        if earliest is None or due_at < earliest:
            self.earliest = due_at

    def remove(self, wait: Waiting) -> None:
        """Forget the deadline of `wait`, if it has one."""
        lane = wait.lane
        if lane is not None:
            wait.lane = None
            del lane[wait]

    def shorten(self, wait: Waiting, duration: float, now: float) -> None:
        """Let `wait`, which has a deadline, be due in `duration` seconds unless it is earlier."""
        assert wait.lane is not None, "there is a deadline to shorten"
        if now + duration < wait.lane[wait]:
            self.remove(wait)
            self.add(wait, duration, now)

    def due(self, now: float) -> list[Waiting]:
        """Take every wait whose deadline is at or before `now`, in the order of the deadlines."""
        # What was removed leaves a gap in a dict until that grows. A look at the head walks over
        # the gaps, which are never more than there were waits at once; a tick is rare.
        found: list[tuple[float, Timed]] = []
        for lane in self._lanes.values():
            for wait, due_at in lane.items():
                if due_at > now:
                    break
                found.append((due_at, wait))
        for _, wait in found:
            self.remove(cast("Waiting", wait))
        # Callers may bring any duration: lanes must not pile up.
        self._lanes = {duration: lane for duration, lane in self._lanes.items() if lane}
        heads = [next(iter(lane.values())) for lane in self._lanes.values()]
        self.earliest = min(heads, default=None)
        found.sort(key=lambda item: item[0])
        return cast("list[Waiting]", [wait for _, wait in found])
