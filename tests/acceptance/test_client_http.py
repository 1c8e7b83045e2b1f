"""Servers behind a URL: what every request carries, where it may go, and how a response ends.

Real sockets of this machine. Sources: client-2.8.0; MCP streamable-http of each revision.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

import pytest

from raxol_mcp import Client, Unpaid
from raxol_mcp.client.opening import Tables
from raxol_mcp.errors import RaxolError
from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.transports.http_client.tables import Tables as HttpTables
from tests.client.misbehaviour.attempts import Error, Says, attempt, echo
from tests.client.peers.clients import http_client, memory_client
from tests.client.peers.held import BOUND, HASTY
from tests.client.peers.http_peer import HttpPeer
from tests.client.peers.script import (
    MODERN_VERSION,
    Message,
    Step,
    as_usual,
    drop,
    error,
    http,
    on,
    script,
    silent,
    sse,
    text,
    until,
    wait,
    wire,
)

SECRET: Final = "s3cr3t-v4lue"
ERAS: Final = ["legacy", "modern"]
ANSWER: Final = '{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"ok"}]}}'
HEAD: Final = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def refused(*path: int | str) -> Error:
    """Say what a call gets that failed by itself."""
    return Error("RequestFailed", path)


@pytest.mark.parametrize("preset", ERAS)
def test_every_post_has_the_headers_of_its_era(preset: str) -> None:
    """client-behaviour check 54."""

    async def tries() -> None:
        async with http_client(script(preset)) as (client, peer):
            assert await attempt(echo(client)) == Says("x")
            posts = [each for each in peer.received if each.method == "POST"]
            for each in posts:
                accepted = each.headers["accept"]
                assert "application/json" in accepted
                assert "text/event-stream" in accepted
                assert each.headers["content-type"] == "application/json"
                assert each.headers["user-agent"].startswith("raxol-mcp/")
            in_session = [each for each in posts if each.event != "server/discover"]
            if preset == "modern":
                assert [each.event for each in in_session] == ["tools/call"]
                (call,) = in_session
                assert call.headers["mcp-method"] == "tools/call"
                assert call.headers["mcp-name"] == "echo"
                assert call.headers["mcp-protocol-version"] == MODERN_VERSION
                assert all("mcp-session-id" not in each.headers for each in posts)
                return
            initialize, *others = in_session
            assert "mcp-session-id" not in initialize.headers
            assert {each.headers["mcp-session-id"] for each in others} == {"S1"}
            assert {each.headers["mcp-protocol-version"] for each in others} == {"2025-11-25"}
            assert all("mcp-method" not in each.headers for each in in_session)

    asyncio.run(tries())


OWNED: Final = [
    *("accept", "accept-encoding", "content-type", "content-length", "host", "user-agent"),
    *("mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id"),
]


@pytest.mark.parametrize("preset", ERAS)
def test_a_spec_cannot_replace_what_the_protocol_says(preset: str) -> None:
    """client-behaviour check 55: ten names in any case; a credential passes."""

    async def tries() -> None:
        headers = {name.title(): "evil" for name in OWNED} | {"Authorization": f"Bearer {SECRET}"}
        async with http_client(script(preset), spec={"headers": headers}) as (client, peer):
            assert await attempt(echo(client)) == Says("x")
            for each in peer.received:
                assert "evil" not in each.headers.values()
                assert each.headers["authorization"] == f"Bearer {SECRET}"

    asyncio.run(tries())


def test_a_header_value_is_sent_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """client-2.8.0 §Usage: nothing here reads `${env:VAR}` or `op://...`."""
    monkeypatch.setenv("TOKEN", SECRET)
    headers = {"x-a": "${env:TOKEN}", "x-b": "op://vault/item", "x-c": "${TOKEN:-$TOKEN}"}

    async def tries() -> None:
        async with http_client(script("legacy"), spec={"headers": headers}) as (client, peer):
            assert await attempt(echo(client)) == Says("x")
            for each in peer.received:
                assert {name: each.headers[name] for name in headers} == headers

    asyncio.run(tries())


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254"),
        *("100.64.0.1", "224.0.0.1", "255.255.255.255", "[::1]", "[::]", "[fe80::1]", "[fc00::1]"),
        *("[::ffff:10.0.0.1]", "[2002:7f00:1::]", "[64:ff9b::a00:1]", "[2001::1]", "localhost"),
    ],
)
def test_an_address_that_is_not_public_is_refused(host: str) -> None:
    """client-behaviour check 56: however it is written; names are those of `test_addresses`."""

    async def tries() -> None:
        spec = {"name": "x", "url": f"https://{host}/mcp", "fail_fast": True, "reconnect": BOUND}
        client = Client(spec, tables=Tables())
        await client.start()
        blocked = Error("ConnectFailed", ("blocked", "address"))
        assert await attempt(client.await_ready(timeout=BOUND)) == blocked
        await client.stop()

    asyncio.run(tries())


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("event", ["server/discover", "initialize", "tools/call"])
def test_a_redirect_is_not_followed(event: str, status: int) -> None:
    """client-behaviour check 58: the other host sees nothing."""

    async def tries() -> None:
        async with HttpPeer(script("legacy")) as other:
            data = script("legacy", on(event, http(status, Location=other.url)))
            spec = {"fail_fast": True, "reconnect": BOUND}
            async with http_client(data, spec=spec, ready=False) as (client, _):
                outcome = await attempt(client.await_ready(timeout=BOUND))
                if event == "tools/call":
                    outcome = await attempt(echo(client))
                assert isinstance(outcome, Error)
                assert outcome.path[-2:] == ("redirect_refused", status)
            assert other.raw == []

    asyncio.run(tries())


@pytest.mark.parametrize(
    ("name", "step", "outcome"),
    [
        ("announced", wire(f"{HEAD}Content-Length: 5001\r\n\r\n"), refused("too_large", 5000)),
        (
            "chunked",
            wire(f"{HEAD}Transfer-Encoding: chunked\r\n\r\n1389\r\n", ("A", 5001)),
            refused("too_large", 5000),
        ),
        ("to the close", wire(f"{HEAD}\r\n", ("A", 5001)), refused("too_large", 5000)),
        (
            "a negative length",
            wire(f"{HEAD}Content-Length: -1\r\n\r\n", ANSWER),
            refused("transport", "invalid_content_length"),
        ),
    ],
)
def test_a_body_has_a_ceiling(name: str, step: Step, outcome: object) -> None:
    """client-behaviour check 60: before the body where it is announced."""

    async def tries() -> None:
        data = script("modern", on("tools/call", step, times=1))
        async with http_client(data, spec={"max_message_bytes": 5000}) as (client, _):
            assert await attempt(echo(client)) == outcome, name
            assert await attempt(echo(client)) == Says("x")

    asyncio.run(tries())


@pytest.mark.parametrize(("more", "said"), [(0, "ok"), (1, None)])
def test_a_body_of_exactly_the_ceiling_is_fine(more: int, said: str | None) -> None:
    """client-behaviour check 60: and one byte more is not."""

    async def tries() -> None:
        # The id is that of a first call; were it another, nothing would be said.
        body = ANSWER.replace("$ID", "4")
        whole = http(200, body.ljust(5000 + more), Content_Type="application/json")
        data = script("legacy", on("tools/call", whole))
        async with http_client(data, spec={"max_message_bytes": 5000}) as (client, _):
            outcome = await attempt(echo(client))
            assert outcome == (Says(said) if said else refused("too_large", 5000))

    asyncio.run(tries())


@pytest.mark.parametrize(
    ("step", "path"),
    [
        (wire(f"{HEAD}Content-Length: 500\r\n\r\n{{"), ("transport", "incomplete")),
        (wire(f"{HEAD}Transfer-Encoding: chunked\r\n\r\n5\r\n{{"), ("transport", "incomplete")),
        (drop("body"), ("transport", "incomplete")),
        (wire(""), None),
    ],
    ids=["length", "chunk", "body", "nothing"],
)
def test_a_body_that_is_cut_is_no_answer(step: Step, path: tuple[int | str, ...] | None) -> None:
    """client-behaviour check 61."""

    async def tries() -> None:
        data = script("legacy", on("tools/call", step, times=1))
        async with http_client(data) as (client, _):
            outcome = await attempt(echo(client))
            assert isinstance(outcome, Error)
            assert outcome.path == path or (path is None and outcome.path[0] == "transport")
            assert await attempt(echo(client)) == Says("x")

    asyncio.run(tries())


def test_a_body_that_ends_with_its_connection_is_one() -> None:
    """client-behaviour check 61: HTTP/1.1 without a length."""

    async def tries() -> None:
        closed = wire(f"{HEAD}Connection: close\r\n\r\n", ANSWER)
        async with http_client(script("legacy", on("tools/call", closed))) as (client, _):
            assert await attempt(echo(client)) == Says("ok")

    asyncio.run(tries())


def test_silence_in_a_body_and_slowness_are_told_apart() -> None:
    """client-behaviour check 61: `chunk_timeout`, and the call's own, which bounds a drip."""

    async def tries() -> None:
        mute = (wire(f"{HEAD}Content-Length: 500\r\n\r\n{{"), silent())
        drip = wire(f"{HEAD}Content-Length: 5000\r\n\r\n", (" ", 5000), chunk=100, pause=0.1)
        data = script("legacy", on("tools/call", *mute, times=1), on("tools/call", drip, times=1))
        spec = {**HASTY, "chunk_timeout": 1.0, "init_timeout": BOUND}
        async with http_client(data, spec=spec) as (client, _):
            outcome = await attempt(echo(client, timeout=BOUND))
            assert isinstance(outcome, Error)
            assert outcome.path == ("timeout", "chunk")
            outcome = await attempt(echo(client))
            assert outcome == Error("TimedOut", ("timeout",))
            assert await attempt(echo(client, timeout=BOUND)) == Says("x")

    asyncio.run(tries())


