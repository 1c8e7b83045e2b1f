"""A whole server, for any MCP client that can start a command."""

import asyncio

from raxol_mcp import Server, serve_stdio

server = Server("hello")


@server.tool
def greet(name: str, times: int = 1) -> str:
    """Greet somebody."""
    return " ".join([f"Hello, {name}!"] * times)


if __name__ == "__main__":
    asyncio.run(serve_stdio(server))
