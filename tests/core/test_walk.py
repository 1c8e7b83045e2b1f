"""The walk, shorter, over several seeds; and Hypothesis over the same world, which shrinks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from raxol_mcp.core.limits import Limits
from raxol_mcp.core.parking import Parking
from tests.core.walk import SEEN, walk
from tests.core.world import ACTS, PROFILES, World, Wrong

SEEDS = (1, 2, 3, 4, 5)


class Script:
    """Chance from a list of numbers, which Hypothesis makes smaller; then always the first."""

    def __init__(self) -> None:
        self.numbers: list[int] = []

    def below(self, number: int) -> int:
        return self.numbers.pop() % number if self.numbers else 0

    def chance(self, percent: int) -> bool:
        return self.below(100) < percent


NUMBERS = st.lists(st.integers(0, 10_000), max_size=16)


class Whatever(RuleBasedStateMachine):
    """Any act after any other; uniform, so it rarely fills a server: that is the walk's work."""

    def __init__(self) -> None:
        super().__init__()
        self.script = Script()

    @initialize(limits=st.sampled_from(PROFILES))
    def begin(self, limits: Limits) -> None:
        self.world = World(self.script, limits)

    @rule(act=st.sampled_from(sorted(ACTS)), numbers=NUMBERS)
    def happen(self, act: str, numbers: list[int]) -> None:
        self.script.numbers = numbers[::-1]
        getattr(self.world, act)()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.script.numbers = []
            self.world.finish()


Whatever.TestCase.settings = settings(stateful_step_count=60)
TestWhatever: Any = Whatever.TestCase


def test_a_walk_agrees_with_the_specification_and_meets_every_situation() -> None:
    """ours: ADR-0001."""
    met = sum((walk(6_000, seed) for seed in SEEDS), walk(0, 0))
    assert [name for name in SEEN if not met[name]] == []
    assert met["full slots"] > met["steps"] / 2
    assert met["full places"] > met["steps"] / 20


def test_the_same_seed_walks_the_same_way() -> None:
    assert walk(1_000, 7) == walk(1_000, 7)


def test_a_walk_through_a_broken_core_says_where_and_what_happened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Parking, "leave", lambda parking, call: None)
    with pytest.raises(Wrong, match=r"(?s)after \d+ steps, seed 3, .*\nstep \d+: "):
        walk(2_000, 3)
