"""Who has how many calls parked, and who must make room for whom.

Counts and orders parked calls; never closes one. Two caps hold at every moment: `per_share` and
`total`. The total is shared by everybody, so it is not first come, first served: on a full server
a share that holds fewer parked calls than the fullest one takes the place of the fullest one's
oldest call. A client that spreads its calls over many connections only crowds out itself.
"""

from __future__ import annotations

from collections.abc import Hashable
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from raxol_mcp.core.calls import Call

__all__ = ["TOO_MANY_HERE", "TOO_MANY_ON_SERVER", "Parking", "Refused"]

TOO_MANY_HERE = "too many elicitations pending"
TOO_MANY_ON_SERVER = "too many elicitations pending on this server"


class Refused(Enum):
    """Why a call cannot park; the value is the detail of the deny."""

    SHARE_FULL = TOO_MANY_HERE
    SERVER_FULL = TOO_MANY_ON_SERVER


class Parking:
    """The parked calls. An approved call that waits for a slot keeps its place here."""

    __slots__ = ("_by_share", "_count", "_evictable", "_per_share", "_total")

    def __init__(self, *, total: int, per_share: int) -> None:
        self._total = total
        self._per_share = per_share
        self._count = 0
        self._by_share: dict[Hashable, int] = {}  # never holds a zero
        # Per share, oldest first, the calls that may be evicted: approved ones never are.
        self._evictable: dict[Hashable, dict[Call, None]] = {}

    def __len__(self) -> int:
        return self._count

    def held(self, share: Hashable) -> int:
        """How many places `share` holds."""
        return self._by_share.get(share, 0)

    def shares(self) -> dict[Hashable, int]:
        """A copy of the counts, for snapshots and checks."""
        return dict(self._by_share)

    def place_for(self, share: Hashable) -> Refused | Call | None:
        """Say how `share` gets a place: None (free), the call to evict first, or the refusal.

        The victim is the oldest parked call of the fullest share; among equally full shares, of
        the one that owns the oldest call of all. A share whose every call is approved already has
        no victim to give and is passed over.
        """
        held = self.held(share)
        if held >= self._per_share:
            return Refused.SHARE_FULL
        if self._count < self._total:
            return None
        fullest = max(self._by_share.values())
        if held >= fullest:
            return Refused.SERVER_FULL
        victim: Call | None = None
        most = held
        for candidate, calls in self._evictable.items():
            count = self._by_share[candidate]
            if count < most or count <= held:
                continue
            oldest = next(iter(calls))
            if count > most or victim is None or oldest.parked_at < victim.parked_at:
                victim, most = oldest, count
        return victim if victim is not None else Refused.SERVER_FULL

    def park(self, call: Call) -> None:
        """Give `call` a place; `call.parked_at` orders it among all parked calls."""
        share = call.share
        self._count += 1
        self._by_share[share] = self._by_share.get(share, 0) + 1
        self._evictable.setdefault(share, {})[call] = None

    def protect(self, call: Call) -> None:
        """The human said yes: the call keeps its place and can no longer be evicted."""
        calls = self._evictable[call.share]
        del calls[call]
        if not calls:
            del self._evictable[call.share]

    def leave(self, call: Call) -> None:
        """Give the place of `call` back."""
        share = call.share
        calls = self._evictable.get(share)
        if calls is not None and call in calls:
            del calls[call]
            if not calls:
                del self._evictable[share]
        held = self._by_share[share]
        if held == 1:
            del self._by_share[share]
        else:
            self._by_share[share] = held - 1
        self._count -= 1
