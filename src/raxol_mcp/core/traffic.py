"""The requests of a session: sent or queued, answered, asked back about, and given up.

Not the session itself (`session.py`), nor what the server says unasked (`unasked.py`). Replies are
matched by id and read by the method that was asked, never by their shape, so that no answer can
pass for another. What matches nothing is counted and dropped; a response is never answered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from raxol_mcp.core.client_effects import AskUser, Ended
from raxol_mcp.core.greeting import error_reason
from raxol_mcp.core.tickets import Notice, Ticket, TicketState
from raxol_mcp.errors import UNSUPPORTED_VERSION, Reason
from raxol_mcp.wire.jsonrpc import Failure, JSONObject, Response
from raxol_mcp.wire.meta import EraName

if TYPE_CHECKING:
    from raxol_mcp.core.client_ledger import ClientLedger
    from raxol_mcp.core.session import Session

__all__ = ["Payment", "Traffic"]

# (tool, reservation, now) -> why the call may not be made. Takes the reservation when it may.
Payment = Callable[[str, object, float], Reason | None]

# MCP 2026-07-28 basic/patterns/mrtr §Supported requests.
_MAY_ASK: Final = frozenset({"tools/call", "prompts/get", "resources/read"})
_ASKABLE: Final = frozenset({"elicitation/create", "sampling/createMessage", "roots/list"})
_MAX_ASKED: Final = 32
# What a stateless server answers with a JSON-RPC error in the body; without one it is another
# kind of server by now.
_OTHER_SERVER: Final = frozenset({400, 404, 405})


class Traffic:
    """The requests of one client, once there is a session."""

    def __init__(self, ledger: ClientLedger, payment: Payment) -> None:
        self.session: Session
        self._ledger = ledger
        self._payment = payment

    # -- tickets ------------------------------------------------------------------------------

    def submitted(self, ticket: Ticket) -> None:
        """Send `ticket`, let it wait, or settle it at once."""
        ledger, session = self._ledger, self.session
        ticket.begun_at = ledger.now
        if not session.admits(ticket):
            ended, reason = session.refusal()
            ledger.settle(ticket, ended, reason=reason)
        elif ticket.listening:
            self._listen(ticket)
        elif session.usable and ledger.window.has_room():  # so nobody waits: `fill`
            self._dispatch(ticket)
        elif ledger.window.may_wait():
            ledger.window.wait(ticket)
            ledger.deadlines.add(ticket, ticket.timeout, ledger.now)
        else:
            ledger.settle(ticket, Ended.BUSY, reason=Reason("busy"))

    def _listen(self, ticket: Ticket) -> None:
        if len(self._ledger.listening) < self._ledger.options.max_listening:
            self._ledger.sent(ticket)
        else:
            self._ledger.settle(ticket, Ended.BUSY, reason=Reason("busy"))

    def fill(self) -> None:
        """Send whoever waits while there is room."""
        if self.session.usable:
            while (ticket := self._ledger.window.next()) is not None:
                self._dispatch(ticket)

    def _dispatch(self, ticket: Ticket) -> None:
        """Send `ticket`, and pay for it when its tool is priced.

        Here and once: a queue that was too long, or a session that was lost, has cost nothing.
        """
        if ticket.method == "tools/call" and not ticket.paid:
            name = (ticket.params or {}).get("name")
            reason = self._payment(str(name), ticket.reservation, self._ledger.now)
            if reason is not None:
                self._ledger.settle(ticket, Ended.UNPAID, reason=reason)
                return
            ticket.paid = True
        self._ledger.sent(ticket)

    def answered(self, key: int, answer: Response | Failure) -> None:
        """The peer answered a request of ours, or claims to."""
        ledger = self._ledger
        ticket = ledger.window.held.get(key) or ledger.listening.get(key)
        if not isinstance(ticket, Ticket):
            ledger.record("stray_answer")
            return
        if isinstance(answer, Failure):
            self._refused(ticket, key, error_reason(answer))
            return
        result = answer.result
        if not isinstance(result, dict):
            self._unusable(ticket)
            return
        self.session.was_of_use()
        if ledger.era is EraName.HANDSHAKE:
            ledger.settle(ticket, Ended.RESULT, result=result)
            return
        # MCP 2026-07-28 basic §Result responses: absent is complete, unknown is invalid.
        kind = result.get("resultType", "complete")
        if kind == "complete":
            ledger.settle(ticket, Ended.RESULT, result=result)
        elif kind == "input_required" and ticket.method in _MAY_ASK:
            self._round(ticket, result)
        else:
            self._unusable(ticket)

    def _unusable(self, ticket: Ticket, text: str = "") -> None:
        reason = Reason("invalid_response", ticket.method, text=text, maybe_done=True)
        self._ledger.settle(ticket, Ended.FAILED, reason=reason)

    def _refused(self, ticket: Ticket, key: int, reason: Reason) -> None:
        """The peer answered with an error; in the stateless era one that may end the session."""
        self._ledger.settle(ticket, Ended.ERROR, reason=reason)
        error = reason.error or {}
        if error.get("code") == UNSUPPORTED_VERSION and self._ledger.era is EraName.STATELESS:
            self._rejected(key, reason)
        else:
            self.session.was_of_use()

    def _rejected(self, key: int, reason: Reason) -> None:
        """The session of `key` is no more; once for however many requests find that out.

        Nor is whoever asked in it: the next session may use the same ids.
        """
        session = self.session
        if session.usable and key >= session.first_key:
            self._withdraw_all()
            session.rejected(reason)

    def _withdraw_all(self) -> None:
        for question in list(self._ledger.questions.values()):
            self._ledger.withdraw(question)

    def failed(self, key: int, reason: Reason) -> None:
        """The transport could not deliver a message, or get its answer."""
        ledger = self._ledger
        holder = ledger.window.held.get(key) or ledger.listening.get(key)
        if isinstance(holder, Notice):
            ledger.delivered(holder)
            ledger.record("notification_failed", tag=reason.tag)
        elif holder is None:
            return  # an answer of ours, or a cancellation: nobody waits for either
        elif reason.tag == "session_rejected":
            ledger.settle(holder, Ended.SESSION_REJECTED, reason=reason)
        elif reason.error is not None:
            self._refused(holder, key, reason)
        else:
            ledger.settle(holder, Ended.FAILED, reason=reason)
        if reason.tag == "session_rejected" or self._is_other_server(holder, reason):
            self._rejected(key, reason)

    def _is_other_server(self, holder: Ticket | Notice, reason: Reason) -> bool:
        """Say whether a stateless server could not have answered so.

        To a subscription or a notification it may have: not every server has them, or says so
        well.
        """
        return (
            self._ledger.era is EraName.STATELESS
            and isinstance(holder, Ticket)
            and not holder.listening
            and reason.tag == "http"
            and reason.error is None
            and reason.detail in _OTHER_SERVER
        )

    def sent(self, key: int) -> None:
        """The transport delivered a notification."""
        holder = self._ledger.window.held.get(key)
        if isinstance(holder, Notice):
            self._ledger.delivered(holder)

    def abandoned(self, ticket: Ticket) -> None:
        """The caller waits no longer; nothing is settled, because nobody would see it."""
        if ticket.state in (TicketState.SENT, TicketState.LISTENING):
            self._ledger.cancel(ticket, "the caller went away")
        self._ledger.drop(ticket)

    def expired(self, ticket: Ticket) -> None:
        """The time of `ticket` is over: answer for the peer, and tell it."""
        sent = ticket.state in (TicketState.SENT, TicketState.LISTENING)
        if sent:
            self._ledger.cancel(ticket, "timed out")
        reason = Reason("timeout", maybe_done=sent or ticket.rounds > 0)
        self._ledger.settle(ticket, Ended.TIMED_OUT, reason=reason)

    def settle_all(self, ended: Ended, reason: Reason) -> None:
        """The connection is over: everything that waits for it ends."""
        ledger = self._ledger
        self._withdraw_all()
        for holder in list(ledger.window.held.values()):
            if isinstance(holder, Notice):
                ledger.delivered(holder)
        tickets = [holder for holder in ledger.window.held.values() if isinstance(holder, Ticket)]
        unknown = Reason(
            reason.tag,
            reason.detail,
            cause=reason.cause,
            error=reason.error,
            retry_after=reason.retry_after,
            text=reason.text,
            maybe_done=True,
        )
        for ticket in [*tickets, *ledger.listening.values(), *ledger.answering]:
            ledger.settle(ticket, ended, reason=unknown)
        for ticket in ledger.window.waiting():
            ledger.settle(ticket, ended, reason=unknown if ticket.rounds else reason)

    # -- rounds (MCP 2026-07-28 basic/patterns/mrtr) ------------------------------------------

    def _round(self, ticket: Ticket, result: JSONObject) -> None:
        requests, state = result.get("inputRequests"), result.get("requestState")
        problem = self._round_problem(ticket, requests, state)
        if problem is not None:
            self._unusable(ticket, problem)
            return
        ticket.rounds += 1
        state = state if isinstance(state, str) else None
        ticket.asked = ({}, state)
        if isinstance(requests, dict) and requests:
            self._ledger.asking(ticket)
            self._ledger.put(AskUser(ticket, requests))
        else:
            self._ledger.returned(ticket)

    def _round_problem(self, ticket: Ticket, requests: object, state: object) -> str | None:
        options = self._ledger.options
        if requests is None and state is None:
            return "it asks for input and says for none"
        if state is not None and not isinstance(state, str):
            return "requestState is not a string"
        if ticket.rounds >= options.max_rounds:
            return f"it asked for input more than {options.max_rounds} times"
        if requests is None:
            return None
        if not isinstance(requests, dict) or len(requests) > _MAX_ASKED:
            return f"inputRequests is not an object of at most {_MAX_ASKED}"
        for asked in requests.values():
            method = asked.get("method") if isinstance(asked, dict) else None
            if not isinstance(method, str) or method not in _ASKABLE:
                return "an input request asks for something that cannot be asked"
            if method not in options.asked_methods:
                return "an input request asks for what this client did not declare"
        if requests and len(self._ledger.answering) >= options.max_answering:
            return "too many calls wait for answers of the user"
        return None

    def resumed(self, ticket: Ticket, answers: JSONObject | Reason) -> None:
        """The user has answered a round (`{key: answer}`), or cannot."""
        if ticket.state is not TicketState.ANSWERING:
            return  # timed out meanwhile, or the connection is lost
        if isinstance(answers, Reason):
            self._ledger.settle(ticket, Ended.FAILED, reason=answers)
            return
        assert ticket.asked is not None, "a round asked"
        ticket.asked = (answers, ticket.asked[1])
        self._ledger.returned(ticket)
