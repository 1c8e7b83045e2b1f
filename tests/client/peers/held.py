"""What this process holds, so that a test can say that a client has left nothing; and times."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.client.peers.script import Message

__all__ = ["BOUND", "HASTY", "Held"]

# Real seconds after which a test that should have ended has failed, on a busy machine. More than
# any timer of a client that has its defaults, but for `init_timeout`.
BOUND: Final = 45.0
# Options of a client that gives up soon: for what has to end by a timeout, over real wires.
HASTY: Final[Message] = {"call_timeout": 0.5, "init_timeout": 1.0, "probe_timeout": 0.3}


@dataclass(frozen=True, slots=True)
class Held:
    """What this process holds: tasks of the loop, descriptors, children."""

    tasks: frozenset[asyncio.Task[Any]]
    descriptors: frozenset[str]
    children: frozenset[int]

    @classmethod
    def now(cls) -> Held:
        """Count."""
        return cls(
            frozenset(asyncio.all_tasks()),
            frozenset(_descriptors()),
            frozenset(_children()),
        )

    async def settled(self) -> None:
        """Wait until no more than this is held, within a bound; then say what is."""
        with suppress(TimeoutError):
            async with asyncio.timeout(BOUND):
                # What was told to close does so in the next turns of the loop.
                while self.more() != []:  # noqa: ASYNC110  # nothing tells of it
                    await asyncio.sleep(0.001)
        assert self.more() == []

    def more(self) -> list[object]:
        """Name what is held now and was not."""
        now = Held.now()
        return [
            *(now.tasks - self.tasks),
            *sorted(now.descriptors - self.descriptors),
            *(now.children - self.children),
        ]


def _descriptors() -> list[str]:
    """Give each open descriptor with what it is, so that a number that is used again counts."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            found.append(f"{name} {os.readlink(f'/proc/self/fd/{name}')}")
    # The one that reads the list is gone by now.
    return [each for each in found if not each.endswith("/fd")]


def _children() -> list[int]:
    """Give the ids of the children of this process, those that wait to be reaped too."""
    found: list[int] = []
    for path in Path("/proc/self/task").glob("*/children"):
        with suppress(FileNotFoundError):
            found += map(int, path.read_text().split())
    return found
