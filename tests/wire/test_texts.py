"""The text of a peer: what can be seen of it, and where it may be cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_mcp.wire.texts import cut, is_visible, printable

UNSEEN = [
    *("\n", "\t", "\x00", "\x1b", "\x7f", "\x85"),
    *("\u200b", "\u202e", "\u2066", "\ufeff", "\u00ad"),  # no width, other direction
    *("\u00a0", "\u2028", "\u3000"),  # spaces and lines
    *("\ud800", "\ue000", "\U000e0041", "\uffff"),
    *("\u115f", "\u3164", "\u2800", "\ufe0f", "\u034f", "\U000e0100"),  # nothing to see
]


@pytest.mark.parametrize("character", UNSEEN)
def test_what_cannot_be_seen_is_found_and_spelt(character: str) -> None:
    assert not is_visible(f"a{character}b")
    written = printable(f"a{character}b")
    assert written.startswith("a\\")
    assert written.isascii()
    assert is_visible(written)


def test_what_can_be_seen_stays() -> None:
    text = "read_file größe 天気 🌦 a\\n"
    assert is_visible(text)
    assert printable(text) == text
    assert printable("a\n\x1b[31m\u202e") == "a\\n\\x1b[31m\\u202e"


@given(st.text(), st.integers(0, 40))
def test_a_text_is_cut_between_characters(text: str, limit: int) -> None:
    """client-behaviour 8: a valid UTF-8 prefix."""
    short = cut(text, limit)
    assert text.startswith(short)
    assert len(short.encode(errors="surrogatepass")) <= limit
    rest = text[len(short) :]
    if rest and "\ud800" <= max(text) <= "\udfff":
        return  # half a pair is not text: where it is cut does not matter
    assert not rest or len((short + rest[0]).encode(errors="surrogatepass")) > limit
