"""Callbacks in workers: how many, how long, and what they cannot do to anybody else."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from raxol_mcp import (
    Completion,
    ConnectionFacts,
    Context,
    Limits,
    Prompt,
    Resource,
    Server,
    TimedOut,
    ToolError,
    allow,
    ask,
)
from raxol_mcp.server.authorizer import AuthorizationContext, Decision
from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.wire.meta import EraName
from tests.acceptance import process_tools
from tests.acceptance.world import (
    FORMS,
    HANDSHAKE,
    STATELESS,
    YES,
    Client,
    Counted,
    Held,
    Json,
    asks,
    at,
    busy,
    decides,
    denial,
    failed,
    in_both_eras,
    outside,
    passes,
    settled,
    text,
    tool,
    wire,
)
from tests.promises import promise

TIMED_OUT = '{"error":"callback_timeout"}'
CRASHED = '{"error":"callback_crashed"}'
REF: Json = {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}
WORKING: list[tuple[str, Json]] = [
    ("tools/call", {"name": "act"}),
    ("resources/read", {"uri": "mem://a"}),
    ("prompts/get", {"name": "p"}),
    ("completion/complete", REF),
]


def everything(callback: Held, **options: Limits) -> Server:
    """Make a server whose every callback is `callback`."""
    server = Server(**options)  # type: ignore[arg-type]  # limits alone
    server.registry.register(
        tool("act", callback),
        Resource(uri="mem://a", name="a", callback=callback),
        Prompt(name="p", callback=callback),
        Completion("ref/prompt", "p", "a", callback),
    )
    return server


# Workers


@promise("isolation.workers", "isolation.responsive", "request.no_waiting")
@pytest.mark.parametrize(("method", "params"), WORKING)
@in_both_eras
def test_while_a_callback_runs_everybody_else_is_served(
    era: EraName, method: str, params: Json
) -> None:
    """specification: Callback isolation: every kind of callback; a ping is answered at once."""

    async def scenario() -> None:
        held = Held()
        server = everything(held)
        client, other = Client(server, "a", era=era), Client(server, "b")
        await other.result("resources/subscribe", {"uri": "mem://x"})
        handle = client.send(method, params)
        await settled()
        assert held.begun == 1
        assert await other.result("ping") == {}
        assert await client.result("prompts/list") != {}
        server.notify("notifications/resources/updated", {"uri": "mem://x"})
        assert len(other.pushes()) == 1
        other.end()
        assert server.stats()["connections"] == 1
        assert not handle.done()
        handle.cancel()
        await settled()
        assert held.stopped == 1

    run_virtual(scenario)


@promise("isolation.workers")
@pytest.mark.parametrize("seam", ["authorizer", "read_authorizer"])
@in_both_eras
def test_an_authorizer_that_waits_holds_up_its_own_call_alone(era: EraName, seam: str) -> None:
    """specification: Callback isolation: authorization callbacks too."""
    release = asyncio.Event()

    async def waits(
        name: str, arguments: Mapping[str, object], context: AuthorizationContext
    ) -> Decision:
        await release.wait()
        return allow()

    async def scenario() -> None:
        server = Server(**{seam: waits})  # type: ignore[arg-type]  # one of the two
        server.registry.register(tool("act"))
        client = Client(server, era=era)
        other = Client(server, "b")
        method = "tools/call" if seam == "authorizer" else "prompts/list"
        handle = client.send(method, {"name": "act"})
        await settled()
        assert await other.result("ping") == {}
        assert server.stats()["in_flight"] == 1
        release.set()
        assert "result" in (wire(await handle) or {})

    run_virtual(scenario)


@promise("isolation.responsive")
def test_with_every_slot_taken_what_needs_none_is_still_served() -> None:
    """server-behaviour §10: pings, notifications, answers of humans and timers."""

    async def scenario() -> None:
        held, callback = Held(), Counted()
        server = Server(
            authorizer=decides(allow(), ask_first=ask("May I?")),
            limits=Limits(max_in_flight=1, elicitation_timeout=30.0),
        )
        server.registry.register(tool("act", held), tool("ask_first", callback))
        client = Client(server, capabilities=FORMS)
        await client.greet()
        refused, timed_out = client.start("ask_first"), None
        await settled()
        first = client.prompt()
        timed_out = client.start("ask_first")
        await settled()
        client.prompt()
        slow = client.start("act")
        await settled()
        assert await client.result("ping") == {}
        await client.answer(first, {"action": "decline"})
        assert denial(wire(await refused))["detail"] == "user decline"
        await passes(31)
        assert denial(wire(await timed_out))["detail"] == "elicitation timed out"
        server.notify("notifications/tools/list_changed")
        methods = [push.get("method") for push in client.pushes()]
        assert "notifications/tools/list_changed" in methods
        held.let_go()
        assert text(wire(await slow)) == "done"

    run_virtual(scenario)


# Bounds


@promise("isolation.busy", "isolation.cap_total")
@in_both_eras
def test_a_call_above_the_bound_is_busy_and_does_not_run(era: EraName) -> None:
    """ours: codes and payloads: a structured busy with what was full."""

    async def scenario() -> None:
        held, callback = Held(), Counted()
        server = Server(limits=Limits(max_in_flight=2, max_in_flight_per_connection=1))
        server.registry.register(tool("wait", held), tool("act", callback))
        one, two = Client(server, "a", era=era), Client(server, "b", era=era)
        three = Client(server, "c", era=era)
        handles = [one.start("wait")]
        await settled()
        assert denial(await one.call("act")) == busy("connection")
        handles.append(two.start("wait"))
        await settled()
        assert denial(await three.call("act")) == busy("server")
        assert callback.runs == 0
        assert list(denial(await three.call("act"))) == ["error", "scope", "retryable"]
        held.let_go()
        for handle in handles:
            await handle
        assert text(await three.call("act")) == "done"

    run_virtual(scenario)


@promise("isolation.busy")
@in_both_eras
def test_a_read_above_the_bound_is_a_busy_error(era: EraName) -> None:
    """ours: -31002; older servers sent -32603."""

    async def scenario() -> None:
        held = Held()
        server = everything(held, limits=Limits(max_in_flight=1))
        client = Client(server, era=era)
        handle = client.start("act")
        await settled()
        reads: list[tuple[str, Json]] = [
            ("tools/list", {}),
            ("resources/list", {}),
            ("resources/read", {"uri": "mem://a"}),
            ("prompts/get", {"name": "p"}),
            ("completion/complete", REF),
        ]
        if era is HANDSHAKE:
            reads += [
                ("logging/setLevel", {"level": "debug"}),
                ("resources/subscribe", {"uri": "mem://a"}),
            ]
        else:
            reads.append(("subscriptions/listen", {"notifications": {}}))
        for method, params in reads:
            error = await client.error(method, params)
            assert error["code"] == -31002, method
            assert error["data"] == {"error": "server_busy", "method": method}
        if era is HANDSHAKE:
            assert await client.result("ping") == {}
        held.let_go()
        await handle

    run_virtual(scenario)


@promise("isolation.cap_total", "isolation.cap_share", "isolation.two_fill")
def test_by_default_32_run_and_one_connection_has_half_of_them() -> None:
    """specification: Callback isolation: two connections at the default share fill the server."""

    async def scenario() -> None:
        held = Held()
        server = Server()
        server.registry.register(tool("wait", held))
        one, two, three = (Client(server, name) for name in "abc")
        handles = [one.start("wait") for _ in range(16)]
        await settled()
        assert denial(await one.call("wait")) == busy("connection")
        handles += [two.start("wait") for _ in range(16)]
        await settled()
        assert denial(await three.call("wait")) == busy("server")
        assert held.begun == server.stats()["in_flight"] == 32
        held.let_go()
        assert [text(wire(await handle)) for handle in handles] == ["done"] * 32

    run_virtual(scenario)


@promise("isolation.cap_share")
def test_a_share_leaves_the_rest_to_others() -> None:
    """specification: Callback isolation: one client with many slow calls does not take it all."""

    async def scenario() -> None:
        held = Held()
        server = Server(limits=Limits(max_in_flight=4, max_in_flight_per_connection=2))
        server.registry.register(tool("wait", held))
        one, other = Client(server, "a"), Client(server, "b")
        handles = [one.start("wait") for _ in range(3)]
        await settled()
        assert [handle.done() for handle in handles] == [False, False, True]
        assert denial(wire(await handles[2])) == busy("connection")
        handle = other.start("wait")
        await settled()
        assert not handle.done()
        assert held.begun == 3
        held.let_go()
        await asyncio.gather(*handles, handle)

    run_virtual(scenario)


@promise("isolation.cap_share")
def test_the_share_is_at_least_one() -> None:
    """specification: Callback isolation: half, at least 1."""

    async def scenario() -> None:
        server = Server(limits=Limits(max_in_flight=1))
        server.registry.register(tool("act"))
        assert text(await Client(server).call("act")) == "done"

    run_virtual(scenario)


@promise("isolation.share")
def test_callers_without_a_connection_share_one_with_each_other() -> None:
    """specification: Callback isolation: a share is per id: those on `default` share theirs."""

    async def scenario() -> None:
        held = Held()
        server = Server(limits=Limits(max_in_flight=4, max_in_flight_per_connection=1))
        server.registry.register(tool("wait", held))
        subscriber = Client(server)
        direct = Client(server, subscribed=False)
        assert direct.connection == subscriber.connection == "default"
        handle = subscriber.start("wait", id="a")
        await settled()
        reply = await direct.ask("tools/call", {"name": "wait"}, id="b")
        assert denial(reply) == busy("connection")
        held.let_go()
        await handle

    run_virtual(scenario)


@promise("isolation.share")
@in_both_eras
def test_the_connections_of_one_principal_share_their_slots(era: EraName) -> None:
    """ours: share: the authenticated principal, else the connection (ADR-0009)."""

    async def scenario() -> None:
        held = Held()
        server = Server(limits=Limits(max_in_flight=4, max_in_flight_per_connection=1))
        server.registry.register(tool("wait", held))
        alice = ConnectionFacts(principal="alice", share=("principal", "alice"))
        first = Client(server, "a1", era=era, facts=alice)
        second = Client(server, "a2", era=era, facts=alice)
        handle = first.start("wait")
        await settled()
        assert denial(await second.call("wait")) == busy("connection")
        held.let_go()
        await handle

    run_virtual(scenario)


@promise("isolation.parked_hold_none")
def test_parked_calls_do_not_make_a_server_busy() -> None:
    """specification: Callback isolation: they hold no worker."""

    async def scenario() -> None:
        server = Server(
            authorizer=decides(ask("May I?"), plain=allow()), limits=Limits(max_in_flight=2)
        )
        server.registry.register(tool("act"), tool("plain"))
        client = Client(server, capabilities=FORMS)
        await client.greet()
        for _ in range(32):
            assert await client.call("act") is None
        assert server.stats()["parked"] == 32
        assert server.stats()["in_flight"] == 0
        assert text(await client.call("plain")) == "done"

    run_virtual(scenario)


@promise("isolation.counted_at_start")
def test_of_two_requests_in_one_turn_one_gets_the_last_slot() -> None:
    """specification: Callback isolation: both counts are checked when a worker starts."""

    async def scenario() -> None:
        held = Held()
        server = Server(limits=Limits(max_in_flight=1))
        server.registry.register(tool("wait", held))
        handles = [Client(server, name).start("wait") for name in "abc"]
        held.let_go()
        replies = [wire(await handle) for handle in handles]
        assert text(replies[0]) == "done"
        assert [denial(reply)["error"] for reply in replies[1:]] == ["server_busy"] * 2
        assert held.begun == 1

    run_virtual(scenario)


# Time


@promise("isolation.timeout")
@in_both_eras
def test_a_callback_has_five_minutes(era: EraName) -> None:
    """specification: Callback isolation: `callback_timeout`, then the worker is stopped."""

    async def scenario() -> None:
        held = Held()
        server = Server()
        server.registry.register(tool("hang", held), tool("other"))
        client = Client(server, era=era)
        handle = client.start("hang")
        await passes(299.9)
        assert not handle.done()
        await passes(0.2)
        assert failed(wire(await handle)) == TIMED_OUT
        await settled()
        assert held.stopped == 1
        assert server.stats()["in_flight"] == 0
        assert text(await client.call("other")) == "done"

    run_virtual(scenario)


@promise("isolation.timeout")
def test_authorizer_and_tool_share_one_timeout() -> None:
    """server-behaviour §10: it bounds the worker."""

    async def slow(
        name: str, arguments: Mapping[str, object], context: AuthorizationContext
    ) -> Decision:
        await asyncio.sleep(8)
        return allow()

    async def scenario() -> None:
        held = Held()
        server = Server(authorizer=slow, limits=Limits(callback_timeout=10.0))
        server.registry.register(tool("hang", held))
        handle = Client(server).start("hang")
        await passes(9.9)
        assert held.begun == 1
        await passes(0.2)
        assert failed(wire(await handle)) == TIMED_OUT

    run_virtual(scenario)


def test_a_tool_may_have_less_time_but_not_more() -> None:
    """ours: `timeout=` of a tool; the server's bound stays one."""
    server = Server(limits=Limits(callback_timeout=10.0))

    @server.tool(timeout=2.0)
    async def short() -> None:
        """Hang."""
        await asyncio.Event().wait()

    @server.tool(timeout=100.0)
    async def long() -> None:
        """Hang."""
        await asyncio.Event().wait()

    async def scenario() -> None:
        client = Client(server)
        loop = asyncio.get_running_loop()
        for name, seconds in (("short", 2.0), ("long", 10.0)):
            began = loop.time()
            assert failed(await client.call(name)) == TIMED_OUT
            assert loop.time() - began == pytest.approx(seconds)

    run_virtual(scenario)


