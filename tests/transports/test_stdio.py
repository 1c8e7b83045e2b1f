"""serve_stdio over real pipes and sockets, on virtual time."""

import asyncio
import json
import logging
import os
import signal
import sys
import threading
import tty
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from raxol_mcp.core.peers import ConnectionFacts
from raxol_mcp.errors import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    ConfigurationError,
)
from raxol_mcp.testing.virtual_loop import VirtualLoop, run_virtual
from raxol_mcp.transports.stdio import Ended, serve_stdio
from raxol_mcp.wire.jsonrpc import Incoming, Notification, Request, Response
from tests.transports.fakes import FakePort, Message, PipePeer, error_code, request, result

CHANGED = Notification("notifications/tools/list_changed")
ODD = Notification("notifications/odd/for_everybody")


def run(scenario: Callable[[PipePeer], Awaitable[None]], peer: PipePeer) -> None:
    """Run one scenario with a connected peer."""

    async def connected() -> None:
        async with peer:
            await scenario(peer)

    run_virtual(connected)


def virtual_now() -> float:
    return asyncio.get_running_loop().time()


# What is read


def test_messages_are_answered_in_order_and_a_notification_is_not() -> None:
    """MCP 2026-07-28 basic/transports/stdio: one message per line."""

    async def scenario(peer: PipePeer) -> None:
        await peer.send(request(1, a=1), {"jsonrpc": "2.0", "method": "note"}, request("1"))
        assert await peer.messages(2) == [result(1, {"a": 1}), result("1", {})]
        peer.close_input()
        assert await peer.rest() == []

    port = FakePort()
    run(scenario, PipePeer(port))
    assert port.facts == ConnectionFacts(transport="stdio", greeting_required=True)
    assert port.events == ["start", "open", "input_ended", "gone", "stop"]


def test_an_answer_is_readable_while_the_input_stays_open() -> None:
    """Liveness: block-buffered answers came only at the end of input."""

    async def scenario(peer: PipePeer) -> None:
        await peer.send(request(1))
        assert await peer.message() == result(1, {})
        assert virtual_now() == 0.0

    run(scenario, PipePeer(FakePort()))


@pytest.mark.parametrize("chunk_bytes", [1, 2, 3, 7])
def test_a_message_may_arrive_in_pieces_of_any_size(chunk_bytes: int) -> None:
    """MCP 2026-07-28 basic/transports/stdio: only a newline ends a message."""
    text = "Messgerät → 読取 ✓ \u2028 \u2029 \u0085 😀"
    line = json.dumps(request(1, text=text), ensure_ascii=False).encode() + b"\n"

    async def scenario(peer: PipePeer) -> None:
        for start in range(0, len(line), chunk_bytes):
            await peer.write(line[start : start + chunk_bytes])
            await asyncio.sleep(0)
        answer = await peer.line()
        assert json.loads(answer) == result(1, {"text": text})

    run(scenario, PipePeer(FakePort()))


def test_line_ends_of_windows_a_byte_order_mark_and_blank_lines_are_harmless() -> None:
    """RFC 8259 §8.1: a parser may ignore a byte order mark; blank lines are ignored."""

    async def scenario(peer: PipePeer) -> None:
        one, two = (json.dumps(request(id)).encode() for id in (1, 2))
        await peer.write(b"\xef\xbb\xbf" + one + b"\r\n\r\n\n  \t \n" + two + b"\n")
        assert await peer.messages(2) == [result(1, {}), result(2, {})]

    run(scenario, PipePeer(FakePort()))


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{this is not json", PARSE_ERROR),
        (b"}{", PARSE_ERROR),
        (b'{"jsonrpc":"2.0","method":"\xff"}', PARSE_ERROR),
        (b"[" * 100_000, PARSE_ERROR),
        (b"5", INVALID_REQUEST),
        (b"[]", INVALID_REQUEST),
    ],
)
def test_a_line_that_is_no_message_costs_only_itself(line: bytes, code: int) -> None:
    """JSON-RPC 2.0 §5.1."""

    async def scenario(peer: PipePeer) -> None:
        await peer.write(line + b"\n")
        await peer.send(request(1))
        refused, answered = await peer.messages(2)
        assert refused["id"] is None
        assert error_code(refused) == code
        assert answered == result(1, {})

    run(scenario, PipePeer(FakePort()))


