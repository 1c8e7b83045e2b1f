"""Reports: what follows from a worker's report, a human's answer and a deadline."""

from __future__ import annotations

import pytest

from raxol_mcp.core.calls import CallState, Closed, Via
from raxol_mcp.core.outcomes import (
    Asked,
    Denied,
    Failed,
    Granted,
    Outcome,
    Refused,
    Returned,
    Stopped,
    Unacceptable,
)
from raxol_mcp.core.peers import Capability
from raxol_mcp.core.questions import Question, approval
from raxol_mcp.wire.jsonrpc import JSONObject
from raxol_mcp.wire.meta import META_SUBSCRIPTION_ID
from tests.core.support import (
    ASKABLE,
    SERVER_INFO,
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
APPROVAL = approval("Sure?", "delete")
FORM: JSONObject = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
WHO = Question("who", "elicitation/create", FORM, Capability.FORM)
REASON = Question("reason", "elicitation/create", FORM, Capability.FORM, consent=True)
ROOTS = Question("roots", "roots/list", {}, Capability.ROOTS)
SAMPLE = Question("sample", "sampling/createMessage", {}, Capability.SAMPLING)
YES: JSONObject = {"action": "accept", "content": {"approve": True}}
REFUSED = error(8, -32602, "requestState is not valid for this request")
URI: JSONObject = {"uri": "file:///a"}


def complete(message: JSONObject) -> JSONObject:
    """The same answer as the stateless era has it."""
    result = message["result"]
    assert isinstance(result, dict)
    return {**message, "result": {"resultType": "complete", **result, "_meta": SERVER_INFO}}


def running(
    world: World | None = None,
    *,
    method: str = "tools/call",
    capabilities: JSONObject = ASKABLE,
) -> World:
    """A world in which call 7 of the handshake era has a worker."""
    world = (world or World()).ready("a", capabilities=capabilities)
    if method == "tools/call":
        world.call(7)
    else:
        world.send({"id": 7, "method": method, "params": {"name": "p", **URI}})
    return world


def running_stateless(
    world: World | None = None,
    *,
    method: str = "tools/call",
    capabilities: JSONObject = ASKABLE,
) -> World:
    """A world in which call 7 of the stateless era has a worker."""
    world = world or World()
    world.open()
    params = {} if method == "tools/call" else {"name": "p", **URI}
    world.stateless(7, method=method, capabilities=capabilities, params=params)
    return world


def read_failed(error_name: str, method: str = "resources/read") -> JSONObject:
    """The error of a read whose worker broke."""
    data = {"error": error_name, "method": method}
    return error(7, -32603, "MCP callback failed", data)


def state_of(effects: list[tuple[object, ...]]) -> tuple[JSONObject, str]:
    """Give the one result that was pushed without its requestState, and that."""
    ((kind, _, message, about),) = effects
    assert (kind, about) == ("push", 7)
    assert isinstance(message, dict)
    result = dict(message["result"])
    return result, result.pop("requestState")


# -- a worker's report ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "tool", "read", "reason"),
    [
        (
            Returned({"x": 1}),
            {"id": 7, "result": {"x": 1}},
            {"id": 7, "result": {"x": 1}},
            Closed.RESULT,
        ),
        (
            Returned({"x": 1}, failed=True),
            {"id": 7, "result": {"x": 1}},
            {"id": 7, "result": {"x": 1}},
            Closed.FAILED,
        ),
        (
            Failed("Error: ValueError"),
            text_result(7, "Error: ValueError", failed=True),
            read_failed("callback_crashed"),
            Closed.FAILED,
        ),
        (
            Failed("Error: x", "invalid_callback_result"),
            text_result(7, "Error: x", failed=True),
            read_failed("invalid_callback_result"),
            Closed.FAILED,
        ),
        (
            Stopped(),
            text_result(7, '{"error":"callback_crashed"}', failed=True),
            read_failed("callback_crashed"),
            Closed.FAILED,
        ),
        (
            Refused(-32601, "Tool not found: x"),
            error(7, -32601, "Tool not found: x"),
            error(7, -32601, "Tool not found: x"),
            Closed.FAILED,
        ),
        (
            Refused(-31001, "authorization_required: resources/read", {"detail": "no"}),
            error(7, -31001, "authorization_required: resources/read", {"detail": "no"}),
            error(7, -31001, "authorization_required: resources/read", {"detail": "no"}),
            Closed.DENIED,
        ),
        (
            Denied("not_allowlisted"),
            denial(7, "not_allowlisted", "deny"),
            error(
                7,
                -31001,
                "authorization_required: resources/read",
                {
                    "error": "authorization_required",
                    "method": "resources/read",
                    "detail": "not_allowlisted",
                },
            ),
            Closed.DENIED,
        ),
    ],
)
def test_a_report_becomes_the_one_answer(
    outcome: Outcome, tool: JSONObject, read: JSONObject, reason: Closed
) -> None:
    """Rulings §Codes and payloads: a result for tools, whatever happened; an error for reads."""
    for world, answer in (
        (running(), tool),
        (running(method="resources/read"), read),
        (running_stateless(method="resources/read"), read),
    ):
        call = world.calls["a", 7]
        assert world.ends(7, outcome) == [push("a", answer)]
        assert (call.state, call.reason) == (CallState.CLOSED, reason)


