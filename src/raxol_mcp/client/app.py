"""`Client`: a session with one server that never hangs, never leaks and comes back by itself.

Not a protocol machine: `raxol_mcp.core.client` decides, `runtime` does. This is what a user sees.

    async with Client({"name": "files", "command": "npx", "args": ["-y", "some-server"]}) as files:
        for tool in await files.list_tools():
            print(tool.name)
        result = await files.call_tool("read", {"path": "a.txt"})

Every request has a timer from the moment it is asked for, so every await here ends. A client
belongs to the event loop that runs when it starts; it may be used from any task there and stopped
from any task.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from types import TracebackType
from typing import TYPE_CHECKING, Final, TypeVar

from raxol_mcp.client.answers import ELICITATION_MODES, Handlers
from raxol_mcp.client.failures import error_of
from raxol_mcp.client.opening import Tables, dialer_of, options_of, shared_tables
from raxol_mcp.client.payments import Payments
from raxol_mcp.client.readers import completion_result, prompt_result, read_result
from raxol_mcp.client.requests import Requests
from raxol_mcp.client.results import (
    CallResult,
    Change,
    ClientStatus,
    CompletionResult,
    PromptResult,
    ReadResult,
    RemotePrompt,
    RemoteResource,
    RemoteTemplate,
    RemoteTool,
)
from raxol_mcp.client.runtime import ClientRuntime
from raxol_mcp.client.spec import ClientSpec
from raxol_mcp.client.status import status_of
from raxol_mcp.client.tool_calls import ToolCalls
from raxol_mcp.client.upkeep import Upkeep
from raxol_mcp.client.user import ClientUser
from raxol_mcp.core.client import ClientCore
from raxol_mcp.core.client_effects import Ended
from raxol_mcp.core.tickets import Waiter
from raxol_mcp.errors import ConfigurationError, Reason

if TYPE_CHECKING:
    from raxol_mcp.client.answers import Elicitation, Logging, Roots, Sampling
    from raxol_mcp.client.catalogue import Listing
    from raxol_mcp.client.subscriptions import Subscription
    from raxol_mcp.client.user import OnChange, OnProgress
    from raxol_mcp.core.reservations import Reservations
    from raxol_mcp.telemetry import Observer
    from raxol_mcp.transports.link import Dialer
    from raxol_mcp.wire.jsonrpc import JSONObject

__all__ = ["Client"]

T = TypeVar("T")

_READY_TIMEOUT: Final = 60.0


class _Life(Enum):
    """What was made of a client; where its session stands is the core's matter."""

    NEW = "new"
    STARTED = "started"
    STOPPED = "stopped"


