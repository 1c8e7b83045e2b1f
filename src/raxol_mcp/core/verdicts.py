"""What is known of servers before they are asked: which era each of them speaks.

A verdict is remembered once a session of it was usable, so that ill health never poisons it, and
dropped when it stops fitting. Shared by the clients of a process; knows no clock.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Final

from raxol_mcp.wire.meta import EraName
from raxol_mcp.wire.values import Value

if TYPE_CHECKING:
    from raxol_mcp.wire.jsonrpc import JSONObject

__all__ = ["MAX_VERDICTS", "Verdict", "Verdicts"]

MAX_VERDICTS: Final = 1_024


class Verdict(Value, frozen=True):
    """How to greet a server.

    `two_endpoints`: its handshake is that of HTTP+SSE. `discovered` is what a stateless server
    said of itself, so that a later client need not ask.
    """

    era: EraName
    version: str = ""
    two_endpoints: bool = False
    discovered: JSONObject | None = None


class Verdicts:
    """The verdicts of one process, at most `max_verdicts`; the oldest makes room."""

    __slots__ = ("_known", "_max_verdicts")

    def __init__(self, max_verdicts: int = MAX_VERDICTS) -> None:
        self._max_verdicts = max_verdicts
        self._known: dict[Hashable, tuple[Verdict, float]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: Hashable, *, ttl: float, now: float) -> Verdict | None:
        """Give the verdict about `key` when it is younger than `ttl` seconds."""
        known = self._known.get(key)
        if known is None:
            return None
        verdict, decided_at = known
        if now - decided_at < ttl:
            return verdict
        del self._known[key]
        return None

    def put(self, key: Hashable, verdict: Verdict, now: float) -> None:
        """Remember `verdict`, decided now."""
        self._known.pop(key, None)
        if len(self._known) >= self._max_verdicts:
            del self._known[next(iter(self._known))]
        self._known[key] = (verdict, now)

    def forget(self, key: Hashable) -> None:
        """Drop what is known of `key`."""
        self._known.pop(key, None)
