"""The progress of a call as one line of text. Draws nothing itself: `Screen` does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from raxol_mcp.cli.screen import Screen
from raxol_mcp.cli.screen_text import shortened
from raxol_mcp.client.results import Progress
from raxol_mcp.wire.texts import printable

__all__ = ["ProgressBar", "progress_line"]

_CELLS: Final = 24
# A server may report a thousand steps a second; nobody reads more than these.
_BETWEEN_DRAWINGS: Final = 0.1


def progress_line(progress: float, total: float | None, message: str | None, width: int) -> str:
    """Write progress as a line of at most `width` columns.

    Without a total, or with one that cannot be meant, the number is all that is known.
    """
    if total is not None and 0 < total < float("inf") and progress == progress:
        share = min(max(progress / total, 0.0), 1.0)
        full = int(share * _CELLS)
        line = f"[{'#' * full}{'.' * (_CELLS - full)}] {int(share * 100):3} %"
    else:
        line = f"{progress:.6g}"
    if message:
        line = f"{line}  {printable(message)}"
    return shortened(line, width)


class ProgressBar:
    """Shows the progress of one call, as often as it is worth it. `clock` gives seconds."""

    def __init__(self, screen: Screen, clock: Callable[[], float]) -> None:
        self._screen = screen
        self._clock = clock
        self._next_at = float("-inf")

    def report(self, said: Progress) -> None:
        """Take one report of the server."""
        now = self._clock()
        # The last one is drawn whenever it comes, so that a bar does not end at 97 %.
        if now >= self._next_at or said.progress == said.total:
            self._next_at = now + _BETWEEN_DRAWINGS
            # One column stays free: a full line would make some terminals begin another.
            width = self._screen.width - 1
            self._screen.draw(progress_line(said.progress, said.total, said.message, width))
