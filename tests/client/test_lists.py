"""client/lists.py: the four lists of a server, and what makes each out of date."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest

from raxol_mcp.client.catalogue import Listing
from raxol_mcp.client.lists import Lists
from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.wire.jsonrpc import JSONObject

TOOL: Final[JSONObject] = {"name": "t", "inputSchema": {"type": "object"}}
NUMBERS: Final[JSONObject] = {"type": "object", "properties": {"n": {"type": "object"}}}
# What is copied into a header must be a plain value.
MIRRORED_WRONGLY: Final[JSONObject] = {
    "name": "wrong",
    "inputSchema": {**NUMBERS, "properties": {"n": {"type": "object", "x-mcp-header": "N"}}},
}
RESULTS: Final[dict[str, JSONObject]] = {
    "tools/list": {"tools": [TOOL, MIRRORED_WRONGLY]},
    "prompts/list": {"prompts": [{"name": "p"}]},
    "resources/list": {"resources": [{"uri": "a:b", "name": "r"}]},
    "resources/templates/list": {"resourceTemplates": [{"uriTemplate": "a:{b}", "name": "x"}]},
}


async def fetch(method: str, params: JSONObject, seconds: float) -> JSONObject:
    """Answer with the one page of a list."""
    return RESULTS[method]


def lists(*, mirrors: bool = False) -> Lists:
    return Lists("s", now=lambda: 0.0, mirrors=lambda: mirrors, mask=str)


def all_of(found: Lists) -> dict[str, Listing[Any]]:
    return {
        "tools": found.tools,
        "prompts": found.prompts,
        "resources": found.resources,
        "templates": found.templates,
    }


async def read_all(found: Lists) -> None:
    for listing in all_of(found).values():
        await listing.read(fetch, timeout=1.0, lasting=True)


def fresh(found: Lists) -> set[str]:
    return {name for name, listing in all_of(found).items() if listing.is_fresh()}


def test_each_list_is_read_by_its_own_method() -> None:
    """MCP server/tools, server/prompts, server/resources"""

    async def main() -> None:
        found = lists()
        await read_all(found)
        assert [tool.name for tool in found.tools.kept or ()] == ["t", "wrong"]
        assert [prompt.name for prompt in found.prompts.kept or ()] == ["p"]
        assert [resource.uri for resource in found.resources.kept or ()] == ["a:b"]
        assert [each.uri_template for each in found.templates.kept or ()] == ["a:{b}"]

    run_virtual(main)


@pytest.mark.parametrize(
    ("kind", "old"),
    [
        ("tools", {"tools"}),
        ("prompts", {"prompts"}),
        ("resources", {"resources", "templates"}),
        ("resource", set()),
    ],
)
def test_a_change_makes_the_lists_of_its_kind_old(kind: str, old: set[str]) -> None:
    """MCP server/resources §List Changed Notification: templates have no other"""

    async def main() -> None:
        found = lists()
        await read_all(found)
        everything = fresh(found)
        found.changed(kind)
        assert everything - fresh(found) == old

    run_virtual(main)


def test_a_new_session_knows_nothing() -> None:
    async def main() -> None:
        found = lists()
        await read_all(found)
        found.forget()
        assert [listing.kept for listing in all_of(found).values()] == [None] * 4
        assert found.tool("t") is None

    run_virtual(main)


def test_a_tool_is_found_in_the_last_list_however_old() -> None:
    async def main() -> None:
        found = lists()
        assert found.tool("t") is None
        await read_all(found)
        first = found.tool("t")
        assert first is not None
        assert found.tool("t") is first
        assert found.tool("u") is None
        found.changed("tools")
        assert found.tool("t") is first
        await found.tools.read(fetch, timeout=1.0, lasting=True)
        assert found.tool("t") is not first

    asyncio.run(main())


def test_where_arguments_go_into_headers_tools_that_say_so_wrongly_are_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """MCP 2026-07-28 basic/transports/streamable-http"""

    async def main() -> None:
        found = lists(mirrors=True)
        await read_all(found)
        assert [tool.name for tool in found.tools.kept or ()] == ["t"]

    run_virtual(main)
    assert "wrong" in caplog.text
