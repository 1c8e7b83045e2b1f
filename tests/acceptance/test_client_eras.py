"""How a client finds out which era of MCP a server speaks, and how it greets it.

Where MCP's rules of compatibility (2026-07-28 basic/versioning, basic/transports) contradict how
older clients probed, they win.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import pytest

from raxol_mcp import Client, RemoteProtocolError
from raxol_mcp.client.opening import Tables
from raxol_mcp.core.verdicts import Verdicts
from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.transports.http_client.tables import Tables as HttpTables
from tests.client.misbehaviour.attempts import Error, Says, attempt, echo, list_tools
from tests.client.peers.clients import http_client, memory_client, pipe_client
from tests.client.peers.held import BOUND
from tests.client.peers.http_peer import HttpPeer
from tests.client.peers.memory_link import MemoryDialer
from tests.client.peers.script import (
    MODERN_VERSION,
    PREFIX,
    Message,
    Step,
    as_usual,
    error,
    http,
    on,
    raw,
    reply,
    script,
    silent,
    wait,
)

NEVER: Final = {"reconnect": BOUND, "fail_fast": True}


def test_a_process_is_asked_greeted_and_told_that_we_know(tmp_path: Path) -> None:
    """client-behaviour check 9, as ruled: probed first; the newest version it knows is agreed."""

    async def tries() -> None:
        chatty = on("start", raw("Welcome to the server!\n{not json\n"))
        async with pipe_client(script("legacy", chatty), tmp_path) as (client, processes):
            assert await attempt(echo(client)) == Says("x")
            status = client.status()
            assert (status.status, status.version) == ("ready", "2025-11-25")
            assert (status.era, status.concurrency) == ("handshake", "stateless")
            _, initialize, initialized, _ = processes.lives[0].messages
            assert processes.lives[0].methods[0] == "server/discover"
            assert initialize["params"]["protocolVersion"] == "2025-11-25"
            assert initialize["params"]["capabilities"] == {}
            assert initialize["params"]["clientInfo"]["name"] == "raxol-mcp"
            assert initialized["method"] == "notifications/initialized"
            assert "id" not in initialized

    asyncio.run(tries())


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_the_version_that_a_server_names_is_spoken(version: str) -> None:
    """client-behaviour checks 9, 11; MCP basic/lifecycle §Version Negotiation."""

    async def tries() -> None:
        greeting = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {}}
        data = script("legacy", on("initialize", reply(greeting)))
        async with memory_client(data) as (client, _):
            assert client.status().version == version
            assert await attempt(echo(client)) == Says("x")

    run_virtual(tries)


def test_a_stateless_origin_is_discovered_and_never_initialized() -> None:
    """client-behaviour check 10, with the metadata that MCP asks of every request."""

    async def tries() -> None:
        async with http_client(script("modern")) as (client, peer):
            assert await attempt(list_tools(client)) == Says(["echo", "slow"])
            assert peer.methods == ["server/discover", "tools/list"]
            status = client.status()
            assert (status.version, status.concurrency) == (MODERN_VERSION, "stateless")
            for each in peer.received:
                meta = each.message["params"]["_meta"]
                assert meta[f"{PREFIX}protocolVersion"] == MODERN_VERSION
                assert meta[f"{PREFIX}clientCapabilities"] == {}
                assert each.headers["mcp-protocol-version"] == MODERN_VERSION

    asyncio.run(tries())


def test_a_handshake_origin_is_discovered_initialized_told_and_listed() -> None:
    """client-behaviour check 11, as ruled: the newest version; ADR-0025: requests may overlap."""

    async def tries() -> None:
        async with http_client(script("legacy")) as (client, peer):
            assert await attempt(list_tools(client)) == Says(["echo", "slow"])
            posts = [each.event for each in peer.received if each.method == "POST"]
            assert posts == [
                *("server/discover", "initialize", "notifications/initialized", "tools/list")
            ]
            status = client.status()
            assert (status.version, status.concurrency) == ("2025-11-25", "pooled")

    asyncio.run(tries())


@pytest.mark.parametrize("preset", ["legacy", "modern"])
def test_an_origin_and_path_are_asked_once_whoever_connects(preset: str) -> None:
    """client-behaviour check 12: the query is no part of it, the path is."""

    async def tries() -> None:
        tables = Tables()
        async with HttpPeer(script(preset)) as peer:
            for query, probes in (("", 1), ("?who=else", 1)):
                spec: Message = {"name": "x", "url": peer.url + query, "allow_private": True}
                async with Client(spec, tables=tables) as client:
                    assert await attempt(echo(client)) == Says("x")
                assert peer.methods.count("server/discover") == probes
            elsewhere = peer.url.replace("/mcp", "/other")
            client = Client({**spec, **NEVER, "url": elsewhere}, tables=tables)
            await client.start()
            await attempt(client.await_ready(timeout=BOUND))
            await client.stop()
            asked = [each.target for each in peer.about("server/discover")]
            assert asked == ["/mcp", "/other"]

    asyncio.run(tries())


@pytest.mark.parametrize(
    ("ttl", "later", "probes"), [(None, 899.0, 1), (None, 901.0, 2), (60.0, 61.0, 2), (0.0, 0.0, 2)]
)
def test_an_era_is_remembered_for_a_quarter_of_an_hour(
    ttl: float | None, later: float, probes: int
) -> None:
    """client-behaviour check 13."""

    async def tries() -> None:
        tables = Tables()
        dialers = [MemoryDialer(script("legacy"), verdict_key="one server") for _ in range(2)]
        spec = {"name": "x", "command": "y"} | ({} if ttl is None else {"era_ttl": ttl})
        for dialer in dialers:
            async with Client(spec, dialer=dialer, tables=tables) as client:
                assert await attempt(echo(client)) == Says("x")
            await asyncio.sleep(later)
        assert sum(dialer.methods.count("server/discover") for dialer in dialers) == probes

    run_virtual(tries)


@pytest.mark.parametrize("status", [401, 403, 408, 429, 500, 503])
def test_an_origin_that_is_unwell_is_judged_by_the_next_client(status: int) -> None:
    """client-behaviour checks 14, 16: no verdict; what is the origin's own fault is counted."""

    async def tries() -> None:
        tables = Tables(verdicts=Verdicts(), http=HttpTables())
        assert tables.http is not None
        async with HttpPeer(script("modern", on("server/discover", http(status), times=1))) as peer:
            spec = {"name": "x", "url": peer.url, "allow_private": True, **NEVER}
            first = Client(spec, tables=tables)
            await first.start()
            failed = Error("ConnectFailed", ("http", status))
            assert await attempt(first.await_ready(timeout=BOUND)) == failed
            assert await attempt(list_tools(first)) == failed
            await first.stop()
            assert len(tables.verdicts) == 0
            assert peer.methods == ["server/discover"]
            failures = tables.http.breakers.failures(f"http://127.0.0.1:{peer.port}")
            assert failures == (status in (408, 500, 503))
            async with Client(spec, tables=tables) as second:
                assert second.status().era == "stateless"

    asyncio.run(tries())


