"""The official Python SDK's client, in both of its eras, against the fixture over stdio.

Somebody else's reading of the specification: it lists, calls, is asked, approves, declines,
cancels, and hears progress, logs and changes.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import mcp_types as types
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.session import ClientRequestContext

from tests.cases.fixture_server import BYTES, INSTRUCTIONS
from tests.cases.peers import FIXTURE

ROOT: Final = Path(__file__).parents[2]
BOUND: Final = 20.0
LEGACY: Final = "legacy"
MODERN: Final = "2026-07-28"
MODES: Final = (LEGACY, MODERN, "auto")

# The SDK warns about methods that its newest revision has dropped, which the older ones have.
pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")

Human = Callable[[types.ElicitRequestParams], types.ElicitResult]


class Heard:
    """What a client was told besides answers."""

    def __init__(self) -> None:
        self.questions: list[str] = []
        self.logs: list[tuple[str, object]] = []
        self.progress: list[float] = []
        self.messages: list[object] = []

    async def progressed(self, progress: float, total: float | None, message: str | None) -> None:
        """Note one step."""
        self.progress.append(progress)

    async def logged(self, params: types.LoggingMessageNotificationParams) -> None:
        """Note one log message."""
        self.logs.append((params.level, params.data))

    async def message(self, message: object) -> None:
        """Note whatever else comes."""
        self.messages.append(message)


@asynccontextmanager
async def connected(
    mode: str, *, human: Human | None = None, journal: Path | None = None, **options: Any
) -> AsyncIterator[tuple[Client, Heard]]:
    """Connect a client to a new process. `human` answers forms; without one none can be asked."""
    heard = Heard()

    async def asked(
        context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult:
        assert human is not None
        heard.questions.append(params.message)
        return human(params)

    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    knobs = {} if journal is None else {"journal": str(journal)}
    server = StdioServerParameters(
        command=sys.executable,
        args=[str(FIXTURE), json.dumps(knobs)],
        env={"PYTHONPATH": path},
    )
    client = Client(
        server,
        mode=mode,
        read_timeout_seconds=BOUND,
        elicitation_callback=None if human is None else asked,
        logging_callback=heard.logged,
        message_handler=heard.message,
        **options,
    )
    async with client:
        yield client, heard


def accepts(**content: Any) -> Human:
    """A human who sends the form."""
    return lambda params: types.ElicitResult(action="accept", content=content)


def declines(params: types.ElicitRequestParams) -> types.ElicitResult:
    """A human who says no."""
    return types.ElicitResult(action="decline")


def dismisses(params: types.ElicitRequestParams) -> types.ElicitResult:
    """A human who closes the dialog."""
    return types.ElicitResult(action="cancel")


def text_of(result: types.CallToolResult) -> str:
    """Return the one text of a result."""
    (item,) = result.content
    assert isinstance(item, types.TextContent)
    return item.text


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    """Run a scenario; nothing here should come near the bound."""

    async def bounded() -> None:
        async with asyncio.timeout(BOUND):
            await scenario()

    asyncio.run(bounded())


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    """Each way in which the client can connect."""
    return str(request.param)


def test_it_connects_and_lists(mode: str) -> None:
    """The handshake, `server/discover`, and the probe that chooses between them."""

    async def scenario() -> None:
        async with connected(mode) as (client, _):
            expected = "2025-11-25" if mode == LEGACY else "2026-07-28"
            assert client.protocol_version == expected
            if mode != MODERN:  # pinned, it asks the server nothing
                assert client.server_info is not None
                assert client.server_info.name == "fixture"
                assert client.instructions == INSTRUCTIONS
                assert client.server_capabilities.tools is not None
            tools = await client.list_tools()
            names = [tool.name for tool in tools.tools]
            assert names[:2] == ["echo", "sleep"]
            assert "off" not in names
            resources = {r.name: r.uri for r in (await client.list_resources()).resources}
            assert resources["a"] == "mem://a"
            templates = (await client.list_resource_templates()).resource_templates
            assert "file:///docs/{name}" in [t.uri_template for t in templates]
            prompts = (await client.list_prompts()).prompts
            assert [p.name for p in prompts][:1] == ["greet"]

    run(scenario)


def test_it_calls_and_reads(mode: str) -> None:
    """Tools, resources, prompts and completions; results, failures and errors."""

    async def scenario() -> None:
        async with connected(mode) as (client, _):
            await client.list_tools()
            result = await client.call_tool("echo", {"text": "Grüße ✓"})
            assert (text_of(result), result.is_error) == ("Grüße ✓", False)
            structured = await client.call_tool("out_point", {"mode": "right"})
            assert structured.structured_content == {"x": 1, "y": 2}
            failed = await client.call_tool("typed", {"s": 7})
            assert failed.is_error
            assert "'s'" in text_of(failed)
            assert text_of(await client.call_tool("boom", {})) == "Error: RuntimeError"
            (image,) = (await client.call_tool("img", {})).content
            assert isinstance(image, types.ImageContent)
            with pytest.raises(MCPError) as unknown:
                await client.call_tool("no_such_tool", {})
            assert unknown.value.code == (-32601 if mode == LEGACY else -32602)

            (text,) = (await client.read_resource("mem://a")).contents
            assert isinstance(text, types.TextResourceContents)
            assert text.text == "a"
            (blob,) = (await client.read_resource("mem://bin")).contents
            assert isinstance(blob, types.BlobResourceContents)
            assert base64.b64decode(blob.blob) == BYTES
            (doc,) = (await client.read_resource("file:///docs/a.txt")).contents
            assert isinstance(doc, types.TextResourceContents)
            with pytest.raises(MCPError) as absent:
                await client.read_resource("mem://absent")
            assert absent.value.code == (-32002 if mode == LEGACY else -32602)

            prompt = await client.get_prompt("greet", {"who": "Ann"})
            assert isinstance(prompt.messages[0].content, types.TextContent)
            assert prompt.messages[0].content.text == "Say hello to Ann."
            reference = types.PromptReference(type="ref/prompt", name="greet")
            completed = await client.complete(reference, {"name": "who", "value": "n150"})
            assert len(completed.completion.values) == 100
            assert completed.completion.has_more is True

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
def test_its_human_is_asked(
    mode: str, human: Human, said: str, deleted: bool, tmp_path: Path
) -> None:
    """A form before the tool runs: parked in the one era, `input_required` in the other."""
    journal = tmp_path / "journal"

    async def scenario() -> None:
        async with connected(mode, human=human, journal=journal) as (client, heard):
            result = await client.call_tool("confirm_delete", {"target": "report"})
            assert said in text_of(result)
            assert heard.questions == ["Delete report?"]

    run(scenario)
    assert ("deleted:report" in journal.read_text("utf-8").splitlines()) is deleted


@pytest.mark.parametrize(
    ("human", "deleted"),
    [(accepts(approve=True), True), (accepts(approve=False), False), (declines, False)],
    ids=["approves", "unticks", "declines"],
)
def test_its_human_decides_for_the_authorizer(
    mode: str, human: Human, deleted: bool, tmp_path: Path
) -> None:
    """The approval that an authorizer asks for."""
    journal = tmp_path / "journal"

    async def scenario() -> None:
        async with connected(mode, human=human, journal=journal) as (client, heard):
            result = await client.call_tool("ask_first", {"target": "report"})
            assert result.is_error is not deleted
            assert heard.questions == ["Run ask_first?"]

    run(scenario)
    assert ("deleted:report" in journal.read_text("utf-8").splitlines()) is deleted


def test_it_answers_several_questions_and_rounds(mode: str) -> None:
    """Two forms for one call, a form whose content is checked, and a round of the tool's own."""

    async def scenario() -> None:
        async with connected(mode, human=accepts(confirm=True)) as (client, heard):
            assert text_of(await client.call_tool("ask_two", {})) == "True True"
            assert heard.questions == ["First?", "Second?"]
        async with connected(mode, human=accepts(age=20, color="Red")) as (client, heard):
            assert text_of(await client.call_tool("ask_age", {})) == "20 Red"
        async with connected(mode, human=accepts(answer="42")) as (client, heard):
            answered = json.loads(text_of(await client.call_tool("ask", {"q": "What?"})))
            assert answered["answered"]["content"] == {"answer": "42"}
            assert heard.questions == ["What?"]

    run(scenario)


