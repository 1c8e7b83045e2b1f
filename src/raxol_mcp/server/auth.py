"""Who a request comes from: bearer tokens in, principals or challenges out.

Does not decide what a principal may do (that is the authorizer's), and knows no kind of token: a
`TokenVerifier` does. `raxol_mcp.server.static_tokens` and `raxol_mcp.server.auth_jwt` are two.

The server is an OAuth 2.1 resource server (MCP 2026-07-28 basic/authorization; RFC 6750): tokens
come in the `Authorization` header and nowhere else, are never sent on, and never appear in a log,
a message or a `repr`.
"""

from __future__ import annotations

import asyncio
import logging
import re
import traceback
from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from raxol_mcp.core.authentication import Authenticated, Challenge
from raxol_mcp.errors import ConfigurationError, RaxolError
from raxol_mcp.server.protected_resource import ProtectedResource, checked_scopes
from raxol_mcp.wire.values import Value

__all__ = [
    "MAX_TOKEN_BYTES",
    "VERIFY_TIMEOUT",
    "BearerAuthenticator",
    "Principal",
    "TokenVerifier",
    "bearer_challenge",
]

MAX_TOKEN_BYTES: Final = 16 * 1024
VERIFY_TIMEOUT: Final = 30.0

_logger = logging.getLogger("raxol_mcp.auth")

# RFC 6750 §2.1. The name of the scheme has no case (RFC 9110 §11.1).
_CREDENTIALS: Final = re.compile(rb"bearer +([A-Za-z0-9\-._~+/]+=*)", re.IGNORECASE)
_BEARER: Final = re.compile(rb"bearer(?:[ \t].*)?", re.IGNORECASE | re.DOTALL)
_QUOTABLE: Final = re.compile(r"[\x20\x21\x23-\x5b\x5d-\x7e]*")  # RFC 6750 §3


class Principal(Value, frozen=True):
    """Somebody, as the verifier of their token knows them.

    `subject` is unique at its `issuer` and never given to somebody else; a name or a mail address
    may be. `client` is the program they use, `scopes` what they allowed it. Raises `ValueError`
    for an empty subject and for text that no message can carry.
    """

    subject: str
    issuer: str
    client: str | None = None
    scopes: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not self.subject:
            raise ValueError("a principal has a subject")
        self.id.encode()  # a lone surrogate cannot be

    @property
    def id(self) -> str:
        """The name that quotas, sessions and authorizers use: `issuer|subject`.

        No two principals share one: in both parts `|` is written `%7C`, and `%` is `%25`.
        """
        return f"{_part(self.issuer)}|{_part(self.subject)}"


class TokenVerifier(Protocol):
    """Knows the tokens of one issuer.

    One with an attribute `bounded = True` promises that `verify` ends by itself within
    `VERIFY_TIMEOUT`; others run against a timer, which costs more than remembering a token does.
    """

    async def verify(self, token: str) -> Principal | None:
        """Say whose token this is; None when it is not valid here, for whatever reason.

        It must have been issued for this very server (MCP 2026-07-28 basic/authorization §Token
        Handling). Raise a `RaxolError` (`NotReady`) when that cannot be known now: the request is
        refused with status 503, and the client keeps its token. Anything else that is raised is
        refused too, and logged as a mistake.
        """


