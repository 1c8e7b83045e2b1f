"""K30: what a user may not reach by one method, they may not reach by any other, in any session.

A tool that was hidden from the list ran when it was named, and a right that had been taken away
lasted as long as the session.
"""

from __future__ import annotations

import asyncio
import json
from typing import cast

import pytest

from tests.cases import fixture_server
from tests.cases.dialects import BOTH_ERAS, LEGACY, MODERN, Dialect, result_of, text_of
from tests.cases.fixture_server import SECRET
from tests.cases.http_peers import HttpExchange, HttpPeer
from tests.cases.peers import Message
from tests.cases.test_k30_guard_at_every_door import CLOSED, KNOCKED, Params, complete, outcome


@pytest.mark.parametrize(("method", "params", "hidden", "absent", "era"), KNOCKED)
def test_a_forbidden_thing_answers_like_one_that_is_not_there(
    method: str, params: Params, hidden: str, absent: str, era: Dialect
) -> None:
    """BC-175. By every method that can reach it: status, headers and body; nothing runs."""
    with HttpExchange(CLOSED, tokens=True) as exchange:

        async def knocks(alice: HttpPeer) -> None:
            await era.greet(alice)
            refused = await alice.say(era.request(1, method, params(hidden)))
            missing = await alice.say(era.request(1, method, params(absent)))
            assert refused.status == missing.status
            assert outcome(refused.json(), hidden) == outcome(missing.json(), absent)
            assert SECRET.encode() not in refused.body
            assert exchange.journal == []

        exchange.run(knocks, tokens=("alice",))


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
def test_the_list_shows_what_the_caller_may_call(era: Dialect) -> None:
    """BC-175. Of two users at once on one address; what is off is off for both."""
    with HttpExchange(CLOSED, tokens=True) as exchange:

        async def lists(alice: HttpPeer, admin: HttpPeer) -> None:
            seen = {}
            for peer in (alice, admin):
                await era.greet(peer)
                listed = result_of((await peer.say(era.request(1, "tools/list"))).json())
                names = {str(tool["name"]) for tool in cast("list[Message]", listed["tools"])}
                seen[peer.token] = names & {"admin_only", "off"}
            assert seen == {"alice": set(), "admin": {"admin_only"}}

        exchange.run(lists, peers=2, tokens=("alice", "admin"))


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
def test_the_admin_passes_every_door(era: Dialect) -> None:
    """BC-175, the other side."""
    ref: Message = {"type": "ref/prompt", "name": "admin_prompt"}
    doors: list[tuple[str, Message]] = [
        ("resources/read", {"uri": "mem://admin"}),
        ("prompts/get", {"name": "admin_prompt"}),
        ("completion/complete", complete(ref)),
    ]
    with HttpExchange(CLOSED, tokens=True) as exchange:

        async def passes(admin: HttpPeer) -> None:
            await era.greet(admin)
            called = await admin.say(era.call(1, "admin_only"))
            assert text_of(called.json()) == "admin"
            for method, params in doors:
                reply = await admin.say(era.request(2, method, params))
                assert SECRET in json.dumps(result_of(reply.json()))

        exchange.run(passes, tokens=("admin",))


def test_a_listen_does_not_tell_what_a_read_would_not() -> None:
    """BC-175. Acknowledged without the forbidden resource; nor does the stream of a session."""
    with HttpExchange(tokens=True) as exchange:

        async def listens(alice: HttpPeer, admin: HttpPeer, session: HttpPeer) -> None:
            uris = ["mem://admin", "mem://a"]
            wanted = {"notifications": {"resourceSubscriptions": uris}}
            begun = [
                peer.begin(MODERN.request(1, "subscriptions/listen", wanted))
                for peer in (alice, admin)
            ]
            honoured = [(await each.message())["params"]["notifications"] for each in begun]
            assert honoured == [
                {"resourceSubscriptions": ["mem://a"]},
                {"resourceSubscriptions": uris},
            ]
            await LEGACY.greet(session)
            for id, uri in enumerate(uris):
                await session.say(LEGACY.request(id, "resources/subscribe", {"uri": uri}))
                await admin.say(MODERN.call(1, "touch_resource", {"uri": uri}))
                await admin.say(MODERN.call(1, "touch_resource", {"uri": uri}))
            await asyncio.sleep(1.0)
            told = [
                {message["params"]["uri"] for message in each.reply.messages()[1:]}
                for each in begun
            ]
            assert told == [{"mem://a"}, set(uris)]
            heard = {params["uri"] for params in session.told("notifications/resources/updated")}
            assert heard == {"mem://a"}
            for each in begun:
                each.leave()
                await each.ended()

        exchange.run(listens, peers=3, tokens=("alice", "admin", "alice"))


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
def test_a_right_that_is_taken_away_is_gone_at_once(era: Dialect) -> None:
    """BC-175: between the list and the call, in a session that began with it."""
    with HttpExchange(tokens=True) as exchange:

        async def calls(alice: HttpPeer) -> None:
            await era.greet(alice)
            echo = era.call(1, "echo", {"text": "x"})
            assert text_of((await alice.say(echo)).json()) == "x"
            fixture_server.DISABLED = frozenset({"off", "echo"})
            try:
                refused = (await alice.say(echo)).json()
                assert "authorization_required" in text_of(refused, failed=True)
            finally:
                fixture_server.DISABLED = frozenset({"off"})
            assert exchange.journal == ["start:echo:x"]

        exchange.run(calls, tokens=("alice",))


def test_a_client_says_nothing_about_who_it_is() -> None:
    """BC-175, the kind: a name in the message, in a header or in a session makes nobody admin."""
    claims: dict[str, str | None] = {
        "x-user": "admin",
        "x-forwarded-user": "admin",
        "x-principal": "static|admin",
        "cookie": "user=admin",
        "mcp-param-principal": "static|admin",
    }
    meta = {"principal": "static|admin", "io.modelcontextprotocol/clientInfo": {"name": "admin"}}
    with HttpExchange(CLOSED, tokens=True) as exchange:

        async def calls(alice: HttpPeer) -> None:
            await LEGACY.greet(alice)
            for era in BOTH_ERAS:
                message = era.call(1, "admin_only", {}, meta=meta)
                reply = await alice.say(message, claims)
                assert "authorization_required" in text_of(reply.json(), failed=True)
                me = await alice.say(era.request(2, "resources/read", {"uri": "mem://me"}), claims)
                assert "static|alice" in json.dumps(result_of(me.json()))
            assert exchange.journal == []

        exchange.run(calls, tokens=("alice",))
