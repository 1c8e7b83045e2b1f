"""Subscriptions: who wants to hear what."""

from __future__ import annotations

import pytest

from raxol_mcp.core.calls import Call, Via
from raxol_mcp.core.eras import StatelessEra
from raxol_mcp.core.methods import STATELESS_METHODS
from raxol_mcp.core.peers import ConnectionFacts, Peer
from raxol_mcp.core.subscriptions import listeners, only_a_hint, stamped, wants_broadcast
from raxol_mcp.wire.jsonrpc import JSONObject, Notification
from raxol_mcp.wire.meta import META_SUBSCRIPTION_ID
from tests.core.support import IDENTITY

UPDATED = "notifications/resources/updated"
TOOLS = "notifications/tools/list_changed"
PROMPTS = "notifications/prompts/list_changed"
RESOURCES = "notifications/resources/list_changed"
A: JSONObject = {"uri": "file:///a"}
B: JSONObject = {"uri": "file:///b"}


def peer_with(
    *,
    open: bool = True,
    greeted: bool = False,
    greeting_required: bool = False,
    stateless: bool = False,
) -> Peer:
    """A connection that subscribed to one resource."""
    peer = Peer("a", ConnectionFacts(greeting_required=greeting_required))
    peer.open, peer.greeted, peer.stateless = open, greeted, stateless
    peer.subscriptions.add("file:///a")
    return peer


def listen(peer: Peer, id: int | str, **wanted: object) -> Call:
    """A listen of a connection."""
    method = STATELESS_METHODS["subscriptions/listen"]
    call = Call(peer, id, method, StatelessEra(IDENTITY), Via.PUSH, None)
    call.arguments = wanted
    peer.listening[id] = call
    return call


@pytest.mark.parametrize(
    ("peer", "method", "params", "wanted"),
    [
        # An update goes to those that subscribed, and to nobody without a sink.
        (peer_with(), UPDATED, A, True),
        (peer_with(), UPDATED, B, False),
        (peer_with(), UPDATED, {}, False),
        (peer_with(), UPDATED, {"uri": None}, False),
        (peer_with(open=False), UPDATED, A, False),
        # Everything else goes to every connection with a sink ...
        (peer_with(), TOOLS, {}, True),
        (peer_with(), "notifications/odd", {}, True),
        (peer_with(open=False, greeted=True), TOOLS, {}, False),
        # ... that has greeted, where a greeting is wanted ...
        (peer_with(greeting_required=True), TOOLS, {}, False),
        (peer_with(greeting_required=True, greeted=True), TOOLS, {}, True),
        # ... or that speaks the era with sessions at all.
        (peer_with(stateless=True), TOOLS, {}, False),
        (peer_with(stateless=True, greeted=True), TOOLS, {}, True),
    ],
)
def test_who_is_told(peer: Peer, method: str, params: JSONObject, wanted: bool) -> None:
    """Raxol MCP 2.8.0 §Notifications; MCP 2026-07-28: nothing that was not requested."""
    assert wants_broadcast(peer, method, params) is wanted


@pytest.mark.parametrize(
    ("wanted", "method", "params", "heard"),
    [
        ({"toolsListChanged": True}, TOOLS, {}, True),
        ({"toolsListChanged": True}, PROMPTS, {}, False),
        ({"promptsListChanged": True}, PROMPTS, {}, True),
        ({"resourcesListChanged": True}, RESOURCES, {}, True),
        ({"resourcesListChanged": True}, UPDATED, A, False),
        ({"resourceSubscriptions": ["file:///a"]}, UPDATED, A, True),
        ({"resourceSubscriptions": ["file:///a"]}, UPDATED, B, False),
        ({"resourceSubscriptions": ["file:///a"]}, UPDATED, {}, False),
        ({"resourceSubscriptions": ["file:///a"]}, RESOURCES, {}, False),
        ({}, UPDATED, A, False),
        ({}, TOOLS, {}, False),
        ({"toolsListChanged": True}, "notifications/odd", {}, False),
    ],
)
def test_what_a_listen_hears(
    wanted: JSONObject, method: str, params: JSONObject, heard: bool
) -> None:
    """MCP 2026-07-28 basic/patterns/subscribe: only the types that were requested."""
    peer = peer_with()
    call = listen(peer, 7, **wanted)
    assert list(listeners(peer, method, params)) == [call] * heard


def test_each_listen_of_a_connection_hears_for_itself() -> None:
    """MCP 2026-07-28 basic/patterns/subscribe: many listens may coexist."""
    peer = peer_with()
    first = listen(peer, 1, toolsListChanged=True)
    listen(peer, 2, promptsListChanged=True)
    third = listen(peer, "1", toolsListChanged=True)
    assert list(listeners(peer, TOOLS, {})) == [first, third]


@pytest.mark.parametrize("id", [7, "7", 0, ""])
@pytest.mark.parametrize("meta", [None, {"example.com/a": 1}, {META_SUBSCRIPTION_ID: 99}, "odd"])
def test_a_notification_of_a_listen_names_it(id: int | str, meta: object) -> None:
    """MCP 2026-07-28 basic/patterns/subscribe: the id of the listen, with its JSON type."""
    call = listen(peer_with(), id)
    params: JSONObject = {"uri": "file:///a"}
    if meta is not None:
        params["_meta"] = meta
    before = dict(params)
    kept = {"example.com/a": 1} if meta == {"example.com/a": 1} else {}
    assert stamped(call, UPDATED, params) == Notification(
        UPDATED, {"_meta": {**kept, META_SUBSCRIPTION_ID: id}, "uri": "file:///a"}
    )
    assert params == before, "what was announced belongs to others, too"


@pytest.mark.parametrize(
    ("method", "hint"),
    [
        (TOOLS, True),
        (PROMPTS, True),
        (RESOURCES, True),
        (UPDATED, True),
        ("notifications/message", False),
        ("notifications/progress", False),
        ("notifications/resources/updated/list", False),
    ],
)
def test_what_only_tells_to_look_again(method: str, hint: bool) -> None:
    """ours: ADR-0014: one of these that waits is as good as two."""
    assert only_a_hint(Notification(method)) is hint
