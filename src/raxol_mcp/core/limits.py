"""Every number that bounds the server, checked once; and who holds how many slots.

Counts, never queues: what does not fit is refused by the caller of `Slots`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Final

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.wire.values import Value

__all__ = ["Limits", "Slots"]

MIB: Final = 1024 * 1024


class Limits(Value, frozen=True):
    """The bounds of one server (`docs/limits.md` says what happens at each).

    Counts are positive integers, durations positive finite seconds, sizes bytes. A per-connection
    option left at None follows its total: half of `max_in_flight` (at least 1), and 32 or the
    total for parked calls. Raises ConfigurationError when a value is out of range or an explicit
    per-connection bound exceeds its total.
    """

    max_in_flight: int = 32
    max_in_flight_per_connection: int | None = None
    max_parked_elicitations: int | None = None
    max_parked_elicitations_total: int = 256
    max_client_capabilities: int = 1024
    max_subscriptions: int = 256
    max_listens: int = 16
    max_listens_total: int = 1024
    max_rounds: int = 10
    max_uri_bytes: int = 8 * 1024
    max_message_bytes: int = 4 * MIB
    max_depth: int = 128
    max_result_bytes: int = 16 * MIB
    callback_timeout: float = 300.0
    elicitation_timeout: float = 60.0
    request_state_ttl: float = 600.0

    def __post_init__(self) -> None:
        for name, default in zip(self.__struct_fields__, self.__struct_defaults__, strict=True):
            value = getattr(self, name)
            if value is None and default is None:
                continue
            if isinstance(default, float):
                self._check_duration(name, value)
            elif not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ConfigurationError(f"{name} must be a positive integer, got: {value!r}")
        for part, total in (
            ("max_in_flight_per_connection", "max_in_flight"),
            ("max_parked_elicitations", "max_parked_elicitations_total"),
        ):
            share, whole = getattr(self, part), getattr(self, total)
            if share is not None and share > whole:
                raise ConfigurationError(f"{part} ({share}) must not exceed {total} ({whole})")

    @staticmethod
    def _check_duration(name: str, value: object) -> None:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or value <= 0:  # type: ignore[arg-type, operator]  # narrowed by `number`
            raise ConfigurationError(f"{name} must be a positive number of seconds, got: {value!r}")

    @property
    def in_flight_share(self) -> int:
        """How many slots one share may hold."""
        return self.max_in_flight_per_connection or max(1, self.max_in_flight // 2)

    @property
    def parked_share(self) -> int:
        """How many calls one share may have parked."""
        return self.max_parked_elicitations or min(32, self.max_parked_elicitations_total)


class Slots:
    """Who runs how many workers: a slot is taken when one starts, given back when it has ended."""

    __slots__ = ("_by_share", "_per_share", "_total", "taken")

    def __init__(self, *, total: int, per_share: int) -> None:
        self._total = total
        self._per_share = per_share
        self._by_share: dict[Hashable, int] = {}  # never holds a zero
        self.taken = 0

    def refusal(self, share: Hashable) -> str | None:
        """Say why `share` gets no slot now: "server", "connection", or None when it does."""
        if self._by_share.get(share, 0) >= self._per_share:
            return "connection"
        return "server" if self.taken >= self._total else None

    def take(self, share: Hashable) -> None:
        """Take a slot that `refusal` did not refuse."""
        self.taken += 1
        self._by_share[share] = self._by_share.get(share, 0) + 1

    def give_back(self, share: Hashable) -> None:
        """Give one slot of `share` back."""
        held = self._by_share[share]
        if held == 1:
            del self._by_share[share]
        else:
            self._by_share[share] = held - 1
        self.taken -= 1

    def held(self, share: Hashable) -> int:
        """How many slots `share` holds."""
        return self._by_share.get(share, 0)

    def shares(self) -> dict[Hashable, int]:
        """A copy of the counts, for snapshots and checks."""
        return dict(self._by_share)
