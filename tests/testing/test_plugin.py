"""The pytest plugin, in a pytest of its own: it opens apps, and closes them after the test."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

MODULE = """
import threading
from tests.views.textual_apps import Scenes

def test_uses_an_app(app_view):
    app = app_view(Scenes, size=(100, 30))
    app.do("keys", "erase_everything").assert_widget("mood", content="erased")

def test_it_is_closed_afterwards():
    for thread in threading.enumerate():
        if thread.name.startswith("app "):
            thread.join(10)
            assert not thread.is_alive()
"""


def test_the_fixture_opens_apps_and_closes_them(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(MODULE, "utf-8")
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "raxol_mcp.testing.plugin", "test_it.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_loading_the_plugin_loads_neither_textual_nor_a_server() -> None:
    """Pytest loads it wherever raxol-mcp is installed."""
    program = (
        "import sys, raxol_mcp.testing.plugin\n"
        "print([name for name in ('textual', 'raxol_mcp.server.app') if name in sys.modules])"
    )
    path = os.pathsep.join([str(ROOT / "src"), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.strip() == "[]"
