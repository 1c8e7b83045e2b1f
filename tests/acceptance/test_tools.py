"""Tools: listing them, calling them, and everything that can come of a call."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypedDict

import pytest

from raxol_mcp import (
    Audio,
    ConfigurationError,
    Context,
    EmbeddedResource,
    Image,
    Limits,
    ResourceLink,
    Server,
    Text,
    Tool,
    ToolError,
    ToolResult,
)
from raxol_mcp.core.breaker import Breakers
from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.wire.meta import EraName
from tests.acceptance.world import (
    HANDSHAKE,
    OPEN,
    STATELESS,
    Client,
    Counted,
    at,
    code,
    failed,
    in_both_eras,
    names,
    outside,
    passes,
    settled,
    text,
    tool,
    wire,
)
from tests.promises import promise

SECRET = "postgres://admin:hunter2@db"
OPEN_CIRCUIT = "Tool temporarily unavailable (circuit open after repeated failures)"
UNKNOWN = {HANDSHAKE: -32601, STATELESS: -32602}


def raising(error: BaseException) -> Callable[..., object]:
    """Make a callback that raises."""

    async def callback(*_: object) -> object:
        raise error

    return callback


# Listing


@promise("methods.list_tools")
@in_both_eras
def test_registered_tools_are_listed_without_their_callbacks(era: EraName) -> None:
    """specification: Supported Methods. What is listed is the definition alone."""

    async def scenario() -> None:
        server = Server()
        client = Client(server, era=era)
        assert await client.result("tools/list") == {"tools": []}
        server.registry.register(
            Tool(
                name="delete",
                title="Delete",
                description="Deletes.",
                input_schema={"type": "object", "properties": {"path": {"type": "string"}}},
                callback=Counted(),
                annotations={"destructiveHint": False, "title": "Delete"},
                output_schema={"type": "object"},
                meta={"com.example/a": 1},
            )
        )
        assert await client.result("tools/list") == {
            "tools": [
                {
                    "name": "delete",
                    "title": "Delete",
                    "description": "Deletes.",
                    "inputSchema": {
                        "type": "object",
                        "properties": {"path": {"type": "string"}},
                    },
                    "outputSchema": {"type": "object"},
                    "annotations": {"destructiveHint": False, "title": "Delete"},
                    "_meta": {"com.example/a": 1},
                }
            ]
        }

    run_virtual(scenario)


@in_both_eras
def test_tools_are_listed_in_the_order_they_were_registered(era: EraName) -> None:
    """MCP 2026-07-28 server/tools: a deterministic order; older servers had none."""

    async def scenario() -> None:
        server = Server()
        order = [f"tool-{number * 7 % 20}" for number in range(20)]
        for name in order:
            server.registry.register(tool(name))
        server.registry.register(tool(order[3]))
        listed = await Client(server, era=era).result("tools/list")
        assert names(listed["tools"]) == order

    run_virtual(scenario)


# Calling


@promise("methods.call_tool")
@in_both_eras
def test_a_call_answers_what_the_tool_returned(era: EraName) -> None:
    """server-behaviour §4.1: content as it is, a string as one text."""
    server = Server()

    @server.tool
    async def add(a: int, b: int) -> list[Text]:
        """Add."""
        return [Text(str(a + b))]

    @server.tool
    async def greet(name: str = "you") -> str:
        """Greet."""
        return f"Hello {name}"

    async def scenario() -> None:
        client = Client(server, era=era)
        reply = await client.call("add", {"a": 3, "b": 4})
        assert client.payload(reply) == {"content": [{"type": "text", "text": "7"}]}
        assert text(await client.call("greet", {"name": "Ada"})) == "Hello Ada"
        assert text(await client.ask("tools/call", {"name": "greet"})) == "Hello you"
        assert text(await client.ask("tools/call", {"name": "greet", "arguments": None}))

    run_virtual(scenario)


@in_both_eras
@pytest.mark.parametrize(
    ("value", "content"),
    [
        (None, []),
        ("", [{"type": "text", "text": ""}]),
        (5, [{"type": "text", "text": "5"}]),
        ({"a": [1, None]}, [{"type": "text", "text": '{"a":[1,null]}'}]),
        (
            Image(b"\x00\xff", "image/png"),
            [{"type": "image", "data": "AP8=", "mimeType": "image/png"}],
        ),
        (Audio(b"", "audio/wav"), [{"type": "audio", "data": "", "mimeType": "audio/wav"}]),
        (
            [Text("a"), "b", ResourceLink("mem://a", "a")],
            [
                {"type": "text", "text": "a"},
                {"type": "text", "text": "b"},
                {"type": "resource_link", "uri": "mem://a", "name": "a"},
            ],
        ),
        (
            EmbeddedResource("mem://a", text="x"),
            [
                {
                    "type": "resource",
                    "resource": {"uri": "mem://a", "mimeType": "text/plain", "text": "x"},
                }
            ],
        ),
    ],
    ids=["nothing", "empty", "number", "object", "image", "audio", "list", "resource"],
)
def test_every_kind_of_content_is_written_as_mcp_has_it(
    era: EraName, value: object, content: object
) -> None:
    """MCP server/tools §Tool Result. A value that is no content is its JSON."""

    async def scenario() -> None:
        server = Server()
        server.registry.register(tool("give", Counted(value)))
        reply = await Client(server, era=era).call("give")
        assert at(reply, "result", "content") == content
        assert isinstance(result := at(reply, "result"), dict)
        assert "isError" not in result

    run_virtual(scenario)


@promise("unknown.code")
@in_both_eras
def test_an_unknown_tool_is_a_json_rpc_error_that_names_it(era: EraName) -> None:
    """specification: Unknown tools; ours: -32601, and -32602 in the stateless era."""

    async def scenario() -> None:
        error = await Client(Server(), era=era).error("tools/call", {"name": "nope"})
        assert error == {"code": UNKNOWN[era], "message": "Tool not found: nope"}

    run_virtual(scenario)


@promise("unknown.text", "unknown.none", "unknown.opaque")
@in_both_eras
def test_unknown_tool_reply_may_say_what_became_of_a_tool(era: EraName) -> None:
    """specification: Unknown tools."""
    asked: list[str] = []

    def reply(name: str) -> str | None:
        asked.append(name)
        return "The session has ended." if name.startswith("session.") else None

    async def scenario() -> None:
        client = Client(Server(unknown_tool_reply=reply), era=era)
        gone = await outside(client.call("session.click"))
        assert failed(gone) == "The session has ended."
        error = await outside(client.error("tools/call", {"name": "widget.click"}))
        assert error == {"code": UNKNOWN[era], "message": "Tool not found: widget.click"}
        odd = "raxol://odd tool/π"
        assert (await outside(client.error("tools/call", {"name": odd})))["code"] == UNKNOWN[era]
        assert asked == ["session.click", "widget.click", odd]

    run_virtual(scenario)


@promise("unknown.none")
@pytest.mark.parametrize(
    "answer", [5, b"gone", ["gone"], ZeroDivisionError(SECRET), SystemExit(SECRET)]
)
def test_unknown_tool_reply_that_fails_leaves_the_error(
    answer: object, caplog: pytest.LogCaptureFixture
) -> None:
    """ours: the specification leaves open what a raising or wordless reply does."""

    def reply(name: str) -> str | None:
        if isinstance(answer, BaseException):
            raise answer
        return answer  # type: ignore[return-value]  # off contract on purpose

    async def scenario() -> None:
        client = Client(Server(unknown_tool_reply=reply))
        error = await outside(client.error("tools/call", {"name": "nope"}))
        assert error == {"code": -32601, "message": "Tool not found: nope"}

    run_virtual(scenario)
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


def test_unknown_tool_reply_may_be_async() -> None:
    """ours: like every other callback."""

    async def reply(name: str) -> str | None:
        return f"{name} is gone"

    async def scenario() -> None:
        client = Client(Server(unknown_tool_reply=reply))
        assert failed(await outside(client.call("x"))) == "x is gone"

    run_virtual(scenario)


# Arguments


@in_both_eras
def test_bad_arguments_are_named_every_one_and_the_tool_does_not_run(era: EraName) -> None:
    """ours: an isError result with one sentence; older servers checked nothing."""
    server = Server()
    runs: list[object] = []

    @server.tool
    async def move(path: str, to: str, count: int = 1) -> None:
        """Move."""
        runs.append(path)

    async def scenario() -> None:
        client = Client(server, era=era)
        told = failed(await client.call("move", {"path": 5, "count": True, "speed": 1}))
        for name in ("path", "to", "count", "speed"):
            assert name in told
        assert "\n" not in told
        assert runs == []
        for arguments in ({"path": "a"}, {"path": "a", "to": "b", "count": "1"}):
            failed(await client.call("move", arguments))
        assert runs == []
        await client.call("move", {"path": "a", "to": "b"})
        assert runs == ["a"]

    run_virtual(scenario)


def test_a_tool_with_a_schema_of_its_own_is_checked_against_it() -> None:
    """MCP 2025-11-25 server/tools: servers must validate all tool inputs."""
    callback = Counted()
    server = Server()
    server.registry.register(
        Tool(
            name="pick",
            description="Picks.",
            input_schema={
                "type": "object",
                "properties": {"colour": {"enum": ["red", "green"]}},
                "required": ["colour"],
            },
            callback=callback,
        )
    )

    async def scenario() -> None:
        client = Client(server)
        assert "colour" in failed(await client.call("pick", {"colour": "blue"}))
        assert "colour" in failed(await client.call("pick"))
        assert callback.runs == 0
        assert text(await client.call("pick", {"colour": "red"})) == "done"

    run_virtual(scenario)


def test_a_tool_without_a_signature_is_given_its_arguments_and_the_context() -> None:
    """ours: the form of a callback for embedders."""
    given: list[object] = []

    async def callback(arguments: Mapping[str, object], context: Context) -> str:
        given.append(dict(arguments))
        return context.transport

    async def scenario() -> None:
        server = Server()
        server.registry.register(tool("raw", callback))
        assert text(await Client(server).call("raw", {"a": 1})) == "unknown"
        assert given == [{"a": 1}]

    run_virtual(scenario)


# Failing


@in_both_eras
def test_a_tool_speaks_to_its_caller_with_tool_error(era: EraName) -> None:
    """server-behaviour §4.1: an error of the tool is a result with isError."""

    async def scenario() -> None:
        server = Server()
        server.registry.register(tool("pick", raising(ToolError("no such colour"))))
        client = Client(server, era=era)
        assert client.payload(await client.call("pick")) == {
            "content": [{"type": "text", "text": "no such colour"}],
            "isError": True,
        }

    run_virtual(scenario)


@promise("isolation.workers")
@in_both_eras
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError(SECRET), "Error: ValueError"),
        (TimeoutError({"payload": SECRET}), "Error: TimeoutError"),
        (ConnectionResetError(SECRET), "Error: ConnectionResetError"),
        (SystemExit(SECRET), "Error: SystemExit"),
        (KeyboardInterrupt(SECRET), "Error: KeyboardInterrupt"),
        (StopIteration(SECRET), None),
        (asyncio.CancelledError(SECRET), None),
        (BaseExceptionGroup(SECRET, [SystemExit(SECRET)]), "Error: BaseExceptionGroup"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_an_exception_reaches_the_caller_as_its_type_alone(
    era: EraName, error: BaseException, told: str | None
) -> None:
    """server-behaviour §4.1, §12.1: the message may hold secrets; the server goes on."""

    async def scenario() -> None:
        server = Server()
        server.registry.register(tool("fail", raising(error)), tool("other"))
        client = Client(server, era=era)
        reply = await client.call("fail")
        assert told is None or failed(reply) == told
        assert at(reply, "result", "isError") is True
        assert SECRET not in json.dumps(reply)
        assert text(await client.call("other")) == "done"

    run_virtual(scenario)


class Mute(ToolError):
    """An error that cannot say what it is."""

    def __str__(self) -> str:
        raise SystemExit(SECRET)


@in_both_eras
def test_an_error_whose_message_cannot_be_read_fails_its_call_alone(era: EraName) -> None:
    """ours: the type is told instead."""

    async def scenario() -> None:
        server = Server()
        server.registry.register(tool("fail", raising(Mute())), tool("other"))
        client = Client(server, era=era)
        assert failed(await client.call("fail")) == "Error: Mute"
        assert text(await client.call("other")) == "done"
        assert server.stats()["in_flight"] == 0

    run_virtual(scenario)


@pytest.mark.parametrize(
    "error", [ValueError(SECRET), SystemExit(3), KeyboardInterrupt(), StopIteration(SECRET)]
)
def test_so_does_an_exception_of_a_function_in_a_thread(error: BaseException) -> None:
    """server-behaviour §4.1; a plain function runs in a thread."""
    server = Server()

    @server.tool
    def fail() -> None:
        """Fail."""
        raise error

    async def scenario() -> None:
        client = Client(server)
        reply = await outside(client.call("fail"))
        assert failed(reply).startswith("Error: ")
        assert SECRET not in json.dumps(reply)
        assert type(error).__name__ in failed(reply) or isinstance(error, StopIteration)
        assert await client.ask("ping") is not None
        assert server.stats()["in_flight"] == 0

    run_virtual(scenario)


@in_both_eras
@pytest.mark.parametrize(
    "value",
    [float("nan"), {"a": float("inf")}, "\ud800", object(), {1: object()}, 1 << 70],
    ids=["nan", "infinity", "surrogate", "object", "inside", "large"],
)
def test_a_result_that_json_cannot_carry_fails_its_call_alone(era: EraName, value: object) -> None:
    """ours: ADR-0012. A writer that fails would take every other answer with it."""

    async def scenario() -> None:
        server = Server()
        server.registry.register(tool("give", Counted(value)), tool("other"))
        client = Client(server, era=era)
        assert failed(await client.call("give")).startswith("Error: ")
        assert text(await client.call("other")) == "done"

    run_virtual(scenario)


@in_both_eras
def test_a_result_past_the_limit_says_so(era: EraName) -> None:
    """ours: a tool result past 16 MiB becomes an isError result; the bound is an option."""

    async def scenario() -> None:
        server = Server(limits=Limits(max_result_bytes=1000))
        server.registry.register(tool("give", Counted("x" * 2000)), tool("small"))
        client = Client(server, era=era)
        assert "1000" in failed(await client.call("give"))
        assert text(await client.call("small")) == "done"

    run_virtual(scenario)
    assert Limits().max_result_bytes == 16 * 1024 * 1024


# Structured results


@dataclass
class Weather:
    """What a tool returns with a schema."""

    degrees: float
    sky: str


class Partial(TypedDict, total=False):
    """An object whose members are optional."""

    a: int


@in_both_eras
def test_a_typed_result_has_a_schema_and_structured_content(era: EraName) -> None:
    """MCP 2025-06-18 server/tools §Structured Content: and its JSON as text."""
    server = Server()

    @server.tool
    async def weather() -> Weather:
        """Tell the weather."""
        return Weather(1.5, "clear")

    @server.tool
    async def numbers() -> list[int]:
        """Count."""
        return [1, 2]

    @server.tool
    async def partial() -> Partial:
        """Give nothing."""
        return {}

    async def scenario() -> None:
        client = Client(server, era=era)
        listed = await client.result("tools/list")
        assert at(listed, "tools", 0, "outputSchema", "type") == "object"
        assert at(listed, "tools", 0, "outputSchema", "required") == ["degrees", "sky"]
        payload = client.payload(await client.call("weather"))
        assert payload["structuredContent"] == {"degrees": 1.5, "sky": "clear"}
        assert json.loads(str(at(payload, "content", 0, "text"))) == payload["structuredContent"]
        payload = client.payload(await client.call("numbers"))
        assert payload["structuredContent"] == {"result": [1, 2]}
        payload = client.payload(await client.call("partial"))
        assert payload["structuredContent"] == {}

    run_virtual(scenario)


@in_both_eras
def test_a_result_that_does_not_fit_its_schema_is_a_failure(era: EraName) -> None:
    """MCP 2025-06-18 server/tools §Output Schema: structured results must conform."""
    server = Server()

    @server.tool
    async def weather() -> Weather:
        """Tell the weather."""
        return Weather("warm", SECRET)  # type: ignore[arg-type]  # a mistake on purpose

    @server.tool
    async def number() -> int:
        """Count."""
        return "one"  # type: ignore[return-value]  # a mistake on purpose

    for name, value in (("raw", {"n": SECRET}), ("none", None)):
        server.registry.register(
            Tool(
                name=name,
                description="Gives.",
                input_schema=OPEN,
                output_schema={"type": "object", "properties": {"n": {"type": "integer"}}},
                callback=Counted(ToolResult(structured=value) if value else ToolResult(["x"])),
            )
        )

    async def scenario() -> None:
        client = Client(server, era=era)
        for name in ("weather", "number", "raw", "none"):
            reply = await client.call(name)
            assert failed(reply)
            assert SECRET not in json.dumps(reply)

    run_virtual(scenario)


@in_both_eras
def test_a_tool_may_write_its_result_itself(era: EraName) -> None:
    """MCP server/tools §Tool Result; `ToolResult` is the whole of it."""

    async def scenario() -> None:
        server = Server()
        result = ToolResult(["a"], structured={"n": 1}, is_error=True, meta={"com.example/a": 1})
        server.registry.register(tool("give", Counted(result)))
        client = Client(server, era=era)
        assert client.payload(await client.call("give")) == {
            "content": [{"type": "text", "text": "a"}],
            "structuredContent": {"n": 1},
            "isError": True,
            "_meta": {"com.example/a": 1},
        }

    run_virtual(scenario)


# Circuit breakers


@in_both_eras
def test_a_tool_that_keeps_failing_is_left_alone_for_a_while(era: EraName) -> None:
    """server-behaviour §12.3: 5 failures in a row, 30 seconds, then one probe."""
    fails = True
    runs = 0

    async def flaky(*_: object) -> str:
        nonlocal runs
        runs += 1
        if fails:
            raise ValueError
        return "works"

    async def scenario() -> None:
        nonlocal fails
        server = Server()
        server.registry.register(tool("flaky", flaky), tool("other"))
        client = Client(server, era=era)
        for _ in range(5):
            assert failed(await client.call("flaky")) == "Error: ValueError"
        assert failed(await client.call("flaky")) == OPEN_CIRCUIT
        assert runs == 5, "it was not run"
        assert text(await client.call("other")) == "done"
        await passes(29.9)
        assert failed(await client.call("flaky")) == OPEN_CIRCUIT
        await passes(0.2)
        assert failed(await client.call("flaky")) == "Error: ValueError"
        assert failed(await client.call("flaky")) == OPEN_CIRCUIT, "the probe failed"
        await passes(30.1)
        fails = False
        assert text(await client.call("flaky")) == "works"
        fails = True
        for _ in range(5):
            assert failed(await client.call("flaky")) == "Error: ValueError"
        assert runs == 12, "one success had closed it"

    run_virtual(scenario)


def test_a_half_open_circuit_lets_one_probe_through() -> None:
    """ours: older servers let every caller through until the first result."""
    release = asyncio.Event()
    fails = True
    runs = 0

    async def flaky(*_: object) -> str:
        nonlocal runs
        runs += 1
        if fails:
            raise ValueError
        await release.wait()
        return "works"

    async def scenario() -> None:
        nonlocal fails
        server = Server(breakers=Breakers(threshold=1, recovery=10.0))
        server.registry.register(tool("flaky", flaky))
        client = Client(server)
        await client.call("flaky")
        await passes(10.1)
        fails = False
        probe = client.start("flaky")
        await settled()
        assert failed(await client.call("flaky")) == OPEN_CIRCUIT
        assert runs == 2
        release.set()
        assert text(wire(await probe)) == "works"
        assert text(await client.call("flaky")) == "works"

    run_virtual(scenario)


def test_what_the_classifier_calls_an_answer_is_not_counted() -> None:
    """server-behaviour §12.1: only an explicit False means an answer and not a fault."""
    server = Server()

    @server.tool(fault=lambda error: not isinstance(error, KeyError))
    async def look(exits: bool = False) -> None:
        """Look something up."""
        raise SystemExit if exits else KeyError

    async def scenario() -> None:
        client = Client(server)
        for _ in range(10):
            assert failed(await client.call("look")) == "Error: KeyError"
        for _ in range(5):
            assert failed(await client.call("look", {"exits": True})) == "Error: SystemExit"
        assert failed(await client.call("look")) == OPEN_CIRCUIT

    run_virtual(scenario)


@pytest.mark.parametrize("wrong", [ZeroDivisionError, SystemExit])
def test_a_classifier_that_fails_counts_a_failure(wrong: type[BaseException]) -> None:
    """ours: its call fails as the tool did, a probe included, and alone."""

    def classify(error: BaseException) -> bool:
        raise wrong

    async def scenario() -> None:
        server = Server(breakers=Breakers(threshold=1, recovery=10.0))
        look = Tool("look", "Look.", OPEN, raising(KeyError()), fault=classify)
        server.registry.register(look, tool("other"))
        client = Client(server)
        for _ in range(2):
            assert failed(await client.call("look")) == "Error: KeyError"
            assert failed(await client.call("look")) == OPEN_CIRCUIT
            await passes(10.1)
        assert text(await client.call("other")) == "done"

    run_virtual(scenario)


def test_a_tool_error_is_an_answer_and_a_bad_argument_no_failure() -> None:
    """ours: expected errors must not open the circuit (server-behaviour §12.3, note)."""
    server = Server()

    @server.tool
    async def look(path: str) -> None:
        """Look."""
        raise ToolError("not found")

    async def scenario() -> None:
        client = Client(server)
        for _ in range(10):
            assert failed(await client.call("look", {"path": "a"})) == "not found"
            failed(await client.call("look"))
        assert len(server.breakers) == 0

    run_virtual(scenario)


def test_a_stopped_callback_says_nothing_about_its_health() -> None:
    """server-behaviour §10: killing a worker records nothing in the circuit breaker."""

    async def forever(*_: object) -> None:
        await asyncio.Event().wait()

    async def scenario() -> None:
        server = Server(limits=Limits(callback_timeout=1.0), breakers=Breakers(threshold=1))
        server.registry.register(tool("hang", forever))
        client = Client(server)
        handle = client.start("hang")
        await settled()
        handle.cancel()
        assert failed(await client.call("hang")) == '{"error":"callback_timeout"}'
        assert len(server.breakers) == 0

    run_virtual(scenario)


# Registering


def test_definitions_are_registered_all_or_none() -> None:
    """server-behaviour §12.1: one bad definition, and nothing of the list is registered."""
    server = Server()
    with pytest.raises(ConfigurationError) as caught:
        server.registry.register(
            tool("fine"),
            Tool(name="", description="", input_schema={"type": "array"}, callback=Counted()),
        )
    assert server.registry.tools() == []
    for problem in ("name", "description", "schema"):
        assert problem in str(caught.value)


@in_both_eras
def test_a_tool_that_is_replaced_is_served_anew(era: EraName) -> None:
    """server-behaviour §12.1: registering again overwrites."""

    async def scenario() -> None:
        server = Server()
        server.registry.register(tool("act", Counted("old")))
        client = Client(server, era=era)
        assert text(await client.call("act")) == "old"
        server.registry.register(tool("act", Counted("new")))
        assert text(await client.call("act")) == "new"
        server.registry.unregister(tool("act").kind, "act", "never there")
        assert code(await client.call("act")) == UNKNOWN[era]

    run_virtual(scenario)
