"""What the server must do, told a second time, and slowly.

Written from the specification, not from the core: nothing here reads a table of the core. Every
call, question and token is a record of its own; who holds how much is counted over the records
each time. For every input the oracle says which effects must come; `compare` holds them against
those that came, `check` the counts of the server against its own.

Two readings, so that one mistake needs to be made twice: `Witness` believes nothing but effects
and knows only what no server may ever do.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from raxol_mcp.core.calls import Call, Via
from raxol_mcp.core.effects import (
    Effect,
    Job,
    Push,
    Reply,
    StartWorker,
    StopWorker,
)
from raxol_mcp.core.limits import Limits
from raxol_mcp.core.outcomes import (
    Asked,
    Denied,
    Failed,
    Granted,
    Outcome,
    Refused,
    Returned,
    Stopped,
    Unacceptable,
)
from raxol_mcp.core.peers import Capability, ConnectionFacts
from raxol_mcp.core.questions import Question
from raxol_mcp.core.server import ServerCore
from raxol_mcp.wire.jsonrpc import (
    Batch,
    Failure,
    Ignored,
    Incoming,
    Invalid,
    JSONObject,
    Notification,
    Outgoing,
    Request,
    RequestId,
    Response,
)
from raxol_mcp.wire.meta import (
    HANDSHAKE_VERSIONS,
    LOG_LEVELS,
    META_CLIENT_CAPABILITIES,
    META_LOG_LEVEL,
    META_SUBSCRIPTION_ID,
    META_VERSION,
)
from tests.core.facts import ANYTHING, Fact, read_effect, same

__all__ = ["Connection", "Oracle", "Owed", "Sealed", "Stage", "Witness"]

DIRECT: Final = ConnectionFacts()  # nothing is known of who sends without a sink
TOO_MANY_HERE: Final = "too many elicitations pending"
TOO_MANY_ON_SERVER: Final = "too many elicitations pending on this server"
STATE_REFUSED: Final = "requestState is not valid for this request"

# The methods that the walk uses; an unknown one is known to neither era.
ROUNDS: Final = {"tools/call", "resources/read", "prompts/get"}
SHARED: Final = ROUNDS | {"tools/list"}
HANDSHAKE: Final = SHARED | {"resources/subscribe", "resources/unsubscribe", "logging/setLevel"}
STATELESS: Final = SHARED | {"subscriptions/listen"}
LISTENABLE: Final = {
    "toolsListChanged": "notifications/tools/list_changed",
    "promptsListChanged": "notifications/prompts/list_changed",
    "resourcesListChanged": "notifications/resources/list_changed",
}


class Stage(Enum):
    """How far a call is."""

    WORKING = "working"
    PARKED = "parked"
    APPROVED = "approved"
    LISTENING = "listening"
    OVER = "over"


@dataclass(eq=False, slots=True)
class Connection:
    """One connection: what it said and what its transport knows."""

    name: Hashable
    facts: ConnectionFacts = DIRECT
    open: bool = False
    deaf: bool = False  # its input has ended
    greeted: bool = False
    stateless: bool = False  # it spoke that era
    version: str | None = None
    declared: Capability | None = None
    declared_at: int = 0
    severity: int = 1
    subscriptions: set[str] = field(default_factory=set)
    live: dict[RequestId, Owed] = field(default_factory=dict)

    @property
    def share(self) -> Hashable:
        """Whose quota new calls count against."""
        return self.name if self.facts.share is None else self.facts.share


@dataclass(eq=False, slots=True)
class Owed:
    """One request that needs a worker, from its arrival until its worker has ended."""

    connection: Connection
    share: Hashable
    principal: str | None
    request: Request
    stateless: bool
    via: Via
    caller: object
    call: Call | None = None  # the core's handle, once a worker was started
    stage: Stage = Stage.WORKING
    worker: bool = False
    due_at: float = math.inf
    parked_at: int = 0  # 0: never parked
    approved_at: int = 0
    put: str | None = None  # the label of its parked question that is on the wire
    questions: list[Question] = field(default_factory=list)
    midway: dict[str, tuple[str, float]] = field(default_factory=dict)  # key -> label, due_at
    rounds: int = 0
    progress: float = -math.inf
    filter: JSONObject = field(default_factory=dict)  # of a listen

    @property
    def id(self) -> RequestId:
        """The id of the request."""
        return self.request.id

    @property
    def method(self) -> str:
        """The method of the request."""
        return self.request.method

    @property
    def is_tool(self) -> bool:
        """Whether refusals are results, not errors."""
        return self.request.method == "tools/call"

    @property
    def params(self) -> JSONObject:
        """The params of the request."""
        return self.request.params or {}

    @property
    def meta(self) -> JSONObject:
        """The `_meta` of the request."""
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}

    @property
    def answered_job(self) -> Job:
        """What runs once the human has answered: a tool's authorizer is not asked again."""
        return Job.RUN if self.is_tool else Job.READ

    def __repr__(self) -> str:
        return f"<{self.id!r} {self.method} of {self.connection.name} {self.stage.value}>"


@dataclass(eq=False, slots=True)
class Sealed:
    """A token that was handed out: what it is good for, and until when."""

    binding: str
    share: Hashable
    request: Request
    questions: tuple[Question, ...]
    round: int
    expires_at: float
    text: str = ""
    spent: bool = False


def label_of(question: Question) -> str:
    """Name a question by its text; whoever makes questions makes each text once."""
    return str(question.params["message"])


