"""The handshake era over HTTP: sessions, their streams, and when they end."""

from __future__ import annotations

import asyncio

import pytest

from raxol_mcp import Limits
from raxol_mcp.errors import INVALID_REQUEST
from raxol_mcp.testing.virtual_loop import run_virtual
from tests.transports.http.client import Json, Open
from tests.transports.http.world import Session, World, code_of, text_of

FORMS: Json = {"elicitation": {}}


def test_a_session_begins_with_initialize_and_its_id_is_visible_ascii() -> None:
    """MCP 2025-11-25 basic/transports §Session Management"""

    async def main() -> None:
        world = World()
        reply = await world.greet("2025-06-18")
        assert reply.json()["result"]["protocolVersion"] == "2025-06-18"
        id = reply.headers["mcp-session-id"]
        assert len(id) >= 22
        assert all(0x21 <= ord(letter) <= 0x7E for letter in id)
        other = await world.greet()
        assert other.headers["mcp-session-id"] != id
        assert world.stats()["sessions"] == world.stats()["connections"] == 2

    run_virtual(main)


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_call_in_a_session_is_answered_with_one_json_body(version: str) -> None:
    """MCP 2025-11-25 basic/transports §Sending Messages to the Server"""

    async def main() -> None:
        world = World()
        session = await world.session(version)
        reply = await session.call(1, "echo", {"text": "hi"}).ended()
        assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
        assert text_of(reply.json()) == "hi"

    run_virtual(main)


def test_a_refused_initialize_makes_no_session() -> None:
    """Ours: refused requests mint no session id"""

    async def main() -> None:
        world = World()
        bad = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}
        reply = await world.post_raw(bad).ended()
        assert reply.json()["error"]["code"] == -32602
        assert "mcp-session-id" not in reply.headers
        assert world.stats()["sessions"] == world.stats()["connections"] == 0

    run_virtual(main)


def test_without_a_session_id_there_is_400_and_with_an_unknown_one_404() -> None:
    """MCP 2025-11-25 basic/transports §Session Management"""

    async def main() -> None:
        world = World()
        listed = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        missing = await world.post_raw(listed, {"mcp-protocol-version": "2025-11-25"}).ended()
        assert (missing.status, code_of(missing)) == (400, INVALID_REQUEST)
        assert "2026-07-28" in missing.json()["error"]["message"], "it says what would work"
        unknown = await world.post_raw(listed, {"mcp-session-id": "unknown"}).ended()
        assert (unknown.status, unknown.json()["id"]) == (404, 1)
        assert "mcp-session-id" not in unknown.headers
        assert world.stats()["sessions"] == 0

    run_virtual(main)


def test_a_deleted_session_is_unknown() -> None:
    """MCP 2025-11-25 basic/transports §Session Management"""

    async def main() -> None:
        world = World()
        session = await world.session()
        listening = session.listen()
        await listening.head()
        running = session.call(5, "sleep", {"seconds": 60, "tag": "a"})
        await asyncio.sleep(0.1)
        assert (await session.delete()).status == 204
        assert (await session.delete()).status == 404
        assert (await session.call(1, "echo", {"text": "x"}).ended()).status == 404
        assert (await session.listen().ended()).status == 404
        assert (await listening.ended()).complete
        assert (await running.ended()).complete
        await asyncio.sleep(0)
        assert world.journal == ["start:a", "cancelled:a"]
        stats = world.stats()
        assert stats["sessions"] == stats["streams"] == stats["connections"] == 0

    run_virtual(main)


@pytest.mark.parametrize("version", ["2025-06-18", "2099-01-01", "x"])
def test_another_protocol_version_than_agreed_is_a_400(version: str) -> None:
    """MCP 2025-11-25 basic/transports §Protocol Version Header"""

    async def main() -> None:
        world = World()
        session = await world.session("2025-11-25")
        call: Json = {"id": 1, "method": "tools/call", "params": {"name": "echo"}}
        reply = await session.post(call, {"mcp-protocol-version": version}).ended()
        assert reply.status == 400
        assert world.journal == []

    run_virtual(main)


