"""What the tests of the command line share: modules to load, and a process left as it was."""

import logging
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

WriteModule = Callable[[str, str], Path]


@pytest.fixture(autouse=True)
def process_as_it_was() -> Iterator[None]:
    """Put back what a command changes for good, because its process ends after it."""
    path, modules, handlers = sys.path.copy(), set(sys.modules), logging.root.handlers.copy()
    level, kept = logging.root.level, [os.dup(fd) for fd in (0, 1)]
    yield
    for fd, copy in enumerate(kept):
        os.dup2(copy, fd)
        os.close(copy)
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if not name.startswith("raxol_mcp"):
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
