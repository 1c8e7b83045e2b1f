"""Verdicts: what a process remembers of servers."""

from __future__ import annotations

from raxol_mcp.core.verdicts import Verdict, Verdicts
from raxol_mcp.wire.meta import EraName

STATELESS = Verdict(EraName.STATELESS, "2026-07-28")
HANDSHAKE = Verdict(EraName.HANDSHAKE, "2025-11-25")


def test_a_verdict_is_known_until_it_is_as_old_as_its_ttl() -> None:
    """client-behaviour 3.3: live while now - decided_at < ttl."""
    verdicts = Verdicts()
    verdicts.put("a", STATELESS, 100.0)
    assert verdicts.get("a", ttl=10.0, now=109.9) is STATELESS
    assert verdicts.get("a", ttl=10.0, now=110.0) is None
    assert len(verdicts) == 0


def test_a_ttl_of_nothing_trusts_nothing() -> None:
    """client-behaviour 1.1: 0 means never."""
    verdicts = Verdicts()
    verdicts.put("a", STATELESS, 100.0)
    assert verdicts.get("a", ttl=0.0, now=100.0) is None


def test_a_later_verdict_replaces_the_earlier_one() -> None:
    """A server that was upgraded."""
    verdicts = Verdicts()
    verdicts.put("a", HANDSHAKE, 100.0)
    verdicts.put("a", STATELESS, 105.0)
    assert verdicts.get("a", ttl=10.0, now=112.0) is STATELESS


def test_what_is_forgotten_is_unknown_and_forgetting_twice_is_no_matter() -> None:
    """ours: ADR-0023."""
    verdicts = Verdicts()
    verdicts.put("a", HANDSHAKE, 1.0)
    verdicts.forget("a")
    verdicts.forget("a")
    assert verdicts.get("a", ttl=10.0, now=1.0) is None


def test_the_oldest_makes_room() -> None:
    """ours: a table that is fed by addresses is bounded."""
    verdicts = Verdicts(max_verdicts=2)
    verdicts.put("a", HANDSHAKE, 1.0)
    verdicts.put("b", HANDSHAKE, 2.0)
    verdicts.put("a", STATELESS, 3.0)
    verdicts.put("c", HANDSHAKE, 4.0)
    assert [verdicts.get(key, ttl=9.0, now=4.0) for key in "abc"] == [STATELESS, None, HANDSHAKE]
