"""K03: what an earlier request said changes nothing about a later one.

A stateless server kept the capabilities, the log level or the identity of whoever came last.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import Final, cast

import pytest

from tests.cases.dialects import (
    ASKABLE,
    BOTH_ERAS,
    LEGACY,
    MODERN,
    STDIO,
    Dialect,
    case,
    code_of,
    meta_of,
    result_of,
    text_of,
)
from tests.cases.fixture_server import Knobs
from tests.cases.peers import Exchange, MemoryPeer, Message, Peer, StdioPeer

PREFIX: Final = "io.modelcontextprotocol/"
LEVEL: Final = PREFIX + "logLevel"


@case(eras=[MODERN])
async def test_each_request_has_its_own_capabilities_and_level(peer: Peer, era: Dialect) -> None:
    """BC-009. MCP 2026-07-28 basic §Statelessness, four times interleaved on one connection."""
    for round in range(4):
        await peer.send(
            era.call(f"{round}.1", "ask", {"q": "?"}, capabilities=ASKABLE),
            era.call(f"{round}.2", "ask", {"q": "?"}),
            era.call(f"{round}.3", "logs", {"n": 3}, meta={LEVEL: "debug", "progressToken": 3}),
            era.call(f"{round}.4", "logs", {"n": 3}),
        )
    for round in range(4):
        first = result_of(await peer.answer(f"{round}.1"))
        assert first["resultType"] == "input_required"
        second = await peer.answer(f"{round}.2")
        assert code_of(second) == -32021
        data = cast(Message, cast(Message, second["error"])["data"])
        assert "elicitation" in cast(Message, data["requiredCapabilities"])
        for id in ("3", "4"):
            assert text_of(await peer.answer(f"{round}.{id}")) == "done"
    assert len(peer.told("notifications/message")) == 12, "three for each that wanted them"


@case()
async def test_who_cannot_be_asked_is_not_asked(peer: Peer, era: Dialect) -> None:
    """BC-065. MCP 2026-07-28 basic: -32021; and nothing is put on the wire, nothing hangs."""
    await era.greet(peer)
    for id, (name, arguments) in enumerate(
        [
            ("ask", {"q": "?"}),
            ("ask_age", {}),
            ("confirm_delete", {"target": "a"}),
            ("ask_two", {}),
        ]
    ):
        answer = await peer.request(era.call(id, name, arguments))
        if era is MODERN:
            assert code_of(answer) == -32021
            data = cast(Message, cast(Message, answer["error"])["data"])
            required = cast(Message, data["requiredCapabilities"])
            assert required == {"elicitation": {"form": {}}}
        else:
            assert "authorization_required" in text_of(answer, failed=True)
    # The authorizer's own question says what would have been asked, in both eras.
    answer = await peer.request(era.call("a", "ask_first", {"target": "a"}))
    assert json.loads(text_of(answer, failed=True))["detail"] == "Run ask_first?"
    assert [m for m in peer.seen if "method" in m and "id" in m] == []


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
@pytest.mark.parametrize(
    ("declared", "may_ask"),
    [
        ({}, False),
        ({"elicitation": {}}, True),
        ({"elicitation": {"form": {}}}, True),
        ({"elicitation": {"url": {}}}, False),
        ({"elicitation": {"form": {}, "url": {}}}, True),
        ({"elicitation": None}, False),
        ({"elicitation": False}, False),
        ({"elicitation": True}, False),
        ({"elicitation": []}, False),
        ({"elicitation": {"form": None}}, True),  # null is absent
        ({"elicitation": {"form": False}}, False),
        ({"Elicitation": {}}, False),
        ({"sampling": {}, "roots": {}}, False),
        ({"experimental": {"elicitation": {}}}, False),
    ],
)
def test_only_what_was_declared_can_be_asked_for(
    declared: Message, may_ask: bool, era: Dialect
) -> None:
    """BC-065. MCP 2025-11-25 client/elicitation §Capabilities: an empty object means forms."""
    with Exchange() as exchange:

        async def asks(peer: MemoryPeer) -> bool:
            await era.greet(peer, declared)
            call = era.call(1, "ask_first", {"target": "a"}, capabilities=declared)
            got = await peer.exchange(json.dumps(call).encode() + b"\n")
            return "method" in got[-1] or "inputRequests" in result_of(got[-1])

        assert exchange.run(asks) is may_ask


@case(eras=[MODERN])
async def test_logs_come_to_whoever_asked_for_them(peer: Peer, era: Dialect) -> None:
    """BC-079. MCP 2026-07-28 server/utilities/logging §Per-request log level."""
    listen = era.request("L", "subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    await peer.send(listen)
    levels = {"levels": ["debug", "info", "error"]}
    await peer.request(era.call(1, "logs", levels))
    assert peer.told("notifications/message") == []
    after = len(peer.seen)
    await peer.request(era.call(2, "logs", levels, meta={LEVEL: "warning"}))
    kinds = [message.get("method") for message in peer.seen[after:]]
    assert kinds == ["notifications/message", None], "before its result"
    assert [params["level"] for params in peer.told("notifications/message")] == ["error"]
    for id, level in enumerate(("loud", "", None, 3, "Error", ["error"]), 10):
        refused = await peer.request(
            era.call(id, "logs", {"levels": ["info"]}, meta={LEVEL: level})
        )
        assert code_of(refused) == -32602
    assert len(peer.told("notifications/message")) == 1


@case(eras=[LEGACY])
async def test_the_level_of_a_session_is_its_own(peer: Peer, era: Dialect) -> None:
    """BC-079, in the handshake era: `logging/setLevel` is for the connection, and strict."""
    await era.greet(peer)
    levels = {"levels": ["debug", "info", "error"]}
    await peer.request(era.request(1, "logging/setLevel", {"level": "error"}))
    await peer.request(era.call(2, "logs", levels))
    assert [params["level"] for params in peer.told("notifications/message")] == ["error"]
    for level in ("loud", "", None, 3):
        refused = await peer.request(era.request(3, "logging/setLevel", {"level": level}))
        assert code_of(refused) == -32602
    # A stateless request on the same pipe does not inherit it, nor does it leave one behind.
    await peer.request(MODERN.call(4, "logs", levels))
    await peer.request(MODERN.call(5, "logs", levels, meta={LEVEL: "debug"}))
    await peer.request(era.call(6, "logs", levels))
    told = [params["level"] for params in peer.told("notifications/message")]
    assert told == ["error", "debug", "info", "error", "error"]


def test_the_list_is_the_same_every_time_and_everywhere() -> None:
    """BC-163. MCP 2026-07-28 server/tools: a deterministic order, over pages and restarts."""
    listings: set[bytes] = set()

    async def lists(peer: Peer) -> None:
        assert isinstance(peer, StdioPeer)
        for _ in range(20):
            before = len(peer.raw)
            await peer.request(MODERN.request("same", "tools/list"))
            listings.add(bytes(peer.raw[before:]))

    for _ in range(5):
        STDIO.run(lists, Knobs(page_size=1000))
    assert len(listings) == 1


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
def test_a_change_of_the_list_is_for_everybody(era: Dialect) -> None:
    """BC-163: no list per connection, and no change without a word."""
    with Exchange(Knobs(page_size=1000)) as exchange:

        async def changes(first: MemoryPeer, second: MemoryPeer) -> None:
            for peer in (first, second):
                await era.greet(peer)
                wanted = {"notifications": {"toolsListChanged": True}}
                await peer.send(MODERN.request("l", "subscriptions/listen", wanted))
            before = await names_of(second, era)
            await first.request(era.call(1, "enable_more"))
            assert await names_of(second, era) == [*before, "more"] == await names_of(first, era)
            await asyncio.sleep(1.0)
            for peer in (first, second):
                expected = 2 if era is LEGACY else 1  # the session's own, and that of the listen
                assert len(peer.told("notifications/tools/list_changed")) == expected

        exchange.run(changes, peers=2)


async def names_of(peer: Peer, era: Dialect) -> list[object]:
    """List the tools by name."""
    result = result_of(await peer.request(era.request("names", "tools/list")))
    return [tool["name"] for tool in cast(list[Message], result["tools"])]


# -- any request after any other -------------------------------------------------------------------

OTHER_CLIENT: Final = {"io.modelcontextprotocol/clientInfo": {"name": "other", "version": "9"}}
REQUESTS: Final[list[Message]] = [
    MODERN.request("r", "tools/list"),
    MODERN.request("r", "tools/list", meta=OTHER_CLIENT, capabilities=ASKABLE),
    MODERN.request("r", "server/discover", capabilities={"sampling": {}, "roots": {}}),
    MODERN.call("r", "ask", {"q": "?"}),
    MODERN.call("r", "ask", {"q": "?"}, capabilities=ASKABLE),
    MODERN.call("r", "ask_first", {"target": "a"}),
    MODERN.call("r", "ask_first", {"target": "a"}, capabilities=ASKABLE),
    MODERN.call("r", "ask_age", meta=OTHER_CLIENT),
    MODERN.call("r", "logs", {"n": 2}),
    MODERN.call("r", "logs", {"n": 2}, meta={LEVEL: "debug"}),
    MODERN.call("r", "logs", {"n": 2}, meta={LEVEL: "emergency"}),
    MODERN.call("r", "progress", {"n": 2, "delay_ms": 0}),
    MODERN.call("r", "progress", {"n": 2, "delay_ms": 0}, meta={"progressToken": 0}),
    MODERN.call("r", "boom"),
    MODERN.call("r", "off"),
    MODERN.request("r", "resources/read", {"uri": "mem://me"}),
    MODERN.request("r", "resources/read", {"uri": "mem://admin"}),
    MODERN.request("r", "no/such/method"),
    {"jsonrpc": "2.0", "id": "r", "method": "tools/list", "params": {"_meta": {}}},
    {
        "jsonrpc": "2.0",
        "id": "r",
        "method": "tools/list",
        "params": {"_meta": {**meta_of(), "io.modelcontextprotocol/protocolVersion": "2099"}},
    },
    LEGACY.request("r", "ping"),
]
GREETINGS: Final[list[Message]] = [
    LEGACY.request("g", "initialize", {"protocolVersion": "2025-11-25", "capabilities": ASKABLE}),
    LEGACY.request("g", "initialize", {"protocolVersion": "2024-11-05", "capabilities": {}}),
]


def seen_without_state(messages: list[Message]) -> str:
    """Write messages down, without what is random by design."""
    text = json.dumps(messages)
    for message in messages:
        state = cast(Message, message.get("result", {})).get("requestState")
        text = text.replace(json.dumps(state), "STATE") if state else text
    return text


def test_every_request_is_answered_the_same_after_every_other() -> None:
    """BC-009, the kind: answer(B) alone is answer(B) after A, for all pairs, also of principals."""
    with Exchange() as exchange:

        def line(message: Message) -> bytes:
            return json.dumps(message).encode() + b"\n"

        async def alone(peer: MemoryPeer, message: Message) -> str:
            return seen_without_state(await peer.exchange(line(message)))

        async def after(peer: MemoryPeer, first: Message, second: Message) -> str:
            await peer.exchange(line(first))
            return seen_without_state(await peer.exchange(line(second)))

        async def after_another(
            alice: MemoryPeer, bob: MemoryPeer, first: Message, second: Message
        ) -> str:
            await alice.exchange(line(first))
            return seen_without_state(await bob.exchange(line(second)))

        for principal in (None, "bob"):
            for second in REQUESTS:
                expected = exchange.run(
                    lambda peer, second=second: alone(peer, second), principals=(principal,)
                )
                exchange.fixture.server.breakers.reset_all()
                # A handshake is remembered, by design; stateless requests do not notice.
                greetings = GREETINGS if PREFIX in json.dumps(second) else []
                for first in [*REQUESTS, *greetings]:
                    got = exchange.run(
                        lambda peer, first=first, second=second: after(peer, first, second),
                        principals=(principal,),
                    )
                    assert got == expected, (first, second)
                    got = exchange.run(
                        lambda a, b, first=first, second=second: after_another(a, b, first, second),
                        peers=2,
                        principals=("admin", principal),
                    )
                    assert got == expected, (first, second)
                    exchange.fixture.server.breakers.reset_all()


def test_the_order_of_requests_on_one_pipe_does_not_matter() -> None:
    """BC-009, the kind, on a real pipe: every permutation of four, each answered as alone."""
    texts: dict[str, set[str]] = {}

    async def permutes(peer: Peer) -> None:
        four = [REQUESTS[at] for at in (3, 5, 8, 9)]
        for number, order in enumerate(itertools.permutations(range(4))):
            for at in order:
                request = {**four[at], "id": f"{number}.{at}"}
                answer = await peer.request(request)
                text = json.dumps({**answer, "id": at})
                texts.setdefault(str(at), set()).add(text)

    STDIO.run(permutes, Knobs())
    assert {at: len(found) for at, found in texts.items()} == {"0": 1, "1": 1, "2": 1, "3": 1}
