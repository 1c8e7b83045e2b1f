"""server/secure_urls.py: one strict reading of an address, and https for everything remote."""

import pytest

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.server.secure_urls import SecureUrl, secure_url


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://mcp.example.com", SecureUrl("https://mcp.example.com", "", None)),
        ("https://mcp.example.com/", SecureUrl("https://mcp.example.com", "/", None)),
        ("HTTPS://MCP.Example.com/Mcp", SecureUrl("https://mcp.example.com", "/Mcp", None)),
        ("https://h:443/a", SecureUrl("https://h", "/a", None)),
        ("https://h:8443/a/b", SecureUrl("https://h:8443", "/a/b", None)),
        ("https://h/k?p=a%20b", SecureUrl("https://h", "/k", "p=a%20b")),
        ("https://h?p", SecureUrl("https://h", "", "p")),
        ("https://[2001:db8::1]:1/a", SecureUrl("https://[2001:db8::1]:1", "/a", None)),
        ("http://localhost:8000/mcp", SecureUrl("http://localhost:8000", "/mcp", None)),
        ("http://localhost:80", SecureUrl("http://localhost", "", None)),
        ("http://127.0.0.1:9797", SecureUrl("http://127.0.0.1:9797", "", None)),
        ("http://127.1.2.3", SecureUrl("http://127.1.2.3", "", None)),
        ("http://[::1]:80/x", SecureUrl("http://[::1]", "/x", None)),
    ],
)
def test_an_address_has_one_spelling(url: str, expected: SecureUrl) -> None:
    """RFC 3986 §6.2.2.1 and §6.2.3; RFC 9728 §7.7: https, except on this machine."""
    assert secure_url(url, what="the address") == expected


@pytest.mark.parametrize(
    "url",
    [
        "http://mcp.example.com",
        "http://localhost.evil.example",
        "http://127.0.0.1.evil.example",
        "http://127.0.0.1evil",
        "http://0.0.0.0",
        "http://[::2]",
        "http://10.0.0.1",
    ],
)
def test_plain_http_stays_on_this_machine(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"the address must be https: .* is not this"):
        secure_url(url, what="the address")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "mcp.example.com",
        "//mcp.example.com",
        "ftp://h",
        "file:///etc/passwd",
        "data:text/plain,x",
        "javascript:alert(1)",
        "https://",
        "https:///a",
        "https://h#f",
        "https://h/a#",
        "https://user@h",
        "https://localhost@evil.example",
        "http://localhost\\@evil.example",
        "https://h:port",
        "https://h:",
        "https://h:123456",
        "https://h/a b",
        "https://h/ü",
        "https://bücher.example",
        "https://-h",
        "https://h.",
        'https://h/"',
        "https://h\n",
        " https://h",
        "https://h/\r\nX-Evil: 1",
        None,
        b"https://h",
    ],
)
def test_what_could_be_read_in_two_ways_is_refused(url: object) -> None:
    """ours: no thought about what another parser makes of it."""
    with pytest.raises(ConfigurationError, match="the address must be an absolute https URL"):
        secure_url(url, what="the address")


def test_the_message_shows_no_secret() -> None:
    for url in ("https://alice:s3cret@h/", "http://example.com/?token=s3cret"):
        with pytest.raises(ConfigurationError) as raised:
            secure_url(url, what="it")
        assert "s3cret" not in str(raised.value)
