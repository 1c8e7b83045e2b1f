"""Small Textual apps for the tests beside this file."""

import time
from collections.abc import Mapping

from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import Container, Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import (
    Button,
    Checkbox,
    Collapsible,
    DataTable,
    Footer,
    Header,
    Input,
    Label,
    ListItem,
    ListView,
    Log,
    MaskedInput,
    OptionList,
    RadioButton,
    RadioSet,
    RichLog,
    Select,
    SelectionList,
    Static,
    Switch,
    Tab,
    TabbedContent,
    TabPane,
    Tabs,
    TextArea,
    Tree,
)
from textual.widgets._tabbed_content import ContentTab
from textual.widgets.option_list import Option


class Controls(App[None]):
    """Whatever is pressed or switched; `heard` tells what reached the app."""

    def compose(self) -> ComposeResult:
        yield Label("nothing", id="heard")
        with VerticalScroll():
            yield Button("Save", id="save")
            yield Button("Off", id="off", disabled=True)
            yield Button("Press [b]me[/b]")
            yield Checkbox("Agree", id="agree")
            yield Switch(id="power")
            with RadioSet(id="size"):
                yield RadioButton("Small", value=True)
                yield RadioButton("Large")
                yield RadioButton("Huge", disabled=True)
            with Collapsible(title="More", id="more"):
                yield Button("Inside", id="inside")
            with TabbedContent("First", "Second", id="pages"):
                with TabPane("First"):
                    yield Button("On first", id="on_first")
                with TabPane("Second"):
                    yield Button("On second", id="on_second")
            yield Static(classes="far")
            yield Button("Far down", id="far")

    CSS = ".far { height: 60; }"

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self._hear(f"pressed {event.button.label}")

    def on_checkbox_changed(self, event: Checkbox.Changed) -> None:
        self._hear(f"agree {event.value}")

    def on_switch_changed(self, event: Switch.Changed) -> None:
        self._hear(f"power {event.value}")

    def on_radio_set_changed(self, event: RadioSet.Changed) -> None:
        self._hear(f"size {event.pressed.label}")

    def _hear(self, what: str) -> None:
        self.query_one("#heard", Label).update(what)


class Texts(App[None]):
    """Whatever holds text."""

    def compose(self) -> ComposeResult:
        yield Label("nothing", id="heard")
        yield Input(id="name", placeholder="Name")
        yield Input(value="before", id="full")
        yield Input(id="digits", type="integer")
        yield Input(id="secret", password=True)
        yield MaskedInput(template="99-99", id="date")
        yield TextArea("line one\n", id="notes")
        yield TextArea("fixed", id="fixed", read_only=True)
        yield Log(id="log")
        yield RichLog(id="rich")
        yield Button("Show", id="show")

    def on_mount(self) -> None:
        self.query_one(Log).write_lines(f"line {number}" for number in range(300))
        self.query_one(RichLog).write("styled [b]not[/b]")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.query_one("#heard", Label).update(f"submitted {event.input.id} {event.value}")

    def on_button_pressed(self) -> None:
        self.query_one("#secret", Input).password = False


class Lists(App[None]):
    """Whatever one of several is chosen in."""

    def compose(self) -> ComposeResult:
        yield Label("nothing", id="heard")
        yield Select([("One", 1), ("Two", 2), ("Two", 22)], id="number")
        yield OptionList("Red", Option("Green", disabled=True), "Blue", id="colour")
        yield SelectionList[int](("Milk", 1), ("Bread", 2, True), id="shop")
        with ListView(id="people"):
            yield ListItem(Label("Ann"))
            yield ListItem(Label("Bob"), Button("Call", id="call"))

    def on_select_changed(self, event: Select.Changed) -> None:
        self._hear(f"number {event.value}")

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        if event.option_list.id == "colour":
            self._hear(f"colour {event.option.prompt}")

    def on_selection_list_selected_changed(self, event: SelectionList.SelectedChanged[int]) -> None:
        self._hear(f"shop {sorted(event.selection_list.selected)}")

    def on_list_view_selected(self, event: ListView.Selected) -> None:
        self._hear(f"people {event.index}")

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self._hear(f"pressed {event.button.label}")

    def _hear(self, what: str) -> None:
        self.query_one("#heard", Label).update(what)


class Tables(App[None]):
    """A table and a tree."""

    def compose(self) -> ComposeResult:
        yield Label("nothing", id="heard")
        table: DataTable[object] = DataTable(id="people", cursor_type="row")
        table.add_columns("Name", "Age")
        table.add_rows([("Ann", 31), ("Bob", 7), ("Cleo", 55)])
        yield table
        tree: Tree[str] = Tree("files", id="files")
        tree.root.expand()
        source = tree.root.add("src")
        source.add_leaf("main.py")
        tree.root.add_leaf("README")
        yield tree

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        self._hear(f"row {event.cursor_row}")

    def on_data_table_header_selected(self, event: DataTable.HeaderSelected) -> None:
        event.data_table.sort(event.column_key)
        self._hear(f"sorted by {event.label}")

    def on_tree_node_selected(self, event: Tree.NodeSelected[str]) -> None:
        self._hear(f"node {event.node.label}")

    def _hear(self, what: str) -> None:
        self.query_one("#heard", Label).update(what)


