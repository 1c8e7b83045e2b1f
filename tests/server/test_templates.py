"""URI templates: what they match, and what never comes out of them."""

from __future__ import annotations

import posixpath
import re
import sys
from itertools import product
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.server.templates import MAX_MATCHED_CHARACTERS, Template

FOLDER = "/srv/docs"


def matched(template: str, uri: str) -> dict[str, str] | None:
    return Template(template).match(uri)


# -- what matches


@pytest.mark.parametrize(
    ("template", "uri", "expected"),
    [
        ("file:///docs/{name}", "file:///docs/a.txt", {"name": "a.txt"}),
        ("file:///docs/{name}", "file:///docs/0", {"name": "0"}),
        ("file:///docs/{name}", "file:///docs/", None),
        ("file:///docs/{name}", "file:///docs", None),
        ("file:///docs/{name}", "file:///docs/a/b", None),
        ("file:///docs/{name}", "file:///docs/a?x", None),
        ("file:///docs/{name}", "file:///docs/a#x", None),
        ("file:///docs/{name}", "file:///docs/a%20b", {"name": "a b"}),
        ("file:///docs/{name}", "file:///docs/a%3Fb%23c", {"name": "a?b#c"}),
        ("file:///docs/{name}", "file:///docs/%E6%B5%8B", {"name": "测"}),
        ("file:///docs/{name}", "file:///docs/测", {"name": "测"}),
        ("mem://测试/{a}", "mem://测试/x", {"a": "x"}),
        ("mem://测试/{a}", "mem://%E6%B5%8B%E8%AF%95/é", {"a": "é"}),
        ("mem://%E6%B5%8B%E8%AF%95/{a}", "mem://测试/%C3%A9", {"a": "é"}),
        ("file:///docs/{name}", "file:///docs/\ud800", None),
        ("file:///docs/{name}", "FILE:///docs/a", None),
        ("file:///docs/{name}", "file:///%64ocs/a", None),
        ("file:///docs/{name}", "", None),
        ("file:///docs/{name}", "file:///docs/.env", {"name": ".env"}),
        ("file:///docs/{name}", "file:///docs/a..b", {"name": "a..b"}),
        ("test://t/{id}/data", "test://t/123/data", {"id": "123"}),
        ("test://t/{id}/data", "test://t//data", None),
        ("test://t/{id}/data", "test://t/data", None),
        ("test://t/{id}/data", "test://t/1/2/data", None),
        ("r://{a}/{b}", "r://x/y", {"a": "x", "b": "y"}),
        ("r://{a}.{b}/{c}", "r://x.y.z/w", {"a": "x", "b": "y.z", "c": "w"}),
        ("r://{a}.txt/{b}", "r://x.txt.txt/y", {"a": "x.txt", "b": "y"}),
        ("r://{a}-{b}", "r://x-y-z", {"a": "x", "b": "y-z"}),
        ("r://{a}-{b}", "r://--y", {"a": "-", "b": "y"}),
        ("r://{a}-{b}", "r://x-", None),
        ("r://{a}.txt", "r://x.txt.txt", {"a": "x.txt"}),
        ("r://{a}aa{b}", "r://xaaay", {"a": "x", "b": "ay"}),
        ("s://q?a={a}&b={b}", "s://q?a=1&b=2", {"a": "1", "b": "2"}),
        ("s://q?a={a}&b={b}", "s://q?a=1&b=2&c=3", None),
        ("s://q?a={a}&b={b}", "s://q?a=1&b=2%26c=3", {"a": "1", "b": "2&c=3"}),
        ("s://{a}?b={b}", "s://x&y?b=2", {"a": "x&y", "b": "2"}),
        ("f://d/{+path}", "f://d/a/b/c", {"path": "a/b/c"}),
        ("f://d/{+path}", "f://d/a%2Fb", {"path": "a/b"}),
        ("f://d/{+path}", "f://d/a?b#c", {"path": "a?b#c"}),
        ("f://d/{+path}", "f://d/", None),
        ("f://{a}/{+path}.md", "f://x/y/z.md.md", {"a": "x", "path": "y/z.md"}),
        ("f://{+path}/{name}", "f://a/b/c", {"path": "a/b", "name": "c"}),
        ("f://{a}-{+p}-{b}", "f://1-2-3-4", {"a": "1", "p": "2-3", "b": "4"}),
        ("f://{a}-{+p}-{b}", "f://1-2", None),
        ("f://{a}-{+p}-{b}", "f://1-2-", None),
        ("f://{a}-{+p}-{b}", "f://1--2", None),
        ("f://{a}:{+p}:{b}", "f://1/2:3:4", None),
        ("f://{a}:{+p}:{b}", "f://1:2:3/4", None),
        ("file://{+path}", "file:///etc/hosts", {"path": "/etc/hosts"}),
        ("FILE://{+path}", "FILE:///etc/hosts", {"path": "/etc/hosts"}),
    ],
)
def test_what_a_template_matches(template: str, uri: str, expected: dict[str, str] | None) -> None:
    assert matched(template, uri) == expected


