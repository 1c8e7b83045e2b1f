"""The accounts of a client: what is written, what is held, and the one end of each wait."""

from __future__ import annotations

import pytest

from raxol_mcp.core.client_effects import Abort, Answer, Ended, Record, Send, Settle
from raxol_mcp.core.client_ledger import ClientLedger
from raxol_mcp.core.greeting import stateless_facts
from raxol_mcp.core.tickets import Notice, ServerQuestion, Ticket, TicketState, Waiter
from raxol_mcp.errors import Reason
from raxol_mcp.wire.headers import Mirror
from raxol_mcp.wire.jsonrpc import JSONObject, Notification, Request
from raxol_mcp.wire.meta import (
    META_CLIENT_CAPABILITIES,
    META_CLIENT_INFO,
    META_LOG_LEVEL,
    META_VERSION,
    EraName,
)
from tests.core.client_support import options

OWN: JSONObject = {
    META_VERSION: "2026-07-28",
    META_CLIENT_INFO: {"name": "test"},
    META_CLIENT_CAPABILITIES: {"elicitation": {}},
}


def ledger(kind: str = "stdio", *, stateless: bool = False) -> ClientLedger:
    made = ClientLedger(options(kind))
    made.begin(10.0)
    if stateless:
        made.facts = stateless_facts(None)
    return made


def ticket(params: JSONObject | None = None, **more: object) -> Ticket:
    return Ticket("m", params, timeout=30.0, **more)  # type: ignore[arg-type]  # given by name


def due_at(one: Ticket) -> float | None:
    return None if one.lane is None else one.lane[one]


def held(made: ClientLedger) -> tuple[int, int, int, int, int]:
    """Count who is where: slots, queue, answering, listening, deadlines."""
    return (
        len(made.window.held),
        made.window.queued,
        len(made.answering),
        len(made.listening),
        len(made.deadlines),
    )


# -- inputs ---------------------------------------------------------------------------------------


def test_an_input_has_the_effects_that_were_put_in_it() -> None:
    made = ledger()
    first = made.begin(11.0)
    made.record("busy", scope="server")
    second = made.begin(11.0)
    made.send(Notification("x"), made.next_key())
    assert first == [Record("busy", {"scope": "server"})]
    assert second == [Send(0, Notification("x"), 1)]


def test_time_does_not_run_backwards() -> None:
    made = ledger()
    with pytest.raises(AssertionError, match="backwards"):
        made.begin(9.0)


def test_every_key_is_new() -> None:
    made = ledger()
    keys = [made.next_key() for _ in range(3)]
    made.attempt += 1
    assert [*keys, made.next_key()] == [1, 2, 3, 4]
    assert made.last_key == 4


def test_the_era_is_that_of_the_handshake_while_there_is_none() -> None:
    assert ledger().era is EraName.HANDSHAKE
    assert ledger(stateless=True).era is EraName.STATELESS


# -- what is written ------------------------------------------------------------------------------


def test_a_request_of_the_handshake_era_has_no_metadata_of_ours() -> None:
    assert ledger().request(ticket(), 7) == Request(7, "m", {})
    assert ledger().request(ticket({"n": 1}), 7) == Request(7, "m", {"n": 1})


def test_a_request_of_the_stateless_era_says_who_asks() -> None:
    """MCP 2026-07-28 basic §_meta."""
    made = ledger(stateless=True)
    assert made.request(ticket(), 7).params == {"_meta": OWN}
    made.log_level = "error"
    assert made.request(ticket(), 7).params == {"_meta": {**OWN, META_LOG_LEVEL: "error"}}


def test_what_mcp_keeps_for_itself_is_never_the_users() -> None:
    mine: JSONObject = {META_VERSION: "1999", "progressToken": "mine", "own": 1}
    theirs: JSONObject = {"_meta": {**mine, "own": 2, "other": 3}}
    made = ledger(stateless=True)
    request = made.request(ticket(theirs, meta=mine), 7)
    assert request.params == {"_meta": {"own": 1, "other": 3, **OWN}}
    assert ledger().request(ticket(theirs, meta=mine), 7).params == {
        "_meta": {"own": 1, "other": 3}
    }
    assert theirs == {"_meta": {**mine, "own": 2, "other": 3}}