class Question(ModalScreen[None]):
    """A dialog over the screen below."""

    BINDINGS = [("n", "dismiss", "No")]  # noqa: RUF012  # as Textual's users write it

    def compose(self) -> ComposeResult:
        yield Label("Really?")
        yield Button("Yes", id="yes")

    def on_button_pressed(self) -> None:
        self.dismiss()


class Scenes(App[None]):
    """Ids, modal screens, things that come and go, bindings, and what an agent may not do."""

    TITLE = "Scenes"
    BINDINGS = [  # noqa: RUF012  # as Textual's users write it
        ("a", "ask", "Ask"),
        ("x", "erase", "Erase everything"),
        ("c", "crash", "Crash"),
        ("p", "shout", "Print"),
        ("b", "begin", "Begin work"),
    ]
    mcp_sensitive = frozenset({"erase"})

    def compose(self) -> ComposeResult:
        yield Header()
        yield Label("calm", id="mood")
        with Container(id="left"):
            yield Button("Same", id="same")
            yield Button("Same")
            yield Button("Same")
        with Container(id="right"), Vertical(), Horizontal():
            yield Button("Other", id="same")
        yield Button("Hide me", id="hide")
        yield Button("Private", id="private")
        yield Button("Delete", id="delete")
        with Container(id="shut", disabled=True):
            yield Button("Shut in", id="shut_in")
        yield Footer()

    def on_mount(self) -> None:
        self.query_one("#private").mcp_exclude = True  # type: ignore[attr-defined]  # what an app says with it
        self.query_one("#delete").mcp_sensitive = True  # type: ignore[attr-defined]  # as above

    def mcp_model(self) -> Mapping[str, object]:
        return {"mood": str(self.query_one("#mood", Label).content)}

    def on_button_pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "hide":
            event.button.display = False
        if event.button.id == "delete":
            self.query_one("#mood", Label).update("deleted")

    def action_ask(self) -> None:
        self.push_screen(Question())

    def action_erase(self) -> None:
        self.query_one("#mood", Label).update("erased")

    def action_crash(self) -> None:
        raise RuntimeError("the secret of the app is 12345")

    def action_shout(self) -> None:
        print("printed by the app")  # noqa: T201  # what is tested

    @work(thread=True)
    def action_begin(self) -> None:
        time.sleep(0.1)
        self.call_from_thread(self.query_one("#mood", Label).update, "worked")


class Blocking(App[None]):
    """Blocks its thread when it is told to, for a while."""

    def compose(self) -> ComposeResult:
        yield Button("Block", id="block")

    def on_button_pressed(self) -> None:
        time.sleep(0.5)


class Guarded(App[None]):
    """Bindings that a person is asked about, on keys that its widgets are operated with."""

    BINDINGS = [  # noqa: RUF012  # as Textual's users write it
        Binding("enter", "erase", "Erase", priority=True),
        ("down", "erase", "Erase"),
        ("space", "erase", "Erase"),
    ]
    mcp_sensitive = frozenset({"erase"})

    def compose(self) -> ComposeResult:
        yield VerticalScroll(Label("nothing to scroll"), id="scroll")
        yield Label("calm", id="mood")
        yield Input(id="name")
        yield OptionList("Red", "Blue", id="colour")
        yield SelectionList[int](("Milk", 1), id="shop")

    def action_erase(self) -> None:
        self.query_one("#mood", Label).update("erased")


class Sensitive(App[None]):
    """A person is asked about everything; nothing in it can have the focus."""

    mcp_sensitive = True

    def compose(self) -> ComposeResult:
        yield Label("calm", id="mood")

    def key_x(self) -> None:
        self.query_one("#mood", Label).update("erased")


class Parts(App[None]):
    """One of several is what a person is asked about."""

    def compose(self) -> ComposeResult:
        yield Label("calm", id="mood")
        with ListView(id="list"):
            yield ListItem(Label("Keep"))
            yield ListItem(Label("Drop"), classes="marked")
        with RadioSet(id="radio"):
            yield RadioButton("Keep")
            yield RadioButton("Drop", classes="marked")
        yield Tabs(Tab("Keep"), Tab("Drop", classes="marked"), id="tabs")
        with TabbedContent(id="panes"):
            yield TabPane("Keep", Label("kept"))
            yield TabPane("Drop", Label("dropped"))

    def on_mount(self) -> None:
        for widget in (*self.query(".marked"), self.query(ContentTab).last()):
            widget.mcp_sensitive = True  # what an app says with it


class Shifty(App[None]):
    """Takes its time, and then what was harmless is not."""

    BINDINGS = [("d", "soft", "Do")]  # noqa: RUF012  # as Textual's users write it

    def compose(self) -> ComposeResult:
        yield Button("Change", id="change")
        yield Button("Safe", id="other")
        yield Button("Fine", id="fine")
        yield Label("calm", id="mood")

    def on_button_pressed(self, event: Button.Pressed) -> None:
        if event.button.id != "change":
            self.query_one("#mood", Label).update(f"pressed {event.button.id}")
            return
        time.sleep(0.2)
        other = self.query_one("#other", Button)
        other.label = "Erase"
        other.mcp_sensitive = True  # type: ignore[attr-defined]  # what an app says with it
        self.query_one("#fine", Button).label = "Fine!"
        self.mcp_sensitive = {"soft"}

    def action_soft(self) -> None:
        self.query_one("#mood", Label).update("soft")
