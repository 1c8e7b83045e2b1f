"""What a layer above puts on a server: replies, a lens, changes of lists, questions, audiences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from raxol_mcp import (
    ConfigurationError,
    ConnectionFacts,
    Context,
    MemoryTransport,
    Server,
    Tool,
    allow,
    allow_all,
    ask,
    deny,
    nonblocking,
)
from raxol_mcp.server.authorizer import AuthorizationContext, Decision
from raxol_mcp.server.definitions import Kind, Resource
from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.wire.meta import EraName
from tests.acceptance.world import (
    FORMS,
    OPEN,
    Client,
    Counted,
    Json,
    at,
    code,
    decides,
    denial,
    denied,
    failed,
    in_both_eras,
    names,
    outside,
    settled,
    text,
    tool,
    wire,
)

YES: Json = {"action": "accept", "content": {"approve": True}}


def approved(name: str, callback: Counted, **options: object) -> Tool:
    """Make a tool that a human approves every time."""
    return Tool(
        name=name,
        description=f"The {name} tool.",
        input_schema=OPEN,
        callback=callback,
        approval=lambda arguments: f"Run {name} with {sorted(arguments)}?",
        **options,  # type: ignore[arg-type]  # fields of a tool
    )


def told(client: Client) -> list[object]:
    """Return the methods of what was pushed."""
    return [push.get("method") for push in client.pushes()]


# -- replies for tools that are not there -----------------------------------------------------


def test_replies_for_unknown_tools_are_asked_in_order() -> None:
    """ours: ADR-0031: a call of a stopped session's tool is answered with what to do."""

    async def late(name: str) -> str | None:
        return "late" if name.startswith("l") else None

    async def scenario() -> None:
        server = Server(unknown_tool_reply=lambda name: "first" if name == "one" else None)
        end = server.on_unknown_tool(lambda name: "second" if name in ("one", "two") else None)
        server.on_unknown_tool(late)
        async with server:
            client = Client(server)
            assert failed(await outside(client.call("one"))) == "first"
            assert failed(await outside(client.call("two"))) == "second"
            assert failed(await outside(client.call("late"))) == "late"
            assert code(await outside(client.call("nothing"))) == -32601
            end()
            end()
            assert code(await outside(client.call("two"))) == -32601

    run_virtual(scenario)


def test_a_reply_that_fails_leaves_the_word_to_the_next() -> None:
    """K09."""

    def broken(name: str) -> str:
        raise LookupError(name)

    async def scenario() -> None:
        server = Server(unknown_tool_reply=broken)
        server.on_unknown_tool(lambda name: "the next")
        async with server:
            assert failed(await outside(Client(server).call("x"))) == "the next"

    run_virtual(scenario)


# -- changes ----------------------------------------------------------------------------------


def test_a_list_that_changed_is_told_once_a_turn_with_what_was_registered() -> None:
    """ours: ADR-0031: once per change, to the right server."""

    async def scenario() -> None:
        other = Server()
        async with Server() as server, other:
            client, elsewhere = Client(server), Client(other)
            await client.greet()
            server.list_changed(Kind.TOOLS)
            server.list_changed(Kind.TOOLS)
            server.registry.register(tool("a"))
            server.registry.unregister(Kind.TOOLS, "a")
            await settled()
            assert told(client) == ["notifications/tools/list_changed"]
            server.list_changed(Kind.TEMPLATES)
            await settled()
            assert told(client) == ["notifications/resources/list_changed"]
            assert told(elsewhere) == []

    run_virtual(scenario)


def test_while_nothing_is_served_nobody_is_told() -> None:
    """ours: nor needs there be a loop."""
    Server().list_changed(Kind.TOOLS)


# -- the lens ---------------------------------------------------------------------------------


def only(*shown: str, asked: list[list[str]] | None = None) -> object:
    """Build a lens that leaves these for connection "a" and everything for others."""

    def lens(tools: Sequence[Tool], context: AuthorizationContext) -> Sequence[Tool] | None:
        if asked is not None:
            asked.append([tool.name for tool in tools])
        if context["connection"] != "a":
            return None
        return [tool for tool in tools if tool.name in shown]

    return lens


async def listed(client: Client) -> list[object]:
    """List every tool a client is shown, page by page."""
    found: list[object] = []
    params: Json = {}
    while True:
        page = await client.result("tools/list", params)
        found += names(page["tools"])
        if "nextCursor" not in page:
            return found
        params = {"cursor": page["nextCursor"]}


