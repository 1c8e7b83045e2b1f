"""Cross-origin answers (CORS): what a browser has to read before its page may talk to us.

For the pages of an allow-list, and no others; whether a page is on it has been decided already
(`guards.py`). Fetch §3.2. No credentials of the browser are allowed: no cookie says who asks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, cast

from raxol_mcp.transports.http.asgi import empty

if TYPE_CHECKING:
    from raxol_mcp.transports.http.asgi import Answer, Event, Header, Send

__all__ = ["is_preflight", "preflight", "readable_by"]

# What a client of ours sends that a browser does not let a page send unasked.
_HEADERS: Final = (
    b"accept",
    b"authorization",
    b"content-type",
    b"last-event-id",
    b"mcp-method",
    b"mcp-name",
    b"mcp-protocol-version",
    b"mcp-session-id",
)
_ARGUMENT: Final = re.compile(rb"mcp-param-[!#$%&'*+\-.^_`|~0-9a-z]+")
_EXPOSED: Final = (
    b"access-control-expose-headers",
    b"Mcp-Session-Id, WWW-Authenticate, Retry-After",
)
_VARY: Final = (b"vary", b"Origin")
_MAX_AGE: Final = (b"access-control-max-age", b"600")


def is_preflight(method: str, headers: dict[bytes, bytes]) -> bool:
    """Say whether a browser asks whether its page may send what it is about to send."""
    return method == "OPTIONS" and b"access-control-request-method" in headers


def preflight(headers: dict[bytes, bytes], methods: Iterable[str]) -> Answer:
    """Allow the methods of a path, and of the headers that are asked for those that mean something.

    `readable_by` says to whom.
    """
    asked = headers.get(b"access-control-request-headers", b"").lower().split(b",")
    names = [name for name in (name.strip(b" \t") for name in asked) if _may_be_sent(name)]
    return empty(
        204,
        (b"access-control-allow-methods", ", ".join(methods).encode()),
        (b"access-control-allow-headers", b", ".join(names)),
        _MAX_AGE,
    )


def readable_by(origin: bytes, send: Send) -> Send:
    """Let a page of `origin` read the answer that is sent."""
    allowed = (b"access-control-allow-origin", origin.strip(b" \t"))
    more: tuple[Header, ...] = (allowed, _EXPOSED, _VARY)

    async def sending(event: Event) -> None:
        if event["type"] == "http.response.start":
            headers = cast("list[Header]", event["headers"])
            event = {**event, "headers": [*headers, *more]}
        await send(event)

    return sending


def _may_be_sent(name: bytes) -> bool:
    return name in _HEADERS or _ARGUMENT.fullmatch(name) is not None