class BearerAuthenticator:
    """The `Authenticator` of a transport: judges the `Authorization` headers of a request.

    `resource` names this server and its metadata document; without one (static tokens) the
    challenges point nowhere. Who lacks one of `required_scopes` gets status 403 and all of them
    in one challenge. `implied_scopes` says which scopes a broader one contains, to any depth:
    `{"files": ["files:read", "files:write"]}`. `timeout`, in seconds, ends the wait for a verifier
    that is not bounded by itself.

    Keeps nothing between requests. Raises `ConfigurationError`.
    """

    __slots__ = ("_bounded", "_implied", "_required", "_resource", "_timeout", "_verifier")

    def __init__(
        self,
        verifier: TokenVerifier,
        *,
        resource: ProtectedResource | None = None,
        required_scopes: Iterable[str] = (),
        implied_scopes: Mapping[str, Iterable[str]] | None = None,
        timeout: float = VERIFY_TIMEOUT,
    ) -> None:
        if not timeout > 0:
            raise ConfigurationError("the timeout of a verifier is a number of seconds above 0")
        self._verifier = verifier
        self._bounded = getattr(verifier, "bounded", False) is True
        self._resource = resource
        self._required = checked_scopes(required_scopes, what="required_scopes")
        self._implied = {
            scope: checked_scopes(narrower, what=f"implied_scopes[{scope!r}]")
            for scope, narrower in (implied_scopes or {}).items()
        }
        self._timeout = timeout

    async def authenticate(self, authorization: list[bytes]) -> Authenticated | Challenge:
        """Judge the values of every `Authorization` header of one request, as they came.

        Status 401 without (usable) credentials and for a token that is not valid, 400 for a
        malformed request, 403 for missing scopes, 503 when the verifier failed; RFC 6750 §3.1.
        """
        if len(authorization) > 1:
            return self._refused(400, "invalid_request", "There is more than one token")
        credentials = authorization[0].strip(b" \t") if authorization else b""
        if not _BEARER.fullmatch(credentials):
            # Another scheme is no attempt with a token: no error code (RFC 6750 §3.1).
            return self._refused(401, None, "A token is needed")
        match = _CREDENTIALS.fullmatch(credentials)
        if match is None:
            return self._refused(400, "invalid_request", "The token is malformed")
        if len(match[1]) > MAX_TOKEN_BYTES:
            return self._refused(401, "invalid_token", "The token is too long")
        return await self._judged(match[1].decode("ascii"))

    def insufficient_scope(self, scopes: Iterable[str]) -> Challenge:
        """Ask for a token with more scopes: name all that the operation needs, at once.

        MCP 2026-07-28 basic/authorization §Scope Challenge Handling. Raises `ConfigurationError`
        for what is not a scope.
        """
        needed = checked_scopes(scopes, what="the scopes of a challenge")
        return self._refused(403, "insufficient_scope", "The token lacks a scope", needed)

    def metadata(self) -> tuple[str, bytes] | None:
        """Give the public path and the JSON text of the metadata document; None without one."""
        return self._resource.metadata() if self._resource is not None else None

    async def _judged(self, token: str) -> Authenticated | Challenge:
        try:
            principal = await self._verified(token)
        except RaxolError:  # "not now": whoever found out has logged it, once for all requests
            return Challenge(503, None, "Tokens cannot be checked now")
        except Exception as error:  # the edge to code that is not ours
            # Without its text, which may hold the token; the places it went through do not.
            _logger.error(
                "the token verifier raised %s: refused\n%s",
                type(error).__qualname__,
                "".join(traceback.format_tb(error.__traceback__)),
            )
            return Challenge(503, None, "Tokens cannot be checked now")
        if principal is None:
            return self._refused(401, "invalid_token", "The token is not valid here")
        if type(principal) is not Principal:
            # By exact type: True, or a value that only behaves like a principal, is nobody.
            kind = type(principal).__qualname__
            _logger.error("a token verifier must return a Principal or None, not %s", kind)
            return Challenge(503, None, "Tokens cannot be checked now")
        scopes = self._with_implied(principal.scopes)
        if not scopes.issuperset(self._required):
            return self.insufficient_scope(self._required)
        return Authenticated(principal.id, scopes)

    async def _verified(self, token: str) -> object:
        if self._bounded:
            return await self._verifier.verify(token)
        async with asyncio.timeout(self._timeout):
            return await self._verifier.verify(token)

    def _with_implied(self, granted: frozenset[str]) -> frozenset[str]:
        if not self._implied:
            return granted
        found: set[str] = set()
        left = list(granted)
        while left:
            scope = left.pop()
            if scope not in found:
                found.add(scope)
                left.extend(self._implied.get(scope, ()))
        return frozenset(found)

    def _refused(
        self, status: int, error: str | None, text: str, scopes: tuple[str, ...] | None = None
    ) -> Challenge:
        parameters = {
            "error": error,
            "error_description": text if error is not None else None,
            "scope": " ".join(self._required if scopes is None else scopes),
            "resource_metadata": self._resource.metadata_url if self._resource else None,
        }
        return Challenge(status, bearer_challenge(parameters), text)


def bearer_challenge(parameters: Mapping[str, str | None]) -> str:
    """Write a `WWW-Authenticate` value of the scheme Bearer (RFC 6750 §3), in the given order.

    Parameters that are None or empty are left out. Raises `ConfigurationError` for a value that a
    quoted string cannot hold as it is.
    """
    given = {name: value for name, value in parameters.items() if value}
    if not given:
        given = {"realm": "mcp"}  # one parameter there must be
    for name, value in given.items():
        if not _QUOTABLE.fullmatch(value):
            raise ConfigurationError(f"{name} of a challenge is plain ASCII without quotes")
    return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in given.items())


def _part(text: str) -> str:
    return text.replace("%", "%25").replace("|", "%7C")
