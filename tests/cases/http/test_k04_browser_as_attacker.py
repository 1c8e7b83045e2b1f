"""K04: a web page in the browser of the user reaches this machine's ports, and may try anything.

Servers ran tools for any Host, for text/plain, on the route that the fix had forgotten, and over a
WebSocket. Every route is found in the running application, none is listed here.
"""

from __future__ import annotations

import asyncio
import json
from itertools import product
from typing import Any, Final

import pytest

from raxol_mcp.server.auth import BearerAuthenticator
from raxol_mcp.server.protected_resource import ProtectedResource
from raxol_mcp.server.static_tokens import StaticTokens
from tests.cases.dialects import LEGACY, MODERN, text_of
from tests.cases.http.sockets import serving
from tests.cases.http_peers import TOKENS, HttpExchange, HttpPeer, bearer, headers_of

FOREIGN_HOSTS: Final = [
    "evil.example",
    "evil.example:8000",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "localhost:8000@evil.example",
    "evil.example@localhost",
    "0.0.0.0",
    "0.0.0.0:8000",
    "127.0.0.2",
    "2130706433",
    "[::]",
    "[::ffff:127.0.0.1]",
    "::1",
    "localhost.",
    "localhost:",
    "localhost:x",
    "localhost:8000:8000",
    "localhost, evil.example",
    "localhost evil.example",
    "localhost/",
    "localhost#",
    "localhost\\",
    "localhost\x00",
    "\u212alocalhost".encode().decode("latin-1"),
    "",
]
OWN_HOSTS: Final = ["127.0.0.1", "127.0.0.1:8000", "localhost:8000", "LOCALHOST", "[::1]:8000"]
FOREIGN_ORIGINS: Final = [
    "https://evil.example",
    "http://localhost.evil.example",
    "http://evil.example:8000",
    "http://127.0.0.1.evil.example",
    "http://localhost@evil.example",
    "file://",
    "file://localhost",
    "chrome-extension://localhost",
    "null",
    "localhost",
    "//localhost",
    "http://",
    "http://localhost:8000 https://evil.example",
    "http://localhost, https://evil.example",
    "http://0.0.0.0",
    "",
]
OWN_ORIGINS: Final = [None, "http://localhost:3000", "http://127.0.0.1", "https://[::1]:8443"]
METHODS: Final = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"]
CALL: Final = MODERN.call(1, "echo", {"text": "x"})
BODY: Final = json.dumps(CALL).encode()


def routes_of(exchange: HttpExchange) -> list[str]:
    """Every path of the running application, and one that it does not have."""
    routes = [*exchange.app._routes, *exchange.app._documents]
    assert len(routes) >= 6
    return [*routes, "/ws", "/"]


def guarded() -> HttpExchange:
    """A server with every route there is."""
    resource = ProtectedResource(
        "https://mcp.example.com/mcp", authorization_servers=["https://login.example.com"]
    )
    tokens = StaticTokens({token: name for name, token in TOKENS.items()})
    return HttpExchange(authenticator=BearerAuthenticator(tokens, resource=resource))


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_a_foreign_host_is_refused_on_every_route(host: str) -> None:
    """BC-011. GHSA-9h52-p55h-vw2f; MCP 2026-07-28 streamable-http §Security."""
    with guarded() as exchange:

        async def walks(peer: HttpPeer) -> None:
            for path in routes_of(exchange):
                for method in METHODS:
                    if method != "POST":
                        headers = {"host": host, "accept": "*/*", **bearer("alice")}
                        reply = await peer.http.send(method, path, headers)
                    else:
                        changes = {"host": host, **bearer("alice")}
                        reply = await peer.say(CALL, changes, path=path)
                    assert reply.status == 403, (method, path)
                    assert "mcp-session-id" not in reply.headers
            assert exchange.journal == []
            assert exchange.left() == {}

        exchange.run(walks)


@pytest.mark.parametrize("origin", FOREIGN_ORIGINS)
def test_a_foreign_page_is_refused_on_every_route(origin: str) -> None:
    """BC-171. MCP 2026-07-28 streamable-http §Security: Origin MUST be validated, and 403."""
    with guarded() as exchange:

        async def walks(peer: HttpPeer) -> None:
            for path in routes_of(exchange):
                for method in METHODS:
                    headers = {"origin": origin, "accept": "*/*", **bearer("alice")}
                    if method == "POST":
                        reply = await peer.say(CALL, headers, path=path)
                    else:
                        reply = await peer.http.send(method, path, headers)
                    assert reply.status == 403, (method, path)
                    allows = [name for name in reply.headers if name.startswith("access-control")]
                    assert allows == []
            assert exchange.journal == []
            assert exchange.left() == {}

        exchange.run(walks)


@pytest.mark.parametrize("host", OWN_HOSTS)
@pytest.mark.parametrize("origin", OWN_ORIGINS)
def test_this_machine_is_served(host: str, origin: str | None) -> None:
    """BC-011, the other side: the same request, with a name and a page of this machine."""
    with HttpExchange() as exchange:

        async def calls(peer: HttpPeer) -> None:
            reply = await peer.say(CALL, {"host": host, "origin": origin})
            assert text_of(reply.json()) == "x"

        exchange.run(calls)