def test_a_line_over_the_limit_is_refused_once_and_the_pipe_lives() -> None:
    """ours: the size of a message is bounded while it is read."""

    async def scenario(peer: PipePeer) -> None:
        await peer.write(b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * 200_000)
        refused = await peer.message()  # before the line has ended
        assert refused["id"] is None
        assert error_code(refused) == INVALID_REQUEST
        assert "1000 bytes" in json.dumps(refused)
        await peer.write(b"x" * 200_000 + b'"}\n')
        await peer.send(request(2))
        assert await peer.message() == result(2, {})

    run(scenario, PipePeer(FakePort(max_message_bytes=1000)))


def test_a_line_just_at_the_limit_is_accepted() -> None:
    """ours: the size of a message is bounded while it is read."""
    line = json.dumps(request(1)).encode()

    async def scenario(peer: PipePeer) -> None:
        await peer.write(line + b"\n" + line + b" \n")
        answered, refused = await peer.messages(2)
        assert answered == result(1, {})
        assert error_code(refused) == INVALID_REQUEST

    run(scenario, PipePeer(FakePort(max_message_bytes=len(line))))


def test_messages_larger_than_any_pipe_pass_both_ways() -> None:
    """Liveness: fixed buffers and unflushed ends of large messages."""
    texts = ["x" * size for size in (5_000, 70_000, 1_000_000)]

    async def scenario(peer: PipePeer) -> None:
        for text in texts:
            await peer.send(request(1, text=text))
            assert await peer.message() == result(1, {"text": text})

    run(scenario, PipePeer(FakePort(max_message_bytes=2_000_000)))


@pytest.mark.parametrize("wiring", ["pipes", "sockets", "one socket"])
def test_any_pair_of_descriptors_will_do(wiring: str) -> None:
    """MCP 2026-07-28 basic/transports/stdio: other byte streams should reuse this framing."""

    async def scenario(peer: PipePeer) -> None:
        await peer.send(*(request(id, text="y" * 5_000) for id in range(50)))
        assert [message["id"] for message in await peer.messages(50)] == list(range(50))
        for fd in peer.server_fds:
            assert fd > 2

    run(
        scenario,
        PipePeer(FakePort(), sockets=wiring == "sockets", one_socket=wiring == "one socket"),
    )


@pytest.mark.parametrize("lines", [0, 1, 100])
def test_a_regular_file_is_served_to_its_end(tmp_path: Path, lines: int) -> None:
    """A file cannot be watched by epoll."""
    path = tmp_path / "input"
    path.write_text("".join(json.dumps(request(id)) + "\n" for id in range(lines)))

    async def scenario(peer: PipePeer) -> None:
        assert await peer.rest() == [result(id, {}) for id in range(lines)]
        assert await peer.ended() is Ended.INPUT_ENDED

    run(scenario, PipePeer(FakePort(), stdin_fd=os.open(path, os.O_RDONLY)))


def test_the_null_device_ends_at_once() -> None:
    """What a daemon has as its input; epoll refuses it."""

    async def scenario(peer: PipePeer) -> None:
        assert await peer.ended() is Ended.INPUT_ENDED

    run(scenario, PipePeer(FakePort(), stdin_fd=os.open(os.devnull, os.O_RDONLY)))


def test_a_terminal_is_served_and_its_mode_is_not_touched() -> None:
    """A shell whose terminal is left non-blocking breaks."""

    async def scenario() -> None:
        leader, follower = os.openpty()
        tty.setraw(follower)
        os.set_blocking(leader, False)
        serving = asyncio.ensure_future(
            serve_stdio(FakePort(), stdin_fd=follower, stdout_fd=follower)
        )
        os.write(leader, json.dumps(request(1, text="x" * 500)).encode() + b"\n")
        await asyncio.sleep(1.0)
        assert json.loads(os.read(leader, 10_000)) == result(1, {"text": "x" * 500})
        assert os.get_blocking(follower)
        os.close(leader)
        assert await serving is Ended.INPUT_ENDED
        os.close(follower)

    run_virtual(scenario)


