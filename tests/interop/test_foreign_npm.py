"""Our client against two servers from npm: `server-everything` and `server-filesystem`.

They are made with the TypeScript SDK and know the handshake era alone, so the client's probe has
to fall back. The first is also spoken to over HTTP and over the two URLs of 2024-11-05.
"""

from __future__ import annotations

import asyncio
import base64
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from raxol_mcp import Accept, ConnectionLost, Decline, RemoteProtocolError, Root, TimedOut
from tests.interop.foreign import (
    Spec,
    back,
    connected,
    free_port,
    kinds,
    processes_with,
    run,
    serving,
    text,
)
from tests.interop.packages import from_npm

pytestmark = pytest.mark.slow

PACKAGES: Final = (
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
)
# How each way to run `server-everything` says that it serves, and at which path it does.
OVER_HTTP: Final = {
    "streamableHttp": ("listening on port ([0-9]+)", "mcp"),
    "sse": ("running on port ([0-9]+)", "sse"),
}
LONG: Final = "trigger-long-running-operation"


@pytest.fixture(scope="module")
def programs() -> Path:
    """Install both; return the folder of their programs."""
    return from_npm("foreign-npm", *PACKAGES) / "node_modules" / ".bin"


@pytest.fixture(scope="module", params=["stdio", *OVER_HTTP])
def everything(request: pytest.FixtureRequest, programs: Path) -> Iterator[Spec]:
    """Each way to reach `server-everything`."""
    program, how = programs / "mcp-server-everything", str(request.param)
    if how == "stdio":
        yield {"command": str(program)}
        return
    says, path = OVER_HTTP[how]
    with serving([program, how], says, env={"PORT": str(free_port())}) as port:
        yield {"url": f"http://127.0.0.1:{port}/{path}", "allow_private": True}


def test_it_connects_and_lists(everything: Spec) -> None:
    """Some tools are there only for clients that can be asked."""

    async def scenario() -> None:
        async with connected(everything) as (client, _):
            status = client.status()
            assert (status.status, status.era) == ("ready", "handshake")
            assert status.server is not None
            assert status.server["name"] == "mcp-servers/everything"
            assert status.instructions is not None
            assert "Everything Server" in status.instructions
            tools = {tool.name: tool for tool in await client.list_tools(refresh=True)}
            assert {"echo", "trigger-sampling-request", "trigger-url-elicitation"} <= tools.keys()
            assert tools["echo"].title == "Echo Tool"
            assert tools["echo"].annotations["readOnlyHint"] is True
            assert tools["get-structured-content"].output_schema is not None
            assert len(await client.list_resources()) >= 5
            assert len(await client.list_resource_templates()) == 2
            prompts = [prompt.name for prompt in await client.list_prompts()]
            assert {"simple-prompt", "args-prompt", "completable-prompt"} <= set(prompts)

    run(scenario)


def test_it_calls(everything: Spec) -> None:
    """Texts, numbers, objects, images, links and resources; a failure is a result here."""

    async def scenario() -> None:
        async with connected(everything) as (client, _):
            assert text(await client.call_tool("echo", {"message": "Grüße ✓"})) == "Echo: Grüße ✓"
            added = await client.call_tool("get-sum", {"a": 1, "b": 2})
            assert text(added) == "The sum of 1 and 2 is 3."
            weather = await client.call_tool("get-structured-content", {"location": "New York"})
            assert isinstance(weather.structured_content, dict)
            assert set(weather.structured_content) == {"temperature", "conditions", "humidity"}
            assert kinds(await client.call_tool("get-tiny-image")) == ["text", "image", "text"]
            links = await client.call_tool("get-resource-links", {"count": 2})
            assert kinds(links) == ["text", "resource_link", "resource_link"]
            arguments = {"resourceType": "Text", "resourceId": 1}
            reference = await client.call_tool("get-resource-reference", arguments)
            assert kinds(reference) == ["text", "resource", "text"]
            message = {"messageType": "error", "includeImage": True}
            annotated = await client.call_tool("get-annotated-message", message)
            assert annotated.content[0]["annotations"] == {
                "audience": ["user", "assistant"],
                "priority": 1,
            }
            wrong = await client.call_tool("get-sum", {"a": "x", "b": 2})
            assert wrong.is_error
            assert (await client.call_tool("no-such-tool")).is_error

    run(scenario)


