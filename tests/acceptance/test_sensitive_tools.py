"""Tools that must not be served without an authorizer, and the gate of network servers."""

from __future__ import annotations

import pytest

from raxol_mcp import ConfigurationError, Registry, Server, Tool, allow_all, allowlist, deny_all
from raxol_mcp.server.definitions import Kind
from raxol_mcp.server.deployment import enforce_authorization, enforce_read_authorization
from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.wire.meta import EraName
from tests.acceptance.world import (
    Client,
    Counted,
    Json,
    denial,
    denied,
    in_both_eras,
    names,
    text,
    tool,
)
from tests.promises import promise

UNGUARDED = "sensitive_tool_unguarded"


async def starts(server: Server) -> bool:
    """Say whether a server starts; what it says when it does not names every culprit."""
    try:
        async with server:
            return True
    except ConfigurationError:
        return False


@promise("sensitive.boot", "start.refuses")
def test_a_server_with_a_sensitive_tool_and_no_authorizer_refuses_to_start() -> None:
    """specification: Sensitive tools; server-behaviour §7: the message names the tools."""

    async def scenario() -> None:
        server = Server()
        server.registry.register(
            tool("wipe", annotations={"destructiveHint": True}),
            tool("look"),
            tool("pay", annotations={"sensitive": True}),
        )
        with pytest.raises(ConfigurationError) as caught:
            await server.start()
        message = str(caught.value)
        assert "refuses to start" in message
        assert "wipe" in message
        assert "pay" in message
        assert "look" not in message
        assert "authorizer" in message
        assert "allow_all()" in message
        assert server.refusals() != []

    run_virtual(scenario)


@promise("sensitive.boot")
@pytest.mark.parametrize("authorizer", [allow_all(), deny_all(), allowlist([])])
def test_any_authorizer_satisfies_the_check(authorizer: object) -> None:
    """server-behaviour §7: with any authorizer configured, even allow_all, it does not apply."""

    async def scenario() -> None:
        server = Server(authorizer=authorizer)  # type: ignore[arg-type]  # one of three
        server.registry.register(tool("wipe", annotations={"destructiveHint": True}))
        assert server.refusals() == []
        assert await starts(server)

    run_virtual(scenario)


@promise("sensitive.late")
@in_both_eras
def test_one_that_is_registered_late_is_denied_when_it_is_called(era: EraName) -> None:
    """specification: Sensitive tools: the boot check alone could be gone around."""

    async def scenario() -> None:
        callback = Counted()
        async with Server() as server:
            server.registry.register(
                tool("wipe", callback, annotations={"sensitive": True}), tool("look")
            )
            client = Client(server, era=era)
            assert denial(await client.call("wipe")) == denied("wipe", UNGUARDED)
            assert denial(await client.call("wipe", {"no": "schema"})) == denied("wipe", UNGUARDED)
            assert text(await client.call("look")) == "done"
            assert callback.runs == 0

    run_virtual(scenario)


@promise("sensitive.derived_boot", "sensitive.derived_call")
@in_both_eras
def test_derived_tools_do_not_keep_a_server_from_starting_but_are_denied(era: EraName) -> None:
    """specification: Sensitive tools: a restart with live sessions must be possible."""

    async def scenario() -> None:
        callback = Counted()
        registry = Registry()
        wipe = tool("button.click", callback, annotations={"destructiveHint": True})
        registry.register(wipe, derived=True)
        assert registry.static_tools() == []
        assert registry.is_derived("button.click")
        async with Server(registry=registry) as server:
            client = Client(server, era=era)
            reply = await client.call("button.click")
            assert denial(reply) == denied("button.click", UNGUARDED)
            assert callback.runs == 0

    run_virtual(scenario)


@promise("sensitive.derived_by_registration")
@pytest.mark.parametrize(
    "definition",
    [
        tool("agent.reset", annotations={"destructiveHint": True}),
        tool("reset", annotations={"destructiveHint": True, "derived": True}),
        tool("reset", annotations={"destructiveHint": True}, meta={"derived": True}),
    ],
)
def test_no_name_and_nothing_in_a_definition_makes_it_derived(definition: Tool) -> None:
    """specification: Sensitive tools."""

    async def scenario() -> None:
        server = Server()
        server.registry.register(definition)
        assert not await starts(server)

    run_virtual(scenario)


