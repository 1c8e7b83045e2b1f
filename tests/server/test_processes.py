"""Worker processes: real ones, and every way in which a call in one can end."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import signal
import socket
import stat
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from raxol_mcp.errors import ConfigurationError, LocalProtocolError, ToolError
from raxol_mcp.server.processes import Crashed, Killed, ProcessCall, Processes, RemoteFailure

TARGETS = "tests.server.worker_targets"
# Far above what anything here takes; only a failure waits for it.
BOUND = 30.0

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX only")


class Fifo:
    """Tells of a process: that it runs, by its bytes, and that it is gone, by the end of them."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / f"fifo-{len(list(folder.iterdir()))}")
        os.mkfifo(self.path)
        self._descriptor = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)

    async def begun(self) -> None:
        assert await self._read() == b"begun"

    async def gone(self) -> None:
        assert await self._read() == b""
        os.close(self._descriptor)

    def is_gone_already(self) -> bool:
        try:
            gone = os.read(self._descriptor, 100) == b""
        except BlockingIOError:
            return False
        os.close(self._descriptor)
        return gone

    async def _read(self) -> bytes:
        loop = asyncio.get_running_loop()
        readable = asyncio.Event()
        loop.add_reader(self._descriptor, readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(self._descriptor)
        return os.read(self._descriptor, 100)


def exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def descriptors() -> list[str]:
    """Return what is open, but for the fifos of a test, each of which closes itself."""
    found = []
    for name in os.listdir("/dev/fd"):
        with contextlib.suppress(OSError):  # the one that listed them
            if not stat.S_ISFIFO(os.fstat(int(name)).st_mode):
                found.append(name)
    return sorted(found)


@asynccontextmanager
async def pool(
    *modules: str, max_workers: int = 4, idle_timeout: float = BOUND, kill_timeout: float = BOUND
) -> AsyncIterator[Processes]:
    """A pool that must leave nothing behind, whatever the test did with it."""
    before = descriptors()
    processes = Processes(
        max_workers, modules or [TARGETS], idle_timeout=idle_timeout, kill_timeout=kill_timeout
    )
    try:
        yield processes
        pids = processes.pids
        async with asyncio.timeout(BOUND):
            await processes.close()
        assert [pid for pid in pids if exists(pid)] == []
        assert descriptors() == before
    finally:
        await processes.close()


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(BOUND):
            await test()

    asyncio.run(bounded())


def call(processes: Processes, name: str, *arguments: object) -> ProcessCall:
    return processes.run(f"{TARGETS}:{name}", arguments)


async def value(processes: Processes, name: str, *arguments: object) -> object:
    return await call(processes, name, *arguments).future


# --- answers


def test_a_function_is_called_with_arguments_by_place_and_by_name() -> None:
    async def test() -> None:
        async with pool() as processes:
            assert await processes.run(f"{TARGETS}:add", [1, 2]).future == 3
            assert await processes.run(f"{TARGETS}:add", {"right": 2, "left": 5}).future == 7

    run(test)


def test_a_coroutine_function_runs_to_its_end_in_the_worker() -> None:
    async def test() -> None:
        async with pool() as processes:
            assert await value(processes, "wait_a_moment", {"a": [1]}) == {"a": [1]}

    run(test)


def test_a_decorated_function_is_found_behind_what_the_decorator_left() -> None:
    async def test() -> None:
        async with pool() as processes:
            assert await value(processes, "decorated", "loud") == "LOUD"

    run(test)


def test_a_worker_is_used_again_also_after_an_exception() -> None:
    async def test() -> None:
        async with pool() as processes:
            pids = set()
            for _ in range(5):
                pids.add(await processes.run("os:getpid").future)
                with pytest.raises(RemoteFailure):
                    await value(processes, "raise_value_error", "no")
            assert len(pids) == 1

    run(test)


def test_calls_run_side_by_side_up_to_the_bound_and_no_further(tmp_path: Path) -> None:
    """The slots bound the workers; a submit above them is a bug of the shell, never a queue."""

    async def test() -> None:
        async with pool(max_workers=4) as processes:
            fifos = [Fifo(tmp_path) for _ in range(4)]
            calls = [call(processes, "sleep", fifo.path) for fifo in fifos]
            for _ in range(26):
                with pytest.raises(LocalProtocolError, match="max_workers"):
                    call(processes, "add", 1, 2)
            for fifo in fifos:
                await fifo.begun()
            assert processes.running == 4
            assert len(processes.pids) <= 1 + 4 + 1
            calls[0].kill()
            with pytest.raises(LocalProtocolError):  # it holds its slot until it is gone
                call(processes, "add", 1, 2)
            with pytest.raises(Killed):
                await calls[0].future
            assert await value(processes, "add", 1, 2) == 3
            await processes.close()
            for other in calls[1:]:
                with pytest.raises(Killed):
                    await other.future
            assert fifos[0].is_gone_already()
            assert all(fifo.is_gone_already() for fifo in fifos[1:])

    run(test)


def test_arguments_and_results_larger_than_any_socket_buffer_arrive() -> None:
    async def test() -> None:
        async with pool() as processes:
            assert await value(processes, "size", "x" * 8_000_000) == 8_000_000
            assert await value(processes, "text", 8_000_000) == "x" * 8_000_000

    run(test)


# --- failures


def test_an_exception_is_its_type_for_the_caller_and_its_traceback_for_the_log() -> None:
    """rulings: the message may hold secrets."""

    async def test() -> None:
        async with pool() as processes:
            with pytest.raises(RemoteFailure) as caught:
                await value(processes, "raise_value_error", "the password")
            assert str(caught.value) == "ValueError"
            assert caught.value.type_name == "ValueError"
            assert 'worker_targets.py", line' in caught.value.traceback
            assert caught.value.traceback.endswith("ValueError: the password\n")

    run(test)


def test_a_tool_error_keeps_its_words() -> None:
    async def test() -> None:
        async with pool() as processes:
            with pytest.raises(ToolError) as caught:
                await value(processes, "raise_tool_error", "that file is too new")
            assert str(caught.value) == "that file is too new"

    run(test)


@pytest.mark.parametrize(
    ("name", "type_name"),
    [
        ("raise_keyboard_interrupt", "KeyboardInterrupt"),
        ("raise_unprintable", "Unprintable"),
        ("returns_object", "UnencodableResult"),
        ("returns_surrogate", "UnencodableResult"),
        ("returns_itself", "UnencodableResult"),
        ("absent", "ConfigurationError"),
        ("pool_in_a_worker", "ConfigurationError"),
    ],
)
def test_whatever_cannot_be_a_result_is_a_failure_of_that_call(name: str, type_name: str) -> None:
    """K09, K27."""

    async def test() -> None:
        async with pool() as processes:
            with pytest.raises(RemoteFailure) as caught:
                await value(processes, name)
            assert caught.value.type_name == type_name
            assert await value(processes, "add", 1, 2) == 3

    run(test)


def test_a_result_above_the_bound_is_a_failure_that_says_so() -> None:
    async def test() -> None:
        processes = Processes(1, [TARGETS], max_result_bytes=1000)
        assert await value(processes, "text", 900) == "x" * 900
        with pytest.raises(RemoteFailure) as caught:
            await value(processes, "text", 1001)
        assert caught.value.type_name == "ResultTooLarge"
        assert "1000" in caught.value.traceback
        await processes.close()

    run(test)


@pytest.mark.parametrize(
    ("name", "arguments", "returncode"),
    [
        ("leave", [3], 3),
        ("leave", [None], 0),
        ("leave", ["a reason"], 1),
        ("leave_at_once", [5], 5),
        ("kill_self", [], -signal.SIGKILL),
        ("close_descriptors", [], None),
        ("write_anywhere", [], None),
        ("write_a_wrong_message", [], None),
    ],
)
def test_a_function_that_ends_its_process_crashes_its_own_call_only(
    name: str, arguments: list[object], returncode: int | None
) -> None:
    """K09: the next call finds a worker."""

    async def test() -> None:
        async with pool() as processes:
            with pytest.raises(Crashed) as caught:
                await value(processes, name, *arguments)
            if returncode is not None:
                assert caught.value.returncode == returncode
            assert await value(processes, "add", 1, 2) == 3

    run(test)


def test_a_function_that_comes_back_in_two_processes_is_answered_once() -> None:
    """K19."""

    async def test() -> None:
        async with pool() as processes:
            assert await value(processes, "returns_twice") == "parent"
            assert await value(processes, "add", 1, 2) == 3

    run(test)


# --- killing


@pytest.mark.parametrize("name", ["spin", "sleep", "match", "ignore_signals", "start_others"])
def test_a_call_is_killed_wherever_it_is_and_all_of_it_is_gone_then(
    tmp_path: Path, name: str
) -> None:
    """The reason for processes: a loop, a system call, C code with the lock, other processes."""

    async def test() -> None:
        async with pool() as processes:
            fifo = Fifo(tmp_path)
            stuck = call(processes, name, fifo.path)
            await fifo.begun()
            stuck.kill()
            stuck.kill()
            assert processes.running == 1
            with pytest.raises(Killed):
                await stuck.future
            # On Linux the forkserver adopts and reaps what the function had started.
            if name != "start_others" or sys.platform == "linux":
                assert fifo.is_gone_already()
            else:
                await fifo.gone()
            assert processes.running == 0
            assert await value(processes, "add", 1, 2) == 3

    run(test)


def test_what_a_crashed_function_had_started_is_gone_too(tmp_path: Path) -> None:
    async def test() -> None:
        async with pool() as processes:
            fifo = Fifo(tmp_path)
            with pytest.raises(Crashed, match="status 4"):
                await value(processes, "leave_another", fifo.path)
            await fifo.begun()
            await fifo.gone()

    run(test)


def test_a_call_killed_before_it_began_never_runs(tmp_path: Path) -> None:
    async def test() -> None:
        async with pool() as processes:
            path = tmp_path / "effect"
            early = call(processes, "write_file", str(path))
            early.kill()
            assert processes.running == 0
            with pytest.raises(Killed, match="before it began"):
                await early.future
            assert await value(processes, "add", 1, 2) == 3
            assert not path.exists()

    run(test)


def test_killing_a_call_that_has_ended_does_nothing() -> None:
    async def test() -> None:
        async with pool() as processes:
            ended = processes.run("os:getpid")
            pid = await ended.future
            ended.kill()
            assert await processes.run("os:getpid").future == pid

    run(test)


def test_a_result_that_comes_after_the_kill_is_dropped() -> None:
    """K19: one end, and the first decision is the one that counts."""

    async def test() -> None:
        async with pool() as processes:
            await value(processes, "add", 1, 2)
            for _ in range(20):
                raced = call(processes, "add", 1, 2)
                os.sched_yield()
                raced.kill()
                with pytest.raises(Killed):
                    await raced.future

    run(test)


def test_cancelling_the_future_kills(tmp_path: Path) -> None:
    async def test() -> None:
        async with pool() as processes:
            fifo = Fifo(tmp_path)
            stuck = call(processes, "spin", fifo.path)
            await fifo.begun()
            stuck.future.cancel()
            await fifo.gone()

    run(test)


def test_workers_beyond_one_spare_end_when_nobody_needs_them(tmp_path: Path) -> None:
    async def test() -> None:
        async with pool(idle_timeout=0.01) as processes:
            fifos = [Fifo(tmp_path) for _ in range(3)]
            calls = [call(processes, "hold", fifo.path) for fifo in fifos]
            pids = [await one.future for one in calls]
            for fifo in fifos:
                await fifo.begun()
            left = {asyncio.ensure_future(fifo.gone()) for fifo in fifos}
            while len(left) > 1:
                _, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
            assert await processes.run("os:getpid").future in pids
            await processes.close()
            await asyncio.wait(left)

    run(test)


# --- the forkserver


def test_a_forkserver_that_is_killed_takes_its_workers_along_and_the_next_call_has_another(
    tmp_path: Path,
) -> None:
    """K14: the worker sits in C code, where only the kernel reaches it."""

    async def test() -> None:
        async with pool() as processes:
            fifo = Fifo(tmp_path)
            stuck = call(processes, "match" if sys.platform == "linux" else "spin", fifo.path)
            await fifo.begun()
            os.kill(processes.pids[0], signal.SIGKILL)
            with pytest.raises(Crashed, match="forkserver"):
                await stuck.future
            await fifo.gone()
            assert await value(processes, "add", 1, 2) == 3

    run(test)


def test_a_forkserver_that_does_not_answer_is_killed_so_that_a_kill_is_bounded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with pool(kill_timeout=0.3) as processes:
            fifo = Fifo(tmp_path)
            stuck = call(processes, "spin", fifo.path)
            await fifo.begun()
            os.kill(processes.pids[0], signal.SIGSTOP)
            stuck.kill()
            with pytest.raises(Killed):
                await stuck.future
            await fifo.gone()
            assert await value(processes, "add", 1, 2) == 3

    with caplog.at_level(logging.CRITICAL):
        run(test)


def test_close_is_bounded_although_the_forkserver_does_not_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with pool(kill_timeout=0.3) as processes:
            fifo = Fifo(tmp_path)
            stuck = call(processes, "spin", fifo.path)
            await fifo.begun()
            os.kill(processes.pids[0], signal.SIGSTOP)
            await processes.close()
            with pytest.raises(Killed):
                await stuck.future
            await fifo.gone()

    with caplog.at_level(logging.CRITICAL):
        run(test)


def test_a_worker_has_no_descriptor_or_handler_of_the_forkserver() -> None:
    """One that kept another worker's socket would hide that worker's end."""

    async def test() -> None:
        async with pool(max_workers=8) as processes:
            calls = [call(processes, "descriptors") for _ in range(8)]
            counts = {await one.future for one in calls}
            assert len(counts) == 1
            assert await value(processes, "signals") == []

    run(test)


# --- imports


def write_module(folder: Path, name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> str:
    (folder / f"{name}.py").write_text(textwrap.dedent(text), "utf-8")
    monkeypatch.syspath_prepend(folder)
    return name


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import not_there_at_all", "ModuleNotFoundError"),
        ("import sys; sys.exit(1)", "SystemExit"),
        ("import os; os._exit(1)", "ended the process"),
        ("from raxol_mcp.server.processes import Processes; Processes(1)", "__main__"),
        (f"from {TARGETS} import write_a_wrong_message as f; f()", "ended the process"),
    ],
)
def test_a_module_that_cannot_be_imported_is_named_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, reason: str
) -> None:
    """K09: and a call into it fails, and does not wait for ever or start processes for ever."""
    name = write_module(tmp_path, "unfit", text, monkeypatch)

    async def test() -> None:
        async with pool(name) as processes:
            with pytest.raises(ConfigurationError, match=reason):
                await processes.start()
            with pytest.raises((RemoteFailure, Crashed)):
                await processes.run(f"{name}:function").future

    run(test)


