"""Tokens that an authorization server signed: JSON Web Tokens, checked with PyJWT.

Not OAuth: nothing here gets a token for anybody. PyJWT checks the signature; what the signed text
says is judged here, stricter than any library does by default, because each leniency has been a
hole somewhere (RFC 8725; MCP 2026-07-28 basic/authorization §Token Handling):

* The allow-list of algorithms is configured. A public key checks asymmetric ones alone, a shared
  secret HS256 and its like alone, so that no key is ever used as the other kind.
* The key is the one of that name at the configured place, and for that algorithm. Keys and
  addresses inside a token (`jwk`, `jku`, `x5c`, `x5u`) are not looked at.
* The token is for this server (`aud`), from this issuer (`iss`), to the letter; it has an end.
* It is an access token: not a refresh token, not an ID token, which the same key signs.
* Headers and claims are strict JSON: a duplicate claim is refused, not chosen from.

Install it with `pip install raxol-mcp[jwt]`.
"""

from __future__ import annotations

import logging
import re
import time
from base64 import urlsafe_b64decode
from collections.abc import Callable, Collection, Iterable
from hashlib import sha256
from math import isfinite
from typing import TYPE_CHECKING, Final, cast

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.server.auth import MAX_TOKEN_BYTES, Principal
from raxol_mcp.server.jwks import ASYMMETRIC, Fetch, KeySet, KeysUnavailable
from raxol_mcp.server.protected_resource import ProtectedResource
from raxol_mcp.wire.strict import Malformed, parse

if TYPE_CHECKING:
    from jwt import PyJWS

__all__ = ["TOKEN_TYPES", "JwtVerifier", "KeysUnavailable"]

SYMMETRIC: Final = ("HS256", "HS384", "HS512")
# RFC 9068 §2.1; the others are what issuers write that are older than it.
TOKEN_TYPES: Final[tuple[str | None, ...]] = ("at+jwt", "JWT", None)

_logger = logging.getLogger("raxol_mcp.auth")

_COMPACT: Final = re.compile(r"[A-Za-z0-9_\-]+(?:\.[A-Za-z0-9_\-]+){2}")  # RFC 7515 §7.1
_MAX_DEPTH: Final = 16
_MIN_SECRET_BYTES: Final = 32  # RFC 7518 §3.2, for HS256
_MAX_SUBJECT: Final = 1_024  # characters: it is kept with every session and quota
_MAX_RESULTS: Final = 1_024
_RESULT_AGE: Final = 60.0  # seconds; so long a key that the issuer withdrew still counts
# What claims that name the use of a token say of one that is for access, without case. Keycloak
# writes `typ`, Amazon Cognito `token_use`, Simple JWT `token_type`.
_USES: Final = ("typ", "token_use", "token_type")
_ACCESS: Final = frozenset({"access", "access_token", "at+jwt", "bearer", "jwt"})


class _Refused(Exception):
    """The token is not valid here. The text says why, for our log: never a part of the token."""


