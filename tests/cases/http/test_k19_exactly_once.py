"""K19: losing a connection ends a stateless call and no call of a session, once in either case.

Tools ran for minutes after their caller had gone; a short loss of the network killed a long job;
and a session was taken for idle while its call was running.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from random import Random
from typing import Final

import pytest

from tests.cases.dialects import ASKABLE, BOTH_ERAS, LEGACY, MODERN, Dialect, accept, text_of
from tests.cases.fixture_server import Knobs
from tests.cases.http.sockets import head_of, serving
from tests.cases.http_peers import HttpExchange, HttpPeer
from tests.cases.peers import Message
from tests.transports.http.client import Open

LONG: Final[Message] = {"ms": 10_000, "tag": "m"}


@pytest.mark.parametrize("token", [None, 0, "tok"], ids=repr)
def test_a_client_that_leaves_cancels_a_stateless_call(token: object) -> None:
    """BC-075. MCP 2026-07-28 streamable-http §Cancellation: MUST; as JSON and as a stream."""
    with HttpExchange() as exchange:

        async def leaves(peer: HttpPeer) -> None:
            meta = {} if token is None else {"progressToken": token}
            steps = {"n": 100, "delay_ms": 100}
            calls = [MODERN.call(1, "sleep", LONG), MODERN.call(2, "progress", steps, meta=meta)]
            begun = [peer.begin(call) for call in calls]
            await asyncio.sleep(0.3)
            for call in begun:
                call.leave()
                await call.ended()
            await asyncio.sleep(2.0)
            assert exchange.journal == ["start:sleep:m", "cancelled:m"]
            assert exchange.left() == {}

        exchange.run(leaves)


def test_a_client_that_leaves_cancels_nothing_of_a_session() -> None:
    """BC-075. MCP 2025-11-25 basic/transports: no cancellation; the result waits for its reader."""
    with HttpExchange() as exchange:

        async def leaves(peer: HttpPeer) -> None:
            await LEGACY.greet(peer)
            call = peer.begin(LEGACY.call(1, "sleep", LONG))
            event = (await call.event()).id
            await asyncio.sleep(0.3)
            call.leave()
            await call.ended()
            await asyncio.sleep(20.0)
            assert exchange.journal == ["start:sleep:m", "end:sleep:m"]
            for _ in range(2):  # and once more, for whoever lost it on the way
                resumed = peer.listen(event)
                message = await resumed.message()
                assert (message["id"], text_of(message)) == (1, "m")
                await resumed.ended()

        exchange.run(leaves)


def test_a_closed_socket_is_noticed() -> None:
    """BC-075, with a real HTTP server in between, which has to tell it."""

    async def leaves() -> None:
        async with serving() as served:
            for tag in ("one", "two", "three"):
                message = MODERN.call(1, "sleep", {"ms": 60_000, "tag": tag})
                _, writer = await served.connect()
                head = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n" + head_of(message)
                body = json.dumps(message).encode()
                writer.write(head + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
                await served.noted(f"start:sleep:{tag}")
                writer.transport.abort()
                await served.noted(f"cancelled:{tag}")
            reply = await served.ask(
                "POST", "/mcp", b"Host: 127.0.0.1\r\n", MODERN.call(2, "echo", {"text": "alive"})
            )
            assert text_of(reply.json()) == "alive"

    async def bounded() -> None:
        async with asyncio.timeout(20.0):
            await leaves()

    asyncio.run(bounded())


def test_a_session_that_works_is_not_idle() -> None:
    """BC-087. Idle is: no request under way and nobody listening."""
    with HttpExchange(session_timeout=1.0) as exchange:

        async def works(peer: HttpPeer) -> None:
            await LEGACY.greet(peer)
            call = peer.begin(LEGACY.call(1, "sleep", {"ms": 4000, "tag": "long"}))
            (answer,) = [m for m in (await call.ended()).messages() if "result" in m]
            assert text_of(answer) == "long"
            reply = await peer.say(LEGACY.call(2, "echo", {"text": "still"}))
            assert text_of(reply.json()) == "still"
            listening = peer.listen()
            await asyncio.sleep(3.0)
            reply = await peer.say(LEGACY.call(3, "echo", {"text": "open"}))
            assert text_of(reply.json()) == "open", "an open stream is use (docs/limits.md)"
            listening.leave()
            await listening.ended()
            await asyncio.sleep(0.9)
            assert (await peer.say(LEGACY.request(4, "ping"))).status == 200
            await asyncio.sleep(1.1)
            assert (await peer.say(LEGACY.request(5, "ping"))).status == 404
            peer.session = {}

        exchange.run(works, listens=False)


def test_a_call_whose_client_has_left_keeps_its_session() -> None:
    """BC-087, the kind: the request is under way, although nobody waits on its connection."""
    with HttpExchange(session_timeout=1.0) as exchange:

        async def leaves(peer: HttpPeer) -> None:
            await LEGACY.greet(peer)
            call = peer.begin(LEGACY.call(1, "sleep", {"ms": 5000, "tag": "long"}))
            event = (await call.event()).id
            call.leave()
            await call.ended()
            await asyncio.sleep(5.5)
            resumed = peer.listen(event)
            assert text_of(await resumed.message()) == "long"
            await resumed.ended()

        exchange.run(leaves, listens=False)


# -- schedules -------------------------------------------------------------------------------------

SCHEDULES: Final = 600
KNOBS: Final = Knobs(limits={"callback_timeout": 0.005, "elicitation_timeout": 0.005})


def cancel(id: object) -> Message:
    """Write the cancellation of a request."""
    method = "notifications/cancelled"
    return {"jsonrpc": "2.0", "method": method, "params": {"requestId": id}}


async def play(peer: HttpPeer, era: Dialect, id: str, random: Random) -> tuple[Open, bool, bool]:
    """Let a call meet what would end it, each at a drawn millisecond.

    Return the call, whether its client left, and whether it was cancelled.
    """
    tool = random.choice(["sleep", "sleep", "ask_first"]) if era is LEGACY else "sleep"
    arguments: Message = {"ms": random.randint(0, 10), "tag": id}
    call = era.call(
        id, tool, arguments if tool == "sleep" else {"target": id}, capabilities=ASKABLE
    )
    meta = {"progressToken": 1} if random.random() < 0.5 else None
    if meta:
        call = era.call(id, tool, call["params"]["arguments"], meta=meta, capabilities=ASKABLE)  # type: ignore[index]  # written above
    opened = peer.begin(call)
    leaves, cancels = random.random() < 0.3, era is LEGACY and random.random() < 0.4

    async def leave() -> None:
        await asyncio.sleep(random.randint(0, 10) / 1000)
        opened.leave()

    async def give_up() -> None:
        await asyncio.sleep(random.randint(0, 10) / 1000)
        await peer.say(cancel(id))

    async def approve() -> None:
        await asyncio.sleep(random.randint(0, 10) / 1000)
        for message in opened.reply.messages() if opened.reply.status else []:
            if "method" in message and "id" in message:
                yes = {"jsonrpc": "2.0", "id": message["id"], "result": accept(approve=True)}
                for _ in range(random.randint(1, 2)):
                    await peer.say(yes)

    acts = [act() for act, wanted in ((leave, leaves), (give_up, cancels)) if wanted]
    await asyncio.gather(*acts, *([approve()] if tool == "ask_first" else []))
    return opened, leaves, cancels


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
def test_every_schedule_ends_every_call_once(era: Dialect) -> None:
    """BC-071 and BC-075, the kind: finish, timeout, cancel, approval, loss of the connection.

    At 0 to 10 ms, 600 schedules of three calls in each era. Every POST ends, with one answer or,
    where it was cancelled, with none.
    """
    random, answered, deleted = Random(75), 0, 0
    with HttpExchange(KNOBS) as exchange:
        journal = exchange.fixture.journal.lines
        for number in range(SCHEDULES):
            before = len(journal)
            ids = [f"{number}.{at}" for at in range(3)]

            async def schedule(peer: HttpPeer, ids: list[str] = ids) -> int:
                await era.greet(peer, ASKABLE)
                played = await asyncio.gather(*(play(peer, era, id, random) for id in ids))
                answers = 0
                for id, (opened, left, cancelled) in zip(ids, played, strict=True):
                    reply = await opened.ended()
                    if left:
                        continue
                    messages = reply.messages() if reply.body else []
                    final = [m for m in messages if "method" not in m and m["id"] == id]
                    assert len(final) <= 1
                    assert final or cancelled, (id, reply.status, reply.body)
                    answers += len(final)
                return answers

            answered += exchange.run(schedule, listens=random.random() < 0.5)
            ran = Counter(journal[before:])
            for id in ids:
                starts = ran[f"start:sleep:{id}"]
                assert starts == ran[f"end:sleep:{id}"] + ran[f"cancelled:{id}"] <= 1, id
                assert ran[f"deleted:{id}"] <= 1, id
                deleted += ran[f"deleted:{id}"]
    assert answered > SCHEDULES
    assert (deleted > 20) is (era is LEGACY), "approvals are among the schedules"
