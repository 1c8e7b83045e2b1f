"""Connections: to whom, how it is checked, and what is kept of them."""

from __future__ import annotations

import asyncio
import socket
import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from aiohttp import AddrInfoType
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from raxol_mcp.errors import Reason
from raxol_mcp.transports.http_client.connections import _pinned, _socket
from raxol_mcp.transports.http_client.dialer import HttpDialer
from raxol_mcp.transports.link import Dialect, LinkFailed
from raxol_mcp.wire.jsonrpc import Response
from tests.transports.http_client.peers import (
    Choices,
    Peer,
    Port,
    Seen,
    Wire,
    dialed,
    result_line,
    stateless_call,
)


async def echo(seen: Seen, wire: Wire) -> None:
    await wire.result(seen)


async def here(_host: str, _port: int) -> list[str]:
    return ["127.0.0.1"]


async def outcome(link_and_port: tuple[object, Port], key: int = 7) -> object:
    _, port = link_and_port
    await port.until(lambda: any(of == key for _, of, _ in port.told))
    return next(value for _, of, value in port.told if of == key)


# --- TLS --------------------------------------------------------------------------------------


class Authority:
    """A certificate authority of its own, and the certificates it signs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
        self._certificate = (
            self._builder(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )

    def trust(self) -> ssl.SSLContext:
        """Return what a client that knows this authority checks with."""
        pem = self._certificate.public_bytes(Encoding.PEM).decode()
        return ssl.create_default_context(cadata=pem)

    def server(self, name: str, *, expired: bool = False) -> ssl.SSLContext:
        """Return what a server with this name shows."""
        key = ec.generate_private_key(ec.SECP256R1())
        known = x509.IPAddress(ip_address(name)) if name[0].isdigit() else x509.DNSName(name)
        certificate = (
            self._builder(x509.Name([]), key.public_key(), days=-1 if expired else 2)
            .add_extension(x509.SubjectAlternativeName([known]), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        place = self._folder / "server.pem"
        place.write_bytes(
            certificate.public_bytes(Encoding.PEM)
            + key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(place)
        return context

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, *, days: int = 2
    ) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=3))
            .not_valid_after(now + timedelta(days=days))
        )


@pytest.mark.parametrize(
    ("name", "trusted", "expired", "works"),
    [
        ("mcp.example.com", True, False, True),
        ("other.example.com", True, False, False),  # the name is not the server's
        ("mcp.example.com", False, False, False),  # nobody knows who signed it
        ("mcp.example.com", True, True, False),
        ("127.0.0.1", True, False, False),  # the address that was dialled is not the name
    ],
)
def test_a_certificate_has_to_be_trusted_and_of_the_name(
    tmp_path: Path, name: str, trusted: bool, expired: bool, works: bool
) -> None:
    """Check 59: SNI and certificate go by the name, whatever address is dialled"""
    authority = Authority(tmp_path)
    choices: Choices = {"resolver": here, "headers": {"X-Key": "SECRET"}}
    if trusted:
        choices["ssl_context"] = authority.trust()
    names: list[str | None] = []
    server = authority.server(name, expired=expired)
    server.sni_callback = lambda _socket, asked, _context: names.append(asked)

    async def main() -> None:
        async with Peer(echo, ssl=server) as peer:
            url = f"https://mcp.example.com:{peer.port}/mcp"
            async with dialed(url, **choices) as both:
                both[0].send(stateless_call(7), 7)
                told = await outcome(both)
            if works:
                assert told == Response(7, {})
                assert peer.seen[0].header("host") == f"mcp.example.com:{peer.port}"
            else:
                assert isinstance(told, Reason)
                assert (told.path, told.maybe_done) == (("transport", "tls"), False)
                assert peer.seen == [], "no credential before the certificate"
        assert names == ["mcp.example.com"]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", Reason("transport", "tls")),
        (None, Reason("timeout", "connect")),
    ],
)
def test_a_server_that_speaks_no_tls_is_given_up(said: bytes | None, reason: Reason) -> None:
    """Ours: connecting is bounded, TLS included"""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if said is not None:
            writer.write(said)
        while await reader.read(1024):
            pass
        writer.close()

    async def main() -> None:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            url = f"https://localhost:{server.sockets[0].getsockname()[1]}/"
            async with dialed(
                url, resolver=here, connect_timeout=0.05 if said is None else 5.0
            ) as both:
                both[0].send(stateless_call(7), 7)
                told = await outcome(both)
            await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))
        assert told == reason
        assert isinstance(told, Reason)
        assert not told.maybe_done

    asyncio.run(main())


# --- addresses --------------------------------------------------------------------------------


def test_only_the_addresses_that_were_checked_are_dialled() -> None:
    """Check 57: whoever owns the name may answer anything else afterwards"""

    async def main() -> None:
        asked: list[str] = []

        async def resolver(host: str, _port: int) -> list[str]:
            asked.append(host)
            return ["127.0.0.1"] if len(asked) == 1 else ["127.0.0.66"]

        async with Peer(echo) as peer:
            url = f"http://rebinding.localhost:{peer.port}/mcp"
            async with dialed(url, resolver=resolver) as both:
                for key in (7, 8):
                    both[0].send(stateless_call(key), key)
                    assert await outcome(both, key) == Response(key, {})
                assert asked == ["rebinding.localhost"]
                assert peer.seen[0].header("host") == f"rebinding.localhost:{peer.port}"
            async with dialed(url, resolver=resolver) as both:
                both[0].send(stateless_call(7), 7)
                assert await outcome(both) == Reason("transport", "refused")
            assert len(asked) == 2, "every link asks anew: a server may move"

    asyncio.run(main())


def test_an_address_that_fails_is_followed_by_the_next() -> None:
    """RFC 8305"""

    async def main() -> None:
        async def resolver(_host: str, _port: int) -> list[str]:
            return ["127.0.0.66", "::1", "127.0.0.67", "127.0.0.1"]

        async with Peer(echo) as peer:
            url = f"http://localhost:{peer.port}/mcp"
            async with dialed(url, resolver=resolver) as both:
                both[0].send(stateless_call(7), 7)
                assert await outcome(both) == Response(7, {})

    asyncio.run(main())


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://127.0.0.1:1/?SECRET", Reason("blocked", "invalid_url")),
        ("https://user:SECRET@a.example/", Reason("blocked", "invalid_url")),
        ("https://2130706433/", Reason("blocked", "invalid_url")),
        ("https://127.0.0.1/?SECRET", Reason("blocked", "address")),
        ("https://[::ffff:127.0.0.1]/", Reason("blocked", "address")),
        ("https://a.example/?SECRET", Reason("blocked", "address")),
    ],
)
def test_a_target_that_may_not_be_reached_is_not_dialled(url: str, reason: Reason) -> None:
    """Checks 8 and 56: a failure of the connection, and nothing is sent"""

    async def main() -> None:
        link = HttpDialer(url, resolver=here).link(Port(), Dialect.CURRENT)
        with pytest.raises(LinkFailed) as caught:
            await link.open()
        assert caught.value.reason == reason
        assert "SECRET" not in f"{caught.value} {caught.value.reason}"
        await link.close()

    asyncio.run(main())


# --- what is kept -----------------------------------------------------------------------------


def test_a_connection_is_used_again_and_nothing_of_an_answer_is_kept() -> None:
    """Ours: no cookies; one connection for calls one after the other"""

    async def main() -> None:
        async def script(seen: Seen, wire: Wire) -> None:
            await wire.json(result_line(seen.id), headers={"Set-Cookie": "a=b"})

        async with Peer(script) as peer, dialed(peer) as both:
            for key in (7, 8, 9):
                both[0].send(stateless_call(key), key)
                await outcome(both, key)
            assert {seen.connection for seen in peer.seen} == {1}
            assert [seen.header("cookie") for seen in peer.seen] == [None] * 3

    asyncio.run(main())


def test_no_proxy_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: credentials and addresses are between the client and its server"""
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")

    async def main() -> None:
        async with Peer(echo) as peer, dialed(peer) as both:
            both[0].send(stateless_call(7), 7)
            assert await outcome(both) == Response(7, {})

    asyncio.run(main())


