"""server/auth_jwt.py: one thing is accepted, and everything near it is refused."""

import asyncio
import hmac
import json
import logging
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest

from raxol_mcp.core.authentication import Authenticated, Challenge
from raxol_mcp.errors import ConfigurationError
from raxol_mcp.server.auth import BearerAuthenticator, Principal
from raxol_mcp.server.auth_jwt import JwtVerifier, KeysUnavailable
from raxol_mcp.server.protected_resource import ProtectedResource
from raxol_mcp.testing.virtual_loop import run_virtual
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

SECRET = "0123456789abcdef0123456789abcdef"
ALICE = Principal("alice", ISSUER, "editor", frozenset({"files:read", "files:write"}))


class Clock:
    """The time since 1970, moved by hand."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


def verifier(issuer: Issuer | None = None, /, **options: Any) -> JwtVerifier:
    options = {"issuer": ISSUER, "audience": AUDIENCE, "now": Clock(), **options}
    if not {"public_key", "secret"} & set(options):
        source = Issuer(public_jwk(private_key("P-256"))) if issuer is None else issuer
        options = {"jwks_url": JWKS_URL, "fetch": source, **options}
    return JwtVerifier(**options)


def whose(given: str, checked: JwtVerifier | None = None) -> Principal | None:
    return asyncio.run((checked or verifier()).verify(given))


# -- accepted


def test_a_good_token_names_its_principal() -> None:
    """MCP 2026-07-28 basic/authorization §Token Handling."""
    assert whose(token()) == ALICE


@pytest.mark.parametrize(
    ("kind", "algorithm"),
    [
        ("P-256", "ES256"),
        ("P-384", "ES384"),
        ("Ed25519", "EdDSA"),
        ("RSA", "RS256"),
        ("RSA", "RS512"),
        ("RSA", "PS256"),
    ],
)
def test_every_asymmetric_algorithm_is_known(kind: str, algorithm: str) -> None:
    """RFC 7518 §3.1, RFC 8037 §3.1."""
    key = private_key(kind)
    given = token(key=key, algorithm=algorithm)
    assert whose(given, verifier(Issuer(public_jwk(key)))) == ALICE
    assert whose(given, verifier(public_key=public_pem(key))) == ALICE


@pytest.mark.parametrize(
    "changes",
    [
        {"aud": ["https://other.example.com", AUDIENCE]},
        {"aud": [AUDIENCE]},
        {"exp": int(NOW) + 1},
        {"exp": NOW + 0.5},
        {"exp": int(NOW) - 29},
        {"nbf": int(NOW) + 30},
        {"iat": int(NOW) + 30},
        {"iat": None},
        {"typ": "Bearer"},
        {"token_use": "access"},
        {"token_type": "access"},
        {"jti": 5, "anything": {"else": [1]}},
    ],
)
def test_what_differs_within_the_rules_is_accepted(changes: dict[str, object]) -> None:
    """RFC 7519 §4.1; `leeway` is 30 s."""
    assert whose(token(claims(**changes))) == ALICE


@pytest.mark.parametrize(
    "kind", ["at+jwt", "AT+JWT", "application/at+jwt", "JWT", "jwt", "application/jwt", None]
)
def test_the_type_of_the_token_has_several_spellings(kind: str | None) -> None:
    """RFC 9068 §2.1, RFC 7515 §4.1.9."""
    assert whose(token(typ=kind)) == ALICE


def test_the_types_can_be_narrowed() -> None:
    for strict in (verifier(token_types=["at+jwt"]), verifier(token_types="at+jwt")):
        assert whose(token(typ="application/AT+jwt"), strict) == ALICE
        assert whose(token(typ="JWT"), strict) is None
        assert whose(token(typ=None), strict) is None


@pytest.mark.parametrize(
    ("changes", "scopes"),
    [
        ({"scope": "a"}, {"a"}),
        ({"scope": ""}, set()),
        ({"scope": " a  b "}, {"a", "b"}),
        ({"scope": None}, set()),
        ({"scope": None, "scp": "a b"}, {"a", "b"}),
        ({"scope": None, "scp": ["a", "b", 5, ""]}, {"a", "b"}),
        ({"scope": "a", "scp": "b"}, {"a"}),
        ({"scope": 5}, set()),
        ({"scope": {"a": 1}}, set()),
    ],
)
def test_scopes_are_read_where_issuers_write_them(
    changes: dict[str, object], scopes: set[str]
) -> None:
    """RFC 9068 §2.2.3; what is none grants nothing."""
    found = whose(token(claims(**changes)))
    assert found is not None
    assert found.scopes == scopes


@pytest.mark.parametrize(
    ("changes", "client"),
    [
        ({}, "editor"),
        ({"azp": "x"}, "editor"),
        ({"client_id": None, "azp": "x"}, "x"),
        ({"client_id": None}, None),
        ({"client_id": 5}, None),
    ],
)
def test_the_client_is_read(changes: dict[str, object], client: str | None) -> None:
    """RFC 9068 §2.2; OpenID Connect Core §2 for `azp`."""
    found = whose(token(claims(**changes)))
    assert found is not None
    assert found.client == client


def test_the_audience_may_be_the_resource_or_several() -> None:
    """RFC 8707 §2."""
    resource = ProtectedResource("https://MCP.example.com/mcp/")
    assert whose(token(), verifier(audience=resource)) == ALICE
    assert whose(token(), verifier(audience=["https://old.example.com", AUDIENCE])) == ALICE


def test_a_secret_checks_what_it_signed() -> None:
    """RFC 7518 §3.2; only when it was configured."""
    given = token(key=SECRET, algorithm="HS256", kid=None)
    assert whose(given, verifier(secret=SECRET)) == ALICE
    assert whose(given, verifier(secret=SECRET.encode(), algorithms=["HS256", "HS512"])) == ALICE
    assert whose(given, verifier(secret="x" * 32)) is None
    assert whose(given, verifier(secret=SECRET, algorithms="HS384")) is None
    assert whose(given) is None


# -- refused: claims


@pytest.mark.parametrize(
    "changes",
    [
        # https://nvd.nist.gov/vuln/detail/CVE-2025-69196: for another audience.
        {"aud": "https://other.example.com/mcp"},
        {"aud": "https://mcp.example.com"},
        {"aud": "https://mcp.example.com/mcp/"},
        {"aud": "https://mcp.example.com/mcp.evil"},
        {"aud": "https://MCP.example.com/mcp"},
        {"aud": "editor"},
        {"aud": None},
        {"aud": ""},
        {"aud": []},
        {"aud": ["https://other.example.com"]},
        {"aud": [AUDIENCE, 5]},
        {"aud": {AUDIENCE: 1}},
        {"aud": 5},
        {"aud": True},
        # From another issuer.
        {"iss": "https://login.example.com/"},
        {"iss": "https://LOGIN.example.com"},
        {"iss": "https://login.example.com.evil.example"},
        {"iss": [ISSUER]},
        {"iss": ""},
        {"iss": None},
        # Not now.
        {"exp": int(NOW) - 30},
        {"exp": 0},
        {"exp": -1},
        {"exp": None},
        {"exp": str(int(NOW) + 300)},
        {"exp": True},
        {"exp": [int(NOW) + 300]},
        {"exp": {}},
        {"nbf": int(NOW) + 31},
        {"nbf": 2**62},
        {"nbf": "0"},
        {"nbf": False},
        {"iat": int(NOW) + 31},
        {"iat": "now"},
        # Somebody else's purpose: https://github.com/PrefectHQ/fastmcp/issues/3524.
        {"typ": "Refresh"},
        {"typ": "ID"},
        {"typ": "Offline"},
        {"typ": "Logout"},
        {"token_use": "refresh"},
        {"token_use": "id"},
        {"token_type": "refresh"},
        {"token_use": 5},
        {"token_use": ""},
        # Nobody.
        {"sub": None},
        {"sub": ""},
        {"sub": 5},
        {"sub": ["alice"]},
        {"sub": "a" * 1_025},
    ],
)
def test_a_claim_that_is_not_right_is_refused(changes: dict[str, object]) -> None:
    """RFC 7519 §4.1, RFC 8725, MCP 2026-07-28 basic/authorization §Token Handling."""
    assert whose(token(claims(**changes))) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(b'"sub"', b'"sub": "root", "sub"'),
        lambda text: text.replace(b'"aud"', b'"aud": "x", "\\u0061ud"'),
        lambda text: text.replace(b"}", b', "exp": 1e400}'),
        lambda text: text.replace(b'"exp"', b'"exp": 1, "exp"'),
        lambda text: text.replace(b"alice", b"\\ud800"),
        lambda text: text.replace(b"alice", b"\xff"),
        lambda text: text.replace(b"1800000300", b"1e400"),
        lambda text: text.replace(b"1800000300", b"Infinity"),
        lambda text: text.replace(b"1800000300", b"NaN"),
        lambda text: text.replace(b"1800000300", b"18446744073709551616"),
        lambda text: text.replace(b"}", b', "x": ' + b"[" * 20 + b"]" * 20 + b"}"),
        lambda text: b"[" + text + b"]",
        lambda text: b"null",
        lambda text: text + b"{}",
        lambda text: text[:-1],
    ],
)
def test_claims_that_could_be_read_in_two_ways_are_refused(
    change: Callable[[bytes], bytes],
) -> None:
    """RFC 7519 §4: names are unique; RFC 8259; the signature is right in all of them."""
    text = json.dumps(claims()).encode()
    assert whose(token(text)) == ALICE
    changed = change(text)
    assert changed != text
    assert whose(token(changed)) is None


# -- refused: keys, algorithms, headers


def hmac_signed(key: bytes, **headers: object) -> str:
    """Sign good claims with HMAC and any bytes as the key, which PyJWT refuses to do."""
    header = {"alg": "HS256", "typ": "at+jwt", "kid": "k1", **headers}
    parts = [json.dumps(part).encode() for part in (header, claims())]
    text = ".".join(map(base64url, parts))
    return f"{text}.{base64url(hmac.digest(key, text.encode(), sha256))}"


@pytest.mark.parametrize("kind", ["P-256", "RSA"])
def test_a_public_key_is_no_secret(kind: str) -> None:
    """RFC 8725 §2.1: what everybody knows must not check a MAC."""
    key = private_key(kind)
    pem = public_pem(key)
    published = Issuer(public_jwk(key))
    for secret in (pem, pem.strip(), json.dumps(public_jwk(key))):
        forged = hmac_signed(secret.encode())
        assert whose(forged, verifier(published)) is None
        assert whose(forged, verifier(public_key=pem)) is None
    with pytest.raises(ConfigurationError, match="give it as public_key"):
        verifier(secret=pem)
    with pytest.raises(ConfigurationError, match="algorithms must be some of"):
        verifier(public_key=pem, algorithms=["RS256", "HS256"])
    # The same text would be right, were the key a secret: the test forges well.
    assert whose(hmac_signed(SECRET.encode()), verifier(secret=SECRET)) == ALICE


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE", ""])
@pytest.mark.parametrize("signature", ["", "AA"])
def test_a_token_without_a_signature_is_refused(algorithm: str, signature: str) -> None:
    """RFC 8725 §3.2."""
    header = {"alg": algorithm, "typ": "at+jwt", "kid": "k1"}
    parts = [json.dumps(part).encode() for part in (header, claims())]
    unsigned = ".".join([*map(base64url, parts), signature])
    assert whose(unsigned) is None
    assert whose(unsigned, verifier(secret=SECRET)) is None


@pytest.mark.parametrize("name", ["none", "HS256", "ES256K", "RS255", "ES256 "])
def test_no_configuration_allows_what_is_not_safe(name: str) -> None:
    with pytest.raises(ConfigurationError, match="algorithms must be some of"):
        verifier(algorithms=["ES256", name])
    with pytest.raises(ConfigurationError, match="algorithms must be some of"):
        verifier(secret=SECRET, algorithms=["RS256"])
    with pytest.raises(ConfigurationError, match="algorithms must be some of"):
        verifier(algorithms=[])


def test_an_algorithm_that_is_not_allowed_is_refused() -> None:
    """RFC 8725 §3.1."""
    assert whose(token(), verifier(algorithms=["RS256", "ES384"])) is None
    assert whose(token(), verifier(algorithms="ES256")) == ALICE


def test_the_key_is_the_one_of_that_name_and_that_kind() -> None:
    """RFC 8725 §3.1; https://github.com/PrefectHQ/fastmcp/issues/3430."""
    p256, other, rsa_key = private_key("P-256"), private_key("P-256", 1), private_key("RSA")
    issuer = Issuer(public_jwk(p256), public_jwk(other, "k2"), public_jwk(rsa_key, "rsa"))
    checked = verifier(issuer)
    assert whose(token(key=other, kid="k2"), checked) == ALICE
    assert whose(token(key=other, kid="k1"), checked) is None
    assert whose(token(kid="k2"), checked) is None
    assert whose(token(kid="rsa"), checked) is None
    assert whose(token(key=rsa_key, algorithm="RS256", kid="k1"), checked) is None
    assert whose(token(key=rsa_key, algorithm="RS256", kid=None), checked) == ALICE
    assert whose(token(kid=None), checked) is None  # which of two is not said
    assert whose(token(key=private_key("P-256", 2)), checked) is None


