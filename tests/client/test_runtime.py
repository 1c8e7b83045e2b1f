"""client/runtime.py: effects in order, tasks that end, one timer, and nothing kept for nobody."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any

import pytest

from raxol_mcp.client.runtime import ClientRuntime
from raxol_mcp.core.client import ClientCore
from raxol_mcp.core.client_effects import (
    Abort,
    Acknowledged,
    Agreed,
    Begin,
    Close,
    Deliver,
    Effect,
    Ended,
    Progressed,
    Record,
    Send,
    Settle,
)
from raxol_mcp.core.client_ledger import ClientOptions
from raxol_mcp.core.session import SessionState
from raxol_mcp.core.tickets import ServerQuestion, Ticket, TicketState, Waiter
from raxol_mcp.core.verdicts import Verdicts
from raxol_mcp.errors import (
    ConnectFailed,
    ConnectionLost,
    LocalProtocolError,
    NotReady,
    Reason,
    RemoteProtocolError,
    RequestFailed,
)
from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.transports.link import Dialect, LinkFailed, LinkPort
from raxol_mcp.wire.headers import Mirror
from raxol_mcp.wire.jsonrpc import (
    Failure,
    JSONObject,
    Notification,
    Outgoing,
    Request,
    Response,
)
from raxol_mcp.wire.meta import EraName

SECRET = "s3cr3t-v4lue"
GREETED: JSONObject = {
    "protocolVersion": "2025-11-25",
    "serverInfo": {"name": "held", "version": "1"},
    "capabilities": {},
}
DISCOVERED: JSONObject = {
    "resultType": "complete",
    "supportedVersions": ["2026-07-28"],
    "capabilities": {},
}
ASKED: JSONObject = {
    "resultType": "input_required",
    "inputRequests": {"a": {"method": "elicitation/create"}},
}


async def nothing(_: object) -> None:
    """Take no time."""


class HeldLink:
    """A link that is held in the hand: it opens and closes as it is told, and greets back."""

    def __init__(self, dialer: HeldDialer, port: LinkPort) -> None:
        self.port = port
        self.sent: list[Outgoing] = []
        self.aborted: list[int] = []
        self._dialer = dialer

    async def open(self) -> None:
        """Open as the dialer says."""
        self._dialer.log.append("open")
        try:
            await self._dialer.opens(self)
        except asyncio.CancelledError:
            self._dialer.log.append("open cancelled")
            raise

    def send(self, message: Outgoing, key: int, *, mirrors: Sequence[Mirror] = ()) -> None:
        """Write down what is sent; answer a greeting."""
        self.sent.append(message)
        if not isinstance(message, Request):
            asyncio.get_running_loop().call_soon(self.port.sent, key)
        else:
            greeting = {"initialize": GREETED, "server/discover": DISCOVERED}.get(message.method)
            if greeting is not None:
                asyncio.get_running_loop().call_soon(self.port.received, Response(key, greeting))
            elif message.method == "boom":
                raise ValueError("no such method")

    def agreed(self, era: EraName, version: str) -> None:
        """Fail, if the dialer says so."""
        self._dialer.agrees()

    def abort(self, key: int) -> None:
        """Write it down."""
        self.aborted.append(key)

    async def close(self) -> None:
        """Close as the dialer says."""
        self._dialer.log.append("close")
        await self._dialer.closes(self)
        self._dialer.log.append("closed")

    @property
    def methods(self) -> list[str]:
        """The methods of what was sent."""
        return [each.method for each in self.sent if isinstance(each, Request | Notification)]


class HeldDialer:
    """Makes held links. `log` is what was done to them, in order."""

    kind = "memory"
    closing_cancels = False
    verdict_key = "held"

    def __init__(
        self,
        opens: Callable[[HeldLink], Awaitable[None]] = nothing,
        closes: Callable[[HeldLink], Awaitable[None]] = nothing,
        agrees: Callable[[], None] = lambda: None,
    ) -> None:
        self.opens = opens
        self.closes = closes
        self.agrees = agrees
        self.links: list[HeldLink] = []
        self.log: list[str] = []
        self.fails = 0

    def link(self, port: LinkPort, dialect: Dialect) -> HeldLink:
        """Make a link, unless this is to fail."""
        if self.fails:
            self.fails -= 1
            raise ValueError("no link")
        self.links.append(HeldLink(self, port))
        return self.links[-1]


class Told:
    """A user that writes down what he is told, and answers as he is told."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.handles: Callable[[ServerQuestion], Awaitable[Response | Failure]] = self._refuse
        self.asks: Callable[[JSONObject], Awaitable[JSONObject | Reason]] = self._nothing

    async def _refuse(self, question: ServerQuestion) -> Response | Failure:
        return Failure(question.id, -32601, "no")

    async def _nothing(self, requests: JSONObject) -> JSONObject | Reason:
        return {key: {} for key in requests}

    async def handle(self, question: ServerQuestion) -> Response | Failure:
        return await self.handles(question)

    async def ask(self, requests: JSONObject) -> JSONObject | Reason:
        return await self.asks(requests)

    def begun(self, effect: Begin) -> None:
        self.log.append("begun")

    def deliver(self, effect: Deliver) -> None:
        self.log.append(effect.method)

    def progressed(self, effect: Progressed) -> None:
        self.log.append(f"{effect.progress}")

    def acknowledged(self, effect: Acknowledged) -> None:
        self.log.append("acknowledged")

    def missed(self) -> None:
        self.log.append("missed")


