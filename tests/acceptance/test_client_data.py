"""What a client makes of what a server says: lists, results, errors, questions, and names.

Sources: client-2.8.0 §Usage, §Tool Namespacing; ADRs for the bounds.
"""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

from raxol_mcp import Accept, ElicitRequest, parse_tool_name, tool_name
from raxol_mcp.testing.virtual_loop import run_virtual
from tests.client.misbehaviour.attempts import Error, Says, attempt, echo, list_tools
from tests.client.peers.clients import http_client, memory_client
from tests.client.peers.script import (
    ECHO,
    Message,
    leave,
    notice,
    on,
    question,
    raw,
    reply,
    script,
    text,
    until,
)

FORM: Final[Message] = {
    "message": "Sure?",
    "requestedSchema": {"type": "object", "properties": {"yes": {"type": "boolean"}}},
}
WIRES: Final = ["memory", "http"]


def test_a_list_is_cleaned_and_never_fatal() -> None:
    """client-behaviour check 43: names, descriptions, and entries that are none.

    ours: a name that can be seen is kept, because MCP only recommends its characters.
    """

    async def tries() -> None:
        long = {**ECHO, "name": "long", "description": "é" * 4500}
        odd: list[object] = [None, "x", 7, [], {}, {"name": "no_schema"}, {**ECHO, "name": 7}]
        names = ("a\n", "\x1b[2J", "", "a\u202eb", " a", "x" * 129)
        hostile = [{**ECHO, "name": name} for name in names]
        numb = {**ECHO, "name": "numb", "description": 7}
        tools = [*odd, *hostile, long, numb, {**ECHO, "name": "x" * 128}, ECHO]
        data = script("legacy", on("tools/list", reply({"tools": tools})))
        async with memory_client(data) as (client, _):
            found = await client.list_tools()
            assert [tool.name for tool in found] == ["long", "numb", "x" * 128, "echo"]
            cut = found[0].description
            assert 8_000 < len(cut.encode()) <= 8_192
            assert cut.rstrip("é") in ("", "…", "...")
            assert found[1].description == ""
            assert client.status().tools == 4
            assert await attempt(echo(client)) == Says("x")

    run_virtual(tries)


def test_three_hundred_tools_on_three_pages_are_all_there() -> None:
    """client-behaviour check 43; MCP server/utilities/pagination: bounds, but every page."""

    async def tries() -> None:
        pages = [[{**ECHO, "name": f"t{at}"} for at in range(n, n + 100)] for n in (0, 100, 200)]
        cursors: list[Message] = [{"nextCursor": "2"}, {"nextCursor": "3"}, {}]
        rules = [
            on("tools/list", reply({"tools": page, **cursor}), times=1)
            for page, cursor in zip(pages, cursors, strict=True)
        ]
        async with memory_client(script("legacy", *rules)) as (client, dialer):
            found = await client.list_tools()
            assert [tool.name for tool in found] == [f"t{at}" for at in range(300)]
            asked = [m["params"] for m in dialer.received if m["method"] == "tools/list"]
            assert asked == [{}, {"cursor": "2"}, {"cursor": "3"}]

    run_virtual(tries)


@pytest.mark.parametrize("preset", ["legacy", "modern"])
def test_a_second_look_asks_nothing_until_there_is_a_reason(preset: str) -> None:
    """client-behaviour check 44, as ruled: dropped on list_changed, reconnect, or when too old."""

    async def tries() -> None:
        changes = notice("notifications/tools/list_changed")
        data = script(
            preset,
            on("tools/call changes", changes, text("done", resultType="complete")),
            on("tools/call dies", leave(1)),
        )
        async with memory_client(data) as (client, dialer):

            async def looks() -> int:
                assert await attempt(list_tools(client)) == Says(["echo", "slow"])
                return dialer.methods.count("tools/list")

            assert [await looks(), await looks()] == [1, 1]
            if preset == "legacy":
                assert await attempt(client.call_tool("changes")) == Says("done")
            else:
                await asyncio.sleep(61.0)  # the server said: for 60 s
            assert [await looks(), await looks()] == [2, 2]
            await attempt(client.call_tool("dies"))
            assert await attempt(list_tools(client)) == Error("ConnectFailed", ("server_exited", 1))
            await client.await_ready()
            assert [await looks(), await looks()] == [3, 3]
            await client.list_tools(refresh=True)
            assert dialer.methods.count("tools/list") == 4

    run_virtual(tries)


@pytest.mark.parametrize("kind", WIRES)
def test_a_result_is_read_by_what_was_asked(kind: str) -> None:
    """client-behaviour check 45: a list of tools in the result of a call is none."""

    async def tries() -> None:
        disguised = reply({"content": [], "tools": [{**ECHO, "name": "evil"}]})
        data = script("legacy", on("tools/call", disguised))
        async with memory_client(data, kind=kind) as (client, dialer):
            for _ in range(2):
                assert await attempt(list_tools(client)) == Says(["echo", "slow"])
                assert await attempt(echo(client)) == Says("")
            assert dialer.methods.count("tools/list") == 1

    run_virtual(tries)


@pytest.mark.parametrize("kind", WIRES)
@pytest.mark.parametrize("result", [None, "ok", 7, [], True], ids=repr)
def test_a_result_that_is_no_object_fails_its_call_alone(result: object, kind: str) -> None:
    """client-behaviour check 46: at once, and the only slot is free."""

    async def tries() -> None:
        data = script("legacy", on("tools/call", reply(result), times=1))
        spec = {"concurrency": "serialized"}
        async with memory_client(data, kind=kind, spec=spec) as (client, _):
            unusable = Error("RequestFailed", ("invalid_response", "tools/call"))
            assert await attempt(echo(client)) == unusable
            assert asyncio.get_running_loop().time() == 0.0
            assert client.status().pending == 0
            assert await attempt(echo(client)) == Says("x")

    run_virtual(tries)


