"""Why a command did not do what it was asked, and its exit code."""

import pytest

from raxol_mcp.cli.client_errors import code_of, error_json, told
from raxol_mcp.errors import (
    Busy,
    ConnectFailed,
    ConnectionLost,
    InvalidSpec,
    NotReady,
    RaxolError,
    Reason,
    RemoteProtocolError,
    RequestFailed,
    SessionLost,
    TimedOut,
    Unpaid,
)

DONE = Reason("transport", "reset", maybe_done=True)
GREETING = Reason("initialization_failed", cause=Reason("http", 401))


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (InvalidSpec("name a command"), 1, "name a command"),
        (
            ConnectFailed(Reason("spawn_failed", "enoent")),
            4,
            "cannot connect to the server: there is no such program",
        ),
        (
            ConnectFailed(GREETING),
            4,
            "cannot connect to the server: it wants other credentials (HTTP 401)",
        ),
        (
            ConnectFailed(Reason("server_exited", 3, text="No module named x")),
            4,
            "cannot connect to the server: it ended with exit code 3 (No module named x)",
        ),
        (
            ConnectFailed(Reason("blocked", "address")),
            4,
            "cannot connect to the server: its address leads into a private network; "
            "--allow-private lets it",
        ),
        (
            ConnectionLost(DONE, outcome_unknown=True),
            4,
            "the connection to the server was lost: it broke the connection off; it may have "
            "been carried out all the same",
        ),
        (NotReady("starting"), 4, "the server was not ready in time (its client is starting)"),
        (SessionLost("the server forgot"), 4, "the server forgot"),
        (TimedOut("tools/call: no answer within 3 s"), 5, "tools/call: no answer within 3 s"),
        (
            TimedOut("no answer", Reason("timeout", maybe_done=True)),
            5,
            "no answer; it may have been carried out all the same",
        ),
        (RequestFailed(Reason("timeout", "chunk")), 5, "timeout chunk"),
        (Busy("try again later"), 6, "try again later"),
        (RequestFailed(Reason("http", 500)), 1, "it answered with HTTP 500"),
        (RequestFailed(Reason("too_large", 9)), 1, "it sent more than 9 bytes"),
        (
            RequestFailed(Reason("invalid_response", "tools/call", text="no content")),
            1,
            "its answer to tools/call cannot be used (no content)",
        ),
        (RequestFailed(Reason("redirect_refused", 302)), 1, "it answered with a redirect (HTTP "),
        (Unpaid(Reason("unmetered_call")), 1, "this tool costs something"),
        (
            RemoteProtocolError(-32601, "no such\ntool\x1b[2J"),
            1,
            "the server answered with error -32601: no such\\ntool\\x1b[2J",
        ),
        (RemoteProtocolError(1, "x" * 10_000), 1, "the server answered with error 1: xxxx"),
    ],
)
def test_each_error_has_its_sentence_and_its_code(
    error: RaxolError, code: int, sentence: str
) -> None:
    """ours: docs/cli.md §Exit codes."""
    assert code_of(error) == code
    assert told(error).startswith(sentence)
    assert told(error).isprintable()
    assert len(told(error)) < 600


def test_an_error_is_data_for_programs() -> None:
    """ours: docs/cli.md. `Reason.path` is every tag and detail down to the first cause."""
    assert error_json(ConnectFailed(GREETING)) == {
        "error": "connect_failed",
        "reason": ["initialization_failed", "http", 401],
        "message": "cannot connect to the server: it wants other credentials (HTTP 401)",
    }
    assert error_json(RemoteProtocolError(-32601, "no", {"a": 1})) == {
        "error": "jsonrpc",
        "reason": None,
        "message": "the server answered with error -32601: no",
        "code": -32601,
        "data": {"a": 1},
    }
    assert error_json(RemoteProtocolError(-1, "no")).keys() == {
        "error",
        "reason",
        "message",
        "code",
    }
    assert error_json(ConnectionLost(DONE, outcome_unknown=True))["maybe_done"] is True
