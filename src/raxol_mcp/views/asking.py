"""What a human is asked before a sensitive action: which one, on what, with which arguments.

Not the asking itself, which is the server's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from raxol_mcp.views.walker import DerivedTool

__all__ = ["MAX_SHOWN", "asked_about", "shortened"]

# Ours: what a person reads, and what of a label a model is told. That there is more is said.
MAX_SHOWN: Final = 1_000


def asked_about(tool: DerivedTool, arguments: Mapping[str, object]) -> str:
    """Write the question for one call of `tool`."""
    said = f"{tool.name}: {shortened(tool.action.description)}"
    if arguments:
        said += f"\nArguments: {shortened(json.dumps(arguments, ensure_ascii=False))}"
    return f"{said}\nAllow this?"


def shortened(text: str) -> str:
    """Cut what is too long to be read, and say how much is left."""
    left = len(text) - MAX_SHOWN
    return text if left <= 0 else f"{text[:MAX_SHOWN]}... and {left} more characters"
