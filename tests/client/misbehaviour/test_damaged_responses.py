"""HTTP responses with bytes that are others, too many or too few: each costs one call at most.

Seeded, over real sockets: what an HTTP library makes of them is part of what is tried.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import Final

import pytest

from tests.client.misbehaviour.attempts import Error, Says, attempt, echo
from tests.client.peers.clients import http_client
from tests.client.peers.script import on, script, wire

BODY: Final = b'{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"ok"}]}}'
OK: Final = b"HTTP/1.1 200 OK\r\nContent-Type: "
RESPONSES: Final = [
    OK + b"application/json\r\n\r\n" + BODY,
    OK + b"text/event-stream\r\n\r\nid: 1\nretry: 1\ndata: {}\n\ndata: " + BODY + b"\n\n",
    OK
    + b"text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n60\r\nevent: message\r\ndata: "
    + BODY
    + b"\r\n\r\n\r\n0\r\n\r\n",
    b"HTTP/1.1 503 No\r\nRetry-After: 1\r\nContent-Length: 2\r\n\r\nno",
]
# What gets in between.
PIECES: Final = [
    *(b"\r\n", b"\n", b"\0", b"\xff", b"A" * 5000, b"Content-Length: 5\r\n", b"Location: x\r\n"),
    *(b"Transfer-Encoding: chunked\r\n", b"Content-Encoding: gzip\r\n"),
]
NUMBER: Final = 200


def damaged(random: Random) -> bytes:
    """Damage a response in one to four places."""
    data = bytearray(random.choice(RESPONSES))
    for _ in range(random.randint(1, 4)):
        at = random.randint(0, len(data))
        match random.randrange(4):
            case 0:
                data[at : at + 1] = random.randbytes(1)
            case 1:
                del data[at : at + random.randint(1, 20)]
            case 2:
                data[at:at] = random.choice(PIECES)
            case _:
                del data[at + random.randint(0, len(data)) :]
    return bytes(data)


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["legacy", "modern"])
@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_response_costs_one_call_at_most(seed: int, preset: str) -> None:
    """ours: it fails with a reason, or is understood; and the next call works."""
    random = Random(seed)
    rules = [
        on("tools/call odd", wire(damaged(random), chunk=random.choice([0, 0, 1, 7])), times=1)
        for _ in range(NUMBER)
    ]

    async def tries() -> None:
        async with http_client(script(preset, *rules)) as (client, peer):
            for _ in range(NUMBER):
                outcome = await attempt(client.call_tool("odd"))
                if isinstance(outcome, Error):
                    assert outcome.name == "RequestFailed", outcome
                # The next call is not to be sent on a connection that is about to be closed.
                await peer.ended(peer.about("tools/call")[-1].connection)
                assert await attempt(echo(client, "next")) == Says("next")

    asyncio.run(tries())
