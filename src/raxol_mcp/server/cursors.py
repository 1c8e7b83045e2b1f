"""Cursors: where a list goes on. Opaque to the client, and free of names.

A cursor holds the kind of list and the place of the last entry shown. Places are numbers that
grow and are never used again, so a cursor stays good when that entry is unregistered meanwhile.
A name would leak entries the client may not see, and would jump when it is registered anew.

Source: MCP 2026-07-28 server/utilities/pagination: stable cursors, an invalid one is -32602.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from raxol_mcp.server.definitions import Kind

__all__ = ["START", "BadCursor", "cursor_of", "place_of"]

START: Final = 0
_MAX_CHARACTERS: Final = 64


class BadCursor(ValueError):
    """This server did not hand out that cursor for this list. The message may be sent."""

    def __init__(self) -> None:
        super().__init__("Invalid cursor")


def cursor_of(kind: Kind, place: int) -> str:
    """Write the cursor behind the entry at `place`."""
    return urlsafe_b64encode(f"{kind.value}:{place}".encode()).rstrip(b"=").decode()


def place_of(kind: Kind, cursor: object) -> int:
    """Read the place out of a cursor of the client's; None, which is no cursor, is the start.

    Raises `BadCursor` for everything `cursor_of` would not have written for this kind, the empty
    string included.
    """
    if cursor is None:
        return START
    if not isinstance(cursor, str) or len(cursor) > _MAX_CHARACTERS:
        raise BadCursor
    try:
        written = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
        place = int(written.rpartition(":")[2])
    except ValueError:
        raise BadCursor from None
    # Python reads more than it writes: " 7", "+7", "0_7", and base64 with letters to skip.
    if place <= START or cursor_of(kind, place) != cursor:
        raise BadCursor
    return place
