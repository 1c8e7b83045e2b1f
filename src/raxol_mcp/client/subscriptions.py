"""What a client wants to be told of, kept up over sessions, eras and lost streams.

Not the notifications themselves. A handshake server announces changed lists unasked and single
resources on request (`resources/subscribe`); a stateless one tells whoever listens, by one
`subscriptions/listen` that names everything the users of this client want together.

Nobody is told of a change twice for one look: what a subscriber has not read yet is held once.
After a new session, or a gap between two listens, everything subscribed to counts as changed,
because nobody can know what was missed.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Final

from raxol_mcp.client.redaction import escaped
from raxol_mcp.client.results import Change
from raxol_mcp.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Busy,
    ConfigurationError,
    NotReady,
    RaxolError,
    RemoteProtocolError,
)

if TYPE_CHECKING:
    from raxol_mcp.client.requests import Requests
    from raxol_mcp.wire.jsonrpc import JSONObject

__all__ = ["MAX_URIS", "Subscription", "Subscriptions"]

MAX_URIS: Final = 1_024
_FIRST_RETRY: Final = 1.0
_LONGEST_RETRY: Final = 60.0
# Asked again in this session, the server would say the same.
_FINAL: Final = frozenset({INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND})
_MEMBERS: Final = {
    "tools": "toolsListChanged",
    "prompts": "promptsListChanged",
    "resources": "resourcesListChanged",
}
_LISTS: Final = {
    "notifications/tools/list_changed": Change("tools"),
    "notifications/prompts/list_changed": Change("prompts"),
    "notifications/resources/list_changed": Change("resources"),
}

_logger = logging.getLogger("raxol_mcp.client")


class Subscription:
    """Changes of one server, for one reader: an async context manager and an async iterator.

    Iterating gives a `Change` as soon as there is one; the order is that in which they came. It
    ends when the client stops. Leaving the context unsubscribes.
    """

    def __init__(self, owner: Subscriptions, wanted: frozenset[Change]) -> None:
        self.wanted = wanted
        self._owner = owner
        self._pending: dict[Change, None] = {}
        self._arrived = asyncio.Event()
        self._ended = False

    async def __aenter__(self) -> Subscription:
        await self._owner.add(self)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end()
        await self._owner.remove(self)

    def __aiter__(self) -> AsyncIterator[Change]:
        return self

    async def __anext__(self) -> Change:
        while not self._pending:
            if self._ended:
                raise StopAsyncIteration
            self._arrived.clear()
            await self._arrived.wait()
        change = next(iter(self._pending))
        del self._pending[change]
        return change

    def put(self, change: Change) -> None:
        """Hold `change` for the reader, if it is wanted."""
        if change in self.wanted:
            self._pending[change] = None
            self._arrived.set()

    def end(self) -> None:
        """Nothing more will come."""
        self._ended = True
        self._arrived.set()


class Subscriptions:
    """Every subscription of one client. `changed` is told what has, before any subscriber."""

    def __init__(self, requests: Requests, changed: Callable[[Change], None]) -> None:
        self._requests = requests
        self._changed = changed
        self._subscriptions: dict[Subscription, None] = {}
        self._own: set[Change] = set()
        self._uris: Counter[str] = Counter()
        self._granted: set[str] = set()  # the resources a handshake server has said yes to
        self._listener: asyncio.Task[None] | None = None
        self._listened_to: set[Change] = set()
        self._begun = asyncio.Event()  # the server has said something of the latest listen
        self._refusal: RemoteProtocolError | None = None
        self._in_force: set[Change] = set()  # what the server tells us now
        self._missed: set[Change] = set()  # what it did tell us, and not without a break
        self._stopped = False

    def subscribe(self, *, lists: Iterable[str], uris: Iterable[str]) -> Subscription:
        """Make a subscription; it begins when its context is entered."""
        wanted = {Change(kind) for kind in lists} | {Change("resource", uri) for uri in uris}
        if not wanted:
            raise ConfigurationError("subscribe to something: tools, prompts, resources or uris")
        return Subscription(self, frozenset(wanted))

    async def add(self, subscription: Subscription) -> None:
        """Begin a subscription. Raises what its requests raise; nothing is left then."""
        if self._stopped:
            subscription.end()
            return
        uris = [change.uri for change in subscription.wanted if change.uri is not None]
        if len({*self._uris, *uris}) > MAX_URIS:
            raise ConfigurationError(f"a client subscribes to at most {MAX_URIS} resources")
        asked: list[str] = []
        self._subscriptions[subscription] = None
        self._uris.update(uris)
        try:
            if self._requests.is_stateless:
                self._relisten()
                await self._has_begun()
                if self._refusal is not None:
                    raise self._refusal
            else:
                # Also what somebody else has asked for and has no answer to yet: it may be a no.
                for uri in [uri for uri in uris if uri not in self._granted]:
                    asked.append(uri)
                    await self._ask_for(uri)
        except BaseException:
            gone = self._forget(subscription)
            if self._requests.is_stateless:
                self._relisten()
            else:
                self._give_back([uri for uri in asked if uri in gone])
            raise

    async def _ask_for(self, uri: str) -> None:
        await self._requests.send("resources/subscribe", {"uri": uri})
        if uri in self._uris:
            self._granted.add(uri)

    async def _has_begun(self) -> None:
        """Wait until the server has said something of the latest listen: another may begin."""
        begun = None
        while begun is not self._begun:
            begun = self._begun
            await begun.wait()

    async def remove(self, subscription: Subscription) -> None:
        """End a subscription, as well as that can be done: the peer may be gone."""
        if subscription not in self._subscriptions:
            return
        gone = self._forget(subscription)
        if self._requests.is_stateless:
            self._relisten()
        else:
            await self._unsubscribe(gone)

    def _give_back(self, uris: list[str]) -> None:
        """Unsubscribe what a subscription that could not be entered has asked for."""
        if uris and not self._stopped:
            self._requests.spawn(self._unsubscribe(uris), "unsubscribe")

    async def _unsubscribe(self, uris: list[str]) -> None:
        for uri in uris:
            if uri in self._uris:
                continue  # somebody wants it again
            try:
                await self._requests.send("resources/unsubscribe", {"uri": uri})
            except RemoteProtocolError:
                continue  # of this one it may know nothing
            except RaxolError:
                break  # it tells us a little more than we want to know, that is all

    def _forget(self, subscription: Subscription) -> list[str]:
        """Drop a subscription; return the resources that nobody wants any more."""
        del self._subscriptions[subscription]
        uris = [change.uri for change in subscription.wanted if change.uri is not None]
        self._uris.subtract(uris)
        gone = [uri for uri in uris if self._uris[uri] <= 0]
        for uri in gone:
            del self._uris[uri]
            self._granted.discard(uri)
        return gone

    def watch(self, kind: str) -> None:
        """Have the client itself told of changes of a list, so that it may keep it."""
        change = Change(kind)
        if self._requests.is_stateless and change not in self._own:
            self._own.add(change)
            self._relisten()

    # -- what comes ---------------------------------------------------------------------------

    def notified(self, method: str, params: JSONObject) -> bool:
        """Take a notification; False when it is none of a change."""
        change = _LISTS.get(method)
        if change is None and method == "notifications/resources/updated":
            uri = params.get("uri")
            change = Change("resource", uri) if isinstance(uri, str) else None
        if change is None:
            return False
        self._tell(change)
        return True

    def _tell(self, change: Change) -> None:
        self._changed(change)
        for subscription in self._subscriptions:
            subscription.put(change)

    def missed(self) -> None:
        """Notifications of this session may not have come: all they could tell counts as told."""
        announced = {Change(kind) for kind in _MEMBERS if self._requests.announces(kind)}
        for change in announced | self._all():
            self._tell(change)

    def renewed(self) -> None:
        """There is a new session, which knows nothing of what was subscribed to."""
        self._refusal = None
        self._stop_listening()
        self._missed.clear()
        self._granted.clear()
        for change in self._all():
            self._tell(change)
        if self._requests.is_stateless:
            self._relisten()
        elif self._uris:
            self._requests.spawn(self._subscribe_again(list(self._uris)), "subscribe again")

    async def _subscribe_again(self, uris: list[str]) -> None:
        for uri in uris:
            try:
                await self._subscribe_to(uri)
            except NotReady:
                return  # the session after this one will try again
            except RaxolError:
                continue  # this resource is gone; the others are not

    async def _subscribe_to(self, uri: str) -> None:
        """Subscribe to a resource, once there is room for the request."""
        while uri in self._uris:
            try:
                await self._ask_for(uri)
            except Busy:
                await asyncio.sleep(_FIRST_RETRY)
            else:
                return

    def stop(self) -> None:
        """The client ends: so do the iterators."""
        self._stopped = True
        self._stop_listening()
        for subscription in self._subscriptions:
            subscription.end()

    # -- listening (MCP 2026-07-28 basic/patterns/subscriptions) --------------------------------

    def _all(self) -> set[Change]:
        return self._own | {change for each in self._subscriptions for change in each.wanted}

    def _relisten(self) -> None:
        """Listen to what is wanted now. The old stream ends first: two would tell all twice."""
        wanted = self._all()
        if self._listener is not None and wanted == self._listened_to:
            return
        self._stop_listening()
        self._listened_to = wanted
        self._begun = asyncio.Event()
        if self._refusal is not None and self._refusal.code == METHOD_NOT_FOUND:
            self._begun.set()  # it listens to nothing, whatever is asked for
        elif wanted:
            self._refusal = None
            self._listener = self._requests.spawn(self._listen(wanted, self._begun), "listen")

    def _stop_listening(self) -> None:
        self._broken_off()
        self._begun.set()
        if self._listener is not None:
            self._listener.cancel()
            self._listener = None

    def _broken_off(self) -> None:
        self._missed |= self._in_force
        self._in_force = set()

    async def _listen(self, wanted: set[Change], begun: asyncio.Event) -> None:
        delay = _FIRST_RETRY
        while True:
            try:
                await self._requests.listen({"notifications": _filter(wanted)})
            except NotReady:
                return  # `renewed` begins again
            except RaxolError as error:
                if isinstance(error, RemoteProtocolError) and not self._in_force:
                    self._refusal = error
                    if error.code in _FINAL:
                        # It does not listen to this, and will not in this session.
                        _logger.warning("a subscription is refused: %s", escaped(str(error)))
                        return
                self._missed |= wanted  # the stream was lost, or there was none
            finally:
                begun.set()
            if self._in_force:
                delay = _FIRST_RETRY
            self._broken_off()
            await asyncio.sleep(delay)
            delay = min(delay * 2, _LONGEST_RETRY)

    def acknowledged(self) -> None:
        """The server tells us from here on; what it would have told before is lost."""
        self._in_force = set(self._listened_to)
        self._refusal = None
        self._begun.set()
        for change in self._missed & self._in_force:
            self._tell(change)
        self._missed.clear()


def _filter(wanted: set[Change]) -> JSONObject:
    """Write what is wanted as the params of a listen."""
    found: JSONObject = {
        member: True for kind, member in _MEMBERS.items() if Change(kind) in wanted
    }
    uris = sorted(change.uri for change in wanted if change.uri is not None)
    if uris:
        found["resourceSubscriptions"] = uris
    return found
