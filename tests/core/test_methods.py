"""Methods: which there are in which era, what their params must be, what the gate is shown."""

from __future__ import annotations

import pytest

from raxol_mcp.core.methods import (
    HANDSHAKE_METHODS,
    STATELESS_METHODS,
    level_problem,
    string_list,
)
from raxol_mcp.wire.jsonrpc import JSONObject

ALL = {**HANDSHAKE_METHODS, **STATELESS_METHODS}
SHARED = {
    *("tools/list", "tools/call", "resources/list", "resources/templates/list"),
    *("resources/read", "prompts/list", "prompts/get", "completion/complete"),
}
NAME, ARGUMENTS = "name must be a string", "arguments must be an object"
URI = "uri must be a string"
REF = "ref must be an object"
ARGUMENT = "argument must be an object"
CONTEXT = "context.arguments must map names to strings"
PROMPT_REF: JSONObject = {"type": "ref/prompt", "name": "p"}
TYPED: JSONObject = {"name": "n", "value": ""}


def test_the_methods_of_the_two_eras() -> None:
    """MCP 2025-11-25 and 2026-07-28: what was removed is unknown there, and the other way round."""
    assert set(HANDSHAKE_METHODS) - SHARED == {
        *("initialize", "ping", "resources/subscribe", "resources/unsubscribe"),
        "logging/setLevel",
    }
    assert set(STATELESS_METHODS) - SHARED == {"server/discover", "subscriptions/listen"}
    assert set(HANDSHAKE_METHODS) & set(STATELESS_METHODS) == SHARED


def test_each_method_knows_its_name() -> None:
    assert all(name == method.name for name, method in ALL.items())


@pytest.mark.parametrize(
    ("flag", "names"),
    [
        # Never a worker: Raxol MCP 2.8.0 answers these while every slot is taken.
        ("inline", {"initialize", "ping", "server/discover"}),
        # MCP 2026-07-28 basic/patterns/mrtr: nowhere else.
        ("rounds", {"tools/call", "prompts/get", "resources/read"}),
        # MCP 2026-07-28 server/utilities/caching.
        (
            "cached",
            {
                *("tools/list", "resources/list", "resources/templates/list", "prompts/list"),
                *("resources/read", "server/discover"),
            },
        ),
        (
            "granted",
            {
                *("resources/subscribe", "resources/unsubscribe", "logging/setLevel"),
                "subscriptions/listen",
            },
        ),
        (
            "required",
            {
                *("tools/call", "resources/read", "prompts/get", "completion/complete"),
                *("resources/subscribe", "resources/unsubscribe", "logging/setLevel"),
                "subscriptions/listen",
            },
        ),
    ],
)
def test_what_is_true_of_which_methods(flag: str, names: set[str]) -> None:
    assert {name for name, method in ALL.items() if getattr(method, flag)} == names


def test_what_is_named_by_its_uri() -> None:
    uri = {name for name, method in ALL.items() if method.named == "uri"}
    assert uri == {"resources/read", "resources/subscribe", "resources/unsubscribe"}
    assert {method.named for method in ALL.values()} == {"uri", "name"}


