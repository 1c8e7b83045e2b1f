"""The official SDK's client, in both of its eras, over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Annotated

import mcp_types as types
import msgspec
import pytest
from mcp import Client
from mcp.client.session import ClientRequestContext

from raxol_mcp import Ask, serve_http
from tests.transports.http.world import World

BOUND = 20.0
MODES = ("legacy", "2026-07-28", "auto")

# The SDK warns about methods that its newest revision has dropped, which the older ones have.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]


class Confirm(msgspec.Struct):
    """What the human is asked."""

    yes: bool


@asynccontextmanager
async def connected(mode: str, action: str = "accept") -> AsyncIterator[tuple[Client, World]]:
    """Serve, and connect a client whose human answers every form with `action`."""
    world = World()

    @world.server.tool
    async def approve(path: str, answer: Annotated[Confirm, Ask("Delete {path}?")]) -> str:
        """Delete something, if the human wants that."""
        return f"deleted {path}" if answer.yes else "kept"

    async def asked(
        context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult:
        if action == "accept":
            return types.ElicitResult(action="accept", content={"yes": True})
        return types.ElicitResult(action="decline")

    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.ensure_future(
        serve_http(
            world.server,
            port=0,
            require_authorization=False,
            drain_timeout=0.5,
            ready=ready.set_result,
        )
    )
    try:
        url = await ready
        client = Client(url, mode=mode, elicitation_callback=asked, read_timeout_seconds=BOUND)
        async with client:
            yield client, world
    finally:
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving


def text_of(result: types.CallToolResult) -> str:
    """Return the one text of a result."""
    (item,) = result.content
    assert isinstance(item, types.TextContent)
    return item.text


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    """Run a scenario; nothing here should come near the bound."""

    async def bounded() -> None:
        async with asyncio.timeout(BOUND):
            await scenario()

    asyncio.run(bounded())


@pytest.mark.parametrize("mode", MODES)
def test_it_lists_calls_and_hears_progress(mode: str) -> None:
    async def scenario() -> None:
        async with connected(mode) as (client, _):
            assert client.protocol_version == ("2025-11-25" if mode == "legacy" else "2026-07-28")
            assert "echo" in [tool.name for tool in (await client.list_tools()).tools]
            assert text_of(await client.call_tool("echo", {"text": "hi"})) == "hi"
            heard: list[float] = []

            async def progressed(progress: float, total: float | None, message: str | None) -> None:
                heard.append(progress)

            result = await client.call_tool("progress", {"steps": 3}, progress_callback=progressed)
            assert (text_of(result), heard) == ("done", [1, 2, 3])

    run(scenario)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("action", "text"), [("accept", "deleted /x"), ("decline", "decline")])
def test_it_approves_and_declines(mode: str, action: str, text: str) -> None:
    async def scenario() -> None:
        async with connected(mode, action) as (client, _):
            result = await client.call_tool("approve", {"path": "/x"})
            assert text in text_of(result)

    run(scenario)


@pytest.mark.parametrize("mode", MODES)
def test_what_it_gives_up_is_cancelled(mode: str) -> None:
    async def scenario() -> None:
        async with connected(mode) as (client, world):
            started, cancelled = asyncio.Event(), asyncio.Event()

            @world.server.tool
            async def wait() -> None:
                """Wait without end."""
                started.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    cancelled.set()

            waiting = asyncio.ensure_future(client.call_tool("wait", {}))
            await started.wait()
            waiting.cancel()
            await cancelled.wait()

    run(scenario)


def test_it_comes_back_to_a_call_that_let_it_go() -> None:
    async def scenario() -> None:
        async with connected("legacy") as (client, _):
            result = await client.call_tool("let_go", {"seconds": 0.6, "retry": 0.2})
            assert text_of(result) == "welcome back"

    run(scenario)
