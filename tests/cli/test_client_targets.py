"""From a command line to a spec: which server it is, and whether its file is trusted."""

import asyncio
import io
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import click
import pytest

from raxol_mcp.cli.client_options import Target
from raxol_mcp.cli.client_targets import Targets
from raxol_mcp.cli.screen import Screen
from raxol_mcp.cli.terminal import Terminal
from raxol_mcp.client.config import load
from raxol_mcp.client.entries import Entry
from raxol_mcp.client.spec import ClientSpec
from raxol_mcp.client.trust import TrustStore
from raxol_mcp.errors import ConfigurationError
from tests.cli.pseudo_terminal import TIMEOUT, PseudoTerminal, pseudo_terminal

T = TypeVar("T")

ONE = {"mcpServers": {"files": {"command": "files-server", "args": ["${FOLDER}"]}}}
TWO = {"mcpServers": {**ONE["mcpServers"], "far": {"url": "https://far.example/mcp"}}}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TrustStore:
    """Give a user of his own, who stands in an empty folder."""
    here, own = tmp_path / "here", tmp_path / "own"
    here.mkdir()
    own.mkdir(mode=0o700)
    monkeypatch.chdir(here)
    monkeypatch.setenv("NO_COLOR", "1")
    return TrustStore(own)


def write(path: str | Path, content: object) -> None:
    """Write a file of servers."""
    path = Path(path)
    path.write_text(json.dumps(content), "utf-8")
    path.chmod(0o600)


def targets(store: TrustStore, terminal: Terminal | None = None, **environ: str) -> Targets:
    screen = Screen(io.StringIO(), is_terminal=False) if terminal is None else terminal.screen
    return Targets(screen, terminal, store=store, environ=environ)


def spec(store: TrustStore, **target: Any) -> ClientSpec:
    """Find a server where nobody can be asked."""
    return asyncio.run(targets(store, FOLDER="/data").spec(Target(**target)))


def asked(
    store: TrustStore,
    target: Target,
    person: Callable[[PseudoTerminal], Awaitable[None]],
) -> ClientSpec:
    """Find a server with a person at the terminal."""

    async def run(pseudo: PseudoTerminal) -> ClientSpec:
        terminal = Terminal(Screen(pseudo.stream, is_terminal=True), pseudo.fd)
        async with asyncio.timeout(TIMEOUT):
            found = asyncio.ensure_future(targets(store, terminal, FOLDER="/data").spec(target))
            await person(pseudo)
            return await found

    with pseudo_terminal() as pseudo:
        return asyncio.run(run(pseudo))


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (("/usr/bin/files-server", "--token", "x"), "files-server"),
        (("npx", "-y", "@scope/server-files", "/tmp"), "server-files"),
        (("python3.12", "-u", "/a/server.py"), "server.py"),
        (("python", "-i"), "python"),
        (("a\u202eb",), "a\\u202eb"),
        (("/",), "server"),
        (("x" * 500,), "x" * 60),
    ],
)
def test_a_command_has_a_name_that_its_user_recognises(
    store: TrustStore, argv: tuple[str, ...], name: str
) -> None:
    """MCP 2025-11-25 client/elicitation: show which server asks."""
    found = spec(store, argv=argv)
    assert (found.name, found.command, found.args) == (name, argv[0], argv[1:])
    assert (found.era, found.fail_fast) == (None, True)
    assert spec(store, argv=argv, era="handshake").era == "handshake"


@pytest.mark.parametrize(
    ("url", "private"),
    [
        ("http://localhost:8000/mcp", True),
        ("http://LOCALHOST", True),
        ("http://127.0.0.1:1/mcp", True),
        ("https://127.1.2.3/mcp", True),
        ("http://[::1]:8000/mcp", True),
        ("http://localhost.evil.example/mcp", False),
        ("http://localhost@evil.example/mcp", False),
        ("http://127.0.0.1.evil.example/mcp", False),
        ("http://10.0.0.1/mcp", False),
        ("https://far.example/mcp#http://localhost/", False),
        ("http://0.0.0.0/", False),
    ],
)
def test_who_types_an_address_of_this_machine_means_it(
    store: TrustStore, url: str, private: bool
) -> None:
    """ours: docs/cli.md. Any other private address needs --allow-private."""
    assert spec(store, url=url).allow_private is private


def test_an_address_is_named_by_its_host_and_has_its_headers(store: TrustStore) -> None:
    found = spec(
        store,
        url="https://far.example:8443/mcp?key=secret",
        headers=("X-A: b",),
        header_variables=("Authorization=FOLDER",),
        allow_private=True,
        era="stateless",
    )
    assert found.name == "far.example"
    assert dict(found.headers) == {"X-A": "b", "Authorization": "/data"}
    assert (found.allow_private, found.era) == (True, "stateless")


def test_a_url_that_is_none_is_for_the_client_to_judge(store: TrustStore) -> None:
    assert spec(store, url="https://[::1").name == "server"


# -- files ------------------------------------------------------------------------------------


def test_without_a_file_there_is_nothing_to_choose_from(store: TrustStore) -> None:
    with pytest.raises(click.UsageError, match=r"name a server with --command, --url or --config"):
        spec(store)


def test_a_file_that_is_not_trusted_starts_nothing_and_the_way_out_is_told(
    store: TrustStore,
) -> None:
    """BC-151."""
    write(".mcp.json", ONE)
    with pytest.raises(ConfigurationError, match=r"never been allowed.*raxol-mcp trust '/"):
        spec(store)
    write("other.json", ONE)
    with pytest.raises(ConfigurationError, match=r"raxol-mcp trust '/.*/other\.json'"):
        spec(store, config="other.json")


