"""What MCP writes into messages: revisions, eras, `_meta` keys, log levels. No behaviour."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from raxol_mcp.wire.jsonrpc import JSONObject

__all__ = [
    "HANDSHAKE_VERSIONS",
    "LATEST_HANDSHAKE",
    "LOG_LEVELS",
    "META_CLIENT_CAPABILITIES",
    "META_CLIENT_INFO",
    "META_LOG_LEVEL",
    "META_SERVER_INFO",
    "META_SUBSCRIPTION_ID",
    "META_VERSION",
    "STATELESS_VERSION",
    "STATELESS_VERSIONS",
    "EraName",
    "log_severity",
    "meta_of",
]

# Oldest first. MCP basic/lifecycle §Version Negotiation.
HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
LATEST_HANDSHAKE: Final = "2025-11-25"
STATELESS_VERSION: Final = "2026-07-28"
STATELESS_VERSIONS: Final = (STATELESS_VERSION,)

# MCP 2026-07-28 basic §Per-request metadata.
META_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
META_CLIENT_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
META_CLIENT_INFO: Final = "io.modelcontextprotocol/clientInfo"
META_LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
META_SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
META_SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"

# RFC 5424 severities, least severe first. MCP server/utilities/logging §Log Levels.
LOG_LEVELS: Final = (
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
)
_SEVERITIES: Final = {level: severity for severity, level in enumerate(LOG_LEVELS)}


class EraName(Enum):
    """How a peer speaks: with a handshake and a session, or with everything in each request."""

    HANDSHAKE = "handshake"
    STATELESS = "stateless"


def meta_of(params: JSONObject | None) -> JSONObject | None:
    """Give `params._meta` when it is an object."""
    meta = params.get("_meta") if params is not None else None
    return meta if isinstance(meta, dict) else None


def log_severity(level: object) -> int | None:
    """Give the place of a level in `LOG_LEVELS`; None when it is not a level."""
    return _SEVERITIES.get(level) if isinstance(level, str) else None
