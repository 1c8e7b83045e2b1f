"""client/config.py: a file is read once, judged entry by entry, and nothing comes of it."""

import hashlib
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_mcp.client.config import (
    MAX_FILE_BYTES,
    MAX_SERVERS,
    OPTIONS,
    Config,
    Declaration,
    Problem,
    _declarations,
    load,
    normalised,
)
from raxol_mcp.client.spec import ClientSpec
from raxol_mcp.errors import ConfigurationError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / ".mcp.json"


def servers(file: Path, value: object, form: str = "mcpServers") -> Config:
    file.write_text(json.dumps({form: value}), "utf-8")
    return load(file)


def why(file: Path, entry: object, name: str = "a") -> str:
    """Give the reason why the only server of a file is left out."""
    config = servers(file, {name: entry})
    assert config.entries == ()
    [problem] = config.problems
    return problem.text


# -- what is understood


@pytest.mark.parametrize("form", ["mcpServers", "servers"])
def test_both_forms_are_read_alike(file: Path, form: str) -> None:
    """ours: the forms of Claude, Cursor and others, and of VS Code."""
    config = servers(
        file,
        {
            "files": {
                "type": "stdio",
                "command": "npx",
                "args": ["-y", "${PACKAGE}"],
                "env": {"LEVEL": "debug", "PORT": 8080},
                "cwd": "sub",
            },
            "web": {
                "type": "http",
                "url": "https://${HOST}/mcp",
                "headers": {"Authorization": "Bearer ${env:TOKEN:-}"},
                "concurrency": "serialized",
                "prices": {"buy": 3},
            },
        },
        form,
    )
    assert config.problems == ()
    files, web = config.entries
    assert files == Declaration(
        "files",
        "stdio",
        {
            "command": "npx",
            "args": ("-y", "${PACKAGE}"),
            "env": {"LEVEL": "debug", "PORT": "8080"},
            "cwd": "sub",
        },
    )
    assert web == Declaration(
        "web",
        "http",
        {
            "url": "https://${HOST}/mcp",
            "headers": {"Authorization": "Bearer ${env:TOKEN:-}"},
            "concurrency": "serialized",
            "prices": {"buy": 3},
        },
    )
    assert (files.variables, web.variables) == (["PACKAGE"], ["HOST", "TOKEN"])


