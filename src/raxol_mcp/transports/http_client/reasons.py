"""What went wrong over HTTP, as a `Reason`: tags, statuses, and little of what the peer wrote.

Opens and reads nothing. No value of a request header, no query and no user information gets into
a reason; the text of an answer only where it is asked for by name, escaped and cut short.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from raxol_mcp.errors import Reason
from raxol_mcp.wire.strict import Malformed, parse

if TYPE_CHECKING:
    from raxol_mcp.wire.jsonrpc import JSONObject

__all__ = [
    "MAX_RETRY_AFTER",
    "Broken",
    "broken",
    "challenge",
    "error_of",
    "refused",
    "retry_after",
    "shown",
]

# Seconds. A peer may ask for a pause, not for the rest of the day.
MAX_RETRY_AFTER: Final = 3600.0

_MAX_TEXT: Final = 512
_MAX_CHALLENGE: Final = 4096  # characters of WWW-Authenticate that are looked at
_MAX_PARAMETERS: Final = 16
# RFC 6750 §3 and RFC 9728 §5.1: what tells a person what to do. Other parameters may be anything.
_TELLING: Final = frozenset({"realm", "scope", "error", "error_description", "resource_metadata"})
_SCHEME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+\-.^_`|~]{1,32}")
_PARAMETER: Final = re.compile(r'([A-Za-z_]{1,32})\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')
_SECONDS: Final = re.compile(r"[0-9]{1,9}")

# The statuses after which the request may have been carried out all the same, though the answer
# is a refusal: a gateway's word says nothing about what is behind it, nor does a time limit.
_REQUEST_TIMEOUT: Final = 408
_SERVER_ERRORS: Final = 500


class Broken(Exception):
    """An exchange ended for `reason` without what it was for."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(str(reason))
        self.reason = reason


def broken(what: str, *, maybe_done: bool = True, text: str = "") -> Broken:
    """Return the error for a transport that failed: `what` is the short tag of it."""
    return Broken(Reason("transport", what, text=text, maybe_done=maybe_done))


def refused(
    status: int, headers: Mapping[str, str], error: JSONObject | None = None, *, now: float
) -> Reason:
    """Return the reason for an answer that is not a success.

    `headers` are looked up without case, `error` is what `error_of` found in the body, and `now`
    the time of day in seconds since 1970, for a `Retry-After` that names a date.
    """
    if 300 <= status < 400:
        return Reason("redirect_refused", status)
    text = ""
    if status in (401, 403):
        text = challenge(headers.get("WWW-Authenticate", ""))
    return Reason(
        "http",
        status,
        error=error,
        retry_after=retry_after(headers.get("Retry-After"), now=now),
        text=text,
        maybe_done=status >= _SERVER_ERRORS or status == _REQUEST_TIMEOUT,
    )


def error_of(body: bytes, key: int, *, max_depth: int) -> JSONObject | None:
    """Find the JSON-RPC error in a body, if that is an error response to the request `key`.

    An error without an id, or with null, is one: it came as the answer to this request (MCP basic
    §Responses: the id may be absent where it could not be read).
    """
    try:
        value = parse(body, max_depth=max_depth, wide=True)
    except Malformed:
        return None
    if not isinstance(value, dict) or value.get("jsonrpc") != "2.0" or "method" in value:
        return None
    id, error = value.get("id"), value.get("error")
    if not (id is None or (type(id) is int and id == key)) or not isinstance(error, dict):
        return None
    return error if type(error.get("code")) is int else None


def challenge(value: str) -> str:
    """Tell a person what a `WWW-Authenticate` asks for: the scheme, and what is known to be text.

    Credentials in it (token68, nonces) are left out, and so is the query of an address.
    """
    value = value[:_MAX_CHALLENGE]
    scheme = _SCHEME.match(value)
    if scheme is None:
        return ""
    said: list[str] = []
    for match in _PARAMETER.finditer(value, scheme.end()):
        name = match[1].lower()
        if name not in _TELLING or len(said) >= _MAX_PARAMETERS:
            continue
        quoted = match[2]
        text = match[3] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        if name == "resource_metadata":
            text = text.partition("?")[0].partition("#")[0]
            if "@" in text:
                continue
        said.append(f"{name}={shown(text, 128)}")
    return f"{scheme[0]} {', '.join(said)}".rstrip()[:_MAX_TEXT]


def retry_after(value: str | None, *, now: float) -> float | None:
    """Read `Retry-After` (RFC 9110 §10.2.3): seconds from `now`, at most `MAX_RETRY_AFTER`.

    None without one, and for one that is neither a number of seconds nor a date.
    """
    if value is None:
        return None
    value = value.strip()
    if _SECONDS.fullmatch(value):
        return min(float(value), MAX_RETRY_AFTER)
    from email.utils import parsedate_to_datetime

    try:
        at = parsedate_to_datetime(value[:64]).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return min(max(at - now, 0.0), MAX_RETRY_AFTER)


def shown(text: str, limit: int = _MAX_TEXT) -> str:
    """Quote what a peer wrote for people: one line of ASCII, at most `limit` characters of it."""
    return ascii(text if len(text) <= limit else f"{text[:limit]}...")
