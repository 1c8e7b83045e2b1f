"""What travels between the server, its forkserver and the workers: messages and their framing.

A frame is four bytes of length, big endian, and that many bytes of MessagePack. Each message is
an array whose first element is its tag. Does no I/O.
"""

from __future__ import annotations

from typing import Final

import msgspec

__all__ = [
    "Begin",
    "Begun",
    "Exited",
    "Failed",
    "Fork",
    "Frames",
    "Garbled",
    "Kill",
    "Returned",
    "Run",
    "Standby",
    "Unforked",
    "frame",
    "frame_payload",
    "from_forkserver",
    "from_worker",
    "to_forkserver",
    "to_worker",
]

_HEADER_BYTES: Final = 4


class Begin(msgspec.Struct, array_like=True, tag=1):
    """Server to forkserver, first: what to be like and what to import.

    `main_name` is set when the server runs as `python -m main_name`, `main_path` when it runs as
    a script; neither in an interactive interpreter. `max_result_bytes` is the encoded size.
    """

    argv: list[str]
    modules: list[str]
    main_name: str | None
    main_path: str | None
    max_result_bytes: int


class Fork(msgspec.Struct, array_like=True, tag=2):
    """Server to forkserver: fork worker `number`; its end of a socket pair travels along."""

    number: int


class Kill(msgspec.Struct, array_like=True, tag=3):
    """Server to forkserver: end worker `number` and its process group; answered by Exited."""

    number: int


class Begun(msgspec.Struct, array_like=True, tag=1):
    """Forkserver to server: the imports are over. One text for each that failed."""

    problems: list[str]
    threads: int


class Unforked(msgspec.Struct, array_like=True, tag=2):
    """Forkserver to server: worker `number` could not be forked."""

    number: int
    reason: str


class Exited(msgspec.Struct, array_like=True, tag=3):
    """Forkserver to server: worker `number` is gone and reaped, and so is its group.

    `returncode` is negative for a signal. Sent again for a number that is not known (any more).
    """

    number: int
    returncode: int


class Run(msgspec.Struct, array_like=True, tag=1):
    """Server to worker: call the function named `target`, "module:qualname"."""

    target: str
    positional: list[object]
    keywords: dict[str, object]


class Standby(msgspec.Struct, array_like=True, tag=1):
    """Worker to server, first: it waits for a Run."""

    pid: int


class Returned(msgspec.Struct, array_like=True, tag=2):
    """Worker to server: what the function returned."""

    value: object


class Failed(msgspec.Struct, array_like=True, tag=3):
    """Worker to server: the function raised, or what it returned cannot travel.

    `spoken` is the text of a ToolError and None for everything else.
    """

    type_name: str
    spoken: str | None
    traceback: str


# One decoder a direction: a message that may not come that way is refused.
to_forkserver: Final = msgspec.msgpack.Decoder(Begin | Fork | Kill)
from_forkserver: Final = msgspec.msgpack.Decoder(Begun | Unforked | Exited)
to_worker: Final = msgspec.msgpack.Decoder(Run)
from_worker: Final = msgspec.msgpack.Decoder(Standby | Returned | Failed)

_encoder: Final = msgspec.msgpack.Encoder()


def frame(message: msgspec.Struct) -> bytes:
    """Encode one message as one frame; TypeError, OverflowError, ... when a value cannot travel."""
    return frame_payload(_encoder.encode(message))


def frame_payload(payload: bytes) -> bytes:
    """Put the length in front of an encoded message."""
    return len(payload).to_bytes(_HEADER_BYTES, "big") + payload


class Garbled(ValueError):
    """The peer announced a frame above the bound: the stream cannot be followed any further."""


class Frames:
    """Cuts a byte stream into the payloads of its frames. Holds at most one frame and a chunk."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._buffer = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the payloads completed by `chunk`, oldest first; Garbled above the bound."""
        buffer = self._buffer
        buffer += chunk
        payloads: list[bytes] = []
        start = 0
        while len(buffer) - start >= _HEADER_BYTES:
            body = start + _HEADER_BYTES
            size = int.from_bytes(buffer[start:body], "big")
            if size > self._max_bytes:
                raise Garbled(f"a frame of {size} bytes; at most {self._max_bytes} are allowed")
            if len(buffer) - body < size:
                break
            payloads.append(bytes(buffer[body : body + size]))
            start = body + size
        del buffer[:start]
        return payloads
