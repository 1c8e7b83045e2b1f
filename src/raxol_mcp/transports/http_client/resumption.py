"""When a stream that broke off is asked for again, and from where. Waits for nothing itself.

WHATWG HTML §9.2.3 and MCP 2025-11-25 basic/transports §Resumability: a reader comes back after
the time that the stream named (`retry`), with the last id it saw. A stream that comes to nothing
is asked for ever more rarely, and at last no more: a peer that answers the same for ever is not
asked for ever.
"""

from __future__ import annotations

import re
from random import uniform
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from raxol_mcp.wire.sse import Events

__all__ = ["DEFAULT_RETRY", "LONGEST_RETRY", "LONGEST_WAIT", "SHORTEST_WAIT", "Resumption"]

# Seconds.
DEFAULT_RETRY: Final = 1.0
LONGEST_WAIT: Final = 60.0  # that our own doubling makes of it
LONGEST_RETRY: Final = 3600.0
SHORTEST_WAIT: Final = 0.1  # whatever the peer names

_ID: Final = re.compile(r"[\x20-\x7e]{1,1024}")  # what a header can carry back


class Resumption:
    """The memory of one stream across its connections. `tries` of them in a row may be barren."""

    __slots__ = ("_barren", "_retry", "_tries", "last_id")

    def __init__(self, *, tries: int) -> None:
        self.last_id = ""
        self._retry: float | None = None
        self._barren = 0
        self._tries = tries

    @property
    def headers(self) -> dict[str, str]:
        """Where to go on, for the next request."""
        return {"Last-Event-ID": self.last_id} if self.resumable else {}

    @property
    def resumable(self) -> bool:
        """Whether the stream named a place to go on from."""
        return _ID.fullmatch(self.last_id) is not None

    def saw(self, events: Events) -> bool:
        """Know what a connection has brought so far; say whether the stream came further."""
        further = events.last_id not in ("", self.last_id)
        self.last_id = events.last_id or self.last_id
        if events.retry is not None:
            self._retry = events.retry
        return further

    def worked(self) -> None:
        """Count the tries anew: the last one was of use."""
        self._barren = 0

    def next_wait(self) -> float | None:
        """Give the seconds to wait before the next try; None when there is none."""
        if self._barren >= self._tries:
            return None
        named = DEFAULT_RETRY if self._retry is None else self._retry
        wait = min(max(named, SHORTEST_WAIT), LONGEST_RETRY)
        if self._barren:
            longest = max(wait, LONGEST_WAIT)
            # Many clients lose one server at the same moment; they must not come back as one.
            wait = min(wait * 2**self._barren * uniform(1.0, 1.1), longest)
        self._barren += 1
        return wait
