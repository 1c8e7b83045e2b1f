"""The lists of a server: every page of them, cleaned, and kept for as long as they are known good.

Not the requests themselves: `fetch` makes one. A list is dropped when the server says that it
changed, when its time is over, and with the session. A change that comes while the pages are read
makes what was read unfit to keep, though not to give: the caller asked before it.

How long a list may be kept depends on the era. A handshake server announces changes, so its list
holds for the session; a stateless one says how long with `ttlMs`, and without it not at all
(MCP 2026-07-28 server/utilities/caching).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import msgspec

from raxol_mcp.client.definitions import MAX_ENTRIES
from raxol_mcp.client.readers import listed
from raxol_mcp.errors import Reason, RequestFailed

if TYPE_CHECKING:
    from raxol_mcp.wire.jsonrpc import JSONObject

__all__ = ["Fetch", "Listing"]

T = TypeVar("T")

# (method, params, timeout) -> result. Raises what requests raise.
Fetch = Callable[[str, "JSONObject", float], Awaitable["JSONObject"]]

_logger = logging.getLogger("raxol_mcp.client")
# Ours. A server that gives one item a page is slow but honest; one that never ends is neither.
_MAX_PAGES: Final = 1_024
_MIB: Final = 1024 * 1024
# Of all pages as they came. What is kept of them is bounded again, by `definitions`.
_MAX_BYTES: Final = 64 * _MIB

_encode: Final = msgspec.json.Encoder().encode


class Listing(Generic[T]):
    """One list of one server.

    `clean` reads the items and says what it left out, in sentences for the log. `kind` is what a
    server calls it when it changes. `kept` is the last list, however old: good enough to look
    something up, None before the first.
    """

    def __init__(
        self,
        name: str,
        method: str,
        member: str,
        clean: Callable[[Sequence[object]], tuple[list[T], list[str]]],
        *,
        kind: str,
        now: Callable[[], float],
        mask: Callable[[str], str],
    ) -> None:
        self.kind = kind
        self.method = method
        self.kept: list[T] | None = None
        self._name = name
        self._mask = mask
        self._member = member
        self._clean = clean
        self._now = now
        self._fresh_until = float("-inf")
        self._changes = 0

    def changed(self) -> None:
        """What is kept is out of date."""
        self._changes += 1
        self._fresh_until = float("-inf")

    def forget(self) -> None:
        """There is another session: nothing is known of it."""
        self.changed()
        self.kept = None

    def is_fresh(self) -> bool:
        """Say whether what is kept may be given without asking."""
        return self.kept is not None and self._now() < self._fresh_until

    async def read(self, fetch: Fetch, *, timeout: float, lasting: bool) -> list[T]:
        """Ask for the whole list. `lasting`: without a word about its age, it holds.

        `timeout` (seconds) is for all pages together. Raises `RequestFailed` for a list that does
        not end, and what `fetch` raises.
        """
        changes = self._changes
        items, until = await self._pages(fetch, self._now() + timeout, lasting=lasting)
        found, problems = self._clean(items)
        if problems:
            _logger.warning("%s: %s", self._name, self._mask("; ".join(problems)))
        if changes == self._changes:
            self.kept = found
            self._fresh_until = until
        return list(found)

    async def _pages(
        self, fetch: Fetch, ends_at: float, *, lasting: bool
    ) -> tuple[list[object], float]:
        """Follow the cursors; say as well until when all of it is good.

        A repeated cursor, or a page too many, is an error: no list is half.
        """
        items: list[object] = []
        until = float("inf")
        seen: set[str] = set()
        cursor: str | None = None
        size_bytes = 0
        for _ in range(_MAX_PAGES):
            params: JSONObject = {} if cursor is None else {"cursor": cursor}
            result = await fetch(self.method, params, max(ends_at - self._now(), 0.0))
            page = listed(self.method, self._member, result)
            size_bytes += len(_encode(page.items))
            if size_bytes > _MAX_BYTES:
                raise self._endless(f"it has more than {_MAX_BYTES // _MIB} MiB")
            items += page.items
            ttl = page.ttl
            if ttl is None:
                ttl = float("inf") if lasting else 0.0
            until = min(until, self._now() + ttl)
            cursor = page.next_cursor
            if cursor is None or len(items) > MAX_ENTRIES:
                return items, until
            if cursor in seen:
                raise self._endless("it gives the same cursor twice")
            seen.add(cursor)
        raise self._endless(f"it has more than {_MAX_PAGES} pages")

    def _endless(self, text: str) -> RequestFailed:
        return RequestFailed(Reason("invalid_response", self.method, text=text))
