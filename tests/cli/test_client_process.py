"""`raxol-mcp` as a client, as a process: real servers, real terminals, real signals."""

import json
import os
import re
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.cli.conftest import WriteModule
from tests.cli.test_process import TIMEOUT, command, wait_for

ROOT = Path(__file__).parents[2]
FILES = ROOT / "examples" / "files_server.py"

pytestmark = pytest.mark.slow

STUCK = """
import os, sys
from raxol_mcp import Context, Server
server = Server("stuck")

@server.tool
async def hang(context: Context) -> str:
    "Never end."
    import asyncio
    open("pid", "w").write(str(os.getpid()))
    context.progress(1, 4, "half\\x1b[2J a job")
    context.log("error", "trouble\\x1b[2J")
    await asyncio.Event().wait()
    return ""

@server.tool
async def count(context: Context) -> str:
    "Count to two."
    context.progress(1, 2, "one")
    context.progress(2, 2, "two")
    return "\\x1b[31mdone"
"""


class Terminal:
    """A process that has a terminal of its own: what it shows there, and what is typed."""

    def __init__(self, master: int) -> None:
        self._master = master
        self.shown = ""

    def sees(self, text: str) -> None:
        """Wait until `text` is shown; forget all that came up to it."""
        while text not in self.shown:
            try:
                read = os.read(self._master, 65_536).decode()
            except OSError:  # Linux: the other end is closed
                read = ""
            assert read, f"{text!r} was not shown, but {self.shown!r}"
            self.shown += read
        self.shown = self.shown.split(text, 1)[1]

    def types(self, text: str) -> None:
        """Type something."""
        os.write(self._master, text.encode())

    def rest(self) -> str:
        """Read until the process has closed the terminal."""
        with suppress(OSError):
            while read := os.read(self._master, 65_536):
                self.shown += read.decode()
        return self.shown


@contextmanager
def at_a_terminal(
    *arguments: str, **environment: str
) -> Iterator[tuple[subprocess.Popen[str], Terminal]]:
    """Start `raxol-mcp` at a terminal that controls it, with stdout into a pipe."""
    master, slave = os.openpty()
    attributes = termios.tcgetattr(slave)
    attributes[1] &= ~termios.OPOST
    attributes[3] &= ~termios.ECHO
    termios.tcsetattr(slave, termios.TCSANOW, attributes)
    termios.tcsetwinsize(slave, (24, 100))
    path = os.pathsep.join([str(ROOT / "src"), *filter(None, sys.path)])
    # Ctrl-C reaches those whom the terminal controls: that is what this little program sets up.
    controlled = (
        "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
        "os.execv(sys.executable, [sys.executable, '-m', 'raxol_mcp', *sys.argv[1:]])"
    )
    with subprocess.Popen(
        [sys.executable, "-c", controlled, *arguments],
        stdin=slave,
        stdout=subprocess.PIPE,
        stderr=slave,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": path, "NO_COLOR": "1", **environment},
    ) as process:
        os.close(slave)
        try:
            yield process, Terminal(master)
        finally:
            process.kill()
            os.close(master)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the folder that the files server serves, and a user without files of servers."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "notes.txt").write_text("Buy milk.\n", "utf-8")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    return folder


def files(folder: Path) -> tuple[str, ...]:
    """Name the files server on a command line."""
    return ("--", sys.executable, str(FILES), str(folder))


WRITE = ("call", "write_file", "path=new.txt", "text=5")


@pytest.mark.parametrize("era", ["handshake", "stateless"])
@pytest.mark.parametrize(
    ("typed", "code", "written"),
    [("y\n", 0, "5"), ("\n", 3, None), ("\x03", 3, None), ("\x04", 3, None)],
)
def test_a_person_at_the_terminal_decides_in_both_eras(
    folder: Path, era: str, typed: str, code: int, written: str | None
) -> None:
    """MCP 2025-11-25 and 2026-07-28 client/elicitation; ours: docs/cli.md."""
    server = {"command": sys.executable, "args": [str(FILES), str(folder)], "era": era}
    file = folder.parent / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": {"files": server}}), "utf-8")
    with at_a_terminal(*WRITE) as (process, terminal):
        terminal.sees("? it has never been allowed:\n")
        terminal.sees("Allow this file, as it is now? [y/N] ")
        terminal.types("y\n")
        terminal.sees("? files asks (call write_file):\n")
        terminal.sees("  | path: new.txt\n  | text: 5\n")
        terminal.sees("approve? [y/N] ")
        terminal.types(typed)
        assert process.stdout is not None
        told = process.stdout.read()
        assert process.wait(TIMEOUT) == code, terminal.rest()
    new = folder / "new.txt"
    assert (new.read_text("utf-8") if new.exists() else None) == written
    assert ("wrote new.txt" in told) is (written is not None)


def test_without_a_terminal_nothing_is_agreed_to(folder: Path) -> None:
    """ours: docs/cli.md. Silence is not consent."""
    with command(*WRITE, *files(folder)) as process:
        out, err = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 3
    assert "declined: there is no terminal to answer at" in err
    assert "authorization_required" in out
    assert not (folder / "new.txt").exists()
    with command(*WRITE, "--answer", "approve=true", *files(folder)) as process:
        out, err = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, out) == (0, "wrote new.txt (1 bytes)\n")
    assert (folder / "new.txt").read_text("utf-8") == "5"


