"""Which of the messages to one server are written, and how much of the server's own making waits.

Counts bytes; writes nothing and knows no clock. The writer joins messages and writes parts of
them, so all it can tell is how many bytes have left; what that means is worked out here.

Two bounds, both of `raxol_mcp.transports.outbox`. One is the outbox's own and stops the client
from putting more. The other counts answers alone and stops the client from *reading* more: a
server that asks and does not read the answers fills its own pipe. It must not count requests. A
server that writes a large result before it reads on would not be read because a large request
waits, would therefore never read that, and both sides would stand still.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from raxol_mcp.transports.outbox import MAX_QUEUED_BYTES, MAX_QUEUED_MESSAGES

__all__ = ["Unwritten"]


class _Message(NamedTuple):
    key: int
    begin_bytes: int  # of all that is written to this server, where the message begins
    end_bytes: int
    is_answer: bool


class Unwritten:
    """Messages in the order they are written. `over` says that answers alone fill the bound."""

    def __init__(self) -> None:
        self._messages: deque[_Message] = deque()
        self._end_bytes = 0
        self._answers = 0
        self._answer_bytes = 0

    @property
    def over(self) -> bool:
        """Whether nothing more may be read before the server has read some of its answers."""
        return self._answers >= MAX_QUEUED_MESSAGES or self._answer_bytes >= MAX_QUEUED_BYTES

    def put(self, key: int, size_bytes: int, *, is_answer: bool) -> None:
        """Note a message of `size_bytes`, which is written after all others."""
        begin_bytes = self._end_bytes
        self._end_bytes += size_bytes
        self._messages.append(_Message(key, begin_bytes, self._end_bytes, is_answer))
        if is_answer:
            self._answers += 1
            self._answer_bytes += size_bytes

    def written(self, total_bytes: int) -> list[int]:
        """Take out what is written now that `total_bytes` are; give the keys, in order."""
        keys = []
        while self._messages and self._messages[0].end_bytes <= total_bytes:
            message = self._messages.popleft()
            keys.append(message.key)
            if message.is_answer:
                self._answers -= 1
                self._answer_bytes -= message.end_bytes - message.begin_bytes
        return keys

    def clear(self, total_bytes: int) -> list[int]:
        """Forget all; give the keys of those that nothing was written of, in order.

        One that was written in part may have been understood, if only its newline was missing.
        """
        keys = [message.key for message in self._messages if message.begin_bytes >= total_bytes]
        self._messages.clear()
        self._answers = self._answer_bytes = 0
        return keys
