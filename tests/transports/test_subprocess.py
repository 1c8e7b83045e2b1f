"""transports/subprocess.py: a dialer starts one server as often as it is asked to."""

import asyncio
import gc
import os
import sys
import warnings
from pathlib import Path

import pytest

from raxol_mcp.errors import Reason
from raxol_mcp.transports.link import Dialect, Dialer, Link, LinkFailed
from raxol_mcp.transports.subprocess import MAX_LINE_BYTES, SubprocessDialer
from raxol_mcp.wire.jsonrpc import Notification, Request
from raxol_mcp.wire.meta import EraName
from tests.transports.child_fakes import (
    NotingPort,
    is_there,
    opened,
    peer_dialer,
    run,
)

ARGS = ["; touch pwned", "$(touch pwned)", "`id`", "a b", "", '--x="q"', "a\udcffb", "é\n"]


def test_a_dialer_says_what_it_is_and_shows_no_secret() -> None:
    """client check 3: arguments and values of the environment are masked."""
    dialer: Dialer = SubprocessDialer(
        "npx", ["--token", "hunter2"], env={"API_KEY": "hunter2"}, cwd="/srv"
    )
    assert repr(dialer) == "SubprocessDialer('npx', 2 arguments, env=['API_KEY'], cwd='/srv')"
    assert (dialer.kind, dialer.closing_cancels) == ("stdio", False)
    assert dialer.verdict_key == ("stdio", "npx", ("--token", "hunter2"), "/srv")
    link: Link = dialer.link(NotingPort(), Dialect.CURRENT)
    assert "hunter2" not in f"{link!r} {vars(dialer)}"


def test_verdicts_are_remembered_for_the_same_program_alone() -> None:
    key = SubprocessDialer("npx", ["a"]).verdict_key
    assert key == SubprocessDialer("npx", ["a"], env={"A": "1"}).verdict_key
    others = (
        SubprocessDialer("npx", ["b"]),
        SubprocessDialer("uvx", ["a"]),
        SubprocessDialer("npx", ["a"], cwd="/"),
    )
    assert all(key != other.verdict_key for other in others)
    assert MAX_LINE_BYTES == 16 * 1024 * 1024


def test_a_server_is_started_as_it_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BC-151 and client check 52: argv byte for byte, no shell, and none of our secrets."""
    monkeypatch.setenv("RAXOL_MCP_STATE_KEY", "ours")
    monkeypatch.setenv("SECRET_OF_MINE", "mine")
    monkeypatch.setenv("HOME", "/somewhere")

    async def scenario() -> dict[str, object]:
        options = {"env": {"GIVEN": "1"}, "cwd": str(tmp_path), "drop_env": ["SECRET_OF_MINE"]}
        async with opened(peer_dialer(*ARGS, **options)) as session:
            about = await session.ask("about")
        assert isinstance(about, dict)
        return about

    about = run(scenario)
    assert about["argv"] == [os.fsencode(argument).hex() for argument in ARGS]
    assert about["cwd"] == str(tmp_path)
    assert about["pid"] == about["group"] == about["session"]
    assert about["fds"] == [0, 1, 2, 3]  # 3 is the folder being listed
    environment = about["env"]
    assert isinstance(environment, dict)
    assert environment["HOME"] == "/somewhere"
    assert environment["PATH"] == os.environ["PATH"]
    assert environment["GIVEN"] == "1"
    assert environment.keys().isdisjoint({"RAXOL_MCP_STATE_KEY", "SECRET_OF_MINE"})
    assert list(tmp_path.iterdir()) == []


def test_without_inheritance_only_the_base_and_what_is_given_arrive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SECRET_OF_MINE", "mine")

    async def scenario() -> object:
        async with opened(peer_dialer(inherit_env=False, env={"GIVEN": "1"})) as session:
            about = await session.ask("about")
        assert isinstance(about, dict)
        return about["env"]

    environment = run(scenario)
    assert isinstance(environment, dict)
    assert {"PATH", "GIVEN"} <= environment.keys()
    assert "SECRET_OF_MINE" not in environment


def test_a_server_that_cannot_be_started() -> None:
    """client check 7."""

    async def scenario() -> None:
        port = NotingPort()
        link = SubprocessDialer("/no/such/file").link(port, Dialect.CURRENT)
        with pytest.raises(LinkFailed) as caught:
            await link.open()
        assert caught.value.reason.path == ("spawn_failed", "enoent")
        await link.close()
        assert port.events == []

    run(scenario)


def test_before_it_is_opened_nothing_can_be_sent() -> None:
    async def scenario() -> None:
        port = NotingPort()
        link = peer_dialer().link(port, Dialect.CURRENT)
        link.agreed(EraName.HANDSHAKE, "2025-11-25")
        link.send(Request(1, "echo"), 1)
        link.abort(2)
        assert port.events == []
        assert await port.failure(1) == Reason("not_connected")
        link.send(Request(2, "echo"), 2)
        await link.close()
        link.send(Notification("n"), 3)
        await asyncio.sleep(0)
        assert len(port.events) == 1
        with pytest.raises(LinkFailed):
            await link.open()

    run(scenario)


def test_a_link_is_opened_once() -> None:
    async def scenario() -> None:
        async with opened(peer_dialer()) as session:
            with pytest.raises(LinkFailed) as caught:
                await session.link.open()
            assert caught.value.reason == Reason("stopped")
            session.link.agreed(EraName.STATELESS, "2026-07-28")
            assert await session.ask("echo") == {}

    run(scenario)


def test_stderr_is_read_always_and_its_end_stays() -> None:
    """MCP 2026-07-28 stdio: a client may capture it and must not take it for a failure."""

    async def scenario() -> None:
        dialer = peer_dialer()
        assert dialer.stderr_tail() == ""
        async with opened(dialer) as session:
            # More than any pipe holds: unread, it would keep the server from answering.
            assert await session.ask("errors", text="filling line\n" * 200_000) == "written"
            await session.ask("errors", text="last line\x1b\n")
        assert session.port.named("lost") == []
        lines = dialer.stderr_tail().split("\n")
        assert len(lines) == 200
        assert lines[-1] == "last line\\x1b"
        async with opened(dialer) as session:
            assert dialer.stderr_tail().endswith("last line\\x1b")
            await session.ask("errors", text="again")
            session.send("exit", code=1)
            assert (await session.port.next_lost()).text == "again"
            assert dialer.stderr_tail() == "again"

    run(scenario)


def test_a_link_shows_its_own_stderr() -> None:
    async def scenario() -> None:
        dialer = peer_dialer()
        async with opened(dialer) as first, opened(dialer) as second:
            await first.ask("errors", text="one")
            await second.ask("errors", text="two")
            first.send("exit", code=1)
            assert (await first.port.next_lost()).text == "one"
            assert [one.link.stderr_tail() for one in (first, second)] == ["one", "two"]
            assert dialer.stderr_tail() == "two"

    run(scenario)


def test_two_servers_hold_none_of_each_others_pipes() -> None:
    """ours: a server that holds another's input would keep that from ending."""

    async def scenario() -> None:
        async with opened(peer_dialer(end_wait=3600.0)) as first, opened(peer_dialer()) as second:
            about = await first.ask("about")
            assert isinstance(about, dict)
            await second.ask("echo")
            await first.link.close()
            assert not is_there(about["pid"])
            assert await second.ask("echo", still="there") == {"still": "there"}

    run(scenario)


