"""The tables by which a client finds out what a server is."""

from __future__ import annotations

import pytest

from raxol_mcp.core.greeting import (
    ServerFacts,
    Unwell,
    Verdicted,
    after_initialize,
    after_probe,
    error_reason,
    may_have_two_endpoints,
    says_unauthorized,
    stateless_facts,
)
from raxol_mcp.errors import Reason
from raxol_mcp.wire.jsonrpc import Failure, JSONObject, Response
from raxol_mcp.wire.meta import META_SERVER_INFO, EraName

HANDSHAKE, AGAIN = Verdicted.HANDSHAKE, Verdicted.AGAIN
MODERN: JSONObject = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}


def http(status: int, error: JSONObject | None = None) -> Reason:
    return Reason("http", status, error=error)


def unsupported(*supported: object) -> JSONObject:
    return {"code": -32022, "message": "no", "data": {"supported": list(supported)}}


def test_a_discover_result_with_our_version_is_of_the_stateless_era() -> None:
    """MCP 2026-07-28 server/discover."""
    meta = {META_SERVER_INFO: {"name": "s"}}
    found = after_probe(
        Response(1, {**MODERN, "instructions": "read me", "_meta": meta}), again=False
    )
    assert found == ServerFacts(
        EraName.STATELESS, "2026-07-28", {"name": "s"}, {"tools": {}}, "read me"
    )


def test_the_server_may_name_itself_in_the_body_as_a_draft_had_it() -> None:
    """Servers of a draft of the revision are in use."""
    found = stateless_facts({**MODERN, "serverInfo": {"name": "s"}})
    assert found.server == {"name": "s"}


def test_what_a_server_says_of_itself_may_be_anything() -> None:
    """A peer's words are never relied on."""
    found = stateless_facts(
        {"capabilities": 7, "instructions": ["x"], "_meta": {META_SERVER_INFO: "s"}}
    )
    assert found == ServerFacts(EraName.STATELESS, "2026-07-28", None, {}, None)


def test_instructions_are_bounded() -> None:
    """ours: they go into prompts."""
    found = stateless_facts({"instructions": "x" * 100_000})
    assert found.instructions is not None
    assert len(found.instructions) == 64 * 1024


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"supportedVersions": ["2025-11-25", "1999-01-01"]}, HANDSHAKE),
        ({"supportedVersions": "2026-07-28"}, HANDSHAKE),
        ({}, HANDSHAKE),
        ("ok", HANDSHAKE),
        (None, HANDSHAKE),
    ],
)
def test_other_results_of_a_probe_mean_the_handshake(result: object, expected: Verdicted) -> None:
    """MCP 2026-07-28 basic/versioning: servers of the old era answer anything."""
    assert after_probe(Response(1, result), again=False) is expected


def test_a_server_that_speaks_nothing_we_know_is_named_with_what_it_speaks() -> None:
    """MCP 2026-07-28 basic/versioning: else surface an error."""
    versions = ["2031-01-01\n", 7]
    found = after_probe(Response(1, {"supportedVersions": versions}), again=False)
    assert found == Unwell(Reason("unsupported_version", "2031-01-01\\n, 7"))
    assert after_probe(Response(1, {"supportedVersions": []}), again=False) == Unwell(
        Reason("unsupported_version", "none")
    )


@pytest.mark.parametrize("code", [-32601, -32602, -32600, -32000, -32700, 0])
def test_no_code_of_a_refusal_but_the_modern_ones_is_looked_at(code: int) -> None:
    """MCP 2026-07-28 basic/versioning: the fallback must not hinge on one code."""
    assert after_probe(Failure(1, code, "no"), again=False) is HANDSHAKE


@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize(
    ("error", "again", "expected"),
    [
        (unsupported("2026-07-28"), False, AGAIN),
        (unsupported("2025-11-25"), False, HANDSHAKE),
        ({"code": -32022, "message": "no"}, False, AGAIN),
        ({"code": -32022, "message": "no", "data": {"supported": 7}}, False, AGAIN),
        ({"code": -32021, "message": "no"}, False, stateless_facts(None)),
    ],
)
def test_a_recognised_modern_error_keeps_the_client_modern(
    status: int, error: JSONObject, again: bool, expected: object
) -> None:
    """MCP 2026-07-28 basic/versioning, with status 400 over HTTP and without one on a pipe."""
    code = error["code"]
    assert isinstance(code, int)
    answer = Failure(1, code, "no", error.get("data")) if status == 200 else http(400, error)
    assert after_probe(answer, again=again) == expected


