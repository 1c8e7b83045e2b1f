"""Lives in a worker process: finds the function that a call names and runs it, one call at a time.

Knows nothing about forking, killing or asyncio's side of the socket. What a user's function does
to this process stays in this process (K09): the server learns of it by an answer or by its end.

How a worker ends, when nobody reads its answers any more, while user code still runs:

* A server that dies closes the socket to the forkserver, which then kills every group it made.
* A forkserver that dies takes its workers along: on Linux by PR_SET_PDEATHSIG, which the kernel
  delivers even to a worker that sits in C code and holds the GIL, and which needs no thread, so
  that user code may fork without the warnings (3.12) and dangers of a threaded process. Where
  there is no such call, `watch` does it from a thread, as soon as that thread gets the GIL.

What escapes: a process that user code put into a group of its own (`start_new_session=True`), and,
only when the forkserver itself was killed from outside, other processes that user code started.
"""

from __future__ import annotations

import importlib
import os
import select
import signal
import socket
import sys
import time
import types
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final, NoReturn

from raxol_mcp.errors import ConfigurationError, ToolError
from raxol_mcp.server.process_messages import (
    Failed,
    Frames,
    Returned,
    Standby,
    frame,
    to_worker,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["answer", "inside_worker", "load", "resolve", "serve", "use_main", "watch"]

# Not "__main__", or the script would start the server again; the name is the one that
# multiprocessing gives to the same thing, which user code may already know.
_MAIN_ALIAS: Final = "__mp_main__"
_READ_BYTES: Final = 64 * 1024
# A call's arguments came over the wire, where a message has at most a few MiB: never the limit.
_MAX_CALL_BYTES: Final = 1 << 30
_MAX_TRACEBACK_CHARACTERS: Final = 32 * 1024
# Linux says "nothing more will come" in a flag of its own; elsewhere end of file looks like input.
_AT_END_EVENTS: Final[int] = getattr(select, "POLLRDHUP", select.POLLIN)
_GONE_EVENTS: Final[int] = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR

_functions: dict[str, Callable[..., object]] = {}
_main: tuple[str | None, str | None] | None = None


def inside_worker() -> bool:
    """Say whether this process is a forkserver or a worker, where no server may be started."""
    return _main is not None


def use_main(main_name: str | None, main_path: str | None) -> None:
    """Become a place where "__main__" means the server's script, not this interpreter's."""
    global _main  # a process is a worker or not, once and for all: this is a fact of the process
    _main = (main_name, main_path)


def load(module: str) -> types.ModuleType:
    """Import a module by name; "__main__" is the server's script, under another name.

    Raises ConfigurationError for a "__main__" without a file, and whatever the import raises.
    """
    if module != "__main__" or _main is None:
        return importlib.import_module(module)
    main_name, main_path = _main
    if main_name is not None:
        return importlib.import_module(main_name)
    if main_path is None:
        raise ConfigurationError("a function typed into an interpreter cannot run in a process")
    if _MAIN_ALIAS not in sys.modules:
        _import_script(main_path)
    return sys.modules[_MAIN_ALIAS]


def resolve(target: str) -> Callable[..., object]:
    """Find the function "module:qualname", also where a decorator put something else in its place.

    What is not a plain function or method is followed through `__wrapped__`, `function` and
    `callback`; what leads nowhere is taken as it is when it can be called. Raises
    ConfigurationError when there is nothing to call, and whatever the import raises.
    """
    found = _functions.get(target)
    if found is None:
        found = _functions[target] = _find(target)
    return found


def answer(payload: bytes, *, max_result_bytes: int) -> bytes:
    """Run one call and return the frame that answers it: Returned or Failed.

    Raises SystemExit when the function did: it asked for the end of its process. Every other
    exception becomes a Failed.
    """
    call = to_worker.decode(payload)
    try:
        value = resolve(call.target)(*call.positional, **call.keywords)
        if isinstance(value, Awaitable):
            value = _await(value)
    except SystemExit:
        raise
    except BaseException as error:  # the boundary: a user's function may raise anything
        return _failure(error)
    try:
        framed = frame(Returned(value))
    except (
        Exception
    ) as error:  # msgspec names the type; surrogates and depth have errors of their own
        reason = f"what {call.target} returned cannot be sent: {type(error).__name__}: {error}"
        return frame(Failed("UnencodableResult", None, _clean(reason)))
    if len(framed) > max_result_bytes:
        reason = f"{call.target} returned {len(framed)} bytes; at most {max_result_bytes} may be"
        return frame(Failed("ResultTooLarge", None, reason))
    return framed


def serve(stream: socket.socket, *, max_result_bytes: int) -> NoReturn:
    """Answer calls from `stream` until it ends; then end the process. Never returns, never raises.

    The process ends without atexit hooks: those belong to the forkserver it is a copy of.
    """
    status = 1
    try:
        status = _serve(stream, max_result_bytes)
    except SystemExit as error:
        status = _exit_status(error)
    except OSError:
        pass  # the server is gone
    except Exception:
        sys.excepthook(*sys.exc_info())
    finally:
        _flush()
        os._exit(status)


def watch(stream: socket.socket, *, stop: int = -1) -> None:
    """Wait, in a thread, until the peer of `stream` is gone; then kill the whole process group.

    Returns when the descriptor `stop` becomes readable.
    """
    poller = select.poll()
    poller.register(stream, _AT_END_EVENTS)
    if stop >= 0:
        poller.register(stop, select.POLLIN)
    while True:
        for descriptor, events in poller.poll():
            if descriptor == stop:
                return
            # First the flags: unread input must not hide the end behind it.
            if events & _GONE_EVENTS or _is_at_end(stream):
                os.killpg(0, signal.SIGKILL)
        time.sleep(0.05)  # only where input wakes us too: the main thread is about to read it


def _is_at_end(stream: socket.socket) -> bool:
    try:
        return not stream.recv(1, socket.MSG_PEEK)
    except ConnectionError:
        return True


def _serve(stream: socket.socket, max_result_bytes: int) -> int:
    own = os.getpid()
    frames = Frames(_MAX_CALL_BYTES)
    stream.setblocking(True)
    stream.sendall(frame(Standby(own)))
    while chunk := stream.recv(_READ_BYTES):
        for payload in frames.feed(chunk):
            framed = answer(payload, max_result_bytes=max_result_bytes)
            if os.getpid() != own:
                return 0  # the function forked and its child came back here: not our answer
            _flush()
            stream.sendall(framed)
    return 0


def _find(target: str) -> Callable[..., object]:
    module, _, qualname = target.partition(":")
    found: object = load(module)
    for name in qualname.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            raise ConfigurationError(
                f"{target} does not exist: a process runs functions of a module's top level only"
            ) from None
    found = _undecorated(found)
    if not callable(found):
        raise ConfigurationError(f"{target} is not a function")
    return found


_PLAIN: Final = (types.FunctionType, types.BuiltinFunctionType, types.MethodType)


def _undecorated(found: object) -> object:
    seen: set[int] = set()
    while not isinstance(found, _PLAIN) and id(found) not in seen:
        seen.add(id(found))
        for attribute in ("__wrapped__", "function", "callback"):
            inner = getattr(found, attribute, None)
            if callable(inner):
                found = inner
                break
    return found


def _await(value: Awaitable[object]) -> object:
    import asyncio

    async def wait() -> object:
        return await value

    return asyncio.run(wait())


def _import_script(path: str) -> None:
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    module = types.ModuleType(_MAIN_ALIAS)
    module.__file__ = path
    # Before it runs: dataclasses and type hints look their module up by name while it does.
    sys.modules[_MAIN_ALIAS] = module
    try:
        exec(code, module.__dict__)
    except BaseException:
        del sys.modules[_MAIN_ALIAS]
        raise
    sys.modules["__main__"] = module


def _failure(error: BaseException) -> bytes:
    import traceback

    inner = error.__traceback__.tb_next if error.__traceback__ is not None else None
    try:
        text = "".join(traceback.format_exception(type(error), error, inner))
        spoken = str(error) if isinstance(error, ToolError) else None
    except Exception:  # an exception whose own methods raise
        text, spoken = "its traceback cannot be shown", None
    return frame(
        Failed(
            _clean(type(error).__name__),
            None if spoken is None else _clean(spoken),
            _clean(text[-_MAX_TRACEBACK_CHARACTERS:]),
        )
    )


def _clean(text: str) -> str:
    """Make lone surrogates visible: they have no encoding."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _exit_status(error: SystemExit) -> int:
    """As the interpreter does it: None is success, a number itself, anything else is printed."""
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF
    os.write(2, f"{error.code}\n".encode("utf-8", "backslashreplace"))
    return 1


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # user code may have put anything there, or None
            continue
