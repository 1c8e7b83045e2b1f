"""One client on one server that misbehaves: a program, so that a hang or a crash is its own.

Run as a file, by the Python that has the client: `tried.py SIDE PLAN`. PLAN is JSON: `command` and
`args`, or `url`; `acts` ("call", "large call", "list", "wait", "close", "close elsewhere"), each
of which is given `limit` seconds; `timeout` is what every call is told, None for the client's own.
Prints a line of JSON for each act: what became of it, and after how many seconds.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any

Plan = dict[str, Any]
Call = Callable[[str, dict[str, Any]], Awaitable[object]]


class Ours:
    """The client of this project."""

    async def open(self, plan: Plan) -> None:
        """Connect, and fail at the first failure."""
        from raxol_mcp.client.app import Client

        names = ("command", "args", "url")
        where: Plan = {name: plan[name] for name in names if name in plan}
        if "url" in plan:
            where["allow_private"] = True
        self.client = Client({"name": "tried", **where})
        self.timeout = plan["timeout"]
        await self.client.start()
        await self.client.await_ready(None, fail_fast=True)

    async def call(self, text: str) -> object:
        """Call the tool."""
        return await self.client.call_tool("echo", {"text": text}, timeout=self.timeout)

    async def list(self) -> object:
        """List the tools."""
        return await self.client.list_tools(timeout=self.timeout)

    async def close(self) -> None:
        """End it."""
        await self.client.stop()


class Official:
    """The client of the official SDK."""

    async def open(self, plan: Plan) -> None:
        """Connect."""
        from mcp import Client, StdioServerParameters

        where: Any = plan.get("url")
        if where is None:
            where = StdioServerParameters(command=plan["command"], args=plan["args"])
        self.client = Client(where)
        self.timeout = plan["timeout"]
        await self.client.__aenter__()

    async def call(self, text: str) -> object:
        """Call the tool."""
        return await self.client.call_tool(
            "echo", {"text": text}, read_timeout_seconds=self.timeout
        )

    async def list(self) -> object:
        """List the tools: every page of them."""
        cursor = None
        while True:
            page = await self.client.list_tools(cursor=cursor)
            cursor = page.next_cursor
            if cursor is None:
                return page

    async def close(self) -> None:
        """End it."""
        await self.client.__aexit__(None, None, None)


class Fastmcp:
    """The client of FastMCP."""

    async def open(self, plan: Plan) -> None:
        """Connect."""
        from fastmcp import Client  # type: ignore[import-not-found]  # in a Python of its own
        from fastmcp.client.transports import (  # type: ignore[import-not-found]  # as above
            StdioTransport,
        )

        where: Any = plan.get("url")
        if where is None:
            # By default it keeps the process for the next client of this program.
            where = StdioTransport(command=plan["command"], args=plan["args"], keep_alive=False)
        self.client = Client(where)
        self.timeout = plan["timeout"]
        await self.client.__aenter__()

    async def call(self, text: str) -> object:
        """Call the tool."""
        return await self.client.call_tool("echo", {"text": text}, timeout=self.timeout)

    async def list(self) -> object:
        """List the tools."""
        return await self.client.list_tools()

    async def close(self) -> None:
        """End it."""
        await self.client.__aexit__(None, None, None)


SIDES: dict[str, type[Ours | Official | Fastmcp]] = {
    "ours": Ours,
    "official": Official,
    "fastmcp": Fastmcp,
}


async def do(name: str, act: Awaitable[object], limit: float) -> bool:
    """Do one thing, and tell what became of it; False when it hangs. It is not cancelled then."""
    began = perf_counter()
    task = asyncio.ensure_future(act)
    await asyncio.wait([task], timeout=limit)
    outcome = "hang"
    if task.done():
        failure = asyncio.CancelledError() if task.cancelled() else task.exception()
        outcome = "ok" if failure is None else type(failure).__name__
    told = {"act": name, "outcome": outcome, "seconds": round(perf_counter() - began, 2)}
    print(json.dumps(told), flush=True)
    return outcome != "hang"


async def main(side: str, plan: Plan) -> None:
    """Open, act, and go; whatever hangs is left behind."""
    client = SIDES[side]()
    limit: float = plan["limit"]
    # In this very task: some clients can be closed by no other than the one that opened them.
    began = perf_counter()
    try:
        async with asyncio.timeout(limit):
            await client.open(plan)
        outcome = "ok"
    except TimeoutError:
        outcome = "hang" if perf_counter() - began >= limit else "TimeoutError"
    except Exception as failure:  # whatever it is, it is the outcome
        outcome = type(failure).__name__
    seconds = round(perf_counter() - began, 2)
    print(json.dumps({"act": "open", "outcome": outcome, "seconds": seconds}), flush=True)
    if outcome == "ok":
        for act in plan["acts"]:
            if act == "wait":
                await asyncio.sleep(2.5)
            elif act == "close":
                began = perf_counter()
                try:
                    await client.close()
                    outcome = "ok"
                except BaseException as failure:  # also a cancellation that is nobody's
                    outcome = type(failure).__name__
                told = {"act": act, "outcome": outcome, "seconds": round(perf_counter() - began, 2)}
                print(json.dumps(told), flush=True)
            else:
                await do(act, _act(client, act), limit)
    # Not the interpreter's way out, which may wait for what hangs.
    sys.stdout.flush()
    os._exit(0)


def _act(client: Ours | Official | Fastmcp, act: str) -> Awaitable[object]:
    if act == "list":
        return client.list()
    if act == "close elsewhere":
        return client.close()
    return client.call("A" * 1_000_000 if act == "large call" else "x")


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    asyncio.run(main(sys.argv[1], json.loads(sys.argv[2])))
