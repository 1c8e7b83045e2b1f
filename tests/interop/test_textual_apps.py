"""Textual apps that others wrote, operated by an agent: started, used, looked at, stopped.

Each is in an environment of its own, as its authors want it, and in a process of its own, which
`raxol-mcp serve-app` serves over stdio to our client.
"""

import asyncio
import json
import sys
import tomllib
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from raxol_mcp import Client
from tests.interop.packages import ROOT, from_pypi

pytestmark = pytest.mark.slow

# What raxol-mcp needs itself; it is run from its source.
OURS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
TIMEOUT = 60.0  # of each call, in seconds; none should come near it

BROWSR = """
from browsr.base import TextualAppContext
from browsr.browsr import Browsr

def app():
    return Browsr(config_object=TextualAppContext(file_path="tree"))
"""

HARLEQUIN = """
from harlequin import Harlequin
from harlequin_duckdb import DuckDbAdapter

def app():
    return Harlequin(DuckDbAdapter((":memory:",), no_init=True), no_download_tzdata=True)
"""


class Agent:
    """Uses one session of one app."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def say(self, tool: str, **arguments: object) -> str:
        result = await self._client.call_tool(tool, arguments, timeout=TIMEOUT)
        assert not result.is_error, result.text
        return result.text

    async def fails(self, tool: str, **arguments: object) -> str:
        result = await self._client.call_tool(tool, arguments, timeout=TIMEOUT)
        assert result.is_error
        return result.text

    async def tools(self) -> list[str]:
        return [tool.name for tool in await self._client.list_tools()]

    async def until(self, text: str) -> str:
        """Wait until a text is on the screen: apps load in the background."""
        for _ in range(100):
            screen = await self.say("screenshot")
            if text in screen:
                return screen
            await asyncio.sleep(0.1)
        raise AssertionError(f"{text!r} never came on the screen:\n{screen}")


def operate(
    python: str | Path, target: str, folder: Path, use: Callable[[Agent], Awaitable[None]]
) -> None:
    """Start the app's server, use the app, stop it, and call a tool of it once more."""
    spec = {
        "name": "app",
        "command": str(python),
        "args": ["-m", "raxol_mcp", "serve-app", target, "--allow-all-tools"],
        "cwd": str(folder),
        "env": {"PYTHONPATH": str(ROOT / "src"), "HOME": str(folder), "TERM": "dumb"},
    }

    async def scene() -> None:
        async with Client(spec) as client:
            agent = Agent(client)
            started = await agent.say("start_session")
            assert started.startswith("Session s1 is running.")
            await use(agent)
            last = (await agent.tools())[-1]
            assert last.startswith("s1.")
            assert await agent.say("stop_session") == "Stopped s1."
            told = await agent.fails(last)
            assert told.startswith("The session s1 has ended: it was stopped.")
            assert not [name for name in await agent.tools() if name.startswith("s1.")]

    asyncio.run(scene())


def python_of(*packages: str) -> Path:
    return from_pypi("-".join(["app", *packages]).replace("==", "-"), *packages, *OURS)


def test_the_demo_of_textual(tmp_path: Path) -> None:
    async def use(demo: Agent) -> None:
        assert "What is Textual?" in await demo.say("screenshot")
        assert "s1.Collapsible-textual-api.expand" in await demo.tools()
        await demo.say("s1.Collapsible-textual-api.expand")
        structure = await demo.say("screenshot", format="json")
        assert state_of(structure, "Collapsible-textual-api") == "expanded"
        assert await demo.say("s1.keys.widgets") == "ran 'Widgets'"
        names = await demo.tools()
        assert "s1.Collapsible-textual-api.expand" not in names
        (hero,) = [name for name in names if "action-hero.select" in name]
        assert await demo.say(hero, option="Grace Jones") == "selected 'Grace Jones'"
        assert "Grace Jones" in await demo.say("screenshot")
        hits = json.loads(await demo.say("s1.commands.search", query="theme"))
        assert hits["commands"][0]["command"] == "Theme"

    operate(sys.executable, "textual.demo.demo_app:DemoApp", tmp_path, use)


def test_browsr(tmp_path: Path) -> None:
    """https://github.com/juftin/browsr, a file browser."""
    (tmp_path / "tree" / "docs").mkdir(parents=True)
    (tmp_path / "tree" / "hello.py").write_text("print('a greeting')\n", "utf-8")
    (tmp_path / "tree" / "docs" / "read.me").write_text("deep down\n", "utf-8")
    (tmp_path / "browse.py").write_text(BROWSR, "utf-8")

    async def use(browsr: Agent) -> None:
        await browsr.until("hello.py")
        await browsr.say("s1.tree-view.select_node", path=["hello.py"])
        await browsr.until("a greeting")
        await browsr.say("s1.tree-view.expand", path=["docs"])
        await browsr.until("read.me")
        nodes = json.loads(await browsr.say("s1.tree-view.get_nodes"))["nodes"]
        assert ["tree", "docs", "read.me"] in [node["path"] for node in nodes]
        await browsr.say("s1.keys.files")
        assert "s1.tree-view.expand" not in await browsr.tools()

    operate(python_of("browsr==1.25.0"), "browse.py:app", tmp_path, use)


def test_harlequin(tmp_path: Path) -> None:
    """https://harlequin.sh, a client for databases; here for DuckDB."""
    (tmp_path / "query.py").write_text(HARLEQUIN, "utf-8")

    async def use(harlequin: Agent) -> None:
        await harlequin.until("Database Connected")
        assert "s1.run_query.click" not in await harlequin.tools(), "there is nothing to run"
        editor = "s1.buffer.TextArea"
        await harlequin.say(f"{editor}.type_into", text="select 6 * 7 as answer")
        assert await harlequin.say(f"{editor}.get_value") == "select 6 * 7 as answer"
        assert await harlequin.say("s1.run_query.click") == "clicked 'Run Query'"
        assert "42" in await harlequin.until("(1 Records)")
        assert '"tabs":["Result 1"]' in await harlequin.say("s1.main_panel.TabbedContent.get_tabs")

    operate(python_of("harlequin==2.17.0"), "query.py:app", tmp_path, use)


def state_of(structure: str, id: str) -> object:
    """Find the state of a widget in a screenshot."""
    pending: list[dict[str, object]] = json.loads(structure)
    while pending:
        node = pending.pop()
        if node.get("id") == id:
            return node["state"]
        children = node.get("children", [])
        assert isinstance(children, Sequence)
        pending += children
    raise AssertionError(f"there is no {id}")
