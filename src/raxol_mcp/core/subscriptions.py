"""Who wants to hear what: handshake subscriptions per connection, listens per request.

Answers "to whom"; the core puts the messages together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from raxol_mcp.core.calls import Call
from raxol_mcp.core.peers import Peer
from raxol_mcp.wire.jsonrpc import JSONObject, Notification
from raxol_mcp.wire.meta import META_SUBSCRIPTION_ID

__all__ = [
    "LISTEN_FIELDS",
    "RESOURCE_UPDATED",
    "listeners",
    "only_a_hint",
    "stamped",
    "wants_broadcast",
]

RESOURCE_UPDATED: Final = "notifications/resources/updated"
# Field of a listen filter -> the notification it asks for.
# MCP 2026-07-28 basic/patterns/subscribe.
LISTEN_FIELDS: Final = {
    "toolsListChanged": "notifications/tools/list_changed",
    "promptsListChanged": "notifications/prompts/list_changed",
    "resourcesListChanged": "notifications/resources/list_changed",
}
_FIELD_OF: Final = {method: field for field, method in LISTEN_FIELDS.items()}


def wants_broadcast(peer: Peer, method: str, params: JSONObject) -> bool:
    """Say whether a connection is told outside of any listen.

    An update of a resource goes to those that subscribed to it. Everything else goes to every
    connection with a sink, except one that has to greet and did not, or that speaks the stateless
    era alone: a stateless client must not be sent what it did not ask for
    (MCP 2026-07-28 basic/patterns/subscribe).
    """
    if not peer.open:
        return False
    if method == RESOURCE_UPDATED:
        return params.get("uri") in peer.subscriptions
    return peer.greeted or not (peer.facts.greeting_required or peer.stateless)


def listeners(peer: Peer, method: str, params: JSONObject) -> Iterator[Call]:
    """Yield the listens of a connection that asked for this notification."""
    field = _FIELD_OF.get(method)
    for call in peer.listening.values():
        if method == RESOURCE_UPDATED:
            uris = call.arguments.get("resourceSubscriptions")
            if isinstance(uris, list) and params.get("uri") in uris:
                yield call
        elif field is not None and call.arguments.get(field) is True:
            yield call


def stamped(call: Call, method: str, params: JSONObject) -> Notification:
    """Write a notification of a listen: every one names its subscription."""
    meta = params.get("_meta")
    stamp: JSONObject = {META_SUBSCRIPTION_ID: call.id}
    whole = {**meta, **stamp} if isinstance(meta, dict) else stamp
    return Notification(
        method, {"_meta": whole, **{k: v for k, v in params.items() if k != "_meta"}}
    )


def only_a_hint(notification: Notification) -> bool:
    """Say whether a notification tells to look again, and nothing else.

    While one waits to be sent, another that equals it says nothing new.
    """
    return notification.method == RESOURCE_UPDATED or notification.method.endswith("/list_changed")
