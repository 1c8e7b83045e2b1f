"""What a client's core wants done. Data only: the shell performs it, in order, without awaiting.

Treat them as immutable: they are frozen by agreement alone, since nobody but a shell gets them.
`attempt` numbers the links: what concerns a link that is no longer there is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING

from raxol_mcp.wire.values import Value

if TYPE_CHECKING:
    from raxol_mcp.core.tickets import ServerQuestion, Ticket, Waiter
    from raxol_mcp.errors import Reason
    from raxol_mcp.wire.headers import Mirror
    from raxol_mcp.wire.jsonrpc import JSONObject, Outgoing
    from raxol_mcp.wire.meta import EraName

__all__ = [
    "Abort",
    "Acknowledged",
    "Agreed",
    "Answer",
    "AskUser",
    "Begin",
    "Close",
    "Deliver",
    "Effect",
    "Ended",
    "Handle",
    "Open",
    "Progressed",
    "Record",
    "Send",
    "Settle",
    "Withdraw",
]


class Ended(Enum):
    """How a ticket was settled, or what a waiter was told."""

    READY = "ready"  # waiters only
    RESULT = "result"
    ERROR = "error"  # the peer's JSON-RPC error
    FAILED = "failed"  # this request alone
    UNPAID = "unpaid"
    SESSION_REJECTED = "session_rejected"
    LOST = "lost"  # the connection ended
    TIMED_OUT = "timed_out"
    BUSY = "busy"
    NOT_READY = "not_ready"
    CONNECT_FAILED = "connect_failed"


class Open(Value):
    """Open a link; report `opened` or `lost`. `two_endpoints`: by HTTP+SSE of 2024-11-05."""

    attempt: int
    two_endpoints: bool


class Send(Value):
    """Give the link one message. `key` is the id of a request."""

    attempt: int
    message: Outgoing
    key: int
    mirrors: Sequence[Mirror] = ()


class Abort(Value):
    """Nobody waits for `key` any more."""

    attempt: int
    key: int


class Close(Value):
    """Close the link; it reports nothing more."""

    attempt: int


class Agreed(Value):
    """Let the link know what was negotiated: what is sent from here on is of this session."""

    attempt: int
    era: EraName
    version: str


class Begin(Value):
    """The session is usable, perhaps not for the first time.

    Whatever was known of the server before (lists, subscriptions) is out of date.
    """

    era: EraName
    version: str


class Settle(Value):
    """End a ticket, exactly once. `result` is that of RESULT, `reason` that of every other end."""

    ticket: Ticket
    ended: Ended
    result: JSONObject | None = None
    reason: Reason | None = None


class Answer(Value):
    """Tell a waiter: READY, NOT_READY or CONNECT_FAILED. Exactly once each."""

    waiter: Waiter
    ended: Ended
    reason: Reason | None = None


class Handle(Value):
    """Let the user's handler answer a request of the server, and report `answered`."""

    question: ServerQuestion


class Withdraw(Value):
    """Nobody waits for the handler's answer any more: stop it."""

    question: ServerQuestion


class AskUser(Value):
    """The peer wants `requests` (`{key: {method, params}}`) answered first: report `resumed`."""

    ticket: Ticket
    requests: JSONObject


class Deliver(Value):
    """A notification of the server. `ticket` is the request or subscription it belongs to."""

    method: str
    params: JSONObject
    ticket: Ticket | None


class Progressed(Value):
    """The peer says how far it is with `ticket`."""

    ticket: Ticket
    progress: float
    total: float | None
    message: str | None


class Acknowledged(Value):
    """The subscription `ticket` is in force, for what `notifications` names."""

    ticket: Ticket
    notifications: JSONObject


class Record(Value):
    """Something worth counting happened. Names and fields are listed in `raxol_mcp.telemetry`."""

    event: str
    fields: JSONObject


Effect = (
    Open
    | Send
    | Abort
    | Close
    | Agreed
    | Begin
    | Settle
    | Answer
    | Handle
    | Withdraw
    | AskUser
    | Deliver
    | Progressed
    | Acknowledged
    | Record
)
