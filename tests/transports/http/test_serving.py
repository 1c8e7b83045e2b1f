"""The application under a real uvicorn, on real sockets."""

from __future__ import annotations

import asyncio
import gc
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from raxol_mcp import ConfigurationError, Server, serve_http
from raxol_mcp.server.authorizer import allow_all
from raxol_mcp.transports.http.collector import YOUNG_OBJECTS
from tests.transports.http.world import CAPABILITIES, JSON_HEADERS, MODERN, VERSION

ROOT = Path(__file__).parents[3]
PROGRAM = Path(__file__).parent / "http_program.py"
BOUND = 20.0


@contextmanager
def served(**options: Any) -> Iterator[tuple[subprocess.Popen[str], str, int]]:
    """Run the program; yield it with its host and port."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    with subprocess.Popen(
        [sys.executable, str(PROGRAM), json.dumps(options)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
        text=True,
    ) as program:
        assert program.stdout is not None
        try:
            address = urlsplit(program.stdout.readline().strip())
            assert address.hostname is not None
            assert address.port is not None
            yield program, address.hostname, address.port
        finally:
            program.kill()


def call(id: int, name: str, **arguments: object) -> tuple[bytes, dict[str, str]]:
    """Write a call of the stateless era: body and headers."""
    meta = {VERSION: MODERN, CAPABILITIES: {}}
    params = {"name": name, "arguments": arguments, "_meta": meta}
    body = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
    headers = {key: value for key, value in JSON_HEADERS.items() if value is not None}
    headers |= {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": name}
    return json.dumps(body).encode(), headers


def echoed(host: str, port: int) -> bool:
    """Say whether a good client is served."""
    body, headers = call(1, "echo", text="alive")
    with closing(http.client.HTTPConnection(host, port, timeout=BOUND)) as connection:
        connection.request("POST", "/mcp", body, headers)
        return b"alive" in connection.getresponse().read()


def descriptors(program: subprocess.Popen[str]) -> int:
    """Count what the program has open."""
    return len(os.listdir(f"/proc/{program.pid}/fd"))


def settled(program: subprocess.Popen[str], wanted: int, *, exactly: bool = False) -> bool:
    """Wait, within a bound, until the program has no more than (or exactly) so many descriptors."""
    end = time.monotonic() + BOUND
    while (count := descriptors(program)) > wanted or (exactly and count != wanted):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def raw(host: str, port: int, data: bytes = b"") -> socket.socket:
    """Open a connection and write something to it."""
    connection = socket.create_connection((host, port), timeout=BOUND)
    connection.sendall(data)
    return connection


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_serving_with_streams_open_and_lets_calls_finish(
    number: signal.Signals,
) -> None:
    """Ours: docs/limits.md, drain_timeout"""
    with served() as (program, host, port):
        listen = http.client.HTTPConnection(host, port, timeout=BOUND)
        body, headers = call(1, "sleep", seconds=0.7, tag="x")
        running = http.client.HTTPConnection(host, port, timeout=BOUND)
        running.request("POST", "/mcp", body, headers)
        listen.request("GET", "/mcp/sse", headers={"accept": "text/event-stream"})
        stream = listen.getresponse()
        assert stream.readline() == b"event: endpoint\n"
        program.send_signal(number)
        assert b"slept x" in running.getresponse().read()
        assert stream.read().endswith(b"\n\n"), "the stream has an orderly end"
        assert program.wait(BOUND) == 0
        assert program.stdout is not None
        assert program.stdout.read().strip() == number.name
        stream.close()
        for connection in (listen, running):
            connection.close()


@pytest.mark.slow
def test_a_client_that_closes_its_connection_cancels_and_leaves_no_descriptor() -> None:
    """MCP 2026-07-28 streamable-http §Cancellation; ours: K20"""
    with served() as (program, host, port):
        assert echoed(host, port)
        before = descriptors(program)
        for _ in range(50):
            body, headers = call(1, "sleep", seconds=60, tag="x")
            connection = http.client.HTTPConnection(host, port, timeout=BOUND)
            connection.request("POST", "/mcp", body, headers)
            connection.close()
        # Their calls fill the share of everybody who is anonymous until each is noticed.
        end = time.monotonic() + BOUND
        while not echoed(host, port):
            assert time.monotonic() < end
        assert settled(program, before)


@pytest.mark.slow
def test_hostile_connections_are_given_up_and_a_good_client_is_served() -> None:
    """Ours: docs/limits.md; K12"""
    with served(head_timeout=1.0, write_timeout=1.0) as (program, host, port):
        assert echoed(host, port)
        before = descriptors(program)
        head = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        kept = [
            raw(host, port),
            raw(host, port, b"PO"),
            raw(host, port, head),
            raw(host, port, head + b"X-A: " + b"a" * 40_000),
            raw(host, port, b"\x00\xff garbage\r\n\r\n"),
            raw(host, port, b"GET /" + b"a" * 60_000),
        ]
        kept.append(raw(host, port, head))
        with pytest.raises(OSError, match=r"reset|[Bb]roken pipe"):  # noqa: PT012  # any write may
            for _ in range(10_000):
                kept[-1].sendall(b"X-B: " + b"b" * 1000 + b"\r\n")
        # A reader that takes nothing: its answer is larger than every buffer on the way.
        body, headers = call(1, "big", size=15_000_000)
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        lines += f"Content-Length: {len(body)}\r\n\r\n"
        kept.append(raw(host, port, head + lines.encode() + body))
        assert echoed(host, port)
        assert settled(program, before), "nothing of it is left, although the peers still are there"
        assert echoed(host, port)
        for connection in kept:
            connection.close()


@pytest.mark.slow
def test_connections_have_a_bound() -> None:
    """Ours: docs/limits.md, max_connections"""
    with served(max_connections=3) as (program, host, port):
        before = descriptors(program)
        kept = [raw(host, port) for _ in range(3)]
        assert settled(program, before + 3, exactly=True)
        with pytest.raises(OSError, match=r"reset|without response|aborted"):
            echoed(host, port)
        for connection in kept:
            connection.close()
        assert settled(program, before)
        assert echoed(host, port)


def _server() -> Server:
    return Server(
        "serving",
        authorizer=allow_all(),
        authorizer_source="configured",
        read_authorizer=allow_all(),
    )


def test_a_network_address_without_authentication_is_refused() -> None:
    """Ours: the message names the option that would allow it"""
    for host in ("0.0.0.0", "192.0.2.1", "::", "some.name"):
        with pytest.raises(ConfigurationError, match="allow_unauthenticated"):
            asyncio.run(serve_http(_server(), host=host, port=0))
        with pytest.raises(ConfigurationError, match="allowed_hosts"):
            asyncio.run(serve_http(_server(), host=host, port=0, allow_unauthenticated=True))


def test_an_address_that_cannot_be_bound_is_refused() -> None:
    """Ours: `serve_http`"""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=f"cannot listen on 127.0.0.1 port {port}"):
            asyncio.run(serve_http(_server(), port=port))
    with pytest.raises(ConfigurationError, match="cannot listen"):
        asyncio.run(
            serve_http(
                _server(),
                host="no.such.host.invalid",
                allow_unauthenticated=True,
                allowed_hosts=["*"],
            )
        )


def test_an_unguarded_server_does_not_bind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: the deployment gate"""
    monkeypatch.setenv("RAXOL_MCP_ENV", "production")
    with pytest.raises(ConfigurationError, match="authorizer"):
        asyncio.run(serve_http(Server("open"), port=0))


