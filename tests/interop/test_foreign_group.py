"""A group of every server that others wrote, from one `.mcp.json`, and two that are not there."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from raxol_mcp.client.config import load
from raxol_mcp.client.group import ClientGroup
from raxol_mcp.client.opening import Tables
from raxol_mcp.client.trust import NotTrusted, TrustStore
from raxol_mcp.errors import UnknownTool
from tests.interop.foreign import free_port, processes_with, run, serving, text
from tests.interop.packages import from_npm, from_pypi, source_of
from tests.interop.test_foreign_fastmcp import PACKAGE as FASTMCP
from tests.interop.test_foreign_fastmcp import SERVER
from tests.interop.test_foreign_npm import PACKAGES
from tests.interop.test_foreign_official import OVER_STDIO
from tests.interop.test_foreign_official import PACKAGE as OFFICIAL

pytestmark = pytest.mark.slow


def test_one_dead_server_hides_none_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four servers of three makers, over two transports, in both eras; what is dead says why."""
    programs = from_npm("foreign-npm", *PACKAGES) / "node_modules" / ".bin"
    source = source_of("foreign-official", OFFICIAL, "examples/servers/everything-server")
    command = [str(from_pypi("foreign-fastmcp", FASTMCP)), str(SERVER), "0"]
    folder, mark = tmp_path / "folder", uuid4().hex
    folder.mkdir()
    (folder / "a.txt").write_text("one", "utf-8")
    monkeypatch.setenv("FOREIGN_FOLDER", str(folder))
    file, store = tmp_path / ".mcp.json", TrustStore(tmp_path / "config")
    marked = {"FOREIGN_MARK": mark}

    def write(url: str) -> None:
        python = {"command": sys.executable, "args": ["-c", OVER_STDIO]}
        servers = {
            "official": {**python, "env": {"PYTHONPATH": str(source), **marked}},
            "every-thing": {"command": str(programs / "mcp-server-everything"), "env": marked},
            "files": {
                "command": str(programs / "mcp-server-filesystem"),
                "args": ["${FOREIGN_FOLDER}"],
                "env": marked,
            },
            "web": {"type": "http", "url": f"{url}/mcp", "allow_private": True},
            "absent": {"command": str(tmp_path / "no-such-program")},
            "silent": {"url": f"http://127.0.0.1:{free_port()}/mcp", "allow_private": True},
        }
        file.write_text(json.dumps({"mcpServers": servers}), "utf-8")

    async def scenario() -> None:
        with pytest.raises(NotTrusted):
            ClientGroup.from_file(file, store=store)
        store.allow(load(file))
        async with ClientGroup.from_file(file, store=store, tables=Tables()) as group:
            tools = {tool.name: tool.server for tool in await group.list_tools()}
            assert set(tools.values()) == {"official", "every-thing", "files", "web"}
            assert {
                "mcp__official__test_simple_text",
                "mcp__every_thing__echo",
                "mcp__files__read_text_file",
                "mcp__web__echo",
            } <= tools.keys()
            skipped = group.skipped
            assert skipped.keys() == {"absent", "silent"}
            assert "spawn_failed" in skipped["absent"].path
            assert "transport" in skipped["silent"].path
            eras = {
                name: status.client and status.client.era for name, status in group.status().items()
            }
            assert eras == {
                "official": "stateless",
                "every-thing": "handshake",
                "files": "handshake",
                "web": "stateless",
                "absent": None,
                "silent": None,
            }
            at_once = await asyncio.gather(
                group.call_tool("mcp__official__test_simple_text"),
                group.call_tool("mcp__every_thing__echo", {"message": "a"}),
                group.call_tool("mcp__files__read_text_file", {"path": str(folder / "a.txt")}),
                group.call_tool("mcp__web__echo", {"text": "b"}),
            )
            assert [text(result) for result in at_once] == [
                "This is a simple text response for testing.",
                "Echo: a",
                "one",
                "b",
            ]
            with pytest.raises(UnknownTool):
                await group.call_tool("mcp__web__nothing")
            assert len(processes_with(mark)) == (3 if sys.platform == "linux" else 0)
        assert processes_with(mark) == []

    with serving(command, r"running on (http://[0-9.:]+)") as url:
        write(url)
        run(scenario)
