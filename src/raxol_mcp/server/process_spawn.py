"""The server's side of the forkserver: starts it, talks to it, and sees that it is reaped.

Knows nothing about workers or calls.
"""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import msgspec

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.server.process_channel import Channel
from raxol_mcp.server.process_messages import Begin, Begun, Exited, Unforked, frame, from_forkserver

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

__all__ = ["Forkserver"]

_logger = logging.getLogger("raxol_mcp.processes")

# Texts of failed imports are the longest messages that come back.
_MAX_MESSAGE_BYTES: Final = 16 * 1024 * 1024
_REAP_INTERVAL: Final = 0.002


class Forkserver:
    """One running forkserver, the only direct child that this package's processes have.

    Starting it blocks for the millisecond or two that an exec takes; its imports run beside the
    server. `worker_exited` is called for each Exited and Unforked, `ended` once, when nothing more
    will come from it: call `kill` then. `begun` ends with one text for each import that failed.
    Raises ConfigurationError where there can be none and OSError when the system refuses.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        modules: Sequence[str],
        *,
        max_result_bytes: int,
        worker_exited: Callable[[Exited | Unforked], None],
        ended: Callable[[], None],
    ) -> None:
        _check_platform()
        self._loop = loop
        self._worker_exited = worker_exited
        self._ended = ended
        self.begun: asyncio.Future[list[str]] = loop.create_future()
        self.is_ended = False
        self.reaped: asyncio.Future[None] = loop.create_future()  # after `kill`: leaves no zombie
        own, other = socket.socketpair()
        with other:
            try:
                self._child = _start(other.fileno())
            except BaseException:
                own.close()
                raise
        self._channel = Channel(
            loop, own, received=self._received, ended=ended, max_bytes=_MAX_MESSAGE_BYTES
        )
        main_name, main_path = _main_module()
        self.send(
            Begin(
                argv=sys.argv,
                modules=list(modules),
                main_name=main_name,
                main_path=main_path,
                max_result_bytes=max_result_bytes,
            )
        )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._child.pid

    def send(self, message: msgspec.Struct, descriptors: tuple[int, ...] = ()) -> None:
        """Send one message; `descriptors` are closed here whatever happens."""
        self._channel.send(frame(message), descriptors)

    def finish(self) -> None:
        """Ask it to kill everything and to end; `ended` is called when it has."""
        self._channel.finish_sending()

    def kill(self) -> None:
        """Give up its socket, kill it if it still runs, and reap it in the background.

        Its id cannot be taken by another process before it is reaped here, so nothing else is hit.
        """
        if self.is_ended:
            return
        self.is_ended = True
        if not self.begun.done():
            self.begun.set_result(["an import ended the process"])
        self._channel.close()
        self._child.kill()
        self._reap()

    def _received(self, payload: bytes) -> None:
        try:
            message = from_forkserver.decode(payload)
        except msgspec.DecodeError:  # an imported module wrote to our descriptor
            self._ended()
            return
        if not isinstance(message, Begun):
            self._worker_exited(message)
            return
        for problem in message.problems:
            _logger.error("a module cannot be imported by a process: %s", problem)
        if message.threads > 1:
            _logger.warning("an import started threads: worker processes do not have them")
        if not self.begun.done():
            self.begun.set_result(message.problems)

    def _reap(self) -> None:
        # Not a child watcher of asyncio: those differ from version to version and from uvloop's.
        if self._child.poll() is None:
            self._loop.call_later(_REAP_INTERVAL, self._reap)
        elif not self.reaped.done():
            self.reaped.set_result(None)


def _start(descriptor: int) -> subprocess.Popen[bytes]:
    # Not "-m": the module must be found on this interpreter's path, not on the one of a fresh one.
    program = (
        f"import sys; sys.path[:] = {list(map(str, sys.path))!r}; "
        f"from raxol_mcp.server.process_forkserver import main; main({descriptor})"
    )
    # A session of its own: a terminal's Ctrl-C is for the server, which ends its workers in order.
    return subprocess.Popen(
        [sys.executable, *_interpreter_options(), "-c", program],
        stdin=subprocess.DEVNULL,
        stdout=_standard_error(),
        close_fds=True,
        pass_fds=(descriptor,),
        start_new_session=True,
    )


def _standard_error() -> int:
    """Return the descriptor that user code's prints go to: not the protocol's pipe (K13)."""
    try:
        os.fstat(2)
    except OSError:
        return subprocess.DEVNULL
    return 2


def _interpreter_options() -> list[str]:
    options = ["-" + "O" * sys.flags.optimize] if sys.flags.optimize else []
    if sys.flags.isolated:
        return [*options, "-I"]
    if sys.flags.ignore_environment:
        options.append("-E")
    if sys.flags.no_user_site:
        options.append("-s")
    if sys.flags.dont_write_bytecode:
        options.append("-B")
    return options


def _main_module() -> tuple[str | None, str | None]:
    """Say how the forkserver can import this program: by name, by path, or (neither) not at all."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    path = getattr(main, "__file__", None)
    if spec is not None and spec.name != "__main__":
        return spec.name, None
    if isinstance(path, str) and os.path.isfile(path):
        return None, os.path.abspath(path)
    return None, None


def _check_platform() -> None:
    if os.name != "posix" or not hasattr(os, "fork") or not hasattr(socket, "send_fds"):
        raise ConfigurationError(
            'isolation="process" needs fork and descriptor passing, which this system does not '
            'have; use isolation="thread"'
        )
    if not sys.executable or getattr(sys, "frozen", False):
        raise ConfigurationError(
            'isolation="process" needs a Python interpreter to start, and sys.executable names '
            'none; use isolation="thread"'
        )
