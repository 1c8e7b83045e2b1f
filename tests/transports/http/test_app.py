"""Routes, guards on every one of them, who comes in, and when serving begins and ends."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from raxol_mcp import ConfigurationError, Server, allow, asgi_app, nonblocking
from raxol_mcp.core.authentication import Authenticated, Challenge
from raxol_mcp.server.authorizer import allow_all
from raxol_mcp.testing.virtual_loop import run_virtual
from tests.transports.http.client import HttpClient, Reply
from tests.transports.http.world import JSON_HEADERS, World, text_of

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
FOREIGN = (
    "evil.example",
    "evil.example:8000",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "localhost:8000@evil.example",
    "0.0.0.0",
    "127.0.0.1:99999999",
    "",
    "[::1",
)


def routes(world: World) -> list[str]:
    """Return every path that something is served at, from the running application."""
    return [*world.app._routes, *world.app._documents, "/nothing/here"]


@pytest.mark.parametrize("host", FOREIGN)
def test_a_foreign_host_is_refused_on_every_route(host: str) -> None:
    """MCP 2026-07-28 streamable-http §Security; CVE-2025-66416, CVE-2025-66414"""

    async def main() -> None:
        world = World()
        for path in routes(world):
            for method in METHODS:
                reply = await world.http.send(method, path, {**JSON_HEADERS, "host": host}, b"{}")
                assert reply.status == 403, (method, path)
        assert world.stats()["connections"] == 0

    run_virtual(main)


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "http://localhost.evil.example",
        "http://localhost@evil.example",
        "file://localhost",
        "",
        "localhost",
    ],
)
def test_a_foreign_page_is_refused_on_every_route(origin: str) -> None:
    """MCP 2026-07-28 streamable-http §Security: MUST validate Origin"""

    async def main() -> None:
        world = World()
        for path in routes(world):
            for method in METHODS:
                headers = {**JSON_HEADERS, "origin": origin}
                reply = await world.http.send(method, path, headers, b"{}")
                assert reply.status == 403, (method, path)

    run_virtual(main)


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("127.0.0.1:8000", None),
        ("localhost", "http://localhost:3000"),
        ("LOCALHOST:1", "https://127.0.0.1"),
        ("[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_this_machine_is_served(host: str, origin: str | None) -> None:
    """Ours: the defaults of `Guards`"""

    async def main() -> None:
        world = World()
        changes = {"host": host, "origin": origin}
        reply = await world.ask_modern(1, "tools/list", changes=changes).ended()
        assert reply.status == 200

    run_virtual(main)


def test_two_values_of_a_header_that_counts_are_refused() -> None:
    """Ours: K05"""

    async def main() -> None:
        world = World()
        for name, value, status in (
            ("host", "127.0.0.1:8000", 403),
            ("origin", "http://localhost", 400),
            ("content-type", "application/json", 400),
            ("content-length", "2", 400),
            ("authorization", "Bearer x", 400),
            ("mcp-session-id", "x", 400),
            ("mcp-protocol-version", "2025-11-25", 400),
            ("mcp-param-region", "x", 400),
            ("last-event-id", "x", 400),
        ):
            lines = [("content-type", "application/json")] if name != "content-type" else []
            lines += [(name, value), (name, value)]
            reply = await world.http.send("POST", "/mcp", lines, b"{}")
            assert reply.status == status, name
        accepts = [("accept", "application/json"), ("accept", "text/event-stream")]
        lines = [("content-type", "application/json"), *accepts]
        assert b"-32" in (await world.http.send("POST", "/mcp", lines, b"{}")).body

    run_virtual(main)


def test_headers_have_a_bound() -> None:
    """Ours: docs/limits.md"""

    async def main() -> None:
        world = World()
        reply = await world.http.send("GET", "/health", {"x-long": "x" * 17_000})
        assert (reply.status, reply.headers["connection"]) == (431, "close")

    run_virtual(main)


@pytest.mark.parametrize(
    ("method", "path", "status", "allow"),
    [
        ("GET", "/health", 200, None),
        ("HEAD", "/health", 200, None),
        ("OPTIONS", "/health", 204, "GET, HEAD, OPTIONS"),
        ("POST", "/health", 405, "GET, HEAD, OPTIONS"),
        ("OPTIONS", "/mcp", 204, "POST, GET, DELETE, OPTIONS"),
        ("OPTIONS", "/mcp/", 204, "POST, GET, DELETE, OPTIONS"),
        ("HEAD", "/mcp", 405, "POST, GET, DELETE, OPTIONS"),
        ("PUT", "/mcp/", 405, "POST, GET, DELETE, OPTIONS"),
        ("POST", "/mcp/sse", 405, "GET, OPTIONS"),
        ("GET", "/mcp/messages", 405, "POST, OPTIONS"),
        ("GET", "/", 404, None),
        ("GET", "/mcp//", 404, None),
        ("GET", "/mcpx", 404, None),
        ("POST", "/MCP", 404, None),
    ],
)
def test_methods_answer_as_http_says(
    method: str, path: str, status: int, allow: str | None
) -> None:
    """RFC 9110 §9.3, §15.5.6"""

    async def main() -> None:
        reply = await World().http.send(method, path)
        assert (reply.status, reply.headers.get("allow")) == (status, allow)
        if method == "HEAD" or status == 204:
            assert reply.body == b""
        if (method, path) == ("GET", "/health"):
            assert reply.json() == {"status": "ok"}

    run_virtual(main)


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
@pytest.mark.parametrize("root", ["", "/api/v1"])
def test_the_endpoint_is_the_same_place_with_a_slash_and_below_any_mount(
    path: str, root: str
) -> None:
    """Ours: K29"""

    async def main() -> None:
        world = World()
        world.http = HttpClient(world.app, root_path=root)
        reply = await world.ask_modern(
            1, "tools/call", {"name": "echo", "arguments": {"text": "x"}}, path=path
        ).ended()
        assert (reply.status, text_of(reply.json())) == (200, "x")

    run_virtual(main)


@pytest.mark.parametrize("path", ["/", "/tools/mcp/"])
def test_the_endpoint_may_be_anywhere(path: str) -> None:
    """Ours: `asgi_app(path=...)`"""

    async def main() -> None:
        world = World(path=path)
        reply = await world.ask_modern(1, "tools/list", path=path).ended()
        assert reply.status == 200

    run_virtual(main)


def test_a_websocket_is_closed_before_it_opens() -> None:
    """CVE-2026-59950"""

    async def main() -> None:
        world = World()
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "websocket.connect"}

        async def send(event: Any) -> None:
            sent.append(event["type"])

        scope: Any = {"type": "websocket", "path": "/mcp", "headers": []}
        await world.app(scope, receive, send)
        assert sent == ["websocket.close"]

    run_virtual(main)


# -- bodies ---------------------------------------------------------------------------------------


def test_a_body_that_says_it_is_too_large_is_not_read() -> None:
    """RFC 9110 §15.5.14; ours: docs/limits.md"""

    async def main() -> None:
        world = World()
        headers = {**JSON_HEADERS, "content-length": str(1 << 30)}
        opened = world.http.open("POST", "/mcp", headers, [b"x", b"y"])
        reply = await opened.ended()
        assert (reply.status, reply.headers["connection"]) == (413, "close")
        assert len(opened._incoming) == 2, "nothing of it was read"

    run_virtual(main)


def test_a_body_that_grows_too_large_is_not_read_to_its_end() -> None:
    """RFC 9110 §15.5.14; ours: docs/limits.md"""

    async def main() -> None:
        world = World()
        opened = world.http.open("POST", "/mcp", JSON_HEADERS, [b" " * 1_000_000] * 100)
        assert (await opened.ended()).status == 413
        assert len(opened._incoming) >= 90

    run_virtual(main)


def test_a_body_in_parts_is_read_whole() -> None:
    """RFC 9112 §7.1"""

    async def main() -> None:
        world = World()
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}
        raw = json.dumps({**body, "params": {"protocolVersion": "2025-11-25"}}).encode()
        parts = [bytes([byte]) for byte in raw]
        reply = await world.http.send("POST", "/mcp", JSON_HEADERS, parts)
        assert reply.status == 200

    run_virtual(main)


def test_a_body_that_does_not_come_is_given_up() -> None:
    """RFC 9110 §15.5.9; ours: docs/limits.md, body_timeout"""

    async def main() -> None:
        world = World(body_timeout=30.0)
        opened = world.http.open("POST", "/mcp", JSON_HEADERS, [])
        opened.give({"type": "http.request", "body": b"{", "more_body": True})
        reply = await opened.ended()
        assert (reply.status, reply.headers["connection"]) == (408, "close")
        assert asyncio.get_running_loop().time() == pytest.approx(30.0, abs=0.1)

    run_virtual(main)


def test_a_client_that_leaves_within_its_body_is_forgotten() -> None:
    """Ours: K20"""

    async def main() -> None:
        world = World()
        opened = world.http.open("POST", "/mcp", JSON_HEADERS, [])
        opened.give({"type": "http.request", "body": b"{", "more_body": True})
        await asyncio.sleep(0.1)
        opened.leave()
        assert (await opened.ended()).status == 0

    run_virtual(main)


def test_a_wrong_content_length_is_refused() -> None:
    """RFC 9110 §8.6"""

    async def main() -> None:
        world = World()
        for wrong in ("-1", "x", "1, 1", "9" * 30):
            headers = {**JSON_HEADERS, "content-length": wrong}
            assert (await world.http.send("POST", "/mcp", headers, b"{}")).status in (400, 413)

    run_virtual(main)


# -- who comes in ---------------------------------------------------------------------------------


class Names:
    """An authenticator whose tokens are names."""

    def __init__(self) -> None:
        self.asked = 0

    async def authenticate(self, authorization: list[bytes]) -> Authenticated | Challenge:
        """Take `Bearer NAME`; nobody without it."""
        self.asked += 1
        if not authorization:
            return Challenge(401, 'Bearer realm="mcp"', "A token is needed")
        return Authenticated(authorization[0].removeprefix(b"Bearer ").decode())

    def metadata(self) -> tuple[str, bytes] | None:
        """Give a document."""
        return "/.well-known/oauth-protected-resource/mcp", b'{"resource":"x"}'


def bearer(name: str) -> dict[str, str | None]:
    """Return the header of somebody."""
    return {"authorization": f"Bearer {name}"}


def test_without_credentials_nothing_but_the_documents_is_answered() -> None:
    """MCP 2026-07-28 basic/authorization; RFC 9728 §5.1"""

    async def main() -> None:
        world = World(authenticator=Names())
        for path, methods in world.app._routes.items():
            for method in methods:
                reply = await world.http.send(method, path, JSON_HEADERS, b"{}")
                assert reply.status == 401, (method, path)
                assert reply.headers["www-authenticate"] == 'Bearer realm="mcp"'
        document = await world.http.send("GET", "/.well-known/oauth-protected-resource/mcp")
        assert (document.status, document.json()) == (200, {"resource": "x"})
        assert (await world.http.send("GET", "/health")).status == 200
        assert world.stats()["connections"] == 0

    run_virtual(main)


def test_the_metadata_document_is_found_outside_of_the_mount_too() -> None:
    """RFC 9728 §3.1"""

    async def main() -> None:
        world = World(authenticator=Names())
        world.http = HttpClient(world.app, root_path="/.well-known")
        reply = await world.http.send("GET", "/oauth-protected-resource/mcp")
        assert reply.status == 200

    run_virtual(main)


def test_the_authorizer_is_shown_who_was_authenticated_and_nothing_a_client_said() -> None:
    """Ours: rulings, tools/call; K02"""

    async def main() -> None:
        seen: list[Any] = []

        @nonblocking
        def authorizer(name: str, arguments: object, context: Any) -> Any:
            seen.append(context)
            return allow()

        server = Server("who", authorizer=authorizer, read_authorizer=allow_all())

        @server.tool
        async def echo(text: str) -> str:
            """Return the text."""
            return text

        world = World(server=server, authenticator=Names())
        changes = {**bearer("alice"), "x-user": "mallory"}
        await world.call(1, "echo", {"text": "x"}, changes=changes).ended()
        session = await world.session(changes=bearer("bob"))
        await session.call(1, "echo", {"text": "x"}).ended()
        assert [set(context) for context in seen] == [{"connection", "transport", "principal"}] * 2
        assert [context["principal"] for context in seen] == ["alice", "bob"]
        assert [context["transport"] for context in seen] == ["http", "http"]
        assert session.id not in str(seen)

    run_virtual(main)


def test_a_session_of_somebody_else_looks_like_one_that_never_was() -> None:
    """MCP security best practices §Session Hijacking"""

    async def main() -> None:
        world = World(authenticator=Names())
        session = await world.session(changes=bearer("alice"))

        async def tried(id: str, name: str) -> list[tuple[int, bytes]]:
            mallory: dict[str, str | None] = {
                **session.headers,
                "mcp-session-id": id,
                **bearer(name),
            }
            replies: list[Reply] = [
                await session.post({"id": 1, "method": "tools/list"}, mallory).ended(),
                await session.post({"method": "notifications/x"}, mallory).ended(),
                await world.http.send("GET", "/mcp", mallory),
                await world.http.send("DELETE", "/mcp", mallory),
            ]
            return [(reply.status, reply.body) for reply in replies]

        foreign = await tried(session.id, "mallory")
        assert foreign == await tried("does-not-exist", "mallory")
        assert {status for status, _ in foreign} == {404}
        assert (await session.call(1, "echo", {"text": "x"}).ended()).status == 200

    run_virtual(main)


def test_an_old_stream_takes_messages_of_its_owner_alone() -> None:
    """MCP security best practices §Session Hijacking"""

    async def main() -> None:
        world = World(authenticator=Names())
        headers = {"accept": "text/event-stream", **bearer("alice")}
        stream = world.http.open("GET", "/mcp/sse", headers)
        place = (await stream.event()).data.decode()
        for name, status in (("mallory", 404), ("alice", 202)):
            ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
            assert (await world.post_raw(ping, bearer(name), place).ended()).status == status
        stream.leave()
        await stream.ended()

    run_virtual(main)


# -- life -----------------------------------------------------------------------------------------


def test_a_server_that_nobody_guarded_is_not_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: the deployment gate"""
    monkeypatch.setenv("RAXOL_MCP_ENV", "production")

    async def main() -> None:
        app = asgi_app(Server("open"))
        with pytest.raises(ConfigurationError, match="authorizer") as refused:
            await app.start()
        assert "read_authorizer" in str(refused.value)
        reply = await HttpClient(app).send("POST", "/mcp", JSON_HEADERS, b"{}")
        assert reply.status == 503
        default = Server("default", authorizer=allow_all(), read_authorizer=allow_all())
        with pytest.raises(ConfigurationError, match="authorizer"):
            await asgi_app(default).start()
        chosen = Server(
            "chosen",
            authorizer=allow_all(),
            authorizer_source="configured",
            read_authorizer=allow_all(),
        )
        async with asgi_app(chosen).lifespan():
            pass

    run_virtual(main)


