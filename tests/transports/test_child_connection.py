"""transports/child_connection.py: a real server does everything wrong, and the link stays right."""

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from raxol_mcp.errors import PARSE_ERROR, Reason
from raxol_mcp.transports import child_connection
from raxol_mcp.transports.draining import Drain
from raxol_mcp.transports.link import LinkFailed
from raxol_mcp.transports.subprocess import SubprocessDialer
from raxol_mcp.wire.jsonrpc import (
    Batch,
    Failure,
    Invalid,
    Notification,
    Request,
    Response,
)
from tests.transports.child_fakes import Session, is_alive, is_there, opened, peer_dialer, run

TEXT = "a\u2028b\u2029c\u0085d — é 读取 🎉"


def with_peer(
    scenario: Callable[[Session], Coroutine[object, object, None]],
    dialer: SubprocessDialer | None = None,
) -> Session:
    """Run a scenario with an open link to a server that does as it is told."""

    async def inside() -> Session:
        async with opened(dialer or peer_dialer()) as session:
            await scenario(session)
        return session

    return run(inside)


def answer(id: object = "$ID", text: str = "ok", end: str = "\n") -> str:
    """Return the line of an answer as hex; `$ID` stands for the id of the request."""
    return f'{{"jsonrpc":"2.0","id":{id},"result":"{text}"}}{end}'.encode().hex()


# --- Messages ---


def test_messages_go_both_ways() -> None:
    async def scenario(session: Session) -> None:
        assert await session.ask("echo", text=TEXT) == {"text": TEXT}
        keys = [session.send("echo", number=number) for number in range(100)]
        await session.answer(keys[-1])
        assert [m.id for m in session.port.messages if isinstance(m, Response)] == [1, *keys]

    session = with_peer(scenario)
    assert session.port.named("lost") == session.port.named("failed") == []


def test_a_notification_and_an_answer_are_reported_when_they_are_written() -> None:
    """client-behaviour: settled through the event queue, behind what was received before."""

    async def scenario(session: Session) -> None:
        session.link.send(Notification("n"), 7)
        session.link.send(Response("theirs", {}), 8)
        assert session.port.events == []
        await session.port.until(lambda: session.port.named("sent") == [(7,), (8,)])
        assert await session.ask("echo") == {}

    with_peer(scenario)


@pytest.mark.parametrize("chunk", [0, 1])
def test_every_character_arrives(chunk: int) -> None:
    """BC-097: readers that split at every Unicode line end, or decode piece by piece."""

    async def scenario(session: Session) -> None:
        key = session.send("write", hex=answer(text=TEXT, end="\r\n"), chunk=chunk)
        assert await session.answer(key) == TEXT
        key = session.send("write", hex="efbbbf" + answer())
        assert await session.answer(key) == "ok"

    session = with_peer(scenario, peer_dialer(env={"LC_ALL": "C", "PYTHONUTF8": "0"}))
    assert session.port.named("noticed") == []


def test_requests_and_batches_of_the_server_are_handed_over() -> None:
    """MCP 2025-03-26 knows batches; what is allowed is decided by the core."""
    lines = (
        '{"jsonrpc":"2.0","id":"s1","method":"ping"}\n'
        '{"jsonrpc":"2.0","id":"s2","method":"ping","params":{"a":NaN}}\n'
        '[{"jsonrpc":"2.0","method":"n"},{"jsonrpc":"2.0","id":$ID,"result":"in a batch"}]\n'
        '{"jsonrpc":"2.0","id":$ID,"result":"again"}\n'
    )

    async def scenario(session: Session) -> None:
        session.send("write", hex=lines.encode().hex())
        await session.port.until(lambda: session.port.named("noticed"))
        ping, broken, batch = session.port.messages
        assert ping == Request("s1", "ping")
        assert isinstance(broken, Invalid)
        assert (broken.failure.id, broken.failure.code) == ("s2", PARSE_ERROR)
        assert batch == Batch([Notification("n"), Response(1, "in a batch")])

    session = with_peer(scenario)
    assert session.port.named("noticed") == [("stray_answer", {})]


