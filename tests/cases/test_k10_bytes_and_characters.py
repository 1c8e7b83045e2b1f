"""K10: a message is a line of bytes, and becomes characters only when it is complete.

Readers that took U+2028 for a line end, decoded chunk by chunk, or believed the locale, changed
or lost what they were sent.
"""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raxol_mcp.wire.framing import Lines
from raxol_mcp.wire.jsonrpc import decode
from tests.cases.dialects import BOTH_ERAS, LEGACY, STDIO, Dialect, case, result_of, text_of
from tests.cases.fixture_server import INSTRUCTIONS
from tests.cases.peers import Exchange, MemoryPeer, Peer, StdioPeer

# Every character that some reader takes for the end of a line, and neighbours of the BMP's end.
ODD: Final = (
    "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\x1dh\x1ei\uffffj\U0010ffffk\ufeffl\r\nm\tn\x7fo\u200dp😀"
)


@case(wires=[STDIO])
async def test_only_a_newline_ends_a_message(peer: Peer, era: Dialect) -> None:
    """BC-033. MCP basic/transports stdio: delimited by newlines; a newline is 0x0A."""
    await era.greet(peer)
    await peer.send_bytes(json.dumps(era.call(2, "echo", {"text": ODD})).encode() + b"\n")
    await peer.send(era.call(3, "echo", {"text": ODD}), era.request(4, "tools/list"))
    assert text_of(await peer.answer(2)) == ODD
    assert text_of(await peer.answer(3)) == ODD
    assert "tools" in result_of(await peer.answer(4))


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
def test_windows_line_ends_and_byte_order_marks_are_read(era: Dialect) -> None:
    """BC-035. RFC 8259 §8.1 allows to ignore a byte order mark."""

    async def scenario() -> None:
        peer = await StdioPeer.start()
        try:
            await peer.send_bytes(b"\xef\xbb\xbf")
            await era.greet(peer)
            listing = json.dumps(era.request(2, "tools/list")).encode()
            await peer.send_bytes(listing + b"\r\n\r\n")
            third = json.dumps(era.request(3, "tools/list")).encode()
            await peer.send_bytes(b"\xef\xbb\xbf" + third + b"\r\n")
            await peer.send(era.call(4, "echo", {"text": "\ufeffkeep"}))
            for id in (2, 3):
                assert "tools" in result_of(await peer.answer(id))
            assert text_of(await peer.answer(4)) == "\ufeffkeep"
            await peer.send_bytes(json.dumps(era.request(5, "tools/list")).encode())
            assert await peer.finish() == 0
            assert "tools" in result_of(peer.answers(5)[0])
            assert b"\r" not in peer.raw
        finally:
            await peer.kill()

    asyncio.run(scenario())


LOCALES: Final = [
    {"PYTHONIOENCODING": "cp1252"},
    {"PYTHONIOENCODING": "cp932"},
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
]


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
@pytest.mark.parametrize("environment", LOCALES, ids=lambda environment: next(iter(environment)))
def test_the_locale_changes_nothing(environment: dict[str, str], era: Dialect) -> None:
    """BC-161. MCP basic/transports: messages MUST be UTF-8, whatever the locale."""
    text = "Messgerät → 読取 ✓ řemeslník"

    async def scenario() -> None:
        peer = await StdioPeer.start(environment=environment)
        try:
            await era.greet(peer)
            await peer.send(era.call(2, "echo", {"text": text}))
            escaped = json.dumps(era.call(3, "echo", {"text": text})).encode()
            await peer.send_bytes(escaped + b"\n")
            assert text_of(await peer.answer(2)) == text
            assert text_of(await peer.answer(3)) == text
            discovered = era.request("d", "server/discover")
            asked = peer.answers("init") or [await peer.request(discovered)]
            assert result_of(asked[0])["instructions"] == INSTRUCTIONS
            assert await peer.finish() == 0
            assert text.encode() in peer.raw
        finally:
            await peer.kill()

    asyncio.run(scenario())


# -- chunks ----------------------------------------------------------------------------------------

STREAM: Final = "".join(
    line + end
    for line, end in zip(
        [
            json.dumps(LEGACY.call(1, "echo", {"text": ODD}), ensure_ascii=False),
            json.dumps(LEGACY.call(2, "echo", {"text": ODD})),
            "",
            "\ufeff" + json.dumps(LEGACY.request("ä😀", "tools/list"), ensure_ascii=False),
            "{broken",
            json.dumps({"jsonrpc": "2.0", "id": 5, "method": "ping"}),
        ],
        ["\n", "\r\n", "\n", "\n", "\n", ""],
        strict=True,
    )
).encode()


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_chunks_of_one_size_change_nothing(size: int) -> None:
    """BC-033 and BC-035, the kind: a character cut in two is not decoded in halves."""
    chunks = [STREAM[at : at + size] for at in range(0, len(STREAM), size)]
    assert _messages(chunks) == _messages([STREAM])


@given(cuts=st.lists(st.integers(0, len(STREAM)), max_size=30))
@settings(max_examples=200)
def test_no_chunks_change_anything(cuts: list[int]) -> None:
    """The same at any places."""
    edges = [0, *sorted(cuts), len(STREAM)]
    chunks = [STREAM[start:end] for start, end in pairwise(edges)]
    assert _messages(chunks) == _messages([STREAM])


def _messages(chunks: list[bytes]) -> list[object]:
    lines = Lines()
    found = [line for chunk in chunks for line in lines.feed(chunk)] + lines.eof()
    return [decode(line) if isinstance(line, bytes) else line for line in found]


def test_every_text_comes_back_as_it_was_sent() -> None:
    """BC-033, the kind, for every text of Unicode, escaped and not."""
    with Exchange() as exchange:

        @given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
        @settings(max_examples=200)
        def comes_back(text: str) -> None:
            async def echoes(peer: MemoryPeer) -> None:
                call = BOTH_ERAS[1].call(1, "echo", {"text": text})
                await peer.send(call)
                await peer.send_bytes(json.dumps({**call, "id": 2}).encode() + b"\r\n")
                assert text_of(await peer.answer(1)) == text
                assert text_of(await peer.answer(2)) == text

            exchange.run(echoes)

        comes_back()


@case(wires=[STDIO], eras=[LEGACY])
async def test_a_message_may_come_byte_by_byte(peer: Peer, era: Dialect) -> None:
    """BC-035, the kind, on a real pipe."""
    await era.greet(peer)
    line = json.dumps(era.call(1, "echo", {"text": "ä😀"}), ensure_ascii=False).encode() + b"\n"
    for at in range(len(line)):
        await peer.send_bytes(line[at : at + 1])
        await asyncio.sleep(0)
    assert text_of(await peer.answer(1)) == "ä😀"
