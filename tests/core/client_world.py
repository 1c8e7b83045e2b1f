"""A client, its callers, its user and its server, all at once: whatever may happen to a core.

Each `act_*` method lets one thing happen, chosen by a `Chooser`, and holds the core against the
oracle. What a shell must not do (start a client twice, submit a ticket twice) does not happen
here; what a server must not do happens all the time.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from raxol_mcp.core.client import ClientCore
from raxol_mcp.core.client_effects import Effect
from raxol_mcp.core.client_ledger import ClientOptions
from raxol_mcp.core.tickets import ServerQuestion, Ticket, Waiter
from raxol_mcp.core.verdicts import Verdict, Verdicts
from raxol_mcp.core.window import Policy
from raxol_mcp.errors import Reason
from raxol_mcp.wire.headers import Mirror
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
from raxol_mcp.wire.meta import META_SUBSCRIPTION_ID, META_VERSION, EraName
from tests.core.client_oracle import ClientOracle, Meaning, Owed, Stage
from tests.core.world import Chooser, Wrong

__all__ = ["ACTS", "MOODS", "PROFILES", "ClientWorld"]

T = TypeVar("T")

KEY: Final = ("server",)
ASKED: Final = frozenset({"elicitation/create", "roots/list"})


def options(
    kind: str,
    *,
    policy: Policy | None = None,
    era: EraName | None = None,
    pool_size: int = 2,
    max_listening: int = 1,
) -> ClientOptions:
    """Small, so that everything is full most of the time.

    The fractions keep waits of two kinds from ending at one instant: their order is nobody's
    promise.
    """
    return ClientOptions(
        kind=kind,
        verdict_key=KEY,
        closing_cancels=kind == "http",
        client_info={"name": "test"},
        handshake_capabilities={"elicitation": {}},
        stateless_capabilities={"roots": {}},
        asked_methods=ASKED,
        policy=policy,
        pool_size=pool_size,
        queue_limit=2,
        call_timeout=7.11,
        init_timeout=30.17,
        probe_timeout=None if kind == "http" else 3.19,
        answer_timeout=20.13,
        reconnect=1.0,
        era=era,
        era_ttl=200.0,
        max_rounds=2,
        max_questions=2,
        max_answering=2,
        max_listening=max_listening,
    )


PROFILES: Final = (
    options("stdio"),
    options("http"),
    options("http", policy=Policy.SERIALIZED),
    options("stdio", policy=Policy.SERIALIZED, pool_size=3),
    options("http", era=EraName.STATELESS, max_listening=2),
    options("stdio", era=EraName.HANDSHAKE),
    options("http", pool_size=3),
)
METHODS: Final = ("tools/call", "tools/call", "tools/call", "tools/list", "resources/read", "x")
TIMEOUTS: Final = (5.03, 9.07, 40.21)
LOST: Final = (
    Reason("server_exited", 3),
    Reason("transport", "closed"),
    Reason("spawn_failed", "enoent"),
    Reason("http", 503, retry_after=3.0),
)
UNAUTHORIZED: Final = Reason("http", 401)
YES: Final = Meaning("yes", "2026-07-28")
# How a server may answer the probe, and what that means (MCP 2026-07-28 basic/versioning).
PROBE_ANSWERS: Final[tuple[tuple[object, Meaning], ...]] = (
    ({"supportedVersions": ["2026-07-28", "2025-11-25"]}, YES),
    ({"supportedVersions": ["2026-07-28"], "serverInfo": {"name": "s"}}, YES),
    ((-32021, None), YES),
    ({"supportedVersions": ["2025-11-25"]}, Meaning("no")),
    ((-32601, None), Meaning("no")),
    ((-32601, None), Meaning("no")),
    ((-32602, None), Meaning("no")),
    ("hello", Meaning("no")),
    ((-32022, {"supported": ["2026-07-28"]}), Meaning("again", reason=Reason("jsonrpc", -32022))),
    ((-32022, None), Meaning("again", reason=Reason("jsonrpc", -32022))),
    ((-32020, None), Meaning("unwell", reason=Reason("jsonrpc", -32020))),
)
AGAIN: Final = (-32022, None)
PROBE_FAILURES: Final[tuple[tuple[Reason, Meaning], ...]] = tuple(
    (reason, Meaning(kind, reason=reason))
    for reason, kind in (
        (Reason("http", 404), "no"),
        (Reason("http", 400), "no"),
        (Reason("http", 405), "no"),
        (Reason("http", 501), "no"),
        (Reason("http", 503), "unwell"),
        (Reason("http", 403), "unwell"),
        (Reason("timeout", "chunk"), "unwell"),
    )
)
INITIALIZE_ANSWERS: Final[tuple[tuple[object, Meaning], ...]] = (
    ({"protocolVersion": "2025-11-25", "capabilities": {}}, Meaning("yes", "2025-11-25")),
    ({"protocolVersion": "2025-03-26", "capabilities": {}}, Meaning("yes", "2025-03-26")),
    ({"protocolVersion": "2025-03-26", "instructions": "be kind"}, Meaning("yes", "2025-03-26")),
    ({"protocolVersion": "2024-11-05", "serverInfo": []}, Meaning("yes", "2024-11-05")),
)
INITIALIZE_REFUSALS: Final[tuple[tuple[object, Meaning], ...]] = (
    ((-32603, None), Meaning("refused", reason=Reason("jsonrpc", -32603))),
    ("ok", Meaning("refused", reason=Reason("invalid_response", "initialize"))),
    (
        {"protocolVersion": "1999"},
        Meaning("refused", reason=Reason("unsupported_version", "1999")),
    ),
)
INITIALIZE_FAILURES: Final[tuple[tuple[Reason, Meaning], ...]] = tuple(
    (reason, Meaning("refused", reason=reason, elsewhere=reason.detail in (400, 404, 405)))
    for reason in (
        Reason("http", 404),
        Reason("http", 405),
        Reason("http", 500),
        Reason("session_rejected"),
    )
)
FAILURES: Final = (
    Reason("http", 500, maybe_done=True),
    Reason("http", 429, retry_after=1.0),
    Reason("http", 403),
    Reason("http", 401),
    Reason("http", 404, error={"code": -32601, "message": "no"}),
    Reason("http", 400, error={"code": -32020, "message": "headers"}),
    Reason("transport", "reset", maybe_done=True),
    Reason("invalid_response", "x", maybe_done=True),
)
ASK: Final[JSONObject] = {"k": {"method": "elicitation/create", "params": {}}}
# What is asked back before a result, well and badly.
BACK: Final[tuple[JSONObject, ...]] = (
    {"inputRequests": ASK},
    {"inputRequests": ASK, "requestState": " eyJ+/=é\n "},
    {"inputRequests": {**ASK, "r": {"method": "roots/list"}}, "requestState": ""},
    {"requestState": "only"},
    {"inputRequests": {}, "requestState": "empty"},
    {"inputRequests": ASK, "requestState": 7},
    {"inputRequests": {"k": {"method": "sampling/createMessage"}}},
    {"inputRequests": {"k": {"method": "tools/call"}}},
    {"inputRequests": {"k": "no"}},
    {"inputRequests": [1]},
    {"inputRequests": {str(number): ASK["k"] for number in range(33)}},
    {},
)
PROGRESS: Final[tuple[object, ...]] = (0, 1, 1, 2.5, 3, 4, -1, True, "1", None, math.nan, math.inf)
NOT_KEYS: Final[tuple[object, ...]] = (True, 1.0, None, "1", [1], {"id": 1}, 0, -1, 10**9)
CHANGES: Final = ("notifications/tools/list_changed", "notifications/message", "x/y")


class ClientWorld:
    """One core, its oracle, and everybody around them."""

    def __init__(self, choose: Chooser, profile: ClientOptions) -> None:
        self.choose = choose
        self.options = profile
        self.now = 1000.0
        self.verdicts = Verdicts()
        self.core = ClientCore(profile, self.verdicts, self._pays)
        self.oracle = ClientOracle(profile, self._would_pay)
        self.steps = 0
        self.history: deque[tuple[object, ...]] = deque(maxlen=40)
        self._reservations: set[object] = set()
        self._spent: set[object] = set()
        self._serial = 0
        self._over: deque[Owed] = deque(maxlen=4)
        self._questions: deque[ServerQuestion] = deque(maxlen=4)
        self._step(("started",), lambda: self.core.started(self.now), self.oracle.started)

    # -- choosing -----------------------------------------------------------------------------

    def pick(self, items: Sequence[T]) -> T:
        """Choose one of `items`, which are not empty."""
        return items[self.choose.below(len(items))]

    def _next(self) -> int:
        self._serial += 1
        return self._serial

    def _attempt(self) -> int:
        """Choose a link: usually the present one."""
        attempt = self.oracle.attempt
        return attempt - 1 if self.choose.chance(3) else attempt

    def _about(self, key: RequestId | None) -> int | None:
        """Say in which exchange an answer to `key` comes."""
        if self.options.kind != "http" or self.choose.chance(20):
            return None
        if self.choose.chance(4):
            return self.pick(range(max(self.oracle.last_key, 1)))
        return key if type(key) is int else None

    # -- paying -------------------------------------------------------------------------------

    def _problem(self, tool: str, reservation: object) -> Reason | None:
        if tool != "priced":
            return None
        return None if reservation in self._reservations else Reason("unmetered_call")

    def _pays(self, tool: str, reservation: object, now: float) -> Reason | None:
        """What the core asks: it takes the reservation."""
        assert now == self.now, "the clock of the core is the world's"
        problem = self._problem(tool, reservation)
        if tool == "priced" and problem is None:
            self._spent.add(reservation)
            self._reservations.discard(reservation)
        return problem

    def _would_pay(self, tool: str, reservation: object) -> Reason | None:
        """What the oracle asks, before the core does: it must find the same."""
        return self._problem(tool, reservation)

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

    def _receive(
        self, message: Incoming, about: int | None = None, meaning: Meaning | None = None
    ) -> None:
        attempt = self._attempt()
        self._step(
            ("received", attempt, message, about),
            lambda: self.core.received(attempt, message, self.now, about=about),
            lambda: self.oracle.received(attempt, message, about, meaning),
        )

    def _fails(self, key: int, reason: Reason, meaning: Meaning | None = None) -> None:
        attempt = self._attempt()
        self._step(
            ("failed", attempt, key, reason),
            lambda: self.core.failed(attempt, key, reason, self.now),
            lambda: self.oracle.failed(attempt, key, reason, meaning),
        )

    def _sent(self, key: int) -> None:
        attempt = self._attempt()
        self._step(
            ("sent", attempt, key),
            lambda: self.core.sent(attempt, key, self.now),
            lambda: self.oracle.sent(attempt, key),
        )

    # -- time ---------------------------------------------------------------------------------

    def act_time(self) -> None:
        """Time passes: a little, or until something is due; the timer may come late."""
        dues = self.oracle.dues()
        if dues and self.choose.chance(40):
            self.now = max(self.now, min(dues) + 1e-5)
        elif self.choose.chance(10):
            self.now += 0.001 * self.choose.below(60_000)
        else:
            self.now += 0.001 * self.choose.below(900)
        if self.choose.chance(85):
            self._step(("tick",), lambda: self.core.tick(self.now), self.oracle.ticked, ticked=True)

    # -- the link -----------------------------------------------------------------------------

    def act_open(self) -> None:
        """The link can be opened; mostly."""
        if self.oracle.status == "starting" or self.choose.chance(3):
            attempt = self._attempt()
            if self.choose.chance(15):
                self._lose(attempt)
            else:
                self._step(
                    ("opened", attempt),
                    lambda: self.core.opened(attempt, self.now),
                    lambda: self.oracle.opened(attempt),
                )

    def _lose(self, attempt: int) -> None:
        reason = UNAUTHORIZED if self.choose.chance(5) else self.pick(LOST)
        self._step(
            ("lost", attempt, reason),
            lambda: self.core.lost(attempt, reason, self.now),
            lambda: self.oracle.lost(attempt, reason),
        )

    def act_lose(self) -> None:
        """The link ends, in whatever state."""
        if self.choose.chance(35):
            self._lose(self._attempt())

    def act_greet(self) -> None:
        """The server answers what a greeting asks: mostly well."""
        greeting = self.oracle.greeting
        if greeting is None:
            return
        if greeting.initialized:
            self._introduce(greeting.initialized)
        elif greeting.initialize and not (greeting.probe and self.choose.chance(70)):
            self._answer_initialize(greeting.initialize)
        elif greeting.probe:
            self._answer_probe(greeting.probe)

    def _answer_probe(self, key: int) -> None:
        if self.choose.chance(25):
            reason, meaning = self.pick(PROBE_FAILURES)
            if self.choose.chance(3):
                reason, meaning = UNAUTHORIZED, Meaning("unwell", reason=UNAUTHORIZED)
            self._fails(key, reason, meaning)
        else:
            self._greet(key, *self.pick(PROBE_ANSWERS))

    def _answer_initialize(self, key: int) -> None:
        if self.choose.chance(20 if self.options.kind == "http" else 8):
            reason, meaning = self.pick(INITIALIZE_FAILURES)
            if self.choose.chance(4):
                reason, meaning = UNAUTHORIZED, Meaning("refused", reason=UNAUTHORIZED)
            self._fails(key, reason, meaning)
        elif self.choose.chance(8):
            self._greet(key, *self.pick(INITIALIZE_REFUSALS))
        else:
            self._greet(key, *self.pick(INITIALIZE_ANSWERS))

    def _greet(self, key: int, said: object, meaning: Meaning) -> None:
        message: Message
        if isinstance(said, tuple):
            code, more = said
            message = Failure(key, code, "no", more)
        else:
            message = Response(key, said)
        self._receive(message, key if self.options.kind == "http" else None, meaning)

    def _introduce(self, key: int) -> None:
        if self.choose.chance(85):
            self._sent(key)
        elif self.choose.chance(10):
            self._receive(Response(key, {}), None)
        else:
            reasons = (
                Reason("http", 400),
                Reason("session_rejected"),
                Reason("transport", "reset"),
                Reason("http", 405),
            )
            self._fails(key, self.pick(reasons))

    def act_other_client(self) -> None:
        """Another client of the process finds out something about the server."""
        if self.choose.chance(4):
            era, two = self.pick(
                ((EraName.STATELESS, False), (EraName.HANDSHAKE, False), (EraName.HANDSHAKE, True))
            )
            if two and self.options.kind != "http":
                return
            self.verdicts.put(KEY, Verdict(era, "2026-07-28", two_endpoints=two), self.now)
            self.oracle.verdict = (era, two, self.now)

    # -- the callers --------------------------------------------------------------------------

    def _submit(self, ticket: Ticket) -> None:
        self._step(
            ("submitted", ticket, ticket.params),
            lambda: self.core.submitted(ticket, self.now),
            lambda: self.oracle.submitted(ticket),
        )
        self._remember(ticket)

    def _remember(self, ticket: Ticket) -> None:
        one = self.oracle.owed.get(ticket)
        if one is not None:
            self._over.append(one)

    def act_call(self) -> None:
        """A caller asks for something."""
        method = self.pick(METHODS)
        tool = "priced" if self.choose.chance(12) else "free"
        reservation: object = None
        if tool == "priced":
            reservation = self._next()
            if self.choose.chance(80):
                self._reservations.add(reservation)
            elif self._spent:
                reservation = min(self._spent, key=str)
        timeout = self.pick(TIMEOUTS)
        meta: JSONObject | None = None
        if self.choose.chance(10):
            meta = {META_VERSION: "1999", "progressToken": "mine", "own": self._next()}
        self._submit(
            Ticket(
                method,
                {"name": tool, "n": self._next()},
                timeout=timeout,
                max_timeout=timeout * 2.03 if self.choose.chance(30) else None,
                wants_progress=self.choose.chance(60),
                reservation=reservation,
                meta=meta,
                mirrors=(Mirror(("n",), "N", b"n"),) if self.choose.chance(5) else (),
            )
        )

    def act_listen(self) -> None:
        """A caller subscribes; in the handshake era that is refused."""
        if self.choose.chance(80 if self.oracle.era is EraName.STATELESS else 5):
            self._submit(Ticket("subscriptions/listen", {"n": 1}, timeout=6.37, listening=True))

    def act_abandon(self) -> None:
        """A caller goes away."""
        live = list(self.oracle.owed)
        if live and self.choose.chance(50):
            self._abandon(self.pick(live))
        elif self._over and self.choose.chance(20):
            self._abandon(self.pick(self._over).ticket)

    def _abandon(self, ticket: Ticket) -> None:
        self._step(
            ("abandoned", ticket),
            lambda: self.core.abandoned(ticket, self.now),
            lambda: self.oracle.abandoned(ticket),
        )

    def act_notify(self) -> None:
        """The user tells the server something."""
        if self.choose.chance(60):
            params: JSONObject = {"n": self._next()}
            self._step(
                ("notified",),
                lambda: self.core.notified("notifications/x", params, self.now),
                lambda: self.oracle.notified("notifications/x", params),
            )

    def act_delivered(self) -> None:
        """A notification is taken, or not."""
        if self.oracle.notices:
            key = self.pick(list(self.oracle.notices))
            if self.choose.chance(80):
                self._sent(key)
            else:
                plain = (Reason("http", 404), Reason("http", 405), Reason("session_rejected"))
                self._fails(key, self.pick((*FAILURES, *plain)))

    def act_wait(self) -> None:
        """Somebody waits for a session, or no longer."""
        waiters = list(self.oracle.waiters)
        if waiters and (len(waiters) > 4 or self.choose.chance(25)):
            gone = self.pick(waiters)
            self._step(
                ("unawaited",),
                lambda: self.core.unawaited(gone, self.now),
                lambda: self.oracle.unawaited(gone),
            )
            return
        timeout = self.pick((4.23, 15.29, 0.0, None))
        waiter = Waiter(timeout, fail_fast=self.choose.chance(40))
        self._step(
            ("awaited", timeout, waiter.fail_fast),
            lambda: self.core.awaited(waiter, self.now),
            lambda: self.oracle.awaited(waiter),
        )

    # -- the user -----------------------------------------------------------------------------

    def act_answer_back(self) -> None:
        """A user answers what a server wants to know first; sometimes too late."""
        asked = self.oracle.at(Stage.ANSWERING)
        late = not asked or self.choose.chance(5)
        if late and not self._over:
            return
        ticket = (self.pick(self._over) if late else self.pick(asked)).ticket
        answers: JSONObject | Reason = {"k": {"action": "accept", "n": self._next()}}
        if self.choose.chance(15):
            answers = Reason("not_answered", "elicitation/create")
        self._step(
            ("resumed", ticket, answers),
            lambda: self.core.resumed(ticket, answers, self.now),
            lambda: self.oracle.resumed(ticket, answers),
        )

    def act_reply(self) -> None:
        """A user answers a request of the server; sometimes one that was withdrawn."""
        live = [one.question for one in self.oracle.asked.values() if one.question is not None]
        self._questions.extend(live)
        if not self._questions:
            return
        question = self.pick(live if live and self.choose.chance(90) else list(self._questions))
        answer: Response | Failure = Response(question.id, {"action": "accept"})
        if self.choose.chance(20):
            answer = Failure(question.id, -32603, "the handler failed")
        self._step(
            ("replied", question.id),
            lambda: self.core.replied(question, answer, self.now),
            lambda: self.oracle.replied(question, answer),
        )

    # -- the server ---------------------------------------------------------------------------

    def _held(self) -> list[Owed]:
        return [*self.oracle.at(Stage.SENT), *self.oracle.at(Stage.LISTENING)]

    def _result(self, one: Owed) -> object:
        if one.ticket.listening or self.choose.chance(70):
            kinds: tuple[JSONObject, ...] = ({}, {"resultType": "complete", "n": self._next()})
            return self.pick(kinds)
        odd: tuple[object, ...] = (
            None,
            "ok",
            7,
            [],
            {"resultType": "future_kind"},
            {"resultType": 7},
            {"resultType": None},
            {"resultType": "Complete"},
            {"tools": []},
        )
        return self.pick(odd)

    def act_answer(self) -> None:
        """The server answers a request."""
        held = self._held()
        if held:
            one = self.pick(held)
            message: Response | Failure = Response(one.key, self._result(one))
            if self.choose.chance(20):
                code = self.pick((-32601, -32602, -32020, 7))
                message = Failure(one.key, code, "no")
            self._receive(message, self._about(one.key))

    def act_ask_back(self) -> None:
        """The server asks for input before it answers."""
        held = self._held()
        if held:
            one = self.pick(held)
            back = self.pick(BACK[: 5 if self.choose.chance(85) else len(BACK)])
            result: JSONObject = {"resultType": "input_required", **back}
            self._receive(Response(one.key, result), self._about(one.key))

    def act_stray(self) -> None:
        """The server answers what was not asked, twice, in another exchange, or under no id."""
        keys = [one.key for one in self._over if one.key]
        key: object = self.pick(NOT_KEYS)
        if keys and self.choose.chance(60):
            key = self.pick(keys)
        elif self.choose.chance(30):
            key = None
        if self.oracle.greeting is not None and key is not None and not isinstance(key, str):
            return  # it might be the answer to a greeting, and would mean something
        message: Message = Response(key, {"n": 1})  # type: ignore[arg-type]  # an id that is none
        if key is None:
            message = Failure(None, -32700, "what?")
            held = self._held()
            about = self.pick(held).key if held and self.choose.chance(50) else None
            self._receive(message, about)
        elif type(key) in (int, str):
            self._receive(message, self._about(key))  # type: ignore[arg-type]  # an id that is none

    def act_refuse(self) -> None:
        """The transport has no answer to a request, or to something that nobody waits for."""
        held = self._held()
        if held and self.choose.chance(90):
            self._fails(self.pick(held).key, self.pick(FAILURES))
        elif self.oracle.greeting is None:
            self._fails(self.pick(range(10**6)), self.pick(FAILURES))

    def act_forget(self) -> None:
        """The server knows the session, or the era, no longer; it says so to one or to all."""
        held = self._held()
        if not held or not self.choose.chance(40):
            return
        everyone = held if self.choose.chance(50) else [self.pick(held)]
        for one in everyone:
            if self.oracle.holder(one.key) is not one:
                continue
            if self.oracle.era is EraName.HANDSHAKE:
                self._fails(one.key, Reason("session_rejected"))
            elif self.choose.chance(50):
                self._fails(one.key, Reason("http", self.pick((400, 404, 405))))
            elif self.choose.chance(50):
                error: JSONObject = {"code": -32022, "message": "no"}
                self._fails(one.key, Reason("http", 400, error=error))
            else:
                self._receive(Failure(one.key, -32022, "no"), self._about(one.key))

    def act_ask(self) -> None:
        """The server asks something of its own accord."""
        method = self.pick(("elicitation/create", "roots/list", "ping", "sampling/createMessage"))
        ids: tuple[RequestId, ...] = (1, 2, "1", "a", 3)
        id = self.pick(ids)
        held = self._held()
        about = None
        if self.options.kind == "http" and held and self.choose.chance(60):
            about = self.pick(held).key
        params: JSONObject | None = None if self.choose.chance(50) else {"n": 1}
        self._receive(Request(id, method, params), about)

    def _notification(self) -> Notification:
        held, asked = self._held(), list(self.oracle.asked)
        kind = self.choose.below(10)
        if kind < 5:
            key: object = self.pick(held).key if held and self.choose.chance(90) else 10**9
            token = self.pick(NOT_KEYS) if self.choose.chance(5) else key
            params: JSONObject = {"progressToken": token, "progress": self.pick(PROGRESS)}
            return Notification("notifications/progress", params)
        if kind < 7:
            ids: list[object] = [*asked, *(one.key for one in held)]
            id = self.pick(ids) if ids and self.choose.chance(80) else self.pick(NOT_KEYS)
            return Notification("notifications/cancelled", {"requestId": id})
        listening = self.oracle.at(Stage.LISTENING)
        keys: list[object] = [one.key for one in listening or held]
        subscription = self.pick(keys) if keys and self.choose.chance(80) else self.pick(NOT_KEYS)
        params = {"_meta": {META_SUBSCRIPTION_ID: subscription}, "n": self._next()}
        if kind == 7 or self.choose.chance(10):
            if self.choose.chance(80):
                params["notifications"] = {"toolsListChanged": True}
            return Notification("notifications/subscriptions/acknowledged", params)
        return Notification(self.pick(CHANGES), None if self.choose.chance(10) else params)

    def act_tell(self) -> None:
        """The server notifies."""
        held = self._held()
        about = None
        if self.options.kind == "http" and held and self.choose.chance(50):
            about = self.pick(held).key
        self._receive(self._notification(), about)

    def act_nonsense(self) -> None:
        """What is no message."""
        nonsense: tuple[Incoming, ...] = (
            Ignored("blank line"),
            Invalid(Failure(None, -32700, "Parse error")),
            Invalid(Failure(5, -32602, "Invalid params")),
            Invalid(Failure("a", -32600, "Missing method")),
        )
        self._receive(self.pick(nonsense))

    def act_batch(self) -> None:
        """Several messages in one; only MCP 2025-03-26 has that."""
        if self.oracle.greeting is not None and not self.oracle.greeting.initialized:
            return
        messages: list[Message] = [self._notification() for _ in range(self.choose.below(3))]
        messages += [Response(one.key, self._result(one)) for one in self._held()]
        messages.append(Request("a", "elicitation/create", None))
        self._receive(Batch(messages))

    # -- the end ------------------------------------------------------------------------------

    def finish(self) -> None:
        """Stop the client, which leaves nothing; and let what is late come."""
        self._step(("stopped",), lambda: self.core.stopped(self.now), self.oracle.stopped)
        for act in (self.act_call, self.act_listen, self.act_wait, self.act_notify, self.act_lose):
            act()
        self._sent(1)
        self._receive(Response(1, {}))
        self.now += 1e6
        self._step(("tick",), lambda: self.core.tick(self.now), self.oracle.ticked, ticked=True)
        self._step(("stopped",), lambda: self.core.stopped(self.now), self.oracle.stopped)


# How often each act comes in a hundred or so.
ACTS: Final = {
    "act_time": 12,
    "act_open": 8,
    "act_lose": 1,
    "act_greet": 14,
    "act_other_client": 1,
    "act_call": 16,
    "act_listen": 4,
    "act_abandon": 3,
    "act_notify": 2,
    "act_delivered": 4,
    "act_wait": 3,
    "act_answer_back": 6,
    "act_reply": 3,
    "act_answer": 8,
    "act_ask_back": 5,
    "act_stray": 2,
    "act_refuse": 2,
    "act_forget": 2,
    "act_ask": 4,
    "act_tell": 5,
    "act_nonsense": 1,
    "act_batch": 1,
}
# A mood makes some acts likelier for a while.
MOODS: Final[tuple[dict[str, int], ...]] = (
    {},
    {"act_call": 60, "act_answer": 3},  # everything is full
    {"act_ask_back": 40, "act_call": 30, "act_answer_back": 3},  # users are slow
    {"act_lose": 20, "act_open": 20, "act_time": 20},  # a bad connection
    {"act_forget": 60, "act_call": 40, "act_greet": 60, "act_answer": 1},  # a server that forgets
    {"act_listen": 30, "act_tell": 20},
    {"act_time": 60},  # nobody answers
    {"act_ask": 30, "act_call": 20, "act_tell": 20, "act_time": 20, "act_reply": 6},
    {"act_greet": 60, "act_open": 30, "act_lose": 8, "act_other_client": 6},
    {"act_notify": 25, "act_delivered": 5},
)
