"""Lists that are none, that never end, or whose entries are traps."""

from __future__ import annotations

from typing import Any, Final

from raxol_mcp.client.app import Client
from raxol_mcp.client.results import CallResult
from tests.client.misbehaviour.attempts import (
    Act,
    Error,
    Misbehaviour,
    Outcome,
    Says,
    list_tools,
)
from tests.client.misbehaviour.messages import TIMEOUT
from tests.client.peers.script import ECHO, Message, Step, on, reply, silent

__all__ = ["LISTS"]


def list_case(
    name: str, *steps: Step, expected: Outcome, act: Act = list_tools, **more: Any
) -> Misbehaviour:
    """Build a misbehaviour at every tools/list."""
    return Misbehaviour(name, (on("tools/list", *steps),), expected, act=act, **more)


NO_LIST: Final = Error("RequestFailed", ("invalid_response", "tools/list"))
LOOP: Final[Message] = {"type": "object", "properties": {"n": {"$ref": "#/properties/n"}}}
TREE: Final[Message] = {
    "type": "object",
    "properties": {"n": {"$ref": "#/$defs/n"}},
    "$defs": {"n": {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}}},
}
HOSTILE_NAMES: Final = [
    "",
    "a b",
    "x" * 129,
    "../../etc/passwd",
    "\x1b[2J",
    "a\u202eb",
    "a\nb",
    "é",
    "a;b",
    "$(id)",
    None,
    7,
]


async def are_harmless(client: Client) -> object:
    """List the tools; say whether each has a name that can be shown, and the good one is there."""
    names = [tool.name for tool in await client.list_tools()]
    return "echo" in names and all(name.isprintable() and 0 < len(name) <= 128 for name in names)


async def how_many(client: Client) -> object:
    """List the tools, which are many; say that they are bounded."""
    tools = await client.list_tools()
    return 0 < len(tools) <= 10_000 and len({tool.name for tool in tools}) == len(tools)


async def calls_a_listed_tool(client: Client) -> object:
    """List first, so that the schema is known, then call."""
    await client.list_tools()
    result = await client.call_tool("echo", {"text": "x"})
    assert isinstance(result, CallResult)
    return result.text


def schema_case(name: str, schema: object) -> Misbehaviour:
    """Build one whose tool has a schema that is a trap; it stays usable."""
    tool = {**ECHO, "inputSchema": schema}
    return Misbehaviour(
        f"a schema that {name}",
        (on("tools/list", reply({"tools": [tool, {"name": "x", "inputSchema": schema}]})),),
        Says("x"),
        act=calls_a_listed_tool,
    )


def nested(depth: int) -> Message:
    """Write a schema that is so deep."""
    schema: Message = {"type": "string"}
    for _ in range(depth):
        schema = {"anyOf": [schema]}
    return {"type": "object", "properties": {"text": schema}}


LISTS: Final[list[Misbehaviour]] = [
    list_case("the list never comes", silent(), expected=TIMEOUT),
    list_case("tools null", reply({"tools": None}), expected=NO_LIST),
    list_case("tools missing", reply({}), expected=NO_LIST),
    list_case("tools an object", reply({"tools": {"a": ECHO}}), expected=NO_LIST),
    list_case("the cursor a number", reply({"tools": [ECHO], "nextCursor": 7}), expected=NO_LIST),
    list_case(
        "one cursor for ever", reply({"tools": [ECHO], "nextCursor": "again"}), expected=NO_LIST
    ),
    list_case(
        "one bad tool after the other",
        reply(
            {
                "tools": [
                    None,
                    7,
                    [],
                    "x",
                    {"inputSchema": {}},
                    {"name": "no_schema"},
                    {"name": "null_schema", "inputSchema": None},
                    ECHO,
                ]
            }
        ),
        expected=Says(["echo"]),
    ),
    list_case(
        "hostile names",
        reply({"tools": [*({**ECHO, "name": name} for name in HOSTILE_NAMES), ECHO]}),
        expected=Says(True),
        act=are_harmless,
    ),
    list_case(
        "10,000 tools",
        reply({"tools": [{**ECHO, "name": f"t{n}"} for n in range(10_000)]}),
        expected=Says(True),
        act=how_many,
    ),
    list_case(
        "a description of a megabyte",
        reply({"tools": [{**ECHO, "description": "é" * 500_000}]}),
        expected=Says(["echo"]),
    ),
    list_case(
        "input required for a list",
        reply({"resultType": "input_required", "requestState": "s"}),
        expected=NO_LIST,
        preset="modern",
    ),
    schema_case("refers to itself", LOOP),
    schema_case("is a tree without an end", TREE),
    schema_case(
        "backtracks",
        {"type": "object", "properties": {"text": {"type": "string", "pattern": "^(a+)+$"}}},
    ),
    schema_case("leads elsewhere", {"$ref": "http://127.0.0.1:9/schema.json"}),
    schema_case("is nested 50 deep", nested(50)),
    schema_case(
        "names headers as it likes",
        {
            "type": "object",
            "properties": {"text": {"type": "string", "x-mcp-header": "X\r\nEvil: 1"}},
        },
    ),
]
