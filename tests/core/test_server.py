"""The server: inputs and the effects they lead to, in order.

What follows from reports is in `test_reports.py`, what calls hold in `test_ledger.py`; whole
stories are in `tests/transcripts/`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

import pytest

import raxol_mcp.core.server as server_module
from raxol_mcp.core.calls import CallState, Via
from raxol_mcp.core.outcomes import Asked, Denied, Granted, Outcome, Returned
from raxol_mcp.core.peers import Capability, ConnectionFacts
from raxol_mcp.core.questions import Question
from raxol_mcp.errors import LocalProtocolError
from raxol_mcp.wire.jsonrpc import Ignored, JSONObject, Notification, decode
from raxol_mcp.wire.meta import META_CLIENT_CAPABILITIES, META_SUBSCRIPTION_ID, META_VERSION
from tests.core.support import (
    EMPTY,
    SERVER_INFO,
    World,
    denial,
    error,
    push,
    question,
    text_result,
    withdrawn,
)

ASK = "raxol-elicit-id-1"
WHO = Question("who", "elicitation/create", {"message": "Who?"}, Capability.FORM)
START = [("start", 7, "authorize_then_run")]
META: JSONObject = {META_VERSION: "2026-07-28", META_CLIENT_CAPABILITIES: {}}
IN_FLIGHT = error(None, -32600, "A request with this id is still in flight")
NO_BATCH = error(None, -32600, "A JSON array is not a message here")


# -- requests -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        ({"id": 1, "method": "ping"}, {"id": 1, "result": {}}),
        ({"id": 0, "method": "ping", "params": None}, {"id": 0, "result": {}}),
        ({"id": "", "method": "ping", "params": {}}, {"id": "", "result": {}}),
        ({"id": 1, "method": "odd"}, error(1, -32601, "Unknown method: odd")),
        ({"id": 1, "method": ""}, error(1, -32601, "Unknown method: ")),
        ({"id": 1, "method": "TOOLS/CALL"}, error(1, -32601, "Unknown method: TOOLS/CALL")),
        ({"id": 1, "method": "tools/call"}, error(1, -32602, "tools/call requires params")),
        ({"id": 1, "method": "resources/read"}, error(1, -32602, "resources/read requires params")),
        (
            {"id": 1, "method": "tools/call", "params": {}},
            error(1, -32602, "name must be a string"),
        ),
        (
            {"id": 1, "method": "prompts/list", "params": {"cursor": 1}},
            error(1, -32602, "cursor must be a string"),
        ),
        # params are looked at before the method, and a bad method before everything else.
        (
            {"id": 1, "method": "odd", "params": []},
            error(1, -32602, "Invalid params: params must be an object"),
        ),
        (
            {"id": 1, "method": 5, "params": "x"},
            error(1, -32602, "Invalid params: params must be an object"),
        ),
        (
            {"id": 1, "method": 5},
            error(1, -32600, "Invalid request: method must be a string"),
        ),
        ({"id": 1}, error(1, -32600, "Missing method")),
        (
            {"id": None, "method": "ping"},
            error(None, -32600, "Invalid request: id must be a string or a 64 bit integer"),
        ),
        # Metadata that is no object says nothing: the era of the handshake.
        ({"id": 1, "method": "ping", "params": {"_meta": []}}, {"id": 1, "result": {}}),
        ({"id": 1, "method": "ping", "params": {"_meta": {}}}, {"id": 1, "result": {}}),
        # Only the key itself counts, and only there.
        (
            {"id": 1, "method": "ping", "params": {"_meta": {META_VERSION.upper(): "2026-07-28"}}},
            {"id": 1, "result": {}},
        ),
        (
            {"id": 1, "method": "ping", "params": {META_VERSION: "2026-07-28", "_meta": {}}},
            {"id": 1, "result": {}},
        ),
        # The stateless era, told by its metadata and never by the method's name (ADR-0007). It
        # answers for a bad version, too (MCP 2026-07-28 basic/versioning).
        (
            {"id": 1, "method": "ping", "params": {"_meta": {META_VERSION: None}}},
            error(1, -32602, f"_meta[{META_VERSION!r}] must be a string"),
        ),
        (
            {"id": 1, "method": "ping", "params": {"_meta": META}},
            error(1, -32601, "Unknown method: ping"),
        ),
        (
            {"id": 1, "method": "initialize", "params": {"_meta": META}},
            error(1, -32601, "Unknown method: initialize"),
        ),
        (
            {"id": 1, "method": "server/discover"},
            error(1, -32601, "Unknown method: server/discover"),
        ),
        (
            {"id": 1, "method": "tools/list", "params": {"_meta": META, "cursor": 1}},
            error(1, -32602, "cursor must be a string"),
        ),
    ],
)
@pytest.mark.parametrize("via", Via, ids=lambda via: via.name)
def test_what_needs_no_worker_is_answered_at_once(
    message: JSONObject, answer: JSONObject, via: Via
) -> None:
    """Raxol MCP 2.8.0; rulings §Messages. The same answer, whoever waits for it."""
    world = World()
    world.open()
    effects = world.send(message, via=via, caller="c")
    assert effects == ([push("a", answer)] if via is Via.PUSH else [("reply", "c", answer)])
    assert repr(world.core) == "<ServerCore 1 connections | 0 in flight | 0 parked | 0 deadlines>"


@pytest.mark.parametrize("via", [Via.REPLY, Via.HANDLE], ids=lambda via: via.name)
@pytest.mark.parametrize(
    "message",
    [
        {"method": "notifications/initialized"},
        {"method": "odd"},
        {"method": "tools/call", "params": {"name": "delete"}},
        {"method": "ping"},
        {"method": "notifications/cancelled", "params": {"requestId": 1}},
        {"id": "x", "result": {}},
        {"id": "x", "result": None},
        {"id": 1, "error": {}},
        {"id": None, "result": {}},
        {"method": 5},
        {"method": "odd", "params": []},
    ],
)
def test_what_is_never_answered_gets_an_empty_reply_and_runs_nothing(
    message: JSONObject, via: Via
) -> None:
    """Raxol MCP 2.8.0 §request/3: every message gets exactly one reply."""
    world = World()
    effects = world.send(message, via=via, caller="c")
    assert [effect for effect in effects if effect[0] != "record"] == [("reply", "c", None)]
    assert [effect for effect in world.send(message) if effect[0] != "record"] == []
    assert repr(world.core) == EMPTY, "nobody is remembered for it"


def test_a_message_that_was_ignored_is_not_answered() -> None:
    world = World()
    world.open()
    assert world.receive(Ignored("blank line")) == []
    assert world.receive(Ignored("blank line"), via=Via.REPLY, caller="c") == [("reply", "c", None)]


def test_bytes_that_are_no_message_are_answered_and_the_connection_lives() -> None:
    """Rulings §Messages: -32700, and the pipe lives."""
    world = World()
    world.open()
    ((kind, _, message, _),) = world.receive(decode(b'{"id": 1, "id": 2}'))
    assert kind == "push"
    assert isinstance(message, dict)
    assert (message["id"], message["error"]["code"]) == (None, -32700)
    assert world.send({"id": 1, "method": "ping"}) == [push("a", {"id": 1, "result": {}})]


def test_a_call_is_started_and_answered() -> None:
    world = World().ready("a")
    assert world.call(7) == START
    assert repr(world.core) == "<ServerCore 1 connections | 1 in flight | 0 parked | 1 deadlines>"
    assert world.returns(7) == [push("a", text_result(7, "done"))]
    assert repr(world.core) == "<ServerCore 1 connections | 0 in flight | 0 parked | 0 deadlines>"


@pytest.mark.parametrize(
    ("method", "params", "job"),
    [
        ("tools/call", {"name": "t"}, "authorize_then_run"),
        ("tools/list", None, "read"),
        ("resources/list", {}, "read"),
        ("resources/templates/list", None, "read"),
        ("resources/read", {"uri": "file:///a"}, "read"),
        ("resources/subscribe", {"uri": "file:///a"}, "read"),
        ("resources/unsubscribe", {"uri": "file:///a"}, "read"),
        ("prompts/list", None, "read"),
        ("prompts/get", {"name": "p"}, "read"),
        ("logging/setLevel", {"level": "debug"}, "read"),
        (
            "completion/complete",
            {
                "ref": {"type": "ref/prompt", "name": "p"},
                "argument": {"name": "n", "value": ""},
            },
            "read",
        ),
    ],
)
def test_application_code_and_authorizers_run_in_a_worker(
    method: str, params: JSONObject | None, job: str
) -> None:
    """Raxol MCP 2.8.0 §Callback isolation: authorization callbacks, too."""
    world = World().ready("a")
    message: JSONObject = {"id": 7, "method": method}
    if params is not None:
        message["params"] = params
    assert world.send(message) == [("start", 7, job)]


@pytest.mark.parametrize("id", [7, "7", 0, ""])
def test_a_second_request_with_an_id_in_flight_is_refused_and_the_first_is_unaffected(
    id: object,
) -> None:
    """ADR-0006: under id null, so that it cannot be read as the answer of the first."""
    world = World().ready("a", "b")
    world.call(id)
    assert world.call(id) == [push("a", IN_FLIGHT)]
    assert world.send({"id": id, "method": "ping"}) == [push("a", IN_FLIGHT)]
    assert world.send({"id": id, "method": "odd"}) == [push("a", IN_FLIGHT)]
    assert world.call(id, "b") == [("start", id, "authorize_then_run")], (
        "ids are a connection's own"
    )
    assert world.returns(id) == [push("a", text_result(id, "done"))]
    assert world.call(id) == [("start", id, "authorize_then_run")]


def test_ids_compare_by_type_and_value() -> None:
    """ADR-0006."""
    world = World().ready("a")
    assert [world.call(id) for id in (1, "1", 0, "")] == [
        [("start", id, "authorize_then_run")] for id in (1, "1", 0, "")
    ]


def test_ping_and_answers_work_while_every_slot_is_taken() -> None:
    """Raxol MCP 2.8.0 §Callback isolation."""
    world = World(max_in_flight=1).ready("a")
    ask = world.park(1)
    world.call(7)
    assert world.send({"id": 2, "method": "ping"}) == [push("a", {"id": 2, "result": {}})]
    assert world.answer(ask, {"action": "decline"}) == [push("a", denial(1, "user decline"))]


def test_a_stateless_request_is_discovered_and_called_on_the_same_connection() -> None:
    """ADR-0007: both eras on one pipe, interleaved."""
    world = World().ready("a")
    ((_, _, message, _),) = world.stateless(1, method="server/discover")
    assert isinstance(message, dict)
    assert message["result"]["supportedVersions"] == ["2026-07-28"]
    assert world.stateless(7) == START
    assert world.call(8) == [("start", 8, "authorize_then_run")]
    ((_, _, stateless, _),) = world.returns(7)
    assert isinstance(stateless, dict)
    assert stateless["result"]["resultType"] == "complete"
    assert world.returns(8) == [push("a", text_result(8, "done"))]


def test_a_question_of_the_stateless_era_is_taken_up_again_with_its_token() -> None:
    """MCP 2026-07-28 basic/patterns/mrtr; what may be wrong with it is in `test_reports.py`."""
    world = World()
    world.open()
    world.stateless(7)
    ((_, _, message, _),) = world.asks(7)
    assert isinstance(message, dict)
    token = message["result"]["requestState"]
    yes = {"approve": {"action": "accept", "content": {"approve": True}}}
    params = {"requestState": token, "inputResponses": yes}
    assert world.stateless(8, params=params) == [("start", 8, "run")]


# -- initialize -----------------------------------------------------------------------------------


def test_a_second_initialize_is_refused_and_changes_nothing() -> None:
    """Rulings §Messages."""
    world = World().ready("a")
    ask = world.park(7)
    refused = error("initialize a", -32600, "This connection is already initialized")
    assert world.greet("a", {}) == [push("a", refused)]
    assert world.approve(ask) == [("start", 7, "run")]
    world.call(8)
    assert world.asks(8)[0][2] == question("raxol-elicit-id-2"), "it can still be asked"


def test_a_bad_initialize_may_be_repaired() -> None:
    world = World()
    world.open()
    bad = {"id": 1, "method": "initialize", "params": {"protocolVersion": 1}}
    assert world.send(bad) == [push("a", error(1, -32602, "protocolVersion must be a string"))]
    ((_, _, message, _),) = world.greet("a")
    assert isinstance(message, dict)
    assert message["result"]["protocolVersion"] == "2025-11-25"


def test_what_initialize_stored_before_the_first_sink_is_kept() -> None:
    """Raxol MCP 2.8.0 §Client capabilities: initialize, then subscribe, is legal."""
    world = World()
    world.greet("a")
    world.open("a")
    world.call(7)
    assert world.asks(7) == [push("a", question(ASK), 7)]


def test_past_the_cap_one_declaration_is_evicted_and_recorded() -> None:
    """Raxol MCP 2.8.0 §Client capabilities."""
    world = World(max_client_capabilities=3).ready("live")
    evicted = []
    for number in range(10):
        evicted += [effect for effect in world.greet(f"o{number}") if effect[0] == "record"]
    record = ("record", "client_capabilities_evicted", {"size": 3, "live_subscriber": False})
    assert evicted == [record] * 8
    assert world.core.stats()["declared"] == world.core.stats()["connections"] == 3
    world.call(7, "live")
    assert world.asks(7, connection="live") == [push("live", question(ASK), 7)]


def test_an_evicted_connection_keeps_working_and_may_initialize_again() -> None:
    """Raxol MCP 2.8.0 §Client capabilities: it only cannot be asked until then."""
    world = World(max_client_capabilities=1).ready("a")
    world.open("b")
    record, _ = world.greet("b")
    assert record == ("record", "client_capabilities_evicted", {"size": 1, "live_subscriber": True})
    world.call(7)
    assert world.asks(7) == [push("a", denial(7, "Sure?"))]
    assert [effect[0] for effect in world.greet("a")] == ["record", "push"]
    world.call(8)
    assert world.asks(8) == [push("a", question(ASK), 8)]


def test_where_a_greeting_is_wanted_nothing_is_served_before_it() -> None:
    world = World()
    world.open(greeting_required=True)
    ((_, _, message, _),) = world.call(7)
    assert isinstance(message, dict)
    assert message["error"]["code"] == -32602
    assert world.send({"id": 1, "method": "ping"}) == [push("a", {"id": 1, "result": {}})]
    assert world.stateless(7) == START
    world.greet()
    assert world.call(8) == [("start", 8, "authorize_then_run")]


# -- batches --------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [None, "2024-11-05", "2025-06-18", "2025-11-25"])
def test_an_array_is_no_message_in_other_revisions(version: str | None) -> None:
    """Rulings §Messages."""
    world = World()
    world.open()
    if version is not None:
        world.greet(version=version)
    assert world.send([{"id": 1, "method": "ping"}]) == [push("a", NO_BATCH)]


@pytest.mark.parametrize("via", [Via.REPLY, Via.HANDLE], ids=lambda via: via.name)
def test_an_array_has_no_single_reply(via: Via) -> None:
    world = World()
    world.open()
    world.greet(version="2025-03-26")
    effects = world.send([{"id": 1, "method": "ping"}], via=via, caller="c")
    assert effects == [("reply", "c", NO_BATCH)]


def test_a_batch_is_received_where_its_revision_says_so() -> None:
    """MCP 2025-03-26 basic §Batching: MUST support receiving; not initialize."""
    world = World()
    world.open()
    world.greet(version="2025-03-26")
    call = {"id": 7, "method": "tools/call", "params": {"name": "delete"}}
    assert world.send(
        [
            {"id": 1, "method": "ping"},
            {"method": "notifications/initialized"},
            call,
            call,
            {"id": 2, "method": "initialize", "params": {}},
            {"id": 7, "method": "initialize", "params": {}},
            {"id": "x", "result": {}},
            5,
        ]
    ) == [
        push("a", {"id": 1, "result": {}}),
        ("start", 7, "authorize_then_run"),
        push("a", IN_FLIGHT),
        push("a", error(2, -32600, "initialize is not for a batch")),
        push("a", error(None, -32600, "initialize is not for a batch")),
        ("record", "stray_answer", {}),
        push("a", error(None, -32600, "Invalid request: a message is an object with a method")),
    ]


def test_a_batch_of_calls_cannot_pass_the_bounds() -> None:
    world = World(max_in_flight=2, max_in_flight_per_connection=2)
    world.open()
    world.greet(version="2025-03-26")
    params = {"name": "delete"}
    effects = world.send([{"id": id, "method": "tools/call", "params": params} for id in (1, 2, 3)])
    assert [effect[0] for effect in effects] == ["start", "start", "record", "push"]


# -- cancelled by the client ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "stopped"),
    [
        ({"requestId": 7}, True),
        ({"requestId": 7, "reason": "changed my mind"}, True),
        ({"requestId": "7"}, False),
        ({"requestId": 8}, False),
        ({"requestId": 7.0}, False),
        ({"requestId": True}, False),
        ({"requestId": None}, False),
        ({"requestId": [7]}, False),
        ({}, False),
        (None, False),
    ],
)
def test_a_client_cancels_its_own_request(params: JSONObject | None, *, stopped: bool) -> None:
    """MCP basic/utilities/cancellation: unknown and malformed ones are ignored without a word."""
    world = World().ready("a", "b")
    world.call(7)
    cancelled = Notification("notifications/cancelled", params)
    assert world.receive(cancelled, "b") == [], "another's request is not its own"
    assert world.receive(cancelled) == [("stop", 7)] * stopped
    assert world.receive(cancelled) == []


def test_a_call_with_the_id_one_is_not_cancelled_by_true() -> None:
    """`True == 1` in Python."""
    world = World().ready("a")
    world.call(1)
    assert world.receive(Notification("notifications/cancelled", {"requestId": True})) == []


def test_another_notification_is_dropped() -> None:
    world = World().ready("a")
    world.call(7)
    assert world.send({"method": "notifications/odd", "params": {"requestId": 7}}) == []


# -- workers --------------------------------------------------------------------------------------


def test_a_worker_is_reported_once() -> None:
    """A mistake of the shell is raised; everything else is answered."""
    world = World().ready("a")
    world.call(7)
    call = world.calls["a", 7]
    world.returns(7)
    with pytest.raises(LocalProtocolError, match=r"no worker of <Call 7 tools/call closed result>"):
        world.core.worker_ended(call, Returned({}), world.now)


def test_a_parked_call_has_no_worker_to_report() -> None:
    world = World().ready("a")
    world.park(7)
    with pytest.raises(LocalProtocolError, match="was started, or it was reported before"):
        world.core.worker_ended(world.calls["a", 7], Returned({}), world.now)


def test_a_report_lets_an_approved_call_start_after_the_answer() -> None:
    world = World(max_in_flight=1).ready("a")
    ask = world.park(1)
    world.call(7)
    world.approve(ask)
    assert world.returns(7) == [push("a", text_result(7, "done")), ("start", 1, "run")]


@pytest.mark.parametrize("outcome", [Returned({}), Denied("no"), Asked((WHO,))])
def test_a_late_report_lets_an_approved_call_start(outcome: Outcome) -> None:
    """The worker of a cancelled call ends: its slot is free now, not before."""
    world = World(max_in_flight=1).ready("a")
    ask = world.park(1)
    world.call(7)
    world.approve(ask)
    assert world.cancel(7) == [("stop", 7)]
    assert world.ends(7, outcome) == [("start", 1, "run")]


@pytest.mark.parametrize(
    ("duration", "due_at"),
    [(1.0, 51.0), (249.0, 299.0), (250.0, 300.0), (300.0, 300.0), (1e9, 300.0)],
)
def test_a_tools_own_time_is_part_of_its_workers_time(duration: float, due_at: float) -> None:
    """Raxol MCP 2.8.0: callback_timeout bounds the worker; the authorizer has used 50 s of it."""
    world = World().ready("a")
    world.call(7)
    world.passes(50.0)
    world.took(world.core.limited(world.calls["a", 7], duration, world.now))
    assert world.passes(due_at - 50.0 - 0.1) == []
    assert [effect[0] for effect in world.passes(0.1)] == ["record", "stop", "push"]


@pytest.mark.parametrize("ending", ["cancelled", "returned", "parked"])
def test_a_limit_that_comes_too_late_is_none(ending: str) -> None:
    world = World().ready("a")
    world.call(7)
    if ending == "cancelled":
        world.cancel(7)
    elif ending == "returned":
        world.returns(7)
    else:
        world.asks(7)
    assert world.took(world.core.limited(world.calls["a", 7], 1.0, world.now)) == []
    assert world.passes(2.0) == []


# -- time -----------------------------------------------------------------------------------------


def test_the_next_deadline_is_known() -> None:
    world = World().ready("a")
    seen = [world.core.next_deadline]
    world.now = 100.0
    world.park(7)
    world.passes(0.0)
    seen.append(world.core.next_deadline)
    world.call(8)
    seen.append(world.core.next_deadline)
    assert seen == [None, 160.0, 160.0]


@pytest.mark.parametrize("start", [-1e9, -5.0, 0.0, 1e9])
def test_any_epoch_will_do(start: float) -> None:
    """`now` is seconds of any epoch."""
    world = World(wall_offset=2e9)
    world.now = start
    world.ready("a")
    world.park(7)
    assert world.passes(59.9) == []
    assert len(world.passes(0.1)) == 2


def test_time_does_not_run_backwards() -> None:
    world = World().ready("a")
    world.passes(1.0)
    with pytest.raises(AssertionError, match="time does not run backwards"):
        world.core.tick(0.9)


def test_waits_that_end_together_end_in_the_order_of_their_deadlines() -> None:
    world = World().ready("a", "b")
    world.call(1, "a")
    world.passes(200.0)
    world.park(2, "b")
    world.passes(30.0)
    world.park(3, "a")
    effects = world.passes(100.0)
    answers = [
        e[2]["id"] for e in effects if e[0] == "push" and isinstance(e[2], dict) and "id" in e[2]
    ]
    assert answers == [2, 3, 1]


# -- connections ----------------------------------------------------------------------------------


def test_a_connection_that_is_opened_again_is_ended_first() -> None:
    """Raxol MCP 2.8.0 §Types: another process on its id must not get its approvals."""
    world = World().ready("a")
    ask = world.park(7)
    world.call(8)
    assert world.open("a") == [("stop", 8)]
    assert world.approve(ask) == [("record", "stray_answer", {})]
    world.call(9)
    assert world.asks(9) == [push("a", denial(9, "Sure?"))], "nor what it declared"
    assert [effect[0] for effect in world.greet()] == ["push"], "it may greet for itself"


def test_what_is_opened_again_may_have_another_share() -> None:
    """The calls of the old one give back what they took, from the share they took it from."""
    world = World(max_in_flight=4, max_in_flight_per_connection=1)
    world.open("a", principal="alice", share="alice")
    world.greet()
    world.call(7, via=Via.REPLY, caller="c")
    world.open("a", principal="bob", share="bob")
    assert world.core.ledger.shares() == ({"alice": 1}, {})
    assert world.call(8) == [("start", 8, "authorize_then_run")]
    assert world.core.ledger.shares() == ({"alice": 1, "bob": 1}, {})
    assert world.calls["a", 7].facts.principal == "alice"
    assert world.returns(7) == [("reply", "c", text_result(7, "done"))]
    assert world.core.ledger.shares() == ({"bob": 1}, {})


def test_a_late_report_of_the_old_connection_does_not_touch_the_new_one() -> None:
    world = World().ready("a")
    world.call(7)
    old = world.calls["a", 7]
    world.gone()
    world.ready("a")
    ask = world.park(7)
    assert world.took(world.core.worker_ended(old, Returned({}), world.now), ended=old) == []
    assert world.approve(ask) == [("start", 7, "run")]


@pytest.mark.parametrize("via", [Via.REPLY, Via.HANDLE], ids=lambda via: via.name)
def test_a_call_that_somebody_waits_for_elsewhere_survives_its_connection(via: Via) -> None:
    world = World().ready("a")
    world.call(7, via=via, caller="c")
    assert world.gone() == []
    assert repr(world.core) == "<ServerCore 1 connections | 1 in flight | 0 parked | 1 deadlines>"
    assert world.asks(7) == [("reply", "c", denial(7, "Sure?"))], "nobody is there to ask"
    assert repr(world.core) == EMPTY


@pytest.mark.parametrize("via", [Via.REPLY, Via.HANDLE], ids=lambda via: via.name)
@pytest.mark.parametrize("approved", [False, True], ids=["parked", "approved"])
def test_once_it_was_parked_it_goes_with_its_connection(via: Via, *, approved: bool) -> None:
    """Raxol MCP 2.8.0 §Elicitation: it ends with no answer; an approved tool is stopped."""
    world = World().ready("a")
    world.call(7, via=via, caller="c")
    world.asks(7)
    if approved:
        world.approve(ASK)
    replies = [("reply", "c", None)] * (via is Via.REPLY)
    assert world.gone() == [("stop", 7)] * approved + replies


@pytest.mark.parametrize("via", [Via.REPLY, Via.HANDLE], ids=lambda via: via.name)
def test_a_listen_goes_with_its_connection_whoever_waits(via: Via) -> None:
    """What it hears is put on that connection: a new client of that id did not ask for it."""
    world = World()
    world.open()
    world.listens(7, {"toolsListChanged": True}, via=via, caller="c")
    assert world.gone() == [("reply", "c", None)]
    world.open()
    assert world.took(world.core.notified("notifications/tools/list_changed", {}, 0.0)) == [
        push("a", {"method": "notifications/tools/list_changed"}, None)
    ]


def test_who_is_gone_is_forgotten_with_everything_they_said() -> None:
    world = World().ready("a")
    world.send({"id": 1, "method": "resources/subscribe", "params": {"uri": "file:///a"}})
    world.ends(1, Granted())
    world.gone()
    assert repr(world.core) == EMPTY
    assert world.core.stats()["declared"] == 0
    world.open()
    updated = "notifications/resources/updated"
    assert world.took(world.core.notified(updated, {"uri": "file:///a"}, 0.0)) == []


def test_who_was_never_there_may_be_gone() -> None:
    world = World()
    assert (world.gone("x"), repr(world.core)) == ([], EMPTY)
    assert world.took(world.core.input_ended("x", 0.0)) == []


def test_a_direct_caller_leaves_nothing_behind() -> None:
    """Raxol MCP 2.8.0: an invented connection id for each request must not grow the server."""
    world = World()
    for number in range(5):
        world.call(7, f"c{number}", via=Via.REPLY, caller=number)
        world.returns(7, connection=f"c{number}")
        world.send({"id": 1, "method": "ping"}, f"p{number}")
        world.send({"id": "x", "result": {}}, f"r{number}")
    assert repr(world.core) == EMPTY


# -- the end of input -----------------------------------------------------------------------------


def test_at_the_end_of_input_what_waits_for_its_words_is_dropped_and_the_rest_answered() -> None:
    world = World(max_in_flight=2, max_in_flight_per_connection=1).ready("a")
    approved = world.park(1)
    world.park(2)
    world.call(7)
    world.approve(approved)
    assert world.core.outstanding("a") == 3
    assert world.took(world.core.input_ended("a", 0.0)) == []
    assert world.core.outstanding("a") == 2
    assert world.returns(7) == [push("a", text_result(7, "done")), ("start", 1, "run")]
    assert world.returns(1) == [push("a", text_result(1, "done"))]
    assert world.core.outstanding("a") == 0


def test_after_the_end_of_input_nobody_is_asked() -> None:
    """The answer could not be read: it is denied at once instead of in a minute."""
    world = World().ready("a")
    world.call(7)
    world.took(world.core.input_ended("a", 0.0))
    assert world.asks(7) == [push("a", denial(7, "Sure?"))]


def test_a_connection_that_is_opened_again_hears_again() -> None:
    world = World().ready("a")
    world.took(world.core.input_ended("a", 0.0))
    world.ready("a")
    world.call(7)
    assert world.asks(7) == [push("a", question(ASK), 7)]


def test_listens_are_not_outstanding() -> None:
    """They have no end: a transport that waits for answers must not wait for these."""
    world = World()
    world.open()
    world.stateless(7, method="subscriptions/listen", params={"notifications": {}})
    assert world.core.outstanding("a") == 1
    world.ends(7, Granted())
    assert (world.core.outstanding("a"), world.core.outstanding("x")) == (0, 0)
    assert world.took(world.core.input_ended("a", 0.0)) == []
    assert world.calls["a", 7].state is CallState.CLOSED


# -- the end of the server ------------------------------------------------------------------------


def test_when_the_server_ends_listens_are_told_and_everything_else_is_dropped() -> None:
    """MCP 2026-07-28 basic/patterns/subscribe: the result, with the subscription's id."""
    world = World().ready("a")
    world.listens("l", {"toolsListChanged": True})
    world.park(1)
    world.call(7)
    world.call(8, "d", via=Via.REPLY, caller="c")
    meta = {META_SUBSCRIPTION_ID: "l", **SERVER_INFO}
    assert world.took(world.core.stopped(0.0)) == [
        push("a", {"id": "l", "result": {"resultType": "complete", "_meta": meta}}),
        ("stop", 7),
        ("stop", 8),
        ("reply", "c", None),
    ]
    assert repr(world.core) == (
        "<ServerCore 1 connections | 2 in flight (2 stopping) | 0 parked | 0 deadlines>"
    )
    assert world.wind_down() == EMPTY


