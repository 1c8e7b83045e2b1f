"""A small world around one core: it sends messages, ends workers, lets time pass, and looks.

Deterministic: ids count up, the clock is a number. After every input the world checks what must
hold at every moment (`check`), so each test that uses it tests that, too.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from itertools import count

from raxol_mcp.core.calls import Call, CallState, MidwayAsk, Via
from raxol_mcp.core.effects import (
    Effect,
    Push,
    Record,
    Reply,
    Resolve,
    StartWorker,
    StopWorker,
)
from raxol_mcp.core.eras import Identity
from raxol_mcp.core.limits import Limits
from raxol_mcp.core.outcomes import Asked, Granted, Outcome, Returned
from raxol_mcp.core.peers import ConnectionFacts
from raxol_mcp.core.questions import Question, approval
from raxol_mcp.core.seal import Seal
from raxol_mcp.core.server import ServerCore
from raxol_mcp.wire.jsonrpc import Incoming, JSONObject, Outgoing, classify, encode
from raxol_mcp.wire.meta import META_CLIENT_CAPABILITIES, META_VERSION

IDENTITY = Identity("raxol", "1.0")
SERVER_INFO = {"io.modelcontextprotocol/serverInfo": {"name": "raxol", "version": "1.0"}}
KEY = b"k" * 32
EMPTY = "<ServerCore 0 connections | 0 in flight | 0 parked | 0 deadlines>"
ASKABLE: JSONObject = {"elicitation": {}}
_TIMED = {CallState.AUTHORIZING, CallState.PARKED, CallState.APPROVED, CallState.RUNNING}


class World:
    """One core and everything outside it. Keyword arguments are `Limits`.

    Every input returns the effects as plain tuples (see `plain`). `calls[connection, id]` is the
    newest call of that id whose worker was started.
    """

    def __init__(
        self,
        *,
        identity: Identity = IDENTITY,
        key: bytes = KEY,
        wall_offset: float = 1_000_000.0,
        **limits: float | None,
    ) -> None:
        numbers = count(1)
        self.core = ServerCore(
            Limits(**limits),  # type: ignore[arg-type]  # a test may leave the type out on purpose
            identity=identity,
            seal=Seal(key),
            new_id=lambda: f"id-{next(numbers)}",
            wall_offset=wall_offset,
        )
        self.now = 0.0
        self.calls: dict[tuple[Hashable, object], Call] = {}
        self.working: list[Call] = []  # started and not ended, in the order of their starts
        self.effects: list[Effect] = []  # of the last input, as they came

    # -- inputs -------------------------------------------------------------------------------

    def open(
        self,
        connection: Hashable = "a",
        *,
        principal: str | None = None,
        share: Hashable | None = None,
        greeting_required: bool = False,
    ) -> list[tuple[object, ...]]:
        """Attach a sink."""
        facts = ConnectionFacts("test", principal, share, greeting_required)
        return self.took(self.core.opened(connection, facts, self.now))

    def greet(
        self,
        connection: Hashable = "a",
        capabilities: Mapping[str, object] = ASKABLE,
        version: str = "2025-11-25",
    ) -> list[tuple[object, ...]]:
        """Send `initialize`."""
        params = {"protocolVersion": version, "capabilities": capabilities}
        return self.send(
            {"id": f"initialize {connection}", "method": "initialize", "params": params}, connection
        )

    def ready(self, *connections: Hashable, capabilities: Mapping[str, object] = ASKABLE) -> World:
        """Open connections and initialize them; by default they can be asked for forms."""
        for connection in connections:
            self.open(connection)
            self.greet(connection, capabilities)
        return self

    def send(
        self,
        message: object,
        connection: Hashable = "a",
        *,
        via: Via = Via.PUSH,
        caller: object = None,
    ) -> list[tuple[object, ...]]:
        """Let a JSON value arrive; `jsonrpc` is added where it is left out."""
        return self.receive(classify(versioned(message)), connection, via=via, caller=caller)

    def receive(
        self,
        message: Incoming,
        connection: Hashable = "a",
        *,
        via: Via = Via.PUSH,
        caller: object = None,
    ) -> list[tuple[object, ...]]:
        """Let a decoded message arrive."""
        return self.took(self.core.received(connection, message, self.now, via=via, caller=caller))

    def call(
        self,
        id: object,
        connection: Hashable = "a",
        *,
        tool: str = "delete",
        arguments: JSONObject | None = None,
        via: Via = Via.PUSH,
        caller: object = None,
        **params: object,
    ) -> list[tuple[object, ...]]:
        """Send a `tools/call` of the handshake era."""
        whole = {"name": tool, "arguments": arguments or {}, **params}
        message = {"id": id, "method": "tools/call", "params": whole}
        return self.send(message, connection, via=via, caller=caller)

    def stateless(
        self,
        id: object,
        connection: Hashable = "a",
        *,
        method: str = "tools/call",
        params: Mapping[str, object] | None = None,
        capabilities: Mapping[str, object] = ASKABLE,
        meta: Mapping[str, object] | None = None,
        via: Via = Via.PUSH,
        caller: object = None,
    ) -> list[tuple[object, ...]]:
        """Send a request of the stateless era; a `tools/call` of `delete` unless it says more."""
        own = {META_VERSION: "2026-07-28", META_CLIENT_CAPABILITIES: capabilities, **(meta or {})}
        named = {"name": "delete", "arguments": {}} if method == "tools/call" else {}
        message = {"id": id, "method": method, "params": {**named, **(params or {}), "_meta": own}}
        return self.send(message, connection, via=via, caller=caller)

    def listens(
        self,
        id: object,
        wanted: Mapping[str, object],
        connection: Hashable = "a",
        *,
        via: Via = Via.PUSH,
        caller: object = None,
    ) -> list[tuple[object, ...]]:
        """Send a `subscriptions/listen` and let all of it be honoured."""
        params = {"notifications": wanted}
        method = "subscriptions/listen"
        self.stateless(id, connection, method=method, params=params, via=via, caller=caller)
        return self.ends(id, Granted(dict(wanted)), connection)

    def ends(
        self, id: object, outcome: Outcome, connection: Hashable = "a"
    ) -> list[tuple[object, ...]]:
        """Let the worker of a call end."""
        call = self.calls[connection, id]
        return self.took(self.core.worker_ended(call, outcome, self.now), ended=call)

    def returns(
        self, id: object, text: str = "done", connection: Hashable = "a"
    ) -> list[tuple[object, ...]]:
        """Let the worker of a tool end with a text, written for the call's era as a shell does."""
        payload: JSONObject = {"content": [{"type": "text", "text": text}]}
        call = self.calls[connection, id]
        return self.ends(id, Returned(call.era.complete(payload)), connection)

    def asks(
        self, id: object, prompt: str = "Sure?", connection: Hashable = "a"
    ) -> list[tuple[object, ...]]:
        """Let the authorizer of a call ask the human."""
        call = self.calls[connection, id]
        return self.ends(id, Asked((approval(prompt, call.name),)), connection)

    def park(self, id: object, connection: Hashable = "a", **params: object) -> str:
        """Send a call and let its authorizer ask; return the id of the question."""
        self.call(id, connection, **params)  # type: ignore[arg-type]  # params of `call`
        self.asks(id, connection=connection)
        return str(self.calls[connection, id].asking)

    def answer(
        self, ask: object, result: object, connection: Hashable = "a"
    ) -> list[tuple[object, ...]]:
        """Let the client answer a question."""
        return self.send({"id": ask, "result": result}, connection)

    def approve(self, ask: object, connection: Hashable = "a") -> list[tuple[object, ...]]:
        """Let the human say yes."""
        return self.answer(ask, {"action": "accept", "content": {"approve": True}}, connection)

    def passes(self, seconds: float) -> list[tuple[object, ...]]:
        """Let time pass, and the shell's timer fire."""
        self.now += seconds
        return self.took(self.core.tick(self.now))

    def gone(self, connection: Hashable = "a") -> list[tuple[object, ...]]:
        """Take the sink away."""
        return self.took(self.core.gone(connection, self.now))

    def cancel(self, id: object, connection: Hashable = "a") -> list[tuple[object, ...]]:
        """Cancel a call from inside, as its handle does."""
        return self.took(self.core.cancelled(self.calls[connection, id], self.now))

    def asked_midway(
        self, id: object, key: str, question: Question, connection: Hashable = "a"
    ) -> list[tuple[object, ...]]:
        """Let the running tool of a call put a question."""
        return self.took(self.core.asked(self.calls[connection, id], key, question, self.now))

    # -- what came of it ----------------------------------------------------------------------

    def took(self, effects: list[Effect], *, ended: Call | None = None) -> list[tuple[object, ...]]:
        """Note the effects of an input, check the world, and return them as plain tuples."""
        self.effects = effects
        if ended is not None:
            self.working.remove(ended)
        for effect in effects:
            if isinstance(effect, StartWorker):
                self.working.append(effect.call)
                self.calls[effect.call.peer.connection, effect.call.id] = effect.call
        self.check()
        return plain(effects)

    def check(self) -> None:
        """What must hold between two inputs, counted anew from the calls themselves."""
        ledger = self.core.ledger
        peers = ledger.peers.all()
        calls = [call for peer in peers for call in peer.calls.values()]
        waiting = [c for c in calls if c.state in {CallState.PARKED, CallState.APPROVED}]
        parked = [call for call in calls if call.state is CallState.PARKED]
        midway = [ask for peer in peers for ask in peer.asks.values() if isinstance(ask, MidwayAsk)]
        slots, places = ledger.shares()
        assert slots == Counter(call.share for call in self.working), "slots by share"
        assert ledger.slots.taken == len(self.working), "a slot per worker"
        assert ledger.stopping == sum(c.state is CallState.CLOSED for c in self.working)
        assert places == Counter(call.share for call in waiting), "park places by share"
        assert len(ledger.parking) == len(waiting), "a park place per waiting call"
        assert len(ledger.approved) == len(waiting) - len(parked), "approved calls are known"
        timed = [call for call in calls if call.state in _TIMED]
        assert len(ledger.deadlines) == len(timed) + len(midway), "a deadline per wait"
        for call in parked:
            assert call.peer.asks[str(call.asking)] is call, "a parked call has its ask"
        assert sum(len(peer.asks) for peer in peers) == len(parked) + len(midway), "no other asks"
        assert not [peer for peer in peers if peer.idle], "nobody is remembered for nothing"
        limits = ledger.limits
        assert ledger.slots.taken <= limits.max_in_flight
        assert len(ledger.parking) <= limits.max_parked_elicitations_total
        assert max(slots.values(), default=0) <= limits.in_flight_share
        assert max(places.values(), default=0) <= limits.parked_share

    def wind_down(self) -> str:
        """Take every connection away and end every worker; return what is left, as `repr`."""
        for peer in self.core.ledger.peers.all():
            for call in list(peer.calls.values()):
                self.took(self.core.cancelled(call, self.now))
            self.gone(peer.connection)
        for call in list(self.working):
            self.took(self.core.worker_ended(call, Returned({}), self.now), ended=call)
        return repr(self.core)


