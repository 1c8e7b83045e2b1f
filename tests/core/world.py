"""Clients, shells and tools of one server, all at once: whatever may happen to a core.

Each `act_*` method lets one thing happen, chosen by a `Chooser`, and holds the core against the
oracle. What a shell must not do (report a worker twice, ask where nobody can be asked) does not
happen here; what a client must not do happens all the time.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Final, Protocol, TypeVar

from raxol_mcp.core.calls import Via
from raxol_mcp.core.effects import Effect
from raxol_mcp.core.eras import Identity
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
from raxol_mcp.core.questions import Question, approval
from raxol_mcp.core.seal import Seal
from raxol_mcp.core.server import ServerCore
from raxol_mcp.wire.jsonrpc import (
    Batch,
    Failure,
    Ignored,
    Incoming,
    Invalid,
    JSONObject,
    Message,
    Notification,
    Request,
    RequestId,
    Response,
)
from raxol_mcp.wire.meta import META_CLIENT_CAPABILITIES, META_LOG_LEVEL, META_VERSION
from tests.core.oracle import Connection, Oracle, Owed, Sealed, Stage

__all__ = ["ACTS", "MOODS", "PROFILES", "Chooser", "World", "Wrong"]

T = TypeVar("T")

WALL_OFFSET: Final = 1_000_000.0
NAMES: Final = ("pipe", "s1", "s2", "s3", "s4", "s5")
POOL_IDS: Final[tuple[RequestId, ...]] = (1, 2, "1", "2", 0, "")
PRINCIPALS: Final = (None, None, None, "alice", "bob")
CAPABILITIES: Final[tuple[object, ...]] = (
    {"elicitation": {}},
    {"elicitation": {"form": {}}},
    {"elicitation": {}, "sampling": {}},
    {"elicitation": {"form": {}, "url": {}}},
    {"elicitation": {"url": {}}},
    {"elicitation": False},
    {},
    None,
)
VERSIONS: Final = ("2025-06-18", "2025-11-25", "2025-11-25", "2025-03-26", "2024-11-05", "1999", 7)
YES: Final[JSONObject] = {"action": "accept", "content": {"approve": True}}
# Everything that is nearly a yes.
NOT_YES: Final[tuple[object, ...]] = (
    {"action": "accept", "content": {"approve": 1}},
    {"action": "accept", "content": {"approve": "true"}},
    {"action": "accept", "content": {"approve": False}},
    {"action": "accept", "content": {}},
    {"action": "accept", "content": [True]},
    {"action": "accept"},
    {"action": "decline", "content": {"approve": True}},
    {"action": "cancel"},
    {"action": ["accept"], "content": {"approve": True}},
    {"action": "Accept", "content": {"approve": True}},
    {"content": {"approve": True}},
    {},
    True,
    "accept",
    None,
    [YES],
)
TARGETS_NOT_IDS: Final[tuple[object, ...]] = (True, False, 1.0, None, [1], {"id": 1}, 99_999_999)
CHANGES: Final = (
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
)
SMALL: Final = {"max_client_capabilities": 7, "max_subscriptions": 1, "max_listens": 1}
# Small, so that the server is full most of the time. The fractions keep a call's timeout and its
# question's from ending at the same instant: their order is nobody's promise.
PROFILES: Final = (
    Limits(
        max_in_flight=4,
        max_in_flight_per_connection=2,
        max_parked_elicitations=3,
        max_parked_elicitations_total=6,
        max_rounds=2,
        callback_timeout=120.25,
        elicitation_timeout=60.0,
        request_state_ttl=90.0,
        **SMALL,
    ),
    Limits(
        max_in_flight=2,
        max_in_flight_per_connection=1,
        max_parked_elicitations=3,
        max_parked_elicitations_total=4,
        max_rounds=3,
        callback_timeout=90.25,
        elicitation_timeout=60.0,
        request_state_ttl=90.0,
        **SMALL,
    ),
    Limits(
        max_in_flight=3,
        max_in_flight_per_connection=3,
        max_parked_elicitations=2,
        max_parked_elicitations_total=3,
        max_rounds=1,
        callback_timeout=30.25,
        elicitation_timeout=60.0,
        request_state_ttl=30.0,
        **SMALL,
    ),
)


class Chooser(Protocol):
    """Where chance comes from: a seeded generator in the walk, Hypothesis where it shrinks."""

    def below(self, number: int) -> int:
        """Choose an integer from 0 to `number` - 1."""

    def chance(self, percent: int) -> bool:
        """Say yes in about `percent` of 100 cases."""


class Wrong(AssertionError):
    """The core and the oracle differ, or the core broke. Says what happened before."""


class World:
    """One core, its oracle, and everybody around them."""

    def __init__(self, choose: Chooser, limits: Limits) -> None:
        self.choose = choose
        self.limits = limits
        self.now = 1000.0
        self.core = ServerCore(
            limits,
            identity=Identity(),
            seal=Seal(b"k" * 32),
            new_id=self._new_id,
            wall_offset=WALL_OFFSET,
        )
        self.oracle = Oracle(limits, wall_offset=WALL_OFFSET)
        self.steps = 0
        self.history: deque[tuple[object, ...]] = deque(maxlen=40)
        self._serial = 0
        self._ended: deque[Owed] = deque(maxlen=4)
        self._stuck: Hashable = None

    # -- choosing -----------------------------------------------------------------------------

    def pick(self, items: Sequence[T]) -> T:
        """Choose one of `items`, which are not empty."""
        return items[self.choose.below(len(items))]

    def _next(self) -> int:
        self._serial += 1
        return self._serial

    def _new_id(self) -> str:
        return f"{self._next():016x}"

    def _open(self) -> list[Connection]:
        return [one for one in self.oracle.connections.values() if one.open]

    def _some_connection(self) -> Hashable:
        """Choose a connection: usually an open one."""
        known = [one.name for one in self._open()]
        lasting = [name for name in known if not str(name).startswith("post")]
        if not known or self.choose.chance(8):
            return self.pick(NAMES)
        return self.pick(lasting if lasting and self.choose.chance(90) else known)

    def _new_request_id(self) -> RequestId:
        return self.pick(POOL_IDS) if self.choose.chance(25) else self._next() + 100

    def _via(self, name: Hashable) -> Via:
        one = self.oracle.connections.get(name)
        if one is not None and one.open and self.choose.chance(65):
            return Via.PUSH
        return Via.REPLY if self.choose.chance(50) else Via.HANDLE

    # -- one step -----------------------------------------------------------------------------

    def _step(
        self,
        what: tuple[object, ...],
        decide: Callable[[], list[Effect]],
        expect: Callable[[], None],
        *,
        ticked: bool = False,
    ) -> None:
        """Let the core and the oracle have the same input, and compare."""
        self.steps += 1
        self.history.append((self.now, *what))
        oracle = self.oracle
        try:
            oracle.begin(self.now)
            expect()
            oracle.compare(decide())
            oracle.check(self.core, ticked=ticked)
        except Exception as error:
            story = "\n".join(" ".join(map(str, line)) for line in self.history)
            raise Wrong(f"{story}\nstep {self.steps}: {type(error).__name__}: {error}") from error

    def _receive(self, name: Hashable, message: Incoming, via: Via | None = None) -> None:
        via = self._via(name) if via is None else via
        caller = None if via is Via.PUSH else self._next()
        self.oracle.witness.received(name, message, caller)
        self._step(
            ("received", name, via.value, message),
            lambda: self.core.received(name, message, self.now, via=via, caller=caller),
            lambda: self.oracle.received(name, message, via, caller),
        )

    def _end_worker(self, owed: Owed, outcome: Outcome) -> None:
        call = owed.call
        assert call is not None
        self.oracle.witness.ended(call)
        self._ended.append(owed)
        self._step(
            ("worker_ended", owed, outcome),
            lambda: self.core.worker_ended(call, outcome, self.now),
            lambda: self.oracle.worker_ended(owed, outcome),
        )

    # -- connections --------------------------------------------------------------------------

    def _do_open(self, name: Hashable, facts: ConnectionFacts) -> None:
        self._step(
            ("opened", name, facts),
            lambda: self.core.opened(name, facts, self.now),
            lambda: self.oracle.opened(name, facts),
        )

    def _do_gone(self, name: Hashable) -> None:
        self._step(
            ("gone", name),
            lambda: self.core.gone(name, self.now),
            lambda: self.oracle.gone(name),
        )

    def act_open(self) -> None:
        """A connection gets a sink; now and then one that has one already."""
        closed = [
            name
            for name in NAMES
            if name not in self.oracle.connections or not self.oracle.connections[name].open
        ]
        if closed or self.choose.chance(5):
            self._do_open(self.pick(closed or NAMES), self._facts())

    def _facts(self) -> ConnectionFacts:
        principal = self.pick(PRINCIPALS)
        share = "team" if self.choose.chance(15) else principal
        greets = self.choose.chance(30)
        return ConnectionFacts("test", principal, share=share, greeting_required=greets)

    def act_takes_over(self) -> None:
        """Another client takes a connection over on which a call goes on: it inherits nothing."""
        name = self.pick(NAMES)
        params = self._params()
        if self.choose.chance(50):
            params["_meta"] = self._meta()
        via = self.pick((Via.REPLY, Via.HANDLE))
        self._receive(name, Request(self._new_request_id(), "tools/call", params), via)
        if self.choose.chance(50):
            self._do_gone(name)
        self._do_open(name, self._facts())
        survived = [owed for owed in self.oracle.connections[name].live.values() if owed.worker]
        if survived and self.choose.chance(60):
            owed = self.pick(survived)
            asks = self.choose.chance(60) and owed.is_tool
            self._end_worker(owed, self._questions(owed) if asks else self._outcome(owed))

    def act_greet(self) -> None:
        """Somebody sends initialize: mostly who did not yet."""
        ungreeted = [one.name for one in self._open() if not one.greeted]
        name = self.pick(ungreeted) if ungreeted else self._some_connection()
        if not ungreeted and self.choose.chance(20):
            name = f"direct-{self.choose.below(3)}"
        capabilities = self.pick(CAPABILITIES[: 4 if self.choose.chance(90) else None])
        version = self.pick(VERSIONS[: 3 if self.choose.chance(85) else None])
        params: JSONObject = {"protocolVersion": version, "capabilities": capabilities}
        self._receive(name, Request(self._new_request_id(), "initialize", params))

    def act_gone(self) -> None:
        """A sink ends."""
        known = self._open()
        if len(known) > 3:
            self._do_gone(self.pick([one for one in known if one.deaf] or known).name)

    def act_hang_up(self) -> None:
        """A POST whose answer is sent is over; now and then one whose client did not wait.

        So is a pipe whose input has ended, once the calls that ran are answered.
        """
        posts = [one for one in self._open() if one.deaf or str(one.name).startswith("post")]
        done = [one for one in posts if not one.live]
        if done or (posts and self.choose.chance(10)):
            self._do_gone(self.pick(done or posts).name)

    def act_input_ended(self) -> None:
        """A client closes its half."""
        known = self._open()
        if known and self.choose.chance(50):
            name = self.pick(known).name
            self._step(
                ("input_ended", name),
                lambda: self.core.input_ended(name, self.now),
                lambda: self.oracle.input_ended(name),
            )

    # -- requests -----------------------------------------------------------------------------

    def _params(self) -> JSONObject:
        params: JSONObject = {"name": self.pick(("t1", "t2")), "arguments": {"n": self._small()}}
        if self.choose.chance(30):
            params["_meta"] = {"progressToken": self.pick((0, "", 7, "p", True, None))}
        return params

    def _small(self) -> object:
        return self.pick((0, 1, True, 1.0, "1"))

    def _meta(self) -> JSONObject:
        capabilities = self.pick(CAPABILITIES[: 4 if self.choose.chance(85) else 7])
        meta: JSONObject = {META_VERSION: "2026-07-28", META_CLIENT_CAPABILITIES: capabilities}
        if self.choose.chance(20):
            meta["progressToken"] = self._next()
        if self.choose.chance(20):
            meta[META_LOG_LEVEL] = self.pick(("debug", "error", "emergency"))
        return meta

    def act_call(self) -> None:
        """A tools/call of the handshake era."""
        request = Request(self._new_request_id(), "tools/call", self._params())
        self._receive(self._some_connection(), request)

    def act_stateless(self) -> None:
        """A tools/call of the stateless era, on any connection."""
        request = Request(
            self._new_request_id(), "tools/call", {**self._params(), "_meta": self._meta()}
        )
        self._receive(self._some_connection(), request)

    def act_post(self) -> None:
        """A stateless request on a connection of its own."""
        if sum(1 for one in self._open() if str(one.name).startswith("post")) >= 6:
            return
        name = self._post()
        method = self.pick(("tools/call", "tools/call", "resources/read", "prompts/get"))
        params = {**self._params(), "uri": "u", "_meta": self._meta()}
        if method == "prompts/get":
            params["arguments"] = {"n": self.pick(("0", "1", 1))}
        self._receive(name, Request(1, method, params), Via.PUSH)

    def _post(self) -> str:
        principal = self.pick(PRINCIPALS)
        name = f"post-{self._next()}"
        share = "team" if self.choose.chance(15) else principal or "anonymous"
        facts = ConnectionFacts("http", principal, share=share)
        self._do_open(name, facts)
        return name

    def act_read(self) -> None:
        """Another method of either era, now and then one that does not exist or does not fit."""
        methods = ("resources/read", "prompts/get", "tools/list", "ping", "server/discover", "no")
        method = self.pick(methods)
        params: JSONObject | None = {"name": "p", "uri": self.pick(("u1", "u2"))}
        if self.choose.chance(15):
            broken: tuple[JSONObject | None, ...] = (
                None,
                {},
                {"name": 1, "uri": None},
                {"name": "p", "arguments": 3},
            )
            params = self.pick(broken)
        if self.choose.chance(40):
            meta = self._meta()
            if self.choose.chance(20):
                meta[META_VERSION] = self.pick((1, "2025-11-25", "2026-07-28"))
                meta[META_CLIENT_CAPABILITIES] = self.pick((None, {}, []))
                meta[META_LOG_LEVEL] = self.pick(("info", "loud", 3))
            params = {**(params or {}), "_meta": meta}
        self._receive(self._some_connection(), Request(self._new_request_id(), method, params))

    def act_listen(self) -> None:
        """A listen, a subscription or a log level."""
        method = self.pick(
            (
                "subscriptions/listen",
                "subscriptions/listen",
                "resources/subscribe",
                "resources/unsubscribe",
                "logging/setLevel",
            )
        )
        uri = "x" * 9000 if self.choose.chance(5) else self.pick(("u1", "u2"))
        params: JSONObject = {"uri": uri, "level": self.pick(("debug", "error", "loud"))}
        if method == "subscriptions/listen":
            params = {"notifications": {}, "_meta": self._meta()}
        self._receive(self._some_connection(), Request(self._new_request_id(), method, params))

    def act_junk(self) -> None:
        """Something that is no request, or none that can be served."""
        messages: tuple[Incoming, ...] = (
            Notification("notifications/initialized", None),
            Notification("tools/call", {"name": "t1"}),
            Ignored("blank line"),
            Invalid(Failure(None, -32700, "Parse error")),
            Invalid(Failure(self._new_request_id(), -32602, "params must be an object")),
            Response(self._new_request_id(), YES),
            Response("raxol-elicit-guess", YES),
            Failure(None, -32603, "what?"),
        )
        self._receive(self._some_connection(), self.pick(messages))

    def act_batch(self) -> None:
        """An array: only 2025-03-26 knows them."""
        able = [one.name for one in self._open() if one.version == "2025-03-26"]
        name = self.pick(able) if able else self._some_connection()
        cancel = Notification("notifications/cancelled", {"requestId": self._target(name)})
        parts: list[Message] = [
            Request(self._new_request_id(), "tools/call", self._params()),
            cancel,
            Request(self._new_request_id(), "tools/call", self._params()),
            Request(self._next(), "initialize", {"protocolVersion": "2025-03-26"}),
            Request(self._next(), "ping", None),
        ]
        first = self.choose.below(len(parts))
        self._receive(name, Batch(parts[first : first + 1 + self.choose.below(4)]))

    # -- cancelling ---------------------------------------------------------------------------

    def _target(self, name: Hashable) -> object:
        one = self.oracle.connections.get(name)
        if one is not None and 1 in one.live and self.choose.chance(30):
            return self.pick((True, 1.0, "1"))
        if one is not None and one.live and self.choose.chance(80):
            return self.pick(list(one.live))
        return self.pick((*POOL_IDS, *TARGETS_NOT_IDS))

    def act_client_cancels(self) -> None:
        """A client cancels: one of its calls, or anything else."""
        name = self._some_connection()
        params: JSONObject | None = {"requestId": self._target(name)}
        if self.choose.chance(5):
            params = None
        self._receive(name, Notification("notifications/cancelled", params))

    def _some_call(self) -> Owed | None:
        """Choose a call that the shell knows; now and then one that is over."""
        if self._ended and self.choose.chance(15):
            return self.pick(self._ended)
        known = [owed for owed in self.oracle.live if owed.call is not None]
        return self.pick(known) if known else None

    def act_caller_cancels(self) -> None:
        """Whoever made a request wants it no more, or has ended."""
        owed = self._some_call()
        if owed is not None:
            self._do_cancel(owed)

    def _do_cancel(self, owed: Owed) -> None:
        call = owed.call
        assert call is not None, "who is chosen here has a handle"
        self._step(
            ("cancelled", owed),
            lambda: self.core.cancelled(call, self.now),
            lambda: self.oracle.cancelled(owed),
        )

    # -- workers ------------------------------------------------------------------------------

    def act_sticks(self) -> None:
        """The workers of the share with the most parked calls hang; or they go on.

        Whoever is approved in that share then waits, while others come and go.
        """
        self._stuck = None if self.choose.chance(25) else self._fullest()

    def _fullest(self) -> Hashable:
        ((share, _),) = self.oracle.places().most_common(1) or [(None, 0)]
        return share

    def act_report(self) -> None:
        """A worker ends."""
        working = [owed for owed in self.oracle.working if owed.share != self._stuck]
        if not working:
            return
        owed = self.pick(working)
        if owed.stage is Stage.OVER and self.choose.chance(50):
            return  # what was told to stop may take its time
        self._end_worker(owed, self._outcome(owed))

    def act_ask(self) -> None:
        """A worker ends because a human must be asked."""
        able = [
            owed
            for owed in self.oracle.working
            if owed.share != self._stuck
            and (owed.stage is Stage.OVER or owed.method in ("tools/call", "resources/read"))
        ]
        fresh = [owed for owed in able if self.oracle.may_ask(owed) and not owed.stateless]
        if able:
            owed = self.pick(fresh if fresh and self.choose.chance(80) else able)
            self._end_worker(owed, self._questions(owed))

    def _outcome(self, owed: Owed) -> Outcome:
        if owed.method in (
            "subscriptions/listen",
            "resources/subscribe",
            "resources/unsubscribe",
            "logging/setLevel",
        ):
            return self._grant(owed) if self.choose.chance(80) else Failed("x", "callback_crashed")
        value: JSONObject = {"value": self._next()}
        common: tuple[Outcome, ...] = (
            Returned(value),
            Returned({"content": [], "isError": True}, failed=True),
            Failed("Error: ValueError"),
            Refused(-32601, "Tool not found: t1"),
            Refused(-31001, "authorization_required: m", {"error": "authorization_required"}),
            Stopped(),
        )
        if owed.is_tool:
            common = (*common, Unacceptable("it does not fit"))
            if not owed.parked_at and not owed.rounds:
                common = (*common, Denied("not_allowlisted"))
        return common[0] if self.choose.chance(40) else self.pick(common)

    def _grant(self, owed: Owed) -> Outcome:
        if owed.method != "subscriptions/listen":
            return Granted()
        allowed: JSONObject = {"toolsListChanged": True}
        if self.choose.chance(50):
            allowed = {"promptsListChanged": True, "resourcesListChanged": False}
        if self.choose.chance(60):
            allowed["resourceSubscriptions"] = self.pick((["u1"], ["u2"], ["a", "b"]))
        return Granted(allowed)

    def _questions(self, owed: Owed) -> Outcome:
        again = owed.parked_at > 0 or owed.rounds > 0
        if again or not owed.is_tool or self.choose.chance(20):
            count = self.choose.below(3)
            state = self.pick((None, "state", "s" * 5000)) if self.choose.chance(30) else "more"
            asked = [self._question(f"r{at}", consent=False) for at in range(count)]
            return Asked(tuple(asked), round=True, state=state)
        asked = [self._question(f"c{at}", consent=True) for at in range(self.choose.below(3))]
        if not asked or self.choose.chance(70):
            first = approval(f"q{self._next()}", "t1")
            assert first.params["requestedSchema"] == {
                "type": "object",
                "properties": {
                    "approve": {"type": "boolean", "description": "Approve running the t1 tool"}
                },
                "required": ["approve"],
            }
            asked.insert(0, first)
        return Asked(tuple(asked), subject="what it is about")

    def _question(self, key: str, *, consent: bool) -> Question:
        params: JSONObject = {"message": f"q{self._next()}"}
        if not consent and self.choose.chance(15):
            return Question(key, "sampling/createMessage", params, Capability.SAMPLING)
        needs = Capability.URL if self.choose.chance(5) else Capability.FORM
        return Question(key, "elicitation/create", params, needs, consent=consent)

    # -- while they run -----------------------------------------------------------------------

    def act_asks_midway(self) -> None:
        """A running tool asks in the middle of its work."""
        owed = self._some_call()
        if owed is None or owed.call is None or owed.stateless:
            return
        if owed.stage in (Stage.PARKED, Stage.APPROVED, Stage.LISTENING):
            return
        running = owed.stage is Stage.WORKING
        if running and not self.oracle.may_ask(owed) & Capability.FORM:
            return  # the shell looks first
        if owed.due_at == self.now + self.limits.elicitation_timeout:
            return  # two waits that end at the same instant: which one first is nobody's promise
        call, key = owed.call, str(self._next())
        question = self._question(key, consent=False)
        self._step(
            ("asked", owed, key),
            lambda: self.core.asked(call, key, question, self.now),
            lambda: self.oracle.asked(owed, key, question),
        )

    def act_limits(self) -> None:
        """A worker gets to a tool with a timeout of its own."""
        owed = self._some_call()
        if owed is not None and owed.call is not None and (owed.worker or not owed.connection.live):
            call, duration = owed.call, self.pick((5.125, 20.125, 1e6))
            self._step(
                ("limited", owed, duration),
                lambda: self.core.limited(call, duration, self.now),
                lambda: self.oracle.limited(owed, duration),
            )

    def act_says(self) -> None:
        """A running tool reports progress, or logs; so may one that is over."""
        owed = self._some_call()
        tracked = [one for one in self.oracle.working if one.meta.get("progressToken") is not None]
        if tracked and self.choose.chance(60):
            owed = self.pick(tracked)
        if owed is None or owed.call is None:
            return
        call = owed.call
        if self.choose.chance(70):
            progress = self.pick((0.5, 1, 2, 3, math.nan, math.inf))
            message = self.pick((None, "half"))
            total = self.pick((None, 4))
            self._step(
                ("progressed", owed, progress),
                lambda: self.core.progressed(call, progress, total, message, self.now),
                lambda: self.oracle.progressed(owed, progress, total, message),
            )
        else:
            severity = self.choose.below(8)
            self._step(
                ("logged", owed, severity),
                lambda: self.core.logged(call, severity, None, "text", self.now),
                lambda: self.oracle.logged(owed, severity, "text"),
            )

    def act_news(self) -> None:
        """Something happened that connections may want to hear of."""
        method = self.pick(CHANGES)
        params: JSONObject = {"uri": self.pick(("u1", "u2"))} if "updated" in method else {}
        self._step(
            ("notified", method),
            lambda: self.core.notified(method, params, self.now),
            lambda: self.oracle.notified(method, params),
        )

    # -- answers ------------------------------------------------------------------------------

    def _answer_to(self, yes_percent: int) -> object:
        return YES if self.choose.chance(yes_percent) else self.pick(NOT_YES)

    def act_answer(self) -> None:
        """An open question is answered by whom it was put to."""
        open_questions = self._open_questions()
        if open_questions:
            ask_id, owed = self.pick(open_questions)
            self._receive(owed.connection.name, self._answer(ask_id))

    def act_yes_to_all(self) -> None:
        """The fullest share hears yes and has no slot: all it has parked waits, approved."""
        self._stuck = fullest = self._fullest()
        for _ in range(9):
            asked = [one for one in self._open_questions() if one[1].share == fullest]
            if asked:
                ask_id, owed = asked[0]
                self._receive(owed.connection.name, Response(ask_id, YES))

    def _open_questions(self) -> list[tuple[str, Owed]]:
        oracle = self.oracle
        found = [
            (ask_id, oracle.questions[label][0])
            for ask_id, label in oracle.ask_ids.items()
            if label in oracle.questions
        ]
        return [(ask_id, owed) for ask_id, owed in found if not owed.connection.deaf]

    def _answer(self, ask_id: RequestId) -> Message:
        if self.choose.chance(8):
            return Failure(ask_id, -32603, "the human is out")
        return Response(ask_id, self._answer_to(80))

    def act_stray_answer(self) -> None:
        """A question is answered by somebody else, or after its end, or once more."""
        recent = list(self.oracle.ask_ids)[-12:]
        if recent:
            ask_id = self.pick(recent)
            self._receive(self._some_connection(), Response(ask_id, YES))

    def act_retry(self) -> None:
        """A sealed question comes back: with answers, without, replayed, changed or swapped."""
        if not self.oracle.tokens:
            return
        tokens = self.oracle.tokens[-8:]
        wall_now = self.now + WALL_OFFSET
        usable = [one for one in tokens if not one.spent and wall_now < one.expires_at]
        sealed = self.pick(usable if usable and self.choose.chance(60) else tokens)
        params = dict(sealed.request.params or {})
        params["_meta"] = self._meta()
        params["requestState"] = self._token(sealed)
        if self.choose.chance(90):
            params["inputResponses"] = self._responses(sealed)
        method = sealed.request.method
        if self.choose.chance(15):  # something else than what was approved
            change = self.pick(("name", "arguments", "method"))
            if change == "name":
                params["name"] = "t3"
            elif change == "arguments":
                params["arguments"] = {"n": self._small()}
            else:
                method = self.pick(("tools/call", "prompts/get"))
        self._receive(self._retry_from(sealed), Request(self._new_request_id(), method, params))

    def _retry_from(self, sealed: Sealed) -> Hashable:
        same_share = [one.name for one in self._open() if one.share == sealed.share]
        if same_share and self.choose.chance(85):
            return self.pick(same_share)
        posts = sum(1 for one in self._open() if str(one.name).startswith("post"))
        return self._post() if posts < 6 else self._some_connection()

    def _token(self, sealed: Sealed) -> object:
        if self.choose.chance(85):
            return sealed.text
        at = self.choose.below(len(sealed.text))
        other = "B" if sealed.text[at] == "A" else "A"
        changed = sealed.text[:at] + other + sealed.text[at + 1 :]
        return self.pick((changed, sealed.text + "A", sealed.text[:-4], sealed.text + "=", "", 7))

    def _responses(self, sealed: Sealed) -> object:
        if self.choose.chance(4):
            return [YES]
        return {
            question.key: self._answer_to(88)
            for question in sealed.questions
            if self.choose.chance(90)
        }

    # -- time ---------------------------------------------------------------------------------

    def act_wait(self) -> None:
        """Time passes, and nobody looks at the clock yet."""
        self.now += self.pick((0.25, 1.0, 1.0, 4.0, 15.0))

    def act_tick(self) -> None:
        """The timer fires: in time, late, or for nothing."""
        due_at = self.oracle.next_due_at()
        if due_at < math.inf and self.choose.chance(70):
            self.now = max(self.now, due_at)
            if self.choose.chance(30):
                self.now += 10.0
        self._tick()

    def _tick(self) -> None:
        self._step(("tick",), lambda: self.core.tick(self.now), self.oracle.tick, ticked=True)

    # -- the end ------------------------------------------------------------------------------

    def finish(self) -> None:
        """Let everything end; then nothing may be held by anybody."""
        if self.choose.chance(30):
            self._step(("stopped",), lambda: self.core.stopped(self.now), self.oracle.stopped)
        else:
            for one in self._open():
                self._do_gone(one.name)
            while self.oracle.next_due_at() < math.inf:
                self.now = max(self.now, self.oracle.next_due_at())
                self._tick()
        for owed in list(self.oracle.working):
            self._end_worker(owed, Returned({"value": 0}))
        self._tick()
        for one in self._open():
            self._do_gone(one.name)
        for owed in list(self.oracle.live):  # listens of callers without a connection
            self._do_cancel(owed)
        self._nothing_is_left()

    def _nothing_is_left(self) -> None:
        counts = self.core.stats()
        held = ("in_flight", "stopping", "parked", "approved", "deadlines")
        if any(counts[name] for name in held) or self.oracle.witness.callers:
            raise Wrong(f"held after the end: {counts}")
        if counts["connections"] != counts["declared"] or self.core.next_deadline is not None:
            raise Wrong(f"remembered after the end: {counts}")


# How often each thing happens beside the others.
ACTS: Final[dict[str, int]] = {
    "act_open": 8,
    "act_takes_over": 1,
    "act_greet": 9,
    "act_gone": 1,
    "act_hang_up": 8,
    "act_input_ended": 1,
    "act_call": 40,
    "act_stateless": 5,
    "act_post": 5,
    "act_read": 5,
    "act_listen": 5,
    "act_junk": 2,
    "act_batch": 2,
    "act_client_cancels": 3,
    "act_caller_cancels": 2,
    "act_report": 12,
    "act_sticks": 2,
    "act_yes_to_all": 1,
    "act_ask": 32,
    "act_asks_midway": 4,
    "act_limits": 2,
    "act_says": 6,
    "act_news": 2,
    "act_answer": 10,
    "act_stray_answer": 3,
    "act_retry": 8,
    "act_wait": 4,
    "act_tick": 2,
}
# What changes from mood to mood: a crowd fills the server, a quiet hour lets it end what it has.
MOODS: Final[tuple[dict[str, int], ...]] = (
    {"act_ask": 60, "act_report": 6, "act_answer": 3, "act_wait": 1, "act_tick": 0},
    {"act_ask": 60, "act_report": 6, "act_answer": 3, "act_wait": 1, "act_tick": 0},
    {"act_answer": 60, "act_report": 3, "act_stray_answer": 10, "act_retry": 25, "act_wait": 2},
    {"act_yes_to_all": 6, "act_report": 2, "act_sticks": 6, "act_wait": 0, "act_tick": 0},
    {"act_listen": 50, "act_report": 40, "act_news": 10, "act_asks_midway": 20, "act_says": 20},
    {},
    {"act_wait": 25, "act_tick": 12, "act_gone": 4, "act_client_cancels": 8},
)
