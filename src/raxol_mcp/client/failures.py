"""Which exception a caller gets for how its request ended, and what an exception says as data.

`error_of` is the whole table; `reason_of` the way back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from raxol_mcp.core.client_effects import Ended
from raxol_mcp.errors import (
    INTERNAL_ERROR,
    Busy,
    ConfigurationError,
    ConnectFailed,
    ConnectionLost,
    NotReady,
    RaxolError,
    Reason,
    RemoteProtocolError,
    RequestFailed,
    SessionLost,
    TimedOut,
    Unpaid,
)

if TYPE_CHECKING:
    from raxol_mcp.core.tickets import Ticket

__all__ = ["error_of", "masked", "reason_of"]


def error_of(ended: Ended, reason: Reason | None, *, ticket: Ticket | None = None) -> RaxolError:
    """Make the exception of an end that is no result; `reason` says more."""
    reason = reason or Reason(ended.value)
    error = _ERRORS[ended](reason, ticket)
    if error.reason is None:
        error.reason = reason
    return error


def masked(reason: Reason, mask: Callable[[str], str]) -> Reason:
    """Copy a reason with `mask` applied to all in it that a peer wrote, down to the first cause."""
    error = _masked(reason.error, mask)
    return Reason(
        reason.tag,
        reason.detail,
        cause=None if reason.cause is None else masked(reason.cause, mask),
        error=error if isinstance(error, dict) else None,
        retry_after=reason.retry_after,
        text=mask(reason.text),
        maybe_done=reason.maybe_done,
    )


def _masked(value: object, mask: Callable[[str], str]) -> object:
    """Copy a value of JSON, whose depth was bounded when it was read."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {mask(name): _masked(inner, mask) for name, inner in value.items()}
    return [_masked(inner, mask) for inner in value] if isinstance(value, list) else value


def reason_of(error: RaxolError) -> Reason:
    """Say as data why something failed."""
    if error.reason is not None:
        return error.reason
    if isinstance(error, NotReady):
        return Reason("not_ready", error.status)
    text = str(error) if isinstance(error, ConfigurationError | TimedOut) else ""
    return Reason(error.tag, text=text)


def _timed_out(ticket: Ticket | None) -> str:
    if ticket is None:
        return "no answer in time"
    return f"{ticket.method}: no answer within {ticket.max_timeout or ticket.timeout:g} s"


def _remote(reason: Reason) -> RemoteProtocolError:
    said = reason.error or {}
    code, message = said.get("code"), said.get("message")
    status = reason.detail if reason.tag == "http" else None
    return RemoteProtocolError(
        code if isinstance(code, int) else INTERNAL_ERROR,
        message if isinstance(message, str) else "malformed error",
        said.get("data"),
        status=status if isinstance(status, int) else None,
    )


_FORGOTTEN: Final = "the server forgot the session; the next request has a new one"
_BUSY: Final = "too many requests are under way and waiting; try again later"
_ERRORS: Final[Mapping[Ended, Callable[[Reason, Ticket | None], RaxolError]]] = {
    Ended.ERROR: lambda reason, _: _remote(reason),
    Ended.FAILED: lambda reason, _: RequestFailed(reason),
    Ended.UNPAID: lambda reason, _: Unpaid(reason),
    Ended.SESSION_REJECTED: lambda _reason, _ticket: SessionLost(_FORGOTTEN),
    Ended.LOST: lambda reason, _: ConnectionLost(reason, outcome_unknown=reason.maybe_done),
    Ended.TIMED_OUT: lambda reason, ticket: TimedOut(_timed_out(ticket), reason),
    Ended.BUSY: lambda _reason, _ticket: Busy(_BUSY),
    Ended.CONNECT_FAILED: lambda reason, _: ConnectFailed(reason),
    Ended.NOT_READY: lambda reason, _: NotReady(str(reason.detail)),
}
