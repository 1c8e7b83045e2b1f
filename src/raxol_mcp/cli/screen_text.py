"""Text of others on a terminal: without what steers it, and in lines that it need not break.

Decides nothing and prints nothing. What a person decides upon is written by
`raxol_mcp.wire.texts.printable`, which lets nothing through that cannot be seen; `readable` is
for contents. A backslash of the text itself stays as it is: text that looks like an escape is at
least as alarming as the character.
"""

from __future__ import annotations

import unicodedata
from typing import Final

__all__ = ["columns", "readable", "shortened", "wrapped"]

# What ordinary text needs beyond the printable: breaks, and the joiners of scripts and emoji.
_OF_TEXT: Final = frozenset("\n\t\u200c\u200d")


def readable(text: str) -> str:
    """Write a text of many lines without what steers a terminal or turns its lines around.

    Line breaks, tabs, the spaces of any script and the joiners of emoji stay.
    """
    if text.isprintable():
        return text
    return "".join(
        character
        if character.isprintable()
        or character in _OF_TEXT
        or unicodedata.category(character) == "Zs"
        else character.encode("unicode_escape").decode()
        for character in text.replace("\r\n", "\n")
    )


def columns(text: str) -> int:
    """Say how many columns of a terminal a printable text takes."""
    if text.isascii():
        return len(text)
    return sum(map(_columns_of, text))


def wrapped(text: str, width: int) -> list[str]:
    """Cut a printable text into lines of at most `width` columns, at spaces where there are any.

    The terminal is never left to do that: where it continues a line, text of others would stand
    where only ours does. One character that is wider than `width` has a line to itself.
    """
    lines = []
    while columns(text) > width and len(text) > 1:
        end = max(_fitting(text, width), 1)
        space = text.rfind(" ", 0, end)
        if space > 0:
            end = space + 1  # the space stays: nothing of the text may disappear
        lines.append(text[:end])
        text = text[end:]
    return [*lines, text]


def shortened(text: str, width: int) -> str:
    """Cut a printable text to `width` columns; "…" stands for what is missing."""
    if columns(text) <= width:
        return text
    return text[: _fitting(text, width - 1)] + "…" if width > 0 else ""


def _fitting(text: str, width: int) -> int:
    """Count the characters of the longest beginning that has at most `width` columns."""
    taken = 0
    for index, character in enumerate(text):
        taken += _columns_of(character)
        if taken > width:
            return index
    return len(text)


def _columns_of(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
