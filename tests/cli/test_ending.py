"""The last resort: a process that does not end by itself."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"


@pytest.mark.parametrize(
    "holds_on",
    [
        "threading.Thread(target=threading.Event().wait).start()",
        "atexit.register(threading.Event().wait)",
    ],
)
def test_what_holds_on_to_a_process_is_left_behind(holds_on: str) -> None:
    """ours: docs/cli.md. A thread cannot be killed."""
    program = (
        "import atexit, threading; from raxol_mcp.cli.ending import end_process; "
        f"{holds_on}; end_process(0.05, 7)"
    )
    path = os.pathsep.join([str(SOURCE), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": path}, check=False
    )
    assert done.returncode == 7


def test_a_process_that_ends_by_itself_is_left_alone() -> None:
    program = "from raxol_mcp.cli.ending import end_process; end_process(60.0, 7)"
    path = os.pathsep.join([str(SOURCE), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": path}, check=False
    )
    assert done.returncode == 0
