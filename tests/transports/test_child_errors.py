"""transports/child_errors.py: the end of a stderr is kept, within bounds, and shown in safety."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_mcp.transports.child_errors import ErrorTail, shown


def tail_of(*chunks: bytes) -> ErrorTail:
    """Return a tail that was fed with chunks."""
    tail = ErrorTail("server")
    for chunk in chunks:
        tail.feed(chunk)
    return tail


def test_lines_are_put_together_from_pieces() -> None:
    tail = tail_of(b"on", b"e\r\ntw", b"o\n\nthr", b"ee")
    assert tail.text() == "one\ntwo\n\nthree"


def test_nothing_was_written() -> None:
    assert (tail_of().text(), tail_of().last_words()) == ("", "")
    assert tail_of(b"\n \n").last_words() == ""


def test_the_last_lines_are_kept() -> None:
    tail = tail_of(b"".join(b"%d\n" % number for number in range(1000)))
    assert tail.text().split("\n") == [str(number) for number in range(800, 1000)]


def test_the_bytes_are_bounded_too() -> None:
    tail = tail_of(b"".join(b"%03d" % number + b"x" * 997 + b"\n" for number in range(150)))
    kept = tail.text().split("\n")
    assert len(kept) == 65
    assert kept[-1].startswith("149")


def test_a_line_without_an_end_is_cut_off() -> None:
    tail = tail_of(b"a" * 5000, b"a" * 5000, b"\nnext\n")
    assert tail.text() == "a" * 4096 + "...\nnext"


@given(st.lists(st.binary(max_size=50)))
def test_how_it_was_cut_into_pieces_does_not_show(chunks: list[bytes]) -> None:
    assert tail_of(*chunks).text() == tail_of(b"".join(chunks)).text()


def test_what_would_steer_a_terminal_is_escaped() -> None:
    """ours: a server's stderr reaches a person's screen, and a log."""
    tail = tail_of("\x1b[2J\u202eevil\u2028\x9b\t→ é\n".encode(), b"\xff\x00\n")
    assert tail.text() == "\\x1b[2J\\u202eevil\\u2028\\x9b    → é\n\\xff\\x00"


def test_the_last_words_are_one_bounded_line() -> None:
    tail = tail_of(b"one\ntwo\n\n  three\n \nfour\n")
    assert tail.last_words() == "two | three | four"
    long = tail_of(b"first" * 100 + b"\n" + b"last" * 100).last_words()
    assert len(long) == 512
    assert long.startswith("...")
    assert long.endswith("lastlast")


def test_each_line_is_logged_once_and_only_for_debugging(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """MCP 2026-07-28 stdio: a client may capture what a server logs."""
    with caplog.at_level(logging.INFO, "raxol_mcp.client.stderr"):
        tail_of(b"quiet\n")
    with caplog.at_level(logging.DEBUG, "raxol_mcp.client.stderr"):
        tail_of(b"lo", b"ud\x1b\nnot yet")
    assert [record.getMessage() for record in caplog.records] == ["server: loud\\x1b"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("plain é 🎉", "plain é 🎉"),
        (b"a\nb\r\t\x00", "a\\nb\\r\\t\\x00"),
        (b"\xff\xfeok", "\\xff\\xfeok"),
        ("\u202e\U000e0001", "\\u202e\\U000e0001"),
        ("x" * 20, "x" * 20),
        ("x" * 21, "x" * 17 + "..."),
        (b"\n" * 1000, "\\n" * 8 + "\\..."),
        ("\udcff", "\\udcff"),
    ],
)
def test_what_a_peer_wrote_is_shown_on_one_line(text: str | bytes, line: str) -> None:
    assert shown(text, limit=20) == line


def test_what_must_not_be_shown_is_hidden_wherever_a_line_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """SECURITY: servers print what they were started with"""
    tail = ErrorTail("server", lambda text: text.replace("SECRET", "-"))
    with caplog.at_level("DEBUG", logger="raxol_mcp.client.stderr"):
        tail.feed(b"a SECRET\nb SECRET")
    assert tail.text() == "a -\nb -"
    assert tail.last_words() == "a - | b -"
    assert tail.shown(b"c SECRET") == "c -"
    assert "SECRET" not in caplog.text
    assert "a -" in caplog.text
