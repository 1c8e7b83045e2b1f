"""What is wrong with a definition, said before it is served. Judges; registers nothing.

What passes fits the official schema of every revision of MCP, so that no list is refused by a
client because of one entry.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite
from string import ascii_letters, digits
from typing import Final

import msgspec

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.server.definitions import (
    Completion,
    Prompt,
    PromptArgument,
    Resource,
    ResourceTemplate,
    Tool,
)
from raxol_mcp.server.uris import uri_problem
from raxol_mcp.wire.jsonrpc import UnencodableResult

__all__ = ["InvalidDefinitions", "Problem", "check"]

# MCP 2025-11-25 server/tools §Tool Names (SEP-986); "/" is in use for namespaces.
_NAME_CHARACTERS: Final = frozenset(ascii_letters + digits + "_./-")
_MAX_NAME: Final = 128
_HINTS: Final = (
    "readOnlyHint",
    "destructiveHint",
    "idempotentHint",
    "openWorldHint",
    "sensitive",
)
_ISOLATIONS: Final = ("auto", "thread", "process", "task")
_ICON_SCHEMES: Final = ("https:", "http:", "data:")


class Problem(msgspec.Struct, frozen=True):
    """One definition that cannot be served.

    `index` counts from 0 in the order of registration. `reasons` are codes, such as
    `missing_description`, some followed by an explanation in brackets.
    """

    index: int
    what: str
    key: object
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.what} {self.key!r}: {', '.join(self.reasons)}"


class InvalidDefinitions(ConfigurationError):
    """Definitions that cannot be served; nothing was registered. `problems` names each."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("nothing was registered: " + "; ".join(map(str, problems)))


def check(definitions: Sequence[object]) -> None:
    """Raise `InvalidDefinitions` that lists every problem of every definition, if there is one.

    Two entries with one key in the same call are a problem too: one would hide the other.
    Encodes each definition, which is kept in it.
    """
    problems: list[Problem] = []
    seen: set[object] = set()
    for index, definition in enumerate(definitions):
        reasons = _reasons(definition)
        key = getattr(definition, "key", None)  # also None where a bad member has no key
        if not reasons:
            entry = (type(definition), key)
            if entry in seen:
                reasons = ["duplicate_key"]
            seen.add(entry)
        if reasons:
            problems.append(Problem(index, type(definition).__name__, key, tuple(reasons)))
    if problems:
        raise InvalidDefinitions(problems)


def _reasons(definition: object) -> list[str]:
    match definition:
        case Tool():
            reasons = [*_tool(definition)]
        case Resource():
            reasons = [*_resource(definition)]
        case ResourceTemplate():
            reasons = [*_template(definition)]
        case Prompt():
            reasons = [*_prompt(definition)]
        case Completion():
            return [*_completion(definition)]
        case _:
            return ["not_a_definition"]
    if not reasons:
        try:
            definition.encoded  # noqa: B018  # it is kept; made now to see it fail now
        except UnencodableResult as error:
            reasons.append(f"unencodable ({error})")
    if not reasons and isinstance(definition, Tool) and definition.function is None:
        reasons.extend(_raw_schemas(definition))
    return reasons


def _raw_schemas(tool: Tool) -> Iterator[str]:
    """Compile schemas that were written by hand: what cannot be checked cannot be served."""
    from raxol_mcp.schemas.json_schema import compile_schema  # only where there is no signature

    for what, schema in (("input", tool.input_schema), ("output", tool.output_schema)):
        if schema is not None:
            try:
                compile_schema(schema)
            except ConfigurationError as error:
                yield f"invalid_{what}_schema ({error})"


def _tool(tool: Tool) -> Iterator[str]:
    yield from _name(tool.name)
    if not _says_something(tool.description):
        yield "missing_description"
    yield from _callback(tool.callback)
    yield from _schema("input", tool.input_schema, absent=("missing_input_schema",))
    yield from _schema("output", tool.output_schema)
    if "x-mcp-header" in repr(tool.input_schema):
        from raxol_mcp.wire.headers import annotation_problems  # few tools have one

        for problem in annotation_problems(tool.input_schema):
            yield f"invalid_input_schema ({problem})"
    yield from _texts(title=tool.title)
    if tool.annotations is not None:
        yield from _tool_annotations(tool.annotations)
    yield from _extras(tool.icons, tool.meta)
    yield from _running(tool.isolation, tool.fault)
    yield from _callables(audience=tool.audience, approval=tool.approval)
    if tool.timeout is not None and not _positive(tool.timeout):
        yield "invalid_timeout (seconds above 0)"


def _resource(resource: Resource) -> Iterator[str]:
    uri: object = resource.uri
    if not isinstance(uri, str) or not uri:
        yield "missing_uri"
    else:
        problem = uri_problem(uri)
        if problem is not None:
            yield f"invalid_uri ({problem})"
    if resource.size is not None and not _count(resource.size):
        yield "invalid_size (a number of bytes)"
    yield from _callables(audience=resource.audience)
    yield from _readable(resource)


def _template(template: ResourceTemplate) -> Iterator[str]:
    text: object = template.uri_template
    if not isinstance(text, str) or not text:
        yield "missing_uri_template"
    else:
        from raxol_mcp.server.templates import Template  # few servers have one

        try:
            Template(text)
        except ConfigurationError as error:
            yield f"invalid_uri_template ({error})"
    yield from _readable(template)


def _readable(definition: Resource | ResourceTemplate) -> Iterator[str]:
    if not _says_something(definition.name):
        yield "missing_name"
    yield from _callback(definition.callback)
    yield from _texts(
        title=definition.title,
        description=definition.description,
        mime_type=definition.mime_type,
    )
    if definition.annotations is not None:
        yield from _annotations(definition.annotations)
    yield from _extras(definition.icons, definition.meta)
    yield from _running(definition.isolation, definition.fault)


