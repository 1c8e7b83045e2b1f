"""Circuit breakers: when a call may run, and who the probe is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_mcp.core.breaker import Breakers, BreakerState
from raxol_mcp.errors import ConfigurationError

KEY = ("tool", "weather")


def opened(threshold: int = 1, recovery: float = 30.0) -> Breakers:
    """Breakers whose KEY opened at 0.0."""
    breakers = Breakers(threshold, recovery)
    for _ in range(threshold):
        breakers.failed(KEY, 0.0)
    return breakers


def test_a_key_that_never_failed_is_admitted_and_not_remembered() -> None:
    breakers = Breakers()
    assert breakers.admits(KEY, 0.0)
    assert breakers.state(KEY) is BreakerState.CLOSED
    assert breakers.failures(KEY) == 0
    assert len(breakers) == 0


def test_the_fifth_failure_in_a_row_opens_it_for_thirty_seconds() -> None:
    breakers = Breakers()
    for count in range(1, 5):
        breakers.failed(KEY, 1.0)
        assert (breakers.failures(KEY), breakers.state(KEY)) == (count, BreakerState.CLOSED)
        assert breakers.admits(KEY, 1.0)
    breakers.failed(KEY, 2.0)
    assert breakers.state(KEY) is BreakerState.OPEN
    assert not breakers.admits(KEY, 2.0)
    assert not breakers.admits(KEY, 31.9)
    assert breakers.admits(KEY, 32.0)


def test_a_success_between_failures_starts_the_count_anew() -> None:
    breakers = Breakers(threshold=3)
    for _ in range(2):
        breakers.failed(KEY, 0.0)
    breakers.succeeded(KEY)
    assert len(breakers) == 0
    for _ in range(2):
        breakers.failed(KEY, 0.0)
    assert breakers.state(KEY) is BreakerState.CLOSED
    breakers.failed(KEY, 0.0)
    assert breakers.state(KEY) is BreakerState.OPEN


def test_each_key_has_a_breaker_of_its_own() -> None:
    """0, False, "" and None are keys too, and 1 is not "1"."""
    breakers = Breakers(threshold=1)
    breakers.failed("1", 0.0)
    breakers.failed("", 0.0)
    assert not breakers.admits("1", 0.0)
    assert not breakers.admits("", 0.0)
    assert breakers.admits(1, 0.0)
    assert breakers.admits(0, 0.0)
    assert breakers.admits(None, 0.0)


def test_a_half_open_breaker_admits_exactly_one_probe() -> None:
    breakers = opened()
    assert breakers.admits(KEY, 30.0)
    assert breakers.state(KEY) is BreakerState.HALF_OPEN
    assert not breakers.admits(KEY, 30.0)
    assert not breakers.admits(KEY, 1e9)


def test_the_success_of_the_probe_closes_it() -> None:
    breakers = opened()
    breakers.admits(KEY, 30.0)
    breakers.succeeded(KEY)
    assert breakers.state(KEY) is BreakerState.CLOSED
    assert len(breakers) == 0
    assert breakers.admits(KEY, 30.0)
    assert breakers.admits(KEY, 30.0)


def test_the_failure_of_the_probe_opens_it_for_the_whole_time_again() -> None:
    breakers = opened(threshold=3)
    breakers.admits(KEY, 30.0)
    breakers.failed(KEY, 45.0)
    assert (breakers.failures(KEY), breakers.state(KEY)) == (4, BreakerState.OPEN)
    assert not breakers.admits(KEY, 74.9)
    assert breakers.admits(KEY, 75.0)


def test_an_abandoned_probe_leaves_its_place_to_the_next_call() -> None:
    breakers = opened()
    breakers.admits(KEY, 30.0)
    breakers.abandoned(KEY)
    assert breakers.state(KEY) is BreakerState.HALF_OPEN
    assert breakers.admits(KEY, 30.0)
    assert not breakers.admits(KEY, 30.0)


def test_abandoning_what_is_no_probe_changes_nothing() -> None:
    breakers = Breakers(threshold=2)
    breakers.abandoned(KEY)
    assert len(breakers) == 0
    breakers.failed(KEY, 0.0)
    breakers.abandoned(KEY)
    assert (breakers.failures(KEY), breakers.state(KEY)) == (1, BreakerState.CLOSED)
    breakers.failed(KEY, 0.0)
    breakers.abandoned(KEY)
    assert breakers.state(KEY) is BreakerState.OPEN


def test_a_failure_while_open_is_counted_and_prolongs_nothing() -> None:
    breakers = opened()
    breakers.failed(KEY, 29.0)
    assert breakers.failures(KEY) == 2
    assert breakers.admits(KEY, 30.0)


def test_a_late_success_closes_an_open_breaker() -> None:
    """Whichever call it was, what it called works."""
    breakers = opened()
    breakers.succeeded(KEY)
    assert breakers.admits(KEY, 0.0)


def test_calls_from_before_the_opening_do_not_speak_for_the_probe() -> None:
    old, probe, other = object(), object(), object()
    breakers = Breakers(threshold=1)
    assert breakers.admits(KEY, 0.0, call=old)
    breakers.failed(KEY, 0.0, call=other)
    assert breakers.admits(KEY, 30.0, call=probe)
    breakers.abandoned(KEY, call=old)
    assert not breakers.admits(KEY, 30.0, call=other)
    breakers.failed(KEY, 31.0, call=old)
    assert (breakers.failures(KEY), breakers.state(KEY)) == (2, BreakerState.HALF_OPEN)
    assert not breakers.admits(KEY, 90.0, call=other)
    breakers.failed(KEY, 90.0, call=probe)
    assert breakers.state(KEY) is BreakerState.OPEN
    assert not breakers.admits(KEY, 119.0, call=other)


def test_reset_closes_one_and_reset_all_closes_every_one() -> None:
    breakers = opened()
    breakers.failed("other", 0.0)
    breakers.failed("third", 0.0)
    breakers.reset(KEY)
    breakers.reset("unknown")
    assert breakers.admits(KEY, 0.0)
    assert not breakers.admits("other", 0.0)
    breakers.reset_all()
    assert breakers.admits("other", 0.0)
    assert len(breakers) == 0


def test_what_is_forgotten_begins_anew_when_it_is_registered_again() -> None:
    breakers = opened()
    breakers.forget(KEY)
    breakers.forget(KEY)
    assert breakers.admits(KEY, 0.0)
    assert len(breakers) == 0


def test_repr_shows_the_state_of_every_key_that_fails() -> None:
    breakers = Breakers(threshold=2)
    breakers.failed("a", 0.0)
    for _ in range(2):
        breakers.failed("b", 0.0)
    assert repr(breakers) == "Breakers({'a': 'closed', 'b': 'open'})"


@pytest.mark.parametrize("threshold", [0, -1, True, 1.5, "5", None])
def test_a_threshold_that_is_no_number_of_failures_refuses_to_start(threshold: Any) -> None:
    with pytest.raises(ConfigurationError, match="threshold must be at least 1"):
        Breakers(threshold)


@pytest.mark.parametrize("recovery", [-0.1, float("inf"), float("nan")])
def test_a_recovery_that_never_comes_refuses_to_start(recovery: float) -> None:
    with pytest.raises(ConfigurationError, match="recovery must be 0 or more seconds"):
        Breakers(5, recovery)


def test_a_recovery_of_zero_still_admits_one_probe_at_a_time() -> None:
    breakers = opened(recovery=0.0)
    assert breakers.admits(KEY, 0.0)
    assert not breakers.admits(KEY, 0.0)


STEPS = st.lists(
    st.tuples(st.sampled_from(["call", "ok", "bad", "drop"]), st.integers(0, 5)), max_size=60
)


@given(STEPS, st.integers(1, 3))
def test_at_no_time_do_two_probes_run(steps: list[tuple[str, int]], threshold: int) -> None:
    """Any order of calls and verdicts, with time passing: one probe, and nothing is stuck."""
    breakers = Breakers(threshold, 3.0)
    running: list[object] = []
    probes: list[object] = []
    now = 0.0
    for step, number in steps:
        now += 1.0
        if step == "call":
            closed = breakers.state(KEY) is BreakerState.CLOSED
            call = object()
            if breakers.admits(KEY, now, call=call):
                running.append(call)
                if not closed:
                    assert probes == [], "a second probe beside the first"
                    probes.append(call)
        elif running:
            call = running.pop(number % len(running))
            if step == "ok":
                breakers.succeeded(KEY)
                probes.clear()  # closed: what still runs is an ordinary call
            elif step == "bad":
                breakers.failed(KEY, now, call=call)
            else:
                breakers.abandoned(KEY, call=call)
            if call in probes:
                probes.remove(call)
    for call in running:
        breakers.abandoned(KEY, call=call)
    assert breakers.admits(KEY, now + 3.0), "stuck: nothing runs and nothing is admitted"