@pytest.mark.parametrize(
    "kid", ["../../dev/null", "' OR 1=1 --", "", "K1", "k1\0", "http://evil.example/k", "k" * 9_000]
)
def test_a_name_of_a_key_is_nothing_but_a_name(kid: str) -> None:
    issuer = Issuer(public_jwk(private_key("P-256")))
    assert whose(token(kid=kid), verifier(issuer)) is None
    assert issuer.urls == {JWKS_URL}


@pytest.mark.parametrize("header", ["jku", "x5u", "jwk", "x5c"])
def test_a_key_or_an_address_in_the_token_is_not_looked_at(header: str) -> None:
    """RFC 8725 §3.10: no request to an address that a token names."""
    attacker = private_key("P-256", 1)
    value = {"jwk": public_jwk(attacker), "x5c": ["AAAA"]}.get(header, "https://evil.example/k")
    issuer = Issuer(public_jwk(private_key("P-256")))
    assert whose(token(key=attacker, **{header: value}), verifier(issuer)) is None
    assert whose(token(**{header: value}), verifier(issuer)) == ALICE
    assert issuer.urls == {JWKS_URL}


@pytest.mark.parametrize(
    "headers",
    [
        {"typ": "id_token"},
        {"typ": "refresh+jwt"},
        {"typ": "dpop+jwt"},
        {"typ": "logout+jwt"},
        {"typ": "secevent+jwt"},
        {"typ": "application/application/at+jwt"},
        {"crit": ["b64"], "b64": True},
        {"crit": ["exp"], "exp": 1},
    ],
)
def test_a_header_that_says_otherwise_is_refused(headers: dict[str, Any]) -> None:
    """RFC 8725 §3.11, RFC 7515 §4.1.11."""
    assert whose(token(**headers)) is None


