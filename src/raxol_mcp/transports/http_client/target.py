"""Where a server is: one strict reading of its URL. Resolves and opens nothing.

What is not plainly a scheme, a host, a port, a path and a query is refused, so that spellings two
readers would take for different hosts need no thought: user information, backslashes, spaces,
addresses in octal or hexadecimal, with fewer than four parts, or with a zone.

* The scheme is https. Plain http is for this machine alone, and only where private addresses are
  allowed: a token sent without TLS is everybody's who is between.
* A fragment is not sent (RFC 9110 §7.1), so it is dropped.
* Path and query are sent as they were written.
"""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final

from raxol_mcp.wire.values import Value

__all__ = ["Target", "parse_target"]

_MAX_URL: Final = 8192  # characters
_URL: Final = re.compile(
    r"(?P<scheme>https?)://"
    r"(?P<host>[a-z0-9_](?:[a-z0-9._\-]*[a-z0-9_])?|\[[0-9a-f:.]+\])"
    r"(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<path>(?:/[a-z0-9\-._~!$&'()*+,;=:@%/]*)?)"
    r"(?:\?(?P<query>[a-z0-9\-._~!$&'()*+,;=:@%/?\[\]|]*))?"
    r"(?:#[\x21-\x7e]*)?",
    re.IGNORECASE,
)
# Resolvers that know old spellings take a host for an address when its last part is a number
# (WHATWG URL §3.5 "ends in a number"); so it has to be one, in the only usual spelling.
_ENDS_IN_NUMBER: Final = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)", re.IGNORECASE)
_MAX_HOST: Final = 253  # RFC 1035 §2.3.4
_MAX_LABEL: Final = 63
_MAX_PORT: Final = 65535
_PORTS: Final = {"https": 443, "http": 80}


class Target(Value, frozen=True):
    """A server's URL, taken apart.

    `host` is in lower case, an IPv6 address without brackets. `address` is the host again where
    that is an IP address. `resource` is path and query as they go on the wire.
    """

    scheme: str
    host: str
    port: int
    path: str
    resource: str
    address: str | None

    @property
    def origin(self) -> str:
        """The scheme, the host and always the port."""
        return f"{self.scheme}://{self._authority}:{self.port}"

    @property
    def url(self) -> str:
        """The whole URL, with its query: for the wire, not for people."""
        return f"{self.origin}{self.resource}"

    @property
    def plain(self) -> bool:
        """Whether it is without TLS."""
        return self.scheme == "http"

    @property
    def _authority(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host


def parse_target(url: object, *, allow_private: bool) -> Target | None:
    """Take the URL of a server apart; None for one that may not be used."""
    match = _URL.fullmatch(url) if isinstance(url, str) and len(url) <= _MAX_URL else None
    if match is None:
        return None
    scheme, host = match["scheme"].lower(), match["host"].lower()
    port = int(match["port"]) if match["port"] else _PORTS[scheme]
    address = _address(host)
    if address is None and not _is_name(host):
        return None
    if not 0 < port <= _MAX_PORT:
        return None
    if scheme == "http" and not (allow_private and _is_here(host, address)):
        return None
    path = match["path"] or "/"
    query = match["query"]
    resource = path if query is None else f"{path}?{query}"
    return Target(scheme, address or host, port, path, resource, address)


def _address(host: str) -> str | None:
    try:
        if host.startswith("["):
            return str(IPv6Address(host[1:-1]))
        return str(IPv4Address(host))
    except AddressValueError:
        return None


def _is_name(host: str) -> bool:
    return (
        len(host) <= _MAX_HOST
        and not host.startswith("[")
        and not _ENDS_IN_NUMBER.fullmatch(host)
        and all(0 < len(label) <= _MAX_LABEL for label in host.split("."))
    )


def _is_here(host: str, address: str | None) -> bool:
    """Say whether a host is this machine by its spelling; a name still has to resolve to it."""
    if address is None:
        return host == "localhost" or host.endswith(".localhost")  # RFC 6761 §6.3
    if ":" in address:
        return address == "::1"
    return IPv4Address(address).is_loopback
