"""Eras: two ways MCP is spoken, told by the message and by nothing else."""

from __future__ import annotations

import math
from typing import Any

import pytest

from raxol_mcp.core.calls import Call, Via
from raxol_mcp.core.eras import Era, HandshakeEra, Identity, StatelessEra
from raxol_mcp.core.peers import Capability, ConnectionFacts, Peer
from raxol_mcp.errors import ConfigurationError
from raxol_mcp.wire.jsonrpc import Failure, JSONObject, Request
from raxol_mcp.wire.meta import (
    META_CLIENT_CAPABILITIES,
    META_LOG_LEVEL,
    META_VERSION,
    EraName,
)
from tests.core.support import IDENTITY, SERVER_INFO

HANDSHAKE, STATELESS = HandshakeEra(IDENTITY), StatelessEra(IDENTITY)
META: JSONObject = {META_VERSION: "2026-07-28", META_CLIENT_CAPABILITIES: {}}
FORM = Capability.FORM
NONE = Capability.NONE


def peer_with(*, greeting_required: bool = False, open: bool = True) -> Peer:
    """A connection that has not greeted."""
    peer = Peer("a", ConnectionFacts(greeting_required=greeting_required))
    peer.open = open
    return peer


def call_with(peer: Peer, era: Era, meta: JSONObject | None = None) -> Call:
    """A tools/call of a connection."""
    call = Call(peer, 1, era.methods["tools/call"], era, Via.PUSH, None)
    whole = META if meta is None else {**META, **meta}
    call.read({"name": "t", "_meta": whole}, whole)
    return call


def refusal(
    era: Era, peer: Peer, method: str, params: JSONObject | None = None
) -> tuple[object, ...] | None:
    """Why a request is refused before its params are looked at: (id, code, message)."""
    request = Request(7, method, params)
    found = era.refusal(peer, request, era.methods.get(method))
    return None if found is None else (found.id, found.code, found.message)


def initialize(peer: Peer, **params: object) -> tuple[str, Capability] | Failure:
    """Greet a connection."""
    return HANDSHAKE.greet(peer, Request(1, "initialize", params))


@pytest.mark.parametrize(
    ("era", "name", "unknown_tool", "unknown_resource", "parks"),
    [
        (HANDSHAKE, EraName.HANDSHAKE, -32601, -32002, True),
        (STATELESS, EraName.STATELESS, -32602, -32602, False),
    ],
)
def test_what_differs_between_the_eras(
    era: Era, name: EraName, unknown_tool: int, unknown_resource: int, parks: bool
) -> None:
    """Rulings §Codes and payloads."""
    assert (era.name, era.parks) == (name, parks)
    assert (era.unknown_tool, era.unknown_resource) == (unknown_tool, unknown_resource)


@pytest.mark.parametrize("question", ["refusal", "may_ask", "log_severity", "complete"])
def test_each_era_must_say_for_itself(question: str) -> None:
    """A third era that forgets one is found at once."""
    era = Era(IDENTITY)
    request, peer = Request(1, "ping"), peer_with()
    call = call_with(peer, HANDSHAKE)
    arguments: tuple[object, ...] = {"refusal": (peer, request, None), "complete": ({},)}.get(
        question, (call,)
    )
    with pytest.raises(NotImplementedError):
        getattr(era, question)(*arguments)


# -- the handshake --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "version"),
    [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),  # not spoken with a handshake
        ("2023-01-01", "2025-11-25"),
        ("9999-12-31", "2025-11-25"),
        ("1.0", "2025-11-25"),
        ("", "2025-11-25"),
    ],
)
def test_the_version_is_the_clients_or_our_latest(wanted: str, version: str) -> None:
    """MCP 2025-11-25 basic/lifecycle §Version Negotiation."""
    assert initialize(peer_with(), protocolVersion=wanted) == (version, NONE)


@pytest.mark.parametrize("wanted", [None, 1, 20251125, True, ["2025-11-25"], {}])
def test_a_version_that_is_no_string_is_refused(wanted: object) -> None:
    failure = Failure(1, -32602, "protocolVersion must be a string")
    assert initialize(peer_with(), protocolVersion=wanted) == failure


def test_params_are_needed_to_greet() -> None:
    failure = Failure(1, -32602, "protocolVersion must be a string")
    assert HANDSHAKE.greet(peer_with(), Request(1, "initialize")) == failure


