"""K27: every answer is strict JSON, and the same mistake has the same code everywhere.

NaN and lone surrogates ended the writer, base64 came in the wrong alphabet, and an unknown tool
was an error here, a result there.
"""

from __future__ import annotations

import base64
import json
import math
from typing import Final, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raxol_mcp import Image, Resource, Text, Tool, ToolResult
from tests.cases.dialects import (
    ASKABLE,
    BOTH_ERAS,
    MODERN,
    Dialect,
    case,
    code_of,
    result_of,
    text_of,
)
from tests.cases.fixture_server import BYTES, ODD_VALUES, Knobs
from tests.cases.peers import Exchange, MemoryPeer, Message, Peer


@case()
async def test_unknown_names_have_one_code(peer: Peer, era: Dialect) -> None:
    """BC-145. MCP server/tools and server/prompts §Error Handling.

    -32602 in the stateless era; the handshake era keeps -32601 for an unknown tool (ADR-0010).
    """
    await era.greet(peer)
    calls: list[tuple[str, Message, int]] = [
        ("tools/call", {"name": "no_such_tool", "arguments": {}}, era.unknown_tool),
        ("tools/call", {"name": "", "arguments": {}}, era.unknown_tool),
        ("tools/call", {"arguments": {}}, -32602),
        ("tools/call", {"name": "echo", "arguments": [1]}, -32602),
        ("prompts/get", {"name": "nope"}, -32602),
        ("prompts/get", {"name": "greet", "arguments": {}}, -32602),
        ("prompts/get", {"name": "greet"}, -32602),
        ("prompts/get", {"name": "greet", "arguments": {"who": 7}}, -32602),
        ("prompts/get", {"name": "greet", "arguments": {"who": "x", "zzz": "y"}}, -32602),
        ("resources/read", {"uri": "mem://nope"}, era.unknown_resource),
        ("resources/read", {"uri": ""}, era.unknown_resource),
        ("resources/read", {"uri": "not a uri"}, era.unknown_resource),
        ("resources/read", {}, -32602),
        ("tools/list", {"cursor": "nope"}, -32602),
        (
            "completion/complete",
            {
                "ref": {"type": "ref/prompt", "name": "nope"},
                "argument": {"name": "x", "value": ""},
            },
            -32602,
        ),
    ]
    for id, (method, params, code) in enumerate(calls):
        answer = await peer.request(era.request(id, method, params))
        assert code_of(answer) == code, (method, params)
        message = str(cast(Message, answer["error"])["message"])
        assert "echo" not in message, "names of what is there"
        assert "Traceback" not in message


@case()
async def test_what_json_cannot_carry_is_a_failure_of_its_call(peer: Peer, era: Dialect) -> None:
    """BC-147. RFC 8259 §6 and §8.2; the peer parses every line strictly."""
    await era.greet(peer)
    for id, mode in enumerate(ODD_VALUES):
        answer = await peer.request(era.call(id, "out", {"mode": mode}))
        assert len(peer.answers(id)) == 1
        if mode in SENDABLE:
            assert text_of(answer) == SENDABLE[mode]
        else:
            assert text_of(answer, failed=True).startswith("Error: ")
    nan = json.dumps(era.call(90, "echo", {"text": "x", "n": math.nan})).encode()
    assert b"NaN" in nan
    await peer.send_bytes(nan + b"\n")
    assert code_of(await peer.answer(90)) == -32700
    lone = json.dumps(era.call(91, "echo", {"text": "\ud83d"})).encode()
    assert b"\\ud83d" in lone
    await peer.send_bytes(lone + b"\n")
    assert code_of(await peer.answer(91)) == -32700
    assert text_of(await peer.request(era.call(92, "echo", {"text": "alive"}))) == "alive"


# The documented rules: what msgspec writes; see `raxol_mcp.server.content`.
SENDABLE: Final = {
    "bytes": '"/wA="',
    "set": "[1]",
    "datetime": '"2026-07-28T00:00:00Z"',
    "plain": '{"a":1}',
}


