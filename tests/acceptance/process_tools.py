"""Tools that run in a process of their own: found there by the name of this module."""

from __future__ import annotations

import os
from dataclasses import dataclass

from raxol_mcp import ToolError


@dataclass
class Doubled:
    """A structured result."""

    value: int
    pid: int


def double(n: int) -> Doubled:
    """Double a number."""
    return Doubled(2 * n, os.getpid())


def hang(fifo: str) -> None:
    """Say that it began, and never end."""
    with open(fifo, "wb", 0) as begun:
        begun.write(str(os.getpid()).encode())
    while True:
        pass


def fail(how: str) -> str:
    """Fail in one of several ways."""
    if how == "speaks":
        raise ToolError("no red left")
    if how == "dies":
        os._exit(3)
    raise ValueError("postgres://admin:hunter2@db")
