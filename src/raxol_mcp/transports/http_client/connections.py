"""Requests over TCP and TLS to the checked addresses of one server. The only user of aiohttp.

Knows nothing of MCP. A request is sent once: aiohttp repeats a GET or a DELETE, and no POST, that
a kept connection lost before the first byte of the answer. So a kept connection is looked at
before it is used again: one that the peer has closed carries nothing (`kept`). No redirect is
followed, no proxy asked, no cookie kept, nothing inflated; a certificate is checked against the
name in the URL.

Errors of aiohttp quote URLs, headers and peers. They end here, as a `Reason` with a tag.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from errno import ECONNREFUSED, ECONNRESET, EPIPE
from functools import cache
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from raxol_mcp.errors import Reason
from raxol_mcp.transports.http_client.addresses import MAX_ADDRESSES
from raxol_mcp.transports.http_client.kept import careful_connector
from raxol_mcp.transports.http_client.reasons import Broken, broken

if TYPE_CHECKING:
    from collections.abc import Callable
    from socket import socket
    from ssl import SSLContext

    from aiohttp import AddrInfoType, ClientResponse, ClientResponseError
    from aiohttp.abc import AbstractResolver, AbstractStreamWriter, ResolveResult
    from aiohttp.payload import Payload

    from raxol_mcp.transports.http_client.target import Target

__all__ = ["MAX_HEADERS", "MAX_HEADER_BYTES", "Answer", "Connections"]

MAX_HEADERS: Final = 128  # of one answer
MAX_HEADER_BYTES: Final = 8190  # of one line of them

# Below the 5 seconds after which common servers close a kept connection: a request that is sent
# into such a closing is lost, and nobody may repeat it.
_KEEP_ALIVE: Final = 4.0
# How long an address may take before the next is tried beside it (RFC 8305 §8).
_NEXT_ADDRESS_AFTER: Final = 0.25
# A peer that says nothing is asked after a minute, and given up after another.
_PROBES: Final = {"TCP_KEEPIDLE": 60, "TCP_KEEPALIVE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}
_WRITE_BYTES: Final = 64 * 1024


class Answer:
    """The head of an answer, and its body as it comes. Close it, read to its end or not."""

    __slots__ = ("_closed", "_response", "headers", "status")

    def __init__(self, response: ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self._closed = self._watch()

    def all(self, name: str) -> list[str]:
        """Give every value of a header, in order."""
        return self._response.headers.getall(name, [])

    @property
    def content_type(self) -> str:
        """The media type in lower case, without parameters; "" without one."""
        return self.headers.get("Content-Type", "").partition(";")[0].strip().lower()

    async def read(self, silence: float | None = None) -> bytes:
        """Wait for the next bytes of the body; `b""` is its end. Raises `Broken`.

        `silence` is how long they may take, in seconds.
        """
        try:
            async with asyncio.timeout(silence):
                return await self._response.content.readany()
        except Exception as error:  # the edge to aiohttp; what is not about the network is below
            raise Broken(_reason(error, maybe_done=True)) from None

    def close(self) -> None:
        """Let go of the connection: for the next request if the body was read, else for good."""
        if self._closed is not None:
            self._closed.remove_done_callback(self._connection_lost)
        connection = self._response.connection
        if connection is not None and connection.transport is not None:
            # Not `close`, which waits for the peer to take what is left and to say goodbye.
            connection.transport.abort()
        self._response.close()

    def _watch(self) -> asyncio.Future[None] | None:
        """Have the body end with its connection.

        aiohttp forgets whom to tell when a chunk is malformed: whoever waits for the rest of that
        body waits for ever.
        """
        connection = self._response.connection
        if connection is None or connection.protocol is None:
            return None  # the body is complete
        closed = connection.protocol.closed
        if closed is None:
            self._connection_lost()
            return None
        closed.add_done_callback(self._connection_lost)
        # Its error has to be looked at by somebody, however often the connection is used.
        closed.remove_done_callback(_looked_at)
        closed.add_done_callback(_looked_at)
        return closed

    def _connection_lost(self, _closed: asyncio.Future[None] | None = None) -> None:
        from aiohttp import ClientPayloadError

        content = self._response.content
        if not content.is_eof() and content.exception() is None:
            content.set_exception(ClientPayloadError())


def _looked_at(closed: asyncio.Future[None]) -> None:
    if not closed.cancelled():
        closed.exception()


class Connections:
    """The connections of one link: kept for some seconds, and only to `addresses`.

    They are tried in their order, one family after the other, each a little after the one before
    it. `connect_timeout` bounds all of that, TLS included. `ssl_context` replaces the trust of the
    system. Make it inside the running loop.
    """

    def __init__(
        self,
        target: Target,
        addresses: Sequence[str],
        *,
        connect_timeout: float,
        ssl_context: SSLContext | None = None,
    ) -> None:
        from aiohttp import ClientSession, DummyCookieJar

        self._connect_timeout = connect_timeout
        self._transports: WeakSet[asyncio.Transport] = WeakSet()
        connector = careful_connector()(
            resolver=_pinned()(target.host, addresses),
            use_dns_cache=False,
            ssl=True if ssl_context is None else ssl_context,
            keepalive_timeout=_KEEP_ALIVE,
            limit=0,  # the client bounds what is in flight; a second bound would hide a wait
            happy_eyeballs_delay=_NEXT_ADDRESS_AFTER,
            # As many as there can be of one family, so that all are tried in one round: aiohttp
            # goes on with those it has not tried, which with less would be most of them again.
            interleave=MAX_ADDRESSES,
            socket_factory=_socket,
        )
        self._session = ClientSession(
            connector=connector,
            cookie_jar=DummyCookieJar(),
            trust_env=False,
            auto_decompress=False,
            max_line_size=MAX_HEADER_BYTES,
            max_field_size=MAX_HEADER_BYTES,
            max_headers=MAX_HEADERS,
        )

    async def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
    ) -> Answer:
        """Send one request and wait for the head of its answer. Raises `Broken`.

        However long that takes: a tool may work in silence. A task that is cancelled while it
        waits here takes the connection with it.
        """
        from aiohttp import ClientTimeout
        from yarl import URL

        writing: list[asyncio.Transport] = []

        def written_to(transport: asyncio.Transport) -> None:
            writing.append(transport)
            self._remember(transport)

        try:
            response = await self._session.request(
                method,
                URL(url, encoded=True),
                headers=headers,
                data=None if body is None else _body()(body, written_to),
                allow_redirects=False,
                timeout=ClientTimeout(total=None, sock_connect=self._connect_timeout),
            )
        except BaseException as error:
            for transport in writing:
                transport.abort()
            if not isinstance(error, Exception):
                raise
            raise Broken(_reason(error, maybe_done=_was_connected(error))) from None
        connection = response.connection
        if connection is not None and connection.transport is not None:
            self._remember(connection.transport)
        return _checked(Answer(response))

    async def close(self) -> None:
        """Close every connection, at once and for good. Raises nothing."""
        for transport in list(self._transports):
            transport.abort()
        with suppress(Exception):  # the edge to aiohttp; there is nothing left to do about it
            await self._session.close()
        # What was aborted is closed by the loop: TLS in one turn, TCP below it in the next.
        for _ in range(3):
            await asyncio.sleep(0)

    def _remember(self, transport: asyncio.Transport) -> None:
        # aiohttp closes a connection that it keeps no longer in order, which over TLS takes as
        # long as the peer likes, and knows nothing of it any more.
        with suppress(TypeError):  # of a loop whose transports nobody may refer to weakly
            self._transports.add(transport)


def _socket(address: AddrInfoType) -> socket:
    """Make a socket that finds out that its peer is gone, though nothing is said for hours.

    A stream of events is silent while nothing happens. Without this, one whose peer lost its power
    is silent for ever.
    """
    import socket

    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _PROBES.items():
        option: int | None = getattr(socket, name, None)  # not every system has all of them
        if option is not None:
            made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made


def _checked(answer: Answer) -> Answer:
    if answer.headers.get("Content-Encoding", "identity").strip().lower() not in ("identity", ""):
        answer.close()
        raise broken("content_encoding")
    if len(set(answer.all("Content-Length"))) > 1:
        # One of aiohttp's two parsers takes the first of them.
        answer.close()
        raise broken("invalid_content_length")
    return answer


def _was_connected(error: Exception) -> bool:
    """Say whether the request may have been written when `error` came."""
    from aiohttp import ClientConnectorError, ConnectionTimeoutError, InvalidURL

    return not isinstance(error, ClientConnectorError | ConnectionTimeoutError | InvalidURL)


def _reason(error: Exception, *, maybe_done: bool) -> Reason:
    """Reduce an error to its tag."""
    from aiohttp import ConnectionTimeoutError

    if isinstance(error, ConnectionTimeoutError):
        return Reason("timeout", "connect")
    if isinstance(error, TimeoutError):
        return Reason("timeout", "chunk", maybe_done=maybe_done)
    return Reason("transport", _transport_tag(error), maybe_done=maybe_done)


def _transport_tag(error: Exception) -> str:
    from ssl import SSLError

    from aiohttp import (
        ClientConnectorError,
        ClientPayloadError,
        ClientResponseError,
        ClientSSLError,
        ServerDisconnectedError,
    )
    from aiohttp.http_exceptions import HttpProcessingError

    if isinstance(error, ClientSSLError | SSLError):
        return "tls"
    if isinstance(error, ClientConnectorError):
        return _connect_tag(error.os_error)
    if isinstance(error, ClientPayloadError):
        return "incomplete"
    if isinstance(error, ClientResponseError):
        return _head_tag(error)
    if isinstance(error, HttpProcessingError):
        return "malformed"
    if isinstance(error, ServerDisconnectedError):
        return "closed"
    if isinstance(error, OSError) and error.errno in (ECONNRESET, EPIPE):
        return "reset"
    return "closed" if isinstance(error, OSError) else "failed"


def _connect_tag(error: OSError) -> str:
    if isinstance(error, ConnectionRefusedError) or error.errno == ECONNREFUSED:
        return "refused"
    return "reset" if isinstance(error, ConnectionResetError) else "unreachable"


def _head_tag(error: ClientResponseError) -> str:
    """Name what is wrong with the head of an answer, or with how its body is framed."""
    from aiohttp.http_exceptions import BadStatusLine, LineTooLong

    cause = error.__cause__
    while cause is not None and cause.__cause__ is not None:
        cause = cause.__cause__
    # The parser's own words stand on the first line, and what the peer wrote on the next.
    said = error.message.strip().partition("\n")[0].lower()
    if "content-length" in said:
        return "invalid_content_length"
    if isinstance(cause, LineTooLong) or "too many headers" in said:
        return "headers_too_large"
    return "no_status" if isinstance(cause, BadStatusLine) else "malformed"


@cache
def _pinned() -> Callable[[str, Sequence[str]], AbstractResolver]:
    """Make the class of a resolver that knows one name; its base is imported late."""
    from socket import AF_INET, AF_INET6, AddressFamily

    from aiohttp.abc import AbstractResolver

    class Pinned(AbstractResolver):
        def __init__(self, host: str, addresses: Sequence[str]) -> None:
            self._host = host
            self._addresses = tuple(addresses)

        async def resolve(
            self, host: str, port: int = 0, family: AddressFamily = AF_INET
        ) -> list[ResolveResult]:
            if host != self._host:
                raise OSError("this link has one host")
            return [
                {
                    "hostname": host,
                    "host": address,
                    "port": port,
                    "family": AF_INET6 if ":" in address else AF_INET,
                    "proto": 0,
                    "flags": 0,
                }
                for address in self._addresses
            ]

        async def close(self) -> None:
            pass

    return Pinned


@cache
def _body() -> Callable[[bytes, Callable[[asyncio.Transport], None]], Payload]:
    """Make the class of a body that is written in pieces; its base is imported late.

    aiohttp's own for bytes warns about long ones, and hands them over in one piece.
    """
    from aiohttp.payload import Payload

    class Body(Payload):
        def __init__(self, body: bytes, written_to: Callable[[asyncio.Transport], None]) -> None:
            super().__init__(body, content_type="application/json")
            self._size = len(body)
            self._body = body
            self._written_to = written_to

        def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
            return self._body.decode(encoding, errors)

        async def write(self, writer: AbstractStreamWriter) -> None:
            transport: asyncio.Transport | None = getattr(writer, "transport", None)
            if transport is not None:
                self._written_to(transport)
            for start in range(0, len(self._body), _WRITE_BYTES):
                await writer.write(self._body[start : start + _WRITE_BYTES])

    return Body
