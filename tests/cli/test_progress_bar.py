"""The progress of a call in one line."""

import io

import pytest

from raxol_mcp.cli.progress_bar import ProgressBar, progress_line
from raxol_mcp.cli.screen import Screen
from raxol_mcp.client.results import Progress


@pytest.mark.parametrize(
    ("progress", "total", "message", "line"),
    [
        (0, 10, None, "[........................]   0 %"),
        (5, 10, None, "[############............]  50 %"),
        (9.99, 10, None, "[#######################.]  99 %"),
        (10, 10, "done", "[########################] 100 %  done"),
        (50, 10, None, "[########################] 100 %"),
        (-5, 10, None, "[........................]   0 %"),
        (7, None, "copying", "7  copying"),
        (7, 0, None, "7"),
        (7, -3, None, "7"),
        (float("nan"), 10, None, "nan"),
        (3, float("inf"), None, "3"),
        (1e300, None, None, "1e+300"),
        (1, None, "a\n[y/N]\x1b[2J\u202e", "1  a\\n[y/N]\\x1b[2J\\u202e"),
    ],
)
def test_progress_is_one_line_that_steers_nothing(
    progress: float, total: float | None, message: str | None, line: str
) -> None:
    """MCP basic/utilities/progress; ours: docs/cli.md."""
    assert progress_line(progress, total, message, 80) == line


def test_the_line_fits_the_terminal() -> None:
    line = progress_line(1, 2, "x" * 1000, 40)
    assert len(line) == 40
    assert line.endswith("…")


def test_it_is_drawn_as_often_as_it_is_worth_it() -> None:
    """K12. A server may report a thousand steps a second."""
    stream, now = io.StringIO(), [0.0]
    screen = Screen(stream, is_terminal=True, width=60)
    bar = ProgressBar(screen, lambda: now[0])
    for step in range(1000):
        bar.report(Progress(step, 1000))
        now[0] += 0.001
    bar.report(Progress(1000, 1000))
    drawn = stream.getvalue().split("\r\x1b[K")
    assert len(drawn) == 11
    assert drawn[-1].endswith("100 %"), "the last step is not left out"
    screen.draw("")
    assert stream.getvalue().endswith("\r\x1b[K")