@pytest.mark.parametrize(
    "header",
    [
        b'{"alg":"ES256","kid":5}',
        b'{"alg":"ES256","typ":5}',
        b'{"alg":5}',
        b'{"kid":"k1"}',
        b'{"alg":"none","alg":"ES256","kid":"k1"}',
        b'{"alg":"ES256","crit":[]}',
        b'{"alg":["ES256"]}',
        b'["ES256"]',
        b"null",
        b"{",
        b"\xff",
        b'{"alg":"ES256","x":' + b"[" * 20 + b"]" * 20 + b"}",
    ],
)
def test_a_header_that_cannot_be_read_is_refused(header: bytes) -> None:
    _, payload, signature = token().split(".")
    assert whose(f"{base64url(header)}.{payload}.{signature}") is None


@pytest.mark.parametrize(
    "given",
    [
        "",
        ".",
        "..",
        "a",
        "a.b",
        "a.b.c",
        "a.b.c.d",
        "abcde.b.c",
        "é.é.é",
        "\ud800",
        "a" * 1_000_000,
        "opaque-token-of-another-kind",
    ],
)
def test_what_is_no_signed_jwt_is_refused(given: str) -> None:
    """RFC 7515 §7.1."""
    assert whose(given) is None


def test_nothing_of_a_token_may_be_changed() -> None:
    head, payload, signature = token().split(".")
    richer = base64url(json.dumps(claims(sub="root")).encode())
    for forged in (
        f"{head}.{richer}.{signature}",
        f"{head}.{payload}.{signature[:-4]}",
        f"{head}.{payload}.{signature}AAAA",
        f"{head}.{payload}.{base64url(b'0' * 64)}",
        f"{head}=.{payload}.{signature}",
        f"{head}.{payload}.{signature}=",
        f" {head}.{payload}.{signature}",
        f"{head}.{payload}.{signature}\n",
        f"{head}..{signature}",
        f"{head}.{payload}.",
    ):
        assert whose(forged) is None


