"""Which addresses may be dialled, and what a host's addresses are. Dials nothing.

A URL in a configuration, or one that a server wrote, must not reach into the network it is opened
from: loopback, private networks, the metadata service of a cloud. An address is judged by what it
is, never by how it is spelled, and one that carries an IPv4 address inside is judged by that too.

Allowed is what IANA's special-purpose registries (RFC 6890) call globally reachable, and less: all
of 2001::/23 and 192.0.0.0/24 is refused, the few globally reachable services in them included.
64:ff9b:1::/48 (RFC 8215) is refused: it is for local use, and where in it the IPv4 address stands
is up to the operator.

The addresses that were checked are the ones that are dialled. A name is asked for once a link, so
that whoever owns it cannot answer one thing to the check and another to the dial (DNS rebinding).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING, Final, TypeAlias

from raxol_mcp.errors import Reason
from raxol_mcp.transports.link import LinkFailed

if TYPE_CHECKING:
    from raxol_mcp.transports.http_client.target import Target

__all__ = [
    "MAX_ADDRESSES",
    "RESOLVE_TIMEOUT",
    "Resolver",
    "is_loopback",
    "is_public",
    "system_resolver",
    "vetted",
]

Resolver: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""Give the addresses of a host, for a port, best first. Raises `OSError` when there are none."""

RESOLVE_TIMEOUT: Final = 5.0
# Of one host: all are checked, and so many at most are dialled.
MAX_ADDRESSES: Final = 8

_NOT_PUBLIC_V4: Final = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # between a provider and its customers
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local, and the metadata services of clouds
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # IETF protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays, deprecated (RFC 7526)
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)
_UNICAST_V6: Final = IPv6Network("2000::/3")  # all that is given out so far
_NOT_PUBLIC_V6: Final = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # IETF protocol assignments, Teredo among them
        "2001:db8::/32",  # documentation
        "3fff::/20",  # documentation (RFC 9637)
    )
)
# Where an IPv4 address stands inside: the network, and how far from the right.
_EMBEDDING: Final = (
    (IPv6Network("::/96"), 0),  # compatible, deprecated; `::` and `::1` are in it
    (IPv6Network("::ffff:0:0/96"), 0),  # mapped
    (IPv6Network("::ffff:0:0:0/96"), 0),  # translated (RFC 2765)
    (IPv6Network("64:ff9b::/96"), 0),  # NAT64 (RFC 6052)
    (IPv6Network("2002::/16"), 80),  # 6to4 (RFC 3056)
)
_ISATAP: Final = frozenset({0x00005EFE, 0x02005EFE})  # RFC 5214 §6.1
_V4_BITS: Final = 0xFFFFFFFF


def is_public(text: str) -> bool:
    """Say whether an address is one that anybody may reach. What is no address is not."""
    try:
        address = ip_address(text)
    except ValueError:
        return False
    return _public_v4(address) if isinstance(address, IPv4Address) else _public_v6(address)


def is_loopback(text: str) -> bool:
    """Say whether an address is this machine: 127.0.0.0/8 and `::1`, also IPv4-mapped."""
    try:
        address = ip_address(text)
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback


async def vetted(target: Target, *, resolver: Resolver, allow_private: bool) -> tuple[str, ...]:
    """Find the addresses of a target, all of which may be dialled, in the order to try them.

    Raises `LinkFailed`: `dns_failed` where there are none within `RESOLVE_TIMEOUT` seconds, and
    `blocked address` when one of them, or the host itself, may not be dialled: a name that leads
    to a public and to a private address is refused.
    """
    if target.address is not None:
        found: Sequence[str] = (target.address,)
    else:
        try:
            async with asyncio.timeout(RESOLVE_TIMEOUT):
                found = await resolver(target.host, target.port)
        except (OSError, TimeoutError, UnicodeError):
            raise LinkFailed(Reason("dns_failed")) from None
    addresses = tuple(dict.fromkeys(found))
    if not addresses:
        raise LinkFailed(Reason("dns_failed"))
    if target.plain and not all(map(is_loopback, addresses)):
        raise _blocked("plain http is for this machine alone")
    if not all(map(_is_address if allow_private else is_public, addresses)):
        raise _blocked("an address of the server is not public")
    return addresses[:MAX_ADDRESSES]


async def system_resolver(host: str, port: int) -> list[str]:
    """Ask the system, in a thread of its own.

    Not in the threads of the loop: those are few and others need them, and a lookup that hangs
    cannot be stopped. Nothing waits for such a thread, not even the end of the program.
    """
    from threading import Thread

    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[str]] = loop.create_future()

    def tell(found: list[str] | None) -> None:
        if answer.done():
            return  # nobody waits any more
        if found is None:
            answer.set_exception(OSError("the name does not resolve"))
        else:
            answer.set_result(found)

    def look_up() -> None:
        found = _look_up(host, port)
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(tell, found)

    Thread(target=look_up, name="raxol-mcp resolver", daemon=True).start()
    return await answer


def _look_up(host: str, port: int) -> list[str] | None:
    from socket import SOCK_STREAM, getaddrinfo

    try:
        # UnicodeError: a label that no name can have.
        return [str(entry[4][0]) for entry in getaddrinfo(host, port, type=SOCK_STREAM)]
    except (OSError, UnicodeError):
        return None


def _public_v4(address: IPv4Address) -> bool:
    return not any(address in network for network in _NOT_PUBLIC_V4)


def _public_v6(address: IPv6Address) -> bool:
    if address.scope_id is not None:
        return False
    bits = int(address)
    for network, shift in _EMBEDDING:
        if address in network:
            return _public_v4(IPv4Address(bits >> shift & _V4_BITS))
    if address not in _UNICAST_V6 or any(address in network for network in _NOT_PUBLIC_V6):
        return False
    if bits >> 32 & _V4_BITS in _ISATAP:
        return _public_v4(IPv4Address(bits & _V4_BITS))
    return True


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _blocked(text: str) -> LinkFailed:
    return LinkFailed(Reason("blocked", "address", text=text))
