"""Which kept connection may be used again. Sends and reads nothing.

A server may close a kept connection at any moment. What is written into it then is lost, and
whether it was lost nobody can tell, so nobody may send it again (RFC 9110 §9.2.2). A close that
has arrived can be seen: such a connection is dropped and another one taken. Nothing was sent, so
that is no second attempt.

Some servers close after every answer and do not say so. Their close arrives a moment after the
answer, which may be a moment too late. So until a connection has carried more than one answer, a
kept one is given that moment.
"""

from __future__ import annotations

import asyncio
import select
from functools import cache, cached_property
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import ClientRequest, ClientTimeout, TCPConnector
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace

__all__ = ["careful_connector", "is_quiet"]

_MOMENT: Final = 0.01  # seconds that a close may come after the answer it belongs to


def is_quiet(transport: asyncio.BaseTransport) -> bool:
    """Say whether nothing has arrived on a connection that waits for nothing: no byte, no end."""
    socket = transport.get_extra_info("socket")
    if transport.is_closing() or socket is None or socket.fileno() < 0:
        return False
    if not hasattr(select, "poll"):  # Windows, where every descriptor may be selected
        return not select.select([socket], [], [], 0)[0]
    look = select.poll()
    look.register(socket, select.POLLIN)  # an error and a hang-up show as well
    return not look.poll(0)


@cache
def careful_connector() -> Callable[..., TCPConnector]:
    """Make the class of a connector that looks before it gives; its base is imported late."""
    from aiohttp import TCPConnector

    class CarefulConnector(TCPConnector):
        @cached_property
        def _uses(self) -> _Uses:
            return _Uses()

        async def connect(
            self,
            req: ClientRequest,
            traces: list[Trace],
            timeout: ClientTimeout,  # noqa: ASYNC109  # it is aiohttp's
        ) -> Connection:
            while True:
                connection = await super().connect(req, traces, timeout)
                try:
                    if await self._uses.may_carry(connection):
                        return connection
                except BaseException:
                    connection.close()
                    raise
                connection.close()

    return CarefulConnector


class _Uses:
    """How often each connection of one link was given."""

    __slots__ = ("_given", "_keeps")

    def __init__(self) -> None:
        self._given: WeakKeyDictionary[asyncio.BaseProtocol, int] = WeakKeyDictionary()
        self._keeps = False  # whether the peer is known to keep its connections

    async def may_carry(self, connection: Connection) -> bool:
        """Say whether a connection may carry one more request, and count that.

        A new one may, whatever has become of it: to dial again without an end is no answer.
        """
        protocol = connection.protocol
        assert protocol is not None, "it has just been given"
        given = self._given.get(protocol, 0)
        if given:
            self._keeps = self._keeps or given > 1
            if not self._keeps:
                await asyncio.sleep(_MOMENT)
            if protocol.should_close:  # what nobody asked for was read already
                return False
            if connection.transport is None or not is_quiet(connection.transport):
                return False
        self._given[protocol] = given + 1
        return True
