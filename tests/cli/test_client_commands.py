"""The commands that talk to a server: what they do, print and return."""

import base64
import io
import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from raxol_mcp.cli.commands import command_line
from raxol_mcp.client.answers import Accept, ElicitRequest
from raxol_mcp.client.results import CallResult, PromptResult, ReadResult
from raxol_mcp.errors import (
    Busy,
    ConnectFailed,
    RaxolError,
    Reason,
    RemoteProtocolError,
    TimedOut,
)
from tests.cli.fake_client import ECHO, FakeClient, FakeServer

PROGRAM = ("--", "server", "-x")
APPROVE: dict[str, object] = {"type": "object", "properties": {"approve": {"type": "boolean"}}}


@pytest.fixture(autouse=True)
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in an empty folder, as a user without files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def run(server: FakeServer, *arguments: str, stdin: str | None = None) -> Result:
    """Run a command line; no exception may escape it."""
    runner = CliRunner()
    result = runner.invoke(command_line, arguments, input=stdin, obj=server.surroundings)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def sentence(result: Result) -> str:
    """Return the one sentence on stderr; there is nothing else anywhere."""
    assert result.stdout == ""
    assert result.stderr.startswith("raxol-mcp: ")
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("raxol-mcp: ").rstrip()


# -- tools ------------------------------------------------------------------------------------


def test_tools_are_listed_and_the_server_is_stopped() -> None:
    server = FakeServer()
    result = run(server, "tools", "--timeout", "3", *PROGRAM)
    assert (result.exit_code, result.stdout) == (0, "echo  Say it again.\n")
    assert server.did == [("start", "server"), ("await_ready", 3.0), ("list_tools", 3.0), ("stop",)]
    assert result.stderr == ""


def test_one_tool_is_told_whole() -> None:
    assert run(FakeServer(), "tools", "echo", *PROGRAM).stdout.startswith("echo\n\nSay it again.")
    assert json.loads(run(FakeServer(), "tools", "echo", "--json", *PROGRAM).stdout) == {
        "name": "echo",
        "description": "Say it again.",
        "inputSchema": ECHO.input_schema,
    }


def test_tools_are_one_json_document() -> None:
    listed = json.loads(run(FakeServer(), "tools", "--json", *PROGRAM).stdout)
    assert [tool["name"] for tool in listed["tools"]] == ["echo"]


@pytest.mark.parametrize(("count", "known"), [(0, "none"), (1, "echo"), (21, "echo, ...")])
def test_a_tool_that_is_not_listed_is_told(count: int, known: str) -> None:
    result = run(FakeServer(tools=[ECHO] * count), "tools", "nope", *PROGRAM)
    assert result.exit_code == 1
    told = sentence(result)
    assert told.startswith("the server lists no tool 'nope'; it has: ")
    assert told.endswith(known)


# -- call -------------------------------------------------------------------------------------


def test_a_tool_is_called_with_typed_arguments() -> None:
    server = FakeServer()
    result = run(server, "call", "echo", "text=5", "count=5", "more:=[1]", *PROGRAM)
    assert result.stdout == "{'text': '5', 'count': 5, 'more': [1]}\n"
    assert result.exit_code == 0
    assert [what[0] for what in server.did] == [
        *("start", "await_ready", "list_tools", "call_tool", "stop")
    ]


def test_without_pairs_nothing_is_listed_first() -> None:
    server = FakeServer()
    result = run(server, "call", "echo", "--args", '{"text": "x"}', "--timeout", "9", *PROGRAM)
    assert result.stdout == "{'text': 'x'}\n"
    assert ("call_tool", "echo", {"text": "x"}, 9.0) in server.did
    assert "list_tools" not in [what[0] for what in server.did]


def test_pairs_are_put_into_the_object_that_stdin_gives() -> None:
    result = run(
        *(FakeServer(), "call", "echo", "count=2", "--args", "-", *PROGRAM),
        stdin='{"text": "é", "count": 1}',
    )
    assert result.stdout == "{'text': 'é', 'count': 2}\n"


