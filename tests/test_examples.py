"""Every example is a program that checks itself; here each is run, as a reader would run it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
# Bounds every wait for a process, in seconds; none should come near it.
TIMEOUT = 60.0

CHECKED_ALONE = [
    *("approve_a_delete", "custom_transport", "custom_view", "embedding"),
    *("mounted_in_starlette", "synchronous_shell", "use_a_server", "use_the_todo_app"),
]
SERVERS = ["everything_server", "files_server", "hello_stdio"]
CLIENTS = ["conformance_client"]
APPS = ["todo_app"]  # used by use_the_todo_app, and in tests/docs/test_todo_app.py
SLOW = ["demo"]


def run(
    program: str, *arguments: str, stdin: str | int = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run an example to its end."""
    path = os.pathsep.join([str(ROOT / "src"), *filter(None, sys.path)])
    return subprocess.run(
        [sys.executable, str(EXAMPLES / f"{program}.py"), *arguments],
        input=stdin if isinstance(stdin, str) else None,
        stdin=stdin if isinstance(stdin, int) else None,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
        env={**os.environ, "PYTHONPATH": path, **environment},
    )


def call(name: str, /, **arguments: str) -> str:
    """Write a call in the handshake era as a line."""
    params = {"name": name, "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": name, "method": "tools/call", "params": params}
    return json.dumps(message) + "\n"


def said_to(program: str, *arguments: str, calls: str) -> list[str]:
    """Greet a server, make calls, and return what each was told."""
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    greeting = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    done = run(program, *arguments, stdin=f"{json.dumps(greeting)}\n{calls}")
    return texts(done)[1:]


def texts(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Return the text of every answer; that of `initialize` is empty."""
    assert (done.returncode, done.stderr) == (0, "")
    results = [json.loads(line)["result"] for line in done.stdout.splitlines()]
    return [result["content"][0]["text"] if "content" in result else "" for result in results]


def test_every_example_is_run_here() -> None:
    assert sorted(path.stem for path in EXAMPLES.glob("*.py")) == sorted(
        CHECKED_ALONE + SERVERS + CLIENTS + APPS + SLOW
    )


@pytest.mark.parametrize("program", CHECKED_ALONE)
def test_an_example_keeps_its_promises(program: str) -> None:
    done = run(program)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_smallest_server_answers() -> None:
    told = said_to("hello_stdio", calls=call("greet", name="World"))
    assert told == ["Hello, World!"]


def test_the_readme_shows_the_smallest_server_as_it_is() -> None:
    """CONTRIBUTING: pages show no code that is not run."""
    block = (ROOT / "README.md").read_text("utf-8").split("```python\n")[1].split("```")[0]
    assert block == (EXAMPLES / "hello_stdio.py").read_text("utf-8")


@pytest.mark.parametrize(("page", "place"), [("README.md", 2), ("docs/client.md", 1)])
def test_the_pages_show_the_smallest_client_as_it_is(page: str, place: int) -> None:
    """CONTRIBUTING: pages show no code that is not run."""
    block = (ROOT / page).read_text("utf-8").split("```python\n")[place].split("```")[0]
    assert block == (EXAMPLES / "use_a_server.py").read_text("utf-8")


# -- everything_server ------------------------------------------------------------------------


def test_one_of_everything_starts_answers_and_stops() -> None:
    """It prints its address alone, once it can be used; the client of `make conformance` can."""
    path = os.pathsep.join([str(ROOT / "src"), *filter(None, sys.path)])
    with subprocess.Popen(
        [sys.executable, str(EXAMPLES / "everything_server.py"), "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            url = process.stdout.readline().strip()
            message = json.loads(approved(("test_simple_text", {})))
            headers = {
                "Content-Type": "application/json",
                "Accept": "application/json, text/event-stream",
                "MCP-Protocol-Version": "2026-07-28",
                "Mcp-Method": "tools/call",
                "Mcp-Name": "test_simple_text",
            }
            with urlopen(Request(url, json.dumps(message).encode(), headers), timeout=TIMEOUT) as a:
                (content,) = json.load(a)["result"]["content"]
            assert content["text"] == "This is a simple text response for testing."
            looked = run("conformance_client", url)
            assert (looked.returncode, looked.stderr) == (0, "")
            process.terminate()
            assert process.wait(TIMEOUT) == 0
            assert (process.stdout.read(), process.stderr.read()) == ("", "")
        finally:
            process.kill()


# -- files_server -----------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a folder with a file, a secret beside it, and links in it that lead there."""
    folder = tmp_path / "folder"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "notes.txt").write_text("Buy milk.\n", "utf-8")
    (tmp_path / "secret.txt").write_text("swordfish", "utf-8")
    (folder / "link.txt").symlink_to("../secret.txt")
    (folder / "out").symlink_to("..")
    (folder / "binary").write_bytes(b"\xff\xfe")
    (folder / "long.txt").write_bytes(b"x" * (256 * 1024 + 1))
    os.mkfifo(folder / "pipe")
    return folder


