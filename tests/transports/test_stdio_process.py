"""serve_stdio as a real process, as a client starts it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.transports.fakes import request, result

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
# Every wait for the process is bounded by this, in seconds; none should come near it.
TIMEOUT = 20.0


@contextmanager
def started(*arguments: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start Python with three pipes; kill it in the end if it is still there."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "src"), *filter(None, sys.path)])
    with subprocess.Popen(
        [sys.executable, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "", **environment},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def program(mode: str, **environment: str) -> AbstractContextManager[subprocess.Popen[bytes]]:
    """Start the program of the module next to this one."""
    return started("-m", "tests.transports.stdio_program", mode, **environment)


def ask(process: subprocess.Popen[bytes], *messages: object) -> None:
    """Write messages, one a line."""
    assert process.stdin is not None
    process.stdin.write("".join(json.dumps(message) + "\n" for message in messages).encode())
    process.stdin.flush()


def next_line(process: subprocess.Popen[bytes]) -> object:
    """Read one message."""
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def finish(process: subprocess.Popen[bytes]) -> tuple[int, list[object], str]:
    """Close the input; return the exit code, the messages and what stderr has."""
    out, err = process.communicate(timeout=TIMEOUT)
    return process.returncode, [json.loads(line) for line in out.splitlines()], err.decode()


def test_nothing_but_messages_is_ever_on_stdout() -> None:
    """MCP 2026-07-28 basic/transports/stdio: nothing else from start to end."""
    with program("noisy") as process:
        ask(process, request(1, "work"), request(2))
        code, messages, err = finish(process)
    assert messages == [result(1, {}), result(2, {})]
    assert code == 0
    noises = ["BANNER", "NOISE", "RAW NOISE", "CHILD NOISE", "NOTHING TO READ", "INPUT_ENDED"]
    assert err.splitlines() == noises


def test_it_ends_with_its_input() -> None:
    """MCP 2026-07-28 basic/transports/stdio: servers should exit promptly at the end of input."""
    with program("echo") as process:
        ask(process, request(1))
        assert next_line(process) == result(1, {})
        assert finish(process) == (0, [], "BANNER\nINPUT_ENDED\n")


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "cp1252"},
        {"PYTHONIOENCODING": "cp932"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
)
def test_the_locale_does_not_matter(environment: dict[str, str]) -> None:
    """MCP 2026-07-28 basic/transports: messages are UTF-8."""
    text = "Messgerät → 読取 ✓ řemeslník"
    with program("echo", **environment) as process:
        assert process.stdin is not None
        line = json.dumps(request(1, text=text), ensure_ascii=False)
        process.stdin.write(line.encode() + b"\n")
        code, messages, _ = finish(process)
    assert (code, messages) == (0, [result(1, {"text": text})])


def test_it_ends_without_a_traceback_when_its_output_is_closed() -> None:
    """A client that vanished left a process spinning on EPIPE."""
    with program("chatters") as process:
        ask(process, request(1, "work"))
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(TIMEOUT) == 3
        assert process.stderr is not None
        assert process.stderr.read() == b"BANNER\nOUTPUT_CLOSED\n"


@pytest.mark.parametrize(
    ("number", "name"), [(signal.SIGTERM, "TERMINATED"), (signal.SIGINT, "INTERRUPTED")]
)
def test_a_signal_ends_it_in_order(number: signal.Signals, name: str) -> None:
    """MCP 2025-11-25 lifecycle §Shutdown."""
    with program("echo") as process:
        ask(process, request(1, "hold"), request(2))
        assert next_line(process) == result(2, {})
        process.send_signal(number)
        assert process.wait(TIMEOUT) == 3
        assert process.stderr is not None
        assert process.stderr.read().decode() == f"BANNER\n{name}\n"


@pytest.mark.parametrize("mode", ["blocks", "hangs"])
def test_a_signal_ends_even_what_cannot_be_stopped(mode: str) -> None:
    """SIGTERM was ignored while a tool was stuck."""
    with program(mode) as process:
        ask(process, request(1), request(2, "work"))
        assert next_line(process) == result(1, {})
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT) == 128 + signal.SIGTERM


def test_the_second_signal_ends_it_at_once() -> None:
    """ours: a user who presses Ctrl-C twice means it."""
    with program("hangs_long") as process:
        ask(process, request(2, "work"))
        assert next_line(process) == result(2, {})
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT) in (128 + signal.SIGTERM, 128 + signal.SIGINT)


def test_a_forked_child_that_comes_back_is_ended_and_says_nothing_to_the_client() -> None:
    """It answered as well, and took the parent's pipe out of the event loop they share."""
    with program("forks") as process:
        ask(process, request(1, "work"))
        assert next_line(process) == result(1, {})
        ask(process, request(2, "work"), request(3))
        code, messages, err = finish(process)
    assert (code, messages) == (0, [result(2, {}), result(3, {})])
    assert "a forked process came back to the server and is ended" in err
    assert "CHILD ENDED 0" in err


def test_a_forked_child_does_not_keep_the_clients_pipe_open() -> None:
    """A client waits for the end of its pipe; a child may live on."""
    with program("forks_long") as process:
        ask(process, request(1, "work"))
        assert next_line(process) == result(1, {})
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.close()
        assert process.wait(TIMEOUT) == 0
        assert process.stderr.readline() == b"BANNER\n"
        child = int(process.stderr.readline())
        os.set_blocking(process.stdout.fileno(), False)
        try:
            assert os.read(process.stdout.fileno(), 1) == b""
        finally:
            os.kill(child, signal.SIGKILL)


STUBBORN = """
import asyncio
from contextlib import asynccontextmanager
from raxol_mcp import Server, serve_stdio

@asynccontextmanager
async def lifespan(server):
    yield
    print("CLEANED UP")

server = Server("stubborn", lifespan=lifespan)

@server.tool
async def stay() -> str:
    "Stay, whatever happens."
    print("BEGUN")
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            print("STAYED")

asyncio.run(serve_stdio(server, drain_timeout=0.1))
"""


def test_a_tool_that_swallows_its_cancellation_does_not_keep_the_process() -> None:
    """MCP 2026-07-28 basic/transports/stdio §Shutdown; `asyncio.run` waited for it for ever."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    with started("-c", STUBBORN) as process:
        ask(process, request(1, "tools/call", name="stay", _meta=meta))
        assert process.stderr is not None
        assert process.stderr.readline() == b"BEGUN\n"
        code, messages, err = finish(process)
    assert (code, messages) == (0, [])
    assert err.count("CLEANED UP") == 1
    assert err.count("STAYED") >= 1
