"""What a client does besides calling tools: resources, prompts, completions, and handlers.

In both eras, over a pipe and over HTTP as far as messages go. Sources: MCP server/resources,
server/prompts, server/utilities, client/sampling, client/roots.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest

from raxol_mcp import Client, Root, SamplingRequest
from raxol_mcp.testing.virtual_loop import run_virtual
from tests.client.misbehaviour.attempts import Error, Says, attempt, echo
from tests.client.peers.clients import memory_client
from tests.client.peers.memory_link import MemoryDialer
from tests.client.peers.script import (
    PREFIX,
    Message,
    Rule,
    error,
    on,
    question,
    reply,
    script,
    text,
    until,
)

ERAS: Final = ["legacy", "modern"]
KINDS: Final = ["memory", "http"]
Use = Callable[[Client, MemoryDialer], Awaitable[None]]
eras_and_kinds = pytest.mark.parametrize(
    ("era", "kind"), [(era, kind) for era in ERAS for kind in KINDS]
)


def said(method: str, result: Message, **more: int) -> Rule:
    """Answer a method with a result that is one in both eras."""
    return on(method, reply({"resultType": "complete", **result}), **more)


def with_peer(era: str, kind: str, *rules: Rule, use: Use, **handlers: Any) -> None:
    """Use a client of a peer that has everything."""
    capabilities: Message = {"resources": {}, "prompts": {}, "completions": {}, "tools": {}}

    async def main() -> None:
        data = script(era, *rules, capabilities=capabilities)
        async with memory_client(data, kind=kind, **handlers) as (client, dialer):
            await use(client, dialer)
            assert (client.status().status, client.status().pending) == ("ready", 0)

    run_virtual(main)


def params_of(dialer: MemoryDialer, method: str) -> list[Message]:
    """Give the params of every such request, without metadata."""
    found = [each["params"] for each in dialer.received if each.get("method") == method]
    return [{name: each[name] for name in each if name != "_meta"} for each in found]


@eras_and_kinds
def test_resources_and_templates_are_listed_on_every_page(era: str, kind: str) -> None:
    """MCP server/resources; server/utilities/pagination."""
    first: Message = {"uri": "file:///a", "name": "a", "mimeType": "text/plain", "size": 3}
    template: Message = {"uriTemplate": "file:///{path}", "name": "files", "title": "Files"}

    async def use(client: Client, dialer: MemoryDialer) -> None:
        resources = await client.list_resources()
        assert [each.uri for each in resources] == ["file:///a", "file:///b"]
        assert (resources[0].mime_type, resources[0].size) == ("text/plain", 3)
        (found,) = await client.list_resource_templates()
        assert (found.uri_template, found.title) == ("file:///{path}", "Files")
        assert params_of(dialer, "resources/list") == [{}, {"cursor": "2"}]

    with_peer(
        era,
        kind,
        said("resources/list", {"resources": [first], "nextCursor": "2"}, times=1),
        said("resources/list", {"resources": [{"uri": "file:///b", "name": "b"}, None, {}]}),
        said("resources/templates/list", {"resourceTemplates": [template]}),
        use=use,
    )


@eras_and_kinds
def test_a_resource_is_read(era: str, kind: str) -> None:
    """MCP server/resources §Reading Resources; one that is not there is the server's error."""
    parts = [{"uri": "file:///a", "text": "one"}, {"uri": "file:///a", "blob": "AA=="}]

    async def use(client: Client, dialer: MemoryDialer) -> None:
        found = await client.read_resource("file:///a")
        assert (found.contents, found.text) == (parts, "one")
        outcome = await attempt(client.read_resource("file:///b"))
        assert isinstance(outcome, Error)
        assert (outcome.name, outcome.path[0]) == ("RemoteProtocolError", -32002)
        assert params_of(dialer, "resources/read") == [{"uri": "file:///a"}, {"uri": "file:///b"}]

    with_peer(
        era,
        kind,
        said("resources/read", {"contents": parts}, times=1),
        on("resources/read", error(-32002, "not found")),
        use=use,
    )


