"""Deadlines: when the next wait ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_mcp.core.calls import Call, MidwayAsk, Waiting
from raxol_mcp.core.deadlines import Deadlines, Timed
from tests.core.support import World


def calls(number: int) -> list[Call]:
    """Calls without a deadline: the table looks at nothing else in them."""
    world = World(max_in_flight=64, max_in_flight_per_connection=64)
    for id in range(number):
        world.call(id)
    made = [world.calls["a", id] for id in range(number)]
    for call in made:
        world.core.ledger.deadlines.remove(call)
    return made


def test_without_a_wait_there_is_no_deadline() -> None:
    deadlines = Deadlines[Waiting]()
    assert (deadlines.earliest, len(deadlines), deadlines.due(1e9)) == (None, 0, [])


def test_a_wait_is_due_at_its_instant_and_not_before() -> None:
    (call,) = calls(1)
    deadlines = Deadlines[Waiting]()
    deadlines.add(call, 60.0, 100.0)
    assert deadlines.earliest == 160.0
    assert deadlines.due(159.9) == []
    assert deadlines.due(160.0) == [call]
    assert len(deadlines) == 0
    assert deadlines.due(160.0) == []


def test_what_is_due_comes_in_the_order_of_the_deadlines_whatever_their_durations() -> None:
    first, second, third = calls(3)
    deadlines = Deadlines[Waiting]()
    deadlines.add(third, 300.0, 0.0)
    deadlines.add(first, 60.0, 10.0)
    deadlines.add(second, 60.0, 20.0)
    assert deadlines.earliest == 70.0
    assert deadlines.due(300.0) == [first, second, third]


def test_only_the_head_of_a_lane_that_is_due_is_taken() -> None:
    first, second = calls(2)
    deadlines = Deadlines[Waiting]()
    deadlines.add(first, 60.0, 0.0)
    deadlines.add(second, 60.0, 1.0)
    assert deadlines.due(60.0) == [first]
    assert (deadlines.earliest, len(deadlines)) == (61.0, 1)


def test_removing_leaves_nothing_behind() -> None:
    """ADR-0003: the number of entries is the number of live waits."""
    first, second = calls(2)
    deadlines = Deadlines[Waiting]()
    deadlines.add(first, 60.0, 0.0)
    deadlines.add(second, 60.0, 1.0)
    deadlines.remove(first)
    deadlines.remove(first)
    assert len(deadlines) == 1
    assert deadlines.due(60.0) == []
    assert deadlines.due(61.0) == [second]


def test_the_earliest_is_never_too_late_and_exact_after_looking() -> None:
    """Waking up too early is harmless, too late is not."""
    first, second = calls(2)
    deadlines = Deadlines[Waiting]()
    deadlines.add(first, 60.0, 0.0)
    deadlines.add(second, 60.0, 5.0)
    deadlines.remove(first)
    assert deadlines.earliest == 60.0
    deadlines.due(60.0)
    assert deadlines.earliest == 65.0


def test_a_key_has_one_deadline() -> None:
    (call,) = calls(1)
    deadlines = Deadlines[Waiting]()
    deadlines.add(call, 60.0, 0.0)
    with pytest.raises(AssertionError, match="one deadline per wait"):
        deadlines.add(call, 60.0, 0.0)


def test_a_call_and_its_questions_are_different_keys() -> None:
    (call,) = calls(1)
    deadlines = Deadlines[Waiting]()
    deadlines.add(call, 300.0, 0.0)
    first, second = MidwayAsk(call, "1"), MidwayAsk(call, "2")
    deadlines.add(first, 60.0, 0.0)
    deadlines.add(second, 60.0, 0.0)
    assert deadlines.due(60.0) == [first, second]
    assert len(deadlines) == 1


@pytest.mark.parametrize(
    ("duration", "due_at"),
    [(1.0, 11.0), (89.0, 99.0), (90.0, 100.0), (91.0, 100.0), (300.0, 100.0)],
)
def test_shortening_never_makes_a_deadline_later(duration: float, due_at: float) -> None:
    """Due at 100; at 10 it is told to be due in `duration` seconds."""
    (call,) = calls(1)
    deadlines = Deadlines[Waiting]()
    deadlines.add(call, 100.0, 0.0)
    deadlines.shorten(call, duration, 10.0)
    assert deadlines.due(due_at - 0.1) == []
    assert deadlines.due(due_at) == [call]


def test_a_duration_that_is_used_no_more_leaves_no_lane() -> None:
    """A tool's own timeout may be any number: lanes must not pile up."""
    deadlines = Deadlines[Waiting]()
    for number, call in enumerate(calls(20)):
        deadlines.add(call, 1.0 + number / 7, 0.0)
        deadlines.remove(call)
    deadlines.due(0.0)
    assert deadlines._lanes == {}


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "remove", "shorten", "due"]),
        st.integers(0, 5),
        st.sampled_from([1.0, 2.0, 5.0]),
    ),
    max_size=60,
)


@given(STEPS)
def test_it_agrees_with_a_plain_table(steps: list[tuple[str, int, float]]) -> None:
    """Whatever is added, removed and shortened: due is what a dictionary of instants says."""
    keys = calls(6)
    deadlines, table, now = Deadlines[Waiting](), dict[Call, float](), 0.0
    for step, number, duration in steps:
        now += 0.5
        key = keys[number]
        if step == "add" and key not in table:
            deadlines.add(key, duration, now)
            table[key] = now + duration
        elif step == "remove":
            deadlines.remove(key)
            table.pop(key, None)
        elif step == "shorten" and key in table:
            deadlines.shorten(key, duration, now)
            table[key] = min(table[key], now + duration)
        elif step == "due":
            due = {key for key, due_at in table.items() if due_at <= now}
            assert set(deadlines.due(now)) == due
            table = {key: due_at for key, due_at in table.items() if key not in due}
            assert deadlines.earliest == min(table.values(), default=None)
        assert len(deadlines) == len(table)
        assert not table or (deadlines.earliest or 0.0) <= min(table.values())


def test_what_may_wait_waits_for_nothing_at_first() -> None:
    """Its lane is the table's matter."""
    assert Timed().lane is None
