"""The life of one call: its states, what each holds, and every legal step.

A call is one request whose answer we owe. It moves through these states and is closed exactly
once, for exactly one reason (`Closed`):

```
ADMITTED     holds nothing; never seen between two inputs
AUTHORIZING  a worker decides (and, when allowed, runs) it; holds a deadline
PARKED       waits for the human's answer; holds a park place and a deadline, no worker
APPROVED     the human said yes, no slot is free; keeps its park place, holds a deadline
RUNNING      a worker runs it after an approval; holds a deadline
LISTENING    a subscription of the stateless era; holds a listen place
CLOSED       over; a worker that has not ended yet still holds its slot
```

A *slot* belongs to the worker, not to the state: it is taken when a worker starts and given back
when that worker has ended, however the call was closed meanwhile (ADR-0004). Everything else a
call holds follows from its state alone, so one function can give it back.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Final

from raxol_mcp.core.deadlines import Timed
from raxol_mcp.core.effects import Job

if TYPE_CHECKING:
    from raxol_mcp.core.eras import Era
    from raxol_mcp.core.methods import Method
    from raxol_mcp.core.peers import Peer
    from raxol_mcp.core.questions import Question
    from raxol_mcp.wire.jsonrpc import JSONObject, RequestId

__all__ = [
    "ADMITTED",
    "APPROVED",
    "AUTHORIZING",
    "CLOSED",
    "LEGAL",
    "LEGAL_REASONS",
    "LISTENING",
    "PARKED",
    "VIA_PUSH",
    "Call",
    "CallState",
    "Closed",
    "MidwayAsk",
    "Via",
    "Waiting",
    "diagram",
]


class CallState(Enum):
    """Where a call is; the module docstring says what each state holds."""

    __hash__ = object.__hash__  # members are singletons; Enum's own hash is a slow Python call

    ADMITTED = "admitted"
    AUTHORIZING = "authorizing"
    PARKED = "parked"
    APPROVED = "approved"
    RUNNING = "running"
    LISTENING = "listening"
    CLOSED = "closed"


class Closed(Enum):
    """Why a call ended. CANCELLED and GONE are the two that put nothing on the wire."""

    __hash__ = object.__hash__  # as above

    RESULT = "result"
    FAILED = "failed"
    BUSY = "busy"
    DENIED = "denied"
    DECLINED = "declined"
    ANSWER_ERROR = "answer_error"
    ANSWER_TIMEOUT = "answer_timeout"
    EVICTED = "evicted"
    WORKER_TIMEOUT = "worker_timeout"
    CANCELLED = "cancelled"
    GONE = "gone"


class Via(Enum):
    """How the answer reaches whoever sent the request."""

    PUSH = "push"  # on the connection's sink
    REPLY = "reply"  # to the `request()` caller, however long it takes
    HANDLE = "handle"  # to the `handle_message()` caller; pushed once the call has parked


# The members that are on the way of every call, by names of their own: in Python 3.11 it takes as
# long to find a member of an Enum as to call a function.
ADMITTED: Final = CallState.ADMITTED
AUTHORIZING: Final = CallState.AUTHORIZING
PARKED: Final = CallState.PARKED
APPROVED: Final = CallState.APPROVED
LISTENING: Final = CallState.LISTENING
CLOSED: Final = CallState.CLOSED
VIA_PUSH: Final = Via.PUSH

_S = CallState
LEGAL: Final[Mapping[CallState, frozenset[CallState]]] = {
    _S.ADMITTED: frozenset({_S.AUTHORIZING, _S.RUNNING, _S.CLOSED}),
    _S.AUTHORIZING: frozenset({_S.PARKED, _S.LISTENING, _S.CLOSED}),
    _S.PARKED: frozenset({_S.APPROVED, _S.RUNNING, _S.CLOSED}),
    _S.APPROVED: frozenset({_S.RUNNING, _S.CLOSED}),
    _S.RUNNING: frozenset({_S.PARKED, _S.CLOSED}),
    _S.LISTENING: frozenset({_S.CLOSED}),
    _S.CLOSED: frozenset(),
}
_WORKED = frozenset({Closed.RESULT, Closed.FAILED, Closed.DENIED, Closed.WORKER_TIMEOUT})
_DROPPED = frozenset({Closed.CANCELLED, Closed.GONE})
LEGAL_REASONS: Final[Mapping[CallState, frozenset[Closed]]] = {
    # DECLINED and FAILED out of ADMITTED: a sealed answer that says no, or is not valid.
    _S.ADMITTED: frozenset({Closed.BUSY, Closed.DECLINED, Closed.FAILED}),
    _S.AUTHORIZING: _WORKED | _DROPPED | {Closed.BUSY},
    _S.PARKED: frozenset(
        {Closed.DECLINED, Closed.ANSWER_ERROR, Closed.ANSWER_TIMEOUT, Closed.EVICTED}
    )
    | _DROPPED,
    _S.APPROVED: _DROPPED | {Closed.BUSY},
    _S.RUNNING: _WORKED | _DROPPED,
    _S.LISTENING: _DROPPED | {Closed.RESULT},
    _S.CLOSED: frozenset(),
}


class Call(Timed):
    """One request whose answer is owed. Mutated by the core alone; shells read it."""

    __slots__ = (
        "answers",
        "arguments",
        "asking",
        "caller",
        "era",
        "facts",
        "id",
        "method",
        "name",
        "params",
        "parked_at",
        "peer",
        "progress",
        "progress_token",
        "questions",
        "reason",
        "round",
        "round_state",
        "share",
        "state",
        "subject",
        "via",
        "working",
    )

    def __init__(  # one positional argument per fact of the request
        self, peer: Peer, id: RequestId, method: Method, era: Era, via: Via, caller: object
    ) -> None:
        self.peer = peer
        # Who asked, for the whole life of the call: another client may take the connection over.
        self.facts = peer.facts
        self.share: Hashable = peer.share  # whose quota it counts against
        self.id = id
        self.method = method
        self.era = era
        self.via = via
        self.caller = caller  # opaque to the core: whoever waits for the Reply
        self.state: CallState = ADMITTED
        self.reason: Closed | None = None
        self.working = False  # a worker was started and has not ended
        self.params: JSONObject = {}
        self.name = ""  # of the tool or prompt, or the uri
        self.arguments: JSONObject = {}
        self.progress_token: RequestId | None = None
        self.progress: float | None = None  # the last value sent
        self.lane = None
        self.parked_at = 0  # a sequence number: orders parked calls
        self.asking: str | None = None  # id of the question on the wire while parked
        self.questions: tuple[Question, ...] = ()  # while parked; the first is on the wire
        self.answers: dict[str, object] | None = None
        self.round = 0  # how often the running tool asked for input and was run again
        self.round_state: str | None = None
        self.subject: str | None = None  # what the human was asked about, as the shell names it

    def read(self, params: JSONObject, meta: object) -> None:
        """Take over what the request says; `meta` is `params._meta`."""
        self.params = params
        # What the authorizers are shown and nothing beside it: a second name would be a way round.
        name = params.get(self.method.named)
        if isinstance(name, str):
            self.name = name
        arguments = params.get("arguments")
        if isinstance(arguments, dict):
            self.arguments = arguments
        if isinstance(meta, dict):
            token = meta.get("progressToken")
            # 0 and "" are tokens; True is not an integer here (MCP basic/utilities/progress).
            if isinstance(token, int | str) and not isinstance(token, bool):
                self.progress_token = token

    @property
    def job_once_answered(self) -> Job:
        """What to start once the human has answered: a tool's authorizer is not asked twice."""
        return Job.RUN if self.method.is_tool else Job.READ

    def __repr__(self) -> str:
        reason = f" {self.reason.value}" if self.reason else ""
        return f"<Call {self.id!r} {self.method.name} {self.state.value}{reason}>"


class MidwayAsk(Timed):
    """A question that the running tool of `call` waits for; `key` is what the shell calls it."""

    __slots__ = ("call", "key")

    def __init__(self, call: Call, key: str) -> None:
        self.call = call
        self.key = key
        self.lane = None


Waiting = Call | MidwayAsk


def diagram() -> str:
    """Draw the states as a Mermaid diagram; `core/README.md` holds a checked copy."""
    lines = ["stateDiagram-v2", "    [*] --> ADMITTED"]
    for state, targets in LEGAL.items():
        lines += [
            f"    {state.name} --> {target.name}"
            for target in CallState
            if target in targets and target is not CallState.CLOSED
        ]
        reasons = [reason.name for reason in Closed if reason in LEGAL_REASONS[state]]
        if reasons:
            lines.append(f"    {state.name} --> CLOSED: {', '.join(reasons)}")
    lines.append("    CLOSED --> [*]")
    return "\n".join(lines) + "\n"
