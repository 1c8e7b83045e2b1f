"""A server made with FastMCP 4: `python fastmcp_server.py PORT`, in an environment that has it.

It serves HTTP on loopback, in pages of three.
"""

# FastMCP is not installed where the types are checked.
# mypy: disable-error-code="import-not-found,misc,untyped-decorator"

import asyncio
import sys
from dataclasses import dataclass

from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.utilities.types import Image
from mcp_types import (
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequiredResult,
    ToolListChangedNotification,
)

PAGE = 3
PNG = b"\x89PNG\r\n\x1a\n"

mcp = FastMCP("foreign", instructions="Call things.", version="9.9", list_page_size=PAGE)
noted: list[str] = []


@dataclass
class Point:
    """Somewhere."""

    x: int
    y: int


@dataclass
class Name:
    """Somebody."""

    name: str


@mcp.tool
async def echo(text: str) -> str:
    """Echo."""
    return text


@mcp.tool
async def point(x: int, y: int) -> Point:
    """Return an object."""
    return Point(x, y)


@mcp.tool
async def pixel() -> Image:
    """Return an image."""
    return Image(data=PNG, format="png")


@mcp.tool
async def fails() -> str:
    """Fail."""
    raise ToolError("on purpose")


@mcp.tool
async def steps(count: int, ctx: Context) -> str:
    """Report progress."""
    for step in range(1, count + 1):
        await ctx.report_progress(step, count, f"step {step}")
    return "done"


@mcp.tool
async def logs(ctx: Context) -> str:
    """Log twice."""
    await ctx.info("one")
    await ctx.warning("two")
    return "logged"


@mcp.tool
async def asks(ctx: Context) -> str:
    """Ask in the middle of the work, which the handshake era allows."""
    answer = await ctx.elicit("Who are you?", Name)
    return f"{answer.action} {answer.data.name}" if answer.action == "accept" else answer.action


@mcp.tool
async def asks_first(ctx: Context) -> str | InputRequiredResult:
    """Ask before the work, as the stateless era has it."""
    answers = ctx.input_responses
    if answers is not None and "who" in answers:
        return f"{answers['who'].action} {answers['who'].content['name']} {ctx.request_state}"
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    form = ElicitRequestFormParams(message="Who are you?", requested_schema=schema)
    return InputRequiredResult(
        input_requests={"who": ElicitRequest(params=form)}, request_state="carried"
    )


@mcp.tool
async def sleeps(tag: str, ctx: Context) -> str:
    """Sleep until it is given up; the first report says that it has begun."""
    await ctx.report_progress(1)
    try:
        await asyncio.sleep(600)
    finally:
        noted.append(tag)
    return "slept"


@mcp.tool
async def journal() -> list[str]:
    """Return the tags of those that do not sleep any more."""
    return noted


@mcp.tool
async def grows(ctx: Context) -> str:
    """Add a tool, and say so: it is not said by itself."""

    async def late() -> str:
        """Come late."""
        return "late"

    mcp.tool(late)
    await ctx.send_notification(ToolListChangedNotification())
    return "grown"


@mcp.resource("text://a", mime_type="text/plain")
async def text() -> str:
    """Return a text."""
    return "a"


@mcp.resource("bytes://b", mime_type="application/octet-stream")
async def some_bytes() -> bytes:
    """Return bytes."""
    return b"\x00\xff"


@mcp.resource("item://{name}")
async def item(name: str) -> str:
    """Return the name of an item."""
    return name


@mcp.prompt
async def greet(who: str) -> str:
    """Greet somebody."""
    return f"Say hello to {who}."


if __name__ == "__main__":
    mcp.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False)
