"""The session: connecting, being ready, failing, coming back; and who waits for it."""

from __future__ import annotations

import pytest

from raxol_mcp.core.session import MAX_REJECTIONS, SessionState
from raxol_mcp.errors import Reason
from raxol_mcp.wire.meta import EraName
from tests.core.client_support import DISCOVERED, Told
from tests.promises import promise

REJECTED = Reason("session_rejected")
UNAUTHORIZED = Reason("http", 401)
GREETED = {"protocolVersion": "2025-11-25"}


def delays(told: Told, lose: object, count: int) -> list[float]:
    """Fail `count` times by `lose`, and say how long the wait is each time."""
    assert callable(lose)
    found = []
    for _ in range(count):
        lose()
        retry_at = told.core.session.retry_at
        assert retry_at is not None
        found.append(retry_at - told.now)
        assert told.after(retry_at - told.now)[0].startswith("open")
    return found


# -- back-off -------------------------------------------------------------------------------------


@promise("recovery.connect", "recovery.delay")
def test_failed_connects_are_tried_again_after_one_second_doubling_to_a_minute() -> None:
    """client-behaviour check 30."""
    told = Told()
    told.start()
    waited = delays(told, lambda: told.lost("spawn_failed", "enoent"), 9)
    assert waited == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]


def test_a_failed_attempt_says_why_and_when_it_is_tried_again() -> None:
    told = Told()
    told.start()
    assert told.lost("spawn_failed", "enoent") == ["close 1"]
    assert told.records() == ["disconnected"]
    session = told.core.session
    assert (session.state, session.reason) == (
        SessionState.CLOSED,
        Reason("spawn_failed", "enoent"),
    )
    assert told.after(0.9) == []
    assert told.after(0.1) == ["open 2"]
    assert session.retry_at is None


def test_failed_handshakes_back_off_just_so() -> None:
    """client-behaviour check 31."""
    told = Told()
    told.start()

    def refuse() -> None:
        told.opened()
        told.error(told.core.ledger.last_key, -32601)
        told.error(told.core.ledger.last_key, -32603)

    assert delays(told, refuse, 4) == [1.0, 2.0, 4.0, 8.0]


def test_a_server_that_is_greeted_and_then_dies_is_met_with_longer_delays() -> None:
    """ours: ADR-0027."""
    told = Told().handshake()

    def die() -> None:
        if told.core.session.state is SessionState.STARTING:
            told.opened()
            told.result(told.core.ledger.last_key, GREETED)
            told.sent(told.core.ledger.last_key)
        assert told.core.session.usable
        told.lost()

    assert delays(told, die, 4) == [1.0, 2.0, 4.0, 8.0]


def test_the_delay_begins_anew_after_a_session_that_was_of_use() -> None:
    """ours: ADR-0027."""
    told = Told()
    told.start()
    delays(told, told.lost, 3)
    told.opened()
    told.result(1, DISCOVERED)
    told.call("a")
    told.result(2, {})
    assert delays(told, told.lost, 3) == [1.0, 2.0, 4.0]


def test_an_error_is_of_use_too() -> None:
    told = Told()
    told.start()
    delays(told, told.lost, 3)
    told.opened()
    told.result(1, DISCOVERED)
    told.call("a")
    told.error(2, -32602)
    assert delays(told, told.lost, 1) == [1.0]


def test_the_first_delay_is_the_spec_s_and_may_be_longer_than_a_minute() -> None:
    told = Told(reconnect=90.0)
    told.start()
    assert delays(told, told.lost, 3) == [90.0, 90.0, 90.0]
    told = Told(reconnect=25.0)
    told.start()
    assert delays(told, told.lost, 3) == [25.0, 50.0, 60.0]


def test_an_attempt_clears_the_reason_only_when_it_succeeds() -> None:
    """Rulings: after a failure `ConnectFailed` at once."""
    told = Told()
    told.start()
    told.lost("transport", "reset")
    told.after(1.0)
    told.opened()
    assert told.call("a") == ["a: connect_failed transport reset"]
    told.result(1, DISCOVERED)
    assert told.core.session.reason is None