@case(eras=[MODERN], knobs=Knobs(page_size=10))
async def test_cache_hints_are_there_and_the_same_on_every_page(peer: Peer, era: Dialect) -> None:
    """BC-153. MCP 2026-07-28 basic/patterns/caching; ours by default: ttl 0, private."""
    first = result_of(await peer.request(era.request(1, "tools/list")))
    results = [
        first,
        result_of(
            await peer.request(era.request(2, "tools/list", {"cursor": first["nextCursor"]}))
        ),
        result_of(await peer.request(era.request(3, "resources/read", {"uri": "mem://a"}))),
        result_of(await peer.request(era.request(4, "server/discover"))),
        result_of(await peer.request(era.request(5, "prompts/list"))),
        result_of(await peer.request(era.request(6, "resources/templates/list"))),
        result_of(await peer.request(era.request(7, "resources/list"))),
    ]
    for result in results:
        assert (result["ttlMs"], result["cacheScope"]) == (0, "private")
        assert type(result["ttlMs"]) is int
    asked = await peer.request(era.call(8, "ask", {"q": "?"}, capabilities=ASKABLE))
    called = await peer.request(era.call(9, "echo", {"text": "x"}))
    for answer in (asked, called):
        assert not {"ttlMs", "cacheScope"} & result_of(answer).keys()


@case()
async def test_bytes_travel_in_standard_base64(peer: Peer, era: Dialect) -> None:
    """BC-165. RFC 4648 §4: standard alphabet, padded, without line breaks, no data: prefix."""
    await era.greet(peer)

    def decoded(text: object) -> bytes:
        assert isinstance(text, str)
        assert not set(text) & set("-_\n\r ")
        return base64.b64decode(text, validate=True)

    for uri, expected in (("mem://bin", BYTES), ("mem://empty", b"")):
        read = await peer.request(era.request(1, "resources/read", {"uri": uri}))
        (contents,) = cast(list[Message], result_of(read)["contents"])
        assert decoded(contents["blob"]) == expected
        assert contents["mimeType"] == "application/octet-stream"
        assert "text" not in contents
    called = await peer.request(era.call(2, "img"))
    (item,) = cast(list[Message], result_of(called)["content"])
    assert (item["type"], item["mimeType"]) == ("image", "image/png")
    assert decoded(item["data"]) == BYTES


@pytest.mark.parametrize("size", [0, 1, 2, 3, 5 * 1024 * 1024])
def test_bytes_of_any_size_come_back(size: int) -> None:
    """BC-165, the kind: no byte at all, one that needs padding, and 5 MB."""
    data = (BYTES * (size // len(BYTES) + 1))[:size]
    with Exchange() as exchange:

        async def blob(context: object) -> bytes:
            return data

        async def image(arguments: object, context: object) -> Image:
            return Image(data, "image/png")

        registry = exchange.fixture.server.registry
        registry.register(Resource("mem://sized", "sized", blob))
        registry.register(Tool("sized", "Sized.", {"type": "object"}, image))

        async def reads(peer: MemoryPeer) -> None:
            read = await peer.request(MODERN.request(1, "resources/read", {"uri": "mem://sized"}))
            (contents,) = cast(list[Message], result_of(read)["contents"])
            assert base64.b64decode(str(contents["blob"]), validate=True) == data
            (item,) = cast(
                list[Message], result_of(await peer.request(MODERN.call(2, "sized")))["content"]
            )
            assert base64.b64decode(str(item["data"]), validate=True) == data

        exchange.run(reads)


@case()
async def test_completions_have_their_limits(peer: Peer, era: Dialect) -> None:
    """BC-167. MCP server/utilities/completion: at most 100 values."""
    await era.greet(peer)

    def complete(id: int, ref: Message, name: str, value: str) -> Message:
        argument = {"name": name, "value": value}
        return era.request(id, "completion/complete", {"ref": ref, "argument": argument})

    greet: Message = {"type": "ref/prompt", "name": "greet"}
    for n in (0, 1, 99, 100, 101, 250):
        got = result_of(await peer.request(complete(1, greet, "who", f"n{n}")))["completion"]
        completion = cast(Message, got)
        assert completion["values"] == [f"n{at}" for at in range(min(n, 100))]
        assert (completion["total"], completion["hasMore"]) == (n, n > 100)
    docs: Message = {"type": "ref/resource", "uri": "file:///docs/{name}"}
    outside = result_of(await peer.request(complete(2, docs, "name", "../")))["completion"]
    assert cast(Message, outside)["values"] == []
    zzz = {"ref": {"type": "ref/zzz"}, "argument": {"name": "a", "value": ""}}
    assert code_of(await peer.request(era.request(3, "completion/complete", zzz))) == -32602
    no_argument = {"ref": greet}
    answer = await peer.request(era.request(4, "completion/complete", no_argument))
    assert code_of(answer) == -32602
    # A string is not a list of its letters; what a completer raises stays with us.
    for id, value in ((5, "string"), (6, "raise")):
        failed = await peer.request(complete(id, greet, "who", value))
        assert code_of(failed) == -32603
        assert "hunter2" not in json.dumps(failed)
    unknown = result_of(await peer.request(complete(7, greet, "zzz", "")))["completion"]
    assert cast(Message, unknown)["values"] == []


# -- whatever a tool returns -----------------------------------------------------------------------

JSON: Final = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(exclude_categories=["Cs"])),
        st.sampled_from(["\u2028", "\0", "\x7f", "\uffff", "é", "e\u0301", "</script>", "\\", '"']),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4),
    ),
    max_leaves=12,
)
NO_JSON: Final = st.sampled_from(
    [math.nan, math.inf, -math.inf, "\ud800", "a\udfffb", 2**64, -(2**63) - 1, object(), {1j: 1}]
)


