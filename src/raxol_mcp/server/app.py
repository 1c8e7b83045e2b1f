"""`Server`: what people write a server with, what embedders talk to, what transports serve.

Puts the parts together and keeps the boot guards. What happens to a message is decided by the
core and carried out by `tools.py` and `surface.py`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Final, Literal

from raxol_mcp.core.breaker import Breakers
from raxol_mcp.core.eras import Identity
from raxol_mcp.core.limits import Limits
from raxol_mcp.core.seal import Seal
from raxol_mcp.core.server import ServerCore
from raxol_mcp.errors import ConfigurationError
from raxol_mcp.server.callbacks import Callbacks
from raxol_mcp.server.declarations import Declarations
from raxol_mcp.server.definitions import Kind
from raxol_mcp.server.extension import Extension
from raxol_mcp.server.registry import Registry
from raxol_mcp.server.runtime import ServerRuntime
from raxol_mcp.server.surface import Surface
from raxol_mcp.server.tools import Tools, UnknownToolReply
from raxol_mcp.version import VERSION

if TYPE_CHECKING:
    from raxol_mcp.core.calls import Call
    from raxol_mcp.core.effects import Job
    from raxol_mcp.core.outcomes import Outcome
    from raxol_mcp.server.authorizer import Authorizer
    from raxol_mcp.server.processes import Processes
    from raxol_mcp.telemetry import Observer

__all__ = ["AuthorizerSource", "Lifespan", "Server"]

_logger = logging.getLogger("raxol_mcp.server")

AuthorizerSource = Literal["configured", "default"]
Lifespan = Callable[["Server"], AbstractAsyncContextManager[object]]
STATE_KEY: Final = "RAXOL_MCP_STATE_KEY"
STOP_WITHIN: Final = 5.0


class Server(Declarations, Extension):
    """An MCP server: tools, resources and prompts behind an authorizer, on any transport.

    * `authorizer(name, arguments, context)` decides about every `tools/call`; without one every
      tool is allowed, but a sensitive one keeps the server from starting.
    * `read_authorizer(method, arguments, context)` decides about everything else; None: open.
    * `authorizer_source="configured"` says that somebody chose the authorizer. A network
      transport refuses to serve a server where nobody did.
    * `unknown_tool_reply(name)` may give the text that answers a call of a tool that is not there.
    * `limits` bounds everything; `page_size` is how many entries a page of a list has.
    * `lifespan(server)` is an async context manager around serving; callbacks find what it yields
      in `Context.lifespan`.
    * `state_key` (at least 32 bytes) signs what stateless clients carry; by default it is taken
      from RAXOL_MCP_STATE_KEY, else random. Give it when several processes serve one address.
    * `observe(event, fields)` hears what is worth counting.

    Raises ConfigurationError for options that cannot be served.
    """

    def __init__(
        self,
        name: str = "raxol",
        *,
        version: str = VERSION,
        title: str | None = None,
        instructions: str | None = None,
        authorizer: Authorizer | None = None,
        read_authorizer: Authorizer | None = None,
        authorizer_source: AuthorizerSource = "default",
        unknown_tool_reply: UnknownToolReply | None = None,
        limits: Limits | None = None,
        page_size: int = 100,
        cache_ttl: float = 0.0,
        lifespan: Lifespan | None = None,
        registry: Registry | None = None,
        breakers: Breakers | None = None,
        state_key: bytes | None = None,
        observe: Observer | None = None,
    ) -> None:
        self._identity = Identity(name, version, title, instructions, cache_ttl)
        if type(page_size) is not int or not 1 <= page_size <= 1000:
            raise ConfigurationError(f"page_size must be from 1 to 1000, got: {page_size!r}")
        _check_callable("unknown_tool_reply", unknown_tool_reply)
        _check_callable("lifespan", lifespan)
        _check_callable("observe", observe)
        Declarations.__init__(self, registry if registry is not None else Registry())
        self.name = name
        self._authorizer: Authorizer | None = None
        self._read_authorizer: Authorizer | None = None
        self._authorizer_source: AuthorizerSource = "default"
        self._page_size = page_size
        self._lifespan = lifespan
        self._lifespan_exit: AbstractAsyncContextManager[object] | None = None
        self._serving = 0
        self._changing = asyncio.Lock()
        self._stopping: asyncio.Task[None] | None = None
        self._processes: Processes | None = None
        self._seal = Seal(_state_key(state_key))
        self.breakers = Breakers() if breakers is None else breakers
        bounds = limits if limits is not None else Limits()
        runtime = ServerRuntime(self._core(bounds), self._execute, observe=observe)
        Extension.__init__(self, runtime, bounds, unknown_tool_reply)
        self.guard(authorizer=authorizer, read_authorizer=read_authorizer, source=authorizer_source)
        self.registry.on_change(self._registry_changed)

    def __repr__(self) -> str:
        return f"<Server {self.name!r} {self._runtime.core!r}>"

    def stats(self) -> dict[str, int]:
        """Counts: connections, in_flight, stopping, parked, approved, ..."""
        return self._runtime.core.stats()

    # -- guards -------------------------------------------------------------------------------

    @property
    def authorizer(self) -> Authorizer | None:
        """What decides about every `tools/call`, if anything does."""
        return self._authorizer

    def guard(
        self,
        *,
        authorizer: Authorizer | None = None,
        read_authorizer: Authorizer | None = None,
        source: AuthorizerSource = "configured",
    ) -> None:
        """Put guards on a server that has not started; what is None stays as it is.

        For whoever serves a server that somebody else wrote, as the command line does. `source`
        belongs to a given `authorizer`. Raises ConfigurationError.
        """
        if source not in ("configured", "default"):
            raise ConfigurationError(
                f"authorizer_source must be 'configured' or 'default', got: {source!r}"
            )
        _check_callable("authorizer", authorizer)
        _check_callable("read_authorizer", read_authorizer)
        self._check_not_started()
        if authorizer is not None:
            self._authorizer, self._authorizer_source = authorizer, source
        if read_authorizer is not None:
            self._read_authorizer = read_authorizer
        callbacks = Callbacks(self._runtime, self.breakers, self._process_pool)
        self._tools = Tools(
            self.registry,
            self._runtime,
            callbacks,
            authorizer=self._authorizer,
            unknown_tool_replies=self._unknown_tool_replies,
        )
        self._surface = Surface(
            self.registry,
            self._runtime,
            callbacks,
            authorizer=self._authorizer,
            read_authorizer=self._read_authorizer,
            page_size=self._page_size,
        )
        self._surface.lens = self._lens

    def bound(self, limits: Limits) -> None:
        """Give a server that has not started other limits. Raises ConfigurationError."""
        self._check_not_started()
        self.limits = limits
        self._runtime.core = self._core(limits)

    def authorization_configured(self) -> bool:
        """Whether somebody *chose* the authorizer; False once the server has stopped.

        Deliberately not `authorizer is not None`: a fallback that a framework put in, however
        strict, must not satisfy a gate whose point is that somebody decided.
        """
        return (
            not self._stopped
            and self._authorizer is not None
            and self._authorizer_source == "configured"
        )

    def read_authorization_configured(self) -> bool:
        """Whether there is a read authorizer; False once the server has stopped."""
        return not self._stopped and self._read_authorizer is not None

    def refusals(self) -> list[str]:
        """Say why this server would refuse to start; empty when it would start."""
        if self._authorizer is not None:
            return []
        guilty = [tool.name for tool in self.registry.static_tools() if tool.sensitive]
        if not guilty:
            return []
        return [
            f"{len(guilty)} tool(s) are annotated sensitive or destructive but no authorizer is "
            f"configured: {', '.join(guilty)}. Pass authorizer= (allow_all() opts out, explicitly)."
        ]

    def refusals_for_network(self, *, required: bool | None = None) -> list[str]:
        """Say why a network transport must not serve this server; empty when it may.

        Both seams must have been chosen where authorization is required (`server/deployment.py`,
        which reads the environment now). `required` overrides that.
        """
        from raxol_mcp.server.deployment import enforce_authorization, enforce_read_authorization

        # Not `authorization_configured()`: that a server has stopped is no reason against
        # starting it again.
        chosen = self._authorizer is not None and self._authorizer_source == "configured"
        refusals = self.refusals()
        for enforce, configured in (
            (enforce_authorization, chosen),
            (enforce_read_authorization, self._read_authorizer is not None),
        ):
            try:
                enforce(configured, required=required)
            except ConfigurationError as error:
                refusals.append(str(error))
        return refusals

    # -- life ---------------------------------------------------------------------------------

    async def start(self) -> None:
        """Check the guards and enter the lifespan. Every transport calls it; the first counts.

        Raises ConfigurationError with every reason why the server refuses to start.
        """
        refusals = self.refusals()
        if refusals:
            raise ConfigurationError("the server refuses to start: " + " ".join(refusals))
        async with self._changing:  # who comes while it is starting waits for that
            self._serving += 1
            if self._serving == 1:
                began = False
                try:
                    await self._begin()
                    began = True
                finally:
                    if not began:
                        self._serving = 0

    async def _begin(self) -> None:
        _ = self._runtime.loop
        if self._lifespan is not None:
            lifespan = self._lifespan(self)
            self._tools.lifespan = self._surface.lifespan = await lifespan.__aenter__()
            self._lifespan_exit = lifespan
        self._stopped = False

    async def stop(self, *, within: float = STOP_WITHIN) -> None:
        """End every call, close what `start` opened; the last transport's stop counts.

        Bounded: a thread whose function does not return is abandoned after `within` seconds.
        Called by a callback, it ends that one's own call as well, unanswered like the others.
        """
        if self._runtime.is_worker(asyncio.current_task()):
            # Of its own: it cancels the callback, which must not interrupt it half way.
            self._stopping = asyncio.create_task(self._stop_beside(within))
            await asyncio.shield(self._stopping)
        else:
            await self._stop(within)

    async def _stop_beside(self, within: float) -> None:
        try:
            await self._stop(within)
        except Exception:  # of the lifespan: nobody is left who could be told
            _logger.exception("the server did not stop in order")

    async def _stop(self, within: float) -> None:
        async with self._changing:
            if self._serving > 1:
                self._serving -= 1
            else:
                self._serving = 0
                self._stopped = True
                await self._end(within)

    async def _end(self, within: float) -> None:
        left = await self._runtime.stop(within=within)
        if left:
            _logger.warning("%d callback(s) did not end and were abandoned", left)
        if self._processes is not None:
            await self._processes.close()
            self._processes = None
        if self._lifespan_exit is not None:
            closing, self._lifespan_exit = self._lifespan_exit, None
            await closing.__aexit__(None, None, None)

    async def __aenter__(self) -> Server:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    # -- inside -------------------------------------------------------------------------------

    def _core(self, limits: Limits) -> ServerCore:
        return ServerCore(
            limits,
            identity=self._identity,
            seal=self._seal,
            new_id=_new_id,
            wall_offset=time.time() - time.monotonic(),
        )

    def _check_not_started(self) -> None:
        if self._serving or self.stats()["connections"]:
            raise ConfigurationError("the server has started: guard and bound it before")

    def _execute(self, call: Call, job: Job) -> Coroutine[object, object, Outcome]:
        return self._tools.call(call, job) if call.method.is_tool else self._surface.read(call)

    def _process_pool(self) -> Processes:
        if self._processes is None:
            from raxol_mcp.server.processes import Processes

            modules = {
                tool.callback.__module__
                for tool in self.registry.tools()
                if tool.isolation == "process"
            }
            self._processes = Processes(
                self.limits.max_in_flight,
                ["raxol_mcp.server.process_entry", *sorted(modules)],
                max_result_bytes=self.limits.max_result_bytes,
            )
        return self._processes

    def _registry_changed(self, kind: Kind, action: str, names: tuple[str, ...]) -> None:
        if kind is Kind.TOOLS:
            self._tools.forget(names)
        if action == "unregister":
            for name in names:
                self.breakers.forget((kind.value, name))
        # From whatever thread registers, and once per turn however much was registered.
        self.list_changed(kind)


def _check_callable(option: str, value: object) -> None:
    if value is not None and not callable(value):
        raise ConfigurationError(f"{option} must be callable, got: {value!r}")


def _new_id() -> str:
    return urlsafe_b64encode(os.urandom(12)).decode()


def _state_key(given: bytes | None) -> bytes:
    if given is None:
        named = os.environ.get(STATE_KEY)
        given = None if named is None else named.encode()
    if given is None:
        return os.urandom(32)
    if not isinstance(given, bytes):
        raise ConfigurationError(f"state_key must be bytes, got a {type(given).__name__}")
    if len(given) < 32:
        raise ConfigurationError(f"the state key ({STATE_KEY}) must have at least 32 bytes")
    import hashlib  # not at the top: a millisecond at every start, for those who give a key

    return hashlib.sha256(given).digest()