class Client:
    """One server, as a user sees it. Nothing is started before `start` or `async with`.

    `spec` is a `ClientSpec` or its options by name. The handlers answer what the server asks,
    sync or async, and what has no handler is not declared to the server: `elicitation(request)`
    gives `Accept`, `Decline` or `Cancel`; `sampling(request)` the result object; `roots` is a
    list of `Root` or gives one. `elicitation_modes` are those that the handler takes, "form" and
    "url"; with `sampling_tools` that of sampling takes tools. `logging(message)` and
    `on_change(change)` are told. `observe` is given `(event, fields)` of `raxol_mcp.telemetry`.
    `tables` are those of the process and `reservations` the client's own unless given; `dialer`
    replaces the transport.

    Raises `InvalidSpec` and `NoHttpClient`: then nothing has been started.
    """

    def __init__(
        self,
        spec: ClientSpec | Mapping[str, object],
        *,
        elicitation: Elicitation | None = None,
        sampling: Sampling | None = None,
        roots: Roots | None = None,
        logging: Logging | None = None,
        on_change: OnChange | None = None,
        observe: Observer | None = None,
        tables: Tables | None = None,
        reservations: Reservations | None = None,
        dialer: Dialer | None = None,
        elicitation_modes: Collection[str] = ELICITATION_MODES,
        sampling_tools: bool = False,
    ) -> None:
        self.spec = ClientSpec.of(spec)
        tables = shared_tables() if tables is None else tables
        self._dialer = dialer_of(self.spec, tables) if dialer is None else dialer
        self._payments = Payments(self.spec, reservations)
        handlers = Handlers(
            elicitation=elicitation,
            sampling=sampling,
            roots=roots,
            logging=logging,
            elicitation_modes=elicitation_modes,
            sampling_tools=sampling_tools,
        )
        self._core = ClientCore(
            options_of(self.spec, self._dialer, handlers), tables.verdicts, self._payments.problem
        )
        self._user = ClientUser(self.spec.name, handlers)
        self._secrets = self.spec.secrets()
        self._runtime = ClientRuntime(
            self.spec.name,
            self._core,
            self._dialer,
            self._user,
            mask=self._secrets.masked,
            observe=observe,
        )
        self._requests = Requests(self.spec, self._runtime, self._user)
        self._upkeep = Upkeep(
            self.spec.name, self._requests, mirrors=self._mirrors, changed=self._changed
        )
        self._lists = self._upkeep.lists
        self._calls = ToolCalls(self._requests, self._lists, mirrors=self._mirrors)
        self._user.attach(self._upkeep, self._runtime.spawn)
        self._on_change = on_change
        self._life = _Life.NEW

    def __repr__(self) -> str:
        """Show what it is and where it stands; no secret is in either."""
        return f"<Client {self._dialer!r} {self._core!r}>"

    # -- life ---------------------------------------------------------------------------------

    async def __aenter__(self) -> Client:
        """Start, and wait until the server can be used.

        Raises `ConnectFailed` at the first failure, because whoever waits here wants to know, and
        `NotReady` after `init_timeout`; the client is stopped then.
        """
        await self.start()
        try:
            await self.await_ready(self.spec.init_timeout, fail_fast=True)
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Begin to connect, and return at once: a server that is not there is no error here.

        From then on the client connects again after every failure. Once: a client that was
        stopped stays so.
        """
        if self._life is not _Life.NEW:
            raise ConfigurationError(f"a client starts once, and this one was {self._life.value}")
        self._life = _Life.STARTED
        self._runtime.perform(self._core.started(self._runtime.now()))

    async def stop(self) -> None:
        """End the session and everything of it; what waits gets `NotReady`. Again: nothing.

        Returns when nothing is left, within the bounds of the transport. From any task.
        """
        was, self._life = self._life, _Life.STOPPED
        if was is not _Life.NEW:
            self._upkeep.subscriptions.stop()
            await self._runtime.stop()

    async def await_ready(
        self, timeout: float | None = _READY_TIMEOUT, *, fail_fast: bool | None = None
    ) -> ClientStatus:
        """Wait until the server can be used, through as many failures as it takes.

        Raises `NotReady` with the state when `timeout` (seconds, None for ever) is over;
        `ConnectFailed` when there is no use in waiting (a 401), and with `fail_fast` (that of the
        spec unless given) at the next failure.
        """
        self._check_started()
        wanted = self.spec.fail_fast if fail_fast is None else fail_fast
        await self._runtime.ready(Waiter(self._requests.patience(timeout), fail_fast=wanted))
        return self.status()

    def status(self) -> ClientStatus:
        """Say where the client stands. Never waits."""
        kept = self._lists.tools.kept
        tools = None if kept is None else len(kept)
        runtime = self._runtime
        return status_of(
            self.spec.name, self._core, tools=tools, now=runtime.now, mask=runtime.mask
        )

    def stderr(self) -> str:
        """Return the end of what the server has written to stderr, escaped; "" over HTTP.

        Secrets of the spec are masked: servers print what they were started with.
        """
        tail = getattr(self._dialer, "stderr_tail", None)
        return "" if tail is None else self._secrets.masked(str(tail()))

    def _check_started(self) -> None:
        if self._life is not _Life.STARTED:
            raise error_of(Ended.NOT_READY, Reason("not_ready", self._life.value))

    # -- tools --------------------------------------------------------------------------------

    async def list_tools(
        self, *, timeout: float | None = None, refresh: bool = False
    ) -> list[RemoteTool]:
        """Return every tool of the server, cleaned (`raxol_mcp.client.definitions`).

        From memory while the server has not changed them; `refresh` asks all the same. `timeout`
        (seconds, that of the spec unless given) is for all pages.
        """
        return await self._list(self._lists.tools, timeout, refresh=refresh)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, object] | None = None,
        *,
        timeout: float | None = None,
        max_timeout: float | None = None,
        reservation: str | None = None,
        progress: OnProgress | None = None,
        meta: Mapping[str, object] | None = None,
    ) -> CallResult:
        """Call a tool and return what it says, an error of its own included (`is_error`).

        `timeout` (seconds) runs from now, the wait in the queue included; with `max_timeout` each
        progress of the server begins it anew, up to that. While the user answers a question of
        the server it stands still, for at most `answer_timeout`. `reservation` pays for a priced
        tool (`reserve`). `progress(progress)` is told how far the call is. The call is never sent
        twice, except when the server refused it for headers made from an old list of tools.

        Raises, each with a `tag`: `Busy`, `TimedOut`, `NotReady`, `ConnectFailed`,
        `ConnectionLost`, `SessionLost`, `RemoteProtocolError`, `RequestFailed`, `Unpaid`.
        """
        self._check_started()
        return await self._calls.call(
            name,
            arguments or {},
            timeout=timeout,
            max_timeout=max_timeout,
            reservation=reservation,
            progress=progress,
            meta=meta,
        )

    def reserve(self) -> str:
        """Mint a reservation for one call of a priced tool: whoever calls this agrees to pay.

        Good for one call within two minutes; it is spent when that call is sent, whatever becomes
        of it. Raises `Busy` when too many are open.
        """
        self._check_started()
        return self._payments.mint(self._runtime.now())

    # -- resources, prompts, completion -------------------------------------------------------

    async def list_resources(
        self, *, timeout: float | None = None, refresh: bool = False
    ) -> list[RemoteResource]:
        """Return every resource of the server; as `list_tools`."""
        return await self._list(self._lists.resources, timeout, refresh=refresh)

    async def list_resource_templates(
        self, *, timeout: float | None = None, refresh: bool = False
    ) -> list[RemoteTemplate]:
        """Return every resource template of the server; as `list_tools`."""
        return await self._list(self._lists.templates, timeout, refresh=refresh)

    async def read_resource(self, uri: str, *, timeout: float | None = None) -> ReadResult:
        """Return the contents of a resource. Raises as `call_tool`."""
        result = await self.request("resources/read", {"uri": uri}, timeout=timeout)
        return self._requests.read(read_result, result)

    async def list_prompts(
        self, *, timeout: float | None = None, refresh: bool = False
    ) -> list[RemotePrompt]:
        """Return every prompt of the server; as `list_tools`."""
        return await self._list(self._lists.prompts, timeout, refresh=refresh)

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
    ) -> PromptResult:
        """Return a prompt, filled in. Raises as `call_tool`."""
        params: JSONObject = {"name": name, "arguments": dict(arguments or {})}
        result = await self.request("prompts/get", params, timeout=timeout)
        return self._requests.read(prompt_result, result)

    async def complete(
        self,
        ref: Mapping[str, str],
        name: str,
        value: str,
        *,
        context: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> CompletionResult:
        """Return what the argument `name` may be when it begins with `value`.

        `ref` is `{"type": "ref/prompt", "name": ...}` or `{"type": "ref/resource", "uri": ...}`,
        `context` the arguments that are known already.
        """
        params: JSONObject = {"ref": dict(ref), "argument": {"name": name, "value": value}}
        if context is not None:
            params["context"] = {"arguments": dict(context)}
        result = await self.request("completion/complete", params, timeout=timeout)
        return self._requests.read(completion_result, result)

    # -- the rest of the protocol -------------------------------------------------------------

    def subscribe(
        self,
        *,
        tools: bool = False,
        prompts: bool = False,
        resources: bool = False,
        uris: Iterable[str] = (),
    ) -> Subscription:
        """Be told of changes: of the lists named, and of the contents of the resources `uris`.

            async with client.subscribe(tools=True) as changes:
                async for change in changes:
                    ...

        Holds over reconnects; what may have been missed meanwhile is told as changed. Raises
        `NotReady` for a client that was not started.
        """
        self._check_started()
        lists = {"tools": tools, "prompts": prompts, "resources": resources}
        return self._upkeep.subscriptions.subscribe(
            lists=[kind for kind, wanted in lists.items() if wanted], uris=uris
        )

    async def set_log_level(self, level: str) -> None:
        """Have the server log from `level` on ("debug" to "emergency"), over reconnects too."""
        self._check_started()
        await self._upkeep.set_log_level(level)

    async def ping(self, *, timeout: float | None = None) -> None:
        """Make sure that the server answers. The stateless era has no ping: it is discovered."""
        method = "server/discover" if self._requests.is_stateless else "ping"
        await self.request(method, timeout=timeout)

    async def request(
        self,
        method: str,
        params: Mapping[str, object] | None = None,
        *,
        timeout: float | None = None,
    ) -> JSONObject:
        """Make any request and return its result object. Raises as `call_tool`."""
        self._check_started()
        return await self._requests.send(method, params, timeout)

    def notify(self, method: str, params: Mapping[str, object] | None = None) -> None:
        """Tell the server something. Raises `NotReady` when there is no session."""
        self._check_started()
        self._requests.notify(method, params)

    async def _list(self, listing: Listing[T], timeout: float | None, *, refresh: bool) -> list[T]:
        self._check_started()
        return await self._upkeep.read(listing, timeout, refresh=refresh)

    def _mirrors(self) -> bool:
        """Say whether arguments go into headers as well."""
        return self._dialer.kind == "http" and self._requests.is_stateless

    def _changed(self, change: Change) -> None:
        if self._on_change is not None:
            self._user.tell(self._on_change, change)
