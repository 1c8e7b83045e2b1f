"""Which tool of which server a namespaced name means. Decides; asks no server.

`mcp__a__b__c` may be the tool `b__c` of the server `a` or the tool `c` of `a__b`, so no name is
taken apart to find its server: it is looked up here. A name belongs to the first server that had
it, in the order of the group, and stays there until that very server lists its tools without it.
No other server can take over a name that somebody may be about to call.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from raxol_mcp.client.names import tool_name
from raxol_mcp.client.results import RemoteTool
from raxol_mcp.wire.values import Value

__all__ = ["GroupTool", "ToolTable"]


class GroupTool(Value, frozen=True):
    """A tool of a group: called by `name`, it is `tool` on the server `server`."""

    name: str
    server: str
    tool: RemoteTool

    @property
    def description(self) -> str:
        """What the server says the tool does."""
        return self.tool.description

    @property
    def input_schema(self) -> dict[str, object]:
        """The JSON Schema of the arguments."""
        return self.tool.input_schema


class ToolTable:
    """The tools of every server as they were last listed."""

    __slots__ = ("_by_name", "_of", "_refused")

    def __init__(self) -> None:
        self._by_name: dict[str, GroupTool] = {}
        self._of: dict[str, list[GroupTool]] = {}
        self._refused: dict[str, list[str]] = {}

    def replace(self, server: str, tools: Iterable[RemoteTool]) -> list[GroupTool]:
        """Take the whole list of one server, and return what of it can be called."""
        for old in self._of.pop(server, ()):
            del self._by_name[old.name]
        own: list[GroupTool] = []
        refused: list[str] = []
        for tool in tools:
            name = tool_name(server, tool.name)
            if name in self._by_name:
                refused.append(name)
            else:
                self._by_name[name] = GroupTool(name, server, tool)
                own.append(self._by_name[name])
        self._of[server], self._refused[server] = own, refused
        return own

    def find(self, name: str) -> GroupTool | None:
        """Say whose tool a namespaced name is."""
        return self._by_name.get(name)

    def refused(self, servers: Sequence[str]) -> dict[str, list[str]]:
        """Give the names that were taken already, of each server that offered such."""
        return {name: list(found) for name in servers if (found := self._refused.get(name))}