def test_params_whose_meta_is_none_lose_it() -> None:
    assert ledger().request(ticket({"_meta": 7}), 7).params == {}


def test_the_progress_token_is_the_id() -> None:
    request = ledger().request(ticket(wants_progress=True), 7)
    assert request.params == {"_meta": {"progressToken": 7}}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (None, {}),
        (({}, None), {}),
        (({"k": 1}, None), {"inputResponses": {"k": 1}}),
        (({}, ""), {"requestState": ""}),
        (({"k": 1}, " s\n"), {"inputResponses": {"k": 1}, "requestState": " s\n"}),
    ],
)
def test_a_retry_says_what_was_answered(
    asked: tuple[JSONObject, str | None] | None, expected: JSONObject
) -> None:
    """BC-115; MCP 2026-07-28 basic/patterns/mrtr §Client."""
    again = ticket()
    again.asked = asked
    assert ledger().request(again, 7).params == expected


# -- tickets --------------------------------------------------------------------------------------


def test_a_ticket_that_is_sent_holds_a_slot_and_a_deadline() -> None:
    made = ledger()
    mirror = Mirror(("n",), "N", b"n")
    one = ticket(mirrors=(mirror,))
    effects = made.begin(10.0)
    made.sent(one)
    assert effects == [Send(0, Request(1, "m", {}), 1, (mirror,))]
    assert (one.id, one.state, one.lane) == (1, TicketState.SENT, {one: 40.0})
    assert held(made) == (1, 0, 0, 0, 1)


def test_a_ticket_that_waited_keeps_its_deadline() -> None:
    made = ledger()
    one = ticket()
    made.window.wait(one)
    made.deadlines.add(one, 30.0, 10.0)
    made.begin(20.0)
    made.window.forget(one)
    made.sent(one)
    assert one.lane == {one: 40.0}


def test_a_subscription_holds_a_place_of_its_own() -> None:
    made = ledger()
    made.sent(ticket(listening=True))
    assert held(made) == (0, 0, 0, 1, 1)


def test_whatever_a_ticket_holds_it_gives_back_when_it_is_settled() -> None:
    made = ledger()
    new, queued, sent, asking, listening = (ticket(listening=n == 4) for n in range(5))
    made.window.wait(queued)
    made.deadlines.add(queued, 30.0, 10.0)
    for one in (sent, asking, listening):
        made.sent(one)
    made.asking(asking)
    assert held(made) == (1, 1, 1, 1, 4)
    effects = made.begin(11.0)
    for one in (new, queued, sent, asking, listening):
        made.settle(one, Ended.LOST, reason=Reason("busy"))
    assert held(made) == (0, 0, 0, 0, 0)
    assert len(effects) == 5
    assert effects[0] == Settle(new, Ended.LOST, None, Reason("busy"))


def test_a_ticket_is_settled_once() -> None:
    made = ledger()
    one = ticket()
    made.sent(one)
    made.settle(one, Ended.RESULT, result={})
    with pytest.raises(AssertionError, match="cannot become settled"):
        made.settle(one, Ended.RESULT, result={})


def test_who_is_dropped_is_not_told() -> None:
    made = ledger()
    one = ticket()
    made.sent(one)
    effects = made.begin(10.0)
    made.drop(one)
    assert effects == []
    assert held(made) == (0, 0, 0, 0, 0)


def test_who_waits_for_a_user_gives_the_slot_back_and_has_time() -> None:
    made = ledger()
    one = ticket()
    made.sent(one)
    made.asking(one)
    assert held(made) == (0, 0, 1, 0, 1)
    assert one.lane == {one: 310.0}


