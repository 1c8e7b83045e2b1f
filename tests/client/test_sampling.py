"""Requests for a model's turn: read strictly, tools only where they were declared."""

from __future__ import annotations

import pytest

from raxol_mcp.client.sampling import (
    NoSamplingRequest,
    SamplingRequest,
    sampling_problem,
    sampling_request,
)

TEXT = {"type": "text", "text": "?"}
ASKED: dict[str, object] = {"role": "user", "content": TEXT}
USE: dict[str, object] = {"role": "assistant", "content": {"type": "tool_use", "id": "u1"}}
RESULT: dict[str, object] = {
    "role": "user",
    "content": [{"type": "tool_result", "toolUseId": "u1"}],
}
NO_MESSAGES: list[object] = [None, [], {}, [ASKED] * 1025]


def test_a_request_is_read_with_all_it_says() -> None:
    """MCP 2025-11-25 client/sampling."""
    params: dict[str, object] = {
        "messages": [ASKED],
        "maxTokens": 100,
        "systemPrompt": "s",
        "temperature": 1,
        "stopSequences": ["x"],
        "modelPreferences": {"hints": []},
        "includeContext": "thisServer",
        "metadata": {"a": 1},
        "tools": [{"name": "t"}],
        "toolChoice": {"mode": "auto"},
    }
    assert sampling_request("srv", params, tools=True) == SamplingRequest(
        "srv",
        [ASKED],
        100,
        "s",
        1.0,
        ("x",),
        {"hints": []},
        "thisServer",
        {"a": 1},
        ({"name": "t"},),
        {"mode": "auto"},
    )


def test_what_is_not_said_is_none() -> None:
    params: dict[str, object] = {"messages": [ASKED], "maxTokens": 1, "temperature": None}
    request = sampling_request("srv", params, tools=False)
    assert request == SamplingRequest("srv", [ASKED], 1)
    assert (request.system_prompt, request.temperature, request.stop_sequences) == (None, None, ())
    assert (request.include_context, request.tools, request.tool_choice) == ("none", (), None)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"tools": []}, "tools in sampling were not declared"),
        ({"toolChoice": {}}, "tools in sampling were not declared"),
        *(({"maxTokens": bad}, "maxTokens must be") for bad in (None, 0, -1, 1.5, True, "1")),
        *(({"messages": bad}, "messages must be a list") for bad in NO_MESSAGES),
        *(({"messages": [bad]}, "must have a role") for bad in (7, {}, {"role": "system"})),
        *(
            ({"messages": [{"role": "user", "content": bad}]}, "content with a type")
            for bad in (None, "x", [], [7], {}, {"type": 7}, [TEXT, "x"])
        ),
        ({"includeContext": "everything"}, "includeContext is none of its values"),
        ({"includeContext": []}, "includeContext is none of its values"),
        ({"systemPrompt": 7}, "systemPrompt must be a text"),
        ({"temperature": "1"}, "temperature must be a number"),
        ({"temperature": True}, "temperature must be a number"),
        ({"stopSequences": "x"}, "stopSequences must be a list of texts"),
        ({"stopSequences": [7]}, "stopSequences must be a list of texts"),
        ({"modelPreferences": []}, "modelPreferences must be an object"),
        ({"metadata": "x"}, "metadata must be an object"),
    ],
)
def test_what_is_asked_wrongly_is_refused(change: dict[str, object], why: str) -> None:
    params: dict[str, object] = {"messages": [ASKED], "maxTokens": 1, **change}
    with pytest.raises(NoSamplingRequest) as caught:
        sampling_request("srv", params, tools=False)
    assert why in str(caught.value)


@pytest.mark.parametrize("tools", ["x", [7], {}])
def test_tools_are_a_list_of_objects(tools: object) -> None:
    params: dict[str, object] = {"messages": [ASKED], "maxTokens": 1, "tools": tools}
    with pytest.raises(NoSamplingRequest, match="tools must be a list of objects"):
        sampling_request("srv", params, tools=True)


def test_every_use_of_a_tool_has_its_result() -> None:
    """MCP 2025-11-25 client/sampling §Tool Use and Result Balance."""
    messages = [ASKED, USE, RESULT, ASKED]
    params: dict[str, object] = {"messages": messages, "maxTokens": 1}
    assert sampling_request("srv", params, tools=True).messages == messages


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([ASKED, USE], "a tool_use has no tool_result"),
        ([ASKED, USE, ASKED], "each tool_use must have its tool_result in the next message"),
        ([ASKED, RESULT], "each tool_use must have its tool_result in the next message"),
        (
            [ASKED, USE, {"role": "user", "content": [*RESULT["content"], TEXT]}],  # type: ignore[misc]  # a list
            "tool_results must be alone",
        ),
        ([USE, {"role": "assistant", "content": RESULT["content"]}], "tool_results must be alone"),
    ],
)
def test_uses_and_results_out_of_balance_are_refused(
    messages: list[dict[str, object]], why: str
) -> None:
    params: dict[str, object] = {"messages": messages, "maxTokens": 1}
    with pytest.raises(NoSamplingRequest) as caught:
        sampling_request("srv", params, tools=True)
    assert why in str(caught.value)


def test_a_handlers_answer_is_a_result() -> None:
    answer = {"role": "assistant", "content": TEXT, "model": "m"}
    assert sampling_problem(answer) is None
    assert sampling_problem({**answer, "content": [TEXT], "stopReason": "endTurn"}) is None


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("yes", "must be a dict"),
        (None, "must be a dict"),
        ({"content": TEXT, "model": "m"}, "must have a role"),
        ({"role": "system", "content": TEXT, "model": "m"}, "must have a role"),
        ({"role": "user", "content": "x", "model": "m"}, "must have content"),
        ({"role": "user", "content": [], "model": "m"}, "must have content"),
        ({"role": "user", "content": TEXT}, "must name its model"),
        ({"role": "user", "content": TEXT, "model": "m", "stopReason": 7}, "stopReason"),
    ],
)
def test_a_handlers_mistake_is_named(answer: object, why: str) -> None:
    problem = sampling_problem(answer)
    assert problem is not None
    assert why in problem
