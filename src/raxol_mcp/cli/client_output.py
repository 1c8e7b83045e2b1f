"""What the commands of a client print to stdout: text for people, or JSON for programs.

Makes strings; prints nothing. On a terminal the words of a server cannot steer it; into a pipe
they go as they are. JSON has the member names of the protocol and is ASCII, so it is safe on both.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from raxol_mcp.cli.client_errors import cause
from raxol_mcp.cli.screen_text import columns, readable, shortened
from raxol_mcp.client.definitions import display_title
from raxol_mcp.wire.texts import printable

if TYPE_CHECKING:
    from raxol_mcp.client.group import ServerStatus
    from raxol_mcp.client.results import CallResult, PromptResult, ReadResult, RemoteTool

__all__ = [
    "Printer",
    "call_json",
    "json_text",
    "prompt_json",
    "read_json",
    "status_json",
    "tool_json",
]

_NAME_COLUMNS: Final = 32
_HINTS: Final = {"destructiveHint": "destructive", "readOnlyHint": "read-only"}


class Printer:
    """Writes results for people.

    `width` is how many columns a line of a table may have, None where nothing reads columns;
    on a terminal, `safe` keeps what a server wrote from steering it.
    """

    def __init__(self, *, is_terminal: bool, width: int | None = None) -> None:
        self._is_terminal = is_terminal
        self._width = width

    def tools(self, tools: Sequence[RemoteTool]) -> str:
        """List tools, one a line: the name, and the first line of what is said about it."""
        names = [printable(tool.name) for tool in tools]
        widest = max((min(columns(name), _NAME_COLUMNS) for name in names), default=0)
        lines = []
        for name, tool in zip(names, tools, strict=True):
            hints = "".join(f" [{hint}]" for hint in _hints(tool))
            said = " ".join([name.ljust(widest), "", _first_line(tool) + hints]).rstrip()
            lines.append(said if self._width is None else shortened(said, self._width))
        return "".join(f"{line}\n" for line in lines)

    def tool(self, tool: RemoteTool) -> str:
        """Tell all that a server says of one tool."""
        parts = [printable(tool.name)]
        if (title := display_title(tool)) != tool.name:
            parts.append(self._safe(title))
        if tool.description:
            parts.append(self._safe(tool.description))
        if tool.annotations:
            parts.append("The server claims:\n" + self._pretty(tool.annotations))
        parts.append("Takes:\n" + self._pretty(tool.input_schema))
        if tool.output_schema is not None:
            parts.append("Gives:\n" + self._pretty(tool.output_schema))
        return "\n\n".join(parts) + "\n"

    def call(self, result: CallResult, saved: Mapping[int, str]) -> str:
        """Write what a tool gave; `saved` says where block number n was written to."""
        parts, said = [], result.structured_content
        if not result.has_structured:
            parts = self._blocks(result.content, saved)
        elif not _says_all(result, said):
            parts = [*self._blocks(result.content, saved), self._pretty(said)]
        elif isinstance(said, dict) and list(said) == ["result"]:
            parts = self._blocks(result.content, saved)
        else:
            parts = [self._pretty(said)]
        return "".join(part if part.endswith("\n") else f"{part}\n" for part in parts)

    def read(self, result: ReadResult, saved: Mapping[int, str]) -> str:
        """Write the contents of a resource; in a pipe a text ends where it ends."""
        parts = [self._contents(part, saved.get(n)) for n, part in enumerate(result.contents)]
        if len(parts) == 1 and not self._is_terminal and not saved and "text" in result.contents[0]:
            return parts[0]
        return "".join(part if part.endswith("\n") else f"{part}\n" for part in parts)

    def prompt(self, result: PromptResult) -> str:
        """Write the messages of a prompt, each behind its role."""
        parts = []
        for message in result.messages:
            content = message.get("content")
            blocks = content if isinstance(content, list) else [content]
            role = printable(str(message.get("role", "")))
            said = [self._block(block, None) for block in blocks if isinstance(block, dict)]
            parts.append("\n".join([f"{role}:", *said]))
        return "\n\n".join(parts) + "\n" if parts else ""

    def status(self, statuses: Iterable[ServerStatus]) -> str:
        """Tell how servers are, one a line."""
        rows = [(printable(status.name), status.status, _notes(status)) for status in statuses]
        widest = max((columns(name) for name, _, _ in rows), default=0)
        lines = [
            f"{name.ljust(widest)}  {state:12}  {notes}".rstrip() for name, state, notes in rows
        ]
        return "".join(f"{line}\n" for line in lines)

    # -- contents -----------------------------------------------------------------------------

    def _blocks(
        self, blocks: Sequence[Mapping[str, object]], saved: Mapping[int, str]
    ) -> list[str]:
        return [self._block(block, saved.get(number)) for number, block in enumerate(blocks)]

    def _block(self, block: Mapping[str, object], saved: str | None) -> str:
        match block:
            case {"type": "text", "text": str(text)}:
                return self._safe(text)
            case {"type": "image" | "audio", "data": str(data)}:
                return _placeholder(block.get("mimeType"), data, saved)
            case {"type": "resource", "resource": dict(resource)}:
                return self._contents(resource, saved)
            case {"type": "resource_link", "uri": str(uri)}:
                name = block.get("name")
                label = f"{printable(name)}: " if isinstance(name, str) else ""
                return f"[{label}{printable(uri)}]"
            case _:
                return self._pretty(block)

    def _contents(self, part: Mapping[str, object], saved: str | None) -> str:
        match part:
            case {"text": str(text)}:
                return self._safe(text) if saved is None else f"[saved as {printable(saved)}]"
            case {"blob": str(blob)}:
                return _placeholder(part.get("mimeType"), blob, saved)
            case _:
                return self._pretty(part)

    def _safe(self, text: str) -> str:
        return readable(text) if self._is_terminal else text

    def _pretty(self, value: object) -> str:
        return self._safe(json.dumps(value, indent=2, ensure_ascii=False))


def json_text(value: object) -> str:
    """Write one JSON document, ending in a line break."""
    return json.dumps(value, indent=2) + "\n"


def tool_json(tool: RemoteTool) -> dict[str, object]:
    """Give a tool with the protocol's names; what the server did not say is left out."""
    return _said(
        name=tool.name,
        title=tool.title,
        description=tool.description or None,
        inputSchema=tool.input_schema,
        outputSchema=tool.output_schema,
        annotations=tool.annotations or None,
        icons=tool.icons or None,
        _meta=tool.meta or None,
    )


