"""The client's machine as its shell sees it: inputs, stale links, batches, time."""

from __future__ import annotations

import pytest

from raxol_mcp.core.client import ClientCore
from raxol_mcp.core.client_effects import Send
from raxol_mcp.core.tickets import Ticket
from raxol_mcp.core.verdicts import Verdicts
from raxol_mcp.core.window import Policy
from raxol_mcp.errors import LocalProtocolError, Reason
from raxol_mcp.wire.jsonrpc import (
    Batch,
    Failure,
    Ignored,
    Invalid,
    Message,
    Notification,
    Request,
    Response,
)
from tests.core.client_support import ASK, DISCOVERED, Told, options
from tests.promises import promise

CHANGED = Notification("notifications/tools/list_changed", {})


# -- the shell ------------------------------------------------------------------------------------


def test_a_client_is_started_once() -> None:
    told = Told()
    told.start()
    with pytest.raises(LocalProtocolError):
        told.start()


def test_a_client_that_was_stopped_is_not_started() -> None:
    told = Told()
    told.stop()
    with pytest.raises(LocalProtocolError):
        told.start()


def test_a_ticket_is_submitted_once() -> None:
    told = Told().stateless()
    told.call("a")
    with pytest.raises(LocalProtocolError):
        told.core.submitted(told.ticket("a"), told.now)


def test_a_ticket_that_was_never_submitted_may_be_abandoned() -> None:
    told = Told().stateless()
    ticket = Ticket("x", timeout=1.0)
    assert told.core.abandoned(ticket, told.now) == []
    with pytest.raises(LocalProtocolError):
        told.core.submitted(ticket, told.now)


def test_the_representation_shows_where_a_client_stands() -> None:
    told = Told().stateless()
    told.call("a")
    assert repr(told.core) == (
        "<ClientCore ready | stateless 1/8 held, 0 queued | "
        "0 answering, 0 listening, 0 asked, 0 waiters | 1 deadlines>"
    )


@promise("client.one_machine")
@pytest.mark.parametrize("kind", ["stdio", "http", "memory", "another"])
def test_the_machine_is_the_same_over_every_transport(kind: str) -> None:
    told = Told(kind).handshake()
    told.call("a")
    assert told.result(4, {}) == ["a: result"]
    assert told.lost() == ["close 1"]


# -- links that are no longer there ---------------------------------------------------------------


def test_what_an_earlier_link_says_is_not_heard() -> None:
    told = Told().stateless()
    told.lost()
    told.after(1.0)
    told.opened()
    told.call("a")
    told.result(2, DISCOVERED)
    told.call("b")
    key = told.core.ledger.last_key
    told.notify()
    for attempt in (0, 1, 3):
        assert told.received(Response(key, {}), attempt=attempt) == []
        assert told.failed(key, Reason("http", 500), attempt=attempt) == []
        assert told.sent(key + 1, attempt=attempt) == []
        assert told.lost(attempt=attempt) == []
        assert told.told(told.core.opened(attempt, told.now)) == []
    assert told.result(key, {}) == ["b: result"]


def test_a_link_that_is_not_open_yet_says_nothing() -> None:
    told = Told()
    told.start()
    assert told.result(1, DISCOVERED) == []
    assert told.failed(1, Reason("http", 500)) == []
    assert told.sent(1) == []


def test_a_link_opens_once() -> None:
    told = Told().until_probed()
    assert told.opened() == []


def test_a_link_that_was_closed_is_not_heard_when_it_is_over() -> None:
    told = Told()
    told.start()
    told.lost()
    assert told.lost() == []
    assert told.opened() == []


def test_nothing_is_done_after_the_end() -> None:
    told = Told().stateless()
    told.call("a")
    told.stop()
    for lines in (
        told.result(2, {}),
        told.failed(2, Reason("http", 500)),
        told.sent(2),
        told.lost(),
        told.opened(),
        told.abandon("a"),
        told.after(1e6),
    ):
        assert lines == []


