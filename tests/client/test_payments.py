"""client/payments.py: a reservation is drawn by chance, and pays once."""

import pytest

from raxol_mcp.client.payments import Payments
from raxol_mcp.client.spec import ClientSpec
from raxol_mcp.core.reservations import Reservations
from raxol_mcp.errors import Busy, Reason

SPEC = ClientSpec("shop", command="x", prices={"buy": 5})


def test_a_reservation_pays_for_one_call() -> None:
    payments = Payments(SPEC, None)
    handle = payments.mint(0.0)
    assert payments.problem("buy", handle, 1.0) is None
    assert payments.problem("buy", handle, 1.0) == Reason("unmetered_call")


def test_no_two_are_alike_and_none_can_be_guessed() -> None:
    payments = Payments(SPEC, None)
    handles = {payments.mint(0.0) for _ in range(100)}
    assert len(handles) == 100
    assert min(map(len, handles)) >= 24


def test_too_many_are_refused_before_they_expire_and_not_after() -> None:
    payments = Payments(SPEC, Reservations(ttl=10.0, max_live=1))
    payments.mint(0.0)
    with pytest.raises(Busy, match="wait until they expire"):
        payments.mint(10.0)
    payments.mint(10.1)


def test_clients_that_share_a_table_share_what_was_minted() -> None:
    table = Reservations()
    handle = Payments(SPEC, table).mint(0.0)
    other = Payments(ClientSpec("other", command="y", prices={"sell": 1}), table)
    assert other.problem("sell", handle, 0.0) is None
