"""The exit codes of `raxol-mcp`. docs/cli.md says when each is given."""

from __future__ import annotations

from typing import Final

__all__ = [
    "BUSY",
    "FAILED",
    "INTERRUPTED",
    "NO_CONNECTION",
    "OK",
    "TERMINATED",
    "TIMED_OUT",
    "TOOL_FAILED",
    "USAGE",
]

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
TOOL_FAILED: Final = 3
NO_CONNECTION: Final = 4
TIMED_OUT: Final = 5
BUSY: Final = 6
# As a shell shows a death by signal n: 128 + n.
INTERRUPTED: Final = 130
TERMINATED: Final = 143
