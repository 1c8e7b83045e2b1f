"""Every misbehaviour of an HTTP server, on real sockets: nothing of it may be left."""

from __future__ import annotations

import asyncio
import socket
from typing import Any, Final

import pytest

from raxol_mcp.client.app import Client
from raxol_mcp.client.opening import Tables
from tests.client.misbehaviour.attempts import (
    Error,
    Misbehaviour,
    Says,
    Trial,
    attempt,
    echo,
    hurried,
    hurried_for,
    list_tools,
    try_call,
    try_to_connect,
)
from tests.client.misbehaviour.lists import LISTS
from tests.client.misbehaviour.messages import IN_BOTH_ERAS, TIMEOUT
from tests.client.misbehaviour.pipes import Connect
from tests.client.misbehaviour.questions import MODERN, UNASKED, modern
from tests.client.misbehaviour.responses import CALLS, CONNECTS, SESSIONS
from tests.client.peers.clients import http_client
from tests.client.peers.held import BOUND, Held
from tests.client.peers.http_peer import HttpPeer
from tests.client.peers.script import (
    http,
    on,
    script,
    silent,
    sse,
)


def trial(client: Client, peer: HttpPeer) -> Trial:
    """Let attempts see what the peer was sent."""
    return Trial(client, lambda: [each.message for each in peer.received if each.body])


def try_over_http(case: Misbehaviour) -> None:
    async def tries() -> None:
        async with http_client(
            case.script, spec=hurried_for(case, case.over_http), ready=False
        ) as made:
            await try_call(trial(*made), case, case.over_http)

    asyncio.run(tries())


def timed(cases: list[Misbehaviour], *, all_slow: bool = False) -> list[Any]:
    """Mark what waits for a timeout, which costs real time, as slow."""
    return [
        pytest.param(
            case,
            id=str(case),
            marks=[pytest.mark.slow]
            if all_slow or (case.over_http or case.expected) == TIMEOUT
            else [],
        )
        for case in cases
    ]


@pytest.mark.parametrize("case", [*CALLS, *SESSIONS], ids=str)
def test_a_call_ends_once_and_the_next_one_works(case: Misbehaviour) -> None:
    """MCP 2025-11-25 basic/transports §Streamable HTTP."""
    try_over_http(case)


@pytest.mark.parametrize("case", timed(list(map(modern, CALLS)), all_slow=True))
def test_in_the_stateless_era_too(case: Misbehaviour) -> None:
    """MCP 2026-07-28 basic/transports/streamable-http."""
    try_over_http(case)


@pytest.mark.parametrize("case", timed([*UNASKED, *MODERN, *LISTS]))
def test_no_message_breaks_the_next(case: Misbehaviour) -> None:
    try_over_http(case)


@pytest.mark.parametrize("case", timed([*IN_BOTH_ERAS, *map(modern, IN_BOTH_ERAS)], all_slow=True))
def test_nor_does_one_of_either_era(case: Misbehaviour) -> None:
    try_over_http(case)


@pytest.mark.parametrize("case", CONNECTS, ids=str)
def test_a_failure_to_connect_is_known_and_tried_again(case: Connect) -> None:
    """client-2.8.0 §Recovery."""

    async def tries() -> None:
        data = script("legacy", *case.rules, **case.options)
        spec = hurried({"fail_fast": True, **case.spec}, case.path)
        async with http_client(data, spec=spec, ready=False) as made:
            await try_to_connect(trial(*made), case.path, returns=case.returns)

    asyncio.run(tries())


@pytest.mark.parametrize("event", ["server/discover", "initialize"])
def test_a_401_is_final(event: str) -> None:
    """client-2.8.0 §Recovery: the same credential would be refused again."""

    async def tries() -> None:
        path: tuple[int | str, ...] = ("http", 401)
        if event == "initialize":
            path = ("initialization_failed", *path)
        async with http_client(script("legacy", on(event, http(401))), ready=False) as made:
            await try_to_connect(trial(*made), path, final=True)
            assert made[1].methods.count(event) == 1

    asyncio.run(tries())


def test_nobody_listens() -> None:
    async def tries() -> None:
        before = Held.now()
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            spec = {"name": "peer", "url": f"http://127.0.0.1:{taken.getsockname()[1]}/mcp"}
            client = Client({**spec, "allow_private": True, "fail_fast": True})
            await client.start()
            await try_to_connect(Trial(client, list), ("transport", "refused"))
            await client.stop()
        await before.settled()

    asyncio.run(tries())


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("http://127.0.0.1:{port}/mcp", ("blocked", "invalid_url")),
        ("https://127.0.0.1:{port}/mcp", ("blocked", "address")),
        ("https://localhost:{port}/mcp", ("blocked", "address")),
        ("https://[::1]:{port}/mcp", ("blocked", "address")),
        ("https://[::ffff:127.0.0.1]:{port}/mcp", ("blocked", "address")),
        ("https://169.254.169.254/latest/meta-data", ("blocked", "address")),
        ("https://2130706433:{port}/mcp", ("blocked", "invalid_url")),
        ("https://0x7f.1:{port}/mcp", ("blocked", "invalid_url")),
        ("ftp://127.0.0.1:{port}/mcp", ("blocked", "invalid_url")),
        ("file:///etc/passwd", ("blocked", "invalid_url")),
    ],
)
def test_a_private_address_is_not_dialled(url: str, path: tuple[str, ...]) -> None:
    """client-behaviour §11.2: refused before any dial."""

    async def tries() -> None:
        before = Held.now()
        async with HttpPeer(script("modern")) as peer:
            spec = {"name": "peer", "url": url.format(port=peer.port), "fail_fast": True}
            client = Client(spec, tables=Tables())
            await client.start()
            await try_to_connect(Trial(client, list), path)
            await client.stop()
            assert peer.raw == []
        await before.settled()

    asyncio.run(tries())


