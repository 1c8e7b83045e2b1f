"""client/group.py with real clients: on virtual time with scripted peers, and with a process."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from raxol_mcp.client.app import Client
from raxol_mcp.client.config import load
from raxol_mcp.client.group import ClientGroup, GroupTool
from raxol_mcp.client.opening import Tables
from raxol_mcp.client.trust import TrustStore
from raxol_mcp.errors import ConnectFailed, ConnectionLost, Reason, UnknownTool
from raxol_mcp.testing.virtual_loop import run_virtual
from tests.client.peers.memory_link import MemoryDialer
from tests.client.peers.script import error, leave, on, reply, script, silent

if TYPE_CHECKING:
    from raxol_mcp.client.results import Change
    from raxol_mcp.client.spec import ClientSpec

TOOLS = [{"name": "echo", "inputSchema": {"type": "object"}}]


def group_of(
    dialers: dict[str, MemoryDialer], *, heard: list[tuple[str, Change]] | None = None
) -> ClientGroup:
    def made(spec: ClientSpec, **options: object) -> Client:
        make: type[Client] = Client
        return make(spec, dialer=dialers[spec.name], tables=Tables(), **options)  # type: ignore[arg-type]  # they are a group's own

    return ClientGroup(
        [{"name": name, "command": "scripted", "fail_fast": True} for name in dialers],
        client_factory=made,
        on_change=None if heard is None else lambda server, change: heard.append((server, change)),
    )


def names(tools: list[GroupTool]) -> list[str]:
    return [tool.name for tool in tools]


def test_dead_silent_and_wrong_servers_hide_no_other() -> None:
    """ours: fail-open per server; everything is left as it was found."""

    async def scenario() -> None:
        before = asyncio.all_tasks()
        dialers = {
            "old": MemoryDialer(script("legacy")),
            "new": MemoryDialer(script("modern", tools=TOOLS), kind="http"),
            "dead": MemoryDialer(
                script("legacy"), opens=lambda _: Reason("spawn_failed", "enoent")
            ),
            "silent": MemoryDialer(script("legacy", on("*", silent()))),
            "refuses": MemoryDialer(script("legacy", on("initialize", error(-32603, "no")))),
            "no list": MemoryDialer(script("legacy", on("tools/list", silent()))),
            "bad list": MemoryDialer(script("legacy", on("tools/list", reply({"tools": 1})))),
        }
        async with group_of(dialers) as group:
            assert asyncio.get_running_loop().time() == 15.0
            tools = await group.list_tools(timeout=5.0)
            assert names(tools) == ["mcp__old__echo", "mcp__old__slow", "mcp__new__echo"]
            assert {name: reason.path for name, reason in group.skipped.items()} == {
                "dead": ("spawn_failed", "enoent"),
                "silent": ("not_ready", "initializing"),
                "refuses": ("initialization_failed", "jsonrpc", -32603),
                "no list": ("timeout",),
                "bad list": ("invalid_response", "tools/list"),
            }
            assert (await group.call_tool("mcp__old__echo", {"text": "hi"})).text == "hi"
            assert (await group.call_tool("mcp__new__echo", {"text": "ho"})).text == "ho"
            with pytest.raises(UnknownTool, match="dead could not be asked: spawn_failed enoent"):
                await group.call_tool("mcp__dead__echo")
        assert {status.status for status in group.status().values()} == {"stopped"}
        assert [dialer.open for dialer in dialers.values()] == [0] * len(dialers)
        assert asyncio.all_tasks() == before

    run_virtual(scenario)


def test_nobody_waits_for_what_failed_at_once_and_it_comes_up_later() -> None:
    """ours: the client goes on trying, after 1, 3, 7 seconds."""

    async def scenario() -> None:
        refused = Reason("transport", "refused")
        dialers = {
            "a": MemoryDialer(script("legacy")),
            "late": MemoryDialer(
                script("legacy"), opens=lambda number: refused if number < 3 else None
            ),
        }
        async with group_of(dialers) as group:
            assert asyncio.get_running_loop().time() == 0.0
            late = group.status()["late"]
            assert (late.status, late.reason) == ("closed", refused)
            assert names(await group.list_tools()) == ["mcp__a__echo", "mcp__a__slow"]
            await asyncio.sleep(3.5)
            assert len(await group.list_tools()) == 4
            assert group.skipped == {}

    run_virtual(scenario)


def test_a_server_that_dies_in_a_call_fails_that_call_alone() -> None:
    async def scenario() -> None:
        dies = on("tools/call", leave(3), life=1)
        dialers = {"a": MemoryDialer(script("legacy", dies)), "b": MemoryDialer(script("legacy"))}
        async with group_of(dialers) as group:
            await group.list_tools()
            slow = asyncio.create_task(group.call_tool("mcp__b__slow", timeout=30.0))
            await asyncio.sleep(1.0)
            with pytest.raises(ConnectionLost, match="server_exited 3"):
                await group.call_tool("mcp__a__echo", {"text": "1"})
            with pytest.raises(ConnectFailed):
                await group.call_tool("mcp__a__echo", {"text": "2"})
            assert (await group.call_tool("mcp__b__echo", {"text": "3"})).text == "3"
            await asyncio.sleep(2.0)
            assert (await group.call_tool("mcp__a__echo", {"text": "4"})).text == "4"
            slow.cancel()
            await asyncio.wait([slow])

    run_virtual(scenario)


def test_clients_are_real_unless_told_otherwise() -> None:
    group = ClientGroup([{"name": "a", "command": "x"}], roots=[])
    assert isinstance(group["a"], Client)
    assert group.status()["a"].status == "starting"


@pytest.mark.slow
def test_a_trusted_file_starts_its_servers_and_gives_them_what_it_names(tmp_path: Path) -> None:
    """BC-151: argv byte for byte, no shell; real processes."""
    hostile = ["; touch pwn", "$(touch pwn)", "`touch pwn`", "%PATH%", "a b", "", '--x="q"']
    program = tmp_path / "server.py"
    program.write_text(
        "import os, sys\n"
        "from raxol_mcp import Server, serve_stdio, allow_all\n"
        "server = Server('s', authorizer=allow_all())\n"
        "@server.tool\n"
        "def told() -> str:\n"
        "    'What this process was told.'\n"
        "    import json\n"
        "    return json.dumps([sys.argv[1:], os.environ['GIVEN'], os.getcwd()])\n"
        "import asyncio\n"
        "asyncio.run(serve_stdio(server))\n",
        "utf-8",
    )
    (tmp_path / "sub").mkdir()
    file = tmp_path / ".mcp.json"
    good = {
        "command": sys.executable,
        "args": [str(program), *hostile, "${WORD}"],
        "env": {"GIVEN": "<${WORD}>"},
        "cwd": "sub",
    }
    file.write_text(
        json.dumps({"mcpServers": {"good": good, "none": {"command": "./none"}}}), "utf-8"
    )
    (tmp_path / "config").mkdir(mode=0o700)
    store = TrustStore(tmp_path / "config" / "raxol-mcp")
    store.allow(load(file))

    async def scenario() -> None:
        group = ClientGroup.from_file(
            file, store=store, environ={"WORD": "$(id) ${WORD}"}, start_timeout=60.0
        )
        async with group:
            tools = await group.list_tools(timeout=60.0)
            assert (names(tools), list(group.skipped)) == (["mcp__good__told"], ["none"])
            assert group.skipped["none"].path == ("spawn_failed", "enoent")
            told = json.loads((await group.call_tool("mcp__good__told")).text)
        assert told == [
            [*hostile, "$(id) ${WORD}"],
            "<$(id) ${WORD}>",
            str((tmp_path / "sub").resolve()),
        ]

    asyncio.run(scenario())
    assert not list(tmp_path.rglob("pwn"))
