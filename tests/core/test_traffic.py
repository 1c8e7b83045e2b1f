"""Requests: sent, queued, answered, asked back about, and given up."""

from __future__ import annotations

import pytest

from raxol_mcp.core.tickets import TicketState
from raxol_mcp.core.window import Policy
from raxol_mcp.errors import Reason
from raxol_mcp.wire.jsonrpc import Failure, JSONObject, Response
from raxol_mcp.wire.meta import META_VERSION
from tests.core.client_support import ASK, Told
from tests.promises import promise

RESET = Reason("transport", "reset", maybe_done=True)
INPUT: JSONObject = {"resultType": "input_required", "inputRequests": ASK}
ANSWER: JSONObject = {"k": {"action": "accept", "content": {}}}


# -- the window -----------------------------------------------------------------------------------


@promise("window.serialized", "window.queue", "window.busy")
def test_a_serialized_server_has_one_request_and_the_rest_wait_in_order() -> None:
    """client-behaviour check 22; BC-169."""
    told = Told("http", policy=Policy.SERIALIZED, queue_limit=2).handshake()
    assert told.call("a") == ["send 4 tools/call"]
    assert told.call("b") == []
    assert told.call("c") == []
    assert told.call("d", timeout=1e9) == ["d: busy busy"]
    assert told.result(4, {}) == ["a: result", "send 5 tools/call"]
    assert told.params(5) == {"name": "b"}
    assert told.result(5, {}) == ["b: result", "send 6 tools/call"]
    assert told.result(6, {}) == ["c: result"]
    assert repr(told.core.ledger.window) == "serialized 0/1 held, 0 queued"


@promise("window.finite")
@pytest.mark.parametrize("policy", list(Policy))
def test_every_policy_has_a_bound(policy: Policy) -> None:
    """client-behaviour check 23."""
    told = Told(policy=policy, pool_size=2, queue_limit=1).stateless()
    lines = [told.call(letter) for letter in "abcd"]
    sent = 1 if policy is Policy.SERIALIZED else 2
    assert sum(line[:1] != [] and line[0].startswith("send") for line in lines) == sent
    assert lines[-1] == ["d: busy busy"]


def test_a_handshake_over_http_shares_a_session_and_a_pipe_does_not() -> None:
    """ours: ADR-0025."""
    assert Told("http").handshake().core.ledger.window.policy is Policy.POOLED
    assert Told("http").stateless().core.ledger.window.policy is Policy.STATELESS
    assert Told().handshake().core.ledger.window.policy is Policy.STATELESS


def test_who_comes_while_others_wait_waits_behind_them() -> None:
    told = Told("http", pool_size=1).handshake()
    told.call("a")
    told.failed(4, Reason("session_rejected"))
    assert told.call("b") == []
    told.failed(5, Reason("http", 404))
    told.result(6, {"protocolVersion": "2025-11-25"})
    assert told.sent(7)[-1] == "send 8 tools/call"
    assert told.call("c") == []


def test_a_notification_holds_a_slot_until_it_is_delivered() -> None:
    """client-behaviour check 28, for a notification of the user's."""
    told = Told("http", policy=Policy.SERIALIZED).handshake()
    assert told.notify() == ["send 4 notifications/x"]
    assert told.call("a") == []
    assert told.sent(4) == ["send 5 tools/call"]
    assert told.notify() == ["send 6 notifications/x"]
    assert told.result(5, {}) == ["a: result"]
    told.call("b")
    assert told.failed(6, Reason("http", 500)) == ["send 7 tools/call"]
    assert told.records() == ["notification_failed"]


def test_a_notification_that_is_never_delivered_gives_its_slot_back() -> None:
    told = Told(policy=Policy.SERIALIZED, call_timeout=5.0).stateless()
    told.notify()
    told.call("a")
    assert told.after(5.0) == ["send 3 tools/call"]


def test_a_rejected_notification_greets_again() -> None:
    """client-behaviour 6.5."""
    told = Told("http").handshake()
    told.notify()
    assert told.failed(4, Reason("session_rejected")) == ["send 5 server/discover"]


# -- timers ---------------------------------------------------------------------------------------


@promise("window.timer", "window.dropped")
def test_a_server_that_says_nothing_is_answered_for() -> None:
    """client-behaviour checks 24, 67; BC-099."""
    told = Told().stateless()
    told.call("a")
    assert told.after(29.9) == []
    assert told.after(0.1) == [
        "send 3 notifications/cancelled",
        "abort 2",
        "a: timed_out timeout (maybe done)",
    ]
    assert told.core.ledger.window.held == {}
    assert told.result(2, {"late": True}) == []
    assert told.records() == ["stray_answer"]
    assert told.call("b") == ["send 4 tools/call"]


