"""What a server or a client tells its observer: every event and its fields, in one place.

`Server(observe=...)` and `Client(observe=...)` are given a function `(event, fields)`. It is
called on their loop, so it must not block; what it raises is logged and goes no further. Counting
is enough for most:

```python
counts = Counter()
server = Server("files", observe=lambda event, fields: counts.update([event]))
```
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

__all__ = ["EVENTS", "Observer"]

Observer = Callable[[str, dict[str, object]], None]

EVENTS: Final[Mapping[str, Mapping[str, str]]] = {
    "busy": {
        "scope": '"server" or "connection": which bound was reached',
        "method": "the method that found no slot",
    },
    "callback_timeout": {
        "method": "the method whose worker was stopped",
        "name": "of the tool or prompt, or the uri",
    },
    "client_capabilities_evicted": {
        "size": "how many connections are remembered after the eviction",
        "live_subscriber": "whether the one that was forgotten still has a sink",
    },
    "connected": {
        "era": '"handshake" or "stateless"',
        "version": "the revision of MCP that is spoken",
    },
    "disconnected": {
        "reason": "why, for people",
        "retry_in": "seconds until the next attempt; None when there will be none",
    },
    "forbidden_request": {},
    "notification_failed": {"tag": "of the reason"},
    "parked_call_evicted": {},
    "request_state_refused": {"reason": "which check failed; the client is not told"},
    "stray_answer": {},
    "stray_message": {},
    "stray_output": {
        "text": "the beginning of a line that is no message, escaped",
        "count": "how many there were on this connection",
    },
    "stray_progress": {},
    "stream_given_up": {"tries": "how often the stream of a session was opened in vain"},
    "stream_reopened": {"resumed": "whether it goes on where it was broken off"},
}
"""The fields of each event, and what they say."""
