"""K21: nothing a server says becomes an address that is asked, a program or a line of a shell.

An endpoint on another host was used, a page to visit was handed to a shell, and a command line
was split, expanded or run before anybody had agreed to it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import pytest

from raxol_mcp.client.answers import Accept, ElicitRequest
from raxol_mcp.client.app import Client
from raxol_mcp.errors import ConfigurationError, InvalidSpec, NotReady
from raxol_mcp.testing.virtual_loop import run_virtual
from tests.client.misbehaviour.attempts import Error, Says, attempt, echo
from tests.client.peers.clients import http_client, memory_client, pipe_client
from tests.client.peers.http_peer import HttpPeer
from tests.client.peers.process import Processes
from tests.client.peers.script import Message, as_usual, notice, on, say, script, silent, sse, until

ELSEWHERE: Final = [
    "http://{canary}/messages?sessionId=1",
    "//{canary}/m",
    "http://user@{canary}",
    "\\\\{canary}",
    "/\\{canary}/m",
    "https://127.0.0.1:{port}/messages",
    "http://127.0.0.1:{port}@{canary}/messages",
    "http:{canary}/m",
    "javascript:1",
    "file:///etc/passwd",
    "",
    " ",
    "http://[",
    "http://127.0.0.1:99999/m",
]


@pytest.mark.parametrize("endpoint", ELSEWHERE)
def test_an_endpoint_elsewhere_is_never_asked(endpoint: str) -> None:
    """BC-109. MCP 2024-11-05 basic/transports: the same scheme, host and port, or no connection."""

    async def tries() -> None:
        async with HttpPeer(script("modern")) as canary:
            place = endpoint.format(canary=f"127.0.0.1:{canary.port}", port="{port}")
            leads = on("GET", sse(f"event: endpoint\ndata: {place}\n\n"), silent())
            data = script("two_endpoints", leads)
            async with http_client(data, spec={"fail_fast": True}, ready=False) as (client, peer):
                # What stands for the port of the peer is known only now.
                for piece in leads["do"][0]["pieces"]:
                    piece[0] = piece[0].replace("{port}", str(peer.port))
                outcome = await attempt(client.await_ready())
                assert isinstance(outcome, Error)
                assert outcome.name == "ConnectFailed"
                assert client.status().retry_in is not None
            assert canary.raw == []

    asyncio.run(tries())


@pytest.mark.parametrize(
    "endpoint",
    ["/messages?sessionId=1", "messages?x", "./messages", "../messages", "{url}/messages"],
)
def test_an_endpoint_of_the_same_server_is_used(endpoint: str) -> None:
    """BC-109: relative ones are resolved against the address of the stream."""

    async def tries() -> None:
        leads = on("GET", sse(f"event: endpoint\ndata: {endpoint}\n\n"))
        async with http_client(script("two_endpoints", leads), ready=False) as (client, peer):
            for piece in leads["do"][0]["pieces"]:
                piece[0] = piece[0].replace("{url}", f"http://127.0.0.1:{peer.port}")
            await client.await_ready()
            assert await attempt(echo(client)) == Says("x")
            assert {
                each.target.partition("?")[0]
                for each in peer.received
                if each.event == "tools/call"
            } == {"/messages"}

    asyncio.run(tries())


def test_a_later_endpoint_changes_nothing() -> None:
    """BC-109: one that comes after the first is ignored."""

    async def tries() -> None:
        async with HttpPeer(script("modern")) as canary:
            first = "event: endpoint\ndata: /messages\n\n"
            later = f"event: endpoint\ndata: http://127.0.0.1:{canary.port}/messages\n\n"
            data = script("two_endpoints", on("GET", sse(first), sse(later)))
            async with http_client(data) as (client, _):
                assert await attempt(echo(client)) == Says("x")
            assert canary.raw == []

    asyncio.run(tries())


@pytest.mark.slow
def test_an_endpoint_that_never_comes_is_not_waited_for() -> None:
    """BC-109: no endpoint in its time is a failure to connect."""

    async def tries() -> None:
        data = script("two_endpoints", on("GET", sse(": hello\n\n"), silent()))
        async with http_client(data, spec={"fail_fast": True}, ready=False) as (client, _):
            outcome = await attempt(client.await_ready())
            assert isinstance(outcome, Error)
            assert outcome.name == "ConnectFailed"

    asyncio.run(tries())


PAGES: Final = {
    "http://a:$(touch /tmp/pwn)/x": False,
    "http://a/`id`": False,
    'http://a/";calc;"': False,
    "http://a/ & calc": False,
    "file:///etc/passwd": False,
    "javascript:alert(1)": False,
    "data:text/html,x": False,
    "vscode://x": False,
    "smb://h/s": False,
    "--help": False,
    "http://a.example/%0d%0aSet-Cookie:x": False,  # plain http, and not to this machine
    "https://a.example/\r\nx": False,
    "https://a.example\x00/": False,
    "https://user:pw@a.example/": False,
    "https://a.example/" + "A" * 1_000_000: False,
    "https://a\u0430.example/": False,
    7: False,
    "https://a.example/page?x=1#y": True,
    "http://localhost:8080/page": True,
    "http://127.0.0.1/page": True,
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page)[:40])
@pytest.mark.parametrize("preset", ["legacy", "modern"])
def test_only_a_web_address_reaches_whoever_opens_it(preset: str, page: object) -> None:
    """BC-121, its part about elicitation. MCP client/elicitation §Security: https, and whole."""
    shown: list[str | None] = []

    def agrees(request: ElicitRequest) -> Accept:
        shown.append(request.url)
        return Accept()

    async def tries() -> None:
        asked: Message = {"mode": "url", "message": "visit", "url": page, "elicitationId": "e"}
        if preset == "legacy":
            question = say(
                {"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": asked}
            )
            rules = [on("tools/call", question, until("answer"), as_usual())]
        else:
            wanted = {"k": {"method": "elicitation/create", "params": asked}}
            first = say(
                {
                    "jsonrpc": "2.0",
                    "id": "$ID",
                    "result": {"resultType": "input_required", "inputRequests": wanted},
                }
            )
            rules = [on("tools/call", first, times=1)]
        async with memory_client(script(preset, *rules), elicitation=agrees) as (client, dialer):
            await attempt(echo(client), bound=1000)
            assert shown == ([page] if PAGES[page] else [])
            assert ("accept" in str(dialer.received[2:])) is PAGES[page]

    run_virtual(tries)


ARGUMENTS: Final = [
    "; touch pwn",
    "$(touch pwn)",
    "`touch pwn`",
    "%PATH%",
    "$HOME",
    "a b",
    "",
    '--x="q"',
    "*",
    "~",
    "a\nb",
    "é\u202e",
    "\\",
    "'",
    "| cat",
    "&& id",
    "<",
    "--",
    "-c",
]


def test_arguments_are_passed_on_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BC-151: byte for byte, and no shell sees them."""
    working = tmp_path / "working"
    working.mkdir()
    monkeypatch.chdir(working)
    folder = tmp_path / "peer"
    folder.mkdir()

    async def tries() -> None:
        async with pipe_client(script("legacy"), folder, arguments=ARGUMENTS) as (
            client,
            processes,
        ):
            assert await attempt(echo(client)) == Says("x")
            assert processes.lives[0].argv == ARGUMENTS

    asyncio.run(tries())
    assert list(working.iterdir()) == []


