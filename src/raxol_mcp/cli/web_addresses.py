"""Addresses that a server wants a person to visit: what to show of one, and opening it.

Which may be shown at all is for `raxol_mcp.client.answers.is_web_address` to say. What is shown,
agreed to and opened is one string.
"""

from __future__ import annotations

import asyncio
import re
import sys
from typing import Final

from raxol_mcp.client.answers import is_web_address
from raxol_mcp.wire.values import Value

__all__ = ["Address", "BadAddress", "address_of", "open_in_browser"]

# So that a person can read all of it.
_MAX_LENGTH: Final = 2_000
_NUMBER: Final = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)(?:\.(?:0x[0-9a-f]*|[0-9]+))*\.?")

_OPENER: Final = "import sys, webbrowser; sys.exit(not webbrowser.open(sys.argv[1]))"
# A browser that runs in the foreground ends when the person closes it.
_OPENING_TIMEOUT: Final = 10.0


class BadAddress(Exception):
    """An address that is not opened whoever agrees; the message says why, without the address."""


class Address(Value, frozen=True):
    """An address that may be opened: `host` is its site, `warnings` are sentences."""

    url: str
    host: str
    warnings: tuple[str, ...] = ()


def address_of(url: str) -> Address:
    """Judge an address of a server. Raises `BadAddress`.

    MCP 2025-11-25 client/elicitation §Security: show the whole URL and its domain, and warn of
    punycode.
    """
    from urllib.parse import urlsplit

    if not is_web_address(url):
        raise BadAddress("it wants to open what is no web address")
    if len(url) > _MAX_LENGTH:
        raise BadAddress(f"it wants to open an address of more than {_MAX_LENGTH:,} characters")
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        raise BadAddress("it wants to open what is no web address") from None
    return Address(url, host, _warnings(host))


async def open_in_browser(address: Address) -> bool:
    """Show an address in the person's browser; False when none could be started.

    `webbrowser` is run in a process of its own: a browser that writes to stdout would write into
    the result. The address is one argument there, and no shell is involved.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-c", _OPENER, address.url),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for this command, not for the browser
    )
    try:
        return await asyncio.wait_for(process.wait(), _OPENING_TIMEOUT) == 0
    except TimeoutError:
        return True


def _warnings(host: str) -> tuple[str, ...]:
    if ":" in host or _NUMBER.fullmatch(host):
        return ("this is a numeric address, not the name of a site",)
    if any(label.startswith("xn--") for label in host.split(".")):
        return ("this name is in punycode: it may be made to look like another site's",)
    return ()
