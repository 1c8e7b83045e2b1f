"""What a server says unasked: its requests, and its notifications.

Not its answers (`traffic.py`). Only the handshake era has requests of the server; what they ask of
the user is bounded in number and in time. A notification changes nothing but what it is about.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from raxol_mcp.core.client_effects import Acknowledged, Deliver, Ended, Progressed
from raxol_mcp.core.tickets import ServerQuestion, Ticket
from raxol_mcp.errors import INTERNAL_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND
from raxol_mcp.wire.jsonrpc import Failure, Invalid, Notification, Request, Response
from raxol_mcp.wire.meta import META_SUBSCRIPTION_ID, EraName, meta_of

if TYPE_CHECKING:
    from raxol_mcp.core.client_ledger import ClientLedger
    from raxol_mcp.wire.jsonrpc import Ignored, JSONObject, RequestId

__all__ = ["Unasked"]


class Unasked:
    """Takes what one server says of its own accord."""

    def __init__(self, ledger: ClientLedger) -> None:
        self._ledger = ledger

    # -- requests ------------------------------------------------------------------------------

    def asked(self, request: Request, about: int | None) -> None:
        """A request of the server."""
        ledger = self._ledger
        if ledger.era is EraName.STATELESS:
            # MCP 2026-07-28 basic: a client must not send responses.
            ledger.record("forbidden_request")
        elif request.method == "ping":
            ledger.send(Response(request.id, {}), ledger.next_key())
        elif request.method not in ledger.options.asked_methods:
            self._refuse(request.id, METHOD_NOT_FOUND, "Method not found")
        elif request.id in ledger.questions:
            self._refuse(request.id, INVALID_REQUEST, "Invalid request: this id is in use")
        elif len(ledger.questions) >= ledger.options.max_questions:
            self._refuse(request.id, INTERNAL_ERROR, "too many requests are waiting for the user")
        else:
            ledger.ask(
                ServerQuestion(
                    request.id,
                    request.method,
                    request.params,
                    about=about,
                    latest=ledger.last_key,
                )
            )

    def unusable(self, message: Invalid | Ignored) -> None:
        """What is no message, or none that may be sent: an error where one is owed."""
        ledger = self._ledger
        ledger.record("stray_message")
        if not isinstance(message, Invalid) or ledger.era is EraName.STATELESS:
            return
        if message.failure.id is not None:
            ledger.send(message.failure, ledger.next_key())

    def _refuse(self, id: RequestId, code: int, message: str) -> None:
        self._ledger.send(Failure(id, code, message), self._ledger.next_key())

    def replied(self, question: ServerQuestion, answer: Response | Failure) -> None:
        """The user's handler has answered."""
        ledger = self._ledger
        if ledger.questions.get(question.id) is question:  # else it was withdrawn meanwhile
            ledger.answered(question)
            ledger.send(answer, ledger.next_key())

    def unanswered(self, question: ServerQuestion) -> None:
        """The user took too long. Silence is no answer: the server is told that there is none."""
        self._ledger.withdraw(question)
        self._refuse(question.id, INTERNAL_ERROR, "the user did not answer in time")

    # -- notifications -------------------------------------------------------------------------

    def notified(self, notification: Notification, about: int | None) -> None:
        """A notification of the server."""
        params = notification.params or {}
        match notification.method:
            case "notifications/progress":
                self._progressed(params, about)
            case "notifications/cancelled":
                self._cancelled(params)
            case "notifications/subscriptions/acknowledged":
                self._acknowledged(params)
            case _:
                ticket = self._listener(params)
                if ticket is None and about is not None:
                    holder = self._ledger.window.held.get(about)
                    ticket = holder if isinstance(holder, Ticket) else None
                self._ledger.put(Deliver(notification.method, params, ticket))

    def _listener(self, params: JSONObject) -> Ticket | None:
        subscription = (meta_of(params) or {}).get(META_SUBSCRIPTION_ID)
        return self._ledger.listening.get(subscription) if type(subscription) is int else None

    def _progressed(self, params: JSONObject, about: int | None) -> None:
        token, progress = params.get("progressToken"), _number(params.get("progress"))
        ticket = self._ledger.window.held.get(token) if type(token) is int else None
        if (
            not isinstance(ticket, Ticket)
            or not ticket.wants_progress
            or about not in (None, token)
            or progress is None
            or (ticket.progress is not None and progress <= ticket.progress)
        ):
            # MCP basic/utilities/progress: it must increase, and name an active token.
            self._ledger.record("stray_progress")
            return
        ticket.progress = progress
        if ticket.max_timeout is not None:
            self._begin_anew(ticket, ticket.begun_at + ticket.max_timeout)
        message = params.get("message")
        self._ledger.put(
            Progressed(
                ticket,
                progress,
                _number(params.get("total")),
                message if isinstance(message, str) else None,
            )
        )

    def _begin_anew(self, ticket: Ticket, limit: float) -> None:
        """Begin the timer of `ticket` anew, which never makes it end earlier (ADR-0026)."""
        ledger, lane = self._ledger, ticket.lane
        assert lane is not None, "whatever was sent has a deadline"
        until = min(ledger.now + ticket.timeout, limit)
        if until > lane[ticket]:
            ledger.wait_until(ticket, until)

    def _cancelled(self, params: JSONObject) -> None:
        id = params.get("requestId")
        if not isinstance(id, int | str):
            return
        question = self._ledger.questions.get(id)
        if question is not None and type(id) is type(question.id):
            self._ledger.withdraw(question)
            return
        ticket = self._ledger.listening.get(id) if type(id) is int else None
        if ticket is not None:
            # MCP 2026-07-28 basic/utilities/cancellation: how a server ends a subscription.
            self._ledger.settle(ticket, Ended.RESULT, result={})

    def _acknowledged(self, params: JSONObject) -> None:
        ticket, said = self._listener(params), params.get("notifications")
        if ticket is not None:
            self._ledger.deadlines.remove(ticket)
            self._ledger.put(Acknowledged(ticket, said if isinstance(said, dict) else {}))


def _number(value: object) -> float | None:
    """Give a finite number of JSON; None for anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
        return float(value)
    return None
