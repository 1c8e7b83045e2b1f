"""Midway: what leaves the server while calls run, to whom, and that it ends nothing."""

from __future__ import annotations

import math

import pytest

from raxol_mcp.core.calls import Via
from raxol_mcp.core.outcomes import Granted
from raxol_mcp.core.peers import Capability
from raxol_mcp.core.questions import Question
from raxol_mcp.wire.jsonrpc import JSONObject
from raxol_mcp.wire.meta import META_LOG_LEVEL, META_SUBSCRIPTION_ID
from tests.core.support import World, push, withdrawn

ASK = "raxol-elicit-id-1"
FORM: JSONObject = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
WHO = Question("", "elicitation/create", FORM, Capability.FORM)
PUT: JSONObject = {"id": ASK, "method": "elicitation/create", "params": FORM}
TOOLS = "notifications/tools/list_changed"
UPDATED = "notifications/resources/updated"


def running(meta: JSONObject | None = None, *, version: str = "2025-11-25") -> World:
    """A world in which the tool of call 7 runs; `meta` came with its request."""
    world = World()
    world.open()
    world.greet(version=version)
    world.call(7, _meta=meta or {})
    return world


def progressed(
    world: World,
    progress: float,
    total: float | None = None,
    message: str | None = None,
    *,
    id: int = 7,
) -> object:
    """Let the tool get further; return the params that were sent, or None."""
    call = world.calls["a", id]
    effects = world.took(world.core.progressed(call, progress, total, message, world.now))
    return sent(effects, "notifications/progress", id)


def logged(world: World, severity: int, data: object = "x", logger: str | None = None) -> object:
    """Let the tool log; return the params that were sent, or None."""
    call = world.calls["a", 7]
    effects = world.took(world.core.logged(call, severity, logger, data, world.now))
    return sent(effects, "notifications/message", 7)


def sent(effects: list[tuple[object, ...]], method: str, about: int) -> object:
    """Give the params of the one droppable push about a call, or None when there is none."""
    if not effects:
        return None
    ((kind, connection, message, about_id),) = effects
    assert (kind, connection, about_id) == ("note", "a", about)
    assert isinstance(message, dict)
    assert message["method"] == method
    return message["params"]


# -- progress -------------------------------------------------------------------------------------


@pytest.mark.parametrize("token", [1, 0, "", "p"])
def test_progress_is_reported_under_the_token_of_the_request(token: object) -> None:
    """MCP basic/utilities/progress: the token as it came, its type kept."""
    world = running({"progressToken": token})
    assert progressed(world, 0.5, 2.0, "half") == {
        "progressToken": token,
        "progress": 0.5,
        "total": 2.0,
        "message": "half",
    }


def test_without_a_token_there_is_none() -> None:
    assert progressed(running(), 0.5) is None


def test_progress_only_ever_increases() -> None:
    """MCP basic/utilities/progress: the value MUST increase."""
    world = running({"progressToken": 1})
    steps = [0.0, -1.0, 0.0, 1.0, 1.0, 0.5, 2.0]
    found = [progressed(world, step) for step in steps]
    assert [params["progress"] for params in found if isinstance(params, dict)] == [0.0, 1.0, 2.0]


def test_it_may_start_below_zero() -> None:
    world = running({"progressToken": 1})
    assert progressed(world, -5.0) == {"progressToken": 1, "progress": -5.0}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_json_cannot_carry_is_left_out(value: float) -> None:
    world = running({"progressToken": 1})
    assert progressed(world, value) is None
    assert progressed(world, 1.0, value) == {"progressToken": 1, "progress": 1.0}


@pytest.mark.parametrize(
    ("version", "told"),
    [("2024-11-05", False), ("2025-03-26", True), ("2025-06-18", True), ("2025-11-25", True)],
)
def test_a_message_is_told_where_there_is_such_a_field(version: str, told: bool) -> None:
    """MCP 2025-03-26 changelog: progress.message."""
    params: JSONObject = {"progressToken": 1, "progress": 1}
    world = running({"progressToken": 1}, version=version)
    assert progressed(world, 1, None, "m") == ({**params, "message": "m"} if told else params)


def test_a_request_of_the_stateless_era_is_told_it_whatever_the_connection_greeted_with() -> None:
    world = running(version="2024-11-05")
    world.stateless(8, meta={"progressToken": 1})
    params = {"progressToken": 1, "progress": 1, "message": "m"}
    assert progressed(world, 1, None, "m", id=8) == params


@pytest.mark.parametrize("ending", ["returned", "cancelled", "gone", "parked"])
def test_nothing_is_told_after_the_end_or_while_the_human_is_asked(ending: str) -> None:
    """MCP basic/utilities/progress: MUST stop after completion."""
    world = running({"progressToken": 1})
    match ending:
        case "returned":
            world.returns(7)
        case "cancelled":
            world.cancel(7)
        case "gone":
            world.gone()
        case _:
            world.asks(7)
    assert progressed(world, 1.0) is None
    assert logged(world, 7) is None