def test_an_answer_nobody_waits_for_is_not_handed_over() -> None:
    """One end for each key: a second answer, one to no request, one whose id is a text."""

    async def scenario(session: Session) -> None:
        session.link.send(Notification("n"), 77)
        lines = answer() + answer() + answer(id=77) + answer(id='"$ID"') + answer(id='"x"')
        await session.answer(session.send("write", hex=lines))
        await session.port.until(lambda: len(session.port.named("noticed")) == 4)

    session = with_peer(scenario)
    assert session.port.named("noticed") == [("stray_answer", {})] * 4
    assert session.port.messages == [Response(1, "ok")]


def test_nothing_is_reported_of_what_was_aborted() -> None:
    async def scenario(session: Session) -> None:
        first = session.send("echo")
        session.link.send(Notification("n"), 50)
        session.link.abort(first)
        session.link.abort(50)
        session.link.abort(51)
        await session.ask("echo", second=True)

    session = with_peer(scenario)
    assert session.port.messages == [Response(2, {"second": True})]
    assert session.port.named("sent") == []


def test_a_message_that_cannot_be_written_fails_alone() -> None:
    async def scenario(session: Session) -> None:
        key = session.send("echo", bad=object())
        assert session.port.events == []
        reason = await session.port.failure(key)
        assert reason.path == ("encode_failed",)
        assert not reason.maybe_done
        assert "object" in reason.text
        assert await session.ask("echo") == {}

    with_peer(scenario)


def test_a_flood_of_notifications_does_not_delay_an_answer() -> None:
    """BC-177: unread notifications stopped the answers."""

    async def scenario(session: Session) -> None:
        flood = session.send("flood", count=2_000)
        echo = session.send("echo")
        assert await session.answer(flood) == "done"
        assert await session.answer(echo) == {}

    session = with_peer(scenario)
    assert sum(isinstance(m, Notification) for m in session.port.messages) == 2_000


def test_a_large_request_and_a_large_result_do_not_wait_for_each_other() -> None:
    """ours: a server that writes before it reads on, and a client that did so too, stood still."""

    async def scenario(session: Session) -> None:
        first = session.send("big", size=1_000_000)
        second = session.send("echo", text="x" * 9_000_000)
        third = session.send("big", size=3)
        assert await session.answer(first) == "x" * 1_000_000
        assert await session.answer(second) == {"text": "x" * 9_000_000}
        assert await session.answer(third) == "xxx"

    with_peer(scenario)


# --- What is no message ---

GARBAGE = [
    "Starting server v1.2 on stdio…",
    "",
    "{not json}",
    '"x"',
    "17",
    "[1,2",
    '{"level":"info","id":1,"error":"x"}',
    "\x1b[31mred\x1b[0m\u202e",
]


def test_what_is_no_message_is_counted_and_never_content(caplog: pytest.LogCaptureFixture) -> None:
    """BC-091: banners and debug prints made every call fail."""
    lines = "".join(f"{line}\n" for line in GARBAGE).encode() + b"\xff\xfe\n"

    async def scenario(session: Session) -> None:
        assert await session.ask("write", hex=lines.hex(), result="written") == "written"

    with caplog.at_level(logging.INFO, "raxol_mcp.client.stdio"):
        session = with_peer(scenario)
    texts = [*filter(None, GARBAGE[:-1]), "\\x1b[31mred\\x1b[0m\\u202e", "\\xff\\xfe"]
    assert session.port.named("noticed") == [
        ("stray_output", {"text": text, "count": count}) for count, text in enumerate(texts, 1)
    ]
    assert session.port.messages == [Response(1, "written")]
    assert [record.getMessage().rpartition(": ")[2] for record in caplog.records] == [GARBAGE[0]]


def test_the_next_burst_is_logged_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(session: Session) -> None:
        for _ in range(2):
            await session.ask("write", hex=b"noise\n".hex(), result="written")

    monkeypatch.setattr(child_connection, "_QUIET", 0.0)
    with caplog.at_level(logging.INFO, "raxol_mcp.client.stdio"):
        with_peer(scenario)
    assert len(caplog.records) == 2


def test_the_text_of_a_stray_line_is_bounded() -> None:
    async def scenario(session: Session) -> None:
        await session.ask("write", hex=(b"x" * 100_000 + b"\n").hex(), result="written")

    ((_, fields),) = with_peer(scenario).port.named("noticed")
    assert isinstance(fields, dict)
    assert len(str(fields["text"])) == 512


