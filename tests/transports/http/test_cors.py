"""What a browser is told about pages that were named."""

from __future__ import annotations

from typing import Any

from raxol_mcp.testing.virtual_loop import run_virtual
from tests.transports.http.test_app import Names, bearer
from tests.transports.http.world import World, text_of

PAGE = "https://app.example"
ASKED = (
    "authorization, content-type,mcp-method, Mcp-Param-Region, x-other, mcp-param-, mcp-param-a b"
)


def served(**options: Any) -> World:
    return World(allowed_hosts=["127.0.0.1:8000"], allowed_origins=[PAGE], **options)


def preflight(origin: str) -> dict[str, str | None]:
    return {
        "origin": origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": ASKED,
    }


def test_a_preflight_is_answered_without_credentials_and_allows_what_means_something() -> None:
    """Fetch §3.2.2; a browser sends no credentials with it"""

    async def main() -> None:
        world = served(authenticator=Names())
        reply = await world.http.send("OPTIONS", "/mcp", preflight(PAGE))
        assert reply.status == 204
        assert reply.headers["access-control-allow-origin"] == PAGE
        assert reply.headers["access-control-allow-methods"] == "POST, GET, DELETE"
        allowed = reply.headers["access-control-allow-headers"]
        assert allowed == "authorization, content-type, mcp-method, mcp-param-region"
        assert reply.headers["vary"] == "Origin"
        assert "access-control-allow-credentials" not in reply.headers
        document = "/.well-known/oauth-protected-resource/mcp"
        reply = await world.http.send("OPTIONS", document, preflight(PAGE))
        assert (reply.status, reply.headers["access-control-allow-methods"]) == (204, "GET, HEAD")

    run_virtual(main)


def test_every_answer_to_a_named_page_can_be_read_by_it() -> None:
    """Fetch §3.2.3"""

    async def main() -> None:
        world = served(authenticator=Names())
        page: dict[str, str | None] = {"origin": PAGE}
        refused = await world.ask_modern(1, "tools/list", changes=page).ended()
        answered = await world.call(
            1, "echo", {"text": "hi"}, changes={**page, **bearer("alice")}
        ).ended()
        streamed = await world.call(
            1,
            "progress",
            {"steps": 1},
            meta={"progressToken": 1},
            changes={**page, **bearer("alice")},
        ).ended()
        assert (refused.status, text_of(answered.json())) == (401, "hi")
        assert len(streamed.messages()) == 2
        for reply in (refused, answered, streamed):
            assert reply.headers["access-control-allow-origin"] == PAGE
            assert "Mcp-Session-Id" in reply.headers["access-control-expose-headers"]
            assert "WWW-Authenticate" in reply.headers["access-control-expose-headers"]

    run_virtual(main)


def test_other_pages_and_programs_are_told_nothing() -> None:
    """MCP 2026-07-28 streamable-http §Security: Origin is validated first"""

    async def main() -> None:
        world = served()
        foreign = await world.http.send("OPTIONS", "/mcp", preflight("https://evil.example"))
        program = await world.call(1, "echo", {"text": "hi"}).ended()
        own = World()
        local = await own.http.send("OPTIONS", "/mcp", preflight("http://localhost"))
        plain = await served().http.send("OPTIONS", "/mcp", {"origin": PAGE})
        assert [reply.status for reply in (foreign, program, local, plain)] == [403, 200, 204, 204]
        assert plain.headers["allow"] == "POST, GET, DELETE, OPTIONS"
        for reply in (foreign, program, local):
            assert not [name for name in reply.headers if name.startswith("access-control")]

    run_virtual(main)
