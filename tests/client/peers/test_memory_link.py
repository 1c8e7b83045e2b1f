"""The memory link keeps the promises of `raxol_mcp.transports.link`."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from raxol_mcp.errors import Reason
from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.transports.link import Dialect, LinkFailed
from raxol_mcp.wire.jsonrpc import Ignored, Incoming, JSONObject, Notification, Request, Response
from tests.client.peers.memory_link import MemoryDialer, MemoryLink
from tests.client.peers.script import (
    Step,
    drop,
    http,
    kill,
    leave,
    on,
    raw,
    script,
    silent,
    stop_reading,
    text,
    wait,
)

CALL: JSONObject = {"name": "echo", "arguments": {"text": "hi"}}


@dataclass
class Port:
    """A client that notes what it is told."""

    told: list[Any] = field(default_factory=list)

    def received(self, message: Incoming, *, about: int | None = None) -> None:
        self.told.append((message, about))

    def sent(self, key: int) -> None:
        self.told.append(("sent", key))

    def failed(self, key: int, reason: Reason) -> None:
        self.told.append(("failed", key, reason.path))

    def lost(self, reason: Reason) -> None:
        self.told.append(("lost", reason.path))

    def missed(self) -> None:
        self.told.append(("missed",))

    def hears(self, hears: bool) -> None:
        self.told.append(("hears", hears))

    def noticed(self, event: str, fields: JSONObject) -> None:
        self.told.append((event, fields))


def told(*steps: Step, kind: str = "memory", abort: bool = False) -> list[Any]:
    """Make a call of a peer that does these steps; return what the client was told."""

    async def calls() -> list[Any]:
        port = Port()
        dialer = MemoryDialer(script("legacy", on("tools/call", *steps)), kind=kind)
        link: MemoryLink = dialer.link(port, Dialect.CURRENT)
        await link.open()
        link.send(Notification("notifications/x"), 1)
        link.send(Request(2, "tools/call", CALL), 2)
        if abort:
            await asyncio.sleep(0)
            link.abort(2)
        await asyncio.sleep(10)
        await link.close()
        await link.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert (dialer.open, dialer.busy, dialer.broken) == (0, 0, [])
        return port.told

    return run_virtual(calls)


def test_an_answer_is_received() -> None:
    result = {"content": [{"type": "text", "text": "x"}]}
    assert told(text("x")) == [("sent", 1), (Response(2, result), None)]
    assert told(text("x"), kind="http")[1] == (Response(2, result), 2)


@pytest.mark.parametrize(
    ("kind", "step", "end"),
    [
        ("memory", leave(3), ("lost", ("server_exited", 3))),
        ("memory", kill(9), ("lost", ("server_exited", 137))),
        ("memory", raw(("x", 17 * 1024 * 1024)), ("lost", ("line_too_long", 16 * 1024 * 1024))),
        ("http", http(500), ("failed", 2, ("http", 500))),
        ("http", http(302), ("failed", 2, ("redirect_refused", 302))),
        ("http", drop("reset"), ("failed", 2, ("transport", "closed"))),
        ("http", wait(1), ("failed", 2, ("invalid_response", "tools/call"))),
    ],
    ids=str,
)
def test_an_end_is_reported_once(kind: str, step: Step, end: object) -> None:
    assert told(step, kind=kind) == [("sent", 1), end]


@pytest.mark.parametrize("step", [silent(), stop_reading(), wait(1)], ids=str)
def test_silence_is_silence(step: Step) -> None:
    assert told(step) == [("sent", 1)]


def test_an_aborted_http_request_is_stopped() -> None:
    assert told(wait(1), text("x"), kind="http", abort=True) == [("sent", 1)]


def test_what_is_no_message_is_told_too() -> None:
    [_, (message, _), _] = told(raw("{not json}\n"), text("x"))
    assert isinstance(message, Ignored)


def test_an_attempt_may_fail() -> None:
    async def opens() -> None:
        dialer = MemoryDialer(
            script("legacy"), opens=lambda number: Reason("dns_failed") if number == 1 else None
        )
        with pytest.raises(LinkFailed) as caught:
            await dialer.link(Port(), Dialect.CURRENT).open()
        assert caught.value.reason == Reason("dns_failed")
        link = dialer.link(Port(), Dialect.CURRENT)
        await link.open()
        await link.close()

    run_virtual(opens)
