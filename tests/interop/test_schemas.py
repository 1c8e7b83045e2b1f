"""Every message of the server fits the official schema of the revision it is for.

The schema files are those of the specification's repository (`schema/REVISION/schema.json`); they
are looked for in `../shared/schema` beside this project and the tests are skipped without them.
The models of `mcp-types` are the second opinion, and are always there.

One exception, which JSON-RPC 2.0 demands and the schemas of MCP do not know: an error that answers
an unreadable message has `id: null`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Final, Literal, cast

import jsonschema
import pytest
from mcp_types import methods

from raxol_mcp import (
    Audio,
    Context,
    Elicit,
    ElicitUrl,
    EmbeddedResource,
    Image,
    InputRequired,
    ListRoots,
    Message,
    Prompt,
    PromptArgument,
    Resource,
    ResourceLink,
    ResourceTemplate,
    Sample,
    Server,
    Text,
    Tool,
    ToolResult,
)
from tests.cases.dialects import LEGACY, MODERN, Dialect, Handshake, accept
from tests.cases.fixture_server import Fixture, Knobs
from tests.cases.peers import Exchange, MemoryPeer
from tests.cases.peers import Message as Wire

SCHEMAS: Final = Path(__file__).parents[2].parent / "shared" / "schema"
HANDSHAKES: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS: Final = "2026-07-28"
REVISIONS: Final = (*HANDSHAKES, STATELESS)

RESULTS: Final = {
    "initialize": "InitializeResult",
    "ping": "EmptyResult",
    "tools/list": "ListToolsResult",
    "tools/call": "CallToolResult",
    "resources/list": "ListResourcesResult",
    "resources/templates/list": "ListResourceTemplatesResult",
    "resources/read": "ReadResourceResult",
    "resources/subscribe": "EmptyResult",
    "resources/unsubscribe": "EmptyResult",
    "prompts/list": "ListPromptsResult",
    "prompts/get": "GetPromptResult",
    "completion/complete": "CompleteResult",
    "logging/setLevel": "EmptyResult",
    "server/discover": "DiscoverResult",
    "subscriptions/listen": "SubscriptionsListenResult",
}
PUSHED: Final = {
    "notifications/cancelled": "CancelledNotification",
    "notifications/message": "LoggingMessageNotification",
    "notifications/progress": "ProgressNotification",
    "notifications/resources/updated": "ResourceUpdatedNotification",
    "notifications/resources/list_changed": "ResourceListChangedNotification",
    "notifications/tools/list_changed": "ToolListChangedNotification",
    "notifications/prompts/list_changed": "PromptListChangedNotification",
    "notifications/subscriptions/acknowledged": "SubscriptionsAcknowledgedNotification",
    "elicitation/create": "ElicitRequest",
    "sampling/createMessage": "CreateMessageRequest",
    "roots/list": "ListRootsRequest",
}
ERRORS: Final = {
    -32022: "UnsupportedProtocolVersionError",
    -32021: "MissingRequiredClientCapabilityError",
}
ICON: Final[Wire] = {
    "src": "https://example.com/i.png",
    "mimeType": "image/png",
    "sizes": ["48x48"],
}
ANNOTATIONS: Final[Wire] = {
    "audience": ["user"],
    "priority": 0.5,
    "lastModified": "2025-01-12T15:00:58Z",
}
FORM: Final[Wire] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Name", "minLength": 1, "maxLength": 9},
        "mail": {"type": "string", "format": "email", "default": "a@b.c"},
        "age": {"type": "integer", "minimum": 1, "maximum": 99, "description": "Years"},
        "ratio": {"type": "number"},
        "ok": {"type": "boolean", "default": False},
        "color": {"type": "string", "enum": ["red", "blue"]},
    },
    "required": ["name"],
}
PROMPTED: Final[Wire] = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "Name a city"}}],
    "maxTokens": 10,
}


# -- a server that says everything -----------------------------------------------------------------


def say_everything(server: Server) -> None:
    """Put one of each kind of content, definition and question on a server."""
    items: list[Text | Image | Audio | EmbeddedResource | ResourceLink] = [
        Text(text="t", annotations=ANNOTATIONS, meta={"k": 1}),
        Image(data=b"\xff", mime_type="image/png", annotations=ANNOTATIONS),
        Audio(data=b"\xfb\xef\xbe", mime_type="audio/wav", annotations=ANNOTATIONS, meta={"k": 1}),
        EmbeddedResource(uri="mem://a", text="a"),
        EmbeddedResource(uri="mem://b", blob=b"\x00", mime_type="x/y", annotations=ANNOTATIONS),
        ResourceLink(
            uri="mem://a",
            name="a",
            title="A",
            description="first",
            mime_type="text/plain",
            size=1,
            icons=[ICON],
            annotations=ANNOTATIONS,
        ),
    ]

    async def everything(arguments: Mapping[str, object], context: Context) -> ToolResult:
        return ToolResult(["plain", *items], structured={"a": [1, None]}, meta={"k": [1]})

    async def listed(arguments: Mapping[str, object], context: Context) -> ToolResult:
        return ToolResult([], structured=[1, {"a": None}])

    async def number(arguments: Mapping[str, object], context: Context) -> ToolResult:
        return ToolResult(["7"], structured=7)

    async def rounds(arguments: Mapping[str, object], context: Context) -> object:
        questions: dict[str, Elicit | ElicitUrl | Sample | ListRoots] = {
            "form": Elicit("Who?", FORM),
            "url": ElicitUrl("Go there", "https://example.com/x", "e-1"),
            "model": Sample(PROMPTED),
            "roots": ListRoots(),
        }
        wanted = str(arguments["ask"])
        if context.round == 0:
            return InputRequired({wanted: questions[wanted]}, state="s")
        return {"got": context.answers.get(wanted), "state": context.state}

    schema: Wire = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"ask": {"type": "string"}},
        "additionalProperties": False,
    }
    server.registry.register(
        Tool(
            "everything",
            "Returns one of each.",
            {"type": "object"},
            everything,
            title="Everything",
            annotations={"title": "All", "readOnlyHint": True, "openWorldHint": False},
            icons=[ICON],
            meta={"k": 1},
        ),
        Tool("listed", "Returns a list.", {"type": "object"}, listed),
        Tool("number", "Returns a number.", {"type": "object"}, number),
        Tool("rounds", "Asks.", schema, rounds),
        Resource(
            "mem://full",
            "full",
            _full,
            title="Full",
            description="d",
            mime_type="text/plain",
            annotations=ANNOTATIONS,
            size=3,
            icons=[ICON],
            meta={"k": 1},
        ),
        ResourceTemplate(
            "mem://t/{x}",
            "t",
            _template,
            title="T",
            description="d",
            mime_type="text/plain",
            annotations=ANNOTATIONS,
            icons=[ICON],
            meta={"k": 1},
        ),
        Prompt(
            "full",
            _prompted(items),
            title="Full",
            description="d",
            arguments=(PromptArgument("a", "an argument", False), PromptArgument("b")),
            icons=[ICON],
            meta={"k": 1},
        ),
    )

    @server.tool
    async def typed_forms(
        color: Literal["a", "b"],
        n: Annotated[int, "how many"] = 1,
        *,
        deep: list[str] | None = None,
    ) -> dict[str, int | None]:
        """Take what a schema can say, return what one can say."""
        return {color: n}


async def _full(context: Context) -> list[object]:
    return [
        Text(text="t"),
        Image(data=b"\xff", mime_type="image/png"),
        Audio(data=b"\xff", mime_type="audio/wav"),
        EmbeddedResource(uri="mem://x", text="x"),
    ]


async def _template(variables: Mapping[str, object], context: Context) -> object:
    return variables


def _prompted(
    items: Sequence[Text | Image | Audio | EmbeddedResource | ResourceLink],
) -> Callable[..., object]:
    async def prompted(arguments: Mapping[str, object], context: Context) -> list[object]:
        return ["plain", *[Message("assistant", item) for item in items]]

    return prompted


# -- a client that hears everything ----------------------------------------------------------------


def calls(era: Dialect) -> Iterator[Wire]:
    """Write one request of every shape, good and bad."""
    number = 0

    def request(method: str, params: Wire | None = None, **meta: object) -> Wire:
        nonlocal number
        number += 1
        return era.request(number, method, params, meta=meta or None, capabilities=ABLE)

    def call(name: str, arguments: Wire | None = None, **meta: object) -> Wire:
        return request("tools/call", {"name": name, "arguments": arguments or {}}, **meta)

    for method in ("tools/list", "resources/list", "resources/templates/list", "prompts/list"):
        yield request(method)
        yield request(method, {"cursor": "nonsense"})
    for name in (
        "everything",
        "listed",
        "number",
        "returns_none",
        "img",
        "journal",
        "boom",
        "tool_error",
        "exits",
        "off",
        "no_such_tool",
        "ask_midway",
    ):
        yield call(name)
    yield call("echo", {"text": "x"})
    yield call("echo", {"text": 7})
    yield call("out", {"mode": "nan"})
    yield call("out", {"mode": "plain"})
    yield call("out_point", {"mode": "right"})
    yield call("out_point", {"mode": "wrong"})
    yield call("out_array", {"mode": "right"})
    yield call("typed_forms", {"color": "a"})
    yield call("progress", {"n": 3, "delay_ms": 1}, progressToken="p")
    yield call("logs", {"n": 2}, **{"io.modelcontextprotocol/logLevel": "debug"})
    yield call("add_tool", {"name": f"added_{number}"})
    for name, arguments in (
        ("ask_two", {}),
        ("ask_age", {}),
        ("confirm_delete", {"target": "a"}),
        ("ask_first", {"target": "a"}),
        ("ask", {"q": "?"}),
        *(("rounds", {"ask": what}) for what in ("form", "url", "model", "roots")),
    ):
        yield call(name, arguments)  # type: ignore[arg-type]  # of one shape each
    for uri in ("a", "bin", "empty", "none", "full", "me", "t/x", "nope", "boom", "admin"):
        yield request("resources/read", {"uri": f"mem://{uri}"})
    yield request("prompts/get", {"name": "full", "arguments": {"a": "x"}})
    yield request("prompts/get", {"name": "none"})
    yield request("prompts/get", {"name": "greet"})
    yield request("prompts/get", {"name": "nope"})
    for ref, argument in (
        ({"type": "ref/prompt", "name": "greet"}, {"name": "who", "value": "n150"}),
        ({"type": "ref/prompt", "name": "greet"}, {"name": "who", "value": "raise"}),
        (
            {"type": "ref/resource", "uri": "file:///docs/{name}"},
            {"name": "name", "value": ""},
        ),
        ({"type": "ref/zzz"}, {"name": "a", "value": ""}),
    ):
        yield request("completion/complete", {"ref": ref, "argument": argument})
    yield request("resources/subscribe", {"uri": "mem://a"})
    yield request("logging/setLevel", {"level": "debug"})
    yield request("logging/setLevel", {"level": "loud"})
    yield call("logs", {"levels": ["debug", "emergency"]})
    yield call("touch_resource", {"uri": "mem://a"})
    yield request("resources/unsubscribe", {"uri": "mem://a"})
    yield request("ping")
    yield request("server/discover")
    yield request("no/such/method")
    yield request("tools/call", {"arguments": {}})
    yield call("sleep", {"ms": 10_000_000, "tag": "t"})
    yield request("server/discover", None, **{"io.modelcontextprotocol/protocolVersion": "2099"})


ABLE: Final[Wire] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}, "context": {}},
    "roots": {},
}
ANSWERS: Final[dict[str, Wire]] = {
    "elicitation/create": accept(answer="a", name="n", confirm=True, approve=True, age=20),
    "sampling/createMessage": {
        "role": "assistant",
        "content": {"type": "text", "text": "Rome"},
        "model": "m",
    },
    "roots/list": {"roots": [{"uri": "file:///a", "name": "a"}]},
}
BAD_LINES: Final = [
    b"{broken\n",
    b"[]\n",
    b"7\n",
    b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n',
    b'{"jsonrpc":"2.0","id":"n","method":7}\n',
    b'{"jsonrpc":"2.0","id":"d","method":"ping","method":"ping"}\n',
]


async def listen_to_everything(peer: MemoryPeer, era: Dialect) -> None:
    """Say all there is to say, answer what is asked, and hear what comes."""
    await era.greet(peer, ABLE)
    if era is MODERN:
        wanted = {
            "toolsListChanged": True,
            "promptsListChanged": True,
            "resourcesListChanged": True,
            "resourceSubscriptions": ["mem://a"],
        }
        await peer.send(MODERN.request("l", "subscriptions/listen", {"notifications": wanted}))
        await peer.send(MODERN.call("no", "ask_age"))  # without the capability
    for message in calls(era):
        after = len(peer.seen)
        await peer.send(message)
        while True:
            got = await peer.until(partial(_concerns, message["id"]), after=after)
            after = peer.seen.index(got, after) + 1
            if "method" not in got:
                break
            answer = ANSWERS[str(got["method"])]
            await peer.send({"jsonrpc": "2.0", "id": got["id"], "result": answer})
        requests = cast(Wire, got.get("result", {})).get("inputRequests")
        if requests is not None:
            result = cast(Wire, got["result"])
            responses = {
                key: ANSWERS[str(cast(Wire, request)["method"])]
                for key, request in cast(Wire, requests).items()
            }
            params = {
                **cast(Wire, message["params"]),
                "inputResponses": responses,
                "requestState": result["requestState"],
            }
            await peer.request({**message, "id": f"again {message['id']}", "params": params})
    await peer.send(era.call("gone", "ask_first", {"target": "a"}, capabilities=ABLE))
    await peer.exchange(b"")
    for line in BAD_LINES:
        await peer.exchange(line)
    for kind in ("prompts", "resources"):
        peer.fixture.server.notify(f"notifications/{kind}/list_changed")
    peer.fixture.server.registry.register(Resource("mem://late", "late", _full))
    await peer.exchange(b"")
    if era is not MODERN:
        cancel = {"method": "notifications/cancelled", "params": {"requestId": "gone"}}
        await peer.send({"jsonrpc": "2.0", **cancel})
    await peer.exchange(b"")


def _concerns(id: object, message: Wire) -> bool:
    return message.get("id") == id or ("method" in message and "id" in message)


class Heard:
    """What one session heard: messages, and the method that each answer is for."""

    def __init__(self, version: str) -> None:
        self.version = version
        era: Dialect = MODERN if version == STATELESS else Handshake(version)
        self.asked: dict[str, str] = {"init": "initialize", "l": "subscriptions/listen"}
        for message in calls(era):
            for id in (message["id"], f"again {message['id']}"):
                self.asked[str(id)] = str(message["method"])
        knobs = Knobs(page_size=20, limits={"callback_timeout": 1000.0})
        with Exchange(knobs) as exchange:
            say_everything(exchange.fixture.server)

            async def hears(peer: MemoryPeer) -> list[Wire]:
                await listen_to_everything(peer, era)
                if era is MODERN:
                    await exchange.fixture.server.stop()
                    await peer.answer("l")
                    await exchange.fixture.server.start()
                return peer.seen

            self.messages = exchange.run(hears)

    def method_of(self, message: Wire) -> str:
        """Name what an answer is the answer to."""
        return self.asked.get(str(message["id"]), "tools/call")


@cache
def heard(version: str) -> Heard:
    """Have one session in this revision; the tests look at the same one."""
    return Heard(version)


@pytest.mark.parametrize("version", REVISIONS)
def test_the_session_is_as_broad_as_it_says(version: str) -> None:
    """Else the other tests would prove little: every method, notification and error is there."""
    session = heard(version)
    methods_heard = {session.method_of(m) for m in session.messages if "result" in m}
    pushed = {str(m["method"]) for m in session.messages if "method" in m}
    codes = {cast(Wire, m["error"])["code"] for m in session.messages if "error" in m}
    expected = set(RESULTS) - {"initialize", "ping", "logging/setLevel"}
    expected -= {"resources/subscribe", "resources/unsubscribe"}
    stamped = {
        "notifications/tools/list_changed",
        "notifications/resources/list_changed",
        "notifications/prompts/list_changed",
        "notifications/resources/updated",
        "notifications/message",
        "notifications/progress",
    }
    if version == STATELESS:
        assert methods_heard == expected
        assert pushed == {*stamped, "notifications/subscriptions/acknowledged"}
        assert codes >= {-32700, -32600, -32601, -32602, -32603, -32021, -32022, -31001}
    else:
        assert methods_heard == set(RESULTS) - {"server/discover", "subscriptions/listen"}
        assert codes >= {-32700, -32600, -32601, -32602, -32603, -32002, -31001}
        assert pushed >= {*stamped, "sampling/createMessage", "roots/list"}
        asked = {"elicitation/create", "notifications/cancelled"}
        assert (pushed >= asked) is (version >= "2025-06-18")
        assert ("elicitation/create" in pushed) is (version >= "2025-06-18")


# -- the official schemas --------------------------------------------------------------------------

formats = jsonschema.FormatChecker(formats=())


@formats.checks("byte", raises=ValueError)  # type: ignore[untyped-decorator]  # ships no types
def _is_base64(value: object) -> bool:
    return not isinstance(value, str) or base64.b64decode(value, validate=True) is not None


@formats.checks("uri")  # type: ignore[untyped-decorator]  # as above
def _is_uri(value: object) -> bool:
    return not isinstance(value, str) or (value.isascii() and ":" in value and " " not in value)


class Schema:
    """The official schema of one revision."""

    def __init__(self, version: str) -> None:
        path = SCHEMAS / f"{version}.json"
        if not path.exists():
            pytest.skip(f"the official schemas are not there ({SCHEMAS.name}/{path.name})")
        self._whole = json.loads(path.read_text("utf-8"))
        self._key = "$defs" if "$defs" in self._whole else "definitions"
        self._made: dict[str, jsonschema.Validator] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._whole[self._key]

    def check(self, name: str, value: object) -> None:
        """Check a value against one definition."""
        validator = self._made.get(name)
        if validator is None:
            kind = jsonschema.validators.validator_for(self._whole)
            schema = {**self._whole, "$ref": f"#/{self._key}/{name}"}
            if self._key == "definitions":
                # In draft 7 nothing stands beside a $ref.
                schema = {self._key: self._whole[self._key], "allOf": [{"$ref": schema["$ref"]}]}
            validator = self._made[name] = kind(schema, format_checker=formats)
        problem = jsonschema.exceptions.best_match(validator.iter_errors(value))
        if problem is not None:
            raise AssertionError(f"{name}: {problem.message[:300]} at {problem.json_path}")


@pytest.mark.parametrize("version", REVISIONS)
def test_every_message_fits_the_official_schema(version: str) -> None:
    """MCP `schema/REVISION/schema.json`: the message, and what it holds for its method."""
    schema, session = Schema(version), heard(version)
    error = "JSONRPCError" if "JSONRPCError" in schema else "JSONRPCErrorResponse"
    success = "JSONRPCResultResponse" if "JSONRPCResultResponse" in schema else "JSONRPCResponse"
    for message in session.messages:
        if "error" in message:
            readable = message if message["id"] is not None else {**message, "id": 0}
            schema.check(error, readable)
            schema.check("JSONRPCMessage", readable)
            code = cast(Wire, message["error"])["code"]
            specific = ERRORS.get(cast(int, code))
            if specific is not None:
                schema.check(specific, message)
        elif "result" in message:
            schema.check(success, message)
            schema.check("JSONRPCMessage", message)
            result = cast(Wire, message["result"])
            name = RESULTS[session.method_of(message)]
            if result.get("resultType") == "input_required":
                name = "InputRequiredResult"
            schema.check(name, result)
            schema.check("ServerResult", result)
        else:
            schema.check("JSONRPCMessage", message)
            schema.check(PUSHED[str(message["method"])], message)
            schema.check("ServerRequest" if "id" in message else "ServerNotification", message)


@pytest.mark.parametrize("version", REVISIONS)
def test_a_planted_mistake_is_found(version: str) -> None:
    """The yardstick measures: a wrong member, an unknown kind of content, a bad blob."""
    schema = Schema(version)
    for name, value in (
        ("CallToolResult", {"content": [{"type": "hologram"}], "resultType": "complete"}),
        ("CallToolResult", {"content": [{"type": "text"}], "resultType": "complete"}),
        (
            "ReadResourceResult",
            {"contents": [{"uri": "mem://a", "blob": "-_"}], "resultType": "complete"},
        ),
        ("ListToolsResult", {"tools": [{"name": "x"}]}),
    ):
        with pytest.raises(AssertionError):
            schema.check(name, value)


# -- the models of the official SDK ----------------------------------------------------------------


@pytest.mark.parametrize("version", REVISIONS)
def test_every_message_fits_the_models_of_the_sdk(version: str) -> None:
    """`mcp-types`: what its clients do with each message of a server."""
    session = heard(version)
    for message in session.messages:
        if "error" in message:
            continue
        if "result" in message:
            result = cast(Wire, message["result"])
            methods.parse_server_result(session.method_of(message), version, result)
        elif "id" in message:
            params = cast(Wire | None, message.get("params"))
            methods.parse_server_request(str(message["method"]), version, params)
        else:
            params = cast(Wire | None, message.get("params"))
            methods.parse_server_notification(str(message["method"]), version, params)


# -- what an older client is given instead ---------------------------------------------------------


@pytest.mark.parametrize("version", HANDSHAKES)
def test_an_older_client_gets_what_it_can_read(version: str) -> None:
    """Audio came with 2025-03-26, links with 2025-06-18, lists as structure with 2026-07-28."""
    session = heard(version)
    results = [cast(Wire, m["result"]) for m in session.messages if "result" in m]
    kinds = [
        [item["type"] for item in cast(list[Wire], result["content"])]
        for result in results
        if len(cast(list[Wire], result.get("content", ()))) == 7
    ]
    audio = "resource" if version == "2024-11-05" else "audio"
    link = "resource_link" if version >= "2025-06-18" else "text"
    assert kinds == [["text", "text", "image", audio, "resource", "resource", link]]
    texts = [
        cast(list[Wire], result["content"])[0]["text"]
        for result in results
        if result.get("content") and "structuredContent" not in result and "isError" not in result
        if cast(list[Wire], result["content"])[0]["type"] == "text"
    ]
    assert '[1,{"a":null}]' in texts
    assert "7" in texts
    structured = [
        result["structuredContent"] for result in results if "structuredContent" in result
    ]
    assert structured
    assert all(isinstance(value, dict) for value in structured)


def test_a_stateless_request_on_the_pipe_of_an_older_client_is_not_adapted() -> None:
    """The era of a request is its own (ADR-0007)."""
    with Exchange() as exchange:
        say_everything(exchange.fixture.server)

        async def calls_both(peer: MemoryPeer) -> tuple[Wire, Wire]:
            await Handshake("2024-11-05").greet(peer)
            return (
                await peer.request(LEGACY.call(1, "listed")),
                await peer.request(MODERN.call(2, "listed")),
            )

        old, new = exchange.run(calls_both)
        assert "structuredContent" not in cast(Wire, old["result"])
        assert cast(Wire, new["result"])["structuredContent"] == [1, {"a": None}]
    assert isinstance(exchange.fixture, Fixture)