@pytest.mark.parametrize(
    ("wanted", "capabilities"), [("2025-06-18", FORM), ("2025-03-26", NONE), ("odd", FORM)]
)
def test_capabilities_count_in_the_version_that_was_negotiated(
    wanted: str, capabilities: Capability
) -> None:
    """Rulings §Asking: elicitation exists from 2025-06-18 on."""
    found = initialize(peer_with(), protocolVersion=wanted, capabilities={"elicitation": {}})
    assert isinstance(found, tuple)
    assert found[1] is capabilities


def test_a_second_greeting_is_refused_unless_the_first_was_evicted() -> None:
    """Rulings §Messages; Raxol MCP 2.8.0 §Client capabilities."""
    peer = peer_with()
    peer.greeted, peer.capabilities = True, NONE
    failure = Failure(1, -32600, "This connection is already initialized")
    assert initialize(peer, protocolVersion="2025-11-25") == failure
    peer.capabilities = None
    assert initialize(peer, protocolVersion="2025-11-25") == ("2025-11-25", NONE)


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_the_greeting(version: str) -> None:
    """MCP basic/lifecycle of each revision; completions were declared from 2025-03-26 on."""
    capabilities: JSONObject = {
        "tools": {"listChanged": True},
        "resources": {"subscribe": True, "listChanged": True},
        "prompts": {"listChanged": True},
        "logging": {},
    }
    if version != "2024-11-05":
        capabilities["completions"] = {}
    assert HANDSHAKE.greeting(version) == {
        "protocolVersion": version,
        "capabilities": capabilities,
        "serverInfo": {"name": "raxol", "version": "1.0"},
    }


@pytest.mark.parametrize(
    ("version", "titled"),
    [
        ("2024-11-05", False),
        ("2025-03-26", False),
        ("2025-06-18", True),
        ("2025-11-25", True),
        ("2026-07-28", True),
    ],
)
def test_a_title_is_told_where_it_exists(version: str, titled: bool) -> None:
    """MCP 2025-06-18 schema, BaseMetadata."""
    identity = Identity("n", "9.9", title="The Server")
    info: JSONObject = {"name": "n", "version": "9.9"}
    assert identity.server_info(version=version) == (
        {**info, "title": "The Server"} if titled else info
    )


def test_instructions_are_told_when_there_are_any() -> None:
    era = HandshakeEra(Identity(instructions="Be kind."))
    assert era.greeting("2025-11-25")["instructions"] == "Be kind."
    assert "instructions" not in HANDSHAKE.greeting("2025-11-25")


@pytest.mark.parametrize(
    ("method", "greeted", "code"),
    [
        ("ping", False, None),
        ("initialize", False, None),
        ("tools/call", False, -32602),
        ("tools/list", False, -32602),
        ("odd/method", False, -32602),
        ("server/discover", False, -32602),
        ("tools/call", True, None),
        ("odd/method", True, -32601),
        ("server/discover", True, -32601),
        ("subscriptions/listen", True, -32601),
    ],
)
def test_a_greeting_that_is_wanted_comes_first(
    method: str, greeted: bool, code: int | None
) -> None:
    """A stateless client that forgot its metadata learns what was missing."""
    peer = peer_with(greeting_required=True)
    peer.greeted = greeted
    found = refusal(HANDSHAKE, peer, method)
    assert (None if found is None else found[1]) == code
    if code == -32602:
        assert found == (
            7,
            -32602,
            "Send initialize first, or put the protocol version and the client capabilities in "
            "params._meta (2026-07-28)",
        )


def test_without_that_wish_nothing_is_refused_before_the_greeting() -> None:
    """Raxol MCP 2.8.0: direct callers need no handshake."""
    assert refusal(HANDSHAKE, peer_with(), "tools/call") is None
    assert refusal(HANDSHAKE, peer_with(), "odd") == (7, -32601, "Unknown method: odd")


@pytest.mark.parametrize("era", [HANDSHAKE, STATELESS], ids=["handshake", "stateless"])
def test_a_method_is_repeated_only_as_far_as_it_helps(era: Era) -> None:
    found = refusal(era, peer_with(), "m" * 10_000, {"_meta": META})
    assert found == (7, -32601, f"Unknown method: {'m' * 200}")


