"""One attempt to connect to one server over HTTP: every message a POST, every POST a task.

There is no connection to speak of. `open` checks where the server is and sends nothing (but for
HTTP+SSE of 2024-11-05, which begins with a stream); the first message that is sent shows whether
anybody is there. So a link is not lost when a request fails: that request failed.

What a key stands for is in the table of exchanges from `send` until its end was reported. A task
that finds its key gone has nothing to report. Tasks live on a little after the end, to leave their
connections in order for the next request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from raxol_mcp.errors import Reason
from raxol_mcp.transports.http_client.addresses import vetted
from raxol_mcp.transports.http_client.backlog import Backlog
from raxol_mcp.transports.http_client.channel import Channel
from raxol_mcp.transports.http_client.exchange import Exchange
from raxol_mcp.transports.http_client.listening import Listening
from raxol_mcp.transports.http_client.reading import Reader, unreadable
from raxol_mcp.transports.http_client.reasons import Broken
from raxol_mcp.transports.http_client.request_headers import JSON, header_problem, message_headers
from raxol_mcp.transports.http_client.session import Session
from raxol_mcp.transports.http_client.target import parse_target
from raxol_mcp.transports.http_client.two_endpoints import EndpointStream
from raxol_mcp.transports.link import Dialect, LinkFailed
from raxol_mcp.wire.jsonrpc import (
    Failure,
    Ignored,
    Notification,
    Request,
    Response,
    UnencodableResult,
    encode,
)
from raxol_mcp.wire.replies import UnreadableReply

if TYPE_CHECKING:
    from raxol_mcp.transports.http_client.options import Options
    from raxol_mcp.transports.link import LinkPort
    from raxol_mcp.wire.headers import Mirror
    from raxol_mcp.wire.jsonrpc import JSONObject, Message, Outgoing, RequestId
    from raxol_mcp.wire.meta import EraName

__all__ = ["HttpLink"]

# Seconds that the end of a session may take. The peer forgets it in time anyway.
_DELETE_TIMEOUT: Final = 1.0
# Seconds for a POST whose answer came on another stream to end in order.
_GRACE: Final = 1.0
# Seconds that a greeting waits for the session's stream. It is used without, too.
_STREAM_TIMEOUT: Final = 1.0
_INITIALIZED: Final = "notifications/initialized"

_logger: Final = logging.getLogger("raxol_mcp.client.http")


class _Sending:
    """One key that is not over: what it is for, and the task that carries it."""

    __slots__ = ("is_request", "key", "method", "task")

    def __init__(self, message: Outgoing, key: int) -> None:
        self.key = key
        self.is_request = isinstance(message, Request)
        self.method = _named(message)
        self.task: asyncio.Task[None] | None = None


class HttpLink:
    """See `raxol_mcp.transports.link.Link`."""

    def __init__(self, port: LinkPort, url: str, options: Options, dialect: Dialect) -> None:
        self.channel: Channel
        self.session = Session()
        self.reader = Reader(
            max_message_bytes=options.max_message_bytes, max_depth=options.max_depth
        )
        self.post_resource: str | None = None
        self._answers = Backlog()
        self._notices = Backlog()
        self._port = port
        self._url = url
        self._options = options
        self._dialect = dialect
        self._opened = False
        self._over = False  # nothing is reported any more
        self._closed = False
        self._sending: dict[int, _Sending] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._listening: asyncio.Task[None] | None = None
        self._heard_by: Listening | None = None
        self._initialized = False
        self._hears = True

    async def open(self) -> None:
        """Make ready to send. Raises `LinkFailed`. Cancelled, or failed, it leaves nothing."""
        agent = {"User-Agent": self._options.user_agent}
        problem = header_problem({**self._options.headers, **agent})
        if problem is not None:
            raise LinkFailed(Reason("encode_failed", "headers", text=problem))
        allow_private = self._options.allow_private
        target = parse_target(self._url, allow_private=allow_private)
        if target is None:
            raise LinkFailed(Reason("blocked", "invalid_url"))
        addresses = await vetted(
            target, resolver=self._options.resolver, allow_private=allow_private
        )
        from raxol_mcp.transports.http_client.connections import Connections

        connections = Connections(
            target,
            addresses,
            connect_timeout=self._options.connect_timeout,
            ssl_context=self._options.ssl_context,
        )
        self.channel = Channel(target, connections, self._options)
        if self._dialect is Dialect.TWO_ENDPOINTS:
            stream = EndpointStream(self)
            try:
                self.post_resource = await stream.open()
            except BaseException:
                await connections.close()
                raise
            self._start(self._run_stream(stream))
        self._opened = True

    def send(self, message: Outgoing, key: int, *, mirrors: Sequence[Mirror] = ()) -> None:
        """Send one message. Never waits and never reports from inside the call."""
        if self._over:
            return
        sending = self._sending[key] = _Sending(message, key)
        sending.task = self._start(self._work(message, key, mirrors))
        if isinstance(message, Response | Failure):
            self._answers.add(sending.task)

    def agreed(self, era: EraName, version: str) -> None:
        """Know what was negotiated; told again after every handshake."""
        self.session.agreed(era, version)
        self.reader.batches = self.session.batches
        self._listen()

    def abort(self, key: int) -> None:
        """Stop what goes on for `key`: nobody waits for it any more."""
        sending = self._sending.pop(key, None)
        if sending is not None and sending.task is not None:
            sending.task.cancel()

    async def close(self) -> None:
        """Release everything, within a bound of the link's own. Raises nothing. Again: nothing."""
        if self._closed:
            return
        self._closed = self._over = True
        self._sending.clear()
        try:
            await self._cancel_all()
            if self._opened and self.session.id is not None and self.session.streamable:
                await self._end_session()
        finally:
            if self._opened:
                await self.channel.close()

    def received(self, key: int, message: Message) -> None:
        """See `Owner`."""
        if key in self._sending:
            self._port.received(message, about=key)

    def answered(self, key: int, message: Response | Failure) -> None:
        """See `Owner`."""
        if self._sending.pop(key, None) is not None:
            self._port.received(message, about=key)

    def sent(self, key: int) -> None:
        """See `Owner`."""
        sending = self._sending.pop(key, None)
        if sending is None:
            return
        if sending.method == _INITIALIZED:
            self._initialized = True
            self._listen()
            if self._heard_by is not None:
                self._start(self._introduce(key, self._heard_by.begun))
                return
        self._port.sent(key)

    async def _introduce(self, key: int, begun: asyncio.Event) -> None:
        """Report the end of the greeting when the session's stream is there, or not to be had.

        Servers put questions on it that belong to a call, and drop them when it is not there yet.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(_STREAM_TIMEOUT):
                await begun.wait()
        if not self._over:
            self._port.sent(key)

    def failed(self, key: int, reason: Reason) -> None:
        """See `Owner`."""
        if self._sending.pop(key, None) is not None:
            self._port.failed(key, reason)

    async def room(self) -> None:
        """See `Owner`."""
        await self._answers.room()

    def hears(self, hears: bool) -> None:
        """See `Listener`."""
        if not self._over and hears is not self._hears:
            self._hears = hears
            self._port.hears(hears)

    def missed(self) -> None:
        """See `Listener`."""
        if not self._over:
            self._port.missed()

    def noticed(self, event: str, fields: JSONObject) -> None:
        """See `Owner`."""
        if not self._over:
            self._port.noticed(event, fields)

    def heard(self, message: Message | UnreadableReply) -> None:
        """Take a message that came on a stream of its own: see `Listener`.

        The old transport answers there, and so do servers that lost the stream of a request.
        """
        if self._over:
            return
        if isinstance(message, UnreadableReply):
            self._heard_unreadable(message)
            return
        if isinstance(message, Response | Failure):
            sending = self._request(message.id)
            if sending is not None:
                del self._sending[sending.key]
                if sending.task is not None and not sending.task.done():
                    asyncio.get_running_loop().call_later(_GRACE, sending.task.cancel)
        self._port.received(message)

    def _heard_unreadable(self, message: UnreadableReply) -> None:
        sending = self._request(message.id)
        if sending is None:
            self._port.received(Ignored("an answer that cannot be read"))
            return
        self.abort(sending.key)
        reason = unreadable(sending.method, message.why).reason
        self._port.failed(sending.key, reason)

    def _request(self, id: RequestId | None) -> _Sending | None:
        """Find what waits for an answer with this id. Messages without an id have keys as well."""
        sending = self._sending.get(id) if type(id) is int else None
        return sending if sending is not None and sending.is_request else None

    def _work(
        self, message: Outgoing, key: int, mirrors: Sequence[Mirror]
    ) -> Coroutine[object, object, None]:
        """Encode a message at once, before anybody changes what is in it; give what sends it."""
        if not self._opened:
            return self._refuse(key, Reason("not_connected"))
        if isinstance(message, Request) and message.method == "initialize":
            self._begin_session()
        try:
            headers = message_headers(message, self.session, mirrors)
            body = encode(message)
        except (UnencodableResult, ValueError, RecursionError):
            return self._refuse(key, Reason("encode_failed", _named(message)))
        exchange = Exchange(message, key, headers=headers, body=body, owner=self)
        if isinstance(message, Request):
            return exchange.run()
        waiting = self._notices if isinstance(message, Notification) else self._answers
        return waiting.run(exchange)

    async def _refuse(self, key: int, reason: Reason) -> None:
        self.failed(key, reason)

    def _begin_session(self) -> None:
        self.session.begin()
        self.reader.batches = False
        self._initialized = False
        self.hears(self.post_resource is not None)
        if self._listening is not None:
            self._listening.cancel()
            self._listening = self._heard_by = None

    def _listen(self) -> None:
        """Open the stream of the session, once the peer knows that the session has begun."""
        may = self._options.listen and self.post_resource is None and self._opened
        if may and self._initialized and self.session.streamable and self._listening is None:
            self._heard_by = Listening(self, self.session.headers())
            self._listening = self._start(self._run_listening(self._heard_by))

    async def _run_listening(self, listening: Listening) -> None:
        try:
            await listening.run()
        except Exception as error:  # the edge of a task that nobody waits for
            _logger.error("a stream ended with %s: please report it", type(error).__qualname__)

    async def _run_stream(self, stream: EndpointStream) -> None:
        try:
            reason = await stream.run()
        except Exception as error:  # the edge of a task that nobody waits for
            reason = Reason("task_down", type(error).__qualname__)
        finally:
            stream.close()
        self._lose(reason)

    def _lose(self, reason: Reason) -> None:
        if not self._over:
            self._over = True
            for sending in self._sending.values():
                if sending.task is not None:
                    sending.task.cancel()
            self._sending.clear()
            self._port.lost(reason)

    async def _end_session(self) -> None:
        with suppress(Broken, TimeoutError):
            async with asyncio.timeout(_DELETE_TIMEOUT):
                headers = self.session.headers()
                answer = await self.channel.request("DELETE", headers, accept=JSON, judged=False)
                answer.close()

    async def _cancel_all(self) -> None:
        tasks = self._tasks - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _named(message: Outgoing) -> str:
    """Return the method of a message, or what else it is."""
    return message.method if isinstance(message, Request | Notification) else "answer"
