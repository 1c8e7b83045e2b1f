"""Tokens that somebody wrote down: for a few users, without an authorization server.

Not for many: a token is valid until the server is restarted without it, and every check looks at
every token. They come from a mapping, a file or the environment, never from the command line,
which other users of the machine can read.

The text of a file or a variable: a line for each token, `#` begins a comment.

    # subject  token                              scopes, as many as wanted
    alice      b6_8kJ2mQx0v5cT1yR7nLw             files:read files:write
    bob        4hD9sVf3KpZ6aX2eUq8gNm
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from hashlib import sha256
from hmac import compare_digest
from typing import Final

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.server.auth import Principal
from raxol_mcp.server.protected_resource import checked_scopes

__all__ = ["ISSUER", "MIN_TOKEN_CHARACTERS", "VARIABLE", "StaticTokens"]

ISSUER: Final = "static"
VARIABLE: Final = "RAXOL_MCP_TOKENS"
MIN_TOKEN_CHARACTERS: Final = 16

_TOKEN: Final = r"[A-Za-z0-9\-._~+/]+=*"  # RFC 6750 §2.1: what a header can carry
_MAX_FILE_BYTES: Final = 1024 * 1024


class StaticTokens:
    """The `TokenVerifier` of a fixed list: `{token: subject or Principal}`.

    A subject may have several tokens, so that one can be replaced while the other still works;
    a token belongs to one. Keeps digests alone, and compares with all of them in the same time
    whatever was sent. Raises `ConfigurationError`, whose message never has a token in it.
    """

    __slots__ = ("_principals",)
    bounded: Final = True  # it waits for nothing

    def __init__(self, tokens: Mapping[str, str | Principal]) -> None:
        entries = [
            (token, owner if isinstance(owner, Principal) else _principal(owner))
            for token, owner in tokens.items()
        ]
        self._principals = _digested(entries)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> StaticTokens:
        """Read the tokens of a file, once.

        It must be a plain file that others than its owner and group cannot open (`chmod 600`, or
        640): everybody's secret is none.
        """
        return cls._from_text(_file_text(path), where=os.fspath(path))

    @classmethod
    def from_environment(cls, variable: str = VARIABLE) -> StaticTokens:
        """Read the tokens of an environment variable, once; `;` ends a line too."""
        text = os.environ.get(variable, "")
        return cls._from_text(text.replace(";", "\n"), where=f"the variable {variable}")

    async def verify(self, token: str) -> Principal | None:
        """Say whose token this is; None when it is nobody's."""
        digest = sha256(token.encode("utf-8", "surrogatepass")).digest()
        found = None
        for known, principal in self._principals:  # to the end, found or not
            if compare_digest(known, digest):
                found = principal
        return found

    def __repr__(self) -> str:
        return f"StaticTokens(<{len(self._principals)}>)"

    @classmethod
    def _from_text(cls, text: str, *, where: str) -> StaticTokens:
        entries = []
        for number, line in enumerate(text.splitlines(), 1):
            match line.partition("#")[0].split():
                case []:
                    continue
                case [subject, token, *scopes]:
                    allowed = checked_scopes(scopes, what=f"line {number} of {where}")
                    entries.append((token, _principal(subject, allowed)))
                case _:
                    raise ConfigurationError(
                        f"line {number} of {where} must be a subject, a token and scopes"
                    )
        if not entries:
            raise ConfigurationError(f"there is no token in {where}")
        tokens = cls({})
        tokens._principals = _digested(entries)
        return tokens


def _principal(subject: str, scopes: tuple[str, ...] = ()) -> Principal:
    try:
        return Principal(subject, ISSUER, scopes=frozenset(scopes))
    except ValueError:
        raise ConfigurationError(f"{subject!r} cannot be the subject of a token") from None


def _digested(entries: list[tuple[str, Principal]]) -> tuple[tuple[bytes, Principal], ...]:
    found: dict[bytes, Principal] = {}
    for token, principal in entries:
        if not re.fullmatch(_TOKEN, token):
            raise ConfigurationError(
                f"the token of {principal.subject!r} has characters that no header can carry"
            )
        if len(token) < MIN_TOKEN_CHARACTERS:
            raise ConfigurationError(
                f"the token of {principal.subject!r} is shorter than {MIN_TOKEN_CHARACTERS} "
                "characters, and could be guessed"
            )
        digest = sha256(token.encode()).digest()
        if digest in found:
            raise ConfigurationError(
                f"{principal.subject!r} and {found[digest].subject!r} have the same token"
            )
        found[digest] = principal
    return tuple(found.items())


def _file_text(path: str | os.PathLike[str]) -> str:
    name = os.fspath(path)
    try:
        # Judged is the very file that is read: between two looks it could be exchanged. Opening a
        # pipe must not wait for its writer.
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            _refuse_open_file(name, os.fstat(descriptor).st_mode)
            with open(descriptor, "rb", closefd=False) as file:
                text = file.read(_MAX_FILE_BYTES + 1)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise ConfigurationError(f"{name} cannot be read: {error.strerror}") from None
    if len(text) > _MAX_FILE_BYTES:
        raise ConfigurationError(f"{name} is larger than {_MAX_FILE_BYTES} bytes")
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise ConfigurationError(f"{name} is not UTF-8") from None


def _refuse_open_file(name: str, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise ConfigurationError(f"{name} is not a plain file")
    if mode & (stat.S_IRWXO | stat.S_IWGRP):
        raise ConfigurationError(f"{name} holds tokens and is open to others: chmod 600 {name}")