class JwtVerifier:
    """The `TokenVerifier` of one issuer.

    ```python
    JwtVerifier(
        issuer="https://login.example.com",
        audience=resource,
        jwks_url="https://login.example.com/.well-known/jwks.json",
    )
    ```

    `audience` is what `aud` must contain: the `ProtectedResource`, its URL, or several. The key is
    exactly one of: `jwks_url` (fetched at the first token), `public_key` (PEM), `secret` (at least
    32 bytes). `algorithms` narrows what the kind of key allows: everything asymmetric, or HS256.
    `token_types` are the `typ` headers to take, without case; None is a token without one.
    `leeway`, in seconds, allows for clocks that differ. `fetch(url)` returns the JWK Set; the
    default is `jwks.fetch_keys`. `now()` is the time in seconds since 1970.

    Raises `ConfigurationError`, also when PyJWT is missing.
    """

    __slots__ = (
        "_algorithms",
        "_audiences",
        "_issuer",
        "_jws",
        "_key",
        "_keys",
        "_leeway",
        "_now",
        "_results",
        "_types",
    )
    bounded: Final = True  # it waits for nothing but the keys, and KeySet bounds that

    def __init__(
        self,
        *,
        issuer: str,
        audience: ProtectedResource | str | Iterable[str],
        jwks_url: str | None = None,
        public_key: str | None = None,
        secret: str | bytes | None = None,
        algorithms: Iterable[str] | None = None,
        token_types: Collection[str | None] = TOKEN_TYPES,
        leeway: float = 30.0,
        fetch: Fetch | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        if [jwks_url, public_key, secret].count(None) != 2:
            raise ConfigurationError("give one of jwks_url, public_key and secret")
        if not issuer:
            raise ConfigurationError("issuer is the exact `iss` of the tokens")
        if not (isfinite(leeway) and leeway >= 0):
            raise ConfigurationError("leeway is a number of seconds from 0")
        self._issuer = issuer
        self._audiences = _audiences(audience)
        self._algorithms = _allowed(algorithms, symmetric=secret is not None)
        types = [token_types] if isinstance(token_types, str) else token_types
        self._types = frozenset(map(_type, types))
        self._leeway = leeway
        self._now = now
        self._jws = _jws(self._algorithms)
        self._keys: KeySet | None = None
        self._key: object | None = None
        if jwks_url is not None:
            self._keys = KeySet(jwks_url, algorithms=self._algorithms, fetch=fetch)
        elif public_key is not None:
            self._key = _public_key(public_key)
        else:
            self._key = _secret(cast("str | bytes", secret))
        # Whose a token is, by its digest, and until when: the token itself is not kept.
        self._results: dict[bytes, tuple[Principal, float]] = {}

    async def verify(self, token: str) -> Principal | None:
        """Say whose token this is; None when it is not valid here.

        Raises `KeysUnavailable` when the keys that would tell cannot be fetched. A result is kept
        for a minute, and never beyond the end of the token.
        """
        now = self._now()
        digest = sha256(token.encode("utf-8", "surrogatepass")).digest()
        principal, until = self._results.get(digest, (None, 0.0))
        if principal is not None and now < until:
            return principal
        try:
            claims = await self._signed_claims(token)
            principal, ends_at = self._judged(claims, now)
        except _Refused as refusal:
            _logger.debug("a token was refused: %s", refusal)
            return None
        self._keep(digest, principal, min(ends_at, now + _RESULT_AGE))
        return principal

    def __repr__(self) -> str:
        return f"JwtVerifier(issuer={self._issuer!r}, audience={sorted(self._audiences)!r})"

    async def _signed_claims(self, token: str) -> dict[str, object]:
        """Return what the token says, once it is certain who says it."""
        if len(token) > MAX_TOKEN_BYTES or not _COMPACT.fullmatch(token):
            raise _Refused("it is not a signed JWT")
        header = _object(_decoded(token.partition(".")[0]), "the header")
        algorithm = header.get("alg")
        if not isinstance(algorithm, str) or algorithm not in self._algorithms:
            raise _Refused("its algorithm is not allowed")
        if "crit" in header:
            raise _Refused("it has extensions that must be understood")
        kind = header.get("typ")
        if not (kind is None or isinstance(kind, str)) or _type(kind) not in self._types:
            raise _Refused("it is of another type")
        key_id = header.get("kid")
        if not (key_id is None or isinstance(key_id, str)):
            raise _Refused("the name of its key is no string")
        key = self._key if self._keys is None else await self._keys.find(key_id, algorithm)
        if key is None:
            raise _Refused("its key is not one of the issuer's")
        return _object(self._checked(token, key, algorithm), "the claims")

    def _checked(self, token: str, key: object, algorithm: str) -> bytes:
        from jwt import PyJWTError

        try:
            # Any: PyJWT's own name for the keys is a union of classes that load cryptography.
            signed = self._jws.decode_complete(token, key, algorithms=[algorithm])  # type: ignore[arg-type]  # see above
        except (PyJWTError, ValueError, TypeError):
            raise _Refused("its signature is not the key's") from None
        return cast("bytes", signed["payload"])

    def _judged(self, claims: dict[str, object], now: float) -> tuple[Principal, float]:
        """Return whose token it is and when it ends, in seconds since 1970, leeway included."""
        if claims.get("iss") != self._issuer:
            raise _Refused("it is from another issuer")
        audience = claims.get("aud")
        audiences = audience if isinstance(audience, list) else [audience]
        if not all(isinstance(each, str) for each in audiences):
            raise _Refused("it names no audience")
        if self._audiences.isdisjoint(audiences):
            raise _Refused("it is for another audience")
        ends_at = _instant(claims, "exp")
        if ends_at is None or now >= ends_at + self._leeway:
            raise _Refused("it has ended, or has no end")
        for claim in ("nbf", "iat"):
            begins_at = _instant(claims, claim)
            if begins_at is not None and now < begins_at - self._leeway:
                raise _Refused("it is not valid yet")
        for claim in _USES:
            use = claims.get(claim)
            if use is not None and (not isinstance(use, str) or use.lower() not in _ACCESS):
                raise _Refused("it is not for access")
        return self._principal(claims), ends_at + self._leeway

    def _principal(self, claims: dict[str, object]) -> Principal:
        subject = claims.get("sub")
        if not isinstance(subject, str) or not 0 < len(subject) <= _MAX_SUBJECT:
            raise _Refused("it names no subject")
        client = claims.get("client_id", claims.get("azp"))
        return Principal(
            subject, self._issuer, client if isinstance(client, str) else None, _scopes(claims)
        )

    def _keep(self, digest: bytes, principal: Principal, until: float) -> None:
        self._results.pop(digest, None)
        if len(self._results) >= _MAX_RESULTS:
            del self._results[next(iter(self._results))]
        self._results[digest] = (principal, until)


def _decoded(part: str) -> bytes:
    try:
        # Lenient about the last bits; PyJWT, which reads the same text after it, is not.
        return urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except ValueError:
        raise _Refused("it is not base64url") from None


def _names(given: str | Iterable[str]) -> tuple[str, ...]:
    """Make one string a list of one, instead of one of its letters."""
    return (given,) if isinstance(given, str) else tuple(given)


def _object(text: bytes, what: str) -> dict[str, object]:
    try:
        value = parse(text, max_depth=_MAX_DEPTH)
    except Malformed:
        raise _Refused(f"{what} cannot be read in one way alone") from None
    if not isinstance(value, dict):
        raise _Refused(f"{what} are no object")
    return value


def _instant(claims: dict[str, object], claim: str) -> float | None:
    value = claims.get(claim)
    if claim not in claims:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _Refused(f"its {claim} is no number")
    return value


def _scopes(claims: dict[str, object]) -> frozenset[str]:
    """Read `scope` (RFC 9068 §2.2.3) or, where an issuer writes that instead, `scp`.

    A list of strings is taken for either. Anything else grants nothing.
    """
    granted = claims.get("scope", claims.get("scp"))
    if isinstance(granted, str):
        granted = granted.split(" ")
    if not isinstance(granted, list):
        return frozenset()
    return frozenset(scope for scope in granted if isinstance(scope, str) and scope)


def _type(kind: str | None) -> str | None:
    """Spell a `typ` in its one way (RFC 7515 §4.1.9)."""
    return None if kind is None else kind.lower().removeprefix("application/")


def _audiences(audience: ProtectedResource | str | Iterable[str]) -> frozenset[str]:
    named = audience.url if isinstance(audience, ProtectedResource) else audience
    found = frozenset(_names(named))
    if not found or "" in found:
        raise ConfigurationError("audience is what `aud` must contain: the URL of this server")
    return found


def _allowed(algorithms: Iterable[str] | None, *, symmetric: bool) -> tuple[str, ...]:
    possible = SYMMETRIC if symmetric else ASYMMETRIC
    if algorithms is None:
        return ("HS256",) if symmetric else ASYMMETRIC
    allowed = _names(algorithms)
    if not allowed or not set(allowed) <= set(possible):
        raise ConfigurationError(
            f"algorithms must be some of {', '.join(possible)} with this kind of key"
        )
    return allowed


def _jws(algorithms: tuple[str, ...]) -> PyJWS:
    try:
        from jwt import PyJWS
        from jwt.algorithms import has_crypto
    except ImportError:
        has_crypto = False
    if not has_crypto:
        raise ConfigurationError(
            "JwtVerifier needs PyJWT with cryptography: pip install raxol-mcp[jwt]"
        )
    return PyJWS(algorithms=algorithms, options={"enforce_minimum_key_length": True})


def _public_key(text: str) -> object:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    usable = rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey
    try:
        key = load_pem_public_key(text.encode())
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, usable):
        raise ConfigurationError("public_key is not a public RSA, EC or Ed25519 key in PEM")
    return key


def _secret(secret: str | bytes) -> bytes:
    from jwt.utils import is_pem_format, is_ssh_key

    found = secret.encode() if isinstance(secret, str) else secret
    if len(found) < _MIN_SECRET_BYTES:
        raise ConfigurationError(f"secret has fewer than {_MIN_SECRET_BYTES} bytes")
    if is_pem_format(found) or is_ssh_key(found):
        # The one that everybody knows: whoever has it could sign.
        raise ConfigurationError("secret is a public or private key: give it as public_key")
    return found
