"""How our client is put in front of a server that others wrote, and what is left afterwards."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import subprocess
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest

from raxol_mcp import (
    Accept,
    CallResult,
    Cancel,
    Client,
    ConnectFailed,
    ConnectionLost,
    Decline,
    ElicitRequest,
    LogMessage,
    NotReady,
    Progress,
    RequestFailed,
    SamplingRequest,
    SessionLost,
)
from raxol_mcp.client.opening import Tables

# Bounds a scenario, and the start of a server, in seconds; none should come near it.
BOUND: Final = 60.0

Answer = Accept | Decline | Cancel
Spec = Mapping[str, object]


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    """Run a scenario within the bound."""

    async def bounded() -> None:
        async with asyncio.timeout(BOUND):
            await scenario()

    asyncio.run(bounded())


class Heard:
    """What a client was told and asked besides answers, and how it answers: one after the other."""

    def __init__(self, *answers: Answer) -> None:
        self.mark = uuid4().hex  # in the environment of a process that the client starts
        self.answers = list(answers)
        self.asked: list[ElicitRequest] = []
        self.sampled: list[SamplingRequest] = []
        self.logs: list[LogMessage] = []
        self.progress: list[Progress] = []
        self._more = asyncio.Event()

    def form(self, request: ElicitRequest) -> Answer:
        """Answer a question; nobody is there for one more than there are answers."""
        self.asked.append(request)
        return self.answers.pop(0) if self.answers else Cancel()

    def sample(self, request: SamplingRequest) -> dict[str, object]:
        """Be a model."""
        self.sampled.append(request)
        return {"role": "assistant", "content": {"type": "text", "text": "4"}, "model": "none"}

    def log(self, message: LogMessage) -> None:
        """Note a log message."""
        self.logs.append(message)
        self._more.set()

    def step(self, progress: Progress) -> None:
        """Note a step of a call."""
        self.progress.append(progress)
        self._more.set()

    async def until(self, happened: Callable[[], object]) -> None:
        """Wait until what is logged or reported has made something true."""
        while not happened():
            self._more.clear()
            await self._more.wait()


@asynccontextmanager
async def connected(
    spec: Spec, *answers: Answer, **handlers: Any
) -> AsyncIterator[tuple[Client, Heard]]:
    """Connect a client that can do everything, and look afterwards for what is left of it."""
    heard = Heard(*answers)
    variables = {**_variables(spec), "FOREIGN_MARK": heard.mark}
    marked = {"env": variables} if "command" in spec else {}
    tasks, descriptors = asyncio.all_tasks(), _descriptors()
    client = Client(
        {"name": "foreign", "call_timeout": BOUND, **spec, **marked},
        elicitation=heard.form,
        sampling=heard.sample,
        logging=heard.log,
        # With tables of its own: what another test found out about the server is forgotten.
        **{"roots": [], "tables": Tables(), **handlers},
    )
    async with client:
        yield client, heard
    assert client.status().status == "stopped"
    assert asyncio.all_tasks() == tasks
    assert processes_with(heard.mark) == []
    assert _descriptors() <= descriptors


def _variables(spec: Spec) -> dict[str, str]:
    variables = spec.get("env")
    return dict(variables) if isinstance(variables, Mapping) else {}


def _descriptors() -> int:
    folder = Path("/proc/self/fd")
    return len(os.listdir(folder)) if folder.exists() else 0


def processes_with(mark: str) -> list[int]:
    """List the processes that have a mark in their environment, children of children too."""
    found = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in environment.read_bytes():
                found.append(int(environment.parent.name))
        except OSError:  # it has ended, or is somebody else's
            continue
    return found


@contextmanager
def serving(
    command: Sequence[str | Path], says: str, *, env: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Run a server over HTTP until the end of the block.

    `says` is a regular expression for what it prints when it serves; yields its one group.
    """
    process = subprocess.Popen(
        list(map(str, command)),
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    impatient = threading.Timer(BOUND, process.kill)
    impatient.start()
    rest = threading.Thread(target=process.stdout.read)
    said = ""
    try:
        for line in process.stdout:
            said += line
            serves = re.search(says, line)
            if serves is not None:
                break
        else:
            pytest.fail(f"the server did not start:\n{said}")
        impatient.cancel()
        # What it goes on to say is thrown away: a full pipe would stop it.
        rest.start()
        yield serves[1]
    finally:
        impatient.cancel()
        process.terminate()
        try:
            process.wait(BOUND)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if rest.ident is not None:
            rest.join()
        process.stdout.close()


def free_port() -> int:
    """Find a port that nobody listens on, for a server that does not say which one it got."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


async def back(client: Client, name: str, arguments: Mapping[str, object]) -> CallResult:
    """Call until the server is there again; every call that fails says so, and at once."""
    while True:
        try:
            return await client.call_tool(name, arguments)
        except (ConnectFailed, ConnectionLost, NotReady, RequestFailed, SessionLost):
            with suppress(ConnectFailed):
                await client.await_ready(BOUND)


def text(result: CallResult) -> str:
    """Return what a tool said, which must not be an error."""
    assert not result.is_error, result
    return result.text


def kinds(result: CallResult) -> list[object]:
    """List the types of the blocks of a result."""
    assert not result.is_error, result
    return [block["type"] for block in result.content]
