"""Seals: what a client carries for us cannot be changed, lent or used twice."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from raxol_mcp.core.seal import MAX_TOKEN_BYTES, Claims, Seal, SpentNonces, digest

KEY = bytes(range(32))
SEAL = Seal(KEY)
CLAIMS = Claims("binding", ("approve!",), "nonce", 1000.0, 1600.0, 2, "state", "abc")
TOKEN = SEAL.seal(CLAIMS) or ""


def opened(token: str, *, binding: str = "binding", wall_now: float = 1001.0) -> Claims | str:
    """Open a token with the key and the circumstances it was sealed for, or others."""
    return SEAL.open(token, binding=binding, wall_now=wall_now)


def signed(body: bytes, key: bytes = KEY) -> str:
    """Sign any body like a seal with `key` does."""
    tag = hmac.new(key, body, hashlib.sha256).digest()
    return base64.urlsafe_b64encode(tag + body).rstrip(b"=").decode()


def test_what_was_sealed_is_what_comes_back() -> None:
    assert opened(TOKEN) == CLAIMS


def test_a_token_is_url_safe_ascii() -> None:
    """MCP 2026-07-28 basic/patterns/mrtr: an opaque string."""
    allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    assert set(TOKEN) <= set(allowed)


@given(
    st.builds(
        Claims,
        binding=st.text("0123456789abcdef", min_size=1),
        keys=st.lists(st.text(), max_size=3).map(tuple),
        nonce=st.text(max_size=20),
        issued_at=st.floats(0, 1e9),
        expires_at=st.floats(1e9 + 1, 2e9),
        round=st.integers(0, 10),
        state=st.none() | st.text(max_size=100),
    )
)
def test_any_claims_come_back(claims: Claims) -> None:
    """Text in any writing, and no state is not an empty one."""
    token = SEAL.seal(claims)
    assert token is not None
    assert SEAL.open(token, binding=claims.binding, wall_now=1e9) == claims


@pytest.mark.parametrize(
    ("wall_now", "valid"),
    [
        (939.9, False),  # more than a minute before it was issued: another clock, or a lie
        (940.0, True),
        (1000.0, True),
        (1599.9, True),
        (1600.0, False),
        (1e12, False),
        (float("nan"), False),
    ],
)
def test_a_token_is_valid_from_its_issue_to_its_end(wall_now: float, valid: bool) -> None:
    """A minute of skew is allowed between processes. NaN compares with nothing: it refuses."""
    assert opened(TOKEN, wall_now=wall_now) == (CLAIMS if valid else "expired")


def test_claims_without_an_end_are_refused() -> None:
    token = SEAL.seal(replace(CLAIMS, expires_at=float("nan"))) or ""
    assert opened(token) == "expired"


def test_a_token_is_bound_to_its_request() -> None:
    assert opened(TOKEN, binding="another") == "bound to another request"


def test_another_key_cannot_sign() -> None:
    forged = Seal(b"x" * 32).seal(CLAIMS) or ""
    assert opened(forged) == "wrong tag"


def test_no_bit_of_a_token_can_be_changed() -> None:
    raw = base64.urlsafe_b64decode(TOKEN + "=" * (-len(TOKEN) % 4))
    for bit in range(len(raw) * 8):
        changed = bytearray(raw)
        changed[bit // 8] ^= 1 << bit % 8
        token = base64.urlsafe_b64encode(changed).rstrip(b"=").decode()
        assert opened(token) == "wrong tag", f"bit {bit}"


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        ("", "wrong tag"),
        ("AAAA", "wrong tag"),
        (TOKEN[:-4], "wrong tag"),
        (TOKEN + "AAAA", "wrong tag"),
        ("A", "not base64"),
        (TOKEN + "A", "not base64"),
        ("\x00" * 8, "not base64"),
        (TOKEN + " ", "not base64"),
        (TOKEN + "\n", "not base64"),
        ("A=", "not base64"),
        (TOKEN + "=", "not in canonical form"),
        ("+++/", "not in canonical form"),
        ("ab==", "not in canonical form"),
        ("AB", "not in canonical form"),  # bits that stand for nothing
        ("é" * 8, "too long or not ASCII"),
        ("A" * (MAX_TOKEN_BYTES + 1), "too long or not ASCII"),
    ],
)
def test_what_is_no_token_is_refused_with_a_reason_for_the_log(token: str, reason: str) -> None:
    assert opened(token) == reason


@given(st.text())
def test_no_text_makes_it_raise(text: str) -> None:
    assert isinstance(opened(text), str)


@pytest.mark.parametrize("body", [[2, "binding"], [2, *range(20)], ["1"], [None]])
def test_a_token_of_another_release_is_refused_whatever_it_holds(body: list[object]) -> None:
    """Several processes share a key; not all of them run the same release at the same time."""
    assert opened(signed(json.dumps(body).encode())) == "another version"


def test_the_state_may_be_as_long_as_the_token_allows() -> None:
    """Ours: 4 KiB."""
    longest = max(
        length for length in range(2000, 4000) if SEAL.seal(replace(CLAIMS, state="x" * length))
    )
    token = SEAL.seal(replace(CLAIMS, state="x" * longest))
    assert token is not None
    assert len(token) <= MAX_TOKEN_BYTES
    assert SEAL.seal(replace(CLAIMS, state="x" * (longest + 1))) is None
    assert longest >= 2 * 1024


def test_a_key_that_can_be_guessed_is_refused() -> None:
    with pytest.raises(AssertionError, match="a short key can be guessed"):
        Seal(b"k" * 31)


def test_the_key_is_not_shown() -> None:
    assert repr(Seal(KEY)) == "<Seal>"


# -- digests --------------------------------------------------------------------------------------


def test_equal_values_have_equal_digests_however_they_are_ordered() -> None:
    assert digest({"a": 1, "b": [1, {"c": None, "d": "é"}]}) == digest(
        {"b": [1, {"d": "\u00e9", "c": None}], "a": 1}
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1}, {"a": "1"}),
        ({"a": 1}, {"a": 1.0}),
        ({"a": 1}, {"a": True}),
        ({"a": None}, {}),
        ([1, 2], [2, 1]),
        ([1, [2]], [[1], 2]),
        ("a", ["a"]),
        ("é", "e\u0301"),
    ],
)
def test_different_values_have_different_digests(one: object, other: object) -> None:
    assert digest(one) != digest(other)


# -- spent nonces ---------------------------------------------------------------------------------


def token(nonce: str, *, expires_at: float = 600.0) -> Claims:
    """Claims that differ in their nonce."""
    return replace(CLAIMS, nonce=nonce, expires_at=expires_at)


def test_a_nonce_is_spent_once() -> None:
    """MCP 2026-07-28 basic/patterns/mrtr §Server: single use needs to be enforced here."""
    spent = SpentNonces()
    assert spent.spend("a", token("1"), 0.0)
    assert not spent.spend("a", token("1"), 0.0)
    assert not spent.spend("a", token("1"), 599.9)
    assert spent.spend("a", token("2"), 0.0)


def test_a_nonce_is_forgotten_when_its_token_has_expired() -> None:
    spent = SpentNonces()
    spent.spend("a", token("1"), 0.0)
    spent.spend("b", token("2", expires_at=900.0), 0.0)
    assert spent.spend("a", token("3", expires_at=1200.0), 600.0)
    assert len(spent) == 2


def test_a_share_that_is_full_fails_closed_for_itself_alone() -> None:
    """Rulings §Time, shares, bounds."""
    spent = SpentNonces(per_share=2, total=10)
    assert spent.spend("a", token("1"), 0.0)
    assert spent.spend("a", token("2"), 0.0)
    assert not spent.spend("a", token("3"), 0.0)
    assert spent.spend("b", token("4"), 0.0)
    assert spent.spend("a", token("3", expires_at=1200.0), 600.0)


def test_a_full_server_makes_room_by_what_has_expired_and_by_nothing_else() -> None:
    spent = SpentNonces(per_share=2, total=3)
    for share, nonce, expires_at in (("a", "1", 600.0), ("b", "2", 700.0), ("c", "3", 800.0)):
        assert spent.spend(share, token(nonce, expires_at=expires_at), 0.0)
    assert not spent.spend("d", token("4"), 599.9)
    assert spent.spend("d", token("4", expires_at=1200.0), 600.0)
    assert not spent.spend("b", token("2", expires_at=700.0), 600.0)
    assert len(spent) == 3


def test_expired_nonces_are_dropped_only_from_the_front() -> None:
    """One that was spent early keeps those behind it a little longer: never too short."""
    spent = SpentNonces()
    spent.spend("a", token("late", expires_at=900.0), 0.0)
    spent.spend("a", token("early", expires_at=600.0), 0.0)
    spent.spend("a", token("now", expires_at=1500.0), 700.0)
    assert len(spent) == 3
    spent.spend("a", token("then", expires_at=1600.0), 900.0)
    assert len(spent) == 2


def test_a_share_without_nonces_is_not_remembered() -> None:
    spent = SpentNonces(per_share=1, total=1)
    spent.spend("a", token("1"), 0.0)
    assert not spent.spend("b", token("2"), 0.0)
    assert spent.spend("b", token("2", expires_at=1200.0), 600.0)
    assert list(spent._by_share) == ["b"]


def test_the_bounds_are_those_of_the_rulings() -> None:
    """Rulings §Time, shares, bounds: 1,024 a share and 65,536 in total."""
    spent = SpentNonces()
    for share in range(64):
        for nonce in range(1024):
            assert spent.spend(share, token(str(nonce)), 0.0)
        assert not spent.spend(share, token("one more"), 0.0)
    assert len(spent) == 65_536
    assert not spent.spend("another", token("1"), 0.0)
