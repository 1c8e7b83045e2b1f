"""K09: one bad definition costs that one tool, and no other.

A null entry, a missing schema or one that refers to itself crashed converters, and every tool of
that server vanished.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_mcp.testing.virtual_loop import run_virtual
from tests.client.misbehaviour.attempts import Error, Says, attempt, echo, list_tools
from tests.client.peers.clients import memory_client, pipe_client
from tests.client.peers.script import Message, on, reply, script

OBJECT: Message = {"type": "object"}
GOOD: Message = {"name": "good", "inputSchema": OBJECT}
TOOLS: list[object] = [
    None,
    7,
    {"name": "no_schema"},
    {"name": "null_schema", "inputSchema": None},
    {"inputSchema": OBJECT},
    {
        "name": "rec",
        "inputSchema": {
            **OBJECT,
            "properties": {"n": {"$ref": "#/$defs/n"}},
            "$defs": {"n": {**OBJECT, "properties": {"n": {"$ref": "#/$defs/n"}}}},
        },
    },
    {"name": "loop", "inputSchema": {**OBJECT, "properties": {"n": {"$ref": "#/properties/n"}}}},
    {
        "name": "redos",
        "inputSchema": {**OBJECT, "properties": {"s": {"type": "string", "pattern": "^(a+)+$"}}},
    },
    {"name": "bool", "inputSchema": {**OBJECT, "properties": {"x": True}}},
    GOOD,
]


def test_bad_tools_are_left_out_and_the_others_work(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """BC-129, over a real pipe. MCP server/tools §Tool; what is left out is named in the log."""

    async def tries() -> None:
        data = script(
            "legacy",
            on("tools/list", reply({"tools": TOOLS})),
            on("tools/call", reply({"content": []})),
        )
        async with pipe_client(data, tmp_path) as (client, _):
            assert await attempt(list_tools(client)) == Says(
                ["rec", "loop", "redos", "bool", "good"]
            )
            assert await attempt(client.call_tool("good", {})) == Says("")
            trap = {"s": "a" * 40 + "!"}
            assert await attempt(client.call_tool("redos", trap)) == Says("")
            assert await attempt(client.call_tool("loop", {"n": {"n": {}}})) == Says("")

    asyncio.run(tries())
    assert "no_schema" in caplog.text
    assert "null_schema" in caplog.text


@pytest.mark.parametrize(
    "listed", [{"tools": None}, {}, {"tools": {"a": GOOD}}, {"tools": "x"}], ids=str
)
def test_no_list_is_not_an_empty_one(listed: Message) -> None:
    """BC-129, the variants: an error, and the next list is read."""

    async def tries() -> None:
        data = script("legacy", on("tools/list", reply(listed), times=1))
        async with memory_client(data) as (client, _):
            invalid = Error("RequestFailed", ("invalid_response", "tools/list"))
            assert await attempt(list_tools(client)) == invalid
            assert await attempt(list_tools(client)) == Says(["echo", "slow"])

    run_virtual(tries)


def test_of_two_tools_of_one_name_one_is_left() -> None:
    """BC-129: the first, so that nothing that is added later takes its place."""

    async def tries() -> None:
        tools = [{**GOOD, "description": "first"}, {**GOOD, "description": "second"}]
        async with memory_client(script("legacy", on("tools/list", reply({"tools": tools})))) as (
            client,
            _,
        ):
            assert [tool.description for tool in await client.list_tools()] == ["first"]

    run_virtual(tries)


SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
FIELD = st.sampled_from(
    ["name", "title", "description", "inputSchema", "outputSchema", "annotations", "icons", "_meta"]
)


@given(st.lists(JSON | st.dictionaries(FIELD, JSON, max_size=4), max_size=6), st.integers(0, 6))
def test_whatever_stands_beside_it_a_good_tool_is_offered(bad: list[object], at: int) -> None:
    """The kind: any JSON among the entries, in any place."""

    async def tries() -> None:
        tools = [*bad[:at], GOOD, *bad[at:]]
        async with memory_client(script("legacy", on("tools/list", reply({"tools": tools})))) as (
            client,
            _,
        ):
            names = [tool.name for tool in await client.list_tools()]
            assert "good" in names
            assert len(set(names)) == len(names)
            assert await attempt(echo(client)) == Says("x")

    run_virtual(tries)
