"""What the README shows of the to-do app is what the app and the program do."""

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from raxol_mcp.testing.views import AppView

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
APP = ROOT / "examples" / "todo_app.py"


def test_the_app_has_at_most_sixty_lines() -> None:
    assert len(APP.read_text("utf-8").splitlines()) <= 60


def test_the_transcript_is_what_the_program_prints() -> None:
    path = os.pathsep.join([str(ROOT / "src"), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "use_the_todo_app.py")],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout.startswith("> start_session()\n")
    assert f"```\n{done.stdout}```\n" in README


def test_the_picture_is_drawn_and_shown() -> None:
    text = "".join(ElementTree.parse(ROOT / "docs" / "todo_app.svg").getroot().itertext())
    for drawn in ("Buy\xa0milk", "Write\xa0a\xa0letter", "1\xa0to\xa0do,\xa02\xa0done"):
        assert drawn in text
    assert "](docs/todo_app.svg)" in README


def test_the_app_does_what_it_and_the_page_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(APP.parent))
    from todo_app import TodoApp  # type: ignore[import-not-found]  # an example, not a package

    page = (ROOT / "docs" / "views.md").read_text("utf-8")
    (shown,) = [block for block in page.split("```")[1::2] if "AppView" in block]
    namespace = {"TodoApp": TodoApp}
    exec(shown.removeprefix("python"), namespace)
    namespace["test_adding"]()
    with AppView(TodoApp) as app:
        app.refute_tool("clear.click").type_into("new", "Buy milk", submit=True)
        app.type_into("new", "   ", submit=True).assert_widget("count", content="1 to do, 0 done")
        app.clear("new").press("ctrl+t").assert_widget("items.Checkbox-buy-milk", state="on")
        app.click("clear").refute_widget("items.Checkbox-buy-milk")
        app.assert_widget("count", content="0 to do, 0 done").refute_tool("clear.click")
