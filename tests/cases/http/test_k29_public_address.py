"""K29: where a server is reached is not where it runs, and both work.

A framework's redirect lost the credentials and the body, and addresses were made from what the
inner server saw, or from what a client claimed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from raxol_mcp import Server, asgi_app
from raxol_mcp.server.auth import BearerAuthenticator
from raxol_mcp.server.authorizer import allow_all
from raxol_mcp.server.protected_resource import ProtectedResource
from raxol_mcp.server.static_tokens import StaticTokens
from raxol_mcp.testing.virtual_loop import run_virtual
from tests.cases.dialects import LEGACY, MODERN, text_of
from tests.cases.http_peers import TOKENS, HttpExchange, HttpPeer, bearer, headers_of
from tests.cases.peers import Message
from tests.transports.http.client import HttpClient, Reply

CALL: Final = MODERN.call(1, "echo", {"text": "x"})
PUBLIC: Final = "https://mcp.example.com/tools/mcp"
FORWARDED: Final = {
    "x-forwarded-proto": "https",
    "x-forwarded-host": "evil.example",
    "x-forwarded-prefix": "/evil",
    "x-forwarded-for": "192.0.2.1",
    "forwarded": 'host="evil.example";proto=https',
    "x-original-url": "/health",
    "x-rewrite-url": "/health",
}


def same(first: Reply, second: Reply) -> bool:
    """Say whether two replies are one, but for a session id."""
    hidden = {"mcp-session-id"}
    heads = [
        {name: value for name, value in reply.headers.items() if name not in hidden}
        for reply in (first, second)
    ]
    return (first.status, heads[0], first.body) == (second.status, heads[1], second.body)


@pytest.mark.parametrize("token", [None, "alice"])
@pytest.mark.parametrize("forwarded", [{}, FORWARDED], ids=["", "behind a proxy"])
def test_the_endpoint_is_one_place_with_a_slash_and_without(
    token: str | None, forwarded: dict[str, str]
) -> None:
    """BC-173. No redirect for any method, with credentials and without, in both eras."""
    with HttpExchange(tokens=True) as exchange:

        async def walks(peer: HttpPeer) -> None:
            greeting = {"protocolVersion": "2025-11-25", "capabilities": {}}
            messages = [CALL, LEGACY.request(1, "ping"), LEGACY.request(1, "initialize", greeting)]
            for message in messages:
                bare, slash = [
                    await peer.say(message, forwarded, path=path) for path in ("/mcp", "/mcp/")
                ]
                assert same(bare, slash)
                assert not 300 <= bare.status < 400
                assert (bare.status == 401) is (token is None)
                for reply in (bare, slash):
                    if "mcp-session-id" in reply.headers:
                        peer.session = {"mcp-session-id": reply.headers["mcp-session-id"]}
                        await peer.finish()
            for method in ("GET", "DELETE", "OPTIONS", "HEAD", "PUT", "PATCH"):
                headers = {"accept": "text/event-stream", **forwarded, **bearer(token)}
                replies = [await peer.http.send(method, p, headers) for p in ("/mcp", "/mcp/")]
                assert same(*replies), method
                assert not 300 <= replies[0].status < 400
                assert "location" not in replies[0].headers

        exchange.run(walks, tokens=(token,))


@pytest.mark.parametrize("path", ["/mcp//", "//mcp", "/mcp/.", "/MCP", "/mcp/x", "/mcp%2F", "/mc"])
def test_another_place_is_another_place(path: str) -> None:
    """BC-173, the kind: one spelling with a slash and one without, and no third."""
    with HttpExchange() as exchange:

        async def calls(peer: HttpPeer) -> None:
            reply = await peer.say(CALL, path=path)
            assert reply.status == 404
            assert exchange.journal == []

        exchange.run(calls)


# -- mounted, and behind a proxy that takes a prefix away ------------------------------------------


def resource_server() -> Any:
    """An application that is called `PUBLIC` by those who use it."""
    server = Server(
        "inner", authorizer=allow_all(), authorizer_source="configured", read_authorizer=allow_all()
    )

    @server.tool
    async def echo(text: str) -> str:
        """Return the text."""
        return text

    resource = ProtectedResource(PUBLIC, authorization_servers=["https://login.example.com"])
    tokens = StaticTokens({token: name for name, token in TOKENS.items()})
    return asgi_app(
        server,
        allowed_hosts=["mcp.example.com", "127.0.0.1:8000"],
        authenticator=BearerAuthenticator(tokens, resource=resource),
    )


class Proxy:
    """Takes `/tools` away, tells the application so (ASGI `root_path`) or not, and ends TLS."""

    def __init__(self, app: Any, *, tells: bool) -> None:
        self.app = app
        self.tells = tells

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path = scope["path"]
        inner = path.removeprefix("/tools")
        if path == inner and not path.startswith("/.well-known/"):
            await send({"type": "http.response.start", "status": 502, "headers": []})
            await send({"type": "http.response.body", "body": b"no such site"})
            return
        # With a root path, ASGI's `path` is the whole one; without, what is left is all there is.
        root = "/tools" if self.tells and path != inner else ""
        headers = [*scope["headers"], (b"x-forwarded-proto", b"https")]
        scope = {**scope, "path": root + inner, "root_path": root, "headers": headers}
        await self.app(scope, receive, send)


def mounted(app: Any) -> Any:
    """Mount it below a path of a larger application, and the document where it belongs."""
    return Starlette(routes=[Mount("/tools", app=app), Mount("/", app=app)])


Deployment = Callable[[Any], Any]
DEPLOYMENTS: Final[dict[str, Deployment]] = {
    "a proxy that tells": lambda app: Proxy(app, tells=True),
    "a proxy that does not": lambda app: Proxy(app, tells=False),
    "mounted": mounted,
    "mounted behind a proxy": lambda app: Proxy(mounted_at_root(app), tells=False),
}


def mounted_at_root(app: Any) -> Any:
    """Mount it as the whole of a larger application."""
    return Starlette(routes=[Mount("/", app=app)])


def runs(name: str, scenario: Callable[[HttpClient], Awaitable[None]]) -> None:
    """Run a scenario against a deployment, as its public sees it."""

    async def main() -> None:
        app = resource_server()
        async with app.lifespan():
            await scenario(HttpClient(DEPLOYMENTS[name](app), host="mcp.example.com"))

    run_virtual(main)


def urls_in(reply: Reply) -> list[str]:
    """Every absolute URL that a reply shows."""
    text = "\n".join([*reply.headers.values(), reply.body.decode()])
    return re.findall(r"https?://[^\s\"',\\]+", text)


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_the_walk_to_a_token_stays_at_the_public_address(name: str) -> None:
    """BC-173, the kind: from the challenge to the document to the call; no inner address is shown.

    What a client or a proxy claims in headers (`Host`, `Forwarded`) is in none of it.
    """

    async def walks(client: HttpClient) -> None:
        headers = headers_of(CALL)
        body = json.dumps(CALL).encode()
        for path in ("/tools/mcp", "/tools/mcp/"):
            refused = await client.send("POST", path, {**headers, **FORWARDED}, body)
            assert refused.status == 401
            (metadata,) = urls_in(refused)
            assert metadata.startswith("https://mcp.example.com/.well-known/")
            document = await client.send("GET", metadata.removeprefix("https://mcp.example.com"))
            assert document.json()["resource"] == PUBLIC
            for url in urls_in(document):
                assert url.startswith((PUBLIC, "https://login.example.com")), url
            good = await client.send("POST", path, {**headers, **bearer("alice")}, body)
            assert text_of(good.json()) == "x"
            assert urls_in(good) == []

    runs(name, walks)


@pytest.mark.parametrize("name", ["a proxy that tells", "mounted"])
def test_the_old_stream_says_where_to_post_from_outside(name: str) -> None:
    """BC-173, the kind: MCP 2024-11-05 has the server name an address, the prefix included."""

    async def speaks(client: HttpClient) -> None:
        headers = {"accept": "text/event-stream", **FORWARDED, **bearer("alice")}
        stream = client.open("GET", "/tools/mcp/sse", headers)
        place = (await stream.event()).data.decode()
        assert place.startswith("/tools/mcp/messages?session_id=")
        greeting: Message = {"protocolVersion": "2024-11-05", "capabilities": {}}
        message = LEGACY.request(1, "initialize", greeting)
        body = json.dumps(message).encode()
        posted = await client.send("POST", place, {**headers_of(message), **bearer("alice")}, body)
        assert posted.status == 202
        assert (await stream.message())["result"]["protocolVersion"] == "2024-11-05"
        stream.leave()
        await stream.ended()

    runs(name, speaks)