def test_results_alone_are_on_stdout(folder: Path) -> None:
    with command("call", "read_file", "path=notes.txt", "-v", *files(folder)) as process:
        assert process.communicate(timeout=TIMEOUT)[0] == "Buy milk.\n"
    with command("tools", "--json", *files(folder)) as process:
        out, err = process.communicate(timeout=TIMEOUT)
    names = [tool["name"] for tool in json.loads(out)["tools"]]
    assert names == ["list_files", "read_file", "write_file"]
    assert (process.returncode, err) == (0, "")


def gone(pid: int) -> bool:
    """Say whether a process is no more."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    # A zombie of somebody else's is none of ours.
    return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] == "Z"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_leaves_no_server_behind(
    write_module: WriteModule, folder: Path, number: signal.Signals, code: int
) -> None:
    """MCP 2025-11-25 basic/lifecycle §Shutdown; K14."""
    file = write_module("stuck", STUCK)
    server = ("--", sys.executable, "-m", "raxol_mcp", "serve", str(file))
    with command("call", "hang", *server) as process:
        wait_for(process, "raxol_mcp error: trouble\\x1b[2J")
        process.send_signal(number)
        out, _ = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, out) == (code, "")
    assert gone(int((file.parent / "pid").read_text("utf-8")))


def test_ctrl_c_outside_a_question_ends_the_call(write_module: WriteModule, folder: Path) -> None:
    file = write_module("stuck", STUCK)
    server = ("--", sys.executable, "-m", "raxol_mcp", "serve", str(file))
    with at_a_terminal("call", "hang", *server) as (process, terminal):
        terminal.sees("[######..................]  25 %  half\\x1b[2J a job")
        terminal.sees("error: trouble\\x1b[2J\n")
        terminal.types("\x03")
        assert process.wait(TIMEOUT) == 130
        assert "Traceback" not in terminal.rest()
    assert gone(int((file.parent / "pid").read_text("utf-8")))


def test_the_progress_line_is_gone_before_the_result(
    write_module: WriteModule, folder: Path
) -> None:
    file = write_module("stuck", STUCK)
    server = ("--", sys.executable, "-m", "raxol_mcp", "serve", str(file))
    with at_a_terminal("call", "count", *server) as (process, terminal):
        assert process.stdout is not None
        assert process.stdout.read() == "\x1b[31mdone\n", "as it is, into a pipe"
        assert process.wait(TIMEOUT) == 0
        shown = terminal.rest()
    assert "100 %  two" in shown
    assert shown.endswith("\r\x1b[K")


def test_a_call_that_takes_too_long_has_its_code(write_module: WriteModule, folder: Path) -> None:
    file = write_module("stuck", STUCK)
    server = ("--", sys.executable, "-m", "raxol_mcp", "serve", str(file))
    with command("call", "hang", "--timeout", "3", "--json", *server) as process:
        out, err = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, out) == (5, "")
    told = json.loads(err.splitlines()[-1])
    assert (told["error"], told["maybe_done"]) == ("timeout", True)
    assert gone(int((file.parent / "pid").read_text("utf-8")))


@pytest.mark.parametrize(
    ("server", "told"),
    [
        (("no-such-program",), "there is no such program"),
        ((sys.executable, "-c", "raise SystemExit('out of \\x1b[2Jluck')"), "out of \\x1b[2Jluck"),
    ],
)
def test_a_server_that_does_not_come_up_has_its_code_and_its_words(
    folder: Path, server: tuple[str, ...], told: str
) -> None:
    with command("tools", "--", *server) as process:
        out, err = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, out) == (4, "")
    assert told in err
    assert err.startswith("raxol-mcp: cannot connect to the server: ")
    assert err.count("\n") == 1


def test_over_http_an_address_of_this_machine_needs_no_leave(
    write_module: WriteModule, folder: Path
) -> None:
    """ours: docs/cli.md."""
    write_module(
        "hello",
        "from raxol_mcp import Server\nserver = Server('hello')\n@server.tool\n"
        "def greet(name: str) -> str:\n    'Greet.'\n    return f'Hello, {name}!'\n",
    )
    guards = ["--allow-tools", "greet", "--allow-reads", "tools/list"]
    with command("serve", "hello.py", "--http", "--port", "0", *guards) as server:
        assert server.stderr is not None
        url = server.stderr.readline().split()[-1]
        with command("call", "greet", "name=5", "--url", url) as process:
            out, err = process.communicate(timeout=TIMEOUT)
        assert (process.returncode, out, err) == (0, "Hello, 5!\n", "")
        with command("status", "--url", url, "--json") as process:
            (status,) = json.loads(process.communicate(timeout=TIMEOUT)[0])["servers"]
        assert (status["name"], status["status"], status["tools"]) == ("127.0.0.1", "ready", 1)
        server.send_signal(signal.SIGTERM)
        assert server.wait(TIMEOUT) == 143
    with command("tools", "--url", url) as process:
        out, err = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, out) == (4, "")
    assert re.fullmatch(r"raxol-mcp: cannot connect to the server: [^\n]+\n", err)


def test_trust_asks_at_a_terminal(folder: Path) -> None:
    file = folder.parent / "other.json"
    file.write_text(json.dumps({"servers": {"a": {"command": "b"}}}), "utf-8")
    for typed, code in (("n\n", 1), ("y\n", 0)):
        with at_a_terminal("trust", "other.json") as (process, terminal):
            terminal.sees('"b"\n')
            terminal.sees("Allow this file, as it is now? [y/N] ")
            terminal.types(typed)
            assert process.wait(TIMEOUT) == code
    with command("trust", "other.json") as asked_again:
        told = asked_again.communicate(timeout=TIMEOUT)
    assert told == ("allowed: you allowed it as it is\n", "")
