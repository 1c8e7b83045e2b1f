"""Results for clients of earlier revisions: what they cannot read is said in what they can.

Members that a revision does not know stay where they are: every object of MCP is open, and a
client passes over them. These three it cannot pass over, because it refuses the whole result:

| in a result | known since | before that |
|---|---|---|
| an audio item | 2025-03-26 | an embedded resource with the same bytes |
| a `resource_link` item | 2025-06-18 | a text item with its name and its URI |
| `structuredContent` that is no object | 2026-07-28 | left out; the content holds it as text |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from raxol_mcp.wire.jsonrpc import JSONObject, encode_result

if TYPE_CHECKING:
    from raxol_mcp.core.calls import Call

__all__ = ["adapted", "completed"]

_AUDIO_SINCE: Final = "2025-03-26"
_LINKS_SINCE: Final = "2025-06-18"
_MAX_TEXT_BYTES: Final = 16 * 1024 * 1024


def completed(call: Call, payload: JSONObject, *, cached: bool = False) -> JSONObject:
    """Make a result whole: for the revision of the call's client, and then for the call's era.

    A stateless request is of its own revision, whatever the connection agreed on before.
    """
    era, version = call.era, call.peer.version
    if version is not None and era.parks:
        payload = adapted(payload, version)
    return era.complete(payload, cached=cached)


def adapted(payload: JSONObject, version: str) -> JSONObject:
    """Return the result of a tool or a prompt as a client of a handshake revision can read it.

    `version` is the negotiated one. Returns `payload` itself where nothing has to change; raises
    `UnencodableResult` like the encoding that follows.
    """
    structured = payload.get("structuredContent")
    if "structuredContent" in payload and not isinstance(structured, dict):
        payload = {name: item for name, item in payload.items() if name != "structuredContent"}
        if not payload.get("content"):
            text = bytes(encode_result(structured, max_bytes=_MAX_TEXT_BYTES)).decode()
            payload["content"] = [{"type": "text", "text": text}]
    if version >= _LINKS_SINCE:
        return payload
    if isinstance(content := payload.get("content"), list):
        return {**payload, "content": [_item(*pair, version) for pair in enumerate(content, 1)]}
    if isinstance(messages := payload.get("messages"), list):
        told = [
            {**message, "content": _item(number, message["content"], version)}
            for number, message in enumerate(messages, 1)
        ]
        return {**payload, "messages": told}
    return payload


def _item(number: int, item: JSONObject, version: str) -> JSONObject:
    """Adapt one content item; its number tells attachments of one result apart."""
    kind = item.get("type")
    if kind == "audio" and version < _AUDIO_SINCE:
        blob = {
            "uri": f"attachment:audio-{number}",
            "mimeType": item.get("mimeType"),
            "blob": item.get("data"),
        }
        attached: JSONObject = {"type": "resource", "resource": blob}
        attached.update((name, item[name]) for name in ("annotations", "_meta") if name in item)
        return attached
    if kind == "resource_link":
        label = item.get("title") or item.get("name")
        lines = [f"{label}: {item.get('uri')}", *filter(None, [item.get("description")])]
        return {"type": "text", "text": "\n".join(map(str, lines))}
    return item
