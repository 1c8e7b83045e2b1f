"""client/upkeep.py: what is said again to a new session, and what is told of the old one."""

import pytest

from raxol_mcp.client.results import Change
from raxol_mcp.errors import ConfigurationError, NotReady, RaxolError
from raxol_mcp.testing.virtual_loop import run_virtual
from tests.client.peers.clients import memory_client
from tests.client.peers.memory_link import MemoryDialer
from tests.client.peers.script import error, leave, on, reply, script

LEAVES = script(
    "legacy", on("logging/setLevel", reply({}), times=1), on("tools/call", leave(1), times=1)
)


def levels(dialer: MemoryDialer) -> list[object]:
    """Give the log levels that a server was asked for, in order."""
    asked = [each for each in dialer.received if each.get("method") == "logging/setLevel"]
    return [each["params"]["level"] for each in asked]


def test_the_log_level_is_set_again_in_a_new_session() -> None:
    """MCP 2025-11-25 server/utilities/logging: the level belongs to the session."""

    async def main() -> None:
        async with memory_client(LEAVES) as (client, dialer):
            await client.set_log_level("warning")
            with pytest.raises(RaxolError):
                await client.call_tool("t")
            await client.await_ready()
            await client.ping()
            assert levels(dialer) == ["warning", "warning"]

    run_virtual(main)


def test_a_level_that_is_refused_later_is_a_line_in_the_log_and_no_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    refuses = script(
        "legacy",
        on("logging/setLevel", reply({}), times=1, life=1),
        on("logging/setLevel", error(-32601)),
        on("tools/call", leave(1), times=1),
    )

    async def main() -> None:
        async with memory_client(refuses) as (client, _):
            await client.set_log_level("warning")
            with pytest.raises(RaxolError):
                await client.call_tool("t")
            await client.await_ready()
            await client.ping()

    run_virtual(main)
    assert "peer: the log level could not be set again: no" in caplog.text


def test_a_level_that_is_none_is_not_sent() -> None:
    async def main() -> None:
        async with memory_client(LEAVES) as (client, dialer):
            with pytest.raises(ConfigurationError, match="debug, info"):
                await client.set_log_level("loud")
            assert levels(dialer) == []

    run_virtual(main)


def test_a_new_session_has_lists_of_its_own() -> None:
    async def main() -> None:
        told: list[Change] = []
        async with memory_client(LEAVES, on_change=told.append) as (client, dialer):
            await client.list_tools()
            await client.list_tools()
            assert dialer.methods.count("tools/list") == 1
            with pytest.raises(RaxolError):
                await client.call_tool("t")
            with pytest.raises(RaxolError):
                await client.list_tools()
            await client.await_ready()
            await client.list_tools()
            assert dialer.methods.count("tools/list") == 2

    run_virtual(main)


def test_a_client_that_was_stopped_sets_nothing() -> None:
    async def main() -> None:
        async with memory_client(LEAVES) as (client, _):
            await client.stop()
            with pytest.raises(NotReady):
                await client.set_log_level("info")

    run_virtual(main)
