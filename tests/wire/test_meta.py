"""wire/meta.py: falsy is not absent, a bool is not an int, and a look-alike key is not the key."""

import pytest

from raxol_mcp.wire.jsonrpc import JSONObject
from raxol_mcp.wire.meta import (
    HANDSHAKE_VERSIONS,
    LATEST_HANDSHAKE,
    LOG_LEVELS,
    STATELESS_VERSION,
    STATELESS_VERSIONS,
    log_severity,
    meta_of,
)


def test_the_revisions_are_the_published_ones_oldest_first() -> None:
    """MCP basic/lifecycle §Version Negotiation; MCP 2026-07-28 basic/versioning."""
    assert HANDSHAKE_VERSIONS == ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
    assert HANDSHAKE_VERSIONS[-1] == LATEST_HANDSHAKE
    assert STATELESS_VERSIONS == (STATELESS_VERSION,) == ("2026-07-28",)


@pytest.mark.parametrize(
    ("params", "meta"),
    [
        (None, None),
        ({}, None),
        ({"_meta": None}, None),
        ({"_meta": False}, None),
        ({"_meta": []}, None),
        ({"_meta": {}}, {}),
        ({"_meta": {"a": 1}}, {"a": 1}),
    ],
)
def test_meta_is_an_object_or_nothing(params: JSONObject | None, meta: JSONObject | None) -> None:
    """MCP basic §_meta."""
    assert meta_of(params) == meta


def test_levels_grow_more_severe() -> None:
    """RFC 5424 §6.2.1; MCP server/utilities/logging §Log Levels."""
    expected = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
    assert list(LOG_LEVELS) == expected
    assert [log_severity(level) for level in expected] == list(range(8))


@pytest.mark.parametrize("level", ["", "DEBUG", "warn", "fatal", None, 0, True, ["debug"], {}])
def test_anything_else_is_no_level(level: object) -> None:
    """MCP server/utilities/logging §Error Handling."""
    assert log_severity(level) is None
