"""K13: from start to exit nothing but messages is on stdout.

A print in a tool, a banner at import, or a child that inherits the descriptor broke the stream,
and clients hung up.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.cases.dialects import BOTH_ERAS, STDIO, Dialect, case, result_of, text_of
from tests.cases.peers import FIXTURE, Peer, StdioPeer


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
def test_stray_output_goes_to_stderr(era: Dialect) -> None:
    """BC-039. MCP basic/transports stdio: nothing that is no message; the peer parses each line."""

    async def scenario() -> None:
        peer = await StdioPeer.start(environment={"FIXTURE_BANNER": "1"})
        try:
            await era.greet(peer)
            for id in range(3):
                assert text_of(await peer.request(era.call(id, "noisy"))) == "quiet"
            assert "tools" in result_of(await peer.request(era.request(3, "tools/list")))
            assert await peer.finish() == 0
            for noise in ("BANNER", "NOISE", "RAW NOISE", "CHILD", "NO NEWLINE"):
                assert noise in peer.stderr()
                assert noise.encode() not in peer.raw
        finally:
            await peer.kill()

    asyncio.run(scenario())


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
def test_what_an_import_prints_does_not_reach_the_client(era: Dialect) -> None:
    """BC-039. `raxol-mcp serve` keeps the descriptors before it imports anything of the user's."""
    command = ["-c", "from raxol_mcp.cli import main; main()", "serve", str(FIXTURE)]
    environment = {"FIXTURE_BANNER": "1", "PYTHONUNBUFFERED": "1"}

    async def scenario() -> None:
        peer = await StdioPeer.start(command=command, environment=environment)
        try:
            await era.greet(peer)
            assert text_of(await peer.request(era.call(1, "noisy"))) == "quiet"
            assert await peer.finish() == 0, peer.stderr()
            assert "BANNER" in peer.stderr()
        finally:
            await peer.kill()

    asyncio.run(scenario())


@case(wires=[STDIO])
async def test_a_child_reads_nothing_of_the_clients(peer: Peer, era: Dialect) -> None:
    """BC-039, the kind: stdin is not inherited either, so no child takes a message away."""
    await era.greet(peer)
    await peer.send(
        era.call(1, "spawn", {"argv": ["sh", "-c", "cat; echo read nothing"]}),
        *(era.call(id, "echo", {"text": "x" * 1000}) for id in range(2, 10)),
    )
    assert text_of(await peer.answer(1)) == "read nothing\n"
    for id in range(2, 10):
        assert text_of(await peer.answer(id)) == "x" * 1000


@case(wires=[STDIO])
async def test_noise_in_the_middle_of_answers_stays_out_of_them(peer: Peer, era: Dialect) -> None:
    """BC-039, the kind, while other calls are answered."""
    await era.greet(peer)
    for round in range(3):
        await peer.send(
            *(era.call(f"n{round}.{id}", "noisy") for id in range(4)),
            *(era.call(f"b{round}.{id}", "big", {"bytes": 100_000}) for id in range(4)),
        )
        for id in range(4):
            assert text_of(await peer.answer(f"n{round}.{id}")) == "quiet"
            assert len(text_of(await peer.answer(f"b{round}.{id}"))) == 100_000
