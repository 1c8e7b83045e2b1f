"""What a client keeps in order by itself: its lists, its subscriptions, the level of the log.

Told by the session what happens to it (`raxol_mcp.client.user.News`), and decides nothing about
that: a new session knows nothing of the one before, so everything is said to it again.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, TypeVar

from raxol_mcp.client.lists import Lists
from raxol_mcp.client.subscriptions import Subscriptions
from raxol_mcp.errors import ConfigurationError, RaxolError
from raxol_mcp.wire.meta import LOG_LEVELS

if TYPE_CHECKING:
    from collections.abc import Callable

    from raxol_mcp.client.catalogue import Listing
    from raxol_mcp.client.requests import Requests
    from raxol_mcp.client.results import Change
    from raxol_mcp.wire.jsonrpc import JSONObject

__all__ = ["Upkeep"]

T = TypeVar("T")

_logger = logging.getLogger("raxol_mcp.client")


class Upkeep:
    """The lists and subscriptions of the client `name`. `changed` is told what has changed."""

    def __init__(
        self,
        name: str,
        requests: Requests,
        *,
        mirrors: Callable[[], bool],
        changed: Callable[[Change], None],
    ) -> None:
        self.lists = Lists(name, now=requests.now, mirrors=mirrors, mask=requests.mask)
        self.subscriptions = Subscriptions(requests, self._changed)
        self._name = name
        self._requests = requests
        self._tell = changed
        self._log_level: str | None = None

    async def read(self, listing: Listing[T], timeout: float | None, *, refresh: bool) -> list[T]:
        """Give a list, from memory while it is good; what is kept is kept up to date."""
        found = await self._requests.list(listing, timeout=timeout, refresh=refresh)
        if listing.is_fresh() and self._requests.announces(listing.kind):
            self.subscriptions.watch(listing.kind)
        return found

    async def set_log_level(self, level: str) -> None:
        """Have the server log from `level` on, in this session and those after it."""
        if level not in LOG_LEVELS:
            raise ConfigurationError(f"a log level is one of {', '.join(LOG_LEVELS)}")
        self._log_level = level
        self._requests.log_from(level)
        if not self._requests.is_stateless:
            await self._requests.send("logging/setLevel", {"level": level})

    def begun(self) -> None:
        """Begin anew with a session, perhaps not the first."""
        self.lists.forget()
        self.subscriptions.renewed()
        if self._log_level is not None and not self._requests.is_stateless:
            self._requests.spawn(self._set_again(self._log_level), "set the log level again")

    async def _set_again(self, level: str) -> None:
        try:
            await self._requests.send("logging/setLevel", {"level": level})
        except RaxolError as error:
            _logger.warning("%s: the log level could not be set again: %s", self._name, error)

    def notified(self, method: str, params: JSONObject) -> None:
        """Take a notification of the server."""
        self.subscriptions.notified(method, params)

    def acknowledged(self) -> None:
        """Know that a subscription is in force."""
        self.subscriptions.acknowledged()

    def missed(self) -> None:
        """Know that notifications may not have come."""
        self.subscriptions.missed()

    def _changed(self, change: Change) -> None:
        self.lists.changed(change.kind)
        self._tell(change)
