"""What a scripted peer does, as data: the same for a process, an HTTP server and a memory link.

A `Script` is a preset, which behaves well, and rules, which say where the peer does not. It is
JSON, so that a process can be given it as an argument. What is done at an event is a list of
steps; whoever performs them (`stdio_peer.py`, `http_peer.py`, `memory_link.py`) knows what each
means on its wire.

```python
script("legacy", on("tools/call", raw('{"id": $ID, "result"'), leave(3)), on("ping", silent()))
```

Only the standard library: the process has to start fast.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

__all__ = [
    "ECHO",
    "LEGACY_VERSION",
    "MODERN_VERSION",
    "PREFIX",
    "Message",
    "Script",
    "Step",
    "as_usual",
    "close_output",
    "drop",
    "error",
    "filled",
    "forget",
    "http",
    "kill",
    "leave",
    "notice",
    "on",
    "question",
    "raw",
    "raw_bytes",
    "reply",
    "say",
    "script",
    "silent",
    "sse",
    "stderr",
    "stop_reading",
    "text",
    "until",
    "wait",
    "wire",
]

Message = dict[str, Any]
Step = dict[str, Any]
Rule = dict[str, Any]
# A piece of raw bytes: text, bytes, or one of them so many times.
Piece = str | bytes | tuple[str | bytes, int]

LEGACY_VERSION: Final = "2025-11-25"
LEGACY_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", LEGACY_VERSION)
MODERN_VERSION: Final = "2026-07-28"
PREFIX: Final = "io.modelcontextprotocol/"

ECHO: Final[Message] = {
    "name": "echo",
    "description": "Gives back what it is given",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
}
SLOW: Final[Message] = {"name": "slow", "inputSchema": {"type": "object"}}
SERVER_INFO: Final[Message] = {"name": "scripted", "version": "0"}


# -- writing a script ------------------------------------------------------------------------------


def script(preset: str, *rules: Rule, **options: Any) -> Message:
    """Build a script.

    `preset` is "legacy", "modern" or "two_endpoints". Options: `ignores` (a list of "eof" and
    "term"), `grandchild` (a process that outlives its parent and holds its pipes), `capabilities`,
    `tools`, `framing` ("json" or "sse"), `session` (the id an HTTP session is given, or None),
    `keep` (False: a connection is closed, unannounced, after one response).
    """
    return {"preset": preset, "rules": list(rules), **options}


def on(event: str, *steps: Step, times: int | None = None, life: int | None = None) -> Rule:
    """Say what is done at an event.

    An event is "start", "eof", "GET", "DELETE", a method, a method and the name or URI it is
    about, "answer" (the client answered a request of the peer), or "*" for any message. The first
    rule that fits wins, `times` times at most, and only in process or connection number `life`.
    """
    return {"on": event, "do": list(steps), "times": times, "life": life}


def say(message: Message, *, count: int = 1) -> Step:
    """Send a message. In it "$ID", "$TOKEN", "$TEXT" and "$N" stand for what they say."""
    return {"step": "say", "message": message, "count": count}


def reply(result: Any) -> Step:
    """Answer the request with a result."""
    return say({"jsonrpc": "2.0", "id": "$ID", "result": result})


def text(said: str, **more: Any) -> Step:
    """Answer a call with a text."""
    return reply({"content": [{"type": "text", "text": said}], **more})


def error(code: Any, message: Any = "no", **more: Any) -> Step:
    """Answer the request with an error."""
    return say({"jsonrpc": "2.0", "id": "$ID", "error": {"code": code, "message": message, **more}})


def notice(method: str, params: Message | None = None, *, count: int = 1) -> Step:
    """Send a notification."""
    return say({"jsonrpc": "2.0", "method": method, "params": params or {}}, count=count)


def question(method: str, params: Message | None = None, *, id: Any = "q", count: int = 1) -> Step:
    """Ask the client something."""
    asked = {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}
    return say(asked, count=count)


def raw(*pieces: Piece, chunk: int = 0, pause: float = 0.0) -> Step:
    """Send exact bytes where a line of a pipe, or the body of a response, would be."""
    return {"step": "raw", "pieces": _pieces(pieces), "chunk": chunk, "pause": pause}


def sse(*pieces: Piece, chunk: int = 0, pause: float = 0.0) -> Step:
    """HTTP: send exact bytes in the body of an event stream. It ends with the steps."""
    return {"step": "sse", "pieces": _pieces(pieces), "chunk": chunk, "pause": pause}


def wire(*pieces: Piece, chunk: int = 0, pause: float = 0.0) -> Step:
    """HTTP: send exact bytes on the socket, in place of a response."""
    return {"step": "wire", "pieces": _pieces(pieces), "chunk": chunk, "pause": pause}


def http(status: int, *body: Piece, **headers: str) -> Step:
    """HTTP: respond exactly so. Header names are written with underscores."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return {"step": "http", "status": status, "headers": named, "pieces": _pieces(body)}


