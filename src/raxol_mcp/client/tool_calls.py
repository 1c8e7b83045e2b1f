"""One call of a tool: what is copied into headers, what is paid, what the result must look like.

A call is sent once. The one exception is an answer that says that the server has not looked at
it: -32020, because the headers were made from a list of tools that is out of date (MCP 2026-07-28
basic/transports/streamable-http).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from raxol_mcp.client.outputs import output_problem
from raxol_mcp.client.readers import call_result
from raxol_mcp.core.tickets import Ticket
from raxol_mcp.errors import HEADER_MISMATCH, Reason, RemoteProtocolError, RequestFailed

if TYPE_CHECKING:
    from raxol_mcp.client.lists import Lists
    from raxol_mcp.client.requests import Requests
    from raxol_mcp.client.results import CallResult
    from raxol_mcp.client.user import OnProgress
    from raxol_mcp.wire.jsonrpc import JSONObject

__all__ = ["ToolCalls"]


class ToolCalls:
    """Calls the tools of one server. `mirrors()`: whether arguments go into headers as well."""

    def __init__(self, requests: Requests, lists: Lists, *, mirrors: Callable[[], bool]) -> None:
        self._requests = requests
        self._lists = lists
        self._mirrors = mirrors

    async def call(
        self,
        name: str,
        arguments: Mapping[str, object],
        *,
        timeout: float | None,
        max_timeout: float | None,
        reservation: str | None,
        progress: OnProgress | None,
        meta: Mapping[str, object] | None,
    ) -> CallResult:
        """Call a tool; as `Client.call_tool`."""
        requests = self._requests
        began_at = requests.now()
        ticket = self._ticket(name, arguments, timeout, max_timeout, meta)
        ticket.reservation = reservation
        ticket.wants_progress = progress is not None
        try:
            result = await requests.submit(ticket, progress)
        except RemoteProtocolError as error:
            if error.code != HEADER_MISMATCH or not self._mirrors():
                raise
            result = await self._call_again(ticket, name, began_at, progress)
        return self._checked(name, result)

    def _ticket(
        self,
        name: str,
        arguments: Mapping[str, object],
        timeout: float | None,
        max_timeout: float | None,
        meta: Mapping[str, object] | None,
    ) -> Ticket:
        requests = self._requests
        tool = self._lists.tool(name) if self._mirrors() else None
        mirrors = () if tool is None else tool.mirrors
        # What goes into headers is looked into; the rest is encoded once and for all.
        most = None if max_timeout is None else requests.timeout(max_timeout)
        given = requests.copied(arguments) if self._mirrors() else requests.encoded(arguments)
        return Ticket(
            "tools/call",
            {"name": name, "arguments": given},
            timeout=min(requests.timeout(timeout), most or float("inf")),
            max_timeout=most,
            mirrors=mirrors,
            meta=None if meta is None else requests.copied(meta),
        )

    async def _call_again(
        self, refused: Ticket, name: str, began_at: float, progress: OnProgress | None
    ) -> JSONObject:
        """Call once more with headers of a new list, in what is left of the time.

        The server has run nothing, so what was paid still pays.
        """
        requests = self._requests
        ends_at = began_at + (refused.max_timeout or refused.timeout)
        await requests.list(
            self._lists.tools, timeout=max(ends_at - requests.now(), 0.001), refresh=True
        )
        tool = self._lists.tool(name)
        again = Ticket(
            refused.method,
            refused.params,
            timeout=max(ends_at - requests.now(), 0.001),
            mirrors=() if tool is None else tool.mirrors,
            wants_progress=refused.wants_progress,
            meta=refused.meta,
        )
        again.paid = refused.paid
        return await requests.submit(again, progress)

    def _checked(self, name: str, result: JSONObject) -> CallResult:
        """Read a result and judge it by the schema its tool was listed with."""
        read = self._requests.read(call_result, result)
        tool = self._lists.tool(name)
        problem = None if tool is None else output_problem(tool, read)
        if problem is not None:
            reason = Reason("invalid_response", "tools/call", text=problem, maybe_done=True)
            raise RequestFailed(reason)
        return read
