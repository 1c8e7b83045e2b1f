"""Which addresses may be dialled."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_mcp.errors import Reason
from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.transports.http_client import addresses
from raxol_mcp.transports.http_client.addresses import (
    MAX_ADDRESSES,
    RESOLVE_TIMEOUT,
    is_loopback,
    is_public,
    system_resolver,
    vetted,
)
from raxol_mcp.transports.http_client.target import Target, parse_target
from raxol_mcp.transports.link import LinkFailed

PUBLIC = "93.184.216.34"
V4 = st.integers(0, 2**32 - 1).map(IPv4Address)


def target(url: str, *, allow_private: bool = True) -> Target:
    found = parse_target(url, allow_private=allow_private)
    assert found is not None
    return found


def reason_of(url: str, answers: Sequence[str], *, allow_private: bool = False) -> Reason:
    async def resolver(_host: str, _port: int) -> Sequence[str]:
        return answers

    async def main() -> None:
        await vetted(target(url), resolver=resolver, allow_private=allow_private)

    with pytest.raises(LinkFailed) as caught:
        run_virtual(main)
    return caught.value.reason


def embeddings(v4: IPv4Address) -> list[str]:
    """Return every IPv6 address that only stands for an IPv4 address."""
    bits = int(v4)
    return [
        str(IPv6Address(value))
        for value in (
            bits,  # ::a.b.c.d
            0xFFFF << 32 | bits,  # ::ffff:a.b.c.d
            0xFFFF << 48 | bits,  # ::ffff:0:a.b.c.d
            0x64FF9B << 96 | bits,  # 64:ff9b::a.b.c.d
            0x2002 << 112 | bits << 80 | 0x1234,  # 6to4
            0x2606_4700 << 96 | 0x5EFE << 32 | bits,  # ISATAP
            0x2606_4700 << 96 | 0x0200_5EFE << 32 | bits,
        )
    ]


@pytest.mark.parametrize(
    "address",
    [
        *("0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255"),
        *("127.0.0.1", "127.255.255.255", "169.254.169.254", "172.16.0.1", "172.31.255.255"),
        *("192.0.0.1", "192.0.0.255", "192.0.2.1", "192.88.99.1", "192.168.0.1", "198.18.0.1"),
        *("198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255"),
        *("240.0.0.1", "255.255.255.255"),
        *("::", "::1", "fc00::1", "fdff::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1"),
        *("100::1", "2001::1", "2001:0:1:2::3", "2001:1ff::1", "2001:db8::1", "3fff::1"),
        *("5f00::1", "64:ff9b:1::808:808", "64:ff9b:1:7f00:0:100:808:808", "4000::1", "1::1"),
        *("", "localhost", "1.2.3", "01.2.3.4", "1.2.3.4 ", "[::1]", "2130706433"),
    ],
)
def test_an_address_that_not_everybody_may_reach_is_not_public(address: str) -> None:
    """RFC 6890 and its registries; what is no address is not one."""
    assert not is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        *("1.1.1.1", PUBLIC, "100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.0"),
        *("192.0.1.1", "192.0.3.1", "198.17.255.255", "198.20.0.0", "223.255.255.255"),
        *("2606:4700::1111", "2001:200::1", "2001:4860:4860::8888", "2a00::1", "3ffe::1"),
    ],
)
def test_other_addresses_are_public(address: str) -> None:
    """RFC 6890: the neighbours of what is special are not."""
    assert is_public(address)


@given(V4)
def test_an_address_inside_another_is_what_counts(v4: IPv4Address) -> None:
    """RFC 4291 §2.5.5, RFC 6052, RFC 3056, RFC 5214"""
    assert [is_public(text) for text in embeddings(v4)] == [is_public(str(v4))] * 7


@given(V4)
def test_the_standard_library_calls_nothing_private_that_is_public_here(v4: IPv4Address) -> None:
    """An oracle that others wrote: ours refuses at least as much."""
    if is_public(str(v4)):
        assert v4.is_global
        assert not v4.is_multicast


@given(st.integers(0, 2**128 - 1).map(IPv6Address))
def test_so_it_does_for_ipv6(v6: IPv6Address) -> None:
    """As above; what stands for an IPv4 address is judged by that."""
    if is_public(str(v6)) and str(v6) not in embeddings(IPv4Address(int(v6) & 0xFFFFFFFF)):
        assert v6.is_global or v6.sixtofour is not None
        assert not v6.is_multicast


def test_loopback_is_this_machine_however_it_is_written() -> None:
    """RFC 6890; RFC 4291 §2.5.5.2"""
    assert all(map(is_loopback, ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"]))
    assert not any(map(is_loopback, ["10.0.0.1", "::2", "::ffff:10.0.0.1", "localhost", ""]))


def test_the_answers_are_kept_in_order_without_repetition_and_bounded() -> None:
    """Ours"""
    many = [f"93.184.216.{last}" for last in range(MAX_ADDRESSES + 5)]

    async def resolver(host: str, port: int) -> list[str]:
        assert (host, port) == ("a.example", 8443)
        return [PUBLIC, *many, PUBLIC]

    async def main() -> None:
        found = await vetted(
            target("https://a.example:8443/"), resolver=resolver, allow_private=False
        )
        assert found == tuple(dict.fromkeys([PUBLIC, *many]))[:MAX_ADDRESSES]

    run_virtual(main)


@pytest.mark.parametrize(
    "private", ["127.0.0.1", "::ffff:10.0.0.1", "2002:a00:1::", "fe80::1%1", "x"]
)
def test_one_refused_address_refuses_the_name(private: str) -> None:
    """Check 56: a name that leads to a public and to a private address"""
    for answers in ([PUBLIC, private], [private, PUBLIC], [private]):
        reason = reason_of("https://a.example/", answers)
        assert reason == Reason("blocked", "address")
        assert "a.example" not in str(reason)


def test_a_refused_address_beyond_the_bound_refuses_too() -> None:
    """Ours: all are checked, before a part of them is kept"""
    many = [f"93.184.216.{last}" for last in range(100)]
    assert reason_of("https://a.example/", [*many, "10.0.0.1"]) == Reason("blocked", "address")


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "169.254.169.254", "[64:ff9b::7f00:1]"])
def test_a_literal_is_checked_without_a_resolver(host: str) -> None:
    """Check 56"""
    assert reason_of(f"https://{host}/", []) == Reason("blocked", "address")


def test_private_addresses_may_be_allowed_but_not_what_is_none() -> None:
    """client: allow_private"""

    async def resolver(_host: str, _port: int) -> list[str]:
        return ["10.0.0.1", "::1"]

    async def main() -> None:
        where = target("https://a.example/")
        assert await vetted(where, resolver=resolver, allow_private=True) == ("10.0.0.1", "::1")

    run_virtual(main)
    refused = reason_of("https://a.example/", ["10.0.0.1", "nonsense"], allow_private=True)
    assert refused == Reason("blocked", "address")


def test_plain_http_needs_a_name_that_is_this_machine() -> None:
    """Ours: the spelling `localhost` is a promise that a resolver may break"""
    reason = reason_of("http://localhost/", ["127.0.0.1", "10.0.0.1"], allow_private=True)
    assert reason == Reason("blocked", "address")


def test_no_answer_an_error_and_a_late_answer_are_one_failure() -> None:
    """Check: 5 seconds for the name"""

    async def fails(_host: str, _port: int) -> list[str]:
        raise OSError("secret.example does not exist")

    async def hangs(_host: str, _port: int) -> list[str]:
        await asyncio.Event().wait()
        raise AssertionError

    async def main() -> None:
        for resolver in (fails, hangs):
            began = asyncio.get_running_loop().time()
            with pytest.raises(LinkFailed) as caught:
                await vetted(target("https://a.example/"), resolver=resolver, allow_private=False)
            assert caught.value.reason == Reason("dns_failed")
            waited = asyncio.get_running_loop().time() - began
            assert waited == (0 if resolver is fails else RESOLVE_TIMEOUT)

    run_virtual(main)
    assert reason_of("https://a.example/", []) == Reason("dns_failed")


def test_the_system_resolves_names_of_this_machine() -> None:
    """Ours"""

    async def main() -> None:
        assert set(await system_resolver("localhost", 80)) <= {"127.0.0.1", "::1"}
        with pytest.raises(OSError, match="does not resolve"):
            await system_resolver(f"{'a' * 64}.invalid", 80)

    asyncio.run(main())


def test_a_lookup_that_hangs_keeps_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: neither the one who gave up, nor the end of the loop"""
    going_on, done = threading.Event(), threading.Event()

    def hangs(_host: str, _port: int) -> list[str]:
        going_on.wait(10)
        done.set()
        return ["127.0.0.1"]

    monkeypatch.setattr(addresses, "_look_up", hangs)

    async def main() -> None:
        waiting = asyncio.create_task(system_resolver("localhost", 80))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        again = asyncio.create_task(system_resolver("localhost", 80))
        await asyncio.sleep(0)
        again.cancel()

    asyncio.run(main())
    going_on.set()
    assert done.wait(10)
