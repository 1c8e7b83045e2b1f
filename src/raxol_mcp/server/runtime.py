"""The server's shell: performs what the core decided. Owns the tasks, the timer and the sinks.

Three rules make the core's promises hold here: `perform` never awaits; every worker reports its
end exactly once, however it ended; and the one timer is only ever moved earlier, because firing
too early is harmless.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
from collections.abc import Callable, Coroutine, Hashable, Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from raxol_mcp.core.effects import (
    Effect,
    Job,
    Push,
    Record,
    Reply,
    Resolve,
    StartWorker,
    StopWorker,
)
from raxol_mcp.core.outcomes import Failed, Outcome, Stopped
from raxol_mcp.wire.jsonrpc import Request

if TYPE_CHECKING:
    from raxol_mcp.core.calls import Call
    from raxol_mcp.core.server import ServerCore
    from raxol_mcp.server.threads import Threads
    from raxol_mcp.telemetry import Observer
    from raxol_mcp.wire.headers import Mirror
    from raxol_mcp.wire.jsonrpc import Failure, Outgoing, RequestId, Response

__all__ = ["ServerRuntime", "Sink"]

T = TypeVar("T")

_logger = logging.getLogger("raxol_mcp.server")
# What code of the user's may raise at an edge that must not fail. Not KeyboardInterrupt: that is
# somebody else's.
_FAILURES: Final = (Exception, SystemExit, asyncio.CancelledError)


class Sink(Protocol):
    """Where pushes of one connection go. Enqueues and returns; never calls back."""

    def put(
        self, message: Outgoing, *, about: RequestId | None = None, droppable: bool = False
    ) -> None:
        """Send `message` after everything put before it."""

    def close(self, reason: str) -> None:
        """End the connection after what was put so far."""


class ServerRuntime:
    """Performs effects on the running event loop.

    `execute(call, job)` is the coroutine that runs user code and returns its outcome; it never
    raises for a mistake of the user's. `observe(event, fields)` is told what the core records.
    """

    def __init__(
        self,
        core: ServerCore,
        execute: Callable[[Call, Job], Coroutine[object, object, Outcome]],
        *,
        observe: Observer | None = None,
    ) -> None:
        self.core = core
        self._threads: Threads | None = None
        self._execute = execute
        self._observe = observe
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sinks: dict[Hashable, Sink] = {}
        # The task that runs one call's user code; None until there is one.
        self._workers: dict[Call, asyncio.Task[None] | None] = {}
        self._questions: dict[tuple[Call, str], asyncio.Future[Response | Failure | None]] = {}
        self._performing: list[Effect] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._abandoned = False
        self._by_type: dict[type, Callable[..., None]] = {
            Push: self._push,
            Reply: self._reply,
            StartWorker: self._start_worker,
            StopWorker: self._stop_worker,
            Resolve: self._resolve,
            Record: self._record,
        }

    # -- the loop and its clock ---------------------------------------------------------------

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop this server lives on: the one that runs at its first use.

        When that is closed and the server was not stopped, the one that runs next.
        """
        loop = self._loop
        if loop is None or loop.is_closed():
            loop = self._loop = asyncio.get_running_loop()
            self._timer = None  # one that was armed in another loop never fires
        return loop

    def now(self) -> float:
        """Seconds on the loop's clock; never less than what the core was told last."""
        loop = self._loop or self.loop
        now, told = loop.time(), self.core.ledger.now
        return now if now > told else told

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

        An input that comes while effects are performed (a sink that calls back all the same) has
        its own performed after them: what the core decided is never interleaved.
        """
        if self._performing is not None:
            self._performing.extend(effects)
            return
        self._performing = effects
        try:
            for effect in effects:  # grows while it is walked
                self._by_type[type(effect)](effect)
        finally:
            self._performing = None
        deadline = self.core.ledger.deadlines.earliest  # `next_deadline`, one call less
        if deadline is not None and (self._timer is None or deadline < self._timer_at):
            self._arm(deadline)

    def on_loop(self, decide: Callable[[], list[Effect]]) -> None:
        """Perform what `decide` makes the core decide: now, or soon when this is another thread."""
        loop = self.loop

        def perform() -> None:
            self.perform(decide())

        try:
            here = asyncio.get_running_loop() is loop
        except RuntimeError:
            here = False
        if here:
            perform()
        else:
            loop.call_soon_threadsafe(perform)

    def _push(self, effect: Push) -> None:
        sink = self._sinks.get(effect.connection)
        if sink is not None:
            try:
                sink.put(effect.message, about=effect.about, droppable=effect.droppable)
            except _FAILURES:
                # An embedder's callback. The effects after this one are of other calls.
                _logger.exception("the sink of %r failed", effect.connection)

    def _reply(self, effect: Reply) -> None:
        caller = effect.caller
        assert isinstance(caller, asyncio.Future), "whoever asked for a reply gave a future"
        if not caller.done():
            caller.set_result(effect.message)

    def _resolve(self, effect: Resolve) -> None:
        future = self._questions.get((effect.call, effect.key))
        if future is not None and not future.done():
            future.set_result(effect.answer)

    def _record(self, effect: Record) -> None:
        _logger.debug("%s %s", effect.event, effect.fields)
        if self._observe is not None:
            try:
                self._observe(effect.event, effect.fields)
            except _FAILURES:
                _logger.exception("the observer failed on %s", effect.event)

    # -- sinks --------------------------------------------------------------------------------

    def attach(self, connection: Hashable, sink: Sink) -> Sink | None:
        """Let pushes of `connection` go to `sink`; return the sink it replaces."""
        replaced = self._sinks.get(connection)
        self._sinks[connection] = sink
        return replaced

    def detach(self, connection: Hashable, sink: Sink | None = None) -> bool:
        """Stop pushing to `connection`; False when it is `sink` no more (or has none)."""
        current = self._sinks.get(connection)
        if current is None or (sink is not None and current is not sink):
            return False
        del self._sinks[connection]
        return True

    def release(self, call: Call, retry: float) -> None:
        """Let go of the stream of a call that goes on, where its transport has such a thing."""
        sink = self._sinks.get(call.peer.connection)
        release = getattr(sink, "release", None)
        if release is not None and call.peer.open:
            release(call.id, retry)

    def mismatch(self, call: Call, mirrors: Sequence[Mirror]) -> Failure | None:
        """Say what is wrong with copies of arguments beside the message; see `NetworkPort`."""
        check: Callable[[Request, Sequence[Mirror]], Failure | None] | None
        check = getattr(self._sinks.get(call.peer.connection), "mismatch", None)
        request = Request(call.id, call.method.name, call.params)
        return None if check is None else check(request, mirrors)

    def lacks(self, call: Call, scopes: tuple[str, ...], *, challenged: bool = True) -> bool:
        """Say whether a call came without credentials for all of `scopes`; see `NetworkPort`."""
        check: Callable[..., bool] | None
        check = getattr(self._sinks.get(call.peer.connection), "lacks", None)
        return check is None or check(call.id, scopes, challenged=challenged)

    # -- workers ------------------------------------------------------------------------------

    def _start_worker(self, effect: StartWorker) -> None:
        call, workers = effect.call, self._workers
        workers[call] = None
        # Named for whoever looks at the tasks, and because making a name up takes longer.
        task = self.loop.create_task(self._work(call, effect.job), name=call.method.name)
        if call in workers:  # else it has ended: a loop may run the first step of a task at once
            workers[call] = task

    async def _work(self, call: Call, job: Job) -> None:
        outcome: Outcome = Stopped()
        try:
            outcome = await self._execute(call, job)
        except asyncio.CancelledError:
            pass  # reported as Stopped: whoever stopped it has closed the call, or nobody has
        except (Exception, SystemExit):  # SystemExit would end the server for everybody
            _logger.exception("the worker of %r failed", call)
            outcome = Failed("Error: internal error")
        finally:
            # Also when the loop is torn down (GeneratorExit): the slot has no other way back.
            self._ended(call, outcome)

    def _stop_worker(self, effect: StopWorker) -> None:
        task = self._workers.get(effect.call)
        if task is None:
            return  # it is the worker itself that closes the call, on its way out
        work = task.get_coro()
        task.cancel()
        if inspect.iscoroutine(work) and inspect.getcoroutinestate(work) == inspect.CORO_CREATED:
            # A task that is cancelled before its first step never enters its body: nobody else
            # would report its end.
            self._ended(effect.call, Stopped())

    def _ended(self, call: Call, outcome: Outcome) -> None:
        del self._workers[call]
        self.perform(self.core.worker_ended(call, outcome, self.now()))

    async def in_thread(self, function: Callable[[], T]) -> T:
        """Run a blocking function in a thread, with the caller's context.

        A thread cannot be stopped: when the caller is cancelled this waits all the same until
        the function has ended, and only then raises. So whoever holds a slot for it holds it as
        long as the thread really runs (ADR-0004).
        """
        loop = self.loop
        ending: _Ending[T] = _Ending(loop)

        def done(result: T | None, failure: BaseException | None) -> None:
            # The loop may be closed meanwhile: then nobody waits any more.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(ending.settle, result, failure)

        threads = self._threads
        if threads is None:
            from raxol_mcp.server.threads import Threads  # a server may never block

            threads = self._threads = Threads()
        threads.submit(function, done, context=copy_context())
        return await self._until(ending, None)

    async def until_ended(self, future: asyncio.Future[T], hurry: Callable[[], None]) -> T:
        """Wait for work outside the loop, through cancellation to its real end.

        `hurry` is called at a cancellation, to end the work soon; what it results in is dropped.
        """
        ending: _Ending[T] = _Ending(self.loop)
        future.add_done_callback(ending.take)
        return await self._until(ending, hurry)

    async def _until(self, ending: _Ending[T], hurry: Callable[[], None] | None) -> T:
        cancelled: asyncio.CancelledError | None = None
        while not ending.ended:
            try:
                await ending.waiter
            except asyncio.CancelledError as error:
                cancelled = error
                ending.waiter = self.loop.create_future()
                if hurry is not None:
                    hurry()
                if self._abandoned:
                    break
        if cancelled is not None:
            raise cancelled
        return ending.result()

    # -- questions of a running tool ----------------------------------------------------------

    async def ask(
        self, call: Call, key: str, put: Callable[[], list[Effect]]
    ) -> Response | Failure | None:
        """Wait for the answer to the question that `put` makes the core put."""
        future: asyncio.Future[Response | Failure | None] = self.loop.create_future()
        self._questions[call, key] = future
        try:
            self.perform(put())
            return await future
        except asyncio.CancelledError:
            self.perform(self.core.unasked(call, key, self.now()))
            raise
        finally:
            del self._questions[call, key]

    # -- the end ------------------------------------------------------------------------------

    @property
    def working(self) -> int:
        """How many workers have not ended."""
        return len(self._workers)

    def is_worker(self, task: asyncio.Task[object] | None) -> bool:
        """Say whether this task runs a callback of ours."""
        return task is not None and task in self._workers.values()

    async def stop(self, *, within: float) -> int:
        """Stop every worker and wait for their ends, at most `within` seconds.

        Returns how many had not ended: threads whose function does not return. Those are
        abandoned; being daemons they do not keep the process alive.
        """
        self.perform(self.core.stopped(self.now()))
        tasks = [task for task in self._workers.values() if task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=within)
        left = [task for task in tasks if not task.done()]
        self._abandoned = True
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=1.0)
        for task in left:
            if not task.done():  # it swallows its cancellation: `asyncio.run` would wait for ever
                asyncio.tasks._unregister_task(task)
        self._abandoned = False  # started again, it waits for its threads again
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._loop = None  # started again, it may be in another one
        return len(left)


class _Ending(Generic[T]):
    """How work outside the loop ended. Unlike a future, waiting for it can be interrupted."""

    __slots__ = ("_failure", "_result", "ended", "waiter")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.ended = False
        self.waiter: asyncio.Future[None] = loop.create_future()
        self._result: T | None = None
        self._failure: BaseException | None = None

    def settle(self, result: T | None, failure: BaseException | None) -> None:
        self.ended = True
        self._result = result
        self._failure = failure
        if not self.waiter.done():
            self.waiter.set_result(None)

    def take(self, future: asyncio.Future[T]) -> None:
        failure = future.exception()
        self.settle(future.result() if failure is None else None, failure)

    def result(self) -> T:
        if self._failure is not None:
            raise self._failure
        return self._result  # type: ignore[return-value]  # None only where T includes it
