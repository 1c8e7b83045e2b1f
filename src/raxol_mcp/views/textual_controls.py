"""Kinds of Textual widgets that are pressed or switched: buttons, checkboxes, tabs, ..."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from textual.widgets import (
    Button,
    Checkbox,
    Collapsible,
    RadioButton,
    RadioSet,
    Switch,
    Tab,
    TabbedContent,
    Tabs,
)
from textual.widgets._collapsible import CollapsibleTitle

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

__all__ = ["CONTROLS"]


class _Button(Kind[Button]):
    name, widget, role = "Button", Button, "button"

    def label(self, widget: Button) -> str:
        return plain(widget.label)

    def actions(self, node: Node) -> Sequence[Action]:
        return [Action(name="click", description=f"Click {named(node, 'button')}.")]

    async def act(
        self, hands: Hands, widget: Button, action: str, arguments: Mapping[str, object]
    ) -> object:
        label = self.label(widget)
        await hands.click(widget)
        return f"clicked {label!r}"


class _Toggle(Kind[Checkbox | RadioButton | Switch]):
    """Whatever is on or off."""

    def label(self, widget: Checkbox | RadioButton | Switch) -> str:
        return "" if isinstance(widget, Switch) else plain(widget.label)

    def facts(self, widget: Checkbox | RadioButton | Switch) -> dict[str, object]:
        return {"value": widget.value, "state": "on" if widget.value else "off"}

    def actions(self, node: Node) -> Sequence[Action]:
        return [
            Action(
                name="toggle",
                description=f"Switch {named(node, self.role)} on or off; to the other when `on` "
                "is left out.",
                input_schema=schema({}, on={"type": "boolean"}),
            ),
            Action(
                name="get_checked",
                description=f"Say whether {named(node, self.role)} is on.",
                read_only=True,
            ),
        ]

    async def act(
        self,
        hands: Hands,
        widget: Checkbox | RadioButton | Switch,
        action: str,
        arguments: Mapping[str, object],
    ) -> object:
        if action == "get_checked":
            return widget.value
        if arguments.get("on") is not widget.value:
            await hands.click(widget)
            await hands.quiet()
        return f"it is {'on' if widget.value else 'off'}"


class _Checkbox(_Toggle):
    name, widget, role = "Checkbox", Checkbox, "checkbox"


class _RadioButton(_Toggle):
    name, widget, role = "RadioButton", RadioButton, "radio"


class _Switch(_Toggle):
    name, widget, role = "Switch", Switch, "switch"


class _RadioSet(Kind[RadioSet]):
    name, widget, role = "RadioSet", RadioSet, "radiogroup"

    def parts(self, widget: RadioSet) -> list[RadioButton]:
        return [button for button in widget.query(RadioButton) if button.display]

    def _labels(self, widget: RadioSet) -> list[str]:
        return labels_of([button.label for button in self.parts(widget)])

    def facts(self, widget: RadioSet) -> dict[str, object]:
        labels, buttons = self._labels(widget), self.parts(widget)
        pressed = widget.pressed_button
        return {
            "value": labels[buttons.index(pressed)] if pressed in buttons else None,
            "options": [
                label
                for label, button in zip(labels, buttons, strict=True)
                if not button.is_disabled
            ],
            "content": "\n".join(labels),
        }

    def actions(self, node: Node) -> Sequence[Action]:
        return _select(node, "radio buttons")

    async def act(
        self, hands: Hands, widget: RadioSet, action: str, arguments: Mapping[str, object]
    ) -> object:
        if action == "get_selected":
            return self.facts(widget)["value"]
        button = self.parts(widget)[chosen(self._labels(widget), arguments["option"])]
        if button.is_disabled:
            raise ToolError("it is disabled")
        if not button.value:
            await hands.click(button)
        return f"selected {plain(button.label)!r}"


class _Collapsible(Kind[Collapsible]):
    name, widget, role = "Collapsible", Collapsible, "group"
    atomic = False

    def label(self, widget: Collapsible) -> str:
        return plain(widget.title)

    def facts(self, widget: Collapsible) -> dict[str, object]:
        return {"state": "collapsed" if widget.collapsed else "expanded"}

    def actions(self, node: Node) -> Sequence[Action]:
        return [
            Action(name=name, description=f"{does} {named(node, 'section')}.")
            for name, does in (("expand", "Open"), ("collapse", "Close"))
        ]

    async def act(
        self, hands: Hands, widget: Collapsible, action: str, arguments: Mapping[str, object]
    ) -> object:
        if widget.collapsed is (action == "expand"):
            await hands.click(widget.query_one(CollapsibleTitle))
        return f"{action}d" if action.endswith("e") else f"{action}ed"


class _Tabs(Kind[Tabs]):
    name, widget, role = "Tabs", Tabs, "tablist"

    def parts(self, widget: Tabs) -> list[Tab]:
        return [tab for tab in widget.query(Tab) if tab.display]

    def facts(self, widget: Tabs) -> dict[str, object]:
        tabs = self.parts(widget)
        labels = labels_of([tab.label for tab in tabs])
        active = widget.active_tab
        return {
            "value": labels[tabs.index(active)] if active in tabs else None,
            "options": [
                label for label, tab in zip(labels, tabs, strict=True) if not tab.is_disabled
            ],
            "content": "\n".join(labels),
        }

    def actions(self, node: Node) -> Sequence[Action]:
        options = options_of(node)
        return [
            Action(
                name="select_tab",
                description=f"Show a tab of {named(node, 'tabs')}.",
                input_schema=schema({"tab": choice(options, "The label of the tab.")}),
            ),
            Action(name="get_tabs", description=f"List {named(node, 'tabs')}.", read_only=True),
        ]

    async def act(
        self, hands: Hands, widget: Tabs, action: str, arguments: Mapping[str, object]
    ) -> object:
        tabs = self.parts(widget)
        labels = labels_of([tab.label for tab in tabs])
        if action == "get_tabs":
            return {"tabs": labels, "active": self.facts(widget)["value"]}
        tab = tabs[chosen(labels, arguments["tab"])]
        if tab.is_disabled:
            raise ToolError("that tab is disabled")
        await hands.click(tab)
        return f"selected {plain(tab.label)!r}"


class _TabbedContent(Kind[TabbedContent]):
    """Tabs, and below them what belongs to the one that is shown."""

    name, widget, role = "TabbedContent", TabbedContent, "tablist"
    atomic = False
    _bar: Final = _Tabs()

    def parts(self, widget: TabbedContent) -> list[Tab]:
        return self._bar.parts(widget.query_one(Tabs))

    def facts(self, widget: TabbedContent) -> dict[str, object]:
        return self._bar.facts(widget.query_one(Tabs))

    def actions(self, node: Node) -> Sequence[Action]:
        return self._bar.actions(node)

    async def act(
        self, hands: Hands, widget: TabbedContent, action: str, arguments: Mapping[str, object]
    ) -> object:
        return await self._bar.act(hands, widget.query_one(Tabs), action, arguments)


def _select(node: Node, what: str) -> list[Action]:
    return [
        Action(
            name="select",
            description=f"Select one of {named(node, what)}.",
            input_schema=schema({"option": choice(options_of(node), "The label of the option.")}),
        ),
        Action(
            name="get_selected",
            description=f"Say which of {named(node, what)} is selected.",
            read_only=True,
        ),
    ]


CONTROLS: Final = (
    _Button(),
    _Checkbox(),
    _RadioButton(),
    _Switch(),
    _RadioSet(),
    _Collapsible(),
    _Tabs(),
    _TabbedContent(),
)
