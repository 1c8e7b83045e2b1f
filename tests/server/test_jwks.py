"""server/jwks.py: whose keys they are, when they are fetched, and what is made of them."""

import asyncio
import json
import logging
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.server.jwks import ASYMMETRIC, KeySet, KeysUnavailable, fetch_keys, read_keys
from raxol_mcp.testing.virtual_loop import run_virtual
from tests.server.jwt_issuer import JWKS_URL, Issuer, jwk_set, private_key, public_jwk

EC = public_jwk(private_key("P-256"))


def jwk(key_id: str | None = "k1", **members: object) -> Any:
    return public_jwk(private_key("P-256"), key_id, **members)


def key_set(issuer: Issuer, **times: float) -> KeySet:
    return KeySet(JWKS_URL, fetch=issuer, **times)  # type: ignore[arg-type]  # times alone


async def known(keys: KeySet, key_id: str | None, algorithm: str = "ES256") -> bool | None:
    """Say whether a key is found; None when nobody can say."""
    try:
        return await keys.find(key_id, algorithm) is not None
    except KeysUnavailable:
        return None


# -- when


def test_nothing_is_fetched_before_a_token_comes() -> None:
    """ours: a server starts without its authorization server."""
    issuer = Issuer(EC)

    async def looks() -> None:
        keys = key_set(issuer)
        assert issuer.fetches == []
        assert await known(keys, "k1")
        assert await known(keys, "k1")
        assert await known(keys, None)

    run_virtual(looks)
    assert issuer.fetches == [0.0]
    assert issuer.urls == {JWKS_URL}


def test_however_many_wait_the_keys_are_fetched_once() -> None:
    """ours: single flight."""
    issuer = Issuer(EC, delay=2.0)

    async def looks() -> list[bool | None]:
        keys = key_set(issuer)
        names = ["k1", "k1", "other", "k1", "x"] * 200
        return await asyncio.gather(*(known(keys, name) for name in names))

    assert run_virtual(looks) == [True, True, False, True, False] * 200
    assert issuer.fetches == [0.0]


def test_one_who_leaves_does_not_end_the_wait_of_others() -> None:
    issuer = Issuer(EC, delay=2.0)

    async def looks() -> bool | None:
        keys = key_set(issuer)
        first = asyncio.create_task(known(keys, "k1"))
        second = asyncio.create_task(known(keys, "k1"))
        await asyncio.sleep(1.0)
        first.cancel()
        await asyncio.wait([first])
        assert first.cancelled()
        return await second

    assert run_virtual(looks) is True
    assert issuer.fetches == [0.0]


def test_a_failure_that_nobody_waits_for_any_more_is_no_trouble() -> None:
    """ours: `filterwarnings = error` sees an exception that was never retrieved."""
    issuer = Issuer(delay=2.0)
    issuer.answer = OSError()

    async def looks() -> None:
        keys = key_set(issuer)
        task = asyncio.create_task(known(keys, "k1"))
        await asyncio.sleep(1.0)
        task.cancel()
        await asyncio.sleep(5.0)

    run_virtual(looks)


def test_invented_names_cost_a_fetch_in_a_while() -> None:
    """ours: a flood of unknown key ids must not become a flood of requests to the issuer."""
    issuer = Issuer(EC)

    async def attacks() -> None:
        keys = key_set(issuer)
        for number in range(100):
            assert await known(keys, f"../../dev/null{number}") is False
            await asyncio.sleep(1.0)

    run_virtual(attacks)
    assert issuer.fetches == [0.0, 30.0, 60.0, 90.0]


def test_a_new_key_is_known_at_once_when_the_last_fetch_is_a_while_ago() -> None:
    """ours: rotation; a name that is not known makes the keys be fetched."""
    issuer = Issuer(EC)

    async def rotates() -> None:
        keys = key_set(issuer)
        assert await known(keys, "k1")
        await asyncio.sleep(31.0)
        issuer.publish(EC, jwk("k2"))
        assert await known(keys, "k2")
        assert await known(keys, "k1")

    run_virtual(rotates)
    assert issuer.fetches == [0.0, 31.0]


def test_a_key_that_was_withdrawn_is_forgotten() -> None:
    issuer = Issuer(EC)

    async def withdraws() -> None:
        keys = key_set(issuer)
        assert await known(keys, "k1")
        issuer.publish(jwk("k2"))
        await asyncio.sleep(599.0)
        assert await known(keys, "k1")
        await asyncio.sleep(1.0)
        assert await known(keys, "k1") is False
        assert await known(keys, "k2")

    run_virtual(withdraws)
    assert issuer.fetches == [0.0, 600.0]


# -- failures


