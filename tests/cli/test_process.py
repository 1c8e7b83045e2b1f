"""`raxol-mcp` as a process, as a client starts it."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest

from tests.cli.conftest import WriteModule

SOURCE = Path(__file__).parents[2] / "src"
# Every wait for a process is bounded by this, in seconds; none should come near it.
TIMEOUT = 30.0

NOISY = """
import atexit, os, sys
print("BANNER")
os.write(1, b"RAW BANNER\\n")
atexit.register(print, "LAST WORDS")
from raxol_mcp import Server
server = Server("noisy")

@server.tool
def look() -> str:
    "Look."
    print("IN A TOOL")
    return "seen"
"""

STUCK = """
import threading
from contextlib import asynccontextmanager
from raxol_mcp import Server

@asynccontextmanager
async def lifespan(server):
    yield
    print("CLEANED UP")

server = Server("stuck", lifespan=lifespan)

@server.tool
def block() -> str:
    "Block."
    print("BLOCKED")
    threading.Event().wait()
    return "never"
"""

SEPARATE = """
import os
from raxol_mcp import Server
server = Server("separate")

@server.tool(isolation="process")
def where() -> int:
    "Say which process this is."
    return os.getpid()
"""


@contextmanager
def command(
    *arguments: str, stdin: int = subprocess.PIPE, **environment: str
) -> Iterator[subprocess.Popen[str]]:
    """Start `raxol-mcp` with pipes; kill it in the end if it is still there."""
    path = os.pathsep.join([str(SOURCE), *filter(None, sys.path)])
    with subprocess.Popen(
        [sys.executable, "-m", "raxol_mcp", *arguments],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", **environment},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def call(id: int, name: str) -> str:
    """Write a call of a tool as a line, in the stateless era: nothing comes before it."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": name, "arguments": {}, "_meta": meta}
    message = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
    return json.dumps(message) + "\n"


def send(process: subprocess.Popen[str], line: str) -> None:
    """Write one line to the process."""
    assert process.stdin is not None
    process.stdin.write(line)
    process.stdin.flush()


def wait_for(process: subprocess.Popen[str], text: str) -> None:
    """Wait until the process has written a line with this text to stderr."""
    assert process.stderr is not None
    assert any(text in line for line in process.stderr), f"{text!r} was not written"


def test_nothing_but_messages_is_on_stdout_from_start_to_end(write_module: WriteModule) -> None:
    """MCP 2026-07-28 basic/transports/stdio: imports and exit functions print as well."""
    write_module("noisy", NOISY)
    with command("serve", "noisy.py") as process:
        out, err = process.communicate(call(1, "look"), timeout=TIMEOUT)
    (line,) = out.splitlines()
    assert json.loads(line)["result"]["content"][0]["text"] == "seen"
    assert process.returncode == 0
    assert sorted(err.splitlines()) == ["BANNER", "IN A TOOL", "LAST WORDS", "RAW BANNER"]


def test_a_check_prints_its_report_alone(write_module: WriteModule) -> None:
    write_module("noisy", NOISY.replace('atexit.register(print, "LAST WORDS")', ""))
    with command("check", "noisy", "--json") as process:
        out, err = process.communicate(timeout=TIMEOUT)
    assert json.loads(out)["name"] == "noisy"
    assert sorted(err.splitlines()) == ["BANNER", "RAW BANNER"]


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["serve", "not_there"], 1, "raxol-mcp: there is no module 'not_there' in "),
        (["serve", "broken.py"], 1, "raxol-mcp: broken.py cannot be imported: ZeroDivisionError: "),
        (["serve", "wipes.py"], 1, "raxol-mcp: the server refuses to start: "),
        (["serve"], 2, "raxol-mcp: Missing argument 'MODULE[:SERVER]'"),
    ],
)
def test_a_mistake_is_one_sentence(
    write_module: WriteModule, arguments: list[str], code: int, sentence: str
) -> None:
    """ours: docs/cli.md. No traceback for a user's mistake."""
    write_module("broken", "1 / 0\n")
    sensitive = SEPARATE.replace('isolation="process"', "destructive=True")
    write_module("wipes", sensitive)
    with command(*arguments) as process:
        out, err = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, out, err.count("\n")) == (code, "", 1)
    assert err.startswith(sentence)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_an_idle_server(
    write_module: WriteModule, number: signal.Signals, code: int
) -> None:
    write_module("stuck", STUCK)
    with command("serve", "stuck.py") as process:
        send(process, '{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(number)
        assert process.wait(TIMEOUT) == code
        assert process.stderr is not None
        assert process.stderr.read() == "CLEANED UP\n"


def test_whoever_starts_it_in_a_terminal_is_told_what_it_waits_for(
    write_module: WriteModule,
) -> None:
    write_module("stuck", STUCK)
    terminal, stdin = os.openpty()
    with command("serve", "stuck.py", stdin=stdin) as process:
        os.close(stdin)
        wait_for(process, "this terminal is its client")
        os.write(terminal, b"\x04")  # Ctrl-D
        assert process.wait(TIMEOUT) == 0
    os.close(terminal)


@pytest.mark.slow
def test_a_signal_ends_a_server_whose_tool_is_stuck(write_module: WriteModule) -> None:
    """MCP 2025-11-25 basic/lifecycle §Shutdown; ours: docs/cli.md, within ten seconds."""
    write_module("stuck", STUCK)
    with command("serve", "stuck.py") as process:
        send(process, call(1, "block"))
        wait_for(process, "BLOCKED")
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT) == 143
        assert process.stderr is not None
        assert process.stderr.read().count("CLEANED UP") == 1


