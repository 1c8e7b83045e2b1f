"""What a server says unasked: its requests, and its notifications."""

from __future__ import annotations

import math

import pytest

from raxol_mcp.core.client_effects import Deliver, Progressed
from raxol_mcp.errors import Reason
from raxol_mcp.wire.jsonrpc import Failure, Ignored, Invalid, JSONObject, Response
from raxol_mcp.wire.meta import META_SUBSCRIPTION_ID
from tests.core.client_support import Told

ELICIT = "elicitation/create"


# -- requests of the server -----------------------------------------------------------------------


def test_a_request_with_a_handler_is_handled_and_answered() -> None:
    told = Told().handshake()
    assert told.asked("q", ELICIT) == ["handle q"]
    assert told.reply("q", {"action": "accept"}) == ["send 4 result of q"]
    assert told.sent_messages[4] == Response("q", {"action": "accept"})
    assert told.reply("q") == []


def test_a_request_without_a_handler_is_refused_at_once() -> None:
    """client-behaviour check 48, as the rulings have it."""
    told = Told("http").handshake()
    told.call("a")
    assert told.asked(7, "sampling/createMessage") == ["send 5 error -32601 of 7"]
    assert told.core.ledger.window.held.keys() == {4}


def test_a_ping_is_answered_at_any_time() -> None:
    """MCP basic/utilities/ping."""
    told = Told().until_probed()
    told.error(1, -32601)
    assert told.asked(1, "ping") == ["send 3 result of 1"]


def test_a_stateless_server_is_answered_nothing() -> None:
    """MCP 2026-07-28 basic: a client must not send responses."""
    told = Told().stateless()
    assert told.asked(1, "ping") == []
    assert told.records() == ["forbidden_request"]
    assert told.received(Invalid(Failure(3, -32600, "no"))) == []


def test_an_id_that_is_in_use_is_refused() -> None:
    """Rulings: the first is unaffected; 1 and "1" are two."""
    told = Told().handshake()
    assert told.asked(1, ELICIT) == ["handle 1"]
    assert told.asked(1, "roots/list") == ["send 4 error -32600 of 1"]
    assert told.asked("1", ELICIT) == ["handle 1"]
    assert told.reply(1) == ["send 5 result of 1"]
    assert told.asked(1, ELICIT) == ["handle 1"]


def test_questions_are_bounded() -> None:
    told = Told(max_questions=2).handshake()
    told.asked(1, ELICIT)
    told.asked(2, ELICIT)
    assert told.asked(3, ELICIT) == ["send 4 error -32603 of 3"]
    told.reply(1)
    assert told.asked(3, ELICIT) == ["handle 3"]


def test_a_user_who_does_not_answer_is_answered_for() -> None:
    """Silence is no answer."""
    told = Told(answer_timeout=50.0).handshake()
    told.asked(1, ELICIT)
    assert told.after(49.9) == []
    assert told.after(0.1) == ["withdraw 1", "send 4 error -32603 of 1"]
    assert told.reply(1) == []


def test_a_question_may_be_withdrawn_by_the_server() -> None:
    """MCP basic/utilities/cancellation."""
    told = Told().handshake()
    told.asked(1, ELICIT)
    assert told.says("notifications/cancelled", {"requestId": "1"}) == []
    assert told.says("notifications/cancelled", {"requestId": True}) == []
    assert told.says("notifications/cancelled", {"requestId": 1.5}) == []
    assert told.says("notifications/cancelled", {"requestId": 1}) == ["withdraw 1"]
    assert told.says("notifications/cancelled", {"requestId": 1}) == []
    assert told.says("notifications/cancelled", None) == []
    assert told.reply(1) == []


def test_questions_end_with_the_connection() -> None:
    told = Told().handshake()
    told.asked(1, ELICIT)
    assert told.lost() == ["withdraw 1", "close 1"]
    assert told.reply(1) == []


