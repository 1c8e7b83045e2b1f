"""Draws the picture of the to-do app that the documentation shows: `make picture`."""

import importlib.util
import sys
from pathlib import Path

from raxol_mcp.testing.views import AppView

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "todo_app.svg"


def main() -> None:
    """Use the app as an agent does, and draw what is on its screen then."""
    spec = importlib.util.spec_from_file_location("todo_app", ROOT / "examples" / "todo_app.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with AppView(module.TodoApp, size=(72, 20)) as app:
        for item in ("Buy milk", "Write a letter", "Call Ann"):
            app.type_into("new", item, submit=True)
        app.toggle("items.Checkbox-buy-milk").toggle("items.Checkbox-call-ann")
        svg = app.assert_widget("count", content="1 to do, 2 done").svg()
    PICTURE.write_text(svg, "utf-8")
    print(f"wrote {PICTURE.relative_to(ROOT)}", file=sys.stderr)


if __name__ == "__main__":
    main()
