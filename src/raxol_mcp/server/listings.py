"""What one caller is shown of a list: what exists for it, what it may call, what its lens leaves.

Not the read authorizer, which was asked before anything is listed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from raxol_mcp.server.authorizer import ALLOW, Authorizer, RequireScopes, decide, decide_now
from raxol_mcp.server.cursors import START, cursor_of
from raxol_mcp.server.definitions import Definition, Kind, Resource, Tool
from raxol_mcp.server.tools import context_of, exists_for

if TYPE_CHECKING:
    from raxol_mcp.core.calls import Call
    from raxol_mcp.server.extension import Lens
    from raxol_mcp.server.registry import Page, Registry
    from raxol_mcp.server.runtime import ServerRuntime

__all__ = ["Listings"]

_logger = logging.getLogger("raxol_mcp.surface")
# The loop has a turn after this many entries were looked at, so that no page holds it for long.
ENTRIES_PER_TURN: Final = 64


class Listings:
    """Pages of lists. `page_size` is how many entries one has; see `Server.look_through`."""

    def __init__(
        self,
        registry: Registry,
        runtime: ServerRuntime,
        *,
        authorizer: Authorizer | None,
        page_size: int,
    ) -> None:
        self._registry = registry
        self._runtime = runtime
        self._authorizer = authorizer
        self._page_size = page_size

    async def page(
        self, call: Call, kind: Kind, after: int, lens: Lens | None
    ) -> tuple[list[Definition], str | None]:
        """List what comes after a place, with the cursor of the next page. Raises `BadCursor`."""
        if kind is Kind.TOOLS and lens is not None:
            return await self._focused(call, after, lens)
        if kind is not Kind.TOOLS or self._authorizer is None:
            page = self._registry.page(kind, after, self._page_size)
            if not any(_is_restricted(item) for item in page.items):
                return page.items, page.cursor
        shown = await self._visible(call, kind, after, self._page_size + 1)
        return self._cut(kind, shown)

    async def tools(self, call: Call) -> list[Tool]:
        """List every tool that the caller may call, whatever its lens leaves out."""
        found = await self._visible(call, Kind.TOOLS, START, None)
        return [item for item, _ in found if isinstance(item, Tool)]

    # -- inside -------------------------------------------------------------------------------

    def _cut(
        self, kind: Kind, shown: list[tuple[Definition, int]]
    ) -> tuple[list[Definition], str | None]:
        page = shown[: self._page_size]
        cursor = cursor_of(kind, page[-1][1]) if len(shown) > len(page) else None
        return [item for item, _ in page], cursor

    async def _focused(
        self, call: Call, after: int, lens: Lens
    ) -> tuple[list[Definition], str | None]:
        """Look through the lens: at all that may be called, because it chooses among that."""
        if after > START:
            self._registry.page(Kind.TOOLS, after, 1)  # is this a place at all?
        visible = await self._visible(call, Kind.TOOLS, START, None)
        tools = [item for item, _ in visible if isinstance(item, Tool)]
        chosen = _chosen(tools, call, lens)
        return self._cut(
            Kind.TOOLS,
            [found for found in visible if found[1] > after and found[0].key in chosen],
        )

    async def _visible(
        self, call: Call, kind: Kind, after: int, limit: int | None
    ) -> list[tuple[Definition, int]]:
        """List what exists for this caller and what it may call, with the place of each.

        Tools that would be asked about or denied are hidden.
        """
        found: list[tuple[Definition, int]] = []
        while True:
            page = self._registry.page(kind, after, ENTRIES_PER_TURN)
            for item, place in await self._allowed(call, kind, page):
                found.append((item, place))
                if len(found) == limit:
                    return found
            if page.after is None:
                return found
            after = page.after
            await asyncio.sleep(0)

    async def _allowed(
        self, call: Call, kind: Kind, page: Page
    ) -> Iterable[tuple[Definition, int]]:
        there = [
            (item, place)
            for item, place in zip(page.items, page.places, strict=True)
            if not isinstance(item, Tool | Resource) or exists_for(item, call)
        ]
        authorizer = self._authorizer
        if kind is not Kind.TOOLS or authorizer is None:
            return there
        allowed: list[tuple[Definition, int]] = []
        for item, place in there:
            name, context = item.key, context_of(call)  # one each: an authorizer may keep it
            decision = decide_now(authorizer, name, {}, context)
            if decision is None:
                decision = await decide(authorizer, name, {}, context, self._runtime.in_thread)
            # Listed also where scopes are missing: they are asked for by who knows the tool.
            if decision is ALLOW or type(decision) is RequireScopes:
                allowed.append((item, place))
        return allowed


def _is_restricted(item: Definition) -> bool:
    return isinstance(item, Tool | Resource) and item.audience is not None


def _chosen(tools: list[Tool], call: Call, lens: Lens) -> set[str]:
    try:
        left = lens(tools, context_of(call))
    except (Exception, SystemExit):
        _logger.exception("the lens failed: the whole list is shown")
        left = None
    return {tool.name for tool in (tools if left is None else left)}
