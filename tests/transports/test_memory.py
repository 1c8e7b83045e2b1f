"""MemoryTransport: a connection and its client, without bytes."""

import asyncio

import pytest
from msgspec import Raw

from raxol_mcp.core.peers import ConnectionFacts
from raxol_mcp.errors import INVALID_REQUEST, PARSE_ERROR, NotReady
from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.transports.memory import MemoryTransport
from raxol_mcp.wire.jsonrpc import Failure, Incoming, Notification, Request, Response
from tests.transports.fakes import FakePort, error_code, request, result

CHANGED = Notification("notifications/tools/list_changed")
ODD = Notification("notifications/odd")
CHANGED_BODY = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


def test_a_request_gets_its_answer() -> None:
    port = FakePort()

    async def scenario() -> None:
        async with MemoryTransport(port) as client:
            assert client.connection == "the only one"
            assert await client.request("echo", {"a": 1}) == result(1, {"a": 1})
            assert await client.request("echo") == result(2, {})
            assert await client.request("echo", id="mine") == result("mine", {})

    run_virtual(scenario)
    assert port.facts == ConnectionFacts(transport="memory")
    assert port.events == ["open", "gone"]


def test_the_facts_and_the_id_may_be_given() -> None:
    port = FakePort()
    facts = ConnectionFacts(transport="memory", principal="alice")

    async def scenario() -> None:
        async with MemoryTransport(port, facts=facts, connection=7) as client:
            assert client.connection == 7

    run_virtual(scenario)
    assert port.facts == facts


def test_requests_that_wait_get_their_own_answers_in_any_order() -> None:
    """JSON-RPC 2.0 §4: ids compare by type and value."""
    port = FakePort()

    async def scenario() -> None:
        async with MemoryTransport(port) as client:
            number = asyncio.ensure_future(client.request("hold", id=1))
            text = asyncio.ensure_future(client.request("hold", id="1"))
            other = asyncio.ensure_future(client.request("hold"))
            await asyncio.sleep(0.1)
            with pytest.raises(ValueError, match="id 1 is waiting already"):
                await client.request("hold", id=1)
            assert port.held == {1, "1", 2}, "an id that is in use is not chosen"
            port.answer("1", "text")
            port.answer(2, "other")
            port.answer(1, "number")
            assert await number == result(1, "number")
            assert await text == result("1", "text")
            assert await other == result(2, "other")

    run_virtual(scenario)


def test_other_messages_are_left_to_receive_in_order() -> None:
    port = FakePort()

    async def scenario() -> None:
        async with MemoryTransport(port) as client:
            port.sink.put(Notification("first", {"n": 1}))
            port.sink.put(Request("ask-1", "elicitation/create", {"message": "?"}), about=1)
            client.send(request(9))
            assert await client.receive() == {
                "jsonrpc": "2.0",
                "method": "first",
                "params": {"n": 1},
            }
            assert client.unread() == [
                {
                    "jsonrpc": "2.0",
                    "id": "ask-1",
                    "method": "elicitation/create",
                    "params": {"message": "?"},
                },
                result(9, {}),
            ]
            assert client.unread() == []

    run_virtual(scenario)


def test_receive_waits_for_the_next_message() -> None:
    port = FakePort()

    async def scenario() -> None:
        async with MemoryTransport(port) as client:
            asyncio.get_running_loop().call_later(5.0, port.sink.put, CHANGED)
            assert await client.receive() == CHANGED_BODY
            assert asyncio.get_running_loop().time() == 5.0

    run_virtual(scenario)


def test_messages_may_be_dicts_arrays_or_bytes() -> None:
    port = FakePort()

    async def scenario() -> None:
        async with MemoryTransport(port) as client:
            client.send(b'{"jsonrpc":"2.0","id":1,"method":"echo"}\r\n')
            client.send([request(2), request(3)])
            client.send({"jsonrpc": "1.0", "id": 4, "method": "echo"})
            client.send(b"{")
            client.notify("note", {"a": 1})
            one, two, three, four, broken = client.unread()
            assert [one, two, three] == [result(id, {}) for id in (1, 2, 3)]
            assert (four["id"], error_code(four)) == (4, INVALID_REQUEST)
            assert (broken["id"], error_code(broken)) == (None, PARSE_ERROR)
            assert port.received[-1] == Notification("note", {"a": 1})

    run_virtual(scenario)


