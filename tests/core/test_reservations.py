"""Prices and reservations: a priced call is sent once for each permission, or not at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_mcp.core.reservations import MAX_LIVE, TTL, Prices, Reservations
from raxol_mcp.errors import LocalProtocolError, Reason

UNPAID = Reason("unmetered_call")


def minted(*handles: str, now: float = 0.0) -> Reservations:
    """Reservations with some live handles."""
    reservations = Reservations()
    for handle in handles:
        assert reservations.mint(handle, now)
    return reservations


def test_the_bounds_are_two_minutes_and_a_thousand() -> None:
    """client-behaviour 12: TTL 120 s; the bound is ours."""
    assert (TTL, MAX_LIVE) == (120.0, 1024)


def test_a_reservation_is_good_once() -> None:
    reservations = minted("a")
    assert reservations.take("a", 1.0)
    assert not reservations.take("a", 1.0)
    assert len(reservations) == 0


def test_a_reservation_is_valid_up_to_its_last_instant() -> None:
    """client-behaviour 12: valid while now <= expiry."""
    assert minted("a").take("a", 120.0)
    expired = minted("a")
    assert not expired.take("a", 120.001)
    assert len(expired) == 0


@pytest.mark.parametrize("handle", ["b", "", None, True, 7, b"a", ["a"]])
def test_what_was_not_minted_is_no_reservation(handle: object) -> None:
    reservations = minted("a")
    assert not reservations.take(handle, 0.0)
    assert len(reservations) == 1


def test_minting_drops_what_has_expired() -> None:
    reservations = minted("a")
    assert reservations.mint("b", 60.0)
    assert reservations.mint("c", 120.0)
    assert len(reservations) == 3
    assert reservations.mint("d", 120.5)
    assert len(reservations) == 3
    assert not reservations.take("a", 0.0)


def test_a_full_table_refuses_the_new_one_and_keeps_the_old() -> None:
    reservations = Reservations(ttl=10.0, max_live=2)
    assert [reservations.mint(handle, 0.0) for handle in "abc"] == [True, True, False]
    assert not reservations.take("c", 0.0)
    assert reservations.mint("d", 10.5)
    assert len(reservations) == 1


def test_a_handle_cannot_be_minted_twice_while_it_lives() -> None:
    with pytest.raises(LocalProtocolError):
        minted("a").mint("a", 5.0)
    assert minted("a").mint("a", 121.0)


def test_a_tool_of_a_server_that_costs_nothing_is_free() -> None:
    reservations = minted("a")
    for prices in (Prices(), Prices({}, None), Prices({}, False), Prices(None, False)):
        assert prices.problem("t", "a", reservations, 0.0) is None
    assert len(reservations) == 1


@pytest.mark.parametrize("metered", [None, True, False])
def test_a_tool_with_a_price_is_called_with_a_reservation_or_not_at_all(
    metered: bool | None,
) -> None:
    """The client specification; `metered=False` does not free what somebody declared."""
    prices = Prices({"t": 3}, metered)
    reservations = minted("a")
    for handle in (None, "", "forged", True):
        assert prices.problem("t", handle, reservations, 0.0) == UNPAID
    assert prices.problem("t", "a", reservations, 0.0) is None
    assert prices.problem("t", "a", reservations, 0.0) == UNPAID
    assert prices.problem("t", "b", minted("b"), 500.0) == UNPAID


@pytest.mark.parametrize("metered", [None, True, False])
@pytest.mark.parametrize("price", [0, -1, 0.01, 3.0, "3", None, True])
def test_what_is_no_positive_integer_is_no_price(price: object, metered: bool | None) -> None:
    reservations = minted("a")
    problem = Prices({"t": price}, metered).problem("t", "a", reservations, 0.0)
    assert problem == Reason("unknown_price", "t")
    assert len(reservations) == 1


@pytest.mark.parametrize(
    ("declared", "metered", "free"),
    [
        ({}, True, False),
        ({"other": 1}, None, False),
        ({"other": 1}, True, False),
        ({"other": 1}, False, True),
    ],
)
def test_a_tool_without_a_price_is_free_only_where_not_everything_costs(
    declared: dict[str, object], metered: bool | None, free: bool
) -> None:
    reservations = minted("a")
    problem = Prices(declared, metered).problem("t", "a", reservations, 0.0)
    assert problem == (None if free else Reason("unknown_price", "t"))
    assert len(reservations) == 1


@given(
    st.lists(st.tuples(st.sampled_from("mt"), st.sampled_from("abcd"), st.integers(0, 5))),
)
def test_nothing_is_ever_good_twice_or_late(steps: list[tuple[str, str, int]]) -> None:
    """Ours: against a table that remembers everything."""
    reservations = Reservations(ttl=6.0, max_live=3)
    until: dict[str, float] = {}
    now = 0.0
    for action, handle, wait in steps:
        now += wait
        live = {name for name, expires_at in until.items() if now <= expires_at}
        if action == "t":
            assert reservations.take(handle, now) == (handle in live)
            until.pop(handle, None)
        elif handle not in live:
            assert reservations.mint(handle, now) == (len(live) < 3)
            if len(live) < 3:
                until[handle] = now + 6.0
        assert len(reservations) <= 3
