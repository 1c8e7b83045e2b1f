"""`Value`: what the records of wire/ and core/ are made of; and when a value of JSON is a number.

No record itself. Not a dataclass: declaring one takes some twenty times as long, which a server
pays at every start, and making one twice as long, which it pays at every call. A module of its
own because core/ knows no codec: this class is all it takes from msgspec.
"""

from __future__ import annotations

from typing import TypeGuard

from msgspec import Struct as Value

__all__ = ["Value", "is_number"]


def is_number(value: object) -> TypeGuard[int | float]:
    """Say whether a value is a number in JSON: to Python, True is one as well."""
    return isinstance(value, int | float) and not isinstance(value, bool)
