"""Our client against the official SDK's own everything-server, in both eras, over both transports.

The server is the one in the SDK's source distribution, unchanged. It speaks both eras wherever it
serves, so a client that is told nothing ends up in the newer one.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Iterator
from importlib.metadata import version
from typing import Final

import pytest

from raxol_mcp import Accept, Cancel, ConnectionLost, Decline, RemoteProtocolError, TimedOut
from raxol_mcp.client.opening import Tables
from tests.interop.foreign import (
    Spec,
    back,
    connected,
    kinds,
    processes_with,
    run,
    serving,
    text,
)
from tests.interop.packages import source_of

pytestmark = pytest.mark.slow

PACKAGE: Final = f"mcp=={version('mcp')}"
HANDSHAKE: Final = "handshake"
STATELESS: Final = "stateless"
# Its own `main` serves HTTP alone.
OVER_STDIO: Final = "from mcp_everything_server.server import mcp; mcp.run('stdio')"
PNG: Final = "iVBORw0KGgo"


@pytest.fixture(scope="module")
def source() -> str:
    """Fetch the server; return the folder to import it from."""
    return str(source_of("foreign-official", PACKAGE, "examples/servers/everything-server"))


@pytest.fixture(scope="module")
def url(source: str) -> Iterator[str]:
    """Run the server over HTTP."""
    command = [sys.executable, "-m", "mcp_everything_server", "--port", "0"]
    variables = {"PYTHONPATH": source}
    with serving(command, r"running on (http://[0-9.:]+)", env=variables) as address:
        yield f"{address}/mcp"


@pytest.fixture(params=["stdio", "http"])
def place(request: pytest.FixtureRequest, source: str) -> Spec:
    """Each transport."""
    if request.param == "http":
        return {"url": request.getfixturevalue("url"), "allow_private": True}
    variables = {"PYTHONPATH": source}
    return {"command": sys.executable, "args": ["-c", OVER_STDIO], "env": variables}


@pytest.fixture(params=[HANDSHAKE, STATELESS])
def era(request: pytest.FixtureRequest) -> str:
    """Each era."""
    return str(request.param)


@pytest.fixture
def spec(place: Spec, era: str) -> Spec:
    """Each way to reach the server, with the era left to the client where it is the newer one."""
    return {**place, "era": HANDSHAKE} if era == HANDSHAKE else place


def test_it_connects_and_lists(spec: Spec, era: str) -> None:
    """The handshake, and the probe that finds the newer era."""

    async def scenario() -> None:
        async with connected(spec) as (client, _):
            status = client.status()
            expected = "2025-11-25" if era == HANDSHAKE else "2026-07-28"
            assert (status.status, status.era, status.version) == ("ready", era, expected)
            assert status.server is not None
            assert status.server["name"] == "mcp-conformance-test-server"
            assert "tools" in status.capabilities
            tools = {tool.name: tool for tool in await client.list_tools()}
            assert {"test_simple_text", "test_x_mcp_header", "test_reconnection"} <= tools.keys()
            schema = tools["json_schema_2020_12_tool"].input_schema
            assert {"$schema", "$defs", "allOf", "if", "then", "else"} <= schema.keys()
            assert client.status().tools == len(tools)
            uris = [resource.uri for resource in await client.list_resources()]
            assert "test://static-text" in uris
            (template,) = await client.list_resource_templates()
            assert template.uri_template == "test://template/{id}/data"
            prompts = {prompt.name: prompt for prompt in await client.list_prompts()}
            arguments = prompts["test_prompt_with_arguments"].arguments
            assert [(a.name, a.required) for a in arguments] == [("arg1", True), ("arg2", True)]

    run(scenario)


def test_it_calls(spec: Spec) -> None:
    """Every kind of content, a failure, and a tool that does not exist."""

    async def scenario() -> None:
        async with connected(spec) as (client, _):
            await client.list_tools()
            said = await client.call_tool("test_simple_text")
            assert text(said) == "This is a simple text response for testing."
            assert (said.has_structured, said.structured_content) == (True, {"result": said.text})
            image = await client.call_tool("test_image_content")
            assert (kinds(image), image.has_structured) == (["image"], False)
            assert str(image.content[0]["data"]).startswith(PNG)
            assert kinds(await client.call_tool("test_audio_content")) == ["audio"]
            assert kinds(await client.call_tool("test_embedded_resource")) == ["resource"]
            mixed = await client.call_tool("test_multiple_content_types")
            assert kinds(mixed) == ["text", "image", "resource"]
            # An argument that is mirrored into a header where there are headers.
            for region in ("eu", "Grüße", " padded "):
                mirrored = await client.call_tool("test_x_mcp_header", {"region": region})
                assert text(mirrored) == f"region={region}"
            failed = await client.call_tool("test_error_handling")
            assert failed.is_error
            assert "intentionally" in failed.text
            assert (await client.call_tool("no_such_tool")).is_error

    run(scenario)


def test_it_reads_prompts_and_completes(spec: Spec, era: str) -> None:
    """Texts, bytes, templates, prompts with arguments and images; and what does not exist."""

    async def scenario() -> None:
        async with connected(spec) as (client, _):
            read = await client.read_resource("test://static-text")
            assert read.text == "This is the content of the static text resource."
            (part,) = (await client.read_resource("test://static-binary")).contents
            assert str(part["blob"]).startswith(PNG)
            templated = await client.read_resource("test://template/7/data")
            assert json.loads(templated.text)["id"] == "7"
            with pytest.raises(RemoteProtocolError) as absent:
                await client.read_resource("test://absent")
            assert absent.value.code == -32602
            arguments = {"arg1": "a", "arg2": "b"}
            prompt = await client.get_prompt("test_prompt_with_arguments", arguments)
            (message,) = prompt.messages
            assert message["role"] == "user"
            assert "arg1='a'" in str(message["content"])
            image = await client.get_prompt("test_prompt_with_image")
            assert len(image.messages) == 2
            with pytest.raises(RemoteProtocolError) as unknown:
                await client.get_prompt("no_such_prompt")
            assert unknown.value.code == (0 if era == HANDSHAKE else -32603)  # the SDK's own
            reference = {"type": "ref/prompt", "name": "test_prompt_with_arguments"}
            assert (await client.complete(reference, "arg1", "a")).values == []

    run(scenario)


def test_it_hears_progress_and_logs(spec: Spec) -> None:
    """Steps and logs of a call come before its answer does."""

    async def scenario() -> None:
        async with connected(spec) as (client, heard):
            await client.call_tool("test_tool_with_progress", progress=heard.step)
            assert [(step.progress, step.total) for step in heard.progress] == [
                *((0, 100), (50, 100), (100, 100))
            ]
            assert heard.progress[1].message == "Completed step 50 of 100"
            await client.set_log_level("info")
            await client.call_tool("test_tool_with_logging")
            assert [(message.level, message.data) for message in heard.logs] == [
                ("info", "Tool execution started"),
                ("info", "Tool processing data"),
                ("info", "Tool execution completed"),
            ]

    run(scenario)


def test_it_is_asked_in_the_middle_of_a_call(place: Spec) -> None:
    """The handshake era: questions of the server's while the call waits."""

    async def scenario() -> None:
        answers = Accept({"response": "blue"}), Decline(), Cancel()
        async with connected({**place, "era": HANDSHAKE}, *answers) as (client, heard):
            said = [
                text(await client.call_tool("test_elicitation", {"message": "Which?"}))
                for _ in answers
            ]
            assert said == [
                'User response: action=accept, content={"response":"blue"}',
                "User response: action=decline, content={}",
                "User response: action=cancel, content={}",
            ]
            assert [question.message for question in heard.asked] == ["Which?"] * 3
            assert {question.mode for question in heard.asked} == {"form"}
            sampled = await client.call_tool("test_sampling", {"prompt": "2 + 2?"})
            assert text(sampled) == "LLM response: 4"

    run(scenario)


