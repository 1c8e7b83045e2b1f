"""One client's core, told what happens and asked what it does: lines that read like a story.

Every input returns what came of it as text: `send 3 tools/call`, `a: result`, `close 1`. Tickets
are called by letters. After every input the tables of the core are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from raxol_mcp.core.client import ClientCore
from raxol_mcp.core.client_effects import (
    Abort,
    Acknowledged,
    Agreed,
    Answer,
    AskUser,
    Begin,
    Close,
    Deliver,
    Effect,
    Handle,
    Open,
    Progressed,
    Record,
    Send,
    Settle,
    Withdraw,
)
from raxol_mcp.core.client_ledger import ClientOptions
from raxol_mcp.core.tickets import Notice, ServerQuestion, Ticket, TicketState, Waiter
from raxol_mcp.core.verdicts import Verdicts
from raxol_mcp.errors import Reason
from raxol_mcp.wire.jsonrpc import (
    Failure,
    Incoming,
    JSONObject,
    Notification,
    Outgoing,
    Request,
    RequestId,
    Response,
)

__all__ = ["ASK", "DISCOVERED", "Told", "options"]

KEY: Final = ("server",)
DISCOVERED: Final[JSONObject] = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
ASK: Final[JSONObject] = {"k": {"method": "elicitation/create", "params": {"message": "?"}}}
UNHEARD: Final = Reason("http", 404)


def options(kind: str = "stdio", **more: object) -> ClientOptions:
    """Say how a client is set up."""
    given: dict[str, object] = {
        "kind": kind,
        "verdict_key": KEY,
        "closing_cancels": kind == "http",
        "client_info": {"name": "test"},
        "handshake_capabilities": {"roots": {}},
        "stateless_capabilities": {"elicitation": {}},
        "asked_methods": frozenset({"elicitation/create", "roots/list"}),
        "probe_timeout": None if kind == "http" else 5.0,
        **more,
    }
    return ClientOptions(**given)  # type: ignore[arg-type]  # given by name


def _free(tool: str, reservation: object, now: float) -> Reason | None:
    return None


class Told:
    """A core and the clock that it is told. `sent` keeps every message by its key."""

    def __init__(
        self,
        kind: str = "stdio",
        *,
        verdicts: Verdicts | None = None,
        payment: Callable[[str, object, float], Reason | None] = _free,
        **more: object,
    ) -> None:
        self.now = 100.0
        self.verdicts = Verdicts() if verdicts is None else verdicts
        self.options = options(kind, **more)
        self.core = ClientCore(self.options, self.verdicts, payment)
        self.effects: list[Effect] = []
        self.sent_messages: dict[int, Outgoing] = {}
        self.letters: dict[Ticket, str] = {}
        self.waiters: dict[Waiter, str] = {}
        self.questions: dict[RequestId, ServerQuestion] = {}

    # -- what is told -------------------------------------------------------------------------

    def told(self, effects: list[Effect]) -> list[str]:
        """Take the effects of an input; records are left out."""
        self.effects = effects
        for effect in effects:
            if isinstance(effect, Send):
                assert effect.key not in self.sent_messages, "a key is used twice"
                self.sent_messages[effect.key] = effect.message
            if isinstance(effect, Handle):
                self.questions[effect.question.id] = effect.question
        self._count()
        return [self._line(effect) for effect in effects if not isinstance(effect, Record)]

    def records(self) -> list[str]:
        """Give what was counted in the last input."""
        return [effect.event for effect in self.effects if isinstance(effect, Record)]

    def reason(self) -> Reason:
        """Give the reason of the one ticket that the last input settled."""
        (reason,) = [effect.reason for effect in self.effects if isinstance(effect, Settle)]
        assert reason is not None
        return reason

    def params(self, key: int) -> Mapping[str, object]:
        """Give the params of what was sent under `key`."""
        message = self.sent_messages[key]
        assert isinstance(message, Request | Notification)
        return message.params or {}

    def _count(self) -> None:
        """Every table against every other: what is held is held by somebody who waits."""
        ledger = self.core.ledger
        tickets = [one for one in self.letters if one.state is not TicketState.SETTLED]
        kept = [*ledger.window.waiting(), *ledger.answering, *ledger.listening.values()]
        kept += [holder for holder in ledger.window.held.values() if isinstance(holder, Ticket)]
        notices = [one for one in ledger.window.held.values() if isinstance(one, Notice)]
        assert set(kept) == {one for one in tickets if one.state is not TicketState.NEW}
        timers = [*kept, *notices, *ledger.questions.values(), *ledger.waiters]
        waiting = sum(one.lane is not None for one in timers)
        session = [
            one
            for lane in ledger.deadlines._lanes.values()
            for one in lane
            if one not in timers  # those of the session itself
        ]
        assert len(ledger.deadlines) == waiting + len(session)

    def _line(self, effect: Effect) -> str:
        match effect:
            case Open():
                return f"open {effect.attempt}{' by two endpoints' * effect.two_endpoints}"
            case Send():
                assert effect.attempt == self.core.ledger.attempt
                return f"send {effect.key} {_message(effect.message)}"
            case Abort() | Close():
                key = effect.key if isinstance(effect, Abort) else effect.attempt
                return f"{type(effect).__name__.lower()} {key}"
            case Agreed() | Begin():
                return f"{type(effect).__name__.lower()} {effect.era.value} {effect.version}"
            case _:
                return self._caller_line(effect)

    def _caller_line(self, effect: Effect) -> str:
        match effect:
            case Settle():
                done = " (maybe done)" * (effect.reason is not None and effect.reason.maybe_done)
                why = "" if effect.reason is None else f" {' '.join(map(str, effect.reason.path))}"
                return f"{self.letters[effect.ticket]}: {effect.ended.value}{why}{done}"
            case Answer():
                why = "" if effect.reason is None else f" {' '.join(map(str, effect.reason.path))}"
                return f"{self.waiters[effect.waiter]}: {effect.ended.value}{why}"
            case Handle() | Withdraw():
                return f"{type(effect).__name__.lower()} {effect.question.id}"
            case AskUser():
                return f"{self.letters[effect.ticket]}: ask {','.join(effect.requests)}"
            case Deliver():
                whose = "" if effect.ticket is None else f" to {self.letters[effect.ticket]}"
                return f"deliver {effect.method}{whose}"
            case Progressed():
                more = f" of {effect.total}" if effect.total is not None else ""
                return f"{self.letters[effect.ticket]}: progress {effect.progress}{more}"
            case Acknowledged():
                return f"{self.letters[effect.ticket]}: acknowledged"
            case _:
                raise AssertionError(effect)

    # -- the link -----------------------------------------------------------------------------

    def start(self) -> list[str]:
        """Begin."""
        return self.told(self.core.started(self.now))

    def opened(self) -> list[str]:
        """The link is there."""
        return self.told(self.core.opened(self.core.ledger.attempt, self.now))

    def lost(self, *reason: int | str, attempt: int | None = None) -> list[str]:
        """The link is over."""
        tag, *detail = reason or ("transport", "closed")
        attempt = self.core.ledger.attempt if attempt is None else attempt
        return self.told(self.core.lost(attempt, Reason(str(tag), *detail), self.now))

    def received(
        self, message: Incoming, *, about: int | None = None, attempt: int | None = None
    ) -> list[str]:
        """The server says something."""
        attempt = self.core.ledger.attempt if attempt is None else attempt
        return self.told(self.core.received(attempt, message, self.now, about=about))

    def result(self, key: int, result: object, *, about: int | None = None) -> list[str]:
        """The server answers."""
        return self.received(Response(key, result), about=about)

    def error(self, key: int | None, code: int, data: object = None) -> list[str]:
        """The server answers with an error."""
        return self.received(Failure(key, code, "no", data))

    def failed(self, key: int, reason: Reason, *, attempt: int | None = None) -> list[str]:
        """The transport has no answer."""
        attempt = self.core.ledger.attempt if attempt is None else attempt
        return self.told(self.core.failed(attempt, key, reason, self.now))

    def sent(self, key: int, *, attempt: int | None = None) -> list[str]:
        """A notification was delivered."""
        attempt = self.core.ledger.attempt if attempt is None else attempt
        return self.told(self.core.sent(attempt, key, self.now))

    def asked(self, id: RequestId, method: str, *, about: int | None = None) -> list[str]:
        """The server asks."""
        return self.received(Request(id, method, {}), about=about)

    def says(
        self, method: str, params: JSONObject | None = None, *, about: int | None = None
    ) -> list[str]:
        """The server notifies."""
        return self.received(Notification(method, params), about=about)

    # -- time ---------------------------------------------------------------------------------

    def after(self, seconds: float) -> list[str]:
        """Time passes, and the timer is due."""
        self.now += seconds
        return self.told(self.core.tick(self.now))

    # -- callers ------------------------------------------------------------------------------

    def call(self, letter: str, method: str = "tools/call", **more: object) -> list[str]:
        """A caller asks for something, which is called by a letter from here on."""
        params = more.pop("params", {"name": letter})
        more.setdefault("timeout", 30.0)
        ticket = Ticket(method, params, **more)  # type: ignore[arg-type]  # given by name
        self.letters[ticket] = letter
        return self.told(self.core.submitted(ticket, self.now))

    def listen(self, letter: str) -> list[str]:
        """A caller subscribes."""
        return self.call(letter, "subscriptions/listen", listening=True)

    def ticket(self, letter: str) -> Ticket:
        """Find a ticket by its letter."""
        (found,) = [ticket for ticket, own in self.letters.items() if own == letter]
        return found

    def abandon(self, letter: str) -> list[str]:
        """The caller goes away."""
        return self.told(self.core.abandoned(self.ticket(letter), self.now))

    def resume(self, letter: str, answers: JSONObject | Reason) -> list[str]:
        """The user has answered."""
        return self.told(self.core.resumed(self.ticket(letter), answers, self.now))

    def reply(self, id: RequestId, result: object = None) -> list[str]:
        """The user has answered a request of the server."""
        answer = Response(id, result)
        return self.told(self.core.replied(self.questions[id], answer, self.now))

    def notify(
        self, method: str = "notifications/x", params: JSONObject | None = None
    ) -> list[str]:
        """The user tells the server something."""
        return self.told(self.core.notified(method, params, self.now))

    def wait(
        self, name: str, timeout: float | None = None, *, fail_fast: bool = False
    ) -> list[str]:
        """Somebody waits for a session."""
        waiter = Waiter(timeout, fail_fast=fail_fast)
        self.waiters[waiter] = name
        return self.told(self.core.awaited(waiter, self.now))

    def unwait(self, name: str) -> list[str]:
        """Nobody waits any more."""
        (waiter,) = [one for one, own in self.waiters.items() if own == name]
        return self.told(self.core.unawaited(waiter, self.now))

    def stop(self) -> list[str]:
        """End."""
        return self.told(self.core.stopped(self.now))

    # -- stories ------------------------------------------------------------------------------

    def until_probed(self) -> Told:
        """Go on until the probe is sent, as key 1."""
        self.start()
        assert self.opened() == ["send 1 server/discover"]
        return self

    def stateless(self) -> Told:
        """Go on until a session of the stateless era is ready; its first key is 2."""
        self.until_probed()
        self.result(1, DISCOVERED)
        return self

    def handshake(self, version: str = "2025-11-25") -> Told:
        """Go on until a session of the handshake era is ready; its first key is 4."""
        self.until_probed()
        self.error(1, -32601)
        self.result(2, {"protocolVersion": version})
        self.sent(3)
        return self


def _message(message: Outgoing) -> str:
    match message:
        case Request() | Notification():
            return message.method
        case Response():
            return f"result of {message.id}"
        case Failure():
            return f"error {message.code} of {message.id}"
