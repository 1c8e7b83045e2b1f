"""Messages, methods and versions, before any tool is looked at."""

from __future__ import annotations

import pytest

import raxol_mcp
from raxol_mcp import ConnectionFacts, MemoryTransport, Server
from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.wire.jsonrpc import Request
from raxol_mcp.wire.meta import EraName
from tests.acceptance.world import (
    CAPABILITIES,
    FORMS,
    HANDSHAKE,
    LOG_LEVEL,
    STATELESS,
    VERSION,
    Client,
    Counted,
    Held,
    Json,
    asks,
    at,
    code,
    denial,
    denied,
    in_both_eras,
    settled,
    text,
    tool,
    wire,
)
from tests.promises import promise

LISTS: Json = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "logging": {},
}


def greeting(version: object = "2025-11-25", **params: object) -> Json:
    """Write the params of an `initialize`."""
    return {
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "probe", "version": "0"},
        **params,
    }


# Opening a conversation


@promise("methods.initialize")
@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_initialize_answers_who_we_are_in_the_version_asked_for(version: str) -> None:
    """specification: Supported Methods. MCP's negotiation instead of one fixed version."""

    async def scenario() -> None:
        client = Client(Server())
        result = await client.result("initialize", greeting(version))
        completions: Json = {} if version == "2024-11-05" else {"completions": {}}
        assert result == {
            "protocolVersion": version,
            "capabilities": {**LISTS, **completions},
            "serverInfo": {"name": "raxol", "version": raxol_mcp.__version__},
        }

    run_virtual(scenario)


@promise("methods.initialize")
def test_the_name_and_the_version_of_the_server_are_options() -> None:
    """specification: Supported Methods, start options. The text for the client is ours."""

    async def scenario() -> None:
        server = Server("files", version="9.9", title="Files", instructions="Be careful.")
        result = await Client(server).result("initialize", greeting())
        assert result["serverInfo"] == {"name": "files", "version": "9.9", "title": "Files"}
        assert result["instructions"] == "Be careful."

    run_virtual(scenario)


def test_an_unknown_version_is_offered_our_latest() -> None:
    """MCP 2025-11-25 basic/lifecycle §Version Negotiation."""

    async def scenario() -> None:
        for version in ("1999-01-01", "2026-07-28"):
            result = await Client(Server()).result("initialize", greeting(version))
            assert result["protocolVersion"] == "2025-11-25"

    run_virtual(scenario)


@pytest.mark.parametrize("params", [{}, {"protocolVersion": 5}, {"protocolVersion": None}])
def test_initialize_without_a_version_is_refused(params: Json) -> None:
    """ours follows MCP: the version is required; older servers took anything."""

    async def scenario() -> None:
        client = Client(Server())
        assert (await client.error("initialize", params))["code"] == -32602
        assert await client.result("initialize", greeting()) != {}, "it may try again"

    run_virtual(scenario)


def test_a_second_initialize_is_refused_and_changes_nothing() -> None:
    """ours: messages. Older servers let it replace what was declared."""

    async def scenario() -> None:
        server = Server(authorizer=asks())
        server.registry.register(tool("act"))
        client = Client(server, capabilities=FORMS)
        await client.greet()
        assert (await client.error("initialize", greeting()))["code"] == -32600
        handle = client.start("act")
        await settled()
        await client.approve(client.prompt())
        assert text(wire(await handle)) == "done", "still declared"

    run_virtual(scenario)


def test_discover_answers_who_we_are_in_the_stateless_era() -> None:
    """MCP 2026-07-28 server/discover: what `initialize` is to the older revisions."""

    async def scenario() -> None:
        server = Server("files", version="9.9", instructions="Be careful.")
        client = Client(server, era=STATELESS)
        assert await client.result("server/discover") == {
            "supportedVersions": ["2026-07-28"],
            "capabilities": {**LISTS, "completions": {}},
            "instructions": "Be careful.",
        }
        reply = await client.ask("server/discover")
        assert at(reply, "result", "_meta") == {
            "io.modelcontextprotocol/serverInfo": {"name": "files", "version": "9.9"}
        }

    run_virtual(scenario)


@promise("methods.initialized", "methods.ping", "handle.reply")
def test_the_acknowledgement_gets_no_reply_and_a_ping_an_empty_one() -> None:
    """specification: Supported Methods. A ping does not exist in MCP 2026-07-28."""

    async def scenario() -> None:
        server = Server()
        client = Client(server)
        await client.tell("notifications/initialized")
        assert await client.ask("ping", id=2) == {"jsonrpc": "2.0", "id": 2, "result": {}}
        stateless = Client(server, "b", era=STATELESS)
        assert (await stateless.error("ping"))["code"] == -32601
        assert client.pushes() == []

    run_virtual(scenario)


