"""K15: what a message means depends on its own envelope and on the handshake, by one table.

Servers executed before the handshake, spoke a version that they had not offered, or answered a
removed method as if it were still there.
"""

from __future__ import annotations

import json
from typing import Final, cast

import pytest

from tests.cases.dialects import (
    LEGACY,
    MEMORY,
    MODERN,
    STDIO,
    Dialect,
    Handshake,
    Wire,
    case,
    code_of,
    journal_of,
    meta_of,
    result_of,
)
from tests.cases.fixture_server import Knobs
from tests.cases.peers import Exchange, MemoryPeer, Message, Peer

HANDSHAKES: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
LATEST: Final = "2025-11-25"
MODERN_ONES: Final = ["2026-07-28"]
PREFIX: Final = "io.modelcontextprotocol/"


@pytest.mark.parametrize(
    ("wanted", "offered"),
    [
        *((version, version) for version in HANDSHAKES),
        ("1999-01-01", LATEST),
        ("2026-07-28", LATEST),
        ("2099-12-31", LATEST),
        ("", LATEST),
        ("2025-11-25 ", LATEST),
        (20250618, None),
        (None, None),
        (["2025-06-18"], None),
        (True, None),
    ],
)
def test_a_version_is_agreed_on(wanted: object, offered: str | None) -> None:
    """BC-051. MCP 2025-11-25 basic/lifecycle §Version Negotiation: another that is supported."""

    async def greets(peer: Peer) -> None:
        params = {"protocolVersion": wanted, "capabilities": {}}
        answer = await peer.request(LEGACY.request(1, "initialize", params))
        if offered is None:
            assert code_of(answer) == -32602
            return
        assert result_of(answer)["protocolVersion"] == offered
        assert "tools" in result_of(await peer.request(LEGACY.request(2, "tools/list")))

    STDIO.run(greets, Knobs())


def test_a_greeting_without_a_version_is_refused() -> None:
    """BC-051, with the member missing, and with no params at all."""

    async def greets(peer: Peer) -> None:
        without: list[Message | None] = [{"capabilities": {}}, {}, None]
        for id, params in enumerate(without):
            assert code_of(await peer.request(LEGACY.request(id, "initialize", params))) == -32602
        await LEGACY.greet(peer)

    STDIO.run(greets, Knobs())


@pytest.mark.parametrize("wire", [MEMORY, STDIO], ids=lambda wire: wire.name)
def test_nothing_runs_before_an_era_is_agreed_on(wire: Wire) -> None:
    """BC-053. MCP 2025-11-25 basic/lifecycle: initialize comes first; 2026-07-28: -32602."""

    async def hurries(peer: Peer) -> None:
        early: list[tuple[str, Message | None]] = [
            ("tools/list", None),
            ("tools/call", {"name": "echo", "arguments": {"text": "x"}}),
            ("resources/read", {"uri": "mem://a"}),
            ("logging/setLevel", {"level": "debug"}),
        ]
        for method, params in early:
            refused = await peer.request(LEGACY.request(method, method, params))
            assert code_of(refused) in (-32600, -32602)
        assert result_of(await peer.request(LEGACY.request(3, "ping"))) == {}
        await LEGACY.greet(peer)
        assert "tools" in result_of(await peer.request(LEGACY.request(4, "tools/list")))
        assert await journal_of(peer, LEGACY) == ["opened"]

    wire.run(hurries, Knobs())


@case(eras=[MODERN])
async def test_an_unsupported_version_is_told_which_are(peer: Peer, era: Dialect) -> None:
    """BC-055. MCP 2026-07-28 basic/versioning: -32022 with a list that is true."""
    wrong = {PREFIX + "protocolVersion": "2099-01-01"}
    error = (await peer.request(era.request(1, "tools/list", meta=wrong)))["error"]
    assert cast(Message, error)["code"] == -32022
    data = cast(Message, cast(Message, error)["data"])
    assert data == {"supported": MODERN_ONES, "requested": "2099-01-01"}
    discovered = result_of(await peer.request(era.request(2, "server/discover")))
    assert discovered["supportedVersions"] == data["supported"]
    assert "tools" in cast(Message, discovered["capabilities"])
    for version in cast(list[str], discovered["supportedVersions"]):
        meta = {PREFIX + "protocolVersion": version}
        assert "tools" in result_of(await peer.request(era.request(3, "tools/list", meta=meta)))


@case(eras=[MODERN])
async def test_removed_methods_are_gone(peer: Peer, era: Dialect) -> None:
    """BC-057. MCP 2026-07-28 changelog: no ping, no levels, no subscribe, no handshake."""
    greeting: Message = {"protocolVersion": LATEST, "capabilities": {}, "clientInfo": {"name": "p"}}
    gone: list[tuple[str, Message]] = [
        ("ping", {}),
        ("logging/setLevel", {"level": "debug"}),
        ("resources/subscribe", {"uri": "mem://a"}),
        ("resources/unsubscribe", {"uri": "mem://a"}),
        ("initialize", greeting),
        ("no/such/method", {}),
        ("", {}),
        ("notifications/initialized", {}),
        ("tools/List", {}),
    ]
    for id, (method, params) in enumerate(gone):
        assert code_of(await peer.request(era.request(id, method, params))) == -32601