def test_a_probe_is_repeated_once() -> None:
    """A server that names our version and refuses it twice would be probed for ever."""
    found = after_probe(http(400, unsupported("2026-07-28")), again=True)
    assert found == Unwell(http(400, unsupported("2026-07-28")))


def test_a_header_mismatch_is_no_fallback() -> None:
    """Something between us and a modern server changes headers."""
    error: JSONObject = {"code": -32020, "message": "no"}
    assert after_probe(http(400, error), again=False) == Unwell(http(400, error))


def test_versions_of_an_error_that_nobody_knows_end_it() -> None:
    """MCP 2026-07-28 basic/versioning."""
    found = after_probe(http(400, unsupported("2031-01-01")), again=False)
    assert found == Unwell(Reason("unsupported_version", "2031-01-01"))


@pytest.mark.parametrize("status", [400, 402, 404, 405, 406, 409, 410, 415, 422, 501])
def test_other_refusals_mean_the_handshake(status: int) -> None:
    """MCP 2026-07-28 basic/transports/streamable-http §Backward compatibility; ADR-0023."""
    assert after_probe(http(status), again=False) is HANDSHAKE
    error: JSONObject = {"code": -32601, "message": "no"}
    assert after_probe(http(status, error), again=False) is HANDSHAKE


@pytest.mark.parametrize(
    "reason",
    [
        *(http(status) for status in (401, 403, 407, 408, 425, 429, 500, 502, 503, 504)),
        Reason("redirect_refused", 302),
        Reason("transport", "reset"),
        Reason("timeout", "connect"),
        Reason("breaker_open"),
    ],
)
def test_ill_health_decides_nothing(reason: Reason) -> None:
    """ts-sdk PR 2564: an outage is no proof of an old server."""
    assert after_probe(reason, again=False) == Unwell(reason)


def test_an_answer_that_is_no_message_means_the_handshake() -> None:
    """A page of HTML under 200: `initialize` will tell."""
    assert after_probe(Reason("invalid_response", "server/discover"), again=False) is HANDSHAKE


def test_initialize_gives_what_was_negotiated() -> None:
    """MCP basic/lifecycle."""
    result = {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "s"},
        "instructions": "read me",
    }
    assert after_initialize(Response(1, result)) == ServerFacts(
        EraName.HANDSHAKE, "2025-06-18", {"name": "s"}, {"tools": {}}, "read me"
    )


@pytest.mark.parametrize("result", ["ok", None, 7, []])
def test_initialize_without_an_object_is_no_session(result: object) -> None:
    """client-behaviour check 18."""
    expected = Reason("invalid_response", "initialize")
    assert after_initialize(Response(1, result)) == expected


@pytest.mark.parametrize("version", ["1999-01-01", "2026-07-28", None, 7])
def test_a_version_that_is_not_spoken_ends_it(version: object) -> None:
    """MCP basic/lifecycle §Version Negotiation: the client should disconnect."""
    found = after_initialize(Response(1, {"protocolVersion": version}))
    assert found == Reason("unsupported_version", str(version))


def test_what_refused_initialize_is_the_reason() -> None:
    """client-behaviour check 19."""
    refused = after_initialize(Failure(1, -32602, "no", {"supported": []}))
    assert isinstance(refused, Reason)
    assert refused.path == ("jsonrpc", -32602)
    assert refused.error == {"code": -32602, "message": "no", "data": {"supported": []}}
    assert after_initialize(http(500)) == http(500)


def test_an_error_without_data_has_none() -> None:
    """JSON-RPC 2.0 §5.1."""
    assert error_reason(Failure(1, -1, "no")).error == {"code": -1, "message": "no"}


def test_only_some_refusals_lead_to_two_endpoints() -> None:
    """MCP 2025-11-25 basic/transports §Backwards Compatibility."""
    found = [status for status in range(300, 600) if may_have_two_endpoints(http(status))]
    assert found == [400, 404, 405]
    assert not may_have_two_endpoints(http(400, unsupported("2026-07-28")))
    assert may_have_two_endpoints(http(400, {"code": -32000, "message": "no"}))
    assert not may_have_two_endpoints(Reason("transport", "reset"))


def test_only_a_401_says_that_the_credential_is_refused() -> None:
    """client-2.8.0 §Recovery; RFC 9110 §15.5.2."""
    found = [status for status in range(100, 600) if says_unauthorized(http(status))]
    assert found == [401]
    assert says_unauthorized(Reason("initialization_failed", cause=http(401)))
    assert not says_unauthorized(Reason("http", 401, cause=http(500)))
    assert not says_unauthorized(Reason("server_exited", 401))
