"""K05: what the headers say and what the body says is one thing, or nothing is done.

A call ran although a header was missing, a wrapped value was compared as it was written, spaces
broke correct requests, and of two headers each reader took another.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import Callable
from typing import Final

import pytest

from tests.cases.dialects import LEGACY, MODERN, code_of, result_of, text_of
from tests.cases.http.sockets import serving
from tests.cases.http_peers import HttpExchange, HttpPeer, headers_of
from tests.cases.peers import Message
from tests.transports.http.client import Reply

MISMATCH: Final = (400, -32020)
CALL: Final = MODERN.call(1, "echo", {"text": "x"})


def refusal(reply: Reply) -> tuple[int, object]:
    """Check that a refused request got no session, and return its status and code."""
    assert "mcp-session-id" not in reply.headers
    return reply.status, code_of(reply.json())


@pytest.mark.parametrize(
    "changes",
    [
        {"mcp-protocol-version": None},
        {"mcp-method": None},
        {"mcp-name": None},
        *({"mcp-protocol-version": f"{version}"} for version in ("2024-11-05", "2025-03-26")),
        *({"mcp-protocol-version": f"{version}"} for version in ("2025-06-18", "2025-11-25")),
        {"mcp-protocol-version": "2026-07-29"},
        {"mcp-protocol-version": ""},
        {"mcp-method": "tools/list"},
        {"mcp-name": "boom"},
    ],
    ids=str,
)
@pytest.mark.parametrize("session", [False, True], ids=["", "in a session"])
def test_a_header_that_is_missing_or_of_another_version_is_refused(
    changes: dict[str, str | None], session: bool
) -> None:
    """BC-015. MCP 2026-07-28 streamable-http §Server Validation; no session comes of it."""
    with HttpExchange() as exchange:

        async def calls(peer: HttpPeer) -> None:
            if session:
                await LEGACY.greet(peer)
            headers = {**changes, "mcp-session-id": peer.session.get("mcp-session-id")}
            reply = await peer.say(CALL, headers)
            assert refusal(reply) == MISMATCH
            assert reply.json()["id"] == 1
            assert exchange.journal == []
            assert exchange.app.stats()["sessions"] == session

        exchange.run(calls)


@pytest.mark.parametrize(
    ("uri", "header", "fits"),
    [
        ("mem://测试", "=?base64?bWVtOi8v5rWL6K+V?=", True),
        ("mem://测试", "=?base64?bWVtOi8v5rWL6K+V", False),
        ("mem://测试", "=?base64?!!!?=", False),
        ("mem://测试", "=?BASE64?bWVtOi8v5rWL6K+V?=", False),
        ("mem://测试", "=?base64?bWVtOi8v5rWL6K-V?=", False),
        ("mem://测试", "mem://测试".encode().decode("latin-1"), False),
        ("mem://测试", "mem://%E6%B5%8B%E8%AF%95", False),
        ("mem://%E6%B5%8B%E8%AF%95", "mem://%E6%B5%8B%E8%AF%95", True),
        ("mem://a", "=?base64?bWVtOi8vYQ==?=", True),
        ("mem://a", "=?base64?bWVtOi8vYQ?=", False),
        ("mem://a", "=?base64?bWVtOi8vYR==?=", False),
        ("mem://a", "=?base64?bWVtOi8v YQ==?=", False),
        ("mem://a", "=?base64?bWVtOi8vYg==?=", False),
        ("mem://a", "=?base64??=", False),
    ],
)
def test_a_wrapped_name_is_compared_as_what_it_says(uri: str, header: str, fits: bool) -> None:
    """BC-017. MCP 2026-07-28 streamable-http §Value Encoding: decoded, in its only spelling."""
    with HttpExchange() as exchange:

        async def reads(peer: HttpPeer) -> None:
            read = MODERN.request(1, "resources/read", {"uri": uri})
            reply = await peer.say(read, {"mcp-name": header})
            if fits:
                assert "contents" in result_of(reply.json())
            else:
                assert refusal(reply) == MISMATCH

        exchange.run(reads)


def test_space_around_a_value_is_no_part_of_it() -> None:
    """BC-019. RFC 9110 §5.5, as HTTP servers hand it on, and on a socket."""
    padded = {
        "mcp-protocol-version": "\t2026-07-28 \t",
        "mcp-method": "  tools/call ",
        "mcp-name": "\techo\t",
    }
    with HttpExchange() as exchange:

        async def calls(peer: HttpPeer) -> None:
            assert text_of((await peer.say(CALL, padded)).json()) == "x"

        exchange.run(calls)

    async def calls_on_a_socket() -> None:
        async with serving() as served:
            lines = "".join(f"{key}:{value}\r\n" for key, value in padded.items()).encode()
            head = b"Host:  127.0.0.1 \r\nContent-Type:\tapplication/json \r\nAccept: */*\r\n"
            reply = await served.ask("POST", "/mcp", head + lines, CALL)
            assert text_of(reply.json()) == "x"

    asyncio.run(calls_on_a_socket())


# -- one header of a good request is changed -------------------------------------------------------

ARGUMENTS: Final = {"region": "eu west", "count": 42, "flag": True}
HDR: Final = MODERN.call(1, "hdr", ARGUMENTS)
GOOD: Final[list[tuple[str, str]]] = [
    (name, str(value)) for name, value in headers_of(HDR).items() if value is not None
] + [("mcp-param-region", "eu west"), ("mcp-param-count", "42"), ("mcp-param-flag", "true")]
MIRRORED: Final = [name for name, _ in GOOD if name.startswith("mcp-")]
WRAPPABLE: Final = {"mcp-name", "mcp-param-region", "mcp-param-count", "mcp-param-flag"}

Lines = list[tuple[str, str]]
Change = Callable[[str, str], Lines]


def wrap(value: str, opening: str = "=?base64?") -> str:
    """Wrap a value, whether it has to be or not."""
    return f"{opening}{b64encode(value.encode()).decode()}?="


# What one line becomes, and whether the request is still a good one.
CHANGES: Final[dict[str, tuple[Change, Callable[[str], bool]]]] = {
    "as it is": (lambda name, value: [(name, value)], lambda name: True),
    "the name in capitals": (lambda name, value: [(name.upper(), value)], lambda name: True),
    "padded": (lambda name, value: [(name, f" \t{value}\t ")], lambda name: True),
    "wrapped": (lambda name, value: [(name, wrap(value))], lambda name: name in WRAPPABLE),
    "padded and wrapped": (
        lambda name, value: [(name, f" {wrap(value)} ")],
        lambda name: name in WRAPPABLE,
    ),
    "left out": (lambda name, value: [], lambda name: False),
    "empty": (lambda name, value: [(name, "")], lambda name: False),
    "twice": (lambda name, value: [(name, value)] * 2, lambda name: False),
    "twice, the other first": (
        lambda name, value: [(name, "other"), (name, value)],
        lambda name: False,
    ),
    "in another case": (lambda name, value: [(name, value.swapcase())], lambda name: False),
    "another value": (lambda name, value: [(name, "other")], lambda name: False),
    "one letter more": (lambda name, value: [(name, f"{value}x")], lambda name: False),
    "listed": (lambda name, value: [(name, f"{value}, {value}")], lambda name: False),
    "quoted": (lambda name, value: [(name, f'"{value}"')], lambda name: False),
    "percent-encoded": (
        lambda name, value: [(name, "".join(f"%{ord(letter):02X}" for letter in value))],
        lambda name: False,
    ),
    "another value wrapped": (lambda name, value: [(name, wrap("other"))], lambda name: False),
    "wrapped twice": (lambda name, value: [(name, wrap(wrap(value)))], lambda name: False),
    "wrapped, markers in capitals": (
        lambda name, value: [(name, wrap(value, "=?BASE64?"))],
        lambda name: False,
    ),
    "wrapped with a letter of no alphabet": (
        lambda name, value: [(name, wrap(value).replace("?=", "!?="))],
        lambda name: False,
    ),
    "wrapped without its end": (lambda name, value: [(name, wrap(value)[:-2])], lambda name: False),
    "a control character": (lambda name, value: [(name, f"{value}\x7f")], lambda name: False),
    "a letter beyond ASCII": (lambda name, value: [(name, f"{value}\xe9")], lambda name: False),
    "NUL": (lambda name, value: [(name, f"{value}\x00")], lambda name: False),
}
# Digits and version numbers are the same in every case.
CASELESS: Final = {"mcp-protocol-version", "mcp-param-count"}


def changed(name: str, change: Change) -> Lines:
    """Write the headers of the good request, with one of them changed."""
    found: Lines = []
    for key, value in GOOD:
        found += change(key, value) if key == name else [(key, value)]
    return found


@pytest.mark.parametrize("name", MIRRORED)
@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_header_is_the_same_value_or_refused(name: str, change: str) -> None:
    """BC-015, BC-017 and BC-019, the kind: 200, or -32020 and nothing runs."""
    made, fits = CHANGES[change]
    good = fits(name) or (change == "in another case" and name in CASELESS)
    with HttpExchange() as exchange:

        async def calls(peer: HttpPeer) -> None:
            body = json.dumps(HDR).encode()
            reply = await peer.http.send("POST", "/mcp", changed(name, made), body)
            if good:
                assert json.loads(text_of(reply.json())) == ARGUMENTS
            else:
                assert refusal(reply) == MISMATCH
                assert reply.json()["id"] in (1, None), "None: nobody has read the body"
                assert exchange.journal == []

        exchange.run(calls)


@pytest.mark.parametrize(
    ("arguments", "headers", "fits"),
    [
        ({}, {}, True),
        ({"region": None}, {}, True),
        ({"region": ""}, {"mcp-param-region": ""}, True),
        ({"region": ""}, {}, False),
        ({}, {"mcp-param-region": "eu"}, False),
        ({"region": None}, {"mcp-param-region": ""}, False),
        ({"region": "=?base64?eA==?="}, {"mcp-param-region": "=?base64?eA==?="}, False),
        ({"region": " x"}, {"mcp-param-region": " x"}, False),
        ({"region": "Grüße"}, {"mcp-param-region": "=?base64?R3LDvMOfZQ==?="}, True),
        ({"count": 42}, {"mcp-param-count": "42.0"}, True),
        ({"count": 42}, {"mcp-param-count": "42.5"}, False),
        ({"count": 42}, {"mcp-param-count": "4.2e1"}, False),
        ({"count": 42}, {"mcp-param-count": "042"}, False),
        ({"count": 42}, {"mcp-param-count": "+42"}, False),
        ({"count": 42}, {"mcp-param-count": "٤٢".encode().decode("latin-1")}, False),
        ({"count": 0}, {"mcp-param-count": "-0"}, True),
        ({"count": 2**53}, {"mcp-param-count": str(2**53)}, False),
        ({"flag": False}, {"mcp-param-flag": "false"}, True),
        ({"flag": False}, {}, False),
        ({"flag": False}, {"mcp-param-flag": "0"}, False),
        ({"flag": True}, {"mcp-param-flag": "True"}, False),
        ({"flag": True}, {"mcp-param-flag": "1"}, False),
    ],
)
def test_an_argument_is_mirrored_as_what_it_is(
    arguments: Message, headers: dict[str, str | None], fits: bool
) -> None:
    """BC-017, the kind, for `x-mcp-header`: null is absent, 0 and false are values."""
    with HttpExchange() as exchange:

        async def calls(peer: HttpPeer) -> None:
            reply = await peer.say(MODERN.call(1, "hdr", arguments), headers)
            if fits:
                assert "result" in reply.json()
            else:
                assert refusal(reply) == MISMATCH

        exchange.run(calls)


def test_a_path_says_nothing_about_a_message() -> None:
    """K05: neither a query nor a session counts beside what the message says of itself."""
    with HttpExchange() as exchange:

        async def calls(peer: HttpPeer) -> None:
            await LEGACY.greet(peer)
            session = peer.session["mcp-session-id"]
            for path in ("/mcp?method=tools/list", "/mcp?session_id=x", f"/mcp?token={session}"):
                reply = await peer.say(CALL, {"mcp-session-id": session}, path=path)
                assert text_of(reply.json()) == "x"
                assert "mcp-session-id" not in reply.headers

        exchange.run(calls)
