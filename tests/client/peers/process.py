"""Scripted peers as processes: the command that starts one, and what each wrote down."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.client.peers.script import Message

__all__ = ["Life", "Processes", "lives"]

PROGRAM: Final = Path(__file__).with_name("stdio_peer.py")


@dataclass(frozen=True, slots=True)
class Life:
    """One process: `read` are the bytes that it was sent, `events` what it noticed besides."""

    pid: int
    argv: list[str]
    env: dict[str, str]
    read: bytes
    events: list[str]
    grandchild: int | None

    @property
    def messages(self) -> list[Message]:
        """The messages among what it was sent."""
        return [json.loads(line) for line in self.read.splitlines()]

    @property
    def methods(self) -> list[str]:
        """Their methods, in order; an answer is "answer"."""
        return [each.get("method", "answer") for each in self.messages]


class Processes:
    """Every process that one script was given to, in the order they were started.

    `command` and `args` start the next one. `folder` is empty at first, and theirs: the script is
    put there.
    """

    def __init__(self, script: Message, folder: Path, arguments: Sequence[str] = ()) -> None:
        self.folder = folder
        self.command = sys.executable
        # In a file: an argument has at most 128 KiB.
        (folder / "script").write_text(json.dumps(script))
        # Neither site nor the environment of Python: it starts in a quarter of the time.
        self.args = ["-I", "-S", str(PROGRAM), str(folder), *arguments]

    @property
    def lives(self) -> list[Life]:
        """What each has written down until now."""
        numbers = sorted(int(path.stem) for path in self.folder.glob("*.json"))
        return [life for number in numbers if (life := self._life(number)) is not None]

    def alive(self) -> list[int]:
        """Give the ids of the processes that still live, those of grandchildren too."""
        known = [pid for life in self.lives for pid in (life.pid, life.grandchild)]
        return [pid for pid in known if pid is not None and lives(pid)]

    def _life(self, number: int) -> Life | None:
        start = (self.folder / f"{number}.json").read_text()
        if not start:  # it is being written
            return None
        facts = json.loads(start)
        grandchild = self._text(f"{number}.grandchild")
        read = self.folder / f"{number}.in"
        return Life(
            facts["pid"],
            facts["argv"],
            facts["env"],
            read.read_bytes() if read.exists() else b"",
            self._text(f"{number}.events").split(),
            int(grandchild) if grandchild else None,
        )

    def _text(self, name: str) -> str:
        path = self.folder / name
        return path.read_text() if path.exists() else ""


def lives(pid: int) -> bool:
    """Say whether a process lives. One that only waits to be reaped does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        # No /proc, or gone since.
        return not Path("/proc").is_dir()
