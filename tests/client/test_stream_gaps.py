"""When a stream of notifications was interrupted: what may have been missed counts as changed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from raxol_mcp.client.app import Client
from raxol_mcp.client.opening import Tables
from raxol_mcp.client.results import Change
from raxol_mcp.testing.virtual_loop import run_virtual
from tests.client.peers.clients import memory_client
from tests.client.peers.memory_link import MemoryDialer
from tests.client.peers.script import on, reply, script
from tests.transports.http_client.peers import Peer, Seen, Wire, result_line

TOOLS: dict[str, Any] = {"tools": [{"name": "a", "inputSchema": {"type": "object"}}]}
SERVER: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "serverInfo": {"name": "s", "version": "1"},
    "capabilities": {"tools": {"listChanged": True}, "resources": {"subscribe": True}},
}
PEER = script(
    "legacy",
    on("initialize", reply(SERVER)),
    on("tools/list", reply(TOOLS)),
    on("resources/subscribe", reply({})),
)


def with_client(test: Callable[[Client, MemoryDialer, list[Change]], Awaitable[None]]) -> None:
    """Run a test with a client that writes down what it is told has changed."""
    told: list[Change] = []

    async def main() -> None:
        async with memory_client(PEER, on_change=told.append) as (client, dialer):
            await test(client, dialer, told)

    run_virtual(main)


def test_a_kept_list_is_asked_for_again_after_a_gap() -> None:
    """ours: a list is kept while it is known to be good"""

    async def test(client: Client, dialer: MemoryDialer, told: list[Change]) -> None:
        await client.list_tools()
        await client.list_tools()
        assert dialer.methods.count("tools/list") == 1
        dialer.links[0]._port.missed()
        assert told == [Change("tools")]
        assert client.status().tools == 1, "the old list still says what a tool looked like"
        await client.list_tools()
        assert dialer.methods.count("tools/list") == 2

    with_client(test)


def test_subscribers_are_told_of_all_they_may_have_missed() -> None:
    """ours: once for one look, as of every change"""

    async def test(client: Client, dialer: MemoryDialer, told: list[Change]) -> None:
        async with client.subscribe(tools=True, prompts=True, uris=["a:b"]) as changes:
            dialer.links[0]._port.missed()
            dialer.links[0]._port.missed()
            seen = {await anext(changes) for _ in range(3)}
            wanted = {Change("tools"), Change("prompts"), Change("resource", "a:b")}
            assert seen == wanted
            assert sorted(told, key=str) == sorted([*wanted, *wanted], key=str)
            dialer.links[0]._port.missed()
            assert await anext(changes) in wanted

    with_client(test)


def test_a_link_that_is_over_tells_of_no_gap() -> None:
    """transports/link.py: nothing is reported after `close`; the next session knows anyway"""

    async def test(client: Client, dialer: MemoryDialer, told: list[Change]) -> None:
        await client.stop()
        dialer.links[0]._port.missed()
        assert told == []

    with_client(test)


def test_over_http_the_list_is_new_when_its_stream_is_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """MCP 2025-11-25 basic/transports §Listening: what was sent meanwhile does not come again"""
    monkeypatch.setattr("raxol_mcp.transports.http_client.resumption.SHORTEST_WAIT", 0.001)

    async def main() -> None:
        changed = asyncio.Event()
        broken = asyncio.Event()
        names = ["old"]
        streams: list[Seen] = []

        async def serve(seen: Seen, wire: Wire) -> None:
            if seen.rpc == "initialize":
                await wire.json(result_line(seen.id, SERVER), headers={"Mcp-Session-Id": "s"})
            elif seen.rpc == "tools/list":
                tools = [{"name": names[0], "inputSchema": {"type": "object"}}]
                await wire.json(result_line(seen.id, {"tools": tools}))
            elif seen.method == "GET":
                streams.append(seen)
                await wire.events(b"retry: 1\n\n")
                if len(streams) == 1:
                    await broken.wait()
                    names[0] = "new"
                else:
                    await wire.gone()
                wire.end()
            elif seen.rpc.startswith("server/"):
                await wire.reply(400)
            else:
                await wire.reply(202)

        async with Peer(serve) as peer:
            spec = {"name": "s", "url": peer.url, "allow_private": True}
            changes = Client(spec, tables=Tables(), on_change=lambda _: changed.set())
            async with changes as client:
                await peer.until(lambda: len(streams) == 1)
                assert [tool.name for tool in await client.list_tools()] == ["old"]
                broken.set()
                async with asyncio.timeout(10.0):
                    await changed.wait()
                assert [tool.name for tool in await client.list_tools()] == ["new"]

    asyncio.run(main())


@pytest.mark.parametrize("announces", [True, False])
def test_over_http_a_list_is_not_kept_while_its_changes_cannot_be_heard(announces: bool) -> None:
    """MCP 2025-11-25 basic/transports §Listening: a server need not have a stream"""

    async def main() -> None:
        tools = [{"name": "a", "inputSchema": {"type": "object"}}]
        capabilities = {"tools": {"listChanged": announces}}

        async def serve(seen: Seen, wire: Wire) -> None:
            if seen.rpc == "initialize":
                await wire.json(result_line(seen.id, SERVER | {"capabilities": capabilities}))
            elif seen.rpc == "tools/list":
                await wire.json(result_line(seen.id, {"tools": tools}))
            else:
                await wire.reply(202 if seen.rpc.startswith("notifications/") else 405)

        async with Peer(serve) as peer:
            spec = {"name": "s", "url": peer.url, "allow_private": True}
            async with Client(spec, tables=Tables()) as client:
                for _ in range(3):
                    assert [tool.name for tool in await client.list_tools()] == ["a"]
                assert client.status().tools == 1
            assert peer.methods().count("tools/list") == (3 if announces else 1)

    asyncio.run(main())


def test_a_list_is_kept_again_when_its_changes_can_be_heard_again() -> None:
    """ours: and one that was kept before is as good as it was, unless something was missed"""

    async def test(client: Client, dialer: MemoryDialer, told: list[Change]) -> None:
        async def asked() -> int:
            await client.list_tools()
            return dialer.methods.count("tools/list")

        port = dialer.links[0]._port
        assert [await asked(), await asked()] == [1, 1]
        port.hears(False)
        assert [await asked(), await asked()] == [2, 3]
        port.hears(True)
        assert [await asked(), await asked()] == [4, 4]
        port.hears(False)
        port.hears(True)
        assert await asked() == 4
        assert told == []

    with_client(test)