@pytest.mark.parametrize(
    "path",
    [
        "../secret.txt",
        "inner/../../secret.txt",
        "out/secret.txt",
        "link.txt",
        "out",
        "/etc/hostname",
        "//etc/hostname",
        "inner/notes.txt\0",
        "inner/notes.txt/",
        "inner",
        "pipe",
        "binary",
        "long.txt",
        "",
        ".",
        "no/such/file",
        "x" * 5000,
    ],
)
def test_nothing_but_a_text_file_of_the_folder_is_read(folder: Path, path: str) -> None:
    (text,) = said_to("files_server", str(folder), calls=call("read_file", path=path))
    if path == "inner/notes.txt/":  # the same file, written in an odd way
        assert text == "Buy milk.\n"
    else:
        assert "swordfish" not in text
        assert "Buy" not in text
        assert "Error:" not in text, "refused in words, not by an accident"


def test_files_are_listed_and_links_are_not_followed(folder: Path) -> None:
    (text,) = said_to("files_server", str(folder), calls=call("list_files"))
    assert text.splitlines() == [
        "binary (2 bytes)",
        f"long.txt ({256 * 1024 + 1} bytes)",
        "inner/notes.txt (10 bytes)",
    ]


def test_a_client_that_cannot_ask_its_person_writes_and_deletes_nothing(folder: Path) -> None:
    calls = call("write_file", path="new.txt", text="x")
    calls += call("delete_file", path="inner/notes.txt")
    told = said_to("files_server", str(folder), "--allow-delete", calls=calls)
    assert ['"decision":"ask"' in text for text in told] == [True, True]
    assert sorted(path.name for path in folder.iterdir()) == [
        *("binary", "inner", "link.txt", "long.txt", "out", "pipe")
    ]
    assert (folder / "inner" / "notes.txt").exists()


def approved(*calls: tuple[str, dict[str, str]]) -> str:
    """Write calls in the stateless era, each by a client that can ask."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    }
    return "".join(
        json.dumps(
            {
                "jsonrpc": "2.0",
                "id": number,
                "method": "tools/call",
                "params": {"name": name, "arguments": arguments, "_meta": meta},
            }
        )
        + "\n"
        for number, (name, arguments) in enumerate(calls)
    )


def test_the_person_sees_what_will_be_written_and_a_model_cannot_forge_it(folder: Path) -> None:
    """Each argument stays on its line, whatever line breaks it has."""
    arguments = {"path": "a.txt", "text": "x\ntext: harmless\u202e"}
    done = run("files_server", str(folder), stdin=approved(("write_file", arguments)))
    (answer,) = (json.loads(line) for line in done.stdout.splitlines())
    (question,) = answer["result"]["inputRequests"].values()
    assert question["params"]["message"].splitlines() == [
        "Write this file, replacing what is there?",
        "path: a.txt",
        "text: 'x\\ntext: harmless\\u202e'",
    ]


def test_nobody_is_asked_about_a_path_that_is_refused(folder: Path) -> None:
    arguments = {"path": "../new.txt", "text": "x"}
    done = run("files_server", str(folder), stdin=approved(("write_file", arguments)))
    (text,) = texts(done)
    assert '"decision":"deny"' in text


def test_deleting_can_be_switched_on_and_then_asks(folder: Path) -> None:
    request = approved(("delete_file", {"path": "inner/notes.txt"}))
    denied = run("files_server", str(folder), stdin=request)
    assert '"decision":"deny"' in texts(denied)[0]
    asked = run("files_server", str(folder), "--allow-delete", stdin=request)
    assert json.loads(asked.stdout)["result"]["resultType"] == "input_required"


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    path = os.pathsep.join([str(ROOT / "src"), *filter(None, sys.path)])
    for folder, told in ((None, "set FILES_FOLDER"), (str(tmp_path / "none"), "cannot serve '")):
        environment = {**os.environ, "PYTHONPATH": path}
        environment.pop("FILES_FOLDER", None)
        if folder is not None:
            environment["FILES_FOLDER"] = folder
        done = subprocess.run(
            [sys.executable, "-m", "raxol_mcp", "check", str(EXAMPLES / "files_server.py")],
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
            env=environment,
        )
        assert done.returncode == 1
        assert told in done.stderr
        assert done.stderr.count("\n") == 1


# -- demo -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_demo_keeps_its_promises() -> None:
    done = run("demo", "--script")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("\nEverything was as promised.\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("said", "outcome"), [("y\n", "You agreed, so it was"), ("\n", "You did not agree, so nothing")]
)
def test_in_a_terminal_the_demo_asks_whoever_sits_there(said: str, outcome: str) -> None:
    path = os.pathsep.join([str(ROOT / "src"), *filter(None, sys.path)])
    terminal, end = os.openpty()
    with subprocess.Popen(
        [sys.executable, str(EXAMPLES / "demo.py")],
        stdin=end,
        stdout=end,
        stderr=end,
        env={**os.environ, "PYTHONPATH": path},
    ) as process:
        os.close(end)
        shown = ""
        while "[y/N]" not in shown:
            shown += os.read(terminal, 4096).decode()
        os.write(terminal, said.encode())
        # Reading a terminal whose other end is closed is an error on Linux.
        while "as promised" not in shown.lower():
            shown += os.read(terminal, 4096).decode()
        assert process.wait(TIMEOUT) == 0
    os.close(terminal)
    assert outcome in shown