@promise("isolation.handle_timeout")
@in_both_eras
def test_a_caller_that_stops_waiting_ends_its_worker(era: EraName) -> None:
    """specification: Callback isolation: the finite timeout of `handle_message`."""

    async def scenario() -> None:
        held = Held()
        server = Server()
        server.registry.register(tool("hang", held))
        client = Client(server, era=era)
        with pytest.raises(TimedOut):
            await client.ask("tools/call", {"name": "hang"}, within=0.05)
        await settled()
        assert held.stopped == 1
        assert server.stats()["in_flight"] == server.stats()["deadlines"] == 0
        assert client.pushes() == []

    run_virtual(scenario)


def test_a_caller_that_is_cancelled_ends_its_worker() -> None:
    """ours: in asyncio, who cancels a waiting task does not want what it waits for."""

    async def scenario() -> None:
        held = Held()
        server = Server()
        server.registry.register(tool("hang", held))
        task = asyncio.ensure_future(Client(server).call("hang"))
        await settled()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await settled()
        assert held.stopped == 1
        assert server.stats()["in_flight"] == 0

    run_virtual(scenario)


# Stopping, at every stage


@promise("isolation.cancel", "cancel.running", "request.cancelled")
@in_both_eras
def test_cancelling_a_request_stops_its_callback(era: EraName) -> None:
    """specification: cancel: the reply is None."""

    async def scenario() -> None:
        held = Held()
        server = everything(held)
        client = Client(server, era=era)
        for number, (method, params) in enumerate(WORKING, 1):
            handle = client.send(method, params)
            await settled()
            server.cancel(handle)
            assert await handle is None
            await settled()
            assert held.stopped == number
        assert server.stats()["in_flight"] == 0
        assert client.pushes() == []

    run_virtual(scenario)