@pytest.mark.parametrize(
    ("environment", "served"),
    [("dev", True), ("test", True), ("", False), ("DEV", False), ("staging", False), (None, False)],
)
def test_the_environment_is_read_when_serving_begins(
    monkeypatch: pytest.MonkeyPatch, environment: str | None, served: bool
) -> None:
    """Ours: unknown counts as production"""
    app = asgi_app(Server("open"))
    if environment is None:
        monkeypatch.delenv("RAXOL_MCP_ENV", raising=False)
    else:
        monkeypatch.setenv("RAXOL_MCP_ENV", environment)

    async def main() -> None:
        if served:
            async with app.lifespan():
                pass
        else:
            with pytest.raises(ConfigurationError):
                await app.start()

    run_virtual(main)


class Lifespan:
    """The lifespan side of an ASGI server."""

    def __init__(self, app: Any) -> None:
        self.sent: list[Any] = []
        self._queue: asyncio.Queue[Any] = asyncio.Queue()
        self.task = asyncio.ensure_future(
            app({"type": "lifespan", "asgi": {"version": "3.0"}}, self._queue.get, self._send)
        )
        self._said = asyncio.Event()

    async def say(self, kind: str) -> Any:
        """Send one event, and return what is answered."""
        self._said.clear()
        await self._queue.put({"type": kind})
        await self._said.wait()
        return self.sent[-1]

    async def _send(self, event: Any) -> None:
        self.sent.append(event)
        self._said.set()


