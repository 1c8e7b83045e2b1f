"""URIs of resources: which text is one, and its one spelling."""

from __future__ import annotations

from urllib.parse import quote, unquote

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_mcp.server.uris import ascii_uri, bad_character, uri_problem


@pytest.mark.parametrize(
    "uri",
    [
        "mem://a",
        "mem:a",
        "mem://测试",
        "mem://🙂",
        "urn:x:y",
        "a+b-c.d:x",
        "mem://%E6",
        "x://u:p@h:80/a?b/?#c?/",
        "http://[::1]:8080/",
        "file:///a",
        "mailto:a@b",
        "x:?",
        "x:#",
    ],
)
def test_a_uri_has_a_scheme_and_follows_rfc_3986(uri: str) -> None:
    assert uri_problem(uri) is None


@pytest.mark.parametrize(
    ("uri", "why"),
    [
        ("", "begin with a scheme"),
        ("a/b", "begin with a scheme"),
        ("://a", "begin with a scheme"),
        ("1a://x", "begin with a scheme"),
        ("é://x", "begin with a scheme"),
        ("mem:", "nothing follows"),
        ("mem://a b", "percent-encoded"),
        ("mem://a\n", "percent-encoded"),
        ("mem://a\0", "percent-encoded"),
        ("mem://a\x85", "percent-encoded"),
        ("mem://a\u3000b", "percent-encoded"),
        ("mem://a\\b", "percent-encoded"),
        ("mem://\ud800", "percent-encoded"),
        ("mem://a%g0", "percent-encoded"),
        ("mem://a%", "percent-encoded"),
        ("mem://{a}", "use a resource template"),
        ("mem://a#b#c", "twice"),
        ("mem://a@b@c", "twice"),
        ("mem://a/[b]", "brackets must"),
        ("mem://[b]c@d", "brackets must"),
        ("mem://b]", "brackets must"),
        ("mem://a:port", "port"),
        ("mem://a:1:2", "port"),
        ("http://[::1]x", "port"),
        ("http://[::1", "brackets must"),
        ("mem:///x//y", None),
        ("mem://a:", None),
        ("mem:////a", None),
        ("http://[1]/", "IPv6"),
        ("http://[zz]/", "IPv6"),
    ],
)
def test_what_is_no_uri_says_why(uri: str, why: str | None) -> None:
    problem = uri_problem(uri)
    if why is None:
        assert problem is None
    else:
        assert problem is not None
        assert why in problem


@given(st.text("ab1.:/?#[]@!$&'()*+,;=%-_~ é{}", max_size=12).map("x:".__add__))
def test_what_is_accepted_passes_a_validator_of_the_uri_format(uri: str) -> None:
    """MCP 2024-11-05 to 2025-06-18 declare `format: uri` in a draft that asserts formats."""
    validator = jsonschema_rs.validator_for({"format": "uri"}, validate_formats=True)
    if uri_problem(uri) is None:
        assert validator.is_valid(ascii_uri(uri))


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_the_ascii_spelling_decodes_to_the_same_text(text: str) -> None:
    uri = "mem://" + text
    assert ascii_uri(uri).isascii()
    assert ascii_uri(ascii_uri(uri)) == ascii_uri(uri)
    assert unquote(ascii_uri(uri)) == unquote(uri)
    if "%" not in text:
        assert ascii_uri(uri) == quote(uri, safe="".join(map(chr, range(128))))


def test_half_a_surrogate_pair_is_spelt_without_a_crash() -> None:
    assert ascii_uri("mem://\ud800") == "mem://%ED%A0%80"


def test_the_first_bad_character_is_named() -> None:
    assert bad_character("mem://ok") is None
    assert bad_character("a b<c") == " "
    assert bad_character("%zz") == "%"
