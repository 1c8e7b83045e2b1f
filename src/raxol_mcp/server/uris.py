"""URIs of resources: which text is one, and its one spelling.

Judges and spells; takes nothing apart and opens nothing.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["SCHEME", "ascii_uri", "bad_character", "uri_problem"]

SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")

# RFC 3986 §2: what no URI holds anywhere. Letters beyond ASCII are spelt as escapes first.
_BAD = re.compile(r"[^!#$&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~%\u00a0-\uffff\U00010000-\U0010ffff]")
_BAD_TOO = re.compile(r"[\s\ud800-\udfff]|%(?![0-9A-Fa-f]{2})")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")

# RFC 3986 §3, for what SCHEME and bad_character let through.
_NAME = r"(?:[A-Za-z0-9\-._~!$&'()*+,;=]|%[0-9A-Fa-f]{2})"
_URI = re.compile(
    rf"{SCHEME.pattern}"
    rf"(?://(?:(?:{_NAME}|:)*@)?(?:\[(?P<address>[0-9A-Fa-f.:]+)\]|{_NAME}*)(?::[0-9]*)?(?=[/?#]|\Z)|(?!//))"
    rf"(?:{_NAME}|[:@/])*"
    rf"(?:\?(?:{_NAME}|[:@/?])*)?"
    rf"(?:\#(?:{_NAME}|[:@/?])*)?"
)


def ascii_uri(uri: str) -> str:
    """Spell a URI with letters beyond ASCII as clients that know only RFC 3986 do.

    They are percent-encoded as UTF-8 (RFC 3987 §3.1); everything else stays as it is, so a URI in
    ASCII is its own spelling.
    """
    if uri.isascii():
        return uri
    return _BEYOND_ASCII.sub(
        # Half a surrogate pair is no character; it becomes an escape that is not UTF-8.
        lambda part: "".join(f"%{byte:02X}" for byte in part[0].encode("utf-8", "surrogatepass")),
        uri,
    )


def bad_character(text: str) -> str | None:
    """Return the first thing in `text` that no URI may hold, or None."""
    bad = _BAD.search(text) or _BAD_TOO.search(text)
    return None if bad is None else bad[0]


def uri_problem(uri: str) -> str | None:
    """Say why `uri` cannot be the URI of a resource, or None."""
    scheme = SCHEME.match(uri)
    if scheme is None:
        return "it must begin with a scheme, like file: or mem:"
    if scheme.end() == len(uri):
        return "nothing follows the scheme"
    bad = bad_character(uri)
    if bad is not None:
        if bad in "{}":
            return "it holds braces: use a resource template"
        return f"{bad!r} must be percent-encoded"
    parsed = _URI.fullmatch(ascii_uri(uri))
    if parsed is None or (parsed["address"] and not _is_address(parsed["address"])):
        return "it does not follow RFC 3986: brackets, a second # or a port that is no number"
    return None


def _is_address(text: str) -> bool:
    from ipaddress import IPv6Address  # rare, and not worth loading at every start

    try:
        IPv6Address(text)
    except ValueError:
        return False
    return True