@promise("sensitive.derived_by_registration")
def test_a_tool_is_what_it_was_last_registered_as() -> None:
    """ours: a static tool of the same name takes the place of a derived one, and back."""

    async def scenario() -> None:
        server = Server()
        wipe = tool("wipe", annotations={"destructiveHint": True})
        server.registry.register(wipe, derived=True)
        assert await starts(server)
        server.registry.register(wipe)
        assert not await starts(server)
        server.registry.register(wipe, derived=True)
        assert await starts(server)
        server.registry.unregister(Kind.TOOLS, "wipe")
        server.registry.register(wipe)
        assert not await starts(server)

    run_virtual(scenario)


@promise("sensitive.annotations")
@pytest.mark.parametrize(
    ("annotations", "sensitive"),
    [
        ({"destructiveHint": True}, True),
        ({"sensitive": True}, True),
        ({"destructiveHint": True, "readOnlyHint": True}, True),
        ({"destructiveHint": False, "sensitive": True}, True),
        ({"destructiveHint": False}, False),
        ({"readOnlyHint": True}, False),
        ({}, False),
        (None, False),
    ],
)
def test_only_the_two_hints_make_a_tool_sensitive_and_nothing_takes_it_back(
    annotations: Json | None, sensitive: bool
) -> None:
    """server-behaviour §7: one way only."""

    async def scenario() -> None:
        server = Server()
        server.registry.register(tool("act", annotations=annotations))
        client = Client(server)
        reply = await client.call("act")
        assert await starts(server) is not sensitive
        if sensitive:
            assert denial(reply) == denied("act", UNGUARDED)
        else:
            assert text(reply) == "done"

    run_virtual(scenario)


@promise("sensitive.annotations")
def test_the_decorator_says_it_in_words() -> None:
    """ours: `destructive=` and `sensitive=` write the annotations."""
    server = Server()

    @server.tool(destructive=True)
    async def wipe() -> None:
        """Wipe."""

    @server.tool(sensitive=True)
    async def pay() -> None:
        """Pay."""

    @server.tool(destructive=False, read_only=True)
    async def look() -> None:
        """Look."""

    (refusal,) = server.refusals()
    assert "wipe, pay" in refusal
    assert "look" not in refusal


@in_both_eras
def test_a_sensitive_tool_that_cannot_be_called_is_listed_all_the_same(era: EraName) -> None:
    """server-behaviour §6.4: without an authorizer everything is listed."""

    async def scenario() -> None:
        async with Server() as server:
            server.registry.register(tool("wipe", annotations={"sensitive": True}))
            listed = await Client(server, era=era).result("tools/list")
            assert names(listed["tools"]) == ["wipe"]

    run_virtual(scenario)


# The gate of network servers (server-behaviour §14); `tests/server/test_deployment.py` has more


@promise("configured.chosen", "reads.presence")
def test_production_wants_both_authorizers_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """server-behaviour §14: both seams; what cannot be known is production."""
    chosen = Server(
        authorizer=allow_all(), authorizer_source="configured", read_authorizer=allow_all()
    )
    fallback = Server(authorizer=deny_all(), authorizer_source="default")
    monkeypatch.delenv("RAXOL_MCP_ENV", raising=False)
    enforce_authorization(chosen.authorization_configured())
    enforce_read_authorization(chosen.read_authorization_configured())
    for enforce, configured in (
        (enforce_authorization, fallback.authorization_configured()),
        (enforce_read_authorization, fallback.read_authorization_configured()),
    ):
        with pytest.raises(ConfigurationError, match="refuses to boot"):
            enforce(configured)
        with pytest.raises(ConfigurationError, match="refuses to boot"):
            enforce(configured, required=True)
        enforce(configured, required=False)
        monkeypatch.setenv("RAXOL_MCP_ENV", "dev")
        enforce(configured)
        monkeypatch.setenv("RAXOL_MCP_ENV", "develop")
        with pytest.raises(ConfigurationError, match="refuses to boot"):
            enforce(configured)
        monkeypatch.delenv("RAXOL_MCP_ENV")
