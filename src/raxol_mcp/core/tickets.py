"""What a client waits for: its requests, and the few other things that have a deadline.

Not the place where anything is decided. A *ticket* is one request of a caller, from the moment
it is submitted until it is settled, which happens exactly once:

```
NEW        made by the shell; holds nothing
QUEUED     waits for room in the window; holds a place in the queue and a deadline
SENT       the peer works on it; holds a slot of the window and a deadline
ANSWERING  the peer asked for input first; a human may be thinking: no slot, a deadline
LISTENING  a subscription of the stateless era: no slot, and no deadline once acknowledged
SETTLED    over
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Final

from raxol_mcp.core.deadlines import Timed

if TYPE_CHECKING:
    from raxol_mcp.wire.headers import Mirror
    from raxol_mcp.wire.jsonrpc import JSONObject, RequestId

__all__ = [
    "LEGAL",
    "Alarm",
    "Notice",
    "ServerQuestion",
    "Ticket",
    "TicketState",
    "Timer",
    "Waiter",
    "diagram",
]


class TicketState(Enum):
    """Where a ticket is; the module docstring says what each state holds."""

    NEW = "new"
    QUEUED = "queued"
    SENT = "sent"
    ANSWERING = "answering"
    LISTENING = "listening"
    SETTLED = "settled"

    __hash__ = object.__hash__


_S = TicketState
LEGAL: Final[Mapping[TicketState, frozenset[TicketState]]] = {
    _S.NEW: frozenset({_S.QUEUED, _S.SENT, _S.LISTENING, _S.SETTLED}),
    _S.QUEUED: frozenset({_S.SENT, _S.SETTLED}),
    _S.SENT: frozenset({_S.ANSWERING, _S.QUEUED, _S.SETTLED}),
    _S.ANSWERING: frozenset({_S.QUEUED, _S.SETTLED}),
    _S.LISTENING: frozenset({_S.SETTLED}),
    _S.SETTLED: frozenset(),
}


class Ticket(Timed):
    """One request of a caller. Made by the shell, changed by the core alone.

    `timeout` (seconds) runs from the submission, so that a wait in the queue counts. With
    `max_timeout` each progress of the peer gives another `timeout`, up to `max_timeout` after the
    submission. `mirrors` are the arguments to copy into HTTP headers. `reservation` pays for a
    priced tool. `meta` goes into `params._meta`, except for what MCP keeps for itself.
    """

    __slots__ = (
        "asked",
        "begun_at",
        "id",
        "listening",
        "max_timeout",
        "meta",
        "method",
        "mirrors",
        "paid",
        "params",
        "progress",
        "reservation",
        "rounds",
        "state",
        "timeout",
        "wants_progress",
    )

    def __init__(
        self,
        method: str,
        params: JSONObject | None = None,
        *,
        timeout: float,
        max_timeout: float | None = None,
        mirrors: Sequence[Mirror] = (),
        reservation: object = None,
        wants_progress: bool = False,
        meta: JSONObject | None = None,
        listening: bool = False,
    ) -> None:
        super().__init__()
        self.method = method
        self.params = params
        self.timeout = timeout
        self.max_timeout = max_timeout
        self.mirrors = mirrors
        self.reservation = reservation
        self.wants_progress = wants_progress
        self.meta = meta
        self.listening = listening
        self.state = TicketState.NEW
        self.id: int | None = None
        """The JSON-RPC id, while the peer has it."""
        self.begun_at = 0.0
        """When it was submitted, or the last round was answered."""
        self.rounds = 0
        self.paid = False
        self.progress: float | None = None
        """What the peer reported last: less is not reported on."""
        self.asked: tuple[JSONObject, str | None] | None = None
        """What a retry adds to the params after a round: the answers and the peer's state."""

    def __repr__(self) -> str:
        return f"<Ticket {self.id} {self.method} {self.state.value}>"

    def moved(self, state: TicketState) -> None:
        """Enter `state`; only legal steps are taken."""
        assert state in LEGAL[self.state], f"{self!r} cannot become {state.value}"
        self.state = state


class Notice(Timed):
    """A notification on its way: it holds a slot until the transport has delivered it."""

    __slots__ = ("key",)

    def __init__(self, key: int) -> None:
        super().__init__()
        self.key = key


class Waiter(Timed):
    """Somebody who waits until the client is ready.

    `fail_fast` makes the next failure the answer. `timeout` is in seconds; None waits for ever.
    """

    __slots__ = ("fail_fast", "timeout")

    def __init__(self, timeout: float | None, *, fail_fast: bool) -> None:
        super().__init__()
        self.timeout = timeout
        self.fail_fast = fail_fast


class ServerQuestion(Timed):
    """A request of the server that a handler of the user's works on.

    `about` is the key of our request that it belongs to, where the transport can tell. `latest`
    is the last key that had been given when it came: what was sent later does not wait for it.
    """

    __slots__ = ("about", "id", "latest", "method", "params")

    def __init__(
        self,
        id: RequestId,
        method: str,
        params: JSONObject | None,
        *,
        about: int | None,
        latest: int,
    ) -> None:
        super().__init__()
        self.id = id
        self.method = method
        self.params = params
        self.about = about
        self.latest = latest

    def may_hold_up(self, ticket: Ticket) -> bool:
        """Say whether the server may be waiting for the answer before it answers `ticket`."""
        if ticket.state is not TicketState.SENT or ticket.id is None:
            return False
        return ticket.id == self.about if self.about is not None else ticket.id <= self.latest


class Alarm(Enum):
    """What the session itself waits for."""

    GREETING = "greeting"  # the whole handshake, the probe included
    PROBE = "probe"  # a peer that says nothing to the probe is of the handshake era
    RETRY = "retry"  # the next attempt to connect


class Timer(Timed):
    """The deadline of one `alarm`."""

    __slots__ = ("alarm",)

    def __init__(self, alarm: Alarm) -> None:
        super().__init__()
        self.alarm = alarm


def diagram() -> str:
    """Draw the states as a Mermaid diagram; `core/README.md` holds a checked copy."""
    lines = ["stateDiagram-v2", "    [*] --> NEW"]
    for state, targets in LEGAL.items():
        lines += [
            f"    {state.name} --> {target.name}" for target in TicketState if target in targets
        ]
    lines.append("    SETTLED --> [*]")
    return "\n".join(lines) + "\n"
