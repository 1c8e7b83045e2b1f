"""The two ways MCP is spoken, as strategies. One server serves both on one connection (ADR-0007).

The era is told by the message, never by the method's name: a request that carries the protocol
version in `params._meta` is stateless (2026-07-28), any other one belongs to the handshake.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Final

from raxol_mcp.core.methods import HANDSHAKE_METHODS, STATELESS_METHODS, Method, level_problem
from raxol_mcp.core.peers import Capability, Peer, capabilities_of
from raxol_mcp.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    RESOURCE_NOT_FOUND,
    UNSUPPORTED_VERSION,
    ConfigurationError,
)
from raxol_mcp.wire.jsonrpc import (
    Failure,
    JSONObject,
    Request,
    UnencodableResult,
    encode_result,
)
from raxol_mcp.wire.meta import (
    HANDSHAKE_VERSIONS,
    LATEST_HANDSHAKE,
    META_CLIENT_CAPABILITIES,
    META_LOG_LEVEL,
    META_SERVER_INFO,
    META_VERSION,
    STATELESS_VERSION,
    STATELESS_VERSIONS,
    EraName,
    log_severity,
)
from raxol_mcp.wire.values import Value

if TYPE_CHECKING:
    from raxol_mcp.core.calls import Call

__all__ = ["Era", "HandshakeEra", "Identity", "StatelessEra"]

_MAX_TEXT_BYTES: Final = 1024 * 1024  # ours, as for a definition
_MAX_CACHE_TTL: Final = 2**31  # RFC 9111 §1.2.2: a cache need not count further
_CAPABILITIES: JSONObject = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "logging": {},
}


class Identity(Value, frozen=True):
    """Who the server says it is: `serverInfo`, `instructions`, and how long a listing is fresh.

    `cache_ttl` is in seconds (0: do not cache). Raises ConfigurationError for what could not be
    sent, which would fail every greeting, and for an empty name or version.
    """

    name: str = "raxol"
    version: str = "0"
    title: str | None = None
    instructions: str | None = None
    cache_ttl: float = 0.0

    def __post_init__(self) -> None:
        for option in ("name", "version", "title", "instructions"):
            self._check_text(option, getattr(self, option), required=option in ("name", "version"))
        ttl: object = self.cache_ttl
        number = isinstance(ttl, int | float) and not isinstance(ttl, bool)
        if not number or not 0 <= ttl <= _MAX_CACHE_TTL:  # type: ignore[operator]  # narrowed by `number`
            raise ConfigurationError(
                f"cache_ttl must be from 0 to {_MAX_CACHE_TTL} seconds, got: {ttl!r}"
            )

    @staticmethod
    def _check_text(option: str, value: object, *, required: bool) -> None:
        if value is None and not required:
            return
        if not isinstance(value, str) or (required and not value):
            kind = "text that is not empty" if required else "text"
            raise ConfigurationError(f"{option} must be {kind}, got: {value!r}")
        try:
            encode_result(value, max_bytes=_MAX_TEXT_BYTES)
        except UnencodableResult as error:
            raise ConfigurationError(f"{option} cannot be sent: {error}") from error

    def server_info(self, *, version: str = STATELESS_VERSION) -> JSONObject:
        """Write the `Implementation` object of a revision; `title` exists from 2025-06-18 on."""
        info: JSONObject = {"name": self.name, "version": self.version}
        if self.title is not None and version >= "2025-06-18":
            info["title"] = self.title
        return info


class Era:
    """What differs between the eras; the core asks in these places and nowhere else."""

    name: ClassVar[EraName]
    methods: ClassVar[Mapping[str, Method]]
    unknown_tool: ClassVar[int]
    unknown_resource: ClassVar[int]
    parks: ClassVar[bool]
    """Whether a question is asked while the call is parked, or handed back as its result."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity

    def refusal(self, peer: Peer, request: Request, method: Method | None) -> Failure | None:
        """Say why this request is not served at all, before its params are looked at."""
        raise NotImplementedError

    def may_ask(self, call: Call) -> Capability:
        """Say what the human behind this call can be asked for, at this moment."""
        raise NotImplementedError

    def log_severity(self, call: Call) -> int | None:
        """Give the least severity this call's client wants logged to it; None: nothing."""
        raise NotImplementedError

    def complete(self, payload: JSONObject, *, cached: bool = False) -> JSONObject:
        """Add what this era wants in every result. May return `payload` itself."""
        raise NotImplementedError


def _unknown_method(request: Request) -> Failure:
    return Failure(request.id, METHOD_NOT_FOUND, f"Unknown method: {request.method[:200]}")