@in_both_eras
@pytest.mark.parametrize("page_size", [1, 2, 100])
def test_a_lens_narrows_what_a_connection_is_shown(era: EraName, page_size: int) -> None:
    """ours: ADR-0031: per connection; and pages go on where they ended."""

    async def scenario() -> None:
        server = Server(page_size=page_size)
        server.registry.register(*(tool(name) for name in "abcdefg"))
        server.look_through(only("b", "d", "e", "g"))  # type: ignore[arg-type]  # a lens
        async with server:
            assert await listed(Client(server, "a", era=era)) == ["b", "d", "e", "g"]
            assert await listed(Client(server, "b", era=era)) == [*"abcdefg"]
            assert text(await Client(server, "a", era=era).call("c")) == "done"

    run_virtual(scenario)


def test_the_authorizer_is_asked_before_the_lens_is_looked_through() -> None:
    """ours: ADR-0031: every listing goes through the authorizer's filter."""
    asked: list[list[str]] = []

    async def scenario() -> None:
        server = Server(authorizer=decides(allow(), b=deny(), c=ask("May I?")))
        server.registry.register(*(tool(name) for name in "abcd"))
        server.look_through(only("b", "c", "d", asked=asked))  # type: ignore[arg-type]  # a lens
        async with server:
            assert await listed(Client(server, "a")) == ["d"]

    run_virtual(scenario)
    assert asked == [["a", "d"]]


def test_a_lens_that_fails_shows_everything_that_may_be_called() -> None:
    """ours: a lens is no guard."""

    def broken(tools: Sequence[Tool], context: AuthorizationContext) -> Sequence[Tool]:
        raise LookupError

    async def scenario() -> None:
        server = Server(authorizer=decides(allow(), b=deny()))
        server.registry.register(tool("a"), tool("b"))
        server.look_through(broken)
        async with server:
            assert await listed(Client(server)) == ["a"]

    run_virtual(scenario)


def test_a_server_has_one_lens_and_keeps_it_when_it_is_guarded() -> None:
    """ours: two would each think that they choose from everything."""

    async def scenario() -> None:
        server = Server()
        server.registry.register(tool("a"), tool("b"))
        server.look_through(only("b"))  # type: ignore[arg-type]  # a lens
        server.guard(authorizer=allow_all())
        with pytest.raises(ConfigurationError, match="lens"):
            server.look_through(only("a"))  # type: ignore[arg-type]  # a lens
        async with server:
            assert await listed(Client(server, "a")) == ["b"]
            reply = await Client(server, "a").ask("tools/list", {"cursor": "bm8"})
            assert code(reply) == -32602

    run_virtual(scenario)


# -- approval ---------------------------------------------------------------------------------


@in_both_eras
def test_a_tool_with_an_approval_is_asked_about_although_it_is_allowed(era: EraName) -> None:
    """ours: ADR-0031: marked by the app, asked about."""

    async def scenario() -> None:
        callback = Counted()
        server = Server(authorizer=allow_all())
        server.registry.register(approved("wipe", callback), derived=True)
        async with server:
            client = Client(server, era=era, capabilities=FORMS)
            await client.greet()
            assert await listed(client) == ["wipe"]
            handle = client.start("wipe", {"b": 1, "a": 2})
            await settled()
            assert callback.runs == 0
            if era is EraName.HANDSHAKE:
                prompt = client.prompt()
                assert at(prompt, "params", "message") == "Run wipe with ['a', 'b']?"
                await client.handle({"jsonrpc": "2.0", "id": prompt["id"], "result": YES})
                await handle
            else:
                asked = wire(await handle)
                message = at(asked, "result", "inputRequests", "approve", "params", "message")
                assert message == "Run wipe with ['a', 'b']?"
                again: Json = {
                    "name": "wipe",
                    "arguments": {"b": 1, "a": 2},
                    "inputResponses": {"approve": YES},
                    "requestState": at(asked, "result", "requestState"),
                }
                assert text(await client.ask("tools/call", again)) == "done"
            assert callback.runs == 1

    run_virtual(scenario)


def test_without_a_human_or_without_an_authorizer_it_does_not_run() -> None:
    """rulings: who cannot be asked is denied; a sensitive tool without an authorizer is, too."""

    async def scenario() -> None:
        callback = Counted()
        guarded, open_ = Server(authorizer=allow_all()), Server()
        for server in (guarded, open_):
            wipe = approved("wipe", callback, annotations={"sensitive": True})
            server.registry.register(wipe, derived=True)
        async with guarded, open_:
            prompt = "Run wipe with []?"
            reply = await Client(guarded).call("wipe")
            assert denial(reply) == denied("wipe", prompt, decision="ask")
            reply = await Client(open_).call("wipe")
            assert denial(reply) == denied("wipe", "sensitive_tool_unguarded")
        assert callback.runs == 0

    run_virtual(scenario)


