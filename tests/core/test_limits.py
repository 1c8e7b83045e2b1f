"""Limits: every bound, checked when the server is made. Slots: who holds how many."""

from __future__ import annotations

import pytest

from raxol_mcp.core.limits import Limits, Slots
from raxol_mcp.errors import ConfigurationError

COUNTS = [
    *("max_in_flight", "max_in_flight_per_connection", "max_parked_elicitations"),
    *("max_parked_elicitations_total", "max_client_capabilities", "max_subscriptions"),
    *(
        "max_listens",
        "max_listens_total",
        "max_rounds",
        "max_uri_bytes",
        "max_message_bytes",
        "max_depth",
    ),
    "max_result_bytes",
]
DURATIONS = ["callback_timeout", "elicitation_timeout", "request_state_ttl"]


def test_every_bound_is_a_count_or_a_duration() -> None:
    assert set(Limits.__struct_fields__) == {*COUNTS, *DURATIONS}


def test_the_defaults_are_those_of_the_specification() -> None:
    """Raxol MCP 2.8.0 §Elicitation, §Client capabilities, §Callback isolation; sizes are ours."""
    limits = Limits()
    assert (limits.max_in_flight, limits.in_flight_share) == (32, 16)
    assert (limits.max_parked_elicitations_total, limits.parked_share) == (256, 32)
    assert limits.max_client_capabilities == 1024
    assert (limits.callback_timeout, limits.elicitation_timeout) == (300.0, 60.0)
    assert (limits.max_message_bytes, limits.max_depth) == (4 * 1024 * 1024, 128)
    assert limits.max_result_bytes == 16 * 1024 * 1024


@pytest.mark.parametrize(("total", "share"), [(1, 1), (2, 1), (3, 1), (4, 2), (32, 16), (33, 16)])
def test_a_share_has_half_of_the_slots_but_at_least_one(total: int, share: int) -> None:
    """Raxol MCP 2.8.0 §Callback isolation: half of max_in_flight, at least 1."""
    assert Limits(max_in_flight=total).in_flight_share == share


@pytest.mark.parametrize(("total", "share"), [(1, 1), (31, 31), (32, 32), (33, 32), (256, 32)])
def test_a_smaller_total_of_parked_calls_clamps_the_default_share(total: int, share: int) -> None:
    """Rulings §Time, shares, bounds."""
    assert Limits(max_parked_elicitations_total=total).parked_share == share


def test_what_is_given_for_a_share_is_taken() -> None:
    limits = Limits(max_in_flight_per_connection=32, max_parked_elicitations=256)
    assert (limits.in_flight_share, limits.parked_share) == (32, 256)


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("value", [0, -1, True, False, 1.5, 2.0, "5", float("nan")])
def test_a_count_that_is_none_refuses_to_start(name: str, value: object) -> None:
    """Raxol MCP 2.8.0; the message names the option and the value."""
    with pytest.raises(ConfigurationError) as refused:
        Limits(**{name: value})  # type: ignore[arg-type]  # the wrong types are the point
    assert str(refused.value) == f"{name} must be a positive integer, got: {value!r}"


@pytest.mark.parametrize("name", DURATIONS)
@pytest.mark.parametrize(
    "value", [0, 0.0, -1.0, True, "60", None, float("nan"), float("inf"), -float("inf")]
)
def test_a_duration_that_is_none_refuses_to_start(name: str, value: object) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Limits(**{name: value})  # type: ignore[arg-type]  # the wrong types are the point
    assert str(refused.value) == f"{name} must be a positive number of seconds, got: {value!r}"


@pytest.mark.parametrize("name", DURATIONS)
@pytest.mark.parametrize("value", [0.001, 1, 60.0, 10**9])
def test_a_duration_may_be_any_positive_number(name: str, value: float) -> None:
    assert getattr(Limits(**{name: value}), name) == value  # type: ignore[arg-type]  # mixed types


@pytest.mark.parametrize("name", sorted({*COUNTS, *DURATIONS}))
def test_only_the_two_shares_may_be_left_open(name: str) -> None:
    if name in ("max_in_flight_per_connection", "max_parked_elicitations"):
        assert getattr(Limits(**{name: None}), name) is None  # type: ignore[arg-type]  # mixed types
    else:
        with pytest.raises(ConfigurationError, match=name):
            Limits(**{name: None})  # type: ignore[arg-type]  # the wrong type is the point


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"max_in_flight": 4, "max_in_flight_per_connection": 5},
            "max_in_flight_per_connection (5) must not exceed max_in_flight (4)",
        ),
        (
            {"max_in_flight_per_connection": 33},
            "max_in_flight_per_connection (33) must not exceed max_in_flight (32)",
        ),
        (
            {"max_parked_elicitations_total": 4, "max_parked_elicitations": 5},
            "max_parked_elicitations (5) must not exceed max_parked_elicitations_total (4)",
        ),
        (
            {"max_parked_elicitations": 257},
            "max_parked_elicitations (257) must not exceed max_parked_elicitations_total (256)",
        ),
    ],
)
def test_a_share_above_its_total_refuses_to_start(options: dict[str, int], message: str) -> None:
    """Raxol MCP 2.8.0: the server refuses to start if it does."""
    with pytest.raises(ConfigurationError) as refused:
        Limits(**options)
    assert str(refused.value) == message


def test_a_share_may_be_as_large_as_its_total() -> None:
    limits = Limits(max_in_flight=4, max_in_flight_per_connection=4)
    assert limits.in_flight_share == 4


# -- slots ----------------------------------------------------------------------------------------


def test_a_share_gets_slots_up_to_its_own_bound() -> None:
    slots = Slots(total=4, per_share=2)
    for _ in range(2):
        assert slots.refusal("a") is None
        slots.take("a")
    assert slots.refusal("a") == "connection"
    assert slots.refusal("b") is None


def test_the_server_is_full_when_its_slots_are_taken() -> None:
    slots = Slots(total=3, per_share=2)
    for share in ("a", "a", "b"):
        slots.take(share)
    assert (slots.taken, slots.refusal("b"), slots.refusal("c")) == (3, "server", "server")


def test_a_share_that_is_full_on_a_full_server_is_told_about_itself() -> None:
    """It could do something about that: wait for its own calls."""
    slots = Slots(total=2, per_share=2)
    slots.take("a")
    slots.take("a")
    assert slots.refusal("a") == "connection"


def test_a_slot_that_is_given_back_may_be_taken_again() -> None:
    slots = Slots(total=2, per_share=2)
    slots.take("a")
    slots.take("a")
    slots.give_back("a")
    assert (slots.taken, slots.held("a"), slots.refusal("a")) == (1, 1, None)


def test_a_share_without_slots_is_not_remembered() -> None:
    slots = Slots(total=2, per_share=2)
    slots.take("a")
    slots.take("b")
    slots.give_back("a")
    assert (slots.shares(), slots.held("a")) == ({"b": 1}, 0)


def test_giving_back_what_is_not_held_is_a_bug_that_shows() -> None:
    with pytest.raises(KeyError):
        Slots(total=1, per_share=1).give_back("a")


def test_the_counts_are_a_copy() -> None:
    slots = Slots(total=1, per_share=1)
    slots.shares()["a"] = 1
    assert slots.refusal("a") is None
