"""K03: what somebody else asked, or the same one before, changes nothing about an answer.

A server without sessions kept the capabilities, the level or the name of whoever came last.
"""

from __future__ import annotations

import asyncio
import json
from typing import Final, cast

import pytest

from raxol_mcp import Context, Elicit, ElicitUrl, InputRequired, ListRoots, Sample
from tests.cases.dialects import (
    ASKABLE,
    BOTH_ERAS,
    LEGACY,
    MODERN,
    Dialect,
    code_of,
    result_of,
    text_of,
)
from tests.cases.fixture_server import Knobs
from tests.cases.http_peers import HttpExchange, HttpPeer
from tests.cases.peers import Message
from tests.cases.test_k03_memory_between_requests import (
    GREETINGS,
    LEVEL,
    PREFIX,
    REQUESTS,
    names_of,
    seen_without_state,
)
from tests.transports.http.client import Reply

Question = Elicit | ElicitUrl | ListRoots | Sample


def test_two_users_have_their_own_capabilities_and_level() -> None:
    """BC-009. MCP 2026-07-28 basic §Statelessness."""
    with HttpExchange(tokens=True) as exchange:

        async def four(alice: HttpPeer, bob: HttpPeer) -> None:
            calls = [
                (alice, MODERN.call(1, "ask", {"q": "?"}, capabilities=ASKABLE)),
                (bob, MODERN.call(2, "ask", {"q": "?"})),
                (alice, MODERN.call(3, "logs", {"n": 3}, meta={LEVEL: "debug"})),
                (bob, MODERN.call(4, "logs", {"n": 3})),
            ]
            for _ in range(3):
                begun = [peer.begin(call) for peer, call in calls]
                replies = [await call.ended() for call in begun]
                assert result_of(replies[0].json())["resultType"] == "input_required"
                assert (replies[1].status, code_of(replies[1].json())) == (400, -32021)
                data = replies[1].json()["error"]["data"]
                assert data["requiredCapabilities"] == {"elicitation": {"form": {}}}
                told = [message.get("method") for message in replies[2].messages()]
                assert told == [*["notifications/message"] * 3, None]
                assert [text_of(message) for message in replies[3].messages()] == ["done"]

        exchange.run(four, peers=2, tokens=("alice", "bob"))


def test_logs_stay_on_the_stream_of_their_call() -> None:
    """BC-079: nothing on a listen of the same user, nothing on the stream of a session."""
    with HttpExchange(tokens=True) as exchange:

        async def logs(alice: HttpPeer, session: HttpPeer) -> None:
            await LEGACY.greet(session)
            wanted = {"notifications": {"toolsListChanged": True}}
            listen = alice.begin(MODERN.request("L", "subscriptions/listen", wanted))
            await listen.message()
            levels = {"levels": ["debug", "info", "error"]}
            quiet = await alice.say(MODERN.call(1, "logs", levels))
            assert len(quiet.messages()) == 1
            loud = await alice.say(MODERN.call(2, "logs", levels, meta={LEVEL: "warning"}))
            level, answer = loud.messages()
            assert level["params"]["level"] == "error"
            assert text_of(answer) == "done"
            wrong = await alice.say(MODERN.call(3, "logs", levels, meta={LEVEL: "loud"}))
            assert code_of(wrong.json()) == -32602
            in_session = await session.say(LEGACY.call(4, "logs", levels))
            told = [message["params"]["level"] for message in in_session.messages()[:-1]]
            assert told == ["info", "error"], "the level of a session that has set none"
            await asyncio.sleep(1.0)
            assert len(listen.reply.events()) == 1
            assert [m for m in session.seen if "method" in m] == []
            listen.leave()
            await listen.ended()

        exchange.run(logs, peers=2, tokens=("alice",))


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
def test_the_list_is_the_same_on_every_connection(era: Dialect) -> None:
    """BC-163. MCP 2026-07-28 server/tools: it MUST NOT vary per connection."""
    with HttpExchange(Knobs(page_size=1000), tokens=True) as exchange:

        async def lists(first: HttpPeer, second: HttpPeer, bob: HttpPeer) -> None:
            peers = (first, second, bob)
            for peer in peers:
                await era.greet(peer)
            request = era.request("same", "tools/list")
            texts = {(await peer.say(request)).body for peer in peers for _ in range(20)}
            assert len(texts) == 1
            wanted = {"notifications": {"toolsListChanged": True}}
            listen = bob.begin(MODERN.request("L", "subscriptions/listen", wanted))
            await listen.message()
            before = await names_of(bob, era)
            await first.request(era.call(1, "enable_more"))
            for peer in peers:
                assert await names_of(peer, era) == [*before, "more"]
            changed = "notifications/tools/list_changed"
            assert (await listen.message())["method"] == changed
            await asyncio.sleep(1.0)
            told = [len(peer.told(changed)) for peer in peers]
            assert told == [1 if era is LEGACY else 0] * 3
            listen.leave()
            await listen.ended()

        exchange.run(lists, peers=3, tokens=("alice", "alice", "bob"))


def test_a_session_is_frozen_when_it_is_greeted() -> None:
    """BC-009, in the handshake era: capabilities are those of initialize, whatever comes later."""
    with HttpExchange() as exchange:

        async def asks(askable: HttpPeer, plain: HttpPeer) -> None:
            await LEGACY.greet(askable, ASKABLE)
            await LEGACY.greet(plain)
            call = LEGACY.call(1, "confirm_delete", {"target": "a"})
            sneaky = LEGACY.call(
                1, "confirm_delete", {"target": "a"}, meta={PREFIX + "clientCapabilities": ASKABLE}
            )
            again = LEGACY.request(
                2, "initialize", {"protocolVersion": "2025-11-25", "capabilities": ASKABLE}
            )
            assert code_of((await plain.say(again)).json()) == -32600
            for message in (call, sneaky):
                refused = (await plain.say(message)).json()
                assert "authorization_required" in text_of(refused, failed=True)
            question = await LEGACY.put(askable, call)
            answer = await LEGACY.reply(askable, call, question, {"action": "decline"})
            assert "user decline" in text_of(answer, failed=True)
            assert [m for m in plain.seen if "method" in m] == []

        exchange.run(asks, peers=2)


