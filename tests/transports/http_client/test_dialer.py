"""How to reach a server: what is shown, and what is remembered."""

from __future__ import annotations

import subprocess
import sys

import pytest

from raxol_mcp.errors import NoHttpClient
from raxol_mcp.transports.http_client import dialer
from raxol_mcp.transports.http_client.dialer import HttpDialer, has_http_client
from raxol_mcp.transports.link import Dialect
from tests.transports.http_client.peers import Port


def test_no_secret_is_shown() -> None:
    """Check 63: of the URL the origin and the path, of the headers their names"""
    shown = HttpDialer(
        "https://mcp.example.com/mcp?key=SECRET",
        headers={"Authorization": "SECRET", "X-A": "SECRET"},
    )
    assert repr(shown) == (
        "HttpDialer('https://mcp.example.com:443/mcp', "
        "headers={'Authorization': '[redacted]', 'X-A': '[redacted]'})"
    )
    odd = HttpDialer("https://user:SECRET@a.example/", headers={"Authorization: SECRET": "x"})
    assert repr(odd) == "HttpDialer(an invalid URL, headers={})"
    link = odd.link(Port(), Dialect.CURRENT)
    assert "SECRET" not in repr(link)
    assert "SECRET" not in repr(shown._options)


def test_a_verdict_is_about_an_origin_and_a_path() -> None:
    """Check 12: without query; the port always"""
    one = HttpDialer("https://Mcp.Example.com/mcp?a=1", headers={"X": "1"})
    other = HttpDialer("https://mcp.example.com:443/mcp")
    assert one.verdict_key == other.verdict_key == ("http", "https://mcp.example.com:443", "/mcp")
    assert HttpDialer("https://mcp.example.com/other").verdict_key != one.verdict_key
    assert HttpDialer("https://user:SECRET@a.example/").verdict_key == ("http", "", "")


def test_what_kind_of_transport_it_is() -> None:
    """`Dialer`; MCP 2026-07-28 streamable-http: a closed stream cancels"""
    made = HttpDialer("https://a.example/")
    assert made.kind == "http"
    assert made.closing_cancels


def test_the_headers_are_those_of_the_moment() -> None:
    """Ours: changing the mapping afterwards changes nothing"""
    headers = {"A": "1"}
    made = HttpDialer("https://a.example/", headers=headers)
    headers["B"] = "2"
    assert "B" not in repr(made)


def test_without_the_library_there_is_no_dialer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check 6"""
    assert has_http_client()
    monkeypatch.setattr(dialer, "find_spec", lambda _name: None)
    assert not has_http_client()
    with pytest.raises(NoHttpClient, match="aiohttp"):
        HttpDialer("https://a.example/")


@pytest.mark.slow
def test_the_library_is_not_imported_before_a_link_opens() -> None:
    """Ours: it takes a third of a second"""
    program = (
        "import sys\n"
        "from raxol_mcp.transports.http_client.dialer import HttpDialer\n"
        "from raxol_mcp.transports.link import Dialect\n"
        "HttpDialer('https://a.example/').link(None, Dialect.CURRENT)\n"
        "assert not {'aiohttp', 'yarl', 'email', 'http.client'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