@pytest.mark.parametrize(
    "broken",
    [
        b'{"jsonrpc":"2.0","id":$ID,"result":"\xff"}',
        b'{"jsonrpc":"2.0","id":$ID,"result":' + b"[" * 500 + b"]" * 500 + b"}",
        b'{"jsonrpc":"2.0","id":$ID,"result":{"a":NaN}}',
        b'{"jsonrpc":"2.0","id":$ID,"result":{"a":1,"a":2}}',
        b'{"jsonrpc":"2.0","id":$ID}',
    ],
)
def test_an_answer_that_cannot_be_read_fails_its_call_alone(broken: bytes) -> None:
    """Both peers' clients hung for ever, with all their other calls."""

    async def scenario(session: Session) -> None:
        key = session.send("write", hex=(broken + b"\n").hex())
        reason = await session.port.failure(key)
        assert reason.path == ("invalid_response", "write")
        assert reason.maybe_done
        assert reason.text
        session.send("write", hex=(broken.replace(b"$ID", str(key).encode()) + b"\n").hex())
        await session.port.until(lambda: session.port.named("noticed"))
        assert await session.ask("echo") == {}

    session = with_peer(scenario)
    assert len(session.port.named("failed")) == 1


# --- Lines without an end ---


def test_a_line_of_a_megabyte_and_a_half_is_accepted() -> None:
    async def scenario(session: Session) -> None:
        assert await session.ask("big", size=1_500_000) == "x" * 1_500_000

    with_peer(scenario)


def test_a_line_over_the_limit_ends_the_link_and_the_server() -> None:
    """BC: a line of 200 MB hung the client for ever."""

    async def scenario(session: Session) -> None:
        about = await session.ask("about")
        assert isinstance(about, dict)
        session.send("endless")
        assert (await session.port.next_lost()).path == ("line_too_long", 100_000)
        await session.link.close()
        assert not is_there(about["pid"])

    with_peer(scenario, peer_dialer(max_line_bytes=100_000))


# --- Its end ---


@pytest.mark.parametrize(("code", "text"), [(3, "one\n\nBoom\x1b\n"), (0, "")])
def test_an_exit_in_the_middle_of_a_call_is_reported_with_its_code(code: int, text: str) -> None:
    """BC-093, client check 38: every call that waits ends, and knows why."""

    async def scenario(session: Session) -> None:
        session.send("exit", code=code, text=text)
        reason = await session.port.next_lost()
        assert reason.path == ("server_exited", code)
        assert reason.text == ("one | Boom\\x1b" if text else "")
        events = len(session.port.events)
        session.send("echo")
        session.link.send(Notification("n"), 70)
        await asyncio.sleep(0)
        await session.link.close()
        await session.link.close()
        assert len(session.port.events) == events

    session = with_peer(scenario)
    assert session.port.named("failed") == []