@eras_and_kinds
def test_prompts_are_listed_and_filled_in(era: str, kind: str) -> None:
    """MCP server/prompts."""
    arguments: list[Message] = [{"name": "code", "required": True}, {"name": "style"}]
    messages: list[Message] = [{"role": "user", "content": {"type": "text", "text": "Review"}}]

    async def use(client: Client, dialer: MemoryDialer) -> None:
        (prompt,) = await client.list_prompts()
        assert prompt.name == "review"
        asked = [(each.name, each.required) for each in prompt.arguments]
        assert asked == [("code", True), ("style", False)]
        filled = await client.get_prompt("review", {"code": "x"})
        assert (filled.description, filled.messages) == ("A review", messages)
        assert params_of(dialer, "prompts/get") == [{"name": "review", "arguments": {"code": "x"}}]

    with_peer(
        era,
        kind,
        said("prompts/list", {"prompts": [{"name": "review", "arguments": arguments}]}),
        said("prompts/get", {"description": "A review", "messages": messages}),
        use=use,
    )


@eras_and_kinds
def test_an_argument_is_completed(era: str, kind: str) -> None:
    """MCP server/utilities/completion."""
    ref = {"type": "ref/prompt", "name": "review"}

    async def use(client: Client, dialer: MemoryDialer) -> None:
        found = await client.complete(ref, "style", "br", context={"code": "x"})
        assert (found.values, found.total, found.has_more) == (["brief", "bright"], 7, True)
        assert params_of(dialer, "completion/complete") == [
            {
                "ref": ref,
                "argument": {"name": "style", "value": "br"},
                "context": {"arguments": {"code": "x"}},
            }
        ]

    completion = {"values": ["brief", "bright"], "total": 7, "hasMore": True}
    with_peer(era, kind, said("completion/complete", {"completion": completion}), use=use)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("result", [{}, {"contents": None}, {"contents": {}}], ids=str)
def test_a_result_of_another_shape_fails_that_request(result: Message, kind: str) -> None:
    """ours: `invalid_response`, as for tools/call."""

    async def use(client: Client, dialer: MemoryDialer) -> None:
        unusable = Error("RequestFailed", ("invalid_response", "resources/read"))
        assert await attempt(client.read_resource("file:///a")) == unusable
        assert await attempt(echo(client)) == Says("x")

    with_peer("legacy", kind, said("resources/read", result), use=use)


TURN: Final[Message] = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "?"}}],
    "maxTokens": 5,
}
REPLY: Final[Message] = {
    "role": "assistant",
    "content": {"type": "text", "text": "!"},
    "model": "m",
}


def samples(request: SamplingRequest) -> Message:
    """Take a model's turn."""
    assert (request.server, request.max_tokens) == ("peer", 5)
    return REPLY


HANDLERS: Final[dict[str, object]] = {
    "sampling": samples,
    "roots": [Root("file:///work", "work")],
}
ANSWERS: Final[dict[str, Message]] = {
    "sampling/createMessage": REPLY,
    "roots/list": {"roots": [{"uri": "file:///work", "name": "work"}]},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_handshake_server_is_answered_by_handlers_that_were_declared(kind: str) -> None:
    """MCP 2025-11-25 client/sampling, client/roots §Capabilities."""

    async def use(client: Client, dialer: MemoryDialer) -> None:
        assert await attempt(echo(client)) == Says("x")
        answers = [each["result"] for each in dialer.received if "method" not in each]
        assert answers == [ANSWERS["sampling/createMessage"], ANSWERS["roots/list"]]
        (greeting,) = params_of(dialer, "initialize")
        assert {"sampling", "roots"} == set(greeting["capabilities"])

    asks = on(
        "tools/call",
        *(question("sampling/createMessage", TURN, id=1), until("answer")),
        *(question("roots/list", id=2), until("answer")),
        text("$TEXT"),
    )
    with_peer("legacy", kind, asks, use=use, **HANDLERS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stateless_server_is_given_what_it_asks_for_with_the_next_round(kind: str) -> None:
    """MCP 2026-07-28 basic/patterns/mrtr: both at once, and its state as it came."""
    wanted: Message = {
        "s": {"method": "sampling/createMessage", "params": TURN},
        "r": {"method": "roots/list", "params": {}},
    }

    async def use(client: Client, dialer: MemoryDialer) -> None:
        assert await attempt(echo(client)) == Says("x")
        first, second = params_of(dialer, "tools/call")
        assert "inputResponses" not in first
        assert second == {
            **first,
            "requestState": "opaque",
            "inputResponses": {
                "s": ANSWERS["sampling/createMessage"],
                "r": ANSWERS["roots/list"],
            },
        }
        for each in dialer.received:
            declared = each["params"]["_meta"][f"{PREFIX}clientCapabilities"]
            assert {"sampling", "roots"} == set(declared)

    round_one: Message = {
        "resultType": "input_required",
        "inputRequests": wanted,
        "requestState": "opaque",
    }
    with_peer("modern", kind, on("tools/call", reply(round_one), times=1), use=use, **HANDLERS)
