"""How to reach one server over HTTP. Opens nothing: `link` makes what does."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from raxol_mcp.errors import NoHttpClient
from raxol_mcp.transports.http_client.addresses import Resolver, system_resolver
from raxol_mcp.transports.http_client.link import HttpLink
from raxol_mcp.transports.http_client.options import MAX_MESSAGE_BYTES, USER_AGENT, Options
from raxol_mcp.transports.http_client.request_headers import is_header_name
from raxol_mcp.transports.http_client.tables import Tables, shared_tables
from raxol_mcp.transports.http_client.target import parse_target
from raxol_mcp.wire.jsonrpc import MAX_DEPTH

if TYPE_CHECKING:
    from ssl import SSLContext

    from raxol_mcp.transports.link import Dialect, LinkPort

__all__ = ["HttpDialer", "has_http_client"]

_MASK: Final = "[redacted]"


class HttpDialer:
    """A server at a URL; see `raxol_mcp.transports.link.Dialer`.

    `headers` go with every request: credentials, mostly. Those the transport owns are dropped
    (`raxol_mcp.transports.http_client.request_headers`); one that is no header fails `Link.open`
    with `encode_failed`, and a URL that may not be used with `blocked`.

    * `allow_private` allows addresses that are not public, and plain http to this machine.
    * `max_message_bytes` bounds one message of the peer, `max_depth` its nesting.
    * `connect_timeout` bounds connecting, TLS included, in seconds.
    * `chunk_timeout` is how long a body that is no event stream may say nothing once it has begun,
      in seconds. None: as long as the caller waits. The head of an answer, and a stream, may take
      that long in any case, because a tool may work in silence.
    * `listen` is whether to open the stream that a session may have for messages of the server.
    * `tables` holds the circuit breakers; those of the process by default.
    * `resolver` and `ssl_context` replace the system's names and trust. There is no way to
      connect without checking the certificate and the name in it.

    Raises `NoHttpClient` where aiohttp is not installed.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        allow_private: bool = False,
        max_message_bytes: int = MAX_MESSAGE_BYTES,
        max_depth: int = MAX_DEPTH,
        connect_timeout: float = 5.0,
        chunk_timeout: float | None = None,
        listen: bool = True,
        user_agent: str = USER_AGENT,
        tables: Tables | None = None,
        resolver: Resolver | None = None,
        ssl_context: SSLContext | None = None,
    ) -> None:
        if not has_http_client():
            raise NoHttpClient("a server with a url needs aiohttp: pip install aiohttp")
        self._url = url
        self._target = parse_target(url, allow_private=allow_private)
        self._options = Options(
            headers=dict(headers or {}),
            allow_private=allow_private,
            max_message_bytes=max_message_bytes,
            max_depth=max_depth,
            connect_timeout=connect_timeout,
            chunk_timeout=chunk_timeout,
            listen=listen,
            user_agent=user_agent,
            tables=shared_tables() if tables is None else tables,
            resolver=system_resolver if resolver is None else resolver,
            ssl_context=ssl_context,
        )

    def __repr__(self) -> str:
        target = self._target
        where = "an invalid URL" if target is None else repr(f"{target.origin}{target.path}")
        # A name that is none may be a whole line, with its value.
        names = [name for name in self._options.headers if is_header_name(name)]
        headers = dict.fromkeys(names, _MASK)
        return f"HttpDialer({where}, headers={headers})"

    @property
    def kind(self) -> str:
        """The transport: "http"."""
        return "http"

    @property
    def verdict_key(self) -> Hashable:
        """The origin and the path: a server may have an endpoint of each era."""
        target = self._target
        return ("http", "", "") if target is None else ("http", target.origin, target.path)

    @property
    def closing_cancels(self) -> bool:
        """True: MCP 2026-07-28 has a closed stream cancel its request."""
        return True

    def link(self, port: LinkPort, dialect: Dialect) -> HttpLink:
        """Make the link of one attempt. Does nothing yet, and raises nothing."""
        return HttpLink(port, self._url, self._options, dialect)


def has_http_client() -> bool:
    """Say whether the library that speaks HTTP is installed, without importing it."""
    return find_spec("aiohttp") is not None
