"""wire/sse.py: what is written is read back, whatever is in it and however it is cut."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from raxol_mcp.errors import LocalProtocolError
from raxol_mcp.wire.framing import TooLong
from raxol_mcp.wire.sse import (
    KEEP_ALIVE,
    MAX_EVENT_BYTES,
    Event,
    Events,
    comment,
    event,
    message,
)

TEXT = st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]))
BREAKS = (b"\r\n", b"\r", b"\n")


def read(*pieces: bytes, limit: int = MAX_EVENT_BYTES) -> list[Event | TooLong]:
    """Return everything a stream of these pieces gives."""
    events = Events(limit)
    return [found for piece in pieces for found in events.feed(piece)]


def with_one_break(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


# -- writing


def test_a_message_is_one_event_on_three_lines() -> None:
    """MCP basic/transports §Streamable HTTP: `event: message`, one JSON message as data."""
    assert message(b'{"id":1}') == b'event: message\ndata: {"id":1}\n\n'
    assert message(b"{}", id="s-1") == b"id: s-1\nevent: message\ndata: {}\n\n"


def test_a_stream_is_primed_with_an_id_and_empty_data() -> None:
    """MCP 2025-11-25 basic/transports §Sending Messages to the Server, 6."""
    assert event(b"", id="a", retry=1.5) == b"id: a\nretry: 1500\ndata: \n\n"
    assert read(event(b"", id="a")) == [Event(b"", id="a")]


def test_a_line_break_in_the_data_ends_nothing() -> None:
    """WHATWG HTML §9.2.6: data lines are joined; nothing in them is a field or an end."""
    written = event(b"a\n\nid: x\r\nevent: evil\rb")
    assert written == b"data: a\ndata: \ndata: id: x\ndata: event: evil\ndata: b\n\n"
    assert read(written) == [Event(b"a\n\nid: x\nevent: evil\nb")]


@pytest.mark.parametrize("bad", ["a\nb", "a\rb", "a\0b"])
def test_an_id_or_a_name_that_would_be_read_otherwise_is_our_mistake(bad: str) -> None:
    """WHATWG HTML §9.2.6: a line break ends the field, an id with NUL is ignored."""
    with pytest.raises(LocalProtocolError, match="the id of an event"):
        event(b"", id=bad)
    with pytest.raises(LocalProtocolError, match="the event of an event"):
        event(b"", name=bad)


@pytest.mark.parametrize("bad", [-0.001, float("nan"), float("inf"), 1_000_000.0])
def test_a_time_that_no_reader_takes_is_our_mistake(bad: float) -> None:
    """WHATWG HTML §9.2.6: ASCII digits."""
    with pytest.raises(LocalProtocolError, match="retry"):
        event(b"", retry=bad)


@pytest.mark.parametrize("text", ["", "still here", "a\nb\r\nc\rd", "data: x\n\ndata: y", "\ud800"])
def test_a_comment_is_read_by_nobody(text: str) -> None:
    """WHATWG HTML §9.2.6: a line that begins with a colon is ignored."""
    assert read(comment(text), KEEP_ALIVE, event(b"x")) == [Event(b"x")]


def test_comments_are_shown_as_they_are() -> None:
    """ours: they are for the eyes of whoever looks at the stream."""
    assert comment("a\nb") == b": a\n: b\n\n"


# -- both ways


@given(
    st.binary(max_size=20) | st.sampled_from([b"\n", b"\r", b"\r\n\r\n", b" a", b"data: b"]),
    TEXT.filter(lambda name: name != ""),
    TEXT,
    st.none() | st.integers(0, 999_999_999).map(lambda milliseconds: milliseconds / 1000),
    st.integers(1, 5),
)
@example(b"\xef\xbb\xbf", "message", "", 0.0, 1)
@example(b"\x85\xc2\x85", "\u2028", " a ", 1.001, 1)
def test_what_is_written_is_read(
    data: bytes, name: str, last_id: str, retry: float | None, size: int
) -> None:
    """WHATWG HTML §9.2.5 and §9.2.6."""
    events = Events()
    written = event(data, name=name, id=last_id, retry=retry)
    found = [one for piece in cut(written, size) for one in events.feed(piece)]
    assert found == [Event(with_one_break(data), name, last_id)]
    assert (events.last_id, events.retry) == (last_id, retry)


@given(
    st.lists(
        st.sampled_from(
            [b"data", b"data:", b"data: a", b"data:  b", b"event: e", b"id: 1", b"id", b":", b""]
        ),
        max_size=12,
    ),
    st.lists(st.sampled_from(BREAKS), min_size=13, max_size=13),
    st.integers(1, 4),
)
def test_neither_cuts_nor_kinds_of_line_break_matter(
    lines: list[bytes], breaks: list[bytes], size: int
) -> None:
    """WHATWG HTML §9.2.5: CR, LF and CRLF end a line alike."""
    # An LF after a line that ended with CR is the second half of its CRLF and not an empty line.
    mixed = b""
    for line, end in zip(lines, breaks, strict=False):
        joined = mixed.endswith(b"\r") and line == b"" and end == b"\n"
        mixed += line + (b"\r" if joined else end)
    expected = read(b"".join(line + b"\n" for line in lines))
    assert read(mixed) == expected
    assert read(*cut(mixed, size)) == expected


# -- reading


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\n\n", [Event(b"a")]),
        (b"data:a\n\n", [Event(b"a")]),
        (b"data:  a\n\n", [Event(b" a")]),
        (b"data\n\n", [Event(b"")]),
        (b"data:\ndata:\n\n", [Event(b"\n")]),
        (b"data: a: b\n\n", [Event(b"a: b")]),
        (b"\xef\xbb\xbfdata: a\n\n", [Event(b"a")]),
        (b"data: a\n\n\xef\xbb\xbfdata: b\n\n", [Event(b"a")]),
        (b"event: e\ndata: a\n\ndata: b\n\n", [Event(b"a", "e"), Event(b"b")]),
        (b"event:\ndata: a\n\n", [Event(b"a")]),
        (b"event: \xff\ndata: a\n\n", [Event(b"a", "\ufffd")]),
        (b"event: e\n\ndata: a\n\n", [Event(b"a")]),
        (b"id: 1\n\ndata: a\n\n", [Event(b"a", id="1")]),
        (b"id: 1\ndata: a\n\nid: 2\0\ndata: b\n\n", [Event(b"a", id="1"), Event(b"b", id="1")]),
        (b"id: 1\ndata: a\n\nid\ndata: b\n\n", [Event(b"a", id="1"), Event(b"b")]),
        (b"Data: a\nDATA: b\nfoo: c\n: d\n\n", []),
        (b"\n\n\n", []),
        (b"data: a\n", []),
        (b"data: a", []),
    ],
)
def test_a_stream_is_read_as_the_standard_says(
    stream: bytes, expected: list[Event | TooLong]
) -> None:
    """WHATWG HTML §9.2.6, by example."""
    assert read(stream) == expected


@pytest.mark.parametrize(
    ("line", "retry"),
    [
        (b"retry: 0", 0.0),
        (b"retry: 500", 0.5),
        (b"retry: 999999999", 999_999.999),
        (b"retry: 1000000000", None),
        (b"retry: -1", None),
        (b"retry: 1.5", None),
        (b"retry: 1e3", None),
        (b"retry:", None),
        (b"retry: \xd9\xa1", None),
    ],
)
def test_a_retry_is_a_few_ascii_digits(line: bytes, retry: float | None) -> None:
    """WHATWG HTML §9.2.6; ours: not more digits than a wait can have."""
    events = Events()
    events.feed(line + b"\n\n")
    assert events.retry == retry


# -- the bound


def test_an_event_as_long_as_the_limit_is_read() -> None:
    """ours: docs/limits.md."""
    assert read(b"data: 34\n\n", limit=8) == [Event(b"34")]
    assert read(b"data:1\ndata:2\n\n", limit=8) == [Event(b"1\n2")]


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize(
    "event_over_the_limit",
    [
        b"data: 345",
        b"data:1\ndata:2\ndata:3",
        b": 3456789",
        b"data: 345\ndata: 3\nid: 5",
        b"data: 3456789012345678901234567890\r\nid: 7",
    ],
)
def test_an_event_over_the_limit_is_skipped_alone(event_over_the_limit: bytes, size: int) -> None:
    """ours: a server that never ends its event must not fill the memory of its client."""
    stream = b"data: a\n\n" + event_over_the_limit + b"\n\ndata: b\n\n"
    found = read(*cut(stream, size), limit=8)
    assert [one for one in found if isinstance(one, Event)] == [Event(b"a"), Event(b"b")]
    (too_long,) = [one for one in found if isinstance(one, TooLong)]
    assert found[1] is too_long
    assert 8 < too_long.seen_bytes <= 8 + size + len(event_over_the_limit)


def test_no_more_than_the_limit_is_kept_while_skipping() -> None:
    """ours: the rest of a skipped line is dropped unseen."""
    events = Events(8)
    assert events.feed(b"data: 3456") == [TooLong(10)]
    for _ in range(100):
        assert events.feed(b"x" * 1000) == []
        assert len(events._pending) <= 1
    assert events.feed(b"\n\ndata: b\n\n") == [Event(b"b")]
