"""The public keys of one issuer: fetched when they are needed, kept, and exchanged in time.

Not a check of tokens: it answers which key has a name. A token's header chooses among the keys
that are here; nothing in a token makes anything be fetched from anywhere else.

When they are fetched, once however many requests wait for it:

| at a look-up | |
|---|---|
| no keys yet, or older than `max_age` | fetch, and answer from what came |
| a name that is not among them | fetch, but not within `cooldown` of the last time |
| fetching failed within the last `retry` seconds | do not fetch |

Somebody who invents key names thus costs one request per `cooldown`, and a new key of the issuer is
known after at most that. When fetching fails, the keys of before serve until `max_stale`; a key
that the issuer withdrew counts no longer. Without a usable answer a look-up raises, because "not
now" is another thing to a client than "never".
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING, Final, TypeAlias

from raxol_mcp.errors import RaxolError
from raxol_mcp.server.secure_urls import secure_url
from raxol_mcp.wire.strict import Malformed, parse
from raxol_mcp.wire.values import Value

if TYPE_CHECKING:
    from urllib.request import Request

__all__ = ["ASYMMETRIC", "Fetch", "Key", "KeySet", "KeysUnavailable", "fetch_keys", "read_keys"]

Fetch: TypeAlias = Callable[[str], Awaitable[bytes]]

# What a public key can check, by its type and curve (RFC 7518 §3.1, RFC 8037 §3.1).
_ALGORITHMS: Final = {
    ("RSA", None): ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    ("OKP", "Ed25519"): ("EdDSA",),
}
ASYMMETRIC: Final = tuple(name for names in _ALGORITHMS.values() for name in names)

_MAX_BYTES: Final = 512 * 1024
_MAX_KEYS: Final = 100
_MAX_DEPTH: Final = 8
_FETCH_TIMEOUT: Final = 10.0  # seconds, all of it
_SOCKET_TIMEOUT: Final = 5.0  # seconds without a byte

_logger = logging.getLogger("raxol_mcp.auth")


class KeysUnavailable(RaxolError):
    """The issuer's keys cannot be had now, so nothing can be said about a token."""


class Key(Value, frozen=True):
    """A public key that can check some algorithms, under the name its issuer gave it."""

    id: str | None
    algorithms: frozenset[str]
    key: object  # of the cryptography package


class KeySet:
    """The keys behind one address (`jwks_uri`), for the look-ups of one event loop at a time.

    Times are in seconds of the loop's clock. `fetch(url)` returns the JSON text of a JWK Set
    (RFC 7517 §5) or raises; it is given `timeout` seconds. Raises `ConfigurationError`.
    """

    def __init__(
        self,
        url: str,
        *,
        algorithms: Collection[str] = ASYMMETRIC,
        fetch: Fetch | None = None,
        max_age: float = 600.0,
        max_stale: float = 3_600.0,
        cooldown: float = 30.0,
        retry: float = 5.0,
        timeout: float = _FETCH_TIMEOUT,
    ) -> None:
        address = secure_url(url, what="the address of the keys")
        self._url = url
        self._shown = address.origin + address.path  # a query may be secret
        self._algorithms = frozenset(algorithms)
        self._fetch = fetch_keys if fetch is None else fetch
        self._max_age = max_age
        self._max_stale = max_stale
        self._cooldown = cooldown
        self._retry = retry
        self._timeout = timeout
        self._keys: list[Key] = []
        self._fetched_at: float | None = None
        self._failed_at: float | None = None
        self._fetching: asyncio.Task[None] | None = None

    async def find(self, key_id: str | None, algorithm: str) -> object | None:
        """Give the public key of that name for that algorithm; None when the issuer has none.

        Without a name it is the only one for the algorithm. Raises `KeysUnavailable` when that
        cannot be known now.
        """
        if self._older_than(self._max_age):
            await self._refresh()
        key = self._usable(key_id, algorithm)
        if key is None and self._older_than(self._cooldown):
            await self._refresh()
            key = self._usable(key_id, algorithm)
        if key is None and self._failed_at is not None:
            raise KeysUnavailable(f"the keys of {self._shown} cannot be fetched")
        return key

    def __repr__(self) -> str:
        return f"KeySet({self._shown!r})"

    def _usable(self, key_id: str | None, algorithm: str) -> object | None:
        if self._older_than(self._max_stale):
            return None
        found = [
            each.key
            for each in self._keys
            if algorithm in each.algorithms and (key_id is None or each.id == key_id)
        ]
        # Which of two is meant cannot be guessed: that would be a choice of the token's.
        return found[0] if len(found) == 1 else None

    def _older_than(self, age: float) -> bool:
        now = asyncio.get_running_loop().time()
        return self._fetched_at is None or now - self._fetched_at >= age

    async def _refresh(self) -> None:
        """Fetch, or wait for the fetch that runs. Returns when it is over, whatever came of it."""
        now = asyncio.get_running_loop().time()
        if self._fetching is None or self._fetching.done():
            if self._failed_at is not None and now - self._failed_at < self._retry:
                return
            self._fetching = asyncio.create_task(self._fetched(), name="raxol fetch keys")
        # Who waits may be cancelled; the others still want the keys.
        await asyncio.shield(self._fetching)

    async def _fetched(self) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                text = await self._fetch(self._url)
            keys = read_keys(text, self._algorithms)
        except Exception as error:  # the edge to a network and to code that is not ours
            self._failed_at = asyncio.get_running_loop().time()
            _logger.warning("the keys of %s cannot be fetched: %s", self._shown, _said(error))
            return
        self._keys = keys
        self._fetched_at = asyncio.get_running_loop().time()
        self._failed_at = None