def test_a_token_over_the_largest_size_is_not_looked_at() -> None:
    big = token(claims(pad="x" * 16_384))
    issuer = Issuer(public_jwk(private_key("P-256")))
    assert whose(big, verifier(issuer)) is None
    assert issuer.fetches == []


def test_a_key_that_is_too_short_checks_nothing() -> None:
    """RFC 7518 §3.2 and §3.3."""
    with pytest.raises(ConfigurationError, match="fewer than 32 bytes"):
        verifier(secret="short")
    given = hmac_signed(SECRET.encode(), alg="HS512")
    assert whose(given, verifier(secret=SECRET, algorithms=["HS512"])) is None


# -- time


def test_a_token_ends_while_it_is_remembered() -> None:
    """ours: a result is kept, and never beyond the end of its token."""
    clock = Clock()
    checked = verifier(now=clock)
    given = token(claims(exp=int(NOW) + 5))
    for seconds, expected in ((0.0, ALICE), (34.9, ALICE), (35.0, None)):
        clock.now = NOW + seconds
        assert whose(given, checked) == expected


def test_a_withdrawn_key_does_not_count_for_longer_than_a_minute_and_its_age() -> None:
    clock = Clock()
    issuer = Issuer(public_jwk(private_key("P-256")))
    checked = verifier(issuer, now=clock)
    given = token(claims(exp=int(NOW) + 10_000))

    async def withdrawn() -> list[object]:
        found: list[object] = [await checked.verify(given)]
        issuer.publish(public_jwk(private_key("P-256", 1), "k2"))
        await asyncio.sleep(600.0)
        clock.now = NOW + 59.0
        found.append(await checked.verify(given))
        clock.now = NOW + 60.0
        found.append(await checked.verify(given))
        return found

    assert run_virtual(withdrawn) == [ALICE, ALICE, None]


