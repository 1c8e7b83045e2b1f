"""client/failures.py: how a request ended becomes an exception, and an exception a reason."""

import pytest

from raxol_mcp.client.failures import error_of, reason_of
from raxol_mcp.client.side_by_side import Crashed
from raxol_mcp.core.client_effects import Ended
from raxol_mcp.core.tickets import Ticket
from raxol_mcp.errors import (
    INTERNAL_ERROR,
    Busy,
    ConfigurationError,
    ConnectFailed,
    ConnectionLost,
    NotReady,
    RaxolError,
    Reason,
    RemoteProtocolError,
    RequestFailed,
    SessionLost,
    TimedOut,
    Unpaid,
    UnsetVariable,
)


@pytest.mark.parametrize(
    ("ended", "reason", "kind", "tag"),
    [
        (Ended.FAILED, Reason("http", 503), RequestFailed, "http"),
        (Ended.UNPAID, Reason("unmetered_call"), Unpaid, "unmetered_call"),
        (Ended.SESSION_REJECTED, Reason("session_rejected"), SessionLost, "session_rejected"),
        (Ended.LOST, Reason("server_exited", 1), ConnectionLost, "server_exited"),
        (Ended.TIMED_OUT, Reason("timeout"), TimedOut, "timeout"),
        (Ended.BUSY, Reason("busy"), Busy, "busy"),
        (Ended.CONNECT_FAILED, Reason("http", 401), ConnectFailed, "connect_failed"),
        (Ended.NOT_READY, Reason("not_ready", "stopped"), NotReady, "not_ready"),
    ],
)
def test_each_end_has_its_exception(
    ended: Ended, reason: Reason, kind: type[RaxolError], tag: str
) -> None:
    error = error_of(ended, reason)
    assert (type(error), error.tag, error.reason) == (kind, tag, reason)


def test_an_error_of_the_server_keeps_its_code_its_data_and_the_status() -> None:
    """JSON-RPC 2.0 §5.1."""
    said: dict[str, object] = {"code": -32001, "message": "no", "data": [1]}
    error = error_of(Ended.ERROR, Reason("http", 400, error=said))
    assert isinstance(error, RemoteProtocolError)
    assert (error.code, str(error), error.data, error.status) == (-32001, "no", [1], 400)


def test_an_error_that_is_none_is_an_internal_one() -> None:
    error = error_of(Ended.ERROR, Reason("jsonrpc", error={"code": "x"}))
    assert isinstance(error, RemoteProtocolError)
    assert (error.code, str(error), error.status) == (INTERNAL_ERROR, "malformed error", None)


@pytest.mark.parametrize(("longest", "said"), [(None, "within 2 s"), (9.0, "within 9 s")])
def test_a_call_without_an_answer_says_how_long_it_had(longest: float | None, said: str) -> None:
    ticket = Ticket("tools/call", timeout=2.0, max_timeout=longest)
    error = error_of(Ended.TIMED_OUT, Reason("timeout"), ticket=ticket)
    assert str(error) == f"tools/call: no answer {said}"


@pytest.mark.parametrize("maybe_done", [True, False])
def test_what_was_lost_says_whether_it_may_have_been_carried_out(maybe_done: bool) -> None:
    error = error_of(Ended.LOST, Reason("transport", "reset", maybe_done=maybe_done))
    assert isinstance(error, ConnectionLost)
    assert error.outcome_unknown is maybe_done


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ConnectFailed(Reason("http", 401)), Reason("http", 401)),
        (NotReady("initializing"), Reason("not_ready", "initializing")),
        (Crashed("KeyError"), Reason("task_down", "KeyError")),
        (Busy("later"), Reason("busy")),
        (TimedOut("within 3 s"), Reason("timeout", text="within 3 s")),
        (ConfigurationError("say which"), Reason("configuration", text="say which")),
        (UnsetVariable("X is not set", "X"), Reason("unset_variable", "X", text="X is not set")),
    ],
)
def test_every_error_is_a_reason(error: RaxolError, reason: Reason) -> None:
    assert (reason_of(error), reason_of(error).text) == (reason, reason.text)