def test_a_second_request_with_an_id_in_flight_is_refused_and_the_first_is_unaffected() -> None:
    """JSON-RPC ids; python-sdk#3060, typescript-sdk#2433"""

    async def main() -> None:
        world = World()
        session = await world.session()
        first = session.call(7, "sleep", {"seconds": 0.8, "tag": "A"})
        await asyncio.sleep(0.1)
        second = await session.call(7, "sleep", {"seconds": 0.05, "tag": "B"}).ended()
        assert (second.status, code_of(second)) == (400, INVALID_REQUEST)
        assert text_of((await first.ended()).messages()[0]) == "slept A"
        assert "start:B" not in world.journal
        again = await session.call(7, "echo", {"text": "again"}).ended()
        assert text_of(again.json()) == "again"

    run_virtual(main)


def test_many_sessions_with_the_same_ids_each_get_their_own() -> None:
    """Ours: K01"""

    async def main() -> None:
        world = World(limits=Limits(max_in_flight=200))
        sessions = [await world.session() for _ in range(20)]
        calls = [
            (n, session.call(1, "sleep", {"seconds": 0.01 * (n % 7), "tag": str(n)}, token="t"))
            for n, session in enumerate(sessions)
        ]
        for n, call in calls:
            assert text_of((await call.ended()).messages()[-1]) == f"slept {n}"

    run_virtual(main)


def test_losing_the_stream_is_no_cancellation_and_the_answer_can_be_fetched() -> None:
    """MCP 2025-11-25 basic/transports §Sending Messages to the Server, §Resumability"""

    async def main() -> None:
        world = World()
        session = await world.session()
        call = session.call(1, "sleep", {"seconds": 10, "tag": "long"})
        primer = await call.event()
        assert (primer.data, bool(primer.id)) == (b"", True)
        await asyncio.sleep(0.3)
        call.leave()
        await call.ended()
        await asyncio.sleep(20)
        assert world.journal == ["start:long", "end:long"]
        resumed = await session.listen(primer.id).ended()
        assert (resumed.status, resumed.headers["content-type"]) == (200, "text/event-stream")
        assert text_of(resumed.messages()[0]) == "slept long"
        assert resumed.complete, "there is nothing more to come"

    run_virtual(main)


def test_a_stream_is_resumed_after_the_event_that_was_read_while_it_goes_on() -> None:
    """MCP 2025-11-25 basic/transports §Resumability and Redelivery"""

    async def main() -> None:
        world = World()
        session = await world.session()
        call = session.call(1, "progress", {"steps": 20}, token="t")
        read = [await call.event() for _ in range(4)]
        call.leave()
        await call.ended()
        resumed = await session.listen(read[2].id).ended()
        steps = [m["params"]["progress"] for m in resumed.messages()[:-1]]
        assert steps == list(range(3, 21))
        assert text_of(resumed.messages()[-1]) == "done"

    run_virtual(main)


def test_an_event_of_another_session_or_of_none_cannot_be_resumed() -> None:
    """MCP 2025-11-25 basic/transports §Resumability: MUST NOT replay another stream's messages"""

    async def main() -> None:
        world = World()
        mine, other = await world.session(), await world.session()
        call = mine.call(1, "progress", {"steps": 2}, token="t")
        event = await call.event()
        await call.ended()
        for wrong in (event.id + "9" * 20, event.id.split(".")[0] + ".999", "x.1", "nonsense"):
            assert (await mine.listen(wrong).ended()).status == 400, wrong
        assert (await other.listen(event.id).ended()).status == 400

    run_virtual(main)


def test_a_tool_may_let_its_client_go_and_answer_when_it_comes_back() -> None:
    """MCP 2025-11-25 basic/transports §Sending Messages to the Server: polling"""

    async def main() -> None:
        world = World()
        session = await world.session()
        reply = await session.call(1, "let_go", {"seconds": 1.0, "retry": 0.5}).ended()
        assert reply.headers["content-type"] == "text/event-stream"
        assert reply.body.endswith(b"retry: 500\n\n")
        (primer,) = (line for line in reply.body.split(b"\n") if line.startswith(b"id: "))
        resumed = await session.listen(primer.removeprefix(b"id: ").decode()).ended()
        assert text_of(resumed.messages()[0]) == "welcome back"

    run_virtual(main)


