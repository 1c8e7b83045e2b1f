"""Circuit breakers: what keeps failing is left alone for a while. Decides; never does.

One breaker a key (a tool, a resource, ...). A half-open breaker lets a single probe through.

```
             threshold failures in a row              recovery seconds, then admits()
   CLOSED ────────────────────────────────▶ OPEN ────────────────────────────────▶ HALF_OPEN
     ▲                                       ▲                                        │
     │                                       └──────────── the probe failed ──────────┤
     └────────────────────────────────────────────────── anything succeeded ──────────┘
```

A key without failures in a row has no entry, so memory is bounded by the keys that fail now.
"""

from __future__ import annotations

from collections.abc import Hashable
from enum import Enum
from math import isfinite

from raxol_mcp.errors import ConfigurationError

__all__ = ["BreakerState", "Breakers"]


class BreakerState(Enum):
    """Where a breaker stands."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class _Breaker:
    """The breaker of one key that failed. `probe` is the call that tries a half-open one."""

    __slots__ = ("failures", "opened_at", "probe", "probing", "state")

    def __init__(self) -> None:
        self.failures = 0
        self.state = BreakerState.CLOSED
        self.opened_at = 0.0
        self.probing = False
        self.probe: object = None


class Breakers:
    """The breakers of one server.

    `threshold` failures in a row open a breaker for `recovery` seconds. Raises
    `ConfigurationError` for a threshold below 1 or a recovery that is negative or not finite.

    After `admits` said yes, tell exactly one of `succeeded`, `failed` and `abandoned`. Pass the
    same `call` (any object; compared by identity) to all of them: only then can the verdict of a
    call that began before the breaker opened be told from the verdict of the probe. Without it
    every verdict is taken for the probe's. `now` must not decrease (seconds, any epoch).
    """

    def __init__(self, threshold: int = 5, recovery: float = 30.0) -> None:
        if type(threshold) is not int or threshold < 1:
            raise ConfigurationError(f"the breaker threshold must be at least 1, not {threshold!r}")
        if not isfinite(recovery) or recovery < 0:
            raise ConfigurationError(
                f"the breaker recovery must be 0 or more seconds, not {recovery!r}"
            )
        self._threshold = threshold
        self._recovery = recovery
        self._breakers: dict[Hashable, _Breaker] = {}
        self.failing = self._breakers.keys()
        """The keys with failures in a row: while there are none, nothing need be asked or told."""

    def __len__(self) -> int:
        return len(self._breakers)

    def __repr__(self) -> str:
        states = {str(key): breaker.state.value for key, breaker in self._breakers.items()}
        return f"Breakers({states})"

    def admits(self, key: Hashable, now: float, *, call: object = None) -> bool:
        """Say whether a call of `key` may run now.

        Not a mere question: a yes of an open breaker whose time has passed, or of a half-open one
        without a probe, makes `call` the probe.
        """
        breaker = self._breakers.get(key)
        if breaker is None or breaker.state is BreakerState.CLOSED:
            return True
        if breaker.probing:
            return False
        if breaker.state is BreakerState.OPEN:
            if now - breaker.opened_at < self._recovery:
                return False
            breaker.state = BreakerState.HALF_OPEN
        breaker.probing = True
        breaker.probe = call
        return True

    def succeeded(self, key: Hashable) -> None:
        """Close the breaker: whichever call it was, what it called works."""
        self._breakers.pop(key, None)

    def failed(self, key: Hashable, now: float, *, call: object = None) -> None:
        """Count a failure; the threshold opens the breaker, a failed probe opens it again.

        Any other failure of an open or half-open breaker is only counted: it says how things
        were before, so it neither prolongs the wait nor speaks for the probe.
        """
        breaker = self._breakers.get(key)
        if breaker is None:
            breaker = self._breakers[key] = _Breaker()
        breaker.failures += 1
        if breaker.state is BreakerState.CLOSED:
            opens = breaker.failures >= self._threshold
        else:
            opens = breaker.probing and breaker.probe is call
        if opens:
            breaker.state = BreakerState.OPEN
            breaker.opened_at = now
            breaker.probing = False
            breaker.probe = None

    def abandoned(self, key: Hashable, *, call: object = None) -> None:
        """Free the place of a probe that ended without a verdict: cancelled, or its peer gone.

        The breaker stays half-open and the next call becomes the probe. Nothing happens when
        `call` was not the probe.
        """
        breaker = self._breakers.get(key)
        if breaker is not None and breaker.probing and breaker.probe is call:
            breaker.probing = False
            breaker.probe = None

    def state(self, key: Hashable) -> BreakerState:
        """Say where the breaker of `key` stands. OPEN lasts until `admits` is asked after it."""
        breaker = self._breakers.get(key)
        return BreakerState.CLOSED if breaker is None else breaker.state

    def failures(self, key: Hashable) -> int:
        """Count the failures in a row, those of late calls included."""
        breaker = self._breakers.get(key)
        return 0 if breaker is None else breaker.failures

    def reset(self, key: Hashable) -> None:
        """Close the breaker of `key`: an operator says it works."""
        self._breakers.pop(key, None)

    def reset_all(self) -> None:
        """Close every breaker."""
        self._breakers.clear()

    def forget(self, key: Hashable) -> None:
        """Drop what is known of `key`, which was unregistered.

        A call of it may still be running: do not report that one, or the entry comes back.
        """
        self._breakers.pop(key, None)
