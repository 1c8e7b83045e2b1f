"""The head of an answer, held back until its body comes."""

from __future__ import annotations

import asyncio

import pytest

from raxol_mcp.transports.http.corked import Corked

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"
EVENTS = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"


class Wire(asyncio.Transport):
    """Remembers what was done to it, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.journal: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Take a piece."""
        self.journal.append(bytes(data))

    def close(self) -> None:
        """Note the end."""
        self.journal.append(b"closed")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ([HEAD, b"hi"], [HEAD + b"hi"]),
        ([HEAD, b"hi", HEAD, b"ho"], [HEAD + b"hi", HEAD + b"ho"]),
        ([HEAD, b"h", b"i"], [HEAD + b"h", b"i"]),
        ([EVENTS, b"5\r\nevent\r\n"], [EVENTS, b"5\r\nevent\r\n"]),
        ([b"HTTP/1.1 100 Continue\r\n\r\n"], [b"HTTP/1.1 100 Continue\r\n\r\n"]),
        ([HEAD + b"hi"], [HEAD + b"hi"]),
        ([b"content-length: 2\r\n\r\n"], [b"content-length: 2\r\n\r\n"]),
        ([HEAD], []),
    ],
)
def test_a_head_goes_with_the_body_that_follows_it(
    written: list[bytes], expected: list[bytes]
) -> None:
    """Ours: one write for an answer; a head that no length announces a body for goes at once"""
    wire = Wire()
    corked = Corked(wire)
    for data in written:
        corked.write(data)
    assert wire.journal == expected


def test_what_is_held_is_written_when_no_body_comes() -> None:
    """RFC 9110 §9.3.2: the answer to a HEAD has a length and no body"""
    wire = Wire()
    corked = Corked(wire)
    corked.write(HEAD)
    corked.flush()
    corked.flush()
    assert wire.journal == [HEAD]
    corked.write(HEAD)
    corked.close()
    assert wire.journal == [HEAD, HEAD, b"closed"]