def test_questions_end_with_the_session_that_asked() -> None:
    """The next session may use their ids, and must not be given the answers of this one."""
    told = Told("http").handshake()
    told.asked(1, ELICIT)
    told.call("a")
    assert told.failed(4, Reason("session_rejected")) == [
        "a: session_rejected session_rejected",
        "withdraw 1",
        "send 5 server/discover",
    ]
    assert told.reply(1) == []


def test_questions_of_the_next_session_are_not_withdrawn_by_late_rejections() -> None:
    told = Told("http").handshake()
    told.call("a")
    told.call("b")
    told.failed(4, Reason("session_rejected"))
    told.failed(6, Reason("http", 404))
    told.asked(1, ELICIT)
    assert told.failed(5, Reason("session_rejected")) == ["b: session_rejected session_rejected"]
    assert told.reply(1) == ["send 8 result of 1"]


# -- timers stand still (ADR-0026) ----------------------------------------------------------------


def due_in(told: Told, letter: str) -> float:
    ticket = told.ticket(letter)
    assert ticket.lane is not None
    return ticket.lane[ticket] - told.now


def test_while_a_user_answers_the_timer_of_a_call_stands_still() -> None:
    told = Told().handshake()
    told.call("a", timeout=30.0)
    told.after(25.0)
    told.asked(1, ELICIT)
    assert told.after(200.0) == []
    told.reply(1)
    assert told.after(29.9) == []
    assert told.after(0.1)[-1] == "a: timed_out timeout (maybe done)"


def test_it_never_stands_still_for_more_than_one_answer_timeout() -> None:
    told = Told(answer_timeout=100.0).handshake()
    told.call("a", timeout=30.0)
    asked_at = told.now
    for number in range(4):
        told.asked(number, ELICIT)
        told.after(29.0)
        told.reply(number)
    assert due_in(told, "a") == pytest.approx(130.0 - (told.now - asked_at))
    assert told.after(14.0)[-1] == "a: timed_out timeout (maybe done)"


def test_a_user_who_does_not_answer_leaves_the_call_its_timeout() -> None:
    """The server is told that there is no answer, and has time to make something of that."""
    told = Told(answer_timeout=100.0).handshake()
    told.call("a", timeout=30.0)
    told.after(10.0)
    told.asked(1, ELICIT)
    assert told.after(100.0) == ["withdraw 1", "send 5 error -32603 of 1"]
    assert due_in(told, "a") == pytest.approx(20.0)


def test_a_short_answer_timeout_makes_no_call_shorter() -> None:
    told = Told(answer_timeout=1.0).handshake()
    told.call("a", timeout=30.0)
    told.asked(1, ELICIT)
    assert told.after(1.0) == ["withdraw 1", "send 5 error -32603 of 1"]
    assert due_in(told, "a") == pytest.approx(30.0)


def test_a_timer_stands_still_until_the_last_question_is_answered() -> None:
    told = Told().handshake()
    told.call("a", timeout=30.0)
    told.asked(1, ELICIT)
    told.asked(2, ELICIT)
    told.reply(1)
    assert told.after(100.0) == []
    told.reply(2)
    assert due_in(told, "a") == 30.0


def test_a_withdrawn_question_lets_the_timer_go_on() -> None:
    told = Told().handshake()
    told.call("a", timeout=30.0)
    told.asked(1, ELICIT)
    told.after(20.0)
    told.says("notifications/cancelled", {"requestId": 1})
    assert due_in(told, "a") == 30.0


def test_over_http_only_the_call_stands_still_that_was_asked_about() -> None:
    told = Told("http").handshake()
    told.call("a", timeout=30.0)
    told.call("b", timeout=30.0)
    told.notify()
    told.asked(1, ELICIT, about=4)
    told.asked(2, ELICIT, about=6)
    assert told.after(30.0)[-1] == "b: timed_out timeout (maybe done)"
    told.reply(1)
    assert due_in(told, "a") == 30.0


