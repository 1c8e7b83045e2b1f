"""Many servers at once, as one set of tools. Knows clients by their API, and no protocol.

Fail-open for each server: one that is wrong, slow, dead or broken is left out with a reason that
can be read, and the others work as if it were not there. One that comes up later is there from
then on, because its client goes on trying.

    config = raxol_mcp.client.config.load(".mcp.json")
    entries = TrustStore.of_user().entries(config)
    async with ClientGroup(entries) as group:
        tools = await group.list_tools()
        result = await group.call_tool("mcp__files__read", {"path": "a.txt"})
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from math import ceil
from types import TracebackType
from typing import TYPE_CHECKING, Final, TypedDict, Unpack

from raxol_mcp.client.config import load, normalised
from raxol_mcp.client.entries import Entry
from raxol_mcp.client.failures import reason_of
from raxol_mcp.client.names import tool_name
from raxol_mcp.client.redaction import shown
from raxol_mcp.client.results import CallResult, Change, ClientStatus, LogMessage, RemoteTool
from raxol_mcp.client.side_by_side import side_by_side
from raxol_mcp.client.spec import ClientSpec
from raxol_mcp.client.tool_table import GroupTool, ToolTable
from raxol_mcp.client.trust import TrustStore
from raxol_mcp.errors import ConfigurationError, NotReady, RaxolError, Reason, UnknownTool
from raxol_mcp.wire.values import Value

if TYPE_CHECKING:
    from raxol_mcp.client.answers import Elicitation, Roots, Sampling
    from raxol_mcp.client.app import Client
    from raxol_mcp.client.opening import Tables
    from raxol_mcp.client.user import OnProgress
    from raxol_mcp.core.reservations import Reservations
    from raxol_mcp.telemetry import Observer

__all__ = ["CallOptions", "ClientGroup", "GroupOptions", "GroupTool", "ServerStatus"]

_AT_ONCE: Final = 16  # servers that are being started
# A client's own timer ends first, and says more.
_SLACK: Final = 1.0
_LIST_TIMEOUT: Final = 10.0
_TOLD: Final = ("logging", "on_change")
_logger = logging.getLogger("raxol_mcp.client")


class ServerStatus(Value, frozen=True):
    """Where one server of a group stands.

    `status` is that of its client, or "skipped" where there is none; `reason` says why it is not
    usable, None where nothing went wrong. `client` is the client's own account.
    """

    name: str
    status: str
    reason: Reason | None = None
    client: ClientStatus | None = None


class GroupOptions(TypedDict, total=False):
    """The options of a group, for every client of it: as `Client` has them.

    `logging` and `on_change` are told of which server they hear, before what: `logging(server,
    message)`, `on_change(server, change)`. `client_factory` makes the clients, from a spec and the
    options of `Client`.
    """

    elicitation: Elicitation | None
    sampling: Sampling | None
    roots: Roots | None
    elicitation_modes: Collection[str]
    sampling_tools: bool
    logging: Callable[[str, LogMessage], object] | None
    on_change: Callable[[str, Change], object] | None
    observe: Observer | None
    tables: Tables | None
    reservations: Reservations | None
    client_factory: Callable[..., Client]


class CallOptions(TypedDict, total=False):
    """The options of a call, as `Client.call_tool` has them."""

    timeout: float | None
    max_timeout: float | None
    reservation: str | None
    progress: OnProgress | None
    meta: Mapping[str, object] | None


class ClientGroup:
    """The clients of several servers, by name. An async context manager.

    `servers` are specs, their options as mappings, or the entries of a file. Two names that are
    alike in the names of tools (`a-b` and `a_b`) collide, and the first keeps it, even if it was
    left out itself: no server can pass for another. `start_timeout` is how long entering the
    context waits for the servers, in seconds. The other options are `GroupOptions`.

    Raises `InvalidSpec` for options that cannot be meant; what is wrong in the entry of a file is
    no error here.
    """

    def __init__(
        self,
        servers: Iterable[Entry | ClientSpec | Mapping[str, object]],
        *,
        start_timeout: float = 15.0,
        **options: Unpack[GroupOptions],
    ) -> None:
        self._start_timeout = start_timeout
        self._options = options
        self._clients: dict[str, Client] = {}
        self._left_out: dict[str, Reason] = {}
        self._missing: dict[str, Reason] = {}
        self._order: list[str] = []
        self._table = ToolTable()
        self._attempts: dict[str, asyncio.Task[None]] = {}
        self._failures: dict[str, Reason] = {}
        self._stopping: asyncio.Task[None] | None = None
        for entry in map(_entry, servers):
            self._add(entry)

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        *,
        store: TrustStore | None = None,
        environ: Mapping[str, str] | None = None,
        start_timeout: float = 15.0,
        **options: Unpack[GroupOptions],
    ) -> ClientGroup:
        """Make the group of an `.mcp.json` that the user has allowed.

        `store` is where that is kept, the user's own if not given. Raises `ConfigurationError` for
        a file that cannot be read, and `NotTrusted`. For several files, of which one may not be
        trusted, pass the `TrustStore.entries` of each to the group itself.
        """
        trusted = (store or TrustStore.of_user()).trusted(load(path))
        return cls(trusted.specs(environ), start_timeout=start_timeout, **options)

    def __repr__(self) -> str:
        return f"ClientGroup({', '.join(self._order)})"

    def __getitem__(self, name: str) -> Client:
        """Give the client of one server. Raises `KeyError`, which says why there is none."""
        client = self._clients.get(name)
        if client is None:
            known = ", ".join(self._clients) or "none"
            reason = self._left_out.get(name)
            why = f"it was left out: {reason}" if reason else f"there are: {known}"
            raise KeyError(f"no client for the server {shown(name)}; {why}")
        return client

    def __contains__(self, name: object) -> bool:
        return name in self._clients

    def __iter__(self) -> Iterator[str]:
        return iter(self._clients)

    def __len__(self) -> int:
        return len(self._clients)

    # -- life

    async def __aenter__(self) -> ClientGroup:
        entered = False
        try:
            await self.start(timeout=self._start_timeout)
            entered = True
        finally:
            if not entered:
                await self.stop()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    async def start(self, *, timeout: float = 15.0) -> dict[str, ServerStatus]:
        """Start every client, and wait at most `timeout` seconds until each is ready or has failed.

        Raises nothing for a server. What is not ready then goes on, or goes on trying, and may be
        ready later; calling this again waits for what is still under way. At most 16 servers are
        being started at once, and one that is slow makes room for the next in time. Raises
        `NotReady` after `stop`.
        """
        if self._stopping is not None:
            raise NotReady("stopped")
        if not self._attempts:
            slots = asyncio.Semaphore(_AT_ONCE)
            turn = timeout / (ceil(len(self._clients) / _AT_ONCE) + 1)
            self._attempts = {
                name: asyncio.create_task(self._bring_up(name, slots, turn, timeout), name=name)
                for name in self._clients
            }
        pending = [attempt for attempt in self._attempts.values() if not attempt.done()]
        if pending:
            await asyncio.wait(pending, timeout=timeout)
        return self.status()

    async def stop(self, *, timeout: float = 10.0) -> None:
        """Stop every client, all at once, within `timeout` seconds even if some hang.

        Goes on to its end when its caller is cancelled. Again: waits for the same end.
        """
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._end(timeout), name="stop")
        await asyncio.shield(self._stopping)

    def status(self) -> dict[str, ServerStatus]:
        """Say where each server stands, in order, those that were left out as well."""
        return {name: self._status(name) for name in self._order}

    # -- tools

    async def list_tools(self, *, timeout: float = _LIST_TIMEOUT) -> list[GroupTool]:
        """Give the tools of every server that answers within `timeout` seconds, in order.

        The others are in `skipped`. No name is there twice: of two tools whose namespaced names
        are equal the one that had it first is given, the other is in `refused`.
        """
        return await self._listed(list(self._clients), timeout)

    @property
    def skipped(self) -> dict[str, Reason]:
        """The servers without tools in the last list, and why; those left out as well."""
        missing = {**self._left_out, **self._missing}
        return {name: missing[name] for name in self._order if name in missing}

    @property
    def refused(self) -> dict[str, list[str]]:
        """The names of tools that were taken already, of each server that offered such."""
        return self._table.refused(self._order)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, object] | None = None,
        **options: Unpack[CallOptions],
    ) -> CallResult:
        """Call a tool by its namespaced name; `options` are those of `Client.call_tool`.

        A name that was not in a list yet is looked for at the servers it may belong to. Raises
        what `Client.call_tool` raises, and `UnknownTool`, which says which servers were not asked.
        """
        found = self._table.find(name)
        if found is None:
            owners = [server for server in self._clients if name.startswith(tool_name(server, ""))]
            await self._listed(owners, _LIST_TIMEOUT)
            found = self._table.find(name)
            if found is None:
                raise UnknownTool(self._unknown(name, owners))
        return await self[found.server].call_tool(found.tool.name, arguments, **options)

    # -- inside

    def _add(self, entry: Entry) -> None:
        name, reason = entry.name, entry.reason
        taken = next((one for one in self._order if normalised(one) == normalised(name)), None)
        if taken is not None:
            reason = Reason("invalid_spec", text=f"its tools would have the names of {taken}'s")
            name = self._another(name)
        if entry.spec is not None and reason is None:
            try:
                self._clients[name] = _client(entry.spec, self._options)
            except ConfigurationError as error:
                reason = reason_of(error)
        if reason is not None:
            self._left_out[name] = reason
        self._order.append(name)

    def _another(self, name: str) -> str:
        """Find a key for a server whose name may be in use; no server has a # in its name."""
        number = 2
        key = name
        while key in self._order:
            key = f"{name}#{number}"
            number += 1
        return key

    async def _bring_up(
        self, name: str, slots: asyncio.Semaphore, turn: float, patience: float
    ) -> None:
        """Start one client and wait until it is ready, has failed or `patience` is over."""
        client = self._clients[name]

        async def bring() -> None:
            await client.start()
            await client.await_ready(timeout=patience)

        await slots.acquire()
        slot = ExitStack()
        slot.callback(slots.release)  # after its turn, or when it is done: whichever comes first
        timer = asyncio.get_running_loop().call_later(turn, slot.close)
        try:
            error = (await side_by_side({name: bring}, patience=patience + _SLACK))[name]
        finally:
            timer.cancel()
            slot.close()
        if error is not None and not isinstance(error, NotReady):
            self._failures[name] = reason_of(error)

    async def _end(self, patience: float) -> None:
        for attempt in self._attempts.values():
            attempt.cancel()
        stops = {name: client.stop for name, client in self._clients.items()}
        ends = await side_by_side(stops, patience=patience)
        for name, error in ends.items():
            if error is not None:
                _logger.warning("the client of %s did not stop: %s", name, reason_of(error))
        if self._attempts:
            await asyncio.wait(self._attempts.values(), timeout=2 * _SLACK)

    def _status(self, name: str) -> ServerStatus:
        client = self._clients.get(name)
        if client is None:
            return ServerStatus(name, "skipped", self._left_out[name])
        status = client.status()
        reason = status.reason
        if reason is None and status.status != "ready":
            reason = self._failures.get(name)
        return ServerStatus(name, status.status, reason, status)

    async def _listed(self, servers: Iterable[str], patience: float) -> list[GroupTool]:
        work: dict[str, Callable[[], Awaitable[list[RemoteTool]]]] = {
            name: partial(self._clients[name].list_tools, timeout=patience) for name in servers
        }
        tools = []
        for name, answer in (await side_by_side(work, patience=patience + _SLACK)).items():
            if isinstance(answer, RaxolError):
                self._missing[name] = reason_of(answer)
            else:
                self._missing.pop(name, None)
                tools += self._table.replace(name, answer)
        return tools

    def _unknown(self, name: str, owners: Iterable[str]) -> str:
        silent = [
            f"; {owner} could not be asked: {reason}"
            for owner in owners
            if (reason := self._missing.get(owner))
        ]
        return f"no server has the tool {shown(name)}{''.join(silent)}"


def _entry(server: Entry | ClientSpec | Mapping[str, object]) -> Entry:
    if isinstance(server, Entry):
        return server
    spec = ClientSpec.of(server)
    return Entry(spec.name, spec=spec)


def _client(spec: ClientSpec, options: GroupOptions) -> Client:
    given: dict[str, object] = {
        key: partial(value, spec.name) if key in _TOLD and callable(value) else value
        for key, value in options.items()
        if key != "client_factory" and value is not None
    }
    factory = options.get("client_factory") or _factory()
    return factory(spec, **given)


def _factory() -> Callable[..., Client]:
    from raxol_mcp.client.app import Client  # with all it takes to connect

    return Client
