"""What apps print while several run in one process: each app gets its own, the server its own.

Textual puts an app in the place of `sys.stdout` and `sys.stderr` while it runs, and puts back what
was there. That is right for one app. With several, whoever ends first puts back what another
needs, and whoever ends last puts back an app that is gone.

So something is put there that goes by the thread: what is printed reaches the app whose thread it
is, and goes where it went before otherwise. When the last app has ended, it is gone.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from textual.app import App

__all__ = ["PRINTS", "Prints"]

_NAMES: Final = ("stdout", "stderr")


class _Target(Protocol):
    def write(self, text: str, /) -> object: ...

    def flush(self) -> object: ...


class _Stream:
    """Stands in the place of one of the two."""

    def __init__(self, before: _Target) -> None:
        self.before = before
        self.by_thread: dict[int, _Target] = {}

    def write(self, text: str) -> int:
        self._here().write(text)
        return len(text)

    def flush(self) -> None:
        self._here().flush()

    def close(self) -> None:
        """Nothing: it is everybody's."""

    def __getattr__(self, name: str) -> object:
        return getattr(self.before, name)

    def _here(self) -> _Target:
        return self.by_thread.get(threading.get_ident(), self.before)


class Prints:
    """The two streams of a process. Each app's thread says when it begins, runs and has ended."""

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._streams: dict[str, _Stream] = {}
        self._apps = 0

    def begins(self) -> None:
        """Remember what was there before the first app."""
        with self._changing:
            if self._apps == 0:
                self._streams = {name: _Stream(getattr(sys, name)) for name in _NAMES}
            self._apps += 1

    def runs(self, app: App[object]) -> None:
        """Put the streams there instead of the app, which has just put itself there."""
        captures = {"stdout": app._capture_stdout, "stderr": app._capture_stderr}
        with self._changing:
            for name, stream in self._streams.items():
                stream.by_thread[threading.get_ident()] = captures[name]
                setattr(sys, name, stream)

    def ended(self) -> None:
        """Undo what the app put back, which was right only if it was alone."""
        with self._changing:
            self._apps -= 1
            for name, stream in self._streams.items():
                stream.by_thread.pop(threading.get_ident(), None)
                setattr(sys, name, stream if self._apps else stream.before)


PRINTS: Final = Prints()
