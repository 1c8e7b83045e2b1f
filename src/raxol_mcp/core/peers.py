"""Who is connected, what each connection can be asked, and how much of that is remembered.

Holds facts; never decides what to send. What a client claimed about itself is reduced to a few
flags when it arrives: a client cannot make the server keep a large object.
"""

from __future__ import annotations

from collections.abc import Hashable
from enum import Flag, auto
from typing import TYPE_CHECKING

from raxol_mcp.wire.values import Value

if TYPE_CHECKING:
    from raxol_mcp.core.calls import Call, Waiting
    from raxol_mcp.wire.jsonrpc import RequestId

__all__ = ["Capability", "ConnectionFacts", "Peer", "Peers", "capabilities_of"]

LEVEL_UNTIL_SET = 1  # info
ELICITATION_SINCE = "2025-06-18"
MODES_SINCE = "2025-11-25"  # URL elicitation, and tools in sampling


class Capability(Flag):
    """What a client said it can be asked for."""

    NONE = 0
    FORM = auto()
    URL = auto()
    SAMPLING = auto()
    SAMPLING_TOOLS = auto()
    SAMPLING_CONTEXT = auto()
    ROOTS = auto()

    def to_wire(self) -> dict[str, object]:
        """Write the flags as a `ClientCapabilities` object, as `requiredCapabilities` wants it."""
        wire: dict[str, object] = {}
        if self & (Capability.FORM | Capability.URL):
            modes = {"form": Capability.FORM, "url": Capability.URL}
            wire["elicitation"] = {mode: {} for mode, flag in modes.items() if self & flag}
        if self & (Capability.SAMPLING | Capability.SAMPLING_TOOLS | Capability.SAMPLING_CONTEXT):
            parts = {"tools": Capability.SAMPLING_TOOLS, "context": Capability.SAMPLING_CONTEXT}
            wire["sampling"] = {part: {} for part, flag in parts.items() if self & flag}
        if self & Capability.ROOTS:
            wire["roots"] = {}
        return wire


def capabilities_of(declared: object, *, version: str) -> Capability:
    """Read a `ClientCapabilities` object (any JSON value) as flags.

    Only objects count: `"elicitation": false` declares nothing. `{"elicitation": {}}` means
    forms only, `{"elicitation": {"url": {}}}` means no forms (MCP 2025-11-25 client/elicitation
    §Capabilities). What does not exist in `version` cannot be declared in it: elicitation came
    with 2025-06-18, its modes and tools in sampling with 2025-11-25.
    """
    if not isinstance(declared, dict):
        return Capability.NONE
    found = Capability.NONE
    elicitation = declared.get("elicitation")
    if isinstance(elicitation, dict) and version >= ELICITATION_SINCE:
        modes = elicitation if version >= MODES_SINCE else {}
        if isinstance(modes.get("url"), dict):
            found |= Capability.URL
        none_named = modes.get("form") is None and modes.get("url") is None
        if none_named or isinstance(modes.get("form"), dict):
            found |= Capability.FORM
    sampling = declared.get("sampling")
    if isinstance(sampling, dict):
        found |= Capability.SAMPLING
        if isinstance(sampling.get("tools"), dict) and version >= MODES_SINCE:
            found |= Capability.SAMPLING_TOOLS
        if isinstance(sampling.get("context"), dict):
            found |= Capability.SAMPLING_CONTEXT
    if isinstance(declared.get("roots"), dict):
        found |= Capability.ROOTS
    return found


class ConnectionFacts(Value, frozen=True):
    """What the transport knows about a connection; nothing in it comes from the client's words.

    `share` is whose quota the connection's calls count against: the authenticated principal, or
    by default the connection itself (ADR-0009). With `greeting_required` nothing but `ping` is
    served in the handshake era before `initialize`.
    """

    transport: str = "unknown"
    principal: str | None = None
    share: Hashable | None = None
    greeting_required: bool = False


DIRECT = ConnectionFacts()