def versioned(message: object) -> object:
    """Add `jsonrpc` to an object, or to those in an array, that lack it."""
    if isinstance(message, list):
        return [versioned(item) for item in message]
    return {"jsonrpc": "2.0", **message} if isinstance(message, dict) else message


def written(message: Outgoing | None) -> object:
    """Give a message as the JSON value that is sent, without its `jsonrpc`."""
    if message is None:
        return None
    value = json.loads(encode(message))
    assert value.pop("jsonrpc") == "2.0"
    return value


def plain(effects: Iterable[Effect]) -> list[tuple[object, ...]]:
    """Write effects as tuples that can be compared and read.

    `("push", connection, message, about)`, `("note", ...)` for one that may be dropped,
    `("reply", caller, message)`, `("start", id, job)`, `("stop", id)`,
    `("resolve", id, key, answer)`, `("record", event, fields)`.
    """
    return [_plain(effect) for effect in effects]


def _plain(effect: Effect) -> tuple[object, ...]:
    match effect:
        case Push(connection, message, about, droppable):
            return ("note" if droppable else "push", connection, written(message), about)
        case Reply(caller, message):
            return ("reply", caller, written(message))
        case StartWorker(call, job):
            return ("start", call.id, job.value)
        case StopWorker(call):
            return ("stop", call.id)
        case Resolve(call, key, answer):
            return ("resolve", call.id, key, written(answer))
        case Record(event, fields):
            return ("record", event, fields)


