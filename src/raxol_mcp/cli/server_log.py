"""What a server logs, and what it writes to its stderr, as notes on the screen."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from raxol_mcp.cli.client_options import Manner
from raxol_mcp.cli.screen import Screen
from raxol_mcp.cli.screen_text import shortened, wrapped
from raxol_mcp.errors import RaxolError
from raxol_mcp.wire.meta import log_severity
from raxol_mcp.wire.texts import printable

if TYPE_CHECKING:
    from raxol_mcp.client.app import Client
    from raxol_mcp.client.results import ClientStatus, LogMessage

__all__ = ["ServerLog"]

# Without --verbose. A server tells of its work at "info"; what went wrong is worth a line.
_FROM: Final = "warning"
_MAX_TEXT: Final = 2000


class ServerLog:
    """Shows what the server `name` logs, each line behind that name."""

    def __init__(self, screen: Screen, name: str, manner: Manner) -> None:
        self._screen = screen
        self._name = printable(name)
        self._manner = manner
        self._from = "debug" if manner.verbose else _FROM

    def __call__(self, message: LogMessage) -> None:
        """Take one message."""
        severity, least = log_severity(message.level), log_severity(self._from)
        if self._manner.quiet or (severity is not None and least is not None and severity < least):
            return
        data = message.data
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
        source = "" if message.logger is None else f"{printable(message.logger)}: "
        self._note(f"{printable(message.level)}: {source}", text)

    async def choose(self, client: Client, status: ClientStatus) -> None:
        """Ask the server for what will be shown, where it can be asked.

        In the handshake era that is a request, so it is made only for more than servers send by
        themselves.
        """
        stateless = status.era == "stateless"
        if "logging" in status.capabilities and (self._manner.verbose or stateless):
            try:
                await client.set_log_level("emergency" if self._manner.quiet else self._from)
            except RaxolError:
                return  # the result matters more than the log

    def show_stderr(self, text: str) -> None:
        """Show what the server wrote to its stderr, with --verbose."""
        if self._manner.verbose:
            for line in text.splitlines():
                self._note("stderr: ", line)

    def _note(self, front: str, text: str) -> None:
        said = shortened(printable(text), _MAX_TEXT)
        first, *more = wrapped(f"{self._name} {front}{said}", self._screen.width - 4)
        for line in [first, *(f"    {part}" for part in more)]:
            self._screen.note(self._screen.styled(line, "dim"))