def test_a_call_that_was_sent_after_the_question_does_not_wait_for_it() -> None:
    told = Told().handshake()
    told.asked(1, ELICIT)
    told.call("a", timeout=30.0)
    told.after(20.0)
    told.reply(1)
    assert due_in(told, "a") == pytest.approx(10.0)


def test_a_call_that_waits_in_the_queue_does_not_wait_for_it_either() -> None:
    told = Told(pool_size=1).handshake()
    told.call("a", timeout=1000.0)
    told.call("b", timeout=30.0)
    told.asked(1, ELICIT)
    assert told.after(30.0) == ["b: timed_out timeout"]


def test_a_call_without_a_handler_for_the_question_does_not_stand_still() -> None:
    told = Told(asked_methods=frozenset()).handshake()
    told.call("a", timeout=30.0)
    told.asked(1, ELICIT)
    assert told.after(30.0)[-1] == "a: timed_out timeout (maybe done)"


# -- progress -------------------------------------------------------------------------------------


def progress(told: Told, token: object, value: object, **more: object) -> list[str]:
    return told.says("notifications/progress", {"progressToken": token, "progress": value, **more})


def test_progress_reaches_the_call_that_wants_it() -> None:
    """MCP basic/utilities/progress."""
    told = Told().stateless()
    told.call("a", wants_progress=True)
    meta = told.params(2)["_meta"]
    assert isinstance(meta, dict)
    assert meta["progressToken"] == 2
    assert progress(told, 2, 0.5, total=2, message="half") == ["a: progress 0.5 of 2.0"]
    assert told.effects == [Progressed(told.ticket("a"), 0.5, 2.0, "half")]
    progress(told, 2, 1, total="two", message=7)
    assert told.effects == [Progressed(told.ticket("a"), 1.0, None, None)]


@pytest.mark.parametrize("value", [0.5, 0, -1, True, "1", None, math.nan, math.inf, [1]])
def test_progress_that_does_not_increase_is_dropped(value: object) -> None:
    """BC-177; MCP basic/utilities/progress: it must increase."""
    told = Told().stateless()
    told.call("a", wants_progress=True)
    progress(told, 2, 0.5)
    assert progress(told, 2, value) == []
    assert told.records() == ["stray_progress"]


@pytest.mark.parametrize("token", [3, "2", 2.0, True, None, [2]])
def test_progress_of_nothing_we_know_is_dropped(token: object) -> None:
    told = Told().stateless()
    told.call("a", wants_progress=True)
    told.call("b")
    assert progress(told, token, 1) == []
    assert told.records() == ["stray_progress"]


def test_progress_after_the_result_is_dropped() -> None:
    """BC-177: in order with the answers."""
    told = Told().stateless()
    told.call("a", wants_progress=True)
    assert progress(told, 2, 1) == ["a: progress 1.0"]
    told.result(2, {})
    assert progress(told, 2, 2) == []


def test_progress_in_another_exchange_is_dropped() -> None:
    told = Told("http").stateless()
    told.call("a", wants_progress=True)
    params: JSONObject = {"progressToken": 2, "progress": 1}
    assert told.says("notifications/progress", params, about=3) == []
    assert told.says("notifications/progress", params, about=2) == ["a: progress 1.0"]


def test_progress_of_a_notification_or_a_subscription_is_none() -> None:
    told = Told().stateless()
    told.notify()
    told.listen("a")
    assert progress(told, 2, 1) == progress(told, 3, 1) == []


def test_a_new_round_begins_its_progress_anew() -> None:
    """It is a request of its own, with a token of its own."""
    told = Told().stateless()
    told.call("a", wants_progress=True)
    progress(told, 2, 9)
    told.result(2, {"resultType": "input_required", "requestState": "s"})
    assert progress(told, 3, 1) == ["a: progress 1.0"]