class Rig:
    """A runtime with everything that it touches."""

    def __init__(self, dialer: HeldDialer | None = None, era: str = "handshake") -> None:
        self.dialer = HeldDialer() if dialer is None else dialer
        self.user = Told()
        self.events: list[tuple[str, JSONObject]] = []
        self.hook: Callable[[str], None] = lambda event: None
        options = ClientOptions(
            kind="memory",
            verdict_key="held",
            closing_cancels=False,
            client_info={"name": "t", "version": "0"},
            handshake_capabilities={},
            stateless_capabilities={},
            asked_methods=frozenset({"elicitation/create"}),
            pool_size=1,
            era=EraName(era),
        )
        self.core = ClientCore(options, Verdicts(), lambda *_: None)
        self.runtime = ClientRuntime(
            "rig",
            self.core,
            self.dialer,
            self.user,
            mask=lambda text: text.replace(SECRET, "***"),
            observe=self._observe,
        )

    def _observe(self, event: str, fields: JSONObject) -> None:
        self.events.append((event, fields))
        self.hook(event)

    @property
    def state(self) -> SessionState:
        return self.core.session.state

    @property
    def port(self) -> LinkPort:
        return self.dialer.links[-1].port

    def start(self) -> None:
        self.runtime.perform(self.core.started(self.runtime.now()))

    async def ready(self) -> None:
        self.start()
        await self.runtime.ready(Waiter(10.0, fail_fast=True))

    def request(self, method: str = "tools/call", **options: Any) -> asyncio.Task[JSONObject]:
        ticket = Ticket(method, {"name": "t"}, timeout=30.0, **options)
        return asyncio.create_task(self.runtime.request(ticket))

    def last_id(self) -> int:
        found = [each for each in self.dialer.links[-1].sent if isinstance(each, Request)][-1].id
        assert isinstance(found, int)
        return found

    def nothing_is_held(self) -> None:
        ledger = self.core.ledger
        assert (self.runtime._tickets, self.runtime._waiters) == ({}, {})
        assert (ledger.window.held, list(ledger.window.waiting())) == ({}, [])
        assert (ledger.answering, ledger.questions, self.runtime._answering) == ({}, {}, {})
        assert self.state is SessionState.STARTING or self.runtime._opening == {}


def with_rig(
    test: Callable[[Rig], Coroutine[object, object, None]],
    dialer: HeldDialer | None = None,
    era: str = "handshake",
) -> Rig:
    """Run a test with a rig, stop it, and see that no task is left."""
    rigs: list[Rig] = []

    async def main() -> None:
        before = asyncio.all_tasks()
        rig = Rig(dialer, era)
        rigs.append(rig)
        await test(rig)
        await rig.runtime.stop()
        rig.nothing_is_held()
        await turns(1)
        assert asyncio.all_tasks() == before
        assert rig.runtime._timer is None

    run_virtual(main)
    return rigs[0]