@pytest.mark.parametrize("turns", range(4))
@in_both_eras
def test_a_cancel_is_heard_at_whatever_step_the_worker_is(era: EraName, turns: int) -> None:
    """server-behaviour (b) 42: before its first step, in the authorizer, in the tool."""
    asked = 0

    async def authorizer(
        name: str, arguments: Mapping[str, object], context: AuthorizationContext
    ) -> Decision:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0)
        return allow()

    async def scenario() -> None:
        held = Held()
        server = Server(authorizer=authorizer, limits=Limits(max_in_flight=1))
        server.registry.register(tool("wait", held))
        client = Client(server, era=era)
        handle = client.start("wait")
        for _ in range(turns):
            await asyncio.sleep(0)
        handle.cancel()
        assert await handle is None
        await settled()
        assert held.begun == held.stopped
        assert asked == (0 if turns == 0 else 1)
        assert server.stats()["in_flight"] == server.stats()["stopping"] == 0
        held.let_go()
        assert text(await client.call("wait")) == "done"

    run_virtual(scenario)


@promise("cancel.over")
@in_both_eras
def test_cancelling_what_is_over_changes_nothing(era: EraName) -> None:
    """specification: cancel: a request that already completed is left alone."""

    async def scenario() -> None:
        server = Server()
        held = Held()
        server.registry.register(tool("act"), tool("wait", held))
        client = Client(server, era=era)
        handle = client.start("act", id=1)
        assert text(wire(await handle)) == "done"
        again = client.start("wait", id=1)
        await settled()
        for _ in range(2):
            server.cancel(handle)
        handle.cancel()
        assert text(wire(await handle)) == "done"
        held.let_go()
        assert text(wire(await again)) == "done"
        inline = client.send("no/such")
        inline.cancel()
        assert "error" in (wire(await inline) or {})

    run_virtual(scenario)


