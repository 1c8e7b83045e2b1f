"""Our client against two smaller examples of the official SDK: many pages, and many streams."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.interop.foreign import connected, run, serving, text
from tests.interop.packages import source_of
from tests.interop.test_foreign_official import HANDSHAKE, PACKAGE, STATELESS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def examples() -> Path:
    """Fetch the examples; return their folder."""
    return source_of("foreign-official", PACKAGE, "examples/servers")


@pytest.mark.parametrize("era", [HANDSHAKE, STATELESS])
def test_every_page_is_read(examples: Path, era: str) -> None:
    """Five tools, ten resources and seven prompts to a page."""
    variables = {"PYTHONPATH": str(examples / "simple-pagination")}
    arguments = ["-m", "mcp_simple_pagination"]
    spec = {"command": sys.executable, "args": arguments, "env": variables, "era": era}

    async def scenario() -> None:
        async with connected(spec) as (client, _):
            tools = [tool.name for tool in await client.list_tools()]
            assert tools == [f"tool_{number}" for number in range(1, 26)]
            resources = [resource.name for resource in await client.list_resources()]
            assert resources == [f"resource_{number}" for number in range(1, 31)]
            prompts = [prompt.name for prompt in await client.list_prompts()]
            assert prompts == [f"prompt_{number}" for number in range(1, 21)]
            assert "tool_25" in text(await client.call_tool("tool_25", {"input": "x"}))

    run(scenario)


def test_a_call_outlives_many_streams(examples: Path) -> None:
    """MCP 2025-11-25 transports §Resumability: its stream is closed after every item but the last.

    Nothing that was said is lost or comes twice.
    """
    variables = {"PYTHONPATH": str(examples / "sse-polling-demo")}
    command = [sys.executable, "-m", "mcp_sse_polling_demo", "--port", "0"]

    async def scenario(url: str) -> None:
        spec = {"url": f"{url}/mcp", "allow_private": True, "era": HANDSHAKE}
        async with connected(spec) as (client, heard):
            done = await client.call_tool("process_batch", {"items": 4, "checkpoint_every": 1})
            assert "Successfully processed 4 items" in text(done)
            said = [str(message.data) for message in heard.logs]
            assert said[0] == "Starting batch processing of 4 items..."
            assert [line for line in said if line.startswith("[")] == [
                f"[{number}/4] Processing item {number}" for number in range(1, 5)
            ]
            assert len([line for line in said if line.startswith("Checkpoint")]) == 3
            assert {message.logger for message in heard.logs} == {"process_batch"}

    with serving(command, r"running on (http://[0-9.:]+)", env=variables) as url:
        run(lambda: scenario(url))
