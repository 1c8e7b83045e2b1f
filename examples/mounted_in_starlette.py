"""An MCP endpoint inside of a Starlette application, beside a page that has nothing to do with it.

    uvicorn examples.mounted_in_starlette:app

FastAPI is a Starlette application: there it is `FastAPI(lifespan=mcp.lifespan)` and
`app.mount("/api", mcp)`. Run by itself, the program serves on a free port and checks what it is
told, as somebody with a token and as somebody without.
"""

from __future__ import annotations

import asyncio
import json
import socket
from http.client import HTTPConnection

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from raxol_mcp import (
    BearerAuthenticator,
    Context,
    Server,
    StaticTokens,
    allow_all,
    allowlist,
    asgi_app,
)

# In earnest: StaticTokens.from_file(...), or signed tokens and a JwtVerifier.
TOKEN = "not-a-secret-because-it-is-printed-here"

server = Server(
    "mounted",
    authorizer=allowlist(["whoami"]),
    authorizer_source="configured",  # somebody chose it, so it may be served over a network
    read_authorizer=allow_all(),
)


@server.tool
def whoami(ctx: Context) -> str:
    """Say who is calling."""
    return f"You are {ctx.principal}."


async def home(request: Request) -> PlainTextResponse:
    """Show a page of the application that MCP is only a part of."""
    return PlainTextResponse("A page like any other.\n")


mcp = asgi_app(server, authenticator=BearerAuthenticator(StaticTokens({TOKEN: "alice"})))
app = Starlette(
    routes=[Route("/", home), Mount("/api", app=mcp)],
    # Starts and ends the server; in a lifespan of your own: `async with mcp.lifespan():`.
    lifespan=mcp.lifespan,
)


def asked(port: int, method: str, path: str, token: str | None = None) -> tuple[int, str]:
    """Send a request, as a call of the tool if it is a POST; return status and body."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "whoami", "_meta": meta}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "whoami",
    }
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, json.dumps(message) if method == "POST" else "", headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


async def main() -> None:
    """Serve, ask, and stop."""
    listener = socket.create_server(("127.0.0.1", 0))
    port: int = listener.getsockname()[1]
    runner = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=5))
    serving = asyncio.create_task(runner.serve([listener]))
    try:
        assert await asyncio.to_thread(asked, port, "GET", "/") == (200, "A page like any other.\n")
        status, _ = await asyncio.to_thread(asked, port, "POST", "/api/mcp")
        assert status == 401, "without a token nobody is let in"
        status, body = await asyncio.to_thread(asked, port, "POST", "/api/mcp", TOKEN)
        assert status == 200
        text = json.loads(body)["result"]["content"][0]["text"]
        assert text == "You are static|alice."
        print(f"http://127.0.0.1:{port}/api/mcp said: {text}")
    finally:
        runner.should_exit = True
        await serving


if __name__ == "__main__":
    asyncio.run(main())
