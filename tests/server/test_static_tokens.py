"""server/static_tokens.py: a written list of tokens, read once, shown to nobody."""

import asyncio
import os
import pickle
from hmac import compare_digest
from pathlib import Path

import pytest

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.server.auth import Principal
from raxol_mcp.server.static_tokens import StaticTokens

ALICE = "b6_8kJ2mQx0v5cT1yR7nLw"
ALICE_NEXT = "c7+9lK3/Ry1w6dU2zS8oMx=="
BOB = "4hD9sVf3KpZ6aX2eUq8gNm"
TEXT = f"""
# subject token scopes
alice\t{ALICE}   files:read files:write
alice {ALICE_NEXT}  # the next one
   bob {BOB}
"""


def whose(tokens: StaticTokens, token: str) -> Principal | None:
    return asyncio.run(tokens.verify(token))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tokens"
    path.write_text(TEXT, "utf-8")
    path.chmod(0o600)
    return path


# -- whose


def test_a_token_is_its_owners_and_others_are_nobodys() -> None:
    """RFC 6750."""
    robot = Principal("robot", "https://ci.example.com", "ci", frozenset({"x"}))
    tokens = StaticTokens({ALICE: "alice", BOB: robot})
    assert whose(tokens, ALICE) == Principal("alice", "static")
    assert whose(tokens, BOB) is robot
    for other in ("", ALICE[:-1], ALICE + "a", ALICE.lower(), f" {ALICE}", "é" * 20, "\ud800"):
        assert whose(tokens, other) is None


def test_one_user_may_have_two_tokens() -> None:
    """ours: one can be replaced while the other still works."""
    tokens = StaticTokens({ALICE: "alice", ALICE_NEXT: "alice"})
    assert whose(tokens, ALICE) == whose(tokens, ALICE_NEXT) == Principal("alice", "static")


@pytest.mark.parametrize("token", [ALICE, BOB, "unknown-unknown-unknown"])
def test_every_entry_is_compared_whatever_was_sent(
    monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    """ours: how long it takes tells nothing; digests are compared, in constant time."""
    compared: list[tuple[bytes, bytes]] = []

    def noted(first: bytes, second: bytes) -> bool:
        compared.append((first, second))
        return compare_digest(first, second)

    monkeypatch.setattr("raxol_mcp.server.static_tokens.compare_digest", noted)
    whose(StaticTokens({ALICE: "alice", ALICE_NEXT: "alice", BOB: "bob"}), token)
    assert len(compared) == 3
    assert {len(part) for pair in compared for part in pair} == {32}


def test_tokens_are_not_shown() -> None:
    tokens = StaticTokens({ALICE: "alice"})
    assert repr(tokens) == "StaticTokens(<1>)"
    kept = pickle.dumps(tokens._principals)
    assert ALICE.encode() not in kept


# -- from text


def test_a_file_is_read(file: Path) -> None:
    tokens = StaticTokens.from_file(file)
    scopes = frozenset({"files:read", "files:write"})
    assert whose(tokens, ALICE) == Principal("alice", "static", scopes=scopes)
    assert whose(tokens, ALICE_NEXT) == Principal("alice", "static")
    assert whose(tokens, BOB) == Principal("bob", "static")


def test_a_variable_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """ours: `;` ends a line, because many places cannot write a variable of two lines."""
    monkeypatch.setenv("RAXOL_MCP_TOKENS", f"alice {ALICE} a;bob {BOB}")
    tokens = StaticTokens.from_environment()
    assert whose(tokens, ALICE) == Principal("alice", "static", scopes=frozenset({"a"}))
    assert whose(tokens, BOB) == Principal("bob", "static")


def test_a_variable_without_a_token_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOKENS", raising=False)
    with pytest.raises(ConfigurationError, match="there is no token in the variable TOKENS"):
        StaticTokens.from_environment("TOKENS")
    monkeypatch.setenv("TOKENS", " ; # none\n")
    with pytest.raises(ConfigurationError, match="there is no token"):
        StaticTokens.from_environment("TOKENS")


@pytest.mark.parametrize("mode", [0o604, 0o606, 0o601, 0o660, 0o620, 0o644, 0o777])
def test_a_file_that_is_open_to_others_is_refused(file: Path, mode: int) -> None:
    file.chmod(mode)
    with pytest.raises(ConfigurationError, match="open to others: chmod 600"):
        StaticTokens.from_file(file)


@pytest.mark.parametrize("mode", [0o400, 0o600, 0o440, 0o640])
def test_a_file_for_owner_and_group_is_read(file: Path, mode: int) -> None:
    """ours: mounted secrets often belong to a group."""
    file.chmod(mode)
    assert whose(StaticTokens.from_file(str(file)), BOB) is not None


def test_only_a_plain_file_is_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o600)
    with pytest.raises(ConfigurationError, match="not a plain file"):
        StaticTokens.from_file(pipe)
    with pytest.raises(ConfigurationError, match="not a plain file"):
        StaticTokens.from_file(tmp_path)
    with pytest.raises(ConfigurationError, match="absent cannot be read: No such file"):
        StaticTokens.from_file(tmp_path / "absent")


def test_a_link_is_judged_by_what_it_leads_to(file: Path) -> None:
    """ours: mounted secrets are links."""
    link = file.parent / "link"
    link.symlink_to(file)
    assert whose(StaticTokens.from_file(link), BOB) is not None
    file.chmod(0o644)
    with pytest.raises(ConfigurationError, match="open to others"):
        StaticTokens.from_file(link)


@pytest.mark.parametrize(
    ("content", "problem"),
    [(b"#" * (1024 * 1024 + 1), "larger than"), (b"alice \xff", "not UTF-8"), (b"", "no token")],
)
def test_a_file_that_holds_no_tokens_is_refused(file: Path, content: bytes, problem: str) -> None:
    file.write_bytes(content)
    with pytest.raises(ConfigurationError, match=problem):
        StaticTokens.from_file(file)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("alice", "line 1 of .* must be a subject, a token and scopes"),
        ("\nalice short", "the token of 'alice' is shorter than 16 characters"),
        (f"alice {ALICE};x", "the token of 'alice' has characters that no header can carry"),
        (f"alice ={ALICE}", "the token of 'alice' has characters"),
        (f"alice {ALICE}\nbob {ALICE}", "'bob' and 'alice' have the same token"),
        (f"alice {ALICE} a\\b", "line 1 of .*: .* is not a scope"),
    ],
)
def test_a_line_that_cannot_be_meant_is_refused_without_showing_it(
    file: Path, text: str, problem: str
) -> None:
    file.write_text(text, "utf-8")
    with pytest.raises(ConfigurationError, match=problem) as raised:
        StaticTokens.from_file(file)
    assert ALICE not in f"{raised.value!r} {raised.value.__context__!r}"


@pytest.mark.parametrize("subject", ["", "\ud800"])
def test_an_owner_must_have_a_name(subject: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot be the subject"):
        StaticTokens({ALICE: subject})
