"""The ledger: what is taken is given back once, whatever a call dies of.

`World.check` counts slots, places, deadlines and asks anew after every input of these tests.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from raxol_mcp.core.calls import Call, CallState, Closed, Via
from raxol_mcp.core.outcomes import Asked, Denied, Failed
from raxol_mcp.core.peers import Capability
from raxol_mcp.core.questions import Question, approval
from raxol_mcp.wire.jsonrpc import Failure, JSONObject, Response
from tests.core.support import (
    EMPTY,
    World,
    busy,
    denial,
    error,
    push,
    question,
    text_result,
    withdrawn,
)

ASK = "raxol-elicit-id-1"
FORM = Question("who", "elicitation/create", {"message": "Who?"}, Capability.FORM)


def setup(state: CallState, *, via: Via = Via.PUSH) -> World:
    """A world in which call 7 of connection "a" is in `state`."""
    world = World(max_in_flight=2, max_in_flight_per_connection=1).ready("a", "b")
    if state is CallState.LISTENING:
        world.listens(7, {"toolsListChanged": True}, via=via, caller="c")
        return world
    world.call(7, via=via, caller="c")
    if state is not CallState.AUTHORIZING:
        world.asks(7)
        if state is CallState.APPROVED:
            world.call(8)
        if state is not CallState.PARKED:
            world.approve(ASK)
    assert world.calls["a", 7].state is state
    return world


SEEN = [
    CallState.AUTHORIZING,
    CallState.PARKED,
    CallState.APPROVED,
    CallState.RUNNING,
    CallState.LISTENING,
]
WORKING = (CallState.AUTHORIZING, CallState.RUNNING)


# -- what each state holds, and gives back --------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "held"),
    [
        (CallState.AUTHORIZING, "1 in flight | 0 parked | 1 deadlines"),
        (CallState.PARKED, "0 in flight | 1 parked | 1 deadlines"),
        # One slot and one deadline are those of the other call, which has the slot.
        (CallState.APPROVED, "1 in flight | 1 parked (1 approved) | 2 deadlines"),
        (CallState.RUNNING, "1 in flight | 0 parked | 1 deadlines"),
        (CallState.LISTENING, "0 in flight | 0 parked | 0 deadlines"),
    ],
    ids=lambda value: value.name if isinstance(value, CallState) else None,
)
def test_what_a_state_holds(state: CallState, held: str) -> None:
    assert repr(setup(state).core) == f"<ServerCore 2 connections | {held}>"


@pytest.mark.parametrize("state", SEEN, ids=lambda state: state.name)
@pytest.mark.parametrize("ending", ["cancelled", "notified", "gone", "input_ended", "stopped"])
def test_a_call_is_dropped_at_every_stage_without_a_word(state: CallState, ending: str) -> None:
    """Raxol MCP 2.8.0 §Elicitation: dropping ends it with no answer, and stops the tool."""
    world = setup(state)
    call, before = world.calls["a", 7], world.core.ledger
    match ending:
        case "cancelled":
            effects = world.cancel(7)
        case "notified":
            params = {"requestId": 7}
            effects = world.send({"method": "notifications/cancelled", "params": params})
        case "gone":
            effects = world.gone()
        case "input_ended":
            effects = world.took(world.core.input_ended("a", world.now))
        case _:
            effects = world.took(world.core.stopped(world.now))
    answers = [effect[2] for effect in effects if effect[0] == "push" and effect[3] == 7]
    if ending == "input_ended" and state not in (CallState.PARKED, CallState.LISTENING):
        assert (effects, call.state) == ([], state), "what runs goes on"
        return
    assert call.state is CallState.CLOSED
    assert before.parking.held("a") == 0
    assert (("stop", 7) in effects) is (state in WORKING)
    if ending == "stopped" and state is CallState.LISTENING:
        assert call.reason is Closed.RESULT, "a listen has an end that is told"
    else:
        told = state is CallState.PARKED and ending in ("cancelled", "notified")
        assert answers == [withdrawn(ASK, "cancelled")] * told


@pytest.mark.parametrize("state", SEEN, ids=lambda state: state.name)
@pytest.mark.parametrize("via", [Via.REPLY, Via.HANDLE], ids=lambda via: via.name)
def test_somebody_who_waits_is_told_exactly_once_that_it_was_dropped(
    state: CallState, via: Via
) -> None:
    """Raxol MCP 2.8.0 §cancel/2: answers {:reply, nil}; handle_message was told when it parked."""
    world = setup(state, via=via)
    replies = [effect for effect in world.cancel(7) if effect[0] == "reply"]
    waits = via is Via.REPLY or state in (CallState.AUTHORIZING, CallState.LISTENING)
    assert replies == [("reply", "c", None)] * waits


@pytest.mark.parametrize("state", SEEN, ids=lambda state: state.name)
def test_after_any_end_nothing_is_left(state: CallState) -> None:
    assert setup(state).wind_down() == EMPTY


@pytest.mark.parametrize("state", WORKING, ids=lambda state: state.name)
@pytest.mark.parametrize("outcome", [Denied("no"), Asked((approval("?", "t"),)), Failed("Error")])
def test_the_slot_of_a_closed_call_is_kept_until_its_worker_ends(
    state: CallState, outcome: Denied | Asked | Failed
) -> None:
    """ADR-0004; whatever the worker of a closed call brings is dropped."""
    world = setup(state)
    world.cancel(7)
    assert repr(world.core).endswith("| 1 in flight (1 stopping) | 0 parked | 0 deadlines>")
    assert world.call(9)[-1] == push("a", busy(9, "connection"))
    assert world.ends(7, outcome) == []
    assert repr(world.core).endswith("| 0 in flight | 0 parked | 0 deadlines>")
    assert world.call(9) == [("start", 9, "authorize_then_run")]


def test_an_id_may_be_used_again_as_soon_as_its_answer_is_there() -> None:
    """ADR-0006; also while the worker of the first one has not ended."""
    world = World().ready("a")
    world.call(7)
    first = world.calls["a", 7]
    world.cancel(7)
    assert world.call(7) == [("start", 7, "authorize_then_run")]
    assert world.took(world.core.worker_ended(first, Denied("no"), 0.0), ended=first) == []
    assert world.returns(7) == [push("a", text_result(7, "done"))]


# -- what must never happen -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("misuse", "sentence"),
    [
        (lambda ledger, call: ledger.move(call, CallState.APPROVED), "AUTHORIZING -> "),
        (
            lambda ledger, call: ledger.start(call, None, CallState.RUNNING),
            "CallState.AUTHORIZING -> CallState.RUNNING",
        ),
        (
            lambda ledger, call: ledger.close(call, Closed.EVICTED, Response(7, {})),
            "CallState.AUTHORIZING -> Closed.EVICTED",
        ),
        (
            lambda ledger, call: ledger.close(call, Closed.RESULT, None),
            "every reason but two has an answer",
        ),
        (
            lambda ledger, call: ledger.close(call, Closed.GONE, Response(7, {})),
            "every reason but two has an answer",
        ),
    ],
)
def test_an_illegal_step_is_a_bug_that_shows(
    misuse: Callable[[object, Call], None], sentence: str
) -> None:
    world = setup(CallState.AUTHORIZING)
    with pytest.raises(AssertionError, match=sentence):
        misuse(world.core.ledger, world.calls["a", 7])


def test_a_call_is_closed_once() -> None:
    world = setup(CallState.AUTHORIZING)
    call = world.calls["a", 7]
    world.cancel(7)
    with pytest.raises(AssertionError, match="CLOSED"):
        world.core.ledger.close(call, Closed.RESULT, Response(7, {}))


def test_a_slot_is_given_back_once() -> None:
    world = setup(CallState.AUTHORIZING)
    call = world.calls["a", 7]
    world.returns(7)
    with pytest.raises(AssertionError, match="one end per start"):
        world.core.ledger.ended(call)


# -- answering somebody who has no call -----------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "via", "effects"),
    [
        (Response(1, {}), Via.PUSH, [push("a", {"id": 1, "result": {}})]),
        (Failure(1, -32600, "no"), Via.PUSH, [push("a", error(1, -32600, "no"))]),
        (Failure(None, -32600, "no"), Via.PUSH, [push("a", error(None, -32600, "no"))]),
        (None, Via.PUSH, []),
        (Response(1, {}), Via.REPLY, [("reply", "c", {"id": 1, "result": {}})]),
        (None, Via.REPLY, [("reply", "c", None)]),
        (None, Via.HANDLE, [("reply", "c", None)]),
    ],
)
def test_an_answer_goes_where_the_message_came_from(
    message: Response | Failure | None, via: Via, effects: list[tuple[object, ...]]
) -> None:
    """Raxol MCP 2.8.0 §request/3: every message gets exactly one reply, nil where none is due."""
    world = World().ready("a")
    ledger = world.core.ledger
    ledger.effects = []
    ledger.say(ledger.peers.get("a"), message, via, "c")
    assert world.took(ledger.effects) == effects


@pytest.mark.parametrize("via", [Via.PUSH, Via.REPLY], ids=lambda via: via.name)
def test_no_refusal_reads_as_the_answer_of_a_call_that_runs(via: Via) -> None:
    """ADR-0006: under id null, whatever was wrong with the second message of that id."""
    world = setup(CallState.AUTHORIZING)
    wrong = {"id": 7, "method": "ping", "params": []}
    refusal = error(None, -32602, "Invalid params: params must be an object")
    effects = world.send(wrong, via=via, caller="c")
    assert effects == ([push("a", refusal)] if via is Via.PUSH else [("reply", "c", refusal)])
    assert world.send({**wrong, "id": 8}) == [
        push("a", error(8, -32602, "Invalid params: params must be an object"))
    ]


# -- slots ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("via", Via, ids=lambda via: via.name)
def test_work_above_a_bound_is_refused_at_once(via: Via) -> None:
    """ADR-0005; tools get a result, reads an error (rulings §Codes and payloads)."""
    world = World(max_in_flight=2, max_in_flight_per_connection=1).ready("a", "b", "c")
    world.call(1, "a")
    world.call(1, "b")

    def refused(message: object, connection: str) -> object:
        record, answer = world.send(message, connection, via=via, caller="c")
        assert record[:2] == ("record", "busy")
        return record[2], answer[2]

    call = {"id": 2, "method": "tools/call", "params": {"name": "delete"}}
    read = {"id": 2, "method": "tools/list"}
    assert refused(call, "a") == (
        {"scope": "connection", "method": "tools/call"},
        busy(2, "connection"),
    )
    assert refused(call, "c") == ({"scope": "server", "method": "tools/call"}, busy(2, "server"))
    data = {"error": "server_busy", "method": "tools/list"}
    assert refused(read, "a") == (
        {"scope": "connection", "method": "tools/list"},
        error(2, -31002, "server_busy", data),
    )


def test_connections_of_one_share_share_its_slots() -> None:
    """ADR-0009."""
    world = World(max_in_flight=4, max_in_flight_per_connection=2)
    for connection in ("a", "b"):
        world.open(connection, principal="alice", share="alice")
        world.call(1, connection)
    assert world.call(2, "b")[-1] == push("b", busy(2, "connection"))
    world.open("c")
    assert world.call(1, "c") == [("start", 1, "authorize_then_run")]


# -- parking --------------------------------------------------------------------------------------


def test_parking_puts_the_question_and_frees_the_slot() -> None:
    """Raxol MCP 2.8.0 §Elicitation: a parked call holds no callback worker."""
    world = World().ready("a")
    world.call(7)
    assert world.asks(7, "Delete it?") == [push("a", question(ASK, "Delete it?"), 7)]
    assert repr(world.core) == ("<ServerCore 1 connections | 0 in flight | 1 parked | 1 deadlines>")


def test_a_caller_that_must_not_block_is_let_go_after_the_question_is_on_its_way() -> None:
    """Raxol MCP 2.8.0 §Elicitation: returns nil at once, the eventual response is pushed."""
    world = World().ready("a")
    world.call(7, via=Via.HANDLE, caller="c")
    assert world.asks(7) == [push("a", question(ASK), 7), ("reply", "c", None)]
    world.approve(ASK)
    assert world.returns(7) == [push("a", text_result(7, "done"))]


def test_a_caller_that_can_wait_gets_the_eventual_response_as_its_reply() -> None:
    """Raxol MCP 2.8.0 §request/3: it stays outstanding."""
    world = World().ready("a")
    world.call(7, via=Via.REPLY, caller="c")
    assert world.asks(7) == [push("a", question(ASK), 7)]
    assert world.approve(ASK) == [("start", 7, "run")]
    assert world.returns(7) == [("reply", "c", text_result(7, "done"))]


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        ({"result": {"action": "decline"}}, "user decline"),
        ({"error": {"code": -1, "message": "no"}}, "elicitation failed"),
    ],
)
def test_a_question_that_was_answered_is_not_withdrawn(answer: JSONObject, detail: str) -> None:
    world = setup(CallState.PARKED)
    assert world.send({"id": ASK, **answer}) == [push("a", denial(7, detail))]


def test_past_its_own_cap_a_share_is_denied() -> None:
    """Raxol MCP 2.8.0 §Elicitation; the first ones are untouched."""
    world = World(max_parked_elicitations=2).ready("a")
    world.park(1)
    world.park(2)
    world.call(3)
    assert world.asks(3) == [push("a", denial(3, "too many elicitations pending"))]
    assert [world.calls["a", id].state for id in (1, 2)] == [CallState.PARKED] * 2


def test_on_a_full_server_the_fullest_makes_room_for_one_that_holds_fewer() -> None:
    """Raxol MCP 2.8.0 §Elicitation: its oldest; the question is withdrawn before the deny."""
    detail = "too many elicitations pending on this server"
    world = World(max_parked_elicitations_total=2, max_parked_elicitations=2).ready("a", "b")
    oldest = world.park(1)
    world.park(2)
    world.call(3, "b")
    assert world.asks(3, connection="b") == [
        ("record", "parked_call_evicted", {}),
        push("a", withdrawn(oldest, "evicted"), 1),
        push("a", denial(1, detail)),
        push("b", question("raxol-elicit-id-3"), 3),
    ]
    assert world.approve(oldest) == [("record", "stray_answer", {})]


def test_nobody_is_evicted_for_one_that_holds_as_many() -> None:
    """Raxol MCP 2.8.0 §Elicitation: any other ASK on a full server gets that deny itself."""
    detail = "too many elicitations pending on this server"
    world = World(max_parked_elicitations_total=2, max_parked_elicitations=2).ready("a", "b")
    world.park(1, "a")
    world.park(1, "b")
    world.call(2, "b")
    assert world.asks(2, connection="b") == [push("b", denial(2, detail))]


def test_the_caps_count_for_shares() -> None:
    """ADR-0009."""
    world = World(max_parked_elicitations=1)
    for connection in ("a", "b"):
        world.open(connection, share="alice")
        world.greet(connection)
    world.park(1, "a")
    world.call(1, "b")
    detail = "too many elicitations pending"
    assert world.asks(1, connection="b") == [push("b", denial(1, detail))]


def test_of_a_parked_call_only_what_it_is_about_is_kept() -> None:
    """What else the client wrote would be memory without a bound of ours."""
    world = World().ready("a")
    world.call(7, arguments={"path": "a"}, extra="x" * 1000)
    world.asks(7)
    call = world.calls["a", 7]
    assert (call.name, call.arguments, call.params) == ("delete", {"path": "a"}, {})
    assert [kept.params for kept in call.questions] == [{}]


def test_of_a_parked_read_what_its_authorizer_is_shown_is_kept_too() -> None:
    """It is asked again, with the same words, once the human has answered."""
    world = World().ready("a")
    params = {"uri": "file:///a", "extra": "x" * 1000}
    world.send({"id": 7, "method": "resources/read", "params": params})
    world.ends(7, Asked((FORM,), round=True))
    assert world.calls["a", 7].params == {"uri": "file:///a"}
    effects = world.answer(ASK, {"action": "decline"})
    assert effects == [("start", 7, "read")]


def test_questions_are_put_one_after_the_other_each_with_its_own_time() -> None:
    """ADR-0013."""
    world = World().ready("a")
    world.call(7)
    world.ends(7, Asked((approval("Sure?", "delete"), FORM)))
    assert world.passes(59.0) == []
    second = {"id": "raxol-elicit-id-2", "method": "elicitation/create", "params": FORM.params}
    assert world.approve(ASK) == [push("a", second, 7)]
    assert world.passes(59.0) == []
    assert world.answer("raxol-elicit-id-2", {"action": "accept", "content": {}}) == [
        ("start", 7, "run")
    ]
    assert world.calls["a", 7].answers == {
        "approve": {"action": "accept", "content": {"approve": True}},
        "who": {"action": "accept", "content": {}},
    }


def test_a_new_round_starts_without_the_answers_of_the_last() -> None:
    """They are handed to the tool once; in the stateless era they do not come back either."""
    world = World().ready("a")
    world.call(7)
    world.ends(7, Asked((FORM,), round=True, state="1"))
    world.answer(ASK, {"action": "decline"})
    seen = [world.calls["a", 7].answers]
    again = Question("why", "elicitation/create", {}, Capability.FORM)
    world.ends(7, Asked((again,), round=True, state="2"))
    seen.append(world.calls["a", 7].answers)
    assert seen == [{"who": {"action": "decline"}}, None]
    world.answer("raxol-elicit-id-2", {"action": "cancel"})
    call = world.calls["a", 7]
    assert (call.answers, call.round, call.round_state) == (
        {"why": {"action": "cancel"}},
        2,
        "2",
    )


@pytest.mark.parametrize("stateless", [False, True], ids=["handshake", "stateless"])
def test_a_read_that_the_human_did_not_allow_is_an_error(stateless: bool) -> None:
    """Rulings §Codes and payloads: -31001; a result of another shape would not be readable."""
    world = World().ready("a")
    if stateless:
        world.stateless(7, method="resources/read", params={"uri": "file:///a"})
    else:
        world.send({"id": 7, "method": "resources/read", "params": {"uri": "file:///a"}})
    ledger = world.core.ledger
    ledger.effects = []
    data = {"error": "authorization_required", "method": "resources/read", "detail": "no"}
    call = world.calls["a", 7]
    ledger.deny(call, Closed.DENIED, "no")
    assert world.took(ledger.effects) == [
        ("stop", 7),
        push("a", error(7, -31001, "authorization_required: resources/read", data)),
    ]


# -- questions of a running tool ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ending", "reason"),
    [
        ("returns", "result"),
        ("fails", "failed"),
        ("cancelled", "cancelled"),
        ("times out", "worker_timeout"),
        ("parks", "result"),
        ("gone", None),
    ],
)
def test_an_open_question_of_a_tool_ends_with_its_worker_and_is_withdrawn(
    ending: str, reason: str | None
) -> None:
    """ADR-0015: the human is not left with a dialog that does nothing."""
    world = World(elicitation_timeout=400.0, callback_timeout=300.0).ready("a")
    world.call(7)
    world.call(8)
    world.asked_midway(8, "1", FORM)
    world.asked_midway(7, "1", FORM)
    match ending:
        case "returns":
            effects = world.returns(7)
        case "fails":
            effects = world.ends(7, Failed("Error: ValueError"))
        case "cancelled":
            effects = world.cancel(7)
        case "times out":
            effects = world.passes(300.0)
        case "parks":
            effects = world.asks(7)
        case _:
            effects = world.gone()
    retracted = push("a", withdrawn("raxol-elicit-id-2", str(reason)), 7)
    assert [effect for effect in effects if effect == retracted] == [retracted] * bool(reason)
    if ending not in ("times out", "gone"):
        assert ASK in world.core.ledger.peers.get("a").asks, "the other tool still asks"
    assert world.answer("raxol-elicit-id-2", {}) == [("record", "stray_answer", {})]


def test_without_a_sink_nothing_is_sent() -> None:
    """A direct caller is answered by its Reply; there is nobody to push to."""
    world = World()
    ledger = world.core.ledger
    world.call(7, via=Via.REPLY, caller="c")
    ledger.effects = []
    ledger.push(world.calls["a", 7], Response(1, {}))
    assert ledger.effects == []
    world.open("a")
    ledger.effects = []
    ledger.push(world.calls["a", 7], Response(1, {}))
    assert world.took(ledger.effects) == [push("a", {"id": 1, "result": {}}, 7)]


# -- approved -------------------------------------------------------------------------------------


def test_a_yes_runs_the_call_when_there_is_a_slot() -> None:
    world = World().ready("a")
    ask = world.park(7)
    assert world.approve(ask) == [("start", 7, "run")]
    assert world.passes(299.9) == [], "it has the whole callback timeout"


def test_a_yes_waits_for_a_slot_in_its_place() -> None:
    """ADR-0011."""
    world = setup(CallState.APPROVED)
    assert world.returns(8) == [push("a", text_result(8, "done")), ("start", 7, "run")]
    assert repr(world.core).endswith("| 1 in flight | 0 parked | 1 deadlines>")


def test_the_oldest_approval_runs_first_and_a_full_share_is_passed_over() -> None:
    """Rulings §Time, shares, bounds."""
    world = World(max_in_flight=2, max_in_flight_per_connection=1).ready("a", "b", "c")
    asks = {(id, c): world.park(id, c) for id, c in ((1, "a"), (2, "a"), (3, "b"), (4, "c"))}
    world.call(8, "a")
    world.call(9, "c")
    for (_, connection), ask in asks.items():
        assert world.approve(ask, connection) == []
    assert world.returns(9, connection="c")[1:] == [("start", 3, "run")]  # "a" is full itself
    assert world.returns(8)[1:] == [("start", 1, "run")]
    assert world.returns(3, connection="b")[1:] == [("start", 4, "run")]
    assert world.returns(1)[1:] == [("start", 2, "run")]


def test_an_approved_call_counts_under_the_caps_and_is_never_evicted() -> None:
    """Rulings §Time, shares, bounds."""
    world = World(
        max_in_flight=2,
        max_in_flight_per_connection=1,
        max_parked_elicitations_total=2,
        max_parked_elicitations=2,
    ).ready("a", "b")
    oldest, younger = world.park(1), world.park(2)
    world.call(9)
    world.approve(oldest)
    detail = "too many elicitations pending on this server"
    world.call(3, "b")
    assert world.asks(3, connection="b")[1:3] == [
        push("a", withdrawn(younger, "evicted"), 2),
        push("a", denial(2, detail)),
    ]
    assert repr(world.core).endswith("| 1 in flight | 2 parked (1 approved) | 3 deadlines>")
    world.call(4, "b")
    assert world.asks(4, connection="b") == [push("b", denial(4, detail))]


@pytest.mark.parametrize("state", [CallState.PARKED, CallState.APPROVED], ids=lambda s: s.name)
def test_a_place_is_free_again_however_it_was_left(state: CallState) -> None:
    world = setup(state)
    assert world.core.ledger.parking.held("a") == 1
    world.cancel(7)
    assert world.core.ledger.parking.held("a") == 0
    assert world.core.ledger.approved == {}