def test_waiting_and_running_share_one_timeout() -> None:
    """client-behaviour checks 25, 26."""
    told = Told(policy=Policy.SERIALIZED).stateless()
    told.call("a", timeout=20.0)
    told.call("b", timeout=30.0)
    told.call("c", timeout=10.0)
    assert told.after(10.0) == ["c: timed_out timeout"]
    assert told.after(10.0)[-2:] == ["a: timed_out timeout (maybe done)", "send 4 tools/call"]
    assert told.after(10.0)[-1] == "b: timed_out timeout (maybe done)"


def test_a_handshake_server_is_told_of_a_timeout_on_every_transport() -> None:
    """MCP basic/utilities/cancellation."""
    told = Told("http").handshake()
    told.call("a")
    assert told.after(30.0)[:2] == ["send 5 notifications/cancelled", "abort 4"]
    assert told.params(5) == {"requestId": 4, "reason": "timed out"}


def test_a_stateless_pipe_is_told_with_the_metadata_of_its_era() -> None:
    told = Told().stateless()
    told.call("a")
    told.abandon("a")
    meta = told.params(3)["_meta"]
    assert isinstance(meta, dict)
    assert meta[META_VERSION] == "2026-07-28"
    assert told.params(3)["requestId"] == 2
    assert told.params(3)["reason"] == "the caller went away"


def test_a_stateless_server_over_http_is_told_by_the_closed_stream() -> None:
    """MCP 2026-07-28 basic/utilities/cancellation."""
    told = Told("http").stateless()
    told.call("a")
    assert told.after(30.0) == ["abort 2", "a: timed_out timeout (maybe done)"]


# -- answers --------------------------------------------------------------------------------------


def test_an_answer_is_read_by_what_was_asked() -> None:
    """client-behaviour check 45: never by its shape."""
    told = Told().stateless()
    told.call("a")
    assert told.result(2, {"tools": []}) == ["a: result"]


@pytest.mark.parametrize("result", [None, "ok", 7, True, []])
def test_a_result_that_is_no_object_is_unusable(result: object) -> None:
    """client-behaviour check 46: the slot is free."""
    told = Told(pool_size=1).stateless()
    told.call("a")
    told.call("b")
    assert told.result(2, result) == [
        "a: failed invalid_response tools/call (maybe done)",
        "send 3 tools/call",
    ]


def test_an_error_is_the_callers_as_it_came() -> None:
    told = Told().stateless()
    told.call("a")
    assert told.error(2, -32602, {"why": 1}) == ["a: error jsonrpc -32602"]
    assert told.reason().error == {"code": -32602, "message": "no", "data": {"why": 1}}


def test_an_error_of_the_body_counts_more_than_the_status() -> None:
    told = Told("http").stateless()
    told.call("a")
    error: JSONObject = {"code": -32601, "message": "no"}
    assert told.failed(2, Reason("http", 404, error=error)) == ["a: error http 404"]
    assert told.core.session.usable


@pytest.mark.parametrize("key", [True, 1.0, "2", 99, 0, -2, [2]])
def test_what_answers_no_request_is_counted_and_dropped(key: object) -> None:
    """BC-099; JSON-RPC 2.0 §5."""
    told = Told().stateless()
    told.call("a")
    assert told.received(Response(key, {})) == []  # type: ignore[arg-type]  # an id that is none
    assert told.records() == ["stray_answer"]


def test_a_second_answer_is_a_stray_one() -> None:
    told = Told().stateless()
    told.call("a")
    told.result(2, {})
    assert told.result(2, {}) == []
    assert told.records() == ["stray_answer"]


def test_an_answer_in_another_exchange_is_none() -> None:
    """client-behaviour B9: or it would settle the wrong exchange's caller."""
    told = Told("http").stateless()
    told.call("a")
    told.call("b")
    assert told.result(2, {}, about=3) == []
    assert told.result(2, {}, about=2) == ["a: result"]


def test_an_error_without_an_id_belongs_to_its_exchange() -> None:
    told = Told("http").stateless()
    told.call("a")
    assert told.error(None, -32700) == []
    assert told.records() == ["stray_answer"]
    assert told.received(Failure(None, -32700, "no"), about=2) == ["a: error jsonrpc -32700"]


