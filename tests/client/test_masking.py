"""Secrets of a spec, repeated by its server in every place there is: they are shown in none."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from raxol_mcp.client.app import Client
from raxol_mcp.client.failures import masked
from raxol_mcp.client.opening import Tables
from raxol_mcp.errors import RaxolError, Reason, RemoteProtocolError
from raxol_mcp.testing.virtual_loop import run_virtual
from tests.client.peers.clients import memory_client
from tests.client.peers.script import error, on, reply, script
from tests.transports.http_client.peers import Peer, Seen, Wire, result_line

SECRET = "SECRET-of-the-spec"
SPEC: dict[str, Any] = {"env": {"KEY": SECRET}}


def has_secret(*values: object) -> bool:
    return any(SECRET.lower() in f"{value} {value!r}".lower() for value in values)


def everything_about(failure: RaxolError) -> list[object]:
    """List what a program may log of an error."""
    found: list[object] = [failure, *failure.args, *traceback.format_exception(failure)]
    found.append(getattr(failure, "data", None))
    reason = failure.reason
    while reason is not None:
        found += [reason, reason.text, reason.detail, reason.error]
        reason = reason.cause
    return found


def test_the_error_of_a_server_is_told_without_them() -> None:
    """SECURITY: not even when the server prints them; what else it says stays as it is"""

    async def main() -> None:
        data = {"a": [SECRET, 1, None], f"b {SECRET}": True}
        failing = on("tools/call", error(-32000, f"no {SECRET}!", data=data))
        async with memory_client(script("legacy", failing), spec=SPEC) as (client, _):
            with pytest.raises(RemoteProtocolError, match=r"no \[redacted\]!") as caught:
                await client.call_tool("t")
            failure = caught.value
            assert (failure.code, failure.data) == (
                -32000,
                {"a": ["[redacted]", 1, None], "b [redacted]": True},
            )
            assert not has_secret(*everything_about(failure))

    run_virtual(main)


def test_what_a_server_needs_to_be_understood_is_not_masked_before() -> None:
    """ours: the versions that are offered are data of an error, and a spec may hold one"""

    async def main() -> None:
        versions = {"supported": ["2025-11-25"], "requested": "2026-07-28"}
        old = on("server/discover", error(-32022, "no", data=versions))
        spec = {"env": {"VERSION": "2025-11-25"}}
        async with memory_client(script("legacy", old), spec=spec) as (client, _):
            assert client.status().version == "2025-11-25"

    run_virtual(main)


def test_a_list_is_complained_about_without_them(caplog: pytest.LogCaptureFixture) -> None:
    """SECURITY: the name of a tool is the server's word"""

    async def main() -> None:
        tools = {"tools": [{"name": f"{SECRET}\u200b", "inputSchema": {}}]}
        async with memory_client(script("legacy", on("tools/list", reply(tools))), spec=SPEC) as (
            client,
            _,
        ):
            assert await client.list_tools() == []

    with caplog.at_level(logging.DEBUG):
        run_virtual(main)
    assert "left out" in caplog.text
    assert not has_secret(caplog.text)


def test_a_reason_is_masked_down_to_its_first_cause() -> None:
    """ours: the copy is equal but for what is hidden"""
    reason = Reason(
        "a", 1, text=f"x {SECRET}", maybe_done=True, cause=Reason("b", text=SECRET, retry_after=2.0)
    )
    copy = masked(reason, lambda text: text.replace(SECRET, "-"))
    assert (str(copy), copy.maybe_done) == ("a 1: b (-) (x -)", True)
    assert copy.cause is not None
    assert copy.cause.retry_after == 2.0
    assert copy == reason


ECHOES: dict[str, Callable[[str], tuple[int, dict[str, str], str]]] = {
    "status": lambda said: (500, {}, said),
    "type": lambda said: (200, {"Content-Type": said}, "x"),
    "location": lambda said: (302, {"Location": said}, ""),
    "body": lambda said: (200, {}, said),
    "member": lambda said: (200, {}, json.dumps({said: 1})[:-1] + f',"{said}":2}}'),
}


@pytest.mark.parametrize("place", ECHOES)
def test_nothing_of_a_response_tells_them(place: str, caplog: pytest.LogCaptureFixture) -> None:
    """SECURITY: over HTTP, in whatever place; some places have no capitals"""

    async def main() -> None:
        async def serve(seen: Seen, wire: Wire) -> None:
            if seen.rpc == "initialize":
                result = {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {},
                    "serverInfo": {"name": "s", "version": "1"},
                }
                await wire.json(result_line(seen.id, result))
            elif seen.rpc == "tools/call":
                status, headers, body = ECHOES[place](str(seen.header("x-key")))
                plain = {"Content-Type": "application/json"}
                await wire.reply(status, body.encode(), plain | headers)
            else:
                await wire.reply(202 if seen.rpc.startswith("notifications/") else 405)

        async with Peer(serve) as peer:
            reached = {"name": "s", "url": peer.url, "allow_private": True}
            spec = {**reached, "headers": {"X-Key": SECRET}}
            seen: list[object] = []
            client = Client(
                spec,
                tables=Tables(),
                observe=lambda *event: seen.append(event),
                logging=seen.append,
            )
            async with client:
                with pytest.raises(RaxolError) as caught:
                    await client.call_tool("t")
                assert not has_secret(*everything_about(caught.value), *seen, client)

    with caplog.at_level(logging.DEBUG):
        asyncio.run(main())
    assert not has_secret(caplog.text)


@pytest.mark.slow
def test_nothing_that_a_program_prints_tells_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """SECURITY: on stdout, on stderr and at its end, at any level of the log"""
    program = tmp_path / "server.py"
    program.write_text(
        "import os, sys\n"
        "said = os.environ['KEY'] + ' ' + sys.argv[1]\n"
        "print('on stdout', said, flush=True)\n"
        "print('on stderr', said, file=sys.stderr, flush=True)\n"
        "sys.exit(3)\n"
    )

    async def main() -> None:
        spec = {"name": "s", "command": sys.executable, "args": [str(program), f"--k={SECRET}"]}
        seen: list[object] = []
        client = Client({**spec, **SPEC}, observe=lambda *event: seen.append(event))
        with pytest.raises(RaxolError) as caught:
            async with client:
                pass
        assert "on stderr" in client.stderr()
        assert not has_secret(*everything_about(caught.value), *seen, client, client.stderr())
        assert not has_secret(client.status())

    with caplog.at_level(logging.DEBUG):
        asyncio.run(main())
    assert "on stdout" in caplog.text
    assert "on stderr" in caplog.text
    assert not has_secret(caplog.text)
