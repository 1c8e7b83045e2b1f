"""Addresses that credentials are sent to, or named by: https, or http on this machine alone.

Judges and spells; opens nothing. One strict reading instead of a lenient one: what is not plainly
a scheme, a host, a port, a path and a query is refused, so that `http://localhost@evil.example`
and its like need no thought.
"""

from __future__ import annotations

import re
from typing import Final

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.wire.values import Value

__all__ = ["SecureUrl", "secure_url"]

_URL: Final = (
    r"(?P<scheme>https?)://"
    r"(?P<host>[a-z0-9](?:[a-z0-9.\-]*[a-z0-9])?|\[[0-9a-f:.]+\])"
    r"(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<path>(?:/[a-z0-9\-._~!$&'()*+,;=:@%]*)*)"
    r"(?:\?(?P<query>[a-z0-9\-._~!$&'()*+,;=:@%/?]*))?"
)
_LOOPBACK: Final = r"localhost|127(?:\.[0-9]{1,3}){3}|\[::1\]"
_DEFAULT_PORTS: Final = {"https": "443", "http": "80"}


class SecureUrl(Value, frozen=True):
    """An address taken apart, with scheme and host in lower case and without a default port.

    `path` begins with "/" or is empty; `query` is None without one.
    """

    origin: str
    path: str
    query: str | None


def secure_url(url: object, *, what: str) -> SecureUrl:
    """Take an address apart. Raises `ConfigurationError` that says what `what` must be.

    The message repeats no query and no user information: those may be secrets.
    """
    match = re.fullmatch(_URL, url, re.IGNORECASE) if isinstance(url, str) else None
    if match is None:
        raise ConfigurationError(
            f"{what} must be an absolute https URL in ASCII, without user name or fragment"
        )
    scheme, host, port = match["scheme"].lower(), match["host"].lower(), match["port"]
    if scheme == "http" and not re.fullmatch(_LOOPBACK, host):
        raise ConfigurationError(
            f"{what} must be https: {host} is not this machine, and plain http shows tokens to "
            "whoever is between"
        )
    if port is None or port == _DEFAULT_PORTS[scheme]:
        return SecureUrl(f"{scheme}://{host}", match["path"], match["query"])
    return SecureUrl(f"{scheme}://{host}:{port}", match["path"], match["query"])