def test_without_a_human_nobody_is_asked(mode: str, tmp_path: Path) -> None:
    """A client that did not declare elicitation: refused, and nothing runs."""
    journal = tmp_path / "journal"

    async def scenario() -> None:
        async with connected(mode, journal=journal) as (client, _):
            if mode == LEGACY:
                assert (await client.call_tool("confirm_delete", {"target": "a"})).is_error
            else:
                with pytest.raises(MCPError) as refused:
                    await client.call_tool("confirm_delete", {"target": "a"})
                assert refused.value.code == -32021

    run(scenario)
    assert "deleted:a" not in journal.read_text("utf-8")


def test_it_cancels(mode: str) -> None:
    """Leaving the call sends the cancellation; the tool stops, and the connection lives."""

    async def scenario() -> None:
        async with connected(mode) as (client, _):
            with anyio.CancelScope() as scope:

                async def leaves() -> None:
                    while "start:sleep:c" not in text_of(await client.call_tool("journal", {})):
                        pass  # each look is a round trip
                    scope.cancel()

                async with anyio.create_task_group() as group:
                    group.start_soon(leaves)
                    await client.call_tool("sleep", {"ms": 600_000, "tag": "c"})
            assert scope.cancelled_caught
            while "cancelled:c" not in text_of(await client.call_tool("journal", {})):
                pass  # each look is a round trip
            assert text_of(await client.call_tool("echo", {"text": "alive"})) == "alive"

    run(scenario)