def test_letting_go_means_nothing_to_clients_that_cannot_come_back() -> None:
    """Ours: `Context.release_stream`"""

    async def main() -> None:
        world = World()
        old = await world.session("2025-06-18")
        reply = await old.call(1, "let_go", {"seconds": 1.0, "retry": 0.5}).ended()
        assert text_of(reply.json()) == "welcome back"
        modern = await world.call(1, "let_go", {"seconds": 1.0, "retry": 0.5}).ended()
        assert text_of(modern.json()) == "welcome back"

    run_virtual(main)


def test_a_question_goes_to_the_stream_of_its_call_and_only_its_session_may_answer() -> None:
    """MCP 2025-11-25 client/elicitation; ours: K02"""

    async def main() -> None:
        world = World()
        owner = await world.session(capabilities=FORMS)
        stranger = await world.session(capabilities=FORMS)
        listening = owner.listen()
        call = owner.call(1, "ask")
        question = await call.message()
        assert question["method"] == "elicitation/create"
        answer: Json = {"id": question["id"], "result": {"action": "accept", "content": {}}}
        assert (await stranger.post(answer).ended()).status == 202
        await asyncio.sleep(1)
        assert not call.task.done(), "a stranger's answer is nobody's"
        accepted = await owner.post(answer).ended()
        assert (accepted.status, accepted.body) == (202, b"")
        assert text_of((await call.ended()).messages()[-1]) == "accept"
        listening.leave()
        assert (await listening.ended()).messages() == [], "none of it was for this stream"

    run_virtual(main)


def test_who_did_not_declare_elicitation_is_not_asked() -> None:
    """MCP 2025-11-25 client/elicitation §Capabilities"""

    async def main() -> None:
        world = World()
        session = await world.session()
        reply = await session.call(1, "ask").ended()
        assert reply.json()["result"]["isError"] is True
        assert b"elicitation/create" not in reply.body

    run_virtual(main)


def test_a_question_to_a_client_that_left_for_good_is_closed_at_once() -> None:
    """Ours: a call does not wait for an answer that nobody can give"""

    async def main() -> None:
        world = World()
        session = await world.session("2025-06-18", capabilities=FORMS)
        call = session.call(1, "ask_late", {"seconds": 2})
        await asyncio.sleep(1)
        call.leave()
        await call.ended()
        await asyncio.sleep(10)
        assert world.journal == ["RemoteProtocolError at 2"]
        assert world.stats()["in_flight"] == 0

    run_virtual(main)


def test_a_question_waits_for_a_client_that_can_come_back() -> None:
    """MCP 2025-11-25 basic/transports §Resumability and Redelivery"""

    async def main() -> None:
        world = World()
        session = await world.session(capabilities=FORMS)
        call = session.call(1, "ask_late", {"seconds": 2})
        primer = await call.event()
        call.leave()
        await call.ended()
        await asyncio.sleep(10)
        resumed = session.listen(primer.id)
        question = await resumed.message()
        answer: Json = {"id": question["id"], "result": {"action": "decline"}}
        await session.post(answer).ended()
        assert text_of((await resumed.ended()).messages()[-1]) == "asked"

    run_virtual(main)


def test_a_cancelled_call_ends_its_stream_without_an_answer() -> None:
    """MCP 2025-11-25 basic/utilities/cancellation"""

    async def main() -> None:
        world = World()
        session = await world.session()
        call = session.call(1, "sleep", {"seconds": 60, "tag": "a"})
        await call.event()
        cancelled: Json = {"method": "notifications/cancelled", "params": {"requestId": 1}}
        assert (await session.post(cancelled).ended()).status == 202
        reply = await call.ended()
        assert reply.complete
        assert reply.messages() == []
        await asyncio.sleep(0)
        assert world.journal == ["start:a", "cancelled:a"]
        again = await session.call(1, "echo", {"text": "again"}).ended()
        assert text_of(again.json()) == "again"

    run_virtual(main)


