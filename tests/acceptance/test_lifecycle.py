"""Starting, stopping and what lives in between."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from raxol_mcp import (
    ConfigurationError,
    Context,
    Limits,
    MemoryTransport,
    NotReady,
    Resource,
    Server,
)
from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.wire.meta import EraName
from tests.acceptance.world import (
    FORMS,
    STATELESS,
    YES,
    Client,
    Counted,
    Held,
    Json,
    asks,
    at,
    denial,
    failed,
    in_both_eras,
    outside,
    passes,
    question,
    settled,
    text,
    tool,
    wire,
)
from tests.promises import promise


class Life:
    """A lifespan that notes when it was entered and left."""

    def __init__(self, *, fails: bool = False) -> None:
        self.events: list[str] = []
        self.fails = fails

    @asynccontextmanager
    async def __call__(self, server: Server) -> AsyncIterator[object]:
        self.events.append("entered")
        await asyncio.sleep(1)
        if self.fails:
            raise OSError("no database")
        try:
            yield {"database": len(self.events)}
        finally:
            await asyncio.sleep(1)
            self.events.append("left")


@promise("lifetime.ends")
@in_both_eras
def test_leaving_the_block_ends_everything(era: EraName) -> None:
    """specification: lifetime: callbacks are stopped, parked calls dropped, nothing is left."""

    async def scenario() -> None:
        held = Held()
        server = Server()
        server.registry.register(tool("wait", held))
        async with server:
            client = Client(server, era=era)
            handle = client.start("wait")
            await settled()
        assert await handle is None
        assert held.stopped == 1
        assert server.stats()["in_flight"] == server.stats()["deadlines"] == 0
        (current,) = asyncio.all_tasks()
        assert current is asyncio.current_task()

    run_virtual(scenario)


@promise("lifetime.ends")
def test_stopping_drops_parked_calls() -> None:
    """server-behaviour (c) 24: no answers; a human's late yes finds nothing."""

    async def scenario() -> None:
        callback = Counted()
        server = Server(authorizer=asks())
        server.registry.register(tool("act", callback))
        async with server:
            client = Client(server, capabilities=FORMS)
            await client.greet()
            handle = client.start("act")
            await settled()
            prompt = client.prompt()
        assert await handle is None
        assert server.stats()["parked"] == 0
        async with server:
            await client.answer(prompt, YES)
            await settled()
        assert callback.runs == 0

    run_virtual(scenario)


@in_both_eras
def test_callbacks_find_what_the_lifespan_yielded(era: EraName) -> None:
    """ours: entered before anything is served, left after everything has ended."""
    life = Life()
    seen: list[object] = []

    async def act(arguments: Mapping[str, object], context: Context) -> None:
        seen.append(context.lifespan)
        life.events.append("called")
        try:
            if arguments:
                await asyncio.Event().wait()
        finally:
            life.events.append("ended")

    async def read(context: Context) -> str:
        seen.append(context.lifespan)
        return "x"

    async def scenario() -> None:
        server = Server(lifespan=life)
        server.registry.register(tool("act", act), Resource(uri="mem://a", name="a", callback=read))
        async with server:
            client = Client(server, era=era)
            await client.call("act")
            await client.result("resources/read", {"uri": "mem://a"})
            client.start("act", {"long": True})
            await settled()
        assert seen == [{"database": 1}] * 3
        assert life.events == ["entered", "called", "ended", "called", "ended", "left"]

    run_virtual(scenario)


def test_several_transports_share_one_life() -> None:
    """ours: every transport starts and stops the server; the first and the last count."""

    async def scenario() -> None:
        life = Life()
        server = Server(lifespan=life)
        await server.start()
        await server.start()
        assert life.events == ["entered"]
        await server.stop()
        assert life.events == ["entered"]
        assert await Client(server).result("ping") == {}
        await server.stop()
        assert life.events == ["entered", "left"]
        await server.stop()
        assert life.events == ["entered", "left"]

    run_virtual(scenario)


def test_who_starts_while_it_is_starting_waits_for_it() -> None:
    """ours: nobody serves before the lifespan is entered."""

    async def scenario() -> None:
        life = Life()
        server = Server(lifespan=life)
        seen: list[object] = []

        async def act(arguments: Mapping[str, object], context: Context) -> None:
            seen.append(context.lifespan)

        server.registry.register(tool("act", act))

        async def transport(name: str) -> None:
            async with server:
                await Client(server, name).call("act")

        await asyncio.gather(transport("a"), transport("b"))
        assert seen == [{"database": 1}] * 2
        assert life.events == ["entered", "left"]

    run_virtual(scenario)


