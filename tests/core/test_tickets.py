"""What waits: tickets and their states, and the few other things that have a deadline."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest

from raxol_mcp.core import tickets
from raxol_mcp.core.tickets import (
    LEGAL,
    Alarm,
    Notice,
    ServerQuestion,
    Ticket,
    TicketState,
    Timer,
    Waiter,
    diagram,
)

README = Path(tickets.__file__).with_name("README.md")
S = TicketState


def ticket(state: TicketState = S.NEW) -> Ticket:
    made = Ticket("m", timeout=1.0)
    made.state = state
    return made


@pytest.mark.parametrize(("state", "target"), list(product(TicketState, TicketState)))
def test_a_ticket_takes_legal_steps_only(state: TicketState, target: TicketState) -> None:
    one = ticket(state)
    if target in LEGAL[state]:
        one.moved(target)
        assert one.state is target
        return
    with pytest.raises(AssertionError, match=f"cannot become {target.value}"):
        one.moved(target)
    assert one.state is state


def test_every_state_can_be_reached_and_every_ticket_ends() -> None:
    assert set(LEGAL) == set(TicketState)
    assert {target for targets in LEGAL.values() for target in targets} == {*S} - {S.NEW}
    assert [state for state in TicketState if S.SETTLED not in LEGAL[state]] == [S.SETTLED]
    assert LEGAL[S.SETTLED] == frozenset()


def test_a_ticket_is_new_and_known_by_itself() -> None:
    one, other = ticket(), ticket()
    assert (one.state, one.id, one.rounds, one.paid, one.asked) == (S.NEW, None, 0, False, None)
    assert (one.progress, one.lane, one.begun_at) == (None, None, 0.0)
    assert len({one, other}) == 2
    assert repr(one) == "<Ticket None m new>"


def test_a_ticket_keeps_what_its_caller_said() -> None:
    one = Ticket(
        "m",
        {"n": 1},
        timeout=2.0,
        max_timeout=3.0,
        reservation="r",
        wants_progress=True,
        meta={"own": 1},
        listening=True,
    )
    said = (one.method, one.params, one.timeout, one.max_timeout, one.reservation, one.mirrors)
    assert said == ("m", {"n": 1}, 2.0, 3.0, "r", ())
    assert (one.wants_progress, one.meta, one.listening) == (True, {"own": 1}, True)


def test_what_else_waits() -> None:
    waiter, notice, timer = Waiter(None, fail_fast=True), Notice(3), Timer(Alarm.RETRY)
    assert (waiter.timeout, waiter.fail_fast, notice.key) == (None, True, 3)
    assert (timer.alarm, timer.lane, waiter.lane, notice.lane) == (Alarm.RETRY, None, None, None)


@pytest.mark.parametrize(
    ("state", "id", "about", "expected"),
    [
        (S.SENT, 3, None, True),
        (S.SENT, 4, None, True),
        (S.SENT, 5, None, False),
        (S.SENT, 3, 3, True),
        (S.SENT, 4, 3, False),
        (S.ANSWERING, 3, None, False),
        (S.QUEUED, 3, None, False),
        (S.LISTENING, 3, 3, False),
        (S.SETTLED, 3, 3, False),
        (S.SENT, None, None, False),
    ],
)
def test_a_question_may_hold_up_what_was_sent_before_it(
    state: TicketState, id: int | None, about: int | None, expected: bool
) -> None:
    """ours: ADR-0026: over HTTP the one whose response carried it, else all under way."""
    question = ServerQuestion("q", "roots/list", {"n": 1}, about=about, latest=4)
    one = ticket(state)
    one.id = id
    assert question.may_hold_up(one) is expected
    assert (question.id, question.method, question.params) == ("q", "roots/list", {"n": 1})


def test_the_diagram_is_drawn_from_the_table() -> None:
    lines = diagram().splitlines()
    assert lines[:2] == ["stateDiagram-v2", "    [*] --> NEW"]
    assert lines[-1] == "    SETTLED --> [*]"
    drawn = {
        (found[1], found[2]) for line in lines if (found := re.match(r" +(\w+) --> (\w+)", line))
    }
    assert drawn == {(a.name, b.name) for a, targets in LEGAL.items() for b in targets}


def test_the_diagram_in_the_readme_is_fresh() -> None:
    """If this fails, put what `diagram()` returns between the last fences of core/README.md."""
    fences = re.findall(r"```mermaid\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    assert fences[-1] == diagram()


@pytest.mark.parametrize("state", TicketState, ids=lambda state: state.name)
def test_the_readme_says_what_each_state_holds(state: TicketState) -> None:
    client = README.read_text("utf-8").partition("## The client's machine")[2]
    assert f"| {state.name} |" in client
