"""The four lists of one server: tools, prompts, resources and resource templates.

What each is and how it is kept is `catalogue.Listing`'s matter; this is which there are, and what
makes them out of date.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from raxol_mcp.client.catalogue import Listing
from raxol_mcp.client.definitions import (
    mirrored_tools,
    prompts_of,
    resources_of,
    templates_of,
    tools_of,
)

if TYPE_CHECKING:
    from raxol_mcp.client.results import RemotePrompt, RemoteResource, RemoteTemplate, RemoteTool

__all__ = ["Lists"]


class Lists:
    """The lists of the server `name`.

    `mirrors()` says whether arguments are copied into headers now: tools whose annotations for
    that are wrong must then be left out (MCP 2026-07-28 basic/transports/streamable-http).
    """

    def __init__(
        self,
        name: str,
        *,
        now: Callable[[], float],
        mirrors: Callable[[], bool],
        mask: Callable[[str], str],
    ) -> None:
        self._mirrors = mirrors
        self._named: list[RemoteTool] | None = None  # the list that `_by_name` was made of
        self._by_name: dict[str, RemoteTool] = {}
        self.tools: Listing[RemoteTool] = Listing(
            name, "tools/list", "tools", self._tools, kind="tools", now=now, mask=mask
        )
        self.prompts: Listing[RemotePrompt] = Listing(
            name, "prompts/list", "prompts", prompts_of, kind="prompts", now=now, mask=mask
        )
        self.resources: Listing[RemoteResource] = Listing(
            name, "resources/list", "resources", resources_of, kind="resources", now=now, mask=mask
        )
        self.templates: Listing[RemoteTemplate] = Listing(
            name,
            "resources/templates/list",
            "resourceTemplates",
            templates_of,
            kind="resources",
            now=now,
            mask=mask,
        )

    def _tools(self, items: Sequence[object]) -> tuple[list[RemoteTool], list[str]]:
        tools, problems = tools_of(items)
        if self._mirrors():
            tools, unmirrored = mirrored_tools(tools)
            problems += unmirrored
        return tools, problems

    def tool(self, name: str) -> RemoteTool | None:
        """Give a tool of the last list, however old that is."""
        kept = self.tools.kept
        if kept is not self._named:
            self._named = kept
            self._by_name = {tool.name: tool for tool in kept or ()}
        return self._by_name.get(name)

    def changed(self, kind: str) -> None:
        """The server says that lists of `kind` are others now."""
        if kind == "tools":
            self.tools.changed()
        elif kind == "prompts":
            self.prompts.changed()
        elif kind == "resources":
            self.resources.changed()
            self.templates.changed()

    def forget(self) -> None:
        """There is another session: nothing is known of it."""
        self.tools.forget()
        self.prompts.forget()
        self.resources.forget()
        self.templates.forget()
