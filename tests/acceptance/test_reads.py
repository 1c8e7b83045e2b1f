"""Resources, prompts, completions, logging levels."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping

import pytest

from raxol_mcp import (
    Completion,
    Context,
    Image,
    Limits,
    Message,
    Prompt,
    PromptArgument,
    Resource,
    ResourceTemplate,
    Server,
    Text,
    ToolError,
    deny_all,
)
from raxol_mcp.core.breaker import Breakers
from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.wire.meta import EraName
from tests.acceptance.world import (
    HANDSHAKE,
    STATELESS,
    Client,
    Counted,
    Json,
    at,
    code,
    in_both_eras,
    names,
    outside,
    passes,
    settled,
)
from tests.promises import promise

SECRET = "postgres://admin:hunter2@db"
NOT_FOUND = {HANDSHAKE: -32002, STATELESS: -32602}


def failing(error: BaseException) -> object:
    """Make a callback that raises."""

    async def callback(*_: object) -> object:
        raise error

    return callback


def resource(uri: str, value: object) -> Resource:
    """Make a resource that holds a value."""
    return Resource(uri=uri, name=uri.rpartition("/")[2], callback=Counted(value))


# Resources


@promise("methods.list_resources")
@in_both_eras
def test_registered_resources_are_listed(era: EraName) -> None:
    """specification: Supported Methods. Never the callback."""

    async def scenario() -> None:
        server = Server()
        client = Client(server, era=era)
        assert await client.result("resources/list") == {"resources": []}
        server.registry.register(
            Resource(
                uri="mem://a",
                name="a",
                title="A",
                description="The first.",
                mime_type="text/plain",
                size=3,
                callback=Counted(),
            ),
            ResourceTemplate(uri_template="mem://b/{id}", name="b", callback=Counted()),
        )
        assert await client.result("resources/list") == {
            "resources": [
                {
                    "uri": "mem://a",
                    "name": "a",
                    "title": "A",
                    "description": "The first.",
                    "mimeType": "text/plain",
                    "size": 3,
                }
            ]
        }
        assert await client.result("resources/templates/list") == {
            "resourceTemplates": [{"uriTemplate": "mem://b/{id}", "name": "b"}]
        }

    run_virtual(scenario)


@promise("methods.read_resource")
@in_both_eras
def test_a_resource_is_read_as_what_it_is(era: EraName) -> None:
    """server-behaviour §4.2: text as it is, everything else as pretty JSON; bytes are a blob."""

    async def scenario() -> None:
        server = Server()
        server.registry.register(
            resource("mem://text", "a\nb"),
            resource("mem://json", {"b": [1], "a": None}),
            resource("mem://bytes", b"\x00\xff"),
            resource("mem://empty", ""),
        )
        client = Client(server, era=era)

        async def read(uri: str) -> object:
            return at(await client.result("resources/read", {"uri": uri}), "contents")

        assert await read("mem://text") == [
            {"uri": "mem://text", "mimeType": "text/plain", "text": "a\nb"}
        ]
        found = await read("mem://json")
        assert at(found, 0, "mimeType") == "application/json"
        assert at(found, 0, "text") == json.dumps({"b": [1], "a": None}, indent=2)
        assert await read("mem://bytes") == [
            {"uri": "mem://bytes", "mimeType": "application/octet-stream", "blob": "AP8="}
        ]
        assert at(await read("mem://empty"), 0, "text") == ""

    run_virtual(scenario)


@in_both_eras
@pytest.mark.parametrize(
    "uri", ["mem://nope", "raxol://other/x", "raxol://session/any/tools", "nonsense", ""]
)
def test_an_unknown_resource_is_an_error_that_names_it(era: EraName, uri: str) -> None:
    """ours: -32002, and -32602 in the stateless era. No built-in `raxol://` routes here."""

    async def scenario() -> None:
        error = await Client(Server(), era=era).error("resources/read", {"uri": uri})
        assert error == {
            "code": NOT_FOUND[era],
            "message": f"Resource not found: {uri}",
            "data": {"uri": uri},
        }

    run_virtual(scenario)


@in_both_eras
def test_a_template_serves_what_its_uri_matches_and_cannot_be_left(era: EraName) -> None:
    """MCP server/resources §Resource Templates, §Security: paths must be sanitized."""
    server = Server()

    @server.resource("docs://{name}")
    async def doc(name: str) -> str:
        return f"doc {name}"

    server.registry.register(resource("docs://exact", "the exact one"))

    async def scenario() -> None:
        client = Client(server, era=era)

        async def read(uri: str) -> object:
            result = await client.result("resources/read", {"uri": uri})
            return at(result, "contents", 0, "text")

        assert await read("docs://a%20b") == "doc a b"
        assert await read("docs://exact") == "the exact one"
        for uri in ("docs://", "docs://a/b", "docs://..", "docs://%2e%2e", "docs://a%2Fb"):
            error = await client.error("resources/read", {"uri": uri})
            assert error["code"] == NOT_FOUND[era], uri

    run_virtual(scenario)


@promise("isolation.workers")
@in_both_eras
def test_a_read_that_breaks_is_an_error_without_its_secret(era: EraName) -> None:
    """ours: -32603 with what broke; server-behaviour §4.4."""

    async def scenario() -> None:
        server = Server()
        for name, error in (
            ("broken", ValueError(SECRET)),
            ("exits", SystemExit(SECRET)),
            ("speaks", ToolError("come back later")),
        ):
            server.registry.register(
                Resource(uri=f"mem://{name}", name=name, callback=failing(error)),  # type: ignore[arg-type]  # a callback
                Prompt(name=name, callback=failing(error)),  # type: ignore[arg-type]  # a callback
            )
        server.registry.register(resource("mem://odd", object()), resource("mem://nan", [1e999]))
        client = Client(server, era=era)
        for method, key in (("resources/read", "uri"), ("prompts/get", "name")):
            for name in ("broken", "exits"):
                params = {key: f"mem://{name}" if key == "uri" else name}
                error_object = await client.error(method, params)
                assert error_object["code"] == -32603
                assert error_object["data"] == {"error": "callback_crashed", "method": method}
                assert SECRET not in json.dumps(error_object)
            params = {key: "mem://speaks" if key == "uri" else "speaks"}
            error_object = await client.error(method, params)
            assert error_object["code"] == -32603
            assert error_object["message"] == "come back later"
        for uri in ("mem://odd", "mem://nan"):
            assert (await client.error("resources/read", {"uri": uri}))["code"] == -32603

    run_virtual(scenario)


@in_both_eras
def test_a_read_past_the_limit_is_an_error(era: EraName) -> None:
    """ours: sizes: 16 MiB a result; an option."""

    async def scenario() -> None:
        server = Server(limits=Limits(max_result_bytes=1000))
        server.registry.register(resource("mem://a", "x" * 2000), resource("mem://b", "x"))
        client = Client(server, era=era)
        error = await client.error("resources/read", {"uri": "mem://a"})
        assert error["code"] == -32603
        assert "x" * 10 not in json.dumps(error)
        await client.result("resources/read", {"uri": "mem://b"})

    run_virtual(scenario)


@in_both_eras
def test_a_read_that_takes_too_long_is_an_error(era: EraName) -> None:
    """ours: codes and payloads, `callback_timeout`."""

    async def forever(*_: object) -> None:
        await asyncio.Event().wait()

    async def scenario() -> None:
        server = Server(limits=Limits(callback_timeout=2.0))
        server.registry.register(Resource(uri="mem://slow", name="slow", callback=forever))
        client = Client(server, era=era)
        error = await client.error("resources/read", {"uri": "mem://slow"})
        assert error["code"] == -32603
        assert error["data"] == {"error": "callback_timeout", "method": "resources/read"}
        assert server.stats()["in_flight"] == 0

    run_virtual(scenario)


@in_both_eras
def test_a_resource_and_a_prompt_that_keep_failing_are_left_alone(era: EraName) -> None:
    """server-behaviour §4.2, §12.3: a breaker a resource and a prompt, not a server."""

    async def scenario() -> None:
        server = Server(breakers=Breakers(threshold=2, recovery=10.0))
        server.registry.register(
            Resource(uri="mem://a", name="a", callback=failing(ValueError())),  # type: ignore[arg-type]  # a callback
            Prompt(name="p", callback=failing(ValueError())),  # type: ignore[arg-type]  # a callback
            resource("mem://b", "fine"),
        )
        client = Client(server, era=era)
        for _ in range(2):
            await client.error("resources/read", {"uri": "mem://a"})
            await client.error("prompts/get", {"name": "p"})
        error = await client.error("resources/read", {"uri": "mem://a"})
        assert error["code"] == -32603
        assert error["message"] == "Resource temporarily unavailable (circuit open)"
        error = await client.error("prompts/get", {"name": "p"})
        assert error["message"] == "Prompt temporarily unavailable (circuit open)"
        await client.result("resources/read", {"uri": "mem://b"})
        await passes(10.1)
        error = await client.error("resources/read", {"uri": "mem://a"})
        assert error["data"] == {"error": "callback_crashed", "method": "resources/read"}

    run_virtual(scenario)


# Prompts


@promise("methods.list_prompts", "methods.get_prompt")
@in_both_eras
def test_prompts_are_listed_and_rendered_with_their_arguments(era: EraName) -> None:
    """specification: Supported Methods; MCP server/prompts."""
    server = Server()

    @server.prompt
    async def greet(who: str, how: str = "warmly") -> str:
        """Greet somebody."""
        return f"Greet {who} {how}"

    async def talk(arguments: Mapping[str, str], context: Context) -> object:
        return [Message("user", "Hi"), Message("assistant", Image(b"", "image/png")), Text("So?")]

    server.registry.register(Prompt(name="talk", title="Talk", callback=talk))

    async def scenario() -> None:
        client = Client(server, era=era)
        assert await client.result("prompts/list") == {
            "prompts": [
                {
                    "name": "greet",
                    "description": "Greet somebody.",
                    "arguments": [
                        {"name": "who", "required": True},
                        {"name": "how", "required": False},
                    ],
                },
                {"name": "talk", "title": "Talk", "arguments": []},
            ]
        }
        rendered = await client.result(
            "prompts/get", {"name": "greet", "arguments": {"who": "Ada"}}
        )
        assert rendered == {
            "description": "Greet somebody.",
            "messages": [{"role": "user", "content": {"type": "text", "text": "Greet Ada warmly"}}],
        }
        assert at(await client.result("prompts/get", {"name": "talk"}), "messages") == [
            {"role": "user", "content": {"type": "text", "text": "Hi"}},
            {
                "role": "assistant",
                "content": {"type": "image", "data": "", "mimeType": "image/png"},
            },
            {"role": "user", "content": {"type": "text", "text": "So?"}},
        ]

    run_virtual(scenario)


@in_both_eras
def test_an_unknown_prompt_and_arguments_that_do_not_fit_are_refused(era: EraName) -> None:
    """ours follows MCP: -32602; older servers said -32601 to an unknown prompt."""

    async def scenario() -> None:
        server = Server()
        callback = Counted("x")
        arguments = (PromptArgument("who", required=True), PromptArgument("how"))
        server.registry.register(Prompt(name="greet", callback=callback, arguments=arguments))
        client = Client(server, era=era)
        error = await client.error("prompts/get", {"name": "nope"})
        assert error == {"code": -32602, "message": "Prompt not found: nope"}
        error = await client.error("prompts/get", {"name": "greet", "arguments": {"how": "x"}})
        assert error["code"] == -32602
        assert "who" in str(error["message"])
        given = {"who": "Ada", "colour": "red"}
        error = await client.error("prompts/get", {"name": "greet", "arguments": given})
        assert error["code"] == -32602
        assert "colour" in str(error["message"])
        assert callback.runs == 0

    run_virtual(scenario)


# Completions


@promise("methods.complete")
@in_both_eras
def test_completions_are_suggested_for_prompts_and_templates(era: EraName) -> None:
    """MCP server/utilities/completion; older servers completed names of tools instead."""
    server = Server()
    countries = ["Spain", "Sweden", "Switzerland"]
    seen: list[object] = []

    @server.prompt
    async def visit(country: str, city: str) -> str:
        """Visit."""
        return country

    @server.resource("map://{country}")
    async def chart(country: str) -> str:
        return country

    @server.completion("visit", "country")
    @server.completion("map://{country}", "country")
    async def country(value: str) -> list[str]:
        return [name for name in countries if name.startswith(value)]

    @server.completion("visit", "city")
    async def city(value: str, filled_in: Mapping[str, str]) -> list[str]:
        seen.append(dict(filled_in))
        return []

    async def scenario() -> None:
        client = Client(server, era=era)
        for ref in (
            {"type": "ref/prompt", "name": "visit"},
            {"type": "ref/resource", "uri": "map://{country}"},
        ):
            argument = {"name": "country", "value": "Sw"}
            assert await client.result(
                "completion/complete", {"ref": ref, "argument": argument}
            ) == {"completion": {"values": ["Sweden", "Switzerland"], "total": 2, "hasMore": False}}
        await client.result(
            "completion/complete",
            {
                "ref": {"type": "ref/prompt", "name": "visit"},
                "argument": {"name": "city", "value": ""},
                "context": {"arguments": {"country": "Spain"}},
            },
        )
        assert seen == [{"country": "Spain"}]
        params = {
            "ref": {"type": "ref/prompt", "name": "visit"},
            "argument": {"name": "nothing", "value": ""},
        }
        assert await client.result("completion/complete", params) == {
            "completion": {"values": [], "total": 0, "hasMore": False}
        }

    run_virtual(scenario)


@in_both_eras
def test_at_most_a_hundred_values_are_suggested(era: EraName) -> None:
    """MCP server/utilities/completion: 100; older servers sent 20."""

    async def scenario() -> None:
        server = Server()
        values = [f"v{number}" for number in range(150)]
        server.registry.register(
            Prompt(name="p", callback=Counted("x")),
            Completion("ref/prompt", "p", "a", Counted(values)),
        )
        params = {
            "ref": {"type": "ref/prompt", "name": "p"},
            "argument": {"name": "a", "value": "v"},
        }
        assert await Client(server, era=era).result("completion/complete", params) == {
            "completion": {"values": values[:100], "total": 150, "hasMore": True}
        }

    run_virtual(scenario)


@in_both_eras
@pytest.mark.parametrize(
    "ref",
    [
        {"type": "ref/tool", "name": "act"},
        {"type": "ref/prompt", "name": "nope"},
        {"type": "ref/resource", "uri": "mem://nope/{x}"},
        {"type": "ref/resource", "name": "p"},
        {"type": 5, "name": "p"},
        "p",
    ],
)
def test_a_reference_to_nothing_is_refused(era: EraName, ref: object) -> None:
    """MCP server/utilities/completion: `ref/tool` is not MCP; -32602."""

    async def scenario() -> None:
        server = Server()
        server.registry.register(Prompt(name="p", callback=Counted("x")))
        params = {"ref": ref, "argument": {"name": "a", "value": ""}}
        error = await Client(server, era=era).error("completion/complete", params)
        assert error["code"] == -32602

    run_virtual(scenario)


@in_both_eras
@pytest.mark.parametrize("found", ["abc", [1], None, ValueError(SECRET)])
def test_a_completion_that_breaks_is_an_error(era: EraName, found: object) -> None:
    """ours: codes and payloads; the callback's words stay with us."""

    async def scenario() -> None:
        server = Server()
        callback = failing(found) if isinstance(found, Exception) else Counted(found)
        server.registry.register(
            Prompt(name="p", callback=Counted("x")),
            Completion("ref/prompt", "p", "a", callback),  # type: ignore[arg-type]  # a callback
        )
        params = {
            "ref": {"type": "ref/prompt", "name": "p"},
            "argument": {"name": "a", "value": ""},
        }
        error = await Client(server, era=era).error("completion/complete", params)
        assert error["code"] == -32603
        assert at(error, "data", "error") == "callback_crashed"
        assert SECRET not in json.dumps(error)

    run_virtual(scenario)