# -- 401 ------------------------------------------------------------------------------------------


@promise("recovery.unauthorized")
def test_a_401_while_connecting_is_final() -> None:
    """client-behaviour check 33."""
    told = Told("http")
    told.start()
    told.wait("w")
    assert told.lost("http", 401) == ["close 1", "w: connect_failed http 401"]
    assert told.core.session.retry_at is None
    assert told.wait("late") == ["late: connect_failed http 401"]
    assert told.call("a") == ["a: connect_failed http 401"]
    assert told.after(1e6) == []
    assert len(told.core.ledger.deadlines) == 0


@pytest.mark.parametrize("probed", [True, False])
def test_a_401_in_a_greeting_is_final(probed: bool) -> None:
    """client-behaviour check 34."""
    told = Told("http").until_probed()
    if not probed:
        told.failed(1, Reason("http", 404))
    told.wait("w", 5.0)
    waiter = "w: connect_failed http 401"
    if not probed:
        waiter = "w: connect_failed initialization_failed http 401"
    assert told.failed(1 if probed else 2, UNAUTHORIZED) == ["close 1", waiter]
    assert told.core.session.final
    assert told.core.session.retry_at is None


def test_a_401_to_a_request_fails_that_request() -> None:
    """client-behaviour check 35."""
    told = Told("http").stateless()
    told.call("a")
    assert told.failed(2, UNAUTHORIZED) == ["a: failed http 401"]
    assert told.core.session.usable


def test_a_401_that_ends_a_usable_session_is_not_final() -> None:
    told = Told("http").stateless()
    told.lost("http", 401)
    assert not told.core.session.final
    assert told.after(1.0) == ["open 2"]


def test_a_401_when_it_is_greeted_again_is_final() -> None:
    """client-behaviour (c) 5."""
    told = Told("http").handshake()
    told.call("a")
    told.failed(4, REJECTED)
    told.failed(5, UNAUTHORIZED)
    assert told.core.session.final


def test_a_401_behind_another_reason_is_one() -> None:
    told = Told("http")
    told.start()
    reason = Reason("initialization_failed", cause=UNAUTHORIZED)
    told.told(told.core.lost(1, reason, told.now))
    assert told.core.session.final


# -- waiting --------------------------------------------------------------------------------------


@promise("ready.event", "recovery.patient")
def test_who_waits_is_told_when_it_is_ready_through_any_failure() -> None:
    """client-behaviour check 32."""
    told = Told(reconnect=0.01)
    told.start()
    assert told.wait("w") == []
    assert told.lost() == ["close 1"]
    told.after(0.01)
    told.opened()
    assert told.result(1, DISCOVERED)[-1] == "w: ready"
    assert told.wait("now") == ["now: ready"]


def test_readiness_is_told_when_the_server_has_taken_the_last_word() -> None:
    """ours: ADR-0024."""
    told = Told().until_probed()
    told.wait("w")
    told.error(1, -32601)
    assert "w: ready" not in told.result(2, GREETED)
    assert told.sent(3) == ["begin handshake 2025-11-25", "w: ready"]


@promise("ready.budget")
def test_who_has_waited_long_enough_is_told_the_state() -> None:
    """client-behaviour check 37."""
    told = Told()
    told.start()
    told.wait("w", 10.0)
    told.wait("x", 20.0)
    told.opened()
    assert told.after(5.0) == ["send 2 initialize"]
    assert told.after(5.0) == ["w: not_ready not_ready initializing"]
    told.lost()
    told.lost()
    assert told.after(10.0)[-1] == "x: not_ready not_ready starting"


def test_who_waits_for_no_time_is_told_at_the_next_instant() -> None:
    told = Told()
    told.start()
    assert told.wait("w", 0.0) == []
    assert told.after(0.0) == ["w: not_ready not_ready starting"]


