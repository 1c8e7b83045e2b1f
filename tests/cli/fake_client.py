"""A client for the commands, and the server behind it, without a transport."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from raxol_mcp.cli.surroundings import Surroundings
from raxol_mcp.client.answers import ElicitRequest, Reply
from raxol_mcp.client.app import Client
from raxol_mcp.client.results import (
    CallResult,
    ClientStatus,
    LogMessage,
    Progress,
    PromptResult,
    ReadResult,
    RemoteTool,
)
from raxol_mcp.client.spec import ClientSpec
from raxol_mcp.errors import RaxolError

ECHO = RemoteTool(
    "echo",
    None,
    "Say it again.",
    {"type": "object", "properties": {"text": {"type": "string"}, "count": {"type": "integer"}}},
)


async def echoes(client: "FakeClient", arguments: dict[str, object]) -> CallResult:
    """Answer a call with its arguments."""
    return CallResult([{"type": "text", "text": repr(arguments)}])


@dataclass
class FakeServer:
    """What the clients of one test find. `did` is what was done with them, in order."""

    tools: list[RemoteTool] = field(default_factory=lambda: [ECHO])
    call: Callable[["FakeClient", dict[str, object]], Awaitable[CallResult]] = echoes
    read: ReadResult = field(default_factory=lambda: ReadResult([]))
    prompt: PromptResult = field(default_factory=lambda: PromptResult("", []))
    refuses: dict[str, RaxolError] = field(default_factory=dict)
    era: str = "handshake"
    capabilities: dict[str, object] = field(default_factory=dict)
    stderr: str = ""
    did: list[tuple[object, ...]] = field(default_factory=list)

    def client(self, spec: ClientSpec, **handlers: Any) -> "FakeClient":
        """Make a client."""
        return FakeClient(self, spec, **handlers)

    @property
    def surroundings(self) -> Surroundings:
        """Give what a command line needs to find this server."""
        return Surroundings(client_factory=cast("Callable[..., Client]", self.client))


class FakeClient:
    """The part of `Client` that commands use."""

    def __init__(
        self,
        server: FakeServer,
        spec: ClientSpec,
        *,
        elicitation: Callable[[ElicitRequest], Awaitable[Reply]] | None = None,
        logging: Callable[[LogMessage], object] | None = None,
    ) -> None:
        self._server = server
        self.spec = spec
        self.elicitation = elicitation
        self.logging = logging
        self.progress: Callable[[Progress], object] | None = None
        self._status = "starting"

    def _does(self, *what: object) -> None:
        self._server.did.append(what)
        error = self._server.refuses.get(str(what[0]))
        if error is not None:
            raise error

    async def start(self) -> None:
        self._does("start", self.spec.command or self.spec.url)

    async def stop(self) -> None:
        self._does("stop")

    async def await_ready(self, *patience: float, **options: object) -> ClientStatus:
        self._does("await_ready", *patience, *filter(None, [options.get("timeout")]))
        await asyncio.sleep(0)
        self._status = "ready"
        return self.status()

    def status(self) -> ClientStatus:
        return ClientStatus(
            self.spec.name,
            self._status,
            version="2025-11-25",
            era=self._server.era,
            capabilities=self._server.capabilities,
        )

    async def list_tools(self, **options: object) -> list[RemoteTool]:
        self._does("list_tools", options.get("timeout"))
        return self._server.tools

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, object] | None = None,
        *,
        progress: Callable[[Progress], object] | None = None,
        **options: object,
    ) -> CallResult:
        self._does("call_tool", name, dict(arguments or {}), options.get("timeout"))
        self.progress = progress
        return await self._server.call(self, dict(arguments or {}))

    async def read_resource(self, uri: str, **options: object) -> ReadResult:
        self._does("read_resource", uri, options.get("timeout"))
        return self._server.read

    async def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, **options: object
    ) -> PromptResult:
        self._does("get_prompt", name, dict(arguments or {}), options.get("timeout"))
        return self._server.prompt

    async def set_log_level(self, level: str) -> None:
        self._does("set_log_level", level)

    def stderr(self) -> str:
        return self._server.stderr
