"""One stream of events, and what its client does to it."""

from __future__ import annotations

import asyncio

import pytest

from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.transports.http.asgi import Event, Receive, Scope, Send
from raxol_mcp.transports.http.streams import EventStream, StreamEnd, Streams
from tests.transports.http.client import HttpClient


class Written:
    """An application that is one stream."""

    def __init__(self, *, keepalive: float = 15.0, write_timeout: float = 30.0) -> None:
        self.streams = Streams(keepalive=keepalive, write_timeout=write_timeout, max_streams=2)
        self.stream: EventStream
        self.end: StreamEnd | None = None
        self.opened = HttpClient(self).open("GET", "/")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the stream."""
        self.stream = EventStream(send, self.streams, [(b"x-more", b"1")])
        self.stream.put(b"before\n")
        self.end = await self.stream.serve(receive)


def test_what_is_put_is_written_in_order_and_the_end_comes_last() -> None:
    """Ours"""

    async def main() -> None:
        written = Written()
        await written.opened.head()
        written.stream.put(b"one\n")
        written.stream.put(b"two\n")
        written.stream.finish()
        written.stream.put(b"too late\n")
        reply = await written.opened.ended()
        assert reply.headers["x-more"] == "1"
        assert reply.body == b"before\none\ntwo\n"
        assert (reply.complete, written.end) == (True, StreamEnd.FINISHED)
        assert len(written.streams) == 0

    run_virtual(main)


def test_a_client_that_leaves_ends_it() -> None:
    """Ours"""

    async def main() -> None:
        written = Written()
        await written.opened.head()
        assert (len(written.streams), written.streams.full_for(None)) == (1, False)
        written.opened.leave()
        await written.opened.ended()
        assert written.end is StreamEnd.LEFT
        written.stream.put(b"nobody reads this")
        written.stream.finish()
        await asyncio.sleep(60)
        assert len(asyncio.all_tasks()) == 1

    run_virtual(main)


def test_a_client_that_reads_nothing_is_cut_off_when_there_is_something_to_read() -> None:
    """Ours: docs/limits.md, write_timeout"""

    async def main() -> None:
        written = Written(keepalive=1000.0)
        await written.opened.head()
        written.opened.stall()
        await asyncio.sleep(100)
        written.stream.put(b"something")
        assert not written.stream.over
        reply = await written.opened.ended()
        assert asyncio.get_running_loop().time() == pytest.approx(130.0)
        assert (written.end, reply.complete) == (StreamEnd.STALLED, False)

    run_virtual(main)


def test_a_heartbeat_finds_a_client_that_is_gone_without_a_word() -> None:
    """Ours: docs/limits.md, keepalive, write_timeout"""

    async def main() -> None:
        written = Written()
        await written.opened.head()
        written.opened.stall()
        await written.opened.ended()
        assert asyncio.get_running_loop().time() == pytest.approx(45.0)

    run_virtual(main)


def test_a_server_that_raises_ends_it() -> None:
    """ASGI 3: send may raise OSError when the client has left"""

    async def main() -> None:
        for error in (OSError("gone"), RuntimeError("a bug of the server")):
            streams = Streams(keepalive=15.0, write_timeout=30.0, max_streams=1)

            async def send(event: Event, error: Exception = error) -> None:
                raise error

            async def receive() -> Event:
                await asyncio.Event().wait()
                raise AssertionError("not reached")

            assert await EventStream(send, streams).serve(receive) is StreamEnd.LEFT
            assert len(streams) == 0

    run_virtual(main)


def test_a_task_that_is_cancelled_leaves_nothing() -> None:
    """Ours: K20"""

    async def main() -> None:
        written = Written()
        await written.opened.head()
        written.opened.stall()
        written.stream.put(b"x")
        await asyncio.sleep(0)
        written.opened.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await written.opened.ended()
        await asyncio.sleep(0)
        assert len(written.streams) == 0
        assert len(asyncio.all_tasks()) == 1
        assert written.stream.end is StreamEnd.LEFT

    run_virtual(main)


def test_one_principal_has_at_most_half_of_all_streams() -> None:
    """Ours: docs/limits.md, max_streams"""

    async def send(event: Event) -> None:
        raise AssertionError("nothing is written")

    def full() -> list[bool]:
        return [streams.full_for(principal) for principal in ("alice", "bob", None)]

    streams = Streams(keepalive=15.0, write_timeout=30.0, max_streams=4)
    owners = ("alice", "alice", "bob", None)
    opened = [EventStream(send, streams, principal=owner) for owner in owners]

    async def main() -> None:
        for stream in opened[:2]:
            assert full() == [False, False, False]
            streams.opened(stream)
        assert full() == [True, False, False], "the half of one principal"
        for stream in opened[2:]:
            streams.opened(stream)
        assert full() == [True, True, True], "all of them"
        streams.ended(opened[0])
        assert full() == [False, False, False]
        for stream in opened[1:]:
            streams.ended(stream)
        assert (full(), len(streams)) == ([False, False, False], 0)
        streams.close()

    run_virtual(main)