@pytest.mark.parametrize(
    ("open", "silent", "declared", "may_ask"),
    [
        (True, False, FORM, FORM),
        (True, False, None, NONE),
        (True, False, NONE, NONE),
        (False, False, FORM, NONE),
        (True, True, FORM, NONE),
    ],
)
def test_who_can_be_asked(
    open: bool, silent: bool, declared: Capability | None, may_ask: Capability
) -> None:
    """Raxol MCP 2.8.0 §Elicitation: declared, and a sink now; and somebody who can answer."""
    peer = peer_with(open=open)
    peer.silent, peer.capabilities = silent, declared
    assert HANDSHAKE.may_ask(call_with(peer, HANDSHAKE)) is may_ask


def test_the_level_is_the_connections() -> None:
    """MCP 2025-11-25 server/utilities/logging: logging/setLevel, info before it."""
    peer = peer_with()
    call = call_with(peer, HANDSHAKE, {META_LOG_LEVEL: "debug"})
    assert HANDSHAKE.log_severity(call) == 1
    peer.log_severity = 4
    assert HANDSHAKE.log_severity(call) == 4


def test_a_result_is_complete_as_it_is() -> None:
    payload: JSONObject = {"tools": []}
    assert HANDSHAKE.complete(payload, cached=True) is payload
    assert payload == {"tools": []}


# -- stateless ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("meta", "method", "code", "message"),
    [
        ({}, "tools/call", None, None),
        ({META_VERSION: None}, "tools/call", -32602, f"_meta[{META_VERSION!r}] must be a string"),
        ({META_VERSION: 1}, "tools/call", -32602, f"_meta[{META_VERSION!r}] must be a string"),
        (
            {META_CLIENT_CAPABILITIES: None},
            "tools/call",
            -32602,
            f"_meta[{META_CLIENT_CAPABILITIES!r}] must be an object",
        ),
        (
            {META_CLIENT_CAPABILITIES: []},
            "tools/call",
            -32602,
            f"_meta[{META_CLIENT_CAPABILITIES!r}] must be an object",
        ),
        # The keys before the version, the version before the method.
        (
            {META_VERSION: "1900-01-01", META_CLIENT_CAPABILITIES: 1},
            "odd",
            -32602,
            f"_meta[{META_CLIENT_CAPABILITIES!r}] must be an object",
        ),
        ({META_VERSION: "1900-01-01"}, "odd", -32022, "Unsupported protocol version"),
        ({META_VERSION: "2025-11-25"}, "tools/call", -32022, "Unsupported protocol version"),
        ({META_VERSION: ""}, "tools/call", -32022, "Unsupported protocol version"),
        ({}, "odd", -32601, "Unknown method: odd"),
        # What was removed, and what opens the other era.
        ({}, "initialize", -32601, "Unknown method: initialize"),
        ({}, "ping", -32601, "Unknown method: ping"),
        ({}, "logging/setLevel", -32601, "Unknown method: logging/setLevel"),
        ({}, "resources/subscribe", -32601, "Unknown method: resources/subscribe"),
        ({META_LOG_LEVEL: "debug"}, "tools/call", None, None),
        (
            {META_LOG_LEVEL: "loud"},
            "tools/call",
            -32602,
            "Invalid log level. Valid: debug, info, notice, warning, error, critical, alert, "
            "emergency",
        ),
    ],
)
def test_what_is_wrong_with_the_metadata(
    meta: JSONObject, method: str, code: int | None, message: str | None
) -> None:
    """MCP 2026-07-28 basic §Per-request metadata, §Error Codes."""
    found = refusal(
        STATELESS, peer_with(greeting_required=True), method, {"_meta": {**META, **meta}}
    )
    assert found == (None if code is None else (7, code, message))


def test_capabilities_may_not_be_left_out() -> None:
    found = refusal(STATELESS, peer_with(), "tools/call", {"_meta": {META_VERSION: "2026-07-28"}})
    assert found == (7, -32602, f"_meta[{META_CLIENT_CAPABILITIES!r}] must be an object")


def test_who_asks_for_another_version_learns_which_there_are() -> None:
    """MCP 2026-07-28 basic/versioning; no handshake version: a client would stamp it here."""
    request = Request(7, "ping", {"_meta": {**META, META_VERSION: "1900-01-01"}})
    failure = STATELESS.refusal(peer_with(), request, None)
    assert failure is not None
    assert failure.data == {"supported": ["2026-07-28"], "requested": "1900-01-01"}


