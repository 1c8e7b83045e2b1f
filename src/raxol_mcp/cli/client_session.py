"""One command that talks to a server, from its first byte to its exit code.

Owns the event loop, the signals and both streams: results go to stdout, everything else to stderr.
However it ends, the client has been stopped, and with it a server that was started here.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from io import TextIOWrapper
from typing import TYPE_CHECKING, Final

from raxol_mcp.cli.client_errors import code_of, error_json, told
from raxol_mcp.cli.client_options import Manner, Target
from raxol_mcp.cli.client_output import Printer, json_text
from raxol_mcp.cli.client_targets import Targets
from raxol_mcp.cli.progress_bar import ProgressBar
from raxol_mcp.cli.questions import Answers, Questions
from raxol_mcp.cli.screen import Screen
from raxol_mcp.cli.server_log import ServerLog
from raxol_mcp.cli.surroundings import Surroundings
from raxol_mcp.cli.terminal import Terminal
from raxol_mcp.client.runtime import EVENTS_LOGGER
from raxol_mcp.errors import RaxolError
from raxol_mcp.wire.texts import printable

if TYPE_CHECKING:
    from raxol_mcp.client.app import Client

__all__ = ["Session", "run_session"]

# How long what is left may take once the client has been stopped: threads that look up a name,
# exit functions.
_EXIT_TIMEOUT: Final = 2.0


class Session:
    """What a command works with."""

    def __init__(self, surroundings: Surroundings, manner: Manner) -> None:
        from raxol_mcp.client.trust import TrustStore

        self.manner = manner
        self.screen = Screen.of_process()
        self.terminal = Terminal.of_process(self.screen)
        self.store = TrustStore.of_user()
        self.targets = Targets(self.screen, self.terminal, store=self.store, environ=os.environ)
        self._surroundings = surroundings

    def make_client(self, *arguments: object, **options: object) -> Client:
        """Make a client; takes what `Client` takes."""
        if self._surroundings.client_factory is not None:
            return self._surroundings.client_factory(*arguments, **options)
        from raxol_mcp.client.app import Client

        return Client(*arguments, **options)  # type: ignore[arg-type]  # passed on as they are

    @asynccontextmanager
    async def connected(self, target: Target, about: str) -> AsyncIterator[Client]:
        """Connect to a server; it is gone again after the `async with`.

        `about` tells a person who is asked something what this is about. Raises the errors of
        `raxol_mcp.errors`, and click.UsageError.
        """
        spec = await self.targets.spec(target)
        log = ServerLog(self.screen, spec.name, self.manner)
        questions = Questions(
            self.screen, self.terminal, answers=Answers(self.manner.answered()), about=about
        )
        client = self.make_client(spec, elicitation=questions, logging=log)
        try:
            await client.start()
            patience = self.manner.timeout or spec.init_timeout
            status = await client.await_ready(patience, fail_fast=True)
            await log.choose(client, status)
            yield client
        finally:
            self.screen.draw("")
            await client.stop()
            log.show_stderr(client.stderr())

    def progress_bar(self) -> ProgressBar | None:
        """Make what shows the progress of a call, where anybody looks."""
        if self.manner.quiet or not self.screen.is_terminal:
            return None
        return ProgressBar(self.screen, asyncio.get_running_loop().time)

    def show(self, document: object, text: Callable[[Printer], str]) -> None:
        """Print the result: `document` with --json, else what `text` makes of it for people.

        Raises OSError.
        """
        is_terminal = sys.stdout.isatty()
        width = self.screen.width if is_terminal else None
        if self.manner.as_json:
            self.write(json_text(document))
        else:
            self.write(text(Printer(is_terminal=is_terminal, width=width)))

    def write(self, text: str) -> None:
        """Write to stdout as it is. Raises OSError."""
        self.screen.draw("")
        # Not click's echo: that takes escape sequences out of what goes into a pipe.
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except BrokenPipeError:
            _leave_stdout()
            raise

    def fail(self, error: RaxolError) -> int:
        """Tell why there is no result, on the last line of stderr; return the exit code."""
        if self.manner.as_json:
            self.screen.note(json.dumps(error_json(error)))
        else:
            self.screen.note(f"raxol-mcp: {told(error)}")
        return code_of(error)


def run_session(
    surroundings: Surroundings, manner: Manner, work: Callable[[Session], Awaitable[int]]
) -> int:
    """Do what a command does, in an event loop of its own; return the exit code.

    Raises click.UsageError and OSError.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal that cannot show a character must not cost the result.
            stream.reconfigure(errors="backslashreplace")
    session = Session(surroundings, manner)
    with _logged(session), asyncio.Runner() as runner:
        code = runner.run(_worked(session, work))
        if surroundings.end_process is not None:
            surroundings.end_process(_EXIT_TIMEOUT, code)
    return code


async def _worked(session: Session, work: Callable[[Session], Awaitable[int]]) -> int:
    task = asyncio.ensure_future(work(session))
    with _signals(session.terminal, task) as received:
        try:
            code = await task
        except asyncio.CancelledError:
            if not received:
                raise
            code = 0
        except RaxolError as error:
            code = session.fail(error)
    return 128 + received[0] if received else code


@contextmanager
def _signals(terminal: Terminal | None, task: asyncio.Future[int]) -> Iterator[list[int]]:
    """Watch SIGINT and SIGTERM; give the list of those that ended the work.

    Ctrl-C at a question answers that; otherwise the first signal stops the work in order, and the
    second ends the process where it is. What is ignored stays so (`nohup`).
    """
    loop = asyncio.get_running_loop()
    received: list[int] = []

    def come(number: int) -> None:
        if number == signal.SIGINT and terminal is not None and terminal.interrupted():
            return
        if received:
            os._exit(128 + number)
        received.append(number)
        task.cancel()

    watched = [
        number
        for number in (signal.SIGINT, signal.SIGTERM)
        if signal.getsignal(number) is not signal.SIG_IGN
    ]
    for number in watched:
        loop.add_signal_handler(number, come, number)
    try:
        yield received
    finally:
        for number in watched:
            loop.remove_signal_handler(number)


@contextmanager
def _logged(session: Session) -> Iterator[None]:
    """Show what this project itself logs, meanwhile, as notes: nothing else writes to stderr."""
    logger, manner = logging.getLogger("raxol_mcp"), session.manner
    former = logger.level, logger.propagate
    notes = _Notes(session.screen, all=manner.verbose)
    logger.addHandler(notes)
    logger.propagate = False
    logger.setLevel(
        logging.DEBUG if manner.verbose else logging.ERROR if manner.quiet else logging.WARNING
    )
    try:
        yield
    finally:
        logger.removeHandler(notes)
        logger.level, logger.propagate = former


class _Notes(logging.Handler):
    """Writes log records to the screen; events of a connection only where `all` is wanted."""

    def __init__(self, screen: Screen, *, all: bool) -> None:
        super().__init__()
        self._screen = screen
        self._all = all

    def emit(self, record: logging.LogRecord) -> None:
        # What became of the connection, the error tells as well.
        if self._all or record.name != EVENTS_LOGGER:
            self._screen.note(f"raxol-mcp: {printable(record.getMessage())}")


def _leave_stdout() -> None:
    """Let the interpreter find no broken pipe when it closes stdout at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
