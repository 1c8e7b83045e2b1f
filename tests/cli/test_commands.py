"""The commands in this process: what they take, print and return."""

import json
import os

import pytest
from click.testing import CliRunner, Result

from raxol_mcp.cli.commands import command_line
from raxol_mcp.version import VERSION
from tests.cli.conftest import WriteModule

SERVER = "from raxol_mcp import Server\nserver = Server('found')\n"
SENSITIVE = SERVER + (
    "@server.tool(destructive=True)\ndef wipe() -> str:\n    'Wipe.'\n    return ''\n"
)


def run(*arguments: str) -> Result:
    """Run a command line."""
    return CliRunner().invoke(command_line, arguments)


def sentence(result: Result) -> str:
    """Return the one sentence on stderr; there is nothing else anywhere."""
    assert result.stdout == ""
    assert result.stderr.startswith("raxol-mcp: ")
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("raxol-mcp: ").rstrip()


@pytest.mark.parametrize("arguments", [["version"], ["--version"]])
def test_the_version_is_printed(arguments: list[str]) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (0, f"raxol-mcp {VERSION}\n")


@pytest.mark.parametrize("arguments", [["--help"], ["serve", "--help"], ["check", "--help"]])
def test_help_is_printed(arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.exit_code == 0
    assert result.stdout.startswith("Usage: raxol-mcp ")


def test_without_a_command_the_help_is_an_error() -> None:
    result = run()
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Usage: raxol-mcp ")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--nothing"], "No such option '--nothing'; see raxol-mcp --help"),
        (["srve"], "No such command 'srve'"),
        (["serve"], "Missing argument 'MODULE[:SERVER]'; see raxol-mcp serve --help"),
        (["serve", "a", "b"], "Got unexpected extra argument (b); see raxol-mcp serve --help"),
        (["serve", "a", "--max-in-flight", "0"], "Invalid value for '--max-in-flight'"),
        (["serve", "a", "--callback-timeout", "0"], "Invalid value for '--callback-timeout'"),
        (["serve", "a", "--log-level", "loud"], "Invalid value for '--log-level'"),
        (["serve", "a", "--http", "--port", "65536"], "Invalid value for '--port'"),
        (["serve", "a", "--port", "0"], "--port belongs to --http: name that as well; see raxol"),
        (["check", "a", "--allow-reads", "tools/call"], "--allow-reads names 'tools/call'"),
        (
            ["check", "a", "--allow-all-tools", "--authorizer", "b:c"],
            "--allow-all-tools and --authorizer exclude each other: name one; "
            "see raxol-mcp check --help",
        ),
    ],
)
def test_a_command_line_that_is_wrong_is_told_in_a_sentence(
    arguments: list[str], told: str
) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert sentence(result).startswith(told)


def test_a_server_is_checked(write_module: WriteModule) -> None:
    write_module("checked_a", SERVER)
    result = run("check", "checked_a")
    assert result.exit_code == 0
    assert result.stdout.startswith("server           found\n")


def test_nothing_but_json_is_printed_with_json(write_module: WriteModule) -> None:
    write_module("checked_b", SERVER)
    result = run("check", "checked_b:server", "--json")
    assert json.loads(result.stdout)["name"] == "found"
    assert result.exit_code == 0


def test_a_server_that_would_refuse_to_start_fails_the_check(write_module: WriteModule) -> None:
    write_module("checked_c", SENSITIVE)
    result = run("check", "checked_c")
    assert result.exit_code == 1
    assert "starts           no: 1 tool(s) are annotated" in result.stdout


def test_a_check_judges_what_the_same_options_would_serve(write_module: WriteModule) -> None:
    write_module("checked_d", SENSITIVE)
    result = run("check", "checked_d", "--allow-tools", "wipe", "--json")
    report = json.loads(result.stdout)
    assert result.exit_code == 0
    assert (report["authorizer"], report["tools"][0]["guarded"]) == ("configured", True)


def test_what_the_network_refuses_counts_when_that_is_asked(write_module: WriteModule) -> None:
    write_module("checked_n", SERVER)
    told = "network          no: found is not served over a network in production, because nobody"
    for arguments, code in (([], 0), (["--http"], 1)):
        result = run("check", "checked_n", *arguments)
        assert result.exit_code == code
        assert told in result.stdout
    guarded = ["--http", "--allow-all-tools", "--allow-reads", "tools/list"]
    result = run("check", "checked_n", *guarded)
    assert result.exit_code == 0
    assert "network          nothing refuses one in this environment (production)" in result.stdout
    result = run("check", "checked_n", *guarded, "--host", "0.0.0.0")
    assert result.exit_code == 1
    assert "network          no: binding to 0.0.0.0 without authentication" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "found is not served over a network in production, because nobody has decided who"),
        (
            ["--allow-all-tools", "--allow-reads", "tools/list", "--tokens", "not_there.txt"],
            "not_there.txt cannot be read: ",
        ),
    ],
)
def test_what_the_network_refuses_is_not_served(
    write_module: WriteModule, arguments: list[str], told: str
) -> None:
    write_module("served_n", SERVER)
    result = run("serve", "served_n", "--http", "--port", "0", *arguments)
    assert result.exit_code == 1
    assert sentence(result).startswith(told)


@pytest.mark.parametrize("command", ["check", "serve"])
def test_a_server_that_cannot_be_loaded_is_told_in_a_sentence(
    write_module: WriteModule, command: str
) -> None:
    write_module("broken_e", "import not_there\n")
    result = run(command, "broken_e")
    assert result.exit_code == 1
    assert sentence(result) == (
        "broken_e cannot be imported: ModuleNotFoundError: No module named 'not_there' "
        "(broken_e.py:1)"
    )


def test_ctrl_c_has_its_code(write_module: WriteModule) -> None:
    write_module("interrupted_f", "raise KeyboardInterrupt\n")
    assert run("check", "interrupted_f").exit_code == 130


def test_a_reader_that_has_gone_is_no_crash(
    write_module: WriteModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`raxol-mcp check ... | head -1`."""
    write_module("piped_g", SERVER)

    def echo(*_: object, **__: object) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr("click.echo", echo)
    assert run("check", "piped_g").exit_code == 1


def test_any_other_system_error_is_not_hidden(
    write_module: WriteModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_module("full_h", SERVER)

    def echo(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("click.echo", echo)
    assert isinstance(run("check", "full_h").exception, OSError)


def test_a_server_is_served_until_its_input_ends(write_module: WriteModule) -> None:
    """The input of a test is the null device, which is at its end."""
    write_module("served_i", SERVER)
    assert os.read(0, 1) == b""
    result = run("serve", "served_i", "--log-level", "error")
    assert (result.exit_code, result.stdout) == (0, "")
