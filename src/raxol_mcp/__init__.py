"""MCP for tools that can do damage: a server, a client and their transports.

Names are loaded at their first use, so that importing one part costs that part alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from raxol_mcp.errors import (
    Busy,
    ConfigurationError,
    ConnectFailed,
    ConnectionLost,
    Denied,
    InvalidSpec,
    LocalProtocolError,
    NoHttpClient,
    NotReady,
    ProtocolError,
    RaxolError,
    Reason,
    RemoteProtocolError,
    RequestFailed,
    SessionLost,
    TimedOut,
    ToolError,
    UnknownTool,
    Unpaid,
    UnsetVariable,
)
from raxol_mcp.version import VERSION as __version__

if TYPE_CHECKING:
    from raxol_mcp.client.answers import Accept, Cancel, Decline, ElicitRequest, Root
    from raxol_mcp.client.app import Client
    from raxol_mcp.client.group import ClientGroup, ServerStatus
    from raxol_mcp.client.names import parse_tool_name, tool_name
    from raxol_mcp.client.results import (
        CallResult,
        Change,
        ClientStatus,
        CompletionResult,
        LogMessage,
        Progress,
        PromptResult,
        ReadResult,
        RemotePrompt,
        RemotePromptArgument,
        RemoteResource,
        RemoteTemplate,
        RemoteTool,
    )
    from raxol_mcp.client.sampling import SamplingRequest
    from raxol_mcp.client.spec import ClientSpec
    from raxol_mcp.client.tool_table import GroupTool
    from raxol_mcp.client.trust import NotTrusted, TrustStore
    from raxol_mcp.core.breaker import Breakers
    from raxol_mcp.core.limits import Limits
    from raxol_mcp.core.peers import ConnectionFacts
    from raxol_mcp.core.reservations import Reservations
    from raxol_mcp.server.app import Server
    from raxol_mcp.server.asking import Ask
    from raxol_mcp.server.auth import BearerAuthenticator, Principal, TokenVerifier
    from raxol_mcp.server.auth_jwt import JwtVerifier
    from raxol_mcp.server.authorizer import (
        AuthorizationContext,
        Authorizer,
        Decision,
        RequireScopes,
        allow,
        allow_all,
        allowlist,
        ask,
        deny,
        deny_all,
        nonblocking,
        require_scopes,
    )
    from raxol_mcp.server.content import (
        Audio,
        EmbeddedResource,
        Image,
        Message,
        ResourceLink,
        Text,
        ToolResult,
    )
    from raxol_mcp.server.context import Context, ElicitResult
    from raxol_mcp.server.definitions import (
        Completion,
        Kind,
        Prompt,
        PromptArgument,
        Resource,
        ResourceTemplate,
        Tool,
    )
    from raxol_mcp.server.protected_resource import ProtectedResource
    from raxol_mcp.server.registry import Registry
    from raxol_mcp.server.rounds import Elicit, ElicitUrl, InputRequired, ListRoots, Sample
    from raxol_mcp.server.seam import RequestHandle, Subscription
    from raxol_mcp.server.static_tokens import StaticTokens
    from raxol_mcp.telemetry import Observer
    from raxol_mcp.transports.http.app import asgi_app
    from raxol_mcp.transports.http.serving import serve_http
    from raxol_mcp.transports.memory import MemoryTransport
    from raxol_mcp.transports.memory_link import MemoryDialer
    from raxol_mcp.transports.stdio import serve_stdio
    from raxol_mcp.wire.jsonrpc import classify, decode, encode

__all__ = [
    "Accept",
    "Ask",
    "Audio",
    "AuthorizationContext",
    "Authorizer",
    "BearerAuthenticator",
    "Breakers",
    "Busy",
    "CallResult",
    "Cancel",
    "Change",
    "Client",
    "ClientGroup",
    "ClientSpec",
    "ClientStatus",
    "Completion",
    "CompletionResult",
    "ConfigurationError",
    "ConnectFailed",
    "ConnectionFacts",
    "ConnectionLost",
    "Context",
    "Decision",
    "Decline",
    "Denied",
    "Elicit",
    "ElicitRequest",
    "ElicitResult",
    "ElicitUrl",
    "EmbeddedResource",
    "GroupTool",
    "Image",
    "InputRequired",
    "InvalidSpec",
    "JwtVerifier",
    "Kind",
    "Limits",
    "ListRoots",
    "LocalProtocolError",
    "LogMessage",
    "MemoryDialer",
    "MemoryTransport",
    "Message",
    "NoHttpClient",
    "NotReady",
    "NotTrusted",
    "Observer",
    "Principal",
    "Progress",
    "Prompt",
    "PromptArgument",
    "PromptResult",
    "ProtectedResource",
    "ProtocolError",
    "RaxolError",
    "ReadResult",
    "Reason",
    "Registry",
    "RemotePrompt",
    "RemotePromptArgument",
    "RemoteProtocolError",
    "RemoteResource",
    "RemoteTemplate",
    "RemoteTool",
    "RequestFailed",
    "RequestHandle",
    "RequireScopes",
    "Reservations",
    "Resource",
    "ResourceLink",
    "ResourceTemplate",
    "Root",
    "Sample",
    "SamplingRequest",
    "Server",
    "ServerStatus",
    "SessionLost",
    "StaticTokens",
    "Subscription",
    "Text",
    "TimedOut",
    "TokenVerifier",
    "Tool",
    "ToolError",
    "ToolResult",
    "TrustStore",
    "UnknownTool",
    "Unpaid",
    "UnsetVariable",
    "__version__",
    "allow",
    "allow_all",
    "allowlist",
    "asgi_app",
    "ask",
    "classify",
    "decode",
    "deny",
    "deny_all",
    "encode",
    "nonblocking",
    "parse_tool_name",
    "require_scopes",
    "serve_http",
    "serve_stdio",
    "tool_name",
]

_HOME = {
    "client.app": ("Client",),
    "client.group": ("ClientGroup", "ServerStatus"),
    "client.spec": ("ClientSpec",),
    "client.names": (
        "parse_tool_name",
        "tool_name",
    ),
    "client.answers": (
        "Accept",
        "Cancel",
        "Decline",
        "ElicitRequest",
        "Root",
    ),
    "client.sampling": ("SamplingRequest",),
    "client.results": (
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
    ),
    "client.tool_table": ("GroupTool",),
    "client.trust": ("NotTrusted", "TrustStore"),
    "core.reservations": ("Reservations",),
    "transports.memory_link": ("MemoryDialer",),
    "core.breaker": ("Breakers",),
    "core.limits": ("Limits",),
    "core.peers": ("ConnectionFacts",),
    "server.app": ("Server",),
    "server.asking": ("Ask",),
    "server.auth": ("BearerAuthenticator", "Principal", "TokenVerifier"),
    "server.auth_jwt": ("JwtVerifier",),
    "server.authorizer": (
        "AuthorizationContext",
        "Authorizer",
        "Decision",
        "RequireScopes",
        "allow",
        "allow_all",
        "allowlist",
        "ask",
        "deny",
        "deny_all",
        "nonblocking",
        "require_scopes",
    ),
    "server.content": (
        "Audio",
        "EmbeddedResource",
        "Image",
        "Message",
        "ResourceLink",
        "Text",
        "ToolResult",
    ),
    "server.context": ("Context", "ElicitResult"),
    "server.definitions": (
        "Completion",
        "Kind",
        "Prompt",
        "PromptArgument",
        "Resource",
        "ResourceTemplate",
        "Tool",
    ),
    "server.protected_resource": ("ProtectedResource",),
    "server.registry": ("Registry",),
    "server.rounds": ("Elicit", "ElicitUrl", "InputRequired", "ListRoots", "Sample"),
    "server.seam": ("RequestHandle", "Subscription"),
    "server.static_tokens": ("StaticTokens",),
    "telemetry": ("Observer",),
    "transports.http.app": ("asgi_app",),
    "transports.http.serving": ("serve_http",),
    "transports.memory": ("MemoryTransport",),
    "transports.stdio": ("serve_stdio",),
    "wire.jsonrpc": ("classify", "decode", "encode"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}


def __getattr__(name: str) -> object:
    """Load a public name from the module that defines it."""
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value
