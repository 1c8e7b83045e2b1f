"""HTTP with server-sent events as MCP 2024-11-05 had it."""

from __future__ import annotations

import asyncio
import json

import pytest

from raxol_mcp.testing.virtual_loop import run_virtual
from tests.transports.http.client import HttpClient, Json, Open
from tests.transports.http.world import JSON_HEADERS, World, text_of

EVENTS = {"accept": "text/event-stream"}
GREETING: Json = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2024-11-05", "capabilities": {}},
}


async def connected(world: World, http: HttpClient | None = None) -> tuple[Open, str]:
    """Open a stream; return it and where to POST."""
    stream = (http or world.http).open("GET", "/mcp/sse", EVENTS)
    event = await stream.event()
    assert event.name == "endpoint"
    return stream, event.data.decode()


def post(world: World, place: str, body: object) -> Open:
    """POST a message as a client of that revision does."""
    headers = {"content-type": "application/json"}
    return world.http.open("POST", place, headers, json.dumps(body).encode())


def call(id: int, name: str, arguments: Json) -> Json:
    """Write a call."""
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


def test_the_stream_says_where_to_post_and_carries_every_answer() -> None:
    """MCP 2024-11-05 basic/transports §HTTP with SSE"""

    async def main() -> None:
        world = World()
        stream, place = await connected(world)
        assert place.startswith("/mcp/messages?session_id=")
        reply = await post(world, place, GREETING).ended()
        assert (reply.status, reply.body) == (202, b"")
        greeted = await stream.message()
        assert greeted["result"]["protocolVersion"] == "2024-11-05"
        await post(world, place, {"jsonrpc": "2.0", "method": "notifications/initialized"}).ended()
        await post(world, place, call(1, "echo", {"text": "hi"})).ended()
        assert text_of(await stream.message()) == "hi"
        world.server.notify("notifications/tools/list_changed")
        assert (await stream.message())["method"] == "notifications/tools/list_changed"
        stream.leave()
        await stream.ended()
        assert world.stats()["legacy"] == world.stats()["connections"] == 0

    run_virtual(main)


def test_the_place_to_post_is_below_the_mount() -> None:
    """Ours: K29"""

    async def main() -> None:
        world = World()
        stream, place = await connected(world, HttpClient(world.app, root_path="/api/v 1"))
        assert place.startswith("/api/v%201/mcp/messages?session_id=")
        stream.leave()
        await stream.ended()

    run_virtual(main)


def test_a_post_without_its_session_reaches_nobody() -> None:
    """MCP 2025-11-25 §Session Management; byterover-cli#330"""

    async def main() -> None:
        world = World()
        stream, place = await connected(world)
        await post(world, place, GREETING).ended()
        await stream.message()
        inject = call(1, "echo", {"text": "inject"})
        for wrong, status in (
            ("/mcp/messages", 400),
            ("/mcp/messages?session_id=", 400),
            ("/mcp/messages?session_id=unknown", 404),
            (f"{place}&session_id=other", 400),
        ):
            assert (await post(world, wrong, inject).ended()).status == status, wrong
        await asyncio.sleep(1)
        assert world.journal == []
        stream.leave()
        assert len((await stream.ended()).events()) == 2

    run_virtual(main)


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({"content-type": "text/plain"}, b"{}", 415),
        ({"content-encoding": "gzip"}, b"{}", 415),
        ({}, b"{", 400),
        ({}, b"{}", 400),
        ({}, b'{"jsonrpc":"2.0","method":5}', 400),
        ({}, b" " * (5 * 1024 * 1024), 413),
    ],
)
def test_what_is_no_message_is_refused(
    headers: dict[str, str | None], body: bytes, status: int
) -> None:
    """Ours: the same for every POST"""

    async def main() -> None:
        world = World()
        stream, place = await connected(world)
        reply = await world.http.send("POST", place, {**JSON_HEADERS, **headers}, body)
        assert reply.status == status
        stream.leave()
        await stream.ended()

    run_virtual(main)


def test_losing_the_stream_ends_the_connection_and_its_calls() -> None:
    """MCP 2024-11-05 basic/transports §HTTP with SSE"""

    async def main() -> None:
        world = World()
        stream, place = await connected(world)
        await post(world, place, GREETING).ended()
        await post(world, place, call(1, "sleep", {"seconds": 60, "tag": "a"})).ended()
        await asyncio.sleep(0.1)
        stream.leave()
        await stream.ended()
        await asyncio.sleep(0)
        assert world.journal == ["start:a", "cancelled:a"]
        assert (await post(world, place, GREETING).ended()).status == 404

    run_virtual(main)


def test_who_reads_no_answers_can_ask_no_more() -> None:
    """Ours: docs/limits.md, 2024-11-05"""

    async def main() -> None:
        world = World()
        stream, place = await connected(world)
        await post(world, place, GREETING).ended()
        await stream.message()
        stream.stall()
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        statuses = [(await post(world, place, ping).ended()).status for _ in range(300)]
        assert statuses.count(202) <= 258
        assert statuses[-1] == 503
        assert not (await stream.ended()).complete, "it is cut off in the end"

    run_virtual(main)


def test_the_old_urls_can_be_left_out() -> None:
    """Ours: `asgi_app(legacy_sse=False)`"""

    async def main() -> None:
        world = World(legacy_sse=False)
        assert (await world.http.send("GET", "/mcp/sse", EVENTS)).status == 404
        assert (await world.http.send("POST", "/mcp/messages")).status == 404

    run_virtual(main)


def test_streams_have_a_bound_and_a_kind() -> None:
    """Ours: docs/limits.md, max_streams; RFC 9110 §15.5.7"""

    async def main() -> None:
        world = World(max_streams=1)
        stream, _ = await connected(world)
        assert (await world.http.send("GET", "/mcp/sse", EVENTS)).status == 503
        json_only = {"accept": "application/json"}
        assert (await world.http.send("GET", "/mcp/sse", json_only)).status == 406
        stream.leave()
        await stream.ended()

    run_virtual(main)


def test_the_server_can_end_the_stream() -> None:
    """Ours: `Sink.close`"""

    async def main() -> None:
        world = World()
        stream, place = await connected(world)
        await post(world, place, GREETING).ended()
        await world.app.stop()
        assert (await stream.ended()).complete

    run_virtual(main)


def test_a_burst_of_equal_changes_is_one_event() -> None:
    """Ours: ADR-0014"""

    async def main() -> None:
        world = World()
        stream, place = await connected(world)
        await post(world, place, GREETING).ended()
        await stream.message()
        for _ in range(1000):
            world.server.notify("notifications/tools/list_changed")
        world.server.notify("notifications/odd")
        told = [(await stream.message())["method"] for _ in range(2)]
        assert told == ["notifications/tools/list_changed", "notifications/odd"]
        stream.leave()
        await stream.ended()

    run_virtual(main)