def test_a_module_whose_import_never_ends_delays_neither_kill_nor_close(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fifo = Fifo(tmp_path)
    text = f"from {TARGETS} import sleep; sleep({fifo.path!r})"
    name = write_module(tmp_path, "endless", text, monkeypatch)

    async def test() -> None:
        async with pool(name) as processes:
            stuck = processes.run(f"{name}:function")
            await fifo.begun()
            stuck.kill()
            with pytest.raises(Killed):
                await stuck.future
            await processes.close()
            assert fifo.is_gone_already()

    run(test)


def test_what_an_import_started_ends_with_the_pool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fifo = Fifo(tmp_path)
    text = f"""
        import subprocess
        from {TARGETS} import begin
        subprocess.Popen(["sleep", "3600"], pass_fds=[begin({fifo.path!r})])
    """
    name = write_module(tmp_path, "starts", text, monkeypatch)

    async def test() -> None:
        async with pool(name) as processes:
            await processes.start()
            await fifo.begun()
            await processes.close()
            await fifo.gone()

    run(test)


def test_an_import_that_starts_threads_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    text = "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()"
    name = write_module(tmp_path, "threaded", text, monkeypatch)

    async def test() -> None:
        async with pool(name) as processes:
            await processes.start()

    run(test)
    assert "started threads" in caplog.text


def test_a_module_of_a_later_registration_is_imported_by_its_worker() -> None:
    async def test() -> None:
        async with pool("json") as processes:
            await processes.start()
            assert await processes.run("colorsys:rgb_to_hsv", [0, 0, 0]).future == [0.0, 0.0, 0]

    run(test)


# --- the server's own ends


SCRIPT = f"""
import asyncio, os, sys
from raxol_mcp.server.processes import Processes
from {TARGETS} import print_noise, read_input, start_others

state = "of the script"

def own(word):
    return f"{{word}} {{state}} {{__name__}}"

async def main():
    processes = Processes(2, ["__main__"])
    if sys.argv[1:] == ["hang"]:
        stuck = processes.run("__main__:start_others", [os.environ["FIFO"]])
        print(await processes.run("os:getpid").future, flush=True)
        await stuck.future
    print(await processes.run("__main__:own", ["word"]).future)
    await processes.run("__main__:print_noise").future
    print(repr(await processes.run("__main__:read_input").future))
    await processes.close()

if __name__ == "__main__":
    asyncio.run(main())
"""


def script_environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **more}


