"""K02: a handle is no proof of who presents it.

Whoever had a session id, an event id or a state could use it; a POST without a session went to the
only client there was; and a second stream silently took the place of the first.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Final

import pytest

from tests.cases.dialects import ASKABLE, LEGACY, MODERN, accept, code_of, result_of, text_of
from tests.cases.http_peers import HttpExchange, HttpPeer, bearer, headers_of
from tests.cases.peers import Message
from tests.transports.http.client import Reply

Shown = tuple[int, dict[str, str], bytes]


def test_a_second_stream_is_refused_and_the_first_is_told_everything() -> None:
    """BC-005. GHSA-qvqr-5cv7-wh35; MCP 2025-11-25 basic/transports §Multiple Connections."""
    with HttpExchange() as exchange:

        async def listens(peer: HttpPeer) -> None:
            await LEGACY.greet(peer)
            await asyncio.sleep(0.1)
            assert (await peer.listen().ended()).status == 409
            await peer.request(LEGACY.call(1, "add_tool", {"name": "late"}))
            await peer.until(lambda message: message.get("method") is not None)
            assert len(peer.told("notifications/tools/list_changed")) == 1

        exchange.run(listens)


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("", 400),
        ("?session_id=", 400),
        ("?sessionId=00000000-0000-0000-0000-000000000000", 400),
        ("?session_id=00000000-0000-0000-0000-000000000000", 404),
        ("?session_id=a&session_id=b", 400),
    ],
)
def test_a_message_without_a_session_reaches_nobody(query: str, status: int) -> None:
    """BC-007. MCP 2025-11-25 basic/transports §Session Management: 400 without id, 404 unknown."""
    with HttpExchange() as exchange:

        async def injects(peer: HttpPeer) -> None:
            victim = peer.listen(path="/mcp/sse")
            assert (await victim.event()).name == "endpoint"
            call = LEGACY.call(1, "echo", {"text": "inject"})
            for _ in range(2):
                reply = await peer.say(call, path=f"/mcp/messages{query}")
                assert reply.status == status
            await asyncio.sleep(1.0)
            assert victim.reply.body.count(b"event:") == 1, "the endpoint and nothing else"
            victim.leave()
            await victim.ended()
            assert exchange.journal == []

        exchange.run(injects)


# -- every handle, presented by everybody ----------------------------------------------------------

# What takes a handle, and how somebody else presents it: (peer of whoever presents it, handle).
Present = Callable[[HttpPeer, str], Awaitable[Reply]]


async def posts(peer: HttpPeer, session: str) -> Reply:
    """Use a session."""
    return await peer.say(LEGACY.call(1, "echo", {"text": "x"}), {"mcp-session-id": session})


async def notifies(peer: HttpPeer, session: str) -> Reply:
    """Cancel something in a session."""
    cancel = {"method": "notifications/cancelled", "params": {"requestId": "running"}}
    return await peer.say({"jsonrpc": "2.0", **cancel}, {"mcp-session-id": session})


async def answers(peer: HttpPeer, session: str) -> Reply:
    """Answer a question of a session."""
    yes: Message = {"jsonrpc": "2.0", "id": 1, "result": accept(confirm=True)}
    return await peer.say(yes, {"mcp-session-id": session})


async def greets(peer: HttpPeer, session: str) -> Reply:
    """Greet within a session."""
    greeting = {"protocolVersion": "2025-11-25", "capabilities": {}}
    return await peer.say(LEGACY.request(1, "initialize", greeting), {"mcp-session-id": session})


async def deletes(peer: HttpPeer, session: str) -> Reply:
    """End a session."""
    headers = {"mcp-session-id": session, **bearer(peer.token)}
    return await peer.http.send("DELETE", "/mcp", headers)


async def listens(peer: HttpPeer, session: str) -> Reply:
    """Listen to a session."""
    headers = {"accept": "text/event-stream", "mcp-session-id": session, **bearer(peer.token)}
    return await peer.http.send("GET", "/mcp", headers)


async def posts_old(peer: HttpPeer, session: str) -> Reply:
    """Speak to an old stream."""
    call = LEGACY.call(1, "echo", {"text": "x"})
    return await peer.say(call, path=f"/mcp/messages?session_id={session}")


async def retries(peer: HttpPeer, state: str) -> Reply:
    """Approve a call with the state of one that was asked about."""
    params = {
        "name": "confirm_delete",
        "arguments": {"target": "a"},
        "inputResponses": {"confirm": accept(confirm=True)},
        "requestState": state,
    }
    return await peer.say(MODERN.request(1, "tools/call", params, capabilities=ASKABLE))


OF_A_SESSION: Final[list[Present]] = [posts, notifies, answers, greets, deletes, listens]
# The same length and alphabet as a true one.
UNKNOWN: Final = "AAAAAAAAAAAAAAAAAAAAAAAA"


def shown(reply: Reply) -> Shown:
    """Everything that somebody gets to see."""
    return reply.status, reply.headers, reply.body


async def is_like_unknown(
    present: Present, handle: str, unknown: str, strangers: list[HttpPeer]
) -> None:
    """Check that whoever it does not belong to sees what an invented one shows, byte for byte."""
    for stranger in strangers:
        true = shown(await present(stranger, handle))
        invented = shown(await present(stranger, unknown))
        assert true == invented, stranger.token
        assert true[0] >= 400 or b'"error"' in true[2], "and that is a refusal"


@pytest.mark.parametrize("present", OF_A_SESSION, ids=lambda present: present.__name__)
def test_the_session_of_somebody_else_is_like_none(present: Present) -> None:
    """BC-005, the kind: another user of the same client, nobody, and a token that has ended."""
    with HttpExchange(tokens=True) as exchange:

        async def tries(owner: HttpPeer, bob: HttpPeer, nobody: HttpPeer, ended: HttpPeer) -> None:
            await LEGACY.greet(owner, ASKABLE)
            session = str(owner.session["mcp-session-id"])
            call = LEGACY.call("running", "confirm_delete", {"target": "a"})
            question = await LEGACY.put(owner, call)
            await is_like_unknown(present, session, UNKNOWN, [bob, nobody, ended])
            await asyncio.sleep(1.0)
            assert exchange.journal == []
            kept = await LEGACY.reply(owner, call, question, accept(confirm=False))
            assert text_of(kept) == "kept", "the owner did not notice"

        exchange.run(tries, peers=4, tokens=("alice", "bob", None, "ended"))


def test_the_old_stream_of_somebody_else_is_like_none() -> None:
    """BC-007, the kind."""
    with HttpExchange(tokens=True) as exchange:

        async def tries(owner: HttpPeer, bob: HttpPeer, nobody: HttpPeer, ended: HttpPeer) -> None:
            stream = owner.listen(path="/mcp/sse")
            _, _, session = (await stream.event()).data.decode().partition("session_id=")
            await is_like_unknown(posts_old, session, UNKNOWN, [bob, nobody, ended])
            assert exchange.journal == []
            greeting = {"protocolVersion": "2024-11-05", "capabilities": {}}
            path = f"/mcp/messages?session_id={session}"
            message = LEGACY.request(1, "initialize", greeting)
            assert (await owner.say(message, path=path)).status == 202
            assert result_of(await stream.message())["protocolVersion"] == "2024-11-05"
            stream.leave()
            await stream.ended()

        exchange.run(tries, peers=4, tokens=("alice", "bob", None, "ended"))


def test_the_approval_of_somebody_else_is_like_none() -> None:
    """BC-061, the kind: a state is bound to whoever was asked (MCP 2026-07-28 mrtr §Security)."""
    with HttpExchange(tokens=True) as exchange:

        async def tries(owner: HttpPeer, bob: HttpPeer, nobody: HttpPeer, ended: HttpPeer) -> None:
            call = MODERN.call(1, "confirm_delete", {"target": "a"}, capabilities=ASKABLE)
            question = await MODERN.put(owner, call)
            state = str(question.state)
            invented = state[:-8] + "AAAAAAAA"
            await is_like_unknown(retries, state, invented, [bob, nobody, ended])
            refused = await retries(bob, state)
            assert code_of(refused.json()) == -32602
            assert exchange.journal == []
            # Nobody else's attempt has spent it.
            answer = await MODERN.reply(owner, call, question, accept(confirm=True))
            assert text_of(answer) == "deleted"

        exchange.run(tries, peers=4, tokens=("alice", "bob", None, "ended"))


def test_an_event_can_be_taken_up_in_its_own_session_alone() -> None:
    """BC-005, the kind: also by another session of the same user. MCP 2025-11-25 §Resumability."""
    with HttpExchange(tokens=True) as exchange:

        async def tries(owner: HttpPeer, same: HttpPeer, bob: HttpPeer) -> None:
            for peer in (owner, same, bob):
                await LEGACY.greet(peer)
            running = owner.begin(LEGACY.call(1, "sleep", {"ms": 5000, "tag": "secret"}))
            event = (await running.event()).id
            running.leave()
            await running.ended()
            invented = f"{UNKNOWN[:8]}1.1"
            await asyncio.sleep(6.0)
            for stranger in (same, bob):
                true = shown(await stranger.listen(event).ended())
                assert true == shown(await stranger.listen(invented).ended())
                assert true[0] == 400
            # With the owner's session as well, which is not theirs either.
            theft = {"mcp-session-id": owner.session["mcp-session-id"], "last-event-id": event}
            headers = {**headers_of(None), **theft, **bearer("bob")}
            assert (await bob.http.send("GET", "/mcp", headers)).status == 404
            resumed = owner.listen(event)
            assert text_of(await resumed.message()) == "secret"
            await resumed.ended()

        exchange.run(tries, peers=3, tokens=("alice", "alice", "bob"))


def test_ids_cannot_be_guessed() -> None:
    """MCP 2025-11-25 basic/transports §Session Management: secure random, visible ASCII."""
    with HttpExchange() as exchange:

        async def greets_often(*peers: HttpPeer) -> None:
            for peer in peers:
                await LEGACY.greet(peer)
            ids = [str(peer.session["mcp-session-id"]) for peer in peers]
            assert len(set(ids)) == len(ids)
            assert all(len(id) >= 22 and id.isascii() and id.isprintable() for id in ids)
            # No position says anything about the next id.
            assert all(len({id[at] for id in ids}) > 20 for at in range(len(ids[0])))

        exchange.run(greets_often, peers=100, listens=False)


def test_a_session_shows_its_id_once() -> None:
    """ours: a secret is in the answer to initialize and in nothing else that is sent."""
    with HttpExchange() as exchange:

        async def looks(peer: HttpPeer) -> None:
            await LEGACY.greet(peer)
            id = str(peer.session["mcp-session-id"])
            replies = [
                await peer.say(LEGACY.call(1, "echo", {"text": "x"})),
                await peer.say(LEGACY.request(2, "no/such/method")),
                await peer.listen().ended(),
            ]
            for reply in replies:
                assert "mcp-session-id" not in reply.headers
                assert id.encode() not in reply.body + json.dumps(reply.headers).encode()

        exchange.run(looks)