# -- the whole table -------------------------------------------------------------------------------

RESULT: Final = "result"
ACKNOWLEDGED: Final = "acknowledged"
GREETING: Final[Message] = {"protocolVersion": LATEST, "capabilities": {}}
METHODS: Final[dict[str, Message]] = {
    "initialize": GREETING,
    "ping": {},
    "tools/list": {},
    "resources/list": {},
    "resources/templates/list": {},
    "prompts/list": {},
    "resources/read": {"uri": "mem://a"},
    "prompts/get": {"name": "none"},
    "tools/call": {"name": "no_args"},
    "completion/complete": {
        "ref": {"type": "ref/prompt", "name": "greet"},
        "argument": {"name": "who", "value": ""},
    },
    "logging/setLevel": {"level": "error"},
    "resources/subscribe": {"uri": "mem://a"},
    "resources/unsubscribe": {"uri": "mem://a"},
    "server/discover": {},
    "subscriptions/listen": {"notifications": {}},
    "tasks/list": {},
    "no/such/method": {},
}
HANDSHAKE_ONLY: Final = {
    "initialize",
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
}
STATELESS_ONLY: Final = {"server/discover", "subscriptions/listen"}
UNKNOWN: Final = {"tasks/list", "no/such/method"}

ENVELOPES: Final[dict[str, object]] = {
    "none": None,
    "null": {"_meta": None},
    "no object": {"_meta": 7},
    "no version": {"_meta": {PREFIX + "clientCapabilities": {}, "progressToken": 1}},
    "modern": {"_meta": meta_of()},
    "modern, least": {
        "_meta": {PREFIX + "protocolVersion": "2026-07-28", PREFIX + "clientCapabilities": {}}
    },
    "a handshake version": {"_meta": {**meta_of(), PREFIX + "protocolVersion": LATEST}},
    "a future version": {"_meta": {**meta_of(), PREFIX + "protocolVersion": "2099-01-01"}},
    "a version that is no string": {"_meta": {**meta_of(), PREFIX + "protocolVersion": 2026}},
    "a version of null": {"_meta": {**meta_of(), PREFIX + "protocolVersion": None}},
    "no capabilities": {"_meta": {PREFIX + "protocolVersion": "2026-07-28"}},
    "capabilities of null": {"_meta": {**meta_of(), PREFIX + "clientCapabilities": None}},
    "no log level": {"_meta": meta_of(logLevel="loud")},
}
STATES: Final = ("new", *HANDSHAKES, "spoke modern", "both")


def reaction(state: str, envelope: str, method: str) -> object:
    """Say what the one allowed reaction is: the table, written from the two specifications."""
    greeted = state not in ("new", "spoke modern")
    if envelope in ("none", "null", "no object", "no version"):
        if method == "initialize":
            return -32600 if greeted else RESULT
        if method == "ping":
            return RESULT
        if not greeted:
            return -32602
        return -32601 if method in STATELESS_ONLY | UNKNOWN else RESULT
    if envelope in ("modern", "modern, least"):
        if method == "subscriptions/listen":
            return ACKNOWLEDGED
        return -32601 if method in HANDSHAKE_ONLY | UNKNOWN else RESULT
    return -32022 if envelope in ("a handshake version", "a future version") else -32602


@pytest.mark.parametrize("state", STATES)
def test_every_message_in_every_state_has_one_reaction(state: str) -> None:
    """BC-051 to BC-057, the kind: seven states, thirteen envelopes, seventeen methods."""
    with Exchange() as exchange:
        for envelope, extra in ENVELOPES.items():
            for method, params in METHODS.items():

                async def tries(
                    peer: MemoryPeer,
                    method: str = method,
                    params: Message = params,
                    extra: object = extra,
                ) -> list[object]:
                    if state in HANDSHAKES:
                        await Handshake(state).greet(peer)
                    if state in ("spoke modern", "both"):
                        await peer.request(MODERN.request("m", "tools/list"))
                    if state == "both":
                        await LEGACY.greet(peer)
                        await peer.request(MODERN.request("m", "tools/list"))
                    message = LEGACY.request(1, method, {**params, **cast(Message, extra or {})})
                    got = await peer.exchange(json.dumps(message).encode() + b"\n")
                    return [
                        RESULT
                        if "result" in answer
                        else code_of(answer)
                        if "error" in answer
                        else str(answer["method"]).rpartition("/")[2]
                        for answer in got
                    ]

                assert exchange.run(tries) == [reaction(state, envelope, method)], (
                    envelope,
                    method,
                )


@pytest.mark.parametrize("version", HANDSHAKES)
def test_a_greeting_offers_only_what_its_revision_knows(version: str) -> None:
    """BC-051, the kind: a member that the revision does not have is not sent."""
    with Exchange() as exchange:

        async def greets(peer: MemoryPeer) -> Message:
            params = {"protocolVersion": version, "capabilities": {}}
            return result_of(await peer.request(LEGACY.request(1, "initialize", params)))

        result = exchange.run(greets)
        assert ("completions" in cast(Message, result["capabilities"])) is (version > "2025")
        assert ("title" in cast(Message, result["serverInfo"])) is (version >= "2025-06-18")