@pytest.mark.parametrize("as_module", [False, True])
def test_functions_of_the_script_run_and_nobody_touches_its_standard_streams(
    tmp_path: Path, as_module: bool
) -> None:
    """K13: stdout is the protocol's, and so is stdin."""
    (tmp_path / "script.py").write_text(SCRIPT, "utf-8")
    command = ["-m", "script"] if as_module else [str(tmp_path / "script.py")]
    ended = subprocess.run(
        [sys.executable, *command],
        input=b"for the server",
        capture_output=True,
        cwd=tmp_path,
        env=script_environment(),
        timeout=BOUND,
        check=True,
    )
    name = "script" if as_module else "__mp_main__"
    assert ended.stdout.decode().splitlines() == [f"word of the script {name}", "''"]
    for noise in (b"noise", b"more noise", b"noise of a child"):
        assert noise in ended.stderr


@pytest.mark.parametrize("has_unread", [False, True])
def test_nothing_survives_a_server_that_is_killed(tmp_path: Path, has_unread: bool) -> None:
    """K14: the end of its standard error says that no process is left that had it.

    A peer that goes with something unread resets the socket, which must not look like a fault.
    """
    (tmp_path / "script.py").write_text(SCRIPT, "utf-8")
    fifo = Fifo(tmp_path)

    async def test(server: subprocess.Popen[bytes]) -> None:
        assert server.stdout is not None
        pid = int(server.stdout.readline())
        await fifo.begun()
        if has_unread:
            server.send_signal(signal.SIGSTOP)
            os.kill(pid, signal.SIGKILL)
            # Its forkserver reaps it and tells the server, which stands still and sets no event.
            while exists(pid):  # noqa: ASYNC110  # see above
                await asyncio.sleep(0.001)
        server.kill()
        server.wait(BOUND)
        await fifo.gone()
        await asyncio.to_thread(server.communicate, timeout=BOUND)

    with subprocess.Popen(
        [sys.executable, str(tmp_path / "script.py"), "hang"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=script_environment(FIFO=fifo.path),
    ) as server:
        try:
            run(lambda: test(server))
        finally:
            server.kill()


# --- the rest of the contract


def test_close_before_any_start_and_twice_is_fine_and_nothing_runs_after_it() -> None:
    async def test() -> None:
        processes = Processes(1)
        await processes.close()
        await processes.close()
        assert processes.pids == []
        with pytest.raises(LocalProtocolError, match="closed"):
            processes.run("os:getpid")

    run(test)


def test_two_closes_at_once_both_wait_for_the_end(tmp_path: Path) -> None:
    async def test() -> None:
        async with pool() as processes:
            fifo = Fifo(tmp_path)
            stuck = call(processes, "spin", fifo.path)
            await fifo.begun()
            await asyncio.gather(processes.close(), processes.close())
            with pytest.raises(Killed):
                await stuck.future
            assert fifo.is_gone_already()

    run(test)


def test_a_pool_belongs_to_one_loop() -> None:
    processes = Processes(1)

    async def use() -> None:
        assert await processes.run("os:getpid").future

    async def other() -> None:
        with pytest.raises(LocalProtocolError, match="loop"):
            processes.run("os:getpid")

    with asyncio.Runner() as first:
        first.run(use())
        run(other)
        first.run(processes.close())


def test_a_pool_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="max_workers"):
        Processes(0)


