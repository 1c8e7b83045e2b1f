"""Effects: plain data, and no kind of them that a shell does not know of."""

from __future__ import annotations

from typing import get_args

import pytest

from raxol_mcp.core import effects
from raxol_mcp.core.effects import (
    Effect,
    Job,
    Push,
    Record,
    Reply,
    Resolve,
    StartWorker,
    StopWorker,
)
from raxol_mcp.wire.jsonrpc import Notification
from tests.core.support import World

PING = Notification("notifications/message", {})


def one_of_each() -> list[Effect]:
    """Make one effect of each kind; every call of this makes equal ones."""
    return [
        Push("a", PING, 7),
        Reply("caller", PING),
        StartWorker(CALL, Job.RUN),
        StopWorker(CALL),
        Resolve(CALL, "1", None),
        Record("busy", {"scope": "server"}),
    ]


WORLD = World()
WORLD.call(7)
CALL = WORLD.calls["a", 7]


def test_the_union_is_closed_and_whole() -> None:
    """A shell that handles every member of the union handles every effect."""
    kinds = set(get_args(Effect))
    assert kinds == {type(effect) for effect in one_of_each()}
    names = {kind.__name__ for kind in kinds} | {"Effect", "Job"} | set(Job.__members__)
    assert names == set(effects.__all__)


def test_effects_are_compared_by_what_they_say() -> None:
    assert one_of_each() == one_of_each()
    assert Push("a", PING, 7) != Push("a", PING, 7, droppable=True)
    stop: Effect = StopWorker(CALL)
    assert stop != StartWorker(CALL, Job.RUN)


@pytest.mark.parametrize("effect", one_of_each(), ids=lambda effect: type(effect).__name__)
def test_an_effect_holds_its_fields_and_nothing_else(effect: Effect) -> None:
    with pytest.raises(AttributeError):
        effect.another = 1  # type: ignore[union-attr]  # that there is none is the point


def test_what_belongs_to_a_call_must_arrive_unless_it_says_otherwise() -> None:
    """ADR-0014: progress and logs may be left out, answers and questions never."""
    assert Push("a", PING, 7).droppable is False


def test_a_worker_is_started_to_decide_to_read_or_to_run() -> None:
    """ADR-0013: after the human's yes the authorizer is not asked again, hence a job of its own."""
    assert {job.value for job in Job} == {"authorize_then_run", "read", "run"}