@promise("handle.reply")
@in_both_eras
def test_an_unknown_method_is_named_and_an_unknown_notification_dropped(era: EraName) -> None:
    """server-behaviour §4."""

    async def scenario() -> None:
        client = Client(Server(), era=era)
        error = await client.error("unknown/method")
        assert error["code"] == -32601
        assert "unknown/method" in str(error["message"])
        await client.tell("unknown/method", client.params())

    run_virtual(scenario)


@pytest.mark.parametrize(
    ("era", "method"),
    [
        (STATELESS, "initialize"),
        (STATELESS, "logging/setLevel"),
        (STATELESS, "resources/subscribe"),
        (STATELESS, "resources/unsubscribe"),
        (HANDSHAKE, "server/discover"),
        (HANDSHAKE, "subscriptions/listen"),
    ],
)
def test_a_method_of_the_other_era_is_unknown(era: EraName, method: str) -> None:
    """MCP 2026-07-28 §Changes: the request's metadata tells the era, not the method's name."""

    async def scenario() -> None:
        client = Client(Server(), era=era)
        assert (await client.error(method, greeting()))["code"] == -32601

    run_virtual(scenario)


# The shape of a message


@promise("params.null", "params.object_first")
def test_params_are_an_object_or_nothing_whatever_the_method() -> None:
    """specification: Callback isolation, last paragraph."""

    async def scenario() -> None:
        client = Client(Server())
        message: Json = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        answer: Json = {"jsonrpc": "2.0", "id": 1, "result": {}}
        assert await client.handle({**message, "params": None}) == answer
        wrong: tuple[object, ...] = ([], "x", 5, True)
        for params in wrong:
            for method in ("ping", "no/such", 5):
                reply = await client.handle({**message, "method": method, "params": params})
                assert (code(reply), at(reply, "id")) == (-32602, 1), (method, params)
        assert await client.handle({**message, "params": None, "method": "tools/call"}) is not None
        await client.tell("ping", None)
        assert await client.handle({"jsonrpc": "2.0", "method": "ping", "params": []}) is None

    run_virtual(scenario)


@promise("method.string", "method.dropped")
def test_a_method_is_a_string() -> None:
    """specification: Callback isolation, last paragraph."""

    async def scenario() -> None:
        client = Client(Server())
        for method in (5, ["ping"], {"name": "ping"}, True):
            reply = await client.handle({"jsonrpc": "2.0", "id": 1, "method": method})
            assert code(reply) == -32600
            assert await client.handle({"jsonrpc": "2.0", "method": method}) is None

    run_virtual(scenario)


def test_a_message_without_a_method_is_refused() -> None:
    """server-behaviour §3; ours: an object that only looks wrong is -32600, `{}` too."""

    async def scenario() -> None:
        client = Client(Server())
        reply = await client.handle({"jsonrpc": "2.0", "id": 14})
        assert (at(reply, "id"), code(reply)) == (14, -32600)
        reply = await client.handle({})
        assert (at(reply, "id"), code(reply)) == (None, -32600)

    run_virtual(scenario)


@pytest.mark.parametrize("id", [None, True, 1.5, {"a": 1}, [1]])
def test_an_id_that_is_no_id_is_refused_and_nothing_runs(id: object) -> None:
    """ours: messages. JSON-RPC would read a null id as a notification."""

    async def scenario() -> None:
        server = Server()
        callback = Counted()
        server.registry.register(tool("act", callback))
        client = Client(server)
        message = {**client.message("tools/call", {"name": "act"}), "id": id}
        reply = await client.handle(message)
        assert (at(reply, "id"), code(reply)) == (None, -32600)
        assert callback.runs == 0

    run_virtual(scenario)


@promise("handle.decoded_only", "request.decoded_only")
def test_a_message_that_was_not_decoded_is_refused() -> None:
    """specification: handle_message, request."""

    async def scenario() -> None:
        server = Server()
        raw: Json = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        assert code(wire(await server.handle_message(raw))) == -32600
        assert code(wire(await server.request(raw))) == -32600
        for message in (
            {"jsonrpc": "2.0", "method": "ping"},
            {"jsonrpc": "2.0", "id": 1, "result": {}},
            b'{"jsonrpc":"2.0","id":1,"method":"ping"}',
            None,
        ):
            assert await server.handle_message(message) is None
            assert await server.request(message) is None

    run_virtual(scenario)