@in_both_eras
def test_a_client_cancels_its_own_request_by_its_id(era: EraName) -> None:
    """MCP basic/utilities/cancellation: stopped and not answered; by id, type and connection."""

    async def scenario() -> None:
        held = Held()
        server = Server()
        server.registry.register(tool("wait", held))
        client, other = Client(server, "a", era=era), Client(server, "b", era=era)
        handle = client.start("wait", id=1)
        await settled()
        await other.tell("notifications/cancelled", {"requestId": 1})
        for wrong in ("1", 1.0, True, 2, None):
            await client.tell("notifications/cancelled", {"requestId": wrong})
        await settled()
        assert not handle.done()
        await client.tell("notifications/cancelled", {"requestId": 1, "reason": "enough"})
        assert await handle is None
        await settled()
        assert held.stopped == 1
        assert client.pushes() == []

    run_virtual(scenario)


@in_both_eras
def test_a_callback_that_ignores_its_cancellation_keeps_its_slot_until_it_ends(
    era: EraName,
) -> None:
    """ours: ADR-0004. The bound is what really runs."""

    async def scenario() -> None:
        released = asyncio.Event()

        async def stubborn(*_: object) -> str:
            while not released.is_set():
                try:
                    await released.wait()
                except asyncio.CancelledError:
                    continue
            return "late"

        server = Server(limits=Limits(max_in_flight=1))
        server.registry.register(tool("stubborn", stubborn), tool("act"))
        client = Client(server, era=era)
        handle = client.start("stubborn")
        await settled()
        handle.cancel()
        assert await handle is None
        await settled()
        assert server.stats()["stopping"] == 1
        assert denial(await client.call("act"))["error"] == "server_busy"
        released.set()
        await settled()
        assert server.stats()["stopping"] == server.stats()["in_flight"] == 0
        assert text(await client.call("act")) == "done"
        assert client.pushes() == [], "what it returned in the end is nobody's"

    run_virtual(scenario)


