"""Events that are numbered and kept for a while."""

from __future__ import annotations

import pytest

from raxol_mcp.transports.http.events import EventLog, stream_of
from raxol_mcp.wire.sse import Event, Events


def read(*frames: bytes) -> list[Event]:
    """Read frames as a client does."""
    return [event for event in Events().feed(b"".join(frames)) if isinstance(event, Event)]


def test_events_are_numbered_and_can_be_read_again_from_anywhere() -> None:
    """MCP 2025-11-25 basic/transports §Resumability and Redelivery"""
    log = EventLog("s")
    frames = [log.priming(retry=1.0), log.append(b"{}"), log.append(b"[]")]
    assert [event.id for event in read(*frames)] == ["s.1", "s.2", "s.3"]
    assert read(*log.after(1)) == read(*frames)[1:]
    assert read(*log.after(2)) == read(*frames)[2:]
    assert log.after(3) == []
    assert log.size_bytes == 0
    assert log.after(0) == [], "what was read is not kept"


def test_a_message_waits_until_it_was_handed_to_a_reader() -> None:
    """Ours: ADR-0014"""
    log = EventLog("s")
    assert not log.waits(b"{}")
    log.append(b"{}")
    assert log.waits(b"{}")
    assert not log.waits(b"[]")
    log.sent = log.number
    assert not log.waits(b"{}")


def test_progress_and_logs_are_left_out_first() -> None:
    """Ours: docs/limits.md, events kept of a stream"""
    log = EventLog("s")
    for number in range(6):
        log.append(b"%d" % number, droppable=number in (1, 3), max_events=4)
    assert [event.data for event in read(*log.after(0))] == [b"0", b"2", b"4", b"5"]
    assert log.lost == 0
    log.append(b"6", max_events=4)
    assert log.lost == 1
    assert read(*log.after(0))[0].data == b"2"


def test_what_is_too_large_is_not_kept_and_said_to_be_lost() -> None:
    """Ours: docs/limits.md, events kept of a stream"""
    log = EventLog("s")
    log.append(b"a" * 50, max_bytes=100)
    log.append(b"b" * 200, max_bytes=100)
    assert log.after(0) == []
    assert (log.lost, log.size_bytes) == (2, 0)


@pytest.mark.parametrize(
    ("event_id", "expected"),
    [
        ("s.1", ("s", 1)),
        ("a.b.12", ("a.b", 12)),
        ("s", None),
        (".1", None),
        ("s.", None),
        ("s.-1", None),
        ("s.1x", None),
        ("s.²", None),
        ("s." + "1" * 16, None),
        ("", None),
    ],
)
def test_an_event_id_names_its_stream(event_id: str, expected: tuple[str, int] | None) -> None:
    """Ours"""
    assert stream_of(event_id) == expected
