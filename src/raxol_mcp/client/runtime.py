"""The client's shell: performs what the core decided. Owns the links, the tasks and the timer.

Three rules make the core's promises hold here: `perform` never awaits; every task belongs to the
runtime and none to a caller, so that a caller that is cancelled takes nothing with it; and the
one timer is only ever moved earlier, because firing too early is harmless.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Final

from raxol_mcp.client.failures import error_of, masked
from raxol_mcp.client.handler_calls import FAILURES
from raxol_mcp.client.port import Port, User
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
    Ended,
    Handle,
    Open,
    Progressed,
    Record,
    Send,
    Settle,
    Withdraw,
)
from raxol_mcp.core.tickets import ServerQuestion, Ticket, TicketState, Waiter
from raxol_mcp.errors import INTERNAL_ERROR, Reason
from raxol_mcp.transports.link import Dialect, LinkFailed
from raxol_mcp.wire.jsonrpc import Failure, Response

if TYPE_CHECKING:
    from raxol_mcp.core.client import ClientCore
    from raxol_mcp.errors import RaxolError
    from raxol_mcp.telemetry import Observer
    from raxol_mcp.transports.link import Dialer, Link
    from raxol_mcp.wire.jsonrpc import JSONObject

__all__ = ["EVENTS_LOGGER", "ClientRuntime"]

EVENTS_LOGGER: Final = "raxol_mcp.client.events"

_logger = logging.getLogger("raxol_mcp.client")
_events = logging.getLogger(EVENTS_LOGGER)
# What may be raised where nothing is awaited, so that nothing can be cancelled.
_MISTAKES: Final = (*FAILURES, asyncio.CancelledError)
# Seconds for handlers and callbacks to end once they were cancelled.
_LAST_WAIT: Final = 5.0


class ClientRuntime:
    """Performs effects on the running event loop. `name` is for logs and tasks.

    `mask` hides the secrets of the spec in what a link says of a server: servers print them.
    """

    def __init__(
        self,
        name: str,
        core: ClientCore,
        dialer: Dialer,
        user: User,
        *,
        mask: Callable[[str], str],
        observe: Observer | None = None,
    ) -> None:
        self.core = core
        self._name = name
        self.mask = mask
        self._dialer = dialer
        self.user = user
        self.hears = True  # whether notifications can come
        self._observe = observe
        self._loop: asyncio.AbstractEventLoop | None = None
        self._links: dict[int, Link] = {}
        self._opening: dict[int, asyncio.Task[None]] = {}
        self._answering: dict[ServerQuestion | Ticket, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._spawns: set[asyncio.Task[None]] = set()
        self._tickets: dict[Ticket, asyncio.Future[Settle]] = {}
        self._waiters: dict[Waiter, asyncio.Future[Answer]] = {}
        self._keeper: asyncio.Task[None] | None = None
        self._performing: list[Effect] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._by_type: dict[type, Callable[..., None]] = {
            Open: self._open,
            Send: self._send,
            Abort: self._abort,
            Close: self._close,
            Agreed: self._agreed,
            Begin: user.begun,
            Settle: self._settle,
            Answer: self._tell,
            Handle: self._handle,
            Withdraw: self._withdraw,
            AskUser: self._ask_user,
            Deliver: user.deliver,
            Progressed: user.progressed,
            Acknowledged: user.acknowledged,
            Record: self._record,
        }

    # -- the loop and its clock ---------------------------------------------------------------

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop this client lives on: the one that runs at its first use."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop

    def now(self) -> float:
        """Seconds on the loop's clock; never less than what the core was told last."""
        return max(self.loop.time(), self.core.ledger.now)

    def _arm(self, deadline: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = deadline
        self._timer = self.loop.call_at(deadline, self._fire)

    def _fire(self) -> None:
        self._timer = None
        # Clocks may fire early by their resolution: what is armed for an instant is due then.
        self.perform(self.core.tick(max(self.now(), self._timer_at)))

    # -- effects ------------------------------------------------------------------------------

    def perform(self, effects: list[Effect]) -> None:
        """Perform `effects` in order. Never awaits.

        Those of an input that comes meanwhile follow them: they are never interleaved.
        """
        if self._performing is not None:
            self._performing += effects
            return
        self._performing = effects
        try:
            for effect in effects:  # grows while it is walked
                try:
                    self._by_type[type(effect)](effect)
                except _MISTAKES as error:  # a bug must not cost what was decided besides
                    self._not_performed(effect, error)
        finally:
            self._performing = None
        deadline = self.core.next_deadline()
        if deadline is not None and (self._timer is None or deadline < self._timer_at):
            self._arm(deadline)

    def _not_performed(self, effect: Effect, error: BaseException) -> None:
        what = type(effect).__name__  # not what it carries: arguments may be secrets
        _logger.error("%s: %s failed: please report it", self._name, what, exc_info=error)
        reason = Reason("task_down", type(error).__name__, maybe_done=True)
        if isinstance(effect, Send):
            self.perform(self.core.failed(effect.attempt, effect.key, reason, self.now()))
        elif isinstance(effect, Open):
            self.perform(self.core.lost(effect.attempt, reason, self.now()))

    def has_link(self, attempt: int) -> bool:
        """Say whether the link of `attempt` is there and not being closed."""
        return attempt in self._links

    def _open(self, effect: Open) -> None:
        if self._keeper is None:
            self._keeper = self._task(self._keep(), "keeper")
        dialect = Dialect.TWO_ENDPOINTS if effect.two_endpoints else Dialect.CURRENT
        link = self._dialer.link(Port(self, effect.attempt), dialect)
        self._links[effect.attempt] = link
        self.hears = True
        self._opening[effect.attempt] = self._task(self._opened(effect.attempt, link), "open")

    async def _opened(self, attempt: int, link: Link) -> None:
        reason: Reason | None = None
        bound = asyncio.timeout(self.core.ledger.options.init_timeout)
        try:
            async with bound:
                await link.open()
        except LinkFailed as failed:
            reason = failed.reason
        except FAILURES as error:
            reason = Reason("timeout", "connect") if bound.expired() else self._broken(error)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            reason = self._broken(error)  # by something of its own: nobody gave the attempt up
        finally:
            # Before what follows is told: a `Close` that it causes has nothing to cancel here.
            self._opening.pop(attempt, None)
        if reason is None:
            self.perform(self.core.opened(attempt, self.now()))
        else:
            self.perform(self.core.lost(attempt, reason, self.now()))

    def _broken(self, error: BaseException) -> Reason:
        _logger.error("%s: opening the transport failed", self._name, exc_info=error)
        return Reason("task_down", type(error).__name__)

    def _send(self, effect: Send) -> None:
        link = self._links.get(effect.attempt)
        if link is not None:
            link.send(effect.message, effect.key, mirrors=effect.mirrors)

    def _abort(self, effect: Abort) -> None:
        link = self._links.get(effect.attempt)
        if link is not None:
            link.abort(effect.key)

    def _close(self, effect: Close) -> None:
        link = self._links.pop(effect.attempt, None)
        if link is not None:
            self._task(self._closed(link, self._opening.pop(effect.attempt, None)), "close")

    async def _closed(self, link: Link, opening: asyncio.Task[None] | None) -> None:
        if opening is not None and not opening.done():
            opening.cancel()
            await asyncio.wait([opening])
        try:
            await link.close()
        except FAILURES:
            _logger.exception("%s: closing the transport failed", self._name)

    def _agreed(self, effect: Agreed) -> None:
        link = self._links.get(effect.attempt)
        if link is not None:
            link.agreed(effect.era, effect.version)

    def _record(self, effect: Record) -> None:
        self.record(effect.event, effect.fields)

    def record(self, event: str, fields: JSONObject) -> None:
        """Count something that happened. Of the server's words none is a secret of the spec's."""
        fields = {
            name: self.mask(value) if isinstance(value, str) else value
            for name, value in fields.items()
        }
        # That a server is gone is the one thing its user must see without having asked.
        level = logging.WARNING if event == "disconnected" else logging.DEBUG
        _events.log(level, "%s: %s %s", self._name, event, fields)
        if self._observe is not None:
            try:
                self._observe(event, fields)
            except _MISTAKES:
                _logger.exception("the observer failed on %s", event)

    # -- callers ------------------------------------------------------------------------------

    async def request(self, ticket: Ticket) -> JSONObject:
        """Have `ticket` settled; return its result.

        Raises what `failures.error_of` makes of any other end. A caller that is cancelled
        abandons it.
        """
        future: asyncio.Future[Settle] = self.loop.create_future()
        self._tickets[ticket] = future
        try:
            self.perform(self.core.submitted(ticket, self.now()))
            settled = await future
        except asyncio.CancelledError:
            if ticket.state is not TicketState.SETTLED:
                self._stop_answering(ticket)
                self.perform(self.core.abandoned(ticket, self.now()))
            raise
        finally:
            del self._tickets[ticket]
        if settled.ended is Ended.RESULT:
            assert settled.result is not None, "a result has one"
            return settled.result
        raise self.error(settled.ended, settled.reason, ticket=ticket)

    def error(
        self, ended: Ended, reason: Reason | None, *, ticket: Ticket | None = None
    ) -> RaxolError:
        """Make the exception of an end that is no result, without a secret in it."""
        told = None if reason is None else masked(reason, self.mask)
        return error_of(ended, told, ticket=ticket)

    def _settle(self, effect: Settle) -> None:
        self._stop_answering(effect.ticket)
        future = self._tickets.get(effect.ticket)
        if future is not None and not future.done():
            future.set_result(effect)

    async def ready(self, waiter: Waiter) -> None:
        """Wait until there is a session. Raises `NotReady` and `ConnectFailed`."""
        future: asyncio.Future[Answer] = self.loop.create_future()
        self._waiters[waiter] = future
        try:
            self.perform(self.core.awaited(waiter, self.now()))
            answer = await future
        except asyncio.CancelledError:
            self.perform(self.core.unawaited(waiter, self.now()))
            raise
        finally:
            del self._waiters[waiter]
        if answer.ended is not Ended.READY:
            raise self.error(answer.ended, answer.reason)

    def _tell(self, effect: Answer) -> None:
        future = self._waiters.get(effect.waiter)
        if future is not None and not future.done():
            future.set_result(effect)

    # -- what the server asks -----------------------------------------------------------------

    def _handle(self, effect: Handle) -> None:
        question = effect.question
        self._answering[question] = self.spawn(self._handled(question), question.method)

    async def _handled(self, question: ServerQuestion) -> None:
        answer: Response | Failure = Failure(question.id, INTERNAL_ERROR, "the handler failed")
        try:
            answer = await self.user.handle(question)
        except FAILURES:
            _logger.exception("%s: the handler of %s failed", self._name, question.method)
        finally:
            self._answering.pop(question, None)
        self.perform(self.core.replied(question, answer, self.now()))

    def _withdraw(self, effect: Withdraw) -> None:
        self._stop_answering(effect.question)

    def _ask_user(self, effect: AskUser) -> None:
        ticket = effect.ticket
        self._answering[ticket] = self.spawn(self._asked(ticket, effect.requests), ticket.method)

    async def _asked(self, ticket: Ticket, requests: JSONObject) -> None:
        answers: JSONObject | Reason
        try:
            answers = await self.user.ask(requests)
        except FAILURES as error:
            _logger.exception("%s: answering for %s failed", self._name, ticket.method)
            answers = Reason("task_down", type(error).__name__, maybe_done=True)
        finally:
            self._answering.pop(ticket, None)
        self.perform(self.core.resumed(ticket, answers, self.now()))

    def _stop_answering(self, asked: ServerQuestion | Ticket) -> None:
        task = self._answering.pop(asked, None)
        if task is not None and task is not asyncio.current_task():
            task.cancel()

    # -- tasks --------------------------------------------------------------------------------

    def _task(self, work: Coroutine[object, object, None], what: str) -> asyncio.Task[None]:
        task = self.loop.create_task(work, name=f"raxol-mcp {self._name}: {what}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def spawn(self, work: Coroutine[object, object, None], what: str) -> asyncio.Task[None]:
        """Run something beside it that may be the user's; it is cancelled when the client stops."""
        task = self._task(work, what)
        self._spawns.add(task)
        task.add_done_callback(self._spawn_ended)
        return task

    def _spawn_ended(self, task: asyncio.Task[None]) -> None:
        self._spawns.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _logger.error("%s failed", task.get_name(), exc_info=error)

    async def _keep(self) -> None:
        """Stop the client if its loop ends before that: a server would outlive the program."""
        try:
            await self.loop.create_future()
        finally:
            if self._keeper is not None:
                _logger.warning("%s: the loop ends, and nobody has stopped the client", self._name)
                await self.stop()

    async def stop(self) -> None:
        """End everything; returns when nothing is left. Within the bounds of the transport."""
        here = asyncio.current_task()
        keeper, self._keeper = self._keeper, None
        if keeper is not None and keeper is not here:
            keeper.cancel()
        self.perform(self.core.stopped(self.now()))
        for task in self._spawns - {here}:  # a handler may stop the client, and see it stopped
            task.cancel()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while others := self._tasks - self._spawns - {here}:
            await asyncio.wait(others)
        if spawns := self._spawns - {here}:
            # Code of the user's need not end because it is told to.
            for task in (await asyncio.wait(spawns, timeout=_LAST_WAIT))[1]:
                _logger.warning("%s goes on, though it was cancelled", task.get_name())
