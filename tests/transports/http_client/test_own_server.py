"""The two ends of HTTP that this project has, against each other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from raxol_mcp import serve_http
from raxol_mcp.errors import Reason
from raxol_mcp.transports.http_client.link import HttpLink
from raxol_mcp.transports.link import Dialect
from raxol_mcp.wire.jsonrpc import Failure, Notification, Request, Response
from raxol_mcp.wire.meta import META_CLIENT_CAPABILITIES, META_VERSION, EraName
from tests.transports.http.world import World
from tests.transports.http_client.peers import HANG, Port, dialed

pytestmark = pytest.mark.slow

CLIENT = {"name": "test", "version": "0"}
META: dict[str, object] = {META_VERSION: "2026-07-28", META_CLIENT_CAPABILITIES: {}}


@asynccontextmanager
async def served() -> AsyncIterator[tuple[World, str]]:
    """Serve the tools that the tests of the server have; give the address."""
    world = World()
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.ensure_future(
        serve_http(
            world.server,
            port=0,
            require_authorization=False,
            drain_timeout=0.5,
            collect_rarely=False,
            ready=ready.set_result,
        )
    )
    try:
        async with asyncio.timeout(HANG):
            yield world, await ready
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


def tool(key: int, name: str, arguments: dict[str, object], *, modern: bool = False) -> Request:
    """Call a tool."""
    params: dict[str, object] = {"name": name, "arguments": arguments}
    return Request(key, "tools/call", {**params, "_meta": META} if modern else params)


def text_of(message: object) -> object:
    """Give the one text of a result."""
    assert isinstance(message, Response)
    assert isinstance(message.result, dict)
    (item,) = message.result["content"]
    return item["text"]


async def begin(link: HttpLink, port: Port, version: str) -> None:
    """Do the handshake."""
    params: dict[str, object] = {
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": CLIENT,
    }
    link.send(Request(1, "initialize", params), 1)
    await port.next(1)
    link.agreed(EraName.HANDSHAKE, version)
    link.send(Notification("notifications/initialized"), 2)
    await port.until(lambda: ("sent", 2, None) in port.told)
    port.told.clear()


def test_the_stateless_era() -> None:
    """MCP 2026-07-28: calls on one connection, and a closed stream that cancels"""

    async def main() -> None:
        async with served() as (world, url), dialed(url) as (link, port):
            link.send(Request(1, "server/discover", {"_meta": META}), 1)
            await port.next(1)
            assert isinstance(port.told[0][2], Response)
            link.agreed(EraName.STATELESS, "2026-07-28")
            link.send(tool(2, "echo", {"text": "hi"}, modern=True), 2)
            await port.next(2)
            assert text_of(port.told[1][2]) == "hi"
            link.send(tool(3, "sleep", {"seconds": 60.0, "tag": "a"}, modern=True), 3)
            while "start:a" not in world.journal:  # noqa: ASYNC110  # the tool has no event to set
                await asyncio.sleep(0.01)
            link.abort(3)
            while "cancelled:a" not in world.journal:  # noqa: ASYNC110  # as above
                await asyncio.sleep(0.01)
            link.send(tool(4, "nothing", {}, modern=True), 4)
            await port.next(3)
            assert isinstance(port.told[2][2], Failure)

    asyncio.run(main())


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", "2025-11-25"])
def test_the_handshake_era(version: str) -> None:
    """MCP 2025-11-25: progress before the answer, changes on the stream of the session"""

    async def main() -> None:
        async with served() as (world, url), dialed(url) as (link, port):
            await begin(link, port, version)
            call = tool(3, "progress", {"steps": 2})
            assert call.params is not None
            call.params["_meta"] = {"progressToken": "p"}
            link.send(call, 3)
            await port.next(3)
            kinds = [type(message) for _, _, message in port.told]
            assert kinds == [Notification, Notification, Response]
            assert {about for _, about, _ in port.told} == {3}
            port.told.clear()
            while not port.told:
                # The stream of the session is opened in the background.
                world.server.notify("notifications/tools/list_changed")
                await asyncio.sleep(0.01)
            changed = Notification("notifications/tools/list_changed")
            assert port.told[0] == ("received", None, changed)

    asyncio.run(main())


def test_the_oldest_transport() -> None:
    """MCP 2024-11-05: HTTP+SSE"""

    async def main() -> None:
        async with (
            served() as (_, url),
            dialed(f"{url}/sse", dialect=Dialect.TWO_ENDPOINTS) as (
                link,
                port,
            ),
        ):
            await begin(link, port, "2024-11-05")
            link.send(tool(3, "echo", {"text": "hi"}), 3)
            await port.next(1)
            assert text_of(port.told[0][2]) == "hi"

    asyncio.run(main())


def test_a_session_that_the_server_forgot() -> None:
    """MCP 2025-11-25 basic/transports §Session Management: rejected, and begun anew"""

    async def main() -> None:
        async with served() as (_, url), dialed(url, listen=False) as (link, port):
            await begin(link, port, "2025-11-25")
            link.session.id = "another"
            link.send(tool(3, "echo", {"text": "hi"}), 3)
            assert await port.reason_of(3) == Reason("session_rejected")
            port.told.clear()
            await begin(link, port, "2025-11-25")
            link.send(tool(4, "echo", {"text": "hi"}), 4)
            await port.next(1)
            assert text_of(port.told[0][2]) == "hi"

    asyncio.run(main())
