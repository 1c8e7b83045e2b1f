"""wire/framing.py: lines end at 0x0A and nowhere else, however the bytes arrive."""

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from raxol_mcp.wire.framing import MAX_LINE_BYTES, Lines, TooLong

LIMIT = 8


def chunks(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


def fed(pieces: list[bytes], *, limit: int = LIMIT) -> list[bytes | TooLong]:
    """Return everything a stream of these pieces gives, its end included."""
    lines = Lines(limit)
    found = [line for piece in pieces for line in lines.feed(piece)]
    return [*found, *lines.eof()]


def yardstick(data: bytes, *, limit: int = LIMIT) -> list[bytes | None]:
    """Split the whole stream at once; None is a line over the limit."""
    found: list[bytes | None] = [line if len(line) <= limit else None for line in data.split(b"\n")]
    # What follows the last newline is a line only if it is there.
    return found if found[-1] != b"" else found[:-1]


def outcome(lines: list[bytes | TooLong]) -> list[bytes | None]:
    return [None if isinstance(line, TooLong) else line for line in lines]


@st.composite
def cut(draw: st.DrawFn) -> list[bytes]:
    """Draw a stream and cut it anywhere, empty pieces included."""
    alphabet = st.sampled_from([b"\n", b"\n", b"\r", b"a", b"bcd", "\u2028".encode(), b"\x85"])
    data = b"".join(draw(st.lists(alphabet, max_size=30)))
    places = sorted(draw(st.lists(st.integers(0, len(data)), max_size=10)))
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]


@given(cut())
@example([b"12345678", b"\n"])
@example([b"123456789", b"\n"])
@example([b"12345678", b"9\n1\n"])
def test_the_pieces_do_not_matter(pieces: list[bytes]) -> None:
    """MCP basic/transports §stdio: messages are delimited by newlines."""
    data = b"".join(pieces)
    expected = yardstick(data)
    assert outcome(fed(pieces)) == expected
    for size in (1, 2, 3):
        assert outcome(fed(chunks(data, size))) == expected


@given(cut())
def test_no_more_than_the_limit_is_kept(pieces: list[bytes]) -> None:
    """ours: a peer that never ends its line must not fill the memory."""
    lines = Lines(LIMIT)
    for piece in pieces:
        lines.feed(piece)
        assert len(lines._pending) <= LIMIT


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\r", "\x1e"])
def test_other_separators_belong_to_the_line(separator: str) -> None:
    """https://github.com/anthropics/claude-agent-sdk-typescript/issues/137."""
    message = f'{{"text":"a{separator}b"}}'.encode()
    for size in (1, 2, 3, len(message) + 1):
        assert fed(chunks(message + b"\n", size), limit=100) == [message]


def test_characters_may_be_cut_anywhere() -> None:
    """RFC 3629 §3: a line is decoded when it is complete."""
    messages = ["\u00e9\u4e2d\U0001f600".encode()] * 3
    assert fed(chunks(b"\n".join(messages), 1), limit=100) == messages


def test_carriage_returns_and_blank_lines_are_kept() -> None:
    """ours: whoever decodes the line knows what they mean there."""
    assert Lines().feed(b"a\r\n\r\n\n b\n") == [b"a\r", b"\r", b"", b" b"]


def test_a_last_line_without_its_newline_comes_at_the_end() -> None:
    """ours: many a script prints its last line so."""
    lines = Lines()
    assert lines.feed(b"first\nlast") == [b"first"]
    assert lines.eof() == [b"last"]
    assert lines.eof() == []


def test_a_line_that_is_too_long_is_told_at_once_and_once() -> None:
    """ours: the peer gets its answer while it still writes."""
    lines = Lines(LIMIT)
    assert lines.feed(b"12345678") == []
    assert lines.feed(b"9") == [TooLong(9)]
    assert lines.feed(b"0" * 100) == []
    assert lines.feed(b"0\nnext\n") == [b"next"]


def test_a_line_that_is_too_long_within_one_piece_is_told_too() -> None:
    """ours."""
    assert Lines(LIMIT).feed(b"ok\n123456789\nok\n") == [b"ok", TooLong(9), b"ok"]


def test_a_line_that_gets_too_long_by_its_last_piece_is_told_too() -> None:
    """ours."""
    lines = Lines(LIMIT)
    assert lines.feed(b"1234567") == []
    assert lines.feed(b"89\nok\n") == [TooLong(9), b"ok"]


def test_the_end_of_a_line_that_is_too_long_is_not_a_line() -> None:
    """ours: half a message must never be taken for a whole one."""
    lines = Lines(LIMIT)
    assert lines.feed(b"x" * 20) == [TooLong(20)]
    assert lines.eof() == []
    assert lines.feed(b"again\n") == [b"again"]


@pytest.mark.parametrize("chunk_bytes", [1_000, 4_096, 65_536])
def test_messages_larger_than_any_pipe_arrive_whole(chunk_bytes: int) -> None:
    """https://github.com/modelcontextprotocol/csharp-sdk/issues/942."""
    rng = random.Random(chunk_bytes)
    messages = [rng.randbytes(size).replace(b"\n", b" ") for size in (5_000, 70_000, 1_048_576)]
    stream = b"".join(message + b"\n" for message in messages)
    assert fed(chunks(stream, chunk_bytes), limit=MAX_LINE_BYTES) == messages


def test_the_default_limit_is_4_mib() -> None:
    """ours."""
    lines = Lines()
    assert lines.feed(b"x" * (4 * 1024 * 1024)) == []
    assert lines.feed(b"x") == [TooLong(4 * 1024 * 1024 + 1)]