def wait(seconds: float) -> Step:
    """Do nothing for a while; other messages are dealt with meanwhile."""
    return {"step": "wait", "seconds": seconds}


def until(event: str) -> Step:
    """Wait for the next such event, an "answer" or a method."""
    return {"step": "until", "event": event}


def silent() -> Step:
    """Never answer; over HTTP the response does not begin."""
    return {"step": "silent"}


def as_usual() -> Step:
    """Do what the preset does."""
    return {"step": "as_usual"}


def leave(code: int = 0) -> Step:
    """Exit with a code. Over HTTP: every connection and every session is gone."""
    return {"step": "leave", "code": code}


def kill(signal: int = 9) -> Step:
    """Die by a signal."""
    return {"step": "kill", "signal": signal}


def drop(where: str) -> Step:
    """HTTP: end the connection without a word ("reset", "close"), or "headers" or "body" in."""
    return {"step": "drop", "where": where}


def forget() -> Step:
    """HTTP: forget every session."""
    return {"step": "forget"}


def close_output() -> Step:
    """Close stdout and live on."""
    return {"step": "close_output"}


def stop_reading() -> Step:
    """Read nothing more."""
    return {"step": "stop_reading"}


def stderr(*pieces: Piece) -> Step:
    """Write to stderr."""
    return {"step": "stderr", "pieces": _pieces(pieces)}


def _pieces(pieces: tuple[Piece, ...]) -> list[list[Any]]:
    found: list[list[Any]] = []
    for piece in pieces:
        said, count = piece if isinstance(piece, tuple) else (piece, 1)
        data = said.encode() if isinstance(said, str) else said
        # JSON has no bytes: each stands for the character of its number.
        found.append([data.decode("latin-1"), count])
    return found


# -- following it ----------------------------------------------------------------------------------


