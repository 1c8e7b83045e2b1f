"""Timeouts that cannot be meant, and those that contradict each other."""

from __future__ import annotations

import asyncio

import pytest

from raxol_mcp.errors import ConfigurationError, NotReady, TimedOut
from raxol_mcp.testing.virtual_loop import run_virtual
from tests.client.peers.clients import memory_client
from tests.client.peers.script import on, script, silent

SILENT = script("legacy", on("tools/call", silent()))


@pytest.mark.parametrize("wrong", [0, -1.0, float("nan"), float("inf"), 1e300, 10**400])
@pytest.mark.parametrize("option", ["timeout", "max_timeout"])
def test_a_timeout_that_is_none_is_refused_before_anything_is_sent(
    wrong: float, option: str
) -> None:
    """ours: every wait has an end, and a clock can reach it"""

    async def main() -> None:
        async with memory_client(SILENT) as (client, dialer):
            with pytest.raises(ConfigurationError, match="seconds above 0"):
                await client.call_tool(
                    "t",
                    timeout=wrong if option == "timeout" else None,
                    max_timeout=wrong if option == "max_timeout" else None,
                )
            assert client.status().pending == 0
            assert "tools/call" not in dialer.methods

    run_virtual(main)


def test_a_call_never_takes_longer_than_its_longest_time() -> None:
    """ADR-0026: never beyond `max_timeout`, though that is less than the timeout"""

    async def main() -> None:
        async with memory_client(SILENT) as (client, _):
            loop = asyncio.get_running_loop()
            began_at = loop.time()
            with pytest.raises(TimedOut, match="within 2 s"):
                await client.call_tool("t", max_timeout=2.0)
            assert loop.time() - began_at == pytest.approx(2.0)

    run_virtual(main)


def test_whoever_waits_for_the_server_says_for_how_long() -> None:
    """ours: None and infinity are for ever, 0 and less is a look"""

    async def main() -> None:
        late = script("legacy", on("initialize", silent()))
        async with memory_client(late, ready=False) as (client, _):
            loop = asyncio.get_running_loop()
            for wait in (0, -1.0):
                with pytest.raises(NotReady):
                    await client.await_ready(wait)
            assert loop.time() == pytest.approx(0.0, abs=0.1)
            for wrong in (float("nan"), 1e300, 10**400):
                with pytest.raises(ConfigurationError, match="seconds, or None"):
                    await client.await_ready(wrong)
            for ever in (None, float("inf")):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(client.await_ready(ever), 1000.0)

    run_virtual(main)