def test_a_notification_is_answered_by_nothing() -> None:
    told = Told().stateless()
    told.notify()
    assert told.result(2, {}) == []
    assert told.records() == ["stray_answer"]


@pytest.mark.parametrize("kind", ["complete", None])
def test_a_complete_result_is_one(kind: str | None) -> None:
    """BC-117; MCP 2026-07-28 basic §Result responses: absent is complete."""
    told = Told().stateless()
    told.call("a")
    result: JSONObject = {} if kind is None else {"resultType": kind}
    assert told.result(2, result) == ["a: result"]


@pytest.mark.parametrize("kind", ["future_kind", 7, None, "Complete", True])
def test_a_result_of_an_unknown_type_is_unusable(kind: object) -> None:
    """BC-117."""
    told = Told().stateless()
    told.call("a")
    lines = told.result(2, {"resultType": kind})
    assert lines == ["a: failed invalid_response tools/call (maybe done)"]
    assert told.core.session.usable


def test_the_handshake_era_has_no_result_types() -> None:
    told = Told().handshake()
    told.call("a")
    assert told.result(4, {"resultType": "input_required"}) == ["a: result"]


def test_only_some_methods_may_be_asked_back_about() -> None:
    """BC-117; MCP 2026-07-28 basic/patterns/mrtr §Supported requests."""
    told = Told().stateless()
    told.call("a", "tools/list")
    assert told.result(2, INPUT) == ["a: failed invalid_response tools/list (maybe done)"]


# -- failures -------------------------------------------------------------------------------------


def test_a_failure_is_the_callers_and_nothing_is_sent_again() -> None:
    """BC-179; client-behaviour check 35."""
    told = Told("http").stateless()
    told.call("a")
    assert told.failed(2, RESET) == ["a: failed transport reset (maybe done)"]
    assert told.failed(2, RESET) == []
    assert told.failed(77, RESET) == []


@pytest.mark.parametrize("status", [400, 404, 405])
def test_a_stateless_server_that_answers_as_none_could_is_greeted_again(status: int) -> None:
    """ours: ADR-0023."""
    told = Told("http").stateless()
    told.call("a")
    assert told.failed(2, Reason("http", status)) == [
        f"a: failed http {status}",
        "send 3 server/discover",
    ]
    assert len(told.verdicts) == 0


def test_only_the_first_to_find_out_has_it_greeted_again() -> None:
    """client-behaviour check 40."""
    told = Told("http").stateless()
    told.call("a")
    told.call("b")
    told.failed(2, Reason("http", 404))
    assert told.failed(3, Reason("http", 404)) == ["b: failed http 404"]


def test_other_statuses_leave_the_session_alone() -> None:
    told = Told("http").stateless()
    for number, status in enumerate((401, 403, 406, 415, 429, 500, 503), 2):
        told.call("abcdefg"[number - 2])
        told.failed(number, Reason("http", status))
        assert told.core.session.usable
    told = Told("http").handshake()
    told.call("a")
    told.failed(4, Reason("http", 404))
    assert told.core.session.usable


def test_a_version_that_is_no_longer_spoken_is_found_out_anew() -> None:
    told = Told().stateless()
    told.call("a")
    assert told.error(2, -32022) == ["a: error jsonrpc -32022", "send 3 server/discover"]
    told = Told("http").stateless()
    told.call("a")
    error: JSONObject = {"code": -32022, "message": "no"}
    assert told.failed(2, Reason("http", 400, error=error))[-1] == "send 3 server/discover"
    told = Told().handshake()
    told.call("a")
    assert told.error(4, -32022) == ["a: error jsonrpc -32022"]


def test_a_server_that_discovers_well_and_refuses_every_version_is_given_up() -> None:
    """ours: ADR-0027: such a refusal is no result, so it does not make rejections count anew."""
    told = Told().stateless()
    for letter in "abc":
        told.call(letter)
        told.error(told.core.ledger.last_key, -32022)
        told.result(told.core.ledger.last_key, {"supportedVersions": ["2026-07-28"]})
        assert told.core.session.usable
    told.call("d")
    assert told.error(told.core.ledger.last_key, -32022)[-1] == "close 1"


