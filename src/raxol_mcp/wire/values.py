"""`Value`: what the records of wire/ and core/ are made of. No record itself.

Not a dataclass: declaring one takes some twenty times as long, which a server pays at every start,
and making one twice as long, which it pays at every call. A module of its own because core/ knows
no codec: this class is all it takes from msgspec.
"""

from __future__ import annotations

from msgspec import Struct as Value

__all__ = ["Value"]
