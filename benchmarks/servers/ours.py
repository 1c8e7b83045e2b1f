"""This project's server, for the benchmarks: `python ours.py [number of further tools]`.

Limits are raised so that nothing is refused as busy.
"""

import asyncio
import sys
from collections.abc import Mapping

from raxol_mcp import Limits, Server, serve_stdio

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raxol_mcp.server.authorizer import AuthorizationContext, Authorizer, Decision

MANY = 4096


def build(tools: int = 0, *, authorizer: "Authorizer | None" = None) -> Server:
    """Make the server that every side has: `echo`, and as many more tools as asked for."""
    limits = Limits(max_in_flight=MANY, max_in_flight_per_connection=MANY)
    server = Server("bench", limits=limits, page_size=1000, authorizer=authorizer)

    @server.tool
    async def echo(text: str) -> str:
        """Echo."""
        return text

    for number in range(tools):

        async def further(a: int, b: str = "x") -> str:
            """One more tool, with an ordinary description of what it does."""
            return b

        server.tool(name=f"tool_{number:05d}")(further)
    return server


def build_asking() -> Server:
    """Make a server whose every call asks the human first, and waits long for the answer."""
    from raxol_mcp import ask, nonblocking

    @nonblocking
    def authorizer(
        name: str, arguments: Mapping[str, object], context: "AuthorizationContext"
    ) -> "Decision":
        return ask("Run it?")

    limits = Limits(
        max_in_flight=MANY,
        max_in_flight_per_connection=MANY,
        max_parked_elicitations=MANY,
        max_parked_elicitations_total=MANY,
        elicitation_timeout=3600.0,
    )
    server = Server("bench", limits=limits, authorizer=authorizer, authorizer_source="configured")

    @server.tool
    async def echo(text: str) -> str:
        """Echo."""
        return text

    return server


if __name__ == "__main__":
    if sys.argv[1:] == ["asking"]:
        served = build_asking()
    else:
        served = build(int(sys.argv[1]) if sys.argv[1:] else 0)
    asyncio.run(serve_stdio(served))
