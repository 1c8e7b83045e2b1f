"""What follows from a worker's report, a human's answer, and a deadline: the call's next step."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from raxol_mcp.core import payloads
from raxol_mcp.core.calls import Call, CallState, Closed, MidwayAsk
from raxol_mcp.core.effects import Job, Resolve
from raxol_mcp.core.methods import level_problem, string_list
from raxol_mcp.core.outcomes import (
    Asked,
    Denied,
    Failed,
    Granted,
    Refused,
    Returned,
    Stopped,
    Unacceptable,
)
from raxol_mcp.core.peers import Capability, Peer
from raxol_mcp.core.subscriptions import LISTEN_FIELDS, stamped
from raxol_mcp.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    MISSING_CAPABILITY,
    READ_DENIED,
)
from raxol_mcp.wire.jsonrpc import Failure, JSONObject, Response
from raxol_mcp.wire.meta import log_severity

if TYPE_CHECKING:
    from raxol_mcp.core.ledger import Ledger
    from raxol_mcp.core.sealing import Sealing

__all__ = ["Reports"]

_RESULT: Final = Closed.RESULT  # as the names of states in `calls.py`
_FAILED: Final = Closed.FAILED
STATE_REFUSED = "requestState is not valid for this request"


class Reports:
    """Reads reports and answers; every end goes through the ledger."""

    def __init__(self, ledger: Ledger, sealing: Sealing) -> None:
        self._ledger = ledger
        self._sealing = sealing
        # One table instead of a chain of tests: this is on the path of every call.
        self.by_type: dict[type, Callable[..., None]] = {
            Returned: self._returned,
            Failed: self._failed,
            Refused: self._refused,
            Denied: self._denied,
            Asked: self._asked,
            Granted: self._granted,
            Unacceptable: self._unacceptable,
            Stopped: self._crashed,
        }

    # -- workers ------------------------------------------------------------------------------

    def _returned(self, call: Call, outcome: Returned) -> None:
        reason = _FAILED if outcome.failed else _RESULT
        self._ledger.close(call, reason, Response(call.id, outcome.payload))

    def _failed(self, call: Call, outcome: Failed) -> None:
        if call.method.is_tool:
            self._ledger.close_result(call, Closed.FAILED, payloads.tool_error(outcome.text))
        else:
            self._read_failed(call, Closed.FAILED, outcome.reason)

    def _crashed(self, call: Call, outcome: Stopped) -> None:
        # Nobody closed the call, so nobody asked for this stop: the worker was ended from outside.
        self._broken(call, Closed.FAILED, payloads.CRASHED)

    def _broken(self, call: Call, reason: Closed, error: str) -> None:
        if call.method.is_tool:
            self._ledger.close_result(call, reason, payloads.callback_failed(error))
        else:
            self._read_failed(call, reason, error)

    def _read_failed(self, call: Call, reason: Closed, error: str) -> None:
        data: JSONObject = {"error": error, "method": call.method.name}
        self._ledger.close(
            call, reason, Failure(call.id, INTERNAL_ERROR, "MCP callback failed", data)
        )

    def _refused(self, call: Call, outcome: Refused) -> None:
        reason = Closed.DENIED if outcome.code == READ_DENIED else Closed.FAILED
        failure = Failure(call.id, outcome.code, outcome.message, outcome.data)
        self._ledger.close(call, reason, failure)

    def _denied(self, call: Call, outcome: Denied) -> None:
        self._ledger.deny(call, Closed.DENIED, outcome.detail, decision="deny")

    def _unacceptable(self, call: Call, outcome: Unacceptable) -> None:
        if call.era.parks:
            self._ledger.deny(call, Closed.DENIED, outcome.detail)
        else:
            failure = Failure(call.id, INVALID_PARAMS, outcome.detail)
            self._ledger.close(call, Closed.FAILED, failure)

    # -- asking -------------------------------------------------------------------------------

    def _asked(self, call: Call, outcome: Asked) -> None:
        if outcome.round:
            call.round += 1
            if call.round > self._ledger.limits.max_rounds:
                self._failed(call, Failed("Error: too many input rounds"))
                return
        call.round_state = outcome.state
        call.subject = outcome.subject
        missing = Capability.NONE
        for question in outcome.questions:
            missing |= question.needs
        missing &= ~call.era.may_ask(call)
        if missing:
            self._cannot_ask(call, outcome, missing)
        elif call.era.parks:
            if outcome.questions:
                self._ledger.park(call, outcome.questions)
            else:  # a round with nothing to ask only wants to be run again
                self._broken(call, Closed.FAILED, "input_required_without_requests")
        else:
            payload = self._sealing.mint(
                call,
                outcome.questions,
                round=call.round,
                state=outcome.state,
                now=self._ledger.now,
            )
            if payload is None:
                self._failed(call, Failed("Error: the state of this round is too long to carry"))
            else:
                self._ledger.close_result(call, Closed.RESULT, payload)

    def _cannot_ask(self, call: Call, outcome: Asked, missing: Capability) -> None:
        first = outcome.questions[0]
        if call.method.is_tool and (first.approval or call.era.parks):
            # The client learns what it would have been asked: it may ask its human by itself.
            message = first.params.get("message")
            detail = message if isinstance(message, str) else f"{first.method} is not supported"
            self._ledger.deny(call, Closed.DENIED, detail)
        elif call.era.parks:
            self._read_failed(call, Closed.FAILED, "client_cannot_be_asked")
        else:
            data: JSONObject = {"requiredCapabilities": missing.to_wire()}
            message = "The client did not declare a capability this request needs"
            self._ledger.close(
                call, Closed.FAILED, Failure(call.id, MISSING_CAPABILITY, message, data)
            )

    def answered(self, peer: Peer, message: Response | Failure) -> None:
        """An answer came. It is looked up among the questions of this very connection alone.

        Another connection's answer finds nothing, exactly like an unknown or a late one.
        """
        ledger = self._ledger
        call = peer.asks.pop(message.id, None) if isinstance(message.id, str) else None
        if call is None:
            ledger.record("stray_answer")
            return
        if isinstance(call, MidwayAsk):
            ledger.deadlines.remove(call)
            ledger.effects.append(Resolve(call.call, call.key, message))
            return
        call.asking = None
        if isinstance(message, Failure):
            ledger.deny(call, Closed.ANSWER_ERROR, "elicitation failed")
            return
        question = call.questions[0]
        refusal = question.refusal_of(message.result)
        if refusal is not None:
            ledger.deny(call, Closed.DECLINED, refusal)
            return
        call.answers = {**(call.answers or {}), question.key: question.kept(message.result)}
        call.questions = call.questions[1:]
        if call.questions:
            ledger.deadlines.remove(call)
            ledger.ask_next(call)
        else:
            ledger.approve(call)

    def resume(self, call: Call, job: Job) -> None:
        """A retry of the stateless era brings a sealed question back, with answers or without."""
        ledger, sealing = self._ledger, self._sealing
        if not isinstance(call.params.get("inputResponses"), dict | None):
            failure = Failure(call.id, INVALID_PARAMS, "inputResponses must be an object")
            ledger.close(call, Closed.FAILED, failure)
            return
        claims = sealing.open(call, ledger.now)
        if isinstance(claims, str):
            self._refuse_state(call, claims)
            return
        settled = sealing.settle(call, claims)
        if settled.refusal is not None:
            if sealing.spend(call, claims, ledger.now):
                ledger.deny(call, Closed.DECLINED, settled.refusal)
            else:
                self._refuse_state(call, "spent")
        elif settled.answers is None:
            if ledger.admit(call):
                ledger.start(call, job, CallState.AUTHORIZING)
        elif ledger.admit(call):  # a busy server leaves the token unspent: a yes is not thrown away
            if sealing.spend(call, claims, ledger.now):
                call.answers = settled.answers
                call.round = claims.round
                call.round_state = claims.state
                call.subject = claims.subject
                ledger.start(call, call.job_once_answered, CallState.RUNNING)
            else:
                self._refuse_state(call, "spent")

    def _refuse_state(self, call: Call, reason: str) -> None:
        # One frozen sentence for every reason: which check failed is for the log alone.
        self._ledger.record("request_state_refused", reason=reason)
        failure = Failure(call.id, INVALID_PARAMS, STATE_REFUSED)
        self._ledger.close(call, Closed.FAILED, failure)

    # -- what the core does itself once the read authorizer allowed it ------------------------

    def _granted(self, call: Call, outcome: Granted) -> None:
        name, peer = call.method.name, call.peer
        if name == "subscriptions/listen":
            self._listen(call, outcome.allowed or {})
            return
        problem: str | None = None
        if name == "logging/setLevel":
            problem = level_problem(call.params.get("level"))
            if problem is None:
                peer.log_severity = log_severity(call.params.get("level")) or 0
        elif name == "resources/subscribe":
            problem = self._uri_problem([call.name])
            if problem is None and call.name not in peer.subscriptions:
                if len(peer.subscriptions) >= self._ledger.limits.max_subscriptions:
                    self._ledger.close_busy(call, "connection")
                    return
                peer.subscriptions.add(call.name)
        else:
            peer.subscriptions.discard(call.name)
        if problem is None:
            self._ledger.close_result(call, Closed.RESULT, {})
        else:
            self._ledger.close(call, Closed.FAILED, Failure(call.id, INVALID_PARAMS, problem))

    def _uri_problem(self, uris: list[str]) -> str | None:
        limits = self._ledger.limits
        if len(uris) > limits.max_subscriptions:
            return f"at most {limits.max_subscriptions} resource subscriptions"
        if any(len(uri.encode()) > limits.max_uri_bytes for uri in uris):
            return f"a uri has at most {limits.max_uri_bytes} bytes"
        return None

    def _listen(self, call: Call, allowed: JSONObject) -> None:
        ledger, peer = self._ledger, call.peer
        uris = string_list(allowed.get("resourceSubscriptions"))
        problem = self._uri_problem(uris or [])
        if problem is not None:
            ledger.close(call, Closed.FAILED, Failure(call.id, INVALID_PARAMS, problem))
            return
        full = len(peer.listening) >= ledger.limits.max_listens
        scope = "connection" if full else ledger.listens.refusal(call.share)
        if scope is not None:
            ledger.close_busy(call, scope)
            return
        honoured: JSONObject = {field: True for field in LISTEN_FIELDS if allowed.get(field)}
        if uris:
            honoured["resourceSubscriptions"] = uris
        ledger.deadlines.remove(call)
        ledger.move(call, CallState.LISTENING)
        ledger.listens.take(call.share)
        call.params = {}
        call.arguments = honoured
        peer.listening[call.id] = call
        acknowledged = "notifications/subscriptions/acknowledged"
        ledger.push(call, stamped(call, acknowledged, {"notifications": honoured}))

    # -- time ---------------------------------------------------------------------------------

    def expired(self, call: Call) -> None:
        """The deadline of `call` has passed: what it waited for did not come."""
        if call.state is CallState.PARKED:
            self._ledger.deny(call, Closed.ANSWER_TIMEOUT, "elicitation timed out")
        elif call.state is CallState.APPROVED:
            scope = self._ledger.slots.refusal(call.share)
            self._ledger.close_busy(call, scope or "server")
        else:
            self._ledger.record("callback_timeout", method=call.method.name, name=call.name)
            self._broken(call, Closed.WORKER_TIMEOUT, payloads.TIMED_OUT)
