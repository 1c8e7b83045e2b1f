"""The `raxol-mcp` command. `docs/cli.md` is its manual.

The only part of the package that knows click. What a command needs beyond that is imported when
the command runs.
"""

from raxol_mcp.cli.commands import main

__all__ = ["main"]
