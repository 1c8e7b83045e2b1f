"""Peers: who is connected, what each can be asked, and how much of that is remembered."""

from __future__ import annotations

import pytest

from raxol_mcp.core.calls import Call, Via
from raxol_mcp.core.eras import HandshakeEra
from raxol_mcp.core.methods import HANDSHAKE_METHODS
from raxol_mcp.core.peers import Capability, ConnectionFacts, Peer, Peers, capabilities_of
from raxol_mcp.wire.jsonrpc import JSONObject
from tests.core.support import IDENTITY

NONE, FORM, URL = Capability.NONE, Capability.FORM, Capability.URL
SAMPLING, TOOLS = Capability.SAMPLING, Capability.SAMPLING_TOOLS
CONTEXT, ROOTS = Capability.SAMPLING_CONTEXT, Capability.ROOTS


def call_of(peer: Peer, id: int = 1) -> Call:
    """A call of a connection, as the core registers it."""
    method = HANDSHAKE_METHODS["tools/call"]
    call = Call(peer, id, method, HandshakeEra(IDENTITY), Via.PUSH, None)
    peer.calls[id] = call
    return call


def opened(peers: Peers, connection: str) -> Peer:
    """A connection with a sink."""
    peer = peers.get(connection)
    peer.open = True
    return peer


# -- capabilities ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "found"),
    [
        ({}, NONE),
        (None, NONE),
        (True, NONE),
        ("elicitation", NONE),
        (["elicitation"], NONE),
        ({"elicitation": {}}, FORM),
        ({"elicitation": {"form": {}}}, FORM),
        ({"elicitation": {"url": {}}}, URL),
        ({"elicitation": {"form": {}, "url": {}}}, FORM | URL),
        ({"elicitation": {"form": {"x": 1}, "url": {"y": 2}}}, FORM | URL),
        # An unknown member says nothing about the modes.
        ({"elicitation": {"voice": {}}}, FORM),
        # null is absent; what is there and no object declares nothing.
        ({"elicitation": {"form": None, "url": None}}, FORM),
        ({"elicitation": {"url": None}}, FORM),
        ({"elicitation": {"form": None, "url": {}}}, URL),
        ({"elicitation": {"form": False}}, NONE),
        ({"elicitation": {"url": True}}, NONE),
        ({"elicitation": None}, NONE),
        ({"elicitation": False}, NONE),
        ({"elicitation": True}, NONE),
        ({"elicitation": 1}, NONE),
        ({"elicitation": []}, NONE),
        ({"elicitation": "form"}, NONE),
        ({"Elicitation": {}}, NONE),
        ({"sampling": {}}, SAMPLING),
        ({"sampling": {"tools": {}}}, SAMPLING | TOOLS),
        ({"sampling": {"context": {}}}, SAMPLING | CONTEXT),
        ({"sampling": {"tools": True, "context": None}}, SAMPLING),
        ({"sampling": True}, NONE),
        ({"roots": {}}, ROOTS),
        ({"roots": {"listChanged": True}}, ROOTS),
        ({"roots": []}, NONE),
        ({"elicitation": {}, "sampling": {}, "roots": {}, "x": {}}, FORM | SAMPLING | ROOTS),
    ],
)
def test_only_objects_declare_something(declared: object, found: Capability) -> None:
    """MCP 2025-11-25 client/elicitation §Capabilities; false is not a declaration."""
    assert capabilities_of(declared, version="2025-11-25") == found
    assert capabilities_of(declared, version="2026-07-28") == found


