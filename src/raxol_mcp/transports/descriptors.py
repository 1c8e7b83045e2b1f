"""The two descriptors a stdio server speaks through, put where nothing else finds them.

A tool that prints, a library that shows a banner and a child process that inherits descriptor 1
would all write into the protocol (MCP 2026-07-28 basic/transports/stdio: a server must not write
anything to stdout that is not a message). So the pair is duplicated to private descriptors that
no child inherits, and what everybody else knows as 0 and 1 becomes the null device and stderr.

A process that is forked without an exec inherits all of it, close-on-exec or not: there the pair
is replaced at once, so that one process alone speaks to the peer.

This module moves and opens descriptors; it reads nothing and knows no message.
"""

from __future__ import annotations

import os
import socket
import stat
import sys
from collections.abc import Callable, Sequence
from io import TextIOWrapper
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from raxol_mcp.errors import ConfigurationError

if TYPE_CHECKING:
    from typing import TypeAlias

    Pieces: TypeAlias = Sequence[bytes | memoryview]

__all__ = ["Claim", "Output"]

_STDIN: Final = 0
_STDOUT: Final = 1
_STDERR: Final = 2


class Claim:
    """Private duplicates of an input and an output descriptor, until `restore`.

    Descriptors 0 and 1 are pointed elsewhere meanwhile: reading 0 finds the end at once, and
    writing 1 goes to stderr. Any other descriptor is only duplicated and stays its owner's.

    A program that claims as its first act, before it imports a user's module, and serves on
    `stdin_fd` and `stdout_fd`, keeps even what is printed by an import away from the peer. A
    program that ends after serving need not restore. Raises `ConfigurationError` when one of the
    two is not open.

    `left` is called in a process that was forked off, after the pair has been replaced there.
    """

    def __init__(self, stdin_fd: int = _STDIN, stdout_fd: int = _STDOUT) -> None:
        # Both first: the duplicate of one could take the free number of the other.
        _require_open(stdin_fd, "input")
        _require_open(stdout_fd, "output")
        self._given = (stdin_fd, stdout_fd)
        self.stdin_fd = _duplicate(stdin_fd)
        self.stdout_fd = _duplicate(stdout_fd)
        self._blocking = (os.get_blocking(self.stdin_fd), os.get_blocking(self.stdout_fd))
        self._line_buffering: bool | None = None
        self._restored = False
        self.left: Callable[[], None] = _nothing
        _HELD.add(self)
        if stdin_fd == _STDIN:
            _point(_STDIN, None)
        if stdout_fd == _STDOUT:
            self._divert_stdout()

    def restore_blocking(self) -> None:
        """Give both descriptors the blocking mode they had.

        The mode belongs to the open file, which may be the terminal of the shell that started
        this process: left non-blocking, it breaks the shell's own programs.
        """
        for fd, blocking in zip((self.stdin_fd, self.stdout_fd), self._blocking, strict=True):
            os.set_blocking(fd, blocking)

    def restore(self) -> None:
        """Put everything back as it was found and close the duplicates. Again: nothing."""
        if self._restored:
            return
        self._restored = True
        _HELD.discard(self)
        self.restore_blocking()
        stdin_fd, stdout_fd = self._given
        if stdin_fd == _STDIN:
            os.dup2(self.stdin_fd, _STDIN)
        if stdout_fd == _STDOUT:
            # What tools printed and is still buffered must not reach the peer either.
            self._rebuffer(self._line_buffering)
            os.dup2(self.stdout_fd, _STDOUT)
        os.close(self.stdin_fd)
        os.close(self.stdout_fd)

    def leave(self) -> None:
        """Let go of the peer, in a process that was forked from the one that serves it.

        Reading finds the end at once and writing goes where prints go. Nothing is closed: the
        numbers stay taken, and what the parent's event loop watches is watched on.
        """
        _point(self.stdin_fd, None)
        _point(self.stdout_fd, _aside(self.stdout_fd))
        self._blocking = (os.get_blocking(self.stdin_fd), os.get_blocking(self.stdout_fd))
        self.left()

    def _divert_stdout(self) -> None:
        _point(_STDOUT, _aside(self.stdout_fd))
        if isinstance(sys.stdout, TextIOWrapper) and not sys.stdout.closed:
            self._line_buffering = sys.stdout.line_buffering
        # Flushed after the move: a banner printed before this point is not a message. By the
        # line from here on, because a pipe made it block-buffered and a log is read live.
        self._rebuffer(True)

    @staticmethod
    def _rebuffer(line_buffering: bool | None) -> None:
        """Flush what was printed and say how the next prints are buffered."""
        if line_buffering is None or not isinstance(sys.stdout, TextIOWrapper):
            return
        if sys.stdout.closed:  # by a tool
            return
        try:
            sys.stdout.reconfigure(line_buffering=line_buffering)
        except OSError:
            # Nobody reads stderr. What is stuck in the buffer must not come out later, down the
            # protocol, and a tool must not fail because it prints.
            _point(_STDOUT, None)
            sys.stdout.reconfigure(line_buffering=line_buffering)


