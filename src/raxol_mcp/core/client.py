"""The client's machine: facts in, effects out. Decides; never does.

No I/O, no clock, no event loop: every input takes `now` (seconds, any epoch, never less than
before) and returns the effects it caused, in order. The shell performs them. Six parts, each of
which says what it keeps:

| part | decides |
|---|---|
| `session.py` | whether there is a session: connecting, being ready, retrying |
| `greeter.py` | how it begins: the probe, `initialize` |
| `traffic.py` | the requests on it: sent, queued, answered, asked back about, given up |
| `unasked.py` | what the server says of its own accord: requests and notifications |
| `window.py` | how much at once |
| `client_ledger.py` | nothing; it is the one place where a wait ends |

Guarantees, checked after every step of the random walk in the tests: every ticket submitted is
settled exactly once or abandoned; no more requests are under way than the window has slots; each
wait but a listening one has a deadline; nothing is held for a ticket that is settled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raxol_mcp.core.client_effects import Ended
from raxol_mcp.core.client_ledger import ClientLedger, ClientOptions
from raxol_mcp.core.deadlines import Timed
from raxol_mcp.core.session import Session, SessionState
from raxol_mcp.core.tickets import (
    Notice,
    ServerQuestion,
    Ticket,
    TicketState,
    Timer,
    Waiter,
)
from raxol_mcp.core.traffic import Payment, Traffic
from raxol_mcp.core.unasked import Unasked
from raxol_mcp.errors import LocalProtocolError, Reason
from raxol_mcp.wire.jsonrpc import (
    Batch,
    Failure,
    Notification,
    Request,
    Response,
)

if TYPE_CHECKING:
    from raxol_mcp.core.client_effects import Effect
    from raxol_mcp.core.verdicts import Verdicts
    from raxol_mcp.wire.jsonrpc import Incoming, JSONObject, Message

__all__ = ["ClientCore"]

_BATCHES = "2025-03-26"


class ClientCore:
    """One client: a session, the requests on it, and whoever waits. Call from one thread.

    `payment` is asked before each tools/call is sent (`traffic.Payment`). Inputs about a link
    carry its `attempt`; those of an earlier one do nothing. Raises `LocalProtocolError` when the
    shell does what it must not.
    """

    def __init__(self, options: ClientOptions, verdicts: Verdicts, payment: Payment) -> None:
        self.ledger = ClientLedger(options)
        self.traffic = Traffic(self.ledger, payment)
        self.session = Session(self.ledger, verdicts, self._settle_all)
        self.traffic.session = self.session
        self.unasked = Unasked(self.ledger)
        self._started = False

    def __repr__(self) -> str:
        ledger = self.ledger
        return (
            f"<ClientCore {self.session.state.value} | {ledger.window} | "
            f"{len(ledger.answering)} answering, {len(ledger.listening)} listening, "
            f"{len(ledger.questions)} asked, {len(ledger.waiters)} waiters | "
            f"{len(ledger.deadlines)} deadlines>"
        )

    def _settle_all(self, reason: Reason) -> None:
        self.traffic.settle_all(Ended.LOST, reason)

    def next_deadline(self) -> float | None:
        """When `tick` is due at the latest; earlier is harmless. None: never."""
        return self.ledger.deadlines.earliest

    # -- the link -----------------------------------------------------------------------------

    def started(self, now: float) -> list[Effect]:
        """Begin to connect. Once."""
        if self._started:
            raise LocalProtocolError("a client is started once")
        self._started = True
        effects = self.ledger.begin(now)
        self.session.open()
        return effects

    def opened(self, attempt: int, now: float) -> list[Effect]:
        """The link of `attempt` can send."""
        effects = self.ledger.begin(now)
        if self._is_current(attempt, opening=True):
            self.session.opened()
        return effects

    def lost(self, attempt: int, reason: Reason, now: float) -> list[Effect]:
        """The link of `attempt` could not be opened, or is over."""
        effects = self.ledger.begin(now)
        if self._is_current(attempt, opening=True) or self._is_current(attempt):
            self.session.lost(reason)
        return effects

    def received(
        self, attempt: int, message: Incoming, now: float, *, about: int | None = None
    ) -> list[Effect]:
        """The server said something. `about`: the key of the request whose exchange carried it."""
        effects = self.ledger.begin(now)
        if self._is_current(attempt):
            if isinstance(message, Batch):
                self._batch(message, about)
            else:
                self._message(message, about)
            self.traffic.fill()
        return effects

    def sent(self, attempt: int, key: int, now: float) -> list[Effect]:
        """A notification or an answer of ours was delivered."""
        effects = self.ledger.begin(now)
        if self._is_current(attempt):
            self.session.greeter.sent(key)
            self.traffic.sent(key)
            self.traffic.fill()
        return effects

    def failed(self, attempt: int, key: int, reason: Reason, now: float) -> list[Effect]:
        """One message of ours was not delivered, or will have no answer."""
        effects = self.ledger.begin(now)
        if self._is_current(attempt):
            if not self.session.greeter.answered(key, reason):
                self.traffic.failed(key, reason)
            self.traffic.fill()
        return effects

    def _is_current(self, attempt: int, *, opening: bool = False) -> bool:
        """Say whether the session has this link; or, `opening`, waits for it."""
        state = self.session.state
        if opening:
            return attempt == self.ledger.attempt and state is SessionState.STARTING
        return attempt == self.ledger.attempt and self.session.has_link

    def _batch(self, batch: Batch, about: int | None) -> None:
        facts = self.ledger.facts
        if facts is None or facts.version != _BATCHES:
            self.ledger.record("stray_message")
            return
        attempt = self.ledger.attempt
        for message in batch.messages:
            if self._is_current(attempt):  # one of them may have ended it
                self._message(message, about)

    def _message(self, message: Message, about: int | None) -> None:
        if isinstance(message, Response | Failure):
            self._answer(message, about)
        elif isinstance(message, Request):
            self.unasked.asked(message, about)
        elif isinstance(message, Notification):
            self.unasked.notified(message, about)
        else:
            self.unasked.unusable(message)

    def _answer(self, answer: Response | Failure, about: int | None) -> None:
        """Take an answer, or what claims to be one: an id of ours, in the exchange that it is of.

        An error without an id is about the exchange, because its request could not be read.
        """
        key = about if answer.id is None else answer.id
        if type(key) is not int or about not in (None, key):
            self.ledger.record("stray_answer")
        elif not self.session.greeter.answered(key, answer):
            self.traffic.answered(key, answer)

    # -- the callers --------------------------------------------------------------------------

    def submitted(self, ticket: Ticket, now: float) -> list[Effect]:
        """A caller wants something. Settled exactly once, unless it is `abandoned` before."""
        if ticket.state is not TicketState.NEW:
            raise LocalProtocolError("a ticket is submitted once")
        effects = self.ledger.begin(now)
        self.traffic.submitted(ticket)
        return effects

    def abandoned(self, ticket: Ticket, now: float) -> list[Effect]:
        """The caller waits no longer."""
        effects = self.ledger.begin(now)
        if ticket.state is not TicketState.SETTLED:
            self.traffic.abandoned(ticket)
            self.traffic.fill()
        return effects

    def resumed(self, ticket: Ticket, answers: JSONObject | Reason, now: float) -> list[Effect]:
        """The user answered what `AskUser` asked: `{key: answer}`, or why there is none."""
        effects = self.ledger.begin(now)
        self.traffic.resumed(ticket, answers)
        self.traffic.fill()
        return effects

    def replied(
        self, question: ServerQuestion, answer: Response | Failure, now: float
    ) -> list[Effect]:
        """The handler that `Handle` started has answered."""
        effects = self.ledger.begin(now)
        self.unasked.replied(question, answer)
        return effects

    def notified(self, method: str, params: JSONObject | None, now: float) -> list[Effect]:
        """The user wants the server to know something; without a session it is dropped."""
        effects = self.ledger.begin(now)
        if self.session.usable:
            self.ledger.notify(method, params)
        else:
            self.ledger.record("notification_failed", tag="not_ready")
        return effects

    def awaited(self, waiter: Waiter, now: float) -> list[Effect]:
        """Somebody waits until there is a session. Answered exactly once, or `unawaited`."""
        effects = self.ledger.begin(now)
        self.session.awaited(waiter)
        return effects

    def unawaited(self, waiter: Waiter, now: float) -> list[Effect]:
        """The waiter went away."""
        effects = self.ledger.begin(now)
        if waiter in self.ledger.waiters:
            del self.ledger.waiters[waiter]
            self.ledger.deadlines.remove(waiter)
        return effects

    def stopped(self, now: float) -> list[Effect]:
        """End for good: everything that waits is told. Again: nothing."""
        effects = self.ledger.begin(now)
        if self.session.state is not SessionState.STOPPED:
            self._started = True
            self.traffic.settle_all(Ended.NOT_READY, Reason("not_ready", "stopped"))
            self.session.stop()
        return effects

    # -- time ---------------------------------------------------------------------------------

    def tick(self, now: float) -> list[Effect]:
        """Time has passed: every wait whose deadline is at or before `now` ends."""
        effects = self.ledger.begin(now)
        while waits := self.ledger.deadlines.due(now):
            for wait in waits:
                self._expired(wait)
        self.traffic.fill()
        return effects

    def _expired(self, wait: Timed) -> None:
        """End one wait, unless what was due with it has ended it, or given it more time."""
        ledger = self.ledger
        if wait.lane is not None:
            return
        if isinstance(wait, Ticket):
            if wait.state is not TicketState.SETTLED:
                self.traffic.expired(wait)
        elif isinstance(wait, Timer):
            self.session.rang(wait.alarm)
        elif isinstance(wait, Notice):
            if wait.key in ledger.window.held:
                ledger.delivered(wait)
        elif isinstance(wait, ServerQuestion):
            if ledger.questions.get(wait.id) is wait:
                self.unasked.unanswered(wait)
        elif isinstance(wait, Waiter) and wait in ledger.waiters:
            reason = Reason("not_ready", self.session.state.value)
            ledger.tell(wait, Ended.NOT_READY, reason)