@promise("start.refuses")
def test_a_start_that_fails_has_undone_what_it_began() -> None:
    """ours: the contract of `start`: when it raises, `stop` is not called."""

    async def scenario() -> None:
        life = Life(fails=True)
        server = Server(lifespan=life)
        with pytest.raises(OSError, match="no database"):
            await server.start()
        assert life.events == ["entered"]
        life.fails = False
        life.events.clear()
        async with server:
            assert life.events == ["entered"]
            assert await Client(server).result("ping") == {}
        assert life.events == ["entered", "left"]

    run_virtual(scenario)


@promise("start.refuses")
def test_a_start_that_was_cancelled_can_be_repeated() -> None:
    """ours: the contract of `start`."""

    async def scenario() -> None:
        life = Life()
        server = Server(lifespan=life)
        starting = asyncio.ensure_future(server.start())
        await settled()
        starting.cancel()
        await asyncio.wait((starting,))
        life.events.clear()
        async with server:
            assert life.events == ["entered"]
        assert life.events == ["entered", "left"]

    run_virtual(scenario)


@promise("start.refuses")
def test_a_refused_start_leaves_nothing_and_may_be_repeated() -> None:
    """specification: Sensitive tools: repaired, it starts."""

    async def scenario() -> None:
        life = Life()
        server = Server(lifespan=life)
        wipe = tool("wipe", annotations={"destructiveHint": True})
        server.registry.register(wipe)
        with pytest.raises(ConfigurationError):
            await server.start()
        assert life.events == []
        server.registry.unregister(wipe.kind, "wipe")
        async with server:
            assert life.events == ["entered"]

    run_virtual(scenario)


def test_stopping_waits_a_bounded_time_for_a_thread() -> None:
    """ours: 5 seconds; a function that does not return is abandoned, and the log says so."""
    go = threading.Event()
    began = threading.Event()

    def block(arguments: Mapping[str, object], context: Context) -> None:
        began.set()
        go.wait()

    async def scenario() -> None:
        server = Server()
        server.registry.register(tool("block", block))
        await server.start()
        client = Client(server)
        handle = client.start("block")
        await outside(asyncio.to_thread(began.wait))
        loop = asyncio.get_running_loop()
        stopping_at = loop.time()
        await server.stop()
        assert 5.0 <= loop.time() - stopping_at < 10.0
        assert await handle is None
        go.set()

    run_virtual(scenario)


def test_stopping_does_not_wait_for_a_callback_that_ends() -> None:
    """ours: at once, when everything ends at once."""

    async def scenario() -> None:
        held = Held()
        server = Server()
        server.registry.register(tool("wait", held))
        await server.start()
        Client(server).start("wait")
        await settled()
        loop = asyncio.get_running_loop()
        stopping_at = loop.time()
        await server.stop()
        assert loop.time() == stopping_at
        assert held.stopped == 1

    run_virtual(scenario)


def test_a_server_can_be_started_again() -> None:
    """ours: a restart keeps its promises, the slot of a thread included (ADR-0004)."""
    go = threading.Event()
    began = threading.Event()

    def block(arguments: Mapping[str, object], context: Context) -> None:
        began.set()
        go.wait()

    async def scenario() -> None:
        server = Server(limits=Limits(max_in_flight=1))
        server.registry.register(tool("block", block), tool("act"))
        for _ in range(2):
            async with server:
                assert text(await Client(server).call("act")) == "done"
        async with server:
            client = Client(server)
            handle = client.start("block")
            await outside(asyncio.to_thread(began.wait))
            handle.cancel()
            assert await handle is None
            await settled()
            assert denial(await client.call("act"))["error"] == "server_busy"
            go.set()
            await outside(_until_idle(server))
            assert text(await client.call("act")) == "done"

    run_virtual(scenario)


async def _until_idle(server: Server) -> None:
    while server.stats()["in_flight"]:
        await asyncio.to_thread(threading.Event().is_set)


def test_connections_end_with_their_transports_not_with_the_server() -> None:
    """ours: the transport owns the connection; what it was asked is dropped."""

    async def scenario() -> None:
        held = Held()
        server = Server()
        server.registry.register(tool("wait", held))
        async with MemoryTransport(server) as client:
            async with server:
                call: Json = {"name": "wait"}
                client.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
                await settled()
            assert held.stopped == 1
            assert client.unread() == []
            assert client.closed is None
        assert server.stats()["connections"] == 0

    run_virtual(scenario)


def test_a_state_key_makes_a_state_valid_elsewhere() -> None:
    """ours: `requestState`: random per process unless an option or the environment gives one."""

    async def scenario() -> None:
        key = b"k" * 32
        servers = [Server(authorizer=asks(), state_key=key) for _ in range(2)]
        for server in servers:
            server.registry.register(tool("act"))
        one, other = (Client(s, era=STATELESS, capabilities=FORMS) for s in servers)
        asked = await question(one, "act")
        reply = await other.ask("tools/call", asked.retry({"approve": YES}))
        assert text(reply) == "done"

    run_virtual(scenario)


