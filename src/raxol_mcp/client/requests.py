"""Requests as the parts of a client make them: checked, copied, timed, and read.

Not the decisions about them (`raxol_mcp.core.client`) nor what they mean (`app`, `tool_calls`,
`lists`). Nothing is sent of a value that changes later, or that JSON cannot carry.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Final, TypeVar

from raxol_mcp.client.failures import error_of
from raxol_mcp.client.readers import InvalidResult
from raxol_mcp.core.client_effects import Ended
from raxol_mcp.core.session import SessionState
from raxol_mcp.core.tickets import Ticket
from raxol_mcp.errors import ConfigurationError, Reason, RequestFailed, TimedOut
from raxol_mcp.wire.jsonrpc import UnencodableResult, decode_raw, encode_result
from raxol_mcp.wire.meta import EraName

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping

    import msgspec

    from raxol_mcp.client.catalogue import Listing
    from raxol_mcp.client.runtime import ClientRuntime
    from raxol_mcp.client.spec import ClientSpec
    from raxol_mcp.client.user import ClientUser, OnProgress
    from raxol_mcp.wire.jsonrpc import JSONObject

__all__ = ["Requests"]

T = TypeVar("T")

# Seconds: thirty years. What is more is a mistake, and overflows clocks.
_LONGEST: Final = 1e9


class Requests:
    """Makes the requests of one client. Every method raises what `Client.call_tool` says."""

    def __init__(self, spec: ClientSpec, runtime: ClientRuntime, user: ClientUser) -> None:
        self._spec = spec
        self._runtime = runtime
        self._core = runtime.core
        self._user = user

    @property
    def is_ready(self) -> bool:
        """Whether there is a session."""
        return self._core.session.state is SessionState.READY

    @property
    def is_stateless(self) -> bool:
        """Whether the session is of the stateless era."""
        return self._core.ledger.era is EraName.STATELESS

    def now(self) -> float:
        """Seconds on the client's clock."""
        return self._runtime.now()

    def timeout(self, given: float | None) -> float:
        """Give the timeout to use, in seconds. Raises `ConfigurationError` for one that is none."""
        if given is None:
            return self._spec.call_timeout
        if not 0 < given <= _LONGEST:
            raise ConfigurationError(f"a timeout is a number of seconds above 0, not {given!r:.40}")
        return given

    @staticmethod
    def patience(given: float | None) -> float | None:
        """Give how long to wait, None for ever. Raises `ConfigurationError`."""
        if given is None or given == float("inf"):
            return None
        if not given <= _LONGEST:
            raise ConfigurationError("a timeout is a number of seconds, or None")
        return max(given, 0.0)

    def encoded(self, value: Mapping[str, object]) -> msgspec.Raw:
        """Copy a value that JSON can carry, as it will be sent. Raises `RequestFailed`."""
        try:
            return encode_result(dict(value), max_bytes=self._spec.max_message_bytes)
        except UnencodableResult as error:
            raise RequestFailed(Reason("encode_failed", text=str(error))) from None

    def copied(self, value: Mapping[str, object]) -> JSONObject:
        """Copy a value that JSON can carry, to look into. Raises `RequestFailed`."""
        plain = decode_raw(self.encoded(value))
        assert isinstance(plain, dict), "it was one"
        return plain

    async def send(
        self, method: str, params: Mapping[str, object] | None = None, timeout: float | None = None
    ) -> JSONObject:
        """Make a request; return its result."""
        copied = self.copied(params or {})
        return await self.submit(Ticket(method, copied, timeout=self.timeout(timeout)))

    async def submit(self, ticket: Ticket, progress: OnProgress | None = None) -> JSONObject:
        """Have a ticket settled; return its result."""
        if progress is None:
            return await self._runtime.request(ticket)
        with self._user.following(ticket, progress):
            return await self._runtime.request(ticket)

    async def listen(self, params: JSONObject) -> None:
        """Listen until the server ends it."""
        ticket = Ticket(
            "subscriptions/listen", params, timeout=self._spec.call_timeout, listening=True
        )
        await self._runtime.request(ticket)

    def notify(self, method: str, params: Mapping[str, object] | None) -> None:
        """Tell the server something."""
        if not self.is_ready:
            raise self._runtime.error(*self._core.session.refusal())
        copied = self.copied(params or {})
        self._runtime.perform(self._core.notified(method, copied, self._runtime.now()))

    def read(self, read: Callable[[object], T], result: JSONObject) -> T:
        """Read a result by its kind; `RequestFailed` (`invalid_response`) when it is none."""
        try:
            return read(result)
        except InvalidResult as error:
            text = self._runtime.mask(str(error))
            reason = Reason("invalid_response", error.method, text=text, maybe_done=True)
            raise RequestFailed(reason) from None

    async def list(self, listing: Listing[T], *, timeout: float | None, refresh: bool) -> list[T]:
        """Give a list, from memory while it is good. Never from memory without a session."""
        if not self.is_ready:
            raise self._runtime.error(*self._core.session.refusal())
        fresh = listing.is_fresh() and not self._is_deaf_to(listing.kind)
        if listing.kept is not None and fresh and not refresh:
            return [*listing.kept]
        try:
            found = await listing.read(
                self._page, timeout=self.timeout(timeout), lasting=not self.is_stateless
            )
        except InvalidResult as error:
            text = self._runtime.mask(str(error))
            reason = Reason("invalid_response", error.method, text=text)
            raise RequestFailed(reason) from None
        except TimedOut as error:
            text = f"{listing.method}: no answer within {self.timeout(timeout):g} s"
            raise TimedOut(text, error.reason) from None
        if self._is_deaf_to(listing.kind):
            listing.changed()
        return found

    def _is_deaf_to(self, kind: str) -> bool:
        """Say whether the server would tell of changes of its `kind`, and nobody could hear it.

        Over HTTP that takes a stream, which a server need not have (MCP 2025-11-25
        basic/transports §Listening for Messages from the Server).
        """
        return not self.is_stateless and not self._runtime.hears and self.announces(kind)

    async def _page(self, method: str, params: JSONObject, timeout: float) -> JSONObject:
        if timeout <= 0:
            raise error_of(Ended.TIMED_OUT, Reason("timeout"))
        return await self.submit(Ticket(method, params, timeout=timeout))

    def mask(self, text: str) -> str:
        """Hide the secrets of the spec in a text of the server's."""
        return self._runtime.mask(text)

    def log_from(self, level: str) -> None:
        """Have the requests of a stateless session say from which level on to log."""
        self._core.ledger.log_level = level

    def announces(self, kind: str) -> bool:
        """Say whether the server tells of changes of its `kind`."""
        facts = self._core.ledger.facts
        said = None if facts is None else facts.capabilities.get(kind)
        return isinstance(said, dict) and said.get("listChanged") is True

    def spawn(self, work: Coroutine[object, object, None], what: str) -> asyncio.Task[None]:
        """Run something of the client's beside it, until it stops."""
        return self._runtime.spawn(work, what)
