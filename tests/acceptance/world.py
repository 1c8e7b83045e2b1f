"""A server's clients, in either era, and how what they get is read.

Nothing here knows how the server works inside: messages go in as `decode` makes them from bytes,
and come out as a JSON parser gives them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Final, TypeVar

import pytest

from raxol_mcp import (
    Authorizer,
    ConnectionFacts,
    RequestHandle,
    Server,
    Tool,
    ask,
    decode,
    encode,
    nonblocking,
)
from raxol_mcp.server.authorizer import AuthorizationContext, Decision
from raxol_mcp.testing.virtual_loop import VirtualLoop
from raxol_mcp.wire.jsonrpc import Incoming, Outgoing
from raxol_mcp.wire.meta import EraName

Json = dict[str, object]
T = TypeVar("T")

HANDSHAKE: Final = EraName.HANDSHAKE
STATELESS: Final = EraName.STATELESS
in_both_eras: Final = pytest.mark.parametrize("era", list(EraName), ids=lambda era: era.value)

FORMS: Final[Json] = {"elicitation": {}}
VERSION: Final = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"
OPEN: Final[Json] = {"type": "object"}

# The methods whose results carry cache hints (MCP 2026-07-28 basic/patterns/caching).
CACHED: Final = frozenset(
    {
        "server/discover",
        "tools/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "prompts/list",
    }
)


def decoded(message: object) -> Incoming:
    """Make a decoded message, by way of bytes."""
    return decode(json.dumps(message).encode())


def wire(message: Outgoing | None) -> Json | None:
    """Read a message as its peer would."""
    if message is None:
        return None
    value = json.loads(encode(message))
    assert isinstance(value, dict)
    return value


def at(value: object, *path: str | int) -> object:
    """Follow `path` through objects and arrays."""
    for step in path:
        if isinstance(step, int):
            assert isinstance(value, list), value
            value = value[step]
        else:
            assert isinstance(value, dict), value
            assert step in value, value
            value = value[step]
    return value


def code(reply: Json | None) -> object:
    """Return the code of an error answer."""
    return at(reply, "error", "code")


def names(value: object, key: str = "name") -> list[object]:
    """Return the names of a list's entries."""
    assert isinstance(value, list), value
    return [at(entry, key) for entry in value]


def text(reply: Json | None) -> str:
    """Return the only text of a tool's result."""
    content = at(reply, "result", "content")
    assert isinstance(content, list), reply
    assert len(content) == 1, reply
    found = at(content, 0, "text")
    assert isinstance(found, str)
    return found


def failed(reply: Json | None) -> str:
    """Return the text of a tool's `isError` result."""
    assert at(reply, "result", "isError") is True, reply
    return text(reply)


def denial(reply: Json | None) -> Json:
    """Return the machine-readable refusal in a tool's result."""
    value = json.loads(failed(reply))
    assert isinstance(value, dict)
    return value


def denied(tool: str, detail: str, *, decision: str = "deny") -> Json:
    """Build the refusal that `denial` should find (server-behaviour §6.3)."""
    return {
        "error": "authorization_required",
        "tool": tool,
        "decision": decision,
        "detail": detail,
    }


def busy(scope: str) -> Json:
    """Build what the text of a busy result says (ours: codes and payloads)."""
    return {"error": "server_busy", "scope": scope, "retryable": True}


def asks(prompt: str = "May I?") -> Authorizer:
    """Build an authorizer that asks about everything."""
    return decides(ask(prompt))


def decides(decision: object, **others: object) -> Authorizer:
    """Build an authorizer that says `decision`, and what `others` says about those names."""

    @nonblocking
    def authorizer(
        name: str, arguments: Mapping[str, object], context: AuthorizationContext
    ) -> Decision:
        return others.get(name, decision)  # type: ignore[return-value]  # off contract on purpose

    return authorizer


async def settled() -> None:
    """Return when nothing more happens by itself.

    Virtual time moves only when nothing is ready, so a wait of any length ends after everything
    that is going on.
    """
    await asyncio.sleep(1e-6)


async def passes(seconds: float) -> None:
    """Let virtual time pass."""
    await asyncio.sleep(seconds)


