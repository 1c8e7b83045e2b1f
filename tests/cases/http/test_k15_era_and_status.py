"""K15: which era a POST is of, what that leads to, and the status that says so, by one table.

Clients greet anew at a 404 and fall back to an older protocol at a 400: a wrong status sends them
into a loop, or away.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final, cast

import pytest

from tests.cases.dialects import (
    LEGACY,
    MODERN,
    Handshake,
    code_of,
    result_of,
    text_of,
)
from tests.cases.http_peers import JSON, TOKENS, HttpExchange, HttpPeer, bearer, headers_of
from tests.cases.peers import Message, strict

HANDSHAKES: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
LATEST: Final = "2025-11-25"
PREFIX: Final = "io.modelcontextprotocol/"
GREETING: Final[Message] = {"protocolVersion": LATEST, "capabilities": {}}
NO_SESSION: Final = "does-not-exist"


def test_an_unsupported_version_is_told_which_are() -> None:
    """BC-055. MCP 2026-07-28 basic/versioning: 400, -32022, and a list that is true."""
    with HttpExchange() as exchange:

        async def asks(peer: HttpPeer) -> None:
            for version in ("2099-01-01", "v999.0.0", "2026-07-2", "2026-07-281", "x"):
                wrong = {PREFIX + "protocolVersion": version}
                reply = await peer.say(MODERN.request(1, "tools/list", meta=wrong))
                assert (reply.status, code_of(reply.json())) == (400, -32022)
                assert reply.json()["id"] == 1
                data = reply.json()["error"]["data"]
                assert data["requested"] == version
                discovered = result_of(
                    (await peer.say(MODERN.request(2, "server/discover"))).json()
                )
                assert discovered["supportedVersions"] == data["supported"]
                for supported in data["supported"]:
                    meta = {PREFIX + "protocolVersion": supported}
                    served = await peer.say(MODERN.request(3, "tools/list", meta=meta))
                    assert "tools" in result_of(served.json())

        exchange.run(asks)


def test_an_unknown_method_is_a_404_with_a_code() -> None:
    """BC-057. MCP 2026-07-28 streamable-http: so a client tells it from an address that is not."""
    gone: list[tuple[str, Message]] = [
        ("ping", {}),
        ("logging/setLevel", {"level": "debug"}),
        ("resources/subscribe", {"uri": "mem://a"}),
        ("resources/unsubscribe", {"uri": "mem://a"}),
        ("initialize", {**GREETING, "clientInfo": {"name": "p", "version": "0"}}),
        ("no/such/method", {}),
        ("tools/List", {}),
        ("notifications/initialized", {}),
    ]
    with HttpExchange() as exchange:

        async def asks(peer: HttpPeer) -> None:
            for id, (method, params) in enumerate(gone):
                reply = await peer.say(MODERN.request(id, method, params))
                assert (reply.status, code_of(reply.json())) == (404, -32601), method
                assert reply.json()["id"] == id
                assert "mcp-session-id" not in reply.headers

        exchange.run(asks)


def test_a_session_that_is_not_there_is_a_404_and_none_at_all_a_400() -> None:
    """BC-059. MCP 2025-11-25 basic/transports §Session Management."""
    with HttpExchange() as exchange:

        async def asks(peer: HttpPeer) -> None:
            listing = LEGACY.request(1, "tools/list")
            version = {"mcp-protocol-version": LATEST}
            unknown = await peer.say(listing, {"mcp-session-id": NO_SESSION, **version})
            assert (unknown.status, unknown.json()["id"]) == (404, 1)
            assert (await peer.say(listing, version)).status == 400
            await LEGACY.greet(peer)
            session, headers = peer.session["mcp-session-id"], dict(peer.session)
            assert (await peer.say(listing)).status == 200
            assert (await peer.http.send("DELETE", "/mcp", headers)).status == 204
            assert (await peer.say(listing)).status == 404
            assert (await peer.http.send("DELETE", "/mcp", headers)).status == 404
            assert (await peer.listen().ended()).status == 404
            wrong = {"mcp-protocol-version": "9999-99-99", "mcp-session-id": session}
            assert (await peer.say(listing, wrong)).status == 400
            assert exchange.left() == {}
            peer.session = {}

        exchange.run(asks)


@pytest.mark.parametrize("version", HANDSHAKES)
def test_every_handshake_is_agreed_on_and_used(version: str) -> None:
    """BC-051 and BC-059, the kind: the version of a session is the one that was agreed on."""
    era = Handshake(version)
    with HttpExchange() as exchange:

        async def speaks(peer: HttpPeer) -> None:
            await era.greet(peer)
            call = era.call(1, "echo", {"text": "x"})
            for header in (None, *HANDSHAKES, "2099-01-01", "", "x"):
                reply = await peer.say(call, {"mcp-protocol-version": header})
                assert reply.status == (200 if header in (None, version) else 400), header
            assert text_of((await peer.say(call)).json()) == "x"

        exchange.run(speaks)


# -- the whole table -------------------------------------------------------------------------------

SESSIONS: Final = ("none", "own", "unknown", "deleted", "of somebody else")
VERSIONS: Final = (None, "2025-11-25", "2025-06-18", "2026-07-28", "2099-01-01", "")
CALL: Final = {"name": "echo", "arguments": {"text": "x"}}
BODIES: Final[dict[str, object]] = {
    "request": LEGACY.request(1, "tools/list"),
    "call": LEGACY.request(1, "tools/call", CALL),
    "ping": LEGACY.request(1, "ping"),
    "unknown method": LEGACY.request(1, "no/such/method"),
    "notification": {"jsonrpc": "2.0", "method": "notifications/initialized"},
    "answer": {"jsonrpc": "2.0", "id": 99, "result": {}},
    "initialize": LEGACY.request(1, "initialize", {**GREETING, "clientInfo": {"name": "p"}}),
    "stateless call": MODERN.request(1, "tools/call", CALL),
    "stateless initialize": MODERN.request(1, "initialize", GREETING),
    "stateless unknown method": MODERN.request(1, "no/such/method"),
    "stateless of 2099": MODERN.request(
        1, "tools/call", CALL, meta={PREFIX + "protocolVersion": "2099-01-01"}
    ),
    "stateless without capabilities": {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/list",
        "params": {"_meta": {PREFIX + "protocolVersion": "2026-07-28"}},
    },
    "array": [LEGACY.request(1, "tools/list")],
    "no JSON": b"{",
    "no message": {"jsonrpc": "2.0"},
    "id null": {"jsonrpc": "2.0", "id": None, "method": "tools/list"},
}
Fate = tuple[int, object]  # the status, and the code of the error, "result" or None


def fate(session: str, version: str | None, name: str) -> Fate:
    """Say what becomes of a POST, by the specification and the rulings alone."""
    body = BODIES[name]
    unread = {"no JSON": -32700, "no message": -32600, "id null": -32600}
    in_body = None
    if isinstance(body, dict):
        meta = cast("Message", cast("Message", body.get("params") or {}).get("_meta") or {})
        in_body = cast("str | None", meta.get(PREFIX + "protocolVersion"))
    if in_body is not None or version not in (None, *HANDSHAKES):
        return stateless_fate(version, in_body, name)
    if name in unread:
        return 400, unread[name]
    if session == "none":
        return (200, "result") if name == "initialize" else (400, -32600)
    if session != "own":
        return 404, -32600
    if version not in (None, LATEST) or name == "array":
        return 400, -32600
    if name in ("notification", "answer"):
        return 202, None
    # A second greeting is refused, and that is an answer within the session.
    codes = {"unknown method": -32601, "initialize": -32600}
    return 200, codes.get(name, "result")


def stateless_fate(version: str | None, in_body: str | None, name: str) -> Fate:
    """Say what becomes of a POST of the stateless era; a session means nothing there."""
    unread = {"no JSON": -32700, "no message": -32600, "id null": -32600, "array": -32600}
    if name in unread:
        return 400, unread[name]
    if name == "answer":
        return 400, -32600
    if name == "notification":
        return (202, None) if version == "2026-07-28" else (400, -32022)
    if in_body is None or name == "stateless without capabilities":
        return 400, -32602
    if version != in_body:
        return 400, -32020
    if in_body == "2099-01-01":
        return 400, -32022
    return (200, "result") if name == "stateless call" else (404, -32601)


@pytest.mark.parametrize("name", BODIES)
def test_every_post_has_one_fate(name: str) -> None:
    """BC-015, BC-055, BC-057 and BC-059, the kind: every session, version header and body.

    And no refused request gets a session, or runs anything.
    """
    with HttpExchange(tokens=True) as exchange:

        async def tries(peer: HttpPeer, somebody: HttpPeer, deleted: HttpPeer) -> None:
            for each in (peer, somebody, deleted):
                await LEGACY.greet(each)
            ended = deleted.session["mcp-session-id"]
            await deleted.finish()
            ids = {
                "none": None,
                "own": peer.session["mcp-session-id"],
                "unknown": NO_SESSION,
                "deleted": ended,
                "of somebody else": somebody.session["mcp-session-id"],
            }
            body = BODIES[name]
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            for session, id in ids.items():
                for version in VERSIONS:
                    before = len(exchange.journal)
                    own = {"mcp-session-id": id, "mcp-protocol-version": version}
                    headers = {**headers_of(body), **own, **bearer("alice")}
                    reply = await peer.http.send("POST", "/mcp", headers, data)
                    expected = fate(session, version, name)
                    assert (reply.status, outcome(reply.body)) == expected, (session, version)
                    made = "mcp-session-id" in reply.headers
                    assert made is (name == "initialize" and expected == (200, "result"))
                    ran = len(exchange.journal) > before
                    assert ran is ("call" in name and expected == (200, "result"))
                    if made:
                        ending = {"mcp-session-id": reply.headers["mcp-session-id"]}
                        await peer.http.send("DELETE", "/mcp", {**ending, **bearer("alice")})
            assert exchange.app.stats()["sessions"] == 2

        exchange.run(tries, peers=3, tokens=("alice", "bob", "alice"))


def outcome(body: bytes) -> object:
    """Return the code of an error, "result", or None when there is no answer."""
    if not body:
        return None
    answer = strict(body)
    return code_of(answer) if "error" in answer else "result"


# -- other methods ---------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
def test_get_and_delete_belong_to_the_handshake(path: str) -> None:
    """BC-059, the kind: the stateless era has POST alone, and says so."""
    with HttpExchange() as exchange:

        async def asks(peer: HttpPeer) -> None:
            await LEGACY.greet(peer)
            session = dict(peer.session)
            table: list[tuple[str, dict[str, str | None], int]] = [
                ("GET", {"mcp-protocol-version": "2026-07-28"}, 405),
                ("GET", {**session, "mcp-protocol-version": "2026-07-28"}, 405),
                ("DELETE", {"mcp-protocol-version": "2026-07-28"}, 405),
                ("GET", {}, 400),
                ("DELETE", {}, 400),
                ("GET", {"mcp-session-id": NO_SESSION}, 404),
                ("DELETE", {"mcp-session-id": NO_SESSION}, 404),
                ("GET", {**session, "accept": "application/json"}, 406),
                ("GET", {**session, "mcp-protocol-version": "2025-03-26"}, 400),
                ("PUT", session, 405),
                ("HEAD", session, 405),
                ("OPTIONS", {}, 204),
            ]
            for method, headers, status in table:
                headers = {"accept": "text/event-stream", **headers}
                reply = await peer.http.send(method, path, headers)
                assert reply.status == status, (method, headers)
                if status in (405, 204):
                    assert "POST" in reply.headers["allow"]
                assert "mcp-session-id" not in reply.headers
            await asyncio.sleep(1.0)
            assert exchange.app.stats() == {"sessions": 1, "streams": 1, "requests": 0, "legacy": 0}

        exchange.run(asks)


@pytest.mark.parametrize(
    ("accept", "taken"),
    [
        (None, True),
        ("*/*", True),
        ("application/json, text/event-stream", True),
        ("text/event-stream;q=0.5,application/json;q=0.9", True),
        ("application/*, text/*", True),
        ("Application/JSON, Text/Event-Stream", True),
        ("application/json", False),
        ("text/event-stream", False),
        ("text/html", False),
        ("application/json, text/event-stream;q=0", False),
        ("application/jsonx, text/event-streams", False),
        ("", False),
    ],
)
def test_a_client_takes_both_forms_of_an_answer(accept: str | None, taken: bool) -> None:
    """MCP 2025-11-25 and 2026-07-28: the client MUST accept both; 406 else, and no session."""
    with HttpExchange() as exchange:

        async def asks(peer: HttpPeer) -> None:
            for message in (MODERN.request(1, "tools/list"), BODIES["initialize"]):
                reply = await peer.say(cast("Message", message), {"accept": accept})
                assert reply.status == (200 if taken else 406)
                if "mcp-session-id" in reply.headers:
                    assert taken
                    peer.session = {"mcp-session-id": reply.headers["mcp-session-id"]}

        exchange.run(asks)


def test_nothing_needs_more_than_the_headers_it_is_made_of() -> None:
    """ours: no cookie, no origin and no user agent is asked for, and none is set."""
    with HttpExchange() as exchange:

        async def asks(peer: HttpPeer) -> None:
            headers: Any = {**JSON, "user-agent": None, "cookie": "a=b"}
            reply = await peer.say(MODERN.request(1, "tools/list"), headers)
            assert reply.status == 200
            assert set(reply.headers) <= {"content-type", "content-length"}
            assert TOKENS["alice"] not in str(reply.headers)

        exchange.run(asks)