def test_last_words_that_were_not_read_yet_are_told_with_the_exit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The exit may be noticed before the last of stderr is."""

    class Late(Drain):
        """Has not had its turn yet, whenever it is asked."""

        def start(self) -> None:
            super().start()
            self._loop.remove_reader(self._fd)

    monkeypatch.setattr(child_connection, "Drain", Late)

    async def scenario(session: Session) -> None:
        session.send("exit", code=3, text="Boom\n")
        assert (await session.port.next_lost()).text == "Boom"

    with_peer(scenario)


def test_death_by_a_signal_is_told_as_a_shell_does() -> None:
    async def scenario(session: Session) -> None:
        session.send("dies", signal=9)
        assert (await session.port.next_lost()).path == ("server_exited", 128 + 9)

    with_peer(scenario)


def test_what_was_written_just_before_the_exit_is_delivered() -> None:
    """ours: the end of the process must not overtake its last words."""

    async def scenario(session: Session) -> None:
        noise = session.send("flood", count=30)
        last = session.send("exit", code=4, result="last words")
        await session.port.next_lost()
        assert await session.answer(noise) == "done"
        assert await session.answer(last) == "last words"

    session = with_peer(scenario)
    assert session.port.events[-1][0] == "lost"


def test_a_last_line_without_its_newline_counts_if_it_is_a_message() -> None:
    async def scenario(session: Session) -> None:
        key = session.send("exit", code=0, unfinished='{"jsonrpc":"2.0","id":1,"result":1}')
        assert await session.answer(key) == 1

    with_peer(scenario)


def test_half_a_last_line_is_no_answer() -> None:
    """BC-093: a partial last line, then the exit."""

    async def scenario(session: Session) -> None:
        session.send("exit", code=0, unfinished='{"jsonrpc":"2.0","id":1,"result":')
        assert (await session.port.next_lost()).path == ("server_exited", 0)

    session = with_peer(scenario)
    assert session.port.messages == []
    assert session.port.named("failed") == []


@pytest.mark.slow
def test_wherever_an_answer_is_cut_off_its_call_ends_once() -> None:
    """K14, K22: the server dies at each point of writing an answer."""
    whole = '{"jsonrpc":"2.0","id":1,"result":"é"}\n'

    async def scenario() -> None:
        for cut in range(len(whole) + 1):
            async with opened(peer_dialer()) as session:
                session.send("exit", code=5, unfinished=whole[:cut])
                reason = await session.port.next_lost()
                assert reason.path == ("server_exited", 5)
                arrived = [Response(1, "é")] if cut >= len(whole) - 1 else []
                assert session.port.messages == arrived
                assert session.port.named("failed") == []

    run(scenario)


@pytest.mark.parametrize("fd", [0, 1])
def test_a_server_that_closes_a_pipe_and_lives_on_is_ended(
    fd: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BC-093: nothing can come any more, or go, and the process is still there."""
    monkeypatch.setattr(child_connection, "_EXIT_WAIT", 0.05)

    async def scenario(session: Session) -> None:
        about = await session.ask("about")
        assert isinstance(about, dict)
        session.send("errors", text="leaving\n")
        session.send("closes", fd=fd)
        while not session.port.named("lost"):
            session.link.send(Notification("n"), 1_000 + len(session.port.events))
            await asyncio.sleep(0.01)
        reason = await session.port.next_lost()
        assert reason.path == ("transport", "closed")
        assert reason.text == "leaving"
        await session.link.close()
        assert not is_there(about["pid"])

    with_peer(scenario, peer_dialer(end_wait=0.01))


def test_what_a_dead_server_cannot_have_seen_fails_as_not_connected() -> None:
    """client check 53: never a wait for an answer that cannot come."""

    async def scenario(session: Session) -> None:
        about = await session.ask("about")
        assert isinstance(about, dict)
        await session.ask("stops_reading")
        large = [session.send("echo", text="x" * 300_000) for _ in range(3)]
        late: list[int] = []

        def sends_once_more() -> None:
            if not late:
                late.append(session.send("echo"))

        session.port.on_event = sends_once_more
        await asyncio.sleep(0)  # what was sent in one turn is written at its end
        os.kill(about["pid"], signal.SIGKILL)
        reason = await session.port.next_lost()
        assert reason.path == ("server_exited", 128 + signal.SIGKILL)
        # The first had begun to be written, so its end is that of the link.
        assert [key for key, _ in session.port.named("failed")][:2] == large[1:]
        assert late
        for key in large[1:]:
            reason = await session.port.failure(int(str(key)))
            assert (reason.path, reason.maybe_done) == (("not_connected",), False)

    with_peer(scenario)


def test_a_server_that_reads_nothing_delays_nobody_and_is_given_up() -> None:
    """Later calls hung in spite of their own timeouts."""

    async def scenario(session: Session) -> None:
        await session.ask("stops_reading")
        for _ in range(4):
            session.send("echo", text="x" * 4_000_000)
        refused = session.send("echo")
        assert (await session.port.failure(refused)).path == ("busy",)
        session.link.send(Response("theirs", "answers are always taken"), 99)
        reason = await session.port.next_lost()
        assert reason.path == ("transport", "stalled")
        assert reason.text == "nothing was read for 0.05 seconds"

    session = with_peer(scenario, peer_dialer(stall_timeout=0.05))
    failed = {key: reason.path for key, reason in session.port.named("failed")}  # type: ignore[attr-defined]  # what was noted is a reason
    assert failed[99] == ("not_connected", "transport", "stalled")


