"""Runs the same work against several servers in turn, and says how they compare.

Interleaved: each round measures every side once, so that what else the machine does hits all
alike. Compared by medians; only ratios mean anything on another machine.
"""

from __future__ import annotations

import asyncio
import platform
import sys
from collections.abc import Awaitable, Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Final

import raxol_mcp

__all__ = ["BARE", "OFFICIAL", "OURS", "SIDES", "command", "contest", "machine", "print_ratios"]

OURS: Final = "ours"
OFFICIAL: Final = "official"
BARE: Final = "bare"
SIDES: Final = (OURS, OFFICIAL, BARE)

_SERVERS: Final = Path(__file__).parents[1] / "servers"
_TIMEOUT: Final = 600.0

Measured = dict[str, float]


def command(side: str, *arguments: object) -> list[str]:
    """Return the command that starts the server of a side."""
    # -P: nothing is imported from the folder of the servers; one of them is called `http`.
    return [sys.executable, "-P", str(_SERVERS / f"{side}.py"), *map(str, arguments)]


def machine() -> str:
    """Name what was measured on, and what."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("mcp", "msgspec"))
    python = f"Python {platform.python_version()}, {platform.machine()}"
    return f"{python}; raxol-mcp {raxol_mcp.__version__}, {packages}"


def contest(
    measure: Callable[[str], Awaitable[Measured]],
    *,
    rounds: int,
    sides: tuple[str, ...] = SIDES,
) -> dict[str, Measured]:
    """Measure every side `rounds` times, and once more before, which does not count.

    Returns the median of each number, by side.
    """

    async def once(side: str) -> Measured:
        async with asyncio.timeout(_TIMEOUT):
            return await measure(side)

    found: dict[str, list[Measured]] = {side: [] for side in sides}
    for number in range(rounds + 1):
        for side in sides:
            measured = asyncio.run(once(side))
            if number:
                found[side].append(measured)
    return {
        side: {name: median(run[name] for run in runs) for name in runs[0]}
        for side, runs in found.items()
    }


def print_ratios(
    title: str, found: Mapping[str, Measured], *, unit: str, budgets: Mapping[str, float]
) -> None:
    """Print a table of what was found and how many times less ours takes than the official side.

    `budgets` has, by the name of a number, how many times less it has to be.
    """
    print(f"\n{title} ({unit})")
    print(f"{'':34}" + "".join(f"{side:>12}" for side in found) + f"{'official/ours':>16}  budget")
    for name, ours in found[OURS].items():
        row = "".join(f"{measured[name]:12.3f}" for measured in found.values())
        ratio = found[OFFICIAL][name] / ours
        budget = budgets.get(name)
        verdict = "" if budget is None else f"{budget:g} {'met' if ratio >= budget else 'MISSED'}"
        print(f"{name:34}{row}{ratio:16.1f}  {verdict}")
