"""A connection that writes the head of an answer together with the first of its body.

Holds a head back; writes nothing of its own. An HTTP server that speaks ASGI is given the two apart
and writes each as it comes: two system calls and two packets for an answer that fits into one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio

__all__ = ["Corked"]

# Of a head whose body follows for certain. That of a stream of events has none, and goes at once.
_LENGTH: Final = b"content-length: "
_HEAD: Final = b"HTTP/1.1 "


class Corked:
    """What a uvicorn protocol uses of a transport.

    `flush` is to be called when an answer is complete: that to a HEAD has a length and no body.
    """

    __slots__ = (
        "_held",
        "_transport",
        "_write",
        "abort",
        "get_extra_info",
        "is_closing",
        "pause_reading",
        "resume_reading",
    )

    def __init__(self, transport: asyncio.Transport) -> None:
        self.abort = transport.abort
        self.get_extra_info = transport.get_extra_info
        self.is_closing = transport.is_closing
        self.pause_reading = transport.pause_reading
        self.resume_reading = transport.resume_reading
        self._held: bytes | None = None
        self._transport = transport
        self._write = transport.write

    def write(self, data: bytes) -> None:
        """Write `data` after what is held; hold it, if it is the head of an answer with a body."""
        held = self._held
        if held is not None:
            self._held = None
            self._write(held + data)
        elif data.startswith(_HEAD) and data.endswith(b"\r\n\r\n") and data.find(_LENGTH) > 0:
            self._held = data
        else:
            self._write(data)

    def flush(self) -> None:
        """Write what is held."""
        if self._held is not None:
            self.write(b"")

    def close(self) -> None:
        """Close the connection after what was written, and what is held."""
        self.flush()
        self._transport.close()
