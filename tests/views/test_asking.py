"""`asking`: what a human reads before something is done."""

from __future__ import annotations

from raxol_mcp.views.asking import asked_about
from raxol_mcp.views.walker import Action, DerivedTool


def of(description: str) -> DerivedTool:
    """Make a sensitive tool."""
    action = Action(name="click", description=description, destructive=True)
    return DerivedTool("todo.wipe.click", "wipe", action, sensitive=True)


def test_a_question_names_the_tool_what_it_does_and_the_arguments() -> None:
    """ours: a yes to something else would be worth nothing."""
    assert asked_about(of("Press Wipe"), {}) == "todo.wipe.click: Press Wipe\nAllow this?"
    assert asked_about(of("Press Wipe"), {"row": 3, "name": "Zoë"}) == (
        'todo.wipe.click: Press Wipe\nArguments: {"row": 3, "name": "Zoë"}\nAllow this?'
    )


def test_what_is_too_long_to_read_is_cut_and_counted() -> None:
    """ours: a description cannot push the rest off the screen."""
    said = asked_about(of("x" * 5_000), {"text": "y" * 5_000})
    assert len(said) < 2_200
    assert "... and 4000 more characters\n" in said
    assert said.endswith("\nAllow this?")
