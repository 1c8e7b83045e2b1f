"""What may be shown of a client's options, and what must not be in any text."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from raxol_mcp.client.redaction import _PLAIN, MASK, Secrets, described, escaped, shown, shown_url
from raxol_mcp.client.spec_checks import READERS


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("https://a.example/mcp", "https://a.example/mcp"),
        ("https://a.example:8443/", "https://a.example:8443/"),
        ("http://[::1]:80/x", "http://[::1]:80/x"),
        ("HTTPS://A.example", "HTTPS://A.example"),
        ("https://user:pass@a.example/x", "https://a.example/x"),
        ("https://a@a.example", "https://a.example"),
        ("https://a.example/x?key=1#f", "https://a.example/x?[redacted]"),
        ("https://a.example/x#f", "https://a.example/x#[redacted]"),
        ("https://a.example?", "https://a.example?[redacted]"),
        ("https://server.example/@scope/tool/mcp", "https://server.example/@scope/tool/mcp"),
        ("https://grüße.example/x", "https://gr\\xfc\\xdfe.example/x"),
        ("https://a.example/\u202ex", "https://a.example/\\u202ex"),
    ],
)
def test_of_a_url_the_place_is_shown(url: str, text: str) -> None:
    assert shown_url(url) == text


@pytest.mark.parametrize(
    "url",
    [
        "",
        "token",
        "user:secret@host",
        "https://user:sec/ret@host/x",
        "https://user:12/ret@host/x",
        "https://user:12/@host",
        "https://sec/ret@host",
        "https://user:sec?ret@host",
        "https://us er:secret@host",
        "https://a b/",
        "//u:p@host",
        7,
        None,
    ],
)
def test_what_is_no_plain_url_is_masked_whole_or_up_to_its_secret(url: object) -> None:
    """A password may have a slash in it: then what looks like a host is none."""
    text = shown_url(url)
    assert text == MASK or text == f"https://user?{MASK}" or "sec" not in text
    assert "ret" not in text


def test_what_is_no_secret_is_shown_short_and_escaped() -> None:
    assert shown("a\u202eb\n") == "'a\\u202eb\\n'"
    assert shown("a" * 500) == f"'{'a' * 120}...'"
    assert [shown(value) for value in (7, 1.5, True, None)] == ["7", "1.5", "True", "None"]
    assert [shown(value) for value in (10**5000, [1], b"x")] == ["<int>", "<list>", "<bytes>"]


def test_options_are_described_without_their_secrets() -> None:
    said = described(
        {
            "name": "a",
            "command": "npx",
            "args": ["-y", "s3cr3t"],
            "env": [("TOKEN", "s3cr3t"), "s3cr3t", ("s3cr3t value", "x"), 7],
            "headers": "authorization: s3cr3t",
            "url": None,
            "prices": {"t": 1, "u": "x"},
            "drop_env": ["HOME", "no name", 7],
            "pool_size": 3,
        }
    )
    assert said == (
        f"ClientSpec('a', command='npx', args=['{MASK}', '{MASK}'], "
        f"env={{'TOKEN': '{MASK}', '{MASK}': '{MASK}', '{MASK}': '{MASK}', '{MASK}': '{MASK}'}}, "
        f"headers='{MASK}', prices={{'t': 1, 'u': 'x'}}, drop_env=['HOME', '{MASK}', '{MASK}'], "
        "pool_size=3)"
    )


def test_a_description_is_short_whatever_is_described() -> None:
    many = {f"X-{index}": "v" for index in range(1000)}
    said = described({"name": "n" * 1000, "headers": many, "args": ["a"] * 1000, "zz": 1})
    assert "... 984 more" in said
    assert len(said) < 1500


def test_a_secret_is_masked_wherever_it_is() -> None:
    secrets = Secrets(
        headers=[("authorization", "Bearer abcd1234")],
        env=[("KEY", "tok\ten")],
        args=["--token=zyxw", "--verbose", "plain-value", "-y"],
        url="https://user:p%40ss@a.example/x?key=k%20ey+1#fragment",
    )
    text = (
        "got abcd1234, tok\\ten, tok\ten, zyxw, plain-value; --verbose -y; "
        "user p@ss p%40ss k%20ey+1 'k ey 1' fragment"
    )
    assert secrets.masked(text) == (
        f"got {MASK}, {MASK}, {MASK}, {MASK}, {MASK}; --verbose -y; "
        f"{MASK} {MASK} {MASK} {MASK} '{MASK}' {MASK}"
    )
    assert secrets.masked("Bearer abcd1234") == MASK
    assert secrets.masked("nothing") == "nothing"
    assert repr(secrets).startswith("Secrets(")


def test_what_is_short_is_in_every_text_and_stays() -> None:
    secrets = Secrets(env=[("A", "yes")], args=["-y", "ab"])
    assert secrets.masked("yes, about") == "yes, about"
    assert repr(secrets) == "Secrets(0)"


def test_a_password_with_a_slash_is_masked_too() -> None:
    secrets = Secrets(url="https://user:pass/word@a.example/")
    assert secrets.masked("tried pass/word") == f"tried {MASK}"


values = st.text("abcdxyz-\u00e9'\n", min_size=4, max_size=8)


@given(st.lists(values, min_size=1, max_size=5), st.data())
def test_no_secret_survives_in_a_text(known: list[str], data: st.DataObject) -> None:
    """Ours: whole, overlapping another one, or escaped."""
    assume(not any(value in MASK for value in known))
    secrets = Secrets(env=[("A", value) for value in known])
    pieces = st.sampled_from([*known, *(ascii(value)[1:-1] for value in known), "ab", "x", " "])
    text = "".join(data.draw(st.lists(pieces, max_size=8)))
    masked = secrets.masked(text)
    assert not any(value in part for value in known for part in masked.split(MASK))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("...56789 is no token", f"...{MASK} is no token"),
        ("no token: secret-12...", f"no token: {MASK}..."),
        ("secret-123456789 is wrong: secr...", f"{MASK} is wrong: {MASK}..."),
        ("no token: sec...", "no token: sec..."),
        ("...89 is wrong", "...89 is wrong"),
        ("the end is 56789", "the end is 56789"),
        ("...secr...", f"...{MASK}..."),
    ],
)
def test_what_a_cut_has_left_of_a_secret_is_masked(text: str, shown: str) -> None:
    """K24. The last words of a server are cut before anybody looks for secrets in them."""
    assert Secrets(args=["secret-123456789"]).masked(text) == shown


def test_every_option_is_plain_or_known_to_hold_secrets() -> None:
    """K24. One that is new is masked until somebody has said that it need not be."""
    assert set(READERS) - _PLAIN == {"args", "env", "headers", "url"}
    assert set(READERS) >= _PLAIN


@pytest.mark.parametrize(
    ("text", "plain"),
    [("a b", "a b"), ("it's", "it's"), ("é\n", "\\xe9\\n"), ("x" * 121, "x" * 120 + "...")],
)
def test_a_name_is_written_without_quotes_as_with_them(text: str, plain: str) -> None:
    assert escaped(text) == plain == shown(text)[1:-1]
