"""LineReader and LineWriter: what the whole of stdio cannot bring about on purpose."""

import asyncio
import os
from collections.abc import Callable

from raxol_mcp.testing.virtual_loop import VirtualLoop
from raxol_mcp.transports.descriptors import Output
from raxol_mcp.transports.outbox import Outbox
from raxol_mcp.transports.pipes import Ended, LineReader, LineWriter
from raxol_mcp.wire.framing import Lines, TooLong
from raxol_mcp.wire.jsonrpc import Notification


class NervousLoop(VirtualLoop):
    """Wakes every new reader once although there is nothing to read."""

    def add_reader(self, fd: int, callback: Callable[..., object], *args: object) -> None:  # type: ignore[override]  # fewer kinds of fd than typeshed knows
        super().add_reader(fd, callback, *args)
        self.call_soon(callback, *args)


def test_a_reader_that_is_woken_for_nothing_waits_again() -> None:
    """Another process that shares the input may have been faster."""
    lines: list[bytes | TooLong] = []

    async def scenario() -> None:
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        ended = asyncio.Event()
        reader = LineReader(
            asyncio.get_running_loop(),
            reading,
            Lines(),
            Outbox(),
            receive=lines.append,
            at_end=ended.set,
        )
        reader.watch()
        await asyncio.sleep(1.0)
        os.write(writing, b"one\ntwo")
        await asyncio.sleep(1.0)
        os.close(writing)
        await ended.wait()
        reader.stop()
        os.close(reading)

    with asyncio.Runner(loop_factory=NervousLoop) as runner:
        runner.run(scenario())
    assert lines == [b"one", b"two"]


def test_a_reader_that_was_stopped_while_held_stays_stopped() -> None:
    lines: list[bytes | TooLong] = []

    async def scenario() -> None:
        reading, writing = os.pipe()
        outbox: Outbox[bytes] = Outbox(max_messages=1)
        reader = LineReader(
            asyncio.get_running_loop(),
            reading,
            Lines(),
            outbox,
            receive=lines.append,
            at_end=lambda: None,
        )
        reader.watch()
        reader.watch()
        outbox.put(b"answer", 6, about=1)
        os.write(writing, b"one\n")
        await asyncio.sleep(1.0)
        outbox.clear()
        reader.stop()
        reader.resume()
        await asyncio.sleep(1.0)
        os.close(writing)
        os.close(reading)

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(scenario())
    assert lines == []


def test_a_writer_closed_in_the_turn_of_a_put_writes_nothing() -> None:
    async def scenario() -> bytes:
        reading, writing = os.pipe()
        reasons: list[Ended] = []
        writer = LineWriter(
            asyncio.get_running_loop(),
            Output(writing),
            Outbox(),
            write_timeout=30.0,
            end=reasons.append,
            progressed=lambda: None,
        )
        writer.watch()
        writer.put(Notification("n"))
        seen = [writer.empty]
        writer.close_now()
        writer.close_now()
        writer.put(Notification("n"))
        seen.append(writer.empty)
        assert seen == [False, True]
        await asyncio.sleep(1.0)
        os.close(writing)
        try:
            assert reasons == []
            return os.read(reading, 100)
        finally:
            os.close(reading)

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert runner.run(scenario()) == b""
