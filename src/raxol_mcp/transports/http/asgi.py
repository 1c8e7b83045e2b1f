"""The words of ASGI 3, and the short ways to answer. Knows HTTP; knows nothing of MCP."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Final, TypeAlias

from raxol_mcp.core.authentication import Challenge
from raxol_mcp.transports.http.patience import Waiting
from raxol_mcp.wire.values import Value

__all__ = [
    "JSON",
    "Answer",
    "Event",
    "Header",
    "Receive",
    "Request",
    "Scope",
    "Send",
    "challenge_of",
    "empty",
    "json_answer",
    "json_start",
    "path_of",
    "plain",
    "say",
]

# As loose as the specification has them, so that every server and framework fits.
Scope: TypeAlias = MutableMapping[str, object]
Event: TypeAlias = MutableMapping[str, object]
Receive: TypeAlias = Callable[[], Awaitable[Event]]
Send: TypeAlias = Callable[[Event], Awaitable[None]]
Header: TypeAlias = tuple[bytes, bytes]

JSON: Final = (b"content-type", b"application/json")
_NO_SCOPES: Final[frozenset[str]] = frozenset()
_PLAIN: Final = (b"content-type", b"text/plain; charset=utf-8")


class Request(Waiting):
    """One request that the guards let through: its `raw` headers, and the same by their names.

    `principal` is who was authenticated, if anybody was, `scopes` what their credentials allow and
    `challenge` makes what is answered where that is not enough.
    """

    __slots__ = (
        "challenge",
        "headers",
        "principal",
        "raw",
        "receive",
        "scope",
        "scopes",
        "send",
    )

    def __init__(
        self,
        scope: Scope,
        raw: list[Header],
        headers: dict[bytes, bytes],
        receive: Receive,
        send: Send,
    ) -> None:
        # Those of `Waiting` too, without the call: one of these is made for every request.
        self.left = 0
        self.task = None
        self._expired = False
        self.headers = headers
        self.challenge: Callable[[tuple[str, ...]], Challenge] | None = None
        self.principal: str | None = None
        self.raw = raw
        self.receive = receive
        self.scope = scope
        self.scopes: frozenset[str] = _NO_SCOPES
        self.send = send


class Answer(Value, frozen=True):
    """One whole answer, known before anything of it is sent."""

    status: int
    body: bytes = b""
    headers: tuple[Header, ...] = ()


def plain(status: int, text: str, *headers: Header) -> Answer:
    """Answer with a line of text for whoever debugs the client."""
    return Answer(status, text.encode() + b"\n", (_PLAIN, *headers))


def json_answer(status: int, body: bytes, *headers: Header) -> Answer:
    """Answer with one JSON text."""
    return Answer(status, body, (JSON, *headers))


def empty(status: int, *headers: Header) -> Answer:
    """Answer without a body."""
    return Answer(status, b"", headers)


def challenge_of(challenge: Challenge) -> tuple[Header, ...]:
    """Write the header of a challenge, if it has one."""
    value = challenge.www_authenticate
    return () if value is None else ((b"www-authenticate", value.encode("latin-1")),)


def json_start(status: int, length: int, extra: tuple[Header, ...]) -> Event:
    """Write the head of an answer with a JSON body of `length` bytes."""
    headers = [JSON, (b"content-length", b"%d" % length), *extra]
    return {"type": "http.response.start", "status": status, "headers": headers}


async def say(answer: Answer, send: Send, *, head: bool = False) -> None:
    """Send a whole answer; with `head` everything but its body (RFC 9110 §9.3.2)."""
    headers = list(answer.headers)
    if answer.status not in (204, 304):
        headers.append((b"content-length", b"%d" % len(answer.body)))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if head else answer.body})


def path_of(scope: Scope) -> str:
    """Return the path below whatever this application is mounted under.

    `path` holds `root_path` too, by the specification; some servers leave it out.
    """
    path, root = scope["path"], scope.get("root_path")
    assert isinstance(path, str), "ASGI 3"
    if (
        isinstance(root, str)
        and root
        and path.startswith(root)
        and path[len(root) : len(root) + 1] in ("", "/")
    ):
        return path[len(root) :]
    return path
