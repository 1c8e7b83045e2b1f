"""client/group.py: many servers, of which each may fail alone. On virtual time, with fakes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from raxol_mcp.client.config import load
from raxol_mcp.client.entries import Entry
from raxol_mcp.client.group import ClientGroup, GroupTool, ServerStatus
from raxol_mcp.client.results import CallResult, Change, ClientStatus, LogMessage, RemoteTool
from raxol_mcp.client.spec import ClientSpec
from raxol_mcp.client.trust import NotTrusted, TrustStore
from raxol_mcp.errors import (
    ConnectFailed,
    InvalidSpec,
    NoHttpClient,
    NotReady,
    Reason,
    UnknownTool,
)
from raxol_mcp.testing.virtual_loop import run_virtual

if TYPE_CHECKING:
    from raxol_mcp.client.app import Client

REFUSED = Reason("transport", "refused")


def now() -> float:
    return asyncio.get_running_loop().time()


async def for_ever() -> None:
    await asyncio.Event().wait()


async def stubbornly() -> None:
    """Wait for an hour, cancelled or not."""
    ends_at = now() + 3600.0
    while now() < ends_at:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(ends_at - now())


class FakeClient:
    """A client whose server is ready `after` so many seconds; None: never.

    With `reason` it is closed for that reason until then.
    """

    def __init__(
        self,
        name: str = "",
        *,
        after: float | None = 0.0,
        tools: tuple[str, ...] = ("read",),
        reason: Reason | None = None,
    ) -> None:
        self.name = name
        self.after = after
        self.tools = tools
        self.reason = reason
        self.options: Mapping[str, object] = {}
        self.started_at: float | None = None
        self.stopped_at: float | None = None
        self.calls: list[tuple[str, object, dict[str, object]]] = []

    async def start(self) -> None:
        assert self.started_at is None, "it is started once"
        self.started_at = now()

    async def await_ready(self, **options: float) -> ClientStatus:
        if self.reason is not None:
            raise ConnectFailed(self.reason)
        wait = float("inf") if self.after is None else self.after
        if wait > options["timeout"]:
            await asyncio.sleep(options["timeout"])
            raise NotReady("initializing")
        await asyncio.sleep(wait)
        return self.status()

    def is_ready(self) -> bool:
        return (
            self.started_at is not None
            and self.after is not None
            and now() >= self.started_at + self.after
            and self.reason is None
        )

    def status(self) -> ClientStatus:
        if self.stopped_at is not None:
            return ClientStatus(self.name, "stopped")
        if self.is_ready():
            return ClientStatus(self.name, "ready")
        if self.reason is not None:
            return ClientStatus(self.name, "closed", reason=self.reason)
        return ClientStatus(self.name, "starting" if self.started_at is None else "initializing")

    def check_ready(self) -> None:
        if self.reason is not None:
            raise ConnectFailed(self.reason)
        if not self.is_ready():
            raise NotReady(self.status().status)

    async def list_tools(self, **_: float) -> list[RemoteTool]:
        self.check_ready()
        return [RemoteTool(tool, None, f"of {self.name}", {}) for tool in self.tools]

    async def call_tool(self, name: str, arguments: object = None, **options: object) -> CallResult:
        self.check_ready()
        self.calls.append((name, arguments, options))
        return CallResult([{"type": "text", "text": f"{self.name}.{name}"}])

    async def stop(self) -> None:
        self.stopped_at = now()


class HangsAtStart(FakeClient):
    async def start(self) -> None:
        await for_ever()


class CrashesAtStart(FakeClient):
    async def start(self) -> None:
        raise ZeroDivisionError("sekrit")


class ExitsAtReady(FakeClient):
    async def await_ready(self, **options: float) -> ClientStatus:
        raise SystemExit(1)


class HangsAtList(FakeClient):
    async def list_tools(self, **_: float) -> list[RemoteTool]:
        await for_ever()
        return []


class CancelledAtList(FakeClient):
    async def list_tools(self, **_: float) -> list[RemoteTool]:
        raise asyncio.CancelledError


class HangsAtStop(FakeClient):
    async def stop(self) -> None:
        await for_ever()


class StubbornAtStop(FakeClient):
    async def stop(self) -> None:
        await stubbornly()


class CrashesAtStop(FakeClient):
    async def stop(self) -> None:
        raise ZeroDivisionError


def spec(name: str) -> ClientSpec:
    return ClientSpec(name, command="x")


def group_of(*clients: FakeClient, start_timeout: float = 15.0) -> ClientGroup:
    by_name = {client.name: client for client in clients}

    def made(made_from: ClientSpec, **options: object) -> Client:
        client = by_name[made_from.name]
        client.options = options
        return cast("Client", client)

    return ClientGroup(
        [spec(client.name) for client in clients],
        start_timeout=start_timeout,
        client_factory=made,
    )


def names(tools: list[GroupTool]) -> list[str]:
    return [tool.name for tool in tools]


def stages(group: ClientGroup) -> dict[str, str]:
    return {name: status.status for name, status in group.status().items()}


# -- start


def test_all_are_started_side_by_side_and_one_dead_server_hides_no_other() -> None:
    """ours: fail-open per server with a readable reason."""

    async def scenario() -> None:
        clients = [
            FakeClient("a", after=2.0),
            FakeClient("dead", reason=REFUSED),
            HangsAtStart("hangs"),
            CrashesAtStart("crashes", after=None),
            ExitsAtReady("exits", after=None),
            FakeClient("slow", after=60.0),
            FakeClient("b", after=3.0),
        ]
        group = group_of(*clients)
        statuses = await group.start(timeout=15.0)
        assert now() == 15.0
        assert stages(group) == {
            "a": "ready",
            "dead": "closed",
            "hangs": "starting",
            "crashes": "starting",
            "exits": "initializing",
            "slow": "initializing",
            "b": "ready",
        }
        reasons = {name: str(status.reason) for name, status in statuses.items() if status.reason}
        assert reasons == {
            "dead": "transport refused",
            "crashes": "task_down ZeroDivisionError",
            "exits": "task_down SystemExit",
        }
        assert [client.started_at for client in clients if client.name in "ab"] == [0.0, 0.0]
        assert names(await group.list_tools()) == ["mcp__a__read", "mcp__b__read"]
        await group.stop()

    run_virtual(scenario)


def test_start_returns_when_all_are_ready_or_have_failed() -> None:
    """ours: the bound is for the slow; nobody waits for what has failed."""

    async def scenario() -> None:
        group = group_of(FakeClient("a", after=2.0), FakeClient("dead", reason=REFUSED))
        await group.start(timeout=15.0)
        assert now() == 2.0
        await group.start(timeout=15.0)  # again: everything is known
        assert now() == 2.0
        await group.stop()

    run_virtual(scenario)


def test_a_server_that_comes_up_later_is_there_from_then_on() -> None:
    async def scenario() -> None:
        group = group_of(FakeClient("a"), FakeClient("late", after=20.0))
        await group.start(timeout=5.0)
        assert names(await group.list_tools()) == ["mcp__a__read"]
        assert {name: str(reason) for name, reason in group.skipped.items()} == {
            "late": "not_ready initializing"
        }
        await asyncio.sleep(15.0)
        assert names(await group.list_tools()) == ["mcp__a__read", "mcp__late__read"]
        assert group.skipped == {}
        assert group.status()["late"].reason is None
        await group.stop()

    run_virtual(scenario)


def test_a_second_start_waits_for_what_is_under_way() -> None:
    async def scenario() -> None:
        group = group_of(FakeClient("a", after=4.0))
        await group.start(timeout=4.5)
        other = group_of(FakeClient("a", after=4.0))
        first = asyncio.create_task(other.start(timeout=5.0))
        await asyncio.sleep(1.0)
        first.cancel()
        await asyncio.wait([first])
        assert (await other.start(timeout=5.0))["a"].status == "ready"
        assert now() == 8.0
        await group.stop()
        await other.stop()

    run_virtual(scenario)


def test_at_most_sixteen_are_being_started_and_the_slow_make_room() -> None:
    """K12: 64 servers are not 64 new processes in one moment, and 16 dead ones stop nobody."""

    async def scenario() -> None:
        slow = [FakeClient(f"slow{number}", after=None) for number in range(16)]
        quick = [FakeClient(f"quick{number}", after=1.0) for number in range(32)]
        group = group_of(*slow, *quick)
        await group.start(timeout=12.0)
        assert now() == 12.0
        assert [client.started_at for client in slow] == [0.0] * 16
        # A turn is a part of the whole time: four turns for three times sixteen servers.
        assert [client.started_at for client in quick] == [3.0] * 16 + [4.0] * 16
        assert all(client.is_ready() for client in quick)
        await group.stop()

    run_virtual(scenario)


def test_in_a_context_all_are_started_and_stopped() -> None:
    async def scenario() -> None:
        client = FakeClient("a", after=3.0)
        async with group_of(client, FakeClient("b", after=None), start_timeout=2.0) as group:
            assert now() == 2.0
            assert stages(group) == {"a": "initializing", "b": "initializing"}
        assert client.stopped_at == 2.0
        assert stages(group) == {"a": "stopped", "b": "stopped"}
        with pytest.raises(NotReady, match="stopped"):
            await group.start()
        assert len(asyncio.all_tasks()) == 1

    run_virtual(scenario)


def test_who_is_cancelled_while_entering_leaves_nothing() -> None:
    async def scenario() -> None:
        client = FakeClient("a", after=None)
        entering = asyncio.create_task(group_of(client).__aenter__())
        await asyncio.sleep(1.0)
        entering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await entering
        assert client.stopped_at == 1.0
        assert len(asyncio.all_tasks()) == 1

    run_virtual(scenario)


def test_an_empty_group_is_a_group() -> None:
    async def scenario() -> None:
        async with ClientGroup([]) as group:
            assert (await group.list_tools(), len(group), group.status()) == ([], 0, {})
        assert now() == 0.0

    run_virtual(scenario)


# -- stop


def test_all_are_stopped_at_once_and_none_holds_up_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """K11, K14: bounded even when one hangs and will not be cancelled."""

    async def scenario() -> None:
        good = FakeClient("good")
        group = group_of(HangsAtStop("a"), StubbornAtStop("b"), CrashesAtStop("c"), good)
        await group.start()
        await group.stop(timeout=5.0)
        assert (good.stopped_at, now()) == (0.0, 6.0)
        await group.stop()
        assert now() == 6.0

    with caplog.at_level(logging.WARNING):
        run_virtual(scenario)
    assert [record.message for record in caplog.records if "did not stop" in record.message] == [
        "the client of a did not stop: timeout (not done within 5.0 s)",
        "the client of b did not stop: timeout (not done within 5.0 s)",
        "the client of c did not stop: task_down ZeroDivisionError",
    ]


def test_stopping_goes_on_when_its_caller_is_cancelled() -> None:
    """K14: or the others would be left running."""

    class Slow(FakeClient):
        async def stop(self) -> None:
            await asyncio.sleep(3.0)
            await super().stop()

    async def scenario() -> None:
        client = Slow("a")
        group = group_of(client)
        await group.start()
        stopping = asyncio.create_task(group.stop())
        await asyncio.sleep(1.0)
        stopping.cancel()
        await asyncio.wait([stopping])
        assert stopping.cancelled()
        assert client.stopped_at is None
        await group.stop()
        assert client.stopped_at == 3.0

    run_virtual(scenario)


def test_what_waits_for_its_turn_is_never_started_after_a_stop() -> None:
    async def scenario() -> None:
        clients = [FakeClient(f"c{number}", after=None) for number in range(20)]
        group = group_of(*clients)
        starting = asyncio.create_task(group.start(timeout=10.0))
        await asyncio.sleep(1.0)
        await group.stop()
        assert [client.started_at for client in clients] == [0.0] * 16 + [None] * 4
        await starting
        assert now() == 1.0

    run_virtual(scenario)


# -- tools


def test_a_slow_server_is_skipped_within_its_own_time_and_named() -> None:
    async def scenario() -> None:
        group = group_of(
            FakeClient("a"),
            HangsAtList("hangs"),
            CancelledAtList("cancelled"),
            FakeClient("dead", reason=REFUSED),
            FakeClient("b", tools=("x", "y")),
        )
        await group.start()
        tools = await group.list_tools(timeout=3.0)
        assert now() == 4.0
        assert names(tools) == ["mcp__a__read", "mcp__b__x", "mcp__b__y"]
        assert [(tool.server, tool.tool.description) for tool in tools] == [
            ("a", "of a"),
            ("b", "of b"),
            ("b", "of b"),
        ]
        assert {name: str(reason) for name, reason in group.skipped.items()} == {
            "hangs": "timeout (not done within 4.0 s)",
            "cancelled": "task_down CancelledError",
            "dead": "transport refused",
        }
        await group.stop()

    run_virtual(scenario)


def test_a_call_goes_to_the_server_that_has_the_tool() -> None:
    """ours: by a table; `mcp__a__b__c` is not taken apart."""

    async def scenario() -> None:
        a, b = FakeClient("a", tools=("b__c",)), FakeClient("a__b", tools=("c", "d"))
        async with group_of(a, b) as group:
            assert names(await group.list_tools()) == ["mcp__a__b__c", "mcp__a__b__d"]
            assert group.refused == {"a__b": ["mcp__a__b__c"]}
            result = await group.call_tool("mcp__a__b__c", {"x": 1}, timeout=5.0, reservation="r")
            assert result.text == "a.b__c"
            assert a.calls == [("b__c", {"x": 1}, {"timeout": 5.0, "reservation": "r"})]
            assert (await group.call_tool("mcp__a__b__d")).text == "a__b.d"

    run_virtual(scenario)


def test_a_tool_is_found_without_a_list() -> None:
    """ours: a name that is known from elsewhere is looked for where it may belong."""

    async def scenario() -> None:
        clients = {name: FakeClient(name, tools=("c",)) for name in ("a", "a__b", "other")}
        async with group_of(*clients.values()) as group:
            assert (await group.call_tool("mcp__a__b__c")).text == "a__b.c"
            assert group.skipped == {}

    run_virtual(scenario)


def test_a_tool_that_appeared_since_the_last_list_is_found() -> None:
    async def scenario() -> None:
        client = FakeClient("a")
        async with group_of(client) as group:
            await group.list_tools()
            client.tools = ("write",)
            assert (await group.call_tool("mcp__a__write")).text == "a.write"
            with pytest.raises(UnknownTool):
                await group.call_tool("mcp__a__read")

    run_virtual(scenario)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mcp__a__none", "no server has the tool 'mcp__a__none'"),
        ("read", "no server has the tool 'read'"),
        ("", "no server has the tool ''"),
        ("mcp__A__read", "no server has the tool 'mcp__A__read'"),
        ("mcp__x\x1b__y", r"no server has the tool 'mcp__x\x1b__y'"),
        (
            "mcp__dead__read",
            "no server has the tool 'mcp__dead__read'; dead could not be asked: transport refused",
        ),
    ],
)
def test_an_unknown_tool_is_a_clear_error(name: str, message: str) -> None:
    async def scenario() -> None:
        client = FakeClient("a")
        async with group_of(client, FakeClient("dead", reason=REFUSED)) as group:
            with pytest.raises(UnknownTool) as caught:
                await group.call_tool(name)
            assert (str(caught.value), caught.value.tag) == (message, "unknown_tool")
            assert client.calls == []

    run_virtual(scenario)


def test_a_tool_of_a_server_that_went_away_fails_with_its_reason() -> None:
    async def scenario() -> None:
        client = FakeClient("a")
        async with group_of(client, FakeClient("b")) as group:
            await group.list_tools()
            client.reason = REFUSED
            assert names(await group.list_tools()) == ["mcp__b__read"]
            with pytest.raises(ConnectFailed, match="refused"):
                await group.call_tool("mcp__a__read")
            client.reason = None
            assert names(await group.list_tools()) == ["mcp__a__read", "mcp__b__read"]

    run_virtual(scenario)


# -- what a group is made of


def test_specs_mappings_and_entries_may_be_mixed() -> None:
    made: list[ClientSpec] = []

    def factory(made_from: ClientSpec, **_: object) -> Client:
        made.append(made_from)
        return cast("Client", FakeClient(made_from.name))

    unset = Reason("unset_variable", "X", text="the variable X is not set")
    group = ClientGroup(
        [
            spec("a"),
            {"name": "b", "command": "y"},
            Entry("c", spec=spec("c")),
            Entry("d", reason=unset),
        ],
        client_factory=factory,
    )
    assert made == [spec("a"), ClientSpec("b", command="y"), spec("c")]
    assert (list(group), len(group), "a" in group, "d" in group) == (
        ["a", "b", "c"],
        3,
        True,
        False,
    )
    assert cast("object", group["b"]).name == "b"  # type: ignore[attr-defined]  # it is a fake
    assert group.status()["d"] == ServerStatus("d", "skipped", unset)
    assert group.skipped == {"d": unset}
    assert repr(group) == "ClientGroup(a, b, c, d)"
    with pytest.raises(KeyError, match="it was left out: unset_variable X"):
        group["d"]
    with pytest.raises(KeyError, match="'e'; there are: a, b, c"):
        group["e"]
    with pytest.raises(InvalidSpec):
        ClientGroup([{"name": "a"}], client_factory=factory)


@pytest.mark.parametrize("first", [spec("my-x"), Entry("my-x", reason=REFUSED)])
def test_no_server_can_pass_for_another(first: ClientSpec | Entry) -> None:
    """ours: nor when the first was left out; what is put first cannot be shadowed."""
    made: list[str] = []

    def factory(made_from: ClientSpec, **_: object) -> Client:
        made.append(made_from.name)
        return cast("Client", FakeClient(made_from.name))

    group = ClientGroup([first, spec("my_x"), spec("my-x"), spec("my-x")], client_factory=factory)
    assert made == (["my-x"] if isinstance(first, ClientSpec) else [])
    taken = "its tools would have the names of my-x's"
    texts = {name: reason.text for name, reason in group.skipped.items() if reason != REFUSED}
    assert texts == {"my_x": taken, "my-x#2": taken, "my-x#3": taken}


def test_a_client_that_cannot_be_made_is_left_out() -> None:
    def factory(made_from: ClientSpec, **_: object) -> Client:
        if made_from.url is not None:
            raise NoHttpClient("a url needs the package aiohttp, which is not installed")
        return cast("Client", FakeClient(made_from.name))

    group = ClientGroup([ClientSpec("web", url="u"), spec("a")], client_factory=factory)
    assert list(group) == ["a"]
    assert str(group.skipped["web"]).startswith("no_http_client (a url needs")


def test_the_options_are_for_every_client_and_say_who_speaks() -> None:
    """ours: of many servers, a message without a name is worth little."""
    heard: list[object] = []
    options: list[dict[str, Callable[..., object]]] = []

    def factory(made_from: ClientSpec, **given: Callable[..., object]) -> Client:
        options.append(given)
        return cast("Client", FakeClient(made_from.name))

    def observe(event: str, fields: dict[str, object]) -> None:
        heard.append((event, fields))

    ClientGroup(
        [spec("a"), spec("b")],
        client_factory=factory,
        roots=[],
        sampling=None,
        observe=observe,
        logging=lambda server, message: heard.append((server, message)),
        on_change=lambda server, change: heard.append((server, change)),
    )
    assert [set(given) for given in options] == [{"roots", "observe", "logging", "on_change"}] * 2
    message, change = LogMessage("info", None, "x"), Change("tools")
    options[0]["logging"](message)
    options[1]["on_change"](change)
    assert options[0]["observe"] is observe
    assert heard == [("a", message), ("b", change)]


# -- from a file


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / ".mcp.json"
    servers = {
        "a": {"command": "${COMMAND}"},
        "unset": {"command": "${NONE}"},
        "wrong": {"command": "x", "url": "u"},
        "b": {"command": "y"},
    }
    path.write_text(json.dumps({"mcpServers": servers}), "utf-8")
    return path


@pytest.fixture
def store(tmp_path: Path) -> TrustStore:
    (tmp_path / "config").mkdir(mode=0o700)
    return TrustStore(tmp_path / "config" / "raxol-mcp")


def test_a_group_comes_from_a_file_that_is_allowed(file: Path, store: TrustStore) -> None:
    """ours: until then no client is made and no variable read."""
    made: list[ClientSpec] = []

    def factory(made_from: ClientSpec, **_: object) -> Client:
        made.append(made_from)
        return cast("Client", FakeClient(made_from.name))

    def group() -> ClientGroup:
        return ClientGroup.from_file(
            file, store=store, environ={"COMMAND": "cat"}, client_factory=factory
        )

    with pytest.raises(NotTrusted, match="it has never been allowed"):
        group()
    assert made == []
    store.allow(load(file))
    assert list(group()) == ["a", "b"]
    assert [one.command for one in made] == ["cat", "y"]
    assert {name: str(reason) for name, reason in group().skipped.items()} == {
        "unset": "unset_variable NONE (the variable NONE is not set)",
        "wrong": 'invalid_spec (it has both "command" and "url")',
    }
    file.write_bytes(file.read_bytes() + b"\n")
    with pytest.raises(NotTrusted, match="it has changed since it was allowed"):
        group()


def test_a_file_that_is_not_allowed_hides_no_server_of_another(
    file: Path, store: TrustStore
) -> None:
    """ours: the user's own servers come first, and those of a folder do not run."""

    def factory(made_from: ClientSpec, **_: object) -> Client:
        return cast("Client", FakeClient(made_from.name))

    group = ClientGroup([spec("own"), *store.entries(load(file))], client_factory=factory)
    assert list(group) == ["own"]
    assert {name: reason.path for name, reason in group.skipped.items()} == dict.fromkeys(
        ("a", "unset", "b"), ("blocked", "not_trusted")
    )


def test_the_users_own_store_counts_by_default(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with pytest.raises(NotTrusted):
        ClientGroup.from_file(file)
