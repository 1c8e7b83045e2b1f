"""Subscriptions at the edges of a client's life, and those that begin with a failure."""

from __future__ import annotations

import asyncio

import pytest

from raxol_mcp.client.app import Client
from raxol_mcp.client.opening import Tables
from raxol_mcp.client.results import Change
from raxol_mcp.client.subscriptions import Subscription
from raxol_mcp.errors import NotReady
from raxol_mcp.testing.virtual_loop import run_virtual
from tests.client.peers.clients import memory_client
from tests.client.peers.memory_link import MemoryDialer
from tests.client.peers.script import on, script, silent


def test_a_client_that_was_not_started_or_was_stopped_has_no_subscriptions() -> None:
    """ours: whoever iterates waits for something that cannot come"""

    async def main() -> None:
        dialer = MemoryDialer(script("legacy"))
        client = Client({"name": "peer", "command": "scripted"}, dialer=dialer, tables=Tables())
        with pytest.raises(NotReady, match="new"):
            client.subscribe(tools=True)
        await client.start()
        await client.await_ready()
        made = client.subscribe(tools=True)
        await client.stop()
        with pytest.raises(NotReady, match="stopped"):
            client.subscribe(tools=True)
        async with made as changes:
            assert [change async for change in changes] == []

    run_virtual(main)


def test_what_changed_before_a_listen_was_in_force_is_told_with_it() -> None:
    """ours: a subscription that could be entered misses nothing"""
    late = script("modern", on("subscriptions/listen", silent(), times=1))

    async def main() -> None:
        async with (
            memory_client(late) as (client, _),
            client.subscribe(tools=True) as changes,
        ):
            assert await asyncio.wait_for(anext(changes), 300.0) == Change("tools")

    run_virtual(main)


def test_one_whose_listen_is_replaced_has_begun_with_the_next() -> None:
    """MCP 2026-07-28 basic/patterns/subscriptions: the server has acknowledged only that"""
    slow = script("modern", on("subscriptions/listen", silent(), times=1))

    async def main() -> None:
        async with memory_client(slow) as (client, dialer):
            entered: list[int] = []
            both = asyncio.Event()

            async def subscribed(subscription: Subscription) -> None:
                async with subscription:
                    entered.append(dialer.methods.count("subscriptions/listen"))
                    if len(entered) == 2:
                        both.set()
                    await both.wait()

            first = asyncio.create_task(subscribed(client.subscribe(tools=True)))
            for _ in range(20):
                await asyncio.sleep(0)
            assert dialer.methods.count("subscriptions/listen") == 1
            await subscribed(client.subscribe(prompts=True))
            await first
            assert entered == [2, 2]

    run_virtual(main)
