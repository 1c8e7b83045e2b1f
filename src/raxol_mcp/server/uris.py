"""URIs of resources: which text is one, and its one spelling.

Judges and spells; takes nothing apart and opens nothing.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["SCHEME", "ascii_uri", "bad_character", "uri_problem"]

# Compiled at their first use and kept by `re`: a server that starts without resources has none.
SCHEME: Final = r"[A-Za-z][A-Za-z0-9+.\-]*:"

# RFC 3986 §2: what no URI holds anywhere. Letters beyond ASCII are judged apart: an expression
# that knows them takes milliseconds to compile.
_BAD: Final = r"[^!#$&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~%]|%(?![0-9A-Fa-f]{2})"
_BEYOND_ASCII: Final = r"[^\x00-\x7f]+"


def ascii_uri(uri: str) -> str:
    """Spell a URI with letters beyond ASCII as clients that know only RFC 3986 do.

    They are percent-encoded as UTF-8 (RFC 3987 §3.1); everything else stays as it is, so a URI in
    ASCII is its own spelling.
    """
    if uri.isascii():
        return uri
    return re.sub(
        _BEYOND_ASCII,
        # Half a surrogate pair is no character; it becomes an escape that is not UTF-8.
        lambda part: "".join(f"%{byte:02X}" for byte in part[0].encode("utf-8", "surrogatepass")),
        uri,
    )


def bad_character(text: str) -> str | None:
    """Return something in `text` that no URI may hold, or None."""
    if not text.isascii():
        for character in text:
            # Blanks, controls and half pairs: nothing that is a letter to anybody.
            if character > "\x7f" and not character.isprintable():
                return character
    bad = re.search(_BAD, ascii_uri(text))
    return None if bad is None else bad[0]


def uri_problem(uri: str) -> str | None:
    """Say why `uri` cannot be the URI of a resource, or None."""
    scheme = re.match(SCHEME, uri)
    if scheme is None:
        return "it must begin with a scheme, like file: or mem:"
    if scheme.end() == len(uri):
        return "nothing follows the scheme"
    bad = bad_character(uri)
    if bad is not None:
        if bad in "{}":
            return "it holds braces: use a resource template"
        return f"{bad!r} must be percent-encoded"
    return _structure_problem(uri[scheme.end() :])


def _structure_problem(rest: str) -> str | None:
    """Judge what follows the scheme by RFC 3986 §3, each character being one of a URI's."""
    authority = ""
    if rest.startswith("//"):
        ends = [at for at in (rest.find(delimiter, 2) for delimiter in "/?#") if at >= 0]
        end = min(ends, default=len(rest))
        authority, rest = rest[2:end], rest[end:]
    user, _, host = authority.rpartition("@")
    address, port = "", ""
    if host.startswith("["):
        address, closed, port = host.partition("]")
        address, host = (address, "") if closed else ("", address)
    elif ":" in host:
        host, _, port = host.partition(":")
        port = ":" + port
    if port.strip("0123456789") not in ("", ":") or (port and port[0] != ":"):
        return "its port is no number"
    if "@" in user or rest.count("#") > 1:
        return "it has a delimiter twice: percent-encode @ and #"
    if any(bracket in part for part in (user, host, rest) for bracket in "[]"):
        return "brackets must be percent-encoded"
    if address and not _is_address(address[1:]):
        return "what is in brackets is no IPv6 address"
    return None


def _is_address(text: str) -> bool:
    from ipaddress import IPv6Address  # rare, and not worth loading at every start

    try:
        IPv6Address(text)
    except ValueError:
        return False
    return True