def test_a_lost_connection_says_of_each_request_whether_it_may_have_been_done() -> None:
    """BC-179; client-behaviour check 38."""
    told = Told(pool_size=1, max_listening=1).stateless()
    told.call("asked", "prompts/get")
    told.result(2, INPUT)
    told.call("sent")
    told.call("queued")
    told.listen("listening")
    told.notify()
    reason = Reason("http", 503, retry_after=7.0, text="later")
    lines = told.told(told.core.lost(1, reason, told.now))
    assert lines == [
        "sent: lost http 503 (maybe done)",
        "listening: lost http 503 (maybe done)",
        "asked: lost http 503 (maybe done)",
        "queued: lost http 503",
        "close 1",
    ]
    assert told.core.ledger.window.held == {}
    assert told.call("next") == ["next: connect_failed http 503"]


def test_a_lost_connection_withdraws_what_the_server_asked() -> None:
    told = Told("http").handshake()
    told.call("a")
    told.asked(1, "roots/list", about=4)
    assert told.lost() == ["withdraw 1", "a: lost transport closed (maybe done)", "close 1"]


def test_what_the_server_said_of_the_loss_is_kept() -> None:
    told = Told("http").stateless()
    told.call("a")
    reason = Reason("http", 503, retry_after=7.0, text="later", cause=Reason("busy"))
    told.told(told.core.lost(1, reason, told.now))
    said = told.reason()
    assert (said.retry_after, said.text, said.path) == (7.0, "later", ("http", 503, "busy"))


# -- abandoned ------------------------------------------------------------------------------------


def test_a_caller_that_goes_away_takes_its_request_along() -> None:
    """client-behaviour check 29, as MCP basic/utilities/cancellation has it."""
    told = Told(pool_size=1).stateless()
    told.call("sent")
    told.call("queued")
    assert told.abandon("sent") == [
        "send 3 notifications/cancelled",
        "abort 2",
        "send 4 tools/call",
    ]
    assert told.abandon("sent") == []
    assert told.result(2, {}) == []
    told.call("waiting")
    assert told.abandon("waiting") == []
    assert told.result(4, {}) == ["queued: result"]


def test_a_caller_may_go_away_while_the_user_thinks() -> None:
    told = Told().stateless()
    told.call("a")
    told.result(2, INPUT)
    assert told.abandon("a") == []
    assert told.resume("a", ANSWER) == []
    assert told.core.ledger.answering == {}


# -- paying ---------------------------------------------------------------------------------------