def test_keys_are_never_used_again() -> None:
    """JSON-RPC 2.0 §4: nor on the next link, where a late answer could meet them."""
    told = Told().stateless()
    for letter in "abc":
        told.call(letter)
        told.lost()
        told.after(told.core.session.retry_at - told.now if told.core.session.retry_at else 0.0)
        told.opened()
        told.result(told.core.ledger.last_key, DISCOVERED)
    assert sorted(told.sent_messages) == list(range(1, len(told.sent_messages) + 1))


# -- answers of greetings and of requests ---------------------------------------------------------


@pytest.mark.parametrize("key", [True, "1", 1.0])
def test_a_greeting_is_answered_by_its_id_alone(key: object) -> None:
    told = Told().until_probed()
    assert told.received(Response(key, DISCOVERED)) == []  # type: ignore[arg-type]  # an id that is none
    assert told.records() == ["stray_answer"]


def test_a_greeting_is_not_answered_in_another_exchange() -> None:
    told = Told("http").until_probed()
    assert told.result(1, DISCOVERED, about=9) == []
    assert told.result(1, DISCOVERED, about=1) != []


def test_a_greeting_may_be_refused_without_an_id_in_its_exchange() -> None:
    told = Told("http").until_probed()
    assert told.received(Failure(None, -32700, "what?")) == []
    assert told.received(Failure(None, -32700, "what?"), about=1) == ["send 2 initialize"]


# -- batches (MCP 2025-03-26) ---------------------------------------------------------------------


def test_a_batch_is_taken_in_its_order_where_there_are_batches() -> None:
    told = Told().handshake("2025-03-26")
    told.call("a", wants_progress=True)
    messages: list[Message] = [
        CHANGED,
        Notification("notifications/progress", {"progressToken": 4, "progress": 1}),
        Response(4, {}),
        Request("q", "elicitation/create"),
        Invalid(Failure(None, -32600, "no")),
        Ignored("no"),
    ]
    assert told.received(Batch(messages)) == [
        "deliver notifications/tools/list_changed",
        "a: progress 1.0",
        "a: result",
        "handle q",
    ]


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18", "2025-11-25", None])
def test_elsewhere_a_batch_is_counted_and_dropped(version: str | None) -> None:
    """client-behaviour check 47; rulings, Messages."""
    told = Told().stateless() if version is None else Told().handshake(version)
    assert told.received(Batch([CHANGED])) == []
    assert told.records() == ["stray_message"]


def test_before_a_version_is_agreed_there_are_no_batches() -> None:
    told = Told().until_probed()
    assert told.received(Batch([Response(1, DISCOVERED)])) == []


def test_a_batch_whose_first_message_ends_the_session_is_read_no_further() -> None:
    """client-behaviour b1.17."""
    told = Told("http", era=None).until_probed()
    told.failed(1, Reason("http", 404))
    told.result(2, {"protocolVersion": "2025-03-26"})
    told.sent(3)
    told.call("a")
    told.failed(4, Reason("session_rejected"))
    refused = Failure(5, -32020, "no")
    assert told.received(Batch([refused, Response(5, {}), Request(1, "ping")])) == ["close 1"]


# -- waiting --------------------------------------------------------------------------------------


def test_who_waits_no_longer_is_forgotten() -> None:
    told = Told()
    told.start()
    told.wait("w", 5.0)
    assert told.unwait("w") == []
    assert told.unwait("w") == []
    assert len(told.core.ledger.deadlines) == 0


# -- notifications of the user --------------------------------------------------------------------


def test_a_notification_of_the_user_is_sent_in_a_session() -> None:
    told = Told().handshake()
    assert told.notify("notifications/roots/list_changed") == [
        "send 4 notifications/roots/list_changed"
    ]
    assert told.sent(4) == []
    assert told.sent(4) == []
    assert told.core.ledger.window.held == {}