ASKS = b'{"jsonrpc":"2.0","id":"s","method":"ping"}\n'


def answering(session: Session, size: int) -> None:
    """Let the client answer every message with so many characters."""
    keys = iter(range(1_000, 1_000_000))

    def answers() -> None:
        if session.port.events[-1][0] == "received":
            session.link.send(Response("s", "x" * size), next(keys))

    session.port.on_event = answers


def test_a_server_that_asks_and_never_reads_is_not_read_either() -> None:
    """ours: it fills its own pipe, not our memory."""

    async def scenario(session: Session) -> None:
        answering(session, 100_000)
        session.send("write", hex=(ASKS * 4_000).hex(), result="written")
        assert (await session.port.next_lost()).path == ("transport", "stalled")
        assert len(session.port.messages) < 100

    with_peer(scenario, peer_dialer(stall_timeout=0.05))


def test_a_server_that_reads_late_is_read_again() -> None:
    async def scenario(session: Session) -> None:
        answering(session, 20_000)
        session.send("write", hex=(ASKS * 1_000).hex(), result="written")
        await session.port.until(lambda: len(session.port.messages) == 1_001)
        await session.port.until(lambda: len(session.port.named("sent")) == 1_001)

    session = with_peer(scenario)
    assert session.port.named("lost") == []


# --- Closing ---