@pytest.mark.parametrize(
    ("capabilities", "level", "may_ask", "severity"),
    [
        ({}, None, NONE, None),
        ({"elicitation": {}}, "warning", FORM, 3),
        ({"elicitation": {"url": {}}}, "debug", Capability.URL, 0),
        ({"roots": {}}, "emergency", Capability.ROOTS, 7),
    ],
)
def test_a_request_speaks_for_itself(
    capabilities: JSONObject, level: str | None, may_ask: Capability, severity: int | None
) -> None:
    """MCP 2026-07-28 basic: nothing is derived from an earlier request of the connection."""
    peer = peer_with(open=False)
    peer.capabilities, peer.log_severity = FORM | Capability.SAMPLING, 5
    extra: JSONObject = {META_CLIENT_CAPABILITIES: capabilities}
    call = call_with(peer, STATELESS, extra if level is None else {**extra, META_LOG_LEVEL: level})
    assert (STATELESS.may_ask(call), STATELESS.log_severity(call)) == (may_ask, severity)


@pytest.mark.parametrize(
    ("payload", "whole"),
    [
        ({}, {"resultType": "complete", "_meta": SERVER_INFO}),
        (
            {"content": [], "_meta": {"example.com/a": 1}},
            {
                "resultType": "complete",
                "content": [],
                "_meta": {"example.com/a": 1, **SERVER_INFO},
            },
        ),
        ({"_meta": "odd"}, {"resultType": "complete", "_meta": SERVER_INFO}),
        (
            {"resultType": "input_required", "requestState": "x"},
            {"resultType": "input_required", "requestState": "x", "_meta": SERVER_INFO},
        ),
    ],
)
def test_every_result_says_what_it_is_and_who_sent_it(
    payload: JSONObject, whole: JSONObject
) -> None:
    """MCP 2026-07-28 basic: resultType, serverInfo in _meta."""
    before = dict(payload)
    assert STATELESS.complete(payload) == whole
    assert payload == before


@pytest.mark.parametrize(("cache_ttl", "milliseconds"), [(0.0, 0), (1.5, 1500), (60, 60_000)])
def test_what_may_be_cached_says_how_long(cache_ttl: float, milliseconds: int) -> None:
    """MCP 2026-07-28 server/utilities/caching: both fields; lists differ by caller."""
    era = StatelessEra(Identity(cache_ttl=cache_ttl))
    result = era.complete({"tools": []}, cached=True)
    assert (result["ttlMs"], result["cacheScope"]) == (milliseconds, "private")


def test_the_discovery() -> None:
    """MCP 2026-07-28 server/discover: serverInfo is in _meta, the version list has one era."""
    assert STATELESS.discovery() == {
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": {
            "tools": {"listChanged": True},
            "resources": {"subscribe": True, "listChanged": True},
            "prompts": {"listChanged": True},
            "logging": {},
            "completions": {},
        },
        "_meta": SERVER_INFO,
        "ttlMs": 0,
        "cacheScope": "private",
    }
    assert StatelessEra(Identity(instructions="Be kind.")).discovery()["instructions"] == "Be kind."


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"name": 5}, "name must be text that is not empty, got: 5"),
        ({"name": ""}, "name must be text that is not empty, got: ''"),
        ({"name": "x\ud800"}, "name cannot be sent: a string holds half of a surrogate pair"),
        ({"version": None}, "version must be text that is not empty, got: None"),
        ({"version": ""}, "version must be text that is not empty, got: ''"),
        ({"title": b"x"}, "title must be text, got: b'x'"),
        ({"instructions": 1.5}, "instructions must be text, got: 1.5"),
        ({"instructions": "\udfff"}, "instructions cannot be sent: "),
        ({"instructions": "x" * (1 << 20)}, "instructions cannot be sent: "),
        *(
            ({"cache_ttl": ttl}, f"cache_ttl must be from 0 to 2147483648 seconds, got: {ttl!r}")
            for ttl in (math.nan, math.inf, -1, -math.inf, 1e308, 2**31 + 1, True, "1", None)
        ),
    ],
)
def test_an_identity_that_cannot_be_sent_is_refused(wrong: dict[str, Any], sentence: str) -> None:
    """ours: at once and in a sentence, not at every greeting."""
    with pytest.raises(ConfigurationError) as caught:
        Identity(**wrong)
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize(
    "given",
    [
        {"name": "größe", "version": "1", "title": "", "instructions": ""},
        {"instructions": "x" * 1_000_000},
        {"cache_ttl": 2**31},
    ],
)
def test_an_identity_at_its_bounds_is_taken(given: dict[str, Any]) -> None:
    Identity(**given)
