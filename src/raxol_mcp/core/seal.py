"""`requestState`: what the client carries for us between two requests of the stateless era.

Everything in it is the attacker's until the tag is checked. It holds digests and names, no secret,
so it is signed, not encrypted (ADR-0008). Knows no clock and no randomness: instants (seconds,
wall clock) and nonces come in as arguments.

What signs and writes is imported where it is used: together it takes longer to load than all of
core/, and a server starts without it.
"""

from __future__ import annotations

import base64
from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

from raxol_mcp.wire.values import Value

__all__ = ["MAX_TOKEN_BYTES", "Claims", "Seal", "SpentNonces", "digest"]

MAX_TOKEN_BYTES: Final = 4 * 1024
_VERSION: Final = 1
_TAG_BYTES: Final = 32


def digest(value: object) -> str:
    """Digest a JSON value: equal values, however written, have equal digests."""
    import hashlib
    import json

    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


class Claims(Value, frozen=True):
    """What a token says. `binding` digests what the approval is about; `keys` were asked for.

    `round` > 0: the running tool asked; `state` is then handed back to it. `subject` names what the
    human was asked about, which may have changed meanwhile. Instants are wall
    clock seconds.
    """

    binding: str
    keys: tuple[str, ...]
    nonce: str
    issued_at: float
    expires_at: float
    round: int = 0
    state: str | None = None
    subject: str | None = None


class Seal:
    """Signs and checks tokens with one key (bytes, at least 32)."""

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        assert len(key) >= 32, "a short key can be guessed"
        self._key = key

    def __repr__(self) -> str:
        return "<Seal>"

    def seal(self, claims: Claims) -> str | None:
        """Write `claims` as a token of printable ASCII; None when it would be too long."""
        import json

        fields = [
            _VERSION,
            claims.binding,
            list(claims.keys),
            claims.nonce,
            claims.issued_at,
            claims.expires_at,
            claims.round,
            claims.state,
            claims.subject,
        ]
        body = json.dumps(fields, separators=(",", ":"), ensure_ascii=True).encode()
        token = base64.urlsafe_b64encode(self._tag(body) + body).rstrip(b"=").decode()
        return token if len(token) <= MAX_TOKEN_BYTES else None

    def open(self, token: str, *, binding: str, wall_now: float) -> Claims | str:
        """Check a token; return its claims, or the reason (for the log only) why not.

        The encoding must be the one `seal` writes: another spelling of the same bytes is refused,
        so a token has one form. Comparisons are written so that NaN refuses.
        """
        import hmac
        import json

        if len(token) > MAX_TOKEN_BYTES or not token.isascii():
            return "too long or not ASCII"
        try:
            raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        except ValueError:
            return "not base64"
        if base64.urlsafe_b64encode(raw).rstrip(b"=") != token.encode():
            return "not in canonical form"
        tag, body = raw[:_TAG_BYTES], raw[_TAG_BYTES:]
        if not hmac.compare_digest(tag, self._tag(body)):
            return "wrong tag"
        # Signed by this key, so written by `seal`, but perhaps by that of another release.
        fields = json.loads(body)
        if fields[0] != _VERSION:
            return "another version"
        _, bound, keys, nonce, issued_at, expires_at, round_, state, subject = fields
        if not hmac.compare_digest(bound, binding):
            return "bound to another request"
        if not (issued_at - 60.0 <= wall_now < expires_at):
            return "expired"
        return Claims(bound, tuple(keys), nonce, issued_at, expires_at, round_, state, subject)

    def _tag(self, body: bytes) -> bytes:
        import hashlib
        import hmac

        return hmac.new(self._key, body, hashlib.sha256).digest()


class SpentNonces:
    """The tokens that were used. Bounded per share and in total; a full one refuses (fails closed).

    A nonce is forgotten when its token has expired: it could not be used any more.
    """

    __slots__ = ("_by_share", "_count", "_per_share", "_total")

    def __init__(self, *, per_share: int = 1024, total: int = 65_536) -> None:
        self._per_share = per_share
        self._total = total
        self._count = 0
        self._by_share: dict[Hashable, OrderedDict[str, float]] = {}

    def __len__(self) -> int:
        return self._count

    def spend(self, share: Hashable, claims: Claims, wall_now: float) -> bool:
        """Use the token once: False when it was used before, or there is no room to remember it."""
        spent = self._by_share.get(share)
        if spent is not None:
            self._expire(share, spent, wall_now)
        if self._count >= self._total:
            for other, nonces in list(self._by_share.items()):
                self._expire(other, nonces, wall_now)
        spent = self._by_share.get(share, OrderedDict())
        if claims.nonce in spent or len(spent) >= self._per_share or self._count >= self._total:
            return False
        self._by_share[share] = spent
        spent[claims.nonce] = claims.expires_at
        self._count += 1
        return True

    def _expire(self, share: Hashable, spent: OrderedDict[str, float], wall_now: float) -> None:
        # Every token lives equally long: in the order they were spent they expire nearly, too. One
        # that was spent early in its life keeps those behind it at most that much longer.
        while spent:
            nonce, expires_at = next(iter(spent.items()))
            if expires_at > wall_now:
                return
            del spent[nonce]
            self._count -= 1
        del self._by_share[share]