def test_the_server_lives_with_the_lifespan() -> None:
    """ASGI 3 §Lifespan"""

    async def main() -> None:
        world = World()
        lifespan = Lifespan(world.app)
        assert (await lifespan.say("lifespan.startup"))["type"] == "lifespan.startup.complete"
        session = await world.session()
        stream = session.listen()
        await stream.event()
        call = world.call(1, "sleep", {"seconds": 60, "tag": "a"})
        await asyncio.sleep(0.1)
        assert (await lifespan.say("lifespan.shutdown"))["type"] == "lifespan.shutdown.complete"
        await lifespan.task
        assert (await stream.ended()).complete
        assert (await call.ended()).status == 503
        assert world.journal == ["start:a", "cancelled:a"]
        late = await world.call(1, "echo", {"text": "x"}).ended()
        assert (late.status, late.headers["connection"]) == (503, "close")
        counts = world.stats()
        assert counts["sessions"] == counts["streams"] == counts["connections"] == 0

    run_virtual(main)


def test_a_refusal_to_start_is_told_to_the_lifespan(monkeypatch: pytest.MonkeyPatch) -> None:
    """ASGI 3 §Lifespan"""
    monkeypatch.setenv("RAXOL_MCP_ENV", "production")

    async def main() -> None:
        lifespan = Lifespan(asgi_app(Server("open")))
        answer = await lifespan.say("lifespan.startup")
        assert answer["type"] == "lifespan.startup.failed"
        assert "authorizer" in answer["message"]
        await lifespan.task

    run_virtual(main)


