"""The tables themselves: enough misbehaviours, each with a name of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tests.client.misbehaviour import lists, messages, pipes, questions, responses

TABLES: list[Sequence[object]] = [
    [*messages.IN_BOTH_ERAS, *questions.UNASKED],
    questions.MODERN,
    lists.LISTS,
    [*pipes.CALLS, *responses.SESSIONS],
    pipes.CONNECTS,
    responses.CALLS,
    responses.CONNECTS,
]


def test_there_are_many_and_none_hides_another() -> None:
    names = [Counter(str(case) for case in table) for table in TABLES]
    repeated = [name for table in names for name, number in table.items() if number > 1]
    # Statuses are told apart by their numbers and the beginning of their bodies.
    assert all(name[:3].isdigit() for name in repeated)
    assert sum(map(len, names)) > 250
