"""K23: what is tried again is tried a number of times, and less and less often.

After a restart of its server a client sent the dead session for ever, began again with it
attached, or replayed the call.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Final

import pytest

from raxol_mcp.testing.virtual_loop import run_virtual
from tests.client.misbehaviour.attempts import Error, Says, attempt, echo, list_tools
from tests.client.peers.clients import http_client, memory_client
from tests.client.peers.held import BOUND
from tests.client.peers.script import (
    ECHO,
    Rule,
    Step,
    as_usual,
    drop,
    error,
    http,
    leave,
    on,
    raw,
    reply,
    script,
    silent,
)

LOST: Final = Error("SessionLost", ("session_rejected",))


def test_a_lost_session_is_begun_again_once_for_everybody() -> None:
    """BC-103, over HTTP. MCP 2025-11-25 basic/transports §Session Management."""

    async def tries() -> None:
        data = script("legacy")
        async with http_client(data, spec={"pool_size": 16}) as (client, peer):
            assert await attempt(list_tools(client)) == Says(["echo", "slow"])
            peer.sessions.clear()
            calls = [asyncio.ensure_future(attempt(echo(client))) for _ in range(10)]
            # Ten were sent, and each is over: a call is never made twice by itself.
            assert await asyncio.gather(*calls) == [LOST] * 10
            assert await attempt(echo(client)) == Says("x")
            assert client.status().status == "ready"
            greetings = peer.about("initialize")
            assert len(greetings) == 2
            assert "mcp-session-id" not in greetings[1].headers
            assert len(peer.about("notifications/initialized")) == 2
            # What was known of the server is forgotten with its session.
            assert client.status().tools is None
            assert await attempt(list_tools(client)) == Says(["echo", "slow"])
            assert len(peer.about("tools/list")) == 2

    asyncio.run(tries())


def test_a_session_that_is_always_lost_is_no_loop() -> None:
    """BC-103, the variant: 404 for ever, while somebody calls all the time."""

    async def tries() -> None:
        data = script("legacy", on("tools/call", http(404)))
        async with http_client(data, spec={"reconnect": BOUND}) as (client, peer):
            outcomes = Counter([str(await attempt(echo(client))) for _ in range(50)])
            assert outcomes[str(LOST)] <= 5
            assert client.status().status == "closed"
            assert client.status().retry_in is not None
            assert len(peer.about("initialize")) <= 5

    asyncio.run(tries())


def test_a_fresh_initialize_that_gets_a_404_too_is_no_loop() -> None:
    """BC-103, the variant."""

    async def tries() -> None:
        data = script("legacy", on("initialize", as_usual(), times=1), on("initialize", http(404)))
        async with http_client(data, spec={"reconnect": BOUND}) as (client, peer):
            peer.sessions.clear()
            assert await attempt(echo(client)) == LOST
            outcome = await attempt(echo(client))
            assert isinstance(outcome, Error)
            await peer.until(lambda: len(peer.about("initialize")) >= 2)
            outcome = await attempt(echo(client))
            assert isinstance(outcome, Error)
            assert client.status().status == "closed"
            assert client.status().retry_in is not None
            assert len(peer.about("initialize")) <= 4

    asyncio.run(tries())


# What a server may do for ever, at which event.
FOR_EVER: Final[dict[str, tuple[str, list[Step]]]] = {
    "no connection": ("start", [leave(1)]),
    "initialize is refused": ("initialize", [error(-32603)]),
    "initialize is never answered": ("initialize", [silent()]),
    "initialize cannot be read": ("initialize", [raw('{"jsonrpc":"2.0","id":$ID,"result":NaN}\n')]),
    "everything is silent": ("*", [silent()]),
    "the probe fails": ("server/discover", [http(503)]),
    "the session is lost": ("tools/call", [http(404)]),
    "the connection is lost": ("tools/call", [leave(1)]),
    "the call is dropped": ("tools/call", [drop("close")]),
    "another version is wanted": (
        "server/discover",
        [error(-32022, data={"supported": ["2026-07-28"]})],
    ),
}


@pytest.mark.parametrize("kind", ["memory", "http"])
@pytest.mark.parametrize("preset", ["legacy", "modern"])
@pytest.mark.parametrize("name", FOR_EVER)
def test_the_same_refusal_for_ever_costs_a_bounded_number_of_tries(
    name: str, preset: str, kind: str
) -> None:
    """The kind: an hour of it, with somebody who calls every ten seconds."""
    event, steps = FOR_EVER[name]
    rule: Rule = on(event, *steps)

    async def tries() -> None:
        async with memory_client(script(preset, rule), kind=kind, ready=False) as (client, dialer):
            for _ in range(360):
                await asyncio.sleep(10.0)
                await attempt(client.call_tool("echo", timeout=5.0), bound=1000)
            # A minute between attempts to connect, once they have failed for a while; each takes
            # a probe, a greeting or two, and none of them is repeated at once.
            assert len(dialer.links) <= 2 * (360 + 8)
            greetings = [
                method for method in dialer.methods if method in ("server/discover", "initialize")
            ]
            assert len(greetings) <= 3 * (360 + 8)
            calls = dialer.methods.count("tools/call")
            assert calls <= 360

    run_virtual(tries)


def test_pages_end() -> None:
    """The kind: a cursor that comes again, and cursors that never end."""

    async def tries() -> None:
        invalid = Error("RequestFailed", ("invalid_response", "tools/list"))
        again = on("tools/list", reply({"tools": [ECHO], "nextCursor": "again"}))
        async with memory_client(script("legacy", again)) as (client, dialer):
            assert await attempt(list_tools(client)) == invalid
            assert dialer.methods.count("tools/list") == 2
        fresh = on("tools/list", reply({"tools": [ECHO], "nextCursor": "$ID"}))
        async with memory_client(script("legacy", fresh)) as (client, dialer):
            # A number is no cursor; what a script fills in is one.
            assert await attempt(list_tools(client)) == invalid
        other = [
            on("tools/list", reply({"tools": [], "nextCursor": f"c{n}"}), times=1)
            for n in range(3_000)
        ]
        async with memory_client(script("legacy", *other)) as (client, dialer):
            assert await attempt(list_tools(client)) == invalid
            assert dialer.methods.count("tools/list") <= 1_024
            assert await attempt(echo(client)) == Says("x")

    run_virtual(tries)