@pytest.mark.parametrize("kept", [True, False])
def test_no_connection_over_tls_outlives_its_link(tmp_path: Path, kept: bool) -> None:
    """K20: a peer that says no goodbye must not keep a descriptor open"""
    authority = Authority(tmp_path)
    server = authority.server("localhost")

    async def script(seen: Seen, wire: Wire) -> None:
        if kept:
            await wire.result(seen)
        else:
            await wire.events()
            await wire.gone()

    async def main() -> None:
        async with Peer(script, ssl=server) as peer:
            url = f"https://localhost:{peer.port}/mcp"
            choices: Choices = {"resolver": here, "ssl_context": authority.trust()}
            async with dialed(url, **choices) as (link, port):
                for key in range(20):
                    link.send(stateless_call(key), key)
                if kept:
                    await port.next(20)
                else:
                    await peer.until(lambda: len(peer.seen) == 20)
                    for key in range(10):
                        link.abort(key)
                    await peer.until(lambda: peer.left == 10)
            await peer.until(lambda: peer.left == peer.connections)
            assert len(asyncio.all_tasks()) == 1

    # What is left would be found by the collector, which the tests make an error.
    asyncio.run(main())


def test_a_literal_address_is_dialled_as_it_was_read() -> None:
    """Ours: no resolver is asked, and IPv6 has its brackets in Host"""

    async def never(_host: str, _port: int) -> list[str]:
        raise AssertionError

    async def main() -> None:
        try:
            peer = Peer(echo, host="::1")
            await peer.__aenter__()
        except OSError:
            pytest.skip("no IPv6 here")
        try:
            url = f"http://[0:0::1]:{peer.port}/mcp"
            async with dialed(url, resolver=never) as both:
                both[0].send(stateless_call(7), 7)
                assert await outcome(both) == Response(7, {})
                assert peer.seen[0].header("host") == f"[::1]:{peer.port}"
        finally:
            await peer.__aexit__()

    asyncio.run(main())


def test_no_other_host_is_ever_resolved() -> None:
    """Ours: a redirect that was followed all the same would find no address"""

    async def main() -> None:
        pinned = _pinned()("a.example", ["93.184.216.34"])
        assert [found["host"] for found in await pinned.resolve("a.example", 443)] == [
            "93.184.216.34"
        ]
        with pytest.raises(OSError, match="one host"):
            await pinned.resolve("evil.example", 443)

    asyncio.run(main())


def test_a_connection_notices_that_its_peer_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: the system asks for it, because a stream may be silent for hours"""
    made: list[socket.socket] = []

    def noted(address: AddrInfoType) -> socket.socket:
        made.append(_socket(address))
        return made[-1]

    monkeypatch.setattr("raxol_mcp.transports.http_client.connections._socket", noted)

    async def main() -> None:
        async with Peer(echo) as peer, dialed(peer) as both:
            both[0].send(stateless_call(7), 7)
            assert await outcome(both) == Response(7, {})
            (one,) = made
            assert one.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)

    asyncio.run(main())
