"""Every misbehaviour of messages, without a wire and on virtual time: timeouts are exact.

MCP basic §Messages, and what fault kinds a client meets: each call ends once, within its time.
"""

from __future__ import annotations

import asyncio
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_mcp.client.app import Client
from raxol_mcp.testing.virtual_loop import run_virtual
from tests.client.misbehaviour.attempts import (
    Error,
    Misbehaviour,
    Outcome,
    Says,
    Trial,
    attempt,
    echo,
    try_call,
    try_to_connect,
)
from tests.client.misbehaviour.lists import LISTS
from tests.client.misbehaviour.messages import IN_BOTH_ERAS
from tests.client.misbehaviour.pipes import CONNECTS, Connect
from tests.client.misbehaviour.questions import MODERN, UNASKED, modern
from tests.client.peers.clients import memory_client
from tests.client.peers.memory_link import MemoryDialer
from tests.client.peers.script import as_usual, on, raw, script, wait

CALL_TIMEOUT: Final = 30.0


def trial(client: Client, dialer: MemoryDialer) -> Trial:
    """Say how long an attempt may take: exactly as long as a call."""
    return Trial(client, lambda: dialer.received, within=CALL_TIMEOUT, bound=1000.0)


def try_in_memory(case: Misbehaviour, kind: str) -> None:
    async def tries() -> None:
        async with memory_client(case.script, kind=kind, spec=case.spec, ready=False) as made:
            await try_call(trial(*made), case, case.over_http if kind == "http" else None)

    run_virtual(tries)


@pytest.mark.parametrize("kind", ["memory", "http"])
@pytest.mark.parametrize("case", [*IN_BOTH_ERAS, *map(modern, IN_BOTH_ERAS)], ids=str)
def test_a_call_ends_once_and_the_next_one_works(case: Misbehaviour, kind: str) -> None:
    try_in_memory(case, kind)


@pytest.mark.parametrize("kind", ["memory", "http"])
@pytest.mark.parametrize("case", UNASKED, ids=str)
def test_what_a_server_asks_is_answered(case: Misbehaviour, kind: str) -> None:
    """MCP 2025-11-25 client/elicitation, sampling, roots §Capabilities: -32601 without one."""
    try_in_memory(case, kind)


@pytest.mark.parametrize("kind", ["memory", "http"])
@pytest.mark.parametrize("case", MODERN, ids=str)
def test_the_stateless_era_has_its_own(case: Misbehaviour, kind: str) -> None:
    """MCP 2026-07-28 basic §Result responses, basic/patterns/mrtr §Client requirements."""
    try_in_memory(case, kind)


@pytest.mark.parametrize("case", LISTS, ids=str)
def test_a_bad_list_costs_nothing_else(case: Misbehaviour) -> None:
    """MCP server/tools, server/utilities/pagination."""
    try_in_memory(case, "memory")


@pytest.mark.parametrize("case", CONNECTS, ids=str)
def test_a_failure_to_connect_is_known_and_tried_again(case: Connect) -> None:
    """client-2.8.0 §Recovery."""

    async def tries() -> None:
        data = script("legacy", *case.rules, **case.options)
        spec = {"fail_fast": True, **case.spec}
        async with memory_client(data, spec=spec, ready=False) as made:
            await try_to_connect(trial(*made), case.path, returns=case.returns)

    run_virtual(tries)


ANSWER: Final = b'{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"ok"}]}}\n'
# What a call may get whose answer is noise, and the connection lives.
NOISE: Final = {("timeout",), ("invalid_response", "tools/call")}


def after_noise(data: bytes, kind: str) -> None:
    """Answer a call with these bytes; then the next one has to work."""

    async def tries() -> None:
        noise = on("tools/call", raw(data, b"\n"), times=1)
        async with memory_client(script("legacy", noise), kind=kind) as (client, dialer):
            outcome = await trial(client, dialer).attempt(echo(client))
            if isinstance(outcome, Error):
                assert outcome.name in ("TimedOut", "RequestFailed", "RemoteProtocolError")
                assert outcome.name == "RemoteProtocolError" or outcome.path in NOISE
            assert await attempt(echo(client, "next"), bound=1000.0) == Says("next")

    run_virtual(tries)


@given(st.binary(max_size=300), st.sampled_from(["memory", "http"]))
def test_noise_costs_one_call_at_most(data: bytes, kind: str) -> None:
    """The kind of them all: any bytes in place of an answer."""
    after_noise(data, kind)


@given(
    st.integers(0, len(ANSWER) - 1),
    st.binary(max_size=3),
    st.integers(0, 4),
    st.sampled_from(["memory", "http"]),
)
def test_a_damaged_answer_costs_one_call_at_most(
    at: int, damage: bytes, less: int, kind: str
) -> None:
    """The same, of an answer in which some bytes are others, too many or too few."""
    after_noise(ANSWER[:at] + damage + ANSWER[at + less :], kind)


@pytest.mark.parametrize("preset", ["legacy", "modern"])
def test_a_client_can_be_stopped_at_any_moment(preset: str) -> None:
    """ours: whatever is under way, `stop` ends it and leaves nothing."""

    async def tries(turns: int) -> None:
        data = script(preset, on("tools/call", wait(1), as_usual()))
        async with memory_client(data, ready=False) as (client, _):
            using = asyncio.ensure_future(_uses(client))
            for _ in range(turns):
                await asyncio.sleep(0)
            await client.stop()
            outcome = await using
            assert isinstance(outcome, Error)
            assert outcome.name == "NotReady"

    for turns in range(60):
        run_virtual(tries, turns)


async def _uses(client: Client) -> Outcome:
    async def uses() -> object:
        await client.await_ready()
        await client.list_tools()
        return await client.call_tool("echo", {"text": "x"})

    return await attempt(uses())
