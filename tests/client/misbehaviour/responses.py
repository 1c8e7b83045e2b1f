"""What only an HTTP server can do wrong: statuses, bodies, lengths, streams and connections."""

from __future__ import annotations

import gzip
from typing import Any, Final

from tests.client.misbehaviour.attempts import Error, Misbehaviour, Outcome, on_call
from tests.client.misbehaviour.messages import TIMEOUT, fine, invalid
from tests.client.misbehaviour.pipes import Connect, greeting_failed
from tests.client.peers.held import BOUND
from tests.client.peers.script import (
    Piece,
    Step,
    drop,
    error,
    http,
    on,
    reply,
    silent,
    sse,
    wire,
)

__all__ = ["CALLS", "CONNECTS", "SESSIONS"]

LIMIT: Final = 16 * 1024 * 1024
JSON: Final = "application/json"
ANSWER: Final = '{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"ok"}]}}'
REFUSAL: Final = '{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"no"}}'
NOBODYS: Final = '{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}'
PAGE: Final = "<!doctype html><title>Sign in</title>"
HEAD: Final = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"

# Redirects aside, every status that some proxy or server was seen to answer with.
STATUSES: Final = (
    *(400, 401, 402, 403, 405, 406, 408, 409, 410, 411, 413, 415, 418, 421, 422, 425, 428, 429),
    *(431, 451, 500, 501, 502, 503, 504, 507, 511, 520, 599),
)


def failed(*path: int | str) -> Outcome:
    """Say what a call gets that failed by itself."""
    return Error("RequestFailed", path)


def status(
    number: int, *body: Piece, expected: Outcome | None = None, **headers: str
) -> Misbehaviour:
    """Build one that answers a call with a status."""
    what = "with nothing" if not body else str(body[0])[:20]
    expected = expected or failed("http", number)
    return on_call(f"{number} {what}", http(number, *body, **headers), expected=expected)


def refused(number: int) -> Outcome:
    """Say what a call gets that was refused with a status and an error in its body."""
    return Error("RemoteProtocolError", (-32000, number))


def cut(name: str, *steps: Step, tag: str) -> Misbehaviour:
    """Build one whose connection, or response, ends too soon or is not HTTP."""
    return on_call(name, *steps, expected=failed("transport", tag))


def streamed(name: str, *pieces: Piece, said: str = "ok", **more: Any) -> Misbehaviour:
    """Build one whose event stream has to be understood."""
    return fine(f"a stream {name}", sse(*pieces, **more), said=said)