@pytest.mark.parametrize(
    ("method", "params", "problem"),
    [
        ("ping", {}, None),
        ("ping", {"anything": [1]}, None),
        ("initialize", {"protocolVersion": 1}, None),  # looked at by the greeting itself
        ("server/discover", {}, None),
        *(
            (method, params, problem)
            for method in ("tools/list", "resources/list", "prompts/list")
            for params, problem in (
                ({}, None),
                ({"cursor": None}, None),
                ({"cursor": ""}, None),
                ({"cursor": "x"}, None),
                ({"cursor": 0}, "cursor must be a string"),
                ({"cursor": False}, "cursor must be a string"),
                ({"cursor": []}, "cursor must be a string"),
            )
        ),
        ("resources/templates/list", {"cursor": {}}, "cursor must be a string"),
        ("tools/call", {"name": "t"}, None),
        ("tools/call", {"name": ""}, None),
        ("tools/call", {"name": "t", "arguments": None}, None),
        ("tools/call", {"name": "t", "arguments": {"a": 1}}, None),
        ("tools/call", {}, NAME),
        ("tools/call", {"name": None}, NAME),
        ("tools/call", {"name": 1}, NAME),
        ("tools/call", {"name": ["t"]}, NAME),
        ("tools/call", {"name": "t", "arguments": []}, ARGUMENTS),
        ("tools/call", {"name": "t", "arguments": "{}"}, ARGUMENTS),
        ("tools/call", {"name": "t", "arguments": False}, ARGUMENTS),
        ("prompts/get", {"name": "p"}, None),
        ("prompts/get", {"name": "p", "arguments": {"a": "x"}}, None),
        ("prompts/get", {}, NAME),
        ("prompts/get", {"name": "p", "arguments": []}, ARGUMENTS),
        ("prompts/get", {"name": "p", "arguments": {"a": 1}}, "argument 'a' must be a string"),
        ("prompts/get", {"name": "p", "arguments": {"a": None}}, "argument 'a' must be a string"),
        *(
            (method, params, problem)
            for method in ("resources/read", "resources/subscribe", "resources/unsubscribe")
            for params, problem in (
                ({"uri": "file:///a"}, None),
                ({"uri": ""}, None),
                ({}, URI),
                ({"uri": None}, URI),
                ({"uri": 1}, URI),
                ({"name": "file:///a"}, URI),
            )
        ),
        ("logging/setLevel", {"level": "debug"}, None),
        ("logging/setLevel", {"level": "loud"}, None),  # looked at behind the read authorizer
        ("logging/setLevel", {}, "level is missing"),
        ("completion/complete", {"ref": PROMPT_REF, "argument": TYPED}, None),
        (
            "completion/complete",
            {"ref": {"type": "ref/resource", "uri": "a{b}"}, "argument": TYPED},
            None,
        ),
        ("completion/complete", {}, REF),
        ("completion/complete", {"ref": "p", "argument": TYPED}, REF),
        (
            "completion/complete",
            {"ref": {}, "argument": TYPED},
            "ref.type must be ref/prompt or ref/resource",
        ),
        (
            "completion/complete",
            {"ref": {"type": "ref/tool", "name": "t"}, "argument": TYPED},
            "ref.type must be ref/prompt or ref/resource",
        ),
        (
            "completion/complete",
            {"ref": {"type": ["ref/prompt"], "name": "t"}, "argument": TYPED},
            "ref.type must be ref/prompt or ref/resource",
        ),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "uri": "p"}, "argument": TYPED},
            "ref.name must be a string",
        ),
        (
            "completion/complete",
            {"ref": {"type": "ref/resource", "name": "p"}, "argument": TYPED},
            "ref.uri must be a string",
        ),
        ("completion/complete", {"ref": PROMPT_REF}, ARGUMENT),
        ("completion/complete", {"ref": PROMPT_REF, "argument": "n"}, ARGUMENT),
        (
            "completion/complete",
            {"ref": PROMPT_REF, "argument": {"name": "n"}},
            "argument.name and argument.value must be strings",
        ),
        (
            "completion/complete",
            {"ref": PROMPT_REF, "argument": {"name": 1, "value": ""}},
            "argument.name and argument.value must be strings",
        ),
        ("completion/complete", {"ref": PROMPT_REF, "argument": TYPED, "context": None}, None),
        ("completion/complete", {"ref": PROMPT_REF, "argument": TYPED, "context": {}}, None),
        (
            "completion/complete",
            {"ref": PROMPT_REF, "argument": TYPED, "context": {"arguments": {"a": "x"}}},
            None,
        ),
        (
            "completion/complete",
            {"ref": PROMPT_REF, "argument": TYPED, "context": {"arguments": None}},
            None,
        ),
        (
            "completion/complete",
            {"ref": PROMPT_REF, "argument": TYPED, "context": []},
            "context must be an object",
        ),
        (
            "completion/complete",
            {"ref": PROMPT_REF, "argument": TYPED, "context": {"arguments": []}},
            CONTEXT,
        ),
        (
            "completion/complete",
            {"ref": PROMPT_REF, "argument": TYPED, "context": {"arguments": {"a": 1}}},
            CONTEXT,
        ),
        ("subscriptions/listen", {"notifications": {}}, None),
        (
            "subscriptions/listen",
            {"notifications": {"toolsListChanged": True, "promptsListChanged": False}},
            None,
        ),
        ("subscriptions/listen", {"notifications": {"resourceSubscriptions": []}}, None),
        ("subscriptions/listen", {"notifications": {"resourceSubscriptions": ["a"]}}, None),
        ("subscriptions/listen", {"notifications": {"resourceSubscriptions": None}}, None),
        ("subscriptions/listen", {"notifications": {"taskIds": 5}}, None),
        ("subscriptions/listen", {}, "notifications must be an object"),
        ("subscriptions/listen", {"notifications": []}, "notifications must be an object"),
        (
            "subscriptions/listen",
            {"notifications": {"resourcesListChanged": 1}},
            "notifications.resourcesListChanged must be a boolean",
        ),
        (
            "subscriptions/listen",
            {"notifications": {"toolsListChanged": "true"}},
            "notifications.toolsListChanged must be a boolean",
        ),
        (
            "subscriptions/listen",
            {"notifications": {"resourceSubscriptions": "a"}},
            "notifications.resourceSubscriptions must be a list of strings",
        ),
        (
            "subscriptions/listen",
            {"notifications": {"resourceSubscriptions": ["a", 1]}},
            "notifications.resourceSubscriptions must be a list of strings",
        ),
    ],
)
def test_what_params_must_be(method: str, params: JSONObject, problem: str | None) -> None:
    """MCP schema of each revision; null counts as absent."""
    assert ALL[method].shape(params) == problem


