"""Reasons: what is told of a failure, and what is not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_mcp.errors import Reason
from raxol_mcp.transports.http_client.reasons import (
    MAX_RETRY_AFTER,
    broken,
    challenge,
    error_of,
    refused,
    retry_after,
    shown,
)

NOW = 1_800_000_000.0  # Fri, 15 Jan 2027 08:00:00 GMT


@pytest.mark.parametrize("status", [301, 302, 303, 304, 307, 308])
def test_a_redirect_is_refused(status: int) -> None:
    """Check 58: never followed, and its address is not told"""
    reason = refused(status, {"Location": "https://evil.example/?secret"}, now=NOW)
    assert reason == Reason("redirect_refused", status)
    assert not reason.maybe_done
    assert "evil" not in str(reason)


@pytest.mark.parametrize(
    ("status", "maybe_done"),
    [
        *((status, False) for status in (400, 401, 403, 404, 405, 406, 409, 413, 415, 422, 429)),
        *((status, True) for status in (408, 500, 501, 502, 503, 504, 599)),
    ],
)
def test_a_status_says_whether_the_request_may_have_been_carried_out(
    status: int, maybe_done: bool
) -> None:
    """BC-179: a gateway's word says nothing of what is behind it"""
    reason = refused(status, {}, now=NOW)
    assert (reason.path, reason.maybe_done) == (("http", status), maybe_done)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("0", 0.0),
        (" 7 ", 7.0),
        ("999999999", MAX_RETRY_AFTER),
        ("1" * 5000, None),
        ("-1", None),
        ("1.5", None),
        ("soon", None),
        ("Fri, 15 Jan 2027 08:01:00 GMT", 60.0),
        ("Fri, 15 Jan 2027 07:00:00 GMT", 0.0),
        ("Fri, 15 Jan 2099 08:00:00 GMT", MAX_RETRY_AFTER),
        ("Fri, 99 Jan 2027 08:00:00 GMT", None),
        ("", None),
    ],
)
def test_a_pause_is_read_and_bounded(value: str | None, seconds: float | None) -> None:
    """RFC 9110 §10.2.3"""
    assert retry_after(value, now=NOW) == seconds
    headers = {} if value is None else {"Retry-After": value}
    assert refused(503, headers, now=NOW).retry_after == seconds


def test_a_challenge_is_told_without_what_may_be_secret() -> None:
    """RFC 6750 §3, RFC 9728 §5.1"""
    value = (
        'Bearer realm="x \\"y\\"", error="invalid_token", nonce="SECRET", '
        'scope=files:read, resource_metadata="https://a.example/.well-known/x?SECRET#SECRET"'
    )
    assert challenge(value) == (
        "Bearer realm='x \"y\"', error='invalid_token', scope='files:read', "
        "resource_metadata='https://a.example/.well-known/x'"
    )
    assert challenge('Bearer resource_metadata="https://user:SECRET@a.example/"') == "Bearer"
    assert challenge("Negotiate U0VDUkVU") == "Negotiate"
    assert challenge("") == ""
    assert challenge('"odd"') == ""
    asked = {"WWW-Authenticate": "Basic realm=a"}
    for status in (401, 403):
        assert refused(status, asked, now=NOW).text == "Basic realm='a'"
    assert refused(400, asked, now=NOW).text == ""


@given(st.text(max_size=200).map(lambda text: f'Bearer realm="{text}", error={text}') | st.text())
def test_a_challenge_is_one_short_line_of_ascii(value: str) -> None:
    """errors.Reason: one bounded line, escaped"""
    said = challenge(value * 20)
    assert len(said) <= 512
    assert said.isascii()
    assert said.isprintable()


def test_what_a_peer_wrote_is_quoted_and_cut() -> None:
    """Ours"""
    assert shown("a\n\x1b[31m\u202e") == r"'a\n\x1b[31m\u202e'"
    assert shown("a" * 600) == f"'{'a' * 512}...'"


ERROR = {"code": -32601, "message": "no"}


@pytest.mark.parametrize("id", [{"id": 7}, {"id": None}, {}])
def test_an_error_to_this_request_is_found(id: dict[str, object]) -> None:
    """MCP basic §Responses; BC-105: the id may be null or absent"""
    body = json.dumps({"jsonrpc": "2.0", **id, "error": ERROR}).encode()
    assert error_of(body, 7, max_depth=16) == ERROR


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b"null",
        b'{"code": -32601}',
        b'{"jsonrpc": "2.0", "id": 8, "error": {"code": 1, "message": ""}}',
        b'{"jsonrpc": "2.0", "id": "7", "error": {"code": 1, "message": ""}}',
        b'{"jsonrpc": "2.0", "id": true, "error": {"code": 1, "message": ""}}',
        b'{"jsonrpc": "1.0", "id": 7, "error": {"code": 1, "message": ""}}',
        b'{"jsonrpc": "2.0", "id": 7, "error": "no"}',
        b'{"jsonrpc": "2.0", "id": 7, "error": {"code": true}}',
        b'{"jsonrpc": "2.0", "id": 7, "error": {}}',
        b'{"jsonrpc": "2.0", "id": 7, "method": "x", "error": {"code": 1}}',
        b'{"jsonrpc": "2.0", "id": 7, "error": {"code": 1, "data": %b%b}}' % (b"[" * 17, b"]" * 17),
    ],
)
def test_what_is_no_error_to_this_request_is_none(body: bytes) -> None:
    """JSON-RPC 2.0 §5.1"""
    assert error_of(body, 1 if b"true" in body else 7, max_depth=16) is None


def test_a_transport_failure_is_a_tag() -> None:
    """Ours"""
    error = broken("reset", text="why")
    assert (error.reason.path, error.reason.maybe_done) == (("transport", "reset"), True)
    assert str(error) == "transport reset (why)"
    assert not broken("refused", maybe_done=False).reason.maybe_done
