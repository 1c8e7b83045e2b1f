"""A view that tests can change, and what may be done in it. Knows no user interface."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

from raxol_mcp import ToolError
from raxol_mcp.views.tree import Node
from raxol_mcp.views.walker import Action, Provider
from raxol_mcp.wire.jsonrpc import JSONObject

TYPED: JSONObject = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
}


def button(id: str | None, label: str = "OK", **more: object) -> Node:
    """Make a button. What is neither a field of `Node` nor a fact does not exist."""
    fields = {key: more.pop(key) for key in ("excluded", "sensitive", "provider") if key in more}
    return Node("button", id, {"label": label, **more}, **fields)  # type: ignore[arg-type]  # as is


def field(id: str | None, value: str = "", **more: object) -> Node:
    """Make a text field."""
    return Node("input", id, {"value": value, **more})


def box(*children: Node | None, id: str | None = None, **more: object) -> Node:
    """Make a container."""
    return Node("box", id, more, children)


class Screen:
    """What is on the screen. It is its own `snapshot` and its own providers, and counts."""

    def __init__(self, *nodes: Node) -> None:
        self.nodes = nodes
        self.looks = 0
        self.done: list[tuple[object, ...]] = []
        self.providers: dict[str, Provider] = {"button": Buttons(self), "input": Fields(self)}

    def __call__(self) -> Sequence[Node]:
        self.looks += 1
        return self.nodes


@functools.cache
def _click(label: str) -> list[Action]:
    return [Action(name="click", description=f"Press {label}")]


class Buttons:
    """`click`, which is described by the label."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def actions(self, node: Node) -> Sequence[Action]:
        label = node.attributes.get("label")
        if label == "broken":
            raise LookupError("a secret of the provider")
        return _click(str(label))

    async def act(self, node: Node, action: str, arguments: Mapping[str, object]) -> object:
        self._screen.done.append((node.id, action))
        return f"pressed {node.attributes.get('label')}"


class Fields:
    """`type_into` and `get_value`."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def actions(self, node: Node) -> Sequence[Action]:
        return [
            Action(name="type_into", description="Type into the field", input_schema=TYPED),
            Action(name="get_value", description="Read the field", read_only=True),
        ]

    async def act(self, node: Node, action: str, arguments: Mapping[str, object]) -> object:
        if action == "get_value":
            return node.attributes["value"]
        if arguments["text"] == "no":
            raise ToolError("Not that.")
        self._screen.done.append((node.id, action, arguments["text"]))
        return None


class Offers:
    """A provider that offers what it was given, and does nothing."""

    def __init__(self, *actions: Action) -> None:
        self.given = actions

    def actions(self, node: Node) -> Sequence[Action]:
        return self.given

    async def act(self, node: Node, action: str, arguments: Mapping[str, object]) -> object:
        return action


PROVIDERS = Screen().providers

_IDS = st.sampled_from(["", "a", "b", "c", "d.e", "f-g", "not a name"]) | st.none()
_FACTS = st.fixed_dictionaries(
    {},
    optional={
        "label": st.sampled_from(["OK", "Cancel", "broken"]),
        "value": st.text(max_size=3),
        "disabled": st.booleans(),
        "covered": st.booleans(),
        "hidden": st.booleans(),
        "focused": st.booleans(),
    },
)


def _made(
    type: str,
    id: str | None,
    attributes: Mapping[str, object],
    children: Node | tuple[Node | None, ...] = (),
    excluded: bool = False,
    sensitive: bool = False,
) -> Node:
    return Node(type, id, attributes, children, None, excluded, sensitive)


def _node(children: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    return st.builds(
        _made,
        type=st.sampled_from(["button", "input", "box", "chart"]),
        id=_IDS,
        attributes=_FACTS,
        children=st.lists(children | st.none(), max_size=3).map(tuple) | children,
        excluded=st.booleans(),
        sensitive=st.booleans(),
    )


_LEAVES = st.builds(_made, type=st.sampled_from(["button", "input"]), id=_IDS, attributes=_FACTS)
trees: st.SearchStrategy[list[Node]] = st.lists(
    st.recursive(_LEAVES, _node, max_leaves=12), max_size=4
)
"""Any trees, with every oddity that an adapter may come up with."""
