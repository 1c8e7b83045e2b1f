"""The headers of every request: those of the options, and what the transport says itself.

Sends nothing. What the options name must not change how a request is framed, what it says about
its body, or whose session it belongs to: such headers are dropped. A value that is no header
value is refused as a whole, because it would be another header, or no request at all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from raxol_mcp.wire.headers import PROTOCOL_VERSION, mirrored
from raxol_mcp.wire.jsonrpc import Notification, Request
from raxol_mcp.wire.meta import META_VERSION, meta_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from raxol_mcp.transports.http_client.session import Session
    from raxol_mcp.wire.headers import Mirror
    from raxol_mcp.wire.jsonrpc import Outgoing

__all__ = [
    "JSON",
    "SSE",
    "header_problem",
    "is_header_name",
    "message_headers",
    "own_headers",
    "usable_headers",
]

JSON: Final = "application/json"
SSE: Final = "text/event-stream"

_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")  # a token, RFC 9110 §5.6.2
_MAX_NAME: Final = 128
_VALUE: Final = re.compile(r"(?:[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?)?")
_OWNED: Final = frozenset(
    {
        *("accept", "accept-encoding", "content-type", "content-length", "host", "user-agent"),
        *("mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id", "last-event-id"),
        # These say how the bytes on this one connection are to be read (RFC 9110 §7.6.1).
        *("connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "expect"),
        *("content-encoding", "proxy-connection"),
    }
)
_OWNED_PREFIX: Final = "mcp-param-"


def header_problem(headers: Mapping[str, str]) -> str | None:
    """Say what is wrong with a header that cannot be sent, without its value."""
    for name, value in headers.items():
        if not is_header_name(name):
            # Not shown: it may be a whole line, with its value.
            return "the name of a header is not a token (RFC 9110)"
        if not _VALUE.fullmatch(value):
            return f"header {name}: the value must be visible ASCII, without space around it"
    return None


def is_header_name(name: str) -> bool:
    """Say whether a header may have this name."""
    return len(name) <= _MAX_NAME and _NAME.fullmatch(name) is not None


def usable_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Leave out what is the transport's own. Names come in lower case; the last of two counts."""
    lower = {name.lower(): value for name, value in headers.items()}
    return {
        name: value
        for name, value in lower.items()
        if name not in _OWNED and not name.startswith(_OWNED_PREFIX)
    }


def own_headers(user_agent: str, *, accept: str) -> dict[str, str]:
    """Give what every request says. `accept` is what may come back.

    No compression: what is inflated here would need a bound of its own.
    """
    return {"Accept": accept, "Accept-Encoding": "identity", "User-Agent": user_agent}


def message_headers(
    message: Outgoing, session: Session, mirrors: Sequence[Mirror] = ()
) -> dict[str, str]:
    """Give the headers that belong to one message, for its era.

    A message that names its revision in `_meta` stands for itself (MCP 2026-07-28
    basic/transports/streamable-http §Request Metadata) and never carries a session. Any other
    belongs to the session, but for `initialize`, which begins one.

    Raises `ValueError` for text that cannot be encoded.
    """
    headers = {"Content-Type": JSON}
    if isinstance(message, Request | Notification):
        meta = meta_of(message.params)
        if session.stateless or (meta is not None and isinstance(meta.get(META_VERSION), str)):
            return headers | _stateless(message, session, mirrors)
        if message.method == "initialize":
            return headers
    return headers | session.headers()


def _stateless(
    message: Request | Notification, session: Session, mirrors: Sequence[Mirror]
) -> dict[str, str]:
    # What a notification has to carry is not defined: the same as a request, as far as it goes.
    params = message.params
    request = message if isinstance(message, Request) else Request(0, message.method, params)
    pairs = mirrored(request, mirrors)
    headers = {name.decode("ascii"): value.decode("ascii") for name, value in pairs}
    headers.setdefault(PROTOCOL_VERSION.lower(), session.version)
    return headers
