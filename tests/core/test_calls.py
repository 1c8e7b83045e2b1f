"""Calls: the states, what each may become, and what a request says about itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from raxol_mcp.core.calls import (
    LEGAL,
    LEGAL_REASONS,
    Call,
    CallState,
    Closed,
    MidwayAsk,
    Via,
    diagram,
)
from raxol_mcp.core.effects import Job
from raxol_mcp.core.eras import HandshakeEra
from raxol_mcp.core.methods import HANDSHAKE_METHODS
from raxol_mcp.core.peers import ConnectionFacts, Peer
from raxol_mcp.wire.jsonrpc import JSONObject
from tests.core.support import IDENTITY

README = Path(__file__).parents[2] / "src" / "raxol_mcp" / "core" / "README.md"
STATES = set(CallState)
OPEN = STATES - {CallState.CLOSED}


def call_of(method: str = "tools/call", params: JSONObject | None = None) -> Call:
    """A call that read its params."""
    peer = Peer("a", ConnectionFacts(principal="alice", share="team"))
    call = Call(peer, 7, HANDSHAKE_METHODS[method], HandshakeEra(IDENTITY), Via.PUSH, "caller")
    if params is not None:
        call.read(params, params.get("_meta"))
    return call


# -- the table ------------------------------------------------------------------------------------


def test_every_state_has_its_row() -> None:
    assert set(LEGAL) == set(LEGAL_REASONS) == STATES


def test_a_call_can_be_closed_from_every_state_and_leaves_closed_by_none() -> None:
    assert all(CallState.CLOSED in LEGAL[state] and LEGAL_REASONS[state] for state in OPEN)
    assert (LEGAL[CallState.CLOSED], LEGAL_REASONS[CallState.CLOSED]) == (frozenset(), frozenset())


def test_every_state_but_the_first_is_reached_and_every_reason_has_a_use() -> None:
    assert frozenset().union(*LEGAL.values()) == STATES - {CallState.ADMITTED}
    assert frozenset().union(*LEGAL_REASONS.values()) == set(Closed)


def test_a_call_can_be_dropped_wherever_somebody_sees_it() -> None:
    """Raxol MCP 2.8.0: cancel, the caller's end and the connection's reach it at every stage."""
    seen = OPEN - {CallState.ADMITTED}
    dropped = {Closed.CANCELLED, Closed.GONE}
    assert {state for state in STATES if dropped <= LEGAL_REASONS[state]} == seen


def test_a_parked_call_is_closed_in_five_ways_and_dropped_in_two() -> None:
    """Raxol MCP 2.8.0 §Elicitation: an approval is the fifth, and runs it."""
    assert LEGAL_REASONS[CallState.PARKED] == {
        Closed.DECLINED,
        Closed.ANSWER_ERROR,
        Closed.ANSWER_TIMEOUT,
        Closed.EVICTED,
        Closed.CANCELLED,
        Closed.GONE,
    }
    assert LEGAL[CallState.PARKED] == {CallState.RUNNING, CallState.APPROVED, CallState.CLOSED}


def test_an_approved_call_is_never_evicted_and_never_denied() -> None:
    """ADR-0011: a human's yes waits for a slot; busy when none frees."""
    assert LEGAL[CallState.APPROVED] == {CallState.RUNNING, CallState.CLOSED}
    assert LEGAL_REASONS[CallState.APPROVED] == {Closed.BUSY, Closed.CANCELLED, Closed.GONE}


def test_only_a_parked_call_is_evicted() -> None:
    evicted = {state for state in STATES if Closed.EVICTED in LEGAL_REASONS[state]}
    assert evicted == {CallState.PARKED}


def test_states_and_reasons_are_singletons_in_sets_and_dictionaries() -> None:
    """Their hash is object's own, because Enum's is a Python call on the way of every call."""
    assert {state: state.value for state in CallState}[CallState.PARKED] == "parked"
    assert {reason: reason.value for reason in Closed}[Closed.GONE] == "gone"
    assert len({*CallState, *CallState}) == len(CallState)


# -- a call ---------------------------------------------------------------------------------------


def test_a_new_call_holds_nothing() -> None:
    call = call_of()
    assert (call.state, call.reason, call.working) == (CallState.ADMITTED, None, False)
    assert (call.asking, call.questions, call.answers) == (None, (), None)
    assert (call.round, call.round_state, call.parked_at) == (0, None, 0)


def test_a_call_keeps_its_share_and_who_asked_whatever_becomes_of_the_connection() -> None:
    call = call_of()
    call.peer.share = "another"
    call.peer.facts = ConnectionFacts(principal="bob")
    assert (call.share, call.facts.principal) == ("team", "alice")


