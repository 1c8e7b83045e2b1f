"""transports/unwritten.py: what a number of written bytes says about messages."""

from raxol_mcp.transports.outbox import MAX_QUEUED_BYTES, MAX_QUEUED_MESSAGES
from raxol_mcp.transports.unwritten import Unwritten


def test_a_message_is_written_when_its_last_byte_is() -> None:
    unwritten = Unwritten()
    for key, size_bytes in ((1, 10), (2, 5), (3, 5)):
        unwritten.put(key, size_bytes, is_answer=False)
    assert unwritten.written(9) == []
    assert unwritten.written(15) == [1, 2]
    assert unwritten.written(15) == []
    assert unwritten.written(20) == [3]


def test_only_what_nothing_was_written_of_is_certain_to_be_unknown() -> None:
    """ours: a server may understand a last line without its newline."""
    unwritten = Unwritten()
    for key in (1, 2, 3):
        unwritten.put(key, 10, is_answer=False)
    assert unwritten.clear(11) == [3]
    assert unwritten.clear(11) == []


def test_answers_alone_fill_it() -> None:
    """ours: a large request must not keep the client from reading what the server writes."""
    unwritten = Unwritten()
    unwritten.put(0, MAX_QUEUED_BYTES, is_answer=False)
    for key in range(1, MAX_QUEUED_MESSAGES + 1):
        assert not unwritten.over
        unwritten.put(key, 1, is_answer=True)
    assert unwritten.written(MAX_QUEUED_BYTES) == [0]
    assert unwritten.over
    assert unwritten.written(MAX_QUEUED_BYTES + 1) == [1]
    assert not unwritten.over


def test_the_bytes_of_answers_are_bounded_too() -> None:
    unwritten = Unwritten()
    unwritten.put(1, MAX_QUEUED_BYTES, is_answer=True)
    assert unwritten.over
    unwritten.clear(0)
    assert not unwritten.over