@pytest.mark.parametrize(
    "spec",
    [
        {
            "command": "x",
            "url": "https://a.example/?key=hunter2",
            "headers": {"Authorization": "hunter2"},
        },
        {"env": {"KEY": "hunter2"}},
        {"command": "", "args": ["hunter2"]},
        {"command": "x\n", "args": ["hunter2"]},
        {"command": "x\x00y", "args": ["hunter2"]},
        {"command": "x", "args": ["hunter2\x00"]},
        {"command": ["x", "hunter2"]},
        {"command": "x", "args": "hunter2"},
    ],
    ids=str,
)
def test_a_spec_that_cannot_be_meant_starts_nothing_and_tells_no_secret(spec: Message) -> None:
    """BC-151: both, neither, and lines that are none."""
    with pytest.raises(InvalidSpec) as refused:
        Client({"name": "peer", **spec})
    assert "hunter2" not in str(refused.value)
    assert "hunter2" not in repr(refused.value)


def test_nothing_is_started_before_it_is_told_to(tmp_path: Path) -> None:
    """BC-151: neither by making a client, nor by looking at one, nor by asking how it is."""
    processes = Processes(script("legacy"), tmp_path)
    client = Client({"name": "peer", "command": processes.command, "args": processes.args})
    assert processes.args[-1] not in repr(client)
    assert client.status().status == "starting"
    assert processes.lives == []

    async def tries() -> None:
        with pytest.raises(NotReady):
            await client.list_tools()
        await client.stop()
        with pytest.raises(ConfigurationError):
            await client.start()

    asyncio.run(tries())
    assert processes.lives == []


URL_FIELDS: Final = ("icons", "websiteUrl", "$ref", "$schema", "$id", "uri", "url", "href")


def test_no_address_in_a_definition_is_ever_asked() -> None:
    """The kind: a canary in every field that looks like one, in all that a server says."""

    async def tries() -> None:
        async with HttpPeer(script("modern")) as canary:
            place = f"http://127.0.0.1:{canary.port}/canary"
            trap: Message = {name: place for name in URL_FIELDS if name != "icons"}
            trap["icons"] = [{"src": place}]
            tool = {
                "name": "echo",
                "inputSchema": {"type": "object", **trap},
                "outputSchema": {"type": "object", "properties": {"url": {"format": place}}},
                **trap,
            }
            about = {"name": "x", "version": "0", **trap}
            greeting = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}, **trap},
                "serverInfo": about,
            }
            answer = {
                "content": [{"type": "resource_link", "name": "x", **trap}],
                "structuredContent": trap,
                "_meta": trap,
            }
            data = script(
                "legacy",
                on("initialize", say({"jsonrpc": "2.0", "id": "$ID", "result": greeting})),
                on(
                    "tools/list",
                    say({"jsonrpc": "2.0", "id": "$ID", "result": {"tools": [tool], **trap}}),
                ),
                on(
                    "tools/call",
                    notice("notifications/message", {"level": "info", "data": trap}),
                    say({"jsonrpc": "2.0", "id": "$ID", "result": answer}),
                ),
            )
            async with http_client(data) as (client, _):
                assert [each.name for each in await client.list_tools()] == ["echo"]
                await client.call_tool("echo", {"text": "x"})
            assert canary.raw == []

    asyncio.run(tries())
