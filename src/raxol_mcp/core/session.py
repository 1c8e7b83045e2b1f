"""The session of a client: connecting, greeting, being ready, failing, and coming back.

Not the calls on it (`traffic.py`), nor what is said in a greeting (`greeter.py`). One machine for
every transport and both eras:

```
              opened                  greeted
STARTING ───────────────▶ INITIALIZING ───────▶ READY ⟲ greeted again in place
   ▲  │                        │                  │      (the server forgot the session)
   │  └──────── lost ──────────┴─────── lost ─────┤
   │                                              ▼
   └───────────── retry: 1 s, doubling to 60 s ── CLOSED          stopped, from anywhere: STOPPED
```

* A retry is due after every failure but a 401 while connecting or greeting: the same credential
  would be refused again, so that is final (`client-2.8.0` §Recovery).
* The delay begins anew only after a session in which a request was answered; a server that
  answers `initialize` and then dies is no reason to start it every second (ADR-0027).
* A session the server forgot is greeted again on the same link while the state stays READY; many
  rejections cause one greeting. After `MAX_REJECTIONS` without a result in between it is given up.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Final

from raxol_mcp.core.client_effects import Begin, Close, Ended, Open
from raxol_mcp.core.greeter import Greeter
from raxol_mcp.core.greeting import says_unauthorized
from raxol_mcp.core.tickets import Alarm, Ticket, Timer, Waiter
from raxol_mcp.errors import Reason
from raxol_mcp.wire.meta import EraName

if TYPE_CHECKING:
    from raxol_mcp.core.client_ledger import ClientLedger
    from raxol_mcp.core.verdicts import Verdicts

__all__ = ["MAX_REJECTIONS", "Session", "SessionState"]

MAX_REJECTIONS: Final = 3


class SessionState(Enum):
    """Where a session is; the module docstring draws the steps."""

    STARTING = "starting"
    INITIALIZING = "initializing"
    READY = "ready"
    CLOSED = "closed"
    STOPPED = "stopped"


class Session:
    """The connection of one client. `reason` is why there is none: of the last failure.

    `settle_all(reason)` ends every ticket when the connection does.
    """

    def __init__(
        self, ledger: ClientLedger, verdicts: Verdicts, settle_all: Callable[[Reason], None]
    ) -> None:
        self.state = SessionState.STARTING
        self.reason: Reason | None = None
        self.final = False
        self.first_key = 0
        """What has a lower key was sent before this session was usable."""
        self.greeter = Greeter(ledger, verdicts, self)
        self._ledger = ledger
        self._settle_all = settle_all
        self._retry = Timer(Alarm.RETRY)
        self._delay = ledger.options.reconnect
        self._rejections = 0
        self._of_use = False

    @property
    def usable(self) -> bool:
        """Whether requests may be sent: ready, and not being greeted again."""
        return self.state is SessionState.READY and not self.greeter.is_greeting

    @property
    def has_link(self) -> bool:
        """Whether there is a link that can send."""
        return self.state in (SessionState.INITIALIZING, SessionState.READY)

    @property
    def retry_at(self) -> float | None:
        """When the next attempt is due; None when none is."""
        lane = self._retry.lane
        return None if lane is None else lane[self._retry]

    # -- connecting ---------------------------------------------------------------------------

    def open(self) -> None:
        """Begin an attempt."""
        ledger = self._ledger
        ledger.attempt += 1
        self.state = SessionState.STARTING
        ledger.put(Open(ledger.attempt, self.greeter.two_endpoints()))

    def reopen(self) -> None:
        """Begin another attempt at once: the greeter knows a better way."""
        self.greeter.end()
        self._ledger.put(Close(self._ledger.attempt))
        self.open()

    def opened(self) -> None:
        """The link is there: greet."""
        self.state = SessionState.INITIALIZING
        self.greeter.greet(in_place=False)

    def lost(self, reason: Reason) -> None:
        """The link is not there, or no longer."""
        if self.state is SessionState.READY:
            self.fail(reason)
        else:
            self.greeter.lost(reason)

    def begin(self) -> None:
        """The session is usable from here on."""
        ledger, facts = self._ledger, self._ledger.facts
        assert facts is not None, "it was greeted"
        self.greeter.begun()
        self.state = SessionState.READY
        self.reason = None
        self.first_key = ledger.last_key + 1
        ledger.put(Begin(facts.era, facts.version))
        ledger.record("connected", era=facts.era.value, version=facts.version)
        for waiter in list(ledger.waiters):
            ledger.tell(waiter, Ended.READY)

    def fail(self, reason: Reason) -> None:
        """Close for `reason`, and try again later unless that is useless."""
        ledger = self._ledger
        self.final = says_unauthorized(reason) and not self.usable
        self.greeter.failed()
        self._settle_all(reason)
        ledger.facts = None
        ledger.put(Close(ledger.attempt))
        self.state = SessionState.CLOSED
        self.reason = reason
        self._rejections = 0
        retry_in = None if self.final else self._schedule()
        ledger.record("disconnected", reason=str(reason), retry_in=retry_in)
        for waiter in list(ledger.waiters):
            if self.final or waiter.fail_fast:
                ledger.tell(waiter, Ended.CONNECT_FAILED, reason)

    def _schedule(self) -> float:
        """Plan the next attempt; return in how many seconds."""
        ledger = self._ledger
        if self._of_use:
            self._delay = ledger.options.reconnect
            self._of_use = False
        delay = self._delay
        ledger.deadlines.add(self._retry, delay, ledger.now)
        self._delay = min(delay * 2, max(ledger.options.max_reconnect, delay))
        return delay

    def stop(self) -> None:
        """End for good."""
        ledger = self._ledger
        self.greeter.failed()
        ledger.facts = None
        ledger.deadlines.remove(self._retry)
        if self.has_link or (self.state is SessionState.STARTING and ledger.attempt):
            ledger.put(Close(ledger.attempt))
        self.state = SessionState.STOPPED
        for waiter in list(ledger.waiters):
            ledger.tell(waiter, Ended.NOT_READY, Reason("not_ready", "stopped"))

    # -- what happens to it -------------------------------------------------------------------

    def was_of_use(self) -> None:
        """A request had its answer, whatever it says: this server is worth coming back to."""
        self._of_use = True
        self._rejections = 0

    def rejected(self, reason: Reason) -> None:
        """The server knows this session, or this era, no longer: greet again, in place.

        When it happens too often, the session is given up for `reason`.
        """
        self.greeter.forget()
        self._rejections += 1
        if self._rejections > MAX_REJECTIONS:
            self.fail(reason)
        else:
            self.greeter.greet(in_place=True)

    def rang(self, alarm: Alarm) -> None:
        """A timer of the session is due."""
        if alarm is Alarm.RETRY:
            self.open()
        else:
            self.greeter.rang(alarm)

    def awaited(self, waiter: Waiter) -> None:
        """Somebody wants to know when it is ready."""
        ledger = self._ledger
        if self.state is SessionState.READY:
            ledger.tell(waiter, Ended.READY)
        elif self.state is SessionState.STOPPED:
            ledger.tell(waiter, Ended.NOT_READY, Reason("not_ready", "stopped"))
        elif self.final or (self.state is SessionState.CLOSED and waiter.fail_fast):
            ledger.tell(waiter, Ended.CONNECT_FAILED, self.reason)
        else:
            ledger.waiters[waiter] = None
            if waiter.timeout is not None:
                ledger.deadlines.add(waiter, waiter.timeout, ledger.now)

    def refusal(self) -> tuple[Ended, Reason | None]:
        """Say what a call gets that cannot even wait."""
        if self.state is SessionState.STOPPED:
            return Ended.NOT_READY, Reason("not_ready", "stopped")
        if self.reason is not None:
            return Ended.CONNECT_FAILED, self.reason
        return Ended.NOT_READY, Reason("not_ready", self.state.value)

    def admits(self, ticket: Ticket) -> bool:
        """Say whether `ticket` may be sent or wait: there is a session, or a new one is coming.

        A subscription does not wait, and only the stateless era has it.
        """
        if ticket.listening:
            return self.usable and self._ledger.era is EraName.STATELESS
        return self.state is SessionState.READY
