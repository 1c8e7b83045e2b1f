"""What every request has to get past before anything is looked up or run.

Decides from the headers alone; reads no body and knows no session. The rules:

* A name that is not ours in `Host`, or a page of somebody else's in `Origin`, is refused on every
  route (DNS rebinding; MCP 2026-07-28 basic/transports/streamable-http §Security). The defaults
  allow this machine's own names and pages, and nothing else.
* A header that is given once and means something is not given twice: which of two values counts
  is what a proxy and a server would disagree about.
* A body is JSON and says so. The types that a web page may send without asking are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Final

from raxol_mcp.errors import HEADER_MISMATCH, ConfigurationError
from raxol_mcp.transports.http.asgi import json_answer, plain
from raxol_mcp.wire.jsonrpc import Failure, encode

if TYPE_CHECKING:
    from raxol_mcp.transports.http.asgi import Answer, Header

__all__ = [
    "MAX_HEADER_BYTES",
    "Guards",
    "accepts_events",
    "accepts_json",
    "headers_of",
    "is_json",
]

MAX_HEADER_BYTES: Final = 16 * 1024
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
# Names and addresses that were let through are found again without parsing.
_MAX_KNOWN: Final = 64

_HOST: Final = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]{1,5}))?", re.ASCII)
_ORIGIN: Final = re.compile(r"([a-z][a-z0-9+.-]*)://(.+)", re.ASCII)
_SINGLE: Final = frozenset(
    {
        b"authorization",
        b"content-encoding",
        b"content-length",
        b"content-type",
        b"host",
        b"last-event-id",
        b"origin",
        b"transfer-encoding",
    }
)

_FOREIGN_HOST: Final = plain(403, "Forbidden: this Host is not served here")
_FOREIGN_ORIGIN: Final = plain(403, "Forbidden: this Origin is not allowed here")
_TOO_LARGE: Final = plain(431, "Request header fields too large", (b"connection", b"close"))


def headers_of(
    lines: Sequence[Header], *, max_bytes: int = MAX_HEADER_BYTES
) -> dict[bytes, bytes] | Answer:
    """Return the headers by their lower-case names, or what to answer instead.

    Several lines of one header are joined (RFC 9110 §5.3), unless it may be there only once.
    """
    headers = dict(lines)
    if len(headers) != len(lines):
        return _joined(lines, max_bytes)
    # Their lengths, without a call for each: this is on the way of every request.
    if len(b"".join(headers)) + len(b"".join(headers.values())) > max_bytes:
        return _TOO_LARGE
    return headers


def _joined(lines: Sequence[Header], max_bytes: int) -> dict[bytes, bytes] | Answer:
    if sum(map(len, chain.from_iterable(lines))) > max_bytes:
        return _TOO_LARGE
    headers: dict[bytes, bytes] = {}
    for name, value in lines:
        if name not in headers:
            headers[name] = value
        elif name == b"host":
            return _FOREIGN_HOST
        elif name.startswith(b"mcp-"):
            # As MCP answers a mirrored header that is wrong; the id is in a body nobody has read.
            reason = f"Header mismatch: {name.decode('latin-1')} is there more than once"
            return json_answer(400, encode(Failure(None, HEADER_MISMATCH, reason)))
        elif name in _SINGLE:
            return plain(400, f"Bad request: {name.decode('latin-1')} is given twice")
        else:
            headers[name] += b", " + value
    return headers


class Guards:
    """The hosts and origins that are served.

    `hosts` are names or addresses, each for every port or with one (`"mcp.example:8443"`);
    `origins` are whole origins (`"https://app.example"`). `"*"` in either lets everybody in.
    None means this machine: `localhost`, `127.0.0.1` and `[::1]` on any port, and their pages;
    where `hosts` is given, no page at all. Raises ConfigurationError for what is neither.
    """

    __slots__ = ("_hosts", "_known_hosts", "_known_origins", "_origins", "named")

    def __init__(
        self, hosts: Iterable[str] | None = None, origins: Iterable[str] | None = None
    ) -> None:
        self._hosts = LOOPBACK if hosts is None else frozenset(map(_host_option, _many(hosts)))
        if origins is not None:
            self._origins: frozenset[str] | None = frozenset(map(_origin_option, _many(origins)))
        else:
            self._origins = None if hosts is None else frozenset()
        # Whether pages were named that may talk to us: only then are they told so (CORS).
        self.named = bool(self._origins)
        self._known_hosts: set[bytes] = set()
        self._known_origins: set[bytes] = set()

    def refusal(self, headers: dict[bytes, bytes]) -> Answer | None:
        """Say what to answer a request with these headers, or None when it may pass."""
        host = headers.get(b"host", b"")
        if host not in self._known_hosts:
            if not self._serves(host):
                return _FOREIGN_HOST
            _remember(self._known_hosts, host)
        origin = headers.get(b"origin")
        if origin is not None and origin not in self._known_origins:
            if not self._allows(origin):
                return _FOREIGN_ORIGIN
            _remember(self._known_origins, origin)
        return None

    def _serves(self, host: bytes) -> bool:
        match = _HOST.fullmatch(host.decode("latin-1").strip(" \t").lower())
        if match is None:
            return False
        return not self._hosts.isdisjoint(("*", match[1], match[0]))

    def _allows(self, origin: bytes) -> bool:
        text = origin.decode("latin-1").strip(" \t").lower()
        if self._origins is not None:
            return text in self._origins or "*" in self._origins
        match = _ORIGIN.fullmatch(text)
        if match is None or match[1] not in ("http", "https"):
            return False
        host = _HOST.fullmatch(match[2])
        return host is not None and host[1] in LOOPBACK


def is_json(content_type: bytes | None) -> bool:
    """Say whether a body of this type is JSON in UTF-8 (RFC 8259 §8.1, RFC 9110 §8.3)."""
    return content_type == b"application/json" or _is_json(content_type or b"")


def accepts_json(accept: bytes | None) -> bool:
    """Say whether a client that sent this takes JSON. Nothing sent: it takes everything."""
    return accept is None or _accepts(accept, b"application", b"json")


def accepts_events(accept: bytes | None) -> bool:
    """Say whether a client that sent this takes an event stream."""
    return accept is None or _accepts(accept, b"text", b"event-stream")


@lru_cache(maxsize=64)
def _is_json(content_type: bytes) -> bool:
    media_type, _, parameters = content_type.lower().partition(b";")
    if media_type.strip(b" \t") != b"application/json":
        return False
    for parameter in parameters.split(b";"):
        name, _, value = parameter.strip(b" \t").partition(b"=")
        if name == b"charset" and value.strip(b'"') not in (b"utf-8", b"utf8"):
            return False
    return True


@lru_cache(maxsize=64)
def _accepts(accept: bytes, kind: bytes, subtype: bytes) -> bool:
    wanted = (kind + b"/" + subtype, kind + b"/*", b"*/*")
    for media_range in accept.lower().split(b","):
        media_type, *parameters = (part.strip(b" \t") for part in media_range.split(b";"))
        if media_type in wanted and not any(
            re.fullmatch(rb"q=0(\.0{0,3})?", parameter) for parameter in parameters
        ):
            return True
    return False


def _many(options: Iterable[str]) -> list[str]:
    if isinstance(options, str):
        raise ConfigurationError(f"a list of names is wanted, not one text: {options!r}")
    return [str(option).lower() for option in options]


def _host_option(host: str) -> str:
    given = host
    if host.count(":") > 1 and not host.startswith("["):
        host = f"[{host}]"
    if host != "*" and _HOST.fullmatch(host) is None:
        raise ConfigurationError(f"not a host to allow, such as 'mcp.example': {given!r}")
    return host


def _origin_option(origin: str) -> str:
    if origin not in ("*", "null") and (
        _ORIGIN.fullmatch(origin) is None or origin.endswith("/") or origin.count("/") > 2
    ):
        raise ConfigurationError(f"not an origin to allow, such as 'https://a.example': {origin!r}")
    return origin


def _remember(known: set[bytes], value: bytes) -> None:
    if len(known) < _MAX_KNOWN:
        known.add(value)
