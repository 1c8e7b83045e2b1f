"""client/subscriptions.py: what is asked of servers of both eras, and what subscribers are told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from itertools import pairwise

import pytest

from raxol_mcp.client.requests import Requests
from raxol_mcp.client.results import Change
from raxol_mcp.client.subscriptions import MAX_URIS, Subscription, Subscriptions
from raxol_mcp.errors import (
    Busy,
    ConfigurationError,
    ConnectionLost,
    NotReady,
    RaxolError,
    Reason,
    RemoteProtocolError,
    TimedOut,
)
from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.wire.jsonrpc import JSONObject

TOOLS, PROMPTS, RESOURCES = Change("tools"), Change("prompts"), Change("resources")
LOST = ConnectionLost(Reason("transport", "reset"), outcome_unknown=True)
NO_METHOD = RemoteProtocolError(-32601, "Method\nnot found")
NOT_THIS = RemoteProtocolError(-32602, "no such resource")
NOT_NOW = RemoteProtocolError(-32603, "try again")


class HeldRequests(Requests):
    """The requests of a client whose server is held in the hand.

    `sent` are requests, with the resource they are about; `listens` what was listened to and
    when. `answers` says what becomes of a request.
    """

    def __init__(self, *, stateless: bool) -> None:
        self.stateless = stateless
        self.sent: list[tuple[str, object]] = []
        self.listens: list[tuple[float, JSONObject]] = []
        self.streams: list[asyncio.Future[None]] = []
        self.opens = True  # whether a stream can be opened
        self.announced: set[str] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        self.answers: Callable[[str, object], Awaitable[None]] = self._at_once

    async def _at_once(self, method: str, uri: object) -> None:
        pass

    @property
    def is_stateless(self) -> bool:
        return self.stateless

    async def send(
        self,
        method: str,
        params: Mapping[str, object] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  # that of what stands in for
    ) -> JSONObject:
        uri = (params or {}).get("uri")
        self.sent.append((method.removeprefix("resources/"), uri))
        await self.answers(self.sent[-1][0], uri)
        return {}

    async def listen(self, params: JSONObject) -> None:
        loop = asyncio.get_running_loop()
        wanted = params["notifications"]
        assert isinstance(wanted, dict)
        self.listens.append((loop.time(), wanted))
        if not self.opens:
            raise LOST
        self.streams.append(loop.create_future())
        await self.streams[-1]

    def announces(self, kind: str) -> bool:
        return kind in self.announced

    def spawn(self, work: Coroutine[object, object, None], what: str) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, name=what)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task


class Rig:
    """Subscriptions with everything that they touch. `told` is what the client itself is told."""

    def __init__(self, *, stateless: bool) -> None:
        self.requests = HeldRequests(stateless=stateless)
        self.told: list[Change] = []
        self.all = Subscriptions(self.requests, self.told.append)

    def to(self, *lists: str, uris: tuple[str, ...] = ()) -> Subscription:
        return self.all.subscribe(lists=lists, uris=uris)

    def enter(self, *lists: str, uris: tuple[str, ...] = ()) -> asyncio.Task[Subscription]:
        """Begin to enter a subscription."""
        return asyncio.create_task(self.to(*lists, uris=uris).__aenter__())

    async def entered(self, *lists: str, uris: tuple[str, ...] = ()) -> Subscription:
        """Enter a subscription, which a stateless server acknowledges."""
        entering = self.enter(*lists, uris=uris)
        await turns()
        if self.requests.stateless:
            self.all.acknowledged()
        return await entering

    def end(self, error: BaseException | None = None) -> None:
        """Have the server end the latest stream."""
        stream = self.requests.streams[-1]
        if error is None:
            stream.set_result(None)
        else:
            stream.set_exception(error)

    def filters(self) -> list[JSONObject]:
        return [wanted for _, wanted in self.requests.listens]

    def open(self) -> int:
        """How many streams there are."""
        return sum(not stream.done() for stream in self.requests.streams)


async def leave(subscription: Subscription) -> None:
    await subscription.__aexit__(None, None, None)


async def turns(count: int = 10) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def failed(work: Awaitable[object]) -> BaseException:
    with pytest.raises(BaseException) as caught:  # noqa: PT011  # the test looks at it
        await work
    return caught.value


def pending(subscription: Subscription) -> list[Change]:
    """Take all there is to read, without waiting."""
    found = list(subscription._pending)
    subscription._pending.clear()
    return found


def with_rig(
    test: Callable[[Rig], Coroutine[object, object, None]], *, stateless: bool = False
) -> None:
    """Run a test; afterwards nothing is left."""

    async def main() -> None:
        before = asyncio.all_tasks()
        rig = Rig(stateless=stateless)
        await test(rig)
        rig.all.stop()
        await turns()
        assert asyncio.all_tasks() == before
        assert rig.open() == 0

    run_virtual(main)


# -- reading --------------------------------------------------------------------------------------


def test_a_change_is_told_once_for_one_look_and_in_order() -> None:
    async def test(rig: Rig) -> None:
        changes = await rig.entered("tools", "prompts", uris=("a:b",))
        for _ in range(3):
            rig.all.notified("notifications/prompts/list_changed", {})
            rig.all.notified("notifications/tools/list_changed", {})
            rig.all.notified("notifications/resources/list_changed", {})
            rig.all.notified("notifications/resources/updated", {"uri": "a:b"})
            rig.all.notified("notifications/resources/updated", {"uri": "c:d"})
        assert [await anext(changes) for _ in range(3)] == [
            PROMPTS,
            TOOLS,
            Change("resource", "a:b"),
        ]
        assert pending(changes) == []
        rig.all.notified("notifications/tools/list_changed", {})
        assert await anext(changes) == TOOLS
        assert len(rig.told) == 16, "the client itself is told every time"

    with_rig(test)


def test_whoever_reads_waits_until_there_is_a_change() -> None:
    async def test(rig: Rig) -> None:
        changes = await rig.entered("tools")
        reading = asyncio.create_task(anext(changes))
        await turns()
        assert not reading.done()
        rig.all.notified("notifications/prompts/list_changed", {})
        await turns()
        assert not reading.done()
        rig.all.notified("notifications/tools/list_changed", {})
        assert await reading == TOOLS

    with_rig(test)


def test_whoever_reads_when_the_client_stops_is_done() -> None:
    async def test(rig: Rig) -> None:
        changes = await rig.entered("tools")
        reading = asyncio.create_task(anext(changes))
        await turns()
        rig.all.stop()
        assert isinstance(await failed(reading), StopAsyncIteration)

    with_rig(test)


def test_what_is_there_is_still_read_after_the_end() -> None:
    async def test(rig: Rig) -> None:
        changes = await rig.entered("tools")
        rig.all.notified("notifications/tools/list_changed", {})
        rig.all.stop()
        assert [change async for change in changes] == [TOOLS]

    with_rig(test)


def test_the_client_is_told_before_its_subscribers() -> None:
    """ours: whoever is told and asks for the list must not get the old one"""

    async def main() -> None:
        seen: list[bool] = []
        subscriptions = Subscriptions(
            HeldRequests(stateless=False), lambda _: seen.append(bool(changes._pending))
        )
        changes = subscriptions.subscribe(lists=["tools"], uris=())
        await subscriptions.add(changes)
        subscriptions.notified("notifications/tools/list_changed", {})
        assert seen == [False]

    run_virtual(main)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("notifications/resources/updated", {}),
        ("notifications/resources/updated", {"uri": 7}),
        ("notifications/else", {"uri": "a:b"}),
    ],
)
def test_what_is_no_change_is_none(method: str, params: JSONObject) -> None:
    rig = Rig(stateless=False)
    assert not rig.all.notified(method, params)
    assert rig.all.notified("notifications/tools/list_changed", {})
    assert rig.told == [TOOLS]


def test_whoever_subscribes_wants_something() -> None:
    with pytest.raises(ConfigurationError, match="subscribe to something"):
        Rig(stateless=False).to()


@pytest.mark.parametrize("stateless", [False, True])
def test_a_client_has_a_bounded_number_of_resources(stateless: bool) -> None:
    async def test(rig: Rig) -> None:
        many = tuple(f"a:{number}" for number in range(MAX_URIS))
        first = await rig.entered(uris=many)
        with pytest.raises(ConfigurationError, match=f"at most {MAX_URIS}"):
            await rig.entered(uris=("b:1",))
        shared = await rig.entered(uris=many[:5])
        await leave(first)
        await rig.entered(uris=("b:1",))
        await leave(shared)

    with_rig(test, stateless=stateless)


@pytest.mark.parametrize("stateless", [False, True])
def test_after_the_end_there_is_nothing_to_subscribe_to(stateless: bool) -> None:
    async def test(rig: Rig) -> None:
        changes = await rig.entered("tools")
        rig.all.stop()
        async with rig.to("tools") as late:
            assert [change async for change in late] == []
        assert [change async for change in changes] == []
        count = len(rig.requests.listens)
        await turns()
        assert len(rig.requests.listens) == count

    with_rig(test, stateless=stateless)


def test_after_a_gap_all_that_could_have_been_told_is() -> None:
    """ours: subscribed to, or announced and perhaps kept"""

    async def test(rig: Rig) -> None:
        rig.requests.announced = {"tools", "prompts"}
        changes = await rig.entered("tools", uris=("a:b",))
        rig.all.missed()
        assert set(rig.told) == {TOOLS, PROMPTS, Change("resource", "a:b")}
        assert set(pending(changes)) == {TOOLS, Change("resource", "a:b")}

    with_rig(test)


# -- the handshake era (MCP 2025-11-25 server/resources §Subscriptions) ---------------------------


def test_a_resource_is_subscribed_to_once_and_unsubscribed_by_the_last() -> None:
    async def test(rig: Rig) -> None:
        first = await rig.entered("tools", uris=("a:1", "a:2"))
        second = await rig.entered(uris=("a:2",))
        assert sorted(rig.requests.sent) == [("subscribe", "a:1"), ("subscribe", "a:2")]
        rig.requests.sent.clear()
        await leave(first)
        assert rig.requests.sent == [("unsubscribe", "a:1")]
        await leave(second)
        await leave(second)
        assert rig.requests.sent == [("unsubscribe", "a:1"), ("unsubscribe", "a:2")]
        assert rig.all._uris == {}
        assert rig.requests.listens == []

    with_rig(test)


def test_lists_need_no_subscription() -> None:
    """MCP 2025-11-25: a server that says so tells of them"""

    async def test(rig: Rig) -> None:
        async with rig.to("tools", "prompts", "resources"):
            pass
        rig.all.watch("tools")
        assert (rig.requests.sent, rig.requests.listens) == ([], [])

    with_rig(test)


def test_a_resource_that_is_refused_is_an_error_and_nothing_is_left() -> None:
    """ours: not even on the server"""

    async def test(rig: Rig) -> None:
        other = await rig.entered(uris=("a:0",))
        done: list[object] = []

        async def answers(method: str, uri: object) -> None:
            if method == "subscribe" and done:
                raise NOT_THIS
            done.append(uri)

        rig.requests.answers = answers
        rig.requests.sent.clear()
        assert await failed(rig.to(uris=("a:0", "a:1", "a:2")).__aenter__()) is NOT_THIS
        await turns()
        asked = [uri for method, uri in rig.requests.sent if method == "subscribe"]
        assert sorted(map(str, asked)) == ["a:1", "a:2"]
        assert [each for each in rig.requests.sent if each[0] == "unsubscribe"] == [
            ("unsubscribe", uri) for uri in asked
        ]
        assert (rig.all._uris, list(rig.all._subscriptions)) == ({"a:0": 1}, [other])

    with_rig(test)


def test_whoever_is_cancelled_while_subscribing_leaves_nothing() -> None:
    async def test(rig: Rig) -> None:
        async def answers(method: str, uri: object) -> None:
            if method == "subscribe":
                await asyncio.Event().wait()

        rig.requests.answers = answers
        entering = rig.enter(uris=("a:1",))
        await turns()
        entering.cancel()
        assert isinstance(await failed(entering), asyncio.CancelledError)
        await turns()
        assert rig.requests.sent == [("subscribe", "a:1"), ("unsubscribe", "a:1")]
        assert (rig.all._uris, rig.all._subscriptions) == ({}, {})

    with_rig(test)


def test_what_is_refused_to_the_first_is_refused_to_the_second_who_came_meanwhile() -> None:
    """ours: who has entered is subscribed; nobody relies on an answer that was not given"""

    async def test(rig: Rig) -> None:
        refused = asyncio.Event()

        async def answers(method: str, uri: object) -> None:
            await refused.wait()
            raise NOT_THIS

        rig.requests.answers = answers
        both = [rig.enter(uris=("a:1",)) for _ in range(2)]
        await turns()
        refused.set()
        assert [await failed(each) for each in both] == [NOT_THIS] * 2
        await turns()
        assert (rig.all._uris, rig.all._granted) == ({}, set())

    with_rig(test)


def test_what_a_new_session_refused_is_asked_for_again_by_who_comes_later() -> None:
    async def test(rig: Rig) -> None:
        await rig.entered(uris=("a:1",))

        async def answers(method: str, uri: object) -> None:
            raise NOT_THIS

        rig.requests.answers = answers
        rig.all.renewed()
        await turns()
        assert await failed(rig.to(uris=("a:1",)).__aenter__()) is NOT_THIS

    with_rig(test)


def test_an_answer_that_comes_when_nobody_wants_the_resource_is_forgotten() -> None:
    async def test(rig: Rig) -> None:
        changes = await rig.entered(uris=("a:1",))
        answered = asyncio.Event()

        async def answers(method: str, uri: object) -> None:
            if method == "subscribe":
                await answered.wait()

        rig.requests.answers = answers
        rig.all.renewed()
        await turns()
        await leave(changes)
        answered.set()
        await turns()
        assert rig.all._granted == set()
        await rig.entered(uris=("a:1",))
        assert rig.requests.sent[-1] == ("subscribe", "a:1")

    with_rig(test)


def test_a_client_that_stops_meanwhile_asks_for_nothing_more() -> None:
    async def test(rig: Rig) -> None:
        async def answers(method: str, uri: object) -> None:
            rig.all.stop()
            raise NotReady("stopped")

        rig.requests.answers = answers
        assert isinstance(await failed(rig.enter(uris=("a:1",))), NotReady)
        await turns()
        assert rig.requests.sent == [("subscribe", "a:1")]

    with_rig(test)


@pytest.mark.parametrize(("error", "asked"), [(NOT_THIS, 3), (LOST, 1), (NotReady("closed"), 1)])
def test_what_cannot_be_unsubscribed_does_not_keep_anybody(error: RaxolError, asked: int) -> None:
    """ours: a server that is gone is not asked about each resource"""

    async def test(rig: Rig) -> None:
        changes = await rig.entered(uris=("a:1", "a:2", "a:3"))

        async def answers(method: str, uri: object) -> None:
            raise error

        rig.requests.answers = answers
        rig.requests.sent.clear()
        await leave(changes)
        assert [method for method, _ in rig.requests.sent] == ["unsubscribe"] * asked

    with_rig(test)


def test_what_somebody_wants_again_is_not_unsubscribed() -> None:
    async def test(rig: Rig) -> None:
        first = await rig.entered(uris=("a:1", "a:2"))
        gone: list[object] = []

        async def answers(method: str, uri: object) -> None:
            if method == "unsubscribe":
                gone.append(uri)
                await rig.entered(uris=("a:1", "a:2"))

        rig.requests.answers = answers
        await leave(first)
        assert len(gone) == 1

    with_rig(test)


def test_a_new_session_is_subscribed_to_again_and_everything_counts_as_changed() -> None:
    async def test(rig: Rig) -> None:
        changes = await rig.entered("tools", uris=("a:1", "a:2", "a:3"))
        rig.requests.sent.clear()

        async def answers(method: str, uri: object) -> None:
            if uri == "a:2":
                raise NOT_THIS  # it is gone; the others are not

        rig.requests.answers = answers
        rig.all.renewed()
        assert set(pending(changes)) == {TOOLS, *(Change("resource", f"a:{n}") for n in (1, 2, 3))}
        await turns()
        assert sorted(map(str, rig.requests.sent)) == [f"('subscribe', 'a:{n}')" for n in (1, 2, 3)]

    with_rig(test)


def test_a_new_session_in_which_nobody_wants_a_resource_is_asked_for_none() -> None:
    async def test(rig: Rig) -> None:
        await rig.entered("tools")
        rig.all.renewed()
        await turns()
        assert rig.requests.sent == []

    with_rig(test)


def test_a_session_that_ends_meanwhile_leaves_the_rest_to_the_next() -> None:
    async def test(rig: Rig) -> None:
        await rig.entered(uris=("a:1", "a:2"))
        rig.requests.sent.clear()

        async def answers(method: str, uri: object) -> None:
            raise NotReady("closed")

        rig.requests.answers = answers
        rig.all.renewed()
        await turns()
        assert len(rig.requests.sent) == 1

    with_rig(test)


def test_a_subscription_is_not_lost_because_much_else_goes_on() -> None:
    """ours: a client that is busy with the calls that waited for the session asks a little later"""

    async def test(rig: Rig) -> None:
        await rig.entered(uris=("a:1",))
        rig.requests.sent.clear()

        async def answers(method: str, uri: object) -> None:
            if len(rig.requests.sent) < 3:
                raise Busy

        rig.requests.answers = answers
        rig.all.renewed()
        await asyncio.sleep(10.0)
        assert rig.requests.sent == [("subscribe", "a:1")] * 3

    with_rig(test)


def test_what_nobody_wants_any_more_is_not_subscribed_to_again() -> None:
    async def test(rig: Rig) -> None:
        changes = await rig.entered(uris=("a:1",))
        rig.requests.sent.clear()
        rig.all.renewed()
        await leave(changes)
        await turns()
        assert rig.requests.sent == [("unsubscribe", "a:1")]

    with_rig(test)


# -- the stateless era (MCP 2026-07-28 basic/patterns/subscriptions) ------------------------------


def test_one_stream_tells_everybody_and_names_what_they_want_together() -> None:
    async def test(rig: Rig) -> None:
        first = await rig.entered("tools", "resources", uris=("b:1",))
        assert rig.filters() == [
            {
                "toolsListChanged": True,
                "resourcesListChanged": True,
                "resourceSubscriptions": ["b:1"],
            }
        ]
        second = await rig.entered("prompts", uris=("a:1", "b:1"))
        both = {
            "toolsListChanged": True,
            "promptsListChanged": True,
            "resourcesListChanged": True,
            "resourceSubscriptions": ["a:1", "b:1"],
        }
        assert rig.filters()[-1] == both
        assert rig.open() == 1, "two streams would tell all twice"
        assert (await rig.entered("tools")).wanted == {TOOLS}
        assert len(rig.filters()) == 2, "that is listened to already"
        await leave(first)
        await turns()
        assert rig.filters()[-1] == {
            "toolsListChanged": True,
            "promptsListChanged": True,
            "resourceSubscriptions": ["a:1", "b:1"],
        }
        await leave(second)
        await turns()
        assert rig.filters()[-1] == {"toolsListChanged": True}
        assert rig.requests.sent == []

    with_rig(test, stateless=True)


def test_when_the_last_has_left_nobody_listens() -> None:
    async def test(rig: Rig) -> None:
        async with AsyncExitStack() as stack:
            changes = await rig.entered("tools")
            stack.push_async_callback(leave, changes)
            assert rig.open() == 1
        await turns()
        assert (rig.open(), len(rig.filters())) == (0, 1)

    with_rig(test, stateless=True)


def test_what_a_change_of_streams_may_have_cost_is_told_with_the_next() -> None:
    async def test(rig: Rig) -> None:
        first = await rig.entered("tools")
        assert pending(first) == [], "nothing was missed before"
        second = await rig.entered("prompts")
        assert (pending(first), pending(second)) == ([TOOLS], [])

    with_rig(test, stateless=True)


def test_nobody_is_told_of_what_was_missed_before_he_came() -> None:
    async def test(rig: Rig) -> None:
        await rig.entered("tools")
        prompts = await rig.entered("prompts")
        await leave(prompts)
        await turns()
        rig.all.acknowledged()
        assert pending(await rig.entered("prompts")) == []

    with_rig(test, stateless=True)


def test_whoever_enters_waits_until_the_server_has_said_something() -> None:
    async def test(rig: Rig) -> None:
        entering = rig.enter("tools")
        await asyncio.sleep(25.0)
        assert not entering.done()
        also = rig.enter("prompts")
        await turns()
        assert len(rig.filters()) == 2
        assert not entering.done(), "the listen that it waited for is no more"
        rig.all.acknowledged()
        assert (await entering).wanted | (await also).wanted == {TOOLS, PROMPTS}

    with_rig(test, stateless=True)


def test_whoever_is_cancelled_while_it_waits_takes_its_part_along() -> None:
    async def test(rig: Rig) -> None:
        await rig.entered("tools")
        entering = rig.enter(uris=("a:1",))
        await turns()
        entering.cancel()
        assert isinstance(await failed(entering), asyncio.CancelledError)
        await turns()
        assert rig.filters()[-1] == {"toolsListChanged": True}
        assert (rig.all._uris, len(rig.all._subscriptions), rig.open()) == ({}, 1, 1)

    with_rig(test, stateless=True)


@pytest.mark.parametrize("turn", [1, 2, 5])
def test_a_client_that_stops_lets_go_whoever_waits(turn: int) -> None:
    """ours: also before anything was sent"""

    async def test(rig: Rig) -> None:
        entering = rig.enter("tools")
        await turns(turn)
        rig.all.stop()
        assert [change async for change in await entering] == []

    with_rig(test, stateless=True)


def test_a_server_that_listens_to_nothing_is_asked_once_in_a_session() -> None:
    """JSON-RPC 2.0 §5.1: there is no such method"""

    async def test(rig: Rig) -> None:
        entering = rig.enter("tools")
        await turns()
        rig.end(NO_METHOD)
        assert await failed(entering) is NO_METHOD
        assert await failed(rig.enter("prompts")) is NO_METHOD
        rig.all.watch("tools")
        assert await failed(rig.enter("tools")) is NO_METHOD
        await asyncio.sleep(1_000.0)
        assert len(rig.filters()) == 1
        assert rig.all._subscriptions == {}
        rig.all.renewed()
        assert (await rig.entered("tools")).wanted == {TOOLS}
        assert len(rig.filters()) == 2

    with_rig(test, stateless=True)


def test_what_is_refused_to_one_is_not_to_others() -> None:
    """ours: a resource that is not there says nothing about the lists"""

    async def test(rig: Rig) -> None:
        tools = await rig.entered("tools")
        entering = rig.enter(uris=("a:1",))
        await turns()
        rig.end(NOT_THIS)
        assert await failed(entering) is NOT_THIS
        await turns()
        assert rig.filters()[-1] == {"toolsListChanged": True}
        rig.all.acknowledged()
        assert pending(tools) == [TOOLS]
        assert (await rig.entered("prompts")).wanted == {PROMPTS}

    with_rig(test, stateless=True)


def test_a_refusal_is_not_held_against_who_comes_later() -> None:
    async def test(rig: Rig) -> None:
        entering = rig.enter(uris=("a:1",))
        await turns()
        rig.end(NOT_THIS)
        assert await failed(entering) is NOT_THIS
        entering = rig.enter("tools")
        await turns()
        rig.end(LOST)
        assert (await entering).wanted == {TOOLS}

    with_rig(test, stateless=True)


def test_a_refusal_of_later_is_a_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """ours: nobody waits who could be told; and nothing of the server's gets unescaped into it"""

    async def test(rig: Rig) -> None:
        await rig.entered("tools")
        rig.all.renewed()
        await turns()
        rig.end(NO_METHOD)
        await asyncio.sleep(1_000.0)
        assert len(rig.filters()) == 2

    with_rig(test, stateless=True)
    assert r"a subscription is refused: Method\nnot found" in caplog.text


