"""Claim and Output: the protocol's descriptors are nobody else's."""

import fcntl
import io
import os
import socket
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.transports.descriptors import Claim, Output


@contextmanager
def standard(stdin_fd: int, stdout_fd: int, stderr_fd: int | None) -> Iterator[None]:
    """Make 0, 1 and 2 of this process other names of these; None: closed."""
    saved = [os.dup(fd) for fd in (0, 1, 2)]
    os.dup2(stdin_fd, 0)
    os.dup2(stdout_fd, 1)
    if stderr_fd is None:
        os.close(2)
    else:
        os.dup2(stderr_fd, 2)
    try:
        yield
    finally:
        for number, fd in enumerate(saved):
            os.dup2(fd, number)
            os.close(fd)


class Pipes:
    """Three pipes for the standard descriptors; `stdout` and `stderr` say what arrived."""

    def __init__(self) -> None:
        self.server_in, self.to_server = os.pipe()
        self.from_server, self.server_out = os.pipe()
        self.from_stderr, self.server_err = os.pipe()
        for fd in (self.from_server, self.from_stderr):
            os.set_blocking(fd, False)

    @property
    def stdout(self) -> bytes:
        return self._arrived(self.from_server)

    @property
    def stderr(self) -> bytes:
        return self._arrived(self.from_stderr)

    def close(self) -> None:
        for fd in vars(self).values():
            os.close(fd)

    @staticmethod
    def _arrived(fd: int) -> bytes:
        try:
            return os.read(fd, 1 << 16)
        except BlockingIOError:
            return b""


@pytest.fixture
def pipes() -> Iterator[Pipes]:
    pipes = Pipes()
    yield pipes
    pipes.close()


@contextmanager
def block_buffered() -> Iterator[io.TextIOWrapper]:
    """Make `sys.stdout` one that writes to descriptor 1 in blocks, as with a pipe."""
    raw = io.FileIO(1, "w", closefd=False)
    stream = io.TextIOWrapper(io.BufferedWriter(raw), encoding="utf-8")
    before, sys.stdout = sys.stdout, stream
    try:
        yield stream
    finally:
        sys.stdout = before


# Claim


def test_what_anybody_prints_goes_to_stderr(pipes: Pipes) -> None:
    """MCP 2026-07-28 basic/transports/stdio: nothing but messages on stdout."""
    with standard(pipes.server_in, pipes.server_out, pipes.server_err):
        claim = Claim()
        os.write(1, b"NOISE ")
        subprocess.run(["sh", "-c", "echo CHILD"], check=True)
        os.write(claim.stdout_fd, b"message")
        claim.restore()
    assert pipes.stdout == b"message"
    assert pipes.stderr == b"NOISE CHILD\n"


def test_what_was_printed_before_goes_to_stderr_too(pipes: Pipes) -> None:
    """A banner at import waits in the buffer of a pipe."""
    with (
        standard(pipes.server_in, pipes.server_out, pipes.server_err),
        block_buffered() as printed,
    ):
        printed.write("banner\n")
        claim = Claim()
        assert pipes.stderr == b"banner\n"
        printed.write("log line\n")
        assert pipes.stderr == b"log line\n", "by the line: a log is read live"
        printed.write("the end")
        claim.restore()
        assert pipes.stderr == b"the end"
        assert not printed.line_buffering
        printed.write("after\n")
        printed.flush()
    assert pipes.stdout == b"after\n"