CALLS: Final[list[Misbehaviour]] = [
    # -- statuses --
    *(status(number) for number in STATUSES),
    *(status(number, PAGE, Content_Type="text/html") for number in (400, 403, 500, 502, 503)),
    *(
        status(number, REFUSAL, Content_Type=JSON, expected=refused(number))
        for number in (400, 401, 403, 422, 429, 500)
    ),
    *(
        status(number, NOBODYS, Content_Type=JSON, expected=refused(number))
        for number in (400, 500)
    ),
    *(
        status(number, Location="/elsewhere", expected=failed("redirect_refused", number))
        for number in (300, 301, 302, 303, 307, 308)
    ),
    status(400, '{"error":"not_json_rpc"}', Content_Type=JSON),
    status(500, '{"jsonrpc":"2.0","id":', Content_Type=JSON),
    status(503, ("A", 20_000_000), Retry_After="7"),
    invalid("202 for a request", http(202)),
    invalid("204 for a request", http(204)),
    invalid("200 with nothing", http(200)),
    invalid("200 with nothing, as JSON", http(200, Content_Type=JSON)),
    invalid("200 with a page", http(200, PAGE, Content_Type="text/html")),
    invalid("200 with half a message", http(200, ANSWER[:40], Content_Type=JSON)),
    invalid(
        "200 with the message of somebody else",
        http(200, ANSWER.replace("$ID", "99999"), Content_Type=JSON),
    ),
    fine(
        "an answer that says it is in utf-8",
        http(200, ANSWER, Content_Type="Application/JSON; charset=utf-8"),
        said="ok",
    ),
    # -- streams --
    streamed("with CR LF", "event: message\r\ndata: ", ANSWER, "\r\n\r\n", chunk=1),
    streamed("with CR alone", "data: ", ANSWER, "\r\r", chunk=3),
    streamed("with a byte order mark and no space", b"\xef\xbb\xbf", "data:", ANSWER, "\n\n"),
    streamed("by the byte", ": hello\n\nid: 1\nretry: 10\ndata: ", ANSWER, "\n\n", chunk=1),
    streamed(
        "with U+2028 in it", "data: ", ANSWER.replace("ok", "a\u2028b"), "\n\n", said="a\u2028b"
    ),
    streamed(
        "in several data lines",
        'data: {"jsonrpc":"2.0","id":$ID,\ndata: "result":{"content":[]}}\n\n',
        said="",
    ),
    streamed("of events of no kind known", "event: weather\ndata: rain\n\ndata: ", ANSWER, "\n\n"),
    streamed(
        "with data that is no message",
        "data: {not json}\n\ndata:\n\ndata: 7\n\ndata: ",
        ANSWER,
        "\n\n",
    ),
    streamed(
        "that goes on after the answer",
        "data: ",
        ANSWER,
        "\n\ndata: ",
        ANSWER,
        "\n\n",
        ("data: x\n\n", 1000),
    ),
    streamed("of ten thousand comments", (":\n\n", 10_000), "data: ", ANSWER, "\n\n"),
    on_call(
        "a stream that does not end after the answer",
        sse("data: ", ANSWER, "\n\n"),
        silent(),
        expected=fine("", said="ok").expected,
    ),
    cut("a stream that ends without an answer", sse("data: {}\n\n"), tag="closed"),
    cut("a stream that ends in the middle of an event", sse("data: ", ANSWER[:30]), tag="closed"),
    cut("a stream of nothing", sse(), tag="closed"),
    on_call("a stream that says nothing", sse(":\n\n"), silent(), expected=TIMEOUT),
    on_call(
        "comments for ever", sse((":\n\n", 200), chunk=3, pause=0.01), silent(), expected=TIMEOUT
    ),
    on_call(
        "an event of 20 MB",
        sse("data: ", ("A", 20_000_000), "\n\n"),
        expected=failed("too_large", LIMIT),
    ),
    on_call(
        "an event without an end",
        sse("data: ", ("A", 20_000_000)),
        expected=failed("too_large", LIMIT),
    ),
    # -- connections --
    on_call("nothing, and holds the connection", silent(), expected=TIMEOUT),
    cut("closes before a word", drop("close"), tag="closed"),
    cut("resets before a word", drop("reset"), tag="reset"),
    cut("closes after the headers", drop("headers"), tag="incomplete"),
    cut("closes in the middle of the body", drop("body"), tag="incomplete"),
    on_call(
        "silent in the middle of the body",
        wire(HEAD, "Content-Length: 100\r\n\r\n{"),
        silent(),
        expected=failed("timeout", "chunk"),
        spec={"chunk_timeout": 0.3, "call_timeout": BOUND},
    ),
    on_call(
        "a byte at a time, too slowly",
        wire(HEAD, "Content-Length: 1000\r\n\r\n", (" ", 1000), chunk=1, pause=0.02),
        expected=TIMEOUT,
    ),
    # -- lies --
    cut(
        "promises more than it sends",
        wire(HEAD, "Content-Length: 1000\r\n\r\n", ANSWER),
        tag="incomplete",
    ),
    cut(
        "promises less than it sends",
        wire(HEAD, "Content-Length: 20\r\n\r\n", ANSWER),
        tag="no_status",  # of the answer that the rest of this one would be
    ),
    cut(
        "promises a number of 5,000 digits",
        wire(HEAD, "Content-Length: ", ("9", 5_000), "\r\n\r\n{"),
        tag="invalid_content_length",
    ),
    on_call(
        "promises a gigabyte",
        wire(HEAD, "Content-Length: 1073741824\r\n\r\n{"),
        expected=failed("too_large", LIMIT),
    ),
    on_call(
        "sends 20 MB",
        http(200, ("A", 20_000_000), Content_Type=JSON),
        expected=failed("too_large", LIMIT),
    ),
    cut(
        "promises less than nothing",
        wire(HEAD, "Content-Length: -5\r\n\r\n{}"),
        tag="invalid_content_length",
    ),
    cut(
        "promises two lengths",
        wire(HEAD, "Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}"),
        tag="invalid_content_length",
    ),
    cut(
        "promises a word",
        wire(HEAD, "Content-Length: many\r\n\r\n{}"),
        tag="invalid_content_length",
    ),
    cut(
        "sends chunks that are none",
        wire(HEAD, "Transfer-Encoding: chunked\r\n\r\nxyz\r\n{}\r\n"),
        tag="malformed",
    ),
    cut(
        "ends between chunks",
        wire(HEAD, "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"),
        tag="incomplete",
    ),
    fine("ends with the connection, unannounced", wire(HEAD, "\r\n", ANSWER), said="ok"),
    cut(
        "packs what was asked for unpacked",
        http(200, gzip.compress(ANSWER.encode()), Content_Type=JSON, Content_Encoding="gzip"),
        tag="content_encoding",
    ),
    cut(
        "says that it packs, and does not",
        http(200, ANSWER, Content_Type=JSON, Content_Encoding="gzip"),
        tag="content_encoding",
    ),
    cut("is no HTTP", wire("220 mail.example ESMTP\r\n"), tag="no_status"),
    cut("is HTTP of another kind", wire("HTTP/9.9 200 OK\r\n\r\n"), tag="no_status"),
    cut("has a status of a word", wire("HTTP/1.1 OK\r\n\r\n"), tag="no_status"),
    cut(
        "has a megabyte of headers",
        wire("HTTP/1.1 200 OK\r\n", ("X-A: aaaaaaaaaaaaaaaa\r\n", 50_000), "\r\n"),
        tag="headers_too_large",
    ),
    cut(
        "has a header without an end",
        wire("HTTP/1.1 200 OK\r\nX-A: ", ("A", 1_000_000)),
        tag="headers_too_large",
    ),
    cut(
        "has a header that is none",
        wire("HTTP/1.1 200 OK\r\nno colon here\r\n\r\n"),
        tag="malformed",
    ),
    fine(
        "sets a cookie", http(200, ANSWER, Content_Type=JSON, Set_Cookie="a=b; Path=/"), said="ok"
    ),
]