@promise("isolation.workers")
@in_both_eras
def test_a_worker_that_is_ended_from_outside_crashes_its_call_alone(era: EraName) -> None:
    """server-behaviour §4.1: `callback_crashed`; other requests are unaffected."""
    workers: list[asyncio.Task[object]] = []

    async def act(*_: object) -> None:
        task = asyncio.current_task()
        assert task is not None
        workers.append(task)
        await asyncio.Event().wait()

    async def scenario() -> None:
        held = Held()
        server = Server()
        server.registry.register(
            tool("act", act),
            tool("wait", held),
            Resource(uri="mem://a", name="a", callback=act),
        )
        client = Client(server, era=era)
        other = client.start("wait")
        handle = client.start("act")
        await settled()
        workers.pop().cancel()
        assert failed(wire(await handle)) == CRASHED
        read = client.send("resources/read", {"uri": "mem://a"})
        await settled()
        workers.pop().cancel()
        error = at(wire(await read), "error")
        assert at(error, "code") == -32603
        assert at(error, "data") == {"error": "callback_crashed", "method": "resources/read"}
        held.let_go()
        assert text(wire(await other)) == "done"

    run_virtual(scenario)


# Threads


class Blocks:
    """A plain function that blocks its thread until it is let go."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.go = threading.Event()
        self.cancelled: bool | None = None

    def __call__(self, arguments: Mapping[str, object], context: Context) -> str:
        self.began.set()
        self.go.wait()
        self.cancelled = context.cancelled
        return "from a thread"

    async def has_begun(self) -> None:
        """Return when the thread is in the function."""
        await outside(asyncio.to_thread(self.began.wait))


@promise("isolation.workers", "isolation.responsive")
@in_both_eras
def test_a_function_that_blocks_does_so_in_a_thread(era: EraName) -> None:
    """specification: Callback isolation: the server stays responsive."""

    async def scenario() -> None:
        blocks = Blocks()
        server = Server()
        server.registry.register(tool("block", blocks))
        client, other = Client(server, era=era), Client(server, "b")
        handle = client.start("block")
        await blocks.has_begun()
        assert await other.result("ping") == {}
        blocks.go.set()
        assert text(wire(await outside(handle))) == "from a thread"
        assert blocks.cancelled is False

    run_virtual(scenario)


@promise("isolation.timeout", "cancel.running")
@pytest.mark.parametrize("end", ["cancel", "timeout", "handle", "notification"])
@in_both_eras
def test_a_thread_cannot_be_killed_but_its_call_ends_and_its_slot_is_counted(
    era: EraName, end: str
) -> None:
    """ours: ADR-0004; server-behaviour (b) 41: answered at once, the slot freed when it ends."""

    async def scenario() -> None:
        blocks = Blocks()
        server = Server(limits=Limits(max_in_flight=1, callback_timeout=5.0))
        server.registry.register(tool("block", blocks), tool("act"))
        client = Client(server, era=era)
        if end == "handle":
            waiting = asyncio.ensure_future(client.ask("tools/call", {"name": "block"}, within=1.0))
            await blocks.has_begun()
            with pytest.raises(TimedOut):
                await waiting
        else:
            handle = client.start("block")
            await blocks.has_begun()
            if end == "cancel":
                handle.cancel()
                assert await handle is None
            elif end == "timeout":
                assert failed(wire(await handle)) == TIMED_OUT
            else:
                await client.tell("notifications/cancelled", {"requestId": 1})
                assert await handle is None
        assert server.stats()["stopping"] == 1
        assert denial(await client.call("act"))["error"] == "server_busy"
        blocks.go.set()
        await outside(_until_idle(server))
        assert blocks.cancelled is True, "a long loop can see that nobody waits"
        assert text(await client.call("act")) == "done"
        assert client.pushes() == []

    run_virtual(scenario)


async def _until_idle(server: Server) -> None:
    """Return when no worker is left; the loop has a turn whenever a thread reports."""
    while server.stats()["in_flight"]:
        await asyncio.to_thread(threading.Event().is_set)


def test_threads_have_the_context_of_their_call_and_run_at_the_same_time() -> None:
    """ours: two blocking calls do not wait for each other."""
    both = threading.Barrier(2, timeout=20)

    def meet(arguments: Mapping[str, object], context: Context) -> str:
        both.wait()
        return str(context.request_id)

    async def scenario() -> None:
        server = Server()
        server.registry.register(tool("meet", meet))
        client = Client(server)
        handles = [client.start("meet", id=id) for id in ("a", "b")]
        replies = [wire(await outside(handle)) for handle in handles]
        assert [text(reply) for reply in replies] == ["a", "b"]

    run_virtual(scenario)


def test_a_blocking_tool_may_speak_to_its_caller_and_fail_like_any_other() -> None:
    """server-behaviour §4.1, from a thread."""
    server = Server()

    @server.tool
    def pick(colour: str) -> str:
        """Pick a colour."""
        raise ToolError(f"no {colour} left")

    async def scenario() -> None:
        client = Client(server, era=STATELESS)
        assert failed(await outside(client.call("pick", {"colour": "red"}))) == "no red left"

    run_virtual(scenario)


# An approved run is a worker like any other


@promise("isolation.timeout")
def test_an_approved_run_has_a_timeout_of_its_own() -> None:
    """server-behaviour §10: a fresh one."""

    async def scenario() -> None:
        held = Held()
        server = Server(authorizer=asks(), limits=Limits(callback_timeout=5.0))
        server.registry.register(tool("hang", held))
        client = Client(server, capabilities=FORMS)
        await client.greet()
        handle = client.start("hang")
        await passes(30)
        await client.answer(client.prompt(), YES)
        await passes(4.9)
        assert not handle.done()
        await passes(0.2)
        assert failed(wire(await handle)) == TIMED_OUT
        await settled()
        assert held.stopped == 1

    run_virtual(scenario)


# Processes (`tests/server/test_processes.py` has more)


@promise("cancel.running", "isolation.workers")
@pytest.mark.slow
@in_both_eras
def test_a_tool_in_a_process_of_its_own_can_be_killed(era: EraName, tmp_path: Path) -> None:
    """ours: ADR-0004. Code that must be stoppable: its slot is free as soon as it is dead."""
    fifo = tmp_path / "begun"
    os.mkfifo(fifo)

    async def scenario() -> None:
        server = Server(limits=Limits(max_in_flight=1))
        for function in (process_tools.double, process_tools.hang, process_tools.fail):
            server.tool(isolation="process")(function)
        async with server:
            client = Client(server, era=era)
            reply = await client.call("double", {"n": 4})
            assert at(reply, "result", "structuredContent", "value") == 8
            assert at(reply, "result", "structuredContent", "pid") != os.getpid()
            assert "n" in failed(await client.call("double", {"n": "4"}))
            for how, told in (
                ("speaks", "no red left"),
                ("raises", "Error: ValueError"),
                ("dies", CRASHED),
            ):
                assert failed(await client.call("fail", {"how": how})) == told, how
            handle = client.start("hang", {"fifo": str(fifo)})
            pid = int(await asyncio.to_thread(fifo.read_text))
            assert denial(await client.call("double", {"n": 1}))["error"] == "server_busy"
            handle.cancel()
            assert await handle is None
            await _until_idle(server)
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)
            reply = await client.call("double", {"n": 5})
            assert at(reply, "result", "structuredContent", "value") == 10

    asyncio.run(scenario())  # a child's time is real time
