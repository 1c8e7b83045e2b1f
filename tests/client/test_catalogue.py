"""Lists of many pages, and their bounds."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from raxol_mcp.client import catalogue
from raxol_mcp.client.catalogue import Listing
from raxol_mcp.errors import RequestFailed, TimedOut
from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.wire.jsonrpc import JSONObject
from tests.client.peers.clients import memory_client
from tests.client.peers.script import on, reply, script, silent


def as_they_are(items: Sequence[object]) -> tuple[list[object], list[str]]:
    return list(items), []


def listing() -> Listing[object]:
    return Listing("s", "tools/list", "tools", as_they_are, kind="tools", now=lambda: 0.0, mask=str)


def test_the_pages_of_a_list_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """ours: each page may be as large as a message, and there may be a thousand of them"""
    monkeypatch.setattr(catalogue, "_MAX_BYTES", 3 * 1024 * 1024)
    asked: list[object] = []

    async def fetch(method: str, params: JSONObject, _timeout: float) -> JSONObject:
        asked.append(params.get("cursor"))
        return {"tools": ["x" * 1024 * 1024], "nextCursor": str(len(asked))}

    async def main() -> None:
        with pytest.raises(RequestFailed, match="more than 3 MiB") as failed:
            await listing().read(fetch, timeout=1.0, lasting=True)
        assert failed.value.tag == "invalid_response"
        assert asked == [None, "1", "2"]

    asyncio.run(main())


def test_a_list_that_takes_too_long_says_how_long_it_was_given() -> None:
    """ours: the last page had what was left of the time, which tells nobody anything"""
    tools = on("tools/list", reply({"tools": [], "nextCursor": "a"}), times=1)

    async def main() -> None:
        slow = script("legacy", tools, on("tools/list", silent()))
        async with memory_client(slow) as (client, _):
            with pytest.raises(TimedOut, match=r"^tools/list: no answer within 7 s$") as late:
                await client.list_tools(timeout=7.0)
            assert late.value.reason is not None

    run_virtual(main)
