"""What a call may cost, counted: budgets that no change exceeds unseen.

The counts are those of `benchmarks/core_calls.py`, the same on every machine.
"""

import pytest

from benchmarks.core_calls import BUDGETS, Counts, allowed, asked_and_approved
from benchmarks.harness.peer import HANDSHAKE, STATELESS

in_both_eras = pytest.mark.parametrize("era", [HANDSHAKE, STATELESS])


def within(one: Counts, kind: str) -> bool:
    core, callbacks = BUDGETS[kind]
    return one.callbacks <= callbacks and (core is None or one.core <= core)


@in_both_eras
def test_an_allowed_call_stays_within_its_budget(era: str) -> None:
    """Ours: 25 Python calls in core/ and 3 callbacks of the loop, from the read to the write."""
    assert within(allowed(era), "allowed")


@in_both_eras
def test_an_ask_with_its_approval_stays_within_its_budget(era: str) -> None:
    """Ours: 6 callbacks, which is two messages in and two out."""
    assert within(asked_and_approved(era), "asked and approved")
