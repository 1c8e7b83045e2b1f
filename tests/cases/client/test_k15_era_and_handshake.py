"""K15: what a server says to the first question decides its era; that it is unwell decides nothing.

Clients took an outage for an old server and remembered that, or kept asking a server that exits
when it is asked something it does not know.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

import pytest

from raxol_mcp.client.app import Client
from raxol_mcp.client.opening import Tables
from raxol_mcp.core.verdicts import Verdicts
from tests.client.misbehaviour.attempts import Error, Says, attempt, echo
from tests.client.peers.clients import http_client, pipe_client
from tests.client.peers.held import BOUND, HASTY, Held
from tests.client.peers.http_peer import HttpPeer
from tests.client.peers.process import Processes
from tests.client.peers.script import (
    Message,
    Step,
    as_usual,
    drop,
    error,
    http,
    leave,
    on,
    reply,
    script,
    silent,
    stderr,
)


def test_a_server_that_exits_when_probed_is_started_again(tmp_path: Path) -> None:
    """BC-111. MCP 2026-07-28 basic/transports §stdio: one fresh process, and `initialize`."""

    async def tries() -> None:
        data = script("legacy", on("server/discover", leave(1)))
        async with pipe_client(data, tmp_path) as (client, processes):
            assert await attempt(echo(client)) == Says("x")
            first, second = processes.lives
            assert first.methods == ["server/discover"]
            assert second.methods == ["initialize", "notifications/initialized", "tools/call"]
            assert processes.alive() == [second.pid]
            assert Held.now().children == {second.pid}  # the first one was reaped

    asyncio.run(tries())


def test_what_a_server_speaks_is_remembered(tmp_path: Path) -> None:
    """BC-111: the second client of this process asks nothing."""

    async def tries() -> None:
        before = Held.now()
        processes = Processes(script("legacy", on("server/discover", leave(1))), tmp_path)
        spec = {"name": "peer", "command": processes.command, "args": processes.args}
        tables = Tables()
        for _ in range(2):
            async with Client(spec, tables=tables) as client:
                assert await attempt(echo(client)) == Says("x")
        assert [life.methods[0] for life in processes.lives] == [
            "server/discover",
            "initialize",
            "initialize",
        ]
        await before.settled()

    asyncio.run(tries())


def test_one_that_exits_on_initialize_too_says_why(tmp_path: Path) -> None:
    """BC-111: one clear error, with the end of its stderr, and no endless restarts."""

    async def tries() -> None:
        data = script("legacy", on("start", stderr("ImportError: no module\n")), on("*", leave(2)))
        spec = {"fail_fast": True, "reconnect": BOUND}
        async with pipe_client(data, tmp_path, spec=spec, ready=False) as (client, processes):
            outcome = await attempt(client.await_ready(timeout=BOUND))
            assert outcome == Error("ConnectFailed", ("server_exited", 2))
            reason = client.status().reason
            assert reason is not None
            assert "ImportError: no module" in reason.text
            assert len(processes.lives) == 2

    asyncio.run(tries())


REFUSED: Final[dict[str, Step]] = {
    "403": http(403, WWW_Authenticate='Bearer error="insufficient_scope"'),
    "408": http(408),
    "429": http(429, Retry_After="1"),
    "500": http(500),
    "502": http(502, "<html>", Content_Type="text/html"),
    "503": http(503, Retry_After="1"),
    "504": http(504),
    "reset": drop("reset"),
    "silence": silent(),
    "redirect": http(302, Location="/login"),
}


@pytest.mark.parametrize("how", REFUSED)
@pytest.mark.parametrize("preset", ["modern", "legacy"])
def test_ill_health_decides_no_era(preset: str, how: str) -> None:
    """BC-113. MCP 2026-07-28 streamable-http §Backwards Compatibility: nothing is remembered."""

    async def tries() -> None:
        before = Held.now()
        verdicts = Verdicts()
        async with HttpPeer(script(preset, on("server/discover", REFUSED[how], times=1))) as peer:
            spec: Message = {
                "reconnect": 0.1,
                "name": "peer",
                "url": peer.url,
                "allow_private": True,
            }
            if how == "silence":
                spec |= HASTY
            client = Client({**spec, "fail_fast": True}, tables=Tables(verdicts=verdicts))
            await client.start()
            outcome = await attempt(client.await_ready(timeout=BOUND))
            assert isinstance(outcome, Error)
            assert outcome.name == "ConnectFailed"
            assert len(verdicts) == 0
            assert "initialize" not in peer.methods
            await client.await_ready(timeout=BOUND, fail_fast=False)
            assert client.status().era == {"modern": "stateless", "legacy": "handshake"}[preset]
            assert await attempt(echo(client)) == Says("x")
            await client.stop()
        await before.settled()

    asyncio.run(tries())


def test_a_401_is_no_old_server_and_final() -> None:
    """BC-113; client-2.8.0 §Recovery: nothing is sent that was not asked for."""

    async def tries() -> None:
        data = script("modern", on("server/discover", http(401)))
        async with http_client(data, ready=False) as (client, peer):
            outcome = await attempt(client.await_ready(timeout=BOUND))
            assert outcome == Error("ConnectFailed", ("http", 401))
            assert client.status().retry_in is None
            assert peer.methods == ["server/discover"]

    asyncio.run(tries())


# What a server may answer to the probe, and the era that each answer means. None is a failure.
ANSWERS: Final[dict[str, tuple[str, Step, str | None]]] = {
    "as the stateless era": ("modern", as_usual(), "stateless"),
    "method not found": ("legacy", error(-32601), "handshake"),
    "invalid params": ("legacy", error(-32602), "handshake"),
    "invalid request": ("legacy", error(-32600), "handshake"),
    "not initialized": ("legacy", error(-32002), "handshake"),
    "an error of its own": ("legacy", error(0), "handshake"),
    "a result of something else": ("legacy", reply({"tools": []}), "handshake"),
    "null": ("legacy", reply(None), "handshake"),
    "versions of the old era": (
        "legacy",
        reply({"supportedVersions": ["2025-11-25"]}),
        "handshake",
    ),
    "versions of tomorrow": ("modern", reply({"supportedVersions": ["2099-01-01"]}), None),
    "a capability is missing": ("modern", error(-32021), "stateless"),
    "another version, ours": ("modern", error(-32022, data={"supported": ["2026-07-28"]}), None),
    "another version, an old one": (
        "legacy",
        error(-32022, data={"supported": ["2025-06-18"]}),
        "handshake",
    ),
    "the headers are wrong": ("modern", error(-32020), None),
}


@pytest.mark.parametrize("wire", ["pipe", "http"])
@pytest.mark.parametrize("name", ANSWERS)
def test_every_answer_to_the_probe_means_one_era(name: str, wire: str, tmp_path: Path) -> None:
    """The kind. MCP 2026-07-28 basic/versioning §Backward compatibility."""
    preset, step, era = ANSWERS[name]

    async def tries() -> None:
        data = script(preset, on("server/discover", step))
        spec: Any = {"fail_fast": True, "reconnect": BOUND}
        opened: Any = (
            http_client(data, spec=spec, ready=False)
            if wire == "http"
            else pipe_client(data, tmp_path, spec=spec, ready=False)
        )
        async with opened as (client, _):
            outcome = await attempt(client.await_ready(timeout=BOUND))
            if era is None:
                assert isinstance(outcome, Error)
                assert outcome.name == "ConnectFailed"
            else:
                assert client.status().era == era
                assert await attempt(echo(client)) == Says("x")

    asyncio.run(tries())


@pytest.mark.parametrize("status", [400, 404, 405, 406, 415, 422, 501])
def test_a_status_that_an_old_server_gives_means_an_old_server(status: int) -> None:
    """MCP 2026-07-28 streamable-http §Backwards Compatibility: no error of the new era."""

    async def tries() -> None:
        async with http_client(script("legacy", on("server/discover", http(status, "no")))) as (
            client,
            _,
        ):
            assert client.status().era == "handshake"
            assert await attempt(echo(client)) == Says("x")

    asyncio.run(tries())