def test_the_output_may_be_a_regular_file(tmp_path: Path) -> None:
    """`raxol-mcp serve < requests > answers`."""
    requests, answers = tmp_path / "requests", tmp_path / "answers"
    requests.write_text("".join(json.dumps(request(id)) + "\n" for id in range(20)))

    async def scenario() -> Ended:
        with requests.open("rb") as stdin, answers.open("wb") as stdout:
            return await serve_stdio(FakePort(), stdin_fd=stdin.fileno(), stdout_fd=stdout.fileno())

    assert run_virtual(scenario) is Ended.INPUT_ENDED
    written = [json.loads(line) for line in answers.read_bytes().splitlines()]
    assert written == [result(id, {}) for id in range(20)]


def test_a_burst_in_one_write_leaves_two_turns_to_what_it_started() -> None:
    """ours: a share of 16 slots never refuses quick calls because of how they were cut."""
    running = 0
    most = 0

    def starts_a_quick_worker(message: Incoming) -> bool:
        nonlocal running, most
        assert isinstance(message, Request)
        running += 1
        most = max(most, running)

        async def quick() -> None:
            port.sink.put(Response(message.id, {}), about=message.id)

        def ended(_task: object) -> None:
            nonlocal running
            running -= 1

        task = asyncio.ensure_future(quick())
        task.add_done_callback(ended)
        return True

    async def scenario(peer: PipePeer) -> None:
        await peer.send(*map(request, range(200)))
        assert len(await peer.messages(200)) == 200

    port = FakePort()
    port.on_receive = starts_a_quick_worker
    run(scenario, PipePeer(port))
    assert most == 8


def test_lines_that_wait_for_their_turn_are_answered_before_the_end_counts() -> None:
    async def scenario(peer: PipePeer) -> None:
        await peer.send(*map(request, range(100)))
        peer.close_input()
        assert len(await peer.rest()) == 100

    port = FakePort()
    run(scenario, PipePeer(port))
    assert port.events == ["start", "open", "input_ended", "gone", "stop"]


# What is written


def test_answers_of_one_turn_leave_in_one_write() -> None:
    """ours: one write per turn of the loop."""

    async def scenario(peer: PipePeer) -> None:
        await peer.send(*map(request, range(8)))
        assert (await peer.read()).count(b"\n") == 8

    run(scenario, PipePeer(FakePort()))


def test_messages_of_any_size_never_interleave() -> None:
    """ours: one writer, and a message is never split by another."""
    sizes = [10, 70_000, 10, 200_000, 65_536, 65_535, 1, 1_000_000, 3]

    def answers_with_many(message: Incoming) -> bool:
        assert isinstance(message, Request)
        for index, size in enumerate(sizes):
            port.sink.put(Notification("n", {"index": index, "text": "z" * size}), about=1)
        port.sink.put(Response(message.id, {}), about=1)
        return True

    async def scenario(peer: PipePeer) -> None:
        await peer.send(request(1))
        *notes, answer = await peer.messages(len(sizes) + 1)
        assert answer == result(1, {})
        assert [len(json.dumps(note)) for note in notes] == [
            len(json.dumps({"jsonrpc": "2.0", "method": "n", "params": {"index": i, "text": ""}}))
            + size
            for i, size in enumerate(sizes)
        ]

    port = FakePort()
    port.on_receive = answers_with_many
    run(scenario, PipePeer(port))


def test_a_peer_that_writes_before_it_reads_loses_nothing() -> None:
    """Liveness: both sides blocked on full pipes."""

    async def scenario(peer: PipePeer) -> None:
        writing = asyncio.ensure_future(
            peer.send(*(request(id, text="x" * 100_000) for id in range(50)))
        )
        await asyncio.wait((writing,), timeout=1.0)
        assert len(await peer.messages(50)) == 50
        await writing

    run(scenario, PipePeer(FakePort()))


def test_a_peer_that_never_reads_is_not_read_either() -> None:
    """Every queue is bounded: what it asks for waits in its own pipe."""

    async def scenario(peer: PipePeer) -> None:
        asking = asyncio.ensure_future(
            peer.send(*(request(id, text="x" * 1_000) for id in range(5_000)))
        )
        await asyncio.wait((asking,), timeout=10.0)
        assert not asking.done()
        handed_over = len(peer.port.received)
        # A pipe of answers, the outbox, and at most one turn more.
        assert handed_over < 400
        # It goes on exactly where it stopped.
        assert [message["id"] for message in await peer.messages(5_000)] == list(range(5_000))
        await asking

    run(scenario, PipePeer(FakePort()))