def test_a_foreign_stdout_does_not_matter(pipes: Pipes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with standard(pipes.server_in, pipes.server_out, pipes.server_err):
        Claim().restore()


def test_a_stderr_that_nobody_reads_does_not_matter(pipes: Pipes) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with (
        standard(pipes.server_in, pipes.server_out, writing),
        block_buffered() as printed,
    ):
        printed.write("banner\n")
        claim = Claim()
        os.write(claim.stdout_fd, b"message")
        printed.write("a tool prints\n")
        claim.restore()
        printed.flush()
    os.close(writing)
    assert pipes.stdout == b"message"


def test_reading_standard_input_finds_the_end(pipes: Pipes) -> None:
    """A tool that calls `input()` must not take the peer's messages."""
    os.write(pipes.to_server, b"message\n")
    with standard(pipes.server_in, pipes.server_out, pipes.server_err):
        claim = Claim()
        assert os.read(0, 100) == b""
        assert subprocess.run(["cat"], check=True, capture_output=True).stdout == b""
        assert os.read(claim.stdin_fd, 100) == b"message\n"
        claim.restore()


def test_children_do_not_inherit_the_duplicates(pipes: Pipes) -> None:
    """A child that outlives the server would keep the pipe open, and the client waiting."""
    claim = Claim(pipes.server_in, pipes.server_out)
    assert not os.get_inheritable(claim.stdin_fd)
    assert not os.get_inheritable(claim.stdout_fd)
    assert min(claim.stdin_fd, claim.stdout_fd) > 2
    claim.restore()


def test_restore_puts_everything_back_once(pipes: Pipes) -> None:
    with standard(pipes.server_in, pipes.server_out, pipes.server_err):
        before = [os.fstat(fd) for fd in (0, 1)]
        claim = Claim()
        assert [os.fstat(fd) for fd in (0, 1)] != before
        claim.restore()
        claim.restore()
        assert [os.fstat(fd) for fd in (0, 1)] == before
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(claim.stdin_fd)


def test_other_descriptors_stay_what_they_are(pipes: Pipes) -> None:
    claim = Claim(pipes.server_in, pipes.server_out)
    os.write(pipes.server_out, b"its owner")
    claim.restore()
    assert pipes.stdout == b"its owner"


@pytest.mark.parametrize("closed", [False, True])
def test_with_stderr_in_the_same_pipe_or_closed_prints_go_nowhere(
    pipes: Pipes, closed: bool
) -> None:
    """`2>&1`: standard error is the protocol's pipe too, so it is no refuge."""
    with standard(pipes.server_in, pipes.server_out, None if closed else pipes.server_out):
        claim = Claim()
        os.write(1, b"NOISE")
        claim.restore()
    assert pipes.stdout == b""


@pytest.mark.parametrize("which", [0, 1])
def test_a_closed_descriptor_is_a_configuration_error(pipes: Pipes, which: int) -> None:
    fds = [pipes.server_in, pipes.server_out]
    fds[which] = 9_999
    before = os.listdir("/dev/fd")
    with pytest.raises(ConfigurationError, match="descriptor 9999 cannot be used"):
        Claim(*fds)
    assert os.listdir("/dev/fd") == before


def test_restore_gives_the_blocking_mode_back(pipes: Pipes) -> None:
    """The mode belongs to the open file, which the launching shell shares."""
    os.set_blocking(pipes.server_out, False)
    claim = Claim(pipes.server_in, pipes.server_out)
    os.set_blocking(claim.stdin_fd, False)
    os.set_blocking(claim.stdout_fd, True)
    claim.restore()
    assert os.get_blocking(pipes.server_in)
    assert not os.get_blocking(pipes.server_out)


# Processes that are forked


def ended_well(pid: int) -> bool:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@contextmanager
def forked() -> Iterator[int]:
    """Fork; the block is run by both, and the child ends with it: well, unless it raises."""
    with warnings.catch_warnings():
        # Python 3.12 and later, when other tests have left threads: the child touches no lock.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    try:
        yield pid
    except BaseException:
        if pid == 0:
            os._exit(1)
        raise
    if pid == 0:
        os._exit(0)


@pytest.mark.parametrize("reopened", [True, False])
def test_a_forked_process_has_nothing_of_the_peer(
    pipes: Pipes, monkeypatch: pytest.MonkeyPatch, reopened: bool
) -> None:
    """Close-on-exec is no help: there is no exec."""
    if not reopened:
        monkeypatch.setattr(sys, "platform", "other")
    os.write(pipes.to_server, b"message")
    with standard(pipes.server_in, pipes.server_out, pipes.server_err):
        claim = Claim()
        output = Output(claim.stdout_fd)
        with forked() as pid:
            if pid == 0:
                assert os.read(claim.stdin_fd, 9) == b""
                os.write(claim.stdout_fd, b"CHILD ")
                output.write([b"OUTPUT"])
                output.close()
                claim.restore()
        assert ended_well(pid)
        assert os.read(claim.stdin_fd, 9) == b"message"
        output.write([b"answer"])
        output.close()
        claim.restore()
    assert pipes.stdout == b"answer"
    assert pipes.stderr == b"CHILD OUTPUT"


def test_a_forked_process_has_nothing_of_a_peer_at_a_socket() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        claim = Claim(ours.fileno(), ours.fileno())
        output = Output(claim.stdout_fd)
        with forked() as pid:
            if pid == 0:
                with pytest.raises(OSError, match="non-socket"):
                    output.write([b"NOISE"])
        assert ended_well(pid)
        output.write([b"answer"])
        assert theirs.recv(100) == b"answer"
        output.close()
        claim.restore()


def test_after_the_end_a_forked_process_keeps_what_it_has(pipes: Pipes) -> None:
    """The numbers of the duplicates are others' by then."""
    claim = Claim(pipes.server_in, pipes.server_out)
    output = Output(claim.stdout_fd)
    numbers = (claim.stdin_fd, claim.stdout_fd, output.fd)
    output.close()
    claim.restore()
    taken = [os.dup2(pipes.server_out, number) for number in numbers]
    with forked() as pid:
        if pid == 0:
            for number in taken:
                os.write(number, b"x")
    for number in taken:
        os.close(number)
    assert ended_well(pid)
    assert pipes.stdout == b"xxx"


def test_in_a_forked_process_the_owner_of_the_claim_is_told(pipes: Pipes) -> None:
    claim = Claim(pipes.server_in, pipes.server_out)
    claim.left = lambda: os._exit(7)
    with forked() as pid:
        pass
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    claim.restore()


# Output


def fill(output: Output) -> int:
    """Write until there is no room; return how many bytes fitted."""
    total = 0
    try:
        while True:
            total += output.write([b"x" * 10_000, b"y" * 10_000])
    except BlockingIOError:
        return total


def test_a_pipe_never_blocks_and_its_mode_is_not_touched(pipes: Pipes) -> None:
    output = Output(pipes.server_out)
    assert fill(output) > 0
    assert os.get_blocking(pipes.server_out)
    assert output.closes_visibly
    output.close()
    os.fstat(pipes.server_out)  # still open


def test_a_socket_never_blocks_and_its_mode_is_not_touched() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        output = Output(ours.fileno())
        assert fill(output) > 0
        assert ours.getblocking()
        assert os.get_blocking(ours.fileno())
        assert not output.closes_visibly
        output.close()
        ours.getsockname()  # still open


def test_a_terminal_never_blocks_and_its_mode_is_not_touched() -> None:
    leader, follower = os.openpty()
    output = Output(follower)
    assert fill(output) > 0
    assert os.get_blocking(follower)
    assert not output.closes_visibly
    output.close()
    os.close(follower)
    os.close(leader)


def test_a_pipe_that_cannot_be_opened_again_is_switched(
    pipes: Pipes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe made by another user, or a system without Linux's /proc."""
    monkeypatch.setattr(sys, "platform", "other")
    claim = Claim(pipes.server_in, pipes.server_out)
    output = Output(claim.stdout_fd)
    assert fill(output) > 0
    assert not os.get_blocking(pipes.server_out)
    assert output.closes_visibly
    output.close()
    claim.restore()
    assert os.get_blocking(pipes.server_out)


def test_a_pipe_without_a_reader_is_still_an_output(tmp_path: Path) -> None:
    """It cannot be opened again; that it is broken shows at the first write."""
    path = tmp_path / "fifo"
    os.mkfifo(path)
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    writing = os.open(path, os.O_WRONLY)
    os.close(reading)
    output = Output(writing)
    with pytest.raises(BrokenPipeError):
        output.write([b"x"])
    output.close()
    os.close(writing)


def test_a_file_is_written_where_its_owner_was(tmp_path: Path) -> None:
    """Opened again, it would be overwritten from its start."""
    path = tmp_path / "out"
    with path.open("wb") as file:
        os.write(file.fileno(), b"head ")
        output = Output(file.fileno())
        assert output.write([b"a", memoryview(b"bc")]) == 3
        output.close()
        output.close()
    assert path.read_bytes() == b"head abc"
    assert not output.closes_visibly


def test_a_pipe_open_for_both_ways_says_nothing_by_being_readable(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    both = os.open(path, os.O_RDWR)
    output = Output(both)
    flags = fcntl.fcntl(output.fd, fcntl.F_GETFL)
    assert output.closes_visibly == (flags & os.O_ACCMODE == os.O_WRONLY)
    output.close()
    os.close(both)


def test_restore_survives_a_tool_that_closed_stdout(
    pipes: Pipes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with standard(pipes.server_in, pipes.server_out, pipes.server_err):
        monkeypatch.setattr(sys, "stdout", os.fdopen(os.dup(1), "w"))
        claim = Claim()
        sys.stdout.close()
        claim.restore()
