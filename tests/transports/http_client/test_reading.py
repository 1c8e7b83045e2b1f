"""What the body of an answer, or one event of a stream, says."""

from __future__ import annotations

import pytest

from raxol_mcp.errors import Reason
from raxol_mcp.transports.http_client.reading import Reader, is_about, new_events, unreadable
from raxol_mcp.transports.http_client.reasons import Broken
from raxol_mcp.wire.framing import TooLong
from raxol_mcp.wire.jsonrpc import Failure, Ignored, Invalid, Notification, Request, Response
from raxol_mcp.wire.replies import UnreadableReply
from raxol_mcp.wire.sse import Event

NOTE = b'{"jsonrpc":"2.0","method":"n"}'
ANSWER = b'{"jsonrpc":"2.0","id":7,"result":null}'


def reader(max_message_bytes: int = 100) -> Reader:
    return Reader(max_message_bytes=max_message_bytes, max_depth=8)


def test_a_message_is_itself() -> None:
    """MCP basic/transports"""
    assert reader().messages(NOTE) == [Notification("n")]
    assert reader().messages(ANSWER, 7) == [Response(7, None)]


def test_an_array_is_several_messages_where_it_may_be() -> None:
    """MCP 2025-03-26"""
    made = reader()
    batch = b"[%b,%b,1]" % (NOTE, ANSWER)
    (refused,) = made.messages(batch, 7)
    assert isinstance(refused, Ignored)
    made.batches = True
    first, second, third = made.messages(batch, 7)
    assert (first, second) == (Notification("n"), Response(7, None))
    assert isinstance(third, Invalid)


def test_an_error_without_an_id_is_that_of_the_request() -> None:
    """MCP basic §Responses; without a request it is nobody's"""
    line = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no","data":0}}'
    assert reader().messages(line, 7) == [Failure(7, -32700, "no", 0)]
    (nobodys,) = reader().messages(line)
    assert isinstance(nobodys, Ignored)


@pytest.mark.parametrize(
    ("message", "about"),
    [
        (Response(7, {}), True),
        (Failure(7, 1, ""), True),
        (UnreadableReply(7, ""), True),
        (Notification("n"), True),
        (Request(8, "ping"), True),
        (Ignored(""), True),
        (Response(8, {}), False),
        (Response("7", {}), False),
        (Failure(None, 1, ""), False),
        (UnreadableReply("7", ""), False),
    ],
)
def test_an_answer_is_about_the_request_whose_id_it_has(message: Response, about: bool) -> None:
    """JSON-RPC 2.0 §4: by type and value"""
    assert is_about(message, 7) is about


def test_an_event_carries_a_message_or_nothing() -> None:
    """MCP basic/transports: `event: message`; empty data primes a stream"""
    made = reader()
    assert made.data_of(Event(NOTE)) == NOTE
    assert made.data_of(Event(b"")) is None
    assert made.data_of(Event(NOTE, "endpoint")) is None
    assert made.data_of(Event(b"x" * 100)) == b"x" * 100
    for event in (Event(b"x" * 101), TooLong(1)):
        with pytest.raises(Broken) as caught:
            made.data_of(event)
        assert caught.value.reason == Reason("too_large", 100)
        assert caught.value.reason.maybe_done


def test_the_lines_around_a_message_do_not_count_against_it() -> None:
    """Ours: what is allowed in a body is allowed in an event"""
    made = reader(100_000)
    events = new_events(made)
    (event,) = events.feed(b"id: 1\nevent: message\ndata: " + b"x" * 100_000 + b"\n\n")
    assert made.data_of(event) == b"x" * 100_000


def test_why_an_answer_is_unreadable_is_escaped_and_cut() -> None:
    """errors.Reason: never a peer's text unescaped"""
    reason = unreadable("tools/call", "\x1b[31m" + "x" * 500).reason
    assert reason == Reason("invalid_response", "tools/call")
    assert reason.text.isprintable()
    assert len(reason.text) < 300
