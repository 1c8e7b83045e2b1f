"""Every exception a user may catch, and every JSON-RPC code the project sends.

```
RaxolError
├── ConfigurationError        refuse to start: the message says what to change
│   ├── InvalidSpec           a client's spec that cannot be meant
│   ├── NoHttpClient          a `url` where no HTTP client is installed
│   ├── NotTrusted            a file that its user has not allowed: in `raxol_mcp.client.trust`
│   └── UnsetVariable         a file refers to a variable that is not there
├── ProtocolError
│   ├── LocalProtocolError    this side misused a core: a bug of the shell, never a peer's mistake
│   └── RemoteProtocolError   the peer answered with a JSON-RPC error
├── Busy                      a bound is reached; trying again later may work
├── Denied                    an authorizer or a human said no
├── TimedOut                  a timer of this side ended the wait
├── NotReady                  the connection is not usable now
├── SessionLost               the peer forgot the session
├── ConnectFailed             the client has no connection, and knows why
├── ConnectionLost            the connection ended before the answer came
├── RequestFailed             this one request failed; the connection may be well
│   └── Unpaid                a priced tool without a valid reservation; nothing was sent
├── UnknownTool               no server of a group has this tool
└── ToolError                 raised by a tool to speak to the caller
```

Each error of a client has a `tag`, one word of a closed set for programs, and a `reason`, which
holds the same word with what is known beside it.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "HEADER_MISMATCH",
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "MAX_TEXT",
    "METHOD_NOT_FOUND",
    "MISSING_CAPABILITY",
    "PARSE_ERROR",
    "READ_BUSY",
    "READ_DENIED",
    "RESOURCE_NOT_FOUND",
    "UNSUPPORTED_VERSION",
    "Busy",
    "ConfigurationError",
    "ConnectFailed",
    "ConnectionLost",
    "Denied",
    "InvalidSpec",
    "LocalProtocolError",
    "NoHttpClient",
    "NotReady",
    "ProtocolError",
    "RaxolError",
    "Reason",
    "RemoteProtocolError",
    "RequestFailed",
    "SessionLost",
    "TimedOut",
    "ToolError",
    "UnknownTool",
    "Unpaid",
    "UnsetVariable",
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

# Characters of `Reason.text`: what a person reads in one line of a log.
MAX_TEXT: Final = 512


class Reason:
    """Why something of a client ended, as data: never a secret, never a peer's text unescaped.

    `tag` is one word of a closed set (docs/client.md lists them), `detail` what belongs to it: a
    status, an exit code, a number of bytes, the name of a method. `cause` is the reason behind
    this one. `error` is the JSON-RPC error object of the peer, where it sent one. `retry_after`
    is the wait the peer asked for, in seconds. `text` is for people: one line, escaped, cut here
    to `MAX_TEXT` characters.
    `maybe_done` says that the request may have reached the peer and may have been carried out.
    """

    __slots__ = ("cause", "detail", "error", "maybe_done", "retry_after", "tag", "text")

    def __init__(
        self,
        tag: str,
        detail: int | str | None = None,
        *,
        cause: Reason | None = None,
        error: dict[str, object] | None = None,
        retry_after: float | None = None,
        text: str = "",
        maybe_done: bool = False,
    ) -> None:
        self.tag = tag
        self.detail = detail
        self.cause = cause
        self.error = error
        self.retry_after = retry_after
        self.text = text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 3]}..."
        self.maybe_done = maybe_done

    def __str__(self) -> str:
        said = self.tag if self.detail is None else f"{self.tag} {self.detail}"
        if self.cause is not None:
            said = f"{said}: {self.cause}"
        return f"{said} ({self.text})" if self.text else said

    def __repr__(self) -> str:
        return f"Reason({self})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Reason):
            return NotImplemented
        return self.path == other.path and self.error == other.error

    def __hash__(self) -> int:
        return hash(self.path)

    @property
    def path(self) -> tuple[str | int, ...]:
        """Every tag and detail down to the first cause: `("connect_failed", "http", 401)`."""
        here = (self.tag,) if self.detail is None else (self.tag, self.detail)
        return here if self.cause is None else (*here, *self.cause.path)


class RaxolError(Exception):
    """Anything this project raises on purpose."""

    tag = "error"
    reason: Reason | None = None


class ConfigurationError(RaxolError):
    """The options given cannot be served; nothing was started. The message says what to change."""

    tag = "configuration"


class InvalidSpec(ConfigurationError):
    """A client's spec cannot be meant; nothing was started. Secrets in it are masked."""

    tag = "invalid_spec"


