"""The MCP Inspector's command line (`npx @modelcontextprotocol/inspector --cli`) as the client.

It needs Node 22, which comes from the npm registry as the package `node`, so a machine with an
older one will do. Everything is installed once into `build/inspector`; without npm, or without a
registry to be reached, the tests are skipped and say so.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.cases.peers import FIXTURE

pytestmark = pytest.mark.slow

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "build" / "inspector"
BIN: Final = FOLDER / "node_modules" / ".bin"
# First the Node that the second is installed and run with: npm chooses versions by its Node.
PACKAGES: Final = ("node@22", "@modelcontextprotocol/inspector@2.12.0")
INSTALLED: Final = FOLDER / "installed.txt"
BOUND: Final = 60.0


def environment() -> dict[str, str]:
    """Build the environment: Node 22 in front, nothing written outside the folder."""
    path = os.pathsep.join([str(BIN), os.environ["PATH"]])
    sources = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    home = {"HOME": str(FOLDER), "npm_config_cache": str(FOLDER / "cache")}
    return {**os.environ, **home, "PATH": path, "PYTHONPATH": sources}


@pytest.fixture(scope="module")
def inspector() -> Path:
    """Install the Inspector unless it is there already; return its program."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    if not INSTALLED.exists() or INSTALLED.read_text("utf-8").split() != list(PACKAGES):
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir(parents=True)
        for package in PACKAGES:
            command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(FOLDER), package]
            done = subprocess.run(
                command, env=environment(), capture_output=True, timeout=600, check=False
            )
            if done.returncode:
                reason = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
                pytest.skip(f"{package} could not be installed from npm: {reason}")
        INSTALLED.write_text("\n".join(PACKAGES), "utf-8")
    return BIN / "mcp-inspector"


def inspect(inspector: Path, *arguments: str, code: int = 0) -> dict[str, object]:
    """Run one command of the Inspector against a new server; return what it printed."""
    done = subprocess.run(
        [str(inspector), "--cli", sys.executable, str(FIXTURE), *arguments],
        env=environment(),
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