def test_when_the_server_ends_a_listen_without_a_sink_is_forgotten() -> None:
    world = World()
    assert world.listens(7, {"toolsListChanged": True}, via=Via.REPLY, caller="c") == []
    world.took(world.core.stopped(0.0))
    assert repr(world.core) == EMPTY


# -- cancelled from inside ------------------------------------------------------------------------


def test_cancelling_what_is_over_does_nothing() -> None:
    """Raxol MCP 2.8.0 §cancel/2: a request that already completed is left alone."""
    world = World().ready("a")
    world.call(7, via=Via.REPLY, caller="c")
    world.returns(7)
    assert world.cancel(7) == []


@pytest.mark.parametrize("stage", ["authorizing", "parked", "approved", "running"])
def test_a_request_is_cancelled_at_every_stage_by_the_same_handle(stage: str) -> None:
    """Raxol MCP 2.8.0 §cancel/2: answered nil, once; the tool is stopped, the prompt forgotten."""
    world = World(max_in_flight=1).ready("a")
    world.call(7, via=Via.REPLY, caller="c")
    if stage != "authorizing":
        world.asks(7)
    if stage == "approved":
        world.call(8)
    if stage in ("approved", "running"):
        world.approve(ASK)
    working = stage in ("authorizing", "running")
    asked = [push("a", withdrawn(ASK, "cancelled"), 7)] * (stage == "parked")
    assert world.cancel(7) == [*asked, *[("stop", 7)] * working, ("reply", "c", None)]
    assert world.cancel(7) == []
    assert world.approve(ASK) == [("record", "stray_answer", {})]


