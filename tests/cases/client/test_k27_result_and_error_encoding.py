"""K27: a result is what the server said, an error of a tool is a result, and the rest is kept.

A failing tool was raised as a transport error or read as a success, structured content and images
were dropped, and one unknown kind of content failed the whole result.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_mcp.testing.virtual_loop import run_virtual
from tests.client.misbehaviour.attempts import Error, Says, attempt, echo, list_tools
from tests.client.peers.clients import http_client, memory_client, pipe_client
from tests.client.peers.script import Message, error, on, reply, script, text

INVALID: Final = Error("RequestFailed", ("invalid_response", "tools/call"))
BLOCKS: Final[list[Message]] = [
    {"type": "text", "text": "bad"},
    {"type": "image", "data": "aGk=", "mimeType": "image/png"},
]
FAILED: Final[Message] = {
    "content": BLOCKS,
    "isError": True,
    "structuredContent": {"n": 1},
    "_meta": {"x.example/y": 1},
    "futureField": [1],
}
NEW: Final[list[Message]] = [
    {"type": "hologram", "x": 1},
    {"type": "text", "text": "ok", "annotations": {"future": 1}},
    {"type": "resource_link", "uri": "mem://a", "name": "a"},
]


def test_an_error_of_a_tool_is_a_result_with_all_its_parts(tmp_path: Path) -> None:
    """BC-159, over a real pipe. MCP server/tools §Error Handling."""

    async def tries() -> None:
        rules = [on("tools/call", reply(each), times=1) for each in (FAILED, {"content": NEW})]
        async with pipe_client(script("legacy", *rules), tmp_path) as (client, _):
            failed = await client.call_tool("echo", {"text": "x"})
            assert failed.is_error
            assert failed.text == "bad"
            assert failed.content == BLOCKS
            assert failed.structured_content == {"n": 1}
            assert failed.meta == {"x.example/y": 1}
            new = await client.call_tool("echo", {"text": "y"})
            assert not new.is_error
            assert new.text == "ok"
            assert new.content == NEW

    asyncio.run(tries())


VARIANTS: Final[dict[str, tuple[Any, Any]]] = {
    "content missing beside structured content": ({"structuredContent": {"n": 1}}, Says("")),
    "structured content that is no object": ({"content": [], "structuredContent": None}, Says("")),
    "content empty": ({"content": []}, Says("")),
    "content null": ({"content": None}, INVALID),
    "isError a text": ({"content": [], "isError": "true"}, INVALID),
    "a text without text": ({"content": [{"type": "text"}]}, INVALID),
    "a block that is none": ({"content": ["x"]}, INVALID),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_malformed_result_fails_its_call_alone(name: str) -> None:
    """BC-159, the variants."""
    result, expected = VARIANTS[name]

    async def tries() -> None:
        data = script("legacy", on("tools/call", reply(result), times=1))
        async with memory_client(data) as (client, _):
            assert await attempt(echo(client)) == expected
            assert await attempt(echo(client, "next")) == Says("next")

    run_virtual(tries)


def test_the_code_of_an_error_may_be_nonsense() -> None:
    """BC-159: a code that is a text is an error all the same, and no crash."""

    async def tries() -> None:
        async with memory_client(script("legacy", on("tools/call", error("oops"), times=1))) as (
            client,
            _,
        ):
            assert await attempt(echo(client)) == Error("RemoteProtocolError", (-32603,))
            assert await attempt(echo(client, "next")) == Says("next")

    run_virtual(tries)


KINDS: Final[dict[str, tuple[Message, Any]]] = {
    "absent": ({}, Says("ok")),
    "complete": ({"resultType": "complete"}, Says("ok")),
    "of the future": ({"resultType": "future_kind"}, INVALID),
    "a number": ({"resultType": 7}, INVALID),
    "null": ({"resultType": None}, INVALID),
    "in other letters": ({"resultType": "Complete"}, INVALID),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_result_is_of_a_kind_that_is_known(name: str) -> None:
    """BC-117, over HTTP. MCP 2026-07-28 basic §Result responses: absent is complete."""
    kind, expected = KINDS[name]

    async def tries() -> None:
        data = script("modern", on("tools/call", text("ok", **kind), times=1))
        async with http_client(data) as (client, _):
            assert await attempt(echo(client)) == expected
            assert await attempt(echo(client, "next")) == Says("next")

    asyncio.run(tries())


def test_a_list_cannot_ask_for_input() -> None:
    """BC-117. MCP 2026-07-28 basic/patterns/mrtr: allowed for three methods."""

    async def tries() -> None:
        asks = reply({"resultType": "input_required", "requestState": "s"})
        async with http_client(script("modern", on("tools/list", asks, times=1))) as (client, _):
            invalid = Error("RequestFailed", ("invalid_response", "tools/list"))
            assert await attempt(list_tools(client)) == invalid
            assert await attempt(list_tools(client)) == Says(["echo", "slow"])

    asyncio.run(tries())


SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8)
JSON = st.recursive(
    SCALARS | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(JSON)
def test_any_value_arrives_as_it_was(value: Any) -> None:
    """The kind: whatever JSON carries, in a result, comes back equal and of its type."""

    async def tries() -> None:
        block = {"type": "text", "text": "t", "x": value}
        data = script(
            "legacy", on("tools/call", reply({"content": [block], "structuredContent": value}))
        )
        async with memory_client(data) as (client, _):
            result = await client.call_tool("echo")
            assert result.has_structured
            assert repr(result.structured_content) == repr(value)
            assert repr(result.content) == repr([block])

    # What a script fills in is not what a server would say.
    if "$" not in repr(value):
        run_virtual(tries)
