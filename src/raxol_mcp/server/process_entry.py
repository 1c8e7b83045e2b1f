"""What a worker process runs for a tool: checks the arguments, calls it, writes the result.

All three happen where the function lives, so that its own types never have to travel.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping

from raxol_mcp.server.content import tool_payload
from raxol_mcp.server.context import Context
from raxol_mcp.server.functions import Function, inspect_function
from raxol_mcp.server.process_worker import resolve
from raxol_mcp.wire.jsonrpc import JSONObject

__all__ = ["call"]

_inspected: dict[str, Function] = {}


def call(target: str, arguments: Mapping[str, object]) -> JSONObject | Awaitable[JSONObject]:
    """Run the tool function named `target` ("module:qualname"); return its result's members.

    Awaitable only where the tool is: a loop for every call would cost more than the call.
    """
    function = resolve(target)
    signature = _inspected.get(target)
    if signature is None:
        signature = _inspected[target] = inspect_function(function, context_type=Context)
    value = function(**signature.bind(arguments))
    if isinstance(value, Awaitable):
        return _later(value, signature)
    return tool_payload(value, signature.output)


async def _later(value: Awaitable[object], signature: Function) -> JSONObject:
    return tool_payload(await value, signature.output)