@pytest.mark.parametrize(
    ("outcome", "answer"),
    [
        (Failed("Error: ValueError"), text_result(7, "Error: ValueError", failed=True)),
        (Stopped(), text_result(7, '{"error":"callback_crashed"}', failed=True)),
        (Denied("no"), denial(7, "no", "deny")),
    ],
)
def test_results_of_the_core_are_complete_in_the_stateless_era(
    outcome: Outcome, answer: JSONObject
) -> None:
    """MCP 2026-07-28 basic: resultType and serverInfo in every result."""
    assert running_stateless().ends(7, outcome) == [push("a", complete(answer))]


def test_an_answer_that_does_not_fit_denies_where_the_human_was_asked() -> None:
    """Rulings §Asking: nothing ran."""
    world = running()
    world.ends(7, Asked((REASON,)))
    world.answer(ASK, {"action": "accept", "content": {"odd": 1}})
    effects = world.ends(7, Unacceptable("answer: why is missing"))
    assert effects == [push("a", denial(7, "answer: why is missing"))]


def test_an_answer_that_does_not_fit_is_invalid_where_the_client_brought_it() -> None:
    """MCP 2026-07-28 basic/patterns/mrtr §Server: a bad shape is a JSON-RPC error."""
    world = running_stateless()
    effects = world.ends(7, Unacceptable("answer: why is missing"))
    assert effects == [push("a", error(7, -32602, "answer: why is missing"))]


# -- asking, handshake ----------------------------------------------------------------------------


@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {"url": {}}}, {"sampling": {}}])
def test_who_cannot_be_asked_is_denied_and_reads_the_prompt(capabilities: JSONObject) -> None:
    """Raxol MCP 2.8.0 §Elicitation: the machine-readable deny."""
    world = running(capabilities=capabilities)
    assert world.asks(7, "Delete it?") == [push("a", denial(7, "Delete it?"))]


def test_without_a_sink_nobody_can_be_asked() -> None:
    """Raxol MCP 2.8.0 §Elicitation: advertised, and a subscribed transport."""
    world = World()
    world.greet("a")
    world.call(7, via=Via.HANDLE, caller="c")
    assert world.asks(7) == [("reply", "c", denial(7, "Sure?"))]


def test_a_question_without_words_of_its_own_names_its_method() -> None:
    world = running()
    effects = world.ends(7, Asked((ROOTS,), round=True))
    assert effects == [push("a", denial(7, "roots/list is not supported"))]


def test_all_questions_must_be_askable() -> None:
    """None is put when one of them cannot be: the human would answer for nothing."""
    world = running()
    assert world.ends(7, Asked((APPROVAL, ROOTS))) == [push("a", denial(7, "Sure?"))]


def test_a_read_that_cannot_ask_has_failed() -> None:
    world = running(method="prompts/get")
    effects = world.ends(7, Asked((ROOTS,), round=True))
    assert effects == [push("a", read_failed("client_cannot_be_asked", "prompts/get"))]


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        (
            "tools/call",
            text_result(7, '{"error":"input_required_without_requests"}', failed=True),
        ),
        ("prompts/get", read_failed("input_required_without_requests", "prompts/get")),
    ],
)
def test_a_round_that_asks_nothing_cannot_be_parked(method: str, answer: JSONObject) -> None:
    """There is no answer to wait for; in the stateless era the client would come back."""
    world = running(method=method)
    assert world.ends(7, Asked((), round=True, state="s")) == [push("a", answer)]


