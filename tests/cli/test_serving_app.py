"""`raxol-mcp serve-app`: what it takes, what it refuses, and an app over stdin and stdout."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from textual.app import App

from raxol_mcp.cli.commands import command_line
from raxol_mcp.cli.serving_app import app_server
from raxol_mcp.errors import ConfigurationError
from tests.cli.conftest import WriteModule

SOURCE = Path(__file__).parents[2] / "src"
# Bounds every wait for a process, in seconds; none should come near it.
TIMEOUT = 60.0

APP = """
import sys
from textual.app import App
from textual.widgets import Button, Label

print("BANNER")

class Counter(App):
    count = 0

    def compose(self):
        yield Label("0", id="count")
        yield Button("Add", id="add")
        yield Button("Break", id="break")

    def on_button_pressed(self, event):
        print("IN THE APP")
        if event.button.id == "break":
            raise RuntimeError("12345")
        self.count += 1
        self.query_one("#count").update(str(self.count))

def made():
    return Counter()

def needing(what):
    return Counter()

async def later():
    return Counter()

number = 7
running = Counter()
"""

BOUNDS: dict[str, Any] = {"size": (80, 24), "max_sessions": 2, "idle_timeout": 60.0}


@pytest.mark.parametrize("target", ["counter", "counter:Counter", "counter:made", "counter.py"])
def test_an_app_is_named_by_its_class_its_function_or_its_module(
    write_module: WriteModule, target: str
) -> None:
    write_module("counter", APP)
    server = app_server(target, **BOUNDS)
    names = {tool.name for tool in server.registry.tools()}
    assert {"start_session", "stop_session", "list_sessions", "send_keys", "screenshot"} <= names


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("counter:number", "a Textual app was expected, got: 7"),
        ("counter:Label", "a Textual app was expected, got: <class"),
        ("counter:running", "an app can run once"),
        ("counter:needing", "it is called without arguments, and returns a new app"),
        ("counter:later", "it is called without arguments, and returns a new app"),
        ("counter:nothing", "counter has no 'nothing'"),
        ("json", "json declares not one Textual app but: none; name one"),
        ("nowhere:App", "there is no module 'nowhere'"),
    ],
)
def test_what_is_no_app_is_refused_in_a_sentence(
    write_module: WriteModule, target: str, told: str
) -> None:
    write_module("counter", APP)
    with pytest.raises(ConfigurationError, match=told):
        app_server(target, **BOUNDS)


def test_a_module_that_runs_its_app_when_it_is_imported_is_refused(
    write_module: WriteModule,
) -> None:
    """It would take the terminal, and nothing would ever be served."""
    run = App.run
    write_module("unguarded", APP + "\nCounter().run()\n")
    with pytest.raises(ConfigurationError, match="guard that with if __name__"):
        app_server("unguarded:Counter", **BOUNDS)
    assert App.run is run


def test_two_apps_in_a_module_have_to_be_told_apart(write_module: WriteModule) -> None:
    write_module("two", APP + "\nclass Other(App): pass\n")
    with pytest.raises(ConfigurationError, match="two:Counter, two:Other; name one"):
        app_server("two", **BOUNDS)


def test_without_textual_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("raxol_mcp.views.textual")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "textual.app", None)
    monkeypatch.setitem(sys.modules, "textual", None)
    with pytest.raises(ConfigurationError, match=r"pip install \"raxol-mcp\[textual\]\""):
        app_server("counter", **BOUNDS)


def test_the_help_says_what_it_takes() -> None:
    done = CliRunner().invoke(command_line, ["serve-app", "--help"])
    for option in ("--allow-all-tools", "--http", "--columns", "--max-sessions", "--idle-timeout"):
        assert option in done.output


def _lines(*calls: tuple[str, dict[str, object]]) -> str:
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    messages: list[dict[str, object]] = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello},
    ]
    for id, (name, arguments) in enumerate(calls, 1):
        params = {"name": name, "arguments": arguments}
        messages.append({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    return "".join(json.dumps(message) + "\n" for message in messages)


@pytest.mark.slow
def test_an_app_is_served_over_stdin_and_stdout(write_module: WriteModule) -> None:
    """Nothing but messages is on stdout: what is printed anywhere is on stderr."""
    write_module("counter", APP)
    path = os.pathsep.join([str(SOURCE), *filter(None, sys.path)])
    with subprocess.Popen(
        [sys.executable, "-m", "raxol_mcp", "serve-app", "counter", "--max-sessions", "2"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        said = []
        sent = _lines(
            ("start_session", {}),
            ("s1.add.click", {}),
            ("screenshot", {"format": "json"}),
            ("s1.break.click", {}),
            ("s1.add.click", {}),
            ("start_session", {}),
            ("stop_session", {}),
        )
        for line in sent.splitlines(keepends=True):  # each when the one before was answered
            process.stdin.write(line)
            process.stdin.flush()
            id = json.loads(line)["id"]
            while (message := json.loads(process.stdout.readline())).get("id") != id:
                assert message["method"].startswith("notifications/")
            said.append(message["result"])
        process.stdin.close()
        rest, noise = process.stdout.read(), process.stderr.read()
        code = process.wait(TIMEOUT)
    texts = [result["content"][0]["text"] for result in said[1:]]
    assert texts[0].startswith("Session s1 is running. Its tools: s1.add.click, s1.break.click")
    assert texts[1] == "clicked 'Add'"
    assert '"id": "count",\n     "content": "1"' in texts[2] or '"content": "1"' in texts[2]
    assert texts[3] == "the app has ended, and its session with it"
    assert texts[4].startswith("The session s1 has ended: its app crashed.")
    assert texts[5].startswith("Session s2 is running.")
    assert texts[6] == "Stopped s2."
    assert "12345" not in "".join(texts)
    assert rest == ""
    assert code == 0
    for printed in ("BANNER", "IN THE APP", "RuntimeError: 12345"):
        assert printed in noise