# Logging levels (the session's; `test_context.py` has what is sent)


@promise("level.unknown", "level.gated")
def test_an_unknown_level_is_refused_and_a_denied_one_not_looked_at() -> None:
    """specification: Callback isolation, last paragraph. The gate first: it leaks less."""

    async def scenario() -> None:
        client = Client(Server())
        for level in ("bogus", "DEBUG", "", 5, None, ["debug"]):
            error = await client.error("logging/setLevel", {"level": level})
            assert error["code"] == -32602, level
        assert (await client.error("logging/setLevel", {}))["code"] == -32602
        assert await client.result("logging/setLevel", {"level": "debug"}) == {}
        gated = Client(Server(read_authorizer=deny_all("closed")))
        for level in ("debug", "bogus"):
            error = await gated.error("logging/setLevel", {"level": level})
            assert error["code"] == -31001
            assert error["data"] == {
                "error": "authorization_required",
                "method": "logging/setLevel",
                "detail": "closed",
            }

    run_virtual(scenario)


# Callbacks that block


def test_plain_functions_are_read_in_threads() -> None:
    """specification: Callback isolation. A plain function may block."""
    server = Server()

    @server.resource("mem://a")
    def a() -> str:
        return "from a thread"

    @server.prompt
    def p(who: str) -> str:
        """Prompt."""
        return who

    @server.completion("p", "who")
    def who(value: str) -> list[str]:
        return [value + "!"]

    async def scenario() -> None:
        client = Client(server)
        read = await outside(client.result("resources/read", {"uri": "mem://a"}))
        assert at(read, "contents", 0, "text") == "from a thread"
        got = await outside(client.result("prompts/get", {"name": "p", "arguments": {"who": "x"}}))
        assert at(got, "messages", 0, "content", "text") == "x"
        params = {
            "ref": {"type": "ref/prompt", "name": "p"},
            "argument": {"name": "who", "value": "y"},
        }
        completed = await outside(client.result("completion/complete", params))
        assert at(completed, "completion", "values") == ["y!"]

    run_virtual(scenario)