def test_what_the_question_is_about_is_kept_with_the_call() -> None:
    world = running()
    world.ends(7, Asked((APPROVAL,), subject="tool 1"))
    assert world.calls["a", 7].subject == "tool 1"


# -- the answer -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "detail", "reason"),
    [
        ({"result": {"action": "decline"}}, "user decline", Closed.DECLINED),
        ({"result": {"action": "cancel"}}, "user cancel", Closed.DECLINED),
        ({"result": {"action": "accept"}}, "user accept", Closed.DECLINED),
        (
            {"result": {"action": "accept", "content": {"approve": False}}},
            "user accept",
            Closed.DECLINED,
        ),
        (
            {"result": {"action": "accept", "content": {"approve": 1}}},
            "user accept",
            Closed.DECLINED,
        ),
        ({"result": {"approve": True}}, "user declined", Closed.DECLINED),
        ({"result": None}, "user declined", Closed.DECLINED),
        ({"error": {"code": -32601, "message": "no"}}, "elicitation failed", Closed.ANSWER_ERROR),
        ({"error": None}, "elicitation failed", Closed.ANSWER_ERROR),
        ({"result": YES, "error": {}}, "elicitation failed", Closed.ANSWER_ERROR),
    ],
)
def test_every_answer_but_a_yes_denies(answer: JSONObject, detail: str, reason: Closed) -> None:
    """Raxol MCP 2.8.0 §Elicitation; the answer itself is never answered."""
    world = running()
    world.ends(7, Asked((APPROVAL,)))
    call = world.calls["a", 7]
    assert world.send({"id": ASK, **answer}) == [push("a", denial(7, detail))]
    assert call.reason is reason


def test_a_yes_runs_it_and_is_answered_by_nothing_else() -> None:
    world = running()
    world.ends(7, Asked((APPROVAL,)))
    assert world.approve(ASK) == [("start", 7, "run")]
    assert world.returns(7) == [push("a", text_result(7, "done"))]


@pytest.mark.parametrize("ask", ["raxol-elicit-id-9", "", 1, 0])
def test_an_answer_to_nothing_is_ignored(ask: object) -> None:
    """Raxol MCP 2.8.0: answering a stray response could start a loop between two strict peers."""
    world = running()
    assert world.answer(ask, YES) == [("record", "stray_answer", {})]


def test_only_the_connection_that_was_asked_can_answer() -> None:
    """Raxol MCP 2.8.0 §Types: an answer from another is like one to an unknown id."""
    world = running().ready("b")
    world.ends(7, Asked((APPROVAL,)))
    assert world.answer(ASK, YES, "b") == [("record", "stray_answer", {})]
    assert world.calls["a", 7].state is CallState.PARKED
    assert world.approve(ASK) == [("start", 7, "run")]


def test_of_two_questions_each_is_answered_for_itself() -> None:
    """Raxol MCP 2.8.0: answering the second completes the second only."""
    world = World().ready("a")
    first, second = world.park(1), world.park(2)
    assert first != second
    assert world.approve(second) == [("start", 2, "run")]
    assert world.calls["a", 1].state is CallState.PARKED


@pytest.mark.parametrize("answer", [{"result": {"action": "decline"}}, {"error": {"code": -1}}])
def test_what_a_running_tool_asked_is_answered_to_the_tool(answer: JSONObject) -> None:
    """It ends no call: what the answer means is for the tool to say."""
    world = running()
    world.asked_midway(7, "1", WHO)
    ((kind, id, key, _),) = world.send({"id": ASK, **answer})
    assert (kind, id, key) == ("resolve", 7, "1")
    assert world.calls["a", 7].state is CallState.AUTHORIZING
    assert world.passes(60.0) == []


def test_a_consent_hands_over_the_form() -> None:
    world = running()
    world.ends(7, Asked((APPROVAL, REASON)))
    world.approve(ASK)
    effects = world.answer("raxol-elicit-id-2", {"action": "accept", "content": {"why": "old"}})
    assert effects == [("start", 7, "run")]
    assert world.calls["a", 7].answers == {"approve": YES, "reason": {"why": "old"}}


def test_a_no_to_the_second_question_denies_as_a_whole() -> None:
    world = running()
    world.ends(7, Asked((APPROVAL, REASON)))
    world.approve(ASK)
    effects = world.answer("raxol-elicit-id-2", {"action": "cancel"})
    assert effects == [push("a", denial(7, "user cancel"))]