def notes_of(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


def test_a_server_that_ends_with_its_input_is_not_signalled(tmp_path: Path) -> None:
    """BC-095: the server sees the end of its input, and is given the time."""
    path = tmp_path / "notes"

    async def scenario(session: Session) -> None:
        await session.ask("notes", path=str(path), stays=False)

    with_peer(scenario, peer_dialer(end_wait=3600.0, term_wait=3600.0))
    assert notes_of(path) == ["EOF"]


def test_sigterm_comes_after_the_end_of_the_input(tmp_path: Path) -> None:
    """BC-095; MCP 2026-07-28 stdio §Shutdown: close the input, wait, SIGTERM, wait, SIGKILL."""
    path = tmp_path / "notes"

    async def scenario(session: Session) -> None:
        about = await session.ask("about")
        assert isinstance(about, dict)
        await session.ask("notes", path=str(path), stays=True)
        await session.link.close()
        assert not is_there(about["pid"])

    with_peer(scenario, peer_dialer(end_wait=0.1, term_wait=0.1))
    assert notes_of(path) == ["EOF", "TERM"]


def test_what_was_sent_just_before_the_close_still_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MCP: notifications/cancelled is worth nothing if it is never written."""
    monkeypatch.setattr(child_connection, "_LAST_FLUSH", 3600.0)
    path = tmp_path / "notes"

    async def scenario(session: Session) -> None:
        session.send("echo", text="x" * 200_000)  # more than the pipe holds
        session.send("notes", path=str(path), stays=False)
        await session.link.close()
        assert session.port.events == []

    with_peer(scenario, peer_dialer(end_wait=3600.0))
    assert notes_of(path) == ["EOF"]


def test_a_server_that_is_writing_when_it_is_closed_may_finish() -> None:
    """ours: a full pipe would keep it from seeing the end of its input."""

    async def scenario(session: Session) -> None:
        about = await session.ask("about")
        assert isinstance(about, dict)
        session.send("flood", count=1_000)
        await session.port.until(lambda: len(session.port.messages) > 2)
        await session.link.close()
        assert not is_there(about["pid"])

    # Would be waited for in vain, and for longer than the test may take.
    with_peer(scenario, peer_dialer(end_wait=3600.0))


def test_a_deaf_server_and_what_it_started_are_killed() -> None:
    """BC-095, client check 51: only the launcher was ended, or close waited for ever."""

    async def scenario(session: Session) -> None:
        about = await session.ask("about")
        assert isinstance(about, dict)
        child = await session.ask("begets", stubborn=True)
        assert isinstance(child, int)
        await session.ask("deaf")
        await session.link.close()
        assert not is_there(about["pid"])
        assert not is_alive(child)

    with_peer(scenario, peer_dialer(end_wait=0.02, term_wait=0.02))


def test_who_holds_the_pipes_does_not_keep_the_close() -> None:
    """The server ends as it should; its child stays, with all the pipes, in spite of SIGTERM."""

    async def scenario(session: Session) -> None:
        child = await session.ask("begets", stubborn=True)
        assert isinstance(child, int)
        await session.link.close()
        assert not is_alive(child)

    with_peer(scenario, peer_dialer(end_wait=3600.0, term_wait=0.02))


@pytest.mark.parametrize("talks", [False, True])
def test_who_holds_the_pipes_does_not_keep_the_exit_from_being_reported(
    talks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_connection, "_HELD_WAIT", 0.1)
    monkeypatch.setattr(child_connection, "_HELD_AT_MOST", 0.2)

    async def scenario(session: Session) -> None:
        child = await session.ask("begets", stubborn=True, talks=talks)
        assert isinstance(child, int)
        if talks:
            await session.port.until(lambda: Notification("late") in session.port.messages)
        session.send("exit", code=3)
        assert (await session.port.next_lost()).path == ("server_exited", 3)
        await session.link.close()
        assert not is_alive(child)

    with_peer(scenario, peer_dialer(term_wait=0.02))


def test_a_close_that_is_cancelled_goes_on() -> None:
    async def scenario(session: Session) -> None:
        about = await session.ask("about")
        assert isinstance(about, dict)
        await session.ask("deaf")
        closing = asyncio.ensure_future(session.link.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert is_alive(about["pid"])
        await session.link.close()
        assert not is_there(about["pid"])

    with_peer(scenario, peer_dialer(end_wait=0.02, term_wait=0.02))


@pytest.mark.parametrize("unread", [0, 1_000_000])
def test_the_end_of_the_loop_kills_at_once(unread: int) -> None:
    """ours: a program that ends leaves no server behind, also while something waits to be read."""
    pids: list[int] = []

    async def scenario() -> None:
        session = Session(peer_dialer(end_wait=3600.0, term_wait=3600.0))
        await session.link.open()
        about = await session.ask("about")
        assert isinstance(about, dict)
        pids.append(about["pid"])
        await session.ask("deaf")
        await session.ask("stops_reading")
        if unread:
            session.send("echo", text="x" * unread)
        closing = asyncio.ensure_future(session.link.close())
        await asyncio.sleep(0.01)
        assert not closing.done()

    run(scenario)
    assert not is_there(pids[0])


def test_a_server_that_closed_a_pipe_already_is_closed_like_any_other() -> None:
    async def scenario(session: Session) -> None:
        about = await session.ask("about")
        assert isinstance(about, dict)
        session.send("closes", fd=1)
        session.send("echo", text="x" * 1_000_000)
        await asyncio.sleep(0.05)
        await session.link.close()
        assert not is_there(about["pid"])
        assert session.port.named("lost") == []

    with_peer(scenario, peer_dialer(end_wait=0.01, term_wait=0.5))


def test_where_a_pipe_cannot_be_opened_again_it_is_used_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Systems without /proc/self/fd."""
    monkeypatch.setattr("raxol_mcp.transports.descriptors._reopened", lambda _fd: None)

    async def scenario() -> None:
        before = sorted(os.listdir("/proc/self/fd"))
        async with opened(peer_dialer(end_wait=3600.0)) as session:
            assert await session.ask("echo") == {}
        assert sorted(os.listdir("/proc/self/fd")) == before

    run(scenario)


def test_a_loop_that_watches_no_more_descriptors_starts_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    async def scenario() -> None:
        before = sorted(os.listdir("/proc/self/fd"))
        session = Session(peer_dialer())
        monkeypatch.setattr("raxol_mcp.transports.process_tree.ProcessTree.watch", full)
        with pytest.raises(LinkFailed) as caught:
            await session.link.open()
        assert caught.value.reason == Reason("spawn_failed", "enospc")
        assert sorted(os.listdir("/proc/self/fd")) == before

    run(scenario)


def test_the_failure_of_a_request_may_be_an_error_of_the_server() -> None:
    """JSON-RPC: an error is an answer like any other."""
    line = b'{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"no"}}\n'

    async def scenario(session: Session) -> None:
        session.send("write", hex=line.hex())
        await session.port.until(lambda: session.port.messages)
        assert session.port.messages == [Failure(1, -32601, "no")]

    with_peer(scenario)