class NoHttpClient(ConfigurationError):
    """The spec has a `url`, and the library that speaks HTTP is not installed."""

    tag = "no_http_client"


class UnsetVariable(ConfigurationError):
    """A server of a file needs a variable that is not there; `variable` names it."""

    tag = "unset_variable"

    def __init__(self, message: str, variable: str) -> None:
        super().__init__(message)
        self.variable = variable
        self.reason: Reason = Reason(self.tag, variable, text=message)


class ProtocolError(RaxolError):
    """The protocol was broken by one of the two sides."""


class LocalProtocolError(ProtocolError):
    """This side used a core in a way it does not allow: a bug of the shell, please report it."""


class RemoteProtocolError(ProtocolError):
    """The peer answered with a JSON-RPC error.

    `code` is the JSON-RPC code, `data` the optional object that came with it, `status` that of
    the HTTP response when it was not a success.
    """

    tag = "jsonrpc"

    def __init__(
        self, code: int, message: str, data: object = None, *, status: int | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.data = data
        self.status = status


class Busy(RaxolError):
    """A bound is reached and nothing was started; the same request may work later."""

    tag = "busy"


class Denied(RaxolError):
    """An authorizer, or the human it asked, refused the call. `detail` says which."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class TimedOut(RaxolError):
    """A timer of this side ended the wait; the peer did not send this.

    What was asked may have been carried out all the same, unless `reason.maybe_done` is False.
    """

    tag = "timeout"

    def __init__(self, message: str = "", reason: Reason | None = None) -> None:
        super().__init__(message)
        self.reason = reason


class NotReady(RaxolError):
    """The connection cannot be used now. `status` names its state."""

    tag = "not_ready"

    def __init__(self, status: str) -> None:
        super().__init__(f"not ready: {status}")
        self.status = status


class SessionLost(RaxolError):
    """The peer no longer knows the session this request belonged to; it was not carried out."""

    tag = "session_rejected"


class ConnectFailed(RaxolError):
    """There is no connection: the last attempt failed, or ended, for `reason`."""

    tag = "connect_failed"

    def __init__(self, reason: Reason) -> None:
        super().__init__(f"connect failed: {reason}")
        self.reason: Reason = reason


class ConnectionLost(RaxolError):
    """The connection ended for `reason` before this request had its answer.

    `outcome_unknown` says that the request had been sent: it may have been carried out, so
    sending it again may do it twice.
    """

    def __init__(self, reason: Reason, *, outcome_unknown: bool) -> None:
        super().__init__(f"connection lost: {reason}")
        self.reason: Reason = reason
        self.tag = reason.tag
        self.outcome_unknown = outcome_unknown


class RequestFailed(RaxolError):
    """This request failed for `reason`; the next may work.

    `status` is that of the HTTP response, if there was one that was not a success, `retry_after`
    the wait it asked for, in seconds. `outcome_unknown` as in `ConnectionLost`.
    """

    def __init__(self, reason: Reason) -> None:
        super().__init__(str(reason))
        self.reason: Reason = reason
        self.tag = reason.tag
        detail = reason.detail
        self.status = detail if reason.tag == "http" and isinstance(detail, int) else None
        self.retry_after = reason.retry_after
        self.outcome_unknown = reason.maybe_done


class Unpaid(RequestFailed):
    """Nothing was sent, because the call was not paid for.

    `unmetered_call`: a priced tool was called without a valid reservation; `unknown_price`: a
    tool of a metered server has no price.
    """


class UnknownTool(RaxolError):
    """No server of the group has a tool of this name; nothing was called."""

    tag = "unknown_tool"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.reason: Reason = Reason(self.tag, text=message)


class ToolError(RaxolError):
    """Raised by a tool to tell the caller something.

    The message becomes the text of an `isError` result, word for word. Every other exception of
    a tool reaches the caller as its type name alone, because its message may hold secrets.
    """