@pytest.mark.parametrize(
    "refusal",
    [
        http(400, "junk"),
        http(400, '{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"no"}}'),
        http(404),
        http(405),
        http(501),
        error(-32601),
    ],
    ids=["400", "400 -32601", "404", "405", "501", "200 -32601"],
)
def test_an_origin_that_does_not_know_the_question_is_initialized(refusal: Step) -> None:
    """client-behaviour checks 15, 16, as ruled: MCP's own rule for a 4xx without a modern error."""

    async def tries() -> None:
        async with http_client(script("legacy", on("server/discover", refusal))) as (client, peer):
            assert client.status().era == "handshake"
            assert await attempt(echo(client)) == Says("x")
            assert peer.methods.count("initialize") == 1

    asyncio.run(tries())


def test_a_version_that_nobody_knows_is_not_spoken() -> None:
    """client-behaviour check 17, as ruled: MCP basic/lifecycle: the client SHOULD disconnect."""

    async def tries() -> None:
        greeting = {"protocolVersion": "1999-01-01", "capabilities": {}, "serverInfo": {}}
        data = script("legacy", on("initialize", reply(greeting)))
        async with memory_client(data, spec={"fail_fast": True}, ready=False) as (client, dialer):
            failed = Error("ConnectFailed", ("initialization_failed", "unsupported_version"))
            outcome = await attempt(client.await_ready(), bound=BOUND)
            assert isinstance(outcome, Error)
            assert (outcome.name, outcome.path[:2]) == (failed.name, failed.path)
            assert client.status().status == "closed"
            assert "notifications/initialized" not in dialer.methods

    run_virtual(tries)


