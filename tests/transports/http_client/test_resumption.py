"""When a broken stream is asked for again."""

from __future__ import annotations

import pytest

from raxol_mcp.transports.http_client.resumption import (
    LONGEST_RETRY,
    LONGEST_WAIT,
    SHORTEST_WAIT,
    Resumption,
)
from raxol_mcp.wire.sse import Events


def events(text: bytes) -> Events:
    read = Events()
    read.feed(text)
    return read


def test_the_place_is_the_last_id_and_outlives_the_connection() -> None:
    """WHATWG HTML §9.2.3"""
    again = Resumption(tries=3)
    assert (again.resumable, again.headers) == (False, {})
    again.saw(events(b"id: 7\ndata:\n\n"))
    again.saw(events(b"data: x\n\n"))
    assert (again.resumable, again.headers) == (True, {"Last-Event-ID": "7"})


@pytest.mark.parametrize("id", ["\u00e9", "a\x01", "a" * 1025])
def test_an_id_that_no_header_can_carry_is_no_place(id: str) -> None:
    """RFC 9110 §5.5: what is read from a stream must not become another header"""
    again = Resumption(tries=3)
    again.saw(events(f"id: {id}\ndata:\n\n".encode()))
    assert (again.resumable, again.headers) == (False, {})


@pytest.mark.parametrize(
    ("retry", "wait"),
    [
        (b"", 1.0),
        (b"retry: 500\n\n", 0.5),
        (b"retry: 0\n\n", SHORTEST_WAIT),
        (b"retry: 120000\n\n", 120.0),
        (b"retry: 999999999\n\n", LONGEST_RETRY),
    ],
)
def test_the_wait_is_what_the_stream_named(retry: bytes, wait: float) -> None:
    """MCP 2025-11-25 basic/transports: a client must honour retry; the bounds are ours"""
    again = Resumption(tries=3)
    again.saw(events(retry))
    assert again.next_wait() == wait


def test_waits_grow_until_there_is_no_further_try() -> None:
    """Bounded retries: K23"""
    again = Resumption(tries=8)
    waits = [again.next_wait() for _ in range(9)]
    assert waits[0] == 1.0
    assert waits[-1] is None
    for doublings, wait in enumerate(waits[1:-1], 1):
        assert wait is not None
        assert min(2.0**doublings, LONGEST_WAIT) <= wait <= min(2.2**doublings * 1.1, LONGEST_WAIT)


def test_what_was_of_use_begins_the_count_anew() -> None:
    """K23: progress is needed to reset"""
    again = Resumption(tries=2)
    assert again.next_wait() == 1.0
    assert again.next_wait() is not None
    assert again.next_wait() is None
    again.worked()
    assert again.next_wait() == 1.0


def test_a_stream_came_further_with_an_id_it_had_not_named() -> None:
    """K23: a peer that repeats itself for ever makes no progress"""
    again = Resumption(tries=2)
    texts = [
        b": comment\n\n",
        b"data: x\n\n",
        b"id: 1\ndata:\n\n",
        b"id: 1\ndata:\n\n",
        b"id: 2\n\n",
    ]
    assert [again.saw(events(text)) for text in texts] == [False, False, True, False, True]
