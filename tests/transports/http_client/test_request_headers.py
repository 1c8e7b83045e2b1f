"""The headers of a request."""

from __future__ import annotations

import pytest

from raxol_mcp.transports.http_client.request_headers import (
    header_problem,
    message_headers,
    own_headers,
    usable_headers,
)
from raxol_mcp.transports.http_client.session import Session
from raxol_mcp.wire.headers import Mirror
from raxol_mcp.wire.jsonrpc import Failure, Notification, Outgoing, Request, Response
from raxol_mcp.wire.meta import META_VERSION, EraName

MODERN: dict[str, object] = {"_meta": {META_VERSION: "2026-07-28"}}
JSON = {"Content-Type": "application/json"}
IN_SESSION = {"MCP-Protocol-Version": "2025-11-25", "Mcp-Session-Id": "S1"}


def session(era: EraName | None) -> Session:
    made = Session()
    made.issue(["S1"])
    if era is not None:
        made.agreed(era, "2025-11-25" if era is EraName.HANDSHAKE else "2026-07-28")
    return made


@pytest.mark.parametrize(
    ("message", "era", "headers"),
    [
        (Request(1, "initialize", {}), None, {}),
        (Request(1, "initialize", {}), EraName.HANDSHAKE, {}),
        (Request(1, "tools/list", {}), EraName.HANDSHAKE, IN_SESSION),
        (Notification("notifications/initialized"), EraName.HANDSHAKE, IN_SESSION),
        (Response(1, {}), EraName.HANDSHAKE, IN_SESSION),
        (Failure(1, -32601, "no"), EraName.HANDSHAKE, IN_SESSION),
        (
            Request(1, "server/discover", MODERN),
            None,
            {"mcp-protocol-version": "2026-07-28", "mcp-method": "server/discover"},
        ),
        (
            Request(1, "tools/call", {**MODERN, "name": " odd "}),
            EraName.HANDSHAKE,
            {
                "mcp-protocol-version": "2026-07-28",
                "mcp-method": "tools/call",
                "mcp-name": "=?base64?IG9kZCA=?=",
            },
        ),
        (
            Notification("notifications/cancelled", {"requestId": 1}),
            EraName.STATELESS,
            {"mcp-protocol-version": "2026-07-28", "mcp-method": "notifications/cancelled"},
        ),
    ],
)
def test_a_message_has_the_headers_of_its_era(
    message: Outgoing, era: EraName | None, headers: dict[str, str]
) -> None:
    """Check 54; MCP 2026-07-28 streamable-http §Request Metadata; BC-107: none on initialize"""
    assert message_headers(message, session(era)) == JSON | headers


def test_arguments_are_mirrored_as_the_tool_says() -> None:
    """MCP 2026-07-28 server/tools §x-mcp-header"""
    mirror = Mirror(("region",), "Mcp-Param-Region", b"mcp-param-region")
    message = Request(1, "tools/call", {**MODERN, "name": "t", "arguments": {"region": "eu"}})
    assert message_headers(message, session(None), [mirror])["mcp-param-region"] == "eu"


def test_the_options_cannot_replace_what_the_transport_owns() -> None:
    """Check 55: the ten names, the mirrored arguments, and how the bytes are framed"""
    owned = [
        *("Accept", "Accept-Encoding", "Content-Type", "Content-Length", "Host", "User-Agent"),
        *("Mcp-Method", "Mcp-Name", "MCP-Protocol-Version", "MCP-SESSION-ID", "Mcp-Param-X"),
        *("Last-Event-ID", "Transfer-Encoding", "Connection", "Expect", "Upgrade", "TE"),
    ]
    given = {**dict.fromkeys(owned, "x"), "Authorization": "Bearer t", "X-Own": "1", "x-own": "2"}
    assert usable_headers(given) == {"authorization": "Bearer t", "x-own": "2"}


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Secret": "SECRET\r\nX: y"},
        {"X-Secret": "SECRET\n"},
        {"X-Secret": " SECRET"},
        {"X-Secret": "SECRET\x00"},
        {"X-Secret": "SECRET\u00e9"},
        {"Authorization: SECRET": "x"},
        {"": "x"},
        {"X Y": "x"},
        {"X" * 129: "x"},
        {"X\u00e9": "x"},
    ],
)
def test_what_is_no_header_is_found_without_telling_its_value(headers: dict[str, str]) -> None:
    """RFC 9110 §5.5; no secret in an error"""
    problem = header_problem(headers)
    assert problem is not None
    assert "SECRET" not in problem
    assert problem.isprintable()


def test_usual_headers_are_fine() -> None:
    """RFC 9110 §5.5"""
    assert header_problem({"Authorization": "Bearer a b=", "X-Empty": "", "x": "a\tb"}) is None


def test_every_request_says_who_asks_and_what_may_come() -> None:
    """Ours: no compression"""
    assert own_headers("me/1", accept="text/event-stream") == {
        "Accept": "text/event-stream",
        "Accept-Encoding": "identity",
        "User-Agent": "me/1",
    }
