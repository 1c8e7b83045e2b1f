"""`discover_tools`: find a tool by its words, also one that the lens leaves out of the list.

It tells nobody of a tool that they may not call: what goes around `tools/list` does not go around
its authorizers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from raxol_mcp.server.definitions import Audience, Tool

if TYPE_CHECKING:
    from raxol_mcp.server.context import Context
    from raxol_mcp.wire.jsonrpc import JSONObject

__all__ = ["MAX_FOUND", "Visible", "discovery_tool"]

MAX_FOUND: Final = 100  # ours: who finds more asks with better words
_SCHEMA: Final[JSONObject] = {
    "type": "object",
    "properties": {
        "query": {
            "type": "string",
            "maxLength": 200,
            "description": "What the name or the description has in it; upper or lower case. "
            "Empty: everything.",
        }
    },
    "required": ["query"],
    "additionalProperties": False,
}
# The tools of a session that a caller may call, in their order.
Visible = Callable[["Context"], Awaitable[Sequence[Tool]]]


def discovery_tool(name: str, session: str, visible: Visible, audience: Audience | None) -> Tool:
    """Make the tool `name` that searches the tools of a session."""

    async def discover(arguments: Mapping[str, object], context: Context) -> JSONObject:
        query = str(arguments["query"]).casefold()
        found = [
            {"name": tool.name, "description": tool.description}
            for tool in await visible(context)
            if query in tool.name.casefold() or query in tool.description.casefold()
        ]
        told: JSONObject = {"tools": found[:MAX_FOUND]}
        if len(found) > MAX_FOUND:
            told["more"] = len(found) - MAX_FOUND
        return told

    return Tool(
        name=name,
        description=f"Find tools of the session {session} by words of their name or description. "
        "It also finds those that tools/list leaves out.",
        input_schema=_SCHEMA,
        callback=discover,
        annotations={"readOnlyHint": True, "openWorldHint": False},
        audience=audience,
    )
