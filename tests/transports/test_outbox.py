"""Outbox: what may wait for a peer that reads slowly."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_mcp.transports.outbox import Admission, Outbox

QUEUED, DROPPED, OVERFLOW = Admission


def filled(count: int, *, size_bytes: int = 10) -> Outbox[str]:
    """Return an outbox of at most 4 messages or 100 bytes with `count` answers in it."""
    outbox: Outbox[str] = Outbox(max_messages=4, max_bytes=100)
    for number in range(count):
        assert outbox.put(f"answer {number}", size_bytes, about=number) is QUEUED
    return outbox


def test_messages_leave_in_the_order_they_came() -> None:
    outbox = filled(3)
    assert outbox.take() == ["answer 0", "answer 1", "answer 2"]
    assert outbox.take() == []
    assert not outbox


@pytest.mark.parametrize(
    ("limit_bytes", "expected"),
    [(0, 1), (9, 1), (10, 1), (19, 1), (20, 2), (29, 2), (30, 3), (1000, 3)],
)
def test_a_batch_fits_its_limit_but_holds_at_least_one(limit_bytes: int, expected: int) -> None:
    outbox = filled(3)
    assert len(outbox.take(limit_bytes)) == expected
    assert (outbox.messages, outbox.size_bytes) == (3 - expected, 10 * (3 - expected))


def test_it_is_over_from_the_bound_on_messages_until_below_it() -> None:
    outbox = filled(3)
    seen = [outbox.over]
    outbox.put("one more", 1, about=9)
    seen.append(outbox.over)
    outbox.take(1)
    seen.append(outbox.over)
    assert seen == [False, True, False]


def test_it_is_over_from_the_bound_on_bytes_until_below_it() -> None:
    outbox = filled(1, size_bytes=99)
    seen = [outbox.over]
    outbox.put("one more", 1, about=9)
    seen.append(outbox.over)
    outbox.take()
    seen.append(outbox.over)
    assert seen == [False, True, False]


def test_it_has_drained_at_half_of_both_bounds() -> None:
    assert filled(2).drained
    assert not filled(3).drained
    assert filled(1, size_bytes=50).drained
    assert not filled(1, size_bytes=51).drained


def test_an_answer_is_admitted_however_full_it_is() -> None:
    outbox = filled(20)
    assert outbox.messages == 20


def test_a_droppable_message_is_left_out_and_counted_while_over() -> None:
    outbox = filled(4)
    assert outbox.put("progress", 1, about=7, droppable=True) is DROPPED
    assert outbox.put("log", 1, droppable=True) is DROPPED
    assert (outbox.dropped, outbox.messages) == (2, 4)
    outbox.take(1)
    assert outbox.put("progress", 1, about=7, droppable=True) is QUEUED


def test_the_broadcast_past_the_bound_on_messages_is_an_overflow() -> None:
    outbox: Outbox[str] = Outbox(max_messages=2, max_bytes=100)
    assert [outbox.put("changed", 1) for _ in range(3)] == [QUEUED, QUEUED, OVERFLOW]
    assert outbox.messages == 2


def test_the_broadcast_past_the_bound_on_bytes_is_an_overflow() -> None:
    outbox: Outbox[str] = Outbox(max_messages=10, max_bytes=100)
    assert [outbox.put("changed", 60) for _ in range(3)] == [QUEUED, QUEUED, OVERFLOW]


def test_a_small_broadcast_behind_a_large_answer_is_no_overflow() -> None:
    outbox = filled(1, size_bytes=1_000_000)
    assert outbox.over
    assert outbox.put("changed", 1) is QUEUED


def test_broadcasts_that_were_taken_no_longer_count() -> None:
    outbox: Outbox[str] = Outbox(max_messages=2, max_bytes=100)
    outbox.put("changed", 1)
    outbox.put("changed", 1)
    outbox.take(1)
    assert outbox.put("changed", 1) is QUEUED
    outbox.take()
    assert [outbox.put("changed", 1) for _ in range(3)] == [QUEUED, QUEUED, OVERFLOW]


def test_a_hint_waits_once_until_it_is_taken() -> None:
    """ours: ADR-0014. A burst of changes must not cut off a peer that reads well."""
    outbox: Outbox[str] = Outbox(max_messages=2, max_bytes=100)
    for _ in range(1000):
        assert outbox.put("tools changed", 10, hint="tools") is QUEUED
    assert outbox.put("a changed", 10, hint=("resource", "a")) is QUEUED
    assert outbox.put("tools changed", 10, hint="tools") is QUEUED
    assert (outbox.messages, outbox.size_bytes) == (2, 20)
    assert outbox.put("b changed", 10, hint=("resource", "b")) is OVERFLOW
    assert outbox.waits("tools")
    assert outbox.take(10) == ["tools changed"]
    assert not outbox.waits("tools")
    assert outbox.put("tools changed", 10, hint="tools") is QUEUED
    assert outbox.take() == ["a changed", "tools changed"]
    assert outbox.put("tools changed", 10, hint="tools") is QUEUED
    assert outbox.messages == 1


def test_a_hint_that_was_not_admitted_does_not_count_as_waiting() -> None:
    outbox: Outbox[str] = Outbox(max_messages=1, max_bytes=100)
    assert outbox.put("odd", 1) is QUEUED
    assert [outbox.put("changed", 1, hint="tools") for _ in range(2)] == [OVERFLOW, OVERFLOW]


def test_clear_forgets_everything() -> None:
    outbox = filled(4)
    outbox.put("changed", 1, hint="tools")
    outbox.clear()
    assert outbox.put("changed", 1, hint="tools") is QUEUED
    outbox.clear()
    assert (outbox.messages, outbox.size_bytes, outbox.over, bool(outbox)) == (0, 0, False, False)


PUTS = st.tuples(st.just("put"), st.integers(0, 60), st.booleans(), st.booleans())
TAKES = st.tuples(st.just("take"), st.integers(0, 120), st.booleans(), st.booleans())


def counter() -> Iterator[int]:
    """Yield 0, 1, 2, ..."""
    number = 0
    while True:
        yield number
        number += 1


@given(st.lists(st.one_of(PUTS, TAKES), max_size=60))
def test_counts_always_say_what_is_inside(steps: list[tuple[str, int, bool, bool]]) -> None:
    outbox: Outbox[tuple[int, int]] = Outbox(max_messages=4, max_bytes=100)
    inside: list[tuple[int, int, bool]] = []
    numbers = counter()
    for step, size_bytes, answer, droppable in steps:
        if step == "put":
            item = (next(numbers), size_bytes)
            about = 1 if answer else None
            if outbox.put(item, size_bytes, about=about, droppable=droppable) is QUEUED:
                inside.append((*item, answer))
        else:
            taken = outbox.take(size_bytes)
            assert taken == [(number, size) for number, size, _ in inside[: len(taken)]]
            del inside[: len(taken)]
        sizes = [size for _, size, _ in inside]
        broadcasts = [size for _, size, answer in inside if not answer]
        assert (outbox.messages, outbox.size_bytes) == (len(inside), sum(sizes))
        assert outbox.over == (len(sizes) >= 4 or sum(sizes) >= 100)
        assert len(broadcasts) <= 4
        assert sum(broadcasts) < 100 + 60
