"""K27: the same mistake has the same code in both eras and over every transport; lists are private.

Lists that differ from user to user were offered to shared caches, and a typo looked like a tool
that had failed.
"""

from __future__ import annotations

from typing import Final, cast

import pytest

from tests.cases.dialects import ASKABLE, BOTH_ERAS, MODERN, Dialect, code_of, result_of
from tests.cases.fixture_server import Knobs
from tests.cases.http_peers import HttpExchange, HttpPeer
from tests.cases.peers import Exchange, MemoryPeer, Message

PAGED: Final = Knobs(page_size=10)
CACHEABLE: Final[list[tuple[str, Message]]] = [
    ("tools/list", {}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("prompts/list", {}),
    ("resources/read", {"uri": "mem://a"}),
    ("resources/read", {"uri": "mem://me"}),
    ("server/discover", {}),
]


def test_what_differs_by_user_is_private_on_every_page() -> None:
    """BC-153. MCP 2026-07-28 basic/patterns/caching; also for the caches of HTTP itself."""
    with HttpExchange(PAGED, tokens=True) as exchange:

        async def asks(alice: HttpPeer, admin: HttpPeer) -> None:
            listed: dict[str | None, list[str]] = {}
            for peer in (alice, admin):
                names, params = [], cast("Message", {})
                while True:
                    reply = await peer.say(MODERN.request(1, "tools/list", params))
                    result = result_of(reply.json())
                    assert (result["ttlMs"], result["cacheScope"]) == (0, "private")
                    assert "public" not in str(reply.headers)
                    names += [str(tool["name"]) for tool in cast("list[Message]", result["tools"])]
                    if "nextCursor" not in result:
                        break
                    params = {"cursor": result["nextCursor"]}
                listed[peer.token] = names
            assert set(listed["admin"]) - set(listed["alice"]) == {"admin_only"}
            for method, params in CACHEABLE:
                result = result_of((await alice.say(MODERN.request(1, method, params))).json())
                assert (result["ttlMs"], result["cacheScope"]) == (0, "private"), method
            asked = MODERN.call(2, "ask", {"q": "?"}, capabilities=ASKABLE)
            hints = {"ttlMs", "cacheScope"}
            assert not hints & result_of((await alice.say(asked)).json()).keys()

        exchange.run(asks, peers=2, tokens=("alice", "admin"))


def test_a_cursor_of_another_list_or_of_nobody_is_refused() -> None:
    """MCP server/utilities/pagination: -32602, and with status 200: it is no other protocol."""
    with HttpExchange(PAGED) as exchange:

        async def asks(peer: HttpPeer) -> None:
            first = result_of((await peer.say(MODERN.request(1, "tools/list"))).json())
            cursor = str(first["nextCursor"])
            for method in ("resources/list", "prompts/list", "resources/templates/list"):
                reply = await peer.say(MODERN.request(1, method, {"cursor": cursor}))
                assert (reply.status, code_of(reply.json())) == (200, -32602), method
            texts = ("", "nope", cursor[:-2], cursor + "A", cursor.swapcase())
            values: list[object] = [*texts, 7, [], {}]
            for wrong in values:
                reply = await peer.say(MODERN.request(1, "tools/list", {"cursor": wrong}))
                assert (reply.status, code_of(reply.json())) == (200, -32602), wrong

        exchange.run(asks)


MISTAKES: Final[list[tuple[str, Message]]] = [
    ("tools/call", {"name": "no_such_tool", "arguments": {}}),
    ("tools/call", {"name": "", "arguments": {}}),
    ("tools/call", {"arguments": {}}),
    ("tools/call", {"name": "echo", "arguments": [1]}),
    ("tools/call", {"name": "echo", "arguments": {"text": 7}}),
    ("prompts/get", {"name": "nope"}),
    ("prompts/get", {"name": "greet", "arguments": {}}),
    ("prompts/get", {"name": "greet", "arguments": {"who": 7}}),
    ("resources/read", {"uri": "mem://nope"}),
    ("resources/read", {"uri": "mem://admin"}),
    ("resources/read", {}),
    ("tools/list", {"cursor": "nope"}),
    ("completion/complete", {"ref": {"type": "ref/zzz"}}),
    ("no/such/method", {}),
    ("off", {}),
]


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
def test_a_mistake_is_answered_over_http_as_over_a_pipe(era: Dialect) -> None:
    """BC-145, the kind: the transports differ in the status, and in nothing of the answer."""
    requests = [era.request(1, method, params) for method, params in MISTAKES]
    requests += [era.call(1, name) for name in ("off", "admin_only", "boom", "tool_error")]

    with Exchange() as pipe:

        async def on_a_pipe(peer: MemoryPeer) -> list[Message]:
            await era.greet(peer)
            return [await peer.request(request) for request in requests]

        expected = pipe.run(on_a_pipe)

    with HttpExchange() as exchange:

        async def over_http(peer: HttpPeer) -> list[Message]:
            await era.greet(peer)
            return [(await peer.say(request)).json() for request in requests]

        assert exchange.run(over_http) == expected