@pytest.mark.parametrize("sign", ["executable", "frozen"])
def test_no_interpreter_to_start_is_a_configuration_error(
    monkeypatch: pytest.MonkeyPatch, sign: str
) -> None:
    monkeypatch.setattr(sys, sign, {"executable": "", "frozen": True}[sign], raising=False)

    async def test() -> None:
        processes = Processes(1)
        with pytest.raises(ConfigurationError, match='isolation="thread"'):
            await processes.start()
        with pytest.raises(ConfigurationError, match='isolation="thread"'):
            processes.run("os:getpid")

    run(test)


def test_an_interpreter_that_cannot_be_started_crashes_the_call(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))

    async def test() -> None:
        async with pool() as processes:
            with pytest.raises(Crashed, match="No such file"):
                await value(processes, "add", 1, 2)
            with pytest.raises(FileNotFoundError):
                await processes.start()

    run(test)


def test_a_system_without_fork_is_a_configuration_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        with pytest.raises(ConfigurationError, match="fork"):
            await Processes(1).start()

    monkeypatch.delattr(os, "fork")
    run(test)


def test_a_system_out_of_descriptors_crashes_the_call_and_not_the_pool(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    async def test() -> None:
        async with pool() as processes:
            with monkeypatch.context() as context:
                context.setattr(socket, "socketpair", refuse)
                with pytest.raises(Crashed, match="Too many open files"):
                    await value(processes, "add", 1, 2)
            assert await value(processes, "add", 1, 2) == 3

    run(test)
