"""How a client is tried on a misbehaviour, and what has to be true afterwards.

Whatever the peer does: an attempt ends by itself, within its own time, as the table says. Then
the client is either of use at once, or closed, knows why, and comes back by itself. When it has
been stopped nothing is left: no task, no process, no descriptor, no entry.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from raxol_mcp.client.app import Client
from raxol_mcp.client.results import CallResult
from raxol_mcp.errors import RaxolError, RemoteProtocolError
from tests.client.peers.held import BOUND, HASTY
from tests.client.peers.script import Message, Rule, Step, on, script

__all__ = [
    "After",
    "Error",
    "Misbehaviour",
    "Outcome",
    "Says",
    "Trial",
    "attempt",
    "comes_back",
    "echo",
    "ended",
    "hurried",
    "hurried_for",
    "list_tools",
    "on_call",
    "try_call",
    "try_to_connect",
]


# -- what comes of an attempt ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Says:
    """It succeeded; `said` is the text of the result, or what the act returned."""

    said: object


@dataclass(frozen=True, slots=True)
class Error:
    """It failed: the name of the exception, and what it knows, `reason.path` or the code."""

    name: str
    path: tuple[int | str, ...] = ()


Outcome = Says | Error
Act = Callable[[Client], Awaitable[object]]


async def echo(client: Client, text: str = "x", timeout: float | None = None) -> object:  # noqa: ASYNC109  # the client's own
    """Call the tool that everybody has."""
    return await client.call_tool("echo", {"text": text}, timeout=timeout)


async def list_tools(client: Client) -> object:
    """Give the names of the tools."""
    return [tool.name for tool in await client.list_tools()]


async def attempt(act: Awaitable[object], *, bound: float = BOUND) -> Outcome:
    """Do it and say what came of it. Anything but a result or an error of ours is a failure."""
    try:
        async with asyncio.timeout(bound):
            result = await act
    except RemoteProtocolError as error:
        status = () if error.status is None else (error.status,)
        return Error(type(error).__name__, (error.code, *status))
    except RaxolError as error:
        reason = error.reason
        return Error(type(error).__name__, (error.tag,) if reason is None else reason.path)
    return Says(result.text if isinstance(result, CallResult) else result)


class After(Enum):
    """How things stand after the attempt."""

    WORKS = "the next call works"
    RETURNS = "closed, with the reason, until it comes back by itself"
    USELESS = "ready, but the peer never answers again"


@dataclass(frozen=True, slots=True)
class Misbehaviour:
    """One way to misbehave, and what has to come of it.

    `rules` are the peer's. `act` is what is tried, `expected` what comes of it. `options` are the
    script's, `spec` and `handlers` the client's, where they are not the usual ones. `over_http` is
    what comes of it where each request has a response of its own, if that is something else.
    `check` is asked at last, with every message that the peer was sent.
    """

    name: str
    rules: tuple[Rule, ...]
    expected: Outcome
    after: After = After.WORKS
    act: Act = echo
    preset: str = "legacy"
    options: Message = field(default_factory=dict)
    spec: Message = field(default_factory=dict)
    handlers: Message = field(default_factory=dict)
    over_http: Outcome | None = None
    check: Callable[[list[Message]], bool] = lambda _received: True

    def __str__(self) -> str:
        return self.name if self.preset == "legacy" else f"{self.name}, {self.preset}"

    @property
    def script(self) -> Message:
        """What its peer follows."""
        return script(self.preset, *self.rules, **self.options)


def on_call(
    name: str, *steps: Step, expected: Outcome, after: After = After.WORKS, **more: Any
) -> Misbehaviour:
    """Build a misbehaviour at the first call of a tool."""
    return Misbehaviour(name, (on("tools/call", *steps, times=1, life=1),), expected, after, **more)


def ended(*path: int | str) -> Outcome:
    """Say what a call gets whose connection is lost for a reason."""
    return Error("ConnectionLost", path)


# -- trying ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Trial:
    """One client on one peer.

    `received` gives what the peer was sent until now. `within` is how long an attempt may take,
    `bound` when whoever waits gives up, in seconds of the loop.
    """

    client: Client
    received: Callable[[], list[Message]]
    within: float = BOUND
    bound: float = BOUND

    async def attempt(self, act: Awaitable[object]) -> Outcome:
        """Do it, within its time, and say what came of it."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        outcome = await attempt(act, bound=self.bound)
        assert loop.time() - began <= self.within, f"{loop.time() - began} s: {outcome}"
        return outcome


def hurried(spec: Message, path: tuple[int | str, ...]) -> Message:
    """Write a spec whose timers end soon, if one of them has to end for `path` to come true."""
    return {**HASTY, **spec} if "timeout" in path else spec


def hurried_for(case: Misbehaviour, expected: Outcome | None = None) -> Message:
    """Do so for what is expected of a case."""
    expected = expected or case.expected
    return hurried(case.spec, expected.path if isinstance(expected, Error) else ())


async def try_call(trial: Trial, case: Misbehaviour, expected: Outcome | None = None) -> None:
    """Wait for a peer that behaves until the attempt, and try."""
    client = trial.client
    expected = expected or case.expected
    await client.await_ready(timeout=trial.bound)
    outcome = await trial.attempt(case.act(client))
    assert outcome == expected, outcome
    if case.after is After.RETURNS:
        assert isinstance(expected, Error)
        await comes_back(trial, expected.path)
    status = client.status()
    assert (status.status, status.queued, status.pending) == ("ready", 0, 0), status
    if case.after is not After.USELESS:
        outcome = await trial.attempt(echo(client, "next", trial.within))
        assert outcome == Says("next"), outcome
        assert case.check(trial.received()), trial.received()


async def comes_back(trial: Trial, path: tuple[int | str, ...]) -> None:
    """Find the client closed for a reason, a retry due, and wait until it is back by itself."""
    client = trial.client
    status = client.status()
    assert status.status == "closed"
    assert status.reason is not None
    assert status.reason.path == path, status.reason
    assert status.retry_in is not None
    assert (status.pending, status.queued) == (0, 0)
    assert await trial.attempt(echo(client)) == Error("ConnectFailed", path)
    await client.await_ready(timeout=trial.bound)


async def try_to_connect(
    trial: Trial, path: tuple[int | str, ...], *, final: bool = False, returns: bool = False
) -> None:
    """Find out why there is no connection; with `returns`, that there is one later.

    The spec has `fail_fast`. A `final` failure is not retried.
    """
    client = trial.client
    outcome = await attempt(client.await_ready(timeout=trial.bound), bound=trial.bound)
    assert outcome == Error("ConnectFailed", path), outcome
    status = client.status()
    assert (status.status, status.pending, status.queued) == ("closed", 0, 0), status
    assert status.reason is not None
    assert status.reason.path == path, status.reason
    assert (status.retry_in is None) is final
    assert await trial.attempt(echo(client)) == Error("ConnectFailed", path)
    if returns:
        await client.await_ready(timeout=trial.bound, fail_fast=False)
        assert await trial.attempt(echo(client, "next")) == Says("next")