def test_tls_to_a_server_that_has_none() -> None:
    async def refuses(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    async def tries() -> None:
        before = Held.now()
        server = await asyncio.start_server(refuses, "127.0.0.1", 0)
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
        spec = {"name": "peer", "url": url, "fail_fast": True, "allow_private": True}
        client = Client(spec, tables=Tables())
        await client.start()
        await try_to_connect(Trial(client, list), ("transport", "tls"))
        await client.stop()
        server.close()
        await server.wait_closed()
        await before.settled()

    asyncio.run(tries())


def test_a_session_that_is_forgotten_is_greeted_again_once() -> None:
    """MCP 2025-11-25 basic/transports §Session Management: a 404 asks for a new initialize."""

    async def tries() -> None:
        async with http_client(script("legacy")) as (client, peer):
            assert await attempt(list_tools(client)) == Says(["echo", "slow"])
            peer.sessions.clear()
            calls = [asyncio.ensure_future(attempt(echo(client))) for _ in range(5)]
            assert set(await asyncio.gather(*calls)) == {
                Error("SessionLost", ("session_rejected",))
            }
            assert client.status().status == "ready"
            assert await attempt(echo(client)) == Says("x")
            assert await attempt(list_tools(client)) == Says(["echo", "slow"])
            assert peer.methods.count("initialize") == 2
            assert peer.methods.count("tools/list") == 2  # what was known is out of date

    asyncio.run(tries())


def test_a_session_that_is_always_forgotten_is_given_up() -> None:
    """ours: 404 for ever is no loop."""

    async def tries() -> None:
        async with http_client(
            script("legacy", on("tools/call", http(404))), spec={"reconnect": BOUND}
        ) as (client, peer):
            outcomes = {await attempt(echo(client)) for _ in range(10)}
            assert Error("SessionLost", ("session_rejected",)) in outcomes
            assert client.status().status == "closed"
            assert client.status().retry_in is not None
            assert peer.methods.count("initialize") <= 5

    asyncio.run(tries())


def test_a_server_that_restarts_is_found_again() -> None:
    """BC-103, the kind: one call may fail; then all is as before."""

    async def tries() -> None:
        async with http_client(script("legacy")) as (client, peer):
            assert await attempt(echo(client)) == Says("x")
            await peer.stop()
            assert isinstance(await attempt(echo(client)), Error)
            await peer.start()
            outcomes = [await attempt(echo(client)) for _ in range(2)]
            assert outcomes[-1] == Says("x")

    asyncio.run(tries())


def test_connections_that_are_closed_between_calls_cost_no_call() -> None:
    """ours: a server may close what is idle (RFC 9112 §9.3)."""

    async def tries() -> None:
        async with http_client(script("legacy", keep=False)) as (
            client,
            peer,
        ):
            for _ in range(5):
                assert await attempt(echo(client)) == Says("x")
                await peer.until(lambda: peer.open == 0)

    asyncio.run(tries())


ENDPOINTS: Final = [
    "http://evil.example/messages",
    "//evil.example/m",
    "http://user@evil.example/",
    "\\\\evil.example\\m",
    "https://127.0.0.1/messages",
    "javascript:1",
    "http://127.0.0.1:1/messages",
    "",
]


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_an_endpoint_elsewhere_is_not_used(endpoint: str) -> None:
    """MCP 2024-11-05 basic/transports §HTTP with SSE; BC-109."""

    async def tries() -> None:
        leads = on("GET", sse(f"event: endpoint\ndata: {endpoint}\n\n"), silent())
        data = script("two_endpoints", leads)
        async with http_client(data, spec={"fail_fast": True}, ready=False) as (client, peer):
            outcome = await attempt(client.await_ready(timeout=BOUND))
            assert isinstance(outcome, Error)
            assert outcome.name == "ConnectFailed"
            assert client.status().retry_in is not None
            # POSTs to the address itself came first; nothing went anywhere else.
            assert {each.target for each in peer.received} == {"/sse"}

    asyncio.run(tries())


def test_a_call_that_timed_out_is_stopped_on_the_wire() -> None:
    """MCP 2025-11-25 basic/utilities/cancellation; of a stateless call the response is closed."""

    async def tries(preset: str) -> None:
        async with http_client(script(preset)) as (client, peer):
            outcome = await attempt(client.call_tool("slow", {}, timeout=0.5))
            assert outcome == TIMEOUT
            async with asyncio.timeout(BOUND):
                await peer.until(lambda: peer.running == 0)
                if preset == "legacy":
                    await peer.until(lambda: "notifications/cancelled" in peer.methods)
            assert await attempt(echo(client)) == Says("x")

    asyncio.run(tries("legacy"))
    asyncio.run(tries("modern"))
