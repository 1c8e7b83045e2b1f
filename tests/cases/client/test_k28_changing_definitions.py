"""K28: what a server defines changes, and may be a trap; who calls sees what is so now.

A change was ignored or honoured only once, a burst of them asked as often, and one annotation
that was a list or a line of headers removed all tools, or got into the request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import pytest

from raxol_mcp.client.app import Client
from raxol_mcp.client.results import Change
from raxol_mcp.testing.virtual_loop import run_virtual
from tests.client.misbehaviour.attempts import Error, Says, attempt, echo, list_tools
from tests.client.peers.clients import http_client, memory_client, pipe_client
from tests.client.peers.script import (
    ECHO,
    PREFIX,
    Message,
    Step,
    as_usual,
    leave,
    notice,
    on,
    reply,
    script,
    silent,
    text,
    wait,
)

LATE: Final[Message] = {"name": "late", "inputSchema": {"type": "object"}}
CHANGED: Final = "notifications/tools/list_changed"


def listed(*tools: Message, times: int | None = 1) -> Any:
    """Answer a list with these tools."""
    return on("tools/list", reply({"tools": list(tools)}), times=times)


def names(client: Client) -> Any:
    """Give the names of the tools, as a later look sees them."""
    return attempt(list_tools(client))


@pytest.mark.parametrize("burst", [1, 50])
def test_a_change_is_seen_by_the_next_look(burst: int) -> None:
    """BC-119. MCP server/tools §List Changed: one look, however often it was said."""

    async def tries() -> None:
        told: list[Change] = []
        changes = notice(CHANGED, count=burst)
        data = script(
            "legacy",
            listed(ECHO),
            listed(ECHO, LATE),
            on("tools/call", changes, as_usual(), times=1),
        )
        async with memory_client(data, on_change=told.append) as (client, dialer):
            assert await names(client) == Says(["echo"])
            assert await names(client) == Says(["echo"])
            assert dialer.methods.count("tools/list") == 1
            assert await attempt(echo(client)) == Says("x")
            assert await names(client) == Says(["echo", "late"])
            assert await names(client) == Says(["echo", "late"])
            assert dialer.methods.count("tools/list") == 2
            assert told == [Change("tools")] * burst

    run_virtual(tries)


def test_a_change_that_comes_while_the_list_is_read_is_not_lost() -> None:
    """BC-119, the variant: between the answer and its use."""

    async def tries() -> None:
        first = on("tools/list", notice(CHANGED), reply({"tools": [ECHO]}), times=1)
        async with memory_client(script("legacy", first, listed(ECHO, LATE))) as (client, _):
            assert await names(client) == Says(["echo"])
            assert await names(client) == Says(["echo", "late"])

    run_virtual(tries)


def test_the_list_is_read_again_after_a_reconnect() -> None:
    """BC-119: the server that comes back may be another."""

    async def tries() -> None:
        data = script(
            "legacy",
            on("tools/list", reply({"tools": [LATE]}), life=2),
            on("tools/call", leave(1), life=1),
        )
        async with memory_client(data) as (client, _):
            assert await names(client) == Says(["echo", "slow"])
            assert await attempt(echo(client)) == Error("ConnectionLost", ("server_exited", 1))
            await client.await_ready()
            assert client.status().tools is None
            assert await names(client) == Says(["late"])

    run_virtual(tries)


FOREIGN: Final[dict[str, list[Step]]] = {
    "not declared": [notice(CHANGED)],
    "prompts alone": [notice("notifications/prompts/list_changed")],
    "a subscription of nobody": [notice(CHANGED, {"_meta": {f"{PREFIX}subscriptionId": 99}})],
    "a subscription that is none": [notice(CHANGED, {"_meta": {f"{PREFIX}subscriptionId": []}})],
    "acknowledged, unasked": [
        notice("notifications/subscriptions/acknowledged", {"notifications": 7})
    ],
    "a resource without a name": [notice("notifications/resources/updated", {"uri": 7})],
}


@pytest.mark.parametrize("preset", ["legacy", "modern"])
@pytest.mark.parametrize("name", FOREIGN)
def test_news_of_something_else_does_no_harm(name: str, preset: str) -> None:
    """BC-119, the variants: undeclared, foreign, or before the acknowledgement."""

    async def tries() -> None:
        data = script(
            preset, on("tools/call", *FOREIGN[name], as_usual()), capabilities={"tools": {}}
        )
        async with memory_client(data) as (client, _):
            assert await names(client) == Says(["echo", "slow"])
            assert await attempt(echo(client)) == Says("x")
            assert await names(client) == Says(["echo", "slow"])

    run_virtual(tries)


def test_a_change_is_told_over_a_stream_of_its_own() -> None:
    """BC-119, over HTTP in the stateless era: `listen`, acknowledged first, then the change."""

    async def tries() -> None:
        about = {"_meta": {f"{PREFIX}subscriptionId": "$ID"}}
        listening = on(
            "subscriptions/listen",
            notice(
                "notifications/subscriptions/acknowledged",
                {"notifications": {"toolsListChanged": True}, **about},
            ),
            wait(0.05),
            notice(CHANGED, about),
            silent(),
        )
        data = script("modern", listening, listed(ECHO), listed(ECHO, LATE))
        async with http_client(data) as (client, _), client.subscribe(tools=True) as changes:
            assert await names(client) == Says(["echo"])
            assert (await anext(aiter(changes))).kind == "tools"
            assert await names(client) == Says(["echo", "late"])

    asyncio.run(tries())


FIELDS: Final[dict[str, Message]] = {
    "name": {"name": "echo2"},
    "title": {"title": "Another"},
    "description": {"description": "Sends it somewhere else"},
    "inputSchema": {"inputSchema": {"type": "object", "required": ["text"]}},
    "outputSchema": {"outputSchema": {"type": "object"}},
    "annotations": {"annotations": {"destructiveHint": True}},
    "icons": {"icons": [{"src": "https://a.example/x.png"}]},
    "_meta": {"_meta": {"a/b": 1}},
}


@pytest.mark.parametrize("field", FIELDS)
def test_whatever_changes_in_a_definition_is_there_at_the_next_look(field: str) -> None:
    """The kind: every field, changed once, and told before the next call is made."""

    async def tries() -> None:
        told: list[str] = []
        look: Callable[[Change], object] = lambda change: told.append(change.kind)  # noqa: E731  # one line
        data = script(
            "legacy",
            listed(ECHO),
            listed({**ECHO, **FIELDS[field]}),
            on("tools/call", notice(CHANGED), as_usual()),
        )
        async with memory_client(data, on_change=look) as (client, _):
            [before] = await client.list_tools()
            await attempt(echo(client))
            assert told == ["tools"]
            [after] = await client.list_tools()
            assert after != before

    run_virtual(tries)


# -- annotations that become headers ---------------------------------------------------------------


def annotated(name: object, *, kind: str = "string", **more: Any) -> Message:
    """Write the schema of a tool one of whose arguments goes into a header."""
    region: Message = {"type": kind, "x-mcp-header": name}
    return {"type": "object", "properties": {"region": region, **more}}


GOOD: Final[Message] = {"name": "good", "inputSchema": annotated("Region")}
BAD: Final[dict[str, Message]] = {
    "number": annotated(7),
    "list": annotated(["Region"]),
    "object": annotated({}),
    "null": annotated(None),
    "empty": annotated(""),
    "space": annotated("a b"),
    "line": annotated("X\r\nEvil: 1"),
    "no_ascii": annotated("é"),
    "twice": annotated("Region", other={"type": "string", "x-mcp-header": "rEGION"}),
    "on_a_number": annotated("Region", kind="number"),
    "on_an_object": annotated("Region", kind="object"),
    "in_an_array": {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}},
    },
    "under_one_of": {"type": "object", "oneOf": [annotated("Region")]},
    "giant": annotated("A" * 100_000 + " "),
}
TOOLS: Final = [*({"name": name, "inputSchema": schema} for name, schema in BAD.items()), GOOD]


def test_a_tool_whose_header_cannot_be_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    """BC-155. MCP 2026-07-28 streamable-http §Schema Extension: that tool alone."""

    async def tries() -> None:
        data = script("modern", listed(*TOOLS, times=None), on("tools/call", text("ok")))
        async with http_client(data) as (client, peer):
            assert await names(client) == Says(["good"])
            assert await attempt(client.call_tool("good", {"region": "eu"})) == Says("ok")
            [call] = peer.about("tools/call")
            assert call.headers["mcp-param-region"] == "eu"
            assert "evil" not in call.headers
            assert b"evil" not in b"".join(map(bytes, peer.raw)).lower()

    asyncio.run(tries())
    for name in BAD:
        assert name in caplog.text
    assert all(len(line) < 100_000 for line in caplog.text.splitlines())


def test_on_a_pipe_such_an_annotation_means_nothing(tmp_path: Any) -> None:
    """BC-155: there are no headers there."""

    async def tries() -> None:
        data = script("modern", listed(*TOOLS, times=None), on("tools/call", text("ok")))
        async with pipe_client(data, tmp_path) as (client, _):
            assert await names(client) == Says([tool["name"] for tool in TOOLS])

    asyncio.run(tries())


VALUES: Final[dict[Any, str | None]] = {
    "eu": "eu",
    "é": "=?base64?w6k=?=",
    "a\r\nEvil: 1": "=?base64?YQ0KRXZpbDogMQ==?=",
    "": "",
    " x": "=?base64?IHg=?=",
    None: None,
}


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_an_argument_becomes_a_header_that_is_one(value: Any) -> None:
    """The kind: whatever an argument is, it is one header, wrapped where it has to be."""

    async def tries() -> None:
        async with http_client(
            script("modern", listed(GOOD, times=None), on("tools/call", text("ok")))
        ) as (client, peer):
            assert await names(client) == Says(["good"])
            assert await attempt(client.call_tool("good", {"region": value})) == Says("ok")
            [call] = peer.about("tools/call")
            assert call.headers.get("mcp-param-region") == VALUES[value]
            assert "evil" not in call.headers

    asyncio.run(tries())
