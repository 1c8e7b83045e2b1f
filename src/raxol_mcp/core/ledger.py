"""What every call holds, and the only ways to take and give back.

The heart of the server: `start` takes a slot, `ended` gives it back, `close` ends a call. Nothing
else does. What a call holds beside the slot of its worker follows from its state, so `close` needs
no telling. Decides nothing about what a message means; `server.py` does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import Final

from raxol_mcp.core import payloads
from raxol_mcp.core.calls import (
    APPROVED,
    CLOSED,
    LEGAL,
    LEGAL_REASONS,
    LISTENING,
    PARKED,
    VIA_PUSH,
    Call,
    CallState,
    Closed,
    MidwayAsk,
    Via,
    Waiting,
)
from raxol_mcp.core.deadlines import Deadlines
from raxol_mcp.core.effects import Effect, Job, Push, Record, Reply, StartWorker, StopWorker
from raxol_mcp.core.limits import Limits, Slots
from raxol_mcp.core.parking import TOO_MANY_ON_SERVER, Parking
from raxol_mcp.core.peers import Peer, Peers
from raxol_mcp.core.questions import Question, left_of
from raxol_mcp.errors import READ_BUSY, READ_DENIED
from raxol_mcp.wire.jsonrpc import (
    Failure,
    JSONObject,
    Notification,
    Outgoing,
    Request,
    Response,
)

__all__ = ["Ledger"]

ASK_ID_PREFIX: Final = "raxol-elicit-"
_NOTHING: Final[JSONObject] = {}  # one for all parked calls, which are many
_SILENT: Final = frozenset({Closed.CANCELLED, Closed.GONE})


class Ledger:
    """The calls of one server and what they hold.

    `now` and `effects` belong to the current input.
    """

    def __init__(self, limits: Limits, *, new_id: Callable[[], str]) -> None:
        self.limits = limits
        self.slots = Slots(total=limits.max_in_flight, per_share=limits.in_flight_share)
        self.parking = Parking(
            total=limits.max_parked_elicitations_total, per_share=limits.parked_share
        )
        # A connection of stateless HTTP is one request: only shares and a total bound its listens.
        self.listens = Slots(
            total=limits.max_listens_total, per_share=max(1, limits.max_listens_total // 2)
        )
        self.peers = Peers(max_client_capabilities=limits.max_client_capabilities)
        self.deadlines: Deadlines[Waiting] = Deadlines()
        self.approved: dict[Call, None] = {}  # oldest approval first
        self.stopping = 0  # workers of closed calls that have not ended
        self.now = -math.inf
        self.effects: list[Effect] = []
        self._new_id = new_id
        self._sequence = 0

    # -- saying something ---------------------------------------------------------------------

    def say(self, peer: Peer, message: Outgoing | None, via: Via, caller: object) -> None:
        """Answer somebody who has no call: a refusal, or what is decided inline."""
        if isinstance(message, Failure) and message.id in peer.calls:
            # Under its own id it would read as the answer of the call that has it (ADR-0006).
            message = Failure(None, message.code, message.message, message.data)
        if via is not Via.PUSH:
            self.effects.append(Reply(caller, message))
        elif message is not None:
            about = message.id if isinstance(message, Response | Failure) else None
            self.effects.append(Push(peer.connection, message, about))

    def push(self, call: Call, message: Outgoing) -> None:
        """Send something that belongs to `call` on its own connection, if that has a sink."""
        if call.peer.open:
            self.effects.append(Push(call.peer.connection, message, call.id))

    def record(self, event: str, **fields: object) -> None:
        """Note that something worth counting happened."""
        self.effects.append(Record(event, fields))

    # -- slots --------------------------------------------------------------------------------

    def admit(self, call: Call) -> bool:
        """Say whether a worker may start for `call`; close it as busy when not."""
        scope = self.slots.refusal(call.share)
        if scope is None:
            return True
        self.record("busy", scope=scope, method=call.method.name)
        self.close_busy(call, scope)
        return False

    def start(self, call: Call, job: Job, state: CallState) -> None:
        """Take a slot, enter `state` and start the worker, which has `callback_timeout` seconds."""
        assert state in LEGAL[call.state], f"{call.state} -> {state}"
        call.state = state  # `move`, written out: this is on the way of every call
        self.slots.take(call.share)
        call.working = True
        self.deadlines.add(call, self.limits.callback_timeout, self.now)
        self.effects.append(StartWorker(call, job))

    def ended(self, call: Call) -> None:
        """The worker of `call` has ended: its slot is free, whatever became of the call."""
        assert call.working, "one end per start"
        call.working = False
        self.slots.give_back(call.share)
        if call.state is CLOSED:
            self.stopping -= 1

    # -- the states ---------------------------------------------------------------------------

    def move(self, call: Call, state: CallState) -> None:
        """Enter another state than CLOSED."""
        assert state in LEGAL[call.state], f"{call.state} -> {state}"
        call.state = state

    def close(self, call: Call, reason: Closed, message: Outgoing | None) -> None:
        """End `call` for `reason`, with `message` as its one answer (None: it gets none).

        Gives back all that its state holds. The slot of a worker that still runs stays taken
        until `ended`; the worker is told to stop.
        """
        state = call.state
        assert reason in LEGAL_REASONS[state], f"{state} -> {reason}"
        assert (message is None) is (reason in _SILENT), "every reason but two has an answer"
        peer = call.peer
        call.state = CLOSED
        call.reason = reason
        del peer.calls[call.id]  # before the answer is on the wire: the id may be used again
        self.deadlines.remove(call)
        if state is PARKED:
            self.parking.leave(call)
            self._withdraw(call, reason)
        elif state is APPROVED:
            self.parking.leave(call)
            del self.approved[call]
        elif state is LISTENING:
            del peer.listening[call.id]
            self.listens.give_back(call.share)
        if peer.asks:
            self._drop_midway_asks(call, reason)
        if call.working:
            self.stopping += 1
            self.effects.append(StopWorker(call))
        if call.via is not VIA_PUSH:
            self.effects.append(Reply(call.caller, message))
        elif message is not None:
            self.effects.append(Push(peer.connection, message, call.id))
        if not peer.open:  # this may have been the last that was known of it
            self.peers.settle(peer)

    def close_result(self, call: Call, reason: Closed, payload: JSONObject) -> None:
        """Close with a result that the core wrote."""
        self.close(call, reason, Response(call.id, call.era.complete(payload)))

    def close_busy(self, call: Call, scope: str) -> None:
        """Close because there was no slot."""
        if call.method.is_tool:
            self.close_result(call, Closed.BUSY, payloads.busy(scope))
        else:
            data: JSONObject = {"error": "server_busy", "method": call.method.name}
            self.close(call, Closed.BUSY, Failure(call.id, READ_BUSY, "server_busy", data))

    def deny(self, call: Call, reason: Closed, detail: str, *, decision: str = "ask") -> None:
        """Close with the machine-readable refusal. Silence, a no and a full server all end here."""
        if call.method.is_tool:
            payload = payloads.denied(call.name, decision=decision, detail=detail)
            self.close_result(call, reason, payload)
        else:
            name = call.method.name
            data: JSONObject = {"error": "authorization_required", "method": name, "detail": detail}
            message = f"authorization_required: {name}"
            self.close(call, reason, Failure(call.id, READ_DENIED, message, data))

    # -- parking ------------------------------------------------------------------------------

    def park(self, call: Call, questions: tuple[Question, ...]) -> None:
        """Park `call`, whose worker has ended, and put its first question; or deny it.

        On a full server this may close the oldest call of the fullest share to make room.
        """
        place = self.parking.place_for(call.share)
        if isinstance(place, Call):
            self.record("parked_call_evicted")
            self.deny(place, Closed.EVICTED, TOO_MANY_ON_SERVER)
        elif place is not None:
            self.deny(call, Closed.DENIED, place.value)
            return
        self.deadlines.remove(call)
        if call.peer.asks:  # what the worker asked in the middle of its work: it has ended
            self._drop_midway_asks(call, Closed.RESULT)
        self.move(call, CallState.PARKED)
        self._sequence += 1
        call.parked_at = self._sequence
        # Frozen: what the read authorizer is shown, name, arguments and progress token are kept.
        call.params = call.method.gate(call.params) or _NOTHING
        call.questions, call.answers = questions, None  # those of an earlier round are used up
        self.parking.park(call)
        self.ask_next(call)
        if call.via is Via.HANDLE:  # a caller that must not block: what follows is pushed
            self.effects.append(Reply(call.caller, None))
            call.via, call.caller = Via.PUSH, None

    def ask_next(self, call: Call) -> None:
        """Put the first open question of a parked call; the human has a fresh timeout for it."""
        self.deadlines.add(call, self.limits.elicitation_timeout, self.now)
        call.asking = self.put(call, call.questions[0], call)
        call.questions = left_of(call.questions)

    def put(self, call: Call, question: Question, wait: Waiting) -> str:
        """Send a question to the call's own connection; return its unguessable id.

        `wait` is what the answer ends: the parked call itself, or what its tool waits for.
        """
        ask_id = ASK_ID_PREFIX + self._new_id()
        call.peer.asks[ask_id] = wait
        request = Request(ask_id, question.method, question.params)
        self.effects.append(Push(call.peer.connection, request, call.id))
        return ask_id

    def approve(self, call: Call) -> None:
        """Every question of `call` has its yes: run it, or let it wait for a slot in its place."""
        self.deadlines.remove(call)
        if self.slots.refusal(call.share) is None:
            self.parking.leave(call)
            self.start(call, call.job_once_answered, CallState.RUNNING)
        else:
            self.move(call, CallState.APPROVED)
            self.parking.protect(call)
            self.approved[call] = None
            self.deadlines.add(call, self.limits.callback_timeout, self.now)

    def start_approved(self) -> None:
        """Let approved calls take the slots that are free now, oldest first."""
        for call in list(self.approved):
            if self.slots.refusal(call.share) is None:
                del self.approved[call]
                self.deadlines.remove(call)
                self.parking.leave(call)
                self.start(call, call.job_once_answered, CallState.RUNNING)

    # -- questions that nobody waits for any more ---------------------------------------------

    def _withdraw(self, call: Call, reason: Closed) -> None:
        ask_id, call.asking = call.asking, None
        if ask_id is not None:  # else it was answered, by anything but a yes
            del call.peer.asks[ask_id]
            self.retract(call.peer, ask_id, call.id, reason)

    def _drop_midway_asks(self, call: Call, reason: Closed) -> None:
        for ask_id, wait in list(call.peer.asks.items()):
            if isinstance(wait, MidwayAsk) and wait.call is call:
                del call.peer.asks[ask_id]
                self.deadlines.remove(wait)
                self.retract(call.peer, ask_id, call.id, reason)

    def retract(self, peer: Peer, ask_id: str, about: int | str, reason: Closed) -> None:
        """Tell the client that a question is moot (MCP 2025-11-25 basic/utilities/cancellation).

        It is still on the human's screen, unless the client itself is going (ADR-0015).
        """
        if peer.open and reason is not Closed.GONE:
            params: JSONObject = {"requestId": ask_id, "reason": reason.value}
            message = Notification("notifications/cancelled", params)
            self.effects.append(Push(peer.connection, message, about))

    def shares(self) -> tuple[dict[Hashable, int], dict[Hashable, int]]:
        """Slots and park places by share, for snapshots and checks."""
        return self.slots.shares(), self.parking.shares()