def test_the_second_stream_of_a_session_is_refused_and_the_first_goes_on() -> None:
    """MCP 2025-11-25 basic/transports §Multiple Connections; CVE-2026-33946"""

    async def main() -> None:
        world = World()
        session = await world.session()
        first = session.listen()
        primer = await first.event()
        assert (await session.listen().ended()).status == 409
        world.server.notify("notifications/tools/list_changed")
        assert (await first.message())["method"] == "notifications/tools/list_changed"
        # Whoever has read the stream may take it over: its connection may be long dead.
        second = session.listen(primer.id)
        assert (await first.ended()).complete
        assert (await second.message())["method"] == "notifications/tools/list_changed"
        second.leave()
        await second.ended()
        third = session.listen()
        assert (await third.head()).status == 200
        third.leave()
        await third.ended()

    run_virtual(main)


def test_what_belongs_to_no_request_waits_for_the_stream() -> None:
    """Ours: docs/limits.md, events kept of a stream"""

    async def main() -> None:
        world = World()
        session, other = await world.session(), await world.session()
        world.server.notify("notifications/tools/list_changed")
        for each in (session, other):
            listening = each.listen()
            assert (await listening.message())["method"] == "notifications/tools/list_changed"
            listening.leave()
            await listening.ended()
        again = session.listen()
        await again.head()
        await asyncio.sleep(1)
        again.leave()
        assert (await again.ended()).messages() == [], "it has been delivered"

    run_virtual(main)


def test_a_stream_that_is_not_read_is_cut_off_and_costs_the_session_nothing() -> None:
    """Ours: docs/limits.md, write_timeout"""

    async def main() -> None:
        world = World(write_timeout=30.0)
        session = await world.session()
        listening = session.listen()
        await listening.event()
        listening.stall()
        for _ in range(5):
            world.server.notify("notifications/tools/list_changed")
        reply = await listening.ended()
        assert not reply.complete
        assert asyncio.get_running_loop().time() == pytest.approx(30.0, abs=1)
        reply = await session.call(1, "echo", {"text": "x"}).ended()
        assert text_of(reply.json()) == "x"

    run_virtual(main)


def test_broadcasts_that_nobody_reads_end_the_stream_at_the_bound() -> None:
    """Ours: docs/limits.md, outbox of a connection"""

    async def main() -> None:
        world = World()
        session = await world.session()
        listening = session.listen()
        await listening.event()
        listening.stall()
        for number in range(300):
            world.server.notify("notifications/odd", {"number": number})
        assert not (await listening.ended()).complete
        assert asyncio.get_running_loop().time() < 1

    run_virtual(main)


def test_an_unused_session_ends_and_one_that_works_or_listens_does_not() -> None:
    """Ours: docs/limits.md, session_timeout"""

    async def main() -> None:
        world = World(session_timeout=10.0)
        unused, working, listening = [await world.session() for _ in range(3)]
        call = working.call(1, "sleep", {"seconds": 40, "tag": "long"})
        stream = listening.listen()
        await stream.event()
        await asyncio.sleep(30)
        assert (await unused.call(1, "echo", {"text": "x"}).ended()).status == 404
        assert (await working.call(2, "echo", {"text": "x"}).ended()).status == 200
        assert text_of((await call.ended()).messages()[-1]) == "slept long"
        assert (await listening.call(1, "echo", {"text": "x"}).ended()).status == 200
        stream.leave()
        await stream.ended()
        await asyncio.sleep(30)
        stats = world.stats()
        assert stats["sessions"] == stats["connections"] == stats["streams"] == 0

    run_virtual(main)


def test_the_longest_unused_session_makes_room_and_busy_ones_never_do() -> None:
    """Ours: docs/limits.md, max_sessions"""

    async def main() -> None:
        world = World(max_sessions=2)
        first, second = await world.session(), await world.session()
        streams = [first.listen()]
        await streams[0].event()
        third = await world.session()
        assert (await second.call(1, "echo", {"text": "x"}).ended()).status == 404
        streams.append(third.listen())
        await streams[1].event()
        full = await world.greet()
        assert (full.status, "mcp-session-id" in full.headers) == (503, False)
        assert world.stats()["connections"] == 2
        for stream in streams:
            stream.leave()
            await stream.ended()

    run_virtual(main)