async def turns(count: int = 10) -> None:
    """Let everything that is ready happen."""
    for _ in range(count):
        await asyncio.sleep(0)


async def ended(work: Awaitable[object]) -> BaseException | None:
    """Wait for something; return what it raises."""
    try:
        await work
    except BaseException as raised:
        return raised
    return None


async def forever(_: object) -> Any:
    """Never return."""
    await asyncio.Event().wait()


def question(id: str = "q") -> Request:
    return Request(id, "elicitation/create", {})


# -- effects --------------------------------------------------------------------------------------


def test_an_input_that_comes_during_effects_is_performed_after_them() -> None:
    """ours: effects of two inputs are never interleaved"""

    async def test(rig: Rig) -> None:
        def hook(event: str) -> None:
            if event == "a":
                rig.runtime.perform([Record("c", {}), Record("d", {})])
                assert [name for name, _ in rig.events] == ["a"]

        rig.hook = hook
        rig.runtime.perform([Record("a", {}), Record("b", {})])
        assert [name for name, _ in rig.events] == ["a", "b", "c", "d"]

    with_rig(test)


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(1), asyncio.CancelledError()])
def test_an_effect_that_fails_costs_no_other(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    """ours: what was decided besides is done"""

    def fails() -> None:
        raise error

    async def test(rig: Rig) -> None:
        await rig.ready()
        assert rig.user.log == ["begun"]

    with_rig(test, HeldDialer(agrees=fails))
    assert "rig: Agreed failed: please report it" in caplog.text


def test_a_message_that_the_link_cannot_take_fails_alone(caplog: pytest.LogCaptureFixture) -> None:
    async def test(rig: Rig) -> None:
        await rig.ready()
        raised = await ended(rig.request("boom"))
        assert isinstance(raised, RequestFailed)
        assert raised.reason.path == ("task_down", "ValueError")
        assert raised.outcome_unknown
        assert rig.state is SessionState.READY

    with_rig(test)
    assert "rig: Send failed: please report it" in caplog.text


def test_whatever_concerns_a_link_that_is_gone_is_dropped() -> None:
    """core/client_effects.py: `attempt` numbers the links"""

    async def test(rig: Rig) -> None:
        await rig.ready()
        link = rig.dialer.links[0]
        sent = len(link.sent)
        message = Notification("x", {})
        late: list[Effect] = [Send(9, message, 99), Abort(9, 99), Close(9)]
        rig.runtime.perform([*late, Agreed(9, EraName.HANDSHAKE, "2025-11-25")])
        await turns()
        assert (len(link.sent), link.aborted, rig.dialer.log) == (sent, [], ["open"])

    with_rig(test)


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(1), asyncio.CancelledError()])
def test_an_observer_that_fails_is_a_line_in_the_log(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    """ours: nothing is cancelled where nothing is awaited, so that is a mistake as well"""

    async def test(rig: Rig) -> None:
        def hook(event: str) -> None:
            raise error

        rig.hook = hook
        rig.runtime.perform([Record("a", {}), Record("b", {})])
        assert [name for name, _ in rig.events] == ["a", "b"]

    with_rig(test)
    assert "the observer failed on a" in caplog.text


def test_nobody_need_observe() -> None:
    async def main() -> None:
        rig = Rig()
        runtime = ClientRuntime("quiet", rig.core, rig.dialer, rig.user, mask=str)
        runtime.perform([Record("a", {})])

    run_virtual(main)


def test_events_and_reasons_are_told_without_secrets(caplog: pytest.LogCaptureFixture) -> None:
    """README: a secret of the spec is in no log and in no error"""
    caplog.set_level(logging.DEBUG, "raxol_mcp.client.events")

    async def test(rig: Rig) -> None:
        await rig.ready()
        rig.port.noticed("stray_output", {"text": f"token {SECRET}", "count": 1})
        assert rig.events[-1] == ("stray_output", {"text": "token ***", "count": 1})
        call = rig.request()
        await turns()
        rig.port.received(Failure(rig.last_id(), 7, f"no {SECRET}", {"why": [SECRET, 1]}))
        refused = await ended(call)
        assert isinstance(refused, RemoteProtocolError)
        assert (str(refused), refused.data) == ("no ***", {"why": ["***", 1]})
        call = rig.request()
        await turns()
        cause = Reason("transport", "reset", text=SECRET)
        rig.port.lost(Reason("initialization_failed", cause=cause, text=SECRET))
        lost = await ended(call)
        assert isinstance(lost, ConnectionLost)
        assert str(lost.reason) == "initialization_failed: transport reset (***) (***)"
        waits = await ended(rig.runtime.ready(Waiter(1.0, fail_fast=True)))
        assert isinstance(waits, ConnectFailed)
        assert SECRET not in str(waits)

    with_rig(test)
    assert "token ***" in caplog.text
    assert "WARNING" in caplog.text  # a server that is gone
    assert SECRET not in caplog.text


# -- the timer ------------------------------------------------------------------------------------


def test_the_timer_only_moves_earlier_and_is_armed_again() -> None:
    """ours: to fire too early is harmless, too late is not"""

    async def test(rig: Rig) -> None:
        loop = asyncio.get_running_loop()

        def due_at() -> float | None:
            timer = rig.runtime._timer
            return None if timer is None else timer.when()

        ended_at: dict[float, float] = {}

        async def wait(seconds: float) -> None:
            raised = await ended(rig.runtime.ready(Waiter(seconds, fail_fast=False)))
            assert isinstance(raised, NotReady)
            ended_at[seconds] = loop.time()

        rig.start()
        await turns()
        waits = {}
        for seconds, due in ((10.0, 10.0), (20.0, 10.0), (5.0, 5.0)):
            timer = rig.runtime._timer
            waits[seconds] = asyncio.create_task(wait(seconds))
            await turns()
            assert due_at() == due
            assert (rig.runtime._timer is timer) is (seconds == 20.0)
        await waits[5.0]
        assert due_at() == 10.0
        waits[10.0].cancel()
        await turns()
        assert due_at() == 10.0, "it is not moved later: it fires for nothing"
        await waits[20.0]
        assert ended_at == {5.0: 5.0, 20.0: 20.0}
        assert due_at() is None

    with_rig(test, HeldDialer(opens=forever))


def test_a_clock_that_fires_too_early_has_no_timer_spin() -> None:
    """ours: what is armed for an instant is due when that fires"""

    async def test(rig: Rig) -> None:
        rig.start()
        waiting = asyncio.create_task(rig.runtime.ready(Waiter(10.0, fail_fast=False)))
        await turns()
        timer = rig.runtime._timer
        assert timer is not None
        timer.cancel()
        rig.runtime._fire()  # at second 0
        assert isinstance(await ended(waiting), NotReady)
        assert asyncio.get_running_loop().time() == 0.0
        assert rig.runtime.now() == 10.0, "time does not run backwards for the core"

    with_rig(test, HeldDialer(opens=forever))


# -- links ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "path"),
    [
        (LinkFailed(Reason("spawn_failed", "enoent")), ("spawn_failed", "enoent")),
        (ValueError("x"), ("task_down", "ValueError")),
        (SystemExit(1), ("task_down", "SystemExit")),
        (asyncio.CancelledError(), ("task_down", "CancelledError")),
    ],
)
def test_a_link_that_cannot_be_opened_fails_its_attempt_and_is_tried_again(
    error: BaseException, path: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    """ours: whatever it raises; nobody waits for an attempt that has ended"""

    async def opens(link: HeldLink) -> None:
        if len(dialer.links) == 1:
            raise error

    dialer = HeldDialer(opens=opens)

    async def test(rig: Rig) -> None:
        failed = await ended(rig.ready())
        assert isinstance(failed, ConnectFailed)
        assert failed.reason.path[-2:] == path
        await turns()
        done = [each for each in dialer.log if each != "open cancelled"]
        assert done == ["open", "close", "closed"]
        await rig.runtime.ready(Waiter(10.0, fail_fast=False))
        assert asyncio.get_running_loop().time() == 1.0
        assert len(dialer.links) == 2

    with_rig(test, dialer)
    assert ("opening the transport failed" in caplog.text) is (path[0] == "task_down")


def test_a_link_that_never_opens_is_given_up_and_tried_again() -> None:
    """ours: a greeting has a bound, and so has what comes before it"""

    async def opens(link: HeldLink) -> None:
        if len(dialer.links) == 1:
            await asyncio.Event().wait()

    dialer = HeldDialer(opens=opens)

    async def test(rig: Rig) -> None:
        rig.start()
        failed = await ended(rig.runtime.ready(Waiter(None, fail_fast=True)))
        assert isinstance(failed, ConnectFailed)
        assert failed.reason.path[-2:] == ("timeout", "connect")
        assert asyncio.get_running_loop().time() == 60.0
        await rig.runtime.ready(Waiter(10.0, fail_fast=False))
        assert asyncio.get_running_loop().time() == 61.0

    with_rig(test, dialer)


def test_a_dialer_that_makes_no_link_fails_the_attempt() -> None:
    """transports/link.py: it raises nothing; anybody may have written it"""
    dialer = HeldDialer()
    dialer.fails = 1

    async def test(rig: Rig) -> None:
        failed = await ended(rig.ready())
        assert isinstance(failed, ConnectFailed)
        assert failed.reason.path[-2:] == ("task_down", "ValueError")
        await rig.runtime.ready(Waiter(10.0, fail_fast=False))
        assert len(dialer.links) == 1

    with_rig(test, dialer)


def test_a_link_that_is_still_opening_is_cancelled_before_it_is_closed() -> None:
    """transports/link.py: cancelled, `open` leaves nothing"""

    async def opens(link: HeldLink) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(2.0)  # it tidies up

    async def test(rig: Rig) -> None:
        rig.start()
        await turns()
        await rig.runtime.stop()
        assert rig.dialer.log == ["open", "open cancelled", "close", "closed"]
        assert asyncio.get_running_loop().time() == 2.0

    with_rig(test, HeldDialer(opens=opens))


def test_an_attempt_that_was_given_up_while_it_opened_reports_nothing() -> None:
    """ours: `open` may return all the same"""

    async def opens(link: HeldLink) -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    async def test(rig: Rig) -> None:
        rig.start()
        await turns()
        await rig.runtime.stop()
        assert rig.state is SessionState.STOPPED
        assert rig.dialer.links[0].sent == []

    with_rig(test, HeldDialer(opens=opens))


def test_late_reports_of_an_old_attempt_do_nothing() -> None:
    """transports/link.py: after `lost` nothing is reported; a link of others may err"""

    async def test(rig: Rig) -> None:
        await rig.ready()
        old = rig.port
        old.hears(False)
        old.lost(Reason("transport", "closed"))
        assert not rig.runtime.has_link(1)
        await rig.runtime.ready(Waiter(10.0, fail_fast=False))
        assert rig.runtime.has_link(2)
        assert rig.runtime.hears, "of another link nothing is known"
        call = rig.request()
        await turns()
        told = list(rig.user.log)
        old.received(Response(rig.last_id(), {"content": []}))
        old.received(question())
        old.sent(rig.last_id())
        old.failed(rig.last_id(), Reason("transport", "reset"))
        old.lost(Reason("transport", "reset"))
        old.missed()
        old.hears(False)
        await turns()
        assert (call.done(), rig.state, rig.user.log) == (False, SessionState.READY, told)
        assert rig.runtime.hears
        rig.port.hears(False)
        rig.port.missed()
        assert (rig.runtime.hears, rig.user.log[-1]) == (False, "missed")
        rig.port.received(Response(rig.last_id(), {"content": []}))
        assert await call == {"content": []}

    with_rig(test)


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(1)])
def test_a_link_that_cannot_be_closed_is_a_line_in_the_log(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    async def closes(link: HeldLink) -> None:
        raise error

    async def test(rig: Rig) -> None:
        await rig.ready()
        await rig.runtime.stop()

    with_rig(test, HeldDialer(closes=closes))
    assert "rig: closing the transport failed" in caplog.text


# -- callers --------------------------------------------------------------------------------------


def test_a_request_is_settled_with_what_was_answered() -> None:
    async def test(rig: Rig) -> None:
        await rig.ready()
        call = rig.request(wants_progress=True)
        await turns()
        told: JSONObject = {"progressToken": rig.last_id(), "progress": 1}
        rig.port.received(Notification("notifications/progress", told))
        rig.port.received(Notification("notifications/tools/list_changed", {}))
        rig.port.received(Response(rig.last_id(), {"content": []}))
        assert await call == {"content": []}
        assert rig.user.log == ["begun", "1.0", "notifications/tools/list_changed"]
        rig.nothing_is_held()

    with_rig(test)


@pytest.mark.parametrize("stage", ["sent", "queued", "answering", "settled"])
def test_a_caller_that_is_cancelled_abandons_once_and_leaves_nothing(
    stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MCP basic/utilities/cancellation: told of what was sent and is not answered"""

    async def test(rig: Rig) -> None:
        await rig.ready()
        abandoned: list[Ticket] = []
        abandon = rig.core.abandoned
        stopped: list[bool] = []

        def counted(ticket: Ticket, now: float) -> list[Effect]:
            abandoned.append(ticket)
            return abandon(ticket, now)

        async def asks(requests: JSONObject) -> JSONObject:
            try:
                await asyncio.Event().wait()
            finally:
                stopped.append(True)
            return {}

        monkeypatch.setattr(rig.core, "abandoned", counted)
        rig.user.asks = asks
        other = rig.request() if stage == "queued" else None
        await turns()
        call = rig.request()
        await turns()
        (ticket, *_) = [each for each in rig.runtime._tickets if each.state.value == stage] or [
            next(iter(rig.runtime._tickets))
        ]
        if stage == "answering":
            rig.port.received(Response(rig.last_id(), ASKED))
            await turns()
            assert ticket.state is TicketState.ANSWERING
        elif stage == "settled":
            rig.port.received(Response(rig.last_id(), {"resultType": "complete"}))
            assert ticket.state is TicketState.SETTLED
        else:
            assert ticket.state.value == stage
        call.cancel()
        assert isinstance(await ended(call), asyncio.CancelledError)
        await turns()
        assert len(abandoned) == (stage != "settled")
        assert stopped == [True] * (stage == "answering")
        methods = rig.dialer.links[0].methods
        assert methods.count("notifications/cancelled") == (stage == "sent")
        assert list(rig.runtime._tickets) == list(rig.core.ledger.window.held.values())
        if other is not None:
            rig.port.received(Response(rig.last_id(), {"resultType": "complete"}))
            await other
        rig.nothing_is_held()

    with_rig(test, era="stateless")


def test_a_waiter_that_is_cancelled_leaves_nothing() -> None:
    async def test(rig: Rig) -> None:
        rig.start()
        waiting = asyncio.create_task(rig.runtime.ready(Waiter(None, fail_fast=False)))
        await turns()
        assert len(rig.core.ledger.waiters) == 1
        waiting.cancel()
        assert isinstance(await ended(waiting), asyncio.CancelledError)
        assert rig.core.ledger.waiters == {}
        rig.nothing_is_held()

    with_rig(test, HeldDialer(opens=forever))


def test_what_is_settled_for_nobody_is_dropped() -> None:
    """ours: a caller that was cancelled in the turn in which its answer came"""

    async def test(rig: Rig) -> None:
        await rig.ready()
        call = rig.request()
        await turns()
        (ticket,) = rig.runtime._tickets
        call.cancel()
        rig.port.received(Response(rig.last_id(), {"content": []}))
        assert isinstance(await ended(call), asyncio.CancelledError)
        rig.runtime.perform([Settle(ticket, Ended.RESULT, {})])
        waiter = Waiter(1.0, fail_fast=False)
        rig.runtime.perform(rig.core.awaited(waiter, rig.runtime.now()))
        rig.nothing_is_held()

    with_rig(test)


def test_a_request_that_the_core_does_not_take_leaves_nothing() -> None:
    """ours: a ticket is submitted once"""

    async def test(rig: Rig) -> None:
        await rig.ready()
        ticket = Ticket("ping", {}, timeout=1.0)
        ticket.state = TicketState.SETTLED
        assert isinstance(await ended(rig.runtime.request(ticket)), LocalProtocolError)
        rig.nothing_is_held()

    with_rig(test)


# -- what the server asks -------------------------------------------------------------------------


def answers(rig: Rig) -> list[Outgoing]:
    """Give what was answered."""
    return [each for each in rig.dialer.links[-1].sent if isinstance(each, Response | Failure)]


def test_a_question_is_answered_by_its_handler() -> None:
    async def test(rig: Rig) -> None:
        await rig.ready()

        async def handles(asked: ServerQuestion) -> Response:
            return Response(asked.id, {"action": "decline"})

        rig.user.handles = handles
        rig.port.received(question())
        await turns()
        assert answers(rig) == [Response("q", {"action": "decline"})]
        rig.nothing_is_held()

    with_rig(test)


def test_a_handler_that_fails_answers_with_an_error(caplog: pytest.LogCaptureFixture) -> None:
    """ours: what it raised is in the log, and nothing of it goes to the server"""

    async def test(rig: Rig) -> None:
        await rig.ready()

        async def handles(asked: ServerQuestion) -> Response:
            raise ValueError("a mistake")

        rig.user.handles = handles
        rig.port.received(question())
        await turns()
        assert answers(rig) == [Failure("q", -32603, "the handler failed")]

    with_rig(test)
    assert "the handler of elicitation/create failed" in caplog.text
    assert "a mistake" in caplog.text


def test_a_question_that_is_withdrawn_stops_its_handler() -> None:
    """MCP basic/utilities/cancellation"""

    async def test(rig: Rig) -> None:
        await rig.ready()
        rig.user.handles = forever
        rig.port.received(question())
        await turns()
        assert len(rig.runtime._spawns) == 1
        rig.port.received(Notification("notifications/cancelled", {"requestId": "q"}))
        await turns()
        assert (len(rig.runtime._spawns), answers(rig)) == (0, [])
        rig.nothing_is_held()

    with_rig(test)


def test_a_question_that_comes_before_a_result_is_answered_and_the_call_goes_on() -> None:
    """MCP 2026-07-28 basic/patterns/mrtr"""

    async def test(rig: Rig) -> None:
        await rig.ready()
        call = rig.request()
        await turns()
        rig.port.received(Response(rig.last_id(), ASKED))
        await turns()
        retry = rig.dialer.links[0].sent[-1]
        assert isinstance(retry, Request)
        assert retry.params is not None
        assert retry.params["inputResponses"] == {"a": {}}
        assert rig.runtime._answering == {}
        rig.port.received(Response(rig.last_id(), {"resultType": "complete", "content": []}))
        await call

    with_rig(test, era="stateless")


def test_a_bug_while_the_user_is_asked_fails_the_call(caplog: pytest.LogCaptureFixture) -> None:
    async def test(rig: Rig) -> None:
        await rig.ready()

        async def asks(requests: JSONObject) -> JSONObject:
            raise KeyError("a mistake")

        rig.user.asks = asks
        call = rig.request()
        await turns()
        rig.port.received(Response(rig.last_id(), ASKED))
        failed = await ended(call)
        assert isinstance(failed, RequestFailed)
        assert failed.reason.path == ("task_down", "KeyError")
        assert failed.outcome_unknown

    with_rig(test, era="stateless")
    assert "answering for tools/call failed" in caplog.text


# -- the end --------------------------------------------------------------------------------------


def test_what_runs_beside_it_and_fails_is_a_line_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test(rig: Rig) -> None:
        async def fails() -> None:
            raise ValueError("a mistake")

        rig.runtime.spawn(fails(), "a try")
        await turns()

    with_rig(test)
    assert "raxol-mcp rig: a try failed" in caplog.text


@pytest.mark.parametrize("where", ["opening", "closing", "handling"])
def test_stop_ends_whatever_runs_also_twice_at_once(where: str) -> None:
    """ours: whoever stops a client returns when nothing is left"""

    async def closes(link: HeldLink) -> None:
        await asyncio.sleep(3.0)

    async def test(rig: Rig) -> None:
        rig.user.handles = forever
        if where == "opening":
            rig.dialer.opens = forever
            rig.start()
        else:
            await rig.ready()
            rig.port.received(question())
        if where == "closing":
            rig.port.lost(Reason("transport", "closed"))
        await turns()
        stops = [asyncio.create_task(rig.runtime.stop()) for _ in range(2)]
        await asyncio.gather(*stops)
        assert asyncio.get_running_loop().time() == 3.0
        assert rig.dialer.log.count("closed") == len(rig.dialer.links) == 1
        assert rig.runtime._tasks == set()

    with_rig(test, HeldDialer(closes=closes))


@pytest.mark.parametrize("again", [False, True])
def test_a_handler_may_stop_the_client_and_sees_it_stopped(again: bool) -> None:
    """ours: from any task, also one that stopping ends"""

    async def closes(link: HeldLink) -> None:
        await asyncio.sleep(3.0)

    async def test(rig: Rig) -> None:
        seen: list[tuple[list[str], bool]] = []

        async def handles(asked: ServerQuestion) -> Response:
            try:
                await rig.runtime.stop()
            except asyncio.CancelledError:
                seen.append((rig.dialer.log[1:], True))
                raise
            seen.append((rig.dialer.log[1:], False))
            return Response(asked.id, {})

        rig.user.handles = handles
        await rig.ready()
        rig.port.received(question())
        await turns()
        if again:
            await rig.runtime.stop()
            assert seen == [(["close"], True)], "whoever stops from without ends the handler"
        else:
            await asyncio.sleep(4.0)
            assert seen == [(["close", "closed"], False)]
        assert rig.runtime._tasks == set()
        assert answers(rig) == []

    with_rig(test, HeldDialer(closes=closes))


def test_two_handlers_that_stop_the_client_do_not_wait_for_each_other() -> None:
    async def test(rig: Rig) -> None:
        async def handles(asked: ServerQuestion) -> Response:
            await rig.runtime.stop()
            return Response(asked.id, {})

        rig.user.handles = handles
        await rig.ready()
        rig.port.received(question("a"))
        rig.port.received(question("b"))
        await turns()
        await rig.runtime.stop()
        assert asyncio.get_running_loop().time() == 0.0

    with_rig(test)


def test_what_does_not_end_though_it_is_told_to_is_named(caplog: pytest.LogCaptureFixture) -> None:
    """ours: code of the user's is waited for, for five seconds"""

    async def test(rig: Rig) -> None:
        released = asyncio.Event()

        async def stubborn() -> None:
            while not released.is_set():
                with suppress(asyncio.CancelledError):
                    await released.wait()

        rig.runtime.spawn(stubborn(), "a callback")
        await turns()
        await rig.runtime.stop()
        assert asyncio.get_running_loop().time() == 5.0
        released.set()
        await turns()

    with_rig(test)
    assert "rig: a callback goes on, though it was cancelled" in caplog.text


@pytest.mark.parametrize("opening", [False, True])
def test_a_loop_that_ends_ends_the_client(opening: bool, caplog: pytest.LogCaptureFixture) -> None:
    """ours: a server would outlive the program"""
    rig = Rig(HeldDialer(opens=forever) if opening else None)

    async def main() -> None:
        if opening:
            rig.start()
            await turns()
        else:
            await rig.ready()

    run_virtual(main)
    assert rig.dialer.log[-1] == "closed"
    assert rig.state is SessionState.STOPPED
    assert "nobody has stopped the client" in caplog.text