# Subscribing (what is then sent: `test_notifications.py`)


def test_subscribing_again_and_unsubscribing_from_nothing_are_fine() -> None:
    """server-behaviour §4: `{}` in every case."""

    async def scenario() -> None:
        client = Client(Server())
        for method in (
            "resources/unsubscribe",
            "resources/subscribe",
            "resources/subscribe",
            "resources/unsubscribe",
            "resources/unsubscribe",
        ):
            assert await client.result(method, {"uri": "mem://a"}) == {}

    run_virtual(scenario)


def test_subscriptions_are_bounded_in_number_and_size() -> None:
    """ours: a set that a client can grow has a bound; older servers had none."""

    async def scenario() -> None:
        client = Client(Server(limits=Limits(max_subscriptions=2, max_uri_bytes=20)))
        for number in (1, 2):
            await client.result("resources/subscribe", {"uri": f"mem://{number}"})
        error = await client.error("resources/subscribe", {"uri": "mem://3"})
        assert error["code"] == -31002
        assert await client.result("resources/subscribe", {"uri": "mem://1"}) == {}
        await client.result("resources/unsubscribe", {"uri": "mem://1"})
        assert await client.result("resources/subscribe", {"uri": "mem://3"}) == {}
        error = await client.error("resources/subscribe", {"uri": "mem://" + "x" * 20})
        assert error["code"] == -32602

    run_virtual(scenario)


def test_one_connection_cannot_use_up_the_subscriptions_of_another() -> None:
    """ours: `resources/subscribe` per connection, cleared with it."""

    async def scenario() -> None:
        server = Server(limits=Limits(max_subscriptions=1))
        one, other = Client(server, "a"), Client(server, "b")
        assert await one.result("resources/subscribe", {"uri": "mem://1"}) == {}
        assert await other.result("resources/subscribe", {"uri": "mem://2"}) == {}
        await settled()
        server.notify("notifications/resources/updated", {"uri": "mem://1"})
        assert [names([push["params"]], "uri") for push in one.pushes()] == [["mem://1"]]
        assert other.pushes() == []

    run_virtual(scenario)


def test_the_code_of_a_refused_read_is_not_taken_for_a_tool_result() -> None:
    """ours: only `tools/call` has failures as results."""

    async def scenario() -> None:
        client = Client(Server())
        reply: Json | None = await client.ask("resources/read", {"uri": "mem://nope"})
        assert reply is not None
        assert "result" not in reply
        assert code(reply) == -32002

    run_virtual(scenario)
