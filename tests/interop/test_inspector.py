"""The MCP Inspector's command line (`npx @modelcontextprotocol/inspector --cli`) as the client.

It needs Node 22, which comes from the npm registry as the package `node`, so a machine with an
older one will do.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.cases.peers import FIXTURE
from tests.interop.packages import from_npm, npm_environment

pytestmark = pytest.mark.slow

ROOT: Final = Path(__file__).parents[2]
# First the Node that the second is installed and run with: npm chooses versions by its Node.
PACKAGES: Final = ("node@22", "@modelcontextprotocol/inspector@2.12.0")
BOUND: Final = 60.0


@pytest.fixture(scope="module")
def inspector() -> Path:
    """Install the Inspector unless it is there already; return the folder it is in."""
    return from_npm("inspector", *PACKAGES)


def inspect(inspector: Path, *arguments: str, code: int = 0) -> dict[str, object]:
    """Run one command of the Inspector against a new server; return what it printed."""
    sources = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    done = subprocess.run(
        [*("mcp-inspector", "--cli", sys.executable, str(FIXTURE)), *arguments],
        env={**os.environ, **npm_environment(inspector), "PYTHONPATH": sources},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=BOUND,
        check=False,
    )
    assert done.returncode == code, done.stderr.decode(errors="replace")
    printed: dict[str, object] = json.loads(done.stdout)
    return printed


def names(printed: dict[str, object], kind: str) -> list[object]:
    """List the names of what was printed."""
    listed = printed[kind]
    assert isinstance(listed, list)
    return [item["name"] for item in listed]


def test_it_connects(inspector: Path) -> None:
    printed = inspect(inspector, "--method", "initialize")
    assert printed["serverInfo"] == {"name": "fixture", "title": "Fixture", "version": "1.0"}


def test_it_lists(inspector: Path) -> None:
    """`--strict` exits with 6 when a schema is one that some clients refuse."""
    tools = names(inspect(inspector, "--method", "tools/list", "--strict"), "tools")
    assert tools[:2] == ["echo", "sleep"]
    assert "off" not in tools
    assert "a" in names(inspect(inspector, "--method", "resources/list"), "resources")
    assert "greet" in names(inspect(inspector, "--method", "prompts/list"), "prompts")
    templates = inspect(inspector, "--method", "resources/templates/list")
    assert "doc" in names(templates, "resourceTemplates")


def test_it_calls(inspector: Path) -> None:
    call = ("--method", "tools/call", "--tool-name")
    printed = inspect(inspector, *call, "echo", "--tool-arg", "text=Grüße ✓")
    assert printed["content"] == [{"type": "text", "text": "Grüße ✓"}]
    structured = inspect(inspector, *call, "out_point", "--tool-arg", "mode=right")
    assert structured["structuredContent"] == {"x": 1, "y": 2}
    failed = inspect(inspector, *call, "boom", code=5)
    assert failed["isError"] is True


def test_it_reads(inspector: Path) -> None:
    read = inspect(inspector, "--method", "resources/read", "--uri", "mem://a")
    assert read["contents"] == [{"uri": "mem://a", "mimeType": "text/plain", "text": "a"}]
    prompt = ("--method", "prompts/get", "--prompt-name", "greet", "--prompt-args", "who=Ann")
    got = inspect(inspector, *prompt)
    assert got["messages"] == [
        {"role": "user", "content": {"type": "text", "text": "Say hello to Ann."}}
    ]