# -- what shells read -----------------------------------------------------------------------------


def test_its_repr_and_its_counts_tell_what_goes_on() -> None:
    world = World(max_in_flight=2, max_in_flight_per_connection=1).ready("a", "b")
    ask = world.park(1)
    world.park(2)
    world.call(7)
    world.approve(ask)
    world.call(7, "b")
    world.cancel(7, "b")
    assert repr(world.core) == (
        "<ServerCore 2 connections | 2 in flight (1 stopping)"
        " | 2 parked (1 approved) | 3 deadlines>"
    )
    assert world.core.stats() == {
        "connections": 2,
        "declared": 2,
        "in_flight": 2,
        "stopping": 1,
        "parked": 2,
        "approved": 1,
        "deadlines": 3,
        "spent": 0,
    }


# -- what a running tool says ---------------------------------------------------------------------


def test_a_running_tool_reports_logs_and_asks() -> None:
    """What each means is in `test_midway.py`; here: that the inputs get there."""
    world = World().ready("a")
    world.call(7, _meta={"progressToken": "p"})
    call, core = world.calls["a", 7], world.core
    progress = {"progressToken": "p", "progress": 1}
    log = {"level": "warning", "data": "low", "logger": "disk"}
    asked = {"id": ASK, "method": "elicitation/create", "params": {"message": "Who?"}}
    assert world.took(core.progressed(call, 1, None, None, 1.0)) == [
        ("note", "a", {"method": "notifications/progress", "params": progress}, 7)
    ]
    assert world.took(core.logged(call, 3, "disk", "low", 2.0)) == [
        ("note", "a", {"method": "notifications/message", "params": log}, 7)
    ]
    assert world.took(core.asked(call, "1", WHO, 3.0)) == [push("a", asked, 7)]
    world.now = 3.0
    assert world.passes(60.0) == [
        ("resolve", 7, "1", None),
        push("a", withdrawn(ASK, "answer_timeout"), 7),
    ]


