"""The environment a server is started with, as a pure function of the client's own and its spec.

Starts nothing and reads no environment by itself.

A server is a program of somebody else, and the client's environment holds the client's secrets.
Most servers need most of the rest (a proxy, a cache folder, the token they are there for), so by
default it is inherited and only the secrets of this project are held back. `inherit=False` is for
a server that is not to be trusted with more than it takes to run.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

__all__ = ["BASE", "child_environment", "is_own_secret"]

BASE: Final = frozenset(
    {
        *("HOME", "LOGNAME", "USER", "SHELL", "TERM"),
        *("PATH", "TMPDIR", "TZ", "LANG", "LANGUAGE"),
    }
)
"""What a program needs to run at all; `LC_*` too. All that `inherit=False` leaves."""

_LOCALE: Final = "LC_"
_OWN_SECRET: Final = re.compile(r"RAXOL_MCP_(?:.*_)?(?:KEY|TOKEN|SECRET|PASSWORD)")


def child_environment(
    parent: Mapping[str, str],
    given: Mapping[str, str],
    *,
    inherit: bool = True,
    drop: Collection[str] = (),
) -> dict[str, str]:
    """Return what a child starts with: `parent` without what it must not have, then `given`.

    Held back are our own secrets, `drop`, and with `inherit=False` all but `BASE` and `LC_*`.
    What is `given` by name was meant, whatever it is called. Names are compared exactly.
    """
    kept = {
        name: value
        for name, value in parent.items()
        if not is_own_secret(name)
        and name not in drop
        and (inherit or name in BASE or name.startswith(_LOCALE))
    }
    return kept | dict(given)


def is_own_secret(name: str) -> bool:
    """Whether a variable of this project is a secret by its name: `RAXOL_MCP_STATE_KEY`."""
    return _OWN_SECRET.fullmatch(name) is not None
