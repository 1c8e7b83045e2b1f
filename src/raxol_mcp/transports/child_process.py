"""A server's program started: its command, its environment, its three pipes, or why not.

Reads and writes nothing, and keeps nothing of what fails.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from raxol_mcp.errors import Reason
from raxol_mcp.transports.child_environment import child_environment
from raxol_mcp.transports.child_errors import shown
from raxol_mcp.transports.link import LinkFailed
from raxol_mcp.transports.process_tree import find_command, spawn

__all__ = ["Child", "Program", "start"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What to start. Its `repr` shows no argument and no value of the environment."""

    command: str
    args: tuple[str, ...] = field(repr=False)
    env: Mapping[str, str] = field(repr=False)
    cwd: str | None
    inherit_env: bool
    drop_env: frozenset[str]


@dataclass(slots=True)
class Child:
    """A program that runs, and our ends of its pipes, which never block."""

    process: subprocess.Popen[bytes]
    stdin_fd: int
    stdout_fd: int
    stderr_fd: int


def start(program: Program, parent: Mapping[str, str]) -> Child:
    """Start a program. `parent` is the environment that it may inherit. Raises `LinkFailed`.

    The command is looked up on the PATH that the program itself will see.
    """
    if sys.platform == "win32":
        text = "servers over stdio cannot be started on Windows yet: use a url"
        raise LinkFailed(Reason("spawn_failed", "not_supported", text=text))
    environment = child_environment(
        parent, program.env, inherit=program.inherit_env, drop=program.drop_env
    )
    fds: list[int] = []
    try:
        for _ in range(3):
            fds.extend(os.pipe())
        stdin, our_stdin, our_stdout, stdout, our_stderr, stderr = fds
        process = spawn(
            [program.command, *program.args],
            executable=find_command(program.command, environment.get("PATH", os.defpath)),
            environment=environment,
            cwd=program.cwd,
            fds=(stdin, stdout, stderr),
        )
    except (OSError, ValueError) as error:
        for fd in fds:
            os.close(fd)
        raise LinkFailed(_reason(error, program)) from None
    for fd in (stdin, stdout, stderr):
        os.close(fd)
    for fd in (our_stdin, our_stdout, our_stderr):
        os.set_blocking(fd, False)
    return Child(process, our_stdin, our_stdout, our_stderr)


def _reason(error: OSError | ValueError, program: Program) -> Reason:
    """Say why nothing could be started, without an argument or a value of the environment."""
    if not isinstance(error, OSError):
        text = "an argument or the environment holds what no program can be given, such as a NUL"
        return Reason("spawn_failed", "einval", text=text)
    code = errno.errorcode.get(error.errno or 0, "unknown").lower()
    said = error.strerror or "unknown"
    command = shown(program.command, limit=200)
    if program.cwd is not None and error.filename == program.cwd:
        text = f"the working directory {shown(program.cwd, limit=200)} cannot be used: {said}"
    elif error.errno == errno.ENOENT and error.filename == program.command and "/" not in command:
        # Of one that is there, and whose interpreter is not, the whole path is named.
        text = f"{command or 'an empty command'} is not on the PATH"
    else:
        text = f"{command} cannot be started: {said}"
    return Reason("spawn_failed", code, text=text)
