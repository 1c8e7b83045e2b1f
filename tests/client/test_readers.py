"""Results of a server: unknown parts are kept, unusable shapes fail one request."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_mcp.client.readers import (
    InvalidResult,
    Page,
    call_result,
    completion_result,
    listed,
    log_message,
    prompt_result,
    read_result,
)
from raxol_mcp.client.results import (
    CallResult,
    CompletionResult,
    LogMessage,
    PromptResult,
    ReadResult,
)

TEXT: dict[str, object] = {"type": "text", "text": "ok"}


def test_a_failed_tool_keeps_everything_it_said() -> None:
    """BC-159."""
    image: dict[str, object] = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    result = call_result(
        {
            "content": [{"type": "text", "text": "bad"}, image],
            "isError": True,
            "structuredContent": {"n": 1},
            "_meta": {"x.example/y": 1},
            "futureField": [1],
        }
    )
    assert result == CallResult(
        [{"type": "text", "text": "bad"}, image], {"n": 1}, True, True, {"x.example/y": 1}
    )
    assert result.text == "bad"


def test_blocks_of_a_later_revision_are_kept_as_they_are() -> None:
    """BC-159."""
    blocks: list[dict[str, object]] = [
        {"type": "hologram", "x": 1},
        {"type": "text", "text": "ok", "annotations": {"future": 1}},
        {"type": "resource_link", "uri": "mem://a", "name": "a"},
        {"type": "resource", "resource": {"uri": "mem://b", "blob": "AA==", "future": 1}},
        {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
        {"type": "text", "text": "too"},
    ]
    result = call_result({"content": blocks})
    assert result == CallResult(blocks)
    assert result.text == "ok\ntoo"
    assert not result.has_structured


@pytest.mark.parametrize("value", [None, 0, "", [], {"n": 1}, False])
def test_structured_content_is_any_json_and_null_is_some(value: object) -> None:
    """MCP 2026-07-28 server/tools."""
    result = call_result({"content": [], "structuredContent": value})
    assert (result.structured_content, result.has_structured) == (value, True)


@pytest.mark.parametrize("fields", [{}, {"structuredContent": {}}])
def test_without_content_there_is_none(fields: dict[str, object]) -> None:
    """client-behaviour 8: absent is empty; BC-159."""
    result = call_result(fields)
    assert (result.content, result.is_error, result.text) == ([], False, "")


@pytest.mark.parametrize(
    ("result", "why"),
    [
        (None, "the result is not an object"),
        ([], "the result is not an object"),
        ("ok", "the result is not an object"),
        ({"content": None}, "content is not a list"),
        ({"content": {}}, "content is not a list"),
        ({"content": [None]}, "an item of content is not an object"),
        ({"content": ["ok"]}, "an item of content is not an object"),
        ({"content": [{}]}, "a block of content has no type"),
        ({"content": [{"type": 7}]}, "a block of content has no type"),
        ({"content": [{"type": "text"}]}, "a block of type text has no text"),
        ({"content": [{"type": "text", "text": None}]}, "a block of type text has no text"),
        ({"content": [{"type": "image", "data": ""}]}, "a block of type image has no mimeType"),
        ({"content": [{"type": "audio", "mimeType": ""}]}, "a block of type audio has no data"),
        ({"content": [{"type": "resource_link"}]}, "a block of type resource_link has no uri"),
        ({"content": [{"type": "resource"}]}, "an embedded resource is not an object"),
        (
            {"content": [{"type": "resource", "resource": {"text": ""}}]},
            "the contents of a resource have no uri",
        ),
        (
            {"content": [{"type": "resource", "resource": {"uri": "m:a"}}]},
            "the contents of a resource are neither text nor blob",
        ),
        ({"content": [], "isError": "true"}, "isError is neither true nor false"),
        ({"content": [], "isError": None}, "isError is neither true nor false"),
        ({"content": [], "isError": 1}, "isError is neither true nor false"),
    ],
)
def test_a_call_with_an_unusable_result_says_why(result: object, why: str) -> None:
    """BC-159: malformed variants fail only that call."""
    with pytest.raises(InvalidResult) as caught:
        call_result(result)
    assert (caught.value.method, caught.value.why) == ("tools/call", why)
    assert str(caught.value) == f"tools/call: {why}"


@pytest.mark.parametrize("meta", [None, 7, [], "x"])
def test_what_stands_beside_a_result_never_costs_the_result(meta: object) -> None:
    """Ours: the call has happened."""
    assert call_result({"content": [TEXT], "_meta": meta}) == CallResult([TEXT])


def test_a_resource_has_parts_of_text_and_bytes() -> None:
    contents: list[dict[str, object]] = [
        {"uri": "m:a", "text": "one"},
        {"uri": "m:b", "blob": "AA==", "mimeType": "x/y"},
        {"uri": "m:c", "text": "two"},
    ]
    result = read_result({"contents": contents, "_meta": {"a/b": 1}})
    assert result == ReadResult(contents, {"a/b": 1})
    assert result.text == "one\ntwo"
    assert read_result({"contents": []}) == ReadResult([])


@pytest.mark.parametrize(
    "result",
    [
        *(None, {}, {"contents": None}, {"contents": [7]}, {"contents": [{"text": "x"}]}),
        *({"contents": [{"uri": "m:a"}]}, {"contents": [{"uri": "m:a", "text": 7}]}),
    ],
)
def test_a_read_with_an_unusable_result_fails(result: object) -> None:
    with pytest.raises(InvalidResult, match="resources/read"):
        read_result(result)


def test_a_prompt_has_messages() -> None:
    messages: list[dict[str, object]] = [
        {"role": "user", "content": TEXT},
        {"role": "future", "content": {"type": "x"}},
    ]
    assert prompt_result({"description": "d", "messages": messages}) == PromptResult("d", messages)
    assert prompt_result({"description": 7, "messages": []}) == PromptResult("", [])


@pytest.mark.parametrize(
    "result",
    [
        *(None, {}, {"messages": {}}, {"messages": ["x"]}, {"messages": [{"content": TEXT}]}),
        *({"messages": [{"role": "user"}]}, {"messages": [{"role": "user", "content": "x"}]}),
        {"messages": [{"role": "user", "content": {"type": "text"}}]},
    ],
)
def test_a_prompt_with_an_unusable_result_fails(result: object) -> None:
    with pytest.raises(InvalidResult, match="prompts/get"):
        prompt_result(result)


@pytest.mark.parametrize(
    ("completion", "expected"),
    [
        ({"values": []}, CompletionResult([])),
        (
            {"values": ["a"], "total": 7, "hasMore": True},
            CompletionResult(["a"], 7, True),
        ),
        ({"values": ["a"], "total": -1, "hasMore": "yes"}, CompletionResult(["a"])),
        ({"values": ["a"], "total": True, "hasMore": None}, CompletionResult(["a"])),
        ({"values": ["a"] * 101}, CompletionResult(["a"] * 100, None, True)),
    ],
)
def test_a_completion_is_bounded(completion: dict[str, object], expected: CompletionResult) -> None:
    """MCP server/utilities/completion: at most 100 values; BC-167."""
    assert completion_result({"completion": completion}) == expected


@pytest.mark.parametrize(
    "result", [None, {}, {"completion": []}, {"completion": {}}, {"completion": {"values": [1]}}]
)
def test_a_completion_with_an_unusable_result_fails(result: object) -> None:
    with pytest.raises(InvalidResult, match="completion/complete"):
        completion_result(result)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, Page([7])),
        ({"nextCursor": None}, Page([7])),
        ({"nextCursor": ""}, Page([7], "")),
        ({"nextCursor": "x", "ttlMs": 1500}, Page([7], "x", 1.5)),
        ({"ttlMs": 0}, Page([7], None, 0.0)),
        ({"ttlMs": -1}, Page([7], None, 0.0)),
        ({"ttlMs": None}, Page([7], None, 0.0)),
        ({"ttlMs": True}, Page([7], None, 0.0)),
        ({"ttlMs": "1"}, Page([7], None, 0.0)),
    ],
)
def test_a_page_says_where_the_next_is(fields: dict[str, object], expected: Page) -> None:
    """MCP server/utilities/pagination: only a missing cursor ends; 2026-07-28 caching."""
    assert listed("tools/list", "tools", {"tools": [7], **fields}) == expected


@pytest.mark.parametrize(
    "result",
    [
        *(None, [], {}, {"tools": None}, {"tools": {}}, {"tools": "x"}),
        {"tools": [], "nextCursor": 7},
    ],
)
def test_no_list_is_no_empty_list(result: object) -> None:
    """BC-129: an error, not an empty success."""
    with pytest.raises(InvalidResult, match="tools/list"):
        listed("tools/list", "tools", result)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"level": "info", "data": None}, LogMessage("info", None, None)),
        ({"level": "error", "logger": "db", "data": [1]}, LogMessage("error", "db", [1])),
        (
            {"level": "debug", "logger": "x" * 999, "data": ""},
            LogMessage("debug", "x" * 256, ""),
        ),
        ({"level": "info", "logger": 7, "data": ""}, LogMessage("info", None, "")),
        ({"level": "info"}, None),
        ({"level": "fatal", "data": ""}, None),
        ({"level": ["info"], "data": ""}, None),
        ({}, None),
        (None, None),
    ],
)
def test_a_log_message_has_a_level_and_data(
    params: dict[str, object] | None, message: LogMessage | None
) -> None:
    """MCP server/utilities/logging."""
    assert log_message(params) == message


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["content", "type", "text", "isError", "messages", "contents", "role"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=10,
)


@given(json_values)
def test_whatever_comes_is_a_record_or_an_invalid_result(result: object) -> None:
    """K27: nothing else escapes."""
    for read in (call_result, read_result, prompt_result, completion_result):
        try:
            read(result)
        except InvalidResult as invalid:
            assert invalid.why  # noqa: PT017  # which of the two comes is not known beforehand
