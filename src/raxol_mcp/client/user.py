"""The side of a client that faces its user: handlers that answer, callbacks that are told.

What a user's code raises ends here, in the log. A callback is called on the client's loop, so it
must not block; a coroutine function gets a task, of which there are at most `MAX_TASKS` at once:
a server that floods its client costs the flood, and nothing that waits behind it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from inspect import isawaitable
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from raxol_mcp.client.answers import Unanswerable, WrongAnswer
from raxol_mcp.client.handler_calls import FAILURES
from raxol_mcp.client.readers import log_message
from raxol_mcp.client.results import Change, Progress
from raxol_mcp.errors import INTERNAL_ERROR, Reason
from raxol_mcp.wire.jsonrpc import Failure, Response

if TYPE_CHECKING:
    from raxol_mcp.client.answers import Handlers
    from raxol_mcp.core.client_effects import Acknowledged, Begin, Deliver, Progressed
    from raxol_mcp.core.tickets import ServerQuestion, Ticket
    from raxol_mcp.wire.jsonrpc import JSONObject

__all__ = ["MAX_TASKS", "ClientUser", "News", "OnChange", "OnProgress"]

T = TypeVar("T")

OnChange = Callable[[Change], object]
OnProgress = Callable[[Progress], object]
_Spawn = Callable[[Coroutine[object, object, None], str], "asyncio.Task[None]"]

MAX_TASKS: Final = 64

# What a callback may raise. Whoever asks a task that was cancelled for its result raises that.
_MISTAKES: Final = (*FAILURES, asyncio.CancelledError)

_logger = logging.getLogger("raxol_mcp.client")


class News(Protocol):
    """Whoever is told what concerns the client itself."""

    def begun(self) -> None:
        """A session begins, perhaps not the first: what is known of the server is out of date."""

    def notified(self, method: str, params: JSONObject) -> None:
        """The server said something of its own accord."""

    def acknowledged(self) -> None:
        """A subscription is in force."""

    def missed(self) -> None:
        """Notifications may not have come."""


class ClientUser:
    """The user of the client `name`, as the runtime sees him. `attach` before anything happens."""

    def __init__(self, name: str, handlers: Handlers) -> None:
        self._name = name
        self._handlers = handlers
        self._news: News
        self._spawn: _Spawn
        self._tasks = 0
        self._failing: object = None
        self._told: dict[Ticket, OnProgress] = {}

    def attach(self, news: News, spawn: _Spawn) -> None:
        """Know whom to tell, and what runs the coroutines of callbacks: `ClientRuntime.spawn`."""
        self._news = news
        self._spawn = spawn

    # -- what is answered ---------------------------------------------------------------------

    async def handle(self, question: ServerQuestion) -> Response | Failure:
        """Answer a request of the server."""
        try:
            result = await self._answer(question.method, question.params)
        except Unanswerable as refusal:
            return Failure(question.id, refusal.code, refusal.message)
        except WrongAnswer as wrong:
            _logger.error("%s: the handler of %s: %s", self._name, question.method, wrong)
            return Failure(question.id, INTERNAL_ERROR, "the handler failed")
        return Response(question.id, result)

    async def ask(self, requests: JSONObject) -> JSONObject | Reason:
        """Answer everything the server wants to know before it goes on, one after the other.

        One by one, because a person is asked. MCP 2026-07-28 basic/patterns/mrtr: a client answers
        all of it or does not retry.
        """
        answers: JSONObject = {}
        for key, asked in requests.items():
            assert isinstance(asked, dict), "the core has looked at it"
            method, params = str(asked["method"]), asked.get("params")
            try:
                answers[key] = await self._answer(
                    method, params if isinstance(params, dict) else None
                )
            except Unanswerable as refusal:
                return Reason("not_answered", method, text=refusal.message)
            except WrongAnswer as wrong:
                _logger.error("%s: the handler of %s: %s", self._name, method, wrong)
                return Reason("handler_failed", method, text=str(wrong))
            except FAILURES as error:
                _logger.exception("%s: the handler of %s failed", self._name, method)
                return Reason("handler_failed", method, text=type(error).__name__)
        return answers

    async def _answer(self, method: str, params: JSONObject | None) -> JSONObject:
        """Have the handler answer. Cancelled by something of its own, it has failed."""
        try:
            return await self._handlers.answer(self._name, method, params)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise RuntimeError("the handler was cancelled from within") from None

    # -- what is told -------------------------------------------------------------------------

    def begun(self, effect: Begin) -> None:
        """A session begins."""
        self._news.begun()

    def acknowledged(self, effect: Acknowledged) -> None:
        """A subscription is in force."""
        self._news.acknowledged()

    def missed(self) -> None:
        """Notifications may not have come."""
        self._news.missed()

    def deliver(self, effect: Deliver) -> None:
        """Take a notification of the server."""
        logging_handler = self._handlers.logging
        if effect.method != "notifications/message":
            self._news.notified(effect.method, effect.params)
        elif logging_handler is not None:
            message = log_message(effect.params)
            if message is not None:
                self.tell(logging_handler, message)

    def progressed(self, effect: Progressed) -> None:
        """Take what the server says about how far a call is."""
        told = self._told.get(effect.ticket)
        if told is not None:
            self.tell(told, Progress(effect.progress, effect.total, effect.message))

    @contextmanager
    def following(self, ticket: Ticket, told: OnProgress) -> Iterator[None]:
        """Have `told` called with the progress of `ticket`."""
        self._told[ticket] = told
        try:
            yield
        finally:
            del self._told[ticket]

    def tell(self, callback: Callable[[T], object], value: T) -> None:
        """Call a callback of the user's; never raises."""
        try:
            called = callback(value)
        except _MISTAKES:
            # Once in a row: a server may send ten thousand messages to a callback that fails.
            if self._failing is not callback:
                self._failing = callback
                _logger.exception("%s: a callback failed", self._name)
            return
        if self._failing is callback:
            self._failing = None
        if not isawaitable(called):
            return
        if self._tasks < MAX_TASKS:
            self._tasks += 1
            task = self._spawn(_awaited(called), "a callback")
            task.add_done_callback(lambda _: self._finished(called))
        else:
            _drop(called)  # the ones before it are not done

    def _finished(self, called: Awaitable[object]) -> None:
        self._tasks -= 1
        _drop(called)  # it may have been cancelled before it began


async def _awaited(called: Awaitable[object]) -> None:
    await called


def _drop(called: Awaitable[object]) -> None:
    """Have Python not complain of a coroutine that nobody awaited."""
    if isinstance(called, Coroutine):
        called.close()