@asynccontextmanager
async def serving(**options: Any) -> AsyncIterator[tuple[str, int]]:
    """Serve in this process; yield the host and the port."""
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = asyncio.ensure_future(
        serve_http(_server(), port=0, drain_timeout=0.1, ready=ready.set_result, **options)
    )
    try:
        address = urlsplit(await ready)
        assert address.hostname is not None
        assert address.port is not None
        yield address.hostname, address.port
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


def test_an_answer_without_a_body_comes_whole_and_the_connection_goes_on() -> None:
    """RFC 9110 §9.3.2; ours: one write for an answer"""

    async def main() -> None:
        async with serving() as (host, port):
            reader, writer = await asyncio.open_connection(host, port)
            for method, body in ((b"HEAD", b""), (b"GET", b'{"status":"ok"}'), (b"HEAD", b"")):
                writer.write(method + b" /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                head = await reader.readuntil(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 200 OK")
                assert await reader.readexactly(len(body)) == body
            writer.write(b"no http\r\n\r\n")
            assert b"400" in await reader.readline()
            writer.close()

    asyncio.run(main())


def test_the_public_path_may_have_a_part_that_a_proxy_takes_away() -> None:
    """Ours: `serve_http(root_path=...)`"""

    async def main() -> None:
        async with serving(root_path="/api") as (host, port):
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(b"GET /mcp/sse HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await reader.readuntil(b"event: endpoint\n")
            assert (await reader.readline()).startswith(b"data: /api/mcp/messages?session_id=")
            writer.close()

    asyncio.run(main())


@pytest.mark.parametrize("root_path", ["api", "/api/", "/"])
def test_a_root_path_that_no_proxy_could_take_away_is_refused(root_path: str) -> None:
    """Ours: `serve_http(root_path=...)`"""
    with pytest.raises(ConfigurationError, match="root_path"):
        asyncio.run(serve_http(_server(), port=0, root_path=root_path))


@pytest.mark.parametrize("rarely", [True, False])
def test_the_garbage_collector_is_left_as_it_was_found(rarely: bool) -> None:
    """Ours: ADR-0021"""
    before = gc.get_threshold(), gc.get_freeze_count()

    async def main() -> None:
        async with serving(collect_rarely=rarely):
            assert (gc.get_threshold()[0] == YOUNG_OBJECTS) is rarely
            assert (gc.get_freeze_count() > 0) is rarely

    asyncio.run(main())
    assert (gc.get_threshold(), gc.get_freeze_count()) == before


def test_a_cancelled_task_ends_serving_in_order() -> None:
    """Ours: `serve_http`"""

    async def main() -> None:
        ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        server = _server()
        serving = asyncio.ensure_future(
            serve_http(server, port=0, drain_timeout=0.1, ready=ready.set_result)
        )
        address = urlsplit(await ready)
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"200 OK" in await reader.readline()
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving
        writer.close()
        assert not server.authorization_configured(), "it has stopped"
        with pytest.raises(OSError, match=r"refused|Connect call failed"):
            await asyncio.open_connection(address.hostname, address.port)

    asyncio.run(main())