@promise("request.one_reply")
def test_a_response_to_nothing_is_never_answered() -> None:
    """server-behaviour §3: two strict peers that answered responses would never stop."""

    async def scenario() -> None:
        client = Client(Server(), capabilities=FORMS)
        await client.greet()
        messages: tuple[Json, ...] = (
            {"id": "raxol-elicit-never", "result": {"action": "accept"}},
            {"id": 1, "result": None},
            {"id": 1, "error": {"code": -1, "message": "no"}},
            {"id": 1, "error": "broken"},
            {"id": None, "result": {}},
            {"result": {}},
        )
        for message in messages:
            assert await client.handle({"jsonrpc": "2.0", **message}) is None
        assert client.pushes() == []
        assert await client.ask("ping") is not None

    run_virtual(scenario)


@in_both_eras
def test_a_call_without_params_is_answered_and_the_next_message_served(era: EraName) -> None:
    """server-behaviour §4: -32602, and nothing loops."""

    async def scenario() -> None:
        server = Server()
        client = Client(server, era=era)
        message = client.message("tools/call", {})
        assert code(await client.handle(message)) == -32602
        if era is HANDSHAKE:
            del message["params"]
            assert code(await client.handle(message)) == -32602
        assert await client.result("tools/list") == {"tools": []}
        await client.tell("tools/call", client.params({"name": "act"}))
        await client.tell("tools/call")
        assert server.stats()["in_flight"] == 0

    run_virtual(scenario)


@in_both_eras
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": 5}),
        ("tools/call", {"name": "act", "arguments": [1]}),
        ("tools/list", {"cursor": 5}),
        ("resources/read", {}),
        ("resources/read", {"uri": None}),
        ("prompts/get", {"arguments": {}}),
        ("prompts/get", {"name": "p", "arguments": {"a": 1}}),
        ("completion/complete", {"argument": {"name": "a", "value": ""}}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {}}),
    ],
)
def test_params_of_the_wrong_shape_are_refused(era: EraName, method: str, params: Json) -> None:
    """ours: -32602 for all of them; older servers guessed defaults."""

    async def scenario() -> None:
        server = Server()
        server.registry.register(tool("act"))
        assert (await Client(server, era=era).error(method, params))["code"] == -32602

    run_virtual(scenario)


# Ids in flight


@in_both_eras
def test_a_second_request_with_an_id_in_flight_is_refused_and_the_first_unharmed(
    era: EraName,
) -> None:
    """ours: messages. The refusal goes under a null id: it is not the first one's answer."""

    async def scenario() -> None:
        server = Server()
        held = Held("first")
        server.registry.register(tool("wait", held))
        client = Client(server, era=era)
        first = client.start("wait", id=7)
        await settled()
        reply = await client.ask("tools/call", {"name": "wait"}, id=7)
        assert (at(reply, "id"), code(reply)) == (None, -32600)
        assert held.begun == 1
        held.let_go()
        assert text(wire(await first)) == "first"
        reply = await client.ask("tools/call", {"name": "wait"}, id=7)
        assert text(reply) == "first", "after the answer the id may be used again"

    run_virtual(scenario)


def test_ids_are_compared_by_type_and_by_connection() -> None:
    """ours: messages; ours: ADR-0006."""

    async def scenario() -> None:
        server = Server()
        held = Held()
        server.registry.register(tool("wait", held))
        one, other = Client(server, "a"), Client(server, "b")
        handles = [one.start("wait", id=1), one.start("wait", id="1"), other.start("wait", id=1)]
        await settled()
        held.let_go()
        replies = [wire(await handle) for handle in handles]
        assert [at(reply, "id") for reply in replies] == [1, "1", 1]

    run_virtual(scenario)


# Eras