def test_it_reads_prompts_and_completes(everything: Spec) -> None:
    """What was listed and what a template makes; what does not exist; both kinds of completion."""

    async def scenario() -> None:
        async with connected(everything) as (client, _):
            read = await client.read_resource("demo://resource/dynamic/text/1")
            assert "Resource 1" in read.text
            (part,) = (await client.read_resource("demo://resource/dynamic/blob/1")).contents
            assert b"Resource 1" in base64.b64decode(str(part["blob"]))
            for resource in await client.list_resources():
                assert (await client.read_resource(resource.uri)).text
            with pytest.raises(RemoteProtocolError) as absent:
                await client.read_resource("demo://absent")
            assert absent.value.code == -32602
            prompt = await client.get_prompt("args-prompt", {"city": "Bern"})
            assert "weather in Bern" in str(prompt.messages[0]["content"])
            with pytest.raises(RemoteProtocolError) as missing:
                await client.get_prompt("args-prompt")
            assert missing.value.code == -32602
            of_prompt = {"type": "ref/prompt", "name": "completable-prompt"}
            completed = await client.complete(of_prompt, "department", "E")
            assert (completed.values, completed.has_more) == (["Engineering"], False)
            named = await client.complete(of_prompt, "name", "", context={"department": "Sales"})
            assert "David" in named.values
            template = "demo://resource/dynamic/text/{resourceId}"
            of_resource = {"type": "ref/resource", "uri": template}
            assert (await client.complete(of_resource, "resourceId", "1")).values == ["1"]

    run(scenario)


def test_it_is_asked(everything: Spec) -> None:
    """A form, a page to open, the model, the roots; and a page that must be opened first."""

    async def scenario() -> None:
        answers = Accept({"name": "Ann", "check": True}), Accept(), Decline()
        roots = [Root("file:///tmp/project", "The project")]
        async with connected(everything, *answers, roots=roots) as (client, heard):
            form = await client.call_tool("trigger-elicitation-request")
            assert "Name: Ann" in text(form)
            page = {"url": "https://example.com/sign-in", "message": "Sign in, please."}
            assert "User completed" in text(await client.call_tool("trigger-url-elicitation", page))
            assert "User declined" in text(await client.call_tool("trigger-url-elicitation", page))
            assert [(question.mode, question.url) for question in heard.asked] == [
                ("form", None),
                ("url", page["url"]),
                ("url", page["url"]),
            ]
            assert heard.asked[0].schema is not None
            assert heard.asked[1].message == page["message"]
            sampled = await client.call_tool("trigger-sampling-request", {"prompt": "2 + 2?"})
            assert '"text": "4"' in text(sampled)
            with pytest.raises(RemoteProtocolError) as first:
                await client.call_tool("trigger-url-elicitation", {**page, "errorPath": True})
            assert first.value.code == -32042
            assert isinstance(first.value.data, dict)
            assert first.value.data["elicitations"]
            while "file:///tmp/project" not in text(await client.call_tool("get-roots-list")):
                pass  # it asks for them in its own time; each look is a round trip

    run(scenario)


def test_it_hears_progress_logs_and_updates(everything: Spec) -> None:
    """What belongs to a call, and what comes by itself."""
    uri = "demo://resource/dynamic/text/1"

    async def scenario() -> None:
        async with connected(everything) as (client, heard):
            arguments = {"duration": 0.2, "steps": 4}
            done = await client.call_tool(LONG, arguments, progress=heard.step)
            assert "completed" in text(done)
            steps = [(step.progress, step.total) for step in heard.progress]
            assert steps == [(1, 4), (2, 4), (3, 4), (4, 4)]
            await client.set_log_level("debug")
            await client.call_tool("toggle-simulated-logging")
            await heard.until(lambda: [m for m in heard.logs if "-level message" in str(m.data)])
            async with client.subscribe(uris=[uri]) as changes:
                await client.call_tool("toggle-subscriber-updates")
                change = await anext(changes)
                assert (change.kind, change.uri) == ("resource", uri)
            # Both go on for ever, so that the program does not end with its input.

    run(scenario)


def test_it_gives_up_and_goes_on(everything: Spec) -> None:
    """A timeout and a cancellation end one call; this server's tool goes on all the same."""
    arguments = {"duration": 2, "steps": 8}

    async def scenario() -> None:
        async with connected(everything) as (client, heard):
            with pytest.raises(TimedOut):
                await client.call_tool(LONG, arguments, timeout=0.1)
            call = asyncio.create_task(client.call_tool(LONG, arguments, progress=heard.step))
            await heard.until(lambda: heard.progress)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert client.status().pending == 0
            assert text(await client.call_tool("echo", {"message": "alive"})) == "Echo: alive"

    run(scenario)


