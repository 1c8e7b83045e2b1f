"""HTTP+SSE of MCP 2024-11-05: one stream that everything comes on, one address to send to.

The stream's first event names the address. It is text of the peer, and every message with its
credentials would go there: only an address of the same origin is used, and only the first.
Messages are sent by `raxol_mcp.transports.http_client.exchange` like all others.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin

from raxol_mcp.errors import Reason
from raxol_mcp.transports.http_client.channel import refusal_of
from raxol_mcp.transports.http_client.reading import EVENTS_A_TURN, new_events
from raxol_mcp.transports.http_client.reasons import Broken, broken
from raxol_mcp.transports.http_client.request_headers import SSE
from raxol_mcp.transports.http_client.target import parse_target
from raxol_mcp.transports.link import LinkFailed
from raxol_mcp.wire.framing import TooLong

if TYPE_CHECKING:
    from raxol_mcp.transports.http_client.connections import Answer
    from raxol_mcp.transports.http_client.listening import Listener
    from raxol_mcp.transports.http_client.target import Target
    from raxol_mcp.wire.sse import Event

__all__ = ["ENDPOINT_TIMEOUT", "EndpointStream", "endpoint_of"]

ENDPOINT_TIMEOUT: Final = 10.0  # seconds, from the request to the first event

_REFERENCE: Final = re.compile(r"[\x21-\x5b\x5d-\x7e]{1,4096}")  # visible ASCII, no backslash


class EndpointStream:
    """The stream of one connection. `open`, then `run` in a task of its own, then `close`."""

    __slots__ = ("_answer", "_events", "_found", "_owner")

    def __init__(self, owner: Listener) -> None:
        self._owner = owner
        self._events = new_events(owner.reader)
        self._found: list[Event | TooLong] = []
        self._answer: Answer | None = None

    async def open(self) -> str:
        """Open the stream; give the path and query that messages are sent to.

        Raises `LinkFailed`, and leaves nothing open then, as when it is cancelled.
        """
        try:
            async with asyncio.timeout(ENDPOINT_TIMEOUT):
                return await self._open()
        except TimeoutError:
            self.close()
            raise LinkFailed(Reason("timeout", "deadline", text="no endpoint event")) from None
        except Broken as error:
            self.close()
            raise LinkFailed(error.reason) from None
        except BaseException:
            self.close()
            raise

    async def run(self) -> Reason:
        """Hand over what comes, until the stream ends; give why."""
        try:
            while True:
                for number, event in enumerate(self._found):
                    if number % EVENTS_A_TURN == 0:
                        await self._owner.room()
                        await asyncio.sleep(0)
                    self._hand_over(event)
                self._found = await self._more()
        except Broken as error:
            return error.reason

    def close(self) -> None:
        """Close the connection."""
        if self._answer is not None:
            self._answer.close()

    async def _open(self) -> str:
        channel = self._owner.channel
        answer = self._answer = await channel.request("GET", {}, accept=SSE)
        if answer.status != 200:
            raise Broken(refusal_of(answer))
        if answer.content_type != SSE:
            raise Broken(Reason("invalid_response", "endpoint", text="not an event stream"))
        while True:
            found = await self._more()
            for place, event in enumerate(found):
                if not isinstance(event, TooLong) and event.name == "endpoint":
                    self._found = found[place + 1 :]
                    private = channel.options.allow_private
                    return _resource(event.data, channel.target, allow_private=private)

    async def _more(self) -> list[Event | TooLong]:
        assert self._answer is not None, "opened first"
        piece = await self._answer.read()
        if not piece:
            raise broken("closed")
        return self._events.feed(piece)

    def _hand_over(self, event: Event | TooLong) -> None:
        data = self._owner.reader.data_of(event)  # an answer that is too large has no id: the end
        if data is not None:
            for message in self._owner.reader.messages(data):
                self._owner.heard(message)


def endpoint_of(reference: bytes, target: Target, *, allow_private: bool) -> Target | None:
    """Resolve the address in an `endpoint` event; None for one that may not be used."""
    text = reference.strip(b" ").decode("ascii", "replace")
    if not _REFERENCE.fullmatch(text):
        return None
    try:
        found = parse_target(urljoin(target.url, text), allow_private=allow_private)
    except ValueError:  # of urljoin: brackets that are no address
        return None
    return found if found is not None and found.origin == target.origin else None


def _resource(reference: bytes, target: Target, *, allow_private: bool) -> str:
    found = endpoint_of(reference, target, allow_private=allow_private)
    if found is None:
        raise Broken(
            Reason("blocked", "invalid_url", text="the endpoint event names another origin")
        )
    return found.resource