def test_its_forms_are_filled_in(place: Spec) -> None:
    """The handshake era: defaults of every type, and every kind of choice."""
    chosen = {
        "untitledSingle": "active",
        "titledSingle": "high",
        "untitledMulti": ["read", "write"],
        "titledMulti": ["bug"],
        "legacyEnum": "small",
    }

    async def scenario() -> None:
        answers = Accept({"name": "Ann", "age": 7}), Accept(chosen)
        async with connected({**place, "era": HANDSHAKE}, *answers) as (client, _):
            said = text(await client.call_tool("test_elicitation_sep1034_defaults"))
            form = json.loads(said.partition("content=")[2])
            assert (form["name"], form["age"], form["verified"]) == ("Ann", 7, True)
            said = text(await client.call_tool("test_elicitation_sep1330_enums"))
            assert json.loads(said.partition("content=")[2]) == chosen

    run(scenario)


def test_it_is_asked_before_a_call(place: Spec) -> None:
    """The stateless era: rounds of one question, of several, of three kinds; for a prompt too."""

    async def scenario() -> None:
        answers = (
            *(Accept({"response": "word"}), Accept({"name": "Ann"}), Accept({"color": "red"})),
            *(Accept({"ok": True}), Accept({"name": "Ann"}), Accept({"context": "Bern"})),
            *(Accept({"ok": True}), Decline()),
        )
        async with connected(place, *answers) as (client, heard):
            tool = "test_input_required_result"
            said = [
                text(await client.call_tool("test_streaming_elicitation")),
                text(await client.call_tool(f"{tool}_multi_round")),
                text(await client.call_tool(f"{tool}_request_state")),
                text(await client.call_tool(f"{tool}_multiple_inputs")),
            ]
            assert said == [
                "elicitation accept",
                "Ann likes red.",
                "state-ok: confirmation received",
                "All inputs received.",
            ]
            prompt = await client.get_prompt("test_input_required_result_prompt")
            assert "Use the following context: Bern" in str(prompt.messages[0]["content"])
            tampered = await client.call_tool(f"{tool}_tampered_state")
            assert text(tampered) == "state-ok: round-1"
            declined = await client.call_tool("test_streaming_elicitation")
            assert text(declined) == "elicitation decline"
            roots = await client.call_tool(f"{tool}_list_roots")
            assert text(roots) == "Client exposed 0 root(s)."
            assert len(heard.asked) == len(answers)
            assert len(heard.sampled) == 1

    run(scenario)


