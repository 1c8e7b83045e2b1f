"""What a core wants done. Data only: the shell performs it, in order, and never awaits meanwhile.

Treat them as immutable: they are frozen by agreement alone, since nobody but a shell gets them.
"""

from __future__ import annotations

from collections.abc import Hashable
from enum import Enum
from typing import TYPE_CHECKING, Final

from raxol_mcp.wire.values import Value

if TYPE_CHECKING:
    from raxol_mcp.core.calls import Call
    from raxol_mcp.wire.jsonrpc import Failure, JSONObject, Outgoing, RequestId, Response

__all__ = [
    "AUTHORIZE_THEN_RUN",
    "READ",
    "RUN",
    "Effect",
    "Job",
    "Push",
    "Record",
    "Reply",
    "Resolve",
    "StartWorker",
    "StopWorker",
]


class Job(Enum):
    """What a worker is started for."""

    AUTHORIZE_THEN_RUN = "authorize_then_run"  # tools/call: one worker, one slot, one timeout
    READ = "read"  # every other method: the read authorizer, then the operation
    RUN = "run"  # approved: run without asking the authorizer again


# By names of their own, as the states in `calls.py` and for the same reason.
AUTHORIZE_THEN_RUN: Final = Job.AUTHORIZE_THEN_RUN
READ: Final = Job.READ
RUN: Final = Job.RUN


class Push(Value):
    """Put `message` on the connection's sink.

    `about` is the request it belongs to, None for a broadcast. A `droppable` one (progress, log)
    may be left out when the peer does not keep up.
    """

    connection: Hashable
    message: Outgoing
    about: RequestId | None
    droppable: bool = False


class Reply(Value):
    """Answer the caller of `request()` or `handle_message()`; None: with nothing."""

    caller: object
    message: Outgoing | None


class StartWorker(Value):
    """Start the worker of `call`; report its end with `worker_ended`, exactly once."""

    call: Call
    job: Job


class StopWorker(Value):
    """Stop the worker of `call`, which is closed; report its end all the same."""

    call: Call


class Resolve(Value):
    """The question `key` that the running tool of `call` asked has an answer.

    `answer` is the peer's message, or None when the wait ended without one.
    """

    call: Call
    key: str
    answer: Response | Failure | None


class Record(Value):
    """Something worth counting happened. Names and fields are listed in `raxol_mcp.telemetry`."""

    event: str
    fields: JSONObject


Effect = Push | Reply | StartWorker | StopWorker | Resolve | Record