class Till:
    """Takes one reservation; counts how often it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, object, float]] = []

    def __call__(self, tool: str, reservation: object, now: float) -> Reason | None:
        self.asked.append((tool, reservation, now))
        return None if reservation == "good" else Reason("unmetered_call")


@promise("call.unmetered")
def test_an_unpaid_call_is_not_sent() -> None:
    """client-behaviour check 65."""
    told = Told(payment=Till()).stateless()
    assert told.call("a") == ["a: unpaid unmetered_call"]
    assert told.call("b", reservation="good") == ["send 2 tools/call"]
    assert told.core.ledger.window.held.keys() == {2}


def test_a_call_is_paid_for_when_it_is_sent_and_not_before() -> None:
    """client-behaviour 12: a queue that was too long has cost nothing."""
    till = Till()
    told = Told(payment=till, pool_size=1, queue_limit=2).stateless()
    told.call("first", "tools/list")
    told.call("paid", reservation="good")
    told.call("unpaid")
    assert told.call("busy", reservation="good") == ["busy: busy busy"]
    assert till.asked == []
    assert told.result(2, {}) == ["first: result", "send 3 tools/call"]
    assert till.asked == [("paid", "good", told.now)]
    told.call("last", "tools/list")
    assert told.result(3, {}) == [
        "paid: result",
        "unpaid: unpaid unmetered_call",
        "send 4 tools/list",
    ]


def test_a_round_is_not_paid_for_again() -> None:
    till = Till()
    told = Told(payment=till).stateless()
    told.call("a", reservation="good")
    told.result(2, INPUT)
    assert told.resume("a", ANSWER) == ["send 3 tools/call"]
    assert len(till.asked) == 1


def test_a_call_without_a_name_is_one_of_no_tool() -> None:
    till = Till()
    told = Told(payment=till).stateless()
    told.call("a", params=None)
    assert till.asked[0][0] == "None"


# -- rounds (MCP 2026-07-28 basic/patterns/mrtr) --------------------------------------------------


def test_a_request_that_is_asked_back_about_is_sent_again_with_the_answers() -> None:
    told = Told().stateless()
    told.call("a", params={"name": "x", "arguments": {"n": 1}})
    assert told.result(2, INPUT) == ["a: ask k"]
    assert told.core.ledger.window.held == {}
    assert told.resume("a", ANSWER) == ["send 3 tools/call"]
    assert told.params(3)["inputResponses"] == ANSWER
    assert told.params(3)["name"] == "x"
    assert "requestState" not in told.params(3)
    assert told.result(3, {}) == ["a: result"]


def test_the_state_goes_back_as_it_came_and_only_there() -> None:
    """BC-115."""
    state = " eyJ+/=é\n "
    told = Told().stateless()
    told.call("a")
    told.call("b")
    told.result(2, {**INPUT, "requestState": state})
    told.result(3, INPUT)
    told.resume("b", {"k": 2})
    told.resume("a", {"k": 1})
    assert "requestState" not in told.params(4)
    assert told.params(5)["requestState"] == state
    assert (told.params(4)["inputResponses"], told.params(5)["inputResponses"]) == (
        {"k": 2},
        {"k": 1},
    )
    told.call("c")
    assert not {"requestState", "inputResponses"} & told.params(6).keys()


def test_a_later_round_forgets_what_an_earlier_one_said() -> None:
    """BC-115: none is sent when none was given."""
    told = Told().stateless()
    told.call("a")
    told.result(2, {**INPUT, "requestState": "one"})
    told.resume("a", ANSWER)
    assert told.result(3, INPUT) == ["a: ask k"]
    told.resume("a", {"k": 2})
    assert "requestState" not in told.params(4)
    assert told.params(4)["inputResponses"] == {"k": 2}


@pytest.mark.parametrize("requests", [None, {}])
def test_a_state_alone_goes_back_at_once(requests: JSONObject | None) -> None:
    told = Told().stateless()
    told.call("a")
    asked: JSONObject = {"resultType": "input_required", "requestState": ""}
    if requests is not None:
        asked["inputRequests"] = requests
    assert told.result(2, asked) == ["send 3 tools/call"]
    assert told.params(3)["requestState"] == ""
    assert "inputResponses" not in told.params(3)


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"requestState": 7},
        {"inputRequests": ASK, "requestState": 7},
        {"inputRequests": [1]},
        {"inputRequests": "k"},
        {"inputRequests": {"k": 1}},
        {"inputRequests": {"k": {}}},
        {"inputRequests": {"k": {"method": ["roots/list"]}}},
        {"inputRequests": {"k": {"method": {}}}},
        {"inputRequests": {"k": {"method": "tools/call"}}},
        {"inputRequests": {"k": {"method": "sampling/createMessage"}}},
        {"inputRequests": {str(number): ASK["k"] for number in range(33)}},
    ],
)
def test_a_round_that_cannot_be_answered_is_unusable(asked: JSONObject) -> None:
    """MCP: what was not declared may not be asked."""
    told = Told().stateless()
    told.call("a")
    assert told.result(2, {"resultType": "input_required", **asked}) == [
        "a: failed invalid_response tools/call (maybe done)"
    ]
    assert told.reason().text


def test_thirty_two_questions_are_not_too_many() -> None:
    told = Told().stateless()
    told.call("a")
    requests = {str(number): ASK["k"] for number in range(32)}
    lines = told.result(2, {"resultType": "input_required", "inputRequests": requests})
    assert lines[0].startswith("a: ask 0,1,")


def test_rounds_are_bounded() -> None:
    told = Told(max_rounds=2).stateless()
    told.call("a")
    state: JSONObject = {"resultType": "input_required", "requestState": "more"}
    assert told.result(2, state) == ["send 3 tools/call"]
    assert told.result(3, state) == ["send 4 tools/call"]
    assert told.result(4, state) == ["a: failed invalid_response tools/call (maybe done)"]


def test_so_is_how_many_wait_for_the_user() -> None:
    """A call that asks the user for nothing is not one of them."""
    told = Told(max_answering=1).stateless()
    told.call("a")
    told.call("b")
    told.call("c")
    assert told.result(2, INPUT) == ["a: ask k"]
    assert told.result(3, INPUT) == ["b: failed invalid_response tools/call (maybe done)"]
    state: JSONObject = {"resultType": "input_required", "requestState": "s"}
    assert told.result(4, state) == ["send 5 tools/call"]


def test_who_comes_back_waits_in_front_and_is_never_refused() -> None:
    """ours: ADR-0025."""
    told = Told(pool_size=1, queue_limit=1).stateless()
    told.call("a")
    told.result(2, INPUT)
    told.call("b")
    told.call("c")
    assert told.resume("a", ANSWER) == []
    assert told.core.ledger.window.queued == 2
    assert told.result(3, {}) == ["b: result", "send 4 tools/call"]
    assert told.params(4)["inputResponses"] == ANSWER


def test_a_round_has_its_whole_timeout_again() -> None:
    told = Told().stateless()
    told.call("a")
    told.after(29.0)
    told.result(2, INPUT)
    assert told.after(250.0) == []
    told.resume("a", ANSWER)
    assert told.after(29.9) == []
    assert told.after(0.1)[-1] == "a: timed_out timeout (maybe done)"


def test_a_user_has_answer_timeout_to_answer() -> None:
    told = Told(answer_timeout=50.0).stateless()
    told.call("a")
    told.result(2, INPUT)
    assert told.after(49.9) == []
    assert told.after(0.1) == ["a: timed_out timeout (maybe done)"]
    assert told.resume("a", ANSWER) == []


def test_a_round_that_waits_in_the_queue_may_have_been_done() -> None:
    told = Told(pool_size=1).stateless()
    told.call("a")
    told.result(2, INPUT)
    told.call("b", timeout=1e6)
    told.resume("a", ANSWER)
    assert told.after(30.0) == ["a: timed_out timeout (maybe done)"]
    told.call("c")
    told.result(3, INPUT)
    told.call("d", timeout=1e6)
    told.resume("b", ANSWER)
    assert told.lost() == [
        "c: lost transport closed (maybe done)",
        "b: lost transport closed (maybe done)",
        "d: lost transport closed",
        "close 1",
    ]


def test_a_user_who_cannot_answer_fails_the_call() -> None:
    told = Told().stateless()
    told.call("a")
    told.result(2, INPUT)
    reason = Reason("not_answered", "elicitation/create")
    assert told.resume("a", reason) == ["a: failed not_answered elicitation/create"]
    assert told.resume("a", ANSWER) == []


def test_an_answer_after_the_connection_is_lost_is_dropped() -> None:
    told = Told().stateless()
    told.call("a")
    told.result(2, INPUT)
    told.lost()
    assert told.resume("a", ANSWER) == []


def test_a_round_in_a_new_session_is_sent_when_that_is_there() -> None:
    told = Told("http").stateless()
    told.call("a")
    told.call("b")
    told.result(2, INPUT)
    told.failed(3, Reason("http", 404))
    assert told.resume("a", ANSWER) == []
    assert told.ticket("a").state is TicketState.QUEUED
    assert told.result(4, {"supportedVersions": ["2026-07-28"]})[-1] == "send 5 tools/call"


# -- listening (MCP 2026-07-28 basic/patterns/subscriptions) --------------------------------------


def test_a_subscription_holds_no_slot_and_there_are_few() -> None:
    """ours: ADR-0025."""
    told = Told(pool_size=1, max_listening=2).stateless()
    assert told.listen("a") == ["send 2 subscriptions/listen"]
    assert told.listen("b") == ["send 3 subscriptions/listen"]
    assert told.listen("c") == ["c: busy busy"]
    assert told.call("d") == ["send 4 tools/call"]
    told.result(2, {})
    assert told.listen("e") == ["send 5 subscriptions/listen"]


def test_a_subscription_that_is_not_acknowledged_times_out() -> None:
    told = Told().stateless()
    told.listen("a")
    assert told.after(30.0) == [
        "send 3 notifications/cancelled",
        "abort 2",
        "a: timed_out timeout (maybe done)",
    ]


def test_a_subscription_ends_by_its_answer_an_error_or_its_caller() -> None:
    told = Told("http").stateless()
    for letter in "abcd":
        told.listen(letter)
    assert told.result(2, {}) == ["a: result"]
    assert told.error(3, -32601) == ["b: error jsonrpc -32601"]
    assert told.failed(4, RESET) == ["c: failed transport reset (maybe done)"]
    assert told.abandon("d") == ["abort 5"]
    assert told.core.ledger.listening == {}


@pytest.mark.parametrize("status", [400, 404, 405])
def test_a_server_without_subscriptions_or_notifications_is_no_other_server(status: int) -> None:
    """Not every one has them; to greet it again would end every session it has."""
    told = Told("http").stateless()
    told.listen("a")
    assert told.failed(2, Reason("http", status)) == [f"a: failed http {status}"]
    assert told.core.session.usable
    told.notify()
    assert told.failed(3, Reason("http", status)) == []
    assert told.core.session.usable


def test_a_subscription_does_not_wait_for_a_session() -> None:
    told = Told("http").stateless()
    told.call("a")
    told.failed(2, Reason("http", 404))
    assert told.listen("b") == ["b: not_ready not_ready ready"]
