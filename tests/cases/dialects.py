"""The two eras as a client speaks them, so that one case is tried in both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

import pytest

from tests.cases.fixture_server import Knobs
from tests.cases.http_peers import HttpPeer
from tests.cases.peers import MemoryPeer, Message, Peer, StdioPeer

__all__ = [
    "ASKABLE",
    "BOTH_ERAS",
    "EVERY_WIRE",
    "HTTP",
    "LEGACY",
    "MEMORY",
    "MODERN",
    "STDIO",
    "Dialect",
    "Handshake",
    "Question",
    "Stateless",
    "Wire",
    "accept",
    "case",
    "code_of",
    "journal_of",
    "meta_of",
    "result_of",
    "text_of",
]

PREFIX: Final = "io.modelcontextprotocol/"
MODERN_VERSION: Final = "2026-07-28"
ASKABLE: Final[Message] = {"elicitation": {"form": {}}}
CLIENT: Final[Message] = {"name": "probe", "version": "0"}


def meta_of(capabilities: Message | None = None, **more: object) -> Message:
    """Write the `_meta` of a stateless request; `more` are keys below the common prefix."""
    meta: Message = {
        PREFIX + "protocolVersion": MODERN_VERSION,
        PREFIX + "clientInfo": CLIENT,
        PREFIX + "clientCapabilities": capabilities or {},
    }
    return {**meta, **{PREFIX + name: value for name, value in more.items()}}


def accept(**content: object) -> Message:
    """Write the answer of a human who sent the form."""
    return {"action": "accept", "content": content}


@dataclass(frozen=True)
class Question:
    """What the human is asked about one call. `key` names it, `state` is what to carry back."""

    id: object
    key: str
    params: Message
    state: object = None


class Dialect(ABC):
    """How one era is spoken."""

    name: str
    unknown_tool: int
    unknown_resource: int

    def __repr__(self) -> str:
        return self.name

    @abstractmethod
    async def greet(self, peer: Peer, capabilities: Message | None = None) -> None:
        """Do what comes before the first request. `capabilities` hold for the whole connection."""

    @abstractmethod
    def request(
        self,
        id: object,
        method: str,
        params: Mapping[str, object] | None = None,
        *,
        meta: Mapping[str, object] | None = None,
        capabilities: Message | None = None,
    ) -> Message:
        """Write a request. `capabilities` count in the era where each request has its own."""

    def call(
        self,
        id: object,
        name: str,
        arguments: Mapping[str, object] | None = None,
        *,
        meta: Mapping[str, object] | None = None,
        capabilities: Message | None = None,
    ) -> Message:
        """Write a `tools/call`."""
        params = {"name": name, "arguments": {} if arguments is None else dict(arguments)}
        return self.request(id, "tools/call", params, meta=meta, capabilities=capabilities)

    @abstractmethod
    async def put(self, peer: Peer, call: Message) -> Question:
        """Send a call and wait for the first question it leads to."""

    @abstractmethod
    async def reply(self, peer: Peer, call: Message, question: Question, answer: object) -> Message:
        """Answer the one question of a call and wait for what becomes of the call."""

    async def dialog(self, peer: Peer, call: Message, answer: object) -> Message:
        """Send a call, answer its one question, return the call's own answer."""
        return await self.reply(peer, call, await self.put(peer, call), answer)


class Handshake(Dialect):
    """2024-11-05 to 2025-11-25."""

    unknown_tool = -32601
    unknown_resource = -32002

    def __init__(self, version: str) -> None:
        self.version = version
        self.name = version

    async def greet(self, peer: Peer, capabilities: Message | None = None) -> None:
        params: Message = {
            "protocolVersion": self.version,
            "capabilities": capabilities or {},
            "clientInfo": CLIENT,
        }
        answer = await peer.request(self.request("init", "initialize", params))
        assert result_of(answer)["protocolVersion"] == self.version
        await peer.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def request(
        self,
        id: object,
        method: str,
        params: Mapping[str, object] | None = None,
        *,
        meta: Mapping[str, object] | None = None,
        capabilities: Message | None = None,
    ) -> Message:
        message: Message = {"jsonrpc": "2.0", "id": id, "method": method}
        if params is not None or meta is not None:
            whole = dict(params or {})
            if meta is not None:
                whole["_meta"] = dict(meta)
            message["params"] = whole
        return message

    async def put(self, peer: Peer, call: Message) -> Question:
        after = len(peer.seen)
        await peer.send(call)
        asked = await peer.until(
            lambda message: "method" in message and "id" in message, after=after
        )
        return Question(asked["id"], "", cast(Message, asked["params"]))

    async def reply(self, peer: Peer, call: Message, question: Question, answer: object) -> Message:
        after = len(peer.seen)
        await peer.send({"jsonrpc": "2.0", "id": question.id, "result": answer})
        return await peer.answer(call["id"], after=after)


