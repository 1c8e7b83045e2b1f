"""Kinds of Textual widgets that hold text: inputs, text areas, logs.

The value of an input that hides it is read by nothing here, and an input that hid it once is
treated as one that does, for as long as it lives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final
from weakref import WeakSet

from textual.app import App
from textual.binding import Binding
from textual.widgets import Input, Log, MaskedInput, RichLog, TextArea

from raxol_mcp.errors import ToolError
from raxol_mcp.views.textual_kinds import (
    MAX_TEXT,
    Kind,
    lines_of,
    named,
    plain,
    schema,
    window,
)
from raxol_mcp.views.textual_marks import action_name
from raxol_mcp.views.walker import Action

if TYPE_CHECKING:
    from textual.widget import Widget

    from raxol_mcp.views.textual_hands import Hands
    from raxol_mcp.views.tree import Node
    from raxol_mcp.wire.jsonrpc import JSONObject

__all__ = ["TEXTS", "copies_secret", "is_secret"]

MAX_TYPED: Final = 100_000  # ours, in characters
_SHOWN_LINES: Final = 40  # of a log, in a screenshot

_once_hidden: WeakSet[Input] = WeakSet()


def is_secret(widget: Input) -> bool:
    """Say whether the value of an input is hidden from people, or was."""
    if widget.password:
        _once_hidden.add(widget)
    return widget in _once_hidden


def copies_secret(app: App[object], binding: Binding) -> bool:
    """Say whether a binding puts a hidden value on the clipboard, to be pasted to be seen."""
    focused = app.focused
    return (
        isinstance(focused, Input)
        and is_secret(focused)
        and action_name(binding) in {"copy", "cut"}
    )


class _Input(Kind[Input]):
    name = "Input"
    widget: ClassVar[type[Widget]] = Input
    role = "textbox"

    def label(self, widget: Input) -> str:
        return plain(widget.placeholder) or plain(widget.border_title)

    def facts(self, widget: Input) -> dict[str, object]:
        if is_secret(widget):
            return {"role": "password", "password": True}
        facts: dict[str, object] = {"value": _cut(widget.value)}
        if not widget.is_valid:
            facts["state"] = "invalid"
        return facts

    def actions(self, node: Node) -> Sequence[Action]:
        secret = node.attributes.get("password") is True
        what = named(node, "password field" if secret else "input")
        actions = [
            Action(
                name="type_into",
                description=f"Type text into {what}, after what is there; then press enter if "
                "`submit` is true.",
                input_schema=schema({"text": _typed()}, submit={"type": "boolean"}),
            ),
            Action(name="clear", description=f"Empty {what}."),
            Action(name="submit", description=f"Press enter in {what}."),
        ]
        if not secret:
            actions.append(Action(name="get_value", description=f"Read {what}.", read_only=True))
        return actions

    async def act(
        self, hands: Hands, widget: Input, action: str, arguments: Mapping[str, object]
    ) -> object:
        if action == "get_value":
            if is_secret(widget):
                raise ToolError("a password is not read back")
            return widget.value
        if action == "clear":
            await _emptied(hands, widget)
        elif action == "type_into":
            await self._type(hands, widget, str(arguments["text"]))
        if action == "submit" or arguments.get("submit") is True:
            await hands.quiet()
            await hands.press(widget, "enter")
        return _DONE[action]

    async def _type(self, hands: Hands, widget: Input, text: str) -> None:
        if len(text.splitlines()) > 1 or "\n" in text or "\r" in text:
            raise ToolError("it has one line: leave line breaks out, and use submit for enter")
        await hands.press(widget, "end")
        await hands.quiet()
        if text:
            await hands.paste(widget, text)


class _MaskedInput(_Input):
    """An input with a template, which takes one character at a time."""

    name = "MaskedInput"
    widget: ClassVar[type[Widget]] = MaskedInput

    async def _type(self, hands: Hands, widget: Input, text: str) -> None:
        for character in text:
            await hands.press(widget, character)  # not on, where the focus went elsewhere
            await hands.quiet()


class _TextArea(Kind[TextArea]):
    name, widget, role = "TextArea", TextArea, "textbox"

    def label(self, widget: TextArea) -> str:
        return plain(widget.border_title)

    def facts(self, widget: TextArea) -> dict[str, object]:
        return {"value": _cut(widget.text), "read_only": widget.read_only}

    def actions(self, node: Node) -> Sequence[Action]:
        what = named(node, "text area")
        read = Action(name="get_value", description=f"Read all of {what}.", read_only=True)
        if node.attributes.get("read_only") is True:
            return [read]
        return [
            Action(
                name="type_into",
                description=f"Type text into {what}, after what is there.",
                input_schema=schema({"text": _typed()}),
            ),
            Action(name="clear", description=f"Empty {what}."),
            read,
        ]

    async def act(
        self, hands: Hands, widget: TextArea, action: str, arguments: Mapping[str, object]
    ) -> object:
        if action == "get_value":
            return widget.text
        if widget.read_only:
            raise ToolError("it is read only")
        if action == "clear":
            await _emptied(hands, widget)
        else:
            await hands.focus(widget)
            widget.move_cursor(widget.document.end)
            await hands.paste(widget, str(arguments["text"]))
        return _DONE[action]


class _Log(Kind[Log | RichLog]):
    name = "Log"
    widget: ClassVar[type[Widget]] = Log
    role = "log"

    def facts(self, widget: Log | RichLog) -> dict[str, object]:
        shown = self._lines(widget, -_SHOWN_LINES)
        return {"content": _cut("\n".join(shown)), "live": "polite", "total": len(widget.lines)}

    def actions(self, node: Node) -> Sequence[Action]:
        return [
            Action(
                name="read",
                description=f"Read lines of {named(node, 'log')}; the last ones by default.",
                input_schema=schema({}, **window()),
                read_only=True,
            )
        ]

    async def act(
        self, hands: Hands, widget: Log | RichLog, action: str, arguments: Mapping[str, object]
    ) -> object:
        return lines_of(self._lines(widget), arguments)

    def _lines(self, widget: Log | RichLog, first: int = 0) -> list[str]:
        if isinstance(widget, Log):
            return list(widget.lines[first:])
        return [line.text.rstrip() for line in widget.lines[first:]]


class _RichLog(_Log):
    name = "RichLog"
    widget: ClassVar[type[Widget]] = RichLog


async def _emptied(hands: Hands, widget: Input | TextArea) -> None:
    """Select everything and delete it, as people do."""
    await hands.focus(widget)
    await widget.run_action("select_all")
    await hands.press(widget, "backspace")


def _typed() -> JSONObject:
    return {"type": "string", "maxLength": MAX_TYPED}


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"


_DONE: Final = {"type_into": "typed", "clear": "emptied", "submit": "pressed enter"}

TEXTS: Final = (_Input(), _MaskedInput(), _TextArea(), _Log(), _RichLog())
