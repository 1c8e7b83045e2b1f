"""One message on its way: the POST that carries it, and what comes of that.

Knows no other message. Times no answer: whoever waits for it has a timer, and ends the task of the
exchange with it. Only a body that was begun, and is no stream, has to go on. A message is sent
once (a call that runs twice may do its harm twice); what can be asked for again is the stream that
an answer was to come on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Protocol

from raxol_mcp.errors import Reason
from raxol_mcp.transports.http_client.channel import (
    read_refusal,
    refusal_of,
    skip_rest,
    worth_a_retry,
)
from raxol_mcp.transports.http_client.reading import EVENTS_A_TURN, is_about, new_events, unreadable
from raxol_mcp.transports.http_client.reasons import Broken, broken, shown
from raxol_mcp.transports.http_client.request_headers import JSON, SSE
from raxol_mcp.transports.http_client.resumption import Resumption
from raxol_mcp.transports.http_client.session import SESSION_ID
from raxol_mcp.wire.headers import METHOD
from raxol_mcp.wire.jsonrpc import Failure, Ignored, Request, Response
from raxol_mcp.wire.replies import UnreadableReply

if TYPE_CHECKING:
    from raxol_mcp.transports.http_client.channel import Channel
    from raxol_mcp.transports.http_client.connections import Answer
    from raxol_mcp.transports.http_client.reading import Reader
    from raxol_mcp.transports.http_client.session import Session
    from raxol_mcp.wire.framing import TooLong
    from raxol_mcp.wire.jsonrpc import JSONObject, Message, Outgoing
    from raxol_mcp.wire.sse import Event, Events

__all__ = ["Exchange", "Owner"]

_logger: Final = logging.getLogger("raxol_mcp.client.http")

_ACCEPT: Final = f"{JSON}, {SSE}"  # both, whatever comes (MCP basic/transports §Sending Messages)
_LENGTH_DIGITS: Final = 18  # more is no length that anybody sends
# Seconds until what is owed no answer must have been taken: nobody else has a timer for it.
_ACCEPTANCE_TIMEOUT: Final = 30.0
# How often in a row a broken stream is asked for again, and comes no further: half a minute.
_TRIES: Final = 5


class Owner(Protocol):
    """What an exchange sees of its link. What it says of a key that is over goes nowhere."""

    channel: Channel
    session: Session
    reader: Reader

    @property
    def post_resource(self) -> str | None:
        """Where messages go, if not to the target itself: then answers come elsewhere, too."""

    def received(self, key: int, message: Message) -> None:
        """A message came on the way to the answer."""

    def answered(self, key: int, message: Response | Failure) -> None:
        """The answer came."""

    def sent(self, key: int) -> None:
        """What is owed no answer was taken."""

    def failed(self, key: int, reason: Reason) -> None:
        """It ended without its answer."""

    def noticed(self, event: str, fields: JSONObject) -> None:
        """Something worth counting happened."""

    async def room(self) -> None:
        """Wait until the peer may ask more: it has taken the answers to most of what it asked."""


class Exchange:
    """The way of one message. `run` is its task."""

    __slots__ = ("_body", "_headers", "_key", "_message", "_owner", "_session_id")

    def __init__(
        self, message: Outgoing, key: int, *, headers: Mapping[str, str], body: bytes, owner: Owner
    ) -> None:
        self._message = message
        self._key = key
        self._headers = headers
        self._body = body
        self._owner = owner
        self._session_id = headers.get(SESSION_ID)

    async def run(self) -> None:
        """Send the message and see it to its end. Raises nothing."""
        try:
            await self._run()
        except Broken as error:
            self._owner.failed(self._key, error.reason)
        except Exception as error:  # the edge of a task: a bug must cost one call, not hang it
            name = type(error).__qualname__
            _logger.error("an exchange ended with %s: please report it", name)
            self._owner.failed(self._key, Reason("task_down", name, maybe_done=True))

    async def _run(self) -> None:
        answer = await self._head()
        try:
            await self._read(answer)
        finally:
            answer.close()

    async def _head(self) -> Answer:
        """Send the message; give the head of the answer, when it comes."""
        timeout = None if isinstance(self._message, Request) else _ACCEPTANCE_TIMEOUT
        try:
            async with asyncio.timeout(timeout):
                return await self._owner.channel.request(
                    "POST",
                    self._headers,
                    self._body,
                    accept=_ACCEPT,
                    resource=self._owner.post_resource,
                )
        except TimeoutError:
            raise Broken(Reason("timeout", "deadline", maybe_done=True)) from None

    async def _read(self, answer: Answer) -> None:
        if not 200 <= answer.status < 300:
            self._owner.failed(self._key, await self._refusal(answer))
            await skip_rest(answer)
        elif not isinstance(self._message, Request):
            self._owner.sent(self._key)
            await skip_rest(answer)
        elif self._owner.post_resource is not None:
            await skip_rest(answer)
        else:
            if self._message.method == "initialize":
                self._owner.session.issue(answer.all(SESSION_ID))
            if answer.content_type == SSE:
                await self._stream(answer, self._message.method)
            else:
                await self._whole(answer, self._message.method)

    async def _refusal(self, answer: Answer) -> Reason:
        if answer.status == 404 and self._session_id is not None:
            # MCP 2025-11-25 basic/transports §Session Management 3
            self._owner.session.forget(self._session_id)
            return Reason("session_rejected")
        return await read_refusal(
            answer, self._key, max_depth=self._owner.channel.options.max_depth
        )

    async def _whole(self, answer: Answer, method: str) -> None:
        """Read an answer that is one JSON text."""
        kind = answer.content_type
        if kind not in ("", JSON) and not kind.endswith("+json"):
            raise unreadable(method, f"the content type is {shown(kind, 64)}")
        data = await self._bounded(answer)
        messages = self._owner.reader.messages(data, self._key)
        if not self._hand_over(messages, method):
            ignored = [each.reason for each in messages if isinstance(each, Ignored)]
            raise unreadable(method, ignored[0] if ignored else "there is no answer in the body")

    async def _bounded(self, answer: Answer) -> bytes:
        most_bytes = self._owner.reader.max_message_bytes
        length = answer.headers.get("Content-Length", "0")
        if length.isdecimal() and (len(length) > _LENGTH_DIGITS or int(length) > most_bytes):
            raise self._owner.reader.too_large()
        pieces: list[bytes] = []
        seen_bytes = 0
        silence = self._owner.channel.options.chunk_timeout
        while piece := await answer.read(silence):
            seen_bytes += len(piece)
            if seen_bytes > most_bytes:
                raise self._owner.reader.too_large()
            pieces.append(piece)
        return b"".join(pieces)

    async def _stream(self, answer: Answer, method: str) -> None:
        """Read an answer that comes as events, over as many connections as it takes."""
        again = Resumption(tries=_TRIES)
        session = self._owner.session.headers()
        ended = await self._events(answer, again, method)
        while ended is not None:
            # MCP 2026-07-28 has no way back to a stream: its requests name their own revision.
            may_resume = again.resumable and METHOD.lower() not in self._headers
            wait = again.next_wait() if may_resume else None
            if wait is None:
                raise ended
            await asyncio.sleep(wait)
            ended = await self._resumed(again, session, method)

    async def _events(self, answer: Answer, again: Resumption, method: str) -> Broken | None:
        """Read events up to the answer; give what ended the stream before it, if it may go on."""
        events = new_events(self._owner.reader)
        try:
            while piece := await answer.read():
                found = events.feed(piece)
                if again.saw(events):
                    again.worked()
                for number, event in enumerate(found):
                    if self._event(event, method):
                        await skip_rest(answer)
                        return None
                    if number % EVENTS_A_TURN == 0:
                        await self._owner.room()
                        await asyncio.sleep(0)
        except Broken as error:
            if error.reason.tag != "transport":
                raise
            return error
        finally:
            answer.close()
        return None if self._tail(events, method) else broken("closed")

    def _tail(self, events: Events, method: str) -> bool:
        """Look for the answer in what a body ended with, short of an empty line.

        WHATWG HTML §9.2.6 makes it no event, because a stream may break off anywhere. A body that
        has ended did not; servers were seen to leave the line out. Half a message is none.
        """
        for event in events.feed(b"\n\n"):
            data = self._owner.reader.data_of(event)
            messages = [] if data is None else self._owner.reader.messages(data, self._key)
            if all(isinstance(message, Response | Failure) for message in messages):
                return self._hand_over(messages, method)
        return False

    async def _resumed(
        self, again: Resumption, session: Mapping[str, str], method: str
    ) -> Broken | None:
        """Ask for the rest of a stream, always with GET (MCP 2025-11-25 §Resumability)."""
        channel = self._owner.channel
        try:
            answer = await channel.request("GET", {**session, **again.headers}, accept=SSE)
        except Broken as error:
            return _cut_off(error.reason)
        if answer.status == 200 and answer.content_type == SSE:
            return await self._events(answer, again, method)
        answer.close()
        ended = _cut_off(refusal_of(answer))
        if worth_a_retry(answer.status):
            return ended
        raise ended

    def _event(self, event: Event | TooLong, method: str) -> bool:
        data = self._owner.reader.data_of(event)
        if data is None:
            return False
        return self._hand_over(self._owner.reader.messages(data, self._key), method)

    def _hand_over(self, messages: list[Message | UnreadableReply], method: str) -> bool:
        """Pass on what came at once; say whether the answer was in it, which is passed on last."""
        answer: Response | Failure | None = None
        for message in messages:
            if not is_about(message, self._key):
                self._owner.noticed("stray_answer", {})
            elif isinstance(message, UnreadableReply):
                raise unreadable(method, message.why)
            elif isinstance(message, Response | Failure):
                answer = message
            else:
                self._owner.received(self._key, message)
        if answer is None:
            return False
        if method == "initialize" and isinstance(answer, Failure):
            self._owner.session.begin()  # what came with a refusal is no session
        self._owner.answered(self._key, answer)
        return True


def _cut_off(cause: Reason) -> Broken:
    """Return the error for an answer that was begun and cannot be had."""
    return Broken(Reason("transport", "closed", cause=cause, maybe_done=True))
