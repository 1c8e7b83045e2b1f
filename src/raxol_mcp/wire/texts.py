"""The text of a peer: whether all of it can be seen, how to show it, where to cut it.

Reads no message. What cannot be seen is what makes two names look alike, turns a line around or
steers a terminal.
"""

from __future__ import annotations

from typing import Final

__all__ = ["cut", "is_visible", "printable"]

# Printable by their Unicode category, and yet nothing to be seen: fillers, an empty pattern,
# joiners, and selectors of variants (which emoji have, and names do not need).
_BLANK: Final = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
    + "".join(map(chr, range(0xFE00, 0xFE10)))
    + "".join(map(chr, range(0xE0100, 0xE01F0)))
)


def is_visible(text: str) -> bool:
    """Say whether every character of a text can be seen; the plain space is, among others.

    Controls, line breaks, format characters (direction, zero width), other spaces, lone
    surrogates and characters that are not assigned cannot.
    """
    return text.isprintable() and _BLANK.isdisjoint(text)


def printable(text: str) -> str:
    """Write a text on one line, with what cannot be seen spelt as in a Python string."""
    if is_visible(text):
        return text
    return "".join(
        character if is_visible(character) else character.encode("unicode_escape").decode()
        for character in text
    )


def cut(text: str, max_bytes: int) -> str:
    """Give the longest beginning of a text that is at most `max_bytes` long in UTF-8."""
    if len(text) * 4 <= max_bytes:
        return text
    raw = text[: max_bytes + 1].encode(errors="surrogatepass")
    if len(raw) <= max_bytes:
        return text
    return raw[:max_bytes].decode(errors="ignore")
