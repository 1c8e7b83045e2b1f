"""K22: whatever ends a call, nothing of it stays behind, and it ends as soon as that is known.

End of file ended the reader in silence, an error status was raised in the background, and the
caller waited for its whole timeout, or for ever; the entry of a call that had timed out was kept.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from raxol_mcp.client.app import Client
from raxol_mcp.errors import RemoteProtocolError, RequestFailed
from raxol_mcp.testing.virtual_loop import run_virtual
from tests.client.misbehaviour.attempts import Error, Outcome, Says, attempt, echo
from tests.client.peers.clients import http_client, memory_client, pipe_client
from tests.client.peers.held import BOUND
from tests.client.peers.script import (
    Message,
    Step,
    close_output,
    drop,
    http,
    leave,
    notice,
    on,
    raw,
    script,
    silent,
    sse,
    stderr,
    text,
    wait,
)

TIMED_OUT: Final = Error("TimedOut", ("timeout",))
# How a server dies with three calls open.
DEATHS: Final[dict[str, tuple[list[Step], tuple[int | str, ...]]]] = {
    "exits with 1": ([stderr("Traceback: boom\n"), leave(1)], ("server_exited", 1)),
    "exits with 0": ([leave(0)], ("server_exited", 0)),
    "half a line": ([raw('{"jsonrpc":"2.0","id"'), leave(1)], ("server_exited", 1)),
    "closes its output": ([close_output()], ("transport", "closed")),
}


@pytest.mark.parametrize("how", DEATHS)
def test_calls_end_with_their_server_and_say_how_it_ended(how: str, tmp_path: Path) -> None:
    """BC-093. MCP basic/transports §stdio: long before their timeout; later calls fail at once."""
    steps, path = DEATHS[how]

    async def tries() -> None:
        # The third call is the one that it dies of.
        data = script(
            "legacy", on("tools/call slow", silent(), times=2), on("tools/call slow", *steps)
        )
        spec = {"call_timeout": BOUND * 10, "reconnect": BOUND * 10}
        async with pipe_client(data, tmp_path, spec=spec) as (client, processes):
            calls = [asyncio.ensure_future(attempt(client.call_tool("slow"))) for _ in range(3)]
            assert await asyncio.gather(*calls) == [Error("ConnectionLost", path)] * 3
            assert await attempt(echo(client, "after")) == Error("ConnectFailed", path)
            reason = client.status().reason
            assert reason is not None
            if how == "exits with 1":
                assert "Traceback: boom" in reason.text
                assert "Traceback: boom" in client.stderr()
            async with asyncio.timeout(BOUND):
                while processes.alive():  # noqa: ASYNC110  # another process
                    await asyncio.sleep(0.001)

    asyncio.run(tries())


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (["/no/such/file"], ("spawn_failed", "enoent")),
        ([sys.executable, "-I", "-S", "-c", ""], ("server_exited", 0)),
    ],
    ids=["no such file", "says nothing and exits"],
)
def test_a_command_that_is_no_server_is_known_at_once(
    program: list[str], reason: tuple[Any, ...]
) -> None:
    """BC-093, the other runs."""

    async def tries() -> None:
        client = Client(
            {"name": "peer", "command": program[0], "args": program[1:], "fail_fast": True}
        )
        await client.start()
        assert await attempt(client.await_ready()) == Error("ConnectFailed", reason)
        assert await attempt(echo(client)) == Error("ConnectFailed", reason)
        await client.stop()

    asyncio.run(tries())


def test_a_timeout_frees_the_entry_tells_the_server_and_drops_the_late_answer() -> None:
    """BC-099. MCP basic/utilities/cancellation §Timeouts."""

    async def tries() -> None:
        loop = asyncio.get_running_loop()
        data = script("legacy", on("tools/call slow", wait(1.5), text("late")))
        async with memory_client(data) as (client, dialer):
            began = loop.time()
            assert await attempt(client.call_tool("slow", timeout=0.3)) == TIMED_OUT
            assert round(loop.time() - began, 3) == 0.3
            assert await attempt(echo(client)) == Says("x")
            await asyncio.sleep(2.0)
            for _ in range(1000):
                assert await attempt(client.call_tool("slow", timeout=0.001)) == TIMED_OUT
            await asyncio.sleep(10.0)
            calls = [each["id"] for each in dialer.received if each.get("method") == "tools/call"]
            told = [
                each["params"]["requestId"]
                for each in dialer.received
                if each.get("method") == "notifications/cancelled"
            ]
            assert len(set(calls)) == len(calls) == 1002
            assert told == [id for id in calls if id != calls[1]]
            assert await attempt(echo(client)) == Says("x")

    run_virtual(tries)


def test_a_call_that_was_answered_is_not_cancelled() -> None:
    """BC-099: nothing is told about a call that is over."""

    async def tries() -> None:
        async with memory_client(script("legacy")) as (client, dialer):
            for n in range(20):
                task = asyncio.ensure_future(attempt(echo(client, str(n))))
                assert await task == Says(str(n))
                task.cancel()
            assert "notifications/cancelled" not in dialer.methods

    run_virtual(tries)


def test_whoever_leaves_is_like_a_timeout() -> None:
    """BC-099, the variant: the task of the caller is cancelled."""

    async def tries() -> None:
        async with memory_client(script("legacy")) as (client, dialer):
            call = asyncio.ensure_future(client.call_tool("slow"))
            await asyncio.sleep(1.0)
            call.cancel()
            await asyncio.wait([call])
            await asyncio.sleep(0)
            assert client.status().pending == 0
            assert dialer.methods[-1] == "notifications/cancelled"

    run_virtual(tries)


def test_progress_extends_a_timeout_up_to_the_maximum() -> None:
    """BC-099, the variant: a server that reports for ever is not listened to for ever."""

    async def tries() -> None:
        loop = asyncio.get_running_loop()
        reports = [
            step
            for n in range(200)
            for step in (
                notice("notifications/progress", {"progressToken": "$TOKEN", "progress": n}),
                wait(0.1),
            )
        ]
        async with memory_client(script("legacy", on("tools/call", *reports))) as (client, _):
            seen: list[float] = []
            began = loop.time()
            call = client.call_tool(
                "echo",
                timeout=0.3,
                max_timeout=5.0,
                progress=lambda told: seen.append(told.progress),
            )
            assert await attempt(call) == TIMED_OUT
            assert round(loop.time() - began, 3) == 5.0
            assert seen == sorted(set(seen))
            assert 45 <= len(seen) <= 51
            began = loop.time()
            assert await attempt(client.call_tool("echo", timeout=0.3)) == TIMED_OUT
            assert round(loop.time() - began, 3) == 0.3

    run_virtual(tries)


def test_a_thousand_timeouts_cost_no_memory() -> None:
    """BC-099: what is kept of a call that timed out is nothing."""

    async def tries() -> None:
        async with memory_client(script("legacy"), kind="http") as (client, dialer):

            async def rounds(number: int) -> int:
                for _ in range(number):
                    assert await attempt(client.call_tool("slow", timeout=0.001)) == TIMED_OUT
                dialer.received.clear()
                dialer.aborted.clear()
                gc.collect()
                return len(gc.get_objects())

            await rounds(100)
            before = await rounds(10)
            assert await rounds(1000) - before < 100

    run_virtual(tries)


REFUSAL: Final = '{"jsonrpc":"2.0","id":$ID,"error":{"code":-32001,"message":"no","data":{"a":1}}}'
JSON: Final = "application/json"
INVALID: Final = Error("RequestFailed", ("invalid_response", "tools/call"))
RESPONSES: Final[dict[str, tuple[Step, Outcome]]] = {
    "400 with an error": (
        http(400, REFUSAL, Content_Type=JSON),
        Error("RemoteProtocolError", (-32001, 400)),
    ),
    "400 with an error of nobody": (
        http(400, REFUSAL.replace("$ID", "null"), Content_Type=JSON),
        Error("RemoteProtocolError", (-32001, 400)),
    ),
    "400 with text": (
        http(400, "no", Content_Type="text/plain"),
        Error("RequestFailed", ("http", 400)),
    ),
    "500 with nothing": (http(500), Error("RequestFailed", ("http", 500))),
    "502 with a page": (
        http(502, "<html>", Content_Type="text/html"),
        Error("RequestFailed", ("http", 502)),
    ),
    "503": (http(503, Retry_After="1"), Error("RequestFailed", ("http", 503))),
    "429": (http(429, Retry_After="2"), Error("RequestFailed", ("http", 429))),
    "200 with a page": (http(200, "<html>", Content_Type="text/html"), INVALID),
    "200 with broken JSON": (http(200, "{", Content_Type=JSON), INVALID),
    "200 with an answer to another": (
        http(200, '{"jsonrpc":"2.0","id":99,"result":{}}', Content_Type=JSON),
        INVALID,
    ),
    "a stream without an answer": (sse(": \n\n"), Error("RequestFailed", ("transport", "closed"))),
    "202": (http(202), INVALID),
    "a reset after the headers": (
        drop("headers"),
        Error("RequestFailed", ("transport", "incomplete")),
    ),
}


@pytest.mark.parametrize("name", RESPONSES)
def test_a_response_that_is_no_answer_ends_its_call(name: str) -> None:
    """BC-105: at once, with all that is known, and the call is not sent again."""
    step, expected = RESPONSES[name]

    async def tries() -> None:
        data = script("legacy", on("tools/call", step, times=1))
        async with http_client(data, spec={"call_timeout": BOUND * 10}) as (client, peer):
            assert await attempt(echo(client)) == expected
            assert await attempt(echo(client, "next")) == Says("next")
            assert len(peer.about("tools/call")) == 2

    asyncio.run(tries())


def test_an_error_says_all_that_the_server_said() -> None:
    """BC-105: status, code, message and data; or the status and when to come back."""

    async def tries() -> None:
        rules = [
            on("tools/call", RESPONSES[name][0], times=1) for name in ("400 with an error", "429")
        ]
        async with http_client(script("legacy", *rules)) as (client, _):
            with pytest.raises(RemoteProtocolError, match=r"^no$") as refused:
                await client.call_tool("echo", {})
            assert (refused.value.code, refused.value.data, refused.value.status) == (
                -32001,
                {"a": 1},
                400,
            )
            with pytest.raises(RequestFailed) as busy:
                await client.call_tool("echo", {})
            assert (busy.value.status, busy.value.retry_after) == (429, 2.0)
            assert not busy.value.outcome_unknown

    asyncio.run(tries())


# -- every way a call can end ----------------------------------------------------------------------


ENDINGS: Final[dict[str, list[Step]]] = {
    "result": [text("x")],
    "error": [raw('{"jsonrpc":"2.0","id":$ID,"error":{"code":1,"message":"m"}}\n')],
    "unreadable": [raw('{"jsonrpc":"2.0","id":$ID,"result":{"a":NaN}}\n')],
    "unusable": [raw('{"jsonrpc":"2.0","id":$ID,"result":7}\n')],
    "status": [http(500)],
    "dropped": [drop("close")],
    "session lost": [http(404)],
    "timeout": [silent()],
    "cancelled": [silent()],
    "server gone": [leave(1)],
    "too long": [raw(("A", 17 * 1024 * 1024))],
}


@pytest.mark.parametrize("preset", ["legacy", "modern"])
@pytest.mark.parametrize("name", ENDINGS)
def test_nothing_is_kept_of_a_call_that_has_ended(name: str, preset: str) -> None:
    """BC-105, the kind: three times over, from every ending; the next call works."""

    async def tries() -> None:
        rules: list[Message] = [on("tools/call slow", *ENDINGS[name])]
        kind = "memory" if name in ("server gone", "too long") else "http"
        async with memory_client(script(preset, *rules), kind=kind) as (client, dialer):
            for _ in range(3):
                call = asyncio.ensure_future(attempt(client.call_tool("slow"), bound=1000))
                if name == "cancelled":
                    await asyncio.sleep(1)
                    call.cancel()
                await asyncio.wait([call])
                status = client.status()
                assert (status.pending, status.queued) == (0, 0)
                await client.await_ready(timeout=None)
                assert await attempt(echo(client, "next")) == Says("next")
                await asyncio.sleep(1.0)
                ledger = client._core.ledger
                assert (len(ledger.window.held), len(ledger.answering), len(ledger.questions)) == (
                    0,
                    0,
                    0,
                )
                assert dialer.busy == 0

    run_virtual(tries)