def session_case(name: str, *rules: Any, expected: Outcome, **more: Any) -> Misbehaviour:
    """Build one about the session."""
    return Misbehaviour(name, tuple(rules), expected, **more)


LOST: Final = Error("SessionLost", ("session_rejected",))
SESSIONS: Final[list[Misbehaviour]] = [
    session_case("forgets the session once", on("tools/call", http(404), times=1), expected=LOST),
    session_case(
        "forgets the session, with a page",
        on("tools/call", http(404, PAGE, Content_Type="text/html"), times=1),
        expected=LOST,
    ),
    fine(
        "names another session in an answer",
        http(200, ANSWER, Content_Type=JSON, Mcp_Session_Id="EVIL"),
        said="ok",
    ),
]


def at_once(name: str, *steps: Step, path: tuple[int | str, ...], **more: Any) -> Connect:
    """Build one that goes wrong at every request."""
    return Connect(name, (on("*", *steps),), path, **more)


def at_initialize(name: str, *steps: Step, path: tuple[int | str, ...], **more: Any) -> Connect:
    """Build one that goes wrong at every `initialize`."""
    return Connect(name, (on("initialize", *steps),), greeting_failed(*path), **more)


CONNECTS: Final[list[Connect]] = [
    *(
        at_once(f"{number} for everything", http(number), path=("http", number))
        for number in (403, 408, 429, 500, 502, 503)
    ),
    *(
        at_once(
            f"{number} for everything",
            http(number, Location="https://evil.example/"),
            path=("redirect_refused", number),
        )
        for number in (301, 302, 307)
    ),
    at_once("silence for everything", silent(), path=greeting_failed("timeout")),
    at_once("a reset for everything", drop("reset"), path=("transport", "reset")),
    at_once("is no HTTP", wire("SSH-2.0-OpenSSH_9.6\r\n"), path=("transport", "no_status")),
    at_once(
        "a page for everything",
        http(200, PAGE, Content_Type="text/html"),
        path=greeting_failed("invalid_response", "initialize"),
    ),
    at_once("404 for everything", http(404), path=greeting_failed("http", 404)),
    at_initialize("initialize never ends", silent(), path=("timeout",)),
    at_initialize("initialize is refused", http(500), path=("http", 500)),
    at_initialize("initialize is an error", error(-32603), path=("jsonrpc", -32603)),
    at_initialize("initialize is null", reply(None), path=("invalid_response", "initialize")),
    at_initialize("initialize is nothing", http(200), path=("invalid_response", "initialize")),
    at_initialize(
        "a session with a space",
        http(
            200,
            '{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}',
            Content_Type=JSON,
            Mcp_Session_Id="a b",
        ),
        path=("invalid_response", "session id"),
    ),
    at_initialize(
        "a session that is no ASCII",
        http(
            200,
            '{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}',
            Content_Type=JSON,
            Mcp_Session_Id="\xe9",
        ),
        path=("invalid_response", "session id"),
    ),
]