def _prompt(prompt: Prompt) -> Iterator[str]:
    yield from _name(prompt.name)
    yield from _callback(prompt.callback)
    yield from _texts(title=prompt.title, description=prompt.description)
    yield from _arguments(prompt.arguments)
    yield from _extras(prompt.icons, prompt.meta)
    yield from _running(prompt.isolation, prompt.fault)


def _arguments(arguments: object) -> Iterator[str]:
    if not isinstance(arguments, list | tuple):
        yield "invalid_arguments (a tuple of PromptArgument)"
        return
    names: set[str] = set()
    for argument in arguments:
        if not isinstance(argument, PromptArgument) or not _says_something(argument.name):
            yield "invalid_arguments (a PromptArgument with a name each)"
            return
        if argument.name in names:
            yield f"duplicate_argument ({argument.name})"
        names.add(argument.name)
        yield from _texts(description=argument.description)
        if not _is_bool(argument.required):
            yield f"invalid_arguments (required of {argument.name} is True or False)"


def _completion(completion: Completion) -> Iterator[str]:
    if completion.reference not in ("ref/prompt", "ref/resource"):
        yield "invalid_reference (ref/prompt or ref/resource)"
    if not _says_something(completion.target):
        yield "missing_target"
    if not _says_something(completion.argument):
        yield "missing_argument"
    yield from _callback(completion.callback)
    yield from _running(completion.isolation, None)


def _name(name: object) -> Iterator[str]:
    if not isinstance(name, str) or not name:
        yield "missing_name"
    elif len(name) > _MAX_NAME or not _NAME_CHARACTERS.issuperset(name):
        yield "invalid_name (1 to 128 of A-Z a-z 0-9 _ . - /)"


def _callback(callback: object) -> Iterator[str]:
    if callback is None:
        yield "missing_callback"
    elif not callable(callback):
        yield "invalid_callback"


def _schema(which: str, schema: object, *, absent: tuple[str, ...] = ()) -> Iterator[str]:
    """Check what every revision demands of the root; the rest is up to the validator."""
    code = f"invalid_{which}_schema"
    if schema is None:
        yield from absent
        return
    if not isinstance(schema, dict):
        yield f"{code} (an object)"
        return
    if schema.get("type") != "object":
        yield f'{code} (type must be "object")'
    properties = schema.get("properties", {})
    if not isinstance(properties, dict) or not all(
        isinstance(value, dict) for value in properties.values()
    ):
        yield f"{code} (properties maps names to schemas that are objects)"
    if not _strings(schema.get("required", ())):
        yield f"{code} (required is a list of names)"
    if not isinstance(schema.get("$schema", ""), str):
        yield f"{code} ($schema is a URI)"


def _tool_annotations(annotations: object) -> Iterator[str]:
    if not isinstance(annotations, dict):
        yield "invalid_annotations (an object)"
        return
    for hint in _HINTS:
        if not _is_bool(annotations.get(hint, False)):
            yield f"invalid_annotations ({hint} is true or false)"
    if not isinstance(annotations.get("title", ""), str):
        yield "invalid_annotations (title is a text)"


def _annotations(annotations: object) -> Iterator[str]:
    if not isinstance(annotations, dict):
        yield "invalid_annotations (an object)"
        return
    audience = annotations.get("audience", ())
    if not _strings(audience) or not set(audience) <= {"user", "assistant"}:
        yield "invalid_annotations (audience is a list of user, assistant)"
    priority = annotations.get("priority", 0)
    if isinstance(priority, bool) or not (isinstance(priority, int | float) and 0 <= priority <= 1):
        yield "invalid_annotations (priority is a number from 0 to 1)"
    if not isinstance(annotations.get("lastModified", ""), str):
        yield "invalid_annotations (lastModified is an ISO 8601 time)"


def _extras(icons: object, meta: object) -> Iterator[str]:
    if icons is not None and not (
        isinstance(icons, list | tuple) and all(_is_icon(icon) for icon in icons)
    ):
        yield (
            "invalid_icons (a list of objects: src with an https:, http: or data: URI; mimeType; "
            "sizes, a list; theme, light or dark)"
        )
    if meta is not None and not isinstance(meta, dict):
        yield "invalid_meta (an object)"


def _is_icon(icon: object) -> bool:
    """Check an icon (MCP 2025-11-25 basic §Icons): clients refuse other schemes."""
    if not isinstance(icon, dict):
        return False
    src = icon.get("src")
    return (
        isinstance(src, str)
        and src.lower().startswith(_ICON_SCHEMES)
        and src.isascii()
        and uri_problem(src) is None
        and isinstance(icon.get("mimeType", ""), str)
        and _strings(icon.get("sizes", ()))
        and icon.get("theme", "light") in ("light", "dark")
    )


def _running(isolation: object, fault: object) -> Iterator[str]:
    if isolation not in _ISOLATIONS:
        yield f"invalid_isolation ({', '.join(_ISOLATIONS)})"
    if fault is not None and not callable(fault):
        yield "invalid_fault_classifier"


def _callables(**given: object) -> Iterator[str]:
    for name, value in given.items():
        if value is not None and not callable(value):
            yield f"invalid_{name} (a callable)"


def _texts(**texts: object) -> Iterator[str]:
    for name, text in texts.items():
        if text is not None and not isinstance(text, str):
            yield f"invalid_{name} (a text)"


def _says_something(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)  # 0 and "false" are not: JSON knows the difference


def _count(value: object) -> bool:
    return type(value) is int and value >= 0


def _positive(value: object) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and isfinite(value)
        and value > 0
    )


def _strings(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