class Script:
    """A script that is followed by one peer; `life` is the number of its process."""

    def __init__(self, data: Message, life: int = 1) -> None:
        self.data = data
        self.life = life
        self._left = [rule["times"] for rule in data["rules"]]

    @property
    def preset(self) -> str:
        """Which preset it builds on."""
        preset: str = self.data["preset"]
        return preset

    def steps(self, event: str, message: Message | None = None) -> list[Step]:
        """Say what to do at an event that is no message, or at this message."""
        names = [event]
        if message is not None:
            params = message.get("params")
            about = params.get("name", params.get("uri")) if isinstance(params, dict) else None
            names += [f"{event} {about}", "*"]
        found = self._rule(names)
        if found is None:
            return [] if message is None else self.usual(message)
        usual = self.usual(message) if message is not None else []
        return [
            each for step in found for each in (usual if step["step"] == "as_usual" else [step])
        ]

    def event_of(self, message: Message) -> str:
        """Name the event that a message of the client is."""
        method = message.get("method")
        return method if isinstance(method, str) else "answer"

    def usual(self, message: Message) -> list[Step]:
        """Say what the preset does with a message."""
        method = message.get("method")
        if method is None or "id" not in message:
            return []
        params: Message = message.get("params") or {}
        if self.preset == "modern":
            return self._modern(method, params)
        return self._legacy(method, params)

    def _rule(self, names: list[str]) -> list[Step] | None:
        for at, rule in enumerate(self.data["rules"]):
            if rule["on"] not in names or rule["life"] not in (None, self.life):
                continue
            if self._left[at] is None or self._left[at] > 0:
                if self._left[at] is not None:
                    self._left[at] -= 1
                steps: list[Step] = rule["do"]
                return steps
        return None

    def _legacy(self, method: str, params: Message) -> list[Step]:
        if method == "initialize":
            asked = params.get("protocolVersion")
            version = asked if asked in LEGACY_VERSIONS else LEGACY_VERSION
            result = {"protocolVersion": version, "serverInfo": SERVER_INFO}
            return [reply({**result, "capabilities": self._capabilities()})]
        if method in ("ping", "logging/setLevel"):
            return [reply({})]
        return self._served(method, params, {})

    def _modern(self, method: str, params: Message) -> list[Step]:
        complete = {"resultType": "complete"}
        fresh = {"ttlMs": 60_000, "cacheScope": "private"}
        meta = params.get("_meta")
        if method == "initialize":
            return [error(-32601, "Method not found")]
        if not isinstance(meta, dict) or f"{PREFIX}clientCapabilities" not in meta:
            return [error(-32602, "Invalid params: _meta is required")]
        if meta.get(f"{PREFIX}protocolVersion") != MODERN_VERSION:
            supported = {"supported": [MODERN_VERSION], "requested": "?"}
            return [error(-32022, "Unsupported protocol version", data=supported)]
        if method == "server/discover":
            about = {"_meta": {f"{PREFIX}serverInfo": SERVER_INFO}}
            result = {"supportedVersions": [MODERN_VERSION], "capabilities": self._capabilities()}
            return [reply({**complete, **fresh, **result, **about})]
        if method == "subscriptions/listen":
            acknowledged = "notifications/subscriptions/acknowledged"
            subscription = {"_meta": {f"{PREFIX}subscriptionId": "$ID"}}
            asked = {"notifications": params.get("notifications", {})}
            return [notice(acknowledged, {**asked, **subscription}), silent()]
        return self._served(method, params, complete, fresh if method == "tools/list" else {})

    def _served(
        self, method: str, params: Message, result: Message, more: Message | None = None
    ) -> list[Step]:
        if method == "tools/list":
            tools = self.data.get("tools", [ECHO, SLOW])
            return [reply({**result, **(more or {}), "tools": tools})]
        if method == "tools/call" and params.get("name") == "slow":
            return [silent()]
        if method == "tools/call":
            return [text("$TEXT", **result)]
        return [error(-32601, "Method not found")]

    def _capabilities(self) -> Message:
        found: Message = self.data.get("capabilities", {"tools": {"listChanged": True}})
        return found


def raw_bytes(step: Step, message: Message | None) -> Iterator[bytes]:
    """Give the bytes of a step with `pieces`, cut as it says; `$ID` in them is the request's id."""
    id = json.dumps(message.get("id")).encode() if message is not None else b"null"
    data = b"".join(
        said.encode("latin-1").replace(b"$ID", id) * count for said, count in step["pieces"]
    )
    chunk = step.get("chunk") or len(data) or 1
    for at in range(0, len(data), chunk):
        yield data[at : at + chunk]


def filled(step: Step, message: Message | None) -> Iterator[Message]:
    """Give the messages of a "say" step."""
    about = message or {}
    params = about.get("params") or {}
    said = (params.get("arguments") or {}).get("text", "ok")
    token = (params.get("_meta") or {}).get("progressToken")
    for at in range(step["count"]):
        values = {"$ID": about.get("id"), "$TEXT": said, "$TOKEN": token, "$N": at}
        whole: Message = _filled(step["message"], values)
        yield whole


def _filled(value: Any, values: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        return {name: _filled(item, values) for name, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, values) for item in value]
    return values.get(value, value) if isinstance(value, str) else value
