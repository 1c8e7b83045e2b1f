"""How a command runs and ends: signals, streams, and what is left behind."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import pytest

from raxol_mcp.cli.client_options import Manner, Target
from raxol_mcp.cli.client_session import Session, run_session
from raxol_mcp.cli.surroundings import Surroundings
from raxol_mcp.client.app import Client
from raxol_mcp.client.results import LogMessage
from raxol_mcp.client.runtime import EVENTS_LOGGER
from raxol_mcp.errors import Busy, ConnectFailed, Reason
from tests.cli.fake_client import FakeClient, FakeServer
from tests.cli.pseudo_terminal import pseudo_terminal

TARGET = Target(argv=("server",))


@dataclass
class Run:
    """One command against a fake server, in this process."""

    server: FakeServer = field(default_factory=FakeServer)
    manner: Manner = field(default_factory=Manner)
    ended: list[tuple[float, int]] = field(default_factory=list)

    def connected(self, work: Callable[[Session, Client], object]) -> int:
        """Connect and do `work`, which may be a coroutine function."""

        async def connected(session: Session) -> int:
            async with session.connected(TARGET, "test") as client:
                found = work(session, client)
                if asyncio.iscoroutine(found):
                    await found
            return 0

        surroundings = Surroundings(
            end_process=lambda seconds, code: self.ended.append((seconds, code)),
            client_factory=cast("Callable[..., Client]", self.server.client),
        )
        return run_session(surroundings, self.manner, connected)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_the_client_and_then_the_command(number: signal.Signals, code: int) -> None:
    """ours: docs/cli.md §Exit codes."""

    async def waits(session: Session, client: Client) -> None:
        os.kill(os.getpid(), number)
        await asyncio.Event().wait()

    run = Run()
    before = signal.getsignal(signal.SIGINT)
    assert run.connected(waits) == code
    assert run.server.did[-1] == ("stop",)
    assert run.ended == [(2.0, code)], "what holds on to the process is left behind"
    assert signal.getsignal(signal.SIGINT) is before


def test_work_that_ends_in_spite_of_a_signal_has_the_code_of_the_signal() -> None:
    async def ends(session: Session, client: Client) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            asyncio.current_task().uncancel()  # type: ignore[union-attr]  # it runs in one

    assert Run().connected(ends) == 130


def test_a_second_signal_ends_the_process_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    codes: list[int] = []
    ended = asyncio.Event()

    def exits(code: int) -> None:
        codes.append(code)
        ended.set()

    monkeypatch.setattr(os, "_exit", exits)

    async def waits(session: Session, client: Client) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            await ended.wait()

    Run().connected(waits)
    assert codes == [143]


def test_a_signal_that_is_ignored_stays_so() -> None:
    """`nohup`, and a background job of a shell."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)

    async def goes_on(session: Session, client: Client) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(0)

    try:
        assert Run().connected(goes_on) == 0
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_task_that_is_cancelled_by_nobody_here_is_no_success() -> None:
    async def cancelled(session: Session, client: Client) -> None:
        raise asyncio.CancelledError

    run = Run()
    with pytest.raises(asyncio.CancelledError):
        run.connected(cancelled)
    assert run.server.did[-1] == ("stop",)


def test_log_messages_and_stderr_of_the_server_are_notes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def logs(session: Session, client: Client) -> None:
        fake = cast("FakeClient", client)
        assert fake.logging is not None
        fake.logging(LogMessage("info", None, "working"))

    run = Run(FakeServer(stderr="started\n"), Manner(verbose=True))
    assert run.connected(logs) == 0
    assert capsys.readouterr() == ("", "server info: working\nserver stderr: started\n")
    assert Run(FakeServer(stderr="started\n")).connected(logs) == 0
    assert capsys.readouterr() == ("", "")


def test_what_the_client_itself_logs_is_a_note(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("raxol_mcp.client")

    def logs(session: Session, client: Client) -> None:
        logger.warning("dropped %s", "a\x1btool")
        logging.getLogger(EVENTS_LOGGER).warning("server: disconnected %s", {"reason": "x"})

    before = logging.getLogger("raxol_mcp").handlers.copy()
    Run().connected(logs)
    assert capsys.readouterr().err == "raxol-mcp: dropped a\\x1btool\n"
    Run(manner=Manner(verbose=True)).connected(logs)
    assert "disconnected {'reason': 'x'}" in capsys.readouterr().err
    Run(manner=Manner(quiet=True)).connected(logs)
    assert capsys.readouterr().err == ""
    assert logging.getLogger("raxol_mcp").handlers == before


def test_an_error_is_told_after_the_client_was_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    server = FakeServer(refuses={"await_ready": ConnectFailed(Reason("dns_failed"))})
    run = Run(server, Manner(timeout=7.0))
    assert run.connected(lambda session, client: None) == 4
    assert server.did == [("start", "server"), ("await_ready", 7.0), ("stop",)]
    told = "raxol-mcp: cannot connect to the server: its name cannot be resolved\n"
    assert capsys.readouterr() == ("", told)


def test_a_level_that_cannot_be_chosen_is_no_failure() -> None:
    server = FakeServer(capabilities={"logging": {}}, refuses={"set_log_level": Busy("later")})
    assert Run(server, Manner(verbose=True)).connected(lambda session, client: None) == 0
    assert ("set_log_level", "debug") in server.did


def test_progress_is_drawn_only_where_somebody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    def bars(manner: Manner) -> bool:
        found: list[bool] = []

        async def looks(session: Session, client: Client) -> None:
            found.append(session.progress_bar() is not None)

        Run(manner=manner).connected(looks)
        return found[0]

    assert not bars(Manner())
    with pseudo_terminal() as terminal:
        monkeypatch.setattr(sys, "stderr", terminal.stream)
        assert bars(Manner())
        assert not bars(Manner(quiet=True))


def test_a_reader_of_the_result_that_has_gone_leaves_no_complaint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`raxol-mcp tools ... | head -1`."""
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w", encoding="utf-8") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)

        def writes(session: Session, client: Client) -> None:
            session.write("result")

        run = Run()
        with pytest.raises(BrokenPipeError):
            run.connected(writes)
        assert run.server.did[-1] == ("stop",)
        monkeypatch.undo()
