"""How much a client has under way at once: the window, and the queue in front of it.

Decides nothing else. A slot of the window is held by a request the peer works on, or by a
notification on its way; whoever finds none waits in a bounded queue, first come first served.
Beyond that nothing is taken (`client-2.8.0` §Concurrency and the in-flight window).
"""

from __future__ import annotations

from enum import Enum

from raxol_mcp.core.tickets import Notice, Ticket, TicketState

__all__ = ["Policy", "Window"]


class Policy(Enum):
    """What the requests of one session share, and so how many may be under way."""

    STATELESS = "stateless"  # nothing: each stands alone, or ids tell them apart
    POOLED = "pooled"  # a session, in which they may overlap
    SERIALIZED = "serialized"  # a session that takes one at a time


class Window:
    """The slots and the queue of one client.

    `size` slots (one when SERIALIZED); at most `queue_limit` tickets wait. A ticket that comes
    back after a round of questions waits in front of the others and is never refused: it was
    admitted once, and a human has answered for it.
    """

    __slots__ = ("_queue", "_returned", "_size", "held", "policy", "queue_limit")

    def __init__(self, size: int, queue_limit: int) -> None:
        self.policy = Policy.STATELESS
        self.queue_limit = queue_limit
        self.held: dict[int, Ticket | Notice] = {}
        """Who holds a slot, by key."""
        self._size = size
        self._queue: dict[Ticket, None] = {}
        self._returned: dict[Ticket, None] = {}

    def __repr__(self) -> str:
        return f"{self.policy.value} {len(self.held)}/{self.cap} held, {self.queued} queued"

    @property
    def cap(self) -> int:
        """How many slots there are."""
        return 1 if self.policy is Policy.SERIALIZED else self._size

    @property
    def queued(self) -> int:
        """How many tickets wait."""
        return len(self._queue) + len(self._returned)

    def has_room(self) -> bool:
        """Say whether a slot is free."""
        return len(self.held) < self.cap

    def may_wait(self) -> bool:
        """Say whether one more ticket may wait."""
        return len(self._queue) < self.queue_limit

    def hold(self, key: int, holder: Ticket | Notice) -> None:
        """Give `holder` a slot; a notification takes one even when none is free."""
        assert key not in self.held, "one slot per key"
        self.held[key] = holder

    def wait(self, ticket: Ticket) -> None:
        """Let `ticket` wait: behind the others, or in front of them when it was sent before."""
        if ticket.rounds:
            self._returned[ticket] = None
        else:
            self._queue[ticket] = None
        ticket.moved(TicketState.QUEUED)

    def forget(self, ticket: Ticket) -> None:
        """Take `ticket` out of the queue."""
        self._queue.pop(ticket, None)
        self._returned.pop(ticket, None)

    def next(self) -> Ticket | None:
        """Take whose turn it is, when a slot is free."""
        if not self.has_room():
            return None
        for queue in (self._returned, self._queue):
            for ticket in queue:
                del queue[ticket]
                return ticket
        return None

    def waiting(self) -> list[Ticket]:
        """Give everyone who waits, whose turn comes first in front."""
        return [*self._returned, *self._queue]
