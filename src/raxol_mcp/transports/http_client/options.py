"""What a caller may choose about a link. No behaviour, and nothing of a link's state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from raxol_mcp.transports.http_client.addresses import Resolver, system_resolver
from raxol_mcp.transports.http_client.tables import Tables, shared_tables
from raxol_mcp.version import VERSION
from raxol_mcp.wire.jsonrpc import MAX_DEPTH

if TYPE_CHECKING:
    from ssl import SSLContext

__all__ = ["MAX_MESSAGE_BYTES", "USER_AGENT", "Options"]

MAX_MESSAGE_BYTES: Final = 16 * 1024 * 1024
USER_AGENT: Final = f"raxol-mcp/{VERSION}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Options:
    """See `HttpDialer`, which makes it. No `repr` of its own: the headers are secrets."""

    headers: Mapping[str, str] = field(default_factory=dict)
    allow_private: bool = False
    max_message_bytes: int = MAX_MESSAGE_BYTES
    max_depth: int = MAX_DEPTH
    connect_timeout: float = 5.0
    chunk_timeout: float | None = None
    listen: bool = True
    user_agent: str = USER_AGENT
    tables: Tables = field(default_factory=shared_tables)
    resolver: Resolver = system_resolver
    ssl_context: SSLContext | None = None
