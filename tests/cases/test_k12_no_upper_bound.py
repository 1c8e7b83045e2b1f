"""K12: everything that a client can make larger has a bound, and the bound has an answer.

`docs/limits.md` is the table; here each row is tried one below, at, one above, and far above.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

import pytest

from raxol_mcp import (
    ConfigurationError,
    Context,
    Elicit,
    InputRequired,
    Text,
    Tool,
    ToolResult,
)
from raxol_mcp.wire.framing import Lines, TooLong
from tests.cases.dialects import (
    ASKABLE,
    BOTH_ERAS,
    LEGACY,
    MODERN,
    STDIO,
    Dialect,
    Handshake,
    Question,
    accept,
    case,
    code_of,
    result_of,
    text_of,
)
from tests.cases.fixture_server import Fixture, Knobs
from tests.cases.peers import Exchange, MemoryPeer, Message, Peer, StdioPeer


def nested(opening: str, closing: str, depth: int, inner: str = "") -> str:
    """Write so many brackets around something."""
    return opening * depth + inner + closing * depth


@case(wires=[STDIO])
async def test_deep_nesting_is_refused_in_a_sentence(peer: Peer, era: Dialect) -> None:
    """BC-081. MCP 2026-07-28 basic §JSON Schema: bound what a message costs."""
    await era.greet(peer)

    async def sends(id: int, method: str, place: str, deep: str) -> Message:
        after = len(peer.seen)
        message = json.dumps(era.request(id, method, {"name": "echo", "arguments": {"text": "x"}}))
        await peer.send_bytes(
            message.replace('"text"', f'"{place}":{deep},"text"').encode() + b"\n"
        )
        ids = (id, None)
        return await peer.until(
            lambda m: "method" not in m and any(m["id"] == i for i in ids), after=after
        )

    shallow = await sends(2, "tools/call", "extra", nested("[", "]", 32))
    assert result_of(shallow)["isError"] is True  # no such argument
    for id, deep in ((3, nested("[", "]", 100_000)), (4, nested('{"a":', "}", 100_000, "1"))):
        assert code_of(await sends(id, "tools/call", "extra", deep)) == -32700
    after = len(peer.seen)
    await peer.send_bytes(b"[" * 1_000_000 + b"\n")
    assert code_of(await peer.answer(None, after=after)) == -32700
    assert text_of(await peer.request(era.call(5, "echo", {"text": "alive"}))) == "alive"


# -- the table -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bound:
    """One limit L: `send(peer, n)` tries n and returns the answer, `above` judges one too many."""

    name: str
    limit: int
    far: int
    send: Callable[[MemoryPeer, int], object]
    above: Callable[[Message], bool]
    knobs: Knobs = Knobs()  # noqa: RUF009  # frozen, so it may be shared


def _refused(code: int) -> Callable[[Message], bool]:
    return lambda answer: code_of(answer) == code


def _failed(part: str) -> Callable[[Message], bool]:
    return lambda answer: part in text_of(answer, failed=True)


def _line_of(size: int) -> bytes:
    empty = json.dumps(MODERN.call(1, "echo", {"text": ""})).encode()
    padded = json.dumps(MODERN.call(1, "echo", {"text": "A" * (size - len(empty))})).encode()
    assert len(padded) == size
    return padded + b"\n"


async def _depth(peer: MemoryPeer, n: int) -> Message:
    # The message, its params and the arguments are three levels of the n.
    message = json.dumps(MODERN.call(1, "echo", {"text": "x", "deep": 0}))
    after = len(peer.seen)
    await peer.send_bytes(message.replace("0}", nested("[", "]", n - 3) + "}").encode() + b"\n")
    return await peer.until(lambda m: True, after=after)


async def _result(peer: MemoryPeer, n: int) -> Message:
    whole = json.dumps(LEGACY_RESULT, separators=(",", ":"))
    return await peer.request(LEGACY.call(1, "big", {"bytes": n - len(whole)}))


LEGACY_RESULT: Final = {"content": [{"type": "text", "text": ""}]}


async def _completions(peer: MemoryPeer, n: int) -> Message:
    params = {
        "ref": {"type": "ref/prompt", "name": "greet"},
        "argument": {"name": "who", "value": f"n{n}"},
    }
    return await peer.request(MODERN.request(1, "completion/complete", params))


async def _uri(peer: MemoryPeer, n: int) -> Message:
    uri = "mem://" + "a" * (n - len("mem://"))
    return await peer.request(LEGACY.request(1, "resources/subscribe", {"uri": uri}))


async def _subscriptions(peer: MemoryPeer, n: int) -> Message:
    for at in range(n):
        answer = await peer.request(
            LEGACY.request(at, "resources/subscribe", {"uri": f"mem://{at}"})
        )
    return answer


async def _listened(peer: MemoryPeer, n: int) -> Message:
    wanted = {"resourceSubscriptions": [f"mem://{at}" for at in range(n)]}
    after = len(peer.seen)
    await peer.send(MODERN.request(1, "subscriptions/listen", {"notifications": wanted}))
    return await peer.until(lambda m: True, after=after)


async def _listens(peer: MemoryPeer, n: int) -> Message:
    for at in range(n):
        await peer.send(MODERN.request(at, "subscriptions/listen", {"notifications": {}}))
    return await peer.until(lambda m: same(m, n - 1))


def same(message: Message, id: int) -> bool:
    """Say whether a message is about the listen of this id."""
    meta = cast(dict[str, Message], message.get("params", {})).get("_meta", {})
    return id in (message.get("id"), meta.get("io.modelcontextprotocol/subscriptionId"))


async def _in_flight(peer: MemoryPeer, n: int) -> Message:
    for at in range(n):
        await peer.send(LEGACY.call(at, "sleep", {"ms": 100, "tag": "t"}))
    return await peer.answer(n - 1)


async def _parked(peer: MemoryPeer, n: int) -> Message:
    for at in range(n):
        await peer.send(LEGACY.call(at, "ask_first", {"target": "t"}))
    return await peer.until(lambda m: m.get("id") == n - 1 or len(peer.seen) > n)


async def _batch(peer: MemoryPeer, n: int) -> Message:
    await peer.send([{"jsonrpc": "2.0", "id": at, "method": "ping"} for at in range(n)])
    return await peer.until(lambda m: m.get("id") in (None, n - 1))


BOUNDS: Final = [
    Bound("max_depth", 20, 2000, _depth, _refused(-32700), Knobs(limits={"max_depth": 20})),
    Bound(
        "max_result_bytes",
        4096,
        4_096_000,
        _result,
        _failed("cannot be sent"),
        Knobs(limits={"max_result_bytes": 4096}),
    ),
    Bound(
        "completion values",
        100,
        100_000,
        _completions,
        lambda answer: cast(Message, result_of(answer)["completion"])["hasMore"] is True,
    ),
    Bound("max_uri_bytes", 8192, 1_000_000, _uri, _refused(-32602)),
    Bound("max_subscriptions", 256, 600, _subscriptions, _refused(-31002)),
    Bound("resource subscriptions of a listen", 256, 10_000, _listened, _refused(-32602)),
    Bound("max_listens", 16, 100, _listens, _refused(-31002)),
    Bound("max_in_flight_per_connection", 16, 500, _in_flight, _failed("server_busy")),
    Bound("max_parked_elicitations", 32, 200, _parked, _failed("too many elicitations pending")),
    Bound("messages of a batch", 256, 10_000, _batch, _refused(-32600)),
]


@pytest.mark.parametrize("bound", BOUNDS, ids=lambda bound: bound.name)
def test_a_limit_holds_at_its_number(bound: Bound) -> None:
    """BC-081, the kind: L-1 and L are served, L+1 and far more get the answer of the limit."""
    with Exchange(bound.knobs) as exchange:
        for n in (bound.limit - 1, bound.limit, bound.limit + 1, bound.far):

            async def sends(peer: MemoryPeer, n: int = n) -> Message:
                await Handshake("2025-03-26" if "batch" in bound.name else "2025-11-25").greet(
                    peer, ASKABLE
                )
                before = len(peer.seen)
                found = await bound.send(peer, n)  # type: ignore[misc]  # it is a coroutine function
                assert peer.seen[before:], n
                return cast(Message, found)

            answer = exchange.run(sends)
            if n <= bound.limit:
                assert "error" not in answer, (n, answer)
                result = cast(Message, answer.get("result", {}))
                if bound.name != "max_depth":  # there it is an unknown argument
                    assert result.get("isError") is not True, (n, answer)
                completion = cast(Message, result.get("completion", {}))
                assert completion.get("hasMore", False) is False
            else:
                assert bound.above(answer), (n, answer)


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
def test_one_client_cannot_take_every_slot(era: Dialect) -> None:
    """BC-089. Five hundred calls of one client: each has one answer, and another is served."""
    with Exchange() as exchange:

        async def floods(alice: MemoryPeer, bob: MemoryPeer) -> None:
            for peer in (alice, bob):
                await era.greet(peer)
            await alice.send(
                *(era.call(at, "sleep", {"ms": 5000, "tag": "a"}) for at in range(500))
            )
            assert text_of(await bob.request(era.call(1, "echo", {"text": "x"}))) == "x"
            answers = [await alice.answer(at) for at in range(500)]
            busy = [m for m in answers if "server_busy" in json.dumps(m)]
            assert len(busy) == 500 - 16
            assert all('"retryable":true' in text_of(m, failed=True) for m in busy)
            assert len([m for m in alice.seen if "method" not in m]) == 500 + (era is LEGACY)

        exchange.run(floods, peers=2, principals=("alice", "bob"))


@pytest.mark.parametrize("past", [-1, 0, 1, 4_000_000])
def test_a_message_has_a_largest_size(past: int) -> None:
    """BC-037 and BC-081: answered as soon as it is too long, and the rest is skipped."""
    limit = 4096

    async def sends(peer: Peer) -> None:
        await peer.send_bytes(_line_of(limit + past))
        answer = await peer.until(lambda m: True)
        if past <= 0:
            assert text_of(answer).startswith("AAA")
        else:
            assert (answer["id"], code_of(answer)) == (None, -32600)
        after = await peer.request(MODERN.call(2, "echo", {"text": "alive"}))
        assert text_of(after) == "alive"

    StdioPeer.run(sends, Knobs(limits={"max_message_bytes": limit}))


def test_a_line_without_end_is_not_kept() -> None:
    """BC-081, the kind: what is past the limit is dropped while it arrives."""
    lines = Lines(1000)
    found = [line for _ in range(10_000) for line in lines.feed(b"A" * 999)]
    assert found == [TooLong(1998)]
    assert len(lines._pending) == 0


@pytest.mark.slow
def test_a_line_without_end_costs_no_memory() -> None:
    """BC-081, the kind: 200 MB without a newline, and the process stays as small as it was."""

    async def scenario() -> None:
        peer = await StdioPeer.start()
        try:
            await LEGACY.greet(peer)
            small = _peak_kib(peer.process.pid)
            for _ in range(200):
                await peer.send_bytes(b"A" * 1_000_000)
            assert code_of(await peer.answer(None)) == -32600
            await peer.send_bytes(b"\n")
            answer = await peer.request(LEGACY.call(1, "echo", {"text": "alive"}))
            assert text_of(answer) == "alive"
            grown = _peak_kib(peer.process.pid) - small
            assert grown < 4 * 1024 * 3, f"{grown} KiB"
            assert await peer.finish() == 0
        finally:
            await peer.kill()

    asyncio.run(scenario())


def _peak_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        pytest.skip("there is no /proc here")
    line = next(x for x in status.read_text("utf-8").splitlines() if x.startswith("VmHWM"))
    return int(line.split()[1])


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
def test_a_tool_that_asks_for_ever_is_stopped(era: Dialect) -> None:
    """ours: at most ten rounds."""
    with Exchange() as exchange:

        async def again(arguments: object, context: Context) -> InputRequired:
            return InputRequired({"q": Elicit("?", {"type": "object", "properties": {}})})

        exchange.fixture.server.registry.register(Tool("again", "Asks.", {"type": "object"}, again))

        async def answers(peer: MemoryPeer) -> None:
            await era.greet(peer, ASKABLE)
            call = era.call(1, "again", capabilities=ASKABLE)
            rounds = 0
            question = await era.put(peer, call)
            while True:
                rounds += 1
                after = len(peer.seen)
                if era is MODERN:
                    reply = await peer.request(MODERN.retry(call, question, accept()))
                    if "inputRequests" not in result_of(reply):
                        break
                    state = result_of(reply)["requestState"]
                    question = Question(1, "q", {}, state)
                else:
                    answer = {"jsonrpc": "2.0", "id": question.id, "result": accept()}
                    await peer.send(answer)
                    reply = await peer.until(lambda m: True, after=after)
                    if "method" not in reply:
                        break
                    question = Question(reply["id"], "q", {})
            assert rounds == 10
            assert "rounds" in text_of(reply, failed=True)

        exchange.run(answers)


def test_a_state_too_long_to_carry_is_a_failure() -> None:
    """ours: 4 KiB travel through the client, no more."""
    with Exchange() as exchange:

        async def keeps(arguments: object, context: Context) -> InputRequired:
            form: Message = {"type": "object", "properties": {}}
            return InputRequired({"q": Elicit("?", form)}, state="s" * 5000)

        exchange.fixture.server.registry.register(Tool("keeps", "Asks.", {"type": "object"}, keeps))

        async def calls(peer: MemoryPeer) -> None:
            answer = await peer.request(MODERN.call(1, "keeps", capabilities=ASKABLE))
            assert "too long" in text_of(answer, failed=True)

        exchange.run(calls)


def test_a_definition_has_a_largest_size() -> None:
    """ours: what is listed is bounded where it is registered."""

    async def nothing(arguments: object, context: object) -> str:
        return ""

    registry = Fixture().server.registry
    with pytest.raises(ConfigurationError, match="big"):
        registry.register(Tool("big_one", "d" * 2_000_000, {"type": "object"}, nothing))
    assert registry.tool("big_one") is None


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
def test_a_page_has_a_largest_size(era: Dialect) -> None:
    """MCP server/utilities/pagination: whatever a client asks for, a page is a page."""
    with Exchange(Knobs(page_size=7)) as exchange:

        async def pages(peer: MemoryPeer) -> None:
            await era.greet(peer)
            names: list[object] = []
            params: Message = {"limit": 10_000, "pageSize": 10_000}
            while True:
                result = result_of(await peer.request(era.request("p", "tools/list", params)))
                tools = cast(list[Message], result["tools"])
                assert len(tools) <= 7
                names += [tool["name"] for tool in tools]
                if "nextCursor" not in result:
                    break
                params = {"cursor": result["nextCursor"]}
            hidden = {"off", "admin_only", "ask_first"}
            known = [t.name for t in exchange.fixture.server.registry.tools()]
            assert names == [name for name in known if name not in hidden]

        exchange.run(pages)


def test_a_tool_result_of_many_items_is_bounded_as_a_whole() -> None:
    """ours: not each item, the result."""
    with Exchange(Knobs(limits={"max_result_bytes": 4096})) as exchange:

        async def many(arguments: object, context: object) -> ToolResult:
            return ToolResult([Text(text="x" * 100)] * 100)

        exchange.fixture.server.registry.register(Tool("many", "Many.", {"type": "object"}, many))

        async def calls(peer: MemoryPeer) -> None:
            answer = await peer.request(MODERN.call(1, "many"))
            assert "cannot be sent" in text_of(answer, failed=True)

        exchange.run(calls)