@promise("recovery.fail_fast")
def test_who_wants_to_know_at_once_is_told_of_the_next_failure() -> None:
    """client-behaviour check 36."""
    told = Told()
    told.start()
    told.wait("w", fail_fast=True)
    told.wait("patient")
    assert told.lost("transport", "reset") == ["close 1", "w: connect_failed transport reset"]
    assert told.wait("x", fail_fast=True) == ["x: connect_failed transport reset"]
    assert told.after(1.0) == ["open 2"]
    assert told.wait("y", fail_fast=True) == []  # an attempt is under way
    told.opened()
    assert told.result(1, DISCOVERED)[-2:] == ["patient: ready", "y: ready"]


def test_who_goes_away_is_not_told() -> None:
    told = Told()
    told.start()
    told.wait("w", 5.0)
    assert told.unwait("w") == []
    assert told.unwait("w") == []
    assert told.after(5.0) == []


# -- forgotten sessions ---------------------------------------------------------------------------


@promise("recovery.rejected")
def test_a_forgotten_session_fails_one_request_and_is_greeted_again_in_place() -> None:
    """client-behaviour check 39; BC-103."""
    told = Told("http").handshake()
    told.call("a")
    assert told.failed(4, REJECTED) == [
        "a: session_rejected session_rejected",
        "send 5 server/discover",
    ]
    assert told.core.session.state is SessionState.READY
    assert not told.core.session.usable
    assert told.wait("w") == ["w: ready"]
    assert told.call("b") == []
    assert told.failed(5, Reason("http", 404)) == ["send 6 initialize"]
    told.result(6, GREETED)
    assert told.sent(7) == ["begin handshake 2025-11-25", "send 8 tools/call"]


def test_many_rejections_cause_one_greeting() -> None:
    """client-behaviour check 40."""
    told = Told("http").handshake()
    for letter in "abcde":
        told.call(letter)
    sent = [line for key in range(4, 9) for line in told.failed(key, REJECTED)]
    assert [line for line in sent if line.startswith("send")] == ["send 9 server/discover"]
    assert sum("session_rejected" in line for line in sent) == 5


def test_a_rejection_that_comes_when_there_is_a_new_session_says_nothing_of_that() -> None:
    """client-behaviour check 40: one greeting for N rejections, however late they come."""
    told = Told("http").handshake()
    for letter in "abc":
        told.call(letter)
    told.notify()
    told.failed(4, REJECTED)
    told.failed(8, Reason("http", 404))
    assert told.failed(5, REJECTED) == ["b: session_rejected session_rejected"]
    told.result(9, GREETED)
    told.sent(10)
    assert told.failed(6, REJECTED) == ["c: session_rejected session_rejected"]
    assert told.failed(7, REJECTED) == []
    assert told.core.session.usable
    assert len(told.verdicts) == 1
    told.call("d")
    assert told.failed(11, REJECTED)[-1] == "send 12 server/discover"


def reject(told: Told, letter: str) -> list[str]:
    """Have a call rejected, and the session greeted again when it is."""
    told.call(letter)
    lines = told.failed(told.core.ledger.last_key, REJECTED)
    if told.core.session.state is SessionState.READY:
        told.failed(told.core.ledger.last_key, Reason("http", 404))
        told.result(told.core.ledger.last_key, GREETED)
        told.sent(told.core.ledger.last_key)
    return lines


def test_a_server_that_forgets_every_session_is_given_up() -> None:
    """ours: ADR-0027."""
    told = Told("http").handshake()
    for letter in "abcdefgh"[:MAX_REJECTIONS]:
        assert reject(told, letter)[-1].endswith("server/discover")
    assert reject(told, "z") == ["z: session_rejected session_rejected", "close 1"]
    assert told.core.session.reason == REJECTED
    assert told.after(1.0) == ["open 2"]


