"""client/requests.py: what is sent is checked and copied, what comes is read, lists are kept."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from raxol_mcp.client.answers import Accept, ElicitRequest
from raxol_mcp.client.app import Client
from raxol_mcp.client.readers import InvalidResult
from raxol_mcp.client.requests import Requests
from raxol_mcp.client.results import Progress
from raxol_mcp.core.tickets import Ticket
from raxol_mcp.errors import (
    ConfigurationError,
    ConnectFailed,
    NotReady,
    RequestFailed,
    TimedOut,
)
from raxol_mcp.testing.virtual_loop import run_virtual
from tests.client.peers.clients import memory_client
from tests.client.peers.memory_link import MemoryDialer
from tests.client.peers.script import (
    Message,
    leave,
    notice,
    on,
    question,
    reply,
    script,
    silent,
    text,
    until,
    wait,
)

SECRET = "s3cr3t-v4lue"
LEGACY, MODERN = script("legacy"), script("modern")
Test = Callable[[Requests, Client, MemoryDialer], Awaitable[None]]


def with_requests(test: Test, peer: Message = LEGACY, **options: Any) -> None:
    """Run a test with the requests of a client that is ready."""

    async def main() -> None:
        async with memory_client(peer, **options) as (client, dialer):
            await test(client._requests, client, dialer)

    run_virtual(main)


def sent(dialer: MemoryDialer, method: str) -> list[Message]:
    return [each for each in dialer.received if each.get("method") == method]


# -- what is given --------------------------------------------------------------------------------


@pytest.mark.parametrize(("given", "used"), [(None, 12.0), (0.5, 0.5), (7, 7), (1e9, 1e9)])
def test_a_timeout_is_what_is_given_or_that_of_the_spec(given: float | None, used: float) -> None:
    async def test(requests: Requests, client: Client, dialer: MemoryDialer) -> None:
        assert requests.timeout(given) == used

    with_requests(test, spec={"call_timeout": 12.0})


@pytest.mark.parametrize("given", [0, -1.0, 1.1e9, float("inf"), float("nan")])
def test_a_timeout_that_is_none_is_a_mistake(given: float) -> None:
    """ours: thirty years and more overflow clocks"""

    async def test(requests: Requests, client: Client, dialer: MemoryDialer) -> None:
        with pytest.raises(ConfigurationError, match="a timeout is a number of seconds above 0"):
            requests.timeout(given)

    with_requests(test)


def test_whoever_waits_may_do_so_for_ever_or_not_at_all() -> None:
    given = (None, float("inf"), -1.0, 0.0, 5.0, 1e9)
    assert [Requests.patience(each) for each in given] == [None, None, 0.0, 0.0, 5.0, 1e9]
    for mistake in (float("nan"), 1.1e9):
        with pytest.raises(ConfigurationError):
            Requests.patience(mistake)


def test_what_is_sent_is_what_was_given_then() -> None:
    """ours: whoever changes a value later changes nothing that is under way"""

    async def test(requests: Requests, client: Client, dialer: MemoryDialer) -> None:
        params: dict[str, object] = {"list": [1]}
        call = asyncio.create_task(requests.send("x/y", params, 5.0))
        await asyncio.sleep(0)
        params["list"] = "changed"
        assert await call == {"said": 1}
        (asked,) = sent(dialer, "x/y")
        assert asked["params"] == {"list": [1]}
        await requests.send("x/y")
        assert sent(dialer, "x/y")[1]["params"] == {}

    with_requests(test, script("legacy", on("x/y", reply({"said": 1}))))


@pytest.mark.parametrize("value", [object(), float("nan"), "\ud800", "x" * 5000])
def test_what_json_cannot_carry_is_not_sent(value: object) -> None:
    """ours: nor what is larger than a message may be"""

    async def test(requests: Requests, client: Client, dialer: MemoryDialer) -> None:
        before = len(dialer.received)
        for use in (requests.encoded, requests.copied):
            with pytest.raises(RequestFailed) as failed:
                use({"a": value})
            assert failed.value.tag == "encode_failed"
            assert not failed.value.outcome_unknown
        with pytest.raises(RequestFailed):
            await requests.send("x/y", {"a": value})
        with pytest.raises(RequestFailed):
            requests.notify("x/y", {"a": value})
        assert len(dialer.received) == before

    with_requests(test, spec={"max_message_bytes": 4096})


def test_the_end_of_a_request_is_that_of_the_caller_alone() -> None:
    async def test(requests: Requests, client: Client, dialer: MemoryDialer) -> None:
        with pytest.raises(TimedOut, match="x/y: no answer within 2 s"):
            await requests.send("x/y", None, 2.0)
        assert (await client.call_tool("echo", {"text": "on"})).text == "on"

    with_requests(test, script("legacy", on("x/y", silent())))


def test_progress_of_a_request_goes_to_whoever_made_it() -> None:
    tells = notice("notifications/progress", {"progressToken": "$TOKEN", "progress": 1})

    async def test(requests: Requests, client: Client, dialer: MemoryDialer) -> None:
        told: list[Progress] = []
        for wants in (True, False):
            ticket = Ticket("x/y", {}, timeout=5.0, wants_progress=wants)
            assert await requests.submit(ticket, told.append) == {}
        assert told == [Progress(1.0, None, None)]

    with_requests(test, script("legacy", on("x/y", tells, reply({}))))


def test_to_listen_lasts_until_the_server_ends_it() -> None:
    """MCP 2026-07-28 basic/patterns/subscriptions"""
    granted = {"notifications": {}, "_meta": {"io.modelcontextprotocol/subscriptionId": "$ID"}}
    ends = on(
        "subscriptions/listen",
        notice("notifications/subscriptions/acknowledged", granted),
        wait(5_000.0),
        reply({"resultType": "complete"}),
    )

    async def test(requests: Requests, client: Client, dialer: MemoryDialer) -> None:
        await requests.listen({"notifications": {"toolsListChanged": True}})
        assert asyncio.get_running_loop().time() == 5_000.0

    with_requests(test, script("modern", ends))


def test_to_listen_has_the_timeout_of_a_call_until_it_is_granted() -> None:
    async def test(requests: Requests, client: Client, dialer: MemoryDialer) -> None:
        with pytest.raises(TimedOut):
            await requests.listen({"notifications": {}})
        assert asyncio.get_running_loop().time() == 30.0

    with_requests(test, script("modern", on("subscriptions/listen", silent())))


# -- what is told ---------------------------------------------------------------------------------


def test_a_server_can_be_told_anything_while_there_is_a_session() -> None:
    async def test(requests: Requests, client: Client, dialer: MemoryDialer) -> None:
        requests.notify("x/told", {"a": 1})
        requests.notify("x/told", None)
        await client.ping()
        assert [each["params"] for each in sent(dialer, "x/told")] == [{"a": 1}, {}]

    with_requests(test)


def test_without_a_session_a_notification_and_a_list_are_refused() -> None:
    """ours: also a list that is kept, for the next session may have another"""

    async def test(requests: Requests, client: Client, dialer: MemoryDialer) -> None:
        await client.list_tools()
        with pytest.raises(Exception, match="connection lost"):
            await client.call_tool("echo")
        for _ in range(2):
            with pytest.raises(ConnectFailed):
                requests.notify("x/told", {})
            with pytest.raises(ConnectFailed):
                await requests.list(client._lists.tools, timeout=None, refresh=False)
            assert not requests.is_ready
        await client.stop()
        with pytest.raises(NotReady, match="stopped"):
            requests.notify("x/told", {})

    with_requests(test, script("legacy", on("tools/call", leave(1))))


@pytest.mark.parametrize(("peer", "stateless"), [(LEGACY, False), (MODERN, True)])
def test_the_level_of_the_log_goes_with_every_stateless_request(
    peer: Message, stateless: bool
) -> None:
    """MCP 2026-07-28 server/utilities/logging"""

    async def test(requests: Requests, client: Client, dialer: MemoryDialer) -> None:
        assert requests.is_stateless is stateless
        requests.log_from("error")
        await requests.send("tools/call", {"name": "echo"})
        meta = sent(dialer, "tools/call")[0]["params"].get("_meta", {})
        level = meta.get("io.modelcontextprotocol/logLevel")
        assert level == ("error" if stateless else None)

    with_requests(test, peer)


@pytest.mark.parametrize(
    ("capabilities", "announced"),
    [
        ({"tools": {"listChanged": True}}, True),
        ({"tools": {"listChanged": False}}, False),
        ({"tools": {"listChanged": "yes"}}, False),
        ({"tools": {}}, False),
        ({"tools": None}, False),
        ({}, False),
    ],
)
def test_a_server_announces_what_it_says_it_does(capabilities: Message, announced: bool) -> None:
    """MCP basic/lifecycle §Capability Negotiation"""

    async def test(requests: Requests, client: Client, dialer: MemoryDialer) -> None:
        assert requests.announces("tools") is announced
        assert requests.announces("prompts") is False
        await client.stop()
        assert requests.announces("tools") is False

    with_requests(test, script("legacy", capabilities=capabilities))


# -- what is read ---------------------------------------------------------------------------------


def test_a_result_that_is_none_is_told_without_secrets() -> None:
    """ours: the request was carried out, for all anybody knows"""

    def fails(result: object) -> str:
        raise InvalidResult("x/y", f"{SECRET} is not a list")

    async def test(requests: Requests, client: Client, dialer: MemoryDialer) -> None:
        assert requests.read(lambda result: result, {"a": 1}) == {"a": 1}
        with pytest.raises(RequestFailed) as failed:
            requests.read(fails, {})
        assert failed.value.reason.path == ("invalid_response", "x/y")
        assert failed.value.outcome_unknown
        assert SECRET not in str(failed.value)
        assert "[redacted] is not a list" in str(failed.value)
        assert requests.mask(SECRET) == "[redacted]"

    with_requests(test, spec={"args": ["--key", SECRET]})


def test_a_list_that_is_none_is_an_error_of_its_method() -> None:
    async def test(requests: Requests, client: Client, dialer: MemoryDialer) -> None:
        with pytest.raises(RequestFailed) as failed:
            await client.list_tools()
        assert failed.value.reason.path == ("invalid_response", "tools/list")
        assert not failed.value.outcome_unknown

    with_requests(test, script("legacy", on("tools/list", reply({"tools": 7}))))


def test_a_list_is_given_from_memory_and_may_be_changed() -> None:
    async def test(requests: Requests, client: Client, dialer: MemoryDialer) -> None:
        tools = client._lists.tools

        async def read(*, refresh: bool = False) -> int:
            found = await requests.list(tools, timeout=None, refresh=refresh)
            count = len(found)
            found.clear()
            return count

        assert [await read(), await read(), await read()] == [2, 2, 2]
        assert len(sent(dialer, "tools/list")) == 1
        assert await read(refresh=True) == 2
        assert len(sent(dialer, "tools/list")) == 2

    with_requests(test)


def test_a_stateless_list_that_does_not_say_how_long_it_is_good_is_not_kept() -> None:
    """MCP 2026-07-28 server/utilities/caching"""
    silent_of_it = on("tools/list", reply({"resultType": "complete", "tools": []}))

    async def test(requests: Requests, client: Client, dialer: MemoryDialer) -> None:
        await client.list_tools()
        await client.list_tools()
        assert len(sent(dialer, "tools/list")) == 2

    with_requests(test, script("modern", silent_of_it))


def test_a_list_that_changes_while_it_is_read_is_asked_for_again() -> None:
    """ours: and the one after that is kept again"""
    changes = script(
        "legacy",
        on(
            "tools/list",
            reply({"tools": [], "nextCursor": "a"}),
            notice("notifications/tools/list_changed"),
            times=1,
        ),
    )

    async def test(requests: Requests, client: Client, dialer: MemoryDialer) -> None:
        assert len(await client.list_tools()) == 2
        assert len(sent(dialer, "tools/list")) == 2
        await client.list_tools()
        assert len(sent(dialer, "tools/list")) == 3
        await client.list_tools()
        assert len(sent(dialer, "tools/list")) == 3

    with_requests(test, changes)


def test_the_pages_of_a_list_have_one_timeout_together() -> None:
    rules = [
        on("tools/list", wait(4.0), reply({"tools": [], "nextCursor": cursor}), times=1)
        for cursor in "abcdef"
    ]
    slow = script("legacy", *rules)

    async def test(requests: Requests, client: Client, dialer: MemoryDialer) -> None:
        loop = asyncio.get_running_loop()
        for seconds, pages in ((10.0, 3), (7.0, 2)):
            dialer.received.clear()
            began_at = loop.time()
            with pytest.raises(TimedOut, match=f"tools/list: no answer within {seconds:g} s"):
                await client.list_tools(timeout=seconds)
            assert loop.time() - began_at == seconds
            assert len(sent(dialer, "tools/list")) == pages
        assert client.status().pending == 0

    with_requests(test, slow)


def test_a_page_for_which_no_time_is_left_is_not_asked_for() -> None:
    """ADR-0026: while the user answers the timer of one request stands still, not that of all"""
    asks = question(
        "elicitation/create",
        {"message": "?", "requestedSchema": {"type": "object", "properties": {}}},
    )
    first = on("tools/list", asks, until("answer"), reply({"tools": [], "nextCursor": "a"}))

    async def slowly(_: ElicitRequest) -> Accept:
        await asyncio.sleep(20.0)
        return Accept()

    async def test(requests: Requests, client: Client, dialer: MemoryDialer) -> None:
        with pytest.raises(TimedOut, match="tools/list: no answer within 10 s") as late:
            await client.list_tools(timeout=10.0)
        assert late.value.reason is not None
        assert not late.value.reason.maybe_done
        assert len(sent(dialer, "tools/list")) == 1

    with_requests(test, script("legacy", first), elicitation=slowly)


@pytest.mark.parametrize(("announces", "asked"), [(True, 3), (False, 1)])
def test_a_list_is_not_kept_while_its_changes_cannot_be_heard(announces: bool, asked: int) -> None:
    """MCP 2025-11-25 basic/transports §Listening: a server need not have that stream"""

    async def test(requests: Requests, client: Client, dialer: MemoryDialer) -> None:
        dialer.links[0]._port.hears(False)
        for _ in range(3):
            await client.list_tools()
        assert len(sent(dialer, "tools/list")) == asked
        dialer.links[0]._port.hears(True)
        await client.list_tools()
        await client.list_tools()
        assert len(sent(dialer, "tools/list")) == asked + announces

    with_requests(test, script("legacy", capabilities={"tools": {"listChanged": announces}}))


def test_a_list_of_no_session_is_not_given_to_the_next() -> None:
    leaves = script("legacy", on("tools/call", leave(1)), on("ping", text("x")))

    async def test(requests: Requests, client: Client, dialer: MemoryDialer) -> None:
        await client.list_tools()
        with pytest.raises(Exception, match="connection lost"):
            await client.call_tool("echo")
        await client.await_ready()
        assert client.status().tools is None
        await client.list_tools()
        assert len(sent(dialer, "tools/list")) == 2

    with_requests(test, leaves)


def test_something_may_run_beside_it_until_the_client_stops() -> None:
    async def test(requests: Requests, client: Client, dialer: MemoryDialer) -> None:
        ends: list[str] = []

        async def forever() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ends.append("cancelled")

        requests.spawn(forever(), "beside it")
        await asyncio.sleep(0)
        await client.stop()
        assert ends == ["cancelled"]

    with_requests(test)