def test_a_tool_that_is_not_listed_is_called_with_texts() -> None:
    """Which tools there are is for the server to say."""
    result = run(FakeServer(tools=[]), "call", "hidden", "count=2", *PROGRAM)
    assert (result.exit_code, result.stdout) == (0, "{'count': '2'}\n")


def test_a_tool_that_failed_has_its_own_code() -> None:
    """MCP server/tools §Error Handling: isError is a result."""

    async def fails(client: FakeClient, arguments: dict[str, object]) -> CallResult:
        return CallResult([{"type": "text", "text": "no such file"}], is_error=True)

    result = run(FakeServer(call=fails), "call", "echo", *PROGRAM)
    assert (result.exit_code, result.stdout, result.stderr) == (3, "no such file\n", "")
    result = run(FakeServer(call=fails), "call", "echo", "--json", *PROGRAM)
    assert (result.exit_code, json.loads(result.stdout)["isError"]) == (3, True)


def test_into_a_pipe_a_text_goes_as_it_is() -> None:
    """click's echo would take the colours out."""

    async def colours(client: FakeClient, arguments: dict[str, object]) -> CallResult:
        return CallResult([{"type": "text", "text": "\x1b[31mred\x1b[0m"}])

    assert run(FakeServer(call=colours), "call", "echo", *PROGRAM).stdout == "\x1b[31mred\x1b[0m\n"


async def paints(client: FakeClient, arguments: dict[str, object]) -> CallResult:
    """Answer with an image."""
    data = base64.b64encode(b"\x89PNG").decode()
    return CallResult(
        [
            {"type": "text", "text": "here"},
            {"type": "image", "data": data, "mimeType": "image/png"},
        ]
    )


def test_an_image_is_written_where_it_is_wanted(tmp_path: Path) -> None:
    result = run(FakeServer(call=paints), "call", "echo", *PROGRAM)
    assert result.stdout == "here\n[image/png, 4 bytes]\n"
    result = run(FakeServer(call=paints), "call", "echo", "-o", "a.png", *PROGRAM)
    assert result.stdout == "here\n[image/png, 4 bytes, saved as a.png]\n"
    assert (tmp_path / "a.png").read_bytes() == b"\x89PNG"
    result = run(FakeServer(call=paints), "call", "echo", "--output", "-", *PROGRAM)
    assert result.stdout_bytes == b"\x89PNG"


def test_a_result_that_cannot_be_written_is_not_lost() -> None:
    """The tool has run, and may not be run again."""
    result = run(FakeServer(call=paints), "call", "echo", "-o", "none/a.png", *PROGRAM)
    assert result.exit_code == 1
    assert result.stdout == "here\n[image/png, 4 bytes]\n"
    assert result.stderr == ("raxol-mcp: none/a.png cannot be written: No such file or directory\n")
    result = run(FakeServer(), "call", "echo", "-o", "-", *PROGRAM)
    assert (result.exit_code, result.stdout) == (1, "{}\n")


async def asks(client: FakeClient, arguments: dict[str, object]) -> CallResult:
    """Ask for approval, and answer with the answer."""
    assert client.elicitation is not None
    reply = await client.elicitation(ElicitRequest("server", "form", "Sure?", APPROVE))
    said = repr(reply.content) if isinstance(reply, Accept) else type(reply).__name__
    return CallResult([{"type": "text", "text": said}])


def test_what_is_asked_where_nobody_is_is_declined() -> None:
    """ours: docs/cli.md. Silence is not consent."""
    result = run(FakeServer(call=asks), "call", "echo", *PROGRAM)
    assert result.stdout == "Decline\n"
    assert result.stderr == (
        "? server asks (call echo):\n  | Sure?\n  approve (yes or no, may be left empty)\n"
        "  declined: there is no terminal to answer at\n"
    )


