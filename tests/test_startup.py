"""Starting is cheap because little is loaded: what a small server imports is counted, not timed.

`make bench` times it. Ours; CONTRIBUTING.md §House rules: what is heavy is imported in the
function that needs it.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"

# What every server on this loop and this codec has loaded, whoever wrote it.
FLOOR = "import asyncio, msgspec, sys"

# One tool, one answer, over the pipes of its own process.
SERVER = f"""
{FLOOR}
from raxol_mcp import Server, serve_stdio

server = Server("small")

@server.tool
async def echo(text: str) -> str:
    "Echo."
    return text

asyncio.run(serve_stdio(server))
"""
INITIALIZE = (
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    '"capabilities":{},"clientInfo":{"name":"test","version":"0"}}}\n'
)
CALL = (
    '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo",'
    '"arguments":{"text":"hello"}}}\n'
)

# Each module costs a fifth of a millisecond. One more that every server needs is a decision;
# what only some servers need is imported by the function that needs it.
MOST_MODULES = 63


def loaded(program: str, sent: str = "") -> tuple[set[str], list[str]]:
    """Run a program; return the modules it had loaded at its end, and the lines it answered."""
    ended = subprocess.run(
        [sys.executable, "-c", f"{program}\nprint(*sys.modules, file=sys.stderr)"],
        env={"PYTHONPATH": str(SOURCE)},
        input=sent,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return set(ended.stderr.split()), ended.stdout.splitlines()


@pytest.fixture(scope="module")
def added() -> set[str]:
    """What a small server has loaded beyond the floor, once it has answered `initialize`."""
    modules, answers = loaded(SERVER, INITIALIZE)
    assert [json.loads(line)["result"]["serverInfo"]["name"] for line in answers] == ["small"]
    return modules - loaded(FLOOR)[0]


def is_ours(module: str) -> bool:
    return module.partition(".")[0] == "raxol_mcp"


def test_a_small_server_loads_nothing_beyond_its_loop_and_codec(added: set[str]) -> None:
    """Ours: no dataclasses, json, hashlib, queue, ... before something needs them."""
    assert {module for module in added if not is_ours(module)} <= {"bisect", "_bisect"}


def test_a_small_server_loads_few_modules_of_ours(added: set[str]) -> None:
    assert len([module for module in added if is_ours(module)]) <= MOST_MODULES


@pytest.mark.parametrize(
    "module",
    [
        *("server.asking", "server.processes", "server.returns", "server.seam"),
        *("server.templates", "server.threads", "server.deployment", "server.process_call"),
        *("server.shapes", "schemas.__init__", "schemas.json_schema", "schemas.problems"),
    ],
)
def test_what_few_servers_need_is_not_loaded(added: set[str], module: str) -> None:
    path = SOURCE.joinpath("raxol_mcp", *module.split("."))
    assert path.with_suffix(".py").exists(), "it was renamed"
    assert f"raxol_mcp.{module.removesuffix('.__init__')}" not in added


def test_the_first_call_loads_nothing_more(added: set[str]) -> None:
    """Ours: a start is not cheap because the first caller pays for it."""
    modules, answers = loaded(SERVER, INITIALIZE + CALL)
    assert json.loads(answers[1])["result"] == {"content": [{"type": "text", "text": "hello"}]}
    assert modules - loaded(FLOOR)[0] == added