def test_nothing_is_left_of_three_processes(programs: Path) -> None:
    """As servers are mostly started: npx starts a shell, which starts the server."""
    folder = programs.parent.parent
    arguments = ["--prefix", str(folder), "--no-install", "mcp-server-everything"]
    spec = {"command": "npx", "args": arguments, "env": {"npm_config_cache": str(folder / "cache")}}

    async def scenario() -> None:
        async with connected(spec) as (client, heard):
            assert text(await client.call_tool("echo", {"message": "a"})) == "Echo: a"
            if sys.platform == "linux":
                assert len(processes_with(heard.mark)) >= 2
            # Its timers keep the server alive when its input ends.
            await client.call_tool("toggle-simulated-logging")

    run(scenario)


def test_what_is_long_comes_and_what_is_too_long_costs_one_call(
    programs: Path, tmp_path: Path
) -> None:
    """`server-filesystem` puts a file into its answer twice; the bound is 16 MiB for all of it."""
    spec = {"command": str(programs / "mcp-server-filesystem"), "args": [str(tmp_path)]}
    for millions in (5, 9):
        (tmp_path / f"{millions}.txt").write_text("x" * (millions * 1_000_000), "utf-8")

    async def scenario() -> None:
        async with connected(spec) as (client, _):
            long = await client.call_tool("read_text_file", {"path": str(tmp_path / "5.txt")})
            assert len(text(long)) == 5_000_000
            with pytest.raises(ConnectionLost) as lost:
                await client.call_tool("read_text_file", {"path": str(tmp_path / "9.txt")})
            assert lost.value.tag == "line_too_long"
            written = {"path": str(tmp_path / "w.txt"), "content": "y" * 2_000_000}
            assert "Successfully" in text(await back(client, "write_file", written))

    run(scenario)
    assert (tmp_path / "w.txt").stat().st_size == 2_000_000


def test_it_works_in_a_folder(programs: Path, tmp_path: Path) -> None:
    """`server-filesystem`: files are written, read, edited, found and moved; not outside."""
    spec = {"command": str(programs / "mcp-server-filesystem"), "args": [str(tmp_path)]}
    file, picture = str(tmp_path / "a.txt"), tmp_path / "p.png"
    picture.write_bytes(b"\x89PNG\r\n")

    async def scenario() -> None:
        async with connected(spec) as (client, _):
            assert client.status().era == "handshake"
            assert client.status().capabilities.keys() == {"tools"}
            tools = {tool.name: tool for tool in await client.list_tools()}
            assert tools["write_file"].output_schema is not None
            written = await client.call_tool("write_file", {"path": file, "content": "one\ntwo\n"})
            assert text(written) == f"Successfully wrote to {file}"
            read = await client.call_tool("read_text_file", {"path": file})
            assert text(read) == "one\ntwo\n"
            assert read.structured_content == {"content": "one\ntwo\n"}
            edits = [{"oldText": "two", "newText": "three"}]
            assert "+three" in text(
                await client.call_tool("edit_file", {"path": file, "edits": edits})
            )
            listed = text(await client.call_tool("list_directory", {"path": str(tmp_path)}))
            assert set(listed.splitlines()) == {"[FILE] a.txt", "[FILE] p.png"}
            image = await client.call_tool("read_media_file", {"path": str(picture)})
            assert (kinds(image), image.content[0]["mimeType"]) == (["image"], "image/png")
            found = await client.call_tool(
                "search_files", {"path": str(tmp_path), "pattern": "*.txt"}
            )
            assert text(found) == file
            moved = {"source": file, "destination": str(tmp_path / "b.txt")}
            text(await client.call_tool("move_file", moved))
            outside = await client.call_tool("read_text_file", {"path": "/etc/hostname"})
            assert outside.is_error
            assert "Access denied" in outside.text
            assert "running on stdio" in client.stderr()
            with pytest.raises(RemoteProtocolError) as no_resources:
                await client.read_resource("file:///etc/hostname")
            assert no_resources.value.code == -32601

    run(scenario)
    assert (tmp_path / "b.txt").read_text("utf-8") == "one\nthree\n"


def test_its_roots_are_taken(programs: Path, tmp_path: Path) -> None:
    """`server-filesystem` without a folder asks the client for its roots, and keeps to them."""
    spec = {"command": str(programs / "mcp-server-filesystem")}
    (tmp_path / "a.txt").write_text("a", "utf-8")

    async def scenario() -> None:
        async with connected(spec, roots=lambda: [Root(tmp_path.as_uri())]) as (client, _):
            while str(tmp_path) not in text(await client.call_tool("list_allowed_directories")):
                pass  # it asks for them in its own time; each look is a round trip
            read = await client.call_tool("read_text_file", {"path": str(tmp_path / "a.txt")})
            assert text(read) == "a"

    run(scenario)
