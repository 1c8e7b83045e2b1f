"""What the kinds of Textual widgets have in common, and how their texts are read.

A kind says what is to be known of a widget, what may be done with it, and does that with `Hands`.
The kinds themselves are in the modules beside this one; `textual_snapshot` lists them.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, Generic, TypeVar

from rich.console import Console
from rich.text import Text
from textual.content import Content
from textual.markup import MarkupError
from textual.widget import Widget

from raxol_mcp.errors import ToolError
from raxol_mcp.views.walker import Action

if TYPE_CHECKING:
    from raxol_mcp.views.textual_hands import Hands
    from raxol_mcp.views.tree import Node
    from raxol_mcp.wire.jsonrpc import JSONObject

__all__ = [
    "MAX_CHOICES",
    "MAX_TEXT",
    "Kind",
    "choice",
    "chosen",
    "labels_of",
    "lines_of",
    "named",
    "options_of",
    "plain",
    "schema",
    "sendable",
    "window",
]

MAX_TEXT: Final = 4_000  # ours: the longest text of one widget in a screenshot, in characters
MAX_CHOICES: Final = 100  # ours: more labels than this are no enumeration of a schema any more
MAX_LINES: Final = 500  # ours, of one reading

W = TypeVar("W", bound=Widget)


class Kind(Generic[W]):
    """A kind of widgets: `widget` and its subclasses, unless another kind is nearer.

    The children of an `atomic` widget are its own parts, and are not looked at.
    """

    name: ClassVar[str]
    widget: ClassVar[type[Widget]]
    role: ClassVar[str]
    atomic: ClassVar[bool] = True

    def label(self, widget: W) -> str:
        """What a person would call it: from this an id is made for a widget that has none."""
        return ""

    def facts(self, widget: W) -> dict[str, object]:
        """What is to be known of it. Never anything that it does not show to a person."""
        return {}

    def parts(self, widget: W) -> Sequence[Widget]:
        """The widgets in it that its own actions act upon."""
        return ()

    def actions(self, node: Node) -> Sequence[Action]:
        """What may be done with it."""
        return ()

    async def act(
        self, hands: Hands, widget: W, action: str, arguments: Mapping[str, object]
    ) -> object:
        """Do it. The app is waited for afterwards, and by who calls this."""
        raise ToolError(f"unknown action: {action}")


# -- schemas ------------------------------------------------------------------------------------


def schema(required: Mapping[str, JSONObject], **optional: JSONObject) -> JSONObject:
    """Write the schema of an action's arguments."""
    described: JSONObject = {
        "type": "object",
        "properties": {**required, **optional},
        "additionalProperties": False,
    }
    if required:
        described["required"] = list(required)
    return described


def choice(labels: Sequence[str], description: str) -> JSONObject:
    """Describe an argument that is one of `labels`, or one of many more."""
    described: JSONObject = {"type": "string", "description": description}
    if 0 < len(labels) <= MAX_CHOICES:
        described["enum"] = list(labels)
    return described


def window() -> dict[str, JSONObject]:
    """Describe the arguments that say which part of many lines is meant."""
    return {
        "offset": {"type": "integer", "minimum": 0, "description": "The first, from 0."},
        "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LINES},
    }


def named(node: Node, what: str) -> str:
    """Name a node in a description: `the button "Save"`."""
    label = node.attributes.get("label")
    return f'the {what} "{label}"' if label else f"the {what} {node.id}"


def options_of(node: Node) -> list[str]:
    """Read what may be chosen in a node, from its facts."""
    options = node.attributes.get("options")
    return [str(option) for option in options] if isinstance(options, list) else []


# -- arguments ----------------------------------------------------------------------------------


def chosen(labels: Sequence[str], wanted: object) -> int:
    """Find which of the labels is meant. Raises ToolError that lists them."""
    if isinstance(wanted, str) and wanted in labels:
        return labels.index(wanted)
    known = ", ".join(repr(label) for label in labels[:20]) or "none"
    raise ToolError(f"there is no {wanted!r} now; there is: {known}")


def lines_of(lines: Sequence[str], arguments: Mapping[str, object]) -> JSONObject:
    """Cut out the part of some lines that was asked for, by default the last ones."""
    limit = arguments.get("limit", 100)
    assert isinstance(limit, int), "the schema says so"
    offset = arguments.get("offset", max(0, len(lines) - limit))
    assert isinstance(offset, int), "the schema says so"
    return {
        "lines": list(lines[offset : offset + limit]),
        "offset": offset,
        "total": len(lines),
    }


# -- texts --------------------------------------------------------------------------------------


def plain(value: object, *, most: int = MAX_TEXT) -> str:
    """Read a text of Textual's or Rich's as it is to be seen, without its style."""
    if isinstance(value, Content | Text):
        text = value.plain
    elif isinstance(value, str):
        try:
            text = Content.from_markup(value).plain
        except MarkupError:
            text = value
    elif value is None:
        text = ""
    else:
        console = Console(file=io.StringIO(), width=120, color_system=None, legacy_windows=False)
        with console.capture() as capture:
            console.print(value)
        text = "\n".join(line.rstrip() for line in capture.get().splitlines())
    text = sendable(text)
    return text if len(text) <= most else text[: most - 1] + "…"


def sendable(text: str) -> str:
    """Put a mark for what no terminal shows and no message carries: halves of surrogate pairs."""
    return text.encode("utf-8", "replace").decode()


def labels_of(values: Sequence[object]) -> list[str]:
    """Read many texts as labels: one line each, and no two alike ("Add", "Add #2")."""
    labels: list[str] = []
    met: dict[str, int] = {}
    for value in values:
        label = " ".join(plain(value, most=200).split())
        met[label] = count = met.get(label, 0) + 1
        labels.append(label if count == 1 else f"{label} #{count}")
    return labels