def test_an_approved_call_goes_on_under_its_token() -> None:
    world = running({"progressToken": 1})
    world.asks(7)
    world.approve(ASK)
    assert progressed(world, 1.0) == {"progressToken": 1, "progress": 1.0}


def test_without_a_sink_nothing_is_told() -> None:
    world = World()
    world.call(7, via=Via.REPLY, caller="c", _meta={"progressToken": 1})
    assert (progressed(world, 1.0), logged(world, 7)) == (None, None)


# -- logs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("severity", "level"), [(0, None), (1, "info"), (2, "notice"), (3, "warning"), (7, "emergency")]
)
def test_a_client_that_said_nothing_hears_info_and_above(severity: int, level: str | None) -> None:
    """Ours: MCP 2025-11-25 server/utilities/logging leaves it to the server."""
    assert logged(running(), severity, {"a": [1]}) == (
        None if level is None else {"level": level, "data": {"a": [1]}}
    )


@pytest.mark.parametrize(
    ("level", "severity", "heard"),
    [("debug", 0, True), ("error", 3, False), ("error", 4, True), ("emergency", 6, False)],
)
def test_a_client_hears_what_it_set(level: str, severity: int, heard: bool) -> None:
    """MCP 2025-11-25 server/utilities/logging."""
    world = running()
    world.send({"id": 1, "method": "logging/setLevel", "params": {"level": level}})
    world.ends(1, Granted())
    assert (logged(world, severity) is not None) is heard


@pytest.mark.parametrize(
    ("level", "severity", "heard"),
    [(None, 7, False), ("debug", 0, True), ("warning", 2, False), ("warning", 3, True)],
)
def test_a_stateless_request_hears_what_it_asked_for_itself(
    level: str | None, severity: int, heard: bool
) -> None:
    """MCP 2026-07-28 server/utilities/logging: absent, MUST NOT emit."""
    world = World().ready("a")
    world.stateless(7, meta={} if level is None else {META_LOG_LEVEL: level})
    assert (logged(world, severity) is not None) is heard


def test_a_logger_is_named_when_there_is_one() -> None:
    assert logged(running(), 3, None, "db") == {"level": "warning", "data": None, "logger": "db"}


# -- questions of a running tool ------------------------------------------------------------------


def test_a_running_tool_asks_and_keeps_its_slot() -> None:
    """Rulings §Time: the wait is bounded by the elicitation timeout, the slot is held."""
    world = running()
    assert world.asked_midway(7, "1", WHO) == [push("a", PUT, 7)]
    assert repr(world.core).endswith("| 1 in flight | 0 parked | 2 deadlines>")


@pytest.mark.parametrize(
    ("answer", "seen"),
    [
        ({"result": {"action": "accept"}}, {"id": ASK, "result": {"action": "accept"}}),
        ({"result": None}, {"id": ASK, "result": None}),
        (
            {"error": {"code": -1, "message": "no"}},
            {"id": ASK, "error": {"code": -1, "message": "no"}},
        ),
    ],
)
def test_the_tool_gets_the_answer_whatever_it_says(answer: JSONObject, seen: JSONObject) -> None:
    world = running()
    world.asked_midway(7, "1", WHO)
    assert world.send({"id": ASK, **answer}) == [("resolve", 7, "1", seen)]
    assert world.send({"id": ASK, **answer}) == [("record", "stray_answer", {})]
    assert repr(world.core).endswith("| 1 in flight | 0 parked | 1 deadlines>")


def test_questions_of_one_tool_are_told_apart() -> None:
    world = running()
    world.asked_midway(7, "1", WHO)
    world.asked_midway(7, "2", WHO)
    assert world.answer("raxol-elicit-id-2", {})[0][:3] == ("resolve", 7, "2")
    assert world.answer(ASK, {})[0][:3] == ("resolve", 7, "1")


def test_another_connection_cannot_answer() -> None:
    """Raxol MCP 2.8.0 §Types: only owner may answer; like an unknown id, to the byte."""
    world = running().ready("b")
    world.asked_midway(7, "1", WHO)
    stray = world.answer(ASK, {"action": "accept"}, "b")
    assert (
        stray == world.answer("raxol-elicit-unknown", {}, "b") == [("record", "stray_answer", {})]
    )
    assert world.answer(ASK, {})[0][0] == "resolve"


def test_a_tool_does_not_wait_longer_than_the_elicitation_timeout() -> None:
    """Rulings §Time; the question is withdrawn (ADR-0015), the tool runs on."""
    world = running()
    world.passes(1.0)
    world.asked_midway(7, "1", WHO)
    world.asked_midway(7, "2", WHO)
    world.answer("raxol-elicit-id-2", {})
    assert world.passes(59.9) == []
    assert world.passes(0.1) == [
        ("resolve", 7, "1", None),
        push("a", withdrawn(ASK, "answer_timeout"), 7),
    ]
    assert world.returns(7)[0][0] == "push"