def test_not_now_is_not_never(caplog: pytest.LogCaptureFixture) -> None:
    """ours: a client must not throw its token away because the issuer is down."""
    issuer = Issuer()
    issuer.answer = OSError("no route to 10.0.0.7")

    async def looks() -> None:
        keys = key_set(issuer)
        assert await known(keys, "k1") is None
        await asyncio.sleep(4.0)
        assert await known(keys, "k1") is None
        await asyncio.sleep(1.0)
        issuer.publish(EC)
        assert await known(keys, "k1")
        assert await known(keys, "other") is False

    run_virtual(looks)
    assert issuer.fetches == [0.0, 5.0]
    assert caplog.messages == [f"the keys of {JWKS_URL} cannot be fetched: OSError"]


def test_keys_of_before_serve_while_fetching_fails() -> None:
    issuer = Issuer(EC)

    async def looks() -> None:
        keys = key_set(issuer)
        assert await known(keys, "k1")
        issuer.answer = OSError()
        await asyncio.sleep(3_599.0)
        assert await known(keys, "k1")
        assert await known(keys, "k2") is None
        await asyncio.sleep(1.0)
        assert await known(keys, "k1") is None

    run_virtual(looks)


def test_a_fetch_that_hangs_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    issuer = Issuer(EC, delay=1_000.0)

    async def looks() -> float:
        assert await known(key_set(issuer), "k1") is None
        return asyncio.get_running_loop().time()

    assert run_virtual(looks) == 10.0
    assert caplog.messages == [f"the keys of {JWKS_URL} cannot be fetched: TimeoutError"]


def test_what_is_no_set_of_keys_is_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    issuer = Issuer()

    async def looks() -> bool | None:
        return await known(key_set(issuer), "k1")

    assert run_virtual(looks) is None
    assert caplog.messages == [f"the keys of {JWKS_URL} cannot be fetched: there is no usable key"]


def test_the_address_is_https_and_its_query_is_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    """RFC 9728 §7.7 by analogy."""
    with pytest.raises(ConfigurationError, match="the address of the keys must be https"):
        KeySet("http://login.example.com/jwks")
    issuer = Issuer()
    keys = KeySet(f"{JWKS_URL}?secret=s3cret", fetch=issuer)

    async def looks() -> str:
        with pytest.raises(KeysUnavailable) as raised:
            await keys.find("k1", "ES256")
        return str(raised.value)

    assert "s3cret" not in run_virtual(looks) + caplog.text + repr(keys)
    assert issuer.urls == {f"{JWKS_URL}?secret=s3cret"}


def test_it_may_serve_one_loop_after_another() -> None:
    issuer = Issuer(EC)
    keys = key_set(issuer)
    assert run_virtual(known, keys, "k1", "ES256") is True
    assert run_virtual(known, keys, "k1", "ES256") is True


# -- which


@pytest.mark.parametrize(
    ("kind", "members", "serves"),
    [
        ("P-256", {}, {"ES256"}),
        ("P-256", {"alg": "ES256", "use": "sig", "key_ops": ["verify"]}, {"ES256"}),
        ("P-384", {}, {"ES384"}),
        ("Ed25519", {}, {"EdDSA"}),
        ("RSA", {}, {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}),
        ("RSA", {"alg": "PS256"}, {"PS256"}),
        ("RSA", {"crv": "ignored"}, {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}),
    ],
)
def test_a_key_serves_what_its_kind_can_do(
    kind: str, members: dict[str, Any], serves: set[str]
) -> None:
    """RFC 8725 §3.1; https://github.com/PrefectHQ/fastmcp/issues/3430."""
    (key,) = read_keys(jwk_set(public_jwk(private_key(kind), **members)), ASYMMETRIC)
    assert key.id == "k1"
    assert key.algorithms == serves
    narrowed = set(ASYMMETRIC) - {"RS256"}
    (key,) = read_keys(jwk_set(EC, public_jwk(private_key(kind), **members)), narrowed)[1:]
    assert key.algorithms == serves - {"RS256"}


