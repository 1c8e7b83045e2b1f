"""What became of the credentials of one request. No check of any: a verifier does that.

In core/ because the server answers with these and a transport acts on them, and neither knows the
other.
"""

from __future__ import annotations

from raxol_mcp.wire.values import Value

__all__ = ["Authenticated", "Challenge"]


class Authenticated(Value, frozen=True):
    """The request may go on, in the name of `principal` (None: anybody's).

    `principal` is what quotas and sessions count against and what an authorizer is shown; `scopes`
    is everything the credentials allow, with what broader scopes imply.
    """

    principal: str | None
    scopes: frozenset[str] = frozenset()


class Challenge(Value, frozen=True):
    """The request ends here, unread: an HTTP status, and how to come back with one that does not.

    `www_authenticate` is the value of that header, None for none. `message` is a sentence for the
    body; it tells nothing about the credentials.
    """

    status: int
    www_authenticate: str | None
    message: str