def test_the_variables_are_in_the_order_of_the_template() -> None:
    template = Template("r://{b}/{+a}")
    assert template.variables == ("b", "a")
    assert repr(template) == "Template('r://{b}/{+a}')"


def test_values_are_decoded_exactly_once() -> None:
    assert matched("r://{a}", "r://%2541") == {"a": "%41"}
    assert matched("r://{a}", "r://%25") == {"a": "%"}


def test_an_endless_uri_matches_nothing() -> None:
    template = Template("r://{a}")
    longest = "r://" + "x" * (MAX_MATCHED_CHARACTERS - 4)
    assert template.match(longest) is not None
    assert template.match(longest + "x") is None


# -- what never comes out

HOSTILE = [
    "../secret.txt",
    "..%2Fsecret.txt",
    "%2e%2e%2fsecret.txt",
    "%252e%252e%252fsecret.txt",
    "..%5csecret.txt",
    "..\\secret.txt",
    "%2Fetc%2Fpasswd",
    "/etc/passwd",
    "a.txt%00.png",
    "a%0d%0aHost:%20x",
    "a%C2%85b",
    "C:%5Cwin.ini",
    "C:a",
    "a.txt/../../secret.txt",
    "a.txt/%2e%2e/%2E%2E/secret.txt",
    ".",
    "..",
    "%2e",
    "%2E%2e",
    ".%2e",
    "..%20",
    "...",
    "....//secret.txt",
    "",
    "%c0%ae%c0%ae/",
    "%c0%ae%c0%ae",
    "%ED%A0%80",
    "a%ZZ",
    "a%",
    "a%2",
    "%",
    "%u002e",
    "%25%32%65",
]


@pytest.mark.parametrize("value", HOSTILE)
def test_a_hostile_value_matches_no_segment(value: str) -> None:
    """CVE-2026-32871, modelcontextprotocol/python-sdk#2353, PrefectHQ/fastmcp#4482."""
    assert matched("file:///docs/{name}", f"file:///docs/{value}") is None


@pytest.mark.parametrize("value", HOSTILE)
def test_a_hostile_value_matches_no_path(value: str) -> None:
    assert matched("file:///docs/{+path}", f"file:///docs/{value}") is None


@pytest.mark.parametrize("template", ["docs://{+path}", "http://x{+path}", "file:///{+path}"])
def test_only_a_file_uri_without_host_gives_an_absolute_path(template: str) -> None:
    base = template.removesuffix("{+path}")
    assert matched(template, base + "/etc/passwd") is None
    assert matched(template, base + "%2Fetc/passwd") is None
    assert matched(template, base + "etc/passwd") == {"path": "etc/passwd"}


def test_no_drive_letter_comes_out_where_there_are_drives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    assert matched("cells://{range}", "cells://A:C") == {"range": "A:C"}
    assert matched("file:///d/{name}", "file:///d/C:a") is None
    assert matched("file:///d/{name}", "file:///d/ab:c") == {"name": "ab:c"}
    monkeypatch.setattr(sys, "platform", "win32")
    assert matched("cells://{range}", "cells://A:C") is None


# Two spellings of everything that separates, climbs or ends, alone and in every combination.
_PARTS = ["..", ".", "/", "\\", "\0", "a", " ", "%", "C:", "\uff0e", "~"]
_SPELT = {
    part: sorted({part, quote(part, safe=""), "".join(f"%{byte:02x}" for byte in part.encode())})
    for part in _PARTS
}
_SPELLINGS = sorted({spelling for spellings in _SPELT.values() for spelling in spellings})
_TWICE = ["%252e%252e", "%252F", "%255C", "%2500"]


