"""What this server is called in OAuth, and the document that tells clients where tokens come from.

Not a check of tokens. The public address is configured once and never taken from a request:
behind a proxy the Host, the scheme and the path of a request are the inner ones, and a client may
write any Host. RFC 9728; MCP 2026-07-28 basic/authorization.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.server.secure_urls import secure_url

__all__ = ["ProtectedResource", "checked_scopes"]

_WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
_SCOPE: Final = r"[\x21\x23-\x5b\x5d-\x7e]+"  # RFC 6749 §3.3


class ProtectedResource:
    """An MCP endpoint as a resource, by its public address.

    ```python
    ProtectedResource(
        "https://mcp.example.com/mcp", authorization_servers=["https://login.example.com"]
    )
    ```

    `url` is the canonical spelling (lower case, no default port, no slash at the end): the
    `resource` of the document, and the audience that tokens must name. `authorization_servers`
    are issuers, kept to the letter, because clients compare them so. Without one there is no
    document: it would lead clients nowhere. Raises `ConfigurationError`.
    """

    __slots__ = ("_document", "_metadata_path", "_origin", "url")

    def __init__(
        self,
        url: str,
        *,
        authorization_servers: Iterable[str] = (),
        scopes_supported: Iterable[str] = (),
        name: str | None = None,
        documentation: str | None = None,
    ) -> None:
        public = secure_url(url, what="the public URL of the server")
        if public.query is not None:
            raise ConfigurationError("the public URL of the server has no query (RFC 8707 §2)")
        path = public.path.rstrip("/")
        self.url = public.origin + path
        self._origin = public.origin
        self._metadata_path = _WELL_KNOWN + path
        self._document = self._encoded(
            _issuers(authorization_servers),
            checked_scopes(scopes_supported, what="scopes_supported"),
            {"resource_name": name, "resource_documentation": documentation},
        )

    @property
    def metadata_url(self) -> str | None:
        """The public address of the document, for challenges; None without one."""
        return None if self._document is None else self._origin + self._metadata_path

    def metadata(self) -> tuple[str, bytes] | None:
        """Give the public path of the document and its JSON text; None without one."""
        return None if self._document is None else (self._metadata_path, self._document)

    def __repr__(self) -> str:
        return f"ProtectedResource({self.url!r})"

    def _encoded(
        self, issuers: tuple[str, ...], scopes: tuple[str, ...], texts: dict[str, str | None]
    ) -> bytes | None:
        if not issuers:
            return None
        document: dict[str, object] = {
            "resource": self.url,
            "authorization_servers": issuers,
            "bearer_methods_supported": ["header"],
        }
        if scopes:
            document["scopes_supported"] = scopes
        document.update((key, text) for key, text in texts.items() if text is not None)
        return msgspec.json.encode(document)


def checked_scopes(scopes: Iterable[str], *, what: str) -> tuple[str, ...]:
    """Copy names of scopes, each once, in order. Raises `ConfigurationError`.

    `offline_access` is none of a resource: a client would ask for a refresh token because of it
    (MCP 2026-07-28 basic/authorization §Refresh Tokens).
    """
    if isinstance(scopes, str):
        raise ConfigurationError(f"{what} is a list of scopes, not the string {scopes!r}")
    found: tuple[str, ...] = tuple(dict.fromkeys(scopes))
    for scope in found:
        if not re.fullmatch(_SCOPE, scope):
            raise ConfigurationError(f"{what}: {scope!r} is not a scope (RFC 6749 §3.3)")
        if scope == "offline_access":
            raise ConfigurationError(f"{what}: offline_access is not for a resource to ask for")
    return found


def _issuers(urls: Iterable[str]) -> tuple[str, ...]:
    if isinstance(urls, str):
        raise ConfigurationError("authorization_servers is a list of URLs, not one URL")
    found = tuple(urls)
    for url in found:
        if secure_url(url, what="an authorization server").query is not None:
            raise ConfigurationError("an authorization server has no query (RFC 8414 §2)")
    return found
