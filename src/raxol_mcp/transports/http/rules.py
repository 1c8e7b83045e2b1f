"""How an HTTP request is read as MCP: its era, what is refused unseen, the status of an answer.

Decides from headers and message alone; runs nothing and remembers nothing. The order of the checks
of the stateless era is the specification's (MCP 2026-07-28 basic/transports/streamable-http §Server
Validation): `_meta` keys, version header, version, `Mcp-Method` and `Mcp-Name`. What comes then is
the server's: the method, its params, and `Mcp-Param-*` once it may be known that the tool exists.
"""

from __future__ import annotations

from functools import lru_cache
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
from raxol_mcp.wire.headers import Headers, standard_problem, version_problem
from raxol_mcp.wire.jsonrpc import Failure, Request
from raxol_mcp.wire.meta import (
    HANDSHAKE_VERSIONS,
    META_CLIENT_CAPABILITIES,
    META_VERSION,
    STATELESS_VERSIONS,
    meta_of,
)

if TYPE_CHECKING:
    from raxol_mcp.transports.http.asgi import Request as Asked
    from raxol_mcp.wire.jsonrpc import Incoming, Outgoing

__all__ = [
    "handshake_status",
    "is_stateless",
    "names_stateless",
    "stateless_refusal",
    "stateless_status",
]

_HANDSHAKE: Final = frozenset(version.encode() for version in HANDSHAKE_VERSIONS)
_STATELESS: Final = frozenset(version.encode() for version in STATELESS_VERSIONS)
# The names of methods and tools are few and short: they are read once.
_MAX_KNOWN_BYTES: Final = 128
# Which member of the params `Mcp-Name` repeats.
_NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

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
    if version is None or version in _HANDSHAKE:
        return False
    return version in _STATELESS or version.strip(b" \t") not in _HANDSHAKE


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


def stateless_refusal(asked: Asked, request: Request) -> Failure | None:
    """Say what is wrong with a stateless request, for status 400; None: the server is to judge.

    `Mcp-Param-*` is compared later (`Exchange.mismatch`): before the authorizer has been asked,
    nobody may learn from it which tools there are.
    """
    params = request.params
    meta = None if params is None else params.get("_meta")
    version = meta.get(META_VERSION) if isinstance(meta, dict) else None
    if not isinstance(version, str):
        return Failure(request.id, INVALID_PARAMS, f"params._meta[{META_VERSION!r}] is missing")
    assert params is not None, "the version was found there"
    assert isinstance(meta, dict), "the version was found there"
    if not isinstance(meta.get(META_CLIENT_CAPABILITIES), dict):
        text = f"params._meta[{META_CLIENT_CAPABILITIES!r}] must be an object"
        return Failure(request.id, INVALID_PARAMS, text)
    name = params.get(_NAMED.get(request.method, ""))
    if not _mirrored_plainly(asked.headers, version, request.method, name):
        return _header_failure(Headers(asked.raw), request, version)
    return None


def _mirrored_plainly(headers: dict[bytes, bytes], version: str, method: str, name: object) -> bool:
    """Say whether the headers repeat the body letter by letter, as those of most requests do.

    False says nothing: the rules are elsewhere. Nothing here is given twice (`guards.py`).
    """
    if version not in STATELESS_VERSIONS:
        return False
    if _plain(headers.get(b"mcp-protocol-version")) != version:
        return False
    if _plain(headers.get(b"mcp-method")) != method:
        return False
    if method not in _NAMED:
        return True
    return isinstance(name, str) and _plain(headers.get(b"mcp-name")) == name


def _plain(value: bytes | None) -> str | None:
    """Read a header that stands for itself, letter by letter; None for any other, and for none."""
    return None if value is None or len(value) > _MAX_KNOWN_BYTES else _known(value)


@lru_cache(maxsize=1024)
def _known(value: bytes) -> str | None:
    text = value.decode("latin-1")
    # What looks wrapped, or has space around it, stands for another text.
    plain = text.isascii() and text.isprintable() and text == text.strip() and text[:2] != "=?"
    return text if plain else None


def _header_failure(headers: Headers, request: Request, version: str) -> Failure | None:
    failure = version_problem(headers, request)
    if failure is None and version not in STATELESS_VERSIONS:
        data = {"supported": list(STATELESS_VERSIONS), "requested": version}
        failure = Failure(request.id, UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    return failure or standard_problem(headers, request)


def stateless_status(answer: Outgoing) -> int:
    """Return the HTTP status of an answer that the server gave to a stateless request."""
    return _STATELESS_STATUS.get(answer.code, 200) if isinstance(answer, Failure) else 200


def handshake_status(answer: Outgoing) -> int:
    """Return the HTTP status of an answer within a session.

    A failure without an id is about the message itself (a second request with an id that is in
    flight, a batch where there are none): a client that waits for its id has to learn it here.
    """
    return 400 if isinstance(answer, Failure) and answer.id is None else 200
