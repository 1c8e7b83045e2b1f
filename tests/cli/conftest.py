"""What the tests of the command line share: modules to load, and a process left as it was."""

import logging
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

WriteModule = Callable[[str, str], Path]


def _place(module: ModuleType) -> str:
    """Return where a module comes from; a folder without an `__init__.py` has no file."""
    return str(getattr(module, "__file__", None) or [*getattr(module, "__path__", ()), ""][0])


@pytest.fixture(autouse=True)
def process_as_it_was(tmp_path: Path) -> Iterator[None]:
    """Put back what a command changes for good, because its process ends after it."""
    path, modules, handlers = sys.path.copy(), set(sys.modules), logging.root.handlers.copy()
    level, kept = logging.root.level, [os.dup(fd) for fd in (0, 1)]
    yield
    for fd, copy in enumerate(kept):
        os.dup2(copy, fd)
        os.close(copy)
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        # The others stay: a library that is half loaded twice has two classes of each name.
        if _place(sys.modules[name]).startswith(str(tmp_path)):
            del sys.modules[name]
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


@pytest.fixture
def write_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WriteModule:
    """Return a function that writes `name.py` into the folder that is current meanwhile."""
    monkeypatch.chdir(tmp_path)

    def write(name: str, text: str) -> Path:
        path = tmp_path / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    return write
