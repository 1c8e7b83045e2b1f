"""K20: what a client opens ends with its reason: calls, streams, subscriptions, connections."""

from __future__ import annotations

import asyncio
import os
from random import Random

import pytest

from raxol_mcp.client.app import Client
from raxol_mcp.errors import RaxolError
from raxol_mcp.testing.virtual_loop import run_virtual
from tests.client.misbehaviour.attempts import Says, attempt, echo
from tests.client.peers.clients import http_client, memory_client
from tests.client.peers.script import drop, notice, on, script, silent, sse

PRESETS = pytest.mark.parametrize("preset", ["legacy", "modern"])


async def _begins(client: Client, kind: str) -> None:
    """Do something of a kind that does not end by itself."""
    if kind == "call":
        await client.call_tool("slow")
    elif kind == "list":
        await client.list_tools(refresh=True)
    elif kind == "read":
        await client.read_resource("mem://slow")
    elif kind == "subscription":
        async with client.subscribe(tools=True) as changes:
            async for _ in changes:
                pass
    else:
        await client.await_ready(None)


@PRESETS
@pytest.mark.parametrize("kind", ["call", "list", "read", "subscription", "wait"])
def test_five_hundred_that_are_left_leave_nothing(kind: str, preset: str) -> None:
    """The kind: begun, and cancelled at any moment."""
    random = Random(20)

    async def tries() -> None:
        data = script(preset, on("tools/list", silent()), on("resources/read", silent()))
        async with memory_client(data, kind="http") as (client, dialer):
            await asyncio.sleep(1.0)
            quiet = len(asyncio.all_tasks()), dialer.busy
            for _ in range(500):
                task = asyncio.ensure_future(_begins(client, kind))
                for _ in range(random.randrange(6)):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                for _ in range(6):
                    await asyncio.sleep(0)
            assert (client.status().pending, client.status().queued) == (0, 0)
            await asyncio.sleep(1.0)
            assert (len(asyncio.all_tasks()), dialer.busy) == quiet
            assert await attempt(echo(client)) == Says("x")

    run_virtual(tries)


@PRESETS
def test_five_hundred_clients_come_and_go(preset: str) -> None:
    """The kind: each is stopped at another moment of its beginning."""

    async def tries() -> None:
        for turns in range(500):
            async with memory_client(script(preset), ready=False) as (client, _):
                for _ in range(turns % 40):
                    await asyncio.sleep(0)
                assert client.status().status in ("starting", "initializing", "ready")

    run_virtual(tries)


@PRESETS
def test_a_hundred_calls_left_on_sockets_leave_no_socket(preset: str) -> None:
    """The kind, over real sockets: closing is how a call of the stateless era is cancelled."""

    async def tries() -> None:
        async with http_client(script(preset)) as (client, peer):
            assert await attempt(echo(client)) == Says("x")
            open_before = len(os.listdir("/proc/self/fd"))
            for _ in range(100):
                sent = len(peer.received)
                task = asyncio.ensure_future(client.call_tool("slow"))
                await peer.until(lambda: len(peer.received) > sent)  # noqa: B023  # it is awaited
                task.cancel()
                await asyncio.wait([task])
            await peer.until(lambda: peer.running == 0)
            assert await attempt(echo(client)) == Says("x")
            assert len(os.listdir("/proc/self/fd")) <= open_before + 2

    asyncio.run(tries())


def test_a_stream_of_changes_is_opened_again_when_it_is_lost() -> None:
    """MCP 2025-11-25 §Listening for Messages: what was missed counts as changed."""

    async def tries() -> None:
        changed = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
        data = script(
            "legacy",
            on("GET", sse(f"retry: 1\ndata: {changed}\n\n"), drop("close"), times=3),
            on("GET", silent()),
        )
        async with http_client(data) as (client, peer):
            await peer.until(lambda: len(peer.about("GET")) >= 2)
            assert await attempt(echo(client)) == Says("x")

    asyncio.run(tries())


def test_a_subscription_of_the_stateless_era_is_made_again() -> None:
    """MCP 2026-07-28 basic/patterns/subscriptions: the client sends `listen` again."""

    async def tries() -> None:
        acknowledged = notice(
            "notifications/subscriptions/acknowledged",
            {
                "notifications": {"toolsListChanged": True},
                "_meta": {"io.modelcontextprotocol/subscriptionId": "$ID"},
            },
        )
        data = script("modern", on("subscriptions/listen", acknowledged, times=1))
        async with memory_client(data, kind="http") as (client, dialer):
            async with client.subscribe(tools=True) as changes:
                # The first stream ends at once; what may have been missed is told as changed.
                change = await anext(aiter(changes))
                assert change.kind == "tools"
                assert dialer.methods.count("subscriptions/listen") == 2
            with pytest.raises(StopAsyncIteration):
                await anext(aiter(changes))
            assert await attempt(echo(client)) == Says("x")
            with pytest.raises(RaxolError):
                client.subscribe()

    run_virtual(tries)
