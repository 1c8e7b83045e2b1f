"""Runs functions in worker processes, because only a process can be killed.

Not a queue: it never holds more calls than `max_workers`. Whoever submits has a slot for each
call, and a call counts until its process is really free or really gone (ours: ADR-0004).

A forkserver, a fresh interpreter, imports the functions' modules once and forks a worker in about
a millisecond. One worker is always kept ready, so the call after a kill waits for nothing. A
worker takes one call at a time and is used again after it; a killed or crashed one is replaced.

```
starting ──Standby──> idle ──run──> busy ──Returned, Failed──> idle
    └──────────────────┴──────kill, end of file─┴──> ending ──Exited──> gone
```

Only the forkserver kills and reaps, see there for why. `kill` asks it at once, and the call ends
with Killed when it has confirmed that the whole process group is gone. A forkserver that does not
confirm in time is killed itself, its workers die with it, and the next call starts another one.

Standard output of a worker is the server's standard error, its standard input is empty (K13).
POSIX only.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import socket
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from raxol_mcp.errors import ConfigurationError, LocalProtocolError, ToolError
from raxol_mcp.server.process_call import (
    Crashed,
    Killed,
    ProcessCall,
    RemoteFailure,
    ended_by,
)
from raxol_mcp.server.process_channel import Channel
from raxol_mcp.server.process_messages import (
    Exited,
    Fork,
    Kill,
    Returned,
    Run,
    Standby,
    Unforked,
    frame,
    from_worker,
)
from raxol_mcp.server.process_spares import Spares, Worker
from raxol_mcp.server.process_spawn import Forkserver
from raxol_mcp.server.process_worker import inside_worker

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Crashed", "Killed", "ProcessCall", "Processes", "RemoteFailure"]

_logger = logging.getLogger("raxol_mcp.processes")

_MAX_RESULT_BYTES: Final = 16 * 1024 * 1024
# A kill takes about a millisecond; a machine that swaps is given this long.
_KILL_TIMEOUT: Final = 5.0
_IDLE_TIMEOUT: Final = 30.0
# What a result's frame may hold besides the result, and a traceback, whatever the bound is.
_SLACK_BYTES: Final = 1024 * 1024
_FORKSERVER_ENDED: Final = "the forkserver ended, and its process with it"


class Processes:
    """A pool of worker processes, all of one event loop: the first that uses it.

    `import_modules` are imported once by the forkserver; "__main__" is the script the server was
    started as. A call into another module imports it in its worker. At most `max_workers` calls
    run at once, in at most one process more than that. `max_result_bytes` is the encoded size.
    `kill_timeout` bounds every wait for the end of a process, and processes beyond the one spare
    end after `idle_timeout`; both in seconds. Nothing is started before `start` or `run`.
    """

    def __init__(
        self,
        max_workers: int,
        import_modules: Sequence[str] = (),
        *,
        max_result_bytes: int = _MAX_RESULT_BYTES,
        kill_timeout: float = _KILL_TIMEOUT,
        idle_timeout: float = _IDLE_TIMEOUT,
    ) -> None:
        if inside_worker():
            raise ConfigurationError(
                "a module imported for its functions starts a server of its own: "
                'put that under if __name__ == "__main__":'
            )
        if max_workers < 1:
            raise ConfigurationError(f"max_workers is {max_workers}: at least 1 is needed")
        self._max_workers = max_workers
        self._modules = tuple(import_modules)
        self._max_result_bytes = max_result_bytes
        self._kill_timeout = kill_timeout
        self._is_closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._forkserver: Forkserver | None = None
        self._unreaped: list[Forkserver] = []
        self._settled: asyncio.Future[None] | None = None  # set by close: nothing is left
        self._numbers = itertools.count(1)
        self._workers: dict[int, Worker] = {}  # until gone
        self._calls: dict[ProcessCall, Worker] = {}  # until ended
        self._spares = Spares(idle_timeout, self._end_worker)

    @property
    def running(self) -> int:
        """How many calls have not ended, those being killed included."""
        return len(self._calls)

    @property
    def pids(self) -> list[int]:
        """The process ids: the forkserver's first, then those of the workers that answered."""
        forkserver = [] if self._forkserver is None else [self._forkserver.pid]
        return forkserver + [w.pid for w in self._workers.values() if w.pid is not None]

    async def start(self) -> None:
        """Start the forkserver and one spare worker, and wait for the imports.

        Raises ConfigurationError, naming every module that cannot be imported. Optional: `run`
        starts what it needs, and there such a module fails the calls into it, one by one. Raises
        OSError when the system refuses another process.
        """
        loop = self._claim_loop()
        forkserver = self._start_forkserver(loop)
        self._keep_spare(loop)
        if problems := await asyncio.shield(forkserver.begun):
            raise ConfigurationError("cannot be imported by a process: " + "; ".join(problems))

    def run(
        self, target: str, arguments: Sequence[object] | Mapping[str, object] = ()
    ) -> ProcessCall:
        """Call the function "module:qualname" in a worker; a coroutine it returns is run there.

        `arguments` are positional or, as a mapping, by name, and must be MessagePack's types.
        Never waits: what goes wrong from here on is the future's. Raises LocalProtocolError when
        `max_workers` calls run, after `close`, and on another loop.
        """
        loop = self._claim_loop()
        if len(self._calls) >= self._max_workers:
            raise LocalProtocolError(f"{len(self._calls)} calls run: that is what max_workers is")
        if isinstance(arguments, Mapping):
            message = frame(Run(target, [], dict(arguments)))
        else:
            message = frame(Run(target, list(arguments), {}))
        call = ProcessCall(target, loop.create_future(), self._kill)
        call.future.add_done_callback(lambda future: call.kill() if future.cancelled() else None)
        try:
            worker = self._spares.take() or self._fork(loop)
        except OSError as error:  # no descriptors, no memory
            call.future.set_exception(Crashed(f"no process could be started: {error}"))
            return call
        self._calls[call] = worker
        worker.call = call
        if worker.is_ready:
            worker.channel.send(message)
        else:
            worker.unsent = message
        self._keep_spare(loop)
        return call

    async def close(self) -> None:
        """End every call with Killed and every process, within about `kill_timeout`. Idempotent."""
        self._is_closed = True
        loop = self._loop
        if loop is None:
            return
        for call in list(self._calls):
            call.kill()
        self._spares.close()
        if self._settled is None:
            self._settled = loop.create_future()
            if self._forkserver is not None:
                self._forkserver.finish()
            self._check_settled()
        try:
            async with asyncio.timeout(self._kill_timeout):
                await asyncio.shield(self._settled)
        except TimeoutError:
            _logger.error("the forkserver does not end: it is killed")
        finally:
            self._abandon_all()
        if self._unreaped:
            await asyncio.wait([f.reaped for f in self._unreaped], timeout=self._kill_timeout)

    # --- workers

    def _keep_spare(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._is_closed or self._forkserver is None or self._spares:
            return
        if len(self._workers) <= self._max_workers:
            try:
                self._spares.put(self._fork(loop), loop)
            except OSError as error:
                _logger.warning("no spare process could be started: %s", error)

    def _fork(self, loop: asyncio.AbstractEventLoop) -> Worker:
        forkserver = self._start_forkserver(loop)
        number = next(self._numbers)
        own, other = socket.socketpair()
        channel = Channel(
            loop,
            own,
            received=partial(self._worker_received, number),
            ended=partial(self._worker_ended, number),
            max_bytes=self._max_result_bytes + _SLACK_BYTES,
        )
        worker = self._workers[number] = Worker(number, forkserver, channel)
        forkserver.send(Fork(number), (other.detach(),))
        return worker

    def _worker_received(self, number: int, payload: bytes) -> None:
        worker = self._workers[number]
        try:
            message = from_worker.decode(payload)
        except (msgspec.DecodeError, RecursionError):
            self._end_worker(worker)  # user code wrote to our descriptor, or worse
            return
        if isinstance(message, Standby):
            self._worker_ready(worker, message.pid)
            return
        call, loop = worker.call, self._running_loop()
        if call is None or call.is_killed:
            return
        worker.call = None
        if not worker.is_ending:
            self._spares.put(worker, loop)
        if isinstance(message, Returned):
            self._end_call(call, message.value)
        elif message.spoken is not None:
            self._fail_call(call, ToolError(message.spoken))
        else:
            self._fail_call(call, RemoteFailure(message.type_name, message.traceback))

    def _worker_ready(self, worker: Worker, pid: int) -> None:
        worker.pid = pid
        if worker.is_ready or worker.is_ending:
            return
        worker.is_ready = True
        if worker.call is not None:
            worker.channel.send(worker.unsent)
            worker.unsent = b""
        else:
            self._spares.put(worker, self._running_loop())

    def _end_worker(self, worker: Worker) -> None:
        """Have it killed, whatever it does. `_gone` follows, by one of three roads."""
        if worker.is_ending:
            return
        self._withdraw(worker)
        worker.forkserver.send(Kill(worker.number))
        loop = self._running_loop()
        worker.timer = loop.call_later(self._kill_timeout, self._kill_overdue, worker.forkserver)

    def _withdraw(self, worker: Worker) -> None:
        worker.is_ending = True
        self._spares.withdraw(worker)

    def _worker_ended(self, number: int) -> None:
        worker = self._workers[number]
        if worker.forkserver.is_ended:
            self._gone(worker, _FORKSERVER_ENDED)
        else:
            self._end_worker(worker)  # surely dead, unless user code closed our descriptor

    def _gone(self, worker: Worker, reason: str, returncode: int | None = None) -> None:
        """Forget a worker whose process is gone, and end its call."""
        if worker.timer is not None:
            worker.timer.cancel()
        self._withdraw(worker)
        # Its last answer may be unread still: the forkserver's word comes by another socket.
        worker.channel.drain()
        if self._workers.pop(worker.number, None) is None:
            return  # the end of the channel was in it, and that came here
        worker.channel.close()
        if worker.call is not None:
            if worker.call.is_killed:
                self._fail_call(worker.call, Killed(f"{worker.call.target} was killed"))
            else:
                self._fail_call(worker.call, Crashed(reason, returncode))
        # One that never got ready is not replaced before the next call: whatever ended it would
        # end the next one, for ever.
        if worker.is_ready:
            self._keep_spare(self._running_loop())
        self._check_settled()

    # --- the forkserver

    def _start_forkserver(self, loop: asyncio.AbstractEventLoop) -> Forkserver:
        if self._forkserver is None:
            forkserver = Forkserver(
                loop,
                self._modules,
                max_result_bytes=self._max_result_bytes,
                worker_exited=self._worker_exited,
                ended=lambda: self._forkserver_ended(forkserver),
            )
            self._forkserver = forkserver
        return self._forkserver

    def _worker_exited(self, message: Exited | Unforked) -> None:
        worker = self._workers.get(message.number)
        if worker is None:
            return
        if isinstance(message, Exited):
            self._gone(worker, ended_by(message.returncode), message.returncode)
        else:
            self._gone(worker, f"its process could not be started: {message.reason}")

    def _kill_overdue(self, forkserver: Forkserver) -> None:
        _logger.error("the forkserver does not answer: it and all its workers are killed")
        self._forkserver_ended(forkserver)

    def _forkserver_ended(self, forkserver: Forkserver) -> None:
        """Let what it forked die with it; each worker is gone at the end of its socket."""
        if forkserver.is_ended:
            return
        forkserver.kill()
        self._unreaped = [f for f in self._unreaped if not f.reaped.done()] + [forkserver]
        self._forkserver = None
        loop = self._running_loop()
        for worker in [w for w in self._workers.values() if w.forkserver is forkserver]:
            self._withdraw(worker)
            worker.channel.finish_sending()
            if worker.timer is not None:
                worker.timer.cancel()
            worker.timer = loop.call_later(self._kill_timeout, self._give_up, worker)
            if worker.channel.has_ended:
                self._gone(worker, _FORKSERVER_ENDED)
        self._check_settled()

    def _give_up(self, worker: Worker) -> None:
        _logger.error("worker process %s may still run: nobody is left to tell", worker.pid)
        self._gone(worker, _FORKSERVER_ENDED)

    # --- calls

    def _kill(self, call: ProcessCall) -> None:
        worker = self._calls.get(call)
        if worker is None or call.is_killed:
            return
        call.is_killed = True
        if worker.is_ready or worker.is_ending:
            self._end_worker(worker)
            return
        # The function has not begun, and will not: its frame is still here.
        worker.call = None
        worker.unsent = b""
        self._spares.put(worker, self._running_loop())
        self._fail_call(call, Killed(f"{call.target} was killed before it began"))

    def _end_call(self, call: ProcessCall, value: object) -> None:
        del self._calls[call]
        if not call.future.done():  # cancelled
            call.future.set_result(value)

    def _fail_call(self, call: ProcessCall, error: Exception) -> None:
        del self._calls[call]
        if not call.future.done():
            call.future.set_exception(error)

    # --- the end

    def _claim_loop(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.get_running_loop()
        if self._is_closed:
            raise LocalProtocolError("the worker processes are closed")
        if self._loop is None:
            self._loop = loop
        if self._loop is not loop:
            raise LocalProtocolError("worker processes belong to the loop that used them first")
        return loop

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        assert self._loop is not None, "nothing happens here before a loop is claimed"
        return self._loop

    def _check_settled(self) -> None:
        if self._settled is None or self._settled.done():
            return
        if not self._workers and self._forkserver is None:
            self._settled.set_result(None)

    def _abandon_all(self) -> None:
        """Give up the descriptors and the waits of what is still there after the time for it."""
        if self._forkserver is not None:
            self._forkserver_ended(self._forkserver)
        for worker in list(self._workers.values()):
            self._gone(worker, _FORKSERVER_ENDED)