def test_progress_gives_time_only_to_calls_with_a_max_timeout() -> None:
    """ours: ADR-0026."""
    told = Told().stateless()
    told.call("a", wants_progress=True, timeout=30.0)
    told.call("b", wants_progress=True, timeout=30.0, max_timeout=70.0)
    told.after(20.0)
    progress(told, 2, 1)
    progress(told, 3, 1)
    assert (due_in(told, "a"), due_in(told, "b")) == (10.0, 30.0)
    told.after(29.0)
    progress(told, 3, 2)
    assert due_in(told, "b") == pytest.approx(21.0)
    assert told.after(21.0)[-1] == "b: timed_out timeout (maybe done)"


def test_progress_takes_no_time_from_a_call_whose_user_is_asked() -> None:
    """ours: ADR-0026."""
    told = Told().handshake()
    told.call("a", wants_progress=True, timeout=30.0, max_timeout=60.0)
    told.asked(1, ELICIT)
    progress(told, 4, 1)
    assert told.after(150.0) == []
    told.reply(1)
    assert due_in(told, "a") == 30.0
    told.after(10.0)
    progress(told, 4, 2)
    assert due_in(told, "a") == 20.0


# -- other notifications --------------------------------------------------------------------------


def test_a_notification_is_delivered() -> None:
    told = Told().stateless()
    assert told.says("notifications/tools/list_changed") == [
        "deliver notifications/tools/list_changed"
    ]
    assert told.effects == [Deliver("notifications/tools/list_changed", {}, None)]


def test_a_notification_of_a_subscription_says_of_which() -> None:
    """MCP 2026-07-28 basic/patterns/subscriptions."""
    told = Told().stateless()
    told.listen("a")
    meta: JSONObject = {"_meta": {META_SUBSCRIPTION_ID: 2}}
    assert told.says("notifications/tools/list_changed", meta) == [
        "deliver notifications/tools/list_changed to a"
    ]
    for other in (True, "2", 3, None):
        meta = {"_meta": {META_SUBSCRIPTION_ID: other}}
        assert told.says("x/y", meta) == ["deliver x/y"]


def test_a_notification_of_an_exchange_says_of_which_call() -> None:
    told = Told("http").stateless()
    told.call("a")
    told.notify()
    assert told.says("notifications/message", {}, about=2) == ["deliver notifications/message to a"]
    assert told.says("notifications/message", {}, about=3) == ["deliver notifications/message"]
    assert told.says("notifications/message", {}, about=9) == ["deliver notifications/message"]


def test_an_acknowledged_subscription_has_no_deadline() -> None:
    told = Told().stateless()
    told.listen("a")
    params: JSONObject = {
        "_meta": {META_SUBSCRIPTION_ID: 2},
        "notifications": {"toolsListChanged": True},
    }
    acknowledged = "notifications/subscriptions/acknowledged"
    assert told.says(acknowledged, {"notifications": {}}) == []
    assert told.says(acknowledged, params) == ["a: acknowledged"]
    assert told.says(acknowledged, {**params, "notifications": 7}) == ["a: acknowledged"]
    assert told.after(1e6) == []


def test_a_server_may_end_a_subscription() -> None:
    """MCP 2026-07-28 basic/utilities/cancellation."""
    told = Told().stateless()
    told.listen("a")
    told.call("b")
    assert told.says("notifications/cancelled", {"requestId": 3}) == []
    assert told.says("notifications/cancelled", {"requestId": True}) == []
    assert told.says("notifications/cancelled", {"requestId": 2}) == ["a: result"]


# -- nonsense -------------------------------------------------------------------------------------


def test_a_request_that_is_none_is_answered_with_its_error() -> None:
    told = Told().handshake()
    assert told.received(Invalid(Failure("x", -32602, "no"))) == ["send 4 error -32602 of x"]
    assert told.records() == ["stray_message"]


def test_what_has_no_id_is_counted_and_dropped() -> None:
    """client-behaviour check 47."""
    told = Told().handshake()
    assert told.received(Invalid(Failure(None, -32700, "no"))) == []
    assert told.received(Ignored("blank line")) == []
    assert told.records() == ["stray_message"]
