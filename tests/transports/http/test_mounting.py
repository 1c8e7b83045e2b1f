"""The application inside of a framework's."""

from __future__ import annotations

import asyncio

from starlette.applications import Starlette
from starlette.routing import Mount, Route

from raxol_mcp.testing.virtual_loop import run_virtual
from tests.transports.http.client import HttpClient, Json
from tests.transports.http.world import World, text_of

ECHO: Json = {"name": "echo", "arguments": {"text": "x"}}


def test_it_can_be_mounted_below_any_path() -> None:
    """Ours: K29"""

    async def main() -> None:
        world = World()
        outer = Starlette(routes=[Mount("/api", app=world.app)])
        world.http = HttpClient(outer)
        for path in ("/api/mcp", "/api/mcp/"):
            reply = await world.ask_modern(1, "tools/call", ECHO, path=path).ended()
            assert (reply.status, text_of(reply.json())) == (200, "x")
        assert (await world.http.send("GET", "/api/health")).status == 200
        stream = world.http.open("GET", "/api/mcp/sse", {"accept": "text/event-stream"})
        place = (await stream.event()).data.decode()
        assert place.startswith("/api/mcp/messages?session_id=")
        stream.leave()
        await stream.ended()

    run_virtual(main)


def test_it_can_be_mounted_at_the_root_beside_other_routes() -> None:
    """Ours: K29: no redirect between the two spellings of the endpoint"""

    async def main() -> None:
        world = World()

        async def other(scope: object, receive: object, send: object) -> None:
            raise AssertionError("not called")

        outer = Starlette(routes=[Route("/other", other), Mount("/", app=world.app)])
        world.http = HttpClient(outer)
        for path in ("/mcp", "/mcp/"):
            reply = await world.ask_modern(1, "tools/call", ECHO, path=path).ended()
            assert (reply.status, text_of(reply.json())) == (200, "x")

    run_virtual(main)


def test_it_lives_with_the_lifespan_of_the_whole() -> None:
    """Ours: `HttpApp.lifespan`"""

    async def main() -> None:
        world = World()
        outer = Starlette(routes=[Mount("/", app=world.app)], lifespan=world.app.lifespan)
        world.http = HttpClient(outer)
        async with outer.router.lifespan_context(outer):
            assert (await world.ask_modern(1, "tools/call", ECHO).ended()).status == 200
            stream = world.http.open("GET", "/mcp/sse", {"accept": "text/event-stream"})
            await stream.event()
        assert (await stream.ended()).complete
        assert (await world.ask_modern(1, "tools/call", ECHO).ended()).status == 503

    run_virtual(main)


def test_without_a_lifespan_the_first_request_starts_it_once() -> None:
    """Ours: `HttpApp`"""

    async def main() -> None:
        world = World()
        outer = Starlette(routes=[Mount("/", app=world.app)])
        world.http = HttpClient(outer)
        calls = [world.ask_modern(n, "tools/call", ECHO) for n in range(10)]
        replies = [await call.ended() for call in calls]
        assert [reply.status for reply in replies] == [200] * 10
        assert world.server._serving == 1
        await asyncio.sleep(0)

    run_virtual(main)