def test_nothing_is_reported_after_the_close() -> None:
    async def scenario() -> None:
        async with opened(peer_dialer()) as session:
            session.send("echo")
            session.send("echo", cannot_be_written=object())
            session.link.send(Notification("n"), 9)
            await session.link.close()
            session.send("echo")
            await asyncio.sleep(0)
        assert session.port.events == []

    run(scenario)


@pytest.mark.slow
def test_fifty_starts_and_ends_leave_nothing() -> None:
    """K14, K20: no descriptor, no task, no process, no handle that the loop still holds."""

    async def scenario() -> None:
        async def cycle(number: int) -> int:
            # By turns: closed, exited, killed, never answered.
            async with opened(peer_dialer(end_wait=0.05, term_wait=0.05)) as session:
                about = await session.ask("about")
                assert isinstance(about, dict)
                if number % 4 == 1:
                    session.send("exit", code=1)
                    await session.port.next_lost()
                elif number % 4 == 2:
                    await session.ask("deaf")
                elif number % 4 == 3:
                    session.send("stops_reading")
                    session.send("echo", text="x" * 1_000_000)
            pid = about["pid"]
            assert isinstance(pid, int)
            return pid

        pids = [await cycle(0)]
        before = sorted(os.listdir("/proc/self/fd"))
        pids += [await cycle(number) for number in range(50)]
        assert sorted(os.listdir("/proc/self/fd")) == before
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert not any(map(is_there, pids))
        gc.collect()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(scenario)


@pytest.mark.slow
def test_a_client_that_is_killed_leaves_no_server_that_listens(tmp_path: Path) -> None:
    """BC-095: then the end of its input is all a server is told."""
    path = tmp_path / "notes"
    program = f"""
import asyncio, os, signal, sys
sys.path[:0] = {sys.path!r}
from tests.transports.child_fakes import Session, peer_dialer

async def main():
    session = Session(peer_dialer())
    await session.link.open()
    about = await session.ask("about")
    await session.ask("notes", path={str(path)!r}, stays=False)
    print(about["pid"], flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""

    async def scenario() -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()
        pid = int(out)
        while not path.exists() and is_there(pid):  # noqa: ASYNC110  # no child of ours to wait for
            await asyncio.sleep(0.01)
        assert path.read_text() == "EOF\n"

    run(scenario)
