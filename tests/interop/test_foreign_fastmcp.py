"""Our client against a FastMCP 4 server over HTTP, in both eras.

FastMCP wants other versions than this project does, so it has an environment of its own. The
server is `servers/fastmcp_server.py`.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pytest

from raxol_mcp import (
    Accept,
    ConnectFailed,
    Decline,
    RemoteProtocolError,
    RequestFailed,
    TimedOut,
)
from tests.interop.foreign import Spec, back, connected, free_port, kinds, run, serving, text
from tests.interop.packages import from_pypi

pytestmark = pytest.mark.slow

PACKAGE: Final = "fastmcp==4.1.6"
SERVER: Final = Path(__file__).parent / "servers" / "fastmcp_server.py"
HANDSHAKE: Final = "handshake"
STATELESS: Final = "stateless"


@contextmanager
def running(port: int = 0) -> Iterator[str]:
    """Run the server; yield its URL."""
    python = from_pypi("foreign-fastmcp", PACKAGE)
    with serving([python, SERVER, str(port)], r"running on (http://[0-9.:]+)") as address:
        yield f"{address}/mcp"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Run one server for all."""
    with running() as found:
        yield found


@pytest.fixture(params=[HANDSHAKE, STATELESS])
def era(request: pytest.FixtureRequest) -> str:
    """Each era."""
    return str(request.param)


@pytest.fixture
def spec(url: str, era: str) -> Spec:
    """How to reach the server, with the era left to the client where it is the newer one."""
    forced = {"era": HANDSHAKE} if era == HANDSHAKE else {}
    return {"url": url, "allow_private": True, **forced}


def test_it_connects_and_lists_every_page(spec: Spec, era: str) -> None:
    """Three to a page."""

    async def scenario() -> None:
        async with connected(spec) as (client, _):
            status = client.status()
            expected = "2025-11-25" if era == HANDSHAKE else "2026-07-28"
            assert (status.status, status.era, status.version) == ("ready", era, expected)
            assert status.server is not None
            assert (status.server["name"], status.server["version"]) == ("foreign", "9.9")
            assert status.instructions == "Call things."
            tools = {tool.name: tool for tool in await client.list_tools()}
            assert list(tools)[:4] == ["echo", "point", "pixel", "fails"]
            assert {"sleeps", "journal", "grows"} <= tools.keys()
            assert tools["point"].output_schema is not None
            assert [r.uri for r in await client.list_resources()] == ["text://a", "bytes://b"]
            (template,) = await client.list_resource_templates()
            assert template.uri_template == "item://{name}"
            (prompt,) = await client.list_prompts()
            assert [(a.name, a.required) for a in prompt.arguments] == [("who", True)]

    run(scenario)


def test_it_calls(spec: Spec) -> None:
    """Texts, objects and images; a failure, wrong arguments and a tool that does not exist."""

    async def scenario() -> None:
        async with connected(spec) as (client, _):
            assert text(await client.call_tool("echo", {"text": "Grüße ✓"})) == "Grüße ✓"
            point = await client.call_tool("point", {"x": 1, "y": 2})
            assert point.structured_content == {"x": 1, "y": 2}
            image = await client.call_tool("pixel")
            assert (kinds(image), image.content[0]["mimeType"]) == (["image"], "image/png")
            assert image.has_structured is False
            failed = await client.call_tool("fails")
            assert (failed.is_error, failed.text) == (True, "on purpose")
            assert (await client.call_tool("point", {"x": "one"})).is_error
            assert (await client.call_tool("no_such_tool")).is_error

    run(scenario)


def test_it_reads_and_prompts(spec: Spec) -> None:
    """Its errors come with statuses of HTTP in the newer era; what they say is not lost."""

    async def scenario() -> None:
        async with connected(spec) as (client, _):
            assert (await client.read_resource("text://a")).text == "a"
            (part,) = (await client.read_resource("bytes://b")).contents
            assert base64.b64decode(str(part["blob"])) == b"\x00\xff"
            assert (await client.read_resource("item://pen")).text == "pen"
            with pytest.raises(RemoteProtocolError) as absent:
                await client.read_resource("text://absent")
            assert absent.value.code == -32602
            prompt = await client.get_prompt("greet", {"who": "Ann"})
            assert prompt.messages == [
                {"role": "user", "content": {"type": "text", "text": "Say hello to Ann."}}
            ]
            with pytest.raises(RemoteProtocolError) as missing:
                await client.get_prompt("greet")
            assert missing.value.code == -32602
            with pytest.raises(RemoteProtocolError) as no_completions:
                await client.complete({"type": "ref/prompt", "name": "greet"}, "who", "A")
            assert no_completions.value.code == -32601
            assert client.status().status == "ready"
            assert (await client.read_resource("text://a")).text == "a"

    run(scenario)


