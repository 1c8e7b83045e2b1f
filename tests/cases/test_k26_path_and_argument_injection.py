"""K26: a value of the caller's is a value: not a path that leaves, an option, a line, a command.

Dots and slashes were decoded after the check, or twice; a leading dash became an option, and a
line break became a header.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from pathlib import Path
from typing import Final, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases.dialects import (
    BOTH_ERAS,
    MODERN,
    STDIO,
    Dialect,
    case,
    code_of,
    journal_of,
    result_of,
    text_of,
)
from tests.cases.fixture_server import SECRET
from tests.cases.peers import Exchange, MemoryPeer, Message, Peer

HOSTILE: Final = [
    "../secret.txt",
    "..%2Fsecret.txt",
    "%2e%2e%2fsecret.txt",
    "%252e%252e%252fsecret.txt",
    "..%5csecret.txt",
    "..\\secret.txt",
    "/etc/passwd",
    "%2Fetc%2Fpasswd",
    "a.txt%00.png",
    "C:%5Cwin.ini",
    "C:a",
    "%EF%BC%8E%EF%BC%8E/secret.txt",
    "....//secret.txt",
    "a.txt/../../secret.txt",
    ".",
    "..",
    "",
    "%c0%ae%c0%ae/",
    "%c0%ae%c0%ae%c0%afsecret.txt",
    "%ZZ",
    "a.txt%",
    "%2e",
    "%2e%2e",
    "..%00/secret.txt",
    "a.txt\n",
    "a.txt%0a",
    ".. /secret.txt",
    "..%20%2Fsecret.txt",
    "...",
    "%u002e%u002e/secret.txt",
    "..;/secret.txt",
    "~/secret.txt",
]


@case()
async def test_a_template_serves_its_folder_and_nothing_else(peer: Peer, era: Dialect) -> None:
    """BC-141. MCP server/resources §Security: validate URIs, sanitize paths; decoded once."""
    await era.greet(peer)
    for scheme in ("file", "tree"):
        good = era.request(1, "resources/read", {"uri": f"{scheme}://{DOCS[scheme]}a.txt"})
        (contents,) = cast(list[Message], result_of(await peer.request(good))["contents"])
        assert contents["text"] == "inside"
        for name in HOSTILE:
            uri = f"{scheme}://{DOCS[scheme]}{name}"
            answer = await peer.request(era.request(2, "resources/read", {"uri": uri}))
            # A name that stays in the folder, and is no file there, may reach the handler.
            assert code_of(answer) in (era.unknown_resource, -32603), (scheme, name)
            text = json.dumps(answer)
            assert SECRET not in text
            assert "/tmp" not in text
            assert "root:" not in text
    ran = [line for line in await journal_of(peer, era) if line.startswith("start:doc:")]
    assert ran[0] == "start:doc:a.txt"
    assert not [line for line in ran if "/" in line.partition("doc:")[2]]


PLANTED: Final = Path("/tmp/pwn_by_argument")
DOCS: Final = {"file": "/docs/", "tree": "docs/"}


@case(wires=[STDIO])
async def test_an_argument_is_no_option_no_line_and_no_command(peer: Peer, era: Dialect) -> None:
    """BC-143. CVE-2025-68144: refused before anything is started or sent."""
    await era.greet(peer)
    for name, arguments in (
        ("git_diff", {"target": f"--output={PLANTED}"}),
        ("git_diff", {"target": "-o"}),
        ("git_diff", {"target": f"$(touch {PLANTED})"}),
        ("git_diff", {"target": f"`touch {PLANTED}`"}),
        ("git_diff", {"target": f"a;touch {PLANTED}"}),
        ("git_diff", {"target": "a\0b"}),
        ("git_diff", {"target": "a\nb"}),
        ("git_diff", {"target": "a\n"}),
        ("git_diff", {"target": ""}),
        ("git_diff", {"target": ["a", "b"]}),
        ("fetch", {"url": "http://up.test/", "header": "x\r\nX-Evil: 1"}),
        ("fetch", {"url": "http://up.test/", "header": "x\n"}),
        ("fetch", {"url": "http://up.test/", "header": "x\r"}),
        ("fetch", {"url": "http://up.test/", "header": "x\0"}),
        ("fetch", {"url": "http://up.test/ HTTP/1.1\r\nHost: evil"}),
        ("fetch", {"url": "http://up.test/\n"}),
        ("fetch", {"url": "file:///etc/passwd"}),
        ("read_path", {"path": "../secret.txt"}),
        ("read_path", {"path": "a.txt\n"}),
        ("read_path", {"path": "/etc/passwd"}),
    ):
        said = text_of(await peer.request(era.call(1, name, arguments)), failed=True)
        assert said.startswith("Invalid arguments: "), (name, arguments, said)
        assert "evil" not in said.lower()
    assert await journal_of(peer, era) == ["opened"]
    for name, arguments, expected in (
        ("git_diff", {"target": "HEAD"}, "HEAD"),
        ("fetch", {"url": "http://up.test/", "header": "x"}, None),
        ("read_path", {"path": "a.txt"}, "inside"),
    ):
        said = text_of(await peer.request(era.call(2, name, arguments)))
        assert expected is None or said == expected


def test_no_argument_was_run_as_a_command() -> None:
    """BC-143, what the commands in it would have left behind."""
    assert not PLANTED.exists()


# -- every spelling, at every place ----------------------------------------------------------------

PIECES: Final = [
    "..",
    ".",
    "/",
    "\\",
    "\0",
    "%",
    "%2e%2e",
    "%2E%2e",
    "%2f",
    "%5c",
    "%00",
    "%25",
    "%252e%252e",
    "%252f",
    "%c0%ae",
    "%c0%af",
    "%e0%80%ae",
    "\uff0e\uff0e",
    "\u2215",
    "%u2216",
    "a.txt",
    "secret.txt",
    "docs",
]


def test_no_spelling_at_any_place_leaves_the_folder() -> None:
    """BC-141, the kind: every three pieces, and what hypothesis makes of more of them."""
    with Exchange() as exchange:

        async def reads(peer: MemoryPeer, names: list[str]) -> None:
            uris = [
                f"{scheme}://{DOCS[scheme]}{name}{end}"
                for name in names
                for scheme in DOCS
                for end in ("", "/secret.txt")
            ]
            for at in range(0, len(uris), 16):
                batch = uris[at : at + 16]
                requests = [
                    MODERN.request(id, "resources/read", {"uri": uri})
                    for id, uri in enumerate(batch)
                ]
                after = len(peer.seen)
                await peer.send(*requests)
                for id, uri in enumerate(batch):
                    answer = await peer.answer(id, after=after)
                    assert SECRET not in json.dumps(answer), uri
                    assert "/tmp" not in json.dumps(answer), uri
            peer.seen.clear()

        three = ["".join(pieces) for pieces in itertools.product(PIECES[:17], repeat=2)]
        three += ["".join(pieces) for pieces in itertools.product(("..", "%2e%2e"), PIECES, PIECES)]
        exchange.run(lambda peer: reads(peer, three))
        journal = exchange.fixture.journal.lines
        docs = exchange.fixture.docs
        for line in journal:
            kind, _, name = line.removeprefix("start:").partition(":")
            if kind in ("doc", "tree"):
                assert (docs / name).resolve().is_relative_to(docs.resolve()), line

        @given(st.lists(st.sampled_from(PIECES), min_size=3, max_size=6).map("".join))
        @settings(max_examples=100)
        def stays_inside(name: str) -> None:
            exchange.run(lambda peer: reads(peer, [name]))

        stays_inside()


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
def test_a_completion_names_nothing_outside(era: Dialect) -> None:
    """BC-141 and BC-167: what is suggested is what the template serves."""
    with Exchange() as exchange:

        async def completes(peer: MemoryPeer) -> None:
            await era.greet(peer)
            for value in ("../", "..%2F", "/", "", "\0", "s", *HOSTILE):
                params = {
                    "ref": {"type": "ref/resource", "uri": "file:///docs/{name}"},
                    "argument": {"name": "name", "value": value},
                }
                answer = await peer.request(era.request(1, "completion/complete", params))
                values = cast(Message, result_of(answer)["completion"])["values"]
                assert values in ([], ["a.txt"]), value
            await asyncio.sleep(0)

        exchange.run(completes)
