"""What a server logs, as notes on stderr."""

import asyncio
import io
from typing import cast

import pytest

from raxol_mcp.cli.client_options import Manner
from raxol_mcp.cli.screen import Screen
from raxol_mcp.cli.server_log import ServerLog
from raxol_mcp.client.app import Client
from raxol_mcp.client.results import LogMessage
from raxol_mcp.client.spec import ClientSpec
from raxol_mcp.errors import Busy
from raxol_mcp.wire.meta import LOG_LEVELS
from tests.cli.fake_client import FakeServer


def logged(*messages: LogMessage, width: int = 60, **manner: bool) -> list[str]:
    """Return the lines that messages are shown in."""
    stream = io.StringIO()
    log = ServerLog(Screen(stream, is_terminal=False, width=width), "files", Manner(**manner))  # type: ignore[arg-type]  # only bools are given
    for message in messages:
        log(message)
    return stream.getvalue().splitlines()


@pytest.mark.parametrize(
    ("manner", "shown"),
    [
        ({}, LOG_LEVELS[3:]),
        ({"verbose": True}, LOG_LEVELS),
        ({"quiet": True}, ()),
    ],
)
def test_only_what_matters_is_shown(manner: dict[str, bool], shown: tuple[str, ...]) -> None:
    """MCP server/utilities/logging §Log Levels; ours: docs/cli.md."""
    messages = [LogMessage(level, None, "hi") for level in LOG_LEVELS]
    assert logged(*messages, **manner) == [f"files {level}: hi" for level in shown]


def test_a_level_that_is_none_is_shown() -> None:
    assert logged(LogMessage("odd\n", None, 1)) == ["files odd\\n: 1"]


def test_what_a_server_logs_steers_nothing_and_stays_behind_its_name() -> None:
    """K21. A log message must not look like a line of ours."""
    message = LogMessage("error", "db\x1b[2J", "x\n? files asks: [y/N]\u202e")
    assert logged(message) == ["files error: db\\x1b[2J: x\\n? files asks: [y/N]\\u202e"]
    assert logged(LogMessage("error", None, "a" * 50), width=40) == [
        "files error: ",
        *(f"    {part}" for part in ("a" * 36, "a" * 14)),
    ]


def test_what_is_no_text_is_json_and_long_ones_are_cut() -> None:
    assert logged(LogMessage("error", None, {"a": ["é"]})) == ['files error: {"a": ["é"]}']
    assert sum(map(len, logged(LogMessage("error", None, "a" * 100_000)))) < 3000


@pytest.mark.parametrize(
    ("era", "manner", "asked"),
    [
        ("handshake", Manner(), []),
        ("handshake", Manner(quiet=True), []),
        ("handshake", Manner(verbose=True), [("set_log_level", "debug")]),
        ("stateless", Manner(), [("set_log_level", "warning")]),
        ("stateless", Manner(quiet=True), [("set_log_level", "emergency")]),
        ("stateless", Manner(verbose=True), [("set_log_level", "debug")]),
    ],
)
def test_a_server_is_asked_for_what_will_be_shown(
    era: str, manner: Manner, asked: list[tuple[str, str]]
) -> None:
    """MCP 2026-07-28 basic §_meta: without a level nothing is logged at all."""
    server = FakeServer(era=era, capabilities={"logging": {}})
    client = server.client(ClientSpec("files", command="x"))
    log = ServerLog(Screen(io.StringIO(), is_terminal=False), "files", manner)
    asyncio.run(log.choose(cast("Client", client), client.status()))
    assert server.did == asked


@pytest.mark.parametrize("capabilities", [{}, {"logging": {}}])
def test_a_server_that_logs_nothing_or_refuses_is_no_failure(
    capabilities: dict[str, object],
) -> None:
    server = FakeServer(capabilities=capabilities, refuses={"set_log_level": Busy("later")})
    client = server.client(ClientSpec("files", command="x"))
    log = ServerLog(Screen(io.StringIO(), is_terminal=False), "files", Manner(verbose=True))
    asyncio.run(log.choose(cast("Client", client), client.status()))
    assert len(server.did) == len(capabilities)


def test_what_it_writes_to_stderr_is_shown_when_all_is_wanted() -> None:
    for verbose in (False, True):
        stream = io.StringIO()
        log = ServerLog(Screen(stream, is_terminal=False), "files", Manner(verbose=verbose))
        log.show_stderr("one\ntwo\x1b[2J\n")
        lines = ["files stderr: one", "files stderr: two\\x1b[2J"]
        assert stream.getvalue().splitlines() == (lines if verbose else [])
