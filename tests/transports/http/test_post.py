"""The stateless era over HTTP, and what every POST has to be."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from raxol_mcp import Server, Tool, allowlist
from raxol_mcp.errors import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
)
from raxol_mcp.testing.virtual_loop import run_virtual
from tests.transports.http.client import Json, Reply
from tests.transports.http.world import CAPABILITIES, MODERN, VERSION, World, code_of, text_of

ECHO: Json = {"name": "echo", "arguments": {"text": "hi"}}


def test_a_call_is_answered_with_one_json_body() -> None:
    """MCP 2026-07-28 basic/transports/streamable-http §Receiving Messages"""

    async def main() -> None:
        world = World()
        reply = await world.call(7, "echo", {"text": "hi"}).ended()
        assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
        assert reply.headers["content-length"] == str(len(reply.body))
        assert (reply.json()["id"], text_of(reply.json())) == (7, "hi")
        assert "mcp-session-id" not in reply.headers
        assert world.stats()["connections"] == 0

    run_virtual(main)


def test_what_comes_before_the_answer_makes_it_a_stream() -> None:
    """MCP 2026-07-28 basic/transports/streamable-http §Receiving Messages"""

    async def main() -> None:
        world = World()
        call = world.call(1, "progress", {"steps": 2}, meta={"progressToken": 0})
        reply = await call.ended()
        assert reply.headers["content-type"] == "text/event-stream"
        assert reply.headers["x-accel-buffering"] == "no"
        first, second, answer = reply.messages()
        assert [first["params"]["progress"], second["params"]["progress"]] == [1, 2]
        assert first["params"]["progressToken"] == 0
        assert text_of(answer) == "done"
        assert all(not event.id for event in reply.events()), "nothing can be resumed here"

    run_virtual(main)


def test_messages_go_to_the_stream_of_their_own_request_although_ids_are_equal() -> None:
    """MCP 2026-07-28 streamable-http §Receiving Messages; CVE-2026-25536"""

    async def main() -> None:
        world = World()
        calls = [
            world.call(1, "progress", {"steps": 20}, meta={"progressToken": "tok"})
            for _ in range(5)
        ]
        for call in calls:
            messages = (await call.ended()).messages()
            steps = [message["params"]["progress"] for message in messages[:-1]]
            assert steps == list(range(1, 21))
            assert text_of(messages[-1]) == "done"

    run_virtual(main)


def test_a_client_that_leaves_cancels_its_call() -> None:
    """MCP 2026-07-28 streamable-http §Cancellation"""

    async def main() -> None:
        world = World()
        call = world.call(1, "sleep", {"seconds": 60, "tag": "a"})
        await asyncio.sleep(0.3)
        assert world.journal == ["start:a"]
        call.leave()
        await call.ended()
        await asyncio.sleep(0)
        assert world.journal == ["start:a", "cancelled:a"]
        assert world.stats()["connections"] == world.stats()["in_flight"] == 0
        assert asyncio.get_running_loop().time() < 1

    run_virtual(main)


def test_a_client_that_leaves_in_the_middle_of_a_stream_cancels_its_call() -> None:
    """MCP 2026-07-28 streamable-http §Cancellation"""

    async def main() -> None:
        world = World()
        call = world.call(1, "progress", {"steps": 1000}, meta={"progressToken": 1})
        await call.message()
        call.leave()
        await call.ended()
        await asyncio.sleep(0)
        assert world.stats()["connections"] == world.stats()["streams"] == 0
        assert asyncio.get_running_loop().time() < 1

    run_virtual(main)


def test_a_long_silence_begins_a_stream_with_comments() -> None:
    """MCP 2026-07-28 streamable-http §Receiving Messages; ours: docs/limits.md"""

    async def main() -> None:
        world = World(keepalive=15.0)
        call = world.call(1, "sleep", {"seconds": 40})
        reply = await call.ended()
        assert reply.headers["content-type"] == "text/event-stream"
        assert reply.body.count(b":\n\n") >= 1
        assert text_of(reply.messages()[-1]) == "slept "

    run_virtual(main)


def test_a_listen_is_acknowledged_first_and_told_what_it_asked_for() -> None:
    """MCP 2026-07-28 basic/patterns/subscribe"""

    async def main() -> None:
        world = World()
        listen = world.ask_modern(
            "L", "subscriptions/listen", {"notifications": {"toolsListChanged": True, "zzz": True}}
        )
        first = await listen.message()
        assert first["method"] == "notifications/subscriptions/acknowledged"
        assert first["params"]["notifications"] == {"toolsListChanged": True}
        world.server.notify("notifications/tools/list_changed")
        world.server.notify("notifications/prompts/list_changed")
        second = await listen.message()
        assert second["method"] == "notifications/tools/list_changed"
        assert second["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": "L"}
        listen.leave()
        await listen.ended()
        assert world.stats()["connections"] == world.stats()["streams"] == 0

    run_virtual(main)


def test_a_listen_ends_with_its_result_when_the_server_ends() -> None:
    """MCP 2026-07-28 basic/patterns/subscribe"""

    async def main() -> None:
        world = World()
        listen = world.ask_modern(1, "subscriptions/listen", {"notifications": {}})
        await listen.message()
        await world.app.stop()
        reply = await listen.ended()
        assert reply.messages()[-1]["result"]["resultType"] == "complete"
        assert reply.complete

    run_virtual(main)


@pytest.mark.parametrize(
    ("method", "meta", "changes", "status", "code"),
    [
        ("tools/call", {VERSION: None}, {}, 400, INVALID_PARAMS),
        ("tools/call", {VERSION: 1}, {}, 400, INVALID_PARAMS),
        ("tools/call", {CAPABILITIES: None}, {}, 400, INVALID_PARAMS),
        ("tools/call", {}, {"mcp-protocol-version": None}, 400, HEADER_MISMATCH),
        ("tools/call", {}, {"mcp-protocol-version": "2025-11-25"}, 400, HEADER_MISMATCH),
        ("tools/call", {}, {"mcp-protocol-version": "2099-01-01"}, 400, HEADER_MISMATCH),
        (
            "tools/call",
            {VERSION: "2099-01-01"},
            {"mcp-protocol-version": "2099-01-01"},
            400,
            UNSUPPORTED_VERSION,
        ),
        ("tools/call", {}, {"mcp-method": None}, 400, HEADER_MISMATCH),
        ("tools/call", {}, {"mcp-method": "tools/list"}, 400, HEADER_MISMATCH),
        ("tools/call", {}, {"mcp-method": "Tools/call"}, 400, HEADER_MISMATCH),
        ("tools/call", {}, {"mcp-name": None}, 400, HEADER_MISMATCH),
        ("tools/call", {}, {"mcp-name": "boom"}, 400, HEADER_MISMATCH),
        ("tools/call", {}, {"mcp-name": "=?base64?!!!?="}, 400, HEADER_MISMATCH),
        ("no/such/method", {}, {}, 404, METHOD_NOT_FOUND),
        ("ping", {}, {}, 404, METHOD_NOT_FOUND),
        ("initialize", {}, {}, 404, METHOD_NOT_FOUND),
        ("logging/setLevel", {}, {}, 404, METHOD_NOT_FOUND),
        ("resources/subscribe", {}, {}, 404, METHOD_NOT_FOUND),
    ],
)
def test_what_is_wrong_with_a_request_has_its_code_and_status_and_runs_nothing(
    method: str, meta: Json, changes: dict[str, str | None], status: int, code: int
) -> None:
    """MCP 2026-07-28 basic/transports/streamable-http §Server Validation"""

    async def main() -> None:
        world = World()
        reply = await world.ask_modern("x", method, ECHO, meta=meta, changes=changes).ended()
        assert (reply.status, code_of(reply), reply.json()["id"]) == (status, code, "x")
        assert "mcp-session-id" not in reply.headers
        assert world.journal == []
        assert world.stats()["connections"] == world.stats()["sessions"] == 0

    run_virtual(main)


@pytest.mark.parametrize(
    "changes",
    [
        {"mcp-protocol-version": "\t2026-07-28 "},
        {"mcp-method": " tools/call", "mcp-name": "\techo\t"},
        {"mcp-name": "=?base64?ZWNobw==?="},
    ],
)
def test_space_and_wrapping_are_no_part_of_a_mirrored_value(
    changes: dict[str, str | None],
) -> None:
    """RFC 9110 §5.5; MCP 2026-07-28 streamable-http §Value Encoding"""

    async def main() -> None:
        world = World()
        reply = await world.ask_modern(1, "tools/call", ECHO, changes=changes).ended()
        assert (reply.status, text_of(reply.json())) == (200, "hi")

    run_virtual(main)


def test_a_name_beyond_ascii_comes_wrapped() -> None:
    """MCP 2026-07-28 streamable-http §Value Encoding"""

    async def main() -> None:
        world = World()
        wrapped = {"mcp-name": "=?base64?bWVtOi8v5rWL6K+V?="}
        params = {"uri": "mem://测试"}
        reply = await world.ask_modern(1, "resources/read", params, changes=wrapped).ended()
        assert (reply.status, code_of(reply)) == (200, INVALID_PARAMS), "there is no such resource"
        broken = {"mcp-name": "=?base64?bWVtOi8v5rWL6K+V"}
        reply = await world.ask_modern(1, "resources/read", params, changes=broken).ended()
        assert (reply.status, code_of(reply)) == (400, HEADER_MISMATCH)

    run_virtual(main)


def test_annotated_arguments_are_compared_with_their_headers() -> None:
    """MCP 2026-07-28 streamable-http §Custom Headers"""

    async def main() -> None:
        server = Server("headers")
        ran: list[str] = []

        async def region(arguments: Json, context: object) -> str:
            ran.append(arguments["region"])
            return "ran"

        schema: Json = {
            "type": "object",
            "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
        }
        server.registry.register(Tool("region", "A region.", schema, region))
        world = World(server=server)
        call: Any = {"name": "region", "arguments": {"region": "west"}}
        for changes, status in (
            ({"mcp-param-region": "west"}, 200),
            ({"mcp-param-region": "=?base64?d2VzdA==?="}, 200),
            ({"mcp-param-region": "east"}, 400),
            ({}, 400),
        ):
            reply = await world.ask_modern(1, "tools/call", call, changes=changes).ended()
            assert reply.status == status, (changes, reply.body)
        assert ran == ["west", "west"]

    run_virtual(main)


def test_a_hidden_tool_answers_like_an_absent_one_whatever_its_headers_say() -> None:
    """Rulings: tools/call, in order; ADR-0029"""

    async def main() -> None:
        server = Server("headers", authorizer=allowlist([]), authorizer_source="configured")

        async def region(arguments: Json, context: object) -> str:
            raise AssertionError("denied")

        properties: Json = {"region": {"type": "string", "x-mcp-header": "Region"}}
        schema: Json = {"type": "object", "properties": properties}
        server.registry.register(Tool("hidden", "A region.", schema, region))
        world = World(server=server)
        for changes in ({}, {"mcp-param-region": "east"}, {"mcp-param-region": "\xff"}):
            told = []
            for name in ("hidden", "absent"):
                call: Json = {"name": name, "arguments": {"region": "west"}}
                asked = world.ask_modern(1, "tools/call", call, changes=changes)
                reply = await asked.ended()
                told.append((reply.status, reply.body.replace(name.encode(), b"NAME")))
            assert told[0] == told[1]
            assert told[0][0] == 200

    run_virtual(main)


def test_a_listener_is_told_of_a_burst_of_equal_changes_once() -> None:
    """Ours: ADR-0014"""

    async def main() -> None:
        world = World()
        wanted: Json = {"notifications": {"toolsListChanged": True}}
        listen = world.ask_modern("news", "subscriptions/listen", wanted)
        await listen.message()
        for _ in range(2):
            for _ in range(1000):
                world.server.notify("notifications/tools/list_changed")
            assert (await listen.message())["method"] == "notifications/tools/list_changed"
        await asyncio.sleep(1)
        assert len(listen.reply.events()) == 3
        listen.leave()
        await listen.ended()

    run_virtual(main)


def test_a_capability_that_was_not_declared_is_a_400() -> None:
    """MCP 2026-07-28 basic §Error Codes: MissingRequiredClientCapability"""

    async def main() -> None:
        from raxol_mcp import Elicit, InputRequired

        world = World()

        @world.server.tool
        async def needs() -> InputRequired:
            """Ask in rounds."""
            return InputRequired({"q": Elicit("?", {"type": "object", "properties": {}})})

        reply = await world.call(1, "needs").ended()
        assert (reply.status, code_of(reply)) == (400, MISSING_CAPABILITY)
        assert reply.json()["error"]["data"] == {
            "requiredCapabilities": {"elicitation": {"form": {}}}
        }
        reply = await world.call(1, "needs", capabilities={"elicitation": {}}).ended()
        assert reply.json()["result"]["resultType"] == "input_required"

    run_virtual(main)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-type": None}, 415),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "text/plain; a=application/json"}, 415),
        ({"content-type": "application/json-patch+json"}, 415),
        ({"content-type": "application/json; charset=latin1"}, 415),
        ({"content-encoding": "gzip"}, 415),
        ({"accept": "application/json"}, 406),
        ({"accept": "text/event-stream"}, 406),
        ({"accept": "application/json, text/event-stream;q=0"}, 406),
        ({"accept": None}, 200),
        ({"accept": "*/*"}, 200),
        ({"content-type": "application/json; charset=utf-8"}, 200),
        ({"content-type": "Application/JSON"}, 200),
        ({"content-type": "application/json;"}, 200),
    ],
)
def test_a_body_is_json_and_the_client_takes_both_forms(
    headers: dict[str, str | None], status: int
) -> None:
    """MCP 2026-07-28 streamable-http §Sending Messages; RFC 9110 §15.5.7, §15.5.16"""

    async def main() -> None:
        world = World()
        reply = await world.ask_modern(1, "tools/call", ECHO, changes=headers).ended()
        assert reply.status == status
        assert world.journal == (["echo:hi"] if status == 200 else [])

    run_virtual(main)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", INVALID_REQUEST),
        (b"{", PARSE_ERROR),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}', PARSE_ERROR),
        (b"[" * 1000, PARSE_ERROR),
        (b"[]", INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', INVALID_REQUEST),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', INVALID_REQUEST),
    ],
)
@pytest.mark.parametrize("version", [MODERN, None])
def test_what_is_no_message_is_a_400_in_both_eras(
    body: bytes, code: int, version: str | None
) -> None:
    """JSON-RPC 2.0 §5.1; ours: an array is a message in sessions of 2025-03-26 alone"""

    async def main() -> None:
        world = World()
        reply = await world.post_raw(body, {"mcp-protocol-version": version}).ended()
        assert (reply.status, code_of(reply)) == (400, code)
        assert "mcp-session-id" not in reply.headers

    run_virtual(main)


@pytest.mark.parametrize(("version", "status"), [(MODERN, 202), ("2099-01-01", 400)])
def test_a_notification_is_accepted_without_a_body(version: str, status: int) -> None:
    """MCP 2026-07-28 streamable-http §Sending Messages"""

    async def main() -> None:
        world = World()
        changes: dict[str, str | None] = {"mcp-protocol-version": version}
        reply = await world.ask_modern(
            None, "notifications/cancelled", {"requestId": 1}, changes=changes
        ).ended()
        assert reply.status == status
        assert (reply.body == b"") is (status == 202)

    run_virtual(main)


def test_a_session_id_means_nothing_to_a_stateless_request() -> None:
    """MCP 2026-07-28 streamable-http §Backwards Compatibility"""

    async def main() -> None:
        world = World()
        session = await world.session()
        changes: dict[str, str | None] = {"mcp-session-id": session.id}
        for id in (session.id, "unknown"):
            changes["mcp-session-id"] = id
            reply = await world.ask_modern(1, "tools/call", ECHO, changes=changes).ended()
            assert reply.status == 200
            assert "mcp-session-id" not in reply.headers

    run_virtual(main)


def test_a_large_answer_is_cut_off_when_it_is_not_read() -> None:
    """Ours: docs/limits.md, write_timeout"""

    async def main() -> None:
        world = World(write_timeout=30.0)
        call = world.call(1, "big", {"size": 2_000_000})
        call.stall()
        reply = await call.ended()
        assert not reply.complete
        assert asyncio.get_running_loop().time() == pytest.approx(30.0, abs=1)
        assert world.stats()["connections"] == 0

    run_virtual(main)


def test_a_large_answer_that_is_read_comes_whole() -> None:
    """Ours: docs/limits.md"""

    async def main() -> None:
        world = World()
        reply = await world.call(1, "big", {"size": 2_000_000}).ended()
        assert text_of(reply.json()) == "A" * 2_000_000

    run_virtual(main)


def test_failing_tools_answer_and_the_next_call_works() -> None:
    """Ours: K09"""

    async def main() -> None:
        world = World()
        reply = await world.call(1, "boom").ended()
        assert reply.json()["result"]["isError"] is True
        assert b"secret" not in reply.body
        reply = await world.call(1, "echo", {"text": "alive"}).ended()
        assert text_of(reply.json()) == "alive"

    run_virtual(main)


def test_a_bug_behind_the_port_costs_one_request() -> None:
    """Ours: K09"""

    async def main() -> None:
        world = World()

        def broken(connection: object, message: object) -> None:
            raise ValueError("a bug")

        receive = world.server.receive
        world.server.receive = broken  # type: ignore[method-assign]  # this is the bug
        reply = await world.call(1, "echo", {"text": "x"}).ended()
        assert (reply.status, reply.json()["error"]["code"]) == (200, -32603)
        assert b"a bug" not in reply.body
        world.server.receive = receive  # type: ignore[method-assign]  # the bug is mended
        assert (await world.call(1, "echo", {"text": "x"}).ended()).status == 200
        assert world.stats()["connections"] == 0

    run_virtual(main)


def test_hundreds_of_clients_that_leave_at_any_moment_leave_nothing_behind() -> None:
    """Ours: K20"""

    async def main() -> None:
        world = World()
        await world.call(1, "echo", {"text": "first"}).ended()
        before = world.stats()
        tasks = len(asyncio.all_tasks())
        opened = []
        for turn in range(300):
            match turn % 3:
                case 0:
                    one = world.call(1, "sleep", {"seconds": 60, "tag": "x"})
                case 1:
                    one = world.ask_modern(1, "subscriptions/listen", {"notifications": {}})
                case _:
                    one = world.call(1, "progress", {"steps": 500}, meta={"progressToken": 1})
            opened.append(one)
            if turn % 2:
                await asyncio.sleep(0.001 * (turn % 100))
            one.leave()
        for one in opened:
            await one.ended()
        await asyncio.sleep(0.1)
        assert world.stats() == before
        assert len(asyncio.all_tasks()) == tasks
        reply = await world.call(1, "echo", {"text": "alive"}).ended()
        assert text_of(reply.json()) == "alive"

    run_virtual(main)


def test_streams_have_a_bound_that_listens_meet_first() -> None:
    """Ours: docs/limits.md, max_streams"""

    async def main() -> None:
        world = World(max_streams=1)
        listen = world.ask_modern(1, "subscriptions/listen", {"notifications": {}})
        await listen.message()
        refused = await world.ask_modern(2, "subscriptions/listen", {"notifications": {}}).ended()
        assert (refused.status, refused.headers["retry-after"]) == (503, "30")
        call = world.call(3, "progress", {"steps": 1}, meta={"progressToken": 1})
        assert len((await call.ended()).messages()) == 2
        listen.leave()
        await listen.ended()

    run_virtual(main)


def test_discovery_names_the_versions_that_a_refusal_names() -> None:
    """MCP 2026-07-28 basic/versioning"""

    async def main() -> None:
        world = World()
        found = (await world.ask_modern(1, "server/discover").ended()).json()["result"]
        strange: dict[str, str | None] = {"mcp-protocol-version": "v9"}
        reply: Reply = await world.ask_modern(
            1, "tools/list", meta={VERSION: "v9"}, changes=strange
        ).ended()
        data = json.loads(reply.body)["error"]["data"]
        assert data == {"supported": found["supportedVersions"], "requested": "v9"}

    run_virtual(main)
