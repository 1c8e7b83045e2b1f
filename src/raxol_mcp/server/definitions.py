"""What a server offers: tools, resources, resource templates, prompts, completions.

Values; nothing here runs or looks anything up. `definition` is the object that lists on the wire
hold, `encoded` the same as JSON, made once. Whether a definition may be served is judged by
`definition_checks` when it is registered, so that one bad definition cannot spoil a list later.

Structs and not dataclasses: declaring these as dataclasses would be a tenth of the time that a
server needs to start. They compare by identity; two are the same to a client when `encoded` is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeAlias

import msgspec
from msgspec.structs import force_setattr

from raxol_mcp.server.uris import ascii_uri
from raxol_mcp.wire.jsonrpc import JSONObject, encode_result

if TYPE_CHECKING:
    from raxol_mcp.server.authorizer import AuthorizationContext

__all__ = [
    "MAX_DEFINITION_BYTES",
    "Approval",
    "Audience",
    "Completion",
    "Definition",
    "Fault",
    "Isolation",
    "Kind",
    "Prompt",
    "PromptArgument",
    "Reference",
    "Registrable",
    "Resource",
    "ResourceTemplate",
    "Tool",
]

# Ours. A definition is sent with every list; icons as data: URIs are what makes one large.
MAX_DEFINITION_BYTES: Final = 1024 * 1024

Isolation: TypeAlias = Literal["auto", "thread", "process", "task"]
Reference: TypeAlias = Literal["ref/prompt", "ref/resource"]
Fault: TypeAlias = Callable[[BaseException], bool]
# What an authorizer is told of a caller; see `authorizer.AuthorizationContext`.
Audience: TypeAlias = "Callable[[AuthorizationContext], bool]"
Approval: TypeAlias = Callable[[Mapping[str, object]], str]


class Kind(Enum):
    """The kinds that are listed on the wire, each in its own list."""

    TOOLS = "tools"
    RESOURCES = "resources"
    TEMPLATES = "templates"
    PROMPTS = "prompts"


class _Listed(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """What the four kinds share: the object on the wire, encoded once."""

    _encoded: msgspec.Raw | None = None

    def __repr__(self) -> str:
        # As it was written: a definition that is not checked yet may have no key.
        return f"{type(self).__name__}({getattr(self, self.__struct_fields__[0])!r})"

    @property
    def key(self) -> str:
        """Return what the definition is found by."""
        raise NotImplementedError

    @property
    def definition(self) -> JSONObject:
        """Build the object that a list holds. Members that were not given are absent."""
        raise NotImplementedError

    @property
    def encoded(self) -> msgspec.Raw:
        """Return `definition` as JSON, made at the first use and kept.

        Raises `UnencodableResult` for a definition that JSON cannot carry. A registered one was
        encoded when it was registered, so this does not raise and later changes of the objects
        it was made from do not show.
        """
        encoded = self._encoded
        if encoded is None:
            encoded = encode_result(self.definition, max_bytes=MAX_DEFINITION_BYTES)
            force_setattr(self, "_encoded", encoded)  # a cache, not a change of the value
        return encoded


class Tool(_Listed, frozen=True, eq=False):
    """A tool: something a model may call.

    `input_schema` is a JSON Schema (2020-12) whose root is an object. `callback` runs the tool;
    `function` is the compiled signature it was made from, if any. `timeout` (seconds) replaces
    the callback timeout of the server. `fault(error)` returning False says that this failure is
    an answer ("not found") and not a fault, so the circuit breaker does not count it.

    `audience(context)` says for whom the tool exists: for anybody else it is not there, neither
    listed nor called. `approval(arguments)` writes what the human is asked before the tool runs,
    also where the authorizer allows the call.
    """

    kind: ClassVar[Kind] = Kind.TOOLS

    name: str
    description: str
    input_schema: JSONObject
    callback: Callable[..., object]
    title: str | None = None
    annotations: JSONObject | None = None
    output_schema: JSONObject | None = None
    icons: Sequence[JSONObject] | None = None
    meta: JSONObject | None = None
    isolation: Isolation = "auto"
    timeout: float | None = None
    fault: Fault | None = None
    function: object | None = None
    audience: Audience | None = None
    approval: Approval | None = None

    @property
    def key(self) -> str:
        """Return the name, which is what the tool is called by."""
        return self.name

    @property
    def sensitive(self) -> bool:
        """Say whether this tool must not be served without an authorizer.

        True when `destructiveHint` or `sensitive` of the annotations is exactly true. One-way:
        `readOnlyHint` or `destructiveHint: false` beside it takes nothing back.
        """
        annotations: object = self.annotations
        if annotations is None:
            return False  # at once: this is asked for every call
        return isinstance(annotations, Mapping) and (
            annotations.get("destructiveHint") is True or annotations.get("sensitive") is True
        )

    @property
    def definition(self) -> JSONObject:
        """Build the `Tool` object of `tools/list` (MCP 2026-07-28 server/tools)."""
        listed: JSONObject = {"name": self.name}
        if self.title is not None:
            listed["title"] = self.title
        listed["description"] = self.description
        listed["inputSchema"] = self.input_schema
        if self.output_schema is not None:
            listed["outputSchema"] = self.output_schema
        _optional(listed, self.annotations, self.icons, self.meta)
        return listed


class Resource(_Listed, frozen=True, eq=False):
    """Something a client may read under one URI. `size` is in bytes.

    Letters beyond ASCII in `uri` are listed and found percent-encoded, because MCP wants a URI;
    clients that send them as they are find the resource all the same. `audience(context)` says for
    whom the resource exists: for anybody else it is not listed, and reading it is denied.
    """

    kind: ClassVar[Kind] = Kind.RESOURCES

    uri: str
    name: str
    callback: Callable[..., object]
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    annotations: JSONObject | None = None
    size: int | None = None
    icons: Sequence[JSONObject] | None = None
    meta: JSONObject | None = None
    fault: Fault | None = None
    isolation: Isolation = "auto"
    audience: Audience | None = None

    @property
    def key(self) -> str:
        """Return the URI in ASCII, which is what the resource is read by."""
        return ascii_uri(self.uri)

    @property
    def definition(self) -> JSONObject:
        """Build the `Resource` object of `resources/list` (MCP 2026-07-28 server/resources)."""
        listed: JSONObject = {"uri": self.key, "name": self.name}
        _described(listed, self.title, self.description, self.mime_type)
        if self.size is not None:
            listed["size"] = self.size
        _optional(listed, self.annotations, self.icons, self.meta)
        return listed


class ResourceTemplate(_Listed, frozen=True, eq=False):
    """A family of resources: every URI that `uri_template` matches. See `templates`."""

    kind: ClassVar[Kind] = Kind.TEMPLATES

    uri_template: str
    name: str
    callback: Callable[..., object]
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    annotations: JSONObject | None = None
    icons: Sequence[JSONObject] | None = None
    meta: JSONObject | None = None
    fault: Fault | None = None
    isolation: Isolation = "auto"

    @property
    def key(self) -> str:
        """Return the template as it was written."""
        return self.uri_template

    @property
    def definition(self) -> JSONObject:
        """Build the `ResourceTemplate` object of `resources/templates/list`."""
        listed: JSONObject = {"uriTemplate": self.uri_template, "name": self.name}
        _described(listed, self.title, self.description, self.mime_type)
        _optional(listed, self.annotations, self.icons, self.meta)
        return listed


class PromptArgument(msgspec.Struct, frozen=True):
    """One argument of a prompt; its value is always a string."""

    name: str
    description: str | None = None
    required: bool = False


class Prompt(_Listed, frozen=True, eq=False):
    """A message template that a user may pick."""

    kind: ClassVar[Kind] = Kind.PROMPTS

    name: str
    callback: Callable[..., object]
    title: str | None = None
    description: str | None = None
    arguments: tuple[PromptArgument, ...] = ()
    icons: Sequence[JSONObject] | None = None
    meta: JSONObject | None = None
    fault: Fault | None = None
    isolation: Isolation = "auto"

    @property
    def key(self) -> str:
        """Return the name, which is what the prompt is got by."""
        return self.name

    @property
    def definition(self) -> JSONObject:
        """Build the `Prompt` object of `prompts/list` (MCP 2026-07-28 server/prompts)."""
        listed: JSONObject = {"name": self.name}
        _described(listed, self.title, self.description, None)
        arguments: list[JSONObject] = []
        for argument in self.arguments:
            shown: JSONObject = {"name": argument.name}
            if argument.description is not None:
                shown["description"] = argument.description
            shown["required"] = argument.required
            arguments.append(shown)
        listed["arguments"] = arguments
        _optional(listed, None, self.icons, self.meta)
        return listed


class Completion(msgspec.Struct, frozen=True, eq=False):
    """Suggests values for one argument of a prompt or variable of a resource template.

    `target` is the name of the prompt, or the template as it was written; it need not be
    registered yet. `callback(value, context_arguments)` gets what was typed so far and the
    arguments already filled in (`{name: value}`). Not listed on the wire.
    """

    reference: Reference
    target: str
    argument: str
    callback: Callable[..., object]
    isolation: Isolation = "auto"

    @property
    def key(self) -> tuple[str, str, str]:
        """Return what a `completion/complete` request names."""
        return (self.reference, self.target, self.argument)


Definition: TypeAlias = Tool | Resource | ResourceTemplate | Prompt
Registrable: TypeAlias = Definition | Completion


def _described(
    listed: JSONObject, title: str | None, description: str | None, mime_type: str | None
) -> None:
    if title is not None:
        listed["title"] = title
    if description is not None:
        listed["description"] = description
    if mime_type is not None:
        listed["mimeType"] = mime_type


def _optional(
    listed: JSONObject,
    annotations: JSONObject | None,
    icons: Sequence[JSONObject] | None,
    meta: JSONObject | None,
) -> None:
    if annotations is not None:
        listed["annotations"] = annotations
    if icons is not None:
        listed["icons"] = icons
    if meta is not None:
        listed["_meta"] = meta
