"""A client of each side that makes calls, in a process of its own, and says what they cost it.

`python -m benchmarks.harness.caller SIDE ERA AT_ONCE CALLS WHERE...`: SIDE is `ours`, `official`
(the SDK's client) or `bare` (no client library: `harness/peer.py`, `harness/web.py`), WHERE the
port of a server on this machine, or the command of one for stdio. Prints one JSON object:
microseconds of CPU, and of time, for each call. CPU is this process's own: that of the server is
not in it.
"""

from __future__ import annotations

import asyncio
import json
import sys
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from time import perf_counter, process_time
from typing import Final, TypeAlias

from benchmarks.harness.contest import BARE, OURS
from benchmarks.harness.peer import HANDSHAKE, Message, Peer

__all__ = ["main"]

TEXT: Final = "hello"
WARM_UP: Final = 256

Call: TypeAlias = Callable[[], Awaitable[object]]


def check(result: object) -> None:
    """Refuse whatever is not the echo: an error, or a server that is busy."""
    assert isinstance(result, dict), result
    assert not result.get("isError"), result
    assert result["content"] == [{"type": "text", "text": TEXT}], result


@asynccontextmanager
async def ours(era: str, where: list[str], at_once: int) -> AsyncIterator[list[Call]]:
    """Connect this project's client."""
    from raxol_mcp import Client, ClientSpec

    options: Message = {"concurrency": "pooled", "pool_size": at_once, "queue_limit": at_once}
    options["era"] = "handshake" if era == HANDSHAKE else "stateless"
    if where[0].isdecimal():
        options |= {"url": f"http://127.0.0.1:{where[0]}/mcp", "allow_private": True}
    else:
        options |= {"command": where[0], "args": where[1:]}
    async with Client(ClientSpec.of({"name": "bench", **options})) as client:

        async def call() -> None:
            result = await client.call_tool("echo", {"text": TEXT})
            assert not result.is_error, result
            assert result.text == TEXT, result

        yield [call] * at_once


@asynccontextmanager
async def official(era: str, where: list[str], at_once: int) -> AsyncIterator[list[Call]]:
    """Connect the client of the official SDK."""
    from mcp import Client, StdioServerParameters
    from mcp_types import TextContent

    server: StdioServerParameters | str
    if where[0].isdecimal():
        server = f"http://127.0.0.1:{where[0]}/mcp"
    else:
        server = StdioServerParameters(command=where[0], args=where[1:])
    async with Client(server, mode="legacy" if era == HANDSHAKE else era) as client:

        async def call() -> None:
            result = await client.call_tool("echo", {"text": TEXT})
            assert not result.is_error, result
            (content,) = result.content
            assert isinstance(content, TextContent), result
            assert content.text == TEXT, result

        yield [call] * at_once


@asynccontextmanager
async def bare(era: str, where: list[str], at_once: int) -> AsyncIterator[list[Call]]:
    """Connect without a client library: one pipe, or a connection for each call at once."""
    async with AsyncExitStack() as stack:
        if where[0].isdecimal():
            yield await _web_calls(era, int(where[0]), at_once)
            return
        peer = await stack.enter_async_context(Peer(where, era=era))
        if era == HANDSHAKE:
            await peer.initialize()

        async def call() -> None:
            arguments = {"text": TEXT}
            answer = await peer.request("tools/call", name="echo", arguments=arguments)
            check(answer.get("result"))

        yield [call] * at_once


async def _web_calls(era: str, port: int, at_once: int) -> list[Call]:
    from benchmarks.harness.web import Client

    def calling(client: Client) -> Call:
        async def call() -> None:
            arguments = {"text": TEXT}
            reply = await client.request("tools/call", name="echo", arguments=arguments)
            check(reply.message().get("result"))

        return call

    clients = [await Client(port, era=era).connect() for _ in range(at_once)]
    if era == HANDSHAKE:
        for client in clients:
            await client.initialize()
    return [calling(client) for client in clients]


async def drive(calls: list[Call], number: int) -> None:
    """Make `number` calls, as many at once as there are: each that ends makes room for the next."""
    numbers: Iterator[int] = iter(range(number))

    async def one_after_the_other(call: Call) -> None:
        for _ in numbers:
            await call()

    await asyncio.gather(*map(one_after_the_other, calls))


async def measure(side: str, era: str, at_once: int, number: int, where: list[str]) -> Message:
    """Connect, make calls that do not count, then those that do."""
    connect = ours if side == OURS else bare if side == BARE else official
    async with connect(era, where, at_once) as calls:
        await drive(calls, WARM_UP)
        began_at, before = perf_counter(), process_time()
        await drive(calls, number)
        cpu, time = process_time() - before, perf_counter() - began_at
        return {"CPU": cpu / number * 1e6, "time": time / number * 1e6}


def main() -> None:
    """Measure and print."""
    side, era, at_once, number, *where = sys.argv[1:]
    warnings.simplefilter("ignore")  # the SDK's, about what its newest revision has dropped
    print(json.dumps(asyncio.run(measure(side, era, int(at_once), int(number), where))))


if __name__ == "__main__":
    main()