@pytest.mark.parametrize(
    "line",
    ['[{"jsonrpc":"2.0","id":$ID,"result":{}}]', "[]", "7", '"text"', "null", "true", "{}"],
)
def test_what_is_no_message_is_ignored_and_counted(line: str) -> None:
    """client-behaviour check 47: a batch, and what is no object. `test_on_a_pipe`: no JSON."""

    async def tries() -> None:
        counted: list[str] = []
        data = script("legacy", on("tools/call", raw(line, "\n"), text("$TEXT")))
        async with memory_client(data, observe=lambda event, _: counted.append(event)) as (
            client,
            _,
        ):
            before = len(counted)
            assert await attempt(echo(client)) == Says("x")
            assert client.status().status == "ready"
            assert len(counted) > before

    run_virtual(tries)


@pytest.mark.parametrize("kind", WIRES)
@pytest.mark.parametrize(
    "method", ["elicitation/create", "sampling/createMessage", "roots/list", "made/up"]
)
def test_a_question_without_a_handler_is_refused_in_the_middle_of_a_call(
    method: str, kind: str
) -> None:
    """client-behaviour check 48: with its id, on a serialized session as well."""

    async def tries() -> None:
        asks = on("tools/call", question(method, FORM, id="q-1"), until("answer"), text("$TEXT"))
        spec = {"concurrency": "serialized"}
        async with memory_client(script("legacy", asks), kind=kind, spec=spec) as (client, dialer):
            assert await attempt(echo(client)) == Says("x")
            (answer,) = [each for each in dialer.received if "method" not in each]
            assert answer["id"] == "q-1"
            assert answer["error"]["code"] == -32601
            assert "result" not in answer

    run_virtual(tries)


def test_a_question_in_the_middle_of_a_response_is_answered_over_http() -> None:
    """client-behaviour check 48, as ruled: with a handler it is asked; and ping needs none."""

    async def tries() -> None:
        asks = on(
            "tools/call",
            question("ping", id=7),
            until("answer"),
            question("elicitation/create", FORM, id="q-1"),
            until("answer"),
            text("$TEXT"),
        )
        asked: list[str] = []

        def answers(request: ElicitRequest) -> Accept:
            asked.append(request.message)
            return Accept({"yes": True})

        spec = {"concurrency": "serialized"}
        async with http_client(
            script("legacy", asks, framing="sse"), spec=spec, elicitation=answers
        ) as (client, peer):
            assert await attempt(echo(client)) == Says("x")
            said = [each.message for each in peer.about("answer")]
            assert [(each["id"], each["result"]) for each in said] == [
                (7, {}),
                ("q-1", {"action": "accept", "content": {"yes": True}}),
            ]
            assert asked == ["Sure?"]

    asyncio.run(tries())


@pytest.mark.parametrize("stray", ['"1"', "null", "99999", "1.0", "true"])
def test_an_answer_to_nobody_is_nobodys(stray: str) -> None:
    """client-behaviour §8: ids compare by type and value."""

    async def tries() -> None:
        other = raw(f'{{"jsonrpc":"2.0","id":{stray},"result":{{"content":[]}}}}\n')
        async with memory_client(script("legacy", on("tools/call", other, text("$TEXT")))) as (
            client,
            _,
        ):
            assert await attempt(echo(client)) == Says("x")

    run_virtual(tries)


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("mcp__my_server__read_file", ("my_server", "read_file")),
        ("mcp__server__read_file_content", ("server", "read_file_content")),
        ("mcp__a__b__c", ("a", "b__c")),
        ("mcp__a__", ("a", "")),
        ("mcp____x", ("", "x")),
        ("mcp__nodelimiter", None),
        ("mcp__", None),
        ("some_tool", None),
        ("", None),
    ],
)
def test_a_name_is_taken_apart_at_the_first_delimiter(
    name: str, parsed: tuple[str, str] | None
) -> None:
    """client-behaviour check 49, §9."""
    assert parse_tool_name(name) == parsed


@pytest.mark.parametrize(
    ("server", "tool", "name"),
    [
        ("my_server", "read_file", "mcp__my_server__read_file"),
        ("my-cool-server", "t", "mcp__my_cool_server__t"),
        ("a.b c", "t-x.y", "mcp__a_b_c__t-x.y"),
        ("my__srv", "t", "mcp__my__srv__t"),
        ("a_", "t", "mcp__a___t"),
    ],
)
def test_a_name_is_made_of_the_server_and_the_tool(server: str, tool: str, name: str) -> None:
    """client-behaviour check 49, §9; client-2.8.0 §Tool Namespacing."""
    assert tool_name(server, tool) == name


def test_what_cannot_be_parsed_back_is_known() -> None:
    """client-behaviour check 49: two delimiters, and a server that ends with half of one."""
    assert parse_tool_name(tool_name("my__srv", "t")) == ("my", "srv__t")
    assert parse_tool_name(tool_name("a_", "t")) == ("a", "_t")


@pytest.mark.parametrize("kind", WIRES)
def test_arguments_that_are_no_json_fail_alone(kind: str) -> None:
    """client-behaviour §14: `encode_failed`, on every transport, and nothing is sent."""

    async def tries() -> None:
        async with memory_client(script("legacy"), kind=kind) as (client, dialer):
            outcome = await attempt(client.call_tool("echo", {"text": object()}))
            assert outcome == Error("RequestFailed", ("encode_failed",))
            assert client.status().pending == 0
            assert await attempt(echo(client)) == Says("x")
            assert dialer.methods.count("tools/call") == 1

    run_virtual(tries)
