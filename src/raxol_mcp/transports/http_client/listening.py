"""The stream of a session for what belongs to no request: opened with GET, and opened again.

MCP 2025-11-25 basic/transports §Listening for Messages from the Server. A server need not have
one. Nothing depends on it: when it is refused or given up, the session goes on without.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Protocol

from raxol_mcp.transports.http_client.channel import worth_a_retry
from raxol_mcp.transports.http_client.reading import EVENTS_A_TURN, new_events
from raxol_mcp.transports.http_client.reasons import Broken
from raxol_mcp.transports.http_client.request_headers import SSE
from raxol_mcp.transports.http_client.resumption import Resumption
from raxol_mcp.wire.jsonrpc import Ignored
from raxol_mcp.wire.replies import UnreadableReply

if TYPE_CHECKING:
    from raxol_mcp.transports.http_client.channel import Channel
    from raxol_mcp.transports.http_client.connections import Answer
    from raxol_mcp.transports.http_client.reading import Reader
    from raxol_mcp.wire.jsonrpc import JSONObject, Message

__all__ = ["Listener", "Listening"]

# How often in a row the stream is asked for and is of no use: some seven minutes.
_TRIES: Final = 10
# Seconds. A stream that was open so long was of use, though it said nothing: what stands between
# closes quiet connections after some time.
_LONG: Final = 10.0


class Listener(Protocol):
    """What a stream of a session sees of its link."""

    channel: Channel
    reader: Reader

    def heard(self, message: Message | UnreadableReply) -> None:
        """A message came that belongs to no exchange."""

    def hears(self, hears: bool) -> None:
        """There is a stream now, or there is none."""

    def missed(self) -> None:
        """Messages of the session may not have come."""

    def noticed(self, event: str, fields: JSONObject) -> None:
        """Something worth counting happened."""

    async def room(self) -> None:
        """Wait until the peer has taken the answers to most of what it asked."""


class Listening:
    """The stream of one session. `run` is its task; `headers` name the session.

    `begun` is set once the server has said whether there is a stream, or cannot.
    """

    __slots__ = ("_again", "_first", "_headers", "_opened", "_owner", "begun")

    def __init__(self, owner: Listener, headers: Mapping[str, str]) -> None:
        self.begun = asyncio.Event()
        self._owner = owner
        self._headers = headers
        self._again = Resumption(tries=_TRIES)
        self._first = True
        self._opened = False

    async def run(self) -> None:
        """Listen until the server says that there is no stream, or says nothing for too long."""
        while await self._listen():
            wait = self._again.next_wait()
            if wait is None:
                self._owner.noticed("stream_given_up", {"tries": _TRIES})
                return
            await asyncio.sleep(wait)

    async def _listen(self) -> bool:
        """Listen on one connection; say whether there may be another."""
        first, self._first = self._first, False
        resumed = self._again.resumable
        loop = asyncio.get_running_loop()
        asked_at = loop.time()
        try:
            answer = await self._owner.channel.request(
                "GET", {**self._headers, **self._again.headers}, accept=SSE, judged=False
            )
        except Broken:
            return True
        finally:
            self.begun.set()
        try:
            if answer.status != 200 or answer.content_type != SSE:
                return worth_a_retry(answer.status)
            if self._opened:
                self._owner.noticed("stream_reopened", {"resumed": resumed})
            if not first and not resumed:
                self._owner.missed()  # what was sent meanwhile, unless the server kept it for us
            self._opened = True
            self._owner.hears(True)
            await self._read(answer)
        except Broken:
            pass
        finally:
            self._owner.hears(False)
            answer.close()
            if loop.time() - asked_at >= _LONG:
                self._again.worked()
        return True

    async def _read(self, answer: Answer) -> None:
        events = new_events(self._owner.reader)
        while piece := await answer.read():
            found = events.feed(piece)
            self._again.saw(events)
            for number, event in enumerate(found):
                if number % EVENTS_A_TURN == 0:
                    await self._owner.room()
                    await asyncio.sleep(0)
                self._again.worked()
                try:
                    data = self._owner.reader.data_of(event)
                except Broken:
                    self._owner.heard(Ignored("an event that is too large"))
                    continue
                for message in self._owner.reader.messages(data) if data is not None else ():
                    self._owner.heard(message)
