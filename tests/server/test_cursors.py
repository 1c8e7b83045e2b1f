"""Cursors: opaque, and only those that were handed out."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_mcp.server.cursors import START, BadCursor, cursor_of, place_of
from raxol_mcp.server.definitions import Kind

KINDS = st.sampled_from(Kind)


def encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


@given(KINDS, st.integers(1, 2**63))
def test_a_cursor_leads_back_to_its_place(kind: Kind, place: int) -> None:
    assert place_of(kind, cursor_of(kind, place)) == place


@given(KINDS, KINDS, st.integers(1, 2**63))
def test_a_cursor_of_another_list_is_refused(kind: Kind, other: Kind, place: int) -> None:
    if kind is not other:
        with pytest.raises(BadCursor):
            place_of(other, cursor_of(kind, place))


def test_no_cursor_is_the_start() -> None:
    assert place_of(Kind.TOOLS, None) == START


@given(st.text() | st.binary() | st.integers() | st.booleans() | st.lists(st.text()))
def test_anything_else_is_refused_and_nothing_else_happens(cursor: object) -> None:
    """MCP 2026-07-28 server/utilities/pagination: an invalid cursor is -32602, not a crash."""
    with pytest.raises(BadCursor):
        place_of(Kind.TOOLS, cursor)


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        0,
        False,
        "7",
        encoded("tools:0"),
        encoded("tools:-1"),
        encoded("tools:+7"),
        encoded("tools:07"),
        encoded("tools:1_0"),
        encoded("tools: 7"),
        encoded("tools:\u0667"),
        encoded("tools:7.0"),
        encoded("tools:"),
        encoded("tools"),
        encoded("TOOLS:7"),
        encoded("tools:" + "9" * 60),
        cursor_of(Kind.TOOLS, 7) + "=",
        cursor_of(Kind.TOOLS, 7) + "\n",
        " " + cursor_of(Kind.TOOLS, 7),
        cursor_of(Kind.TOOLS, 7)[:-1],
    ],
)
def test_near_misses_are_refused(cursor: object) -> None:
    with pytest.raises(BadCursor, match="Invalid cursor"):
        place_of(Kind.TOOLS, cursor)


def test_a_cursor_needs_no_encoding_in_a_url() -> None:
    for kind in Kind:
        for place in (1, 62, 63, 12345678901):
            cursor = cursor_of(kind, place)
            assert cursor.replace("-", "").replace("_", "").isalnum()


def test_a_bad_cursor_is_a_value_error() -> None:
    assert issubclass(BadCursor, ValueError)
