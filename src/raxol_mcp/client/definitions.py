"""What a server lists, bounded and cleaned: one bad entry never costs the others.

A list is the words of a peer, and goes on to people and models. What has no name to call it by,
or one with characters that cannot be seen, is left out; what is too long is cut or left out; the
rest keeps its order, and of two entries of one name the first counts. Descriptions stay as they
are but for their length: `texts.printable` is for who shows them. Schemas are never fetched from
anywhere, and not read here but for their root.

Items are JSON values as they were read. Every function returns `(kept, problems)`: a problem is one
bounded, escaped sentence for the log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from raxol_mcp.client.redaction import shown
from raxol_mcp.client.results import (
    RemotePrompt,
    RemotePromptArgument,
    RemoteResource,
    RemoteTemplate,
    RemoteTool,
)
from raxol_mcp.wire.texts import cut, is_visible

if TYPE_CHECKING:
    from raxol_mcp.wire.jsonrpc import JSONObject

__all__ = [
    "MAX_DESCRIPTION_BYTES",
    "MAX_ENTRIES",
    "MAX_SCHEMA_BYTES",
    "MAX_TOTAL_BYTES",
    "display_title",
    "mirrored_tools",
    "prompts_of",
    "resources_of",
    "templates_of",
    "tools_of",
]

MAX_ENTRIES: Final = 4096
_MAX_NAME: Final = 128  # MCP server/tools §Tool Names
MAX_DESCRIPTION_BYTES: Final = 8 * 1024
MAX_SCHEMA_BYTES: Final = 256 * 1024
# Of one list, schemas and all that is beside them: what a client keeps for as long as it lives.
MAX_TOTAL_BYTES: Final = 16 * 1024 * 1024

_MAX_TITLE_BYTES: Final = 512
_MAX_URI_BYTES: Final = 8 * 1024
_MAX_MIME_TYPE: Final = 256
_MAX_ARGUMENTS: Final = 256
_MAX_ICONS: Final = 16
_MAX_EXTRA_BYTES: Final = 64 * 1024  # annotations, _meta and icons, each
_MAX_PROBLEMS: Final = 32

_encode: Final = msgspec.json.Encoder().encode
_T = TypeVar("_T")


class _LeftOut(Exception):
    """Why an entry cannot be offered."""


def tools_of(items: Sequence[object]) -> tuple[list[RemoteTool], list[str]]:
    """Read the tools of a list.

    Left out is what has no usable name, and what has no schema of its arguments: it must be an
    object whose `type`, if it says one, is "object" (MCP server/tools §Tool). Names may have more
    characters than the ones MCP recommends, because servers do use them, but none that cannot be
    seen. An output schema that is no object or too large is dropped and the tool stays.
    """
    return _cleaned("tool", items, _tool)


def mirrored_tools(tools: Sequence[RemoteTool]) -> tuple[list[RemoteTool], list[str]]:
    """Leave out the tools whose arguments cannot be mirrored into HTTP headers as they ask.

    For HTTP in the stateless era (MCP 2026-07-28 basic/transports/streamable-http §Schema
    Extension). The others are given back with their `mirrors`.
    """
    from raxol_mcp.wire.headers import annotation_problems, mirrors_of

    kept = []
    problems: list[str] = []
    for tool in tools:
        if wrong := annotation_problems(tool.input_schema):
            problems.append(f"tool {shown(tool.name)} is left out: {wrong[0]}")
            continue
        mirrors = mirrors_of(tool.input_schema)
        kept.append(msgspec.structs.replace(tool, mirrors=mirrors) if mirrors else tool)
    return kept, _bounded(problems)


def resources_of(items: Sequence[object]) -> tuple[list[RemoteResource], list[str]]:
    """Read the resources of a list. Left out is what has no usable URI."""
    return _cleaned("resource", items, _resource)


def templates_of(items: Sequence[object]) -> tuple[list[RemoteTemplate], list[str]]:
    """Read the resource templates of a list. Left out is what has no usable template."""
    return _cleaned("resource template", items, _template)


def prompts_of(items: Sequence[object]) -> tuple[list[RemotePrompt], list[str]]:
    """Read the prompts of a list. Left out is what has no usable name, itself or an argument."""
    return _cleaned("prompt", items, _prompt)


def display_title(entry: RemoteTool | RemotePrompt | RemoteResource | RemoteTemplate) -> str:
    """Give the name of an entry for people, unescaped: its title, else its name.

    MCP server/tools §Tool: a tool may have its title among the annotations.
    """
    annotated = entry.annotations.get("title") if isinstance(entry, RemoteTool) else None
    for title in (entry.title, annotated):
        if isinstance(title, str) and title.strip():
            return cut(title, _MAX_TITLE_BYTES)
    return entry.name


def _cleaned(
    what: str, items: Sequence[object], read: Callable[[JSONObject, list[str]], tuple[str, _T]]
) -> tuple[list[_T], list[str]]:
    """Read entries one by one, within the bounds of a list; `read` gives (key, entry)."""
    kept: dict[str, _T] = {}
    problems: list[str] = []
    left = MAX_TOTAL_BYTES
    for index, item in enumerate(items[:MAX_ENTRIES]):
        notes: list[str] = []
        try:
            if not isinstance(item, dict):
                raise _LeftOut("it is not an object")
            key, entry = read(item, notes)
            size = len(_encode(entry))
            if key in kept:
                raise _LeftOut("there is one of that name already")
            if size > left:
                raise _LeftOut(f"the list has more than {MAX_TOTAL_BYTES // 1024} KiB")
        except _LeftOut as why:
            problems.append(f"{_called(what, index, item)} is left out: {why}")
        else:
            kept[key] = entry
            left -= size
            problems.extend(f"{_called(what, index, item)}: {note}" for note in notes)
    if len(items) > MAX_ENTRIES:
        problems.append(
            f"the {what} list has more than {MAX_ENTRIES} entries: the rest is left out"
        )
    return list(kept.values()), _bounded(problems)


def _called(what: str, index: int, item: object) -> str:
    members = item if isinstance(item, dict) else {}
    for member in ("name", "uri", "uriTemplate"):
        if isinstance(name := members.get(member), str):
            return f"{what} {shown(name)}"
    return f"{what} {index}"


def _bounded(problems: list[str]) -> list[str]:
    if len(problems) <= _MAX_PROBLEMS:
        return problems
    return [*problems[:_MAX_PROBLEMS], f"and {len(problems) - _MAX_PROBLEMS} more problems"]


def _tool(item: JSONObject, notes: list[str]) -> tuple[str, RemoteTool]:
    name = _name(item)
    schema = item.get("inputSchema")
    if not isinstance(schema, dict):
        raise _LeftOut("it has no inputSchema that is an object")
    if schema.get("type", "object") != "object":
        raise _LeftOut('the type of its inputSchema is not "object"')
    if len(_encode(schema)) > MAX_SCHEMA_BYTES:
        raise _LeftOut(f"its inputSchema has more than {MAX_SCHEMA_BYTES // 1024} KiB")
    tool = RemoteTool(
        name,
        _title(item),
        _description(item),
        schema,
        _output_schema(item, notes),
        _extra(item, "annotations", notes),
        _extra(item, "_meta", notes),
        _icons(item, notes),
    )
    return name, tool


def _output_schema(item: JSONObject, notes: list[str]) -> JSONObject | None:
    schema = item.get("outputSchema")
    if schema is None:
        return None
    if not isinstance(schema, dict):
        notes.append("its outputSchema is not an object, and is not used")
        return None
    if len(_encode(schema)) > MAX_SCHEMA_BYTES:
        notes.append(f"its outputSchema has more than {MAX_SCHEMA_BYTES // 1024} KiB: not used")
        return None
    return schema


def _resource(item: JSONObject, notes: list[str]) -> tuple[str, RemoteResource]:
    uri = _address(item, "uri")
    size = item.get("size")
    resource = RemoteResource(
        uri,
        _readable_name(item, uri),
        _title(item),
        _description(item),
        _mime_type(item),
        size if type(size) is int and size >= 0 else None,
        _extra(item, "annotations", notes),
        _extra(item, "_meta", notes),
        _icons(item, notes),
    )
    return uri, resource


def _template(item: JSONObject, notes: list[str]) -> tuple[str, RemoteTemplate]:
    text = _address(item, "uriTemplate")
    template = RemoteTemplate(
        text,
        _readable_name(item, text),
        _title(item),
        _description(item),
        _mime_type(item),
        _extra(item, "annotations", notes),
        _extra(item, "_meta", notes),
        _icons(item, notes),
    )
    return text, template


def _prompt(item: JSONObject, notes: list[str]) -> tuple[str, RemotePrompt]:
    name = _name(item)
    arguments = item.get("arguments")
    if arguments is None:
        arguments = []
    if not isinstance(arguments, list) or len(arguments) > _MAX_ARGUMENTS:
        raise _LeftOut(f"its arguments are not a list of at most {_MAX_ARGUMENTS}")
    prompt = RemotePrompt(
        name,
        _title(item),
        _description(item),
        tuple(_argument(argument) for argument in arguments),
        _extra(item, "_meta", notes),
        _icons(item, notes),
    )
    return name, prompt


def _argument(argument: object) -> RemotePromptArgument:
    if not isinstance(argument, dict):
        raise _LeftOut("one of its arguments is not an object")
    try:
        name = _name(argument)
    except _LeftOut:
        raise _LeftOut("one of its arguments has no usable name") from None
    return RemotePromptArgument(
        name, _title(argument), _description(argument), argument.get("required") is True
    )


def _name(item: JSONObject) -> str:
    """Read a name that something is called by."""
    name = item.get("name")
    if not isinstance(name, str) or not name:
        raise _LeftOut("it has no name")
    if len(name) > _MAX_NAME:
        raise _LeftOut(f"its name has more than {_MAX_NAME} characters")
    if not is_visible(name) or name != name.strip():
        raise _LeftOut("its name has characters that cannot be seen")
    return name


def _address(item: JSONObject, member: str) -> str:
    """Read a URI or a template of URIs. What it means is for the server to know."""
    text = item.get(member)
    if not isinstance(text, str) or not text:
        raise _LeftOut(f"it has no {member}")
    if not is_visible(text):
        raise _LeftOut(f"its {member} has characters that cannot be seen")
    if len(text.encode()) > _MAX_URI_BYTES:
        raise _LeftOut(f"its {member} has more than {_MAX_URI_BYTES // 1024} KiB")
    return text


def _readable_name(item: JSONObject, address: str) -> str:
    """Read a name that is only shown: the URI is what the thing is called by."""
    name = item.get("name")
    return cut(name if isinstance(name, str) and name else address, _MAX_TITLE_BYTES)


def _title(item: JSONObject) -> str | None:
    title = item.get("title")
    return cut(title, _MAX_TITLE_BYTES) if isinstance(title, str) else None


def _description(item: JSONObject) -> str:
    description = item.get("description")
    return cut(description, MAX_DESCRIPTION_BYTES) if isinstance(description, str) else ""


def _mime_type(item: JSONObject) -> str | None:
    mime_type = item.get("mimeType")
    if not isinstance(mime_type, str) or len(mime_type) > _MAX_MIME_TYPE:
        return None
    return mime_type if is_visible(mime_type) else None


def _extra(item: JSONObject, member: str, notes: list[str]) -> JSONObject:
    value = item.get(member)
    if value is None:
        return {}
    if not isinstance(value, dict) or len(_encode(value)) > _MAX_EXTRA_BYTES:
        notes.append(f"its {member} is not an object of at most {_MAX_EXTRA_BYTES // 1024} KiB")
        return {}
    return value


def _icons(item: JSONObject, notes: list[str]) -> list[JSONObject]:
    """Read the icons: other schemes than https and data must not be shown (MCP basic §Icons)."""
    icons = item.get("icons")
    if icons is None:
        return []
    if not isinstance(icons, list) or len(_encode(icons)) > _MAX_EXTRA_BYTES:
        notes.append(f"its icons are not a list of at most {_MAX_EXTRA_BYTES // 1024} KiB")
        return []
    return [
        icon
        for icon in icons[:_MAX_ICONS]
        if isinstance(icon, dict)
        and isinstance(source := icon.get("src"), str)
        and is_visible(source)
        and source.lower().startswith(("https:", "data:"))
    ]