def test_the_place_and_the_digest_are_those_of_what_was_read(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ours: trust is about these bytes at this place, whatever way led there."""
    servers(file, {"a": {"command": "x"}})
    link = tmp_path / "link.json"
    link.symlink_to(file)
    config = load(link)
    assert config.path == str(file.resolve())
    assert config.folder == str(tmp_path.resolve())
    assert config.digest == hashlib.sha256(file.read_bytes()).hexdigest()
    assert config.owner == os.geteuid()
    monkeypatch.chdir(tmp_path)
    assert load(".mcp.json") == config
    file.write_bytes(file.read_bytes() + b"\n")
    assert load(file).digest != config.digest


def test_a_file_may_have_both_forms(file: Path) -> None:
    """ours: nothing in a file is passed over in silence."""
    text = (
        '{"servers": {"a": {"url": "u"}, "b": {"url": "u"}}, "mcpServers": {"a": {"command": "x"}}}'
    )
    file.write_text(text, "utf-8")
    config = load(file)
    assert [(entry.name, entry.kind) for entry in config.entries] == [("a", "stdio"), ("b", "http")]
    assert config.problems == (Problem("a", "its tools would have the names of those of a"),)


@pytest.mark.parametrize(
    ("said", "entry"),
    [
        ("stdio", {"command": "x"}),
        ("http", {"url": "u"}),
        ("streamable-http", {"url": "u"}),
        ("streamableHttp", {"url": "u"}),
        ("sse", {"url": "u"}),
    ],
)
def test_the_type_may_say_what_the_entry_says(
    file: Path, said: str, entry: dict[str, object]
) -> None:
    assert len(servers(file, {"a": {"type": said, **entry}}).entries) == 1


def test_a_byte_order_mark_is_passed_over(file: Path) -> None:
    file.write_bytes(b'\xef\xbb\xbf{"servers": {"a": {"command": "x"}}}')
    assert [entry.name for entry in load(file).entries] == ["a"]


def test_what_others_keep_in_the_file_is_ignored_by_name(file: Path) -> None:
    """ours: said, not done: a person who allows the file should know what has no effect."""
    config = servers(file, {"a": {"command": "x", "alwaysAllow": ["t"], "gallery\u202e": True}})
    assert config.entries[0].unknown == ("alwaysAllow", r"gallery\u202e")
    assert set(config.entries[0].options) == {"command"}


def test_a_null_is_as_good_as_absent(file: Path) -> None:
    entry = {"command": "x", "url": None, "env": None, "args": None}
    assert servers(file, {"a": entry}).entries == (Declaration("a", "stdio", {"command": "x"}),)


def test_a_server_is_found_by_name(file: Path) -> None:
    config = servers(file, {"a": {"command": "x"}, "b": {"command": "y"}})
    assert config.entry("b") is config.entries[1]
    with pytest.raises(KeyError, match=r"has no server 'c'; it has: a, b"):
        config.entry("c")
    with pytest.raises(KeyError, match="it has: none"):
        servers(file, {}).entry("c")


def test_every_option_of_a_file_is_one_of_the_spec() -> None:
    """ours: one spelling of each option."""
    others = {"name", "command", "args", "env", "cwd", "url", "headers"}
    assert set(ClientSpec.__slots__) - others == OPTIONS


def test_no_credential_is_shown(file: Path) -> None:
    """K24."""
    config = servers(file, {"a": {"url": "u?sekrit", "headers": {"x": "sekrit"}}})
    assert "sekrit" not in repr(config)
    assert repr(config.entries[0]) == "Declaration('a', 'http')"


def test_nothing_is_started_and_no_variable_is_read(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ours: reading is not trusting; BC-151."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("reading a file does something")

    monkeypatch.setattr(os.environ.__class__, "__getitem__", refuse)
    monkeypatch.setattr(os, "posix_spawn", refuse)
    monkeypatch.setattr("subprocess.Popen.__init__", refuse)
    config = servers(file, {"a": {"command": "${CANARY}", "args": ["$(touch x)"]}})
    assert config.entries[0].options["command"] == "${CANARY}"
    assert not hasattr(config, "spec")
    assert not hasattr(config, "specs")


# -- a wrong entry is left out, and alone


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (None, "it must be an object"),
        ([], "it must be an object"),
        ("npx", "it must be an object"),
        ({}, 'it needs a "command" or a "url"'),
        ({"type": "http"}, 'it needs a "command" or a "url"'),
        ({"command": "x", "url": "u"}, 'it has both "command" and "url"'),
        ({"command": ""}, '"command" must be a string, and not an empty one'),
        ({"command": 1}, '"command" must be a string, and not an empty one'),
        ({"url": ["u"]}, '"url" must be a string, and not an empty one'),
        ({"command": "x", "cwd": 1}, '"cwd" must be a string, and not an empty one'),
        ({"command": "x", "args": "y"}, '"args" must be a list of strings'),
        ({"command": "x", "args": ["y", 1]}, '"args" must be a list of strings'),
        ({"command": "x", "env": []}, '"env" must be an object'),
        ({"command": "x", "env": {"A": True}}, "'A' in \"env\" must be a string"),
        ({"command": "x", "env": {"A": None}}, "'A' in \"env\" must be a string"),
        ({"command": "x", "env": {"A": 1.5}}, "'A' in \"env\" must be a string"),
        ({"url": "u", "headers": {"a\nb": 1}}, "'a\\nb' in \"headers\" must be a string"),
        ({"command": "x", "type": "http"}, '"type" says http, which needs a "url"'),
        ({"url": "u", "type": "stdio"}, '"type" says stdio, which needs a "command"'),
        ({"command": "x", "disabled": 1}, '"disabled" must be true or false'),
        ({"command": "x", "enabled": "no"}, '"enabled" must be true or false'),
        (
            {"command": "x", "envFile": ".env"},
            '"envFile" is not read here; name the variables in "env"',
        ),
        (
            {"url": "u", "headers": {"a": "Bearer ${input:token}"}},
            "${input:token... is no reference to a variable (write $${ for a ${)",
        ),
        (
            {"command": "x", "args": ["${A:-${B}}"]},
            "a default that refers to a variable; it can only be text",
        ),
    ],
)
def test_a_wrong_entry_has_a_reason(file: Path, entry: object, reason: str) -> None:
    """ours; BC-151: neither and both are errors."""
    assert why(file, entry) == reason


@pytest.mark.parametrize("said", ["websocket", 1, "", None])
def test_an_unknown_type_is_refused(file: Path, said: object) -> None:
    assert why(file, {"command": "x", "type": said}).startswith('"type" must be one of stdio, http')


@pytest.mark.parametrize("entry", [{"disabled": True}, {"enabled": False}])
def test_a_disabled_server_is_left_out(file: Path, entry: dict[str, object]) -> None:
    """ours: what a user switched off in another program stays off."""
    config = servers(file, {"a": {"command": "x", **entry}, "b": {"command": "x"}})
    assert config.problems == (Problem("a", "it is disabled in the file", "disabled"),)
    assert [entry.name for entry in config.entries] == ["b"]
    on = {"command": "x", "disabled": False, "enabled": True}
    assert servers(file, {"a": on}).entries == (Declaration("a", "stdio", {"command": "x"}),)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "-a",
        "_a",
        ".a",
        "a b",
        "a/b",
        "a\n",
        "a\x1b[2J",
        "\u202ea",
        "ä",
        "a" * 65,
        "../x",
        "a\x00",
    ],
)
def test_a_name_is_plain(file: Path, name: str) -> None:
    """K26: names become parts of names of tools, and lines on a terminal."""
    config = servers(file, {name: {"command": "x"}, "good": {"command": "x"}})
    [problem] = config.problems
    assert problem.text.startswith("a name has 1 to 64 of A-Z")
    assert problem.name is not None
    assert problem.name.isprintable()
    assert problem.name.isascii()
    assert [entry.name for entry in config.entries] == ["good"]


@pytest.mark.parametrize("name", ["a", "9", "A.b-c_d", "a" * 64])
def test_such_names_are_taken(file: Path, name: str) -> None:
    assert servers(file, {name: {"command": "x"}}).entries[0].name == name


def test_of_two_names_that_are_alike_in_names_of_tools_the_first_counts(file: Path) -> None:
    """ours: nothing may pass for another server."""
    config = servers(
        file, {name: {"command": name[0]} for name in ("my-x", "my_x", "my.x", "My_x")}
    )
    assert [entry.name for entry in config.entries] == ["my-x", "My_x"]
    assert [problem.name for problem in config.problems] == ["my_x", "my.x"]
    assert config.problems[0].text == "its tools would have the names of those of my-x"
    assert normalised("a-b") == normalised("a.b") != normalised("A-b")


def test_a_wrong_entry_takes_no_name(file: Path) -> None:
    config = servers(file, {"a-b": {}, "a_b": {"command": "x"}})
    assert [entry.name for entry in config.entries] == ["a_b"]


def test_there_is_a_bound_on_servers(file: Path) -> None:
    """K12."""
    config = servers(file, {f"s{number}": {"command": "x"} for number in range(MAX_SERVERS + 2)})
    assert len(config.entries) == MAX_SERVERS
    assert config.problems == tuple(
        Problem(f"s{number}", "a file may name 64 servers at most") for number in (64, 65)
    )


def test_a_file_without_servers_says_so(file: Path) -> None:
    file.write_text('{"command": "x"}', "utf-8")
    config = load(file)
    assert config.entries == ()
    assert config.problems == (Problem(None, 'it has neither "mcpServers" nor "servers"'),)
    assert servers(file, {}).problems == ()


# -- a file that cannot be read as a whole


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot be understood"),
        (b"{", "cannot be understood"),
        (b"[]", "must hold an object"),
        (b'"mcpServers"', "must hold an object"),
        (b'{"mcpServers": []}', '"mcpServers" in .* must be an object'),
        (b'{"servers": null}', '"servers" in .* must be an object'),
        (b'{"servers": {"a": {"command": "\xff"}}}', "cannot be understood"),
        (b"\xff\xfe{\x00}\x00", "cannot be understood"),
        (b'{"servers": {"a": {"command": "\\ud800"}}}', "surrogate"),
        (b'{"servers": {"a": {}, "a": {"command": "x"}}}', "duplicate member"),
        (b'{"servers": {"a": {"command": "x", "command": "y"}}}', "duplicate member"),
        (b'{"servers": {}, "servers": {}}', "duplicate member"),
        (b'{"servers": {"a": {"pool_size": NaN}}}', "cannot be understood"),
        (b'{"servers": ' + b"[" * 40 + b"]" * 40 + b"}", "nested more than 32 levels"),
        (b'{"servers": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001, "nested more than 32"),
        (b'// mine\n{"servers": {}}', "comments and a comma behind the last member have to go"),
        (b'{"servers": {\n  /* x */ }}', "comments and a comma"),
        (b'{"servers": {},\n}', "comments and a comma"),
    ],
)
def test_a_file_that_is_not_understood_is_refused_whole(
    file: Path, content: bytes, message: str
) -> None:
    """K06, K12: what two readers could read differently is not read."""
    file.write_bytes(content)
    with pytest.raises(ConfigurationError, match=message) as caught:
        load(file)
    assert str(caught.value).isprintable()


def test_a_huge_file_is_refused(file: Path) -> None:
    """K12: one byte above the bound is read, and no more."""
    start = b'{"servers": {}}'
    file.write_bytes(start + b" " * (MAX_FILE_BYTES - len(start)))
    assert load(file).entries == ()
    file.write_bytes(start + b" " * (MAX_FILE_BYTES + 1 - len(start)))
    with pytest.raises(ConfigurationError, match="larger than 1048576 bytes"):
        load(file)


def test_what_is_no_plain_file_is_refused(tmp_path: Path) -> None:
    """K11: a pipe without a writer must not be waited for."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    looping = tmp_path / "looping"
    looping.symlink_to(looping)
    for path, message in (
        (pipe, "is not a plain file"),
        (tmp_path, "is not a plain file"),
        (Path(os.devnull), "is not a plain file"),
        (tmp_path / "none", "cannot be read: No such file"),
        (tmp_path / "none\x1b[2J", r"none\\x1b\[2J"),
        (looping, "cannot be read"),
        (Path(f"{tmp_path}/a\0b"), "no path that can be written down"),
        (Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff")), "cannot be read"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            load(path)


def test_a_path_that_is_no_text_is_refused(tmp_path: Path) -> None:
    """ours: what is allowed is written down, and has to be found again."""
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    try:
        path.write_text("{}", "utf-8")
    except OSError:
        pytest.skip("this file system takes no such name")
    with pytest.raises(ConfigurationError, match="no path that can be written down"):
        load(path)


def test_a_link_that_was_exchanged_meanwhile_is_not_followed(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ours: between finding the place and opening it, the place may become a link elsewhere."""
    servers(file, {"a": {"command": "x"}})
    elsewhere = tmp_path / "elsewhere.json"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    monkeypatch.setattr(os.path, "realpath", lambda path, strict=False: str(path))
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load(file)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.floats(allow_nan=False)
    | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYS = st.sampled_from(
    [
        "command",
        "args",
        "env",
        "cwd",
        "url",
        "headers",
        "type",
        "disabled",
        "enabled",
        "envFile",
        "x",
    ]
)


@given(st.dictionaries(st.text(max_size=6), st.dictionaries(KEYS, JSON, max_size=5), max_size=4))
def test_no_entry_does_more_than_be_left_out(value: dict[str, dict[str, object]]) -> None:
    """K09: each entry is either declared or has a reason on one visible line."""
    entries, problems = _declarations({"servers": value})
    assert len(entries) + len(problems) == len(value)
    for problem in problems:
        assert f"{problem.name}{problem.text}".isprintable()