def test_a_bounded_number_of_results_is_kept() -> None:
    """ours: docs/limits.md."""
    checked = verifier(secret=SECRET)

    async def many() -> None:
        for number in range(1_100):
            given = token(claims(jti=str(number)), key=SECRET, algorithm="HS256", kid=None)
            assert await checked.verify(given) == ALICE
            assert await checked.verify(given) == ALICE

    asyncio.run(many())
    assert len(checked._results) == 1_024


def test_a_refusal_is_not_remembered() -> None:
    clock = Clock()
    checked = verifier(now=clock)
    given = token(claims(nbf=int(NOW) + 100))
    assert whose(given, checked) is None
    clock.now = NOW + 100
    assert whose(given, checked) == ALICE
    assert len(checked._results) == 1


# -- with an issuer that is not always there


def test_however_many_tokens_come_the_keys_are_fetched_once() -> None:
    """ours: single flight, through the whole way."""
    issuer = Issuer(public_jwk(private_key("P-256")), delay=3.0)
    checked = verifier(issuer)

    async def parallel() -> set[Principal | None]:
        given = [token(claims(jti=str(number))) for number in range(20)]
        return set(await asyncio.gather(*map(checked.verify, given)))

    assert run_virtual(parallel) == {ALICE}
    assert issuer.fetches == [0.0]


def test_a_rotated_key_is_found() -> None:
    issuer = Issuer(public_jwk(private_key("P-256")))
    checked = verifier(issuer)
    new = token(key=private_key("P-256", 1), kid="k2")

    async def rotates() -> list[Principal | None]:
        found = [await checked.verify(token())]
        issuer.publish(public_jwk(private_key("P-256")), public_jwk(private_key("P-256", 1), "k2"))
        found.append(await checked.verify(new))
        await asyncio.sleep(30.0)
        found.append(await checked.verify(new))
        return found

    assert run_virtual(rotates) == [ALICE, None, ALICE]