def declared_by(value: object, version: str) -> Capability:
    """Read `ClientCapabilities`. MCP 2025-11-25 client/elicitation: {} means forms.

    Elicitation came with 2025-06-18, and its modes with 2025-11-25.
    """
    found = Capability.NONE
    if isinstance(value, dict):
        elicitation = value.get("elicitation")
        if isinstance(elicitation, dict) and version >= "2025-06-18":
            modes = elicitation if version >= "2025-11-25" else {}
            if "form" in modes or "url" not in modes:
                found |= Capability.FORM
            if "url" in modes:
                found |= Capability.URL
        if isinstance(value.get("sampling"), dict):
            found |= Capability.SAMPLING
        if isinstance(value.get("roots"), dict):
            found |= Capability.ROOTS
    return found


def binding_of(owed: Owed) -> str:
    """Write down what an approval is about; JSON, because 1, 1.0 and true are three arguments."""
    name = owed.params["uri" if owed.method == "resources/read" else "name"]
    arguments = owed.params.get("arguments") or {}
    about = [owed.method, name, arguments, owed.principal, repr(owed.share)]
    return json.dumps(about, sort_keys=True)


def refusal_in(question: Question, answer: object) -> str | None:
    """Read an answer: None is the yes that the question wants, else what the deny says.

    Silence is not consent; neither is 1, "true", or an accept without `approve: true`.
    """
    if not isinstance(answer, dict):
        return "user declined"
    if not (question.approval or question.consent):
        return None
    action = answer.get("action")
    if action == "accept":
        content = answer.get("content")
        yes = isinstance(content, dict) and content.get("approve") is True
        return None if question.consent or yes else "user accept"
    return f"user {action}" if action in ("decline", "cancel") else "user declined"