@pytest.mark.parametrize("variable", ["{name}", "{+name}"])
def test_no_combination_of_spellings_leaves_the_folder(variable: str) -> None:
    """Joined to a folder as posixpath and the careless join, once or twice decoded."""
    template = Template(f"docs://x/{variable}")
    for value in map("".join, product([*_SPELLINGS, *_TWICE], repeat=3)):
        values = template.match("docs://x/" + value)
        if values is None:
            continue
        name = values["name"]
        assert name == unquote(value), "decoded not exactly once"
        for reading in (name, unquote(name)):
            path = posixpath.normpath(posixpath.join(FOLDER, reading))
            assert path.startswith(FOLDER + "/") or path == FOLDER, (value, path)
            assert "\0" not in reading
            assert "\\" not in reading


@given(st.text(max_size=30))
def test_a_value_that_comes_out_of_anything_stays_in_the_folder(tail: str) -> None:
    for variable in ("{name}", "{+name}"):
        values = matched(f"docs://x/{variable}", "docs://x/" + tail)
        if values is not None:
            path = posixpath.normpath(posixpath.join(FOLDER, values["name"]))
            assert path.startswith(FOLDER + "/")


NAMES = st.text(
    st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="/\\"), min_size=1
)


@given(NAMES.filter(lambda name: name.strip(". ") and "%" not in name))
def test_every_ordinary_name_makes_the_round_trip(name: str) -> None:
    assert matched("docs://x/{name}", "docs://x/" + quote(name, safe="")) == {"name": name}


# -- the same answers as a regular expression that backtracks

_LITERALS = st.text("ab-/?&", min_size=1, max_size=2)


@st.composite
def _cases(draw: st.DrawFn) -> tuple[str, str]:
    count = draw(st.integers(1, 4))
    spanning = draw(st.integers(-1, count - 1))
    text = "s://"
    for at in range(count):
        text += f"{{{'+' if at == spanning else ''}v{at}}}"
        if at < count - 1 or draw(st.booleans()):
            text += draw(_LITERALS)
    return text, "s://" + draw(st.text("ab-/?&", max_size=12))


def _oracle(template: str) -> re.Pattern[str]:
    """Every way to cut the URI up that the delimiters allow."""
    pattern, query = "", False
    for piece in re.split(r"(\{\+?\w+\})", template):
        if piece.startswith("{+"):
            # The value may not begin with "/": see the check of the whole match below.
            pattern += "(.+)"
        elif piece.startswith("{"):
            pattern += "([^/?#&]+)" if query else "([^/?#]+)"
        else:
            query = query or "?" in piece
            pattern += re.escape(piece)
    return re.compile(pattern)


@given(_cases())
def test_the_matcher_finds_a_match_whenever_there_is_one(case: tuple[str, str]) -> None:
    """It never backtracks; an expression that does, finds no match that it misses."""
    template, uri = case
    expected = _oracle(template).fullmatch(uri)
    raw = Template(template)._raw(uri)
    values = Template(template).match(uri)
    if expected is None:
        assert values is None
    elif values is None:
        # Refused for what the value is, not for want of a match.
        assert raw is not None
        assert any(value.startswith("/") for value in raw)
    else:
        rebuilt = template
        for name, value in values.items():
            rebuilt = rebuilt.replace(f"{{{name}}}", value).replace(f"{{+{name}}}", value)
        assert rebuilt == uri


# -- what cannot be a template


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("file:///docs", "no variable"),
        ("", "no variable"),
        ("{name}", "begin with a scheme"),
        ("{scheme}://x", "begin with a scheme"),
        ("docs/{name}", "begin with a scheme"),
        ("r://{a}{b}", "touch"),
        ("r://{a}/{a}", "twice"),
        ("r://{a}/{+a}", "twice"),
        ("r://{+a}/{+b}", "only one"),
        ("r://x{/ids*}", "is not {name}"),
        ("r://x{?tags*}", "is not {name}"),
        ("r://{#a}", "is not {name}"),
        ("r://{a,b}", "is not {name}"),
        ("r://{a:3}", "is not {name}"),
        ("r://{}", "is not {name}"),
        ("r://{+}", "is not {name}"),
        ("r://{1a}", "is not {name}"),
        ("r://{ a}", "is not {name}"),
        ("r://{a}}", "out of place"),
        ("r://{{a}}", "out of place"),
        ("r://{a}/{b", "out of place"),
        ("r:// {a}", "out of place"),
        ("r://\n{a}", "out of place"),
        ("r://%zz{a}", "out of place"),
        ("r://\\{a}", "out of place"),
    ],
)
def test_a_template_that_cannot_be_served_says_why(template: str, why: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(why)):
        Template(template)