@pytest.mark.parametrize(
    ("version", "found"),
    [
        ("2024-11-05", SAMPLING | ROOTS),
        ("2025-03-26", SAMPLING | ROOTS),
        ("2025-06-18", FORM | SAMPLING | ROOTS),
        ("2025-11-25", FORM | URL | SAMPLING | TOOLS | ROOTS),
        ("2026-07-28", FORM | URL | SAMPLING | TOOLS | ROOTS),
    ],
)
def test_what_a_revision_does_not_have_cannot_be_declared_in_it(
    version: str, found: Capability
) -> None:
    """MCP basic/lifecycle: only what was negotiated is used. Elicitation: rulings §Asking."""
    declared: JSONObject = {
        "elicitation": {"form": {}, "url": {}},
        "sampling": {"tools": {}},
        "roots": {},
    }
    assert capabilities_of(declared, version=version) == found


def test_before_there_were_modes_every_declaration_meant_forms() -> None:
    """MCP 2025-06-18 client/elicitation."""
    assert capabilities_of({"elicitation": {"url": {}}}, version="2025-06-18") == FORM


@pytest.mark.parametrize(
    ("needs", "wire"),
    [
        (NONE, {}),
        (FORM, {"elicitation": {"form": {}}}),
        (URL, {"elicitation": {"url": {}}}),
        (FORM | URL, {"elicitation": {"form": {}, "url": {}}}),
        (SAMPLING, {"sampling": {}}),
        (SAMPLING | TOOLS, {"sampling": {"tools": {}}}),
        (TOOLS, {"sampling": {"tools": {}}}),
        (CONTEXT, {"sampling": {"context": {}}}),
        (ROOTS, {"roots": {}}),
        (FORM | ROOTS, {"elicitation": {"form": {}}, "roots": {}}),
    ],
)
def test_what_is_missing_is_written_as_a_client_would_declare_it(
    needs: Capability, wire: JSONObject
) -> None:
    """MCP 2026-07-28 basic §Error Codes: requiredCapabilities is a ClientCapabilities object."""
    assert needs.to_wire() == wire
    assert capabilities_of(needs.to_wire(), version="2026-07-28") & needs == needs


# -- connections ----------------------------------------------------------------------------------


def test_a_connection_is_made_by_its_first_message() -> None:
    peers = Peers(max_client_capabilities=4)
    assert peers.find("a") is None
    peer = peers.get("a")
    assert (peers.find("a"), peers.get("a"), len(peers)) == (peer, peer, 1)


@pytest.mark.parametrize("connection", ["", 0, None, ("a", 1), frozenset()])
def test_an_id_may_be_any_hashable_value(connection: object) -> None:
    """Raxol MCP 2.8.0 §Types: conn_id is any term."""
    peers = Peers(max_client_capabilities=4)
    assert peers.get(connection).connection == connection


@pytest.mark.parametrize(
    ("facts", "share"),
    [
        (ConnectionFacts(), "a"),
        (ConnectionFacts(principal="alice"), "a"),
        (ConnectionFacts(share="anonymous"), "anonymous"),
        (ConnectionFacts(principal="alice", share="alice"), "alice"),
    ],
)
def test_the_share_is_what_the_transport_says_or_the_connection(
    facts: ConnectionFacts, share: object
) -> None:
    """ADR-0009."""
    assert Peers(max_client_capabilities=4).get("a", facts).share == share


def test_they_are_known_in_the_order_of_their_first_message() -> None:
    peers = Peers(max_client_capabilities=4)
    made = [peers.get(name) for name in ("b", "a", "c")]
    peers.get("a")
    assert peers.all() == made


@pytest.mark.parametrize("kept", ["open", "greeted", "calls"])
def test_a_connection_is_remembered_for_a_reason(kept: str) -> None:
    peers = Peers(max_client_capabilities=4)
    peer = peers.get("a")
    if kept == "calls":
        call_of(peer)
    else:
        setattr(peer, kept, True)
    peers.settle(peer)
    assert (peer.idle, len(peers)) == (False, 1)


def test_without_a_reason_it_is_forgotten() -> None:
    """A client that invents a connection id for each request leaves nothing behind."""
    peers = Peers(max_client_capabilities=4)
    peer = peers.get("a")
    peer.subscriptions.add("file:///a")
    peers.settle(peer)
    peers.settle(peer)
    assert len(peers) == 0