def test_whatever_a_tool_returns_is_sent_whole_or_not_at_all() -> None:
    """BC-147, the kind: any JSON comes back equal; one bad value deep inside fails the call."""
    with Exchange() as exchange:
        value: list[object] = [None]

        async def returns(arguments: object, context: object) -> object:
            return value[0]

        async def structured(arguments: object, context: object) -> ToolResult:
            return ToolResult([Text(text="x")], structured={"value": value[0]})

        for name, function in (("returns", returns), ("structured", structured)):
            exchange.fixture.server.registry.register(
                Tool(name, "Returns.", {"type": "object"}, function)
            )

        async def calls(peer: MemoryPeer) -> tuple[Message, Message]:
            return (
                await peer.request(MODERN.call(1, "returns")),
                await peer.request(MODERN.call(2, "structured")),
            )

        @given(JSON)
        @settings(max_examples=150)
        def comes_back(given_value: object) -> None:
            value[0] = given_value
            returned, held = exchange.run(calls)
            if isinstance(given_value, str):
                assert text_of(returned) == given_value
            elif given_value is None:
                assert result_of(returned)["content"] == []
            else:
                assert json.loads(text_of(returned)) == given_value
            assert result_of(held)["structuredContent"] == {"value": given_value}

        @given(JSON, NO_JSON, st.booleans())
        @settings(max_examples=100)
        def fails(around: object, bad: object, in_a_list: bool) -> None:
            value[0] = [around, bad] if in_a_list else {"a": around, "b": [bad]}
            returned, held = exchange.run(calls)
            assert text_of(returned, failed=True).startswith("Error: ")
            assert text_of(held, failed=True).startswith("Error: ")

        comes_back()
        fails()


def test_an_error_of_a_read_names_its_method_and_nothing_else() -> None:
    """ours: what a callback raised stays in the log; the code is the same on every read."""
    with Exchange() as exchange:
        for era in BOTH_ERAS:

            async def reads(peer: MemoryPeer, era: Dialect = era) -> None:
                await era.greet(peer)
                answer = await peer.request(era.request(1, "resources/read", {"uri": "mem://boom"}))
                assert answer["error"] == {
                    "code": -32603,
                    "message": "MCP callback failed",
                    "data": {"error": "callback_crashed", "method": "resources/read"},
                }

            exchange.run(reads)