class Output:
    """Writes that never block, to a descriptor whose open file others may share.

    `fd` is what to watch for room to write. With `closes_visibly` it also becomes readable when
    the last reader has gone, and only then, because nothing can be read from it.
    """

    def __init__(self, fd: int) -> None:
        mode = os.fstat(fd).st_mode
        self._socket: socket.socket | None = None
        self._reopened: int | None = None
        self.closes_visibly = False
        if stat.S_ISSOCK(mode):
            # Each write says that it must not block; the socket itself stays as it is.
            self._socket = socket.socket(fileno=os.dup(fd))
            fd = self._socket.fileno()
        elif stat.S_ISFIFO(mode) or os.isatty(fd):
            self._reopened = _reopened(fd)
            if self._reopened is None:
                os.set_blocking(fd, False)  # the owner of the claim puts this back
            else:
                fd = self._reopened
            self.closes_visibly = stat.S_ISFIFO(mode) and _write_only(fd)
        self.fd = fd
        _HELD.add(self)

    def leave(self) -> None:
        """Let go of the peer, as `Claim.leave`; a descriptor that was given is the claim's."""
        if self._socket is not None or self._reopened is not None:
            _point(self.fd, _aside(self.fd))

    def write(self, pieces: Pieces) -> int:
        """Write what there is room for; return how many bytes that was.

        Raises `BlockingIOError` when there is no room, any other `OSError` when there never will
        be again.
        """
        if self._socket is not None:
            return self._socket.sendmsg(pieces, (), socket.MSG_DONTWAIT)
        return os.writev(self.fd, pieces)

    def close(self) -> None:
        """Close what was opened here; the descriptor that was given stays open. Again: nothing."""
        _HELD.discard(self)
        if self._socket is not None:
            self._socket.close()
        if self._reopened is not None:
            os.close(self._reopened)
            self._reopened = None


# What a process that is forked off has to let go of.
_HELD: Final[WeakSet[Claim | Output]] = WeakSet()


def _leave() -> None:
    for held in list(_HELD):
        held.leave()
    _HELD.clear()  # the child's own children have nothing to let go of


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_leave)


def _nothing() -> None:
    """Do nothing."""


def _require_open(fd: int, what: str) -> None:
    try:
        os.fstat(fd)
    except OSError as error:
        raise ConfigurationError(
            f"stdio needs an open {what}: descriptor {fd} cannot be used ({error.strerror})"
        ) from error


def _duplicate(fd: int) -> int:
    import fcntl  # not there on Windows, where this module must still be importable

    # Above 2: with a standard descriptor closed, the lowest free number would be taken for it.
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _STDERR + 1)


def _point(fd: int, target: int | None) -> None:
    """Make `fd` another name of `target`, or of the null device. Children inherit 0 and 1 alone."""
    inheritable = fd <= _STDERR
    if target is not None:
        os.dup2(target, fd, inheritable)
        return
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, fd, inheritable)
    os.close(null)


def _aside(output_fd: int) -> int | None:
    """Find where prints do not reach the peer; None: on the null device alone."""
    try:
        ours, theirs = os.fstat(output_fd), os.fstat(_STDERR)
    except OSError:
        return None  # stderr is closed
    # The launcher may have sent stderr down the same pipe (`2>&1`).
    same = os.path.samestat(ours, theirs) and not os.isatty(output_fd)
    return None if same else _STDERR


def _reopened(fd: int) -> int | None:
    """Open the same pipe or terminal once more, so that its mode is ours alone.

    Linux only: elsewhere `/dev/fd` shares the open file. None where it cannot be done, such as
    a pipe made by another user.
    """
    if sys.platform != "linux":
        return None
    flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        return os.open(f"/proc/self/fd/{fd}", flags)
    except OSError:
        return None


def _write_only(fd: int) -> bool:
    import fcntl

    return fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY
