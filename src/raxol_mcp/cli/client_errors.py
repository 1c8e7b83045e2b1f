"""Tells people, and programs, why a command did not do what it was asked.

Judges the errors of `raxol_mcp.errors` and prints nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from raxol_mcp.cli.exit_codes import BUSY, FAILED, NO_CONNECTION, TIMED_OUT
from raxol_mcp.errors import (
    Busy,
    ConfigurationError,
    ConnectFailed,
    ConnectionLost,
    NotReady,
    RaxolError,
    Reason,
    RemoteProtocolError,
    SessionLost,
    TimedOut,
)
from raxol_mcp.wire.texts import printable

__all__ = [
    "cause",
    "code_of",
    "error_json",
    "told",
]

_MAX_MESSAGE: Final = 500

_CAUSES: Final[Mapping[str, str]] = {
    "blocked address": "its address leads into a private network; --allow-private lets it",
    "blocked invalid_url": "its URL is not one that may be used",
    "dns_failed": "its name cannot be resolved",
    "http 401": "it wants other credentials (HTTP 401)",
    "http 403": "it refuses these credentials (HTTP 403)",
    "http 404": "there is no MCP server at this address (HTTP 404)",
    "spawn_failed enoent": "there is no such program",
    "spawn_failed eacces": "the program may not be executed",
    "timeout connect": "it could not be reached in time",
    "transport closed": "it closed the connection",
    "transport refused": "nothing listens at its address",
    "transport reset": "it broke the connection off",
    "transport tls": "its certificate is not to be trusted, or it does not speak TLS",
    "unmetered_call": "this tool costs something, and the command line pays for nothing",
    "unsupported_version": "it speaks no version of the protocol that this client knows",
}
_SHORT: Final[Mapping[str, str]] = {
    "http": "it answered with HTTP {}",
    "invalid_response": "its answer to {} cannot be used",
    "line_too_long": "it sent a line of more than {} bytes",
    "redirect_refused": "it answered with a redirect (HTTP {}), which is not followed",
    "server_exited": "it ended with exit code {}",
    "too_large": "it sent more than {} bytes",
}


def code_of(error: RaxolError) -> int:
    """Give the exit code that an error deserves."""
    match error:
        case TimedOut():
            return TIMED_OUT
        case Busy():
            return BUSY
        case ConnectFailed() | ConnectionLost() | NotReady() | SessionLost():
            return NO_CONNECTION
        case _:
            timed_out = error.reason is not None and error.reason.tag == "timeout"
            return TIMED_OUT if timed_out else FAILED


def told(error: RaxolError) -> str:
    """Write an error as one printable sentence that says what to do, where that is known."""
    match error:
        case ConnectFailed(reason=reason):
            sentence = f"cannot connect to the server: {cause(reason)}"
        case ConnectionLost(reason=reason):
            sentence = f"the connection to the server was lost: {cause(reason)}"
        case NotReady(status=status):
            sentence = f"the server was not ready in time (its client is {status})"
        case RemoteProtocolError(code=code):
            sentence = f"the server answered with error {code}: {_cut(str(error))}"
        case ConfigurationError() | Busy():
            sentence = str(error)
        case _:
            why = error.reason
            sentence = cause(why) if why is not None and str(error) == str(why) else str(error)
    if _maybe_done(error):
        sentence = f"{sentence}; it may have been carried out all the same"
    return printable(sentence)


def cause(reason: Reason) -> str:
    """Say what lies behind a reason, for people."""
    inner = reason
    while inner.cause is not None:
        inner = inner.cause
    key = inner.tag if inner.detail is None else f"{inner.tag} {inner.detail}"
    short = _SHORT.get(inner.tag, "").format(inner.detail) or key
    sentence = _CAUSES.get(key, short)
    said = next((text for text in (inner.text, reason.text) if text), "")
    return f"{sentence} ({said})" if said else sentence


def error_json(error: RaxolError) -> dict[str, object]:
    """Give an error as data: `error` is its tag, `reason` the tags and details behind it."""
    reason = error.reason
    given: dict[str, object] = {
        "error": error.tag,
        "reason": None if reason is None else list(reason.path),
        "message": told(error),
    }
    if isinstance(error, RemoteProtocolError):
        given["code"] = error.code
        if error.data is not None:
            given["data"] = error.data
    if _maybe_done(error):
        given["maybe_done"] = True
    return given


def _maybe_done(error: RaxolError) -> bool:
    reason = error.reason
    return reason is not None and reason.maybe_done


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_MESSAGE else f"{text[:_MAX_MESSAGE]}..."