def test_both_eras_are_spoken_on_one_connection() -> None:
    """MCP 2026-07-28 basic/versioning: every request says which era it belongs to (ADR-0007)."""

    async def scenario() -> None:
        server = Server()
        server.registry.register(tool("act"))
        legacy = Client(server, "pipe")
        modern = Client(server, "pipe", era=STATELESS, subscribed=False)
        await legacy.greet()
        for number in range(3):
            assert await legacy.ask("tools/call", {"name": "act"}, id=f"l{number}") == {
                "jsonrpc": "2.0",
                "id": f"l{number}",
                "result": {"content": [{"type": "text", "text": "done"}]},
            }
            reply = await modern.ask("tools/call", {"name": "act"}, id=f"m{number}")
            assert at(reply, "result", "resultType") == "complete"

    run_virtual(scenario)


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ({VERSION: "2026-07-28"}, -32602),
        ({VERSION: "2026-07-28", CAPABILITIES: []}, -32602),
        ({VERSION: 2026, CAPABILITIES: {}}, -32602),
        ({VERSION: None, CAPABILITIES: {}}, -32602),
        ({VERSION: "2026-07-28", CAPABILITIES: {}, LOG_LEVEL: "loud"}, -32602),
        ({VERSION: "1900-01-01", CAPABILITIES: {}}, -32022),
        ({VERSION: "2025-11-25", CAPABILITIES: {}}, -32022),
    ],
)
def test_a_request_says_completely_how_it_is_to_be_understood(meta: Json, expected: int) -> None:
    """MCP 2026-07-28 basic §Per-request metadata: its keys, then the version, then the method."""

    async def scenario() -> None:
        client = Client(Server())
        for method in ("tools/list", "no/such"):
            error = await client.error(method, {"_meta": meta})
            assert error["code"] == expected
            if expected == -32022:
                assert error["data"] == {"supported": ["2026-07-28"], "requested": meta[VERSION]}

    run_virtual(scenario)


def test_where_a_greeting_is_required_nothing_else_is_served_before_it() -> None:
    """MCP 2025-11-25 basic/lifecycle: a transport that has sessions starts with `initialize`."""

    async def scenario() -> None:
        server = Server()
        facts = ConnectionFacts(transport="stdio", greeting_required=True)
        client = Client(server, facts=facts)
        assert (await client.error("tools/list"))["code"] == -32602
        assert await client.result("ping") == {}
        server.notify("notifications/tools/list_changed")
        assert client.pushes() == [], "a stateless client must not be sent what it did not want"
        stateless = Client(server, era=STATELESS, subscribed=False)
        assert await stateless.result("tools/list") == {"tools": []}
        await client.greet()
        assert await client.result("tools/list") == {"tools": []}

    run_virtual(scenario)


# Batches


def test_a_batch_is_taken_where_the_negotiated_version_has_them() -> None:
    """MCP 2025-03-26 basic §Batching: receiving them is required there, and only there."""

    async def scenario() -> None:
        async with MemoryTransport(Server()) as client:
            ping: Json = {"jsonrpc": "2.0", "method": "ping"}
            client.send([{**ping, "id": 1}])
            (refused,) = client.unread()
            assert (refused["id"], code(refused)) == (None, -32600)
            await client.request("initialize", greeting("2025-03-26"))
            client.send(
                [
                    {**ping, "id": 1},
                    {"jsonrpc": "2.0", "method": "notifications/initialized"},
                    {**ping, "id": 2, "method": "initialize", "params": greeting()},
                    {**ping, "id": 3, "params": []},
                    5,
                ]
            )
            replies = client.unread()
            assert [reply.get("id") for reply in replies] == [1, 2, 3, None]
            assert [code(reply) for reply in replies[1:]] == [-32600, -32602, -32600]

    run_virtual(scenario)


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18", "2025-11-25"])
def test_a_batch_is_refused_in_every_other_version(version: str) -> None:
    """ours: messages. JSON-RPC 2.0 §6 does not bind MCP 2025-06-18 and later."""

    async def scenario() -> None:
        async with MemoryTransport(Server()) as client:
            await client.request("initialize", greeting(version))
            client.send([{"jsonrpc": "2.0", "id": 1, "method": "ping"}])
            (refused,) = client.unread()
            assert (refused["id"], code(refused)) == (None, -32600)

    run_virtual(scenario)


def test_elicitation_does_not_exist_before_its_revision() -> None:
    """ours: asking. A client of 2024-11-05 cannot declare what that revision does not have."""

    async def scenario() -> None:
        for version in ("2024-11-05", "2025-03-26"):
            server = Server(authorizer=asks())
            server.registry.register(tool("act"))
            client = Client(server, capabilities=FORMS)
            await client.greet(version)
            assert denial(await client.call("act")) == denied("act", "May I?", decision="ask")
            assert client.pushes() == []

    run_virtual(scenario)


def test_a_cancelled_notification_of_nothing_is_ignored() -> None:
    """MCP 2025-11-25 basic/utilities/cancellation: unknown, finished and malformed ones."""

    async def scenario() -> None:
        client = Client(Server())
        for params in ({"requestId": 99}, {"requestId": None}, {"requestId": True}, {}, None):
            await client.tell("notifications/cancelled", params)
        reply = await client.server.request(Request(1, "ping", None))
        assert wire(reply) == {"jsonrpc": "2.0", "id": 1, "result": {}}

    run_virtual(scenario)
