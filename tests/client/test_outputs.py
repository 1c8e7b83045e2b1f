"""Structured content is checked by what its tool promised, within bounds."""

from __future__ import annotations

import logging

import pytest

from raxol_mcp.client import outputs
from raxol_mcp.client.outputs import output_problem
from raxol_mcp.client.results import CallResult, RemoteTool


def tool(schema: dict[str, object] | None) -> RemoteTool:
    """Return a tool with an output schema."""
    return RemoteTool("t", None, "", {"type": "object"}, schema)


def structured(value: object) -> CallResult:
    """Return a result with structured content."""
    return CallResult([], value, True)


NUMBER: dict[str, object] = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
}


def test_what_conforms_has_no_problem() -> None:
    """MCP 2025-06-18 and later server/tools §Output Schema."""
    assert output_problem(tool(NUMBER), structured({"n": 1})) is None


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"n": "s3cr3t"}, "Invalid structured content: 'n' is not of type \"integer\"."),
        ({}, "Invalid structured content: 'n' is required."),
        (None, 'Invalid structured content: the whole is not of type "object".'),
    ],
)
def test_what_does_not_conform_is_told_without_its_values(value: object, said: str) -> None:
    assert output_problem(tool(NUMBER), structured(value)) == said


def test_any_json_may_be_promised() -> None:
    """MCP 2026-07-28 server/tools: structuredContent is any JSON value."""
    assert output_problem(tool({"type": "array"}), structured([])) is None
    assert output_problem(tool({"type": "null"}), structured(None)) is None
    assert output_problem(tool({"type": "null"}), structured(0)) is not None


def test_a_promise_is_not_kept_by_saying_nothing() -> None:
    assert output_problem(tool(NUMBER), CallResult([])) == (
        "the tool has an output schema, and the result no structured content"
    )


def test_a_tool_that_failed_or_promised_nothing_is_not_checked() -> None:
    assert output_problem(tool(NUMBER), CallResult([], {"n": "x"}, True, True)) is None
    assert output_problem(tool(NUMBER), CallResult([], is_error=True)) is None
    assert output_problem(tool(None), structured({"n": "x"})) is None


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"$ref": "https://a.example/schema.json"}}},
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "(?=a)b"}}},
        {"type": "no such type"},
    ],
)
def test_a_schema_that_cannot_be_used_is_told_once_and_not_used(
    schema: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    """BC-129; MCP 2026-07-28 basic §JSON Schema: references are never fetched."""
    promised = tool(schema)
    with caplog.at_level(logging.WARNING, "raxol_mcp.client"):
        assert output_problem(promised, structured({"a": 1})) is None
        assert output_problem(promised, structured({"a": 1})) is None
    assert len(caplog.records) == 1
    assert caplog.messages[0].startswith("the output schema of 't' is not used: the JSON Schema")
    assert caplog.messages[0].isprintable()


@pytest.mark.parametrize("dialect", ["https://a.example/my\n-dialect", 7])
def test_a_dialect_that_is_not_supported_is_an_error(dialect: object) -> None:
    """MCP 2026-07-28 basic §JSON Schema: a clear error, and no guess."""
    problem = output_problem(tool({"$schema": dialect}), structured({}))
    assert problem is not None
    assert problem.startswith("the output schema cannot be checked: the JSON Schema dialect")
    assert problem.isprintable()


def test_hostile_schemas_cost_bounded_time() -> None:
    """BC-129: 'loop' and 'redos'."""
    loop: dict[str, object] = {"properties": {"n": {"$ref": "#/properties/n"}}}
    redos: dict[str, object] = {"properties": {"s": {"type": "string", "pattern": "^(a+)+$"}}}
    output_problem(tool(loop), structured({"n": {"n": {}}}))
    assert output_problem(tool(redos), structured({"s": "a" * 40 + "!"})) is not None
    assert output_problem(tool(redos), structured({"s": "a" * 40})) is None


def test_content_that_would_take_too_long_is_not_checked(caplog: pytest.LogCaptureFixture) -> None:
    alternatives = [{"required": [f"k{index}"]} for index in range(1_000)]
    heavy = tool({"type": "array", "items": {"anyOf": alternatives}})
    assert output_problem(heavy, structured([{}])) is not None
    with caplog.at_level(logging.WARNING, "raxol_mcp.client"):
        assert output_problem(heavy, structured([{}] * 100_000)) is None
    assert caplog.messages == ["a result of 't' is too large to be checked"]


def test_a_problem_is_one_bounded_line() -> None:
    many = {f"x\n{index}": index for index in range(1_000)}
    problem = output_problem(tool({"additionalProperties": False}), structured(many))
    assert problem is not None
    assert problem.isprintable()
    assert len(problem) <= 512


def test_a_schema_is_compiled_once_and_few_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "_MAX_KEPT", 2)
    outputs._compiled.clear()
    first, second, third = (tool(dict(NUMBER)) for _ in range(3))
    for each in (first, second, first, third, first):
        assert output_problem(each, structured({"n": 1})) is None
    assert [compiled.schema for compiled in outputs._compiled.values()] == [
        third.output_schema,
        first.output_schema,
    ]
    kept = outputs._compiled[id(first.output_schema)]
    output_problem(first, structured({"n": 1}))
    assert outputs._compiled[id(first.output_schema)] is kept
    assert len(outputs._compiled) == 2
