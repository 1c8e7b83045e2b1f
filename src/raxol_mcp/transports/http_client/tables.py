"""What the HTTP links of one process share: a circuit breaker for every origin. Sends nothing.

Every client of an origin suffers when it is down, and none of them has to find that out alone.
So only what says something about the origin counts: that it cannot be reached, does not answer in
time, or fails (5xx). What one client is told about its own request or credential does not, or a
client with a wrong token would shut the door for all others.
"""

from __future__ import annotations

from enum import Enum
from functools import cache
from typing import Final

from raxol_mcp.core.breaker import Breakers

__all__ = ["Tables", "Verdict", "shared_tables", "verdict_of"]

_THRESHOLD: Final = 5
_RECOVERY: Final = 30.0
_REQUEST_TIMEOUT: Final = 408
_TOO_MANY: Final = 429
_NOT_IMPLEMENTED: Final = 501


class Verdict(Enum):
    """What an answer says about its origin."""

    WORKS = "works"
    FAILS = "fails"
    SILENT = "says nothing"


class Tables:
    """The breakers of a process, or of a test. `threshold` and `recovery` as in `Breakers`."""

    def __init__(self, *, threshold: int = _THRESHOLD, recovery: float = _RECOVERY) -> None:
        self.breakers = Breakers(threshold, recovery)


@cache
def shared_tables() -> Tables:
    """Return the tables of this process."""
    return Tables()


def verdict_of(status: int) -> Verdict:
    """Say what a status tells about the origin, whoever asked.

    501 is an answer of a server that works. 429 is about the one who asked; it neither opens the
    breaker nor proves that the origin recovered.
    """
    if status == _TOO_MANY:
        return Verdict.SILENT
    if status == _REQUEST_TIMEOUT or (status >= 500 and status != _NOT_IMPLEMENTED):
        return Verdict.FAILS
    return Verdict.WORKS
