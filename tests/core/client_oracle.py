"""What a client must do, told a second time, and slowly.

Written from the specification and the decisions in `docs/adr`, not from the core: nothing here
reads a table of the core. Every request, question and waiter is a record of its own with the
instant at which it is due; who holds how much is counted over the records each time. For every
input the oracle says which effects must come; `compare` holds them against those that came,
`check` what the core keeps against the records.

What an answer to a probe or to `initialize` *means* is no matter of the oracle: who sends one says
so (`Meaning`), and the tables of `core/greeting.py` are tested on their own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Final

from raxol_mcp.core.client import ClientCore
from raxol_mcp.core.client_effects import (
    Abort,
    Acknowledged,
    Agreed,
    Answer,
    AskUser,
    Begin,
    Close,
    Deliver,
    Effect,
    Ended,
    Handle,
    Open,
    Progressed,
    Record,
    Send,
    Settle,
    Withdraw,
)
from raxol_mcp.core.client_ledger import ClientOptions
from raxol_mcp.core.tickets import ServerQuestion, Ticket, TicketState, Waiter
from raxol_mcp.core.window import Policy
from raxol_mcp.errors import Reason
from raxol_mcp.wire.jsonrpc import (
    Batch,
    Failure,
    Incoming,
    Invalid,
    JSONObject,
    Message,
    Notification,
    Outgoing,
    Request,
    RequestId,
    Response,
)
from raxol_mcp.wire.meta import (
    META_CLIENT_CAPABILITIES,
    META_CLIENT_INFO,
    META_SUBSCRIPTION_ID,
    META_VERSION,
    EraName,
)

__all__ = ["ClientOracle", "Meaning", "Owed", "Stage"]

MAY_BE_ASKED_BACK: Final = {"tools/call", "prompts/get", "resources/read"}
MAX_REJECTIONS: Final = 3
LONGEST_DELAY: Final = 60.0
ROUNDING: Final = 1e-6

Fact = tuple[object, ...]


class Stage(Enum):
    """How far a request of a caller is."""

    QUEUED = TicketState.QUEUED
    SENT = TicketState.SENT
    ANSWERING = TicketState.ANSWERING
    LISTENING = TicketState.LISTENING
    OVER = TicketState.SETTLED


@dataclass(frozen=True, slots=True)
class Meaning:
    """What the answer to a probe or to `initialize` says of its server.

    `kind`: "yes" (then `version`), "no", "again", "unwell", "refused"; the last two for `reason`.
    `elsewhere`: a server of HTTP+SSE may refuse so.
    """

    kind: str
    version: str = ""
    reason: Reason | None = None
    elsewhere: bool = False


@dataclass(eq=False, slots=True)
class Owed:
    """One request of a caller, from its submission until it is settled."""

    ticket: Ticket
    stage: Stage = Stage.QUEUED
    place: float = 0.0  # whose is lowest goes first
    begun_at: float = 0.0
    due_at: float = math.inf
    key: int = 0
    sends: int = 0
    session: int = 0  # the one in which it was sent
    rounds: int = 0
    paid: bool = False
    answers: JSONObject = field(default_factory=dict)
    token: str | None = None
    progress: float | None = None


@dataclass(eq=False, slots=True)
class Asked:
    """One request of the server that a user is to answer; `question` is how the core calls it."""

    request: Request
    due_at: float
    holds_up: list[Owed]
    question: ServerQuestion | None = None


@dataclass(eq=False, slots=True)
class Greeting:
    """A greeting under way; 0 for a key that is not waited for."""

    in_place: bool
    known: bool
    due_at: float
    probe_due_at: float = math.inf
    probe: int = 0
    again: bool = False
    initialize: int = 0
    initialized: int = 0


class ClientOracle:
    """What one client holds, and what has to come of each input."""

    def __init__(
        self, options: ClientOptions, pays: Callable[[str, object], Reason | None]
    ) -> None:
        self.options = options
        self.now = 0.0
        self.status = "starting"
        self.reason: Reason | None = None
        self.attempt = 0
        self.era = EraName.HANDSHAKE
        self.version = ""
        self.policy = Policy.STATELESS
        self.greeting: Greeting | None = None
        self.owed: dict[Ticket, Owed] = {}
        self.notices: dict[int, float] = {}
        self.sessions = 0
        self.told_in: dict[int, int] = {}  # the session in which a notification was sent
        self.asked: dict[RequestId, Asked] = {}
        self.waiters: dict[Waiter, float] = {}
        self.retry_at = math.inf
        self.verdict: tuple[EraName, bool, float] | None = None
        self.last_key = 0
        self.tally: Counter[str] = Counter()
        self._pays = pays
        self._delay = options.reconnect
        self._of_use = False
        self._rejections = 0
        self._two = False
        self._refused: Reason | None = None
        self._unprobed = False
        self._final = False
        self._places = 0
        self._link: list[Fact] = []
        self._rest: list[Fact] = []
        self._new: list[Asked] = []
        self._names: dict[ServerQuestion, Asked] = {}

    # -- who holds what -----------------------------------------------------------------------

    def at(self, stage: Stage) -> list[Owed]:
        """Give the requests that are at `stage`; those that wait in the order of their turns."""
        found = [one for one in self.owed.values() if one.stage is stage]
        return sorted(found, key=lambda one: one.place) if stage is Stage.QUEUED else found

    def holder(self, key: int) -> Owed | None:
        """Find the request that the peer has under `key`."""
        for one in self.owed.values():
            if one.key == key and one.stage in (Stage.SENT, Stage.LISTENING):
                return one
        return None

    @property
    def cap(self) -> int:
        """How much may be under way."""
        return 1 if self.policy is Policy.SERIALIZED else self.options.pool_size

    @property
    def usable(self) -> bool:
        """Whether a request may be sent."""
        return self.status == "ready" and self.greeting is None

    @property
    def slots(self) -> int:
        """How many slots are taken."""
        return len(self.at(Stage.SENT)) + len(self.notices)

    def dues(self) -> list[float]:
        """Give every instant at which a wait ends."""
        greeting = self.greeting
        found = [one.due_at for one in self.owed.values() if one.stage is not Stage.OVER]
        found += [*self.notices.values(), *self.waiters.values(), self.retry_at]
        found += [asked.due_at for asked in self.asked.values()]
        if greeting is not None:
            found += [greeting.due_at, greeting.probe_due_at]
        return [due_at for due_at in found if due_at < math.inf]

    # -- comparing ----------------------------------------------------------------------------

    def begin(self, now: float) -> None:
        """Start an input."""
        self.now = now
        self._link, self._rest, self._new = [], [], []
        live = {id(asked) for asked in self.asked.values()}
        self._names = {name: one for name, one in self._names.items() if id(one) in live}

    def _send(self, make: Callable[[int], Outgoing], bind: Callable[[int], None] | None) -> None:
        self._link.append(("send", make, bind))

    def _record(self, event: str) -> None:
        self.tally[event] += 1
        self._rest.append(("record", event))

    def compare(self, effects: list[Effect]) -> None:
        """Hold what was done against what had to be done.

        In order for the link, cancellations aside; between two of the rest the order is nobody's
        promise.
        """
        rest: list[Fact] = []
        wanted = iter(self._link)
        for effect in effects:
            if isinstance(effect, Handle):
                self._name(effect.question)
            if isinstance(effect, Send):
                assert effect.key > self.last_key, f"a key is used again: {effect}"
                self.last_key = effect.key
            if isinstance(effect, Open | Close | Agreed | Send) and not _cancels(effect):
                fact = next(wanted, None)
                assert fact is not None, f"nothing more was to be said to the link: {effect}"
                self._same(fact, effect)
            else:
                rest.append(self._fact(effect))
        left = list(wanted)
        assert not left, f"expected of the link: {left}"
        missing, extra = _difference(self._rest, rest)
        assert not [*missing, *extra], f"expected and missing: {missing}\nnot expected: {extra}"

    def _name(self, question: ServerQuestion) -> None:
        assert self._new, f"nothing was to be asked: {question.method}"
        asked = self._new.pop(0)
        assert question.id == asked.request.id, "another question"
        assert (question.method, question.params) == (asked.request.method, asked.request.params)
        asked.question = question
        self._names[question] = asked

    def _fact(self, effect: Effect) -> Fact:
        if isinstance(effect, Handle):
            return ("handle", self._names[effect.question])
        if isinstance(effect, Withdraw):
            return ("withdraw", self._names[effect.question])
        return _fact(effect)

    def _same(self, fact: Fact, effect: Open | Close | Agreed | Send) -> None:
        assert effect.attempt == self.attempt or isinstance(effect, Close), "of an earlier attempt"
        match effect:
            case Send():
                kind, make, bind = fact if fact[0] == "send" else (*fact, None, None)[:3]
                assert kind == "send", f"expected {fact}, not {effect}"
                assert callable(make)
                expected = make(effect.key)
                assert effect.message == expected, f"expected {expected}, not {effect.message}"
                if bind is not None:
                    assert callable(bind)
                    bind(effect.key)
            case Open():
                assert fact == ("open", effect.attempt, effect.two_endpoints), f"{fact}: {effect}"
            case Close():
                assert fact == ("close", effect.attempt), f"{fact}: {effect}"
            case Agreed():
                assert fact == ("agreed", effect.era, effect.version), f"{fact}: {effect}"

    def check(self, core: ClientCore, *, ticked: bool) -> None:
        """Hold what the core keeps against the records, and both against what must always hold."""
        ledger, session = core.ledger, core.session
        assert session.state.value == self.status, f"{self.status}: {core!r}"
        assert session.usable == self.usable, f"usable: {core!r}"
        sent, listening = self.at(Stage.SENT), self.at(Stage.LISTENING)
        assert {*ledger.window.held} == {one.key for one in sent} | {*self.notices}, "slots"
        assert ledger.window.waiting() == [one.ticket for one in self.at(Stage.QUEUED)], "queue"
        assert {*ledger.answering} == {one.ticket for one in self.at(Stage.ANSWERING)}, "answering"
        assert {*ledger.listening} == {one.key for one in listening}, "listening"
        assert {*ledger.questions} == {*self.asked}, "questions"
        assert {*ledger.waiters} == {*self.waiters}, "waiters"
        self._check_deadlines(core)
        # What holds whatever comes (client-2.8.0 §Concurrency and the in-flight window).
        assert len(sent) <= self.cap, "more than the window has slots"
        new = [one for one in self.at(Stage.QUEUED) if not one.rounds]
        assert len(new) <= self.options.queue_limit, "more wait than may"
        live = [one for one in self.owed.values() if one.stage is not Stage.OVER]
        assert self.status == "ready" or not live, "kept without a session"
        assert not (self.usable and new and self.slots < self.cap), "waits though there is room"
        assert len(self.at(Stage.ANSWERING)) <= self.options.max_answering, "asked too much"
        assert len(listening) <= self.options.max_listening, "listens too often"
        assert len(self.asked) <= self.options.max_questions, "too many questions"
        if ticked:
            assert min(self.dues(), default=math.inf) > self.now, "a wait is over and goes on"
        if self.status in ("closed", "stopped"):
            assert not [*live, *self.asked, *self.notices], "something is left"
            assert self.greeting is None, "a greeting goes on"
        if self.status == "stopped":
            assert len(ledger.deadlines) == len(self.waiters) == 0, "something waits for ever"
        self._forget()

    def _check_deadlines(self, core: ClientCore) -> None:
        dues = self.dues()
        assert len(core.ledger.deadlines) == len(dues), f"deadlines: {core!r}, expected {dues}"
        for one in self.owed.values():
            lane = one.ticket.lane
            if one.stage is Stage.OVER:
                assert lane is None, "over, and has a deadline"
                assert one.ticket.state is TicketState.SETTLED, "not over"
                continue
            assert one.ticket.state is one.stage.value, f"{one.stage}: {one.ticket}"
            due_at = math.inf if lane is None else lane[one.ticket]
            assert abs(due_at - one.due_at) < ROUNDING or due_at == one.due_at, (
                f"{one.ticket} is due at {due_at}, not at {one.due_at}"
            )
            assert one.sends == one.rounds + (one.stage in (Stage.SENT, Stage.LISTENING)), (
                "sent twice for once"
            )
        retry_at = core.session.retry_at
        assert (math.inf if retry_at is None else retry_at) == self.retry_at, "retry"
        next_at = core.next_deadline()
        if dues:
            assert next_at is not None, "no timer"
            assert next_at <= min(dues) + ROUNDING, "a timer comes too late"

    def _forget(self) -> None:
        over = [ticket for ticket, one in self.owed.items() if one.stage is Stage.OVER]
        for ticket in over:
            del self.owed[ticket]

    # -- ends ---------------------------------------------------------------------------------

    def _settle(self, one: Owed, ended: Ended, reason: Fact, result: object = None) -> None:
        assert one.stage is not Stage.OVER, "settled twice"
        self.tally[f"{ended.value} {one.stage.name.lower()}"] += 1
        one.stage, one.due_at = Stage.OVER, math.inf
        self._rest.append(("settle", one.ticket, ended, reason, result))

    def _tell(self, waiter: Waiter, ended: Ended, path: Fact | None) -> None:
        del self.waiters[waiter]
        self.tally[f"waiter {ended.value}"] += 1
        self._rest.append(("answer", waiter, ended, path))

    def _refusal(self) -> tuple[Ended, Reason]:
        if self.status == "stopped":
            return Ended.NOT_READY, Reason("not_ready", "stopped")
        if self.reason is not None:
            return Ended.CONNECT_FAILED, self.reason
        return Ended.NOT_READY, Reason("not_ready", self.status)

    # -- the callers --------------------------------------------------------------------------

    def submitted(self, ticket: Ticket) -> None:
        """Send it, let it wait, or settle it at once."""
        one = self.owed[ticket] = Owed(ticket, begun_at=self.now)
        if ticket.listening:
            if not self.usable or self.era is EraName.HANDSHAKE:
                ended, reason = self._refusal()
                self._settle(one, ended, _because(reason))
            elif len(self.at(Stage.LISTENING)) >= self.options.max_listening:
                self.tally["too many listening"] += 1
                self._settle(one, Ended.BUSY, _because(Reason("busy")))
            else:
                self._write(one)
            return
        if self.status != "ready":
            ended, reason = self._refusal()
            self._settle(one, ended, _because(reason))
            return
        waiting = [other for other in self.at(Stage.QUEUED) if other is not one]
        if self.usable and not waiting and self.slots < self.cap:
            self._dispatch(one)
        elif sum(not other.rounds for other in waiting) < self.options.queue_limit:
            self._wait(one)
        else:
            self._settle(one, Ended.BUSY, _because(Reason("busy")))

    def _wait(self, one: Owed) -> None:
        self._places += 1
        one.stage, one.key = Stage.QUEUED, 0
        one.place = self._places - (1e12 if one.rounds else 0)
        one.due_at = self.now + one.ticket.timeout

    def _dispatch(self, one: Owed) -> None:
        ticket = one.ticket
        if ticket.method == "tools/call" and not one.paid:
            assert ticket.params is not None
            problem = self._pays(str(ticket.params["name"]), ticket.reservation)
            if problem is not None:
                self._settle(one, Ended.UNPAID, _because(problem))
                return
            one.paid = True
        self._write(one)

    def _write(self, one: Owed) -> None:
        def bind(key: int) -> None:
            one.key = key

        one.stage = Stage.LISTENING if one.ticket.listening else Stage.SENT
        one.sends += 1
        one.session = self.sessions
        one.progress = None
        if one.due_at == math.inf:
            one.due_at = self.now + one.ticket.timeout
        answers, token, stateless = one.answers, one.token, self.era is EraName.STATELESS
        version = self.version

        def make(key: int) -> Outgoing:
            ticket = one.ticket
            params = dict(ticket.params or {})
            meta = dict(ticket.meta or {})
            meta.pop(META_VERSION, None)
            meta.pop("progressToken", None)
            if ticket.wants_progress:
                meta["progressToken"] = key
            if stateless:
                meta |= self.own_meta(version)
            if meta:
                params["_meta"] = meta
            if answers:
                params["inputResponses"] = answers
            if token is not None:
                params["requestState"] = token
            return Request(key, ticket.method, params)

        self._send(make, bind)

    def own_meta(self, version: str) -> JSONObject:
        """Give what every request of the stateless era carries."""
        return {
            META_VERSION: version,
            META_CLIENT_INFO: self.options.client_info,
            META_CLIENT_CAPABILITIES: self.options.stateless_capabilities,
        }

    def _fill(self) -> None:
        while self.usable and self.slots < self.cap:
            waiting = self.at(Stage.QUEUED)
            if not waiting:
                return
            self._dispatch(waiting[0])

    def abandoned(self, ticket: Ticket) -> None:
        """The caller went away: nobody is told but the peer."""
        one = self.owed.get(ticket)
        if one is None:
            return
        self.tally[f"abandoned {one.stage.name.lower()}"] += 1
        if one.stage in (Stage.SENT, Stage.LISTENING):
            self._cancel(one, "the caller went away")
        one.stage, one.due_at = Stage.OVER, math.inf
        self._fill()

    def _cancel(self, one: Owed, why: str) -> None:
        key, version = one.key, self.version
        if self.era is EraName.HANDSHAKE or not self.options.closing_cancels:
            told: JSONObject = {"requestId": key, "reason": why}
            if self.era is EraName.STATELESS:
                told["_meta"] = self.own_meta(version)
            self._rest.append(("cancel", Notification("notifications/cancelled", told)))
            self.tally["cancelled by a message"] += 1
        else:
            self.tally["cancelled by closing"] += 1
        self._rest.append(("abort", key))

    def resumed(self, ticket: Ticket, answers: JSONObject | Reason) -> None:
        """A user has answered what a server asked back."""
        one = self.owed.get(ticket)
        if one is not None and one.stage is Stage.ANSWERING:
            if isinstance(answers, Reason):
                self._settle(one, Ended.FAILED, _because(answers))
            else:
                one.answers = answers
                self._return(one)
        else:
            self.tally["resumed too late"] += 1
        self._fill()

    def _return(self, one: Owed) -> None:
        one.begun_at = self.now
        self._wait(one)
        self.tally["came back"] += 1
        if self.slots >= self.cap:
            self.tally["came back and waits"] += 1

    def replied(self, question: ServerQuestion, answer: Response | Failure) -> None:
        """A user has answered a request of the server."""
        asked = self.asked.get(question.id)
        if asked is None or asked.question is not question:
            self.tally["replied too late"] += 1
            return
        self._over(asked)
        self._send(lambda _: answer, None)

    def _over(self, asked: Asked) -> None:
        """Let what one question held up go on, unless another holds it up."""
        del self.asked[asked.request.id]
        for one in asked.holds_up:
            if one.stage is Stage.SENT and not self._is_held_up(one):
                until = min(self.now + one.ticket.timeout, self._bound(one))
                one.due_at = max(until, self.now)

    def _is_held_up(self, one: Owed) -> bool:
        return any(one in asked.holds_up for asked in self.asked.values())

    def _bound(self, one: Owed) -> float:
        allowed = one.ticket.max_timeout or one.ticket.timeout
        return one.begun_at + allowed + self.options.answer_timeout

    def notified(self, method: str, params: JSONObject) -> None:
        """The user tells the server something."""
        if not self.usable:
            self._record("notification_failed")
            return
        said = dict(params)
        if self.era is EraName.STATELESS:
            said["_meta"] = self.own_meta(self.version)
        due_at, now_in = self.now + self.options.call_timeout, self.sessions

        def bind(key: int) -> None:
            self.notices[key] = due_at
            self.told_in = {
                **{one: self.told_in[one] for one in self.notices if one != key},
                key: now_in,
            }

        self._send(lambda _: Notification(method, said), bind)

    def awaited(self, waiter: Waiter) -> None:
        """Somebody waits for a session."""
        timeout = math.inf if waiter.timeout is None else waiter.timeout
        self.waiters[waiter] = self.now + timeout
        if self.status == "ready":
            self._tell(waiter, Ended.READY, None)
        elif self.status == "stopped":
            self._tell(waiter, Ended.NOT_READY, ("not_ready", "stopped"))
        elif self._final or (self.status == "closed" and waiter.fail_fast):
            assert self.reason is not None
            self._tell(waiter, Ended.CONNECT_FAILED, self.reason.path)

    def unawaited(self, waiter: Waiter) -> None:
        """Nobody waits any more."""
        self.waiters.pop(waiter, None)

    def stopped(self) -> None:
        """All is over."""
        if self.status == "stopped":
            return
        self._end_all(Ended.NOT_READY, Reason("not_ready", "stopped"))
        self.greeting = None
        self.retry_at = math.inf
        if self.attempt and self.status != "closed":
            self._link.append(("close", self.attempt))
        self.status = "stopped"
        for waiter in list(self.waiters):
            self._tell(waiter, Ended.NOT_READY, ("not_ready", "stopped"))

    # -- the session --------------------------------------------------------------------------

    def started(self) -> None:
        """Begin."""
        self._open()

    def _known(self) -> tuple[EraName, bool] | None:
        if self.verdict is None or self.options.era is not None:
            return None
        era, two, at = self.verdict
        if self.now - at >= self.options.era_ttl:
            self.verdict = None
            return None
        return era, two

    def _open(self) -> None:
        self.attempt += 1
        self.status = "starting"
        if self._refused is None:
            known = self._known()
            self._two = known is not None and known[1]
        self._link.append(("open", self.attempt, self._two))

    def is_current(self, attempt: int) -> bool:
        """Say whether the link of `attempt` can still say something."""
        return attempt == self.attempt and self.status in ("initializing", "ready")

    def opened(self, attempt: int) -> None:
        """The link is there."""
        if attempt == self.attempt and self.status == "starting":
            self.status = "initializing"
            self._greet(in_place=False)

    def _greet(self, *, in_place: bool) -> None:
        known = self._known()
        era = self.options.era or (known[0] if known else None)
        if era is EraName.STATELESS and known is not None and not self._two:
            self.tally["greeted by a verdict"] += 1
            self._agree(EraName.STATELESS, "2026-07-28")
            self._begin()
            return
        due_at = self.now + self.options.init_timeout
        self.greeting = Greeting(in_place, era is not None, due_at)
        if self._two or self._unprobed or era is EraName.HANDSHAKE:
            self._initialize()
        else:
            self._probe()

    def _probe(self) -> None:
        greeting = self.greeting
        assert greeting is not None

        def bind(key: int) -> None:
            greeting.probe = key

        if self.options.probe_timeout is not None and self.options.era is None:
            greeting.probe_due_at = self.now + self.options.probe_timeout
        meta = self.own_meta("2026-07-28")
        self._send(lambda key: Request(key, "server/discover", {"_meta": meta}), bind)

    def _initialize(self) -> None:
        greeting = self.greeting
        assert greeting is not None

        def bind(key: int) -> None:
            greeting.initialize = key

        greeting.initialize, greeting.probe_due_at = -1, math.inf  # its key is yet to be seen
        params: JSONObject = {
            "protocolVersion": "2025-11-25",
            "capabilities": self.options.handshake_capabilities,
            "clientInfo": self.options.client_info,
        }
        self._send(lambda key: Request(key, "initialize", params), bind)

    def _agree(self, era: EraName, version: str) -> None:
        self.era, self.version = era, version
        own = Policy.STATELESS
        if self.options.kind == "http" and era is EraName.HANDSHAKE:
            own = Policy.POOLED
        self.policy = self.options.policy or own
        self._link.append(("agreed", era, version))

    def _begin(self) -> None:
        greeting = self.greeting
        if greeting is not None and not greeting.known:
            self.verdict = (self.era, self._two, self.now)
        self.tally[f"begun {self.era.value}"] += 1
        if greeting is not None and greeting.in_place:
            self.tally["begun in place"] += 1
        self.sessions += 1
        self.greeting, self.status, self.reason, self._refused = None, "ready", None, None
        self._rest.append(("begin", self.era, self.version))
        self._record("connected")
        for waiter in list(self.waiters):
            self._tell(waiter, Ended.READY, None)

    def _reopen(self) -> None:
        self.greeting = None
        self._link.append(("close", self.attempt))
        self._open()

    def lost(self, attempt: int, reason: Reason) -> None:
        """The link is over, or could not be opened."""
        if attempt != self.attempt or self.status not in ("starting", "initializing", "ready"):
            return
        greeting = self.greeting
        self.tally[f"lost {self.status}{' greeting' if greeting else ''}"] += 1
        if self.status == "ready":
            self._fail(reason)
        elif self._refused is not None and reason.path != ("http", 401):
            self._fail(Reason("initialization_failed", cause=self._refused))
        elif (
            greeting is not None
            and greeting.probe
            and not self.options.closing_cancels
            and self.options.era is None
        ):
            self.tally["opened again without a probe"] += 1
            self._unprobed = True
            self._reopen()
        else:
            if self._two:
                self.verdict = None
            self._fail(reason)

    def _fail(self, reason: Reason) -> None:
        self._final = "http" in reason.path and reason.path[-1] == 401 and not self.usable
        self._end_all(Ended.LOST, reason)
        self.greeting, self._refused, self._unprobed = None, None, False
        self._link.append(("close", self.attempt))
        self.status, self.reason, self._rejections = "closed", reason, 0
        self.era = EraName.HANDSHAKE
        self._record("disconnected")
        if self._final:
            self.tally["final"] += 1
        else:
            delay = self.options.reconnect if self._of_use else self._delay
            self._of_use = False
            self.retry_at = self.now + delay
            self._delay = min(2 * delay, LONGEST_DELAY)
            self.tally["longest delay"] += delay == LONGEST_DELAY
        for waiter in list(self.waiters):
            if self._final or waiter.fail_fast:
                self._tell(waiter, Ended.CONNECT_FAILED, reason.path)

    def _end_all(self, ended: Ended, reason: Reason) -> None:
        self._withdraw_all()
        for one in self.owed.values():
            if one.stage is not Stage.OVER:
                maybe = one.stage is not Stage.QUEUED or one.rounds > 0
                self._settle(one, ended, _because(reason, maybe_done=maybe or reason.maybe_done))
        self.notices.clear()

    def _withdraw_all(self) -> None:
        for asked in list(self.asked.values()):
            self._over(asked)
            self._rest.append(("withdraw", asked))

    # -- what the link says -------------------------------------------------------------------

    def received(
        self, attempt: int, message: Incoming, about: int | None, meaning: Meaning | None
    ) -> None:
        """The peer says something. `meaning` is that of an answer to a greeting."""
        if not self.is_current(attempt):
            self.tally["stale"] += 1
            return
        if not isinstance(message, Batch):
            self._message(message, about, meaning)
        elif self.version != "2025-03-26" or not (self.status == "ready" or self._introducing()):
            self._record("stray_message")
        else:
            self.tally["batch"] += 1
            for each in message.messages:
                if self.is_current(attempt):
                    self._message(each, about, meaning)
        self._fill()

    def _introducing(self) -> bool:
        return self.greeting is not None and self.greeting.initialized != 0

    def _message(self, message: Message, about: int | None, meaning: Meaning | None) -> None:
        if isinstance(message, Response | Failure):
            self._answer(message, about, meaning)
        elif isinstance(message, Request):
            self._ask(message, about)
        elif isinstance(message, Notification):
            self._hear(message, about)
        else:
            self._record("stray_message")
            if isinstance(message, Invalid) and self.era is EraName.HANDSHAKE:
                failure = message.failure
                if failure.id is not None:
                    self._send(lambda _: failure, None)

    def _answer(
        self, answer: Response | Failure, about: int | None, meaning: Meaning | None
    ) -> None:
        key = about if answer.id is None else answer.id
        fits = type(key) is int and about in (None, key)
        if fits and self._greeted(key, meaning):
            return
        one = self.holder(key) if type(key) is int and fits else None
        if one is None:
            self._record("stray_answer")
        elif isinstance(answer, Failure):
            self._error(one, Reason("jsonrpc", answer.code), answer.code)
        elif not isinstance(answer.result, dict):
            self._unusable(one)
        else:
            self._of_use, self._rejections = True, 0
            self._result(one, answer.result)

    def _result(self, one: Owed, result: JSONObject) -> None:
        kind = result.get("resultType", "complete")
        if self.era is EraName.HANDSHAKE or kind == "complete":
            self._settle(one, Ended.RESULT, (), result)
        elif kind != "input_required" or one.ticket.method not in MAY_BE_ASKED_BACK:
            self._unusable(one)
        else:
            self._round(one, result.get("inputRequests"), result.get("requestState"))

    def _round(self, one: Owed, requests: object, token: object) -> None:
        usable = isinstance(token, str) or token is None
        usable &= isinstance(requests, dict) or (requests is None and token is not None)
        if isinstance(requests, dict):
            usable &= len(requests) <= 32 and all(
                isinstance(asked, dict) and asked.get("method") in self.options.asked_methods
                for asked in requests.values()
            )
        if one.rounds >= self.options.max_rounds:
            self.tally["too many rounds"] += 1
            usable = False
        elif requests and len(self.at(Stage.ANSWERING)) >= self.options.max_answering:
            self.tally["too many answering"] += 1
            usable = False
        if not usable:
            self._unusable(one)
            return
        one.rounds += 1
        one.answers, one.token = {}, token if isinstance(token, str) else None
        if isinstance(requests, dict) and requests:
            one.stage, one.key = Stage.ANSWERING, 0
            one.due_at = self.now + self.options.answer_timeout
            self._rest.append(("ask", one.ticket, requests))
        else:
            self._return(one)

    def _unusable(self, one: Owed) -> None:
        reason = Reason("invalid_response", one.ticket.method)
        self._settle(one, Ended.FAILED, _because(reason, maybe_done=True))

    def _error(self, one: Owed, reason: Reason, code: object) -> None:
        self._settle(one, Ended.ERROR, _because(reason))
        if code == -32022 and self.era is EraName.STATELESS:
            self._rejected(one.session, reason)
        else:
            self._of_use, self._rejections = True, 0

    def failed(self, attempt: int, key: int, reason: Reason, meaning: Meaning | None) -> None:
        """The transport has no answer for `key`."""
        if not self.is_current(attempt):
            self.tally["stale"] += 1
            return
        if not self._greeted(key, meaning, reason):
            self._failure(key, reason)
        self._fill()

    def _failure(self, key: int, reason: Reason) -> None:
        one = self.holder(key)
        session = self.told_in.get(key, 0) if one is None else one.session
        if key in self.notices:
            del self.notices[key]
            self._record("notification_failed")
        elif one is None:
            return
        elif reason.tag == "session_rejected":
            self._settle(one, Ended.SESSION_REJECTED, _because(reason))
        elif reason.error is not None:
            self._error(one, reason, reason.error["code"])
            return
        else:
            self._settle(one, Ended.FAILED, _because(reason))
        if reason.tag == "session_rejected" or (
            self.era is EraName.STATELESS
            and one is not None
            and not one.ticket.listening
            and reason.error is None
            and reason.path in (("http", 400), ("http", 404), ("http", 405))
        ):
            self._rejected(session, reason)

    def _rejected(self, session: int, reason: Reason) -> None:
        """`session` is no more, which one of its requests was the first to find out."""
        if not self.usable:
            self.tally["rejected while greeting"] += 1
            return
        if session < self.sessions:
            self.tally["rejected late"] += 1
            return
        self.verdict = None
        self._withdraw_all()
        self._rejections += 1
        self.tally["rejected"] += 1
        if self._rejections > MAX_REJECTIONS:
            self.tally["rejected too often"] += 1
            self._fail(reason)
        else:
            self._greet(in_place=True)

    def sent(self, attempt: int, key: int) -> None:
        """A notification or an answer was delivered."""
        if not self.is_current(attempt):
            return
        if self.greeting is not None and key == self.greeting.initialized:
            self._begin()
        else:
            self.notices.pop(key, None)
        self._fill()

    def _greeted(self, key: object, meaning: Meaning | None, reason: Reason | None = None) -> bool:
        """Take the answer to a greeting; False when it is none."""
        greeting = self.greeting
        if greeting is None or not isinstance(key, int) or key == 0:
            return False
        if key == greeting.initialized:
            if reason is None:
                self.tally["an answer to a notification"] += 1
            elif reason.tag == "http" and reason.detail != 401:
                self._begin()
            else:
                self._fail(Reason("initialization_failed", cause=reason))
            return True
        if key not in (greeting.probe, greeting.initialize):
            return False
        assert meaning is not None, "who answers a greeting says what that means"
        if key == greeting.initialize:
            self._initialized(greeting, meaning)
        else:
            self._probed(greeting, meaning)
        return True

    def _probed(self, greeting: Greeting, meaning: Meaning) -> None:
        greeting.probe = 0
        if meaning.kind == "yes":
            self.tally["late yes"] += greeting.initialize != 0
            self._agree(EraName.STATELESS, meaning.version)
            self._begin()
        elif greeting.initialize:
            self.tally["late no"] += 1
        elif meaning.kind == "unwell" or (meaning.kind == "again" and greeting.again):
            assert meaning.reason is not None
            self._fail(meaning.reason)
        elif meaning.kind == "again":
            self.tally["probed again"] += 1
            greeting.again = True
            self._probe()
        elif self.options.era is EraName.STATELESS:
            self._fail(Reason("unsupported_version", cause=meaning.reason))
        else:
            self._initialize()

    def _initialized(self, greeting: Greeting, meaning: Meaning) -> None:
        greeting.initialize = greeting.probe = 0
        if meaning.kind == "yes":
            self._agree(EraName.HANDSHAKE, meaning.version)

            def bind(key: int) -> None:
                greeting.initialized = key

            self._send(lambda _: Notification("notifications/initialized", {}), bind)
            return
        assert meaning.reason is not None
        self.verdict = None
        if (
            meaning.elsewhere
            and self.options.kind == "http"
            and not greeting.in_place
            and not self._two
        ):
            self.tally["tried over two endpoints"] += 1
            self._refused, self._two = meaning.reason, True
            self._reopen()
        else:
            self._fail(Reason("initialization_failed", cause=meaning.reason))

    # -- what the server says unasked ---------------------------------------------------------

    def _ask(self, request: Request, about: int | None) -> None:
        if self.era is EraName.STATELESS:
            self._record("forbidden_request")
        elif request.method == "ping":
            self._send(lambda _: Response(request.id, {}), None)
        elif request.method not in self.options.asked_methods:
            self._refuse(request.id, -32601, "Method not found")
        elif request.id in self.asked:
            self._refuse(request.id, -32600, "Invalid request: this id is in use")
        elif len(self.asked) >= self.options.max_questions:
            self._refuse(request.id, -32603, "too many requests are waiting for the user")
        else:
            held = [one for one in self.at(Stage.SENT) if about in (None, one.key)]
            for one in held:
                one.due_at = max(self._bound(one), self.now)
            asked = Asked(request, self.now + self.options.answer_timeout, held)
            self.asked[request.id] = asked
            self._new.append(asked)
            self._rest.append(("handle", asked))

    def _refuse(self, id: RequestId, code: int, message: str) -> None:
        self.tally[f"refused a question {code}"] += 1
        self._send(lambda _: Failure(id, code, message), None)

    def _hear(self, notification: Notification, about: int | None) -> None:
        params = notification.params or {}
        meta = params.get("_meta")
        key = meta.get(META_SUBSCRIPTION_ID) if isinstance(meta, dict) else None
        listener = self.holder(key) if type(key) is int else None
        if listener is not None and listener.stage is not Stage.LISTENING:
            listener = None
        match notification.method:
            case "notifications/progress":
                self._progress(params, about)
            case "notifications/cancelled":
                self._cancelled(params.get("requestId"))
            case "notifications/subscriptions/acknowledged":
                if listener is not None:
                    listener.due_at = math.inf
                    said = params.get("notifications")
                    told = said if isinstance(said, dict) else {}
                    self._rest.append(("acknowledged", listener.ticket, told))
            case method:
                one = listener
                if one is None and about is not None:
                    one = self.holder(about)
                    one = one if one is not None and one.stage is Stage.SENT else None
                ticket = None if one is None else one.ticket
                self._rest.append(("deliver", method, params, ticket))

    def _progress(self, params: JSONObject, about: int | None) -> None:
        token, progress = params.get("progressToken"), _finite(params.get("progress"))
        one = self.holder(token) if type(token) is int and about in (None, token) else None
        if (
            one is None
            or one.stage is not Stage.SENT
            or not one.ticket.wants_progress
            or progress is None
            or (one.progress is not None and progress <= one.progress)
        ):
            self._record("stray_progress")
            return
        one.progress = progress
        limit = one.ticket.max_timeout
        if limit is not None and not self._is_held_up(one):
            until = min(self.now + one.ticket.timeout, one.begun_at + limit)
            if until > one.due_at:
                one.due_at = max(until, self.now)
            self.tally["time by progress"] += 1
        self._rest.append(("progress", one.ticket, one.progress))

    def _cancelled(self, id: object) -> None:
        for asked in list(self.asked.values()):
            if asked.request.id == id and type(asked.request.id) is type(id):
                self.tally["a question is withdrawn"] += 1
                self._over(asked)
                self._rest.append(("withdraw", asked))
                return
        one = self.holder(id) if type(id) is int else None
        if one is not None and one.stage is Stage.LISTENING:
            self._settle(one, Ended.RESULT, (), {})

    # -- time ---------------------------------------------------------------------------------

    def ticked(self) -> None:
        """Every wait whose time has come ends, in the order of the instants."""
        for due_at, end in sorted(self._ends(), key=lambda item: item[0]):
            if due_at <= self.now:
                end()
        self._fill()

    def _ends(self) -> Iterable[tuple[float, Callable[[], None]]]:
        for one in self.owed.values():
            yield one.due_at, partial(self._late, one)
        for key, due_at in self.notices.items():
            yield due_at, partial(self._undelivered, key)
        for waiter, due_at in self.waiters.items():
            yield due_at, partial(self._in_vain, waiter)
        for asked in self.asked.values():
            yield asked.due_at, partial(self._unanswered, asked)
        yield self.retry_at, self._retry
        greeting = self.greeting
        if greeting is not None:
            yield greeting.due_at, lambda: self._greeting_late(greeting)
            yield greeting.probe_due_at, lambda: self._probe_late(greeting)

    def _late(self, one: Owed) -> None:
        if one.stage is Stage.OVER or one.due_at > self.now:
            return
        sent = one.stage in (Stage.SENT, Stage.LISTENING)
        if sent:
            self._cancel(one, "timed out")
        reason = Reason("timeout")
        self._settle(one, Ended.TIMED_OUT, _because(reason, maybe_done=sent or one.rounds > 0))

    def _undelivered(self, key: int) -> None:
        if self.notices.pop(key, None) is not None:
            self.tally["undelivered"] += 1

    def _in_vain(self, waiter: Waiter) -> None:
        if waiter in self.waiters:
            self._tell(waiter, Ended.NOT_READY, ("not_ready", self.status))

    def _unanswered(self, asked: Asked) -> None:
        if self.asked.get(asked.request.id) is asked:
            self.tally["a question is not answered"] += 1
            self._over(asked)
            self._rest.append(("withdraw", asked))
            self._refuse(asked.request.id, -32603, "the user did not answer in time")

    def _retry(self) -> None:
        self.retry_at = math.inf
        self._open()

    def _greeting_late(self, greeting: Greeting) -> None:
        if self.greeting is greeting:
            self.tally["a greeting takes too long"] += 1
            self._fail(Reason("initialization_failed", cause=Reason("timeout")))

    def _probe_late(self, greeting: Greeting) -> None:
        if self.greeting is greeting:
            self.tally["silence is a no"] += 1
            self._initialize()


def _because(reason: Reason, *, maybe_done: bool | None = None) -> Fact:
    return (*reason.path, reason.maybe_done if maybe_done is None else maybe_done)


def _finite(value: object) -> float | None:
    if type(value) not in (int, float):
        return None
    found = float(str(value))
    return found if -math.inf < found < math.inf else None


def _difference(wanted: list[Fact], found: list[Fact]) -> tuple[list[Fact], list[Fact]]:
    missing, extra = list(wanted), []
    for fact in found:
        if fact in missing:
            missing.remove(fact)
        else:
            extra.append(fact)
    return missing, extra


def _cancels(effect: Effect) -> bool:
    message = effect.message if isinstance(effect, Send) else None
    return isinstance(message, Notification) and message.method == "notifications/cancelled"


def _settled(effect: Settle) -> Fact:
    reason = effect.reason
    why = () if reason is None else _because(reason)
    return ("settle", effect.ticket, effect.ended, why, effect.result)


def _told(effect: Answer) -> Fact:
    path = None if effect.reason is None else effect.reason.path
    return ("answer", effect.waiter, effect.ended, path)


def _fact(effect: Effect) -> Fact:
    return _READ[type(effect)](effect)


_READ: Final[Mapping[type, Callable[..., Fact]]] = {
    Send: lambda effect: ("cancel", effect.message),
    Abort: lambda effect: ("abort", effect.key),
    Settle: _settled,
    Answer: _told,
    AskUser: lambda effect: ("ask", effect.ticket, effect.requests),
    Deliver: lambda effect: ("deliver", effect.method, effect.params, effect.ticket),
    Progressed: lambda effect: ("progress", effect.ticket, effect.progress),
    Acknowledged: lambda effect: ("acknowledged", effect.ticket, effect.notifications),
    Begin: lambda effect: ("begin", effect.era, effect.version),
    Record: lambda effect: ("record", effect.event),
}
