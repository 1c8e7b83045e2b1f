"""What the calls of one client cost, and the reservations that pay for them.

The shell of `raxol_mcp.core.reservations`, which decides: draws what nobody can guess.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from raxol_mcp.core.reservations import Prices, Reservations
from raxol_mcp.errors import Busy

if TYPE_CHECKING:
    from raxol_mcp.client.spec import ClientSpec
    from raxol_mcp.errors import Reason

__all__ = ["Payments"]

_RESERVATION_BYTES: Final = 18


class Payments:
    """The prices of a spec, and the reservations that were minted."""

    def __init__(self, spec: ClientSpec, reservations: Reservations | None) -> None:
        self._prices = Prices(spec.prices, spec.metered)
        self._reservations = Reservations() if reservations is None else reservations

    def mint(self, now: float) -> str:
        """Make a reservation, good for one call. Raises `Busy` when too many are open."""
        from secrets import token_urlsafe

        handle = token_urlsafe(_RESERVATION_BYTES)
        if not self._reservations.mint(handle, now):
            raise Busy("too many reservations are open; spend some, or wait until they expire")
        return handle

    def problem(self, tool: str, reservation: object, now: float) -> Reason | None:
        """Say why a call must not be sent; see `raxol_mcp.core.traffic.Payment`."""
        return self._prices.problem(tool, reservation, self._reservations, now)