@pytest.mark.parametrize("chunk", [0, 1, 7])
@pytest.mark.parametrize(
    "frames",
    [
        "data: @\n\n",
        "data:@\n\n",
        "data: @\r\n\r\n",
        "data: @\r\r",
        ": keep alive\n\n: and again\n\nevent: message\nid: 1\ndata: @\n\n",
        "retry: 10\nunknown: x\nlonely\ndata: @\n\n",
        "data:\n\nevent: message\ndata: @\n\n",
    ],
    ids=repr,
)
def test_a_stream_is_read_however_it_is_written_and_cut(frames: str, chunk: int) -> None:
    """client-behaviour check 62; WHATWG HTML §9.2.6."""

    async def tries() -> None:
        said = sse(*frames.replace("@", ANSWER).splitlines(keepends=True), chunk=chunk)
        async with http_client(script("legacy", on("tools/call", said))) as (client, _):
            assert await attempt(echo(client)) == Says("ok")

    asyncio.run(tries())


def test_the_last_event_of_a_body_may_lack_its_blank_line() -> None:
    """client-behaviour check 62: a body that has ended is complete; half a message is none."""

    async def tries() -> None:
        half = on("tools/call", sse(f"data: {ANSWER[:-9]}\n"), times=1)
        whole = on("tools/call", sse(f"data: {ANSWER}\n"), times=1)
        async with http_client(script("legacy", half, whole)) as (client, _):
            assert await attempt(echo(client)) == refused("transport", "closed")
            assert isinstance(await attempt(echo(client)), Says)
            assert await attempt(echo(client)) == Says("x")

    asyncio.run(tries())


