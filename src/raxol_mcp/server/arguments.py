"""Arguments that do not fit, and copies of those that do.

Not the check itself: that is msgspec's or a JSON Schema validator's. The words for what is wrong
are in `raxol_mcp.schemas.problems`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import msgpack

from raxol_mcp.errors import RaxolError

__all__ = ["ArgumentsInvalid", "copied"]

_CONTAINERS: Final = (dict, list)


class ArgumentsInvalid(RaxolError):
    """Arguments, or an answer, that do not fit. The message is one sentence for the caller.

    MCP 2025-11-25 and later want it as an `isError` result, so that the model can correct itself
    (SEP-1303).
    """


def copied(arguments: Mapping[str, object]) -> dict[str, object]:
    """Copy arguments with all that is in them, for code of the user's, which may change them.

    What was decided about, what a person was asked about and what runs must be the same.
    """
    for value in arguments.values():  # `any` takes longer than most arguments do
        if isinstance(value, _CONTAINERS):
            break
    else:
        return dict(arguments)
    copy: dict[str, object] = msgpack.decode(msgpack.encode(arguments))  # JSON values, in C
    return copy