@pytest.mark.slow
def test_the_end_of_the_input_ends_a_server_whose_tool_is_stuck(
    write_module: WriteModule,
) -> None:
    """MCP 2026-07-28 basic/transports/stdio §Shutdown; ours: docs/cli.md."""
    write_module("stuck", STUCK)
    with command("serve", "stuck.py") as process:
        send(process, call(1, "block"))
        wait_for(process, "BLOCKED")
        out, err = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, out, err.count("CLEANED UP")) == (0, "", 1)


def test_a_tool_of_a_file_can_run_in_a_process(write_module: WriteModule) -> None:
    """The worker imports the file by its name, whatever folder the server was started in."""
    write_module("folder/separate", SEPARATE)
    with command("serve", "folder/separate.py") as process:
        out, _ = process.communicate(call(1, "where"), timeout=TIMEOUT)
    where = json.loads(out)["result"]["structuredContent"]["result"]
    assert where not in (process.pid, os.getpid())


def test_with_a_safe_path_the_current_folder_is_not_imported_from(
    write_module: WriteModule,
) -> None:
    """As for `python -P -m`."""
    write_module("noisy", NOISY)
    with command("check", "noisy", PYTHONSAFEPATH="1") as process:
        _, err = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 1
    assert err.startswith("raxol-mcp: there is no module 'noisy' in ")


def test_it_serves_over_http_and_says_where(write_module: WriteModule) -> None:
    """ours: docs/cli.md. What the user's code prints is not ours to keep from stdout there."""
    write_module("noisy", NOISY)
    guards = ["--allow-tools", "look", "--allow-reads", "tools/list"]
    with command("serve", "noisy.py", "--http", "--port", "0", *guards) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        line = process.stderr.readline()
        assert line.startswith("raxol-mcp: serving noisy at http://127.0.0.1:")
        request = Request(
            line.split()[-1],
            call(1, "look").encode(),
            {
                "Content-Type": "application/json",
                "Accept": "application/json, text/event-stream",
                "MCP-Protocol-Version": "2026-07-28",
                "Mcp-Method": "tools/call",
                "Mcp-Name": "look",
            },
        )
        with urlopen(request, timeout=TIMEOUT) as answer:
            assert json.load(answer)["result"]["content"][0]["text"] == "seen"
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT) == 143
        assert process.stderr.read() == ""
        printed = ["BANNER", "IN A TOOL", "LAST WORDS", "RAW BANNER"]
        assert sorted(process.stdout.read().splitlines()) == printed


@pytest.mark.slow
def test_over_http_a_signal_ends_a_server_whose_tool_is_stuck(write_module: WriteModule) -> None:
    """ours: docs/cli.md, within ten seconds."""
    write_module("stuck", STUCK)
    guards = ["--allow-all-tools", "--allow-reads", "tools/list"]
    with command("serve", "stuck.py", "--http", "--port", "0", *guards) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        address = urlsplit(process.stderr.readline().split()[-1])
        assert address.hostname is not None
        with socket.create_connection((address.hostname, address.port or 0), TIMEOUT) as client:
            body = call(1, "block").encode()
            client.sendall(
                b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Accept: application/json, text/event-stream\r\nMcp-Method: tools/call\r\n"
                b"Mcp-Name: block\r\nMCP-Protocol-Version: 2026-07-28\r\n"
                b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
            )
            assert process.stdout.readline() == "BLOCKED\n"
            process.send_signal(signal.SIGTERM)
            assert process.wait(TIMEOUT) == 143
        assert process.stdout.read() == "CLEANED UP\n"
