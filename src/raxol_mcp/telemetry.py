"""What a server tells its observer: every event and its fields, in one place.

`Server(observe=...)` is given a function `(event, fields)`. It is called on the server's loop, so
it must not block; what it raises is logged and goes no further. Counting is enough for most:

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
    "parked_call_evicted": {},
    "request_state_refused": {"reason": "which check failed; the client is not told"},
    "stray_answer": {},
}
"""The fields of each event, and what they say."""