def test_a_tool_is_run_again_with_whatever_was_answered() -> None:
    """Rulings §Asking: what a round's answer means is for the tool to say."""
    world = running()
    assert world.ends(7, Asked((WHO,), round=True, state="page 1"))[0][0] == "push"
    assert world.answer(ASK, {"action": "decline"}) == [("start", 7, "run")]
    call = world.calls["a", 7]
    assert (call.round, call.round_state, call.answers) == (
        1,
        "page 1",
        {"who": {"action": "decline"}},
    )


def test_the_rounds_of_a_call_are_bounded() -> None:
    """docs/limits.md: max_rounds."""
    world = running(World(max_rounds=2))
    for number in (1, 2):
        world.ends(7, Asked((WHO,), round=True))
        world.answer(f"raxol-elicit-id-{number}", {"action": "accept"})
    effects = world.ends(7, Asked((WHO,), round=True))
    assert effects == [push("a", text_result(7, "Error: too many input rounds", failed=True))]


# -- time -----------------------------------------------------------------------------------------


def test_silence_is_not_consent() -> None:
    """Raxol MCP 2.8.0 §Elicitation: 60 s, then the deny; a late yes is ignored."""
    world = running()
    world.ends(7, Asked((APPROVAL,)))
    assert world.passes(59.9) == []
    assert world.passes(0.1) == [
        push("a", withdrawn(ASK, "answer_timeout"), 7),
        push("a", denial(7, "elicitation timed out")),
    ]
    assert world.approve(ASK) == [("record", "stray_answer", {})]


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("tools/call", text_result(7, '{"error":"callback_timeout"}', failed=True)),
        ("resources/read", read_failed("callback_timeout")),
    ],
)
@pytest.mark.parametrize("ended", [True, False], ids=["ends later", "never ends"])
def test_a_worker_has_its_time(method: str, answer: JSONObject, *, ended: bool) -> None:
    """Raxol MCP 2.8.0 §Callback isolation: 300 s; the answer does not wait for its end."""
    world = running(method=method)
    name = "delete" if method == "tools/call" else "file:///a"
    assert world.passes(299.9) == []
    assert world.passes(0.1) == [
        ("record", "callback_timeout", {"method": method, "name": name}),
        ("stop", 7),
        push("a", answer),
    ]
    assert world.core.stats()["stopping"] == 1
    if ended:
        assert world.ends(7, Returned({})) == []


def test_an_approved_run_has_a_time_of_its_own() -> None:
    """Raxol MCP 2.8.0 §Callback isolation: authorizer and tool share one, the approved run not."""
    world = running()
    world.passes(299.0)
    world.asks(7)
    world.passes(59.0)
    world.approve(ASK)
    assert world.passes(299.9) == []
    assert [effect[0] for effect in world.passes(0.1)] == ["record", "stop", "push"]


@pytest.mark.parametrize(
    ("share", "scope"), [(1, "connection"), (2, "server")], ids=["its share", "the server"]
)
def test_a_yes_for_which_no_slot_frees_is_busy(share: int, scope: str) -> None:
    """ADR-0011: after the callback timeout, and with the bound that was in the way."""
    world = World(max_in_flight=2, max_in_flight_per_connection=share, callback_timeout=100.0)
    world.ready("a", "b")
    ask = world.park(7)
    world.call(1, "a" if share == 1 else "b")
    if share == 2:
        world.call(2, "b")
    world.passes(50.0)
    assert world.approve(ask) == []
    world.passes(50.0)  # the others time out, but their workers do not end
    assert world.passes(50.0) == [push("a", busy(7, scope))]


def test_a_yes_whose_slot_frees_in_the_very_instant_it_expires_is_busy() -> None:
    """A slot that is free at the end of the wait names no bound of its own: the server's."""
    world = World(max_in_flight=1, callback_timeout=100.0).ready("a")
    ask = world.park(7)
    world.call(1)
    world.approve(ask)
    ledger = world.core.ledger
    call = world.calls["a", 7]
    ledger.slots.give_back("a")
    ledger.effects = []
    world.core._reports.expired(call)
    ledger.slots.take("a")
    assert world.took(ledger.effects) == [push("a", busy(7, "server"))]


# -- asking, stateless ----------------------------------------------------------------------------


