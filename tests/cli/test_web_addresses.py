"""Addresses that servers want visited. BC-121: they are text of a peer."""

import asyncio
import json
import stat
import sys
from pathlib import Path

import pytest

from raxol_mcp.cli.web_addresses import Address, BadAddress, address_of, open_in_browser


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://example.com", "example.com"),
        ("https://Login.Example.com:8443/a?b=c#d", "login.example.com"),
        ("https://example.com/$(touch%20x)&calc;'", "example.com"),
        ("http://localhost:8000/x", "localhost"),
        ("http://127.0.0.1/x", "127.0.0.1"),
        ("http://[::1]:8000/x", "::1"),
    ],
)
def test_an_address_is_opened_as_it_is_shown(url: str, host: str) -> None:
    found = address_of(url)
    assert (found.url, found.host) == (url, host)


@pytest.mark.parametrize(
    "url",
    [
        *("http://a:$(touch pwn)/x", "http://a/`id`", 'http://a/";calc;"', "file:///etc/passwd"),
        *("javascript:alert(1)", "data:text/html,x", "vscode://x", "smb://h/s", "--help"),
        *("http://a/%0d%0aSet-Cookie:x", "'http://a/ & calc'", "https://a/" + "x" * 1_000_000),
        *(
            "https://good.example@evil.example/",
            "https://a\\@b/",
            "https://a/\u202e",
            "",
            "https://",
        ),
        *("https://a/\n", " https://a/", "https://a:99999999/", "https://[::1", "https://[::x]/"),
        *("https://a/" + "x" * 2000, "HTTPS:a", "https:///a", "https://-a/"),
    ],
)
def test_anything_else_is_refused_whoever_agrees(url: str) -> None:
    """BC-121; CVE-2025-6514."""
    with pytest.raises(BadAddress) as caught:
        address_of(url)
    assert url not in str(caught.value) or url == ""


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("https://xn--pple-43d.com/", "punycode"),
        ("https://login.xn--pple-43d.com/", "punycode"),
        ("https://93.184.216.34/", "numeric address"),
        ("https://2130706433/", "numeric address"),
        ("https://0x7f.1/", "numeric address"),
        ("https://[2001:db8::1]/", "numeric address"),
    ],
)
def test_what_hides_who_it_is_is_warned_of(url: str, told: str) -> None:
    """MCP 2025-11-25 client/elicitation §Security."""
    (warning,) = address_of(url).warnings
    assert told in warning


def browser(folder: Path, code: int) -> Path:
    """Write a browser that notes its arguments and writes to both streams."""
    file = folder / "browser"
    file.write_text(
        f"#!{sys.executable}\nimport json, sys\n"
        f"open({str(folder / 'opened')!r}, 'a').write(json.dumps(sys.argv[1:]) + '\\n')\n"
        f"print('NOISE'); print('NOISE', file=sys.stderr)\nsys.exit({code})\n",
        "utf-8",
    )
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


@pytest.mark.slow
@pytest.mark.parametrize(("code", "opened"), [(0, True), (1, False)])
def test_the_browser_gets_one_argument_and_no_shell_sees_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    code: int,
    opened: bool,
) -> None:
    """BC-121. What a browser writes gets into no result."""
    pwned = tmp_path / "pwned"
    monkeypatch.setenv("BROWSER", f"{browser(tmp_path, code)} %s")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("DISPLAY", raising=False)
    (tmp_path / "webbrowser.py").write_text(f"open({str(pwned)!r}, 'w')", "utf-8")
    monkeypatch.chdir(tmp_path)
    url = f"https://example.com/$(touch{pwned})&touch;'{pwned}'"
    assert asyncio.run(open_in_browser(Address(url, "example.com"))) is opened
    lines = (tmp_path / "opened").read_text("utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [[url]]
    assert not pwned.exists(), "nor is a module of the current folder imported"
    assert capfd.readouterr() == ("", "")
