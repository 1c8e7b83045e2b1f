"""`listings`: pages of what one caller is shown. What may be seen is in `test_extension`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from raxol_mcp import Server, Tool, allow, deny
from raxol_mcp.server.authorizer import AuthorizationContext, Decision
from raxol_mcp.server.listings import ENTRIES_PER_TURN
from raxol_mcp.testing.virtual_loop import run_virtual
from tests.acceptance.world import OPEN, Client, Counted, Json, names, tool


def hidden(name: str) -> Tool:
    """Make a tool that exists for nobody."""

    def nobody(context: AuthorizationContext) -> bool:
        return False

    return Tool(name=name, description="?", input_schema=OPEN, callback=Counted(), audience=nobody)


@pytest.mark.parametrize("shown_first", [True, False])
def test_pages_are_full_whatever_is_hidden_between(shown_first: bool) -> None:
    """ours: a page that has less than there is room for would end too early for some clients."""

    async def scenario() -> None:
        server = Server(page_size=3)
        for at in range(10):
            both = [tool(f"t{at}"), *(hidden(f"h{at}-{n}") for n in range(7))]
            server.registry.register(*(both if shown_first else reversed(both)))
        async with server:
            client = Client(server)
            pages: list[list[object]] = []
            params: Json = {}
            while True:
                page = await client.result("tools/list", params)
                pages.append(names(page["tools"]))
                if "nextCursor" not in page:
                    break
                params = {"cursor": page["nextCursor"]}
            assert [len(page) for page in pages] == [3, 3, 3, 1]
            assert [name for page in pages for name in page] == [f"t{at}" for at in range(10)]

    run_virtual(scenario)


def test_an_authorizer_may_take_its_time() -> None:
    """specification: sync or async; the list waits for it."""

    async def slowly(
        name: str, arguments: Mapping[str, object], context: AuthorizationContext
    ) -> Decision:
        await asyncio.sleep(1.0)
        return allow() if name != "b" else deny()

    async def scenario() -> None:
        server = Server(authorizer=slowly)
        server.registry.register(tool("a"), tool("b"), tool("c"))
        async with server:
            assert names((await Client(server).result("tools/list"))["tools"]) == ["a", "c"]

    run_virtual(scenario)


def test_the_loop_has_its_turns_while_much_is_looked_at() -> None:
    """K11: no page holds the loop for long."""

    async def scenario() -> None:
        server = Server()
        server.registry.register(*(hidden(f"h{at}") for at in range(ENTRIES_PER_TURN * 10)))
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async with server:
            counting = asyncio.create_task(count())
            client = Client(server)
            await client.result("ping")
            before = turns
            assert (await client.result("tools/list"))["tools"] == []
            assert turns - before >= 9
            counting.cancel()

    run_virtual(scenario)