async def outside(awaitable: Awaitable[T]) -> T:
    """Wait for something that needs a thread: time stands still meanwhile."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    with loop.outside():
        return await awaitable


class Held:
    """A callback that waits until it is let go, and counts what became of its runs.

    It takes whatever a tool, resource, prompt or completion is given.
    """

    def __init__(self, value: object = "done") -> None:
        self.value = value
        self.begun = 0
        self.ended = 0
        self.stopped = 0
        self._go = asyncio.Event()

    async def __call__(self, *_: object) -> object:
        self.begun += 1
        try:
            await self._go.wait()
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        self.ended += 1
        return self.value

    def let_go(self) -> None:
        """Let every run end, now and later."""
        self._go.set()


class Counted:
    """A callback that returns at once and counts its runs."""

    def __init__(self, value: object = "done") -> None:
        self.value = value
        self.runs = 0

    async def __call__(self, *_: object) -> object:
        self.runs += 1
        return self.value


def tool(
    name: str,
    callback: Callable[..., object] | None = None,
    *,
    annotations: Json | None = None,
    meta: Json | None = None,
) -> Tool:
    """Make a tool that takes any arguments."""
    return Tool(
        name=name,
        description=f"The {name} tool.",
        input_schema=OPEN,
        callback=callback or Counted(),
        annotations=annotations,
        meta=meta,
    )


class Client:
    """One connection of a server, speaking one era.

    `capabilities` are what it declares: in `initialize` (see `greet`), or in every request.
    With `subscribed` it has a sink, so that it can be pushed to.
    """

    def __init__(
        self,
        server: Server,
        connection: Hashable = "default",
        *,
        era: EraName = HANDSHAKE,
        capabilities: Json | None = None,
        subscribed: bool = True,
        facts: ConnectionFacts | None = None,
    ) -> None:
        self.server = server
        self.connection = connection
        self.era = era
        self.capabilities: Json = {} if capabilities is None else capabilities
        self.subscription = server.subscribe(connection, facts=facts) if subscribed else None
        self._last_id = 0

    # -- sending ------------------------------------------------------------------------------

    def params(
        self, params: Mapping[str, object] | None = None, meta: Mapping[str, object] | None = None
    ) -> Json:
        """Complete params as this era wants them, with `meta` added to `_meta`."""
        whole: Json = dict(meta or {})
        if self.era is STATELESS:
            whole = {VERSION: "2026-07-28", CAPABILITIES: self.capabilities, **whole}
        return {**(params or {}), "_meta": whole} if whole else dict(params or {})

    def message(
        self,
        method: str,
        params: Mapping[str, object] | None = None,
        *,
        id: int | str | None = None,
        meta: Mapping[str, object] | None = None,
    ) -> Json:
        """Write a request; its id is new unless given."""
        if id is None:
            self._last_id += 1
            id = self._last_id
        return {"jsonrpc": "2.0", "id": id, "method": method, "params": self.params(params, meta)}

    async def handle(self, message: object, *, within: float | None = None) -> Json | None:
        """Let the server handle one message of any form; return its reply."""
        reply = await self.server.handle_message(decoded(message), self.connection, within)
        return wire(reply)

    async def ask(
        self,
        method: str,
        params: Mapping[str, object] | None = None,
        *,
        id: int | str | None = None,
        meta: Mapping[str, object] | None = None,
        within: float | None = None,
    ) -> Json | None:
        """Send a request and wait in `handle_message` for the reply."""
        return await self.handle(self.message(method, params, id=id, meta=meta), within=within)

    async def result(
        self,
        method: str,
        params: Mapping[str, object] | None = None,
        *,
        id: int | str | None = None,
        meta: Mapping[str, object] | None = None,
    ) -> Json:
        """Send a request; return its result without what the era adds to every one."""
        reply = await self.ask(method, params, id=id, meta=meta)
        return self.payload(reply, cached=method in CACHED)

    def payload(self, reply: Json | None, *, cached: bool = False) -> Json:
        """Return a result without what this era adds, having checked that it is there."""
        found = at(reply, "result")
        assert isinstance(found, dict), reply
        if self.era is STATELESS:
            found = dict(found)
            assert found.pop("resultType") == "complete"
            meta = dict(found.pop("_meta"))
            assert at(meta.pop(SERVER_INFO), "name") == self.server.name
            if meta:
                found["_meta"] = meta
            if cached:
                assert found.pop("ttlMs") == 0
                assert found.pop("cacheScope") == "private"
        assert "resultType" not in found
        assert "ttlMs" not in found
        return found

    async def error(
        self,
        method: str,
        params: Mapping[str, object] | None = None,
        *,
        meta: Mapping[str, object] | None = None,
    ) -> Json:
        """Send a request that must fail; return its error object."""
        reply = await self.ask(method, params, meta=meta)
        found = at(reply, "error")
        assert isinstance(found, dict)
        assert reply is not None
        assert "result" not in reply
        return found

    async def call(self, name: str, arguments: Mapping[str, object] | None = None) -> Json | None:
        """Call a tool and wait in `handle_message`."""
        return await self.ask("tools/call", {"name": name, "arguments": arguments or {}})

    def send(
        self,
        method: str,
        params: Mapping[str, object] | None = None,
        *,
        id: int | str | None = None,
        meta: Mapping[str, object] | None = None,
        owner: asyncio.Task[object] | None = None,
    ) -> RequestHandle:
        """Send a request without waiting: `request`."""
        message = decoded(self.message(method, params, id=id, meta=meta))
        return self.server.request(message, self.connection, owner=owner)

    def start(
        self,
        name: str,
        arguments: Mapping[str, object] | None = None,
        *,
        id: int | str | None = None,
    ) -> RequestHandle:
        """Call a tool without waiting."""
        return self.send("tools/call", {"name": name, "arguments": arguments or {}}, id=id)

    async def tell(self, method: str, params: Mapping[str, object] | None = None) -> None:
        """Send a notification, which must get no reply."""
        message: Json = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        assert await self.handle(message) is None

    async def greet(self, version: str = "2025-11-25") -> None:
        """Open a session, in the era that has them."""
        if self.era is HANDSHAKE:
            await self.result(
                "initialize",
                {
                    "protocolVersion": version,
                    "capabilities": self.capabilities,
                    "clientInfo": {"name": "probe", "version": "0"},
                },
                id="greeting",
            )
            await self.tell("notifications/initialized")

    # -- receiving ----------------------------------------------------------------------------

    def pushes(self) -> list[Json]:
        """Take everything that was pushed so far."""
        assert self.subscription is not None, "not subscribed"
        return [found for push in self.subscription.taken() if (found := wire(push)) is not None]

    def end(self) -> None:
        """End the connection."""
        assert self.subscription is not None, "not subscribed"
        self.subscription.end()

    def why_ended(self) -> str | None:
        """Say why the connection ended; None while it lives."""
        assert self.subscription is not None, "not subscribed"
        return self.subscription.reason

    async def next_push(self) -> Json:
        """Wait for the next push."""
        assert self.subscription is not None, "not subscribed"
        push = wire(await self.subscription.next())
        assert push is not None
        return push

    def prompt(self) -> Json:
        """Take the one push there is, which must be a question."""
        pushes = self.pushes()
        assert [push.get("method") for push in pushes] == ["elicitation/create"], pushes
        return pushes[0]

    # -- answering questions ------------------------------------------------------------------

    async def answer(self, question: Json, result: object) -> None:
        """Answer a pushed question; the answer itself must get no reply."""
        message = {"jsonrpc": "2.0", "id": question["id"], "result": result}
        assert await self.handle(message) is None

    async def approve(self, question: Json) -> None:
        """Say yes to a pushed question."""
        await self.answer(question, YES)


YES: Final[Json] = {"action": "accept", "content": {"approve": True}}


class Question:
    """A question to a client, in the form of its era, and the call that waits for the answer.

    Handshake: a pushed request, while the call stays outstanding. Stateless: the result of the
    call, and the answer comes with the call made again.
    """

    def __init__(
        self, client: Client, call: Json, requests: Json, handle: RequestHandle | None, reply: Json
    ) -> None:
        self.client = client
        self.requests = requests
        self._call = call
        self._handle = handle
        self.reply = reply  # stateless: the input_required result; handshake: the pushed request

    @property
    def params(self) -> object:
        """Return the params of the only request."""
        (request,) = self.requests.values()
        return at(request, "params")

    def retry(self, answers: Json, **changes: object) -> Json:
        """Write the request of the stateless era that brings the answers back."""
        return {
            **self._call,
            "inputResponses": answers,
            "requestState": at(self.reply, "result", "requestState"),
            **changes,
        }

    async def answered(self, *given: object) -> Json | None:
        """Answer every request in order; return what the call is answered in the end."""
        if self._handle is None:
            answers = dict(zip(self.requests, given, strict=True))
            return await self.client.ask("tools/call", self.retry(answers))
        *results, last = given
        pushed = self.reply
        for result in results:
            await self.client.answer(pushed, result)
            pushed = await self.client.next_push()
        await self.client.answer(pushed, last)
        return wire(await self._handle)


async def question(
    client: Client, name: str, arguments: Mapping[str, object] | None = None
) -> Question:
    """Call a tool that must ask before it runs; return its (first) question."""
    call: Json = {"name": name, "arguments": arguments or {}}
    if client.era is STATELESS:
        reply = await client.ask("tools/call", call)
        assert at(reply, "result", "resultType") == "input_required", reply
        requests = at(reply, "result", "inputRequests")
        assert isinstance(requests, dict)
        assert reply is not None
        return Question(client, call, requests, None, reply)
    handle = client.send("tools/call", call)
    await settled()
    assert not handle.done(), "still outstanding"
    (pushed,) = client.pushes()
    return Question(client, call, {"": pushed}, handle, pushed)
