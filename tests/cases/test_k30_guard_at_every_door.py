"""K30: what one may not reach by one method one may not reach by any other.

The filter was in the list and not in the call; resources, prompts, completions and subscriptions
had none; and different errors told what exists.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Final, cast

import pytest

from raxol_mcp import allow, deny, nonblocking
from raxol_mcp.server.authorizer import Decision
from tests.cases import fixture_server
from tests.cases.dialects import (
    BOTH_ERAS,
    MODERN,
    Dialect,
    case,
    code_of,
    result_of,
    text_of,
)
from tests.cases.fixture_server import ADMIN, SECRET, Knobs
from tests.cases.peers import Exchange, MemoryPeer, Message, Peer

CLOSED: Final = Knobs(closed=True)


def outcome(answer: Message, *names: str) -> str:
    """Write an answer without its id and without the names that were asked for."""
    text = json.dumps({name: value for name, value in answer.items() if name != "id"})
    for name in names:
        text = text.replace(name, "NAME")
    return text


@case(knobs=CLOSED)
async def test_hidden_things_do_not_work_when_named(peer: Peer, era: Dialect) -> None:
    """BC-175. Without credentials there is no principal, so the caller is not the admin."""
    await era.greet(peer)
    listed = await peer.request(era.request(1, "tools/list"))
    names = {tool["name"] for tool in cast(list[Message], result_of(listed)["tools"])}
    assert not names & {"admin_only", "off"}
    for hidden in ("admin_only", "off"):
        refused = await peer.request(era.call(2, hidden))
        absent = await peer.request(era.call(3, "no_such_tool"))
        assert outcome(refused, hidden) == outcome(absent, "no_such_tool")
        assert "authorization_required" in text_of(refused, failed=True)
    journal = await peer.request(era.call("j", "journal"))
    assert "start:admin_only:" not in json.dumps(journal)
    assert "start:off:" not in json.dumps(journal)


def complete(ref: Message) -> Message:
    """Write the params of a completion."""
    return {"ref": ref, "argument": {"name": "x", "value": ""}}


Params = Callable[[str], Message]
# Every method that can reach an object, the forbidden one, and one that is not there.
DOORS: Final[list[tuple[str, Params, str, str, str]]] = [
    ("tools/call", lambda name: {"name": name}, "admin_only", "absent", "both"),
    ("tools/call", lambda name: {"name": name}, "off", "absent", "both"),
    ("tools/call", lambda name: {"name": name, "arguments": {"a": 1}}, "off", "absent", "both"),
    ("resources/read", lambda uri: {"uri": uri}, "mem://admin", "mem://absent", "both"),
    ("prompts/get", lambda name: {"name": name}, "admin_prompt", "absent", "both"),
    (
        "prompts/get",
        lambda name: {"name": name, "arguments": {"zzz": "y"}},
        "admin_prompt",
        "absent",
        "both",
    ),
    (
        "completion/complete",
        lambda name: complete({"type": "ref/prompt", "name": name}),
        "admin_prompt",
        "absent",
        "both",
    ),
    (
        "completion/complete",
        lambda uri: complete({"type": "ref/resource", "uri": uri}),
        "mem://admin",
        "mem://absent",
        "both",
    ),
    ("resources/subscribe", lambda uri: {"uri": uri}, "mem://admin", "mem://absent", "legacy"),
    ("resources/unsubscribe", lambda uri: {"uri": uri}, "mem://admin", "mem://absent", "legacy"),
]


KNOCKED: Final = [
    (method, params, hidden, absent, era)
    for method, params, hidden, absent, eras in DOORS
    for era in BOTH_ERAS
    if eras == "both" or era is not MODERN
]


@pytest.mark.parametrize(("method", "params", "hidden", "absent", "era"), KNOCKED)
def test_a_forbidden_thing_answers_like_one_that_is_not_there(
    method: str, params: Params, hidden: str, absent: str, era: Dialect
) -> None:
    """BC-175, the kind: for each object and each method that can reach it; nothing runs."""
    with Exchange(CLOSED) as exchange:

        async def knocks(peer: MemoryPeer) -> None:
            await era.greet(peer)
            refused = await peer.request(era.request(1, method, params(hidden)))
            missing = await peer.request(era.request(2, method, params(absent)))
            assert outcome(refused, hidden) == outcome(missing, absent)
            assert SECRET not in json.dumps(refused)
            assert exchange.fixture.journal.lines == ["opened"]

        exchange.run(knocks)


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
def test_the_admin_passes_every_door(era: Dialect) -> None:
    """BC-175, the other side: the same doors are open to whom they are for."""
    with Exchange(CLOSED) as exchange:

        async def passes(peer: MemoryPeer) -> None:
            await era.greet(peer)
            assert text_of(await peer.request(era.call(1, "admin_only"))) == "admin"
            read = await peer.request(era.request(2, "resources/read", {"uri": "mem://admin"}))
            assert SECRET in json.dumps(result_of(read))
            got = await peer.request(era.request(3, "prompts/get", {"name": "admin_prompt"}))
            assert SECRET in json.dumps(result_of(got))
            ref: Message = {"type": "ref/prompt", "name": "admin_prompt"}
            done = await peer.request(era.request(4, "completion/complete", complete(ref)))
            assert SECRET in json.dumps(result_of(done))
            listed = await peer.request(era.request(5, "tools/list"))
            names = {tool["name"] for tool in cast(list[Message], result_of(listed)["tools"])}
            assert "admin_only" in names
            assert "off" not in names

        exchange.run(passes, principals=(ADMIN,))


def test_a_listen_does_not_tell_what_a_read_would_not() -> None:
    """BC-175: acknowledged without the forbidden resource, and no update of it."""
    with Exchange() as exchange:

        async def listens(peer: MemoryPeer, admin: MemoryPeer) -> None:
            wanted = {"resourceSubscriptions": ["mem://admin", "mem://a"]}
            for listener in (peer, admin):
                await listener.send(
                    MODERN.request(1, "subscriptions/listen", {"notifications": wanted})
                )
            for id, uri in enumerate(("mem://admin", "mem://a")):
                await admin.request(MODERN.call(f"t{id}", "touch_resource", {"uri": uri}))
            told = [params.get("uri") for params in peer.told("notifications/resources/updated")]
            assert told == ["mem://a"]
            (acknowledged,) = peer.told("notifications/subscriptions/acknowledged")
            assert acknowledged["notifications"] == {"resourceSubscriptions": ["mem://a"]}
            told = [params.get("uri") for params in admin.told("notifications/resources/updated")]
            assert told == ["mem://admin", "mem://a"]

        exchange.run(listens, peers=2, principals=(None, ADMIN))


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
def test_the_rule_is_that_of_the_moment_of_the_call(era: Dialect) -> None:
    """BC-175: taken away between the list and the call; and a tool that is replaced meanwhile."""
    with Exchange() as exchange:
        knobs = exchange.fixture

        async def calls(peer: MemoryPeer) -> None:
            await era.greet(peer)
            listed = await peer.request(era.request(1, "tools/list"))
            assert '"echo"' in json.dumps(listed)
            fixture_server.DISABLED = frozenset({"off", "echo"})
            try:
                refused = await peer.request(era.call(2, "echo", {"text": "x"}))
                assert "authorization_required" in text_of(refused, failed=True)
            finally:
                fixture_server.DISABLED = frozenset({"off"})
            assert knobs.journal.lines == ["opened"]

        exchange.run(calls)


SPELLINGS: Final = [
    "mem://admin",
    "MEM://admin",
    "mem://ADMIN",
    "mem://%61dmin",
    "mem://admin/",
    "mem://admin?",
    "mem://admin#",
    "mem://admin%00",
    " mem://admin",
    "mem://admin ",
    "mem:///admin",
    "mem:admin",
    "mem://x/../admin",
    "mem://user@admin",
    "mem://admin:80",
    "file:///docs/../admin",
]


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
@pytest.mark.parametrize("uri", SPELLINGS)
def test_no_other_spelling_reaches_a_forbidden_resource(uri: str, era: Dialect) -> None:
    """BC-175, the kind: a resource is found by its own URI, character by character."""
    with Exchange() as exchange:

        async def reads(peer: MemoryPeer) -> None:
            await era.greet(peer)
            answer = await peer.request(era.request(1, "resources/read", {"uri": uri}))
            assert "error" in answer
            assert "start:mem://admin:" not in exchange.fixture.journal.lines

        exchange.run(reads)


LETTERS: Final = "mem://%E6%B5%8B%E8%AF%95"  # as it is listed


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
@pytest.mark.parametrize("uri", [LETTERS, "mem://测试", "mem://测%E8%AF%95"])
def test_a_rule_holds_for_every_spelling_of_letters(uri: str, era: Dialect) -> None:
    """BC-175, the kind: letters may be percent-encoded or not, and the rule sees one spelling."""
    exchange = Exchange()

    @nonblocking
    def denies(name: str, arguments: Mapping[str, object], context: object) -> Decision:
        return deny("not allowed") if arguments.get("uri") == LETTERS else allow()

    exchange.fixture.server.guard(read_authorizer=denies)

    async def reads(peer: MemoryPeer) -> None:
        await era.greet(peer)
        answer = await peer.request(era.request(1, "resources/read", {"uri": uri}))
        assert code_of(answer) == -31001
        wanted = {"notifications": {"resourceSubscriptions": [uri]}}
        await peer.send(MODERN.request(2, "subscriptions/listen", wanted))
        await peer.until(lambda message: "method" in message)
        (acknowledged,) = peer.told("notifications/subscriptions/acknowledged")
        assert acknowledged["notifications"] == {}

    with exchange:
        exchange.run(reads)