def test_who_comes_back_is_in_front_and_has_the_whole_timeout() -> None:
    made = ledger()
    one, other = ticket(), ticket()
    made.window.wait(other)
    made.sent(one)
    one.rounds = 1
    one.progress = 5.0
    made.begin(25.0)
    made.returned(one)
    assert made.window.waiting() == [one, other]
    assert (one.begun_at, one.lane) == (25.0, {one: 55.0})
    made.window.forget(one)
    made.sent(one)
    assert one.progress is None


@pytest.mark.parametrize(
    ("kind", "stateless", "told"),
    [("stdio", False, True), ("http", False, True), ("stdio", True, True), ("http", True, False)],
)
def test_how_a_server_is_told_that_nobody_waits(kind: str, stateless: bool, told: bool) -> None:
    """MCP basic/utilities/cancellation; over stateless HTTP the closed stream says it."""
    made = ledger(kind, stateless=stateless)
    one = ticket()
    made.sent(one)
    effects = made.begin(10.0)
    made.cancel(one, "why")
    params: JSONObject = {"requestId": 1, "reason": "why"}
    if stateless:
        params["_meta"] = OWN
    notice = Send(0, Notification("notifications/cancelled", params), 2)
    assert effects == [*([notice] if told else []), Abort(0, 1)]


def test_a_deadline_can_be_moved_but_not_into_the_past() -> None:
    made = ledger()
    one = ticket()
    made.sent(one)
    made.wait_until(one, 15.0)
    assert one.lane == {one: 15.0}
    made.wait_until(one, 3.0)
    assert one.lane == {one: 10.0}


# -- notifications, waiters, questions ------------------------------------------------------------


def test_a_notification_holds_a_slot_until_it_is_delivered() -> None:
    made = ledger()
    effects = made.begin(10.0)
    made.notify("x", None)
    assert effects == [Send(0, Notification("x", {}), 1)]
    notice = made.window.held[1]
    assert isinstance(notice, Notice)
    assert notice.lane == {notice: 40.0}
    made.delivered(notice)
    assert held(made) == (0, 0, 0, 0, 0)


def test_a_notification_of_the_stateless_era_says_who_tells() -> None:
    made = ledger(stateless=True)
    effects = made.begin(10.0)
    made.notify("x", {"n": 1, "_meta": {META_VERSION: "1999", "own": 1}})
    assert effects == [Send(0, Notification("x", {"n": 1, "_meta": {"own": 1, **OWN}}), 1)]


def test_a_waiter_is_told_and_forgotten() -> None:
    made = ledger()
    waiter = Waiter(5.0, fail_fast=False)
    made.waiters[waiter] = None
    made.deadlines.add(waiter, 5.0, 10.0)
    effects = made.begin(10.0)
    made.tell(waiter, Ended.NOT_READY, Reason("not_ready"))
    assert effects == [Answer(waiter, Ended.NOT_READY, Reason("not_ready"))]
    assert (made.waiters, len(made.deadlines)) == ({}, 0)


def test_a_question_stops_the_timer_of_what_it_may_hold_up() -> None:
    """ours: ADR-0026."""
    made = ledger()
    one, later = ticket(max_timeout=50.0), ticket()
    made.sent(one)
    made.notify("x", None)
    one.begun_at = 10.0
    question = ServerQuestion("q", "roots/list", None, about=None, latest=made.last_key)
    made.ask(question)
    made.sent(later)
    assert (due_at(one), due_at(later)) == (360.0, 40.0)
    made.begin(100.0)
    made.withdraw(question)
    assert (due_at(one), due_at(later)) == (130.0, 40.0)
    assert made.questions == {}


def test_one_of_two_questions_leaves_the_timer_stopped() -> None:
    made = ledger()
    one = ticket()
    made.sent(one)
    one.begun_at = 10.0
    questions = [ServerQuestion(n, "m", None, about=one.id, latest=1) for n in range(2)]
    for question in questions:
        made.ask(question)
    made.answered(questions[0])
    assert due_at(one) == 340.0
    made.begin(320.0)
    made.answered(questions[1])
    assert due_at(one) == 340.0
