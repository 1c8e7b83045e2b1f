"""The one reading of a server's URL."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_mcp.transports.http_client.target import parse_target


@pytest.mark.parametrize(
    ("url", "origin", "resource"),
    [
        ("https://mcp.example.com", "https://mcp.example.com:443", "/"),
        ("HTTPS://MCP.Example.COM/Mcp", "https://mcp.example.com:443", "/Mcp"),
        (
            "https://mcp.example.com:8443/a/b?x=1&y=%20",
            "https://mcp.example.com:8443",
            "/a/b?x=1&y=%20",
        ),
        ("https://mcp.example.com?x", "https://mcp.example.com:443", "/?x"),
        ("https://mcp.example.com/mcp#part", "https://mcp.example.com:443", "/mcp"),
        ("https://93.184.216.34/mcp", "https://93.184.216.34:443", "/mcp"),
        ("https://[2606:4700:0:0::1]/mcp", "https://[2606:4700::1]:443", "/mcp"),
        ("https://xn--bcher-kva.example/", "https://xn--bcher-kva.example:443", "/"),
        ("https://my_host/", "https://my_host:443", "/"),
    ],
)
def test_a_url_is_taken_apart(url: str, origin: str, resource: str) -> None:
    """RFC 3986 §3; scheme and host are compared without case."""
    target = parse_target(url, allow_private=False)
    assert target is not None
    assert (target.origin, target.resource) == (origin, resource)
    assert target.url == origin + resource
    assert target.path == resource.partition("?")[0]


@pytest.mark.parametrize(
    "url",
    [
        "",
        "mcp.example.com",
        "//mcp.example.com/",
        "ftp://mcp.example.com/",
        "javascript:1",
        "https://",
        "https:///mcp",
        "https:mcp.example.com",
        "https://user@mcp.example.com/",
        "https://user:secret@mcp.example.com/",
        "https://mcp.example.com\\@evil.example/",
        "https://mcp.example.com:0/",
        "https://mcp.example.com:65536/",
        "https://mcp.example.com:443:443/",
        "https://mcp.example.com:/",
        "https://mcp.example.com/a b",
        "https://mcp.example.com/\r\nHost: evil.example",
        " https://mcp.example.com/",
        "https://mcp.example.com/\u00e9",
        "https://b\u00fccher.example/",
        "https://127.0.0.1\u3002example/",
        "https://a..b/",
        "https://mcp.example.com./",
        f"https://{'a' * 64}.example/",
        f"https://{'a.' * 130}example/",
        "https://mcp.example.com/" + "a" * 8192,
        "https://[::1/",
        "https://[fe80::1%25eth0]/",
        "https://[fe80::1%eth0]/",
        "https://[1.2.3.4]/",
        None,
        b"https://mcp.example.com/",
    ],
)
def test_what_is_not_plainly_a_url_is_refused(url: object) -> None:
    """Ours: one strict reading, so that no two readers take it for different hosts."""
    assert parse_target(url, allow_private=True) is None


@pytest.mark.parametrize(
    "host",
    [
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "017700000001",
        "0177.0.0.1",
        "127.1",
        "127.0.1",
        "127.0.0.01",
        "127.0.0.1.",
        "127.0.0.256",
        "1.2.3.4.5",
        "example.0x1",
        "example.1",
        "0x",
    ],
)
def test_an_address_has_one_spelling(host: str) -> None:
    """WHATWG URL §3.5: a resolver may take each of these for an address."""
    assert parse_target(f"https://{host}/", allow_private=True) is None


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8000/mcp",
        "http://127.9.9.9/",
        "http://[::1]:8000/mcp",
        "http://localhost/mcp",
        "http://dev.localhost/mcp",
    ],
)
def test_plain_http_is_for_this_machine_and_only_if_allowed(url: str) -> None:
    """client: plain http is allowed to loopback with allow_private."""
    target = parse_target(url, allow_private=True)
    assert target is not None
    assert target.plain
    assert parse_target(url, allow_private=False) is None


@pytest.mark.parametrize(
    "url",
    ["http://10.0.0.1/", "http://mcp.example.com/", "http://localhost.example/", "http://[::2]/"],
)
def test_plain_http_to_elsewhere_is_refused(url: str) -> None:
    """MCP security best practices: https but for loopback."""
    assert parse_target(url, allow_private=True) is None


@given(st.text(max_size=60))
def test_no_text_breaks_the_reading(text: str) -> None:
    """Ours"""
    for url in (text, f"https://{text}", f"https://a.example/{text}"):
        target = parse_target(url, allow_private=True)
        assert target is None or parse_target(target.url, allow_private=True) == target