def test_a_file_that_was_allowed_is_used_until_it_changes(store: TrustStore) -> None:
    write(".mcp.json", ONE)
    store.allow(load(".mcp.json"))
    assert spec(store).args == ("/data",)
    assert spec(store, server="files").name == "files"
    write(".mcp.json", TWO)
    with pytest.raises(ConfigurationError, match="has changed since"):
        spec(store, server="files")


def test_a_server_is_looked_for_here_and_then_in_the_users_own_file(store: TrustStore) -> None:
    assert store.own_path is not None
    write(store.own_path, {"mcpServers": {"mine": {"command": "mine"}, "files": {"command": "m"}}})
    assert spec(store, server="files").command == "m"
    write(".mcp.json", ONE)
    store.allow(load(".mcp.json"))
    assert spec(store, server="files").command == "files-server"
    assert spec(store, server="mine").command == "mine"
    assert spec(store).name == "files", "here there is one"


@pytest.mark.parametrize(
    ("content", "target", "error", "told"),
    [
        (TWO, {}, click.UsageError, "name a server with --server; .* has: files, far"),
        ({"mcpServers": {}}, {}, click.UsageError, "has: none"),
        (TWO, {"server": "nope"}, ConfigurationError, "has no server 'nope'; it has: files, far"),
    ],
)
def test_a_server_that_is_not_there_is_told(
    store: TrustStore,
    content: object,
    target: dict[str, str],
    error: type[Exception],
    told: str,
) -> None:
    write(".mcp.json", content)
    store.allow(load(".mcp.json"))
    with pytest.raises(error, match=told):
        spec(store, **target)


def test_a_variable_that_is_not_set_is_told_by_name(store: TrustStore) -> None:
    write(".mcp.json", ONE)
    store.allow(load(".mcp.json"))
    with pytest.raises(ConfigurationError, match="FOLDER"):
        asyncio.run(targets(store).spec(Target()))


def test_all_servers_of_a_file_can_be_had(store: TrustStore) -> None:
    def entries(**target: Any) -> list[Entry]:
        return asyncio.run(targets(store, FOLDER="/data").entries(Target(**target)))

    write(".mcp.json", {"mcpServers": {**TWO["mcpServers"], "odd": {}}})
    store.allow(load(".mcp.json"))
    found = entries()
    assert [(entry.name, entry.spec is None) for entry in found] == [
        ("files", False),
        ("far", False),
        ("odd", True),
    ]
    assert [entry.name for entry in entries(server="far")] == ["far"]
    assert [entry.name for entry in entries(argv=("a",))] == ["a"]
    assert [entry.name for entry in entries(url="https://b.example/")] == ["b.example"]


# -- a person who is asked --------------------------------------------------------------------


def test_a_person_sees_what_would_be_started_and_may_allow_it(store: TrustStore) -> None:
    """MCP 2026-07-28 security best practices, Local MCP Server Compromise; SEP-1024; BC-151."""
    write(".mcp.json", ONE)

    async def person(pseudo: PseudoTerminal) -> None:
        await pseudo.sees("? it has never been allowed:\n")
        await pseudo.sees('"files-server" "${FOLDER}"\n')
        await pseudo.sees("reads these variables of yours: FOLDER\n")
        await pseudo.sees("  Allow this file, as it is now? [y/N] ")
        assert not store.state(load(".mcp.json")).allowed
        pseudo.types("y\n")

    assert asked(store, Target(), person).args == ("/data",)
    assert store.state(load(".mcp.json")).allowed
    assert spec(store).name == "files", "it is not asked again"


@pytest.mark.parametrize("typed", ["\n", "n\n", "\x04", "1\n2\n3\n"])
def test_a_file_is_not_allowed_without_a_yes(store: TrustStore, typed: str) -> None:
    write(".mcp.json", ONE)

    async def person(pseudo: PseudoTerminal) -> None:
        await pseudo.sees("[y/N] ")
        pseudo.types(typed)

    with pytest.raises(ConfigurationError, match="was not allowed"):
        asked(store, Target(), person)
    assert not store.state(load(".mcp.json")).allowed


def test_a_file_that_changes_while_a_person_reads_is_not_allowed(store: TrustStore) -> None:
    """What was shown is what is allowed."""
    write(".mcp.json", ONE)

    async def person(pseudo: PseudoTerminal) -> None:
        await pseudo.sees("[y/N] ")
        write(".mcp.json", TWO)
        pseudo.types("y\n")

    assert asked(store, Target(), person).name == "files"
    assert not store.state(load(".mcp.json")).allowed


def test_a_long_argument_cannot_look_like_the_next_server(store: TrustStore) -> None:
    """K21. The terminal is not left to break a line."""
    trick = " " * 200 + "2. harmless"
    write(".mcp.json", {"mcpServers": {"files": {"command": "rm", "args": [trick]}}})

    async def person(pseudo: PseudoTerminal) -> None:
        await pseudo.sees("[y/N] ")
        lines = pseudo.transcript.splitlines()
        (line,) = (line for line in lines if "2. harmless" in line)
        assert line.startswith("        "), "further in than a server begins"
        assert max(map(len, lines)) <= 60
        pseudo.types("n\n")

    with pytest.raises(ConfigurationError):
        asked(store, Target(), person)
