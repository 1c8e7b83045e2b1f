"""K19: a call is sent at most once and ends exactly once.

On a dropped connection the client replayed `tools/call`. The first attempt had already been
carried out; only its answer was lost.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from random import Random
from typing import Final

import pytest

from raxol_mcp.client.app import Client
from raxol_mcp.errors import ConnectionLost, RaxolError, RequestFailed
from raxol_mcp.testing.virtual_loop import run_virtual
from tests.client.misbehaviour.attempts import Error, Says, attempt, echo
from tests.client.peers.clients import http_client, memory_client, pipe_client
from tests.client.peers.held import BOUND
from tests.client.peers.memory_link import MemoryDialer
from tests.client.peers.script import (
    ECHO,
    Rule,
    Step,
    as_usual,
    drop,
    error,
    http,
    kill,
    leave,
    on,
    raw,
    script,
    silent,
    sse,
    wait,
)

# What may come between a call that was carried out and its answer.
LOST: Final[dict[str, list[Step]]] = {
    "before any byte": [drop("close")],
    "reset before any byte": [drop("reset")],
    "after the headers": [drop("headers")],
    "in the middle of the body": [drop("body")],
    "in the middle of a stream": [sse("data: {"), drop("close")],
    "502": [http(502)],
    "503": [http(503, Retry_After="0")],
    "504": [http(504)],
    "429": [http(429, Retry_After="0")],
    "408": [http(408)],
    "401": [http(401)],
    "404 for the session": [http(404)],
    "an error": [error(-32603)],
    "the answer of somebody else": [raw('{"jsonrpc":"2.0","id":-1,"result":{}}')],
    "late": [wait(0.6), as_usual()],
    "never": [silent()],
}
# What may have been carried out is said to be so.
UNKNOWN: Final = {
    *("before any byte", "reset before any byte", "after the headers"),
    *("in the middle of the body", "in the middle of a stream", "502", "503", "504", "408"),
    "the answer of somebody else",
}
HINTED: Final = {
    **ECHO,
    "name": "create",
    "annotations": {"readOnlyHint": True, "idempotentHint": True},
}


@pytest.mark.parametrize("preset", ["legacy", "modern"])
@pytest.mark.parametrize("name", LOST)
def test_a_call_whose_answer_is_lost_is_not_made_again(name: str, preset: str) -> None:
    """BC-179, over HTTP: whatever the server says of the tool, it is carried out once."""

    async def tries() -> None:
        data = script(preset, on("tools/call create", *LOST[name]), tools=[HINTED])
        spec = {"call_timeout": 0.5} if name in ("late", "never") else {}
        async with http_client(data, spec=spec) as (client, peer):
            await client.list_tools(timeout=BOUND)
            with pytest.raises(RaxolError) as caught:
                await client.call_tool("create", {"x": 1})
            if isinstance(caught.value, RequestFailed):
                assert caught.value.outcome_unknown is (name in UNKNOWN)
            await client.await_ready()
            assert await attempt(echo(client, timeout=BOUND)) == Says("x")
            assert len([each for each in peer.about("tools/call") if b"create" in each.body]) == 1

    asyncio.run(tries())


@pytest.mark.parametrize("step", [leave(0), leave(1), kill()], ids=str)
def test_a_call_that_died_with_its_server_is_not_made_again(step: Step, tmp_path: Path) -> None:
    """BC-179, the variant: a server on a pipe that was killed after it had done it."""

    async def tries() -> None:
        data = script("legacy", on("tools/call create", step))
        async with pipe_client(data, tmp_path) as (client, processes):
            with pytest.raises(ConnectionLost) as caught:
                await client.call_tool("create", {"x": 1})
            assert caught.value.outcome_unknown
            await client.await_ready()
            assert await attempt(echo(client)) == Says("x")
            lines = [life.read for life in processes.lives]
            assert b"".join(lines).count(b'"create"') == 1

    asyncio.run(tries())


# -- schedules -------------------------------------------------------------------------------------

ENDS: Final[dict[str, list[Step]]] = {
    "answers": [as_usual()],
    "answers twice": [as_usual(), as_usual()],
    "fails": [error(-32603)],
    "is silent": [silent()],
    "is lost": [leave(1)],
    "forgets": [http(404)],
    "breaks": [drop("close")],
}


async def schedule(random: Random, client: Client, dialer: MemoryDialer) -> Counter[str]:
    """Make calls that end, are given up and are cancelled at about the same moment."""
    ended: Counter[str] = Counter()

    async def calls(n: int) -> None:
        timeout = random.choice([0.001, 0.004, 0.008, 5.0])
        outcome = await attempt(
            client.call_tool("echo", {"text": str(n)}, timeout=timeout), bound=100
        )
        ended[str(n)] += 1
        # What is somebody else's must not come out of it.
        assert isinstance(outcome, Error) or outcome == Says(str(n))

    tasks = [asyncio.ensure_future(calls(n)) for n in range(6)]
    for task in tasks:
        if random.random() < 0.3:
            loop = asyncio.get_running_loop()
            loop.call_later(random.choice([0.0, 0.001, 0.004, 0.01]), task.cancel)
    await asyncio.wait(tasks)
    assert all(number == 1 for number in ended.values())
    assert all(task.cancelled() or task.exception() is None for task in tasks)
    assert (client.status().pending, client.status().queued) == (0, 0)
    return ended


@pytest.mark.parametrize("kind", ["memory", "http"])
@pytest.mark.parametrize("preset", ["legacy", "modern"])
def test_every_schedule_ends_every_call_once(preset: str, kind: str) -> None:
    """The kind: 500 seeded schedules of answer, failure, timeout, cancel and loss."""
    random = Random(19)

    def ends() -> list[Rule]:
        names = [name for name in ENDS if kind == "http" or name not in ("forgets", "breaks")]
        waits = [0.0, 0.001, 0.004, 0.008]
        return [
            on(
                "tools/call",
                wait(random.choice(waits)),
                *ENDS[random.choice(names)],
                times=1,
                life=1,
            )
            for _ in range(6)
        ]

    async def tries() -> None:
        for _ in range(125):
            dialer = MemoryDialer(script(preset, *ends()), kind=kind)
            async with memory_client(dialer, spec={"pool_size": 3}) as (client, _):
                await schedule(random, client, dialer)
                sent = Counter(
                    each["params"]["arguments"]["text"]
                    for each in dialer.received
                    if each.get("method") == "tools/call"
                )
                assert all(number == 1 for number in sent.values())
                await client.await_ready(timeout=None)
                for _ in range(7):  # what is left of the rules
                    await attempt(echo(client, "next"), bound=100)
                    await client.await_ready(timeout=None)
                assert await attempt(echo(client, "next"), bound=100) == Says("next")

    run_virtual(tries)