def test_a_state_key_may_come_from_the_environment_and_must_be_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """ours: `RAXOL_MCP_STATE_KEY`."""
    with pytest.raises(ConfigurationError, match="32 bytes"):
        Server(state_key=b"short")
    monkeypatch.setenv("RAXOL_MCP_STATE_KEY", "short")
    with pytest.raises(ConfigurationError, match="RAXOL_MCP_STATE_KEY"):
        Server()
    monkeypatch.setenv("RAXOL_MCP_STATE_KEY", "k" * 32)
    assert Server().authorization_configured() is False


def test_timers_do_not_pile_up() -> None:
    """ours: ADR-0003: as many deadlines as live waits."""

    async def scenario() -> None:
        server = Server()
        server.registry.register(tool("act"))
        client = Client(server)
        for _ in range(200):
            await client.call("act")
        assert server.stats()["deadlines"] == 0
        await passes(1000)
        reply = wire(await client.start("act"))
        assert at(reply, "result", "content", 0, "text") == "done"

    run_virtual(scenario)


def test_a_server_that_ended_can_serve_in_another_loop() -> None:
    """ours: tests of a server have a loop each."""
    server = Server()
    server.registry.register(tool("act"))

    async def main() -> None:
        async with server:
            assert text(await Client(server).call("act")) == "done"

    run_virtual(main)
    run_virtual(main)


def test_a_server_that_was_never_started_lives_on_in_the_next_loop() -> None:
    """ours: starting is the rule; without it a closed loop, and its timer, are left behind."""

    async def wait(arguments: Mapping[str, object], context: Context) -> None:
        await asyncio.Event().wait()

    server = Server(limits=Limits(callback_timeout=5.0))
    server.registry.register(tool("act"), tool("wait", wait))

    async def main() -> None:
        client = Client(server, subscribed=False)
        assert "callback_timeout" in failed(await client.call("wait"))
        assert text(await client.call("act")) == "done"  # leaves the timer armed

    run_virtual(main)
    run_virtual(main)


@in_both_eras
def test_a_callback_may_stop_its_server(era: EraName) -> None:
    """ours: its own call is dropped like every other, and the server ends in order."""
    life = Life()
    server = Server(lifespan=life)
    held = Held()
    after: list[str] = []

    async def quit(arguments: Mapping[str, object], context: Context) -> None:
        await server.stop()
        after.append("stop")

    async def scenario() -> None:
        server.registry.register(tool("quit", quit), tool("wait", held))
        await server.start()
        client = Client(server, era=era)
        other, mine = client.start("wait"), client.start("quit")
        assert await mine is None
        assert await other is None
        await passes(10)
        assert (held.stopped, after) == (1, [])
        assert life.events == ["entered", "left"]
        assert server.stats()["in_flight"] == 0
        await server.stop()  # as its transport will
        assert life.events == ["entered", "left"]
        async with server:
            again = Client(server, "new", era=era)
            assert "tools" in await again.result("tools/list")
        (current,) = asyncio.all_tasks()
        assert current is asyncio.current_task()

    run_virtual(scenario)


def test_a_callback_that_stops_one_of_several_transports_goes_on() -> None:
    """ours: the last stop counts."""
    server = Server()

    async def leave(arguments: Mapping[str, object], context: Context) -> str:
        await server.stop()
        return "still here"

    async def scenario() -> None:
        server.registry.register(tool("leave", leave))
        async with server:
            await server.start()
            assert text(await Client(server).call("leave")) == "still here"

    run_virtual(scenario)


def test_a_lifespan_that_fails_after_a_callback_stopped_it_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """ours: there is nobody left to raise it to."""

    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[None]:
        yield
        raise OSError("no database")

    server = Server(lifespan=lifespan)

    async def quit(arguments: Mapping[str, object], context: Context) -> None:
        await server.stop()

    async def scenario() -> None:
        server.registry.register(tool("quit", quit))
        await server.start()
        assert await Client(server).start("quit") is None
        await passes(10)

    run_virtual(scenario)
    assert "the server did not stop in order" in caplog.text
    assert "no database" in caplog.text


def test_a_stopped_server_takes_no_messages_until_it_is_started_again() -> None:
    """ours: `NotReady` names the state; nothing is run and nothing is kept."""
    callback = Counted()

    async def scenario() -> None:
        server = Server()
        server.registry.register(tool("act", callback))
        client = Client(server)
        async with server:
            pass
        for asking in (client.call("act"), client.ask("ping")):
            with pytest.raises(NotReady) as caught:
                await asking
            assert caught.value.status == "stopped"
        with pytest.raises(NotReady, match="stopped"):
            client.start("act")
        assert callback.runs == 0
        assert server.stats()["in_flight"] == 0
        async with server:
            assert text(await client.call("act")) == "done"

    run_virtual(scenario)
