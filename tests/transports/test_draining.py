"""transports/draining.py: who writes there never waits, and nothing is left on the loop."""

import asyncio
import os

from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.transports.draining import Drain


def test_everything_up_to_the_end_is_taken() -> None:
    taken: list[bytes] = []

    async def scenario() -> None:
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        drain = Drain(asyncio.get_running_loop(), reading, taken.append)
        drain.start()
        os.write(writing, b"one")
        await asyncio.sleep(1.0)
        os.write(writing, b"two")
        await asyncio.sleep(1.0)
        os.close(writing)
        await asyncio.sleep(1.0)
        drain.stop()
        os.close(reading)

    run_virtual(scenario)
    assert taken == [b"one", b"two"]


def test_catching_up_takes_what_is_there_and_no_more() -> None:
    taken: list[bytes] = []

    async def scenario() -> None:
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        drain = Drain(asyncio.get_running_loop(), reading, taken.append)
        drain.catch_up()
        drain.start()
        os.write(writing, b"one")
        drain.catch_up()
        drain.stop()
        os.write(writing, b"two")
        drain.catch_up()
        await asyncio.sleep(1.0)
        os.close(writing)
        os.close(reading)

    run_virtual(scenario)
    assert taken == [b"one"]


def test_catching_up_has_a_bound() -> None:
    """ours: the other side may write as fast as it is read."""
    taken: list[bytes] = []

    async def scenario() -> None:
        reading, writing = os.pipe()
        os.set_blocking(reading, False)

        def take(chunk: bytes) -> None:
            taken.append(chunk)
            os.write(writing, b"more")

        drain = Drain(asyncio.get_running_loop(), reading, take)
        drain.start()
        os.write(writing, b"one")
        drain.catch_up()
        drain.stop()
        os.close(writing)
        os.close(reading)

    run_virtual(scenario)
    assert taken == [b"one"] + [b"more"] * 15


def test_a_descriptor_that_fails_counts_as_ended() -> None:
    async def scenario() -> None:
        folder = os.open("/", os.O_RDONLY)
        reading, writing = os.pipe()
        drain = Drain(asyncio.get_running_loop(), reading, lambda _chunk: None)
        drain.start()
        os.dup2(folder, reading)  # reading a folder is an error
        drain.catch_up()
        drain.catch_up()
        for fd in (folder, reading, writing):
            os.close(fd)

    run_virtual(scenario)