def test_hundreds_of_sessions_leave_nothing_behind() -> None:
    """Ours: K20"""

    async def main() -> None:
        world = World(session_timeout=2.0, max_sessions=1000)
        sessions = [await world.session() for _ in range(300)]
        opened: list[Open] = []
        for turn, session in enumerate(sessions):
            if turn % 3 == 0:
                opened.append(session.listen())
            elif turn % 3 == 1:
                opened.append(session.call(1, "progress", {"steps": 3}, token=0))
        await asyncio.sleep(0.01)
        for one in opened:
            one.leave()
            await one.ended()
        await asyncio.sleep(10)
        stats = world.stats()
        kinds = ("sessions", "streams", "requests", "connections", "in_flight", "declared")
        assert {kind: stats[kind] for kind in kinds} == dict.fromkeys(kinds, 0)
        fresh = await world.session()
        assert (await fresh.call(2, "echo", {"text": "fresh"}).ended()).status == 200

    run_virtual(main)


def test_a_batch_is_answered_on_one_stream_in_2025_03_26_and_refused_elsewhere() -> None:
    """MCP 2025-03-26 basic §Batching"""

    async def main() -> None:
        world = World()
        old = await world.session("2025-03-26")
        batch: list[Json] = [
            {"id": 1, "method": "ping"},
            {"id": 1, "method": "ping"},
            {
                "id": 2,
                "method": "tools/call",
                "params": {"name": "echo", "arguments": {"text": "x"}},
            },
            {"method": "notifications/initialized"},
            {"id": 3, "method": 4},
        ]
        reply = await old.post(batch).ended()
        assert reply.headers["content-type"] == "text/event-stream"
        assert sorted(str(m["id"]) for m in reply.messages()) == ["1", "1", "2", "3"]
        told = await old.post([{"method": "notifications/initialized"}]).ended()
        assert (told.status, told.body) == (202, b"")
        new = await world.session()
        refused = await new.post(batch).ended()
        assert (refused.status, code_of(refused)) == (400, INVALID_REQUEST)

    run_virtual(main)


def test_a_cancelled_part_of_a_batch_does_not_keep_the_rest_waiting() -> None:
    """MCP 2025-03-26 basic §Batching, basic/utilities/cancellation"""

    async def main() -> None:
        world = World()
        session = await world.session("2025-03-26")
        calls: list[Json] = [
            {
                "id": n,
                "method": "tools/call",
                "params": {"name": "sleep", "arguments": {"seconds": s}},
            }
            for n, s in ((1, 60), (2, 1))
        ]
        batch = session.post(calls)
        await asyncio.sleep(0.5)
        await session.post(
            [{"method": "notifications/cancelled", "params": {"requestId": 1}}]
        ).ended()
        messages = (await batch.ended()).messages()
        assert [message["id"] for message in messages] == [2]

    run_virtual(main)


def test_a_second_initialize_is_refused_and_the_session_goes_on() -> None:
    """Ours: rulings, Messages"""

    async def main() -> None:
        world = World()
        session = await world.session()
        params = {"protocolVersion": "2025-11-25", "capabilities": {}}
        second = await session.post({"id": 9, "method": "initialize", "params": params}).ended()
        assert (second.status, code_of(second)) == (200, INVALID_REQUEST)
        assert "mcp-session-id" not in second.headers
        assert (await session.call(1, "echo", {"text": "x"}).ended()).status == 200

    run_virtual(main)


def test_an_answer_that_is_too_long_to_keep_is_replaced_by_an_error() -> None:
    """Ours: docs/limits.md, events kept of a stream"""

    async def main() -> None:
        world = World()
        session = await world.session()

        @world.server.tool
        async def slow_and_big() -> str:
            """Take a while for many letters."""
            await asyncio.sleep(1)
            return "A" * 300_000

        call = session.call(1, "slow_and_big")
        primer = await call.event()
        call.leave()
        await call.ended()
        await asyncio.sleep(2)
        resumed = await session.listen(primer.id).ended()
        (message,) = resumed.messages()
        assert (message["id"], message["error"]["code"]) == (1, -32603)

    run_virtual(main)


def test_a_session_that_the_server_ends_is_gone() -> None:
    """Ours: `Sink.close`"""

    async def main() -> None:
        world = World()
        session: Session = await world.session()
        connection = next(iter(world.server._runtime._sinks))
        world.server._runtime._sinks[connection].close("an order")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert (await session.call(1, "echo", {"text": "x"}).ended()).status == 404
        assert world.stats()["sessions"] == 0

    run_virtual(main)