def test_a_script_may_agree_beforehand() -> None:
    result = run(FakeServer(call=asks), "call", "echo", "--answer", "approve=true", *PROGRAM)
    assert result.stdout == "{'approve': True}\n"
    assert "sent, as --answer says" in result.stderr


# -- read, prompt -----------------------------------------------------------------------------

NOTES = ReadResult([{"uri": "a:b", "text": "notes, no end"}])
GREETING = PromptResult("d", [{"role": "user", "content": {"type": "text", "text": "Hi"}}])


def test_a_resource_is_read(tmp_path: Path) -> None:
    server = FakeServer(read=NOTES)
    assert run(server, "read", "a:b", *PROGRAM).stdout == "notes, no end"
    assert ("read_resource", "a:b", None) in server.did
    assert json.loads(run(server, "read", "a:b", "--json", *PROGRAM).stdout) == {
        "contents": NOTES.contents
    }
    result = run(server, "read", "a:b", "--output", "copy", *PROGRAM)
    assert (result.stdout, (tmp_path / "copy").read_text("utf-8")) == (
        "[saved as copy]\n",
        "notes, no end",
    )
    assert run(server, "read", "a:b", "--output", "-", *PROGRAM).stdout == "notes, no end"


def test_a_prompt_is_filled_in() -> None:
    server = FakeServer(prompt=GREETING)
    result = run(server, "prompt", "greet", "name=5", "--timeout", "2", *PROGRAM)
    assert result.stdout == "user:\nHi\n"
    assert ("get_prompt", "greet", {"name": "5"}, 2.0) in server.did
    assert json.loads(run(server, "prompt", "greet", "--json", *PROGRAM).stdout) == {
        "description": "d",
        "messages": GREETING.messages,
    }


# -- status -----------------------------------------------------------------------------------


def test_the_status_of_a_server_is_told() -> None:
    result = run(FakeServer(), "status", *PROGRAM)
    assert (result.exit_code, result.stdout) == (
        0,
        "server  ready         MCP 2025-11-25, handshake\n",
    )


def test_one_server_that_is_down_does_not_hide_the_others(tmp_path: Path) -> None:
    """ours: docs/cli.md."""
    file = {"mcpServers": {"up": {"command": "up"}, "off": {"command": "x", "disabled": True}}}
    (tmp_path / ".mcp.json").write_text(json.dumps(file), "utf-8")
    assert run(FakeServer(), "trust", "--yes").exit_code == 0
    result = run(FakeServer(), "status", "--timeout", "5")
    assert [line.split()[:2] for line in result.stdout.splitlines()] == [
        ["up", "ready"],
        ["off", "skipped"],
    ]
    assert result.exit_code == 0, "one that is switched off is no failure"
    failing = FakeServer(refuses={"await_ready": ConnectFailed(Reason("http", 401))})
    result = run(failing, "status", "--json")
    assert result.exit_code == 4
    up, off = json.loads(result.stdout)["servers"]
    assert (up["status"], up["reason"]) == ("starting", ["http", 401])
    assert off["reason"][0] == "disabled"


# -- what goes wrong --------------------------------------------------------------------------

FAILURES: list[tuple[str, RaxolError, int, str]] = [
    ("await_ready", ConnectFailed(Reason("spawn_failed", "enoent")), 4, "connect_failed"),
    ("call_tool", TimedOut("too slow", Reason("timeout")), 5, "timeout"),
    ("call_tool", Busy("too much"), 6, "busy"),
    ("call_tool", RemoteProtocolError(-32602, "no such tool"), 1, "jsonrpc"),
]


@pytest.mark.parametrize(("where", "error", "code", "tag"), FAILURES)
def test_each_failure_has_its_code_and_its_sentence(
    where: str, error: RaxolError, code: int, tag: str
) -> None:
    """ours: docs/cli.md §Exit codes."""
    server = FakeServer(refuses={where: error})
    result = run(server, "call", "echo", *PROGRAM)
    assert result.exit_code == code
    assert sentence(result)
    assert server.did[-1] == ("stop",), "whatever happens, the server is stopped"


