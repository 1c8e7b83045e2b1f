"""What a worker may report about the call it ran. The core turns it into the one answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raxol_mcp.wire.values import Value

if TYPE_CHECKING:
    from raxol_mcp.core.questions import Question
    from raxol_mcp.wire.jsonrpc import JSONObject

__all__ = [
    "Asked",
    "Denied",
    "Failed",
    "Granted",
    "Outcome",
    "Refused",
    "Returned",
    "Stopped",
    "Unacceptable",
]


class Returned(Value):
    """The operation ended with a result.

    `payload` is the whole `result` member, already complete for the call's era and known to
    encode: an object, or `msgspec.Raw`. `failed` marks an `isError` result.
    """

    payload: object
    failed: bool = False


class Failed(Value):
    """The operation broke.

    `text` is what a tool's caller reads; any other method answers -32603 with `data.error` set
    to `reason`.
    """

    text: str
    reason: str = "callback_crashed"


class Refused(Value):
    """A JSON-RPC error: unknown name, bad arguments of a prompt, read denied."""

    code: int
    message: str
    data: JSONObject | None = None


class Denied(Value):
    """The authorizer said no."""

    detail: str


class Asked(Value):
    """The human must be asked before the call goes on.

    All questions are answered before anything runs. With `round` the running tool itself asked
    (`InputRequired`): it is run again with every answer, `state` is handed back to it. `subject`
    names what the question is about; it comes back with the call when it runs.
    """

    questions: tuple[Question, ...]
    subject: str | None = None
    round: bool = False
    state: str | None = None


class Granted(Value):
    """The read authorizer allowed a method that the core itself carries out.

    `allowed` holds, for `subscriptions/listen`, the part of the filter that may be honoured.
    """

    allowed: JSONObject | None = None


class Unacceptable(Value):
    """An accepted answer does not fit the schema that was asked for; nothing ran."""

    detail: str


class Stopped(Value):
    """The worker was stopped before it had an outcome."""


Outcome = Returned | Failed | Refused | Denied | Asked | Granted | Unacceptable | Stopped
