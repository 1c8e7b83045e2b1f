"""client/entries.py: what becomes of the servers of a trusted file."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from raxol_mcp.client.config import load
from raxol_mcp.client.entries import TrustedConfig, vouched
from raxol_mcp.client.spec import ClientSpec
from raxol_mcp.errors import InvalidSpec, Reason, UnsetVariable

from .test_variables import Watched


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path.resolve()


def trusted(folder: Path, **servers: object) -> TrustedConfig:
    path = folder / ".mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}), "utf-8")
    return vouched(load(path))


def only(folder: Path, entry: object, environ: Mapping[str, str] | None = None) -> ClientSpec:
    return trusted(folder, a=entry).spec("a", {} if environ is None else environ)


def test_references_count_in_all_that_reaches_a_server(folder: Path) -> None:
    """ours: command, arguments, variables, folder; address and headers; never a name."""
    environ = {"A": "1", "TOKEN": "t", "HOST": "h.test"}
    assert only(
        folder,
        {
            "command": "run-${A}",
            "args": ["--a=${A}", "${B:-b}", ""],
            "env": {"${A}": "${env:TOKEN}"},
            "cwd": "/x/${A}",
        },
        environ,
    ) == ClientSpec(
        "a",
        command="run-1",
        args=["--a=1", "b", ""],
        env={"${A}": "t"},
        cwd="/x/1",
        fail_fast=True,
    )
    assert only(
        folder,
        {"url": "https://${HOST}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}", "x": "$A"}},
        environ,
    ) == ClientSpec(
        "a",
        url="https://h.test/mcp",
        headers={"Authorization": "Bearer t", "x": "$A"},
        fail_fast=True,
    )


def test_arguments_are_passed_on_byte_for_byte(folder: Path) -> None:
    """BC-151: no shell, nothing split, nothing put together."""
    hostile = ["; touch /tmp/pwn", "$(touch /tmp/pwn)", "`id`", "%PATH%", "a b", "", '--x="q"', "~"]
    spec = only(folder, {"command": "python3", "args": hostile})
    assert (spec.command, list(spec.args)) == ("python3", hostile)


def test_options_are_those_of_the_spec(folder: Path) -> None:
    """ours: and are not expanded."""
    spec = only(
        folder,
        {
            "url": "u",
            "concurrency": "serialized",
            "prices": {"${A}": 3},
            "pool_size": 2,
            "call_timeout": 5,
            "allow_private": True,
            "fail_fast": False,
        },
    )
    assert spec == ClientSpec(
        "a",
        url="u",
        concurrency="serialized",
        prices={"${A}": 3},
        pool_size=2,
        call_timeout=5.0,
        allow_private=True,
    )


@pytest.mark.parametrize(
    ("entry", "command", "cwd"),
    [
        ({"command": "npx"}, "npx", None),
        ({"command": "/bin/x"}, "/bin/x", None),
        ({"command": "./x"}, "{}/x", None),
        ({"command": "bin/x"}, "{}/bin/x", None),
        ({"command": "../x"}, "{}/../x", None),
        ({"command": "./x", "cwd": "sub"}, "{}/sub/x", "{}/sub"),
        ({"command": "x", "cwd": "."}, "x", "{}/."),
        ({"command": "${HERE}/x", "cwd": "/tmp"}, "{}/x", "/tmp"),
        ({"command": "${DOT}x"}, "{}/x", None),
    ],
)
def test_paths_start_at_the_folder_of_the_file(
    folder: Path, entry: object, command: str, cwd: str | None
) -> None:
    """ours; BC-151: where this process happens to be decides nothing."""
    spec = only(folder, entry, {"HERE": str(folder), "DOT": "./"})
    assert spec.command == command.format(folder)
    assert spec.cwd == (None if cwd is None else cwd.format(folder))


def test_each_server_without_a_spec_has_a_reason_and_hides_no_other(folder: Path) -> None:
    """ours: fail-open per server; a reason names the variable and never a value."""
    config = trusted(
        folder,
        unset={"command": "x", "args": ["${TOKEN}", "${NONE}"]},
        good={"command": "x"},
        strange={"command": "x", "pool_size": 0, "args": ["${TOKEN}"]},
        foreign={"command": "x${TOKEN}", "headers": {"a": "${TOKEN}"}},
        broken={"url": "https://${TOKEN}/", "headers": {"a": "${LINES}"}},
        empty={"url": "${TOKEN:-}", "env": {"A": "b"}},
        wrong={},
        off={"command": "x", "disabled": True},
    )
    entries = config.specs({"TOKEN": "sekrit", "LINES": "sekrit\r\nx: y"})
    by_name = {entry.name: entry for entry in entries}
    assert list(by_name) == [
        *("unset", "good", "strange", "foreign", "broken", "empty", "wrong", "off"),
    ]
    assert by_name["good"].spec == ClientSpec("good", command="x", fail_fast=True)
    reasons = {name: entry.reason for name, entry in by_name.items() if entry.reason}
    assert {name: reason.path for name, reason in reasons.items()} == {
        "unset": ("unset_variable", "NONE"),
        "strange": ("invalid_spec",),
        "foreign": ("invalid_spec",),
        "broken": ("invalid_spec",),
        "empty": ("invalid_spec",),
        "wrong": ("invalid_spec",),
        "off": ("disabled",),
    }
    assert reasons["unset"].text == "the variable NONE is not set"
    assert "pool_size" in reasons["strange"].text
    assert "line break" in reasons["broken"].text
    assert "sekrit" not in "".join(str(reason) for reason in reasons.values())
    assert all(str(reason).isprintable() for reason in reasons.values())


def test_one_server_is_asked_for_by_name(folder: Path) -> None:
    config = trusted(folder, a={"command": "${NONE}"}, b={"command": "x", "pool_size": "2"})
    with pytest.raises(UnsetVariable, match="the variable NONE is not set") as unset:
        config.spec("a", {})
    assert (unset.value.variable, unset.value.tag) == ("NONE", "unset_variable")
    assert unset.value.reason == Reason("unset_variable", "NONE")
    with pytest.raises(InvalidSpec, match=r"^pool_size must be a whole number from 1 on, not '2'$"):
        config.spec("b", {})
    with pytest.raises(KeyError, match="has no server 'c'; it has: a, b"):
        config.spec("c", {})


def test_only_the_variables_of_the_server_are_read(folder: Path) -> None:
    """ours: one server does not read what another names."""
    config = trusted(folder, a={"command": "${A}"}, b={"command": "${B}"})
    watched = Watched({"A": "x", "B": "y"})
    config.spec("a", watched)
    assert watched.read == ["A"]


def test_the_variables_are_those_of_this_process(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAXOL_TEST_COMMAND", "cat")
    config = trusted(folder, a={"command": "${RAXOL_TEST_COMMAND}"})
    assert config.spec("a").command == "cat"
    assert [entry.name for entry in config.specs()] == ["a"]


def test_the_strings_of_a_server_have_a_bound_together(folder: Path) -> None:
    """K12: a file of one megabyte must not become gigabytes."""
    config = trusted(folder, a={"command": "x", "args": ["${X}${X}"] * 10_000})
    [entry] = config.specs({"X": "x" * 1000})
    assert entry.reason == Reason("unset_variable", "X")
    assert "too large" in entry.reason.text


def test_no_credential_is_shown(folder: Path) -> None:
    """K24."""
    config = trusted(folder, a={"command": "x", "args": ["sekrit"], "env": {"T": "sekrit"}})
    assert repr(config) == f"TrustedConfig('{folder}/.mcp.json')"
    assert "sekrit" not in repr(config.specs({}))