def test_it_hears_of_changes(place: Spec) -> None:
    """The stateless era: only what was subscribed to. In the other this server says nothing."""

    async def scenario() -> None:
        async with connected(place) as (client, _):
            async with client.subscribe(tools=True) as changes:
                await client.call_tool("test_trigger_prompt_change")
                await client.call_tool("test_trigger_tool_change")
                assert (await anext(changes)).kind == "tools"
            async with client.subscribe(prompts=True) as changes:
                await client.call_tool("test_trigger_prompt_change")
                assert (await anext(changes)).kind == "prompts"
            assert text(await client.call_tool("test_simple_text"))
        async with (
            connected({**place, "era": HANDSHAKE}) as (client, _),
            client.subscribe(uris=["test://watched-resource"]),
        ):
            assert text(await client.call_tool("test_simple_text"))

    run(scenario)


def test_it_comes_back_for_an_answer(url: str) -> None:
    """MCP 2025-11-25 transports §Resumability: the stream ends before the answer is there."""

    async def scenario() -> None:
        spec = {"url": url, "allow_private": True, "era": HANDSHAKE}
        async with connected(spec) as (client, heard):
            assert (
                text(await client.call_tool("test_reconnection")) == "Reconnection test completed"
            )
            assert [message.data for message in heard.logs] == [
                "Before disconnect",
                "After reconnect",
            ]

    run(scenario)


def test_it_gives_up_and_goes_on(spec: Spec) -> None:
    """A timeout and a cancellation end one call; the connection lives."""

    async def scenario() -> None:
        async with connected(spec) as (client, heard):
            with pytest.raises(TimedOut):
                await client.call_tool("test_tool_with_progress", timeout=0.05)
            call = asyncio.create_task(
                client.call_tool("test_tool_with_progress", progress=heard.step)
            )
            await heard.until(lambda: heard.progress)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert client.status().pending == 0
            assert text(await client.call_tool("test_simple_text"))

    run(scenario)


def test_it_makes_many_calls_at_once(spec: Spec) -> None:
    """As many as may be in flight and wait, three times over."""

    async def scenario() -> None:
        async with connected({**spec, "concurrency": "pooled"}) as (client, _):
            for _ in range(3):
                calls = (
                    client.call_tool("test_x_mcp_header", {"region": str(n)}) for n in range(16)
                )
                said = [text(result) for result in await asyncio.gather(*calls)]
                assert said == [f"region={n}" for n in range(16)]

    run(scenario)


def test_it_comes_back_when_the_server_has_died(source: str, era: str) -> None:
    """Over stdio: the call that was under way fails and says why; the next ones are well again."""
    variables = {"PYTHONPATH": source}
    spec = {"command": sys.executable, "args": ["-c", OVER_STDIO], "env": variables, "era": era}

    async def scenario() -> None:
        async with connected(spec) as (client, heard):
            call = asyncio.create_task(
                client.call_tool("test_tool_with_progress", progress=heard.step)
            )
            await heard.until(lambda: heard.progress)
            (server,) = processes_with(heard.mark)
            os.kill(server, signal.SIGKILL)
            with pytest.raises(ConnectionLost) as lost:
                await call
            assert lost.value.reason.path == ("server_exited", 128 + signal.SIGKILL)
            assert lost.value.outcome_unknown
            assert text(await back(client, "test_x_mcp_header", {"region": "eu"})) == "region=eu"
            assert len(processes_with(heard.mark)) == 1

    run(scenario)


def test_an_era_that_was_forced_is_not_remembered(place: Spec) -> None:
    """The next client of the process asks the server all the same."""
    tables = Tables()

    async def scenario() -> None:
        async with connected({**place, "era": HANDSHAKE}, tables=tables) as (client, _):
            assert client.status().era == HANDSHAKE
        async with connected(place, tables=tables) as (client, _):
            assert client.status().era == STATELESS

    run(scenario)
