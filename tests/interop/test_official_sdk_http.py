"""The official Python SDK's client, in both of its eras, against the fixture over HTTP.

The same as over stdio (`test_official_sdk.py`), and what only HTTP has: credentials, a stream of
its own for what belongs to no call, and a connection that is closed instead of a cancellation.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

import anyio
import httpx2
import mcp_types as types
import pytest
from mcp import Client, MCPError
from mcp.client.session import ClientRequestContext
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from raxol_mcp.server.auth import BearerAuthenticator
from raxol_mcp.server.static_tokens import StaticTokens
from tests.cases.fixture_server import Knobs
from tests.cases.http.sockets import Served, serving
from tests.cases.http_peers import TOKENS
from tests.cases.peers import left_over
from tests.interop.test_official_sdk import (
    BOUND,
    LEGACY,
    MODERN,
    MODES,
    Heard,
    Human,
    accepts,
    declines,
    dismisses,
    run,
    text_of,
)

# The SDK warns about methods that its newest revision has dropped, which the older ones have.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

# The two URLs of 2024-11-05 carry every handshake.
OLD: Final = "sse"
EVERY_MODE: Final = (*MODES, OLD)


@asynccontextmanager
async def connected(
    served: Served, mode: str, *, human: Human | None = None, token: str | None = None, **more: Any
) -> AsyncIterator[tuple[Client, Heard]]:
    """Connect a client. `human` answers forms; without one none can be asked."""
    heard = Heard()

    async def asked(
        context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult:
        assert human is not None
        heard.questions.append(params.message)
        return human(params)

    headers = {} if token is None else {"Authorization": f"Bearer {TOKENS[token]}"}
    async with AsyncExitStack() as stack:
        transport: Any = sse_client(f"{served.url}/sse", headers=headers)
        if mode != OLD:
            http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers))
            transport = streamable_http_client(served.url, http_client=http)
        client = Client(
            transport,
            mode=LEGACY if mode == OLD else mode,
            read_timeout_seconds=BOUND,
            elicitation_callback=None if human is None else asked,
            logging_callback=heard.logged,
            message_handler=heard.message,
            **more,
        )
        await stack.enter_async_context(client)
        yield client, heard


@pytest.fixture(params=EVERY_MODE)
def mode(request: pytest.FixtureRequest) -> str:
    """Each way in which the client can connect."""
    return str(request.param)


def is_handshake(mode: str) -> bool:
    """Say which era a mode leads to."""
    return mode in (LEGACY, OLD)


def test_it_connects_lists_calls_and_reads(mode: str) -> None:
    """Tools, resources, prompts and completions; results, failures and errors."""

    async def scenario() -> None:
        async with serving() as served, connected(served, mode) as (client, _):
            expected = "2025-11-25" if is_handshake(mode) else MODERN
            assert client.protocol_version == expected
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert "echo" in names
            assert "off" not in names
            result = await client.call_tool("echo", {"text": "Grüße ✓"})
            assert (text_of(result), result.is_error) == ("Grüße ✓", False)
            failed = await client.call_tool("typed", {"s": 7})
            assert failed.is_error
            with pytest.raises(MCPError) as unknown:
                await client.call_tool("no_such_tool", {})
            assert unknown.value.code == (-32601 if is_handshake(mode) else -32602)
            with pytest.raises(MCPError) as nobody:
                await client.get_prompt("nope")
            assert nobody.value.code == -32602
            with pytest.raises(MCPError) as cursor:
                await client.list_resources(cursor="nope")
            assert cursor.value.code == -32602
            (text,) = (await client.read_resource("mem://a")).contents
            assert isinstance(text, types.TextResourceContents)
            prompt = await client.get_prompt("greet", {"who": "Ann"})
            assert isinstance(prompt.messages[0].content, types.TextContent)
            reference = types.PromptReference(type="ref/prompt", name="greet")
            completed = await client.complete(reference, {"name": "who", "value": "n150"})
            assert len(completed.completion.values) == 100

    run(scenario)


def test_a_name_and_arguments_beyond_ascii_reach_it() -> None:
    """MCP 2026-07-28 streamable-http §Value Encoding, as the SDK writes it."""

    async def scenario() -> None:
        async with serving() as served, connected(served, MODERN) as (client, _):
            uris = [resource.uri for resource in (await client.list_resources()).resources]
            await client.list_tools()
            for uri in ("mem://测试", *uris):
                if uri not in ("mem://boom", "mem://admin"):
                    assert (await client.read_resource(uri)).contents
            for region in ("eu", " eu ", "Grüße", "", "=?base64?eA==?="):
                arguments = {"region": region, "count": 42, "flag": False}
                result = await client.call_tool("hdr", arguments)
                assert json.loads(text_of(result)) == arguments

    run(scenario)


@pytest.mark.parametrize(
    ("human", "said", "deleted"),
    [
        (accepts(confirm=True), "deleted", True),
        (accepts(confirm=False), "kept", False),
        (declines, '"detail":"user decline"', False),
        (dismisses, '"detail":"user cancel"', False),
    ],
    ids=["approves", "unticks", "declines", "dismisses"],
)
def test_its_human_is_asked(mode: str, human: Human, said: str, deleted: bool) -> None:
    """A form before the tool runs, on the stream of its call or as `input_required`."""

    async def scenario() -> None:
        async with serving() as served, connected(served, mode, human=human) as (client, heard):
            result = await client.call_tool("confirm_delete", {"target": "report"})
            assert said in text_of(result)
            assert heard.questions == ["Delete report?"]
            assert served.journal == (["deleted:report"] if deleted else [])

    run(scenario)


def test_its_human_decides_for_the_authorizer_and_answers_several(mode: str) -> None:
    """The authorizer's approval, two forms for one call, and a round of the tool's own."""

    async def scenario() -> None:
        async with serving() as served:
            async with connected(served, mode, human=accepts(approve=True)) as (client, heard):
                result = await client.call_tool("ask_first", {"target": "report"})
                assert (text_of(result), heard.questions) == ("deleted", ["Run ask_first?"])
            async with connected(served, mode, human=accepts(confirm=True)) as (client, heard):
                assert text_of(await client.call_tool("ask_two", {})) == "True True"
                assert heard.questions == ["First?", "Second?"]
            async with connected(served, mode, human=accepts(answer="42")) as (client, heard):
                answered = json.loads(text_of(await client.call_tool("ask", {"q": "What?"})))
                assert answered["answered"]["content"] == {"answer": "42"}

    run(scenario)


def test_without_a_human_nobody_is_asked(mode: str) -> None:
    """A client that did not declare elicitation: refused, and nothing runs."""

    async def scenario() -> None:
        async with serving() as served, connected(served, mode) as (client, _):
            if is_handshake(mode):
                assert (await client.call_tool("confirm_delete", {"target": "a"})).is_error
            else:
                with pytest.raises(MCPError) as refused:
                    await client.call_tool("confirm_delete", {"target": "a"})
                assert refused.value.code == -32021
            assert served.journal == []

    run(scenario)


def test_it_cancels(mode: str) -> None:
    """By a message in the one era, by closing its connection in the other; the tool stops."""

    async def scenario() -> None:
        async with serving() as served, connected(served, mode) as (client, _):
            with anyio.CancelScope() as scope:

                async def leaves() -> None:
                    await served.noted("start:sleep:c")
                    scope.cancel()

                async with anyio.create_task_group() as group:
                    group.start_soon(leaves)
                    await client.call_tool("sleep", {"ms": 600_000, "tag": "c"})
            assert scope.cancelled_caught
            await served.noted("cancelled:c")
            assert text_of(await client.call_tool("echo", {"text": "alive"})) == "alive"

    run(scenario)


def test_it_hears_progress_and_logs(mode: str) -> None:
    """Progress for a call that wants it; logs at the level of the session or of the request."""

    async def scenario() -> None:
        level: Any = None if is_handshake(mode) else "warning"
        async with serving() as served, connected(served, mode, log_level=level) as pair:
            client, heard = pair
            if level is None:
                await client.set_logging_level("warning")
            await client.call_tool(
                "progress", {"n": 5, "delay_ms": 1}, progress_callback=heard.progressed
            )
            await client.call_tool("logs", {"levels": ["debug", "warning", "emergency"]})
            await client.call_tool("echo", {"text": "x"})
            assert heard.progress == [1, 2, 3, 4, 5]
            assert [level for level, _ in heard.logs] == ["warning", "emergency"]

    run(scenario)


def test_it_hears_of_changes(mode: str) -> None:
    """A new tool and an updated resource: on the stream of the session, or listened for."""

    async def scenario() -> None:
        async with serving() as served, connected(served, mode) as (client, heard):
            if is_handshake(mode):
                await client.subscribe_resource("mem://a")
                await client.call_tool("add_tool", {"name": "late"})
                await client.call_tool("touch_resource", {"uri": "mem://b"})
                await client.call_tool("touch_resource", {"uri": "mem://a"})
                wanted = {types.ToolListChangedNotification, types.ResourceUpdatedNotification}
                while not wanted <= {type(message) for message in heard.messages}:
                    await client.send_ping()
                kinds = [type(message) for message in heard.messages]
                assert all(kinds.count(kind) == 1 for kind in wanted)
            else:
                async with client.listen(
                    tools_list_changed=True, resource_subscriptions=["mem://a"]
                ) as changes:
                    assert changes.honored.tools_list_changed is True
                    await client.call_tool("add_tool", {"name": "late"})
                    first = type(await anext(changes)).__name__
                    await client.call_tool("touch_resource", {"uri": "mem://b"})
                    await client.call_tool("touch_resource", {"uri": "mem://a"})
                    second = type(await anext(changes)).__name__
                    assert [first, second] == ["ToolsListChanged", "ResourceUpdated"]
            assert "late" in [tool.name for tool in (await client.list_tools()).tools]

    run(scenario)


def test_it_is_who_its_token_says(mode: str) -> None:
    """Two users of one address see their own; without a token there is no connection."""
    authenticator = BearerAuthenticator(StaticTokens({t: name for name, t in TOKENS.items()}))

    async def scenario() -> None:
        async with serving(authenticator=authenticator) as served:
            for token in ("alice", "admin"):
                async with connected(served, mode, token=token) as (client, _):
                    (me,) = (await client.read_resource("mem://me")).contents
                    assert isinstance(me, types.TextResourceContents)
                    assert me.text == f"static|{token}"
                    names = [tool.name for tool in (await client.list_tools()).tools]
                    assert ("admin_only" in names) is (token == "admin")
            with pytest.raises((MCPError, httpx2.HTTPStatusError, ExceptionGroup)):
                async with connected(served, mode) as (client, _):
                    await client.list_tools()
            assert served.journal == []

    run(scenario)


def test_many_clients_of_every_kind_work_at_once() -> None:
    """On one server, each with twenty calls in flight, and nothing is left of them."""

    async def scenario() -> None:
        limits = {"max_in_flight": 500, "max_in_flight_per_connection": 200}
        async with serving(Knobs(limits=limits)) as served:

            async def works(mode: str, number: int) -> None:
                async with connected(served, mode) as (client, _):
                    texts = [f"{mode} {number} {at}" for at in range(20)]
                    calls = [client.call_tool("echo", {"text": text}) for text in texts]
                    assert [text_of(result) for result in await asyncio.gather(*calls)] == texts

            await asyncio.gather(*(works(mode, at) for mode in EVERY_MODE for at in range(3)))
            async with asyncio.timeout(BOUND):
                while left_over(served.fixture):  # noqa: ASYNC110  # what is left is no event
                    await asyncio.sleep(0)

    run(scenario)