# -- the messages the core writes, for the right-hand side of tests -------------------------------


def push(
    connection: Hashable, message: Mapping[str, object], about: object = "same"
) -> tuple[object, ...]:
    """A push; `about` is the message's own id unless it is given."""
    return ("push", connection, message, message.get("id") if about == "same" else about)


def text_result(id: object, text: str, *, failed: bool = False) -> JSONObject:
    """The answer of a tool in the handshake era."""
    result: JSONObject = {"content": [{"type": "text", "text": text}]}
    return {"id": id, "result": {**result, "isError": True} if failed else result}


def denial(id: object, detail: str, decision: str = "ask", tool: str = "delete") -> JSONObject:
    """The machine-readable refusal (server-behaviour of `tools/call`), exact to the byte."""
    text = (
        f'{{"error":"authorization_required","tool":"{tool}",'
        f'"decision":"{decision}","detail":"{detail}"}}'
    )
    return text_result(id, text, failed=True)


def busy(id: object, scope: str) -> JSONObject:
    """The refusal of a tool call that found no slot."""
    text = f'{{"error":"server_busy","scope":"{scope}","retryable":true}}'
    return text_result(id, text, failed=True)


def error(
    id: object, code: int, message: str, data: Mapping[str, object] | None = None
) -> JSONObject:
    """A JSON-RPC error."""
    body: JSONObject = {"code": code, "message": message}
    return {"id": id, "error": body if data is None else {**body, "data": data}}


def question(ask: object, prompt: str = "Sure?", tool: str = "delete") -> JSONObject:
    """The `elicitation/create` that puts an authorizer's prompt."""
    approve = {"type": "boolean", "description": f"Approve running the {tool} tool"}
    schema = {"type": "object", "properties": {"approve": approve}, "required": ["approve"]}
    params = {"message": prompt, "requestedSchema": schema}
    return {"id": ask, "method": "elicitation/create", "params": params}


def withdrawn(ask: object, reason: str) -> JSONObject:
    """The notification that a question is moot."""
    params = {"requestId": ask, "reason": reason}
    return {"method": "notifications/cancelled", "params": params}