def test_a_problem_does_not_repeat_what_has_no_end() -> None:
    """The name is the client's: a message of 4 MiB is not answered with another."""
    problem = ALL["prompts/get"].shape({"name": "p", "arguments": {"a" * 10_000: 1}})
    assert problem == f"argument {'a' * 100!r} must be a string"


@pytest.mark.parametrize(
    ("method", "params", "shown"),
    [
        ("tools/list", {"cursor": "x"}, {}),
        ("tools/call", {"name": "t", "arguments": {}}, {}),
        ("resources/list", {}, {}),
        ("resources/templates/list", {}, {}),
        ("prompts/list", {}, {}),
        ("ping", {}, {}),
        ("resources/read", {"uri": "a", "name": "b"}, {"uri": "a"}),
        ("resources/subscribe", {"uri": "a", "x": 1}, {"uri": "a"}),
        ("resources/unsubscribe", {"uri": "a"}, {"uri": "a"}),
        ("prompts/get", {"name": "p"}, {"name": "p"}),
        (
            "prompts/get",
            {"name": "p", "arguments": {"a": "x"}},
            {"name": "p", "arguments": {"a": "x"}},
        ),
        ("completion/complete", {"ref": PROMPT_REF, "argument": TYPED}, {"ref": PROMPT_REF}),
        ("logging/setLevel", {"level": "debug"}, {"level": "debug"}),
        ("subscriptions/listen", {"notifications": {}}, {"notifications": {}}),
    ],
)
def test_what_the_read_authorizer_is_shown(
    method: str, params: JSONObject, shown: JSONObject
) -> None:
    """Raxol MCP 2.8.0 §Read seam: the method's own arguments and no other word of the client."""
    assert ALL[method].gate({**params, "_meta": {}}) == shown


def test_what_one_authorizer_does_to_it_no_other_one_sees() -> None:
    gate = ALL["tools/list"].gate
    assert isinstance(gate({}), dict)
    assert gate({}) is not gate({})


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ([], []),
        (["a", ""], ["a", ""]),
        (["a", None], None),
        ([1], None),
        ("ab", None),
        ({"a": 1}, None),
        (None, None),
    ],
)
def test_a_list_of_strings_is_exactly_that(value: object, found: list[str] | None) -> None:
    assert string_list(value) == found


@pytest.mark.parametrize(
    "level", ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
)
def test_the_levels_of_mcp_are_levels(level: str) -> None:
    """MCP server/utilities/logging §Log Levels (RFC 5424)."""
    assert level_problem(level) is None


@pytest.mark.parametrize("level", ["", "Debug", "warn", "loud", None, 0, True, ["debug"], {}])
def test_anything_else_is_no_level_and_is_not_repeated(level: object) -> None:
    assert level_problem(level) == (
        "Invalid log level. Valid: debug, info, notice, warning, error, critical, alert, emergency"
    )