class HandshakeEra(Era):
    """2024-11-05 to 2025-11-25: `initialize` opens a session that remembers."""

    name = EraName.HANDSHAKE
    methods = HANDSHAKE_METHODS
    unknown_tool = METHOD_NOT_FOUND
    unknown_resource = RESOURCE_NOT_FOUND
    parks = True

    def refusal(self, peer: Peer, request: Request, method: Method | None) -> Failure | None:
        """Refuse what comes before `initialize` where the transport wants a greeting."""
        if peer.facts.greeting_required and not peer.greeted and not (method and method.inline):
            return Failure(
                request.id,
                INVALID_PARAMS,
                "Send initialize first, or put the protocol version and the client capabilities"
                f" in params._meta ({STATELESS_VERSION})",
            )
        return _unknown_method(request) if method is None else None

    def may_ask(self, call: Call) -> Capability:
        """Only a connection that has a sink now, may still answer, and declared it."""
        peer = call.peer
        if not peer.open or peer.silent or peer.capabilities is None:
            return Capability.NONE
        return peer.capabilities

    def log_severity(self, call: Call) -> int | None:
        """Give the level of the connection (MCP 2025-11-25 server/utilities/logging)."""
        return call.peer.log_severity

    def complete(self, payload: JSONObject, *, cached: bool = False) -> JSONObject:
        """Nothing to add."""
        return payload

    def greet(self, peer: Peer, request: Request) -> tuple[str, Capability] | Failure:
        """Negotiate the version: the client's if it is served, else our latest.

        MCP 2025-11-25 basic/lifecycle §Version Negotiation. A second `initialize` is refused
        unless what the first one declared was evicted meanwhile.
        """
        if peer.greeted and peer.capabilities is not None:
            return Failure(request.id, INVALID_REQUEST, "This connection is already initialized")
        params = request.params or {}
        wanted = params.get("protocolVersion")
        if not isinstance(wanted, str):
            return Failure(request.id, INVALID_PARAMS, "protocolVersion must be a string")
        version = wanted if wanted in HANDSHAKE_VERSIONS else LATEST_HANDSHAKE
        return version, capabilities_of(params.get("capabilities"), version=version)

    def greeting(self, version: str) -> JSONObject:
        """Write the result of `initialize`."""
        capabilities = dict(_CAPABILITIES)
        if version >= "2025-03-26":
            capabilities["completions"] = {}
        result: JSONObject = {
            "protocolVersion": version,
            "capabilities": capabilities,
            "serverInfo": self.identity.server_info(version=version),
        }
        if self.identity.instructions is not None:
            result["instructions"] = self.identity.instructions
        return result


def _own_meta(call: Call) -> JSONObject:
    """Give the `_meta` of a call's own request."""
    meta = call.params["_meta"]
    assert isinstance(meta, dict), "checked by refusal"
    return meta


class StatelessEra(Era):
    """2026-07-28: every request carries what it needs; nothing of an earlier one is remembered."""

    name = EraName.STATELESS
    methods = STATELESS_METHODS
    unknown_tool = INVALID_PARAMS
    unknown_resource = INVALID_PARAMS
    parks = False

    def __init__(self, identity: Identity) -> None:
        super().__init__(identity)
        self._meta: JSONObject = {META_SERVER_INFO: identity.server_info()}
        self._ttl_ms = int(identity.cache_ttl * 1000)

    def refusal(self, peer: Peer, request: Request, method: Method | None) -> Failure | None:
        """Check the required `_meta` keys, then the version, then whether the method exists.

        MCP 2026-07-28 basic §Per-request metadata; the order is the one every binding shares.
        """
        params = request.params or {}
        meta = params["_meta"]
        assert isinstance(meta, dict), "the version key was found in it"
        version = meta[META_VERSION]
        problem = None
        if not isinstance(version, str):
            problem = f"_meta[{META_VERSION!r}] must be a string"
        elif not isinstance(meta.get(META_CLIENT_CAPABILITIES), dict):
            problem = f"_meta[{META_CLIENT_CAPABILITIES!r}] must be an object"
        elif META_LOG_LEVEL in meta:
            problem = level_problem(meta[META_LOG_LEVEL])
        if problem is not None:
            return Failure(request.id, INVALID_PARAMS, problem)
        if version not in STATELESS_VERSIONS:
            return Failure(
                request.id,
                UNSUPPORTED_VERSION,
                "Unsupported protocol version",
                {"supported": list(STATELESS_VERSIONS), "requested": version},
            )
        return _unknown_method(request) if method is None else None

    def may_ask(self, call: Call) -> Capability:
        """What this very request declared. Read when it is needed: most calls never ask."""
        declared = _own_meta(call)[META_CLIENT_CAPABILITIES]
        return capabilities_of(declared, version=STATELESS_VERSION)

    def log_severity(self, call: Call) -> int | None:
        """What this very request asked for (MCP 2026-07-28 server/utilities/logging)."""
        return log_severity(_own_meta(call).get(META_LOG_LEVEL))

    def complete(self, payload: JSONObject, *, cached: bool = False) -> JSONObject:
        """Add `resultType`, who we are, and the cache hints where the method has them."""
        meta = payload.get("_meta")
        whole: JSONObject = {
            "resultType": "complete",
            **payload,
            "_meta": {**meta, **self._meta} if isinstance(meta, dict) else self._meta,
        }
        if cached:
            whole["ttlMs"] = self._ttl_ms
            whole["cacheScope"] = "private"
        return whole

    def discovery(self) -> JSONObject:
        """Write the result of `server/discover`."""
        result: JSONObject = {
            "supportedVersions": list(STATELESS_VERSIONS),
            "capabilities": {**_CAPABILITIES, "completions": {}},
        }
        if self.identity.instructions is not None:
            result["instructions"] = self.identity.instructions
        return self.complete(result, cached=True)
