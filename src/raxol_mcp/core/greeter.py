"""Greeting a server: the probe, `initialize`, the word that we know, and how each may go.

What an answer means says `greeting.py`; whether there is a session, and what becomes of one that
fails, `session.py`. A greeting is one or more of these, in this order:

```
server/discover ──yes──────────────────────────────────────────▶ begun, stateless
   │ no, or silence on a pipe
initialize ──yes──▶ notifications/initialized ──delivered──────▶ begun, handshake
   │ refused over HTTP as HTTP+SSE would: once more, over that
```

A pipe that ends while a probe of ours is unanswered is opened again, once, and not probed then.
The probe's answer may come after silence was taken for a no: a yes counts until `initialize` is
answered. A verdict about the server shortens all this; a client that was told the era neither
asks for one nor gives one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raxol_mcp.core.client_effects import Agreed
from raxol_mcp.core.greeting import (
    ServerFacts,
    Unwell,
    Verdicted,
    after_initialize,
    after_probe,
    may_have_two_endpoints,
    says_unauthorized,
    stateless_facts,
)
from raxol_mcp.core.tickets import Alarm, Timer
from raxol_mcp.core.verdicts import Verdict, Verdicts
from raxol_mcp.core.window import Policy
from raxol_mcp.errors import Reason
from raxol_mcp.wire.jsonrpc import Failure, Notification, Request, Response
from raxol_mcp.wire.meta import LATEST_HANDSHAKE, STATELESS_VERSION, EraName

if TYPE_CHECKING:
    from raxol_mcp.core.client_ledger import ClientLedger
    from raxol_mcp.core.session import Session
    from raxol_mcp.wire.jsonrpc import JSONObject

__all__ = ["Greeter"]


class _Greeting:
    """A greeting under way: the keys of what was sent and is not answered.

    `known`: the era was known before, so that this greeting does not find it out.
    """

    __slots__ = ("again", "discovered", "in_place", "initialize", "initialized", "known", "probe")

    def __init__(self, *, in_place: bool, known: bool) -> None:
        self.in_place = in_place
        self.known = known
        self.probe: int | None = None
        self.again = False
        self.discovered: JSONObject | None = None
        self.initialize: int | None = None
        self.initialized: int | None = None


class Greeter:
    """Greets one server, as often as its session wants. Tells `session` how it went."""

    def __init__(self, ledger: ClientLedger, verdicts: Verdicts, session: Session) -> None:
        self._ledger = ledger
        self._verdicts = verdicts
        self._session = session
        self._greeting: _Greeting | None = None
        self._timer = Timer(Alarm.GREETING)
        self._probe_timer = Timer(Alarm.PROBE)
        self._two_endpoints = False
        self._refused: Reason | None = None  # what `initialize` met before HTTP+SSE was tried
        self._unprobed = False  # the server ended when it was probed

    @property
    def is_greeting(self) -> bool:
        """Whether a greeting is under way."""
        return self._greeting is not None

    def two_endpoints(self) -> bool:
        """Say whether the next link is to be one of HTTP+SSE."""
        if self._refused is None:
            verdict = self._verdict()
            self._two_endpoints = verdict is not None and verdict.two_endpoints
        return self._two_endpoints

    def greet(self, *, in_place: bool) -> None:
        """Begin; `in_place`, on a link on which there was a session before."""
        ledger, options = self._ledger, self._ledger.options
        verdict = self._verdict()
        if verdict is not None and verdict.era is EraName.STATELESS and not self._two_endpoints:
            self._found(stateless_facts(verdict.discovered))
            self._session.begin()
            return
        era = options.era or (verdict.era if verdict is not None else None)
        self._greeting = _Greeting(in_place=in_place, known=era is not None)
        ledger.deadlines.add(self._timer, options.init_timeout, ledger.now)
        if self._two_endpoints or self._unprobed or era is EraName.HANDSHAKE:
            self._initialize()
        else:
            self._probe()

    def end(self) -> None:
        """End the greeting that is under way, however it went."""
        self._greeting = None
        self._ledger.deadlines.remove(self._timer)
        self._ledger.deadlines.remove(self._probe_timer)

    def failed(self) -> None:
        """The attempt is over: the next one starts from what is known of the server alone."""
        self.end()
        self._refused = None
        self._unprobed = False

    def forget(self) -> None:
        """Drop what is known of the server: it answers as such a server could not."""
        self._verdicts.forget(self._ledger.options.verdict_key)

    # -- what is sent -------------------------------------------------------------------------

    def _probe(self) -> None:
        ledger, greeting = self._ledger, self._under_way()
        greeting.probe = ledger.next_key()
        if ledger.options.probe_timeout is not None and ledger.options.era is None:
            ledger.deadlines.remove(self._probe_timer)
            ledger.deadlines.add(self._probe_timer, ledger.options.probe_timeout, ledger.now)
        params: JSONObject = {"_meta": ledger.stateless_meta(STATELESS_VERSION)}
        ledger.send(Request(greeting.probe, "server/discover", params), greeting.probe)

    def _initialize(self) -> None:
        ledger, greeting = self._ledger, self._under_way()
        ledger.deadlines.remove(self._probe_timer)
        greeting.initialize = ledger.next_key()
        params: JSONObject = {
            "protocolVersion": LATEST_HANDSHAKE,
            "capabilities": ledger.options.handshake_capabilities,
            "clientInfo": ledger.options.client_info,
        }
        ledger.send(Request(greeting.initialize, "initialize", params), greeting.initialize)

    def _under_way(self) -> _Greeting:
        assert self._greeting is not None, "a greeting is under way"
        return self._greeting

    # -- what comes ---------------------------------------------------------------------------

    def answered(self, key: int, answer: Response | Failure | Reason) -> bool:
        """Take the answer to what a greeting sent; False when `key` is none of that."""
        greeting = self._greeting
        if greeting is None:
            return False
        if key == greeting.initialized:
            if isinstance(answer, Reason):
                self._introduced(answer)
        elif key == greeting.initialize:
            self._initialized(greeting, answer)
        elif key == greeting.probe:
            self._probed(greeting, answer)
        else:
            return False
        return True

    def sent(self, key: int) -> None:
        """A notification was delivered; the one that ends a greeting, perhaps."""
        if self._greeting is not None and key == self._greeting.initialized:
            self._session.begin()

    def lost(self, reason: Reason) -> None:
        """The link is not there, or ended before it was greeted."""
        greeting, options = self._greeting, self._ledger.options
        if self._refused is not None and not says_unauthorized(reason):
            # The older transport did not work either: the first refusal says more.
            self._session.fail(Reason("initialization_failed", cause=self._refused))
        elif (
            greeting is not None
            and greeting.probe is not None
            and not options.closing_cancels
            and options.era is None
        ):
            # Servers were seen to exit on a request they do not know. MCP 2026-07-28
            # basic/transports/stdio: a client may start the process again and initialize.
            self._unprobed = True
            self._session.reopen()
        else:
            if self._two_endpoints:
                self.forget()  # it may have been replaced by a server of one endpoint
            self._session.fail(reason)

    def rang(self, alarm: Alarm) -> None:
        """A timer is due. What was due with it may have ended the greeting."""
        greeting = self._greeting
        if greeting is None:
            pass
        elif alarm is Alarm.PROBE:
            self._initialize()
        else:
            self._session.fail(Reason("initialization_failed", cause=Reason("timeout")))

    def _probed(self, greeting: _Greeting, answer: Response | Failure | Reason) -> None:
        greeting.probe = None
        found = after_probe(answer, again=greeting.again)
        if isinstance(found, ServerFacts):
            if isinstance(answer, Response) and isinstance(answer.result, dict):
                greeting.discovered = answer.result
            self._found(found)
            self._session.begin()
        elif greeting.initialize is not None:
            pass  # it came after we had given the probe up: only a yes matters still
        elif isinstance(found, Unwell):
            self._session.fail(found.reason)
        elif found is Verdicted.AGAIN:
            greeting.again = True
            self._probe()
        elif self._ledger.options.era is EraName.STATELESS:
            cause = answer if isinstance(answer, Reason) else None
            self._session.fail(Reason("unsupported_version", cause=cause))
        else:
            self._initialize()

    def _initialized(self, greeting: _Greeting, answer: Response | Failure | Reason) -> None:
        greeting.initialize = greeting.probe = None
        ledger, found = self._ledger, after_initialize(answer)
        if isinstance(found, ServerFacts):
            self._found(found)
            # Requests wait until this was delivered: over HTTP they could overtake it (ADR-0024).
            greeting.initialized = ledger.next_key()
            ledger.send(Notification("notifications/initialized", {}), greeting.initialized)
        elif (
            not greeting.in_place
            and ledger.options.kind == "http"
            and not self._two_endpoints
            and may_have_two_endpoints(found)
        ):
            self.forget()
            self._refused = found
            self._two_endpoints = True
            self._session.reopen()
        else:
            self.forget()
            self._session.fail(Reason("initialization_failed", cause=found))

    def _introduced(self, reason: Reason) -> None:
        """The last word of a greeting was refused: no matter, unless there is no session then."""
        if reason.tag == "http" and not says_unauthorized(reason):
            self._session.begin()
        else:
            self._session.fail(Reason("initialization_failed", cause=reason))

    # -- what is known ------------------------------------------------------------------------

    def _found(self, facts: ServerFacts) -> None:
        """The server has said who it is: from here on it is spoken to accordingly."""
        ledger = self._ledger
        ledger.facts = facts
        ledger.window.policy = ledger.options.policy or self._own_policy(facts.era)
        ledger.put(Agreed(ledger.attempt, facts.era, facts.version))

    def _own_policy(self, era: EraName) -> Policy:
        shared = self._ledger.options.kind == "http" and era is EraName.HANDSHAKE
        return Policy.POOLED if shared else Policy.STATELESS

    def begun(self) -> None:
        """The session is usable: only now is what a greeting found out a verdict."""
        facts, greeting = self._ledger.facts, self._greeting
        assert facts is not None, "it was greeted"
        if greeting is not None and not greeting.known:
            verdict = Verdict(
                facts.era,
                facts.version,
                two_endpoints=self._two_endpoints,
                discovered=greeting.discovered,
            )
            self._verdicts.put(self._ledger.options.verdict_key, verdict, self._ledger.now)
        self._refused = None
        self.end()

    def _verdict(self) -> Verdict | None:
        """What is known of the server; a client that was told the era wants to know nothing."""
        options = self._ledger.options
        if options.era is not None:
            return None
        return self._verdicts.get(options.verdict_key, ttl=options.era_ttl, now=self._ledger.now)