def test_reading_goes_on_only_when_half_of_the_outbox_is_free() -> None:
    """ours: the outbox has drained at half of its bounds."""

    async def scenario(peer: PipePeer) -> None:
        filler = "x" * 70_000  # more than the pipe holds: the rest of it and all others wait
        await peer.send(request(0, text=filler))
        await peer.send(*(request(id) for id in range(1, 100)))
        await asyncio.sleep(1.0)
        assert len(peer.port.received) == 11
        await peer.messages(100)
        assert len(peer.port.received) == 100

    run(scenario, PipePeer(FakePort(), max_queued_messages=10))


def test_a_peer_that_reads_nothing_for_the_write_timeout_is_cut_off() -> None:
    """ours: write_timeout."""

    async def scenario(peer: PipePeer) -> None:
        await peer.send(request(1, text="x" * 100_000))
        assert await peer.ended() is Ended.OUTPUT_STALLED
        assert virtual_now() == 30.0

    port = FakePort()
    run(scenario, PipePeer(port))
    assert port.events == ["start", "open", "gone", "stop"]


def test_a_peer_that_reads_a_little_is_not_cut_off() -> None:
    """ours: write_timeout counts from the last progress."""

    async def scenario(peer: PipePeer) -> None:
        await peer.send(request(1, text="x" * 900_000))
        total = b""
        while not total.endswith(b"\n"):
            total += await peer.read()
            await asyncio.sleep(20.0)
        assert virtual_now() > 60.0
        assert json.loads(total)["id"] == 1
        await asyncio.sleep(100.0)  # nothing is queued: there is nothing to read
        await peer.send(request(2))
        assert await peer.message() == result(2, {})

    run(scenario, PipePeer(FakePort()))


def test_broadcasts_to_a_peer_that_never_reads_end_the_connection() -> None:
    """ours: 256 messages or 8 MiB of broadcasts a connection, then it ends."""

    async def scenario(peer: PipePeer) -> None:
        for _ in range(5_000):
            peer.port.sink.put(ODD)
        assert await peer.ended() is Ended.OUTBOX_OVERFLOW
        assert virtual_now() == 0.0

    port = FakePort()
    run(scenario, PipePeer(port))
    assert port.events == ["start", "open", "gone", "stop"]


def test_a_burst_of_broadcasts_that_the_pipe_can_take_is_no_overflow() -> None:
    """ours: a burst within one turn does not mean that the peer is slow."""

    async def scenario(peer: PipePeer) -> None:
        for _ in range(900):
            peer.port.sink.put(ODD)
        assert len(await peer.messages(900)) == 900

    run(scenario, PipePeer(FakePort()))


def test_a_burst_of_changes_does_not_cut_off_a_peer_that_reads() -> None:
    """ours: ADR-0014. What waits already is not queued again; what comes after it was sent is."""
    updates = [Notification("notifications/resources/updated", {"uri": uri}) for uri in "ab"]

    async def scenario(peer: PipePeer) -> None:
        for _ in range(2):
            for _ in range(5_000):
                for message in (CHANGED, *updates):
                    peer.port.sink.put(message)
            seen = await peer.messages(3)
            assert [message.get("params") for message in seen] == [None, {"uri": "a"}, {"uri": "b"}]
        await peer.send(request(1))
        assert await peer.message() == result(1, {})

    run(scenario, PipePeer(FakePort()))


def test_progress_is_left_out_for_a_slow_peer_but_the_answer_is_not() -> None:
    """ours: droppable messages."""

    def floods(message: Incoming) -> bool:
        assert isinstance(message, Request)
        for _ in range(2_000):
            params = {"progressToken": 1, "text": "x" * 1_000}
            port.sink.put(Notification("notifications/progress", params), about=1, droppable=True)
        port.sink.put(Response(message.id, {}), about=1)
        return True

    async def scenario(peer: PipePeer) -> None:
        await peer.send(request(1))
        seen: list[Message] = []
        while not seen or "id" not in seen[-1]:
            seen.append(await peer.message())
        assert 256 <= len(seen) < 600
        assert seen[-1] == result(1, {})

    port = FakePort()
    port.on_receive = floods
    run(scenario, PipePeer(port))