def test_calls_that_run_may_finish_when_serving_ends_and_streams_do_not_wait() -> None:
    """Ours: docs/limits.md, drain_timeout"""

    async def main() -> None:
        world = World()
        session = await world.session()
        stream = session.listen()
        await stream.event()
        listen = world.ask_modern(1, "subscriptions/listen", {"notifications": {}})
        await listen.message()
        short = session.call(1, "sleep", {"seconds": 2, "tag": "short"})
        long = world.call(1, "sleep", {"seconds": 60, "tag": "long"})
        await asyncio.sleep(0.1)
        await world.app.stop(drain_timeout=5.0)
        assert asyncio.get_running_loop().time() == pytest.approx(5.1)
        assert text_of((await short.ended()).messages()[-1]) == "slept short"
        assert (await long.ended()).status == 503
        assert (await listen.ended()).messages()[-1]["result"]["resultType"] == "complete"
        assert (await stream.ended()).complete

    run_virtual(main)


def test_serving_may_begin_again_after_its_end() -> None:
    """Ours: `HttpApp.start`"""

    async def main() -> None:
        world = World()
        for _ in range(2):
            async with world.app.lifespan():
                session = await world.session()
                reply = await session.call(1, "echo", {"text": "x"}).ended()
                assert text_of(reply.json()) == "x"

    run_virtual(main)