@pytest.mark.parametrize(("where", "error", "code", "tag"), FAILURES)
def test_with_json_a_failure_is_the_last_line_of_stderr(
    where: str, error: RaxolError, code: int, tag: str
) -> None:
    """ours: docs/cli.md §With --json."""
    result = run(FakeServer(refuses={where: error}), "call", "echo", "--json", *PROGRAM)
    assert (result.exit_code, result.stdout) == (code, "")
    told = json.loads(result.stderr.splitlines()[-1])
    assert told["error"] == tag
    assert told["message"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["call", *PROGRAM], "Missing argument 'TOOL'; see raxol-mcp call --help"),
        (["call", "echo", "text", *PROGRAM], "write an argument as key=value, not 'text'"),
        (["call", "echo", "--args", "[]", *PROGRAM], "--args must hold a JSON object"),
        (["call", "echo"], "name a server with --command, --url or --config"),
        (["prompt", "x", "a:=1", *PROGRAM], "the arguments of a prompt are texts"),
        (["read", "a:b", "--answer", "x", *PROGRAM], "write an answer as field=value"),
        (["tools", "--answer", "x=1", *PROGRAM], "No such option '--answer'"),
        (["tools", "--url", "x", *PROGRAM], "a command and --url exclude each other"),
        (["status", "a", *PROGRAM], "Got unexpected extra argument (a)"),
    ],
)
def test_a_command_line_that_is_wrong_starts_nothing(arguments: list[str], told: str) -> None:
    server = FakeServer()
    result = run(server, *arguments)
    assert result.exit_code == 2
    assert sentence(result).startswith(told)
    assert server.did == []


def test_a_value_of_the_wrong_type_calls_nothing() -> None:
    server = FakeServer()
    result = run(server, "call", "echo", "count=many", *PROGRAM)
    assert result.exit_code == 2
    assert sentence(result).startswith("count must be an integer written as JSON, not 'many'")
    assert [what[0] for what in server.did][-1] == "stop"
    assert "call_tool" not in [what[0] for what in server.did]


def test_a_file_that_is_not_trusted_starts_nothing(tmp_path: Path) -> None:
    """BC-151."""
    (tmp_path / ".mcp.json").write_text('{"mcpServers": {"a": {"command": "b"}}}', "utf-8")
    server = FakeServer()
    for arguments in (["tools"], ["call", "x"], ["status"], ["read", "a:b"], ["prompt", "p"]):
        result = run(server, *arguments)
        assert result.exit_code == 1
        assert "raxol-mcp trust" in sentence(result)
    assert server.did == []


def test_a_spec_that_cannot_be_meant_is_told_without_its_secrets() -> None:
    result = run(FakeServer(), "tools", "--url", "https://a/", "--header", "Bad Name: secret-1")
    assert result.exit_code == 1
    assert "secret-1" not in result.stderr


def test_every_command_has_its_help_and_is_in_the_list() -> None:
    listed = run(FakeServer(), "--help").stdout
    for name in ("call", "check", "prompt", "read", "serve", "status", "tools", "trust"):
        assert f"\n  {name} " in listed
        result = run(FakeServer(), name, "--help")
        assert result.exit_code == 0
        assert result.stdout.startswith(f"Usage: raxol-mcp {name} ")


def test_what_a_terminal_cannot_show_costs_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stdout)
    server = FakeServer(read=ReadResult([{"uri": "a", "text": "é"}]))
    with pytest.raises(SystemExit) as ended:
        command_line.main(["read", "a", *PROGRAM], obj=server.surroundings)
    stdout.flush()
    assert (ended.value.code, stdout.buffer.getvalue()) == (0, b"\\xe9")