def test_a_question_is_the_result_and_nothing_is_parked() -> None:
    """MCP 2026-07-28 basic/patterns/mrtr; ADR-0008."""
    world = running_stateless()
    result, _ = state_of(world.ends(7, Asked((APPROVAL, REASON))))
    assert result == {
        "resultType": "input_required",
        "inputRequests": {
            "approve": {"method": "elicitation/create", "params": APPROVAL.params},
            "reason": {"method": "elicitation/create", "params": FORM},
        },
        "_meta": SERVER_INFO,
    }
    assert repr(world.core) == "<ServerCore 1 connections | 0 in flight | 0 parked | 0 deadlines>"


def test_an_approval_that_cannot_be_asked_for_is_denied() -> None:
    """Rulings §Asking: the same deny as in the handshake era."""
    world = running_stateless(capabilities={})
    assert world.asks(7, "Delete it?") == [push("a", complete(denial(7, "Delete it?")))]


@pytest.mark.parametrize(
    ("method", "question_", "capabilities", "required"),
    [
        ("tools/call", ROOTS, ASKABLE, {"roots": {}}),
        ("tools/call", SAMPLE, {}, {"sampling": {}}),
        ("tools/call", WHO, {}, {"elicitation": {"form": {}}}),
        ("tools/call", WHO, {"elicitation": {"url": {}}}, {"elicitation": {"form": {}}}),
        ("prompts/get", ROOTS, {}, {"roots": {}}),
        ("resources/read", REASON, {}, {"elicitation": {"form": {}}}),
    ],
)
def test_what_the_client_did_not_declare_is_named(
    method: str, question_: Question, capabilities: JSONObject, required: JSONObject
) -> None:
    """MCP 2026-07-28 basic §Error Codes: -32021 with requiredCapabilities."""
    world = running_stateless(method=method, capabilities=capabilities)
    message = "The client did not declare a capability this request needs"
    assert world.ends(7, Asked((question_,), round=True)) == [
        push("a", error(7, -32021, message, {"requiredCapabilities": required}))
    ]


def test_a_state_that_is_too_long_is_said() -> None:
    """docs/limits.md: 4 KiB."""
    world = running_stateless()
    text = "Error: the state of this round is too long to carry"
    effects = world.ends(7, Asked((WHO,), round=True, state="x" * 5000))
    assert effects == [push("a", complete(text_result(7, text, failed=True)))]


def sealed(world: World | None = None, asked: Asked | None = None) -> tuple[World, str]:
    """A world whose call 7 was answered with a question, and the token that came with it."""
    world = world or running_stateless()
    _, token = state_of(world.ends(7, asked or Asked((APPROVAL,))))
    return world, token


def retry(
    world: World, token: object, responses: object = None, **params: object
) -> list[tuple[object, ...]]:
    """Bring the token back with answers, under another id."""
    answered = {} if responses is None else {"inputResponses": responses}
    return world.stateless(8, params={"requestState": token, **answered, **params})


def refused(reason: str) -> list[tuple[object, ...]]:
    """What a token that is not valid leads to: one sentence for the client, the reason to us."""
    return [("record", "request_state_refused", {"reason": reason}), push("a", REFUSED)]


def test_a_yes_that_is_brought_back_runs_the_call_without_asking_the_authorizer() -> None:
    """Rulings: the same authorization, the same exactly-once."""
    world, token = sealed()
    assert retry(world, token, {"approve": YES}) == [("start", 8, "run")]
    call = world.calls["a", 8]
    assert (call.state, call.answers) == (CallState.RUNNING, {"approve": YES})
    assert world.returns(8) == [push("a", complete(text_result(8, "done")))]


def test_a_read_that_is_brought_back_passes_its_gate_again() -> None:
    world = running_stateless(method="resources/read", capabilities={"roots": {}})
    _, token = state_of(world.ends(7, Asked((ROOTS,), round=True)))
    params = {**URI, "requestState": token, "inputResponses": {"roots": {"roots": []}}}
    effects = world.stateless(8, method="resources/read", params=params)
    assert effects == [("start", 8, "read")]


def test_a_token_is_used_once() -> None:
    """MCP 2026-07-28 basic/patterns/mrtr: single use."""
    world, token = sealed()
    retry(world, token, {"approve": YES})
    world.returns(8)
    assert retry(world, token, {"approve": YES}) == refused("spent")