@pytest.mark.parametrize("through_bytes", [False, True])
def test_the_client_sees_values_as_a_wire_would_carry_them(through_bytes: bool) -> None:
    """A result may hold parts that are encoded already."""
    port = FakePort()
    shared: dict[str, object] = {"tools": (Raw(b'{"name":"add"}'), {"name": "sub"})}

    def answers(message: Incoming) -> bool:
        assert isinstance(message, Request)
        if message.method == "fail":
            port.sink.put(Failure(message.id, -32603, "no", {"method": "fail"}), about=message.id)
        elif message.method == "plain failure":
            port.sink.put(Failure(message.id, -32603, "no"), about=message.id)
        else:
            port.sink.put(Response(message.id, shared), about=message.id)
        return True

    port.on_receive = answers

    async def scenario() -> None:
        async with MemoryTransport(port, through_bytes=through_bytes) as client:
            answer = await client.request("list")
            assert answer == result(1, {"tools": [{"name": "add"}, {"name": "sub"}]})
            assert answer["result"] is not shared
            assert await client.request("fail") == {
                "jsonrpc": "2.0",
                "id": 2,
                "error": {"code": -32603, "message": "no", "data": {"method": "fail"}},
            }
            assert await client.request("plain failure") == {
                "jsonrpc": "2.0",
                "id": 3,
                "error": {"code": -32603, "message": "no"},
            }

    run_virtual(scenario)


def test_a_cancelled_request_is_cancelled_at_the_server_too() -> None:
    """MCP basic/utilities/cancellation."""
    port = FakePort()

    async def scenario() -> None:
        async with MemoryTransport(port) as client:
            for method in ("hold", "initialize"):
                port.on_receive = lambda _message: True
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(1.0):
                        await client.request(method)

    run_virtual(scenario)
    assert port.received == [
        Request(1, "hold"),
        Notification("notifications/cancelled", {"requestId": 1}),
        # MCP: the client must not cancel `initialize`.
        Request(2, "initialize"),
    ]


def test_the_answer_that_comes_after_a_cancel_can_be_seen() -> None:
    port = FakePort()

    async def scenario() -> None:
        async with MemoryTransport(port) as client:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1.0):
                    await client.request("hold")
            port.answer(1)
            assert client.unread() == [result(1, "late")]

    run_virtual(scenario)


def test_closing_ends_what_waits_and_is_reported_once() -> None:
    port = FakePort()

    async def scenario() -> None:
        client = MemoryTransport(port)
        with pytest.raises(NotReady, match="not opened"):
            client.send(request(1))
        client.open()
        asking = asyncio.ensure_future(client.request("hold"))
        receiving = asyncio.ensure_future(client.receive())
        await asyncio.sleep(0.1)
        client.close()
        client.close()
        for waiting in (asking, receiving):
            with pytest.raises(NotReady, match="closed by the client"):
                await waiting
        with pytest.raises(NotReady):
            client.send(request(2))
        port.sink.put(CHANGED)
        port.sink.close("late")
        assert client.unread() == []

    run_virtual(scenario)
    assert port.events == ["open", "gone"]


def test_a_request_cancelled_when_the_connection_is_lost_ends_quietly() -> None:
    port = FakePort()

    async def scenario() -> None:
        async with MemoryTransport(port) as client:
            asking = asyncio.ensure_future(client.request("hold"))
            await asyncio.sleep(0.1)
            client.close()
            asking.cancel()
            await asyncio.wait((asking,))

    run_virtual(scenario)
    assert len(port.received) == 1


def test_the_input_may_end_before_the_answers_came() -> None:
    port = FakePort()

    async def scenario() -> None:
        async with MemoryTransport(port) as client:
            asking = asyncio.ensure_future(client.request("hold"))
            await asyncio.sleep(0.1)
            client.end_input()
            port.answer(1)
            assert await asking == result(1, "late")

    run_virtual(scenario)
    assert port.events == ["open", "input_ended", "gone"]


def test_the_server_may_end_it_and_what_it_put_is_still_there() -> None:
    """A sink never calls back into the server: `gone` comes later."""
    port = FakePort()

    def says_goodbye(message: Incoming) -> bool:
        port.sink.put(CHANGED)
        port.sink.close("enough")
        assert "gone" not in port.events
        return True

    port.on_receive = says_goodbye

    async def scenario() -> None:
        async with MemoryTransport(port) as client:
            with pytest.raises(NotReady, match="enough"):
                await client.request("echo")
            assert await client.receive() == CHANGED_BODY
            with pytest.raises(NotReady, match="enough"):
                await client.receive()

    run_virtual(scenario)
    assert port.events == ["open", "gone"]


def test_an_answer_that_was_put_before_the_end_still_arrives() -> None:
    port = FakePort()

    def answers_and_ends(message: Incoming) -> bool:
        assert isinstance(message, Request)
        port.sink.put(Response(message.id, "last"), about=message.id)
        port.sink.close("enough")
        return True

    port.on_receive = answers_and_ends

    async def scenario() -> None:
        async with MemoryTransport(port) as client:
            assert await client.request("echo") == result(1, "last")

    run_virtual(scenario)


def test_broadcasts_that_are_not_read_end_the_connection() -> None:
    """ours: the outbox of every transport is bounded."""
    port = FakePort()

    async def scenario() -> None:
        async with MemoryTransport(port, max_messages=3) as client:
            for _ in range(3):
                port.sink.put(ODD)
            port.sink.put(ODD, droppable=True)
            port.sink.put(Response(5, {}))
            client.notify("still open")
            port.sink.put(ODD)
            assert client.closed == "the client lets broadcasts pile up"
            assert len(client.unread()) == 4

    run_virtual(scenario)
    assert port.events == ["open", "gone"]
