"""A server behind stdio: both eras on one pipe, whatever comes down it."""

from __future__ import annotations

import asyncio
import json
import os
from types import TracebackType

from raxol_mcp import Server, serve_stdio
from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.transports.stdio import Ended
from tests.acceptance.world import (
    CAPABILITIES,
    FORMS,
    VERSION,
    YES,
    Counted,
    Held,
    Json,
    asks,
    at,
    code,
    denial,
    settled,
    text,
    tool,
)
from tests.promises import promise

GREETING: Json = {"protocolVersion": "2025-11-25", "capabilities": FORMS, "clientInfo": {}}


class Pipe:
    """The client's end of a server on stdio."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._answers = asyncio.StreamReader()

    async def __aenter__(self) -> Pipe:
        stdin, self._to_server = os.pipe()
        from_server, stdout = os.pipe()
        self.serving = asyncio.ensure_future(
            serve_stdio(self._server, stdin_fd=stdin, stdout_fd=stdout)
        )
        self._reading, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(self._answers), os.fdopen(from_server, "rb", 0)
        )
        await settled()
        os.close(stdin)  # the server has its own by now
        os.close(stdout)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end_input()
        await asyncio.wait((self.serving,))
        self._reading.close()
        await settled()

    def write(self, line: bytes) -> None:
        """Write one line."""
        os.write(self._to_server, line + b"\n")

    def send(self, *messages: Json) -> None:
        """Write messages, each on a line."""
        for message in messages:
            self.write(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def end_input(self) -> None:
        """Close what the server reads."""
        if self._to_server >= 0:
            os.close(self._to_server)
            self._to_server = -1

    async def line(self) -> Json:
        """Return the next message of the server."""
        message = json.loads(await self._answers.readline())
        assert isinstance(message, dict)
        return message

    async def rest(self) -> list[Json]:
        """Return every message up to the end."""
        return [json.loads(line) for line in (await self._answers.read()).splitlines()]


def call(name: str, id: int | str, **arguments: object) -> Json:
    """Write a call of the handshake era."""
    return {"id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


def test_replies_come_in_lines_and_a_notification_has_none() -> None:
    """server-behaviour §16: blank lines are ignored."""

    async def scenario() -> None:
        async with Pipe(Server()) as pipe:
            pipe.send({"id": 1, "method": "initialize", "params": GREETING})
            pipe.write(b"")
            pipe.write(b"  \r")
            pipe.send({"method": "notifications/initialized"}, {"id": 2, "method": "ping"})
            first, second = await pipe.line(), await pipe.line()
            assert at(first, "result", "serverInfo", "name") == "raxol"
            assert second == {"jsonrpc": "2.0", "id": 2, "result": {}}
            pipe.end_input()
            assert await pipe.rest() == []

    run_virtual(scenario)


@promise("request.no_waiting", "isolation.responsive")
def test_a_slow_call_does_not_hold_up_what_comes_after_it() -> None:
    """specification: request: a transport keeps reading while earlier requests run."""

    async def scenario() -> None:
        held = Held()
        server = Server()
        server.registry.register(tool("wait", held))
        async with Pipe(server) as pipe:
            pipe.send(
                {"id": 1, "method": "initialize", "params": GREETING},
                call("wait", "slow"),
                {"id": 3, "method": "ping"},
            )
            assert [(await pipe.line())["id"] for _ in range(2)] == [1, 3]
            held.let_go()
            assert (await pipe.line())["id"] == "slow"

    run_virtual(scenario)


@promise("elicitation.asked", "elicitation.answers_can_be_read", "elicitation.approval")
def test_a_human_is_asked_over_the_pipe_and_its_answer_read_from_it() -> None:
    """specification: Elicitation: the answer is the reply to the original request."""

    async def scenario() -> None:
        callback = Counted("wiped")
        server = Server(authorizer=asks("Wipe?"))
        server.registry.register(tool("wipe", callback))
        async with Pipe(server) as pipe:
            pipe.send(
                {"id": 1, "method": "initialize", "params": GREETING},
                call("wipe", 2),
                call("wipe", 3),
            )
            assert (await pipe.line())["id"] == 1
            prompts = [await pipe.line(), await pipe.line()]
            assert [at(prompt, "params", "message") for prompt in prompts] == ["Wipe?", "Wipe?"]
            pipe.send({"id": prompts[0]["id"], "result": YES})
            reply = await pipe.line()
            assert (reply["id"], text(reply)) == (2, "wiped")
            pipe.send({"id": prompts[1]["id"], "result": {"action": "decline"}})
            reply = await pipe.line()
            assert (reply["id"], denial(reply)["detail"]) == (3, "user decline")
            assert callback.runs == 1

    run_virtual(scenario)


def test_both_eras_share_the_pipe_however_they_interleave() -> None:
    """MCP 2026-07-28 basic/versioning: a dual-era server on one process."""

    async def scenario() -> None:
        server = Server(authorizer=asks("Wipe?"))
        server.registry.register(tool("wipe"))
        meta = {VERSION: "2026-07-28", CAPABILITIES: FORMS}
        modern: Json = {"name": "wipe", "arguments": {}, "_meta": meta}
        async with Pipe(server) as pipe:
            pipe.send(
                {"id": "d", "method": "server/discover", "params": {"_meta": meta}},
                {"id": 1, "method": "initialize", "params": GREETING},
                call("wipe", 2),
                {"id": "m", "method": "tools/call", "params": modern},
            )
            lines = [await pipe.line() for _ in range(4)]
            discovered, greeted, *others = lines
            assert (discovered["id"], greeted["id"]) == ("d", 1)
            (prompt,) = [line for line in others if "method" in line]
            (asked,) = [line for line in others if "result" in line]
            assert at(asked, "result", "resultType") == "input_required"
            retry = {
                **modern,
                "inputResponses": {"approve": YES},
                "requestState": at(asked, "result", "requestState"),
            }
            pipe.send(
                {"id": "r", "method": "tools/call", "params": retry},
                {"id": prompt["id"], "result": YES},
            )
            replies = [await pipe.line(), await pipe.line()]
            assert {reply["id"] for reply in replies} == {"r", 2}
            assert [text(reply) for reply in replies] == ["done", "done"]

    run_virtual(scenario)


def test_the_end_of_input_ends_serving_after_what_runs_has_ended() -> None:
    """server-behaviour §16: the process exits; what was asked in time is still answered."""

    async def scenario() -> None:
        held = Held()
        server = Server()
        server.registry.register(tool("wait", held))
        async with Pipe(server) as pipe:
            pipe.send({"id": 1, "method": "initialize", "params": GREETING}, call("wait", 2))
            assert (await pipe.line())["id"] == 1
            pipe.end_input()
            await settled()
            assert not pipe.serving.done()
            held.let_go()
            assert [reply["id"] for reply in await pipe.rest()] == [2]
            assert await pipe.serving is Ended.INPUT_ENDED
        assert server.stats()["connections"] == server.stats()["in_flight"] == 0

    run_virtual(scenario)


def test_a_call_that_does_not_end_does_not_keep_the_process() -> None:
    """ours: 5 seconds of draining."""

    async def scenario() -> None:
        held = Held()
        server = Server()
        server.registry.register(tool("wait", held))
        async with Pipe(server) as pipe:
            pipe.send({"id": 1, "method": "initialize", "params": GREETING}, call("wait", 2))
            assert (await pipe.line())["id"] == 1
            began = asyncio.get_running_loop().time()
            pipe.end_input()
            assert await pipe.serving is Ended.INPUT_ENDED
            assert asyncio.get_running_loop().time() - began < 6.0
            assert held.stopped == 1

    run_virtual(scenario)


def test_a_line_that_is_no_message_costs_only_itself() -> None:
    """ours: messages: an error, and the pipe lives; older servers died of `[1]`."""

    async def scenario() -> None:
        async with Pipe(Server()) as pipe:
            for line, expected in (
                (b"[1]", -32600),
                (b"[]", -32600),
                (b"5", -32600),
                (b'"x"', -32600),
                (b"null", -32600),
                (b"garbage", -32700),
                (b"\xff\xfe", -32700),
                (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32700),
                (b"[" * 10_000, -32700),
            ):
                pipe.write(line)
                reply = await pipe.line()
                assert (reply["id"], code(reply)) == (None, expected), line
            pipe.send({"id": 1, "method": "ping"})
            assert await pipe.line() == {"jsonrpc": "2.0", "id": 1, "result": {}}

    run_virtual(scenario)


@promise("transport.declared")
def test_the_transport_of_a_pipe_is_stdio() -> None:
    """specification: transport: declared by who serves it."""
    seen: list[object] = []

    async def act(arguments: object, context: object) -> None:
        seen.append(context.transport)  # type: ignore[attr-defined]  # a Context

    async def scenario() -> None:
        server = Server()
        server.registry.register(tool("act", act))
        async with Pipe(server) as pipe:
            pipe.send({"id": 1, "method": "initialize", "params": GREETING}, call("act", 2))
            assert [(await pipe.line())["id"] for _ in range(2)] == [1, 2]
        assert seen == ["stdio"]

    run_virtual(scenario)
