"""How a session begins: what to make of a server's answer to the probe and to `initialize`.

Tables as functions; nothing is sent here. MCP 2026-07-28 basic/versioning §Backward compatibility:
a client that speaks both eras asks `server/discover` first and tells by the answer. What only
says that the server is unwell (no connection, 401, 403, 408, 429, 5xx, a redirect) decides
nothing about its era, or one bad minute would make a server look old for as long as the verdict
is remembered. No single code is a proof of the old era: servers answered -32601, -32602, -32600
and nothing at all.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from raxol_mcp.errors import (
    HEADER_MISMATCH,
    MISSING_CAPABILITY,
    UNSUPPORTED_VERSION,
    Reason,
)
from raxol_mcp.wire.jsonrpc import Failure, JSONObject, Response
from raxol_mcp.wire.meta import (
    HANDSHAKE_VERSIONS,
    META_SERVER_INFO,
    STATELESS_VERSION,
    EraName,
    meta_of,
)
from raxol_mcp.wire.values import Value

__all__ = [
    "MODERN_CODES",
    "ServerFacts",
    "Unwell",
    "Verdicted",
    "after_initialize",
    "after_probe",
    "error_reason",
    "may_have_two_endpoints",
    "says_unauthorized",
    "stateless_facts",
]

MODERN_CODES: Final = frozenset({HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION})
# Statuses of servers that are asked something they never heard of; 501 is the one 5xx of them.
_UNHEARD: Final = 501
_UNAUTHORIZED: Final = 401
_UNWELL: Final = frozenset({_UNAUTHORIZED, 403, 407, 408, 425, 429})
_ENDPOINT_ELSEWHERE: Final = frozenset({400, 404, 405})
_MAX_INSTRUCTIONS: Final = 64 * 1024  # characters; they go into every prompt


class ServerFacts(Value, frozen=True):
    """What a server said of itself. Nothing here may be trusted with a decision."""

    era: EraName
    version: str
    server: JSONObject | None
    capabilities: JSONObject
    instructions: str | None


class Verdicted(Enum):
    """What a probe found out, short of a usable session."""

    HANDSHAKE = "handshake"  # initialize
    AGAIN = "again"  # it speaks our version, and refused this very request


class Unwell(Value, frozen=True):
    """The era is not known; connecting failed for `reason`."""

    reason: Reason


def after_probe(
    answer: Response | Failure | Reason, *, again: bool
) -> ServerFacts | Verdicted | Unwell:
    """Judge the answer to `server/discover`; `again` says that it was the second."""
    if isinstance(answer, Response):
        return _discovered(answer.result)
    if isinstance(answer, Failure):
        return _refused(answer.code, answer.data, error_reason(answer), again=again)
    error = answer.error
    if error is not None and error.get("code") in MODERN_CODES:
        code = error["code"]
        assert isinstance(code, int)
        return _refused(code, error.get("data"), answer, again=again)
    status = answer.detail if answer.tag == "http" else None
    if answer.tag == "invalid_response":
        return Verdicted.HANDSHAKE
    if not isinstance(status, int) or status in _UNWELL or not 400 <= status < 500:
        return Verdicted.HANDSHAKE if status == _UNHEARD else Unwell(answer)
    return Verdicted.HANDSHAKE


def _discovered(result: object) -> ServerFacts | Verdicted | Unwell:
    versions = result.get("supportedVersions") if isinstance(result, dict) else None
    if not isinstance(result, dict) or not isinstance(versions, list):
        return Verdicted.HANDSHAKE
    return _by_versions(versions) or stateless_facts(result)


def _by_versions(versions: list[object]) -> Verdicted | Unwell | None:
    """Choose by what the server says it speaks; None for the stateless era."""
    if STATELESS_VERSION in versions:
        return None
    if any(version in HANDSHAKE_VERSIONS for version in versions):
        return Verdicted.HANDSHAKE
    return Unwell(Reason("unsupported_version", _listed(versions)))


def _refused(
    code: int, data: object, reason: Reason, *, again: bool
) -> ServerFacts | Verdicted | Unwell:
    if code == MISSING_CAPABILITY:
        return stateless_facts(None)  # discovery is for others
    if code == HEADER_MISMATCH:
        return Unwell(reason)
    if code != UNSUPPORTED_VERSION:
        return Verdicted.HANDSHAKE
    supported = data.get("supported") if isinstance(data, dict) else None
    found = _by_versions(supported) if isinstance(supported, list) else None
    if found is not None:
        return found
    return Unwell(reason) if again else Verdicted.AGAIN


def stateless_facts(discovered: JSONObject | None) -> ServerFacts:
    """Read a DiscoverResult; None when there is none."""
    result = discovered or {}
    meta = meta_of({"_meta": result.get("_meta")}) or {}
    # A draft of the revision had serverInfo in the body.
    server = meta.get(META_SERVER_INFO, result.get("serverInfo"))
    return _facts(EraName.STATELESS, STATELESS_VERSION, server, result)


def after_initialize(answer: Response | Failure | Reason) -> ServerFacts | Reason:
    """Judge the answer to `initialize`: what the server is, or why there is no session.

    MCP basic/lifecycle §Version Negotiation: a client that cannot speak the version offered
    should disconnect.
    """
    if isinstance(answer, Reason):
        return answer
    if isinstance(answer, Failure):
        return error_reason(answer)
    result = answer.result
    if not isinstance(result, dict):
        return Reason("invalid_response", "initialize")
    version = result.get("protocolVersion")
    if version not in HANDSHAKE_VERSIONS:
        return Reason("unsupported_version", _listed([version]))
    return _facts(EraName.HANDSHAKE, str(version), result.get("serverInfo"), result)


def may_have_two_endpoints(reason: Reason) -> bool:
    """Say whether a server that refused `initialize` so may be one of HTTP+SSE.

    MCP 2025-11-25 basic/transports §Backwards Compatibility.
    """
    known = reason.error is not None and reason.error.get("code") in MODERN_CODES
    return reason.tag == "http" and reason.detail in _ENDPOINT_ELSEWHERE and not known


def says_unauthorized(reason: Reason) -> bool:
    """Say whether the server refused the credential: the same one would be refused again."""
    if reason.cause is not None:
        return says_unauthorized(reason.cause)
    return reason.tag == "http" and reason.detail == _UNAUTHORIZED


def error_reason(failure: Failure) -> Reason:
    """Say what a JSON-RPC error says."""
    error: JSONObject = {"code": failure.code, "message": failure.message}
    if failure.data is not None:
        error["data"] = failure.data
    return Reason("jsonrpc", failure.code, error=error)


def _facts(era: EraName, version: str, server: object, said: JSONObject) -> ServerFacts:
    capabilities = said.get("capabilities")
    instructions = said.get("instructions")
    return ServerFacts(
        era,
        version,
        server if isinstance(server, dict) else None,
        capabilities if isinstance(capabilities, dict) else {},
        instructions[:_MAX_INSTRUCTIONS] if isinstance(instructions, str) else None,
    )


def _listed(versions: list[object]) -> str:
    """Name versions a server offers, as many as fit in a sentence; a peer's text, so escaped."""
    shown = ", ".join(ascii(str(version)[:32])[1:-1] for version in versions[:8])
    return shown or "none"
