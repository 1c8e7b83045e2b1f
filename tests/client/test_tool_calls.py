"""client/tool_calls.py: what is copied into headers, what is sent again, what a result must be."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from raxol_mcp.client.app import Client
from raxol_mcp.client.results import CallResult, Progress
from raxol_mcp.errors import RemoteProtocolError, RequestFailed, TimedOut, Unpaid
from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.transports.link import Dialect, LinkPort
from raxol_mcp.wire.headers import Mirror
from raxol_mcp.wire.jsonrpc import Outgoing, Request
from tests.client.peers.clients import memory_client
from tests.client.peers.memory_link import MemoryDialer, MemoryLink
from tests.client.peers.script import (
    Message,
    error,
    notice,
    on,
    reply,
    script,
    silent,
    text,
    wait,
)

Test = Callable[[Client, "NotingDialer"], Awaitable[None]]


def tool(header: str | None, name: str = "move", **more: Any) -> Message:
    """Write a tool whose argument `to` is copied into a header."""
    to: Message = (
        {"type": "string"} if header is None else {"type": "string", "x-mcp-header": header}
    )
    return {"name": name, "inputSchema": {"type": "object", "properties": {"to": to}}, **more}


def tools(*found: Message, ttl: int = 60_000) -> Any:
    return reply(
        {"resultType": "complete", "ttlMs": ttl, "cacheScope": "private", "tools": list(found)}
    )


class NotingDialer(MemoryDialer):
    """Notes which headers each call of a tool was sent with."""

    def __init__(self, data: Message, *, kind: str) -> None:
        super().__init__(data, kind=kind)
        self.headers: list[list[str]] = []

    def link(self, port: LinkPort, dialect: Dialect) -> MemoryLink:
        made = NotingLink(self, port, dialect, len(self.links) + 1)
        self.links.append(made)
        return made

    @property
    def calls(self) -> list[Message]:
        return [each["params"] for each in self.received if each.get("method") == "tools/call"]


class NotingLink(MemoryLink):
    """The link of that."""

    def send(self, message: Outgoing, key: int, *, mirrors: Sequence[Mirror] = ()) -> None:
        if isinstance(message, Request) and message.method == "tools/call":
            assert isinstance(self._dialer, NotingDialer)
            self._dialer.headers.append(
                [mirror.header.removeprefix("Mcp-Param-") for mirror in mirrors]
            )
        super().send(message, key, mirrors=mirrors)


def with_client(test: Test, peer: Message, *, kind: str = "http", **options: Any) -> None:
    """Run a test with a client that is ready."""

    async def main() -> None:
        async with memory_client(NotingDialer(peer, kind=kind), **options) as (client, dialer):
            assert isinstance(dialer, NotingDialer)
            await test(client, dialer)

    run_virtual(main)


# -- headers (MCP 2026-07-28 basic/transports/streamable-http) ------------------------------------


@pytest.mark.parametrize(
    ("kind", "era", "headers"),
    [
        ("http", "modern", [[], ["To"]]),
        ("http", "legacy", [[], []]),
        ("memory", "modern", [[], []]),
        ("memory", "legacy", [[], []]),
    ],
)
def test_arguments_go_into_headers_over_stateless_http_alone(
    kind: str, era: str, headers: list[list[str]]
) -> None:
    """And only as the server has said it wants them: before it is asked, nobody knows."""

    async def test(client: Client, dialer: NotingDialer) -> None:
        for _ in range(2):
            assert (await client.call_tool("move", {"to": "x"})).text == "ok"
            await client.list_tools()
        assert dialer.headers == headers
        assert [call["arguments"] for call in dialer.calls] == [{"to": "x"}] * 2

    with_client(test, script(era, tools=[tool("To")]), kind=kind)


REFUSED = on("tools/call", error(-32020, "headers"), times=1)


def test_a_call_that_was_refused_for_its_headers_is_made_again_with_new_ones() -> None:
    peer = script("modern", REFUSED, on("tools/list", tools(tool("Old")), times=1))
    peer["tools"] = [tool("New")]

    async def test(client: Client, dialer: NotingDialer) -> None:
        await client.list_tools()
        told: list[Progress] = []
        result = await client.call_tool(
            "move", {"to": "x"}, meta={"a.b/c": 1}, progress=told.append
        )
        assert result.text == "ok"
        assert dialer.headers == [["Old"], ["New"]]
        assert dialer.methods.count("tools/list") == 2
        first, second = dialer.calls
        tokens = [call["_meta"].pop("progressToken") for call in (first, second)]
        assert first == second
        assert first["_meta"]["a.b/c"] == 1
        assert tokens[0] != tokens[1]

    with_client(test, peer)


def test_progress_of_the_second_call_is_told_too() -> None:
    tells = notice("notifications/progress", {"progressToken": "$TOKEN", "progress": 1})
    peer = script("modern", REFUSED, on("tools/call", tells, text("ok", resultType="complete")))

    async def test(client: Client, dialer: NotingDialer) -> None:
        told: list[Progress] = []
        await client.call_tool("echo", progress=told.append)
        assert told == [Progress(1.0, None, None)]

    with_client(test, peer)


def test_a_tool_that_is_gone_from_the_new_list_has_no_headers() -> None:
    peer = script("modern", REFUSED, on("tools/list", tools(tool("Old")), times=1), tools=[])

    async def test(client: Client, dialer: NotingDialer) -> None:
        await client.list_tools()
        assert (await client.call_tool("move", {"to": "x"})).text == "ok"
        assert dialer.headers == [["Old"], []]

    with_client(test, peer)


@pytest.mark.parametrize(
    ("kind", "era", "code", "calls"),
    [
        ("http", "modern", -32020, 2),
        ("http", "modern", -32602, 1),
        ("http", "legacy", -32020, 1),
        ("memory", "modern", -32020, 1),
    ],
)
def test_no_call_is_sent_twice_for_another_reason_and_none_three_times(
    kind: str, era: str, code: int, calls: int
) -> None:
    async def test(client: Client, dialer: NotingDialer) -> None:
        with pytest.raises(RemoteProtocolError, match="no") as refused:
            await client.call_tool("move", {"to": "x"})
        assert refused.value.code == code
        assert len(dialer.calls) == calls
        assert dialer.methods.count("tools/list") == calls - 1

    with_client(test, script(era, on("tools/call", error(code))), kind=kind)


def test_what_was_paid_for_a_call_that_was_refused_unread_still_pays() -> None:
    """ours: the server has run nothing; and what was paid is paid once"""
    peer = script("modern", REFUSED)

    async def test(client: Client, dialer: NotingDialer) -> None:
        handle = client.reserve()
        assert (await client.call_tool("echo", {"text": "x"}, reservation=handle)).text == "x"
        assert len(dialer.calls) == 2
        with pytest.raises(Unpaid):
            await client.call_tool("echo", reservation=handle)
        with pytest.raises(Unpaid):
            await client.call_tool("echo")
        assert len(dialer.calls) == 2

    with_client(test, peer, spec={"prices": {"echo": 1}})


@pytest.mark.parametrize(
    ("options", "seconds"),
    [
        ({}, 30.0),
        ({"timeout": 9.0}, 9.0),
        ({"timeout": 5.0, "max_timeout": 12.0}, 12.0),
        ({"timeout": 50.0, "max_timeout": 12.0}, 12.0),
    ],
)
def test_both_calls_and_the_list_have_the_time_of_one(
    options: dict[str, Any], seconds: float
) -> None:
    peer = script(
        "modern",
        on("tools/call", wait(2.0), error(-32020), times=1),
        on("tools/list", wait(3.0), tools()),
        on("tools/call", silent()),
    )

    async def test(client: Client, dialer: NotingDialer) -> None:
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        with pytest.raises(TimedOut, match="tools/call"):
            await client.call_tool("move", **options)
        assert loop.time() - began_at == seconds
        assert len(dialer.calls) == 2

    with_client(test, peer)


def test_a_list_that_does_not_come_ends_the_call_in_time() -> None:
    peer = script("modern", REFUSED, on("tools/list", silent()))

    async def test(client: Client, dialer: NotingDialer) -> None:
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        with pytest.raises(TimedOut, match="tools/list: no answer within 9 s"):
            await client.call_tool("move", timeout=9.0)
        assert loop.time() - began_at == 9.0
        assert len(dialer.calls) == 1
        assert client.status().pending == 0

    with_client(test, peer)


# -- what is given --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "seconds"),
    [
        ({"timeout": 4.0}, 4.0),
        ({"timeout": 4.0, "max_timeout": 2.0}, 2.0),
        ({"timeout": 4.0, "max_timeout": 6.0}, 4.0),
        ({"max_timeout": 6.0}, 6.0),
    ],
)
def test_a_call_has_the_shorter_of_its_two_times(options: dict[str, Any], seconds: float) -> None:
    async def test(client: Client, dialer: NotingDialer) -> None:
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        with pytest.raises(TimedOut):
            await client.call_tool("slow", **options)
        assert loop.time() - began_at == seconds

    with_client(test, script("legacy"))


@pytest.mark.parametrize("kind", ["http", "memory"])
@pytest.mark.parametrize("part", ["arguments", "meta"])
def test_what_cannot_be_sent_is_an_error_before_anything_is(kind: str, part: str) -> None:
    given: dict[str, Any] = {part: {"a": object()}}

    async def test(client: Client, dialer: NotingDialer) -> None:
        with pytest.raises(RequestFailed) as failed:
            await client.call_tool("move", **given)
        assert failed.value.tag == "encode_failed"
        assert dialer.calls == []

    with_client(test, script("modern"), kind=kind)


@pytest.mark.parametrize("kind", ["http", "memory"])
def test_whoever_changes_arguments_later_changes_no_call(kind: str) -> None:
    async def test(client: Client, dialer: NotingDialer) -> None:
        arguments: dict[str, object] = {"text": "before"}
        call = asyncio.create_task(client.call_tool("echo", arguments))
        await asyncio.sleep(0)
        arguments["text"] = "after"
        assert (await call).text == "before"

    with_client(test, script("modern"), kind=kind)


# -- what comes -----------------------------------------------------------------------------------


OUTPUT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def answers(result: Message) -> Message:
    """Make a peer whose tool has an output schema and answers so."""
    return script(
        "legacy", on("tools/call", reply(result)), tools=[tool(None, outputSchema=OUTPUT)]
    )


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        ({"structuredContent": {"n": 1}}, None),
        ({"structuredContent": {"n": "SECRET"}}, "integer"),
        ({"structuredContent": {}}, "n"),
        ({}, "no structured content"),
        ({"isError": True}, None),
    ],
)
def test_a_result_is_judged_by_the_schema_its_tool_was_listed_with(
    result: Message, problem: str | None
) -> None:
    """MCP server/tools §Output Schema; the tool has done its work all the same"""

    async def test(client: Client, dialer: NotingDialer) -> None:
        before = await client.call_tool("move")
        assert isinstance(before, CallResult), "it was not listed yet: nobody knows the schema"
        await client.list_tools()
        if problem is None:
            assert await client.call_tool("move") == before
            return
        with pytest.raises(RequestFailed, match=problem) as failed:
            await client.call_tool("move")
        assert failed.value.reason.path == ("invalid_response", "tools/call")
        assert failed.value.outcome_unknown
        assert "SECRET" not in str(failed.value)

    with_client(test, answers({"content": [], **result}))


def test_a_result_that_is_none_is_an_error_of_the_call_alone() -> None:
    peer = script("legacy", on("tools/call", reply({"content": "none"}), times=1))

    async def test(client: Client, dialer: NotingDialer) -> None:
        with pytest.raises(RequestFailed) as failed:
            await client.call_tool("echo")
        assert failed.value.tag == "invalid_response"
        assert failed.value.outcome_unknown
        assert (await client.call_tool("echo", {"text": "on"})).text == "on"

    with_client(test, peer)
