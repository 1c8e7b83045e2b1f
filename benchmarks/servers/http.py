"""A server of each side over HTTP: `python -m benchmarks.servers.http WHAT SIDE [LOOP]`.

All but `served` under uvicorn with the same settings. WHAT is `echo` (limits are raised so that
nothing is refused as busy) or `guarded` (limits as they are by default, two users with a token
each, and one more tool, which sleeps). SIDE is `ours` (`asgi_app`), `served` (the same by
`serve_http`, as `raxol-mcp serve --http` does), `official`, `official-json` (it answers with one
JSON body wherever it can) or `bare`. The garbage collector is as Python has it, but for `served`,
and for a SIDE with `-rarely` behind it, which has it as `serve_http` sets it. The first line of
output is the port.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Final, cast
from urllib.parse import urlsplit

import uvicorn

__all__ = ["SLEEP", "TOKENS"]

# Seconds.
SLEEP: Final = 5.0
# `{token: user}`, for the guarded servers.
TOKENS: Final = {"a-token-of-the-user-alice": "alice", "a-token-of-the-user-bob": "bob"}

Event = MutableMapping[str, object]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]
App = Callable[[Event, Receive, Send], Awaitable[None]]


def bare() -> App:
    """Make an application without any MCP library: POST parses and echoes, GET is a stream.

    The floor that a server on uvicorn and this codec cannot go below. It checks and bounds nothing.
    """
    import msgspec

    decode = msgspec.json.Decoder(dict[str, object]).decode
    encode = msgspec.json.Encoder().encode
    json = (b"content-type", b"application/json")
    events = (b"content-type", b"text/event-stream")

    async def post(receive: Receive, send: Send) -> None:
        message = decode(cast("bytes", (await receive())["body"]))
        params = cast("dict[str, dict[str, object]]", message["params"])
        result: dict[str, object] = {
            "content": [{"type": "text", "text": params["arguments"]["text"]}]
        }
        if "_meta" in params:
            result["resultType"] = "complete"
        body = encode({"jsonrpc": "2.0", "id": message["id"], "result": result})
        headers = [json, (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def get(receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [events]})
        await send({"type": "http.response.body", "body": b": \n\n", "more_body": True})
        while (await receive())["type"] != "http.disconnect":
            pass

    async def app(scope: Event, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            for change in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{change}.complete"})
        elif scope["method"] == "POST":
            await post(receive, send)
        else:
            await get(receive, send)

    return app


def ours(*, guarded: bool) -> App:
    """Make this project's application."""
    from benchmarks.servers.ours import build
    from raxol_mcp import Server, asgi_app
    from raxol_mcp.server.auth import BearerAuthenticator
    from raxol_mcp.server.static_tokens import StaticTokens

    if not guarded:
        return cast("App", asgi_app(build(), require_authorization=False))
    server = Server("bench")

    @server.tool
    async def echo(text: str) -> str:
        """Echo."""
        return text

    @server.tool
    async def sleep() -> str:
        """Sleep."""
        await asyncio.sleep(SLEEP)
        return "slept"

    authenticator = BearerAuthenticator(StaticTokens(TOKENS))
    app = asgi_app(server, authenticator=authenticator, require_authorization=False)
    return cast("App", app)


def official(*, guarded: bool, json: bool) -> App:
    """Make the official SDK's application, with JSON bodies for answers if `json`."""
    from mcp.server.auth.provider import AccessToken
    from mcp.server.auth.settings import AuthSettings
    from mcp.server.mcpserver import MCPServer
    from pydantic import AnyHttpUrl

    from benchmarks.servers.official import build

    if not guarded:
        return cast("App", build().streamable_http_app(json_response=json))

    class Tokens:
        async def verify_token(self, token: str) -> AccessToken | None:
            user = TOKENS.get(token)
            if user is None:
                return None
            return AccessToken(token=token, client_id=user, subject=user, scopes=[])

    here = AnyHttpUrl("http://127.0.0.1:1")
    settings = AuthSettings(
        issuer_url=here, resource_server_url=here, validate_token_resource=False
    )
    server = MCPServer("bench", log_level="ERROR", token_verifier=Tokens(), auth=settings)

    @server.tool()
    async def echo(text: str) -> str:
        """Echo."""
        return text

    @server.tool()
    async def sleep() -> str:
        """Sleep."""
        await asyncio.sleep(SLEEP)
        return "slept"

    return cast("App", server.streamable_http_app(json_response=json))


def make(what: str, side: str) -> App:
    """Make the application of a side."""
    guarded = what == "guarded"
    if side == "bare":
        return bare()
    if side == "ours":
        return ours(guarded=guarded)
    return official(guarded=guarded, json=side == "official-json")


def serve(loop: str) -> None:
    """Serve this project's server as users do, with every bound and setting of `serve_http`."""
    from benchmarks.servers.ours import build
    from raxol_mcp import serve_http

    def ready(url: str) -> None:
        print(urlsplit(url).port, flush=True)

    with asyncio.Runner(
        loop_factory=uvicorn.Config("", loop=loop, log_config=None).get_loop_factory()
    ) as runner:
        runner.run(serve_http(build(), port=0, require_authorization=False, ready=ready))


def main() -> None:
    """Serve on a free port until the process is ended."""
    what, side, *loop = sys.argv[1:]
    if side == "served":
        serve("uvloop" if loop == ["uvloop"] else "asyncio")
        return
    # With its protocol named: only then asyncio sends what is written without waiting for more.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(
        make(what, side.removesuffix("-rarely")),
        loop="uvloop" if loop == ["uvloop"] else "asyncio",
        http="httptools",
        ws="none",
        lifespan="on",
        interface="asgi3",
        backlog=2048,
        access_log=False,
        log_level="error",
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=75,
    )
    print(listener.getsockname()[1], flush=True)
    if side.endswith("-rarely"):
        from raxol_mcp.transports.http.collector import collecting_rarely

        config.load()  # what is imported for it is there before, too
        with collecting_rarely():
            uvicorn.Server(config).run([listener])
    else:
        uvicorn.Server(config).run([listener])


if __name__ == "__main__":
    main()