def test_what_the_authorizer_asks_comes_instead_of_the_tools_own_question() -> None:
    """ours: one yes is asked for, not two."""

    async def scenario() -> None:
        server = Server(authorizer=decides(ask("Really?")))
        server.registry.register(approved("wipe", Counted()))
        async with server:
            client = Client(server, capabilities=FORMS)
            await client.greet()
            client.start("wipe")
            await settled()
            assert at(client.prompt(), "params", "message") == "Really?"

    run_virtual(scenario)


def test_an_approval_that_fails_is_no_yes() -> None:
    """ours: fails closed."""

    def broken(arguments: Mapping[str, object]) -> str:
        raise LookupError("a secret")

    async def scenario() -> None:
        callback = Counted()
        wipe = Tool(
            name="wipe", description="?", input_schema=OPEN, callback=callback, approval=broken
        )
        server = Server(authorizer=allow_all())
        server.registry.register(wipe)
        async with server:
            said = failed(await Client(server, capabilities=FORMS).call("wipe"))
            assert "secret" not in said
        assert callback.runs == 0

    run_virtual(scenario)


# -- audiences --------------------------------------------------------------------------------


def of_a(context: AuthorizationContext) -> bool:
    """Let a definition exist for connection "a"."""
    return context["connection"] == "a"


def secret(uri: str = "test://a") -> Resource:
    """Make a resource that exists for connection "a"."""
    return Resource(uri=uri, name="secret", callback=Counted("hidden"), audience=of_a)


def owned(name: str = "mine", callback: Counted | None = None) -> Tool:
    """Make a tool that exists for connection "a"."""
    return Tool(
        name=name,
        description="Mine",
        input_schema=OPEN,
        callback=callback or Counted(),
        audience=of_a,
    )


@in_both_eras
def test_for_others_than_its_audience_a_tool_is_not_there(era: EraName) -> None:
    """ours: ADR-0031: per-connection ownership; it answers like one that does not exist."""

    async def scenario() -> None:
        callback = Counted()
        server = Server(page_size=2)
        server.registry.register(
            owned("x", callback), tool("a"), owned("y"), tool("b"), tool("c"), owned("z")
        )
        async with server:
            ours, theirs = Client(server, "a", era=era), Client(server, "b", era=era)
            assert await listed(ours) == ["x", "a", "y", "b", "c", "z"]
            assert await listed(theirs) == ["a", "b", "c"]
            assert text(await ours.call("x")) == "done"
            absent, hidden = await theirs.call("nothing"), await theirs.call("x")
            assert code(hidden) == code(absent)
            assert str(at(hidden, "error", "message")) == "Tool not found: x"
        assert callback.runs == 1

    run_virtual(scenario)


@in_both_eras
def test_for_others_than_its_audience_a_resource_is_denied_at_every_door(era: EraName) -> None:
    """K30: listing, reading, subscribing and listening."""

    async def scenario() -> None:
        server = Server()
        server.registry.register(secret(), Resource(uri="test://b", name="b", callback=Counted()))
        async with server:
            ours, theirs = Client(server, "a", era=era), Client(server, "b", era=era)
            assert names((await ours.result("resources/list"))["resources"]) == ["secret", "b"]
            assert names((await theirs.result("resources/list"))["resources"]) == ["b"]
            read = await ours.result("resources/read", {"uri": "test://a"})
            assert at(read, "contents", 0, "text") == "hidden"
            assert code(await theirs.ask("resources/read", {"uri": "test://a"})) == -31001
            if era is EraName.HANDSHAKE:
                assert code(await theirs.ask("resources/subscribe", {"uri": "test://a"})) == -31001
                await ours.result("resources/subscribe", {"uri": "test://a"})
            else:
                filter_ = {"resourceSubscriptions": ["test://a", "test://b"]}
                theirs.send("subscriptions/listen", {"notifications": filter_})
                await settled()
                acknowledged = theirs.pushes()[0]
                heard = at(acknowledged, "params", "notifications", "resourceSubscriptions")
                assert heard == ["test://b"]

    run_virtual(scenario)


