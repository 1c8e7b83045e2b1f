"""client/consent.py: a person sees all of what would run, and no credential."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_mcp.client.config import Config, Declaration, load
from raxol_mcp.client.consent import describe_for_consent
from raxol_mcp.client.entries import vouched


def loaded(folder: Path, **servers: object) -> Config:
    path = folder / ".mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}), "utf-8")
    return load(path)


def described(folder: Path, **servers: object) -> str:
    return describe_for_consent(loaded(folder, **servers)).replace(str(folder.resolve()), "DIR")


def test_everything_that_would_be_started_or_contacted_is_there(tmp_path: Path) -> None:
    """MCP 2026-07-28 security best practices: the exact command, untruncated."""
    text = described(
        tmp_path,
        files={
            "command": "./run",
            "args": ["-y", "a b", "${PACKAGE}", "; rm -rf ~"],
            "env": {"TOKEN": "x${env:SECRET:-sekrit}y", "LEVEL": "sekrit", "LD_PRELOAD": "./e.so"},
            "cwd": "sub",
            "alwaysAllow": ["x"],
        },
        web={
            "url": "https://user:sekrit@h.test/mcp?q=${QUERY}",
            "headers": {"Authorization": "Bearer ${TOKEN}", "x-key": "sekrit"},
            "allow_private": True,
            "prices": {"buy": 3},
        },
        wrong={},
    )
    assert text.splitlines() == [
        '"DIR/.mcp.json" names 2 servers.',
        "",
        "1. files",
        "   starts this program on your computer, with all your rights and variables:",
        '      "DIR/sub/run" "-y" "a b" "${PACKAGE}" "; rm -rf ~"',
        '   in the folder "DIR/sub"',
        '   variable "TOKEN": <hidden>${SECRET:-<hidden>}<hidden>',
        '   variable "LEVEL": <hidden>',
        '   variable "LD_PRELOAD": "./e.so", which can change what runs',
        "   reads these variables of yours: PACKAGE, SECRET",
        '   ignored: "alwaysAllow"',
        "",
        "2. web",
        "   connects to this address, and sends it what its tools are given:",
        '      "https://<hidden>@h.test/mcp?q=${QUERY}"',
        '   header "Authorization": <hidden>${TOKEN}',
        '   header "x-key": <hidden>',
        "   reads these variables of yours: QUERY, TOKEN",
        "   option allow_private: true",
        '   option prices: {"buy": 3}',
        "",
        "Left out:",
        '   wrong: it needs a "command" or a "url"',
    ]
    assert "sekrit" not in text


def test_one_server_and_none(tmp_path: Path) -> None:
    assert described(tmp_path, a={"command": "x"}).splitlines() == [
        '"DIR/.mcp.json" names 1 server.',
        "",
        "1. a",
        "   starts this program on your computer, with all your rights and variables:",
        '      "x"',
    ]
    assert described(tmp_path) == '"DIR/.mcp.json" names 0 servers.'
    (tmp_path / "other").write_text("{}", "utf-8")
    assert describe_for_consent(load(tmp_path / "other")).endswith(
        'the file: it has neither "mcpServers" nor "servers"'
    )


def test_the_command_line_is_shown_as_it_would_be_placed(tmp_path: Path) -> None:
    for entry, shown in (
        ({"command": "npx"}, "npx"),
        ({"command": "/bin/x"}, "/bin/x"),
        ({"command": "bin/x"}, "DIR/bin/x"),
        ({"command": "./x", "cwd": "/tmp"}, "/tmp/x"),
        ({"command": "./x", "cwd": "${HERE}"}, "${HERE}/x"),
        ({"command": "x", "cwd": "sub"}, "x"),
        ({"command": "${HOME}/x", "cwd": "sub"}, "${HOME}/x"),
    ):
        assert f'      "{shown}"' in described(tmp_path, a=entry).splitlines()


def test_what_was_shown_is_what_is_started(tmp_path: Path) -> None:
    """BC-151: where no variable is named, the command line is the very one."""
    for entry in (
        {"command": "./x", "args": ["a b", "", "$$"]},
        {"command": "bin/x", "cwd": "sub"},
        {"command": "../x", "cwd": "/tmp"},
        {"command": "x", "args": ["./y"], "cwd": "."},
    ):
        text = describe_for_consent(config := loaded(tmp_path, a=entry))
        spec = vouched(config).spec("a", {})
        lines = text.splitlines()
        assert lines[4].strip() == " ".join(map(json.dumps, [spec.command, *spec.args]))
        assert lines[5:] == ([f"   in the folder {json.dumps(spec.cwd)}"] if spec.cwd else [])


@pytest.mark.parametrize(
    "name",
    [
        *("PATH", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES", "PYTHONPATH", "PYTHONSTARTUP"),
        *("NODE_OPTIONS", "npm_config_registry", "BASH_ENV", "ENV", "PERL5OPT", "RUBYOPT"),
        *("JAVA_TOOL_OPTIONS", "GIT_SSH_COMMAND", "https_proxy", "UV_INDEX_URL", "PIP_INDEX_URL"),
    ],
)
def test_a_variable_that_changes_what_runs_is_shown(tmp_path: Path, name: str) -> None:
    """BC-151: hidden, it would be another command than the one that is shown."""
    text = described(tmp_path, a={"command": "x", "env": {name: "/tmp/evil"}})
    assert f'variable "{name}": "/tmp/evil", which can change what runs' in text


def test_a_program_that_gets_no_variables_is_said_to_get_none(tmp_path: Path) -> None:
    lines = described(tmp_path, a={"command": "x", "inherit_env": False}).splitlines()
    assert "   starts this program on your computer, with all your rights:" in lines
    assert "   option inherit_env: false" in lines


def test_two_commands_that_differ_never_look_alike(tmp_path: Path) -> None:
    """K26, K28: quotes, spaces, directions, other scripts and things without a shape."""
    commands: list[tuple[str, list[str]]] = [
        ("npm", ["a b"]),
        ("npm", ["a", "b"]),
        ("npm", ['a" "b']),
        ("npm", ["a", "b", ""]),
        ("npm", ["a\u200bb"]),
        ("npm", ["a\u3164b"]),
        ("npm", ["a\\u200bb"]),
        ("npm", ["a\u202eb"]),
        ("npm", ["a\nb"]),
        ("npm", ["a\x7fb"]),
        ("npm", ["ab"]),
        ("n\u0440m", ["ab"]),
    ]
    shown = {
        described(tmp_path, a={"command": command, "args": arguments})
        for command, arguments in commands
    }
    assert len(shown) == len(commands)
    assert all(line.isprintable() and line.isascii() for text in shown for line in text.split("\n"))


def test_an_address_that_two_readers_read_differently_is_shown_whole(tmp_path: Path) -> None:
    """K06: behind a backslash some see a path, others a host."""
    text = described(tmp_path, a={"url": "https://good.test\\@evil.test/"})
    assert '"https://good.test\\\\@evil.test/"' in text


TEXTS = st.text(max_size=20).filter(lambda text: "${" not in text)


@given(TEXTS, st.lists(TEXTS, max_size=4), st.dictionaries(TEXTS, TEXTS, max_size=3))
def test_whatever_a_file_says_each_line_is_ours(
    command: str, arguments: list[str], env: dict[str, str]
) -> None:
    """K26: printable ASCII, one line for each part, and every argument can be read back."""
    options = {"command": command, "args": tuple(arguments), "env": env, "cwd": command}
    config = Config("/p/\x1b.json", "", (Declaration("a", "stdio", options),), (), 0, 0)
    lines = describe_for_consent(config).split("\n")
    assert len(lines) == 6 + len(env)
    assert all(line.isascii() and line.isprintable() for line in lines)
    decoder = json.JSONDecoder()
    line, read, position = lines[4].strip(), [], 0
    while position < len(line):
        part, position = decoder.raw_decode(line, position)
        read.append(part)
        position += 1  # the space between two
    assert read[1:] == arguments