# What a tool may ask for, as it is called on the wire, and which declaration is enough.
QUESTIONS: Final[dict[str, tuple[Question, str, list[Message]]]] = {
    "a form": (
        Elicit("Really?", {"type": "object", "properties": {}}),
        "elicitation/create",
        [
            {"elicitation": {}},
            {"elicitation": {"form": {}}},
            {"elicitation": {"form": {}, "url": {}}},
        ],
    ),
    "a page": (
        ElicitUrl("Really?", "https://example.com/x", "e1"),
        "elicitation/create",
        [{"elicitation": {"url": {}}}, {"elicitation": {"form": {}, "url": {}}}],
    ),
    "a model": (
        Sample({"messages": [], "maxTokens": 1}),
        "sampling/createMessage",
        [{"sampling": {}}, {"sampling": {"tools": {}}}],
    ),
    "a model with tools": (
        Sample({"messages": [], "maxTokens": 1, "tools": []}),
        "sampling/createMessage",
        [{"sampling": {"tools": {}}}],
    ),
    "roots": (ListRoots(), "roots/list", [{"roots": {}}]),
}
DECLARED: Final[list[Message]] = [
    {},
    {"elicitation": {}},
    {"elicitation": {"form": {}}},
    {"elicitation": {"url": {}}},
    {"elicitation": {"form": {}, "url": {}}},
    {"sampling": {}},
    {"sampling": {"tools": {}}},
    {"roots": {}},
    {"experimental": {"elicitation": {}, "sampling": {}, "roots": {}}},
    {"elicitation": None, "sampling": False, "roots": []},
]


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
@pytest.mark.parametrize("what", QUESTIONS)
def test_nothing_is_asked_that_was_not_declared(what: str, era: Dialect) -> None:
    """BC-065, the kind: every question, to every client; one of the same user may be asked more.

    MCP 2026-07-28 basic: -32021, status 400; in the handshake era the call fails at once.
    """
    question, method, enough = QUESTIONS[what]
    with HttpExchange(tokens=True) as exchange:

        @exchange.fixture.server.tool
        async def wonders(context: Context) -> object:
            """Ask."""
            return InputRequired({"q": question}) if context.round == 0 else "answered"

        async def asks(*peers: HttpPeer) -> None:
            for peer, declared in zip(peers, DECLARED, strict=True):
                await era.greet(peer, declared)
            begun = [
                peer.begin(era.call(1, "wonders", capabilities=declared))
                for peer, declared in zip(peers, DECLARED, strict=True)
            ]
            await asyncio.sleep(1.0)
            for peer, declared, call in zip(peers, DECLARED, begun, strict=True):
                messages = call.reply.messages()
                asked = [m["method"] for m in messages if "method" in m]
                result = messages[-1].get("result", {})
                asked += [each["method"] for each in result.get("inputRequests", {}).values()]
                assert asked == ([method] if declared in enough else []), declared
                if not asked and era is LEGACY:
                    text_of(messages[-1], failed=True)
                elif not asked:
                    assert (call.reply.status, code_of(messages[-1])) == (400, -32021)
                assert [m for m in peer.seen if "method" in m] == []
                call.leave()
                await call.ended()

        exchange.run(asks, peers=len(DECLARED), tokens=("alice",))


# -- any request after any other -------------------------------------------------------------------

STATELESS: Final = [message for message in REQUESTS if PREFIX in json.dumps(message)]


def whole(reply: Reply) -> str:
    """Write down everything of a reply but what is random by design."""
    messages = cast("list[Message]", reply.messages())
    return json.dumps([reply.status, reply.headers, seen_without_state(messages)])


@pytest.mark.parametrize("second_of", ["alice", "bob"])
def test_every_request_is_answered_the_same_after_every_other(second_of: str) -> None:
    """BC-009, the kind: status, headers and body of B alone are those of B after A, for all pairs.

    A is asked by the same user or another, or opens a session on the same address; both are also
    on their way at once.
    """
    with HttpExchange(tokens=True) as exchange:
        breakers = exchange.fixture.server.breakers

        async def pairs(alice: HttpPeer, second: HttpPeer) -> None:
            for request in STATELESS:
                expected = whole(await second.say(request))
                breakers.reset_all()
                for first in [*STATELESS, *GREETINGS]:
                    for peer in (alice, second):
                        earlier = await peer.say(first)
                        assert whole(await second.say(request)) == expected, (first, request)
                        breakers.reset_all()
                        if "mcp-session-id" in earlier.headers:
                            headers = {"mcp-session-id": earlier.headers["mcp-session-id"]}
                            peer.session = dict(headers)
                            assert (await peer.say(request, {})).status < 500
                            await peer.finish()
                    begun = [alice.begin(first), second.begin(request)]
                    replies = [await each.ended() for each in begun]
                    assert whole(replies[1]) == expected, (first, request)
                    breakers.reset_all()
                    for id in [r.headers.get("mcp-session-id") for r in replies]:
                        if id is not None:
                            alice.session = {"mcp-session-id": id}
                            await alice.finish()

        exchange.run(pairs, peers=2, tokens=("alice", second_of))
