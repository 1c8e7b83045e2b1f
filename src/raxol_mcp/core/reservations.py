"""Which tools cost something, and the permissions to spend: each good for one call, for a while.

Spends nothing and counts no money: whoever may spend mints a reservation, an opaque text that the
shell draws at random, and gives it to one call. What is forged, spent, expired or of another kind
counts as none, and the call is refused before anything is sent.

Knows no clock and no randomness: instants (seconds, monotonic) and handles come in as arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from raxol_mcp.errors import LocalProtocolError, Reason

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["MAX_LIVE", "TTL", "Prices", "Reservations"]

TTL: Final = 120.0
# Ours: more than anybody has calls waiting; each is minted by this side.
MAX_LIVE: Final = 1024


class Reservations:
    """The reservations that were minted and not spent yet: at most `max_live`.

    Each is valid for `ttl` seconds, the last instant included.
    """

    __slots__ = ("_expiries", "_max_live", "_ttl")

    def __init__(self, ttl: float = TTL, max_live: int = MAX_LIVE) -> None:
        self._ttl = ttl
        self._max_live = max_live
        # In the order they were minted, so in the order they expire: all live equally long.
        self._expiries: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._expiries)

    def mint(self, handle: str, now: float) -> bool:
        """Make `handle` good for one call; False when there are too many that nobody spent.

        Those that have expired are dropped first. A full table refuses the new one and keeps the
        old: somebody holds each of those and counts on it. Raises `LocalProtocolError` for a
        handle that is live already.
        """
        for oldest, expires_at in list(self._expiries.items()):
            if now <= expires_at:
                break
            del self._expiries[oldest]
        if handle in self._expiries:
            raise LocalProtocolError("a reservation is minted once")
        if len(self._expiries) >= self._max_live:
            return False
        self._expiries[handle] = now + self._ttl
        return True

    def take(self, handle: object, now: float) -> bool:
        """Spend a handle: True at most once for each, and only while it is valid."""
        expires_at = self._expiries.pop(handle, None) if isinstance(handle, str) else None
        return expires_at is not None and now <= expires_at


class Prices:
    """What the tools of one server cost.

    `prices` maps tools to what their owner declared; only a positive integer is a price.
    `metered` says whether tools without an entry cost something too, None: if any has an entry.
    It cannot make a tool with an entry free: the entry was written to protect somebody.
    """

    __slots__ = ("_metered", "_prices")

    def __init__(
        self, prices: Mapping[str, object] | None = None, metered: bool | None = None
    ) -> None:
        self._prices = dict(prices or {})
        self._metered = bool(self._prices) if metered is None else metered

    def problem(
        self, tool: str, handle: object, reservations: Reservations, now: float
    ) -> Reason | None:
        """Say why a call of `tool` must not be sent; None spends `handle` if the tool is priced.

        Ask once, when nothing but the sending is left: a call that is refused for another reason
        keeps its reservation. Tags: `unmetered_call` without a valid reservation, `unknown_price`
        for a tool that costs nobody knows what; that one spends nothing.
        """
        if tool not in self._prices:
            return Reason("unknown_price", tool) if self._metered else None
        price = self._prices[tool]
        # A bool is an int, and True is no price.
        if type(price) is not int or price <= 0:
            return Reason("unknown_price", tool)
        return None if reservations.take(handle, now) else Reason("unmetered_call")