def test_two_retries_at_once_run_it_once() -> None:
    world, token = sealed()
    retry(world, token, {"approve": YES})
    params = {"requestState": token, "inputResponses": {"approve": YES}}
    effects = world.stateless(9, params=params)
    assert [effect[0] for effect in effects] == ["record", "push"]
    assert world.core.ledger.slots.taken == 1


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        ({"action": "decline"}, "user decline"),
        ({"action": "cancel"}, "user cancel"),
        ({"action": "accept", "content": {"approve": "yes"}}, "user accept"),
        ("yes", "user declined"),
    ],
)
def test_a_no_that_is_brought_back_denies_and_uses_the_token_up(
    answer: object, detail: str
) -> None:
    """A no must not be tried again until it is a yes."""
    world, token = sealed()
    effects = retry(world, token, {"approve": answer})
    assert effects == [push("a", complete(denial(8, detail)))]
    assert retry(world, token, {"approve": YES}) == refused("spent")
    assert retry(world, token, {"approve": answer}) == refused("spent")


@pytest.mark.parametrize("responses", [None, {}, {"other": YES}])
def test_a_missing_answer_leads_to_the_question_again(responses: JSONObject | None) -> None:
    """MCP 2026-07-28 basic/patterns/mrtr §Server: a new InputRequiredResult, not an error."""
    world, token = sealed()
    assert retry(world, token, responses) == [("start", 8, "authorize_then_run")]
    ((_, _, message, _),) = world.ends(8, Asked((APPROVAL,)))
    assert isinstance(message, dict)
    assert message["result"]["resultType"] == "input_required"
    assert message["result"]["requestState"] != token


@pytest.mark.parametrize("responses", [[], "yes", True, 0, [YES]])
def test_answers_come_as_an_object(responses: object) -> None:
    world, token = sealed()
    wrong = error(8, -32602, "inputResponses must be an object")
    assert retry(world, token, responses) == [push("a", wrong)]
    assert retry(world, token, {"approve": YES}) == [("start", 8, "run")], "it is not used up"


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"arguments": {"path": "b"}}, "bound to another request"),
        ({"name": "format"}, "bound to another request"),
    ],
)
def test_a_yes_is_for_the_very_call_that_was_asked_about(params: JSONObject, reason: str) -> None:
    world, token = sealed()
    assert retry(world, token, {"approve": YES}, **params) == refused(reason)


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        ("", "wrong tag"),
        ("x", "not base64"),
        ("é", "too long or not ASCII"),
        (1, "not a string"),
        (False, "not a string"),
        ({"a": 1}, "not a string"),
    ],
)
def test_a_token_that_is_none_gets_one_frozen_sentence(token: object, reason: str) -> None:
    """Which check failed is for the log alone. Nothing runs, nothing is asked."""
    world, _ = sealed()
    assert retry(world, token, {"approve": YES}) == refused(reason)


def test_a_token_that_is_null_is_none_at_all() -> None:
    world, _ = sealed()
    assert retry(world, None, {"approve": YES}) == [("start", 8, "authorize_then_run")]


def test_a_token_expires() -> None:
    """docs/limits.md: request_state_ttl, 600 s."""
    world, token = sealed()
    world.passes(599.9)
    assert retry(world, token, {})[0][0] == "start"
    world.returns(8)
    world.passes(0.1)
    assert retry(world, token, {"approve": YES}) == refused("expired")


def test_on_a_busy_server_the_token_stays_good() -> None:
    """ADR-0011: a human's yes is not thrown away."""
    world, token = sealed(running_stateless(World(max_in_flight=1)))
    world.stateless(9)
    record, answer = retry(world, token, {"approve": YES})
    assert record[:2] == ("record", "busy")
    assert answer == push("a", complete(busy(8, "connection")))
    assert retry(world, token)[-1] == push("a", complete(busy(8, "connection")))
    world.returns(9)
    assert retry(world, token, {"approve": YES}) == [("start", 8, "run")]


def test_the_handshake_era_knows_no_token() -> None:
    world, token = sealed(running_stateless())
    world.greet()
    effects = world.call(8, requestState=token, inputResponses={"approve": YES})
    assert effects == [("start", 8, "authorize_then_run")]


def test_a_method_without_rounds_looks_at_no_token() -> None:
    world, token = sealed()
    effects = world.stateless(8, method="tools/list", params={"requestState": token})
    assert effects == [("start", 8, "read")]


def test_a_tools_round_comes_back_with_its_state_and_its_number() -> None:
    world, token = sealed(None, Asked((WHO,), round=True, state="page 2"))
    assert retry(world, token, {"who": {"action": "decline"}}) == [("start", 8, "run")]
    call = world.calls["a", 8]
    assert (call.round, call.round_state, call.answers) == (
        1,
        "page 2",
        {"who": {"action": "decline"}},
    )


