"""Text of others on a terminal."""

import pytest

from raxol_mcp.cli.screen_text import columns, readable, shortened, wrapped


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, ä, 日本, 🙂", "plain, ä, 日本, 🙂"),
        ("two\nlines\tand a tab\n", "two\nlines\tand a tab\n"),
        ("dos\r\nlines", "dos\nlines"),
        ("back\rover", "back\\rover"),
        ("\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("a\u202eb\u2066c\u200fd", "a\\u202eb\\u2066c\\u200fd"),
        ("no\u00a0break\u3000", "no\u00a0break\u3000"),
        ("👩\u200d👧 ❤\ufe0f", "👩\u200d👧 ❤\ufe0f"),
        ("\u2028\u2029\ufeff\U000e0041", "\\u2028\\u2029\\ufeff\\U000e0041"),
    ],
)
def test_contents_can_be_read_but_do_not_steer_the_terminal(text: str, shown: str) -> None:
    """ours: docs/cli.md."""
    assert readable(text) == shown


@pytest.mark.parametrize(
    ("text", "width"), [("abc", 3), ("日本", 4), ("e\u0301", 1), ("", 0), ("\uff57ide", 5)]
)
def test_columns_are_those_of_a_terminal(text: str, width: int) -> None:
    assert columns(text) == width


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("short", ["short"]),
        ("one two three", ["one two ", "three"]),
        ("0123456789x", ["0123456789", "x"]),
        ("          yes", ["          ", "yes"]),
        ("日本日本日本", ["日本日本日", "本"]),
    ],
)
def test_a_line_is_never_left_to_the_terminal_to_break(text: str, lines: list[str]) -> None:
    found = wrapped(text, 10)
    assert found == lines
    assert "".join(found) == text, "nothing of a text disappears"
    assert max(map(columns, found)) <= 10


def test_a_character_wider_than_the_line_has_one_to_itself() -> None:
    assert wrapped("日本", 1) == ["日", "本"]


@pytest.mark.parametrize(
    ("width", "text"), [(10, "0123456789"), (5, "0123…"), (1, "…"), (0, ""), (-3, "")]
)
def test_what_is_cut_off_is_marked(width: int, text: str) -> None:
    assert shortened("0123456789", width) == text


def test_half_a_wide_character_is_not_shown() -> None:
    assert shortened("日本日本", 4) == "日…"