@pytest.mark.parametrize("kind", ["memory", "http"])
@pytest.mark.parametrize("result", ["ok", None, [], 7], ids=repr)
def test_a_greeting_that_is_no_object_fails(result: object, kind: str) -> None:
    """client-behaviour check 18: closed, and not stuck."""

    async def tries() -> None:
        data = script("legacy", on("initialize", reply(result)))
        spec = {"fail_fast": True}
        async with memory_client(data, kind=kind, spec=spec, ready=False) as (client, _):
            path = ("initialization_failed", "invalid_response", "initialize")
            failed = Error("ConnectFailed", path)
            assert await attempt(client.await_ready(), bound=BOUND) == failed
            status = client.status()
            assert (status.status, status.pending, status.queued) == ("closed", 0, 0)
            assert status.retry_in is not None

    run_virtual(tries)


def test_an_error_in_the_greeting_is_told_as_it_came() -> None:
    """client-behaviour check 19: the very object, and nothing pending."""

    async def tries() -> None:
        refusal = error(-32000, "go away", data={"why": "because"})
        data = script("legacy", on("initialize", refusal))
        async with memory_client(data, spec={"fail_fast": True}, ready=False) as (client, _):
            await attempt(client.await_ready(), bound=BOUND)
            status = client.status()
            assert (status.status, status.pending) == ("closed", 0)
            assert status.reason is not None
            assert status.reason.path == ("initialization_failed", "jsonrpc", -32000)
            assert status.reason.cause is not None
            assert status.reason.cause.error == {
                "code": -32000,
                "message": "go away",
                "data": {"why": "because"},
            }

    run_virtual(tries)


@pytest.mark.parametrize("silence", ["*", "initialize"])
def test_a_greeting_has_its_time(silence: str) -> None:
    """client-behaviour check 20: `init_timeout`, probe included; nothing is left pending."""

    async def tries() -> None:
        data = script("legacy", on(silence, silent()))
        spec = {"init_timeout": 0.03, "fail_fast": True}
        async with memory_client(data, spec=spec, ready=False) as (client, _):
            outcome = await attempt(client.await_ready(), bound=BOUND)
            assert outcome == Error("ConnectFailed", ("initialization_failed", "timeout"))
            assert asyncio.get_running_loop().time() == pytest.approx(0.03)
            status = client.status()
            assert (status.status, status.pending) == ("closed", 0)

    run_virtual(tries)


def test_a_short_call_timeout_is_none_of_the_greeting() -> None:
    """client-behaviour check 21: a server that boots for long is not given up for it."""

    async def tries() -> None:
        data = script("legacy", on("initialize", wait(20.0), as_usual()))
        async with memory_client(data, spec={"call_timeout": 0.1}) as (client, _):
            assert asyncio.get_running_loop().time() == pytest.approx(20.0)
            assert await attempt(echo(client)) == Says("x")

    run_virtual(tries)


def test_an_error_of_the_server_leaves_the_session_as_it_was() -> None:
    """client-behaviour §8: the error object, unchanged, and the next call works."""

    async def tries() -> None:
        refusal = error(-32050, "no", data=[1, None])
        data = script("legacy", on("tools/call", refusal, times=1))
        async with memory_client(data) as (client, _):
            with pytest.raises(RemoteProtocolError) as caught:
                await client.call_tool("echo")
            raised = caught.value
            assert (raised.code, str(raised), raised.data) == (-32050, "no", [1, None])
            assert await attempt(echo(client)) == Says("x")

    run_virtual(tries)
