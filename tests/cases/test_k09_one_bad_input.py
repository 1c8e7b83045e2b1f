"""K09: one bad input, or one bad handler, ends nobody but itself.

An exception that left the read loop, a task group or a handler took the process with it.
"""

from __future__ import annotations

import json

import pytest

from tests.cases.dialects import BOTH_ERAS, STDIO, Dialect, case, code_of, result_of, text_of
from tests.cases.fixture_server import ODD_VALUES
from tests.cases.peers import Exchange, MemoryPeer, Message, Peer

# Lines that are no message, or one that cannot be served.
BAD_LINES = [
    b"{this is not json",
    b'{"jsonrpc":"2.0","id":2,"method":"tools/list"',
    b"",
    b"   \t ",
    b"}{",
    b"\x00",
    b"\xff\xfe{}",
    b'"\xc3\x28"',
    b"nul",
    b"[",
    b"]" * 1000,
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b"-",
    b"1e999",
    b"NaN",
    b'{"jsonrpc":"2.0","id":1e400,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"\\ud800"}}',
    b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"echo","name":"boom"}}',
    b'{"jsonrpc":"2.0","id":9,"method":"\\u0000"}',
    b"9" * 5000,
    b'{"jsonrpc":"2.0","id":9,"method":"initialize","params":{"capabilities":' + b"[]" * 1 + b"}}",
]


@case(wires=[STDIO])
async def test_malformed_lines_are_answered_and_the_process_lives(peer: Peer, era: Dialect) -> None:
    """BC-031. JSON-RPC 2.0: -32700; MCP 2026-07-28 stdio: nothing but messages comes out."""
    await era.greet(peer)
    for line in (b"{this is not json", b'{"jsonrpc":"2.0","id":2,"method":"tools/list"', b"}{"):
        await peer.send_bytes(line + b"\n")
    await peer.send_bytes(b"\n   \t \n")
    assert "tools" in result_of(await peer.request(era.request(3, "tools/list")))
    # The second is cut off, yet says clearly whose request it is.
    errors = [(m["id"], code_of(m)) for m in peer.seen if "error" in m]
    assert errors in (
        [(None, -32700), (None, -32700), (None, -32700)],
        [(None, -32700), (2, -32700), (None, -32700)],
    )


FAILING: list[tuple[str, Message, str | None]] = [
    ("boom", {}, "Error: RuntimeError"),
    ("boom_secret", {}, "Error: RuntimeError"),
    ("tool_error", {}, "try another city"),
    ("exits", {}, "Error: SystemExit"),
    ("cancels_itself", {}, "Error: RuntimeError"),
    ("no_args", {"a": 1}, None),
    ("out_array", {"mode": "wrong"}, None),
    ("out_point", {"mode": "wrong"}, None),
]


@case()
async def test_a_failing_tool_fails_its_own_call(peer: Peer, era: Dialect) -> None:
    """BC-049. MCP server/tools §Error Handling; whatever is raised, SystemExit too."""
    await era.greet(peer)
    for at, (name, arguments, text) in enumerate(FAILING):
        said = text_of(await peer.request(era.call(at, name, arguments)), failed=True)
        assert text is None or said == text
        assert "hunter2" not in said
        assert text_of(await peer.request(era.call("good", "echo", {"text": "ok"}))) == "ok"


@case()
async def test_what_returns_nothing_is_a_result(peer: Peer, era: Dialect) -> None:
    """BC-049: a tool, a resource and a prompt without a value are no crash."""
    await era.greet(peer)
    assert result_of(await peer.request(era.call(1, "returns_none")))["content"] == []
    read = await peer.request(era.request(2, "resources/read", {"uri": "mem://none"}))
    assert result_of(read)["contents"]
    got = await peer.request(era.request(3, "prompts/get", {"name": "none"}))
    assert result_of(got)["messages"] == []
    assert text_of(await peer.request(era.call("good", "echo", {"text": "ok"}))) == "ok"


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
@pytest.mark.parametrize("line", BAD_LINES, ids=lambda line: repr(line[:40]))
def test_neighbours_do_not_notice_a_bad_line(era: Dialect, line: bytes) -> None:
    """BC-031, the kind: between two good calls of two clients, on one of their connections."""
    with Exchange() as exchange:

        async def together(first: MemoryPeer, second: MemoryPeer) -> None:
            for peer in (first, second):
                await era.greet(peer)
            for peer in (first, second):
                await peer.send(era.call(1, "sleep", {"ms": 500, "tag": "before"}))
            answers = await first.exchange(line + b"\n")
            for peer in (first, second):
                assert text_of(await peer.answer(1)) == "before"
                after = await peer.request(era.call(3, "echo", {"text": "after"}))
                assert text_of(after) == "after"
            # The call of the same client that ran meanwhile is answered in the same second.
            assert len([m for m in answers if "error" in m]) <= 1
            assert [m for m in second.seen if "error" in m] == []

        exchange.run(together, peers=2)


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
def test_neighbours_do_not_notice_a_result_that_cannot_be_sent(era: Dialect) -> None:
    """BC-147, as a neighbour: the writer is shared, the failure is not."""
    with Exchange() as exchange:

        async def together(first: MemoryPeer, second: MemoryPeer) -> None:
            for peer in (first, second):
                await era.greet(peer)
            for mode in ODD_VALUES:
                answer = await first.request(era.call(mode, "out", {"mode": mode}))
                assert len(first.answers(mode)) == 1, answer
                for peer in (first, second):
                    good = await peer.request(era.call("good", "echo", {"text": mode}))
                    assert text_of(good) == mode

        exchange.run(together, peers=2)


def test_a_greeting_that_makes_no_sense_can_be_repeated() -> None:
    """ours: a refused `initialize` has not initialized anything."""
    with Exchange() as exchange:

        async def greets(peer: MemoryPeer) -> None:
            for params in ([1], "text", {"protocolVersion": 5}, {}):
                message: Message = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}
                line = json.dumps({**message, "params": params}).encode() + b"\n"
                (answer,) = await peer.exchange(line)
                assert code_of(answer) == -32602
            await BOTH_ERAS[0].greet(peer)

        exchange.run(greets)
