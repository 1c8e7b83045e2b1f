"""What waits to be written to one peer, and how much of it may.

Counts and keeps order; never writes, and knows neither clock nor descriptor. The rules
(`docs/limits.md`, ours):

* An answer, and a question to the peer, is always admitted. It names the request it is `about`,
  and the requests a connection may have in flight are bounded elsewhere.
* A broadcast is about nothing, so nothing else bounds it: when broadcasts alone fill the outbox,
  the next one is an overflow and the connection has to end. A peer that is merely slow to read
  one large answer is not cut off by a small broadcast behind it.
* What only hints at a change waits once: an equal one that comes meanwhile says nothing new. So a
  burst of changes within one turn does not cut off a peer that reads well.
* A droppable message (progress, log) is left out, and counted, while the outbox is `over`.
* While it is `over`, the transport takes nothing more from the peer until it has `drained`: a
  peer that asks and never reads fills its own pipe, not our memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from enum import Enum
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from raxol_mcp.wire.jsonrpc import RequestId

__all__ = ["MAX_QUEUED_BYTES", "MAX_QUEUED_MESSAGES", "Admission", "Outbox"]

MAX_QUEUED_MESSAGES: Final = 256
MAX_QUEUED_BYTES: Final = 8 * 1024 * 1024

T = TypeVar("T")


class Admission(Enum):
    """What became of a message that was put."""

    QUEUED = "queued"  # or one that says the same is
    DROPPED = "dropped"  # the peer does not keep up and the message was droppable
    OVERFLOW = "overflow"  # not queued either: the connection has to end


_QUEUED: Final = Admission.QUEUED  # found once: in Python 3.11 that takes as long as a call


class Outbox(Generic[T]):
    """A queue of messages (encoded or not: `T` is the transport's choice), oldest first.

    `messages` and `size_bytes` are what is queued now; `over` says that one of the two bounds is
    reached; `dropped` counts what was left out since the start.
    """

    __slots__ = (
        "_broadcast_bytes",
        "_broadcasts",
        "_hints",
        "_items",
        "_max_bytes",
        "_max_messages",
        "dropped",
        "messages",
        "over",
        "size_bytes",
    )

    def __init__(
        self, *, max_messages: int = MAX_QUEUED_MESSAGES, max_bytes: int = MAX_QUEUED_BYTES
    ) -> None:
        self._items: deque[tuple[T, int, bool, Hashable]] = deque()
        self._hints: set[Hashable] = set()
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._broadcasts = 0
        self._broadcast_bytes = 0
        self.messages = 0
        self.size_bytes = 0
        self.dropped = 0
        self.over = False

    def __bool__(self) -> bool:
        return bool(self._items)

    @property
    def drained(self) -> bool:
        """Whether at most half of each bound is used: time to read from the peer again."""
        return self.messages * 2 <= self._max_messages and self.size_bytes * 2 <= self._max_bytes

    def put(
        self,
        item: T,
        size_bytes: int,
        *,
        about: RequestId | None = None,
        droppable: bool = False,
        hint: Hashable = None,
    ) -> Admission:
        """Queue `item`, which counts as `size_bytes`, or say why not.

        `hint` is given for what only hints at a change: equal for hints that say the same.
        """
        if droppable and self.over:
            self.dropped += 1
            return Admission.DROPPED
        if hint is not None and hint in self._hints:
            return _QUEUED
        if about is None:
            if self._broadcasts >= self._max_messages or self._broadcast_bytes >= self._max_bytes:
                return Admission.OVERFLOW
            self._broadcasts += 1
            self._broadcast_bytes += size_bytes
        if hint is not None:
            self._hints.add(hint)
        self._items.append((item, size_bytes, about is None, hint))
        self.messages += 1
        self.size_bytes += size_bytes
        self.over = self.messages >= self._max_messages or self.size_bytes >= self._max_bytes
        return _QUEUED

    def waits(self, hint: Hashable) -> bool:
        """Say whether a hint that says the same is queued."""
        return hint in self._hints

    def take(self, limit_bytes: int | None = None) -> list[T]:
        """Remove and return the oldest messages: as many as fit `limit_bytes`, at least one.

        Everything without a limit; an empty list when nothing is queued.
        """
        if limit_bytes is None or self.size_bytes <= limit_bytes:
            everything = [item for item, _, _, _ in self._items]
            self._items.clear()
            self._hints.clear()
            self.messages = self.size_bytes = self._broadcasts = self._broadcast_bytes = 0
            self.over = False
            return everything
        taken: list[T] = []
        while self._items:
            item, size_bytes, broadcast, hint = self._items[0]
            if taken and size_bytes > limit_bytes:
                break
            limit_bytes -= size_bytes
            self._items.popleft()
            self._hints.discard(hint)
            taken.append(item)
            self.messages -= 1
            self.size_bytes -= size_bytes
            if broadcast:
                self._broadcasts -= 1
                self._broadcast_bytes -= size_bytes
        self.over = self.messages >= self._max_messages or self.size_bytes >= self._max_bytes
        return taken

    def clear(self) -> None:
        """Forget what is queued: the peer will not read it."""
        self.take()