def test_a_client_keeps_its_token_while_the_issuer_is_down() -> None:
    """ours: 503 and not 401, which would make every client log in again."""
    issuer = Issuer()
    issuer.answer = OSError()
    checked = verifier(issuer)
    authenticator = BearerAuthenticator(checked, resource=ProtectedResource(AUDIENCE))
    authorization = [b"Bearer " + token().encode()]

    async def comes_back() -> list[object]:
        with pytest.raises(KeysUnavailable):
            await checked.verify(token())
        found: list[object] = [await authenticator.authenticate(authorization)]
        await asyncio.sleep(5.0)
        issuer.publish(public_jwk(private_key("P-256")))
        found.append(await authenticator.authenticate(authorization))
        return found

    assert run_virtual(comes_back) == [
        Challenge(503, None, "Tokens cannot be checked now"),
        Authenticated(f"{ISSUER}|alice", ALICE.scopes),
    ]


# -- configuration


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"jwks_url": None}, "give one of"),
        ({"jwks_url": JWKS_URL, "secret": SECRET}, "give one of"),
        ({"jwks_url": "http://login.example.com/k"}, "must be https"),
        ({"issuer": ""}, "issuer is the exact"),
        ({"audience": ""}, "audience is what"),
        ({"audience": []}, "audience is what"),
        ({"audience": [AUDIENCE, ""]}, "audience is what"),
        ({"leeway": -1.0}, "leeway"),
        ({"leeway": float("inf")}, "leeway"),
        ({"leeway": float("nan")}, "leeway"),
        ({"public_key": "x"}, "not a public RSA, EC or Ed25519 key"),
        ({"public_key": "-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----"}, "not a public"),
    ],
)
def test_a_configuration_that_cannot_be_meant_is_refused(
    options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        verifier(**options)


def test_without_the_extra_the_way_to_get_it_is_told() -> None:
    """ours: PyJWT is an extra; importing the module does not need it."""
    program = """
import sys
sys.modules["jwt"] = None
from raxol_mcp.errors import ConfigurationError
from raxol_mcp.server.auth_jwt import JwtVerifier
try:
    JwtVerifier(issuer="i", audience="a", secret="s" * 32)
except ConfigurationError as error:
    print(error)
"""
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert found.stdout == "JwtVerifier needs PyJWT with cryptography: pip install raxol-mcp[jwt]\n"


def test_importing_the_module_loads_neither_pyjwt_nor_cryptography() -> None:
    """ours: a server pays for what it uses."""
    program = (
        "import sys, raxol_mcp.server.auth_jwt; print({'jwt', 'cryptography'} & {*sys.modules})"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert found.stdout == "set()\n"


# -- what is shown


def test_neither_secret_nor_token_is_shown(caplog: pytest.LogCaptureFixture) -> None:
    """ours: planted secrets must not come out of any end."""
    caplog.set_level(logging.DEBUG)
    checked = verifier(secret=SECRET)
    good = token(key=SECRET, algorithm="HS256", kid="planted-kid")
    shown = [repr(checked), repr(asyncio.run(checked.verify(good))), repr(checked)]
    bad = token(
        claims(sub="planted-subject", aud="planted-audience"), key=SECRET, algorithm="HS256"
    )
    shown.append(repr(asyncio.run(checked.verify(bad))))
    with pytest.raises(ConfigurationError) as raised:
        verifier(secret=SECRET[:20])
    shown.append(f"{raised.value!r} {raised.value.__context__!r}")
    everything = caplog.text + " ".join(shown)
    assert "a token was refused: it is for another audience" in everything
    for planted in (SECRET[:20], "planted", *good.split("."), *bad.split(".")):
        assert planted not in everything


def test_the_log_says_why_a_token_was_refused(caplog: pytest.LogCaptureFixture) -> None:
    """ours: for whoever sets a server up; at debug, because anybody can cause it."""
    caplog.set_level(logging.DEBUG, "raxol_mcp.auth")
    whose(token(claims(iss="x")))
    whose(token(claims(exp=None)))
    whose(token(claims(sub=None)))
    whose(token(kid="k2"))
    assert [record.getMessage() for record in caplog.records if record.name != "asyncio"] == [
        "a token was refused: it is from another issuer",
        "a token was refused: it has ended, or has no end",
        "a token was refused: it names no subject",
        "a token was refused: its key is not one of the issuer's",
    ]
