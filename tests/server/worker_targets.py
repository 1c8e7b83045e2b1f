"""Functions that run in worker processes for test_processes.py: the well-behaved and the others."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from raxol_mcp.errors import ToolError
from raxol_mcp.server.processes import Processes


@dataclass
class Tool:
    """What a decorator may leave in the place of a function."""

    name: str
    function: Callable[..., object]


def tool(function: Callable[..., object]) -> Tool:
    return Tool(function.__name__, function)


def add(left: int, right: int) -> int:
    return left + right


@tool
def decorated(value: str) -> str:
    return value.upper()


def echo(value: object) -> object:
    return value


def size(value: str) -> int:
    return len(value)


def text(characters: int) -> str:
    return "x" * characters


async def wait_a_moment(value: object) -> object:
    await asyncio.sleep(0)
    return value


def begin(fifo: str) -> int:
    """Say that the function runs. The descriptor stays open until the process is gone."""
    descriptor = os.open(fifo, os.O_WRONLY)
    os.write(descriptor, b"begun")
    return descriptor


def hold(fifo: str) -> int:
    begin(fifo)
    return os.getpid()


def spin(fifo: str) -> None:
    begin(fifo)
    while True:
        pass


def sleep(fifo: str) -> None:
    begin(fifo)
    time.sleep(3600)


def match(fifo: str) -> None:
    """Stay in C code and hold the interpreter's lock: no thread of this process runs."""
    begin(fifo)
    re.match("(a+)+$", "a" * 64 + "b")


def ignore_signals(fifo: str) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    sleep(fifo)


def start_others(fifo: str) -> None:
    """Start a process that starts a process, all of which hold the fifo open."""
    descriptor = begin(fifo)
    command = "sleep 3600 & sleep 3600"
    subprocess.run(["sh", "-c", command], pass_fds=[descriptor], check=False)


def leave_another(fifo: str) -> None:
    """Start a process and crash."""
    descriptor = begin(fifo)
    subprocess.Popen(["sleep", "3600"], pass_fds=[descriptor])
    os._exit(4)


def raise_value_error(secret: str) -> None:
    raise ValueError(secret)


def raise_tool_error(spoken: str) -> None:
    raise ToolError(spoken)


def raise_cut_emoji() -> None:
    raise ToolError("cut \ud83d")


def raise_keyboard_interrupt() -> None:
    raise KeyboardInterrupt


def raise_unprintable() -> None:
    class Unprintable(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    raise Unprintable


def leave(code: object) -> None:
    sys.exit(code)  # type: ignore[arg-type]  # anything may be given, and is printed


def leave_at_once(code: int) -> None:
    os._exit(code)


def kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def returns_object() -> object:
    return object()


def returns_surrogate() -> str:
    return "\ud800"


def returns_itself() -> object:
    loop: list[object] = []
    loop.append(loop)
    return loop


def returns_twice() -> str:
    """Come back in two processes."""
    return "child" if os.fork() == 0 else "parent"


def close_descriptors() -> None:
    os.closerange(3, 256)


def write_anywhere() -> None:
    for descriptor in range(3, 32):
        with contextlib.suppress(OSError):
            os.write(descriptor, b"\xff" * 64)
    time.sleep(3600)


def write_a_wrong_message() -> None:
    for descriptor in range(3, 32):
        with contextlib.suppress(OSError):
            os.write(descriptor, b"\0\0\0\1\xc1")
    time.sleep(3600)


def print_noise() -> None:
    sys.stdout.write("noise")
    os.write(1, b"more noise\n")
    subprocess.run(["echo", "noise of a child"], check=True)


def read_input() -> str:
    return sys.stdin.read()


def pool_in_a_worker() -> None:
    Processes(1)


def write_file(path: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write("it ran")


def signals() -> list[str]:
    """Return the names of the signals whose handler is a function."""
    return [n.name for n in signal.Signals if callable(signal.getsignal(n))]


def descriptors() -> int:
    return len(os.listdir("/dev/fd"))