def test_a_server_that_cannot_now_is_asked_again() -> None:
    """ours: a subscription holds over reconnects, also to a server that is not quite there"""

    async def test(rig: Rig) -> None:
        changes = await rig.entered("tools")
        rig.all.renewed()
        pending(changes)
        await turns()
        rig.end(NOT_NOW)
        await asyncio.sleep(1.0)
        await turns()
        assert len(rig.filters()) == 3
        rig.all.acknowledged()
        assert pending(changes) == [TOOLS]
        assert (await rig.entered("tools")).wanted == {TOOLS}

    with_rig(test, stateless=True)


def test_whoever_comes_while_a_server_cannot_is_told_so() -> None:
    async def test(rig: Rig) -> None:
        entering = rig.enter("tools")
        await turns()
        rig.end(NOT_NOW)
        assert await failed(entering) is NOT_NOW
        await asyncio.sleep(1_000.0)
        assert len(rig.filters()) == 1, "nobody wants anything"
        assert (await rig.entered("tools")).wanted == {TOOLS}

    with_rig(test, stateless=True)


@pytest.mark.parametrize("error", [None, LOST, TimedOut("no answer"), NO_METHOD])
def test_a_stream_that_ends_is_opened_again_and_what_was_missed_is_told(
    error: BaseException | None,
) -> None:
    """ours: whatever it ends with; that it was in force says that it can be"""

    async def test(rig: Rig) -> None:
        changes = await rig.entered("tools")
        for time in (1.0, 2.0, 3.0):
            rig.end(error)
            await asyncio.sleep(1.0)
            await turns()
            assert rig.requests.listens[-1][0] == time
            assert pending(changes) == []
            rig.all.acknowledged()
            assert pending(changes) == [TOOLS]
        assert len(rig.filters()) == 4

    with_rig(test, stateless=True)