# -- telling the world ----------------------------------------------------------------------------


def test_a_stateless_client_hears_what_it_listens_for_and_nothing_else() -> None:
    """MCP 2026-07-28 basic/patterns/subscribe: MUST NOT send what was not requested."""
    world = World()
    world.open()
    method = "notifications/tools/list_changed"
    told = [push("a", {"method": method}, None)]
    assert world.took(world.core.notified(method, {}, 0.0)) == told
    world.stateless(1, method="server/discover")
    assert world.took(world.core.notified(method, {}, 0.0)) == []
    world.greet()
    assert world.took(world.core.notified(method, {}, 0.0)) == told, "it fell back to the handshake"


# -- what it costs --------------------------------------------------------------------------------


@pytest.mark.parametrize("stateless", [False, True], ids=["handshake", "stateless"])
def test_an_allowed_call_costs_at_most_25_python_calls(*, stateless: bool) -> None:
    """The budget of ADR-0001: a count, because a time would depend on the machine."""
    world = World().ready("a")
    params: JSONObject = {"name": "t", "arguments": {}}
    if stateless:
        params["_meta"] = META
    line = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}
    message, outcome = decode(bytes(repr(line).replace("'", '"'), "utf-8")), Returned({})
    folder = str(Path(server_module.__file__).parent)
    counted: list[str] = []

    def count(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith((folder, "<")):
            counted.append(frame.f_code.co_qualname)

    core = world.core
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        effects = core.received("a", message, 1.0)
        call = effects[0].call  # type: ignore[union-attr]  # the one effect is a StartWorker
        core.worker_ended(call, outcome, 2.0)
    finally:
        sys.setprofile(before)
    assert call.state is CallState.CLOSED
    assert len(counted) <= 25, counted


def test_facts_are_the_transports_alone() -> None:
    """Raxol MCP 2.8.0 §Authorization: server-derived; nothing a client asserts is added."""
    assert ConnectionFacts.__struct_fields__ == (
        "transport",
        "principal",
        "share",
        "greeting_required",
    )


def test_a_running_tool_may_give_up_a_question() -> None:
    """ADR-0015: the client is told that it is moot, and its answer finds nothing."""
    world = World().ready("a")
    world.call(7)
    world.asked_midway(7, "1", Question("", "elicitation/create", {}, Capability.FORM))
    call = world.calls["a", 7]
    assert world.took(world.core.unasked(call, "1", world.now)) == [
        push("a", withdrawn("raxol-elicit-id-1", "cancelled"), 7)
    ]
    assert world.core.stats()["deadlines"] == 1
