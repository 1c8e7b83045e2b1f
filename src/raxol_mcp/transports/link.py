"""The seam between a client and its transports: what each side may ask of the other.

Protocols and no code. A `Dialer` knows one server; for every attempt to connect the client asks
it for a `Link`, which reports to the `LinkPort` it was made with. A link carries messages: it
knows nothing of calls that wait, of timers or of retries, and the client nothing of framing,
headers or HTTP sessions.

Every message the client sends has a `key`, an integer that is never used twice on a link. For a
request it is the JSON-RPC id. A link reports, for every key it was given, at most one end:

* for a request: the message with its id by `received`, or `failed`;
* for a notification or an answer: `sent` or `failed`.

After `abort(key)` nothing more is reported of that key; after `lost`, or once `close` was called,
nothing at all.

All calls are made from the thread of the event loop that runs the client.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from raxol_mcp.errors import Reason
    from raxol_mcp.wire.headers import Mirror
    from raxol_mcp.wire.jsonrpc import Incoming, JSONObject, Outgoing
    from raxol_mcp.wire.meta import EraName

__all__ = ["Dialect", "Dialer", "Link", "LinkFailed", "LinkPort"]


class Dialect(Enum):
    """Which of a transport's spellings to use."""

    CURRENT = "current"
    TWO_ENDPOINTS = "two_endpoints"  # HTTP+SSE of MCP 2024-11-05


class LinkFailed(Exception):
    """Raised by `Link.open`: there is no connection, for `reason`."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(str(reason))
        self.reason = reason


class LinkPort(Protocol):
    """What a link sees of the client. Every method returns at once and raises nothing."""

    def received(self, message: Incoming, *, about: int | None = None) -> None:
        """Take one message of the peer, in the order they came.

        `about` is the key of the request whose HTTP response carried it; None where the
        transport cannot tell (stdio, a GET stream). What is not a message comes as `Invalid` or
        `Ignored` and is counted.
        """

    def sent(self, key: int) -> None:
        """The notification or answer `key` was taken by the peer (HTTP 2xx), or written."""

    def failed(self, key: int, reason: Reason) -> None:
        """The message `key` failed, and it alone."""

    def lost(self, reason: Reason) -> None:
        """The link is over: nothing can be sent or will come."""

    def missed(self) -> None:
        """Messages that answer nothing may not have come: the way they come was interrupted."""

    def hears(self, hears: bool) -> None:
        """Whether messages that answer nothing can come from now on. Yes, until it is told."""

    def noticed(self, event: str, fields: JSONObject) -> None:
        """Something worth counting happened: `raxol_mcp.telemetry` lists the events."""


class Link(Protocol):
    """One attempt to connect to one server."""

    async def open(self) -> None:
        """Make ready to send. Raises `LinkFailed`. Cancelled, or failed, it leaves nothing."""

    def send(self, message: Outgoing, key: int, *, mirrors: Sequence[Mirror] = ()) -> None:
        """Send one message. Never waits and never reports from inside the call.

        `mirrors` are the arguments of a tools/call to copy into headers (MCP 2026-07-28
        `Mcp-Param-*`).
        """

    def agreed(self, era: EraName, version: str) -> None:
        """Know what was negotiated; told again after every handshake."""

    def abort(self, key: int) -> None:
        """Stop what goes on for `key`: nobody waits for it any more."""

    async def close(self) -> None:
        """Release everything, within a bound of the link's own. Raises nothing. Again: nothing."""


class Dialer(Protocol):
    """How to reach one server. Its `repr` shows no secret."""

    @property
    def kind(self) -> str:
        """The transport: "stdio", "http" or "memory"."""

    @property
    def verdict_key(self) -> Hashable:
        """What the verdict about the server's era is remembered by, in this process."""

    @property
    def closing_cancels(self) -> bool:
        """Whether to `abort` a request of the stateless era tells the peer to stop (HTTP does)."""

    def link(self, port: LinkPort, dialect: Dialect) -> Link:
        """Make the link of one attempt. Does nothing yet, and raises nothing."""