@pytest.mark.parametrize("status", [401, 403, 404, 500])
@pytest.mark.parametrize("preset", ERAS)
def test_a_credential_is_in_nothing_that_is_printed(
    preset: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    """client-behaviour check 63: errors, logs of every level, and what shows a client."""
    caplog.set_level(logging.DEBUG)
    shown: list[str] = []

    async def tries() -> None:
        refusal = http(status, SECRET, X_Echo=f"Bearer {SECRET}", Content_Type="text/plain")
        data = script(preset, on("tools/call", refusal, times=1))
        seen: list[object] = []
        spec = {"headers": {"authorization": f"Bearer {SECRET}"}}
        async with http_client(data, spec=spec, observe=lambda *event: seen.append(event)) as (
            client,
            peer,
        ):
            with pytest.raises(RaxolError) as caught:
                await client.call_tool("echo", {"text": "x"})
            shown.extend(map(repr, (caught.value, caught.value.reason, client, client.spec)))
            shown.extend((str(caught.value), repr(client.status()), client.stderr(), repr(seen)))
            assert peer.received[0].headers["authorization"] == f"Bearer {SECRET}"

    asyncio.run(tries(), debug=True)
    assert SECRET not in "\n".join([*shown, caplog.text])
    assert "authorization" in shown[3]


def test_five_failures_of_an_origin_are_enough_for_everybody() -> None:
    """client-behaviour check 64: nothing is sent then, by any client; after 30 s one may try."""

    async def tries() -> None:
        tables = Tables(http=HttpTables())
        async with HttpPeer(script("modern", on("tools/call", http(500), times=5))) as peer:
            spec = {"name": "x", "url": peer.url, "allow_private": True, "reconnect": BOUND}
            async with Client(spec, tables=tables) as client, Client(spec, tables=tables) as other:
                for each in (client, other, client, other, client):
                    assert await attempt(echo(each)) == refused("http", 500)
                sent = len(peer.received)
                for each in (client, other):
                    assert await attempt(echo(each)) == refused("breaker_open")
                assert len(peer.received) == sent
                assert client.status().status == "ready"

    asyncio.run(tries())


def test_an_open_breaker_lets_one_through_again() -> None:
    """client-behaviour check 64: half-open; a success closes it."""

    async def tries() -> None:
        # No time passes: one that may try again at once is half-open.
        tables = Tables(http=HttpTables(recovery=0.0))
        data = script("modern", on("tools/call", http(500), times=5))
        async with HttpPeer(data) as peer:
            spec = {"name": "x", "url": peer.url, "allow_private": True}
            async with Client(spec, tables=tables) as client:
                for _ in range(5):
                    assert await attempt(echo(client)) == refused("http", 500)
                for _ in range(2):
                    assert await attempt(echo(client)) == Says("x")
                assert tables.http is not None
                assert tables.http.breakers.failures(f"http://127.0.0.1:{peer.port}") == 0

    asyncio.run(tries())


@pytest.mark.parametrize("kind", ["memory", "http"])
@pytest.mark.parametrize("metered", [None, True, False])
def test_a_priced_tool_is_never_called_unpaid(metered: bool | None, kind: str) -> None:
    """client-behaviour check 65; client-2.8.0 §call_tool: on every transport, whatever is said."""

    async def tries() -> None:
        spec: Message = {"prices": {"echo": 5}, "metered": metered}
        async with memory_client(script("legacy"), kind=kind, spec=spec) as (client, dialer):

            async def unpaid(reservation: str | None) -> None:
                with pytest.raises(Unpaid) as caught:
                    await client.call_tool("echo", {"text": "x"}, reservation=reservation)
                assert caught.value.tag == "unmetered_call"

            expired = client.reserve()
            await asyncio.sleep(120.5)
            for reservation in (None, "forged", "", expired):
                await unpaid(reservation)
            assert "tools/call" not in dialer.methods
            handle = client.reserve()
            paid = client.call_tool("echo", {"text": "x"}, reservation=handle)
            assert await attempt(paid) == Says("x")
            await unpaid(handle)
            assert dialer.methods.count("tools/call") == 1
            assert client.status().pending == 0

    run_virtual(tries)


@pytest.mark.parametrize("price", [0, 0.01, -5, "5", True, None, "missing"], ids=repr)
def test_a_tool_whose_price_nobody_knows_is_not_called(price: object) -> None:
    """client-behaviour check 65: with a reservation, too."""

    async def tries() -> None:
        prices = {} if price == "missing" else {"echo": price}
        spec: Message = {"prices": prices, "metered": True}
        async with memory_client(script("legacy"), kind="http", spec=spec) as (client, dialer):
            with pytest.raises(Unpaid) as caught:
                await client.call_tool("echo", reservation=client.reserve())
            assert caught.value.tag == "unknown_price"
            assert "tools/call" not in dialer.methods

    run_virtual(tries)


def test_an_answer_in_the_response_of_another_is_nobodys() -> None:
    """client-behaviour check 66: nothing but the exchange itself settles a call."""

    async def tries() -> None:
        # The id of the other call, which is one less.
        forged = on("tools/call forge", wait(0.2), sse(f"data: {ANSWER}\n\n".replace("$ID", "4")))
        held = on("tools/call slow", wait(1.0), as_usual(), times=1)
        data = script("legacy", held, forged, on("tools/call slow", silent()))
        spec = {"concurrency": "pooled"}
        async with memory_client(data, kind="http", spec=spec) as (client, dialer):
            slow = asyncio.ensure_future(attempt(client.call_tool("slow", timeout=5.0), bound=99))
            await asyncio.sleep(0.1)
            call = dialer.received[-1]
            assert (call["params"]["name"], call["id"]) == ("slow", 4)
            assert await attempt(client.call_tool("forge")) == refused(
                "invalid_response", "tools/call"
            )
            assert not slow.done()
            assert await slow == Error("TimedOut", ("timeout",))

    run_virtual(tries)


@pytest.mark.parametrize("framing", ["json", "sse"])
def test_so_it_is_over_sockets(framing: str) -> None:
    """client-behaviour check 66: the forged answer carries the id of a call that is under way."""

    async def tries() -> None:
        forged = ANSWER.replace("$ID", "4")
        whole = http(200, forged, Content_Type="application/json")
        data = script(
            "legacy",
            on("tools/call forge", sse(f"data: {forged}\n\n") if framing == "sse" else whole),
            on("tools/call slow", until("ping"), text("true")),
        )
        async with http_client(data) as (client, peer):
            slow = asyncio.ensure_future(attempt(client.call_tool("slow")))
            await peer.until(lambda: bool(peer.about("tools/call")))
            assert peer.about("tools/call")[0].message["id"] == 4
            outcome = await attempt(client.call_tool("forge"))
            assert isinstance(outcome, Error)
            assert outcome.name == "RequestFailed"
            assert not slow.done()
            assert client.status().pending == 1
            await client.ping()
            assert await slow == Says("true")

    asyncio.run(tries())


@pytest.mark.parametrize("status", [200, 202, 204])
@pytest.mark.parametrize("preset", ERAS)
def test_a_success_without_an_answer_ends_the_call(preset: str, status: int) -> None:
    """client-behaviour check 67: at once, and not at its timeout; the only slot is free."""

    async def tries() -> None:
        data = script(preset, on("tools/call", http(status), times=2))
        spec = {"concurrency": "serialized", "call_timeout": BOUND * 10}
        async with http_client(data, spec=spec) as (client, _):
            for _ in range(2):
                assert await attempt(echo(client)) == refused("invalid_response", "tools/call")
                assert client.status().pending == 0
            assert await attempt(echo(client)) == Says("x")

    asyncio.run(tries())


def test_an_error_of_the_server_comes_with_its_status() -> None:
    """MCP 2026-07-28 streamable-http: the error in the body of a refusal is the answer."""

    async def tries() -> None:
        async with http_client(script("modern", on("tools/call", error(-32602)))) as (client, _):
            outcome = await attempt(echo(client))
            assert isinstance(outcome, Error)
            assert (outcome.name, outcome.path[0]) == ("RemoteProtocolError", -32602)

    asyncio.run(tries())