CONTENT_TYPES: Final[list[tuple[str | None, bool]]] = [
    ("application/json", True),
    ("application/json; charset=utf-8", True),
    ("application/json;charset=UTF-8", True),
    ('application/json; charset="utf-8"', True),
    ("Application/JSON", True),
    ("application/json;", True),
    (" application/json ", True),
    ("application/json; x=y", True),
    ("text/plain", False),
    ("text/plain; a=application/json", False),
    ("text/plain;application/json", False),
    ("application/x-www-form-urlencoded", False),
    ("multipart/form-data; boundary=application/json", False),
    ("application/json-patch+json", False),
    ("application/jsonp", False),
    ("application/vnd.api+json", False),
    ("text/json", False),
    ("application/json; charset=utf-16", False),
    ("application/json, text/plain", False),
    ("application", False),
    ("*/*", False),
    ("", False),
    (None, False),
]


@pytest.mark.parametrize(("content_type", "taken"), CONTENT_TYPES)
def test_a_body_says_that_it_is_json(content_type: str | None, taken: bool) -> None:
    """BC-013. RFC 9110 §8.3: the media type is parsed, not searched; 415 for every other."""
    with HttpExchange() as exchange:

        async def calls(peer: HttpPeer) -> None:
            for message in (CALL, LEGACY.call(1, "echo", {"text": "x"})):
                reply = await peer.say(message, {"content-type": content_type})
                if not taken:
                    assert reply.status == 415
                    assert "mcp-session-id" not in reply.headers
            assert exchange.journal == (["start:echo:x"] if taken else [])
            greeting = {"protocolVersion": "2025-11-25", "capabilities": {}}
            initialize = LEGACY.request(1, "initialize", greeting)
            greeted = await peer.say(initialize, {"content-type": content_type})
            assert ("mcp-session-id" in greeted.headers) is taken
            assert greeted.status == (200 if taken else 415)
            if taken:
                peer.session = {"mcp-session-id": greeted.headers["mcp-session-id"]}

        exchange.run(calls)


def test_no_combination_of_host_page_type_and_method_runs_anything() -> None:
    """BC-011, BC-013 and BC-171, the kind: the whole matrix over the live routes."""
    own, types = "127.0.0.1:8000", ["application/json", "text/plain", None]
    pages = [None, "https://evil.example", "null"]
    with guarded() as exchange:

        async def walks(peer: HttpPeer) -> None:
            takes = {path for path, route in exchange.app._routes.items() if "POST" in route}
            matrix = product(routes_of(exchange), METHODS, [own, "evil.example", ""], pages, types)
            for path, method, host, page, content_type in matrix:
                foreign = host != own or page is not None
                if not foreign and (method != "POST" or content_type == types[0]):
                    continue
                headers: dict[str, str | None] = {
                    "host": host,
                    "origin": page,
                    **headers_of(CALL),
                    "content-type": content_type,
                    **bearer("alice"),
                }
                reply = await peer.http.send(method, path, headers, BODY)
                refusal = 403 if foreign else 415 if path in takes else reply.status
                assert reply.status == refusal >= 400, (path, method, host, page, content_type)
                assert "mcp-session-id" not in reply.headers
            assert exchange.journal == []
            assert exchange.left() == {}

        exchange.run(walks)


def test_a_websocket_is_refused_before_it_opens() -> None:
    """BC-171. CVE-2026-59950; on whatever path, and with a good Host as well."""
    with guarded() as exchange:

        async def upgrades(peer: HttpPeer) -> None:
            for path in routes_of(exchange):
                sent: list[Any] = []

                async def receive() -> Any:
                    return {"type": "websocket.connect"}

                async def send(event: Any, sent: list[Any] = sent) -> None:
                    sent.append(event["type"])

                headers = [(b"host", b"localhost:8000"), (b"origin", b"https://evil.example")]
                scope: Any = {"type": "websocket", "path": path, "headers": headers}
                await exchange.app(scope, receive, send)
                assert sent == ["websocket.close"]

        exchange.run(upgrades)


UPGRADE: Final = (
    b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: mcp\r\n"
)
HEADS: Final = [
    b"Host: evil.example\r\n",
    b"Host: evil.example\r\nHost: 127.0.0.1\r\n",
    b"Host: 127.0.0.1\r\nHost: evil.example\r\n",
    b"Host:\r\n",
    b"",
    b"Host: 127.0.0.1\r\nOrigin: https://evil.example\r\n",
    b"Host: 127.0.0.1\r\nOrigin: http://localhost\r\nOrigin: https://evil.example\r\n",
    b"Host: evil.example\r\nX-Forwarded-Host: 127.0.0.1\r\n",
    b"Host: evil.example\r\nForwarded: host=127.0.0.1\r\n",
    b"X-Host: 127.0.0.1\r\nHost: evil.example\r\nOrigin: https://evil.example\r\n" + UPGRADE,
    b"Host: 127.0.0.1\r\nOrigin: https://evil.example\r\n" + UPGRADE,
]


@pytest.mark.parametrize("head", HEADS, ids=range(len(HEADS)))
def test_on_a_socket_too(head: bytes) -> None:
    """BC-011 and BC-171: with the HTTP server in front, which has its own reading of a head."""

    async def attacks() -> None:
        async with serving() as served:
            for path in ("/mcp", "/mcp/", "/mcp/sse", "/mcp/messages", "/health", "/ws"):
                for method in ("GET", "POST", "DELETE", "OPTIONS"):
                    reply = await served.ask(method, path, head, CALL)
                    # A head that HTTP itself forbids gets no further than the HTTP server.
                    assert reply.status in (400, 403), (method, path)
            assert served.journal == []

    asyncio.run(attacks())
