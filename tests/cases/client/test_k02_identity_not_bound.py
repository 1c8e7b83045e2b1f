"""K02: a session is the one that `initialize` gave, and belongs to that connection alone.

Any response header replaced the session id in use, and reconnecting sent the old one.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.client.misbehaviour.attempts import Error, Says, attempt, echo
from tests.client.peers.clients import http_client
from tests.client.peers.http_peer import HttpPeer
from tests.client.peers.script import http, on, script

NAMED = '{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}'
GREETING = (
    '{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":"2025-11-25",'
    '"capabilities":{},"serverInfo":{"name":"x","version":"0"}}}'
)


def sessions(peer: HttpPeer) -> list[str | None]:
    """Give the session that each request was sent in."""
    return [each.headers.get("mcp-session-id") for each in peer.received]


def test_only_initialize_gives_a_session() -> None:
    """BC-107. MCP 2025-11-25 basic/transports §Session Management."""

    async def tries() -> None:
        evil = http(200, NAMED, Content_Type="application/json", Mcp_Session_Id="EVIL")
        refusal = http(500, Mcp_Session_Id="EVIL")
        data = script(
            "legacy",
            on("tools/call", evil, times=1),
            on("tools/call", refusal, times=1),
            on("notifications/cancelled", http(202, Mcp_Session_Id="EVIL")),
        )
        async with http_client(data) as (client, peer):
            assert await attempt(echo(client)) == Says("")
            assert await attempt(echo(client)) == Error("RequestFailed", ("http", 500))
            client.notify("notifications/cancelled", {"requestId": 99})
            assert await attempt(echo(client)) == Says("x")
            greeted = peer.methods.index("initialize")
            assert set(sessions(peer)[: greeted + 1]) == {None}
            assert set(sessions(peer)[greeted + 1 :]) == {"S1"}

    asyncio.run(tries())


def test_a_new_session_begins_without_the_old_one() -> None:
    """BC-107: after a loss `initialize` carries none, and then the new one is used."""

    async def tries() -> None:
        async with http_client(script("legacy")) as (client, peer):
            peer.sessions.clear()
            assert await attempt(echo(client)) == Error("SessionLost", ("session_rejected",))
            assert await attempt(echo(client)) == Says("x")
            later = [each for each in peer.received if each.method == "POST"][-3:]
            assert [each.event for each in later] == [
                "initialize",
                "notifications/initialized",
                "tools/call",
            ]
            assert [each.headers.get("mcp-session-id") for each in later] == [None, "S1", "S1"]

    asyncio.run(tries())


@pytest.mark.parametrize("id", ["a b", "a\tb", "\xe9", "\x7f", "a" * 100_000])
def test_a_session_that_is_no_visible_ascii_is_refused(id: str) -> None:
    """BC-107. MCP 2025-11-25 basic/transports: 0x21 to 0x7E, and nothing else."""

    async def tries() -> None:
        greeting = http(200, GREETING, Content_Type="application/json", Mcp_Session_Id=id)
        data = script("legacy", on("initialize", greeting))
        async with http_client(data, spec={"fail_fast": True}, ready=False) as (client, peer):
            outcome = await attempt(client.await_ready())
            assert isinstance(outcome, Error)
            assert outcome.name == "ConnectFailed"
            assert set(sessions(peer)) == {None}

    asyncio.run(tries())


def test_the_stateless_era_has_no_session() -> None:
    """BC-107. MCP 2026-07-28: none is minted, echoed or sent; the peer minds each one."""

    async def tries() -> None:
        named = http(
            200,
            NAMED,
            Content_Type="application/json",
            Mcp_Session_Id="EVIL",
        )
        data = script("modern", on("tools/call", named, times=1))
        async with http_client(data) as (client, peer):
            assert await attempt(echo(client)) == Says("")
            assert await attempt(echo(client)) == Says("x")
            assert set(sessions(peer)) == {None}

    asyncio.run(tries())
