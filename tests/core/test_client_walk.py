"""The client's walk, shorter, over several seeds; and Hypothesis over the same world."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from raxol_mcp.core.client_ledger import ClientLedger, ClientOptions
from tests.core.client_walk import SEEN, walk
from tests.core.client_world import ACTS, PROFILES, ClientWorld
from tests.core.test_walk import NUMBERS, Script
from tests.core.world import Wrong

SEEDS = (1, 2, 3, 4, 5)


class Whatever(RuleBasedStateMachine):
    """Any act after any other; uniform, so it rarely fills a window: that is the walk's work."""

    def __init__(self) -> None:
        super().__init__()
        self.script = Script()

    @initialize(profile=st.sampled_from(PROFILES))
    def begin(self, profile: ClientOptions) -> None:
        self.world = ClientWorld(self.script, profile)

    @rule(act=st.sampled_from(sorted(ACTS)), numbers=NUMBERS)
    def happen(self, act: str, numbers: list[int]) -> None:
        self.script.numbers = numbers[::-1]
        getattr(self.world, act)()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.script.numbers = []
            self.world.finish()


Whatever.TestCase.settings = settings(stateful_step_count=50, max_examples=40)
TestWhatever: Any = Whatever.TestCase


def test_a_walk_agrees_with_the_specification_and_meets_every_situation() -> None:
    """client-2.8.0; ours: ADR-0022 to ADR-0027."""
    met = sum((walk(12_000, seed) for seed in SEEDS), Counter[str]())
    assert [name for name in SEEN if not met[name]] == []
    assert met["ready"] > met["steps"] / 2
    assert met["full window"] > met["steps"] / 5
    assert met["full queue"] > met["steps"] / 20


def test_the_same_seed_walks_the_same_way() -> None:
    assert walk(1_000, 7) == walk(1_000, 7)


def test_a_walk_through_a_broken_core_says_where_and_what_happened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ClientLedger, "tell", lambda *_: None)
    with pytest.raises(Wrong, match=r"(?s)after \d+ steps, seed 3, .*\nstep \d+: "):
        walk(2_000, 3)
