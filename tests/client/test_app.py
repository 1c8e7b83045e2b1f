"""`Client` as a user has it: over a server in this process, and over peers that follow a script."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from raxol_mcp import (
    Accept,
    Busy,
    CallResult,
    Change,
    Client,
    ClientSpec,
    ConfigurationError,
    ConnectFailed,
    ConnectionLost,
    Context,
    ElicitRequest,
    InvalidSpec,
    LogMessage,
    MemoryDialer,
    NoHttpClient,
    NotReady,
    Progress,
    Reason,
    RemoteProtocolError,
    Server,
    TimedOut,
    Unpaid,
    parse_tool_name,
    tool_name,
)
from raxol_mcp.client.opening import Tables, dialer_of
from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.transports.http_client import dialer as http_dialer
from tests.client.peers import memory_link
from tests.client.peers.clients import memory_client
from tests.client.peers.script import (
    error,
    leave,
    notice,
    on,
    question,
    reply,
    script,
    silent,
    text,
    until,
    wait,
)
from tests.promises import promise

T = TypeVar("T")

ERAS = ("legacy", "modern")
KINDS = ("memory", "http")
LEGACY, MODERN = script("legacy"), script("modern")
SECRET = "Bearer s3cr3t-v4lue"
ELICITATION = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}


def methods(dialer: memory_link.MemoryDialer) -> list[str]:
    """Give the methods of what a peer was sent, in order."""
    return [each["method"] for each in dialer.received if "method" in each]


async def ended(work: Awaitable[object]) -> BaseException | None:
    """Wait for something; return what it raises."""
    try:
        await work
    except BaseException as raised:
        return raised
    return None


async def turns(count: int = 20) -> None:
    """Let everything that is ready happen."""
    for _ in range(count):
        await asyncio.sleep(0)


# -- a server in this process ---------------------------------------------------------------------


def own_server() -> Server:
    """Make a server that adds, and one of whose tools asks its user."""
    server = Server("own", authorizer=None)

    @server.tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool
    async def count(to: int, ctx: Context) -> str:
        """Count, and say how far it is."""
        for number in range(to):
            ctx.progress(number + 1, to)
        return "done"

    return server


def with_own(use: Callable[[Client], Awaitable[T]], **spec: object) -> T:
    """Use a client of a server in this process; afterwards nothing is left."""

    async def main() -> T:
        before = asyncio.all_tasks()
        async with own_server() as server:
            options = {"name": "own", "command": "-", **spec}
            async with Client(options, dialer=MemoryDialer(server), tables=Tables()) as client:
                found = await use(client)
        await turns()
        assert asyncio.all_tasks() == before
        return found

    return run_virtual(main)


@promise("client.lists", "client.calls")
@pytest.mark.parametrize("era", ["handshake", "stateless"])
def test_tools_are_listed_and_called(era: str) -> None:
    async def use(client: Client) -> tuple[list[str], CallResult]:
        tools = await client.list_tools()
        return [tool.name for tool in tools], await client.call_tool("add", {"a": 2, "b": 3})

    names, result = with_own(use, era=era)
    assert names == ["add", "count"]
    assert (result.structured_content, result.is_error) == ({"result": 5}, False)


def test_a_server_of_both_eras_is_found_to_be_stateless() -> None:
    async def use(client: Client) -> tuple[str | None, str | None]:
        status = client.status()
        return status.era, status.version

    assert with_own(use) == ("stateless", "2026-07-28")


@pytest.mark.parametrize("era", ["handshake", "stateless"])
def test_progress_comes_before_the_result(era: str) -> None:
    """BC-177."""

    async def use(client: Client) -> list[object]:
        told: list[object] = []

        def progress(told_now: Progress) -> None:
            told.append(told_now.progress)

        result = await client.call_tool("count", {"to": 3}, progress=progress)
        return [*told, result.text]

    assert with_own(use, era=era) == [1.0, 2.0, 3.0, "done"]


def test_a_call_that_does_not_fit_is_answered_by_the_server() -> None:
    async def use(client: Client) -> tuple[bool, object]:
        result = await client.call_tool("add", {"a": "two"})
        return result.is_error, await ended(client.call_tool("no such tool"))

    is_error, raised = with_own(use, era="handshake")
    assert is_error
    assert isinstance(raised, RemoteProtocolError)
    assert raised.code == -32601


# -- the spec -------------------------------------------------------------------------------------


@promise("spec.one_of_two", "spec.nothing_started")
@pytest.mark.parametrize("both", [{}, {"command": "x", "url": "https://e.test/mcp"}])
def test_a_spec_names_a_command_or_a_url(both: dict[str, object]) -> None:
    """client-behaviour checks 1, 2: no loop runs, so nothing can have been started."""
    with pytest.raises(InvalidSpec):
        Client({"name": "x", **both})


@promise("spec.named")
def test_a_spec_has_a_name() -> None:
    """client-behaviour check 5."""
    with pytest.raises(InvalidSpec, match="name"):
        Client({"command": "x"})


@promise("spec.redacted")
def test_a_refused_spec_shows_no_header_value() -> None:
    """client-behaviour check 3."""
    spec = {"name": "x", "command": "y", "url": "https://e.test/mcp"}
    with pytest.raises(InvalidSpec) as caught:
        Client({**spec, "headers": {"authorization": SECRET}})
    assert SECRET not in str(caught.value)
    assert SECRET not in repr(caught.value)


@promise("spec.no_http")
def test_a_url_needs_the_http_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """client-behaviour check 6."""
    monkeypatch.setattr(http_dialer, "find_spec", lambda _: None)
    with pytest.raises(NoHttpClient):
        Client({"name": "x", "url": "https://e.test/mcp"})
    Client({"name": "x", "command": "y"})


@promise("spec.literal")
def test_header_values_are_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", SECRET)
    headers = {"authorization": "${env:TOKEN}", "x-key": "op://vault/item"}
    spec = ClientSpec.of({"name": "x", "url": "https://e.test/mcp", "headers": headers})
    assert dict(spec.headers) == headers


@promise("spec.any_mapping")
def test_a_spec_may_be_a_mapping_or_made_before() -> None:
    options = {"name": "x", "command": "y"}
    assert Client(options).spec == Client(ClientSpec("x", command="y")).spec
    assert Client(options | {}).spec.name == "x"


@promise("client.local", "client.hosted")
def test_the_spec_says_which_transport() -> None:
    tables = Tables()
    local = dialer_of(ClientSpec("x", command="y"), tables)
    hosted = dialer_of(ClientSpec("x", url="https://e.test/mcp"), tables)
    assert (local.kind, hosted.kind) == ("stdio", "http")


@promise("names.build", "names.parse")
@pytest.mark.parametrize(
    ("server", "tool", "name", "parsed"),
    [
        ("my-cool-server", "read_file", "mcp__my_cool_server__read_file", "my_cool_server"),
        ("a", "b__c", "mcp__a__b__c", "a"),
        ("server", "", "mcp__server__", "server"),
    ],
)
def test_tools_have_names_of_their_server(server: str, tool: str, name: str, parsed: str) -> None:
    """client-behaviour check 49."""
    assert tool_name(server, tool) == name
    assert parse_tool_name(name) == (parsed, tool)


# -- life -----------------------------------------------------------------------------------------


@promise("recovery.nothing_stops")
def test_start_raises_nothing_though_nobody_is_there() -> None:
    """client-behaviour check 7; client-2.8.0 §Recovery."""

    async def main() -> None:
        dialer = memory_link.MemoryDialer(LEGACY, opens=lambda _: Reason("spawn_failed", "enoent"))
        async with memory_client(dialer, ready=False) as (client, _):
            await turns()
            raised = await ended(client.list_tools())
            assert isinstance(raised, ConnectFailed)
            assert raised.reason.path == ("spawn_failed", "enoent")
            await asyncio.sleep(100.0)
            assert client.status().status == "closed"
            assert len(dialer.links) == 7  # after 1, 3, 7, 15, 31 and 63 seconds

    run_virtual(main)


def test_entering_raises_at_the_first_failure_and_leaves_nothing() -> None:
    async def main() -> None:
        dialer = memory_link.MemoryDialer(LEGACY, opens=lambda _: Reason("transport", "refused"))
        client = Client({"name": "x", "command": "y"}, dialer=dialer, tables=Tables())
        with pytest.raises(ConnectFailed):
            async with client:
                pass
        assert client.status().status == "stopped"
        assert len(asyncio.all_tasks()) == 1

    run_virtual(main)


def test_whoever_is_cancelled_while_entering_leaves_nothing() -> None:
    async def main() -> None:
        client = Client(
            {"name": "x", "command": "y"},
            dialer=memory_link.MemoryDialer(script("legacy", on("*", silent()))),
            tables=Tables(),
        )
        entering = asyncio.create_task(client.__aenter__())
        await asyncio.sleep(1.0)
        entering.cancel()
        assert isinstance(await ended(entering), asyncio.CancelledError)
        assert len(asyncio.all_tasks()) == 1

    run_virtual(main)


def test_a_client_starts_once() -> None:
    async def main() -> None:
        async with memory_client(LEGACY) as (client, _):
            with pytest.raises(ConfigurationError, match="starts once"):
                await client.start()
            await client.stop()
            with pytest.raises(ConfigurationError, match="stopped"):
                await client.start()

    run_virtual(main)


def test_a_client_may_be_stopped_from_another_task_and_more_than_once() -> None:
    async def main() -> None:
        async with memory_client(LEGACY) as (client, _):
            call = asyncio.create_task(client.call_tool("slow"))
            await turns()
            await asyncio.gather(client.stop(), asyncio.create_task(client.stop()))
            raised = await ended(call)
            assert isinstance(raised, NotReady)
            assert raised.status == "stopped"
            assert isinstance(await ended(client.call_tool("echo")), NotReady)
            assert isinstance(await ended(client.await_ready()), NotReady)

    run_virtual(main)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("kind", KINDS)
def test_stop_ends_everything_that_waits(era: str, kind: str) -> None:
    asks = script(era, on("tools/call ask", question("elicitation/create", ELICITATION), silent()))

    async def main() -> None:
        async def forever(_: ElicitRequest) -> Accept:
            await asyncio.Event().wait()
            return Accept()

        spec = {"pool_size": 2}
        async with memory_client(asks, kind=kind, spec=spec, elicitation=forever) as (client, _):
            work: list[asyncio.Task[object]] = [
                asyncio.create_task(client.call_tool("ask")),
                asyncio.create_task(client.call_tool("slow")),
                asyncio.create_task(client.call_tool("slow")),
                asyncio.create_task(client.list_tools()),
            ]
            await turns()
            await client.stop()
            found = [type(await ended(each)) for each in work]
            assert found == [NotReady] * len(work)

    run_virtual(main)


@promise("stop.status")
def test_status_says_at_any_time_where_the_client_stands() -> None:
    async def main() -> None:
        client = Client(
            {"name": "peer", "command": "x", "pool_size": 1},
            dialer=memory_link.MemoryDialer(LEGACY),
            tables=Tables(),
        )
        assert client.status().status == "starting"
        await client.start()
        ready = await client.await_ready()
        assert (ready.name, ready.status, ready.pending, ready.queued) == ("peer", "ready", 0, 0)
        calls = [asyncio.create_task(client.call_tool("slow")) for _ in range(3)]
        await turns()
        busy = client.status()
        assert (busy.pending, busy.queued) == (1, 2)
        await client.stop()
        assert client.status().status == "stopped"
        for call in calls:
            await ended(call)

    run_virtual(main)


# -- callers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("era", "kind", "told"),
    [
        ("legacy", "memory", True),
        ("legacy", "http", True),
        ("modern", "memory", True),
        ("modern", "http", False),
    ],
)
def test_a_caller_that_is_cancelled_takes_its_request_along(
    era: str, kind: str, told: bool
) -> None:
    """MCP basic/utilities/cancellation; a stateless stream over HTTP is closed instead."""

    async def main() -> None:
        async with memory_client(script(era), kind=kind) as (client, dialer):
            call = asyncio.create_task(client.call_tool("slow"))
            await turns()
            call.cancel()
            assert isinstance(await ended(call), asyncio.CancelledError)
            await turns()
            assert ("notifications/cancelled" in methods(dialer)) is told
            assert client.status().pending == 0
            assert (await client.call_tool("echo", {"text": "on"})).text == "on"

    run_virtual(main)


def test_a_caller_that_is_cancelled_before_it_began_leaves_nothing() -> None:
    async def main() -> None:
        async with memory_client(LEGACY) as (client, dialer):
            call = asyncio.create_task(client.call_tool("slow"))
            call.cancel()
            await ended(call)
            await turns()
            assert "tools/call" not in methods(dialer)

    run_virtual(main)


@promise("call.timeout")
def test_a_call_has_thirty_seconds_unless_it_is_given_others() -> None:
    """client-2.8.0 §call_tool."""

    async def main() -> None:
        async with memory_client(LEGACY) as (client, _):
            loop = asyncio.get_running_loop()
            for timeout, seconds in ((None, 30.0), (2.5, 2.5)):
                began_at = loop.time()
                raised = await ended(client.call_tool("slow", timeout=timeout))
                assert isinstance(raised, TimedOut)
                assert raised.reason is not None
                assert raised.reason.maybe_done
                assert loop.time() - began_at == pytest.approx(seconds)
            assert client.status().pending == 0

    run_virtual(main)


@pytest.mark.parametrize("timeout", [0, -1.0, float("inf"), float("nan")])
def test_a_timeout_that_is_none_is_refused_before_anything_is_sent(timeout: float) -> None:
    async def main() -> None:
        async with memory_client(LEGACY) as (client, dialer):
            with pytest.raises(ConfigurationError):
                await client.call_tool("echo", timeout=timeout)
            assert "tools/call" not in methods(dialer)

    run_virtual(main)


def test_beyond_the_window_and_the_queue_busy_is_the_answer() -> None:
    async def main() -> None:
        spec = {"pool_size": 1, "queue_limit": 1}
        async with memory_client(LEGACY, spec=spec) as (client, _):
            calls = [asyncio.create_task(client.call_tool("slow")) for _ in range(2)]
            await turns()
            with pytest.raises(Busy):
                await client.call_tool("echo", timeout=1e6)
            assert [type(await ended(call)) for call in calls] == [TimedOut, TimedOut]

    run_virtual(main)


@pytest.mark.parametrize("kind", KINDS)
def test_a_lost_connection_says_that_the_call_may_have_been_done(kind: str) -> None:
    """BC-179: and it is not sent again."""
    leaves = script("legacy", on("tools/call", leave(3), life=1))

    async def main() -> None:
        async with memory_client(leaves, kind=kind) as (client, dialer):
            raised = await ended(client.call_tool("echo"))
            assert isinstance(raised, ConnectionLost)
            assert raised.outcome_unknown
            await client.await_ready()
            assert methods(dialer).count("tools/call") == 1
            assert (await client.call_tool("echo", {"text": "again"})).text == "again"

    run_virtual(main)


def test_a_handler_may_use_the_client_that_asks_it() -> None:
    asks = script(
        "legacy",
        on(
            "tools/call ask",
            question("elicitation/create", ELICITATION),
            until("answer"),
            text("ok"),
        ),
    )

    async def main() -> None:
        clients: list[Client] = []
        heard: list[str] = []

        async def answer(request: ElicitRequest) -> Accept:
            heard.append((await clients[0].call_tool("echo", {"text": "inside"})).text)
            return Accept()

        async with memory_client(asks, elicitation=answer) as (client, _):
            clients.append(client)
            assert (await client.call_tool("ask")).text == "ok"
            assert heard == ["inside"]

    run_virtual(main)


def test_while_the_user_answers_the_timer_of_the_call_stands_still() -> None:
    """ours: ADR-0026."""
    asks = script(
        "legacy",
        on("tools/call", question("elicitation/create", ELICITATION), until("answer"), text("ok")),
    )

    async def main() -> None:
        async def slowly(_: ElicitRequest) -> Accept:
            await asyncio.sleep(200.0)
            return Accept()

        async with memory_client(asks, elicitation=slowly) as (client, _):
            assert (await client.call_tool("ask", timeout=5.0)).text == "ok"

    run_virtual(main)


def test_what_handlers_and_callbacks_raise_costs_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    noisy = script(
        "legacy",
        on(
            "tools/call ask",
            notice("notifications/message", {"level": "info", "data": "x"}),
            notice("notifications/progress", {"progressToken": "$TOKEN", "progress": 1}),
            notice("notifications/tools/list_changed"),
            question("elicitation/create", ELICITATION),
            until("answer"),
            text("ok"),
        ),
    )

    async def main() -> None:
        def fail(_: object) -> object:
            raise ValueError("a mistake")

        def observe(_event: str, _fields: object) -> None:
            raise ValueError("a mistake")

        async with memory_client(
            noisy, elicitation=fail, logging=fail, on_change=fail, observe=observe
        ) as (client, dialer):
            assert (await client.call_tool("ask", progress=fail)).text == "ok"
            (answer,) = [each for each in dialer.received if each.get("id") == "q"]
            assert answer["error"]["code"] == -32603
            assert "a mistake" not in str(answer)

    run_virtual(main)
    assert "ValueError: a mistake" in caplog.text


# -- prices ---------------------------------------------------------------------------------------


@promise("call.opaque")
@pytest.mark.parametrize("kind", KINDS)
def test_a_priced_tool_is_paid_for_on_every_transport(kind: str) -> None:
    """client-behaviour check 65."""

    async def main() -> None:
        spec = {"prices": {"echo": 5}}
        async with memory_client(LEGACY, kind=kind, spec=spec) as (client, dialer):
            for reservation in (None, "forged"):
                raised = await ended(client.call_tool("echo", reservation=reservation))
                assert isinstance(raised, Unpaid)
                assert raised.tag == "unmetered_call"
            assert "tools/call" not in methods(dialer)
            handle = client.reserve()
            assert (await client.call_tool("echo", {"text": "x"}, reservation=handle)).text == "x"
            assert isinstance(await ended(client.call_tool("echo", reservation=handle)), Unpaid)
            late = client.reserve()
            await asyncio.sleep(121.0)
            assert isinstance(await ended(client.call_tool("echo", reservation=late)), Unpaid)
            raised = await ended(client.call_tool("slow", reservation=client.reserve()))
            assert isinstance(raised, Unpaid)
            assert raised.tag == "unknown_price"
            assert methods(dialer).count("tools/call") == 1

    run_virtual(main)


# -- lists ----------------------------------------------------------------------------------------


def pages(count: int | None) -> dict[str, object]:
    """Make a server whose list has `count` pages; None: it never ends."""
    more = [
        on("tools/list", reply({"tools": [tool(number)], "nextCursor": str(number)}), times=1)
        for number in range(2_000 if count is None else count - 1)
    ]
    return script("legacy", *more, on("tools/list", reply({"tools": [tool(9999)]})))


def tool(number: int) -> dict[str, object]:
    return {"name": f"t{number}", "inputSchema": {"type": "object"}}


def test_every_page_is_read_and_the_list_is_kept() -> None:
    """client-behaviour checks 43, 44, as the rulings have it."""

    async def main() -> None:
        async with memory_client(pages(3)) as (client, dialer):
            names = [found.name for found in await client.list_tools()]
            assert names == ["t0", "t1", "t9999"]
            cursors = [
                each["params"].get("cursor")
                for each in dialer.received
                if each.get("method") == "tools/list"
            ]
            assert cursors == [None, "0", "1"]
            assert await client.list_tools() == await client.list_tools()
            assert methods(dialer).count("tools/list") == 3
            await client.list_tools(refresh=True)
            assert methods(dialer).count("tools/list") == 4

    run_virtual(main)


def test_a_list_without_end_ends() -> None:
    async def main() -> None:
        async with memory_client(pages(None)) as (client, dialer):
            await ended(client.list_tools(timeout=1_000.0))
            assert methods(dialer).count("tools/list") < 1_500

    run_virtual(main)


def test_the_list_is_asked_for_again_when_it_changed_or_the_session_is_new() -> None:
    """Rulings, check 44."""
    changes = script(
        "legacy",
        on("tools/call change", notice("notifications/tools/list_changed"), text("ok")),
        on("tools/call leave", leave(1)),
    )

    async def main() -> None:
        changed: list[Change] = []
        async with memory_client(changes, on_change=changed.append) as (client, dialer):
            await client.list_tools()
            await client.call_tool("change")
            assert changed == [Change("tools")]
            await client.list_tools()
            assert methods(dialer).count("tools/list") == 2
            await ended(client.call_tool("leave"))
            assert isinstance(await ended(client.list_tools()), ConnectFailed)
            await client.await_ready()
            await client.list_tools()
            assert methods(dialer).count("tools/list") == 3

    run_virtual(main)


def test_a_stateless_list_is_kept_for_as_long_as_it_says() -> None:
    """MCP 2026-07-28 §Caching."""
    short = script(
        "modern",
        on(
            "tools/list",
            reply({"resultType": "complete", "ttlMs": 5_000, "cacheScope": "private", "tools": []}),
        ),
        capabilities={"tools": {}},
    )

    async def main() -> None:
        async with memory_client(short) as (client, dialer):
            await client.list_tools()
            await asyncio.sleep(4.0)
            await client.list_tools()
            assert methods(dialer).count("tools/list") == 1
            await asyncio.sleep(2.0)
            await client.list_tools()
            assert methods(dialer).count("tools/list") == 2

    run_virtual(main)


# -- headers made from an old list ----------------------------------------------------------------


MIRRORED = {
    "name": "move",
    "inputSchema": {
        "type": "object",
        "properties": {"to": {"type": "string", "x-mcp-header": "To"}},
    },
}


@pytest.mark.parametrize("times", [1, 2])
def test_a_call_refused_for_its_headers_is_made_again_once(times: int) -> None:
    """MCP 2026-07-28 basic/transports/streamable-http: with headers of a new list."""
    refuses = script(
        "modern", on("tools/call", error(-32020, "headers"), times=times), tools=[MIRRORED]
    )

    async def main() -> None:
        async with memory_client(refuses, kind="http") as (client, dialer):
            call = client.call_tool("move", {"to": "x", "text": "moved"})
            if times == 1:
                assert (await call).text == "moved"
            else:
                raised = await ended(call)
                assert isinstance(raised, RemoteProtocolError)
                assert raised.code == -32020
            assert methods(dialer).count("tools/call") == 2
            assert methods(dialer).count("tools/list") == 1

    run_virtual(main)


def test_on_a_pipe_such_a_refusal_is_an_error_like_any_other() -> None:
    refuses = script("modern", on("tools/call", error(-32020, "headers")))

    async def main() -> None:
        async with memory_client(refuses) as (client, dialer):
            assert isinstance(await ended(client.call_tool("echo")), RemoteProtocolError)
            assert methods(dialer).count("tools/call") == 1

    run_virtual(main)


# -- subscriptions --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_handshake_subscriber_is_told_and_told_again_after_a_reconnect(kind: str) -> None:
    told = script(
        "legacy",
        on("resources/subscribe", reply({})),
        on("resources/unsubscribe", reply({})),
        on(
            "tools/call change", notice("notifications/resources/updated", {"uri": "u"}), text("ok")
        ),
        on("tools/call leave", leave(1)),
    )

    async def main() -> None:
        async with memory_client(told, kind=kind) as (client, dialer):
            async with client.subscribe(uris=["u"]) as changes:
                await client.call_tool("change")
                await client.call_tool("change")
                assert await anext(changes) == Change("resource", "u")
                await ended(client.call_tool("leave"))
                await client.await_ready()
                assert await anext(changes) == Change("resource", "u")  # it may have been missed
                await turns()
                assert methods(dialer).count("resources/subscribe") == 2
            assert methods(dialer).count("resources/unsubscribe") == 1

    run_virtual(main)


def test_a_stateless_subscriber_listens_and_listens_again() -> None:
    acknowledged = "notifications/subscriptions/acknowledged"
    meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": "$ID"}}
    ack = notice(acknowledged, {"notifications": {"toolsListChanged": True}, **meta})
    changed = notice("notifications/tools/list_changed", meta)
    told = script(
        "modern",
        on("subscriptions/listen", ack, wait(5.0), changed, wait(5.0), reply({}), times=1),
        on("subscriptions/listen", ack, silent()),
    )

    async def main() -> None:
        async with memory_client(told) as (client, dialer):
            loop = asyncio.get_running_loop()
            async with client.subscribe(tools=True) as changes:
                began_at = loop.time()
                assert await anext(changes) == Change("tools")
                assert loop.time() - began_at == pytest.approx(5.0)
                # The server ended it after ten seconds; what was missed until the next is told.
                assert await anext(changes) == Change("tools")
                assert loop.time() - began_at == pytest.approx(11.0)
            await turns()
            assert methods(dialer).count("subscriptions/listen") == 2
            assert client.status().pending == 0

    run_virtual(main)


def test_a_subscriber_is_done_when_the_client_stops() -> None:
    async def main() -> None:
        async with memory_client(LEGACY) as (client, _), client.subscribe(tools=True) as changes:
            reading: asyncio.Task[Change | None] = asyncio.create_task(anext(changes, None))
            await turns()
            await client.stop()
            assert await reading is None

    run_virtual(main)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stateless_subscription_holds_over_a_new_connection(kind: str) -> None:
    leaves = script("modern", on("tools/call", leave(1), life=1))

    async def main() -> None:
        async with memory_client(leaves, kind=kind) as (client, dialer):
            async with client.subscribe(tools=True) as changes:
                await ended(client.call_tool("echo"))
                await client.await_ready()
                assert await anext(changes) == Change("tools")  # it may have been missed
                await turns()
                assert methods(dialer).count("subscriptions/listen") == 2
            await turns()
            assert client.status().pending == 0

    run_virtual(main)


# -- rounds (MCP 2026-07-28 basic/patterns/mrtr) --------------------------------------------------


STATE = " eyJ+/=é\n "
ROUND = reply(
    {
        "resultType": "input_required",
        "requestState": STATE,
        "inputRequests": {"k": {"method": "elicitation/create", "params": ELICITATION}},
    }
)
ROUNDS = script("modern", on("tools/call ask", ROUND, times=1), on("x/leave", leave(1)))


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_stateless_server_wants_to_know_first_is_asked_and_sent_along(kind: str) -> None:
    """BC-115."""

    async def main() -> None:
        asked: list[str] = []

        def answer(request: ElicitRequest) -> Accept:
            asked.append(request.message)
            return Accept()

        async with memory_client(ROUNDS, kind=kind, elicitation=answer) as (client, dialer):
            result, other = await asyncio.gather(
                client.call_tool("ask", {"text": "x"}), client.call_tool("echo", {"text": "y"})
            )
            assert (result.text, other.text, asked) == ("x", "y", ["?"])
            calls = [each for each in dialer.received if each.get("method") == "tools/call"]
            first, echo, again = sorted(calls, key=lambda each: int(each["id"]))
            assert again["params"]["requestState"] == STATE
            assert again["params"]["inputResponses"]["k"]["action"] == "accept"
            assert "requestState" not in first["params"]
            assert "requestState" not in echo["params"]
            assert len({each["id"] for each in calls}) == 3

    run_virtual(main)


@pytest.mark.parametrize("gives_up", ["the caller", "the timer", "the connection"])
def test_whoever_gives_up_while_the_user_thinks_takes_the_question_along(gives_up: str) -> None:
    async def main() -> None:
        thinking, stopped = asyncio.Event(), asyncio.Event()

        async def think(_: ElicitRequest) -> Accept:
            thinking.set()
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()
            return Accept()

        spec = {"answer_timeout": 50.0}
        async with memory_client(ROUNDS, spec=spec, elicitation=think) as (client, dialer):
            call = asyncio.create_task(client.call_tool("ask"))
            await thinking.wait()
            assert client.status().pending == 0
            if gives_up == "the caller":
                call.cancel()
            elif gives_up == "the connection":
                client.notify("x/leave")
            raised = await ended(call)
            expected = {
                "the caller": asyncio.CancelledError,
                "the timer": TimedOut,
                "the connection": ConnectionLost,
            }
            assert type(raised) is expected[gives_up]
            await turns()
            assert stopped.is_set()
            assert methods(dialer).count("tools/call") == 1

    run_virtual(main)


# -- logs -----------------------------------------------------------------------------------------


def test_the_log_level_goes_into_every_stateless_request() -> None:
    """MCP 2026-07-28 server/utilities/logging."""

    async def main() -> None:
        async with memory_client(MODERN) as (client, dialer):
            await client.set_log_level("error")
            await client.call_tool("echo")
            (call,) = [each for each in dialer.received if each.get("method") == "tools/call"]
            assert call["params"]["_meta"]["io.modelcontextprotocol/logLevel"] == "error"
            assert "logging/setLevel" not in methods(dialer)

    run_virtual(main)


def test_logs_reach_their_handler() -> None:
    logs = script(
        "legacy",
        on("tools/call", notice("notifications/message", {"level": "info", "data": 7}), text("ok")),
    )

    async def main() -> None:
        heard: list[LogMessage] = []
        async with memory_client(logs, logging=heard.append) as (client, _):
            await client.call_tool("echo")
            assert [(message.level, message.data) for message in heard] == [("info", 7)]

    run_virtual(main)


# -- anything else --------------------------------------------------------------------------------


def test_any_request_can_be_made_and_anything_be_told() -> None:
    odd = script("legacy", on("x/y", reply({"z": 1})))

    async def main() -> None:
        async with memory_client(odd) as (client, dialer):
            assert await client.request("x/y", {"n": 1}) == {"z": 1}
            client.notify("notifications/roots/list_changed")
            await client.ping()
            assert "notifications/roots/list_changed" in methods(dialer)
            await client.stop()
            with pytest.raises(NotReady):
                client.notify("notifications/roots/list_changed")

    run_virtual(main)
