"""Use a server: list its tools, call one, and answer what it asks."""

import asyncio
import sys

from raxol_mcp import Accept, Client, Decline, ElicitRequest


def asked(request: ElicitRequest) -> Accept | Decline:
    """Agree to nothing but what was expected. A real program shows it to a person."""
    return Accept({"approve": True}) if "notes.txt" in request.message else Decline()


async def main() -> None:
    """Start a server that greets, and be greeted."""
    spec = {"name": "hello", "command": sys.executable, "args": ["examples/hello_stdio.py"]}
    async with Client(spec, elicitation=asked) as hello:
        print([tool.name for tool in await hello.list_tools()])
        result = await hello.call_tool("greet", {"name": "world"}, timeout=10.0)
        print(result.text)


asyncio.run(main())
