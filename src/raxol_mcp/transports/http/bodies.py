"""Reads request bodies: at most so large, in so much time, and all of them together bounded."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, cast

from raxol_mcp.transports.http.asgi import plain
from raxol_mcp.transports.http.patience import looks

if TYPE_CHECKING:
    from raxol_mcp.transports.http.asgi import Answer, Receive, Request
    from raxol_mcp.transports.http.patience import Patience

__all__ = ["MAX_HELD_BYTES", "Bodies"]

MAX_HELD_BYTES: Final = 256 * 1024 * 1024

# The rest of the body is on its way: whoever serves us must not take it for the next request.
_CLOSE: Final = (b"connection", b"close")
_TOO_LARGE: Final = plain(413, "Content too large", _CLOSE)
_BAD_LENGTH: Final = plain(400, "Bad request: content-length", _CLOSE)
_TOO_SLOW: Final = plain(408, "Request timeout: the body did not come", _CLOSE)
_TOO_MANY: Final = plain(503, "Too many large bodies at once", _CLOSE, (b"retry-after", b"1"))


class Bodies:
    """The bodies that are being read.

    `max_bytes` bounds one, `max_held_bytes` the parts of all that are not complete, `timeout`
    the seconds until one is.
    """

    __slots__ = ("_held_bytes", "_looks", "_max_bytes", "_max_held_bytes", "_patience")

    def __init__(
        self,
        patience: Patience,
        *,
        max_bytes: int,
        timeout: float,
        max_held_bytes: int = MAX_HELD_BYTES,
    ) -> None:
        self._held_bytes = 0
        self._looks = looks(timeout)
        self._max_bytes = max_bytes
        self._max_held_bytes = max_held_bytes
        self._patience = patience

    async def read(self, request: Request) -> bytes | Answer | None:
        """Return the whole body, what to answer instead, or None when the client has left."""
        length = request.headers.get(b"content-length")
        if length is not None:
            if not length.isdigit():
                return _BAD_LENGTH
            if len(length) > 18 or int(length) > self._max_bytes:
                return _TOO_LARGE
        receive = request.receive
        request.task = self._patience.current_task()
        self._patience.begin(request, self._looks, request.expire)
        try:
            event = await receive()
            if event["type"] == "http.request" and not event.get("more_body"):
                body: object = event.get("body", b"")
                assert isinstance(body, bytes), "ASGI 3"
                return body if len(body) <= self._max_bytes else _TOO_LARGE
            return await self._rest(event, receive)
        except asyncio.CancelledError:
            if request.expired():
                return _TOO_SLOW
            raise
        finally:
            self._patience.end(request)

    async def _rest(self, event: object, receive: Receive) -> bytes | Answer | None:
        parts: list[bytes] = []
        size_bytes = 0
        try:
            while True:
                part = cast("dict[str, object]", event)
                if part["type"] == "http.disconnect":
                    return None
                body = cast("bytes", part.get("body", b""))
                parts.append(body)
                size_bytes += len(body)
                self._held_bytes += len(body)
                if size_bytes > self._max_bytes:
                    return _TOO_LARGE
                if not part.get("more_body"):
                    return b"".join(parts)
                if self._held_bytes > self._max_held_bytes:
                    return _TOO_MANY
                event = await receive()
        finally:
            self._held_bytes -= size_bytes
