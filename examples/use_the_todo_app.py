"""An agent uses a terminal app: it starts it, reads its tools, works with it, and stops it.

    python examples/use_the_todo_app.py

The app is `todo_app.py`, in a process of its own, served by the command line. What is printed is
what the README shows.
"""

import asyncio
import sys
from pathlib import Path

from raxol_mcp import Accept, Client, Decline, ElicitRequest

APP = Path(__file__).with_name("todo_app.py")
SPEC = {
    "name": "todo",
    "command": sys.executable,
    "args": ["-m", "raxol_mcp", "serve-app", str(APP), "--allow-all-tools", "--columns", "60"],
}


def asked(request: ElicitRequest) -> Accept | Decline:
    """Be the person: agree to clearing, and to nothing else."""
    print(f"? {request.message.splitlines()[0]}  -> yes")
    return Accept({"approve": True}) if "s1.clear.click" in request.message else Decline()


async def main() -> None:
    """Work through the list."""
    async with Client(SPEC, elicitation=asked) as todo:

        async def call(tool: str, **arguments: object) -> str:
            shown = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
            result = await todo.call_tool(tool, arguments)
            text = result.text.splitlines()[0]
            print(f"> {tool}({shown})\n{text}")
            return result.text

        async def tools() -> list[str]:
            names = [tool.name for tool in await todo.list_tools()]
            return [name for name in names if name.startswith("s1.")]

        await call("start_session")
        await call("s1.new.type_into", text="Buy milk", submit=True)
        await call("s1.new.type_into", text="Write a letter", submit=True)
        assert "s1.items.Checkbox-buy-milk.toggle" in await tools()
        assert "s1.clear.click" not in await tools(), "it is disabled: nothing is done yet"
        await call("s1.items.Checkbox-buy-milk.toggle", on=True)
        await call("s1.clear.click")
        assert "s1.items.Checkbox-buy-milk.toggle" not in await tools()
        screen = await call("screenshot")
        assert "Write a letter" in screen
        assert "1 to do, 0 done" in screen
        await call("stop_session")
        await call("s1.clear.click")


if __name__ == "__main__":
    asyncio.run(main())
