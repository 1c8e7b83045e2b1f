"""One name for a tool among the tools of many servers: `mcp__server__tool`, and back.

`tool_name` and `parse_tool_name` are the plain rule, which is not always its own reverse: a
server called `a__b` reads as `a`. Whoever joins many servers gives each a prefix by
`distinct_prefixes`, for which it is, and keeps a table of the names it gave out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

__all__ = ["distinct_prefixes", "parse_tool_name", "tool_name"]

_FRONT: Final = "mcp__"
_BETWEEN: Final = "__"
_OTHER: Final = re.compile(r"[^A-Za-z0-9_]")
_MANY: Final = re.compile(r"_{2,}")


def tool_name(server: str, tool: str) -> str:
    """Build the namespaced name of a tool: `mcp__` + server + `__` + tool.

    Every character of the server's name but ASCII letters, digits and `_` becomes one `_`; the
    tool's name stays as it is.
    """
    return f"{_FRONT}{_OTHER.sub('_', server)}{_BETWEEN}{tool}"


def parse_tool_name(name: object) -> tuple[str, str] | None:
    """Take a namespaced name apart: `(server, tool)`, either may be empty; None if it is none.

    The first `__` behind the prefix separates the two. The server's name comes back as it was
    written into the name, not as it was.
    """
    if not isinstance(name, str) or not name.startswith(_FRONT):
        return None
    server, between, tool = name.removeprefix(_FRONT).partition(_BETWEEN)
    return (server, tool) if between else None


def distinct_prefixes(servers: Iterable[str]) -> dict[str, str]:
    """Give each server a name to put in front of its tools, `{server: prefix}`.

    No two servers get the same prefix, and `parse_tool_name(tool_name(prefix, tool))` is
    `(prefix, tool)` for every tool: a prefix has no `__` inside and no `_` at its end. The first
    of two that would be the same keeps it; the next gets `_2` behind it, then `_3`. So what is
    put first cannot be shadowed by what is added later.
    """
    given: dict[str, str] = {}
    taken: set[str] = set()
    for server in servers:
        if server in given:
            continue
        plain = _MANY.sub("_", _OTHER.sub("_", server)).rstrip("_") or "server"
        prefix, count = plain, 1
        while prefix in taken:
            count += 1
            prefix = f"{plain}_{count}"
        taken.add(prefix)
        given[server] = prefix
    return given