def test_a_stream_that_cannot_be_opened_is_tried_less_and_less_often() -> None:
    async def test(rig: Rig) -> None:
        changes = await rig.entered("tools")
        rig.end(LOST)
        rig.requests.opens = False
        await asyncio.sleep(200.0)
        times = [time for time, _ in rig.requests.listens]
        gaps = [later - time for time, later in pairwise(times)]
        assert gaps == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
        rig.requests.opens = True
        await asyncio.sleep(60.0)
        rig.all.acknowledged()
        assert pending(changes) == [TOOLS]
        rig.end()
        await asyncio.sleep(1.0)
        await turns()
        assert rig.open() == 1, "that it worked begins anew"

    with_rig(test, stateless=True)


def test_a_stream_that_cannot_be_opened_keeps_nobody_from_entering() -> None:
    """ours: what changes until it is in force is told then"""

    async def test(rig: Rig) -> None:
        entering = rig.enter("tools")
        await turns()
        rig.end(LOST)
        changes = await entering
        await asyncio.sleep(1.0)
        await turns()
        rig.all.acknowledged()
        assert pending(changes) == [TOOLS]

    with_rig(test, stateless=True)


def test_without_a_session_nobody_listens_until_there_is_one() -> None:
    async def test(rig: Rig) -> None:
        changes = await rig.entered("tools", uris=("a:1",))
        rig.end(NotReady("closed"))
        await asyncio.sleep(1_000.0)
        assert len(rig.filters()) == 1
        rig.all.renewed()
        assert set(pending(changes)) == {TOOLS, Change("resource", "a:1")}
        await turns()
        assert rig.filters()[-1] == rig.filters()[0]
        rig.all.acknowledged()
        assert pending(changes) == [], "it is told already"

    with_rig(test, stateless=True)


@pytest.mark.parametrize("stateless", [False, True])
def test_a_subscription_holds_over_a_change_of_era(stateless: bool) -> None:
    async def test(rig: Rig) -> None:
        changes = await rig.entered("tools", uris=("a:1",))
        rig.requests.sent.clear()
        rig.requests.listens.clear()
        rig.requests.stateless = not stateless
        rig.all.renewed()
        assert len(pending(changes)) == 2
        await turns()
        assert (len(rig.requests.listens), len(rig.requests.sent)) == (
            (0, 1) if stateless else (1, 0)
        )
        assert rig.open() == (not stateless)
        await leave(changes)

    with_rig(test, stateless=stateless)


def test_what_the_client_itself_watches_is_listened_to_as_well() -> None:
    """ours: so that it may keep a list"""

    async def test(rig: Rig) -> None:
        rig.all.watch("tools")
        rig.all.watch("tools")
        await turns()
        assert rig.filters() == [{"toolsListChanged": True}]
        rig.all.acknowledged()
        changes = await rig.entered("tools", "prompts")
        assert rig.told == [TOOLS]
        await leave(changes)
        await turns()
        assert rig.filters()[-1] == {"toolsListChanged": True}

    with_rig(test, stateless=True)