def test_it_hears_progress_and_logs(mode: str) -> None:
    """Progress for a call that wants it; logs at the level of the session or of the request."""

    async def scenario() -> None:
        log_level = None if mode == LEGACY else "warning"
        async with connected(mode, log_level=log_level) as (client, heard):
            if mode == LEGACY:
                await client.set_logging_level("warning")
            await client.call_tool(
                "progress", {"n": 5, "delay_ms": 1}, progress_callback=heard.progressed
            )
            await client.call_tool("logs", {"levels": ["debug", "info", "warning", "emergency"]})
            # What belongs to a call comes before its answer; the client hands it on by tasks.
            await client.call_tool("echo", {"text": "x"})
            assert heard.progress == [1, 2, 3, 4, 5]
            assert heard.logs == [
                ("warning", {"level": "warning"}),
                ("emergency", {"level": "emergency"}),
            ]

    run(scenario)


def test_it_hears_of_changes(mode: str) -> None:
    """A new tool and an updated resource: subscribed, or listened for."""

    async def scenario() -> None:
        async with connected(mode) as (client, heard):
            if mode == LEGACY:
                await client.subscribe_resource("mem://a")
                await client.call_tool("add_tool", {"name": "late"})
                await client.call_tool("touch_resource", {"uri": "mem://a"})
                await client.call_tool("touch_resource", {"uri": "mem://b"})
                await client.send_ping()
                kinds = [type(message) for message in heard.messages]
                assert kinds.count(types.ToolListChangedNotification) == 1
                assert kinds.count(types.ResourceUpdatedNotification) == 1
            else:
                async with client.listen(
                    tools_list_changed=True, resource_subscriptions=["mem://a"]
                ) as changes:
                    assert changes.honored.tools_list_changed is True
                    await client.call_tool("add_tool", {"name": "late"})
                    first = await anext(changes)
                    await client.call_tool("touch_resource", {"uri": "mem://a"})
                    second = await anext(changes)
                    assert [type(first).__name__, type(second).__name__] == [
                        "ToolsListChanged",
                        "ResourceUpdated",
                    ]
            assert "late" in [tool.name for tool in (await client.list_tools()).tools]

    run(scenario)


def test_many_clients_of_both_eras_work_at_once() -> None:
    """Each with a process of its own and fifty calls in flight."""

    async def scenario() -> None:
        async def works(mode: str) -> None:
            async with connected(mode) as (client, _):
                texts = [f"{mode} {at}" for at in range(50)]
                calls = [client.call_tool("echo", {"text": text}) for text in texts]
                results = await asyncio.gather(*calls)
                assert [text_of(result) for result in results] == texts

        await asyncio.gather(*(works(mode) for mode in MODES))

    run(scenario)
