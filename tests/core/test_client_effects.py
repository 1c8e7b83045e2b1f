"""Effects of a client: plain data, and no kind of them that a shell does not know of."""

from __future__ import annotations

from typing import get_args

import pytest

from raxol_mcp.core import client_effects
from raxol_mcp.core.client_effects import (
    Abort,
    Acknowledged,
    Agreed,
    Answer,
    AskUser,
    Begin,
    Close,
    Deliver,
    Effect,
    Ended,
    Handle,
    Open,
    Progressed,
    Record,
    Send,
    Settle,
    Withdraw,
)
from raxol_mcp.core.tickets import ServerQuestion, Ticket, Waiter
from raxol_mcp.wire.jsonrpc import Notification
from raxol_mcp.wire.meta import EraName

TICKET = Ticket("m", timeout=1.0)
WAITER = Waiter(None, fail_fast=False)
QUESTION = ServerQuestion(1, "m", None, about=None, latest=0)


def one_of_each() -> list[Effect]:
    """Make one effect of each kind; every call of this makes equal ones."""
    return [
        Open(1, two_endpoints=False),
        Send(1, Notification("x"), 2),
        Abort(1, 2),
        Close(1),
        Agreed(1, EraName.HANDSHAKE, "2025-11-25"),
        Begin(EraName.HANDSHAKE, "2025-11-25"),
        Settle(TICKET, Ended.RESULT, {}),
        Answer(WAITER, Ended.READY),
        Handle(QUESTION),
        Withdraw(QUESTION),
        AskUser(TICKET, {}),
        Deliver("x", {}, None),
        Progressed(TICKET, 1.0, None, None),
        Acknowledged(TICKET, {}),
        Record("busy", {}),
    ]


def test_the_union_names_every_effect() -> None:
    kinds = {kind.__name__ for kind in get_args(Effect)}
    assert kinds == {*client_effects.__all__} - {"Effect", "Ended"}
    assert {type(effect).__name__ for effect in one_of_each()} == kinds


@pytest.mark.parametrize(
    ("one", "other"),
    list(zip(one_of_each(), one_of_each(), strict=True)),
    ids=lambda it: repr(it)[:8],
)
def test_effects_compare_by_value(one: Effect, other: Effect) -> None:
    assert one == other
    assert one is not other


def test_what_is_left_out_is_nothing() -> None:
    assert Send(1, Notification("x"), 2).mirrors == ()
    assert (Settle(TICKET, Ended.BUSY).result, Settle(TICKET, Ended.BUSY).reason) == (None, None)
    assert Answer(WAITER, Ended.READY).reason is None


def test_the_ends_are_a_closed_set() -> None:
    """client-2.8.0: each has an exception of its own (`client/failures.py`)."""
    assert {ended.value for ended in Ended} == {
        "ready",
        "result",
        "error",
        "failed",
        "unpaid",
        "session_rejected",
        "lost",
        "timed_out",
        "busy",
        "not_ready",
        "connect_failed",
    }