def read_keys(text: bytes, algorithms: Collection[str]) -> list[Key]:
    """Read a JWK Set: the public keys in it that can check one of `algorithms`.

    A key serves what its type can do, and what it says it is for (`alg`, `use`, `key_ops`); never
    what a token says. Others are left out: secret ones, private ones, unknown ones, broken ones.
    Raises `ValueError` for what is no JWK Set, and for one without a usable key.
    """
    if len(text) > _MAX_BYTES:
        raise ValueError("the answer is too long")
    document = parse(text, max_depth=_MAX_DEPTH)
    keys = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(keys, list):
        raise ValueError("the answer is no JWK Set")
    if len(keys) > _MAX_KEYS:
        raise ValueError("there are too many keys")
    found = [key for jwk in keys if (key := _key(jwk, algorithms)) is not None]
    if not found:
        raise ValueError("there is no usable key")
    return found


async def fetch_keys(url: str) -> bytes:
    """Get the text at an address, in a thread: no redirects, bounded in size and time.

    https, or http on this machine. Raises whatever went wrong.
    """
    secure_url(url, what="the address of the keys")
    return await asyncio.to_thread(_get, url)


def _get(url: str) -> bytes:
    # Here the time is the real one: nothing in a thread sees the loop's.
    from time import monotonic
    from urllib.error import HTTPError
    from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

    class NoRedirects(HTTPRedirectHandler):
        def redirect_request(self, *_: object) -> Request | None:
            return None  # an answer like any other that is not the keys

    # What is on this machine is not asked for through a proxy.
    proxies = ProxyHandler({} if url.lower().startswith("http:") else None)
    request = Request(url, headers={"Accept": "application/json", "User-Agent": "raxol-mcp"})
    ends_at = monotonic() + _FETCH_TIMEOUT
    text = b""
    try:
        with build_opener(NoRedirects(), proxies).open(request, timeout=_SOCKET_TIMEOUT) as answer:
            while len(text) <= _MAX_BYTES and (piece := answer.read1(64 * 1024)):
                text += piece
                if monotonic() > ends_at:
                    raise TimeoutError
    except HTTPError as error:
        error.close()
        raise ValueError(f"status {error.code}") from None
    return text


def _key(jwk: object, algorithms: Collection[str]) -> Key | None:
    if not isinstance(jwk, dict) or not _is_for_checking(jwk):
        return None
    key_id, only = jwk.get("kid"), jwk.get("alg")
    serves = [name for name in _possible(jwk) if name in algorithms and only in (None, name)]
    if not serves or not (key_id is None or isinstance(key_id, str)):
        return None
    from cryptography.exceptions import UnsupportedAlgorithm
    from jwt import PyJWK, PyJWTError

    try:
        key = PyJWK(jwk, algorithm=serves[0]).key
    except (PyJWTError, UnsupportedAlgorithm, ValueError, TypeError, KeyError):
        return None
    return Key(key_id, frozenset(serves), key)


def _possible(jwk: dict[object, object]) -> tuple[str, ...]:
    kind = jwk.get("kty")
    curve = None if kind == "RSA" else jwk.get("crv")
    if not isinstance(kind, str) or not (curve is None or isinstance(curve, str)):
        return ()
    return _ALGORITHMS.get((kind, curve), ())


def _is_for_checking(jwk: dict[object, object]) -> bool:
    if "d" in jwk:
        _logger.error("the issuer publishes a private key: it is not used")
        return False
    operations = jwk.get("key_ops")
    may = operations is None or (isinstance(operations, list) and "verify" in operations)
    return may and jwk.get("use") in (None, "sig")


def _said(error: Exception) -> str:
    """Return what an error says when it is one of ours, else what it is."""
    return str(error) if type(error) in (ValueError, Malformed) else type(error).__qualname__
