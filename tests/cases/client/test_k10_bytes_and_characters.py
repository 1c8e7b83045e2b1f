"""K10: what a server writes are bytes, in pieces of any size, and one line end is not the other.

Readers that split on every line end of Unicode, decoded each piece by itself, or waited for the
one line end they knew, lost results or never saw them.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_mcp.testing.virtual_loop import run_virtual
from tests.client.misbehaviour.attempts import Error, Says, attempt, echo
from tests.client.peers.clients import http_client, memory_client, pipe_client
from tests.client.peers.script import on, raw, reply, script, silent, sse

TEXT = "a\u2028b\u0085c\u2029d — é 读取 🎉"


def answer(text: str) -> str:
    """Write an answer as a server does that escapes nothing it need not."""
    content = json.dumps([{"type": "text", "text": text}], ensure_ascii=False)
    return f'{{"jsonrpc":"2.0","id":$ID,"result":{{"content":{content}}}}}'


@pytest.mark.parametrize(
    "locale", [{"LANG": "C", "LC_ALL": "C"}, {"LANG": "de_DE.CP1252"}], ids=str
)
def test_lines_are_bytes_whatever_the_locale(
    locale: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BC-097: by the byte, with CR LF, with a mark in front, and in any locale."""
    for name, value in locale.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("PYTHONUTF8", raising=False)

    async def tries() -> None:
        data = script(
            "legacy",
            on("tools/call", raw(answer(TEXT), "\r\n", chunk=1, pause=0.0001), times=1),
            on("tools/call", raw(b"\xef\xbb\xbf"), raw(answer(TEXT), "\n"), times=1),
            on("tools/call", raw(answer("A")[:-9], b"\xff", answer("A")[-9:], "\n"), times=1),
        )
        async with pipe_client(data, tmp_path) as (client, _):
            assert await attempt(echo(client)) == Says(TEXT)
            assert await attempt(echo(client)) == Says(TEXT)
            invalid = Error("RequestFailed", ("invalid_response", "tools/call"))
            assert await attempt(echo(client)) == invalid
            assert await attempt(echo(client, "z")) == Says("z")

    asyncio.run(tries())


@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n", "\r\r", "\n\r\n", "\r\n\n"], ids=repr)
@pytest.mark.parametrize(
    "start", [b"data: ", b"\xef\xbb\xbfdata:", b"event: message\r\ndata: "], ids=repr
)
def test_an_event_ends_with_its_blank_line_and_not_with_the_stream(start: bytes, end: str) -> None:
    """BC-101. WHATWG HTML §9.2.6: each of the three line ends, and one mark in front."""

    async def tries() -> None:
        event: list[str | bytes] = [start, answer(TEXT), end]
        data = script(
            "legacy",
            # The stream stays open: who waits for its end waits for ever.
            *(
                on("tools/call", sse(*event, chunk=chunk), silent(), times=1)
                for chunk in (1, 2, 3, 7, 0)
            ),
        )
        async with http_client(data) as (client, _):
            for _ in range(5):
                assert await attempt(echo(client)) == Says(TEXT)
            assert await attempt(echo(client, "next")) == Says("next")

    asyncio.run(tries())


def test_an_event_may_be_cut_anywhere() -> None:
    """BC-101: at every third position of its bytes, in two pieces."""
    whole = f"event: message\r\ndata: {answer('é🎉')}\r\n\r\n".encode()
    # The placeholder of the id is one piece.
    cuts = [at for at in range(0, len(whole), 3) if whole.find(b"$ID", at - 2, at + 2) < 0]

    async def tries() -> None:
        rules = [
            on("tools/call", sse(whole[:at]), sse(whole[at:]), silent(), times=1) for at in cuts
        ]
        async with http_client(script("legacy", *rules)) as (client, _):
            for _ in cuts:
                assert await attempt(echo(client)) == Says("é🎉")

    asyncio.run(tries())


@given(st.text(max_size=40), st.integers(1, 9), st.sampled_from(["\n", "\r\n", " \n"]))
def test_any_text_in_any_pieces_is_that_text(text: str, chunk: int, end: str) -> None:
    """The kind: what JSON can carry arrives as it was, however it is cut."""

    async def tries() -> None:
        data = script(
            "legacy", on("tools/call", raw(answer(text.replace("$ID", "")), end, chunk=chunk))
        )
        async with memory_client(data) as (client, _):
            assert await attempt(echo(client)) == Says(text.replace("$ID", ""))

    run_virtual(tries)


def test_what_is_sent_is_utf_8_in_any_locale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BC-097, the other direction."""
    monkeypatch.setenv("LC_ALL", "C")

    async def tries() -> None:
        data = script(
            "legacy", on("tools/call", reply({"content": [{"type": "text", "text": "$TEXT"}]}))
        )
        async with pipe_client(data, tmp_path) as (client, processes):
            assert await attempt(echo(client, TEXT)) == Says(TEXT)
            assert TEXT.encode() in processes.lives[0].read.replace(b"\\u0085", "\u0085".encode())

    asyncio.run(tries())