@pytest.mark.parametrize(
    ("method", "params", "name", "arguments"),
    [
        ("tools/call", {"name": "t", "arguments": {"a": 1}}, "t", {"a": 1}),
        ("tools/call", {"name": "t"}, "t", {}),
        ("tools/call", {"name": "t", "arguments": None}, "t", {}),
        ("tools/call", {"name": "t", "uri": "file:///b"}, "t", {}),
        ("prompts/get", {"name": "p", "arguments": {"a": "x"}}, "p", {"a": "x"}),
        ("resources/read", {"uri": "file:///a"}, "file:///a", {}),
        ("resources/read", {"uri": "file:///a", "name": "file:///b"}, "file:///a", {}),
        ("resources/subscribe", {"uri": "file:///a", "name": "b"}, "file:///a", {}),
        ("resources/unsubscribe", {"uri": "file:///a", "name": "b"}, "file:///a", {}),
        ("tools/list", {"cursor": "x"}, "", {}),
    ],
)
def test_what_it_is_about_is_what_the_authorizer_was_shown(
    method: str, params: JSONObject, name: str, arguments: JSONObject
) -> None:
    """A second name in the same params would be a way round the gate."""
    call = call_of(method, params)
    assert (call.name, call.arguments) == (name, arguments)
    assert call.params == params


@pytest.mark.parametrize(
    ("meta", "token"),
    [
        ({"progressToken": 1}, 1),
        ({"progressToken": 0}, 0),
        ({"progressToken": ""}, ""),
        ({"progressToken": "p"}, "p"),
        ({"progressToken": True}, None),
        ({"progressToken": 1.0}, None),
        ({"progressToken": None}, None),
        ({"progressToken": ["p"]}, None),
        ({}, None),
        (None, None),
        ("progressToken", None),
    ],
)
def test_a_progress_token_is_a_string_or_an_integer(meta: object, token: object) -> None:
    """MCP basic/utilities/progress: 0 and "" are tokens, true is not."""
    found = call_of(params={"name": "t", "_meta": meta}).progress_token
    assert found == token
    assert type(found) is type(token)


@pytest.mark.parametrize(
    ("method", "job"),
    [("tools/call", Job.RUN), ("resources/read", Job.READ), ("prompts/get", Job.READ)],
)
def test_what_is_started_once_the_human_has_answered(method: str, job: Job) -> None:
    """Rulings: an approved call is not authorized again; reads are, at every door."""
    call = call_of(method)
    assert (call.method.is_tool, call.job_once_answered) == (job is Job.RUN, job)


def test_its_repr_is_for_logs() -> None:
    call = call_of()
    assert repr(call) == "<Call 7 tools/call admitted>"
    call.state, call.reason = CallState.CLOSED, Closed.GONE
    assert repr(call) == "<Call 7 tools/call closed gone>"


def test_what_a_tool_waits_for_is_told_apart_from_its_call_and_its_other_questions() -> None:
    """Both wait, under the same deadlines and in the same table of asks."""
    call = call_of()
    ask, other = MidwayAsk(call, "1"), MidwayAsk(call, "1")
    assert (ask.call, ask.key, ask.lane) == (call, "1", None)
    assert len({call, ask, other}) == 3


# -- the diagram ----------------------------------------------------------------------------------


def test_the_diagram_is_drawn_from_the_table() -> None:
    lines = diagram().splitlines()
    assert lines[:2] == ["stateDiagram-v2", "    [*] --> ADMITTED"]
    assert lines[-1] == "    CLOSED --> [*]"
    drawn = {
        (found[1], found[2]) for line in lines if (found := re.match(r" +(\w+) --> (\w+)", line))
    }
    assert drawn == {(a.name, b.name) for a, targets in LEGAL.items() for b in targets}
    assert "    APPROVED --> CLOSED: BUSY, CANCELLED, GONE" in lines


def test_the_diagram_in_the_readme_is_fresh() -> None:
    """If this fails, put what `diagram()` returns between the first fences of core/README.md."""
    fences = re.findall(r"```mermaid\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    assert fences[0] == diagram()


def test_the_readme_names_every_module() -> None:
    text = README.read_text("utf-8")
    modules = {path.name for path in README.parent.glob("*.py")} - {"__init__.py"}
    assert {name for name in modules if name not in text} == set()


@pytest.mark.parametrize("state", CallState, ids=lambda state: state.name)
def test_the_readme_says_what_each_state_holds(state: CallState) -> None:
    assert f"| {state.name} |" in README.read_text("utf-8")