def test_a_late_report_does_not_forget_the_next_connection_of_that_id() -> None:
    """The first one is gone and forgotten, its id in use again, and then its worker ends."""
    peers = Peers(max_client_capabilities=4)
    first = opened(peers, "a")
    peers.discard(first)
    second = opened(peers, "a")
    peers.settle(first)
    peers.discard(first)
    assert peers.find("a") is second


def test_who_takes_a_connection_over_inherits_nothing() -> None:
    """Raxol MCP 2.8.0: reusing one client's id for another must not hand over its approvals."""
    peers = Peers(max_client_capabilities=4)
    peer = opened(peers, "a")
    call_of(peer)
    peers.declare(peer, FORM)
    peer.version, peer.log_severity = "2025-11-25", 7
    peer.silent = peer.stateless = True
    peer.subscriptions.add("file:///a")
    peers.discard(peer)
    assert peers.find("a") is peer, "a call of it goes on"
    assert (peer.open, peer.greeted, peer.silent, peer.stateless) == (False,) * 4
    after: tuple[object, ...] = (peer.capabilities, peer.version, peer.log_severity)
    assert after == (None, None, 1)
    assert (peer.subscriptions, peers.declared) == (set(), 0)


# -- what initialize stored -----------------------------------------------------------------------


def test_what_is_declared_is_kept_up_to_the_cap() -> None:
    peers = Peers(max_client_capabilities=2)
    assert peers.declare(peers.get("a"), FORM) is None
    assert peers.declare(peers.get("b"), NONE) is None
    assert peers.declared == 2
    assert peers.get("a").capabilities is FORM


def test_past_the_cap_the_oldest_without_a_sink_is_evicted() -> None:
    """Raxol MCP 2.8.0 §Client capabilities."""
    peers = Peers(max_client_capabilities=3)
    live = opened(peers, "live")
    peers.declare(live, FORM)
    orphans = [peers.get(f"o{number}") for number in range(3)]
    assert [peers.declare(orphan, FORM) for orphan in orphans] == [None, None, orphans[0]]
    assert live.capabilities is FORM
    assert [orphan.capabilities for orphan in orphans] == [None, FORM, FORM]
    assert peers.find("o0") is None, "nothing else was known of it"


def test_the_one_that_was_just_stored_may_be_the_victim() -> None:
    peers = Peers(max_client_capabilities=1)
    peers.declare(opened(peers, "live"), FORM)
    orphan = peers.get("orphan")
    assert peers.declare(orphan, FORM) is orphan
    assert (peers.declared, peers.find("orphan")) == (1, None)


def test_one_with_a_sink_is_evicted_only_when_every_one_has_a_sink() -> None:
    """Raxol MCP 2.8.0 §Client capabilities: it keeps working, it can only not be asked."""
    peers = Peers(max_client_capabilities=2)
    first, second, third = (opened(peers, name) for name in "abc")
    peers.declare(first, FORM)
    peers.declare(second, FORM)
    assert peers.declare(third, FORM) is first
    assert (first.capabilities, first.greeted, peers.find("a")) == (None, True, first)


def test_an_evicted_orphan_whose_call_runs_is_not_forgotten() -> None:
    peers = Peers(max_client_capabilities=1)
    first = peers.get("a")
    peers.declare(first, FORM)
    call_of(first)
    assert peers.declare(peers.get("b"), FORM) is first
    assert peers.find("a") is first
    first.calls.clear()
    peers.settle(first)
    assert peers.find("a") is None


def test_to_declare_again_renews_the_place() -> None:
    """Raxol MCP 2.8.0: re-initialize replaces and re-stamps."""
    peers = Peers(max_client_capabilities=2)
    first, second, third = (peers.get(name) for name in "abc")
    peers.declare(first, NONE)
    peers.declare(second, FORM)
    peers.declare(first, FORM)
    assert peers.declare(third, FORM) is second
    assert first.capabilities is FORM
