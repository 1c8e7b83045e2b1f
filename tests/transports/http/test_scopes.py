"""Operations that need more of a token than others."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from raxol_mcp import (
    BearerAuthenticator,
    Decision,
    Principal,
    ProtectedResource,
    Server,
    StaticTokens,
    allow,
    require_scopes,
)
from raxol_mcp.server.authorizer import AuthorizationContext, nonblocking
from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.transports.memory import MemoryTransport
from tests.transports.http.client import Json, Reply
from tests.transports.http.world import LEGACY, World, text_of

READER, WRITER = "a-token-of-a-reader", "a-token-of-a-writer"
NEEDED = ("files:read", "files:write")
DENIED = (
    '{"error":"authorization_required","tool":"write","decision":"deny",'
    '"detail":"insufficient_scope"}'
)
CHALLENGE = (
    'Bearer error="insufficient_scope", error_description="The token lacks a scope", '
    'scope="files:read files:write", '
    'resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/mcp"'
)


def decide(name: str, arguments: Mapping[str, object], context: AuthorizationContext) -> Decision:
    """Let everybody read, and those write whose token says so."""
    return require_scopes(*NEEDED) if name in ("write", "resources/read") else allow()


async def decide_later(
    name: str, arguments: Mapping[str, object], context: AuthorizationContext
) -> Decision:
    """Decide the same, not at once."""
    return decide(name, arguments, context)


def server(*, late: bool = False) -> Server:
    """Make a server with two tools and a resource."""
    authorizer = decide_later if late else nonblocking(decide)
    made = Server(
        "scopes",
        authorizer=authorizer,
        authorizer_source="configured",
        read_authorizer=authorizer,
    )

    @made.tool
    async def read() -> str:
        """Read."""
        return "read"

    @made.tool
    async def write() -> str:
        """Write."""
        return "written"

    @made.resource("file:///a")
    async def a() -> str:
        """Give a file."""
        return "text"

    return made


def world(*, late: bool = False) -> World:
    """Serve it to two users."""
    resource = ProtectedResource(
        "https://mcp.example/mcp", authorization_servers=["https://login.example"]
    )
    tokens = StaticTokens(
        {
            READER: Principal("reader", "static", scopes=frozenset({"files:read"})),
            WRITER: Principal("writer", "static", scopes=frozenset(NEEDED)),
        }
    )
    return World(
        server=server(late=late), authenticator=BearerAuthenticator(tokens, resource=resource)
    )


def bearing(token: str) -> dict[str, str | None]:
    """Return the header with a token."""
    return {"authorization": f"Bearer {token}"}


def challenged(reply: Reply) -> bool:
    """Say whether a client is told, with a status, to get another token."""
    return (reply.status, reply.headers.get("www-authenticate")) == (403, CHALLENGE)


@pytest.mark.parametrize("late", [False, True])
def test_a_call_that_needs_scopes_is_challenged_with_all_of_them(late: bool) -> None:
    """MCP 2026-07-28 basic/authorization §Scope Challenge Handling"""

    async def main() -> None:
        served = world(late=late)
        for name, token, text in (
            ("read", READER, "read"),
            ("write", WRITER, "written"),
            ("write", READER, DENIED),
        ):
            reply = await served.call(1, name, changes=bearing(token)).ended()
            assert text_of(reply.json()) == text
            assert challenged(reply) is (text == DENIED)
            assert reply.status in (200, 403)

    run_virtual(main)


def test_in_a_session_the_token_of_the_request_counts() -> None:
    """MCP 2025-11-25 basic/authorization §Scope Challenge Handling; ADR-0018"""

    async def main() -> None:
        served = world()
        session = await served.session(changes=bearing(READER))
        refused = await session.call(1, "write").ended()
        assert challenged(refused)
        assert text_of(refused.json()) == DENIED
        assert text_of((await session.call(2, "read").ended()).json()) == "read"

    run_virtual(main)


def test_a_read_is_challenged_as_well_and_a_list_is_not() -> None:
    """Rulings: read denied"""

    async def main() -> None:
        served = world()
        read: Json = {"uri": "file:///a"}
        reader, writer = bearing(READER), bearing(WRITER)
        refused = await served.ask_modern(1, "resources/read", read, changes=reader).ended()
        assert challenged(refused)
        error = refused.json()["error"]
        assert (error["code"], error["data"]["detail"]) == (-31001, "insufficient_scope")
        allowed = await served.ask_modern(1, "resources/read", read, changes=writer).ended()
        assert allowed.json()["result"]["contents"][0]["text"] == "text"
        listed = await served.ask_modern(1, "tools/list", changes=reader).ended()
        names = [tool["name"] for tool in listed.json()["result"]["tools"]]
        assert (listed.status, names) == (200, ["read", "write"])

    run_virtual(main)


def test_without_tokens_it_is_an_ordinary_denial() -> None:
    """Ours: `RequireScopes`"""

    async def main() -> None:
        anonymous = World(server=server())
        reply = await anonymous.call(1, "write").ended()
        assert (reply.status, text_of(reply.json())) == (200, DENIED)
        async with server() as made, MemoryTransport(made) as memory:
            params: Json = {"protocolVersion": LEGACY, "capabilities": {}}
            await memory.request("initialize", params)
            answer: Json = await memory.request("tools/call", {"name": "write"})
            assert text_of(answer) == DENIED

    run_virtual(main)
