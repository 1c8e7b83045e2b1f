"""The server-wide machine: facts go in, effects come out. Decides; never does.

Everything that must hold across connections is decided here and in `ledger.py`, one step at a
time: who gets a slot, who is parked, who makes room for whom, and that every call is closed
exactly once.

Not thread-safe: call it from one thread. `now` is seconds of any epoch and must not decrease.
Every input returns the effects to perform, in order. A peer's mistake is answered, never raised;
LocalProtocolError is raised for a mistake of the shell.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

from raxol_mcp.core.calls import AUTHORIZING, CLOSED, Call, CallState, Closed, Via
from raxol_mcp.core.effects import AUTHORIZE_THEN_RUN, READ, Effect
from raxol_mcp.core.eras import Era, HandshakeEra, Identity, StatelessEra
from raxol_mcp.core.ledger import Ledger
from raxol_mcp.core.limits import Limits
from raxol_mcp.core.midway import Midway
from raxol_mcp.core.outcomes import Outcome
from raxol_mcp.core.peers import ConnectionFacts, Peer
from raxol_mcp.core.questions import Question
from raxol_mcp.core.reports import Reports
from raxol_mcp.core.seal import Seal
from raxol_mcp.core.sealing import Sealing
from raxol_mcp.errors import INVALID_PARAMS, INVALID_REQUEST, LocalProtocolError
from raxol_mcp.wire.jsonrpc import (
    Batch,
    Failure,
    Incoming,
    Invalid,
    JSONObject,
    Notification,
    Request,
    Response,
)
from raxol_mcp.wire.meta import META_SUBSCRIPTION_ID, META_VERSION

__all__ = ["ServerCore"]

BATCH_VERSION: Final = "2025-03-26"


class ServerCore:
    """One server, all its connections.

    `new_id()` gives unguessable text (at least 16 URL-safe characters). `wall_offset` is what to
    add to `now` for wall-clock seconds: a `requestState` may be checked by another process.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        identity: Identity,
        seal: Seal,
        new_id: Callable[[], str],
        wall_offset: float = 0.0,
    ) -> None:
        self.limits = limits
        self.handshake = HandshakeEra(identity)
        self.stateless = StatelessEra(identity)
        self.ledger = Ledger(limits, new_id=new_id)
        self._sealing = Sealing(
            seal, new_id=new_id, ttl=limits.request_state_ttl, wall_offset=wall_offset
        )
        self._reports = Reports(self.ledger, self._sealing)
        self._midway = Midway(self.ledger)

    def __repr__(self) -> str:
        counts = self.stats()
        stopping = f" ({counts['stopping']} stopping)" if counts["stopping"] else ""
        approved = f" ({counts['approved']} approved)" if counts["approved"] else ""
        return (
            f"<ServerCore {counts['connections']} connections"
            f" | {counts['in_flight']} in flight{stopping}"
            f" | {counts['parked']} parked{approved} | {counts['deadlines']} deadlines>"
        )

    # -- what shells read ---------------------------------------------------------------------

    @property
    def next_deadline(self) -> float | None:
        """When `tick` should be called next: never too late, sometimes too early (harmless)."""
        return self.ledger.deadlines.earliest

    def outstanding(self, connection: Hashable) -> int:
        """How many answers this connection is still owed, subscriptions left out."""
        peer = self.ledger.peers.find(connection)
        return 0 if peer is None else len(peer.calls) - len(peer.listening)

    def stats(self) -> dict[str, int]:
        """Counts only: who is connected, what runs, what waits."""
        ledger = self.ledger
        return {
            "connections": len(ledger.peers),
            "declared": ledger.peers.declared,
            "in_flight": ledger.slots.taken,
            "stopping": ledger.stopping,
            "parked": len(ledger.parking),
            "approved": len(ledger.approved),
            "deadlines": len(ledger.deadlines),
            "spent": len(self._sealing),
        }

    # -- connections --------------------------------------------------------------------------

    def opened(self, connection: Hashable, facts: ConnectionFacts, now: float) -> list[Effect]:
        """A sink is attached to `connection`: pushes can be delivered from now on.

        What `initialize` stored before the first sink is kept. A connection that has a sink
        already is first ended as if that sink were gone: the new one inherits nothing.
        """
        effects = self._begin(now)
        peers = self.ledger.peers
        peer = peers.find(connection)
        if peer is not None and peer.open:
            self._gone(peer)
        peer = peers.get(connection)
        peer.facts = facts
        peer.share = connection if facts.share is None else facts.share
        peer.open = True
        return effects

    def gone(self, connection: Hashable, now: float) -> list[Effect]:
        """The sink of `connection` ended: what would be answered or asked there is dropped.

        A call that came through `request()` or `handle_message()` and never parked still has
        somebody waiting for it elsewhere, and goes on.
        """
        effects = self._begin(now)
        peer = self.ledger.peers.find(connection)
        if peer is not None:
            self._gone(peer)
        return effects

    def _gone(self, peer: Peer) -> None:
        peer.open = False  # first: nothing is withdrawn from a client that is not there
        for call in list(peer.calls.values()):
            listens = call.state is CallState.LISTENING
            if call.via is Via.PUSH or call.parked_at or listens:
                self.ledger.close(call, Closed.GONE, None)
        self._midway.unanswerable(peer)
        self.ledger.peers.discard(peer)

    def input_ended(self, connection: Hashable, now: float) -> list[Effect]:
        """Nothing more will be read from `connection`: what waits for its words is dropped.

        Calls that run go on, and are answered; from here on they cannot ask.
        """
        effects = self._begin(now)
        peer = self.ledger.peers.find(connection)
        if peer is not None:
            peer.silent = True
            for call in list(peer.calls.values()):
                if call.state is CallState.PARKED or call.state is CallState.LISTENING:
                    self.ledger.close(call, Closed.GONE, None)
            self._midway.unanswerable(peer)
        return effects

    def stopped(self, now: float) -> list[Effect]:
        """The server ends: listens are closed with their result, every other call is dropped."""
        effects = self._begin(now)
        for peer in self.ledger.peers.all():
            for call in list(peer.calls.values()):
                if call.state is CallState.LISTENING:
                    stamp: JSONObject = {"_meta": {META_SUBSCRIPTION_ID: call.id}}
                    self.ledger.close_result(call, Closed.RESULT, stamp)
                else:
                    self.ledger.close(call, Closed.GONE, None)
        return effects

    # -- messages -----------------------------------------------------------------------------

    def received(
        self,
        connection: Hashable,
        message: Incoming,
        now: float,
        *,
        via: Via = Via.PUSH,
        caller: object = None,
    ) -> list[Effect]:
        """A message came from `connection`. `caller` is what Reply effects carry, if any.

        With `Via.REPLY` and `Via.HANDLE` there is exactly one Reply, now or later.
        """
        effects = self._begin(now)
        peer = self.ledger.peers.get(connection)
        if isinstance(message, Request):  # what comes most takes the shortest way
            self._requested(peer, message, via, caller)
        else:
            self._received(peer, message, via, caller)
        if not peer.open:
            self.ledger.peers.settle(peer)
        return effects

    def _received(self, peer: Peer, message: Incoming, via: Via, caller: object) -> None:
        match message:
            case Request():
                self._requested(peer, message, via, caller)
            case Invalid():
                self.ledger.say(peer, message.failure, via, caller)
            case Batch():
                self._batched(peer, message, via, caller)
            case _:
                if isinstance(message, Notification):
                    self._told(peer, message)
                elif isinstance(message, Response | Failure):
                    self._reports.answered(peer, message)
                self.ledger.say(peer, None, via, caller)

    def _requested(self, peer: Peer, request: Request, via: Via, caller: object) -> None:
        params = request.params
        meta = None if params is None else params.get("_meta")
        era: Era = self.handshake
        if isinstance(meta, dict) and META_VERSION in meta:
            era = self.stateless
            peer.stateless = True
        method = era.methods.get(request.method)
        refusal: Failure | None
        if request.id in peer.calls:
            refusal = Failure(None, INVALID_REQUEST, "A request with this id is still in flight")
        else:
            refusal = era.refusal(peer, request, method)
            if refusal is None and method is not None:
                if params is None:
                    problem = f"{method.name} requires params" if method.required else None
                else:
                    problem = method.shape(params)
                if problem is not None:
                    refusal = Failure(request.id, INVALID_PARAMS, problem)
        if refusal is not None or method is None:
            self.ledger.say(peer, refusal, via, caller)
        elif method.inline:
            self.ledger.say(peer, self._inline(peer, era, request), via, caller)
        else:
            call = Call(peer, request.id, method, era, via, caller)
            peer.calls[request.id] = call
            if params is not None:
                call.read(params, meta)
            self._admit(call)

    def _admit(self, call: Call) -> None:
        ledger = self.ledger
        job = AUTHORIZE_THEN_RUN if call.method.is_tool else READ
        if (
            not call.era.parks
            and call.method.rounds
            and call.params.get("requestState") is not None
        ):
            self._reports.resume(call, job)
        elif ledger.admit(call):
            ledger.start(call, job, AUTHORIZING)

    def _inline(self, peer: Peer, era: Era, request: Request) -> Response | Failure:
        if request.method == "server/discover":
            return Response(request.id, self.stateless.discovery())
        if request.method == "ping":
            return Response(request.id, era.complete({}))
        greeted = self.handshake.greet(peer, request)
        if isinstance(greeted, Failure):
            return greeted
        version, capabilities = greeted
        victim = self.ledger.peers.declare(peer, capabilities)
        peer.version = version
        if victim is not None:
            self.ledger.record(
                "client_capabilities_evicted",
                size=self.ledger.peers.declared,
                live_subscriber=victim.open,
            )
        return Response(request.id, self.handshake.greeting(version))

    def _told(self, peer: Peer, message: Notification) -> None:
        if message.method == "notifications/cancelled":
            target = (message.params or {}).get("requestId")
            if isinstance(target, int | str) and not isinstance(target, bool):
                call = peer.calls.get(target)
                if call is not None:
                    self.ledger.close(call, Closed.CANCELLED, None)

    def _batched(self, peer: Peer, batch: Batch, via: Via, caller: object) -> None:
        if peer.version != BATCH_VERSION or via is not Via.PUSH:
            failure = Failure(None, INVALID_REQUEST, "A JSON array is not a message here")
            self.ledger.say(peer, failure, via, caller)
            return
        for message in batch.messages:
            if isinstance(message, Request) and message.method == "initialize":
                refusal = Failure(message.id, INVALID_REQUEST, "initialize is not for a batch")
                self.ledger.say(peer, refusal, via, caller)
            else:
                self._received(peer, message, via, caller)

    # -- workers ------------------------------------------------------------------------------

    def worker_ended(self, call: Call, outcome: Outcome, now: float) -> list[Effect]:
        """The worker of `call` has ended: exactly one report per StartWorker.

        The slot is free from here on. What the worker of a closed call brings is dropped.
        """
        if not call.working:
            raise LocalProtocolError(
                f"no worker of {call!r} was started, or it was reported before"
            )
        effects = self._begin(now)
        ledger = self.ledger
        ledger.ended(call)
        if call.state is not CLOSED:
            self._reports.by_type[type(outcome)](call, outcome)
        if ledger.approved:
            ledger.start_approved()
        return effects

    def limited(self, call: Call, duration: float, now: float) -> list[Effect]:
        """The worker of `call` runs a tool that has only `duration` seconds from now.

        Never more than what is left of the worker's own time: its authorizer has used some.
        """
        effects = self._begin(now)
        if call.working and call.state is not CallState.CLOSED:
            self.ledger.deadlines.shorten(call, duration, now)
        return effects

    def cancelled(self, call: Call, now: float) -> list[Effect]:
        """Whoever sent `call` no longer wants it. A call that is over is left alone."""
        effects = self._begin(now)
        if call.state is not CallState.CLOSED:
            self.ledger.close(call, Closed.CANCELLED, None)
        return effects

    def tick(self, now: float) -> list[Effect]:
        """Time has passed: every wait whose deadline is at or before `now` ends."""
        effects = self._begin(now)
        for wait in self.ledger.deadlines.due(now):
            if isinstance(wait, Call):
                self._reports.expired(wait)
            else:
                self._midway.expired(wait)
        return effects

    # -- what a running tool says -------------------------------------------------------------

    def asked(self, call: Call, key: str, question: Question, now: float) -> list[Effect]:
        """The running tool asks in the middle of its work; it keeps its slot meanwhile.

        Answered by one Resolve for `key`, unless the call is closed first. The shell has checked
        `may_ask`; `key` is new among the open questions of this call.
        """
        effects = self._begin(now)
        self._midway.asked(call, key, question)
        return effects

    def unasked(self, call: Call, key: str, now: float) -> list[Effect]:
        """The running tool gave up waiting for `key`. An answer that comes all the same is late."""
        effects = self._begin(now)
        self._midway.unasked(call, key)
        return effects

    def progressed(
        self, call: Call, progress: float, total: float | None, message: str | None, now: float
    ) -> list[Effect]:
        """The running tool got further. Dropped without a token, after the end, or going back."""
        effects = self._begin(now)
        self._midway.progressed(call, progress, total, message)
        return effects

    def logged(
        self, call: Call, severity: int, logger: str | None, data: object, now: float
    ) -> list[Effect]:
        """The running tool logs `data` (a JSON value). Sent if this call's client wants it."""
        effects = self._begin(now)
        self._midway.logged(call, severity, logger, data)
        return effects

    def notified(self, method: str, params: JSONObject, now: float) -> list[Effect]:
        """Something happened that connections may want to hear of, each in its era's way."""
        effects = self._begin(now)
        self._midway.notified(method, params)
        return effects

    def _begin(self, now: float) -> list[Effect]:
        ledger = self.ledger
        assert now >= ledger.now, "time does not run backwards"
        ledger.now = now
        effects: list[Effect] = []
        ledger.effects = effects
        return effects
