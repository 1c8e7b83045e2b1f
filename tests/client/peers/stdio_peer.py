"""A scripted peer as a program: `python -I -S stdio_peer.py FOLDER ARGUMENT...`.

In FOLDER, `script` is the JSON of `script.script`. There go, for process number N: `N.json` (its
process id, arguments and environment), `N.in` (every byte it read) and `N.events` ("eof", "term",
one a line). Messages are dealt with side by side: one that waits holds no
other.
"""

from __future__ import annotations

import heapq
import json
import os
import selectors
import signal
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

# The folder of this program is on no path but the one above: it may run without the project.
from script import Message, Script, Step, filled, raw_bytes  # type: ignore[import-not-found]  # see above

# Seconds after which a process ends in spite of everything: whoever was to end it may be gone.
LIVES = 300
GRANDCHILD_LIVES = 120.0


class Peer:
    """One process: what it reads, what it is doing, and what it does later."""

    def __init__(self, data: Message, folder: Path) -> None:
        self.folder = folder
        self.life = self._claim()
        self.script = Script(data, self.life)
        self.ignores: list[str] = data.get("ignores", [])
        self.read = (folder / f"{self.life}.in").open("ab", buffering=0)
        self.ready = selectors.DefaultSelector()
        self.later: list[tuple[float, int, Iterator[Any]]] = []
        self.waiting: list[tuple[str, Iterator[Any]]] = []
        self.order = count()
        self.pending = b""

    def _claim(self) -> int:
        """Take the first number that no process before this one took."""
        for life in count(1):
            try:
                with (self.folder / f"{life}.json").open("x") as file:
                    facts = {"pid": os.getpid(), "argv": sys.argv[2:], "env": dict(os.environ)}
                    json.dump(facts, file)
            except FileExistsError:
                continue
            return life
        raise AssertionError("there is always another number")

    def note(self, event: str) -> None:
        """Write down what happened to this process."""
        with (self.folder / f"{self.life}.events").open("a") as file:
            file.write(f"{event}\n")

    def run(self) -> None:
        """Live until told to leave, or until the input ends."""
        signal.signal(signal.SIGTERM, self._terminated)
        signal.alarm(LIVES)
        if self.script.data.get("grandchild"):
            self._leave_a_child()
        self.ready.register(0, selectors.EVENT_READ)
        self.perform(self._steps(self.script.steps("start"), None))
        while True:
            wait = max(0.0, self.later[0][0] - time.monotonic()) if self.later else None
            if self.ready.get_map():
                if self.ready.select(wait):
                    self._input()
            else:
                time.sleep(3600.0 if wait is None else wait)
            while self.later and self.later[0][0] <= time.monotonic():
                self.perform(heapq.heappop(self.later)[2])

    def perform(self, steps: Iterator[Any]) -> None:
        """Go on with what is done about one event, until it has to wait."""
        for pause in steps:
            if isinstance(pause, str):
                self.waiting.append((pause, steps))
                return
            if pause > 0:
                heapq.heappush(self.later, (time.monotonic() + pause, next(self.order), steps))
                return

    def _input(self) -> None:
        data = os.read(0, 1 << 20)
        self.read.write(data)
        if not data:
            self._ended()
            return
        *lines, self.pending = (self.pending + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            event = self.script.event_of(message)
            woken = [steps for what, steps in self.waiting if what == event]
            self.waiting = [each for each in self.waiting if each[0] != event]
            for steps in woken:
                self.perform(steps)
            self.perform(self._steps(self.script.steps(event, message), message))

    def _ended(self) -> None:
        self.note("eof")
        self.ready.unregister(0)
        self.perform(self._steps(self.script.steps("eof"), None))
        if "eof" not in self.ignores:
            sys.exit(0)

    def _terminated(self, _number: int, _frame: object) -> None:
        self.note("term")
        if "term" not in self.ignores:
            os._exit(128 + signal.SIGTERM)

    def _steps(self, steps: list[Step], message: Message | None) -> Iterator[Any]:
        """Do the steps; yield seconds to wait, or the name of an event to wait for."""
        for step in steps:
            match step["step"]:
                case "say":
                    for each in filled(step, message):
                        write(1, json.dumps(each, separators=(",", ":")).encode() + b"\n")
                case "raw":
                    for data in raw_bytes(step, message):
                        write(1, data)
                        yield step["pause"]
                case "stderr":
                    write(2, b"".join(raw_bytes(step, message)))
                case "wait":
                    yield step["seconds"]
                case "until":
                    yield step["event"]
                case "silent":
                    return
                case _:
                    self._end(step)

    def _end(self, step: Step) -> None:
        match step["step"]:
            case "leave":
                sys.exit(step["code"])
            case "kill":
                os.kill(os.getpid(), step["signal"])
            case "close_output":
                os.close(1)
            case "stop_reading":
                self.ready.unregister(0)
            case other:
                raise ValueError(f"a pipe has no {other}")

    def _leave_a_child(self) -> None:
        """Start a process that holds the pipes and ends for nothing but SIGKILL."""
        told = self.folder / f"{self.life}.grandchild"
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            # Renamed, so that nobody finds a file with nothing in it yet.
            unfinished = told.with_suffix(".unfinished")
            unfinished.write_text(str(os.getpid()))
            unfinished.rename(told)
            time.sleep(GRANDCHILD_LIVES)
            os._exit(0)
        while not told.exists():
            time.sleep(0.001)


def write(descriptor: int, data: bytes) -> None:
    """Write it all, unless it is closed on either side."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except OSError:
            return


if __name__ == "__main__":
    # What nobody reads is no reason to die: the script says when that is to happen.
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    FOLDER = Path(sys.argv[1])
    Peer(json.loads((FOLDER / "script").read_text()), FOLDER).run()