class Oracle:
    """The server as its specification tells it. Every input returns the facts that must come."""

    def __init__(self, limits: Limits, *, wall_offset: float) -> None:
        self.limits = limits
        self.wall_offset = wall_offset
        self.now = 0.0
        self.connections: dict[Hashable, Connection] = {}
        self.live: dict[Owed, None] = {}  # calls that are not over
        self.working: dict[Owed, None] = {}  # workers that have not ended
        self.owed_of: dict[Call, Owed] = {}
        self.questions: dict[str, tuple[Owed, str | None]] = {}  # open, by label; key of a midway
        self.ask_ids: dict[str, str] = {}  # every id ever given -> label
        self.tokens: list[Sealed] = []
        self.tally: Counter[str] = Counter()
        self.witness = Witness(limits)
        self._spent: dict[Hashable, list[Sealed]] = {}
        self._expected: list[Fact] = []
        self._minted: list[Sealed] = []
        self._put: dict[str, Question] = {}
        self._arrived: dict[RequestId, Owed] = {}  # in this input, without a handle yet
        self._order = 0
        self._outcomes: dict[type, Callable[..., None]] = {
            Returned: self._returned,
            Failed: self._failed,
            Stopped: self._stopped,
            Refused: self._refused,
            Denied: self._denied,
            Unacceptable: self._unacceptable,
            Granted: self._granted,
            Asked: self._asked,
        }

    # -- comparing ----------------------------------------------------------------------------

    def begin(self, now: float) -> None:
        """Another input begins."""
        self.now = now
        self._expected = []
        self._minted = []
        self._put = {}
        self._arrived = {}

    def compare(self, effects: list[Effect]) -> None:
        """Hold the effects of an input against what had to come."""
        self._settle()
        self._learn(effects)
        actual = [read_effect(effect, self._handle, self._label) for effect in effects]
        if not same(self._expected, actual):
            expected = "\n  ".join(map(repr, self._expected))
            found = "\n  ".join(map(repr, actual))
            raise AssertionError(f"expected\n  {expected}\nbut there was\n  {found}")
        self._asked_before_let_go(effects)
        self.witness.saw(effects)

    def _handle(self, call: Call) -> object:
        return self.owed_of.get(call, call)

    def _label(self, ask_id: str) -> object:
        return self.ask_ids.get(ask_id, ask_id)

    def _learn(self, effects: list[Effect]) -> None:
        """Take over what only the server can choose: handles, ids and tokens."""
        minted = iter(self._minted)
        for effect in effects:
            if isinstance(effect, StartWorker):
                call = effect.call
                if call not in self.owed_of and call.id in self._arrived:
                    owed = self._arrived.pop(call.id)
                    owed.call = call
                    self.owed_of[call] = owed
            elif isinstance(effect, Push | Reply):
                message = effect.message
                if isinstance(message, Request):
                    self._learn_question(message)
                elif isinstance(message, Response) and isinstance(message.result, dict):
                    token = message.result.get("requestState")
                    if token is not None:
                        self._learn_token(next(minted, None), token)

    def _learn_question(self, message: Request) -> None:
        ask_id, params = message.id, message.params or {}
        assert isinstance(ask_id, str), ask_id
        assert ask_id.startswith("raxol-elicit-"), ask_id
        assert len(ask_id) >= len("raxol-elicit-") + 16, "an id that cannot be guessed"
        assert ask_id not in self.ask_ids, "an id is given once"
        self.ask_ids[ask_id] = str(params.get("message"))

    def _learn_token(self, sealed: Sealed | None, token: object) -> None:
        assert sealed is not None, "a token that nobody had to hand out"
        assert isinstance(token, str), token
        assert token.isascii(), token
        assert len(token) <= 4096, "a token longer than the bound"
        assert all(other.text != token for other in self.tokens[-8:]), "a token is made once"
        sealed.text = token
        self.tokens.append(sealed)
        del self.tokens[:-24]

    def _asked_before_let_go(self, effects: list[Effect]) -> None:
        """A caller that must not block is let go after its question is on its way, not before."""
        if len(effects) < 2:
            return
        for at, effect in enumerate(effects):
            if isinstance(effect, Reply) and effect.message is None:
                later = effects[at + 1 :]
                assert not any(
                    isinstance(other, Push) and isinstance(other.message, Request)
                    for other in later
                ), "the prompt is pushed before the nil reply"

    # -- counting -----------------------------------------------------------------------------

    def slots(self, share: Hashable = None) -> int:
        """Count the workers of a share, or of all."""
        return sum(1 for owed in self.working if share is None or owed.share == share)

    def places(self) -> Counter[Hashable]:
        """Count the places each share holds among the parked; a waiting approved call holds one."""
        return Counter(
            owed.share for owed in self.live if owed.stage in (Stage.PARKED, Stage.APPROVED)
        )

    def slot_refusal(self, share: Hashable) -> str | None:
        """Say at which of the two bounds `share` gets no slot."""
        if self.slots(share) >= self.limits.in_flight_share:
            return "connection"
        return "server" if self.slots() >= self.limits.max_in_flight else None

    def next_due_at(self) -> float:
        """When the next wait ends."""
        return min((due_at for due_at, _, _ in self._waits()), default=math.inf)

    def _waits(self) -> Iterable[tuple[float, Owed, str | None]]:
        for owed in self.live:
            if owed.stage is not Stage.LISTENING:
                yield owed.due_at, owed, None
            for key, (_, due_at) in owed.midway.items():
                yield due_at, owed, key

    def check(self, core: ServerCore, *, ticked: bool) -> None:
        """Hold the caps, and what the server says about itself, against the records."""
        stages = Counter(owed.stage for owed in self.live)
        places = self.places()
        parked = places.total()
        shares = Counter(owed.share for owed in self.working)
        limits = self.limits
        assert len(self.working) <= limits.max_in_flight, "more workers than slots"
        assert max(shares.values(), default=0) <= limits.in_flight_share, "a share beyond its slots"
        assert parked <= limits.max_parked_elicitations_total, "more parked than places"
        assert max(places.values(), default=0) <= limits.parked_share, "a share beyond its places"
        for owed in self.live:
            if owed.stage is Stage.APPROVED:
                assert self.slot_refusal(owed.share) is not None, f"{owed} waits for a free slot"
        waits = [due_at for due_at, _, _ in self._waits()]
        declared = [one for one in self.connections.values() if one.declared is not None]
        assert len(declared) <= limits.max_client_capabilities, "more declarations than allowed"
        stats = core.stats()
        spent = stats.pop("spent")
        assert self._unexpired() <= spent <= sum(map(len, self._spent.values())), spent
        counts = {
            "connections": len(self.connections),
            "declared": len(declared),
            "in_flight": len(self.working),
            "stopping": sum(1 for owed in self.working if owed.stage is Stage.OVER),
            "parked": parked,
            "approved": stages[Stage.APPROVED],
            "deadlines": len(waits),
        }
        assert stats == counts, f"{stats} should be {counts}"
        slots, parks = core.ledger.shares()
        assert (slots, parks) == (shares, places), "the server counts for the wrong share"
        self.witness.check(self.live, len(self.working))
        deadline, due_at = core.next_deadline, min(waits, default=math.inf)
        assert (math.inf if deadline is None else deadline) <= due_at, "a deadline would be missed"
        if ticked and not self._expected:  # what ends may take other waits with it
            assert deadline == (due_at if waits else None), "a tick finds the next deadline"
        for one in self.connections.values():
            owing = sum(1 for owed in one.live.values() if owed.stage is not Stage.LISTENING)
            assert core.outstanding(one.name) == owing, f"{one.name} is owed {owing} answers"

    # -- connections --------------------------------------------------------------------------

    def opened(self, name: Hashable, facts: ConnectionFacts) -> None:
        """A sink is attached; an open connection of that name is over first."""
        connection = self._connection(name)
        if connection.open:
            self.tally["reopened"] += 1
            self.gone(name)
            self._settle()
            connection = self._connection(name)
        connection.facts = facts
        connection.open = True
        connection.deaf = False
        self.witness.open.add(name)

    def gone(self, name: Hashable) -> None:
        """The sink ended: pushed answers, parked calls and listens are dropped.

        A call that somebody waits for elsewhere and that was never parked goes on.
        """
        connection = self.connections.get(name)
        if connection is None:
            return
        self.witness.open.discard(name)
        connection.open = False
        for owed in list(connection.live.values()):
            if owed.via is Via.PUSH or owed.parked_at or owed.stage is Stage.LISTENING:
                self._drop(owed)
            else:
                self.tally["survived"] += 1
                self._unanswerable(owed)
        connection.greeted = False
        connection.stateless = False
        connection.version = None
        connection.declared = None
        connection.severity = 1
        connection.subscriptions.clear()

    def input_ended(self, name: Hashable) -> None:
        """Nothing more is read: who waits for the client's words waits no more."""
        connection = self.connections.get(name)
        if connection is None:
            return
        connection.deaf = True
        for owed in list(connection.live.values()):
            if owed.stage in (Stage.PARKED, Stage.LISTENING):
                self._drop(owed)
            else:
                self._unanswerable(owed)

    def stopped(self) -> None:
        """The server ends: listens get their result, everything else is dropped."""
        for owed in list(self.live):
            if owed.stage is Stage.LISTENING:
                self._value(owed, {"_meta": {META_SUBSCRIPTION_ID: owed.id}})
            else:
                self._drop(owed)

    def _connection(self, name: Hashable) -> Connection:
        return self.connections.setdefault(name, Connection(name))

    def _settle(self) -> None:
        """Forget the connections of which nothing is left."""
        over = [
            name
            for name, one in self.connections.items()
            if not (one.open or one.live or one.greeted)
        ]
        for name in over:
            del self.connections[name]

    def _unanswerable(self, owed: Owed) -> None:
        for key in list(owed.midway):
            self._answer_midway(owed, key, None)

    # -- messages -----------------------------------------------------------------------------

    def received(self, name: Hashable, message: Incoming, via: Via, caller: object) -> None:
        """A message came."""
        self._received(self._connection(name), message, via, caller)

    def _received(
        self, connection: Connection, message: Incoming, via: Via, caller: object
    ) -> None:
        match message:
            case Request():
                self._requested(connection, message, via, caller)
                return
            case Invalid():
                failure = message.failure
                # Under the id of a call in flight it would read as the answer of that call.
                id = None if failure.id in connection.live else failure.id
                fact = ("failure", id, failure.code, failure.data, failure.message)
                self._say(connection, fact, via, caller)
                return
            case Batch() if connection.version != "2025-03-26" or via is not Via.PUSH:
                self._say(connection, self._failure(None, -32600), via, caller)
                return
            case Batch():
                for part in message.messages:
                    if isinstance(part, Request) and part.method == "initialize":
                        refused = None if part.id in connection.live else part.id
                        self._say(connection, self._failure(refused, -32600), via, caller)
                    else:
                        self._received(connection, part, via, caller)
                return
            case Notification(method="notifications/cancelled"):
                self._client_cancelled(connection, (message.params or {}).get("requestId"))
            case Response() | Failure():
                self._answered(connection, message)
            case Notification() | Ignored():
                pass
        self._say(connection, None, via, caller)

    @staticmethod
    def _failure(
        id: RequestId | None, code: int, data: object = ANYTHING, message: object = ANYTHING
    ) -> Fact:
        return ("failure", id, code, data, message)

    def _say(self, connection: Connection, fact: Fact | None, via: Via, caller: object) -> None:
        """Answer somebody who has no call."""
        if via is not Via.PUSH:
            self._expect("reply", caller, fact)
        elif fact is not None:
            self._expect("push", connection.name, fact[1], fact, False)

    def _expect(self, *fact: object) -> None:
        self._expected.append(fact)

    def _client_cancelled(self, connection: Connection, target: object) -> None:
        # 1, "1", True and 1.0 are four values here, but two of them are one key in Python.
        if type(target) in (int, str) and target in connection.live:
            assert isinstance(target, int | str)
            self.tally["cancelled by the client"] += 1
            self._cancel(connection.live[target])

    def _requested(
        self, connection: Connection, request: Request, via: Via, caller: object
    ) -> None:
        params = request.params or {}
        meta = params.get("_meta")
        stateless = isinstance(meta, dict) and META_VERSION in meta
        connection.stateless |= stateless
        refusal = self._refusal(connection, request, meta if stateless else None)
        if refusal is not None:
            self._say(connection, refusal, via, caller)
        elif request.method in ("ping", "initialize", "server/discover"):
            self._say(connection, self._inline(connection, request, stateless), via, caller)
        else:
            share, principal = connection.share, connection.facts.principal
            owed = Owed(connection, share, principal, request, stateless, via, caller)
            connection.live[owed.id] = owed
            self.live[owed] = None
            self._arrived[owed.id] = owed
            retried = stateless and owed.method in ROUNDS
            if retried and params.get("requestState") is not None:
                self._resume(owed)
            else:
                self._admit(owed)

    def _refusal(self, connection: Connection, request: Request, meta: object) -> Fact | None:
        if request.id in connection.live:
            self.tally["duplicate id"] += 1
            return self._failure(None, -32600)
        method = request.method
        if isinstance(meta, dict):
            if not isinstance(meta[META_VERSION], str):
                return self._failure(request.id, -32602)
            if not isinstance(meta.get(META_CLIENT_CAPABILITIES), dict):
                return self._failure(request.id, -32602)
            if META_LOG_LEVEL in meta and meta[META_LOG_LEVEL] not in LOG_LEVELS:
                return self._failure(request.id, -32602)
            if meta[META_VERSION] != "2026-07-28":
                return self._failure(request.id, -32022)
            known = method in STATELESS or method == "server/discover"
        else:
            inline = method in ("ping", "initialize")
            if connection.facts.greeting_required and not connection.greeted and not inline:
                return self._failure(request.id, -32602)
            known = inline or method in HANDSHAKE
        if not known:
            return self._failure(request.id, -32601)
        return None if self._fits(request) else self._failure(request.id, -32602)

    @staticmethod
    def _fits(request: Request) -> bool:
        params = request.params
        wanted = {
            "tools/call": "name",
            "prompts/get": "name",
            "resources/read": "uri",
            "resources/subscribe": "uri",
            "resources/unsubscribe": "uri",
            "logging/setLevel": "level",
            "subscriptions/listen": "notifications",
        }.get(request.method)
        if wanted is None:
            return True
        if params is None or wanted not in params:
            return False
        arguments = params.get("arguments")
        if not isinstance(arguments, dict | None):
            return False
        if request.method == "prompts/get" and arguments:
            return all(isinstance(value, str) for value in arguments.values())
        kind: dict[str, type] = {"level": object, "notifications": dict}
        return isinstance(params[wanted], kind.get(wanted, str))

    def _inline(self, connection: Connection, request: Request, stateless: bool) -> Fact:
        if request.method == "ping":
            return ("result", request.id, "value", stateless, {})
        if request.method == "server/discover":
            return ("result", request.id, "discovery")
        if connection.greeted and connection.declared is not None:
            return self._failure(request.id, -32600)
        params = request.params or {}
        version = params.get("protocolVersion")
        if not isinstance(version, str):
            return self._failure(request.id, -32602)
        version = version if version in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
        self._declare(connection, declared_by(params.get("capabilities"), version))
        connection.version = version
        return ("result", request.id, "greeting", version)

    def _declare(self, connection: Connection, capabilities: Capability) -> None:
        """Store what was declared; past the cap exactly one entry goes, without a sink if any."""
        self._order += 1
        connection.declared, connection.declared_at = capabilities, self._order
        connection.greeted = True
        stored = [one for one in self.connections.values() if one.declared is not None]
        if len(stored) > self.limits.max_client_capabilities:
            victim = min(stored, key=lambda one: (one.open, one.declared_at))
            victim.declared = None
            victim.greeted = victim.open
            self.tally["capabilities evicted"] += 1
            self._expect("record", "client_capabilities_evicted")

    # -- workers ------------------------------------------------------------------------------

    def _admit(self, owed: Owed) -> None:
        scope = self.slot_refusal(owed.share)
        if scope is None:
            self._start(owed, Job.AUTHORIZE_THEN_RUN if owed.is_tool else Job.READ)
        else:
            self._expect("record", "busy")
            self._busy(owed, scope)

    def _start(self, owed: Owed, job: Job) -> None:
        owed.stage = Stage.WORKING
        owed.worker = True
        owed.due_at = self.now + self.limits.callback_timeout
        self.working[owed] = None
        self._expect("start", owed, job)

    def worker_ended(self, owed: Owed, outcome: Outcome) -> None:
        """The worker of `owed` has ended, whatever became of the call."""
        owed.worker = False
        del self.working[owed]
        if owed.stage is not Stage.OVER:
            self._withdraw(owed)  # who asked in the middle of the work is not there any more
            self._outcomes[type(outcome)](owed, outcome)
        else:
            self.tally["late report"] += 1
        waiting = [other for other in self.live if other.stage is Stage.APPROVED]
        for other in sorted(waiting, key=lambda other: other.approved_at):
            if self.slot_refusal(other.share) is None:
                self.tally["approved got its slot"] += 1
                self._start(other, other.answered_job)
            else:
                self.tally["approved passed over"] += 1

    def _returned(self, owed: Owed, outcome: Returned) -> None:
        assert isinstance(outcome.payload, dict)
        self._answer(owed, ("result", owed.id, "value", False, outcome.payload))

    def _failed(self, owed: Owed, outcome: Failed) -> None:
        if owed.is_tool:
            self._told(owed, outcome.text)
        else:
            self._read_failed(owed, outcome.reason)

    def _stopped(self, owed: Owed, outcome: Stopped) -> None:
        self._broken(owed, "callback_crashed")

    def _refused(self, owed: Owed, outcome: Refused) -> None:
        self._answer(owed, self._failure(owed.id, outcome.code, outcome.data, outcome.message))

    def _denied(self, owed: Owed, outcome: Denied) -> None:
        self._deny(owed, outcome.detail, decision="deny")

    def _unacceptable(self, owed: Owed, outcome: Unacceptable) -> None:
        if owed.stateless:
            self._answer(owed, self._failure(owed.id, -32602))
        else:
            self._deny(owed, outcome.detail)

    def _granted(self, owed: Owed, outcome: Granted) -> None:
        connection, params, limits = owed.connection, owed.params, self.limits
        uri = str(params.get("uri"))
        if owed.method == "subscriptions/listen":
            self._listen(owed, outcome.allowed or {})
            return
        if owed.method == "logging/setLevel":
            if params["level"] not in LOG_LEVELS:
                self._answer(owed, self._failure(owed.id, -32602))
                return
            connection.severity = LOG_LEVELS.index(str(params["level"]))
        elif owed.method == "resources/unsubscribe":
            connection.subscriptions.discard(uri)
        elif len(uri) > limits.max_uri_bytes:
            self._answer(owed, self._failure(owed.id, -32602))
            return
        elif len(connection.subscriptions | {uri}) > limits.max_subscriptions:
            self.tally["too many subscriptions"] += 1
            self._busy(owed, "connection")
            return
        else:
            connection.subscriptions.add(uri)
        self._value(owed, {})

    def _listen(self, owed: Owed, allowed: JSONObject) -> None:
        connection = owed.connection
        uris = allowed.get("resourceSubscriptions") or []
        assert isinstance(uris, list)
        if len(uris) > self.limits.max_subscriptions:
            self._answer(owed, self._failure(owed.id, -32602))
            return
        listens = sum(1 for one in connection.live.values() if one.stage is Stage.LISTENING)
        if listens >= self.limits.max_listens:
            self.tally["too many listens"] += 1
            self._busy(owed, "connection")
            return
        owed.stage = Stage.LISTENING
        owed.filter = {name: True for name in LISTENABLE if allowed.get(name)}
        if uris:
            owed.filter["resourceSubscriptions"] = uris
        note = {
            "_meta": {META_SUBSCRIPTION_ID: owed.id},
            "notifications": owed.filter,
        }
        if connection.open:
            name = "notifications/subscriptions/acknowledged"
            self._expect("push", connection.name, owed.id, ("note", name, note), False)

    # -- asking -------------------------------------------------------------------------------

    def _asked(self, owed: Owed, outcome: Asked) -> None:
        owed.rounds += outcome.round
        if owed.rounds > self.limits.max_rounds:
            self.tally["too many rounds"] += 1
            self._failed(owed, Failed("Error: too many input rounds"))
            return
        missing = ~self.may_ask(owed)
        if any(question.needs & missing for question in outcome.questions):
            self._cannot_ask(owed, outcome)
        elif owed.stateless:
            self._seal(owed, outcome)
        elif outcome.questions:
            self._park(owed, list(outcome.questions))
        else:
            self._broken(owed, "input_required_without_requests")

    def may_ask(self, owed: Owed) -> Capability:
        """Say what can be asked for this call now: by its request, or by its connection."""
        if owed.stateless:
            return declared_by(owed.meta[META_CLIENT_CAPABILITIES], "2026-07-28")
        connection = owed.connection
        heard = connection.open and not connection.deaf
        return connection.declared or Capability.NONE if heard else Capability.NONE

    def _cannot_ask(self, owed: Owed, outcome: Asked) -> None:
        self.tally["cannot be asked"] += 1
        first = outcome.questions[0]
        if owed.is_tool and (first.approval or not owed.stateless):
            self._deny(owed, label_of(first))
        elif owed.stateless:
            self._answer(owed, self._failure(owed.id, -32021))
        else:
            self._read_failed(owed, "client_cannot_be_asked")

    def _park(self, owed: Owed, questions: list[Question]) -> None:
        refusal = self._make_room(owed.share)
        if refusal is not None:
            self.tally[refusal] += 1
            self._deny(owed, refusal)
            return
        self._order += 1
        owed.stage, owed.parked_at = Stage.PARKED, self._order
        owed.questions = questions
        self._ask_next(owed)
        if owed.via is Via.HANDLE:
            self._expect("reply", owed.caller, None)
            owed.via = Via.PUSH

    def _make_room(self, share: Hashable) -> str | None:
        """Find a place for `share`; say why there is none.

        On a full server the oldest parked call of the fullest share makes room, if the asker holds
        fewer. Equally full: the share that owns the oldest. Who was approved already stays.
        """
        holds = self.places()
        if holds[share] >= self.limits.parked_share:
            return TOO_MANY_HERE
        if holds.total() < self.limits.max_parked_elicitations_total:
            return None
        poorer = [
            owed
            for owed in self.live
            if owed.stage is Stage.PARKED and holds[owed.share] > holds[share]
        ]
        if not poorer:
            return TOO_MANY_ON_SERVER
        fullest = max(holds[owed.share] for owed in poorer)
        candidates = [owed for owed in poorer if holds[owed.share] == fullest]
        if len({owed.share for owed in candidates}) > 1:
            self.tally["equally full"] += 1
        if fullest < max(holds.values()):
            self.tally["the fullest has only approved calls"] += 1
        self.tally["evicted"] += 1
        self._expect("record", "parked_call_evicted")
        victim = min(candidates, key=lambda owed: owed.parked_at)
        self._deny(victim, TOO_MANY_ON_SERVER)
        return None

    def _ask_next(self, owed: Owed) -> None:
        question = owed.questions[0]
        owed.put = label_of(question)
        owed.due_at = self.now + self.limits.elicitation_timeout
        self._ask(owed, question, None)

    def _ask(self, owed: Owed, question: Question, key: str | None) -> None:
        self.questions[label_of(question)] = (owed, key)
        fact = ("ask", question.method, question.params)
        self._expect("push", owed.connection.name, owed.id, fact, False)

    def _answered(self, connection: Connection, message: Response | Failure) -> None:
        label = self.ask_ids.get(message.id) if isinstance(message.id, str) else None
        owed, key = self.questions.get(label or "", (None, None))
        if owed is None or owed.connection is not connection:
            self.tally["stolen answer" if owed else "late answer" if label else "stray"] += 1
            self._expect("record", "stray_answer")
            return
        assert label is not None
        if key is not None:
            self._answer_midway(owed, key, message)
            return
        del self.questions[label]
        owed.put = None
        if isinstance(message, Failure):
            self.tally["answered by an error"] += 1
            self._deny(owed, "elicitation failed")
            return
        refusal = refusal_in(owed.questions[0], message.result)
        if refusal is not None:
            self.tally[refusal] += 1
            self._deny(owed, refusal)
            return
        del owed.questions[0]
        if owed.questions:
            self.tally["next question"] += 1
            self._ask_next(owed)
        elif self.slot_refusal(owed.share) is None:
            self.tally["approved at once"] += 1
            self._start(owed, owed.answered_job)
        else:
            self.tally["approved waits"] += 1
            self._order += 1
            owed.stage, owed.approved_at = Stage.APPROVED, self._order
            owed.due_at = self.now + self.limits.callback_timeout

    # -- asking in the stateless era ----------------------------------------------------------

    def _seal(self, owed: Owed, outcome: Asked) -> None:
        if outcome.state is not None and len(outcome.state) >= 4096:
            self._failed(owed, Failed("Error: the state of this round is too long to carry"))
            return
        sealed = Sealed(
            binding_of(owed),
            owed.share,
            owed.request,
            outcome.questions,
            owed.rounds,
            self.now + self.wall_offset + self.limits.request_state_ttl,
        )
        self._minted.append(sealed)
        requests = {
            question.key: {"method": question.method, "params": question.params}
            for question in outcome.questions
        }
        self.tally["sealed"] += 1
        self._answer(owed, ("result", owed.id, "input_required", requests))

    def _resume(self, owed: Owed) -> None:
        responses = owed.params.get("inputResponses")
        if not isinstance(responses, dict | None):
            self._answer(owed, self._failure(owed.id, -32602))
            return
        sealed = self._valid(owed)
        if sealed is None:
            self._refuse_state(owed)
            return
        verdict = self._verdict(sealed, responses or {})
        if verdict == "ask again":
            self.tally["asked again"] += 1
            self._admit(owed)
        elif verdict is not None:
            if self._spend(owed, sealed):
                self.tally["sealed no"] += 1
                self._deny(owed, verdict)
            else:
                self._refuse_state(owed)
        elif (scope := self.slot_refusal(owed.share)) is not None:
            self._expect("record", "busy")
            self._busy(owed, scope)
        elif self._spend(owed, sealed):
            self.tally["sealed yes"] += 1
            owed.rounds = sealed.round
            self._start(owed, owed.answered_job)
        else:
            self._refuse_state(owed)

    def _valid(self, owed: Owed) -> Sealed | None:
        """Find the token among those that were given out: any other text is a forgery."""
        text = owed.params["requestState"]
        for sealed in self.tokens:
            if sealed.text == text:
                if sealed.binding != binding_of(owed):
                    self.tally["token of another request"] += 1
                elif self.now + self.wall_offset >= sealed.expires_at:
                    self.tally["token expired"] += 1
                else:
                    return sealed
                return None
        self.tally["token forged"] += 1
        return None

    @staticmethod
    def _verdict(sealed: Sealed, responses: JSONObject) -> str | None:
        for question in sealed.questions:
            if question.key in responses:
                refusal = refusal_in(question, responses[question.key])
                if refusal is not None:
                    return refusal
            elif question.approval or question.consent:
                return "ask again"
        return None

    def _spend(self, owed: Owed, sealed: Sealed) -> bool:
        # When a share spends, it forgets what expired: at the latest a whole lifetime ago.
        since = self.now + self.wall_offset - self.limits.request_state_ttl
        spent = [one for one in self._spent.get(owed.share, []) if one.expires_at > since]
        self._spent[owed.share] = spent
        if sealed.spent:
            self.tally["token replayed"] += 1
            return False
        sealed.spent = True
        spent.append(sealed)
        return True

    def _unexpired(self) -> int:
        """Count the spent tokens that could be used again if they were forgotten."""
        wall_now = self.now + self.wall_offset
        every = (one for spent in self._spent.values() for one in spent)
        return sum(1 for one in every if one.expires_at > wall_now)

    def _refuse_state(self, owed: Owed) -> None:
        self._expect("record", "request_state_refused")
        self._answer(owed, self._failure(owed.id, -32602, None, STATE_REFUSED))

    # -- while a tool runs --------------------------------------------------------------------

    def asked(self, owed: Owed, key: str, question: Question) -> None:
        """A running tool asks in the middle of its work."""
        if owed.stage is not Stage.WORKING:
            self.tally["asked after the end"] += 1
            self._expect("resolve", owed, key, None)
            return
        due_at = self.now + self.limits.elicitation_timeout
        owed.midway[key] = (label_of(question), due_at)
        self._ask(owed, question, key)

    def _answer_midway(self, owed: Owed, key: str, answer: Response | Failure | None) -> None:
        self.tally["midway unanswered" if answer is None else "midway answered"] += 1
        label, _ = owed.midway.pop(key)
        del self.questions[label]
        self._expect("resolve", owed, key, answer)

    def limited(self, owed: Owed, duration: float) -> None:
        """The running tool has a timeout of its own; it never lengthens the server's."""
        if owed.stage is Stage.WORKING:
            owed.due_at = min(owed.due_at, self.now + duration)

    def progressed(
        self, owed: Owed, progress: float, total: float | None, message: str | None
    ) -> None:
        """MCP basic/utilities/progress: with a token, while it runs, increasing."""
        token = owed.meta.get("progressToken")
        if owed.stage is not Stage.WORKING or not isinstance(token, int | str):
            return
        if isinstance(token, bool) or not owed.progress < progress < math.inf:
            return
        owed.progress = progress
        note: JSONObject = {"progressToken": token, "progress": progress}
        if total is not None:
            note["total"] = total
        if message is not None and (owed.stateless or owed.connection.version != "2024-11-05"):
            note["message"] = message
        self._note(owed, "notifications/progress", note)

    def logged(self, owed: Owed, severity: int, data: object) -> None:
        """MCP server/utilities/logging: from the level that this client wants on."""
        wanted: int | None = owed.connection.severity
        if owed.stateless:
            level = owed.meta.get(META_LOG_LEVEL)
            wanted = None if level is None else LOG_LEVELS.index(str(level))
        if owed.stage is Stage.WORKING and wanted is not None and severity >= wanted:
            note: JSONObject = {"level": LOG_LEVELS[severity], "data": data}
            self._note(owed, "notifications/message", note)

    def _note(self, owed: Owed, method: str, params: JSONObject) -> None:
        if owed.connection.open:
            self.tally[method] += 1
            self._expect("push", owed.connection.name, owed.id, ("note", method, params), True)

    def notified(self, method: str, params: JSONObject) -> None:
        """Something happened that connections may want to hear of."""
        updated = method == "notifications/resources/updated"
        for one in self.connections.values():
            if not one.open:
                continue
            if updated:
                wants = params["uri"] in one.subscriptions
            else:
                wants = one.greeted or not (one.facts.greeting_required or one.stateless)
            if wants:
                self._expect("push", one.name, None, ("note", method, params), False)
            for owed in one.live.values():
                if owed.stage is Stage.LISTENING and self._hears(owed, method, params):
                    self.tally["heard"] += 1
                    note = {"_meta": {META_SUBSCRIPTION_ID: owed.id}, **params}
                    self._expect("push", one.name, owed.id, ("note", method, note), False)

    @staticmethod
    def _hears(owed: Owed, method: str, params: JSONObject) -> bool:
        uris = owed.filter.get("resourceSubscriptions", [])
        assert isinstance(uris, list)
        if method == "notifications/resources/updated":
            return params["uri"] in uris
        return any(LISTENABLE[name] == method for name in LISTENABLE if name in owed.filter)

    # -- the ends -----------------------------------------------------------------------------

    def cancelled(self, owed: Owed) -> None:
        """Whoever sent the call no longer wants it."""
        if owed.stage is not Stage.OVER:
            self.tally["cancelled locally"] += 1
            self._cancel(owed)

    def tick(self) -> None:
        """Every wait whose end has come ends, once."""
        due = [wait for wait in self._waits() if wait[0] <= self.now]
        for _, owed, key in sorted(due, key=lambda wait: wait[0]):
            if key is None:
                self._expired(owed)
            elif key in owed.midway:
                label = owed.midway[key][0]
                self._answer_midway(owed, key, None)
                self._retract(owed, label)

    def _expired(self, owed: Owed) -> None:
        self.tally[f"expired {owed.stage.value}"] += 1
        if owed.stage is Stage.PARKED:
            self._deny(owed, "elicitation timed out")
        elif owed.stage is Stage.APPROVED:
            self._busy(owed, self.slot_refusal(owed.share) or "server")
        else:
            self._expect("record", "callback_timeout")
            self._broken(owed, "callback_timeout")

    def _cancel(self, owed: Owed) -> None:
        self.tally[f"cancelled {owed.stage.value}"] += 1
        self._close(owed, None)

    def _drop(self, owed: Owed) -> None:
        self.tally[f"dropped {owed.stage.value}"] += 1
        self._close(owed, None, moot=False)

    def _answer(self, owed: Owed, fact: Fact) -> None:
        self._close(owed, fact)

    def _close(self, owed: Owed, fact: Fact | None, *, moot: bool = True) -> None:
        """End a call: it holds nothing any more but the slot of a worker that still runs.

        `moot`: somebody is still there to be told that its open questions are.
        """
        assert owed.stage is not Stage.OVER, f"{owed} ends twice"
        connection = owed.connection
        owed.stage = Stage.OVER
        owed.due_at = math.inf
        del self.live[owed]
        del connection.live[owed.id]
        self._withdraw(owed, moot=moot)
        if owed.worker:
            self._expect("stop", owed)
        if owed.via is not Via.PUSH:
            self._expect("reply", owed.caller, fact)
        elif fact is not None:
            self._expect("push", connection.name, owed.id, fact, False)

    def _withdraw(self, owed: Owed, *, moot: bool = True) -> None:
        midway = [label for label, _ in owed.midway.values()]
        for label in [owed.put, *midway] if owed.put else midway:
            del self.questions[label]
            if moot:
                self._retract(owed, label)
        owed.put = None
        owed.midway.clear()

    def _retract(self, owed: Owed, label: str) -> None:
        if owed.connection.open:
            self.tally["retracted"] += 1
            self._expect("push", owed.connection.name, owed.id, ("retract", label), False)

    def _value(self, owed: Owed, payload: JSONObject) -> None:
        self._answer(owed, ("result", owed.id, "value", owed.stateless, payload))

    def _told(self, owed: Owed, text: object) -> None:
        self._answer(owed, ("result", owed.id, "told", owed.stateless, text))

    def _broken(self, owed: Owed, error: str) -> None:
        if owed.is_tool:
            self._told(owed, {"error": error})
        else:
            self._read_failed(owed, error)

    def _read_failed(self, owed: Owed, error: str) -> None:
        data = {"error": error, "method": owed.method}
        self._answer(owed, self._failure(owed.id, -32603, data))

    def _busy(self, owed: Owed, scope: str) -> None:
        self.tally[f"busy {scope}"] += 1
        if owed.is_tool:
            self._told(owed, {"error": "server_busy", "scope": scope, "retryable": True})
        else:
            data = {"error": "server_busy", "method": owed.method}
            self._answer(owed, self._failure(owed.id, -31002, data))

    def _deny(self, owed: Owed, detail: str, *, decision: str = "ask") -> None:
        denied: JSONObject = {"error": "authorization_required"}
        if owed.is_tool:
            denied |= {"tool": owed.params["name"], "decision": decision, "detail": detail}
            self._told(owed, denied)
        else:
            denied |= {"method": owed.method, "detail": detail}
            message = f"authorization_required: {owed.method}"
            self._answer(owed, self._failure(owed.id, -31001, denied, message))


