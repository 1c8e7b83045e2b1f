"""The window of a client, and its queue."""

from __future__ import annotations

from raxol_mcp.core.tickets import Notice, Ticket
from raxol_mcp.core.window import Policy, Window


def ticket(*, rounds: int = 0) -> Ticket:
    made = Ticket("m", timeout=1.0)
    made.rounds = rounds
    return made


def test_the_size_is_the_cap_unless_one_at_a_time_is_wanted() -> None:
    """client-2.8.0: every policy has a finite cap, and a serialized origin has a cap of one."""
    window = Window(8, 8)
    caps = {}
    for policy in Policy:
        window.policy = policy
        caps[policy] = window.cap
    assert caps == {Policy.STATELESS: 8, Policy.POOLED: 8, Policy.SERIALIZED: 1}


def test_who_came_first_goes_first_when_there_is_room() -> None:
    """FIFO."""
    window = Window(1, 8)
    first, second = ticket(), ticket()
    window.wait(first)
    window.wait(second)
    assert window.next() is first
    window.hold(1, first)
    assert window.next() is None
    del window.held[1]
    assert window.next() is second
    assert window.next() is None


def test_who_was_admitted_before_waits_in_front_and_is_never_refused() -> None:
    """ours: ADR-0025."""
    window = Window(1, 1)
    new, returned = ticket(), ticket(rounds=1)
    window.wait(new)
    assert not window.may_wait()
    window.wait(returned)
    assert window.queued == 2
    assert window.waiting() == [returned, new]
    assert window.next() is returned


def test_a_queue_of_none_takes_nobody() -> None:
    """client-behaviour 1.1: 0 is allowed."""
    assert not Window(1, 0).may_wait()


def test_who_goes_away_is_forgotten() -> None:
    """A wait that is over holds no place."""
    window = Window(1, 2)
    new, returned = ticket(), ticket(rounds=1)
    window.wait(new)
    window.wait(returned)
    window.forget(new)
    window.forget(returned)
    window.forget(returned)
    assert window.queued == 0


def test_a_notification_takes_a_slot_even_when_none_is_free() -> None:
    """client-behaviour 5: dispatched without passing the admission."""
    window = Window(1, 2)
    window.hold(1, Notice(1))
    window.hold(2, Notice(2))
    assert not window.has_room()
    assert repr(window) == "stateless 2/1 held, 0 queued"
