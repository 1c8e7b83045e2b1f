"""K13: what else a server prints on its stdout is dropped, counted and shown to nobody.

A banner, a debug print or half a line made the client's reader raise; every call died, although
the next line was fine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from tests.client.misbehaviour.attempts import Says, attempt, echo
from tests.client.peers.clients import pipe_client
from tests.client.peers.script import as_usual, on, raw, script

BANNER = 'Starting server v1.2 on stdio…\n\n{not json}\n[1,2]\n"x"\n'


def test_stray_lines_cost_nothing_and_are_counted(tmp_path: Path) -> None:
    """BC-091. MCP basic/transports §stdio: only the server is at fault."""
    told: list[tuple[str, Mapping[str, object]]] = []

    def observe(event: str, fields: Mapping[str, object]) -> None:
        told.append((event, fields))

    async def tries() -> None:
        noise = [raw("DEBUG\x1b[2J got call\n"), raw("A" * 100_000, "\n")]
        data = script("legacy", on("start", raw(BANNER)), on("tools/call", *noise, as_usual()))
        async with pipe_client(data, tmp_path, observe=observe) as (client, _):
            assert await attempt(echo(client)) == Says("x")

    asyncio.run(tries())
    stray = [str(fields.get("text")) for event, fields in told if event == "stray_output"]
    assert [text[:8] for text in stray if text] == [
        "Starting",
        "{not jso",
        '"x"',
        "DEBUG\\x1",
        "AAAAAAAA",
    ]
    assert all(len(text) < 1_000 and text.isprintable() for text in stray)
    # What is JSON and no message of this revision is a message out of place.
    assert [event for event, _ in told].count("stray_message") == 1
