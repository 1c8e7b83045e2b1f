"""A to-do list for the terminal. It knows nothing of agents, but for the line that says so.

`python examples/todo_app.py`: for a person; `raxol-mcp serve-app examples/todo_app.py`: for agents.
"""

from textual.app import App, ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Button, Checkbox, Footer, Header, Input, Label


class TodoApp(App[None]):
    """Things to do: added below the list, ticked off in it, and cleared away."""

    TITLE = "To do"
    BINDINGS = [("ctrl+t", "tick_all", "Tick all")]  # noqa: RUF012  # as Textual wants it
    CSS = "#bar { height: 3; } #count { width: 1fr; padding: 1; }"

    def compose(self) -> ComposeResult:
        """Lay out the screen."""
        yield Header()
        yield Input(id="new", placeholder="What is to be done?")
        yield VerticalScroll(id="items")
        with Horizontal(id="bar"):
            yield Label("Nothing to do", id="count")
            yield (clear := Button("Clear what is done", id="clear", disabled=True))
            clear.mcp_sensitive = True  # type: ignore[attr-defined]  # a person is asked first
        yield Footer()

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        """Add an item."""
        if event.value.strip():
            await self.query_one("#items").mount(Checkbox(event.value.strip()))
            event.input.clear()
            self.count()

    def on_checkbox_changed(self) -> None:
        """Count again."""
        self.count()

    async def on_button_pressed(self) -> None:
        """Clear away what is done."""
        await self.query("Checkbox.-on").remove()
        self.count()

    def action_tick_all(self) -> None:
        """Tick every item."""
        for item in self.query(Checkbox):
            item.value = True

    def count(self) -> None:
        """Say how much is left."""
        items = list(self.query(Checkbox))
        done = sum(item.value for item in items)
        self.query_one("#count", Label).update(f"{len(items) - done} to do, {done} done")
        self.query_one("#clear", Button).disabled = not done


if __name__ == "__main__":
    TodoApp().run()