def test_an_audience_that_fails_or_says_something_else_is_nobody() -> None:
    """ours: fails closed; only True is a yes."""

    def broken(context: AuthorizationContext) -> bool:
        raise LookupError

    async def scenario() -> None:
        server = Server()
        for name, audience in (("a", broken), ("b", lambda context: 1), ("c", lambda context: {})):
            server.registry.register(
                Tool(
                    name=name,
                    description="?",
                    input_schema=OPEN,
                    callback=Counted(),
                    audience=audience,  # type: ignore[arg-type]  # off contract on purpose
                )
            )
        async with server:
            client = Client(server)
            assert await listed(client) == []
            assert [code(await client.call(name)) for name in "abc"] == [-32601] * 3

    run_virtual(scenario)


def test_also_a_sensitive_tool_of_somebody_elses_is_not_there() -> None:
    """ours: that nobody guards it is not to be told to who does not know of it."""

    async def scenario() -> None:
        wipe = Tool(
            name="wipe",
            description="?",
            input_schema=OPEN,
            callback=Counted(),
            annotations={"sensitive": True},
            audience=of_a,
        )
        server = Server()
        server.registry.register(wipe, derived=True)
        async with server:
            reply = await Client(server, "a").call("wipe")
            assert denial(reply) == denied("wipe", "sensitive_tool_unguarded")
            assert code(await Client(server, "b").call("wipe")) == -32601

    run_virtual(scenario)


def test_an_audience_of_a_resource_is_callable() -> None:
    """ours: what cannot be meant is refused when it is registered."""
    wrong = Resource(uri="test://a", name="a", callback=Counted(), audience="ada")  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(ConfigurationError, match="invalid_audience"):
        Server().registry.register(wrong)


def test_an_audience_is_told_what_an_authorizer_is() -> None:
    """rulings: exactly connection, transport and principal."""
    seen: list[AuthorizationContext] = []

    def watch(context: AuthorizationContext) -> bool:
        seen.append(context)
        return True

    async def scenario() -> None:
        server = Server()
        server.registry.register(
            Tool(name="a", description="?", input_schema=OPEN, callback=Counted(), audience=watch)
        )
        async with server:
            await Client(server, "a", facts=ConnectionFacts("pipe", "ada")).call("a")

    run_virtual(scenario)
    told_ = {"connection": "a", "transport": "pipe", "principal": "ada"}
    assert seen
    assert all(context == told_ for context in seen)


# -- connections ------------------------------------------------------------------------------


def test_that_a_connection_is_gone_is_told_once_however_it_ended() -> None:
    """ours: what belongs to a connection must not go on to who has its id next."""
    gone: list[object] = []

    def broken(connection: object) -> None:
        raise LookupError

    async def scenario() -> None:
        async with Server() as server:
            server.on_gone(broken)
            end = server.on_gone(gone.append)
            one = Client(server, "a", facts=ConnectionFacts("pipe", "ada", share="ada"))
            assert server.share_of("a") == "ada"
            assert server.share_of("b") is None
            other = Client(server, "a")
            assert gone == ["a"]
            assert server.share_of("a") == "a"
            one.end()
            assert gone == ["a"]
            other.end()
            assert gone == ["a", "a"]
            transport = MemoryTransport(server)
            async with transport:
                assert len(gone) == 2
            assert len(gone) == 3
            end()
            end()
            Client(server, "c").end()
            assert len(gone) == 3

    run_virtual(scenario)


# -- what tells of other things ---------------------------------------------------------------


def test_what_a_caller_may_list_and_read_is_asked_of_both_authorizers() -> None:
    """risk 35: what goes around tools/list must not go around its authorizers."""

    @nonblocking
    def reads(
        method: str, arguments: Mapping[str, object], context: AuthorizationContext
    ) -> Decision:
        if context["connection"] == "b" and method == "tools/list":
            return deny()
        return deny() if arguments.get("uri") == "test://no" else allow()

    async def scenario() -> None:
        server = Server(authorizer=decides(allow(), no=deny()), read_authorizer=reads)
        seen: list[object] = []

        async def look(arguments: Mapping[str, object], context: Context) -> str:
            seen.append([found.name for found in await server.tools_for(context)])
            uris = ("test://a", "test://no", "test://other")
            seen.append([uri for uri in uris if await server.may_read(context, uri)])
            return "seen"

        server.registry.register(tool("look", look), tool("no"), owned(), secret())
        server.look_through(lambda tools, context: [])
        async with server:
            for connection in "abc":
                assert text(await Client(server, connection).call("look")) == "seen"
        assert seen == [
            ["look", "mine"],
            ["test://a", "test://other"],
            [],
            ["test://other"],
            ["look"],
            ["test://other"],
        ]

    run_virtual(scenario)
