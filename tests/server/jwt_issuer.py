"""An authorization server for tests: keys, tokens, and a JWK Set that is fetched from it."""

import asyncio
import json
from base64 import urlsafe_b64encode
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

ISSUER = "https://login.example.com"
JWKS_URL = f"{ISSUER}/.well-known/jwks.json"
AUDIENCE = "https://mcp.example.com/mcp"
NOW = 1_800_000_000.0


@cache
def private_key(kind: str, number: int = 0) -> Any:
    """Return the same key for the same words; making an RSA key takes long."""
    match kind:
        case "RSA":
            return rsa.generate_private_key(public_exponent=65537, key_size=2048)
        case "P-256":
            return ec.generate_private_key(ec.SECP256R1())
        case "P-384":
            return ec.generate_private_key(ec.SECP384R1())
        case "Ed25519":
            return ed25519.Ed25519PrivateKey.generate()
        case _:
            raise AssertionError(kind)


def public_jwk(key: PrivateKeyTypes, key_id: str | None = "k1", **members: object) -> Any:
    """Write the public half of a key as a JWK; members that are None are left out."""
    public = key.public_key()
    match public:
        case rsa.RSAPublicKey():
            jwk: dict[str, Any] = RSAAlgorithm.to_jwk(public, as_dict=True)
        case ec.EllipticCurvePublicKey():
            jwk = ECAlgorithm.to_jwk(public, as_dict=True)
        case ed25519.Ed25519PublicKey():
            jwk = OKPAlgorithm.to_jwk(public, as_dict=True)
        case _:
            raise AssertionError(key)
    jwk.pop("key_ops", None)
    jwk.update(kid=key_id, **members)
    return {name: value for name, value in jwk.items() if value is not None}


def public_pem(key: PrivateKeyTypes) -> str:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def jwk_set(*keys: object) -> bytes:
    return json.dumps({"keys": keys}).encode()


def base64url(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def claims(**changes: object) -> dict[str, Any]:
    """Return the claims of a good token, changed; those that are None are left out."""
    found: dict[str, Any] = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "alice",
        "client_id": "editor",
        "scope": "files:read files:write",
        "iat": int(NOW) - 10,
        "exp": int(NOW) + 300,
    }
    found.update(changes)
    return {name: value for name, value in found.items() if value is not None}


def token(
    payload: dict[str, Any] | bytes | None = None,
    *,
    key: Any = None,
    algorithm: str = "ES256",
    **headers: object,
) -> str:
    """Sign claims (the good ones by default), or any bytes; headers that are None are left out."""
    text = payload if isinstance(payload, bytes) else json.dumps(payload or claims()).encode()
    given: dict[str, Any] = {"kid": "k1", "typ": "at+jwt", **headers}
    given = {name: value for name, value in given.items() if value is not None or name == "typ"}
    return jwt.PyJWS().encode(
        text, private_key("P-256") if key is None else key, algorithm, headers=given
    )


class Issuer:
    """Publishes keys. `fetches` says when somebody asked, on the loop's clock."""

    def __init__(self, *keys: object, delay: float = 0.0) -> None:
        self.answer: bytes | BaseException = jwk_set(*keys)
        self.delay = delay
        self.fetches: list[float] = []
        self.urls: set[str] = set()

    def publish(self, *keys: object) -> None:
        self.answer = jwk_set(*keys)

    async def __call__(self, url: str) -> bytes:
        self.fetches.append(asyncio.get_running_loop().time())
        self.urls.add(url)
        await asyncio.sleep(self.delay)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer
