"""What a link reports, and where a bug in what follows ends."""

from __future__ import annotations

import pytest

from raxol_mcp.client.app import Client
from raxol_mcp.errors import ConnectFailed, ConnectionLost, RequestFailed
from raxol_mcp.testing.virtual_loop import run_virtual
from tests.client.peers.clients import memory_client
from tests.client.peers.memory_link import MemoryDialer
from tests.client.peers.script import as_usual, on, script, text

PEER = script("legacy", on("tools/call", text("x")))


def test_a_bug_in_the_core_costs_the_connection_and_no_caller_his_time(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """ours: every wait has an end, and it is not the timer's where more is known"""

    async def main() -> None:
        async with memory_client(PEER) as (client, dialer):
            core = client._core
            received = core.received

            def fails(*arguments: object, **more: object) -> None:
                monkeypatch.setattr(core, "received", received)
                raise AttributeError("SECRET")

            monkeypatch.setattr(core, "received", fails)
            began_at = client._runtime.now()
            with pytest.raises(ConnectionLost) as lost:
                await client.call_tool("t")
            assert client._runtime.now() == began_at
            assert lost.value.tag == "task_down"
            assert lost.value.reason is not None
            assert lost.value.reason.maybe_done
            await client.await_ready()
            assert (await client.call_tool("t")).text == "x"
            assert len(dialer.links) == 2

    run_virtual(main)
    assert "please report it" in caplog.text


def test_a_bug_in_a_greeting_is_told_to_who_waits_for_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """ours: not after a minute"""

    async def main() -> None:
        dialer = MemoryDialer(script("legacy", on("initialize", as_usual())))
        client = Client({"name": "peer", "command": "scripted"}, dialer=dialer)

        def fails(*arguments: object, **more: object) -> None:
            raise AttributeError

        monkeypatch.setattr(client._core, "received", fails)
        began_at = client._runtime.now() if client._runtime._loop else 0.0
        with pytest.raises(ConnectFailed) as failed:
            async with client:
                pass
        assert client._runtime.now() - began_at < 1.0
        assert failed.value.reason is not None
        assert "task_down" in failed.value.reason.path

    run_virtual(main)
    assert "please report it" in caplog.text


def test_a_link_that_raises_costs_one_request(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """ours: a dialer may be anybody's; and what a request carries is in no log"""

    async def main() -> None:
        async with memory_client(PEER) as (client, dialer):
            link = dialer.links[0]
            send = link.send

            def fails(*arguments: object, **more: object) -> None:
                monkeypatch.setattr(link, "send", send)
                raise LookupError

            monkeypatch.setattr(link, "send", fails)
            with pytest.raises(RequestFailed) as failed:
                await client.call_tool("t", {"key": "SECRET"})
            assert failed.value.tag == "task_down"
            assert (await client.call_tool("t")).text == "x"

    run_virtual(main)
    assert "Send failed" in caplog.text
    assert "SECRET" not in caplog.text


def test_a_dialer_that_raises_is_a_failed_attempt(caplog: pytest.LogCaptureFixture) -> None:
    """ours"""

    class Broken(MemoryDialer):
        def link(self, *_: object) -> None:  # type: ignore[override]  # what is tried here
            raise LookupError

    async def main() -> None:
        async with memory_client(Broken(PEER), ready=False) as (client, _):
            with pytest.raises(ConnectFailed) as failed:
                await client.await_ready(fail_fast=True)
            assert failed.value.reason is not None
            assert "task_down" in failed.value.reason.path

    run_virtual(main)
    assert "Open failed" in caplog.text
