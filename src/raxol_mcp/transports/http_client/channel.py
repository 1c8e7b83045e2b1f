"""Requests to one origin, past its circuit breaker. Knows no messages and no sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from time import time
from typing import TYPE_CHECKING, Final

from raxol_mcp.errors import Reason
from raxol_mcp.transports.http_client.reasons import Broken, error_of, refused
from raxol_mcp.transports.http_client.request_headers import JSON, own_headers, usable_headers
from raxol_mcp.transports.http_client.tables import Verdict, verdict_of

if TYPE_CHECKING:
    from raxol_mcp.transports.http_client.connections import Answer, Connections
    from raxol_mcp.transports.http_client.options import Options
    from raxol_mcp.transports.http_client.target import Target

__all__ = ["Channel", "read_refusal", "refusal_of", "skip_rest", "worth_a_retry"]

# Of a body nobody wants: enough to keep the connection of a peer that behaves.
_REST_BYTES: Final = 64 * 1024
_REST_TIMEOUT: Final = 1.0
# Of the body of a refusal, which may hold a JSON-RPC error. The status alone will do.
_REFUSAL_BYTES: Final = 256 * 1024
_REFUSAL_TIMEOUT: Final = 5.0


class Channel:
    """The way to one origin."""

    def __init__(self, target: Target, connections: Connections, options: Options) -> None:
        self.target = target
        self.options = options
        self._connections = connections
        self._breakers = options.tables.breakers
        self._given = usable_headers(options.headers)

    async def request(
        self,
        method: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        accept: str,
        resource: str | None = None,
        judged: bool = True,
    ) -> Answer:
        """Send one request; give the head of its answer, whatever the status.

        `resource` is another path and query of the origin than the target's. What comes of a
        request that is not `judged` says nothing about the origin: a server may lack a stream, or
        fail to give one, and work. Raises `Broken`, also with `breaker_open`, when nothing is sent.
        """
        call = object()
        origin = self.target.origin
        loop = asyncio.get_running_loop()
        if not self._breakers.admits(origin, loop.time(), call=call):
            raise Broken(Reason("breaker_open"))
        verdict = Verdict.SILENT
        try:
            answer = await self._connections.request(
                method,
                f"{origin}{self.target.resource if resource is None else resource}",
                {
                    **self._given,
                    **own_headers(self.options.user_agent, accept=accept),
                    **headers,
                },
                body,
            )
            verdict = verdict_of(answer.status)
            return answer
        except Broken:
            verdict = Verdict.FAILS
            raise
        finally:
            # What happens to the body comes too late to be told: it may go on for hours, and the
            # one probe of a half-open breaker must not.
            self._tell(verdict if judged else Verdict.SILENT, call)

    async def close(self) -> None:
        """Close every connection."""
        await self._connections.close()

    def _tell(self, verdict: Verdict, call: object) -> None:
        origin = self.target.origin
        match verdict:
            case Verdict.WORKS:
                self._breakers.succeeded(origin)
            case Verdict.FAILS:
                self._breakers.failed(origin, asyncio.get_running_loop().time(), call=call)
            case Verdict.SILENT:
                self._breakers.abandoned(origin, call=call)


async def read_refusal(answer: Answer, key: int, *, max_depth: int) -> Reason:
    """Make the reason of an answer that is no success; reads a JSON body for its error."""
    error = None
    if not 300 <= answer.status < 400:
        body = await _short_body(answer)
        if body and (answer.content_type == JSON or answer.content_type.endswith("+json")):
            error = error_of(body, key, max_depth=max_depth)
    return refused(answer.status, answer.headers, error, now=time())


def refusal_of(answer: Answer) -> Reason:
    """Make the reason of an answer that is no success from its head alone."""
    return refused(answer.status, answer.headers, now=time())


def worth_a_retry(status: int) -> bool:
    """Say whether a stream that was refused with `status` may be had later.

    409: the server still takes the connection that broke for an open one.
    """
    return status in (408, 409, 429) or (status >= 500 and status != 501)


async def skip_rest(answer: Answer) -> None:
    """Read what is left of a body, if that is little and comes soon: the connection is kept."""
    seen_bytes = 0
    try:
        async with asyncio.timeout(_REST_TIMEOUT):
            while seen_bytes <= _REST_BYTES and (piece := await answer.read()):
                seen_bytes += len(piece)
    except (Broken, TimeoutError):
        pass  # it is closed


async def _short_body(answer: Answer) -> bytes:
    """Read a body of moderate length; `b""` for one that is too long, late or broken."""
    pieces: list[bytes] = []
    seen_bytes = 0
    try:
        async with asyncio.timeout(_REFUSAL_TIMEOUT):
            while piece := await answer.read():
                seen_bytes += len(piece)
                if seen_bytes > _REFUSAL_BYTES:
                    return b""
                pieces.append(piece)
    except (Broken, TimeoutError):
        return b""
    return b"".join(pieces)
