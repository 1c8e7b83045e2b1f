"""The accounts of a client: who waits for what, and the one place where each wait ends.

Decides little; keeps what `session.py` and `traffic.py` share. `settle` ends a ticket and
`tell` a waiter: nothing else does, so each is ended exactly once. What a ticket holds follows
from its state alone, and `_release` is the only giver-back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, assert_never

from raxol_mcp.core.client_effects import (
    Abort,
    Answer,
    Effect,
    Ended,
    Handle,
    Record,
    Send,
    Settle,
    Withdraw,
)
from raxol_mcp.core.deadlines import Deadlines, Timed
from raxol_mcp.core.tickets import Notice, ServerQuestion, Ticket, TicketState, Waiter
from raxol_mcp.core.window import Window
from raxol_mcp.wire.jsonrpc import JSONObject, Notification, Outgoing, Request, RequestId
from raxol_mcp.wire.meta import (
    META_CLIENT_CAPABILITIES,
    META_CLIENT_INFO,
    META_LOG_LEVEL,
    META_VERSION,
    EraName,
    meta_of,
)
from raxol_mcp.wire.values import Value

if TYPE_CHECKING:
    from collections.abc import Hashable

    from raxol_mcp.core.greeting import ServerFacts
    from raxol_mcp.core.window import Policy
    from raxol_mcp.errors import Reason

__all__ = ["ClientLedger", "ClientOptions"]

_RESERVED: Final = "io.modelcontextprotocol/"


class ClientOptions(Value, frozen=True):
    """What one client was told. Durations are in seconds.

    `kind`, `verdict_key` and `closing_cancels` are the dialer's. `policy` None follows the era.
    `probe_timeout` None lets only an answer decide about the era. `asked_methods` are the
    requests of a server that have a handler.
    """

    kind: str
    verdict_key: Hashable
    closing_cancels: bool
    client_info: JSONObject
    handshake_capabilities: JSONObject
    stateless_capabilities: JSONObject
    asked_methods: frozenset[str] = frozenset()
    policy: Policy | None = None
    pool_size: int = 8
    queue_limit: int = 8
    call_timeout: float = 30.0
    init_timeout: float = 60.0
    probe_timeout: float | None = 5.0
    answer_timeout: float = 300.0
    reconnect: float = 1.0
    max_reconnect: float = 60.0
    fail_fast: bool = False
    era: EraName | None = None
    era_ttl: float = 900.0
    max_rounds: int = 10
    max_questions: int = 32
    max_answering: int = 64
    max_listening: int = 8


class ClientLedger:
    """What one client waits for. `facts` is what its server said, None before the first session."""

    def __init__(self, options: ClientOptions) -> None:
        self.options = options
        self.now = float("-inf")
        self.attempt = 0
        self.facts: ServerFacts | None = None
        self.log_level: str | None = None
        self.deadlines: Deadlines[Timed] = Deadlines()
        self.window = Window(options.pool_size, options.queue_limit)
        self.waiters: dict[Waiter, None] = {}
        self.answering: dict[Ticket, None] = {}
        self.listening: dict[int, Ticket] = {}
        self.questions: dict[RequestId, ServerQuestion] = {}
        self._effects: list[Effect] = []
        self.last_key = 0

    def begin(self, now: float) -> list[Effect]:
        """Start an input: its effects are what is put from here on."""
        assert now >= self.now, "time must not run backwards"
        self.now = now
        self._effects = []
        return self._effects

    def put(self, effect: Effect) -> None:
        """Have something done."""
        self._effects.append(effect)

    def record(self, event: str, **fields: object) -> None:
        """Have something counted."""
        self._effects.append(Record(event, fields))

    def send(self, message: Outgoing, key: int) -> None:
        """Have a message sent that holds nothing."""
        self._effects.append(Send(self.attempt, message, key))

    def next_key(self) -> int:
        """Give a key: never used before, not even on an earlier link."""
        self.last_key += 1
        return self.last_key

    @property
    def era(self) -> EraName:
        """The era of the session; that of the handshake while there is none."""
        return EraName.HANDSHAKE if self.facts is None else self.facts.era

    # -- what is written ----------------------------------------------------------------------

    def stateless_meta(self, version: str) -> JSONObject:
        """Write the `_meta` that every request of the stateless era carries."""
        meta: JSONObject = {
            META_VERSION: version,
            META_CLIENT_INFO: self.options.client_info,
            META_CLIENT_CAPABILITIES: self.options.stateless_capabilities,
        }
        if self.log_level is not None:
            meta[META_LOG_LEVEL] = self.log_level
        return meta

    def request(self, ticket: Ticket, id: int) -> Request:
        """Write the request of `ticket`; what MCP keeps for itself is never the user's."""
        params = dict(ticket.params or {})
        own = {**(meta_of(params) or {}), **(ticket.meta or {})}
        meta: JSONObject = {
            name: value
            for name, value in own.items()
            if not name.startswith(_RESERVED) and name != "progressToken"
        }
        if ticket.wants_progress:
            meta["progressToken"] = id
        if self.facts is not None and self.facts.era is EraName.STATELESS:
            meta.update(self.stateless_meta(self.facts.version))
        params.pop("_meta", None)
        if meta:
            params["_meta"] = meta
        if ticket.asked is not None:
            answers, state = ticket.asked
            if answers:
                params["inputResponses"] = answers
            if state is not None:
                params["requestState"] = state
        return Request(id, ticket.method, params)

    # -- tickets ------------------------------------------------------------------------------

    def sent(self, ticket: Ticket) -> None:
        """Give `ticket` a slot, or a place among the subscriptions, and send it."""
        id = ticket.id = self.next_key()
        ticket.progress = None  # it is told by the id, and this is a new one
        if ticket.listening:
            self.listening[id] = ticket
            ticket.moved(TicketState.LISTENING)
        else:
            self.window.hold(id, ticket)
            ticket.moved(TicketState.SENT)
        if ticket.lane is None:
            self.deadlines.add(ticket, ticket.timeout, self.now)
        self.put(Send(self.attempt, self.request(ticket, id), id, ticket.mirrors))

    def settle(
        self,
        ticket: Ticket,
        ended: Ended,
        *,
        result: JSONObject | None = None,
        reason: Reason | None = None,
    ) -> None:
        """End `ticket` and give back what it holds. The only end there is, but for `drop`."""
        self.drop(ticket)
        self.put(Settle(ticket, ended, result, reason))

    def drop(self, ticket: Ticket) -> None:
        """End `ticket`, whose caller has gone: nobody is told."""
        self._release(ticket)
        ticket.moved(TicketState.SETTLED)

    def asking(self, ticket: Ticket) -> None:
        """Let `ticket` wait for its user; it gives its slot back meanwhile."""
        self._release(ticket)
        ticket.moved(TicketState.ANSWERING)
        self.answering[ticket] = None
        self.deadlines.add(ticket, self.options.answer_timeout, self.now)

    def returned(self, ticket: Ticket) -> None:
        """Queue `ticket` again, in front, with its whole timeout before it."""
        self._release(ticket)
        ticket.begun_at = self.now
        self.window.wait(ticket)
        self.deadlines.add(ticket, ticket.timeout, self.now)

    def _release(self, ticket: Ticket) -> None:
        self.deadlines.remove(ticket)
        state = ticket.state
        match state:
            case TicketState.NEW | TicketState.SETTLED:
                pass
            case TicketState.QUEUED:
                self.window.forget(ticket)
            case TicketState.SENT:
                assert ticket.id is not None, "it was sent"
                del self.window.held[ticket.id]
            case TicketState.ANSWERING:
                del self.answering[ticket]
            case TicketState.LISTENING:
                assert ticket.id is not None, "it was sent"
                del self.listening[ticket.id]
            case _:
                assert_never(state)

    def cancel(self, ticket: Ticket, why: str) -> None:
        """Tell the peer that nobody waits for `ticket` any more, which it has."""
        assert ticket.id is not None, "it was sent"
        if self.era is EraName.HANDSHAKE or not self.options.closing_cancels:
            told: JSONObject = {"requestId": ticket.id, "reason": why}
            if self.facts is not None and self.facts.era is EraName.STATELESS:
                told["_meta"] = self.stateless_meta(self.facts.version)
            self.send(Notification("notifications/cancelled", told), self.next_key())
        self.put(Abort(self.attempt, ticket.id))

    def wait_until(self, ticket: Ticket, due_at: float) -> None:
        """Move the deadline of `ticket`."""
        self.deadlines.remove(ticket)
        self.deadlines.add(ticket, max(due_at - self.now, 0.0), self.now)

    # -- notifications and waiters --------------------------------------------------------------

    def notify(self, method: str, params: JSONObject | None) -> None:
        """Send a notification; it holds a slot until it is delivered or its timer ends."""
        key = self.next_key()
        notice = Notice(key)
        self.window.hold(key, notice)
        self.deadlines.add(notice, self.options.call_timeout, self.now)
        said = dict(params or {})
        if self.facts is not None and self.facts.era is EraName.STATELESS:
            said["_meta"] = {**(meta_of(said) or {}), **self.stateless_meta(self.facts.version)}
        self.send(Notification(method, said), key)

    def delivered(self, notice: Notice) -> None:
        """Give back the slot of a notification, however it ended."""
        self.deadlines.remove(notice)
        del self.window.held[notice.key]

    def tell(self, waiter: Waiter, ended: Ended, reason: Reason | None = None) -> None:
        """Answer `waiter`, exactly once."""
        self.deadlines.remove(waiter)
        self.waiters.pop(waiter, None)
        self.put(Answer(waiter, ended, reason))

    # -- questions (ADR-0026) -------------------------------------------------------------------

    def ask(self, question: ServerQuestion) -> None:
        """Have a request of the server answered; what it may hold up has its timer stopped."""
        self.questions[question.id] = question
        self.deadlines.add(question, self.options.answer_timeout, self.now)
        for ticket in self._held_up_by(question):
            self.wait_until(ticket, self._at_the_latest(ticket))
        self.put(Handle(question))

    def answered(self, question: ServerQuestion) -> None:
        """Forget a request of the server; what it held up has its whole timeout again.

        Unless another holds it up, and never past one `answer_timeout` more than it had, however
        often the server asks.
        """
        self.deadlines.remove(question)
        del self.questions[question.id]
        for ticket in self._held_up_by(question):
            if not any(other.may_hold_up(ticket) for other in self.questions.values()):
                until = min(self.now + ticket.timeout, self._at_the_latest(ticket))
                self.wait_until(ticket, until)

    def withdraw(self, question: ServerQuestion) -> None:
        """Forget a request of the server; its handler is to stop."""
        self.answered(question)
        self.put(Withdraw(question))

    def _held_up_by(self, question: ServerQuestion) -> list[Ticket]:
        return [
            holder
            for holder in self.window.held.values()
            if isinstance(holder, Ticket) and question.may_hold_up(holder)
        ]

    def _at_the_latest(self, ticket: Ticket) -> float:
        allowed = ticket.max_timeout or ticket.timeout
        return ticket.begun_at + allowed + self.options.answer_timeout
