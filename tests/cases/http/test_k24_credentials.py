"""K24: a token is for this server, from its issuer, for access, and now; or it is nobody's.

Verifiers looked at the signature alone: tokens of other servers, refresh tokens, and tokens that
the attacker had signed with the public key were good enough.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

import pytest

from raxol_mcp import Context
from raxol_mcp.server.auth import BearerAuthenticator
from raxol_mcp.server.auth_jwt import JwtVerifier
from raxol_mcp.server.protected_resource import ProtectedResource
from tests.cases.dialects import LEGACY, MODERN, text_of
from tests.cases.http_peers import HttpExchange, HttpPeer
from tests.server.jwt_issuer import (
    AUDIENCE,
    ISSUER,
    JWKS_URL,
    NOW,
    Issuer,
    base64url,
    claims,
    private_key,
    public_jwk,
    public_pem,
    token,
)
from tests.transports.http.client import Reply

RESOURCE: Final = ProtectedResource(AUDIENCE, authorization_servers=[ISSUER])
CALL: Final = MODERN.call(1, "echo", {"text": "x"})
METADATA: Final = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"


def protected(
    *, scopes: tuple[str, ...] = (), fetch: Callable[[str], Any] | None = None
) -> HttpExchange:
    """Serve to whoever has a token of the issuer."""
    issuer = fetch or Issuer(public_jwk(private_key("P-256")), public_jwk(private_key("RSA"), "k2"))
    verifier = JwtVerifier(
        issuer=ISSUER, audience=RESOURCE, jwks_url=JWKS_URL, fetch=issuer, now=lambda: NOW
    )
    return HttpExchange(
        authenticator=BearerAuthenticator(verifier, resource=RESOURCE, required_scopes=scopes)
    )


async def show(peer: HttpPeer, credentials: str | None) -> Reply:
    """Present credentials on a call, and on every other way in; they all answer the same."""
    headers = {"authorization": credentials}
    reply = await peer.say(CALL, headers)
    greeting = {"protocolVersion": "2025-11-25", "capabilities": {}}
    ways = [
        await peer.say(LEGACY.request(1, "initialize", greeting), headers),
        await peer.http.send("GET", "/mcp", headers),
        await peer.http.send("DELETE", "/mcp", headers),
        await peer.http.send("GET", "/mcp/sse", headers),
        await peer.say(CALL, headers, path="/mcp/messages?session_id=x"),
    ]
    for way in ways:
        assert (way.status, way.headers, way.body) == (reply.status, reply.headers, reply.body)
        assert "mcp-session-id" not in way.headers
    return reply


def refused_as_invalid(credentials: str) -> None:
    """Check that credentials are refused with a challenge, and that nothing ran."""
    with protected() as exchange:

        async def tries(peer: HttpPeer) -> None:
            reply = await show(peer, credentials)
            assert reply.status == 401
            challenge = reply.headers["www-authenticate"]
            assert 'error="invalid_token"' in challenge
            assert f'resource_metadata="{METADATA}"' in challenge
            assert exchange.journal == []
            assert exchange.left() == {}
            alive = await peer.say(CALL, {"authorization": f"Bearer {token()}"})
            assert text_of(alive.json()) == "x"

        exchange.run(tries)


@pytest.mark.parametrize(
    "changes",
    [
        {"aud": "https://other.test/mcp"},
        {"aud": "https://mcp.example.com"},
        {"aud": "https://mcp.example.com/"},
        {"aud": "https://mcp.example.com/mcp/"},
        {"aud": "http://mcp.example.com/mcp"},
        {"aud": "https://mcp.example.com/mcp2"},
        {"aud": ["https://other.test/mcp"]},
        {"aud": []},
        {"aud": None},
        {"aud": "editor"},
        {"aud": ""},
        {"aud": {AUDIENCE: True}},
        {"iss": "https://login.example.com.evil.example"},
        {"iss": "https://login.example.com/"},
        {"iss": None},
        {"iss": [ISSUER]},
        {"exp": int(NOW) - 3600},
        {"exp": None},
        {"exp": "9999999999"},
        {"exp": True},
        {"nbf": int(NOW) + 3600},
        {"iat": int(NOW) + 3600},
        {"sub": None},
        {"sub": ""},
        {"token_use": "id"},
        {"typ": "Refresh"},
        {"token_type": "refresh"},
    ],
    ids=str,
)
def test_a_token_for_something_else_is_refused(changes: dict[str, object]) -> None:
    """BC-131. MCP 2026-07-28 basic/authorization §Token Handling: the audience MUST be this."""
    refused_as_invalid(f"Bearer {token(claims(**changes))}")


@pytest.mark.parametrize("audience", [AUDIENCE, ["https://other.test/mcp", AUDIENCE]], ids=str)
def test_a_token_that_names_this_server_is_taken(audience: object) -> None:
    """BC-131, the other side."""
    with protected() as exchange:

        async def calls(peer: HttpPeer) -> None:
            good = f"Bearer {token(claims(aud=audience))}"
            assert text_of((await peer.say(CALL, {"authorization": good})).json()) == "x"

        exchange.run(calls)


def within(value: object, depth: int = 6) -> Iterator[str]:
    """Write down everything of ours that is within reach, by public attributes."""
    yield repr(value)[:10_000]
    inner: list[object] = []
    if isinstance(value, dict):
        inner = [*value, *value.values()]
    elif isinstance(value, list | tuple | set | frozenset):
        inner = list(value)
    elif type(value).__module__.startswith("raxol_mcp"):
        for name in dir(value):
            if not name.startswith("_"):
                with suppress(Exception):  # a property that means nothing here
                    inner.append(getattr(value, name))
    for each in inner if depth else []:
        if not callable(each):
            yield from within(each, depth - 1)


def test_a_tool_never_sees_the_token() -> None:
    """BC-131: so it cannot send it on; the principal is what a tool is told."""
    with protected() as exchange:
        server = exchange.fixture.server

        @server.tool
        async def call_upstream(context: Context) -> list[str]:
            """Say who calls, and in how many places there is a token."""
            found = sum(secret in text for text in within(context))
            return [context.principal or "", str(found)]

        secret = token(claims(jti="only-this-one"))

        async def calls(peer: HttpPeer) -> None:
            call = MODERN.call(1, "call_upstream")
            reply = await peer.say(call, {"authorization": f"Bearer {secret}"})
            result = json.loads(text_of(reply.json()))["result"]
            assert result == [f"{ISSUER}|alice", "0"]

        exchange.run(calls)


ATTACKER: Final = private_key("P-256", 7)


def unsigned(algorithm: str, signature: str = "") -> str:
    """Write a token that nobody has signed."""
    header = json.dumps({"alg": algorithm, "typ": "at+jwt", "kid": "k1"}).encode()
    return f"{base64url(header)}.{base64url(json.dumps(claims()).encode())}.{signature}"


def with_public_key_as_secret() -> str:
    """Sign with the public key as if it were a secret, as a library would be made to check it."""
    header = base64url(json.dumps({"alg": "HS256", "typ": "at+jwt", "kid": "k1"}).encode())
    signed = f"{header}.{base64url(json.dumps(claims()).encode())}"
    secret = public_pem(private_key("P-256")).encode()
    return f"{signed}.{base64url(hmac.new(secret, signed.encode(), hashlib.sha256).digest())}"


def duplicated() -> bytes:
    """Write claims that two readers would read differently."""
    text = json.dumps(claims())
    return text.replace('"sub": "alice"', '"sub": "admin", "sub": "alice"').encode()


FORGED: Final[dict[str, str]] = {
    "a refresh token": token(claims(token_use="refresh")),
    "a refresh token by its type": token(typ="rt+jwt"),
    "an ID token by its type": token(typ="id_token"),
    "a DPoP proof": token(typ="dpop+jwt"),
    "no algorithm": unsigned("none"),
    "no algorithm in other letters": unsigned("nOnE"),
    "no signature": unsigned("ES256"),
    "a signature of nothing": unsigned("ES256", "AAAA"),
    "the public key as a secret": with_public_key_as_secret(),
    "the name of another key": token(key=private_key("RSA"), algorithm="RS256", kid="k1"),
    "a key of the attacker": token(key=ATTACKER),
    "a key in the token": token(key=ATTACKER, jwk=public_jwk(ATTACKER)),
    "an address of keys in the token": token(key=ATTACKER, jku="https://evil.example/keys"),
    "an address of a certificate": token(key=ATTACKER, x5u="https://evil.example/cert"),
    "a path as the name of a key": token(key=ATTACKER, kid="../../dev/null"),
    "SQL as the name of a key": token(key=ATTACKER, kid="x' UNION SELECT 'key"),
    "an unknown name of a key": token(kid="k9"),
    "a critical extension": token(crit=["exp"]),
    "claims twice": token(duplicated()),
    "an end as text": token(claims(exp="9999999999")),
    "an end beyond every number": token(
        json.dumps(claims()).replace(f'"exp": {int(NOW) + 300}', '"exp": 1e400').encode()
    ),
    "claims that are a list": token(b"[]"),
    "claims that are no JSON": token(b"{"),
    "no token at all": "x",
    "two dots": "..",
}


@pytest.mark.parametrize("forged", FORGED)
def test_a_forged_token_is_refused(forged: str) -> None:
    """BC-133. RFC 8725: the algorithm is ours to choose, the key is where we look for it."""
    assert FORGED[forged] != token()
    refused_as_invalid(f"Bearer {FORGED[forged]}")


def test_nothing_but_the_configured_keys_is_fetched() -> None:
    """BC-133: `jku` and `x5u` lead nowhere, and invented names of keys cost next to nothing."""
    issuer = Issuer(public_jwk(private_key("P-256")))
    with protected(fetch=issuer) as exchange:

        async def tries(peer: HttpPeer) -> None:
            for forged in FORGED.values():
                await peer.say(CALL, {"authorization": f"Bearer {forged}"})
            assert issuer.urls == {JWKS_URL}
            assert len(issuer.fetches) <= 2

        exchange.run(tries)


@pytest.mark.parametrize("size", [14_000, 16 * 1024, 1024 * 1024])
def test_a_token_of_a_megabyte_costs_nothing(size: int) -> None:
    """BC-133: refused by its size, or with all the headers."""
    with protected() as exchange:

        async def tries(peer: HttpPeer) -> None:
            reply = await peer.say(CALL, {"authorization": f"Bearer {'A' * size}"})
            assert reply.status in (401, 431)
            assert exchange.journal == []

        exchange.run(tries)


@pytest.mark.parametrize(
    ("credentials", "status", "error"),
    [
        (None, 401, None),
        ("", 401, None),
        ("Basic YWxpY2U6eA==", 401, None),
        (token(), 401, None),
        ("Bearer", 400, "invalid_request"),
        ("Bearer a b", 400, "invalid_request"),
        (f"Bearer {token()}, Bearer {token()}", 400, "invalid_request"),
        ("Bearer \xe9", 400, "invalid_request"),
    ],
)
def test_what_is_no_bearer_token_gets_a_challenge(
    credentials: str | None, status: int, error: str | None
) -> None:
    """RFC 6750 §3.1; RFC 9728 §5.1: where to get a token is told on every route."""
    with protected() as exchange:

        async def tries(peer: HttpPeer) -> None:
            reply = await show(peer, credentials)
            challenge = reply.headers["www-authenticate"]
            assert challenge.startswith("Bearer ")
            assert f'resource_metadata="{METADATA}"' in challenge
            assert (f'error="{error}"' in challenge) is (error is not None)
            assert ("error=" in challenge) is (error is not None)
            # A token in the URL is none (OAuth 2.1 §5.1).
            path = f"/mcp?access_token={token()}"
            assert (await peer.say(CALL, {"authorization": credentials}, path=path)).status >= 400
            assert reply.status == status
            assert exchange.journal == []

        exchange.run(tries)


def test_a_token_without_the_scope_is_told_which() -> None:
    """MCP 2026-07-28 basic/authorization §Scope Challenge Handling: 403, all of them at once."""
    with protected(scopes=("files:read", "files:admin")) as exchange:

        async def tries(peer: HttpPeer) -> None:
            reply = await show(peer, f"Bearer {token()}")
            assert reply.status == 403
            challenge = reply.headers["www-authenticate"]
            assert 'error="insufficient_scope"' in challenge
            assert 'scope="files:read files:admin"' in challenge
            good = token(claims(scope="files:admin files:read"))
            assert (await peer.say(CALL, {"authorization": f"Bearer {good}"})).status == 200
            assert exchange.journal == ["start:echo:x"]

        exchange.run(tries)


def test_the_metadata_needs_no_token_and_names_this_server() -> None:
    """RFC 9728 §3: the document is where the challenge says, and its resource is the audience."""
    with protected() as exchange:

        async def looks(peer: HttpPeer) -> None:
            path = METADATA.removeprefix("https://mcp.example.com")
            reply = await peer.http.send("GET", path)
            document = reply.json()
            assert (reply.status, document["resource"]) == (200, AUDIENCE)
            assert document["authorization_servers"] == [ISSUER]

        exchange.run(looks)


def test_a_session_does_not_outlive_the_right_to_it() -> None:
    """MCP security best practices §Session Hijacking: every request is authenticated anew."""
    with protected() as exchange:

        async def speaks(peer: HttpPeer) -> None:
            greeting = {"protocolVersion": "2025-11-25", "capabilities": {}}
            initialize = LEGACY.request(1, "initialize", greeting)
            good = {"authorization": f"Bearer {token()}"}
            greeted = await peer.say(initialize, good)
            session = {"mcp-session-id": greeted.headers["mcp-session-id"]}
            call = LEGACY.call(1, "echo", {"text": "x"})
            ended = {"authorization": f"Bearer {token(claims(exp=int(NOW) - 3600))}"}
            assert (await peer.say(call, session)).status == 401
            assert (await peer.say(call, {**session, **ended})).status == 401
            renewed = {"authorization": f"Bearer {token(claims(jti='new'))}"}
            assert text_of((await peer.say(call, {**session, **renewed})).json()) == "x"
            assert (await peer.http.send("DELETE", "/mcp", {**session, **good})).status == 204

        exchange.run(speaks)
