"""Parking: who has a place, and who must make room for whom."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_mcp.core.calls import Call, Via
from raxol_mcp.core.eras import HandshakeEra
from raxol_mcp.core.methods import HANDSHAKE_METHODS
from raxol_mcp.core.parking import Parking, Refused
from raxol_mcp.core.peers import ConnectionFacts, Peer
from tests.core.support import IDENTITY

METHOD = HANDSHAKE_METHODS["tools/call"]
ERA = HandshakeEra(IDENTITY)
HERE, ON_SERVER = Refused.SHARE_FULL, Refused.SERVER_FULL


class Lot:
    """A parking, filled by names of shares: the first call of "a" is "a1", and so on."""

    def __init__(self, *, total: int = 4, per_share: int = 4) -> None:
        self.parking = Parking(total=total, per_share=per_share)
        self.calls: dict[str, Call] = {}
        self._sequence = count(1)
        self._numbers: dict[str, int] = {}

    def park(self, shares: Iterable[str]) -> Lot:
        """Park a call for each share, in this order."""
        for share in shares:
            number = self._numbers[share] = self._numbers.get(share, 0) + 1
            peer = Peer(share, ConnectionFacts())
            call = Call(peer, f"{share}{number}", METHOD, ERA, Via.PUSH, None)
            call.parked_at = next(self._sequence)
            self.parking.park(call)
            self.calls[f"{share}{number}"] = call
        return self

    def approve(self, *names: str) -> Lot:
        """Let calls become approved ones, which keep their places."""
        for name in names:
            self.parking.protect(self.calls[name])
        return self

    def leave(self, *names: str) -> Lot:
        """Let calls give their places back."""
        for name in names:
            self.parking.leave(self.calls[name])
        return self

    def place_for(self, share: str) -> object:
        """How a share gets a place: None, the name of a victim, or a refusal."""
        found = self.parking.place_for(share)
        return found.id if isinstance(found, Call) else found


@pytest.mark.parametrize(
    ("parked", "approved", "asker", "place"),
    [
        # There is room.
        ("", "", "a", None),
        ("aaa", "", "a", None),
        ("aab", "", "b", None),
        # The share is full, whatever the server is.
        ("aaaa", "", "a", HERE),
        ("aaaa", "a1 a2 a3 a4", "a", HERE),
        # The server is full: whoever holds fewer than the fullest takes its oldest place.
        ("aaaa", "", "b", "a1"),
        ("aaab", "", "b", "a1"),
        ("aaab", "", "c", "a1"),
        ("baaa", "", "c", "a1"),
        # Those that hold as many as the fullest get nothing, and nobody is evicted.
        ("aabb", "", "a", ON_SERVER),
        ("aabb", "", "b", ON_SERVER),
        ("aaab", "", "a", ON_SERVER),
        ("abcd", "", "a", ON_SERVER),
        # Ties: the share that owns the oldest parked call.
        ("aabb", "", "c", "a1"),
        ("bbaa", "", "c", "b1"),
        ("baab", "", "c", "b1"),
        ("abcd", "", "e", "a1"),
        ("dcba", "", "e", "d1"),
        # An approved call is never a victim, and still counts.
        ("aaab", "a1", "c", "a2"),
        ("aaab", "a1 a2", "b", "a3"),
        ("aaaa", "a1 a2 a3 a4", "b", ON_SERVER),
        # The fullest has none to give: the next one that holds more than the asker.
        ("aabb", "a1 a2", "c", "b1"),
        ("abbb", "b1 b2 b3", "c", "a1"),
        ("aaab", "a1 a2 a3", "b", ON_SERVER),
        # Among equals the oldest that may still be evicted decides.
        ("aabb", "a1", "c", "a2"),
        ("abab", "a1", "c", "b1"),
    ],
)
def test_how_a_share_gets_a_place(parked: str, approved: str, asker: str, place: object) -> None:
    """Raxol MCP 2.8.0 §Elicitation; ties and approved calls: rulings §Time, shares, bounds."""
    lot = Lot(total=4, per_share=4).park(parked).approve(*approved.split())
    assert lot.place_for(asker) == place


def test_a_share_has_its_own_cap() -> None:
    lot = Lot(total=4, per_share=2).park("aa")
    assert (lot.place_for("a"), lot.place_for("b")) == (HERE, None)


def test_the_details_of_the_two_denials_are_exact() -> None:
    """Raxol MCP 2.8.0 §Elicitation."""
    assert HERE.value == "too many elicitations pending"
    assert ON_SERVER.value == "too many elicitations pending on this server"


def test_asking_for_a_place_changes_nothing() -> None:
    lot = Lot().park("aaaa")
    assert [lot.place_for("b"), lot.place_for("b")] == ["a1", "a1"]
    assert (len(lot.parking), lot.parking.shares()) == (4, {"a": 4})


def test_a_place_that_was_left_is_free() -> None:
    lot = Lot().park("aaaa").leave("a2")
    assert (len(lot.parking), lot.parking.held("a"), lot.place_for("b")) == (3, 3, None)


def test_the_oldest_is_the_oldest_that_is_left() -> None:
    lot = Lot().park("aaaa").leave("a1").park("c")
    assert lot.place_for("b") == "a2"


def test_an_approved_call_leaves_like_any_other() -> None:
    lot = Lot().park("aa").approve("a1").leave("a1", "a2")
    assert (len(lot.parking), lot.parking.shares(), lot.parking.held("a")) == (0, {}, 0)


def test_nothing_is_kept_of_a_share_that_left() -> None:
    lot = Lot().park("ab").approve("a1").leave("a1", "b1")
    assert lot.parking._evictable == {}
    assert lot.parking._by_share == {}


@pytest.mark.parametrize("approved", ["", "a1"])
def test_leaving_twice_is_a_bug_that_shows(approved: str) -> None:
    lot = Lot().park("a").approve(*approved.split()).leave("a1")
    with pytest.raises(KeyError):
        lot.leave("a1")


def test_the_counts_are_a_copy() -> None:
    lot = Lot().park("a")
    lot.parking.shares().clear()
    assert lot.parking.held("a") == 1


STEPS = st.lists(
    st.tuples(st.sampled_from(["ask", "ask", "ask", "approve", "leave"]), st.integers(0, 7)),
    max_size=80,
)


@given(STEPS)
def test_the_choice_agrees_with_the_rule_written_down(steps: list[tuple[str, int]]) -> None:
    """Any history of five shares on a small server, with the rule as a sentence over all calls."""
    lot = Lot(total=6, per_share=3)
    evictable: dict[str, Call] = {}
    approved: dict[str, Call] = {}
    for step, number in steps:
        names = sorted(evictable) if step == "approve" else sorted(evictable | approved)
        if step == "ask":
            share = "abcde"[number % 5]
            held = {one: sum(name[0] == one for name in evictable | approved) for one in "abcde"}
            total = sum(held.values())
            rivals = [
                (-held[name[0]], call.parked_at, name)
                for name, call in evictable.items()
                if held[name[0]] > held[share]
            ]
            expected: object = None
            if held[share] >= 3:
                expected = HERE
            elif total >= 6:
                most = min(rivals, default=(0, 0, ""))[0]
                fullest = [rival for rival in rivals if rival[0] == most]
                expected = min(fullest)[2] if fullest else ON_SERVER
            assert lot.place_for(share) == expected
            if isinstance(expected, str):
                lot.leave(expected)
                del evictable[expected]
            if not isinstance(expected, Refused):
                lot.park(share)
                name = f"{share}{lot._numbers[share]}"
                evictable[name] = lot.calls[name]
        elif names:
            name = names[number % len(names)]
            if step == "approve":
                lot.approve(name)
                approved[name] = evictable.pop(name)
            else:
                lot.leave(name)
                evictable.pop(name, None)
                approved.pop(name, None)
        assert len(lot.parking) == len(evictable) + len(approved) <= 6