def test_a_message_that_cannot_be_encoded_is_still_answered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Liveness: a value in a result ended the writer, and every later call hung."""

    def answers_with_an_object(message: Incoming) -> bool:
        assert isinstance(message, Request)
        port.sink.put(Response(message.id, object()), about=message.id)
        port.sink.put(Notification("n", {"value": object()}))
        return True

    async def scenario(peer: PipePeer) -> None:
        await peer.send(request(1))
        message = await peer.message()
        assert (message["id"], error_code(message)) == (1, INTERNAL_ERROR)
        port.on_receive = lambda _message: False
        await peer.send(request(2))
        assert await peer.message() == result(2, {})

    port = FakePort()
    port.on_receive = answers_with_an_object
    with caplog.at_level(logging.ERROR, "raxol_mcp.stdio"):
        run(scenario, PipePeer(port))
    assert [record.message for record in caplog.records] == ["a message could not be encoded"] * 2


def test_a_bug_behind_the_port_costs_one_message(caplog: pytest.LogCaptureFixture) -> None:
    """One bad input never kills everybody."""

    def fails(message: Incoming) -> bool:
        raise RuntimeError("secret")

    async def scenario(peer: PipePeer) -> None:
        await peer.send(request(1), {"jsonrpc": "2.0", "method": "n"})
        text = (await peer.line()).decode()
        assert "secret" not in text
        assert error_code(json.loads(text)) == INTERNAL_ERROR
        port.on_receive = lambda _message: False
        await peer.send(request(2))
        assert await peer.message() == result(2, {})

    port = FakePort()
    port.on_receive = fails
    with caplog.at_level(logging.ERROR, "raxol_mcp.stdio"):
        run(scenario, PipePeer(port))
    assert len(caplog.records) == 2


# How it ends


def test_the_last_line_needs_no_newline() -> None:
    """`printf ... | raxol-mcp serve`: a few lines, then the end, and every answer comes."""

    async def scenario(peer: PipePeer) -> None:
        await peer.write(json.dumps(request(1)))
        peer.close_input()
        assert await peer.rest() == [result(1, {})]
        assert await peer.ended() is Ended.INPUT_ENDED
        assert virtual_now() == 0.0

    run(scenario, PipePeer(FakePort()))


def test_calls_that_run_at_the_end_of_input_may_still_answer() -> None:
    """ours: drain_timeout."""

    async def scenario(peer: PipePeer) -> None:
        await peer.send(request(1, "hold"), request(2))
        peer.close_input()
        await asyncio.sleep(3.0)
        assert peer.port.events == ["start", "open", "input_ended"]
        peer.port.answer(1)
        assert await peer.rest() == [result(2, {}), result(1, "late")]
        assert await peer.ended() is Ended.INPUT_ENDED
        assert virtual_now() == pytest.approx(3.0)

    run(scenario, PipePeer(FakePort()))


def test_a_call_that_ends_without_an_answer_is_not_waited_for() -> None:
    """A cancelled call writes nothing, so only asking the server shows it."""

    async def scenario(peer: PipePeer) -> None:
        await peer.send(request(1, "hold"))
        peer.close_input()
        await asyncio.sleep(1.0)
        peer.port.held.clear()
        assert await peer.ended() is Ended.INPUT_ENDED
        assert virtual_now() < 1.1

    run(scenario, PipePeer(FakePort()))


def test_a_call_that_does_not_end_is_given_up_after_the_drain_timeout() -> None:
    """MCP 2026-07-28 basic/transports/stdio: servers should exit promptly at the end of input."""

    async def scenario(peer: PipePeer) -> None:
        await peer.send(request(1, "hold"))
        peer.close_input()
        assert await peer.ended() is Ended.INPUT_ENDED
        assert virtual_now() == pytest.approx(5.0)

    port = FakePort()
    run(scenario, PipePeer(port))
    assert port.events == ["start", "open", "input_ended", "gone", "stop"]


def test_the_end_of_input_waits_for_a_reader_but_not_for_ever() -> None:
    """Every wait has an end."""

    async def scenario(peer: PipePeer) -> None:
        await peer.send(request(1, text="x" * 100_000))
        peer.close_input()
        assert await peer.ended() is Ended.INPUT_ENDED
        assert virtual_now() == pytest.approx(5.0)

    run(scenario, PipePeer(FakePort()))


def test_a_slow_reader_gets_everything_after_the_end_of_input() -> None:
    async def scenario(peer: PipePeer) -> None:
        await peer.send(request(1, text="x" * 500_000))
        peer.close_input()
        await asyncio.sleep(2.0)
        [answer] = await peer.rest()
        assert answer["id"] == 1

    run(scenario, PipePeer(FakePort()))


@pytest.mark.parametrize("sockets", [False, True])
def test_a_closed_output_ends_it_at_once(sockets: bool) -> None:
    """Each write failed, a catch-all recovered, and the process span at 100 % CPU."""

    async def scenario(peer: PipePeer) -> None:
        peer.close_output()
        if sockets:  # shows only when something is written
            await peer.send(request(1))
        assert await peer.ended() is Ended.OUTPUT_CLOSED
        assert virtual_now() == 0.0

    port = FakePort()
    run(scenario, PipePeer(port, sockets=sockets))
    assert port.events == ["start", "open", "gone", "stop"]


def test_an_output_closed_while_something_is_queued_ends_it_at_once() -> None:
    async def scenario(peer: PipePeer) -> None:
        await peer.send(request(1, text="x" * 500_000))
        await peer.read()
        peer.close_output()
        assert await peer.ended() is Ended.OUTPUT_CLOSED
        assert virtual_now() == 0.0

    run(scenario, PipePeer(FakePort()))


def test_an_output_closed_during_the_last_flush_ends_the_wait() -> None:
    async def scenario(peer: PipePeer) -> None:
        await peer.send(request(1, text="x" * 500_000))
        peer.close_input()
        await asyncio.sleep(1.0)
        peer.close_output()
        assert await peer.ended() is Ended.INPUT_ENDED
        assert virtual_now() == 1.0

    run(scenario, PipePeer(FakePort()))


def test_a_reset_socket_is_the_end_of_input() -> None:
    async def scenario(peer: PipePeer) -> None:
        peer.port.sink.put(CHANGED)
        await asyncio.sleep(1.0)
        # Closed with unread bytes in it, a socket is reset.
        peer.close_output()
        peer.close_input()
        assert await peer.ended() is Ended.INPUT_ENDED

    run(scenario, PipePeer(FakePort(), one_socket=True))


def test_the_server_may_end_it_after_what_it_put() -> None:
    """`Sink.close`."""

    def says_goodbye(message: Incoming) -> bool:
        port.sink.put(CHANGED)
        port.sink.close("enough")
        port.sink.put(CHANGED)
        return True

    async def scenario(peer: PipePeer) -> None:
        await peer.send(request(1), request(2))
        assert len(await peer.rest()) == 1
        assert await peer.ended() is Ended.DISCONNECTED

    port = FakePort()
    port.on_receive = says_goodbye
    run(scenario, PipePeer(port))
    assert len(port.received) == 1, "nothing is handed over after the end"
    assert port.events == ["start", "open", "gone", "stop"]


@pytest.mark.parametrize(
    ("number", "reason"),
    [(signal.SIGTERM, Ended.TERMINATED), (signal.SIGINT, Ended.INTERRUPTED)],
)
def test_a_signal_ends_it_at_once_but_flushes(number: signal.Signals, reason: Ended) -> None:
    """MCP 2025-11-25 lifecycle §Shutdown: the client sends SIGTERM when EOF did not help."""

    async def scenario(peer: PipePeer) -> None:
        await peer.send(request(1, "hold"), request(2))
        await asyncio.sleep(0.01)
        peer.port.sink.put(CHANGED)
        os.kill(os.getpid(), number)
        assert await peer.ended() is reason
        assert virtual_now() == 0.01
        assert len(await peer.rest()) == 2

    before = signal.getsignal(number)
    port = FakePort()
    run(scenario, PipePeer(port))
    assert port.events == ["start", "open", "gone", "stop"]
    assert signal.getsignal(number) is before


def test_a_signal_waits_one_second_for_a_peer_that_does_not_read() -> None:
    """Every wait has an end."""

    async def scenario(peer: PipePeer) -> None:
        await peer.send(request(1, text="x" * 100_000))
        await asyncio.sleep(1.0)
        os.kill(os.getpid(), signal.SIGTERM)
        assert await peer.ended() is Ended.TERMINATED
        assert virtual_now() == 2.0

    run(scenario, PipePeer(FakePort()))


def test_a_signal_during_a_start_that_hangs_ends_it() -> None:
    """SIGTERM must work before the first message too."""

    class Hangs(FakePort):
        async def start(self) -> None:
            await super().start()
            await asyncio.Event().wait()

    async def scenario() -> Ended:
        reading, writing = os.pipe()
        loop = asyncio.get_running_loop()
        loop.call_later(1.0, os.kill, os.getpid(), signal.SIGTERM)
        try:
            return await serve_stdio(port, stdin_fd=reading, stdout_fd=writing)
        finally:
            os.close(reading)
            os.close(writing)

    port = Hangs()
    assert run_virtual(scenario) is Ended.TERMINATED
    assert port.events == ["start"]


def test_a_cancel_during_the_start_is_passed_on() -> None:
    class Hangs(FakePort):
        async def start(self) -> None:
            await asyncio.Event().wait()

    async def scenario() -> None:
        reading, writing = os.pipe()
        try:
            async with asyncio.timeout(1.0):
                await serve_stdio(Hangs(), stdin_fd=reading, stdout_fd=writing)
        finally:
            os.close(reading)
            os.close(writing)

    with pytest.raises(TimeoutError):
        run_virtual(scenario)


def test_a_server_that_refuses_to_start_says_why_and_leaves_nothing() -> None:
    """ours: boot guards raise ConfigurationError."""

    def refuses() -> None:
        raise ConfigurationError("no authorizer")

    async def scenario() -> None:
        reading, writing = os.pipe()
        before = os.listdir("/dev/fd")
        with pytest.raises(ConfigurationError, match="no authorizer"):
            await serve_stdio(port, stdin_fd=reading, stdout_fd=writing)
        assert os.listdir("/dev/fd") == before
        os.close(reading)
        os.close(writing)

    port = FakePort()
    port.on_start = refuses
    run_virtual(scenario)
    assert port.events == ["start"]


def test_cancelling_it_ends_everything_in_order() -> None:
    async def scenario(peer: PipePeer) -> None:
        assert peer.serving is not None
        await peer.send(request(1))
        await peer.message()
        peer.serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await peer.ended()
        assert await peer.rest() == []

    port = FakePort()
    run(scenario, PipePeer(port))
    assert port.events == ["start", "open", "gone", "stop"]


def test_it_leaves_no_descriptor_task_timer_or_handler_behind() -> None:
    """MCP 2026-07-28 basic/transports/stdio §Shutdown."""

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        before = sorted(os.listdir("/dev/fd"))
        for wiring in ({}, {"sockets": True}):
            async with PipePeer(FakePort(), **wiring) as peer:
                await peer.send(request(1), request(2, "hold"))
                await peer.message()
        assert sorted(os.listdir("/dev/fd")) == before
        assert len(asyncio.all_tasks()) == 1

    run_virtual(scenario)


def test_outside_the_main_thread_it_serves_without_watching_signals() -> None:
    """An embedder may run the loop in any thread; signals belong to the main one."""
    reasons: list[Ended] = []

    async def scenario() -> None:
        async with PipePeer(FakePort()) as peer:
            await peer.send(request(1))
            assert await peer.message() == result(1, {})
            peer.close_input()
            reasons.append(await peer.ended())

    thread = threading.Thread(target=run_virtual, args=(scenario,))
    thread.start()
    thread.join()
    assert reasons == [Ended.INPUT_ENDED]


def test_on_windows_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        with pytest.raises(ConfigurationError, match="Windows"):
            await serve_stdio(FakePort())

    monkeypatch.setattr(sys, "platform", "win32")
    run_virtual(scenario)


def test_a_descriptor_that_is_not_open_is_a_configuration_error() -> None:
    async def scenario() -> None:
        reading, writing = os.pipe()
        os.close(writing)
        try:
            with pytest.raises(ConfigurationError, match=f"descriptor {writing} cannot be used"):
                await serve_stdio(FakePort(), stdin_fd=reading, stdout_fd=writing)
        finally:
            os.close(reading)

    run_virtual(scenario)