def call_json(result: CallResult) -> dict[str, object]:
    """Give the result of a call with the protocol's names; `isError` is always there."""
    given: dict[str, object] = {"content": result.content}
    if result.has_structured:
        given["structuredContent"] = result.structured_content
    return {**given, "isError": result.is_error, **_said(_meta=result.meta or None)}


def read_json(result: ReadResult) -> dict[str, object]:
    """Give the contents of a resource with the protocol's names."""
    return {"contents": result.contents, **_said(_meta=result.meta or None)}


def prompt_json(result: PromptResult) -> dict[str, object]:
    """Give a prompt with the protocol's names."""
    return {
        **_said(description=result.description or None),
        "messages": result.messages,
        **_said(_meta=result.meta or None),
    }


def status_json(status: ServerStatus) -> dict[str, object]:
    """Give the status of one server; what is not known of it is null."""
    client, reason = status.client, status.reason
    given: dict[str, object] = {
        "name": status.name,
        "status": status.status,
        "reason": None if reason is None else list(reason.path),
        "message": None if reason is None else cause(reason),
    }
    names = ("version", "era", "concurrency", "tools", "server", "capabilities", "instructions")
    return {**given, **{name: getattr(client, name, None) for name in names}}


def _said(**members: object) -> dict[str, object]:
    return {name: value for name, value in members.items() if value is not None}


def _hints(tool: RemoteTool) -> Iterator[str]:
    return (word for name, word in _HINTS.items() if tool.annotations.get(name) is True)


def _first_line(tool: RemoteTool) -> str:
    said = (tool.description or tool.title or "").strip()
    return printable(said.split("\n", 1)[0].strip())


def _notes(status: ServerStatus) -> str:
    notes = [] if status.reason is None else [printable(cause(status.reason))]
    if (client := status.client) is not None:
        words = [(client.server or {}).get(key) for key in ("name", "version")]
        notes.append(" ".join(printable(word) for word in words if isinstance(word, str)))
        if client.version is not None:
            notes.append(f"MCP {printable(client.version)}, {client.era}")
        if client.tools is not None:
            notes.append(f"{client.tools} tool{'' if client.tools == 1 else 's'}")
    return "; ".join(note for note in notes if note)


def _placeholder(mime_type: object, data: str, saved: str | None) -> str:
    size = len(data) * 3 // 4 - data[-2:].count("=")
    kind = printable(mime_type) if isinstance(mime_type, str) else "application/octet-stream"
    kept = "" if saved is None else f", saved as {printable(saved)}"
    return f"[{shortened(kind, 80)}, {size:,} bytes{kept}]"


def _says_all(result: CallResult, said: object) -> bool:
    """Say whether one text says what the structured content says (MCP server/tools: it should).

    A lone member `result` is how a function's plain value becomes an object: then the value.
    """
    if len(result.content) != 1 or result.content[0].get("type") != "text":
        return False
    text = result.text
    values: list[object] = [said]
    if isinstance(said, dict) and list(said) == ["result"]:
        values.append(said["result"])
    if text in values:
        return True
    try:
        told: object = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return any(_same(told, value) for value in values)


def _same(told: object, value: object) -> bool:
    """Compare JSON values; 1 and true are two, unlike in Python."""
    return json.dumps(told, sort_keys=True) == json.dumps(value, sort_keys=True)
