"""The official SDK's server, for the benchmarks: `python official.py [number of further tools]`."""

import sys

from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel


def build(tools: int = 0) -> MCPServer:
    """Make the server that every side has: `echo`, and as many more tools as asked for."""
    server = MCPServer("bench", log_level="ERROR")

    @server.tool()
    async def echo(text: str) -> str:
        """Echo."""
        return text

    for number in range(tools):

        async def further(a: int, b: str = "x") -> str:
            """One more tool, with an ordinary description of what it does."""
            return b

        server.add_tool(further, name=f"tool_{number:05d}")
    return server


class Approval(BaseModel):
    """What the human is asked for."""

    approve: bool


def build_asking() -> MCPServer:
    """Make a server whose tool asks the human first."""
    server = MCPServer("bench", log_level="ERROR")

    @server.tool()
    async def echo(text: str, context: Context) -> str:
        """Echo."""
        await context.elicit("Run it?", Approval)
        return text

    return server


if __name__ == "__main__":
    if sys.argv[1:] == ["asking"]:
        served = build_asking()
    else:
        served = build(int(sys.argv[1]) if sys.argv[1:] else 0)
    served.run("stdio")
