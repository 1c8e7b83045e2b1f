"""The session of a link: what was agreed with the peer, and the id it gave. Sends nothing.

MCP 2025-11-25 basic/transports §Session Management. Only the answer to `initialize` names a
session; whatever header comes with another answer is not looked at, or a proxy's error page could
move the client into another session.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from raxol_mcp.errors import Reason
from raxol_mcp.transports.http_client.reasons import Broken
from raxol_mcp.wire.headers import PROTOCOL_VERSION
from raxol_mcp.wire.meta import EraName

__all__ = ["SESSION_ID", "Session"]

SESSION_ID: Final = "Mcp-Session-Id"

_ID: Final = re.compile(r"[\x21-\x7e]{1,4096}")
_STREAMABLE: Final = "2025-03-26"  # the first with GET streams, DELETE and sessions over HTTP
_VERSION_HEADER: Final = "2025-06-18"  # the first with MCP-Protocol-Version


class Session:
    """What later requests of a link have to carry."""

    __slots__ = ("id", "stateless", "version")

    def __init__(self) -> None:
        self.id: str | None = None
        self.stateless = False
        self.version = ""

    def begin(self) -> None:
        """Forget everything: `initialize` is about to be sent."""
        self.id = None
        self.stateless = False
        self.version = ""

    def issue(self, ids: Sequence[str]) -> None:
        """Take the id that came with the answer to `initialize`: the values of that header.

        Raises `Broken` for one that is not visible ASCII, and for several that differ.
        """
        if not ids:
            return
        if len(set(ids)) > 1 or not _ID.fullmatch(ids[0]):
            raise Broken(Reason("invalid_response", "session id"))
        self.id = ids[0]

    def forget(self, id: str) -> None:
        """Give up the session `id`, unless another one is in use already."""
        if self.id == id:
            self.id = None

    def agreed(self, era: EraName, version: str) -> None:
        """Know the era and the revision."""
        self.stateless = era is EraName.STATELESS
        self.version = version

    @property
    def streamable(self) -> bool:
        """Whether the revision agreed upon has streams that are opened with GET."""
        return not self.stateless and self.version >= _STREAMABLE

    @property
    def batches(self) -> bool:
        """Whether the peer may send arrays of messages: one revision has them."""
        return not self.stateless and self.version == _STREAMABLE

    def headers(self) -> dict[str, str]:
        """Give the headers of a request in this session."""
        headers: dict[str, str] = {}
        if not self.stateless and self.version >= _VERSION_HEADER:
            headers[PROTOCOL_VERSION] = self.version
        if not self.stateless and self.id is not None:
            headers[SESSION_ID] = self.id
        return headers
