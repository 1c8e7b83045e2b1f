"""Outcomes: what a worker may report. Each kind is understood for tools and for reads."""

from __future__ import annotations

from typing import get_args

import pytest

from raxol_mcp.core import outcomes
from raxol_mcp.core.calls import CallState
from raxol_mcp.core.outcomes import (
    Asked,
    Denied,
    Failed,
    Granted,
    Outcome,
    Refused,
    Returned,
    Stopped,
    Unacceptable,
)
from raxol_mcp.core.questions import approval
from tests.core.support import World

QUESTION = approval("Sure?", "delete")
KINDS: list[Outcome] = [
    Returned({"content": []}),
    Failed("Error: ValueError"),
    Refused(-32602, "Unknown prompt"),
    Denied("denied"),
    Asked((QUESTION,)),
    Granted(),
    Unacceptable("the answer has no name"),
    Stopped(),
]


def test_the_union_is_closed_and_whole() -> None:
    kinds = set(get_args(Outcome))
    assert kinds == {type(kind) for kind in KINDS}
    assert {kind.__name__ for kind in kinds} | {"Outcome"} == set(outcomes.__all__)


def test_what_is_usual_need_not_be_said() -> None:
    assert Returned({}) == Returned({}, failed=False)
    assert Failed("Error: ValueError").reason == "callback_crashed"
    assert Refused(-32602, "no").data is None
    assert Asked((QUESTION,)) == Asked((QUESTION,), subject=None, round=False, state=None)
    assert Granted().allowed is None


@pytest.mark.parametrize("outcome", KINDS, ids=lambda outcome: type(outcome).__name__)
def test_an_outcome_holds_its_fields_and_nothing_else(outcome: Outcome) -> None:
    with pytest.raises(AttributeError):
        outcome.another = 1  # type: ignore[union-attr]  # that there is none is the point


@pytest.mark.parametrize("outcome", KINDS, ids=lambda outcome: type(outcome).__name__)
@pytest.mark.parametrize("stateless", [False, True], ids=["handshake", "stateless"])
@pytest.mark.parametrize("method", ["tools/call", "resources/read"])
def test_every_report_ends_the_call_or_parks_it(
    outcome: Outcome, stateless: bool, method: str
) -> None:
    """No report may raise, and none may leave a call that nothing will ever end."""
    world = World().ready("a")
    params = {"name": "delete"} if method == "tools/call" else {"uri": "file:///a"}
    if stateless:
        world.stateless(7, method=method, params=params)
    else:
        world.send({"id": 7, "method": method, "params": params})
    call = world.calls["a", 7]
    world.ends(7, outcome)
    parked = isinstance(outcome, Asked) and not stateless
    assert call.state is (CallState.PARKED if parked else CallState.CLOSED)
    assert world.wind_down().startswith("<ServerCore 0 connections | 0 in flight | 0 parked")
