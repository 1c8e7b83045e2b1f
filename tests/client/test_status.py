"""client/status.py: where a client stands, in each of its states."""

import pytest

from raxol_mcp.client.app import Client
from raxol_mcp.client.results import ClientStatus
from raxol_mcp.errors import ConnectFailed, Reason
from raxol_mcp.testing.virtual_loop import run_virtual
from tests.client.peers.clients import memory_client
from tests.client.peers.memory_link import MemoryDialer
from tests.client.peers.script import script

LEGACY = script("legacy")


def test_before_its_start_a_client_needs_no_loop_to_say_so() -> None:
    client = Client({"name": "peer", "command": "x"}, dialer=MemoryDialer(LEGACY))
    assert client.status() == ClientStatus("peer", "starting")


def test_a_client_that_is_ready_says_what_it_found() -> None:
    async def main() -> None:
        async with memory_client(LEGACY) as (client, _):
            status = client.status()
            assert (status.status, status.era) == ("ready", "handshake")
            assert (status.version, status.concurrency) == ("2025-11-25", "stateless")
            assert (status.tools, status.pending, status.queued) == (None, 0, 0)
            assert status.server is not None
            assert "tools" in status.capabilities
            await client.list_tools()
            assert client.status().tools is not None

    run_virtual(main)


def test_a_client_without_a_connection_says_why_and_when_it_tries_again() -> None:
    refused = Reason("transport", "refused")

    async def main() -> None:
        dialer = MemoryDialer(LEGACY, opens=lambda number: refused)
        async with memory_client(dialer, ready=False) as (client, _):
            with pytest.raises(ConnectFailed):
                await client.await_ready(fail_fast=True)
            status = client.status()
            assert (status.status, status.reason, status.concurrency) == ("closed", refused, None)
            assert status.retry_in is not None
            assert 0.0 < status.retry_in <= 1.0

    run_virtual(main)


def test_a_client_that_was_stopped_stays_so() -> None:
    async def main() -> None:
        async with memory_client(LEGACY) as (client, _):
            await client.stop()
            status = client.status()
            assert (status.status, status.retry_in, status.pending) == ("stopped", None, 0)

    run_virtual(main)
