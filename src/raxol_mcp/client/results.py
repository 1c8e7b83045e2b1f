"""What a client hands to its user: the records, and nothing that makes them.

`raxol_mcp.client.readers` makes results from what a server sent, `definitions` the rest. Lists
and objects in a record are the caller's own: nobody else reads them later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import field

from raxol_mcp.wire.values import Value

if TYPE_CHECKING:
    from raxol_mcp.errors import Reason
    from raxol_mcp.wire.headers import Mirror
    from raxol_mcp.wire.jsonrpc import JSONObject

__all__ = [
    "CallResult",
    "Change",
    "ClientStatus",
    "CompletionResult",
    "LogMessage",
    "Progress",
    "PromptResult",
    "ReadResult",
    "RemotePrompt",
    "RemotePromptArgument",
    "RemoteResource",
    "RemoteTemplate",
    "RemoteTool",
]


class ClientStatus(Value, frozen=True):
    """Where a client stands at one moment.

    `status` is "starting", "initializing", "ready", "closed" (not connected: `reason` says why,
    and `retry_in` the seconds until it tries again, None when it will not) or "stopped" (for
    good). `version` and `era` ("handshake" or "stateless") are those of the connection,
    `concurrency` how many requests it allows at once: "stateless", "pooled" or "serialized".
    `tools` counts those of the last list, None before one was read. `pending` requests wait for
    an answer, `queued` ones for their turn. `server` (name, version, ...), `instructions` and
    `capabilities` are the server's own words.
    """

    name: str
    status: str
    version: str | None = None
    era: str | None = None
    concurrency: str | None = None
    tools: int | None = None
    pending: int = 0
    queued: int = 0
    reason: Reason | None = None
    retry_in: float | None = None
    server: JSONObject | None = None
    instructions: str | None = None
    capabilities: JSONObject = field(default_factory=dict)


class CallResult(Value, frozen=True):
    """What a tool answered.

    `is_error` says that the tool failed; it says so itself, in `content`, and a model should be
    shown it (MCP server/tools §Error Handling). `content` are the blocks as they came, each an
    object with a `type`; those of an unknown type too. `structured_content` is any JSON value,
    and null is one: `has_structured` says whether there is any. `meta` is the result's `_meta`.
    """

    content: list[JSONObject]
    structured_content: object = None
    has_structured: bool = False
    is_error: bool = False
    meta: JSONObject = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The texts of all text blocks, joined by newlines; "" when there is none."""
        texts = (block.get("text") for block in self.content if block["type"] == "text")
        return "\n".join(text for text in texts if isinstance(text, str))


class RemoteTool(Value, frozen=True):
    """A tool as its server describes it. The description and the annotations are claims.

    `input_schema` is a JSON Schema, `output_schema` one for the structured content, or None.
    `mirrors` are the arguments that are copied into HTTP headers.
    """

    name: str
    title: str | None
    description: str
    input_schema: JSONObject
    output_schema: JSONObject | None = None
    annotations: JSONObject = field(default_factory=dict)
    meta: JSONObject = field(default_factory=dict)
    icons: list[JSONObject] = field(default_factory=list)
    mirrors: tuple[Mirror, ...] = ()


class RemoteResource(Value, frozen=True):
    """A resource as its server lists it. `size` is in bytes, None when not said."""

    uri: str
    name: str
    title: str | None = None
    description: str = ""
    mime_type: str | None = None
    size: int | None = None
    annotations: JSONObject = field(default_factory=dict)
    meta: JSONObject = field(default_factory=dict)
    icons: list[JSONObject] = field(default_factory=list)


class RemoteTemplate(Value, frozen=True):
    """A family of resources: `uri_template` is an RFC 6570 template of their URIs."""

    uri_template: str
    name: str
    title: str | None = None
    description: str = ""
    mime_type: str | None = None
    annotations: JSONObject = field(default_factory=dict)
    meta: JSONObject = field(default_factory=dict)
    icons: list[JSONObject] = field(default_factory=list)


class RemotePromptArgument(Value, frozen=True):
    """One argument of a prompt, a text."""

    name: str
    title: str | None = None
    description: str = ""
    required: bool = False


class RemotePrompt(Value, frozen=True):
    """A prompt as its server lists it."""

    name: str
    title: str | None = None
    description: str = ""
    arguments: tuple[RemotePromptArgument, ...] = ()
    meta: JSONObject = field(default_factory=dict)
    icons: list[JSONObject] = field(default_factory=list)


class ReadResult(Value, frozen=True):
    """The contents of a resource, each an object with `uri` and `text` or `blob` (base64)."""

    contents: list[JSONObject]
    meta: JSONObject = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The texts of all parts that are text, joined by newlines; "" when there is none."""
        texts = (part.get("text") for part in self.contents)
        return "\n".join(text for text in texts if isinstance(text, str))


class PromptResult(Value, frozen=True):
    """A prompt filled in: `messages` are objects with `role` and `content`, a block."""

    description: str
    messages: list[JSONObject]
    meta: JSONObject = field(default_factory=dict)


class CompletionResult(Value, frozen=True):
    """Values that an argument may have: at most 100. `total` counts all, None when not said."""

    values: list[str]
    total: int | None = None
    has_more: bool = False


class Change(Value, frozen=True):
    """Something of the server changed.

    `kind` is "tools", "prompts" or "resources" for a list, or "resource" for the contents of one
    resource, whose `uri` is given.
    """

    kind: str
    uri: str | None = None


class LogMessage(Value, frozen=True):
    """What a server logged. `data` is any JSON value, in the server's words: escape to print."""

    level: str
    logger: str | None
    data: object


class Progress(Value, frozen=True):
    """How far a call has come: `progress` of `total`, in a unit of the server's."""

    progress: float
    total: float | None = None
    message: str | None = None
