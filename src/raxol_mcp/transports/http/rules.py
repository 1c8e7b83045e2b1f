"""How an HTTP request is read as MCP: which era, what is refused unseen, which status an answer has.

Decides from headers and message alone; runs nothing and remembers nothing. The order of the checks
of the stateless era is the specification's (MCP 2026-07-28 basic/transports/streamable-http §Server
Validation): `_meta` keys, version header, version, `Mcp-Method` and `Mcp-Name`, then the method,
its params and `Mcp-Param-*`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from raxol_mcp.errors import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
)
from raxol_mcp.wire.headers import params_problem, standard_problem, version_problem
from raxol_mcp.wire.jsonrpc import Failure, Request
from raxol_mcp.wire.meta import (
    HANDSHAKE_VERSIONS,
    META_CLIENT_CAPABILITIES,
    META_VERSION,
    STATELESS_VERSIONS,
    meta_of,
)

if TYPE_CHECKING:
    from raxol_mcp.wire.headers import Headers, Mirror
    from raxol_mcp.wire.jsonrpc import Incoming, Outgoing

__all__ = [
    "MirrorsOf",
    "handshake_status",
    "is_stateless",
    "names_stateless",
    "stateless_refusal",
    "stateless_status",
]

MirrorsOf = Callable[[str], Sequence["Mirror"]]

_HANDSHAKE: Final = frozenset(version.encode() for version in HANDSHAKE_VERSIONS)
_SUPPORTED: Final = list(STATELESS_VERSIONS)

# Everything else is an answer like a result is, and has 200: a client that falls back to an older
# protocol at a 400 must not do so because it named a resource that does not exist.
_STATELESS_STATUS: Final = {
    METHOD_NOT_FOUND: 404,
    HEADER_MISMATCH: 400,
    INVALID_REQUEST: 400,
    MISSING_CAPABILITY: 400,
    PARSE_ERROR: 400,
    UNSUPPORTED_VERSION: 400,
}


def names_stateless(version: bytes | None) -> bool:
    """Say whether a version header belongs to the stateless era; an unknown version does.

    No version belongs to the handshake, whose oldest revisions have no such header.
    """
    return version is not None and version.strip(b" \t") not in _HANDSHAKE


def is_stateless(version: bytes | None, message: Incoming) -> bool:
    """Say which era a message is to be read in: its header or its body is enough for the new one.

    So that the two can disagree and be refused; the name of the method says nothing.
    """
    if names_stateless(version):
        return True
    if isinstance(message, Request):
        meta = meta_of(message.params)
        return meta is not None and META_VERSION in meta
    return False


def stateless_refusal(
    headers: Headers, request: Request, mirrors_of: MirrorsOf
) -> tuple[int, Failure] | None:
    """Say what is wrong with a stateless request: the HTTP status and the answer; or None.

    `mirrors_of(name)` gives what the input schema of a tool has annotated with `x-mcp-header`.
    """
    failure = _meta_failure(request) or version_problem(headers, request)
    if failure is None:
        failure = _version_failure(request) or standard_problem(headers, request)
    if failure is None and request.method == "tools/call":
        name = (request.params or {}).get("name")
        mirrors = mirrors_of(name) if isinstance(name, str) else ()
        if mirrors:
            failure = params_problem(headers, request, mirrors)
    return None if failure is None else (400, failure)


def _meta_failure(request: Request) -> Failure | None:
    meta = meta_of(request.params) or {}
    problem = None
    if not isinstance(meta.get(META_VERSION), str):
        problem = META_VERSION
    elif not isinstance(meta.get(META_CLIENT_CAPABILITIES), dict):
        problem = META_CLIENT_CAPABILITIES
    if problem is None:
        return None
    kind = "a string" if problem == META_VERSION else "an object"
    return Failure(request.id, INVALID_PARAMS, f"params._meta[{problem!r}] must be {kind}")


def _version_failure(request: Request) -> Failure | None:
    meta = meta_of(request.params)
    assert meta is not None, "its keys were checked"
    version = meta[META_VERSION]
    if version in STATELESS_VERSIONS:
        return None
    data = {"supported": _SUPPORTED, "requested": version}
    return Failure(request.id, UNSUPPORTED_VERSION, "Unsupported protocol version", data)


def stateless_status(answer: Outgoing) -> int:
    """Return the HTTP status of an answer that the server gave to a stateless request."""
    return _STATELESS_STATUS.get(answer.code, 200) if isinstance(answer, Failure) else 200


def handshake_status(answer: Outgoing) -> int:
    """Return the HTTP status of an answer within a session.

    A failure without an id is about the message itself (a second request with an id that is in
    flight, a batch where there are none): a client that waits for its id has to learn it here.
    """
    return 400 if isinstance(answer, Failure) and answer.id is None else 200