@pytest.mark.parametrize(
    "unusable",
    [
        5,
        None,
        {},
        jwk(alg="RS256"),
        jwk(alg="HS256"),
        jwk(alg="none"),
        jwk(alg=["ES256"]),
        jwk(use="enc"),
        jwk(use=["sig"]),
        jwk(key_ops=["sign"]),
        jwk(key_ops="verify"),
        jwk(kty="RSA"),
        jwk(kty=["EC"]),
        jwk(kty=None),
        jwk(crv="P-384"),
        jwk(crv="secp256k1"),
        jwk(crv=["P-256"]),
        jwk(crv=None),
        jwk(x="!"),
        jwk(x=5),
        jwk(x=None),
        jwk(d="AAAA"),
        jwk(key_id=None) | {"kid": 5},
        {"kty": "oct", "k": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldA", "kid": "k1"},
        {"kty": "oct", "k": "c2VjcmV0", "alg": "ES256"},
        {"kty": "RSA", "n": "AQAB"},
        {"kty": "RSA", "n": 5, "e": []},
    ],
)
def test_a_key_that_is_not_for_checking_is_left_out(unusable: object) -> None:
    """RFC 7517 §4: unknown, private, secret and broken keys; the others still serve."""
    usable = jwk("good")
    assert [key.id for key in read_keys(jwk_set(unusable, usable), ASYMMETRIC)] == ["good"]
    with pytest.raises(ValueError, match="no usable key"):
        read_keys(jwk_set(unusable), ASYMMETRIC)


def test_a_private_key_in_public_is_told_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    read_keys(jwk_set(jwk(d="c2VjcmV0"), jwk("good")), ASYMMETRIC)
    assert caplog.messages == ["the issuer publishes a private key: it is not used"]
    assert "c2VjcmV0" not in caplog.text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"", "malformed|truncated"),
        (b"[]", "no JWK Set"),
        (b"{}", "no JWK Set"),
        (b'{"keys": {}}', "no JWK Set"),
        (b'{"keys": [], "keys": []}', "duplicate"),
        (b'{"keys": []}', "no usable key"),
        (jwk_set(*[EC] * 101), "too many keys"),
        (b" " * (512 * 1024 + 1), "too long"),
        (b'{"keys":' + b"[" * 20 + b"]" * 20 + b"}", "nested"),
    ],
)
def test_what_is_no_set_of_keys_is_refused(text: bytes, problem: str) -> None:
    """RFC 7517 §5; ours: bounds."""
    with pytest.raises(ValueError, match=f"(?i){problem}"):
        read_keys(text, ASYMMETRIC)


def test_which_of_two_is_meant_is_not_guessed() -> None:
    """ours: a token must not choose among keys by any other thing than their name."""
    issuer = Issuer(EC, jwk("k2"), jwk("k2"), public_jwk(private_key("RSA"), "rsa"))

    async def looks() -> list[bool | None]:
        keys = key_set(issuer)
        wanted = [("k1", "ES256"), ("k2", "ES256"), (None, "ES256"), (None, "RS256")]
        wanted += [("rsa", "ES256"), ("k1", "RS256"), ("k1", "HS256"), ("k1", "none")]
        return [await known(keys, *each) for each in wanted]

    assert run_virtual(looks) == [True, False, False, True, False, False, False, False]


# -- over HTTP


class Site(BaseHTTPRequestHandler):
    """Answers each path in its own way."""

    def do_GET(self) -> None:
        match self.path:
            case "/keys":
                self.answer(200, jwk_set(EC))
            case "/moved":
                self.answer(302, b"", Location="/keys")
            case "/long":
                self.answer(200, b" " * (512 * 1024 + 5))
            case _:
                self.answer(404, b"no")

    def answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_keys_are_fetched_over_http(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """ours: what is on this machine is never asked for through a proxy."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    text = asyncio.run(fetch_keys(f"{site}/keys"))
    assert json.loads(text) == {"keys": [EC]}


@pytest.mark.parametrize(("path", "problem"), [("/absent", "status 404"), ("/moved", "302")])
def test_an_answer_that_is_not_the_keys_is_a_failure(site: str, path: str, problem: str) -> None:
    """ours: a redirect is not followed; it could lead to a place that nobody configured."""
    with pytest.raises(ValueError, match=problem):
        asyncio.run(fetch_keys(site + path))


def test_a_long_answer_is_not_read_to_its_end(site: str) -> None:
    text = asyncio.run(fetch_keys(f"{site}/long"))
    assert len(text) > 512 * 1024
    with pytest.raises(ValueError, match="too long"):
        read_keys(text, ASYMMETRIC)


def test_an_answer_that_takes_too_long_is_given_up(
    site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raxol_mcp.server.jwks._FETCH_TIMEOUT", -1.0)
    with pytest.raises(TimeoutError):
        asyncio.run(fetch_keys(f"{site}/keys"))


@pytest.mark.parametrize("url", ["file:///etc/passwd", "http://login.example.com/", "ftp://h/"])
def test_only_secure_addresses_are_opened(url: str) -> None:
    with pytest.raises(ConfigurationError):
        asyncio.run(fetch_keys(url))


def test_the_default_fetches_over_http(site: str) -> None:
    run: Callable[..., Any] = asyncio.run
    assert run(known(KeySet(f"{site}/keys"), "k1")) is True


def test_nothing_is_logged_when_all_is_well(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    issuer = Issuer(EC)
    run_virtual(known, key_set(issuer), "k1", "ES256")
    assert caplog.messages == []
