"""The results and errors that the core itself writes. Texts are exact: clients match on them."""

from __future__ import annotations

from typing import Final

from raxol_mcp.wire.jsonrpc import JSONObject

__all__ = [
    "CRASHED",
    "TIMED_OUT",
    "busy",
    "callback_failed",
    "denied",
    "tool_error",
]

TIMED_OUT: Final = "callback_timeout"
CRASHED: Final = "callback_crashed"


def tool_error(text: str) -> JSONObject:
    """Write a failed `tools/call` as the result it is (MCP server/tools §Error Handling)."""
    return {"content": [{"type": "text", "text": text}], "isError": True}


def denied(tool: str, *, decision: str, detail: str) -> JSONObject:
    """Write the machine-readable refusal. `decision` is "deny" or "ask"."""
    import json  # not at the top: a server starts without it

    return tool_error(
        json.dumps(
            {
                "error": "authorization_required",
                "tool": tool,
                "decision": decision,
                "detail": detail,
            },
            ensure_ascii=False,
            separators=(",", ":"),
        )
    )


def busy(scope: str) -> JSONObject:
    """Write the refusal of a call that found no slot. `scope` is "server" or "connection"."""
    return tool_error(f'{{"error":"server_busy","scope":"{scope}","retryable":true}}')


def callback_failed(reason: str) -> JSONObject:
    """Write a tool's worker that timed out or crashed without an exception to name."""
    return tool_error(f'{{"error":"{reason}"}}')