def test_rounds_are_counted_through_the_tokens() -> None:
    """docs/limits.md: max_rounds; no client can go round for ever."""
    world, token = sealed(
        running_stateless(World(max_rounds=2)), Asked((), round=True, state="page 1")
    )
    assert retry(world, token) == [("start", 8, "run")]
    ((_, _, message, _),) = world.ends(8, Asked((), round=True, state="page 2"))
    assert isinstance(message, dict)
    assert retry(world, message["result"]["requestState"]) == [("start", 8, "run")]
    text = "Error: too many input rounds"
    effects = world.ends(8, Asked((), round=True, state="page 3"))
    assert effects == [push("a", complete(text_result(8, text, failed=True)))]


# -- what the core carries out itself -------------------------------------------------------------


def granted(world: World, id: int, method: str, **params: object) -> list[tuple[object, ...]]:
    """Send a request of the handshake era that the read authorizer allows."""
    world.send({"id": id, "method": method, "params": params})
    return world.ends(id, Granted())


@pytest.mark.parametrize("level", ["debug", "emergency"])
def test_a_level_is_set_for_the_connection(level: str) -> None:
    world = World().ready("a", "b")
    effects = granted(world, 1, "logging/setLevel", level=level)
    assert effects == [push("a", {"id": 1, "result": {}})]
    peers = world.core.ledger.peers
    assert (peers.get("a").log_severity, peers.get("b").log_severity) == (
        {"debug": 0, "emergency": 7}[level],
        1,
    )


@pytest.mark.parametrize("level", ["loud", None, 1, ["debug"], {}])
def test_an_unknown_level_is_refused_behind_the_read_authorizer(level: object) -> None:
    """Raxol MCP 2.8.0: -32602, and otherwise gated like the other read surfaces."""
    world = World().ready("a")
    ((kind, _, message, _),) = granted(world, 1, "logging/setLevel", level=level)
    assert kind == "push"
    assert isinstance(message, dict)
    assert message["error"]["code"] == -32602
    assert world.core.ledger.peers.get("a").log_severity == 1


def test_subscribing_and_unsubscribing_are_remembered_once() -> None:
    """Raxol MCP 2.8.0 §Methods: unsubscribing answers {} also when never subscribed."""
    world = World().ready("a")
    peer = world.core.ledger.peers.get("a")
    done = [push("a", {"id": 1, "result": {}})]
    assert granted(world, 1, "resources/subscribe", **URI) == done
    assert granted(world, 1, "resources/subscribe", **URI) == done
    assert peer.subscriptions == {"file:///a"}
    assert granted(world, 1, "resources/unsubscribe", **URI) == done
    assert granted(world, 1, "resources/unsubscribe", **URI) == done
    assert peer.subscriptions == set()


def test_subscriptions_of_a_connection_are_bounded() -> None:
    """docs/limits.md: max_subscriptions; the ones it has can be said again, and room comes back."""
    world = World(max_subscriptions=2).ready("a")
    for uri in ("file:///a", "file:///b"):
        granted(world, 1, "resources/subscribe", uri=uri)
    data = {"error": "server_busy", "method": "resources/subscribe"}
    full = [push("a", error(1, -31002, "server_busy", data))]
    done = [push("a", {"id": 1, "result": {}})]
    assert granted(world, 1, "resources/subscribe", uri="file:///c") == full
    assert granted(world, 1, "resources/subscribe", uri="file:///a") == done
    granted(world, 1, "resources/unsubscribe", uri="file:///a")
    assert granted(world, 1, "resources/subscribe", uri="file:///c") == done


@pytest.mark.parametrize(("length", "fits"), [(10, True), (11, False)])
def test_a_uri_has_a_bound(length: int, *, fits: bool) -> None:
    """docs/limits.md: max_uri_bytes."""
    world = World(max_uri_bytes=10).ready("a")
    ((_, _, message, _),) = granted(world, 1, "resources/subscribe", uri="x" * length)
    wrong = error(1, -32602, "a uri has at most 10 bytes")
    assert message == ({"id": 1, "result": {}} if fits else wrong)


def test_unsubscribing_from_what_could_not_be_subscribed_to_is_fine() -> None:
    world = World(max_uri_bytes=10).ready("a")
    effects = granted(world, 1, "resources/unsubscribe", uri="x" * 11)
    assert effects == [push("a", {"id": 1, "result": {}})]


# -- listens --------------------------------------------------------------------------------------


