"""wire/meta.py: falsy is not absent, a bool is not an int, and a look-alike key is not the key."""

import pytest

from raxol_mcp.wire.jsonrpc import JSONObject
from raxol_mcp.wire.meta import (
    HANDSHAKE_VERSIONS,
    LATEST_HANDSHAKE,
    LOG_LEVELS,
    META_VERSION,
    STATELESS_VERSION,
    STATELESS_VERSIONS,
    EraName,
    era_of,
    log_severity,
    meta_of,
    progress_token,
)


def test_the_revisions_are_the_published_ones_oldest_first() -> None:
    """MCP basic/lifecycle §Version Negotiation; MCP 2026-07-28 basic/versioning."""
    assert HANDSHAKE_VERSIONS == ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
    assert HANDSHAKE_VERSIONS[-1] == LATEST_HANDSHAKE
    assert STATELESS_VERSIONS == (STATELESS_VERSION,) == ("2026-07-28",)


@pytest.mark.parametrize("version", ["2026-07-28", "1900-01-01", "", None, 0, {}])
def test_a_request_that_carries_a_version_is_stateless_whatever_the_version(
    version: object,
) -> None:
    """MCP 2026-07-28 basic/versioning: the era answers for a bad value."""
    assert era_of({"_meta": {META_VERSION: version}}) is EraName.STATELESS


@pytest.mark.parametrize(
    "params",
    [
        None,
        {},
        {"_meta": None},
        {"_meta": {}},
        {"_meta": [META_VERSION]},
        {"_meta": META_VERSION},
        {"_meta": {"progressToken": 1}},
        {"_meta": {META_VERSION.upper(): STATELESS_VERSION}},
        {META_VERSION: STATELESS_VERSION},
        {"protocolVersion": STATELESS_VERSION},
    ],
)
def test_any_other_request_belongs_to_the_handshake_era(params: JSONObject | None) -> None:
    """MCP 2026-07-28 basic/versioning §Backward compatibility."""
    assert era_of(params) is EraName.HANDSHAKE


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


@pytest.mark.parametrize("token", [0, -1, 1, 2**53 + 1, "", "0", "a"])
def test_falsy_tokens_are_tokens_and_keep_their_type(token: object) -> None:
    """https://github.com/modelcontextprotocol/python-sdk/issues/176."""
    found = progress_token({"_meta": {"progressToken": token}})
    assert (type(found), found) == (type(token), token)


@pytest.mark.parametrize("token", [None, True, False, 1.5, 1.0, [], {}])
def test_other_types_are_no_tokens(token: object) -> None:
    """MCP basic/utilities/progress: a string or an integer."""
    assert progress_token({"_meta": {"progressToken": token}}) is None


@pytest.mark.parametrize("params", [None, {}, {"_meta": {}}, {"_meta": 1}, {"progressToken": 1}])
def test_no_token_is_invented(params: JSONObject | None) -> None:
    """MCP basic/utilities/progress: only tokens that came in an active request."""
    assert progress_token(params) is None


def test_levels_grow_more_severe() -> None:
    """RFC 5424 §6.2.1; MCP server/utilities/logging §Log Levels."""
    expected = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
    assert list(LOG_LEVELS) == expected
    assert [log_severity(level) for level in expected] == list(range(8))


@pytest.mark.parametrize("level", ["", "DEBUG", "warn", "fatal", None, 0, True, ["debug"], {}])
def test_anything_else_is_no_level(level: object) -> None:
    """MCP server/utilities/logging §Error Handling."""
    assert log_severity(level) is None