@pytest.mark.parametrize(
    "options",
    [
        {"path": "mcp"},
        {"max_sessions": 0},
        {"max_streams": 0},
        {"keepalive": 0},
        {"session_timeout": -1.0},
        {"allowed_hosts": "localhost"},
        {"allowed_hosts": ["http://localhost"]},
        {"allowed_hosts": ["a/b"]},
        {"allowed_origins": ["localhost"]},
        {"allowed_origins": ["https://a.example/"]},
    ],
)
def test_options_that_cannot_be_served_are_refused(options: dict[str, Any]) -> None:
    """Ours: `asgi_app`"""
    with pytest.raises(ConfigurationError):
        asgi_app(Server("x"), **options)


def test_hosts_and_origins_can_be_named() -> None:
    """Ours: `Guards`"""

    async def main() -> None:
        world = World(
            allowed_hosts=["mcp.example", "other.example:8443", "::1"],
            allowed_origins=["https://app.example"],
        )
        for host, origin, status in (
            ("mcp.example", None, 200),
            ("mcp.example:443", "https://app.example", 200),
            ("other.example:8443", None, 200),
            ("other.example", None, 403),
            ("[::1]:80", None, 200),
            ("127.0.0.1", None, 403),
            ("mcp.example", "https://other.example", 403),
            ("mcp.example", "http://localhost", 403),
        ):
            changes = {"host": host, "origin": origin}
            reply = await world.ask_modern(1, "tools/list", changes=changes).ended()
            assert reply.status == status, (host, origin)
        everybody = World(allowed_hosts=["*"], allowed_origins=["*"])
        changes = {"host": "x.example", "origin": "https://y.example"}
        assert (await everybody.ask_modern(1, "tools/list", changes=changes).ended()).status == 200
        no_pages = World(allowed_hosts=["mcp.example"])
        changes = {"host": "mcp.example", "origin": "http://localhost"}
        assert (await no_pages.ask_modern(1, "tools/list", changes=changes).ended()).status == 403

    run_virtual(main)


def test_the_application_counts_what_it_holds() -> None:
    """Ours: `HttpApp.stats`"""

    async def main() -> None:
        world = World()
        await world.session()
        assert repr(world.app) == "<HttpApp 1 sessions | 0 streams | 0 requests>"
        assert world.app.stats() == {"sessions": 1, "streams": 0, "requests": 0, "legacy": 0}

    run_virtual(main)
