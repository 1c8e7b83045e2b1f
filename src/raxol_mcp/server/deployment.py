"""The boot gate: a production server that somebody can reach must have an authorizer.

Decides and raises; knows nothing of servers or transports. The environment is read at call time,
never at import: what a library saw while it was built says nothing about its host.
"""

from __future__ import annotations

import os
from typing import Final, Literal

from raxol_mcp.errors import ConfigurationError

__all__ = [
    "ENVIRONMENT_VARIABLE",
    "authorization_required",
    "enforce_authorization",
    "enforce_read_authorization",
    "environment",
    "production",
]

ENVIRONMENT_VARIABLE: Final = "RAXOL_MCP_ENV"


def environment() -> Literal["dev", "test", "production"]:
    """Read `RAXOL_MCP_ENV`: exactly `dev` or `test`; anything else, and unset, is production."""
    match os.environ.get(ENVIRONMENT_VARIABLE):
        case "dev":
            return "dev"
        case "test":
            return "test"
        case _:
            return "production"


def production() -> bool:
    """Say whether this is production. What cannot be known is production."""
    return environment() == "production"


def authorization_required(override: bool | None = None) -> bool:
    """Say whether a network server needs authorizers: `override` if given, else in production.

    Raises `ConfigurationError` for an override that is no bool: `"false"` is true to Python.
    """
    if override is None:
        return production()
    if not isinstance(override, bool):
        raise ConfigurationError(
            f"require_authorization must be True, False or None, not {override!r}"
        )
    return override


def enforce_authorization(
    configured: bool, *, context: str = "MCP transport", required: bool | None = None
) -> None:
    """Refuse to boot when calls would be open to anyone.

    `configured` says that somebody chose the authorizer: a fallback of a framework is not a
    choice, however strict. Only `True` counts. `required` is the override of
    `authorization_required`. Raises `ConfigurationError` that names the option.
    """
    if authorization_required(required) and configured is not True:
        raise ConfigurationError(
            f"{context} refuses to boot: authorization is required in this environment but no "
            "authorizer is configured on the MCP server. Pass authorizer=... to the server "
            "(command line: --authorizer, --allow-tools or --allow-all-tools), or override with "
            f"require_authorization=False, or set {ENVIRONMENT_VARIABLE}=dev on a development "
            "machine."
        )


def enforce_read_authorization(
    configured: bool, *, context: str = "MCP transport", required: bool | None = None
) -> None:
    """Refuse to boot when reads (resources, prompts, lists, completion) would be open to anyone.

    The same rule as `enforce_authorization` for the other seam: an authorizer for tools knows no
    method names, so one cannot stand in for the other.
    """
    if authorization_required(required) and configured is not True:
        raise ConfigurationError(
            f"{context} refuses to boot: authorization is required in this environment but no "
            "read authorizer is configured on the MCP server. Pass read_authorizer=... to the "
            "server (command line: --read-authorizer or --allow-reads), or override with "
            f"require_authorization=False, or set {ENVIRONMENT_VARIABLE}=dev on a development "
            "machine."
        )