class Stateless(Dialect):
    """2026-07-28."""

    name = MODERN_VERSION
    unknown_tool = -32602
    unknown_resource = -32602

    async def greet(self, peer: Peer, capabilities: Message | None = None) -> None:
        """Nothing: each request says it all."""

    def request(
        self,
        id: object,
        method: str,
        params: Mapping[str, object] | None = None,
        *,
        meta: Mapping[str, object] | None = None,
        capabilities: Message | None = None,
    ) -> Message:
        whole = {**(params or {}), "_meta": {**meta_of(capabilities), **(meta or {})}}
        return {"jsonrpc": "2.0", "id": id, "method": method, "params": whole}

    async def put(self, peer: Peer, call: Message) -> Question:
        result = result_of(await peer.request(call))
        assert result["resultType"] == "input_required", result
        requests = cast(dict[str, Message], result["inputRequests"])
        key = next(iter(requests))
        params = cast(Message, requests[key]["params"])
        return Question(call["id"], key, params, result["requestState"])

    async def reply(self, peer: Peer, call: Message, question: Question, answer: object) -> Message:
        return await peer.request(self.retry(call, question, answer))

    def retry(self, call: Message, question: Question, answer: object) -> Message:
        """Write the call once more, with an answer and the state it is bound to."""
        params = {
            **cast(Message, call["params"]),
            "inputResponses": {question.key: answer},
            "requestState": question.state,
        }
        return {**call, "id": f"{call['id']} again", "params": params}


LEGACY: Final = Handshake("2025-11-25")
MODERN: Final = Stateless()
BOTH_ERAS: Final[Sequence[Dialect]] = (LEGACY, MODERN)

Scenario = Callable[[Peer, Dialect], Awaitable[None]]


class Wire:
    """A way to reach the fixture. `run` gives a scenario its own server and its own connection."""

    def __init__(
        self, name: str, run: Callable[[Callable[[Peer], Awaitable[None]], Knobs], None]
    ) -> None:
        self.name = name
        self.run = run


MEMORY: Final = Wire("memory", MemoryPeer.run)
STDIO: Final = Wire("stdio", StdioPeer.run)
HTTP: Final = Wire("http", HttpPeer.run)
EVERY_WIRE: Final = (MEMORY, STDIO, HTTP)


def case(
    *,
    wires: Sequence[Wire] = EVERY_WIRE,
    eras: Sequence[Dialect] = BOTH_ERAS,
    knobs: Knobs | None = None,
) -> Callable[[Scenario], Callable[[Wire, Dialect], None]]:
    """Make a test of a scenario `(peer, era)`: tried over each wire and in each era.

    The server is a new one each time. When the scenario is over the input is closed, and a server
    that does not end well fails the test.
    """

    def made(scenario: Scenario) -> Callable[[Wire, Dialect], None]:
        @pytest.mark.parametrize("era", eras, ids=repr)
        @pytest.mark.parametrize("wire", wires, ids=lambda wire: wire.name)
        def runs(wire: Wire, era: Dialect) -> None:
            wire.run(lambda peer: scenario(peer, era), knobs or Knobs())

        runs.__name__ = scenario.__name__
        runs.__doc__ = scenario.__doc__
        runs.__module__ = scenario.__module__
        return runs

    return made


def result_of(message: Message) -> Message:
    """Return the result of an answer that has one."""
    assert "result" in message, message
    return cast(Message, message["result"])


def code_of(message: Message) -> object:
    """Return the error code of an answer that has one."""
    assert "error" in message, message
    return cast(Message, message["error"])["code"]


def text_of(message: Message, *, failed: bool = False) -> str:
    """Return the one text item of a tool's result, which is a failure or not."""
    result = result_of(message)
    assert result.get("isError", False) is failed, result
    (item,) = cast(list[Message], result["content"])
    assert item["type"] == "text", item
    return str(item["text"])


async def journal_of(peer: Peer, era: Dialect) -> list[str]:
    """Ask the fixture what ran."""
    answer = await peer.request(era.call("journal", "journal"))
    structured = cast(Message, result_of(answer)["structuredContent"])
    return cast(list[str], structured["result"])
