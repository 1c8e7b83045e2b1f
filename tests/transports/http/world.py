"""A server with a few tools on HTTP, and clients of both eras for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

from raxol_mcp import Context, Limits, RaxolError, Server, asgi_app
from raxol_mcp.server.authorizer import allow_all
from tests.transports.http.client import HttpClient, Json, Open, Reply

VERSION: Final = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
MODERN: Final = "2026-07-28"
LEGACY: Final = "2025-11-25"
JSON_HEADERS: Final[dict[str, str | None]] = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
}
FORM: Final[Json] = {"type": "object", "properties": {"yes": {"type": "boolean"}}}

Changes = Mapping[str, str | None]


class World:
    """One served application. `journal` is what tools did, in order."""

    def __init__(
        self, *, limits: Limits | None = None, server: Server | None = None, **options: Any
    ) -> None:
        self.journal: list[str] = []
        self.server = server or self._server(limits)
        self.app = asgi_app(self.server, **{"require_authorization": False, **options})
        self.http = HttpClient(self.app)
        self.gate = asyncio.Event()

    def _server(self, limits: Limits | None) -> Server:
        server = Server(
            "world",
            limits=limits,
            authorizer=allow_all(),
            authorizer_source="configured",
            read_authorizer=allow_all(),
        )
        journal = self.journal

        @server.tool
        async def echo(text: str) -> str:
            """Return the text."""
            journal.append(f"echo:{text}")
            return text

        @server.tool
        async def sleep(seconds: float, tag: str = "") -> str:
            """Wait."""
            journal.append(f"start:{tag}")
            try:
                await asyncio.sleep(seconds)
            except asyncio.CancelledError:
                journal.append(f"cancelled:{tag}")
                raise
            journal.append(f"end:{tag}")
            return f"slept {tag}"

        @server.tool
        async def progress(steps: int, context: Context) -> str:
            """Report some steps."""
            for step in range(steps):
                context.progress(step + 1, steps)
                await asyncio.sleep(0.01)
            return "done"

        @server.tool
        async def ask(context: Context) -> str:
            """Ask the human."""
            result = await context.elicit("Really?", FORM)
            return result.action

        self._more_tools(server)
        return server

    def _more_tools(self, server: Server) -> None:
        journal = self.journal

        @server.tool
        async def ask_late(seconds: float, context: Context) -> str:
            """Ask the human after a while."""
            await asyncio.sleep(seconds)
            try:
                await context.elicit("Really?", FORM)
            except RaxolError as error:
                journal.append(f"{type(error).__name__} at {asyncio.get_running_loop().time():.0f}")
            return "asked"

        @server.tool
        async def let_go(seconds: float, retry: float, context: Context) -> str:
            """Let the client go, and answer later."""
            context.release_stream(retry)
            await asyncio.sleep(seconds)
            return "welcome back"

        @server.tool
        async def big(size: int) -> str:
            """Return many letters."""
            return "A" * size

        @server.tool
        async def boom() -> str:
            """Fail."""
            raise RuntimeError("secret")

    # -- the stateless era --------------------------------------------------------------------

    def call(self, id: int | str, name: str, arguments: Json | None = None, **rest: Any) -> Open:
        """Begin a `tools/call` of the stateless era."""
        params: Json = {"name": name, "arguments": arguments or {}}
        return self.ask_modern(id, "tools/call", params, **rest)

    def ask_modern(
        self,
        id: int | str | None,
        method: str,
        params: Json | None = None,
        *,
        capabilities: Json | None = None,
        meta: Json | None = None,
        changes: Changes | None = None,
        path: str = "/mcp",
    ) -> Open:
        """Begin a request (a notification without id) of the stateless era."""
        body: Json = {"jsonrpc": "2.0", "method": method}
        if id is not None:
            body["id"] = id
        whole = {VERSION: MODERN, CAPABILITIES: capabilities or {}, **(meta or {})}
        body["params"] = {**(params or {}), "_meta": whole}
        headers: dict[str, str | None] = {
            **JSON_HEADERS,
            "mcp-protocol-version": MODERN,
            "mcp-method": method,
        }
        name = (params or {}).get("name", (params or {}).get("uri"))
        if isinstance(name, str) and method in ("tools/call", "prompts/get", "resources/read"):
            headers["mcp-name"] = name
        headers.update(changes or {})
        return self.http.open("POST", path, headers, json.dumps(body).encode())

    # -- the handshake era --------------------------------------------------------------------

    async def session(
        self,
        version: str = LEGACY,
        *,
        capabilities: Json | None = None,
        changes: Changes | None = None,
    ) -> Session:
        """Greet the server and return the session."""
        reply = await self.greet(version, capabilities=capabilities, changes=changes)
        assert reply.status == 200, reply.body
        session = Session(self, reply.headers["mcp-session-id"], version, dict(changes or {}))
        accepted = await session.post({"method": "notifications/initialized"}).ended()
        assert accepted.status == 202
        return session

    async def greet(
        self,
        version: str = LEGACY,
        *,
        capabilities: Json | None = None,
        changes: Changes | None = None,
    ) -> Reply:
        """Send `initialize`."""
        params = {
            "protocolVersion": version,
            "capabilities": capabilities or {},
            "clientInfo": {"name": "test", "version": "0"},
        }
        return await self.post_raw(
            {"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": params}, changes
        ).ended()

    def post_raw(self, body: object, changes: Changes | None = None, path: str = "/mcp") -> Open:
        """Begin a POST with the two JSON headers and a body as it is."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.http.open("POST", path, {**JSON_HEADERS, **(changes or {})}, raw)

    def stats(self) -> dict[str, int]:
        """Count what the application and its server hold."""
        return {**self.app.stats(), **self.server.stats()}


class Session:
    """One session of the handshake era, from its client's side."""

    def __init__(self, world: World, id: str, version: str, changes: dict[str, str | None]) -> None:
        self.world = world
        self.id = id
        self.headers: dict[str, str | None] = {
            **JSON_HEADERS,
            "mcp-session-id": id,
            "mcp-protocol-version": version if version >= "2025-06-18" else None,
            **changes,
        }

    def post(self, body: Json | list[Json], changes: Changes | None = None) -> Open:
        """Begin a POST of a message, or of a batch."""
        whole: object = (
            [{"jsonrpc": "2.0", **part} for part in body]
            if isinstance(body, list)
            else {"jsonrpc": "2.0", **body}
        )
        return self.world.post_raw(whole, {**self.headers, **(changes or {})})

    def call(
        self, id: int | str, name: str, arguments: Json | None = None, *, token: object = None
    ) -> Open:
        """Begin a `tools/call`."""
        params: Json = {"name": name, "arguments": arguments or {}}
        if token is not None:
            params["_meta"] = {"progressToken": token}
        return self.post({"id": id, "method": "tools/call", "params": params})

    def listen(self, after: str | None = None) -> Open:
        """Begin a GET; `after` is the last event the client has read."""
        headers = {**self.headers, "content-type": None, "last-event-id": after}
        return self.world.http.open("GET", "/mcp", headers)

    async def delete(self) -> Reply:
        """End the session."""
        return await self.world.http.send("DELETE", "/mcp", {**self.headers, "content-type": None})


def text_of(message: Json) -> str:
    """Return the text of the result of a tool."""
    text = message["result"]["content"][0]["text"]
    assert isinstance(text, str)
    return text


def code_of(reply: Reply) -> int:
    """Return the code of an error."""
    code = reply.json()["error"]["code"]
    assert isinstance(code, int)
    return code