def test_it_hears_progress_and_logs(spec: Spec) -> None:
    """What belongs to a call, in front of its answer."""

    async def scenario() -> None:
        async with connected(spec) as (client, heard):
            await client.call_tool("steps", {"count": 3}, progress=heard.step)
            assert [(s.progress, s.total, s.message) for s in heard.progress] == [
                (1, 3, "step 1"),
                (2, 3, "step 2"),
                (3, 3, "step 3"),
            ]
            await client.set_log_level("info")
            await client.call_tool("logs")
            assert [message.level for message in heard.logs] == ["info", "warning"]
            assert heard.logs[0].data == {"msg": "one", "extra": None}

    run(scenario)


def test_it_is_asked(spec: Spec, era: str) -> None:
    """In the middle of a call in the one era, before it in the other."""
    tool, carried = ("asks", "") if era == HANDSHAKE else ("asks_first", " carried")

    async def scenario() -> None:
        async with connected(spec, Accept({"name": "Ann"})) as (client, heard):
            assert text(await client.call_tool(tool)) == f"accept Ann{carried}"
            assert [(question.mode, question.message) for question in heard.asked] == [
                ("form", "Who are you?")
            ]
        if era == HANDSHAKE:
            async with connected(spec, Decline()) as (client, _):
                assert text(await client.call_tool(tool)) == "decline"

    run(scenario)


def test_it_gives_up_and_goes_on(spec: Spec) -> None:
    """A timeout and a cancellation end one call, and the server's tool with it."""

    async def scenario() -> None:
        async with connected(spec) as (client, heard):

            async def ended(tag: str) -> None:
                while tag not in text(await client.call_tool("journal")):
                    pass  # each look is a round trip

            with pytest.raises(TimedOut):
                await client.call_tool("sleeps", {"tag": "slow"}, timeout=0.5)
            await ended("slow")
            call = asyncio.create_task(
                client.call_tool("sleeps", {"tag": "dropped"}, progress=heard.step)
            )
            await heard.until(lambda: heard.progress)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await ended("dropped")
            assert client.status().pending == 0
            assert text(await client.call_tool("echo", {"text": "alive"})) == "alive"

    run(scenario)


def test_it_makes_many_calls_at_once(spec: Spec) -> None:
    """As many as may be in flight and wait."""

    async def scenario() -> None:
        async with connected({**spec, "concurrency": "pooled"}) as (client, _):
            calls = (client.call_tool("echo", {"text": str(number)}) for number in range(16))
            said = [text(result) for result in await asyncio.gather(*calls)]
            assert said == [str(number) for number in range(16)]

    run(scenario)


def test_it_hears_of_a_new_tool(url: str) -> None:
    """The handshake era; in the other this server has no subscriptions, and says so."""

    async def scenario() -> None:
        spec = {"url": url, "allow_private": True}
        async with connected({**spec, "era": HANDSHAKE}) as (client, _):
            before = {tool.name for tool in await client.list_tools()}
            async with client.subscribe(tools=True) as changes:
                text(await client.call_tool("grows"))
                assert (await anext(changes)).kind == "tools"
            assert {tool.name for tool in await client.list_tools()} - before == {"late"}
        async with connected(spec) as (client, _):
            with pytest.raises(RemoteProtocolError) as unknown:
                async with client.subscribe(tools=True):
                    pass
            assert unknown.value.code == -32601
            assert text(await client.call_tool("late")) == "late"

    run(scenario)


def test_it_comes_back_when_the_server_was_restarted(era: str) -> None:
    """In the handshake era the new server does not know the session: there is a new one."""
    port = free_port()

    async def scenario() -> None:
        with ExitStack() as first:
            spec = {"url": first.enter_context(running(port)), "allow_private": True, "era": era}
            async with connected(spec) as (client, _):
                assert text(await client.call_tool("echo", {"text": "one"})) == "one"
                first.close()
                with pytest.raises((ConnectFailed, RequestFailed)):
                    await client.call_tool("echo", {"text": "nobody"})
                with running(port):
                    assert text(await back(client, "echo", {"text": "two"})) == "two"
                    assert client.status().status == "ready"

    run(scenario)