def test_a_result_in_between_makes_rejections_count_anew() -> None:
    """client-behaviour check 41."""
    told = Told("http").handshake()
    for letter in "abcdefgh"[:MAX_REJECTIONS]:
        reject(told, letter)
    told.call("good")
    told.result(told.core.ledger.last_key, {})
    assert reject(told, "z")[-1].endswith("server/discover")


def test_rejections_of_an_earlier_session_do_not_count_in_the_next() -> None:
    told = Told("http").handshake()
    for letter in "abcdefgh"[: MAX_REJECTIONS + 1]:
        reject(told, letter)
    told.after(1.0)
    told.opened()
    told.failed(told.core.ledger.last_key, Reason("http", 404))
    told.result(told.core.ledger.last_key, GREETED)
    told.sent(told.core.ledger.last_key)
    assert reject(told, "z")[-1].endswith("server/discover")


def test_a_forgotten_session_drops_the_verdict() -> None:
    """ours: ADR-0023."""
    told = Told("http").handshake()
    assert len(told.verdicts) == 1
    told.call("a")
    told.failed(4, REJECTED)
    assert len(told.verdicts) == 0


def test_a_greeting_in_place_that_fails_closes_the_session() -> None:
    """client-behaviour 6.4: a normal initialization failure; everybody is answered."""
    told = Told("http").handshake()
    told.call("a")
    told.call("b")
    told.failed(4, REJECTED)
    told.call("c")
    told.failed(6, Reason("http", 404))
    assert told.failed(7, Reason("http", 404)) == [
        "b: lost initialization_failed http 404 (maybe done)",
        "c: lost initialization_failed http 404",
        "close 1",
    ]


def test_a_link_that_is_lost_while_it_is_greeted_again_closes_the_session() -> None:
    told = Told("http").handshake()
    told.call("a")
    told.failed(4, REJECTED)
    assert told.lost("transport", "reset") == ["close 1"]
    assert told.core.session.reason == Reason("transport", "reset")


# -- who may send ---------------------------------------------------------------------------------


def test_before_a_first_failure_a_call_is_not_ready() -> None:
    """Rulings: before one `NotReady`."""
    told = Told()
    told.start()
    assert told.call("a") == ["a: not_ready not_ready starting"]
    told.opened()
    assert told.call("b") == ["b: not_ready not_ready initializing"]


def test_only_a_stateless_session_has_subscriptions() -> None:
    told = Told().handshake()
    assert told.listen("a") == ["a: not_ready not_ready ready"]
    assert Told().stateless().listen("a") == ["send 2 subscriptions/listen"]


# -- the end --------------------------------------------------------------------------------------


@promise("stop.ends")
def test_stop_ends_everything_and_leaves_nothing() -> None:
    told = Told(pool_size=1).stateless()
    for letter in "ab":
        told.call(letter)
    told.listen("c")
    assert told.stop() == [
        "a: not_ready not_ready stopped (maybe done)",
        "c: not_ready not_ready stopped (maybe done)",
        "b: not_ready not_ready stopped",
        "close 1",
    ]
    assert len(told.core.ledger.deadlines) == 0
    assert told.core.ledger.facts is None
    assert told.stop() == []
    assert told.call("d") == ["d: not_ready not_ready stopped"]
    assert told.wait("w") == ["w: not_ready not_ready stopped"]
    assert told.lost() == []
    assert told.after(1e6) == []


def test_stop_tells_who_waits() -> None:
    told = Told().until_probed()
    told.wait("w")
    assert told.stop() == ["close 1", "w: not_ready not_ready stopped"]
    assert told.core.session.greeter.is_greeting is False


def test_stop_in_between_attempts_closes_nothing_and_tries_no_more() -> None:
    told = Told()
    told.start()
    told.lost()
    assert told.stop() == []
    assert told.after(1e6) == []


def test_stop_before_the_start_has_nothing_to_close() -> None:
    told = Told()
    assert told.stop() == []


def test_stop_while_a_link_opens_closes_it() -> None:
    told = Told(era=EraName.STATELESS)
    told.start()
    assert told.stop() == ["close 1"]
