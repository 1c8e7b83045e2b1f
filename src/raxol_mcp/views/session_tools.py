"""The tools that clients start, look at, type into and stop sessions with.

They are there from the start, for everybody whom the authorizer allows them; each caller sees and
reaches its own sessions only. The tools of what is on a screen come and go beside them.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Final, Literal

from raxol_mcp.errors import ToolError
from raxol_mcp.server.content import Content, EmbeddedResource, Image, Text, ToolResult
from raxol_mcp.server.context import Context
from raxol_mcp.views.focus import FocusLens
from raxol_mcp.views.screenshot import structured
from raxol_mcp.wire.jsonrpc import JSONObject

if TYPE_CHECKING:
    from raxol_mcp.views.sessions import Session, SessionHost

__all__ = ["add_session_tools"]

_NAMED: Final = 40  # tools that are named when a session starts
_MAX_KEYS: Final = 1_000
_MAX_LISTED: Final = 4_096


def add_session_tools(host: SessionHost) -> None:
    """Put the tools of sessions on the server of `host`. Raises ConfigurationError."""
    tools, server = _Tools(host), host.server
    acts, looks = server.tool(destructive=False), server.tool(read_only=True)
    for act in (tools.start_session, tools.stop_session, tools.send_keys):
        acts(act)
    for look in (tools.list_sessions, tools.screenshot):
        looks(look)
    if host.lenses is not None:
        looks(tools.narrow_tools)


class _Tools:
    """The functions; their signatures and docstrings are what clients read."""

    def __init__(self, host: SessionHost) -> None:
        self._host = host

    async def start_session(self, context: Context) -> ToolResult:
        """Start the app in a new session; the result is its name, its tools, and its screen.

        What can be done on the screen becomes tools named <session>.<widget>.<action>.
        """
        session = await self._host.start(self._host.owner_of(context))
        assert session.synchronizer is not None, "it runs"
        names = session.synchronizer.tools
        more = f", and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        said = (
            f"Session {session.name} is running. Its tools: "
            f"{', '.join(names[:_NAMED]) or 'none'}{more}; {session.name}.discover_tools finds "
            "them by words."
        )
        content = [Text(text=said), Text(text=await _text(session))]
        return ToolResult(content, structured={"session": session.name, "tools": list(names)})

    async def list_sessions(self, context: Context) -> JSONObject:
        """List your running sessions; `unused_for` is in seconds."""
        now = asyncio.get_running_loop().time()
        sessions = [
            {
                "session": session.name,
                "tools": 0 if session.synchronizer is None else len(session.synchronizer.tools),
                "unused_for": round(now - session.used_at),
            }
            for session in self._host.sessions_of(self._host.owner_of(context))
        ]
        return {"sessions": sessions}

    async def stop_session(self, context: Context, session: str | None = None) -> str:
        """Stop a session and its app; without a name your only one. What is unsaved is lost."""
        found = self._found(context, session)
        if not await self._host.stop(found):
            return f"Stopped {found.name}; its app does not end, and was left alone."
        return f"Stopped {found.name}."

    async def send_keys(
        self, context: Context, keys: list[str], session: str | None = None
    ) -> list[Content]:
        """Press keys in a session: characters, or names such as enter, tab, up, ctrl+s.

        For what has no tool of its own. The result is the screen afterwards.
        """
        if not 0 < len(keys) <= _MAX_KEYS:
            raise ToolError(f"press 1 to {_MAX_KEYS} keys")
        found = self._found(context, session)
        said = await found.app.press(keys)
        return [Text(text=said), Text(text=await _text(found))]

    async def screenshot(
        self,
        context: Context,
        format: Literal["text", "json", "svg", "png"] = "text",
        session: str | None = None,
    ) -> list[Content]:
        """Show the screen of a session: as text, as its widgets in JSON, as SVG, or as PNG."""
        found = self._found(context, session)
        if format == "json":
            widgets = structured(found.seen.tree)
            return [Text(text=json.dumps(widgets, ensure_ascii=False, indent=1))]
        picture = await found.app.picture(format)
        if isinstance(picture, bytes):
            return [Image(data=picture, mime_type="image/png")]
        if format == "svg":
            uri = f"raxol://session/{found.name}/screenshot.svg"
            return [EmbeddedResource(uri=uri, text=picture, mime_type="image/svg+xml")]
        return [Text(text=picture)]

    async def narrow_tools(
        self, context: Context, mode: Literal["all", "focused", "hover"], max_tools: int = 15
    ) -> str:
        """Narrow what tools/list shows you: to the focused widget, or the one under the pointer.

        Every tool can still be called. `all` with a large `max_tools` shows everything.
        """
        lenses = self._host.lenses
        assert lenses is not None, "else it is not registered"
        if not 1 <= max_tools <= _MAX_LISTED:
            raise ToolError(f"max_tools is from 1 to {_MAX_LISTED}")
        lenses.set(context.connection, FocusLens(mode=mode, max_tools=max_tools))
        return f"tools/list shows you {mode}, at most {max_tools}"

    def _found(self, context: Context, name: str | None) -> Session:
        return self._host.session_of(self._host.owner_of(context), name)


async def _text(session: Session) -> str:
    try:
        picture = await session.app.picture("text")
    except ToolError as error:  # the app has just ended: what was asked for was done
        return str(error)
    assert isinstance(picture, str), "text is"
    return picture