def test_without_a_session_it_is_dropped_and_counted() -> None:
    """A server that is being greeted would take it for a mistake."""
    told = Told("http").until_probed()
    assert told.notify() == []
    assert told.records() == ["notification_failed"]
    told.result(1, DISCOVERED)
    told.call("a")
    told.failed(2, Reason("http", 404))
    assert told.notify() == []


# -- time -----------------------------------------------------------------------------------------


def test_the_next_deadline_is_known() -> None:
    told = Told()
    assert told.core.next_deadline() is None
    told.stateless()
    told.call("a", timeout=12.0)
    told.core.tick(told.now)
    assert told.core.next_deadline() == told.now + 12.0


def test_a_tick_that_comes_early_does_nothing() -> None:
    told = Told().stateless()
    told.call("a")
    assert told.after(0.0) == []


def test_what_is_due_together_ends_once() -> None:
    """A greeting that fails settles everything that is due with it."""
    told = Told("http", init_timeout=10.0, call_timeout=12.0, answer_timeout=13.0).handshake()
    told.call("a", timeout=50.0)
    told.notify()
    told.failed(4, Reason("session_rejected"))
    told.call("b", timeout=11.0)
    told.asked("q", "roots/list")
    told.wait("w", 5.0)
    assert told.after(1000.0) == [
        "withdraw q",
        "b: lost initialization_failed timeout",
        "close 1",
    ]


def test_who_waits_and_is_told_of_the_failure_is_told_once() -> None:
    told = Told("http", init_timeout=10.0).until_probed()
    told.wait("w", 20.0, fail_fast=True)
    assert told.after(30.0) == ["close 1", "w: connect_failed initialization_failed timeout"]


def test_time_that_was_given_in_the_same_tick_counts() -> None:
    """ours: ADR-0026: a question that nobody answered and its call may be due together."""
    told = Told(answer_timeout=100.0).handshake()
    told.call("a", timeout=30.0, max_timeout=200.0)
    told.now += 50.0
    told.asked(1, "roots/list")
    ticket = told.ticket("a")
    told.core.ledger.wait_until(ticket, told.now + 100.0)
    assert told.after(100.0) == ["withdraw 1", "send 5 error -32603 of 1"]
    assert ticket.lane is not None
    assert ticket.lane[ticket] == told.now + 30.0


def test_a_timer_that_comes_far_too_late_ends_the_question_and_its_call() -> None:
    told = Told(answer_timeout=10.0).handshake()
    told.call("a", timeout=30.0)
    told.asked(1, "roots/list")
    assert told.after(1000.0) == [
        "withdraw 1",
        "send 5 error -32603 of 1",
        "send 6 notifications/cancelled",
        "abort 4",
        "a: timed_out timeout (maybe done)",
    ]


def test_after_a_time_out_whoever_waits_has_its_turn() -> None:
    told = Told(policy=Policy.SERIALIZED).stateless()
    told.call("a", timeout=10.0)
    told.call("b")
    assert told.after(10.0)[-1] == "send 4 tools/call"


# -- rounds, through the door ---------------------------------------------------------------------


def test_an_answered_round_goes_on_when_there_is_room() -> None:
    told = Told(pool_size=1).stateless()
    told.call("a")
    assert told.result(2, {"resultType": "input_required", "inputRequests": ASK}) == ["a: ask k"]
    assert told.resume("a", {"k": {}}) == ["send 3 tools/call"]


def test_an_answer_to_a_question_is_sent_as_the_handler_gave_it() -> None:
    told = Told().handshake()
    told.asked("q", "roots/list")
    refusal = Failure("q", -32603, "the handler failed")
    effects = told.core.replied(told.questions["q"], refusal, told.now)
    assert effects == [Send(1, refusal, 4)]


def test_a_core_is_made_of_its_options() -> None:
    core = ClientCore(options(), Verdicts(), lambda *_: None)
    assert core.next_deadline() is None
    assert core.session.usable is False
