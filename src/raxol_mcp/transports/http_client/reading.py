"""What the body of an answer, or one event of a stream, says. Reads no socket."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from raxol_mcp.errors import Reason
from raxol_mcp.transports.http_client.reasons import Broken, error_of, shown
from raxol_mcp.wire.framing import TooLong
from raxol_mcp.wire.jsonrpc import Batch, Failure, Ignored, Response
from raxol_mcp.wire.replies import UnreadableReply, decode_reply
from raxol_mcp.wire.sse import Event, Events

if TYPE_CHECKING:
    from raxol_mcp.wire.jsonrpc import Message

__all__ = ["EVENTS_A_TURN", "MESSAGE", "Reader", "is_about", "new_events", "unreadable"]

EVENTS_A_TURN: Final = 64  # of one stream; then others have theirs, timers for instance
MESSAGE: Final = "message"  # the kind of event that carries one (MCP basic/transports)

# The lines of an event around the message in it: `data: ` itself, a name, an id.
_FRAME_BYTES: Final = 16 * 1024


class Reader:
    """How to read what comes on a link: its bounds, and whether there may be arrays."""

    __slots__ = ("_max_depth", "batches", "max_message_bytes")

    def __init__(self, *, max_message_bytes: int, max_depth: int) -> None:
        self.max_message_bytes = max_message_bytes
        self.batches = False
        self._max_depth = max_depth

    def messages(self, data: bytes, key: int | None = None) -> list[Message | UnreadableReply]:
        """Give what `data` holds, in order.

        `key` is the request whose answer carried it: an error without an id is about that one.
        """
        message = decode_reply(data, max_depth=self._max_depth)
        if isinstance(message, Batch):
            if self.batches:
                return list(message.messages)
            return [Ignored("an array of messages, which this revision does not have")]
        if isinstance(message, Ignored) and key is not None:
            error = error_of(data, key, max_depth=self._max_depth)
            if error is not None:
                return [_failure(key, error)]
        return [message]

    def data_of(self, event: Event | TooLong) -> bytes | None:
        """Give the message in an event; None where it carries none. Raises `Broken`: too large."""
        if isinstance(event, TooLong) or len(event.data) > self.max_message_bytes:
            raise self.too_large()
        return event.data if event.name == MESSAGE and event.data else None

    def too_large(self) -> Broken:
        """Return the error for what is over the bound."""
        return Broken(Reason("too_large", self.max_message_bytes, maybe_done=True))


def is_about(message: Message | UnreadableReply, key: int) -> bool:
    """Say whether a message is about the request `key`: its answer, or no answer at all.

    Ids compare by type and value.
    """
    if not isinstance(message, Response | Failure | UnreadableReply):
        return True
    return type(message.id) is int and message.id == key


def new_events(reader: Reader) -> Events:
    """Begin to read a stream."""
    return Events(reader.max_message_bytes + _FRAME_BYTES)


def unreadable(method: str, why: str) -> Broken:
    """Return the error for an answer that came and cannot be used."""
    return Broken(Reason("invalid_response", method, text=shown(why, 256), maybe_done=True))


def _failure(key: int, error: dict[str, object]) -> Failure:
    code, message = error["code"], error.get("message")
    assert isinstance(code, int), "error_of saw to it"
    text = message if isinstance(message, str) else "malformed error"
    return Failure(key, code, text, error.get("data"))