def test_a_tool_may_give_up_waiting_for_one_of_its_questions() -> None:
    """ADR-0015: it is withdrawn; the other one goes on, and an unknown one is left alone."""
    world = running()
    world.asked_midway(7, "1", WHO)
    world.asked_midway(7, "2", WHO)
    call = world.calls["a", 7]
    effects = world.took(world.core.unasked(call, "1", world.now))
    assert effects == [push("a", withdrawn(ASK, "cancelled"), 7)]
    assert world.took(world.core.unasked(call, "1", world.now)) == []
    assert world.answer(ASK, {}) == [("record", "stray_answer", {})]
    assert world.answer("raxol-elicit-id-2", {})[0][:3] == ("resolve", 7, "2")


def test_a_wait_that_ends_with_its_worker_is_over_once() -> None:
    """Both are due in the same instant: the call is closed, and its question with it."""
    world = World(elicitation_timeout=300.0, callback_timeout=300.0).ready("a")
    world.call(7)
    world.asked_midway(7, "1", WHO)
    effects = world.passes(300.0)
    assert [effect[0] for effect in effects] == ["record", "push", "stop", "push"]
    assert effects[1] == push("a", withdrawn(ASK, "worker_timeout"), 7)


@pytest.mark.parametrize("ending", ["cancelled", "returned", "parked"])
def test_a_call_that_runs_no_more_cannot_ask(ending: str) -> None:
    """A tool that swallows its cancellation is told at once that no answer comes."""
    world = running()
    if ending == "cancelled":
        world.cancel(7)
    elif ending == "returned":
        world.returns(7)
    else:
        world.asks(7)
    assert world.asked_midway(7, "1", WHO) == [("resolve", 7, "1", None)]


def test_at_the_end_of_input_waiting_tools_are_told_that_no_answer_comes() -> None:
    """They need not wait a minute for words that cannot be read."""
    world = running()
    world.asked_midway(7, "1", WHO)
    world.asked_midway(7, "2", WHO)
    assert world.took(world.core.input_ended("a", world.now)) == [
        ("resolve", 7, "1", None),
        ("resolve", 7, "2", None),
    ]
    assert world.returns(7)[0][0] == "push"


def test_a_tool_whose_caller_waits_elsewhere_is_told_when_the_client_goes() -> None:
    world = World().ready("a")
    world.call(7, via=Via.REPLY, caller="c")
    world.asked_midway(7, "1", WHO)
    assert world.gone() == [("resolve", 7, "1", None)]
    assert world.returns(7)[0][:2] == ("reply", "c")


# -- news -----------------------------------------------------------------------------------------


def test_news_goes_to_every_connection_once_and_to_every_listen_of_it() -> None:
    """Raxol MCP 2.8.0 §Notifications; MCP 2026-07-28 basic/patterns/subscribe."""
    world = World().ready("a", "b")
    world.open("c")
    for id in (1, "1"):
        world.listens(id, {"toolsListChanged": True}, "c")
    world.call(1, "d", via=Via.REPLY, caller="c")

    def stamped(id: object) -> JSONObject:
        return {"method": TOOLS, "params": {"_meta": {META_SUBSCRIPTION_ID: id}}}

    assert world.took(world.core.notified(TOOLS, {}, world.now)) == [
        push("a", {"method": TOOLS}, None),
        push("b", {"method": TOOLS}, None),
        push("c", stamped(1), 1),
        push("c", stamped("1"), "1"),
    ]


def test_an_update_goes_to_those_that_subscribed_and_to_listens_for_it() -> None:
    """MCP server/resources §Subscriptions: one client's subscription is its own."""
    world = World().ready("a", "b")
    params: JSONObject = {"uri": "file:///a"}
    world.send({"id": 1, "method": "resources/subscribe", "params": params})
    world.ends(1, Granted())
    world.listens(2, {"resourceSubscriptions": ["file:///a"]}, "b")
    told = {"method": UPDATED, "params": params}
    heard = {"method": UPDATED, "params": {**params, "_meta": {META_SUBSCRIPTION_ID: 2}}}
    assert world.took(world.core.notified(UPDATED, params, world.now)) == [
        push("a", told, None),
        push("b", heard, 2),
    ]
    other: JSONObject = {"uri": "file:///b"}
    assert world.took(world.core.notified(UPDATED, other, world.now)) == []
    assert world.took(world.core.notified(UPDATED, {}, world.now)) == []


def test_news_with_params_is_told_with_them() -> None:
    world = World().ready("a")
    message = {"method": "notifications/odd", "params": {"x": 1}}
    effects = world.took(world.core.notified("notifications/odd", {"x": 1}, world.now))
    assert effects == [push("a", message, None)]


def test_news_may_not_be_dropped() -> None:
    """ADR-0014: a broadcast that does not fit ends the connection."""
    world = World().ready("a")
    assert world.took(world.core.notified(TOOLS, {}, world.now))[0][0] == "push"
