"""Every exception a user may catch, and every JSON-RPC code the project sends.

```
RaxolError
├── ConfigurationError        refuse to start: the message says what to change
├── ProtocolError
│   ├── LocalProtocolError    this side misused a core: a bug of the shell, never a peer's mistake
│   └── RemoteProtocolError   the peer answered with a JSON-RPC error
├── Busy                      a bound is reached; trying again later may work
├── Denied                    an authorizer or a human said no
├── TimedOut                  a timer of this side ended the wait
├── NotReady                  the connection is not usable now
├── SessionLost               the peer forgot the session
└── ToolError                 raised by a tool to speak to the caller
```
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "HEADER_MISMATCH",
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "MISSING_CAPABILITY",
    "PARSE_ERROR",
    "READ_BUSY",
    "READ_DENIED",
    "RESOURCE_NOT_FOUND",
    "UNSUPPORTED_VERSION",
    "Busy",
    "ConfigurationError",
    "Denied",
    "LocalProtocolError",
    "NotReady",
    "ProtocolError",
    "RaxolError",
    "RemoteProtocolError",
    "SessionLost",
    "TimedOut",
    "ToolError",
]

# JSON-RPC 2.0 §5.1
PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
# MCP 2025-11-25 server/resources §Error Handling; 2026-07-28 uses INVALID_PARAMS instead.
RESOURCE_NOT_FOUND: Final = -32002
# MCP 2026-07-28 basic §Error Codes
HEADER_MISMATCH: Final = -32020
MISSING_CAPABILITY: Final = -32021
UNSUPPORTED_VERSION: Final = -32022
# Ours: MCP 2026-07-28 keeps -32768..-32000 for itself, so own codes lie outside (ADR-0010).
READ_DENIED: Final = -31001
READ_BUSY: Final = -31002


class RaxolError(Exception):
    """Anything this project raises on purpose."""


class ConfigurationError(RaxolError):
    """The options given cannot be served; nothing was started. The message says what to change."""


class ProtocolError(RaxolError):
    """The protocol was broken by one of the two sides."""


class LocalProtocolError(ProtocolError):
    """This side used a core in a way it does not allow: a bug of the shell, please report it."""


class RemoteProtocolError(ProtocolError):
    """The peer answered with a JSON-RPC error.

    `code` is the JSON-RPC code, `data` the optional object that came with it.
    """

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class Busy(RaxolError):
    """A bound is reached and nothing was started; the same request may work later."""


class Denied(RaxolError):
    """An authorizer, or the human it asked, refused the call. `detail` says which."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class TimedOut(RaxolError):
    """A timer of this side ended the wait; the peer did not send this."""


class NotReady(RaxolError):
    """The connection cannot be used now. `status` names its state."""

    def __init__(self, status: str) -> None:
        super().__init__(f"not ready: {status}")
        self.status = status


class SessionLost(RaxolError):
    """The peer no longer knows the session this request belonged to."""


class ToolError(RaxolError):
    """Raised by a tool to tell the caller something.

    The message becomes the text of an `isError` result, word for word. Every other exception of
    a tool reaches the caller as its type name alone, because its message may hold secrets.
    """
