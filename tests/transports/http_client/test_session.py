"""What later requests of a session carry."""

from __future__ import annotations

import pytest

from raxol_mcp.errors import Reason
from raxol_mcp.transports.http_client.reasons import Broken
from raxol_mcp.transports.http_client.session import Session
from raxol_mcp.wire.meta import EraName


def session(version: str, era: EraName = EraName.HANDSHAKE) -> Session:
    made = Session()
    made.issue(["S1"])
    made.agreed(era, version)
    return made


@pytest.mark.parametrize(
    ("version", "headers", "streamable", "batches"),
    [
        ("2024-11-05", {"Mcp-Session-Id": "S1"}, False, False),
        ("2025-03-26", {"Mcp-Session-Id": "S1"}, True, True),
        ("2025-06-18", {"Mcp-Session-Id": "S1", "MCP-Protocol-Version": "2025-06-18"}, True, False),
        ("2025-11-25", {"Mcp-Session-Id": "S1", "MCP-Protocol-Version": "2025-11-25"}, True, False),
    ],
)
def test_a_revision_says_what_a_session_has(
    version: str, headers: dict[str, str], streamable: bool, batches: bool
) -> None:
    """MCP basic/transports: the version header is of 2025-06-18, arrays are of 2025-03-26"""
    made = session(version)
    assert made.headers() == headers
    assert (made.streamable, made.batches) == (streamable, batches)


def test_the_stateless_era_has_no_session() -> None:
    """BC-107: no session header is ever sent"""
    made = session("2026-07-28", EraName.STATELESS)
    assert made.headers() == {}
    assert not made.streamable
    assert not made.batches


def test_a_session_that_begins_forgets_the_one_before() -> None:
    """MCP 2025-11-25 basic/transports §Session Management 4"""
    made = session("2025-11-25")
    made.begin()
    assert (made.id, made.headers(), made.streamable) == (None, {}, False)


def test_only_the_session_that_was_refused_is_forgotten() -> None:
    """BC-103: a late 404 for the old session must not end the new one"""
    made = session("2025-11-25")
    made.forget("S0")
    assert made.id == "S1"
    made.forget("S1")
    assert made.id is None


@pytest.mark.parametrize(
    "ids",
    [
        [""],
        ["a b"],
        ["a\tb"],
        ["a\r\nb"],
        ["\u00e9"],
        ["a\x7f"],
        ["\udce9"],
        ["a" * 4097],
        ["a", "b"],
    ],
)
def test_an_id_that_is_none_is_refused(ids: list[str]) -> None:
    """MCP 2025-11-25 basic/transports §Session Management 1: visible ASCII"""
    made = Session()
    with pytest.raises(Broken) as caught:
        made.issue(ids)
    assert caught.value.reason == Reason("invalid_response", "session id")
    assert made.id is None


def test_a_server_need_not_have_sessions_and_may_repeat_itself() -> None:
    """MCP 2025-11-25 basic/transports §Session Management 1"""
    made = Session()
    made.issue([])
    assert made.id is None
    made.issue(["!~", "!~"])
    assert made.id == "!~"
