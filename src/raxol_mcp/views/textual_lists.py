"""Kinds of Textual widgets in which one of several is chosen: selects and lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from textual.widgets import ListItem, ListView, OptionList, Select, SelectionList, Static
from textual.widgets._select import SelectOverlay

from raxol_mcp.errors import ToolError
from raxol_mcp.views.textual_kinds import (
    Kind,
    choice,
    chosen,
    labels_of,
    named,
    options_of,
    plain,
    schema,
)
from raxol_mcp.views.walker import Action

if TYPE_CHECKING:
    from raxol_mcp.views.textual_hands import Hands
    from raxol_mcp.views.tree import Node

__all__ = ["LISTS"]

_SHOWN: Final = 100  # options of a list, in a screenshot


class _Select(Kind[Select[object]]):
    name, widget, role = "Select", Select, "combobox"

    def label(self, widget: Select[object]) -> str:
        return plain(widget.border_title) or plain(widget.prompt)

    def _labels(self, widget: Select[object]) -> list[str]:
        # With their places in the list: the first is blank where nothing may be chosen.
        return labels_of([prompt for prompt, _ in widget._options])

    def facts(self, widget: Select[object]) -> dict[str, object]:
        labels = self._labels(widget)
        return {
            "value": next(
                (
                    label
                    for label, (_, value) in zip(labels, widget._options, strict=True)
                    if label and value == widget.value
                ),
                None,
            ),
            "state": "expanded" if widget.expanded else "collapsed",
            **_options(labels),
        }

    def actions(self, node: Node) -> Sequence[Action]:
        return _choosing(node, "list", get="get_options")

    async def act(
        self, hands: Hands, widget: Select[object], action: str, arguments: Mapping[str, object]
    ) -> object:
        labels = self._labels(widget)
        if action == "get_options":
            return {
                "options": [label for label in labels if label],
                "selected": self.facts(widget)["value"],
            }
        index = chosen(labels, arguments["option"])
        if not widget.expanded:
            await hands.press(widget, "enter")
            await hands.quiet()
        overlay = widget.query_one(SelectOverlay)
        await _highlighted(hands, overlay, index)
        await hands.press(overlay, "enter")
        return f"selected {labels[index]!r}"


class _OptionList(Kind[OptionList]):
    name, widget, role = "OptionList", OptionList, "listbox"

    def label(self, widget: OptionList) -> str:
        return plain(widget.border_title)

    def _labels(self, widget: OptionList) -> list[str]:
        return labels_of([option.prompt for option in widget.options])

    def facts(self, widget: OptionList) -> dict[str, object]:
        labels = self._labels(widget)
        highlighted = widget.highlighted
        return {
            "value": None if highlighted is None else labels[highlighted],
            **_options(
                [
                    label
                    for label, option in zip(labels, widget.options, strict=True)
                    if not option.disabled
                ]
            ),
        }

    def actions(self, node: Node) -> Sequence[Action]:
        return _choosing(node, "list", get="get_options")

    async def act(
        self, hands: Hands, widget: OptionList, action: str, arguments: Mapping[str, object]
    ) -> object:
        labels = self._labels(widget)
        if action == "get_options":
            return {"options": labels, "highlighted": self.facts(widget)["value"]}
        index = chosen(labels, arguments["option"])
        await _highlighted(hands, widget, index)
        await hands.press(widget, "enter")
        return f"selected {labels[index]!r}"


class _SelectionList(Kind[SelectionList[object]]):
    name, widget, role = "SelectionList", SelectionList, "listbox"

    def label(self, widget: SelectionList[object]) -> str:
        return plain(widget.border_title)

    def _labels(self, widget: SelectionList[object]) -> list[str]:
        return labels_of([option.prompt for option in widget.options])

    def _selected(self, widget: SelectionList[object]) -> list[str]:
        labels, selected = self._labels(widget), widget.selected
        return [
            label
            for index, label in enumerate(labels)
            if widget.get_option_at_index(index).value in selected
        ]

    def facts(self, widget: SelectionList[object]) -> dict[str, object]:
        return {"value": self._selected(widget), **_options(self._labels(widget))}

    def actions(self, node: Node) -> Sequence[Action]:
        options = choice(options_of(node), "The label of the option.")
        what = named(node, "list")
        return [
            Action(
                name="toggle",
                description=f"Select an option of {what} or not; the other when `on` is left out.",
                input_schema=schema({"option": options}, on={"type": "boolean"}),
            ),
            Action(
                name="get_selected",
                description=f"List what is selected in {what}.",
                read_only=True,
            ),
        ]

    async def act(
        self,
        hands: Hands,
        widget: SelectionList[object],
        action: str,
        arguments: Mapping[str, object],
    ) -> object:
        if action == "get_selected":
            return {"selected": self._selected(widget), "options": self._labels(widget)}
        labels = self._labels(widget)
        label = labels[index := chosen(labels, arguments["option"])]
        if arguments.get("on") is not (label in self._selected(widget)):
            await _highlighted(hands, widget, index)
            await hands.press(widget, "space")
            await hands.quiet()
        return f"{label!r} is {'on' if label in self._selected(widget) else 'off'}"


class _ListView(Kind[ListView]):
    """A list of items that are widgets themselves, which are looked at as well."""

    name, widget, role = "ListView", ListView, "list"
    atomic = False

    def label(self, widget: ListView) -> str:
        return plain(widget.border_title)

    def parts(self, widget: ListView) -> list[ListItem]:
        return [child for child in widget.children if isinstance(child, ListItem)]

    def _labels(self, widget: ListView) -> list[str]:
        return labels_of([_item_text(item) for item in self.parts(widget)])

    def facts(self, widget: ListView) -> dict[str, object]:
        labels, items = self._labels(widget), self.parts(widget)
        highlighted = widget.highlighted_child
        facts = _options(labels)
        del facts["content"]  # its children have it
        return {
            "value": labels[items.index(highlighted)] if highlighted in items else None,
            **facts,
        }

    def actions(self, node: Node) -> Sequence[Action]:
        return _choosing(node, "list", get="get_items")

    async def act(
        self, hands: Hands, widget: ListView, action: str, arguments: Mapping[str, object]
    ) -> object:
        labels, items = self._labels(widget), self.parts(widget)
        if action == "get_items":
            return {"items": labels, "highlighted": self.facts(widget)["value"]}
        item = items[index := chosen(labels, arguments["option"])]
        if item.is_disabled:
            raise ToolError("that item is disabled")
        await hands.focus(widget)
        widget.index = list(widget.children).index(item)
        await hands.quiet()
        await hands.press(widget, "enter")
        return f"selected {labels[index]!r}"


def _item_text(item: ListItem) -> str:
    texts = [plain(part.visual) for part in item.query(Static) if part.display]
    return " ".join(texts) or (item.name or item.id or "item")


async def _highlighted(hands: Hands, widget: OptionList, index: int) -> None:
    if widget.get_option_at_index(index).disabled:
        raise ToolError("that option is disabled")
    await hands.focus(widget)
    widget.highlighted = index
    await hands.quiet()


def _options(labels: Sequence[str]) -> dict[str, object]:
    shown = [label for label in labels if label]
    more = len(shown) - _SHOWN
    return {
        "options": shown,
        "content": "\n".join([*shown[:_SHOWN], f"… and {more} more"] if more > 0 else shown),
    }


def _choosing(node: Node, what: str, *, get: str) -> list[Action]:
    return [
        Action(
            name="select",
            description=f"Select an option of {named(node, what)}, as with enter.",
            input_schema=schema({"option": choice(options_of(node), "The label of the option.")}),
        ),
        Action(name=get, description=f"List the options of {named(node, what)}.", read_only=True),
    ]


LISTS: Final = (_Select(), _OptionList(), _SelectionList(), _ListView())
