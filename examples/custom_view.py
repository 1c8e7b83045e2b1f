"""A view that no toolkit drew, served as tools: the whole of an adapter.

    python examples/custom_view.py

The app is a thermostat. Its adapter is two functions and one class: what the view is now, what may
be done in it, and a word to the synchronizer whenever something changed. This program is also the
client; it uses the thermostat, and fails when a tool does not fit what is on the screen.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from raxol_mcp import MemoryTransport, Server, ToolError, allow_all
from raxol_mcp.views.synchronizer import Synchronizer
from raxol_mcp.views.tree import Node
from raxol_mcp.views.walker import Action
from raxol_mcp.wire.jsonrpc import JSONObject

LOWEST, HIGHEST = 15, 18
STEPS: JSONObject = {
    "type": "object",
    "properties": {"steps": {"type": "integer", "minimum": 1}},
    "required": ["steps"],
}


class Thermostat:
    """The app. It knows nothing of tools; like every view it can say that it was updated."""

    def __init__(self) -> None:
        self.degrees = 17
        self.updated: Callable[[], None] = lambda: None

    def turn(self, degrees: int) -> None:
        """Turn the knob."""
        self.degrees = degrees
        self.updated()


class Knob:
    """The provider: what may be done with nodes of the type `knob`, and how."""

    def __init__(self, app: Thermostat) -> None:
        self._app = app

    def actions(self, node: Node) -> Sequence[Action]:
        """Offer the one thing that a knob can do. The label is part of what a model reads."""
        label = node.attributes["label"]
        return [Action(name="turn", description=f"Turn the knob {label}", input_schema=STEPS)]

    async def act(self, node: Node, action: str, arguments: Mapping[str, object]) -> object:
        """Turn it; `node` is the knob as it is now."""
        steps = int(str(arguments["steps"]))
        degrees = self._app.degrees + (steps if node.id == "warmer" else -steps)
        if not LOWEST <= degrees <= HIGHEST:
            raise ToolError(f"It goes from {LOWEST} to {HIGHEST} degrees.")
        self._app.turn(degrees)
        return f"{degrees} degrees"


def adapt(app: Thermostat, server: Server) -> Synchronizer:
    """Connect the two."""

    def snapshot() -> Node:
        warmer = {"label": "to the right", "disabled": app.degrees >= HIGHEST}
        cooler = {"label": "to the left", "disabled": app.degrees <= LOWEST}
        return Node(
            "panel",
            children=(
                Node("display", attributes={"content": f"{app.degrees}°"}),
                Node("knob", "warmer", warmer),
                Node("knob", "cooler", cooler),
            ),
        )

    session = Synchronizer(server, session="hall", providers={"knob": Knob(app)}, snapshot=snapshot)
    app.updated = session.changed
    return session


async def main() -> None:
    """Turn it up until it goes no further."""
    server = Server("thermostat", authorizer=allow_all())
    session = adapt(Thermostat(), server)
    async with server, MemoryTransport(server) as client:
        session.start()

        async def tools() -> list[str]:
            listed: Any = await client.request("tools/list", {})
            return [tool["name"] for tool in listed["result"]["tools"]]

        async def turn(name: str, steps: int) -> str:
            params: dict[str, object] = {"name": f"hall.{name}.turn", "arguments": {"steps": steps}}
            reply: Any = await client.request("tools/call", params)
            return str(reply["result"]["content"][0]["text"])

        assert await tools() == ["hall.discover_tools", "hall.warmer.turn", "hall.cooler.turn"]
        assert await turn("warmer", 5) == "It goes from 15 to 18 degrees."
        assert await turn("warmer", 1) == "18 degrees"
        # It is as warm as it gets. Who is faster than the list is told so.
        assert await turn("warmer", 1) == (
            "'warmer' is disabled now, or something is in front of it."
        )
        await asyncio.sleep(0.1)
        assert await tools() == ["hall.discover_tools", "hall.cooler.turn"]
        session.stop()
        assert await tools() == []
        print("the tools were what was on the screen, all the time")


if __name__ == "__main__":
    asyncio.run(main())