def listen(
    world: World,
    id: object,
    allowed: JSONObject | None,
    connection: str = "a",
    **wanted: object,
) -> list[tuple[object, ...]]:
    """Send a listen, of which `allowed` may be honoured."""
    params: JSONObject = {"notifications": wanted}
    world.stateless(id, connection, method="subscriptions/listen", params=params)
    return world.ends(id, Granted(allowed), connection)


def acknowledged(id: object, honoured: JSONObject, connection: str = "a") -> tuple[object, ...]:
    """The first notification of a listen."""
    params = {"_meta": {META_SUBSCRIPTION_ID: id}, "notifications": honoured}
    message = {"method": "notifications/subscriptions/acknowledged", "params": params}
    return push(connection, message, id)


@pytest.mark.parametrize(
    ("allowed", "honoured"),
    [
        ({"toolsListChanged": True}, {"toolsListChanged": True}),
        ({"toolsListChanged": False, "promptsListChanged": True}, {"promptsListChanged": True}),
        (
            {"resourcesListChanged": True, "resourceSubscriptions": ["file:///a"]},
            {"resourcesListChanged": True, "resourceSubscriptions": ["file:///a"]},
        ),
        ({"resourceSubscriptions": []}, {}),
        ({"taskIds": ["x"]}, {}),
        ({}, {}),
        (None, {}),
    ],
)
def test_a_listen_is_acknowledged_with_what_is_honoured(
    allowed: JSONObject | None, honoured: JSONObject
) -> None:
    """MCP 2026-07-28 basic/patterns/subscribe: first, and unsupported types are left out."""
    world = World()
    world.open()
    assert listen(world, 7, allowed, toolsListChanged=True) == [acknowledged(7, honoured)]
    call = world.calls["a", 7]
    assert (call.state, call.arguments, call.params) == (CallState.LISTENING, honoured, {})
    assert world.passes(1e6) == [], "it has no end of its own"


def test_listens_of_a_connection_are_bounded() -> None:
    """docs/limits.md: max_listens; room comes back."""
    world = World(max_listens=2)
    world.open()
    for id in (1, "1"):
        listen(world, id, {})
    data = {"error": "server_busy", "method": "subscriptions/listen"}
    assert listen(world, 3, {}) == [push("a", error(3, -31002, "server_busy", data))]
    world.cancel(1)
    assert listen(world, 3, {}) == [acknowledged(3, {})]


def test_listens_of_a_share_and_of_the_server_are_bounded() -> None:
    """docs/limits.md: max_listens_total, of which a share has half; room comes back."""
    world = World(max_listens_total=4)
    for connection in "abc":
        world.open(connection)
    world.open("d", share="a")
    data = {"error": "server_busy", "method": "subscriptions/listen"}
    refused = error(9, -31002, "server_busy", data)
    assert listen(world, 1, {}, "a") == [acknowledged(1, {}, "a")]
    assert listen(world, 1, {}, "d") == [acknowledged(1, {}, "d")]
    assert listen(world, 9, {}, "d") == [push("d", refused)]
    assert listen(world, 1, {}, "b") == [acknowledged(1, {}, "b")]
    assert listen(world, 1, {}, "c") == [acknowledged(1, {}, "c")]
    assert listen(world, 9, {}, "c") == [push("c", refused)]
    world.gone("d")
    assert listen(world, 9, {}, "c") == [acknowledged(9, {}, "c")]


@pytest.mark.parametrize(
    ("uris", "problem"),
    [
        (["a", "b", "c"], "at most 2 resource subscriptions"),
        (["a", "x" * 11], "a uri has at most 10 bytes"),
        (["a", "x" * 10], None),
    ],
)
def test_what_a_listen_may_name_is_bounded(uris: list[str], problem: str | None) -> None:
    world = World(max_subscriptions=2, max_uri_bytes=10)
    world.open()
    wanted: JSONObject = {"resourceSubscriptions": uris}
    expected = acknowledged(7, wanted) if problem is None else push("a", error(7, -32602, problem))
    assert listen(world, 7, wanted, resourceSubscriptions=uris) == [expected]


def test_the_prompt_is_put_by_its_own_connection_alone() -> None:
    """Raxol MCP 2.8.0: nobody else sees the prompt or the result."""
    world = World().ready("a", "b")
    world.call(7)
    assert world.asks(7) == [push("a", question(ASK), 7)]
    world.approve(ASK)
    assert {effect[1] for effect in world.returns(7)} == {"a"}