class Witness:
    """What no server may do, seen from its effects and the requests alone."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.open: set[Hashable] = set()
        self.workers: set[Call] = set()
        self.stopped: set[Call] = set()
        self.callers: dict[object, Hashable] = {}  # who waits for a Reply, for which connection
        self.requests: Counter[tuple[Hashable, str]] = Counter()  # sent, without an answer yet

    def received(self, name: Hashable, message: Incoming, caller: object) -> None:
        """A message came; a `caller` waits for exactly one Reply."""
        if caller is not None:
            self.callers[caller] = name
        for part in message.messages if isinstance(message, Batch) else (message,):
            if isinstance(part, Request):
                self.requests[name, repr(part.id)] += 1
            elif isinstance(part, Invalid):
                self.requests[name, repr(part.failure.id)] += 1

    def ended(self, call: Call) -> None:
        """A worker has ended."""
        self.workers.remove(call)
        self.stopped.discard(call)

    def saw(self, effects: list[Effect]) -> None:
        """Look at the effects of one input, in their order."""
        for effect in effects:
            if isinstance(effect, Push):
                assert effect.connection in self.open, f"{effect} goes to nobody"
                self._answer(effect.connection, effect.message)
            elif isinstance(effect, Reply):
                assert effect.caller in self.callers, f"{effect} is one too many"
                self._answer(self.callers.pop(effect.caller), effect.message)
            elif isinstance(effect, StartWorker):
                assert effect.call not in self.workers, "one worker at a time"
                self.workers.add(effect.call)
                assert len(self.workers) <= self.limits.max_in_flight, "too many, for a moment"
            elif isinstance(effect, StopWorker):
                assert effect.call in self.workers - self.stopped, "a worker is stopped once"
                self.stopped.add(effect.call)

    def _answer(self, name: Hashable, message: Outgoing | None) -> None:
        if isinstance(message, Response | Failure) and message.id is not None:
            self.requests[name, repr(message.id)] -= 1
            assert self.requests[name, repr(message.id)] >= 0, f"{message} answers nothing"

    def check(self, live: Iterable[Owed], workers: int) -> None:
        """Compare with the records: who waits for a Reply, and how many workers there are."""
        assert len(self.workers) == workers, "a worker that nobody knows"
        waiting = {owed.caller for owed in live if owed.via is not Via.PUSH}
        assert waiting == self.callers.keys(), "somebody waits for nothing"
