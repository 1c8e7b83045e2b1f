"""The seam between a server and its transports: what each side may ask of the other.

Protocols and no code. The server gives a transport a `ServerPort`; the transport gives the
server one `Sink` per connection. `raxol_mcp.transports.memory` is the shortest example of both.
`NetworkPort` and `Authenticator` are for a transport that strangers can reach.

A transport owes the server, for every connection:

* one `open`, before anything else;
* every message, in the order it came, by `receive`; messages that cannot be accepted too
  (`Invalid`), so that the server counts and answers them;
* `input_ended` when the peer will say nothing more but may still read;
* exactly one `gone`, when nothing can be delivered any more. Nothing follows it.

All calls are made from the thread of the event loop that runs the server.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Protocol

from raxol_mcp.core.authentication import Authenticated, Challenge

if TYPE_CHECKING:
    from raxol_mcp.core.peers import ConnectionFacts
    from raxol_mcp.wire.jsonrpc import Incoming, Outgoing, RequestId

__all__ = ["Authenticated", "Authenticator", "Challenge", "NetworkPort", "ServerPort", "Sink"]


class Sink(Protocol):
    """The server's way to one peer. Every method returns at once and raises nothing.

    A sink only enqueues. It never calls back into the server, not even when the peer is lost
    meanwhile: that is reported later, from the event loop, by `ServerPort.gone`.
    """

    def put(
        self, message: Outgoing, *, about: RequestId | None = None, droppable: bool = False
    ) -> None:
        """Send `message` after everything put before it; after the end it is dropped.

        `about` is the id of the peer's request that the message belongs to (its answer, its
        progress, a question asked for it); None for a broadcast. A `droppable` message may be
        left out when the peer does not keep up.
        """

    def close(self, reason: str) -> None:
        """End the connection after what was put so far; `reason` is for the log.

        The transport then reports `gone`, as for every other end.
        """


class ServerPort(Protocol):
    """What a transport sees of a server."""

    @property
    def max_message_bytes(self) -> int:
        """The size of the largest message to accept, in bytes."""

    @property
    def max_depth(self) -> int:
        """How deep JSON may nest in a message to accept."""

    async def start(self) -> None:
        """Make ready to serve; every `open` comes later. Raises `ConfigurationError`.

        When it raises or is cancelled it has undone what it began, and `stop` is not called.
        """

    async def stop(self) -> None:
        """End everything that `start` began, within a bound."""

    def open(
        self, sink: Sink, facts: ConnectionFacts, connection: Hashable | None = None
    ) -> Hashable:
        """Make a connection whose messages go to `sink`; return its id.

        The server chooses the id unless the transport has one of its own for `connection`.
        """

    def receive(self, connection: Hashable, message: Incoming) -> None:
        """Take one message of the peer. Never waits; what is answered goes to the sink."""

    def input_ended(self, connection: Hashable) -> None:
        """Close the calls that wait for an answer of the peer: it will say nothing more."""

    def outstanding(self, connection: Hashable) -> int:
        """Return how many calls of this connection are still owed an answer."""

    def gone(self, connection: Hashable) -> None:
        """Close everything of this connection: nothing can be delivered any more."""


class NetworkPort(ServerPort, Protocol):
    """What a transport that strangers can reach sees of a server, beside the rest.

    The sinks it gives may have three more methods:

    * `release(about: RequestId, retry: float)`: let the client of a request go, to come back for
      the rest after `retry` seconds. It may do nothing.
    * `mismatch(request: Request, mirrors: Sequence[Mirror]) -> Failure | None`: say what is wrong
      with copies of arguments that came beside the message, as HTTP headers do. Asked once it is
      known that the caller may know of the tool, and before anything of it runs.
    * `lacks(about: RequestId, scopes: tuple[str, ...], *, challenged: bool) -> bool`: say whether
      the credentials that a request came with are not enough. With `challenged` its answer, a
      denial, tells the client so, if nothing of it has been sent. Without the method nobody has
      any.
    """

    def refusals_for_network(self, *, required: bool | None = None) -> list[str]:
        """Say why this server must not be reachable by others; empty when it may.

        `required` overrides what the environment says about whether authorizers are needed.
        """


class Authenticator(Protocol):
    """Who a request comes from, for a transport that carries credentials (HTTP).

    Asked on every request and every route, before anything of the request is read or kept: a
    session or a stream is no proof of identity (MCP security best practices §Session Hijacking).

    It may have one more method, `insufficient_scope(scopes: Iterable[str]) -> Challenge`: ask for
    credentials with all of `scopes`. Without it who lacks one is denied and told no more.
    """

    async def authenticate(self, authorization: list[bytes]) -> Authenticated | Challenge:
        """Judge the values of every `Authorization` header of one request, as they came.

        Raises nothing for what a client sent, nor when the credentials cannot be checked now:
        that is a `Challenge` with status 503.
        """

    def metadata(self) -> tuple[str, bytes] | None:
        """Give the path and the JSON text of the protected resource metadata; None without one.

        The path is the one the public sees (RFC 9728 §3.1). What is served there needs no
        credentials and never changes.
        """