class Peer:
    """One connection, as the core sees it."""

    __slots__ = (
        "asks",
        "calls",
        "capabilities",
        "connection",
        "facts",
        "greeted",
        "listening",
        "log_severity",
        "open",
        "share",
        "silent",
        "stateless",
        "subscriptions",
        "version",
    )

    def __init__(self, connection: Hashable, facts: ConnectionFacts) -> None:
        self.connection = connection
        self.facts = facts
        self.share: Hashable = connection if facts.share is None else facts.share
        self.open = False  # a sink is attached: pushes can be delivered
        self.silent = False  # its input has ended: what waits for its words waits in vain
        self.greeted = False
        self.stateless = False  # it spoke that era: it is told only what it listens for
        self.version: str | None = None  # negotiated by `initialize`
        self.capabilities: Capability | None = None  # None: never told, or evicted
        self.log_severity = LEVEL_UNTIL_SET
        self.calls: dict[RequestId, Call] = {}
        self.asks: dict[str, Waiting] = {}  # by the id of the question on the wire
        self.subscriptions: set[str] = set()
        self.listening: dict[RequestId, Call] = {}

    @property
    def idle(self) -> bool:
        """Whether nothing at all is remembered or owed for this connection."""
        return not (self.open or self.calls or self.greeted)


class Peers:
    """All connections, with a bound on those that nobody would ever clean up.

    A connection with a sink ends when its sink does. One without (a direct caller, or a request
    under an invented id) has no end to wait for, so what `initialize` stored for it is capped:
    past `max_client_capabilities` the oldest entry without a sink is evicted first, and one with
    a sink only when every entry has one.
    """

    __slots__ = ("_by_connection", "_declared", "_max")

    def __init__(self, *, max_client_capabilities: int) -> None:
        self._max = max_client_capabilities
        self._by_connection: dict[Hashable, Peer] = {}
        self._declared: dict[Peer, None] = {}  # ordered by when `initialize` came

    def __len__(self) -> int:
        return len(self._by_connection)

    def find(self, connection: Hashable) -> Peer | None:
        """Look a connection up without creating it."""
        return self._by_connection.get(connection)

    def get(self, connection: Hashable, facts: ConnectionFacts = DIRECT) -> Peer:
        """Look a connection up, creating it on its first message."""
        peer = self._by_connection.get(connection)
        if peer is None:
            peer = self._by_connection[connection] = Peer(connection, facts)
        return peer

    def all(self) -> list[Peer]:
        """Every known connection, in the order of their first message."""
        return list(self._by_connection.values())

    @property
    def declared(self) -> int:
        """How many connections have stored capabilities."""
        return len(self._declared)

    def declare(self, peer: Peer, capabilities: Capability) -> Peer | None:
        """Store what `initialize` declared; return the peer that was evicted for it, if any.

        The evicted peer may be the one that was just stored. It keeps working; it can only no
        longer be asked, until it sends `initialize` again.
        """
        self._declared.pop(peer, None)
        self._declared[peer] = None
        peer.capabilities = capabilities
        peer.greeted = True
        if len(self._declared) <= self._max:
            return None
        victim = next(
            (candidate for candidate in self._declared if not candidate.open),
            next(iter(self._declared)),
        )
        self._undeclare(victim)
        return victim

    def discard(self, peer: Peer) -> None:
        """Forget a connection whose sink ended; its calls are the caller's to end.

        A call that goes on keeps the entry, and another sink may take that over: it inherits
        nothing that the client of this one said.
        """
        peer.open = peer.silent = peer.greeted = peer.stateless = False
        peer.version = None
        peer.log_severity = LEVEL_UNTIL_SET
        peer.subscriptions.clear()
        self._undeclare(peer)

    def settle(self, peer: Peer) -> None:
        """Forget the connection if nothing is remembered or owed for it.

        A late report may speak for one that is forgotten already, when its id is in use again:
        the new connection of that id is somebody else's.
        """
        if peer.idle and self._by_connection.get(peer.connection) is peer:
            del self._by_connection[peer.connection]

    def _undeclare(self, peer: Peer) -> None:
        self._declared.pop(peer, None)
        peer.capabilities = None
        peer.greeted = peer.open and peer.greeted
        self.settle(peer)
